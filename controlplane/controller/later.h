// Later: claims that were put off, because the slot or the rate they wait for is nearly there.
//
// So a rate of one a second is met by those who poll once a second, and a slot that becomes free
// goes at once to who stands at the door.
#pragma once

#include <stdbool.h>
#include <stdint.h>

#include "controlplane/controller/due.h"
#include "controlplane/controller/keyset.h"
#include "dataplane/gate/claim.h"

struct later_claim {
	struct claim claim;
	uint64_t session; // the fresh id that came with it
};

struct later {
	struct keyset keys;
	struct due ends; // cluster ms
	struct later_claim *claims; // of an id in `keys`
};

// Returns false when memory is short; later_fini() then all the same.
bool later_init(struct later *l, uint32_t count_max, uint64_t seed);
void later_fini(struct later *l);

// Put off until `until_ms` at the latest. Returns false if it is full, or this visitor has put off
// a claim already.
bool later_put(struct later *l, const struct claim *claim, uint64_t session, uint64_t until_ms);

// The claim of the smallest key, or NULL. It stays.
const struct later_claim *later_first(const struct later *l);

// A claim whose time is over, or NULL. It stays.
const struct later_claim *later_due(const struct later *l, uint64_t now_ms);

// Take out a claim that is in.
void later_remove(struct later *l, const struct later_claim *claim);

// Claims put off.
uint32_t later_count(const struct later *l);
