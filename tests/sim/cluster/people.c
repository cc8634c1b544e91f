// A worker in few lines: what a ticket says against the words of a line, and claims. A stopped
// appliance answers nobody, one that is down is known to be, and the visitor goes to another.

#include "tests/sim/cluster/people.h"

#include <assert.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>

#include "controlplane/cluster/member_inside.h"
#include "dataplane/gate/pace.h"
#include "tests/unit/controller/random.h"

#define HOLD_POLL_S 10u

void people_fail(const struct people *p, const char *what, const char *file, int line)
{
	fprintf(stderr, "%s:%d: seed %" PRIu64 ", %" PRIu64 " ms: %s\n", file, line, p->seed,
		p->now_ms % 100000000, what);
	abort();
}

static bool chance(struct people *p, double share)
{
	return share > 0 && (double)random_below(p->random, 1000000) < share * 1e6;
}

static uint64_t between(struct people *p, uint64_t low, uint64_t high)
{
	return low + random_below(p->random, high - low + 1);
}

void people_init(struct people *p, uint32_t count, const struct people_plan *plan,
	struct network *network, uint64_t *random)
{
	*p = (struct people){.plan = *plan, .count = count, .network = network, .random = random};
	p->at = calloc(count, sizeof(*p->at));
	assert(p->at);
}

void people_fini(struct people *p)
{
	free(p->at);
}

static struct appliance *appliance_of(struct people *p, uint32_t at)
{
	return p->network->links[at].appliance;
}

static uint64_t now_of(struct people *p, uint32_t at)
{
	return appliance_now(appliance_of(p, at), p->now_ms);
}

// Any that accepts connections; who is stopped does.
static bool choose(struct people *p, struct person *v)
{
	const uint32_t count = p->network->link_count;
	if (!p->plan.moves && appliance_serves(appliance_of(p, v->at)))
		return true;
	const uint32_t first = (uint32_t)random_below(p->random, count);
	for (uint32_t i = 0; i < count; i++) {
		const struct appliance *a = appliance_of(p, (first + i) % count);
		v->at = (first + i) % count;
		if (a->state == APPLIANCE_STOPPED || appliance_serves(a))
			return true;
	}
	return false;
}

static void later(struct people *p, struct person *v, uint64_t ms)
{
	v->next_ms = p->now_ms + ms;
}

static void poll_later(struct people *p, struct person *v, uint32_t poll_after)
{
	v->poll_after = poll_after;
	v->was_lost = false;
	later(p, v, poll_after * 1000ull + between(p, 0, 100));
}

// No answer: once is what may happen, twice in a row is not as told.
static void try_again(struct people *p, struct person *v)
{
	v->obeys &= !v->was_lost;
	v->was_lost = true;
	v->pending = 0;
	const uint64_t told = v->poll_after * 1000ull;
	later(p, v, told > 0 && told < PEOPLE_RETRY_MS ? told : PEOPLE_RETRY_MS);
}

static void claim(struct people *p, struct person *v, uint8_t kind, uint32_t poll_after)
{
	struct appliance *a = appliance_of(p, v->at);
	const uint64_t now = now_of(p, v->at);
	const struct claim claim = {.kind = kind,
		.room = v->line,
		.request = (uint32_t)(v - p->at),
		.generation = ++p->requests,
		.poll_after = poll_after,
		.key = kind == CLAIM_CALLED || kind == CLAIM_LEAVE ? v->key : 0,
		.visitor = v->visitor,
		.session = kind == CLAIM_RENEW || kind == CLAIM_END ? v->session : 0,
		.expires = kind == CLAIM_RENEW || kind == CLAIM_END ? v->expires : 0,
		.line_id = a->lines[v->line].id,
		.sent_ms = now};
	if (member_room(a->member) == 0)
		return;
	if (kind != CLAIM_END) {
		v->pending = claim.generation;
		v->pending_ms = p->now_ms;
		v->kind = kind;
		v->next_ms = UINT64_MAX;
	}
	member_claims(a->member, &claim, 1, now);
}

