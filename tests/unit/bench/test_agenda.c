// Agenda: under random operations the same as a list that is searched.

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "bench/crowd/agenda.h"
#include "bench/crowd/random.h"

#define IDS 50u
#define NEVER INT64_MAX

static int64_t earliest(const int64_t *times_us)
{
	int64_t next = NEVER;
	for (uint32_t i = 0; i < IDS; i++)
		next = times_us[i] < next ? times_us[i] : next;
	return next;
}

static void is_the_same_as_a_list(void **state)
{
	(void)state;
	for (uint64_t seed = 1; seed <= 20; seed++) {
		uint64_t random = seed;
		int64_t times_us[IDS], now_us = 0;
		struct agenda agenda;
		assert_true(agenda_init(&agenda, IDS));
		for (uint32_t i = 0; i < IDS; i++)
			times_us[i] = NEVER;
		for (int step = 0; step < 5000; step++) {
			uint32_t id = (uint32_t)(random_next(&random) % IDS);
			switch (random_next(&random) % 4) {
			case 0:
			case 1:
				times_us[id] = now_us + (int64_t)(random_next(&random) % 40);
				agenda_set(&agenda, id, times_us[id]);
				break;
			case 2:
				times_us[id] = NEVER;
				agenda_remove(&agenda, id);
				break;
			default:
				now_us += (int64_t)(random_next(&random) % 5);
				if (agenda_take(&agenda, now_us, &id)) {
					assert_int_equal(times_us[id], earliest(times_us));
					assert_true(times_us[id] <= now_us);
					times_us[id] = NEVER;
				} else {
					assert_true(earliest(times_us) > now_us);
				}
			}
			if (agenda_next_us(&agenda) != earliest(times_us))
				fail_msg("seed %lu, step %d", (unsigned long)seed, step);
		}
		agenda_fini(&agenda);
	}
}

int main(void)
{
	const struct CMUnitTest tests[] = {cmocka_unit_test(is_the_same_as_a_list)};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
