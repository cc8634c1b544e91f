// A turn is one straight line: decide, collect, commit, and, once the store has it, answer and
// publish. With a store that completes later the line is cut in the middle; until then the turn is
// busy, takes nothing new, and answers wait in `answers`. So there is one batch in flight, and
// nothing to undo when it takes long: it is saved in the end, and answers that find nobody come
// back as CLAIM_GONE.
//
// Rooms are found by line id, so a claim that crosses a reload is charged to its own room or to
// none. Nothing is granted in a room (its controller is told that it is not available, its line
// says `hold`) while it is paused or closed, while the store is away or has no room for what would
// be granted, and for one session after a process that ended unsaved.

#include "controlplane/claims/claims.h"
#include "controlplane/claims/claims_answers.h"
#include "controlplane/claims/claims_endings.h"
#include "controlplane/claims/claims_given_up.h"
#include "controlplane/claims/claims_restore.h"
#include "controlplane/claims/claims_rooms.h"
#include "dataplane/gate/gather.h"

#include <assert.h>
#include <errno.h>
#include <stdlib.h>

typedef void decide_fn(struct claims *c, struct claims_rooms_entry *room, const struct claim *claim,
	uint64_t now_ms);

struct claims {
	struct claims_plan plan;
	struct claims_seams seams;
	struct store *store;
	struct ended *ended, *left;
	struct claims_counters counters;
	struct claims_rooms rooms;
	uint64_t now_ms; // of this turn
	uint64_t tick_ms, save_ms, sweep_s; // when last
	uint64_t quiet_until_ms; // the longest of the rooms'
	bool is_busy; // a batch is in flight
	bool is_away; // for longer than CLAIMS_HOLD_MS
	bool has_put; // something to save in this turn
	bool has_room; // the store does, for all that a turn may grant or take back
	bool has_restored;
	struct claims_endings endings;
	struct claims_answers answers;
	struct claims_given_up given_up;
};

struct claims *claims_create(const struct claims_plan *plan, struct store *store,
	const struct claims_sets *sets, const struct claims_seams *seams)
{
	assert(plan->workers_max <= CLAIMS_ANSWERS_WORKERS && plan->ended_max > 0);
	struct claims *c = calloc(1, sizeof(*c));
	if (!c)
		return NULL;
	c->plan = *plan;
	c->seams = *seams;
	c->store = store;
	c->ended = sets->ended;
	c->left = sets->left;
	if (!claims_rooms_init(&c->rooms, plan->rooms_max) ||
		!claims_endings_init(&c->endings, plan->ended_max)) {
		claims_destroy(c);
		return NULL;
	}
	return c;
}

void claims_destroy(struct claims *c)
{
	if (!c)
		return;
	claims_rooms_fini(&c->rooms);
	claims_endings_fini(&c->endings);
	free(c);
}

static struct claims_rooms_entry *room_of(struct claims *c, const struct claim *claim)
{
	struct claims_rooms_entry *entries = c->rooms.entries;
	if (claim->room < c->rooms.count && entries[claim->room].is.line_id == claim->line_id)
		return &entries[claim->room];
	c->counters.crossed++;
	return claims_rooms_find(&c->rooms, claim->line_id);
}

static bool put(struct claims *c, const struct store_record *record)
{
	bool is_put = store_put(c->store, record);
	// update_available() sees to it that what a turn grants, or takes back, fits.
	assert(is_put || record->kind != STORE_GRANTED);
	c->has_put = true;
	return is_put;
}

static bool is_answered(uint8_t kind)
{
	return kind == CLAIM_CALLED || kind == CLAIM_DIRECT || kind == CLAIM_RENEW ||
	       kind == CLAIM_LEAVE || kind == CLAIM_CODE || kind == CLAIM_MOVE;
}

