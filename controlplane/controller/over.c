// Over: an event has closed, and with it every turn of those who waited for it. Who holds one of
// its tickets later, at another event, comes as somebody without one.

#include "controlplane/controller/state.h"

static void drop_present(struct controller *c, uint64_t key)
{
	while (present_first_key(&c->present) < key) {
		const uint32_t id = keyset_first(&c->present.keys);
		present_remove(&c->present, keyset_key(&c->present.keys, id),
			keyset_visitor(&c->present.keys, id));
	}
}

void controller_lapse(struct controller *c, uint64_t key, uint64_t now_ms)
{
	state_advance(c, now_ms);
	place_close(c->line, c->call.now_ms / PLACE_SLOT_MS);
	const uint64_t end = place_key_at(c->line, UINT64_MAX); // of what can be called
	const uint64_t to = key < end ? key : end;
	if (to <= c->call.floor)
		return;
	const uint64_t settled = state_settled_from(c, c->call.floor) - state_settled_from(c, to);
	drop_present(c, to);
	caller_lapse(&c->call, to);
	const uint64_t passed_by = caller_raise_floor(&c->call, to);
	c->lapsed_total += passed_by > settled ? passed_by - settled : 0;
}
