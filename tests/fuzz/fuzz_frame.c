// Whatever arrives as frames, through the whole network of two workers, in virtual time: events are
// those of drivers/stream.h, every packet that leaves is whole and its checksums are right, no
// connection and no buffer is lost.
//
// Input: the way in which the worker answers, then steps. A step is a byte, whose low three bits
// say what and whose fourth at which worker, and what belongs to it:
//
//   0 raw       two bytes of length, then a frame
//   1 believed  likewise, its checksums counted as verified, so that damage goes deeper
//   2 segment   five bytes: flow, flags, how far seq and ack are off, length; of a peer that keeps
//               track of its flows, so that handshakes succeed
//   3 time      a byte: 2^n us pass
//   4 write     two bytes of length: to a stream that is open
//   5 answers   a byte: the way in which the worker answers from now on
//   6 end       a byte: close, reset, shut, pause, resume a stream
//   7 turns     a byte of turns, with so much room for events

#include "dataplane/net/frame.h"
#include "dataplane/net/net.h"
#include "tests/unit/net/fake_ethdev.h"
#include "tests/unit/net/packets.h"

#include <assert.h>
#include <stdio.h>
#include <stdlib.h>

#define WORKERS 2u
#define FLOWS 8u // half of them IPv6
#define STREAMS_MAX 16u
#define PORT_ID 2u
#define EVENTS_MAX 64
#define FIRST_PORT 40000u

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t len);

enum answers { WRITES = 1, SHUTS = 2, CLOSES = 4, RESETS = 8, PAUSES = 16 };

struct flow {
	uint32_t next, expected; // sequence numbers of the peer's next byte, and of ours
};

static struct input {
	const uint8_t *at, *end;
} input;
static struct net_plan plan;
static struct net_shared *shared;
static struct stream_driver *drivers[WORKERS];
static struct ethdev_worker *devices[WORKERS];
static struct flow flows[FLOWS];
static struct stream *streams[WORKERS][STREAMS_MAX];
static bool has_ended[WORKERS][STREAMS_MAX]; // EOF was told
static bool is_shut[WORKERS][STREAMS_MAX]; // nothing is written any more
static uint64_t opened[WORKERS];
static uint8_t answers;
static char bytes[4096];

static unsigned next(void)
{
	return input.at < input.end ? *input.at++ : 0;
}

static void prepare_plan(void)
{
	plan = (struct net_plan){.worker_count = WORKERS, .port_count = 1};
	struct net_port_plan *port = &plan.ports[0];
	*port = (struct net_port_plan){.id = PORT_ID,
		.mtu = 1500,
		.has_rss = true,
		.has_exception = true,
		.address_count = 2,
		.gateway_count = 2};
	packets_mac(port->mac, OUR_MAC);
	packets_ip(port->addresses[0].ip, OUR_IPV4);
	port->addresses[0].prefix = 24;
	packets_ip(port->addresses[1].ip, OUR_IPV6);
	port->addresses[1].prefix = 64;
	packets_ip(port->gateways[0], "192.0.2.254");
	packets_ip(port->gateways[1], "fe80::fe");
	plan.tcp = (struct tcp_plan){.connections_max = 3,
		.reserve = 1,
		.wait_max = 2,
		.works_max = 3,
		.send_chunks = 16,
		.receive_chunks = 16,
		.chunk_bytes = 512,
		.send_max = 8192,
		.receive_max = 8192,
		.queue_high = 4096,
		.rto_min_us = 200000,
		.rto_max_us = 60000000,
		.give_up_us = 30000000,
		.idle_us = 90000000,
		.wait_us = 60000000,
		.linger_us = 20000000,
		.delayed_ack_us = 40000,
		.syn_rate = 20,
		.challenge_rate = 4,
		.secret = "a secret of thirty-two bytes ..",
		.listener_count = 1};
	plan.tcp.listeners[0].port = 443;
}

static void start(void)
{
	prepare_plan();
	fake_now_us = 1000000000;
	int ret = net_share(&plan, &shared);
	assert(ret == 0);
	for (unsigned i = 0; i < WORKERS; i++) {
		devices[i] = fake_worker(i);
		ret = net_create(&plan, i, devices[i], shared, &drivers[i]);
		assert(ret == 0);
		opened[i] = 0;
	}
	for (unsigned i = 0; i < FLOWS; i++)
		flows[i] = (struct flow){.next = 0xfffffff0 + i};
	memset(streams, 0, sizeof(streams));
	memset(has_ended, 0, sizeof(has_ended));
	answers = (uint8_t)next();
}

