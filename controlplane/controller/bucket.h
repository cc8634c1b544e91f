// Bucket: a rate as whole numbers.
//
// One person costs `period_ms` units, a millisecond brings `count` units, and the bucket holds
// `burst` people. So in any window no more than rate x window + burst are let through, to the last
// unit, however long it runs.
#pragma once

#include <stdbool.h>
#include <stdint.h>

struct bucket {
	uint64_t count, period_ms, burst; // count 0: no limit
	uint64_t level; // units
	uint64_t now_ms; // that `level` is of
};

// A bucket that will be full at `full_ms` (now or before: it is full).
struct bucket bucket_make(
	uint32_t count, uint32_t period_ms, uint32_t burst, uint64_t full_ms, uint64_t now_ms);

// Bring it up to `now_ms`.
void bucket_refill(struct bucket *bucket, uint64_t now_ms);

// People that could be let through now; UINT32_MAX: no limit.
uint32_t bucket_people(const struct bucket *bucket);

// People that could be let through by `ms` from now, beginning now; UINT32_MAX: no limit.
uint32_t bucket_people_within(const struct bucket *bucket, uint64_t ms);

// Let one through. Returns false if there is none to let through.
bool bucket_take(struct bucket *bucket);

// Somebody else keeps it, and says how many it lets through now.
void bucket_follow(struct bucket *bucket, uint32_t people);

// When it will be full, rounded up.
uint64_t bucket_full_ms(const struct bucket *bucket);

// It will not be full before `full_ms`.
void bucket_delay(struct bucket *bucket, uint64_t full_ms);

// Other limits, keeping the people in it, as far as there is room; full if there was no limit.
void bucket_set(struct bucket *bucket, uint32_t count, uint32_t period_ms, uint32_t burst);
