// Pool: capacity and rate, and who of those that share them gets the next slot.
//
// Every line has a pool of its own; without a parent that is all there is. Lines share slots by
// having their pools joined to a parent: lanes to their room's, rooms to that of several rooms. A
// pool's own limits hold besides those of the pools above it.
//
//   shop (capacity, rate) ─┬─ derby (capacity) ─┬─ the room's line
//                          │                    └─ derby/members
//                          └─ final
//
// Order among siblings: strictly by class (`priority`, 1 first), and within a class by stride
// scheduling: each has a virtual time, which an admission moves by a stride of STRIDE / weight; the
// smallest is next (C. A. Waldspurger, W. E. Weihl: Stride Scheduling, 1995). Who has nobody at the
// door is passed over, so unused shares flow on at once; one who returns begins at the time of the
// others, and one who falls behind gets back no more than it could have used of the last seconds.
//
// Control thread only.
#pragma once

#include <stdbool.h>
#include <stdint.h>

#include "controlplane/controller/bucket.h"
#include "controlplane/controller/quota.h"
#include "controlplane/controller/tally.h"

#define POOL_WEIGHT_MAX 1000000u

struct pool_limits {
	uint32_t capacity; // sessions at once; 0: no limit
	uint32_t rate_count; // new people per rate_period_ms; 0: no limit
	uint32_t rate_period_ms; // of rate_count; up to a day
	uint32_t burst; // people; bucket depth; at least 1
	struct pool_quota {
		uint32_t count, period_ms; // people in each period; count 0: no limit
	} all, direct; // of all admissions; of those without a ticket
};

struct pool;

// What the pool of a line asks of who steers the line.
struct pool_line {
	uint32_t (*present)(const struct pool *own); // people at the door
	// Slots that become free within `ms`, of which no more than `most` need be looked at.
	uint64_t (*ending)(const struct pool *own, uint64_t ms, uint32_t most, uint64_t now_ms);
	// Whether nobody stands before a newcomer, of tickets drawn before `ms` (UINT64_MAX: all).
	bool (*nobody_waits)(const struct pool *own, uint64_t ms);
};

struct pool {
	struct pool_limits limits;
	struct bucket bucket;
	struct quota all, direct;
	uint32_t taken; // slots
	struct tally admitted;
	struct pool *parent, *first, *next; // below: by priority
	const struct pool_line *line; // of a line's own pool; NULL: slots and people are below

	uint32_t priority; // class
	uint64_t stride, pass, served; // virtual time of the next admission, and of the last one
	bool is_closed; // of a line: nobody can be admitted, whoever is at the door
	bool is_active; // somebody was there at the last look ahead
	uint32_t coming; // of a line: people expected besides the present
	uint32_t wants, ahead; // of the last look ahead: what it could use, and what it was given
	uint64_t looked_ms; // when that was; 0: never
};

// What a line keeps over a restart of the pools that it takes from.
struct pool_words {
	uint64_t full_ms; // when the last of the buckets will be full
	uint64_t all, direct; // quotas: quota_word()
};

// A pool of nobody, in the caller's memory.
void pool_init(struct pool *pool, const struct pool_limits *limits, const struct pool_words *words,
	uint64_t now_ms);

// The same in memory of its own, full. Returns NULL when that is short. Nothing may be below it
// when it is destroyed; accepts NULL.
struct pool *pool_create(const struct pool_limits *limits, uint64_t now_ms);
void pool_destroy(struct pool *pool);

// Go by other limits from now on.
void pool_set_limits(struct pool *pool, const struct pool_limits *limits, uint64_t now_ms);

// Put `pool`, with the slots it has taken, below `parent` (NULL: none), or change its class and
// weight there. New parents have given at least what `words` say, of a line (NULL: nothing).
//   priority  at least 1
//   weight    1 to POOL_WEIGHT_MAX
void pool_join(struct pool *pool, struct pool *parent, uint32_t priority, uint32_t weight,
	const struct pool_words *words);

