// Every rule of check_doors.c by name, and what an event leaves to its room.

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "tests/unit/config/fixture.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

// A good file, to whose room a case adds keys; they begin at 9:9.
#define IN_ROOM(text) \
	"listen: [{address: '127.0.0.1:80'}]\nsites:\n  - name: shop\n    hosts: [shop.example]\n" \
	"    origin: {servers: ['10.0.0.1:80']}\n    rooms:\n      - name: derby\n" \
	"        path: /derby\n        " text "\n"
#define NEXT "\n        "
#define AT(time) "2026-12-01T" time "Z"

static const struct door_case {
	const char *name, *text, *errors;
} cases[] = {
	{"doors of a day",
		IN_ROOM("opens: " AT("10:00:00") NEXT "closes: " AT("10:00:01") NEXT
			"prequeue: 30m" NEXT "salt: 00ff"),
		""},
	{"closes alone", IN_ROOM("closes: " AT("10:00:00")), ""},
	{"closes at the opening",
		IN_ROOM("opens: " AT("10:00:00") NEXT "closes: 2026-12-01T11:00:00+01:00"),
		"t.yaml:10:17: sites[0].rooms[0].closes: '2026-12-01T11:00:00+01:00' is not after "
		"opens; allowed: a later moment\n"},
	{"prequeue without doors", IN_ROOM("prequeue: 30m"),
		"t.yaml:9:19: sites[0].rooms[0].prequeue: '30m' has no doors to open; allowed: "
		"with opens\n"},
	{"no prequeue, said so", IN_ROOM("prequeue: 0"), ""},
	{"events one after the other",
		IN_ROOM("events:" NEXT "- {opens: " AT(
			"12:00:00") ", prequeue: 30m}" NEXT
				    "- {name: a, opens: " AT("10:00:00") ", closes: " AT(
					    "11:30:00") "}"),
		""},
	{"events of which one gathers while the other is open",
		IN_ROOM("events:" NEXT
			"- {opens: " AT("12:00:00") ", prequeue: 30m}" NEXT "- {opens: " AT(
				"10:00:00") ", closes: " AT("11:30:01") "}"),
		"t.yaml:10:19: sites[0].rooms[0].events[0].opens: '2026-12-01T12:00:00Z' overlaps "
		"the event on line 11, the time of gathering included; allowed: after it has "
		"closed\n"},
	{"events at one moment",
		IN_ROOM("events:" NEXT "- {opens: " AT("10:00:00") ", closes: " AT(
			"11:00:00") "}" NEXT
				    "- {opens: " AT("10:00:00") ", closes: " AT("11:00:00") "}"),
		"t.yaml:11:19: sites[0].rooms[0].events[1].opens: '2026-12-01T10:00:00Z' overlaps "
		"the event on line 10, the time of gathering included; allowed: after it has "
		"closed\n"},
	{"an event behind one without an end",
		IN_ROOM("events:" NEXT "- {opens: " AT("10:00:00") "}" NEXT
								   "- {opens: " AT("12:00:00") "}"),
		"t.yaml:11:19: sites[0].rooms[0].events[1].opens: '2026-12-01T12:00:00Z' follows "
		"an event that never closes, on line 10; allowed: after its closes\n"},
	{"an event that closes before it opens",
		IN_ROOM("events:" NEXT "- {opens: " AT("10:00:00") ", closes: " AT("09:00:00") "}"),
		"t.yaml:10:49: sites[0].rooms[0].events[0].closes: '2026-12-01T09:00:00Z' is not "
		"after opens; allowed: a later moment\n"},
	{"events beside opens",
		IN_ROOM("opens: " AT("10:00:00") NEXT "events:" NEXT
						      "- {opens: " AT("12:00:00") "}"),
		"t.yaml:9:16: sites[0].rooms[0].opens: '2026-12-01T10:00:00Z' stands beside "
		"events; allowed: one or the other\n"},
	{"events beside closes",
		IN_ROOM("closes: " AT("10:00:00") NEXT "events:" NEXT
						       "- {opens: " AT("12:00:00") "}"),
		"t.yaml:9:17: sites[0].rooms[0].closes: '2026-12-01T10:00:00Z' stands beside "
		"events; allowed: one or the other\n"},
	{"an event without opens", IN_ROOM("events:" NEXT "- {name: a}"),
		"t.yaml:10:11: sites[0].rooms[0].events[0].opens: is missing; allowed: a moment "
		"with its zone, as in 2026-12-01T10:00:00+09:00\n"},
	{"an event's capacity beyond sessions_max",
		IN_ROOM("events:" NEXT "- {opens: " AT("10:00:00") ", capacity: 100001}"),
		"t.yaml:10:51: sites[0].rooms[0].events[0].capacity: '100001' is above "
		"sessions_max; allowed: up to 100000\n"},
	{"windows by time", IN_ROOM("order: window" NEXT "window: 30s"), ""},
	{"windows by number", IN_ROOM("order: window" NEXT "window: 10000" NEXT "window_max: 10s"),
		""},
	{"order without a window", IN_ROOM("order: window"),
		"t.yaml:9:16: sites[0].rooms[0].order: 'window' needs a window; allowed: with "
		"window\n"},
	{"a window that has no effect", IN_ROOM("window: 30s"), ""},
	{"a window beyond gathered_max",
		"gathered_max: 9999\n" IN_ROOM("order: window" NEXT "window: 10000"),
		"t.yaml:11:17: sites[0].rooms[0].window: '10000' is above gathered_max; allowed: "
		"up to 9999\n"},
	{"an event's order without a window",
		IN_ROOM("events:" NEXT "- {opens: " AT("10:00:00") ", order: window}"),
		"t.yaml:10:48: sites[0].rooms[0].events[0].order: 'window' needs a window; "
		"allowed: with window\n"},
	{"an event's window beyond gathered_max",
		IN_ROOM("events:" NEXT
			"- {opens: " AT("10:00:00") ", window: 1000000}") "gathered_max: "
									  "1000\n",
		"t.yaml:10:49: sites[0].rooms[0].events[0].window: '1000000' is above "
		"gathered_max; allowed: up to 1000\n"},
	{"an event's rate beside a batch that is one",
		IN_ROOM("batch: 10 every 1m" NEXT "batch_spread: true" NEXT "events:" NEXT
			"- {opens: " AT("10:00:00") ", rate: 5/s}"),
		"t.yaml:12:47: sites[0].rooms[0].events[0].rate: '5/s' is that of the room's "
		"batch; "
		"allowed: without `batch_spread`\n"},
	{"an event's peak without an inflow",
		IN_ROOM("events:" NEXT "- {opens: " AT("10:00:00") ", mode: peak}"),
		"t.yaml:10:47: sites[0].rooms[0].events[0].mode: 'peak' needs an inflow; allowed: "
		"with `inflow` of the room\n"},
	{"an event's peak with the room's inflow",
		IN_ROOM("inflow: 50/min" NEXT "events:" NEXT "- {opens: " AT("10:00:00") ", mode: "
											 "peak}"),
		""},
	{"an event's language that is none",
		IN_ROOM("events:" NEXT "- {opens: " AT("10:00:00") ", pages_language: E_N}"),
		"t.yaml:10:57: sites[0].rooms[0].events[0].pages_language: 'E_N' is no language; "
		"allowed: 2 to 15 lower-case letters, digits and -, as in pt-br\n"},
	{"an event's order with the room's window",
		IN_ROOM("window: 5s" NEXT "events:" NEXT "- {opens: " AT("10:00:00") ", order: "
										     "window}"),
		""},
	{"windows that are none", IN_ROOM("window: 0s"),
		"t.yaml:9:17: sites[0].rooms[0].window: '0s' is too small; allowed: a duration "
		"from 1s to 1h, or a number of people up to 1000000, or none\n"},
	{"a salt that is none", IN_ROOM("salt: 0f0"),
		"t.yaml:9:15: sites[0].rooms[0].salt: '0f0' is not bytes in hex; allowed: 1 to 32 "
		"bytes in hex, as in 00ff17, or none\n"},
};

