// The decision, in the order of contract section 2: a pass, a turn, a free slot, a place.
//
// A view holds what one decision looks at: the words of the line, read once, floor before threshold
// (floor never passes it), and the ticket that counts: the smallest key that has not lapsed and was
// not given back. Then each function settles one question and calls the next. A page view and a
// status poll go the same way and differ in two things: only a page view draws a place, and only a
// status poll says `expired`.

#include "dataplane/gate/decide.h"

#include "dataplane/gate/decide_code.h"
#include "dataplane/gate/decide_gather.h"
#include "dataplane/gate/decide_tell.h"
#include "dataplane/gate/decide_view.h"
#include "dataplane/gate/ended.h"
#include "dataplane/gate/enter.h"
#include "dataplane/gate/gather.h"
#include "dataplane/gate/lane.h"
#include "dataplane/gate/place.h"
#include "dataplane/http/head.h"

#include <assert.h>

static void decide_guarded(struct decide_view *v);
static void decide_status(struct decide_view *v);
static void decide_leave(struct decide_view *v);
static bool decide_by_pass(struct decide_view *v);
static void decide_by_ticket(struct decide_view *v);
static void decide_by_answer(struct decide_view *v);
static void decide_newcomer(struct decide_view *v);
static void draw_place(struct decide_view *v);
static void clear_cookies(struct decide_view *v);

static void choose_ticket(struct decide_view *v)
{
	const struct gate_token *ticket = v->request->ticket;
	if (!ticket)
		return;
	bool is_gathered = ticket->token.flags & TOKEN_FLAG_GATHERED;
	if (!is_gathered && decide_view_is_good(v, ticket->token.key, ticket->token.visitor))
		v->ticket = ticket;
	else
		decide_gather_choose(v);
}

// An answer that a reload crossed, so that its room is another one now, counts as none.
static void look_at_answer(struct decide_view *v)
{
	const struct claim_answer *answer = v->in->answer;
	v->was_asked = answer || v->in->answer_is_late;
	v->may_claim = !v->in->is_held && !v->in->answer_is_late && !(v->open & PLACE_OPEN_HOLD);
	if (answer && answer->line_id == v->room->line_id)
		v->answer = answer;
	else if (answer)
		v->may_claim = false;
}

static void look_at_line(struct decide_view *v)
{
	struct place_line *line = v->line = v->room->line;
	v->floor = atomic_load_explicit(&line->floor, memory_order_acquire);
	v->threshold = atomic_load_explicit(&line->threshold, memory_order_acquire);
	v->open = atomic_load_explicit(&line->open, memory_order_acquire);
}

static void look_at_room(struct decide_view *v)
{
	look_at_line(v);
	choose_ticket(v);
	if (v->request->pass && !v->in->pass_has_ended)
		v->pass = &v->request->pass->token;
	look_at_answer(v);
}

// Whether the site is for https alone. Its health is told anyhow: who asks is no visitor.
static bool must_be_secure(const struct decide_view *v)
{
	const struct gate_request *request = v->request;
	return v->in->is_plain && request->site && request->site->https_port > 0 &&
	       request->target.at[0] == '/' && request->route != GATE_ROUTE_BAD &&
	       request->route != GATE_ROUTE_HEALTH;
}

void decide(const struct decide_input *input, struct decision *decision)
{
	struct decide_view v = {.in = input,
		.request = input->request,
		.room = input->request->room,
		.out = decision};
	*decision = (struct decision){.action = DECIDE_FORWARD};
	if (must_be_secure(&v))
		return decide_tell_answer(
			&v, v.request->target.len < DECIDE_LOCATION_BYTES_MAX - 300
				    ? DECIDE_HTTPS
				    : DECIDE_BAD_TARGET);
	if (v.room)
		look_at_room(&v);
	switch ((enum gate_route)v.request->route) {
	case GATE_ROUTE_BAD:
		return decide_tell_answer(&v, DECIDE_BAD_TARGET);
	case GATE_ROUTE_MISDIRECTED:
		return decide_tell_answer(&v, DECIDE_MISDIRECTED);
	case GATE_ROUTE_UNKNOWN:
		return decide_tell_answer(&v, DECIDE_NOT_FOUND);
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
		return v.request->method == HTTP_GET ? decide_gather_show(&v)
						     : decide_tell_answer(&v, DECIDE_METHOD);
	case GATE_ROUTE_CODE:
		return decide_code(&v);
	case GATE_ROUTE_ASSET:
		return decide_tell_answer(
			&v, v.request->method == HTTP_GET || v.request->method == HTTP_HEAD
				    ? DECIDE_ASSET
				    : DECIDE_METHOD);
	case GATE_ROUTE_SERVER:
		return decide_tell_answer(&v, DECIDE_SERVER);
	case GATE_ROUTE_HEALTH:
		decision->is_draining = input->is_draining;
		decision->is_unhealthy = input->is_unhealthy;
		return decide_tell_answer(
			&v, v.request->method == HTTP_GET || v.request->method == HTTP_HEAD
				    ? DECIDE_HEALTH
				    : DECIDE_METHOD);
	}
}

