// Verdict: grants, and why not.
//
// A called visitor who polls becomes present. The smallest present keys hold reservations, as many
// as caller_reserved() says; who holds one is granted as soon as there is a slot and the bucket has
// somebody in it. So without a rate every grant goes to the smallest present keys, and under a rate
// only holders can overtake each other.

#include "controlplane/controller/verdict.h"

#include <assert.h>

#include "controlplane/controller/state.h"
#include "dataplane/gate/pace.h"

#define SOON_MAX 64u // slots becoming free that a claim is put off for

// Rounded up: the slot is free from this second on, never before.
static uint32_t end_of_session(const struct controller *c)
{
	return (uint32_t)((c->call.now_ms + c->limits.session_s * 1000ull + 999) / 1000);
}

static void say(const struct controller *c, struct claim_answer *answer, enum claim_verdict verdict,
	const struct session *session)
{
	answer->verdict = verdict;
	answer->issued = (uint32_t)(c->call.now_ms / 1000);
	if (session) {
		answer->session = session->session;
		answer->expires = session->expires;
	}
}

// Whether its pass is good now; its record may be late in ending.
static bool is_on(const struct controller *c, const struct session *session)
{
	return session->state == SESSION_ACTIVE && session->expires * 1000ull > c->call.now_ms;
}

// There is a slot and a place in the rate for one more: take it.
static bool admit(struct controller *c, const struct claim *claim, uint64_t session)
{
	const bool is_direct = claim->kind == CLAIM_DIRECT;
	const uint32_t people =
		is_direct ? pool_people_direct(&c->call.own) : pool_people(&c->call.own);
	if (pool_free(&c->call.own) == 0 || people == 0)
		return false;
	if (!sessions_has_room(&c->sessions)) {
		c->sessions_full_total++;
		return false;
	}
	assert(session != 0);
	pool_charge(&c->call.own, is_direct, c->call.now_ms);
	state_keep_words(c);
	sessions_begin(&c->sessions, claim->visitor, session, claim->key, end_of_session(c));
	for (const struct pool *p = &c->call.own; p; p = p->parent)
		assert(p->limits.capacity == 0 || p->taken <= p->limits.capacity);
	if (c->call.own.taken > c->sessions_max_seen)
		c->sessions_max_seen = c->call.own.taken;
	c->admitted_total++;
	return true;
}

// Present until twice the poll_after that is told: with the answer, or by the worker if that comes
// too late. Floor waits a little longer: who loses an answer loses the reservation, not the turn.
static void become_present(struct controller *c, const struct claim *claim, uint32_t poll_after)
{
	uint32_t told = poll_after > claim->poll_after ? poll_after : claim->poll_after;
	told = told < PACE_MAX_S ? told : PACE_MAX_S;
	const uint64_t now = caller_available_ms(&c->call);
	const uint64_t out = present_put(&c->present, claim->key, claim->visitor,
		now + CONTROLLER_LATER_MS + 2000ull * told);
	holds_add(&c->call.holds, claim->key, 2 * told + CONTROLLER_GRACE_S, now);
	if (out == 0)
		return;
	c->present_full_total++;
	c->call.own.coming = UINT32_MAX; // until the next tick
	holds_add(&c->call.crowded_out, out, 2 * CONTROLLER_NEXT_MAX_S, now);
}

// Whether the caller holds a reservation, or will within `soon_ms`, with `before` present of
// smaller keys.
static bool holds_reservation(
	const struct controller *c, const struct claim *claim, uint32_t before, uint64_t soon_ms)
{
	return pool_reserves(&c->call.own, before, soon_ms, SOON_MAX, c->call.now_ms) &&
	       claim->key <= holds_first_key(&c->call.crowded_out, caller_available_ms(&c->call));
}

uint64_t verdict_until_ms(const struct controller *c, const struct claim *claim)
{
	const uint64_t sent_ms = claim->sent_ms < c->call.now_ms ? claim->sent_ms : c->call.now_ms;
	return sent_ms + CONTROLLER_LATER_MS;
}

