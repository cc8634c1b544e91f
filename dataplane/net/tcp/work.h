// What hangs on a connection while something is under way, from a pool.
#pragma once

#include "dataplane/net/tcp/conn.h"
#include "dataplane/net/tcp/cubic.h"

#define TCP_SCORE_MAX \
	16u // ranges of the SACK scoreboard; beyond: the highest are forgotten, and
	    // at worst sent once more than needed
#define TCP_KEPT_MAX 32u // ranges kept out of order; segments that would make more are dropped

struct tcp_score { // the peer holds [from, to)
	uint32_t from, to;
};

struct tcp_kept { // a run of received bytes
	uint32_t from; // sequence number of the first
	uint32_t changed; // when: see tcp_work_receive.changes
	struct tcp_queue queue; // not empty
};

enum tcp_sending {
	TCP_SENDING_OPEN, // nothing seems lost
	TCP_SENDING_FAST, // fast recovery, until `recover` is acknowledged
	TCP_SENDING_LOSS, // after a timeout: all up to `recover` counts as lost
};

// What the sending half's one deadline means.
enum tcp_alarm {
	TCP_ALARM_NONE,
	TCP_ALARM_RTO, // RFC 6298
	TCP_ALARM_PROBE, // tail-loss probe: RFC 8985 7
	TCP_ALARM_PERSIST, // RFC 9293 3.8.6.1: the window is closed
	TCP_ALARM_COOL, // idle for an RTO: cwnd is not worth keeping any longer
};

// The tail-loss probe of this flight, of which there is one (RFC 8985 7.3).
enum tcp_probing { TCP_PROBING_NOT, TCP_PROBING_NEW, TCP_PROBING_AGAIN };

// The sending half's fields are send.c's and recover.c's to arrange, the receiving half's
// receive.c's; both halves may be there alone. Times are milliseconds modulo 2^32.
struct tcp_work {
	uint32_t next_free; // index + 1
	// Line 0 is all that an answer touches which is sent once and acknowledged.
	struct tcp_work_send {
		struct tcp_queue queue; // from snd_una on
		uint32_t cwnd, ssthresh; // bytes; cwnd 0: not begun
		uint32_t window_max; // the largest snd_wnd seen
		uint32_t sacked; // bytes in `scores`; without SACK what duplicates stand for
		uint32_t timed_end, timed_us; // the segment that is timed: its end, when it left
		uint32_t alarm_ms, rto_ms; // the deadline; the RTO behind a tail-loss probe
		uint32_t progress_ms; // when the peer last took something, or it was begun
		uint8_t sending; // enum tcp_sending
		uint8_t alarm; // enum tcp_alarm
		bool is_timed, is_doubtful; // doubtful: something was sent again meanwhile
		// 64
		uint32_t sent_ms; // when a segment last left
		uint32_t recover; // snd_nxt when recovery began (RFC 6582)
		uint32_t lost_to; // what is not in `scores` below this is lost
		uint32_t again_to; // what is not in `scores` below this was sent again
		uint32_t head_mark; // snd_nxt when the segment at snd_una was last sent again
		uint32_t rescued; // until snd_una is above, no tail is sent again (RFC 6675)
		uint32_t prr_delivered, prr_out, prr_flight; // RFC 6937
		uint32_t prior_cwnd, prior_ssthresh; // before a timeout that may prove needless
		uint32_t again_stamp; // our timestamp when it, or a tail-loss probe, came
		uint32_t probe_end; // snd_nxt when the probe was sent
		uint8_t duplicates; // acknowledgements in a row
		uint8_t probing; // enum tcp_probing
		bool is_persisting; // the peer's closed window was probed
		uint32_t score_count;
		struct tcp_cubic cubic; // counts once ssthresh does: after a loss
		struct tcp_score scores[TCP_SCORE_MAX]; // ascending, apart
	} send;
	struct tcp_work_receive {
		struct tcp_kept *kept; // TCP_KEPT_MAX, of a pool of their own; NULL: none is kept.
				       // Ascending; none overlap. Those before rcv_nxt are in
				       // order and wait to be handed over
		uint32_t kept_count; // 0 and no has_fin: this half needs no work
		uint32_t changes; // counts them, for the order of SACK blocks
		uint32_t fin_seq; // of the peer's FIN, if it came early
		bool has_fin;
	} receive;
} __attribute__((aligned(64)));
static_assert(offsetof(struct tcp_work, send.sent_ms) == 64, "line 0 ends where it says");
static_assert(offsetof(struct tcp_work, send.cubic) <= 128, "two lines without a loss");

// Make the pool of t->plan.works_max, and that of kept runs: as many connections have some as there
// are chunks to keep them in. Returns 0 or -ENOMEM.
int work_init(struct tcp *t);
void work_fini(struct tcp *t);

// The work of a connection, or NULL.
static inline struct tcp_work *work_of(const struct tcp *t, const struct tcp_conn *c)
{
	return c->work ? &t->works[c->work - 1] : NULL;
}

// The work of a connection, taken from the pool, all zero, if it has none; NULL when the pool is
// empty.
struct tcp_work *work_take(struct tcp *t, struct tcp_conn *c);

// Let it keep runs; false when the pool of these is empty.
bool work_take_kept(struct tcp *t, struct tcp_work *work);

// Bytes that both pools take.
uint64_t work_bytes(const struct tcp_plan *plan);

// Give it back: neither half needs it (send_needs_work()), what they held is dropped.
void work_give(struct tcp *t, struct tcp_conn *c);
