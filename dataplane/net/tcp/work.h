// What hangs on a connection while something is under way, from a pool.
#pragma once

#include "dataplane/net/tcp/conn.h"

#define TCP_SCORE_MAX 32u // ranges of the SACK scoreboard; more are forgotten, the oldest kept
#define TCP_KEPT_MAX 32u // ranges kept out of order; segments that would make more are dropped

struct tcp_score { // the peer holds [from, to)
	uint32_t from, to;
};

struct tcp_kept { // a run of received bytes
	uint32_t from; // sequence number of the first
	uint32_t changed; // when: see tcp_work_receive.changes
	struct tcp_queue queue; // not empty
};

// The sending half's fields are send.c's and recover.c's to arrange, the receiving half's
// receive.c's; both halves may be there alone.
struct tcp_work {
	uint32_t next_free;
	struct tcp_work_send {
		struct tcp_queue queue; // of chunks, from snd_una on
		uint32_t fin_seq; // of our FIN, if it is queued
		uint32_t cwnd, ssthresh; // bytes
		uint32_t recover; // RFC 6582: snd_nxt when recovery began
		uint64_t rto_at_us, probe_at_us, persist_at_us, began_us, delivered_us;
		uint32_t score_count;
		struct tcp_score scores[TCP_SCORE_MAX];
	} send;
	struct tcp_work_receive {
		uint32_t kept_count; // 0 and no has_fin: this half needs no work
		struct tcp_kept kept[TCP_KEPT_MAX]; // ascending; none overlap. Those before rcv_nxt
						    // are in order and wait to be handed over
		uint32_t changes; // counts them, for the order of SACK blocks
		uint32_t fin_seq; // of the peer's FIN, if it came early
		bool has_fin;
	} receive;
};

// The work of a connection, or NULL.
static inline struct tcp_work *work_of(const struct tcp *t, const struct tcp_conn *c)
{
	return c->work ? &t->works[c->work - 1] : NULL;
}

// The work of a connection, taken from the pool if it has none; NULL when the pool is empty.
struct tcp_work *work_take(struct tcp *t, struct tcp_conn *c);

// Give it back when neither half needs it.
void work_give(struct tcp *t, struct tcp_conn *c);
