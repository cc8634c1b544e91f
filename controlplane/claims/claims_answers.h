// The answers of a turn: kept until the store has what they say, then handed out by worker. For
// claims.c alone; control thread.
#pragma once

#include "controlplane/claims/claims.h"

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

// How many of them admit.
uint32_t claims_answers_granted(const struct claims_answers *a);

typedef void claims_answers_fn(void *ctx, const struct claim_answer *answer);

// Hand them out, one burst a worker, and begin anew.
//   undelivered  called for each that its worker did not take
void claims_answers_deliver(struct claims_answers *a, const struct claims_seams *seams,
	claims_answers_fn *undelivered, void *ctx);
