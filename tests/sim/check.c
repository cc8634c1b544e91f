// Checkers: invariants 1 (order), 2 (capacity and rate), 3 (words never move back) and 5 (one
// ticket one session; slot and pass end at the same second).

#include "tests/sim/check.h"

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

void check_fail(const struct check *k, const char *what)
{
	fprintf(stderr, "seed %" PRIu64 ", at %" PRIu64 " ms: not so: %s\n", k->seed, k->now_ms,
		what);
	abort();
}

void check_init(
	struct check *k, uint64_t seed, const struct controller_limits *limits, uint32_t people_max)
{
	*k = (struct check){.seed = seed, .limits = *limits, .available = true};
	k->active_max = k->present_max = k->admitted_max = people_max;
	k->active = calloc(people_max, sizeof(*k->active));
	k->present = calloc(people_max, sizeof(*k->present));
	k->admitted_ms = calloc(people_max, sizeof(*k->admitted_ms));
	k->admitted_session = calloc(people_max, sizeof(*k->admitted_session));
}

void check_fini(struct check *k)
{
	free(k->active);
	free(k->present);
	free(k->admitted_ms);
	free(k->admitted_session);
}

void check_pool_init(struct check_pool *p, const struct pool_limits *limits, uint32_t people_max)
{
	*p = (struct check_pool){.is_used = limits, .admitted_max = people_max};
	if (limits)
		p->limits = *limits;
	p->admitted = calloc(people_max, sizeof(*p->admitted));
}

void check_pool_fini(struct check_pool *p)
{
	free(p->admitted);
}

void check_pool_limits(struct check_pool *p, const struct pool_limits *limits)
{
	p->limits = *limits;
	p->limits_since = p->admitted_count;
}

void check_join(struct check *k, struct check_pool *p, uint32_t priority)
{
	if (!p->is_used)
		return;
	k->pool = p;
	k->priority = priority;
	k->next = p->lines;
	p->lines = k;
}

static uint64_t available_ms(const struct check *k)
{
	return k->now_ms - k->off_ms;
}

static void drop_present(struct check *k, uint32_t i)
{
	k->present[i] = k->present[--k->present_count];
}

void check_time(struct check *k, uint64_t now_ms)
{
	const uint64_t elapsed = now_ms > k->now_ms ? now_ms - k->now_ms : 0;
	k->now_ms += elapsed;
	if (!k->available || elapsed > CONTROLLER_GAP_MS)
		k->off_ms += elapsed;
	for (uint32_t i = k->present_count; i-- > 0;) {
		if (k->present[i].until_ms <= available_ms(k))
			drop_present(k, i);
	}
}

void check_available(struct check *k, bool available, uint64_t now_ms)
{
	check_time(k, now_ms);
	k->available = available;
}

void check_limits(struct check *k, const struct controller_limits *limits)
{
	k->limits = *limits;
	k->limits_since = k->admitted_count;
}

struct check_session *check_session_of(struct check *k, uint64_t visitor)
{
	for (uint32_t i = 0; i < k->active_count; i++) {
		if (k->active[i].visitor == visitor)
			return &k->active[i];
	}
	return NULL;
}

static struct check_session *session_of(struct check *k, uint64_t session)
{
	for (uint32_t i = 0; i < k->active_count; i++) {
		if (k->active[i].session == session)
			return &k->active[i];
	}
	return NULL;
}

// Slots taken: until the second at which the session ends, or until it is given back.
static uint32_t taken(const struct check *k)
{
	uint32_t count = 0;
	for (uint32_t i = 0; i < k->active_count; i++) {
		const struct check_session *s = &k->active[i];
		count += !s->may_free && k->now_ms < s->expires * 1000ull;
	}
	return count;
}

// The same of all lines that share a pool.
static uint32_t taken_of_all(const struct check_pool *p, uint64_t now_ms)
{
	uint32_t count = 0;
	for (const struct check *k = p->lines; k; k = k->next) {
		for (uint32_t i = 0; i < k->active_count; i++)
			count += !k->active[i].may_free && now_ms < k->active[i].expires * 1000ull;
	}
	return count;
}

