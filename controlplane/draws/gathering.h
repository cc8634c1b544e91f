// One gathering as control knows it.
#pragma once

#include "controlplane/draws/draws_cluster.h"
#include "controlplane/draws/draws_file.h"
#include "controlplane/draws/draws_job.h"
#include "controlplane/store/store.h"

struct gathering {
	struct store_draw record; // seed from the beginning, the rest with the draw
	struct draws_file file; // mapped until it is drawn
	struct draws_job job;
	struct draw_list list; // once drawn
	struct gathering *next; // a later one

	// Of a line that several appliances share.
	struct draws_said said; // by the conductor, last
	struct gathering_ids {
		_Atomic uint64_t *at; // of all appliances, as the ledger has them
		uint64_t count, max;
		uint64_t total; // that the ledger has
		uint64_t whole; // bit N: member N has told all of its
		uint64_t read_ms, told_ms, grown_ms; // when it was read, told of, and grew last
		uint64_t told; // ids of our file that the ledger has
		uint64_t due; // that are to be told after a loss
		uint64_t sure; // of our file: those below that are 0 stay so
		bool is_whole; // the ledger knows that these are all
		bool is_new; // something was read since the job began last
	} ids;
	uint64_t barrier; // from which on nobody joins here
	uint64_t put_ms; // when the conductor put its next step; 0: it is told
	uint64_t told_ms; // when its step was told
	uint64_t epoch; // of the ledger that has its record
	uint64_t tried; // ids that the job was run with
	bool is_shut, is_settled; // nobody joins here any more: workers were told, and have passed
	bool is_ranked; // ranks have it
	bool is_of_before; // it was drawn before this process heard of it
	bool is_missing; // its file was looked for, and there is none
	bool is_unreadable; // its file could not be opened
	bool is_untold; // the store does not say it any more
	bool is_lost; // it has to be said again
	bool is_gone; // it is forgotten: it goes as soon as nobody joins it here
	bool is_drawn_said, is_over_said; // the ledger knows
};

// The key of its hashes.
void gathering_key(const struct gathering *g, struct mac_key *key);

// What GET draw says of it.
//   next  one whose seed is not shown yet, told besides; NULL: none
void gathering_proof(
	const struct gathering *g, const struct gathering *next, struct gather_proof *proof);
