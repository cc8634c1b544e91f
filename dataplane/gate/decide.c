// The decision, in the order of contract section 2: a pass, a turn, a free slot, a place.
//
// A view holds what one decision looks at: the words of the line, read once, floor before threshold
// (floor never passes it), and the ticket that counts: the smallest key that has not lapsed and was
// not given back. Then each function settles one question and calls the next. A page view and a
// status poll go the same way and differ in two things: only a page view draws a place, and only a
// status poll says `expired`.

#include "dataplane/gate/decide.h"

#include "dataplane/gate/ended.h"
#include "dataplane/gate/pace.h"
#include "dataplane/gate/place.h"
#include "dataplane/http/head.h"

#include <assert.h>

struct view {
	const struct decide_input *in;
	const struct gate_request *request;
	const struct gate_room *room;
	struct place_line *line;
	uint64_t floor, threshold, open;
	const struct claim_answer *answer; // control's, for this very room; NULL: none
	bool was_asked; // control was, whatever came of it
	bool may_claim; // not held, and not late already
	const struct gate_token *ticket; // not lapsed, not given back; NULL: none
	const struct token *pass; // neither run out nor ended; NULL: none
	struct decision *out;
};

static void decide_guarded(struct view *v);
static void decide_status(struct view *v);
static void decide_leave(struct view *v);
static bool decide_by_pass(struct view *v);
static void decide_by_ticket(struct view *v);
static void decide_by_answer(struct view *v);
static void decide_newcomer(struct view *v);
static void draw_place(struct view *v);
static void clear_cookies(struct view *v);

static void answer(struct view *v, enum decide_answer answer)
{
	v->out->action = DECIDE_ANSWER;
	v->out->answer = answer;
}

static bool is_poll(const struct view *v)
{
	return v->request->route == GATE_ROUTE_STATUS;
}

// Whether its turn is not over, and it was not given back: two lines of memory at most, and one
// word while nobody has given any back. Who leaves may say so again.
static bool is_good(const struct view *v, const struct token *ticket)
{
	const struct ended *left = v->request->route == GATE_ROUTE_LEAVE ? NULL : v->in->left;
	return ticket->key >= v->floor && !(left && ended_has(left, ticket->visitor));
}

static const struct gate_token *valid_ticket(const struct view *v)
{
	const struct gate_request *request = v->request;
	if (!request->ticket || is_good(v, &request->ticket->token))
		return request->ticket;
	const struct gate_token *best = NULL;
	for (uint32_t i = 0; i < request->token_count; i++) {
		const struct gate_token *token = &request->tokens[i];
		if (token->state != GATE_TOKEN_VALID || token->token.kind != TOKEN_TICKET ||
			token->token.line_id != v->room->line_id || !is_good(v, &token->token))
			continue;
		if (!best || token->token.key < best->token.key)
			best = token;
	}
	return best;
}

// An answer that a reload crossed, so that its room is another one now, counts as none.
static void look_at_answer(struct view *v)
{
	const struct claim_answer *answer = v->in->answer;
	v->was_asked = answer || v->in->answer_is_late;
	v->may_claim = !v->in->is_held && !v->in->answer_is_late && !(v->open & PLACE_OPEN_HOLD);
	if (answer && answer->line_id == v->room->line_id)
		v->answer = answer;
	else if (answer)
		v->may_claim = false;
}

static void look_at_room(struct view *v)
{
	struct place_line *line = v->line = v->room->line;
	v->floor = atomic_load_explicit(&line->floor, memory_order_acquire);
	v->threshold = atomic_load_explicit(&line->threshold, memory_order_acquire);
	v->open = atomic_load_explicit(&line->open, memory_order_acquire);
	v->ticket = valid_ticket(v);
	if (v->request->pass && !v->in->pass_has_ended)
		v->pass = &v->request->pass->token;
	look_at_answer(v);
}

// Whether the site is for https alone. Its health is told anyhow: who asks is no visitor.
static bool must_be_secure(const struct view *v)
{
	const struct gate_request *request = v->request;
	return v->in->is_plain && request->site && request->site->https_port > 0 &&
	       request->target.at[0] == '/' && request->route != GATE_ROUTE_BAD &&
	       request->route != GATE_ROUTE_HEALTH;
}

