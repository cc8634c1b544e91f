// Moves: the same holder has the same place, over restarts too; the last ones are remembered, and
// no more; against a naive twin under random operations.

#include "controlplane/codes/moves.h"
#include "tests/unit/store/sqlite_place.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stdlib.h>

#include <cmocka.h>

#define NOW SQLITE_PLACE_NOW

static struct store *store;
static struct moves *moves;

static int begin(void **state)
{
	sqlite_place_new(state);
	store = sqlite_place_open();
	return moves_create(store, &moves);
}

static int end(void **state)
{
	moves_destroy(moves);
	moves_destroy(NULL);
	store_close(store, NOW);
	return sqlite_place_remove(state);
}

static void put(const struct store_move *move)
{
	assert_true(store_put(store, &(struct store_record){.kind = STORE_MOVE, .move = *move}));
	if (store->status.free_count < SQLITE_PLACE_RECORDS_MAX / 2)
		store_begin(store, NOW);
}

static void restart(void)
{
	moves_destroy(moves);
	store_begin(store, NOW);
	store_close(store, NOW);
	store = sqlite_place_open();
	assert_int_equal(moves_create(store, &moves), 0);
}

static void add(uint64_t holder, bool is_once, uint64_t visitor)
{
	struct store_move move = {.holder = holder,
		.is_once = is_once,
		.lane_id = 9,
		.visitor = visitor,
		.key = 3 * visitor};
	moves_add(moves, &move);
	put(&move);
}

// The visitor that a holder has become; 0: none.
static uint64_t visitor_of(uint64_t holder, bool is_once)
{
	const struct store_move *move = moves_find(moves, holder, is_once);
	if (!move)
		return 0;
	assert_true(move->key == 3 * move->visitor && move->lane_id == 9);
	return move->visitor;
}

static bool forget(uint64_t visitor, uint64_t among)
{
	struct store_move move;
	const bool is_forgotten = moves_forget(moves, visitor, among, &move);
	if (is_forgotten)
		put(&move);
	return is_forgotten;
}

static void test_the_same_again(void **state)
{
	(void)state;
	assert_int_equal(visitor_of(5, false), 0);
	add(5, false, 50);
	add(6, false, 60);
	add(5, true, 51); // the number of a page is no ticket
	for (int i = 0; i < 2; i++) {
		assert_int_equal(visitor_of(5, false), 50);
		assert_int_equal(visitor_of(5, true), 51);
		assert_int_equal(visitor_of(6, false), 60);
		assert_int_equal(visitor_of(6, true), 0);
		restart();
	}
	add(5, false, 52); // its lane was taken away meanwhile
	assert_int_equal(visitor_of(5, false), 52);
	restart();
	assert_int_equal(visitor_of(5, false), 52);
	assert_false(forget(60, 2)); // too long ago
	assert_true(forget(60, 3));
	assert_false(forget(60, 100));
	assert_int_equal(visitor_of(6, false), 0);
	restart();
	assert_int_equal(visitor_of(6, false), 0);
}

static void test_the_last_ones(void **state)
{
	(void)state;
	for (uint64_t i = 1; i <= STORE_MOVES_MAX; i++)
		add(i << 20, false, i);
	assert_int_equal(visitor_of(1 << 20, false), 1);
	add(7, false, 70);
	assert_int_equal(visitor_of(1 << 20, false), 0);
	assert_int_equal(visitor_of(2 << 20, false), 2);
	restart();
	assert_int_equal(visitor_of(1 << 20, false), 0);
	assert_int_equal(visitor_of(2 << 20, false), 2);
	assert_int_equal(visitor_of(7, false), 70);
	assert_int_equal(sqlite_place_count_of(store, STORE_MOVE), STORE_MOVES_MAX);
}

static void test_twin(void **state)
{
	(void)state;
	enum { HOLDERS = 500 };
	static uint64_t twin[HOLDERS];
	const unsigned seed = 20261130;
	print_message("seed %u\n", seed);
	srand(seed);
	for (uint64_t round = 1; round < 30000; round++) {
		const uint64_t holder = (uint64_t)rand() % HOLDERS;
		const int what = rand() % 8;
		if (what == 0 && twin[holder] != 0) {
			assert_true(forget(twin[holder], UINT64_MAX));
			twin[holder] = 0;
		} else if (what < 3) {
			add(holder, false, round);
			twin[holder] = round;
		} else if (rand() % 5000 == 0) {
			restart();
		}
		assert_int_equal(visitor_of(holder, false), twin[holder]);
	}
}

#define STORY(story) cmocka_unit_test_setup_teardown(story, begin, end)

int main(void)
{
	const struct CMUnitTest tests[] = {
		STORY(test_the_same_again),
		STORY(test_the_last_ones),
		STORY(test_twin),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
