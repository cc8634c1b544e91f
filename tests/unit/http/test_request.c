// Request heads: what is accepted and how it is understood, what is refused and as what.

#include "dataplane/http/head.h"
#include "tests/unit/http/guard.h"
#include "tests/unit/http/text.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdio.h>

#include <cmocka.h>

#define LENGTH(array) (sizeof(array) / sizeof((array)[0]))

static const struct http_limits limits = {.line_bytes = 8192, .head_bytes = 16384, .fields = 100};
static struct http_head head;

static enum http_result parse(const char *input)
{
	return http_request_parse(guard_string(input), &limits, &head);
}

static void assert_span(struct span got, const char *expected)
{
	assert_int_equal(got.len, strlen(expected));
	assert_memory_equal(got.at, expected, got.len);
}

struct outcome {
	const char *name;
	const char *input;
	enum http_result result;
};

static void check_outcomes(const struct outcome *cases, size_t count)
{
	for (size_t i = 0; i < count; i++) {
		enum http_result result = parse(cases[i].input);
		if (result != cases[i].result)
			fail_msg("%s: %d", cases[i].name, result);
	}
}

#define FIELDS "\r\nHost: a\r\n\r\n" // after a request line

static void request_lines(void **state)
{
	(void)state;
	static const struct outcome cases[] = {
		{"plain", "GET / HTTP/1.1" FIELDS, HTTP_OK},
		{"a method nobody knows", "M-SEARCH / HTTP/1.1" FIELDS, HTTP_OK},
		{"methods are case-sensitive tokens", "get / HTTP/1.1" FIELDS, HTTP_OK},
		{"every octet of a token", "!#$%&'*+-.^_`|~09azAZ / HTTP/1.1" FIELDS, HTTP_OK},
		{"no method", " / HTTP/1.1" FIELDS, HTTP_BAD},
		{"method that is no token", "G(T / HTTP/1.1" FIELDS, HTTP_BAD},
		{"method with obs-text", "G\xc9T / HTTP/1.1" FIELDS, HTTP_BAD},
		{"space before the method", " GET / HTTP/1.1" FIELDS, HTTP_BAD},
		{"two spaces before the target", "GET  / HTTP/1.1" FIELDS, HTTP_BAD},
		{"two spaces before the version", "GET /  HTTP/1.1" FIELDS, HTTP_BAD},
		{"tab before the target", "GET\t/ HTTP/1.1" FIELDS, HTTP_BAD},
		{"tab before the version", "GET /\tHTTP/1.1" FIELDS, HTTP_BAD},
		{"space in the target", "GET /a b HTTP/1.1" FIELDS, HTTP_BAD},
		{"space after the version", "GET / HTTP/1.1 " FIELDS, HTTP_BAD},
		{"no target", "GET HTTP/1.1" FIELDS, HTTP_BAD},
		{"empty target", "GET  HTTP/1.1" FIELDS, HTTP_BAD},
		{"HTTP/0.9", "GET /" FIELDS, HTTP_BAD},
		{"only a method", "GET" FIELDS, HTTP_BAD},
		{"empty line", FIELDS, HTTP_BAD},
		{"control in the target", "GET /\x01 HTTP/1.1" FIELDS, HTTP_BAD},
		{"DEL in the target", "GET /\x7f HTTP/1.1" FIELDS, HTTP_BAD},
		{"obs-text in the target", "GET /\xe6\x97\xa5 HTTP/1.1" FIELDS, HTTP_BAD},
		{"fragment", "GET /a#b HTTP/1.1" FIELDS, HTTP_BAD},
		{"what browsers leave unescaped", "GET /a?\"<>[\\]^`{|} HTTP/1.1" FIELDS, HTTP_OK},
		{"lone LF after the line", "GET / HTTP/1.1\nHost: a\r\n\r\n", HTTP_BAD},
		{"lone CR after the line", "GET / HTTP/1.1\rHost: a\r\n\r\n", HTTP_BAD},
		{"CR CR LF after the line", "GET / HTTP/1.1\r\r\nHost: a\r\n\r\n", HTTP_BAD},
		{"a TLS hello", "\x16\x03\x01\x02" FIELDS, HTTP_BAD},
	};
	check_outcomes(cases, LENGTH(cases));
}

