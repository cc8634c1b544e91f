// Loss told by time (RFC 8985, RACK): what left before something that has arrived, and has had a
// little longer than that to arrive itself, is lost; be it sent for the first time or again.
//
// For connections with SACK. Pure but for the connection's work.
#pragma once

#include "dataplane/net/tcp/work.h"

#define RACK_DUPLICATES \
	3u // DupThresh of RFC 6675: from then on a path that has never re-ordered
	   // is given no time to
#define RACK_PERSISTS 16u // recoveries for which a wider window lasts

// A round trip was measured.
void rack_measured(const struct tcp *t, struct tcp_work_send *s, uint32_t rtt_us);

// A segment acknowledges all below its number, which snd_una is by now; the runs still tell of
// what lies below. Returns how many bytes of it were not known to have arrived.
uint32_t rack_acked(const struct tcp *t, const struct tcp_conn *c, struct tcp_work_send *s,
	const struct tcp_segment *segment);

// Its SACK blocks. Those beyond snd_nxt are ignored; one that is below the acknowledgement, or in
// the next (D-SACK, RFC 2883) tells that something was sent again for nothing. Returns the bytes
// newly held.
uint32_t rack_sacks(const struct tcp *t, const struct tcp_conn *c, struct tcp_work_send *s,
	const struct tcp_segment *segment);

// Set lost what is, by what has arrived and the time that has passed; rack.look_us tells when to
// look again. Returns whether a retransmission was lost that had left since the window fell last.
bool rack_detect(const struct tcp *t, const struct tcp_conn *c, struct tcp_work_send *s);

// A recovery is over.
void rack_recovered(struct tcp_work_send *s);
