// Codes, as they are carried out. For act.c alone; the worker's thread only.
#pragma once

#include "dataplane/inside.h"

// A code is about to be asked of control: count the attempt of its source, or refuse it.
void act_code_guard(struct worker *w, const struct item *item, struct decision *decision);

// Control has answered, or has not: an attempt that was not in vain does not count, and a code that
// was honoured without use goes back.
void act_code_answered(struct worker *w, const struct item *item, const struct decision *decision);
