// Goal: of a frame is taken what its headers may say of it, and nothing past its end is read; each
// reason to drop one is named.

#include "dataplane/net/frame.h"
#include "tests/unit/http/dice.h"
#include "tests/unit/http/guard.h"
#include "tests/unit/net/packets.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>

#include <cmocka.h>

static struct net_port_plan port;
static struct frame frame;
static struct tcp_segment segment;

static int open_port(void **state)
{
	(void)state;
	port = (struct net_port_plan){.mtu = 1500, .address_count = 3};
	packets_mac(port.mac, OUR_MAC);
	packets_ip(port.addresses[0].ip, OUR_IPV4);
	port.addresses[0].prefix = 24;
	packets_ip(port.addresses[1].ip, OUR_IPV6);
	port.addresses[1].prefix = 64;
	packets_ip(port.addresses[2].ip, "203.0.113.9");
	port.addresses[2].prefix = 31;
	return 0;
}

static void read_checked(const struct packets_frame *f, bool ip, bool l4)
{
	struct packets_frame whole = *f;
	if (!f->l4 && !f->type) {
		whole.l4 = packets_segment(40000, 443, 7, 9, TCP_ACK, f->l4_bytes);
		whole.l4_bytes = 20 + f->l4_bytes;
	}
	struct span bytes = guard_copy(packets_build(&whole));
	frame_read(&port, 5, bytes, (struct frame_checked){ip, l4}, &frame, &segment);
}

static void assert_drop(enum net_counter expected, const struct packets_frame *f)
{
	read_checked(f, false, false);
	if (frame.kind != FRAME_IS_DROPPED || frame.drop != expected)
		print_error("expected %s, got kind %d, %s\n", net_counter_name(expected),
			frame.kind, net_counter_name(frame.drop));
	assert_int_equal(frame.kind, FRAME_IS_DROPPED);
	assert_int_equal(frame.drop, expected);
}

static void assert_kind(enum frame_kind expected, const struct packets_frame *f)
{
	read_checked(f, false, false);
	if (frame.kind == FRAME_IS_DROPPED && expected != FRAME_IS_DROPPED)
		print_error("dropped: %s\n", net_counter_name(frame.drop));
	assert_int_equal(frame.kind, expected);
}

#define DROP(name, ...) assert_drop(NET_##name, &(struct packets_frame){__VA_ARGS__})
#define KIND(name, ...) assert_kind(FRAME_IS_##name, &(struct packets_frame){__VA_ARGS__})

static void a_segment_of_ipv4(void **state)
{
	(void)state;
	uint8_t ip[16], mac[6];
	KIND(SEGMENT, .l4_bytes = 11, .padding = 9);
	packets_ip(ip, PEER_IPV4);
	assert_memory_equal(segment.peer.ip, ip, 16);
	packets_ip(ip, OUR_IPV4);
	assert_memory_equal(segment.local.ip, ip, 16);
	packets_mac(mac, PEER_MAC);
	assert_memory_equal(segment.hop.mac, mac, 6);
	assert_int_equal(segment.hop.port, 5);
	assert_int_equal(segment.peer.port, 40000);
	assert_int_equal(segment.local.port, 443);
	assert_int_equal(segment.seq, 7);
	assert_int_equal(segment.ack, 9);
	assert_true(span_is_equal(segment.payload, SPAN("xxxxxxxxxxx"))); // without padding
}

static void a_segment_of_ipv6(void **state)
{
	(void)state;
	uint8_t ip[16];
	KIND(SEGMENT, .is_ipv6 = true, .l4_bytes = 3);
	packets_ip(ip, PEER_IPV6);
	assert_memory_equal(segment.peer.ip, ip, 16);
	packets_ip(ip, OUR_IPV6);
	assert_memory_equal(segment.local.ip, ip, 16);
	assert_true(span_is_equal(segment.payload, SPAN("xxx")));
}

static void ethernet(void **state)
{
	(void)state;
	DROP(frame_not_ours, .to_mac = "02:00:00:00:00:03");
	DROP(frame_not_ours, .to_mac = "ff:ff:ff:ff:ff:ff"); // TCP is for one alone
	DROP(source_bad, .from_mac = "03:00:00:00:00:02"); // a group
	DROP(source_bad, .from_mac = OUR_MAC);
	KIND(OTHER, .type = 0x88cc); // LLDP
	KIND(ARP, .type = FRAME_ARP, .to_mac = "ff:ff:ff:ff:ff:ff");
	DROP(frame_short, .type = FRAME_ARP, .cut = 1);
}