static void versions(void **state)
{
	(void)state;
	static const struct outcome cases[] = {
		{"1.1", "GET / HTTP/1.1" FIELDS, HTTP_OK},
		{"1.0", "GET / HTTP/1.0" FIELDS, HTTP_OK},
		{"1.2", "GET / HTTP/1.2" FIELDS, HTTP_VERSION},
		{"0.9", "GET / HTTP/0.9" FIELDS, HTTP_VERSION},
		{"2.0", "GET / HTTP/2.0" FIELDS, HTTP_VERSION},
		{"3.0", "GET / HTTP/3.0" FIELDS, HTTP_VERSION},
		{"preface of HTTP/2", "PRI * HTTP/2.0\r\n\r\n", HTTP_VERSION},
		{"small letters", "GET / http/1.1" FIELDS, HTTP_BAD},
		{"no minor", "GET / HTTP/1" FIELDS, HTTP_BAD},
		{"no dot", "GET / HTTP/1,1" FIELDS, HTTP_BAD},
		{"two digits", "GET / HTTP/1.10" FIELDS, HTTP_BAD},
		{"leading zero", "GET / HTTP/01.1" FIELDS, HTTP_BAD},
		{"letters", "GET / HTTP/x.y" FIELDS, HTTP_BAD},
		{"another protocol", "GET / ICAP/1.0" FIELDS, HTTP_BAD},
		{"space inside", "GET / HTTP/ 1.1" FIELDS, HTTP_BAD},
	};
	check_outcomes(cases, LENGTH(cases));
}

static void targets(void **state)
{
	(void)state;
	static const struct {
		const char *line;
		const char *target, *authority; // NULL: refused
	} cases[] = {
		{"GET / HTTP/1.1", "/", ""},
		{"GET /a%2Fb;c?d=e&f HTTP/1.1", "/a%2Fb;c?d=e&f", ""},
		{"GET //a/../b HTTP/1.1", "//a/../b", ""},
		{"GET http://a/b?c HTTP/1.1", "/b?c", "a"},
		{"GET HTTP://A:80/ HTTP/1.1", "/", "A:80"},
		{"GET https://a.example:443/b HTTP/1.1", "/b", "a.example:443"},
		{"GET http://a HTTP/1.1", "/", "a"},
		{"GET http://[::1]:80/x HTTP/1.1", "/x", "[::1]:80"},
		{"GET http://a//b HTTP/1.1", "//b", "a"},
		{"GET http://a/http://b/ HTTP/1.1", "/http://b/", "a"},
		{"GET http://a?b HTTP/1.1", NULL, NULL},
		{"GET http:// HTTP/1.1", NULL, NULL},
		{"GET http:///b HTTP/1.1", NULL, NULL},
		{"GET http://:80/b HTTP/1.1", NULL, NULL},
		{"GET http://user@a/ HTTP/1.1", NULL, NULL},
		{"GET http://user:secret@a/ HTTP/1.1", NULL, NULL},
		{"GET http://a:b/ HTTP/1.1", NULL, NULL},
		{"GET http:/a HTTP/1.1", NULL, NULL},
		{"GET ftp://a/ HTTP/1.1", NULL, NULL},
		{"GET httpx://a/ HTTP/1.1", NULL, NULL},
		{"GET a/b HTTP/1.1", NULL, NULL},
		{"GET ?a HTTP/1.1", NULL, NULL},
		{"GET \\a HTTP/1.1", NULL, NULL},
		{"GET * HTTP/1.1", NULL, NULL},
		{"OPTIONS * HTTP/1.1", "*", ""},
		{"OPTIONS http://a HTTP/1.1", "*", "a"},
		{"OPTIONS http://a/ HTTP/1.1", "/", "a"},
		{"OPTIONS ** HTTP/1.1", NULL, NULL},
		{"OPTIONS /a HTTP/1.1", "/a", ""},
		{"CONNECT a:443 HTTP/1.1", "a:443", "a:443"},
		{"CONNECT [::1]:443 HTTP/1.1", "[::1]:443", "[::1]:443"},
		{"CONNECT a HTTP/1.1", NULL, NULL},
		{"CONNECT a: HTTP/1.1", NULL, NULL},
		{"CONNECT a:65536 HTTP/1.1", NULL, NULL},
		{"CONNECT /a HTTP/1.1", NULL, NULL},
		{"CONNECT http://a:80/ HTTP/1.1", NULL, NULL},
		{"GET a:443 HTTP/1.1", NULL, NULL},
	};
	for (size_t i = 0; i < LENGTH(cases); i++) {
		char input[200];
		snprintf(input, sizeof(input), "%s" FIELDS, cases[i].line);
		enum http_result result = parse(input);
		if (result != (cases[i].target ? HTTP_OK : HTTP_BAD))
			fail_msg("%s: %d", cases[i].line, result);
		if (result != HTTP_OK)
			continue;
		assert_span(head.target, cases[i].target);
		assert_span(head.authority, cases[i].authority);
		bool has_scheme = strstr(cases[i].line, "://") && head.authority.len > 0;
		assert_int_equal(head.absolute_form, has_scheme);
	}
}

