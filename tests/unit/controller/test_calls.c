// Calls: turns end no earlier than promised, however many there are; the yield follows the crowd.

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdlib.h>

#include <cmocka.h>

#include "controlplane/controller/calls.h"
#include "tests/unit/controller/random.h"

// Against the list of all calls ever made: a key is passed only when all calls up to it are over.
static void no_turn_ends_early(void **state)
{
	(void)state;
	enum { MADE = 6000 };
	static uint64_t ends[MADE + 1];
	for (uint64_t seed = 1; seed <= 5; seed++) {
		uint64_t random = seed, now = 1000, passed = 0;
		struct calls *c = malloc(sizeof(*c));
		calls_init(c, now);
		for (uint64_t key = 1; key <= MADE; key++) {
			const uint32_t heard = (uint32_t)random_below(&random, 60000);
			const uint32_t claim = 3600000; // long: the queue is full again and again
			calls_ripen(c, now);
			calls_add(c, key, 1, heard, claim, now);
			ends[key] = now + heard + claim;
			now += random_below(&random, 3000);
			const uint64_t pass = calls_pass(c, now);
			passed = pass > passed ? pass : passed;
			for (uint64_t k = 1; k <= passed; k++)
				CHECK_SEED(seed, ends[k] <= now);
		}
		CHECK_SEED(seed, passed > 0);
		CHECK_SEED(seed, calls_pass(c, now + 3660000) == MADE);
		free(c);
	}
}

static void joined_calls_end_little_later(void **state)
{
	(void)state;
	struct calls *c = malloc(sizeof(*c));
	uint64_t now = 0;
	calls_init(c, now);
	for (uint64_t key = 1; key <= 20000; key++, now += 1000) {
		calls_ripen(c, now);
		calls_add(c, key, 1, 1000, 7200000, now);
		calls_pass(c, now);
	}
	// What is over by now, but for the coarseness of the old end: a tenth of the window.
	const uint64_t oldest = c->list[c->first].key_end;
	assert_true(oldest + 7200 + 720 >= 20000);
	free(c);
}

// `come` of ten called come within a second, for `seconds`, at `a_second` calls.
static void let_come(
	struct calls *c, uint64_t *now, uint64_t *key, int come, int seconds, int a_second)
{
	for (int s = 0; s < seconds; s++) {
		const uint64_t first = *key;
		*key += (uint64_t)a_second;
		calls_add(c, *key, (uint64_t)a_second, 1000, 120000, *now);
		for (int i = 0; i < a_second; i++) {
			if (i % 10 < come)
				calls_came(c, first + (uint64_t)i);
		}
		*now += 1000;
		calls_ripen(c, *now);
	}
}

static void the_yield_follows_within_seconds(void **state)
{
	(void)state;
	struct calls c;
	uint64_t now = 5000, key = 1;
	calls_init(&c, now);
	assert_true(calls_yield(&c) == 1);
	let_come(&c, &now, &key, 10, 20, 100);
	assert_true(calls_yield(&c) > 0.99);
	let_come(&c, &now, &key, 2, 15, 500);
	assert_true(calls_yield(&c) < 0.25);
	let_come(&c, &now, &key, 0, 60, 500);
	assert_true(calls_yield(&c) == CALLS_YIELD_MIN);
	let_come(&c, &now, &key, 10, 20, 500);
	assert_true(calls_yield(&c) > 0.9);
}

static void a_trickle_does_not_make_it_jump(void **state)
{
	(void)state;
	struct calls c;
	uint64_t now = 5000, key = 1;
	calls_init(&c, now);
	let_come(&c, &now, &key, 5, 60, 10);
	const double yield = calls_yield(&c);
	let_come(&c, &now, &key, 0, 1, 1); // a single one does not come
	assert_true(calls_yield(&c) > yield * 0.9);
}

static void who_comes_late_counts(void **state)
{
	(void)state;
	struct calls c;
	uint64_t now = 5000, key = 1;
	calls_init(&c, now);
	let_come(&c, &now, &key, 1, 60, 100);
	const double yield = calls_yield(&c);
	for (uint64_t late = key - 500; late < key; late++)
		calls_came(&c, late);
	assert_true(calls_yield(&c) > 2 * yield);
	calls_came(&c, key + 1000); // was never called: nothing
	for (int i = 0; i < 10000; i++)
		calls_came(&c, key - 400);
	assert_true(calls_yield(&c) <= 1);
}

