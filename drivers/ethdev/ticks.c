// The clock of ticks.h: us = base_us + (tsc - base_tsc) * rate, the rate in 32.32 fixed point.
//
// At a check the kernel's time becomes the new base. Where the TSC has run ahead of it, the time
// stands still until the kernel has caught up, so that it never goes back.

#include "drivers/ethdev/ticks.h"

#include <rte_cycles.h>

#include <time.h>

#define CALIBRATE_US 10000u
#define US 1000000u
#define DRIFT_SHARE 100u // a rate may change by a hundredth from second to second

static uint64_t kernel_now_us(void)
{
	struct timespec now;
	clock_gettime(CLOCK_MONOTONIC, &now);
	return (uint64_t)now.tv_sec * US + (uint64_t)now.tv_nsec / 1000;
}

#if defined(__x86_64__)
#include <cpuid.h>

bool ticks_is_invariant(void)
{
	unsigned a, b, c, d; // CPUID 8000_0007, EDX bit 8
	return __get_cpuid(0x80000007, &a, &b, &c, &d) && d & 1u << 8;
}
#else
bool ticks_is_invariant(void)
{
	return true; // the generic timer of arm64 is
}
#endif

static uint64_t rate_of(uint64_t passed_us, uint64_t passed_ticks)
{
	return (uint64_t)(((unsigned __int128)passed_us << 32) / passed_ticks);
}

void ticks_set(struct ticks *ticks, uint64_t tsc, uint64_t us, uint64_t ticks_per_second)
{
	*ticks = (struct ticks){.base_tsc = tsc,
		.base_us = us,
		.us_per_tick_q32 = rate_of(US, ticks_per_second),
		.check_tsc = tsc + ticks_per_second,
		.last_us = us};
}

void ticks_init(struct ticks *ticks, bool may_use_tsc)
{
	uint64_t us = kernel_now_us(), tsc = rte_rdtsc(), now_us = us;
	*ticks = (struct ticks){.is_kernel = true, .last_us = us};
	if (!may_use_tsc)
		return;
	while (now_us - us < CALIBRATE_US)
		now_us = kernel_now_us();
	uint64_t passed = rte_rdtsc() - tsc;
	if (passed > 0)
		ticks_set(ticks, tsc + passed, now_us, passed * US / (now_us - us));
}

// The kernel's time is the new base.
static uint64_t check(struct ticks *ticks, uint64_t tsc, uint64_t us)
{
	uint64_t passed_ticks = tsc - ticks->base_tsc, passed_us = us - ticks->base_us;
	uint64_t rate = passed_ticks ? rate_of(passed_us, passed_ticks) : 0;
	uint64_t old = ticks->us_per_tick_q32, apart = rate > old ? rate - old : old - rate;
	// A rate is off by how long the thread was held up between two readings, too.
	if (!rate || apart > old / DRIFT_SHARE)
		ticks->is_kernel = true;
	ticks->base_tsc = tsc;
	ticks->base_us = us;
	ticks->us_per_tick_q32 = rate;
	ticks->check_tsc = rate ? tsc + (((uint64_t)US << 32) / rate) : 0;
	return us;
}

uint64_t ticks_at(struct ticks *ticks, uint64_t tsc, uint64_t (*kernel_us)(void))
{
	uint64_t us;
	if (ticks->is_kernel)
		us = kernel_us();
	else if (tsc - ticks->base_tsc >= ticks->check_tsc - ticks->base_tsc)
		us = check(ticks, tsc, kernel_us());
	else
		us = ticks->base_us + (uint64_t)(((unsigned __int128)(tsc - ticks->base_tsc) *
							 ticks->us_per_tick_q32) >>
						 32);
	if (us > ticks->last_us)
		ticks->last_us = us;
	return ticks->last_us;
}

uint64_t ticks_now_us(struct ticks *ticks)
{
	return ticks_at(ticks, rte_rdtsc(), kernel_now_us);
}