static void vlan(void **state)
{
	(void)state;
	KIND(OTHER, .vlan = 12);
	KIND(SEGMENT, .vlan = 0x1000); // only a priority
	port.vlan = 12;
	KIND(SEGMENT, .vlan = 12);
	KIND(OTHER, .vlan = 13);
	KIND(OTHER, .vlan = 0x1000);
	KIND(OTHER, .l4_bytes = 0);
	DROP(frame_short, .type = 0x8100, .padding = 3);
}

static void ipv4(void **state)
{
	(void)state;
	KIND(SEGMENT, .option_words = 10);
	DROP(frame_short, .cut = 1);
	DROP(frame_short, .cut = 21); // within the IP header
	DROP(frame_short, .length_more = 1);
	DROP(ip_bad_checksum, .sum_ip = 1);
	DROP(ip_bad_checksum, .sum_ip = 0x100);
	DROP(ip_fragment, .fragment = 0x2000);
	DROP(ip_fragment, .fragment = 1);
	KIND(SEGMENT, .fragment = 0x4000); // DF
	KIND(OTHER, .to = "192.0.2.2");
	KIND(OTHER, .protocol = 17, .l4 = "12345678", .l4_bytes = 8);
	KIND(ICMP, .protocol = 1, .l4 = "\x08\0\0\0\0\0\0\0", .l4_bytes = 8);
	assert_int_equal(frame.body.len, 8);
	KIND(OTHER, .to = "192.0.2.2", .sum_ip = 1); // whoever it is for looks at it
}

static void ipv4_headers_that_lie(void **state)
{
	(void)state;
	struct {
		unsigned at;
		uint8_t value;
		enum net_counter drop;
	} lies[] = {
		{14, 0x65, NET_ip_bad}, // version 6
		{14, 0x44, NET_ip_bad}, // a header of 16 bytes
		{17, 19, NET_ip_bad}, // shorter than its header
		{14, 0x4f, NET_ip_bad}, // a header longer than the packet
	};
	for (unsigned i = 0; i < sizeof(lies) / sizeof(lies[0]); i++) {
		struct packets_frame f = {
			.l4 = packets_segment(1, 2, 3, 4, TCP_ACK, 0), .l4_bytes = 20};
		struct span bytes = guard_copy(packets_build(&f));
		((uint8_t *)(uintptr_t)bytes.at)[lies[i].at] = lies[i].value;
		frame_read(&port, 0, bytes, (struct frame_checked){true, true}, &frame, &segment);
		assert_int_equal(frame.kind, FRAME_IS_DROPPED);
		assert_int_equal(frame.drop, lies[i].drop);
	}
}

static void sources(void **state)
{
	(void)state;
	const char *bad[] = {"0.0.0.0", "0.1.2.3", "127.0.0.1", "224.0.0.1", "239.255.255.255",
		"240.0.0.1", "255.255.255.255", OUR_IPV4, "192.0.2.255", "203.0.113.9"};
	for (unsigned i = 0; i < sizeof(bad) / sizeof(bad[0]); i++)
		DROP(source_bad, .from = bad[i]);
	const char *good[] = {
		"192.0.2.254", "192.0.3.255", "203.0.113.8", "223.255.255.255", "1.0.0.0"};
	for (unsigned i = 0; i < sizeof(good) / sizeof(good[0]); i++)
		KIND(SEGMENT, .from = good[i]);
	const char *bad6[] = {"::", "::1", "ff02::1", OUR_IPV6, "::ffff:1.2.3.4"};
	for (unsigned i = 0; i < sizeof(bad6) / sizeof(bad6[0]); i++)
		DROP(source_bad, .is_ipv6 = true, .from = bad6[i]);
	KIND(SEGMENT, .is_ipv6 = true, .from = "fe80::1");
	// An IPv4 address of ours, mapped, is nobody's on a wire.
	KIND(OTHER, .is_ipv6 = true, .to = "::ffff:192.0.2.1");
}

#define PAD6 "\x01\x04\0\0\0\0" // PadN to the end of 8 bytes

