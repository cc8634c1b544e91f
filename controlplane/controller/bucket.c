// Bucket: a token bucket in integers.
//
// The largest numbers: burst < 2^32 people of at most 2^27 units (a day in ms), so a level fits in
// 59 bits; elapsed x count is bounded before it is multiplied.

#include "controlplane/controller/bucket.h"

#include <assert.h>

#define PERIOD_MAX_MS (24u * 3600 * 1000)

static uint64_t full_level(const struct bucket *bucket)
{
	return bucket->burst * bucket->period_ms;
}

// Units that come in within `ms`, but no more than `most`.
static uint64_t units_within(const struct bucket *bucket, uint64_t ms, uint64_t most)
{
	return ms > most / bucket->count ? most : ms * bucket->count;
}

static struct bucket make_empty(uint32_t count, uint32_t period_ms, uint32_t burst)
{
	assert(count == 0 || (period_ms > 0 && period_ms <= PERIOD_MAX_MS && burst > 0));
	return (struct bucket){.count = count, .period_ms = period_ms, .burst = burst};
}

struct bucket bucket_make(
	uint32_t count, uint32_t period_ms, uint32_t burst, uint64_t full_ms, uint64_t now_ms)
{
	struct bucket bucket = make_empty(count, period_ms, burst);
	bucket.now_ms = now_ms;
	bucket.level = full_level(&bucket);
	bucket_delay(&bucket, full_ms);
	return bucket;
}

void bucket_delay(struct bucket *bucket, uint64_t full_ms)
{
	const uint64_t full = full_level(bucket);
	if (bucket->count == 0 || full_ms <= bucket->now_ms)
		return;
	const uint64_t level = full - units_within(bucket, full_ms - bucket->now_ms, full);
	if (level < bucket->level)
		bucket->level = level;
}

void bucket_refill(struct bucket *bucket, uint64_t now_ms)
{
	assert(now_ms >= bucket->now_ms);
	if (bucket->count > 0)
		bucket->level += units_within(
			bucket, now_ms - bucket->now_ms, full_level(bucket) - bucket->level);
	bucket->now_ms = now_ms;
}

uint32_t bucket_people(const struct bucket *bucket)
{
	return bucket_people_within(bucket, 0);
}

uint32_t bucket_people_within(const struct bucket *bucket, uint64_t ms)
{
	if (bucket->count == 0)
		return UINT32_MAX;
	// What comes in while people are let through is not bounded by the bucket's depth.
	const uint64_t most = UINT32_MAX * bucket->period_ms - bucket->level;
	const uint64_t people =
		(bucket->level + units_within(bucket, ms, most)) / bucket->period_ms;
	return people < UINT32_MAX ? (uint32_t)people : UINT32_MAX - 1;
}

bool bucket_take(struct bucket *bucket)
{
	if (bucket->count == 0)
		return true;
	if (bucket->level < bucket->period_ms)
		return false;
	bucket->level -= bucket->period_ms;
	return true;
}

void bucket_follow(struct bucket *bucket, uint32_t people)
{
	if (bucket->count == 0)
		return;
	const uint64_t level = people * bucket->period_ms, full = full_level(bucket);
	// Of the one who comes next, the part that has come in is ours to know.
	if (level > bucket->level || level + bucket->period_ms <= bucket->level)
		bucket->level = level < full ? level : full;
}

uint64_t bucket_full_ms(const struct bucket *bucket)
{
	if (bucket->count == 0)
		return 0;
	const uint64_t missing = full_level(bucket) - bucket->level;
	return bucket->now_ms + (missing + bucket->count - 1) / bucket->count;
}

void bucket_set(struct bucket *bucket, uint32_t count, uint32_t period_ms, uint32_t burst)
{
	struct bucket next = make_empty(count, period_ms, burst);
	next.now_ms = bucket->now_ms;
	next.level = full_level(&next);
	if (bucket->count > 0 && count > 0) {
		const unsigned __int128 level =
			(unsigned __int128)bucket->level * period_ms / bucket->period_ms;
		if (level < next.level)
			next.level = (uint64_t)level;
	}
	*bucket = next;
}
