// Shapes: how many have arrived by when.

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include <math.h>

#include "bench/crowd/shape.h"

#define COUNT 20000u

static int64_t arrivals_us[COUNT], again_us[COUNT];

static uint32_t arrived_by(double at_s)
{
	uint32_t count = 0;
	while (count < COUNT && (double)arrivals_us[count] < at_s * 1e6)
		count++;
	return count;
}

static void check_ascending(void)
{
	assert_true(arrivals_us[0] >= 0);
	for (uint32_t i = 1; i < COUNT; i++)
		assert_true(arrivals_us[i] >= arrivals_us[i - 1]);
}

static void step_is_steady(void **state)
{
	(void)state;
	shape_fill(SHAPE_STEP, 10, 1, arrivals_us, COUNT);
	check_ascending();
	assert_int_equal(arrivals_us[0], 0);
	assert_in_range(arrived_by(2.5), COUNT / 4 - 1, COUNT / 4 + 1);
	assert_in_range(arrived_by(5), COUNT / 2 - 1, COUNT / 2 + 1);
	assert_int_equal(arrived_by(10), COUNT);
}

static void step_in_no_time_is_all_at_once(void **state)
{
	(void)state;
	shape_fill(SHAPE_STEP, 0, 1, arrivals_us, COUNT);
	assert_int_equal(arrivals_us[COUNT - 1], 0);
}

// A rate that grows with time: half the time brings a quarter of the people.
static void ramp_grows(void **state)
{
	(void)state;
	shape_fill(SHAPE_RAMP, 10, 1, arrivals_us, COUNT);
	check_ascending();
	assert_in_range(arrived_by(5), COUNT / 4 - 1, COUNT / 4 + 1);
	assert_int_equal(arrived_by(10), COUNT);
}

// Counts in equal windows of a Poisson process have a variance that equals their mean.
static void poisson_is_random(void **state)
{
	(void)state;
	enum { WINDOWS = 200 };
	for (uint64_t seed = 1; seed <= 5; seed++) {
		shape_fill(SHAPE_POISSON, 10, seed, arrivals_us, COUNT);
		check_ascending();
		const double end_s = (double)arrivals_us[COUNT - 1] / 1e6;
		assert_true(fabs(end_s - 10) < 0.5); // its deviation is 10 / sqrt(20000), 0.07
		const double mean = (double)COUNT / WINDOWS;
		double squares = 0;
		for (int i = 0; i < WINDOWS; i++) {
			const uint32_t count = arrived_by(end_s * (i + 1) / WINDOWS) -
					       arrived_by(end_s * i / WINDOWS);
			squares += (count - mean) * (count - mean);
		}
		const double ratio = squares / WINDOWS / mean; // deviation sqrt(2 / 200), 0.1
		if (ratio < 0.6 || ratio > 1.5)
			fail_msg("seed %lu: variance / mean %g", (unsigned long)seed, ratio);
	}
}

static void poisson_replays(void **state)
{
	(void)state;
	shape_fill(SHAPE_POISSON, 10, 7, arrivals_us, COUNT);
	shape_fill(SHAPE_POISSON, 10, 7, again_us, COUNT);
	assert_memory_equal(arrivals_us, again_us, sizeof(again_us));
	shape_fill(SHAPE_POISSON, 10, 8, again_us, COUNT);
	assert_memory_not_equal(arrivals_us, again_us, sizeof(again_us));
}

static void reads_words(void **state)
{
	(void)state;
	enum shape shape = SHAPE_STEP;
	assert_true(shape_read("ramp", &shape));
	assert_int_equal(shape, SHAPE_RAMP);
	assert_false(shape_read("ramps", &shape));
	assert_false(shape_read("", &shape));
	assert_int_equal(shape, SHAPE_RAMP);
	assert_true(shape_read("poisson", &shape));
	assert_true(shape_read("step", &shape));
	assert_int_equal(shape, SHAPE_STEP);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(step_is_steady),
		cmocka_unit_test(step_in_no_time_is_all_at_once),
		cmocka_unit_test(ramp_grows),
		cmocka_unit_test(poisson_is_random),
		cmocka_unit_test(poisson_replays),
		cmocka_unit_test(reads_words),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
