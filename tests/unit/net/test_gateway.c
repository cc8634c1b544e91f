// Goal: gateways are asked for until they answer, kept fresh, and followed when they move; other
// hosts are not.

#include "dataplane/net/gateway.h"
#include "tests/unit/net/packets.h"

#include <setjmp.h>
#include <stdarg.h>
#include <string.h>

#include <cmocka.h>

static struct net_plan plan;
static struct gateways *table;
static uint64_t now_us;

static int open_table(void **state)
{
	(void)state;
	plan = (struct net_plan){.port_count = 2};
	plan.ports[0].gateway_count = 1;
	packets_ip(plan.ports[0].gateways[0], "192.0.2.254");
	table = gateway_create(&plan);
	now_us = 1000000;
	return table == NULL;
}

static int close_table(void **state)
{
	(void)state;
	gateway_destroy(table);
	return 0;
}

static bool heard(const char *ip_text, unsigned mac_number, bool overrides)
{
	uint8_t ip[16], mac[6] = {2, 0, 0, 0, (uint8_t)(mac_number >> 8), (uint8_t)mac_number};
	packets_ip(ip, ip_text);
	return gateway_heard(table, 0, ip, mac, overrides, now_us);
}

static unsigned follow(uint16_t port, unsigned mac_number)
{
	struct tcp_hop hop = {{2, 0, 0, 0, (uint8_t)(mac_number >> 8), (uint8_t)mac_number}, port};
	hop = gateway_follow(gateway_moves(table), hop);
	assert_int_equal(hop.port, port);
	return (unsigned)hop.mac[4] << 8 | hop.mac[5];
}

static void a_gateway_is_asked_for_until_it_answers(void **state)
{
	(void)state;
	struct gateway_question q;
	for (unsigned i = 0; i < GATEWAY_TRIES; i++) {
		assert_true(gateway_due(table, now_us, &q));
		assert_false(q.is_known || q.is_newly_silent);
		assert_int_equal(q.port, 0);
		assert_memory_equal(q.ip, plan.ports[0].gateways[0], 16);
		assert_false(gateway_due(table, now_us + GATEWAY_RETRY_US - 1, &q));
		now_us += GATEWAY_RETRY_US;
	}
	assert_true(gateway_due(table, now_us, &q));
	assert_true(q.is_newly_silent); // told once
	assert_false(gateway_due(table, now_us + GATEWAY_SILENT_US - 1, &q));
	now_us += GATEWAY_SILENT_US;
	assert_true(gateway_due(table, now_us, &q));
	assert_false(q.is_newly_silent);
	assert_false(heard("192.0.2.254", 7, true));
	assert_false(gateway_due(table, now_us + GATEWAY_FRESH_US - 1, &q));
}

static void a_gateway_is_kept_fresh(void **state)
{
	(void)state;
	struct gateway_question q;
	heard("192.0.2.254", 7, true);
	now_us += GATEWAY_FRESH_US;
	assert_true(gateway_due(table, now_us, &q));
	assert_true(q.is_known); // it alone is asked
	assert_int_equal(q.mac[5], 7);
	gateway_confirmed(table, 0, plan.ports[0].gateways[0], now_us);
	assert_false(gateway_due(table, now_us + GATEWAY_FRESH_US - 1, &q));
	now_us += GATEWAY_FRESH_US;
	for (unsigned i = 0; i < GATEWAY_TRIES; i++) {
		assert_true(gateway_due(table, now_us, &q));
		assert_true(q.is_known);
		now_us += GATEWAY_RETRY_US;
	}
	assert_true(gateway_due(table, now_us, &q));
	assert_false(q.is_known); // now all are
	assert_true(q.is_newly_silent);
}

static void who_takes_over_is_followed(void **state)
{
	(void)state;
	heard("192.0.2.254", 1, true);
	assert_int_equal(follow(0, 1), 1);
	assert_false(heard("192.0.2.254", 2, false));
	assert_int_equal(follow(0, 1), 1); // its word did not count
	assert_true(heard("192.0.2.254", 2, true));
	assert_int_equal(follow(0, 1), 2);
	assert_int_equal(follow(1, 1), 1); // another port, another link
	assert_true(heard("192.0.2.254", 3, true));
	assert_int_equal(follow(0, 1), 3); // at once, whoever it was in between
	assert_int_equal(follow(0, 2), 3);
	heard("192.0.2.254", 1, true);
	assert_int_equal(follow(0, 1), 1); // back
	assert_int_equal(follow(0, 2), 1);
	assert_int_equal(follow(0, 3), 1);
}

static void who_comes_to_a_place_that_was_left_has_it(void **state)
{
	(void)state;
	gateway_destroy(table);
	plan.ports[0].gateway_count = 2;
	packets_ip(plan.ports[0].gateways[1], "192.0.2.253");
	table = gateway_create(&plan);
	heard("192.0.2.254", 1, true);
	heard("192.0.2.253", 3, true);
	heard("192.0.2.254", 2, true);
	assert_int_equal(follow(0, 1), 2);
	heard("192.0.2.253", 1, true);
	assert_int_equal(follow(0, 1), 1);
	assert_int_equal(follow(0, 3), 1);
}

static void the_oldest_move_is_forgotten(void **state)
{
	(void)state;
	for (unsigned i = 0; i <= GATEWAY_MOVES_MAX + 1; i++)
		heard("192.0.2.254", 100 + i, true);
	for (unsigned i = 1; i <= GATEWAY_MOVES_MAX; i++)
		assert_int_equal(follow(0, 100 + i), 100 + GATEWAY_MOVES_MAX + 1);
	assert_int_equal(follow(0, 100), 100);
}

static void other_hosts_are_not_followed(void **state)
{
	(void)state;
	assert_false(heard("192.0.2.9", 9, true));
	assert_false(heard("192.0.2.9", 10, true));
	assert_int_equal(follow(0, 9), 9);
}

int main(void)
{
#define TEST(name) cmocka_unit_test_setup_teardown(name, open_table, close_table)
	const struct CMUnitTest tests[] = {
		TEST(a_gateway_is_asked_for_until_it_answers),
		TEST(a_gateway_is_kept_fresh),
		TEST(who_takes_over_is_followed),
		TEST(who_comes_to_a_place_that_was_left_has_it),
		TEST(the_oldest_move_is_forgotten),
		TEST(other_hosts_are_not_followed),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
