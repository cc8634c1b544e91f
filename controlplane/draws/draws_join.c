// Join: the file of each gathering, and what workers add to.
//
// A file is looked for before one is made, and what is on disk of a gathering is not known before:
// until then nobody is told that these are all. Whoever gathers is counted in the line, by the ids
// that are written, until their list is published or the gathering is gone.

#include "controlplane/draws/draws_cluster.h"

#include "controlplane/draws/inside.h"
#include "dataplane/gate/place.h"

#include <errno.h>
#include <string.h>

static struct gather_ids nobody; // `ready` is 0: who comes is told that it is full

int inside_join_look_for(const struct draws *d, struct gathering *g)
{
	if (g->is_missing)
		return -ENOENT;
	if (g->file.ids)
		return 0;
	const int ret = draws_file_open(&g->file, d->plan.folder, g->said.line_id, g->said.number);
	g->is_missing = ret == -ENOENT;
	g->is_unreadable = ret < 0 && ret != -ENOENT;
	if (ret == 0) // what the process before did not write, nobody will
		g->ids.sure = draws_file_taken(&g->file);
	return ret;
}

static int make_file(struct draws_line *l, struct gathering *g, uint64_t now_ms)
{
	const int ret = draws_file_make(
		&g->file, l->draws->plan.folder, l->line_id, g->said.number, l->wish.gathered_max);
	if (ret < 0)
		return ret;
	g->is_missing = false;
	g->file.ids->began_ms = now_ms;
	return 0;
}

static void open_file(struct draws_line *l, struct gathering *g, uint64_t now_ms)
{
	if (g->file.ids || g->said.step < DRAWS_JOINED || g->is_gone)
		return;
	int ret = inside_join_look_for(l->draws, g);
	if (ret == 0)
		atomic_fetch_add(&l->line->gathered, draws_file_people(&g->file));
	else if (ret == -ENOENT && g->said.step == DRAWS_JOINED && l->has_wished)
		ret = make_file(l, g, now_ms);
	if (ret < 0 && ret != -ENOENT && ret != l->file_error)
		inside_say(l, "nobody can gather: %s", strerror(-ret));
	l->file_error = ret == -ENOENT ? 0 : ret;
	if (ret < 0)
		return;
	g->file.ids->epoch = g->said.epoch;
	g->file.ids->first_slot = g->said.first_slot;
}

static void grow_file(struct draws_line *l, struct gathering *g)
{
	const int ret = draws_file_turn(&g->file, l->draws->plan.folder);
	if (ret < 0 && ret != l->file_error)
		inside_say(l, "no more can gather: %s", strerror(-ret));
	l->file_error = ret;
}

static bool is_full(const struct draws_line *l)
{
	uint64_t people = inside_drawn_people(l);
	for (const struct gathering *g = l->coming; g; g = g->next)
		people += inside_follow_joined(g);
	return people >= l->wish.gathered_max;
}

// What workers add to. Doors that open end it by the clock, before all are told.
static struct gather_ids *to_join(const struct draws_line *l)
{
	if (!l->open || !l->open->file.ids || !l->has_wished || l->wish.is_shut || l->wish.stops)
		return NULL;
	return is_full(l) ? &nobody : l->open->file.ids;
}

static bool is_ending(const struct gathering *g)
{
	return g->said.end_slot > 0 || g->is_gone;
}

static void let_join(struct draws_line *l)
{
	struct gather_ids *ids = to_join(l);
	for (struct gathering *g = l->coming; g; g = g->next)
		if (g->said.end_slot && !g->is_shut)
			place_skip(l->line, g->said.end_slot); // before anybody mints
	if (ids && ids != &nobody)
		atomic_store(&ids->full_at, l->wish.full_at);
	if (ids != l->joined) {
		l->joined = ids;
		atomic_store_explicit(&l->words.open, ids, memory_order_release);
	}
	for (struct gathering *g = l->coming; g; g = g->next) {
		if (is_ending(g) && !g->is_shut) {
			g->is_shut = true;
			g->barrier = inside_barrier(l);
		}
		if (g->is_shut && !g->is_settled)
			g->is_settled = inside_has_passed(l, g->barrier);
	}
}

void inside_join(struct draws_line *l, uint64_t now_ms)
{
	for (struct gathering *g = l->coming; g; g = g->next)
		open_file(l, g, now_ms);
	let_join(l);
	for (struct gathering *g = l->coming; g; g = g->next)
		if (g->file.ids && g->said.step == DRAWS_JOINED)
			grow_file(l, g);
}
