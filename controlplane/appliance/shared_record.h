// Shared records as bytes, as they are before they are sealed. Numbers are big-endian.
//
//   secret   version, state, created_s 8, retire_s 8, ttl_s 8, key 32
//   seed     version, key 32
//   room     version, state, mode, salt's length, salt 32, opened_ms 8, opened_at_ms 8,
//            message's length 2, message
//   release  version, number 8, people 8
//
// What is new stands behind what there was, under the same version: who does not know it keeps it
// (`rest`), also when it writes the record anew. A higher version is for what older ones must not
// go by: they pass over it, and keep it.
#pragma once

#include <stdbool.h>
#include <stdint.h>

#include "controlplane/appliance/shared.h"
#include "controlplane/cluster/ledger.h"
#include "controlplane/store/secrets.h"
#include "drivers/span.h"

#define SHARED_RECORD_SECRET_BYTES (1u + 1u + 8u + 8u + 8u + STORE_SECRET_BYTES)
#define SHARED_RECORD_SEED_BYTES (1u + STORE_SECRET_BYTES)
#define SHARED_RECORD_ROOM_BYTES (1u + 1u + 1u + 1u + STORE_SALT_BYTES_MAX + 8u + 8u + 2u)
#define SHARED_RECORD_RELEASE_BYTES (1u + 8u + 8u)

struct shared_record_secret {
	struct store_secret of;
	uint8_t state; // enum secrets_state
	uint64_t ttl_s; // for which the one before it stays when this signs
	uint32_t rest_bytes;
	uint8_t rest[LEDGER_BLOB_MAX];
};

// Each writes into LEDGER_BLOB_MAX bytes and returns how many; 0: there is no room for `rest`.
uint32_t shared_record_put_secret(const struct shared_record_secret *r, uint8_t *bytes);
uint32_t shared_record_put_seed(const uint8_t *key, uint8_t *bytes);
uint32_t shared_record_put_room(const struct shared_room *room, struct span rest, uint8_t *bytes);
uint32_t shared_record_put_release(uint64_t number, uint64_t people, uint8_t *bytes);

// Of a secret that was opened: of this version, `len` at least SHARED_RECORD_SECRET_BYTES. Returns
// false if its state is none that is known.
bool shared_record_secret(
	const uint8_t *bytes, uint32_t len, uint8_t id, struct shared_record_secret *r);
// Returns false if it is none, or not of this version.
bool shared_record_room(const uint8_t *bytes, uint32_t len, uint32_t line_id,
	struct shared_room *room, struct span *rest);
bool shared_record_release(const uint8_t *bytes, uint32_t len, uint64_t *number, uint64_t *people);