static void methods(void **state)
{
	(void)state;
	static const struct {
		const char *line;
		enum http_method method;
	} cases[] = {
		{"GET / HTTP/1.1", HTTP_GET},
		{"HEAD / HTTP/1.1", HTTP_HEAD},
		{"POST / HTTP/1.1", HTTP_POST},
		{"PUT / HTTP/1.1", HTTP_PUT},
		{"DELETE / HTTP/1.1", HTTP_DELETE},
		{"OPTIONS / HTTP/1.1", HTTP_OPTIONS},
		{"CONNECT a:1 HTTP/1.1", HTTP_CONNECT},
		{"TRACE / HTTP/1.1", HTTP_TRACE},
		{"PATCH / HTTP/1.1", HTTP_METHOD_OTHER},
		{"Get / HTTP/1.1", HTTP_METHOD_OTHER},
		{"GETS / HTTP/1.1", HTTP_METHOD_OTHER},
	};
	for (size_t i = 0; i < LENGTH(cases); i++) {
		char input[100];
		snprintf(input, sizeof(input), "%s" FIELDS, cases[i].line);
		assert_int_equal(parse(input), HTTP_OK);
		assert_int_equal(head.method, cases[i].method);
		assert_int_equal(head.method_name.len, strcspn(cases[i].line, " "));
	}
}

#define LINE "GET / HTTP/1.1\r\nHost: a\r\n" // before a field