// The visitor's ticket goes out again when it did not come as a cookie, since answers carry what
// requests do; and in the second half of its cookie's life, with a new date, so that who keeps
// polling never loses it.
static void keep_ticket(struct decide_view *v)
{
	const struct gate_token *ticket = v->ticket;
	uint32_t age =
		v->in->now_s > ticket->token.issued ? v->in->now_s - ticket->token.issued : 0;
	bool is_old = age >= v->room->ticket_ttl_s / 2;
	v->out->ticket = ticket->token;
	v->out->sets_ticket = is_old || v->is_reissued || ticket->carried.carrier != CARRY_COOKIE;
	if (is_old)
		v->out->ticket.issued = v->in->now_s;
}

// Whether a token that still holds goes out again all the same: it came as a header.
static bool is_echoed(const struct decide_view *v, const struct gate_token *token)
{
	return token->carried.carrier == CARRY_HEADER && decide_tell_is_poll(v);
}

static void unavailable(struct decide_view *v)
{
	decide_tell_answer(v, DECIDE_UNAVAILABLE);
	v->out->status.poll_after = decide_tell_poll_after(v, decide_tell_waiting(v));
}

static void decide_guarded(struct decide_view *v)
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
		return decide_tell_answer(v, DECIDE_REDIRECT);
	}
	if (v->answer)
		return decide_by_answer(v);
	decide_by_ticket(v);
}

static void decide_status(struct decide_view *v)
{
	if (v->request->method != HTTP_GET)
		return decide_tell_answer(v, DECIDE_METHOD);
	if (decide_by_pass(v))
		return;
	if (v->answer)
		return decide_by_answer(v);
	if (v->request->ticket)
		return decide_by_ticket(v);
	if (v->request->pass || v->request->pass_over)
		return decide_tell(v, STATUS_expired, NULL, decide_tell_rest(v));
	decide_tell_answer(v, DECIDE_UNKNOWN);
}

// Let in: a page view goes on to the origin, a poll is told.
static void admit(struct decide_view *v, const struct token *pass, bool sets_pass)
{
	struct decision *out = v->out;
	out->action = DECIDE_FORWARD;
	if (decide_tell_is_poll(v)) {
		decide_tell(v, STATUS_admitted, v->ticket ? &v->ticket->token : NULL,
			decide_tell_rest(v));
		out->status.expires = pass->expires;
	}
	out->pass = *pass;
	out->sets_pass = sets_pass;
	out->session = pass->key;
	out->ends_s = pass->expires;
}

static struct token pass_of(const struct decide_view *v, const struct claim_answer *answer)
{
	return (struct token){.kind = TOKEN_PASS,
		.line_id = v->room->line_id,
		.key = answer->session,
		.visitor = answer->visitor,
		.issued = answer->verdict == CLAIM_RENEWED ? v->in->now_s : answer->issued,
		.expires = answer->expires};
}

// A claim for what `token` stands for.
static void claim(struct decide_view *v, enum claim_kind kind, const struct token *token)
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
		.poll_after = decide_tell_next(v)};
}

static bool is_renewal_due(const struct decide_view *v)
{
	const struct token *pass = v->pass;
	return v->room->sliding && v->room->state != GATE_CLOSED &&
	       2ull * v->in->now_s > (uint64_t)pass->issued + pass->expires; // both are rounded
}

// A pass that holds lets in. In the second half of a sliding one control is asked for a new end.
// Returns false if there is none, as far as is known.
static bool decide_by_pass(struct decide_view *v)
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
static void lapse(struct decide_view *v)
{
	v->ticket = NULL;
	if (decide_tell_is_poll(v))
		decide_tell(v, STATUS_expired, NULL, decide_tell_rest(v));
	else if (v->answer)
		draw_place(v);
	else
		decide_newcomer(v);
}

static void tell_next(struct decide_view *v, uint32_t after_s)
{
	decide_tell(v, STATUS_next, &v->ticket->token, after_s);
	keep_ticket(v);
}

