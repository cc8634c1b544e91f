// Requests and answers that go well: framing, interim answers, keep-alive, commands, what the gate
// adds. Every story is told twice, in whole messages and byte by byte.

#include "dataplane/origin/head_writer.h"
#include "tests/unit/origin/story.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>

#include <cmocka.h>

static void a_request_is_answered_and_the_connection_kept(void **state)
{
	(void)state;
	struct story *s = story_new();
	struct story_client *c = story_client(s);
	story_get(c, 0, true);
	assert_int_equal(c->end.outcome, EXCHANGE_KEPT);
	assert_true(c->end.body_ended);
	assert_int_equal(c->status, 200);
	story_get(c, 0, false);
	struct story_client *other = story_client(s);
	story_get(other, 0, false);
	assert_int_equal(story_connection_count(s), 1);
	assert_int_equal(story_count(s, connects), 1);
	assert_int_equal(story_count(s, reuses), 2);
	assert_int_equal(story_count(s, kept), 3);
	assert_int_equal(story_count(s, exchanges), 3);
	assert_int_equal(story_count(s, answers), 3);
	story_end(s);
}

static void pipelined_requests_are_answered_in_order(void **state)
{
	(void)state;
	struct story *s = story_new();
	struct story_client *c = story_client(s);
	story_client_says(c, STORY_GET "POST /2 HTTP/1.1\r\nHost: shop.example\r\n"
				       "Content-Length: 3\r\n\r\nabcGET /3 HTTP/1.1\r\n"
				       "Host: shop.example\r\n\r\n");
	struct fake_stream *o = story_connection(s, 0);
	story_opens(s, o);
	story_got(o, STORY_GOT_GET);
	story_origin_says(s, o, "HTTP/1.1 200 1\r\nContent-Length: 0\r\n\r\n");
	story_got(o, "POST /2 HTTP/1.1\r\nHost: shop.example\r\nContent-Length: 3\r\n" STORY_ADDED
		     "\r\nabc");
	story_origin_says(s, o, "HTTP/1.1 200 2\r\nContent-Length: 0\r\n\r\n");
	story_got(o, "GET /3 HTTP/1.1\r\nHost: shop.example\r\n" STORY_ADDED "\r\n");
	story_origin_says(s, o, "HTTP/1.1 200 3\r\nContent-Length: 0\r\n\r\n");
	story_got(c->s, "HTTP/1.1 200 1\r\nContent-Length: 0\r\n\r\n"
			"HTTP/1.1 200 2\r\nContent-Length: 0\r\n\r\n"
			"HTTP/1.1 200 3\r\nContent-Length: 0\r\n\r\n");
	assert_int_equal(c->ends, 3);
	story_end(s);
}

// --- the request's body

static void a_body_with_a_length_passes(void **state)
{
	(void)state;
	struct story *s = story_new();
	struct story_client *c = story_client(s);
	struct fake_stream *o = story_asked(c,
		"PUT / HTTP/1.1\r\nHost: shop.example\r\nContent-Length: 10\r\n\r\nhello",
		"PUT / HTTP/1.1\r\nHost: shop.example\r\nContent-Length: 10\r\n" STORY_ADDED
		"\r\nhello");
	story_client_says(c, "there");
	story_got(o, "there");
	story_origin_says(s, o, STORY_OK);
	story_got(c->s, STORY_OK);
	assert_int_equal(c->end.outcome, EXCHANGE_KEPT);
	story_end(s);
}

static void a_chunked_body_is_decoded_and_encoded_anew(void **state)
{
	(void)state;
	struct story *s = story_new();
	struct story_client *c = story_client(s);
	story_client_says(c, "POST / HTTP/1.1\r\nHost: shop.example\r\n"
			     "Transfer-Encoding: chunked\r\n\r\n"
			     "3;ext=\"a;b\"\r\nabc\r\n1\r\nd\r\n");
	struct fake_stream *o = story_connection(s, 0);
	story_opens(s, o);
	story_client_says(c, "00002\r\nef\r\n0\r\nTrailer-Field: dropped\r\n\r\n" STORY_GET);
	story_got_chunks(o,
		"POST / HTTP/1.1\r\nHost: shop.example\r\nTransfer-Encoding: "
		"chunked\r\n" STORY_ADDED "\r\n",
		"abcdef", true);
	story_origin_says(s, o, STORY_OK);
	story_got(c->s, STORY_OK);
	story_got(o, STORY_GOT_GET); // what followed the body was the next request
	story_origin_says(s, o, STORY_OK);
	story_end(s);
}