// Invariant 2, rate: every window that ends with the admission just made.
static void check_rate(struct check *k)
{
	const struct controller_limits *l = &k->limits;
	const uint32_t end = k->admitted_count;
	if (l->rate_count == 0)
		return;
	for (uint32_t first = end; first-- > k->limits_since;) {
		const uint64_t window = k->admitted_ms[end - 1] - k->admitted_ms[first];
		const uint64_t people = end - first;
		CHECK(k, people * l->rate_period_ms <=
				 window * l->rate_count + (uint64_t)l->burst * l->rate_period_ms);
		if (people > 2000 + 2ull * l->burst)
			break; // the windows beyond were looked at in parts
	}
}

// Invariant 1: how many present of smaller keys may there be?
static void check_order(struct check *k, uint64_t key, uint64_t visitor)
{
	const struct controller_limits *l = &k->limits;
	uint32_t smaller = 0;
	for (uint32_t i = 0; i < k->present_count; i++)
		smaller += k->present[i].key < key && k->present[i].visitor != visitor;
	k->overtakes += smaller > 0;
	k->overtaken += smaller;
	// Before this one was entered. Slots: each of them is reserved for one of the smaller.
	if (l->capacity > 0)
		CHECK(k, smaller < l->capacity - (taken(k) - 1));
	if (k->pool && k->pool->limits.capacity > 0)
		CHECK(k, smaller <
				 k->pool->limits.capacity - (taken_of_all(k->pool, k->now_ms) - 1));
	// A rate: those whom the bucket holds, two, and those whom one second brings beyond it.
	const uint64_t a_second = l->rate_count ? l->rate_count * 1000ull / l->rate_period_ms : 0;
	if (l->rate_count > 0)
		CHECK(k, smaller < 2 + (a_second > l->burst ? a_second : l->burst));
}

// Invariant 2 of all lines together: capacity, and every window that ends with the admission just
// made.
static void enter_pool(struct check *k, uint64_t session)
{
	struct check_pool *p = k->pool;
	const struct pool_limits *l = &p->limits;
	const uint32_t taken = taken_of_all(p, k->now_ms);
	CHECK(k, l->capacity == 0 || taken <= l->capacity);
	p->taken_most = taken > p->taken_most ? taken : p->taken_most;
	CHECK(k, p->admitted_count < p->admitted_max);
	p->admitted[p->admitted_count++] =
		(struct check_admission){k->now_ms, session, k->priority};
	const uint32_t end = p->admitted_count;
	if (l->rate_count == 0)
		return;
	for (uint32_t first = end; first-- > p->limits_since;) {
		const uint64_t window = p->admitted[end - 1].at_ms - p->admitted[first].at_ms;
		const uint64_t people = end - first;
		CHECK(k, people * l->rate_period_ms <=
				 window * l->rate_count + (uint64_t)l->burst * l->rate_period_ms);
		if (people > 2000 + 2ull * l->burst)
			break; // the windows beyond were looked at in parts
	}
}

// Strict classes: each slot that is free is reserved for one of the present of higher classes, as
// far as their own limits let them in.
static void check_classes(const struct check *k)
{
	const struct check_pool *p = k->pool;
	uint32_t higher = 0;
	for (const struct check *other = p->lines; other; other = other->next) {
		const bool is_limited = other->limits.capacity > 0 || other->limits.rate_count > 0;
		if (other->priority < k->priority && !is_limited)
			higher += other->present_count;
	}
	if (p->limits.capacity > 0)
		CHECK(k, higher == 0 ||
				 higher < p->limits.capacity - (taken_of_all(p, k->now_ms) - 1));
	const uint64_t a_second =
		p->limits.rate_count ? p->limits.rate_count * 1000ull / p->limits.rate_period_ms
				     : 0;
	const uint64_t burst = p->limits.burst;
	if (p->limits.rate_count > 0)
		CHECK(k, higher < 2 + (a_second > burst ? a_second : burst));
}