// Bring it and those above up to `now_ms`. Time never goes back.
void pool_advance(struct pool *pool, uint64_t now_ms);

// A slot is taken, or free again. Taking asks for no leave: what the store knew is entered so.
void pool_take(struct pool *pool);
void pool_give(struct pool *pool);

// Slots free by its own limit; UINT32_MAX: no limit.
static inline uint32_t pool_free_here(const struct pool *pool)
{
	const uint32_t capacity = pool->limits.capacity;
	if (capacity == 0)
		return UINT32_MAX;
	return capacity > pool->taken ? capacity - pool->taken : 0;
}

// What somebody else keeps, who is asked for it (the ledger of a cluster): slots taken, and people
// that its own rate and quotas let through now; UINT32_MAX: no limit.
void pool_follow(
	struct pool *pool, uint32_t taken, uint32_t rated, uint32_t all_left, uint32_t direct_left);

// So many were admitted there: moves virtual times, here and above, and is counted.
void pool_follow_admitted(struct pool *pool, uint32_t count, uint64_t now_ms);

// People that its own rate and quota let through now; UINT32_MAX: no limit.
static inline uint32_t pool_people_here(const struct pool *pool)
{
	const uint32_t people = bucket_people(&pool->bucket), left = quota_left(&pool->all);
	return people < left ? people : left;
}

// Whether somebody could be admitted at this moment, as far as its own limits go.
static inline bool pool_has_room_here(const struct pool *pool)
{
	return !pool->is_closed && pool_free_here(pool) > 0 && pool_people_here(pool) > 0;
}

// Slots it could have now, those above allowing, and people that rates and quotas let through:
// anybody, and newcomers. UINT32_MAX: no limit.
uint32_t pool_free(const struct pool *pool);
uint32_t pool_people(const struct pool *pool);
uint32_t pool_people_direct(const struct pool *pool);

// One is admitted, who found both: charge buckets, quotas and virtual times, here and above.
void pool_charge(struct pool *pool, bool is_direct, uint64_t now_ms);

// What must not be forgotten of it and those above. Of quotas, those of the first that has one.
struct pool_words pool_words(const struct pool *pool);

// Whether an admission of a line finds a reservation, with `before` people of the line before it,
// here and above: a free slot, and under a rate as many more as it serves while they poll once.
//   soon_ms     what becomes free and comes in within this is reserved too
//   ending_max  slots becoming free that are counted
bool pool_reserves(const struct pool *pool, uint32_t before, uint64_t soon_ms, uint32_t ending_max,
	uint64_t now_ms);

// How many of the first of a line hold a reservation; with a parent, counted up to `most`.
uint32_t pool_reserved(const struct pool *pool, uint32_t most);

// People that could be admitted within `ms` from now, beginning now: slots free or becoming free
// (up to `ending_max` of these), and the rate; of this pool alone. UINT32_MAX: no limit. Steps are
// proportional to lines below and slots becoming free.
uint32_t pool_within(const struct pool *pool, uint64_t ms, uint32_t ending_max, uint64_t now_ms);

// Share what can be admitted within `ms` among all that are joined to it, above and below, by the
// order that they would be admitted in: `ahead` of each. Once for each `now_ms`.
void pool_look_ahead(struct pool *pool, uint64_t ms, uint32_t ending_max, uint64_t now_ms);

// Whether nobody waits in the lines that are joined to this one and of equal or higher class, as
// far as they could be admitted to the slots they share.
bool pool_nobody_before(const struct pool *own, uint64_t ms);

// Admissions a second that the limits suggest for it, at best, those above allowing; 0: they do not
// limit.
//   session_s  how long a slot is taken
//   alone      if nobody else came; else by its share
double pool_outflow(const struct pool *pool, uint32_t session_s, bool alone);

// Admissions a second of late, of all that share slots with it.
double pool_admit_rate(const struct pool *pool, uint64_t now_ms);