static void extension_headers(void **state)
{
	(void)state;
	static const char hop[] = {"\x06\0" PAD6}, route_done[] = {"\x06\0\x02\0\0\0\0\0"},
			  route_left[] = {"\x06\0\x02\x01\0\0\0\0"},
			  unknown[] = {"\x06\0\x80\x04\0\0\0\0"},
			  skipped[] = {"\x06\0\x1e\x04\0\0\0\0"},
			  torn[] = {"\x06\0\x01\x05\0\0\0\0"}, long_one[] = {"\x06\x01" PAD6},
			  fragment[] = {"\x06\0\0\0\0\0\0\0"},
			  twice[] = {"\0\0" PAD6 "\x06\0" PAD6}, pad1[] = {"\x06\0\0\0\0\0\0\0"};
#define EXTENSION(kind, bytes) \
	.is_ipv6 = true, .extension = (kind), .extensions = (bytes), \
	.extension_bytes = sizeof(bytes) - 1
	KIND(SEGMENT, EXTENSION(0, hop));
	KIND(SEGMENT, EXTENSION(60, hop));
	KIND(SEGMENT, EXTENSION(60, pad1));
	KIND(SEGMENT, EXTENSION(0, skipped));
	KIND(OTHER, EXTENSION(0, hop), .to = "ff02::1"); // TCP, to a group
	KIND(OTHER, EXTENSION(0, fragment), .to = "ff02::2"); // not walked
	KIND(SEGMENT, EXTENSION(43, route_done));
	DROP(ip_extension, EXTENSION(43, route_left));
	DROP(ip_extension, EXTENSION(0, unknown));
	DROP(ip_extension, EXTENSION(60, torn));
	DROP(ip_extension, EXTENSION(0, twice)); // hop-by-hop comes first, or not at all
	DROP(ip_fragment, EXTENSION(44, fragment));
	DROP(ip_extension, EXTENSION(135, hop)); // mobility
	DROP(ip_bad, EXTENSION(60, long_one), .l4 = "1234567", .l4_bytes = 7);
	DROP(ip_bad, .is_ipv6 = true, .protocol = 60, .l4 = "\x06", .l4_bytes = 1);
	KIND(OTHER, .is_ipv6 = true, .protocol = 17, .l4 = "12345678", .l4_bytes = 8);
	KIND(OTHER, .is_ipv6 = true, .protocol = 59, .l4 = "", .l4_bytes = 0, .padding = 4);
}

static void limits_of_extension_headers(void **state)
{
	(void)state;
	char many[9 * 8];
	for (unsigned i = 0; i < 9; i++)
		memcpy(many + 8 * i, "\x3c\0" PAD6, 8);
	many[7 * 8] = 6;
	KIND(SEGMENT, .is_ipv6 = true, .extension = 60, .extensions = many,
		.extension_bytes = 8 * 8);
	many[7 * 8] = 60;
	many[8 * 8] = 6;
	DROP(ip_extension, .is_ipv6 = true, .extension = 60, .extensions = many,
		.extension_bytes = 9 * 8);
	char large[264] = {6, 31, 1, 252};
	KIND(SEGMENT, .is_ipv6 = true, .extension = 60, .extensions = large,
		.extension_bytes = 256);
	large[1] = 32;
	large[4 + 252] = 1;
	large[5 + 252] = 6;
	DROP(ip_extension, .is_ipv6 = true, .extension = 60, .extensions = large,
		.extension_bytes = 264);
}

static void ipv6(void **state)
{
	(void)state;
	DROP(frame_short, .is_ipv6 = true, .cut = 1);
	DROP(frame_short, .is_ipv6 = true, .cut = 21);
	DROP(frame_short, .is_ipv6 = true, .length_more = 1);
	DROP(ip_bad, .type = FRAME_IPV6, .padding = 60);
	KIND(OTHER, .is_ipv6 = true, .to = "2001:db8::2");
	KIND(OTHER, .is_ipv6 = true, .to = "ff02::1"); // TCP to a group
	const char echo[] = "\x80\0\0\0\0\0\0";
	KIND(ICMP6, .is_ipv6 = true, .protocol = 58, .l4 = echo, .l4_bytes = 8);
	KIND(ICMP6, .is_ipv6 = true, .protocol = 58, .l4 = echo, .l4_bytes = 8, .to = "ff02::1",
		.to_mac = "33:33:00:00:00:01", .from = "::");
	assert_true(frame.is_to_group);
	KIND(ICMP6, .is_ipv6 = true, .protocol = 58, .l4 = echo, .l4_bytes = 8,
		.to = "ff02::1:ff00:1");
	KIND(OTHER, .is_ipv6 = true, .protocol = 58, .l4 = echo, .l4_bytes = 8, .to = "ff02::2");
}

static void segments(void **state)
{
	(void)state;
	DROP(tcp_bad_checksum, .sum_l4 = 1);
	DROP(tcp_bad_checksum, .is_ipv6 = true, .sum_l4 = 1);
	DROP(tcp_short, .l4 = "1234567890123456789", .l4_bytes = 19);
	char longer[20];
	memcpy(longer, packets_segment(1, 2, 3, 4, TCP_ACK, 0), 20);
	longer[12] = 0x60; // a header of 24 bytes
	DROP(tcp_short, .l4 = longer, .l4_bytes = 20);
	read_checked(&(struct packets_frame){.sum_l4 = 1}, false, true);
	assert_int_equal(frame.kind, FRAME_IS_SEGMENT); // the device has looked
	read_checked(&(struct packets_frame){.sum_ip = 1}, true, false);
	assert_int_equal(frame.kind, FRAME_IS_SEGMENT);
}

