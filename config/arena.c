// An arena in one mapping.
//
// Why 64 MiB is enough: a file has at most 1 MiB and TREE_NODES_MAX (65,536) values. The tree takes
// 64 bytes a node and the text once: 5 MiB. Each node becomes at most one struct of config.h (the
// largest, a room, has 200 bytes), one mark of 40 bytes, one path of under 100 bytes and one copy
// of its text, joined with a folder of at most 4 KiB only for the three keys that are files: below
// 32 MiB. Running out is therefore a bug of ours, and asserted.

#include "config/arena.h"

#include <assert.h>
#include <errno.h>
#include <string.h>
#include <sys/mman.h>

#define ARENA_BYTES (64u << 20)
#define ARENA_ALIGN 16u

int arena_init(struct arena *arena)
{
	void *at = mmap(NULL, ARENA_BYTES, PROT_READ | PROT_WRITE,
		MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
	if (at == MAP_FAILED)
		return -ENOMEM;
	*arena = (struct arena){.at = at};
	return 0;
}

void arena_fini(struct arena *arena)
{
	if (arena->at)
		munmap(arena->at, ARENA_BYTES);
	*arena = (struct arena){0};
}

void *arena_take(struct arena *arena, size_t bytes)
{
	size_t start = (arena->used + ARENA_ALIGN - 1) & ~(size_t)(ARENA_ALIGN - 1);
	assert(bytes <= ARENA_BYTES - start);
	arena->used = start + bytes;
	return arena->at + start;
}

char *arena_copy(struct arena *arena, const char *text, size_t len)
{
	char *copy = arena_take(arena, len + 1);
	memcpy(copy, text, len);
	return copy;
}
