// A client of our TCP, as simple as can be believed: it opens, sends go-back-N with a fixed window
// and one timer, takes what comes in any order, and shares no line with the code under test.
//
// Bytes are counted by their place in the stream, from 0; the wire's numbers are made of them at
// the last moment.
#pragma once

#include <stdbool.h>
#include <stdint.h>

#include "tests/sim/tcp/talk.h"
#include "tests/sim/tcp/wire.h"

#define MODEL_WINDOW_MAX (1u << 18)

struct model_plan {
	uint32_t isn;
	uint16_t mss; // announced, and of its own segments
	bool has_mss, has_timestamps, has_sack;
	bool omits_ack; // its request brings the cookie back, not a bare ACK
	bool omits_timestamp; // in the last ACK of the handshake (old Linux)
	uint8_t scale; // 255: none
	uint32_t window; // what it can keep, bytes
	uint32_t flight; // what it has under way, segments
	uint32_t rto_us, give_up_us;
	uint32_t idle_us; // nothing heard for so long: it gives up waiting
	uint32_t delayed_ack_us; // 0: at once
};

enum model_state {
	MODEL_CLOSED, // not begun, or gone: answers by RST
	MODEL_SYN_SENT,
	MODEL_OPEN, // and all that follows, until both have ended
	MODEL_WAIT, // both have ended
	MODEL_VANISHED, // answers nothing
};

struct model {
	struct model_plan plan;
	enum model_state state;
	struct talk_side *side;
	void (*send)(void *ctx, const struct wire *segment);
	void *ctx;

	uint32_t peer_isn, ts_offset;
	bool is_scaled, has_timestamps, has_sack;
	uint8_t peer_scale;
	uint16_t peer_mss; // payload bytes, options subtracted

	// Sending. The FIN takes the place after the last byte.
	char *queue; // of the bytes from `una` on
	uint64_t una, next, end, most; // acknowledged, next to send, written, most ever sent
	bool has_fin; // written
	uint64_t peer_edge; // right edge of the peer's window
	uint32_t backoff;
	uint64_t rto_at_us; // UINT64_MAX: not running
	uint64_t progress_us, heard_us;

	// Receiving: a ring of the window's bytes from `read` on.
	char *ring;
	bool *has;
	uint64_t received, read; // in order so far; of these, given to the side
	uint64_t fin_at; // UINT64_MAX: has not come
	bool has_eof; // told
	bool is_paused;
	bool owes_ack;
	uint64_t ack_at_us;
	uint64_t last_from, last_to; // what came last out of order, for SACK
	uint32_t ts_recent;
	uint64_t resent; // for the report
};

void model_init(struct model *m, void (*send)(void *ctx, const struct wire *segment), void *ctx);
void model_fini(struct model *m);

// Connect, for a conversation whose client it is.
void model_connect(
	struct model *m, const struct model_plan *plan, struct talk_side *side, uint64_t now_us);
void model_take(struct model *m, const struct wire *segment, uint64_t now_us);
uint64_t model_next_us(const struct model *m);
void model_due(struct model *m, uint64_t now_us);
// Not a segment more.
void model_vanish(struct model *m);
bool model_is_over(const struct model *m);

extern const struct talk_ops model_ops; // of a side whose end is a model
