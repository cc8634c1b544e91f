// The clauses of RFC 8985 6.2, by the map of the flight (flight.h) instead of a list of segments.
//
// How long a segment may be overtaken, the reordering window: not at all while the path has never
// been seen to re-order and enough has arrived for RFC 6675 to call it lost; else a quarter of the
// shortest round trip, another quarter for each round trip in which D-SACK told that it was not
// enough, at most a round trip.
//
// The arrival of something that was sent again proves nothing if the first of them may have been
// what arrived. Where the map is vague, RFC 6675's count of what is held above decides alone.

#include "dataplane/net/tcp/rack.h"

#include "dataplane/net/tcp/flight.h"
#include "dataplane/net/tcp/send.h"

#define MIN_RTT_LIFE_MS 300000u // routes change
#define WIDENED_MAX 64u

void rack_measured(const struct tcp *t, struct tcp_work_send *s, uint32_t rtt_us)
{
	struct tcp_rack *rack = &s->rack;
	if (rack->min_rtt_us != 0 && rtt_us > rack->min_rtt_us &&
		t->now_ms - rack->min_ms < MIN_RTT_LIFE_MS)
		return;
	rack->min_rtt_us = rtt_us > 0 ? rtt_us : 1;
	rack->min_ms = t->now_ms;
}

// Since it left; the map may be some microseconds ahead.
static uint32_t age_us(const struct tcp *t, const struct tcp_run *run)
{
	const int32_t age = (int32_t)((uint32_t)t->now_us - run->sent_us);
	return age > 0 ? (uint32_t)age : 0;
}

// Whether what left at `a_us` and ends at `a` left after the other.
static bool left_after(uint32_t a_us, uint32_t a, uint32_t b_us, uint32_t b)
{
	return a_us == b_us ? tcp_after(a, b) : tcp_after(a_us, b_us);
}

// Step 2: of a run, what ends at `end` has arrived.
static void arrived(const struct tcp *t, const struct tcp_conn *c, struct tcp_work_send *s,
	const struct tcp_segment *segment, const struct tcp_run *run, uint32_t end)
{
	struct tcp_rack *rack = &s->rack;
	const uint32_t rtt_us = age_us(t, run);
	if (run->is_vague)
		return;
	if (run->is_again) {
		// Half a millisecond of the stamp's and of ours is rounded off.
		if ((c->flags & TCP_CONN_TIMESTAMPS) && segment->has_timestamp &&
			send_timestamp(t, c) - segment->ts_echo > rtt_us / 1000 + 1)
			return;
		if (rtt_us < rack->min_rtt_us)
			return;
	}
	if (rack->has_arrived && !left_after(run->sent_us, end, rack->sent_us, rack->end))
		return;
	rack->has_arrived = true;
	rack->sent_us = run->sent_us;
	rack->end = end;
	rack->rtt_us = rtt_us;
}

// The highest end of what the peer was known to hold; snd_una: nothing.
static uint32_t highest(const struct tcp_conn *c, const struct tcp_work_send *s)
{
	for (unsigned i = s->run_count; i-- > 0;)
		if (s->runs[i].fate == TCP_FATE_HELD)
			return flight_end(c, s, i);
	return s->run_count > 0 ? s->runs[0].from : c->snd_una;
}

// Step 3.
static void note_order(
	struct tcp_work_send *s, const struct tcp_run *run, uint32_t end, uint32_t above)
{
	if (!run->is_again && !run->is_vague && tcp_before(end, above))
		s->rack.has_reordered = true;
}

uint32_t rack_acked(const struct tcp *t, const struct tcp_conn *c, struct tcp_work_send *s,
	const struct tcp_segment *segment)
{
	const uint32_t above = highest(c, s);
	uint32_t bytes = 0;
	for (unsigned i = 0; i < s->run_count && tcp_before(s->runs[i].from, c->snd_una); i++) {
		struct tcp_run *run = &s->runs[i];
		if (run->fate == TCP_FATE_HELD)
			continue;
		uint32_t end = flight_end(c, s, i);
		if (tcp_after(end, c->snd_una))
			end = c->snd_una;
		bytes += end - run->from;
		arrived(t, c, s, segment, run, end);
		note_order(s, run, end, above);
	}
	return bytes;
}

// The peer holds [from, to). Returns the bytes that this adds.
static uint32_t hold(const struct tcp *t, const struct tcp_conn *c, struct tcp_work_send *s,
	const struct tcp_segment *segment, const struct tcp_sack *sack, uint32_t above)
{
	uint32_t bytes = 0;
	for (unsigned i = 0; i < s->run_count && tcp_before(s->runs[i].from, sack->to); i++) {
		if (s->runs[i].fate == TCP_FATE_HELD || !tcp_after(flight_end(c, s, i), sack->from))
			continue;
		if (tcp_after(sack->from, s->runs[i].from)) {
			if (!flight_cut(c, s, i, sack->from))
				break; // at worst it is sent once more
			i++;
		}
		if (tcp_after(flight_end(c, s, i), sack->to) && !flight_cut(c, s, i, sack->to))
			break;
		const uint32_t end = flight_end(c, s, i);
		bytes += end - s->runs[i].from;
		arrived(t, c, s, segment, &s->runs[i], end);
		note_order(s, &s->runs[i], end, above);
		flight_set(c, s, i, TCP_FATE_HELD);
	}
	return bytes;
}

