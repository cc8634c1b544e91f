// Controller: life and events.
//
// Where things are decided: verdict.c (claims), turn.c (threshold and floor), publish.c (what
// workers see). What they ask in common is in state.h; each of the tables below it knows nothing of
// the others.

#include "controlplane/controller/state.h"

#include <assert.h>
#include <stdlib.h>

#include "controlplane/controller/verdict.h"
#include "dataplane/gate/gather.h"
#include "dataplane/gate/pace.h"
#include "dataplane/gate/place.h"

#define MINUTE_MS 60000u
#define DRAWN_MAX 4096u // tickets given back that get their keys in one turn

struct pool_limits controller_pool_limits(const struct controller_limits *limits)
{
	assert(limits->claim_s <= UINT32_MAX / 1000);
	return (struct pool_limits){.capacity = limits->capacity,
		.rate_count = limits->rate_count,
		.rate_period_ms = limits->rate_period_ms,
		.burst = limits->burst,
		.all = {limits->batch_count, limits->batch_period_ms},
		.direct = {limits->inflow, MINUTE_MS}};
}

static struct pool_words words_of(const struct place_line *line)
{
	return (struct pool_words){.full_ms = atomic_load(&line->bucket_full_ms),
		.all = atomic_load(&line->batch_used),
		.direct = atomic_load(&line->inflow_used)};
}

// The line as the process before this one left it.
static void take_over(struct controller *c)
{
	caller_take_over(&c->call, atomic_load(&c->line->threshold), atomic_load(&c->line->floor),
		CALLER_EVERYBODY, NULL);
	if (place_total(c->line) > 0)
		told_forget(&c->call.told, c->call.now_ms);
}

static void keep_limits(struct controller *c, const struct controller_limits *limits)
{
	c->limits = *limits;
	c->call.claim_s = limits->claim_s;
	c->call.session_s = limits->session_s;
}

struct controller *controller_create(const struct controller_limits *limits,
	const struct controller_bounds *bounds, struct place_line *line, uint64_t now_ms)
{
	const struct pool_limits own = controller_pool_limits(limits);
	const struct pool_words words = words_of(line);
	struct controller *c = calloc(1, sizeof(*c));
	if (!c)
		return NULL;
	c->line = line;
	caller_init(&c->call, line, &own, &words, now_ms);
	if (!keyset_init(&c->call.left, bounds->left_max, bounds->seed + 5) ||
		!sessions_init(&c->sessions, bounds->sessions_max, bounds->seed) ||
		!present_init(&c->present, bounds->present_max, bounds->seed + 3) ||
		!later_init(&c->later, bounds->later_max, bounds->seed + 4)) {
		controller_destroy(c);
		return NULL;
	}
	keep_limits(c, limits);
	c->call.own.line = &state_pool_line;
	c->sessions.pool = &c->call.own;
	tally_init(&c->freed, now_ms);
	take_over(c);
	return c;
}

void controller_destroy(struct controller *c)
{
	if (!c)
		return;
	caller_fini(&c->call);
	sessions_fini(&c->sessions);
	present_fini(&c->present);
	later_fini(&c->later);
	free(c);
}

// Whether what was measured under the one says something of the other.
static bool flow_alike(const struct controller_limits *a, const struct controller_limits *b)
{
	return a->capacity == b->capacity && a->rate_count == b->rate_count &&
	       a->rate_period_ms == b->rate_period_ms && a->session_s == b->session_s;
}

void controller_set_limits(
	struct controller *c, const struct controller_limits *limits, uint64_t now_ms)
{
	const struct pool_limits own = controller_pool_limits(limits);
	state_advance(c, now_ms);
	if (!flow_alike(limits, &c->limits))
		flow_init(&c->call.flow, c->call.threshold_rank, caller_available_ms(&c->call));
	keep_limits(c, limits);
	pool_set_limits(&c->call.own, &own, c->call.now_ms);
	state_keep_words(c);
}

void controller_join(struct controller *c, struct pool *pool, uint32_t priority, uint32_t weight,
	uint64_t now_ms)
{
	const struct pool before = c->call.own;
	const struct pool_words words = words_of(c->line);
	state_advance(c, now_ms);
	pool_join(&c->call.own, pool, priority, weight, &words);
	if (pool != before.parent || priority != before.priority ||
		c->call.own.stride != before.stride)
		flow_init(&c->call.flow, c->call.threshold_rank, caller_available_ms(&c->call));
	state_keep_words(c);
}

// A ticket that was given back. Returns false if left_max is reached.
static bool enter_left(struct controller *c, uint64_t key, uint64_t visitor)
{
	if (keyset_insert(&c->call.left, key, visitor) == 0) {
		c->left_full_total++;
		return false;
	}
	if (!present_has(&c->present, key, visitor))
		caller_settle(&c->call, key);
	present_remove(&c->present, key, visitor);
	return true;
}

bool controller_restore(
	struct controller *c, const struct controller_change *change, uint64_t now_ms)
{
	c->call.now_ms = now_ms > c->call.now_ms ? now_ms : c->call.now_ms;
	const bool is_over = change->kind == CONTROLLER_ENDED;
	if (change->kind == CONTROLLER_LEFT)
		return enter_left(c, change->key, change->visitor);
	assert(is_over || change->kind == CONTROLLER_GRANTED);
	if (!sessions_restore(&c->sessions, change, is_over, c->call.floor))
		return false;
	caller_settle(&c->call, change->key);
	return true;
}

void controller_set_available(struct controller *c, bool available, uint64_t now_ms)
{
	state_advance(c, now_ms);
	caller_set_available(&c->call, available);
}

