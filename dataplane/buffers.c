// The pool of buffers.h: one mapping, and a stack of the free ones' numbers beside it.

#include "dataplane/buffers.h"

#include "dataplane/fresh.h"

#include <assert.h>
#include <errno.h>
#include <stdlib.h>

struct buffers {
	char *memory;
	size_t bytes; // of one, a multiple of 8
	uint32_t count;
	uint32_t free_count;
	uint32_t free[]; // a stack
};

int buffers_create(uint32_t count, uint32_t bytes, struct buffers **buffers)
{
	assert(count > 0 && count < UINT32_MAX);
	assert(bytes > 0);
	struct buffers *b = malloc(sizeof(*b) + count * sizeof(b->free[0])); // COLD: at start
	if (!b)
		return -ENOMEM;
	b->count = b->free_count = count;
	b->bytes = ((size_t)bytes + 7) / 8 * 8;
	b->memory = fresh_map(count * b->bytes);
	if (!b->memory) {
		free(b);
		return -ENOMEM;
	}
	for (uint32_t i = 0; i < count; i++)
		b->free[i] = count - i;
	*buffers = b;
	return 0;
}

void buffers_destroy(struct buffers *buffers)
{
	if (!buffers)
		return;
	fresh_unmap(buffers->memory, buffers->count * buffers->bytes);
	free(buffers);
}

uint32_t buffers_take(struct buffers *buffers)
{
	return buffers->free_count > 0 ? buffers->free[--buffers->free_count] : 0;
}

void buffers_give(struct buffers *buffers, uint32_t number)
{
	assert(number > 0 && number <= buffers->count);
	assert(buffers->free_count < buffers->count);
	buffers->free[buffers->free_count++] = number;
}

char *buffers_at(const struct buffers *buffers, uint32_t number)
{
	assert(number > 0 && number <= buffers->count);
	return buffers->memory + (number - 1) * buffers->bytes;
}

uint32_t buffers_taken(const struct buffers *buffers)
{
	return buffers->count - buffers->free_count;
}
