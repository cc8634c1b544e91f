// Values: texts of the file as typed numbers and structs, and the words for what a key allows.
//
// One row a type, chosen by key->type. No rule here looks at more than one value; those are in
// check.c.
#pragma once

#include <stdbool.h>
#include <stddef.h>

#include "config/arena.h"
#include "config/key.h"

#define VALUE_PHRASE_BYTES 256

// Read `text` as one value of `key` (one element, if it is a list) into `to`, which has
// value_bytes() bytes and is left alone on failure; texts are copied to `arena`.
// Returns NULL, or what is wrong, as the end of a sentence that begins with the value.
const char *value_read(const struct key *key, const char *text, struct arena *arena, void *to);

// The size of one value in memory.
size_t value_bytes(const struct key *key);

// Whether two values of `key` are the same.
bool value_is_equal(const struct key *key, const void *a, const void *b);

// The name of the type, for tables: "duration".
const char *value_type_name(const struct key *key);

// What `key` allows, as a phrase: "a duration from 1s to 1h". Returns `phrase`, of
// VALUE_PHRASE_BYTES bytes.
const char *value_allowed(const struct key *key, char *phrase);

// `number` of a numeric key as one would write it: "10m", "64k". Returns `text`, of 32 bytes.
const char *value_number(const struct key *key, uint64_t number, char *text);
