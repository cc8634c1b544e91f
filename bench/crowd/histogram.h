// Histogram: counts of values from 0 to days of microseconds in a few kilobytes, each within 1/128
// of its value (the log-linear buckets of HDR histograms, http://hdrhistogram.org).
#pragma once

#include <stdint.h>

#define HISTOGRAM_BITS 36u // values are below 2^36 us, 19 hours; larger ones count as the largest
#define HISTOGRAM_LINEAR_BITS 8u // below 256 every value has a bucket of its own
#define HISTOGRAM_HALF (1u << (HISTOGRAM_LINEAR_BITS - 1)) // buckets to a doubling above that
#define HISTOGRAM_BUCKETS ((HISTOGRAM_BITS - HISTOGRAM_LINEAR_BITS + 2) * HISTOGRAM_HALF)

// All zero is empty.
struct histogram {
	uint64_t counts[HISTOGRAM_BUCKETS];
	uint64_t count, sum, max;
};

// Count one value. A negative one counts as 0.
void histogram_add(struct histogram *h, int64_t value);

// Count all that `other` has counted.
void histogram_merge(struct histogram *h, const struct histogram *other);

// The smallest value that at least this share of all values does not exceed, up to 1/128 too large.
//   share  0 to 1
// Returns 0 if nothing was counted.
uint64_t histogram_value(const struct histogram *h, double share);

// 0 if nothing was counted.
double histogram_mean(const struct histogram *h);
