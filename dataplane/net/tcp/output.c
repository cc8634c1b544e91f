// What may leave now.
//
// Two windows limit what is in flight, not what one call sends: cwnd what is believed to be on its
// way (flight_pipe()), the peer's what lies beyond snd_una. A full segment always leaves when both
// allow it; a shorter one when it ends the queue, since answers are written whole (as with
// TCP_NODELAY); one that the peer's window cuts short only if it is half of what that ever was
// (RFC 9293 3.8.6.2.1): the persist timer is the override.

#include "dataplane/net/tcp/output.h"

#include "dataplane/net/tcp/emit.h"
#include "dataplane/net/tcp/flight.h"
#include "dataplane/net/tcp/recover.h"

uint32_t output_initial_window(const struct tcp_conn *c)
{
	const uint32_t segments = 10u * c->mss, floor = 2u * c->mss;
	const uint32_t bytes = floor > 14600 ? floor : 14600;
	return segments < bytes ? segments : bytes;
}

bool output_lower(struct tcp *t, struct tcp_conn *c, uint16_t mss)
{
	const uint16_t floor =
		TCP_MSS_MIN - (c->flags & TCP_CONN_TIMESTAMPS ? EMIT_TIMESTAMP_BYTES : 0);
	if (mss < floor)
		mss = floor;
	if (mss >= c->mss)
		return false;
	c->mss = mss;
	tcp_count(t, TCP_mss_lowered);
	return true;
}

uint32_t output_one(
	struct tcp *t, struct tcp_conn *c, struct tcp_work *work, uint32_t seq, uint32_t len)
{
	struct tcp_work_send *s = &work->send;
	const uint32_t sent = emit_data(t, c, work, seq, len);
	const bool is_new = tcp_after(seq + sent, c->snd_nxt);
	const bool is_again = tcp_before(seq, c->snd_nxt);
	if (is_again) {
		tcp_count(t, TCP_retransmitted);
		s->is_doubtful = true;
	}
	if (!s->is_timed && c->snd_wnd > 0) {
		s->is_timed = true;
		s->is_doubtful = is_again;
		s->timed_end = seq + sent;
		s->timed_us = (uint32_t)t->now_us;
	}
	flight_sent(t, c, s, seq, seq + sent);
	if (is_new) {
		const uint32_t end = c->snd_una + s->queue.bytes; // beyond it is the FIN
		tcp_count_many(
			t, TCP_bytes_out, seq + sent - c->snd_nxt - tcp_after(seq + sent, end));
		c->snd_nxt = seq + sent;
	}
	s->sent_ms = t->now_ms;
	return sent;
}

// Bytes from `seq` to the right edge of the peer's window.
static uint32_t room_from(const struct tcp_conn *c, uint32_t seq)
{
	const uint32_t offset = seq - c->snd_una;
	return offset < c->snd_wnd ? c->snd_wnd - offset : 0;
}

// What is lost. Returns false if a window stands in the way of more.
static bool again(struct tcp *t, struct tcp_conn *c, struct tcp_work *work)
{
	struct tcp_work_send *s = &work->send;
	uint32_t seq;
	for (uint32_t len; (len = recover_next(c, s, &seq)) > 0;) {
		// After the last byte in flight, the segment is filled with what is new.
		if (seq + len == c->snd_nxt)
			len += output_unsent(c, s);
		const uint32_t room = room_from(c, seq);
		if (len > room)
			len = room;
		const uint32_t segment = len < c->mss ? len : c->mss;
		if (len == 0 || flight_pipe(c, s) + segment > s->cwnd)
			return false;
		recover_sent(c, s, seq, output_one(t, c, work, seq, segment));
	}
	return true;
}

static void fresh(struct tcp *t, struct tcp_conn *c, struct tcp_work *work)
{
	struct tcp_work_send *s = &work->send;
	uint32_t pipe = flight_pipe(c, s);
	for (uint32_t unsent; (unsent = output_unsent(c, s)) > 0;) {
		const uint32_t room = room_from(c, c->snd_nxt);
		const uint32_t allowed = s->cwnd > pipe ? s->cwnd - pipe : 0;
		// A FIN rides on the segment that it follows, and takes no room on the path.
		const bool rides = unsent == c->mss + 1u && (c->flags & TCP_CONN_FIN_QUEUED);
		uint32_t len = unsent < c->mss ? unsent : c->mss;
		if (len > allowed)
			return;
		len += rides;
		if (len > room) {
			len = room;
			if (len == 0 || len < s->window_max / 2)
				return;
		}
		const uint32_t seq = c->snd_nxt;
		len = output_one(t, c, work, seq, len);
		if (s->sending != TCP_SENDING_OPEN)
			recover_sent(c, s, seq, len);
		pipe += len;
	}
}

void output_all(struct tcp *t, struct tcp_conn *c, struct tcp_work *work)
{
	if (work->send.lost == 0 || again(t, c, work))
		fresh(t, c, work);
}
