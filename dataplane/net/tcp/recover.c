// Recovery in terms of three marks and the scoreboard:
//
//   snd_una          again_to        lost_to               snd_nxt
//      |  sent again     |   to send    |  in flight           |      but for what `scores` hold
//
// A timeout is the case in which lost_to is snd_nxt: it goes back, passing over what the peer
// holds. Without SACK, lost_to is one segment above snd_una, and `sacked` is a guess from duplicate
// acknowledgements, which comes to what NewReno's inflated window allows.
//
// The window in fast recovery is that of proportional rate reduction (RFC 6937, with its slow start
// reduction bound): rate halving without a silent half of a round trip, exact about what arrived.
//
// A segment that is sent again and lost again is found when as much data as makes a loss arrives
// that was sent after it (head_mark); only the segment at snd_una is followed so, the others when
// they come to be that. Else only the timeout would help, and at a hundredth of loss one recovery
// in a hundred would wait for it.
//
// Whatever a peer may claim costs at most TCP_SCORE_MAX steps.

#include "dataplane/net/tcp/recover.h"

#include <string.h>

static bool has_sack(const struct tcp_conn *c)
{
	return c->flags & TCP_CONN_SACK;
}

static uint32_t later(uint32_t a, uint32_t b)
{
	return tcp_after(a, b) ? a : b;
}

static uint32_t smaller(uint32_t a, uint32_t b)
{
	return a < b ? a : b;
}

// Bytes of [snd_una, to) that the peer is not known to hold.
static uint32_t missing(const struct tcp_conn *c, const struct tcp_work_send *s, uint32_t to)
{
	uint32_t bytes = to - c->snd_una;
	for (uint32_t i = 0; i < s->score_count && tcp_before(s->scores[i].from, to); i++)
		bytes -= tcp_before(s->scores[i].to, to) ? s->scores[i].to - s->scores[i].from
							 : to - s->scores[i].from;
	return bytes;
}

uint32_t recover_pipe(const struct tcp_conn *c, const struct tcp_work_send *s)
{
	const uint32_t flight = c->snd_nxt - c->snd_una - s->sacked;
	if (s->sending == TCP_SENDING_OPEN)
		return flight;
	const uint32_t lost = missing(c, s, s->lost_to), again = missing(c, s, s->again_to);
	return (flight > lost ? flight - lost : 0) + again;
}

static void remove_at(struct tcp_work_send *s, uint32_t i, uint32_t count)
{
	s->score_count -= count;
	memmove(&s->scores[i], &s->scores[i + count], (s->score_count - i) * sizeof(s->scores[0]));
}

// Enter [from, to); what it touches becomes one with it.
static uint32_t enter(struct tcp_work_send *s, uint32_t from, uint32_t to)
{
	uint32_t i = 0, held = 0;
	while (i < s->score_count && tcp_before(s->scores[i].to, from))
		i++;
	uint32_t end = i;
	for (; end < s->score_count && !tcp_after(s->scores[end].from, to); end++)
		held += s->scores[end].to - s->scores[end].from;
	if (end > i) {
		if (tcp_before(s->scores[i].from, from))
			from = s->scores[i].from;
		to = later(s->scores[end - 1].to, to);
		remove_at(s, i + 1, end - i - 1);
	} else {
		if (s->score_count == TCP_SCORE_MAX) {
			if (i == TCP_SCORE_MAX)
				return 0;
			s->score_count--;
			held = s->scores[s->score_count].to - s->scores[s->score_count].from;
		}
		memmove(&s->scores[i + 1], &s->scores[i],
			(s->score_count - i) * sizeof(s->scores[0]));
		s->score_count++;
	}
	s->scores[i] = (struct tcp_score){from, to};
	s->sacked += to - from - held;
	return to - from > held ? to - from - held : 0;
}

uint32_t recover_sacks(
	const struct tcp_conn *c, struct tcp_work_send *s, const struct tcp_segment *segment)
{
	uint32_t bytes = 0;
	for (unsigned i = 0; i < segment->sack_count; i++) {
		const struct tcp_sack *sack = &segment->sacks[i];
		const uint32_t from = sack->from - c->snd_una, to = sack->to - c->snd_una;
		if (from > 0 && from < to && to <= c->snd_nxt - c->snd_una)
			bytes += enter(s, sack->from, sack->to);
	}
	return bytes;
}

uint32_t recover_acked(const struct tcp_conn *c, struct tcp_work_send *s, uint32_t acked)
{
	uint32_t known = 0;
	if (!has_sack(c)) {
		// The first segment was not among those that duplicates stood for.
		known = smaller(s->sacked, acked > c->mss ? acked - c->mss : 0);
		if (s->sending != TCP_SENDING_FAST)
			known = s->sacked;
		s->sacked = smaller(s->sacked - known, c->snd_nxt - c->snd_una);
		return acked > known ? acked - known : 0;
	}
	while (s->score_count > 0 && tcp_before(s->scores[0].from, c->snd_una)) {
		struct tcp_score *first = &s->scores[0];
		if (tcp_after(first->to, c->snd_una)) {
			known += c->snd_una - first->from;
			first->from = c->snd_una;
			break;
		}
		known += first->to - first->from;
		remove_at(s, 0, 1);
	}
	s->sacked -= known;
	return acked - known;
}