static void end(void)
{
	for (unsigned i = 0; i < WORKERS; i++) {
		const struct tcp_stats *stats = net_tcp_stats(drivers[i]);
		assert(stats->counters[TCP_accepted] == opened[i]);
		assert(stats->counters[TCP_accepted] == stats->counters[TCP_closed] + stats->open);
		stream_destroy(drivers[i]);
		fake_worker(i);
	}
	net_share_end(shared);
	assert(fake_buffers_out() == 0);
}

// What left, looked at as whoever it is for would.
static void check_sent(struct span sent)
{
	struct net_port_plan peer = {.address_count = 1};
	struct frame frame;
	struct tcp_segment segment;
	assert(sent.len >= FRAME_ETHERNET_BYTES && sent.len <= FRAME_ETHERNET_BYTES + 1500u);
	memcpy(peer.mac, sent.at, 6);
	if (sent.at[12] == 0x08 && sent.at[13] == 0x00)
		ip_map(peer.addresses[0].ip, sent.at + 14 + 16);
	else
		memcpy(peer.addresses[0].ip, sent.at + 14 + 24, 16);
	frame_read(&peer, 0, sent, (struct frame_checked){0}, &frame, &segment);
	if (frame.kind == FRAME_IS_DROPPED) {
		fprintf(stderr, "%s\n", net_counter_name(frame.drop));
		abort();
	}
	unsigned flow = segment.peer.port == 443 ? segment.local.port - FIRST_PORT : FLOWS;
	if (frame.kind != FRAME_IS_SEGMENT || flow >= FLOWS)
		return;
	uint32_t after = segment.seq + tcp_segment_len(&segment);
	if (segment.flags & TCP_SYN || tcp_after(after, flows[flow].expected))
		flows[flow].expected = after;
}

static unsigned slot_of(unsigned worker, const struct stream *s)
{
	unsigned slot = (unsigned)((struct stream **)s->user - streams[worker]);
	assert(slot < STREAMS_MAX && streams[worker][slot] == s);
	return slot;
}

static void forget(unsigned worker, const struct stream *s)
{
	streams[worker][slot_of(worker, s)] = NULL;
}

static void write_to(unsigned worker, struct stream *s, size_t len)
{
	if (is_shut[worker][slot_of(worker, s)])
		return;
	struct span parts[] = {{bytes, len / 3}, {bytes, len - len / 3}};
	if (stream_write(drivers[worker], s, parts, 2) == len)
		return;
	stream_close(drivers[worker], s, true);
	forget(worker, s);
}

static void shut(unsigned worker, struct stream *s)
{
	bool *is_done = &is_shut[worker][slot_of(worker, s)];
	if (!*is_done)
		stream_shut(drivers[worker], s);
	*is_done = true;
}

static void opens(unsigned worker, struct stream *s)
{
	unsigned slot = 0;
	while (streams[worker][slot])
		slot++;
	assert(slot < STREAMS_MAX && !s->user);
	streams[worker][slot] = s;
	has_ended[worker][slot] = is_shut[worker][slot] = false;
	s->user = &streams[worker][slot];
	opened[worker]++;
	if (answers & PAUSES)
		stream_pause(drivers[worker], s);
}

static void hears(unsigned worker, const struct stream_event *event)
{
	unsigned slot = slot_of(worker, event->stream), sum = 0;
	assert(!has_ended[worker][slot]);
	assert(event->data.len > 0);
	for (size_t i = 0; i < event->data.len; i++)
		sum += (unsigned char)event->data.at[i];
	bytes[0] = (char)sum;
	if (answers & (CLOSES | RESETS)) {
		stream_close(drivers[worker], event->stream, answers & RESETS);
		forget(worker, event->stream);
	} else if (answers & WRITES) {
		write_to(worker, event->stream, 1 + sum % sizeof(bytes));
	}
}

static void ends(unsigned worker, struct stream *s)
{
	unsigned slot = slot_of(worker, s);
	assert(!has_ended[worker][slot]);
	has_ended[worker][slot] = true;
	if (answers & SHUTS) {
		shut(worker, s);
		return;
	}
	stream_close(drivers[worker], s, false);
	forget(worker, s);
}

