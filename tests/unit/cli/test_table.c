// JSON in, what a person sees out.

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "controlplane/cli/table.h"

#include <stdlib.h>

static const struct table_case {
	const char *name, *json;
	unsigned width;
	const char *text;
} cases[] = {
	{"a list of objects",
		"[{\"room\":\"derby\",\"waiting\":12},{\"room\":\"a\",\"waiting\":47382}]", 0,
		"room   waiting\n"
		"derby       12\n"
		"a        47382\n"},
	{"numbers to the right of their title",
		"[{\"n\":1,\"rate\":2.5,\"text\":\"x\"},{\"n\":1000,\"rate\":10,\"text\":\"yy\"}]",
		0,
		"   n  rate  text\n"
		"   1  2.50  x\n"
		"1000    10  yy\n"},
	{"what an object lacks", "[{\"a\":1,\"b\":null},{\"a\":2}]", 0,
		"a  b\n"
		"1  -\n"
		"2  -\n"},
	{"booleans, and what is inside", "[{\"a\":true,\"b\":[1,2]},{\"a\":false,\"b\":{\"c\":1}}]",
		0,
		"a    b\n"
		"yes  [1,2]\n"
		"no   {\"c\":1}\n"},
	{"an object", "{\"room\":\"derby\",\"capacity\":500,\"store\":{\"state\":\"saved\"}}", 0,
		"room         derby\n"
		"capacity     500\n"
		"store.state  saved\n"},
	{"an object with a list of objects",
		"{\"a\":1,\"rooms\":[{\"room\":\"derby\",\"n\":7}],\"names\":[\"x\"],\"none\":[]}",
		0,
		"a      1\n"
		"names  [\"x\"]\n"
		"none   []\n"
		"\n"
		"rooms\n"
		"room   n\n"
		"derby  7\n"},
	{"an empty list", "[]", 0, "none\n"},
	{"an empty object", "{}", 0, ""},
	{"a text", "\"done\"", 0, "done\n"},
	{"a number", "5", 0, "5\n"},
	{"a list of numbers", "[1,2]", 0, "[1,2]\n"},
	{"as wide as the terminal", "[{\"a\":1,\"text\":\"abcdefgh\"}]", 11,
		"a  text\n"
		"1  abcdefgh\n"},
	{"wider than the terminal", "[{\"a\":1,\"text\":\"abcdefgh\"}]", 10,
		"a  text\n"
		"1  abcdefg\n"},
	{"cut between characters", "[{\"a\":1,\"text\":\"日本語\"}]", 5,
		"a  te\n"
		"1  日本\n"},
	{"wide characters pad by character", "[{\"a\":\"日本\",\"b\":1},{\"a\":\"xyz\",\"b\":2}]",
		0,
		"a    b\n"
		"日本   1\n"
		"xyz  2\n"},
	{"no command to the terminal", "\"a\\u001b[31m\\u009bb\\n\"", 0,
		"a?[31m?\x9b"
		"b?\n"},
};

static void test_tables(void **state)
{
	(void)state;
	for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
		json_t *data = json_loads(cases[i].json, JSON_DECODE_ANY, NULL);
		char *text;
		size_t len;
		FILE *out = open_memstream(&text, &len);
		print_message("%s\n", cases[i].name);
		table_print(data, cases[i].width, out);
		fclose(out);
		assert_string_equal(text, cases[i].text);
		free(text);
		json_decref(data);
	}
}

int main(void)
{
	const struct CMUnitTest tests[] = {cmocka_unit_test(test_tables)};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
