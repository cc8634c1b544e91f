// Pools: against a naive twin that admits one after the other; and the rules of the tree.

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdlib.h>

#include <cmocka.h>

#include "controlplane/controller/pool.h"
#include "tests/unit/controller/random.h"

#define LINES_MAX 6u
#define PEOPLE_MAX 24u
#define NOW_MS 1700000000000ull
#define NOBODY UINT32_MAX

static const struct pool_limits no_limits = {.burst = 1};

// Lines with people at the door, without controllers.
struct row {
	uint32_t count;
	struct line {
		struct pool own;
		uint32_t people;
	} lines[LINES_MAX];
};

static uint32_t people_of(const struct pool *own)
{
	return ((const struct line *)(const void *)own)->people;
}

static uint64_t nothing_ends(const struct pool *own, uint64_t ms, uint32_t most, uint64_t now_ms)
{
	(void)own;
	(void)ms;
	(void)most;
	(void)now_ms;
	return 0;
}

static bool nobody_waits(const struct pool *own, uint64_t ms)
{
	(void)ms;
	return people_of(own) == 0;
}

static const struct pool_line pool_line = {people_of, nothing_ends, nobody_waits};

static void line_open(struct line *line, const struct pool_limits *limits)
{
	pool_init(&line->own, limits, &(struct pool_words){0}, NOW_MS);
	line->own.line = &pool_line;
	line->people = 0;
}

static void line_close(struct line *line)
{
	pool_join(&line->own, NULL, 1, 1, NULL);
}

static void set_people(struct line *line, uint32_t people)
{
	line->people = people;
}

// One is admitted through a line.
static void admit(struct line *line)
{
	assert_true(line->people > 0);
	set_people(line, line->people - 1);
	pool_take(&line->own);
	pool_charge(&line->own, false, NOW_MS);
}

// --- the twin: siblings of one parent, tried out one by one

struct twin {
	uint32_t priority, people;
	uint64_t pass, stride;
};

static uint32_t twin_next(const struct twin *twins, uint32_t count)
{
	uint32_t best = NOBODY;
	for (uint32_t i = 0; i < count; i++) {
		if (twins[i].people == 0)
			continue;
		if (best == NOBODY || twins[i].priority < twins[best].priority ||
			(twins[i].priority == twins[best].priority &&
				twins[i].pass < twins[best].pass))
			best = i;
	}
	return best;
}

// How many of each line hold one of `slots` slots.
static void twin_reserve(const struct row *row, uint32_t slots, uint32_t reserved[LINES_MAX])
{
	struct twin twins[LINES_MAX];
	for (uint32_t i = 0; i < row->count; i++) {
		const struct pool *own = &row->lines[i].own;
		twins[i] =
			(struct twin){own->priority, row->lines[i].people, own->pass, own->stride};
		reserved[i] = 0;
	}
	for (uint32_t slot = 0; slot < slots; slot++) {
		const uint32_t i = twin_next(twins, row->count);
		if (i == NOBODY)
			return;
		twins[i].people--;
		twins[i].pass += twins[i].stride;
		reserved[i]++;
	}
}

static void compare(uint64_t seed, const struct row *row, const struct pool *parent)
{
	uint32_t expected[LINES_MAX];
	twin_reserve(row, pool_free_here(parent), expected);
	for (uint32_t i = 0; i < row->count; i++) {
		const struct line *line = &row->lines[i];
		const uint32_t reserved = pool_reserved(&line->own, line->people);
		CHECK_SEED(seed, reserved == expected[i]);
		for (uint32_t before = 0; before < line->people; before++)
			CHECK_SEED(seed, pool_reserves(&line->own, before, 0, 0, NOW_MS) ==
						 (before < reserved));
	}
}

