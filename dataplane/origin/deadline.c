// A binary heap on an array that begins at 1, so that the parent of place p is p / 2. Each item
// knows its place, which is what makes moving and clearing cheap.

#include "dataplane/origin/deadline.h"

#include <assert.h>
#include <errno.h>
#include <stdlib.h>

static void put(struct deadline_heap *heap, uint32_t place, struct deadline *deadline)
{
	heap->items[place] = deadline;
	deadline->place = place;
}

static void rise(struct deadline_heap *heap, struct deadline *deadline)
{
	uint32_t place = deadline->place;
	for (; place > 1 && heap->items[place / 2]->at_us > deadline->at_us; place /= 2)
		put(heap, place, heap->items[place / 2]);
	put(heap, place, deadline);
}

static void sink(struct deadline_heap *heap, struct deadline *deadline)
{
	uint32_t place = deadline->place;
	for (uint32_t child; (child = place * 2) <= heap->count; place = child) {
		if (child < heap->count &&
			heap->items[child + 1]->at_us < heap->items[child]->at_us)
			child++;
		if (heap->items[child]->at_us >= deadline->at_us)
			break;
		put(heap, place, heap->items[child]);
	}
	put(heap, place, deadline);
}

int deadline_heap_init(struct deadline_heap *heap, uint32_t max)
{
	*heap = (struct deadline_heap){.max = max};
	heap->items = calloc((size_t)max + 1, sizeof(*heap->items)); // COLD: at start
	return heap->items ? 0 : -ENOMEM;
}

void deadline_heap_fini(struct deadline_heap *heap)
{
	free(heap->items);
}

void deadline_set(struct deadline_heap *heap, struct deadline *deadline, uint64_t at_us)
{
	if (!deadline->place) {
		assert(heap->count < heap->max);
		put(heap, ++heap->count, deadline);
	}
	deadline->at_us = at_us;
	rise(heap, deadline);
	sink(heap, deadline);
}

void deadline_clear(struct deadline_heap *heap, struct deadline *deadline)
{
	uint32_t place = deadline->place;
	if (!place)
		return;
	struct deadline *last = heap->items[heap->count--];
	deadline->place = 0;
	if (last == deadline)
		return;
	put(heap, place, last);
	rise(heap, last);
	sink(heap, last);
}

struct deadline *deadline_first(const struct deadline_heap *heap)
{
	return heap->count ? heap->items[1] : NULL;
}
