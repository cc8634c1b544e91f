// Buffers of one size, for what has to be kept for a while: a request's head until it can no longer
// be asked for again, the part of a body that came before the connection, a part of an answer's
// head. An exchange that streams holds none, so few buffers serve many exchanges.
#pragma once

#include <stdint.h>

#include "drivers/span.h"

struct buffer {
	struct buffer *next; // in the pool, or in its owner's chain
	uint32_t len; // bytes in use
	char bytes[];
};

struct buffer_pool {
	char *memory;
	struct buffer *free; // last given, first taken: the same few stay warm
	uint32_t bytes; // each buffer holds
	uint32_t uncut_count; // never taken yet
	uint32_t taken_count;
};

// What buffer_pool_init() allocates.
size_t buffer_pool_bytes(uint32_t count, uint32_t bytes);

// Make `count` buffers of `bytes`. Returns 0 or -ENOMEM.
int buffer_pool_init(struct buffer_pool *pool, uint32_t count, uint32_t bytes);
void buffer_pool_fini(struct buffer_pool *pool);

// An empty buffer, the caller's; NULL: all are taken.
struct buffer *buffer_take(struct buffer_pool *pool);

// Give back a chain. Accepts NULL.
void buffer_give(struct buffer_pool *pool, struct buffer *chain);

// Append as much of `in` as there is room for. Returns how much that was.
uint32_t buffer_append(const struct buffer_pool *pool, struct buffer *buffer, struct span in);