static void test_rules(void **state)
{
	(void)state;
	struct config_machine machine = fixture_machine();
	for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
		print_message("%s\n", cases[i].name);
		char *errors = fixture_errors(cases[i].text, &machine);
		assert_string_equal(errors, cases[i].errors);
		free(errors);
	}
}

static void test_windows_and_salts(void **state)
{
	(void)state;
	struct config *config = fixture_config(IN_ROOM(
		"order: window" NEXT "window: 2m" NEXT "salt: 00fF" NEXT
		"events: [{opens: 2026-12-01T10:00:00+09:00, window: 500, rate: 300/min}]"));
	const struct config_room *room = &config->sites.at[0].rooms.at[0];
	assert_int_equal(room->order, CONFIG_ORDER_WINDOW);
	assert_int_equal(room->window.s, 120);
	assert_int_equal(room->window.people, 0);
	assert_int_equal(room->window_max_s, 60);
	assert_string_equal(room->salt, "00fF");
	assert_true(config_room_gathers(room));
	const struct config_event *event = &room->events.at[0];
	assert_int_equal(event->opens_s, 1796086800);
	assert_int_equal(event->closes_s, 0);
	assert_int_equal(event->window.people, 500);
	assert_int_equal(event->order, CONFIG_EVENT_ORDER_ROOM);
	assert_int_equal(event->burst, 5); // one second of its own rate
	assert_int_equal(event->capacity, 0);
	assert_null(event->message);
	config_destroy(config);
}

