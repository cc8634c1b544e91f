// The wheel against a naive twin: a plain array of deadlines, looked at at each call.

#include "dataplane/timers.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#define ENTRIES 300u
#define START_US 5000000123ull
#define DAY_US (86400ull * 1000000)

static struct timers timers;
static struct {
	uint32_t other;
	struct timers_entry timer;
} entries[ENTRIES];

static void start(uint64_t now_us)
{
	for (unsigned i = 0; i < ENTRIES; i++)
		entries[i].timer.slot = TIMERS_UNLINKED;
	timers_init(&timers, &entries[0].timer, sizeof(entries[0]), now_us);
}

// Row 42 of the field's failures: a timer that was wrong beyond 524 s.
static void test_fires_at_its_tick_however_far(void **state)
{
	(void)state;
	const uint64_t delays_us[] = {0, 1, 999, 1000, 1001, 254999, 255000, 256000, 257000,
		65535000, 65536000, 65537000, 524000000, 524288000, 525000000, 16777215000,
		16777216000, 16777217000, 10 * DAY_US};
	for (size_t i = 0; i < sizeof(delays_us) / sizeof(delays_us[0]); i++) {
		uint32_t due;
		start(START_US);
		timers_set(&timers, 7, START_US + delays_us[i]);
		uint64_t now_us = START_US;
		unsigned steps = 0;
		while (timers_due(&timers, now_us, &due, 1) == 0) {
			const uint64_t quiet_us = timers_quiet_us(&timers, now_us, DAY_US);
			now_us += quiet_us > 0 ? quiet_us : 1;
			steps++;
		}
		assert_int_equal(due, 7);
		assert_true(now_us >= START_US + delays_us[i]);
		assert_true(now_us < START_US + delays_us[i] + TIMERS_TICK_US);
		assert_true(steps < 40);
		assert_int_equal(timers.count, 0);
		assert_int_equal(entries[7].timer.slot, TIMERS_UNLINKED);
	}
}

static void test_beyond_the_farthest_is_cut(void **state)
{
	(void)state;
	uint32_t due;
	const uint64_t most_us = (uint64_t)TIMERS_AHEAD_MAX * TIMERS_TICK_US;
	start(0);
	timers_set(&timers, 0, most_us + 100 * DAY_US);
	assert_int_equal(timers_due(&timers, most_us - TIMERS_TICK_US, &due, 1), 0);
	assert_int_equal(timers_due(&timers, most_us, &due, 1), 1);
}

static void test_later_is_lazy_earlier_is_not(void **state)
{
	(void)state;
	uint32_t due;
	start(START_US);
	timers_set(&timers, 0, START_US + 50000);
	const uint16_t slot = entries[0].timer.slot;
	timers_set(&timers, 0, START_US + 500000);
	assert_int_equal(entries[0].timer.slot, slot);
	assert_int_equal(timers_due(&timers, START_US + 400000, &due, 1), 0);
	timers_set(&timers, 0, START_US + 410000);
	assert_int_equal(timers_due(&timers, START_US + 411000, &due, 1), 1);
	timers_set(&timers, 0, START_US + 900000);
	timers_remove(&timers, 0);
	timers_remove(&timers, 0);
	assert_int_equal(timers_due(&timers, START_US + DAY_US, &due, 1), 0);
	assert_int_equal(timers_quiet_us(&timers, START_US + DAY_US, 77), 77);
}

static void test_no_more_than_asked_for(void **state)
{
	(void)state;
	uint32_t due[10];
	start(START_US);
	for (unsigned i = 0; i < 10; i++)
		timers_set(&timers, i, START_US);
	assert_int_equal(timers_due(&timers, START_US + 100000, due, 4), 4);
	assert_int_equal(timers_quiet_us(&timers, START_US + 100000, 1000), 0);
	assert_int_equal(timers_due(&timers, START_US + 100000, due, 4), 4);
	assert_int_equal(timers_due(&timers, START_US + 100000, due, 4), 2);
	assert_int_equal(timers_due(&timers, START_US + 100000, due, 4), 0);
}