void decide(const struct decide_input *input, struct decision *decision)
{
	struct view v = {.in = input,
		.request = input->request,
		.room = input->request->room,
		.out = decision};
	*decision = (struct decision){.action = DECIDE_FORWARD};
	if (must_be_secure(&v))
		return answer(&v, v.request->target.len < DECIDE_LOCATION_BYTES_MAX - 300
					  ? DECIDE_HTTPS
					  : DECIDE_BAD_TARGET);
	if (v.room)
		look_at_room(&v);
	switch ((enum gate_route)v.request->route) {
	case GATE_ROUTE_BAD:
		return answer(&v, DECIDE_BAD_TARGET);
	case GATE_ROUTE_MISDIRECTED:
		return answer(&v, DECIDE_MISDIRECTED);
	case GATE_ROUTE_UNKNOWN:
		return answer(&v, DECIDE_NOT_FOUND);
	case GATE_ROUTE_UNGUARDED:
		return;
	case GATE_ROUTE_GUARDED:
		decide_guarded(&v);
		return clear_cookies(&v);
	case GATE_ROUTE_STATUS:
		decide_status(&v);
		return clear_cookies(&v);
	case GATE_ROUTE_LEAVE:
		return decide_leave(&v);
	case GATE_ROUTE_DRAW:
	case GATE_ROUTE_DRAW_KEYS:
		return answer(&v, v.request->method == HTTP_GET ? DECIDE_DRAW_NONE : DECIDE_METHOD);
	case GATE_ROUTE_SERVER:
		return answer(&v, DECIDE_SERVER);
	case GATE_ROUTE_HEALTH:
		decision->is_draining = input->is_draining;
		decision->is_unhealthy = input->is_unhealthy;
		return answer(&v, v.request->method == HTTP_GET || v.request->method == HTTP_HEAD
					  ? DECIDE_HEALTH
					  : DECIDE_METHOD);
	}
}

// How many wait for their turn, given back or not.
static uint64_t waiting(const struct view *v)
{
	uint64_t total = place_total(v->line);
	uint64_t called = atomic_load_explicit(&v->line->threshold_rank, memory_order_relaxed);
	return total > called ? total - called : 0;
}

static uint32_t poll_after(const struct view *v, uint64_t ahead)
{
	uint64_t wait = atomic_load_explicit(&v->line->wait_high, memory_order_relaxed);
	return pace_poll_after(ahead, wait, v->in->random);
}

// 45 to 60 s.
static uint32_t rest_s(const struct view *v)
{
	return DECIDE_REST_S - (v->in->random & 15);
}

static uint32_t next_poll_after(const struct view *v)
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
static void estimate(const struct view *v, struct status *status)
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
static uint16_t progress(const struct view *v, const struct status *status, uint32_t issued)
{
	uint64_t passed = v->in->now_s > issued ? v->in->now_s - issued : 0;
	uint64_t left = (status->eta_low + status->eta_high) / 2;
	if (status->eta_high == STATUS_UNKNOWN || passed + left == 0)
		return 0;
	return (uint16_t)(passed * 1000 / (passed + left));
}

// Tell the visitor where they stand.
//   ticket  whose place it is; NULL: nobody's
static void tell(
	struct view *v, enum status_state state, const struct token *ticket, uint32_t after_s)
{
	struct status *status = &v->out->status;
	*status = (struct status){.state = state,
		.exact = true,
		.poll_after = after_s,
		.position = STATUS_UNKNOWN,
		.ahead = state == STATUS_next || state == STATUS_admitted ? 0 : STATUS_UNKNOWN,
		.eta_low = STATUS_UNKNOWN,
		.eta_high = STATUS_UNKNOWN,
		.progress = state == STATUS_next ? 1000 : 0,
		.now = v->in->now_s};
	answer(v, is_poll(v) ? DECIDE_STATUS : DECIDE_PAGE);
	if (!ticket)
		return;
	uint64_t rank,
		called = atomic_load_explicit(&v->line->threshold_rank, memory_order_acquire);
	status->exact = place_rank(v->line, ticket->key, &rank);
	status->position = rank + 1;
	if (state != STATUS_waiting)
		return;
	status->ahead = rank > called ? rank - called : 0;
	status->poll_after = poll_after(v, status->ahead);
	estimate(v, status);
	status->progress = progress(v, status, ticket->issued);
}

