// The life of gatherings. Each line goes through its steps by itself, at most one of each kind in a
// turn; a step is taken when what it needs is there:
//
//   prepare   a seed is drawn and put into the store
//   begin     it is saved: the file is made, and newcomers join
//   settle    every worker has passed: nobody mints, and the gathering takes its slots
//   close     another epoch: mints, or the next gathering, go on behind its slots
//   draw      every worker has passed: nobody joins any more, and the job begins
//   finish    the job is done: list and index entry are published, the store is told
//   forget    floor has passed it
//
// What a step writes for workers comes in such an order that each word by itself is true: the list
// before the index entry, both before the gathering is no longer among the undrawn.

#include "controlplane/draws/draws.h"

#include "controlplane/draws/inside.h"
#include "dataplane/gate/mac_state.h"
#include "dataplane/gate/place.h"

#include <assert.h>
#include <errno.h>
#include <inttypes.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define TEXT_BYTES 160u

void inside_say(struct draws_line *l, const char *format, ...)
{
	char text[TEXT_BYTES];
	va_list values;
	va_start(values, format);
	vsnprintf(text, sizeof(text), format, values);
	va_end(values);
	l->draws->seams.say(l->draws->seams.ctx, l->line_id, text);
}

uint64_t inside_barrier(struct draws_line *l)
{
	return l->draws->seams.barrier_begin(l->draws->seams.ctx);
}

bool inside_has_passed(struct draws_line *l, uint64_t token)
{
	return l->draws->seams.barrier_passed(l->draws->seams.ctx, token);
}

void inside_retire(struct draws_line *l, enum retired_kind kind, void *what)
{
	if (what)
		retired_add(&l->draws->retired, kind, what, 0, inside_barrier(l));
}

struct gathering *inside_gathering(struct draws_line *l, uint64_t number)
{
	struct gathering *g = calloc(1, sizeof(*g));
	if (!g)
		return NULL;
	g->record.line_id = l->line_id;
	g->record.number = number;
	l->last_number = number > l->last_number ? number : l->last_number;
	return g;
}

void inside_list(struct draws_line *l, struct gathering *g)
{
	const struct gather_ids *ids = g->file.ids;
	struct store_draw *record = &g->record;
	l->drawn_epoch = ids->epoch;
	if (!record->is_drawn) // the line forgets it as floor passes
		record->base = place_before(l->line, ids->first_slot);
	record->is_drawn = true;
	record->first_slot = ids->first_slot;
	record->end_slot = ids->end_slot;
	record->count = g->job.count;
	memcpy(record->list_sha256, g->job.list_sha256, sizeof(record->list_sha256));
	g->list = (struct draw_list){.number = record->number,
		.first_slot = record->first_slot,
		.end_slot = record->end_slot,
		.base = record->base,
		.count = record->count,
		.mac = g->job.mac,
		.hashes = g->job.hashes};
	draw_list_init(&g->list);
}

void inside_append(struct draws_line *l, struct gathering *g)
{
	struct gathering **at = &l->drawn;
	while (*at)
		at = &(*at)->next;
	*at = g;
}

bool inside_is_passed(const struct draws_line *l, const struct gathering *g)
{
	return atomic_load(&l->line->floor) >= place_key(g->list.end_slot, 0, 0);
}

void inside_publish_set(struct draws_line *l)
{
	uint32_t count = 0;
	for (struct gathering *g = l->drawn; g; g = g->next)
		count += !inside_is_passed(l, g);
	struct draw_set *set = calloc(1, sizeof(*set) + count * sizeof(set->lists[0]));
	if (!set)
		abort(); // control without memory for a few bytes: nothing can go on
	for (struct gathering *g = l->drawn; g; g = g->next)
		if (!inside_is_passed(l, g))
			set->lists[set->count++] = &g->list;
	atomic_store_explicit(&l->line->drawn, set, memory_order_release);
	inside_retire(l, RETIRED_MEMORY, l->set);
	l->set = set;
}

struct gathering *inside_last_drawn(const struct draws_line *l)
{
	struct gathering *g = l->drawn;
	while (g && g->next)
		g = g->next;
	return g;
}

// What GET draw is about: what is being drawn; before doors who gathers for them; else what was
// drawn last.
static struct gathering *main_subject(const struct draws_line *l)
{
	struct gathering *coming = l->open ? l->open : l->prepared;
	if (l->closing)
		return l->closing;
	if (l->open && !l->wish.keeps_empty)
		return l->open;
	return l->drawn ? inside_last_drawn(l) : coming;
}

