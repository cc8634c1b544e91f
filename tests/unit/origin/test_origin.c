// The origin side as a whole: its limits, its tables, what it tells about itself.

#include "tests/unit/origin/story.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>

#include <cmocka.h>

static void no_more_exchanges_than_planned(void **state)
{
	(void)state;
	struct story *s = story_new(); // four
	for (int n = 0; n < 4; n++)
		story_client_says(story_client(s), STORY_GET);
	assert_int_equal(origin_exchange_count(s->o), 4);
	struct story_client *fifth = story_client(s);
	story_client_says(fifth, STORY_GET);
	assert_int_equal(fifth->refused, 503);
	assert_int_equal(story_count(s, exchange_none), 1);
	story_client_leaves(&s->clients[0]);
	struct story_client *sixth = story_client(s); // there is room again
	story_client_says(sixth, STORY_GET);
	assert_int_equal(sixth->refused, 0);
	for (int n = 1; n < s->client_count; n++)
		story_client_leaves(&s->clients[n]);
	story_end(s);
}

static void no_more_buffers_than_planned(void **state)
{
	(void)state;
	struct story *s = story_plan();
	s->plan.buffers_max = 2;
	story_start(s);
	for (int n = 0; n < 2; n++)
		story_client_says(story_client(s), STORY_GET);
	struct story_client *third = story_client(s);
	story_client_says(third, STORY_GET);
	assert_int_equal(third->refused, 503);
	assert_int_equal(story_count(s, buffer_none), 1);

	// An answer that streams holds none.
	for (int n = 0; n < 2; n++) {
		story_opens(s, story_connection(s, n));
		story_origin_says(s, story_connection(s, n), STORY_STATUS "\r\nfirst");
	}
	struct story_client *fourth = story_client(s);
	story_client_says(fourth, STORY_GET);
	assert_int_equal(fourth->refused, 0);
	for (int n = 0; n < s->client_count; n++)
		story_client_leaves(&s->clients[n]);
	story_end(s);
}

// A part of an answer's head needs a buffer, too.
static void an_answer_head_in_parts_without_a_buffer(void **state)
{
	(void)state;
	struct story *s = story_plan();
	s->plan.buffers_max = 1;
	story_start(s);
	struct story_client *c = story_client(s), *other = story_client(s);
	struct fake_stream *o = story_asked(c, "POST / HTTP/1.1\r\nHost: shop.example\r\n\r\n",
		"POST / HTTP/1.1\r\nHost: shop.example\r\n" STORY_ADDED "\r\n");
	story_client_says(other, STORY_GET); // holds the only one while it connects
	story_origin_says(s, o, "HTTP/1.1");
	assert_int_equal(c->end.status, 503);
	assert_int_equal(story_count(s, buffer_none), 1);
	story_client_leaves(other);
	story_end(s);
}

static void no_more_kept_connections_than_planned(void **state)
{
	(void)state;
	for (uint32_t idle_max = 0; idle_max < 3; idle_max++) {
		struct story *s = story_plan();
		s->plan.idle_max = idle_max;
		story_start(s);
		s->bytewise = false;
		for (int n = 0; n < 3; n++)
			story_client_says(story_client(s), STORY_GET);
		for (int n = 0; n < 3; n++) {
			struct fake_stream *o = story_connection(s, n);
			story_opens(s, o);
			assert_int_equal(
				memmem(o->got.at, o->got.len, "Connection: close", 17) != NULL,
				idle_max == 0);
			story_origin_says(s, o, STORY_OK);
			assert_int_equal(s->clients[n].end.outcome, EXCHANGE_KEPT);
		}
		assert_int_equal(story_count(s, kept), idle_max);
		assert_int_equal(story_count(s, kept_full), 3 - idle_max);
		story_end(s);
	}
}

