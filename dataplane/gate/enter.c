// The line of a room without gatherings is a mint and nothing else. Where people gather, newcomers
// join the gathering that is open; while none is, it depends on the doors.

#include "dataplane/gate/enter.h"

#include "dataplane/gate/gather.h"
#include "dataplane/gate/place.h"

// Whether the doors are closed and nobody gathers yet. What is being drawn is either what these
// doors have opened for, and newcomers stand behind it, or what was left of an opening before.
static bool is_before(const struct gate_room *room, uint32_t now_s)
{
	return room->state == GATE_BEFORE && (!room->gather || room->opens_s >= now_s ||
						     atomic_load(&room->gather->numbers[0]) == 0);
}

enum enter_result enter_line(const struct gate_room *room, const struct enter_who *who,
	struct token *ticket, bool *fills_window)
{
	if (room->line_max != UINT64_MAX && place_waiting(room->line) >= room->line_max)
		return ENTER_FULL;
	struct gather_ids *ids =
		room->gather ? atomic_load_explicit(&room->gather->open, memory_order_acquire)
			     : NULL;
	if (!ids && is_before(room, who->now_s))
		return ENTER_BEFORE;
	const uint64_t key =
		ids ? gather_join(ids, room->line, who->visitor)
		    : place_mint(room->line, who->now_ms / PLACE_SLOT_MS, who->appliance);
	if (key == 0)
		return ENTER_FULL;
	*ticket = (struct token){.kind = TOKEN_TICKET,
		.flags = ids ? TOKEN_FLAG_GATHERED : 0,
		.line_id = room->line_id,
		.key = key,
		.visitor = who->visitor,
		.issued = who->now_s};
	*fills_window = ids && gather_is_full(ids);
	return ENTER_PLACED;
}
