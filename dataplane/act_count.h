// What is counted of a decision. For act.c alone; the worker's thread only.
#pragma once

#include "dataplane/inside.h"

// Count what was done, or why nothing was; of a claim nothing yet.
void act_count(struct worker *w, const struct item *item, const struct decision *decision);
