// Origins that are down, late, or against the grammar. Each failure is told to the worker once,
// with the right status, counted under its name, and leaves nothing behind.

#include "dataplane/origin/relay.h"
#include "tests/unit/origin/story.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>

#include <cmocka.h>

static void failed_with(const struct story_client *c, int status)
{
	assert_int_equal(c->ends, 1);
	assert_int_equal(c->end.outcome, EXCHANGE_FAILED);
	assert_int_equal(c->end.status, status);
}

// --- no connection

static void no_table_no_origin_no_server(void **state)
{
	(void)state;
	struct story *s = story_new();
	struct story_client *c = story_client(s);
	story_table(s, ORIGIN_TABLE_LEAST, 0, 1);
	story_client_says(c, STORY_GET);
	assert_int_equal(c->refused, 502);
	s->facts.origin = 1; // beyond the table
	struct story_client *other = story_client(s);
	story_client_says(other, STORY_GET);
	assert_int_equal(other->refused, 502);
	assert_int_equal(story_count(s, server_none), 2);
	assert_int_equal(story_count(s, exchanges), 0);
	story_end(s);
}

static void a_refused_connection_is_502(void **state)
{
	(void)state;
	struct story *s = story_new();
	struct story_client *c = story_client(s);
	story_client_says(c, STORY_GET);
	story_origin_closes(s, story_connection(s, 0), 111);
	failed_with(c, 502);
	assert_true(c->end.body_ended);
	assert_int_equal(story_connection_count(s), 1); // there is no other server to ask
	assert_int_equal(story_count(s, retries), 0);
	assert_int_equal(story_count(s, connects_failed), 1);
	assert_int_equal(story_count(s, servers_aside), 1);
	story_end(s);
}

static void another_server_is_asked_when_one_refuses(void **state)
{
	(void)state;
	struct story *s = story_new();
	story_table(s, ORIGIN_TABLE_LEAST, 2, 1);
	struct story_client *c = story_client(s);
	story_client_says(c, STORY_POST "bo");
	story_origin_closes(s, story_connection(s, 0), 111);
	struct fake_stream *o = story_connection(s, 1);
	assert_int_not_equal(o->stream.peer.ip[15], story_connection(s, 0)->stream.peer.ip[15]);
	story_client_says(c, "d");
	story_opens(s, o);
	story_client_says(c, "y");
	story_got(o, STORY_GOT_POST "body"); // nothing of it had been sent
	story_origin_says(s, o, STORY_OK);
	assert_int_equal(c->end.outcome, EXCHANGE_KEPT);
	assert_int_equal(story_count(s, retries), 1);
	story_end(s);
}

static void not_more_than_three_servers_are_asked(void **state)
{
	(void)state;
	struct story *s = story_new();
	story_table(s, ORIGIN_TABLE_LEAST, 4, 1);
	struct story_client *c = story_client(s);
	story_client_says(c, STORY_GET);
	for (int n = 0; n < 3; n++)
		story_origin_closes(s, story_connection(s, n), 111);
	failed_with(c, 502);
	assert_int_equal(story_connection_count(s), 3);
	story_end(s);
}

static void a_connection_that_does_not_open_is_504(void **state)
{
	(void)state;
	struct story *s = story_new();
	struct story_client *c = story_client(s);
	story_client_says(c, STORY_GET);
	assert_true(origin_due_us(s->o) < s->now_us + 5 * STORY_SECOND);
	story_wait(s, 4 * STORY_SECOND);
	assert_int_equal(c->ends, 0);
	story_wait(s, 1 * STORY_SECOND);
	failed_with(c, 504);
	assert_int_equal(story_count(s, connects_late), 1);
	assert_int_equal(story_count(s, servers_aside), 1);
	assert_true(story_connection(s, 0)->was_reset);
	story_end(s);
}

static void another_server_is_asked_when_one_is_late(void **state)
{
	(void)state;
	struct story *s = story_new();
	story_table(s, ORIGIN_TABLE_LEAST, 2, 1);
	struct story_client *c = story_client(s);
	story_client_says(c, STORY_GET);
	story_wait(s, 5 * STORY_SECOND);
	assert_true(story_connection(s, 0)->was_reset);
	assert_int_equal(c->ends, 0);
	story_wait(s, 5 * STORY_SECOND); // the other is no better
	failed_with(c, 504);
	assert_int_equal(story_connection_count(s), 2);
	assert_int_equal(story_count(s, connects_late), 2);
	assert_int_equal(story_count(s, retries), 1);
	story_end(s);
}

