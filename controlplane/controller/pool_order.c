// Pool: who is next, exactly, without trying out admissions one by one.
//
// The k-th next admission of a sibling has the virtual time pass + k x stride. So how many of the
// others come before it is one division for each of them, and their sum is its place in the parent;
// there the same question is asked again, up to the root. Higher classes come first with all whom
// they have or expect: strict is strict, also while somebody called is on the way.

#include "controlplane/controller/pool.h"

#include "dataplane/gate/pace.h"

#define CREDIT 64u // admissions that one who fell behind gets back, besides its last share

static uint64_t lesser(uint64_t a, uint64_t b)
{
	return a < b ? a : b;
}

// People who hold a reservation. What the rate brings while they poll waits in the bucket, as far
// as that is deep enough.
static uint64_t reserved_here(const struct pool *pool)
{
	const struct bucket *b = &pool->bucket;
	const uint32_t left = quota_left(&pool->all);
	const uint32_t free = left < pool_free_here(pool) ? left : pool_free_here(pool);
	if (b->count == 0)
		return free;
	const uint64_t a_poll = b->count * PACE_MIN_S * 1000 / b->period_ms;
	const uint64_t beyond = a_poll > b->burst ? a_poll - b->burst : 0;
	return lesser(bucket_people(b) + 2 + beyond, free);
}

// People who could be admitted at this moment, as far as limits below the parent go.
//   coming  with those who are expected
static uint64_t at_door(const struct pool *pool, bool coming)
{
	uint64_t people = 0;
	if (!pool_has_room_here(pool))
		return 0;
	if (pool->line)
		people = (uint64_t)pool->line->present(pool) + (coming ? pool->coming : 0);
	for (const struct pool *p = pool->first; p; p = p->next)
		people += at_door(p, coming);
	return lesser(people, lesser(pool_free_here(pool), pool_people_here(pool)));
}

// Its admissions up to the virtual time `pass`.
static uint64_t turns_until(const struct pool *pool, uint64_t pass)
{
	return pass < pool->pass ? 0 : (pass - pool->pass) / pool->stride + 1;
}

// How many come before it in the parent, if `before` of its own do.
static uint64_t before_in_parent(const struct pool *pool, uint64_t before)
{
	const uint64_t pass = pool->pass + before * pool->stride;
	uint64_t others = 0;
	bool is_behind = true; // those of its class before it in the list come first at a tie
	for (const struct pool *p = pool->parent->first; p && p->priority <= pool->priority;
		p = p->next) {
		if (p == pool)
			is_behind = false;
		else if (p->priority < pool->priority)
			others += at_door(p, true);
		else if (is_behind || pass > 0)
			others += lesser(at_door(p, false), turns_until(p, pass - !is_behind));
	}
	return before + others;
}

bool pool_reserves(const struct pool *pool, uint32_t before, uint64_t soon_ms, uint32_t ending_max,
	uint64_t now_ms)
{
	for (uint64_t place = before; pool; pool = pool->parent) {
		const bool is_soon =
			soon_ms > 0 && place < pool_within(pool, soon_ms, ending_max, now_ms);
		if (place >= reserved_here(pool) && !is_soon)
			return false;
		if (pool->parent)
			place = before_in_parent(pool, place);
	}
	return true;
}

uint32_t pool_reserved(const struct pool *pool, uint32_t most)
{
	if (!pool->parent)
		return (uint32_t)reserved_here(pool);
	uint32_t low = 0, high = most;
	while (low < high) {
		const uint32_t middle = low + (high - low) / 2;
		if (pool_reserves(pool, middle, 0, 0, 0))
			low = middle + 1;
		else
			high = middle;
	}
	return low;
}

// Whether nobody waits (or, of tickets drawn before `ms`, waited) in the lines of this pool.
static bool nobody_in(const struct pool *pool, uint64_t ms)
{
	if (!pool_has_room_here(pool))
		return true; // what they cannot have is not kept for them
	if (pool->line)
		return pool->line->nobody_waits(pool, ms);
	for (const struct pool *p = pool->first; p; p = p->next) {
		if (!nobody_in(p, ms))
			return false;
	}
	return true;
}

