// The stage. Time moves only in play_until(), by what tcp_quiet_us() allows: a quiet time that is
// too long shows as a late segment.

#include "tests/script/play.h"

#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "dataplane/net/tcp/conn.h"
#include "tests/unit/controller/random.h"

#define START_US 1000000000ull
#define STEP_MIN_US 100u // turns of a busy worker
#define STEP_MAX_US 1000000u
#define END_US 7200000000ull // every deadline of a script's plan is below

static const char *const kinds[] = {"none", "opened", "data", "writable", "eof", "closed"};

void play_fail(const struct play *p, const char *format, ...)
{
	va_list args;
	va_start(args, format);
	fprintf(stderr, "%s:%d: ", p->file, p->line);
	vfprintf(stderr, format, args);
	va_end(args);
	fputs("\n", stderr);
	const unsigned from = p->trace_count > PLAY_TRACE ? p->trace_count - PLAY_TRACE : 0;
	for (unsigned i = from; i < p->trace_count; i++)
		fprintf(stderr, "    %s\n", p->trace[i % PLAY_TRACE]);
	exit(1);
}

static void trace(struct play *p, const char *what, const struct play_flow *flow, const char *text)
{
	char *line = p->trace[p->trace_count++ % PLAY_TRACE];
	snprintf(line, sizeof(p->trace[0]), "%10.3f ms  flow %d  %-5s %s",
		(double)(p->now_us - START_US) / 1000, (int)(flow - p->flows), what, text);
	if (p->is_loud)
		puts(line);
}

// --- what comes out

static struct play_flow *flow_of(struct play *p, const struct stream_address *peer)
{
	for (unsigned i = 0; i < PLAY_FLOWS; i++)
		if (memcmp(&p->flows[i].peer, peer, sizeof(*peer)) == 0)
			return &p->flows[i];
	return p->flow; // a flood's
}

// What goes out must be right in itself, whatever the script expects.
static void check_out(struct play *p, struct play_flow *f, const struct wire *s)
{
	const uint32_t offset = s->seq - f->our_isn - 1;
	if (!wire_matches(1, offset, s->payload))
		play_fail(p, "bytes differ from what was written: %s",
			wire_text(s, f->our_isn, f->peer_isn));
	if (s->payload.len > 0 && offset + s->payload.len > f->written)
		play_fail(p, "bytes that nobody wrote: %s", wire_text(s, f->our_isn, f->peer_isn));
	if (s->has_timestamp && f->has_timestamps && tcp_before(s->ts_value, f->ts_ours))
		play_fail(p, "our timestamps go back");
}

static void note_syn_ack(struct play_flow *f, const struct wire *s)
{
	f->our_isn = s->seq;
	f->our_next = 0;
	f->is_scaled = s->has_scale;
	f->our_scale = s->has_scale ? s->scale : 0;
	f->has_timestamps = s->has_timestamp;
	f->ts_base = s->ts_value;
	f->written = f->told = 0;
}

static void take_out(void *ctx, const struct tcp_out *out)
{
	static char bytes[WIRE_BYTES_MAX];
	struct play *p = ctx;
	struct play_flow *f = flow_of(p, out->peer);
	if (p->out_count == PLAY_QUEUE)
		play_fail(p, "more segments than the runner keeps");
	struct play_out *o = &p->outs[p->out_count++];
	*o = (struct play_out){.at_us = p->now_us, .flow = f, .our_isn_before = f->our_isn};
	wire_read((struct span){bytes, wire_of_out(out, bytes)}, &o->wire);
	if (memcmp(out->local, &f->local, sizeof(f->local)) != 0)
		play_fail(p, "sent from another address than the peer wrote to");
	if ((o->wire.flags & (TCP_SYN | TCP_ACK)) == (TCP_SYN | TCP_ACK))
		note_syn_ack(f, &o->wire);
	else
		check_out(p, f, &o->wire);
	if (o->wire.has_timestamp)
		f->ts_ours = o->wire.ts_value;
	trace(p, ">", f, wire_text(&o->wire, f->our_isn, f->peer_isn));
}

static uint64_t take_random(void *ctx)
{
	return random_next(&((struct play *)ctx)->random);
}

// --- what is told

