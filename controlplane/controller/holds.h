// Holds: keys that floor must not pass yet, though control does not know who holds them: claims
// that were refused, present that found no place.
//
// One key, the smallest, for each second in which holds end, so it is never full.
#pragma once

#include <stdint.h>

#define HOLDS_SECONDS 256u // longest hold is a little less

struct holds {
	uint64_t keys[HOLDS_SECONDS]; // of the second `ends` % HOLDS_SECONDS
	uint64_t ends[HOLDS_SECONDS]; // s
	uint64_t last_end; // s
};

// Hold floor below `key` for `seconds`, at most HOLDS_SECONDS - 2.
void holds_add(struct holds *h, uint64_t key, uint32_t seconds, uint64_t now_ms);

// The smallest key held, or UINT64_MAX.
uint64_t holds_first_key(const struct holds *h, uint64_t now_ms);