static void forget_shared(struct check_pool *p, uint64_t session)
{
	for (uint32_t i = p->admitted_count; i-- > 0;) {
		if (p->admitted[i].session != session)
			continue;
		const size_t after = p->admitted_count - i - 1;
		memmove(&p->admitted[i], &p->admitted[i + 1], after * sizeof(*p->admitted));
		p->admitted_count--;
		p->limits_since -= i < p->limits_since;
		return;
	}
}

static void enter(struct check *k, const struct claim_answer *answer)
{
	const struct controller_limits *l = &k->limits;
	CHECK(k, k->available);
	CHECK(k, k->active_count < k->active_max && k->admitted_count < k->admitted_max);
	CHECK(k, !session_of(k, answer->session));
	// The end of the session to the second: never before its time, less than a second after.
	CHECK(k, answer->expires * 1000ull >= k->now_ms + l->session_s * 1000ull);
	CHECK(k, answer->expires * 1000ull < k->now_ms + l->session_s * 1000ull + 1000);
	k->active[k->active_count++] = (struct check_session){
		.visitor = answer->visitor,
		.session = answer->session,
		.key = answer->kind == CLAIM_DIRECT ? 0 : answer->key,
		.granted_ms = k->now_ms,
		.expires = answer->expires,
	};
	// Invariant 2, capacity.
	const uint32_t count = taken(k);
	CHECK(k, l->capacity == 0 || count <= l->capacity);
	k->active_most = count > k->active_most ? count : k->active_most;
	k->admitted_session[k->admitted_count] = answer->session;
	k->admitted_ms[k->admitted_count++] = k->now_ms;
	check_rate(k);
	if (k->pool)
		enter_pool(k, answer->session);
}

void check_left(struct check *k, uint64_t visitor)
{
	for (uint32_t i = k->present_count; i-- > 0;) {
		if (k->present[i].visitor == visitor)
			drop_present(k, i);
	}
}

static void become_present(struct check *k, const struct claim *claim, uint32_t poll_after)
{
	check_left(k, claim->visitor);
	CHECK(k, poll_after >= 1 && poll_after <= CONTROLLER_NEXT_MAX_S);
	CHECK(k, k->present_count < k->present_max);
	k->present[k->present_count++] = (struct check_present){
		claim->key, claim->visitor, available_ms(k) + 2000ull * poll_after};
}

void check_answer(struct check *k, const struct claim *claim, const struct claim_answer *answer)
{
	struct check_session *known = check_session_of(k, claim->visitor);
	CHECK(k, answer->visitor == claim->visitor && answer->request == claim->request &&
			 answer->generation == claim->generation);
	switch (answer->verdict) {
	case CLAIM_GRANTED:
		if (known) { // invariant 5: the same session, the same end
			CHECK(k, answer->session == known->session);
			CHECK(k, answer->expires == known->expires);
			CHECK(k, !known->is_ending);
			CHECK(k, known->expires * 1000ull > k->now_ms);
			return;
		}
		enter(k, answer);
		if (claim->kind == CLAIM_CALLED)
			check_order(k, claim->key, claim->visitor);
		if (claim->kind == CLAIM_CALLED && k->pool)
			check_classes(k);
		check_left(k, claim->visitor);
		return;
	case CLAIM_NEXT:
		CHECK(k, claim->kind == CLAIM_CALLED && !known);
		if (k->available && claim->key < k->threshold)
			become_present(k, claim, answer->poll_after);
		return;
	case CLAIM_RENEWED:
		CHECK(k, known && answer->session == known->session);
		CHECK(k, answer->expires >= known->expires);
		if (claim->expires != 0 && (!k->limits.sliding || claim->expires != known->expires))
			CHECK(k, answer->expires == known->expires);
		known->expires = answer->expires;
		return;
	case CLAIM_REFUSED:
		CHECK(k, claim->kind == CLAIM_DIRECT && !known);
		return;
	case CLAIM_LAPSED:
		CHECK(k, !known || known->is_ending || known->expires * 1000ull <= k->now_ms ||
				 claim->session != known->session);
		return;
	default:
		check_fail(k, "a verdict");
	}
}