static void out_of_streams_is_503(void **state)
{
	(void)state;
	struct story *s = story_new();
	struct story_client *c = story_client(s);
	s->fake.refuses = true;
	story_client_says(c, STORY_GET);
	assert_int_equal(c->refused, 503);
	assert_int_equal(story_count(s, connects_none), 1);
	story_end(s);
}

// --- no answer

static void a_connection_closed_before_the_answer_is_502(void **state)
{
	(void)state;
	for (int how = 0; how < 4; how++) {
		struct story *s = story_new();
		struct story_client *c = story_client(s);
		struct fake_stream *o = story_asked(c, STORY_GET, STORY_GOT_GET);
		if (how & 1)
			story_origin_says(s, o, "HTTP/1.1 200 OK\r\nContent-");
		if (how & 2)
			story_origin_ends(s, o);
		else
			story_origin_closes(s, o, 104);
		failed_with(c, 502);
		assert_int_equal(story_connection_count(s), 1); // a new one is not asked again
		assert_int_equal(story_count(s, answer_none), 1);
		assert_int_equal(c->answers, 0);
		story_end(s);
	}
}

static void a_late_answer_is_504(void **state)
{
	(void)state;
	struct story *s = story_new();
	struct story_client *c = story_client(s);
	struct fake_stream *o = story_asked(c, STORY_GET, STORY_GOT_GET);
	story_wait(s, 59 * STORY_SECOND);
	story_origin_says(s, o, "HTTP/1.1 200 OK\r\nContent-"); // a part of a head is no life
	assert_int_equal(c->ends, 0);
	story_wait(s, 1 * STORY_SECOND);
	failed_with(c, 504);
	assert_int_equal(story_count(s, answer_late), 1);
	assert_int_equal(story_count(s, servers_aside), 0); // once is no pattern
	story_end(s);
}

static void three_bad_answers_in_a_row_set_a_server_aside(void **state)
{
	(void)state;
	struct story *s = story_new();
	for (int n = 0; n < 3; n++) {
		assert_int_equal(story_count(s, servers_aside), 0);
		story_origin_closes(s, story_asked(story_client(s), STORY_GET, STORY_GOT_GET), 104);
	}
	assert_int_equal(story_count(s, servers_aside), 1);
	story_end(s);
}

// --- answers against the grammar

static const char *const bad_answers[] = {
	"\r\n",
	"\n",
	"hello\r\n\r\n",
	"HTTP/1.1 200\r\n\r\n",
	"HTTP/1.1  200 OK\r\n\r\n",
	"HTTP/2.0 200 OK\r\n\r\n",
	"http/1.1 200 OK\r\n\r\n",
	"HTTP/1.1 099 OK\r\n\r\n",
	"HTTP/1.1 600 OK\r\n\r\n",
	"HTTP/1.1 20x OK\r\n\r\n",
	"HTTP/1.1 200 OK\n\n",
	STORY_STATUS "A: b\n\r\n",
	STORY_STATUS "A: b\r\r\n",
	STORY_STATUS "A : b\r\n\r\n",
	STORY_STATUS " A: b\r\n\r\n",
	STORY_STATUS "A: b\r\n c\r\n\r\n",
	STORY_STATUS ": b\r\n\r\n",
	STORY_STATUS "A\r\n\r\n",
	STORY_STATUS "A: b\x01\r\n\r\n",
	STORY_STATUS "Content-Length: 5\r\nTransfer-Encoding: chunked\r\n\r\n0\r\n\r\n",
	STORY_STATUS "Content-Length: 5\r\nContent-Length: 5\r\n\r\nhello",
	STORY_STATUS "Content-Length: 5, 5\r\n\r\nhello",
	STORY_STATUS "Content-Length: +5\r\n\r\nhello",
	STORY_STATUS "Content-Length: -1\r\n\r\n",
	STORY_STATUS "Content-Length: 0x5\r\n\r\nhello",
	STORY_STATUS "Content-Length: 18446744073709551616\r\n\r\n",
	STORY_STATUS "Content-Length:\r\n\r\n",
	STORY_STATUS "Transfer-Encoding: gzip, chunked\r\n\r\n0\r\n\r\n",
	STORY_STATUS "Transfer-Encoding: identity\r\n\r\n",
	STORY_STATUS "Transfer-Encoding: chunked\r\nTransfer-Encoding: chunked\r\n\r\n0\r\n\r\n",
	"HTTP/1.0 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n0\r\n\r\n",
	"HTTP/1.1 204 No\r\nContent-Length: 5\r\n\r\nhello",
	"HTTP/1.1 103 Hints\r\nTransfer-Encoding: chunked\r\n\r\n",
};

