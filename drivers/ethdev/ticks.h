// CLOCK_MONOTONIC in microseconds from the TSC, without a system call.
//
// Calibrated against the kernel's clock at start and again once a second: what the TSC had gained
// or lost is made up for, and the new rate is used from there on. Where the TSC is not invariant
// (some virtual machines), or shows another rate than before by more than a hundredth, the kernel
// is asked each time.
#pragma once

#include <stdbool.h>
#include <stdint.h>

struct ticks {
	uint64_t base_tsc, base_us; // where the current rate began
	uint64_t us_per_tick_q32; // microseconds of a tick, times 2^32
	uint64_t check_tsc; // when the kernel is asked again
	uint64_t last_us; // what was said last
	bool is_kernel; // the TSC is of no use
};

// Calibrate: takes about 10 ms when `may_use_tsc`.
void ticks_init(struct ticks *ticks, bool may_use_tsc);

// The time now, never less than before. One thread.
uint64_t ticks_now_us(struct ticks *ticks);

// Whether the processor says that its TSC runs at one rate, whatever it does.
bool ticks_is_invariant(void);

// The same from given readings of both clocks, for tests.
void ticks_set(struct ticks *ticks, uint64_t tsc, uint64_t us, uint64_t ticks_per_second);
uint64_t ticks_at(struct ticks *ticks, uint64_t tsc, uint64_t (*kernel_us)(void));
