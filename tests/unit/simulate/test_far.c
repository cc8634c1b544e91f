// Far: polls in bulk, against a naive twin in which everybody polls by itself.

#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "controlplane/simulate/dice.h"
#include "controlplane/simulate/far.h"

#define PEOPLE 40000u
#define SECONDS 900u
#define ROUND_TRIP_MS 100u
#define CALLED 20u // a second, once the line moves

static struct far_pace pace;
static uint64_t dice;

static uint64_t told_ms(uint64_t ahead, uint64_t wait)
{
	const uint32_t after = pace_poll_after(ahead, wait, (uint32_t)dice_next(&dice));
	return (uint64_t)(after * 1000 * (1 + dice_share(&dice) / FAR_JITTER)) + ROUND_TRIP_MS;
}

// One who polls by itself.
struct twin {
	uint64_t next_ms;
	bool shows;
};

static struct twin twins[PEOPLE];

// Polls of everybody in the second, by the twin.
static uint32_t twin_second(uint32_t second, uint32_t count, uint32_t called, uint64_t wait)
{
	uint32_t polls = 0;
	for (uint32_t rank = called; rank < count; rank++) {
		struct twin *t = &twins[rank];
		while (t->shows && t->next_ms < (second + 1) * 1000ull) {
			polls++;
			t->next_ms += told_ms(rank - called, wait);
		}
	}
	return polls;
}

static void come(struct far *f, uint32_t rank, uint32_t second, uint64_t wait)
{
	const bool shows = dice_share(&dice) < 0.8;
	twins[rank] = (struct twin){
		second * 1000ull + (uint64_t)(dice_share(&dice) * 1000) + told_ms(rank, wait),
		shows};
	far_add(f, shows, pace_poll_after_max(rank, wait));
}

// 40,000 come within 10 s, wait for 5 minutes, then 20 are called a second: in windows of 20 s both
// count the same polls, waves after the rush included, and whoever is called polls as soon.
static void as_the_twin_does(void **state)
{
	(void)state;
	const uint64_t waits[] = {PACE_WAIT_UNKNOWN, (1ull << 32) / CALLED};
	struct far *f = far_create(&pace, PEOPLE);
	uint32_t count = 0, called = 0, showed = 0;
	double far = 0, far_ms = 0, twin = 0, twin_ms = 0;
	dice = 11;
	for (uint32_t second = 0; second < SECONDS; second++) {
		const uint64_t wait = waits[second >= 300];
		for (uint32_t i = 0; second < 10 && i < PEOPLE / 10; i++)
			come(f, count++, second, wait);
		twin += twin_second(second, count, called, wait);
		far += far_second(f, called, wait).polls;
		if (second % 20 == 19) {
			assert_float_equal(far / twin, 1, second < 40 ? 0.1 : 0.03);
			far = twin = 0;
		}
		for (uint32_t i = 0; second >= 300 && i < CALLED; i++, called++) {
			const uint32_t ms = far_call(f, twins[called].shows, 0, &dice);
			if (!twins[called].shows)
				continue;
			far_ms += ms;
			twin_ms += (double)(twins[called].next_ms - (second + 1) * 1000ull);
			showed++;
		}
	}
	print_message("seed 11: next poll of the called after %.0f ms, by the twin %.0f ms\n",
		far_ms / showed, twin_ms / showed);
	assert_float_equal(far_ms / showed, twin_ms / showed, 150);
	free(f);
}

// The slower the line, the fewer people make a cohort near its head; at the limit they stay larger.
static void cohorts_are_bounded(void **state)
{
	(void)state;
	struct far *f = far_create(&pace, 2000000);
	uint64_t dice_of_calls = 5;
	for (uint32_t i = 0; i < 2000000; i++)
		far_add(f, true, 60);
	assert_true(f->end - f->begin <= FAR_NEWCOMERS);
	double polls = 0;
	for (uint32_t second = 0; second < 120; second++)
		polls += far_second(f, 0, 1ull << 40).polls; // 256 s a person
	assert_true(f->end - f->begin <= FAR_COHORTS_MAX);
	assert_float_equal(polls, 2000000 * 120 / 55.2, 2000000 * 0.35);
	for (uint32_t i = 0; i < 100000; i++)
		far_call(f, true, 0, &dice_of_calls);
	assert_int_equal(f->cohorts[f->order[f->begin]].first, 100000);
	free(f);
}

// Halving stops when there are no more cohorts, and nobody is lost.
static void no_cohort_is_left(void **state)
{
	(void)state;
	struct far *f = far_create(&pace, 100);
	f->size_max = 1;
	for (uint32_t i = 0; i < FAR_COHORTS_MAX; i++)
		far_add(f, true, 10);
	assert_int_equal(f->free_count, 0);
	far_add(f, true, 10); // one beyond: joins the last
	assert_int_equal(f->end - f->begin, FAR_COHORTS_MAX);
	assert_int_equal(f->cohorts[f->order[f->end - 1]].count, 2);
	far_second(f, 0, 1ull << 40);
	assert_int_equal(f->end - f->begin, FAR_COHORTS_MAX);
	free(f);
}

static void the_resting_get_places(void **state)
{
	(void)state;
	struct far *f = far_create(&pace, 5120);
	double before = 0, after = 0;
	for (uint32_t i = 0; i < 5120; i++)
		far_add(f, true, FAR_FIRST);
	for (uint32_t second = 0; second < 200; second++)
		before += far_second(f, 0, PACE_WAIT_UNKNOWN).polls;
	assert_int_equal(f->end - f->begin, 1);
	far_place(f, true);
	assert_true(f->end - f->begin > 1);
	for (uint32_t second = 0; second < 60; second++)
		after += far_second(f, 0, 1ull << 32).polls; // a second a person: told by place
	assert_true(after > before / 200 * 60);
	far_place(f = (free(f), far_create(&pace, 10)), true); // of nobody
	assert_int_equal(f->end, f->begin);
	far_add(f, true, FAR_REST);
	far_place(f, false);
	assert_int_equal(f->end, f->begin);
	free(f);
}

static void connections_are_counted(void **state)
{
	(void)state;
	struct far_pace brief;
	far_pace_init(&brief, ROUND_TRIP_MS, 10000);
	assert_float_equal(pace.fresh[PACE_MAX_S], 0, 1e-6); // 75 s outlast every interval
	assert_float_equal(pace.open[PACE_MAX_S], 1, 1e-6);
	assert_float_equal(brief.fresh[PACE_MAX_S], 1, 1e-6);
	assert_float_equal(brief.open[PACE_MAX_S], 10 / 55.2, 0.01);
	assert_float_equal(brief.fresh[5], 0, 1e-6);
}

static int start(void **state)
{
	(void)state;
	far_pace_init(&pace, ROUND_TRIP_MS, 75000);
	return 0;
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(as_the_twin_does),
		cmocka_unit_test(cohorts_are_bounded),
		cmocka_unit_test(no_cohort_is_left),
		cmocka_unit_test(the_resting_get_places),
		cmocka_unit_test(connections_are_counted),
	};
	return cmocka_run_group_tests(tests, start, NULL);
}
