// Goal: echo is answered, not too often; "too big" reaches TCP if it can be true.

#include "dataplane/net/icmp.h"
#include "tests/unit/net/stage.h"

#include <setjmp.h>
#include <stdarg.h>
#include <string.h>

#include <cmocka.h>

static int open_stage(void **state)
{
	(void)state;
	stage_plan();
	stage_start(true);
	return 0;
}

static const char echo4[] = "\x08\0\0\0\x12\x34\0\x01hello",
		  echo6[] = "\x80\0\0\0\x12\x34\0\x01hello";

static struct packets_frame echo(bool is_ipv6)
{
	return (struct packets_frame){.is_ipv6 = is_ipv6,
		.protocol = is_ipv6 ? 58 : 1,
		.l4 = is_ipv6 ? echo6 : echo4,
		.l4_bytes = sizeof(echo4) - 1};
}

static void assert_answered(bool is_ipv6)
{
	struct packets_frame f = echo(is_ipv6);
	stage_arrive(&f);
	char answer[sizeof(echo4)];
	memcpy(answer, f.l4, sizeof(answer));
	answer[0] = is_ipv6 ? (char)129 : 0;
	f = (struct packets_frame){.is_ipv6 = is_ipv6,
		.protocol = f.protocol,
		.fragment = 0x4000,
		.to_mac = PEER_MAC,
		.from_mac = OUR_MAC,
		.from = is_ipv6 ? OUR_IPV6 : OUR_IPV4,
		.to = is_ipv6 ? PEER_IPV6 : PEER_IPV4,
		.l4 = answer,
		.l4_bytes = f.l4_bytes};
	struct span expected = packets_build(&f), sent = fake_sent(stage.devices[0], 0);
	if (!is_ipv6) { // the identification is 0, and the checksum what follows from it
		memset((char *)(uintptr_t)expected.at + 18, 0, 2);
		memset((char *)(uintptr_t)expected.at + 24, 0, 2);
		uint16_t sum = packets_checksum((const uint8_t *)expected.at + 14, 20);
		((char *)(uintptr_t)expected.at)[24] = (char)(sum >> 8);
		((char *)(uintptr_t)expected.at)[25] = (char)sum;
	}
	assert_int_equal(sent.len, expected.len);
	assert_memory_equal(sent.at, expected.at, expected.len);
}

static void echo_is_answered(void **state)
{
	(void)state;
	assert_answered(false);
	assert_answered(true);
	assert_int_equal(stage_counter(0, NET_echo_answered), 2);
}

static void echo_of_the_largest_size(void **state)
{
	(void)state;
	static char large[1481] = {8};
	struct packets_frame f = {.protocol = 1, .l4 = large, .l4_bytes = 1480};
	stage_arrive(&f);
	assert_int_equal(stage_counter(0, NET_echo_answered), 1);
	f.l4_bytes = 1481;
	stage_arrive(&f);
	assert_int_equal(stage_counter(0, NET_echo_answered), 1);
	assert_int_equal(stage_counter(0, NET_icmp_bad), 1);
}

static void echo_is_limited(void **state)
{
	(void)state;
	struct packets_frame f = echo(false);
	struct span bytes = packets_build(&f);
	for (unsigned i = 0; i < ICMP_ECHO_BURST; i++)
		fake_arrive(stage.devices[0], STAGE_PORT, bytes, 0);
	for (unsigned i = 0; i < 10; i++)
		stage_turn(0);
	assert_int_equal(stage_counter(0, NET_echo_answered), ICMP_ECHO_BURST);
	assert_int_equal(stage_counter(0, NET_icmp_limited), 0);
	stage_arrive(&f);
	assert_int_equal(stage_counter(0, NET_icmp_limited), 1);
	fake_now_us += ICMP_ECHO_US;
	stage_arrive(&f);
	assert_int_equal(stage_counter(0, NET_echo_answered), ICMP_ECHO_BURST + 1);
	fake_now_us += 1000000;
	fake_starve(stage.devices[0], 1);
	stage_arrive(&f);
	assert_int_equal(stage_counter(0, NET_icmp_limited), 2); // nor without a buffer
}

static void what_is_no_good(void **state)
{
	(void)state;
	struct packets_frame f = echo(false);
	f.sum_l4 = 1;
	stage_arrive(&f);
	f = echo(true);
	f.sum_l4 = 1;
	stage_arrive(&f);
	f = echo(false);
	f.l4_bytes = 7;
	stage_arrive(&f);
	assert_int_equal(stage_counter(0, NET_icmp_bad), 3);
	f = echo(true);
	f.from = "::";
	stage_arrive(&f);
	assert_int_equal(stage_counter(0, NET_source_bad), 1);
	f = echo(true); // to all: left alone
	f.to = "ff02::1";
	f.to_mac = "33:33:00:00:00:01";
	stage_arrive(&f);
	f = echo(false);
	f.to_mac = "ff:ff:ff:ff:ff:ff";
	stage_arrive(&f);
	assert_int_equal(stage_counter(0, NET_echo_answered), 0);
	assert_int_equal(stage_counter(0, NET_not_ours), 2);
	assert_int_equal(fake_sent_count(stage.devices[0]), 0);
}

static char message[128];

