// The sending half's deadline, and what is done when it comes.
//
//   nothing in flight, but something to send   the peer's window is closed: probe it
//   in flight                                  the timeout; before it, in good weather, a probe of
//                                              the tail
//   nothing at all, but a window worth keeping the work goes when that has cooled
//
// All of them end at give_up_us after the peer last took something: a peer that acknowledges and
// acknowledges but keeps its window closed is given up too.

#include "dataplane/net/tcp/send_due.h"

#include "dataplane/net/tcp/flight.h"
#include "dataplane/net/tcp/output.h"
#include "dataplane/net/tcp/recover.h"
#include "dataplane/net/tcp/rtt.h"
#include "dataplane/net/tcp/send.h"

#define PROBE_FIRST_MS 1000u // RFC 8985 7.2, before any sample
#define PROBE_MIN_MS 10u // on links so fast that the peer's own turns take longer than a round trip
#define PROBE_DELAY_MS 200u // how long a peer may hold back its acknowledgement of the last segment
// Timeouts in a row after which a path is suspected to swallow large segments (RFC 4821 7.7,
// without its search): first down to what every IPv6 link takes, then to the floor.
// Where such segments have arrived before, bad luck is likelier: twice as many.
#define SHRINK_AFTER 3u
#define SHRINK_TO 1200u
#define SHRINK_AGAIN_AFTER 5u

static uint32_t timeout_ms(const struct tcp *t, const struct tcp_conn *c)
{
	return rtt_timeout_us(t, c) / 1000;
}

// RFC 8985 7.2: once a flight, with SACK to tell what came of it. Beyond its letter also in fast
// recovery: who has little to send would wait for the timeout whenever the last retransmission, or
// what the peer said of it, is lost.
static bool may_probe(const struct tcp_conn *c, const struct tcp_work_send *s)
{
	return (c->flags & TCP_CONN_SACK) && s->sending != TCP_SENDING_LOSS &&
	       s->probing == TCP_PROBING_NOT && c->rto_backoff == 0 && c->snd_wnd > 0;
}

static uint32_t probe_ms(const struct tcp_conn *c, const struct tcp_work_send *s)
{
	if (c->srtt_us == 0)
		return PROBE_FIRST_MS;
	const uint32_t wait = (2 * c->srtt_us + 999) / 1000;
	// It may hold back what it has to say of a single segment that it expects (RFC 9293
	// 3.8.6.3).
	const bool is_single = c->snd_nxt - c->snd_una <= c->mss;
	const uint32_t delay = is_single && s->sending == TCP_SENDING_OPEN ? PROBE_DELAY_MS : 0;
	return (wait > PROBE_MIN_MS ? wait : PROBE_MIN_MS) + delay;
}

// Whether it is one of those that stand before, or for, the timeout.
static bool is_retransmission(uint8_t alarm)
{
	return alarm == TCP_ALARM_RTO || alarm == TCP_ALARM_PROBE || alarm == TCP_ALARM_REORDER;
}

// Until what may have been overtaken has had its time.
static uint32_t look_ms(const struct tcp *t, const struct tcp_work_send *s)
{
	const int32_t left_us = (int32_t)(s->rack.look_us - (uint32_t)t->now_us);
	return left_us > 0 ? ((uint32_t)left_us + 999) / 1000 : 0;
}

// When something was sent or taken last.
static uint32_t last_ms(const struct tcp_work_send *s)
{
	return tcp_after(s->progress_ms, s->sent_ms) ? s->progress_ms : s->sent_ms;
}

void send_due_set(struct tcp *t, struct tcp_conn *c, struct tcp_work_send *s, bool anew)
{
	if (c->snd_nxt != c->snd_una) {
		if (anew || !is_retransmission(s->alarm))
			s->rto_ms = t->now_ms + timeout_ms(t, c);
		s->alarm = TCP_ALARM_RTO;
		s->alarm_ms = s->rto_ms;
		if (s->rack.waits) {
			const uint32_t at_ms = t->now_ms + look_ms(t, s);
			if (tcp_before(at_ms, s->rto_ms)) {
				s->alarm = TCP_ALARM_REORDER;
				s->alarm_ms = at_ms;
			}
		} else if (may_probe(c, s)) {
			const uint32_t at_ms = last_ms(s) + probe_ms(c, s);
			s->alarm = TCP_ALARM_PROBE;
			if (tcp_before(at_ms, s->rto_ms))
				s->alarm_ms = at_ms;
		}
	} else if (output_unsent(c, s) > 0) {
		if (anew || s->alarm != TCP_ALARM_PERSIST)
			s->alarm_ms = t->now_ms + timeout_ms(t, c);
		s->alarm = TCP_ALARM_PERSIST;
	} else if (s->cwnd > output_initial_window(c)) {
		s->alarm = TCP_ALARM_COOL;
		s->alarm_ms = s->sent_ms + timeout_ms(t, c);
	} else {
		s->alarm = TCP_ALARM_NONE;
	}
}

