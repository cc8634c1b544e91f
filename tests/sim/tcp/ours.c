// The host of a TCP. What only the code itself can know (its timers, its pools) is read from its
// structs; all else is judged from the wire.

#include "tests/sim/tcp/ours.h"

#include <assert.h>
#include <stdlib.h>
#include <string.h>

#include "dataplane/net/tcp/conn.h"
#include "dataplane/net/tcp/work.h"
#include "tests/unit/controller/random.h"

#define QUIET_MAX_US 10000000u
#define QUIET_MIN_US 100u
#define TURNS_MAX 10000u // of one arrival

// --- what goes out

static void watch_window(struct ours_slot *s, const struct wire *w)
{
	const uint32_t edge = w->ack + ((uint32_t)w->window << s->scale);
	assert(!s->has_told || !tcp_before(w->ack, s->ack));
	s->ack = w->ack;
	if (s->has_peer_fin && w->ack == s->peer_fin)
		return; // nothing comes any more: the window says nothing
	// RFC 9293 3.8.6: it never shrinks, but for what the scale cannot say (RFC 7323 2.4).
	assert(!s->has_told || !tcp_before(edge + (1u << s->scale) - 1, s->edge));
	s->edge = s->has_told && tcp_before(edge, s->edge) ? s->edge : edge;
	s->has_told = true;
}

static void watch_out(struct ours_slot *s, const struct wire *w)
{
	if ((w->flags & (TCP_SYN | TCP_ACK)) == (TCP_SYN | TCP_ACK)) {
		if (s->is_watched && w->seq == s->isn)
			return; // again
		s->isn_before = s->isn;
		s->is_watched = true;
		s->isn = w->seq;
		s->most = w->seq + 1;
		s->is_scaled = w->has_scale;
		s->scale = w->has_scale ? w->scale : 0;
		s->has_told = s->has_peer_edge = s->has_peer_fin = false;
		s->ts = w->ts_value;
		return;
	}
	if (w->flags & TCP_RST || !s->is_watched || tcp_before(w->ack, s->peer_isn + 1))
		return; // the latter: TIME_WAIT of the connection before
	if (s->most == s->isn + 1 && w->seq == s->isn_before + 1) { // a SYN twice, by two keys
		s->isn = s->isn_before;
		s->most = w->seq;
	}
	assert(w->flags & TCP_ACK && !(w->flags & TCP_SYN));
	assert(!w->has_timestamp || !tcp_before(w->ts_value, s->ts));
	s->ts = w->has_timestamp ? w->ts_value : s->ts;
	watch_window(s, w);
	const uint32_t end = w->seq + wire_len(w);
	if (!tcp_after(end, s->most))
		return;
	assert(!tcp_after(w->seq, s->most)); // no hole
	const uint32_t probe = w->payload.len <= 1; // and FIN
	if (w->payload.len > 0)
		assert(s->has_peer_edge &&
			!tcp_after(w->seq + (uint32_t)w->payload.len, s->peer_edge + probe));
	s->most = end;
}

static void take_out(void *ctx, const struct tcp_out *out)
{
	static char bytes[WIRE_BYTES_MAX];
	struct ours *o = ctx;
	const uint32_t slot = (uint32_t)(out->peer->port - o->peer.port);
	assert(slot < OURS_SLOTS && memcmp(out->peer->ip, o->peer.ip, 16) == 0);
	assert(memcmp(out->local, &o->local, sizeof(o->local)) == 0);
	const struct span all = {bytes, wire_of_out(out, bytes)};
	struct wire wire;
	wire_read(all, &wire);
	o->send(o->ctx, slot, all); // first: it may be traced
	watch_out(&o->slots[slot], &wire);
}

static uint64_t take_random(void *ctx)
{
	return random_next(((struct ours *)ctx)->random);
}

// --- what comes in

static void watch_in(struct ours_slot *s, const struct wire *w)
{
	if (w->flags & TCP_SYN && !(w->flags & TCP_ACK)) {
		s->peer_scale = w->has_scale ? w->scale : 0;
		s->peer_isn = w->seq;
	}
	if (w->flags & TCP_FIN) {
		s->has_peer_fin = true;
		s->peer_fin = w->seq + wire_len(w);
	}
	if (!s->is_watched || !(w->flags & TCP_ACK) || w->flags & (TCP_SYN | TCP_RST))
		return;
	const uint32_t edge = w->ack + ((uint32_t)w->window << (s->is_scaled ? s->peer_scale : 0));
	if (!s->has_peer_edge || tcp_after(edge, s->peer_edge))
		s->peer_edge = edge;
	s->has_peer_edge = true;
}

void ours_put(struct ours *o, uint32_t slot, char *bytes, uint32_t len)
{
	assert(o->input_count < OURS_INPUTS);
	o->inputs[o->input_count].slot = slot;
	o->inputs[o->input_count].bytes = bytes;
	o->inputs[o->input_count++].len = len;
}

