// `sluice page preview ROOM STATE`: a page as visitors would see it, without an appliance.
#pragma once

#include <stdio.h>

#include "config/config.h"

// Write the page of a room in a state, with values of an example.
//   state     a word of PAGE_KINDS: waiting, error, …
//   language  NULL: the first of the room's
// Returns 0, or -EINVAL with what is wrong, and what is known, said on stderr.
int preview(const struct config *config, const char *room, const char *state, const char *language,
	FILE *out);