// Step 4, RFC 2883: the first block, of what is acknowledged or inside the second one.
static bool is_dsack(const struct tcp_segment *segment)
{
	const struct tcp_sack *first = &segment->sacks[0], *second = first + 1;
	if (!tcp_after(first->to, segment->ack))
		return true;
	return segment->sack_count > 1 && !tcp_before(first->from, second->from) &&
	       !tcp_after(first->to, second->to);
}

static void widen(const struct tcp_conn *c, struct tcp_work_send *s)
{
	struct tcp_rack *rack = &s->rack;
	if (rack->has_dsack && tcp_before(c->snd_una, rack->dsack_round))
		return;
	rack->has_dsack = true;
	rack->dsack_round = c->snd_nxt;
	rack->persists = RACK_PERSISTS;
	if (rack->widened < WIDENED_MAX)
		rack->widened++;
}

uint32_t rack_sacks(const struct tcp *t, const struct tcp_conn *c, struct tcp_work_send *s,
	const struct tcp_segment *segment)
{
	const uint32_t above = highest(c, s);
	uint32_t bytes = 0;
	// A probe of the tail says what it says by itself.
	if (is_dsack(segment) && s->probing != TCP_PROBING_AGAIN)
		widen(c, s);
	for (unsigned i = 0; i < segment->sack_count; i++) {
		const struct tcp_sack *sack = &segment->sacks[i];
		const uint32_t from = sack->from - c->snd_una, to = sack->to - c->snd_una;
		if (from > 0 && from < to && to <= c->snd_nxt - c->snd_una)
			bytes += hold(t, c, s, segment, sack, above);
	}
	flight_join(s);
	return bytes;
}

// As RFC 6675 counts: three ranges, more than two segments' bytes, or three acknowledgements.
static bool is_enough(unsigned ranges, uint32_t bytes, uint32_t mss)
{
	return ranges >= RACK_DUPLICATES || bytes > (RACK_DUPLICATES - 1) * mss;
}

// IsLost of RFC 6675: below what it returns, what the peer does not hold is lost. snd_una: nothing.
static uint32_t lost_edge(const struct tcp_conn *c, const struct tcp_work_send *s)
{
	uint32_t bytes = 0, ranges = 0;
	for (unsigned i = s->run_count; i-- > 0;) {
		if (s->runs[i].fate != TCP_FATE_HELD)
			continue;
		bytes += flight_end(c, s, i) - s->runs[i].from;
		if (is_enough(++ranges, bytes, c->mss))
			return s->runs[i].from;
	}
	return c->snd_una;
}

// Step 4: the reordering window.
static uint32_t window_us(const struct tcp_conn *c, const struct tcp_work_send *s, uint32_t edge)
{
	const struct tcp_rack *rack = &s->rack;
	if (!rack->has_reordered && (s->sending != TCP_SENDING_OPEN || edge != c->snd_una ||
					    s->duplicates >= RACK_DUPLICATES))
		return 0;
	const uint32_t least = rack->min_rtt_us ? rack->min_rtt_us : rack->rtt_us;
	const uint64_t window = (uint64_t)least * (1u + rack->widened) / 4;
	const uint32_t most = c->srtt_us ? c->srtt_us : rack->rtt_us;
	return window < most ? (uint32_t)window : most;
}

bool rack_detect(const struct tcp *t, const struct tcp_conn *c, struct tcp_work_send *s)
{
	struct tcp_rack *rack = &s->rack;
	const uint32_t edge = lost_edge(c, s);
	const uint32_t allowed_us = rack->rtt_us + window_us(c, s, edge);
	uint32_t wait_us = 0;
	bool is_second = false;
	for (unsigned i = 0; i < s->run_count; i++) {
		const struct tcp_run *run = &s->runs[i];
		if (run->fate != TCP_FATE_UNDER_WAY)
			continue;
		const uint32_t end = flight_end(c, s, i), age = age_us(t, run);
		const bool counts = !rack->has_reordered && !run->is_again && !tcp_after(end, edge);
		const bool is_due = rack->has_arrived &&
				    left_after(rack->sent_us, rack->end, run->sent_us, end);
		if (counts || (is_due && age >= allowed_us)) {
			is_second |= run->is_again && !tcp_before(run->sent_us, s->reduced_us);
			flight_set(c, s, i, TCP_FATE_LOST);
		} else if (is_due && allowed_us - age > wait_us) {
			wait_us = allowed_us - age;
		}
	}
	flight_join(s);
	rack->waits = wait_us > 0;
	rack->look_us = (uint32_t)t->now_us + wait_us;
	return is_second;
}

void rack_recovered(struct tcp_work_send *s)
{
	if (s->rack.persists > 0 && --s->rack.persists == 0)
		s->rack.widened = 0;
}