static void a_body_of_no_bytes_has_ended(void **state)
{
	(void)state;
	struct story *s = story_new();
	struct story_client *c = story_client(s);
	struct fake_stream *o =
		story_asked(c, "POST / HTTP/1.1\r\nHost: shop.example\r\nContent-Length: 0\r\n\r\n",
			"POST / HTTP/1.1\r\nHost: shop.example\r\nContent-Length: 0\r\n" STORY_ADDED
			"\r\n");
	story_origin_says(s, o, STORY_OK);
	assert_int_equal(c->end.outcome, EXCHANGE_KEPT);
	story_end(s);
}

// --- the answer's body

struct framing {
	const char *name;
	int minor; // of the client
	const char *origin; // what it says
	bool origin_ends;
	const char *head; // what the client gets
	const char *body;
	bool is_chunked; // the body that the client gets
	enum exchange_outcome outcome;
	bool is_kept; // the origin's connection
};

static const struct framing framings[] = {
	{"length", 1, "HTTP/1.1 200 OK\r\nContent-Length: 5\r\n\r\nhello", false,
		"HTTP/1.1 200 OK\r\nContent-Length: 5\r\n\r\n", "hello", false, EXCHANGE_KEPT,
		true},
	{"length 0", 1, "HTTP/1.1 200 OK\r\nContent-Length: 0\r\n\r\n", false,
		"HTTP/1.1 200 OK\r\nContent-Length: 0\r\n\r\n", "", false, EXCHANGE_KEPT, true},
	{"length to HTTP/1.0", 0, "HTTP/1.1 200 OK\r\nContent-Length: 5\r\n\r\nhello", false,
		"HTTP/1.1 200 OK\r\nContent-Length: 5\r\nConnection: close\r\n\r\n", "hello", false,
		EXCHANGE_CLOSE, true},
	{"chunks", 1,
		"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\nTrailer: X\r\n\r\n"
		"2\r\nhe\r\n3;a=b\r\nllo\r\n0\r\nX: dropped\r\n\r\n",
		false, "HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n", "hello", true,
		EXCHANGE_KEPT, true},
	{"no chunk but the last", 1,
		"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n0\r\n\r\n", false,
		"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n", "", true, EXCHANGE_KEPT,
		true},
	{"chunks to HTTP/1.0", 0,
		"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n"
		"2\r\nhe\r\n3\r\nllo\r\n0\r\n\r\n",
		false, "HTTP/1.1 200 OK\r\nConnection: close\r\n\r\n", "hello", false,
		EXCHANGE_CLOSE, true},
	{"until close", 1, "HTTP/1.1 200 OK\r\n\r\nhello", true,
		"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n", "hello", true,
		EXCHANGE_KEPT, false},
	{"until close, empty", 1, "HTTP/1.1 200 OK\r\n\r\n", true,
		"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n", "", true, EXCHANGE_KEPT,
		false},
	{"until close to HTTP/1.0", 0, "HTTP/1.0 200 OK\r\n\r\nhello", true,
		"HTTP/1.1 200 OK\r\nConnection: close\r\n\r\n", "hello", false, EXCHANGE_CLOSE,
		false},
	{"the origin will close", 1,
		"HTTP/1.1 200 OK\r\nConnection: close\r\nContent-Length: 5\r\n\r\nhello", false,
		"HTTP/1.1 200 OK\r\nContent-Length: 5\r\n\r\n", "hello", false, EXCHANGE_KEPT,
		false},
	{"the origin is HTTP/1.0", 1, "HTTP/1.0 200 OK\r\nContent-Length: 5\r\n\r\nhello", false,
		"HTTP/1.1 200 OK\r\nContent-Length: 5\r\n\r\n", "hello", false, EXCHANGE_KEPT,
		false},
	{"204", 1, "HTTP/1.1 204 No Content\r\nA: b\r\n\r\n", false,
		"HTTP/1.1 204 No Content\r\nA: b\r\n\r\n", "", false, EXCHANGE_KEPT, true},
	{"204 with a length of 0", 1, "HTTP/1.1 204 None\r\nContent-Length: 0\r\n\r\n", false,
		"HTTP/1.1 204 None\r\n\r\n", "", false, EXCHANGE_KEPT, true},
	{"304 tells the length", 1,
		"HTTP/1.1 304 Not Modified\r\nContent-Length: 5\r\nETag: x\r\n\r\n", false,
		"HTTP/1.1 304 Not Modified\r\nETag: x\r\nContent-Length: 5\r\n\r\n", "", false,
		EXCHANGE_KEPT, true},
	{"no reason phrase", 1, "HTTP/1.1 599 \r\nContent-Length: 0\r\n\r\n", false,
		"HTTP/1.1 599 \r\nContent-Length: 0\r\n\r\n", "", false, EXCHANGE_KEPT, true},
};

