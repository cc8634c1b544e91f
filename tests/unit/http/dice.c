// splitmix64 (Steele, Lea, Flood 2014): every seed is a good one.

#include "tests/unit/http/dice.h"

#include <stdio.h>
#include <stdlib.h>
#include <time.h>

static uint64_t state;

void dice_begin(void)
{
	const char *seed = getenv("SLUICE_SEED");
	struct timespec now;
	clock_gettime(CLOCK_REALTIME, &now);
	state = seed ? strtoull(seed, NULL, 10) : (uint64_t)now.tv_sec * 1000000007 + now.tv_nsec;
	printf("SLUICE_SEED=%llu\n", (unsigned long long)state);
}

uint32_t dice(uint32_t below)
{
	uint64_t z = state += 0x9e3779b97f4a7c15;
	z = (z ^ z >> 30) * 0xbf58476d1ce4e5b9;
	z = (z ^ z >> 27) * 0x94d049bb133111eb;
	return (z ^ z >> 31) % below;
}
