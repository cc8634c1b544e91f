// Deadlines of connections, TCP's and the worker's: a hierarchical wheel with lazy re-arming
// (Varghese and Lauck, 1987).
//
// Each entry has one deadline. Moving it later only stores the time; the entry is moved when its
// slot comes up. Moving it earlier links it anew. Entries are linked by index, so that an entry
// takes 16 bytes. An entry belongs to one connection and is unlinked before that is freed.
// Single-threaded; time is an argument.
#pragma once

#include <stdbool.h>
#include <stdint.h>

struct timers_entry {
	uint32_t next, previous; // index + 1 of the neighbours; of a slot's first, previous is 0
	uint32_t deadline; // ticks, modulo 2^32
	uint16_t slot; // where it is linked; TIMERS_UNLINKED, which whoever makes it has to write
};

#define TIMERS_TICK_US 1000u
#define TIMERS_LEVEL_BITS 8u // 256 slots a level
#define TIMERS_LEVELS 4u // 2^32 ticks: 49 days
#define TIMERS_UNLINKED UINT16_MAX
#define TIMERS_SLOTS (1u << TIMERS_LEVEL_BITS)
#define TIMERS_AHEAD_MAX INT32_MAX // ticks, 24 days; deadlines beyond fire then
#define TIMERS_DUE_MAX 64u // expiries of one turn
#define TIMERS_LOOK_MAX 512u // entries looked at in one call

struct timers {
	char *first; // of an array: where the timer of element 0 is
	uint32_t stride; // bytes from one to the next
	uint32_t count; // linked
	uint64_t tick; // the next to look at
	uint64_t used[TIMERS_LEVELS][TIMERS_SLOTS / 64]; // a bit for each slot that is not empty
	uint32_t slots[TIMERS_LEVELS * TIMERS_SLOTS]; // index + 1 of the first
};

// Nothing is linked; time begins at `now_us`. The timers lie in an array, `stride` bytes apart.
void timers_init(
	struct timers *timers, struct timers_entry *first, uint32_t stride, uint64_t now_us);

// Set the deadline of element `index`, linking it if it is not; what is past fires at the next
// timers_due(). UINT64_MAX is not allowed: everything has a deadline.
void timers_set(struct timers *timers, uint32_t index, uint64_t deadline_us);

// Unlink; nothing happens if it is not linked.
void timers_remove(struct timers *timers, uint32_t index);

// Unlink what is due, oldest slots first, into `due` (indices), at most `max`; the rest comes with
// the next call. Moves what was re-armed lazily. Looks at a bounded number of entries and slots a
// call, whatever the time that has passed. Returns how many.
unsigned timers_due(struct timers *timers, uint64_t now_us, uint32_t *due, unsigned max);

// How long nothing can become due, us: a bound, not exact; at most `max_us`.
uint64_t timers_quiet_us(const struct timers *timers, uint64_t now_us, uint64_t max_us);
