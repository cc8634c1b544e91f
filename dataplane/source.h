// How many connections each source has, so that one address cannot take all places.
//
// A source is an IPv4 address or an IPv6 /56, which is what one household gets. A table by open
// addressing with linear probing and backward-shift deletion, seeded, of eight bytes a place and at
// most three quarters full. Of a source it has 40 bits of a hash: two that share them share their
// allowance, one pair in 2^40. Single-threaded.
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

struct source_table;

#define SOURCE_LIMIT_MAX ((1u << 24) - 1) // connections of one source that can be counted

// Bytes of memory a table for `connections_max` connections takes, once each has another source.
size_t source_table_bytes(uint32_t connections_max);

// Make a table; NULL when out of memory. Owned by the caller: source_destroy(), which accepts NULL.
//   limit  connections of one source; 1 to SOURCE_LIMIT_MAX
//   seed   random, so that nobody can aim for one place
struct source_table *source_create(uint32_t connections_max, uint32_t limit, uint64_t seed);
void source_destroy(struct source_table *table);

// All bits of a hash of the source of `ip` (IPv4 mapped). Pure; any thread.
uint64_t source_hash(const uint8_t ip[16], uint64_t seed);

// A connection from `ip` (IPv4 mapped) opened. Returns false, counting nothing, if its source is at
// the limit.
bool source_take(struct source_table *table, const uint8_t ip[16]);

// Have the place of `ip` brought into the caches: one of the two calls is about to come.
void source_fetch(const struct source_table *table, const uint8_t ip[16]);

// A connection that source_take() counted is gone.
void source_give(struct source_table *table, const uint8_t ip[16]);
