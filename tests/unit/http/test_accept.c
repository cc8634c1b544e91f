// Content negotiation: what is chosen for what browsers and programs send.

#include "dataplane/http/accept.h"
#include "tests/unit/http/guard.h"
#include "tests/unit/http/text.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>

#include <cmocka.h>

#define LENGTH(array) (sizeof(array) / sizeof((array)[0]))

// The head of a request with field lines `name`: each line of `values`, cut at '\n'; none if NULL.
static const struct http_head *head_with(const char *name, const char *values)
{
	static const struct http_limits limits = {8192, 16384, 100};
	static struct http_head head;
	static struct text input;
	text_clear(&input);
	text_add(&input, "GET / HTTP/1.1\r\nHost: a\r\n");
	while (values) {
		size_t bytes = strcspn(values, "\n");
		text_add(&input, "%s: %.*s\r\n", name, (int)bytes, values);
		values = values[bytes] ? values + bytes + 1 : NULL;
	}
	text_add(&input, "\r\n");
	struct span in = guard_copy(text_span(&input));
	assert_int_equal(http_request_parse(in, &limits, &head), HTTP_OK);
	return &head;
}

enum { ABSENT = 1, ANY = 2, NAMES = 4, JSON = 8 };
static const struct {
	const char *accept;
	unsigned expected;
} types_of[] = {
	{NULL, ABSENT},
	{"", 0},
	{"*/*", ANY},
	{"text/html", NAMES},
	{"application/json", NAMES | JSON},
	{"application/json, */*", NAMES | JSON},
	{"*/*, application/json", NAMES | JSON},
	{"text/html, */*", NAMES},
	{"text/html, application/json", NAMES},
	{"application/json, text/html", NAMES},
	{"application/json, text/html;q=0.9", NAMES | JSON},
	{"application/json;q=0.9, text/html", NAMES},
	{"application/json;q=0.9, text/html;q=0.8, */*;q=1", NAMES | JSON},
	{"application/json;q=0.1, */*;q=0.2", NAMES},
	{"application/json;q=0.2, */*;q=0.1", NAMES | JSON},
	{"application/json;q=0", 0},
	{"application/json;q=0, text/html;q=0", 0},
	{"text/html;q=0", 0},
	{"text/html;q=0, */*", JSON},
	{"application/json;q=0, */*", 0},
	{"application/json;q=0.0, text/html;q=0.000, */*;q=0.5", 0},
	{"text/*", 0},
	{"application/*", JSON},
	{"application/*, */*", JSON},
	{"application/*, text/*", 0},
	{"application/json, text/*", NAMES | JSON},
	{"application/*, text/html", NAMES},
	{"application/*;q=0.9, text/*;q=0.8", JSON},
	{"application/*;q=0.9, application/json;q=0.1, text/html;q=0.5", NAMES},
	{"APPLICATION/JSON", NAMES | JSON},
	{"application/json;charset=utf-8", NAMES | JSON},
	{"application/json ; charset=\"a,b;q=0\" ; Q=0.5, text/html;q=0.4", NAMES | JSON},
	{"application/json;a=\"\\\"\", text/html;q=0.5", NAMES | JSON},
	{"application/json;q=0.5;ext=1, text/html;q=0.4", NAMES | JSON},
	{"application/json;;q=0.5, text/html;q=0.4", NAMES | JSON},
	{",, application/json ,", NAMES | JSON},
	{"application/json\ntext/html;q=0.5", NAMES | JSON},
	{"text/html;q=0.5\napplication/json", NAMES | JSON},
	{"*/*\n*/*", 0},
	{"*/*;q=0.8", 0},
	{"*/*, image/png", 0},
	{"image/png", 0},
	{"application/problem+json", 0},
	{"text/html, application/xhtml+xml, application/xml;q=0.9, image/webp, */*;q=0.8",
		NAMES}, // a browser's
	{"application/json, text/plain, */*", NAMES | JSON}, // a script's
	{"text/html, image/gif, image/jpeg, *; q=.2, */*; q=.2", NAMES}, // Java's
	// against the grammar: that element is ignored
	{"application/json;q=2", 0},
	{"application/json;q=1.001", 0},
	{"application/json;q=0.1234", 0},
	{"application/json;q=.5", 0},
	{"application/json;q=-1", 0},
	{"application/json;q=", 0},
	{"application/json;q", 0},
	{"application/json;q =1", 0},
	{"application/json;q= 1", 0},
	{"application/json;q=1x", 0},
	{"application/json;q=\"1\"", 0},
	{"application/json;a=b c", 0},
	{"application/json;=b", 0},
	{"application/json;a=\"b, text/html", 0},
	{"application /json", 0},
	{"application/json text/html", 0},
	{"application/json;q=x, text/html;q=0.1", NAMES},
	// valid, at the edges
	{"application/json;q=1., text/html;q=0.999", NAMES | JSON},
	{"application/json;q=1.000, text/html;q=0.999", NAMES | JSON},
	{"application/json;q=0.001, text/html;q=0.", NAMES | JSON},
	{"application/json;q=0.5, application/json;q=0.9, text/html;q=0.7", NAMES | JSON},
};

