// Idmap, against a naive twin: an array.

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>

#include <cmocka.h>

#include "controlplane/controller/idmap.h"
#include "tests/unit/controller/random.h"

#define IDS 200u // possible ones
#define COUNT_MAX 64u

static void agrees_with_the_twin(void **state)
{
	(void)state;
	for (uint64_t seed = 1; seed <= 30; seed++) {
		uint64_t random = seed;
		uint32_t values[IDS] = {0}, count = 0;
		struct idmap map;
		assert_true(idmap_init(&map, COUNT_MAX, seed));
		for (int step = 0; step < 5000; step++) {
			const uint64_t id = random_below(&random, IDS);
			const bool grows = step / 500 % 2 == 0;
			if (values[id] && random_below(&random, 4) < (grows ? 1u : 3u)) {
				idmap_remove(&map, id << 56); // unlike only in the high bits
				values[id] = 0;
				count--;
			} else if (!values[id] && count < COUNT_MAX) {
				values[id] = 1 + (uint32_t)random_below(&random, 1000);
				idmap_insert(&map, id << 56, values[id]);
				count++;
			}
			const uint64_t other = random_below(&random, IDS);
			CHECK_SEED(seed, map.count == count);
			CHECK_SEED(seed, idmap_find(&map, id << 56) == values[id & 0xff]);
			CHECK_SEED(seed, idmap_find(&map, other << 56) == values[other]);
		}
		idmap_fini(&map);
	}
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(agrees_with_the_twin),
	};
	return cmocka_run_group_tests_name("idmap", tests, NULL, NULL);
}
