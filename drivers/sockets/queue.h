// Send queues: bytes that a peer did not take at once, in buffers of one pool.
//
// A queue is three words in its stream and holds no buffer while it is empty.
#pragma once

#include <stdbool.h>
#include <stdint.h>
#include <sys/uio.h>

#include "drivers/span.h"

// Buffers are numbered from 1; 0 is none, so that a zeroed queue is an empty one.
struct queue {
	uint32_t first, last;
	uint32_t bytes;
};

struct queue_buffer {
	uint32_t next;
	uint32_t start, end; // what is queued of its bytes
};

struct queue_pool {
	struct queue_buffer *buffers;
	char *bytes;
	uint32_t buffer_bytes;
	uint32_t free; // first of the free ones
	uint32_t free_count;
};

// Allocate `count` buffers of `buffer_bytes`; their product is below 4 GB. Returns 0 or -ENOMEM.
int queue_pool_init(struct queue_pool *pool, uint32_t count, uint32_t buffer_bytes);
void queue_pool_fini(struct queue_pool *pool);

// Copy `data` to the end of the queue. Returns the bytes taken: less than all when the pool is
// empty.
size_t queue_push(struct queue_pool *pool, struct queue *queue, struct span data);

// The queued bytes from the front, for sendmsg(2). Returns how many of `parts` were filled.
unsigned queue_parts(const struct queue_pool *pool, const struct queue *queue, struct iovec *parts,
	unsigned max);

// What stands in the first buffer.
struct span queue_front(const struct queue_pool *pool, const struct queue *queue);

// Drop `bytes` from the front, at most all; emptied buffers go back to the pool.
void queue_pop(struct queue_pool *pool, struct queue *queue, size_t bytes);

// Whether nothing waits.
static inline bool queue_is_empty(const struct queue *queue)
{
	return queue->bytes == 0;
}
