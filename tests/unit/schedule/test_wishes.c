// What a room wishes of its draws, by name; how windows follow each other; what lapses with an
// event.

#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>

#include <cmocka.h>

#include "controlplane/controller/controller.h"
#include "controlplane/schedule/wishes.h"
#include "dataplane/gate/rooms.h"

#define COUNT_OF(array) (sizeof(array) / sizeof(array[0]))
#define OPENS_MS 1800000060000ull
#define WINDOW (1ull << 62)

static struct config_room config;
static struct schedule_event event;
static struct draws_view draws;
static struct wishes_input in;
static struct controller_view line;

static int begin(void **state)
{
	(void)state;
	config = (struct config_room){.capacity = 5, .window_max_s = 60};
	event = (struct schedule_event){OPENS_MS - 30000, OPENS_MS, OPENS_MS + 600000};
	draws = (struct draws_view){0};
	line = (struct controller_view){0};
	in = (struct wishes_input){.config = &config,
		.may_gather = true,
		.event = &event,
		.draws = &draws,
		.line = &line,
		.gathered_max = 9,
		.salt = (const uint8_t *)"ab",
		.salt_bytes = 2,
		.now_ms = OPENS_MS};
	return 0;
}

static void people_gather_for(uint64_t epoch)
{
	draws.is_gathering = draws.is_undrawn = true;
	draws.epoch = epoch;
	draws.joined = 1;
}

static const struct {
	const char *name;
	enum schedule_doors doors;
	bool list_is_open, has_windows;
	uint64_t gathered_for, closing, over; // epochs, 0: none
	uint8_t state;
	bool gathers, is_shut;
	uint64_t epoch; // 0: any
} cases[] = {
	{"before", SCHEDULE_BEFORE, false, false, 0, 0, 0, GATE_BEFORE, false, true, 0},
	{"the pre-queue begins", SCHEDULE_GATHERING, true, false, 0, 0, 0, GATE_BEFORE, true, false,
		OPENS_MS},
	{"and goes on", SCHEDULE_GATHERING, true, false, OPENS_MS, 0, 0, GATE_BEFORE, true, false,
		OPENS_MS},
	{"moved by a reload", SCHEDULE_BEFORE, false, false, OPENS_MS - 5000, 0, 0, GATE_BEFORE,
		true, false, OPENS_MS - 5000},
	{"doors have opened", SCHEDULE_OPEN, true, false, OPENS_MS, 0, 0, GATE_BEFORE, true, false,
		OPENS_MS},
	{"the list closes", SCHEDULE_OPEN, false, false, OPENS_MS, 0, 0, GATE_BEFORE, false, false,
		0},
	{"it is drawn", SCHEDULE_OPEN, false, false, 0, OPENS_MS, 0, GATE_BEFORE, false, false, 0},
	{"all are placed", SCHEDULE_OPEN, false, false, 0, 0, 0, GATE_OPEN, false, false, 0},
	{"windows come behind", SCHEDULE_OPEN, false, true, 0, OPENS_MS, 0, GATE_BEFORE, true,
		false, 0},
	{"closed for good", SCHEDULE_CLOSED, false, true, 0, 0, OPENS_MS, GATE_CLOSED, false, true,
		0},
	{"nobody was there to open", SCHEDULE_GATHERING, true, false, OPENS_MS - 90000, 0,
		OPENS_MS - 90000, GATE_BEFORE, false, true, 0},
	{"nor to draw", SCHEDULE_OPEN, false, true, 0, OPENS_MS - 90000, OPENS_MS - 90000,
		GATE_BEFORE, false, true, 0},
	{"a window of an event that is over", SCHEDULE_OPEN, false, true,
		WINDOW | ((OPENS_MS - 90000) / 1000 & 0x1fffffff) << 32 | 7, 0, OPENS_MS - 90000,
		GATE_BEFORE, false, true, 0},
};

static void each_wish(void **state)
{
	for (size_t i = 0; i < COUNT_OF(cases); i++) {
		print_message("%s\n", cases[i].name);
		begin(state);
		if (cases[i].gathered_for)
			people_gather_for(cases[i].gathered_for);
		draws.closing_epoch = cases[i].closing;
		config.order = cases[i].has_windows ? CONFIG_ORDER_WINDOW : CONFIG_ORDER_ARRIVAL;
		config.window.s = 10;
		in.doors = (struct schedule_view){.doors = cases[i].doors,
			.over_ms = cases[i].over,
			.list_is_open = cases[i].list_is_open};
		assert_int_equal(wishes_state(&in), cases[i].state);
		const struct draws_wish wish = wishes_make(&in);
		assert_int_equal(wish.gathers, cases[i].gathers);
		assert_int_equal(wish.is_shut, cases[i].is_shut);
		assert_int_equal(wish.prepares, cases[i].doors != SCHEDULE_CLOSED);
		if (cases[i].epoch)
			assert_int_equal(wish.epoch, cases[i].epoch);
		assert_memory_equal(wish.salt, "ab", 2);
	}
}

