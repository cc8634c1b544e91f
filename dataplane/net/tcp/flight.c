// Runs are ascending, touch each other, begin at snd_una and end at snd_nxt; there are none when
// nothing is in flight. What leaves within a sixteenth of a round trip counts as sent at the time
// when the first of it left: so a round trip in good weather is some sixteen runs, however many
// segments it has, and an answer that leaves at once is one.
//
// When there is no room for one more run, some knowledge is given up, on the safe side: what is
// `vague` counts as under way, sent when the last of it was; so it is found lost later than it
// might be, and may be sent again though the peer had it. Its arrival is no evidence of time.

#include "dataplane/net/tcp/flight.h"

#include <string.h>

#define GRAIN_SHIFT 4u // of a round trip

static void count(struct tcp_work_send *s, const struct tcp_run *run, uint32_t bytes)
{
	if (run->fate == TCP_FATE_HELD)
		s->sacked += bytes;
	else if (run->fate == TCP_FATE_LOST)
		s->lost += bytes;
}

void flight_set(const struct tcp_conn *c, struct tcp_work_send *s, unsigned i, enum tcp_fate fate)
{
	struct tcp_run *run = &s->runs[i];
	const uint32_t bytes = flight_end(c, s, i) - run->from;
	count(s, run, -bytes);
	run->fate = (uint8_t)fate;
	count(s, run, bytes);
}

static void remove_at(struct tcp_work_send *s, unsigned i, unsigned many)
{
	s->run_count -= (uint8_t)many;
	memmove(&s->runs[i], &s->runs[i + many], (s->run_count - i) * sizeof(s->runs[0]));
}

static uint32_t later(uint32_t a, uint32_t b)
{
	return tcp_after(a, b) ? a : b;
}

// Give up what is known of the two highest.
static void blur(const struct tcp_conn *c, struct tcp_work_send *s)
{
	const unsigned i = s->run_count - 2u;
	struct tcp_run *low = &s->runs[i], *high = low + 1;
	flight_set(c, s, i, TCP_FATE_UNDER_WAY);
	flight_set(c, s, i + 1, TCP_FATE_UNDER_WAY);
	low->sent_us = later(low->sent_us, high->sent_us);
	low->is_again |= high->is_again;
	low->is_vague = true;
	s->run_count--;
}

bool flight_cut(const struct tcp_conn *c, struct tcp_work_send *s, unsigned i, uint32_t at)
{
	assert(tcp_after(at, s->runs[i].from));
	if (s->run_count == TCP_RUNS_MAX) {
		if (i + 2 >= TCP_RUNS_MAX)
			return false;
		blur(c, s);
	}
	memmove(&s->runs[i + 1], &s->runs[i], (s->run_count - i) * sizeof(s->runs[0]));
	s->run_count++;
	s->runs[i + 1].from = at;
	return true;
}

static bool are_alike(const struct tcp_run *a, const struct tcp_run *b)
{
	return a->fate == b->fate &&
	       (a->fate != TCP_FATE_UNDER_WAY ||
		       (a->sent_us == b->sent_us && a->is_again == b->is_again &&
			       a->is_vague == b->is_vague));
}

void flight_join(struct tcp_work_send *s)
{
	unsigned kept = 0;
	for (unsigned i = 1; i < s->run_count; i++) {
		struct tcp_run *low = &s->runs[kept];
		const struct tcp_run *high = &s->runs[i];
		if (are_alike(low, high)) {
			low->is_vague |= high->is_vague || low->sent_us != high->sent_us;
			low->is_again |= high->is_again;
			low->sent_us = later(low->sent_us, high->sent_us);
		} else {
			s->runs[++kept] = *high;
		}
	}
	if (s->run_count > 0)
		s->run_count = (uint8_t)(kept + 1);
}

// New data, from snd_nxt on.
static void append(struct tcp_conn *c, struct tcp_work_send *s, uint32_t now_us)
{
	if (s->run_count > 0) {
		struct tcp_run *last = &s->runs[s->run_count - 1];
		if (last->fate == TCP_FATE_UNDER_WAY && !last->is_again && !last->is_vague &&
			now_us - last->sent_us <= c->srtt_us >> GRAIN_SHIFT)
			return;
		if (s->run_count == TCP_RUNS_MAX)
			blur(c, s);
	}
	s->runs[s->run_count++] = (struct tcp_run){.from = c->snd_nxt, .sent_us = now_us};
}

