// Ids: what joined here is told to the ledger, and what joined anywhere is read from it, once a
// sync while people gather and as fast as it goes when the list is closed.
//
//   own file ─▶ TELL from, ids ─▶ ledger's one list ─▶ READ from, page ─▶ ids of all
//
// An id is told when it and all before it are written; one that a killed process took and never
// wrote is told as 0, which is nobody. A file tells under a number of its own (`source`), so a
// process that is back goes on where the one before stopped. The ledger passes over what it has:
// telling all again is right at any time.

#include "controlplane/draws/draws_cluster.h"

#include "controlplane/draws/inside.h"

#include <stdlib.h>
#include <string.h>

#define STEP 65536u // ids that there is more room for at a time
#define TELL_MAX 64u // entries for one gathering in a batch

void inside_ids_again(struct gathering *g)
{
	struct gathering_ids *ids = &g->ids;
	ids->due = g->file.ids ? draws_file_taken(&g->file) : 0;
	ids->told = ids->count = ids->total = ids->whole = ids->read_ms = 0;
	ids->is_whole = false;
	g->is_drawn_said = false;
}

static void all_again(struct gathering *g)
{
	for (; g; g = g->next)
		inside_ids_again(g);
}

// What is told of now is in this ledger: only with another one is it lost.
static void note_epoch(struct draws *d)
{
	for (struct draws_line *l = d->lines; l; l = l->next) {
		for (struct gathering *g = l->coming; g; g = g->next)
			g->epoch = g->is_untold ? g->epoch : d->view.epoch;
		for (struct gathering *g = l->drawn; g; g = g->next)
			g->epoch = g->is_untold ? g->epoch : d->view.epoch;
	}
}

void draws_cluster_see(struct draws *d, const struct draws_cluster_view *view)
{
	const bool has_lost = view->epoch != d->view.epoch;
	const bool is_first = view->is_known && !d->view.is_known;
	d->is_restoring |= has_lost && d->view.is_known;
	d->view = *view;
	if (is_first)
		note_epoch(d);
	if (!has_lost)
		return;
	all_again(d->strays);
	for (struct draws_line *l = d->lines; l; l = l->next) {
		all_again(l->coming);
		all_again(l->drawn);
	}
}

// --- telling

static uint64_t source_of(const struct draws *d, const struct gathering *g)
{
	const uint64_t made_ms = g->file.ids ? g->file.ids->began_ms : 0;
	return d->cluster.source ^ made_ms * 0x9e3779b97f4a7c15ull;
}

// Ids of our file that can be told.
static uint64_t written(const struct gathering *g)
{
	const struct gather_ids *ids = g->file.ids;
	const uint64_t taken = ids ? draws_file_taken(&g->file) : 0;
	const uint64_t most = g->ids.told + (uint64_t)TELL_MAX * LEDGER_IDS_MAX;
	const uint64_t end = taken < most ? taken : most;
	uint64_t i = g->ids.told;
	while (i < end && (g->is_settled || i < g->ids.sure || atomic_load(&ids->ids[i]) != 0))
		i++;
	return i;
}

// Whether ids below `end` are all that there ever will be: those that are on disk are not known
// before the file was opened.
static bool is_all(const struct gathering *g, uint64_t end)
{
	if (g->said.step < DRAWS_CLOSED)
		return false;
	return g->file.ids ? g->is_settled && end == draws_file_taken(&g->file) : g->is_missing;
}

// Whether there is something to tell now.
static bool is_due(const struct draws *d, const struct gathering *g, uint64_t end, uint64_t now_ms)
{
	if (g->said.step < DRAWS_JOINED || g->ids.is_whole)
		return false;
	if (g->said.step >= DRAWS_CLOSED)
		return end > g->ids.told || is_all(g, end);
	return end > g->ids.told && now_ms >= g->ids.told_ms + d->cluster.sync_ms;
}

static uint32_t tell(const struct draws *d, struct gathering *g, struct ledger_entry *entries,
	uint32_t max, uint64_t now_ms)
{
	const uint64_t end = written(g);
	uint64_t from = g->ids.told;
	uint32_t count = 0;
	if (!is_due(d, g, end, now_ms))
		return 0;
	g->ids.told_ms = now_ms;
	do {
		if (count == max)
			return count;
		struct ledger_entry *entry = &entries[count++];
		*entry = (struct ledger_entry){.kind = LEDGER_GATHERED, .line = g->said.line_id};
		struct ledger_gathered *is = &entry->gathered;
		is->what = LEDGER_GATHERED_TELL;
		is->number = g->said.number;
		is->source = source_of(d, g);
		is->from = from;
		for (; from < end && is->count < LEDGER_IDS_MAX; from++)
			is->ids[is->count++] = atomic_load(&g->file.ids->ids[from]);
		is->is_whole = is_all(g, from);
	} while (from < end);
	return count;
}