static struct claim_answer answer_to(const struct claim *claim)
{
	return (struct claim_answer){
		.kind = claim->kind,
		.room = claim->room,
		.request = claim->request,
		.generation = claim->generation,
		.key = claim->key,
		.visitor = claim->visitor,
		.line_id = claim->line_id,
	};
}

bool controller_claim(struct controller *c, const struct claim *claim, uint64_t session,
	uint64_t now_ms, struct claim_answer *answer)
{
	assert(claim->kind == CLAIM_CALLED || claim->kind == CLAIM_DIRECT ||
		claim->kind == CLAIM_RENEW);
	state_advance(c, now_ms);
	*answer = answer_to(claim);
	if (verdict_give(c, claim, session, VERDICT_MAY_WAIT, answer))
		return true;
	if (later_put(&c->later, claim, session, verdict_until_ms(c, claim)))
		return false;
	verdict_give(c, claim, session, VERDICT_NOW, answer);
	return true;
}

bool controller_later(
	struct controller *c, uint64_t now_ms, struct claim_answer *answer, uint8_t *worker)
{
	state_advance(c, now_ms);
	const struct later_claim *first = later_first(&c->later);
	const struct later_claim *due = later_due(&c->later, c->call.now_ms);
	if (!first)
		return false;
	*answer = answer_to(&first->claim);
	bool is_decided = verdict_give(c, &first->claim, first->session, VERDICT_WAITS, answer);
	if (!is_decided && due) {
		first = due;
		*answer = answer_to(&first->claim);
		is_decided = verdict_give(c, &first->claim, first->session, VERDICT_NOW, answer);
	}
	if (!is_decided)
		return false;
	*worker = first->claim.worker;
	later_remove(&c->later, first);
	return true;
}

void controller_refused(struct controller *c, uint64_t key, uint32_t poll_after, uint64_t now_ms)
{
	state_advance(c, now_ms);
	const uint32_t told = poll_after < PACE_MAX_S ? poll_after : PACE_MAX_S;
	holds_add(&c->call.holds, key, 2 * told, caller_available_ms(&c->call));
}

void controller_gone(struct controller *c, uint64_t visitor, uint64_t session, uint64_t now_ms)
{
	state_advance(c, now_ms);
	struct session *known = sessions_of_visitor(&c->sessions, visitor);
	const bool is_direct = known && known->session == session && known->key == 0;
	if (!is_direct || known->state != SESSION_ACTIVE)
		return;
	// The rate is not given back: the bucket may have been full since, and would let one too
	// many through.
	c->undone_total++;
	sessions_free(&c->sessions, known);
	sessions_expire(&c->sessions, c->call.now_ms);
}

bool controller_end(struct controller *c, uint64_t session, uint64_t now_ms)
{
	state_advance(c, now_ms);
	struct session *known = sessions_of(&c->sessions, session);
	if (!known || known->state != SESSION_ACTIVE)
		return false;
	sessions_end(known);
	return true;
}

void controller_free(struct controller *c, uint64_t session, uint64_t now_ms)
{
	state_advance(c, now_ms);
	struct session *known = sessions_of(&c->sessions, session);
	if (!known || known->state != SESSION_ENDING)
		return;
	tally_add(&c->freed, c->call.now_ms);
	sessions_free(&c->sessions, known);
	sessions_expire(&c->sessions, c->call.now_ms);
}

bool controller_leave(struct controller *c, uint64_t key, uint64_t visitor, uint64_t now_ms)
{
	state_advance(c, now_ms);
	if (key < c->call.floor || sessions_of_visitor(&c->sessions, visitor))
		return false;
	if (keyset_find(&c->call.left, key, visitor) != 0)
		return true;
	if (!enter_left(c, key, visitor))
		return false;
	// There is room: no more leave in a turn than claims come in.
	const bool is_noted = sessions_note_left(&c->sessions, CONTROLLER_LEFT, key, visitor);
	assert(is_noted);
	c->left_total++;
	return true;
}

// One that was given back again since its draw is known by its key already. What floor has passed
// is forgotten by the next tick, as having the smallest of keys.
static void give_key(struct controller *c, uint32_t id, uint64_t key)
{
	const uint64_t visitor = keyset_visitor(&c->call.left, id);
	keyset_remove(&c->call.left, id);
	key = key != 0 ? key : 1;
	if (keyset_find(&c->call.left, key, visitor) == 0)
		enter_left(c, key, visitor);
}

void controller_drawn(struct controller *c, controller_drawn_fn *key_of, void *ctx)
{
	uint64_t number = 0, key;
	for (uint32_t i = 0; i < DRAWN_MAX; i++) {
		const uint32_t id = keyset_from(&c->call.left, GATHER_NUMBER | number, 0);
		if (id == 0)
			return;
		number = keyset_key(&c->call.left, id) & ~GATHER_NUMBER;
		if (key_of(ctx, number, keyset_visitor(&c->call.left, id), &key))
			give_key(c, id, key);
		else
			number++; // as all of this one
	}
}

uint64_t controller_session(struct controller *c, uint64_t visitor, uint32_t *expires)
{
	const struct session *known = sessions_of_visitor(&c->sessions, visitor);
	if (!known || known->state != SESSION_ACTIVE)
		return 0;
	*expires = known->expires;
	return known->session;
}

void controller_release(struct controller *c, uint64_t count, uint64_t now_ms)
{
	state_advance(c, now_ms);
	caller_release(&c->call, count);
}

uint32_t controller_changes(struct controller *c, const struct controller_change **changes)
{
	return sessions_changes(&c->sessions, changes);
}
