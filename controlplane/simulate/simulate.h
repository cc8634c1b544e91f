// `sluice simulate PLAN.yaml`: an event before it happens.
#pragma once

#include <stdbool.h>
#include <stdio.h>

// Read a plan, play it, and write what comes of it.
//   seed  as typed; NULL: the plan's
//   svg   the file that a plot goes to; NULL: none
// Returns 0, or -errno with all that is wrong said on stderr.
int simulate(const char *path, const char *seed, const char *svg, bool is_json, FILE *out);
