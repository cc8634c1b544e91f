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

void process_start(struct world *w)
{
	check_time(&w->check, now(w));
	place_begin(w->line, now(w) / PLACE_SLOT_MS);
	w->controller = controller_create(&w->check.limits, &w->plan.bounds, w->line, now(w));
	CHECK(&w->check, w->controller);
	for (uint32_t i = 0; i < w->visitor_max; i++) {
		if (w->store[i].kind != 0)
			CHECK(&w->check, controller_restore(w->controller, &w->store[i], now(w)));
	}
	controller_set_available(w->controller, w->available, now(w));
	for (uint32_t i = 0; i < w->ending_count; i++) { // their passes are refused still
		controller_end(w->controller, w->ending[i].session, now(w));
		w->ending[i].turn = w->turns;
	}
	w->generation++;
	world_at(w, 1, WORLD_TURN, 0, 0, (uint32_t)w->generation);
}

// --- a turn

static void keep_answer(
	struct world *w, const struct claim *claim, const struct claim_answer *answer)
{
	check_answer(&w->check, claim, answer);
	if (answer->verdict == CLAIM_GRANTED && answer->kind == CLAIM_DIRECT)
		w->direct++;
	w->answers[w->answer_count++] = *answer;
}

static void decide(struct world *w, const struct claim *claim)
{
	struct claim_answer answer;
	const uint64_t session = world_random(w, UINT64_MAX - 1) + 1;
	switch (claim->kind) {
	case CLAIM_LEAVE:
		if (controller_leave(w->controller, claim->key, claim->visitor, now(w)))
			check_left(&w->check, claim->visitor);
		return;
	case CLAIM_END:
		if (!controller_end(w->controller, claim->session, now(w)))
			return;
		check_ended(&w->check, claim->session);
		w->ending[w->ending_count++] = (struct world_ending){claim->session, w->turns};
		return;
	case CLAIM_GONE:
		check_undone(&w->check, claim->session);
		controller_gone(w->controller, claim->visitor, claim->session, now(w));
		return;
	default:
		if (controller_claim(w->controller, claim, session, now(w), &answer))
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
		check_freed(&w->check, w->ending[i].session);
		controller_free(w->controller, w->ending[i].session, now(w));
	}
	w->ending_count = kept;
}

static void answer_later_ones(struct world *w)
{
	struct claim_answer answer;
	uint8_t worker;
	while (controller_later(w->controller, now(w), &answer, &worker)) {
		const struct claim claim = {.kind = answer.kind,
			.key = answer.key,
			.visitor = answer.visitor,
			.request = answer.request,
			.generation = answer.generation};
		CHECK(&w->check, worker == 0);
		keep_answer(w, &claim, &answer);
	}
}

static void commit(struct world *w)
{
	const struct controller_change *changes;
	const uint32_t count = controller_changes(w->controller, &changes);
	for (uint32_t i = 0; i < count; i++) {
		struct controller_change *record = &w->store[world_who(changes[i].visitor)];
		check_change(&w->check, &changes[i]);
		CHECK(&w->check,
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

void process_turn(struct world *w, uint32_t generation)
{
	if (!w->controller || generation != (uint32_t)w->generation)
		return;
	world_at(w, w->plan.turn_ms, WORLD_TURN, 0, 0, generation);
	check_time(&w->check, now(w));
	w->turns++;
	w->answer_count = 0;
	for (uint32_t i = 0; i < w->ring_count; i++)
		decide(w, &w->ring[i]);
	w->ring_count = 0;
	if (w->refused_key != UINT64_MAX)
		controller_refused(w->controller, w->refused_key, w->refused_poll_after, now(w));
	w->refused_key = UINT64_MAX;
	w->refused_poll_after = 0;
	free_ended(w);
	// Now and then the clock seems to go back.
	controller_tick(w->controller, now(w) - (world_random(w, 20) ? 0 : 700));
	answer_later_ones(w);
	if (crash_now(w, WORLD_BATCH_LOST))
		return;
	commit(w);
	if (crash_now(w, WORLD_ANSWERS_LOST))
		return;
	for (uint32_t i = 0; i < w->answer_count; i++)
		world_deliver(w, ANSWER_MS, &w->answers[i]);
	controller_publish(w->controller, false, now(w));
	check_words(&w->check, w->line);
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

void process_crash(struct world *w)
{
	if (!w->controller)
		return;
	w->crashes++;
	w->crash_at = WORLD_NO_CRASH;
	controller_destroy(w->controller);
	w->controller = NULL;
	w->ring_count = 0;
	w->refused_key = UINT64_MAX;
	w->refused_poll_after = 0;
	check_crash(&w->check);
	break_connections(w);
	world_at(w, 1 + world_random(w, DOWN_MAX_MS), WORLD_START, 0, 0, 0);
}

void process_outage(struct world *w, bool begins)
{
	w->outages += begins;
	w->available = !begins;
	check_available(&w->check, w->available, now(w));
	if (w->controller)
		controller_set_available(w->controller, w->available, now(w));
}

void process_reload(struct world *w)
{
	struct controller_limits limits = w->plan.limits;
	if (limits.capacity > 0)
		limits.capacity =
			(uint32_t)(limits.capacity / 2 + world_random(w, limits.capacity));
	limits.capacity += w->plan.limits.capacity > 0 && limits.capacity == 0;
	if (limits.rate_count > 0)
		limits.rate_count = (uint32_t)(1 + world_random(w, 2ull * limits.rate_count));
	limits.burst = (uint32_t)(1 + world_random(w, 2ull * limits.burst));
	check_time(&w->check, now(w));
	check_limits(&w->check, &limits);
	if (w->controller)
		controller_set_limits(w->controller, &limits, now(w));
}

void process_release(struct world *w)
{
	check_time(&w->check, now(w));
	if (w->controller)
		controller_release(w->controller, 1 + world_random(w, 50), now(w));
}
