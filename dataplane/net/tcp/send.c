// The worker's bytes, and the peer's acknowledgements of them.
//
// The queue begins at snd_una, so the offset of a sequence number in it is its distance from there;
// a FIN follows its last byte. Nothing is kept of a segment that was sent: what is sent again is
// cut from the queue anew, and is the same bytes, since what is queued never changes.

#include "dataplane/net/tcp/send.h"

#include "dataplane/net/tcp/emit.h"
#include "dataplane/net/tcp/flight.h"
#include "dataplane/net/tcp/output.h"
#include "dataplane/net/tcp/rack.h"
#include "dataplane/net/tcp/recover.h"
#include "dataplane/net/tcp/rtt.h"
#include "dataplane/net/tcp/send_due.h"
#include "dataplane/net/tcp/state.h"

// Segments by which one acknowledgement opens the window in slow start, at most: what RFC 9406 4.2
// has for those who do not pace.
#define STRETCH_MAX 8u

// What an acknowledgement tells.
struct news {
	uint32_t acked; // bytes by which snd_una moved
	uint32_t delivered; // bytes that are now known to have arrived
	uint32_t flight; // bytes before it that were not
	bool is_disorder; // something was lost, or overtaken, or may have been
};

// Something is about to be queued.
static struct tcp_work *begin(struct tcp *t, struct tcp_conn *c)
{
	struct tcp_work *work = work_take(t, c);
	if (!work)
		return NULL;
	struct tcp_work_send *s = &work->send;
	if (s->cwnd == 0) {
		s->cwnd = output_initial_window(c);
		s->ssthresh = CUBIC_WINDOW_MAX;
		s->window_max = c->snd_wnd;
	}
	if (!send_is_idle(t, c))
		return work;
	s->progress_ms = t->now_ms;
	// RFC 5681 4.1
	const uint32_t initial = output_initial_window(c);
	if (s->cwnd > initial && t->now_ms - s->sent_ms > rtt_timeout_us(t, c) / 1000) {
		s->cwnd = initial;
		cubic_pause(&s->cubic);
	}
	return work;
}

// Send it, as far as may be.
static void let_go(struct tcp *t, struct tcp_conn *c, struct tcp_work *work)
{
	output_all(t, c, work);
	send_due_set(t, c, &work->send, false);
}

// Append as much of a piece as there is room for.
static size_t append(struct tcp *t, struct tcp_queue *queue, struct span part)
{
	const size_t room = t->plan.send_max - queue->bytes;
	if (part.len > room)
		part.len = room;
	return chunks_push(&t->send_chunks, queue, part);
}

size_t send_write(struct tcp *t, struct tcp_conn *c, const struct span *parts, unsigned count)
{
	assert(!(c->flags & TCP_CONN_FIN_QUEUED));
	struct tcp_work *work = begin(t, c);
	if (!work) {
		tcp_count(t, TCP_send_none);
		return 0;
	}
	size_t taken = 0;
	unsigned i = 0;
	for (size_t len; i < count; i++, taken += len) {
		len = append(t, &work->send.queue, parts[i]);
		if (len < parts[i].len) {
			tcp_count(t, TCP_send_none);
			taken += len;
			break;
		}
	}
	if (i == count && count <= TCP_PARTS_MAX)
		t->written = (struct tcp_written){parts, count, (uint32_t)taken};
	let_go(t, c, work);
	t->written.bytes = 0;
	if (output_unsent(c, &work->send) > t->plan.queue_high)
		c->flags |= TCP_CONN_WAS_HIGH;
	return taken;
}

size_t send_queued(const struct tcp *t, const struct tcp_conn *c)
{
	const struct tcp_work *work = work_of(t, c);
	return work ? output_unsent(c, &work->send) : 0;
}

