// TCP as a pure function: segments, the clock and random numbers in; segments and stream events
// out.
//
// One `struct tcp` a worker, shared with nobody. It reads no clock, makes no system call, knows no
// frame and no DPDK; so it runs the same in a worker, in a simulation in virtual time and in a
// fuzzer. Only passive opens: the origin side is the kernel's.
//
//   a turn    tcp_turn() · tcp_input() as often as bursts come · tcp_due() · the worker's calls ·
//             tcp_flush()
//
// Nothing is kept of a SYN (cookies, always): a connection begins with the segment that brings a
// good cookie back. An idle connection is a `struct tcp_conn` and its place in the flow table; what
// is under way, sending or out of order, hangs on a `struct tcp_work`, from a pool.
//
// RFC 9293 as amended by 6298, 5681, 6582, 6675, 9438, 6928, 7323, 2018, 6528, 4987, 5961, 6191,
// 1337, 6691, 8201/1191 with 5927, 8985 and 9937.
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "dataplane/net/tcp/segment.h"
#include "drivers/span.h"
#include "drivers/stream.h"

struct tcp;

#define TCP_LISTENERS_MAX 64u
#define TCP_PARTS_MAX 8u // pieces of one segment's payload
#define TCP_MSS_MIN 536u // what a peer may make us go down to (RFC 9293 3.7.1; CVE-2019-11479)
#define TCP_BURST_MAX 80u // segments of one tcp_input()

// Everything a `struct tcp` is built from; nothing is allocated after.
struct tcp_plan {
	uint32_t connections_max; // served at once
	uint32_t reserve; // above these, so that newcomers can be told why
	uint32_t wait_max; // TIME_WAIT entries; the oldest makes room
	uint32_t works_max; // connections with something under way at once
	uint32_t send_chunks, receive_chunks; // pools of what is not yet acknowledged, and of what
					      // came out of order or while paused
	uint32_t chunk_bytes; // of either
	uint32_t send_max; // bytes of one stream queued or in flight; beyond: stream_write() takes
			   // less. At most half of them are in flight
	uint32_t receive_max; // the receive window, and what may be kept of one stream, bytes
	size_t queue_high;
	uint32_t rto_min_us, rto_max_us; // 200 ms, 60 s
	uint32_t give_up_us; // data or FIN not acknowledged, or a window closed, for so long: over
	uint32_t idle_us; // nothing at all under way for so long: over; above the worker's own
	uint32_t wait_us; // how long TIME_WAIT lasts
	uint32_t linger_us; // how long a closed stream may take to see its queue off
	uint32_t delayed_ack_us; // 40 ms
	uint32_t syn_rate; // SYNs answered in a second from one source (/24, /56); 0: any number
	uint32_t challenge_rate; // challenge ACKs in a second on one connection (RFC 5961 7)
	uint32_t reset_rate; // RSTs in a second to segments of no connection, and at once; 0: any
			     // number
	uint16_t mss_v4, mss_v6; // what our link takes: the port's MTU less the headers
	uint8_t secret[32]; // keys cookies, initial sequence numbers and timestamp offsets. All
			    // workers of a process have the same: a handshake may change the queue
	uint64_t seed; // of the flow table, per worker
	unsigned listener_count;
	struct stream_address listeners[TCP_LISTENERS_MAX]; // the index is stream->listener; an
							    // all-zero address is any
};

// A segment on its way out. Everything in it is borrowed for the call.
struct tcp_out {
	const struct stream_address *local, *peer;
	const struct tcp_hop *hop; // where the last segment of the peer came from
	uint32_t seq, ack;
	uint16_t window; // as on the wire: scaled
	uint8_t flags; // TCP_SYN ...
	uint8_t option_bytes; // a multiple of 4
	uint8_t options[40];
	unsigned part_count;
	struct span parts[TCP_PARTS_MAX]; // the payload
	bool is_control; // RST, SYN-ACK or challenge: may draw on the reserved buffers
};

// What a TCP needs from below.
struct tcp_io {
	void *ctx;
	// Take a segment: render and send it, or drop it, counted there; TCP makes good for it.
	void (*send)(void *ctx, const struct tcp_out *out);
	// A random number that nobody can guess.
	uint64_t (*random)(void *ctx);
	// A segment, of the array that tcp_input() was given, that is no SYN, for no connection or
	// TIME_WAIT of ours and brings no good cookie: asked before it is counted or answered by a
	// RST. True: another worker sees to it, nothing more is done here. NULL: there is no other.
	bool (*elsewhere)(void *ctx, const struct tcp_segment *segment);
};

// Make one. Returns NULL when out of memory. `plan` is copied, `io` borrowed for its life.
struct tcp *tcp_create(const struct tcp_plan *plan, const struct tcp_io *io);
void tcp_destroy(struct tcp *t);
// Bytes that one of this plan takes.
uint64_t tcp_bytes(const struct tcp_plan *plan);
// And for each connection while it is idle: its struct and its share of the flow table.
uint64_t tcp_idle_bytes(const struct tcp_plan *plan);

// Begin a turn. Spans of the last turn's events die here.
//   now_us  of the monotonic clock; never goes back
//   events  the worker's array, of at least STREAM_EVENTS_MIN; TCP's until the next turn
void tcp_turn(struct tcp *t, uint64_t now_us, struct stream_event *events, int event_max);

