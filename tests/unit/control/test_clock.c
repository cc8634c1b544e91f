// Cluster time never goes back and never jumps, whatever the system's clock does.

#include "controlplane/clock.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>

#include <cmocka.h>

#define SYSTEM_MS 1800000000000u
#define SECOND_US 1000000u

static void test_begins_at_the_systems_time(void **state)
{
	(void)state;
	struct clock clock;
	clock_init(&clock, 0, 5 * SECOND_US, SYSTEM_MS);
	assert_int_equal(clock_at(&clock, 5 * SECOND_US), SYSTEM_MS);
	assert_int_equal(clock_at(&clock, 6 * SECOND_US), SYSTEM_MS + 1000);
}

static void test_a_restart_does_not_go_back(void **state)
{
	(void)state;
	struct clock clock;
	clock_init(&clock, SYSTEM_MS + 3600000, SECOND_US, SYSTEM_MS);
	assert_int_equal(clock_at(&clock, SECOND_US), SYSTEM_MS + 3600000);
	assert_int_equal(clock.behind_ms, -3600000);
}

static void test_a_restart_takes_a_step_forward(void **state)
{
	(void)state;
	struct clock clock;
	clock_init(&clock, SYSTEM_MS - 3600000, SECOND_US, SYSTEM_MS);
	assert_int_equal(clock_at(&clock, SECOND_US), SYSTEM_MS);
}

// Steps of the system's clock: cluster time keeps within half a percent of even pace.
static void test_steps_are_slewed(void **state)
{
	(void)state;
	const int64_t steps_ms[] = {600000, -600000, 3600000, 0, -1, 17};
	struct clock clock;
	clock_init(&clock, 0, 0, SYSTEM_MS);
	int64_t off_ms = 0;
	uint64_t before_ms = SYSTEM_MS;
	for (uint64_t second = 1; second < 600; second++) {
		off_ms += second % 100 == 0 ? steps_ms[second / 100] : 0;
		uint64_t now_us = second * SECOND_US;
		clock_slew(&clock, now_us, (uint64_t)(SYSTEM_MS + second * 1000 + off_ms));
		uint64_t now_ms = clock_at(&clock, now_us);
		assert_in_range(
			now_ms - before_ms, 1000 - CLOCK_SLEW_MS_PER_S, 1000 + CLOCK_SLEW_MS_PER_S);
		before_ms = now_ms;
	}
}

static void test_small_differences_are_corrected(void **state)
{
	(void)state;
	struct clock clock;
	clock_init(&clock, 0, 0, SYSTEM_MS);
	for (uint64_t second = 1; second <= 20; second++)
		clock_slew(&clock, second * SECOND_US, SYSTEM_MS + second * 1000 + 40);
	assert_int_equal(clock_at(&clock, 20 * SECOND_US), SYSTEM_MS + 20040);
	assert_int_equal(clock.behind_ms, 0);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_begins_at_the_systems_time),
		cmocka_unit_test(test_a_restart_does_not_go_back),
		cmocka_unit_test(test_a_restart_takes_a_step_forward),
		cmocka_unit_test(test_steps_are_slewed),
		cmocka_unit_test(test_small_differences_are_corrected),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
