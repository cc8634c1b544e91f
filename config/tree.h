// YAML text as a tree: the subset that a configuration needs, within bounds.
//
// Anchors, aliases, tags, several documents, tabs as indentation, keys that are not plain words,
// and texts with NUL are refused. All texts are NUL-terminated.
#pragma once

#include <stddef.h>
#include <stdint.h>

#include "config/arena.h"
#include "config/config.h"

#define TREE_DEPTH_MAX 16
#define TREE_NODES_MAX 65536

enum tree_kind {
	TREE_SCALAR,
	TREE_LIST,
	TREE_MAP,
};

struct tree_node {
	const char *key; // in a map; NULL elsewhere
	const char *text; // of a scalar
	struct tree_node *first, *next; // the first child; the next child of the same parent
	uint32_t count; // children
	uint32_t line, column; // of the value, from 1; columns count characters
	uint32_t key_line, key_column;
	uint8_t kind; // enum tree_kind
};

// Read `text` into a tree in `arena`.
//   file  names the text in errors
//   root  a map; an empty one for an empty file
// Returns 0, -EINVAL with one error in the report (what follows a fault of YAML itself cannot be
// understood), or -ENOMEM.
int tree_read(const char *file, const char *text, size_t len, struct arena *arena,
	struct config_report *report, struct tree_node **root);
