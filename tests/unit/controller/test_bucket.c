// Bucket: no window ever holds more than rate x window + burst, and no less is let through when
// there is always somebody at the door.

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdlib.h>

#include <cmocka.h>

#include "controlplane/controller/bucket.h"
#include "tests/unit/controller/random.h"

static const struct {
	uint32_t count, period_ms, burst;
} rates[] = {
	{1, 1000, 1}, {100, 1000, 100}, {300, 60000, 5}, {7, 60000, 1}, {333, 1000, 3},
	{1, 24 * 3600 * 1000, 2}, {1000000, 1000, 1000000}, {3, 7, 5}, // does not divide
};

// People let through up to now, with when; every window that ends now is counted.
static void check_windows(const uint64_t *times, uint32_t end, uint64_t seed, size_t rate)
{
	for (uint32_t first = end > 300 ? end - 300 : 0; first < end; first++) {
		const uint64_t people = end - first, window = times[end - 1] - times[first];
		CHECK_SEED(
			seed, people * rates[rate].period_ms <=
				      window * rates[rate].count +
					      (uint64_t)rates[rate].burst * rates[rate].period_ms);
	}
}

static void no_window_holds_more(void **state)
{
	(void)state;
	static uint64_t times[4000];
	for (uint64_t seed = 1; seed <= 24; seed++) {
		const size_t rate = seed % (sizeof(rates) / sizeof(rates[0]));
		uint64_t random = seed, now = 1700000000000;
		struct bucket b = bucket_make(
			rates[rate].count, rates[rate].period_ms, rates[rate].burst, 0, now);
		uint32_t people = 0;
		for (int step = 0; step < 4000; step++) {
			now += random_below(&random, 3)
				       ? 0
				       : random_below(&random, rates[rate].period_ms);
			bucket_refill(&b, now);
			if (random_below(&random, 2) == 0)
				continue;
			const bool could = bucket_people(&b) > 0;
			CHECK_SEED(seed, bucket_take(&b) == could);
			if (could) {
				times[people++] = now;
				check_windows(times, people, seed, rate);
			}
			// A restart: what it says of itself is enough, and never too much.
			if (random_below(&random, 20) == 0)
				b = bucket_make(rates[rate].count, rates[rate].period_ms,
					rates[rate].burst, bucket_full_ms(&b), now);
		}
	}
}

static void somebody_at_the_door_gets_all_of_it(void **state)
{
	(void)state;
	for (size_t i = 0; i < sizeof(rates) / sizeof(rates[0]); i++) {
		if (rates[i].burst > 1000)
			continue;
		struct bucket b =
			bucket_make(rates[i].count, rates[i].period_ms, rates[i].burst, 0, 0);
		uint64_t people = 0;
		const uint64_t periods = 5;
		const uint64_t step = rates[i].period_ms > 1000 ? rates[i].period_ms / 1000 : 1;
		uint64_t now = 0;
		for (; now <= periods * rates[i].period_ms; now += step) {
			bucket_refill(&b, now);
			while (bucket_take(&b))
				people++;
		}
		const uint64_t most =
			(now - step) * rates[i].count / rates[i].period_ms + rates[i].burst;
		// A full bucket loses what comes in between two looks.
		assert_in_range(people, most - most / 20, most);
	}
}

static void people_within_is_what_comes(void **state)
{
	(void)state;
	struct bucket b = bucket_make(10, 1000, 3, 0, 0);
	assert_int_equal(bucket_people(&b), 3);
	assert_int_equal(bucket_people_within(&b, 99), 3);
	assert_int_equal(bucket_people_within(&b, 100), 4);
	assert_int_equal(bucket_people_within(&b, 5000), 53); // while they are let through
	assert_int_equal(bucket_people_within(&b, UINT64_MAX), UINT32_MAX - 1);
	b = bucket_make(0, 0, 1, 0, 0);
	assert_int_equal(bucket_people(&b), UINT32_MAX);
	assert_int_equal(bucket_people_within(&b, 5), UINT32_MAX);
	assert_true(bucket_take(&b));
}

static void other_limits_keep_the_people_in_it(void **state)
{
	(void)state;
	struct bucket b = bucket_make(10, 1000, 8, 0, 0);
	assert_true(bucket_take(&b) && bucket_take(&b));
	bucket_set(&b, 600, 60000, 8); // the same rate in other units
	assert_int_equal(bucket_people(&b), 6);
	bucket_set(&b, 10, 1000, 4);
	assert_int_equal(bucket_people(&b), 4);
	bucket_set(&b, 10, 1000, 100);
	assert_int_equal(bucket_people(&b), 4);
	bucket_set(&b, 0, 0, 1);
	assert_int_equal(bucket_people(&b), UINT32_MAX);
	bucket_set(&b, 10, 1000, 5);
	assert_int_equal(bucket_people(&b), 5);
}

static void knows_when_it_is_full(void **state)
{
	(void)state;
	struct bucket b = bucket_make(3, 1000, 2, 0, 5000);
	assert_int_equal(bucket_full_ms(&b), 5000);
	bucket_take(&b);
	assert_int_equal(bucket_full_ms(&b), 5334); // rounded up
	b = bucket_make(3, 1000, 2, 5334, 5000);
	assert_int_equal(bucket_people(&b), 0); // a third of a millisecond is lost
	bucket_refill(&b, 5001);
	assert_int_equal(bucket_people(&b), 1);
	b = bucket_make(3, 1000, 2, UINT64_MAX, 5000);
	assert_int_equal(bucket_people(&b), 0);
}

// Somebody else keeps it: what they say counts, but for the part of the next one.
static void follows_who_keeps_it(void **state)
{
	(void)state;
	static const struct {
		uint32_t told;
		uint64_t level;
	} cases[] = {{0, 0}, {2, 2300}, {3, 3000}, {1, 1000}, {99, 5000}};
	for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
		struct bucket b = bucket_make(10, 1000, 5, 0, 5000);
		b.level = 2300;
		bucket_follow(&b, cases[i].told);
		assert_int_equal(b.level, cases[i].level);
	}
	struct bucket unlimited = bucket_make(0, 0, 1, 0, 5000);
	bucket_follow(&unlimited, UINT32_MAX);
	assert_int_equal(bucket_people(&unlimited), UINT32_MAX);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(no_window_holds_more),
		cmocka_unit_test(somebody_at_the_door_gets_all_of_it),
		cmocka_unit_test(people_within_is_what_comes),
		cmocka_unit_test(other_limits_keep_the_people_in_it),
		cmocka_unit_test(knows_when_it_is_full),
		cmocka_unit_test(follows_who_keeps_it),
	};
	return cmocka_run_group_tests_name("bucket", tests, NULL, NULL);
}
