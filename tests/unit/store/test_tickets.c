// Ticket seeds: the store's, the same after a restart, followed by the next one in time.

#include "controlplane/store/tickets.h"
#include "tests/unit/store/sqlite_place.h"

#include <sqlite3.h>

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdio.h>
#include <string.h>

#include <cmocka.h>

#define EPOCH TICKETS_EPOCH_S
#define NOW (SQLITE_PLACE_NOW / 1000 / EPOCH * EPOCH) // an epoch begins

// What tickets_list() says, copied.
struct seeds {
	uint32_t count;
	uint8_t of[TICKETS_MAX][STORE_SECRET_BYTES];
};

static struct seeds seeds_of(const struct tickets *t)
{
	const uint8_t *at[TICKETS_MAX];
	struct seeds seeds = {.count = tickets_list(t, at)};
	for (uint32_t i = 0; i < seeds.count; i++)
		memcpy(seeds.of[i], at[i], sizeof(seeds.of[i]));
	return seeds;
}

static struct tickets *open_at(struct store *store, uint64_t now_s)
{
	struct tickets *t;
	assert_int_equal(tickets_create(store, now_s, &t), 0);
	return t;
}

#define assert_same(a, b) assert_memory_equal(a, b, STORE_SECRET_BYTES)
#define assert_other(a, b) assert_memory_not_equal(a, b, STORE_SECRET_BYTES)

static void the_next_becomes_the_current(void **state)
{
	(void)state;
	struct store *store = sqlite_place_open();
	struct tickets *t = open_at(store, NOW);
	struct seeds first = seeds_of(t);
	assert_int_equal(first.count, 2); // no previous one
	assert_other(first.of[0], first.of[1]);
	assert_false(tickets_poll(t, NOW + EPOCH - 1));
	assert_true(tickets_poll(t, NOW + EPOCH));
	assert_false(tickets_poll(t, NOW + EPOCH));
	struct seeds second = seeds_of(t);
	assert_int_equal(second.count, 3);
	assert_same(second.of[0], first.of[1]);
	assert_same(second.of[1], first.of[0]); // previous
	assert_true(tickets_poll(t, NOW + 2 * EPOCH));
	struct seeds third = seeds_of(t);
	assert_same(third.of[0], second.of[2]);
	assert_same(third.of[1], second.of[0]);
	for (uint32_t i = 0; i < third.count; i++)
		assert_other(third.of[i], first.of[0]); // gone
	tickets_destroy(t);
	store_close(store, NOW);
}

static void a_restart_changes_nothing(void **state)
{
	(void)state;
	struct store *store = sqlite_place_open();
	struct tickets *t = open_at(store, NOW);
	struct seeds before = seeds_of(t);
	tickets_destroy(t);
	store_close(store, NOW);
	store = sqlite_place_open();
	t = open_at(store, NOW + 5);
	struct seeds after = seeds_of(t);
	assert_memory_equal(&before, &after, sizeof(before));
	tickets_destroy(t);
	t = open_at(store, NOW + EPOCH); // it was down when the epoch ended
	after = seeds_of(t);
	assert_int_equal(after.count, 3);
	assert_same(after.of[0], before.of[1]);
	tickets_destroy(t);
	tickets_destroy(NULL);
	store_close(store, NOW);
}

static void what_is_over_leaves_the_store(void **state)
{
	(void)state;
	struct store *store = sqlite_place_open();
	struct tickets *t = open_at(store, NOW);
	for (uint64_t i = 1; i <= 5; i++) {
		tickets_poll(t, NOW + i * EPOCH);
		assert_int_equal(sqlite_place_count_of(store, STORE_TICKET), 3);
	}
	tickets_destroy(t);
	struct seeds gone = seeds_of(t = open_at(store, NOW + 1000 * EPOCH)); // a long time down
	assert_int_equal(gone.count, 2);
	assert_int_equal(sqlite_place_count_of(store, STORE_TICKET), 2);
	tickets_destroy(t);
	store_close(store, NOW);
}

// Another process of the same store, in the same epoch or the next, knows the same ones.
static void whoever_shares_the_store_has_the_same(void **state)
{
	(void)state;
	struct store *store = sqlite_place_open();
	struct tickets *a = open_at(store, NOW + 10), *b = open_at(store, NOW + EPOCH + 10);
	struct seeds one = seeds_of(a), other = seeds_of(b);
	assert_same(one.of[1], other.of[0]); // a's next is b's current
	assert_same(one.of[0], other.of[1]); // and a's current b's previous
	tickets_destroy(a);
	tickets_destroy(b);
	store_close(store, NOW);
}

#define STORY(story) cmocka_unit_test_setup_teardown(story, sqlite_place_new, sqlite_place_remove)

int main(void)
{
	const struct CMUnitTest tests[] = {
		STORY(the_next_becomes_the_current),
		STORY(a_restart_changes_nothing),
		STORY(what_is_over_leaves_the_store),
		STORY(whoever_shares_the_store_has_the_same),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
