// One gathering as control knows it.
#pragma once

#include "controlplane/draws/draws_file.h"
#include "controlplane/draws/draws_job.h"
#include "controlplane/store/store.h"

struct gathering {
	struct store_draw record; // seed from the beginning, the rest with the draw
	struct draws_file file; // mapped until it is drawn
	struct draws_job job;
	struct draw_list list; // once drawn
	struct gathering *next; // a later one
};

// The key of its hashes.
void gathering_key(const struct gathering *g, struct mac_key *key);

// What GET draw says of it.
//   next  one whose seed is not shown yet, told besides; NULL: none
void gathering_proof(
	const struct gathering *g, const struct gathering *next, struct gather_proof *proof);
