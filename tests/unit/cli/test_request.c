// A line in, a line out: what reaches a handler and what does not.

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "controlplane/admin/request.h"

#include <stdlib.h>
#include <string.h>

static int echo(
	void *context, unsigned count, const char *const *arguments, json_t **data, FILE *text)
{
	(void)context, (void)text;
	*data = json_array();
	for (unsigned i = 0; i < count; i++)
		json_array_append_new(*data, json_string(arguments[i]));
	return 0;
}

static int fails(
	void *context, unsigned count, const char *const *arguments, json_t **data, FILE *text)
{
	(void)count, (void)arguments, (void)data;
	fprintf(text, "%s does not", (const char *)context);
	return -1;
}

static int says(
	void *context, unsigned count, const char *const *arguments, json_t **data, FILE *text)
{
	(void)context, (void)count, (void)arguments;
	fputs("two lines:\n\xff", text); // no UTF-8
	*data = json_integer(5);
	return 0;
}

static int quiet(
	void *context, unsigned count, const char *const *arguments, json_t **data, FILE *text)
{
	(void)context, (void)count, (void)arguments, (void)data, (void)text;
	return 0;
}

static const struct admin_command commands[] = {{.name = "echo", .function = echo},
	{.name = "fails", .function = fails}, {.name = "says", .function = says},
	{.name = "quiet", .function = quiet}};

#define REFUSED(why) "{\"status\":1,\"text\":\"" why "\"}\n"
#define NO_COMMAND \
	REFUSED("not a command: an object with \\\"command\\\" and \\\"arguments\\\" is expected")

static const struct line_case {
	const char *line, *answer;
} cases[] = {
	{"{\"command\":\"echo\",\"arguments\":[\"a\",\"b c\"]}",
		"{\"status\":0,\"data\":[\"a\",\"b c\"]}\n"},
	{"{\"command\":\"echo\",\"arguments\":[]}", "{\"status\":0,\"data\":[]}\n"},
	{"{\"command\":\"echo\"}", "{\"status\":0,\"data\":[]}\n"},
	{" {\"json\":true, \"command\":\"echo\"} \r", "{\"status\":0,\"data\":[]}\n"},
	{"{\"command\":\"fails\"}", REFUSED("it does not")},
	{"{\"command\":\"says\"}", "{\"status\":0,\"text\":\"two lines:\\n?\",\"data\":5}\n"},
	{"{\"command\":\"quiet\"}", "{\"status\":0}\n"},
	{"{\"command\":\"other\"}", REFUSED("no such command in this version")},
	{"{\"command\":\"\"}", REFUSED("no such command in this version")},
	{"", REFUSED("not JSON")},
	{"hello", REFUSED("not JSON")},
	{"\xff", REFUSED("not JSON")},
	{"{\"command\":\"echo\"", REFUSED("not JSON")},
	{"{\"command\":\"echo\"} x", REFUSED("not JSON")},
	{"{\"command\":\"echo\",\"command\":\"quiet\"}", REFUSED("not JSON")},
	{"{\"command\":\"echo\",\"arguments\":[\"a\\u0000b\"]}", REFUSED("not JSON")},
	{"[]", NO_COMMAND},
	{"{}", NO_COMMAND},
	{"{\"command\":5}", NO_COMMAND},
	{"{\"command\":\"echo\",\"arguments\":\"a\"}", NO_COMMAND},
	{"{\"command\":\"echo\",\"arguments\":[\"a\",5]}", REFUSED("an argument that is no text")},
	{"{\"command\":\"echo\",\"arguments\":[1,2,3,4,5,6,7,8,9,10,11,12,13,14,15,16,17]}",
		REFUSED("too many arguments")},
};

static struct request_later later;

static void test_lines(void **state)
{
	(void)state;
	for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
		char *answer = request_answer(
			commands, 4, (void *)"it", cases[i].line, strlen(cases[i].line), &later);
		print_message("%s\n", cases[i].line);
		assert_string_equal(answer, cases[i].answer);
		free(answer);
	}
}

static void test_argument_count(void **state)
{
	(void)state;
	for (unsigned count = ADMIN_ARGUMENTS_MAX; count <= ADMIN_ARGUMENTS_MAX + 1; count++) {
		char line[256] = "{\"command\":\"echo\",\"arguments\":[\"a\"";
		size_t len = strlen(line);
		for (unsigned i = 1; i < count; i++)
			len += snprintf(line + len, sizeof(line) - len, ",\"a\"");
		len += snprintf(line + len, sizeof(line) - len, "]}");
		char *answer = request_answer(commands, 4, NULL, line, len, &later);
		assert_int_equal(
			strncmp(answer, "{\"status\":0", 11) == 0, count == ADMIN_ARGUMENTS_MAX);
		free(answer);
	}
}

// Deep nesting ends in a refusal, not in the stack.
static void test_nesting(void **state)
{
	(void)state;
	static char line[ADMIN_LINE_BYTES_MAX];
	memset(line, '[', sizeof(line));
	char *answer = request_answer(commands, 4, NULL, line, sizeof(line), &later);
	assert_string_equal(answer, REFUSED("not JSON"));
	free(answer);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_lines),
		cmocka_unit_test(test_argument_count),
		cmocka_unit_test(test_nesting),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
