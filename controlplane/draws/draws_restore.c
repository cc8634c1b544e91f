// What the last process left: records in the store, files in the state directory, words in the
// line.
//
//   record  file                 what it was
//   ──────────────────────────────────────────────────────────────────────────────────────
//   seed    none                 prepared; it is used now
//   seed    without an end slot  joined; it goes on
//   seed    with an end slot     being drawn; it is drawn now, the same, for ids and seed are
//   drawn   there                drawn; its list is made again
//   drawn   none                 lost by a loss of power: keys are known, places are not exact
//
// A gathering that the line knows of and no file does was lost by a loss of power, and is given up.

#include "controlplane/draws/draws.h"

#include "controlplane/draws/inside.h"
#include "dataplane/gate/place.h"

#include <assert.h>
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#define RECORDS_MAX (1u << 20) // more are an error

static void take_record(void *ctx, const struct store_record *record)
{
	struct draws *d = ctx;
	if (d->known_count == d->known_max) {
		uint32_t max = d->known_max ? 2 * d->known_max : 64;
		struct store_draw *known = realloc(d->known, max * sizeof(*known));
		if (!known)
			return;
		d->known = known;
		d->known_max = max;
	}
	d->known[d->known_count++] = record->draw;
}

int draws_create(const struct draws_plan *plan, struct store *store,
	const struct draws_seams *seams, struct draws **draws)
{
	struct draws *d = calloc(1, sizeof(*d));
	if (!d)
		return -ENOMEM;
	d->plan = *plan;
	d->seams = *seams;
	d->store = store;
	int ret = store_load(store, STORE_DRAW, RECORDS_MAX, take_record, d);
	if (ret < 0) {
		draws_destroy(d);
		return ret;
	}
	*draws = d;
	return 0;
}

static bool has_record(const struct draws *d, uint32_t line_id, uint64_t number)
{
	for (uint32_t i = 0; i < d->known_count; i++)
		if (d->known[i].line_id == line_id && d->known[i].number == number)
			return true;
	return false;
}

static bool is_orphan(void *ctx, uint32_t line_id, uint64_t number)
{
	return !has_record(ctx, line_id, number);
}

void draws_forget_others(struct draws *d, bool (*is_kept)(void *ctx, uint32_t line_id), void *ctx)
{
	uint32_t kept = 0;
	for (uint32_t i = 0; i < d->known_count; i++) {
		const struct store_record gone = {
			.kind = STORE_DRAW_FORGOTTEN, .draw = d->known[i]};
		// One that the store cannot forget now is kept for the next start.
		if (is_kept(ctx, d->known[i].line_id) || !store_put(d->store, &gone))
			d->known[kept++] = d->known[i];
	}
	d->known_count = kept;
	draws_file_sweep(d->plan.folder, is_orphan, d);
}

// All that retired_turn() frees.
static void give(struct draws *d, struct gathering *g)
{
	if (!g)
		return;
	if (g->job.is_running)
		draws_job_is_done(&g->job, true);
	retired_add(&d->retired, RETIRED_GATHERING, g, 0, 0);
}

void draws_destroy(struct draws *d)
{
	if (!d)
		return;
	for (struct gathering *g = d->strays, *after; g; g = after) {
		after = g->next;
		inside_follow_give(d, g);
	}
	for (struct draws_line *l = d->lines, *next; l; l = next) {
		next = l->next;
		for (struct gathering *g = l->coming, *after; g; g = after) {
			after = g->next;
			inside_follow_give(d, g);
		}
		give(d, d->is_shared ? NULL : l->prepared);
		give(d, d->is_shared ? NULL : l->open);
		give(d, d->is_shared || l->is_listed ? NULL : l->closing);
		for (struct gathering *g = l->drawn, *after; g; g = after) {
			after = g->next;
			atomic_store(&g->list.readers, 0);
			give(d, g);
		}
		atomic_store(&l->line->drawn, NULL);
		free(l->set);
		free(l->proof);
		free(l);
	}
	retired_turn(&d->retired, NULL, NULL);
	if (d->known)
		explicit_bzero(d->known, d->known_max * sizeof(*d->known)); // seeds
	free(d->known);
	free(d);
}

// The list of a gathering that was drawn, or is to be; now. Returns 0 or -ENOMEM.
static int draw_now(struct draws_line *l, struct gathering *g)
{
	g->job = (struct draws_job){.ids = g->file.ids->ids, .taken = draws_file_taken(&g->file)};
	gathering_key(g, &g->job.mac);
	int ret = draws_job_run(&g->job);
	if (ret < 0)
		return ret;
	inside_list(l, g);
	inside_append(l, g);
	inside_publish_set(l);
	draws_file_close(&g->file);
	return 0;
}

