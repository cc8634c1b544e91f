// A small world around the turn of claims: two rooms with stand-ins for their controllers, a store
// in memory, three workers and a barrier.
#pragma once

#include "controlplane/claims/claims.h"
#include "tests/unit/store/controller_stub.h"
#include "tests/unit/store/store_model.h"

#include <stddef.h>

#define TURN_NOW 1764583200000ull
#define TURN_NOW_S 1764583200u
#define TURN_ENDED_MAX 4u
#define TURN_LEFT_MAX 2u

extern struct turn_world {
	struct store_model model;
	struct controller derby, club; // lines 1 and 2; club's sessions are twice as long
	struct place_line *lines[2];
	struct ended *ended, *left;
	struct claims *claims;
	uint64_t session; // the next id, from 1001 on
	uint64_t barrier_begun, barrier_passed;
	char answers[1024];
	uint32_t code_uses;
	uint32_t place_bits; // of the places it gives // of the one code that there is, which is of
			     // lane 9
	uint32_t take_max; // answers that a worker takes at a time
} turn_world;

// Setup and teardown of a cmocka test.
int turn_begin(void **state);
int turn_end(void **state);

// Fresh claims, as of a process that starts.
void turn_start(void);

struct claims_room turn_derby(void);

// A claim for derby by worker 0, with a key like the visitor.
struct claim turn_claim(enum claim_kind kind, uint64_t visitor);

// One turn with one claim, sent just now; one without.
void turn_with(struct claim claim, uint64_t after_ms);
void turn_idle(uint64_t after_ms);

// What was answered ("0:7 granted, 1:8 next": worker, visitor, verdict) and what the controllers
// were told since the last call.
void turn_answers(const char *expected);
void turn_diary(const char *expected);

uint64_t turn_counted(size_t offset);
#define TURN_COUNTED(name) turn_counted(offsetof(struct claims_counters, name))
