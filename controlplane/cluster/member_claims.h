// Claims: what comes from workers, answered at once or kept for a batch. For member*.c alone.
#pragma once

#include "controlplane/cluster/member_inside.h"

// Answer a claim that was not answered yet. There is room.
struct claim_answer *member_claims_answer(
	struct member *m, const struct claim *claim, enum claim_verdict verdict);

// Hand out what has been answered.
void member_claims_deliver(struct member *m);

// The next claim that waits, out of the ring; late ones are dropped. Returns false if there is
// none.
bool member_claims_next(struct member *m, struct claim *claim);

// Keep one for a batch. Returns false if there is no room.
bool member_claims_keep(struct member *m, const struct claim *claim);

// The ledger said `next` to a called visitor whose turn is near: ask again, a little later. Returns
// false if the visitor is to be answered now.
bool member_claims_later(struct member *m, const struct claim *claim);

// The next of these that is due, taken out. Returns false if there is none.
bool member_claims_due(struct member *m, struct claim *claim);

// The store went away: whoever waits is answered by what holds then.
void member_claims_away(struct member *m);

// The visitor of a claim was not served: floor waits for the visitor.
void member_claims_hold(
	struct member *m, uint32_t line_id, uint64_t key, uint32_t poll_after, uint64_t now_ms);
