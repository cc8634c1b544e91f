// Plans: each rule, each bound at it and one beyond, and what is said of mistakes.

#include <errno.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>

#include <cmocka.h>

#include "config/key.h"
#include "config/plan.h"

#define PAGE_BYTES 4096u
#define ROOM(settings) \
	"rooms:\n  - name: derby\n" settings "    arrivals: [{people: 10, over: 1m}]\n"

// All errors of `text`, which ends at an unmapped page, one a line; "" if it is good.
static char *errors_of(const char *text)
{
	struct config_report report = {0};
	struct plan *plan = NULL;
	char *errors;
	size_t errors_len, len = strlen(text);
	const size_t bytes = (len + PAGE_BYTES) / PAGE_BYTES * PAGE_BYTES;
	char *map = mmap(NULL, bytes + PAGE_BYTES, PROT_READ | PROT_WRITE,
		MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
	assert_true(map != MAP_FAILED);
	assert_int_equal(mprotect(map + bytes, PAGE_BYTES, PROT_NONE), 0);
	memcpy(map + bytes - len, text, len);
	const int ret = plan_read("t.yaml", map + bytes - len, len, &plan, &report);
	munmap(map, bytes + PAGE_BYTES);
	FILE *out = open_memstream(&errors, &errors_len);
	for (uint32_t i = 0; i < report.listed; i++)
		fprintf(out, "%s\n", report.errors[i].text);
	fclose(out);
	assert_int_equal(ret, report.count ? -EINVAL : 0);
	assert_int_equal(plan != NULL, ret == 0);
	plan_destroy(plan);
	config_report_fini(&report);
	return errors;
}

static void check(const char *text, const char *expected)
{
	char *errors = errors_of(text);
	assert_string_equal(errors, expected);
	free(errors);
}

static void mistakes(void **state)
{
	(void)state;
	static const struct {
		const char *text, *errors;
	} cases[] = {
		{ROOM(""), ""},
		{ROOM("    priority: 2\n"), "t.yaml:3:15: rooms[0].priority: '2' needs a pool; "
					    "allowed: with `pool`\n"},
		{ROOM("    weight: 2\n"),
			"t.yaml:3:13: rooms[0].weight: '2' needs a pool; allowed: with `pool`\n"},
		{"pool: {}\n" ROOM("    weight: 2\n    priority: 2\n"), ""},
		{ROOM("    opens: 10m\n    prequeue: 11m\n"),
			"t.yaml:4:15: rooms[0].prequeue: '11m' begins before the plan; allowed: up "
			"to opens, 600s\n"},
		{ROOM("    opens: 10m\n    prequeue: 10m\n"), ""},
		{ROOM("    opens: 1d\n"), "t.yaml:3:12: rooms[0].opens: '1d' is behind the end of "
					  "the plan; allowed: below lasts, 86400s\n"},
		{"lasts: 59s\n" ROOM(""),
			"t.yaml:4:35: rooms[0].arrivals[0].over: '1m' ends behind the end of the "
			"plan; allowed: from + over up to lasts, 59s\n"},
		{"lasts: 1m\n" ROOM(""), ""},
		{ROOM("    stay_spread: 1m\n"), "t.yaml:3:18: rooms[0].stay_spread: '1m' needs a "
						"stay; allowed: with `stay`\n"},
		{ROOM("    sliding: true\n"), "t.yaml:3:14: rooms[0].sliding: 'true' needs a stay, "
					      "or passes never end; allowed: true with `stay`\n"},
		{ROOM("    sliding: true\n    stay: 1m\n    stay_spread: 1m\n"), ""},
		{"rooms:\n"
		 "  - {name: a, arrivals: [{people: 1, over: 1s}]}\n"
		 "  - {name: a, arrivals: [{people: 1, over: 1s}]}\n",
			"t.yaml:3:12: rooms[1].name: 'a' names two rooms, first on line 2; "
			"allowed: once\n"},
		{"rooms:\n"
		 "  - {name: a, arrivals: [{people: 10000000, over: 1s}]}\n",
			""},
		{"rooms:\n"
		 "  - {name: a, arrivals: [{people: 10000000, over: 1s}]}\n"
		 "  - {name: b, arrivals: [{people: 1, over: 1s}]}\n",
			"t.yaml:1:1: rooms: have 10000001 people come; allowed: up to 10000000 in "
			"all\n"},
		{"titel: x\n" ROOM(""),
			"t.yaml:1:1: 'titel': unknown key; the nearest known is title\n"},
		{"listen: []\n" ROOM(""),
			"t.yaml:1:1: 'listen': unknown key; the nearest known is lasts\n"},
		{"capacity: 5\n" ROOM(""),
			"t.yaml:1:1: 'capacity': unknown key here; known is pool.capacity\n"},
		{"rooms: [5]\n",
			"t.yaml:1:9: rooms[0]: '5' is a single value; allowed: a mapping with "
			"`name`, `arrivals`\n"},
		{"pool: 5\n" ROOM(""),
			"t.yaml:1:7: pool: '5' is a single value; allowed: a mapping, "
			"or none\n"},
	};
	for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
		print_message("%s", cases[i].text);
		check(cases[i].text, cases[i].errors);
	}
}

