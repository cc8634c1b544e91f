// Publish: the line's words, and the view for people.

#include "controlplane/controller/state.h"

#include "dataplane/gate/place.h"

#define KEPT_BACK 8 // times slower than a line that had all slots to itself

static uint32_t open_count(const struct controller *c)
{
	if (!c->available || !c->limits.direct || !sessions_has_room(&c->sessions))
		return 0;
	const uint32_t free = pool_free(&c->own), people = pool_people_direct(&c->own);
	return free < people ? free : people;
}

// A mint announces itself in the word of openings, then adds to the line's word, then announces
// itself again. We clear the announcement, then look whether the word moved: one of us sees the
// other.
static void publish_open(struct controller *c, bool hold)
{
	struct place_line *line = c->line;
	const uint64_t word = atomic_load(&line->word);
	uint64_t open = PLACE_OPEN_LINE;
	if (state_nobody_waits(c))
		open = open_count(c);
	if (hold || !c->available)
		open |= PLACE_OPEN_HOLD;
	atomic_store(&line->open, open);
	if (atomic_load(&line->word) != word)
		atomic_fetch_or(&line->open, PLACE_OPEN_LINE);
}

// In a line that others keep back nobody knows the wait; but the slots may be its own any moment,
// and then somebody must be there. So its people are told to poll as if the others were gone.
static void expected_wait(const struct controller *c, uint64_t *low, uint64_t *high)
{
	const double expected = state_expected_outflow(c);
	flow_wait(&c->flow, expected, low, high);
	if (!c->own.parent || *high == FLOW_UNKNOWN)
		return;
	const double limits = pool_outflow(&c->own, c->limits.session_s, true);
	const double seen = pool_admit_rate(&c->own, c->now_ms);
	const double best = seen > limits ? seen : limits;
	if (best <= KEPT_BACK * flow_rate(&c->flow, expected))
		return;
	*low = FLOW_UNKNOWN;
	*high = (uint64_t)(0x1p32 / best);
}

void controller_publish(struct controller *c, bool hold, uint64_t now_ms)
{
	state_advance(c, now_ms);
	struct place_line *line = c->line;
	uint64_t low, high;
	expected_wait(c, &low, &high);
	atomic_store(&line->wait_low, low);
	atomic_store(&line->wait_high, high);
	atomic_store(&line->next_poll_after, state_next_poll_after(c, present_count(&c->present)));
	atomic_store(&line->door_wait_ms, state_door_wait_ms(c));
	atomic_store(&line->left_waiting,
		keyset_count(&c->left) - keyset_below(&c->left, c->threshold, 0));
	atomic_store(&line->threshold_rank, c->threshold_rank);
	atomic_store(&line->threshold, c->threshold);
	atomic_store(&line->floor, c->floor);
	told_publish(&c->told, c->threshold_rank, high, c->now_ms);
	place_trim(line, c->floor);
	publish_open(c, hold);
}

// The least that any of the pools says; a look may come before the period is brought up to date.
static uint32_t left_of_period(const struct pool *pool, uint64_t now_ms, bool is_direct)
{
	uint32_t least = UINT32_MAX;
	for (; pool; pool = pool->parent) {
		struct quota quota = is_direct ? pool->direct : pool->all;
		if (now_ms > pool->bucket.now_ms)
			quota_advance(&quota, now_ms);
		least = quota_left(&quota) < least ? quota_left(&quota) : least;
	}
	return least;
}

void controller_look(const struct controller *c, uint64_t now_ms, struct controller_view *view)
{
	const uint32_t present = present_count(&c->present), reserved = state_reserved(c);
	const uint64_t settled =
		state_settled_from(c, c->floor) - state_settled_from(c, c->threshold);
	const uint64_t called = c->threshold_rank - c->floor_rank;
	*view = (struct controller_view){
		.threshold = c->threshold,
		.floor = c->floor,
		.waiting = state_waiting(c),
		.called = called > settled ? called - settled : 0,
		.present = present,
		.reserved = reserved < present ? reserved : present,
		.sessions = c->own.taken,
		.sessions_max_seen = c->sessions_max_seen,
		.admitted_total = c->admitted_total,
		.direct_total = c->direct_total,
		.undone_total = c->undone_total,
		.lapsed_total = c->lapsed_total,
		.left_total = c->left_total,
		.ended_total = c->sessions.ended_total,
		.expired_total = c->sessions.expired_total,
		.overtakes_total = c->overtakes_total,
		.sessions_full_total = c->sessions_full_total,
		.present_full_total = c->present_full_total,
		.left_full_total = c->left_full_total,
		.gaps_total = c->gaps_total,
		.batch_left = left_of_period(&c->own, now_ms, false),
		.inflow_left = left_of_period(&c->own, now_ms, true),
		.slot_ms = (uint32_t)(atomic_load(&c->line->stride) * PLACE_SLOT_MS),
		.yield = calls_yield(&c->calls),
		.outflow = flow_rate(&c->flow, 0),
		.admit_rate = tally_rate(&c->own.admitted, now_ms),
	};
}
