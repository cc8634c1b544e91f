// Agenda: who has something to do when. A binary heap of ids by time; each id is in it once at
// most, and its time can be changed.
#pragma once

#include <stdbool.h>
#include <stdint.h>

struct agenda {
	uint32_t *heap; // ids; heap[0] is the earliest
	uint32_t *places; // of an id: its place in the heap + 1; 0: it is not in
	int64_t *times_us; // of an id
	uint32_t count;
};

// For ids below `ids`. Returns false when memory is short.
bool agenda_init(struct agenda *agenda, uint32_t ids);
void agenda_fini(struct agenda *agenda);

// `id` is due at that time; a time set before is replaced.
void agenda_set(struct agenda *agenda, uint32_t id, int64_t time_us);

// Nothing is due of `id`. It need not be in.
void agenda_remove(struct agenda *agenda, uint32_t id);

// When the earliest is due; INT64_MAX if nothing is.
int64_t agenda_next_us(const struct agenda *agenda);

// Take out the earliest if it is due at `now_us`. Returns whether there was one.
bool agenda_take(struct agenda *agenda, int64_t now_us, uint32_t *id);
