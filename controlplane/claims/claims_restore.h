// Taking over from the store what the controllers must know. For claims.c alone; control thread.
#pragma once

#include "controlplane/claims/claims.h"
#include "controlplane/claims/claims_rooms.h"

struct claims_restore {
	struct claims_rooms *rooms;
	struct store *store;
	struct ended *ended, *left;
	struct claims_counters *counters;
	uint64_t now_ms;
};

// Sessions, claimed ids and tickets given back, of rooms that have not been restored yet. Returns 0
// or -errno.
int claims_restore_sessions(struct claims_restore *r);

// Tell workers that the ticket of `visitor` was given back. Returns false if the set is full.
bool claims_restore_left(struct ended *left, uint64_t visitor, uint64_t now_ms);

// Sessions that ended early, after the sessions and while no worker runs. Returns 0 or -errno.
int claims_restore_ended(struct claims_restore *r);
