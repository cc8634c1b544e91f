// What is in flight, as runs of the sequence space that share a fate: under way since some time,
// held by the peer (SACK), or lost. The map that rack.c and recover.c judge by.
//
//   snd_una                                                        snd_nxt
//      | under way, sent | held by | lost | under way, | held | under way, |
//      | again at t5     | peer    |      | since t1   |      | since t3   |
//
// Pure but for the connection's work. Bounded by TCP_RUNS_MAX, whatever is sent and claimed.
#pragma once

#include "dataplane/net/tcp/work.h"

// Where run `i` ends.
static inline uint32_t flight_end(
	const struct tcp_conn *c, const struct tcp_work_send *s, unsigned i)
{
	return i + 1u < s->run_count ? s->runs[i + 1].from : c->snd_nxt;
}

// Bytes in flight that are believed to be on their way: RFC 6675 4, SetPipe. Without SACK each
// duplicate acknowledgement counts as a segment that arrived.
static inline uint32_t flight_pipe(const struct tcp_conn *c, const struct tcp_work_send *s)
{
	const uint32_t gone = s->sacked + s->lost, all = c->snd_nxt - c->snd_una;
	return all > gone ? all - gone : 0;
}

// [seq, to) has left now, for the first time or again. Called before snd_nxt moves on.
void flight_sent(const struct tcp *t, struct tcp_conn *c, struct tcp_work_send *s, uint32_t seq,
	uint32_t to);

// The last segment that is under way. Returns its length; 0: none is.
uint32_t flight_last(const struct tcp_conn *c, const struct tcp_work_send *s, uint32_t *seq);

// snd_una has moved on: forget what lies below.
void flight_drop(const struct tcp_conn *c, struct tcp_work_send *s);

// Make `at`, inside run `i`, the beginning of a run, which is i + 1 then. Returns false, nothing
// done, when there is no room: if need be, what is known of the two highest runs is given up for
// it, unless `i` is one of them.
bool flight_cut(const struct tcp_conn *c, struct tcp_work_send *s, unsigned i, uint32_t at);

// Give run `i` another fate.
void flight_set(const struct tcp_conn *c, struct tcp_work_send *s, unsigned i, enum tcp_fate fate);

// Make one of neighbours that have become alike. Changes the numbers of runs.
void flight_join(struct tcp_work_send *s);

// All that the peer does not hold is lost; all that is lost is under way after all; the peer holds
// nothing.
void flight_lose_all(const struct tcp_conn *c, struct tcp_work_send *s);
void flight_find_all(const struct tcp_conn *c, struct tcp_work_send *s);
void flight_unhold_all(const struct tcp_conn *c, struct tcp_work_send *s);
