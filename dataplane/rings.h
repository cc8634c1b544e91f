// The two rings between a worker and control: claims up, answers down.
//
// Each has one producer and one consumer and never waits. A full claim ring refuses claims (the
// called are told `next`, newcomers get a ticket) and makes the worker keep its reports; a full
// answer ring makes control keep the answer and try again next turn. Elements are copied whole, 64
// bytes each.
#pragma once

#include <stdbool.h>
#include <stdint.h>

#include "dataplane/gate/claim.h"

struct rings;

// Make the pair for worker number `worker`, `len` elements each (rounded up to a power of two, less
// one). Returns 0 or -errno. EAL is initialised. Owned by the caller: rings_destroy(), which
// accepts NULL.
int rings_create(unsigned worker, uint32_t len, struct rings **rings);
void rings_destroy(struct rings *rings);

// Worker: hand over one claim. Returns false when the ring is full.
bool rings_push_claim(struct rings *rings, const struct claim *claim);

// Control: take at most `max` claims. Returns how many.
unsigned rings_pop_claims(struct rings *rings, struct claim *claims, unsigned max);

// Control: hand over one answer. Returns false when the ring is full.
bool rings_push_answer(struct rings *rings, const struct claim_answer *answer);

// Worker: take at most `max` answers. Returns how many.
unsigned rings_pop_answers(struct rings *rings, struct claim_answer *answers, unsigned max);
