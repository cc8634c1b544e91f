// One allocation, cut into slots that are multiples of a cache line. Slots that were given back are
// a list; the others are cut off only when that is empty, so that memory never used is never
// touched.

#include "dataplane/origin/buffer.h"

#include <assert.h>
#include <errno.h>
#include <stdlib.h>

#define LINE_BYTES 64u

static size_t slot_bytes(uint32_t bytes)
{
	size_t slot = sizeof(struct buffer) + bytes;
	return (slot + LINE_BYTES - 1) / LINE_BYTES * LINE_BYTES;
}

size_t buffer_pool_bytes(uint32_t count, uint32_t bytes)
{
	return count * slot_bytes(bytes);
}

int buffer_pool_init(struct buffer_pool *pool, uint32_t count, uint32_t bytes)
{
	assert(count > 0);
	*pool = (struct buffer_pool){.bytes = bytes, .uncut_count = count};
	pool->memory = aligned_alloc(LINE_BYTES, buffer_pool_bytes(count, bytes));
	return pool->memory ? 0 : -ENOMEM;
}

void buffer_pool_fini(struct buffer_pool *pool)
{
	free(pool->memory);
}

struct buffer *buffer_take(struct buffer_pool *pool)
{
	struct buffer *buffer = pool->free;
	if (buffer)
		pool->free = buffer->next;
	else if (pool->uncut_count > 0)
		buffer = (struct buffer *)(pool->memory +
					   --pool->uncut_count * slot_bytes(pool->bytes));
	else
		return NULL;
	pool->taken_count++;
	buffer->next = NULL;
	buffer->len = 0;
	return buffer;
}

void buffer_give(struct buffer_pool *pool, struct buffer *chain)
{
	while (chain) {
		struct buffer *next = chain->next;
		chain->next = pool->free;
		pool->free = chain;
		pool->taken_count--;
		chain = next;
	}
}

uint32_t buffer_append(const struct buffer_pool *pool, struct buffer *buffer, struct span in)
{
	assert(buffer->len <= pool->bytes);
	uint32_t room = pool->bytes - buffer->len;
	uint32_t len = in.len < room ? (uint32_t)in.len : room;
	memcpy(buffer->bytes + buffer->len, in.at, len);
	buffer->len += len;
	return len;
}
