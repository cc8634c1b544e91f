// Flow: a ring of samples of one second each.
//
// A minute is measured, or more, up to ten, until SAMPLE_RANKS have passed: a slow line needs
// longer to be known as well. Until there is a minute, the rest of it is filled with the rate that
// the limits allow, and the range is wide.
//
// The range of a steady line is a fifth either way of the measured wait: it holds the real wait as
// long as the mean outflow stays within a fifth of the measured one.

#include "controlplane/controller/flow.h"

#define SAMPLE_RANKS 100u
#define FORGET_MS 600000u // nobody has waited for so long: begin anew
#define STEADY_LOW 0.8
#define STEADY_HIGH 1.2
#define EARLY_LOW 0.5
#define EARLY_HIGH 2.0

void flow_init(struct flow *f, uint64_t rank, uint64_t now_ms)
{
	*f = (struct flow){.rank = rank, .began_ms = now_ms, .last_ms = now_ms};
}

void flow_tick(struct flow *f, uint64_t rank, bool waiting, uint64_t now_ms)
{
	f->waited &= waiting;
	const uint64_t ms = now_ms - f->began_ms;
	if (ms < 1000)
		return;
	if (f->waited && ms < 2000) {
		f->samples[f->end++ % FLOW_SECONDS] =
			(struct flow_sample){(uint32_t)(rank - f->rank), (uint32_t)ms};
		f->count += f->count < FLOW_SECONDS;
		f->last_ms = now_ms;
	}
	if (now_ms - f->last_ms > FORGET_MS)
		f->count = 0;
	f->began_ms = now_ms;
	f->rank = rank;
	f->waited = waiting;
}

// The youngest samples that are enough, summed up.
static void measure(const struct flow *f, double *moved, double *ms)
{
	*moved = *ms = 0;
	for (uint32_t i = 1; i <= f->count; i++) {
		const struct flow_sample *s = &f->samples[(f->end - i) % FLOW_SECONDS];
		*moved += s->moved;
		*ms += s->ms;
		if (*ms >= FLOW_STEADY_MS && *moved >= SAMPLE_RANKS)
			return;
	}
}

double flow_rate(const struct flow *f, double expected)
{
	double moved, ms;
	measure(f, &moved, &ms);
	if (ms < FLOW_STEADY_MS && expected > 0) {
		moved += expected * (FLOW_STEADY_MS - ms) / 1000;
		ms = FLOW_STEADY_MS;
	}
	return ms > 0 ? moved * 1000 / ms : 0;
}

static uint64_t to_q32(double seconds)
{
	const double q32 = seconds * 4294967296.0;
	return q32 < 9e18 ? (uint64_t)q32 : FLOW_UNKNOWN;
}

void flow_wait(const struct flow *f, double expected, uint64_t *low, uint64_t *high)
{
	double moved, ms;
	measure(f, &moved, &ms);
	const bool steady = ms >= FLOW_STEADY_MS;
	const double rate = flow_rate(f, expected);
	*low = *high = FLOW_UNKNOWN;
	if (rate <= 0)
		return;
	*low = to_q32((steady ? STEADY_LOW : EARLY_LOW) / rate);
	*high = to_q32((steady ? STEADY_HIGH : EARLY_HIGH) / rate);
}