// The visitor's ticket goes out again when it did not come as a cookie, since answers carry what
// requests do; and in the second half of its cookie's life, with a new date, so that who keeps
// polling never loses it.
static void keep_ticket(struct view *v)
{
	const struct gate_token *ticket = v->ticket;
	uint32_t age =
		v->in->now_s > ticket->token.issued ? v->in->now_s - ticket->token.issued : 0;
	bool is_old = age >= v->room->ticket_ttl_s / 2;
	v->out->ticket = ticket->token;
	v->out->sets_ticket = is_old || ticket->carried.carrier != CARRY_COOKIE;
	if (is_old)
		v->out->ticket.issued = v->in->now_s;
}

// Whether a token that still holds goes out again all the same: it came as a header.
static bool is_echoed(const struct view *v, const struct gate_token *token)
{
	return token->carried.carrier == CARRY_HEADER && is_poll(v);
}

static void unavailable(struct view *v)
{
	answer(v, DECIDE_UNAVAILABLE);
	v->out->status.poll_after = poll_after(v, waiting(v));
}

static void decide_guarded(struct view *v)
{
	const struct gate_request *request = v->request;
	if (decide_by_pass(v))
		return;
	if (v->room->mode == GATE_MODE_OFF) {
		v->out->is_uncounted = request->draws;
		return;
	}
	if (!request->draws || request->is_prefetch) {
		unavailable(v);
		if (request->is_preflight) {
			v->out->action = DECIDE_FORWARD;
			v->out->is_preflight = true;
		}
		return;
	}
	if (request->takes_query && request->redirect.len <= DECIDE_LOCATION_BYTES_MAX) {
		v->out->ticket = request->ticket->token;
		v->out->sets_ticket = true;
		return answer(v, DECIDE_REDIRECT);
	}
	if (v->answer)
		return decide_by_answer(v);
	decide_by_ticket(v);
}

static void decide_status(struct view *v)
{
	if (v->request->method != HTTP_GET)
		return answer(v, DECIDE_METHOD);
	if (decide_by_pass(v))
		return;
	if (v->answer)
		return decide_by_answer(v);
	if (v->request->ticket)
		return decide_by_ticket(v);
	if (v->request->pass || v->request->pass_over)
		return tell(v, STATUS_expired, NULL, rest_s(v));
	answer(v, DECIDE_UNKNOWN);
}

// Let in: a page view goes on to the origin, a poll is told.
static void admit(struct view *v, const struct token *pass, bool sets_pass)
{
	struct decision *out = v->out;
	out->action = DECIDE_FORWARD;
	if (is_poll(v)) {
		tell(v, STATUS_admitted, v->ticket ? &v->ticket->token : NULL, rest_s(v));
		out->status.expires = pass->expires;
	}
	out->pass = *pass;
	out->sets_pass = sets_pass;
	out->session = pass->key;
	out->ends_s = pass->expires;
}

static struct token pass_of(const struct view *v, const struct claim_answer *answer)
{
	return (struct token){.kind = TOKEN_PASS,
		.line_id = v->room->line_id,
		.key = answer->session,
		.visitor = answer->visitor,
		.issued = answer->verdict == CLAIM_RENEWED ? v->in->now_s : answer->issued,
		.expires = answer->expires};
}

// A claim for what `token` stands for.
static void claim(struct view *v, enum claim_kind kind, const struct token *token)
{
	bool is_pass = token->kind == TOKEN_PASS;
	v->out->action = DECIDE_CLAIM;
	v->out->claim = (struct claim){.kind = (uint8_t)kind,
		.room = v->room->index,
		.line_id = v->room->line_id,
		.key = is_pass ? 0 : token->key,
		.session = is_pass ? token->key : 0,
		.visitor = token->visitor,
		.expires = token->expires,
		.poll_after = next_poll_after(v)};
}

