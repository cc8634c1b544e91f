// What tests of ranks share: ranks in memory, tickets told to them, keys near one slot.
#pragma once

#include <setjmp.h>
#include <stdarg.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "dataplane/gate/place.h"
#include "dataplane/gate/ranks.h"

#define SLOT_0 170000000000ull
#define OWN 1

static struct ranks *make(uint64_t entries_max)
{
	const size_t bytes = (ranks_bytes(entries_max) + 63) / 64 * 64;
	void *memory = aligned_alloc(64, bytes);
	assert_non_null(memory);
	memset(memory, 0, bytes);
	return ranks_init(memory, entries_max);
}

static struct ranks *make_known(uint64_t entries_max)
{
	struct ranks *r = make(entries_max);
	assert_true(ranks_begin(r, OWN, 0));
	return r;
}

static bool tell(struct ranks *r, uint8_t member, uint64_t slot, uint64_t tickets)
{
	const uint64_t held = (SLOT_0 + slot) << 24 | tickets;
	return ranks_told(r, member, &held, 1);
}

static uint64_t key_of(uint64_t slot, uint64_t seq, uint64_t appliance)
{
	return place_key(SLOT_0 + slot, seq, appliance);
}

static inline uint64_t rank_of(const struct ranks *r, uint64_t key)
{
	uint64_t rank;
	ranks_rank(r, key, &rank);
	return rank;
}
