// Memory that ends at an unmapped page, so that reading or writing one byte too far crashes.
#pragma once

#include <assert.h>
#include <stddef.h>
#include <string.h>
#include <sys/mman.h>

#define GUARD_BYTES (1u << 18)

// The end of GUARD_BYTES of memory, mapped once for each call and never given back.
static inline char *guard_make(void)
{
	char *map = mmap(NULL, GUARD_BYTES + 4096, PROT_READ | PROT_WRITE,
		MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
	assert(map != MAP_FAILED);
	int ret = mprotect(map + GUARD_BYTES, 4096, PROT_NONE);
	assert(ret == 0);
	return map + GUARD_BYTES;
}

// Copy bytes so that they end at the guard. Returns where they begin.
static inline char *guard_put(char *guard, const char *bytes, size_t len)
{
	assert(len <= GUARD_BYTES);
	return memcpy(guard - len, bytes, len);
}
