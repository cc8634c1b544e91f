// Tally: how often something happened in the last ten seconds.
#pragma once

#include <stdint.h>

#define TALLY_SECONDS 10u

struct tally {
	uint32_t counts[TALLY_SECONDS + 1]; // of `second` and those before it
	uint64_t second, began; // began: the first second it knows of
};

// Begin with nothing counted; count one. Time never goes back.
void tally_init(struct tally *t, uint64_t now_ms);
void tally_add(struct tally *t, uint64_t now_ms);

// A second, over the last ten whole seconds, or as many as there have been; 0 in the first.
double tally_rate(const struct tally *t, uint64_t now_ms);
