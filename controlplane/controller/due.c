// Due: an indexed binary heap. Equal times are ordered by id, so that runs replay exactly.

#include "controlplane/controller/due.h"

#include <assert.h>
#include <stdlib.h>

bool due_init(struct due *due, uint32_t ids_max)
{
	*due = (struct due){.ids_max = ids_max};
	due->heap = calloc(ids_max + 1ull, sizeof(*due->heap));
	due->places = calloc(ids_max + 1ull, sizeof(*due->places));
	if (due->heap && due->places)
		return true;
	due_fini(due);
	return false;
}

void due_fini(struct due *due)
{
	free(due->heap);
	free(due->places);
	*due = (struct due){0};
}

static bool is_before(const struct due_entry *a, const struct due_entry *b)
{
	return a->when != b->when ? a->when < b->when : a->id < b->id;
}

static void put(struct due *due, uint32_t place, struct due_entry entry)
{
	due->heap[place] = entry;
	due->places[entry.id] = place + 1;
}

static void sift_up(struct due *due, uint32_t place, struct due_entry entry)
{
	while (place > 0 && is_before(&entry, &due->heap[(place - 1) / 2])) {
		put(due, place, due->heap[(place - 1) / 2]);
		place = (place - 1) / 2;
	}
	put(due, place, entry);
}

static void sift_down(struct due *due, uint32_t place, struct due_entry entry)
{
	for (;;) {
		uint32_t child = 2 * place + 1;
		if (child + 1 < due->count && is_before(&due->heap[child + 1], &due->heap[child]))
			child++;
		if (child >= due->count || is_before(&entry, &due->heap[child]))
			break;
		put(due, place, due->heap[child]);
		place = child;
	}
	put(due, place, entry);
}

// Put `entry` where it belongs, beginning from a place that is free.
static void settle(struct due *due, uint32_t place, struct due_entry entry)
{
	if (place > 0 && is_before(&entry, &due->heap[(place - 1) / 2]))
		sift_up(due, place, entry);
	else
		sift_down(due, place, entry);
}

void due_set(struct due *due, uint32_t id, uint64_t when)
{
	assert(id > 0 && id <= due->ids_max);
	const uint32_t place = due->places[id] ? due->places[id] - 1 : due->count++;
	settle(due, place, (struct due_entry){when, id});
}

void due_remove(struct due *due, uint32_t id)
{
	if (!due->places[id])
		return;
	const uint32_t place = due->places[id] - 1;
	const struct due_entry last = due->heap[--due->count];
	due->places[id] = 0;
	if (last.id != id)
		settle(due, place, last);
}

uint32_t due_at(const struct due *due, uint64_t now)
{
	return due->count > 0 && due->heap[0].when <= now ? due->heap[0].id : 0;
}

// Count the entries due in the part of the heap below `place`, until `left` runs out.
static void count_from(const struct due *due, uint32_t place, uint64_t now, uint32_t *left)
{
	if (place >= due->count || due->heap[place].when > now || *left == 0)
		return;
	--*left;
	count_from(due, 2 * place + 1, now, left); // as deep as the heap: 20 for a million
	count_from(due, 2 * place + 2, now, left);
}

uint32_t due_count(const struct due *due, uint64_t now, uint32_t most)
{
	uint32_t left = most;
	count_from(due, 0, now, &left);
	return most - left;
}
