// A TCP on a stage: its clock, its peers as scripts have them, and all that it does, kept until the
// script has named it.
#pragma once

#include <stdbool.h>
#include <stdint.h>

#include "dataplane/net/tcp/tcp.h"
#include "tests/sim/tcp/wire.h"

#define PLAY_FLOWS 16u
#define PLAY_QUEUE 512u
#define PLAY_TRACE 16u

// One peer. Sequence numbers of scripts are relative to these two.
struct play_flow {
	struct stream_address peer, local;
	uint32_t peer_isn, our_isn;
	uint32_t peer_next, our_next; // relative: after all that was sent so far
	bool is_scaled, has_timestamps;
	uint8_t our_scale, peer_scale;
	uint32_t ts_first; // the peer's timestamp clock: its value at ts_first_us
	uint64_t ts_first_us;
	uint32_t ts_ours, ts_base; // the last that came from us, and that of the SYN-ACK
	struct stream *stream; // NULL: not open
	uint64_t written; // bytes that the worker wrote
	uint64_t told; // bytes that the worker was told of
};

struct play_out {
	uint64_t at_us;
	struct play_flow *flow;
	struct wire wire; // its payload is checked and gone: only `len` is of use
	uint32_t our_isn_before; // SYN-ACK: what the flow had
};

struct play_told {
	uint64_t at_us;
	struct play_flow *flow;
	enum stream_event_kind kind;
	int error;
	size_t bytes;
};

struct play {
	const char *file;
	int line;
	bool is_loud;
	struct tcp_plan plan;
	struct tcp *tcp; // NULL: not begun
	uint64_t now_us, random;
	uint64_t step_us; // when the last step happened
	bool is_in_turn;
	struct stream_event events[TCP_BURST_MAX];
	int events_seen;
	struct play_flow flows[PLAY_FLOWS];
	struct play_flow *flow; // of which the script speaks
	struct play_out outs[PLAY_QUEUE];
	struct play_told told[PLAY_QUEUE];
	unsigned out_count, told_count;
	char trace[PLAY_TRACE][300]; // the last lines
	unsigned trace_count;
};

// Say what is wrong at the script's line, with the last of what happened, and end the program.
void play_fail(const struct play *p, const char *format, ...)
	__attribute__((format(printf, 2, 3), noreturn));

void play_init(struct play *p, const char *file, bool is_loud);
// Build the TCP, with what the plan now says; nothing if there is one.
void play_begin(struct play *p);
// Leave it alone until every deadline has passed: nothing may be left of anything.
void play_end(struct play *p);

// Segments of the flow in hand, as one burst in a turn of its own.
void play_in(struct play *p, const struct wire *segments, unsigned count);
// Be in a turn, for a call.
void play_turn(struct play *p);
// End the turn, if one is on.
void play_flush(struct play *p);

// Let the time pass until then, or until something goes out or is told.
void play_until(struct play *p, uint64_t us);
// Fail if something is pending that no step has named.
void play_expect_nothing(const struct play *p);

// Forget the first pending segment, the first told.
void play_took_out(struct play *p);
void play_took_told(struct play *p);

// Choose the flow's address so that our sequence numbers begin within `bytes` before they wrap.
void play_near_wrap(struct play *p, const struct wire *syn, uint32_t bytes);
