// Cohorts stand in `order` by rank, with room on both sides: newcomers are appended behind, and
// halving, which happens near the head, moves the few before it.

#include "controlplane/simulate/far.h"

#include "controlplane/simulate/dice.h"

#include <assert.h>
#include <stdlib.h>
#include <string.h>

#define STEPS 32 // of jitter and of the phase within a second, when the table is worked out

static_assert(
	PACE_MAX_S + PACE_MAX_S / FAR_JITTER + 5 + 2 < FAR_BINS, "the ring holds every interval");

// The poll_after that a row stands for: from *least to the value returned, each as likely.
static uint32_t row_range(uint32_t row, uint32_t *least)
{
	const uint32_t most = row <= PACE_MAX_S ? row : PACE_MAX_S;
	*least = row == FAR_FIRST ? 1 : row == FAR_REST ? PACE_MAX_S - 15 : most - most / 4;
	return most;
}

static void add_interval(struct far_pace *p, uint32_t row, double seconds, double idle_s)
{
	const double weight = 1.0 / STEPS;
	for (uint32_t i = 0; i < STEPS; i++)
		p->share[row][(uint32_t)(seconds + (i + 0.5) / STEPS)] += (float)weight;
	p->fresh[row] += seconds > idle_s;
	p->open[row] += (float)(seconds > idle_s ? idle_s / seconds : 1);
}

void far_pace_init(struct far_pace *p, uint32_t round_trip_ms, uint32_t idle_ms)
{
	memset(p, 0, sizeof(*p));
	p->round_trip_ms = round_trip_ms;
	for (uint32_t row = PACE_MIN_S; row < FAR_ROWS; row++) {
		uint32_t least, most = row_range(row, &least);
		const float count = (float)(most - least + 1) * STEPS;
		for (uint32_t told = least; told <= most; told++)
			for (uint32_t i = 0; i < STEPS; i++)
				add_interval(p, row,
					told * (1 + (i + 0.5) / STEPS / FAR_JITTER) +
						round_trip_ms / 1000.0,
					idle_ms / 1000.0);
		for (uint32_t bin = 0; bin < FAR_BINS; bin++) {
			p->share[row][bin] /= count;
			if (p->share[row][bin] == 0)
				continue;
			if (p->end[row] == 0)
				p->first[row] = (uint8_t)bin;
			p->end[row] = (uint8_t)(bin + 1);
		}
		p->fresh[row] /= count;
		p->open[row] /= count;
	}
}

uint32_t far_delay(const struct far_pace *p, uint32_t row, uint64_t *dice)
{
	uint32_t least, most = row_range(row, &least);
	const uint32_t told = least + (uint32_t)(dice_share(dice) * (most - least + 1));
	return (uint32_t)(told * 1000 * (1 + dice_share(dice) / FAR_JITTER)) + p->round_trip_ms;
}

struct far *far_create(const struct far_pace *pace, uint64_t people)
{
	struct far *f = calloc(1, sizeof(*f));
	if (!f)
		return NULL;
	f->pace = pace;
	f->size_max = 1 + (uint32_t)(people / FAR_NEWCOMERS);
	f->begin = f->end = FAR_COHORTS_MAX;
	for (f->free_count = 0; f->free_count < FAR_COHORTS_MAX; f->free_count++)
		f->free[f->free_count] = (uint16_t)f->free_count;
	return f;
}

static struct far_cohort *cohort(struct far *f, uint32_t place)
{
	return &f->cohorts[f->order[place]];
}

static void centre(struct far *f)
{
	const uint32_t count = f->end - f->begin, begin = (2 * FAR_COHORTS_MAX - count) / 2;
	memmove(&f->order[begin], &f->order[f->begin], count * sizeof(f->order[0]));
	f->begin = begin;
	f->end = begin + count;
}

// An empty one behind all; the last, if there is no other.
static struct far_cohort *append(struct far *f, uint64_t first)
{
	if (f->free_count == 0)
		return cohort(f, f->end - 1);
	if (f->end == 2 * FAR_COHORTS_MAX)
		centre(f);
	f->order[f->end++] = f->free[--f->free_count];
	struct far_cohort *c = cohort(f, f->end - 1);
	*c = (struct far_cohort){.first = first};
	return c;
}

static struct far_cohort *last_for(struct far *f, bool is_resting)
{
	if (f->begin == f->end)
		return append(f, 0);
	struct far_cohort *c = cohort(f, f->end - 1);
	return is_resting || c->count < f->size_max ? c : append(f, c->first + c->count);
}

static void spread(struct far *f, struct far_cohort *c, float polls, uint32_t row)
{
	const float *share = f->pace->share[row];
	for (uint32_t bin = f->pace->first[row]; bin < f->pace->end[row]; bin++)
		c->due[(f->second + bin) % FAR_BINS] += polls * share[bin];
}

void far_add(struct far *f, bool shows, uint32_t row)
{
	struct far_cohort *c = last_for(f, row >= FAR_REST);
	c->count++;
	c->row = (uint8_t)(row >= FAR_REST ? FAR_REST : row);
	if (!shows)
		return;
	c->shows++;
	spread(f, c, 1, row);
}

