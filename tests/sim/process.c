// The process: turns of control in the order that controller.h gives, a store that keeps what was
// committed, and the ways in which both come to grief.

#include "tests/sim/process.h"

#include <stddef.h>

#include "tests/sim/world.h"

#define ANSWER_MS 1u // from control to the worker
#define DOWN_MAX_MS 20000u
#define BARRIER_TURNS 2u // until every worker refuses the pass of a session that ended early
#define RETRY_MS 3000u // after a connection that broke

static uint64_t now(const struct world *w)
{
	return world_cluster_ms(w);
}

static void start_room(struct world *w, struct world_room *room)
{
	const struct world_share *share = &w->plan.shares[room - w->rooms];
	check_time(&room->check, now(w));
	place_begin(room->line, now(w) / PLACE_SLOT_MS);
	room->controller =
		controller_create(&room->check.limits, &w->plan.bounds, room->line, now(w));
	CHECK(&room->check, room->controller);
	if (w->pool)
		controller_join(room->controller, w->pool, share->priority, share->weight, now(w));
}

void process_start(struct world *w)
{
	if (w->room_count > 1)
		w->pool = pool_create(&w->shared.limits, now(w));
	for (uint32_t i = 0; i < w->room_count; i++)
		start_room(w, &w->rooms[i]);
	for (uint32_t i = 0; i < w->visitor_max; i++) {
		struct world_room *room = w->visitors[i].room;
		if (w->store[i].kind != 0)
			CHECK(&room->check,
				controller_restore(room->controller, &w->store[i], now(w)));
	}
	for (uint32_t i = 0; i < w->room_count; i++)
		controller_set_available(w->rooms[i].controller, w->available, now(w));
	for (uint32_t i = 0; i < w->ending_count; i++) { // their passes are refused still
		controller_end(w->ending[i].room->controller, w->ending[i].session, now(w));
		w->ending[i].turn = w->turns;
	}
	w->is_up = true;
	w->generation++;
	world_at(w, 1, WORLD_TURN, 0, 0, (uint32_t)w->generation);
}

// --- a turn

static void keep_answer(
	struct world *w, const struct claim *claim, const struct claim_answer *answer)
{
	check_answer(&w->rooms[answer->room].check, claim, answer);
	if (answer->verdict == CLAIM_GRANTED && answer->kind == CLAIM_DIRECT)
		w->direct++;
	w->answers[w->answer_count++] = *answer;
}

static void decide(struct world *w, const struct claim *claim)
{
	struct world_room *room = &w->rooms[claim->room];
	struct claim_answer answer;
	const uint64_t session = world_random(w, UINT64_MAX - 1) + 1;
	switch (claim->kind) {
	case CLAIM_LEAVE:
		if (controller_leave(room->controller, claim->key, claim->visitor, now(w)))
			check_left(&room->check, claim->visitor);
		return;
	case CLAIM_END:
		if (!controller_end(room->controller, claim->session, now(w)))
			return;
		check_ended(&room->check, claim->session);
		w->ending[w->ending_count++] =
			(struct world_ending){room, claim->session, w->turns};
		return;
	case CLAIM_GONE:
		check_undone(&room->check, claim->session);
		controller_gone(room->controller, claim->visitor, claim->session, now(w));
		return;
	default:
		if (controller_claim(room->controller, claim, session, now(w), &answer))
			keep_answer(w, claim, &answer);
		else
			w->later++;
	}
}

// Every worker has passed a quiescent state since.
static void free_ended(struct world *w)
{
	uint32_t kept = 0;
	for (uint32_t i = 0; i < w->ending_count; i++) {
		if (w->ending[i].turn + BARRIER_TURNS > w->turns) {
			w->ending[kept++] = w->ending[i];
			continue;
		}
		struct world_room *room = w->ending[i].room;
		check_freed(&room->check, w->ending[i].session);
		controller_free(room->controller, w->ending[i].session, now(w));
	}
	w->ending_count = kept;
}

static uint32_t answer_later_ones(struct world *w, struct world_room *room)
{
	struct claim_answer answer;
	uint8_t worker;
	uint32_t count = 0;
	while (controller_later(room->controller, now(w), &answer, &worker)) {
		const struct claim claim = {.kind = answer.kind,
			.key = answer.key,
			.visitor = answer.visitor,
			.request = answer.request,
			.generation = answer.generation};
		CHECK(&room->check, worker == 0);
		keep_answer(w, &claim, &answer);
		count++;
	}
	return count;
}

static void commit(struct world *w, struct world_room *room)
{
	const struct controller_change *changes;
	const uint32_t count = controller_changes(room->controller, &changes);
	for (uint32_t i = 0; i < count; i++) {
		struct controller_change *record = &w->store[world_who(changes[i].visitor)];
		check_change(&room->check, &changes[i]);
		CHECK(&room->check,
			record->kind != CONTROLLER_LEFT || changes[i].kind == CONTROLLER_FORGET);
		*record = changes[i];
		if (changes[i].kind == CONTROLLER_RENEWED)
			record->kind = CONTROLLER_GRANTED;
		if (changes[i].kind == CONTROLLER_FORGET)
			record->kind = 0;
		w->granted += changes[i].kind == CONTROLLER_GRANTED;
	}
}

static bool crash_now(struct world *w, enum world_crash at)
{
	if (w->crash_at != at)
		return false;
	process_crash(w);
	return true;
}

static void tick_room(struct world *w, struct world_room *room)
{
	if (room->refused_key != UINT64_MAX)
		controller_refused(
			room->controller, room->refused_key, room->refused_poll_after, now(w));
	room->refused_key = UINT64_MAX;
	room->refused_poll_after = 0;
}

