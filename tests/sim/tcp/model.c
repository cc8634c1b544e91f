// The model. What ours does wrong against it shows as a byte in the wrong place, as an assertion
// about what a peer may see, or as a conversation that does not end.

#include "tests/sim/tcp/model.h"

#include <assert.h>
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#define QUEUE_MAX 65536u
#define SYN_RTO_US 1000000u
#define BACKOFF_MAX 5u

static void *array(size_t count, size_t bytes)
{
	void *at = calloc(count, bytes);
	if (!at)
		abort();
	return at;
}

void model_init(struct model *m, void (*send)(void *ctx, const struct wire *segment), void *ctx)
{
	*m = (struct model){.send = send, .ctx = ctx};
	m->queue = array(QUEUE_MAX, 1);
	m->ring = array(MODEL_WINDOW_MAX, 1);
	m->has = array(MODEL_WINDOW_MAX, sizeof(*m->has));
}

void model_fini(struct model *m)
{
	free(m->queue);
	free(m->ring);
	free(m->has);
}

bool model_is_over(const struct model *m)
{
	return m->state != MODEL_SYN_SENT && m->state != MODEL_OPEN;
}

// The time of this turn, for calls that come from the side.
static uint64_t now;

// --- segments

static uint32_t wire_of_place(const struct model *m, uint64_t place)
{
	return m->plan.isn + 1 + (uint32_t)place;
}

// The place in the peer's stream nearest to what has been received.
static uint64_t place_of_wire(const struct model *m, uint32_t seq)
{
	const uint32_t expected = m->peer_isn + 1 + (uint32_t)m->received;
	return m->received + (uint64_t)(int64_t)(int32_t)(seq - expected);
}

static uint32_t window(const struct model *m)
{
	return m->plan.window - (uint32_t)(m->received - m->read);
}

static uint32_t acknowledged(const struct model *m)
{
	return m->peer_isn + 1 + (uint32_t)m->received + (m->fin_at == m->received);
}

static bool has_sack_block(const struct model *m)
{
	return m->has_sack && m->last_to > m->received;
}

static void send_segment(struct model *m, struct wire s)
{
	if (m->has_timestamps && !(s.flags & TCP_RST)) {
		s.has_timestamp = true;
		s.ts_value = m->ts_offset + (uint32_t)(now / 1000);
		s.ts_echo = m->ts_recent;
	}
	s.flags |= TCP_ACK;
	s.ack = acknowledged(m);
	const uint32_t told = window(m) >> (m->is_scaled ? m->plan.scale : 0);
	s.window = (uint16_t)(told > UINT16_MAX ? UINT16_MAX : told);
	if (has_sack_block(m)) {
		s.sacks[s.sack_count++] =
			(struct tcp_sack){m->peer_isn + 1 + (uint32_t)m->last_from,
				m->peer_isn + 1 + (uint32_t)m->last_to};
	}
	m->owes_ack = false;
	m->ack_at_us = UINT64_MAX;
	m->send(m->ctx, &s);
}

static void send_ack(struct model *m)
{
	send_segment(m, (struct wire){.seq = wire_of_place(m, m->next)});
}

static void send_syn(struct model *m)
{
	struct wire s = {.seq = m->plan.isn,
		.flags = TCP_SYN,
		.window = UINT16_MAX,
		.has_mss = m->plan.has_mss,
		.mss = m->plan.mss,
		.has_sack_permitted = m->plan.has_sack,
		.has_scale = m->plan.scale != 255,
		.scale = m->plan.scale,
		.has_timestamp = m->plan.has_timestamps,
		.ts_value = m->ts_offset + (uint32_t)(now / 1000)};
	if (m->plan.window < UINT16_MAX)
		s.window = (uint16_t)m->plan.window;
	m->send(m->ctx, &s);
}

static void send_rst(struct model *m, uint32_t seq)
{
	m->send(m->ctx, &(struct wire){.seq = seq, .flags = TCP_RST});
}

// --- sending

// The segment at a place: as much as there is, of one MSS; FIN behind the last byte. Returns the
// place after it.
static uint64_t send_at(struct model *m, uint64_t place, uint64_t len_max)
{
	uint64_t len = place < m->end ? m->end - place : 0;
	const uint64_t mss = m->peer_mss - (has_sack_block(m) ? 12u : 0u);
	len = len > mss ? mss : len;
	len = len > len_max ? len_max : len;
	const bool fin = m->has_fin && place + len == m->end && len_max > len;
	m->resent += place < m->most;
	send_segment(m, (struct wire){.seq = wire_of_place(m, place),
				.flags = (uint8_t)(TCP_PSH | (fin ? TCP_FIN : 0)),
				.payload = {m->queue + (place - m->una), len}});
	place += len + fin;
	m->most = place > m->most ? place : m->most;
	if (m->rto_at_us == UINT64_MAX)
		m->rto_at_us = now + ((uint64_t)m->plan.rto_us << m->backoff);
	return place;
}

