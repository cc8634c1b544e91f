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
#include "controlplane/claims/claims_rooms.h"

#include <assert.h>
#include <errno.h>
#include <stdlib.h>

#define WORKERS_MAX 256u // claim.worker is a byte

typedef void decide_fn(struct claims *c, struct claims_rooms_entry *room, const struct claim *claim,
	uint64_t now_ms);

// A session that ended early and keeps its slot until all workers refuse its pass.
struct ending {
	uint64_t session;
	uint64_t token; // of the barrier
	uint32_t line_id;
};

struct claims {
	struct claims_plan plan;
	struct claims_seams seams;
	struct store *store;
	struct ended *ended;
	struct claims_counters counters;
	struct claims_rooms rooms;
	uint64_t tick_ms, save_ms, sweep_s; // when last
	uint64_t quiet_until_ms; // the longest of the rooms'
	bool is_busy; // a batch is in flight
	bool is_away; // for longer than CLAIMS_HOLD_MS
	bool is_held; // as the rooms know it
	bool has_put; // something to save in this turn
	bool has_restored;

	// Endings that wait for the barrier, oldest first, in a ring of plan.ended_max; the numbers
	// run on. Those before `sealed` have their token.
	uint64_t endings_first, endings_sealed, endings_end;
	struct ending *endings;

	uint32_t answer_count;
	uint8_t answer_workers[CLAIMS_TURN_MAX];
	struct claim_answer answers[CLAIMS_TURN_MAX]; // in the order of claims
	struct claim_answer by_worker[CLAIMS_TURN_MAX];
};

uint32_t claims_records(const struct claims_plan *plan, uint64_t sessions_total)
{
	// Each visitor that the store knows and that must be forgotten, and each that is known now;
	// ended sessions; line and room each; history. A quarter is for grants only, and a turn's
	// worth of them must fit into it.
	uint64_t records = 2 * sessions_total + plan->ended_max + 2 * (uint64_t)plan->rooms_max +
			   STORE_HISTORY_MAX + SECRETS_RECORDS;
	records = records * 4 / 3 + 4 * CLAIMS_TURN_MAX;
	return records < 1u << 29 ? (uint32_t)records : 1u << 29;
}

struct claims *claims_create(const struct claims_plan *plan, struct store *store,
	struct ended *ended, const struct claims_seams *seams)
{
	assert(plan->workers_max <= WORKERS_MAX && plan->ended_max > 0);
	struct claims *c = calloc(1, sizeof(*c));
	if (!c)
		return NULL;
	c->plan = *plan;
	c->seams = *seams;
	c->store = store;
	c->ended = ended;
	c->endings = calloc(plan->ended_max, sizeof(*c->endings));
	if (!claims_rooms_init(&c->rooms, plan->rooms_max) || !c->endings) {
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
	free(c->endings);
	free(c);
}

static struct claims_rooms_entry *room_of(struct claims *c, const struct claim *claim)
{
	struct claims_rooms_entry *room = &c->rooms.entries[claim->room];
	if (claim->room < c->rooms.count && room->is.line_id == claim->line_id)
		return room;
	c->counters.crossed++;
	return claims_rooms_find(&c->rooms, claim->line_id);
}

static void put(struct claims *c, const struct store_record *record)
{
	bool is_put = store_put(c->store, record);
	// is_held sees to it that a turn's grants fit.
	assert(is_put || record->kind != STORE_GRANTED);
	c->has_put = true;
}

static struct claim_answer *answer_add(
	struct claims *c, const struct claim *claim, enum claim_verdict verdict)
{
	assert(c->answer_count < CLAIMS_TURN_MAX);
	c->answer_workers[c->answer_count] = claim->worker;
	struct claim_answer *answer = &c->answers[c->answer_count++];
	*answer = (struct claim_answer){
		.verdict = (uint8_t)verdict,
		.kind = claim->kind,
		.room = claim->room,
		.request = claim->request,
		.generation = claim->generation,
		.poll_after = claim->poll_after,
		.key = claim->key,
		.visitor = claim->visitor,
		.line_id = claim->line_id,
	};
	return answer;
}

static bool is_answered(uint8_t kind)
{
	return kind == CLAIM_CALLED || kind == CLAIM_DIRECT || kind == CLAIM_RENEW;
}

static void ask(struct claims *c, struct claims_rooms_entry *room, const struct claim *claim,
	uint64_t now_ms)
{
	struct claim_answer *answer = answer_add(c, claim, CLAIM_REFUSED);
	controller_claim(room->is.controller, claim, c->seams.session_id(c->seams.ctx), now_ms,
		answer);
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
		answer_add(c, claim, CLAIM_CLOSED);
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
		answer_add(c, claim, CLAIM_CLOSED);
	else
		ask(c, room, claim, now_ms);
}

static void renew(struct claims *c, struct claims_rooms_entry *room, const struct claim *claim,
	uint64_t now_ms)
{
	c->counters.renew++;
	ask(c, room, claim, now_ms);
}

// A session is to end early. Refused from now on; its slot follows when all workers know.
static void end(struct claims *c, struct claims_rooms_entry *room, const struct claim *claim,
	uint64_t now_ms)
{
	c->counters.end++;
	if (ended_has(c->ended, claim->session) || claim->session == 0)
		return; // sent again
	// A pass that slides may have been renewed since the one presented.
	uint32_t expires = claim->expires;
	uint32_t renewed = (uint32_t)(now_ms / 1000) + room->is.session_s + 1;
	if (room->is.sliding && renewed > expires)
		expires = renewed;
	if (c->endings_end - c->endings_first == c->plan.ended_max ||
		!ended_insert(c->ended, claim->session, expires)) {
		c->counters.ended_full++;
		return;
	}
	put(c, &(struct store_record){.kind = STORE_ENDED,
		       .ended = {claim->line_id, expires, claim->session}});
	if (controller_end(room->is.controller, claim->session, now_ms))
		c->endings[c->endings_end++ % c->plan.ended_max] =
			(struct ending){claim->session, 0, claim->line_id};
}

static void leave(struct claims *c, struct claims_rooms_entry *room, const struct claim *claim,
	uint64_t now_ms)
{
	c->counters.leave++;
	bool is_left = controller_leave(room->is.controller, claim->key, claim->visitor, now_ms);
	c->counters.left_full += !is_left;
}

static void gone(struct claims *c, struct claims_rooms_entry *room, const struct claim *claim,
	uint64_t now_ms)
{
	c->counters.gone++;
	controller_gone(room->is.controller, claim->visitor, claim->session, now_ms);
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
	};
	assert(claim->worker < c->plan.workers_max);
	assert(claim->kind > 0 && claim->kind <= CLAIM_PASSED);
	struct claims_rooms_entry *room = room_of(c, claim);
	if (room) {
		room->is_touched = true;
		by_kind[claim->kind](c, room, claim, now_ms);
		return;
	}
	c->counters.unknown_room++;
	if (is_answered(claim->kind))
		answer_add(c, claim, CLAIM_REFUSED);
}