static void answers_are_framed_for_the_client(void **state)
{
	(void)state;
	for (size_t i = 0; i < sizeof(framings) / sizeof(framings[0]); i++) {
		const struct framing *f = &framings[i];
		print_message("             %s\n", f->name);
		struct story *s = story_new();
		struct story_client *c = story_client(s);
		struct fake_stream *o = story_asked(c,
			f->minor ? STORY_GET : "GET / HTTP/1.0\r\nHost: shop.example\r\n\r\n",
			STORY_GOT_GET);
		story_origin_says(s, o, f->origin);
		if (f->origin_ends)
			story_origin_ends(s, o);
		char plain[256];
		snprintf(plain, sizeof(plain), "%s%s", f->head, f->body);
		if (f->is_chunked)
			story_got_chunks(c->s, f->head, f->body, true);
		else
			story_got(c->s, plain);
		assert_int_equal(c->ends, 1);
		assert_int_equal(c->end.outcome, f->outcome);
		assert_int_equal(o->is_used, f->is_kept);
		assert_false(o->was_reset);
		story_end(s);
	}
}

static void an_answer_to_head_has_no_body(void **state)
{
	(void)state;
	struct story *s = story_new();
	struct story_client *c = story_client(s);
	struct fake_stream *o = story_asked(c, "HEAD / HTTP/1.1\r\nHost: shop.example\r\n\r\n",
		"HEAD / HTTP/1.1\r\nHost: shop.example\r\n" STORY_ADDED "\r\n");
	story_origin_says(s, o, "HTTP/1.1 200 OK\r\nContent-Length: 1000\r\n\r\n");
	story_got(c->s, "HTTP/1.1 200 OK\r\nContent-Length: 1000\r\n\r\n");
	assert_int_equal(c->end.outcome, EXCHANGE_KEPT);
	assert_true(o->is_used);
	story_client_says(c, "HEAD / HTTP/1.1\r\nHost: shop.example\r\n\r\n");
	story_origin_says(s, o, "HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n");
	story_got(c->s, "HTTP/1.1 200 OK\r\n\r\n");
	assert_int_equal(c->end.outcome, EXCHANGE_KEPT);
	story_end(s);
}

static void an_http_1_0_client_may_stay(void **state)
{
	(void)state;
	struct story *s = story_new();
	struct story_client *c = story_client(s);
	struct fake_stream *o = story_asked(c,
		"GET / HTTP/1.0\r\nHost: shop.example\r\nConnection: keep-alive\r\n\r\n",
		STORY_GOT_GET);
	story_origin_says(s, o, STORY_OK);
	story_got(c->s, "HTTP/1.1 200 OK\r\nContent-Length: 2\r\nConnection: keep-alive\r\n\r\nok");
	assert_int_equal(c->end.outcome, EXCHANGE_KEPT);
	story_end(s);
}

static void a_client_that_asks_to_close_is_told_so(void **state)
{
	(void)state;
	struct story *s = story_new();
	struct story_client *c = story_client(s);
	struct fake_stream *o = story_asked(c,
		"GET / HTTP/1.1\r\nHost: shop.example\r\nConnection: close\r\n\r\n", STORY_GOT_GET);
	story_origin_says(s, o, STORY_OK);
	story_got(c->s, "HTTP/1.1 200 OK\r\nContent-Length: 2\r\nConnection: close\r\n\r\nok");
	assert_int_equal(c->end.outcome, EXCHANGE_CLOSE);
	assert_true(o->is_used); // the origin's connection is its own affair
	story_end(s);
}