static int restore_drawn(struct draws_line *l, struct gathering *g)
{
	const struct store_draw *record = &g->record;
	if (g->file.ids)
		return draw_now(l, g);
	g->list = (struct draw_list){.number = record->number,
		.first_slot = record->first_slot,
		.end_slot = record->end_slot,
		.base = record->base};
	gathering_key(g, &g->list.mac);
	draw_list_init(&g->list);
	inside_append(l, g);
	inside_publish_set(l);
	return 0;
}

static int restore_closing(struct draws_line *l, struct gathering *g)
{
	memcpy(g->record.salt, g->file.ids->salt, sizeof(g->record.salt));
	g->record.salt_bytes = (uint8_t)g->file.ids->salt_bytes;
	int ret = draw_now(l, g);
	if (ret < 0)
		return ret;
	store_put(l->draws->store, &(struct store_record){.kind = STORE_DRAW, .draw = g->record});
	if (atomic_load(&l->line->gathers_from) == g->list.first_slot)
		place_drawn(l->line, g->list.count, g->list.end_slot, 0);
	return 0;
}

static int restore_one(struct draws_line *l, const struct store_draw *record)
{
	struct gathering *g = inside_gathering(l, record->number);
	if (!g)
		return -ENOMEM;
	g->record = *record;
	int ret = draws_file_open(&g->file, l->draws->plan.folder, l->line_id, record->number);
	if (record->is_drawn)
		return restore_drawn(l, g);
	if (ret == 0 && g->file.ids->end_slot > 0)
		return restore_closing(l, g);
	if (ret == 0 && !l->open) {
		l->open = g;
		return 0;
	}
	if (l->prepared || ret == 0) { // of which nobody has a ticket
		store_put(l->draws->store,
			&(struct store_record){.kind = STORE_DRAW_FORGOTTEN, .draw = *record});
		draws_file_close(&g->file);
		free(g);
		return 0;
	}
	l->prepared = g;
	l->is_saved = true;
	return 0;
}

static uint64_t people_in(const struct gathering *g)
{
	uint64_t people = 0;
	for (uint64_t i = 0; i < draws_file_taken(&g->file); i++)
		people += atomic_load(&g->file.ids->ids[i]) != 0;
	return people;
}

// The line's words as the files say.
static void restore_words(struct draws_line *l)
{
	uint64_t first = l->open ? l->open->file.ids->first_slot : 0;
	atomic_store(&l->line->gathers_from, first);
	atomic_store(&l->line->gathered, l->open ? people_in(l->open) : 0);
	if (l->open)
		atomic_store(&l->words.open, l->open->file.ids);
	inside_publish_words(l);
}

static struct draws_line *find(struct draws *d, uint32_t line_id)
{
	for (struct draws_line *l = d->lines; l; l = l->next)
		if (l->line_id == line_id)
			return l;
	return NULL;
}

static bool is_known(const struct draws *d, uint32_t line_id)
{
	for (const struct gathering *g = d->strays; g; g = g->next)
		if (g->said.line_id == line_id)
			return true;
	for (uint32_t i = 0; i < d->known_count; i++)
		if (d->known[i].line_id == line_id)
			return true;
	return false;
}

// What this appliance knew of before it shared the line is no more.
static struct draws_line *take_shared(struct draws *d, uint32_t line_id, struct place_line *line)
{
	struct draws_line *l = calloc(1, sizeof(*l));
	if (!l)
		return NULL;
	*l = (struct draws_line){.line_id = line_id, .line = line, .draws = d, .next = d->lines};
	d->lines = l;
	inside_follow_take(l);
	return l;
}

void draws_share(struct draws *d, const struct draws_cluster_seams *seams)
{
	d->is_shared = true;
	d->cluster = *seams;
}

struct draws_line *draws_take(
	struct draws *d, uint32_t line_id, struct place_line *line, bool gathers)
{
	struct draws_line *l = find(d, line_id);
	if (l)
		return l;
	if (!gathers && !is_known(d, line_id) && atomic_load(&line->gathers_from) == 0)
		return NULL;
	if (d->is_shared)
		return take_shared(d, line_id, line);
	l = calloc(1, sizeof(*l));
	if (!l)
		return NULL;
	*l = (struct draws_line){.line_id = line_id, .line = line, .draws = d, .next = d->lines};
	for (uint32_t i = 0; i < d->known_count; i++)
		if (d->known[i].line_id == line_id && restore_one(l, &d->known[i]) < 0)
			abort(); // without memory for what people hold tickets of
	restore_words(l);
	d->lines = l;
	return l;
}