static void nothing(void **state)
{
	(void)state;
	char *errors = errors_of("");
	assert_non_null(strstr(errors, "rooms: is missing"));
	free(errors);
}

static void all_values(void **state)
{
	(void)state;
	static const char text[] =
		"title: A final\nseed: 7\nlasts: 2h\n"
		"pool: {capacity: 100, rate: 60/min, burst: 3}\n"
		"traffic: {encoding: gzip, tls: false, request: 1k, handshake: 2k, view: 3m,\n"
		"  idle_timeout: 10s, round_trip: 20ms}\n"
		"appliance: {count: 3, spare: 0, polls: 5, handshakes: 6, connections: 64,\n"
		"  bandwidth: 8}\n"
		"rooms:\n"
		"  - {name: a, capacity: 10, rate: 5/s, burst: 4, session: 1m, claim: 3m,\n"
		"     sliding: true, mode: always, batch: 50 every 10m, priority: 2, weight: 3,\n"
		"     opens: 5m, prequeue: 4m, no_show: 20, stay: 2m, stay_spread: 30s, ends: 50,\n"
		"     view_every: 15s,\n"
		"     arrivals: [{people: 5, from: 1s, over: 2s, shape: bell}, {people: 6, over: "
		"1s}]}\n";
	struct config_report report = {0};
	struct plan *plan;
	assert_int_equal(plan_read("t.yaml", text, strlen(text), &plan, &report), 0);
	assert_string_equal(plan->title, "A final");
	assert_int_equal(plan->seed, 7);
	assert_int_equal(plan->people, 11);
	assert_int_equal(plan->pool->burst, 3);
	assert_int_equal(plan->traffic->encoding, PLAN_ENCODING_GZIP);
	assert_int_equal(plan->traffic->view_bytes, 3u << 20);
	assert_int_equal(plan->traffic->round_trip_ms, 20);
	assert_int_equal(plan->appliance->bandwidth, 8);
	const struct plan_room *room = plan->rooms.at;
	assert_int_equal(room->mode, PLAN_MODE_ALWAYS);
	assert_int_equal(room->batch.count, 50);
	assert_int_equal(room->stay_spread_s, 30);
	assert_int_equal(room->arrivals.at[0].shape, PLAN_SHAPE_BELL);
	assert_int_equal(room->arrivals.at[1].from_s, 0);
	plan_destroy(plan);
	plan_destroy(NULL);
	config_report_fini(&report);
}

static void defaults(void **state)
{
	(void)state;
	static const char text[] = ROOM("    rate: 300/min\n");
	struct config_report report = {0};
	struct plan *plan;
	assert_int_equal(plan_read("t.yaml", text, strlen(text), &plan, &report), 0);
	assert_string_equal(plan->title, "t.yaml");
	assert_null(plan->pool);
	assert_int_equal(plan->lasts_s, 86400);
	assert_int_equal(plan->rooms.at[0].burst, 5); // one second of rate
	assert_int_equal(plan->rooms.at[0].session_s, 600);
	assert_true(plan->traffic->tls);
	assert_int_equal(plan->appliance->spare, 1);
	plan_destroy(plan);
	config_report_fini(&report);
}

// --- bounds

// Whether a plan in which `key` has this value says `expected` of it.
static bool says(const struct key *key, const char *value, const char *expected)
{
	char text[1024], name[96];
	const char *path = key->scope->path;
	const bool is_room = strncmp(path, "rooms[].", 8) == 0;
	const bool is_wave = strstr(path, "arrivals") != NULL;
	if (*path && !is_room)
		snprintf(text, sizeof(text), "%.*s: {%s: %s}\n" ROOM(""), (int)strcspn(path, "."),
			path, key->name, value);
	else if (!is_room)
		snprintf(text, sizeof(text), "%s: %s\n" ROOM(""), key->name, value);
	else
		snprintf(text, sizeof(text),
			"rooms:\n  - {name: a, %s%s%s%s arrivals: [{people: 1, over: "
			"1s%s%s%s%s}]}\n",
			is_wave ? "" : key->name, is_wave ? "" : ": ", is_wave ? "" : value,
			is_wave ? "" : ",", is_wave ? ", " : "", is_wave ? key->name : "",
			is_wave ? ": " : "", is_wave ? value : "");
	char *errors = errors_of(text);
	bool found = false;
	snprintf(name, sizeof(name), "%s: ", key->name);
	for (char *rest = errors, *line; (line = strsep(&rest, "\n"));)
		found |= strstr(line, name) && strstr(line, expected);
	free(errors);
	return found;
}

