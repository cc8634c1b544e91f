// Lanes: lines of their own within a room. To the decision a lane is a room like any other, with
// the name, path and rules of its room and a line of its own; which one a visitor is in is said by
// their tokens' line id, and for a newcomer by how they come.
//
//   gate_request_read() ─▶ lane_enter() ─▶ tokens ─▶ gate_request_settle() ─▶ request->room
//
// A newcomer enters a lane by an invitation (a signed link, `sluice_lane=`), by a header from a
// trusted proxy, or by the address that they come from. Who holds a place keeps it, but for an
// invitation, which is followed.
#pragma once

#include <stdbool.h>
#include <stdint.h>

#include "dataplane/gate/rooms.h"
#include "drivers/span.h"

struct http_head;
struct gate_request;

// A network of visitors; IPv4 as ::ffff:a.b.c.d.
struct lane_network {
	uint8_t ip[16];
	uint8_t bits;
};

struct gate_lane {
	struct gate_room room; // but for the line like the one that it is a lane of
	struct span name; // of the lane within it
	struct span header; // name, in small letters; empty: none
	struct span header_value; // empty: anything
	uint32_t network_count;
	const struct lane_network *networks;
};

// The room or lane of `room` whose line that is, or NULL. Pure; any thread.
const struct gate_room *lane_of_line(const struct gate_room *room, uint32_t line_id);

// The lane named `name` of `room`, or NULL. Pure; any thread.
const struct gate_room *lane_of_name(const struct gate_room *room, struct span name);

// Find the lane that a newcomer would enter, by header or address: request->entry. For requests
// whose room has lanes.
//   ip          the visitor's, behind trusted proxies too
//   is_trusted  a proxy that may say who comes
// Pure; any thread.
void lane_enter(const struct http_head *head, const uint8_t ip[16], bool is_trusted,
	struct gate_request *request);