static void classes(void **state)
{
	(void)state;
	KIND(OTHER, .to = "192.0.2.2");
	assert_int_equal(frame.class, ETHDEV_CLASS_TCP);
	KIND(OTHER, .to = "192.0.2.2", .l4 = packets_segment(179, 40000, 1, 1, TCP_ACK, 0),
		.l4_bytes = 20);
	assert_int_equal(frame.class, ETHDEV_CLASS_ROUTING);
	KIND(OTHER, .to = "192.0.2.2", .l4 = packets_segment(40000, 179, 1, 1, TCP_ACK, 0),
		.l4_bytes = 20);
	assert_int_equal(frame.class, ETHDEV_CLASS_ROUTING);
	KIND(OTHER, .to = "224.0.0.5", .to_mac = "01:00:5e:00:00:05", .protocol = 89, .l4 = "1234",
		.l4_bytes = 4);
	assert_int_equal(frame.class, ETHDEV_CLASS_ROUTING);
	KIND(OTHER, .protocol = 17, .l4 = "12345678", .l4_bytes = 8);
	assert_int_equal(frame.class, ETHDEV_CLASS_OTHER);
	const char advertisement[] = "\x86\0\0\0\0\0\0";
	KIND(OTHER, .is_ipv6 = true, .protocol = 58, .l4 = advertisement, .l4_bytes = 8,
		.to = "2001:db8::2");
	assert_int_equal(frame.class, ETHDEV_CLASS_ROUTING);
	KIND(OTHER, .is_ipv6 = true, .protocol = 58, .l4 = "\x80\0\0\0\0\0\0", .l4_bytes = 8,
		.to = "2001:db8::2"); // echo
	assert_int_equal(frame.class, ETHDEV_CLASS_OTHER);
	KIND(ARP, .type = FRAME_ARP);
	assert_int_equal(frame.class, ETHDEV_CLASS_ROUTING);
}

static void subnets(void **state)
{
	(void)state;
	uint8_t ip[16];
	struct {
		const char *ip;
		unsigned own;
		bool is_on_link;
	} cases[] = {{"192.0.2.99", 0, true}, {"192.0.3.1", 0, false}, {"203.0.113.8", 2, true},
		{"203.0.113.10", 2, false}, {"2001:db8::ffff", 1, true},
		{"2001:db8:0:1::1", 1, false}, {"2001:db8::1", 0, false}};
	for (unsigned i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
		packets_ip(ip, cases[i].ip);
		assert_int_equal(
			frame_is_on_link(&port.addresses[cases[i].own], ip), cases[i].is_on_link);
	}
}

// Good frames with some bytes changed: nothing is read past the end, spans stay within.
static void random_damage(void **state)
{
	(void)state;
	dice_begin();
	for (unsigned round = 0; round < 50000; round++) {
		port.vlan = dice(2) ? 0 : 12;
		struct packets_frame f = {.is_ipv6 = dice(2),
			.vlan = port.vlan,
			.l4 = packets_segment(1, 2, 3, 4, TCP_ACK, dice(30)),
			.l4_bytes = 20 + dice(30),
			.extension = 60,
			.extensions = "\x06\0" PAD6,
			.extension_bytes = dice(2) * 8,
			.cut = dice(5) ? 0 : dice(50)};
		struct span bytes = guard_copy(packets_build(&f));
		for (unsigned i = dice(4); i > 0 && bytes.len; i--)
			((uint8_t *)(uintptr_t)bytes.at)[dice((uint32_t)bytes.len)] =
				(uint8_t)dice(256);
		frame_read(&port, 0, bytes, (struct frame_checked){true, true}, &frame, &segment);
		if (frame.kind == FRAME_IS_SEGMENT) {
			assert_true(segment.payload.at >= bytes.at);
			assert_true(
				segment.payload.at + segment.payload.len <= bytes.at + bytes.len);
		}
	}
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test_setup(a_segment_of_ipv4, open_port),
		cmocka_unit_test_setup(a_segment_of_ipv6, open_port),
		cmocka_unit_test_setup(ethernet, open_port),
		cmocka_unit_test_setup(vlan, open_port),
		cmocka_unit_test_setup(ipv4, open_port),
		cmocka_unit_test_setup(ipv4_headers_that_lie, open_port),
		cmocka_unit_test_setup(sources, open_port),
		cmocka_unit_test_setup(extension_headers, open_port),
		cmocka_unit_test_setup(limits_of_extension_headers, open_port),
		cmocka_unit_test_setup(ipv6, open_port),
		cmocka_unit_test_setup(segments, open_port),
		cmocka_unit_test_setup(classes, open_port),
		cmocka_unit_test_setup(subnets, open_port),
		cmocka_unit_test_setup(random_damage, open_port),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