void check_ended(struct check *k, uint64_t session)
{
	struct check_session *known = session_of(k, session);
	if (known)
		known->is_ending = true;
}

void check_freed(struct check *k, uint64_t session)
{
	struct check_session *known = session_of(k, session);
	if (known)
		known->may_free = true;
}

static void forget_admission(struct check *k, uint64_t session)
{
	if (k->pool)
		forget_shared(k->pool, session);
	for (uint32_t i = k->admitted_count; i-- > 0;) {
		if (k->admitted_session[i] != session)
			continue;
		const size_t after = k->admitted_count - i - 1;
		memmove(&k->admitted_ms[i], &k->admitted_ms[i + 1], after * sizeof(uint64_t));
		memmove(&k->admitted_session[i], &k->admitted_session[i + 1],
			after * sizeof(uint64_t));
		k->admitted_count--;
		if (i < k->limits_since)
			k->limits_since--;
		return;
	}
}

void check_undone(struct check *k, uint64_t session)
{
	struct check_session *known = session_of(k, session);
	if (!known || known->key != 0)
		return;
	known->is_undone = known->is_ending = known->may_free = true;
	forget_admission(k, session);
}

void check_change(struct check *k, const struct controller_change *change)
{
	struct check_session *known = session_of(k, change->session);
	switch (change->kind) {
	case CONTROLLER_GRANTED:
		CHECK(k, known && !known->committed);
		CHECK(k, known->visitor == change->visitor && known->key == change->key);
		CHECK(k, change->expires <= known->expires);
		known->committed = true;
		known->expires_known = change->expires;
		return;
	case CONTROLLER_RENEWED:
		CHECK(k, known && change->expires > known->expires_known);
		CHECK(k, change->expires <= known->expires);
		known->expires_known = change->expires;
		return;
	case CONTROLLER_ENDED:
		// Invariant 5: never before its second, unless it was given back.
		CHECK(k, known && (known->may_free || k->now_ms >= known->expires * 1000ull));
		*known = k->active[--k->active_count];
		return;
	case CONTROLLER_LEFT:
		CHECK(k, !known && change->session == 0);
		return;
	case CONTROLLER_FORGET:
		CHECK(k, !known);
		if (change->key > k->forgotten)
			k->forgotten = change->key;
		return;
	default:
		check_fail(k, "a change");
	}
}

void check_crash(struct check *k)
{
	for (uint32_t i = k->active_count; i-- > 0;) {
		k->active[i].expires = k->active[i].expires_known;
		if (k->active[i].committed)
			continue;
		forget_admission(k, k->active[i].session);
		k->active[i] = k->active[--k->active_count];
	}
	k->present_count = 0;
	k->forgotten = 0;
}

void check_words(struct check *k, const struct place_line *line)
{
	// Invariant 3.
	CHECK(k, line->threshold >= k->threshold);
	CHECK(k, line->floor >= k->floor);
	CHECK(k, line->threshold_rank >= k->threshold_rank);
	CHECK(k, line->floor <= line->threshold);
	CHECK(k, k->forgotten == 0 || k->forgotten < line->floor);
	CHECK(k, line->threshold <= place_key(line->closed, 0, 0));
	CHECK(k, line->wait_low == UINT64_MAX || line->wait_low <= line->wait_high);
	CHECK(k, line->next_poll_after >= 1 && line->next_poll_after <= CONTROLLER_NEXT_MAX_S);
	k->threshold = line->threshold;
	k->floor = line->floor;
	k->threshold_rank = line->threshold_rank;
	for (uint32_t i = 0; i < k->present_count; i++) // floor never passes the present
		CHECK(k, k->present[i].key >= k->floor);
}
