// Goal: who solicits an address of ours is told, if it asks from our link; the gateway is found;
// our addresses are probed, announced and defended.

#include "dataplane/net/mld.h"
#include "tests/unit/net/stage.h"

#include <setjmp.h>
#include <stdarg.h>
#include <string.h>

#include <cmocka.h>

#define GROUP "ff02::1:ff00:1" // of 2001:db8::1
#define GROUP_MAC "33:33:ff:00:00:01"
#define ALL "ff02::1"
#define ALL_MAC "33:33:00:00:00:01"

static int open_stage(void **state)
{
	(void)state;
	stage_plan();
	stage_start(true);
	return 0;
}

static char message[64];

// A solicitation (135) or advertisement (136), with an option for a MAC address if `mac` is not
// NULL.
static struct packets_frame nd(
	unsigned type, unsigned flags, const char *target, unsigned option, const char *mac)
{
	memset(message, 0, sizeof(message));
	message[0] = (char)type;
	message[4] = (char)flags;
	packets_ip((uint8_t *)message + 8, target);
	message[24] = (char)option;
	message[25] = 1;
	packets_mac((uint8_t *)message + 26, mac ? mac : ALL_MAC);
	return (struct packets_frame){.is_ipv6 = true,
		.protocol = 58,
		.hop_limit = 255,
		.l4 = message,
		.l4_bytes = mac ? 32 : 24};
}

static void assert_sent(unsigned i, struct packets_frame f)
{
	f.vlan = stage.plan.ports[0].vlan;
	f.from_mac = OUR_MAC;
	struct span expected = packets_build(&f), sent = fake_sent(stage.devices[0], i);
	assert_int_equal(sent.len, expected.len);
	assert_memory_equal(sent.at, expected.at, expected.len);
}

static struct packets_frame solicitation(void)
{
	struct packets_frame f = nd(135, 0, OUR_IPV6, 1, PEER_MAC);
	f.to = GROUP;
	f.to_mac = GROUP_MAC;
	f.from = "fe80::7";
	return f;
}

static void a_solicitation_is_answered(void **state)
{
	(void)state;
	struct packets_frame f = solicitation();
	stage_arrive(&f);
	assert_int_equal(fake_sent_count(stage.devices[0]), 1);
	f = nd(136, 0x60, OUR_IPV6, 2, OUR_MAC);
	f.from = OUR_IPV6;
	f.to = "fe80::7";
	f.to_mac = PEER_MAC;
	assert_sent(0, f);
	assert_int_equal(stage_counter(0, NET_nd_answered), 1);
	f = nd(135, 0, OUR_IPV6, 1, NULL); // to us alone, whether we are still there
	f.from = "2001:db8::7";
	stage_arrive(&f);
	f = nd(136, 0x60, OUR_IPV6, 2, OUR_MAC);
	f.from = OUR_IPV6;
	f.to = "2001:db8::7";
	f.to_mac = PEER_MAC;
	assert_sent(0, f);
}

static void the_probe_of_another_is_answered_to_all(void **state)
{
	(void)state;
	struct packets_frame f = nd(135, 0, OUR_IPV6, 1, NULL);
	f.from = "::";
	f.to = GROUP;
	f.to_mac = GROUP_MAC;
	stage_arrive(&f);
	f = nd(136, 0x20, OUR_IPV6, 2, OUR_MAC);
	f.from = OUR_IPV6;
	f.to = ALL;
	f.to_mac = ALL_MAC;
	assert_sent(0, f);
}

static void malformed(void **state)
{
	(void)state;
	struct packets_frame bad[12], f = solicitation();
	char messages[12][32];
	unsigned count = 0;
#define BAD(change) \
	do { \
		f = solicitation(); \
		change; \
		memcpy(messages[count], message, 32); \
		f.l4 = messages[count]; \
		bad[count++] = f; \
	} while (0)
	BAD(f.hop_limit = 254); // it came through a router
	BAD(message[1] = 1); // code
	BAD(message[8] = (char)0xff); // a group
	BAD(message[25] = 0); // an option of no length
	BAD(message[25] = 2); // and one beyond the end
	BAD(f.l4_bytes = 25);
	BAD(f.l4_bytes = 23);
	BAD(f.from = "::"); // has no address, and tells one
	BAD(f.from = "::"; f.l4_bytes = 24; f.to = OUR_IPV6);
	BAD(message[26] = 1); // a group's MAC
	BAD(message[0] = (char)136; message[4] = 0x40); // answers who asked, but to all
	BAD(message[0] = (char)136; message[4] = 0; f.from = "::");
	for (unsigned i = 0; i < count; i++) {
		stage_arrive(&bad[i]);
		assert_int_equal(stage_counter(0, NET_nd_bad), i + 1);
	}
	f = solicitation();
	f.sum_l4 = 1;
	stage_arrive(&f);
	assert_int_equal(stage_counter(0, NET_icmp_bad), 1);
	assert_int_equal(stage_counter(0, NET_nd_answered), 0);
}

