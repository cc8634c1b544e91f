// The controller: who gets the next slot. A pure function of state, events and time.
//
// One controller steers one line: it knows the sessions that came through it, moves the line's
// threshold and floor, keeps the present ordered by key, reserves free slots for the smallest of
// them, and answers claims. Its limits, capacity and rate, hold for that line; slots shared with
// other lines are those of a pool that it joins (pool.h). No I/O and no clock inside: time comes
// with each event, what must last leaves as changes, and what workers must see is written to the
// line's words by controller_publish().
//
//   capacity and rate ──┐
//   claims ────────────▶│ present ─▶ reservations ─▶ grants ─▶ changes ─▶ (claims/) ─▶ store
//   ticks ─────────────▶│ threshold · floor · open ─▶ the line's words ─▶ workers
//
// A turn, in this order; what a turn decided is seen by nobody before the store has it:
//
//   1. controller_claim() for each claim, controller_leave(), controller_end(), _free(), _gone(),
//      controller_refused()
//   2. controller_tick()
//   3. controller_later() until it returns false: answers of claims that were put off
//   4. controller_changes(), and the store commits them
//   5. the answers leave
//   6. controller_publish()
//
// Times are unix milliseconds of cluster time; they never go back (a step back is taken as standing
// still). A gap of more than CONTROLLER_GAP_MS between events is taken as an outage. Control thread
// only.
#pragma once

#include <stdbool.h>
#include <stdint.h>

#include "dataplane/gate/claim.h"
#include "dataplane/gate/place.h"

#define CONTROLLER_GAP_MS 2000u // nothing heard for longer: the process stood still
#define CONTROLLER_AHEAD_MS 5000u // the threshold runs ahead by the slots expected within this
#define CONTROLLER_NEXT_MAX_S 10u // longest poll_after of `next`
#define CONTROLLER_GRACE_S 10u // floor waits for who was present a little longer than a slot does
#define CONTROLLER_LATER_MS 700u // after it was sent, a claim is put off no longer
#define CONTROLLER_CHANGES_MAX 32768u // changes in one turn; full: nothing begins or ends in it

struct controller;
struct pool;
struct pool_limits;

// What the configuration says about the room. A reload may change any of it.
struct controller_limits {
	uint32_t capacity; // sessions at once; 0: no limit
	uint32_t rate_count; // new people per rate_period_ms; 0: no limit
	uint32_t rate_period_ms; // of rate_count; up to a day
	uint32_t burst; // people; bucket depth; at least 1
	uint32_t session_s;
	uint32_t claim_s; // how long a turn waits to be taken
	bool sliding;
	bool direct; // newcomers may be admitted without a ticket while nobody waits
	uint32_t batch_count, batch_period_ms; // people in each period since the epoch; 0: no limit
	uint32_t inflow; // newcomers in each calendar minute; 0: no limit
};

// Hard bounds, fixed at creation; memory is 160 to 224 bytes for each session (hash tables are
// powers of two), 52 for each of the present, 32 for each of the left, 132 for each put off.
struct controller_bounds {
	uint32_t sessions_max; // sessions, and claimed ids kept; full: nobody is granted (counted)
	uint32_t present_max; // present visitors; full: the smallest keys are kept, and floor waits
			      // for the others
	uint32_t left_max; // tickets given back and not yet passed by floor
	uint32_t later_max; // claims put off at once; 0: every claim is answered at once
	uint64_t seed; // random, for the hash tables
};

// What must outlast the process. Collected between controller_changes() calls.
enum controller_change_kind {
	CONTROLLER_GRANTED = 1, // a session began: session, visitor, key, expires
	CONTROLLER_RENEWED, // session, visitor, expires
	CONTROLLER_ENDED, // session over: ended, expired or undone; its slot is free
	CONTROLLER_LEFT, // a ticket was given back: visitor, key; session 0
	CONTROLLER_FORGET, // of visitor nothing need be kept any more; always after its
			   // CONTROLLER_ENDED or, session 0, its CONTROLLER_LEFT
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
	uint64_t admitted_total; // grants, with those directly
	uint64_t direct_total, undone_total; // direct grants; of those, not delivered
	uint64_t lapsed_total, left_total, ended_total, expired_total;
	uint64_t overtakes_total; // grants before a present visitor of a smaller key, both holding
				  // a reservation; without one it cannot be
	uint64_t sessions_full_total, present_full_total, left_full_total; // bounds met
	uint64_t gaps_total; // outages noticed by the clock
	uint32_t batch_left, inflow_left; // people of this period, of anybody and of newcomers;
					  // UINT32_MAX: no limit
	uint32_t slot_ms; // length of a slot of the line now
	double yield; // observed share of the called that come
	double outflow; // tickets per second that the threshold passes, measured
	double admit_rate; // admissions per second over the last 10 s
};

// `line` stays the caller's and outlives the controller; it has begun (place_begin), and threshold
// and floor found in it are taken over (never lowered). Returns NULL when memory is short.
struct controller *controller_create(const struct controller_limits *limits,
	const struct controller_bounds *bounds, struct place_line *line, uint64_t now_ms);

// The limits that a pool has in place of a line, where several lines share them.
struct pool_limits controller_pool_limits(const struct controller_limits *limits);

// Accepts NULL.
void controller_destroy(struct controller *c);