bool send_fin(struct tcp *t, struct tcp_conn *c)
{
	assert(!(c->flags & TCP_CONN_FIN_QUEUED));
	struct tcp_work *work = begin(t, c);
	if (!work)
		return false;
	c->flags |= TCP_CONN_FIN_QUEUED;
	state_set(c, c->state == TCP_CLOSE_WAIT ? TCP_LAST_ACK : TCP_FIN_WAIT_1);
	let_go(t, c, work);
	return true;
}

bool send_is_idle(const struct tcp *t, const struct tcp_conn *c)
{
	const struct tcp_work *work = work_of(t, c);
	return c->snd_una == c->snd_nxt && !(c->flags & TCP_CONN_FIN_QUEUED) &&
	       (!work || work->send.queue.bytes == 0);
}

bool send_needs_work(const struct tcp *t, const struct tcp_conn *c)
{
	const struct tcp_work *work = work_of(t, c);
	return work && (!send_is_idle(t, c) || work->send.alarm == TCP_ALARM_COOL);
}

void send_ack(struct tcp *t, struct tcp_conn *c)
{
	emit_bare(t, c, TCP_ACK);
}

void send_reset(struct tcp *t, struct tcp_conn *c)
{
	emit_bare(t, c, TCP_RST | TCP_ACK);
	tcp_count(t, TCP_rst_sent);
}

void send_shrink(struct tcp *t, struct tcp_conn *c, uint16_t mss)
{
	struct tcp_work *work = work_of(t, c);
	if (!output_lower(t, c, mss) || !work || c->snd_nxt == c->snd_una)
		return;
	recover_resend(c, &work->send);
	let_go(t, c, work);
}

void send_drop(struct tcp *t, struct tcp_conn *c)
{
	struct tcp_work *work = work_of(t, c);
	c->flags &= (uint16_t)~TCP_CONN_FIN_QUEUED;
	c->snd_una = c->snd_nxt;
	if (!work)
		return;
	chunks_drop(&t->send_chunks, &work->send.queue, work->send.queue.bytes);
	flight_drop(c, &work->send);
	work->send.alarm = TCP_ALARM_NONE;
}

// The peer's window (RFC 9293 3.10.7.4 step 5). A segment that acknowledges more is the newer one
// even if its number is lower, since a peer that sends again goes back. Returns whether it changed.
static bool take_window(struct tcp_conn *c, const struct tcp_segment *segment)
{
	if (tcp_after(c->snd_wl1, segment->seq) && segment->ack == c->snd_una)
		return false; // an older segment, late
	const uint32_t window = (uint32_t)segment->window << (c->scales & 0x0f);
	const bool is_other = window != c->snd_wnd;
	c->snd_wnd = window;
	c->snd_wl1 = segment->seq;
	return is_other;
}

// One sample for each flight or so: of the segment that is timed; if anything was sent again since,
// by the timestamp that came back (RFC 7323 4), or not at all (Karn). After a timeout each
// acknowledgement is one, so that the back-off ends with the first that comes.
static void measure(const struct tcp *t, struct tcp_conn *c, struct tcp_work_send *s,
	const struct tcp_segment *segment)
{
	const bool is_over = s->is_timed && !tcp_before(c->snd_una, s->timed_end);
	if (is_over)
		s->is_timed = false;
	if (is_over && !s->is_doubtful) {
		rtt_sample(c, (uint32_t)t->now_us - s->timed_us);
		rack_measured(t, s, (uint32_t)t->now_us - s->timed_us);
	} else if ((is_over || c->rto_backoff > 0) && (c->flags & TCP_CONN_TIMESTAMPS) &&
		   segment->has_timestamp) {
		const uint32_t ms = send_timestamp(t, c) - segment->ts_echo;
		if (ms <= t->plan.give_up_us / 1000) // else no clock of ours
			rtt_sample(c, ms * 1000);
	}
}

// Whether what came is the answer to what was sent before `stamp`.
static bool answers_before(
	const struct tcp_conn *c, const struct tcp_segment *segment, uint32_t stamp)
{
	return (c->flags & TCP_CONN_TIMESTAMPS) && segment->has_timestamp &&
	       tcp_before(segment->ts_echo, stamp);
}