static void test_during_an_event(void **state)
{
	(void)state;
	struct config *config = fixture_config(IN_ROOM(
		"capacity: 5" NEXT "session: 1m" NEXT "order: window" NEXT "window: 2m" NEXT
		"pages_language: fr" NEXT "mode: reject" NEXT "events:" NEXT
		"- {opens: " AT("10:00:00") ", closes: " AT(
			"11:00:00") ", capacity: 9, rate: 60/s, "
				    "session: 2m, order: arrival, salt: ff, pages: club, "
				    "pages_language: de, "
				    "mode: auto}" NEXT
				    "- {opens: " AT("12:00:00") ", order: window, window: 8}"));
	const struct config_room *room = &config->sites.at[0].rooms.at[0];
	const struct config_site *site = &config->sites.at[0];
	struct config_room all = config_room_during_nth(room, 1);
	assert_int_equal(all.capacity, 9);
	assert_int_equal(all.rate.count, 60);
	assert_int_equal(all.burst, 60);
	assert_int_equal(all.session_s, 120);
	assert_int_equal(all.order, CONFIG_ORDER_ARRIVAL);
	assert_int_equal(all.mode, CONFIG_MODE_AUTO);
	assert_string_equal(all.salt, "ff");
	assert_non_null(strstr(config_pages(site, &all), "club"));
	assert_string_equal(config_pages_language(site, &all), "de");
	all = config_room_during_nth(room, 2); // what it does not name is the room's
	assert_int_equal(all.capacity, 5);
	assert_int_equal(all.rate.count, 0);
	assert_int_equal(all.session_s, 60);
	assert_int_equal(all.order, CONFIG_ORDER_WINDOW);
	assert_int_equal(all.window.people, 8);
	assert_int_equal(all.window.s, 0);
	assert_int_equal(all.mode, CONFIG_MODE_REJECT);
	assert_null(config_pages(site, &all));
	assert_string_equal(config_pages_language(site, &all), "fr");
	all = config_room_during(room, NULL);
	assert_memory_equal(&all, room, sizeof(all));
	assert_int_equal(config_pages_most(config), 4); // the site, the room, its events
	config_destroy(config);
}

// A word means the same at a room and at an event of it.
static void test_modes_of_events(void **state)
{
	(void)state;
	static const char *const words[] = {"auto", "always", "off", "reject", "peak"};
	for (size_t i = 0; i < sizeof(words) / sizeof(words[0]); i++) {
		char text[1024];
		snprintf(text, sizeof(text),
			IN_ROOM("inflow: 5/min" NEXT "mode: %s" NEXT
				"events: [{opens: " AT("10:00:00") ", mode: %s}]"),
			words[i], words[i]);
		struct config *config = fixture_config(text);
		const struct config_room *room = &config->sites.at[0].rooms.at[0];
		assert_int_equal(config_room_during_nth(room, 1).mode, room->mode);
		config_destroy(config);
		snprintf(text, sizeof(text),
			IN_ROOM("inflow: 5/min" NEXT "mode: %s" NEXT
				"events: [{opens: " AT("10:00:00") "}]"),
			words[i]);
		config = fixture_config(text);
		room = &config->sites.at[0].rooms.at[0];
		assert_int_equal(config_room_during_nth(room, 1).mode, room->mode);
		config_destroy(config);
	}
}

#define EVENT(opens, closes, salt) \
	NEXT "- {opens: " AT(opens) ", closes: " AT(closes) ", salt: " salt "}"
#define THREE_EVENTS \
	IN_ROOM("events:" EVENT("12:00:00", "13:00:00", "cc") EVENT("08:00:00", "09:00:00", "bb") \
			EVENT("10:30:00", "11:00:00", "0aff"))

