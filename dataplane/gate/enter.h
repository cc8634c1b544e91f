// Entering a line: how somebody gets a place in a room or lane, or is told why not. Workers draw
// places for newcomers, control for codes and links.
#pragma once

#include <stdbool.h>
#include <stdint.h>

#include "dataplane/gate/rooms.h"
#include "dataplane/gate/token.h"

enum enter_result {
	ENTER_PLACED,
	ENTER_FULL, // as many wait as may, or the line takes nobody now
	ENTER_BEFORE, // its doors are closed, and nobody gathers yet
};

struct enter_who {
	uint64_t visitor;
	uint64_t now_ms; // cluster time
	uint32_t now_s; // the same in whole seconds
	uint8_t appliance;
};

// Draw a place, of the line or of its gathering.
//   ticket        filled if one was drawn
//   fills_window  its gathering has as many as it may have: control is to look at it
// Any thread, at any time; lock-free.
enum enter_result enter_line(const struct gate_room *room, const struct enter_who *who,
	struct token *ticket, bool *fills_window);
