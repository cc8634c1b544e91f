// Conductor's line: one turn of it, from a view to what is said of it.
#pragma once

#include <stdbool.h>
#include <stdint.h>

#include "controlplane/cluster/conductor.h"
#include "controlplane/controller/caller.h"
#include "controlplane/controller/tally.h"

struct conductor_line {
	struct caller call;
	struct ledger_view view; // the last one
	struct tally freed; // slots that became free before the session's end
	struct ledger_threshold said; // last
	uint64_t said_ms;
	uint64_t lapse; // key below which an event is over; 0: none
	bool has_view; // that no turn has used
	bool is_seen, is_taken_over; // since this office began
	bool is_floor_held; // as of the last turn
};

// Bytes of a line. Pure.
uint64_t conductor_line_bytes(uint32_t left_max);

// A line that nobody has been called of yet. Returns NULL when memory is short.
struct conductor_line *conductor_line_create(
	const struct conductor_node *is, uint64_t seed, uint64_t now_ms);
void conductor_line_destroy(struct conductor_line *line);

// Office begins: nothing is known of it.
void conductor_line_begin(struct conductor_line *line);

// How the ledger has it.
void conductor_line_see(
	struct conductor_line *line, const struct ledger_view *view, uint64_t now_ms);

// One turn, after a view. Returns whether *say is to be said now.
//   is_available   it can be polled and granted
//   is_floor_held  a member is unheard of: whoever polls there may come back
bool conductor_line_turn(struct conductor_line *line, const struct conductor_node *is,
	bool is_available, bool is_floor_held, uint64_t now_ms, struct ledger_threshold *say);

// A ticket was given back.
void conductor_line_left(struct conductor_line *line, uint64_t key, uint64_t visitor);
