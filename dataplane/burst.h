// The requests of a turn, read, verified together, decided. The worker's thread only.
#pragma once

#include "dataplane/inside.h"

// Add what arrived on a connection in state HEAD: `data`, or what it has kept if `data.at` is NULL.
void burst_offer(struct worker *w, struct conn *conn, struct span data);
// Add the request that a connection has parked, with its answer (NULL: none came in time).
void burst_offer_answered(struct worker *w, struct conn *conn, const struct claim_answer *answer);
// Verify, decide and act on all that was offered.
void burst_run(struct worker *w);
