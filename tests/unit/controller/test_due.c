// Due, against a naive twin: an array of times.

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>

#include <cmocka.h>

#include "controlplane/controller/due.h"
#include "tests/unit/controller/random.h"

#define IDS 60u
#define NOT_IN UINT64_MAX

static uint32_t twin_at(const uint64_t *times, uint64_t now)
{
	uint32_t first = 0;
	for (uint32_t id = 1; id <= IDS; id++) {
		if (times[id] != NOT_IN && times[id] <= now &&
			(first == 0 || times[id] < times[first]))
			first = id;
	}
	return first;
}

static uint32_t twin_count(const uint64_t *times, uint64_t now)
{
	uint32_t count = 0;
	for (uint32_t id = 1; id <= IDS; id++)
		count += times[id] != NOT_IN && times[id] <= now;
	return count;
}

static void agrees_with_the_twin(void **state)
{
	(void)state;
	for (uint64_t seed = 1; seed <= 30; seed++) {
		uint64_t random = seed, times[IDS + 1];
		struct due due;
		assert_true(due_init(&due, IDS));
		for (uint32_t id = 0; id <= IDS; id++)
			times[id] = NOT_IN;
		for (int step = 0; step < 3000; step++) {
			const uint32_t id = 1 + (uint32_t)random_below(&random, IDS);
			if (random_below(&random, 3) > 0) {
				times[id] = random_below(&random, 100);
				due_set(&due, id, times[id]);
			} else {
				times[id] = NOT_IN;
				due_remove(&due, id);
			}
			const uint64_t now = random_below(&random, 110);
			const uint32_t count = twin_count(times, now);
			CHECK_SEED(seed, due_at(&due, now) == twin_at(times, now));
			CHECK_SEED(seed, due_count(&due, now, IDS) == count);
			CHECK_SEED(seed, due_count(&due, now, 5) == (count < 5 ? count : 5));
		}
		due_fini(&due);
	}
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(agrees_with_the_twin),
	};
	return cmocka_run_group_tests_name("due", tests, NULL, NULL);
}
