// Pace: how soon a waiting visitor polls again.

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>

#include <cmocka.h>

#include "dataplane/gate/pace.h"

#define SECONDS_Q32(seconds) ((uint64_t)((seconds)*4294967296.0))

static void grows_with_the_wait(void **state)
{
	(void)state;
	const struct {
		const char *what;
		uint64_t ahead, wait_q32;
		uint32_t most;
	} cases[] = {
		{"next", 0, SECONDS_Q32(1), 1},
		{"in 10 s", 10, SECONDS_Q32(1), 1},
		{"in 30 s", 30, SECONDS_Q32(1), 3},
		{"in 599 s", 599, SECONDS_Q32(1), 59},
		{"in 600 s", 600, SECONDS_Q32(1), 60},
		{"in an hour", 3600, SECONDS_Q32(1), 60},
		{"a fast line", 150001, SECONDS_Q32(0.001), 15},
		{"a slow line", 1, SECONDS_Q32(200), 20},
		{"no end in sight", UINT64_MAX, UINT64_MAX - 1, 60},
		{"unknown, next", 0, PACE_WAIT_UNKNOWN, 2},
		{"unknown, far", 10000, PACE_WAIT_UNKNOWN, 41},
		{"unknown, very far", UINT64_MAX, PACE_WAIT_UNKNOWN, 60},
	};
	for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
		const uint32_t most = pace_poll_after_max(cases[i].ahead, cases[i].wait_q32);
		if (most != cases[i].most)
			fail_msg("%s: %u instead of %u", cases[i].what, most, cases[i].most);
		assert_int_equal(pace_poll_after(cases[i].ahead, cases[i].wait_q32, 0), most);
	}
}

static void jitter_only_shortens(void **state)
{
	(void)state;
	for (uint64_t ahead = 0; ahead < 1000; ahead++) {
		const uint32_t most = pace_poll_after_max(ahead, SECONDS_Q32(1));
		const uint32_t least = pace_poll_after(ahead, SECONDS_Q32(1), UINT32_MAX);
		assert_true(least >= 1 && least <= most && least >= most - most / 4);
	}
	assert_int_equal(pace_poll_after(600, SECONDS_Q32(1), UINT32_MAX), 45);
	assert_int_equal(pace_poll_after(600, SECONDS_Q32(1), UINT32_MAX / 2), 53);
}

static void never_falls_with_distance(void **state)
{
	(void)state;
	const uint64_t waits[] = {0, 1, SECONDS_Q32(0.0001), SECONDS_Q32(0.3), SECONDS_Q32(77),
		UINT64_MAX / 2, PACE_WAIT_UNKNOWN};
	for (size_t i = 0; i < sizeof(waits) / sizeof(waits[0]); i++) {
		uint32_t last = PACE_MIN_S;
		for (uint64_t ahead = 0; ahead < 1ull << 40; ahead += 1 + ahead / 50) {
			const uint32_t most = pace_poll_after_max(ahead, waits[i]);
			assert_true(most >= last && most <= PACE_MAX_S);
			last = most;
		}
	}
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(grows_with_the_wait),
		cmocka_unit_test(jitter_only_shortens),
		cmocka_unit_test(never_falls_with_distance),
	};
	return cmocka_run_group_tests_name("pace", tests, NULL, NULL);
}
