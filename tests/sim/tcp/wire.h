// Segments as bytes, written and read apart from the code under test: what peers and links of the
// tests hold in their hands.
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "dataplane/net/tcp/tcp.h"

#define WIRE_BYTES_MAX 65535u

struct wire {
	uint32_t seq, ack;
	uint16_t window; // as on the wire
	uint8_t flags; // enum tcp_flag
	uint8_t scale, sack_count;
	bool has_mss, has_scale, has_sack_permitted, has_timestamp;
	bool is_urgent; // the urgent pointer is set, and points at the last byte
	uint16_t mss;
	uint32_t ts_value, ts_echo;
	struct tcp_sack sacks[TCP_SACK_MAX];
	struct span raw; // option bytes as they are, after the others
	struct span payload;
};

// Render; `bytes` has WIRE_BYTES_MAX. Returns the length.
size_t wire_write(const struct wire *segment, char *bytes);

// Read what wire_write() or wire_of_out() made. Spans point into `bytes`. Aborts when it is none.
void wire_read(struct span bytes, struct wire *segment);

// What TCP sends, as bytes; `bytes` has WIRE_BYTES_MAX. Returns the length.
size_t wire_of_out(const struct tcp_out *out, char *bytes);

// As a line of a script has it: flags, sequence numbers less `seq_base` and `ack_base`, options.
const char *wire_text(const struct wire *segment, uint32_t seq_base, uint32_t ack_base);

// Octets of sequence space.
uint32_t wire_len(const struct wire *segment);

// The byte of a stream at an offset, so that order and place show. `salt` tells streams apart.
static inline char wire_byte(uint64_t salt, uint64_t offset)
{
	return (char)(((offset + salt) * 0x9e3779b97f4a7c15ull) >> 56);
}

void wire_fill(uint64_t salt, uint64_t offset, char *bytes, size_t len);
bool wire_matches(uint64_t salt, uint64_t offset, struct span bytes);
