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
	place_close(c->line, c->now_ms / PLACE_SLOT_MS);
	const uint64_t end = place_key_at(c->line, UINT64_MAX); // of what can be called
	const uint64_t to = key < end ? key : end;
	if (to <= c->floor)
		return;
	uint64_t rank;
	place_rank(c->line, to, &rank);
	const uint64_t settled = state_settled_from(c, c->floor) - state_settled_from(c, to);
	const uint64_t passed_by = rank - c->floor_rank;
	c->lapsed_total += passed_by > settled ? passed_by - settled : 0;
	drop_present(c, to);
	calls_init(&c->calls, state_available_ms(c));
	c->holds = c->crowded_out = (struct holds){0};
	c->release = 0;
	if (to > c->threshold) {
		c->threshold = to;
		c->threshold_rank = rank;
	}
	c->floor = c->passed = to;
	c->floor_rank = rank;
}