// Whose turn it is may be in another room: until nobody is answered any more.
static void answer_later_ones_of_all(struct world *w)
{
	for (uint32_t answered = 1; answered > 0;) {
		answered = 0;
		for (uint32_t i = 0; i < w->room_count; i++)
			answered += answer_later_ones(w, &w->rooms[i]);
	}
}

static void publish(struct world *w)
{
	for (uint32_t i = 0; i < w->answer_count; i++)
		world_deliver(w, ANSWER_MS, &w->answers[i]);
	for (uint32_t i = 0; i < w->room_count; i++) {
		controller_publish(w->rooms[i].controller, false, now(w));
		check_words(&w->rooms[i].check, w->rooms[i].line);
	}
}

void process_turn(struct world *w, uint32_t generation)
{
	if (!w->is_up || generation != (uint32_t)w->generation)
		return;
	world_at(w, w->plan.turn_ms, WORLD_TURN, 0, 0, generation);
	for (uint32_t i = 0; i < w->room_count; i++)
		check_time(&w->rooms[i].check, now(w));
	w->turns++;
	w->answer_count = 0;
	for (uint32_t i = 0; i < w->ring_count; i++)
		decide(w, &w->ring[i]);
	w->ring_count = 0;
	for (uint32_t i = 0; i < w->room_count; i++)
		tick_room(w, &w->rooms[i]);
	free_ended(w);
	// Now and then the clock seems to go back.
	for (uint32_t i = 0; i < w->room_count; i++)
		controller_tick(w->rooms[i].controller, now(w) - (world_random(w, 20) ? 0 : 700));
	answer_later_ones_of_all(w);
	if (crash_now(w, WORLD_BATCH_LOST))
		return;
	for (uint32_t i = 0; i < w->room_count; i++)
		commit(w, &w->rooms[i]);
	if (crash_now(w, WORLD_ANSWERS_LOST))
		return;
	publish(w);
}

// --- trouble

static void break_connections(struct world *w)
{
	for (uint32_t who = 0; who < w->visitor_count; who++) {
		struct world_visitor *v = &w->visitors[who];
		for (uint32_t tab = 0; tab < WORLD_TABS_MAX; tab++) {
			if (!v->pending[tab])
				continue;
			v->pending[tab] = 0;
			const bool shops = v->state == WORLD_SHOPPING;
			const uint64_t after = v->poll_after ? v->poll_after * 1000ull : RETRY_MS;
			world_at(w, after, shops ? WORLD_RENEW : WORLD_POLL, who, tab, 0);
		}
	}
}

static void crash_room(struct world_room *room)
{
	controller_destroy(room->controller);
	room->controller = NULL;
	room->refused_key = UINT64_MAX;
	room->refused_poll_after = 0;
	check_crash(&room->check);
}

void process_crash(struct world *w)
{
	if (!w->is_up)
		return;
	w->crashes++;
	w->is_up = false;
	w->crash_at = WORLD_NO_CRASH;
	for (uint32_t i = 0; i < w->room_count; i++)
		crash_room(&w->rooms[i]);
	pool_destroy(w->pool);
	w->pool = NULL;
	w->ring_count = 0;
	break_connections(w);
	world_at(w, 1 + world_random(w, DOWN_MAX_MS), WORLD_START, 0, 0, 0);
}

void process_outage(struct world *w, bool begins)
{
	w->outages += begins;
	w->available = !begins;
	for (uint32_t i = 0; i < w->room_count; i++) {
		check_available(&w->rooms[i].check, w->available, now(w));
		if (w->is_up)
			controller_set_available(w->rooms[i].controller, w->available, now(w));
	}
}

// Around what it was.
static void vary(struct world *w, uint32_t *capacity, uint32_t *rate_count, uint32_t *burst)
{
	const bool is_limited = *capacity > 0;
	if (*capacity > 0)
		*capacity = (uint32_t)(*capacity / 2 + world_random(w, *capacity));
	*capacity += is_limited && *capacity == 0;
	if (*rate_count > 0)
		*rate_count = (uint32_t)(1 + world_random(w, 2ull * *rate_count));
	*burst = (uint32_t)(1 + world_random(w, 2ull * *burst));
}

static void reload_pool(struct world *w)
{
	struct pool_limits limits = w->plan.pool;
	vary(w, &limits.capacity, &limits.rate_count, &limits.burst);
	check_pool_limits(&w->shared, &limits);
	if (!w->is_up)
		return;
	pool_set_limits(w->pool, &limits, now(w));
	for (uint32_t i = 0; i < w->room_count;
		i++) // some leave for a moment, all have new weights
		for (uint32_t times = 1 + (uint32_t)world_random(w, 2); times > 0; times--)
			controller_join(w->rooms[i].controller, times > 1 ? NULL : w->pool,
				w->plan.shares[i].priority, 1 + (uint32_t)world_random(w, 5),
				now(w));
}

void process_reload(struct world *w)
{
	for (uint32_t i = 0; i < w->room_count; i++) {
		struct world_room *room = &w->rooms[i];
		struct controller_limits limits = w->plan.limits;
		vary(w, &limits.capacity, &limits.rate_count, &limits.burst);
		check_time(&room->check, now(w));
		check_limits(&room->check, &limits);
		if (w->is_up)
			controller_set_limits(room->controller, &limits, now(w));
	}
	if (w->room_count > 1)
		reload_pool(w);
}

void process_release(struct world *w)
{
	struct world_room *room = &w->rooms[w->room_count > 1 ? world_random(w, w->room_count) : 0];
	check_time(&room->check, now(w));
	if (w->is_up)
		controller_release(room->controller, 1 + world_random(w, 50), now(w));
}
