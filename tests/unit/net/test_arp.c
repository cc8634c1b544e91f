// Goal: who asks for an address of ours is told; gateways are found; our addresses are announced
// and defended.

#include "tests/unit/net/stage.h"

#include <setjmp.h>
#include <stdarg.h>
#include <string.h>

#include <cmocka.h>

#define ALL "ff:ff:ff:ff:ff:ff"

static int open_stage(void **state)
{
	(void)state;
	stage_plan();
	stage_start(true);
	return 0;
}

static char message[28];

static void put(unsigned at, const char *text, bool is_mac)
{
	uint8_t bytes[16];
	if (is_mac)
		packets_mac(bytes, text);
	else
		packets_ip(bytes, text);
	memcpy(message + at, is_mac ? bytes : bytes + 12, is_mac ? 6 : 4);
}

static struct packets_frame arp(
	unsigned operation, const char *sender_mac, const char *sender, const char *target)
{
	memcpy(message, "\0\x01\x08\0\x06\x04\0", 8);
	message[7] = (char)operation;
	put(8, sender_mac, true);
	put(14, sender, false);
	put(18, "00:00:00:00:00:00", true);
	put(24, target, false);
	return (struct packets_frame){.type = 0x0806,
		.to_mac = ALL,
		.from_mac = sender_mac,
		.l4 = message,
		.l4_bytes = 28,
		.padding = 18};
}

static void assert_sent(unsigned i, const char *to_mac, unsigned operation, const char *sender,
	const char *target_mac, const char *target)
{
	put(8, OUR_MAC, true);
	put(14, sender, false);
	put(18, target_mac, true);
	put(24, target, false);
	message[7] = (char)operation;
	struct packets_frame f = {.type = 0x0806,
		.to_mac = to_mac,
		.from_mac = OUR_MAC,
		.vlan = stage.plan.ports[0].vlan,
		.l4 = message,
		.l4_bytes = 28};
	struct span expected = packets_build(&f), sent = fake_sent(stage.devices[0], i);
	assert_int_equal(sent.len, expected.len);
	assert_memory_equal(sent.at, expected.at, expected.len);
	assert_int_equal(fake_sent_port(stage.devices[0], i), STAGE_PORT);
}

static void a_request_is_answered(void **state)
{
	(void)state;
	struct packets_frame f = arp(1, PEER_MAC, "192.0.2.9", OUR_IPV4);
	stage_arrive(&f);
	assert_int_equal(fake_sent_count(stage.devices[0]), 1);
	assert_sent(0, PEER_MAC, 2, OUR_IPV4, PEER_MAC, "192.0.2.9");
	assert_int_equal(stage_counter(0, NET_arp_answered), 1);
	f = arp(1, PEER_MAC, "0.0.0.0", OUR_IPV4); // a probe (RFC 5227 2.1.1)
	stage_arrive(&f);
	assert_sent(0, PEER_MAC, 2, OUR_IPV4, PEER_MAC, "0.0.0.0");
}

static void a_request_in_our_vlan(void **state)
{
	(void)state;
	stage_plan();
	stage.plan.ports[0].vlan = 77;
	stage_start(true);
	struct packets_frame f = arp(1, PEER_MAC, "192.0.2.9", OUR_IPV4);
	f.vlan = 77;
	stage_arrive(&f);
	assert_sent(0, PEER_MAC, 2, OUR_IPV4, PEER_MAC, "192.0.2.9");
}

static void others_are_left_to_the_kernel(void **state)
{
	(void)state;
	enum ethdev_class class;
	struct packets_frame f = arp(1, PEER_MAC, "192.0.2.9", "192.0.2.10");
	stage_arrive(&f);
	f = arp(2, PEER_MAC, "192.0.2.9", OUR_IPV4); // the kernel may have asked
	stage_arrive(&f);
	assert_int_equal(fake_sent_count(stage.devices[0]), 0);
	assert_int_equal(fake_excepted(stage.devices[0], &class), 2);
	assert_int_equal(class, ETHDEV_CLASS_ROUTING);
}

static void malformed(void **state)
{
	(void)state;
	struct {
		unsigned at;
		char value;
	} cases[] = {{1, 6}, {3, 1}, {4, 8}, {5, 16}, {7, 3}, {6, 1}, {8, 1}};
	for (unsigned i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
		struct packets_frame f = arp(1, PEER_MAC, "192.0.2.9", OUR_IPV4);
		message[cases[i].at] = cases[i].value;
		stage_arrive(&f);
		assert_int_equal(stage_counter(0, NET_arp_bad), i + 1);
	}
	struct packets_frame f = arp(1, PEER_MAC, "192.0.2.9", OUR_IPV4);
	f.padding = 0;
	f.cut = 1;
	stage_arrive(&f);
	f = arp(1, "00:00:00:00:00:00", "192.0.2.9", OUR_IPV4);
	stage_arrive(&f);
	assert_int_equal(stage_counter(0, NET_arp_bad), 9);
	assert_int_equal(stage_counter(0, NET_arp_answered), 0);
}

