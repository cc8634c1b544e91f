// The sending half of a connection: what is queued, what is in flight, and when to send it again.
//
// Window: min(cwnd, snd_wnd) less the bytes in flight, by SACK's pipe (RFC 6675) where SACK is
// agreed on. Initial window 10 (RFC 6928), CUBIC (RFC 9438) in congestion avoidance, NewReno
// (RFC 6582) or RACK recovery (RFC 8985), RTO (RFC 6298) from 200 ms with Karn's rule, a tail-loss
// probe (RFC 8985 7), a persist timer (RFC 9293 3.8.6.1), all of which give up by a deadline. After
// an idle RTO cwnd is the initial window again (RFC 5681 4.1), so it need not be kept while idle.
//
// A one-segment answer touches line 0 of its work and no scoreboard.
#pragma once

#include "dataplane/net/tcp/conn.h"

// Our timestamp (RFC 7323): milliseconds from a random offset.
static inline uint32_t send_timestamp(const struct tcp *t, const struct tcp_conn *c)
{
	return t->now_ms + c->ts_offset;
}

// The worker's bytes enter the queue and leave as the windows allow.
// Returns the bytes taken: fewer, counted, when the pools or the stream's share are used up.
size_t send_write(struct tcp *t, struct tcp_conn *c, const struct span *parts, unsigned count);

// Bytes queued that the windows have not let out yet. (Those in flight are to us what a socket's
// buffer is to a kernel's: who writes need not wait for them.)
size_t send_queued(const struct tcp *t, const struct tcp_conn *c);

// FIN after what is queued. Moves the state: ESTABLISHED → FIN_WAIT_1, CLOSE_WAIT → LAST_ACK.
// Returns false, nothing done, when there is no work to keep track of it: reset the connection.
bool send_fin(struct tcp *t, struct tcp_conn *c);

// The acceptable ACK, window and SACK blocks of a segment (RFC 9293 3.10.7.4 step 5): the caller
// has checked snd_una <= ack <= snd_nxt. Frees what is acknowledged, measures, recovers, sends what
// now may be sent. Returns true if our FIN is acknowledged by it. May put STREAM_WRITABLE among the
// events: the caller sees to it that one fits. The caller looks whether it was the last thing under
// way (send_is_idle()).
bool send_acked(struct tcp *t, struct tcp_conn *c, const struct tcp_segment *segment);

// Whether everything sent is acknowledged and nothing is queued.
bool send_is_idle(const struct tcp *t, const struct tcp_conn *c);

// Whether the work must stay: something is under way, or cwnd has grown beyond the initial window
// and is worth keeping until the connection was idle for an RTO.
bool send_needs_work(const struct tcp *t, const struct tcp_conn *c);

// The nearest of this half's deadlines, us of the turn's clock; UINT64_MAX: none.
uint64_t send_deadline(const struct tcp *t, const struct tcp_conn *c);

// A deadline has passed, perhaps this half's: retransmit, probe, or give the connection up. Returns
// false if it was given up: the caller ends it with ETIMEDOUT. The caller looks whether work is
// still needed.
bool send_due(struct tcp *t, struct tcp_conn *c);

// An acknowledgement without data, with SACK blocks if something came out of order. Clears
// TCP_CONN_ACK_DUE, as every segment that goes out does.
void send_ack(struct tcp *t, struct tcp_conn *c);

// A RST for a connection, at snd_nxt.
void send_reset(struct tcp *t, struct tcp_conn *c);

// The path takes only segments of `mss` bytes of payload, options subtracted: what is in flight is
// cut anew and sent again (RFC 1191 6.5).
void send_shrink(struct tcp *t, struct tcp_conn *c, uint16_t mss);

// Time has passed in which something might have arrived: look what is lost, and go on.
void send_look_again(struct tcp *t, struct tcp_conn *c, struct tcp_work *work);

// Drop the queue; the connection is about to be freed.
void send_drop(struct tcp *t, struct tcp_conn *c);
