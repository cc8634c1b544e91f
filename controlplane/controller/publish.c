// Publish: the line's words, and the view for people.

#include "controlplane/controller/state.h"

#include "dataplane/gate/place.h"

static uint32_t open_count(const struct controller *c)
{
	if (!c->call.available || !c->limits.direct || !sessions_has_room(&c->sessions))
		return 0;
	return caller_open_count(&c->call);
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
	if (hold || !c->call.available)
		open |= PLACE_OPEN_HOLD;
	atomic_store(&line->open, open);
	if (atomic_load(&line->word) != word)
		atomic_fetch_or(&line->open, PLACE_OPEN_LINE);
}

void controller_publish(struct controller *c, bool hold, uint64_t now_ms)
{
	state_advance(c, now_ms);
	struct place_line *line = c->line;
	uint64_t low, high;
	caller_wait(&c->call, &low, &high);
	atomic_store(&line->wait_low, low);
	atomic_store(&line->wait_high, high);
	atomic_store(&line->next_poll_after,
		caller_next_poll_after(&c->call, present_count(&c->present)));
	atomic_store(&line->door_wait_ms, caller_door_wait_ms(&c->call));
	atomic_store(&line->left_waiting,
		keyset_count(&c->call.left) - keyset_below(&c->call.left, c->call.threshold, 0));
	atomic_store(&line->threshold_rank, c->call.threshold_rank);
	atomic_store(&line->threshold, c->call.threshold);
	atomic_store(&line->floor, c->call.floor);
	caller_publish(&c->call, high);
	place_trim(line, c->call.floor);
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
	const uint32_t present = present_count(&c->present), reserved = caller_reserved(&c->call);
	const uint64_t settled =
		state_settled_from(c, c->call.floor) - state_settled_from(c, c->call.threshold);
	const uint64_t called = c->call.threshold_rank - c->call.floor_rank;
	*view = (struct controller_view){
		.threshold = c->call.threshold,
		.floor = c->call.floor,
		.waiting = state_waiting(c),
		.called = called > settled ? called - settled : 0,
		.present = present,
		.reserved = reserved < present ? reserved : present,
		.sessions = c->call.own.taken,
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
		.gaps_total = c->call.gaps_total,
		.batch_left = left_of_period(&c->call.own, now_ms, false),
		.inflow_left = left_of_period(&c->call.own, now_ms, true),
		.slot_ms = (uint32_t)(atomic_load(&c->line->stride) * PLACE_SLOT_MS),
		.yield = calls_yield(&c->call.calls),
		.outflow = flow_rate(&c->call.flow, 0),
		.admit_rate = tally_rate(&c->call.own.admitted, now_ms),
	};
}