// What is said of moments that are past, by a machine that knows the time.
static void test_past_moments(void **state)
{
	(void)state;
	static const struct door_case past[] = {
		{"doors that opened", IN_ROOM("opens: " AT("08:00:00")), ""},
		{"and close later",
			IN_ROOM("opens: " AT("08:00:00") NEXT "closes: " AT("10:00:01")), ""},
		{"and have closed",
			IN_ROOM("opens: " AT("08:00:00") NEXT "closes: " AT("10:00:00")),
			"t.yaml:10:17: warning: sites[0].rooms[0].closes: '2026-12-01T10:00:00Z' "
			"is "
			"past: the room is closed\n"},
		{"events, of which one is to come",
			IN_ROOM("events:" NEXT "- {opens: " AT("08:00:00") ", closes: " AT(
				"09:00:00") "}" NEXT "- {opens: " AT("11:00:00") "}"),
			""},
		{"events that are over",
			IN_ROOM("events:" NEXT
				"- {opens: " AT("08:00:00") ", closes: " AT("09:00:00") "}"),
			"t.yaml:10:49: warning: sites[0].rooms[0].events[0].closes: "
			"'2026-12-01T09:00:00Z' is past, as of all events of the room: it is "
			"closed\n"},
	};
	struct config_machine machine = fixture_machine();
	machine.now_s = 1796119200; // 10:00:00
	for (size_t i = 0; i < sizeof(past) / sizeof(past[0]); i++) {
		print_message("%s\n", past[i].name);
		char *errors = fixture_errors(past[i].text, &machine);
		assert_string_equal(errors, past[i].errors);
		free(errors);
	}
}

static const char *salt_named(void *context, const char *room, uint64_t *now_s)
{
	*now_s = 1796119200; // 10:00:00
	return strcmp(room, "derby") == 0 ? context : NULL;
}

// People gather in the process that runs, and were told a salt.
static void test_a_salt_that_was_named(void **state)
{
	(void)state;
#define REFUSED(value) \
	value "is not what was named for those who gather in room derby: that stands until they " \
	      "are drawn; allowed: 0aff\n"
	static const struct door_case named[] = {
		{"the same", IN_ROOM("salt: 0AfF"), ""},
		{"another", IN_ROOM("salt: 0afe"),
			"t.yaml:9:15: sites[0].rooms[0].salt: " REFUSED("'0afe' ")},
		{"none", IN_ROOM("capacity: 1"),
			"t.yaml:7:9: sites[0].rooms[0].salt: " REFUSED("")},
		{"that of the event that comes, not of those before and after", THREE_EVENTS, ""},
		{"another of that event",
			IN_ROOM("salt: 0aff" NEXT "events:" NEXT
				"- {opens: " AT("10:30:00") ", salt: aa}"),
			"t.yaml:11:47: sites[0].rooms[0].events[0].salt: " REFUSED("'aa' ")},
	};
	struct config_machine machine = fixture_machine();
	machine.named_salt = salt_named;
	machine.named_salt_context = (void *)(uintptr_t) "0aff";
	for (size_t i = 0; i < sizeof(named) / sizeof(named[0]); i++) {
		print_message("%s\n", named[i].name);
		char *errors = fixture_errors(named[i].text, &machine);
		assert_string_equal(errors, named[i].errors);
		free(errors);
	}
	machine.named_salt_context = NULL; // none was
	char *errors = fixture_errors(IN_ROOM("salt: 0afe"), &machine);
	assert_string_equal(errors, "");
	free(errors);
}

static void test_salt_at_its_limit(void **state)
{
	(void)state;
#define HEX16 "00112233445566778899aabbccddeeff"
	struct config_machine machine = fixture_machine();
	struct config *config = fixture_config(IN_ROOM("salt: " HEX16 HEX16));
	assert_false(config_room_gathers(&config->sites.at[0].rooms.at[0]));
	config_destroy(config);
	char *errors = fixture_errors(IN_ROOM("salt: " HEX16 HEX16 "00"), &machine);
	assert_non_null(strstr(errors, "is too long; allowed: 1 to 32 bytes in hex"));
	free(errors);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_rules),
		cmocka_unit_test(test_windows_and_salts),
		cmocka_unit_test(test_during_an_event),
		cmocka_unit_test(test_salt_at_its_limit),
		cmocka_unit_test(test_a_salt_that_was_named),
		cmocka_unit_test(test_modes_of_events),
		cmocka_unit_test(test_past_moments),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