static void agrees_with_the_twin(void **state)
{
	(void)state;
	for (uint64_t seed = 1; seed <= 60; seed++) {
		uint64_t random = seed;
		struct pool *parent = pool_create(
			&(struct pool_limits){
				.capacity = 1 + (uint32_t)random_below(&random, 40), .burst = 1},
			NOW_MS);
		static struct row row;
		row.count = 2 + (uint32_t)random_below(&random, LINES_MAX - 1);
		for (uint32_t i = 0, priority = 1; i < row.count; i++) {
			priority += (uint32_t)random_below(&random, 2); // in the parent's order
			line_open(&row.lines[i], &no_limits);
			pool_join(&row.lines[i].own, parent, priority,
				1 + (uint32_t)random_below(&random, 9), NULL);
		}
		for (int step = 0; step < 60; step++) {
			struct line *line = &row.lines[random_below(&random, row.count)];
			const uint64_t what = random_below(&random, 8);
			if (what == 0)
				set_people(line, (uint32_t)random_below(&random, PEOPLE_MAX));
			else if (what == 1 && line->own.taken > 0)
				pool_give(&line->own);
			else if (what == 2)
				pool_look_ahead(&line->own, 5000, 64, NOW_MS + (uint64_t)step);
			else if (line->people > 0 && pool_free_here(parent) > 0 &&
				 pool_reserves(&line->own, 0, 0, 0, NOW_MS))
				admit(line);
			compare(seed, &row, parent);
		}
		for (uint32_t i = 0; i < row.count; i++)
			line_close(&row.lines[i]);
		pool_destroy(parent);
	}
}

// What is called ahead is what would be reserved, were it free.
static void looks_ahead_as_it_admits(void **state)
{
	(void)state;
	for (uint64_t seed = 1; seed <= 60; seed++) {
		uint64_t random = seed;
		const uint32_t slots = (uint32_t)random_below(&random, 60);
		struct pool *parent = pool_create(
			&(struct pool_limits){.capacity = slots + 1, .burst = 1}, NOW_MS);
		static struct row row;
		uint32_t expected[LINES_MAX];
		row.count = 2 + (uint32_t)random_below(&random, LINES_MAX - 1);
		for (uint32_t i = 0; i < row.count; i++) {
			line_open(&row.lines[i], &no_limits);
			pool_join(&row.lines[i].own, parent, 1 + i / 3,
				1 + (uint32_t)random_below(&random, 9), NULL);
			set_people(&row.lines[i], (uint32_t)random_below(&random, PEOPLE_MAX));
		}
		pool_take(&row.lines[0].own);
		pool_look_ahead(&row.lines[0].own, 5000, 64, NOW_MS);
		twin_reserve(&row, slots, expected);
		for (uint32_t i = 0; i < row.count; i++)
			CHECK_SEED(seed, row.lines[i].own.ahead == expected[i]);
		for (uint32_t i = 0; i < row.count; i++)
			line_close(&row.lines[i]);
		pool_destroy(parent);
	}
}

// --- stories

// Two lines below one pool.
struct scene {
	struct pool *pool;
	struct line a, b;
};

static void scene_open(struct scene *s, struct pool_limits limits)
{
	s->pool = pool_create(&limits, NOW_MS);
	line_open(&s->a, &no_limits);
	line_open(&s->b, &no_limits);
	pool_join(&s->a.own, s->pool, 1, 3, NULL);
	pool_join(&s->b.own, s->pool, 1, 1, NULL);
}

static void scene_close(struct scene *s)
{
	line_close(&s->a);
	line_close(&s->b);
	pool_destroy(s->pool);
}

static void slots_are_those_of_the_pool(void **state)
{
	(void)state;
	struct scene s;
	scene_open(&s, (struct pool_limits){.capacity = 3, .burst = 1});
	pool_take(&s.a.own);
	pool_take(&s.b.own);
	assert_int_equal(pool_free(&s.a.own), 1);
	pool_take(&s.b.own);
	assert_int_equal(pool_free(&s.a.own), 0);
	pool_give(&s.b.own);
	assert_int_equal(pool_free(&s.b.own), 1);
	assert_int_equal(s.pool->taken, 2);
	scene_close(&s);
}