static void read_input(struct ours *o, uint32_t which, struct tcp_segment *segment)
{
	const struct span all = {o->inputs[which].bytes, o->inputs[which].len};
	const uint32_t slot = o->inputs[which].slot;
	struct wire wire;
	wire_read(all, &wire);
	watch_in(&o->slots[slot], &wire);
	if (!tcp_segment_read(all, segment))
		abort();
	segment->peer = o->peer;
	segment->peer.port = (uint16_t)(o->peer.port + slot);
	segment->local = o->local;
	segment->hop = (struct tcp_hop){.mac = {2, 0, 0, 0, 0, (uint8_t)slot}};
}

// --- events

static void take_opened(struct ours *o, struct stream *stream)
{
	struct ours_slot *s = &o->slots[stream->peer.port - o->peer.port];
	assert(stream->user == NULL && stream->listener == 0);
	assert(!s->stream);
	stream->user = s;
	o->opened++;
	if (s->side->is_over) { // a late copy of the segment that opened one before
		tcp_close(o->tcp, stream, true);
		return;
	}
	s->stream = stream;
	s->side->end = s;
	talk_opened(s->side, o->now_us);
}

static void take_event(struct ours *o, const struct stream_event *e)
{
	if (e->kind == STREAM_NONE)
		return;
	if (e->kind == STREAM_OPENED) {
		take_opened(o, e->stream);
		return;
	}
	struct ours_slot *s = e->stream->user;
	assert(s && s->stream == e->stream);
	switch (e->kind) {
	case STREAM_DATA:
		talk_data(s->side, e->data, o->now_us);
		break;
	case STREAM_WRITABLE:
		talk_writable(s->side, o->now_us);
		break;
	case STREAM_EOF:
		talk_eof(s->side, o->now_us);
		break;
	default:
		assert(e->kind == STREAM_CLOSED);
		s->stream = NULL;
		o->closed++;
		talk_closed(s->side, e->error);
	}
}

// --- after every turn

static void check_conn(const struct tcp *t, const struct tcp_conn *c)
{
	const uint32_t flight = c->snd_nxt - c->snd_una;
	assert(c->timer.slot != TIMERS_UNLINKED); // no connection without a deadline
	assert(flight <= t->plan.send_max + 1);
	assert(!(c->flags & TCP_CONN_ACK_NOW)); // it was due at the end of the turn
	assert(c->work > 0 || flight == 0);
	assert(!tcp_before(c->rcv_edge, c->rcv_nxt));
}

// Bytes in flight, not what a call sends, are held against cwnd (RFC 5681 3.1): when something new
// has left. A tail-loss probe, and limited transmit, may be beyond it; and without SACK what
// duplicate acknowledgements stand for is a guess (RFC 6582).
static void check_flight(const struct ours *o, const struct tcp_conn *c)
{
	const struct ours_slot *s = &o->slots[c->stream.peer.port - o->peer.port];
	const struct tcp_work *w = work_of(o->tcp, c);
	if (!w || !(c->flags & TCP_CONN_SACK) || w->send.sending != TCP_SENDING_OPEN ||
		s->most == s->most_before)
		return;
	const uint32_t flight = c->snd_nxt - c->snd_una - w->send.sacked;
	assert(flight <= w->send.cwnd + 3u * c->mss);
}

static void check(struct ours *o)
{
	const struct tcp *t = o->tcp;
	uint32_t open = 0, working = 0;
	for (uint32_t i = 0; i < t->conn_max; i++) {
		const struct tcp_conn *c = &t->conns[i];
		if (c->state == TCP_FREE)
			continue;
		check_conn(t, c);
		check_flight(o, c);
		open++;
		working += c->work > 0;
	}
	for (uint32_t i = 0; i < OURS_SLOTS; i++)
		o->slots[i].most_before = o->slots[i].most;
	const struct tcp_stats *stats = &t->stats;
	assert(open == stats->open && working == stats->working);
	assert(t->timers.count == open); // no timer without a connection
	assert(stats->counters[TCP_accepted] == stats->counters[TCP_closed] + open);
	assert(open <= o->plan.connections_max + o->plan.reserve);
	assert(stats->waiting <= o->plan.wait_max && stats->working <= o->plan.works_max);
}

void ours_check_empty(struct ours *o)
{
	const struct tcp *t = o->tcp;
	check(o);
	assert(t->stats.open == 0 && t->stats.working == 0 && t->stats.waiting == 0);
	assert(t->send_chunks.free_count == t->send_chunks.count);
	assert(t->receive_chunks.free_count == t->receive_chunks.count);
}

// --- turns

