// Idmap: linear probing. A removal moves back those who probed past the gap, so there are no
// tombstones and a table that has lived long is as fast as a fresh one.

#include "controlplane/controller/idmap.h"

#include <assert.h>
#include <stdlib.h>
#include <xxhash.h>

static uint64_t home_of(const struct idmap *map, uint64_t id)
{
	return XXH3_64bits_withSeed(&id, sizeof(id), map->seed) & map->mask;
}

static uint64_t size_of(uint32_t count_max)
{
	uint64_t size = 4;
	while (size < 2ull * count_max)
		size *= 2;
	return size;
}

uint64_t idmap_bytes(uint32_t count_max)
{
	return size_of(count_max) * sizeof(struct idmap_entry);
}

bool idmap_init(struct idmap *map, uint32_t count_max, uint64_t seed)
{
	const uint64_t size = size_of(count_max);
	*map = (struct idmap){.mask = size - 1, .seed = seed, .count_max = count_max};
	map->entries = calloc(size, sizeof(*map->entries));
	return map->entries != NULL;
}

void idmap_fini(struct idmap *map)
{
	free(map->entries);
	*map = (struct idmap){0};
}

// Where `id` is, or the free entry at which the search for it ends.
static uint64_t place_of(const struct idmap *map, uint64_t id)
{
	uint64_t place = home_of(map, id);
	while (map->entries[place].value != 0 && map->entries[place].id != id)
		place = (place + 1) & map->mask;
	return place;
}

void idmap_insert(struct idmap *map, uint64_t id, uint32_t value)
{
	assert(value != 0 && map->count < map->count_max);
	struct idmap_entry *entry = &map->entries[place_of(map, id)];
	assert(entry->value == 0);
	*entry = (struct idmap_entry){id, value};
	map->count++;
}

void idmap_remove(struct idmap *map, uint64_t id)
{
	uint64_t gap = place_of(map, id);
	assert(map->entries[gap].value != 0);
	map->count--;
	for (uint64_t at = (gap + 1) & map->mask; map->entries[at].value != 0;
		at = (at + 1) & map->mask) {
		// An entry may fill the gap unless its home lies behind it.
		const uint64_t home = home_of(map, map->entries[at].id);
		if (((at - home) & map->mask) < ((at - gap) & map->mask))
			continue;
		map->entries[gap] = map->entries[at];
		gap = at;
	}
	map->entries[gap].value = 0;
}

uint32_t idmap_find(const struct idmap *map, uint64_t id)
{
	return map->entries[place_of(map, id)].value;
}