static void announced_at_the_start(void **state)
{
	(void)state;
	stage_end(NULL);
	stage_plan();
	stage.plan.ports[0].gateway_count = 0;
	stage.plan.ports[0].address_count = 1;
	stage_start(false);
	stage_turn(0);
	assert_int_equal(fake_sent_count(stage.devices[0]), 1);
	arp(1, PEER_MAC, OUR_IPV4, OUR_IPV4);
	assert_sent(0, ALL, 1, OUR_IPV4, "00:00:00:00:00:00", OUR_IPV4);
	stage_pass(5000000);
	assert_int_equal(fake_sent_count(stage.devices[0]), 3);
	assert_int_equal(stage_counter(0, NET_announced), 3);
}

static void announced_when_the_link_comes_up(void **state)
{
	(void)state;
	uint64_t before = stage_counter(0, NET_announced);
	fake_link(stage.devices[0], 0, false);
	stage_pass(2000000);
	assert_int_equal(stage_counter(0, NET_announced), before);
	fake_link(stage.devices[0], 0, true);
	stage_pass(5000000);
	assert_int_equal(stage_counter(0, NET_announced), before + 6); // two addresses
}

static void a_conflict_is_defended_against(void **state)
{
	(void)state;
	uint64_t before = stage_counter(0, NET_announced);
	struct packets_frame f = arp(1, PEER_MAC, OUR_IPV4, OUR_IPV4);
	stage_arrive(&f);
	stage_pass(100000);
	assert_int_equal(stage_counter(0, NET_address_conflict), 1);
	assert_int_equal(stage_counter(0, NET_announced), before + 2);
	stage_arrive(&f); // not again within ten seconds
	stage_pass(100000);
	assert_int_equal(stage_counter(0, NET_address_conflict), 2);
	assert_int_equal(stage_counter(0, NET_announced), before + 2);
	stage_pass(10000000);
	stage_arrive(&f);
	stage_pass(100000);
	assert_int_equal(stage_counter(0, NET_announced), before + 4);
	f = arp(1, OUR_MAC, OUR_IPV4, OUR_IPV4);
	f.from_mac = PEER_MAC; // our own, relayed
	stage_arrive(&f);
	assert_int_equal(stage_counter(0, NET_address_conflict), 3);
}

static void the_gateway_is_found_and_followed(void **state)
{
	(void)state;
	stage_end(NULL);
	stage_plan();
	stage.plan.ports[0].gateway_count = 1;
	stage.plan.ports[0].address_count = 1;
	stage_start(false);
	stage_turn(0);
	arp(1, PEER_MAC, OUR_IPV4, OUR_IPV4);
	assert_sent(1, ALL, 1, OUR_IPV4, "00:00:00:00:00:00", "192.0.2.254");
	struct packets_frame f = arp(2, PEER_MAC, "192.0.2.254", OUR_IPV4);
	stage_arrive(&f);
	stage_pass(29000000);
	fake_forget(stage.devices[0]);
	stage_pass(2000000); // it is asked alone, and does not answer
	assert_sent(0, PEER_MAC, 1, OUR_IPV4, "00:00:00:00:00:00", "192.0.2.254");
	assert_int_equal(stage_counter(0, NET_gateway_silent), 0);
	stage_pass(3000000);
	assert_int_equal(stage_counter(0, NET_gateway_silent), 1);
	f = arp(2, "02:00:00:00:00:09", "192.0.2.254", OUR_IPV4);
	stage_arrive(&f);
	assert_int_equal(stage_counter(0, NET_gateway_moved), 1);
}

int main(void)
{
#define TEST(name) cmocka_unit_test_setup_teardown(name, open_stage, stage_end)
	const struct CMUnitTest tests[] = {
		TEST(a_request_is_answered),
		cmocka_unit_test_teardown(a_request_in_our_vlan, stage_end),
		TEST(others_are_left_to_the_kernel),
		TEST(malformed),
		TEST(announced_at_the_start),
		TEST(announced_when_the_link_comes_up),
		TEST(a_conflict_is_defended_against),
		TEST(the_gateway_is_found_and_followed),
	};
	return stage_open() ? cmocka_run_group_tests(tests, NULL, NULL) : 1;
}
