// TIME_WAIT: what must be known of a connection that is over, 32 bytes each (RFC 9293 3.6.1, 6191,
// 1337), in a table of its own; the oldest makes room.
//
// While there is room it also remembers those that need no TIME_WAIT: their cookies are still good,
// and a late copy of the segment that opened one would open it again.
//
// All last equally long, so they stand in a ring in the order of their ends; a hash index finds one
// by a 64-bit keyed fingerprint of the four-tuple.
#pragma once

#include <stdbool.h>
#include <stdint.h>

struct tcp_wait;

struct tcp_wait_entry {
	uint64_t tuple; // keyed fingerprint; not 0
	uint32_t snd_nxt, rcv_nxt;
	uint32_t ts_recent; // 0: no timestamps
	uint32_t ends_ms;
	bool is_over; // no TIME_WAIT, but for its cookie
	uint32_t next; // in its bucket
};

// Make a table of `max` entries. Returns NULL when out of memory.
struct tcp_wait *wait_create(uint32_t max);
void wait_destroy(struct tcp_wait *wait);
uint64_t wait_bytes(uint32_t max);

// Enter; its end is not before that of any that was entered earlier, its tuple is not in the table,
// or its end has passed.
// Returns false if the oldest had to make room before its end.
bool wait_add(struct tcp_wait *wait, const struct tcp_wait_entry *entry);

// Whether one could be entered without that.
bool wait_has_room(const struct tcp_wait *wait);

// The entry of a tuple; NULL: none. It lives until the next call that changes the table.
struct tcp_wait_entry *wait_find(struct tcp_wait *wait, uint64_t tuple, uint32_t now_ms);

// Have what a search for a tuple looks at brought into the caches: its chain's head, then in each
// further step of WAIT_STEPS an entry of it. For many at once, a step of all before the next.
#define WAIT_STEPS 3u
void wait_prefetch(const struct tcp_wait *wait, uint64_t tuple, unsigned step);

// Take one out: a newer SYN has it.
void wait_remove(struct tcp_wait *wait, struct tcp_wait_entry *entry);

// Drop those whose end has passed, a bounded number. Returns how many are in TIME_WAIT.
uint32_t wait_expire(struct tcp_wait *wait, uint32_t now_ms);