static void again(
	struct tcp_conn *c, struct tcp_work_send *s, uint32_t from, uint32_t to, uint32_t now_us)
{
	for (unsigned i = 0; i < s->run_count && tcp_before(s->runs[i].from, to); i++) {
		if (!tcp_after(flight_end(c, s, i), from) || s->runs[i].fate == TCP_FATE_HELD)
			continue;
		bool is_exact = true;
		if (tcp_after(from, s->runs[i].from)) {
			is_exact = flight_cut(c, s, i, from);
			i += is_exact;
		}
		if (is_exact && tcp_after(flight_end(c, s, i), to))
			is_exact = flight_cut(c, s, i, to);
		struct tcp_run *run = &s->runs[i];
		flight_set(c, s, i, TCP_FATE_UNDER_WAY);
		run->sent_us = now_us;
		run->is_again = true;
		run->is_vague = !is_exact;
	}
	flight_join(s);
}

// The time of what leaves now. Of two segments with the same, the lower has left first: so what
// goes back in a turn counts as a microsecond later.
static uint32_t stamp(const struct tcp *t, struct tcp_work_send *s, uint32_t seq, uint32_t to)
{
	const uint32_t now_us = (uint32_t)t->now_us;
	if (s->run_count == 0 || tcp_after(now_us, s->stamp_us))
		s->stamp_us = now_us;
	else if (tcp_before(seq, s->stamp_end))
		s->stamp_us++;
	s->stamp_end = to;
	return s->stamp_us;
}

void flight_sent(
	const struct tcp *t, struct tcp_conn *c, struct tcp_work_send *s, uint32_t seq, uint32_t to)
{
	const uint32_t nxt = c->snd_nxt, now_us = stamp(t, s, seq, to);
	if (tcp_before(seq, nxt))
		again(c, s, seq, tcp_before(to, nxt) ? to : nxt, now_us);
	if (tcp_after(to, nxt))
		append(c, s, now_us);
}

uint32_t flight_last(const struct tcp_conn *c, const struct tcp_work_send *s, uint32_t *seq)
{
	unsigned end = s->run_count;
	while (end > 0 && s->runs[end - 1].fate != TCP_FATE_UNDER_WAY)
		end--;
	unsigned first = end;
	while (first > 0 && s->runs[first - 1].fate == TCP_FATE_UNDER_WAY)
		first--;
	if (first == end)
		return 0;
	const uint32_t to = flight_end(c, s, end - 1);
	*seq = s->runs[first].from;
	if (to - *seq > c->mss)
		*seq = to - c->mss;
	return to - *seq;
}

void flight_drop(const struct tcp_conn *c, struct tcp_work_send *s)
{
	unsigned gone = 0;
	for (; gone < s->run_count && !tcp_after(flight_end(c, s, gone), c->snd_una); gone++)
		count(s, &s->runs[gone], s->runs[gone].from - flight_end(c, s, gone));
	if (gone == s->run_count)
		s->run_count = 0;
	else if (gone > 0)
		remove_at(s, 0, gone);
	if (s->run_count > 0) {
		count(s, &s->runs[0], s->runs[0].from - c->snd_una);
		s->runs[0].from = c->snd_una;
	}
}

void flight_lose_all(const struct tcp_conn *c, struct tcp_work_send *s)
{
	for (unsigned i = 0; i < s->run_count; i++)
		if (s->runs[i].fate == TCP_FATE_UNDER_WAY)
			flight_set(c, s, i, TCP_FATE_LOST);
	flight_join(s);
}

void flight_find_all(const struct tcp_conn *c, struct tcp_work_send *s)
{
	for (unsigned i = 0; i < s->run_count; i++)
		if (s->runs[i].fate == TCP_FATE_LOST)
			flight_set(c, s, i, TCP_FATE_UNDER_WAY);
	flight_join(s);
}

void flight_unhold_all(const struct tcp_conn *c, struct tcp_work_send *s)
{
	for (unsigned i = 0; i < s->run_count; i++)
		if (s->runs[i].fate == TCP_FATE_HELD)
			flight_set(c, s, i, TCP_FATE_UNDER_WAY);
	flight_join(s);
}
