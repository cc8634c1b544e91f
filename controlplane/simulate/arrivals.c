// The least of n numbers from the rest of a range lies 1 - u^(1/n) of the way into it; so the next
// of n sorted numbers is one draw and one root. The shape is put on afterwards, by its inverse.

#include "controlplane/simulate/arrivals.h"

#include "controlplane/simulate/dice.h"

#include <math.h>
#include <stdlib.h>

#define RUSH 4.0 // at the end of a rush e^4 = 55 times fewer come than at its beginning

double arrivals_by(enum plan_shape shape, double time)
{
	switch (shape) {
	case PLAN_SHAPE_RUSH:
		return (1 - exp(-RUSH * time)) / (1 - exp(-RUSH));
	case PLAN_SHAPE_RAMP:
		return time * time;
	case PLAN_SHAPE_BELL: // a triangle
		return time < 0.5 ? 2 * time * time : 1 - 2 * (1 - time) * (1 - time);
	default:
		return time;
	}
}

double arrivals_when(enum plan_shape shape, double share)
{
	switch (shape) {
	case PLAN_SHAPE_RUSH:
		return -log(1 - share * (1 - exp(-RUSH))) / RUSH;
	case PLAN_SHAPE_RAMP:
		return sqrt(share);
	case PLAN_SHAPE_BELL:
		return share < 0.5 ? sqrt(share / 2) : 1 - sqrt((1 - share) / 2);
	default:
		return share;
	}
}

static void advance(struct arrivals_wave *w)
{
	const double u = 1 - dice_share(&w->dice);
	w->past += (1 - w->past) * (1 - pow(u, 1.0 / (double)w->left));
	const double time = arrivals_when(w->plan->shape, w->past < 1 ? w->past : 1);
	w->next_ms =
		(uint32_t)(1000.0 * ((double)w->plan->from_s + time * (double)w->plan->over_s));
}

struct arrivals *arrivals_create(const struct plan *plan, uint64_t seed)
{
	uint32_t count = 0;
	for (uint32_t i = 0; i < plan->rooms.count; i++)
		count += plan->rooms.at[i].arrivals.count;
	struct arrivals *a = calloc(1, sizeof(*a) + count * sizeof(a->waves[0]));
	if (!a)
		return NULL;
	for (uint32_t i = 0; i < plan->rooms.count; i++) {
		const struct plan_waves *waves = &plan->rooms.at[i].arrivals;
		for (uint32_t j = 0; j < waves->count; j++) {
			struct arrivals_wave *w = &a->waves[a->count++];
			*w = (struct arrivals_wave){.plan = &waves->at[j],
				.left = waves->at[j].people,
				.dice = dice_next(&seed),
				.room = i};
			advance(w);
		}
	}
	return a;
}

bool arrivals_next(struct arrivals *a, uint32_t *at_ms, uint32_t *room)
{
	struct arrivals_wave *first = NULL;
	for (uint32_t i = 0; i < a->count; i++) {
		struct arrivals_wave *w = &a->waves[i];
		if (w->left > 0 && (!first || w->next_ms < first->next_ms))
			first = w;
	}
	if (!first)
		return false;
	*at_ms = first->next_ms;
	*room = first->room;
	if (--first->left > 0)
		advance(first);
	return true;
}
