// The controller's state, and the questions that several of its files ask.
//
// Two clocks: cluster time, by which sessions end and the bucket fills; and the available clock,
// which stands still while the line cannot be polled and granted, by which turns, presences and
// holds end.
#pragma once

#include <stdbool.h>
#include <stdint.h>

#include "controlplane/controller/calls.h"
#include "controlplane/controller/controller.h"
#include "controlplane/controller/flow.h"
#include "controlplane/controller/holds.h"
#include "controlplane/controller/keyset.h"
#include "controlplane/controller/later.h"
#include "controlplane/controller/pool.h"
#include "controlplane/controller/present.h"
#include "controlplane/controller/sessions.h"
#include "controlplane/controller/tally.h"
#include "controlplane/controller/told.h"

struct controller {
	struct controller_limits limits;
	struct place_line *line;
	uint64_t now_ms; // latest cluster time heard
	uint64_t off_ms; // of it, how long the line was not available
	bool available;

	// The line, as this turn will publish it.
	uint64_t threshold, threshold_rank;
	uint64_t floor, floor_rank;
	uint64_t passed; // turns below this key are over; floor follows as far as it may
	uint64_t release; // to be called besides
	uint32_t ahead_ms, room_ahead; // how far it looks ahead, and how many can be admitted in
				       // that time, as of the last tick

	struct pool own; // its limits and slots; what they are shared with is above it
	struct sessions sessions;
	struct present present;
	struct later later;
	struct keyset left; // tickets given back, not below floor
	struct calls calls;
	struct holds holds; // of floor
	struct holds crowded_out; // present who found no place: nobody behind them is granted
	struct told told;
	struct flow flow;
	struct tally freed; // slots that became free before the session's end

	uint64_t admitted_total, direct_total, undone_total, lapsed_total, left_total;
	uint64_t overtakes_total, sessions_max_seen;
	uint64_t sessions_full_total, present_full_total, left_full_total, gaps_total;
};

// The available clock.
static inline uint64_t state_available_ms(const struct controller *c)
{
	return c->now_ms - c->off_ms;
}

// Bring everything that time alone changes up to `now_ms`. First in every event.
void state_advance(struct controller *c, uint64_t now_ms);

// The line could not be polled and granted: all turns begin anew.
void state_begin_anew(struct controller *c);

// What was taken of rates and quotas, into the line's words: before anybody hears of it.
void state_keep_words(struct controller *c);

// How many of the smallest present keys hold a reservation. A free slot is reserved; under a rate,
// as many more as it serves while they poll once, since the bucket is charged when one comes.
uint32_t state_reserved(const struct controller *c);

// Tickets with keys from `key` on that need not be waited for: used or given back.
uint64_t state_settled_from(const struct controller *c, uint64_t key);

// Whether nobody stands before a newcomer: every ticket drawn was used, given back, or has lapsed,
// of all that the words know now; in this line, and in those of equal or higher class that could
// be admitted to the slots they share.
bool state_nobody_waits(const struct controller *c);

// The same of tickets drawn before `ms`: those drawn later do not stand before a newcomer who was
// told then that nobody waits.
bool state_nobody_waited(const struct controller *c, uint64_t ms);

// Tickets at or beyond the threshold that were not given back.
uint64_t state_waiting(const struct controller *c);

// What `next` is told with `before` present of smaller keys, s.
uint32_t state_next_poll_after(const struct controller *c, uint32_t before);

// How long those at the door are expected to wait for their slot.
uint32_t state_door_wait_ms(const struct controller *c);

// Ranks per second that the limits suggest, at best; 0: they do not limit.
double state_expected_outflow(const struct controller *c);
