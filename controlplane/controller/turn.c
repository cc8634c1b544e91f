// Turn: what control does by itself, every tick.
//
//   close slots ─▶ move threshold ─▶ move floor ─▶ forget what floor has passed ─▶ measure

#include "controlplane/controller/state.h"

#include <assert.h>

#include "dataplane/gate/place.h"

#define LEFT_PASS_MAX 4096u // tickets given back that floor passes in one turn

static void move_floor(struct controller *c)
{
	const uint64_t before = c->call.floor, floor = caller_floor(&c->call);
	if (floor <= before)
		return;
	assert(floor <= present_first_key(&c->present)); // who is present is held for longer
	const uint64_t settled = state_settled_from(c, before) - state_settled_from(c, floor);
	const uint64_t passed_by = caller_raise_floor(&c->call, floor);
	c->lapsed_total += passed_by > settled ? passed_by - settled : 0;
}

static void pass_left(struct controller *c)
{
	for (uint32_t i = 0; i < LEFT_PASS_MAX; i++) {
		const uint32_t id = keyset_first(&c->call.left);
		if (id == 0 || keyset_key(&c->call.left, id) >= c->call.floor ||
			!sessions_note_left(&c->sessions, CONTROLLER_FORGET,
				keyset_key(&c->call.left, id), keyset_visitor(&c->call.left, id)))
			return;
		keyset_remove(&c->call.left, id);
	}
}

void controller_tick(struct controller *c, uint64_t now_ms)
{
	state_advance(c, now_ms);
	place_close(c->line, c->call.now_ms / PLACE_SLOT_MS);
	caller_look_ahead(&c->call, place_total(c->line));
	if (c->call.available) {
		caller_move_threshold(&c->call);
		move_floor(c);
		flow_tick(&c->call.flow, c->call.threshold_rank, state_waiting(c) > 0,
			caller_available_ms(&c->call));
	}
	sessions_pass(&c->sessions, c->call.floor);
	pass_left(c);
}
