// A TCP engine and, by hand, its peer: segments in, segments and events out, and a clock.
//
// Each step is a whole turn: what a test sends is taken, the worker's part is played by the test
// between wire_turn() and wire_flush(). Sequence numbers of the peer are told from its first, ours
// from the cookie, so that 1 is the first byte on both sides.
#pragma once

#include "dataplane/net/tcp/conn.h"

#define WIRE_OUT_MAX 256u
#define WIRE_EVENTS_MAX 64

// A segment that went out. seq and ack as they are on the wire.
struct wire_out {
	uint32_t seq, ack;
	uint16_t window;
	uint8_t flags;
	struct stream_address local, peer;
	struct tcp_hop hop;
	bool is_control;
	struct tcp_segment read; // its options, as the peer would read them
	char text[2048];
	size_t len;
};

struct wire {
	struct tcp *t;
	struct tcp_plan plan;
	struct tcp_io io;
	uint64_t now_us;
	struct stream_event events[WIRE_EVENTS_MAX];
	int event_max;
	struct wire_out outs[WIRE_OUT_MAX];
	unsigned out_count;

	// The peer, of the last handshake.
	struct stream_address local, peer;
	uint32_t first, cookie; // sequence numbers of the SYN and of its answer
	uint32_t ack; // what it acknowledges, relative
	uint32_t ts_echo; // of the last segment it got; 0: it uses no timestamps
	uint32_t window; // as on the wire
	struct stream *stream; // of the STREAM_OPENED seen last
};

// Make an engine of a small plan. wire_make() of a plan that the test has changed.
void wire_start(struct wire *wire);
void wire_make(struct wire *wire);
void wire_end(struct wire *wire);
struct tcp_plan wire_plan(void);

// Segments of the peer: its addresses, seq and ack relative, timestamps if it uses them.
struct tcp_segment wire_segment(
	const struct wire *wire, uint8_t flags, uint32_t seq, const char *text);

// One turn with these segments; without: only deadlines. Then the worker's part; then the flush.
// Returns how many were taken.
unsigned wire_turn(struct wire *wire, const struct tcp_segment *segments, unsigned count);
void wire_flush(struct wire *wire);

// A whole turn with one segment.
void wire_give(struct wire *wire, struct tcp_segment segment);
void wire_send(struct wire *wire, uint8_t flags, uint32_t seq, const char *text);
// A whole turn after so much time.
void wire_wait(struct wire *wire, uint64_t us);

// SYN and its answer; with the third segment. Options: MSS 1460 and what `flags` say.
enum wire_option {
	WIRE_BARE = 0,
	WIRE_TIMESTAMPS = 1,
	WIRE_SACK = 2,
	WIRE_SCALE = 4,
	WIRE_ALL = 7
};
struct tcp_segment wire_syn(struct wire *wire, unsigned options);
void wire_open(struct wire *wire, unsigned options);

// What the worker does, a turn each. What it writes leaves at once, all of it.
void wire_write(struct wire *wire, const char *text);
void wire_shut(struct wire *wire);
void wire_close(struct wire *wire, bool reset);

// The segments that went out since the last wire_forget(): the last one, and their number.
const struct wire_out *wire_last(const struct wire *wire);
void wire_forget(struct wire *wire);

// Whether that one is an ACK without text of these numbers.
bool wire_is_told(const struct wire *wire, uint32_t seq, uint32_t ack);

// The connection of wire->stream.
const struct tcp_conn *wire_conn(const struct wire *wire);
uint64_t wire_count(const struct wire *wire, enum tcp_counter which);

// Whether the events of this turn are these kinds, and no other.
bool wire_has_events(const struct wire *wire, unsigned count, ...);
// The text of all STREAM_DATA of this turn. It lives until the next call.
const char *wire_text(const struct wire *wire);

// Bits of what must always hold: each connection has a deadline in the wheel and is found, the
// counts agree.
void wire_check(const struct wire *wire);
