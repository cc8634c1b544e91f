// Random numbers for tests that replay: splitmix64, all state in the caller's word.
#pragma once

#include <stdint.h>

static inline uint64_t random_next(uint64_t *state)
{
	uint64_t z = (*state += 0x9e3779b97f4a7c15);
	z = (z ^ (z >> 30)) * 0xbf58476d1ce4e5b9;
	z = (z ^ (z >> 27)) * 0x94d049bb133111eb;
	return z ^ (z >> 31);
}

static inline uint64_t random_below(uint64_t *state, uint64_t limit)
{
	return random_next(state) % limit;
}

// Fail a test and say which seed replays it.
#define CHECK_SEED(seed, condition) \
	do { \
		if (!(condition)) \
			fail_msg("seed %llu: %s", (unsigned long long)(seed), #condition); \
	} while (0)
