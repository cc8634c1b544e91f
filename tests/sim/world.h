// The world of the simulation: visitors, the network, a worker, the process and its store, in
// virtual time. The real places and the real controller are driven as the product drives them.
//
//   visitors ──(delay, loss)──▶ worker ──(ring)──▶ controller ─▶ changes ─▶ store
//       ◀──────(delay, loss)──    ◀────(answers)────   │
//                                 ◀──(the line's words)┘
//
// One thread, one queue of events, one random number generator: the seed replays everything.
#pragma once

#include <stdbool.h>
#include <stdint.h>

#include "controlplane/controller/controller.h"
#include "controlplane/controller/pool.h"
#include "dataplane/gate/place.h"
#include "tests/sim/check.h"

#define WORLD_TABS_MAX 4u
#define WORLD_ROOMS_MAX 4u

// What happens in a run. Shares are 0 to 1; troubles are a minute.
struct world_plan {
	uint64_t seed;
	struct controller_limits limits; // of each room
	struct controller_bounds bounds;
	uint32_t room_count; // 0: one, that shares with nobody
	struct pool_limits pool; // of all rooms together
	struct world_share {
		uint32_t priority, weight;
		uint32_t people; // of 100 that come
		uint32_t until_ms; // nobody new comes after this; 0: they do
	} shares[WORLD_ROOMS_MAX];
	uint32_t entries_max; // of the line's index
	uint32_t people;
	double arrivals; // a second; 0: all within the first second
	uint32_t turn_ms, duration_ms;
	uint32_t delay_max_ms; // one way
	double loses_answer; // share of answers
	double closes; // share of requests whose peer is gone before the answer
	double no_show; // share of those with tickets who do not poll
	uint32_t no_show_after; // but not of the first of them
	uint32_t return_ms; // when those who did not come come all at once; 0: never
	double leaves_line; // share of polls that give the ticket back instead
	uint32_t tabs_max;
	uint32_t shop_min_ms, shop_max_ms; // then the session is given back; 0: kept to its end
	double crashes, outages, steps, reloads, releases;
};

enum world_state {
	WORLD_OUTSIDE,
	WORLD_WAITING, // with a ticket
	WORLD_SHOPPING, // with a pass
	WORLD_AWAY, // did what it came for, or gave up
};

struct world_visitor {
	struct world_room *room; // that it comes for
	uint64_t id, key, session;
	uint64_t rank, ahead; // as last shown
	uint64_t arrived_ms, granted_ms, left_ms; // virtual time
	uint64_t wait_ms; // when a wait was first shown in a steady flow
	uint64_t wait_low_s, wait_high_s; // from then, as shown
	uint32_t expires;
	uint32_t poll_after; // last told, s
	uint32_t pending[WORLD_TABS_MAX]; // number of the request that is parked; 0: none
	uint8_t state; // enum world_state
	uint8_t tabs;
	bool shows; // polls
	bool obeys; // has polled as told all the time
	bool lost; // the last answer
	bool has_rank;
};

struct world_event {
	uint64_t at_ms, order;
	uint32_t who, detail, number;
	uint8_t kind;
	struct claim_answer answer;
};

enum world_crash {
	WORLD_NO_CRASH,
	WORLD_BATCH_LOST, // before the store has what the turn decided
	WORLD_ANSWERS_LOST, // after that
};

struct world_ending {
	struct world_room *room;
	uint64_t session, turn;
};

// One of the rooms: its line, and who steers it.
struct world_room {
	struct place_line *line; // survives the process, as the file does
	struct controller *controller; // NULL: the process is down
	uint64_t refused_key; // smallest refused since the last turn; UINT64_MAX: none
	uint32_t refused_poll_after;
	struct check check;
};

struct world {
	struct world_plan plan;
	uint64_t random;
	uint64_t start_ms, now_ms; // virtual time
	uint64_t step_ms; // cluster clock - virtual time
	struct world_event *events; // heap
	uint32_t event_count, event_max;
	uint64_t event_order;

	struct world_room rooms[WORLD_ROOMS_MAX];
	uint32_t room_count;
	struct pool *pool; // of all rooms; NULL: there is one, or the process is down
	struct check_pool shared; // what they share, as seen from outside
	bool is_up; // the process is
	bool available, holds;
	uint64_t generation; // of the process

	struct claim *ring; // claim.room: which
	uint32_t ring_count, ring_max;
	struct claim_answer *answers;
	uint32_t answer_count;

	struct controller_change *store; // one record a visitor; kind 0: none
	struct world_ending *ending; // sessions that were ended early and are not free yet
	uint32_t ending_count;
	uint64_t turns;
	uint8_t crash_at; // enum world_crash, in the next turn

	struct world_visitor *visitors;
	uint32_t visitor_count, visitor_max;
	uint32_t request_number;

	// What scenarios look at.
	uint64_t tickets, granted, direct, lapsed, left, later, gone, crashes, outages, polls;
	uint64_t last_ticket_granted_ms; // virtual time
	uint64_t wait_cases, wait_hits, wait_wide;
};

// Run a world to its end and check the end. Takes no more than it says in its plan; aborts with the
// seed when an invariant is broken.
void world_run(struct world *w, const struct world_plan *plan);
void world_fini(struct world *w);

// A plan with the habits of everyday: 50 ms delay, turns of 20 ms, nobody misbehaves.
struct world_plan world_everyday(uint64_t seed);

// --- between the files of the world

uint64_t world_random(struct world *w, uint64_t limit);
bool world_chance(struct world *w, double share);

// Ids of visitors differ, and name who they are.
uint64_t world_id(uint32_t who);
uint32_t world_who(uint64_t id);

// Cluster time.
uint64_t world_cluster_ms(const struct world *w);

void world_at(struct world *w, uint64_t delay_ms, uint8_t kind, uint32_t who, uint32_t detail,
	uint32_t number);
void world_deliver(struct world *w, uint64_t delay_ms, const struct claim_answer *answer);

enum world_event_kind {
	WORLD_ARRIVE,
	WORLD_POLL, // detail: tab
	WORLD_TIMEOUT, // detail: tab, number: request
	WORLD_ANSWER,
	WORLD_SHOP_ENDS,
	WORLD_RENEW,
	WORLD_TURN, // number: generation of the process
	WORLD_CRASH,
	WORLD_START,
	WORLD_OUTAGE, // detail: 0 ends, 1 begins
	WORLD_STEP,
	WORLD_RELOAD,
	WORLD_RELEASE,
	WORLD_RETURN,
};
