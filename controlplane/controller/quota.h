// Quota: so many people in each period, counted from the epoch: each calendar minute, every ten
// minutes. Unlike a rate it is whole at the beginning of a period, and what is left of it is lost.
#pragma once

#include <stdbool.h>
#include <stdint.h>

struct quota {
	uint64_t count, period_ms; // count 0: no limit
	uint64_t start_ms; // of the period that `used` is of
	uint64_t used;
};

#define QUOTA_USED_BITS 24 // of a word

// A quota of `count` people each `period_ms` (whole seconds); count 0: no limit.
//   word  what quota_word() said, perhaps in an earlier process; 0: nothing
struct quota quota_make(uint32_t count, uint32_t period_ms, uint64_t word, uint64_t now_ms);

// Bring it up to `now_ms`. Time never goes back.
void quota_advance(struct quota *quota, uint64_t now_ms);

// Other limits. Of a period that begins at the same moment, what was used stays used.
void quota_set(struct quota *quota, uint32_t count, uint32_t period_ms, uint64_t now_ms);

// At least so many were let through in this period as `word` says, if it is of this period.
void quota_resume(struct quota *quota, uint64_t word);

// People that could be let through now, or within `ms` from now; UINT32_MAX: no limit.
uint32_t quota_left(const struct quota *quota);
uint32_t quota_left_within(const struct quota *quota, uint64_t ms, uint64_t now_ms);

// Somebody else keeps it, and says how many are left of this period.
void quota_follow(struct quota *quota, uint32_t left);

// Let one through; one is left.
void quota_take(struct quota *quota);

// Period and use in one word, for a restart within the period.
uint64_t quota_word(const struct quota *quota);
