// One reading of a file: what it has so far, and where in the file each value stood.
//
// Marks let a rule that runs long after parsing name line, column and value of what it dislikes.
// They and the tree die with the reading; the configuration keeps only values.
#pragma once

#include "config/arena.h"
#include "config/config.h"
#include "config/tree.h"

#define READING_WHOLE UINT32_MAX // not one element of a list, but the key's whole value

// Where a value of `base` stands: the struct itself (`key` NULL), a key of it, or an element of
// one.
struct reading_mark {
	const void *base;
	const char *key;
	uint32_t index;
	const struct tree_node *node;
	const char *path; // of the struct: "sites[0].rooms[1]."
};

struct reading {
	const char *file;
	const struct config_machine *machine;
	struct config_report *report;
	struct config *config;
	struct arena *keep; // lives as long as the configuration
	struct arena *scratch; // lives as long as the reading
	struct reading_mark *marks;
	uint32_t mark_count;
};

// Remember where the value of a key was read, for errors found later.
//   base, key, index  the struct, the key in it, and which element of a list
//   path              for messages
void reading_mark(struct reading *r, const void *base, const char *key, uint32_t index,
	const struct tree_node *node, const char *path);

// The line on which a value stands.
uint32_t reading_line(const struct reading *r, const void *base, const char *key, uint32_t index);

// `text` in quotes, cut where it gets long, never within a character. Returns `quoted`.
#define READING_QUOTE_BYTES 80
const char *reading_quote(const char *text, char quoted[READING_QUOTE_BYTES]);

// Report an error about `key` of the struct `base`: place, path, value if it was given and is no
// URL with a password, and the formatted rest of the sentence.
//   index  of an element, or READING_WHOLE
__attribute__((format(printf, 5, 6))) void reading_fail(struct reading *r, const void *base,
	const char *key, uint32_t index, const char *format, ...);

// Likewise a warning.
__attribute__((format(printf, 5, 6))) void reading_warn(struct reading *r, const void *base,
	const char *key, uint32_t index, const char *format, ...);