static void types(void **state)
{
	(void)state;
	for (size_t i = 0; i < LENGTH(types_of); i++) {
		struct accept_types got = accept_types(head_with("Accept", types_of[i].accept));
		unsigned flags = (got.is_absent ? ABSENT : 0) | (got.is_any ? ANY : 0) |
				 (got.names_html_or_json ? NAMES : 0) |
				 (got.ranks_json_first ? JSON : 0);
		if (flags != types_of[i].expected)
			fail_msg("%s: %x", types_of[i].accept, flags);
	}
}

static void languages(void **state)
{
	(void)state;
	enum { EN, JA, PT };
	static const struct span offered[] = {{"en", 2}, {"ja", 2}, {"pt-br", 5}};
	static const struct {
		const char *accept;
		unsigned expected;
	} cases[] = {
		{NULL, EN},
		{"", EN},
		{"en", EN},
		{"ja", JA},
		{"JA", JA},
		{"ja-JP", JA},
		{"ja-Hira-JP", JA},
		{"jav", EN},
		{"j", EN},
		{"-ja", EN},
		{"de", EN},
		{"de, ja;q=0.1", JA},
		{"*", EN},
		{"ja, *;q=0.5", JA},
		{"ja;q=0.5, *", EN},
		{"en;q=0, *", JA},
		{"ja;q=0", EN},
		{"en;q=0, ja;q=0", EN},
		{"ja,en-US;q=0.9,en;q=0.8", JA}, // browsers'
		{"en-US,en;q=0.9,ja;q=0.8", EN},
		{"en-GB;q=0.5, ja;q=0.7, en;q=0.9", EN},
		{"ja, en", JA},
		{"en, ja", EN},
		{"ja\nen", JA},
		{"en;q=0.5\nja", JA},
		{"ja;q=x, en;q=0.1", EN},
		{"pt-BR", PT},
		{"pt", PT},
		{"pt-PT, ja;q=0.5", JA},
		{"pt-B", EN},
		{"pt;q=0.5, ja;q=0.4", PT},
	};
	for (size_t i = 0; i < LENGTH(cases); i++)
		if (accept_language(head_with("Accept-Language", cases[i].accept), offered,
			    LENGTH(offered)) != cases[i].expected)
			fail_msg("%s", cases[i].accept);
	assert_int_equal(accept_language(head_with("Accept-Language", "ja"), NULL, 0), 0);
}

static void encodings(void **state)
{
	(void)state;
	static const struct {
		const char *accept;
		enum accept_encoding expected;
	} cases[] = {
		{NULL, ACCEPT_IDENTITY},
		{"", ACCEPT_IDENTITY},
		{"gzip", ACCEPT_GZIP},
		{"x-gzip", ACCEPT_GZIP},
		{"GZIP", ACCEPT_GZIP},
		{"br", ACCEPT_BR},
		{"gzip, deflate, br, zstd", ACCEPT_BR},
		{"gzip, deflate", ACCEPT_GZIP},
		{"deflate", ACCEPT_IDENTITY},
		{"gzip;q=1.0, br;q=0.5", ACCEPT_GZIP},
		{"gzip;q=0.5, br;q=0.5", ACCEPT_BR},
		{"br;q=0, gzip", ACCEPT_GZIP},
		{"br;q=0, gzip;q=0", ACCEPT_IDENTITY},
		{"*", ACCEPT_BR},
		{"*;q=0", ACCEPT_IDENTITY},
		{"br;q=0, *", ACCEPT_GZIP},
		{"gzip, *;q=0", ACCEPT_GZIP},
		{"identity, gzip;q=0.5", ACCEPT_IDENTITY},
		{"identity;q=0.5, gzip", ACCEPT_GZIP},
		{"identity, gzip", ACCEPT_GZIP},
		{"identity;q=0", ACCEPT_IDENTITY},
		{"gzip\nbr", ACCEPT_BR},
		{"gzip, brotli", ACCEPT_GZIP},
		{"br;q=1.5, gzip", ACCEPT_GZIP},
	};
	for (size_t i = 0; i < LENGTH(cases); i++)
		if (accept_encoding(head_with("Accept-Encoding", cases[i].accept)) !=
			cases[i].expected)
			fail_msg("%s", cases[i].accept);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(types),
		cmocka_unit_test(languages),
		cmocka_unit_test(encodings),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