static void others_are_left_to_the_kernel(void **state)
{
	(void)state;
	enum ethdev_class class;
	struct packets_frame f = nd(135, 0, "2001:db8::2", 1, PEER_MAC);
	f.to = GROUP;
	f.to_mac = GROUP_MAC;
	stage_arrive(&f);
	f = nd(134, 0, OUR_IPV6, 1, PEER_MAC); // a router's advertisement
	f.to = ALL;
	f.to_mac = ALL_MAC;
	stage_arrive(&f);
	assert_int_equal(fake_sent_count(stage.devices[0]), 0);
	assert_int_equal(fake_excepted(stage.devices[0], &class), 2);
	assert_int_equal(class, ETHDEV_CLASS_ROUTING);
}

static const char alert[] = "\x3a\0\x05\x02\0\0\x01\0";

static struct packets_frame report(const char *from)
{
	memset(message, 0, sizeof(message));
	message[0] = (char)143;
	message[7] = 1; // a record
	message[8] = 4; // change to exclude, of nobody
	packets_ip((uint8_t *)message + 12, GROUP);
	return (struct packets_frame){.is_ipv6 = true,
		.from = from,
		.to = "ff02::16",
		.to_mac = "33:33:00:00:00:16",
		.protocol = 58,
		.hop_limit = 1,
		.extensions = alert,
		.extension_bytes = 8,
		.l4 = message,
		.l4_bytes = 28};
}

static struct packets_frame query(unsigned delay_ms)
{
	struct packets_frame f = report("fe80::fe");
	memset(message, 0, sizeof(message));
	message[0] = (char)130;
	message[4] = (char)(delay_ms >> 8);
	message[5] = (char)delay_ms;
	f.to = ALL;
	f.to_mac = ALL_MAC;
	return f;
}

static void groups_are_reported_when_asked_for(void **state)
{
	(void)state;
	struct packets_frame f = query(400);
	enum ethdev_class class;
	stage_arrive(&f);
	assert_int_equal(fake_sent_count(stage.devices[0]), 0);
	assert_int_equal(fake_excepted(stage.devices[0], &class), 1); // the kernel has groups, too
	stage_pass(420000);
	assert_int_equal(fake_sent_count(stage.devices[0]), 1);
	assert_sent(0, report("::"));
	f = query(60000); // who has so much time need not take it
	stage_arrive(&f);
	stage_arrive(&f);
	stage_pass(MLD_DELAY_US + 20000);
	assert_int_equal(fake_sent_count(stage.devices[0]), 1);
	f = query(0);
	stage_arrive(&f);
	stage_pass(20000);
	assert_int_equal(fake_sent_count(stage.devices[0]), 1);
}

static void queries_that_are_none(void **state)
{
	(void)state;
	struct packets_frame f = query(0);
	f.hop_limit = 2;
	stage_arrive(&f);
	f = query(0);
	f.from = "2001:db8::fe";
	stage_arrive(&f);
	f = query(0);
	f.l4_bytes = 23;
	stage_arrive(&f);
	assert_int_equal(stage_counter(0, NET_nd_bad), 3);
	stage_pass(20000);
	assert_int_equal(fake_sent_count(stage.devices[0]), 0);
}

static void a_report_from_our_own_link_local_address(void **state)
{
	(void)state;
	stage_end(NULL);
	stage_plan();
	stage.plan.ports[0].gateway_count = 0;
	packets_ip(stage.plan.ports[0].addresses[1].ip, "fe80::ff:0:1");
	stage_start(false);
	stage_turn(0);
	assert_sent(0, report("fe80::ff:0:1"));
}

