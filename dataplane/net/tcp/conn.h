// A connection inside TCP, and the engine that holds them all. For the files of this folder.
//
//   struct tcp_conn   two cache lines, all that an idle connection is
//   struct tcp_work   what is under way: unacknowledged bytes, recovery, what came out of order;
//                     hung on a connection while it needs it, given back when it falls idle
#pragma once

#include <assert.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#include "dataplane/net/tcp/chunks.h"
#include "dataplane/net/tcp/flows.h"
#include "dataplane/net/tcp/sources.h"
#include "dataplane/net/tcp/syncookie.h"
#include "dataplane/net/tcp/tcp.h"
#include "dataplane/net/tcp/wait.h"
#include "dataplane/timers.h"
#include "drivers/ip.h"

// RFC 9293 3.3.2, without LISTEN and SYN-SENT, which need no connection, and TIME-WAIT, which has
// its own table. SYN-RECEIVED is a cookie.
enum tcp_state {
	TCP_FREE,
	TCP_ESTABLISHED,
	TCP_CLOSE_WAIT, // the peer has ended; we may still send
	TCP_LAST_ACK, // both have ended; our FIN is not acknowledged
	TCP_FIN_WAIT_1, // we have ended; our FIN is not acknowledged
	TCP_FIN_WAIT_2, // it is acknowledged; the peer may still send
	TCP_CLOSING, // both have ended at once
};

enum tcp_conn_flag {
	TCP_CONN_TIMESTAMPS = 1 << 0, // agreed on
	TCP_CONN_SACK = 1 << 1, // agreed on
	TCP_CONN_PAUSED = 1 << 2, // the worker does not read
	TCP_CONN_ORPHAN = 1 << 3, // the worker has closed it: its queue and FIN are seen off
	TCP_CONN_ACK_DUE = 1 << 4, // something came that is not acknowledged yet
	TCP_CONN_ACK_NOW = 1 << 5, // and must be at the end of this turn
	TCP_CONN_FIN_QUEUED = 1 << 6, // FIN follows the last byte of the queue
	TCP_CONN_EOF_TOLD = 1 << 7, // STREAM_EOF was delivered
	TCP_CONN_LISTED = 1 << 8, // on the list of those that tcp_due() and tcp_flush() look at
	TCP_CONN_WAS_HIGH = 1 << 9, // queued passed queue_high: STREAM_WRITABLE is owed
	TCP_CONN_SCALE_UNSURE = 1 << 10, // the cookie came back without its timestamp: the peer's
					 // scale counts as 0 until the SYN-ACK's echo arrives; once
					 // something was sent it cannot any more, and 0 it stays
	TCP_CONN_FAILED = 1 << 11, // to be ended in the next turn: we ran out of works
};

struct tcp_conn {
	struct stream stream; // first: addresses are the flow's key
	uint32_t rcv_nxt; // next expected
	uint32_t rcv_edge; // right edge of the window we have told; never moves left
	uint32_t snd_una; // oldest not acknowledged
	uint32_t snd_nxt; // next to send; with a FIN it counts; never goes back
	// 64
	uint32_t snd_wnd; // the peer's window, bytes
	uint32_t snd_wl1; // seq of the last window update (RFC 9293 3.10.7.4); for WL2 snd_una does
	uint32_t ts_recent; // RFC 7323 4.3; 0: none came yet, or none are agreed on
	uint32_t active_ms; // when the last acceptable segment came. It stands still while an ACK
			    // is due, whose delay it then begins, and from a close by the worker
			    // on, whose linger it then begins. ts_recent is no older: idle_us is
			    // far below the 24 days of RFC 7323 5.5
	uint32_t ts_offset; // of our timestamps: random for each tuple
	uint32_t srtt_us, rttvar_us; // RFC 6298; 0: no sample yet
	struct tcp_hop hop;
	uint16_t mss; // payload bytes of a full segment, options subtracted
	uint16_t flags; // enum tcp_conn_flag
	uint8_t state; // enum tcp_state
	uint8_t scales; // of the peer's windows (low 4 bits) and of ours (high 4)
	uint8_t rto_backoff; // expiries in a row
	uint8_t challenges; // sent (low 4 bits) in one second (its low 4 bits)
	uint32_t work; // index + 1 of its struct tcp_work; 0: none
	struct timers_entry timer; // its one deadline: always in the wheel. Of a free one: `next`
				   // in the list of free ones
} __attribute__((aligned(64)));
static_assert(sizeof(struct tcp_conn) == 128, "two cache lines");
static_assert(offsetof(struct tcp_conn, snd_wnd) == 64, "what is in order is told from line 0");