uint32_t recover_duplicate(const struct tcp_conn *c, struct tcp_work_send *s)
{
	if (s->sending == TCP_SENDING_LOSS)
		return 0; // it may be the echo of what was sent again in vain
	// All but the first segment may have arrived.
	const uint32_t flight = c->snd_nxt - c->snd_una;
	const uint32_t most = flight > c->mss ? flight - c->mss : 0;
	const uint32_t bytes = smaller(c->mss, most > s->sacked ? most - s->sacked : 0);
	s->sacked += bytes;
	return bytes;
}

// IsLost of RFC 6675: below what it returns, what the peer does not hold is lost: three ranges, or
// more than two segments' bytes, were received above. snd_una: nothing is.
static uint32_t lost_edge(const struct tcp_conn *c, const struct tcp_work_send *s)
{
	uint32_t bytes = 0;
	for (uint32_t i = s->score_count; i-- > 0;) {
		bytes += s->scores[i].to - s->scores[i].from;
		if (bytes > (RECOVER_DUPLICATES - 1) * c->mss ||
			s->score_count - i >= RECOVER_DUPLICATES)
			return s->scores[i].from;
	}
	return c->snd_una;
}

bool recover_is_called_for(const struct tcp_conn *c, const struct tcp_work_send *s)
{
	if (c->snd_nxt == c->snd_una)
		return false;
	if (has_sack(c) && tcp_after(lost_edge(c, s), c->snd_una))
		return true;
	// Without SACK, duplicates may be the echo of what was sent again in vain: RFC 6582 3.2.
	const bool may_echo = !has_sack(c) && s->ssthresh != CUBIC_WINDOW_MAX &&
			      !tcp_after(c->snd_una, s->recover);
	return s->duplicates >= RECOVER_DUPLICATES && !may_echo;
}

// The first segment in flight, or as much of it as is missing.
static uint32_t head_end(const struct tcp_conn *c, const struct tcp_work_send *s)
{
	uint32_t len = smaller(c->mss, c->snd_nxt - c->snd_una);
	if (s->score_count > 0)
		len = smaller(len, s->scores[0].from - c->snd_una);
	return c->snd_una + len;
}

void recover_reduce(const struct tcp_conn *c, struct tcp_work_send *s, uint32_t flight)
{
	if (s->ssthresh == CUBIC_WINDOW_MAX)
		s->cubic = (struct tcp_cubic){0}; // the first: what is there is of another life
	s->ssthresh = cubic_lost(&s->cubic, smaller(s->cwnd, flight), c->mss);
}

// RFC 6937: cwnd such that what leaves is to what arrives as ssthresh is to what was in flight.
static void proportion(
	const struct tcp_conn *c, struct tcp_work_send *s, uint32_t pipe, uint32_t delivered)
{
	uint64_t allowed;
	s->prr_delivered += delivered;
	if (pipe > s->ssthresh) {
		const uint64_t sent =
			((uint64_t)s->prr_delivered * s->ssthresh + s->prr_flight - 1) /
			s->prr_flight;
		allowed = sent > s->prr_out ? sent - s->prr_out : 0;
	} else {
		uint32_t limit = s->prr_delivered > s->prr_out ? s->prr_delivered - s->prr_out : 0;
		if (limit < delivered)
			limit = delivered;
		allowed = smaller(s->ssthresh - pipe, limit + c->mss);
	}
	if (s->prr_out == 0 && allowed < c->mss)
		allowed = c->mss; // the fast retransmit itself
	s->cwnd = (uint32_t)(pipe + allowed);
}

void recover_fast(struct tcp_conn *c, struct tcp_work_send *s)
{
	recover_reduce(c, s, c->snd_nxt - c->snd_una);
	s->sending = TCP_SENDING_FAST;
	s->recover = c->snd_nxt;
	s->again_to = c->snd_una;
	s->lost_to = later(lost_edge(c, s), head_end(c, s));
	s->head_mark = c->snd_nxt;
	s->rescued = c->snd_una; // not before that is known to have arrived
	s->prr_flight = c->snd_nxt - c->snd_una;
	s->prr_delivered = s->prr_out = 0;
	s->probing = TCP_PROBING_NOT;
	proportion(c, s, recover_pipe(c, s), smaller(s->sacked, c->mss));
}

void recover_resend(struct tcp_conn *c, struct tcp_work_send *s)
{
	if (!has_sack(c))
		s->sacked = 0;
	s->sending = TCP_SENDING_LOSS;
	s->recover = s->lost_to = c->snd_nxt;
	s->again_to = c->snd_una;
	s->head_mark = c->snd_nxt;
	s->duplicates = 0;
	s->probing = TCP_PROBING_NOT;
	s->prior_cwnd = 0;
}

