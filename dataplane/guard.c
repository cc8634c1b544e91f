// Words of 32 bits of a source's hash, 16 of its minute, 16 of its count; minute and hash are never
// both 0 in use, since the minutes in use count from 1.

#include "dataplane/guard.h"

#include "dataplane/source.h"

#include <assert.h>
#include <stdatomic.h>
#include <string.h>

#define WAYS 8u
#define TRIES_MAX 64u // of a swap that others were faster with; then the attempt is refused

struct guard {
	uint64_t seed;
	uint8_t unused[56];
	struct {
		_Atomic uint64_t words[WAYS];
	} buckets[GUARD_BUCKETS];
};
static_assert(sizeof(struct guard) % 64 == 0, "buckets are cache lines");
static_assert((GUARD_BUCKETS & (GUARD_BUCKETS - 1)) == 0, "bits of the hash choose one");

size_t guard_bytes(void)
{
	return sizeof(struct guard);
}

struct guard *guard_init(void *memory, uint64_t seed)
{
	assert((uintptr_t)memory % 64 == 0);
	struct guard *guard = memory;
	memset(guard, 0, sizeof(*guard));
	guard->seed = seed;
	return guard;
}

// What a source's word has above its count in this minute.
static uint64_t tag_of(uint64_t hash, uint32_t now_s)
{
	const uint64_t minute = 1 + now_s / GUARD_MINUTE_S % 65535;
	return (hash & UINT32_MAX) << 32 | minute << 16;
}

static bool is_of_minute(uint64_t word, uint64_t tag)
{
	return (word >> 16 & 0xffff) == (tag >> 16 & 0xffff);
}

static uint32_t count_of(uint64_t word)
{
	return word & 0xffff;
}

// The word to count in, and what it says: the source's own, else a free one, else the one with the
// fewest.
static uint32_t choose(_Atomic uint64_t *words, uint64_t tag, uint64_t *word)
{
	uint32_t best = 0, best_rank = UINT32_MAX;
	for (uint32_t i = 0; i < WAYS; i++) {
		const uint64_t is = atomic_load_explicit(&words[i], memory_order_relaxed);
		const uint32_t rank = (is ^ tag) >> 16 == 0   ? 0
				      : is_of_minute(is, tag) ? 2 + count_of(is)
							      : 1;
		if (rank >= best_rank)
			continue;
		best = i;
		best_rank = rank;
		*word = is;
	}
	return best;
}

bool guard_take(struct guard *guard, const uint8_t ip[16], uint32_t limit, uint32_t now_s)
{
	assert(limit <= GUARD_LIMIT_MAX);
	const uint64_t hash = source_hash(ip, guard->seed), tag = tag_of(hash, now_s);
	_Atomic uint64_t *words = guard->buckets[(hash >> 32) % GUARD_BUCKETS].words;
	for (uint32_t i = 0; i < TRIES_MAX; i++) {
		uint64_t word;
		const uint32_t at = choose(words, tag, &word);
		const uint32_t count = is_of_minute(word, tag) ? count_of(word) : 0;
		if (count >= limit)
			return false;
		if (atomic_compare_exchange_weak(&words[at], &word, tag | (count + 1)))
			return true;
	}
	return false;
}

void guard_give(struct guard *guard, const uint8_t ip[16], uint32_t now_s)
{
	const uint64_t hash = source_hash(ip, guard->seed), tag = tag_of(hash, now_s);
	_Atomic uint64_t *words = guard->buckets[(hash >> 32) % GUARD_BUCKETS].words;
	for (uint32_t i = 0; i < TRIES_MAX; i++) {
		uint64_t word;
		const uint32_t at = choose(words, tag, &word);
		if ((word ^ tag) >> 16 != 0 || count_of(word) == 0)
			return;
		if (atomic_compare_exchange_weak(&words[at], &word, word - 1))
			return;
	}
}
