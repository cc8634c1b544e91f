// Dice: all that is left to chance, from one seed (splitmix64).
#pragma once

#include <stdint.h>

// 64 random bits.
static inline uint64_t dice_next(uint64_t *dice)
{
	uint64_t z = *dice += 0x9e3779b97f4a7c15ull;
	z = (z ^ (z >> 30)) * 0xbf58476d1ce4e5b9ull;
	z = (z ^ (z >> 27)) * 0x94d049bb133111ebull;
	return z ^ (z >> 31);
}

// From 0 up to, but not, 1.
static inline double dice_share(uint64_t *dice)
{
	return (double)(dice_next(dice) >> 11) * 0x1p-53;
}
