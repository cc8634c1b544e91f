// Upgrades: a tunnel only after the origin's 101, then bytes both ways, each way ending by itself,
// and an end with the session.

#include "tests/unit/origin/story.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stdlib.h>

#include <cmocka.h>

#define ASK \
	"GET /chat HTTP/1.1\r\nHost: shop.example\r\nConnection: Upgrade\r\n" \
	"Upgrade: websocket\r\n\r\n"
#define GOT_ASK \
	"GET /chat HTTP/1.1\r\nHost: shop.example\r\nUpgrade: websocket\r\n" \
	"Connection: upgrade\r\n" STORY_ADDED "\r\n"
#define SWITCH \
	"HTTP/1.1 101 Switching Protocols\r\nUpgrade: websocket\r\nConnection: Upgrade\r\n" \
	"Sec-WebSocket-Accept: a\r\n\r\n"
#define GOT_SWITCH \
	"HTTP/1.1 101 Switching Protocols\r\nSec-WebSocket-Accept: a\r\n" \
	"Upgrade: websocket\r\nConnection: upgrade\r\n\r\n"

static struct fake_stream *tunnel(struct story_client *c)
{
	struct fake_stream *o = story_asked(c, ASK, GOT_ASK);
	story_origin_says(c->story, o, SWITCH);
	story_got(c->s, GOT_SWITCH);
	assert_int_equal(c->tunnels, 1);
	assert_int_equal(c->status, 101);
	return o;
}

static void bytes_pass_both_ways(void **state)
{
	(void)state;
	struct story *s = story_new();
	struct story_client *c = story_client(s);
	struct fake_stream *o = tunnel(c);
	story_client_says(c, "hello\r\n\r\n");
	story_got(o, "hello\r\n\r\n");
	story_origin_says(s, o, "HTTP/1.1 200 OK\r\n\r\n"); // only bytes by now
	story_got(c->s, "HTTP/1.1 200 OK\r\n\r\n");
	story_client_says(c, STORY_GET);
	story_got(o, STORY_GET);
	assert_int_equal(story_count(s, tunnels), 1);
	story_client_leaves(c);
	assert_false(o->is_used);
	story_end(s);
}

static void each_way_ends_by_itself(void **state)
{
	(void)state;
	for (int first = 0; first < 2; first++) {
		struct story *s = story_new();
		struct story_client *c = story_client(s);
		struct fake_stream *o = tunnel(c);
		if (first == 0) {
			story_client_ends(c);
			assert_true(o->is_shut);
			story_origin_says(s, o, "late");
			story_got(c->s, "late");
			story_origin_ends(s, o);
		} else {
			story_origin_ends(s, o);
			assert_true(c->s->is_shut);
			story_client_says(c, "late");
			story_got(o, "late");
			story_client_ends(c);
		}
		assert_int_equal(c->end.outcome, EXCHANGE_CLOSE);
		assert_false(o->is_used);
		assert_false(o->was_reset);
		story_end(s);
	}
}

static void a_closed_or_reset_origin_ends_it(void **state)
{
	(void)state;
	for (int error = 0; error <= 104; error += 104) {
		struct story *s = story_new();
		struct story_client *c = story_client(s);
		story_origin_closes(s, tunnel(c), error);
		assert_int_equal(c->end.outcome, error ? EXCHANGE_BROKEN : EXCHANGE_CLOSE);
		story_end(s);
	}
}

static void bytes_behind_the_101_are_the_tunnels(void **state)
{
	(void)state;
	struct story *s = story_new();
	struct story_client *c = story_client(s);
	struct fake_stream *o = story_asked(c, ASK, GOT_ASK);
	story_origin_says(s, o, SWITCH "first");
	story_got(c->s, GOT_SWITCH "first");
	story_client_leaves(c);
	story_end(s);
}

// Before the 101 nothing of what the client sends reaches the origin: without it, it is a request.
static void nothing_is_tunnelled_before_the_101(void **state)
{
	(void)state;
	for (int accepts = 0; accepts < 2; accepts++) {
		struct story *s = story_new();
		struct story_client *c = story_client(s);
		struct fake_stream *o = story_asked(c, ASK, GOT_ASK);
		story_client_says(c, STORY_GET);
		story_got(o, "");
		if (accepts) {
			story_origin_says(s, o, SWITCH);
			story_got(o, STORY_GET);
			story_client_leaves(c);
		} else {
			story_origin_says(s, o, STORY_OK);
			story_got(c->s, STORY_OK);
			story_got(o, STORY_GOT_GET); // on the kept connection
			story_origin_says(s, o, STORY_OK);
		}
		story_end(s);
	}
}

static void a_client_that_has_ended_before_the_101(void **state)
{
	(void)state;
	struct story *s = story_new();
	struct story_client *c = story_client(s);
	struct fake_stream *o = story_asked(c, ASK, GOT_ASK);
	story_client_says(c, "held");
	story_client_ends(c);
	story_origin_says(s, o, SWITCH);
	story_got(o, "held"); // what it had said comes before its end
	assert_true(o->is_shut);
	story_origin_says(s, o, "bye");
	story_origin_ends(s, o);
	story_got(c->s, GOT_SWITCH "bye");
	assert_int_equal(c->end.outcome, EXCHANGE_CLOSE);
	story_end(s);
}

