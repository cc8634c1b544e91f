// A mapping each: what shares no page with anything else is locked and unlocked alone.

#include "controlplane/store/locked.h"

#include <string.h>
#include <sys/mman.h>

void *locked_take(size_t bytes)
{
	void *memory =
		mmap(NULL, bytes, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
	if (memory == MAP_FAILED)
		return NULL;
	madvise(memory, bytes, MADV_DONTDUMP);
	mlock(memory, bytes);
	return memory;
}

void locked_give(void *memory, size_t bytes)
{
	if (!memory)
		return;
	explicit_bzero(memory, bytes);
	munmap(memory, bytes);
}
