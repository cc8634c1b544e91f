// The controller: who gets the next slot. A pure function of state, events and time.
//
// One controller steers one pool: its capacity, its rate, the sessions that hold slots, and the
// line of the room that shares them. It moves the line's threshold and floor, keeps the present
// ordered by key, reserves free slots for the smallest of them, and answers claims. No I/O and no
// clock inside: time comes with each event, what must last leaves as changes, and what workers must
// see is written to the line's words by controller_publish().
//
//   capacity and rate ──┐
//   claims ────────────▶│ present ─▶ reservations ─▶ grants ─▶ changes ─▶ (claims/) ─▶ store
//   ticks ─────────────▶│ threshold · floor · open ─▶ the line's words ─▶ workers
//
// Times are unix milliseconds of cluster time; they never go back (a step back is taken as standing
// still).
#pragma once

#include <stdbool.h>
#include <stdint.h>

#include "dataplane/gate/claim.h"
#include "dataplane/gate/place.h"

struct controller;

// What the configuration says about the room. A reload may change any of it.
struct controller_limits {
	uint32_t capacity; // sessions at once; 0: no limit
	uint32_t rate_count; // new people per rate_period_ms; 0: no limit
	uint32_t rate_period_ms; // of rate_count
	uint32_t burst; // people; bucket depth; at least 1
	uint32_t session_s;
	uint32_t claim_s; // how long a turn waits to be taken
	bool sliding;
	bool direct; // newcomers may be admitted without a ticket while nobody waits
};

// Hard bounds, fixed at creation.
struct controller_bounds {
	uint32_t sessions_max; // sessions, and claimed ids kept
	uint32_t present_max; // present visitors
	uint32_t left_max; // tickets given back and not yet passed by floor
};

// What must outlast the process. Collected between controller_changes() calls.
enum controller_change_kind {
	CONTROLLER_GRANTED, // a session began: session, visitor, key, expires
	CONTROLLER_RENEWED, // session, expires
	CONTROLLER_ENDED, // session over: ended, expired or undone; its slot is free
	CONTROLLER_FORGET, // the claimed id of visitor need not be kept any more
};

struct controller_change {
	uint8_t kind; // enum controller_change_kind
	uint32_t expires; // unix s
	uint64_t session, visitor, key; // key 0: direct
};

// What `show` and the visitor's page want to know.
struct controller_view {
	uint64_t threshold, floor;
	uint64_t waiting; // tickets at or above threshold, not given back
	uint64_t called; // tickets between floor and threshold, neither claimed nor given back
	uint64_t present; // of those, the present
	uint64_t reserved; // slots held for the present
	uint64_t sessions; // slots taken
	uint64_t sessions_max_seen;
	uint64_t admitted_total, direct_total, lapsed_total, left_total, ended_total, expired_total;
	uint64_t inversions_total; // grants to a key larger than that of a present visitor without
				   // reservation: stays 0
	double yield; // observed share of the called that come
	double outflow; // tickets per second that the threshold passes, measured
	double admit_rate; // admissions per second over the last 10 s
};

// `line` stays the caller's and outlives the controller; threshold and floor found in it are taken
// over (never lowered). Returns NULL when memory is short.
struct controller *controller_create(const struct controller_limits *limits,
	const struct controller_bounds *bounds, struct place_line *line, uint64_t now_ms);
void controller_destroy(struct controller *c);

void controller_set_limits(
	struct controller *c, const struct controller_limits *limits, uint64_t now_ms);

// Put back what the store knew, after a restart. Before the first tick.
void controller_restore(
	struct controller *c, const struct controller_change *granted, uint64_t now_ms);

// Whether the line can be polled and granted: false while paused, closed, the store away, or claims
// refused. The claim windows stand still meanwhile and begin anew after.
void controller_set_available(struct controller *c, bool available, uint64_t now_ms);

// Decide one claim of any answered kind.
//   session  a fresh random id, used if a session begins
//   answer   filled; request, generation and the like are copied from the claim
void controller_claim(struct controller *c, const struct claim *claim, uint64_t session,
	uint64_t now_ms, struct claim_answer *answer);

// A claim was refused before it reached control (ring full, timed out): floor stays below `key` for
// twice poll_after.
void controller_refused(struct controller *c, uint64_t key, uint32_t poll_after, uint64_t now_ms);

// A direct grant was not delivered: session, id and slot are undone. A called one keeps its session
// for the next poll.
void controller_gone(struct controller *c, uint64_t visitor, uint64_t session, uint64_t now_ms);

// A session is to end early. Returns true if there is such a session; it keeps its slot, and a
// second claim of its visitor gets CLAIM_LAPSED, until controller_free() says that every worker
// refuses its pass.
bool controller_end(struct controller *c, uint64_t session, uint64_t now_ms);
void controller_free(struct controller *c, uint64_t session, uint64_t now_ms);

// A ticket was given back. Returns false if that is not known of (left_max reached: it lapses
// instead).
bool controller_leave(struct controller *c, uint64_t key, uint64_t visitor, uint64_t now_ms);

// `release N`: call N more people than the limits would, now; capacity and rate still hold for the
// grants.
void controller_release(struct controller *c, uint64_t count, uint64_t now_ms);

// One turn: close slots, expire sessions and presences, refill the bucket, move threshold and
// floor, reserve. Every 10 to 100 ms. Work is bounded.
void controller_tick(struct controller *c, uint64_t now_ms);

// Write threshold, floor, open and the expected wait to the line's words. Last in a turn, after the
// store has what controller_changes() said.
//   hold  true: nothing will be granted now (PLACE_OPEN_HOLD)
void controller_publish(struct controller *c, bool hold, uint64_t now_ms);

// The changes since the last call, in order; valid until the next event. Returns how many.
uint32_t controller_changes(struct controller *c, const struct controller_change **changes);

void controller_look(const struct controller *c, uint64_t now_ms, struct controller_view *view);
