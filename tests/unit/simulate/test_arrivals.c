// Arrivals: as many as the plan says, in order, and by the shape.

#include <setjmp.h>
#include <stdarg.h>
#include <stdlib.h>

#include <cmocka.h>

#include "controlplane/simulate/arrivals.h"

#define PEOPLE 100000u

static void shapes_are_inverses(void **state)
{
	(void)state;
	for (int shape = PLAN_SHAPE_EVEN; shape <= PLAN_SHAPE_BELL; shape++) {
		double before = -1;
		for (int i = 0; i <= 100; i++) {
			const double time = i / 100.0;
			const double share = arrivals_by((enum plan_shape)shape, time);
			assert_true(share > before);
			before = share;
			assert_float_equal(
				arrivals_when((enum plan_shape)shape, share), time, 1e-6);
		}
		assert_float_equal(arrivals_by((enum plan_shape)shape, 0), 0, 1e-9);
		assert_float_equal(arrivals_by((enum plan_shape)shape, 1), 1, 1e-9);
	}
}

// At each tenth of the time as many have come as the shape says; five deviations either way.
static void a_wave_has_its_shape(void **state)
{
	(void)state;
	for (int shape = PLAN_SHAPE_EVEN; shape <= PLAN_SHAPE_BELL; shape++) {
		struct plan_arrivals wave = {PEOPLE, 50, 100, (enum plan_shape)shape};
		struct plan_room room = {.arrivals = {1, &wave}};
		const struct plan plan = {.rooms = {1, &room}, .people = PEOPLE};
		struct arrivals *a = arrivals_create(&plan, 7 + (uint64_t)shape);
		uint32_t at_ms, of_room, before_ms = 0, count = 0, by_tenth[11] = {0};
		while (arrivals_next(a, &at_ms, &of_room)) {
			assert_int_equal(of_room, 0);
			assert_in_range(at_ms, before_ms, 150000);
			assert_true(at_ms >= 50000);
			before_ms = at_ms;
			count++;
			for (uint32_t tenth = (at_ms - 50000) / 10000 + 1; tenth <= 10; tenth++)
				by_tenth[tenth]++;
		}
		assert_int_equal(count, PEOPLE);
		for (uint32_t tenth = 1; tenth < 10; tenth++) {
			const double expected =
				PEOPLE * arrivals_by((enum plan_shape)shape, tenth / 10.0);
			assert_float_equal(by_tenth[tenth], expected, 5 * 160);
		}
		free(a);
	}
}

static void waves_are_merged(void **state)
{
	(void)state;
	struct plan_arrivals waves[] = {
		{300, 0, 60, PLAN_SHAPE_EVEN}, {200, 30, 10, PLAN_SHAPE_RAMP}};
	struct plan_room rooms[] = {{.arrivals = {2, waves}}, {.arrivals = {1, waves}}};
	const struct plan plan = {.rooms = {2, rooms}, .people = 800};
	struct arrivals *a = arrivals_create(&plan, 3);
	uint32_t at_ms, room, before_ms = 0, of_room[2] = {0};
	while (arrivals_next(a, &at_ms, &room)) {
		assert_true(at_ms >= before_ms);
		before_ms = at_ms;
		of_room[room]++;
	}
	assert_int_equal(of_room[0], 500);
	assert_int_equal(of_room[1], 300);
	free(a);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(shapes_are_inverses),
		cmocka_unit_test(a_wave_has_its_shape),
		cmocka_unit_test(waves_are_merged),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
