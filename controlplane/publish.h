// The snapshot: built from the configuration and what commands changed, published to workers, freed
// when no worker can hold it any more.
//
//   configuration ─┐
//   commands ──────┼─▶ publish_build() ─▶ publish_swap() ─▶ workers
//   secrets ───────┤                          └─ the one before: retired until every worker passed
//   a quiescent state addresses ─────┘
#pragma once

#include <stdbool.h>
#include <stdint.h>

#include "config/config.h"
#include "dataplane/snapshot.h"

struct certificates;
struct folders;
struct gather;
struct place_line;

// What commands said about a room, or the configuration if they said nothing.
struct publish_room {
	uint8_t state; // enum gate_room_state
	uint8_t mode; // enum gate_mode
	const char *message; // UTF-8; NULL or empty: none
	const struct config_room *config; // in force
	bool has_salt; // the next draw
	uint32_t opens_s, gathers_s; // unix s, while the doors are closed; else 0
	struct place_line *line;
	struct gather *gather; // NULL: nobody gathers
};

// What a snapshot is made of. All is copied but the pages, the lines and the origin table.
struct publish_input {
	const struct config *config;
	// The room of that line id as it stands now.
	struct publish_room (*room)(void *context, const struct config_room *room);
	struct place_line *(*line)(void *context, uint32_t line_id); // of a lane
	struct gather *(*gather)(void *context, uint32_t line_id); // likewise; NULL: nobody gathers
	void *context;
	const struct token_secrets *secrets;
	const struct ticket_keys *ticket_keys;
	const struct certificates *certificates; // each held by the snapshot too
	struct folders *folders; // pages; held by the snapshot too
	const struct origin_table
		*origins; // owned by the snapshot from now on, freed with free_origins
	void (*free_origins)(const struct origin_table *origins);
};

// Build one. Returns NULL when memory is short; the origin table is then still the caller's.
struct snapshot *publish_build(const struct publish_input *input);

// Give it to the workers. The one before is freed by a later publish_collect().
void publish_swap(struct snapshot_words *words, struct snapshot *snapshot);

// Free what no worker holds any more. Returns how many snapshots still wait.
unsigned publish_collect(struct snapshot_words *words);

// Free everything, the current one too. Workers have ended.
void publish_end(struct snapshot_words *words);