static void write_number(const struct key *key, uint64_t number, char text[64])
{
	const char *unit = key->type == KEY_DURATION ? key->of : key->type == KEY_RATE ? "/s" : "";
	snprintf(text, 64, "%lu%s", number, unit);
}

static void bounds(void **state)
{
	(void)state;
	unsigned tested = 0;
	for (const struct key *key = key_plan_table; key < key_plan_table + key_plan_count; key++) {
		char text[64];
		// Those that the frame of says() has already are given twice: said of in both.
		if (key->shape == KEY_LIST || key->max == 0 || strcmp(key->name, "people") == 0 ||
			strcmp(key->name, "over") == 0 || key->type == KEY_NAME ||
			key->type == KEY_TEXT || key->type == KEY_BATCH)
			continue;
		print_message("%s%s\n", key->scope->path, key->name);
		write_number(key, key->min, text);
		assert_false(says(key, text, "is too small"));
		write_number(key, key->max, text);
		assert_false(says(key, text, "is too large"));
		write_number(key, key->max + 1, text);
		assert_true(says(key, text, "is too large"));
		if (key->min > 0) {
			write_number(key, key->min - 1, text);
			assert_true(says(key, text, "is too small"));
		}
		tested++;
	}
	assert_true(tested > 30);
}

static void check_wave(const char *wave, const char *expected)
{
	char text[256];
	snprintf(text, sizeof(text), "lasts: 7d\nrooms: [{name: a, arrivals: [{%s}]}]\n", wave);
	char *errors = errors_of(text);
	if (*expected)
		assert_non_null(strstr(errors, expected));
	else
		assert_string_equal(errors, "");
	free(errors);
}

static void bounds_of_waves(void **state)
{
	(void)state;
	check_wave("people: 0, over: 1s", "is too small");
	check_wave("people: 1, over: 1s", "");
	check_wave("people: 10000000, over: 7d", "");
	check_wave("people: 10000001, over: 1s", "is too large");
	check_wave("people: 1, over: 0s", "is too small");
	check_wave("people: 1, over: 604801s", "is too large");
	check_wave("people: 1, over: 1s, shape: flat", "allowed: even, rush, ramp or bell");
}

// A list of `count` elements.
static char *list_of(uint32_t rooms, uint32_t waves)
{
	char *text;
	size_t len;
	FILE *out = open_memstream(&text, &len);
	fputs("rooms:\n", out);
	for (uint32_t i = 0; i < rooms; i++) {
		fprintf(out, "  - {name: r%u, arrivals: [", i);
		for (uint32_t j = 0; j < waves; j++)
			fputs("{people: 1, over: 1s}, ", out);
		fputs("]}\n", out);
	}
	fclose(out);
	return text;
}

static void bounds_of_lists(void **state)
{
	(void)state;
	static const struct {
		uint32_t rooms, waves;
		bool is_good;
	} cases[] = {{0, 1, false}, {1, 1, true}, {16, 32, true}, {17, 1, false}, {1, 0, false},
		{1, 33, false}};
	for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
		char *text = list_of(cases[i].rooms, cases[i].waves);
		char *errors = errors_of(text);
		print_message("%u rooms, %u waves: %s", cases[i].rooms, cases[i].waves, errors);
		assert_int_equal(*errors == '\0', cases[i].is_good);
		free(errors);
		free(text);
	}
}

static void the_example_is_good(void **state)
{
	(void)state;
	struct config_report report = {0};
	struct plan *plan;
	assert_int_equal(plan_load(EXAMPLES "/plans/onsale.yaml", &plan, &report), 0);
	assert_int_equal(plan->people, 2000000);
	plan_destroy(plan);
	assert_int_equal(plan_load("/nowhere/plan.yaml", &plan, &report), -EINVAL);
	assert_string_equal(report.errors[0].text,
		"/nowhere/plan.yaml:1:1: cannot be read: No such file or directory");
	config_report_fini(&report);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(mistakes),
		cmocka_unit_test(nothing),
		cmocka_unit_test(all_values),
		cmocka_unit_test(defaults),
		cmocka_unit_test(bounds),
		cmocka_unit_test(bounds_of_waves),
		cmocka_unit_test(bounds_of_lists),
		cmocka_unit_test(the_example_is_good),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
