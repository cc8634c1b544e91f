// The file of a gathering: its visitors' ids, mapped, in the state directory. Control thread only.
#pragma once

#include <stdbool.h>
#include <stdint.h>

#include "dataplane/gate/gather.h"

#define DRAWS_FILE_AHEAD 65536u // ids allocated on disk beyond those taken: more than a turn's

struct draws_file {
	struct gather_ids *ids; // NULL: not open
	uint64_t bytes; // mapped
};

// Make the file of gathering `number` for up to `max` ids, mapped and with room for the first ones.
// Returns 0 or -errno.
int draws_file_make(struct draws_file *file, const char *folder, uint32_t line_id, uint64_t number,
	uint64_t max);

// Open one that is there. Returns 0 or -errno: -ENOENT if there is none, or only what a process
// left that was killed while it made one, which is removed then (no id is in it); -EUCLEAN if it is
// not that file.
int draws_file_open(struct draws_file *file, const char *folder, uint32_t line_id, uint64_t number);

// Allocate ahead of those taken. Every turn while it is joined. Returns 0 or -errno; then no more
// are taken than have room.
int draws_file_turn(struct draws_file *file, const char *folder);

// How many ids are taken, with those that were never written.
uint64_t draws_file_taken(const struct draws_file *file);

// How many people are in it: ids that were written. When nobody adds to it.
uint32_t draws_file_people(const struct draws_file *file);

// Let go of the mapping; nobody looks at it any more.
void draws_file_close(struct draws_file *file);

// Remove all such files of which `is_gone` says so.
void draws_file_sweep(const char *folder,
	bool (*is_gone)(void *ctx, uint32_t line_id, uint64_t number), void *ctx);

// Remove the file of a gathering of which nothing can be good any more.
void draws_file_remove(const char *folder, uint32_t line_id, uint64_t number);
