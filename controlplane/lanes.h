// Lanes: who gets into one by a code or a link, and what place that is. Control thread only.
#pragma once

#include "controlplane/control.h"
#include "dataplane/gate/claim.h"

// At most what one claim has to save.
#define LANES_RECORDS 2u

// Answer CLAIM_CODE or CLAIM_MOVE: a place in a lane, the same as before for the same holder, or
// why there is none. Take back, for CLAIM_CODE_GONE, the use and the move that a place came from.
//   answer   of the former two, with the verdict CLAIM_REFUSED; NULL: of the latter
//   records  LANES_RECORDS, to be saved
// Returns how many there are.
uint32_t lanes_claim(struct control *c, const struct claim *claim, uint64_t now_ms,
	struct claim_answer *answer, struct store_record *records);
