// Told, against a naive twin: the list of all that was ever told.

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>

#include <cmocka.h>

#include "controlplane/controller/told.h"
#include "dataplane/gate/pace.h"
#include "tests/unit/controller/random.h"

#define TOLD_MAX 4000u
#define RANKS 3000u

static struct {
	uint64_t rank, heard_ms; // whom, and when it will have polled
} told[TOLD_MAX];

static uint64_t wait_of(uint64_t *random)
{
	const uint64_t waits[] = {
		0, 1ull << 20, 1ull << 26, 1ull << 30, 1ull << 34, PACE_WAIT_UNKNOWN};
	return waits[random_below(random, 6)];
}

static void nobody_is_told_longer(void **state)
{
	(void)state;
	for (uint64_t seed = 1; seed <= 30; seed++) {
		uint64_t random = seed, now = 1700000000123, threshold = 0;
		uint64_t wait = PACE_WAIT_UNKNOWN;
		struct told t = {0};
		told_publish(&t, threshold, wait, now);
		uint32_t count = 0;
		while (count < TOLD_MAX) {
			const uint64_t rank = threshold + random_below(&random, RANKS);
			const uint32_t after = pace_poll_after(
				rank - threshold, wait, (uint32_t)random_next(&random));
			told[count].rank = rank;
			told[count++].heard_ms = now + after * 1000;
			now += random_below(&random, 4) ? random_below(&random, 90)
							: random_below(&random, 3000);
			if (random_below(&random, 3) == 0) {
				threshold += random_below(&random, 200);
				wait = wait_of(&random);
				told_publish(&t, threshold, wait, now);
			}
			const uint64_t end = threshold + random_below(&random, RANKS);
			const uint64_t by = now + told_longest_ms(&t, end, now);
			CHECK_SEED(seed, by <= now + PACE_MAX_S * 1000);
			for (uint32_t i = 0; i < count; i++)
				CHECK_SEED(seed, told[i].rank >= end || told[i].heard_ms <= by);
		}
	}
}

static void what_is_not_known_may_have_been_a_minute(void **state)
{
	(void)state;
	struct told t = {0};
	told_forget(&t, 5000);
	told_publish(&t, 0, 0, 5000);
	assert_int_equal(told_longest_ms(&t, 1, 5000), 60000);
	assert_int_equal(told_longest_ms(&t, 1, 45000), 20000);
	assert_in_range(told_longest_ms(&t, 1, 70000), 1000, 2000);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(nobody_is_told_longer),
		cmocka_unit_test(what_is_not_known_may_have_been_a_minute),
	};
	return cmocka_run_group_tests_name("told", tests, NULL, NULL);
}
