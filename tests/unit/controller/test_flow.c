// Flow, tally and holds: what is measured and kept by the second.

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>

#include <cmocka.h>

#include "controlplane/controller/flow.h"
#include "controlplane/controller/holds.h"
#include "controlplane/controller/tally.h"

#define Q32 4294967296.0

// `rate` ranks a second for `seconds`, in turns of 20 ms.
static void let_flow(
	struct flow *f, uint64_t *now, double *rank, double rate, int seconds, bool waiting)
{
	for (int i = 0; i < seconds * 50; i++) {
		*now += 20;
		*rank += rate / 50;
		flow_tick(f, (uint64_t)*rank, waiting, *now);
	}
}

static void measures_a_steady_line(void **state)
{
	(void)state;
	const double rates[] = {0.05, 1, 7.5, 100, 20000};
	for (size_t i = 0; i < sizeof(rates) / sizeof(rates[0]); i++) {
		struct flow f;
		uint64_t now = 1000, low, high;
		double rank = 500;
		flow_init(&f, 500, now);
		let_flow(&f, &now, &rank, rates[i], rates[i] < 1 ? 600 : 70, true);
		const double wait = 1 / rates[i], at_most = 1.25 * wait, at_least = 0.75 * wait;
		assert_true(flow_rate(&f, 0) > 0.95 * rates[i]);
		assert_true(flow_rate(&f, 0) < 1.05 * rates[i]);
		flow_wait(&f, 0, &low, &high);
		assert_true((double)low / Q32 < wait && (double)high / Q32 > wait);
		assert_true((double)low / Q32 >= at_least * 0.95);
		assert_true((double)high / Q32 <= at_most * 1.05);
	}
}

static void relies_on_the_limits_at_first(void **state)
{
	(void)state;
	struct flow f;
	uint64_t now = 1000, low, high;
	double rank = 0;
	flow_init(&f, 0, now);
	flow_wait(&f, 0, &low, &high);
	assert_true(low == FLOW_UNKNOWN && high == FLOW_UNKNOWN);
	flow_wait(&f, 10, &low, &high);
	assert_true(high > 3 * low); // a wide range
	assert_true((double)low < Q32 / 10 && (double)high > Q32 / 10);
	let_flow(&f, &now, &rank, 50, 30, true);
	assert_true(flow_rate(&f, 10) > 25 && flow_rate(&f, 10) < 35); // half and half
	let_flow(&f, &now, &rank, 50, 31, true);
	assert_true(flow_rate(&f, 10) > 49);
}

static void follows_a_change_within_a_minute(void **state)
{
	(void)state;
	struct flow f;
	uint64_t now = 1000;
	double rank = 0;
	flow_init(&f, 0, now);
	let_flow(&f, &now, &rank, 100, 300, true);
	let_flow(&f, &now, &rank, 20, 61, true);
	assert_true(flow_rate(&f, 0) < 21);
}

static void says_nothing_of_a_time_when_nobody_waited(void **state)
{
	(void)state;
	struct flow f;
	uint64_t now = 1000, low, high;
	double rank = 0;
	flow_init(&f, 0, now);
	let_flow(&f, &now, &rank, 50, 70, true);
	let_flow(&f, &now, &rank, 0.1, 300, false);
	assert_true(flow_rate(&f, 0) > 49); // as it was
	let_flow(&f, &now, &rank, 0.1, 400, false);
	flow_wait(&f, 0, &low, &high);
	assert_true(low == FLOW_UNKNOWN); // too long ago
}

static void a_line_that_stands_has_no_end_in_sight(void **state)
{
	(void)state;
	struct flow f;
	uint64_t now = 1000, low, high;
	double rank = 0;
	flow_init(&f, 0, now);
	let_flow(&f, &now, &rank, 0, 70, true);
	flow_wait(&f, 5, &low, &high);
	assert_true(low == FLOW_UNKNOWN && high == FLOW_UNKNOWN);
}

static void tally_counts_the_last_ten_seconds(void **state)
{
	(void)state;
	struct tally t;
	tally_init(&t, 100000);
	assert_true(tally_rate(&t, 100500) == 0);
	for (uint64_t ms = 100000; ms < 104000; ms += 100)
		tally_add(&t, ms);
	assert_true(tally_rate(&t, 104000) == 10);
	assert_true(tally_rate(&t, 105000) == 8);
	assert_true(tally_rate(&t, 110999) == 4);
	assert_true(tally_rate(&t, 111000) == 3);
	assert_true(tally_rate(&t, 114000) == 0);
	tally_add(&t, 500000); // after a long time
	assert_true(tally_rate(&t, 501000) == 0.1);
}

static void holds_keep_the_smallest_key_of_each_second(void **state)
{
	(void)state;
	struct holds h = {0};
	assert_int_equal(holds_first_key(&h, 0), UINT64_MAX);
	holds_add(&h, 50, 10, 100500);
	holds_add(&h, 40, 2, 100500);
	holds_add(&h, 60, 10, 100700);
	assert_int_equal(holds_first_key(&h, 102500), 40);
	assert_int_equal(holds_first_key(&h, 102999), 40); // rounded up
	assert_int_equal(holds_first_key(&h, 103000), 50);
	assert_int_equal(holds_first_key(&h, 110999), 50);
	assert_int_equal(holds_first_key(&h, 111000), UINT64_MAX);
	holds_add(&h, 70, 100000, 200000); // as long as there are seconds
	assert_int_equal(holds_first_key(&h, 200000 + (HOLDS_SECONDS - 2) * 1000), 70);
	assert_int_equal(holds_first_key(&h, 200000 + HOLDS_SECONDS * 1000), UINT64_MAX);
	for (uint64_t s = 0; s < 2 * HOLDS_SECONDS; s++) // one for every second, again and again
		holds_add(&h, 1000 - s, 100, 300000 + s * 1000);
	assert_int_equal(holds_first_key(&h, 300000 + 2 * HOLDS_SECONDS * 1000),
		1000 - 2 * HOLDS_SECONDS + 1);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(measures_a_steady_line),
		cmocka_unit_test(relies_on_the_limits_at_first),
		cmocka_unit_test(follows_a_change_within_a_minute),
		cmocka_unit_test(says_nothing_of_a_time_when_nobody_waited),
		cmocka_unit_test(a_line_that_stands_has_no_end_in_sight),
		cmocka_unit_test(tally_counts_the_last_ten_seconds),
		cmocka_unit_test(holds_keep_the_smallest_key_of_each_second),
	};
	return cmocka_run_group_tests_name("flow", tests, NULL, NULL);
}
