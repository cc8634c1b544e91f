// The schedule: a table of moments, clocks that jump, and random schedules against a twin that
// lives through every moment.

#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>

#include <cmocka.h>

#include "controlplane/schedule/schedule.h"

#define COUNT_OF(array) (sizeof(array) / sizeof(array[0]))

static const struct schedule_event day[] = {
	{1000, 5000, 20000}, {30000, 30000, 40000}, {50000, 60000, 0}};

static const struct {
	const char *name;
	uint64_t now_ms;
	enum schedule_doors doors;
	int event;
	bool list_is_open;
} moments[] = {
	{"before all", 999, SCHEDULE_BEFORE, 0, false},
	{"the first gathers", 1000, SCHEDULE_GATHERING, 0, true},
	{"until it opens", 4999, SCHEDULE_GATHERING, 0, true},
	{"doors open, the list too", 5000, SCHEDULE_OPEN, 0, true},
	{"for a second", 5999, SCHEDULE_OPEN, 0, true},
	{"and is closed then", 6000, SCHEDULE_OPEN, 0, false},
	{"the last moment", 19999, SCHEDULE_OPEN, 0, false},
	{"closed is before the next", 20000, SCHEDULE_BEFORE, 1, false},
	{"one that nobody gathers for", 29999, SCHEDULE_BEFORE, 1, false},
	{"opens", 30000, SCHEDULE_OPEN, 1, true},
	{"and closes", 40000, SCHEDULE_BEFORE, 2, false},
	{"the last gathers", 50000, SCHEDULE_GATHERING, 2, true},
	{"and never closes", 1ull << 45, SCHEDULE_OPEN, 2, false},
};

static void each_moment(void **state)
{
	(void)state;
	for (size_t i = 0; i < COUNT_OF(moments); i++) {
		struct schedule s = {0};
		schedule_set(&s, day, COUNT_OF(day));
		struct schedule_view view = schedule_look(&s, moments[i].now_ms);
		print_message("%s\n", moments[i].name);
		assert_int_equal(view.doors, moments[i].doors);
		assert_int_equal(view.event, moments[i].event);
		if (moments[i].event != 1)
			assert_int_equal(view.list_is_open, moments[i].list_is_open);
	}
}

static void no_events_is_open(void **state)
{
	(void)state;
	struct schedule s = {0};
	schedule_set(&s, NULL, 0);
	assert_int_equal(schedule_look(&s, 5).doors, SCHEDULE_OPEN);
	assert_int_equal(schedule_look(&s, 5).event, -1);
	assert_false(schedule_open(&s, 5));
}

static void a_room_that_only_closes(void **state)
{
	(void)state;
	const struct schedule_event event = {0, 0, 9000};
	struct schedule s = {0};
	schedule_set(&s, &event, 1);
	assert_int_equal(schedule_look(&s, 8999).doors, SCHEDULE_OPEN);
	assert_int_equal(schedule_look(&s, 9000).doors, SCHEDULE_CLOSED);
	assert_false(schedule_open(&s, 9001));
}

// NTP steps, leap seconds that come twice: what was opened stays open, what was closed closed.
static void a_clock_that_goes_back(void **state)
{
	(void)state;
	struct schedule s = {0};
	schedule_set(&s, day, COUNT_OF(day));
	assert_int_equal(schedule_look(&s, 5000).doors, SCHEDULE_OPEN);
	assert_int_equal(schedule_look(&s, 4000).doors, SCHEDULE_OPEN);
	assert_int_equal(schedule_look(&s, 0).doors, SCHEDULE_OPEN);
	assert_int_equal(schedule_look(&s, 20000).doors, SCHEDULE_BEFORE);
	assert_int_equal(schedule_look(&s, 19000).doors, SCHEDULE_BEFORE);
}

// Another process whose clock is behind: it knows only what the store kept.
static void a_restart_behind_the_opening(void **state)
{
	(void)state;
	struct schedule s = {.opened_ms = 5000, .opened_at_ms = 5000};
	schedule_set(&s, day, COUNT_OF(day));
	assert_int_equal(schedule_look(&s, 3000).doors, SCHEDULE_OPEN);
}

static void a_jump_over_everything(void **state)
{
	(void)state;
	struct schedule s = {0};
	schedule_set(&s, day, COUNT_OF(day));
	schedule_look(&s, 2000);
	struct schedule_view view = schedule_look(&s, 55000);
	assert_int_equal(view.doors, SCHEDULE_GATHERING);
	assert_int_equal(view.event, 2);
	assert_int_equal(s.opened_ms, 0); // nobody saw the others
}