void recover_timeout(struct tcp_conn *c, struct tcp_work_send *s, uint32_t stamp)
{
	const bool is_first = s->sending == TCP_SENDING_OPEN;
	const uint32_t prior_cwnd = is_first ? s->cwnd : s->prior_cwnd;
	if (is_first) {
		// RFC 5681 3.1: once for a window, however often it times out.
		s->prior_ssthresh = s->ssthresh;
		s->again_stamp = stamp;
		recover_reduce(c, s, c->snd_nxt - c->snd_una);
	}
	// RFC 2018 8: who holds what it has not acknowledged at snd_una has thrown it away.
	if (has_sack(c) && s->score_count > 0 && s->scores[0].from == c->snd_una)
		s->score_count = s->sacked = 0;
	recover_resend(c, s);
	s->prior_cwnd = prior_cwnd;
	s->cwnd = c->mss;
	cubic_pause(&s->cubic);
}

static void end(struct tcp_work_send *s, bool has_scores)
{
	if (s->sending == TCP_SENDING_FAST)
		s->cwnd = s->ssthresh;
	s->sending = TCP_SENDING_OPEN;
	s->duplicates = 0;
	if (!has_scores)
		s->sacked = 0;
}

// Whether the segment at snd_una was sent again and lost again.
static bool is_lost_again(const struct tcp_conn *c, const struct tcp_work_send *s)
{
	if (!tcp_after(s->again_to, c->snd_una))
		return false;
	uint32_t bytes = 0;
	for (uint32_t i = s->score_count; i-- > 0 && tcp_after(s->scores[i].to, s->head_mark);)
		bytes += s->scores[i].to - later(s->scores[i].from, s->head_mark);
	return bytes > (RECOVER_DUPLICATES - 1) * c->mss;
}

void recover_go_on(struct tcp_conn *c, struct tcp_work_send *s, uint32_t acked, uint32_t delivered)
{
	if (!tcp_before(c->snd_una, s->recover)) {
		end(s, has_sack(c));
		return;
	}
	if (acked > 0) {
		s->head_mark = c->snd_nxt;
		s->again_to = later(s->again_to, c->snd_una);
		s->lost_to = later(s->lost_to, c->snd_una);
		if (!has_sack(c) && s->sending == TCP_SENDING_FAST) {
			// RFC 6582 3.2: a partial acknowledgement tells of the next loss.
			s->again_to = c->snd_una;
			s->lost_to = head_end(c, s);
		}
	}
	if (has_sack(c))
		s->lost_to = later(s->lost_to, lost_edge(c, s));
	if (s->sending == TCP_SENDING_FAST)
		proportion(c, s, recover_pipe(c, s), delivered);
}

void recover_sent(struct tcp_conn *c, struct tcp_work_send *s, uint32_t seq, uint32_t len)
{
	s->prr_out += len;
	if (seq == c->snd_una) {
		// RFC 5681 4.3: a retransmission lost is a second loss.
		if (tcp_after(s->again_to, seq))
			recover_reduce(c, s, c->snd_nxt - c->snd_una);
		s->head_mark = c->snd_nxt;
		s->alarm = TCP_ALARM_NONE; // it has a whole timeout to be acknowledged in
	}
	// A segment of what is lost may have been filled with what is new.
	if (tcp_before(seq, s->lost_to))
		s->lost_to = later(s->lost_to, seq + len);
	if (tcp_before(seq, s->recover) || tcp_before(seq, s->lost_to))
		s->again_to = later(s->again_to, seq + len);
}

uint32_t recover_next(
	const struct tcp_conn *c, const struct tcp_work_send *s, bool any, uint32_t *seq)
{
	const uint32_t above = s->score_count > 0 ? s->scores[s->score_count - 1].from : c->snd_una;
	// What was sent since recovery began is in flight, unless it is known to be lost:
	// recover_sent() does not note that it was sent again.
	const uint32_t most = tcp_before(above, s->recover) ? above : s->recover;
	const uint32_t end = any ? later(most, s->lost_to) : s->lost_to;
	if (is_lost_again(c, s)) {
		*seq = c->snd_una;
		return head_end(c, s) - c->snd_una;
	}
	uint32_t at = s->again_to, next = end;
	for (uint32_t i = 0; i < s->score_count; i++) {
		if (tcp_before(at, s->scores[i].from)) {
			next = tcp_before(s->scores[i].from, end) ? s->scores[i].from : end;
			break;
		}
		at = later(at, s->scores[i].to);
	}
	*seq = at;
	return tcp_before(at, next) ? next - at : 0;
}

uint32_t recover_rescue(const struct tcp_conn *c, struct tcp_work_send *s, uint32_t *seq)
{
	if (!has_sack(c) || s->sending != TCP_SENDING_FAST || !tcp_after(c->snd_una, s->rescued))
		return 0;
	uint32_t from = c->snd_una, to = c->snd_nxt;
	for (uint32_t i = s->score_count; i-- > 0;) {
		if (s->scores[i].to != to) {
			from = s->scores[i].to;
			break;
		}
		to = s->scores[i].from;
	}
	s->rescued = s->recover;
	*seq = to - from > c->mss ? to - c->mss : from;
	return to - *seq;
}