static void fields(void **state)
{
	(void)state;
	static const struct outcome cases[] = {
		{"plain", LINE "A: b\r\n\r\n", HTTP_OK},
		{"no white space", LINE "A:b\r\n\r\n", HTTP_OK},
		{"much white space", LINE "A: \t b c \t\r\n\r\n", HTTP_OK},
		{"empty value", LINE "A:\r\n\r\n", HTTP_OK},
		{"only white space", LINE "A: \t \r\n\r\n", HTTP_OK},
		{"colons in the value", LINE "A::b:\r\n\r\n", HTTP_OK},
		{"obs-text in the value", LINE "A: \x80\xff\r\n\r\n", HTTP_OK},
		{"tab in the value", LINE "A: b\tc\r\n\r\n", HTTP_OK},
		{"space before the colon", LINE "A : b\r\n\r\n", HTTP_BAD},
		{"tab before the colon", LINE "A\t: b\r\n\r\n", HTTP_BAD},
		{"space before the name", LINE " A: b\r\n\r\n", HTTP_BAD},
		{"folded with a space", LINE "A: b\r\n c\r\n\r\n", HTTP_BAD},
		{"folded with a tab", LINE "A: b\r\n\tc\r\n\r\n", HTTP_BAD},
		{"folded before the first", "GET / HTTP/1.1\r\n Host: a\r\n\r\n", HTTP_BAD},
		{"line of white space", LINE " \r\n\r\n", HTTP_BAD},
		{"no colon", LINE "A\r\n\r\n", HTTP_BAD},
		{"no name", LINE ": b\r\n\r\n", HTTP_BAD},
		{"name that is no token", LINE "A(b: c\r\n\r\n", HTTP_BAD},
		{"name with obs-text", LINE "A\xe9: c\r\n\r\n", HTTP_BAD},
		{"name in quotes", LINE "\"A\": c\r\n\r\n", HTTP_BAD},
		{"control in the value", LINE "A: b\x01\r\n\r\n", HTTP_BAD},
		{"vertical tab around the value", LINE "A:\vb\r\n\r\n", HTTP_BAD},
		{"form feed around the value", LINE "A: b\f\r\n\r\n", HTTP_BAD},
		{"DEL in the value", LINE "A: b\x7f\r\n\r\n", HTTP_BAD},
		{"lone LF after the value", LINE "A: b\n\r\n", HTTP_BAD},
		{"lone CR in the value", LINE "A: b\rc\r\n\r\n", HTTP_BAD},
		{"lone CR after the value", LINE "A: b\r\r\n\r\n", HTTP_BAD},
		{"lone LF as the last line", LINE "A: b\r\n\n", HTTP_BAD},
		{"cut before the blank line", LINE "A: b\r\n", HTTP_BAD},
		{"cut in the name", LINE "A", HTTP_BAD},
		{"cut in the value", LINE "A: b", HTTP_BAD},
		{"cut in the last line", LINE "A: b\r\n\r", HTTP_BAD},
		{"something after the blank line", LINE "\r\nx", HTTP_BAD},
	};
	check_outcomes(cases, LENGTH(cases));
}

#define POST "POST /a HTTP/1.1\r\nHost: a\r\nContent-Length: 1\r\nB: c\r\n\r\n"

static void nul_is_refused_everywhere(void **state)
{
	(void)state;
	static const char good[] =
		"POST /a HTTP/1.1\r\nHost: a\r\nContent-Length: 1\r\nB: c\r\n\r\n";
	for (size_t i = 0; i < sizeof(good) - 1; i++) {
		char bad[] = POST;
		bad[i] = '\0';
		struct span in = guard_copy((struct span){bad, sizeof(bad) - 1});
		assert_int_equal(http_request_parse(in, &limits, &head), HTTP_BAD);
	}
}

static void values_are_trimmed_and_found(void **state)
{
	(void)state;
	assert_int_equal(parse("GET / HTTP/1.1\r\nhOST:\ta \r\nCookie: a=1\r\nX-A:  b c \t\r\n"
			       "COOKIE: b=2\r\nx-a: d\r\ncookie:\r\n\r\n"),
		HTTP_OK);
	assert_int_equal(head.field_count, 6);
	assert_int_equal(head.minor, 1);
	assert_span(head.host, "a");
	const struct http_field *field = http_field_first(&head, HTTP_FIELD_cookie);
	assert_span(http_field_value(&head, field), "a=1");
	assert_span(http_field_name(&head, field), "Cookie");
	field = http_field_next(&head, field);
	assert_span(http_field_value(&head, field), "b=2");
	field = http_field_next(&head, field);
	assert_span(http_field_value(&head, field), "");
	assert_null(http_field_next(&head, field));
	assert_span(http_field_name(&head, &head.fields[2]), "X-A");
	assert_span(http_field_value(&head, &head.fields[2]), "b c");
	assert_int_equal(head.fields[2].id, HTTP_FIELD_OTHER);
	assert_null(http_field_first(&head, HTTP_FIELD_accept));
}

