// The clock of clock.h.

#include "controlplane/clock.h"

#include <time.h>

uint64_t clock_monotonic_us(void)
{
	struct timespec now;
	clock_gettime(CLOCK_MONOTONIC, &now);
	return (uint64_t)now.tv_sec * 1000000 + (uint64_t)now.tv_nsec / 1000;
}

uint64_t clock_system_ms(void)
{
	struct timespec now;
	clock_gettime(CLOCK_REALTIME, &now);
	return (uint64_t)now.tv_sec * 1000 + (uint64_t)now.tv_nsec / 1000000;
}

void clock_init(struct clock *clock, uint64_t last_ms, uint64_t monotonic_us, uint64_t system_ms)
{
	uint64_t begin_ms = last_ms > system_ms ? last_ms : system_ms;
	clock->offset_ms = (int64_t)(begin_ms - monotonic_us / 1000);
	clock->slewed_us = monotonic_us;
	clock->behind_ms = (int64_t)(system_ms - begin_ms);
}

uint64_t clock_at(const struct clock *clock, uint64_t monotonic_us)
{
	return (uint64_t)((int64_t)(monotonic_us / 1000) + clock->offset_ms);
}

void clock_slew(struct clock *clock, uint64_t monotonic_us, uint64_t system_ms)
{
	if (monotonic_us < clock->slewed_us + 1000000)
		return;
	clock->slewed_us = monotonic_us;
	clock->behind_ms = (int64_t)(system_ms - clock_at(clock, monotonic_us));
	int64_t step_ms = clock->behind_ms;
	if (step_ms > CLOCK_SLEW_MS_PER_S)
		step_ms = CLOCK_SLEW_MS_PER_S;
	if (step_ms < -CLOCK_SLEW_MS_PER_S)
		step_ms = -CLOCK_SLEW_MS_PER_S;
	clock->offset_ms += step_ms;
}
