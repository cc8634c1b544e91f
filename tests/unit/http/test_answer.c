// Answer heads of origins: status lines, and what tells how long the body is.

#include "dataplane/http/head.h"
#include "tests/unit/http/guard.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdio.h>

#include <cmocka.h>

#define LENGTH(array) (sizeof(array) / sizeof((array)[0]))

static const struct http_limits limits = {.line_bytes = 8192, .head_bytes = 16384, .fields = 100};
static struct http_head head;

static void status_lines(void **state)
{
	(void)state;
	static const struct {
		const char *name;
		const char *line;
		enum http_result result;
		unsigned status;
	} cases[] = {
		{"plain", "HTTP/1.1 200 OK", HTTP_OK, 200},
		{"1.0", "HTTP/1.0 404 Not Found", HTTP_OK, 404},
		{"empty reason", "HTTP/1.1 200 ", HTTP_OK, 200},
		{"reason with tab and obs-text", "HTTP/1.1 200 \t\xe6\x97\xa5 a", HTTP_OK, 200},
		{"lowest", "HTTP/1.1 100 a", HTTP_OK, 100},
		{"highest", "HTTP/1.1 599 a", HTTP_OK, 599},
		{"too low", "HTTP/1.1 099 a", HTTP_BAD, 0},
		{"too high", "HTTP/1.1 600 a", HTTP_BAD, 0},
		{"two digits", "HTTP/1.1 20 OK", HTTP_BAD, 0},
		{"four digits", "HTTP/1.1 2000 OK", HTTP_BAD, 0},
		{"letters", "HTTP/1.1 2x0 OK", HTTP_BAD, 0},
		{"no space after the status", "HTTP/1.1 200", HTTP_BAD, 0},
		{"no status", "HTTP/1.1 OK", HTTP_BAD, 0},
		{"only a version", "HTTP/1.1", HTTP_BAD, 0},
		{"two spaces", "HTTP/1.1  200 OK", HTTP_BAD, 0},
		{"tab", "HTTP/1.1\t200 OK", HTTP_BAD, 0},
		{"space in front", " HTTP/1.1 200 OK", HTTP_BAD, 0},
		{"control in the reason", "HTTP/1.1 200 O\x01K", HTTP_BAD, 0},
		{"lone CR in the reason", "HTTP/1.1 200 O\rK", HTTP_BAD, 0},
		{"2.0", "HTTP/2.0 200 OK", HTTP_VERSION, 0},
		{"1.2", "HTTP/1.2 200 OK", HTTP_VERSION, 0},
		{"no minor", "HTTP/2 200 OK", HTTP_BAD, 0},
		{"another protocol", "ICY/1.1 200 OK", HTTP_BAD, 0},
		{"no status line", "Content-Length: 1", HTTP_BAD, 0},
		{"empty", "", HTTP_BAD, 0},
	};
	for (size_t i = 0; i < LENGTH(cases); i++) {
		char input[200];
		snprintf(input, sizeof(input), "%s\r\nA: b\r\n\r\n", cases[i].line);
		enum http_result result =
			http_answer_parse(guard_string(input), &limits, HTTP_GET, &head);
		if (result != cases[i].result)
			fail_msg("%s: %d", cases[i].name, result);
		if (result == HTTP_OK)
			assert_int_equal(head.status, cases[i].status);
	}
}

