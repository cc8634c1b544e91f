// Clients that leave, cut their bodies short, or are slow.

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

// --- clients

static void a_client_that_leaves_ends_all(void **state)
{
	(void)state;
	for (int when = 0; when < 4; when++) {
		struct story *s = story_new();
		struct story_client *c = story_client(s);
		story_client_says(c, when == 3 ? STORY_POST "bo" : STORY_GET);
		struct fake_stream *o = story_connection(s, 0);
		if (when > 0)
			story_opens(s, o);
		if (when == 2)
			story_origin_says(s, o, STORY_STATUS "Content-Length: 4\r\n\r\nbo");
		story_client_leaves(c);
		assert_int_equal(c->ends, 0);
		assert_int_equal(origin_exchange_count(s->o), 0);
		assert_false(o->is_used);
		assert_true(o->was_reset);
		assert_int_equal(story_count(s, client_gone), 1);
		story_end(s);
	}
}

static void a_request_body_cut_short_is_400(void **state)
{
	(void)state;
	struct story *s = story_new();
	struct story_client *c = story_client(s);
	struct fake_stream *o = story_asked(c, STORY_POST "bo", STORY_GOT_POST "bo");
	story_client_ends(c);
	failed_with(c, 400);
	assert_false(c->end.body_ended);
	assert_true(o->was_reset);
	assert_int_equal(story_count(s, request_body_cut), 1);
	story_end(s);
}

static void a_request_body_against_the_grammar_is_400(void **state)
{
	(void)state;
	struct story *s = story_new();
	struct story_client *c = story_client(s);
	struct fake_stream *o = story_asked(c,
		"POST / HTTP/1.1\r\nHost: shop.example\r\nTransfer-Encoding: chunked\r\n\r\n",
		"POST / HTTP/1.1\r\nHost: shop.example\r\nTransfer-Encoding: "
		"chunked\r\n" STORY_ADDED "\r\n");
	story_client_says(c, "3\r\nabc\r\n3\nabc\r\n");
	failed_with(c, 400);
	assert_false(c->end.body_ended);
	assert_int_equal(story_count(s, request_body_bad), 1);
	assert_true(o->was_reset);
	story_end(s);
}

static void a_client_whose_driver_is_full_is_given_up(void **state)
{
	(void)state;
	struct story *s = story_new();
	struct story_client *c = story_client(s);
	struct fake_stream *o = story_asked(c, STORY_GET, STORY_GOT_GET);
	c->s->take_max = 10;
	story_origin_says(s, o, STORY_OK);
	assert_int_equal(c->end.outcome, EXCHANGE_BROKEN);
	assert_int_equal(story_count(s, client_full), 1);
	story_end(s);
}

static void an_origin_whose_driver_is_full_is_502(void **state)
{
	(void)state;
	struct story *s = story_new();
	struct story_client *c = story_client(s);
	struct fake_stream *o = story_asked(c, STORY_POST, STORY_GOT_POST);
	o->take_max = 2;
	story_client_says(c, "body");
	failed_with(c, 502);
	assert_int_equal(story_count(s, origin_full), 1);
	story_end(s);
}

// --- slow bodies of requests

static void a_request_body_has_a_deadline(void **state)
{
	(void)state;
	struct story *s = story_plan();
	s->plan.body_us = 10 * STORY_SECOND;
	s->plan.body_grace_us = 100 * STORY_SECOND;
	story_start(s);
	struct story_client *c = story_client(s);
	struct fake_stream *o = story_asked(c, STORY_POST "b", STORY_GOT_POST "b");
	for (int n = 0; n < 9; n++) { // trickling does not help
		story_wait(s, STORY_SECOND);
		if (n == 3)
			story_client_says(c, "o");
	}
	assert_int_equal(c->ends, 0);
	story_wait(s, STORY_SECOND);
	failed_with(c, 408);
	assert_false(c->end.body_ended);
	assert_int_equal(story_count(s, request_body_late), 1);
	assert_int_equal(story_count(s, servers_aside), 0);
	assert_true(o->was_reset);
	story_end(s);
}

