// Random numbers that a seed replays (splitmix64). Not for secrets.
#pragma once

#include <stdint.h>

// The next number of a splitmix64; any state will do.
static inline uint64_t random_next(uint64_t *state)
{
	uint64_t z = *state += 0x9e3779b97f4a7c15u;
	z = (z ^ z >> 30) * 0xbf58476d1ce4e5b9u;
	z = (z ^ z >> 27) * 0x94d049bb133111ebu;
	return z ^ z >> 31;
}

// At least 0, below 1.
static inline double random_share(uint64_t *state)
{
	return (double)(random_next(state) >> 11) * 0x1p-53;
}
