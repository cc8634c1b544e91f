// Segments that no connection sends: what is answered from a segment alone.
#pragma once

#include "dataplane/net/tcp/conn.h"

// A RST to a segment that belongs to nothing (RFC 9293 3.5.2), unless it is one itself, or more of
// them would go out than plan.reset_rate: anybody can ask for one, in anybody's name.
void reply_reset(struct tcp *t, const struct tcp_segment *segment);

// A SYN-ACK.
//   number  ours: the cookie
void reply_syn(struct tcp *t, const struct tcp_segment *syn, uint32_t number);

// The last ACK of a connection in TIME_WAIT.
void reply_wait(
	struct tcp *t, const struct tcp_segment *segment, const struct tcp_wait_entry *entry);