static void limits_are_exact(void **state)
{
	(void)state;
	static const char input[] = "GET /abc HTTP/1.1\r\nHost: a\r\nB: c\r\nD: e\r\n\r\n";
	static const struct {
		struct http_limits limits;
		enum http_result result;
	} cases[] = {
		{{17, sizeof(input) - 1, 3}, HTTP_OK},
		{{16, sizeof(input) - 1, 3}, HTTP_LINE_TOO_LARGE},
		{{17, sizeof(input) - 2, 3}, HTTP_TOO_LARGE},
		{{17, sizeof(input) - 1, 2}, HTTP_TOO_LARGE},
		{{17, sizeof(input) - 1, 0}, HTTP_TOO_LARGE},
	};
	for (size_t i = 0; i < LENGTH(cases); i++)
		assert_int_equal(http_request_parse(guard_string(input), &cases[i].limits, &head),
			cases[i].result);
}

static const struct http_limits hard = {HTTP_HEAD_BYTES_MAX, HTTP_HEAD_BYTES_MAX, HTTP_FIELDS_MAX};

static void the_hard_limit_on_fields_is_reached(void **state)
{
	(void)state;
	static struct text input;
	for (unsigned beyond = 0; beyond < 2; beyond++) {
		text_clear(&input);
		text_add(&input, LINE);
		for (unsigned i = 1; i < HTTP_FIELDS_MAX + beyond; i++)
			text_add(&input, "Cookie: a\r\n");
		text_add(&input, "\r\n");
		assert_int_equal(http_request_parse(guard_copy(text_span(&input)), &hard, &head),
			beyond ? HTTP_TOO_LARGE : HTTP_OK);
	}
}

static void the_hard_limit_on_bytes_is_reached(void **state)
{
	(void)state;
	static struct text input;
	const int value_bytes = HTTP_HEAD_BYTES_MAX - strlen(LINE "Cookie: \r\n\r\n");
	for (int beyond = 0; beyond < 2; beyond++) {
		text_clear(&input);
		text_add(&input, LINE "Cookie: %0*d\r\n\r\n", value_bytes + beyond, 0);
		assert_int_equal(http_request_parse(guard_copy(text_span(&input)), &hard, &head),
			beyond ? HTTP_TOO_LARGE : HTTP_OK);
		if (!beyond)
			assert_int_equal(
				http_field_first(&head, HTTP_FIELD_cookie)->value_len, value_bytes);
	}
}

static void hosts_of_requests(void **state)
{
	(void)state;
	static const struct outcome cases[] = {
		{"none with 1.1", "GET / HTTP/1.1\r\n\r\n", HTTP_BAD},
		{"none with 1.0", "GET / HTTP/1.0\r\n\r\n", HTTP_OK},
		{"two", "GET / HTTP/1.1\r\nHost: a\r\nHost: b\r\n\r\n", HTTP_BAD},
		{"two equal ones", "GET / HTTP/1.1\r\nHost: a\r\nhost: a\r\n\r\n", HTTP_BAD},
		{"two with 1.0", "GET / HTTP/1.0\r\nHost: a\r\nHost: a\r\n\r\n", HTTP_BAD},
		{"empty", "GET / HTTP/1.1\r\nHost:\r\n\r\n", HTTP_BAD},
		{"empty with 1.0", "GET / HTTP/1.0\r\nHost:\r\n\r\n", HTTP_BAD},
		{"none beside absolute-form", "GET http://a/ HTTP/1.1\r\n\r\n", HTTP_BAD},
		{"another than absolute-form", "GET http://a/ HTTP/1.1\r\nHost: b\r\n\r\n",
			HTTP_OK},
		{"two in one field", "GET / HTTP/1.1\r\nHost: a, b\r\n\r\n", HTTP_BAD},
		{"with user", "GET / HTTP/1.1\r\nHost: u@a\r\n\r\n", HTTP_BAD},
		{"with path", "GET / HTTP/1.1\r\nHost: a/b\r\n\r\n", HTTP_BAD},
	};
	check_outcomes(cases, LENGTH(cases));
}

