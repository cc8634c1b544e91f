// A room for the controller's stories: a line in memory, one controller, a clock that stories move.
#pragma once

#include <stdlib.h>

#include "controlplane/controller/controller.h"
#include "dataplane/gate/place.h"

#define ROOM_START_MS 1700000000000ull // a whole second
#define ROOM_ENTRIES 4096u

struct room {
	struct place_line *line;
	struct controller *controller;
	uint64_t now_ms, next_id;
	uint32_t ended, forgotten, granted, renewed; // changes, so far
	struct claim_answer answer; // the last one
};

static const struct controller_bounds room_bounds = {
	.sessions_max = 1000, .present_max = 100, .left_max = 10, .later_max = 10, .seed = 7};

static inline struct room room_open_with(
	struct controller_limits limits, struct controller_bounds bounds)
{
	struct room r = {.now_ms = ROOM_START_MS, .next_id = 1};
	r.line = calloc(1, place_line_bytes(ROOM_ENTRIES));
	place_line_init(r.line, 1, ROOM_ENTRIES);
	place_begin(r.line, r.now_ms / PLACE_SLOT_MS);
	if (limits.burst == 0)
		limits.burst = 1;
	r.controller = controller_create(&limits, &bounds, r.line, r.now_ms);
	return r;
}

static inline struct room room_open(struct controller_limits limits)
{
	return room_open_with(limits, room_bounds);
}

static inline void room_close(struct room *r)
{
	controller_destroy(r->controller);
	free(r->line);
}

// The rest of a turn: tick, changes, publish.
static inline void room_turn(struct room *r)
{
	const struct controller_change *changes;
	controller_tick(r->controller, r->now_ms);
	const uint32_t count = controller_changes(r->controller, &changes);
	for (uint32_t i = 0; i < count; i++) {
		r->granted += changes[i].kind == CONTROLLER_GRANTED;
		r->renewed += changes[i].kind == CONTROLLER_RENEWED;
		r->ended += changes[i].kind == CONTROLLER_ENDED;
		r->forgotten += changes[i].kind == CONTROLLER_FORGET;
	}
	controller_publish(r->controller, false, r->now_ms);
}

// Time passes, with a turn every 100 ms and one at the end.
static inline void room_wait(struct room *r, uint64_t ms)
{
	const uint64_t end = r->now_ms + ms;
	while (r->now_ms + 100 < end) {
		r->now_ms += 100;
		room_turn(r);
	}
	r->now_ms = end;
	room_turn(r);
}

// Somebody draws a ticket; the visitor's id is its key.
static inline uint64_t room_mint(struct room *r)
{
	return place_mint(r->line, r->now_ms / PLACE_SLOT_MS, 0);
}

// A claim, sent so long ago that it cannot be put off. Returns the verdict.
static inline uint8_t room_ask(struct room *r, struct claim claim)
{
	// A called one has waited as long as it may, so that it is answered at once.
	claim.sent_ms = r->now_ms - (claim.kind == CLAIM_DIRECT ? 0 : CONTROLLER_LATER_MS);
	controller_claim(r->controller, &claim, r->next_id++, r->now_ms, &r->answer);
	return r->answer.verdict;
}

static inline uint8_t room_poll(struct room *r, uint64_t key)
{
	return room_ask(r, (struct claim){.kind = CLAIM_CALLED, .key = key, .visitor = key});
}

static inline uint8_t room_come(struct room *r, uint64_t visitor)
{
	return room_ask(r, (struct claim){.kind = CLAIM_DIRECT, .visitor = visitor});
}

static inline struct controller_view room_look(const struct room *r)
{
	struct controller_view view;
	controller_look(r->controller, r->now_ms, &view);
	return view;
}
