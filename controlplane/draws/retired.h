// What workers may still hold: freed when they have all passed a quiescent state without it.
#pragma once

#include <stdbool.h>
#include <stdint.h>

enum retired_kind {
	RETIRED_MEMORY, // free()
	RETIRED_MAPPING, // munmap(), of a gather_ids
	RETIRED_GATHERING, // a struct gathering with its hashes, once nobody reads its list
};

struct retired_entry {
	void *what;
	uint64_t bytes; // of a mapping
	uint64_t token;
	struct retired_entry *next;
	uint8_t kind;
};

struct retired {
	struct retired_entry *first;
};

// Have it freed when the barrier `token` has passed. When memory for the entry is short it is never
// freed. Takes it.
void retired_add(
	struct retired *r, enum retired_kind kind, void *what, uint64_t bytes, uint64_t token);

// Free what can be freed; all of it without `passed`: workers have ended.
void retired_turn(struct retired *r, bool (*passed)(void *ctx, uint64_t token), void *ctx);
