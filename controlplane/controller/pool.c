// Pool: limits, the tree, and what is free. Who is next: pool_order.c.

#include "controlplane/controller/pool.h"

#include <assert.h>
#include <stdlib.h>

#define STRIDE (1ull << 30) // of weight 1: 2^34 admissions before a virtual time ends

static uint32_t least(uint32_t a, uint32_t b)
{
	return a < b ? a : b;
}

static void check_limits(const struct pool_limits *limits)
{
	assert(limits->burst > 0);
	assert(limits->rate_count == 0 || limits->rate_period_ms > 0);
}

void pool_init(struct pool *pool, const struct pool_limits *l, const struct pool_words *words,
	uint64_t now_ms)
{
	check_limits(l);
	*pool = (struct pool){.limits = *l, .priority = 1, .stride = STRIDE};
	pool->bucket =
		bucket_make(l->rate_count, l->rate_period_ms, l->burst, words->full_ms, now_ms);
	pool->all = quota_make(l->all.count, l->all.period_ms, words->all, now_ms);
	pool->direct = quota_make(l->direct.count, l->direct.period_ms, words->direct, now_ms);
	tally_init(&pool->admitted, now_ms);
}

struct pool *pool_create(const struct pool_limits *limits, uint64_t now_ms)
{
	static const struct pool_words nothing;
	struct pool *pool = malloc(sizeof(*pool));
	if (pool)
		pool_init(pool, limits, &nothing, now_ms);
	return pool;
}

void pool_destroy(struct pool *pool)
{
	if (!pool)
		return;
	assert(!pool->first);
	pool_join(pool, NULL, 1, 1, NULL);
	free(pool);
}

void pool_set_limits(struct pool *pool, const struct pool_limits *l, uint64_t now_ms)
{
	check_limits(l);
	pool_advance(pool, now_ms);
	pool->limits = *l;
	bucket_set(&pool->bucket, l->rate_count, l->rate_period_ms, l->burst);
	quota_set(&pool->all, l->all.count, l->all.period_ms, now_ms);
	quota_set(&pool->direct, l->direct.count, l->direct.period_ms, now_ms);
}

static void unlink_from(struct pool *parent, struct pool *pool)
{
	struct pool **at = &parent->first;
	while (*at != pool)
		at = &(*at)->next;
	*at = pool->next;
	pool->next = NULL;
}

// Behind those of its class.
static void link_below(struct pool *parent, struct pool *pool)
{
	struct pool **at = &parent->first;
	while (*at && (*at)->priority <= pool->priority)
		at = &(*at)->next;
	pool->next = *at;
	*at = pool;
}

static void move(struct pool *pool, struct pool *parent, const struct pool_words *words)
{
	for (struct pool *p = pool->parent; p; p = p->parent)
		p->taken -= pool->taken;
	for (struct pool *p = parent; p; p = p->parent)
		p->taken += pool->taken;
	for (struct pool *p = parent; p && words; p = p->parent) {
		bucket_delay(&p->bucket, words->full_ms);
		quota_resume(&p->all, words->all);
		quota_resume(&p->direct, words->direct);
	}
	pool->parent = parent;
}

void pool_join(struct pool *pool, struct pool *parent, uint32_t priority, uint32_t weight,
	const struct pool_words *words)
{
	assert(priority > 0 && weight > 0 && weight <= POOL_WEIGHT_MAX);
	pool->stride = STRIDE / weight;
	if (pool->parent == parent && pool->priority == priority)
		return;
	if (pool->parent)
		unlink_from(pool->parent, pool);
	if (pool->parent != parent)
		move(pool, parent, words);
	// Virtual times of another class say nothing here.
	pool->pass = pool->served = 0;
	pool->is_active = false;
	pool->priority = priority;
	if (parent)
		link_below(parent, pool);
}

void pool_advance(struct pool *pool, uint64_t now_ms)
{
	for (; pool; pool = pool->parent) {
		if (now_ms <= pool->bucket.now_ms)
			continue;
		bucket_refill(&pool->bucket, now_ms);
		quota_advance(&pool->all, now_ms);
		quota_advance(&pool->direct, now_ms);
	}
}

void pool_take(struct pool *pool)
{
	for (; pool; pool = pool->parent)
		pool->taken++;
}

void pool_give(struct pool *pool)
{
	for (; pool; pool = pool->parent) {
		assert(pool->taken > 0);
		pool->taken--;
	}
}

uint32_t pool_free(const struct pool *pool)
{
	uint32_t free = UINT32_MAX;
	for (; pool; pool = pool->parent)
		free = least(free, pool_free_here(pool));
	return free;
}

