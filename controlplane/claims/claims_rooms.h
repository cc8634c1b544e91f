// The rooms of the turn: found by the index that a claim names if it is still that room's, else by
// line id. For claims.c alone; control thread.
#pragma once

#include "controlplane/claims/claims.h"

struct claims_rooms_entry {
	struct claims_room is;
	bool is_available; // as its controller was told
	bool is_touched; // in this turn: it may have changes, and is to be published
	bool is_restored; // the store has been asked
	uint64_t quiet_until_ms; // nobody new before this; 0: no such thing
	uint64_t passed;
	uint64_t saved_threshold, saved_floor;
};

struct claims_rooms {
	uint32_t count, max;
	struct claims_rooms_entry *entries; // in the order of the snapshot
	uint32_t *by_line; // indices, by line id
};

// Returns false when memory is short.
bool claims_rooms_init(struct claims_rooms *rooms, uint32_t max);
void claims_rooms_fini(struct claims_rooms *rooms);

// Replace the rooms; what is known of those that stay is kept, new ones are available and quiet
// until `quiet_until_ms`.
void claims_rooms_set(struct claims_rooms *rooms, const struct claims_room *is, uint32_t count,
	uint64_t quiet_until_ms);

// The room of a line, or NULL.
struct claims_rooms_entry *claims_rooms_find(const struct claims_rooms *rooms, uint32_t line_id);
