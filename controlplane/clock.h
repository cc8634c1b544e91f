// Cluster time of one appliance: the system's clock made continuous.
//
//   cluster time = CLOCK_MONOTONIC + offset
//
// It begins at the system's time, or where it stood when the process before ended if that is later,
// and then follows the system's clock by slewing its offset: at most 5 ms in a second, so it never
// goes back and never jumps, whatever the system's clock does. A restart takes over a step forward
// at once.
//
// In a cluster there is one cluster time, that of the ledger, and the system's clock has no say: it
// begins at the first reply and follows those that come later in the same manner. A reply says what
// the time was at some moment between sending and receiving; the offset moves only if it was not
// possible at any such moment. While the ledger is away CLOCK_MONOTONIC goes on by itself.
#pragma once

#include <stdbool.h>
#include <stdint.h>

#define CLOCK_SLEW_MS_PER_S 5
#define CLOCK_STEP_MS 1000 // a difference above this is reported
#define CLOCK_LOST_MS 10000u // who has differed from the ledger for so long was wrong itself
#define CLOCK_CATCH_MS_PER_S 500 // and falls back so fast, if it is ahead

struct clock {
	int64_t offset_ms; // of cluster time from CLOCK_MONOTONIC
	uint64_t slewed_us; // CLOCK_MONOTONIC when the offset was last corrected
	int64_t behind_ms; // how far the system's clock, or the ledger's, is ahead, at that time
	uint64_t last_ms; // what an earlier process had reached
	uint64_t skewed_us; // since when the ledger has said so; 0: it does not
};

// CLOCK_MONOTONIC, us; CLOCK_REALTIME, unix ms. The only places where control reads them.
uint64_t clock_monotonic_us(void);
uint64_t clock_system_ms(void);

// Begin.
//   last_ms  cluster time that an earlier process had reached; 0: unknown
void clock_init(struct clock *clock, uint64_t last_ms, uint64_t monotonic_us, uint64_t system_ms);

// Cluster time at a moment, unix ms.
uint64_t clock_at(const struct clock *clock, uint64_t monotonic_us);

// The same, now.
uint64_t clock_now_ms(const struct clock *clock);

// Correct the offset towards the system's clock; does nothing within a second of the last
// correction. Pure.
void clock_slew(struct clock *clock, uint64_t monotonic_us, uint64_t system_ms);

// What the ledger said of cluster time.
struct clock_reply {
	uint64_t sent_us, received_us; // CLOCK_MONOTONIC
	uint64_t ms; // cluster time
	bool is_skewed; // it is too far from ours; one of the two is wrong
};

// Begin anew where the ledger is, but never before what an earlier process had reached. Before
// anybody has been told the time.
void clock_join(struct clock *clock, const struct clock_reply *reply);

// A later reply before anybody has been told: one that took less time may show that it is later.
void clock_join_again(struct clock *clock, const struct clock_reply *reply);

// Correct the offset towards the ledger's time; does nothing within a second of the last
// correction. One that is too far off is not followed, because its conductor will set it right;
// after CLOCK_LOST_MS of that it is this clock that was wrong (a machine that had been suspended):
// forward it jumps. Pure.
void clock_follow(struct clock *clock, const struct clock_reply *reply);
