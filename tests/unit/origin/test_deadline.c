// The heap against a naive twin, an array that is searched, under random operations.

#include "dataplane/origin/deadline.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stdbool.h>
#include <stdlib.h>
#include <time.h>

#include <cmocka.h>

#define COUNT 200
#define OPERATIONS 20000

static uint64_t random_state;

static uint32_t roll(uint32_t below)
{
	random_state = random_state * 6364136223846793005u + 1442695040888963407u;
	return (uint32_t)(random_state >> 33) % below;
}

static uint64_t first_of(const struct deadline *all)
{
	uint64_t first = DEADLINE_NEVER;
	for (int i = 0; i < COUNT; i++)
		if (all[i].place && all[i].at_us < first)
			first = all[i].at_us;
	return first;
}

static void the_first_is_always_the_first(void **state)
{
	(void)state;
	uint64_t seed = random_state = (uint64_t)time(NULL);
	print_message("             seed %llu\n", (unsigned long long)seed);
	struct deadline_heap heap;
	struct deadline all[COUNT] = {0};
	uint32_t set = 0;
	assert_int_equal(deadline_heap_init(&heap, COUNT), 0);
	for (int n = 0; n < OPERATIONS; n++) {
		struct deadline *d = &all[roll(COUNT)];
		bool was_set = d->place;
		if (roll(3) == 0) {
			deadline_clear(&heap, d);
			set -= was_set;
		} else {
			deadline_set(&heap, d, roll(1000));
			set += !was_set;
		}
		const struct deadline *first = deadline_first(&heap);
		assert_int_equal(heap.count, set);
		assert_int_equal(first ? first->at_us : DEADLINE_NEVER, first_of(all));
	}
	for (uint64_t last = 0; set > 0; set--) { // what comes out comes in order
		struct deadline *first = deadline_first(&heap);
		assert_true(first->at_us >= last);
		last = first->at_us;
		deadline_clear(&heap, first);
	}
	assert_null(deadline_first(&heap));
	deadline_heap_fini(&heap);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(the_first_is_always_the_first),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