static uint32_t end_ms(const struct tcp *t, const struct tcp_work_send *s)
{
	return s->progress_ms + t->plan.give_up_us / 1000;
}

uint64_t send_deadline(const struct tcp *t, const struct tcp_conn *c)
{
	const struct tcp_work *work = work_of(t, c);
	if (!work || work->send.alarm == TCP_ALARM_NONE)
		return UINT64_MAX;
	const struct tcp_work_send *s = &work->send;
	uint32_t at_ms = s->alarm_ms;
	if (s->alarm != TCP_ALARM_COOL && tcp_before(end_ms(t, s), at_ms))
		at_ms = end_ms(t, s);
	const int32_t ahead_ms = (int32_t)(at_ms - t->now_ms);
	return ahead_ms > 0 ? t->now_us + (uint64_t)ahead_ms * 1000 : t->now_us;
}

// One octet beyond a closed window (RFC 9293 3.8.6.1), the same until it is taken; or, if the
// window is only too small for a decent segment, as much as it takes.
static void persist(struct tcp *t, struct tcp_conn *c, struct tcp_work *work)
{
	struct tcp_work_send *s = &work->send;
	s->alarm = TCP_ALARM_NONE;
	if (c->snd_wnd > 0) {
		output_one(t, c, work, c->snd_una, c->snd_wnd);
		return;
	}
	tcp_count(t, TCP_window_probes);
	s->is_persisting = true;
	s->is_timed = false;
	output_one(t, c, work, c->snd_una, 1);
	rtt_back_off(c);
}

// What is known to be lost, if only the window holds it back; something new if there is; else the
// last segment again (RFC 8985 7.3).
static void probe(struct tcp *t, struct tcp_conn *c, struct tcp_work *work)
{
	struct tcp_work_send *s = &work->send;
	const uint32_t flight = c->snd_nxt - c->snd_una, unsent = output_unsent(c, s);
	const uint32_t fresh = unsent < c->mss ? unsent : c->mss;
	const bool has_new = fresh > 0 && flight + fresh <= c->snd_wnd && s->lost == 0;
	uint32_t seq = c->snd_nxt, len = fresh;
	tcp_count(t, TCP_tail_probes);
	s->probing = has_new ? TCP_PROBING_NEW : TCP_PROBING_AGAIN;
	if (!has_new)
		len = s->lost > 0 ? recover_next(c, s, &seq) : flight_last(c, s, &seq);
	if (len > 0)
		recover_sent(c, s, seq, output_one(t, c, work, seq, len));
	s->probe_end = c->snd_nxt;
	s->again_stamp = send_timestamp(t, c);
	s->alarm = TCP_ALARM_NONE;
}

// Nobody tells us, but large segments do not seem to arrive.
static void suspect(struct tcp *t, struct tcp_conn *c, const struct tcp_work_send *s)
{
	const uint32_t more = s->has_passed ? SHRINK_AFTER : 0;
	if (c->rto_backoff == SHRINK_AFTER + more && c->snd_nxt - c->snd_una > SHRINK_TO)
		output_lower(t, c, SHRINK_TO);
	if (c->rto_backoff == SHRINK_AGAIN_AFTER + more && c->snd_nxt - c->snd_una > TCP_MSS_MIN)
		output_lower(t, c, 0); // to the floor
}

static void time_out(struct tcp *t, struct tcp_conn *c, struct tcp_work *work)
{
	tcp_count(t, TCP_rto_expired);
	rtt_back_off(c);
	suspect(t, c, &work->send);
	recover_timeout(t, c, &work->send, send_timestamp(t, c));
	output_all(t, c, work);
	work->send.alarm = TCP_ALARM_NONE;
}

bool send_due(struct tcp *t, struct tcp_conn *c)
{
	struct tcp_work *work = work_of(t, c);
	if (!work || work->send.alarm == TCP_ALARM_NONE)
		return true;
	struct tcp_work_send *s = &work->send;
	if (s->alarm != TCP_ALARM_COOL && !tcp_before(t->now_ms, end_ms(t, s)))
		return false;
	if (tcp_before(t->now_ms, s->alarm_ms))
		return true;
	if (s->alarm == TCP_ALARM_COOL) {
		s->alarm = TCP_ALARM_NONE;
		return true;
	}
	if (s->alarm == TCP_ALARM_REORDER)
		send_look_again(t, c, work);
	else if (s->alarm == TCP_ALARM_PERSIST || c->snd_wnd == 0)
		persist(t, c, work);
	else if (s->alarm == TCP_ALARM_PROBE)
		probe(t, c, work);
	else
		time_out(t, c, work);
	send_due_set(t, c, s, false);
	return true;
}
