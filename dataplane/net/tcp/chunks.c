// Chunks and queues of them.
//
// Whatever is dropped goes to the front of the free list, so that the chunk taken next is likely
// still cached. Nothing writes into a chunk that is dropped: who read it in this turn may look at
// it until the next.

#include "dataplane/net/tcp/chunks.h"

#include <assert.h>
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#define FETCH_BYTES 384u // of a chunk: an answer to a poll

static struct tcp_chunk *chunk_at(const struct tcp_chunks *pool, uint32_t number)
{
	assert(number - 1 < pool->count);
	return &pool->chunks[number - 1];
}

static char *memory_of(const struct tcp_chunks *pool, uint32_t number)
{
	return pool->memory + (size_t)(number - 1) * pool->bytes;
}

int chunks_init(struct tcp_chunks *pool, uint32_t count, uint32_t bytes)
{
	assert(count > 0 && count < UINT32_MAX);
	assert(bytes >= CHUNKS_BYTES_MIN && bytes % 16 == 0);
	*pool = (struct tcp_chunks){.count = count, .bytes = bytes, .free = 1, .free_count = count};
	// COLD: at start
	pool->memory = malloc((size_t)count * bytes);
	// COLD: at start
	pool->chunks = calloc(count, sizeof(*pool->chunks));
	if (!pool->memory || !pool->chunks) {
		chunks_fini(pool);
		return -ENOMEM;
	}
	for (uint32_t i = 0; i + 1 < count; i++)
		pool->chunks[i].next = i + 2;
	return 0;
}

void chunks_fini(struct tcp_chunks *pool)
{
	free(pool->memory);
	free(pool->chunks);
	*pool = (struct tcp_chunks){0};
}

uint64_t chunks_bytes(uint32_t count, uint32_t bytes)
{
	return (uint64_t)count * (bytes + sizeof(struct tcp_chunk));
}

// Have the chunk that is taken next brought into the caches, to be written into.
static void fetch(const struct tcp_chunks *pool)
{
	if (pool->free == 0)
		return;
	char *memory = memory_of(pool, pool->free);
	__builtin_prefetch(&pool->chunks[pool->free - 1], 1);
	for (uint32_t i = 0; i < FETCH_BYTES; i += 64)
		__builtin_prefetch(memory + i, 1);
}

// A chunk at the end of the queue, empty; NULL when the pool is.
static struct tcp_chunk *append(struct tcp_chunks *pool, struct tcp_queue *queue)
{
	const uint32_t number = pool->free;
	if (number == 0)
		return NULL;
	struct tcp_chunk *chunk = chunk_at(pool, number);
	pool->free = chunk->next;
	pool->free_count--;
	fetch(pool);
	*chunk = (struct tcp_chunk){0};
	if (queue->last != 0)
		chunk_at(pool, queue->last)->next = number;
	else
		queue->first = number;
	queue->last = number;
	return chunk;
}

size_t chunks_push(struct tcp_chunks *pool, struct tcp_queue *queue, struct span bytes)
{
	size_t taken = 0;
	struct tcp_chunk *chunk = queue->last ? chunk_at(pool, queue->last) : NULL;
	while (taken < bytes.len) {
		if (!chunk || chunk->to == pool->bytes)
			chunk = append(pool, queue);
		if (!chunk)
			break;
		size_t len = pool->bytes - chunk->to;
		if (len > bytes.len - taken)
			len = bytes.len - taken;
		memcpy(memory_of(pool, queue->last) + chunk->to, bytes.at + taken, len);
		chunk->to += (uint32_t)len;
		taken += len;
	}
	queue->bytes += (uint32_t)taken;
	return taken;
}

void chunks_join(struct tcp_chunks *pool, struct tcp_queue *queue, struct tcp_queue *tail)
{
	if (queue->last == 0) {
		*queue = *tail;
	} else if (tail->first != 0) {
		chunk_at(pool, queue->last)->next = tail->first;
		queue->last = tail->last;
		queue->bytes += tail->bytes;
	}
	*tail = (struct tcp_queue){0};
}

unsigned chunks_at(const struct tcp_chunks *pool, struct tcp_queue *queue, uint32_t offset,
	uint32_t len, struct span *parts, unsigned max)
{
	assert(len > 0 && offset < queue->bytes && len <= queue->bytes - offset);
	if (queue->at == 0 || offset < queue->at_offset) {
		queue->at = queue->first;
		queue->at_offset = 0;
	}
	unsigned count = 0;
	for (uint32_t number = queue->at, start = queue->at_offset; len > 0 && count < max;) {
		const struct tcp_chunk *chunk = chunk_at(pool, number);
		const uint32_t bytes = chunk->to - chunk->from;
		if (offset - start < bytes) {
			if (count == 0) {
				queue->at = number;
				queue->at_offset = start;
			}
			const uint32_t skip = offset - start;
			const uint32_t part = bytes - skip < len ? bytes - skip : len;
			parts[count++] =
				(struct span){memory_of(pool, number) + chunk->from + skip, part};
			offset += part;
			len -= part;
		}
		start += bytes;
		number = chunk->next;
	}
	return count;
}

// Back to the pool.
static void release(struct tcp_chunks *pool, uint32_t number)
{
	struct tcp_chunk *chunk = chunk_at(pool, number);
	chunk->next = pool->free;
	pool->free = number;
	pool->free_count++;
}

void chunks_drop(struct tcp_chunks *pool, struct tcp_queue *queue, uint32_t bytes)
{
	assert(bytes <= queue->bytes);
	queue->bytes -= bytes;
	queue->at_offset -= bytes < queue->at_offset ? bytes : queue->at_offset;
	while (queue->first != 0) {
		struct tcp_chunk *chunk = chunk_at(pool, queue->first);
		if (bytes < chunk->to - chunk->from) {
			chunk->from += bytes;
			break;
		}
		bytes -= chunk->to - chunk->from;
		const uint32_t next = chunk->next;
		if (queue->at == queue->first)
			queue->at = queue->at_offset = 0;
		release(pool, queue->first);
		queue->first = next;
	}
	if (queue->first == 0)
		*queue = (struct tcp_queue){0};
}
