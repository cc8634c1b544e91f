// What the two who use a connection say to each other: requests and answers, and how they part.
// Each side sees that every byte comes once and in order; a byte is known by its place.
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "drivers/span.h"

enum talk_end {
	TALK_CLIENT_ENDS, // once it has every answer; the server closes at EOF
	TALK_SERVER_ENDS, // it closes once all is written; the client ends at EOF
	TALK_BOTH_END, // each once it has written everything
	TALK_HALF, // the client ends behind its last request; answers come over the half
	TALK_CLIENT_RESETS, // in the middle
	TALK_SERVER_RESETS, // in the middle
	TALK_SERVER_LEAVES, // closes in the middle, without reading on
	TALK_CLIENT_VANISHES, // in the middle: not a segment more
	TALK_IDLE, // nobody ends; the server's deadline does
	TALK_ENDS,
};

struct talk_plan {
	uint64_t salt; // of this conversation's bytes
	uint32_t exchanges;
	uint32_t request_bytes, answer_bytes;
	bool is_eager; // neither waits for the other
	uint32_t think_us; // between an answer and the next request, at most
	uint32_t pause; // of 1000: how often a reader pauses at what it reads
	uint32_t pause_us; // for how long, at most
	enum talk_end end;
	uint64_t middle_bytes; // received by the one who acts in the middle: that is when
};

// What a side can do with its end of a connection.
struct talk_ops {
	size_t (*write)(void *end, struct span bytes); // taken: fewer when it is of no use any more
	bool (*is_high)(void *end); // wait for talk_writable()
	void (*shut)(void *end);
	void (*close)(void *end, bool reset);
	void (*pause)(void *end);
	void (*resume)(void *end);
};

struct talk_side {
	const struct talk_plan *plan;
	const struct talk_ops *ops;
	void *end;
	bool is_client;
	uint64_t *random;
	uint64_t allowed; // bytes to write by now
	uint64_t written, received;
	uint64_t next_us; // think or pause is over; UINT64_MAX: nothing to wait for
	bool is_paused, has_shut;
	bool has_eof; // the other side has ended
	bool is_over; // it was told, or has closed: no more calls
	int error; // that it was told; or ECANCELED: it broke off itself
};

void talk_init(struct talk_side *side, const struct talk_plan *plan, bool is_client,
	const struct talk_ops *ops, void *end, uint64_t *random);

// What happened at this end.
void talk_opened(struct talk_side *side, uint64_t now_us);
void talk_data(struct talk_side *side, struct span bytes, uint64_t now_us);
void talk_writable(struct talk_side *side, uint64_t now_us);
void talk_eof(struct talk_side *side, uint64_t now_us);
void talk_closed(struct talk_side *side, int error);
// `next_us` has come.
void talk_time(struct talk_side *side, uint64_t now_us);

// Whether it has received all there was to say.
bool talk_has_all(const struct talk_side *side);
