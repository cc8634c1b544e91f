// Segment arrives (RFC 9293 3.10.7.4), in its order: sequence number, RST, SYN, ACK, URG, text,
// FIN; with RFC 7323 5 before the first and RFC 5961 in the middle ones.
//
// Most segments are the next in order on a connection that both sides use; is_plain() sees that in
// one row of comparisons, and they pass by the rest (Van Jacobson's header prediction, 1990).
//
// What is refused is answered with an ACK that tells where we are. Two endpoints that disagree
// could do so for ever, and strangers could have us do it: so for segments without text a
// connection has few of these a second, and how many exactly nobody can tell (RFC 5961 7,
// CVE-2016-5696).

#include "dataplane/net/tcp/input.h"

#include "dataplane/net/tcp/listen.h"
#include "dataplane/net/tcp/receive.h"
#include "dataplane/net/tcp/reply.h"
#include "dataplane/net/tcp/send.h"
#include "dataplane/net/tcp/state.h"
#include "dataplane/net/tcp/work.h"

#include <errno.h>

// What keeps a segment from being plain.
#define ODD_FLAGS (TCP_CONN_PAUSED | TCP_CONN_ORPHAN | TCP_CONN_SCALE_UNSURE | TCP_CONN_FAILED)

static bool is_plain(const struct tcp *t, const struct tcp_conn *c, const struct tcp_segment *s)
{
	const struct tcp_work *w = work_of(t, c);
	return (s->flags & (TCP_FIN | TCP_SYN | TCP_RST | TCP_ACK)) == TCP_ACK &&
	       c->state == TCP_ESTABLISHED && s->seq == c->rcv_nxt && !(c->flags & ODD_FLAGS) &&
	       s->has_timestamp == (bool)(c->flags & TCP_CONN_TIMESTAMPS) &&
	       (!s->has_timestamp || !tcp_before(s->ts_value, c->ts_recent)) &&
	       s->payload.len <= c->rcv_edge - c->rcv_nxt &&
	       s->ack - c->snd_una <= c->snd_nxt - c->snd_una &&
	       (!w || (w->receive.kept_count == 0 && !w->receive.has_fin));
}

// The peer is there.
static void note_active(struct tcp *t, struct tcp_conn *c, const struct tcp_segment *s)
{
	c->hop = s->hop;
	if (c->flags & (TCP_CONN_ACK_DUE | TCP_CONN_ORPHAN))
		return;
	c->active_ms = t->now_ms;
}

// RFC 7323 4.3 (2), of a segment that is_old() has let pass; Last.ACK.sent is rcv_nxt unless an ACK
// is due.
static void note_timestamp(struct tcp_conn *c, const struct tcp_segment *s)
{
	if (s->has_timestamp && c->flags & TCP_CONN_TIMESTAMPS && !(c->flags & TCP_CONN_ACK_DUE) &&
		!tcp_after(s->seq, c->rcv_nxt))
		c->ts_recent = s->ts_value;
}

static void input_plain(struct tcp *t, struct tcp_conn *c, const struct tcp_segment *s)
{
	note_timestamp(c, s);
	note_active(t, c, s);
	if (c->work || s->ack != c->snd_una) {
		send_acked(t, c, s);
		tcp_list(t, c);
	} else { // nothing is under way: what is left of it is the window
		c->snd_wnd = (uint32_t)s->window << (c->scales & 15);
		c->snd_wl1 = s->seq;
	}
	if (s->payload.len > 0) {
		receive_in_order(t, c, s->payload);
		tcp_list(t, c);
	}
}

static void acknowledge(struct tcp *t, struct tcp_conn *c)
{
	c->flags |= TCP_CONN_ACK_DUE | TCP_CONN_ACK_NOW;
	tcp_list(t, c);
}

// The limit lies between half of the plan's and all of it, and moves each second.
static unsigned challenge_limit(const struct tcp *t, const struct tcp_conn *c, uint32_t second)
{
	uint32_t rate = t->plan.challenge_rate, less = rate / 2;
	uint32_t chance = (c->ts_offset ^ c->snd_nxt ^ second) * UINT32_C(2654435761);
	return rate - (unsigned)((uint64_t)chance * (less + 1) >> 32);
}