static uint64_t to_send(const struct model *m)
{
	return m->end + m->has_fin;
}

static void send_more(struct model *m)
{
	uint64_t edge = m->una + (uint64_t)m->plan.flight * m->peer_mss;
	edge = edge > m->peer_edge ? m->peer_edge : edge;
	if (m->state != MODEL_OPEN)
		return;
	while (m->next < to_send(m) && m->next < edge)
		m->next = send_at(m, m->next, edge - m->next);
	if (m->next < to_send(m) && m->rto_at_us == UINT64_MAX) // the window is closed
		m->rto_at_us = now + ((uint64_t)m->plan.rto_us << m->backoff);
}

// --- the end

static void end(struct model *m, enum model_state state, int error)
{
	m->state = state;
	m->rto_at_us = m->ack_at_us = UINT64_MAX;
	if (!m->side->is_over)
		talk_closed(m->side, error);
}

static void maybe_end(struct model *m)
{
	if (m->state == MODEL_OPEN && m->has_fin && m->una == m->end + 1 && m->has_eof) {
		if (m->owes_ack)
			send_ack(m);
		end(m, MODEL_WAIT, 0);
	}
}

// --- receiving

// One byte at its place.
static void keep(struct model *m, uint64_t place, char byte)
{
	const uint32_t at = (uint32_t)(place % MODEL_WINDOW_MAX);
	assert(!m->has[at] || m->ring[at] == byte); // sent again, it is the same
	m->has[at] = true;
	m->ring[at] = byte;
}

static void give(struct model *m)
{
	while (m->read < m->received && !m->is_paused && m->state == MODEL_OPEN) {
		const uint32_t at = (uint32_t)(m->read % MODEL_WINDOW_MAX);
		uint64_t len = MODEL_WINDOW_MAX - at;
		len = len > m->received - m->read ? m->received - m->read : len;
		memset(m->has + at, 0, len * sizeof(*m->has));
		m->read += len;
		if (!m->side->is_over)
			talk_data(m->side, (struct span){m->ring + at, len}, now);
	}
	if (m->fin_at == m->read && !m->has_eof && !m->is_paused && m->state == MODEL_OPEN) {
		m->has_eof = true;
		if (!m->side->is_over)
			talk_eof(m->side, now);
	}
}

static void take_text(struct model *m, const struct wire *s)
{
	const uint64_t first = place_of_wire(m, s->seq), edge = m->read + m->plan.window;
	const bool is_old = first != m->received;
	for (uint64_t i = 0; i < s->payload.len; i++)
		if ((int64_t)(first + i - m->received) >= 0 && first + i < edge)
			keep(m, first + i, s->payload.at[i]);
	if (s->flags & TCP_FIN) {
		assert(m->fin_at == UINT64_MAX || m->fin_at == first + s->payload.len);
		m->fin_at = first + s->payload.len;
	}
	if ((int64_t)(first - m->received) > 0 && first < edge) {
		m->last_from = first;
		m->last_to = first + s->payload.len > edge ? edge : first + s->payload.len;
	}
	while (m->received < edge && m->received < m->fin_at &&
		m->has[m->received % MODEL_WINDOW_MAX])
		m->received++;
	if (wire_len(s) == 0)
		return;
	m->owes_ack = true;
	if (is_old || m->ack_at_us != UINT64_MAX || s->flags & TCP_FIN ||
		m->plan.delayed_ack_us == 0)
		m->ack_at_us = now; // at once
	else
		m->ack_at_us = now + m->plan.delayed_ack_us;
}

// What a peer may see of a right TCP.
static void check(const struct model *m, const struct wire *s)
{
	const uint64_t place = place_of_wire(m, s->seq);
	const uint32_t mss = !m->plan.has_mss ? 536 : m->plan.mss < 536 ? 536 : m->plan.mss;
	const uint32_t options =
		(s->has_timestamp ? 12 : 0) + (s->sack_count ? 4 + 8 * s->sack_count : 0);
	assert(s->payload.len == 0 || s->payload.len + options <= mss); // RFC 6691
	assert(s->has_timestamp == m->has_timestamps || s->flags & TCP_RST);
	assert(s->sack_count == 0 || m->has_sack);
	assert(!s->has_mss && !s->has_scale && !s->has_sack_permitted);
	// Beyond the window that we told at any time: no more than a probe's byte.
	assert(s->payload.len == 0 ||
		(int64_t)(place + s->payload.len - (m->read + m->plan.window)) <= 1);
	for (unsigned i = 0; i < s->sack_count; i++) {
		assert(tcp_before(s->sacks[i].from, s->sacks[i].to));
		assert(!tcp_after(s->sacks[i].to, wire_of_place(m, m->most)));
	}
}

