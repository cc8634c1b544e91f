// Deadlines: a hashed wheel with lazy re-arming.
//
// Every entry always has one deadline. Moving it later only stores the new time; the entry stays
// where it is in the wheel and is moved when its old slot comes up (so that an active connection
// pays one store per turn, not a list operation). Moving it earlier re-links it. Single-threaded;
// time is an argument.
#pragma once

#include <stdbool.h>
#include <stdint.h>

#define WHEEL_TICK_US 10000u // resolution; an entry is reported at most two ticks late
#define WHEEL_SLOTS 1024u // one round: 10.24 s; later deadlines wait in their slot for more rounds

// Embedded in what has the deadline.
struct wheel_entry {
	struct wheel_entry *next, *previous; // in its slot; NULL: not in the wheel
	uint64_t deadline_us;
	uint32_t slot; // where it is linked
};

struct wheel {
	uint64_t tick; // next tick to look at
	uint64_t count; // entries linked
	struct wheel_entry slots[WHEEL_SLOTS]; // list heads
};

// Nothing is linked; time begins at `now_us`.
void wheel_init(struct wheel *wheel, uint64_t now_us);

// Set the deadline of an entry, linking it if it is not linked. `deadline_us` in the past fires at
// the next call.
void wheel_set(struct wheel *wheel, struct wheel_entry *entry, uint64_t deadline_us);

// Take an entry out; nothing happens if it is not linked.
void wheel_remove(struct wheel *wheel, struct wheel_entry *entry);

// Unlink and return at most `max` entries whose deadline is over, oldest slots first. Returns how
// many; call again in the next turn if it is `max`.
unsigned wheel_expired(
	struct wheel *wheel, uint64_t now_us, struct wheel_entry **due, unsigned max);

// How long nothing can become due, us: at least 0, at most `max_us`. A bound, not exact.
uint64_t wheel_quiet_us(const struct wheel *wheel, uint64_t now_us, uint64_t max_us);
