// An array as the snapshot has it, and a sorted index beside it. Replaced only by a reload, so the
// old entries are copied aside and looked up one by one.

#include "controlplane/claims/claims_rooms.h"

#include <assert.h>
#include <stdlib.h>
#include <string.h>

bool claims_rooms_init(struct claims_rooms *rooms, uint32_t max)
{
	rooms->max = max;
	// Twice: the second half holds the old ones while they are replaced.
	rooms->entries = calloc(2 * (size_t)max, sizeof(*rooms->entries));
	rooms->by_line = calloc(max, sizeof(*rooms->by_line));
	return rooms->entries && rooms->by_line;
}

void claims_rooms_fini(struct claims_rooms *rooms)
{
	free(rooms->entries);
	free(rooms->by_line);
}

static int order(const void *a, const void *b, void *ctx)
{
	const struct claims_rooms_entry *entries = ctx;
	uint32_t left = entries[*(const uint32_t *)a].is.line_id;
	uint32_t right = entries[*(const uint32_t *)b].is.line_id;
	return (left > right) - (left < right);
}

static const struct claims_rooms_entry *entry_of(
	const struct claims_rooms_entry *entries, uint32_t count, uint32_t line_id)
{
	for (uint32_t i = 0; i < count; i++) {
		if (entries[i].is.line_id == line_id)
			return &entries[i];
	}
	return NULL;
}

void claims_rooms_set(struct claims_rooms *rooms, const struct claims_room *is, uint32_t count,
	uint64_t quiet_until_ms)
{
	assert(count <= rooms->max);
	struct claims_rooms_entry *old = rooms->entries + rooms->max;
	uint32_t old_count = rooms->count;
	memcpy(old, rooms->entries, old_count * sizeof(*old));
	for (uint32_t i = 0; i < count; i++) {
		struct claims_rooms_entry *entry = &rooms->entries[i];
		const struct claims_rooms_entry *known = entry_of(old, old_count, is[i].line_id);
		*entry = known ? *known
			       : (struct claims_rooms_entry){.quiet_until_ms = quiet_until_ms};
		if (entry->is.controller != is[i].controller)
			entry->is_available = true;
		entry->is = is[i];
		rooms->by_line[i] = i;
	}
	rooms->count = count;
	qsort_r(rooms->by_line, count, sizeof(*rooms->by_line), order, rooms->entries);
}

struct claims_rooms_entry *claims_rooms_find(const struct claims_rooms *rooms, uint32_t line_id)
{
	uint32_t low = 0, high = rooms->count;
	while (low < high) {
		uint32_t middle = low + (high - low) / 2;
		struct claims_rooms_entry *entry = &rooms->entries[rooms->by_line[middle]];
		if (entry->is.line_id == line_id)
			return entry;
		if (entry->is.line_id < line_id)
			low = middle + 1;
		else
			high = middle;
	}
	return NULL;
}