// A called ticket claims, unless nothing is granted now. Of a pause control knows.
static void decide_called(struct decide_view *v)
{
	claim(v, CLAIM_CALLED, &v->ticket->token);
	if (v->may_claim && v->room->state == GATE_OPEN)
		return;
	v->out->refuses_claim = v->room->state == GATE_OPEN;
	tell_next(v, decide_tell_next(v));
}

// A turn, or a place in line, or neither yet; unless the room takes nobody.
static void decide_by_ticket(struct decide_view *v)
{
	if (v->room->state == GATE_CLOSED)
		return decide_tell(v, STATUS_closed, NULL, decide_tell_rest(v));
	if (v->room->mode == GATE_MODE_OFF) // a poll; there is nothing to wait for
		return decide_tell(v, STATUS_admitted, NULL, decide_tell_rest(v));
	if (v->room->mode == GATE_MODE_REJECT)
		return decide_tell(v, STATUS_rejected, NULL, decide_tell_rest(v));
	if (!v->ticket)
		return lapse(v);
	bool is_called = v->ticket->token.key < v->threshold && v->room->state != GATE_BEFORE;
	if (is_called && !v->is_gathered)
		return decide_called(v);
	if (v->room->gather)
		decide_gather_tell(v, &v->ticket->token);
	else
		decide_tell(v, STATUS_waiting, &v->ticket->token, 0);
	keep_ticket(v);
}

// What control said about a called ticket or a newcomer.
static void decide_by_answer(struct decide_view *v)
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
			v, answer->poll_after > 0 ? answer->poll_after : decide_tell_next(v));
	case CLAIM_CLOSED:
		return decide_tell(v, STATUS_closed, NULL, decide_tell_rest(v));
	case CLAIM_HONOURED:
	case CLAIM_FULL:
	case CLAIM_BEFORE:
		if (decide_take_place(v))
			return;
		return lapse(v);
	case CLAIM_UNKNOWN:
		v->answer = NULL; // it was given up for nothing: like any newcomer
		return lapse(v);
	case CLAIM_LAPSED:
	case CLAIM_RENEWED: // these answer other kinds of claims
	case CLAIM_LEFT:
	case CLAIM_KNOWN:
	case CLAIM_SPENT:
		return lapse(v);
	}
	assert(!"control answers with a verdict");
}

// Whether a ticket of another line of the room has neither lapsed nor been given back.
static bool is_good_elsewhere(const struct decide_view *v, const struct token *ticket)
{
	if (ticket->line_id == v->room->line_id)
		return false;
	const struct gate_room *from = lane_of_line(v->request->whole, ticket->line_id);
	return (ticket->flags & TOKEN_FLAG_GATHERED) ||
	       ticket->key >= atomic_load(&from->line->floor);
}

// Whoever holds a ticket and follows a link into a lane gives up the one place for the other, which
// control does for both at once; so it also knows where a ticket leads that was given up, if the
// answer was lost. Returns false if nothing is to be asked.
static bool claim_move(struct decide_view *v)
{
	const struct gate_request *request = v->request;
	if (v->was_asked || !v->may_claim || v->in->is_draining ||
		!(request->outranked || request->ticket))
		return false;
	const struct token *old =
		request->outranked ? &request->outranked->token : &request->ticket->token;
	const bool is_left = v->in->left && ended_has(v->in->left, old->visitor);
	if (!is_left && !(request->outranked && is_good_elsewhere(v, old)))
		return false;
	const uint64_t gathered = old->flags & TOKEN_FLAG_GATHERED ? GATHER_NUMBER : 0;
	v->out->action = DECIDE_CLAIM;
	v->out->claim = (struct claim){.kind = CLAIM_MOVE,
		.room = v->room->index,
		.line_id = v->room->line_id,
		.visitor = old->visitor,
		.expires = is_left ? 0 : old->line_id,
		.place = is_left ? 0 : old->key | gathered};
	return true;
}

static void decide_newcomer(struct decide_view *v)
{
	assert(v->in->fresh_visitor != 0);
	if (claim_move(v))
		return;
	const struct token newcomer = {.kind = TOKEN_TICKET, .visitor = v->in->fresh_visitor};
	bool takes = v->room->mode == GATE_MODE_AUTO || v->room->mode == GATE_MODE_PEAK;
	bool is_direct = takes && v->room->state == GATE_OPEN && v->may_claim &&
			 !v->in->is_draining && place_take_open(v->line);
	if (is_direct)
		claim(v, CLAIM_DIRECT, &newcomer);
	else
		draw_place(v);
}

