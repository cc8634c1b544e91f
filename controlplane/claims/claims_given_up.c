// Given back late, so that nobody is ever without a place: a crash in between leaves the old one
// good, and whoever asks again gives it up again.

#include "controlplane/claims/claims_given_up.h"

#include "controlplane/claims/claims_restore.h"

#include <assert.h>

void claims_given_up_add(
	struct claims_given_up *g, uint32_t line_id, uint64_t key, uint64_t visitor)
{
	if (key == 0)
		return;
	assert(g->count < CLAIMS_GIVEN_UP_MAX);
	g->places[g->count].line_id = line_id;
	g->places[g->count].key = key;
	g->places[g->count++].visitor = visitor;
}

void claims_given_up_leave(struct claims_given_up *g, struct claims_rooms *rooms,
	struct ended *left, struct claims_counters *counters, uint64_t now_ms)
{
	for (uint32_t i = 0; i < g->count; i++) {
		const uint64_t visitor = g->places[i].visitor;
		struct claims_rooms_entry *room = claims_rooms_find(rooms, g->places[i].line_id);
		if (!room ||
			!controller_leave(room->is.controller, g->places[i].key, visitor, now_ms))
			continue; // it is used, or lapses
		room->is_touched = true;
		counters->left_untold += !claims_restore_left(left, visitor, now_ms);
	}
	g->count = 0;
}
