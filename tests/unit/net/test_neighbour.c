// Goal: gateways are asked for and kept fresh, hosts that asked for us remembered; whoever moves is
// followed, and the table never grows.

#include "dataplane/net/neighbour.h"
#include "tests/unit/http/dice.h"
#include "tests/unit/net/packets.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>

#include <cmocka.h>

static struct net_plan plan;
static struct neighbours *table;
static uint64_t now_us;

static int open_table(void **state)
{
	(void)state;
	plan = (struct net_plan){.neighbours_max = 64, .port_count = 2};
	plan.ports[0].gateway_count = 1;
	packets_ip(plan.ports[0].gateways[0], "192.0.2.254");
	table = neighbour_create(&plan);
	now_us = 1000000;
	return table == NULL;
}

static int close_table(void **state)
{
	(void)state;
	neighbour_destroy(table);
	return 0;
}

static enum neighbour_news heard(
	const char *ip_text, unsigned mac_number, bool asked_us, bool overrides)
{
	uint8_t ip[16], mac[6] = {2, 0, 0, 0, (uint8_t)(mac_number >> 8), (uint8_t)mac_number};
	packets_ip(ip, ip_text);
	return neighbour_heard(table, 0, ip, mac, asked_us, overrides, now_us);
}

static unsigned follow(uint16_t port, unsigned mac_number)
{
	struct tcp_hop hop = {{2, 0, 0, 0, (uint8_t)(mac_number >> 8), (uint8_t)mac_number}, port};
	hop = neighbour_follow(neighbour_moves(table), hop);
	assert_int_equal(hop.port, port);
	return (unsigned)hop.mac[4] << 8 | hop.mac[5];
}

static void a_gateway_is_asked_for_until_it_answers(void **state)
{
	(void)state;
	struct neighbour_question q;
	for (unsigned i = 0; i < NEIGHBOUR_TRIES; i++) {
		assert_true(neighbour_due(table, now_us, &q));
		assert_false(q.is_known || q.is_newly_silent);
		assert_int_equal(q.port, 0);
		assert_memory_equal(q.ip, plan.ports[0].gateways[0], 16);
		assert_false(neighbour_due(table, now_us + NEIGHBOUR_RETRY_US - 1, &q));
		now_us += NEIGHBOUR_RETRY_US;
	}
	assert_true(neighbour_due(table, now_us, &q));
	assert_true(q.is_newly_silent); // told once
	assert_false(neighbour_due(table, now_us + NEIGHBOUR_SILENT_US - 1, &q));
	now_us += NEIGHBOUR_SILENT_US;
	assert_true(neighbour_due(table, now_us, &q));
	assert_false(q.is_newly_silent);
	assert_int_equal(heard("192.0.2.254", 7, false, true), NEIGHBOUR_IS_NEW);
	assert_false(neighbour_due(table, now_us + NEIGHBOUR_FRESH_US - 1, &q));
}

static void a_gateway_is_kept_fresh(void **state)
{
	(void)state;
	struct neighbour_question q;
	heard("192.0.2.254", 7, false, true);
	now_us += NEIGHBOUR_FRESH_US;
	assert_true(neighbour_due(table, now_us, &q));
	assert_true(q.is_known); // it alone is asked
	assert_int_equal(q.mac[5], 7);
	neighbour_confirmed(table, 0, plan.ports[0].gateways[0], now_us);
	assert_false(neighbour_due(table, now_us + NEIGHBOUR_FRESH_US - 1, &q));
	now_us += NEIGHBOUR_FRESH_US;
	for (unsigned i = 0; i < NEIGHBOUR_TRIES; i++) {
		assert_true(neighbour_due(table, now_us, &q));
		assert_true(q.is_known);
		now_us += NEIGHBOUR_RETRY_US;
	}
	assert_true(neighbour_due(table, now_us, &q));
	assert_false(q.is_known); // now all are
	assert_true(q.is_newly_silent);
}

static void who_takes_over_is_followed(void **state)
{
	(void)state;
	heard("192.0.2.254", 1, false, true);
	assert_int_equal(follow(0, 1), 1);
	assert_int_equal(heard("192.0.2.254", 2, false, false), NEIGHBOUR_IS_KNOWN);
	assert_int_equal(follow(0, 1), 1); // its word did not count
	assert_int_equal(heard("192.0.2.254", 2, false, true), NEIGHBOUR_HAS_MOVED);
	assert_int_equal(follow(0, 1), 2);
	assert_int_equal(follow(1, 1), 1); // another port, another link
	assert_int_equal(heard("192.0.2.254", 3, false, true), NEIGHBOUR_HAS_MOVED);
	assert_int_equal(follow(0, 1), 3); // at once, whoever it was in between
	assert_int_equal(follow(0, 2), 3);
	heard("192.0.2.254", 1, false, true);
	assert_int_equal(follow(0, 1), 1); // back
	assert_int_equal(follow(0, 2), 1);
	assert_int_equal(follow(0, 3), 1);
}

static void the_oldest_move_is_forgotten(void **state)
{
	(void)state;
	char ip[32];
	for (unsigned i = 0; i <= NEIGHBOUR_MOVES_MAX; i++) {
		snprintf(ip, sizeof(ip), "192.0.2.%u", 1 + i);
		heard(ip, 100 + i, true, true);
		assert_int_equal(heard(ip, 200 + i, false, true), NEIGHBOUR_HAS_MOVED);
	}
	assert_int_equal(follow(0, 100), 100);
	for (unsigned i = 1; i <= NEIGHBOUR_MOVES_MAX; i++)
		assert_int_equal(follow(0, 100 + i), 200 + i);
}

static void hosts_are_remembered_that_asked(void **state)
{
	(void)state;
	assert_int_equal(heard("192.0.2.9", 9, false, true), NEIGHBOUR_IS_KNOWN);
	heard("192.0.2.9", 10, false, true);
	assert_int_equal(follow(0, 9), 9); // it never asked
	assert_int_equal(heard("192.0.2.9", 9, true, true), NEIGHBOUR_IS_NEW);
	assert_int_equal(heard("192.0.2.9", 10, false, true), NEIGHBOUR_HAS_MOVED);
	assert_int_equal(follow(0, 9), 10);
	now_us += NEIGHBOUR_KEEP_US;
	assert_int_equal(heard("192.0.2.9", 11, true, true), NEIGHBOUR_IS_NEW);
	assert_int_equal(follow(0, 10), 10); // too long ago to be a move
}

static void full_forgets_the_oldest(void **state)
{
	(void)state;
	char ip[32];
	unsigned forgotten = 0;
	for (unsigned i = 0; i < 1000; i++) {
		snprintf(ip, sizeof(ip), "10.0.%u.%u", i / 256, i % 256);
		now_us++;
		forgotten += heard(ip, i, true, true) == NEIGHBOUR_IS_NEW_FOR_OLD;
	}
	assert_in_range(forgotten, 1000 - 64, 999);
	assert_int_equal(heard(ip, 999, true, true), NEIGHBOUR_IS_KNOWN); // the newest stays
}

int main(void)
{
#define TEST(name) cmocka_unit_test_setup_teardown(name, open_table, close_table)
	const struct CMUnitTest tests[] = {
		TEST(a_gateway_is_asked_for_until_it_answers),
		TEST(a_gateway_is_kept_fresh),
		TEST(who_takes_over_is_followed),
		TEST(the_oldest_move_is_forgotten),
		TEST(hosts_are_remembered_that_asked),
		TEST(full_forgets_the_oldest),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
