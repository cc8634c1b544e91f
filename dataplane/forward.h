// Requests passed on to an origin. The worker's thread only.
#pragma once

#include "dataplane/inside.h"

// Pass a request on, or answer why that cannot be.
void forward(struct worker *w, struct item *item, const struct decision *decision);
// Sessions have ended early, or secrets were revoked: their tunnels end now, their answers in
// flight within the plan's late_us. Before the turn is over, since the slot is given on after it.
void forward_cut_ended(struct worker *w);

extern const struct exchange_calls forward_calls;
