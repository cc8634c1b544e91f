// One connection by hand, without the receiving half: what goes out is caught, what comes in is
// made up, time stands still until it is moved.
//
// The stream is a pattern, so that every payload that goes out can be checked where it is caught.
// Sequence numbers are offsets: 0 is the first byte.
#pragma once

#include "dataplane/net/tcp/emit.h"
#include "dataplane/net/tcp/output.h"
#include "dataplane/net/tcp/recover.h"
#include "dataplane/net/tcp/rtt.h"
#include "dataplane/net/tcp/send.h"

#define RIG_OUT_MAX 4096u
#define RIG_MSS 1000u

struct rig_out {
	uint32_t seq, len; // of payload
	uint32_t window, stamp, echo;
	uint64_t at_us;
	uint8_t flags;
	unsigned sack_count;
};

struct rig {
	struct tcp t;
	struct tcp_conn c;
	struct tcp_io io;
	struct stream_event events[8];
	struct rig_out outs[RIG_OUT_MAX];
	unsigned out_count;
	uint32_t stamp; // of the last that was forgotten
	uint32_t written;
	unsigned sack_count; // what receive_sacks() says
	struct tcp_sack sacks[TCP_SACK_MAX];
	char *stream; // the pattern
	void (*caught)(struct rig *rig, const struct rig_out *out);
	void *user;
};

#define RIG_STREAM_BYTES (4u << 20)

// A connection that has just opened: mss RIG_MSS, a window of 64 kB, the clock at some time. With
// the flags (enum tcp_conn_flag) that were agreed on.
void rig_start(struct rig *rig, unsigned flags);
void rig_end(struct rig *rig);

// Let time pass.
void rig_wait(struct rig *rig, uint64_t us);
// Until the deadline, and have it. Returns what send_due() does.
bool rig_due(struct rig *rig);
// Time until the deadline, ms; UINT64_MAX: none.
uint64_t rig_left_ms(const struct rig *rig);

// Write so many bytes of the pattern.
size_t rig_write(struct rig *rig, uint32_t bytes);

// The peer acknowledges all below `ack`, echoing the timestamp of what went out last. Returns what
// send_acked() does.
bool rig_ack(struct rig *rig, uint32_t ack);
// With a window as on the wire, one or more SACK blocks as pairs, ended by 0, 0.
bool rig_ack_full(struct rig *rig, uint32_t ack, uint32_t window, uint32_t echo,
	const struct tcp_sack *sacks, unsigned sack_count);
// SACK blocks [from, to) by variable arguments: rig_sack(rig, ack, 1, from, to).
bool rig_sack(struct rig *rig, uint32_t ack, unsigned count, ...);

// The one that went out last; forget all.
const struct rig_out *rig_last(const struct rig *rig);
void rig_forget(struct rig *rig);

struct tcp_work_send *rig_send(struct rig *rig);
uint64_t rig_count(const struct rig *rig, enum tcp_counter which);