// The clock jumps by ten minutes over many entries: each call looks at so many and no more.
static void test_a_jump_is_taken_in_steps(void **state)
{
	(void)state;
	enum { MANY = 5 * TIMERS_LOOK_MAX };
	static struct timers_entry many[MANY];
	static uint32_t due[MANY];
	for (unsigned i = 0; i < MANY; i++)
		many[i].slot = TIMERS_UNLINKED;
	timers_init(&timers, many, sizeof(many[0]), START_US);
	for (unsigned i = 0; i < MANY; i++)
		timers_set(&timers, i, START_US + 1000000 + i * 100000ull);
	const uint64_t now_us = START_US + 600000000;
	unsigned all = 0, calls = 0;
	for (unsigned count; (count = timers_due(&timers, now_us, due, MANY)) > 0 || calls < 5;) {
		assert_true(count <= TIMERS_LOOK_MAX);
		all += count;
		calls++;
		assert_true(calls < 30);
	}
	assert_int_equal(all, MANY);
}

static void test_as_its_twin(void **state)
{
	(void)state;
	const unsigned seed = 20240607;
	printf("seed %u\n", seed);
	srand(seed);
	static uint64_t twin[ENTRIES]; // 0: none
	memset(twin, 0, sizeof(twin));
	uint64_t now_us = START_US;
	start(now_us);
	for (unsigned step = 0; step < 200000; step++) {
		const unsigned i = (unsigned)rand() % ENTRIES;
		const unsigned what = (unsigned)rand() % 10;
		if (what < 6) {
			const uint64_t reach[] = {
				100, 3000, 300000, 70000000, 20000000000, DAY_US * 20};
			twin[i] = now_us + (uint64_t)rand() * 4096 % reach[rand() % 6];
			timers_set(&timers, i, twin[i]);
		} else if (what == 6) {
			timers_remove(&timers, i);
			twin[i] = 0;
		} else {
			const uint64_t reach[] = {10, 1000, 50000, 700000, 100000000, DAY_US};
			if (step % 50 == 0)
				now_us += (uint64_t)rand() * 4096 % reach[rand() % 6];
			else
				now_us += (uint64_t)rand() % reach[rand() % 3];
			uint32_t due[ENTRIES];
			unsigned count = timers_due(&timers, now_us, due, ENTRIES);
			// What entries move down costs looks too: until nothing is left to do.
			while (timers_quiet_us(&timers, now_us, 1) == 0)
				count += timers_due(&timers, now_us, due + count, ENTRIES - count);
			for (unsigned k = 0; k < count; k++) {
				assert_true(twin[due[k]] != 0 && twin[due[k]] <= now_us);
				twin[due[k]] = 0;
			}
			const uint64_t tick_us = now_us / TIMERS_TICK_US * TIMERS_TICK_US;
			unsigned left = 0;
			for (unsigned k = 0; k < ENTRIES; k++) {
				left += twin[k] != 0;
				assert_true(twin[k] == 0 || twin[k] > tick_us);
			}
			assert_int_equal(timers.count, left);
			const uint64_t quiet_us = timers_quiet_us(&timers, now_us, DAY_US);
			for (unsigned k = 0; k < ENTRIES; k++)
				assert_true(twin[k] == 0 ||
					    twin[k] + TIMERS_TICK_US > now_us + quiet_us);
		}
	}
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_fires_at_its_tick_however_far),
		cmocka_unit_test(test_beyond_the_farthest_is_cut),
		cmocka_unit_test(test_later_is_lazy_earlier_is_not),
		cmocka_unit_test(test_no_more_than_asked_for),
		cmocka_unit_test(test_a_jump_is_taken_in_steps),
		cmocka_unit_test(test_as_its_twin),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
