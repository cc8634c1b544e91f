// People of a simulated cluster, and the workers that answer them: each polls whichever appliance
// it likes, as told, and holds what it is shown to what it was shown before.
#pragma once

#include "tests/sim/cluster/network.h"

#define PEOPLE_WORKER_MS 1000u // a worker waits for an answer of its member
#define PEOPLE_RETRY_MS 3000u // who got no answer

enum person_state {
	PERSON_ARRIVES,
	PERSON_WAITS, // with a ticket
	PERSON_INSIDE, // with a pass
	PERSON_GONE,
};

struct person {
	uint8_t state; // enum person_state
	uint8_t line;
	uint64_t visitor, key, session;
	uint64_t granted_born_ms, granted_epoch; // of the process that said so first, then
	uint32_t granted_at; // and which appliance
	uint32_t expires;
	uint64_t next_ms; // of the world: what it does then
	uint64_t leaves_ms; // inside: gives its session back; 0: stays to its end
	uint32_t poll_after;
	uint64_t rank, ahead;
	bool has_rank, has_session, is_over; // is_over: its session is, it was told or gave it back
	bool shows, obeys, was_lost, has_left;
	// A request that is parked.
	uint32_t pending; // number; 0: none
	uint32_t at; // appliance
	uint64_t pending_ms;
	uint8_t kind;
};

struct people_plan {
	double no_show, gives_back, ends_early, comes_again, renews;
	uint32_t arrive_ms; // all within this
	bool moves; // to any appliance with each poll
};

struct people {
	struct people_plan plan;
	struct person *at;
	uint32_t count, requests;
	struct network *network;
	uint64_t *random;
	uint64_t seed, now_ms;
	bool is_calm; // nothing goes wrong
	bool is_bounded; // no line admits while the store is away
	uint32_t capacity; // of all lines together; 0: no limit
	uint64_t polls, granted, lapsed, twice, worse, usable_most;
	uint64_t waiting; // with a ticket, and polls
};

void people_init(struct people *p, uint32_t count, const struct people_plan *plan,
	struct network *network, uint64_t *random);
void people_fini(struct people *p);

// What they do until `world_ms`, and what workers do with the answers that came.
void people_turn(struct people *p, uint64_t world_ms);

// Sessions that an appliance which the store hears of would let through now.
uint32_t people_usable(const struct people *p);

#define PEOPLE_CHECK(p, condition) \
	do { \
		if (!(condition)) \
			people_fail((p), #condition, __FILE__, __LINE__); \
	} while (0)
_Noreturn void people_fail(const struct people *p, const char *what, const char *file, int line);
