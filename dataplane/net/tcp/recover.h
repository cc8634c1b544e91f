// Recovery: fast recovery with SACK (RFC 6675, 8985) or without (RFC 6582), after a timeout (RFC
// 6298, 2018), and the window while it lasts (RFC 9937). Pure but for the connection's work.
#pragma once

#include "dataplane/net/tcp/work.h"

#define RECOVER_DUPLICATES 3u // DupThresh of RFC 5681

// Without SACK: snd_una has moved on by `acked`. Returns how many bytes of that were not known to
// have arrived.
uint32_t recover_acked(const struct tcp_conn *c, struct tcp_work_send *s, uint32_t acked);

// A duplicate acknowledgement without SACK: some segment arrived. Returns its bytes, as believed.
uint32_t recover_duplicate(const struct tcp_conn *c, struct tcp_work_send *s);

// Whether fast recovery should begin: something is lost, or, without SACK, three duplicates.
bool recover_is_called_for(const struct tcp_conn *c, const struct tcp_work_send *s);

// A loss: ssthresh falls (RFC 9438 4.6), by the window, since that grows only while it is full.
void recover_reduce(const struct tcp *t, const struct tcp_conn *c, struct tcp_work_send *s);

// A retransmission was lost: another loss (RFC 5681 4.3).
void recover_second_loss(
	const struct tcp *t, const struct tcp_conn *c, struct tcp_work_send *s, uint32_t delivered);

// Begin fast recovery; a timeout's; or, for no fault of the network, send all in flight again.
//   delivered  bytes that arrived by the acknowledgement that began it
void recover_fast(
	const struct tcp *t, struct tcp_conn *c, struct tcp_work_send *s, uint32_t delivered);
void recover_timeout(
	const struct tcp *t, struct tcp_conn *c, struct tcp_work_send *s, uint32_t stamp);
void recover_resend(struct tcp_conn *c, struct tcp_work_send *s);

// The timeout was needless: as it was, then.
void recover_take_back(const struct tcp_conn *c, struct tcp_work_send *s);

// An acknowledgement during recovery, what it tells taken in: go on, or end it.
//   acked      bytes by which snd_una moved
//   delivered  bytes that arrived by what it says
//   is_safe    it moved snd_una and told of no more losses
void recover_go_on(struct tcp_conn *c, struct tcp_work_send *s, uint32_t acked, uint32_t delivered,
	bool is_safe);

// `len` bytes from `seq` on were sent during recovery, for the first time or again.
void recover_sent(const struct tcp_conn *c, struct tcp_work_send *s, uint32_t seq, uint32_t len);

// What to send again next: the first that is lost. Returns its length, not cut to segments; 0:
// nothing.
uint32_t recover_next(const struct tcp_conn *c, const struct tcp_work_send *s, uint32_t *seq);