// Go by other limits from now on; who is inside stays.
void controller_set_limits(
	struct controller *c, const struct controller_limits *limits, uint64_t now_ms);

// Share the slots and the rate of `pool` with the others that have joined it, besides keeping its
// own limits; who is inside holds slots of that pool from now on. NULL: with nobody, as at first.
//   priority, weight  as of pool_join()
// The pool outlives the controller, or is left before.
void controller_join(struct controller *c, struct pool *pool, uint32_t priority, uint32_t weight,
	uint64_t now_ms);

// Put back what the store knew, after a restart. Before the first tick.
//   change  CONTROLLER_GRANTED: a session, whose slot is taken until it expires (or a claimed id,
//           if it has expired); CONTROLLER_ENDED: a claimed id whose session is over;
//           CONTROLLER_LEFT: a ticket given back
// Returns false if sessions_max or left_max is reached, or the visitor or session is known already.
bool controller_restore(
	struct controller *c, const struct controller_change *change, uint64_t now_ms);

// Whether the line can be polled and granted: false while paused, closed, the store away, or claims
// refused. The claim windows stand still meanwhile and begin anew after. Renewals, ends and second
// claims are answered all the same. True after creation.
void controller_set_available(struct controller *c, bool available, uint64_t now_ms);

// Decide one claim of any answered kind. CLAIM_RENEW: a session that lives gets CLAIM_RENEWED with
// its end. The end is moved to a session from now if the origin asks (expires 0), or if the room is
// sliding and the pass presented is of the present end; who asks twice changes nothing. Else
// CLAIM_LAPSED.
//   session  a fresh random id, not 0, used if a session begins
//   answer   filled; request, generation and the like are copied from the claim
// Returns false if the claim is put off, because its turn is near: the answer comes from
// controller_later(), less than CONTROLLER_LATER_MS after claim->sent_ms. Never with
// bounds.later_max 0.
bool controller_claim(struct controller *c, const struct claim *claim, uint64_t session,
	uint64_t now_ms, struct claim_answer *answer);

// The next answer to a claim that was put off, with the worker that waits for it. Returns false
// when there are no more in this turn.
bool controller_later(
	struct controller *c, uint64_t now_ms, struct claim_answer *answer, uint8_t *worker);

// A claim was refused before it reached control (ring full, timed out): floor stays below `key` for
// twice poll_after.
void controller_refused(struct controller *c, uint64_t key, uint32_t poll_after, uint64_t now_ms);

// A direct grant was not delivered: session, id and slot are undone (its share of the rate is not).
// A called one keeps its session for the next poll.
void controller_gone(struct controller *c, uint64_t visitor, uint64_t session, uint64_t now_ms);

// A session is to end early. Returns true if there is such a session; it keeps its slot, and a
// second claim of its visitor gets CLAIM_LAPSED, until controller_free() says that every worker
// refuses its pass.
bool controller_end(struct controller *c, uint64_t session, uint64_t now_ms);
void controller_free(struct controller *c, uint64_t session, uint64_t now_ms);

// A ticket was given back; perhaps again.
//   key  with GATHER_NUMBER while its place is not drawn
// Returns false if that is not known of: it was used or has
// lapsed, or left_max is reached (it lapses instead).
bool controller_leave(struct controller *c, uint64_t key, uint64_t visitor, uint64_t now_ms);

// The key of a ticket that was given back before its place was drawn. Returns false while it is not
// drawn; *key is 0 if floor has passed all of its gathering.
typedef bool controller_drawn_fn(void *ctx, uint64_t number, uint64_t visitor, uint64_t *key);

// Tickets given back that have GATHER_NUMBER for a key get the one that was drawn for them: a
// bounded number; the rest at the next call. Before the threshold can enter their slots, so that
// none of them is called.
void controller_drawn(struct controller *c, controller_drawn_fn *key_of, void *ctx);

// The session that a visitor holds, and its end in *expires (unix s); 0: none.
uint64_t controller_session(struct controller *c, uint64_t visitor, uint32_t *expires);

// `release N`: call N more people than the limits would, now, as far as there are so many; capacity
// and rate still hold for the grants. While not available it waits until it is.
void controller_release(struct controller *c, uint64_t count, uint64_t now_ms);

// One turn: close slots, expire sessions and presences, move threshold and floor. Every 10 to 100
// ms. Work is bounded.
void controller_tick(struct controller *c, uint64_t now_ms);

// Write threshold, floor, open and the expected wait to the line's words. Last in a turn, after the
// store has what controller_changes() said.
//   hold  true: nothing will be granted now (PLACE_OPEN_HOLD)
void controller_publish(struct controller *c, bool hold, uint64_t now_ms);

// The changes since the last call, in order; valid until the next event. Returns how many.
uint32_t controller_changes(struct controller *c, const struct controller_change **changes);

// An event is over: whoever has a key below `key` waits no more, present or not; as far as there
// are keys that can be called. Who is inside stays.
void controller_lapse(struct controller *c, uint64_t key, uint64_t now_ms);

// People who are placed now were told to poll again by other rules than their place: allow for the
// longest poll_after there is.
void controller_forget_told(struct controller *c, uint64_t now_ms);

// How things stand at `now_ms`.
void controller_look(const struct controller *c, uint64_t now_ms, struct controller_view *view);
