// The mappings of fresh.h: anonymous ones, with nothing reserved for them.

#include "dataplane/fresh.h"

#include <assert.h>
#include <sys/mman.h>

void *fresh_map(size_t bytes)
{
	assert(bytes > 0);
	void *table = mmap(NULL, bytes, PROT_READ | PROT_WRITE,
		MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
	return table == MAP_FAILED ? NULL : table;
}

void fresh_unmap(void *table, size_t bytes)
{
	if (table)
		munmap(table, bytes);
}