// Whether a holder of a reservation will be served so soon that it may wait for it.
static bool is_served_soon(const struct controller *c, const struct claim *claim, uint32_t before)
{
	const uint64_t until_ms = verdict_until_ms(c, claim);
	if (until_ms <= c->call.now_ms)
		return false;
	const uint64_t soon_ms = until_ms - c->call.now_ms;
	for (const struct pool *p = &c->call.own; p; p = p->parent) {
		if (later_count(&c->later) >= pool_within(p, soon_ms, SOON_MAX, c->call.now_ms))
			return false;
	}
	return holds_reservation(c, claim, before, soon_ms);
}

static bool give_called(struct controller *c, const struct claim *claim, uint64_t session,
	enum verdict_patience patience, struct claim_answer *answer)
{
	if (!present_has(&c->present, claim->key, claim->visitor))
		calls_came(&c->call.calls, claim->key);
	const uint32_t before = present_before(&c->present, claim->key, claim->visitor);
	if (holds_reservation(c, claim, before, 0) && admit(c, claim, session)) {
		present_remove(&c->present, claim->key, claim->visitor);
		c->overtakes_total += before > 0;
		say(c, answer, CLAIM_GRANTED, sessions_of_visitor(&c->sessions, claim->visitor));
		return true;
	}
	if (patience == VERDICT_WAITS)
		return false;
	answer->poll_after = caller_next_poll_after(&c->call, before);
	become_present(c, claim, answer->poll_after);
	if (patience == VERDICT_MAY_WAIT && is_served_soon(c, claim, before))
		return false;
	say(c, answer, CLAIM_NEXT, NULL);
	return true;
}

static bool give_ticket(struct controller *c, const struct claim *claim, uint64_t session,
	enum verdict_patience patience, struct claim_answer *answer)
{
	const bool is_left = keyset_find(&c->call.left, claim->key, claim->visitor) != 0;
	if (is_left || claim->key < c->call.floor) {
		say(c, answer, CLAIM_LAPSED, NULL);
		return true;
	}
	if (!c->call.available || claim->key >= c->call.threshold) {
		answer->poll_after = CONTROLLER_NEXT_MAX_S;
		say(c, answer, CLAIM_NEXT, NULL);
		return true;
	}
	return give_called(c, claim, session, patience, answer);
}

static void give_direct(struct controller *c, const struct claim *claim, uint64_t session,
	struct claim_answer *answer)
{
	// Its worker saw nobody wait when it took from `open`; who drew a ticket since comes after.
	if (!c->call.available || !c->limits.direct || !state_nobody_waited(c, claim->sent_ms) ||
		!admit(c, claim, session)) {
		say(c, answer, CLAIM_REFUSED, NULL);
		return;
	}
	c->direct_total++;
	say(c, answer, CLAIM_GRANTED, sessions_of_visitor(&c->sessions, claim->visitor));
}

// Who presents a pass older than the last renewal, or asks a second time from another tab, is told
// the session's end as it is.
static void give_renewal(struct controller *c, const struct claim *claim, struct session *known,
	struct claim_answer *answer)
{
	if (!known || known->session != claim->session || !is_on(c, known)) {
		say(c, answer, CLAIM_LAPSED, NULL);
		return;
	}
	const bool is_command = claim->expires == 0;
	if (is_command || (c->limits.sliding && claim->expires == known->expires))
		sessions_renew(&c->sessions, known, end_of_session(c));
	say(c, answer, CLAIM_RENEWED, known);
}

bool verdict_give(struct controller *c, const struct claim *claim, uint64_t session,
	enum verdict_patience patience, struct claim_answer *answer)
{
	struct session *known = sessions_of_visitor(&c->sessions, claim->visitor);
	if (claim->kind == CLAIM_RENEW)
		give_renewal(c, claim, known, answer);
	else if (known) // one visitor, one session, however many tabs
		say(c, answer, is_on(c, known) ? CLAIM_GRANTED : CLAIM_LAPSED, known);
	else if (claim->kind == CLAIM_DIRECT)
		give_direct(c, claim, session, answer);
	else
		return give_ticket(c, claim, session, patience, answer);
	return true;
}
