// The lists of a configuration: one for each file that its lanes name. Control thread, or before it
// starts.
#pragma once

#include "config/config.h"
#include "controlplane/codes/codes_list.h"

struct codes_lists;

// Lists that are read while a configuration is checked, so that loading it reads none of them
// again.
//   before  those in force: files that have not changed are not read again; NULL: there are none
//   pause   called between slices; NULL: never. Both outlive it.
// Returns NULL when memory is short. codes_lists_end(), which accepts NULL.
struct codes_lists_reading *codes_lists_begin(
	const struct codes_lists *before, const struct codes_list_pause *pause);
void codes_lists_end(struct codes_lists_reading *reading);

// What is wrong with a file of codes: for struct config_machine. `warn` is told what is worth a
// word.
//   reading  a struct codes_lists_reading, which keeps the list; or NULL
//   bytes    of the list, and of what is remembered of its codes once they are used
uint32_t codes_lists_check(void *reading, const char *path, uint64_t *bytes, config_say *say,
	config_say *warn, void *context);

// The lists of a configuration, as they were read, or are now. Returns 0, or -errno with the reason
// logged. Owned by the caller: codes_lists_free(), which accepts NULL, and pauses likewise.
int codes_lists_load(const struct config *config, struct codes_lists_reading *reading,
	struct codes_lists **lists);
void codes_lists_free(struct codes_lists *lists, const struct codes_list_pause *pause);

// The list of a lane; NULL: it has none.
const struct codes_list *codes_lists_of(
	const struct codes_lists *lists, const struct config_lane *lane);