// The salt of a gathering: what is wished for, until somebody has joined. From then on the first
// that was named stands: whoever knows a ticket and the seed could choose among salts.
static void name_salt(const struct draws_line *l, struct gathering *g, bool is_closed)
{
	struct store_draw *record = &g->record;
	struct gather_ids *ids = g->file.ids;
	if (ids && ids->salt_bytes > 0) {
		memcpy(record->salt, ids->salt, sizeof(record->salt));
		record->salt_bytes = (uint8_t)ids->salt_bytes;
		return;
	}
	memcpy(record->salt, l->wish.salt, sizeof(record->salt));
	record->salt_bytes = l->wish.salt_bytes;
	if (!ids || (!is_closed && draws_file_taken(&g->file) == 0))
		return;
	memcpy(ids->salt, record->salt, sizeof(ids->salt));
	ids->salt_bytes = record->salt_bytes;
}

void inside_publish_words(struct draws_line *l)
{
	struct gather *words = &l->words;
	struct gathering *coming = l->open ? l->open : l->prepared, *g = main_subject(l);
	uint64_t open = l->open ? l->open->record.number : 0;
	atomic_store(&words->numbers[1], l->closing ? open : 0);
	atomic_store(&words->numbers[0], l->closing ? l->closing->record.number : open);
	atomic_store(&words->closes_s, l->wish.closes_s);
	if (coming && !l->draws->is_shared)
		name_salt(l, coming, false);
	struct gather_proof *proof = g ? calloc(1, sizeof(*proof)) : NULL;
	if (proof)
		gathering_proof(g, coming != g ? coming : NULL, proof);
	atomic_store_explicit(&words->proof, proof, memory_order_release);
	inside_retire(l, RETIRED_MEMORY, l->proof);
	l->proof = proof;
	struct gathering *last = inside_last_drawn(l);
	atomic_store_explicit(&words->shown, last ? &last->list : NULL, memory_order_release);
}

static uint64_t joined(const struct gathering *g)
{
	return g ? draws_file_taken(&g->file) : 0;
}

uint64_t inside_drawn_people(const struct draws_line *l)
{
	uint64_t people = 0;
	for (struct gathering *g = l->drawn; g; g = g->next)
		people += inside_is_passed(l, g) ? 0 : g->list.count;
	return people;
}

// Last in a turn, so that the store commits it in this very one.
static void prepare(struct draws_line *l, uint64_t now_ms)
{
	struct draws *d = l->draws;
	if (l->prepared || !(l->wish.prepares || l->wish.gathers))
		return;
	uint64_t number = now_ms > l->last_number ? now_ms : l->last_number + 1;
	struct gathering *g = inside_gathering(l, number);
	if (!g)
		return;
	d->seams.random(d->seams.ctx, g->record.seed, sizeof(g->record.seed));
	if (!store_put(d->store, &(struct store_record){.kind = STORE_DRAW, .draw = g->record})) {
		free(g);
		return; // the next turn tries again
	}
	l->put_commits = store_poll(d->store, now_ms)->commits_total;
	l->prepared = g;
	l->is_saved = false;
}

static void note_saved(struct draws_line *l, uint64_t now_ms)
{
	if (!l->prepared || l->is_saved)
		return;
	const struct store_status *status = store_poll(l->draws->store, now_ms);
	l->is_saved = !status->is_pending && !status->is_unsaved &&
		      status->commits_total > l->put_commits;
	if (l->is_saved)
		inside_publish_words(l);
}

// Let newcomers join the gathering that is prepared.
static void begin(struct draws_line *l, uint64_t now_ms)
{
	uint64_t taken = inside_drawn_people(l) + joined(l->closing);
	if (!l->wish.gathers || l->open || !l->prepared || !l->is_saved ||
		taken >= l->wish.gathered_max)
		return;
	struct gathering *g = l->prepared;
	int ret = draws_file_make(&g->file, l->draws->plan.folder, l->line_id, g->record.number,
		l->wish.gathered_max - taken);
	if (ret < 0 && ret != l->file_error)
		inside_say(l, "nobody can gather: %s", strerror(-ret));
	l->file_error = ret;
	if (ret < 0)
		return;
	g->file.ids->epoch = l->wish.epoch;
	g->file.ids->began_ms = now_ms;
	atomic_store(&g->file.ids->full_at, l->wish.full_at);
	l->open = g;
	l->prepared = NULL;
	inside_publish_words(l); // its number is known before anybody has it
	atomic_store_explicit(&l->words.open, g->file.ids, memory_order_release);
	l->open_barrier = inside_barrier(l);
}

static void settle(struct draws_line *l)
{
	struct gather_ids *ids = l->open ? l->open->file.ids : NULL;
	if (ids && ids->first_slot == 0 && !l->closing && inside_has_passed(l, l->open_barrier))
		ids->first_slot = place_gather(l->line);
}

