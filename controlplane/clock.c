// The clock of clock.h.

#include "controlplane/clock.h"

#include <stdint.h>
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
	clock->last_ms = last_ms;
	clock->skewed_us = 0;
}

uint64_t clock_at(const struct clock *clock, uint64_t monotonic_us)
{
	return (uint64_t)((int64_t)(monotonic_us / 1000) + clock->offset_ms);
}

uint64_t clock_now_ms(const struct clock *clock)
{
	return clock_at(clock, clock_monotonic_us());
}

static int64_t within(int64_t value, int64_t least, int64_t most)
{
	return value < least ? least : value > most ? most : value;
}

// Whether a correction is due: then it counts as made.
static bool is_due(struct clock *clock, uint64_t monotonic_us)
{
	if (monotonic_us < clock->slewed_us + 1000000)
		return false;
	clock->slewed_us = monotonic_us;
	return true;
}

void clock_slew(struct clock *clock, uint64_t monotonic_us, uint64_t system_ms)
{
	if (!is_due(clock, monotonic_us))
		return;
	clock->behind_ms = (int64_t)(system_ms - clock_at(clock, monotonic_us));
	clock->offset_ms += within(clock->behind_ms, -CLOCK_SLEW_MS_PER_S, CLOCK_SLEW_MS_PER_S);
}

void clock_join(struct clock *clock, const struct clock_reply *reply)
{
	clock_init(
		clock, clock->last_ms, reply->received_us, reply->ms); // it is that late at least
}

void clock_join_again(struct clock *clock, const struct clock_reply *reply)
{
	const uint64_t now_ms = clock_at(clock, reply->received_us);
	if (reply->ms > now_ms)
		clock->offset_ms += (int64_t)(reply->ms - now_ms);
}

// How far the ledger is ahead at least, below 0 how far behind; 0: it may be right. A millisecond
// begins up to one before it is read, here as there.
static int64_t behind_of(const struct clock *clock, const struct clock_reply *reply)
{
	int64_t least = (int64_t)(reply->ms - clock_at(clock, reply->received_us)) - 1;
	int64_t most = (int64_t)(reply->ms - clock_at(clock, reply->sent_us)) + 1;
	return least > 0 ? least : most < 0 ? most : 0;
}

void clock_follow(struct clock *clock, const struct clock_reply *reply)
{
	if (!reply->is_skewed)
		clock->skewed_us = 0;
	else if (!clock->skewed_us)
		clock->skewed_us = reply->received_us;
	if (!is_due(clock, reply->received_us))
		return;
	clock->behind_ms = behind_of(clock, reply);
	const bool is_lost = reply->is_skewed &&
			     reply->received_us >= clock->skewed_us + CLOCK_LOST_MS * 1000ull;
	if (is_lost)
		clock->offset_ms += within(clock->behind_ms, -CLOCK_CATCH_MS_PER_S, INT64_MAX);
	else if (!reply->is_skewed)
		clock->offset_ms +=
			within(clock->behind_ms, -CLOCK_SLEW_MS_PER_S, CLOCK_SLEW_MS_PER_S);
}