static void a_half_closed_client_is_still_answered(void **state)
{
	(void)state;
	struct story *s = story_new();
	struct story_client *c = story_client(s);
	struct fake_stream *o = story_asked(c, STORY_GET, STORY_GOT_GET);
	story_client_ends(c);
	story_origin_says(s, o, STORY_OK);
	story_got(c->s, "HTTP/1.1 200 OK\r\nContent-Length: 2\r\nConnection: close\r\n\r\nok");
	assert_int_equal(c->end.outcome, EXCHANGE_CLOSE);
	story_end(s);
}

// --- heads

static void hop_by_hop_fields_of_an_answer_go(void **state)
{
	(void)state;
	struct story *s = story_new();
	struct story_client *c = story_client(s);
	struct fake_stream *o = story_asked(c, STORY_GET, STORY_GOT_GET);
	story_origin_says(s, o,
		"HTTP/1.1 200 Fine By Me\r\nDate: d\r\nServer: s\r\nConnection: keep-alive, x-a\r\n"
		"Keep-Alive: timeout=5\r\nX-A: 1\r\nSet-Cookie: a=1\r\nSet-Cookie: b=2\r\n"
		"Proxy-Authenticate: x\r\nUpgrade: h2c\r\nETag: \"e\"\r\nSluice-State: waiting\r\n"
		"Cache-Control: max-age=60\r\nContent-Length: 00\r\n\r\n");
	story_got(c->s, "HTTP/1.1 200 Fine By Me\r\nDate: d\r\nServer: s\r\nSet-Cookie: a=1\r\n"
			"Set-Cookie: b=2\r\nETag: \"e\"\r\nCache-Control: max-age=60\r\n"
			"Content-Length: 00\r\n\r\n");
	story_end(s);
}

static void the_gate_adds_a_pass(void **state)
{
	(void)state;
	struct story *s = story_new();
	struct story_client *c = story_client(s);
	s->extra = (struct exchange_extra){
		.fields = SPAN("Set-Cookie: sluice-p-derby=x\r\nSluice-Pass: x\r\n"),
		.is_private = true};
	struct fake_stream *o = story_asked(c, STORY_GET, STORY_GOT_GET);
	story_origin_says(s, o,
		"HTTP/1.1 200 OK\r\nSet-Cookie: a=1\r\nCache-Control: public\r\nExpires: never\r\n"
		"ETag: e\r\nLast-Modified: l\r\nAge: 1\r\nSluice-Pass: forged\r\n"
		"Content-Length: 2\r\n\r\nok");
	story_got(c->s, "HTTP/1.1 200 OK\r\nSet-Cookie: a=1\r\nAge: 1\r\n"
			"Cache-Control: private, no-store\r\n"
			"Set-Cookie: sluice-p-derby=x\r\nSluice-Pass: x\r\n"
			"Content-Length: 2\r\n\r\nok");
	story_end(s);
}