// No place was to be had, for whatever reason.
static void tell_outside(struct decide_view *v, enum enter_result why)
{
	assert(why != ENTER_PLACED);
	if (why == ENTER_FULL)
		decide_tell(v, STATUS_full, NULL, decide_tell_rest(v));
	else
		decide_gather_tell_before(v);
}

static void draw_place(struct decide_view *v)
{
	const struct enter_who who = {
		v->in->fresh_visitor, v->in->now_ms, v->in->now_s, v->in->appliance};
	if (v->in->is_draining)
		return unavailable(v);
	const enum enter_result result =
		enter_line(v->room, &who, &v->out->ticket, &v->out->fills_window);
	if (result != ENTER_PLACED)
		return tell_outside(v, result);
	v->out->sets_ticket = v->out->was_minted = true;
	decide_gather_tell(v, &v->out->ticket);
}

// From here on the visitor is one of another line of the room. Returns false if a reload has taken
// it away.
static bool go_to(struct decide_view *v, uint32_t line_id)
{
	const struct gate_room *line = lane_of_line(v->request->whole, line_id);
	if (!line)
		return false;
	v->room = line;
	v->ticket = NULL;
	v->is_gathered = v->is_reissued = false;
	look_at_line(v);
	return true;
}

bool decide_take_place(struct decide_view *v)
{
	const struct claim_answer *answer = v->answer;
	if (!go_to(v, answer->lane_id))
		return false;
	if (answer->verdict != CLAIM_HONOURED) {
		tell_outside(v, answer->verdict == CLAIM_FULL ? ENTER_FULL : ENTER_BEFORE);
		return true;
	}
	const bool is_gathered = answer->expires & CLAIM_PLACE_GATHERED;
	if (is_gathered && !v->room->gather)
		return false; // nobody gathers there any more
	v->out->ticket = (struct token){.kind = TOKEN_TICKET,
		.flags = is_gathered ? TOKEN_FLAG_GATHERED : 0,
		.line_id = answer->lane_id,
		.key = answer->key,
		.visitor = answer->visitor,
		.issued = v->in->now_s};
	v->out->sets_ticket = true;
	v->out->was_minted = !(answer->expires & CLAIM_PLACE_AGAIN);
	v->out->lane_id = answer->lane_id;
	decide_gather_tell(v, &v->out->ticket);
	return true;
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

// Cookies that are no use any more: invalid, lapsed, run out, ended; a ticket for which there was
// something better.
static void clear_cookies(struct decide_view *v)
{
	struct decision *out = v->out;
	if (out->action == DECIDE_CLAIM)
		return;
	const bool is_kept = v->ticket || (v->request->outranked && !out->sets_pass);
	out->clears_ticket = !out->sets_ticket && !is_kept && has_cookie(v->request, TOKEN_TICKET);
	out->clears_pass = !out->sets_pass && !v->pass && has_cookie(v->request, TOKEN_PASS);
}

// Both that are carried, in one claim: also a pass that is refused already, since it may be our own
// earlier try that went unanswered. Returns false if there is nothing to give back.
static bool claim_leave(struct decide_view *v)
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
		.key = !ticket          ? 0
		       : v->is_gathered ? GATHER_NUMBER | ticket->key
					: ticket->key,
		.visitor = ticket ? ticket->visitor : pass->visitor,
		.session = pass ? pass->key : 0,
		.expires = pass ? pass->expires : 0,
		.place = ticket && pass ? pass->visitor : 0};
	return true;
}

// Answered when the store has it. A hold does not matter: paused rooms are left too, and a store
// that is away lets the claim go unanswered.
static void decide_leave(struct decide_view *v)
{
	struct decision *out = v->out;
	if (v->request->method != HTTP_POST)
		return decide_tell_answer(v, DECIDE_METHOD);
	if (v->request->is_cross_site)
		return decide_tell_answer(v, DECIDE_CROSS_SITE);
	bool has_claim = !v->was_asked && claim_leave(v);
	if (has_claim && !v->in->is_held)
		return;
	bool is_left = v->was_asked ? v->answer && v->answer->verdict == CLAIM_LEFT : !has_claim;
	decide_tell_answer(v, is_left ? DECIDE_LEFT : DECIDE_UNAVAILABLE);
	out->status.poll_after = decide_tell_next(v);
	out->clears_ticket = is_left && has_cookie(v->request, TOKEN_TICKET);
	out->clears_pass = is_left && has_cookie(v->request, TOKEN_PASS);
}
