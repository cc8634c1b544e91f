// Which server gets a request, and how long a failing one is left alone.

#include "dataplane/origin/server.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stdlib.h>

#include <cmocka.h>

#define SERVERS_MAX 8
#define SESSIONS 2000
#define SECOND 1000000ull

static const struct origin_table_limits limits = {.faults_max = 3, .aside_us = SECOND};

struct fleet {
	struct server_set set;
	struct origin_table table;
	struct origin_table_origin origin;
	struct origin_table_server servers[SERVERS_MAX + 1];
};

static uint32_t list(struct fleet *f, uint8_t balance, uint32_t count, uint64_t first_id)
{
	for (uint32_t k = 0; k < count; k++)
		f->servers[k] = (struct origin_table_server){
			.id = first_id + k, .address = {.port = (uint16_t)(first_id + k)}};
	f->origin =
		(struct origin_table_origin){.id = 1, .balance = balance, .server_count = count};
	f->table = (struct origin_table){.origin_count = 1,
		.server_count = count,
		.origins = &f->origin,
		.servers = f->servers};
	server_set_unlist(&f->set, &f->table);
	return server_set_list(&f->set, &f->table);
}

static struct fleet *fleet_new(uint8_t balance, uint32_t count)
{
	struct fleet *f = calloc(1, sizeof(*f));
	assert_non_null(f);
	assert_int_equal(server_set_init(&f->set, SERVERS_MAX), 0);
	assert_int_equal(list(f, balance, count, 1), 0);
	return f;
}

static void fleet_free(struct fleet *f)
{
	server_set_fini(&f->set);
	free(f);
}

static struct server *choose(struct fleet *f, uint64_t session, uint64_t now_us)
{
	static const struct server *const nobody[SERVER_EXCEPT_MAX];
	return server_choose(&f->set, &f->origin, session, now_us, nobody);
}

static void the_one_with_the_fewest_exchanges(void **state)
{
	(void)state;
	struct fleet *f = fleet_new(ORIGIN_TABLE_LEAST, 3);
	for (int n = 0; n < 30; n++)
		choose(f, 0, 1)->exchanges++;
	for (int k = 0; k < 3; k++)
		assert_int_equal(f->set.items[k].exchanges, 10);
	f->set.items[1].exchanges = 2;
	assert_ptr_equal(choose(f, 0, 1), &f->set.items[1]);
	assert_ptr_equal(choose(f, 12345, 1), &f->set.items[1]); // a session changes nothing
	fleet_free(f);
}

static void equals_take_turns(void **state)
{
	(void)state;
	struct fleet *f = fleet_new(ORIGIN_TABLE_LEAST, 3);
	int chosen[3] = {0};
	for (int n = 0; n < 30; n++)
		chosen[choose(f, 0, 1) - f->set.items]++;
	for (int k = 0; k < 3; k++)
		assert_int_equal(chosen[k], 10);
	fleet_free(f);
}

static void a_session_stays_with_its_server(void **state)
{
	(void)state;
	struct fleet *f = fleet_new(ORIGIN_TABLE_SESSION, 4);
	uint64_t home[SESSIONS];
	int sessions[5] = {0};
	for (uint64_t n = 0; n < SESSIONS; n++) {
		struct server *server = choose(f, n + 1, 1);
		server->exchanges += 3; // load does not matter
		home[n] = server->id;
		sessions[server->id]++;
	}
	for (int id = 1; id <= 4; id++) // evenly: within a fifth of a quarter
		assert_in_range(sessions[id], SESSIONS / 5, SESSIONS * 3 / 10);

	// Server 4 goes: only its sessions move. It comes back: only they return.
	list(f, ORIGIN_TABLE_SESSION, 3, 1);
	for (uint64_t n = 0; n < SESSIONS; n++) {
		uint64_t id = choose(f, n + 1, 1)->id;
		if (home[n] != 4)
			assert_int_equal(id, home[n]);
	}
	list(f, ORIGIN_TABLE_SESSION, 4, 1);
	for (uint64_t n = 0; n < SESSIONS; n++)
		assert_int_equal(choose(f, n + 1, 1)->id, home[n]);

	// The same for one that is set aside.
	struct server *third = choose(f, 1, 1);
	assert_true(server_failed(third, true, &limits, 1));
	for (uint64_t n = 0; n < SESSIONS; n++) {
		struct server *server = choose(f, n + 1, 2);
		assert_ptr_not_equal(server, third);
		if (home[n] != third->id)
			assert_int_equal(server->id, home[n]);
	}
	fleet_free(f);
}

static void without_a_session_the_fewest(void **state)
{
	(void)state;
	struct fleet *f = fleet_new(ORIGIN_TABLE_SESSION, 3);
	for (int n = 0; n < 30; n++)
		choose(f, 0, 1)->exchanges++;
	for (int k = 0; k < 3; k++)
		assert_int_equal(f->set.items[k].exchanges, 10);
	fleet_free(f);
}

static void one_that_cannot_be_reached_is_set_aside_for_a_growing_time(void **state)
{
	(void)state;
	static const uint64_t times[] = {1, 2, 4, 8, 8, 8};
	struct fleet *f = fleet_new(ORIGIN_TABLE_LEAST, 2);
	uint64_t now = 1;
	struct server *bad = choose(f, 0, now), *good;
	assert_true(server_failed(bad, true, &limits, now));
	for (size_t i = 0; i < sizeof(times) / sizeof(times[0]); i++) {
		good = choose(f, 0, now + times[i] * SECOND - 1);
		assert_ptr_not_equal(good, bad);
		now += times[i] * SECOND;
		good->exchanges = 0;
		assert_ptr_equal(choose(f, 0, now), bad); // one request tries it
		for (int n = 0; n < 10; n++)
			assert_ptr_equal(choose(f, 0, now), good); // all others do not
		assert_true(server_failed(bad, true, &limits, now));
	}
	now += 8 * SECOND;
	assert_ptr_equal(choose(f, 0, now), bad);
	server_answered(bad);
	assert_false(
		server_failed(bad, false, &limits, now)); // healthy again: one fault is no pattern
	server_failed(bad, true, &limits, now);
	assert_int_equal(bad->aside_us, SECOND); // and it begins from the first
	fleet_free(f);
}

