// How many connections each source has, so that one address cannot take all places.
//
// A source is an IPv4 address or an IPv6 /56, which is what one household gets. A table by open
// addressing with linear probing and backward-shift deletion, seeded, sized for twice the
// connections; it never fills. Single-threaded.
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

struct source_table;

// Bytes of memory a table for `connections_max` connections takes.
size_t source_table_bytes(uint32_t connections_max);

// Make a table in `memory` (zeroed, 8-byte aligned, source_table_bytes() long).
//   limit  connections of one source; at least 1
//   seed   random, so that nobody can aim for one bucket
struct source_table *source_table_init(
	void *memory, uint32_t connections_max, uint32_t limit, uint64_t seed);

// A connection from `ip` (IPv4 mapped) opened. Returns false, counting nothing, if its source is at
// the limit.
bool source_take(struct source_table *table, const uint8_t ip[16]);

// A connection that source_take() counted is gone.
void source_give(struct source_table *table, const uint8_t ip[16]);
