// Visitors, and the worker that answers them: what is decided without control, as the gate does it.

#include "tests/sim/visitor.h"

#include <stddef.h>

#include "dataplane/gate/pace.h"
#include "tests/sim/world.h"

#define WORKER_WAITS_MS 1000u // for an answer of control
#define NOBODY UINT32_MAX
#define RETRY_S 3u // who got no answer

static uint64_t cluster_slot(const struct world *w)
{
	return world_cluster_ms(w) / PLACE_SLOT_MS;
}

static uint64_t delay(struct world *w)
{
	return world_random(w, w->plan.delay_max_ms + 1);
}

// The visitor polls again after what it was told, and the time both ways.
static void poll_later(struct world *w, uint32_t who, uint32_t tab, uint32_t poll_after)
{
	struct world_visitor *v = &w->visitors[who];
	v->poll_after = poll_after;
	v->lost = false;
	world_at(w, poll_after * 1000ull + delay(w) + delay(w), WORLD_POLL, who, tab, 0);
}

// No answer: the page tries again soon. Who loses two of them in a row may lapse.
static void try_again(struct world *w, uint32_t who, uint32_t tab)
{
	struct world_visitor *v = &w->visitors[who];
	v->obeys &= !v->lost;
	v->lost = true;
	const uint32_t after = v->poll_after && v->poll_after < RETRY_S ? v->poll_after : RETRY_S;
	world_at(w, after * 1000ull + delay(w) + delay(w), WORLD_POLL, who, tab, 0);
}

static void go_away(struct world_visitor *v)
{
	v->state = WORLD_AWAY;
}

// --- waiting: answered by the worker alone

// Invariants 3 and 6: the place is the same for ever, and nobody gets before it.
static void show_place(struct world *w, uint32_t who)
{
	struct world_visitor *v = &w->visitors[who];
	uint64_t rank;
	CHECK(&v->room->check, place_rank(v->room->line, v->key, &rank));
	CHECK(&v->room->check, !v->has_rank || rank == v->rank);
	const uint64_t before = v->room->line->threshold_rank;
	const uint64_t ahead = rank > before ? rank - before : 0;
	CHECK(&v->room->check, !v->has_rank || ahead <= v->ahead);
	v->rank = rank;
	v->ahead = ahead;
	v->has_rank = true;
}

// Remember what a visitor reads about its wait, once the range is that of a steady line.
static void show_wait(struct world *w, struct world_visitor *v)
{
	const struct place_line *line = v->room->line;
	if (v->wait_ms || line->wait_low == UINT64_MAX ||
		line->wait_high > line->wait_low + line->wait_low * 4 / 5)
		return;
	v->wait_ms = w->now_ms;
	v->wait_low_s = (v->ahead * line->wait_low >> 32) + line->door_wait_ms / 1000;
	v->wait_high_s =
		((v->ahead + 1) * line->wait_high >> 32) + (line->door_wait_ms + 999) / 1000;
}

static void wait_on(struct world *w, uint32_t who, uint32_t tab)
{
	struct world_visitor *v = &w->visitors[who];
	show_place(w, who);
	show_wait(w, v);
	poll_later(w, who, tab,
		pace_poll_after(
			v->ahead, v->room->line->wait_high, (uint32_t)world_random(w, 1u << 31)));
}

static void draw_ticket(struct world *w, uint32_t who)
{
	struct world_visitor *v = &w->visitors[who];
	v->key = place_mint(v->room->line, cluster_slot(w), 3);
	if (v->key == 0) { // full
		go_away(v);
		return;
	}
	w->tickets++;
	v->state = WORLD_WAITING;
	v->shows = w->tickets <= w->plan.no_show_after || !world_chance(w, w->plan.no_show);
	v->obeys = v->shows;
	v->tabs = (uint8_t)(1 + world_random(w, w->plan.tabs_max));
	if (!v->shows)
		return;
	for (uint32_t tab = 0; tab < v->tabs; tab++)
		wait_on(w, who, tab);
}

// --- claims: answered by control

static void park(struct world *w, uint32_t who, uint32_t tab, struct claim claim)
{
	struct world_visitor *v = &w->visitors[who];
	claim.request = who;
	claim.room = (uint16_t)(v->room - w->rooms);
	claim.generation = (++w->request_number) << 2 | tab;
	claim.sent_ms = world_cluster_ms(w);
	v->pending[tab] = claim.generation;
	w->ring[w->ring_count++] = claim;
	world_at(w, WORKER_WAITS_MS, WORLD_TIMEOUT, who, tab, claim.generation);
	if (world_chance(w, w->plan.closes)) { // the peer is gone; the worker notices
		v->pending[tab] = 0;
		try_again(w, who, tab);
	}
}

