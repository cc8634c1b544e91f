// Deadlines: which of many things is due first. A binary heap of what is embedded in the things
// themselves; setting, clearing and taking cost log2 of how many are set.
#pragma once

#include <stdint.h>

#define DEADLINE_NEVER UINT64_MAX

// Embedded; all zero is "not set".
struct deadline {
	uint64_t at_us;
	uint32_t place; // in the heap, from 1; 0: not set
};

struct deadline_heap {
	struct deadline **items; // items[1] is the first that is due; items[0] is not used
	uint32_t count;
	uint32_t max;
};

// Make room for `max` deadlines. Returns 0 or -ENOMEM.
int deadline_heap_init(struct deadline_heap *heap, uint32_t max);
void deadline_heap_fini(struct deadline_heap *heap);

// Set or move. At most `max` are set at a time.
void deadline_set(struct deadline_heap *heap, struct deadline *deadline, uint64_t at_us);

// Take it out, if it is set.
void deadline_clear(struct deadline_heap *heap, struct deadline *deadline);

// The one that is due first; NULL: none is set.
struct deadline *deadline_first(const struct deadline_heap *heap);