static void take_ack(struct model *m, const struct wire *s)
{
	const uint64_t ack =
		m->una + (uint64_t)(int64_t)(int32_t)(s->ack - wire_of_place(m, m->una));
	assert((int64_t)(ack - m->most) <= 0); // of what was never sent
	if ((int64_t)(ack - m->una) < 0)
		return;
	const uint64_t edge = ack + ((uint64_t)s->window << (m->is_scaled ? m->peer_scale : 0));
	if (edge > m->peer_edge)
		m->peer_edge = edge; // ours never takes it back
	if (ack == m->una)
		return;
	const uint64_t bytes = (ack > m->end ? m->end : ack) - (m->una > m->end ? m->end : m->una);
	memmove(m->queue, m->queue + bytes,
		m->end - (m->una + bytes > m->end ? m->end : m->una + bytes));
	m->una = ack;
	m->next = m->next < ack ? ack : m->next;
	m->backoff = 0;
	m->progress_us = now;
	m->rto_at_us = m->una < m->most && m->una < to_send(m) ? now + m->plan.rto_us : UINT64_MAX;
	if (!m->side->is_over && !m->has_fin)
		talk_writable(m->side, now);
}

static void take_syn_ack(struct model *m, const struct wire *s)
{
	if ((s->flags & TCP_ACK) && s->ack != m->plan.isn + 1) {
		if (!(s->flags & TCP_RST))
			send_rst(m, s->ack); // of a connection before this one (RFC 9293 3.5.1)
		return;
	}
	if (s->flags & TCP_RST && s->flags & TCP_ACK) {
		end(m, MODEL_CLOSED, ECONNREFUSED);
		return;
	}
	if ((s->flags & (TCP_SYN | TCP_ACK)) != (TCP_SYN | TCP_ACK))
		return;
	assert(s->payload.len == 0 && s->has_mss);
	assert(!s->has_timestamp || m->plan.has_timestamps);
	assert(!s->has_scale || m->plan.scale != 255);
	assert(!s->has_sack_permitted || m->plan.has_sack);
	assert(!s->has_timestamp || s->ts_echo != 0);
	m->state = MODEL_OPEN;
	m->peer_isn = s->seq;
	m->has_timestamps = s->has_timestamp;
	m->has_sack = s->has_sack_permitted;
	m->is_scaled = s->has_scale;
	m->peer_scale = s->scale;
	m->ts_recent = s->ts_value;
	m->peer_mss = (uint16_t)((s->mss < m->plan.mss ? s->mss : m->plan.mss) -
				 (s->has_timestamp ? 12 : 0));
	m->peer_edge = s->window;
	m->rto_at_us = UINT64_MAX;
	m->progress_us = now;
	if (!m->plan.omits_ack) {
		m->has_timestamps = s->has_timestamp && !m->plan.omits_timestamp;
		send_ack(m);
		m->has_timestamps = s->has_timestamp;
	}
	talk_opened(m->side, now);
	send_more(m);
}

static void take_open(struct model *m, const struct wire *s)
{
	const int64_t ahead = (int64_t)(place_of_wire(m, s->seq) - m->received);
	const uint32_t fin = m->fin_at == m->received; // then what comes next is one further
	if (s->flags & TCP_RST) {
		if (fin > 0 && m->has_fin && m->una == m->end + 1)
			return; // all has been said, if not read: as in TIME-WAIT (RFC 1337)
		if (ahead == fin)
			end(m, MODEL_CLOSED, ECONNRESET);
		else if (ahead > 0 && ahead < m->plan.window)
			send_ack(m); // RFC 5961 3.2
		return;
	}
	if (s->flags & TCP_SYN) {
		send_ack(m); // the SYN-ACK again
		return;
	}
	check(m, s);
	const bool is_old = m->has_timestamps && tcp_before(s->ts_value, m->ts_recent); // PAWS
	if (is_old || ahead >= m->plan.window || ahead + (int64_t)wire_len(s) < fin) {
		if (wire_len(s) > 0 || !is_old)
			send_ack(m); // out of the window; or a probe: it wants to know where we are
		return;
	}
	if (m->has_timestamps && ahead <= 0)
		m->ts_recent = s->ts_value;
	take_ack(m, s);
	take_text(m, s);
	give(m);
	send_more(m);
	maybe_end(m);
}

