// Goal: a segment leaves as RFC 791, 8200 and 9293 have it, its checksums right or left to the
// device, whatever the pieces of its payload.

#include "dataplane/net/frame.h"
#include "tests/unit/http/dice.h"
#include "tests/unit/net/stage.h"

#include <rte_mbuf.h>

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

static struct stream_address ours, peers;
static struct tcp_hop hop;
static struct tcp_out out;

static void begin(bool is_ipv6)
{
	packets_ip(ours.ip, is_ipv6 ? OUR_IPV6 : OUR_IPV4);
	packets_ip(peers.ip, is_ipv6 ? PEER_IPV6 : PEER_IPV4);
	ours.port = 443;
	peers.port = 40000;
	hop = (struct tcp_hop){.port = 0};
	packets_mac(hop.mac, PEER_MAC);
	out = (struct tcp_out){.local = &ours,
		.peer = &peers,
		.hop = &hop,
		.seq = 0x01020304,
		.ack = 0x05060708,
		.window = 0x1234,
		.flags = TCP_ACK | TCP_PSH};
	fake_forget(stage.devices[0]);
}

static void leave(void)
{
	stage.tcps[0]->io->send(stage.tcps[0]->io->ctx, &out);
}

// What left, read by our own reader as if we were the peer.
static void read_back(struct frame *frame, struct tcp_segment *segment, bool is_filled)
{
	struct net_port_plan peer = {.address_count = 1, .vlan = stage.plan.ports[0].vlan};
	packets_mac(peer.mac, PEER_MAC);
	memcpy(peer.addresses[0].ip, peers.ip, 16);
	frame_read(&peer, 0, fake_sent(stage.devices[0], 0),
		(struct frame_checked){is_filled, is_filled}, frame, segment);
	assert_int_equal(frame->kind, FRAME_IS_SEGMENT);
}

static void the_bytes_of_ipv4(void **state)
{
	(void)state;
	begin(false);
	out.part_count = 1;
	out.parts[0] = SPAN("hi!");
	leave();
	static const char expected[] = "\x02\0\0\0\0\x02\x02\0\0\0\0\x01\x08\0" // Ethernet
				       "\x45\0\0\x2b\0\0\x40\0\x40\x06\x52\x5b" // IP
				       "\xc0\0\x02\x01\xc6\x33\x64\x07"
				       "\x01\xbb\x9c\x40\x01\x02\x03\x04\x05\x06\x07\x08"
				       "\x50\x18\x12\x34";
	struct span sent = fake_sent(stage.devices[0], 0);
	assert_int_equal(sent.len, 14 + 43);
	assert_memory_equal(sent.at, expected, 24);
	assert_memory_equal(sent.at + 26, expected + 26, sizeof(expected) - 1 - 26);
	assert_int_equal(packets_checksum((const uint8_t *)sent.at + 14, 20), 0);
	assert_int_equal(fake_sent_buffer(stage.devices[0], 0)->ol_flags, 0);
	assert_int_equal(fake_sent_port(stage.devices[0], 0), STAGE_PORT);
}

static void the_header_of_ipv6(void **state)
{
	(void)state;
	begin(true);
	leave();
	struct span sent = fake_sent(stage.devices[0], 0);
	char label[3];
	assert_int_equal(sent.len, 14 + 60);
	assert_int_equal((uint8_t)sent.at[14], 0x60);
	memcpy(label, sent.at + 15, 3);
	assert_int_equal(label[0] & 0xf0, 0);
	assert_memory_equal(sent.at + 18, "\0\x14\x06\x40", 4);
	begin(true);
	out.seq++;
	leave();
	assert_memory_equal(fake_sent(stage.devices[0], 0).at + 15, label, 3); // the flow's
	begin(true);
	peers.port++;
	leave();
	assert_memory_not_equal(fake_sent(stage.devices[0], 0).at + 15, label, 3);
}

static char payload[8940];

static void random_pieces(void **state)
{
	(void)state;
	dice_begin();
	for (unsigned round = 0; round < 3000; round++) {
		stage.plan.ports[0].vlan = 0;
		begin(dice(2));
		unsigned len = 0;
		for (unsigned i = 0; i < sizeof(payload); i++)
			payload[i] = (char)dice(256);
		out.option_bytes = (uint8_t)(4 * dice(11));
		memset(out.options, 1, sizeof(out.options));
		out.part_count = dice(TCP_PARTS_MAX + 1);
		for (unsigned i = 0; i < out.part_count; i++) {
			out.parts[i] = (struct span){payload + len, dice(dice(2) ? 9 : 1100)};
			len += (unsigned)out.parts[i].len;
		}
		leave();
		struct frame frame;
		struct tcp_segment segment;
		read_back(&frame, &segment, false); // which looks at the checksums
		assert_true(span_is_equal(segment.payload, (struct span){payload, len}));
		assert_int_equal(segment.seq, out.seq);
		assert_int_equal(segment.ack, out.ack);
		assert_int_equal(segment.window, out.window);
		assert_int_equal(segment.flags, out.flags);
	}
}

