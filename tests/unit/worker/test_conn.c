// Connections: their lists against a naive twin; what they may keep, and errands, at the limit and
// one beyond.

#include "dataplane/conn.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#define SERVED 40u
#define RESERVE 2u
#define ALL (SERVED + RESERVE)
#define ERRANDS 3u
#define BUFFERS 9u
#define KEPT_MAX 100u

static struct conn_table table;

static int start(void **state)
{
	(void)state;
	const struct conn_plan plan = {.serve_max = SERVED,
		.reserve = RESERVE,
		.errands = ERRANDS,
		.buffers = BUFFERS,
		.buffer_bytes = KEPT_MAX};
	return conn_table_init(&table, &plan);
}

static int end(void **state)
{
	(void)state;
	conn_table_fini(&table);
	return 0;
}

static void test_all_are_taken_once(void **state)
{
	(void)state;
	struct stream stream;
	struct conn *taken[ALL];
	for (unsigned i = 0; i < ALL; i++) {
		taken[i] = conn_take(&table, &stream);
		assert_non_null(taken[i]);
		assert_int_equal(conn_index(&table, taken[i]), i); // memory is used from its start
	}
	assert_null(conn_take(&table, &stream));
	uint32_t generation = taken[7]->generation;
	assert_ptr_equal(conn_of(&table, 7, generation), taken[7]);
	conn_give(&table, taken[7]);
	assert_null(conn_of(&table, 7, generation));
	assert_ptr_equal(conn_take(&table, &stream), taken[7]); // the last given back
	assert_null(conn_of(&table, 7, generation));
	assert_int_equal(table.count, ALL);
}

// The twin of a list: indices in order.
struct twin {
	unsigned at[ALL], count;
};

static void twin_leave(struct twin *twin, unsigned index)
{
	for (unsigned i = 0; i < twin->count; i++)
		if (twin->at[i] == index) {
			twin->count--;
			memmove(&twin->at[i], &twin->at[i + 1],
				(twin->count - i) * sizeof(twin->at[0]));
			return;
		}
}

static void check_list(enum conn_list list, const struct twin *twin)
{
	const struct conn *conn = conn_first(&table, list);
	for (unsigned i = 0; i < twin->count; i++) {
		assert_non_null(conn);
		assert_int_equal(conn_index(&table, conn), twin->at[i]);
		conn = conn_next(&table, conn);
	}
	assert_null(conn);
}

static void test_lists_as_their_twins(void **state)
{
	(void)state;
	static struct twin twins[CONN_LISTS];
	struct conn *conns[ALL];
	struct stream stream;
	unsigned seed = 20261130;
	print_message("seed %u\n", seed);
	srand(seed);
	for (unsigned i = 0; i < ALL; i++)
		conns[i] = conn_take(&table, &stream);
	for (unsigned step = 0; step < 20000; step++) {
		unsigned i = (unsigned)rand() % ALL;
		enum conn_list list = rand() % 2 ? CONN_IDLE : CONN_RESUMED;
		bool was_on = conns[i]->list == list;
		if (rand() % 2) {
			conn_enter(&table, conns[i], list);
			if (!was_on) {
				twin_leave(&twins[CONN_IDLE], i);
				twin_leave(&twins[CONN_RESUMED], i);
				twins[list].at[twins[list].count++] = i;
			}
		} else {
			conn_leave(&table, conns[i], list);
			twin_leave(&twins[list], i);
		}
		check_list(CONN_IDLE, &twins[CONN_IDLE]);
		check_list(CONN_RESUMED, &twins[CONN_RESUMED]);
	}
}

static void test_kept_at_the_limit(void **state)
{
	(void)state;
	static char bytes[CONN_KEPT_BUFFERS * KEPT_MAX + 1];
	struct stream stream;
	struct conn *conn = conn_take(&table, &stream);
	assert_null(conn_kept(&table, conn));
	assert_true(conn_keep(&table, conn, (struct span){bytes, sizeof(bytes) - 2}));
	assert_true(conn_keep(&table, conn, SPAN("z")));
	assert_int_equal(buffers_taken(table.buffers), CONN_KEPT_BUFFERS);
	assert_false(conn_keep(&table, conn, SPAN("z")));
	conn_drop_kept(&table, conn);
	assert_false(conn_keep(&table, conn, (struct span){bytes, sizeof(bytes)}));
	conn_give(&table, conn);
	assert_int_equal(buffers_taken(table.buffers), 0);
	for (unsigned i = 0; i <= BUFFERS; i++)
		assert_int_equal(
			conn_keep(&table, conn_take(&table, &stream), SPAN("a")), i < BUFFERS);
}