static bool is_renewal_due(const struct view *v)
{
	const struct token *pass = v->pass;
	return v->room->sliding && v->room->state != GATE_CLOSED &&
	       2ull * v->in->now_s > (uint64_t)pass->issued + pass->expires; // both are rounded
}

// A pass that holds lets in. In the second half of a sliding one control is asked for a new end.
// Returns false if there is none, as far as is known.
static bool decide_by_pass(struct view *v)
{
	const struct gate_token *carried = v->request->pass;
	if (!carried || v->in->pass_has_ended)
		return false;
	if (v->in->pass_renewed > carried->token.expires) {
		struct token pass = carried->token;
		pass.issued = v->in->now_s;
		pass.expires = v->in->pass_renewed;
		admit(v, &pass, true);
		return true;
	}
	bool is_renewal = v->answer && v->answer->kind == CLAIM_RENEW;
	if (is_renewal && v->answer->verdict == CLAIM_RENEWED &&
		v->answer->expires > v->in->now_s) {
		struct token pass = pass_of(v, v->answer);
		admit(v, &pass, pass.expires != carried->token.expires || is_echoed(v, carried));
		return true;
	}
	if (is_renewal) {
		if (v->answer->verdict == CLAIM_LAPSED)
			v->pass = NULL;
		v->answer = NULL;
	}
	bool may_ask = v->may_claim && !v->was_asked && !v->request->is_prefetch &&
		       v->room->mode != GATE_MODE_OFF;
	if (may_ask && v->pass && is_renewal_due(v))
		claim(v, CLAIM_RENEW, &carried->token);
	else if (v->pass)
		admit(v, v->pass, is_echoed(v, carried));
	else
		return false;
	return true;
}

// The turn was not taken, or is over: a page view joins again at the end, a poll says so.
static void lapse(struct view *v)
{
	v->ticket = NULL;
	if (is_poll(v))
		tell(v, STATUS_expired, NULL, rest_s(v));
	else if (v->answer)
		draw_place(v);
	else
		decide_newcomer(v);
}

static void tell_next(struct view *v, uint32_t after_s)
{
	tell(v, STATUS_next, &v->ticket->token, after_s);
	keep_ticket(v);
}

// A called ticket claims, unless nothing is granted now. Of a pause control knows.
static void decide_called(struct view *v)
{
	claim(v, CLAIM_CALLED, &v->ticket->token);
	if (v->may_claim && v->room->state == GATE_OPEN)
		return;
	v->out->refuses_claim = v->room->state == GATE_OPEN;
	tell_next(v, next_poll_after(v));
}

// A turn, or a place in line, or neither yet; unless the room takes nobody.
static void decide_by_ticket(struct view *v)
{
	if (v->room->state == GATE_CLOSED)
		return tell(v, STATUS_closed, NULL, rest_s(v));
	if (v->room->mode == GATE_MODE_OFF) // a poll; there is nothing to wait for
		return tell(v, STATUS_admitted, NULL, rest_s(v));
	if (v->room->mode == GATE_MODE_REJECT)
		return tell(v, STATUS_rejected, NULL, rest_s(v));
	if (!v->ticket)
		return lapse(v);
	if (v->ticket->token.key < v->threshold)
		return decide_called(v);
	tell(v, STATUS_waiting, &v->ticket->token, 0);
	keep_ticket(v);
}

// What control said about a called ticket or a newcomer.
static void decide_by_answer(struct view *v)
{
	const struct claim_answer *answer = v->answer;
	struct token pass = pass_of(v, answer);
	switch ((enum claim_verdict)answer->verdict) {
	case CLAIM_GRANTED:
		return admit(v, &pass, true);
	case CLAIM_NEXT:
	case CLAIM_REFUSED:
		if (!v->ticket) // a newcomer, or its secret was revoked meanwhile
			return lapse(v);
		return tell_next(
			v, answer->poll_after > 0 ? answer->poll_after : next_poll_after(v));
	case CLAIM_CLOSED:
		return tell(v, STATUS_closed, NULL, rest_s(v));
	case CLAIM_LAPSED:
	case CLAIM_RENEWED: // these two answer other kinds of claims
	case CLAIM_LEFT:
		return lapse(v);
	}
	assert(!"control answers with a verdict");
}