static void the_device_fills_them(void **state)
{
	(void)state;
	stage_end(NULL);
	stage_plan();
	stage.plan.ports[0].fills_ip = stage.plan.ports[0].fills_l4 = true;
	stage.plan.ports[0].vlan = 5;
	stage_start(true);
	for (unsigned is_ipv6 = 0; is_ipv6 < 2; is_ipv6++) {
		begin(is_ipv6);
		out.part_count = 2;
		out.option_bytes = 4;
		memset(out.options, 1, 4);
		out.parts[0] = SPAN("odd");
		out.parts[1] = SPAN("even");
		leave();
		struct frame frame;
		struct tcp_segment segment;
		read_back(&frame, &segment, true);
		assert_true(span_is_equal(segment.payload, SPAN("oddeven")));
		const struct rte_mbuf *buffer = fake_sent_buffer(stage.devices[0], 0);
		assert_int_equal(buffer->l2_len, 18);
		assert_int_equal(buffer->l3_len, is_ipv6 ? 40 : 20);
		assert_int_equal(buffer->l4_len, 24);
		assert_int_equal(buffer->ol_flags,
			RTE_MBUF_F_TX_TCP_CKSUM |
				(is_ipv6 ? RTE_MBUF_F_TX_IPV6
					 : RTE_MBUF_F_TX_IPV4 | RTE_MBUF_F_TX_IP_CKSUM));
		// The device sums from the pseudo-header's sum on: so does the twin.
		struct span sent = fake_sent(stage.devices[0], 0);
		unsigned l4 = 18 + buffer->l3_len;
		uint16_t checksum = packets_checksum((const uint8_t *)sent.at + l4, sent.len - l4);
		static uint8_t whole[2000];
		memcpy(whole, sent.at, sent.len);
		whole[l4 + 16] = (uint8_t)(checksum >> 8);
		whole[l4 + 17] = (uint8_t)checksum;
		struct net_port_plan peer = {.address_count = 1, .vlan = 5};
		packets_mac(peer.mac, PEER_MAC);
		memcpy(peer.addresses[0].ip, peers.ip, 16);
		frame_read(&peer, 0, (struct span){(char *)whole, sent.len},
			(struct frame_checked){.ip = true}, &frame, &segment);
		assert_int_equal(frame.kind, FRAME_IS_SEGMENT);
	}
}

// The gateway says, by ARP, that it is at 02:00:00:00:00:`last`.
static void gateway_at(uint8_t last)
{
	const char message[28] = {
		0, 1, 8, 0, 6, 4, 0, 2, 2, [13] = (char)last, (char)192, 0, 2, (char)254};
	struct packets_frame f = {.type = FRAME_ARP, .l4 = message, .l4_bytes = sizeof(message)};
	stage_arrive(&f);
}

static void a_gateway_that_fails_over_is_followed(void **state)
{
	(void)state;
	gateway_at(2); // where the peer's segments come from
	begin(false);
	leave();
	assert_int_equal(fake_sent(stage.devices[0], 0).at[5], 2);
	gateway_at(9);
	begin(false);
	leave();
	assert_int_equal(fake_sent(stage.devices[0], 0).at[5], 9);
}

static void no_buffer_no_segment(void **state)
{
	(void)state;
	begin(false);
	fake_starve(stage.devices[0], 1);
	leave();
	assert_int_equal(fake_sent_count(stage.devices[0]), 0);
}

int main(void)
{
#define TEST(name) cmocka_unit_test_setup_teardown(name, open_stage, stage_end)
	const struct CMUnitTest tests[] = {
		TEST(the_bytes_of_ipv4),
		TEST(the_header_of_ipv6),
		TEST(random_pieces),
		TEST(the_device_fills_them),
		TEST(a_gateway_that_fails_over_is_followed),
		TEST(no_buffer_no_segment),
	};
	return stage_open() ? cmocka_run_group_tests(tests, NULL, NULL) : 1;
}