bool pool_nobody_before(const struct pool *own, uint64_t ms)
{
	for (const struct pool *pool = own; pool->parent; pool = pool->parent) {
		for (const struct pool *p = pool->parent->first; p && p->priority <= pool->priority;
			p = p->next) {
			if (p != pool && !nobody_in(p, ms))
				return false;
		}
	}
	return true;
}

// --- looking ahead

// How many admissions each could use.
static uint64_t ask(struct pool *pool, uint64_t ms, uint32_t ending_max, uint64_t now_ms)
{
	uint64_t people = 0;
	if (pool->line && !pool->is_closed)
		people = (uint64_t)pool->line->present(pool) + pool->coming;
	for (struct pool *p = pool->first; p; p = p->next)
		people += ask(p, ms, ending_max, now_ms);
	pool->wants = (uint32_t)lesser(people, pool_within(pool, ms, ending_max, now_ms));
	return pool->wants;
}

static const struct pool *end_of_class(const struct pool *first)
{
	const struct pool *end = first;
	while (end && end->priority == first->priority)
		end = end->next;
	return end;
}

// Who returns begins where the others are; who fell behind gets so much back and no more.
static void keep_time(struct pool *first, const struct pool *end)
{
	uint64_t now = 0;
	for (const struct pool *p = first; p != end; p = p->next)
		now = p->served > now ? p->served : now;
	for (struct pool *p = first; p != end; p = p->next) {
		const uint64_t credit =
			p->is_active ? (CREDIT + (uint64_t)p->ahead) * p->stride : 0;
		p->is_active = p->wants > 0;
		if (p->is_active && p->pass + credit < now)
			p->pass = now - credit;
	}
}

// What the class has been given by the virtual time `pass`, all together.
static uint64_t given_until(const struct pool *first, const struct pool *end, uint64_t pass)
{
	uint64_t given = 0;
	for (const struct pool *p = first; p != end; p = p->next)
		given += lesser(p->wants, turns_until(p, pass));
	return given;
}

// Share `left` among a class that wants more: up to the last virtual time at which all that come up
// find a share, and what remains to the first of the next.
static void share_short(struct pool *first, const struct pool *end, uint64_t left)
{
	uint64_t low = 0, high = 1; // more than `left` come up until `high`
	while (given_until(first, end, high) <= left)
		high *= 2;
	while (low < high) {
		const uint64_t middle = low + (high - low) / 2;
		if (given_until(first, end, middle) <= left)
			low = middle + 1;
		else
			high = middle;
	}
	for (struct pool *p = first; p != end; p = p->next) {
		p->ahead = low == 0 ? 0 : (uint32_t)lesser(p->wants, turns_until(p, low - 1));
		left -= p->ahead;
	}
	for (struct pool *p = first; p != end && left > 0; p = p->next) {
		if (p->ahead < lesser(p->wants, turns_until(p, low))) {
			p->ahead++;
			left--;
		}
	}
}

static void share_below(struct pool *pool)
{
	uint64_t left = pool->ahead;
	const struct pool *end;
	for (struct pool *first = pool->first; first; first = (struct pool *)(uintptr_t)end) {
		uint64_t wants = 0;
		end = end_of_class(first);
		keep_time(first, end);
		for (struct pool *p = first; p != end; p = p->next) {
			p->ahead = p->wants;
			wants += p->wants;
		}
		if (wants > left)
			share_short(first, end, left);
		left -= lesser(wants, left);
	}
	for (struct pool *p = pool->first; p; p = p->next)
		share_below(p);
}

void pool_look_ahead(struct pool *pool, uint64_t ms, uint32_t ending_max, uint64_t now_ms)
{
	while (pool->parent)
		pool = pool->parent;
	if (pool->looked_ms == now_ms)
		return;
	pool->looked_ms = now_ms;
	ask(pool, ms, ending_max, now_ms);
	pool->ahead = pool->wants;
	share_below(pool);
}