// --- waiting

static void show_place(struct people *p, struct person *v)
{
	const struct place_line *line = appliance_of(p, v->at)->rooms[v->line].line;
	uint64_t rank;
	const bool is_exact = place_rank(line, v->key, &rank);
	if (rank == PLACE_UNKNOWN) {
		poll_later(p, v, 1);
		return;
	}
	const uint64_t called = line->threshold_rank;
	const uint64_t ahead = rank > called ? rank - called : 0;
	// Tickets of a batch that the store took and lost before its sender heard of it are told
	// too late the second time: who reads the state anew then reckons without them.
	PEOPLE_CHECK(p, !v->has_rank || rank <= v->rank || p->network->runs > 1);
	p->worse += v->has_rank && rank > v->rank;
	PEOPLE_CHECK(p, is_exact || !p->is_calm);
	PEOPLE_CHECK(p, !p->is_calm || !v->has_rank || ahead <= v->ahead);
	v->has_rank = true;
	v->rank = rank;
	v->ahead = ahead;
	poll_later(
		p, v, pace_poll_after(ahead, line->wait_high, (uint32_t)between(p, 0, 1u << 31)));
}

static void mint(struct people *p, struct person *v)
{
	struct appliance *a = appliance_of(p, v->at);
	v->key = place_mint(a->rooms[v->line].line, now_of(p, v->at) / PLACE_SLOT_MS, a->number);
	if (v->key == 0) {
		later(p, v, 500);
		return;
	}
	v->state = PERSON_WAITS;
	v->shows = v->obeys = !chance(p, p->plan.no_show);
	v->has_rank = v->has_session = v->is_over = v->has_left = false;
	v->session = 0;
	if (v->shows)
		show_place(p, v);
	else
		v->next_ms = UINT64_MAX;
}

static void arrive(struct people *p, struct person *v)
{
	struct appliance *a = appliance_of(p, v->at);
	if (a->state == APPLIANCE_STOPPED) {
		later(p, v, PEOPLE_RETRY_MS);
		return;
	}
	v->visitor = random_next(p->random) | 1;
	v->key = 0;
	if (place_take_open(a->rooms[v->line].line))
		claim(p, v, CLAIM_DIRECT, 0);
	else
		mint(p, v);
}

// Whether it was let in, and the answer never came: its ticket is used.
static bool was_let_in(struct people *p, const struct person *v)
{
	const struct model_node *line =
		model_find(&p->network->model, appliance_of(p, v->at)->lines[v->line].id);
	for (uint32_t i = 0; line && i < line->visitors.count; i++) {
		if (line->visitors.at[i].visitor == v->visitor)
			return true;
	}
	for (uint32_t i = 0; i < p->network->link_count; i++) {
		struct appliance *a = appliance_of(p, i);
		if (a->member &&
			member_known_find(&a->member->known, a->lines[v->line].id, v->visitor))
			return true;
	}
	return false;
}

static void join_again(struct people *p, struct person *v)
{
	p->lapsed++;
	PEOPLE_CHECK(p, !v->obeys || v->has_session || v->has_left || was_let_in(p, v));
	v->state = v->has_session || v->has_left ? PERSON_GONE : PERSON_ARRIVES;
	later(p, v, 1000);
}

static void poll(struct people *p, struct person *v)
{
	struct appliance *a = appliance_of(p, v->at);
	const struct place_line *line = a->rooms[v->line].line;
	p->polls++;
	if (a->state == APPLIANCE_STOPPED) {
		try_again(p, v);
		return;
	}
	if (chance(p, p->plan.gives_back) && !v->has_session) {
		v->has_left = true;
		claim(p, v, CLAIM_LEAVE, 0);
	} else if (v->key < line->floor) {
		join_again(p, v);
	} else if (v->key >= line->threshold) {
		show_place(p, v);
	} else if (line->open & PLACE_OPEN_HOLD) {
		poll_later(p, v, line->next_poll_after);
	} else {
		claim(p, v, CLAIM_CALLED, line->next_poll_after);
	}
}