// RFC 9110 6.6.1: who has a clock says when an answer came that does not say it itself.
static void an_answer_without_a_date_gets_one(void **state)
{
	static const struct {
		const char *sent, *got;
	} rows[] = {
		{"HTTP/1.1 200 OK\r\nX: 1\r\nContent-Length: 0\r\n\r\n",
			"HTTP/1.1 200 OK\r\nX: 1\r\nDate: now\r\nContent-Length: 0\r\n\r\n"},
		{"HTTP/1.1 200 OK\r\ndATE: then\r\nContent-Length: 0\r\n\r\n",
			"HTTP/1.1 200 OK\r\ndATE: then\r\nContent-Length: 0\r\n\r\n"},
		{"HTTP/1.1 200 OK\r\nDate:\r\nContent-Length: 0\r\n\r\n",
			"HTTP/1.1 200 OK\r\nDate: \r\nContent-Length: 0\r\n\r\n"},
		{"HTTP/1.1 304 Not Modified\r\n\r\n",
			"HTTP/1.1 304 Not Modified\r\nDate: now\r\n\r\n"},
		{"HTTP/1.1 500 Sorry\r\nX-Date: 1\r\nContent-Length: 0\r\n\r\n",
			"HTTP/1.1 500 Sorry\r\nX-Date: 1\r\nDate: now\r\nContent-Length: "
			"0\r\n\r\n"},
		// One that was for the connection alone is not passed on.
		{"HTTP/1.1 200 OK\r\nConnection: date\r\nDate: hop\r\nContent-Length: 0\r\n\r\n",
			"HTTP/1.1 200 OK\r\nDate: now\r\nContent-Length: 0\r\n\r\n"},
		// What is passed on while the answer is still to come stays as it is.
		{"HTTP/1.1 103 Early Hints\r\n\r\nHTTP/1.1 204 None\r\n\r\n",
			"HTTP/1.1 103 Early Hints\r\n\r\n"
			"HTTP/1.1 204 None\r\nDate: now\r\n\r\n"},
	};
	(void)state;
	for (size_t i = 0; i < sizeof(rows) / sizeof(*rows); i++) {
		struct story *s = story_new();
		struct story_client *c = story_client(s);
		s->extra.date = SPAN("now");
		struct fake_stream *o = story_asked(c, STORY_GET, STORY_GOT_GET);
		story_origin_says(s, o, rows[i].sent);
		story_got(c->s, rows[i].got);
		story_end(s);
	}
}

static void the_gate_may_end_the_connection(void **state)
{
	(void)state;
	struct story *s = story_new();
	struct story_client *c = story_client(s);
	s->extra.close = true;
	struct fake_stream *o = story_asked(c, STORY_GET, STORY_GOT_GET);
	story_origin_says(s, o, STORY_OK);
	story_got(c->s, "HTTP/1.1 200 OK\r\nContent-Length: 2\r\nConnection: close\r\n\r\nok");
	assert_int_equal(c->end.outcome, EXCHANGE_CLOSE);
	story_end(s);
}

static void the_largest_answer_head_with_the_largest_extra_passes(void **state)
{
	(void)state;
	struct story *s = story_plan();
	s->plan.answer.head_bytes = 4096;
	story_start(s);
	static char fields[EXCHANGE_EXTRA_BYTES_MAX], answer[4097];
	memset(fields, 'x', sizeof(fields));
	memcpy(fields, "X-X: ", 5);
	memcpy(fields + sizeof(fields) - 2, "\r\n", 2);
	s->extra = (struct exchange_extra){
		.fields = {fields, sizeof(fields)}, .is_private = true, .close = true};
	// As many fields as can be, each of which gets a space; the last fills the limit.
	struct head_writer w = {answer, answer + 4096, false};
	head_writer_put(&w, SPAN("HTTP/1.1 200 OK\r\nTransfer-Encoding:chunked\r\n"));
	for (int i = 0; i < HTTP_FIELDS_MAX - 2; i++)
		head_writer_put(&w, SPAN("a:b\r\n"));
	head_writer_put(&w, SPAN("c:"));
	while (w.end - w.at > 4)
		head_writer_put(&w, SPAN("d"));
	head_writer_put(&w, SPAN("\r\n\r\n"));
	assert_false(w.is_full);
	struct story_client *c = story_client(s);
	struct fake_stream *o = story_asked(c, STORY_GET, STORY_GOT_GET);
	story_origin_says(s, o, answer);
	assert_int_equal(c->answers, 1);
	story_origin_says(s, o, "0\r\n\r\n");
	assert_int_equal(c->end.outcome, EXCHANGE_CLOSE);
	size_t close_bytes = strlen("Connection: close\r\n");
	size_t private_bytes = strlen("Cache-Control: private, no-store\r\n");
	assert_int_equal(c->s->got.len,
		4096 + HTTP_FIELDS_MAX + sizeof(fields) + close_bytes + private_bytes + 5);
	story_end(s);
}

