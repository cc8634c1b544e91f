// The wheel against a naive twin: a plain array of deadlines, looked at each tick.

#include "dataplane/wheel.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#define ENTRIES 200u
#define START_US 5000000u

static struct wheel wheel;

static void test_fires_within_two_ticks(void **state)
{
	(void)state;
	const uint64_t delays_us[] = {
		0, 1, 9999, 10000, 10001, 1000000, 10240000, 10250000, 60000000, 3600000000};
	for (size_t i = 0; i < sizeof(delays_us) / sizeof(delays_us[0]); i++) {
		struct wheel_entry entry = {0}, *due;
		wheel_init(&wheel, START_US);
		wheel_set(&wheel, &entry, START_US + delays_us[i]);
		uint64_t now_us = START_US;
		while (wheel_expired(&wheel, now_us, &due, 1) == 0)
			now_us += WHEEL_TICK_US / 2;
		assert_ptr_equal(due, &entry);
		assert_true(now_us >= START_US + delays_us[i]);
		assert_true(now_us <= START_US + delays_us[i] + 2 * WHEEL_TICK_US);
		assert_int_equal(wheel.count, 0);
	}
}

static void test_later_is_lazy_earlier_is_not(void **state)
{
	(void)state;
	struct wheel_entry entry = {0}, *due;
	wheel_init(&wheel, START_US);
	wheel_set(&wheel, &entry, START_US + 50000);
	wheel_set(&wheel, &entry, START_US + 500000);
	assert_int_equal(wheel_expired(&wheel, START_US + 400000, &due, 1), 0);
	wheel_set(&wheel, &entry, START_US + 410000);
	assert_int_equal(wheel_expired(&wheel, START_US + 430000, &due, 1), 1);
}

static void test_after_a_long_sleep_all_fire(void **state)
{
	(void)state;
	static struct wheel_entry entries[ENTRIES];
	struct wheel_entry *due[ENTRIES];
	memset(entries, 0, sizeof(entries));
	wheel_init(&wheel, START_US);
	for (unsigned i = 0; i < ENTRIES; i++)
		wheel_set(&wheel, &entries[i], START_US + i * 123456);
	uint64_t now_us = START_US + 600000000;
	unsigned count = 0;
	for (int turn = 0; turn < 3; turn++)
		count += wheel_expired(&wheel, now_us, due, ENTRIES - count);
	assert_int_equal(count, ENTRIES);
}

static void test_no_more_than_asked_for(void **state)
{
	(void)state;
	static struct wheel_entry entries[10];
	struct wheel_entry *due[10];
	memset(entries, 0, sizeof(entries));
	wheel_init(&wheel, START_US);
	for (unsigned i = 0; i < 10; i++)
		wheel_set(&wheel, &entries[i], START_US);
	assert_int_equal(wheel_expired(&wheel, START_US + 100000, due, 4), 4);
	assert_int_equal(wheel_expired(&wheel, START_US + 100000, due, 4), 4);
	assert_int_equal(wheel_expired(&wheel, START_US + 100000, due, 4), 2);
}

static void test_quiet_never_oversleeps(void **state)
{
	(void)state;
	struct wheel_entry entry = {0};
	wheel_init(&wheel, START_US);
	assert_int_equal(wheel_quiet_us(&wheel, START_US, 1000000), 1000000);
	wheel_set(&wheel, &entry, START_US + 300000);
	uint64_t quiet_us = wheel_quiet_us(&wheel, START_US, 1000000);
	assert_true(quiet_us <= 300000 + 2 * WHEEL_TICK_US);
	assert_true(quiet_us >= 290000);
}

// One random step on the wheel and on the twin; `deadline_us` 0 means not armed.
static void step(struct wheel_entry *entries, uint64_t *deadline_us, uint64_t now_us)
{
	unsigned i = (unsigned)rand() % ENTRIES;
	if (rand() % 4 == 0) {
		wheel_remove(&wheel, &entries[i]);
		deadline_us[i] = 0;
		return;
	}
	deadline_us[i] = now_us + (uint64_t)(rand() % 20000000);
	wheel_set(&wheel, &entries[i], deadline_us[i]);
}

static void test_twin(void **state)
{
	(void)state;
	static struct wheel_entry entries[ENTRIES];
	static uint64_t deadline_us[ENTRIES];
	unsigned seed = 20261201;
	print_message("seed %u\n", seed);
	srand(seed);
	wheel_init(&wheel, START_US);
	uint64_t now_us = START_US;
	for (int round = 0; round < 20000; round++) {
		step(entries, deadline_us, now_us);
		now_us += (uint64_t)(rand() % 30000);
		struct wheel_entry *due[ENTRIES];
		unsigned count = wheel_expired(&wheel, now_us, due, ENTRIES);
		for (unsigned i = 0; i < count; i++) {
			size_t at = (size_t)(due[i] - entries);
			assert_true(deadline_us[at] != 0 && deadline_us[at] <= now_us);
			deadline_us[at] = 0;
		}
		for (unsigned i = 0; i < ENTRIES; i++)
			assert_true(deadline_us[i] == 0 ||
				    deadline_us[i] + 2 * WHEEL_TICK_US >= now_us);
	}
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_fires_within_two_ticks),
		cmocka_unit_test(test_later_is_lazy_earlier_is_not),
		cmocka_unit_test(test_after_a_long_sleep_all_fire),
		cmocka_unit_test(test_no_more_than_asked_for),
		cmocka_unit_test(test_quiet_never_oversleeps),
		cmocka_unit_test(test_twin),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