// --- inside

static void live(struct people *p, struct person *v)
{
	struct appliance *a = appliance_of(p, v->at);
	if (a->state == APPLIANCE_STOPPED) {
		later(p, v, PEOPLE_RETRY_MS);
		return;
	}
	const uint64_t end_ms = v->expires * 1000ull, now = now_of(p, v->at);
	if (now >= end_ms || v->is_over) {
		v->is_over = true;
		// Its ticket was used: nobody lets it in once more.
		v->state =
			v->key != 0 && chance(p, p->plan.comes_again) ? PERSON_WAITS : PERSON_GONE;
		later(p, v, 2000);
	} else if (v->leaves_ms != 0 && p->now_ms >= v->leaves_ms) {
		claim(p, v, CLAIM_END, 0);
		v->is_over = true;
		later(p, v, 1000);
	} else if (chance(p, p->plan.renews)) {
		claim(p, v, CLAIM_RENEW, 0);
	} else if (v->key != 0 && chance(p, p->plan.comes_again)) { // another tab
		claim(p, v, CLAIM_CALLED, 1);
	} else {
		later(p, v, between(p, 200, 2000));
	}
}

// Of a session that the store has lost nobody knows when who granted it has died, or left, since,
// or has not come back yet. Its slot counts as taken; its ticket is as good as unused.
static bool is_forgotten(struct people *p, const struct person *v)
{
	const struct model *book = &p->network->model;
	const struct appliance *a = appliance_of(p, v->granted_at);
	return book->epoch != v->granted_epoch &&
	       (a->born_ms != v->granted_born_ms ||
		       book->members[a->number].restored != book->epoch);
}

static void enter(struct people *p, struct person *v, const struct claim_answer *answer)
{
	PEOPLE_CHECK(p, answer->session != 0);
	PEOPLE_CHECK(p, !v->has_left);
	if (v->has_session && p->is_bounded && answer->session != v->session)
		PEOPLE_CHECK(p, is_forgotten(p, v));
	if (!v->has_session || answer->session != v->session) {
		v->granted_at = v->at;
		v->granted_born_ms = appliance_of(p, v->at)->born_ms;
		v->granted_epoch = p->network->model.epoch;
	}
	p->twice += v->has_session && answer->session != v->session;
	p->granted += !v->has_session;
	if (!v->has_session && chance(p, p->plan.ends_early))
		v->leaves_ms = p->now_ms + between(p, 100, 8000);
	v->has_session = true;
	v->session = answer->session;
	v->expires = answer->expires > v->expires ? answer->expires : v->expires;
	v->state = PERSON_INSIDE;
	later(p, v, between(p, 100, 2000));
	const uint32_t usable = people_usable(p);
	p->usable_most = usable > p->usable_most ? usable : p->usable_most;
	PEOPLE_CHECK(p, p->capacity == 0 || !p->is_bounded || usable <= p->capacity);
}

// --- answers

static void gone(struct people *p, uint32_t at, const struct claim_answer *answer)
{
	struct appliance *a = appliance_of(p, at);
	const struct claim claim = {.kind = CLAIM_GONE,
		.room = answer->room,
		.line_id = answer->line_id,
		.visitor = answer->visitor,
		.session = answer->session,
		.sent_ms = now_of(p, at)};
	if (answer->verdict == CLAIM_GRANTED)
		member_claims(a->member, &claim, 1, now_of(p, at));
}

