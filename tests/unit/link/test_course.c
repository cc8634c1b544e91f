// The course of a link: its moves, its pauses, and which sentinel is asked.

#include "controlplane/link/link_course.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>

#include <cmocka.h>

#define MS UINT64_C(1000)

// Letters: b begin, t told, c connected, g greeted, s served, d doubted, f failed.
static void play(struct link_course *course, const char *letters, uint64_t now_us)
{
	for (const char *c = letters; *c; c++) {
		if (*c == 'b')
			link_course_begin(course, now_us);
		else if (*c == 't')
			link_course_told(course);
		else if (*c == 'c')
			link_course_connected(course);
		else if (*c == 'g')
			link_course_greeted(course);
		else if (*c == 's')
			link_course_served(course);
		else if (*c == 'd')
			link_course_doubted(course);
		else
			link_course_failed(course);
	}
}

static void test_moves(void **state)
{
	(void)state;
	static const struct {
		uint32_t sentinels;
		const char *letters;
		enum link_course_state end;
		uint32_t sentinel, failures;
	} table[] = {
		{0, "", LINK_COURSE_RESTING, 0, 0},
		{0, "b", LINK_COURSE_CONNECTING, 0, 0},
		{0, "bc", LINK_COURSE_GREETING, 0, 0},
		{0, "bcg", LINK_COURSE_READY, 0, 0},
		{0, "bf", LINK_COURSE_RESTING, 0, 1},
		{0, "bcf", LINK_COURSE_RESTING, 0, 1},
		{0, "bcgf", LINK_COURSE_RESTING, 0, 0},
		{0, "bfbfbcg", LINK_COURSE_READY, 0, 2},
		{0, "bfbfbcgs", LINK_COURSE_READY, 0, 0},
		{0, "bcgfbf", LINK_COURSE_RESTING, 0, 1},
		{0, "bcgdf", LINK_COURSE_RESTING, 0, 1},
		{0, "bcgdfbcgdf", LINK_COURSE_RESTING, 0, 2}, // greeted each time, and no use
		{0, "bcgdfbcgsf", LINK_COURSE_RESTING, 0, 0},
		{3, "b", LINK_COURSE_ASKING, 0, 0},
		{3, "bt", LINK_COURSE_CONNECTING, 0, 0},
		{3, "btcg", LINK_COURSE_READY, 0, 0},
		{3, "bf", LINK_COURSE_RESTING, 1, 1},
		{3, "bfbtf", LINK_COURSE_RESTING, 2, 2},
		{3, "bfbfbf", LINK_COURSE_RESTING, 0, 3},
		{3, "bfbtcgsf", LINK_COURSE_RESTING, 1, 0}, // the one that was right
		{1, "bfbf", LINK_COURSE_RESTING, 0, 2},
	};
	for (size_t i = 0; i < sizeof(table) / sizeof(table[0]); i++) {
		struct link_course course;
		link_course_init(&course, table[i].sentinels, 1);
		print_message("%u sentinels: %s\n", table[i].sentinels, table[i].letters);
		play(&course, table[i].letters, 0);
		assert_int_equal(course.state, table[i].end);
		assert_int_equal(course.sentinel, table[i].sentinel);
		assert_int_equal(course.failures, table[i].failures);
	}
}

// The first at once, then later and later, never more than 500 ms from one beginning to the next.
static void test_pauses(void **state)
{
	(void)state;
	static const uint64_t pauses_ms[] = {0, 50, 100, 200, 400, 500, 500, 500};
	for (uint64_t seed = 0; seed < 200; seed++) {
		struct link_course course;
		uint64_t now_us = 1000 * MS;
		link_course_init(&course, 0, seed);
		for (size_t i = 0; i < sizeof(pauses_ms) / sizeof(pauses_ms[0]); i++) {
			uint64_t next_us = link_course_next_us(&course, now_us);
			assert_true(next_us <= now_us + pauses_ms[i] * MS);
			assert_true(next_us >= now_us + pauses_ms[i] * MS * 3 / 4);
			now_us = next_us;
			play(&course, "bf", now_us);
		}
	}
}

// A try that took its whole time is followed by the next at once.
static void test_long_tries(void **state)
{
	(void)state;
	struct link_course course;
	link_course_init(&course, 0, 7);
	for (int i = 0; i < 10; i++)
		play(&course, "bf", 0);
	assert_int_equal(link_course_next_us(&course, 500 * MS), 500 * MS);
	assert_int_equal(link_course_next_us(&course, 9000 * MS), 9000 * MS);
}

// A thousand appliances that lost the same server do not come back in one moment.
static void test_not_in_step(void **state)
{
	(void)state;
	unsigned tenths[10] = {0};
	for (uint64_t seed = 1; seed <= 1000; seed++) {
		struct link_course course;
		link_course_init(&course, 0, seed * UINT64_C(0x9e3779b97f4a7c15));
		for (int i = 0; i < 6; i++)
			play(&course, "bf", 0);
		uint64_t us = link_course_next_us(&course, 0);
		assert_in_range(us, 375 * MS, 500 * MS);
		tenths[(us - 375 * MS) * 10 / (125 * MS + 1)]++;
	}
	for (int i = 0; i < 10; i++)
		assert_in_range(tenths[i], 50, 150);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_moves),
		cmocka_unit_test(test_pauses),
		cmocka_unit_test(test_long_tries),
		cmocka_unit_test(test_not_in_step),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