static void request_bodies(void **state)
{
	(void)state;
	static const struct {
		const char *name;
		const char *fields;
		enum http_result result;
		enum http_body body;
		uint64_t content_length;
	} cases[] = {
		{"none", "", HTTP_OK, HTTP_BODY_NONE, 0},
		{"length", "Content-Length: 10\r\n", HTTP_OK, HTTP_BODY_LENGTH, 10},
		{"length 0", "Content-Length: 0\r\n", HTTP_OK, HTTP_BODY_LENGTH, 0},
		{"leading zeros", "Content-Length: 0010\r\n", HTTP_OK, HTTP_BODY_LENGTH, 10},
		{"the largest length", "Content-Length: 18446744073709551615\r\n", HTTP_OK,
			HTTP_BODY_LENGTH, UINT64_MAX},
		{"one beyond", "Content-Length: 18446744073709551616\r\n", HTTP_BAD, 0, 0},
		{"far beyond", "Content-Length: 99999999999999999999999\r\n", HTTP_BAD, 0, 0},
		{"empty length", "Content-Length:\r\n", HTTP_BAD, 0, 0},
		{"plus", "Content-Length: +1\r\n", HTTP_BAD, 0, 0},
		{"minus", "Content-Length: -1\r\n", HTTP_BAD, 0, 0},
		{"hex", "Content-Length: 0x1\r\n", HTTP_BAD, 0, 0},
		{"underscore", "Content-Length: 1_0\r\n", HTTP_BAD, 0, 0},
		{"space inside", "Content-Length: 1 0\r\n", HTTP_BAD, 0, 0},
		{"letter", "Content-Length: 1a\r\n", HTTP_BAD, 0, 0},
		{"fraction", "Content-Length: 1.0\r\n", HTTP_BAD, 0, 0},
		{"list", "Content-Length: 1, 1\r\n", HTTP_BAD, 0, 0},
		{"arabic digits", "Content-Length: \xd9\xa1\r\n", HTTP_BAD, 0, 0},
		{"twice", "Content-Length: 1\r\nContent-Length: 2\r\n", HTTP_BAD, 0, 0},
		{"twice and equal", "Content-Length: 1\r\ncontent-length: 1\r\n", HTTP_BAD, 0, 0},
		{"chunked", "Transfer-Encoding: chunked\r\n", HTTP_OK, HTTP_BODY_CHUNKED, 0},
		{"in any case", "tRANSFER-eNCODING: CHUNKED\r\n", HTTP_OK, HTTP_BODY_CHUNKED, 0},
		{"CL.TE", "Content-Length: 1\r\nTransfer-Encoding: chunked\r\n", HTTP_BAD, 0, 0},
		{"TE.CL", "Transfer-Encoding: chunked\r\nContent-Length: 1\r\n", HTTP_BAD, 0, 0},
		{"TE.TE", "Transfer-Encoding: chunked\r\nTransfer-Encoding: chunked\r\n", HTTP_BAD,
			0, 0},
		{"TE.TE, one hidden", "Transfer-Encoding: chunked\r\nTransfer-encoding: x\r\n",
			HTTP_BAD, 0, 0},
		{"gzip before", "Transfer-Encoding: gzip, chunked\r\n", HTTP_BAD, 0, 0},
		{"gzip alone", "Transfer-Encoding: gzip\r\n", HTTP_BAD, 0, 0},
		{"identity", "Transfer-Encoding: identity\r\n", HTTP_BAD, 0, 0},
		{"identity beside", "Transfer-Encoding: chunked, identity\r\n", HTTP_BAD, 0, 0},
		{"chunked twice", "Transfer-Encoding: chunked, chunked\r\n", HTTP_BAD, 0, 0},
		{"empty element", "Transfer-Encoding: ,chunked\r\n", HTTP_BAD, 0, 0},
		{"parameter", "Transfer-Encoding: chunked;a=b\r\n", HTTP_BAD, 0, 0},
		{"quoted", "Transfer-Encoding: \"chunked\"\r\n", HTTP_BAD, 0, 0},
		{"xchunked", "Transfer-Encoding: xchunked\r\n", HTTP_BAD, 0, 0},
		{"chunkedx", "Transfer-Encoding: chunkedx\r\n", HTTP_BAD, 0, 0},
		{"empty coding", "Transfer-Encoding:\r\n", HTTP_BAD, 0, 0},
		{"vertical tab", "Transfer-Encoding: \vchunked\r\n", HTTP_BAD, 0, 0},
		{"space before the colon", "Transfer-Encoding : chunked\r\n", HTTP_BAD, 0, 0},
		{"folded", "Transfer-Encoding:\r\n chunked\r\n", HTTP_BAD, 0, 0},
		{"a name like it", "Transfer_Encoding: chunked\r\n", HTTP_OK, HTTP_BODY_NONE, 0},
	};
	for (size_t i = 0; i < LENGTH(cases); i++) {
		char input[300];
		snprintf(input, sizeof(input), "POST / HTTP/1.1\r\nHost: a\r\n%s\r\n",
			cases[i].fields);
		enum http_result result = parse(input);
		if (result != cases[i].result)
			fail_msg("%s: %d", cases[i].name, result);
		if (result == HTTP_OK && (head.body != cases[i].body ||
						 head.content_length != cases[i].content_length))
			fail_msg("%s: body %d, %llu", cases[i].name, head.body,
				(unsigned long long)head.content_length);
	}
	assert_int_equal(parse("POST / HTTP/1.0\r\nTransfer-Encoding: chunked\r\n\r\n"), HTTP_BAD);
}

