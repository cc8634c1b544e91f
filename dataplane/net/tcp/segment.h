// A TCP segment as it came in, and the reading and writing of its header (RFC 9293 3.1, options
// 3.2, RFC 7323, RFC 2018). Pure; any thread.
#pragma once

#include <stdbool.h>
#include <stdint.h>

#include "drivers/span.h"
#include "drivers/stream.h"

#define TCP_HEADER_BYTES 20u
#define TCP_OPTIONS_MAX 40u
#define TCP_SACK_MAX 4u // blocks that fit

enum tcp_flag {
	TCP_FIN = 0x01,
	TCP_SYN = 0x02,
	TCP_RST = 0x04,
	TCP_PSH = 0x08,
	TCP_ACK = 0x10,
	TCP_URG = 0x20, // ignored, as RFC 6093 advises
};

// Where a frame came from, and where its answer goes: TCP keeps it with a connection and looks at
// nothing in it.
struct tcp_hop {
	uint8_t mac[6];
	uint16_t port; // of the worker's ports
};

struct tcp_sack {
	uint32_t from, to; // [from, to)
};

struct tcp_segment {
	struct stream_address peer, local; // IPv4 mapped
	struct tcp_hop hop;
	uint32_t seq, ack;
	uint16_t window; // as on the wire
	uint8_t flags; // enum tcp_flag
	bool has_mss, has_scale, has_sack_permitted, has_timestamp;
	uint8_t scale; // at most 14 (RFC 7323 2.3)
	uint8_t sack_count;
	uint16_t mss;
	uint32_t ts_value, ts_echo;
	struct tcp_sack sacks[TCP_SACK_MAX];
	struct span payload;
};

// Read header and options at the start of `bytes`, an IP packet's payload of its true length; the
// rest becomes the payload. Addresses and hop are the caller's to fill. Unknown options are
// skipped; a malformed one ends the reading of options (RFC 9293 MUST-7: no crash) and the segment
// stands without the rest.
// Returns false if it is no segment: shorter than its header says, or the header shorter than 20.
bool tcp_segment_read(struct span bytes, struct tcp_segment *segment);

// Sequence numbers, modulo 2^32 (RFC 9293 3.4).
static inline bool tcp_before(uint32_t a, uint32_t b)
{
	return (int32_t)(a - b) < 0;
}

static inline bool tcp_after(uint32_t a, uint32_t b)
{
	return (int32_t)(a - b) > 0;
}

// Octets of sequence space that a segment takes: payload, and one each for SYN and FIN.
static inline uint32_t tcp_segment_len(const struct tcp_segment *s)
{
	return (uint32_t)s->payload.len + !!(s->flags & TCP_SYN) + !!(s->flags & TCP_FIN);
}
