// A code is a claim: only control knows which are good and how often they were used. Honoured, it
// has become a place in its lane, which control has drawn and remembers with who showed it; from
// then on its holder is like anybody who waits there, and the code is done with. Nothing is
// claimed, and so nothing spent, where no place could be had: closed, rejecting, draining, held, or
// for those who are inside or need not wait; nor where control finds the lane full.

#include "dataplane/gate/decide_code.h"

#include "dataplane/gate/decide_gather.h"
#include "dataplane/gate/decide_tell.h"
#include "dataplane/gate/gather.h"
#include "dataplane/http/head.h"

#define MINUTE_S 60u

static void tell(struct decide_view *v, enum code_outcome outcome)
{
	decide_tell_answer(v, DECIDE_INVITATION);
	v->out->outcome = (uint8_t)outcome;
	v->out->once = v->in->fresh_visitor;
	v->out->status.poll_after = MINUTE_S - v->in->now_s % MINUTE_S; // when the guard forgets
}

// Where somebody stands who needs no code: inside, in the lane, or where nobody waits.
static void welcome(struct decide_view *v)
{
	const struct token *ticket = v->ticket ? &v->ticket->token : NULL;
	const bool is_called = ticket && !v->is_gathered && ticket->key < v->threshold;
	if (v->pass || v->room->mode == GATE_MODE_OFF)
		decide_tell(v, STATUS_admitted, ticket, decide_tell_rest(v));
	else if (!ticket) // it has lapsed meanwhile
		decide_tell(v, STATUS_expired, NULL, decide_tell_rest(v));
	else if (is_called && v->room->state == GATE_OPEN)
		decide_tell(v, STATUS_next, ticket, decide_tell_next(v));
	else
		decide_gather_tell(v, ticket);
	v->out->status.expires = v->pass ? v->pass->expires : 0;
	decide_tell_answer(v, DECIDE_WELCOME);
}

static void answered(struct decide_view *v)
{
	switch (v->answer ? (enum claim_verdict)v->answer->verdict : CLAIM_REFUSED) {
	case CLAIM_HONOURED:
	case CLAIM_FULL:
	case CLAIM_BEFORE:
		if (!decide_take_place(v))
			tell(v, CODE_unknown);
		else if (v->out->lane_id != 0)
			decide_tell_answer(v, DECIDE_WELCOME);
		return;
	case CLAIM_KNOWN:
		return welcome(v);
	case CLAIM_UNKNOWN:
		return tell(v, CODE_unknown);
	case CLAIM_SPENT:
		return tell(v, CODE_spent);
	default: // refused, late, or the answer to something else
		decide_tell_answer(v, DECIDE_UNAVAILABLE);
		v->out->status.poll_after = decide_tell_next(v);
	}
}

// Who shows a code, so that the same one may show it again if the answer is lost: the visitor of
// any ticket that is signed, given up though it may be; else whoever has the page's number, which
// only together with this very code says anything. 0: it cannot be known.
static uint64_t holder_of(const struct decide_view *v)
{
	if (v->request->ticket)
		return v->request->ticket->token.visitor;
	return v->request->once ? v->request->once ^ v->request->code.words[0] : 0;
}

static void ask(struct decide_view *v)
{
	const struct code_digest *code = &v->request->code;
	const struct token *held = v->ticket ? &v->ticket->token : NULL;
	v->out->action = DECIDE_CLAIM;
	v->out->claim = (struct claim){.kind = CLAIM_CODE,
		.room = v->room->index,
		.line_id = v->room->line_id,
		.key = code->words[0],
		.session = code->words[1],
		.visitor = holder_of(v),
		.poll_after = v->request->ticket == NULL,
		.expires = held ? held->line_id : 0,
		.place = held ? held->key | (v->is_gathered ? GATHER_NUMBER : 0) : 0};
}

// A code that came whole, from somebody who may have use for it.
static void decide_sent(struct decide_view *v)
{
	if (v->pass || v->room->mode == GATE_MODE_OFF)
		welcome(v);
	else if (v->room->state == GATE_CLOSED)
		decide_tell(v, STATUS_closed, NULL, decide_tell_rest(v));
	else if (v->room->mode == GATE_MODE_REJECT)
		decide_tell(v, STATUS_rejected, NULL, decide_tell_rest(v));
	else if (v->room->state == GATE_BEFORE && !v->room->gather)
		decide_tell(v, STATUS_before, NULL, decide_tell_rest(v));
	else if (v->in->is_held || v->in->is_draining) {
		decide_tell_answer(v, DECIDE_UNAVAILABLE);
		v->out->status.poll_after = decide_tell_next(v);
	} else
		ask(v);
}

void decide_code(struct decide_view *v)
{
	const struct gate_request *request = v->request;
	if (request->method == HTTP_GET || request->method == HTTP_HEAD)
		tell(v, CODE_asked);
	else if (request->method != HTTP_POST)
		decide_tell_answer(v, DECIDE_METHOD);
	else if (request->is_cross_site)
		decide_tell_answer(v, DECIDE_CROSS_SITE);
	else if (request->code_outcome != CODE_asked)
		tell(v, (enum code_outcome)request->code_outcome);
	else if (v->was_asked)
		answered(v);
	else
		decide_sent(v);
}
