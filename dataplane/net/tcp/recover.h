// What is lost and what is not: the SACK scoreboard (RFC 2018, 6675), fast recovery with it or
// without (RFC 6582), and the window while it lasts (RFC 6937). Pure but for the connection's work.
#pragma once

#include "dataplane/net/tcp/work.h"

#define RECOVER_DUPLICATES 3u // DupThresh of RFC 5681 and 6675

// Bytes in flight: sent, not known to have arrived, not believed lost, or sent again since (RFC
// 6675 4, SetPipe; without SACK each duplicate acknowledgement counts as a segment that arrived).
uint32_t recover_pipe(const struct tcp_conn *c, const struct tcp_work_send *s);

// The SACK blocks of a segment whose acknowledgement number is snd_una by now. Blocks below it
// (D-SACK, RFC 2883) and those beyond snd_nxt are ignored. Returns the bytes newly held.
uint32_t recover_sacks(
	const struct tcp_conn *c, struct tcp_work_send *s, const struct tcp_segment *segment);

// snd_una has moved on by `acked`. Returns how many bytes of that were not known to have arrived.
uint32_t recover_acked(const struct tcp_conn *c, struct tcp_work_send *s, uint32_t acked);

// A duplicate acknowledgement without SACK: some segment arrived. Returns its bytes, as believed.
uint32_t recover_duplicate(const struct tcp_conn *c, struct tcp_work_send *s);

// Whether fast recovery should begin: three duplicates, or as much as that above snd_una.
bool recover_is_called_for(const struct tcp_conn *c, const struct tcp_work_send *s);

// A loss: ssthresh falls, by what was in flight and no more than the window (RFC 9438 4.6).
void recover_reduce(const struct tcp_conn *c, struct tcp_work_send *s, uint32_t flight);

// Begin fast recovery; a timeout's; or, for no fault of the network, send all in flight again.
void recover_fast(struct tcp_conn *c, struct tcp_work_send *s);
void recover_timeout(struct tcp_conn *c, struct tcp_work_send *s, uint32_t stamp);
void recover_resend(struct tcp_conn *c, struct tcp_work_send *s);

// An acknowledgement during recovery, its SACK blocks taken in: end it, or learn what else is lost.
//   acked      bytes by which snd_una moved
//   delivered  bytes that arrived by what it says
void recover_go_on(struct tcp_conn *c, struct tcp_work_send *s, uint32_t acked, uint32_t delivered);

// [seq, seq + len) was sent during recovery, for the first time or again.
void recover_sent(struct tcp_conn *c, struct tcp_work_send *s, uint32_t seq, uint32_t len);

// What to send again next (RFC 6675 NextSeg): what is lost (rule 1); with `any`, all that the peer
// has received something above (rule 3). Returns its length, not cut to segments; 0: nothing.
uint32_t recover_next(
	const struct tcp_conn *c, const struct tcp_work_send *s, bool any, uint32_t *seq);

// The last segment, when nothing else is left to send and nothing above it could tell of its loss:
// once until all of it is acknowledged (rule 4). Returns its length; 0: not now.
uint32_t recover_rescue(const struct tcp_conn *c, struct tcp_work_send *s, uint32_t *seq);