void model_take(struct model *m, const struct wire *s, uint64_t now_us)
{
	now = m->heard_us = now_us;
	switch (m->state) {
	case MODEL_SYN_SENT:
		take_syn_ack(m, s);
		break;
	case MODEL_OPEN:
		take_open(m, s);
		break;
	case MODEL_WAIT:
		if (wire_len(s) > 0 && !(s->flags & (TCP_RST | TCP_SYN)))
			send_ack(m);
		break;
	case MODEL_CLOSED:
		if (!(s->flags & TCP_RST) && s->flags & TCP_ACK)
			send_rst(m, s->ack);
		break;
	case MODEL_VANISHED:
		break;
	}
	model_due(m, now_us);
}

// --- time

static uint64_t give_up_us(const struct model *m)
{
	const uint64_t idle = m->heard_us + m->plan.idle_us;
	const uint64_t stuck = m->progress_us + m->plan.give_up_us;
	return m->rto_at_us != UINT64_MAX && stuck < idle ? stuck : idle;
}

uint64_t model_next_us(const struct model *m)
{
	const uint64_t next = m->rto_at_us < m->ack_at_us ? m->rto_at_us : m->ack_at_us;
	if (model_is_over(m))
		return UINT64_MAX;
	return next < give_up_us(m) ? next : give_up_us(m);
}

static void timeout(struct model *m)
{
	m->backoff += m->backoff < BACKOFF_MAX;
	if (m->state == MODEL_SYN_SENT) {
		send_syn(m);
		m->rto_at_us = now + ((uint64_t)SYN_RTO_US << m->backoff);
		return;
	}
	m->rto_at_us = UINT64_MAX;
	m->next = m->una;
	if (m->una == m->peer_edge) // a probe of one byte, taken if the window has opened
		send_at(m, m->una, 1);
	else
		send_more(m);
}

void model_due(struct model *m, uint64_t now_us)
{
	now = now_us;
	if (model_is_over(m))
		return;
	if (m->ack_at_us <= now) {
		if (m->owes_ack)
			send_ack(m);
		m->ack_at_us = UINT64_MAX;
	}
	if (give_up_us(m) <= now) {
		end(m, MODEL_CLOSED, ETIMEDOUT);
		return;
	}
	if (m->rto_at_us <= now)
		timeout(m);
}

void model_connect(
	struct model *m, const struct model_plan *plan, struct talk_side *side, uint64_t now_us)
{
	*m = (struct model){.plan = *plan,
		.state = MODEL_SYN_SENT,
		.side = side,
		.send = m->send,
		.ctx = m->ctx,
		.queue = m->queue,
		.ring = m->ring,
		.has = m->has,
		.ts_offset = plan->isn * 3,
		.fin_at = UINT64_MAX,
		.ack_at_us = UINT64_MAX,
		.rto_at_us = now_us + SYN_RTO_US,
		.progress_us = now_us,
		.heard_us = now_us};
	memset(m->has, 0, MODEL_WINDOW_MAX * sizeof(*m->has));
	now = now_us;
	send_syn(m);
}

void model_vanish(struct model *m)
{
	m->state = MODEL_VANISHED;
}

// --- the side's calls

static void begin_progress(struct model *m)
{
	if (m->rto_at_us == UINT64_MAX)
		m->progress_us = now; // nothing was under way
}

static size_t op_write(void *ctx, struct span bytes)
{
	struct model *m = ctx;
	assert(m->end - m->una + bytes.len <= QUEUE_MAX && !m->has_fin);
	begin_progress(m);
	memcpy(m->queue + (m->end - m->una), bytes.at, bytes.len);
	m->end += bytes.len;
	send_more(m);
	return bytes.len;
}

static bool op_is_high(void *ctx)
{
	const struct model *m = ctx;
	return m->end - m->una > QUEUE_MAX / 2; // what is written at once is less than half of it
}

static void op_shut(void *ctx)
{
	struct model *m = ctx;
	begin_progress(m);
	m->has_fin = true;
	send_more(m);
}

static void op_close(void *ctx, bool reset)
{
	struct model *m = ctx;
	assert(reset); // clients part by FIN, or abruptly
	if (m->side->plan->end == TALK_CLIENT_VANISHES) {
		model_vanish(m);
		return;
	}
	send_rst(m, wire_of_place(m, m->next));
	end(m, MODEL_CLOSED, ECANCELED);
}

static void op_pause(void *ctx)
{
	((struct model *)ctx)->is_paused = true;
}

static void op_resume(void *ctx)
{
	struct model *m = ctx;
	const bool was_closed = window(m) < 2u * m->plan.mss;
	m->is_paused = false;
	give(m);
	if (was_closed && m->state == MODEL_OPEN)
		send_ack(m);
	maybe_end(m);
}

const struct talk_ops model_ops = {.write = op_write,
	.is_high = op_is_high,
	.shut = op_shut,
	.close = op_close,
	.pause = op_pause,
	.resume = op_resume};