static void ask(struct claims *c, struct claims_rooms_entry *room, const struct claim *claim,
	uint64_t now_ms)
{
	struct claim_answer *answer = claims_answers_add(&c->answers, claim, CLAIM_REFUSED);
	uint64_t session = c->seams.session_id(c->seams.ctx);
	if (!controller_claim(room->is.controller, claim, session, now_ms, answer))
		c->answers.count--; // put off: controller_later()
}

// Whether the worker has given up waiting, so that a grant would find nobody.
static bool is_late(struct claims *c, const struct claim *claim, uint64_t now_ms)
{
	bool is_late = now_ms > claim->sent_ms + CLAIMS_LATE_MS;
	c->counters.late += is_late;
	return is_late;
}

static void called(struct claims *c, struct claims_rooms_entry *room, const struct claim *claim,
	uint64_t now_ms)
{
	c->counters.called++;
	if (is_late(c, claim, now_ms))
		controller_refused(room->is.controller, claim->key, claim->poll_after, now_ms);
	else if (room->is.state == GATE_CLOSED)
		claims_answers_add(&c->answers, claim, CLAIM_CLOSED);
	else
		ask(c, room, claim, now_ms);
}

static void direct(struct claims *c, struct claims_rooms_entry *room, const struct claim *claim,
	uint64_t now_ms)
{
	c->counters.direct++;
	if (is_late(c, claim, now_ms))
		return;
	if (room->is.state == GATE_CLOSED)
		claims_answers_add(&c->answers, claim, CLAIM_CLOSED);
	else
		ask(c, room, claim, now_ms);
}

static void renew(struct claims *c, struct claims_rooms_entry *room, const struct claim *claim,
	uint64_t now_ms)
{
	c->counters.renew++;
	ask(c, room, claim, now_ms);
}

// A session is to end early. Refused from now on; its slot follows when all workers know. Returns
// false if the store has no room to be told, so that nothing has changed.
static bool end_session(struct claims *c, struct claims_rooms_entry *room,
	const struct claim *claim, uint64_t now_ms)
{
	c->counters.end++;
	if (ended_has(c->ended, claim->session) || claim->session == 0)
		return true; // sent again
	// It may have been renewed since the pass presented.
	uint32_t renewed = (uint32_t)(now_ms / 1000) + room->is.session_s + 1;
	uint32_t expires = claim->expires > renewed ? claim->expires : renewed;
	if (claims_endings_is_full(&c->endings) ||
		!ended_insert(c->ended, claim->session, expires)) {
		c->counters.ended_full++;
		return true; // it goes on to its end
	}
	struct store_ended ended = {claim->line_id, expires, claim->session};
	if (!put(c, &(struct store_record){.kind = STORE_ENDED, .ended = ended})) {
		ended_remove(c->ended, claim->session);
		return false;
	}
	if (controller_end(room->is.controller, claim->session, now_ms))
		claims_endings_add(&c->endings, claim->line_id, claim->session);
	return true;
}

static void end(struct claims *c, struct claims_rooms_entry *room, const struct claim *claim,
	uint64_t now_ms)
{
	end_session(c, room, claim, now_ms);
}

// A ticket given back is the place, or the session it was used for.
static bool give_back(struct claims *c, struct claims_rooms_entry *room, const struct claim *claim,
	uint64_t now_ms)
{
	if (controller_leave(room->is.controller, claim->key, claim->visitor, now_ms)) {
		c->counters.left_untold += !claims_restore_left(c->left, claim->visitor, now_ms);
		return true;
	}
	struct claim session = *claim;
	session.session = controller_session(room->is.controller, claim->visitor, &session.expires);
	if (session.session != 0)
		return end_session(c, room, &session, now_ms);
	c->counters.left_refused++;
	return true; // it is worth nothing, or lapses
}