// --- reading

static bool wants(const struct draws *d, const struct gathering *g, uint64_t now_ms)
{
	if (g->said.step < DRAWS_JOINED || g->job.is_running)
		return false;
	if (g->said.step == DRAWS_DRAWN && g->tried > 0 && g->job.count == g->said.count &&
		memcmp(g->job.list_sha256, g->said.list_sha256, STORE_HASH_BYTES) == 0)
		return false;
	const bool is_behind = g->ids.count < g->ids.total || g->ids.count < g->said.total;
	const bool hurries = g->said.step == DRAWS_CLOSED || (is_behind && g->ids.read_ms == 0);
	return hurries || g->ids.count < g->ids.total ||
	       now_ms >= g->ids.read_ms + d->cluster.sync_ms;
}

static uint32_t read(const struct draws *d, struct gathering *g, struct ledger_entry *entries,
	uint32_t max, uint64_t now_ms)
{
	uint32_t count = 0;
	if (max == 0 || !wants(d, g, now_ms))
		return 0;
	g->ids.read_ms = now_ms;
	uint64_t from = g->ids.count;
	do {
		if (count == max)
			return count;
		entries[count++] = (struct ledger_entry){.kind = LEDGER_READ,
			.line = g->said.line_id,
			.read = {.what = LEDGER_NEWS_GATHERED,
				.number = g->said.number,
				.from = from}};
		from += LEDGER_GATHERED_PAGE;
	} while (from < g->ids.total);
	return count;
}

static bool make_room(struct gathering_ids *ids, uint64_t count)
{
	if (count <= ids->max)
		return true;
	const uint64_t max = (count + STEP - 1) / STEP * STEP;
	_Atomic uint64_t *at = realloc(ids->at, max * sizeof(*at));
	if (!at)
		return false; // it is read again
	ids->at = at;
	ids->max = max;
	return true;
}

void draws_cluster_gathered(struct draws *d, const struct ledger_news *item)
{
	struct gathering *g = inside_follow_find(d, item->line, item->gathering);
	if (!g || g->job.is_running || item->from != g->ids.count)
		return;
	g->ids.whole = item->whole;
	const uint64_t room = DRAW_GATHERED_MOST - g->ids.count;
	const uint32_t count = item->count < room ? item->count : (uint32_t)room;
	if (!make_room(&g->ids, g->ids.count + count))
		return;
	for (uint32_t i = 0; i < count; i++)
		atomic_init(&g->ids.at[g->ids.count++], item->held[i]);
	g->ids.is_new |= count > 0;
}

// --- what else the ledger is to know

// The first of those who left before a draw that can be placed, from (*number, *visitor) on.
static bool next_left(
	const struct draws_line *l, uint64_t *number, uint64_t *visitor, uint64_t *place)
{
	const struct draws *d = l->draws;
	while (d->cluster.left(d->cluster.ctx, l->line_id, number, visitor)) {
		const struct gathering *g = inside_follow_find(d, l->line_id, *number);
		const uint64_t first = l->drawn    ? l->drawn->said.number
				       : l->coming ? l->coming->said.number
						   : l->last_number;
		*place = g && g->said.step == DRAWS_DRAWN ? inside_follow_key(g, *visitor) : 0;
		if (*place != 0 || (!g && *number < first))
			return true;
		*number += 1; // as all of this one
		*visitor = 0;
	}
	return false;
}

static uint32_t place_left(
	struct draws_line *l, struct ledger_entry *entries, uint32_t max, uint64_t now_ms)
{
	uint64_t number = 0, visitor = 0, place;
	uint32_t count = 0;
	if (now_ms < l->left_ms + l->draws->cluster.sync_ms)
		return 0;
	while (count < max && next_left(l, &number, &visitor, &place)) {
		struct ledger_entry *entry = &entries[count++];
		*entry = (struct ledger_entry){.kind = LEDGER_GATHERED, .line = l->line_id};
		entry->gathered.what = LEDGER_GATHERED_PLACED;
		entry->gathered.number = number;
		entry->gathered.key = GATHER_NUMBER | number;
		entry->gathered.place = place;
		entry->gathered.ids[0] = visitor++;
		entry->gathered.count = 1;
	}
	l->left_ms = count > 0 ? now_ms : l->left_ms;
	return count;
}

