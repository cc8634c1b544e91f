// The pool of buffers.h: one anonymous mapping, and a stack of the free ones' numbers beside it.

#include "dataplane/buffers.h"

#include <assert.h>
#include <errno.h>
#include <stdlib.h>
#include <sys/mman.h>

struct buffers {
	char *memory;
	uint32_t count, bytes;
	uint32_t free_count;
	uint32_t free[]; // a stack
};

int buffers_create(uint32_t count, uint32_t bytes, struct buffers **buffers)
{
	assert(count > 0);
	assert(bytes > 0);
	struct buffers *b = malloc(sizeof(*b) + count * sizeof(b->free[0])); // COLD: at start
	if (!b)
		return -ENOMEM;
	b->count = b->free_count = count;
	b->bytes = bytes;
	b->memory = mmap(NULL, (size_t)count * bytes, PROT_READ | PROT_WRITE,
		MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
	if (b->memory == MAP_FAILED) {
		free(b);
		return -errno;
	}
	for (uint32_t i = 0; i < count; i++)
		b->free[i] = count - 1 - i;
	*buffers = b;
	return 0;
}

void buffers_destroy(struct buffers *buffers)
{
	if (!buffers)
		return;
	munmap(buffers->memory, (size_t)buffers->count * buffers->bytes);
	free(buffers);
}

char *buffers_take(struct buffers *buffers)
{
	if (buffers->free_count == 0)
		return NULL;
	return buffers->memory + (size_t)buffers->free[--buffers->free_count] * buffers->bytes;
}

void buffers_give(struct buffers *buffers, char *buffer)
{
	size_t offset = (size_t)(buffer - buffers->memory);
	assert(offset % buffers->bytes == 0);
	assert(offset / buffers->bytes < buffers->count);
	assert(buffers->free_count < buffers->count);
	buffers->free[buffers->free_count++] = (uint32_t)(offset / buffers->bytes);
}

uint32_t buffers_taken(const struct buffers *buffers)
{
	return buffers->count - buffers->free_count;
}
