// SYN cookies: the initial sequence number that we answer a SYN with holds all that must be known
// of it, sealed; nothing is kept (RFC 4987 3.6; Bernstein 1996). It is also the keyed ISN of RFC
// 6528: unguessable, and of the tuple and the time.
//
//   31   30     22 21           4   3   2   0
//   ┌────┬────────┬──────────────┬─────┬─────┐   free   may be turned by whoever sends it
//   │free│ tuple  │    number    │ ts  │ mss │   tuple  SipHash of addresses, ports, the low bits
//   └────┴────────┴──────────────┴─────┴─────┘   number SipHash of these and of the SYN's number
//                                                ts     the SYN offered timestamps
//                                                mss    index of syncookie_mss[]
//
// With timestamps the low five bits of our timestamp value hold the peer's scale (15: none offered)
// and whether it permits SACK; without them both are given up.
//
// The key changes every SYNCOOKIE_SLOT_US and the one before is honoured too: a cookie is good for
// one to two minutes. All keys come from the plan's secret and the clock, so workers agree.
#pragma once

#include "dataplane/net/tcp/segment.h"
#include "dataplane/net/tcp/siphash.h"

#define SYNCOOKIE_SLOT_US UINT64_C(60000000)
#define SYNCOOKIE_TS_BITS 5u
#define SYNCOOKIE_FREE_BIT (UINT32_C(1) << 31)
#define SYNCOOKIE_SCALE_NONE 15u // no window scaling was offered

struct syncookie {
	struct siphash_key root, offsets;
	struct siphash_key slots[3]; // of this slot, the last, and the one before, which is late
	uint64_t slot_ends_us;
};

enum syncookie_result {
	SYNCOOKIE_BAD, // not of ours
	SYNCOOKIE_LATE, // of ours, too old
	SYNCOOKIE_OTHER, // of ours for this tuple, but not the segment that follows its SYN
	SYNCOOKIE_GOOD,
};

// What a cookie told of the SYN.
struct syncookie_told {
	uint16_t mss; // at most what the peer takes
	bool has_timestamp; // was offered
};

// The peer's scale and SACK, from the echo of a SYN-ACK's timestamp.
struct syncookie_options {
	uint8_t scale; // SYNCOOKIE_SCALE_NONE: none was offered, on either side
	bool has_sack;
};

// Derive the keys from 32 secret bytes.
void syncookie_init(struct syncookie *syncookie, const uint8_t secret[32], uint64_t now_us);

// Change keys if it is time; called each turn.
void syncookie_turn(struct syncookie *syncookie, uint64_t now_us);

// The cookie for a SYN: the ISN of its SYN-ACK.
uint32_t syncookie_make(const struct syncookie *syncookie, const struct tcp_segment *syn);

// Look at the first segment after a SYN-ACK: its ACK is the cookie and one, its number the SYN's
// and one. `told` is filled if it is good.
enum syncookie_result syncookie_check(const struct syncookie *syncookie,
	const struct tcp_segment *segment, struct syncookie_told *told);

// The offset of our timestamps for a tuple: the same for all that it ever opens (RFC 7323 5.4).
uint32_t syncookie_ts_offset(const struct syncookie *syncookie, const struct stream_address *local,
	const struct stream_address *peer);

// The timestamp value of a SYN-ACK: at most 31 ms before `ts_now`, the options in its low bits.
uint32_t syncookie_ts_write(uint32_t ts_now, struct syncookie_options options);

// The options in the echo of one.
struct syncookie_options syncookie_ts_read(uint32_t ts_echo);
