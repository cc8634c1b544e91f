// Play: a plan in virtual time, by the product's own places, draw and controller.
//
// Everybody who comes is somebody here, from the arrival to the end of the session. Turns of
// control are those of controller.h, one every `turn_ms`; within a turn things happen in no finer
// order. Who draws a ticket gets its key from place_mint(), who gathers from the draw; when the
// threshold has passed the key, its visitor polls, claims, comes again as told, is granted, stays,
// ends. Only the polls of those who are not called yet are played in bulk (far.h). Store, workers
// and network never fail here and cost no time; several appliances are one line, as in the product.
//
//   arrivals ─▶ visitor ─▶ place · draw ─▶ far ─(threshold)─▶ agenda ─▶ claims ─▶ controller
//                                           │                                        │
//                                           └────────────▶ series ◀──────────────────┘
//
// One thread, one seed: the same plan gives the same result.
#pragma once

#include <stdbool.h>
#include <stdint.h>

#include "config/plan.h"
#include "controlplane/controller/controller.h"
#include "controlplane/simulate/far.h"
#include "dataplane/gate/draw.h"

#define PLAY_TURN_MS 100u // or less, where a burst is used up sooner
#define PLAY_AGENDA_TURNS 65536u // things further ahead are looked at in between
#define PLAY_NEVER UINT32_MAX

enum play_state {
	PLAY_BEFORE, // has come before people may gather
	PLAY_GATHERED, // waits for the draw
	PLAY_WAITING, // with a ticket
	PLAY_INSIDE,
	PLAY_DONE, // session over
	PLAY_LAPSED, // the turn was missed; nobody who shows does
};

struct play_person {
	uint64_t key; // of the ticket, while gathered the hash; 0: none
	uint32_t came_ms; // since the plan's beginning
	uint32_t admitted_ms; // PLAY_NEVER: not
	uint32_t until_ms; // inside: when it is done
	uint32_t due; // turn of the next thing it does
	uint32_t next; // in the agenda
	uint8_t room;
	uint8_t state; // enum play_state
	bool shows; // polls
};

// A second of a room.
struct play_second {
	uint32_t came, admitted;
	uint32_t waiting, inside; // at its end; without those who do not show
	float polls, pages; // pages: those of the queue
	float fresh, open; // new connections, and connections
};

struct play_room {
	const struct plan_room *plan;
	struct place_line *line;
	struct controller *controller;
	struct far *far;
	uint32_t *by_rank; // people with tickets, by place; while they gather: who has come
	uint32_t rank_count, rank_max;
	uint32_t called; // of these, the first who is not
	double stay_mu, stay_sigma; // of its logarithm, in s
	// Doors.
	uint32_t opens_ms, gathers_ms; // equal: nobody gathers
	bool is_open;
	uint64_t first_slot; // of the gathering; 0: not begun
	struct draw_list drawn;
	struct draw_set *draws;
	// What is seen.
	struct play_second *seconds;
	uint32_t waiting; // who show
	uint32_t inside_max, waiting_max;
	uint32_t no_shows, lapsed, direct, tickets;
	struct controller_view view; // at the end
};

struct play {
	const struct plan *plan;
	struct pool *pool; // NULL: none
	struct play_room *rooms;
	uint32_t room_count;
	struct play_person *people; // by arrival
	uint32_t people_count, people_max;
	struct arrivals *arrivals;
	uint32_t next_ms, next_room; // who comes next
	bool has_next;
	uint32_t agenda[PLAY_AGENDA_TURNS]; // first of those who do something in that turn
	struct far_pace pace;
	uint64_t dice;
	uint32_t turn_ms, turn;
	uint32_t now_ms; // since the beginning, of the turn
	uint32_t second_count, second_max; // of each room
	bool is_full; // of sessions: they were bounded too low
	uint32_t patience; // twice the guess so many times
};

// Play it to its end: until nobody waits, or `lasts` is over.
// Returns 0 or -ENOMEM. play_fini() in any case.
int play_run(struct play *p, const struct plan *plan, uint64_t seed);
void play_fini(struct play *p);

// --- between the files

// Cluster time, unix ms.
uint64_t play_cluster_ms(const struct play *p);

// Have a person do something after `ms` from now; at least a turn later.
void play_at(struct play *p, uint32_t who, uint64_t ms);

// What is seen of this second.
struct play_second *play_second(const struct play *p, const struct play_room *room);