static void leave(struct claims *c, struct claims_rooms_entry *room, const struct claim *claim,
	uint64_t now_ms)
{
	c->counters.leave++;
	struct claim_answer *answer = claims_answers_add(&c->answers, claim, CLAIM_REFUSED);
	if (!c->has_room)
		return;
	bool is_left = claim->key == 0 || give_back(c, room, claim, now_ms);
	if (claim->session != 0)
		is_left &= end_session(c, room, claim, now_ms);
	answer->verdict = is_left ? CLAIM_LEFT : CLAIM_REFUSED;
}

static void gone(struct claims *c, struct claims_rooms_entry *room, const struct claim *claim,
	uint64_t now_ms)
{
	c->counters.gone++;
	controller_gone(room->is.controller, claim->visitor, claim->session, now_ms);
}

// Returns false if what is to be saved does not fit.
static bool put_code(struct claims *c, const struct claim *claim, struct claim_answer *answer)
{
	struct store_record records[CLAIMS_CODE_RECORDS] = {0};
	const uint32_t count = c->seams.code(c->seams.ctx, claim, c->now_ms, answer, records);
	bool fits = true;
	for (uint32_t i = 0; i < count; i++)
		fits &= put(c, &records[i]);
	return fits;
}

static void code_gone(struct claims *c, struct claims_rooms_entry *room, const struct claim *claim,
	uint64_t now_ms)
{
	(void)room;
	(void)now_ms;
	c->counters.codes_undone++;
	put_code(c, claim, NULL);
	claims_given_up_add(&c->given_up, claim->expires, claim->place, claim->visitor);
}

// What an answer gives that does not leave, or did not arrive.
static void undo_code(struct claims *c, const struct claim_answer *answer)
{
	const struct claim claim = {.kind = CLAIM_CODE_GONE,
		.key = answer->session,
		.session = answer->digest,
		.visitor = answer->visitor,
		.expires = answer->lane_id,
		.place =
			answer->key | (answer->expires & CLAIM_PLACE_GATHERED ? GATHER_NUMBER : 0)};
	if (!(answer->expires & CLAIM_PLACE_AGAIN))
		code_gone(c, NULL, &claim, 0);
}

// Codes and links: a place in a lane. The one that was held is given up when the store has the new
// one, so that nobody is ever without.
static void code(struct claims *c, struct claims_rooms_entry *room, const struct claim *claim,
	uint64_t now_ms)
{
	(void)room;
	const bool is_code = claim->kind == CLAIM_CODE;
	c->counters.codes += is_code;
	c->counters.moves += !is_code;
	if (is_late(c, claim, now_ms))
		return;
	struct claim_answer *answer = claims_answers_add(&c->answers, claim, CLAIM_REFUSED);
	if (!c->has_room || c->store->status.is_unsaved) {
		c->counters.codes_refused += is_code;
	} else if (!put_code(c, claim, answer)) {
		undo_code(c, answer);
		answer->verdict = CLAIM_REFUSED;
	}
	if (answer->verdict != CLAIM_HONOURED)
		return;
	c->counters.codes_honoured += is_code;
	claims_given_up_add(&c->given_up, claim->expires, claim->place, claim->visitor);
}

static void passed(struct claims *c, struct claims_rooms_entry *room, const struct claim *claim,
	uint64_t now_ms)
{
	(void)claim;
	(void)now_ms;
	c->counters.passed++;
	room->passed++;
}

static void decide(struct claims *c, const struct claim *claim, uint64_t now_ms)
{
	static decide_fn *const by_kind[] = {
		[CLAIM_CALLED] = called,
		[CLAIM_DIRECT] = direct,
		[CLAIM_RENEW] = renew,
		[CLAIM_END] = end,
		[CLAIM_LEAVE] = leave,
		[CLAIM_GONE] = gone,
		[CLAIM_PASSED] = passed,
		[CLAIM_CODE] = code,
		[CLAIM_CODE_GONE] = code_gone,
		[CLAIM_MOVE] = code,
	};
	assert(claim->worker < c->plan.workers_max);
	assert(claim->kind > 0 && claim->kind <= CLAIM_MOVE);
	struct claims_rooms_entry *room = room_of(c, claim);
	if (room) {
		room->is_touched = true;
		by_kind[claim->kind](c, room, claim, now_ms);
		return;
	}
	c->counters.unknown_room++;
	if (is_answered(claim->kind))
		claims_answers_add(&c->answers, claim, CLAIM_REFUSED);
}

