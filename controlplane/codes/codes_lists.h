// The lists of a configuration: one for each file that its lanes name. Control thread, or before it
// starts.
#pragma once

#include "config/config.h"
#include "controlplane/codes/codes_list.h"

struct codes_lists;

// Read the lists of a configuration.
//   before  those in force: files that have not changed are not read again; NULL at start
// Returns 0, or -errno with the reason logged. Owned by the caller: codes_lists_free(), which
// accepts NULL.
int codes_lists_load(
	const struct config *config, const struct codes_lists *before, struct codes_lists **lists);
void codes_lists_free(struct codes_lists *lists);

// The list of a lane; NULL: it has none.
const struct codes_list *codes_lists_of(
	const struct codes_lists *lists, const struct config_lane *lane);

// What is wrong with a file of codes: for struct config_machine. `warn` is told what is worth a
// word.
uint32_t codes_lists_check(const char *path, config_say *say, config_say *warn, void *context);