static void opened_by_command(void **state)
{
	(void)state;
	struct schedule s = {0};
	schedule_set(&s, day, COUNT_OF(day));
	assert_true(schedule_open(&s, 2000));
	struct schedule_view view = schedule_look(&s, 2999);
	assert_int_equal(view.doors, SCHEDULE_OPEN);
	assert_true(view.list_is_open);
	assert_false(schedule_look(&s, 3000).list_is_open);
	assert_false(schedule_open(&s, 3000));
	assert_int_equal(
		schedule_look(&s, 5500).list_is_open, false); // its time opens nothing anew
	assert_int_equal(schedule_look(&s, 20000).doors, SCHEDULE_BEFORE); // but closes it
	assert_true(schedule_open(&s, 20001)); // the next, though nobody has gathered
	assert_int_equal(schedule_look(&s, 20099).doors, SCHEDULE_BEFORE); // until all know
	assert_int_equal(schedule_look(&s, 20100).doors, SCHEDULE_OPEN);
	assert_int_equal(schedule_look(&s, 40000).event, 2);
}

static void a_reload_moves_the_opening(void **state)
{
	(void)state;
	static const struct schedule_event later[] = {{1000, 8000, 20000}};
	struct schedule s = {0};
	schedule_set(&s, day, COUNT_OF(day));
	assert_int_equal(schedule_look(&s, 4900).doors, SCHEDULE_GATHERING);
	schedule_set(&s, later, 1);
	assert_int_equal(schedule_look(&s, 5100).doors, SCHEDULE_GATHERING);
	assert_int_equal(schedule_look(&s, 8000).doors, SCHEDULE_OPEN);
}

static uint64_t seed;

static uint64_t draw(uint64_t below)
{
	seed = seed * 6364136223846793005u + 1442695040888963407u;
	return (seed >> 33) % below;
}

// Doors never open twice, close once, and only at the times of an event or by command.
static void random_days(void **state)
{
	(void)state;
	for (int round = 0; round < 2000; round++) {
		struct schedule_event events[5];
		struct schedule s = {0};
		const uint32_t count = 1 + (uint32_t)draw(5);
		uint64_t at = 20 * (1 + draw(20));
		for (uint32_t i = 0; i < count; i++) {
			events[i].gathers_ms = at;
			events[i].opens_ms = at + draw(2) * draw(30) * 20;
			events[i].closes_ms = at = events[i].opens_ms + 1 + draw(30) * 20;
			at += draw(2) * draw(20) * 20;
		}
		if (draw(2))
			events[count - 1].closes_ms = 0;
		schedule_set(&s, events, count);
		uint64_t latest = 0;
		for (int step = 0; step < 200; step++) {
			const uint64_t now = step > 5 ? (uint64_t)step * 40 - draw(100) : 1;
			latest = now > latest ? now : latest;
			const struct schedule_view view = schedule_look(&s, now);
			enum schedule_doors doors = SCHEDULE_BEFORE;
			uint64_t over_ms = 0, free_ms = 0;
			for (uint32_t i = 0; i < count && free_ms <= latest; i++) {
				const struct schedule_event *e = &events[i];
				bool is_over = e->closes_ms && latest >= e->closes_ms;
				over_ms = is_over ? e->opens_ms : over_ms;
				free_ms = is_over ? e->closes_ms + SCHEDULE_GAP_MS : UINT64_MAX;
				if (is_over)
					doors = i + 1 == count ? SCHEDULE_CLOSED : SCHEDULE_BEFORE;
				else if (latest >= e->opens_ms)
					doors = SCHEDULE_OPEN;
				else if (latest >= e->gathers_ms)
					doors = SCHEDULE_GATHERING;
			}
			assert_int_equal(view.doors, doors);
			if (free_ms == UINT64_MAX || doors == SCHEDULE_CLOSED)
				assert_int_equal(view.over_ms, over_ms);
		}
	}
}

int main(int argc, char **argv)
{
	seed = argc > 1 ? strtoull(argv[1], NULL, 0) : 7;
	print_message("seed %lu\n", seed);
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(each_moment),
		cmocka_unit_test(no_events_is_open),
		cmocka_unit_test(a_room_that_only_closes),
		cmocka_unit_test(a_clock_that_goes_back),
		cmocka_unit_test(a_restart_behind_the_opening),
		cmocka_unit_test(a_jump_over_everything),
		cmocka_unit_test(opened_by_command),
		cmocka_unit_test(a_reload_moves_the_opening),
		cmocka_unit_test(random_days),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
