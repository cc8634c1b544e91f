// One decision moves several counters: what was given, how whoever got it had come, and the answer
// that it was told by.

#include "dataplane/act_count.h"

#include <assert.h>

// A newcomer got a place, or was let in without one.
static void count_newcomer(struct worker *w, const struct item *item, bool is_placed)
{
	static const int16_t entries[] = {[GATE_ENTRY_ADDRESS] = COUNTER_lane_by_address,
		[GATE_ENTRY_HEADER] = COUNTER_lane_by_header,
		[GATE_ENTRY_LINK] = COUNTER_lane_by_link,
		[GATE_ENTRY_UNTRUSTED] = COUNTER_lane_untrusted,
		[GATE_ENTRY_OVER] = COUNTER_lane_link_over};
	const struct gate_request *request = &item->request;
	assert(request->entry_by < sizeof(entries) / sizeof(entries[0]));
	if (entries[request->entry_by] > 0 && request->route != GATE_ROUTE_CODE)
		inside_count(w, (enum counter)entries[request->entry_by]);
	if (request->room->mode == GATE_MODE_PEAK)
		inside_count(w, is_placed ? COUNTER_peak_queued : COUNTER_peak_direct);
}

static void count_given(struct worker *w, const struct item *item, const struct decision *decision)
{
	const bool is_direct =
		decision->sets_pass && item->answer && item->answer->kind == CLAIM_DIRECT;
	if (decision->was_minted)
		inside_count(w, COUNTER_tickets);
	if (decision->was_minted && decision->ticket.flags & TOKEN_FLAG_GATHERED)
		inside_count(w, COUNTER_gathered);
	if (decision->sets_pass)
		inside_count(w, COUNTER_granted);
	if (decision->was_minted || is_direct)
		count_newcomer(w, item, decision->was_minted);
}

// Somebody was told that there is no way in.
static void count_state(struct worker *w, enum status_state state, bool is_page)
{
	if (state == STATUS_rejected)
		inside_count(w, COUNTER_rejected);
	else if (state == STATUS_closed)
		inside_count(w, COUNTER_closed);
	else if (state == STATUS_full && is_page)
		inside_count(w, COUNTER_full);
}

static enum counter counter_of_code(enum code_outcome outcome)
{
	static const uint8_t counters[CODE_OUTCOME_COUNT] = {[CODE_asked] = COUNTER_code_pages,
		[CODE_invalid] = COUNTER_code_invalid,
		[CODE_long] = COUNTER_code_long,
		[CODE_unsized] = COUNTER_code_unsized,
		[CODE_unknown] = COUNTER_code_unknown,
		[CODE_spent] = COUNTER_code_spent,
		[CODE_guarded] = COUNTER_code_guarded};
	static_assert(COUNTER_COUNT <= UINT8_MAX, "a counter fits");
	assert(outcome < CODE_OUTCOME_COUNT);
	return counters[outcome];
}

static enum counter counter_of_refusal(const struct gate_request *request)
{
	if (request->route == GATE_ROUTE_LEAVE)
		return COUNTER_leave_unanswered;
	if (request->route == GATE_ROUTE_CODE)
		return COUNTER_code_unanswered;
	const bool may_draw = request->draws && !request->is_prefetch;
	return may_draw ? COUNTER_draining : COUNTER_unguarded_method;
}

static void count_answer(struct worker *w, const struct item *item, const struct decision *decision)
{
	static const int16_t counters[] = {[DECIDE_PAGE] = COUNTER_pages,
		[DECIDE_STATUS] = COUNTER_polls,
		[DECIDE_UNKNOWN] = COUNTER_unknown,
		[DECIDE_HTTPS] = COUNTER_sent_to_https,
		[DECIDE_CROSS_SITE] = COUNTER_cross_site,
		[DECIDE_NOT_FOUND] = COUNTER_not_found,
		[DECIDE_METHOD] = COUNTER_bad_method,
		[DECIDE_BAD_TARGET] = COUNTER_bad_target,
		[DECIDE_MISDIRECTED] = COUNTER_misdirected,
		[DECIDE_ASSET] = COUNTER_assets,
		[DECIDE_DRAW] = COUNTER_draws,
		[DECIDE_DRAW_KEYS] = COUNTER_draws,
		[DECIDE_DRAW_NONE] = COUNTER_not_found};
	assert(decision->answer < sizeof(counters) / sizeof(counters[0]));
	if (decision->answer == DECIDE_PAGE || decision->answer == DECIDE_STATUS)
		count_state(w, decision->status.state, decision->answer == DECIDE_PAGE);
	if (decision->answer == DECIDE_LEFT && item->answer)
		inside_count(w, COUNTER_left);
	else if (decision->answer == DECIDE_INVITATION)
		inside_count(w, counter_of_code(decision->outcome));
	else if (decision->answer == DECIDE_UNAVAILABLE)
		inside_count(w, counter_of_refusal(&item->request));
	else if (counters[decision->answer] > 0)
		inside_count(w, (enum counter)counters[decision->answer]);
}

void act_count(struct worker *w, const struct item *item, const struct decision *decision)
{
	count_given(w, item, decision);
	if (decision->action == DECIDE_ANSWER)
		count_answer(w, item, decision);
}