// Give on the slots of sessions whose passes every worker refuses now.
static void endings_free(struct claims *c, uint64_t now_ms)
{
	bool is_passed = false;
	uint64_t token = 0; // the last one known to be passed, if is_passed
	for (; c->endings_first < c->endings_sealed; c->endings_first++) {
		const struct ending *ending = &c->endings[c->endings_first % c->plan.ended_max];
		if (!is_passed || token != ending->token) {
			token = ending->token;
			is_passed = c->seams.barrier_passed(c->seams.ctx, token);
		}
		if (!is_passed)
			return;
		struct claims_rooms_entry *room = claims_rooms_find(&c->rooms, ending->line_id);
		if (!room)
			continue; // the reload that took the room took its slots
		room->is_touched = true;
		controller_free(room->is.controller, ending->session, now_ms);
		c->counters.freed++;
	}
}

static void endings_seal(struct claims *c)
{
	if (c->endings_sealed == c->endings_end)
		return;
	uint64_t token = c->seams.barrier_begin(c->seams.ctx);
	for (; c->endings_sealed < c->endings_end; c->endings_sealed++)
		c->endings[c->endings_sealed % c->plan.ended_max].token = token;
}

static void room_update_available(
	const struct claims *c, struct claims_rooms_entry *room, uint64_t now_ms)
{
	bool is_available = room->is.state == GATE_OPEN && !c->is_held &&
			    now_ms >= room->quiet_until_ms;
	if (is_available == room->is_available)
		return;
	room->is_available = is_available;
	controller_set_available(room->is.controller, is_available, now_ms);
}

// Whether anything may be granted at all.
static void hold_update(struct claims *c, uint64_t now_ms)
{
	bool has_room = c->store->status.free_count >= CLAIMS_TURN_MAX;
	bool is_held = c->is_away || !has_room;
	if (is_held == c->is_held)
		return;
	c->is_held = is_held;
	for (uint32_t i = 0; i < c->rooms.count; i++)
		room_update_available(c, &c->rooms.entries[i], now_ms);
}

static void tick(struct claims *c, uint64_t now_ms)
{
	c->tick_ms = now_ms;
	for (uint32_t i = 0; i < c->rooms.count; i++) {
		struct claims_rooms_entry *room = &c->rooms.entries[i];
		room->is_touched = true;
		room_update_available(c, room, now_ms);
		controller_tick(room->is.controller, now_ms);
	}
	if (c->store->status.is_unclean && now_ms >= c->quiet_until_ms)
		store_settle(c->store);
	if (c->sweep_s != now_ms / 1000) {
		c->sweep_s = now_ms / 1000;
		ended_sweep(c->ended, (uint32_t)c->sweep_s);
	}
}