static void commands_reach_the_worker_and_not_the_visitor(void **state)
{
	(void)state;
	struct story *s = story_new();
	struct story_client *c = story_client(s);
	struct fake_stream *o = story_asked(c, STORY_GET, STORY_GOT_GET);
	story_origin_says(
		s, o, "HTTP/1.1 200 OK\r\nSluice-Command: end\r\nContent-Length: 2\r\n\r\nok");
	story_got(c->s, STORY_OK);
	assert_int_equal(c->commands_end, 1);
	assert_int_equal(c->commands_renew, 0);
	story_client_says(c, STORY_GET);
	story_origin_says(
		s, o, "HTTP/1.1 200 OK\r\nsluice-command:  Renew \r\nContent-Length: 2\r\n\r\nok");
	assert_int_equal(c->commands_renew, 1);
	story_client_says(c, STORY_GET);
	story_origin_says(
		s, o, "HTTP/1.1 200 OK\r\nSluice-Command: dance\r\nContent-Length: 2\r\n\r\nok");
	assert_int_equal(c->commands_end + c->commands_renew, 2);
	story_got(c->s, STORY_OK STORY_OK);
	story_end(s);
}

// --- interim answers

static void interim_answers_are_passed_on(void **state)
{
	(void)state;
	struct story *s = story_new();
	struct story_client *c = story_client(s);
	struct fake_stream *o = story_asked(c, STORY_GET, STORY_GOT_GET);
	story_origin_says(s, o,
		"HTTP/1.1 103 Early Hints\r\nLink: x\r\nConnection: x\r\n\r\n"
		"HTTP/1.1 102 Processing\r\n\r\n" STORY_OK);
	story_got(c->s, "HTTP/1.1 103 Early Hints\r\nLink: x\r\n\r\n"
			"HTTP/1.1 102 Processing\r\n\r\n" STORY_OK);
	assert_int_equal(c->answers, 1);
	assert_int_equal(story_count(s, interims), 2);
	assert_int_equal(c->end.outcome, EXCHANGE_KEPT);
	story_end(s);
}

static void http_1_0_gets_no_interim_answers(void **state)
{
	(void)state;
	struct story *s = story_new();
	struct story_client *c = story_client(s);
	struct fake_stream *o =
		story_asked(c, "GET / HTTP/1.0\r\nHost: shop.example\r\n\r\n", STORY_GOT_GET);
	story_origin_says(s, o, "HTTP/1.1 103 Early Hints\r\n\r\n" STORY_OK);
	story_got(c->s, "HTTP/1.1 200 OK\r\nContent-Length: 2\r\nConnection: close\r\n\r\nok");
	story_end(s);
}

#define EXPECTING \
	"POST / HTTP/1.1\r\nHost: shop.example\r\nContent-Length: 4\r\n" \
	"Expect: 100-continue\r\n\r\n"
#define GOT_EXPECTING \
	"POST / HTTP/1.1\r\nHost: shop.example\r\nContent-Length: 4\r\n" \
	"Expect: 100-continue\r\n" STORY_ADDED "\r\n"

static void a_client_that_waits_for_100_gets_the_origins(void **state)
{
	(void)state;
	struct story *s = story_new();
	struct story_client *c = story_client(s);
	struct fake_stream *o = story_asked(c, EXPECTING, GOT_EXPECTING);
	story_origin_says(s, o, "HTTP/1.1 100 Continue\r\n\r\n");
	story_got(c->s, "HTTP/1.1 100 Continue\r\n\r\n");
	story_client_says(c, "body");
	story_got(o, "body");
	story_origin_says(s, o, STORY_OK);
	story_got(c->s, STORY_OK);
	assert_int_equal(c->end.outcome, EXCHANGE_KEPT);
	assert_true(o->is_used);
	story_end(s);
}

static void a_final_answer_instead_of_100_leaves_the_body_unread(void **state)
{
	(void)state;
	struct story *s = story_new();
	struct story_client *c = story_client(s);
	struct fake_stream *o = story_asked(c, EXPECTING, GOT_EXPECTING);
	story_origin_says(s, o, "HTTP/1.1 413 No\r\nContent-Length: 2\r\n\r\nn");
	story_client_says(c, "body"); // too late: it may have crossed the answer
	story_got(o, "");
	story_origin_says(s, o, "o");
	story_got(c->s, "HTTP/1.1 413 No\r\nContent-Length: 2\r\nConnection: close\r\n\r\nno");
	assert_int_equal(c->end.outcome, EXCHANGE_CLOSE); // the body came all the same
	assert_false(o->is_used); // but the origin has not had it
	assert_int_equal(story_count(s, answer_early), 1);
	story_end(s);
}

