// Segments of a connection on their way out: header, options, the acknowledgement that rides on
// each of them.
#pragma once

#include "dataplane/net/tcp/work.h"

#define EMIT_TIMESTAMP_BYTES 12u // the option, with the two NOPs that align it: peers look for them

// Send the sequence space [seq, seq + len), between snd_una and the end of the queue, FIN included:
// payload from the queue where it lies, PSH at the end of the queue, FIN if `len` reaches it.
// Returns what the segment took of it, at least 1: no more than the segment size and its pieces
// allow.
uint32_t emit_data(
	struct tcp *t, struct tcp_conn *c, struct tcp_work *work, uint32_t seq, uint32_t len);

// Send a segment without payload at snd_nxt.
//   flags  TCP_ACK, or with TCP_RST
void emit_bare(struct tcp *t, struct tcp_conn *c, uint8_t flags);
