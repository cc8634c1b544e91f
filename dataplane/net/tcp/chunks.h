// Chunks: pieces of equal size, from a pool, that hold bytes until they are acknowledged or read;
// and queues of them.
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "drivers/span.h"

#define CHUNKS_BYTES_MIN 64u // of one chunk

struct tcp_chunk {
	uint32_t next; // index + 1 of the following one, in a queue or among the free
	uint32_t from, to; // the bytes in it that count
};

struct tcp_chunks {
	char *memory; // count x bytes
	struct tcp_chunk *chunks;
	uint32_t bytes, count;
	uint32_t free, free_count; // index + 1 of the first
};

// Bytes in order. All zero: empty.
struct tcp_queue {
	uint32_t first, last; // index + 1
	uint32_t bytes;
	uint32_t at, at_offset; // the chunk (index + 1) looked at last and the offset of its first
				// byte, so that sending on does not walk from the start; 0: none
};

// Have the first chunk of a queue brought into the caches, but for its bytes: it is about to go.
static inline void chunks_fetch(const struct tcp_chunks *pool, const struct tcp_queue *queue)
{
	if (queue->first)
		__builtin_prefetch(&pool->chunks[queue->first - 1], 1);
}

// Make a pool of `count` chunks of `bytes`, at least CHUNKS_BYTES_MIN, a multiple of 16. Returns 0
// or -ENOMEM.
int chunks_init(struct tcp_chunks *pool, uint32_t count, uint32_t bytes);
void chunks_fini(struct tcp_chunks *pool);
// Bytes that such a pool takes.
uint64_t chunks_bytes(uint32_t count, uint32_t bytes);

// Append; returns the bytes taken, less than asked when the pool is empty.
size_t chunks_push(struct tcp_chunks *pool, struct tcp_queue *queue, struct span bytes);

// Append all of `tail`, which is empty afterwards.
void chunks_join(struct tcp_chunks *pool, struct tcp_queue *queue, struct tcp_queue *tail);

// The bytes [offset, offset + len) of a queue as spans, len > 0 and within it. Returns how many:
// at most `max`, which may end them early.
unsigned chunks_at(const struct tcp_chunks *pool, struct tcp_queue *queue, uint32_t offset,
	uint32_t len, struct span *parts, unsigned max);

// Drop the first `bytes`; all of them: chunks_drop(pool, queue, queue->bytes).
void chunks_drop(struct tcp_chunks *pool, struct tcp_queue *queue, uint32_t bytes);