static void windows_by_time(void **state)
{
	(void)state;
	in.doors.doors = SCHEDULE_OPEN;
	config.order = CONFIG_ORDER_WINDOW;
	config.window.s = 10;
	const struct draws_wish first = wishes_make(&in);
	assert_true(first.epoch & WINDOW);
	assert_int_equal(first.closes_s, OPENS_MS / 1000 + 10); // a multiple of its length
	assert_int_equal(first.full_at, 0);
	people_gather_for(first.epoch);
	in.now_ms += 9999;
	assert_int_equal(wishes_make(&in).epoch, first.epoch);
	in.now_ms++;
	const struct draws_wish second = wishes_make(&in);
	assert_int_equal(second.epoch, first.epoch + 1);
	assert_true(second.keeps_empty);
	event.opens_ms += 1000; // of another event nobody is kept, not even an empty list
	assert_false(wishes_make(&in).keeps_empty);
	assert_true(wishes_make(&in).epoch != second.epoch);
}

static void windows_by_number(void **state)
{
	(void)state;
	in.doors.doors = SCHEDULE_OPEN;
	config.order = CONFIG_ORDER_WINDOW;
	config.window.people = 4;
	const struct draws_wish first = wishes_make(&in);
	assert_int_equal(first.full_at, 4);
	people_gather_for(first.epoch);
	draws.began_ms = in.now_ms;
	draws.joined = 3;
	line.waiting = 3;
	line.sessions = 5; // no slot is free
	assert_int_equal(wishes_make(&in).epoch, first.epoch);
	in.now_ms += 59999;
	assert_int_equal(wishes_make(&in).epoch, first.epoch);
	in.now_ms++; // window_max
	assert_int_equal(wishes_make(&in).epoch, first.epoch + 1);
	in.now_ms -= 60000;
	draws.joined = 4; // full
	assert_int_equal(wishes_make(&in).epoch, first.epoch + 1);
	draws.joined = 3;
	line.sessions = 4; // a slot is free, and nobody is left before them
	assert_int_equal(wishes_make(&in).epoch, first.epoch + 1);
	line.called = 1;
	assert_int_equal(wishes_make(&in).epoch, first.epoch);
	line.called = 0;
	line.waiting = 4;
	assert_int_equal(wishes_make(&in).epoch, first.epoch);
	line.waiting = draws.joined = 0; // nobody has come
	assert_int_equal(wishes_make(&in).epoch, first.epoch);
}

static void who_lapses(void **state)
{
	(void)state;
	struct schedule s = {.events = &event, .count = 1, .now_ms = event.closes_ms - 1};
	s.opened_ms = OPENS_MS;
	assert_int_equal(wishes_lapsed(&s, &in.doors, &draws), 0);
	s.now_ms++;
	const uint64_t known_ms = event.closes_ms + SCHEDULE_KNOWN_MS;
	assert_int_equal(wishes_lapsed(&s, &in.doors, &draws), place_key_of_ms(known_ms));
	in.doors.over_ms = OPENS_MS;
	draws.drawn_epoch = OPENS_MS;
	draws.drawn_end = known_ms / PLACE_SLOT_MS - 5; // as it should be
	assert_int_equal(wishes_lapsed(&s, &in.doors, &draws), place_key_of_ms(known_ms));
	draws.drawn_end += 100; // late
	assert_int_equal(wishes_lapsed(&s, &in.doors, &draws), place_key(draws.drawn_end, 0, 0));
	draws.drawn_epoch = OPENS_MS + 1; // of the next event
	assert_int_equal(wishes_lapsed(&s, &in.doors, &draws), place_key_of_ms(known_ms));
	s.opened_ms = 0; // never opened: only who gathered for it
	assert_int_equal(wishes_lapsed(&s, &in.doors, &draws), 0);
	draws.drawn_epoch = OPENS_MS;
	assert_int_equal(wishes_lapsed(&s, &in.doors, &draws), place_key(draws.drawn_end, 0, 0));
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(each_wish),
		cmocka_unit_test_setup(windows_by_time, begin),
		cmocka_unit_test_setup(windows_by_number, begin),
		cmocka_unit_test_setup(who_lapses, begin),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
