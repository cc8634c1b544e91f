// Places that are nobody's any more, and are given back when the store has what they were given up
// for. For claims.c alone; control thread.
#pragma once

#include "controlplane/claims/claims.h"
#include "controlplane/claims/claims_rooms.h"

#define CLAIMS_GIVEN_UP_MAX (2 * CLAIMS_TURN_MAX) // a claim gives up one, its answer another

struct claims_given_up {
	uint32_t count;
	struct {
		uint32_t line_id;
		uint64_t key, visitor;
	} places[CLAIMS_GIVEN_UP_MAX];
};

// One more.
//   key  as of controller_leave(); 0: there is none
void claims_given_up_add(
	struct claims_given_up *g, uint32_t line_id, uint64_t key, uint64_t visitor);

// Give all of them back; that is saved with the next turn, in which their rooms are touched.
void claims_given_up_leave(struct claims_given_up *g, struct claims_rooms *rooms,
	struct ended *left, struct claims_counters *counters, uint64_t now_ms);