static struct play_flow *flow_of_stream(struct play *p, struct stream *s)
{
	struct play_flow *f = flow_of(p, &s->peer);
	if (f->stream != s)
		play_fail(p, "an event for a stream that is not open");
	return f;
}

static void take_data(struct play *p, struct play_flow *f, struct span data)
{
	if (data.len == 0)
		play_fail(p, "STREAM_DATA without data");
	if (!wire_matches(2, f->told, data))
		play_fail(p, "bytes differ from what the peer sent");
	f->told += data.len;
}

static void take_event(struct play *p, const struct stream_event *e)
{
	if (e->kind == STREAM_NONE)
		return;
	if (e->kind == STREAM_OPENED)
		flow_of(p, &e->stream->peer)->stream = e->stream;
	struct play_flow *f = flow_of_stream(p, e->stream);
	if (e->kind == STREAM_DATA)
		take_data(p, f, e->data);
	if (e->kind == STREAM_CLOSED)
		f->stream = NULL;
	char text[60];
	snprintf(text, sizeof(text), "%s %zu %s", kinds[e->kind], e->data.len,
		e->kind == STREAM_CLOSED ? strerrorname_np(e->error) : "");
	trace(p, "event", f, text);
	struct play_told *last = p->told_count > 0 ? &p->told[p->told_count - 1] : NULL;
	if (last && last->kind == STREAM_DATA && e->kind == STREAM_DATA && last->flow == f) {
		last->bytes += e->data.len;
		return;
	}
	if (p->told_count == PLAY_QUEUE)
		play_fail(p, "more events than the runner keeps");
	p->told[p->told_count++] = (struct play_told){.at_us = p->now_us,
		.flow = f,
		.kind = e->kind,
		.error = e->error,
		.bytes = e->data.len};
}

static void collect(struct play *p)
{
	for (; p->events_seen < tcp_event_count(p->tcp); p->events_seen++)
		take_event(p, &p->events[p->events_seen]);
}

// --- turns and time

void play_turn(struct play *p)
{
	play_begin(p);
	if (p->is_in_turn)
		return;
	p->is_in_turn = true;
	p->events_seen = 0;
	tcp_turn(p->tcp, p->now_us, p->events, TCP_BURST_MAX);
}

void play_flush(struct play *p)
{
	if (!p->is_in_turn)
		return;
	collect(p);
	tcp_flush(p->tcp);
	collect(p);
	p->is_in_turn = false;
}

static bool is_pending(const struct play *p)
{
	return p->out_count > 0 || p->told_count > 0;
}

void play_until(struct play *p, uint64_t us)
{
	play_begin(p);
	play_flush(p);
	while (p->now_us < us && !is_pending(p)) {
		uint64_t step = tcp_quiet_us(p->tcp, STEP_MAX_US);
		step = step < STEP_MIN_US ? STEP_MIN_US : step;
		p->now_us = p->now_us + step > us ? us : p->now_us + step;
		play_turn(p);
		tcp_due(p->tcp);
		play_flush(p);
	}
}

void play_expect_nothing(const struct play *p)
{
	if (p->out_count > 0)
		play_fail(p, "before this step, a segment that no step names: %s",
			wire_text(&p->outs[0].wire, p->outs[0].flow->our_isn,
				p->outs[0].flow->peer_isn));
	if (p->told_count > 0)
		play_fail(p, "before this step, an event that no step names: %s %zu",
			kinds[p->told[0].kind], p->told[0].bytes);
}

void play_took_out(struct play *p)
{
	memmove(p->outs, p->outs + 1, --p->out_count * sizeof(p->outs[0]));
}

void play_took_told(struct play *p)
{
	memmove(p->told, p->told + 1, --p->told_count * sizeof(p->told[0]));
}

// --- what goes in

static void read_segment(struct play *p, const struct wire *s, char *bytes, struct tcp_segment *in)
{
	const struct span all = {bytes, wire_write(s, bytes)};
	if (!tcp_segment_read(all, in))
		play_fail(p, "tcp_segment_read() takes it for none");
	in->peer = p->flow->peer;
	in->local = p->flow->local;
	in->hop = (struct tcp_hop){.port = 0, .mac = {2, 0, 0, 0, 0, 1}};
	trace(p, "<", p->flow, wire_text(s, p->flow->peer_isn, p->flow->our_isn));
}

