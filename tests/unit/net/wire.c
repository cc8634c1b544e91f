// The rig of wire.h.

#include "tests/unit/net/wire.h"

#include "dataplane/net/tcp/receive.h"

#include <arpa/inet.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>

#define START_US 7000000000u

// A segment out, with its options as the peer reads them.
static void catch (void *ctx, const struct tcp_out *out)
{
	struct wire *wire = ctx;
	assert(wire->out_count < WIRE_OUT_MAX);
	assert(out->option_bytes % 4 == 0);
	assert(out->option_bytes <= sizeof(out->options));
	struct wire_out *caught = &wire->outs[wire->out_count++];
	*caught = (struct wire_out){
		.seq = out->seq,
		.ack = out->ack,
		.window = out->window,
		.flags = out->flags,
		.local = *out->local,
		.peer = *out->peer,
		.hop = *out->hop,
		.is_control = out->is_control,
	};
	for (unsigned i = 0; i < out->part_count; i++) {
		assert(caught->len + out->parts[i].len <= sizeof(caught->text));
		memcpy(caught->text + caught->len, out->parts[i].at, out->parts[i].len);
		caught->len += out->parts[i].len;
	}
	char header[TCP_HEADER_BYTES + TCP_OPTIONS_MAX] = {0};
	header[12] = (char)((TCP_HEADER_BYTES + out->option_bytes) / 4 << 4);
	header[13] = (char)out->flags;
	memcpy(header + TCP_HEADER_BYTES, out->options, out->option_bytes);
	bool is_read = tcp_segment_read(
		(struct span){header, TCP_HEADER_BYTES + out->option_bytes}, &caught->read);
	assert(is_read);
	if (caught->read.has_timestamp)
		wire->ts_echo = caught->read.ts_value;
}

static uint64_t chance(void *ctx)
{
	(void)ctx;
	return 4; // by a fair throw
}

struct tcp_plan wire_plan(void)
{
	return (struct tcp_plan){
		.connections_max = 8,
		.reserve = 2,
		.wait_max = 4,
		.works_max = 8,
		.send_chunks = 64,
		.receive_chunks = 64,
		.chunk_bytes = 512,
		.send_max = 16384,
		.receive_max = 16384,
		.queue_high = 8192,
		.rto_min_us = 200000,
		.rto_max_us = 60000000,
		.give_up_us = 30000000,
		.idle_us = 90000000,
		.wait_us = 60000000,
		.linger_us = 20000000,
		.delayed_ack_us = 40000,
		.syn_rate = 100,
		.challenge_rate = 4,
		.mss_v4 = 1460,
		.mss_v6 = 1440,
		.secret = "a secret of thirty-two bytes ..",
		.seed = 42,
		.listener_count = 2,
		.listeners = {{{0}, 80}, {{0}, 443}},
	};
}

static struct stream_address v4(uint32_t ip, uint16_t port)
{
	struct stream_address address = {.ip = {[10] = 0xff, [11] = 0xff}, .port = port};
	ip = htonl(ip);
	memcpy(address.ip + 12, &ip, 4);
	return address;
}

void wire_make(struct wire *wire)
{
	wire->io = (struct tcp_io){.ctx = wire, .send = catch, .random = chance};
	wire->t = tcp_create(&wire->plan, &wire->io);
	assert(wire->t);
	wire->now_us = START_US;
	wire->event_max = WIRE_EVENTS_MAX;
	wire->local = v4(0xc0000201, 80);
	wire->peer = v4(0xc6336401, 40000);
	wire->first = 0xfffffff0; // numbers wrap soon
	wire->window = 65535;
	wire_turn(wire, NULL, 0);
	wire_flush(wire);
}

void wire_start(struct wire *wire)
{
	memset(wire, 0, sizeof(*wire));
	wire->plan = wire_plan();
	wire_make(wire);
}

void wire_end(struct wire *wire)
{
	tcp_destroy(wire->t);
}

struct tcp_segment wire_segment(
	const struct wire *wire, uint8_t flags, uint32_t seq, const char *text)
{
	struct tcp_segment segment = {
		.peer = wire->peer,
		.local = wire->local,
		.hop = {.mac = {2, 0, 0, 0, 0, 9}, .port = 1},
		.seq = wire->first + seq,
		.ack = wire->cookie + wire->ack,
		.window = (uint16_t)wire->window,
		.flags = flags,
		.payload = {text, text ? strlen(text) : 0},
	};
	if (wire->ts_echo) {
		segment.has_timestamp = true;
		segment.ts_value = (uint32_t)(wire->now_us / 1000);
		segment.ts_echo = wire->ts_echo;
	}
	return segment;
}

unsigned wire_turn(struct wire *wire, const struct tcp_segment *segments, unsigned count)
{
	tcp_turn(wire->t, wire->now_us, wire->events, wire->event_max);
	unsigned taken = tcp_input(wire->t, segments, count);
	tcp_due(wire->t);
	for (int i = 0; i < tcp_event_count(wire->t); i++)
		if (wire->events[i].kind == STREAM_OPENED)
			wire->stream = wire->events[i].stream;
	return taken;
}

