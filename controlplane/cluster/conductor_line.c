// Conductor's line: what controller/turn.c and publish.c do for a line of one appliance, with the
// ledger's view in place of sessions and presences.
//
// Two things are different. A view is as old as a batch takes, so what it says is free may be
// taken: the ledger decides, and the next view says so. And who is present is known by their
// number, the smallest key, and the keys of those who came; so floor waits for whoever was the
// smallest, as long as the controller's would have waited for each of them.

#include "controlplane/cluster/conductor_line.h"

#include <stddef.h>
#include <stdlib.h>

#include "controlplane/controller/controller.h"

#define GROWN_MAX 65536u // admitted, or ended, between two views
#define FRESH_MS 5000u // words of the conductor before that are no older are good
#define LEFT_PASS_MAX 4096u // tickets given back that floor passes in one turn

static const struct conductor_line *owner_of(const struct pool *own)
{
	return (const void *)((const char *)own - offsetof(struct conductor_line, call.own));
}

static uint32_t count_present(const struct pool *own)
{
	return owner_of(own)->view.present;
}

// The view looks LEDGER_VIEW_AHEAD_MS ahead; of less time, as much less.
static uint64_t count_ending(const struct pool *own, uint64_t ms, uint32_t most, uint64_t now_ms)
{
	const struct conductor_line *line = owner_of(own);
	const uint64_t due = (uint64_t)line->view.ending * ms / LEDGER_VIEW_AHEAD_MS;
	const double early = tally_rate(&line->freed, now_ms) * (double)ms / 1000;
	return (due < most ? due : most) + (uint64_t)early;
}

static bool is_settled(const struct conductor_line *line)
{
	return line->view.total <= line->view.floor_rank + line->view.settled;
}

static bool nobody_waits(const struct pool *own, uint64_t ms)
{
	(void)ms; // the ledger asks for tickets drawn before; here it is only a hint
	return is_settled(owner_of(own));
}

static const struct pool_line pool_line = {count_present, count_ending, nobody_waits};

uint64_t conductor_line_bytes(uint32_t left_max)
{
	return sizeof(struct conductor_line) + (left_max + 1ull) * sizeof(struct keyset_node);
}

struct conductor_line *conductor_line_create(
	const struct conductor_node *is, uint64_t seed, uint64_t now_ms)
{
	static const struct pool_words nothing;
	struct conductor_line *line = calloc(1, sizeof(*line));
	if (!line)
		return NULL;
	caller_init(&line->call, is->place, &is->node.limits, &nothing, now_ms);
	if (!keyset_init(&line->call.left, is->node.left_max, seed)) {
		conductor_line_destroy(line);
		return NULL;
	}
	line->call.own.line = &pool_line;
	line->call.lag_ms = CONDUCTOR_HEARD_MS;
	tally_init(&line->freed, now_ms);
	return line;
}

void conductor_line_destroy(struct conductor_line *line)
{
	if (!line)
		return;
	caller_fini(&line->call);
	free(line);
}

void conductor_line_left(struct conductor_line *line, uint64_t key, uint64_t visitor)
{
	struct caller *c = &line->call;
	if (key < c->floor || keyset_find(&c->left, key, visitor) != 0)
		return;
	// The ledger holds no more than there is room for; out of office we do not hear of floor,
	// but it has passed the first.
	if (keyset_count(&c->left) == c->left.members_max)
		keyset_remove(&c->left, keyset_first(&c->left));
	keyset_insert(&c->left, key, visitor);
	// Had it been present, it has come; that nobody says. One too few is expected then.
	caller_settle(c, key);
}

// Between two views; a ledger that counts backwards, or much faster than it can, counts nothing.
static uint32_t grown(uint64_t before, uint64_t now)
{
	return now > before && now - before < GROWN_MAX ? (uint32_t)(now - before) : 0;
}

void conductor_line_begin(struct conductor_line *line)
{
	line->is_seen = line->is_taken_over = line->has_view = false;
	line->said_ms = 0;
}

void conductor_line_see(
	struct conductor_line *line, const struct ledger_view *view, uint64_t now_ms)
{
	struct pool *own = &line->call.own;
	if (line->is_seen) {
		const uint32_t ended = grown(line->view.ended_total, view->ended_total);
		pool_follow_admitted(
			own, grown(line->view.admitted_total, view->admitted_total), now_ms);
		for (uint32_t i = 0; i < ended; i++)
			tally_add(&line->freed, now_ms);
	}
	for (uint32_t i = 0; i < view->came_count && line->is_taken_over; i++)
		calls_came(&line->call.calls, view->came[i]);
	line->view = *view;
	line->has_view = line->is_seen = true;
}

// Whether the merged counts reach up to `key`.
static bool is_rank_known(const struct place_line *place, uint64_t key)
{
	return place_slot(key) <= place_slot(place_key_at(place, UINT64_MAX));
}

// Of the called, those of whom the ledger knows nothing.
static uint64_t called_but_settled(const struct conductor_line *line)
{
	const struct caller *c = &line->call;
	const struct ledger_view *v = &line->view;
	const uint32_t left = keyset_count(&c->left) - keyset_below(&c->left, v->threshold, 0);
	const uint32_t settled = v->settled > left ? v->settled - left : 0;
	const uint64_t known = v->floor_rank + settled + v->present;
	return v->threshold_rank > known ? v->threshold_rank - known : 0;
}

