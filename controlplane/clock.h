// Cluster time of one appliance: the system's clock made continuous.
//
//   cluster time = CLOCK_MONOTONIC + offset
//
// It begins at the system's time, or where it stood when the process before ended if that is later,
// and then follows the system's clock by slewing its offset: at most 5 ms in a second, so it never
// goes back and never jumps, whatever the system's clock does. A restart takes over a step forward
// at once.
#pragma once

#include <stdint.h>

#define CLOCK_SLEW_MS_PER_S 5
#define CLOCK_STEP_MS 1000 // a difference above this is reported

struct clock {
	int64_t offset_ms; // of cluster time from CLOCK_MONOTONIC
	uint64_t slewed_us; // CLOCK_MONOTONIC when the offset was last corrected
	int64_t behind_ms; // how far the system's clock is ahead, at that time
};

// CLOCK_MONOTONIC, us; CLOCK_REALTIME, unix ms. The only places where control reads them.
uint64_t clock_monotonic_us(void);
uint64_t clock_system_ms(void);

// Begin.
//   last_ms  cluster time that an earlier process had reached; 0: unknown
void clock_init(struct clock *clock, uint64_t last_ms, uint64_t monotonic_us, uint64_t system_ms);

// Cluster time at a moment, unix ms.
uint64_t clock_at(const struct clock *clock, uint64_t monotonic_us);

// Correct the offset towards the system's clock; does nothing within a second of the last
// correction. Pure.
void clock_slew(struct clock *clock, uint64_t monotonic_us, uint64_t system_ms);
