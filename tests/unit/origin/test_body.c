// Bodies reframed: every framing in and out, cut at every place, against the plain meaning.

#include "dataplane/origin/body.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stdlib.h>

#include <cmocka.h>

struct out {
	char bytes[4096];
	size_t len;
	unsigned writes;
};

static void put(struct out *out, const struct body_step *step)
{
	for (unsigned i = 0; i < step->count; i++) {
		assert_true(step->parts[i].len > 0);
		assert_true(out->len + step->parts[i].len < sizeof(out->bytes));
		memcpy(out->bytes + out->len, step->parts[i].at, step->parts[i].len);
		out->len += step->parts[i].len;
	}
	out->writes += step->count > 0;
	out->bytes[out->len] = 0;
}

// Feed `in` in two parts. Returns false if it is bad; what is left over is not consumed.
static bool feed(
	struct body *body, const char *in, size_t len, size_t cut, struct out *out, size_t *used)
{
	*used = 0;
	for (int part = 0; part < 2; part++) {
		size_t end = part == 0 ? cut : len;
		while (*used < end && !body->has_ended) {
			struct body_step step;
			struct span rest = {in + *used, end - *used};
			if (!body_step(body, rest, SPAN(""), &step))
				return false;
			assert_true(step.consumed > 0);
			put(out, &step);
			*used += step.consumed;
		}
	}
	return true;
}

struct row {
	const char *name;
	enum http_body in;
	uint64_t length;
	const char *bytes;
	const char *body; // what it means
	size_t used; // bytes of the body; the rest is another's
	bool closes; // it ends by the end of the connection
};

static const struct row rows[] = {
	{"length", HTTP_BODY_LENGTH, 5, "helloGET", "hello", 5, false},
	{"chunks", HTTP_BODY_CHUNKED, 0, "2\r\nhe\r\n3\r\nllo\r\n0\r\n\r\nGET", "hello", 20, false},
	{"a CR in an extension", HTTP_BODY_CHUNKED, 0, "5;a=\"\r\"\r\nhello\r\n0\r\n\r\n", NULL, 0,
		false},
	{"an extension, a trailer", HTTP_BODY_CHUNKED, 0, "5;a=\"b\"\r\nhello\r\n0\r\nX: y\r\n\r\n",
		"hello", 27, false},
	{"only the last chunk", HTTP_BODY_CHUNKED, 0, "000\r\n\r\n", "", 7, false},
	{"close", HTTP_BODY_CLOSE, 0, "hello", "hello", 5, true},
	{"bad size", HTTP_BODY_CHUNKED, 0, "2\r\nhe\r\n0x3\r\nllo\r\n", NULL, 0, false},
	{"a body that is chunk heads", HTTP_BODY_CHUNKED, 0, "7\r\n0\r\n\r\n0\r\n\r\n0\r\n\r\n",
		NULL, 0, false},
};

static void bodies_keep_their_meaning_wherever_they_are_cut(void **state)
{
	(void)state;
	static const enum http_body outs[] = {HTTP_BODY_CHUNKED, HTTP_BODY_CLOSE};
	for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]) * 2; i++) {
		const struct row *row = &rows[i / 2];
		size_t len = strlen(row->bytes), used;
		for (size_t cut = 0; cut <= len; cut++) {
			struct body body;
			struct out out = {0};
			struct body_step step;
			body_begin(&body, row->in, row->length, outs[i % 2]);
			assert_int_equal(
				feed(&body, row->bytes, len, cut, &out, &used), row->body != NULL);
			if (!row->body)
				continue;
			assert_int_equal(used, row->used);
			assert_int_equal(body.has_ended, !row->closes);
			assert_true(body_close(&body, &step));
			put(&out, &step);
			if (outs[i % 2] == HTTP_BODY_CLOSE) {
				assert_string_equal(out.bytes, row->body);
				continue;
			}
			struct body back;
			struct out plain = {0};
			body_begin(&back, HTTP_BODY_CHUNKED, 0, HTTP_BODY_CLOSE);
			assert_true(feed(&back, out.bytes, out.len, 0, &plain, &used));
			assert_true(back.has_ended);
			assert_int_equal(used, out.len);
			assert_int_equal(plain.len, strlen(row->body));
			assert_memory_equal(plain.bytes, row->body, plain.len);
		}
	}
}

static void what_is_missing_is_noticed_at_the_end(void **state)
{
	(void)state;
	struct body body;
	struct body_step step;
	body_begin(&body, HTTP_BODY_LENGTH, 5, HTTP_BODY_LENGTH);
	assert_true(body_step(&body, SPAN("hell"), SPAN(""), &step));
	assert_false(body_close(&body, &step));
	body_begin(&body, HTTP_BODY_CHUNKED, 0, HTTP_BODY_CHUNKED);
	assert_true(body_step(&body, SPAN("1\r\na\r\n0\r\n"), SPAN(""), &step));
	assert_false(body_close(&body, &step));
	body_begin(&body, HTTP_BODY_LENGTH, 0, HTTP_BODY_LENGTH);
	assert_true(body_close(&body, &step));
	assert_int_equal(step.count, 0);
}

// Twelve chunks become one, in one write; the thirteenth the next.
static void small_chunks_are_gathered(void **state)
{
	(void)state;
	struct body body;
	struct out out = {0};
	char in[256];
	size_t len = 0, used;
	for (unsigned n = 0; n < BODY_DATA_MAX + 1; n++, len += 6)
		memcpy(in + len, "1\r\na\r\n", 6);
	body_begin(&body, HTTP_BODY_CHUNKED, 0, HTTP_BODY_CHUNKED);
	assert_true(feed(&body, in, len, 0, &out, &used));
	assert_string_equal(out.bytes, "c\r\naaaaaaaaaaaa\r\n1\r\na\r\n");
	assert_int_equal(out.writes, 2);
}

static void the_head_goes_before(void **state)
{
	(void)state;
	struct body body;
	struct body_step step;
	struct out out = {0};
	body_begin(&body, HTTP_BODY_CLOSE, 0, HTTP_BODY_CHUNKED);
	assert_true(body_step(&body, SPAN("abc"), SPAN("?"), &step));
	step.parts[0] = SPAN("head ");
	put(&out, &step);
	assert_string_equal(out.bytes, "head 3\r\nabc\r\n");
	body_begin(&body, HTTP_BODY_CLOSE, 0, HTTP_BODY_CHUNKED);
	assert_true(body_step(&body, SPAN(""), SPAN("?"), &step));
	assert_int_equal(step.count, 1); // nothing but the head
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(bodies_keep_their_meaning_wherever_they_are_cut),
		cmocka_unit_test(what_is_missing_is_noticed_at_the_end),
		cmocka_unit_test(small_chunks_are_gathered),
		cmocka_unit_test(the_head_goes_before),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
