// Figures that are not of one moment never make less than none.

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>

#include <cmocka.h>

#include "controlplane/appliance/appliance_count.h"

static void test_counts(void **state)
{
	(void)state;
	static const struct {
		uint64_t total, threshold, floor;
		uint32_t settled, left;
		uint64_t waiting, called;
	} table[] = {
		{0, 0, 0, 0, 0, 0, 0},
		{100, 40, 10, 5, 0, 60, 25},
		{100, 40, 10, 5, 7, 53, 30}, // those who left are settled, and do not wait
		{100, 40, 10, 12, 7, 53, 25},
		{100, 40, 10, 30, 0, 60, 0},
		{100, 40, 10, 31, 0, 60, 0},
		{100, 0, 35, 0, 0, 100, 0}, // floor is told again, threshold not yet
		{0, 40, 10, 0, 0, 0, 30},
		{100, 98, 10, 0, 7, 0, 88},
	};
	for (size_t i = 0; i < sizeof(table) / sizeof(table[0]); i++) {
		const struct ledger_view is = {.total = table[i].total,
			.threshold_rank = table[i].threshold,
			.floor_rank = table[i].floor,
			.settled = table[i].settled};
		struct controller_view view = {0};
		appliance_count(&is, table[i].left, &view);
		assert_int_equal(view.waiting, table[i].waiting);
		assert_int_equal(view.called, table[i].called);
	}
}

int main(void)
{
	const struct CMUnitTest tests[] = {cmocka_unit_test(test_counts)};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
