// Where heads end: every prefix of one is incomplete, limits are exact, and how the bytes were cut
// makes no difference.

#include "dataplane/http/head.h"
#include "tests/unit/http/dice.h"
#include "tests/unit/http/guard.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>

#include <cmocka.h>

static const struct http_limits roomy = {.line_bytes = 8192, .head_bytes = 16384, .fields = 100};

static const char *const whole[] = {
	"GET / HTTP/1.1\r\nHost: a\r\n\r\n",
	"GET / HTTP/1.0\r\n\r\n",
	"POST /a?b=c HTTP/1.1\r\nHost: a.example:8080\r\nContent-Length: 3\r\n"
	"Cookie: a=1; b=2; sluice-t-derby=0123456789012345678901234567890123456789012345678901234"
	"567890123\r\nUser-Agent: Mozilla/5.0 (X11; Linux x86_64) \xe6\x97\xa5\t\r\n\r\n",
	"OPTIONS * HTTP/1.1\r\nHost: a\r\nX:\r\n\r\n",
};

static const char *const broken[] = {
	"\r\nGET / HTTP/1.1\r\n\r\n",
	"\nGET / HTTP/1.1\r\n\r\n",
	"GET / HTTP/1.1\nHost: a\r\n\r\n",
	"GET / HTTP/1.1\rHost: a\r\n\r\n",
	"GET / HTTP/1.1\r\r\nHost: a\r\n\r\n",
	"GET / HTTP/1.1\r\nHost: a\n\r\n",
	"GET / HTTP/1.1\r\nHost: a\r\n\n",
	"GET / HTTP/1.1\r\nHost: a\r\n\rX",
	"GET / HTTP/1.1\r\nHost: a\x7f\r\n\r\n",
	"GET / HTTP/1.1\r\nHost: \x01\r\n\r\n",
};

// Feed `in` in pieces of `step` bytes. Returns what came first that is not HTTP_MORE.
static enum http_result feed(
	struct span in, const struct http_limits *limits, size_t step, uint32_t *head_bytes)
{
	uint32_t scanned = 0;
	for (size_t len = 0;; len = len + step < in.len ? len + step : in.len) {
		struct span seen = guard_copy((struct span){in.at, len});
		enum http_result result = http_head_end(seen, limits, &scanned, head_bytes);
		assert_true(scanned <= len);
		if (result != HTTP_MORE || len == in.len)
			return result;
	}
}

static void every_prefix_is_incomplete(void **state)
{
	(void)state;
	for (size_t i = 0; i < sizeof(whole) / sizeof(whole[0]); i++) {
		size_t bytes = strlen(whole[i]);
		for (size_t len = 0; len < bytes; len++) {
			uint32_t scanned = 0, head_bytes;
			struct span in = guard_copy((struct span){whole[i], len});
			assert_int_equal(
				http_head_end(in, &roomy, &scanned, &head_bytes), HTTP_MORE);
		}
	}
}

static void whole_heads_end_at_the_blank_line(void **state)
{
	(void)state;
	for (size_t i = 0; i < sizeof(whole) / sizeof(whole[0]); i++) {
		for (size_t step = 1; step < 40; step++) {
			uint32_t head_bytes;
			struct span in = {whole[i], strlen(whole[i])};
			assert_int_equal(feed(in, &roomy, step, &head_bytes), HTTP_OK);
			assert_int_equal(head_bytes, in.len);
		}
	}
}

static void what_follows_the_head_is_left(void **state)
{
	(void)state;
	uint32_t scanned = 0, head_bytes;
	struct span in = guard_string("GET / HTTP/1.1\r\nHost: a\r\n\r\n\0\n\rGET");
	assert_int_equal(http_head_end(in, &roomy, &scanned, &head_bytes), HTTP_OK);
	assert_int_equal(head_bytes, 27);
}

static void broken_heads_are_refused_at_once(void **state)
{
	(void)state;
	for (size_t i = 0; i < sizeof(broken) / sizeof(broken[0]); i++) {
		for (size_t step = 1; step < 40; step++) {
			uint32_t head_bytes;
			struct span in = {broken[i], strlen(broken[i])};
			assert_int_equal(feed(in, &roomy, step, &head_bytes), HTTP_BAD);
		}
	}
	uint32_t head_bytes; // NUL, with the end not yet there
	assert_int_equal(feed((struct span){"GET /\0", 6}, &roomy, 6, &head_bytes), HTTP_BAD);
}