// The line as the conductor before this one left it. If that was just now, everybody could poll all
// the time, and who was expected then is so now; else all who were called are.
static bool take_over(struct conductor_line *line)
{
	struct caller *c = &line->call;
	const struct ledger_view *v = &line->view;
	if (!is_rank_known(c->line, v->threshold))
		return false;
	const struct ledger_words *w = &v->words;
	const uint64_t ago_ms = c->now_ms > w->at_ms ? c->now_ms - w->at_ms : 0;
	const bool is_fresh = w->yield > 0 && w->yield <= 65536 && ago_ms < FRESH_MS;
	const struct calls_state state = {.tickets = w->called,
		.came = w->came,
		.expect_ms = w->expect_ms > ago_ms ? w->expect_ms - (uint32_t)ago_ms : 0,
		.yield = w->yield / 65536.0};
	caller_take_over(
		c, v->threshold, v->floor, called_but_settled(line), is_fresh ? &state : NULL);
	told_forget(&c->told, c->now_ms);
	line->said = (struct ledger_threshold){0};
	line->is_taken_over = true;
	return true;
}

static void move_floor(struct conductor_line *line, bool is_held)
{
	struct caller *c = &line->call;
	const uint64_t held = line->view.first_held;
	if (line->is_floor_held && !is_held)
		caller_prolong(c); // who polled there could not
	line->is_floor_held = is_held;
	if (is_held)
		return;
	const uint64_t turns = caller_floor(c), floor = held < turns ? held : turns;
	if (floor > c->floor)
		caller_raise_floor(c, floor);
}

static void pass_left(struct caller *c)
{
	for (uint32_t i = 0; i < LEFT_PASS_MAX; i++) {
		const uint32_t id = keyset_first(&c->left);
		if (id == 0 || keyset_key(&c->left, id) >= c->floor)
			return;
		keyset_remove(&c->left, id);
	}
}

// The event is over for those below `lapse`, as far as there are keys that can be called. Said
// until the ledger is seen to have it.
static bool lapse(struct conductor_line *line)
{
	struct caller *c = &line->call;
	const uint64_t end = place_key_at(c->line, UINT64_MAX);
	const uint64_t to = line->lapse < end ? line->lapse : end;
	if (line->view.floor >= line->lapse)
		line->lapse = 0;
	if (line->lapse == 0 || to <= line->view.floor)
		return false;
	if (to > c->floor) {
		caller_lapse(c, to);
		caller_raise_floor(c, to);
	}
	return true;
}

// What floor waits for, besides turns.
static void keep_holds(struct conductor_line *line)
{
	struct caller *c = &line->call;
	const uint64_t now = caller_available_ms(c);
	if (line->view.first_present != UINT64_MAX)
		holds_add(&c->holds, line->view.first_present, CONTROLLER_GRACE_S, now);
	if (line->view.is_crowded)
		holds_add(&c->crowded_out, 0, 1, now);
}

static uint32_t open_count(const struct conductor_line *line, const struct conductor_node *is)
{
	const struct caller *c = &line->call;
	if (!c->available || !is->node.direct || !is_settled(line) ||
		!pool_nobody_before(&c->own, UINT64_MAX))
		return 0;
	return caller_open_count(c);
}

static void fill(const struct conductor_line *line, const struct conductor_node *is,
	struct ledger_threshold *t)
{
	const struct caller *c = &line->call;
	const struct calls_state state = calls_state(&c->calls, caller_available_ms(c));
	*t = (struct ledger_threshold){.threshold = c->threshold,
		.floor = c->floor,
		.threshold_rank = c->threshold_rank,
		.floor_rank = c->floor_rank,
		.coming = c->own.coming,
		.room_ahead = c->room_ahead,
		.ahead_ms = c->ahead_ms,
		.is_open = is->is_open,
		.words = {.next_poll_after = caller_next_poll_after(c, line->view.present),
			.door_wait_ms = caller_door_wait_ms(c),
			.open_count = open_count(line, is),
			.at_ms = c->now_ms,
			.called = (uint32_t)state.tickets,
			.came = (uint32_t)state.came,
			.expect_ms = state.expect_ms,
			.yield = (uint32_t)(state.yield * 65536)}};
	caller_wait(c, &t->words.wait_low, &t->words.wait_high);
}

// Whether the others must know now, or once a second will do.
static bool is_due(
	const struct conductor_line *line, const struct ledger_threshold *t, uint64_t now_ms)
{
	const struct ledger_threshold *said = &line->said;
	if (t->threshold != said->threshold || t->floor != said->floor || t->is_lapse ||
		t->is_open != said->is_open || line->said_ms == 0 ||
		(t->words.open_count == 0) != (said->words.open_count == 0))
		return true;
	return now_ms >= line->said_ms + CONDUCTOR_WORDS_MS;
}

bool conductor_line_turn(struct conductor_line *line, const struct conductor_node *is,
	bool is_available, bool is_floor_held, uint64_t now_ms, struct ledger_threshold *say)
{
	struct caller *c = &line->call;
	caller_advance(c, now_ms);
	caller_set_available(c, is_available && is->is_open);
	if (!line->has_view || (!line->is_taken_over && !take_over(line)))
		return false;
	line->has_view = false;
	keep_holds(line);
	caller_look_ahead(c, line->view.total);
	if (c->available) {
		caller_move_threshold(c);
		move_floor(line, is_floor_held);
		flow_tick(&c->flow, c->threshold_rank, caller_waiting(c, line->view.total) > 0,
			caller_available_ms(c));
	}
	const bool is_lapse = lapse(line);
	pass_left(c);
	fill(line, is, say);
	say->is_lapse = is_lapse;
	if (!is_due(line, say, now_ms))
		return false;
	line->said = *say;
	line->said_ms = now_ms;
	caller_publish(c, say->words.wait_high);
	return true;
}
