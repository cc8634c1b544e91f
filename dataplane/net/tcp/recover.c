// What is lost stands in the map of the flight (flight.h): with SACK, time has put it there
// (rack.c); without, three duplicates, and then each partial acknowledgement, tell of the first
// segment, and `sacked` is a guess from duplicates, which comes to what NewReno's inflated window
// allows. After a timeout all is lost but what the peer holds. What is lost is sent again in order,
// before anything new.
//
// The window in fast recovery is that of proportional rate reduction: rate halving without a silent
// half of a round trip, exact about what arrived.

#include "dataplane/net/tcp/recover.h"

#include "dataplane/net/tcp/flight.h"
#include "dataplane/net/tcp/rack.h"

static bool has_sack(const struct tcp_conn *c)
{
	return c->flags & TCP_CONN_SACK;
}

static uint32_t smaller(uint32_t a, uint32_t b)
{
	return a < b ? a : b;
}

uint32_t recover_acked(const struct tcp_conn *c, struct tcp_work_send *s, uint32_t acked)
{
	// The first segment was not among those that duplicates stood for.
	uint32_t known = smaller(s->sacked, acked > c->mss ? acked - c->mss : 0);
	if (s->sending != TCP_SENDING_FAST)
		known = s->sacked;
	s->sacked = smaller(s->sacked - known, c->snd_nxt - c->snd_una);
	return acked > known ? acked - known : 0;
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

bool recover_is_called_for(const struct tcp_conn *c, const struct tcp_work_send *s)
{
	if (has_sack(c) || s->lost > 0)
		return s->lost > 0;
	// Duplicates may be the echo of what was sent again in vain: RFC 6582 3.2.
	const bool may_echo = s->ssthresh != CUBIC_WINDOW_MAX && !tcp_after(c->snd_una, s->recover);
	return c->snd_nxt != c->snd_una && s->duplicates >= RECOVER_DUPLICATES && !may_echo;
}

// Without SACK: the first segment in flight is lost.
static void lose_first(const struct tcp_conn *c, struct tcp_work_send *s)
{
	const uint32_t end = c->snd_una + smaller(c->mss, c->snd_nxt - c->snd_una);
	for (unsigned i = 0; i < s->run_count && tcp_before(s->runs[i].from, end); i++) {
		if (tcp_after(flight_end(c, s, i), end) && !flight_cut(c, s, i, end))
			return; // the timeout will see to it
		flight_set(c, s, i, TCP_FATE_LOST);
	}
	flight_join(s);
}

void recover_reduce(const struct tcp *t, const struct tcp_conn *c, struct tcp_work_send *s)
{
	// In fast recovery the window follows what arrives, on its way to ssthresh.
	const uint32_t window = s->sending == TCP_SENDING_FAST ? s->ssthresh : s->cwnd;
	if (s->ssthresh == CUBIC_WINDOW_MAX)
		s->cubic = (struct tcp_cubic){0}; // the first: what is there is of another life
	s->ssthresh = cubic_lost(&s->cubic, window, c->mss);
	s->reduced_us = (uint32_t)t->now_us;
}

// RFC 9937 6.2: cwnd such that what leaves is to what arrives as ssthresh is to what was in flight;
// once less than ssthresh is, as much as arrives, and a segment more while all goes well.
static void proportion(
	const struct tcp_conn *c, struct tcp_work_send *s, uint32_t delivered, bool is_safe)
{
	const uint32_t pipe = flight_pipe(c, s);
	uint64_t allowed;
	s->prr_delivered += delivered;
	if (pipe > s->ssthresh) {
		const uint64_t sent =
			((uint64_t)s->prr_delivered * s->ssthresh + s->prr_flight - 1) /
			s->prr_flight;
		allowed = sent > s->prr_out ? sent - s->prr_out : 0;
	} else {
		allowed = s->prr_delivered > s->prr_out ? s->prr_delivered - s->prr_out : 0;
		if (allowed < delivered)
			allowed = delivered;
		if (is_safe)
			allowed += c->mss;
		allowed = smaller(s->ssthresh - pipe, (uint32_t)allowed);
	}
	if (s->prr_out == 0 && allowed < c->mss)
		allowed = c->mss; // the fast retransmit itself
	s->cwnd = (uint32_t)(pipe + allowed);
}

// What may arrive from now on, and what has arrived and left since.
static void begin_proportion(const struct tcp_conn *c, struct tcp_work_send *s, uint32_t delivered)
{
	s->prr_flight = c->snd_nxt - c->snd_una - s->sacked + delivered;
	s->prr_delivered = s->prr_out = 0;
}

void recover_second_loss(
	const struct tcp *t, const struct tcp_conn *c, struct tcp_work_send *s, uint32_t delivered)
{
	recover_reduce(t, c, s);
	begin_proportion(c, s, delivered);
}

void recover_fast(
	const struct tcp *t, struct tcp_conn *c, struct tcp_work_send *s, uint32_t delivered)
{
	recover_reduce(t, c, s);
	s->sending = TCP_SENDING_FAST;
	s->recover = c->snd_nxt;
	begin_proportion(c, s, delivered);
	s->probing = TCP_PROBING_NOT;
	if (!has_sack(c))
		lose_first(c, s);
	proportion(c, s, delivered, false);
}

void recover_resend(struct tcp_conn *c, struct tcp_work_send *s)
{
	if (!has_sack(c))
		s->sacked = 0;
	s->sending = TCP_SENDING_LOSS;
	s->recover = c->snd_nxt;
	s->duplicates = 0;
	s->probing = TCP_PROBING_NOT;
	s->prior_cwnd = 0;
	flight_lose_all(c, s);
}

void recover_timeout(
	const struct tcp *t, struct tcp_conn *c, struct tcp_work_send *s, uint32_t stamp)
{
	const bool is_first = s->sending == TCP_SENDING_OPEN;
	const uint32_t prior_cwnd = is_first ? s->cwnd : s->prior_cwnd;
	if (is_first) {
		// RFC 5681 3.1: once for a window, however often it times out.
		s->prior_ssthresh = s->ssthresh;
		s->again_stamp = stamp;
		recover_reduce(t, c, s);
	}
	// RFC 2018 8: who holds what it has not acknowledged at snd_una has thrown it away.
	if (s->run_count > 0 && s->runs[0].fate == TCP_FATE_HELD)
		flight_unhold_all(c, s);
	recover_resend(c, s);
	s->prior_cwnd = prior_cwnd;
	s->cwnd = c->mss;
	cubic_pause(&s->cubic);
}

static void end(struct tcp_work_send *s, bool has_map)
{
	if (s->sending == TCP_SENDING_FAST)
		s->cwnd = s->ssthresh;
	s->sending = TCP_SENDING_OPEN;
	s->duplicates = 0;
	if (has_map)
		rack_recovered(s);
	else
		s->sacked = 0;
}

void recover_take_back(const struct tcp_conn *c, struct tcp_work_send *s)
{
	s->cwnd = s->prior_cwnd;
	s->ssthresh = s->prior_ssthresh;
	s->recover = c->snd_una; // ends it
	flight_find_all(c, s);
}

void recover_go_on(struct tcp_conn *c, struct tcp_work_send *s, uint32_t acked, uint32_t delivered,
	bool is_safe)
{
	if (!tcp_before(c->snd_una, s->recover)) {
		end(s, has_sack(c));
		return;
	}
	if (s->sending != TCP_SENDING_FAST)
		return;
	if (acked > 0 && !has_sack(c))
		lose_first(c, s); // RFC 6582 3.2: a partial acknowledgement tells of the next
	proportion(c, s, delivered, is_safe);
}

void recover_sent(const struct tcp_conn *c, struct tcp_work_send *s, uint32_t seq, uint32_t len)
{
	s->prr_out += len;
	if (seq == c->snd_una)
		s->alarm = TCP_ALARM_NONE; // it has a whole timeout to be acknowledged in
}

uint32_t recover_next(const struct tcp_conn *c, const struct tcp_work_send *s, uint32_t *seq)
{
	for (unsigned i = 0; s->lost > 0 && i < s->run_count; i++)
		if (s->runs[i].fate == TCP_FATE_LOST) {
			*seq = s->runs[i].from;
			return flight_end(c, s, i) - *seq;
		}
	return 0;
}
