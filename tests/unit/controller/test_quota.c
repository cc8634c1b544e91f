// Quotas, against a naive twin that keeps every admission.

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>

#include <cmocka.h>

#include "controlplane/controller/quota.h"
#include "tests/unit/controller/random.h"

#define START_MS 1700000000000ull
#define TAKEN_MAX 2000u

struct twin {
	uint64_t at_ms[TAKEN_MAX];
	uint32_t count;
};

static uint32_t twin_used(const struct twin *twin, uint64_t period_ms, uint64_t now_ms)
{
	uint32_t used = 0;
	for (uint32_t i = 0; i < twin->count; i++)
		used += twin->at_ms[i] / period_ms == now_ms / period_ms;
	return used;
}

static void agrees_with_the_twin(void **state)
{
	(void)state;
	static struct twin twin;
	for (uint64_t seed = 1; seed <= 40; seed++) {
		uint64_t random = seed, now = START_MS + random_below(&random, 100000);
		const uint32_t period = 1000 * (1 + (uint32_t)random_below(&random, 90));
		uint32_t count = 1 + (uint32_t)random_below(&random, 20);
		struct quota quota = quota_make(count, period, 0, now);
		twin.count = 0;
		for (int step = 0; step < 500; step++) {
			now += random_below(&random, 3) ? random_below(&random, 100)
							: random_below(&random, 2ull * period);
			quota_advance(&quota, now);
			const uint32_t used = twin_used(&twin, period, now);
			CHECK_SEED(seed, quota_left(&quota) == (count > used ? count - used : 0));
			const uint64_t ms = random_below(&random, 3ull * period);
			const uint64_t begin = (now + ms) / period - now / period;
			CHECK_SEED(seed, quota_left_within(&quota, ms, now) ==
						 quota_left(&quota) + begin * count);
			if (quota_left(&quota) > 0 && random_below(&random, 4)) {
				quota_take(&quota);
				twin.at_ms[twin.count++] = now;
			}
			if (random_below(&random, 20) == 0) // a restart
				quota = quota_make(count, period, quota_word(&quota), now);
			if (random_below(&random, 20) == 0) { // a reload
				count = 1 + (uint32_t)random_below(&random, 20);
				quota_set(&quota, count, period, now);
			}
		}
	}
}

static void without_a_limit_all_pass(void **state)
{
	(void)state;
	struct quota quota = quota_make(0, 0, 0, START_MS);
	quota_take(&quota);
	quota_advance(&quota, START_MS + 1);
	assert_int_equal(quota_left(&quota), UINT32_MAX);
	assert_int_equal(quota_left_within(&quota, 1000000, START_MS), UINT32_MAX);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(agrees_with_the_twin),
		cmocka_unit_test(without_a_limit_all_pass),
	};
	return cmocka_run_group_tests_name("quota", tests, NULL, NULL);
}