static void collect_room(struct claims *c, struct claims_rooms_entry *room)
{
	static const uint8_t kinds[] = {
		[CONTROLLER_GRANTED] = STORE_GRANTED,
		[CONTROLLER_RENEWED] = STORE_RENEWED,
		[CONTROLLER_ENDED] = STORE_OVER,
		[CONTROLLER_FORGET] = STORE_FORGOTTEN,
	};
	const struct controller_change *changes;
	uint32_t count = controller_changes(room->is.controller, &changes);
	for (uint32_t i = 0; i < count; i++) {
		const struct controller_change *change = &changes[i];
		assert(change->kind <= CONTROLLER_FORGET);
		put(c, &(struct store_record){.kind = kinds[change->kind],
			       .session = {room->is.line_id, change->expires, change->visitor,
				       change->session, change->key}});
	}
}

static void collect_line(struct claims *c, struct claims_rooms_entry *room)
{
	uint64_t threshold = room->is.line->threshold, floor = room->is.line->floor;
	if (threshold == room->saved_threshold && floor == room->saved_floor)
		return;
	room->saved_threshold = threshold;
	room->saved_floor = floor;
	put(c, &(struct store_record){.kind = STORE_LINE,
		       .line = {room->is.line_id, threshold, floor}});
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

static void answer_undelivered(
	struct claims *c, const struct claim_answer *answer, uint64_t now_ms)
{
	c->counters.undelivered++;
	struct claims_rooms_entry *room = claims_rooms_find(&c->rooms, answer->line_id);
	if (room && answer->verdict == CLAIM_GRANTED)
		controller_gone(room->is.controller, answer->visitor, answer->session, now_ms);
}

// Hand the answers out, one burst a worker.
static void deliver(struct claims *c, uint64_t now_ms)
{
	uint32_t begin[WORKERS_MAX + 1] = {0}, at[WORKERS_MAX];
	for (uint32_t i = 0; i < c->answer_count; i++)
		begin[c->answer_workers[i] + 1]++;
	for (uint32_t worker = 0; worker < WORKERS_MAX; worker++) {
		at[worker] = begin[worker];
		begin[worker + 1] += begin[worker];
	}
	for (uint32_t i = 0; i < c->answer_count; i++)
		c->by_worker[at[c->answer_workers[i]]++] = c->answers[i];
	for (uint32_t worker = 0; worker < WORKERS_MAX; worker++) {
		uint32_t count = begin[worker + 1] - begin[worker];
		const struct claim_answer *answers = &c->by_worker[begin[worker]];
		uint32_t taken =
			count ? c->seams.answer(c->seams.ctx, worker, answers, count) : 0;
		assert(taken <= count);
		for (uint32_t i = taken; i < count; i++)
			answer_undelivered(c, &answers[i], now_ms);
	}
	c->answer_count = 0;
}

static void count_granted(struct claims *c)
{
	uint64_t granted = 0;
	for (uint32_t i = 0; i < c->answer_count; i++)
		granted += c->answers[i].verdict == CLAIM_GRANTED;
	c->counters.granted += granted;
	if (c->store->status.is_unsaved)
		c->counters.granted_unsaved += granted;
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
	c->is_busy = false;
	c->is_away = false;
	c->has_put = false;
	count_granted(c);
	deliver(c, now_ms);
	publish(c, now_ms);
}

// The store has not said anything yet.
static void wait_for_store(struct claims *c, uint64_t now_ms)
{
	if (c->is_away || now_ms - c->store->status.pending_since_ms <= CLAIMS_HOLD_MS)
		return;
	c->is_away = true;
	hold_update(c, now_ms);
	for (uint32_t i = 0; i < c->rooms.count; i++)
		controller_publish(c->rooms.entries[i].is.controller, true, now_ms);
}

bool claims_is_busy(const struct claims *c)
{
	return c->is_busy;
}

void claims_turn(struct claims *c, const struct claim *claims, uint32_t count, uint64_t now_ms)
{
	assert(count <= CLAIMS_TURN_MAX);
	assert(count == 0 || !c->is_busy);
	c->counters.turns++;
	const struct store_status *status = store_poll(c->store, now_ms);
	if (c->is_busy && status->is_pending) {
		wait_for_store(c, now_ms);
		return;
	}
	if (c->is_busy)
		finish(c, now_ms);
	hold_update(c, now_ms);
	endings_free(c, now_ms);
	for (uint32_t i = 0; i < count; i++)
		decide(c, &claims[i], now_ms);
	endings_seal(c);
	if (now_ms - c->tick_ms >= CLAIMS_TICK_MS)
		tick(c, now_ms);
	collect(c, now_ms);
	store_begin(c->store, now_ms);
	status = store_poll(c->store, now_ms);
	c->is_busy = status->is_pending;
	if (!c->is_busy)
		finish(c, now_ms);
}