static void probed_and_announced_at_the_start(void **state)
{
	(void)state;
	stage_end(NULL);
	stage_plan();
	stage.plan.ports[0].gateway_count = 0;
	stage.plan.ports[0].address_count = 1;
	stage.plan.ports[0].addresses[0] = stage.plan.ports[0].addresses[1];
	stage_start(false);
	stage_turn(0);
	struct packets_frame f = nd(135, 0, OUR_IPV6, 1, NULL);
	f.from = "::";
	f.to = GROUP;
	f.to_mac = GROUP_MAC;
	assert_sent(1, f);
	f = nd(136, 0x20, OUR_IPV6, 2, OUR_MAC);
	f.from = OUR_IPV6;
	f.to = ALL;
	f.to_mac = ALL_MAC;
	assert_sent(2, f);
	assert_sent(0, report("::"));
	stage_pass(5000000);
	assert_int_equal(fake_sent_count(stage.devices[0]), 7);
	assert_int_equal(stage_counter(0, NET_announced), 3);
}

static void a_conflict_is_defended_against(void **state)
{
	(void)state;
	uint64_t before = stage_counter(0, NET_announced);
	struct packets_frame f = nd(136, 0x20, OUR_IPV6, 2, PEER_MAC);
	f.to = ALL;
	f.to_mac = ALL_MAC;
	stage_arrive(&f);
	stage_pass(100000);
	assert_int_equal(stage_counter(0, NET_address_conflict), 1);
	assert_int_equal(stage_counter(0, NET_announced), before + 2);
}

static void the_gateway_is_found_and_followed(void **state)
{
	(void)state;
	stage_end(NULL);
	stage_plan();
	struct net_port_plan *port = &stage.plan.ports[0];
	port->gateway_count = 1;
	memcpy(port->gateways[0], port->gateways[1], 16);
	stage_start(false);
	stage_turn(0); // reports, announces IPv4, and asks
	struct packets_frame f = nd(135, 0, "fe80::fe", 1, OUR_MAC);
	f.from = OUR_IPV6;
	f.to = "ff02::1:ff00:fe";
	f.to_mac = "33:33:ff:00:00:fe";
	assert_sent(2, f);
	struct packets_frame answer = nd(136, 0xe0, "fe80::fe", 2, PEER_MAC);
	answer.from = "fe80::fe";
	stage_arrive(&answer);
	stage_pass(29000000);
	fake_forget(stage.devices[0]);
	stage_pass(1500000);
	f = nd(135, 0, "fe80::fe", 1, OUR_MAC); // it alone
	f.from = OUR_IPV6;
	f.to = "fe80::fe";
	f.to_mac = PEER_MAC;
	assert_sent(0, f);
	answer = nd(136, 0xc0, "fe80::fe", 2, NULL); // it need not say where it is
	answer.from = "fe80::fe";
	stage_arrive(&answer);
	stage_pass(5000000);
	assert_int_equal(stage_counter(0, NET_gateway_silent), 0);
	answer = nd(136, 0x80, "fe80::fe", 2, "02:00:00:00:00:09"); // does not override
	answer.from = "fe80::fe";
	stage_arrive(&answer);
	assert_int_equal(stage_counter(0, NET_gateway_moved), 0);
	answer = nd(136, 0xa0, "fe80::fe", 2, "02:00:00:00:00:09");
	answer.from = "fe80::fe";
	stage_arrive(&answer);
	assert_int_equal(stage_counter(0, NET_gateway_moved), 1);
}

int main(void)
{
#define TEST(name) cmocka_unit_test_setup_teardown(name, open_stage, stage_end)
	const struct CMUnitTest tests[] = {
		TEST(a_solicitation_is_answered),
		TEST(the_probe_of_another_is_answered_to_all),
		TEST(malformed),
		TEST(others_are_left_to_the_kernel),
		TEST(groups_are_reported_when_asked_for),
		TEST(queries_that_are_none),
		TEST(a_report_from_our_own_link_local_address),
		TEST(probed_and_announced_at_the_start),
		TEST(a_conflict_is_defended_against),
		TEST(the_gateway_is_found_and_followed),
	};
	return stage_open() ? cmocka_run_group_tests(tests, NULL, NULL) : 1;
}
