// Present: the called who polled, ordered by key, until twice the poll_after that they were told.
//
// Times are of the available clock (state.h): nobody ceases to be present while nobody can poll.
#pragma once

#include <stdbool.h>
#include <stdint.h>

#include "controlplane/controller/due.h"
#include "controlplane/controller/keyset.h"

struct present {
	struct keyset keys;
	struct due ends;
};

// Returns false when memory is short; present_fini() then all the same.
bool present_init(struct present *p, uint32_t count_max, uint64_t seed);
void present_fini(struct present *p);

// Whether (key, visitor) is present.
bool present_has(const struct present *p, uint64_t key, uint64_t visitor);

// (key, visitor) is present until `until_ms`. Full: the largest key gives way.
// Returns the key that found no place, or 0.
uint64_t present_put(struct present *p, uint64_t key, uint64_t visitor, uint64_t until_ms);

// It need not be in.
void present_remove(struct present *p, uint64_t key, uint64_t visitor);

// Drop those who have not come back. A bounded number; the rest at the next call.
void present_expire(struct present *p, uint64_t now_ms);

// The present before this one.
uint32_t present_before(const struct present *p, uint64_t key, uint64_t visitor);

// The present.
uint32_t present_count(const struct present *p);

// The smallest key, or UINT64_MAX.
uint64_t present_first_key(const struct present *p);
