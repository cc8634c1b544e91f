// Requests passed on to an origin. The worker's thread only.
#pragma once

#include "dataplane/inside.h"

// Pass a request on, or answer why that cannot be.
void forward(struct worker *w, struct item *item, const struct decision *decision);
extern const struct exchange_calls forward_calls;
