// A pool of equal buffers for what must outlive a turn: part of a head, a parked request, pipelined
// bytes.
//
// Mapped once, touched only when used, last given first taken, so that memory in use follows the
// load. Named by numbers, which take half of what a pointer does. Single-threaded.
#pragma once

#include <stddef.h>
#include <stdint.h>

struct buffers;

// `count` buffers of at least `bytes` each. Returns 0 or -errno. Owned by the caller:
// buffers_destroy(), which accepts NULL.
int buffers_create(uint32_t count, uint32_t bytes, struct buffers **buffers);
void buffers_destroy(struct buffers *buffers);

// Take one: its number, from 1; 0 when none is left. Its content is whatever was there.
uint32_t buffers_take(struct buffers *buffers);

// Give one back.
void buffers_give(struct buffers *buffers, uint32_t number);

// Where the bytes of one that is out lie, aligned to 8.
char *buffers_at(const struct buffers *buffers, uint32_t number);

// How many are out.
uint32_t buffers_taken(const struct buffers *buffers);
