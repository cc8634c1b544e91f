// Kept connections: those that turn out dead, which requests may be asked again, and what an origin
// says out of turn.

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

// --- kept connections

static void a_dead_kept_connection_is_replaced_once(void **state)
{
	(void)state;
	for (int how = 0; how < 2; how++) {
		struct story *s = story_new();
		struct story_client *c = story_client(s);
		struct fake_stream *o = story_get(c, 0, true);
		story_client_says(c, STORY_GET);
		story_got(o, STORY_GOT_GET);
		if (how == 0)
			story_origin_ends(s, o);
		else
			story_origin_closes(s, o, 104);
		struct fake_stream *fresh = story_connection(s, 1);
		story_opens(s, fresh);
		story_got(fresh, STORY_GOT_GET);
		assert_int_equal(story_count(s, retries), 1);
		assert_int_equal(story_count(s, servers_aside), 0);
		story_origin_closes(s, fresh, 104); // not a second time
		assert_int_equal(c->end.outcome, EXCHANGE_FAILED);
		assert_int_equal(c->end.status, 502);
		assert_int_equal(story_connection_count(s), 2);
		story_end(s);
	}
}

static void the_replacement_is_a_new_connection(void **state)
{
	(void)state;
	struct story *s = story_new();
	struct story_client *c = story_client(s), *other = story_client(s);
	story_client_says(c, STORY_GET);
	story_client_says(other, STORY_GET);
	for (int n = 0; n < 2; n++) {
		story_opens(s, story_connection(s, n));
		story_origin_says(s, story_connection(s, n), STORY_OK);
	}
	assert_int_equal(story_count(s, kept), 2);
	story_client_says(c, STORY_GET);
	story_origin_closes(s, story_connection(s, 1), 104); // the newest was taken
	assert_int_equal(story_connection_count(s), 3); // not the other kept one
	story_opens(s, story_connection(s, 2));
	story_origin_says(s, story_connection(s, 2), STORY_OK);
	assert_int_equal(c->end.outcome, EXCHANGE_KEPT);
	story_end(s);
}

struct repeat {
	const char *request;
	bool is_repeated;
};

static const struct repeat repeats[] = {
	{STORY_GET, true},
	{"HEAD / HTTP/1.1\r\nHost: shop.example\r\n\r\n", true},
	{"OPTIONS / HTTP/1.1\r\nHost: shop.example\r\n\r\n", true},
	{"DELETE / HTTP/1.1\r\nHost: shop.example\r\n\r\n", true},
	{"PUT / HTTP/1.1\r\nHost: shop.example\r\nContent-Length: 0\r\n\r\n", true},
	{"PUT / HTTP/1.1\r\nHost: shop.example\r\nContent-Length: 1\r\n\r\nx", false},
	{"GET / HTTP/1.1\r\nHost: shop.example\r\nContent-Length: 1\r\n\r\nx", false},
	{"POST / HTTP/1.1\r\nHost: shop.example\r\n\r\n", false},
	{"POST / HTTP/1.1\r\nHost: shop.example\r\nContent-Length: 1\r\n\r\n", false},
	{"PATCH / HTTP/1.1\r\nHost: shop.example\r\n\r\n", false},
	{"get / HTTP/1.1\r\nHost: shop.example\r\n\r\n", false},
};

static void only_what_may_be_repeated_is(void **state)
{
	(void)state;
	for (size_t i = 0; i < sizeof(repeats) / sizeof(repeats[0]); i++) {
		struct story *s = story_new();
		struct story_client *c = story_client(s);
		struct fake_stream *o = story_get(c, 0, true);
		story_client_says(c, repeats[i].request);
		story_origin_closes(s, o, 104);
		assert_int_equal(story_count(s, retries), repeats[i].is_repeated);
		if (repeats[i].is_repeated)
			story_client_leaves(c);
		else
			assert_int_equal(c->end.status, 502);
		story_end(s);
	}
}

static void what_was_not_sent_may_always_be_sent(void **state)
{
	(void)state;
	struct story *s = story_new();
	struct story_client *c = story_client(s);
	story_get(c, 0, true)->take_max = 0; // the driver knows that it is dead
	story_client_says(c, STORY_POST "body");
	struct fake_stream *fresh = story_connection(s, 1);
	story_opens(s, fresh);
	story_got(fresh, STORY_GOT_POST "body");
	story_origin_says(s, fresh, STORY_OK);
	assert_int_equal(c->end.outcome, EXCHANGE_KEPT);
	story_end(s);
}

static void what_was_sent_in_part_may_not(void **state)
{
	(void)state;
	struct story *s = story_new();
	struct story_client *c = story_client(s);
	story_get(c, 0, true)->take_max = 1;
	story_client_says(c, STORY_POST "body");
	assert_int_equal(c->refused, 502);
	assert_int_equal(story_connection_count(s), 1);
	story_end(s);
}

static void after_a_byte_of_an_answer_nothing_is_repeated(void **state)
{
	(void)state;
	struct story *s = story_new();
	struct story_client *c = story_client(s);
	struct fake_stream *o = story_get(c, 0, true);
	story_client_says(c, STORY_GET);
	story_origin_says(s, o, "H");
	story_origin_closes(s, o, 104);
	assert_int_equal(c->end.outcome, EXCHANGE_FAILED);
	assert_int_equal(c->end.status, 502);
	assert_int_equal(story_count(s, retries), 0);
	story_end(s);
}

