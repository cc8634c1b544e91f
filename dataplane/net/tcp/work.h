// What hangs on a connection while something is under way, from a pool.
#pragma once

#include "dataplane/net/tcp/conn.h"
#include "dataplane/net/tcp/cubic.h"

#define TCP_RUNS_MAX 32u // of what is in flight; beyond: see flight.c
#define TCP_KEPT_MAX 32u // ranges kept out of order; segments that would make more are dropped

enum tcp_fate {
	TCP_FATE_UNDER_WAY,
	TCP_FATE_HELD, // by the peer, as SACK told
	TCP_FATE_LOST, // and not sent again yet
};

// A part of what is in flight, up to the next one or snd_nxt. Times are microseconds modulo 2^32.
struct tcp_run {
	uint32_t from;
	uint32_t sent_us; // when it last left
	uint8_t fate; // enum tcp_fate
	bool is_again; // more than once
	bool is_vague; // some of it left earlier, or was not sent again, or is held
};

// What time tells of losses (RFC 8985); see rack.c.
struct tcp_rack {
	uint32_t sent_us, end; // the segment sent last of those that arrived: when it left, its end
	uint32_t rtt_us; // and how long it took
	uint32_t min_rtt_us, min_ms; // the shortest round trip of late, and when it was; 0: none
	uint32_t look_us; // when more may be lost, if `waits`
	uint32_t dsack_round; // one D-SACK counts until snd_una is here
	bool has_arrived; // sent_us and what follows are of this disorder
	bool has_reordered; // the path does
	bool has_dsack; // dsack_round counts
	bool waits;
	uint8_t widened; // by so many quarters of a round trip, because of D-SACK
	uint8_t persists; // for so many recoveries
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
	TCP_ALARM_REORDER, // RFC 8985 6.3: what was sent earlier has had its time to arrive
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
		uint32_t sacked; // bytes the peer holds; without SACK what duplicates stand for
		uint32_t timed_end, timed_us; // the segment that is timed: its end, when it left
		uint32_t alarm_ms, rto_ms; // the deadline; the RTO behind a tail-loss probe
		uint32_t progress_ms; // when the peer last took something, or it was begun
		uint8_t sending; // enum tcp_sending
		uint8_t alarm; // enum tcp_alarm
		bool is_timed, is_doubtful; // doubtful: something was sent again meanwhile
		// 64
		uint32_t sent_ms; // when a segment last left
		uint32_t stamp_us,
			stamp_end; // of the latest run, and what left by it last: see flight.c
		uint32_t lost; // bytes of `runs` that are
		uint8_t run_count;
		uint8_t duplicates; // acknowledgements in a row
		uint8_t probing; // enum tcp_probing
		bool is_persisting; // the peer's closed window was probed
		bool has_passed; // segments as large as ours have arrived
		struct tcp_run runs[TCP_RUNS_MAX]; // see flight.h
		uint32_t recover; // snd_nxt when recovery began (RFC 6582)
		uint32_t reduced_us; // when the window fell: what left since may make it fall again
		uint32_t prr_delivered, prr_out, prr_flight; // RFC 9937
		uint32_t prior_cwnd, prior_ssthresh; // before a timeout that may prove needless
		uint32_t again_stamp; // our timestamp when it, or a tail-loss probe, came
		uint32_t probe_end; // snd_nxt when the probe was sent
		struct tcp_rack rack;
		struct tcp_cubic cubic; // counts once ssthresh does: after a loss
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
static_assert(offsetof(struct tcp_work, send.runs[1]) <= 128, "two lines for one run");

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