static void expects_those_who_may_yet_come(void **state)
{
	(void)state;
	struct calls c;
	calls_init(&c, 0);
	calls_add(&c, 100, 50, 4000, 1000, 0);
	assert_true(calls_expected(&c) == 50);
	calls_came(&c, 7);
	assert_true(calls_expected(&c) == 49);
	calls_settled(&c, 8);
	calls_settled(&c, 100); // was never called: nothing
	assert_true(calls_expected(&c) == 48);
	calls_ripen(&c, 4000 + CALLS_SPAN_MS - 1);
	assert_true(calls_expected(&c) == 48);
	calls_ripen(&c, 4000 + CALLS_SPAN_MS);
	assert_true(calls_expected(&c) == 0);
	calls_add(&c, 200, 50, 60000, 1000, 10000); // who may take a minute is expected for 10 s
	calls_ripen(&c, 10000 + CALLS_EXPECT_MS + CALLS_SPAN_MS);
	assert_true(calls_expected(&c) == 0);
}

static void all_turns_begin_anew(void **state)
{
	(void)state;
	struct calls c;
	calls_init(&c, 0);
	calls_renew(&c, 60000, 5000, 0); // of nobody
	calls_add(&c, 100, 1, 0, 5000, 0);
	calls_add(&c, 200, 1, 0, 5000, 2000);
	calls_renew(&c, 60000, 5000, 4000);
	assert_int_equal(calls_pass(&c, 4000 + 64999), 0);
	assert_int_equal(calls_pass(&c, 4000 + 65000), 200);
	assert_int_equal(calls_pass(&c, 999999), 0);
}

// Another goes on from what this one says: who is expected, how many came, and what the yield is.
static void another_resumes(void **state)
{
	(void)state;
	struct calls *c = malloc(sizeof(*c)), *other = malloc(sizeof(*other));
	calls_init(c, 0);
	calls_add(c, 100, 100, 1000, 30000, 0);
	for (uint64_t key = 0; key < 50; key++)
		calls_came(c, key);
	calls_ripen(c, 2000); // half of them come
	calls_add(c, 140, 40, 20000, 30000, 5000); // expected for 11 s
	calls_add(c, 160, 20, 3000, 30000, 7000); // for 4 s
	for (uint64_t key = 100; key < 110; key++)
		calls_came(c, key);
	const struct calls_state was = calls_state(c, 8000);
	assert_int_equal(was.tickets, 60);
	assert_int_equal(was.came, 10);
	assert_int_equal(was.expect_ms, (30 * 8000 + 20 * 3000) / 50);
	calls_resume(other, 160, &was, 0);
	assert_true(
		calls_yield(other) > was.yield - 0.001 && calls_yield(other) < was.yield + 0.001);
	assert_true(calls_expected(other) > 60 * was.yield - 10.1);
	assert_true(calls_expected(other) < 60 * was.yield - 9.9);
	calls_ripen(other, was.expect_ms);
	assert_true(calls_expected(other) == 0);
	assert_true(calls_yield(other) < was.yield); // it is a sample: 10 of 60
	free(c);
	free(other);
}

static void turns_are_prolonged_and_nobody_is_expected_for_it(void **state)
{
	(void)state;
	struct calls *c = malloc(sizeof(*c));
	calls_init(c, 0);
	calls_add(c, 100, 100, 1000, 30000, 0);
	calls_ripen(c, 3000);
	calls_prolong(c, 60000, 30000, 3000);
	assert_true(calls_expected(c) == 0);
	assert_true(calls_pass(c, 92999) == 0);
	assert_int_equal(calls_pass(c, 93000), 100);
	free(c);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(no_turn_ends_early),
		cmocka_unit_test(joined_calls_end_little_later),
		cmocka_unit_test(the_yield_follows_within_seconds),
		cmocka_unit_test(a_trickle_does_not_make_it_jump),
		cmocka_unit_test(who_comes_late_counts),
		cmocka_unit_test(expects_those_who_may_yet_come),
		cmocka_unit_test(all_turns_begin_anew),
		cmocka_unit_test(another_resumes),
		cmocka_unit_test(turns_are_prolonged_and_nobody_is_expected_for_it),
	};
	return cmocka_run_group_tests_name("calls", tests, NULL, NULL);
}
