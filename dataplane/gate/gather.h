// Gatherings: people who come before their places are drawn.
//
// Inside one a ticket carries the gathering's number instead of a key. Each visitor id is in a
// mapped file before its ticket leaves, so that kill -9 loses nobody. At most two gatherings of a
// line are not drawn: the one that newcomers join, and the one before it, whose list is closed.
//
//   newcomer ─▶ gather_join() ─▶ ids of `open` ─(closed, drawn by control)─▶ place_line.drawn
#pragma once

#include <stdatomic.h>
#include <stdbool.h>
#include <stdint.h>

struct draw_list;
struct place_line;

#define GATHER_PROOF_BYTES_MAX 1024u

// Set in what stands for the key of a ticket that has none yet: the number of its gathering. So it
// lies behind all keys (until 2144).
#define GATHER_NUMBER (1ull << 63)

// A gathering as its file has it. Written by control but for `taken` and `ids`.
struct gather_ids {
	char magic[8];
	uint32_t version;
	uint32_t line_id;
	uint64_t number; // in its tickets; when its seed was drawn, unix ms, or a little later
	uint64_t max; // ids that it may take
	uint64_t epoch; // which of the wishes of its room it was made for
	uint64_t first_slot; // of its keys; 0: not known yet
	uint64_t end_slot; // 0: its list is open
	uint64_t salt_bytes; // of the draw: the first that was named since somebody gathered, which
			     // stands; set before end_slot
	_Atomic uint64_t ready; // ids[] below this are allocated on disk
	_Atomic uint64_t taken; // ids[] below this are taken, as far as they are below `max`
	uint8_t salt[32];
	_Atomic uint64_t full_at; // taken so many, control is to look at it; 0: never
	uint64_t began_ms; // when newcomers could join it, unix ms
	_Atomic uint64_t ids[]; // 0: taken and never written, by a process that was killed
};

// What `GET draw` says. Immutable.
struct gather_proof {
	uint32_t json_len;
	char json[GATHER_PROOF_BYTES_MAX];
};

// What control tells workers of a line's gatherings. Whatever it points to lives until every
// worker has passed a quiescent state without it.
struct gather {
	_Atomic(struct gather_ids *) open; // newcomers join it; NULL: they draw a key
	_Atomic uint64_t numbers[2]; // of those that are not drawn, the earlier one first; 0: none
	_Atomic uint64_t later; // of a line that appliances share: gatherings from this number on
				// are not drawn here, even if nothing was heard of them yet; 0:
				// `numbers` are all
	_Atomic uint64_t closes_s; // when the list of `open` is expected to close, unix s; 0: at
				   // the opening of the doors, or not known
	_Atomic(const struct gather_proof *) proof; // NULL: nothing to say
	_Atomic(struct draw_list *) shown; // whose hashes `GET draw/keys` lists; NULL: none
};

// Add a visitor. Returns the number for the ticket, or 0 if no more are taken. Any worker;
// lock-free.
uint64_t gather_join(struct gather_ids *ids, struct place_line *line, uint64_t visitor);

// Whether control is to look at it, since it has as many as a window may have. Any thread.
bool gather_is_full(const struct gather_ids *ids);

// Whether a gathering is not drawn, but under way. Any thread.
bool gather_is_undrawn(const struct gather *gather, uint64_t number);
