// The mark: one block on disk that says whether the store knows every pass that was issued.
//
// It is made while all is well, and set and cleared in place through a mapping, so it needs no
// space on a disk that is full, and what was set survives the process however it ends. Set before
// the first pass that could not be saved leaves, cleared when all has been saved.
//
// Control thread only.
#pragma once

#include <stdbool.h>
#include <stdint.h>

struct mark;

// Whether there is a mark at `path`: a store was made beside it once.
bool mark_exists(const char *path);

// Open the mark at `path`, made (mode 0600, cleared, on disk) if absent. Returns 0 or -errno
// (-EUCLEAN: not a mark; it is left as it is). Owned by the caller: mark_close(), which accepts
// NULL and leaves it as it is set.
int mark_open(const char *path, struct mark **mark);
void mark_close(struct mark *mark);

// Passes are about that the store does not know; the last of them expires at `until` (unix s, never
// falls while set).
void mark_set(struct mark *mark, uint32_t until);

// The store knows every pass again.
void mark_clear(struct mark *mark);

// Whether it is set, and until when.
bool mark_is_set(const struct mark *mark, uint32_t *until);