static void a_client_need_not_wait_for_100(void **state)
{
	(void)state;
	struct story *s = story_new();
	struct story_client *c = story_client(s);
	struct fake_stream *o = story_asked(c, EXPECTING, GOT_EXPECTING);
	story_client_says(c, "body");
	story_got(o, "body");
	story_origin_says(s, o, STORY_OK);
	assert_int_equal(c->end.outcome, EXCHANGE_KEPT);
	story_end(s);
}

// --- answers before the end of the request

static void an_early_answer_passes_and_the_body_goes_on(void **state)
{
	(void)state;
	struct story *s = story_new();
	struct story_client *c = story_client(s);
	struct fake_stream *o = story_asked(c,
		"POST / HTTP/1.1\r\nHost: shop.example\r\nContent-Length: 6\r\n\r\nab",
		"POST / HTTP/1.1\r\nHost: shop.example\r\nContent-Length: 6\r\n" STORY_ADDED
		"\r\nab");
	story_origin_says(s, o, "HTTP/1.1 200 OK\r\nContent-Length: 4\r\n\r\n12");
	story_got(c->s, "HTTP/1.1 200 OK\r\nContent-Length: 4\r\nConnection: close\r\n\r\n12");
	story_client_says(c, "cd");
	story_got(o, "cd");
	story_client_says(c, "ef");
	story_got(o, "ef");
	story_origin_says(s, o, "34");
	story_got(c->s, "34");
	assert_int_equal(c->end.outcome, EXCHANGE_CLOSE);
	assert_true(o->is_used); // both sides are whole
	story_end(s);
}

static void an_early_answer_that_is_whole_ends_it(void **state)
{
	(void)state;
	struct story *s = story_new();
	struct story_client *c = story_client(s);
	struct fake_stream *o = story_asked(c,
		"POST / HTTP/1.1\r\nHost: shop.example\r\nContent-Length: 6\r\n\r\nab",
		"POST / HTTP/1.1\r\nHost: shop.example\r\nContent-Length: 6\r\n" STORY_ADDED
		"\r\nab");
	story_origin_says(s, o, "HTTP/1.1 400 No\r\nContent-Length: 0\r\n\r\n");
	story_got(c->s, "HTTP/1.1 400 No\r\nContent-Length: 0\r\nConnection: close\r\n\r\n");
	assert_int_equal(c->end.outcome, EXCHANGE_LINGER);
	assert_false(c->end.body_ended);
	assert_false(o->is_used);
	assert_int_equal(story_count(s, answer_early), 1);
	story_end(s);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(a_request_is_answered_and_the_connection_kept),
		cmocka_unit_test(pipelined_requests_are_answered_in_order),
		cmocka_unit_test(a_body_with_a_length_passes),
		cmocka_unit_test(a_chunked_body_is_decoded_and_encoded_anew),
		cmocka_unit_test(a_body_of_no_bytes_has_ended),
		cmocka_unit_test(answers_are_framed_for_the_client),
		cmocka_unit_test(an_answer_to_head_has_no_body),
		cmocka_unit_test(an_http_1_0_client_may_stay),
		cmocka_unit_test(a_client_that_asks_to_close_is_told_so),
		cmocka_unit_test(a_half_closed_client_is_still_answered),
		cmocka_unit_test(hop_by_hop_fields_of_an_answer_go),
		cmocka_unit_test(the_gate_adds_a_pass),
		cmocka_unit_test(an_answer_without_a_date_gets_one),
		cmocka_unit_test(the_gate_may_end_the_connection),
		cmocka_unit_test(the_largest_answer_head_with_the_largest_extra_passes),
		cmocka_unit_test(commands_reach_the_worker_and_not_the_visitor),
		cmocka_unit_test(interim_answers_are_passed_on),
		cmocka_unit_test(http_1_0_gets_no_interim_answers),
		cmocka_unit_test(a_client_that_waits_for_100_gets_the_origins),
		cmocka_unit_test(a_final_answer_instead_of_100_leaves_the_body_unread),
		cmocka_unit_test(a_client_need_not_wait_for_100),
		cmocka_unit_test(an_early_answer_passes_and_the_body_goes_on),
		cmocka_unit_test(an_early_answer_that_is_whole_ends_it),
	};
	return story_run(tests);
}
