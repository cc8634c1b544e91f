// Chunks: pieces of equal size, from a pool, that hold bytes until they are acknowledged or read;
// and queues of them.
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "drivers/span.h"

struct tcp_chunks {
	char *memory; // count x bytes
	uint32_t *next; // index + 1 of the following one
	uint32_t bytes, count, free, free_count;
};

// Bytes in order: from `skip` in the first chunk on.
struct tcp_queue {
	uint32_t first, last; // index + 1; 0: empty
	uint32_t skip, bytes;
};

// Make a pool. Returns 0 or -ENOMEM.
int chunks_init(struct tcp_chunks *pool, uint32_t count, uint32_t bytes);
void chunks_fini(struct tcp_chunks *pool);

// Append; returns the bytes taken, less than asked when the pool is empty.
size_t chunks_push(struct tcp_chunks *pool, struct tcp_queue *queue, struct span bytes);

// The bytes [offset, offset + len) of a queue as at most `max` spans. Returns how many.
unsigned chunks_at(const struct tcp_chunks *pool, const struct tcp_queue *queue, uint32_t offset,
	uint32_t len, struct span *parts, unsigned max);

// Drop the first `bytes`; all of them: chunks_drop(pool, queue, queue->bytes).
void chunks_drop(struct tcp_chunks *pool, struct tcp_queue *queue, uint32_t bytes);