static void limits_of_its_own_hold_too(void **state)
{
	(void)state;
	struct scene s;
	scene_open(&s, (struct pool_limits){.capacity = 10, .burst = 1});
	pool_set_limits(&s.a.own, &(struct pool_limits){.capacity = 2, .burst = 1}, NOW_MS);
	assert_int_equal(pool_free(&s.a.own), 2);
	set_people(&s.a, 9);
	set_people(&s.b, 9);
	// Of ten slots a can have two, and b has the rest.
	assert_int_equal(pool_reserved(&s.a.own, 9), 2);
	assert_int_equal(pool_reserved(&s.b.own, 9), 8);
	scene_close(&s);
}

static void who_moves_takes_its_slots_along(void **state)
{
	(void)state;
	struct scene s;
	struct pool *other = pool_create(&(struct pool_limits){.capacity = 5, .burst = 1}, NOW_MS);
	scene_open(&s, (struct pool_limits){.capacity = 3, .burst = 1});
	pool_take(&s.a.own);
	pool_take(&s.a.own);
	pool_take(&s.b.own);
	pool_join(&s.a.own, other, 1, 1, NULL);
	assert_int_equal(s.pool->taken, 1);
	assert_int_equal(other->taken, 2);
	pool_join(&s.a.own, NULL, 1, 1, NULL);
	assert_int_equal(other->taken, 0);
	assert_int_equal(s.a.own.taken, 2);
	pool_destroy(other);
	scene_close(&s);
}

// Whoever joins brings the time at which the rate's bucket would be full, from before a restart.
static void a_bucket_does_not_begin_full_again(void **state)
{
	(void)state;
	struct line line;
	struct pool *pool = pool_create(
		&(struct pool_limits){.rate_count = 1, .rate_period_ms = 1000, .burst = 10},
		NOW_MS);
	line_open(&line, &no_limits);
	assert_int_equal(bucket_people(&pool->bucket), 10);
	pool_join(&line.own, pool, 1, 1, &(struct pool_words){.full_ms = NOW_MS + 7000});
	assert_int_equal(pool_people(&line.own), 3);
	assert_int_equal(pool_words(&line.own).full_ms, NOW_MS + 7000);
	// It is there already.
	pool_join(&line.own, pool, 1, 1, &(struct pool_words){.full_ms = NOW_MS + 9000});
	assert_int_equal(pool_people(&line.own), 3);
	line_close(&line);
	pool_destroy(pool);
}

static void a_higher_class_is_waited_for(void **state)
{
	(void)state;
	struct scene s;
	scene_open(&s, (struct pool_limits){.capacity = 3, .burst = 1});
	pool_join(&s.b.own, s.pool, 2, 1, NULL);
	set_people(&s.b, 5);
	assert_int_equal(pool_reserved(&s.b.own, 5), 3);
	s.a.own.coming = 2; // called, and on their way
	assert_int_equal(pool_reserved(&s.b.own, 5), 1);
	s.a.own.is_closed = true; // paused
	assert_int_equal(pool_reserved(&s.b.own, 5), 3);
	scene_close(&s);
}

static void one_who_returns_begins_with_the_others(void **state)
{
	(void)state;
	struct scene s;
	scene_open(&s, (struct pool_limits){.burst = 1});
	for (int i = 0; i < 1000; i++) { // a is away, b has everything
		set_people(&s.b, 2);
		pool_look_ahead(&s.b.own, 5000, 64, NOW_MS + (uint64_t)i);
		admit(&s.b);
		pool_give(&s.b.own);
	}
	set_people(&s.a, PEOPLE_MAX);
	pool_look_ahead(&s.b.own, 5000, 64, NOW_MS + 2000);
	pool_set_limits(s.pool, &(struct pool_limits){.capacity = 8, .burst = 1}, NOW_MS);
	set_people(&s.b, PEOPLE_MAX);
	const uint32_t a = pool_reserved(&s.a.own, PEOPLE_MAX);
	assert_in_range(a, 6, 7); // of 8, with weight 3: not all of them
	assert_int_equal(pool_reserved(&s.b.own, PEOPLE_MAX), 8 - a);
	scene_close(&s);
}

