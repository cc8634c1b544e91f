// Draws of lines that several appliances share.
//
// The conductor alone says what becomes of a gathering; each step is a record that is told to all,
// and everybody goes by what is told, the conductor too. So another one goes on wherever it fell.
//
//   prepared  its seed is fixed, and the hash of that is shown
//   joined    newcomers join it, on every appliance; its first slot is known
//   closed    nobody joins any more; late-comers are minted behind its last slot. Everybody tells
//             the ledger the ids that joined there
//   drawn     so many ids of the ledger are its list, which has this hash
//
//   conductor ─▶ put ─▶ record ─▶ draws_told() ─▶ workers join ─▶ file ─▶ draws_cluster_offer()
//                                                                             │ ids
//      ranks, workers ◀─ list ◀─ job ◀─ draws_cluster_gathered() ◀─ ledger ◀──┘
//
// Besides these draws.h holds, but for the store: what is said is kept by the cluster.
#pragma once

#include <stdbool.h>
#include <stdint.h>

#include "controlplane/cluster/ledger.h"
#include "controlplane/store/store.h"
#include "dataplane/gate/draw.h"

#define DRAWS_AHEAD_MS \
	3000u // the first slot of a gathering lies so far ahead: by then nobody who
	      // is heard of mints there, and nothing there is final
#define DRAWS_PUT_MS 5000u // a step that was put and is not told is put again
#define DRAWS_PATIENCE_MS 30000u // ids that the ledger has lost are waited for
#define DRAWS_SILENCE_MS 10000u // who is alive and does not tell for so long has nobody to tell of
#define DRAWS_READS_MAX 8u // pages asked for in a batch

enum draws_step {
	DRAWS_PREPARED = 1,
	DRAWS_JOINED,
	DRAWS_CLOSED,
	DRAWS_DRAWN,
};

// A gathering as all know it. What is not said yet is 0.
struct draws_said {
	uint32_t line_id;
	uint32_t version; // of what is said: counts up
	uint8_t step; // enum draws_step
	uint8_t salt_bytes;
	uint64_t number, epoch, began_ms, first_slot, end_slot;
	uint64_t next; // the number of the one that begins where this ends; 0: none does
	uint64_t before; // people drawn in the line before it
	uint64_t total; // ids of the ledger that are its list
	uint64_t count; // people
	uint8_t seed[DRAW_SEED_BYTES];
	uint8_t salt[DRAW_SALT_BYTES_MAX];
	uint8_t list_sha256[STORE_HASH_BYTES];
};

// What it touches outside itself, besides draws_seams.
struct draws_cluster_seams {
	void *ctx;
	uint64_t source; // of this appliance: a hash of its name
	uint32_t sync_ms;
	// The conductor's: say a step to all, or forget a gathering. Returns false if nothing is
	// taken now.
	bool (*put)(void *ctx, const struct draws_said *said);
	bool (*forget)(void *ctx, uint32_t line_id, uint64_t number);
	// Who left before the draw, as member_left_gathered().
	bool (*left)(void *ctx, uint32_t line_id, uint64_t *number, uint64_t *visitor);
};

// How the cluster stands.
struct draws_cluster_view {
	bool is_known; // all records have been told since the start
	bool is_in_office; // the conductor, and all news are known
	uint64_t live; // bit N: member N is heard of
	uint64_t final; // slots below it are
	uint64_t epoch; // of the ledger
};

struct draws;

// Lines are shared from now on. Before any line is taken.
void draws_share(struct draws *d, const struct draws_cluster_seams *seams);

// Before draws_turn(), and when something has been told.
void draws_cluster_see(struct draws *d, const struct draws_cluster_view *view);

// The step of a gathering that is in force; or that it is forgotten.
void draws_told(struct draws *d, const struct draws_said *said, uint64_t now_ms);
void draws_untold(struct draws *d, uint32_t line_id, uint64_t number);

// The gatherings that are known, one a call; *next begins at 0. Returns false after the last.
bool draws_next(const struct draws *d, uint32_t *next, uint32_t *line_id, uint64_t *number);

// Remove files of gatherings that nobody has told of, when all have been told.
void draws_sweep(struct draws *d);

// People drawn in the line of whom no record tells any more, as ranks_begin() wants them.
uint64_t draws_before(const struct draws *d, uint32_t line_id);

// Entries for a batch; the answer to each; ids that were read. Returns how many, at most `max`.
uint32_t draws_cluster_offer(
	struct draws *d, struct ledger_entry *entries, uint32_t max, uint64_t now_ms);
void draws_cluster_offered(
	struct draws *d, const struct ledger_entry *entry, const struct ledger_answer *answer);
void draws_cluster_gathered(struct draws *d, const struct ledger_news *item);

// Whether the ledger, which has lost writes, has been told all again.
bool draws_is_restored(struct draws *d);
