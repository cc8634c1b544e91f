// Pace: poll intervals.
//
// Known wait: a tenth of it. Unknown: 2 s, and 1 s more for every 256 people ahead, so that a
// million who have just come are spread over a minute. Up to a quarter is taken off at random.

#include "dataplane/gate/pace.h"

#include <assert.h>

#define TENTH_Q16 6554u // 65536 / 10, rounded up

static uint32_t clamp(uint64_t seconds)
{
	if (seconds < PACE_MIN_S)
		return PACE_MIN_S;
	return seconds < PACE_MAX_S ? (uint32_t)seconds : PACE_MAX_S;
}

uint32_t pace_poll_after_max(uint64_t ahead, uint64_t wait_high_q32)
{
	if (wait_high_q32 == PACE_WAIT_UNKNOWN)
		return clamp(2 + (ahead >> 8));
	const unsigned __int128 wait = (unsigned __int128)ahead * wait_high_q32 >> 32;
	if (wait >> 32)
		return PACE_MAX_S;
	return clamp((uint64_t)wait * TENTH_Q16 >> 16);
}

uint32_t pace_poll_after(uint64_t ahead, uint64_t wait_high_q32, uint32_t random)
{
	const uint32_t most = pace_poll_after_max(ahead, wait_high_q32);
	const uint32_t less = (uint32_t)((uint64_t)random * (most / 4 + 1) >> 32);
	assert(less < most);
	return most - less;
}