// Whether the next gathering could begin where this one ends.
static bool can_follow(const struct draws_line *l)
{
	const uint32_t lists = l->set ? l->set->count : 0;
	return l->prepared && l->is_saved && lists + 2 <= DRAW_LISTS_MAX;
}

// Close the list of the gathering that is joined, if another one is wished for, or none.
static void close_list(struct draws_line *l, uint64_t now_ms)
{
	struct gathering *g = l->open;
	struct gather_ids *ids = g ? g->file.ids : NULL;
	if (!g || l->closing || ids->first_slot == 0 || !l->has_wished ||
		(l->wish.gathers && l->wish.epoch == ids->epoch))
		return;
	if (l->wish.gathers && l->wish.keeps_empty && joined(g) == 0) {
		ids->epoch = l->wish.epoch;
		return;
	}
	if (l->wish.gathers && !can_follow(l))
		return; // it goes on until the next can begin
	name_salt(l, g, true);
	ids->end_slot = place_gather_end(l->line, ids->first_slot, now_ms / PLACE_SLOT_MS);
	l->closing = g;
	l->open = NULL;
	l->closing_ms = now_ms;
	begin(l, now_ms);
	if (l->open)
		l->open->file.ids->first_slot = ids->end_slot; // nobody mints in between
	else
		atomic_store_explicit(&l->words.open, NULL, memory_order_release);
	inside_publish_words(l);
	l->closing_barrier = inside_barrier(l);
}

static void draw(struct draws_line *l)
{
	struct gathering *g = l->closing;
	if (!g || l->is_listed || g->job.is_running || !inside_has_passed(l, l->closing_barrier))
		return;
	g->job = (struct draws_job){.ids = g->file.ids->ids, .taken = joined(g)};
	gathering_key(g, &g->job.mac);
	int ret = draws_job_start(&g->job);
	if (ret < 0)
		inside_say(l, "the draw waits: %s", strerror(-ret));
}

// Returns whether a list was drawn.
static bool finish(struct draws_line *l, uint64_t now_ms)
{
	struct gathering *g = l->closing;
	if (!g || (!l->is_listed && (!g->job.is_running || !draws_job_is_done(&g->job, false))))
		return false;
	if (!l->is_listed && g->job.error < 0)
		return false; // without memory: it begins again
	if (!l->is_listed) {
		inside_list(l, g);
		inside_append(l, g);
		inside_publish_set(l);
		l->is_listed = true;
	}
	uint64_t next = l->open ? l->open->file.ids->first_slot : 0;
	if (!place_drawn(l->line, g->list.count, g->list.end_slot, next))
		return false;
	atomic_fetch_sub(&l->line->gathered, g->list.count);
	l->closing = NULL;
	l->is_listed = false;
	inside_publish_words(l);
	store_put(l->draws->store, &(struct store_record){.kind = STORE_DRAW, .draw = g->record});
	draws_file_close(&g->file);
	l->draws_total++;
	l->drawn_total += g->list.count;
	uint32_t took_ms = (uint32_t)(now_ms - l->closing_ms);
	l->longest_ms = took_ms > l->longest_ms ? took_ms : l->longest_ms;
	inside_say(l, "drawn: %" PRIu64 " people in %" PRIu32 " ms", g->list.count, took_ms);
	return true;
}

// Drop what floor has passed, but for the last, which can still be shown.
static void forget(struct draws_line *l)
{
	struct gathering *gone = NULL;
	while (l->drawn && l->drawn->next && inside_is_passed(l, l->drawn)) {
		struct gathering *g = l->drawn;
		l->drawn = g->next;
		g->next = gone;
		gone = g;
		store_put(l->draws->store,
			&(struct store_record){.kind = STORE_DRAW_FORGOTTEN, .draw = g->record});
		draws_file_remove(l->draws->plan.folder, l->line_id, g->record.number);
	}
	if (!gone)
		return;
	inside_publish_set(l); // without them
	for (struct gathering *next; gone; gone = next) {
		next = gone->next;
		inside_retire(l, RETIRED_GATHERING, gone);
	}
}

void draws_wish(struct draws_line *l, const struct draws_wish *wish, uint64_t now_ms)
{
	assert(wish->gathered_max <= DRAW_GATHERED_MOST);
	bool has_changed = wish->closes_s != l->wish.closes_s ||
			   wish->keeps_empty != l->wish.keeps_empty ||
			   wish->salt_bytes != l->wish.salt_bytes ||
			   memcmp(wish->salt, l->wish.salt, sizeof(wish->salt)) != 0;
	l->wish = *wish;
	l->has_wished = true;
	if (l->draws->is_shared) {
		if (has_changed)
			inside_publish_words(l);
		return;
	}
	if (l->open) {
		struct gather_ids *ids = l->open->file.ids;
		atomic_store(&ids->full_at, wish->full_at);
		atomic_store_explicit(
			&l->words.open, wish->is_shut ? NULL : ids, memory_order_release);
	}
	if (has_changed)
		inside_publish_words(l);
	close_list(l, now_ms);
}

