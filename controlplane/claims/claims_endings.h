// Sessions that ended early and keep their slots until every worker refuses their passes: a ring,
// oldest first. For claims.c alone; control thread.
#pragma once

#include "controlplane/claims/claims.h"

struct claims_endings_entry {
	uint64_t session;
	uint64_t token; // of the barrier, once sealed
	uint32_t line_id;
};

struct claims_endings {
	uint64_t first, sealed, end; // numbers run on; those before `sealed` have their token
	uint32_t max;
	struct claims_endings_entry *entries;
};

// Returns false when memory is short.
bool claims_endings_init(struct claims_endings *e, uint32_t max);
void claims_endings_fini(struct claims_endings *e);

// Whether it takes no more.
bool claims_endings_is_full(const struct claims_endings *e);

// Add one; not when full.
void claims_endings_add(struct claims_endings *e, uint32_t line_id, uint64_t session);

// Begin one barrier for all that were added since the last one.
void claims_endings_seal(struct claims_endings *e, const struct claims_seams *seams);

// Take the oldest, if all workers have passed its barrier. Returns false if there is none.
bool claims_endings_take(struct claims_endings *e, const struct claims_seams *seams,
	struct claims_endings_entry *entry);
