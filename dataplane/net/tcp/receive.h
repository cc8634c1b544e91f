// The receiving half of a connection: what came in order is handed over where it lies; what came
// out of order, or while the worker does not read, is kept in chunks within the window.
#pragma once

#include "dataplane/net/tcp/conn.h"

// The text and FIN of an acceptable segment (RFC 9293 3.10.7.4 steps 7 and 8), trimmed to the
// window by the caller: `seq` is at or after rcv_nxt. Puts at most STREAM_DATA and STREAM_EOF among
// the events.
// Returns true if the peer's FIN has now been reached in order.
bool receive_take(struct tcp *t, struct tcp_conn *c, uint32_t seq, struct span text, bool has_fin);

// Text at rcv_nxt, while nothing is kept and the worker reads: hand it over.
static inline void receive_in_order(struct tcp *t, struct tcp_conn *c, struct span text)
{
	tcp_tell(t, c, STREAM_DATA, text);
	c->rcv_nxt += (uint32_t)text.len;
	// Every second segment is acknowledged at once (RFC 9293 3.8.6.3), whatever its size; so is
	// one that a NIC has made of several.
	bool is_second = c->flags & TCP_CONN_ACK_DUE || text.len > c->mss;
	c->flags |= is_second ? TCP_CONN_ACK_DUE | TCP_CONN_ACK_NOW : TCP_CONN_ACK_DUE;
	tcp_count_many(t, TCP_bytes_in, text.len);
}

// The worker reads again, or there is room among the events again: hand over what is kept. The
// bytes stay where they are until the next turn's tcp_input().
// Returns as receive_take() does.
bool receive_more(struct tcp *t, struct tcp_conn *c);

// Whether something is kept that is in order and that the worker would read.
bool receive_has_more(const struct tcp *t, const struct tcp_conn *c);

// Whether something is kept that is in order, read or not.
bool receive_has_owed(const struct tcp *t, const struct tcp_conn *c);

// The window to tell in the segment that is being made, as on the wire: scaled, silly windows
// avoided (RFC 9293 3.8.6.2.2). Notes its right edge in rcv_edge, which never moves left: what the
// scale cuts off is still honoured (RFC 7323 2.4).
uint16_t receive_window(const struct tcp *t, struct tcp_conn *c);

// SACK blocks of what is kept out of order, the most recently changed first (RFC 2018 4). Returns
// how many, at most `max`.
unsigned receive_sacks(
	const struct tcp *t, const struct tcp_conn *c, struct tcp_sack *sacks, unsigned max);

// The nearest of this half's deadlines (the delayed acknowledgement); UINT64_MAX: none.
uint64_t receive_deadline(const struct tcp *t, const struct tcp_conn *c);

// Drop what is kept.
void receive_drop(struct tcp *t, struct tcp_conn *c);
