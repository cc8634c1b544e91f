// The generator never repeats, never gives 0, and two of them differ.

#include "dataplane/random.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stdlib.h>

#include <cmocka.h>

#define DRAWS 20000u

static int compare(const void *a, const void *b)
{
	const uint64_t *x = a, *y = b;
	return (*x > *y) - (*x < *y);
}

static void test_all_different(void **state)
{
	(void)state;
	struct random *one, *two;
	assert_int_equal(random_create(&one), 0);
	assert_int_equal(random_create(&two), 0);
	static uint64_t drawn[2 * DRAWS];
	for (unsigned i = 0; i < DRAWS; i++) {
		drawn[i] = random_u64(one);
		drawn[DRAWS + i] = random_u64(two);
		(void)random_u32(one); // other sizes between do not matter
	}
	qsort(drawn, 2 * DRAWS, sizeof(drawn[0]), compare);
	assert_true(drawn[0] != 0);
	for (unsigned i = 1; i < 2 * DRAWS; i++)
		assert_true(drawn[i - 1] != drawn[i]);
	random_destroy(one);
	random_destroy(two);
}

static void test_bits_are_even(void **state)
{
	(void)state;
	struct random *random;
	assert_int_equal(random_create(&random), 0);
	unsigned ones[32] = {0};
	for (unsigned i = 0; i < DRAWS; i++) {
		uint32_t value = random_u32(random);
		for (unsigned bit = 0; bit < 32; bit++)
			ones[bit] += value >> bit & 1;
	}
	// 20,000 fair coins: 10,000 +- 8 standard deviations of 71.
	for (unsigned bit = 0; bit < 32; bit++)
		assert_in_range(ones[bit], 9430, 10570);
	random_destroy(random);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_all_different),
		cmocka_unit_test(test_bits_are_even),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