static void turn(unsigned worker, int room)
{
	struct stream_event events[EVENTS_MAX];
	fake_now_us += 10;
	int count = stream_poll(drivers[worker], events, room, 0);
	assert(count >= 0 && count <= room);
	for (int i = 0; i < count; i++) {
		switch (events[i].kind) {
		case STREAM_NONE:
			break;
		case STREAM_OPENED:
			opens(worker, events[i].stream);
			break;
		case STREAM_DATA:
			hears(worker, &events[i]);
			break;
		case STREAM_WRITABLE:
			slot_of(worker, events[i].stream);
			break;
		case STREAM_EOF:
			ends(worker, events[i].stream);
			break;
		case STREAM_CLOSED:
			forget(worker, events[i].stream);
			break;
		}
	}
	for (unsigned i = 0; i < fake_sent_count(devices[worker]); i++)
		check_sent(fake_sent(devices[worker], i));
	fake_forget(devices[worker]);
}

static void turn_all(int room)
{
	for (unsigned i = 0; i < WORKERS; i++)
		turn(i, room);
}

static void raw(unsigned worker, uint64_t flags)
{
	size_t len = next() << 8, left;
	len = (len | next()) % 2048;
	left = (size_t)(input.end - input.at);
	len = len < left ? len : left;
	fake_arrive(devices[worker], PORT_ID, (struct span){(const char *)input.at, len}, flags);
	input.at += len;
}

static void segment(unsigned worker)
{
	unsigned flow = next() % FLOWS, flags = next();
	int32_t seq = (int8_t)next(), ack = (int8_t)next();
	unsigned more = next() * 6, len = flags & TCP_SYN ? 0 : more;
	struct flow *f = &flows[flow];
	struct packets_frame frame = {.is_ipv6 = flow >= FLOWS / 2,
		.l4 = packets_segment((uint16_t)(FIRST_PORT + flow), 443, f->next + (uint32_t)seq,
			f->expected + (uint32_t)ack, (uint8_t)flags, len),
		.l4_bytes = 20 + len};
	if (seq == 0)
		f->next += len + !!(flags & TCP_SYN) + !!(flags & TCP_FIN);
	fake_arrive(devices[worker], PORT_ID, packets_build(&frame), 0);
}

static struct stream *pick(unsigned worker, unsigned which)
{
	for (unsigned i = 0; i < STREAMS_MAX; i++)
		if (streams[worker][(which + i) % STREAMS_MAX])
			return streams[worker][(which + i) % STREAMS_MAX];
	return NULL;
}

static void end_stream(unsigned worker, unsigned how)
{
	struct stream *s = pick(worker, how >> 3);
	if (!s)
		return;
	switch (how & 7) {
	case 0:
	case 1:
		stream_close(drivers[worker], s, how & 1);
		forget(worker, s);
		return;
	case 2:
		shut(worker, s);
		return;
	case 3:
		stream_pause(drivers[worker], s);
		return;
	default:
		stream_resume(drivers[worker], s);
	}
}

static void step(unsigned what, unsigned worker)
{
	switch (what) {
	case 0:
		raw(worker, 0);
		break;
	case 1:
		raw(worker, RTE_MBUF_F_RX_IP_CKSUM_GOOD | RTE_MBUF_F_RX_L4_CKSUM_GOOD);
		break;
	case 2:
		segment(worker);
		break;
	case 3:
		fake_now_us += UINT64_C(1) << next() % 30;
		break;
	case 4: {
		size_t len = next() << 8;
		len = 1 + (len | next()) % sizeof(bytes);
		struct stream *s = pick(worker, 0);
		if (s)
			write_to(worker, s, len);
		break;
	}
	case 5:
		answers = (uint8_t)next();
		break;
	case 6:
		end_stream(worker, next());
		break;
	case 7: {
		unsigned how = next();
		for (unsigned i = 0; i < how % 8; i++)
			turn_all(STREAM_EVENTS_MIN + (int)(how >> 3));
		return;
	}
	}
	turn_all(EVENTS_MAX);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t len)
{
	static bool is_open;
	if (!is_open && !fake_open())
		abort();
	is_open = true;
	input = (struct input){data, data + len};
	start();
	while (input.at < input.end) {
		unsigned what = next();
		step(what & 7, what >> 3 & 1);
	}
	turn_all(EVENTS_MAX);
	end();
	return 0;
}