uint32_t pool_people(const struct pool *pool)
{
	uint32_t people = UINT32_MAX;
	for (; pool; pool = pool->parent)
		people = least(people, pool_people_here(pool));
	return people;
}

uint32_t pool_people_direct(const struct pool *pool)
{
	uint32_t people = pool_people(pool);
	for (; pool; pool = pool->parent)
		people = least(people, quota_left(&pool->direct));
	return people;
}

void pool_charge(struct pool *pool, bool is_direct, uint64_t now_ms)
{
	for (; pool; pool = pool->parent) {
		const bool is_taken = bucket_take(&pool->bucket);
		assert(is_taken);
		quota_take(&pool->all);
		if (is_direct)
			quota_take(&pool->direct);
		pool->served = pool->pass;
		pool->pass += pool->stride;
		tally_add(&pool->admitted, now_ms);
	}
}

void pool_follow(
	struct pool *pool, uint32_t taken, uint32_t rated, uint32_t all_left, uint32_t direct_left)
{
	pool->taken = taken;
	bucket_follow(&pool->bucket, rated);
	quota_follow(&pool->all, all_left);
	quota_follow(&pool->direct, direct_left);
}

void pool_follow_admitted(struct pool *pool, uint32_t count, uint64_t now_ms)
{
	for (; pool && count > 0; pool = pool->parent) {
		pool->served = pool->pass + (count - 1) * pool->stride;
		pool->pass += count * pool->stride;
		for (uint32_t i = 0; i < count; i++)
			tally_add(&pool->admitted, now_ms);
	}
}

struct pool_words pool_words(const struct pool *pool)
{
	struct pool_words words = {0};
	for (; pool; pool = pool->parent) {
		const uint64_t full_ms = bucket_full_ms(&pool->bucket);
		words.full_ms = full_ms > words.full_ms ? full_ms : words.full_ms;
		if (words.all == 0 && pool->all.count > 0)
			words.all = quota_word(&pool->all);
		if (words.direct == 0 && pool->direct.count > 0)
			words.direct = quota_word(&pool->direct);
	}
	return words;
}

// Sessions that end within `ms`, counted up to `most` of each line.
static uint64_t ending(const struct pool *pool, uint64_t ms, uint32_t most, uint64_t now_ms)
{
	uint64_t count = 0;
	if (pool->line)
		return pool->line->ending(pool, ms, most, now_ms);
	for (const struct pool *p = pool->first; p; p = p->next)
		count += ending(p, ms, most, now_ms);
	return count;
}

// Slots free now or becoming free within `ms`. Capacity may have been lowered below what is taken.
static uint32_t slots_within(
	const struct pool *pool, uint64_t ms, uint32_t ending_max, uint64_t now_ms)
{
	const uint32_t capacity = pool->limits.capacity;
	if (capacity == 0)
		return UINT32_MAX;
	uint64_t leaving = ending(pool, ms, ending_max, now_ms);
	leaving = leaving < pool->taken ? leaving : pool->taken;
	const uint64_t staying = pool->taken - leaving;
	return capacity > staying ? (uint32_t)(capacity - staying) : 0;
}

uint32_t pool_within(const struct pool *pool, uint64_t ms, uint32_t ending_max, uint64_t now_ms)
{
	const uint32_t people = least(
		bucket_people_within(&pool->bucket, ms), quota_left_within(&pool->all, ms, now_ms));
	return least(slots_within(pool, ms, ending_max, now_ms), people);
}

// Of those of its class who have somebody at the door, its share.
static double share_of(const struct pool *pool)
{
	const double own = 1 / (double)pool->stride;
	double all = own;
	for (const struct pool *p = pool->parent->first; p; p = p->next) {
		if (p != pool && p->priority == pool->priority && p->is_active)
			all += 1 / (double)p->stride;
	}
	return own / all;
}

double pool_outflow(const struct pool *pool, uint32_t session_s, bool alone)
{
	const struct pool_limits *l = &pool->limits;
	double here = l->capacity / (session_s > 0 ? (double)session_s : 1);
	if (l->rate_count > 0)
		here = l->rate_count * 1000.0 / l->rate_period_ms;
	const double in_periods = l->all.count ? l->all.count * 1000.0 / l->all.period_ms : here;
	here = here == 0 || in_periods < here ? in_periods : here;
	if (!pool->parent)
		return here;
	const double all = pool_outflow(pool->parent, session_s, alone);
	const double above = alone ? all : all * share_of(pool);
	return above == 0 || (here > 0 && here < above) ? here : above;
}

double pool_admit_rate(const struct pool *pool, uint64_t now_ms)
{
	while (pool->parent)
		pool = pool->parent;
	return tally_rate(&pool->admitted, now_ms);
}
