// An arena: memory that is taken piece by piece and given back all at once.
//
// One mapping, reserved whole and touched as used. Its size is an upper bound of what reading the
// largest allowed file can need, so that taking cannot fail.
#pragma once

#include <stddef.h>

struct arena {
	char *at; // NULL when there is none
	size_t used;
};

// Returns 0 or -ENOMEM.
int arena_init(struct arena *arena);
void arena_fini(struct arena *arena);

// `bytes` of zeroed memory, aligned for anything; never NULL. It lives as long as the arena.
void *arena_take(struct arena *arena, size_t bytes);

// A copy of `len` bytes and a NUL.
char *arena_copy(struct arena *arena, const char *text, size_t len);