static void a_request_body_has_a_rate(void **state)
{
	(void)state;
	struct story *s = story_plan();
	s->plan.body_grace_us = 2 * STORY_SECOND;
	s->plan.body_rate = 1024;
	story_start(s);
	struct story_client *c = story_client(s);
	static char body[3073];
	memset(body, 'x', 3072);
	story_asked(c, "POST / HTTP/1.1\r\nHost: shop.example\r\nContent-Length: 9999\r\n\r\n",
		"POST / HTTP/1.1\r\nHost: shop.example\r\nContent-Length: 9999\r\n" STORY_ADDED
		"\r\n");
	uint64_t begun = s->now_us;
	s->bytewise = false;
	story_client_says(c, body); // 3 s worth, after a grace of 2
	story_wait(s, begun + 4900000 - s->now_us);
	assert_int_equal(c->ends, 0);
	story_wait(s, 100000);
	failed_with(c, 408);
	assert_int_equal(story_count(s, request_body_slow), 1);
	story_end(s);
}

static void a_slow_origin_is_not_the_clients_fault(void **state)
{
	(void)state;
	struct story *s = story_plan();
	s->plan.body_us = 10 * STORY_SECOND;
	story_start(s);
	struct story_client *c = story_client(s);
	struct fake_stream *o = story_asked(c,
		"POST / HTTP/1.1\r\nHost: shop.example\r\nContent-Length: 9999\r\n\r\n",
		"POST / HTTP/1.1\r\nHost: shop.example\r\nContent-Length: 9999\r\n" STORY_ADDED
		"\r\n");
	static char body[6001];
	memset(body, 'x', 6000);
	s->bytewise = false;
	o->window = 0;
	story_client_says(c, body);
	assert_true(c->s->is_paused);
	story_wait(s, 50 * STORY_SECOND);
	assert_int_equal(c->ends, 0);
	fake_peer_takes(&s->fake, o, SIZE_MAX);
	story_settle(s);
	assert_false(c->s->is_paused);
	story_wait(s, 9 * STORY_SECOND);
	assert_int_equal(c->ends, 0);
	story_wait(s, STORY_SECOND);
	failed_with(c, 408);
	story_end(s);
}

static void an_origin_that_takes_nothing_is_504(void **state)
{
	(void)state;
	struct story *s = story_new();
	struct story_client *c = story_client(s);
	struct fake_stream *o = story_asked(c,
		"POST / HTTP/1.1\r\nHost: shop.example\r\nContent-Length: 9999\r\n\r\n",
		"POST / HTTP/1.1\r\nHost: shop.example\r\nContent-Length: 9999\r\n" STORY_ADDED
		"\r\n");
	static char body[6001];
	memset(body, 'x', 6000);
	s->bytewise = false;
	o->window = 0;
	story_client_says(c, body);
	story_wait(s, 60 * STORY_SECOND);
	failed_with(c, 504);
	assert_int_equal(story_count(s, answer_late), 1);
	story_end(s);
}

// The clock of a body that waits for 100 begins with the 100.
static void waiting_for_100_is_not_slow(void **state)
{
	(void)state;
	struct story *s = story_plan();
	s->plan.body_us = 10 * STORY_SECOND;
	story_start(s);
	struct story_client *c = story_client(s);
	struct fake_stream *o = story_asked(c,
		"POST / HTTP/1.1\r\nHost: shop.example\r\nContent-Length: 4\r\n"
		"Expect: 100-continue\r\n\r\n",
		"POST / HTTP/1.1\r\nHost: shop.example\r\nContent-Length: 4\r\n"
		"Expect: 100-continue\r\n" STORY_ADDED "\r\n");
	story_wait(s, 20 * STORY_SECOND);
	assert_int_equal(c->ends, 0);
	story_origin_says(s, o, "HTTP/1.1 100 Continue\r\n\r\n");
	story_wait(s, 9 * STORY_SECOND);
	assert_int_equal(c->ends, 0);
	story_wait(s, STORY_SECOND);
	failed_with(c, 408);
	story_end(s);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(a_client_that_leaves_ends_all),
		cmocka_unit_test(a_request_body_cut_short_is_400),
		cmocka_unit_test(a_request_body_against_the_grammar_is_400),
		cmocka_unit_test(a_client_whose_driver_is_full_is_given_up),
		cmocka_unit_test(an_origin_whose_driver_is_full_is_502),
		cmocka_unit_test(a_request_body_has_a_deadline),
		cmocka_unit_test(a_request_body_has_a_rate),
		cmocka_unit_test(a_slow_origin_is_not_the_clients_fault),
		cmocka_unit_test(an_origin_that_takes_nothing_is_504),
		cmocka_unit_test(waiting_for_100_is_not_slow),
	};
	return story_run(tests);
}
