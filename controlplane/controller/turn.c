// Turn: what control does by itself, every tick.
//
//   close slots ─▶ move threshold ─▶ move floor ─▶ forget what floor has passed ─▶ measure

#include "controlplane/controller/state.h"

#include <assert.h>
#include <math.h>

#include "dataplane/gate/place.h"

#define ENDING_MAX 16384u // sessions looked at that end soon
#define LEFT_PASS_MAX 4096u // tickets given back that floor passes in one turn
#define LEFT_STEPS_MAX 64u // runs of tickets given back that one call skips

// How many tickets the threshold should pass so that the slots expected soon find people at the
// door: nobody in vain, as far as the observed yield can tell.
static uint64_t tickets_to_call(const struct controller *c)
{
	const double room = c->room_ahead;
	const double people = present_count(&c->present) + calls_expected(&c->calls);
	return room > people ? (uint64_t)ceil((room - people) / calls_yield(&c->calls)) : 0;
}

// People of the line besides the present, for whom lower classes wait: those expected, and those
// who wait to be called. Nobody knows how many they are while the present find no place.
static uint32_t people_coming(const struct controller *c)
{
	if (holds_first_key(&c->crowded_out, state_available_ms(c)) != UINT64_MAX)
		return UINT32_MAX;
	const double people =
		calls_expected(&c->calls) + (double)state_waiting(c) * calls_yield(&c->calls);
	return people < UINT32_MAX ? (uint32_t)ceil(people) : UINT32_MAX;
}

static void look_ahead(struct controller *c)
{
	const uint64_t half_claim_ms = c->limits.claim_s * 500ull;
	c->ahead_ms =
		half_claim_ms < CONTROLLER_AHEAD_MS ? (uint32_t)half_claim_ms : CONTROLLER_AHEAD_MS;
	if (!c->own.parent) {
		c->room_ahead = pool_within(&c->own, c->ahead_ms, ENDING_MAX, c->now_ms);
		return;
	}
	c->own.coming = people_coming(c);
	pool_look_ahead(&c->own, CONTROLLER_AHEAD_MS, ENDING_MAX, c->now_ms);
	const uint64_t ahead = (uint64_t)c->own.ahead * c->ahead_ms;
	c->room_ahead = (uint32_t)((ahead + CONTROLLER_AHEAD_MS - 1) / CONTROLLER_AHEAD_MS);
}

// Tickets from the threshold to below `key` that were given back.
static uint32_t left_until(const struct controller *c, uint64_t key)
{
	return keyset_below(&c->left, key, 0) - keyset_below(&c->left, c->threshold, 0);
}

// The key below which `count` more tickets stand that were not given back; fewer if those who stood
// beside each other left in great numbers.
static uint64_t key_after(const struct controller *c, uint64_t count)
{
	uint64_t key = place_key_at(c->line, c->threshold_rank + count);
	for (uint32_t i = 0, skipped = 0; i < LEFT_STEPS_MAX; i++) {
		const uint32_t left = left_until(c, key);
		if (left == skipped)
			break;
		key = place_key_at(c->line, c->threshold_rank + count + left);
		skipped = left;
	}
	return key;
}

static void move_threshold(struct controller *c)
{
	const uint64_t count = tickets_to_call(c) + c->release;
	c->release = 0;
	if (count == 0)
		return;
	const uint64_t key = key_after(c, count);
	uint64_t rank;
	place_rank(c->line, key, &rank);
	if (key <= c->threshold || rank <= c->threshold_rank)
		return;
	const uint64_t passed = rank - c->threshold_rank, left = left_until(c, key);
	calls_add(&c->calls, key, passed > left ? passed - left : 0,
		told_longest_ms(&c->told, rank, c->now_ms), c->limits.claim_s * 1000,
		state_available_ms(c));
	c->threshold = key;
	c->threshold_rank = rank;
}

static void move_floor(struct controller *c)
{
	const uint64_t now = state_available_ms(c);
	const uint64_t passed = calls_pass(&c->calls, now);
	if (passed > c->passed)
		c->passed = passed;
	const uint64_t held = holds_first_key(&c->holds, now);
	const uint64_t floor = held < c->passed ? held : c->passed;
	if (floor <= c->floor)
		return;
	assert(floor <= present_first_key(&c->present)); // who is present is held for longer
	uint64_t rank;
	place_rank(c->line, floor, &rank);
	const uint64_t settled = state_settled_from(c, c->floor) - state_settled_from(c, floor);
	const uint64_t passed_by = rank - c->floor_rank;
	c->lapsed_total += passed_by > settled ? passed_by - settled : 0;
	c->floor = floor;
	c->floor_rank = rank;
}

static void pass_left(struct controller *c)
{
	for (uint32_t i = 0; i < LEFT_PASS_MAX; i++) {
		const uint32_t id = keyset_first(&c->left);
		if (id == 0 || keyset_key(&c->left, id) >= c->floor ||
			!sessions_note_left(&c->sessions, CONTROLLER_FORGET,
				keyset_key(&c->left, id), keyset_visitor(&c->left, id)))
			return;
		keyset_remove(&c->left, id);
	}
}

void controller_tick(struct controller *c, uint64_t now_ms)
{
	state_advance(c, now_ms);
	place_close(c->line, c->now_ms / PLACE_SLOT_MS);
	calls_ripen(&c->calls, state_available_ms(c));
	look_ahead(c);
	if (c->available) {
		move_threshold(c);
		move_floor(c);
		flow_tick(&c->flow, c->threshold_rank, state_waiting(c) > 0, state_available_ms(c));
	}
	sessions_pass(&c->sessions, c->floor);
	pass_left(c);
}
