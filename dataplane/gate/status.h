// What a visitor is told about their place: as JSON by the status poll, as values by the queue
// page (page.h). Filled by decide.c from the ticket and the words of the line.
#pragma once

#include <stdint.h>

#include "drivers/span.h"

struct gate_room;

// The states of contract section 3; and `before`, a `prequeue` that nobody can join yet, which has
// a page of its own.
#define STATUS_STATES(X) \
	X(prequeue) \
	X(before) \
	X(waiting) \
	X(next) \
	X(admitted) \
	X(expired) \
	X(closed) \
	X(full) \
	X(rejected)

enum status_state {
#define X(name) STATUS_##name,
	STATUS_STATES(X)
#undef X
		STATUS_STATE_COUNT,
};

#define STATUS_UNKNOWN UINT64_MAX // `null` to the visitor

struct status {
	uint8_t state; // enum status_state
	bool exact; // whether position and ahead are final
	uint16_t progress; // of the way from the ticket's issue to the expected turn, in 1/1000
	uint32_t poll_after; // s, 1 to 60
	uint32_t opens; // unix s; 0: null
	uint32_t expires; // unix s, of the pass; 0: null
	uint64_t position; // counted from 1, or STATUS_UNKNOWN
	uint64_t ahead; // people, or STATUS_UNKNOWN
	uint64_t ahead_min; // while a window gathers: people placed before it; else STATUS_UNKNOWN
	uint64_t eta_low; // s, or STATUS_UNKNOWN for both
	uint64_t eta_high;
	uint64_t now; // unix s of the cluster clock
};

#define STATUS_MESSAGE_BYTES_MAX 512u // an operator's message as JSON, or as HTML text
#define STATUS_JSON_BYTES_MAX 1024u

// The word of a state, as pages and templates have it.
struct span status_word(enum status_state state);

// The word that is told to programs, in `state` and in the Sluice-State field: the same, but for
// `before`, which is told as `prequeue`.
struct span status_told(enum status_state state);

// Render the JSON of a status poll.
//   out  at least STATUS_JSON_BYTES_MAX
// Returns its length. Pure; any thread.
size_t status_json(const struct status *status, const struct gate_room *room, char *out);