static void limits_are_exact(void **state)
{
	(void)state;
	static const struct {
		const char *name;
		const char *input;
		uint32_t line_bytes, head_bytes;
		enum http_result result;
	} cases[] = {
		{"line at the limit", "GET / HTTP/1.1\r\nA: b\r\n\r\n", 14, 100, HTTP_OK},
		{"line one beyond", "GET / HTTP/1.1\r\nA: b\r\n\r\n", 13, 100, HTTP_LINE_TOO_LARGE},
		{"line at the limit, end unseen", "GET / HTTP/1.1", 14, 100, HTTP_MORE},
		{"line beyond, end unseen", "GET / HTTP/1.1", 13, 100, HTTP_LINE_TOO_LARGE},
		{"a long field is no line", "GET / HTTP/1.1\r\nA: bcdefghijklmnop\r\n\r\n", 14, 100,
			HTTP_OK},
		{"head at the limit", "GET / HTTP/1.1\r\nA: b\r\n\r\n", 14, 24, HTTP_OK},
		{"head one beyond", "GET / HTTP/1.1\r\nA: b\r\n\r\n", 14, 23, HTTP_TOO_LARGE},
		{"head beyond, end unseen", "GET / HTTP/1.1\r\nA: bcde", 14, 24, HTTP_TOO_LARGE},
		{"head can still end in time", "GET / HTTP/1.1\r\nA: bcd", 14, 25, HTTP_MORE},
		{"too large before bad", "GET / HTTP/1.1\r\nA: bcdef\n", 14, 24, HTTP_TOO_LARGE},
		{"bad before too large", "GET / HTTP/1.1\r\nA: \nbcdef", 14, 24, HTTP_BAD},
		{"line too large before bad", "GET / HTTP/1.1x\n", 14, 24, HTTP_LINE_TOO_LARGE},
		{"no limit on the line", "GET / HTTP/1.1\r\n\r\n", UINT32_MAX, 24, HTTP_OK},
	};
	for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
		struct http_limits limits = {cases[i].line_bytes, cases[i].head_bytes, 100};
		struct span in = {cases[i].input, strlen(cases[i].input)};
		for (size_t step = 1; step <= in.len; step++) {
			uint32_t head_bytes;
			enum http_result result = feed(in, &limits, step, &head_bytes);
			if (result != cases[i].result)
				fail_msg("%s: %d", cases[i].name, result);
		}
	}
}

static void cuts_make_no_difference(void **state)
{
	(void)state;
	dice_begin();
	for (unsigned round = 0; round < 10000; round++) {
		char bytes[120];
		size_t len = dice(sizeof(bytes) + 1);
		for (size_t i = 0; i < len; i++)
			bytes[i] = "\r\n\r\na: \x01"[dice(40) ? 4 + dice(3) : dice(8)];
		for (size_t i = 0; i + 1 < len; i++) // make most line ends good
			if (bytes[i] == '\r' && dice(8))
				bytes[++i] = '\n';
		struct http_limits limits = {dice(100), 1 + dice(130), 100};
		struct span in = {bytes, len};
		uint32_t once = 0, bytewise = 0, pieces = 0;
		enum http_result result = feed(in, &limits, len ? len : 1, &once);
		assert_int_equal(feed(in, &limits, 1, &bytewise), result);
		assert_int_equal(feed(in, &limits, 1 + dice(30), &pieces), result);
		assert_int_equal(bytewise, once);
		assert_int_equal(pieces, once);
	}
}

static void limits_may_shrink_between_calls(void **state)
{
	(void)state;
	uint32_t scanned = 0, head_bytes;
	struct span in = guard_string("GET / HTTP/1.1\r\nHost: a");
	assert_int_equal(http_head_end(in, &roomy, &scanned, &head_bytes), HTTP_MORE);
	struct http_limits small = {10, 10, 100};
	assert_int_equal(http_head_end(in, &small, &scanned, &head_bytes), HTTP_TOO_LARGE);
}

static void one_empty_line_is_skipped(void **state)
{
	(void)state;
	static const struct {
		const char *input;
		size_t skipped;
	} cases[] = {{"", 0}, {"\r", 0}, {"\r\n", 2}, {"\r\n\r\nGET", 2}, {"\nGET", 0}, {"G", 0}};
	for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++)
		assert_int_equal(http_head_skip(guard_string(cases[i].input)), cases[i].skipped);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(every_prefix_is_incomplete),
		cmocka_unit_test(whole_heads_end_at_the_blank_line),
		cmocka_unit_test(what_follows_the_head_is_left),
		cmocka_unit_test(broken_heads_are_refused_at_once),
		cmocka_unit_test(limits_are_exact),
		cmocka_unit_test(cuts_make_no_difference),
		cmocka_unit_test(limits_may_shrink_between_calls),
		cmocka_unit_test(one_empty_line_is_skipped),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
