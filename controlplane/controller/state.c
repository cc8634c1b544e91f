// State: what time does by itself, and what follows from it for room, reservations and the line.

#include "controlplane/controller/state.h"

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
	bucket_refill(&c->bucket, c->now_ms);
	sessions_expire(&c->sessions, c->now_ms);
	present_expire(&c->present, state_available_ms(c));
}

uint32_t state_free(const struct controller *c)
{
	if (c->limits.capacity == 0)
		return UINT32_MAX;
	return c->limits.capacity > c->sessions.taken ? c->limits.capacity - c->sessions.taken : 0;
}

// Slots free now or becoming free within `ms`. Capacity may have been lowered below what is taken.
static uint32_t slots_within(const struct controller *c, uint64_t ms, uint32_t ending_max)
{
	if (c->limits.capacity == 0)
		return UINT32_MAX;
	const double early = tally_rate(&c->freed, c->now_ms) * (double)ms / 1000;
	uint64_t leaving =
		sessions_ending(&c->sessions, c->now_ms + ms, ending_max) + (uint64_t)early;
	if (leaving > c->sessions.taken)
		leaving = c->sessions.taken;
	const uint64_t staying = c->sessions.taken - leaving;
	return c->limits.capacity > staying ? (uint32_t)(c->limits.capacity - staying) : 0;
}

uint32_t state_room_within(const struct controller *c, uint64_t ms, uint32_t ending_max)
{
	return least(slots_within(c, ms, ending_max), bucket_people_within(&c->bucket, ms));
}

uint32_t state_reserved(const struct controller *c)
{
	const struct bucket *b = &c->bucket;
	if (b->count == 0)
		return state_free(c);
	// What comes in while they poll waits in the bucket, as far as that is deep enough.
	const uint64_t a_poll = b->count * PACE_MIN_S * 1000 / b->period_ms;
	const uint64_t beyond = a_poll > b->burst ? a_poll - b->burst : 0;
	const uint64_t served = bucket_people(b) + 2 + beyond;
	return (uint32_t)(served < state_free(c) ? served : state_free(c));
}

uint64_t state_settled_from(const struct controller *c, uint64_t key)
{
	const uint32_t left = keyset_count(&c->left) - keyset_below(&c->left, key, 0);
	return (uint64_t)left + sessions_claimed_from(&c->sessions, key);
}

bool state_nobody_waits(const struct controller *c)
{
	return place_total(c->line) <= c->floor_rank + state_settled_from(c, c->floor);
}

bool state_nobody_waited(const struct controller *c, uint64_t ms)
{
	const uint64_t key = place_key_of_ms(ms);
	uint64_t before;
	place_rank(c->line, key, &before);
	const uint64_t settled = state_settled_from(c, c->floor);
	const uint64_t later = key > c->floor ? state_settled_from(c, key) : settled;
	return before <= c->floor_rank + (settled - later);
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
	// Half the time until a reservation is expected, so that few of them wait for their holder.
	const uint64_t room = c->room_ahead > 0 ? c->room_ahead : 1;
	const uint64_t half_ms = (before - reserved) * (uint64_t)c->ahead_ms / 2 / room;
	return least((uint32_t)(half_ms / 1000) + PACE_MIN_S, CONTROLLER_NEXT_MAX_S);
}

uint32_t state_door_wait_ms(const struct controller *c)
{
	const double people = present_count(&c->present) + calls_expected(&c->calls);
	const double admits = tally_rate(&c->admitted, c->now_ms);
	const double rate = admits > 0 ? admits : state_expected_outflow(c);
	const double wait_ms = rate > 0 ? people * 1000 / rate : 0;
	return wait_ms < DOOR_WAIT_MAX_MS ? (uint32_t)wait_ms : DOOR_WAIT_MAX_MS;
}

double state_expected_outflow(const struct controller *c)
{
	const struct controller_limits *l = &c->limits;
	if (l->rate_count > 0)
		return l->rate_count * 1000.0 / l->rate_period_ms;
	return l->capacity / (l->session_s > 0 ? (double)l->session_s : 1);
}
