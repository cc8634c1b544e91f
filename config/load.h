// Reading by a table of keys: what config_load() and plan_load() share.
#pragma once

#include "config/key.h"
#include "config/reading.h"

// The text of a file, which the caller frees; NULL with `error` set (-errno) and, but for -ENOMEM,
// reported.
char *load_text(const char *path, size_t *len, int *error, struct config_report *report);

// Read a mapping into the zeroed struct `base`: what is given, else what the table has instead.
//   scope  of the mapping
//   path   of the struct, as in "sites[0].", for messages
void load_map(struct reading *r, const struct key_scope *scope, const struct tree_node *map,
	const char *path, void *base);

// A burst that was not given: one second of the rate, at least 1.
void load_burst(uint64_t *burst, const struct config_rate *rate);
