// Keyset, against a naive twin: a sorted array.

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "controlplane/controller/keyset.h"
#include "tests/unit/controller/random.h"

#define MEMBERS_MAX 100u

struct member {
	uint64_t key, visitor;
	uint32_t id;
};

struct twin {
	struct member members[MEMBERS_MAX];
	uint32_t count;
};

static uint32_t twin_below(const struct twin *twin, uint64_t key, uint64_t visitor)
{
	uint32_t i = 0;
	while (i < twin->count &&
		(twin->members[i].key < key ||
			(twin->members[i].key == key && twin->members[i].visitor < visitor)))
		i++;
	return i;
}

static bool twin_has(const struct twin *twin, uint64_t key, uint64_t visitor)
{
	const uint32_t i = twin_below(twin, key, visitor);
	return i < twin->count && twin->members[i].key == key &&
	       twin->members[i].visitor == visitor;
}

static void insert(struct keyset *set, struct twin *twin, uint64_t seed, struct member member)
{
	member.id = keyset_insert(set, member.key, member.visitor);
	CHECK_SEED(seed, (member.id == 0) == (twin->count == MEMBERS_MAX));
	if (member.id == 0)
		return;
	const uint32_t i = twin_below(twin, member.key, member.visitor);
	memmove(&twin->members[i + 1], &twin->members[i], (twin->count - i) * sizeof(member));
	twin->members[i] = member;
	twin->count++;
}

static void remove_one(struct keyset *set, struct twin *twin, uint32_t i)
{
	keyset_remove(set, twin->members[i].id);
	twin->count--;
	memmove(&twin->members[i], &twin->members[i + 1],
		(twin->count - i) * sizeof(struct member));
}

static void check(const struct keyset *set, const struct twin *twin, uint64_t seed, uint64_t key,
	uint64_t visitor)
{
	CHECK_SEED(seed, keyset_count(set) == twin->count);
	CHECK_SEED(seed, keyset_below(set, key, visitor) == twin_below(twin, key, visitor));
	CHECK_SEED(seed, (keyset_find(set, key, visitor) != 0) == twin_has(twin, key, visitor));
	const uint32_t below = twin_below(twin, key, visitor);
	CHECK_SEED(seed, keyset_from(set, key, visitor) ==
				 (below < twin->count ? twin->members[below].id : 0));
	CHECK_SEED(seed, keyset_first(set) == (twin->count ? twin->members[0].id : 0));
	CHECK_SEED(seed, keyset_last(set) == (twin->count ? twin->members[twin->count - 1].id : 0));
	if (twin->count > 0) {
		const struct member *member = &twin->members[seed % twin->count];
		CHECK_SEED(seed, keyset_find(set, member->key, member->visitor) == member->id);
		CHECK_SEED(seed, keyset_key(set, member->id) == member->key);
	}
}

static void agrees_with_the_twin(void **state)
{
	(void)state;
	for (uint64_t seed = 1; seed <= 30; seed++) {
		uint64_t random = seed;
		struct keyset set;
		struct twin twin = {.count = 0};
		assert_true(keyset_init(&set, MEMBERS_MAX, seed));
		for (int step = 0; step < 2000; step++) {
			const uint64_t key = random_below(&random, 60); // many equal ones
			const uint64_t visitor = random_below(&random, 10);
			// Grows to full, then shrinks to empty, and again.
			const bool grows = step / 500 % 2 == 0;
			if (random_below(&random, 4) < (grows ? 3u : 1u)) {
				if (!twin_has(&twin, key, visitor))
					insert(&set, &twin, seed, (struct member){key, visitor, 0});
			} else if (twin.count > 0) {
				remove_one(
					&set, &twin, (uint32_t)random_below(&random, twin.count));
			}
			check(&set, &twin, seed, key, visitor);
		}
		keyset_fini(&set);
	}
}

static uint32_t depth(const struct keyset *set, uint32_t id)
{
	if (id == 0)
		return 0;
	const uint32_t a = depth(set, set->nodes[id].smaller);
	const uint32_t b = depth(set, set->nodes[id].larger);
	return 1 + (a > b ? a : b);
}

static void stays_flat_in_order_of_arrival(void **state)
{
	(void)state;
	struct keyset set;
	assert_true(keyset_init(&set, 100000, 7));
	for (uint64_t key = 1; key <= 100000; key++)
		assert_int_not_equal(keyset_insert(&set, key, 0), 0);
	assert_int_equal(keyset_insert(&set, 100001, 0), 0); // one beyond
	assert_true(depth(&set, set.root) < 60); // log2 is 17
	keyset_fini(&set);
}

static void of_nobody(void **state)
{
	(void)state;
	struct keyset set;
	assert_true(keyset_init(&set, 0, 7));
	assert_int_equal(keyset_insert(&set, 1, 1), 0);
	assert_int_equal(keyset_first(&set), 0);
	assert_int_equal(keyset_below(&set, 1, 1), 0);
	assert_int_equal(keyset_from(&set, 0, 0), 0);
	keyset_fini(&set);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(agrees_with_the_twin),
		cmocka_unit_test(stays_flat_in_order_of_arrival),
		cmocka_unit_test(of_nobody),
	};
	return cmocka_run_group_tests_name("keyset", tests, NULL, NULL);
}
