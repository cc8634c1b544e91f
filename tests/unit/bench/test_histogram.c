// Histogram: every value is found again within 1/128, and percentiles are those of a sorted list.

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "bench/crowd/histogram.h"
#include "bench/crowd/random.h"

#define VALUES 20000

static struct histogram one, other; // too large for a stack

static void setup_empty(void)
{
	one = other = (struct histogram){0};
}

static void is_empty_at_first(void **state)
{
	(void)state;
	setup_empty();
	assert_int_equal(histogram_value(&one, 0.5), 0);
	assert_int_equal(histogram_value(&one, 1), 0);
	assert_true(histogram_mean(&one) == 0);
}

static void finds_each_value_within_its_width(void **state)
{
	(void)state;
	for (unsigned bit = 0; bit < HISTOGRAM_BITS; bit++) {
		for (int64_t off = -1; off <= 1; off++) {
			const int64_t value = (1ll << bit) + off;
			if (value >= 1ll << HISTOGRAM_BITS)
				continue;
			setup_empty();
			histogram_add(&one, value);
			histogram_add(
				&one, (1ll << HISTOGRAM_BITS) - 1); // so that max does not help
			const uint64_t found = histogram_value(&one, 0.5);
			assert_true(found >= (uint64_t)value);
			assert_true(found - (uint64_t)value <= (uint64_t)value / HISTOGRAM_HALF);
		}
	}
}

static void takes_what_is_out_of_range(void **state)
{
	(void)state;
	const uint64_t most = (1ull << HISTOGRAM_BITS) - 1;
	setup_empty();
	histogram_add(&one, -5);
	assert_int_equal(histogram_value(&one, 1), 0);
	histogram_add(&one, (int64_t)most);
	histogram_add(&one, (int64_t)most + 1);
	histogram_add(&one, INT64_MAX);
	assert_int_equal(one.count, 4);
	assert_int_equal(one.max, most);
	assert_int_equal(histogram_value(&one, 1), most);
}

static int by_value(const void *a, const void *b)
{
	const int64_t x = *(const int64_t *)a, y = *(const int64_t *)b;
	return (x > y) - (x < y);
}

static void agrees_with_a_sorted_list(void **state)
{
	(void)state;
	static int64_t list[VALUES];
	static const double shares[] = {0.0001, 0.01, 0.25, 0.5, 0.9, 0.99, 0.999, 1};
	for (uint64_t seed = 1; seed <= 10; seed++) {
		uint64_t random = seed;
		double sum = 0;
		setup_empty();
		for (int i = 0; i < VALUES; i++) {
			list[i] =
				(int64_t)(random_next(&random) >> (28 + random_next(&random) % 36));
			sum += (double)list[i];
			histogram_add(i % 3 ? &one : &other, list[i]);
		}
		histogram_merge(&one, &other);
		qsort(list, VALUES, sizeof(*list), by_value);
		assert_int_equal(one.count, VALUES);
		assert_int_equal(one.max, list[VALUES - 1]);
		assert_true(histogram_mean(&one) == sum / VALUES);
		for (unsigned i = 0; i < sizeof(shares) / sizeof(shares[0]); i++) {
			// The smallest value that the share does not exceed.
			const double place = shares[i] * VALUES;
			int at = (int)place - (place == (int)place);
			const int64_t exact = list[at];
			const int64_t found = (int64_t)histogram_value(&one, shares[i]);
			if (found < exact || found - exact > exact / (int64_t)HISTOGRAM_HALF)
				fail_msg("seed %lu, share %g: %ld for %ld", (unsigned long)seed,
					shares[i], (long)found, (long)exact);
		}
	}
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(is_empty_at_first),
		cmocka_unit_test(finds_each_value_within_its_width),
		cmocka_unit_test(takes_what_is_out_of_range),
		cmocka_unit_test(agrees_with_a_sorted_list),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