// "Too big" about a segment of ours of `len` bytes in all, from `port`.
static struct packets_frame too_big(bool is_ipv6, uint32_t mtu, unsigned len, uint16_t port)
{
	struct packets_frame quoted = {.is_ipv6 = is_ipv6,
		.from = is_ipv6 ? OUR_IPV6 : OUR_IPV4,
		.to = is_ipv6 ? PEER_IPV6 : PEER_IPV4,
		.l4 = packets_segment(port, 40000, 0x01020304, 9, TCP_ACK, 0),
		.l4_bytes = 20,
		.length_more = len - (is_ipv6 ? 60 : 40)};
	struct span bytes = packets_build(&quoted);
	memset(message, 0, sizeof(message));
	message[0] = is_ipv6 ? 2 : 3;
	message[1] = is_ipv6 ? 0 : 4;
	for (unsigned i = 0; i < 4; i++)
		message[4 + i] = (char)(mtu >> (24 - 8 * i));
	unsigned part = (is_ipv6 ? 40 : 20) + 8; // what RFC 792 has quoted at least
	memcpy(message + 8, bytes.at + 14, part);
	return (struct packets_frame){.is_ipv6 = is_ipv6,
		.from = is_ipv6 ? "2001:db8:9::9" : "203.0.113.77", // a router
		.protocol = is_ipv6 ? 58 : 1,
		.l4 = message,
		.l4_bytes = 8 + part};
}

static void too_big_is_told(void **state)
{
	(void)state;
	stage.tcps[0]->owner = TCP_OWNER_CONNECTION;
	uint8_t ip[16];
	for (unsigned is_ipv6 = 0; is_ipv6 < 2; is_ipv6++) {
		struct packets_frame f = too_big(is_ipv6, 1400, 1500, 443);
		stage_arrive(&f);
		assert_int_equal(stage.tcps[0]->too_big, 1 + is_ipv6);
		assert_int_equal(stage.tcps[0]->mtu, 1400);
		assert_int_equal(stage.tcps[0]->quoted.seq, 0x01020304);
		assert_int_equal(stage.tcps[0]->quoted.local.port, 443);
		assert_int_equal(stage.tcps[0]->quoted.peer.port, 40000);
		packets_ip(ip, is_ipv6 ? PEER_IPV6 : PEER_IPV4);
		assert_memory_equal(stage.tcps[0]->quoted.peer.ip, ip, 16);
	}
	stage.tcps[0]->owner = TCP_OWNER_NONE; // nobody else to ask: TCP counts it
	struct packets_frame f = too_big(false, 68, 69, 443);
	stage_arrive(&f);
	assert_int_equal(stage.tcps[0]->too_big, 3);
}

static void too_big_that_cannot_be(void **state)
{
	(void)state;
	struct {
		bool is_ipv6;
		uint32_t mtu;
		unsigned len;
	} bad[] = {{false, 67, 1500}, {false, 0, 1500}, {false, 1500, 1500}, {true, 1279, 1500},
		{true, 1500, 1500}, {true, 0x10500, 1500}};
	for (unsigned i = 0; i < sizeof(bad) / sizeof(bad[0]); i++) {
		struct packets_frame f = too_big(bad[i].is_ipv6, bad[i].mtu, bad[i].len, 443);
		stage_arrive(&f);
		assert_int_equal(stage_counter(0, NET_icmp_bad), i + 1);
	}
	assert_int_equal(stage.tcps[0]->too_big, 0);
}

static void errors_for_the_kernel(void **state)
{
	(void)state;
	enum ethdev_class class;
	struct packets_frame f = too_big(false, 1400, 1500, 22); // its own connection
	stage_arrive(&f);
	f = too_big(false, 1400, 1500, 443);
	f.l4_bytes--; // too short to say whose
	stage_arrive(&f);
	f = too_big(true, 1400, 1500, 443);
	f.l4_bytes = 8;
	stage_arrive(&f);
	f = too_big(false, 1400, 1500, 443);
	message[8] = 0x41; // quotes a header of 4 bytes
	stage_arrive(&f);
	f = too_big(false, 1400, 1500, 443);
	message[8 + 9] = 17; // UDP
	stage_arrive(&f);
	f = too_big(false, 1400, 1500, 443);
	message[1] = 1; // host unreachable
	stage_arrive(&f);
	f = too_big(false, 1400, 1500, 443);
	message[8 + 15]++; // not from us
	stage_arrive(&f);
	assert_int_equal(stage.tcps[0]->too_big, 0);
	assert_int_equal(fake_excepted(stage.devices[0], &class), 7);
	assert_int_equal(class, ETHDEV_CLASS_OTHER); // a flood of these drowns no routing
}

int main(void)
{
#define TEST(name) cmocka_unit_test_setup_teardown(name, open_stage, stage_end)
	const struct CMUnitTest tests[] = {
		TEST(echo_is_answered),
		TEST(echo_of_the_largest_size),
		TEST(echo_is_limited),
		TEST(what_is_no_good),
		TEST(too_big_is_told),
		TEST(too_big_that_cannot_be),
		TEST(errors_for_the_kernel),
	};
	return stage_open() ? cmocka_run_group_tests(tests, NULL, NULL) : 1;
}
