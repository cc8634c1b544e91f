// Session tickets: what a client that comes again shows, so that its handshake needs no signature.
//
// The session itself is in the ticket, sealed with a key that all workers have (and all processes
// that control gives the same seeds): nothing is remembered here, and a restart changes nothing.
// Keys follow each other; a ticket is good under the current key, the one before and the one after
// (another appliance's clock may be ahead), and is replaced unless it is the current one's.
#pragma once

#include <stdbool.h>
#include <stdint.h>

#define TICKET_SEED_BYTES 32u
#define TICKET_KEYS_MAX 3u // current, previous, next
#define TICKET_LIFE_S 43200u // of a session; its key is current for as long, and known twice that
#define TICKET_NAME_BYTES 16u
#define TICKET_KEY_BYTES 32u

struct ticket_key {
	uint8_t name[TICKET_NAME_BYTES]; // in the ticket: which key it was sealed with
	uint8_t cipher[TICKET_KEY_BYTES]; // AES-256-CBC
	uint8_t mac[TICKET_KEY_BYTES]; // HMAC-SHA256
};

// All zero: none; then no tickets are given and none holds.
struct ticket_keys {
	uint32_t count;
	struct ticket_key of[TICKET_KEYS_MAX]; // [0] is the current one
};

// Add the key that comes from a seed of TICKET_SEED_BYTES: the same one anywhere. At most
// TICKET_KEYS_MAX. Any thread.
void ticket_add(struct ticket_keys *keys, const uint8_t *seed);

// The key of that name, or NULL. Pure; any thread.
const struct ticket_key *ticket_find(const struct ticket_keys *keys, const uint8_t *name);

struct evp_cipher_ctx_st;
struct evp_mac_ctx_st;
struct evp_cipher_st;

// What OpenSSL's callback does: choose the key, and make cipher and MAC ready with it.
//   name, iv  of the ticket: written if it is to be sealed, read if it is to be opened
//   fetched   AES-256-CBC
// Returns as that callback does: 1 go on, 2 likewise and give a new ticket, 0 no ticket, or this
// one does not hold, -1 out of memory.
int ticket_choose(const struct ticket_keys *keys, const struct evp_cipher_st *fetched,
	uint8_t *name, uint8_t *iv, struct evp_cipher_ctx_st *cipher, struct evp_mac_ctx_st *mac,
	bool is_new);
