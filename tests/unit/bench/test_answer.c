// Answers: whole, byte by byte and cut; what the crowd reads in them.

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "bench/crowd/answer.h"

static struct answer answer;

static const struct {
	const char *name, *text;
	enum answer_result result;
	uint16_t status;
	bool closes;
	const char *body; // as kept
} rows[] = {
	{"length", "HTTP/1.1 200 OK\r\nContent-Length: 3\r\n\r\nabc", ANSWER_DONE, 200, false,
		"abc"},
	{"length 0", "HTTP/1.1 204 No Content\r\ncontent-length:0\r\n\r\n", ANSWER_DONE, 204, false,
		""},
	{"no content", "HTTP/1.1 204 No Content\r\n\r\n", ANSWER_DONE, 204, false, ""},
	{"close", "HTTP/1.1 410 Gone\r\nConnection: Close\r\nContent-Length: 1\r\n\r\nx",
		ANSWER_DONE, 410, true, "x"},
	{"interim first",
		"HTTP/1.1 103 Early Hints\r\nLink: </a>\r\n\r\nHTTP/1.1 200 OK\r\n"
		"Content-Length: 2\r\n\r\nok",
		ANSWER_DONE, 200, false, "ok"},
	{"chunks",
		"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n"
		"3\r\nabc\r\nA;x=y\r\n0123456789\r\n0\r\nTrailer: t\r\n\r\n",
		ANSWER_DONE, 200, false, "abc\r\n0123456789\r\n"},
	{"until close", "HTTP/1.1 200 OK\r\n\r\nsome", ANSWER_MORE, 200, true, "some"},
	{"cut in the body", "HTTP/1.1 200 OK\r\nContent-Length: 3\r\n\r\nab", ANSWER_MORE, 200,
		false, "ab"},
	{"cut in the head", "HTTP/1.1 200 OK\r\nContent-Len", ANSWER_MORE, 0, false, ""},
	{"too much", "HTTP/1.1 200 OK\r\nContent-Length: 1\r\n\r\nab", ANSWER_BAD, 200, false, "a"},
	{"not HTTP", "SSH-2.0-OpenSSH_9.2\r\n\r\n", ANSWER_BAD, 0, false, ""},
};
#define ROWS (sizeof(rows) / sizeof(rows[0]))

static void check(size_t row, enum answer_result result)
{
	if (result != rows[row].result || answer.status != rows[row].status ||
		answer.closes != rows[row].closes || answer.body_bytes != strlen(rows[row].body) ||
		memcmp(answer.body, rows[row].body, answer.body_bytes) != 0)
		fail_msg("%s: %d %u %d '%.*s'", rows[row].name, result, answer.status,
			answer.closes, (int)answer.body_bytes, answer.body);
}

static void reads_whole(void **state)
{
	(void)state;
	for (size_t i = 0; i < ROWS; i++) {
		answer_begin(&answer);
		check(i, answer_feed(&answer, (struct span){rows[i].text, strlen(rows[i].text)}));
	}
}

static void reads_byte_by_byte(void **state)
{
	(void)state;
	for (size_t i = 0; i < ROWS; i++) {
		enum answer_result result = ANSWER_MORE;
		answer_begin(&answer);
		for (const char *at = rows[i].text; *at && result != ANSWER_BAD; at++)
			result = answer_feed(&answer, (struct span){at, 1});
		check(i, result);
	}
}

static void knows_when_the_end_is_the_end(void **state)
{
	(void)state;
	for (size_t i = 0; i < ROWS; i++) {
		answer_begin(&answer);
		if (answer_feed(&answer, (struct span){rows[i].text, strlen(rows[i].text)}) ==
			ANSWER_MORE)
			assert_int_equal(answer_is_whole_at_end(&answer),
				strcmp(rows[i].name, "until close") == 0);
	}
}

static void refuses_a_head_too_large(void **state)
{
	(void)state;
	static char text[ANSWER_HEAD_MAX + 1];
	memset(text, 'a', sizeof(text));
	memcpy(text, "HTTP/1.1 200 OK\r\nA: ", 20);
	answer_begin(&answer);
	assert_int_equal(answer_feed(&answer, (struct span){text, ANSWER_HEAD_MAX}), ANSWER_MORE);
	assert_int_equal(answer_feed(&answer, (struct span){text, 1}), ANSWER_BAD);
}

static void keeps_the_beginning_of_a_body(void **state)
{
	(void)state;
	static char body[ANSWER_BODY_KEPT + 1];
	static const char head[] = "HTTP/1.1 200 OK\r\nContent-Length: 1025\r\n\r\n";
	assert_int_equal(sizeof(body), 1025);
	answer_begin(&answer);
	answer_feed(&answer, (struct span){head, sizeof(head) - 1});
	assert_int_equal(answer_feed(&answer, (struct span){body, sizeof(body)}), ANSWER_DONE);
	assert_int_equal(answer.body_bytes, ANSWER_BODY_KEPT);
}

static void is_text(struct span span, const char *text)
{
	assert_int_equal(span.len, strlen(text));
	assert_memory_equal(span.at, text, span.len);
}

static void finds_fields_cookies_and_json(void **state)
{
	(void)state;
	static const char text[] =
		"HTTP/1.1 200 OK\r\nSluice-State:  next \r\nSet-Cookie: a=1; Path=/\r\n"
		"set-cookie: sluice-t-b=TOKEN; HttpOnly\r\nSet-Cookie: sluice-t-bb=other\r\n"
		"Content-Length: 59\r\n\r\n"
		"{\"state\":\"waiting\",\"room\":\"state\",\"poll_after\":12,\"last\":3}";
	answer_begin(&answer);
	assert_int_equal(answer_feed(&answer, (struct span){text, sizeof(text) - 1}), ANSWER_DONE);
	is_text(answer_field(&answer, "sluice-state"), "next");
	assert_null(answer_field(&answer, "sluice").at);
	is_text(answer_cookie(&answer, "sluice-t-b"), "TOKEN");
	is_text(answer_cookie(&answer, "a"), "1");
	assert_null(answer_cookie(&answer, "sluice-t").at);
	is_text(answer_json(&answer, "state"), "waiting");
	is_text(answer_json(&answer, "poll_after"), "12");
	is_text(answer_json(&answer, "last"), "3");
	assert_null(answer_json(&answer, "waiting").at);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(reads_whole),
		cmocka_unit_test(reads_byte_by_byte),
		cmocka_unit_test(knows_when_the_end_is_the_end),
		cmocka_unit_test(refuses_a_head_too_large),
		cmocka_unit_test(keeps_the_beginning_of_a_body),
		cmocka_unit_test(finds_fields_cookies_and_json),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