// Give on the slots of sessions whose passes every worker refuses now.
static void free_ended(struct claims *c, uint64_t now_ms)
{
	struct claims_endings_entry ending;
	while (claims_endings_take(&c->endings, &c->seams, &ending)) {
		struct claims_rooms_entry *room = claims_rooms_find(&c->rooms, ending.line_id);
		if (!room)
			continue; // the reload that took the room took its slots
		room->is_touched = true;
		controller_free(room->is.controller, ending.session, now_ms);
		c->counters.freed++;
	}
}

// Tell the controllers that may not grant, or may again.
static void update_available(struct claims *c, uint64_t now_ms)
{
	c->has_room = c->store->status.free_count >= CLAIMS_ANSWERS_MAX;
	for (uint32_t i = 0; i < c->rooms.count; i++) {
		struct claims_rooms_entry *room = &c->rooms.entries[i];
		bool is_available = room->is.state == GATE_OPEN && !room->is.is_still &&
				    c->has_room && !c->is_away && now_ms >= room->quiet_until_ms;
		if (is_available == room->is_available)
			continue;
		room->is_available = is_available;
		room->is_touched = true;
		controller_set_available(room->is.controller, is_available, now_ms);
	}
}

static void tick(struct claims *c, uint64_t now_ms)
{
	c->tick_ms = now_ms;
	for (uint32_t i = 0; i < c->rooms.count; i++) {
		struct claims_rooms_entry *room = &c->rooms.entries[i];
		room->is_touched = true;
		controller_tick(room->is.controller, now_ms);
	}
	if (c->store->status.is_unclean && now_ms >= c->quiet_until_ms)
		store_settle(c->store);
	if (c->sweep_s != now_ms / 1000) {
		c->sweep_s = now_ms / 1000;
		ended_sweep(c->ended, (uint32_t)c->sweep_s);
		ended_sweep(c->left, (uint32_t)c->sweep_s);
	}
}

static void collect_room(struct claims *c, struct claims_rooms_entry *room)
{
	static const uint8_t kinds[] = {
		[CONTROLLER_GRANTED] = STORE_GRANTED,
		[CONTROLLER_RENEWED] = STORE_RENEWED,
		[CONTROLLER_ENDED] = STORE_OVER,
		[CONTROLLER_LEFT] = STORE_GRANTED, // to no session
		[CONTROLLER_FORGET] = STORE_FORGOTTEN,
	};
	const struct controller_change *changes;
	uint32_t count = controller_changes(room->is.controller, &changes);
	for (uint32_t i = 0; i < count; i++) {
		const struct controller_change *change = &changes[i];
		assert(change->kind <= CONTROLLER_FORGET);
		if (change->kind == CONTROLLER_FORGET && change->session == 0)
			ended_remove(c->left, change->visitor); // floor says so from now on
		put(c, &(struct store_record){.kind = kinds[change->kind],
			       .session = {.line_id = room->is.line_id,
				       .expires = change->expires,
				       .visitor = change->visitor,
				       .session = change->session,
				       .key = change->key,
				       .is_over = change->kind == CONTROLLER_LEFT}});
	}
}

static void collect_line(struct claims *c, struct claims_rooms_entry *room)
{
	uint64_t threshold = room->is.line->threshold, floor = room->is.line->floor;
	if (threshold == room->saved_threshold && floor == room->saved_floor)
		return;
	room->saved_threshold = threshold;
	room->saved_floor = floor;
	put(c, &(struct store_record){
		       .kind = STORE_LINE, .line = {room->is.line_id, threshold, floor}});
}

