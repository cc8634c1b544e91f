// One mapping for the whole test; its last page is taken away.

#include "tests/unit/http/guard.h"

#include <assert.h>
#include <sys/mman.h>

#define PAGE_BYTES 4096u

struct span guard_copy(struct span s)
{
	static char *end;
	if (!end) {
		char *map = mmap(NULL, GUARD_BYTES_MAX + PAGE_BYTES, PROT_READ | PROT_WRITE,
			MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
		assert(map != MAP_FAILED);
		end = map + GUARD_BYTES_MAX;
		assert(mprotect(end, PAGE_BYTES, PROT_NONE) == 0);
	}
	assert(s.len <= GUARD_BYTES_MAX);
	return (struct span){memmove(end - s.len, s.at, s.len), s.len};
}