static void connections(void **state)
{
	(void)state;
	static const struct {
		const char *name;
		const char *input;
		bool keep_alive, has_upgrade, expect_continue;
	} cases[] = {
		{"1.1", "GET / HTTP/1.1\r\nHost: a\r\n\r\n", true, false, false},
		{"1.1 close", LINE "Connection: close\r\n\r\n", false, false, false},
		{"1.1 in any case", LINE "connection: Close\r\n\r\n", false, false, false},
		{"1.1 close among others", LINE "Connection: a, ,close,\r\n\r\n", false, false,
			false},
		{"1.1 close in the second", LINE "Connection: a\r\nConnection: close\r\n\r\n",
			false, false, false},
		{"1.1 close beats keep-alive", LINE "Connection: keep-alive, close\r\n\r\n", false,
			false, false},
		{"1.1 closed is not close", LINE "Connection: closed\r\n\r\n", true, false, false},
		{"1.0", "GET / HTTP/1.0\r\n\r\n", false, false, false},
		{"1.0 keep-alive", "GET / HTTP/1.0\r\nConnection: Keep-Alive\r\n\r\n", true, false,
			false},
		{"1.0 both", "GET / HTTP/1.0\r\nConnection: Keep-Alive, close\r\n\r\n", false,
			false, false},
		{"1.0 Proxy-Connection", "GET / HTTP/1.0\r\nProxy-Connection: keep-alive\r\n\r\n",
			false, false, false},
		{"upgrade", LINE "Connection: keep-alive, Upgrade\r\nUpgrade: websocket\r\n\r\n",
			true, true, false},
		{"upgrade not listed", LINE "Upgrade: websocket\r\n\r\n", true, false, false},
		{"upgrade only listed", LINE "Connection: upgrade\r\n\r\n", true, false, false},
		{"1.0 upgrade", "GET / HTTP/1.0\r\nConnection: upgrade\r\nUpgrade: a\r\n\r\n",
			false, false, false},
		{"expect", LINE "Content-Length: 1\r\nExpect: 100-Continue\r\n\r\n", true, false,
			true},
		{"expect, chunked",
			LINE "Transfer-Encoding: chunked\r\nExpect: 100-continue\r\n\r\n", true,
			false, true},
		{"expect among others", LINE "Content-Length: 1\r\nExpect: a, 100-continue\r\n\r\n",
			true, false, true},
		{"expect without a body", LINE "Expect: 100-continue\r\n\r\n", true, false, false},
		{"expect with length 0", LINE "Content-Length: 0\r\nExpect: 100-continue\r\n\r\n",
			true, false, false},
		{"expect something else", LINE "Content-Length: 1\r\nExpect: a\r\n\r\n", true,
			false, false},
		{"1.0 expect",
			"GET / HTTP/1.0\r\nContent-Length: 1\r\nExpect: 100-continue\r\n\r\n",
			false, false, false},
	};
	for (size_t i = 0; i < LENGTH(cases); i++) {
		if (parse(cases[i].input) != HTTP_OK)
			fail_msg("%s", cases[i].name);
		if (head.keep_alive != cases[i].keep_alive ||
			head.has_upgrade != cases[i].has_upgrade ||
			head.expect_continue != cases[i].expect_continue)
			fail_msg("%s: %d %d %d", cases[i].name, head.keep_alive, head.has_upgrade,
				head.expect_continue);
	}
}

