// The table of TIME_WAIT against a naive twin: a list in the order of entering.

#include "dataplane/net/tcp/wait.h"

#include "tests/unit/http/dice.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>

#include <cmocka.h>

#define MAX 20u
#define TUPLES 60u
#define LASTS_MS 1000u
#define STEPS 30000u

static struct {
	bool is_in, is_over;
	uint32_t ends_ms, entered;
} twin[TUPLES + 1];

static uint32_t places[STEPS]; // tuple of each entering, in their order; 0: a hole

static unsigned count_waiting(uint32_t oldest, uint32_t next)
{
	unsigned count = 0;
	for (; oldest < next; oldest++)
		count += places[oldest] && !twin[places[oldest]].is_over;
	return count;
}

static void test_oldest_makes_room(void **state)
{
	(void)state;
	struct tcp_wait *wait = wait_create(2);
	struct tcp_wait_entry entry = {.ends_ms = 100};
	for (entry.tuple = 1; entry.tuple <= 2; entry.tuple++)
		assert_true(wait_add(wait, &entry));
	assert_false(wait_add(wait, &entry)); // the third
	assert_null(wait_find(wait, 1, 0));
	assert_non_null(wait_find(wait, 2, 0));
	wait_remove(wait, wait_find(wait, 2, 0));
	entry.tuple = 4;
	assert_true(wait_add(wait, &entry)); // into the hole, which is the oldest
	assert_non_null(wait_find(wait, 3, 0));
	assert_non_null(wait_find(wait, 4, 0));
	wait_destroy(wait);
}

static void test_ends(void **state)
{
	(void)state;
	struct tcp_wait *wait = wait_create(4);
	uint32_t start = UINT32_MAX - 50; // the clock wraps meanwhile
	for (uint32_t i = 1; i <= 3; i++) {
		struct tcp_wait_entry entry = {.tuple = i, .ends_ms = start + i * 40};
		wait_add(wait, &entry);
	}
	assert_non_null(wait_find(wait, 1, start + 39));
	assert_null(wait_find(wait, 1, start + 40)); // over, though nobody has looked
	assert_int_equal(wait_expire(wait, start + 40), 2);
	assert_int_equal(wait_expire(wait, start + 79), 2);
	assert_int_equal(wait_expire(wait, start + 500), 0);
	wait_destroy(wait);
}

// The oldest place of the twin's: what was taken out of the middle keeps its place until then.
static void test_like_its_twin(void **state)
{
	(void)state;
	struct tcp_wait *wait = wait_create(MAX);
	uint32_t oldest = 0, next = 0, now_ms = 5;
	for (unsigned step = 0; step < STEPS; step++) {
		now_ms += dice(40);
		uint32_t tuple = 1 + dice(TUPLES);
		bool is_there = twin[tuple].is_in && twin[tuple].ends_ms > now_ms;
		struct tcp_wait_entry *found = wait_find(wait, tuple, now_ms);
		assert_true((found != NULL) == is_there);
		if (is_there) {
			assert_int_equal(found->snd_nxt, twin[tuple].entered);
			if (dice(3) == 0) {
				wait_remove(wait, found);
				places[twin[tuple].entered] = 0;
				twin[tuple].is_in = false;
			}
		} else if (!twin[tuple].is_in) {
			bool is_full = next - oldest == MAX;
			bool evicts = is_full && places[oldest] != 0;
			if (is_full)
				twin[places[oldest++]].is_in = false;
			struct tcp_wait_entry entry = {.tuple = tuple,
				.snd_nxt = next,
				.ends_ms = now_ms + LASTS_MS,
				.is_over = dice(2)};
			assert_true(wait_has_room(wait) == !is_full);
			twin[tuple].is_over = entry.is_over;
			assert_true(wait_add(wait, &entry) == !evicts);
			twin[tuple].is_in = true;
			twin[tuple].ends_ms = entry.ends_ms;
			twin[tuple].entered = next;
			places[next++] = tuple;
		}
		if (dice(2) == 0) {
			while (oldest < next &&
				(places[oldest] == 0 || twin[places[oldest]].ends_ms <= now_ms))
				twin[places[oldest++]].is_in = false;
			assert_int_equal(wait_expire(wait, now_ms), count_waiting(oldest, next));
		}
	}
	wait_destroy(wait);
}

int main(void)
{
	dice_begin();
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_oldest_makes_room),
		cmocka_unit_test(test_ends),
		cmocka_unit_test(test_like_its_twin),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
