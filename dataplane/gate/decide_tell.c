// The status of a decision: place, people ahead, expected wait, and when to ask again.

#include "dataplane/gate/decide_tell.h"

#include "dataplane/gate/decide_gather.h"
#include "dataplane/gate/pace.h"
#include "dataplane/gate/place.h"

#define SYNC_S 2u // by then appliances have told each other, as long as they can

void decide_tell_answer(struct decide_view *v, enum decide_answer answer)
{
	v->out->action = DECIDE_ANSWER;
	v->out->answer = answer;
}

uint64_t decide_tell_waiting(const struct decide_view *v)
{
	uint64_t total = place_total(v->line);
	uint64_t called = atomic_load_explicit(&v->line->threshold_rank, memory_order_relaxed);
	return total > called ? total - called : 0;
}

uint32_t decide_tell_poll_after(const struct decide_view *v, uint64_t ahead)
{
	uint64_t wait = atomic_load_explicit(&v->line->wait_high, memory_order_relaxed);
	return pace_poll_after(ahead, wait, v->in->random);
}

uint32_t decide_tell_rest(const struct decide_view *v)
{
	return DECIDE_REST_S - (v->in->random & 15);
}

uint32_t decide_tell_next(const struct decide_view *v)
{
	uint32_t after = atomic_load_explicit(&v->line->next_poll_after, memory_order_relaxed);
	return after < PACE_MIN_S ? PACE_MIN_S : after > PACE_MAX_S ? PACE_MAX_S : after;
}

// Seconds for `ahead` people at `wait` 2^-32 s each.
static uint64_t eta_s(uint64_t ahead, uint64_t wait)
{
	return (uint64_t)((unsigned __int128)ahead * wait >> 32);
}

// The line moves when whoever is ahead has been called and then this one too: `ahead` moves at the
// least, if the next is due this very moment, and one more at the most.
static void estimate(const struct decide_view *v, struct status *status)
{
	uint64_t low = atomic_load_explicit(&v->line->wait_low, memory_order_relaxed);
	uint64_t high = atomic_load_explicit(&v->line->wait_high, memory_order_relaxed);
	if (low == PACE_WAIT_UNKNOWN || high == PACE_WAIT_UNKNOWN)
		return;
	uint32_t door_ms = atomic_load_explicit(&v->line->door_wait_ms, memory_order_relaxed);
	status->eta_low = eta_s(status->ahead, low) + door_ms / 1000;
	status->eta_high = eta_s(status->ahead + 1, high) + (door_ms + 999) / 1000;
	if (status->eta_high < status->eta_low)
		status->eta_high = status->eta_low;
}

// Of the time from the ticket's issue to the middle of the expected turn, how much has passed.
static uint16_t progress(const struct decide_view *v, const struct status *status, uint32_t issued)
{
	uint64_t passed = v->in->now_s > issued ? v->in->now_s - issued : 0;
	uint64_t left = (status->eta_low + status->eta_high) / 2;
	if (status->eta_high == STATUS_UNKNOWN || passed + left == 0)
		return 0;
	return (uint16_t)(passed * 1000 / (passed + left));
}

// Where people gather, ranks come from their lists too.
static bool rank_of(const struct decide_view *v, const struct token *ticket, uint64_t *rank)
{
	return v->room->gather ? decide_gather_rank(v, ticket, rank)
			       : place_rank_counted(v->line, ticket->key, rank);
}

// Appliances that share the line have not told each other yet who came before this ticket: that
// takes them a sync, so who has just come asks again at once.
static uint32_t untold_poll_after(const struct decide_view *v, const struct token *ticket)
{
	return v->in->now_s > ticket->issued + SYNC_S
		       ? decide_tell_poll_after(v, decide_tell_waiting(v))
		       : PACE_MIN_S;
}

void decide_tell(struct decide_view *v, enum status_state state, const struct token *ticket,
	uint32_t after_s)
{
	struct status *status = &v->out->status;
	*status = (struct status){.state = state,
		.exact = true,
		.poll_after = after_s,
		.opens = v->room->opens_s,
		.position = STATUS_UNKNOWN,
		.ahead = state == STATUS_next || state == STATUS_admitted ? 0 : STATUS_UNKNOWN,
		.ahead_min = STATUS_UNKNOWN,
		.eta_low = STATUS_UNKNOWN,
		.eta_high = STATUS_UNKNOWN,
		.progress = state == STATUS_next ? 1000 : 0,
		.now = v->in->now_s};
	decide_tell_answer(v, decide_tell_is_poll(v) ? DECIDE_STATUS : DECIDE_PAGE);
	if (!ticket)
		return;
	uint64_t rank,
		called = atomic_load_explicit(&v->line->threshold_rank, memory_order_acquire);
	status->exact = rank_of(v, ticket, &rank);
	if (rank != PLACE_UNKNOWN)
		status->position = rank + 1;
	if (state != STATUS_waiting)
		return;
	if (rank == PLACE_UNKNOWN) {
		status->poll_after = untold_poll_after(v, ticket);
		return;
	}
	status->ahead = rank > called ? rank - called : 0;
	status->poll_after = decide_tell_poll_after(v, status->ahead);
	estimate(v, status);
	if (!decide_tell_is_poll(v)) // a page shows it
		status->progress = progress(v, status, ticket->issued);
}
