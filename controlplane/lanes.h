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

// The same of CLAIM_CODE in a cluster, where uses are counted elsewhere: what would be answered if
// the code is good still, with a place that is drawn and nobody's yet.
// Returns how often the code may be used in `answer->lane_id`, to be asked for there; 0: the answer
// is final.
uint32_t lanes_offer(
	struct control *c, const struct claim *claim, uint64_t now_ms, struct claim_answer *answer);

// It was good: remember use and holder. `answer` is to be as for lanes_claim(), but for the code.
// Returns how many records there are.
uint32_t lanes_honoured(struct control *c, const struct claim *claim, struct claim_answer *answer,
	struct store_record *records);
