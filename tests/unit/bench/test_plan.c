// Plans: where a crowd may go, and each option's bounds.

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include <getopt.h>

#include "bench/crowd/plan.h"

static enum plan_result read(const char *line, struct plan *plan)
{
	static char text[1024];
	char *words[32] = {"crowd"};
	int count = 1;
	memcpy(text, line, strlen(line) + 1);
	for (char *at = text, *word; (word = strsep(&at, " "));)
		words[count++] = word;
	optind = 0; // glibc: begin anew
	return plan_read(count, words, plan);
}

static const struct {
	const char *line;
	enum plan_result result;
} rows[] = {
	{"--target 127.0.0.1:8080", PLAN_OK},
	{"--target 127.255.255.254:1", PLAN_OK},
	{"--target [::1]:8080", PLAN_OK},
	{"--target 10.1.2.3:80", PLAN_OK},
	{"--target 172.16.0.1:80", PLAN_OK},
	{"--target 172.31.255.1:80", PLAN_OK},
	{"--target 172.32.0.1:80", PLAN_WRONG},
	{"--target 192.168.1.1:65535", PLAN_OK},
	{"--target [fd00::1]:80", PLAN_OK},
	{"--target [fe80::1]:80", PLAN_OK},
	{"--target 192.0.2.1:80", PLAN_WRONG},
	{"--target [2001:db8::1]:80", PLAN_WRONG},
	{"--target 192.0.2.1:80 --yes-it-is-mine", PLAN_OK},
	{"--target example.com:80 --yes-it-is-mine", PLAN_WRONG},
	{"--target 127.0.0.1", PLAN_WRONG},
	{"--target 127.0.0.1:0", PLAN_WRONG},
	{"--target 127.0.0.1:65536", PLAN_WRONG},
	{"--target ::1:80", PLAN_WRONG},
	{"--visitors 5", PLAN_WRONG}, // no target
	{"--target 127.0.0.1:80 --target 127.0.0.2:80 --roam 1", PLAN_OK},
	{"--target 127.0.0.1:80 --target 192.0.2.1:80", PLAN_WRONG},
	{"--target 127.0.0.1:80 --roam 1.1", PLAN_WRONG},
	{"--target 127.0.0.1:80 --visitors 0", PLAN_WRONG},
	{"--target 127.0.0.1:80 --visitors 4000000", PLAN_OK},
	{"--target 127.0.0.1:80 --visitors 4000001", PLAN_WRONG},
	{"--target 127.0.0.1:80 --visitors 1.5", PLAN_WRONG},
	{"--target 127.0.0.1:80 --no-show 1", PLAN_OK},
	{"--target 127.0.0.1:80 --no-show 1.01", PLAN_WRONG},
	{"--target 127.0.0.1:80 --tabs -0.1", PLAN_WRONG},
	{"--target 127.0.0.1:80 --shop 5s", PLAN_OK},
	{"--target 127.0.0.1:80 --shop 5m", PLAN_WRONG},
	{"--target 127.0.0.1:80 --seconds 0", PLAN_WRONG},
	{"--target 127.0.0.1:80 --processes 64", PLAN_OK},
	{"--target 127.0.0.1:80 --processes 65", PLAN_WRONG},
	{"--target 127.0.0.1:80 --path /derby", PLAN_WRONG},
	{"--target 127.0.0.1:80 --path derby/", PLAN_WRONG},
	{"--target 127.0.0.1:80 --leave early", PLAN_WRONG},
	{"--target 127.0.0.1:80 --shape ramp --leave buy --json --forever", PLAN_OK},
	{"--target 127.0.0.1:80 more", PLAN_WRONG},
	{"--target 127.0.0.1:80 --unknown", PLAN_WRONG},
	{"--help", PLAN_HELP},
};

static void takes_what_it_should(void **state)
{
	(void)state;
	for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
		struct plan plan;
		if (read(rows[i].line, &plan) != rows[i].result)
			fail_msg("%s", rows[i].line);
	}
}

static void has_defaults_and_a_host(void **state)
{
	(void)state;
	struct plan plan;
	assert_int_equal(read("--target [::1]:8080", &plan), PLAN_OK);
	assert_string_equal(plan.host, "[::1]:8080");
	assert_string_equal(plan.path, "/derby/");
	assert_true(plan.limit_s == 600);
	assert_int_equal(plan.shop.bytes, 0);
	assert_int_equal(
		read("--host a.example --target 127.0.0.1:80 --visitors 2 --processes 3", &plan),
		PLAN_OK);
	assert_string_equal(plan.host, "a.example");
	assert_int_equal(plan.processes, 2); // no process without a visitor
}

// PLAN_TARGETS_MAX appliances, and one more.
static void has_room_for_so_many_appliances(void **state)
{
	(void)state;
	struct plan plan;
	char line[1024] = "--json";
	size_t len = strlen(line);
	for (uint32_t i = 0; i <= PLAN_TARGETS_MAX; i++) {
		assert_int_equal(read(line, &plan), i > 0 ? PLAN_OK : PLAN_WRONG);
		assert_int_equal(plan.target_count, i);
		len += (size_t)snprintf(line + len, sizeof(line) - len, " --target=127.0.0.1:80");
	}
	assert_int_equal(read(line, &plan), PLAN_WRONG);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(takes_what_it_should),
		cmocka_unit_test(has_defaults_and_a_host),
		cmocka_unit_test(has_room_for_so_many_appliances),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
