// What may leave now, leaves: the windows of both sides, and in which order. For the files of the
// sending half.
#pragma once

#include "dataplane/net/tcp/work.h"

// Bytes, and the FIN, that were never sent.
static inline uint32_t output_unsent(const struct tcp_conn *c, const struct tcp_work_send *s)
{
	return s->queue.bytes + !!(c->flags & TCP_CONN_FIN_QUEUED) - (c->snd_nxt - c->snd_una);
}

// The initial window (RFC 6928), bytes.
uint32_t output_initial_window(const struct tcp_conn *c);

// From now on segments of at most `mss` bytes of payload, options subtracted, but not below what
// TCP_MSS_MIN leaves. Returns whether that is less than before.
bool output_lower(struct tcp *t, struct tcp_conn *c, uint16_t mss);

// Send all that the windows allow: first what is lost, then what is new.
void output_all(struct tcp *t, struct tcp_conn *c, struct tcp_work *work);

// Send one segment from `seq` on, whatever the windows are. `len` is cut to a segment. Returns what
// it took.
uint32_t output_one(
	struct tcp *t, struct tcp_conn *c, struct tcp_work *work, uint32_t seq, uint32_t len);