static void report(struct world *w, uint8_t kind, const struct world_visitor *v)
{
	w->ring[w->ring_count++] = (struct claim){.kind = kind,
		.room = (uint16_t)(v->room - w->rooms),
		.key = v->key,
		.visitor = v->id,
		.session = v->session,
		.expires = v->expires};
}

// The worker says `next` by itself; floor is told to wait.
static void refuse(struct world *w, uint32_t who, uint32_t tab)
{
	const struct world_visitor *v = &w->visitors[who];
	const uint32_t poll_after = v->room->line->next_poll_after;
	if (v->key < v->room->refused_key)
		v->room->refused_key = v->key;
	if (poll_after > v->room->refused_poll_after)
		v->room->refused_poll_after = poll_after;
	poll_later(w, who, tab, poll_after);
}

void visitor_arrive(struct world *w, uint32_t who)
{
	struct world_visitor *v = &w->visitors[who];
	if (v->state != WORLD_OUTSIDE)
		return;
	v->id = world_id(who);
	v->arrived_ms = v->arrived_ms ? v->arrived_ms : w->now_ms;
	if (!w->is_up)
		world_at(w, RETRY_S * 1000, WORLD_ARRIVE, who, 0, 0);
	else if (place_take_open(v->room->line))
		park(w, who, 0, (struct claim){.kind = CLAIM_DIRECT, .visitor = v->id});
	else
		draw_ticket(w, who);
}

// Who has no token yet is somebody else each time, as far as anyone can tell.
static uint32_t another(struct world *w, uint32_t who)
{
	struct world_visitor *v = &w->visitors[who];
	go_away(v);
	if (w->visitor_count == w->visitor_max)
		return NOBODY;
	w->visitors[w->visitor_count] = (struct world_visitor){
		.room = v->room, .id = world_id(w->visitor_count), .arrived_ms = v->arrived_ms};
	return w->visitor_count++;
}

// The turn is over. Not of one who polled as told; unless the pass was lost on the way, and the
// session has run out since.
static void lapse(struct world *w, struct world_visitor *v)
{
	const bool was_granted = w->store[world_who(v->id)].session != 0;
	CHECK(&v->room->check, !v->obeys || was_granted); // invariant 1
	w->lapsed++;
	go_away(v);
}

void visitor_poll(struct world *w, uint32_t who, uint32_t tab)
{
	struct world_visitor *v = &w->visitors[who];
	if (v->state == WORLD_OUTSIDE && another(w, who) != NOBODY)
		visitor_arrive(w, w->visitor_count - 1);
	if (v->state != WORLD_WAITING || v->pending[tab])
		return;
	w->polls++;
	if (!w->is_up || world_chance(w, w->plan.loses_answer)) {
		const bool obeys = v->obeys;
		try_again(w, who, tab);
		v->obeys = w->is_up ? v->obeys : obeys; // nobody lapses while it is down
		return;
	}
	if (world_chance(w, w->plan.leaves_line)) {
		report(w, CLAIM_LEAVE, v);
		w->left++;
		go_away(v);
	} else if (v->key < v->room->line->floor) {
		lapse(w, v);
	} else if (v->key >= v->room->line->threshold) {
		wait_on(w, who, tab);
	} else if (v->room->line->open & PLACE_OPEN_HOLD) {
		refuse(w, who, tab);
	} else {
		show_place(w, who);
		park(w, who, tab,
			(struct claim){.kind = CLAIM_CALLED,
				.key = v->key,
				.visitor = v->id,
				.poll_after = v->room->line->next_poll_after});
	}
}

void visitor_timeout(struct world *w, uint32_t who, uint32_t tab, uint32_t number)
{
	struct world_visitor *v = &w->visitors[who];
	if (v->pending[tab] != number)
		return;
	v->pending[tab] = 0;
	if (v->state == WORLD_WAITING) {
		refuse(w, who, tab);
	} else if (v->state == WORLD_OUTSIDE && another(w, who) != NOBODY) {
		draw_ticket(w, w->visitor_count - 1);
	}
}