// That it is drawn, and that nothing of it is good any more.
static uint32_t tell_end(const struct draws *d, const struct gathering *g, bool is_over,
	struct ledger_entry *entries, uint32_t max)
{
	const bool is_drawn_due = g->said.step == DRAWS_DRAWN && !g->is_drawn_said &&
				  (d->view.is_in_office || d->is_restoring);
	const bool is_over_due = is_over && !g->is_over_said && d->view.is_in_office;
	if (max == 0 || (!is_drawn_due && !is_over_due))
		return 0;
	entries[0] = (struct ledger_entry){.kind = LEDGER_GATHERED, .line = g->said.line_id};
	entries[0].gathered.what = is_drawn_due ? LEDGER_GATHERED_DRAWN : LEDGER_GATHERED_OVER;
	entries[0].gathered.number = g->said.number;
	entries[0].gathered.people = g->said.before + g->said.count;
	return 1;
}

static uint32_t offer(struct draws *d, struct gathering *g, bool is_over,
	struct ledger_entry *entries, uint32_t max, uint32_t *reads, uint64_t now_ms)
{
	uint32_t count = tell_end(d, g, is_over, entries, max);
	count += tell(d, g, entries + count, max - count, now_ms);
	const uint32_t room = max - count < *reads ? max - count : *reads;
	const uint32_t pages = read(d, g, entries + count, room, now_ms);
	*reads -= pages;
	return count + pages;
}

uint32_t draws_cluster_offer(
	struct draws *d, struct ledger_entry *entries, uint32_t max, uint64_t now_ms)
{
	uint32_t count = 0, reads = DRAWS_READS_MAX, none = 0;
	for (struct gathering *g = d->strays; g; g = g->next) {
		if (g->said.step != DRAWS_CLOSED)
			continue;
		inside_join_look_for(d, g); // others wait until all have told
		g->is_settled = true; // no worker knows of it
		count += tell(d, g, entries + count, max - count, now_ms);
	}
	for (struct draws_line *l = d->lines; l; l = l->next) {
		for (struct gathering *g = l->drawn; g; g = g->next)
			count += offer(d, g, g->next && inside_is_passed(l, g), entries + count,
				max - count, &none, now_ms);
		for (struct gathering *g = l->coming; g; g = g->next)
			count += offer(d, g, false, entries + count, max - count, &reads, now_ms);
		if (d->view.is_in_office)
			count += place_left(l, entries + count, max - count, now_ms);
	}
	return count;
}

static void told(struct draws *d, struct gathering *g, const struct ledger_gathered *is,
	enum ledger_verdict verdict)
{
	if (verdict == LEDGER_REFUSED) // a gap
		g->ids.told = 0;
	if (verdict != LEDGER_DONE || is->source != source_of(d, g))
		return;
	if (is->from <= g->ids.told && is->from + is->count > g->ids.told)
		g->ids.told = is->from + is->count;
	g->ids.is_whole |= is->is_whole && is_all(g, g->ids.told);
}

void draws_cluster_offered(
	struct draws *d, const struct ledger_entry *entry, const struct ledger_answer *answer)
{
	const bool is_read = entry->kind == LEDGER_READ;
	const uint64_t number = is_read ? entry->read.number : entry->gathered.number;
	struct gathering *g = inside_follow_find(d, entry->line, number);
	if (!g)
		return;
	if (is_read) {
		// A list is of no more people than have keys: the first so many, everywhere.
		const uint64_t total =
			answer->total < DRAW_GATHERED_MOST ? answer->total : DRAW_GATHERED_MOST;
		if (answer->verdict != LEDGER_DONE)
			return;
		if (g->ids.total != total)
			g->ids.grown_ms = g->ids.read_ms;
		g->ids.total = total;
		return;
	}
	const struct ledger_gathered *is = &entry->gathered;
	if (is->what == LEDGER_GATHERED_TELL)
		told(d, g, is, (enum ledger_verdict)answer->verdict);
	else if (answer->verdict != LEDGER_DONE)
		return;
	else if (is->what == LEDGER_GATHERED_DRAWN)
		g->is_drawn_said = true;
	else if (is->what == LEDGER_GATHERED_OVER)
		g->is_over_said = true;
}

static bool is_told(const struct gathering *g)
{
	if (g->said.step == DRAWS_DRAWN && !g->is_drawn_said)
		return false;
	if (g->is_unreadable && !g->file.ids)
		return true; // there is nothing to be told, ever
	return g->said.step < DRAWS_CLOSED ? g->ids.told >= g->ids.due : g->ids.is_whole;
}

bool draws_is_restored(struct draws *d)
{
	if (!d->is_restoring)
		return true;
	for (const struct draws_line *l = d->lines; l; l = l->next) {
		for (const struct gathering *g = l->drawn; g; g = g->next)
			if (!is_told(g))
				return false;
		for (const struct gathering *g = l->coming; g; g = g->next)
			if (!is_told(g))
				return false;
	}
	d->is_restoring = false;
	note_epoch(d);
	return true;
}
