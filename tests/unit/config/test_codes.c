// Lists of codes, as a check of the configuration looks at them: each file once, with all that is
// said of it, and what they take together.

#include "tests/unit/config/fixture.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#define SITE(rooms) \
	"listen: [{address: 127.0.0.1:8080}]\n" \
	"sites:\n" \
	"  - name: shop\n" \
	"    hosts: [localhost]\n" \
	"    origin: {servers: [\"127.0.0.1:9000\"]}\n" \
	"    rooms:\n" rooms
#define ROOM(name, lanes) "      - {name: " name ", path: /" name ", lanes: [" lanes "]}\n"

static char looked[512], *turns;

static void turn(void *context)
{
	*(char **)context = "turned";
}

// A list whose name has `bad` in it has two errors, one with `weak` a warning; each takes 100
// bytes.
static uint32_t look(void *codes_context, const char *path, uint64_t *bytes, config_say *say,
	config_say *warn, void *context)
{
	assert_string_equal(codes_context, "mine");
	const size_t len = strlen(looked);
	snprintf(looked + len, sizeof(looked) - len, "%s ", strrchr(path, '/') + 1);
	*bytes = 100;
	if (strstr(path, "weak"))
		warn(context, path, 3, 1, "weak");
	if (!strstr(path, "bad"))
		return 0;
	say(context, path, 1, 1, "wrong");
	say(context, path, 7, 1, "and wrong");
	return 2;
}

static struct config_machine machine_that_looks(void)
{
	struct config_machine machine = fixture_machine();
	machine.codes_check = look;
	machine.codes_context = "mine";
	machine.turn = turn;
	machine.turn_context = &turns;
	looked[0] = '\0';
	turns = NULL;
	return machine;
}

static const struct {
	const char *what, *text, *errors, *looked;
} cases[] = {
	{"none", SITE(ROOM("a", "{name: x}")), "", ""},
	{"two lists", SITE(ROOM("a", "{name: x, codes: /l/one}, {name: y, codes: /l/two}")), "",
		"one two "},
	{"errors of a list", SITE(ROOM("a", "{name: x, codes: /l/bad}")),
		"/l/bad:1:1: wrong\n/l/bad:7:1: and wrong\n", "bad "},
	{"a warning", SITE(ROOM("a", "{name: x, codes: /l/weak}")), "/l/weak:3:1: warning: weak\n",
		"weak "},
	{"one list in two lanes of a room",
		SITE(ROOM("a", "{name: x, codes: /l/one}, {name: y, codes: /l/one}")),
		"t.yaml:7:80: sites[0].rooms[0].lanes[1].codes: '/l/one' is the list of lane x "
		"too: a "
		"code would be good in both; allowed: a list of its own\n",
		"one "},
	{"by another name",
		SITE(ROOM("a",
			"{name: x, codes: /etc/passwd}, {name: y, codes: /etc/../etc/passwd}")),
		"t.yaml:7:85: sites[0].rooms[0].lanes[1].codes: '/etc/../etc/passwd' is the list "
		"of "
		"lane x too: a code would be good in both; allowed: a list of its own\n",
		"passwd "},
	{"one list in two rooms",
		SITE(ROOM("a", "{name: x, codes: /l/one}") ROOM("b", "{name: x, codes: /l/one}")),
		"t.yaml:8:54: warning: sites[0].rooms[1].lanes[0].codes: '/l/one' is the list of "
		"a/x "
		"too: a code is good as often in each of the rooms\n",
		"one "},
};

static void test_each_list_is_looked_at_once(void **state)
{
	(void)state;
	for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
		const struct config_machine machine = machine_that_looks();
		print_message("%s\n", cases[i].what);
		char *errors = fixture_errors(cases[i].text, &machine);
		assert_string_equal(errors, cases[i].errors);
		assert_string_equal(looked, cases[i].looked);
		assert_int_equal(turns != NULL, *cases[i].looked != '\0');
		free(errors);
	}
}

static void test_what_they_take_is_on_the_bill(void **state)
{
	(void)state;
	const struct config_bill_row rows[] = {
		{"codes", CONFIG_PER_CODES_BYTE, 1, 1}, {"moves", CONFIG_PER_LANE, 1, 1000}};
	struct config_machine machine = machine_that_looks();
	struct config_report report = {0};
	struct config *config;
	assert_int_equal(fixture_read(cases[1].text, &machine, &config, &report), 0);
	assert_int_equal(config->codes_bytes, 200);
	const struct config_bill bill = {.row_count = 2, .rows = rows};
	assert_int_equal(config_bill_total(config, &bill, 1), 1200);
	config_destroy(config);
	// Too much for the machine.
	machine.bill = bill;
	machine.memory_bytes = 1199;
	char *errors = fixture_errors(cases[1].text, &machine);
	assert_non_null(strstr(errors, "and the other limits need 1200 bytes"));
	free(errors);
	machine.memory_bytes = 1200;
	errors = fixture_errors(cases[1].text, &machine);
	assert_string_equal(errors, "");
	free(errors);
	config_report_fini(&report);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_each_list_is_looked_at_once),
		cmocka_unit_test(test_what_they_take_is_on_the_bill),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