// In use and kept they are no more than exchanges_max: with one of these, each change of server
// closes what was kept to the other.
static void a_kept_connection_makes_room_for_another_server(void **state)
{
	(void)state;
	struct story *s = story_plan();
	s->plan.exchanges_max = 1;
	story_start(s);
	story_table(s, ORIGIN_TABLE_SESSION, 2, 1);
	struct story_client *c = story_client(s);
	for (uint64_t session = 1; session <= 32; session++) {
		s->facts.session = session;
		int before = story_connection_count(s);
		story_client_says(c, STORY_GET);
		int now = story_connection_count(s);
		if (now > before)
			story_opens(s, story_connection(s, now - 1));
		story_origin_says(s, story_connection(s, now - 1), STORY_OK);
		assert_int_equal(story_count(s, kept), session);
	}
	assert_true(story_count(s, reuses) > 0);
	assert_true(story_count(s, kept_evicted) > 0);
	assert_int_equal(story_count(s, connects), story_count(s, kept_evicted) + 1);
	assert_int_equal(story_count(s, connects_none), 0);
	story_client_leaves(c);
	story_end(s);
}

// At the limit of what the parser lets through, with the longest host names, and one beyond.
static void a_request_head_that_does_not_fit_is_431(void **state)
{
	(void)state;
	char request[2048];
	for (int beyond = 0; beyond < 2; beyond++) {
		struct story *s = story_plan();
		s->plan.request_head_bytes = 512;
		s->plan.answer.head_bytes = 512;
		story_start(s);
		s->bytewise = false;
		struct story_client *c = story_client(s);
		size_t added = strlen(
			"GET / HTTP/1.1\r\nHost: shop.example\r\nX: \r\n" STORY_ADDED "\r\n");
		char value[2048];
		memset(value, 'x', sizeof(value));
		snprintf(request, sizeof(request),
			"GET / HTTP/1.1\r\nHost: shop.example\r\nX: %.*s\r\n\r\n",
			(int)(512 + 1024 - added) + beyond, value);
		story_client_says(c, request);
		assert_int_equal(c->refused, beyond ? 431 : 0);
		assert_int_equal(story_count(s, request_too_large), beyond);
		if (!beyond)
			story_client_leaves(c);
		story_end(s);
	}
}

// Names resolve anew: what is kept to a server that is gone is closed, what is in flight finishes.
static void another_table(void **state)
{
	(void)state;
	struct story *s = story_new();
	struct story_client *c = story_client(s), *other = story_client(s);
	story_client_says(c, STORY_GET);
	story_client_says(other, STORY_GET);
	struct fake_stream *kept = story_connection(s, 0), *busy = story_connection(s, 1);
	story_opens(s, kept);
	story_opens(s, busy);
	story_origin_says(s, kept, STORY_OK);
	story_origin_says(s, busy, STORY_STATUS "Content-Length: 4\r\n\r\nbo");

	story_table(s, ORIGIN_TABLE_LEAST, 1, 1); // the same server: nothing happens
	assert_true(kept->is_used);
	story_table(s, ORIGIN_TABLE_LEAST, 1, 2); // another one
	assert_false(kept->is_used);
	assert_true(busy->is_used);
	story_origin_says(s, busy, "dy");
	assert_int_equal(other->end.outcome, EXCHANGE_KEPT);
	assert_false(busy->is_used); // not kept: nobody would take it
	story_got(c->s, STORY_OK);
	story_get(c, 2, true);
	story_end(s);
}

// A request that is asked again finds its origin in the table of now, wherever it stands there.
static void a_table_changes_between_two_attempts(void **state)
{
	(void)state;
	for (int is_gone = 0; is_gone < 2; is_gone++) {
		struct story *s = story_new();
		struct story_client *c = story_client(s);
		struct fake_stream *kept = story_get(c, 0, true);
		story_client_says(c, STORY_GET);
		struct origin_table_origin origins[2] = {
			{.id = 5, .server_first = 1, .server_count = 1},
			{.id = is_gone ? 6 : 77, .server_first = 0, .server_count = 1},
		};
		s->servers[1] = (struct origin_table_server){.id = 9, .address = {.port = 9}};
		struct origin_table table = {.generation = 3,
			.origin_count = 2,
			.server_count = 2,
			.origins = origins,
			.servers = s->servers};
		origin_set_table(s->o, &table);
		story_origin_closes(s, kept, 104);
		if (is_gone) {
			assert_int_equal(c->end.status, 502);
			assert_int_equal(story_connection_count(s), 1);
		} else {
			struct fake_stream *fresh = story_connection(s, 1);
			assert_int_equal(fresh->stream.peer.port, 80);
			story_client_leaves(c);
		}
		story_end(s);
	}
}