static void answers_against_the_grammar_are_502(void **state)
{
	(void)state;
	for (size_t i = 0; i < sizeof(bad_answers) / sizeof(bad_answers[0]); i++) {
		print_message("             %zu\n", i);
		struct story *s = story_new();
		struct story_client *c = story_client(s);
		struct fake_stream *o = story_asked(c, STORY_GET, STORY_GOT_GET);
		story_origin_says(s, o, bad_answers[i]);
		failed_with(c, 502);
		assert_int_equal(story_count(s, answer_bad), 1);
		assert_false(o->is_used);
		story_got(c->s, "HTTP/1.1 502 Refused\r\n\r\n");
		story_end(s);
	}
}

// One field of `bytes`, in a head of `head_bytes`; at the limit it passes, one beyond it does not.
static void answer_heads_have_limits(void **state)
{
	(void)state;
	enum { LINE, BYTES, FIELDS, KINDS };
	for (int kind = 0; kind < KINDS; kind++)
		for (unsigned beyond = 0; beyond < 2; beyond++) {
			struct story *s = story_plan();
			s->plan.answer = (struct http_limits){40, 200, 3};
			story_start(s);
			struct story_client *c = story_client(s);
			struct fake_stream *o = story_asked(c, STORY_GET, STORY_GOT_GET);
			char text[512], pad[256];
			memset(pad, 'x', sizeof(pad));
			unsigned line = kind == LINE ? 40 + beyond : 40;
			unsigned fields = kind == FIELDS ? 3 + beyond : 1;
			int at = snprintf(text, sizeof(text),
				"HTTP/1.1 200 %.*s\r\nContent-Length: 0\r\n", (int)line - 13, pad);
			for (unsigned n = 1; n < fields; n++)
				at += snprintf(text + at, sizeof(text) - at, "a: b\r\n");
			if (kind == BYTES)
				at += snprintf(text + at, sizeof(text) - at, "a: %.*s\r\n",
					200 + (int)beyond - at - 7, pad);
			snprintf(text + at, sizeof(text) - at, "\r\n");
			story_origin_says(s, o, text);
			assert_int_equal(c->ends, 1);
			assert_int_equal(c->end.outcome, beyond ? EXCHANGE_FAILED : EXCHANGE_KEPT);
			assert_int_equal(story_count(s, answer_too_large), beyond);
			story_end(s);
		}
}

static void a_switch_that_nobody_asked_for_is_502(void **state)
{
	(void)state;
	struct story *s = story_new();
	struct story_client *c = story_client(s);
	struct fake_stream *o = story_asked(c, STORY_GET, STORY_GOT_GET);
	story_origin_says(s, o,
		"HTTP/1.1 101 Switching\r\nConnection: upgrade\r\nUpgrade: websocket\r\n\r\n");
	failed_with(c, 502);
	assert_int_equal(story_count(s, answer_switched), 1);
	story_end(s);
}

static void so_many_interim_answers_and_no_more(void **state)
{
	(void)state;
	struct story *s = story_new();
	struct story_client *c = story_client(s);
	struct fake_stream *o = story_asked(c, STORY_GET, STORY_GOT_GET);
	for (unsigned n = 0; n < RELAY_INTERIMS_MAX; n++)
		story_origin_says(s, o, "HTTP/1.1 102 Processing\r\n\r\n");
	story_origin_says(s, o, STORY_OK);
	assert_int_equal(c->end.outcome, EXCHANGE_KEPT);
	story_client_says(c, STORY_GET);
	for (unsigned n = 0; n < RELAY_INTERIMS_MAX + 1; n++)
		story_origin_says(s, o, "HTTP/1.1 102 Processing\r\n\r\n");
	assert_int_equal(c->end.outcome, EXCHANGE_FAILED);
	assert_int_equal(c->end.status, 502);
	assert_int_equal(story_count(s, answer_flood), 1);
	story_end(s);
}