static void test_a_head_is_in_the_first_buffer(void **state)
{
	(void)state;
	struct stream stream;
	char bytes[KEPT_MAX];
	struct conn *conn = conn_take(&table, &stream);
	memset(bytes, 'a', sizeof(bytes));
	assert_true(conn_keep(&table, conn, (struct span){bytes, KEPT_MAX - 1}));
	assert_true(conn_keep(&table, conn, SPAN("zyx")));
	assert_int_equal(buffers_taken(table.buffers), 2);
	conn_kept(&table, conn)->scanned = 50;
	conn_drop(&table, conn, KEPT_MAX - 1);
	assert_int_equal(conn_kept(&table, conn)->bytes, 3);
	assert_int_equal(conn_kept(&table, conn)->scanned, 0);
	assert_memory_equal(conn_kept(&table, conn)->at, "zyx", 3);
	assert_int_equal(buffers_taken(table.buffers), 1);
	conn_drop(&table, conn, 3);
	assert_null(conn_kept(&table, conn));
	assert_int_equal(buffers_taken(table.buffers), 0);
	conn_drop(&table, conn, 0);
}

// Against one piece of memory: what is kept at random is dropped in the same order.
static void test_kept_is_what_came(void **state)
{
	(void)state;
	static char came[CONN_KEPT_BUFFERS * KEPT_MAX];
	struct stream stream;
	struct conn *conn = conn_take(&table, &stream);
	size_t count = 0;
	srand(7);
	for (unsigned step = 0; step < 20000; step++) {
		const size_t room = sizeof(came) - count;
		const size_t add = (size_t)rand() % (3 * KEPT_MAX) + 1;
		if (rand() % 2 && add <= room) {
			for (size_t i = 0; i < add; i++)
				came[count + i] = (char)rand();
			assert_true(conn_keep(&table, conn, (struct span){came + count, add}));
			count += add;
		}
		const struct conn_kept *kept = conn_kept(&table, conn);
		const uint32_t first = kept ? kept->bytes : 0;
		assert_int_equal(first, count < KEPT_MAX ? count : KEPT_MAX);
		assert_memory_equal(kept ? kept->at : came, came, first);
		const uint32_t drop = (uint32_t)rand() % (first + 1);
		conn_drop(&table, conn, drop);
		count -= drop;
		memmove(came, came + drop, count);
		assert_int_equal(buffers_taken(table.buffers), (count + KEPT_MAX - 1) / KEPT_MAX);
	}
}

static void test_errands_at_the_limit(void **state)
{
	(void)state;
	struct stream stream;
	struct conn *conns[ERRANDS + 1];
	for (unsigned i = 0; i <= ERRANDS; i++) {
		conns[i] = conn_take(&table, &stream);
		struct conn_errand *errand = conn_begin_errand(&table, conns[i]);
		assert_ptr_equal(errand, conn_errand(&table, conns[i]));
		assert_int_equal(errand != NULL, i < ERRANDS);
		if (errand)
			conn_list_errand(&table, errand);
	}
	conn_errand(&table, conns[1])->extra = buffers_take(table.buffers);
	conn_give(&table, conns[1]); // with its errand, and what that holds
	assert_int_equal(buffers_taken(table.buffers), 0);
	assert_ptr_equal(table.sessions.next, conn_errand(&table, conns[0]));
	assert_ptr_equal(table.sessions.next->next, conn_errand(&table, conns[2]));
	assert_ptr_equal(table.sessions.next->next->next, &table.sessions);
	struct conn_errand *errand = conn_begin_errand(&table, conns[ERRANDS]);
	assert_non_null(errand);
	assert_int_equal(errand->extra, 0);
	assert_null(errand->next);
}

#define TEST(name) cmocka_unit_test_setup_teardown(name, start, end)

int main(void)
{
	const struct CMUnitTest tests[] = {
		TEST(test_all_are_taken_once),
		TEST(test_lists_as_their_twins),
		TEST(test_kept_at_the_limit),
		TEST(test_a_head_is_in_the_first_buffer),
		TEST(test_kept_is_what_came),
		TEST(test_errands_at_the_limit),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
