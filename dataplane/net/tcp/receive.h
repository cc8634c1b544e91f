// The receiving half of a connection: what came in order is handed over where it lies; what came
// out of order, or while the worker does not read, is kept in chunks within the window.
#pragma once

#include "dataplane/net/tcp/conn.h"

// The text and FIN of an acceptable segment (RFC 9293 3.10.7.4 steps 7 and 8), trimmed to the
// window by the caller. Puts STREAM_DATA and STREAM_EOF among the events.
// Returns true if the peer's FIN has now been reached in order.
bool receive_take(struct tcp *t, struct tcp_conn *c, const struct tcp_segment *segment);

// The worker reads again, or there is room among the events again: hand over what is kept.
// Returns as receive_take() does.
bool receive_more(struct tcp *t, struct tcp_conn *c);

// Whether something is kept that is in order and could be handed over.
bool receive_has_more(const struct tcp *t, const struct tcp_conn *c);

// The window to tell in the segment that is being made, as on the wire: scaled, silly windows
// avoided (RFC 9293 3.8.6.2.2). Its right edge, noted in rcv_edge, never moves left (RFC 7323 2.4):
// what the scale cannot express is rounded up.
uint16_t receive_window(const struct tcp *t, struct tcp_conn *c);

// SACK blocks of what is kept out of order, the most recently changed first (RFC 2018 4). Returns
// how many, at most `max`.
unsigned receive_sacks(
	const struct tcp *t, const struct tcp_conn *c, struct tcp_sack *sacks, unsigned max);

// The nearest of this half's deadlines (the delayed acknowledgement); UINT64_MAX: none.
uint64_t receive_deadline(const struct tcp *t, const struct tcp_conn *c);

// Drop what is kept.
void receive_drop(struct tcp *t, struct tcp_conn *c);