// --- bodies of answers that go wrong

struct broken {
	const char *name;
	const char *body; // after a chunked head
	int closes; // 0: no; 1: EOF; 2: reset
	bool is_bad; // counted as bad, else as cut
};

static const struct broken broken_bodies[] = {
	{"no hex", "3\r\nabc\r\nx\r\n", 0, true},
	{"0x", "3\r\nabc\r\n0x3\r\nabc\r\n", 0, true},
	{"underscore", "3\r\nabc\r\n1_0\r\n", 0, true},
	{"plus", "3\r\nabc\r\n+3\r\nabc\r\n", 0, true},
	{"space first", "3\r\nabc\r\n 3\r\nabc\r\n", 0, true},
	{"empty size", "3\r\nabc\r\n\r\n", 0, true},
	{"bare LF after the size", "3\r\nabc\r\n3\nabc\r\n", 0, true},
	{"bare LF after the data", "3\r\nabc\n3\r\nabc\r\n", 0, true},
	{"data longer than its size", "3\r\nabcd\r\n", 0, true},
	{"17 digits", "3\r\nabc\r\n00000000000000001\r\n", 0, true},
	{"bad trailer", "3\r\nabc\r\n0\r\nA : b\r\n\r\n", 0, true},
	{"closed between chunks", "3\r\nabc\r\n", 1, false},
	{"closed within a chunk", "5\r\nabc", 1, false},
	{"closed before the last line", "3\r\nabc\r\n0\r\n", 1, false},
	{"reset", "3\r\nabc\r\n", 2, false},
};

static void a_broken_body_breaks_off_without_the_last_chunk(void **state)
{
	(void)state;
	for (size_t i = 0; i < sizeof(broken_bodies) / sizeof(broken_bodies[0]); i++) {
		const struct broken *b = &broken_bodies[i];
		print_message("             %s\n", b->name);
		struct story *s = story_new();
		struct story_client *c = story_client(s);
		struct fake_stream *o = story_asked(c, STORY_GET, STORY_GOT_GET);
		story_origin_says(
			s, o, STORY_STATUS "Transfer-Encoding: chunked\r\n\r\n1\r\n-\r\n");
		story_origin_says(s, o, b->body);
		if (b->closes == 1)
			story_origin_ends(s, o);
		else if (b->closes == 2)
			story_origin_closes(s, o, 104);
		assert_int_equal(c->ends, 1);
		assert_int_equal(c->end.outcome, EXCHANGE_BROKEN);
		assert_true(c->s->was_reset);
		assert_null(memmem(c->s->got.at, c->s->got.len, "\r\n0\r\n", 5));
		assert_int_equal(story_count(s, answer_body_bad), b->is_bad);
		assert_int_equal(story_count(s, answer_body_cut), !b->is_bad);
		assert_false(o->is_used);
		story_end(s);
	}
}

// Before anything went out it is still a 502, if it comes at once.
static void a_body_that_is_bad_from_the_start(void **state)
{
	(void)state;
	struct story *s = story_new();
	struct story_client *c = story_client(s);
	struct fake_stream *o = story_asked(c, STORY_GET, STORY_GOT_GET);
	story_origin_says(s, o, STORY_STATUS "Transfer-Encoding: chunked\r\n\r\n-1\r\n\r\n");
	assert_int_equal(c->ends, 1);
	assert_int_equal(c->end.outcome, s->bytewise ? EXCHANGE_BROKEN : EXCHANGE_FAILED);
	assert_int_equal(c->answers, s->bytewise);
	story_end(s);
}

static void a_body_cut_short_breaks_off(void **state)
{
	(void)state;
	struct story *s = story_new();
	struct story_client *c = story_client(s);
	struct fake_stream *o = story_asked(c, STORY_GET, STORY_GOT_GET);
	story_origin_says(s, o, STORY_STATUS "Content-Length: 4\r\n\r\nbod");
	story_origin_ends(s, o);
	assert_int_equal(c->end.outcome, EXCHANGE_BROKEN);
	assert_int_equal(story_count(s, answer_body_cut), 1);
	story_end(s);
}