static void turn(struct ours *o, struct tcp_segment *segments, uint32_t *taken, uint32_t count)
{
	struct stream_event events[TCP_BURST_MAX];
	assert(o->event_max <= (int)TCP_BURST_MAX);
	o->turns++;
	tcp_turn(o->tcp, o->now_us, events, o->event_max);
	while (*taken < count) {
		uint32_t burst = count - *taken;
		burst = burst > TCP_BURST_MAX ? TCP_BURST_MAX : burst;
		const unsigned took = tcp_input(o->tcp, segments + *taken, burst);
		*taken += took;
		if (took < burst)
			break;
	}
	tcp_due(o->tcp);
	assert(tcp_event_count(o->tcp) <= o->event_max);
	for (int i = 0; i < tcp_event_count(o->tcp); i++)
		take_event(o, &events[i]);
	for (uint32_t i = 0; i < OURS_SLOTS; i++)
		if (o->slots[i].stream && o->slots[i].side->next_us <= o->now_us)
			talk_time(o->slots[i].side, o->now_us);
	tcp_flush(o->tcp);
	assert(tcp_event_count(o->tcp) <= o->event_max);
}

void ours_turn(struct ours *o, uint64_t now_us)
{
	static struct tcp_segment segments[OURS_INPUTS];
	const uint32_t count = o->input_count;
	uint32_t taken = 0, turns = 0;
	o->now_us = now_us;
	for (uint32_t i = 0; i < count; i++)
		read_input(o, i, &segments[i]);
	do {
		turn(o, segments, &taken, count);
		assert(turns++ <= TURNS_MAX); // each takes or hands over something
	} while (taken < count);
	// The bytes live until the next turn begins.
	static struct stream_event none[STREAM_EVENTS_MIN];
	tcp_turn(o->tcp, now_us, none, STREAM_EVENTS_MIN);
	check(o);
	for (uint32_t i = 0; i < count; i++)
		free(o->inputs[i].bytes);
	memmove(o->inputs, o->inputs + count, (o->input_count - count) * sizeof(o->inputs[0]));
	o->input_count -= count;
}

uint64_t ours_next_us(const struct ours *o)
{
	uint64_t quiet = tcp_quiet_us(o->tcp, QUIET_MAX_US);
	uint64_t next = o->now_us + (quiet < QUIET_MIN_US ? QUIET_MIN_US : quiet);
	for (uint32_t i = 0; i < OURS_SLOTS; i++)
		if (o->slots[i].stream && o->slots[i].side->next_us < next)
			next = o->slots[i].side->next_us;
	return next > o->now_us ? next : o->now_us + 1;
}

void ours_too_big(struct ours *o, uint32_t slot, uint32_t seq, uint16_t mtu)
{
	struct tcp_segment quoted = {.peer = o->peer, .local = o->local, .seq = seq};
	static struct stream_event none[STREAM_EVENTS_MIN];
	quoted.peer.port = (uint16_t)(o->peer.port + slot);
	tcp_turn(o->tcp, o->now_us, none, STREAM_EVENTS_MIN);
	tcp_too_big(o->tcp, &quoted, mtu);
	for (int i = 0; i < tcp_event_count(o->tcp); i++)
		take_event(o, &none[i]);
	tcp_flush(o->tcp);
}

void ours_init(struct ours *o, const struct tcp_plan *plan, uint64_t *random, uint64_t now_us)
{
	*o = (struct ours){.plan = *plan, .random = random, .now_us = now_us, .event_max = 64};
	for (uint32_t i = 0; i < OURS_SLOTS; i++)
		o->slots[i].ours = o;
	o->io = (struct tcp_io){.ctx = o, .send = take_out, .random = take_random};
	o->tcp = tcp_create(plan, &o->io);
	if (!o->tcp)
		abort();
}

void ours_fini(struct ours *o)
{
	for (uint32_t i = 0; i < o->input_count; i++)
		free(o->inputs[i].bytes);
	tcp_destroy(o->tcp);
}

// --- the side's calls

static size_t op_write(void *ctx, struct span bytes)
{
	struct ours_slot *s = ctx;
	const struct span parts[] = {{bytes.at, bytes.len / 2}, span_from(bytes, bytes.len / 2)};
	return tcp_write(s->ours->tcp, s->stream, parts, 2);
}

static bool op_is_high(void *ctx)
{
	const struct ours_slot *s = ctx;
	return tcp_queued(s->ours->tcp, s->stream) > s->ours->plan.queue_high;
}

static void op_shut(void *ctx)
{
	const struct ours_slot *s = ctx;
	tcp_shut(s->ours->tcp, s->stream);
}

static void op_close(void *ctx, bool reset)
{
	struct ours_slot *s = ctx;
	struct stream *stream = s->stream;
	s->stream = NULL;
	tcp_close(s->ours->tcp, stream, reset);
}

static void op_pause(void *ctx)
{
	const struct ours_slot *s = ctx;
	tcp_pause(s->ours->tcp, s->stream);
}

static void op_resume(void *ctx)
{
	const struct ours_slot *s = ctx;
	tcp_resume(s->ours->tcp, s->stream);
}

const struct talk_ops ours_ops = {.write = op_write,
	.is_high = op_is_high,
	.shut = op_shut,
	.close = op_close,
	.pause = op_pause,
	.resume = op_resume};
