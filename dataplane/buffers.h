// A pool of equal buffers for what must outlive a turn: part of a head, a parked request, pipelined
// bytes.
//
// Mapped once, touched only when used, last given first taken, so that memory in use follows the
// load. Single-threaded.
#pragma once

#include <stddef.h>
#include <stdint.h>

struct buffers;

// `count` buffers of `bytes` each. Returns 0 or -errno. Owned by the caller: buffers_destroy(),
// which accepts NULL.
int buffers_create(uint32_t count, uint32_t bytes, struct buffers **buffers);
void buffers_destroy(struct buffers *buffers);

// Take one; NULL when none is left. Its content is whatever was there.
char *buffers_take(struct buffers *buffers);

// Give one back.
void buffers_give(struct buffers *buffers, char *buffer);

// How many are out.
uint32_t buffers_taken(const struct buffers *buffers);
