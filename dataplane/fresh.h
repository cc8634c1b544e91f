// Tables of zeroes that take no memory before they are used: pages come when they are first
// touched, near the core that touches them.
//
// For what is sized for the most that may come, and filled from its beginning: then what is
// resident follows the most that ever came. malloc() does not promise that.
#pragma once

#include <stddef.h>

// `bytes` of zeroes, aligned to a page; NULL when there is no room for them. At start only. Owned
// by the caller: fresh_unmap() with as many bytes, which accepts NULL.
void *fresh_map(size_t bytes);
void fresh_unmap(void *table, size_t bytes);
