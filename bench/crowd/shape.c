// Shapes: open loop. Nobody's arrival depends on how others are served; that is what makes a crowd.

#include "bench/crowd/shape.h"

#include <math.h>
#include <string.h>

#include "bench/crowd/random.h"

bool shape_read(const char *word, enum shape *shape)
{
	static const char *const words[] = {
		[SHAPE_STEP] = "step", [SHAPE_RAMP] = "ramp", [SHAPE_POISSON] = "poisson"};
	for (unsigned i = 0; i < sizeof(words) / sizeof(words[0]); i++) {
		if (strcmp(word, words[i]) == 0) {
			*shape = (enum shape)i;
			return true;
		}
	}
	return false;
}

void shape_fill(
	enum shape shape, double over_s, uint64_t seed, int64_t *arrivals_us, uint32_t count)
{
	double at_s = 0;
	for (uint32_t i = 0; i < count; i++) {
		if (shape == SHAPE_STEP)
			at_s = over_s * i / count;
		else if (shape == SHAPE_RAMP) // as many by then as the square of the time
			at_s = over_s * sqrt((double)i / count);
		else // gaps of a Poisson process are exponential
			at_s += -log(1 - random_share(&seed)) * over_s / count;
		arrivals_us[i] = (int64_t)(at_s * 1e6);
	}
}
