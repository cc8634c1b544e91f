// Memory for secrets: pages of their own, locked, kept out of core dumps, wiped at the end.
#pragma once

#include <stddef.h>

// `bytes` of zeroed memory, or NULL (errno is set). The caller's: locked_give(). Locking is best
// effort: an old kernel, or a small limit on locked memory, is no reason not to run.
void *locked_take(size_t bytes);

// Wipe and give back; accepts NULL.
void locked_give(void *memory, size_t bytes);
