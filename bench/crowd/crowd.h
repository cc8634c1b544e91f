// Crowd: the visitors of one process, on one thread, with one io_uring.
//
//   crowd.c   the loop: who is due, which events have come
//   talk.c    one request and its answer over a member's link, with reconnection and time limit
//   visit.c   what a visitor does next: the state machine
//
// A member is a visitor, or the second tab of one. Each has a link of its own and carries cookies
// of its own; a tab begins with a copy of its visitor's ticket.
#pragma once

#include <stdatomic.h>
#include <stdbool.h>
#include <stdint.h>

#include "bench/crowd/agenda.h"
#include "bench/crowd/links.h"
#include "bench/crowd/plan.h"
#include "bench/crowd/request.h"
#include "bench/crowd/tally.h"
#include "bench/crowd/token.h"

struct answer;

#define CROWD_NOBODY UINT32_MAX

enum crowd_step {
	CROWD_AWAY, // has not come yet
	CROWD_WAITING, // has a ticket, polls
	CROWD_ENTERING, // has a pass from a poll, loads the page
	CROWD_SHOPPING,
	CROWD_TELLING, // about to leave: tells the shop first
	CROWD_LEAVING,
	CROWD_BUYING,
	CROWD_STAYING, // has done all; the pass runs out, of which the shop is told
	CROWD_OVER,
};

struct crowd_cookie {
	char text[TOKEN_TEXT_BYTES];
	bool is_set;
};

struct crowd_member {
	uint8_t step; // enum crowd_step
	bool is_tab;
	bool comes; // when called
	uint8_t failures; // in a row
	uint8_t target; // of the plan, where it asks now
	uint32_t pages_left;
	uint32_t twin; // its tab, or the visitor of a tab; CROWD_NOBODY: none
	uint32_t admission; // in the tally; CROWD_NOBODY: none

	// What is being asked, and how it was sent.
	uint8_t asked; // enum request
	bool is_sent, is_reused, is_at_shop; // is_reused: on a connection that had served before
	int64_t due_us; // when it was meant to be sent
	int64_t sent_us;
	struct answer *answer; // under way; owned

	struct crowd_cookie ticket, pass;
	uint64_t key, session;
	uint32_t pass_ends; // unix s
	int64_t arrived_us, placed_us; // when it asked for a place, and had it
	uint32_t position; // as first told; 0: not yet
	int64_t present_from_us, present_to_us; // told `next`; 0: not
};

struct crowd {
	const struct plan *plan;
	struct tally *tally; // borrowed
	struct links links;
	struct agenda agenda;
	struct crowd_member *members; // visitors, then room for as many tabs
	uint32_t visitor_count, member_count;
	uint32_t living; // visitors that are not over
	int64_t start_us; // CLOCK_MONOTONIC
	int64_t start_unix_us;
	int64_t now_us; // since the start
	uint64_t random;
};

// Run the visitors number `share`, share + processes, ... of the plan until all are over, the limit
// is reached, or *stop is set. Blocking; once a process.
//   start_us  of CLOCK_MONOTONIC, the same for all processes
// Returns 0 or -errno: nothing was run.
int crowd_run(const struct plan *plan, uint32_t share, int64_t start_us, atomic_bool *stop,
	struct tally *tally);

// CLOCK_MONOTONIC.
int64_t crowd_clock_us(void);
