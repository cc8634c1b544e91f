// Pool: limits, the tree, and what is free. Who is next: pool_order.c.

#include "controlplane/controller/pool.h"

#include <assert.h>
#include <stdlib.h>

#include "controlplane/controller/sessions.h"

#define STRIDE (1ull << 30) // of weight 1: 2^34 admissions before a virtual time ends

static uint32_t least(uint32_t a, uint32_t b)
{
	return a < b ? a : b;
}

void pool_init(
	struct pool *pool, const struct pool_limits *limits, uint64_t full_ms, uint64_t now_ms)
{
	assert(limits->burst > 0);
	assert(limits->rate_count == 0 || limits->rate_period_ms > 0);
	*pool = (struct pool){.limits = *limits, .priority = 1, .stride = STRIDE};
	pool->bucket = bucket_make(
		limits->rate_count, limits->rate_period_ms, limits->burst, full_ms, now_ms);
	tally_init(&pool->admitted, now_ms);
}

struct pool *pool_create(const struct pool_limits *limits, uint64_t now_ms)
{
	struct pool *pool = malloc(sizeof(*pool));
	if (pool)
		pool_init(pool, limits, 0, now_ms);
	return pool;
}

void pool_destroy(struct pool *pool)
{
	if (!pool)
		return;
	assert(!pool->first);
	pool_join(pool, NULL, 1, 1, 0);
	free(pool);
}

void pool_set_limits(struct pool *pool, const struct pool_limits *limits, uint64_t now_ms)
{
	assert(limits->burst > 0);
	pool_advance(pool, now_ms);
	pool->limits = *limits;
	bucket_set(&pool->bucket, limits->rate_count, limits->rate_period_ms, limits->burst);
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

static void move(struct pool *pool, struct pool *parent, uint64_t full_ms)
{
	for (struct pool *p = pool->parent; p; p = p->parent)
		p->taken -= pool->taken;
	for (struct pool *p = parent; p; p = p->parent) {
		p->taken += pool->taken;
		bucket_delay(&p->bucket, full_ms);
	}
	pool->parent = parent;
}

void pool_join(struct pool *pool, struct pool *parent, uint32_t priority, uint32_t weight,
	uint64_t full_ms)
{
	assert(priority > 0 && weight > 0 && weight <= POOL_WEIGHT_MAX);
	pool->stride = STRIDE / weight;
	if (pool->parent == parent && pool->priority == priority)
		return;
	if (pool->parent)
		unlink_from(pool->parent, pool);
	if (pool->parent != parent)
		move(pool, parent, full_ms);
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
		if (now_ms > pool->bucket.now_ms)
			bucket_refill(&pool->bucket, now_ms);
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
		people = least(people, bucket_people(&pool->bucket));
	return people;
}

void pool_charge(struct pool *pool, uint64_t now_ms)
{
	for (; pool; pool = pool->parent) {
		const bool is_taken = bucket_take(&pool->bucket);
		assert(is_taken);
		pool->served = pool->pass;
		pool->pass += pool->stride;
		tally_add(&pool->admitted, now_ms);
	}
}

uint64_t pool_full_ms(const struct pool *pool)
{
	uint64_t full_ms = 0;
	for (; pool; pool = pool->parent) {
		const uint64_t here = bucket_full_ms(&pool->bucket);
		full_ms = here > full_ms ? here : full_ms;
	}
	return full_ms;
}

// Sessions that end within `ms`, counted up to `most` of each line.
static uint64_t ending(const struct pool *pool, uint64_t ms, uint32_t most, uint64_t now_ms)
{
	uint64_t count = 0;
	if (pool->sessions) {
		const double early = tally_rate(pool->freed, now_ms) * (double)ms / 1000;
		return sessions_ending(pool->sessions, now_ms + ms, most) + (uint64_t)early;
	}
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
	return least(slots_within(pool, ms, ending_max, now_ms),
		bucket_people_within(&pool->bucket, ms));
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
