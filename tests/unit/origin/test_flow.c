// Bodies of any size, both ways, in bounded memory: when one side does not take, the other is not
// read.

#include "tests/unit/origin/story.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>

#include <cmocka.h>

#define PIECE_BYTES 1000u
#define PIECES 400u

static char piece[PIECE_BYTES + 1];

static void fill(unsigned n)
{
	for (unsigned i = 0; i < PIECE_BYTES; i++)
		piece[i] = (char)('a' + (n * 7 + i) % 26);
}

static void check_piece(const struct fake_stream *s, size_t at, unsigned n)
{
	fill(n);
	assert_true(s->got.len >= at + PIECE_BYTES);
	assert_memory_equal(s->got.at + at, piece, PIECE_BYTES);
}

// What may be queued at most: the mark, and what one event brings beyond it.
#define QUEUED_MAX (FAKE_QUEUE_HIGH + PIECE_BYTES + 64)

static void a_large_answer_to_a_slow_client(void **state)
{
	(void)state;
	struct story *s = story_new();
	struct story_client *c = story_client(s);
	struct fake_stream *o = story_asked(c, STORY_GET, STORY_GOT_GET);
	story_origin_says(s, o, "HTTP/1.1 200 OK\r\nContent-Length: 400000\r\n\r\n");
	s->bytewise = false;
	c->s->got.len = 0;
	c->s->window = 0;
	unsigned sent = 0, pauses = 0;
	while (sent < PIECES) {
		if (o->is_paused) {
			pauses++;
			fake_peer_takes(&s->fake, c->s, 3000);
			story_settle(s);
			continue;
		}
		fill(sent++);
		story_origin_says(s, o, piece);
	}
	assert_int_equal(c->ends, 1); // all is handed on, though not yet taken
	assert_false(o->is_paused);
	fake_peer_takes(&s->fake, c->s, SIZE_MAX);
	story_settle(s);
	assert_int_equal(c->s->got.len, PIECES * PIECE_BYTES);
	for (unsigned n = 0; n < PIECES; n++)
		check_piece(c->s, n * PIECE_BYTES, n);
	assert_true(pauses > 50);
	assert_true(c->s->queued_peak <= QUEUED_MAX);
	story_end(s);
}

static void a_large_body_to_a_slow_origin(void **state)
{
	(void)state;
	struct story *s = story_new();
	struct story_client *c = story_client(s);
	struct fake_stream *o = story_asked(c,
		"PUT / HTTP/1.1\r\nHost: shop.example\r\nContent-Length: 400000\r\n\r\n",
		"PUT / HTTP/1.1\r\nHost: shop.example\r\nContent-Length: 400000\r\n" STORY_ADDED
		"\r\n");
	s->bytewise = false;
	o->window = 0;
	unsigned sent = 0, pauses = 0;
	while (sent < PIECES) {
		if (c->s->is_paused) {
			pauses++;
			fake_peer_takes(&s->fake, o, 3000);
			story_settle(s);
			continue;
		}
		fill(sent++);
		story_client_says(c, piece);
	}
	assert_false(c->s->is_paused); // the body is over: the stream is the worker's again
	fake_peer_takes(&s->fake, o, SIZE_MAX);
	story_settle(s);
	assert_int_equal(o->got.len, PIECES * PIECE_BYTES);
	for (unsigned n = 0; n < PIECES; n++)
		check_piece(o, n * PIECE_BYTES, n);
	assert_true(pauses > 50);
	assert_true(o->queued_peak <= QUEUED_MAX);
	story_origin_says(s, o, STORY_OK);
	assert_int_equal(c->end.outcome, EXCHANGE_KEPT);
	story_end(s);
}

