// A bucket is one cache line: eight tags, compared at once, eight indices, and how many entries had
// their place here but stand in a later bucket, so that a search for what is not there mostly ends
// where it began.
//
// The hash is SipHash-1-3 of addresses and ports. XXH3 would be faster still, but what it promises
// against an adversary is not written down anywhere.

#include "dataplane/net/tcp/flows.h"

#include "dataplane/net/tcp/siphash.h"
#include "dataplane/net/tcp/tuple.h"

#include <assert.h>
#include <stdlib.h>
#include <string.h>
#if defined(__SSE2__)
#include <emmintrin.h>
#endif

#define PLACES 8u

struct bucket {
	uint16_t tags[PLACES]; // 0: free
	uint32_t indices[PLACES];
	uint32_t beyond; // entries that belong here or before, and stand after
} __attribute__((aligned(64)));
static_assert(sizeof(struct bucket) == 64, "one cache line");

struct tcp_flows {
	struct siphash_key key;
	uint32_t mask; // buckets - 1
	struct bucket *buckets;
};

// Buckets, a power of two, so that `max` entries fill at most three quarters.
static uint32_t bucket_count(uint32_t max)
{
	uint64_t needed = ((uint64_t)max * 4 + 3 * PLACES - 1) / (3 * PLACES);
	uint32_t count = 1;
	while (count < needed)
		count *= 2;
	return count;
}

uint64_t flows_bytes(uint32_t max)
{
	return sizeof(struct tcp_flows) + (uint64_t)bucket_count(max) * sizeof(struct bucket);
}

struct tcp_flows *flows_create(uint32_t max, uint64_t seed)
{
	struct tcp_flows *flows = calloc(1, sizeof(*flows)); // COLD: at start
	if (!flows)
		return NULL;
	size_t bytes = bucket_count(max) * sizeof(struct bucket);
	flows->buckets = aligned_alloc(64, bytes);
	if (!flows->buckets) {
		flows_destroy(flows);
		return NULL;
	}
	memset(flows->buckets, 0, bytes);
	flows->mask = bucket_count(max) - 1;
	flows->key = (struct siphash_key){seed, seed * UINT64_C(0x9e3779b97f4a7c15) + 1};
	return flows;
}

void flows_destroy(struct tcp_flows *flows)
{
	if (flows)
		free(flows->buckets);
	free(flows);
}

uint64_t flows_hash(const struct tcp_flows *flows, const struct stream_address *local,
	const struct stream_address *peer)
{
	uint64_t words[TUPLE_WORDS_MAX];
	unsigned count = tuple_words(local, peer, 0, words);
	return count == 2 ? siphash_words_13(flows->key, words, 2) // IPv4, unrolled
			  : siphash_words_13(flows->key, words, count);
}

static uint16_t tag_of(uint64_t hash)
{
	return (uint16_t)(hash >> 48) | 1; // never 0
}

static struct bucket *bucket_at(const struct tcp_flows *flows, uint64_t hash, uint32_t distance)
{
	return &flows->buckets[((uint32_t)hash + distance) & flows->mask];
}

void flows_prefetch(const struct tcp_flows *flows, uint64_t hash)
{
	__builtin_prefetch(bucket_at(flows, hash, 0));
}

// The places of a bucket that hold a tag, a bit each.
#if defined(__SSE2__)
static unsigned match(const struct bucket *bucket, uint16_t tag)
{
	__m128i tags = _mm_load_si128((const __m128i *)bucket->tags);
	__m128i equal = _mm_cmpeq_epi16(tags, _mm_set1_epi16((short)tag));
	return (unsigned)_mm_movemask_epi8(_mm_packs_epi16(equal, _mm_setzero_si128()));
}
#else
static unsigned match(const struct bucket *bucket, uint16_t tag)
{
	unsigned found = 0;
	for (unsigned i = 0; i < PLACES; i++)
		found |= (unsigned)(bucket->tags[i] == tag) << i;
	return found;
}
#endif

bool flows_next(const struct tcp_flows *flows, uint64_t hash, uint32_t *at, uint32_t *index)
{
	uint16_t tag = tag_of(hash);
	for (uint32_t distance = *at / PLACES; distance <= flows->mask; distance++) {
		const struct bucket *bucket = bucket_at(flows, hash, distance);
		unsigned found = match(bucket, tag) & (0xffu << *at % PLACES);
		if (found) {
			unsigned place = (unsigned)__builtin_ctz(found);
			*at = distance * PLACES + place + 1;
			*index = bucket->indices[place];
			return true;
		}
		if (bucket->beyond == 0)
			return false;
		*at = 0; // places of the next bucket count from the first
	}
	return false;
}

void flows_add(struct tcp_flows *flows, uint64_t hash, uint32_t index)
{
	for (uint32_t distance = 0; distance <= flows->mask; distance++) {
		struct bucket *bucket = bucket_at(flows, hash, distance);
		unsigned vacant = match(bucket, 0);
		if (vacant) {
			unsigned place = (unsigned)__builtin_ctz(vacant);
			bucket->tags[place] = tag_of(hash);
			bucket->indices[place] = index;
			return;
		}
		bucket->beyond++;
	}
	assert(!"the table is larger than its entries");
}

void flows_remove(struct tcp_flows *flows, uint64_t hash, uint32_t index)
{
	for (uint32_t distance = 0; distance <= flows->mask; distance++) {
		struct bucket *bucket = bucket_at(flows, hash, distance);
		unsigned found = match(bucket, tag_of(hash));
		for (; found; found &= found - 1) {
			unsigned place = (unsigned)__builtin_ctz(found);
			if (bucket->indices[place] == index) {
				bucket->tags[place] = 0;
				return;
			}
		}
		assert(bucket->beyond > 0);
		bucket->beyond--;
	}
	assert(!"only what is in it is taken out");
}
