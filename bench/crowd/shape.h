// Shape: when the visitors of a crowd arrive.
#pragma once

#include <stdbool.h>
#include <stdint.h>

enum shape {
	SHAPE_STEP, // from one moment on at a steady rate, evenly spaced: an on-sale
	SHAPE_RAMP, // the rate grows from nothing to twice the mean: a rumour
	SHAPE_POISSON, // at random, independent of each other: an ordinary day
};

// Read one of `step`, `ramp`, `poisson`. Returns false, changing nothing, for any other word.
bool shape_read(const char *word, enum shape *shape);

// Work out when each of `count` arrives, in us from the start, ascending.
//   over_s  step and ramp: all arrive within it. Poisson: the mean of it, since the gaps are random
//   seed    replays Poisson; the others ignore it
// Pure.
void shape_fill(
	enum shape shape, double over_s, uint64_t seed, int64_t *arrivals_us, uint32_t count);
