// The table of source.h. An empty bucket has count 0. Deletion shifts later buckets of the run
// back, so there are no tombstones and a run is never longer than its members (Knuth, TAOCP 3, 6.4,
// algorithm R).

#include "dataplane/source.h"

#include <xxhash.h>

#include <assert.h>
#include <string.h>

struct source {
	uint64_t prefix; // the mapped IPv4 address, or the first 56 bits
	uint32_t count; // connections; 0: free bucket
	uint32_t is_ipv4;
};

struct source_table {
	uint64_t seed;
	uint32_t mask, limit;
	struct source buckets[];
};

static uint32_t buckets_for(uint32_t connections_max)
{
	uint32_t count = 16;
	while (count < 2 * (uint64_t)connections_max)
		count *= 2;
	return count;
}

size_t source_table_bytes(uint32_t connections_max)
{
	return sizeof(struct source_table) + buckets_for(connections_max) * sizeof(struct source);
}

struct source_table *source_table_init(
	void *memory, uint32_t connections_max, uint32_t limit, uint64_t seed)
{
	assert(limit > 0);
	struct source_table *table = memory;
	table->seed = seed;
	table->limit = limit;
	table->mask = buckets_for(connections_max) - 1;
	return table;
}

static struct source source_of(const uint8_t ip[16])
{
	static const uint8_t mapped[12] = {[10] = 0xff, [11] = 0xff};
	struct source source = {0};
	if (memcmp(ip, mapped, sizeof(mapped)) == 0) {
		memcpy(&source.prefix, ip + 12, 4);
		source.is_ipv4 = 1;
	} else {
		memcpy(&source.prefix, ip, 7); // 56 bits
	}
	return source;
}

static uint32_t home_of(const struct source_table *table, const struct source *source)
{
	uint64_t key[2] = {source->prefix, source->is_ipv4};
	return (uint32_t)XXH3_64bits_withSeed(key, sizeof(key), table->seed) & table->mask;
}

// The bucket of `source`, or the free one where it would go.
static uint32_t find(const struct source_table *table, const struct source *source)
{
	uint32_t at = home_of(table, source);
	for (;; at = (at + 1) & table->mask) {
		const struct source *bucket = &table->buckets[at];
		if (bucket->count == 0 ||
			(bucket->prefix == source->prefix && bucket->is_ipv4 == source->is_ipv4))
			return at;
	}
}

bool source_take(struct source_table *table, const uint8_t ip[16])
{
	struct source source = source_of(ip);
	struct source *bucket = &table->buckets[find(table, &source)];
	if (bucket->count >= table->limit)
		return false;
	source.count = bucket->count + 1;
	*bucket = source;
	return true;
}

void source_give(struct source_table *table, const uint8_t ip[16])
{
	struct source source = source_of(ip);
	uint32_t hole = find(table, &source);
	assert(table->buckets[hole].count > 0);
	if (--table->buckets[hole].count > 0)
		return;
	for (uint32_t at = (hole + 1) & table->mask; table->buckets[at].count > 0;
		at = (at + 1) & table->mask) {
		uint32_t home = home_of(table, &table->buckets[at]);
		// Move it back if its home is not cyclically within (hole, at].
		if (((at - home) & table->mask) >= ((at - hole) & table->mask)) {
			table->buckets[hole] = table->buckets[at];
			table->buckets[at].count = 0;
			hole = at;
		}
	}
}