void wire_flush(struct wire *wire)
{
	tcp_flush(wire->t);
	wire_check(wire);
}

void wire_give(struct wire *wire, struct tcp_segment segment)
{
	unsigned taken = wire_turn(wire, &segment, 1);
	assert(taken == 1);
	wire_flush(wire);
}

void wire_send(struct wire *wire, uint8_t flags, uint32_t seq, const char *text)
{
	wire_give(wire, wire_segment(wire, flags, seq, text));
}

void wire_wait(struct wire *wire, uint64_t us)
{
	wire->now_us += us;
	wire_turn(wire, NULL, 0);
	wire_flush(wire);
}

struct tcp_segment wire_syn(struct wire *wire, unsigned options)
{
	wire->ts_echo = options & WIRE_TIMESTAMPS ? 1 : 0;
	struct tcp_segment syn = wire_segment(wire, TCP_SYN, 0, NULL);
	syn.ack = syn.ts_echo = 0;
	syn.has_mss = true;
	syn.mss = 1460;
	syn.has_sack_permitted = options & WIRE_SACK;
	syn.has_scale = options & WIRE_SCALE;
	syn.scale = options & WIRE_SCALE ? 7 : 0;
	return syn;
}

void wire_open(struct wire *wire, unsigned options)
{
	wire_give(wire, wire_syn(wire, options));
	const struct wire_out *answer = wire_last(wire);
	assert(answer->flags == (TCP_SYN | TCP_ACK));
	wire->cookie = answer->seq;
	wire->ack = 1;
	wire_send(wire, TCP_ACK, 1, NULL);
	wire_forget(wire);
}

void wire_write(struct wire *wire, const char *text)
{
	struct span span = {text, strlen(text)};
	wire_turn(wire, NULL, 0);
	size_t taken = tcp_write(wire->t, wire->stream, &span, 1);
	assert(taken == span.len);
	wire_flush(wire);
}

void wire_shut(struct wire *wire)
{
	wire_turn(wire, NULL, 0);
	tcp_shut(wire->t, wire->stream);
	wire_flush(wire);
}

void wire_close(struct wire *wire, bool reset)
{
	wire_turn(wire, NULL, 0);
	tcp_close(wire->t, wire->stream, reset);
	wire_flush(wire);
}

const struct wire_out *wire_last(const struct wire *wire)
{
	assert(wire->out_count > 0);
	return &wire->outs[wire->out_count - 1];
}

bool wire_is_told(const struct wire *wire, uint32_t seq, uint32_t ack)
{
	const struct wire_out *out = wire_last(wire);
	return out->flags == TCP_ACK && out->len == 0 && out->seq == wire->cookie + seq &&
	       out->ack == wire->first + ack;
}

void wire_forget(struct wire *wire)
{
	wire->out_count = 0;
}

const struct tcp_conn *wire_conn(const struct wire *wire)
{
	return (const struct tcp_conn *)wire->stream;
}

uint64_t wire_count(const struct wire *wire, enum tcp_counter which)
{
	return tcp_stats(wire->t)->counters[which];
}

bool wire_has_events(const struct wire *wire, unsigned count, ...)
{
	va_list kinds;
	va_start(kinds, count);
	bool is_same = (unsigned)tcp_event_count(wire->t) == count;
	for (unsigned i = 0; i < count && is_same; i++)
		is_same = wire->events[i].kind == va_arg(kinds, enum stream_event_kind);
	va_end(kinds);
	return is_same;
}

const char *wire_text(const struct wire *wire)
{
	static char text[65536];
	size_t len = 0;
	for (int i = 0; i < tcp_event_count(wire->t); i++) {
		if (wire->events[i].kind != STREAM_DATA)
			continue;
		memcpy(text + len, wire->events[i].data.at, wire->events[i].data.len);
		len += wire->events[i].data.len;
	}
	text[len] = 0;
	return text;
}

static void check_conn(const struct tcp *t, const struct tcp_conn *c)
{
	assert(c->timer.slot != TIMERS_UNLINKED);
	uint64_t hash = flows_hash(t->flows, &c->stream.local, &c->stream.peer);
	assert(tcp_find(t, hash, &c->stream.local, &c->stream.peer) == c);
	assert(c->rcv_edge - c->rcv_nxt <= t->plan.receive_max);
	assert(c->snd_nxt - c->snd_una <= t->plan.send_max + 1);
}

void wire_check(const struct wire *wire)
{
	const struct tcp *t = wire->t;
	uint32_t open = 0;
	for (uint32_t i = 0; i < t->conn_max; i++) {
		if (t->conns[i].state == TCP_FREE)
			continue;
		open++;
		check_conn(t, &t->conns[i]);
	}
	assert(open == t->conn_count);
	assert(open == t->timers.count);
	assert(wire_count(wire, TCP_accepted) == wire_count(wire, TCP_closed) + open);
}
