// What control publishes to workers.
//
//   one pointer      the snapshot: rooms, secrets, origins, all immutable; replaced whole, the old
//   one freed when every
//                    worker has passed a quiescent state (rte_rcu_qsbr)
//   words            a few atomics of the process: clock, heartbeat, draining
//   lines            the words of each line (gate/place.h), reached through the snapshot's rooms
//   ended, left      the sets of ended sessions and of tickets given back (gate/ended.h)
#pragma once

#include <stdatomic.h>
#include <stdbool.h>
#include <stdint.h>

#include "dataplane/gate/ended.h"
#include "dataplane/gate/rooms.h"
#include "dataplane/gate/token.h"
#include "dataplane/origin/origin_table.h"
#include "dataplane/tls/ticket.h"
#include "dataplane/tls/tls.h"

// A network of proxies whose forwarding fields are believed; IPv4 mapped.
struct snapshot_network {
	uint8_t ip[16];
	uint8_t bits; // of the 128
};

struct snapshot {
	uint64_t version; // counts from 1
	struct gate_map map;
	struct token_secrets secrets;
	const struct origin_table *origins; // lives as long as the snapshot
	const struct identity *identities[TLS_LISTENERS_MAX]; // by listener; NULL: a plain one
	struct ticket_keys ticket_keys; // of visitors' sessions
	const struct snapshot_network *trusted;
	uint32_t trusted_count;
	uint32_t code_attempts; // wrong codes of a source in a minute; at most GUARD_LIMIT_MAX
	void *owner; // control's: what to free with it
};

struct guard;
struct rte_rcu_qsbr;

// Shared by all workers; each field is written by control.
struct snapshot_words {
	_Atomic(const struct snapshot *) current;
	_Atomic int64_t
		clock_offset_ms; // cluster time = CLOCK_MONOTONIC + this; never makes it go back
	_Atomic uint64_t heartbeat_us; // CLOCK_MONOTONIC of control's last turn
	_Atomic bool
		draining; // answer with Connection: close, admit no newcomers, leave when empty
	_Atomic bool is_unhealthy; // a worker stands still: said by the health answer
	_Atomic uint32_t appliance; // number in keys that are minted; below 64; written: control
	struct ended *ended; // sessions
	struct guard *guard; // of codes; written by all workers (guard.h)
	struct ended *left; // the visitors of tickets that were given back
	struct rte_rcu_qsbr *quiescent; // one reader per worker, by its index
};

// How old the heartbeat may be before workers hold: they park nothing and answer at once (design: a
// commit older than 200 ms). An idle control thread beats every 20 ms.
#define SNAPSHOT_HOLD_US 200000u

// Whether `ip` is in one of the networks. Pure.
bool snapshot_is_trusted(const struct snapshot *snapshot, const uint8_t ip[16]);
