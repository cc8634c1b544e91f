// Values of doors and draws: moments, salts, windows. Each function has the shape that value.c's
// table wants: NULL, or what is wrong with `text`.
#pragma once

#include "config/arena.h"
#include "config/key.h"

// A date and a time with its zone (RFC 3339 5.6, whole seconds), as unix s. A leap second is the
// second after it.
const char *when_read_time(const struct key *key, const char *text, struct arena *arena, void *to);

// Bytes in hex, at most key->max of them: kept as text.
const char *when_read_hex(const struct key *key, const char *text, struct arena *arena, void *to);

// struct config_window: a duration of whole seconds, or a number of people.
const char *when_read_window(
	const struct key *key, const char *text, struct arena *arena, void *to);