static void answered(struct people *p, uint32_t at, const struct claim_answer *answer)
{
	struct person *v = &p->at[answer->request];
	if (v->pending != answer->generation || v->at != at) {
		gone(p, at, answer);
		return;
	}
	v->pending = 0;
	switch (answer->verdict) {
	case CLAIM_GRANTED:
		enter(p, v, answer);
		break;
	case CLAIM_RENEWED:
		PEOPLE_CHECK(p, answer->session == v->session);
		v->expires = answer->expires;
		later(p, v, between(p, 200, 2000));
		break;
	case CLAIM_LEFT:
		v->state = PERSON_GONE;
		break;
	case CLAIM_LAPSED:
		if (v->state == PERSON_INSIDE) {
			v->is_over = true;
			later(p, v, 1000);
		} else {
			join_again(p, v);
		}
		break;
	case CLAIM_NEXT:
		if (v->state == PERSON_INSIDE) // lost, and not written back yet
			later(p, v, answer->poll_after * 1000ull);
		else
			poll_later(p, v, answer->poll_after);
		break;
	default: // refused
		v->has_left &= answer->kind != CLAIM_LEAVE;
		if (answer->kind == CLAIM_DIRECT)
			mint(p, v);
		else if (v->state == PERSON_INSIDE)
			later(p, v, 1000);
		else
			poll_later(p, v, 1);
	}
}

// The worker has waited long enough, or is no more.
static void look_for_timeout(struct people *p, struct person *v)
{
	struct appliance *a = appliance_of(p, v->at);
	if (v->pending == 0 || (a->state == APPLIANCE_UP && a->born_ms <= v->pending_ms &&
				       p->now_ms <= v->pending_ms + PEOPLE_WORKER_MS))
		return;
	const bool is_alive = a->state == APPLIANCE_UP && a->born_ms <= v->pending_ms;
	if (is_alive && v->kind == CLAIM_CALLED) {
		a->refused_key[v->line] =
			v->key < a->refused_key[v->line] ? v->key : a->refused_key[v->line];
		a->refused_poll_after = v->poll_after > a->refused_poll_after
						? v->poll_after
						: a->refused_poll_after;
	}
	v->has_left &= v->kind != CLAIM_LEAVE;
	if (v->kind == CLAIM_LEAVE)
		v->obeys = false; // nobody knows
	if (is_alive && v->kind == CLAIM_DIRECT) {
		v->pending = 0;
		v->visitor = random_next(p->random) | 1;
		mint(p, v);
	} else if (is_alive && v->state == PERSON_WAITS) {
		v->pending = 0;
		poll_later(p, v, v->poll_after ? v->poll_after : 1); // told `next`
	} else {
		try_again(p, v);
	}
}

void people_turn(struct people *p, uint64_t world_ms)
{
	p->now_ms = world_ms;
	for (uint32_t i = 0; i < p->network->link_count; i++) {
		struct appliance *a = appliance_of(p, i);
		for (uint32_t k = 0; a->state == APPLIANCE_UP && k < a->answer_count; k++)
			answered(p, i, &a->answers[k]);
		if (a->state == APPLIANCE_UP)
			a->answer_count = 0;
	}
	p->waiting = 0;
	for (struct person *v = p->at; v < p->at + p->count; v++) {
		p->waiting += v->state == PERSON_WAITS && v->shows && !v->has_session;
		look_for_timeout(p, v);
		if (v->pending != 0 || v->next_ms > world_ms || v->state == PERSON_GONE)
			continue;
		if (!choose(p, v))
			later(p, v, 1000);
		else if (v->state == PERSON_ARRIVES)
			arrive(p, v);
		else if (v->state == PERSON_WAITS)
			poll(p, v);
		else
			live(p, v);
	}
}

uint32_t people_usable(const struct people *p)
{
	uint32_t usable = 0;
	for (const struct person *v = p->at; v < p->at + p->count; v++) {
		bool is_usable = false;
		for (uint32_t i = 0; v->session != 0 && i < p->network->link_count; i++) {
			const struct appliance *a = p->network->links[i].appliance;
			is_usable |= appliance_serves(a) &&
				     p->now_ms < a->heard_ms + LEDGER_LIVE_MS &&
				     appliance_now(a, p->now_ms) < v->expires * 1000ull &&
				     !ended_has(a->ended, v->session);
		}
		usable += is_usable;
	}
	return usable;
}
