// Quota: a count that begins anew with each period.

#include "controlplane/controller/quota.h"

#include <assert.h>

#define USED_MAX ((1ull << QUOTA_USED_BITS) - 1)

static uint64_t start_of(const struct quota *quota, uint64_t now_ms)
{
	return now_ms - now_ms % quota->period_ms;
}

struct quota quota_make(uint32_t count, uint32_t period_ms, uint64_t word, uint64_t now_ms)
{
	struct quota quota = {.count = count, .period_ms = period_ms};
	assert(count == 0 || (period_ms > 0 && period_ms % 1000 == 0));
	assert(count <= USED_MAX);
	quota_advance(&quota, now_ms);
	quota_resume(&quota, word);
	return quota;
}

void quota_advance(struct quota *quota, uint64_t now_ms)
{
	if (quota->count == 0 || start_of(quota, now_ms) == quota->start_ms)
		return;
	quota->start_ms = start_of(quota, now_ms);
	quota->used = 0;
}

void quota_set(struct quota *quota, uint32_t count, uint32_t period_ms, uint64_t now_ms)
{
	*quota = quota_make(count, period_ms, quota_word(quota), now_ms);
}

void quota_resume(struct quota *quota, uint64_t word)
{
	const uint64_t used = word & USED_MAX;
	const bool is_same = (word >> QUOTA_USED_BITS) * 1000 == quota->start_ms;
	if (quota->count > 0 && is_same && used > quota->used)
		quota->used = used;
}

uint32_t quota_left(const struct quota *quota)
{
	if (quota->count == 0)
		return UINT32_MAX;
	return quota->count > quota->used ? (uint32_t)(quota->count - quota->used) : 0;
}

uint32_t quota_left_within(const struct quota *quota, uint64_t ms, uint64_t now_ms)
{
	if (quota->count == 0)
		return UINT32_MAX;
	const uint64_t periods =
		(start_of(quota, now_ms + ms) - start_of(quota, now_ms)) / quota->period_ms;
	const uint64_t people = quota_left(quota) + periods * quota->count;
	return people < UINT32_MAX ? (uint32_t)people : UINT32_MAX - 1;
}

void quota_follow(struct quota *quota, uint32_t left)
{
	quota->used = quota->count > left ? quota->count - left : 0;
}

void quota_take(struct quota *quota)
{
	assert(quota_left(quota) > 0);
	if (quota->count > 0)
		quota->used++;
}

uint64_t quota_word(const struct quota *quota)
{
	return quota->start_ms / 1000 << QUOTA_USED_BITS | quota->used;
}