static void decide_newcomer(struct view *v)
{
	const struct token newcomer = {.kind = TOKEN_TICKET, .visitor = v->in->fresh_visitor};
	bool takes = v->room->mode == GATE_MODE_AUTO || v->room->mode == GATE_MODE_PEAK;
	bool is_direct = takes && v->room->state == GATE_OPEN && v->may_claim &&
			 !v->in->is_draining && place_take_open(v->line);
	if (is_direct)
		claim(v, CLAIM_DIRECT, &newcomer);
	else
		draw_place(v);
}

static void draw_place(struct view *v)
{
	if (v->in->is_draining)
		return unavailable(v);
	if (v->room->line_max != UINT64_MAX && waiting(v) >= v->room->line_max)
		return tell(v, STATUS_full, NULL, rest_s(v));
	uint64_t key = place_mint(v->line, v->in->now_ms / PLACE_SLOT_MS, v->in->appliance);
	if (key == 0)
		return tell(v, STATUS_full, NULL, rest_s(v));
	v->out->ticket = (struct token){.kind = TOKEN_TICKET,
		.line_id = v->room->line_id,
		.key = key,
		.visitor = v->in->fresh_visitor,
		.issued = v->in->now_s};
	v->out->sets_ticket = v->out->was_minted = true;
	tell(v, STATUS_waiting, &v->out->ticket, 0);
}

static bool has_cookie(const struct gate_request *request, enum token_kind kind)
{
	for (uint32_t i = 0; i < request->token_count; i++) {
		const struct carried *carried = &request->tokens[i].carried;
		if (carried->carrier == CARRY_COOKIE && carried->kind == kind)
			return true;
	}
	return false;
}

// Cookies that are no use any more: invalid, lapsed, run out, ended.
static void clear_cookies(struct view *v)
{
	struct decision *out = v->out;
	if (out->action == DECIDE_CLAIM)
		return;
	out->clears_ticket =
		!out->sets_ticket && !v->ticket && has_cookie(v->request, TOKEN_TICKET);
	out->clears_pass = !out->sets_pass && !v->pass && has_cookie(v->request, TOKEN_PASS);
}

// Both that are carried, in one claim: also a pass that is refused already, since it may be our own
// earlier try that went unanswered. Returns false if there is nothing to give back.
static bool claim_leave(struct view *v)
{
	const struct token *pass = v->request->pass ? &v->request->pass->token : NULL;
	const struct token *ticket = v->ticket ? &v->ticket->token : NULL;
	if (ticket && pass && pass->visitor == ticket->visitor)
		ticket = NULL; // its session came from it, and it is used up with that
	if (!ticket && !pass)
		return false;
	v->out->action = DECIDE_CLAIM;
	v->out->claim = (struct claim){.kind = CLAIM_LEAVE,
		.room = v->room->index,
		.line_id = v->room->line_id,
		.key = ticket ? ticket->key : 0,
		.visitor = ticket ? ticket->visitor : 0,
		.session = pass ? pass->key : 0,
		.expires = pass ? pass->expires : 0};
	return true;
}

// Answered when the store has it. A hold does not matter: paused rooms are left too, and a store
// that is away lets the claim go unanswered.
static void decide_leave(struct view *v)
{
	struct decision *out = v->out;
	if (v->request->method != HTTP_POST)
		return answer(v, DECIDE_METHOD);
	if (v->request->is_cross_site)
		return answer(v, DECIDE_CROSS_SITE);
	bool has_claim = !v->was_asked && claim_leave(v);
	if (has_claim && !v->in->is_held)
		return;
	bool is_left = v->was_asked ? v->answer && v->answer->verdict == CLAIM_LEFT : !has_claim;
	answer(v, is_left ? DECIDE_LEFT : DECIDE_UNAVAILABLE);
	out->status.poll_after = next_poll_after(v);
	out->clears_ticket = is_left && has_cookie(v->request, TOKEN_TICKET);
	out->clears_pass = is_left && has_cookie(v->request, TOKEN_PASS);
}