static void no_more_servers_than_planned(void **state)
{
	(void)state;
	struct story *s = story_plan();
	s->plan.servers_max = 2;
	story_start(s);
	story_table(s, ORIGIN_TABLE_LEAST, 2, 1);
	assert_int_equal(story_count(s, servers_full), 0);
	story_table(s, ORIGIN_TABLE_LEAST, 3, 1);
	assert_int_equal(story_count(s, servers_full), 1);
	struct origin_server_stat stats[3];
	assert_int_equal(origin_server_stats(s->o, s->now_us, stats, 3), 2);
	story_end(s);
}

static void an_origin_has_limits_of_its_own(void **state)
{
	(void)state;
	static const struct origin_table_limits limits = {.connect_us = 2 * STORY_SECOND,
		.answer_us = 3 * STORY_SECOND,
		.idle_us = STORY_SECOND,
		.idle_max = 1,
		.faults_max = 1,
		.aside_us = 7 * STORY_SECOND};
	struct story *s = story_new();
	s->origin.limits = &limits;
	struct story_client *c = story_client(s), *other = story_client(s);
	story_client_says(c, STORY_GET);
	story_client_says(other, STORY_GET);
	for (int n = 0; n < 2; n++) {
		story_opens(s, story_connection(s, n));
		story_origin_says(s, story_connection(s, n), STORY_OK);
	}
	assert_int_equal(story_count(s, kept), 1);
	assert_int_equal(story_count(s, kept_full), 1);
	story_wait(s, STORY_SECOND);
	assert_int_equal(story_count(s, kept_expired), 1);

	story_client_says(c, STORY_GET);
	story_wait(s, 2 * STORY_SECOND);
	assert_int_equal(c->end.status, 504);
	assert_int_equal(story_count(s, connects_late), 1);
	story_client_says(other, STORY_GET);
	story_opens(s, story_connection(s, 3));
	story_wait(s, 3 * STORY_SECOND);
	assert_int_equal(other->end.status, 504);
	assert_int_equal(story_count(s, answer_late), 1);
	struct origin_server_stat stat;
	origin_server_stats(s->o, s->now_us, &stat, 1);
	assert_true(stat.aside_us > STORY_SECOND);
	story_end(s);
}

static void a_session_stays_with_its_server(void **state)
{
	(void)state;
	struct story *s = story_new();
	story_table(s, ORIGIN_TABLE_SESSION, 4, 1);
	s->facts.session = 0xabc;
	s->bytewise = false;
	struct story_client *c = story_client(s), *other = story_client(s);
	story_client_says(c, STORY_GET);
	story_client_says(other, STORY_GET);
	struct fake_stream *first = story_connection(s, 0), *second = story_connection(s, 1);
	assert_memory_equal(&first->stream.peer, &second->stream.peer, sizeof(first->stream.peer));
	story_client_leaves(c);
	story_client_leaves(other);
	story_end(s);
}

static void servers_tell_how_they_do(void **state)
{
	(void)state;
	struct story *s = story_new();
	story_table(s, ORIGIN_TABLE_LEAST, 2, 1);
	struct story_client *c = story_client(s), *other = story_client(s);
	story_client_says(c, STORY_GET);
	story_client_says(other, STORY_GET);
	story_origin_closes(s, story_connection(s, 0), 111); // set aside; asked again at the other
	story_opens(s, story_connection(s, 1));
	story_opens(s, story_connection(s, 2));
	story_origin_says(s, story_connection(s, 1), STORY_OK);
	struct origin_server_stat stats[3];
	assert_int_equal(origin_server_stats(s->o, s->now_us, stats, 3), 2);
	assert_int_equal(origin_server_stats(s->o, s->now_us, stats, 1), 1);
	bool first_is_bad = stats[0].aside_us > 0;
	origin_server_stats(s->o, s->now_us, stats, 3);
	const struct origin_server_stat *bad = &stats[!first_is_bad], *good = &stats[first_is_bad];
	assert_in_range(bad->aside_us, 900000, 1000000);
	assert_int_equal(bad->exchanges + bad->kept, 0);
	assert_int_equal(good->aside_us, 0);
	assert_int_equal(good->exchanges, 1);
	assert_int_equal(good->kept, 1);

	// The same by place in the table; not beyond it, nor under another's id.
	struct origin_server_stat stat;
	for (uint32_t i = 0; i < 2; i++) {
		uint64_t id = s->servers[i].id;
		assert_true(origin_server_stat(s->o, i, id, s->now_us, &stat));
		const struct origin_server_stat *same = id == bad->id ? bad : good;
		assert_int_equal(stat.id, id);
		assert_int_equal(stat.exchanges, same->exchanges);
		assert_int_equal(stat.kept, same->kept);
		assert_int_equal(stat.aside_us, same->aside_us);
		assert_false(origin_server_stat(s->o, i, id + 1, s->now_us, &stat));
		assert_false(origin_server_stat(s->o, 2, id, s->now_us, &stat));
	}
	assert_false(origin_server_stat(s->o, UINT32_MAX, 1, s->now_us, &stat));
	story_client_leaves(c);
	story_client_leaves(other);
	story_end(s);
}