static void a_tunnel_between_two_slow_sides(void **state)
{
	(void)state;
	struct story *s = story_new();
	struct story_client *c = story_client(s);
	s->bytewise = false;
	story_client_says(c, "GET / HTTP/1.1\r\nHost: shop.example\r\nConnection: upgrade\r\n"
			     "Upgrade: x\r\n\r\n");
	struct fake_stream *o = story_connection(s, 0);
	story_opens(s, o);
	story_origin_says(s, o, "HTTP/1.1 101 OK\r\nConnection: upgrade\r\nUpgrade: x\r\n\r\n");
	o->got.len = c->s->got.len = 0;
	o->window = c->s->window = 0;
	unsigned up = 0, down = 0;
	while (up < PIECES || down < PIECES) {
		if (up < PIECES && !c->s->is_paused) {
			fill(up++);
			story_client_says(c, piece);
		} else if (down < PIECES && !o->is_paused) {
			fill(down++);
			story_origin_says(s, o, piece);
		} else {
			fake_peer_takes(&s->fake, o, 5000);
			fake_peer_takes(&s->fake, c->s, 5000);
			story_settle(s);
		}
	}
	fake_peer_takes(&s->fake, o, SIZE_MAX);
	fake_peer_takes(&s->fake, c->s, SIZE_MAX);
	story_settle(s);
	for (unsigned n = 0; n < PIECES; n++) {
		check_piece(o, n * PIECE_BYTES, n);
		check_piece(c->s, n * PIECE_BYTES, n);
	}
	assert_true(o->queued_peak <= QUEUED_MAX);
	assert_true(c->s->queued_peak <= QUEUED_MAX);
	story_client_leaves(c);
	story_end(s);
}

// A client that takes nothing holds its answer no longer than stall_us.
static void a_client_that_takes_nothing_is_broken_off(void **state)
{
	(void)state;
	struct story *s = story_new();
	struct story_client *c = story_client(s);
	struct fake_stream *o = story_asked(c, STORY_GET, STORY_GOT_GET);
	story_origin_says(s, o, "HTTP/1.1 200 OK\r\nContent-Length: 400000\r\n\r\n");
	s->bytewise = false;
	c->s->window = 0;
	fill(0);
	while (!o->is_paused)
		story_origin_says(s, o, piece);
	story_wait(s, 59 * STORY_SECOND);
	assert_int_equal(c->ends, 0);
	story_wait(s, STORY_SECOND);
	assert_int_equal(c->end.outcome, EXCHANGE_BROKEN);
	assert_int_equal(story_count(s, stalls), 1);
	story_end(s);
}

// While a connection is being made the client is not read; what had arrived waits in buffers, and
// no more than 16 of them.
static void a_body_before_the_connection_is_bounded(void **state)
{
	(void)state;
	struct story *s = story_plan();
	s->plan.request_head_bytes = 1000;
	s->plan.answer.head_bytes = 1000;
	s->plan.buffers_max = 100;
	story_start(s);
	s->bytewise = false;
	for (unsigned beyond = 0; beyond < 2; beyond++) {
		struct story_client *c = story_client(s);
		story_client_says(c,
			"PUT / HTTP/1.1\r\nHost: shop.example\r\nContent-Length: 400000\r\n\r\n");
		struct fake_stream *o = story_connection(s, (int)beyond);
		size_t head = strlen("PUT / HTTP/1.1\r\nHost: shop.example\r\n"
				     "Content-Length: 400000\r\n" STORY_ADDED "\r\n");
		size_t room = 16 * (1000 + 1024) - head + beyond;
		char *body = malloc(room);
		assert_non_null(body);
		memset(body, 'x', room);
		// All of it was on its way already: the driver hands it over though it is paused.
		size_t taken = exchange_client_data(c->x, (struct span){body, room});
		free(body);
		assert_true(c->s->is_paused || beyond);
		if (beyond) {
			assert_int_equal(c->end.status, 503);
			assert_int_equal(story_count(s, buffer_none), 1);
			continue;
		}
		assert_int_equal(taken, room);
		story_opens(s, o);
		assert_int_equal(o->got.len, room + head);
		assert_false(c->s->is_paused);
		story_client_leaves(c);
	}
	story_end(s);
}

// If somebody resumes the client meanwhile, it is paused again with the next bytes.
static void a_client_stays_paused_while_connecting(void **state)
{
	(void)state;
	struct story *s = story_new();
	struct story_client *c = story_client(s);
	s->bytewise = false;
	story_client_says(c, "PUT / HTTP/1.1\r\nHost: shop.example\r\nContent-Length: 9\r\n\r\na");
	assert_true(c->s->is_paused);
	stream_resume(&s->fake.driver, &c->s->stream);
	story_client_says(c, "b");
	assert_true(c->s->is_paused);
	story_client_leaves(c);
	story_end(s);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(a_large_answer_to_a_slow_client),
		cmocka_unit_test(a_large_body_to_a_slow_origin),
		cmocka_unit_test(a_tunnel_between_two_slow_sides),
		cmocka_unit_test(a_client_that_takes_nothing_is_broken_off),
		cmocka_unit_test(a_body_before_the_connection_is_bounded),
		cmocka_unit_test(a_client_stays_paused_while_connecting),
	};
	return story_run(tests);
}