// Leave the first `count` of a cohort in it; the others go to `rest`.
static void cut(struct far_cohort *c, struct far_cohort *rest, uint32_t count)
{
	const float part = (float)count / (float)c->count;
	*rest = *c;
	rest->first += count;
	rest->count -= count;
	rest->shows *= 1 - part;
	c->count = count;
	c->shows *= part;
	for (uint32_t bin = 0; bin < FAR_BINS; bin++) {
		rest->due[bin] *= 1 - part;
		c->due[bin] *= part;
	}
}

void far_place(struct far *f, bool places)
{
	if (f->begin == f->end)
		return;
	struct far_cohort all = *cohort(f, f->begin);
	assert(f->end - f->begin == 1);
	f->free[f->free_count++] = f->order[f->begin];
	f->begin = f->end;
	if (!places)
		return;
	while (all.count > 0 && f->free_count > 1) {
		struct far_cohort rest, *c = append(f, all.first);
		cut(&all, &rest, all.count < f->size_max ? all.count : f->size_max);
		*c = all;
		c->row = PACE_MAX_S; // told so far; by their places from now on
		all = rest;
	}
}

static uint64_t ahead_of(uint64_t rank, uint64_t threshold_rank)
{
	return rank > threshold_rank ? rank - threshold_rank : 0;
}

// Halve the cohort at `place` unless its first and its last are told nearly the same. Returns
// whether it was; then the first half is at place - 1.
static bool halve(struct far *f, uint32_t place, uint64_t threshold_rank, uint64_t wait_high)
{
	struct far_cohort *c = cohort(f, place);
	const uint64_t ahead = ahead_of(c->first, threshold_rank);
	const uint64_t last = ahead_of(c->first + c->count - 1, threshold_rank);
	const uint32_t least = pace_poll_after_max(ahead, wait_high);
	const uint32_t most = pace_poll_after_max(last, wait_high);
	if (c->count < 2 || most - least <= 1 + least / 8 || f->free_count == 0)
		return false;
	assert(f->begin > 0);
	memmove(&f->order[f->begin - 1], &f->order[f->begin],
		(place - f->begin) * sizeof(f->order[0]));
	f->begin--;
	f->order[place - 1] = f->free[--f->free_count];
	struct far_cohort *first = cohort(f, place - 1);
	*first = *c;
	cut(first, c, first->count / 2);
	return true;
}

struct far_polls far_second(struct far *f, uint64_t threshold_rank, uint64_t wait_high)
{
	struct far_polls polls = {0};
	const uint32_t bin = f->second % FAR_BINS;
	if (f->begin < FAR_COHORTS_MAX / 2)
		centre(f);
	for (uint32_t place = f->begin; place < f->end; place++) {
		while (cohort(f, place)->row != FAR_REST &&
			halve(f, place, threshold_rank, wait_high))
			place--;
		struct far_cohort *c = cohort(f, place);
		const float due = c->due[bin];
		if (c->row != FAR_REST)
			c->row = (uint8_t)pace_poll_after_max(
				ahead_of(c->first + c->count / 2, threshold_rank), wait_high);
		c->due[bin] = 0;
		polls.polls += due;
		polls.fresh += due * f->pace->fresh[c->row];
		polls.open += c->shows * f->pace->open[c->row];
		if (due > 0)
			spread(f, c, due, c->row);
	}
	f->second++;
	return polls;
}

// Of the polls that a cohort will make, one by chance: ms from the second's beginning.
static uint32_t draw_poll(const struct far *f, const struct far_cohort *c, uint64_t *dice)
{
	float at = (float)dice_share(dice) * c->shows;
	for (uint32_t bin = 0; bin < FAR_BINS; bin++) {
		const float due = c->due[(f->second + bin) % FAR_BINS];
		if (at < due)
			return 1000 * bin + (uint32_t)(1000 * dice_share(dice));
		at -= due;
	}
	return (uint32_t)(1000 * dice_share(dice));
}

static void remove_first(struct far *f, struct far_cohort *c, bool shows)
{
	const float rest = shows && c->shows > 1 ? (c->shows - 1) / c->shows : shows ? 0 : 1;
	c->first++;
	c->count--;
	c->shows *= rest;
	for (uint32_t bin = 0; rest < 1 && bin < FAR_BINS; bin++)
		c->due[bin] *= rest;
	if (c->count == 0)
		f->free[f->free_count++] = f->order[f->begin++];
}

uint32_t far_call(struct far *f, bool shows, uint32_t ms, uint64_t *dice)
{
	assert(f->begin < f->end);
	struct far_cohort *c = cohort(f, f->begin);
	uint32_t at = 0;
	if (shows) {
		at = draw_poll(f, c, dice);
		// It has polled in this second, and was told to come again.
		if (at < ms)
			at += far_delay(f->pace, c->row, dice);
		at = at > ms ? at - ms : 0;
	}
	remove_first(f, c, shows);
	return at;
}
