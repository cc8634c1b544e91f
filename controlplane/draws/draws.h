// Draws: the gatherings of all lines, from their seeds to the day when floor has passed them.
//
//   wish ─▶ seed in the store ─▶ file, workers let people join ─▶ list closed ─▶ drawn ─▶ forgotten
//
// A room wishes; this folder carries out what it wishes as soon as it can: not before the store has
// the seed, and not before every worker goes by what came before. Files and the store hold all that
// is needed to draw the same places again after kill -9, at any moment.
//
// Control thread only. Times are unix milliseconds of cluster time.
#pragma once

#include <stdbool.h>
#include <stdint.h>

#include "controlplane/store/store.h"
#include "dataplane/gate/draw.h"
#include "dataplane/gate/gather.h"

struct place_line;

struct draws_plan {
	const char *folder; // the state directory; lives longer
};

// What it touches outside itself: as claims.h has them.
struct draws_seams {
	void *ctx;
	uint64_t (*barrier_begin)(void *ctx);
	bool (*barrier_passed)(void *ctx, uint64_t token);
	void (*random)(void *ctx, uint8_t *bytes, uint32_t count);
	// Something was drawn or could not be: one line for the log.
	void (*say)(void *ctx, uint32_t line_id, const char *text);
};

// What a room wants of its line now.
struct draws_wish {
	bool prepares; // people will gather some day: have a seed ready
	bool gathers; // people gather
	bool is_shut; // nobody is to come in, not even while a list that is to close is still open
	uint64_t closes_ms; // when the list that is joined is to close by the clock, or was; 0: at
			    // any moment
	bool stops; // doors have opened: nobody joins any more who is to stand behind
	bool keeps_empty; // one that nobody has joined need not be drawn when `epoch` changes
	uint64_t epoch; // which gathering: when this changes, its list closes and the next begins
	uint64_t full_at; // control is to be woken when so many have joined; 0: it need not be
	uint64_t closes_s; // told to those in it; 0: with the opening of the doors
	uint64_t gathered_max; // people gathered and drawn whose turn is to come
	uint8_t salt[DRAW_SALT_BYTES_MAX]; // of the next draw, unless one was named for those who
					   // gather already
	uint8_t salt_bytes;
};

// How things stand in a line.
struct draws_view {
	bool is_unknown; // in a cluster: not heard yet what gathers
	bool is_gathering; // people may join
	bool is_undrawn; // somebody may have joined what is not drawn
	uint64_t epoch; // of the one that is joined
	uint64_t closing_epoch; // of the one that is being drawn; 0: none is
	uint64_t began_ms; // when it began
	uint64_t joined; // people in it
	const uint8_t *salt; // that was named since somebody joined it, and stands; lives as long
			     // as it is joined
	uint8_t salt_bytes; // 0: none was
	uint32_t lists; // drawn, and not passed by floor
	uint64_t drawn; // people in those
	uint64_t drawn_epoch; // of the one drawn last; 0: not known
	uint64_t drawn_end; // its end slot; 0: there is none
	uint64_t drawn_total, draws_total; // since the start
	uint32_t longest_ms; // from a list's closing to its draw
};

struct draws;
struct draws_line;

// Load what the store knows. Returns 0 or -errno.
int draws_create(const struct draws_plan *plan, struct store *store,
	const struct draws_seams *seams, struct draws **draws);

// Forget the draws of lines that are not among those that `is_kept` knows, and remove files that no
// draw has. At start, before any line is taken.
void draws_forget_others(struct draws *d, bool (*is_kept)(void *ctx, uint32_t line_id), void *ctx);

// Workers have ended. Waits for a draw that is under way. Accepts NULL.
void draws_destroy(struct draws *d);

// The gatherings of a line, taken up where the last process left them: what is to be drawn is drawn
// now. Before place_begin(), and again with a reload. Returns NULL if people never gathered and do
// not (`gathers`), or memory is short.
struct draws_line *draws_take(
	struct draws *d, uint32_t line_id, struct place_line *line, bool gathers);

// What workers see of them; lives as long as the draws.
struct gather *draws_gather(struct draws_line *l);

// What the room wishes from now on. A list that it wishes closed is closed at once, if it can be.
void draws_wish(struct draws_line *l, const struct draws_wish *wish, uint64_t now_ms);

// Go on with all lines. Every turn of control. Returns whether a list was drawn.
bool draws_turn(struct draws *d, uint64_t now_ms);

// Whether the next step of some line waits for a moment only: that workers pass, or a list is made;
// not for the store, for memory or for floor.
bool draws_is_busy(const struct draws *d);

// Whether people should gather somewhere and cannot yet, since the store has no seed for them.
bool draws_is_late(const struct draws *d);

// How things stand.
void draws_look(const struct draws_line *l, struct draws_view *view);

// Whether the list that was drawn last was drawn with this salt.
bool draws_had_salt(const struct draws_line *l, const uint8_t *salt, uint8_t bytes);

// The key of a ticket of a gathering. Returns false while it is not drawn; *key is 0 if its
// gathering is not known: floor has passed it.
bool draws_key(const struct draws_line *l, uint64_t number, uint64_t visitor, uint64_t *key);

// The list that a ticket's place comes from, and that place from 0; NULL: not of a drawn gathering.
//   number  of the gathering, or 0 and the key that it was given
const struct draw_list *draws_place(const struct draws_line *l, uint64_t number, uint64_t key,
	uint64_t visitor, uint64_t *hash, uint64_t *place);