static void begin_shopping(struct world *w, uint32_t who, const struct claim_answer *answer)
{
	struct world_visitor *v = &w->visitors[who];
	CHECK(&v->room->check, v->session == 0 || v->session == answer->session); // invariant 5
	if (v->state == WORLD_SHOPPING)
		return;
	v->session = answer->session;
	v->expires = answer->expires;
	v->granted_ms = w->now_ms;
	v->state = WORLD_SHOPPING;
	if (v->key != 0)
		w->last_ticket_granted_ms = w->now_ms;
	if (v->wait_ms) {
		const double waited = (double)(w->now_ms - v->wait_ms) / 1000;
		const double low = (double)v->wait_low_s, high = (double)v->wait_high_s;
		w->wait_cases++;
		w->wait_hits += waited >= low && waited <= high;
		w->wait_wide += high - low > 0.25 * (low + high) + 1;
	}
	const uint32_t range = w->plan.shop_max_ms - w->plan.shop_min_ms;
	if (w->plan.shop_max_ms > 0)
		world_at(w, w->plan.shop_min_ms + world_random(w, range + 1ull), WORLD_SHOP_ENDS,
			who, 0, 0);
	if (w->plan.limits.sliding)
		world_at(w, w->plan.limits.session_s * 600ull, WORLD_RENEW, who, 0, 0);
}

void visitor_answer(struct world *w, const struct claim_answer *answer)
{
	const uint32_t who = answer->request, tab = answer->generation & 3;
	struct world_visitor *v = &w->visitors[who];
	if (v->pending[tab] != answer->generation) {
		if (answer->verdict == CLAIM_GRANTED) { // nobody is there to take it
			w->gone++;
			w->ring[w->ring_count++] = (struct claim){.kind = CLAIM_GONE,
				.room = answer->room,
				.visitor = answer->visitor,
				.session = answer->session};
		}
		return;
	}
	v->pending[tab] = 0;
	if (v->state == WORLD_AWAY)
		return;
	const bool is_lost = world_chance(w, w->plan.loses_answer);
	switch (answer->verdict) {
	case CLAIM_GRANTED:
		if (is_lost && v->state == WORLD_WAITING)
			try_again(w, who, tab);
		else if (is_lost && v->state == WORLD_OUTSIDE)
			go_away(v); // has no cookie: comes back as somebody else, if at all
		else
			begin_shopping(w, who, answer);
		return;
	case CLAIM_NEXT:
		if (v->state == WORLD_WAITING)
			poll_later(w, who, tab, answer->poll_after);
		return;
	case CLAIM_REFUSED:
		draw_ticket(w, who);
		return;
	case CLAIM_RENEWED:
		CHECK(&v->room->check, answer->expires >= v->expires);
		v->expires = answer->expires;
		world_at(w, w->plan.limits.session_s * 600ull, WORLD_RENEW, who, 0, 0);
		return;
	default:
		if (v->state == WORLD_WAITING && v->session == 0)
			lapse(w, v);
		else if (v->state == WORLD_WAITING)
			go_away(v);
	}
}

void visitor_shop_ends(struct world *w, uint32_t who)
{
	struct world_visitor *v = &w->visitors[who];
	if (v->state != WORLD_SHOPPING)
		return;
	if (!w->is_up) {
		world_at(w, RETRY_S * 1000, WORLD_SHOP_ENDS, who, 0, 0);
		return;
	}
	if (world_cluster_ms(w) < v->expires * 1000ull)
		report(w, CLAIM_END, v);
	v->left_ms = w->now_ms;
	go_away(v);
}

void visitor_renew(struct world *w, uint32_t who)
{
	struct world_visitor *v = &w->visitors[who];
	if (v->state != WORLD_SHOPPING || world_cluster_ms(w) >= v->expires * 1000ull ||
		world_chance(w, 0.3)) // stays away long enough
		return;
	if (!w->is_up)
		world_at(w, RETRY_S * 1000, WORLD_RENEW, who, 0, 0);
	else
		park(w, who, 0,
			(struct claim){.kind = CLAIM_RENEW,
				.visitor = v->id,
				.session = v->session,
				.expires = world_random(w, 4) ? v->expires : 0});
}

// Everybody who has never come comes now.
void visitor_return(struct world *w)
{
	for (uint32_t who = 0; who < w->visitor_count; who++) {
		struct world_visitor *v = &w->visitors[who];
		if (v->state != WORLD_WAITING || v->shows)
			continue;
		v->shows = true; // but has not polled as told
		world_at(w, world_random(w, 1000), WORLD_POLL, who, 0, 0);
	}
}
