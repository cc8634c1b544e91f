// Caller: what moves threshold and floor, and what follows for those who wait.
//
//   room ahead − present − expected ─▶ tickets ─▶ key ─▶ threshold; a call
//   turns that are over, holds ─▶ floor

#include "controlplane/controller/caller.h"

#include <assert.h>
#include <math.h>

#include "controlplane/controller/controller.h"
#include "dataplane/gate/pace.h"
#include "dataplane/gate/place.h"

#define ENDING_MAX 16384u // sessions looked at that end soon
#define LEFT_STEPS_MAX 64u // runs of tickets given back that one call skips
#define DOOR_WAIT_MAX_MS 60000u
#define KEPT_BACK 8 // times slower than a line that had all slots to itself

static uint32_t least(uint32_t a, uint32_t b)
{
	return a < b ? a : b;
}

static uint32_t present_of(const struct caller *c)
{
	return c->own.line->present(&c->own);
}

// A key that is called or may be. That of the first slot that is not final, in a line that several
// appliances share, stands behind all that is.
static uint64_t rank_of(const struct caller *c, uint64_t key)
{
	uint64_t rank;
	place_rank(c->line, key, &rank);
	return rank != PLACE_UNKNOWN ? rank : place_before(c->line, place_slot(key));
}

void caller_init(struct caller *c, const struct place_line *line, const struct pool_limits *limits,
	const struct pool_words *words, uint64_t now_ms)
{
	*c = (struct caller){.line = line, .now_ms = now_ms, .available = true};
	pool_init(&c->own, limits, words, now_ms);
	calls_init(&c->calls, now_ms);
	flow_init(&c->flow, 0, now_ms);
}

void caller_fini(struct caller *c)
{
	pool_join(&c->own, NULL, 1, 1, NULL);
	keyset_fini(&c->left);
}

void caller_take_over(struct caller *c, uint64_t threshold, uint64_t floor, uint64_t tickets,
	const struct calls_state *state)
{
	const uint64_t now = caller_available_ms(c);
	c->floor = c->passed = floor;
	c->threshold = threshold < floor ? floor : threshold; // only after a power loss
	c->threshold_rank = rank_of(c, c->threshold);
	c->floor_rank = rank_of(c, c->floor);
	calls_init(&c->calls, now);
	flow_init(&c->flow, c->threshold_rank, now);
	if (c->threshold == c->floor)
		return;
	const uint64_t called = c->threshold_rank - c->floor_rank;
	if (state) {
		calls_resume(&c->calls, c->threshold, state, now);
		caller_prolong(c);
		return;
	}
	calls_add(&c->calls, c->threshold, tickets < called ? tickets : called, 0, 0, now);
	caller_begin_anew(c);
}

void caller_begin_anew(struct caller *c)
{
	const uint32_t heard_ms = PACE_MAX_S * 1000 + c->lag_ms;
	calls_renew(&c->calls, heard_ms, c->claim_s * 1000, caller_available_ms(c));
	told_forget(&c->told, c->now_ms);
}

void caller_prolong(struct caller *c)
{
	const uint32_t heard_ms = PACE_MAX_S * 1000 + c->lag_ms;
	calls_prolong(&c->calls, heard_ms, c->claim_s * 1000, caller_available_ms(c));
	told_forget(&c->told, c->now_ms);
}

void caller_advance(struct caller *c, uint64_t now_ms)
{
	const uint64_t elapsed = now_ms > c->now_ms ? now_ms - c->now_ms : 0;
	c->now_ms += elapsed;
	if (!c->available) {
		c->off_ms += elapsed;
	} else if (elapsed > CONTROLLER_GAP_MS) {
		c->off_ms += elapsed;
		c->gaps_total++;
		caller_begin_anew(c);
	}
	pool_advance(&c->own, c->now_ms);
}

void caller_set_available(struct caller *c, bool available)
{
	if (available && !c->available)
		caller_begin_anew(c);
	c->available = available;
	c->own.is_closed = !available;
}

void caller_release(struct caller *c, uint64_t count)
{
	c->release += count;
	if (c->release < count)
		c->release = UINT64_MAX / 2;
}

void caller_settle(struct caller *c, uint64_t key)
{
	if (key >= c->floor)
		calls_settled(&c->calls, key);
}

uint64_t caller_waiting(const struct caller *c, uint64_t total)
{
	const uint32_t left = keyset_count(&c->left) - keyset_below(&c->left, c->threshold, 0);
	const uint64_t settled = c->threshold_rank + left;
	return total > settled ? total - settled : 0;
}

// --- threshold

// How many tickets the threshold should pass so that the slots expected soon find people at the
// door: nobody in vain, as far as the observed yield can tell.
static uint64_t tickets_to_call(const struct caller *c)
{
	const double room = c->room_ahead;
	const double people = present_of(c) + calls_expected(&c->calls);
	return room > people ? (uint64_t)ceil((room - people) / calls_yield(&c->calls)) : 0;
}

// People of the line besides the present, for whom lower classes wait: those expected, and those
// who wait to be called. Nobody knows how many they are while the present find no place.
static uint32_t people_coming(const struct caller *c, uint64_t total)
{
	if (holds_first_key(&c->crowded_out, caller_available_ms(c)) != UINT64_MAX)
		return UINT32_MAX;
	const double people = calls_expected(&c->calls) +
			      (double)caller_waiting(c, total) * calls_yield(&c->calls);
	return people < UINT32_MAX ? (uint32_t)ceil(people) : UINT32_MAX;
}