static void bodies(void **state)
{
	(void)state;
#define LENGTH_3 "Content-Length: 3\r\n"
#define CHUNKED "Transfer-Encoding: chunked\r\n"
	static const struct {
		const char *name;
		enum http_method asked;
		const char *status;
		const char *fields;
		enum http_result result;
		enum http_body body;
	} cases[] = {
		{"length", HTTP_GET, "200", LENGTH_3, HTTP_OK, HTTP_BODY_LENGTH},
		{"chunked", HTTP_GET, "200", CHUNKED, HTTP_OK, HTTP_BODY_CHUNKED},
		{"neither", HTTP_GET, "200", "", HTTP_OK, HTTP_BODY_CLOSE},
		{"error with length", HTTP_GET, "500", LENGTH_3, HTTP_OK, HTTP_BODY_LENGTH},
		{"HEAD, length", HTTP_HEAD, "200", LENGTH_3, HTTP_OK, HTTP_BODY_NONE},
		{"HEAD, chunked", HTTP_HEAD, "200", CHUNKED, HTTP_OK, HTTP_BODY_NONE},
		{"HEAD, neither", HTTP_HEAD, "404", "", HTTP_OK, HTTP_BODY_NONE},
		{"100", HTTP_GET, "100", "", HTTP_OK, HTTP_BODY_NONE},
		{"101", HTTP_GET, "101", "", HTTP_OK, HTTP_BODY_NONE},
		{"103", HTTP_GET, "103", "Link: a\r\n", HTTP_OK, HTTP_BODY_NONE},
		{"100, length 0", HTTP_GET, "100", "Content-Length: 0\r\n", HTTP_OK,
			HTTP_BODY_NONE},
		{"100, length", HTTP_GET, "100", LENGTH_3, HTTP_BAD, 0},
		{"100, chunked", HTTP_GET, "100", CHUNKED, HTTP_BAD, 0},
		{"204", HTTP_GET, "204", "", HTTP_OK, HTTP_BODY_NONE},
		{"204, length 0", HTTP_GET, "204", "Content-Length: 0\r\n", HTTP_OK,
			HTTP_BODY_NONE},
		{"204, length", HTTP_GET, "204", LENGTH_3, HTTP_BAD, 0},
		{"204, chunked", HTTP_GET, "204", CHUNKED, HTTP_BAD, 0},
		{"204 to HEAD, length", HTTP_HEAD, "204", LENGTH_3, HTTP_BAD, 0},
		{"304", HTTP_GET, "304", "", HTTP_OK, HTTP_BODY_NONE},
		{"304, length", HTTP_GET, "304", LENGTH_3, HTTP_OK, HTTP_BODY_NONE},
		{"304, chunked", HTTP_GET, "304", CHUNKED, HTTP_OK, HTTP_BODY_NONE},
		{"205 has one like others", HTTP_GET, "205", LENGTH_3, HTTP_OK, HTTP_BODY_LENGTH},
		{"CONNECT taken", HTTP_CONNECT, "200", LENGTH_3, HTTP_OK, HTTP_BODY_NONE},
		{"CONNECT refused", HTTP_CONNECT, "403", LENGTH_3, HTTP_OK, HTTP_BODY_LENGTH},
		{"CL.TE", HTTP_GET, "200", LENGTH_3 CHUNKED, HTTP_BAD, 0},
		{"CL.TE to HEAD", HTTP_HEAD, "200", LENGTH_3 CHUNKED, HTTP_BAD, 0},
		{"two equal lengths", HTTP_GET, "200", LENGTH_3 LENGTH_3, HTTP_BAD, 0},
		{"two codings", HTTP_GET, "200", CHUNKED CHUNKED, HTTP_BAD, 0},
		{"gzip, chunked", HTTP_GET, "200", "Transfer-Encoding: gzip, chunked\r\n", HTTP_BAD,
			0},
		{"bad length to HEAD", HTTP_HEAD, "200", "Content-Length: x\r\n", HTTP_BAD, 0},
		{"bad length of a 304", HTTP_GET, "304", "Content-Length: -1\r\n", HTTP_BAD, 0},
		{"bad field", HTTP_GET, "200", "A : b\r\n", HTTP_BAD, 0},
		{"folded field", HTTP_GET, "200", "A: b\r\n c\r\n", HTTP_BAD, 0},
	};
	for (size_t i = 0; i < LENGTH(cases); i++) {
		char input[200];
		snprintf(input, sizeof(input), "HTTP/1.1 %s a\r\n%s\r\n", cases[i].status,
			cases[i].fields);
		enum http_result result =
			http_answer_parse(guard_string(input), &limits, cases[i].asked, &head);
		if (result != cases[i].result)
			fail_msg("%s: %d", cases[i].name, result);
		if (result == HTTP_OK && head.body != cases[i].body)
			fail_msg("%s: body %d", cases[i].name, head.body);
		if (result == HTTP_OK)
			assert_int_equal(
				head.content_length, head.body == HTTP_BODY_LENGTH ? 3 : 0);
	}
}

static void connections(void **state)
{
	(void)state;
	static const struct {
		const char *name;
		const char *input;
		bool keep_alive, has_upgrade;
	} cases[] = {
		{"1.1", "HTTP/1.1 200 a\r\nContent-Length: 3\r\n\r\n", true, false},
		{"1.1 close", "HTTP/1.1 200 a\r\nContent-Length: 3\r\nConnection: close\r\n\r\n",
			false, false},
		{"1.1 until the end", "HTTP/1.1 200 a\r\n\r\n", false, false},
		{"1.1 without a body", "HTTP/1.1 204 a\r\n\r\n", true, false},
		{"1.0", "HTTP/1.0 200 a\r\nContent-Length: 3\r\n\r\n", false, false},
		{"1.0 keep-alive",
			"HTTP/1.0 200 a\r\nContent-Length: 3\r\nConnection: keep-alive\r\n\r\n",
			true, false},
		{"1.0 keep-alive until the end", "HTTP/1.0 200 a\r\nConnection: keep-alive\r\n\r\n",
			false, false},
		{"101", "HTTP/1.1 101 a\r\nUpgrade: b\r\nConnection: upgrade\r\n\r\n", true, true},
	};
	for (size_t i = 0; i < LENGTH(cases); i++) {
		if (http_answer_parse(guard_string(cases[i].input), &limits, HTTP_GET, &head) !=
			HTTP_OK)
			fail_msg("%s", cases[i].name);
		if (head.keep_alive != cases[i].keep_alive ||
			head.has_upgrade != cases[i].has_upgrade)
			fail_msg("%s: %d %d", cases[i].name, head.keep_alive, head.has_upgrade);
	}
	assert_int_equal(
		http_answer_parse(
			guard_string("HTTP/1.0 200 a\r\nTransfer-Encoding: chunked\r\n\r\n"),
			&limits, HTTP_GET, &head),
		HTTP_BAD);
}

static void limits_are_exact(void **state)
{
	(void)state;
	static const char input[] = "HTTP/1.1 200 OK\r\nA: b\r\nC: d\r\n\r\n";
	static const struct {
		struct http_limits limits;
		enum http_result result;
	} cases[] = {
		{{15, sizeof(input) - 1, 2}, HTTP_OK},
		{{14, sizeof(input) - 1, 2}, HTTP_LINE_TOO_LARGE},
		{{15, sizeof(input) - 2, 2}, HTTP_TOO_LARGE},
		{{15, sizeof(input) - 1, 1}, HTTP_TOO_LARGE},
	};
	for (size_t i = 0; i < LENGTH(cases); i++)
		assert_int_equal(
			http_answer_parse(guard_string(input), &cases[i].limits, HTTP_GET, &head),
			cases[i].result);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(status_lines),
		cmocka_unit_test(bodies),
		cmocka_unit_test(connections),
		cmocka_unit_test(limits_are_exact),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
