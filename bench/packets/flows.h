// The clients: one flow each, with an address of its own, closed loop.
//
// A flow opens, draws the tickets it needs, and then does what the mode says, over and over. At
// most `window` flows have something under way; the others stand in a queue, so that every flow
// gets its turn and none is warmer in the server's cache than it would be.
#pragma once

#include <stdbool.h>
#include <stdint.h>

#include "bench/packets/plan.h"
#include "bench/packets/wire.h"

struct flows;

// What has happened, of all flows.
struct flows_tally {
	uint64_t answers; // in the mode's own sense: polls, pages, connections, SYN-ACKs
	uint64_t segments_in, segments_out;
	uint64_t stalled; // nothing came for a second: opened anew
	uint64_t out_of_order, refused, resets;
	uint32_t ready; // flows that are open and have their tickets
};

// Takes a frame to send.
typedef void flows_send(void *ctx, const struct wire_segment *segment);

// Make the flows of a plan. Returns NULL when out of memory, or when a file cannot be read, having
// said so.
struct flows *flows_create(const struct plan *plan, flows_send *send, void *ctx);
void flows_destroy(struct flows *flows);

// Let flows begin what they may, at most `budget` of them. `now_ms` of any clock.
void flows_begin(struct flows *flows, uint32_t now_ms, unsigned budget);

// Whether flows with two tickets show the same one as last time from now on, or the other one.
void flows_keep(struct flows *flows, bool keeps);

// Take a segment from the server.
void flows_take(struct flows *flows, const struct wire_segment *segment);

// Open anew what has stalled. Call a few times a second.
void flows_mend(struct flows *flows);

// What has happened so far; lives as long as the flows.
const struct flows_tally *flows_tally(const struct flows *flows);