void caller_look_ahead(struct caller *c, uint64_t total)
{
	const uint64_t half_claim_ms = c->claim_s * 500ull;
	calls_ripen(&c->calls, caller_available_ms(c));
	c->ahead_ms =
		half_claim_ms < CONTROLLER_AHEAD_MS ? (uint32_t)half_claim_ms : CONTROLLER_AHEAD_MS;
	if (!c->own.parent) {
		c->room_ahead = pool_within(&c->own, c->ahead_ms, ENDING_MAX, c->now_ms);
		return;
	}
	c->own.coming = people_coming(c, total);
	pool_look_ahead(&c->own, CONTROLLER_AHEAD_MS, ENDING_MAX, c->now_ms);
	const uint64_t ahead = (uint64_t)c->own.ahead * c->ahead_ms;
	c->room_ahead = (uint32_t)((ahead + CONTROLLER_AHEAD_MS - 1) / CONTROLLER_AHEAD_MS);
}

// Tickets from the threshold to below `key` that were given back.
static uint32_t left_until(const struct caller *c, uint64_t key)
{
	return keyset_below(&c->left, key, 0) - keyset_below(&c->left, c->threshold, 0);
}

// The key below which `count` more tickets stand that were not given back; fewer if those who stood
// beside each other left in great numbers.
static uint64_t key_after(const struct caller *c, uint64_t count)
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

void caller_move_threshold(struct caller *c)
{
	const uint64_t count = tickets_to_call(c) + c->release;
	c->release = 0;
	if (count == 0)
		return;
	const uint64_t key = key_after(c, count), rank = rank_of(c, key);
	if (key <= c->threshold || rank <= c->threshold_rank)
		return;
	const uint64_t passed = rank - c->threshold_rank, left = left_until(c, key);
	calls_add(&c->calls, key, passed > left ? passed - left : 0,
		told_longest_ms(&c->told, rank, c->now_ms), c->claim_s * 1000 + c->lag_ms,
		caller_available_ms(c));
	c->threshold = key;
	c->threshold_rank = rank;
}

// --- floor

uint64_t caller_floor(struct caller *c)
{
	const uint64_t now = caller_available_ms(c);
	const uint64_t passed = calls_pass(&c->calls, now);
	if (passed > c->passed)
		c->passed = passed;
	const uint64_t held = holds_first_key(&c->holds, now);
	return held < c->passed ? held : c->passed;
}

uint64_t caller_raise_floor(struct caller *c, uint64_t key)
{
	assert(key >= c->floor && key <= c->threshold);
	const uint64_t rank = rank_of(c, key);
	const uint64_t passed_by = rank - c->floor_rank;
	c->floor = key;
	c->floor_rank = rank;
	return passed_by;
}

void caller_lapse(struct caller *c, uint64_t key)
{
	calls_init(&c->calls, caller_available_ms(c));
	c->holds = c->crowded_out = (struct holds){0};
	c->release = 0;
	if (key > c->threshold) {
		c->threshold = key;
		c->threshold_rank = rank_of(c, key);
	}
	c->passed = key;
}

// --- what those who wait are told

void caller_publish(struct caller *c, uint64_t wait_high)
{
	told_publish(&c->told, c->threshold_rank, wait_high, c->now_ms);
}

// Ranks per second that the limits suggest, at best; 0: they do not limit.
static double expected_outflow(const struct caller *c)
{
	return pool_outflow(&c->own, c->session_s, false);
}

// In a line that others keep back nobody knows the wait; but the slots may be its own any moment,
// and then somebody must be there. So its people are told to poll as if the others were gone.
void caller_wait(const struct caller *c, uint64_t *low, uint64_t *high)
{
	const double expected = expected_outflow(c);
	flow_wait(&c->flow, expected, low, high);
	if (!c->own.parent || *high == FLOW_UNKNOWN)
		return;
	const double limits = pool_outflow(&c->own, c->session_s, true);
	const double seen = pool_admit_rate(&c->own, c->now_ms);
	const double best = seen > limits ? seen : limits;
	if (best <= KEPT_BACK * flow_rate(&c->flow, expected))
		return;
	*low = FLOW_UNKNOWN;
	*high = (uint64_t)(0x1p32 / best);
}

uint32_t caller_reserved(const struct caller *c)
{
	return pool_reserved(&c->own, present_of(c) + 1);
}

uint32_t caller_next_poll_after(const struct caller *c, uint32_t before)
{
	const uint32_t reserved = caller_reserved(c);
	if (before < reserved)
		return PACE_MIN_S;
	// Half the time until a reservation is expected, so that few of them wait for their holder;
	// a quarter where others may leave theirs.
	const uint64_t room = c->room_ahead > 0 ? c->room_ahead : 1;
	const uint64_t wait_ms = (before - reserved) * (uint64_t)c->ahead_ms / room;
	const uint64_t part_ms = wait_ms / (c->own.parent ? 4 : 2);
	return least((uint32_t)(part_ms / 1000) + PACE_MIN_S, CONTROLLER_NEXT_MAX_S);
}

uint32_t caller_door_wait_ms(const struct caller *c)
{
	const double people = present_of(c) + calls_expected(&c->calls);
	const double admits = tally_rate(&c->own.admitted, c->now_ms);
	const double rate = admits > 0 ? admits : expected_outflow(c);
	const double wait_ms = rate > 0 ? people * 1000 / rate : 0;
	return wait_ms < DOOR_WAIT_MAX_MS ? (uint32_t)wait_ms : DOOR_WAIT_MAX_MS;
}

uint32_t caller_open_count(const struct caller *c)
{
	return least(pool_free(&c->own), pool_people_direct(&c->own));
}