// Everything this turn has to save. What moves all the time rides along once a second.
static void collect(struct claims *c, uint64_t now_ms)
{
	bool is_save_due = now_ms - c->save_ms >= CLAIMS_SAVE_MS;
	for (uint32_t i = 0; i < c->rooms.count; i++) {
		struct claims_rooms_entry *room = &c->rooms.entries[i];
		if (room->is_touched)
			collect_room(c, room);
		if (is_save_due)
			collect_line(c, room);
	}
	if (!is_save_due || !c->has_put)
		return;
	c->save_ms = now_ms;
	put(c, &(struct store_record){.kind = STORE_CLOCK, .clock = {now_ms}});
}

static void undelivered(void *ctx, const struct claim_answer *answer)
{
	struct claims *c = ctx;
	c->counters.undelivered++;
	struct claims_rooms_entry *room = claims_rooms_find(&c->rooms, answer->line_id);
	if (room && answer->kind == CLAIM_DIRECT && answer->verdict == CLAIM_GRANTED)
		controller_gone(room->is.controller, answer->visitor, answer->session, c->now_ms);
	if (answer->verdict == CLAIM_HONOURED && (answer->expires & CLAIM_PLACE_NOBODYS))
		undo_code(c, answer); // else its holder asks again
}

// A code is honoured when that is saved, or not at all.
static void take_back_codes(struct claims *c)
{
	c->given_up.count = 0;
	for (uint32_t i = 0; i < c->answers.count; i++) {
		struct claim_answer *answer = &c->answers.answers[i];
		if (answer->verdict != CLAIM_HONOURED)
			continue;
		undo_code(c, answer);
		answer->verdict = CLAIM_REFUSED;
	}
}

static void publish(struct claims *c, uint64_t now_ms)
{
	for (uint32_t i = 0; i < c->rooms.count; i++) {
		struct claims_rooms_entry *room = &c->rooms.entries[i];
		if (room->is_touched)
			controller_publish(room->is.controller, !room->is_available, now_ms);
		room->is_touched = false;
	}
}

// The store has the batch, or has said that it keeps it in memory.
static void finish(struct claims *c, uint64_t now_ms)
{
	uint32_t granted = claims_answers_granted(&c->answers);
	c->counters.granted += granted;
	if (c->store->status.is_unsaved) {
		c->counters.granted_unsaved += granted;
		take_back_codes(c);
	} else {
		c->counters.moved += c->given_up.count;
	}
	c->is_busy = c->has_put = false;
	claims_answers_deliver(&c->answers, &c->seams, undelivered, c);
	publish(c, now_ms);
	claims_given_up_leave(&c->given_up, &c->rooms, c->left, &c->counters, now_ms);
}

// The store has not said anything yet.
static void wait_for_store(struct claims *c, uint64_t now_ms)
{
	if (c->is_away || now_ms - c->store->status.pending_since_ms <= CLAIMS_HOLD_MS)
		return;
	c->is_away = true;
	update_available(c, now_ms);
	publish(c, now_ms);
}

void claims_set_rooms(struct claims *c, const struct claims_room *rooms, uint32_t count)
{
	assert(!claims_is_busy(c));
	claims_rooms_set(&c->rooms, rooms, count, c->quiet_until_ms);
}

bool claims_set_state(struct claims *c, uint32_t line_id, uint8_t state, bool is_still)
{
	struct claims_rooms_entry *room = claims_rooms_find(&c->rooms, line_id);
	if (!room)
		return false;
	room->is.state = state; // its controller hears of it with the next turn
	room->is.is_still = is_still;
	return true;
}

bool claims_set_session(struct claims *c, uint32_t line_id, uint32_t session_s)
{
	struct claims_rooms_entry *room = claims_rooms_find(&c->rooms, line_id);
	if (!room)
		return false;
	room->is.session_s = session_s;
	return true;
}

