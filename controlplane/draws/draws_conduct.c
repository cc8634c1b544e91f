// Conduct: the one appliance that is in office says what becomes of gatherings. It goes by what its
// room wishes and by what was told last, whoever said that; and it waits until what it has put is
// told before it puts anything else of the line.
//
//   prepared ─(people are to gather)─▶ joined ─(another epoch)─▶ closed ─(all ids)─▶ drawn ─▶ gone
//
// The first slot of a gathering lies ahead, so that everybody has heard of it before anything there
// is final; one that follows another begins where that ends. What is random or taken from the
// clock is in the record with which it begins to count, and never said again otherwise.

#include "controlplane/draws/draws_cluster.h"

#include "controlplane/draws/inside.h"
#include "dataplane/gate/place.h"

#include <string.h>

static bool put(
	struct draws_line *l, struct gathering *g, const struct draws_said *said, uint64_t now_ms)
{
	struct draws_said next = *said;
	next.version = g->said.version + 1;
	if (!l->draws->cluster.put(l->draws->cluster.ctx, &next))
		return false;
	g->put_ms = now_ms;
	return true;
}

// Whether something of the line was put, and is not told yet.
static bool is_waiting(const struct draws_line *l, uint64_t now_ms)
{
	if (l->putting && now_ms < l->put_ms + DRAWS_PUT_MS)
		return true;
	for (const struct gathering *g = l->coming; g; g = g->next)
		if (g->put_ms && now_ms < g->put_ms + DRAWS_PUT_MS)
			return true;
	return false;
}

// The store has lost it, or somebody who had not heard more has said it again.
static bool say_again(struct draws_line *l, struct gathering *g, uint64_t now_ms)
{
	for (; g; g = g->next)
		if (g->is_lost && !g->is_gone && put(l, g, &g->said, now_ms)) {
			g->is_lost = false;
			return true;
		}
	return false;
}

static uint64_t drawn_until_now(const struct draws_line *l)
{
	const struct gathering *last = inside_last_drawn(l);
	return last ? last->said.before + last->said.count : 0;
}

static void prepare(struct draws_line *l, uint64_t now_ms)
{
	struct draws *d = l->draws;
	struct draws_said said = {.line_id = l->line_id,
		.version = 1,
		.step = DRAWS_PREPARED,
		.number = now_ms > l->last_number ? now_ms : l->last_number + 1};
	if (l->prepared || !(l->wish.prepares || l->wish.gathers))
		return;
	d->seams.random(d->seams.ctx, said.seed, sizeof(said.seed));
	memcpy(said.salt, l->wish.salt, sizeof(said.salt));
	said.salt_bytes = l->wish.salt_bytes;
	if (!d->cluster.put(d->cluster.ctx, &said))
		return;
	l->putting = said.number;
	l->put_ms = now_ms;
}

// The one that is prepared begins, at once or where the one before ends.
static struct draws_said joined_after(
	const struct draws_line *l, const struct draws_said *before, uint64_t now_ms)
{
	struct draws_said said = l->prepared->said;
	said.step = DRAWS_JOINED;
	said.epoch = l->wish.epoch;
	said.began_ms = now_ms;
	said.first_slot = before ? before->end_slot : (now_ms + DRAWS_AHEAD_MS) / PLACE_SLOT_MS;
	memcpy(said.salt, l->wish.salt, sizeof(said.salt));
	said.salt_bytes = l->wish.salt_bytes;
	return said;
}

static void begin(struct draws_line *l, uint64_t now_ms)
{
	const struct gathering *before = l->closing;
	if (!l->wish.gathers || l->open || !l->prepared)
		return;
	while (before && before->next && before->next->said.step >= DRAWS_CLOSED)
		before = before->next;
	if (before && before->said.next != l->prepared->said.number)
		return; // until that is drawn
	const struct draws_said said = joined_after(l, before ? &before->said : NULL, now_ms);
	put(l, l->prepared, &said, now_ms);
}