static void a_reset_does_not_end_a_body_until_close(void **state)
{
	(void)state;
	for (int error = 0; error <= 104; error += 104) {
		struct story *s = story_new();
		struct story_client *c = story_client(s);
		struct fake_stream *o = story_asked(c, STORY_GET, STORY_GOT_GET);
		story_origin_says(s, o, STORY_STATUS "\r\nbody");
		story_origin_closes(s, o, error);
		assert_int_equal(c->end.outcome, error ? EXCHANGE_BROKEN : EXCHANGE_KEPT);
		story_end(s);
	}
}

static void an_answer_that_stalls_is_ended(void **state)
{
	(void)state;
	struct story *s = story_new();
	struct story_client *c = story_client(s);
	struct fake_stream *o = story_asked(c, STORY_GET, STORY_GOT_GET);
	story_origin_says(s, o, STORY_STATUS "Content-Length: 4\r\n\r\nb");
	story_wait(s, 59 * STORY_SECOND);
	story_origin_says(s, o, "o");
	story_wait(s, 59 * STORY_SECOND);
	assert_int_equal(c->ends, 0);
	story_wait(s, 1 * STORY_SECOND);
	assert_int_equal(c->end.outcome, EXCHANGE_BROKEN);
	assert_int_equal(story_count(s, stalls), 1);
	story_end(s);
}

static void an_answer_may_be_late_beyond_the_sessions_end(void **state)
{
	(void)state;
	struct story *s = story_new();
	s->facts.ends_us = s->now_us + 10 * STORY_SECOND;
	struct story_client *c = story_client(s);
	struct fake_stream *o = story_asked(c, STORY_GET, STORY_GOT_GET);
	story_origin_says(s, o, STORY_STATUS "Content-Length: 4\r\n\r\nb");
	story_wait(s, 39 * STORY_SECOND);
	assert_int_equal(c->ends, 0);
	story_wait(s, 1 * STORY_SECOND);
	assert_int_equal(c->end.outcome, EXCHANGE_BROKEN);
	assert_int_equal(story_count(s, session_ends), 1);
	story_end(s);
}

static void a_session_may_be_renewed(void **state)
{
	(void)state;
	struct story *s = story_new();
	s->facts.ends_us = s->now_us + 10 * STORY_SECOND;
	struct story_client *c = story_client(s);
	struct fake_stream *o = story_asked(c, STORY_GET, STORY_GOT_GET);
	exchange_set_ends(c->x, s->now_us + 25 * STORY_SECOND);
	story_wait(s, 50 * STORY_SECOND);
	story_origin_says(s, o, STORY_OK);
	assert_int_equal(c->end.outcome, EXCHANGE_KEPT);
	story_end(s);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(no_table_no_origin_no_server),
		cmocka_unit_test(a_refused_connection_is_502),
		cmocka_unit_test(another_server_is_asked_when_one_refuses),
		cmocka_unit_test(not_more_than_three_servers_are_asked),
		cmocka_unit_test(a_connection_that_does_not_open_is_504),
		cmocka_unit_test(another_server_is_asked_when_one_is_late),
		cmocka_unit_test(out_of_streams_is_503),
		cmocka_unit_test(a_connection_closed_before_the_answer_is_502),
		cmocka_unit_test(a_late_answer_is_504),
		cmocka_unit_test(three_bad_answers_in_a_row_set_a_server_aside),
		cmocka_unit_test(answers_against_the_grammar_are_502),
		cmocka_unit_test(answer_heads_have_limits),
		cmocka_unit_test(a_switch_that_nobody_asked_for_is_502),
		cmocka_unit_test(so_many_interim_answers_and_no_more),
		cmocka_unit_test(a_broken_body_breaks_off_without_the_last_chunk),
		cmocka_unit_test(a_body_that_is_bad_from_the_start),
		cmocka_unit_test(a_body_cut_short_breaks_off),
		cmocka_unit_test(a_reset_does_not_end_a_body_until_close),
		cmocka_unit_test(an_answer_that_stalls_is_ended),
		cmocka_unit_test(an_answer_may_be_late_beyond_the_sessions_end),
		cmocka_unit_test(a_session_may_be_renewed),
	};
	return story_run(tests);
}