// A hundred requests were on their way when it fell over: that is one failure.
static void many_at_once_are_one_failure(void **state)
{
	(void)state;
	struct fleet *f = fleet_new(ORIGIN_TABLE_LEAST, 2);
	struct server *bad = choose(f, 0, 1);
	assert_true(server_failed(bad, true, &limits, 1));
	for (int n = 0; n < 100; n++)
		assert_false(server_failed(bad, true, &limits, 2));
	assert_int_equal(bad->aside_us, SECOND);
	fleet_free(f);
}

static void three_bad_answers_in_a_row(void **state)
{
	(void)state;
	struct fleet *f = fleet_new(ORIGIN_TABLE_LEAST, 1);
	struct server *server = choose(f, 0, 1);
	assert_false(server_failed(server, false, &limits, 1));
	assert_false(server_failed(server, false, &limits, 1));
	server_answered(server);
	assert_false(server_failed(server, false, &limits, 1));
	assert_false(server_failed(server, false, &limits, 1));
	assert_true(server_failed(server, false, &limits, 1));
	fleet_free(f);
}

static void when_all_are_set_aside_all_are_tried(void **state)
{
	(void)state;
	struct fleet *f = fleet_new(ORIGIN_TABLE_LEAST, 2);
	server_failed(&f->set.items[0], true, &limits, 1);
	server_failed(&f->set.items[1], true, &limits, 1);
	assert_non_null(choose(f, 0, 2));
	assert_non_null(choose(f, 77, 2));
	fleet_free(f);
}

static void those_that_could_not_be_reached_are_not_chosen(void **state)
{
	(void)state;
	struct fleet *f = fleet_new(ORIGIN_TABLE_LEAST, 4);
	const struct server *except[SERVER_EXCEPT_MAX] = {&f->set.items[0], NULL, &f->set.items[2]};
	for (int n = 0; n < 8; n++) {
		uint64_t id = server_choose(&f->set, &f->origin, 0, 1, except)->id;
		assert_true(id == 2 || id == 4);
	}
	except[1] = &f->set.items[1];
	list(f, ORIGIN_TABLE_LEAST, 3, 1);
	assert_null(server_choose(&f->set, &f->origin, 0, 1, except));
	fleet_free(f);
}

static void the_set_has_room_for_so_many(void **state)
{
	(void)state;
	struct fleet *f = fleet_new(ORIGIN_TABLE_LEAST, SERVERS_MAX);
	assert_int_equal(list(f, ORIGIN_TABLE_LEAST, SERVERS_MAX + 1, 1), 1);
	for (int n = 0; n < 3 * SERVERS_MAX; n++) {
		struct server *server = choose(f, 0, 1);
		assert_in_range(server->id, 1, SERVERS_MAX);
		server->exchanges++;
	}
	// Those in use keep their places when others are listed.
	assert_int_equal(list(f, ORIGIN_TABLE_LEAST, 2, 100), 2);
	f->set.items[3].exchanges = 0;
	assert_int_equal(list(f, ORIGIN_TABLE_LEAST, 2, 100), 1);
	assert_int_equal(choose(f, 0, 1)->id, 100);
	fleet_free(f);
}

// How a server is verified comes with each table, and what was remembered of it goes with its slot.
static void what_a_server_is_verified_by(void **state)
{
	static const struct tls_target first = {NULL, "a.example"}, second = {NULL, "a.example"};
	struct fleet *f = fleet_new(ORIGIN_TABLE_LEAST, 1);
	struct server *server = choose(f, 0, 1);
	(void)state;
	assert_null(server->tls);
	f->servers[0].tls = &first;
	server_set_unlist(&f->set, &f->table);
	assert_int_equal(server_set_list(&f->set, &f->table), 0);
	assert_ptr_equal(choose(f, 0, 1), server);
	assert_ptr_equal(server->tls, &first);
	peer_note(&server->peer, 10);

	f->servers[0].tls = &second; // the same server in the next table
	server_set_unlist(&f->set, &f->table);
	assert_null(choose(f, 0, 1)->tls);
	server_set_list(&f->set, &f->table);
	assert_ptr_equal(server->tls, &second);
	assert_int_equal(server->peer.failures, 1);

	assert_int_equal(list(f, ORIGIN_TABLE_LEAST, 1, 2), 0); // another one
	assert_ptr_equal(choose(f, 0, 1), server);
	assert_null(server->tls);
	assert_int_equal(server->peer.failures, 0);
	fleet_free(f);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(what_a_server_is_verified_by),
		cmocka_unit_test(the_one_with_the_fewest_exchanges),
		cmocka_unit_test(equals_take_turns),
		cmocka_unit_test(a_session_stays_with_its_server),
		cmocka_unit_test(without_a_session_the_fewest),
		cmocka_unit_test(one_that_cannot_be_reached_is_set_aside_for_a_growing_time),
		cmocka_unit_test(many_at_once_are_one_failure),
		cmocka_unit_test(three_bad_answers_in_a_row),
		cmocka_unit_test(when_all_are_set_aside_all_are_tried),
		cmocka_unit_test(those_that_could_not_be_reached_are_not_chosen),
		cmocka_unit_test(the_set_has_room_for_so_many),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
