// Ended: the sessions that ended before their passes expired, consulted with every pass.
//
// A bounded set of session ids. Control alone inserts and sweeps; any number of workers ask. A
// session id has two buckets of eight words, chosen by its own bits (ids are random, and come from
// tokens whose MAC held); it lies in either, and never moves. So a reader looks at two cache lines
// and can not miss what was inserted before its last quiescent state, whatever control does
// meanwhile.
//
// A second set of this kind holds the visitors of tickets that were given back, until floor has
// passed them (`left_max`).
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#define ENDED_MAX_DEFAULT 65536u // sessions; `ended_max`
#define ENDED_MAX_MOST (1u << 24)
#define ENDED_GRACE_S 2u // kept this long after the pass expired: clocks of workers are slewed

struct ended;

// Bytes that a set of up to `max` sessions takes, a multiple of 64.
size_t ended_bytes(uint32_t max);

// Make an empty set in `memory` (ended_bytes(max), aligned to 64; stays the caller's). max: 1 to
// ENDED_MAX_MOST. At start.
struct ended *ended_init(void *memory, uint32_t max);

// Refuse the passes of `session` from now on.
//   session  not 0
//   expires  of its last pass, unix s; for one already in the set the later one holds
// Returns false if it does not fit: `max` sessions are in the set, or, about never, both its
// buckets are full. Control only.
bool ended_insert(struct ended *e, uint64_t session, uint32_t expires);

// Take `session` out, if it is in. Control only.
void ended_remove(struct ended *e, uint64_t session);

// Whether `session` is in the set. Any thread, lock-free, 16 words; one when it is empty.
bool ended_has(const struct ended *e, uint64_t session);

// Drop those whose passes have expired. Control only; looks at a bounded part of the set, the next
// call goes on from there. Call once a second. Returns how many were dropped.
uint32_t ended_sweep(struct ended *e, uint32_t now_s);

// Counts the insertions: what it was tells whether there have been any since. Any thread; a reader
// that sees a later count sees what was inserted before it.
uint64_t ended_version(const struct ended *e);

// Sessions in the set. Any thread.
uint32_t ended_count(const struct ended *e);
