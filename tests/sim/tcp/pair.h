// Two TCPs that only open passively, connected with each other: a client that neither is does both
// handshakes, and then changes the numbers of what they send each other.
#pragma once

#include <stdbool.h>
#include <stdint.h>

#include "tests/sim/tcp/ours.h"

// One connection. `a` is the server's numbering, `b` the client's; isn is what each gave in its
// SYN-ACK, seen what its SYN was told.
struct pair {
	uint32_t a_isn, a_seen; // numbers of A itself; the number of B, as A was told
	uint32_t b_isn, b_seen;
	uint32_t b_ts; // B's clock, and when
	uint64_t b_ts_us;
	bool is_open;
	// While handshakes are done, what is sent is kept here.
	bool is_catching, has_caught;
	struct wire caught; // without payload
};

struct pair_plan {
	uint32_t a_seen, b_seen;
	bool has_timestamps, has_sack, has_scale;
	uint16_t mss;
};

// Do both handshakes on a slot, at once: each TCP gets the ACK that opens its connection. Returns
// false if one of them did not answer.
bool pair_open(struct pair *pair, const struct pair_plan *plan, struct ours *a, struct ours *b,
	uint32_t slot, uint64_t now_us);

// Whether what is sent is the handshake's, and taken.
bool pair_catch(struct pair *pair, struct span bytes);

// Change the numbers of a segment from A to B, or from B to A, in place. Returns its new length.
uint32_t pair_translate(const struct pair *pair, bool from_a, char *bytes, uint32_t len);
