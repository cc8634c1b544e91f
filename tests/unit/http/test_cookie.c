// Cookies: found wherever they stand, and taken out without a trace.

#include "dataplane/http/cookie.h"
#include "tests/unit/http/dice.h"
#include "tests/unit/http/guard.h"
#include "tests/unit/http/text.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>

#include <cmocka.h>

#define LENGTH(array) (sizeof(array) / sizeof((array)[0]))

// The cookies of a request with these Cookie fields, as "name=value|" each, in `out`.
static const char *cookies_of(const char *const fields[], size_t count)
{
	static struct http_head head;
	static const struct http_limits limits = {8192, 16384, 100};
	static struct text input, out;
	text_clear(&input);
	text_add(&input, "GET / HTTP/1.1\r\nHost: a\r\n");
	for (size_t i = 0; i < count; i++)
		text_add(&input, "Cookie: %s\r\nA: b\r\n", fields[i]);
	text_add(&input, "\r\n");
	struct span in = guard_copy(text_span(&input));
	assert_int_equal(http_request_parse(in, &limits, &head), HTTP_OK);
	struct cookie_walk walk = cookie_walk(&head);
	struct cookie cookie;
	text_clear(&out);
	while (cookie_next(&walk, &cookie))
		text_add(&out, "%.*s=%.*s|", (int)cookie.name.len, cookie.name.at,
			(int)cookie.value.len, cookie.value.at);
	assert_false(cookie_next(&walk, &cookie));
	return out.at;
}

static void pairs(void **state)
{
	(void)state;
	static const struct {
		const char *value;
		const char *expected;
	} cases[] = {
		{"a=1", "a=1|"},
		{"a=1; b=2", "a=1|b=2|"},
		{"a=1;b=2", "a=1|b=2|"},
		{"a=1 ;\tb=2", "a=1|b=2|"},
		{"a = 1", "a=1|"},
		{"a=1; a=2", "a=1|a=2|"},
		{"a=", "a=|"},
		{"a=b=c", "a=b=c|"},
		{"a=\"1\"", "a=1|"},
		{"a=\"\"", "a=|"},
		{"a=\"", "a=\"|"},
		{"a=\"1", "a=\"1|"},
		{"a=1\"", "a=1\"|"},
		{"a= \"1\" ; b=2", "a=1|b=2|"},
		{"a=\"1; b=2\"", "a=\"1|b=2\"|"},
		{"A=1; a=2", "A=1|a=2|"},
		{"", ""},
		{";", ""},
		{";;a=1;;", "a=1|"},
		{"a", ""},
		{"a; b=2", "b=2|"},
		{"=1; b=2", "b=2|"},
		{" =1", ""},
		{"a,b=1, c=2", "a,b=1, c=2|"},
		{"\xe6\x97\xa5=\xe6", "\xe6\x97\xa5=\xe6|"},
	};
	for (size_t i = 0; i < LENGTH(cases); i++) {
		const char *got = cookies_of(&cases[i].value, 1);
		if (strcmp(got, cases[i].expected) != 0)
			fail_msg("%s: %s", cases[i].value, got);
	}
}

static void several_fields(void **state)
{
	(void)state;
	static const char *const fields[] = {"a=1; b=2", "", "c", "a=3", "d=4;"};
	assert_string_equal(cookies_of(fields, 0), "");
	assert_string_equal(cookies_of(fields, 5), "a=1|b=2|a=3|d=4|");
}

static bool is_ours(struct span name, const void *arg)
{
	struct span prefix = {arg, strlen(arg)};
	return name.len >= prefix.len && memcmp(name.at, prefix.at, prefix.len) == 0;
}

static void ours_are_left_out(void **state)
{
	(void)state;
	static const struct {
		const char *value;
		const char *kept;
	} cases[] = {
		{"a=1; b=2", "a=1; b=2"},
		{"a=1;b=2 ; c", "a=1;b=2 ; c"},
		{"a = 1 ; b", "a = 1 ; b"},
		{"s-x=1 ;\ta=1\t; b", "a=1\t; b"},
		{"s-x=1", ""},
		{"s-x=1; a=1", "a=1"},
		{"a=1; s-x=1", "a=1"},
		{"a=1; s-x=1; b=2", "a=1; b=2"},
		{"a=1;s-x=1;b=2", "a=1;b=2"},
		{"s-x=1; s-y=2; a=1; s-x=3", "a=1"},
		{"s-x=1;  s-y=2", ""},
		{"s-x = 1; a=1", "a=1"},
		{"s-x=\"1; a=2\"", "a=2\""},
		{"a=\"1; s-x=2\"", "a=\"1"},
		{"s-x; a=1", "s-x; a=1"},
		{";a=1;;", ";a=1;;"},
		{"s-x=1;;", ""},
		{"", ""},
		{"a=\"s-x=1\"", "a=\"s-x=1\""},
		{"S-x=1", "S-x=1"},
	};
	for (size_t i = 0; i < LENGTH(cases); i++) {
		char out[100];
		size_t len = cookie_write_kept(guard_string(cases[i].value), out, is_ours, "s-");
		if (len != strlen(cases[i].kept) || memcmp(out, cases[i].kept, len) != 0)
			fail_msg("%s: %.*s", cases[i].value, (int)len, out);
	}
}

// Whatever is sent: what is written is no longer, writing again changes nothing, and the cookies in
// it are those of before but for ours.
static void random_values(void **state)
{
	(void)state;
	dice_begin();
	static const char *const parts[] = {
		";", "; ", " ", "\t", "=", "\"", "a", "b=1", "s-x=2", "s-", "a=", "\\"};
	static struct text value, expected;
	for (unsigned round = 0; round < 20000; round++) {
		char once[200], twice[200];
		text_clear(&value);
		text_add(&value, "x"); // no white space around, as in a head
		for (unsigned i = dice(16); i > 0; i--)
			text_add(&value, "%s", parts[dice(LENGTH(parts))]);
		text_add(&value, "x");
		size_t len = cookie_write_kept(guard_string(value.at), once, is_ours, "s-");
		assert_true(len <= value.len);
		once[len] = '\0';
		size_t again = cookie_write_kept(guard_string(once), twice, is_ours, "s-");
		assert_int_equal(again, len);
		assert_memory_equal(once, twice, len);

		text_clear(&expected);
		const char *pair = cookies_of(&(const char *){value.at}, 1);
		for (size_t bytes; (bytes = strcspn(pair, "|")) > 0; pair += bytes + 1)
			if (strncmp(pair, "s-", 2) != 0)
				text_add(&expected, "%.*s|", (int)bytes, pair);
		assert_string_equal(cookies_of(&(const char *){once}, 1), expected.at);
	}
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(pairs),
		cmocka_unit_test(several_fields),
		cmocka_unit_test(ours_are_left_out),
		cmocka_unit_test(random_values),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
