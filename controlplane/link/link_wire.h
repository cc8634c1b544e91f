// Commands as Redis reads them: arrays of bulk strings (RESP2).
//
// Pure. A command is written into a buffer that grows as needed and is kept for the next.
#pragma once

#include <stddef.h>
#include <stdint.h>

struct link_wire {
	char *at; // NULL: nothing was written yet
	size_t bytes, bytes_max;
};

// Frees the buffer.
void link_wire_fini(struct link_wire *wire);

// Write EVALSHA of the script `name` with `key_count` of `argc` arguments as its keys, in place of
// what was there.
//   bytes_max  of all of it
// Returns 0; -E2BIG or -ENOMEM, and then there is nothing.
int link_wire_set_batch(struct link_wire *wire, const char *name, uint32_t key_count, uint32_t argc,
	const char *const *argv, const size_t *bytes, size_t bytes_max);
