// Plot: a result as SVG, for a browser or a document; light or dark as the reader's.
#pragma once

#include <stdio.h>

#include "controlplane/simulate/result.h"

// Write four panels over the time of the plan: people, waits, admissions, load. Returns 0 or
// -ENOMEM.
int plot_write(const struct result *r, const struct play *p, FILE *out);