static void count_end(void *user, const struct exchange_end *end)
{
	assert_int_equal(end->outcome, EXCHANGE_FAILED);
	assert_int_equal(end->status, 504);
	(*(int *)user)++;
}

// One turn ends no more than ORIGIN_TICK_MAX; the rest is ended in the next ones.
static void a_turn_has_bounded_work(void **state)
{
	(void)state;
	enum { COUNT = ORIGIN_TICK_MAX + 1 };
	static const struct http_limits limits = {8192, 16384, HTTP_FIELDS_MAX};
	static const struct exchange_calls calls = {.ended = count_end};
	struct story *s = story_plan(); // for its plan, its network and its table
	s->plan.exchanges_max = s->plan.buffers_max = COUNT;
	s->o = origin_create(&s->plan, &s->fake.driver, NULL, &calls);
	story_table(s, ORIGIN_TABLE_LEAST, 1, 1);
	origin_tick(s->o, s->now_us);
	int ends = 0;
	struct http_head head;
	http_request_parse(SPAN(STORY_GET), &limits, &head);
	struct exchange_request request = s->facts;
	request.client_driver = &s->fake.driver;
	request.client = &fake_accept(&s->fake)->stream;
	request.user = &ends;
	request.head = &head;
	uint16_t status;
	for (int n = 0; n < COUNT; n++)
		assert_non_null(exchange_begin(s->o, &request, &status));
	s->now_us += 5 * STORY_SECOND;
	assert_int_equal(origin_due_us(s->o), s->now_us);
	origin_tick(s->o, s->now_us);
	assert_int_equal(ends, ORIGIN_TICK_MAX);
	assert_int_equal(origin_due_us(s->o), s->now_us);
	origin_tick(s->o, s->now_us);
	assert_int_equal(ends, COUNT);
	assert_int_equal(origin_due_us(s->o), UINT64_MAX);
	story_end(s);
}

static void the_bill_is_what_is_allocated(void **state)
{
	(void)state;
	struct origin_plan small, large;
	origin_plan_init(&small, 100, 10);
	large = small;
	large.exchanges_max += 100;
	size_t one = (origin_plan_bytes(&large) - origin_plan_bytes(&small)) / 100;
	assert_in_range(one, 300, 600); // an exchange without its buffer
	large = small;
	large.servers_max += 100;
	one = (origin_plan_bytes(&large) - origin_plan_bytes(&small)) / 100;
	assert_in_range(one, sizeof(struct origin_table_server), 300);
	large = small;
	large.buffers_max += 1;
	assert_in_range(origin_plan_bytes(&large) - origin_plan_bytes(&small), 32769, 32769 + 128);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(no_more_exchanges_than_planned),
		cmocka_unit_test(no_more_buffers_than_planned),
		cmocka_unit_test(an_answer_head_in_parts_without_a_buffer),
		cmocka_unit_test(no_more_kept_connections_than_planned),
		cmocka_unit_test(a_kept_connection_makes_room_for_another_server),
		cmocka_unit_test(a_request_head_that_does_not_fit_is_431),
		cmocka_unit_test(another_table),
		cmocka_unit_test(a_table_changes_between_two_attempts),
		cmocka_unit_test(no_more_servers_than_planned),
		cmocka_unit_test(an_origin_has_limits_of_its_own),
		cmocka_unit_test(a_session_stays_with_its_server),
		cmocka_unit_test(servers_tell_how_they_do),
		cmocka_unit_test(a_turn_has_bounded_work),
		cmocka_unit_test(the_bill_is_what_is_allocated),
	};
	return story_run(tests);
}
