// Report: a result for people, and for programs.
#pragma once

#include <stdio.h>

#include "controlplane/simulate/result.h"

// A table of at most RESULT_TABLE_ROWS_MAX rows for all rooms together, what each room's visitors
// live through, and the appliances. Returns 0 or -ENOMEM.
int report_table(const struct result *r, const struct play *p, FILE *out);

// All of it as JSON; docs/manual/planning.md says what each member is. Waits that nobody had are
// null. Returns 0 or -ENOMEM.
int report_json(const struct result *r, const struct play *p, FILE *out);
