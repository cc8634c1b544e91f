// Gatherings, as a decision sees them.
//
// A ticket of a gathering stands for a key as soon as its gathering is drawn: derived from visitor
// and seed, for each such ticket that is shown, which is once for each visitor, since the answer
// carries a ticket with the key. Until then it stands for the first key of all that is not drawn,
// which is behind everybody placed and before everybody who comes later.
//
// Control publishes a drawn list before it takes the gathering from the undrawn, so here those are
// looked at first: whoever is not among them any more is in a list.

#include "dataplane/gate/decide_gather.h"

#include "dataplane/gate/decide_tell.h"
#include "dataplane/gate/draw.h"
#include "dataplane/gate/gather.h"
#include "dataplane/gate/mac_state.h"
#include "dataplane/gate/pace.h"
#include "dataplane/gate/place.h"

#define SOON_S 15u // within this is told again who asks while places are being drawn
#define WINDOW_SPREAD_S 10u // over which those of a window ask after it has closed

// The first key that nobody has for sure; UINT64_MAX: all are placed.
static uint64_t first_undrawn(const struct decide_view *v)
{
	uint64_t slot = atomic_load_explicit(&v->line->gathers_from, memory_order_acquire);
	return slot > 0 ? place_key(slot, 0, 0) : UINT64_MAX;
}

// The key that a ticket stands for. Returns false if its gathering is not known: of another
// opening, or passed by floor.
static bool key_of(
	const struct decide_view *v, const struct token *ticket, uint64_t *key, bool *is_undrawn)
{
	const struct gather *gather = v->room->gather;
	*key = ticket->key;
	*is_undrawn = false;
	if (!(ticket->flags & TOKEN_FLAG_GATHERED))
		return true;
	if (!gather)
		return false;
	bool was_undrawn = gather_is_undrawn(gather, ticket->key);
	const struct draw_set *drawn = atomic_load_explicit(&v->line->drawn, memory_order_acquire);
	const struct draw_list *list = drawn ? draw_find(drawn, ticket->key) : NULL;
	if (list)
		*key = draw_key(list, mac_state_word(&list->mac, ticket->visitor));
	else
		*key = first_undrawn(v);
	*is_undrawn = !list;
	return list || was_undrawn;
}

void decide_gather_choose(struct decide_view *v)
{
	uint64_t best = UINT64_MAX;
	for (uint32_t i = 0; i < v->request->token_count; i++) {
		const struct gate_token *token = &v->request->tokens[i];
		uint64_t key;
		bool is_undrawn;
		if (token->state != GATE_TOKEN_VALID || token->token.kind != TOKEN_TICKET ||
			token->token.line_id != v->room->line_id ||
			!key_of(v, &token->token, &key, &is_undrawn) ||
			!decide_view_is_good(v, key, token->token.visitor) ||
			(v->ticket && key >= best))
			continue;
		best = key;
		v->ticket = token;
		v->is_gathered = is_undrawn;
	}
	v->is_reissued =
		v->ticket && !v->is_gathered && v->ticket->token.flags & TOKEN_FLAG_GATHERED;
	if (!v->is_reissued)
		return;
	v->drawn = *v->ticket;
	v->drawn.token.flags = 0;
	v->drawn.token.key = best;
	v->ticket = &v->drawn;
}

bool decide_gather_rank(const struct decide_view *v, const struct token *ticket, uint64_t *rank)
{
	bool is_exact = place_rank(v->line, ticket->key, rank);
	const struct draw_set *drawn = atomic_load_explicit(&v->line->drawn, memory_order_acquire);
	const struct draw_list *list = drawn ? draw_find_key(drawn, ticket->key) : NULL;
	if (list && draw_is_shared(list, *rank - list->base)) {
		uint64_t hash = mac_state_word(&list->mac, ticket->visitor);
		*rank = list->base + draw_place(list, *rank - list->base, hash);
	}
	return is_exact;
}

// 1 to `most` s.
static uint32_t within(const struct decide_view *v, uint32_t most)
{
	return 1 + (uint32_t)((uint64_t)v->in->random * most >> 32);
}

// After `moment`, spread over `spread_s`; while that is far, at the longest interval.
static uint32_t after_moment(const struct decide_view *v, uint64_t moment, uint32_t spread_s)
{
	uint64_t left = moment > v->in->now_s ? moment - v->in->now_s : 0;
	if (left >= PACE_MAX_S)
		return decide_tell_rest(v);
	uint32_t most = PACE_MAX_S - (uint32_t)left;
	return (uint32_t)left + within(v, most < spread_s ? most : spread_s);
}

// Before the doors everybody asks about once a minute, from a random second of their first minute
// on. So do they after the opening, without having been told so: nothing is spread then that was
// not before.
static uint32_t prequeue_poll_after(const struct decide_view *v)
{
	if (v->room->opens_s <= v->in->now_s)
		return within(v, SOON_S);
	return v->out->was_minted ? within(v, PACE_MAX_S) : decide_tell_rest(v);
}

static uint32_t window_poll_after(const struct decide_view *v)
{
	uint64_t closes_s = atomic_load_explicit(&v->room->gather->closes_s, memory_order_relaxed);
	return after_moment(v, closes_s > 0 ? closes_s + 1 : v->in->now_s, WINDOW_SPREAD_S);
}

// How many are placed before the first gathering that is not drawn, and not called.
static uint64_t placed_before(const struct decide_view *v)
{
	uint64_t rank,
		called = atomic_load_explicit(&v->line->threshold_rank, memory_order_acquire);
	place_rank(v->line, first_undrawn(v), &rank);
	if (rank == PLACE_UNKNOWN)
		return STATUS_UNKNOWN;
	return rank > called ? rank - called : 0;
}

void decide_gather_tell(struct decide_view *v, const struct token *ticket)
{
	bool is_before = v->room->state == GATE_BEFORE;
	bool is_placed = !(ticket->flags & TOKEN_FLAG_GATHERED) &&
			 (!v->room->gather || ticket->key < first_undrawn(v));
	if (is_placed)
		return decide_tell(v, STATUS_waiting, ticket, 0);
	if (is_before)
		return decide_tell(v, STATUS_prequeue, NULL, prequeue_poll_after(v));
	decide_tell(v, STATUS_waiting, NULL, window_poll_after(v));
	v->out->status.ahead_min = placed_before(v);
}

void decide_gather_tell_before(struct decide_view *v)
{
	decide_tell(v, STATUS_before, NULL, after_moment(v, v->room->gathers_s, SOON_S));
}

void decide_gather_show(struct decide_view *v)
{
	// Of the line that was asked for, whichever the visitor is in.
	const struct gather *gather = v->request->whole->gather;
	bool is_list = v->request->route == GATE_ROUTE_DRAW_KEYS;
	if (gather && is_list)
		v->out->list = atomic_load_explicit(&gather->shown, memory_order_acquire);
	else if (gather)
		v->out->proof = atomic_load_explicit(&gather->proof, memory_order_acquire);
	decide_tell_answer(v, v->out->list    ? DECIDE_DRAW_KEYS
			      : v->out->proof ? DECIDE_DRAW
					      : DECIDE_DRAW_NONE);
}