// RFC 5961: tell the peer where we are, if it is not told too often.
static void challenge(struct tcp *t, struct tcp_conn *c)
{
	uint32_t second = t->now_ms >> 10, told = c->challenges & 15;
	if (c->challenges >> 4 != (second & 15))
		told = 0;
	if (told >= challenge_limit(t, c, second)) {
		tcp_count(t, TCP_challenge_limited);
		return;
	}
	c->challenges = (uint8_t)((second & 15) << 4 | (told + 1));
	tcp_count(t, TCP_challenged);
	acknowledge(t, c);
}

// A segment that is not acceptable. One with text or FIN was most likely sent again since our ACK
// was lost, and no loop comes of answering it.
static void refuse(struct tcp *t, struct tcp_conn *c, const struct tcp_segment *s)
{
	if (s->payload.len > 0 || s->flags & TCP_FIN)
		acknowledge(t, c);
	else
		challenge(t, c);
}

// First: whether it lies in the window, be it in part. While that is closed the next number is good
// too: what comes with it counts, but for its text (RFC 9293 3.10.7.4, "special allowance").
static bool is_acceptable(const struct tcp_conn *c, const struct tcp_segment *s)
{
	uint32_t window = c->rcv_edge - c->rcv_nxt, len = tcp_segment_len(s);
	if (s->seq - c->rcv_nxt < window || s->seq == c->rcv_nxt)
		return true;
	return len > 0 && s->seq + len - 1 - c->rcv_nxt < window;
}

// RFC 7323 5.3. A segment without timestamp is let pass: some middle boxes and old stacks drop it.
static bool is_old(const struct tcp_conn *c, const struct tcp_segment *s)
{
	return c->flags & TCP_CONN_TIMESTAMPS && s->has_timestamp && !(s->flags & TCP_RST) &&
	       c->ts_recent && tcp_before(s->ts_value, c->ts_recent);
}

// Steps 1 to 4. Returns whether the segment goes on.
static bool check(struct tcp *t, struct tcp_conn *c, const struct tcp_segment *s)
{
	if (is_old(c, s)) {
		tcp_count(t, TCP_paws_old);
		refuse(t, c, s);
		return false;
	}
	bool is_in = is_acceptable(c, s);
	if (s->flags & TCP_RST) { // RFC 5961 3.2
		if (s->seq == c->rcv_nxt) {
			tcp_count(t, TCP_rst_in);
			tcp_end(t, c, ECONNRESET);
		} else if (is_in) {
			challenge(t, c);
		} else {
			tcp_count(t, TCP_out_of_window);
		}
		return false;
	}
	if (s->flags & TCP_SYN) { // RFC 5961 4.2: wherever it lies
		challenge(t, c);
		return false;
	}
	if (!is_in) {
		tcp_count(t, TCP_out_of_window);
		refuse(t, c, s);
		return false;
	}
	return s->flags & TCP_ACK;
}

// Step 5. Returns whether the segment goes on: false also if it has ended the connection.
static bool take_ack(struct tcp *t, struct tcp_conn *c, const struct tcp_segment *s)
{
	if (s->ack - c->snd_una > c->snd_nxt - c->snd_una) {
		if (c->snd_una - s->ack <= UINT32_C(65535) << (c->scales & 15))
			return true; // a duplicate that is late; RFC 5961 5.2
		tcp_count(t, TCP_ack_unseen);
		challenge(t, c);
		return false;
	}
	tcp_list(t, c);
	if (!send_acked(t, c, s))
		return true;
	switch (c->state) { // our FIN is acknowledged
	case TCP_FIN_WAIT_1:
		state_set(c, TCP_FIN_WAIT_2);
		return true;
	case TCP_CLOSING:
		tcp_end_waiting(t, c);
		return false;
	default:
		assert(c->state == TCP_LAST_ACK);
		tcp_end(t, c, 0);
		return false;
	}
}