// A salt is named until somebody has joined; one that was not, until the list is closed.
static void name_salt(struct draws_line *l, uint64_t now_ms)
{
	struct gathering *g = l->open ? l->open : l->prepared;
	if (!g)
		return;
	const bool is_same = g->said.salt_bytes == l->wish.salt_bytes &&
			     memcmp(g->said.salt, l->wish.salt, sizeof(l->wish.salt)) == 0;
	if (is_same || (g->said.salt_bytes > 0 && inside_follow_joined(g) > 0))
		return;
	struct draws_said said = g->said;
	memcpy(said.salt, l->wish.salt, sizeof(said.salt));
	said.salt_bytes = l->wish.salt_bytes;
	put(l, g, &said, now_ms);
}

static bool can_follow(const struct draws_line *l)
{
	const uint32_t lists = l->set ? l->set->count : 0;
	return l->prepared && lists + 2 <= DRAW_LISTS_MAX;
}

// Where its slots end: at the moment when the list was to close, if there is one, so that whoever
// says so says the same.
static uint64_t end_slot(const struct draws_line *l, const struct draws_said *said, uint64_t now_ms)
{
	const uint64_t due_ms = l->wish.closes_ms;
	const uint64_t at_ms = due_ms > 0 && due_ms < now_ms ? due_ms : now_ms;
	const uint64_t slot = at_ms / PLACE_SLOT_MS;
	return (slot > said->first_slot ? slot : said->first_slot) + 1;
}

// Close the list that is joined, if another one is wished for, or none.
static void close_list(struct draws_line *l, uint64_t now_ms)
{
	struct gathering *g = l->open;
	if (!g || l->closing || (l->wish.gathers && l->wish.epoch == g->said.epoch))
		return;
	struct draws_said said = g->said;
	if (l->wish.gathers && l->wish.keeps_empty && inside_follow_joined(g) == 0) {
		said.epoch = l->wish.epoch;
		put(l, g, &said, now_ms);
		return;
	}
	if (l->wish.gathers && !can_follow(l))
		return;
	said.step = DRAWS_CLOSED;
	said.end_slot = end_slot(l, &said, now_ms);
	said.next = l->wish.gathers ? l->prepared->said.number : 0;
	if (!put(l, g, &said, now_ms) || !l->wish.gathers)
		return;
	const struct draws_said next = joined_after(l, &said, now_ms);
	put(l, l->prepared, &next, now_ms); // if not, begin() does
}

// Our list of a gathering that everybody has told of is everybody's.
static void say_drawn(struct draws_line *l, uint64_t now_ms)
{
	struct gathering *g = l->closing;
	if (!g || g->said.step != DRAWS_CLOSED || g->job.is_running || !g->job.hashes ||
		g->job.error < 0 || g != l->coming || g->tried != g->ids.count)
		return;
	struct draws_said said = g->said;
	said.step = DRAWS_DRAWN;
	said.before = drawn_until_now(l);
	said.total = g->tried;
	said.count = g->job.count;
	memcpy(said.list_sha256, g->job.list_sha256, sizeof(said.list_sha256));
	put(l, g, &said, now_ms);
}

// What floor has passed, but for the last, which can still be shown.
static void forget(struct draws_line *l, uint64_t now_ms)
{
	const struct draws *d = l->draws;
	struct gathering *g = l->drawn;
	if (!g || !g->next || !g->is_over_said || !inside_is_passed(l, g) ||
		(g->put_ms && now_ms < g->put_ms + DRAWS_PUT_MS))
		return;
	if (d->cluster.forget(d->cluster.ctx, l->line_id, g->said.number))
		g->put_ms = now_ms;
}

void inside_conduct(struct draws_line *l, uint64_t now_ms)
{
	if (!l->draws->view.is_in_office || !l->has_wished || is_waiting(l, now_ms))
		return;
	if (say_again(l, l->drawn, now_ms) || say_again(l, l->coming, now_ms))
		return;
	say_drawn(l, now_ms);
	close_list(l, now_ms);
	if (!is_waiting(l, now_ms))
		begin(l, now_ms);
	if (!is_waiting(l, now_ms))
		name_salt(l, now_ms);
	if (!is_waiting(l, now_ms))
		prepare(l, now_ms);
	forget(l, now_ms);
}