static void a_kept_connection_that_ends_is_forgotten(void **state)
{
	(void)state;
	for (int how = 0; how < 2; how++) {
		struct story *s = story_new();
		struct story_client *c = story_client(s);
		struct fake_stream *o = story_get(c, 0, true);
		if (how == 0)
			story_origin_ends(s, o);
		else
			story_origin_closes(s, o, 104);
		assert_int_equal(story_count(s, kept_closed), 1);
		story_get(c, 1, true);
		story_end(s);
	}
}

static void kept_connections_expire(void **state)
{
	(void)state;
	struct story *s = story_new();
	struct story_client *c = story_client(s);
	struct fake_stream *o = story_get(c, 0, true);
	story_wait(s, 3900000);
	assert_true(o->is_used);
	assert_true(origin_due_us(s->o) > s->now_us);
	story_wait(s, 100000);
	assert_false(o->is_used);
	assert_int_equal(story_count(s, kept_expired), 1);
	assert_int_equal(origin_due_us(s->o), UINT64_MAX);
	story_end(s);
}

// --- smuggling by answers

static void bytes_after_an_answer_end_the_connection(void **state)
{
	(void)state;
	static const char *const surplus[] = {
		STORY_OK "x",
		STORY_OK STORY_OK,
		STORY_STATUS "Transfer-Encoding: chunked\r\n\r\n0\r\n\r\n" STORY_OK,
		"HTTP/1.1 204 No\r\n\r\n" STORY_OK,
		"HTTP/1.1 304 No\r\nContent-Length: 2\r\n\r\nok",
		STORY_STATUS "Content-Length: 0\r\n\r\n\r\n",
	};
	for (size_t i = 0; i < sizeof(surplus) / sizeof(surplus[0]); i++) {
		struct story *s = story_new();
		struct story_client *c = story_client(s);
		struct fake_stream *o = story_asked(c, STORY_GET, STORY_GOT_GET);
		story_origin_says(s, o, surplus[i]);
		assert_int_equal(c->end.outcome, EXCHANGE_KEPT); // the first answer is whole
		assert_int_equal(c->ends, 1);
		assert_false(o->is_used);
		assert_int_equal(story_count(s, answer_surplus) + story_count(s, kept_spoke), 1);
		story_client_says(c, STORY_GET);
		assert_int_equal(story_connection_count(s), 2);
		story_client_leaves(c);
		story_end(s);
	}
}

// An answer that was on its way when the connection was taken is not the answer to this request.
static void an_answer_before_the_request_is_none(void **state)
{
	(void)state;
	struct story *s = story_new();
	struct story_client *c = story_client(s);
	struct fake_stream *o = story_get(c, 0, true);
	struct span request = SPAN(STORY_GET), answer = SPAN("HTTP/1.1 408 Idle\r\n\r\n");
	fake_peer_sends(&s->fake, c->s, request);
	story_turn(s); // the request goes out at the end of this turn ...
	story_got(o, STORY_GOT_GET);
	story_origin_says(s, o, STORY_OK);
	story_got(c->s, STORY_OK); // ... and what comes in the next is its answer

	// Both in one turn: the client's first.
	struct story_client *other = story_client(s);
	fake_peer_sends(&s->fake, other->s, request);
	fake_peer_sends(&s->fake, o, answer);
	s->pump_at_once = true;
	story_settle(s);
	assert_int_equal(story_count(s, answer_unasked), 1);
	story_got(other->s, "");
	struct fake_stream *fresh = story_connection(s, 1);
	story_opens(s, fresh);
	story_got(fresh, STORY_GOT_GET);
	story_origin_says(s, fresh, STORY_OK);
	story_got(other->s, STORY_OK);
	story_end(s);
}

// A server that speaks first is no HTTP server.
static void an_origin_that_speaks_first_is_502(void **state)
{
	(void)state;
	struct story *s = story_new();
	struct story_client *c = story_client(s);
	story_client_says(c, STORY_GET);
	struct fake_stream *o = story_connection(s, 0);
	fake_peer_opens(&s->fake, o);
	fake_peer_sends(&s->fake, o, SPAN(STORY_OK));
	story_settle(s);
	failed_with(c, 502);
	assert_int_equal(story_count(s, answer_unasked), 1);
	story_end(s);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(a_dead_kept_connection_is_replaced_once),
		cmocka_unit_test(the_replacement_is_a_new_connection),
		cmocka_unit_test(only_what_may_be_repeated_is),
		cmocka_unit_test(what_was_not_sent_may_always_be_sent),
		cmocka_unit_test(what_was_sent_in_part_may_not),
		cmocka_unit_test(after_a_byte_of_an_answer_nothing_is_repeated),
		cmocka_unit_test(a_kept_connection_that_ends_is_forgotten),
		cmocka_unit_test(kept_connections_expire),
		cmocka_unit_test(bytes_after_an_answer_end_the_connection),
		cmocka_unit_test(an_answer_before_the_request_is_none),
		cmocka_unit_test(an_origin_that_speaks_first_is_502),
	};
	return story_run(tests);
}