// Steps 7 and 8.
static void take_text(struct tcp *t, struct tcp_conn *c, const struct tcp_segment *s)
{
	uint32_t seq = s->seq, room = c->rcv_edge - c->rcv_nxt;
	struct span text = s->payload;
	bool has_fin = s->flags & TCP_FIN;
	if (tcp_before(seq, c->rcv_nxt)) { // the front has come before
		uint32_t known = c->rcv_nxt - seq;
		if (known > text.len) // FIN included
			return;
		text = span_from(text, known);
		seq = c->rcv_nxt;
	}
	uint32_t offset = seq - c->rcv_nxt;
	if (offset + text.len > room) { // the end lies beyond the window
		text.len = room - offset;
		has_fin = false;
	}
	if (text.len < s->payload.len)
		acknowledge(t, c);
	if (text.len > 0 && c->flags & TCP_CONN_ORPHAN) { // RFC 9293 3.6.1: nobody will read it
		send_reset(t, c);
		tcp_end(t, c, 0);
		return;
	}
	if (text.len == 0 && !has_fin)
		return;
	tcp_list(t, c);
	if (receive_take(t, c, seq, text, has_fin))
		input_fin(t, c);
}

void input_segment(struct tcp *t, struct tcp_conn *c, const struct tcp_segment *segment)
{
	if (is_plain(t, c, segment)) {
		input_plain(t, c, segment);
		return;
	}
	if (!check(t, c, segment))
		return;
	if (c->flags & TCP_CONN_SCALE_UNSURE && segment->has_timestamp)
		listen_settle_scale(t, c, segment);
	note_timestamp(c, segment);
	note_active(t, c, segment);
	if (!take_ack(t, c, segment))
		return;
	if (state_receives(c->state) && (segment->payload.len > 0 || segment->flags & TCP_FIN))
		take_text(t, c, segment);
}

void input_fin(struct tcp *t, struct tcp_conn *c)
{
	switch (c->state) {
	case TCP_ESTABLISHED:
		state_set(c, TCP_CLOSE_WAIT);
		return;
	case TCP_FIN_WAIT_1:
		state_set(c, TCP_CLOSING);
		return;
	default:
		assert(c->state == TCP_FIN_WAIT_2);
		send_ack(t, c);
		tcp_end_waiting(t, c);
	}
}

// RFC 6191 3, for a SYN. A segment that brings a cookie back acknowledges more than the old
// connection ever sent, as listen_segment() has seen to.
static bool is_newer(const struct tcp_wait_entry *entry, const struct tcp_segment *s)
{
	bool is_after = tcp_after(s->seq, entry->rcv_nxt);
	if (!(s->flags & TCP_SYN))
		return s->flags & TCP_ACK && !tcp_before(s->ack - 1, entry->snd_nxt);
	if (!s->has_timestamp)
		return is_after;
	if (!entry->ts_recent)
		return true; // the old one had no timestamps
	return tcp_after(s->ts_value, entry->ts_recent) ||
	       (s->ts_value == entry->ts_recent && is_after);
}

void input_again(
	struct tcp *t, const struct tcp_wait_entry *entry, const struct tcp_segment *segment)
{
	if (tcp_segment_len(segment) > 0)
		reply_wait(t, segment, entry);
}

bool input_wait(struct tcp *t, struct tcp_wait_entry *entry, const struct tcp_segment *segment)
{
	if (segment->flags & TCP_RST) // RFC 1337: it ends nothing
		return false;
	if (is_newer(entry, segment))
		return true;
	input_again(t, entry, segment);
	if (segment->flags & TCP_FIN && segment->seq + segment->payload.len + 1 == entry->rcv_nxt) {
		struct tcp_wait_entry again = *entry; // RFC 9293 3.10.7.4: begin the wait anew
		again.ends_ms = t->now_ms + t->plan.wait_us / 1000;
		wait_remove(t->waits, entry);
		wait_add(t->waits, &again);
	}
	return false;
}