// The window opens by what was acknowledged, if it was made use of: RFC 9438 5.8, 7661.
static void grow(const struct tcp *t, const struct tcp_conn *c, struct tcp_work_send *s,
	const struct news *news)
{
	if (s->cwnd < s->ssthresh) {
		const uint32_t segments = s->sending == TCP_SENDING_LOSS ? 1 : STRETCH_MAX;
		const uint32_t most = segments * c->mss;
		if (news->flight >= s->cwnd / 2)
			s->cwnd += news->acked < most ? news->acked : most;
	} else if (news->flight + c->mss > s->cwnd) {
		s->cwnd = cubic_acked(
			&s->cubic, s->cwnd, news->acked, c->mss, t->now_ms, c->srtt_us / 1000);
	} else {
		cubic_pause(&s->cubic);
	}
	if (s->cwnd > t->plan.send_max / 2)
		s->cwnd = t->plan.send_max / 2;
}

// Free what is acknowledged. Returns true if it is the FIN too.
static bool advance(struct tcp *t, struct tcp_conn *c, struct tcp_work_send *s, uint32_t acked)
{
	const bool has_fin = acked > s->queue.bytes;
	if (has_fin) {
		assert(c->flags & TCP_CONN_FIN_QUEUED && acked == s->queue.bytes + 1);
		c->flags &= (uint16_t)~TCP_CONN_FIN_QUEUED;
	}
	chunks_drop(&t->send_chunks, &s->queue, acked - has_fin);
	c->snd_una += acked;
	s->has_passed |= acked >= 2u * c->mss;
	s->progress_ms = t->now_ms;
	return has_fin;
}

// What a probe of the tail has brought to light (RFC 8985 7.4): if it was needed, there was a loss,
// which the window has to answer for.
static void end_probe(const struct tcp *t, const struct tcp_conn *c, struct tcp_work_send *s,
	const struct tcp_segment *segment)
{
	const bool is_needless =
		s->probing == TCP_PROBING_NEW || answers_before(c, segment, s->again_stamp) ||
		(segment->sack_count > 0 && !tcp_after(segment->sacks[0].to, segment->ack));
	s->probing = TCP_PROBING_NOT;
	if (is_needless || s->sending != TCP_SENDING_OPEN)
		return;
	recover_reduce(t, c, s);
	s->cwnd = s->ssthresh;
}

// A timeout was needless if what came first after it answers what was sent before it (Eifel, RFC
// 3522).
static void end_doubt(
	const struct tcp_conn *c, struct tcp_work_send *s, const struct tcp_segment *segment)
{
	if (s->prior_cwnd != 0 && answers_before(c, segment, s->again_stamp))
		recover_take_back(c, s);
	s->prior_cwnd = 0;
}

// What time tells, now. Returns whether anything was lost.
static bool detect(
	const struct tcp *t, const struct tcp_conn *c, struct tcp_work_send *s, uint32_t delivered)
{
	const uint32_t lost = s->lost;
	if (rack_detect(t, c, s) && s->sending != TCP_SENDING_OPEN)
		recover_second_loss(t, c, s, delivered);
	return s->lost > lost;
}

static void begin_recovery(
	struct tcp *t, struct tcp_conn *c, struct tcp_work_send *s, uint32_t delivered)
{
	if (s->sending != TCP_SENDING_OPEN || !recover_is_called_for(c, s))
		return;
	tcp_count(t, TCP_recoveries);
	recover_fast(t, c, s, delivered);
}

