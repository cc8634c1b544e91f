// What the tests of the configuration share: a machine that never changes, and reading a text that
// ends at an unmapped page.
#pragma once

#include "config/config.h"

// Cores 0 to 3, 20,000 descriptors, 1 GiB, and one user, "sluice".
struct config_machine fixture_machine(void);

// Read `text` under the name "t.yaml". Returns config_read()'s result.
int fixture_read(const char *text, const struct config_machine *machine, struct config **config,
	struct config_report *report);

// All errors of `text`, one a line, or "" if it is good; the caller frees it.
char *fixture_errors(const char *text, const struct config_machine *machine);

// The same for a good text, which must be good.
struct config *fixture_config(const char *text);
