// A value of up to 8 bits is its own bucket. A longer one is shifted down to 8 bits, of which the
// first is always set: 128 buckets for each length, so a bucket is 1/128 of its smallest value.

#include "bench/crowd/histogram.h"

#include <math.h>

static uint32_t bucket_of(uint64_t value)
{
	const unsigned bits = value ? 64u - (unsigned)__builtin_clzll(value) : 0;
	const unsigned shift = bits > HISTOGRAM_LINEAR_BITS ? bits - HISTOGRAM_LINEAR_BITS : 0;
	return shift * HISTOGRAM_HALF + (uint32_t)(value >> shift);
}

// The largest value that falls into it.
static uint64_t bucket_end(uint32_t bucket)
{
	if (bucket < 2 * HISTOGRAM_HALF)
		return bucket;
	const unsigned shift = bucket / HISTOGRAM_HALF - 1;
	const uint64_t upper = bucket - shift * HISTOGRAM_HALF;
	return ((upper + 1) << shift) - 1;
}

void histogram_add(struct histogram *h, int64_t value)
{
	const uint64_t most = (1ull << HISTOGRAM_BITS) - 1;
	uint64_t counted = value > 0 ? (uint64_t)value : 0;
	if (counted > most)
		counted = most;
	h->counts[bucket_of(counted)]++;
	h->count++;
	h->sum += counted;
	if (counted > h->max)
		h->max = counted;
}

void histogram_merge(struct histogram *h, const struct histogram *other)
{
	for (uint32_t i = 0; i < HISTOGRAM_BUCKETS; i++)
		h->counts[i] += other->counts[i];
	h->count += other->count;
	h->sum += other->sum;
	if (other->max > h->max)
		h->max = other->max;
}

uint64_t histogram_value(const struct histogram *h, double share)
{
	const uint64_t wanted = (uint64_t)ceil(share * (double)h->count);
	uint64_t seen = 0;
	for (uint32_t i = 0; i < HISTOGRAM_BUCKETS; i++) {
		seen += h->counts[i];
		if (seen > 0 && seen >= wanted)
			return bucket_end(i) < h->max ? bucket_end(i) : h->max;
	}
	return h->max;
}

double histogram_mean(const struct histogram *h)
{
	return h->count ? (double)h->sum / (double)h->count : 0;
}