void play_in(struct play *p, const struct wire *segments, unsigned count)
{
	static char bytes[TCP_BURST_MAX][WIRE_BYTES_MAX];
	struct tcp_segment in[TCP_BURST_MAX];
	play_flush(p);
	for (unsigned i = 0; i < count; i++)
		read_segment(p, &segments[i], bytes[i], &in[i]);
	for (unsigned taken = 0; taken < count;) {
		play_flush(p); // what did not fit among the events comes in the next turn
		play_turn(p);
		taken += tcp_input(p->tcp, in + taken, count - taken);
		collect(p);
		tcp_due(p->tcp);
		collect(p);
	}
}

void play_near_wrap(struct play *p, const struct wire *syn, uint32_t bytes)
{
	struct play_flow *f = p->flow;
	for (uint32_t tries = 0; tries < 1u << 24; tries++) {
		f->peer.port = (uint16_t)(1024 + tries % 60000);
		f->peer.ip[14] = (uint8_t)(tries / 60000);
		play_in(p, syn, 1);
		play_flush(p);
		p->out_count = 0;
		if (-f->our_isn < bytes)
			return;
	}
	play_fail(p, "no sequence number near the wrap");
}

// --- beginning and end

static const struct tcp_plan everyday = {
	.connections_max = 64,
	.reserve = 2,
	.wait_max = 16,
	.works_max = 32,
	.send_chunks = 256,
	.receive_chunks = 256,
	.chunk_bytes = 2048,
	.send_max = 262144,
	.receive_max = 262144,
	.queue_high = 65536,
	.rto_min_us = 200000,
	.rto_max_us = 60000000,
	.give_up_us = 120000000,
	.idle_us = 300000000,
	.wait_us = 60000000,
	.linger_us = 30000000,
	.delayed_ack_us = 40000,
	.challenge_rate = 5,
	.mss_v4 = 1460,
	.mss_v6 = 1440,
	.secret = {1, 2, 3, 4, 5, 6, 7, 8},
	.seed = 42,
	.listener_count = 1,
	.listeners = {{.port = 80}},
};

void play_init(struct play *p, const char *file, bool is_loud)
{
	*p = (struct play){.file = file,
		.is_loud = is_loud,
		.plan = everyday,
		.now_us = START_US,
		.step_us = START_US,
		.random = 1};
	for (unsigned i = 0; i < PLAY_FLOWS; i++) {
		p->flows[i].peer = (struct stream_address){
			.ip = {[10] = 0xff, 0xff, 10, 0, 0, 1}, .port = (uint16_t)(10000 + i)};
		p->flows[i].local = (struct stream_address){
			.ip = {[10] = 0xff, 0xff, 192, 0, 2, 1}, .port = 80};
		p->flows[i].peer_isn = 1000;
	}
	p->flow = &p->flows[0];
}

void play_begin(struct play *p)
{
	static struct tcp_io io = {.send = take_out, .random = take_random};
	if (p->tcp)
		return;
	io.ctx = p;
	p->tcp = tcp_create(&p->plan, &io);
	if (!p->tcp)
		play_fail(p, "tcp_create() failed");
}

#define EXPECT(p, condition) \
	do { \
		if (!(condition)) \
			play_fail(p, "at the end: %s", #condition); \
	} while (0)

void play_end(struct play *p)
{
	play_flush(p);
	play_expect_nothing(p);
	play_turn(p); // what ended in a turn is counted out in the next
	play_flush(p);
	const struct tcp_stats *stats = tcp_stats(p->tcp);
	for (const uint64_t end = p->now_us + END_US;
		p->now_us < end && (stats->open > 0 || stats->waiting > 0);) {
		p->out_count = p->told_count = 0;
		play_until(p, end);
	}
	EXPECT(p, stats->open == 0 && stats->working == 0 && stats->waiting == 0);
	EXPECT(p, stats->counters[TCP_accepted] == stats->counters[TCP_closed]);
	EXPECT(p, p->tcp->timers.count == 0);
	EXPECT(p, p->tcp->send_chunks.free_count == p->tcp->send_chunks.count);
	EXPECT(p, p->tcp->receive_chunks.free_count == p->tcp->receive_chunks.count);
	tcp_destroy(p->tcp);
}