// Losses and windows, once for each acknowledgement that tells something.
static void judge(struct tcp *t, struct tcp_conn *c, struct tcp_work_send *s,
	const struct tcp_segment *segment, const struct news *news)
{
	if (news->acked > 0) {
		s->duplicates = 0;
		if (s->probing != TCP_PROBING_NOT && !tcp_before(c->snd_una, s->probe_end))
			end_probe(t, c, s, segment);
		if (s->sending == TCP_SENDING_LOSS)
			end_doubt(c, s, segment);
		if (s->sending != TCP_SENDING_FAST)
			grow(t, c, s, news);
	} else if (s->duplicates < UINT8_MAX) {
		s->duplicates++;
	}
	if (!news->is_disorder)
		return;
	const bool loses = (c->flags & TCP_CONN_SACK) && detect(t, c, s, news->delivered);
	if (s->sending != TCP_SENDING_OPEN)
		recover_go_on(c, s, news->acked, news->delivered, news->acked > 0 && !loses);
	begin_recovery(t, c, s, news->delivered);
	if (s->sending == TCP_SENDING_OPEN && s->sacked == 0)
		s->rack.has_arrived = false;
}

void send_look_again(struct tcp *t, struct tcp_conn *c, struct tcp_work *work)
{
	detect(t, c, &work->send, 0);
	begin_recovery(t, c, &work->send, 0);
	output_all(t, c, work);
}

// The peer reads again. What probed its window is sent again with what follows it.
static void end_persist(struct tcp_conn *c, struct tcp_work_send *s)
{
	s->is_persisting = false;
	c->rto_backoff = 0;
	if (c->snd_nxt != c->snd_una)
		recover_resend(c, s);
}

// RFC 5681 2, but for what its window has to say.
static bool repeats(const struct tcp_conn *c, const struct tcp_segment *segment, uint32_t acked)
{
	return acked == 0 && c->snd_wnd > 0 && segment->payload.len == 0 &&
	       !(segment->flags & TCP_FIN);
}

bool send_acked(struct tcp *t, struct tcp_conn *c, const struct tcp_segment *segment)
{
	const uint32_t acked = segment->ack - c->snd_una, sent = c->snd_nxt - c->snd_una;
	assert(acked <= sent);
	const bool is_update = take_window(c, segment);
	struct tcp_work *work = work_of(t, c);
	if (!work || work->send.cwnd == 0) {
		assert(acked == 0);
		return false;
	}
	struct tcp_work_send *s = &work->send;
	if (c->snd_wnd > s->window_max)
		s->window_max = c->snd_wnd;
	bool has_fin = false;
	struct news news = {.acked = acked, .delivered = acked, .flight = sent - s->sacked};
	const bool has_sack = c->flags & TCP_CONN_SACK;
	const bool is_duplicate = !has_sack && sent > 0 && !is_update && repeats(c, segment, acked);
	news.is_disorder = s->sacked > 0 || s->sending != TCP_SENDING_OPEN || is_duplicate ||
			   (has_sack && segment->sack_count > 0);
	if (acked > 0) {
		has_fin = advance(t, c, s, acked);
		measure(t, c, s, segment);
		if (news.is_disorder)
			news.delivered = has_sack ? rack_acked(t, c, s, segment)
						  : recover_acked(c, s, acked);
		flight_drop(c, s);
	}
	if (has_sack && segment->sack_count > 0)
		news.delivered += rack_sacks(t, c, s, segment);
	else if (is_duplicate)
		news.delivered = recover_duplicate(c, s);
	if (acked > 0 || news.delivered > 0)
		judge(t, c, s, segment, &news);
	const bool opens = s->is_persisting && c->snd_wnd > 0;
	if (opens)
		end_persist(c, s);
	if (s->lost > 0 || output_unsent(c, s) > 0)
		output_all(t, c, work);
	send_due_set(t, c, s, acked > 0 || opens);
	if ((c->flags & TCP_CONN_WAS_HIGH) && output_unsent(c, s) == 0) {
		c->flags &= (uint16_t)~TCP_CONN_WAS_HIGH;
		if (!(c->flags & TCP_CONN_FIN_QUEUED) && !has_fin)
			tcp_tell(t, c, STREAM_WRITABLE, (struct span){NULL, 0});
	}
	return has_fin;
}
