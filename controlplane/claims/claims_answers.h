// The answers of a turn: kept until the store has what they say, then handed out by worker. For
// claims.c alone; control thread.
#pragma once

#include "controlplane/claims/claims.h"
#include "controlplane/claims/claims_rooms.h"

#define CLAIMS_ANSWERS_WORKERS 256u // claim.worker is a byte

struct claims_answers {
	uint32_t count;
	uint8_t workers[CLAIMS_ANSWERS_MAX];
	struct claim_answer answers[CLAIMS_ANSWERS_MAX]; // in the order of claims
	struct claim_answer by_worker[CLAIMS_ANSWERS_MAX];
};

// A new answer to `claim`, with all that is copied from it. There is room.
struct claim_answer *claims_answers_add(
	struct claims_answers *a, const struct claim *claim, enum claim_verdict verdict);

// Answers to claims that were put off; what does not fit comes in the next turn. Of rooms in one
// pool it may be the turn of one that was asked already.
void claims_answers_later(struct claims_answers *a, struct claims_rooms *rooms, uint64_t now_ms);

// How many of them admit.
uint32_t claims_answers_granted(const struct claims_answers *a);

typedef void claims_answers_fn(void *ctx, const struct claim_answer *answer);

// Hand them out, one burst a worker, and begin anew.
//   undelivered  called for each that its worker did not take
void claims_answers_deliver(struct claims_answers *a, const struct claims_seams *seams,
	claims_answers_fn *undelivered, void *ctx);