// Rooms below a pool, lanes below a room: 1/2 for b, of the other half 3/4 and 1/4 for the lanes.
static void shares_hold_on_two_levels(void **state)
{
	(void)state;
	struct scene s;
	struct pool *top = pool_create(&(struct pool_limits){.capacity = 16, .burst = 1}, NOW_MS);
	struct line other;
	scene_open(&s, (struct pool_limits){.burst = 1});
	line_open(&other, &no_limits);
	pool_join(s.pool, top, 1, 1, NULL);
	pool_join(&other.own, top, 1, 1, NULL);
	set_people(&s.a, 20);
	set_people(&s.b, 20);
	set_people(&other, 20);
	assert_int_equal(pool_reserved(&s.a.own, 20), 6);
	assert_int_equal(pool_reserved(&s.b.own, 20), 2);
	assert_int_equal(pool_reserved(&other.own, 20), 8);
	pool_look_ahead(&s.a.own, 5000, 64, NOW_MS + 1);
	assert_int_equal(s.a.own.ahead, 6);
	assert_int_equal(s.b.own.ahead, 2);
	assert_int_equal(other.own.ahead, 8);
	assert_true(pool_outflow(&s.a.own, 16, true) == 1.0);
	assert_float_equal(pool_outflow(&s.a.own, 16, false), 0.375, 1e-6);
	line_close(&other);
	pool_join(s.pool, NULL, 1, 1, NULL);
	scene_close(&s);
	pool_destroy(top);
}

// A pool that somebody else keeps: limits as they say, virtual times by who was admitted there.
static void follows_who_keeps_it(void **state)
{
	(void)state;
	const struct pool_limits limits = {.capacity = 10,
		.rate_count = 10,
		.rate_period_ms = 1000,
		.burst = 8,
		.all = {20, 60000},
		.direct = {5, 60000}};
	struct pool *parent = pool_create(&limits, NOW_MS);
	struct row row = {.count = 1};
	line_open(&row.lines[0], &no_limits);
	struct pool *own = &row.lines[0].own;
	pool_join(own, parent, 1, 2, NULL);
	pool_follow(parent, 7, 4, 2, 1);
	assert_int_equal(pool_free(own), 3);
	assert_int_equal(pool_people(own), 2);
	assert_int_equal(pool_people_direct(own), 1);
	pool_follow(parent, 12, 4, 9, 9); // more than there are slots, and a quota of five
	assert_int_equal(pool_free(own), 0);
	assert_int_equal(pool_people(own), 4);
	assert_int_equal(pool_people_direct(own), 4);
	const struct pool before = *own;
	pool_follow_admitted(own, 3, NOW_MS);
	assert_int_equal(own->pass, before.pass + 3 * before.stride);
	assert_int_equal(own->served, before.pass + 2 * before.stride);
	pool_follow_admitted(own, 0, NOW_MS);
	assert_int_equal(own->served, before.pass + 2 * before.stride);
	assert_true(pool_admit_rate(own, NOW_MS + 1000) == 3);
	line_close(&row.lines[0]);
	pool_destroy(parent);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(agrees_with_the_twin),
		cmocka_unit_test(looks_ahead_as_it_admits),
		cmocka_unit_test(slots_are_those_of_the_pool),
		cmocka_unit_test(limits_of_its_own_hold_too),
		cmocka_unit_test(who_moves_takes_its_slots_along),
		cmocka_unit_test(a_bucket_does_not_begin_full_again),
		cmocka_unit_test(a_higher_class_is_waited_for),
		cmocka_unit_test(one_who_returns_begins_with_the_others),
		cmocka_unit_test(shares_hold_on_two_levels),
		cmocka_unit_test(follows_who_keeps_it),
	};
	return cmocka_run_group_tests_name("pool", tests, NULL, NULL);
}