static void connection_options(void **state)
{
	(void)state;
	assert_int_equal(
		parse(LINE "Connection: X-a,\t,keep-alive\r\nConnection: te\r\n\r\n"), HTTP_OK);
	assert_int_equal(head.option_count, 3);
	assert_true(http_connection_lists(&head, SPAN("x-a")));
	assert_true(http_connection_lists(&head, SPAN("X-A")));
	assert_true(http_connection_lists(&head, SPAN("TE")));
	assert_false(http_connection_lists(&head, SPAN("x-")));
	assert_false(http_connection_lists(&head, SPAN("x-ab")));
	assert_false(http_connection_lists(&head, SPAN("")));

	static const struct outcome cases[] = {
		{"not a token", LINE "Connection: a b\r\n\r\n", HTTP_BAD},
		{"quoted", LINE "Connection: \"close\"\r\n\r\n", HTTP_BAD},
		{"with a parameter", LINE "Connection: close;a\r\n\r\n", HTTP_BAD},
		{"empty", LINE "Connection:\r\n\r\n", HTTP_OK},
		{"16 options", LINE "Connection: a,a,a,a,a,a,a,a,a,a,a,a,a,a,a,a\r\n\r\n", HTTP_OK},
		{"17 options", LINE "Connection: a,a,a,a,a,a,a,a,a,a,a,a,a,a,a,a,a\r\n\r\n",
			HTTP_TOO_LARGE},
	};
	check_outcomes(cases, LENGTH(cases));
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(request_lines),
		cmocka_unit_test(versions),
		cmocka_unit_test(targets),
		cmocka_unit_test(methods),
		cmocka_unit_test(fields),
		cmocka_unit_test(nul_is_refused_everywhere),
		cmocka_unit_test(values_are_trimmed_and_found),
		cmocka_unit_test(limits_are_exact),
		cmocka_unit_test(the_hard_limit_on_fields_is_reached),
		cmocka_unit_test(the_hard_limit_on_bytes_is_reached),
		cmocka_unit_test(hosts_of_requests),
		cmocka_unit_test(request_bodies),
		cmocka_unit_test(connections),
		cmocka_unit_test(connection_options),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
