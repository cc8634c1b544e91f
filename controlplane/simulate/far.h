// Far: the polls of those who are not called yet, in bulk.
//
// A poll from behind the threshold changes nothing: it reads a place and is told when to come
// again. So nobody's such polls are played one by one; how many come in each second is worked out
// instead. People whose ranks are neighbours are a cohort; of each it is kept how many of them will
// poll in each of the next FAR_BINS seconds. As a second passes, those who polled in it are spread
// over the seconds to come by what pace.h tells a visitor at their distance, with its jitter, the
// page's own and the way there and back. These are the expected numbers, as exact as the seconds
// and the cohorts are fine: a cohort is halved until its first and its last are told nearly the
// same, and that is one person where the line is slow. Waves after a rush at one moment are in it.
//
// When the threshold reaches somebody, that person's next poll is drawn by chance from those of its
// cohort, and from then on is a visitor of its own.
//
//   ticket ─▶ far_add() ─▶ cohorts ─(each second)─▶ far_second(): polls
//                             └─(called)─▶ far_call(): when the next poll comes
#pragma once

#include <stdbool.h>
#include <stdint.h>

#include "dataplane/gate/pace.h"

#define FAR_BINS 80u // s; above PACE_MAX_S, a tenth, and the longest way there and back
#define FAR_JITTER 10u // the page asks up to one part in so many later than it was told
#define FAR_COHORTS_MAX 4096u // full: cohorts are halved no more
#define FAR_NEWCOMERS 512u // a line is cut into so many, as people come
#define FAR_REST (PACE_MAX_S + 1) // rows besides those of poll_after: while doors are closed,
#define FAR_FIRST (PACE_MAX_S + 2) // and for those who have just come to them
#define FAR_ROWS (PACE_MAX_S + 3)

// What follows from being told to come again, by the longest poll_after that may have been told
// (pace_poll_after_max), or FAR_REST, FAR_FIRST.
struct far_pace {
	float share[FAR_ROWS][FAR_BINS]; // that comes so many seconds later
	uint8_t first[FAR_ROWS], end[FAR_ROWS]; // bins that are not 0
	float fresh[FAR_ROWS]; // that comes by a new connection, the old one having been idle
	float open[FAR_ROWS]; // connections open for each of them, in the mean
	uint32_t round_trip_ms;
};

struct far_cohort {
	uint64_t first; // rank
	uint32_t count;
	uint8_t row; // as of the last second
	float shows; // of these, who poll: the sum of `due`
	float due[FAR_BINS]; // who will poll in second % FAR_BINS
};

// What far_second() found.
struct far_polls {
	double polls;
	double fresh; // of these, by new connections
	double open; // connections
};

struct far {
	const struct far_pace *pace;
	uint32_t second; // that is being lived
	uint32_t size_max; // of a cohort of newcomers
	uint32_t begin, end; // of `order`, by rank
	uint32_t free_count;
	uint16_t free[FAR_COHORTS_MAX];
	uint16_t order[2 * FAR_COHORTS_MAX];
	struct far_cohort cohorts[FAR_COHORTS_MAX];
};

// Work the table out: once for all lines.
//   idle_ms  how long a connection rests before it is closed
void far_pace_init(struct far_pace *pace, uint32_t round_trip_ms, uint32_t idle_ms);

// How long one person waits after being told a row, ms; `dice` as of dice.h.
uint32_t far_delay(const struct far_pace *pace, uint32_t row, uint64_t *dice);

// A line of at most `people`. NULL when memory is short; the caller frees it.
struct far *far_create(const struct far_pace *pace, uint64_t people);

// Somebody is behind all others, with the next rank, and was told `row` just now. Without a place
// yet all are one cohort, that of FAR_REST.
void far_add(struct far *f, bool shows, uint32_t row);

// Those without a place have one, or are gone (`places` false).
void far_place(struct far *f, bool places);

// The second is over, and the next one begins. Of the line: the rank of its threshold, and
// wait_high.
struct far_polls far_second(struct far *f, uint64_t threshold_rank, uint64_t wait_high);

// The first of all is called, `ms` after the second's beginning. Returns after how many ms it polls
// next; meaningless if it does not show.
uint32_t far_call(struct far *f, bool shows, uint32_t ms, uint64_t *dice);