// Nobody new until every pass of the room that nobody knows has expired, on a full second.
static void be_quiet(struct claims *c, struct claims_rooms_entry *room, uint64_t now_ms)
{
	room->quiet_until_ms = (now_ms + room->is.session_s * 1000ull + 999) / 1000 * 1000;
	if (room->quiet_until_ms > c->quiet_until_ms)
		c->quiet_until_ms = room->quiet_until_ms;
}

// The process before this one ended unsaved. If sessions were longer then than any is now, it takes
// until the last unknown pass has expired.
static void be_quiet_after_unclean(struct claims *c)
{
	uint64_t until_ms = c->store->status.unclean_until * 1000ull;
	if (until_ms <= c->quiet_until_ms)
		return;
	c->quiet_until_ms = until_ms;
	for (uint32_t i = 0; i < c->rooms.count; i++)
		c->rooms.entries[i].quiet_until_ms = until_ms;
}

int claims_restore(struct claims *c, uint64_t now_ms)
{
	struct claims_restore restore = {
		&c->rooms, c->store, c->ended, c->left, &c->counters, now_ms};
	const struct store_status *status = store_poll(c->store, now_ms);
	// What is kept in memory is not seen. Before the first restore there is none for a room.
	bool is_unclean = c->has_restored ? status->is_unsaved : status->is_unclean;
	for (uint32_t i = 0; i < c->rooms.count; i++) {
		struct claims_rooms_entry *room = &c->rooms.entries[i];
		if (!room->is_restored && is_unclean)
			be_quiet(c, room, now_ms);
	}
	int ret = claims_restore_sessions(&restore);
	if (ret < 0 || c->has_restored)
		return ret;
	c->has_restored = true;
	if (is_unclean)
		be_quiet_after_unclean(c);
	return claims_restore_ended(&restore);
}

bool claims_is_busy(const struct claims *c)
{
	return c->is_busy || c->store->status.is_pending;
}

void claims_turn(struct claims *c, const struct claim *claims, uint32_t count, uint64_t now_ms)
{
	assert(count <= CLAIMS_TURN_MAX);
	assert(count == 0 || !claims_is_busy(c));
	c->counters.turns++;
	c->now_ms = now_ms;
	const struct store_status *status = store_poll(c->store, now_ms);
	if (status->is_pending) {
		wait_for_store(c, now_ms);
		return;
	}
	if (c->is_busy)
		finish(c, now_ms);
	c->is_away = false;
	update_available(c, now_ms);
	free_ended(c, now_ms);
	for (uint32_t i = 0; i < count; i++)
		decide(c, &claims[i], now_ms);
	claims_endings_seal(&c->endings, &c->seams);
	if (now_ms - c->tick_ms >= CLAIMS_TICK_MS)
		tick(c, now_ms);
	claims_answers_later(&c->answers, &c->rooms, now_ms);
	collect(c, now_ms);
	store_begin(c->store, now_ms);
	status = store_poll(c->store, now_ms);
	c->is_busy = status->is_pending;
	if (!c->is_busy)
		finish(c, now_ms);
}

void claims_refused(
	struct claims *c, uint32_t line_id, uint64_t key, uint32_t poll_after, uint64_t now_ms)
{
	struct claims_rooms_entry *room = claims_rooms_find(&c->rooms, line_id);
	if (room)
		controller_refused(room->is.controller, key, poll_after, now_ms);
}

uint64_t claims_passed(const struct claims *c, uint32_t line_id)
{
	const struct claims_rooms_entry *room = claims_rooms_find(&c->rooms, line_id);
	return room ? room->passed : 0;
}

uint64_t claims_quiet_until(const struct claims *c, uint32_t line_id)
{
	const struct claims_rooms_entry *room = claims_rooms_find(&c->rooms, line_id);
	return room && c->now_ms < room->quiet_until_ms ? room->quiet_until_ms : 0;
}

const struct claims_counters *claims_counters(const struct claims *c)
{
	return &c->counters;
}
