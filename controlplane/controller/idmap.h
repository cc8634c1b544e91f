// Idmap: a bounded hash table from 64-bit ids to small numbers.
//
// Open addressing, at most half full; hashes are seeded, since ids come from outside.
#pragma once

#include <stdbool.h>
#include <stdint.h>

struct idmap_entry {
	uint64_t id;
	uint32_t value; // 0: free
};

struct idmap {
	struct idmap_entry *entries;
	uint64_t mask, seed;
	uint32_t count, count_max;
};

// Bytes of a map of so many. Pure.
uint64_t idmap_bytes(uint32_t count_max);

// Returns false when memory is short.
bool idmap_init(struct idmap *map, uint32_t count_max, uint64_t seed);
void idmap_fini(struct idmap *map);

// `id` must not be in; `value` not 0; fewer than count_max in it.
void idmap_insert(struct idmap *map, uint64_t id, uint32_t value);

// `id` must be in.
void idmap_remove(struct idmap *map, uint64_t id);

// Returns its value, or 0.
uint32_t idmap_find(const struct idmap *map, uint64_t id);
