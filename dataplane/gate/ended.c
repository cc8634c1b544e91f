// Two choices of buckets, the emptier taken, and no moves: with buckets of eight words, at most
// half of them taken, random ids never found both their buckets full in 10^8 tries (a test fills
// sets). The word of a session is written once, last, and cleared once; when its pass expires is
// known to control alone, in an array beside.

#include "dataplane/gate/ended.h"

#include <assert.h>
#include <stdatomic.h>
#include <string.h>

#define BUCKET 8u // words: one cache line
#define SWEEP_WORDS 65536u // looked at in one sweep

struct ended {
	uint32_t max, mask; // mask: of buckets
	uint32_t cursor; // the word the next sweep begins at
	_Atomic uint32_t count; // written: control
	uint32_t *expires; // by word
	_Atomic uint64_t version; // written: control
	_Alignas(64) _Atomic uint64_t words[]; // session ids; 0: free; written: control
};
static_assert(sizeof(struct ended) == 64, "buckets fill their lines");

static uint32_t buckets_for(uint32_t max)
{
	uint32_t count = 16; // with fewer, luck has a say
	while (count * BUCKET < 2 * max)
		count *= 2;
	return count;
}

size_t ended_bytes(uint32_t max)
{
	size_t words = (size_t)buckets_for(max) * BUCKET;
	return sizeof(struct ended) + words * (sizeof(uint64_t) + sizeof(uint32_t));
}

struct ended *ended_init(void *memory, uint32_t max)
{
	assert((uintptr_t)memory % 64 == 0);
	assert(max > 0 && max <= ENDED_MAX_MOST);
	memset(memory, 0, ended_bytes(max));
	struct ended *e = memory;
	e->max = max;
	e->mask = buckets_for(max) - 1;
	e->expires = (uint32_t *)&e->words[(size_t)buckets_for(max) * BUCKET];
	return e;
}

// Ids are random: their halves choose.
static uint32_t bucket_of(const struct ended *e, uint64_t session, unsigned choice)
{
	return ((uint32_t)(session >> 32 * choice) & e->mask) * BUCKET;
}

// The word in a bucket that is `wanted`, or -1.
static int64_t word_in(const struct ended *e, uint32_t bucket, uint64_t wanted)
{
	for (uint32_t i = 0; i < BUCKET; i++) {
		if (atomic_load_explicit(&e->words[bucket + i], memory_order_acquire) == wanted)
			return bucket + i;
	}
	return -1;
}

static int64_t word_of(const struct ended *e, uint64_t session)
{
	int64_t word = word_in(e, bucket_of(e, session, 0), session);
	return word >= 0 ? word : word_in(e, bucket_of(e, session, 1), session);
}

// A free word in the emptier of its buckets, or -1.
static int64_t word_free(const struct ended *e, uint64_t session)
{
	int64_t free[2];
	uint32_t taken[2] = {0};
	for (unsigned choice = 0; choice < 2; choice++) {
		uint32_t bucket = bucket_of(e, session, choice);
		free[choice] = word_in(e, bucket, 0);
		for (uint32_t i = 0; i < BUCKET; i++)
			taken[choice] += atomic_load_explicit(
						 &e->words[bucket + i], memory_order_relaxed) != 0;
	}
	return free[taken[1] < taken[0]];
}

static void count_add(struct ended *e, uint32_t by)
{
	uint32_t count = atomic_load_explicit(&e->count, memory_order_relaxed);
	atomic_store_explicit(&e->count, count + by, memory_order_relaxed);
}

bool ended_insert(struct ended *e, uint64_t session, uint32_t expires)
{
	assert(session != 0);
	int64_t word = word_of(e, session);
	if (word >= 0) {
		if (expires > e->expires[word])
			e->expires[word] = expires;
		return true;
	}
	word = ended_count(e) < e->max ? word_free(e, session) : -1;
	if (word < 0)
		return false;
	e->expires[word] = expires;
	atomic_store_explicit(&e->words[word], session, memory_order_release);
	count_add(e, 1);
	atomic_store_explicit(&e->version, ended_version(e) + 1, memory_order_release);
	return true;
}

void ended_remove(struct ended *e, uint64_t session)
{
	int64_t word = session ? word_of(e, session) : -1;
	if (word < 0)
		return;
	atomic_store_explicit(&e->words[word], 0, memory_order_relaxed);
	count_add(e, 0u - 1);
}

uint64_t ended_version(const struct ended *e)
{
	return atomic_load_explicit(&e->version, memory_order_acquire);
}

bool ended_has(const struct ended *e, uint64_t session)
{
	return session != 0 && ended_count(e) > 0 && word_of(e, session) >= 0;
}

uint32_t ended_sweep(struct ended *e, uint32_t now_s)
{
	uint32_t words = (e->mask + 1) * BUCKET, dropped = 0;
	uint32_t looked = words < SWEEP_WORDS ? words : SWEEP_WORDS;
	for (uint32_t i = 0; i < looked; i++, e->cursor = (e->cursor + 1) % words) {
		_Atomic uint64_t *word = &e->words[e->cursor];
		if (atomic_load_explicit(word, memory_order_relaxed) == 0)
			continue;
		if ((uint64_t)e->expires[e->cursor] + ENDED_GRACE_S > now_s)
			continue;
		atomic_store_explicit(word, 0, memory_order_relaxed);
		dropped++;
	}
	count_add(e, 0u - dropped);
	return dropped;
}

uint32_t ended_count(const struct ended *e)
{
	return atomic_load_explicit(&e->count, memory_order_relaxed);
}
