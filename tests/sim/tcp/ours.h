// One TCP under test, as a worker has it: turns, events, calls. What it sends is watched as the
// wire sees it, what it holds is checked after every turn.
#pragma once

#include <stdbool.h>
#include <stdint.h>

#include "dataplane/net/tcp/tcp.h"
#include "tests/sim/tcp/talk.h"
#include "tests/sim/tcp/wire.h"

#define OURS_SLOTS 32u // peers; each has at most one connection
#define OURS_INPUTS 4096u

// One peer, told by its port.
struct ours_slot {
	struct ours *ours;
	struct stream *stream; // NULL: not open
	struct talk_side *side; // whoever uses the next stream that opens here
	bool is_watched; // a SYN-ACK was sent: what follows is known
	bool is_scaled;
	uint8_t scale, peer_scale;
	uint32_t isn, most, most_before; // ours; after the last byte sent, and a turn ago
	uint32_t isn_before; // of the SYN-ACK before this one
	uint32_t ack, edge, ts; // as last told
	uint32_t peer_edge; // the largest heard
	uint32_t peer_isn, peer_fin; // of its SYN; after its FIN
	bool has_peer_edge, has_peer_fin, has_told;
};

struct ours {
	struct tcp *tcp;
	struct tcp_plan plan;
	struct tcp_io io;
	uint64_t *random;
	uint64_t now_us;
	int event_max;
	void (*send)(void *ctx, uint32_t slot, struct span bytes);
	void *ctx;
	struct stream_address local, peer; // the slot is added to the peer's port
	struct ours_slot slots[OURS_SLOTS];
	struct {
		uint32_t slot;
		char *bytes;
		uint32_t len;
	} inputs[OURS_INPUTS];
	uint32_t input_count;
	uint64_t turns, opened, closed;
};

void ours_init(struct ours *ours, const struct tcp_plan *plan, uint64_t *random, uint64_t now_us);
void ours_fini(struct ours *ours);

// A segment that arrives: taken in the next turn, and freed.
void ours_put(struct ours *ours, uint32_t slot, char *bytes, uint32_t len);
// As many turns as what has arrived takes.
void ours_turn(struct ours *ours, uint64_t now_us);
// When the next turn is due without anything arriving.
uint64_t ours_next_us(const struct ours *ours);
// ICMP: a segment of ours is larger than `mtu`.
void ours_too_big(struct ours *ours, uint32_t slot, uint32_t seq, uint16_t mtu);

// Everything is over: nothing may be left.
void ours_check_empty(struct ours *ours);

extern const struct talk_ops ours_ops; // of a side whose end is a slot
