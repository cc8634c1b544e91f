// A singly linked list of fixed buffers. The last buffer is filled before another is taken, so many
// small writes behind a slow reader cost no more buffers than one big one.

#include "drivers/sockets/queue.h"

#include <assert.h>
#include <errno.h>
#include <stdlib.h>

static struct queue_buffer *buffer_of(const struct queue_pool *pool, uint32_t number)
{
	assert(number != 0);
	return &pool->buffers[number - 1];
}

static char *bytes_of(const struct queue_pool *pool, uint32_t number)
{
	return pool->bytes + (size_t)(number - 1) * pool->buffer_bytes;
}

int queue_pool_init(struct queue_pool *pool, uint32_t count, uint32_t buffer_bytes)
{
	assert((uint64_t)count * buffer_bytes <= UINT32_MAX);
	pool->buffers = calloc(count, sizeof(*pool->buffers));
	pool->bytes = malloc((size_t)count * buffer_bytes);
	if (!pool->buffers || !pool->bytes) {
		queue_pool_fini(pool);
		return -ENOMEM;
	}
	pool->buffer_bytes = buffer_bytes;
	pool->free = 1;
	pool->free_count = count;
	for (uint32_t i = 1; i < count; i++)
		pool->buffers[i - 1].next = i + 1;
	return 0;
}

void queue_pool_fini(struct queue_pool *pool)
{
	free(pool->buffers);
	free(pool->bytes);
	*pool = (struct queue_pool){0};
}

// Append a buffer of the pool. False: there is none.
static bool grow(struct queue_pool *pool, struct queue *queue)
{
	uint32_t number = pool->free;
	if (number == 0)
		return false;
	struct queue_buffer *buffer = buffer_of(pool, number);
	pool->free = buffer->next;
	pool->free_count--;
	*buffer = (struct queue_buffer){0};
	if (queue->last)
		buffer_of(pool, queue->last)->next = number;
	else
		queue->first = number;
	queue->last = number;
	return true;
}

size_t queue_push(struct queue_pool *pool, struct queue *queue, struct span data)
{
	size_t taken = 0;
	while (taken < data.len) {
		struct queue_buffer *last = queue->last ? buffer_of(pool, queue->last) : NULL;
		if (!last || last->end == pool->buffer_bytes) {
			if (!grow(pool, queue))
				break;
			last = buffer_of(pool, queue->last);
		}
		size_t part = data.len - taken, room = pool->buffer_bytes - last->end;
		if (part > room)
			part = room;
		memcpy(bytes_of(pool, queue->last) + last->end, data.at + taken, part);
		last->end += part;
		taken += part;
	}
	queue->bytes += taken;
	return taken;
}

unsigned queue_parts(
	const struct queue_pool *pool, const struct queue *queue, struct iovec *parts, unsigned max)
{
	unsigned count = 0;
	for (uint32_t at = queue->first; at && count < max; at = buffer_of(pool, at)->next) {
		const struct queue_buffer *buffer = buffer_of(pool, at);
		parts[count].iov_base = bytes_of(pool, at) + buffer->start;
		parts[count++].iov_len = buffer->end - buffer->start;
	}
	return count;
}

struct span queue_front(const struct queue_pool *pool, const struct queue *queue)
{
	struct iovec part = {0};
	queue_parts(pool, queue, &part, 1);
	return (struct span){part.iov_base, part.iov_len};
}

static void give_first(struct queue_pool *pool, struct queue *queue)
{
	uint32_t number = queue->first;
	struct queue_buffer *buffer = buffer_of(pool, number);
	queue->first = buffer->next;
	if (queue->first == 0)
		queue->last = 0;
	buffer->next = pool->free;
	pool->free = number;
	pool->free_count++;
}

void queue_pop(struct queue_pool *pool, struct queue *queue, size_t bytes)
{
	assert(bytes <= queue->bytes);
	queue->bytes -= bytes;
	while (bytes) {
		struct queue_buffer *first = buffer_of(pool, queue->first);
		size_t part = first->end - first->start;
		if (bytes < part) {
			first->start += bytes;
			return;
		}
		bytes -= part;
		give_first(pool, queue);
	}
}