// What a write in hand has put at the end of its queue, where the writer has it.
struct tcp_written {
	const struct span *parts;
	unsigned count; // at most TCP_PARTS_MAX
	uint32_t bytes; // 0: no write is in hand, or not all of it was taken
};

struct tcp {
	struct tcp_plan plan;
	const struct tcp_io *io;
	uint64_t now_us;
	uint32_t now_ms; // the same, for timestamps and ages
	struct stream_event *events; // of this turn
	int event_max, event_count;
	int input_max; // places for the events of segments: the others are for tcp_due()

	struct tcp_conn *conns; // connections_max + reserve
	uint32_t conn_max, conn_count;
	uint32_t used_conns; // those from here on were never open
	uint32_t free_conn; // index + 1: of the others, the one that ended last
	uint32_t ended_conn; // index + 1: ended in this turn, free in the next
	uint8_t scale; // of the windows we tell
	struct tcp_flows *flows;
	struct tcp_wait *waits;
	struct timers timers;
	struct tcp_work *works;
	uint32_t free_work, used_works; // likewise
	struct tcp_kept *kept; // for those that keep runs: TCP_KEPT_MAX each
	uint32_t free_kept, used_kept; // likewise
	struct tcp_chunks send_chunks, receive_chunks;
	struct tcp_written written;
	uint32_t *listed; // connections to look at before the turn ends
	uint32_t listed_count;
	bool is_accepting, has_begun;
	struct tcp_stats stats;
	struct sources *sources; // SYNs of each source in this second
	uint64_t resets_ns; // when all RSTs sent so far to nobody's segments are paid for
	struct syncookie syncookie;
};

// The index of a connection.
static inline uint32_t tcp_index(const struct tcp *t, const struct tcp_conn *c)
{
	return (uint32_t)(c - t->conns);
}

// The MSS that our link allows.
static inline uint16_t tcp_mss_of(const struct tcp *t, const struct stream_address *local)
{
	return ip_is_v4(local->ip) ? t->plan.mss_v4 : t->plan.mss_v6;
}

// The window that a SYN-ACK tells, which is never scaled.
static inline uint16_t tcp_first_window(const struct tcp *t)
{
	return t->plan.receive_max < UINT16_MAX ? (uint16_t)t->plan.receive_max : UINT16_MAX;
}

// Whether a connection is the flow's, and is not over.
bool tcp_is_of(const struct tcp_conn *c, const struct stream_address *local,
	const struct stream_address *peer);

// The connection of a flow; NULL: none.
struct tcp_conn *tcp_find(const struct tcp *t, uint64_t hash, const struct stream_address *local,
	const struct stream_address *peer);

// A fresh connection, ESTABLISHED, for the addresses of a segment, entered under their hash;
// sequence numbers, options and listener are the caller's to fill. NULL: none is free.
struct tcp_conn *tcp_open(struct tcp *t, uint64_t hash, const struct tcp_segment *segment);

// It is over: drop all that hangs on it. STREAM_CLOSED tells `error`, unless the worker has closed
// it. The struct is free again in the next turn.
void tcp_end(struct tcp *t, struct tcp_conn *c, int error);

// The same for one that both have ended, we first: what must be known of it goes to TIME_WAIT.
void tcp_end_waiting(struct tcp *t, struct tcp_conn *c);

// Put an event, for which the caller knows that there is room; none for an orphan.
//   data  STREAM_DATA's
void tcp_tell(struct tcp *t, struct tcp_conn *c, enum stream_event_kind kind, struct span data);

// Have tcp_due() and tcp_flush() of this turn look at it.
void tcp_list(struct tcp *t, struct tcp_conn *c);

// When an idle connection, or one whose worker has closed it, is over, us; UINT64_MAX: something is
// under way, which has its own deadline.
uint64_t tcp_last_deadline(const struct tcp *t, const struct tcp_conn *c);

// Set its deadline: the nearest of all that may become due.
void tcp_arm(struct tcp *t, struct tcp_conn *c);

// Count.
static inline void tcp_count_many(struct tcp *t, enum tcp_counter which, uint64_t many)
{
	_Atomic uint64_t *counter = &t->stats.counters[which];
	atomic_store_explicit(counter, atomic_load_explicit(counter, memory_order_relaxed) + many,
		memory_order_relaxed);
}

static inline void tcp_count(struct tcp *t, enum tcp_counter which)
{
	tcp_count_many(t, which, 1);
}
