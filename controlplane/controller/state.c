// State: what time does by itself, and what follows from it for room, reservations and the line.

#include "controlplane/controller/state.h"

#include <stddef.h>

#include "dataplane/gate/pace.h"

#define DOOR_WAIT_MAX_MS 60000u

static uint32_t least(uint32_t a, uint32_t b)
{
	return a < b ? a : b;
}

void state_begin_anew(struct controller *c)
{
	const uint32_t heard_ms = PACE_MAX_S * 1000;
	calls_renew(&c->calls, heard_ms, c->limits.claim_s * 1000, state_available_ms(c));
	told_forget(&c->told, c->now_ms);
}

void controller_forget_told(struct controller *c, uint64_t now_ms)
{
	state_advance(c, now_ms);
	told_forget(&c->told, c->now_ms);
}

void state_advance(struct controller *c, uint64_t now_ms)
{
	const uint64_t elapsed = now_ms > c->now_ms ? now_ms - c->now_ms : 0;
	c->now_ms += elapsed;
	if (!c->available) {
		c->off_ms += elapsed;
	} else if (elapsed > CONTROLLER_GAP_MS) {
		c->off_ms += elapsed;
		c->gaps_total++;
		state_begin_anew(c);
	}
	pool_advance(&c->own, c->now_ms);
	sessions_expire(&c->sessions, c->now_ms);
	present_expire(&c->present, state_available_ms(c));
}

void state_keep_words(struct controller *c)
{
	const struct pool_words words = pool_words(&c->own);
	atomic_store(&c->line->bucket_full_ms, words.full_ms);
	atomic_store(&c->line->batch_used, words.all);
	atomic_store(&c->line->inflow_used, words.direct);
}

uint32_t state_reserved(const struct controller *c)
{
	return pool_reserved(&c->own, present_count(&c->present) + 1);
}

uint64_t state_settled_from(const struct controller *c, uint64_t key)
{
	const uint32_t left = keyset_count(&c->left) - keyset_below(&c->left, key, 0);
	return (uint64_t)left + sessions_claimed_from(&c->sessions, key);
}

static bool is_settled(const struct controller *c)
{
	return place_total(c->line) <= c->floor_rank + state_settled_from(c, c->floor);
}

static bool was_settled(const struct controller *c, uint64_t ms)
{
	const uint64_t key = place_key_of_ms(ms);
	uint64_t before;
	place_rank(c->line, key, &before);
	const uint64_t settled = state_settled_from(c, c->floor);
	const uint64_t later = key > c->floor ? state_settled_from(c, key) : settled;
	return before <= c->floor_rank + (settled - later);
}

// Whether nobody waits (or, of tickets drawn before `ms`, waited) in the lines of this pool.
static bool nobody_in(const struct pool *pool, uint64_t ms)
{
	if (!pool_has_room_here(pool))
		return true; // what they cannot have is not kept for them
	if (pool->present) {
		const struct controller *c =
			(const void *)((const char *)pool - offsetof(struct controller, own));
		return ms == UINT64_MAX ? is_settled(c) : was_settled(c, ms);
	}
	for (const struct pool *p = pool->first; p; p = p->next) {
		if (!nobody_in(p, ms))
			return false;
	}
	return true;
}

// The same of the lines that are joined to this one and of equal or higher class.
static bool nobody_beside(const struct controller *c, uint64_t ms)
{
	for (const struct pool *own = &c->own; own->parent; own = own->parent) {
		for (const struct pool *p = own->parent->first; p && p->priority <= own->priority;
			p = p->next) {
			if (p != own && !nobody_in(p, ms))
				return false;
		}
	}
	return true;
}

bool state_nobody_waits(const struct controller *c)
{
	return is_settled(c) && nobody_beside(c, UINT64_MAX);
}

bool state_nobody_waited(const struct controller *c, uint64_t ms)
{
	return was_settled(c, ms) && nobody_beside(c, ms);
}

uint64_t state_waiting(const struct controller *c)
{
	const uint32_t left = keyset_count(&c->left) - keyset_below(&c->left, c->threshold, 0);
	const uint64_t total = place_total(c->line), settled = c->threshold_rank + left;
	return total > settled ? total - settled : 0;
}

uint32_t state_next_poll_after(const struct controller *c, uint32_t before)
{
	const uint32_t reserved = state_reserved(c);
	if (before < reserved)
		return PACE_MIN_S;
	// Half the time until a reservation is expected, so that few of them wait for their holder;
	// a quarter where others may leave theirs.
	const uint64_t room = c->room_ahead > 0 ? c->room_ahead : 1;
	const uint64_t wait_ms = (before - reserved) * (uint64_t)c->ahead_ms / room;
	const uint64_t part_ms = wait_ms / (c->own.parent ? 4 : 2);
	return least((uint32_t)(part_ms / 1000) + PACE_MIN_S, CONTROLLER_NEXT_MAX_S);
}

uint32_t state_door_wait_ms(const struct controller *c)
{
	const double people = present_count(&c->present) + calls_expected(&c->calls);
	const double admits = tally_rate(&c->own.admitted, c->now_ms);
	const double rate = admits > 0 ? admits : state_expected_outflow(c);
	const double wait_ms = rate > 0 ? people * 1000 / rate : 0;
	return wait_ms < DOOR_WAIT_MAX_MS ? (uint32_t)wait_ms : DOOR_WAIT_MAX_MS;
}

double state_expected_outflow(const struct controller *c)
{
	return pool_outflow(&c->own, c->limits.session_s, false);
}
