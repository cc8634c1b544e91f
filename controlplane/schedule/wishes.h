// What a room is to its visitors, and what it wishes of its draws, where it is in its schedule.
// Pure.
//
//   schedule_look() ──┬─▶ wishes_state() ─▶ workers
//   draws_look() ─────┴─▶ wishes_make() ──▶ draws_wish()
//
// Doors that have opened are closed to visitors until the places of those who gathered are drawn,
// which takes a second and what the draw takes: the room is in state `before` until then.
//
// An epoch (draws.h) of doors is the time they open; of windows it has a bit that no time has, and
// says which event they are of, so that no list has people of two.
#pragma once

#include "config/config.h"
#include "controlplane/draws/draws.h"
#include "controlplane/schedule/schedule.h"

struct controller_view;

struct wishes_input {
	const struct config_room *config; // in force
	bool may_gather; // people ever gather in the room
	const struct schedule_event *event; // that is under way or comes next; NULL: none
	struct schedule_view doors; // as of now
	const struct draws_view *draws;
	const struct controller_view *line; // how the line stands; of a window by number that
					    // somebody has joined
	uint64_t gathered_max;
	const uint8_t *salt; // for the next draw
	uint8_t salt_bytes;
	uint64_t now_ms;
};

// Whether a gathering is for doors, and no window.
bool wishes_is_of_doors(uint64_t epoch);

// What the room is to its visitors, if no command says otherwise: enum gate_room_state.
uint8_t wishes_state(const struct wishes_input *in);

// Whether people are still to be drawn who gathered for an event that is over: then doors that have
// opened since are closed a little longer.
bool wishes_is_stale(const struct wishes_input *in);

// The key below which nobody waits any more, since their event is over.
uint64_t wishes_lapsed(const struct schedule *schedule, const struct schedule_view *doors,
	const struct draws_view *draws);

// What it wishes.
struct draws_wish wishes_make(const struct wishes_input *in);