// Take a burst of segments, all checked for their checksum. Stops before one whose events would no
// longer fit: returns how many were taken; offer the rest in the next turn.
//   payloads must live until the next tcp_turn(), since events point into them
unsigned tcp_input(struct tcp *t, const struct tcp_segment *segments, unsigned count);

// Deadlines that have passed, a bounded number, and what waited for room among the events.
void tcp_due(struct tcp *t);

// How many events there are in this turn.
int tcp_event_count(const struct tcp *t);

// The calls of drivers/stream.h, for the driver that is built on this. What is written leaves at
// once, as far as the windows allow.
size_t tcp_write(struct tcp *t, struct stream *s, const struct span *parts, unsigned count);
size_t tcp_queued(const struct tcp *t, const struct stream *s);
void tcp_shut(struct tcp *t, struct stream *s);
void tcp_close(struct tcp *t, struct stream *s, bool reset);
void tcp_pause(struct tcp *t, struct stream *s);
void tcp_resume(struct tcp *t, struct stream *s);
// Take no SYN any more: each is answered by a RST. A handshake that is under way comes to its end.
void tcp_stop_accepting(struct tcp *t);

// End of a turn: acknowledgements that found no answer to ride on are sent, or get their delay.
void tcp_flush(struct tcp *t);

// How long nothing can become due, us: at most `max_us`; 0 if something waits now.
uint64_t tcp_quiet_us(const struct tcp *t, uint64_t max_us);

// Whether a segment is for a connection, a TIME_WAIT or a listener of ours. Used to find the
// owner of a segment among workers. Pure.
enum tcp_owner { TCP_OWNER_NONE, TCP_OWNER_LISTENER, TCP_OWNER_CONNECTION };
enum tcp_owner tcp_owns(const struct tcp *t, const struct tcp_segment *segment);

// An ICMP "too big" quotes a segment of ours. Believed only if the quoted sequence number is in
// flight (RFC 5927 7.1); then the connection's segments shrink to `mtu`, never below the floor.
//   quoted  ports, addresses and seq of the segment of ours, local being its source
void tcp_too_big(struct tcp *t, const struct tcp_segment *quoted, uint16_t mtu);

// Whether more than connections_max are open: asked when a stream opens, true means that this one
// came in on the reserve.
bool tcp_is_full(const struct tcp *t);

// One list: enum, text, metric. Drops and refusals are named for what came.
#define TCP_COUNTERS(X) \
	X(accepted, "connections opened") \
	X(closed, "connections ended, in whatever way") \
	X(segments_in, "segments received") \
	X(segments_out, "segments sent") \
	X(bytes_in, "bytes received in order") \
	X(bytes_out, "bytes sent, retransmissions not counted") \
	X(retransmitted, "segments retransmitted") \
	X(rto_expired, "retransmission timers expired") \
	X(tail_probes, "tail-loss probes sent") \
	X(window_probes, "zero-window probes sent") \
	X(recoveries, "fast recoveries entered") \
	X(syn_answered, "SYNs answered with a cookie") \
	X(syn_limited, "SYNs dropped: more from one source than allowed in a second") \
	X(syn_refused, "SYNs answered by a RST: draining") \
	X(cookie_bad, "segments dropped: neither a known connection nor a good cookie") \
	X(cookie_late, "cookies brought back too late") \
	X(table_full, "connections reset: the table and its reserve are full") \
	X(no_listener, "segments for a port nobody listens on") \
	X(rst_sent, "RSTs sent") \
	X(rst_limited, "RSTs not sent to segments of no connection: the rate") \
	X(rst_in, "connections ended by the peer's RST") \
	X(out_of_window, "segments dropped: outside the window") \
	X(paws_old, "segments dropped: their timestamp is old (PAWS)") \
	X(challenged, "challenge ACKs sent") \
	X(challenge_limited, "challenge ACKs not sent: the connection's limit") \
	X(ack_unseen, "segments dropped: they acknowledge what was never sent") \
	X(out_of_order, "segments kept: out of order") \
	X(receive_none, "segments dropped: no chunk to keep them in") \
	X(send_none, "writes cut short: no chunk, or too much queued") \
	X(work_none, "connections reset: nothing left to keep track of what is under way") \
	X(gave_up, "connections given up: the peer acknowledges nothing") \
	X(idle_late, "connections ended: idle beyond the limit") \
	X(linger_late, "closed connections reset: their queue not taken by the deadline") \
	X(wait_reused, "TIME_WAITs replaced by a newer SYN") \
	X(wait_evicted, "TIME_WAITs dropped early: their table is full") \
	X(mss_lowered, "connections whose segments shrank: a path takes no more") \
	X(too_big_ignored, "ICMP too-big messages not believed")

enum tcp_counter {
#define X(name, text) TCP_##name,
	TCP_COUNTERS(X)
#undef X
		TCP_COUNTERS_COUNT,
};

struct tcp_stats {
	_Atomic uint64_t counters[TCP_COUNTERS_COUNT]; // written: the worker; any thread may read
	_Atomic uint32_t open, waiting, working; // connections, TIME_WAITs, works in use now
};

// What is counted; any thread may read it.
const struct tcp_stats *tcp_stats(const struct tcp *t);

// A counter's name and what it counts.
const char *tcp_counter_name(enum tcp_counter counter);
const char *tcp_counter_text(enum tcp_counter counter);
