// Due: what happens next. A bounded binary heap of ids by time, in which a time can be changed.
#pragma once

#include <stdbool.h>
#include <stdint.h>

struct due_entry {
	uint64_t when;
	uint32_t id;
};

struct due {
	struct due_entry *heap; // [0] is the earliest
	uint32_t *places; // of id: place in heap + 1; 0: not in
	uint32_t count, ids_max;
};

// For ids 1 to `ids_max`. Returns false when memory is short.
bool due_init(struct due *due, uint32_t ids_max);
void due_fini(struct due *due);

// `id` is due at `when`; a time set before is replaced.
void due_set(struct due *due, uint32_t id, uint64_t when);

// Nothing happens to `id` any more. It need not be in.
void due_remove(struct due *due, uint32_t id);

// An id that is due at `now`, the earliest first, or 0. It stays in.
uint32_t due_at(const struct due *due, uint64_t now);

// How many are due at `now`, counted up to `most`. Steps are proportional to the result.
uint32_t due_count(const struct due *due, uint64_t now, uint32_t most);
