// The table of source.h: words of 40 bits of a source's hash and 24 of its count; 0 is a free
// place. The hash's bits also say where its home is, scaled to the table's length (Lemire, "Fast
// random integer generation in an interval", 2019), which therefore need not be a power of two.
// Deletion shifts later places of the run back, so there are no tombstones and a run is never
// longer than its members (Knuth, TAOCP 3, 6.4, algorithm R).

#include "dataplane/source.h"

#include "dataplane/fresh.h"
#include "drivers/ip.h"

#include <xxhash.h>

#include <assert.h>
#include <stdlib.h>
#include <string.h>

#define HASH_BITS 40u
#define COUNT_BITS 24u
static_assert(HASH_BITS + COUNT_BITS == 64 && SOURCE_LIMIT_MAX == (1u << COUNT_BITS) - 1, "a word");

struct source_table {
	uint64_t seed;
	uint64_t *places; // hash << COUNT_BITS | count
	uint32_t place_count, limit;
};

static uint32_t places_for(uint32_t connections_max)
{
	return connections_max + connections_max / 3 + 8;
}

size_t source_table_bytes(uint32_t connections_max)
{
	return sizeof(struct source_table) + places_for(connections_max) * sizeof(uint64_t);
}

struct source_table *source_create(uint32_t connections_max, uint32_t limit, uint64_t seed)
{
	assert(limit > 0 && limit <= SOURCE_LIMIT_MAX);
	struct source_table *table = malloc(sizeof(*table)); // COLD: at start
	if (!table)
		return NULL;
	*table = (struct source_table){
		.seed = seed, .place_count = places_for(connections_max), .limit = limit};
	static_assert(
		UINT64_MAX >> HASH_BITS >= 4000000u * 4 / 3 + 8, "home_of() does not overflow");
	assert(table->place_count <= UINT64_MAX >> HASH_BITS);
	table->places = fresh_map(table->place_count * sizeof(table->places[0]));
	if (table->places)
		return table;
	free(table);
	return NULL;
}

void source_destroy(struct source_table *table)
{
	if (!table)
		return;
	fresh_unmap(table->places, table->place_count * sizeof(table->places[0]));
	free(table);
}

uint64_t source_hash(const uint8_t ip[16], uint64_t seed)
{
	uint64_t key[2] = {0}; // the address, and that it is an IPv4 one; or the first 56 bits
	if (ip_is_v4(ip)) {
		memcpy(&key[0], ip + 12, 4);
		key[1] = 1;
	} else {
		memcpy(&key[0], ip, 7);
	}
	return XXH3_64bits_withSeed(key, sizeof(key), seed);
}

static uint64_t hash_of(const struct source_table *table, const uint8_t ip[16])
{
	return source_hash(ip, table->seed) >> COUNT_BITS;
}

static uint32_t home_of(const struct source_table *table, uint64_t hash)
{
	return (uint32_t)(hash * table->place_count >> HASH_BITS);
}

static uint32_t after(const struct source_table *table, uint32_t at)
{
	return at + 1 == table->place_count ? 0 : at + 1;
}

// How far `at` lies behind `home`, around the end.
static uint32_t distance(const struct source_table *table, uint32_t home, uint32_t at)
{
	return at >= home ? at - home : at + table->place_count - home;
}

// The place of a source, or the free one where it would go.
static uint32_t find(const struct source_table *table, uint64_t hash)
{
	uint32_t at = home_of(table, hash);
	while (table->places[at] != 0 && table->places[at] >> COUNT_BITS != hash)
		at = after(table, at);
	return at;
}

bool source_take(struct source_table *table, const uint8_t ip[16])
{
	uint64_t hash = hash_of(table, ip);
	uint64_t *place = &table->places[find(table, hash)];
	if ((*place & SOURCE_LIMIT_MAX) >= table->limit)
		return false;
	*place = (*place ? *place : hash << COUNT_BITS) + 1;
	return true;
}

void source_fetch(const struct source_table *table, const uint8_t ip[16])
{
	__builtin_prefetch(&table->places[home_of(table, hash_of(table, ip))], 1);
}

void source_give(struct source_table *table, const uint8_t ip[16])
{
	uint64_t hash = hash_of(table, ip);
	uint32_t hole = find(table, hash);
	assert(table->places[hole] & SOURCE_LIMIT_MAX);
	if (--table->places[hole] & SOURCE_LIMIT_MAX)
		return;
	table->places[hole] = 0;
	for (uint32_t at = after(table, hole); table->places[at] != 0; at = after(table, at)) {
		uint32_t home = home_of(table, table->places[at] >> COUNT_BITS);
		// Move it back unless its home is cyclically within (hole, at].
		if (distance(table, home, at) >= distance(table, hole, at)) {
			table->places[hole] = table->places[at];
			table->places[at] = 0;
			hole = at;
		}
	}
}
