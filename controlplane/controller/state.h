// The controller's state, and the questions that several of its files ask.
//
// Two clocks (caller.h): cluster time, by which sessions end and the bucket fills; and the
// available clock, which stands still while the line cannot be polled and granted, by which turns,
// presences and holds end.
#pragma once

#include <stdbool.h>
#include <stdint.h>

#include "controlplane/controller/caller.h"
#include "controlplane/controller/controller.h"
#include "controlplane/controller/later.h"
#include "controlplane/controller/present.h"
#include "controlplane/controller/sessions.h"
#include "controlplane/controller/tally.h"

struct controller {
	struct controller_limits limits;
	struct place_line *line;
	struct caller call; // the line as this turn will publish it, its limits and slots, the
			    // clocks
	struct sessions sessions;
	struct present present;
	struct later later;
	struct tally freed; // slots that became free before the session's end

	uint64_t admitted_total, direct_total, undone_total, lapsed_total, left_total;
	uint64_t overtakes_total, sessions_max_seen;
	uint64_t sessions_full_total, present_full_total, left_full_total;
};

// Bring everything that time alone changes up to `now_ms`. First in every event.
void state_advance(struct controller *c, uint64_t now_ms);

// What was taken of rates and quotas, into the line's words: before anybody hears of it.
void state_keep_words(struct controller *c);

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

// What the line's pool asks of its controller.
extern const struct pool_line state_pool_line;