static bool turn_line(struct draws_line *l, uint64_t now_ms)
{
	note_saved(l, now_ms);
	if (l->open && l->has_wished)
		name_salt(l, l->open, false);
	settle(l);
	close_list(l, now_ms);
	begin(l, now_ms);
	draw(l);
	bool has_drawn = finish(l, now_ms);
	if (l->open) {
		int ret = draws_file_turn(&l->open->file, l->draws->plan.folder);
		if (ret < 0 && ret != l->file_error)
			inside_say(l, "no more can gather: %s", strerror(-ret));
		l->file_error = ret;
	}
	forget(l);
	prepare(l, now_ms);
	return has_drawn;
}

bool draws_turn(struct draws *d, uint64_t now_ms)
{
	bool has_drawn = false;
	for (struct draws_line *l = d->lines; l; l = l->next)
		has_drawn |= d->is_shared ? inside_follow(l, now_ms) : turn_line(l, now_ms);
	retired_turn(&d->retired, d->seams.barrier_passed, d->seams.ctx);
	return has_drawn;
}

bool draws_is_busy(const struct draws *d)
{
	bool is_busy = false;
	if (d->is_shared)
		return inside_follow_is_busy(d);
	for (const struct draws_line *l = d->lines; l; l = l->next)
		is_busy |= l->closing
				   ? !l->is_listed
				   : l->open && gather_is_full(l->open->file.ids) && can_follow(l);
	return is_busy;
}

bool draws_is_late(const struct draws *d)
{
	bool is_late = false;
	if (d->is_shared)
		return inside_follow_is_late(d);
	for (const struct draws_line *l = d->lines; l; l = l->next)
		is_late |= l->wish.gathers && !l->open && l->file_error == 0 &&
			   inside_drawn_people(l) + joined(l->closing) < l->wish.gathered_max;
	return is_late;
}

struct gather *draws_gather(struct draws_line *l)
{
	return &l->words;
}

void draws_look(const struct draws_line *l, struct draws_view *view)
{
	const struct gather_ids *ids = l->open ? l->open->file.ids : NULL;
	const struct gathering *last = inside_last_drawn(l);
	if (l->draws->is_shared) {
		inside_follow_look(l, view);
		return;
	}
	*view = (struct draws_view){.is_gathering = l->open,
		.is_undrawn = l->closing || l->open,
		.epoch = ids ? ids->epoch : 0,
		.closing_epoch = l->closing ? l->closing->file.ids->epoch : 0,
		.began_ms = ids ? ids->began_ms : 0,
		.joined = joined(l->open),
		.salt = ids ? ids->salt : NULL,
		.salt_bytes = ids ? (uint8_t)ids->salt_bytes : 0,
		.lists = l->set ? l->set->count : 0,
		.drawn = inside_drawn_people(l),
		.drawn_epoch = last ? l->drawn_epoch : 0,
		.drawn_end = last ? last->list.end_slot : 0,
		.drawn_total = l->drawn_total,
		.draws_total = l->draws_total,
		.longest_ms = l->longest_ms};
}

bool draws_had_salt(const struct draws_line *l, const uint8_t *salt, uint8_t bytes)
{
	const struct gathering *last = inside_last_drawn(l);
	return last && last->record.salt_bytes == bytes &&
	       memcmp(last->record.salt, salt, bytes) == 0;
}

bool draws_key(const struct draws_line *l, uint64_t number, uint64_t visitor, uint64_t *key)
{
	*key = 0;
	if (gather_is_undrawn(&l->words, number))
		return false;
	for (const struct gathering *g = l->drawn; g; g = g->next)
		if (g->list.number == number)
			*key = draw_key(&g->list, mac_state_word(&g->list.mac, visitor));
	return true;
}

const struct draw_list *draws_place(const struct draws_line *l, uint64_t number, uint64_t key,
	uint64_t visitor, uint64_t *hash, uint64_t *place)
{
	for (const struct gathering *g = l->drawn; g; g = g->next) {
		bool is_listed;
		*hash = mac_state_word(&g->list.mac, visitor);
		uint64_t its_key = draw_key(&g->list, *hash);
		if (number ? number != g->list.number : key != its_key)
			continue;
		*place = draw_rank(&g->list, its_key, &is_listed);
		*place = draw_place(&g->list, *place, *hash);
		is_listed = *place < g->list.count && g->list.hashes[*place] == *hash;
		return is_listed ? &g->list : NULL;
	}
	return NULL;
}
