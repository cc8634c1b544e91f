// Matching targets that lie flush against unmapped pages, and results as words.
#pragma once

#include "tests/unit/gate/guard.h"
#include "tests/unit/gate/town.h"

static char *matching_guard, *matching_scratch;

static inline struct match match_flush(const struct gate_site *site, const char *target, size_t len)
{
	if (!matching_guard) {
		matching_guard = guard_make();
		matching_scratch = guard_make();
	}
	char *at = guard_put(matching_guard, target, len);
	return match_path(
		site, (struct span){at, len}, matching_scratch - MATCH_SCRATCH_BYTES(len));
}

// Results, as the tables write them: a room's name, or one of these.
#define BAD "400"
#define NONE "none"
#define SLUICE ".sluice"

static inline const char *result_text(const struct match *match)
{
	switch (match->kind) {
	case MATCH_BAD:
		return BAD;
	case MATCH_NONE:
		return NONE;
	case MATCH_SLUICE:
		return SLUICE;
	case MATCH_ROOM:
		return match->room->name.at;
	}
	return "?";
}