// A tunnel that ends while the worker hands over what it held.
static void a_tunnel_may_end_as_it_begins(void **state)
{
	(void)state;
	struct story *s = story_new();
	struct story_client *c = story_client(s);
	struct fake_stream *o = story_asked(c, ASK, GOT_ASK);
	story_client_says(c, "held");
	story_client_ends(c);
	o->take_max = 0;
	story_origin_says(s, o, SWITCH);
	assert_int_equal(c->end.outcome, EXCHANGE_BROKEN);
	assert_int_equal(story_count(s, origin_full), 1);
	story_end(s);
}

static void a_switch_without_upgrade_is_502(void **state)
{
	(void)state;
	struct story *s = story_new();
	struct story_client *c = story_client(s);
	struct fake_stream *o = story_asked(c, ASK, GOT_ASK);
	story_origin_says(s, o, "HTTP/1.1 101 Switching\r\nUpgrade: websocket\r\n\r\n");
	assert_int_equal(c->end.status, 502);
	assert_int_equal(story_count(s, answer_switched), 1);
	story_end(s);
}

static void a_refused_upgrade_is_an_answer(void **state)
{
	(void)state;
	struct story *s = story_new();
	struct story_client *c = story_client(s);
	struct fake_stream *o = story_asked(c, ASK, GOT_ASK);
	story_origin_says(s, o, "HTTP/1.1 403 No\r\nContent-Length: 0\r\n\r\n");
	story_got(c->s, "HTTP/1.1 403 No\r\nContent-Length: 0\r\n\r\n");
	assert_int_equal(c->end.outcome, EXCHANGE_KEPT);
	assert_true(o->is_used);
	story_end(s);
}

static void h2c_is_not_passed_on(void **state)
{
	(void)state;
	struct story *s = story_new();
	struct story_client *c = story_client(s);
	struct fake_stream *o = story_asked(c,
		"GET / HTTP/1.1\r\nHost: shop.example\r\nUpgrade: h2c\r\nHTTP2-Settings: AA\r\n"
		"Connection: Upgrade, HTTP2-Settings\r\n\r\n",
		STORY_GOT_GET);
	story_origin_says(s, o, "HTTP/1.1 101 OK\r\nConnection: upgrade\r\nUpgrade: h2c\r\n\r\n");
	assert_int_equal(c->end.status, 502);
	story_end(s);
}

static void the_session_ends_it(void **state)
{
	(void)state;
	struct story *s = story_new();
	s->facts.ends_us = s->now_us + 5 * STORY_SECOND;
	struct story_client *c = story_client(s);
	struct fake_stream *o = tunnel(c);
	story_wait(s, 4 * STORY_SECOND);
	story_client_says(c, "still there");
	assert_int_equal(c->ends, 0);
	story_wait(s, 1 * STORY_SECOND);
	assert_int_equal(c->end.outcome, EXCHANGE_CLOSE);
	assert_int_equal(story_count(s, session_ends), 1);
	assert_false(o->is_used);
	story_end(s);
}

static void a_session_may_be_ended_by_somebody(void **state)
{
	(void)state;
	struct story *s = story_new();
	struct story_client *c = story_client(s);
	tunnel(c);
	exchange_set_ends(c->x, s->now_us);
	story_settle(s);
	assert_int_equal(c->end.outcome, EXCHANGE_CLOSE);
	story_end(s);
}

static void an_idle_tunnel_ends(void **state)
{
	(void)state;
	struct story *s = story_new();
	struct story_client *c = story_client(s);
	struct fake_stream *o = tunnel(c);
	story_wait(s, 599 * STORY_SECOND);
	story_client_says(c, "ping");
	story_wait(s, 599 * STORY_SECOND);
	story_origin_says(s, o, "pong");
	story_wait(s, 599 * STORY_SECOND);
	assert_int_equal(c->ends, 0);
	story_wait(s, 1 * STORY_SECOND);
	assert_int_equal(c->end.outcome, EXCHANGE_CLOSE);
	assert_int_equal(story_count(s, stalls), 1);
	story_end(s);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(bytes_pass_both_ways),
		cmocka_unit_test(each_way_ends_by_itself),
		cmocka_unit_test(a_closed_or_reset_origin_ends_it),
		cmocka_unit_test(bytes_behind_the_101_are_the_tunnels),
		cmocka_unit_test(nothing_is_tunnelled_before_the_101),
		cmocka_unit_test(a_client_that_has_ended_before_the_101),
		cmocka_unit_test(a_tunnel_may_end_as_it_begins),
		cmocka_unit_test(a_switch_without_upgrade_is_502),
		cmocka_unit_test(a_refused_upgrade_is_an_answer),
		cmocka_unit_test(h2c_is_not_passed_on),
		cmocka_unit_test(the_session_ends_it),
		cmocka_unit_test(a_session_may_be_ended_by_somebody),
		cmocka_unit_test(an_idle_tunnel_ends),
	};
	return story_run(tests);
}
