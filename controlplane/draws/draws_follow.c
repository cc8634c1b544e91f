// Follow: what is said of a gathering is done, one turn after the other.
//
//   joined   the file is made, and workers add to it
//   closed   mints go on behind its slots; when every worker has passed, its file is whole
//   drawn    as many ids of the ledger as were said are sorted on a thread; the list has to have
//            the hash that was said. Then ranks, list and words are published
//
// A step is never taken back, and what a later one says of slots and seed is what the one before
// said. Who was away hears several at once, and takes them in order. Until its list is here, a
// gathering and all later ones are not drawn for workers (`later` of gather.h), also those that
// nothing was heard of: who has joined elsewhere keeps their ticket.

#include "controlplane/draws/draws_cluster.h"

#include "controlplane/draws/inside.h"
#include "dataplane/gate/mac_state.h"
#include "dataplane/gate/place.h"
#include "dataplane/gate/ranks.h"

#include <assert.h>
#include <errno.h>
#include <inttypes.h>
#include <openssl/crypto.h>
#include <stdlib.h>
#include <string.h>

static struct ranks *ranks_of(const struct draws_line *l)
{
	return atomic_load(&l->line->ranks);
}

static struct draws_line *find_line(const struct draws *d, uint32_t line_id)
{
	for (struct draws_line *l = d->lines; l; l = l->next)
		if (l->line_id == line_id)
			return l;
	return NULL;
}

static struct gathering *find_in(struct gathering *g, uint32_t line_id, uint64_t number)
{
	while (g && (g->said.number != number || g->said.line_id != line_id))
		g = g->next;
	return g;
}

struct gathering *inside_follow_find(const struct draws *d, uint32_t line_id, uint64_t number)
{
	const struct draws_line *l = find_line(d, line_id);
	if (!l)
		return find_in(d->strays, line_id, number);
	struct gathering *g = find_in(l->coming, line_id, number);
	return g ? g : find_in(l->drawn, line_id, number);
}

uint64_t inside_follow_joined(const struct gathering *g)
{
	const uint64_t own = g->file.ids ? draws_file_taken(&g->file) : 0;
	return g->ids.total + (own > g->ids.told ? own - g->ids.told : 0);
}

uint64_t inside_follow_key(const struct gathering *g, uint64_t visitor)
{
	struct draw_list list = {.number = g->said.number,
		.first_slot = g->said.first_slot,
		.end_slot = g->said.end_slot};
	struct mac_key mac;
	gathering_key(g, &mac);
	draw_list_init(&list);
	return draw_key(&list, mac_state_word(&mac, visitor));
}

// --- what is told

// The roles that draws.c publishes.
static void set_roles(struct draws_line *l)
{
	l->prepared = l->open = l->closing = NULL;
	for (struct gathering *g = l->coming; g; g = g->next) {
		if (g->is_gone)
			continue;
		if (g->said.step >= DRAWS_CLOSED)
			l->closing = l->closing ? l->closing : g;
		else if (g->said.step == DRAWS_JOINED)
			l->open = g;
		else
			l->prepared = l->prepared ? l->prepared : g;
		l->last_number = g->said.number;
	}
}

// The first that ranks wait for. All before it are in them.
static struct gathering *first_unranked(const struct draws_line *l)
{
	for (struct gathering *g = l->drawn; g; g = g->next)
		if (!g->is_ranked)
			return g;
	return l->coming;
}

// It is forgotten, and nobody was drawn.
static bool is_of_nobody(const struct gathering *g)
{
	return g->is_gone && g->said.step < DRAWS_DRAWN;
}

// Hold ranks where the next gathering begins. Nothing there is final yet: see DRAWS_AHEAD_MS. Were
// it, its slots would be counted as others are.
static void hold_ranks(struct draws_line *l)
{
	struct gathering *g = first_unranked(l);
	struct ranks *ranks = ranks_of(l);
	if (!ranks || !g || g->is_ranked || l->held == g->said.number || g->said.first_slot == 0 ||
		is_of_nobody(g))
		return;
	if (g->said.first_slot < ranks_final(ranks)) {
		inside_say(l, "a gathering was heard of too late: its places are not exact here");
		g->is_ranked = true;
		return;
	}
	ranks_gather(ranks, g->said.first_slot);
	l->held = g->said.number;
}

// What workers see follows from where the first gathering begins that is not drawn here.
static void publish(struct draws_line *l)
{
	const struct gathering *first = l->coming;
	const uint64_t next = l->last_number + 1;
	atomic_store(&l->line->gathers_from, first ? first->said.first_slot : 0);
	inside_publish_words(l);
	atomic_store(&l->words.later, !l->draws->view.is_known ? 1
				      : first                  ? first->said.number
							       : next);
}

static void insert(struct gathering **at, struct gathering *g)
{
	while (*at && (*at)->said.number < g->said.number)
		at = &(*at)->next;
	g->next = *at;
	*at = g;
}

// What is said, as far as it goes on from what was said before.
static struct draws_said in_force(const struct draws_said *was, const struct draws_said *said)
{
	struct draws_said is = was->step == DRAWS_DRAWN || said->step < was->step ? *was : *said;
	is.version = said->version > was->version ? said->version : was->version;
	if (was->first_slot)
		is.first_slot = was->first_slot;
	if (was->end_slot)
		is.end_slot = was->end_slot;
	if (was->step >= DRAWS_CLOSED) {
		is.next = was->next;
		memcpy(is.salt, was->salt, sizeof(was->salt));
		is.salt_bytes = was->salt_bytes;
	}
	return is;
}

// Whether there can be such a gathering.
static bool is_sound(const struct draws_said *is)
{
	if (is->step < DRAWS_JOINED)
		return true;
	if (is->first_slot == 0 || is->first_slot >= PLACE_SLOT_MAX ||
		(is->end_slot == 0 && is->step >= DRAWS_CLOSED))
		return false;
	return (is->end_slot == 0 ||
		       (is->end_slot > is->first_slot && is->end_slot <= PLACE_SLOT_MAX)) &&
	       is->total <= DRAW_GATHERED_MOST && is->count <= DRAW_GATHERED_MOST;
}

// Returns whether it goes on.
static bool take(const struct draws *d, struct gathering *g, const struct draws_said *said,
	const struct draws_said *is, uint64_t now_ms)
{
	const struct draws_said was = g->said;
	g->put_ms = 0;
	g->epoch = d->view.epoch;
	if (g->is_gone)
		g->is_shut = g->is_settled = false; // it is not, after all
	g->is_untold = g->is_gone = false;
	// told by somebody who had not heard more
	g->is_lost = said->version < was.version || said->step < was.step;
	if (said->version < was.version)
		return false;
	g->said = *is;
	if (said->step < was.step)
		return false;
	if (said->step > was.step)
		g->told_ms = now_ms;
	g->is_of_before |= was.step == 0 && said->step == DRAWS_DRAWN;
	g->record.line_id = g->said.line_id;
	g->record.number = g->said.number;
	g->record.salt_bytes = g->said.salt_bytes;
	memcpy(g->record.seed, g->said.seed, sizeof(g->record.seed));
	memcpy(g->record.salt, g->said.salt, sizeof(g->record.salt));
	return true;
}

void draws_told(struct draws *d, const struct draws_said *said, uint64_t now_ms)
{
	struct draws_line *l = find_line(d, said->line_id);
	struct gathering *g = inside_follow_find(d, said->line_id, said->number);
	if (!g && l && l->drawn && said->number < l->drawn->said.number) {
		if (d->view.is_in_office) // somebody had not heard that it is forgotten
			d->cluster.forget(d->cluster.ctx, said->line_id, said->number);
		return;
	}
	const struct draws_said none = {.line_id = said->line_id, .number = said->number};
	const struct draws_said is = in_force(g ? &g->said : &none, said);
	if (!is_sound(&is))
		return;
	if (!g) {
		g = calloc(1, sizeof(*g));
		if (!g)
			return; // it is told again with the next reading
		g->said = none;
		insert(l ? &l->coming : &d->strays, g);
	}
	if (!take(d, g, said, &is, now_ms) || !l)
		return;
	if (l->putting == said->number)
		l->putting = 0;
	set_roles(l);
	hold_ranks(l);
	publish(l);
}

static void take_out(struct gathering **at, const struct gathering *g)
{
	while (*at && *at != g)
		at = &(*at)->next;
	if (*at)
		*at = g->next;
}

void inside_follow_give(struct draws *d, struct gathering *g)
{
	if (g->job.is_running)
		draws_job_is_done(&g->job, true);
	free(g->ids.at);
	g->ids.at = NULL;
	retired_add(&d->retired, RETIRED_GATHERING, g, 0, 0);
}

// Floor has passed it, or no ticket of it is good.
static bool is_over(const struct draws_line *l, const struct gathering *g)
{
	return atomic_load(&l->line->floor) >= place_key(g->said.end_slot, 0, 0);
}

// Whether one behind it is drawn; then it was, too.
static bool is_outlived(const struct draws_line *l, const struct gathering *g)
{
	for (const struct gathering *i = l->drawn; i; i = i->next)
		if (i->said.number > g->said.number)
			return true;
	for (const struct gathering *i = l->coming; i; i = i->next)
		if (i->said.number > g->said.number && i->said.step == DRAWS_DRAWN)
			return true;
	return false;
}

// A record that is not there any more was forgotten, or the store has lost it.
static bool is_forgotten(const struct draws_line *l, const struct gathering *g)
{
	return g->said.step < DRAWS_JOINED || g->epoch == l->draws->view.epoch ||
	       is_outlived(l, g) || (g->said.step == DRAWS_DRAWN && is_over(l, g));
}

static void release_ranks(struct draws_line *l, const struct gathering *g)
{
	if (l->held != g->said.number || g->is_ranked)
		return;
	ranks_gather(ranks_of(l), 0);
	l->held = 0;
}

static void drop(struct draws_line *l, struct gathering *g)
{
	if (g->job.is_running)
		draws_job_is_done(&g->job, true);
	if (g->file.ids && find_in(l->coming, l->line_id, g->said.number))
		atomic_fetch_sub(&l->line->gathered, draws_file_people(&g->file));
	take_out(&l->coming, g);
	take_out(&l->drawn, g);
	draws_file_remove(l->draws->plan.folder, l->line_id, g->said.number);
	release_ranks(l, g);
	set_roles(l);
	hold_ranks(l);
	inside_publish_set(l); // without it
	publish(l);
	free(g->ids.at);
	g->ids.at = NULL;
	inside_retire(l, RETIRED_GATHERING, g);
}

// What is forgotten goes when nobody joins it here any more; if it was drawn, when ranks have it.
static void drop_gone(struct draws_line *l, struct gathering *g)
{
	for (struct gathering *next; g; g = next) {
		next = g->next;
		g->is_gone |= g->is_untold && is_forgotten(l, g);
		const bool is_done = g->said.step == DRAWS_DRAWN
					     ? g->is_ranked && g != l->coming
					     : g->is_settled || g->said.step < DRAWS_JOINED;
		if (g->is_gone && is_done)
			drop(l, g);
	}
}

void draws_untold(struct draws *d, uint32_t line_id, uint64_t number)
{
	struct draws_line *l = find_line(d, line_id);
	struct gathering *g = inside_follow_find(d, line_id, number);
	if (g && !l) {
		take_out(&d->strays, g);
		inside_follow_give(d, g);
	}
	if (!g || !l)
		return;
	g->is_untold = true;
	g->is_gone = is_forgotten(l, g);
	g->is_lost = !g->is_gone; // whoever is in office says it again
	set_roles(l);
	drop_gone(l, l->coming);
	drop_gone(l, l->drawn);
}

void inside_follow_take(struct draws_line *l)
{
	atomic_store(&l->line->gathers_from, 0);
	atomic_store(&l->line->gathered, 0);
	struct gathering *rest = l->draws->strays;
	l->draws->strays = NULL;
	for (struct gathering *g = rest, *next; g; g = next) {
		next = g->next;
		insert(g->said.line_id == l->line_id ? &l->coming : &l->draws->strays, g);
	}
	for (const struct gathering *g = l->coming; g; g = g->next)
		if (g->file.ids)
			atomic_fetch_add(&l->line->gathered, draws_file_people(&g->file));
	set_roles(l);
	hold_ranks(l);
	publish(l);
}

static const struct gathering *nth(const struct gathering *g, uint32_t *n)
{
	for (; g && *n > 0; g = g->next)
		--*n;
	return g;
}

bool draws_next(const struct draws *d, uint32_t *next, uint32_t *line_id, uint64_t *number)
{
	uint32_t left = *next;
	const struct gathering *g = nth(d->strays, &left);
	for (const struct draws_line *l = d->lines; l && !g; l = l->next) {
		g = nth(l->coming, &left);
		g = g ? g : nth(l->drawn, &left);
	}
	if (!g)
		return false;
	++*next;
	*line_id = g->said.line_id;
	*number = g->said.number;
	return true;
}

static bool is_untold(void *ctx, uint32_t line_id, uint64_t number)
{
	return !inside_follow_find(ctx, line_id, number);
}

void draws_sweep(struct draws *d)
{
	draws_file_sweep(d->plan.folder, is_untold, d);
}

uint64_t draws_before(const struct draws *d, uint32_t line_id)
{
	const struct draws_line *l = find_line(d, line_id);
	const struct gathering *first = l ? (l->drawn ? l->drawn : l->coming) : NULL;
	return first && first->said.step == DRAWS_DRAWN ? first->said.before : 0;
}

// --- drawing

static void fill_list(struct gathering *g, uint64_t base)
{
	struct store_draw *record = &g->record;
	record->is_drawn = true;
	record->first_slot = g->said.first_slot;
	record->end_slot = g->said.end_slot;
	record->base = base;
	record->count = g->said.count;
	memcpy(record->list_sha256, g->said.list_sha256, sizeof(record->list_sha256));
	g->list = (struct draw_list){.number = record->number,
		.first_slot = record->first_slot,
		.end_slot = record->end_slot,
		.base = base,
		.count = g->job.count,
		.hashes = g->job.hashes};
	gathering_key(g, &g->list.mac);
	draw_list_init(&g->list);
}

// Who left before the draw is nobody's turn: the one in office has told so before anybody is
// called.
static bool has_left(const struct draws_line *l, const struct gathering *g)
{
	const struct draws *d = l->draws;
	uint64_t number = g->said.number, visitor = 0;
	return d->view.is_in_office &&
	       d->cluster.left(d->cluster.ctx, l->line_id, &number, &visitor) &&
	       number == g->said.number;
}

static void publish_drawn(struct draws_line *l, struct gathering *g, uint64_t now_ms)
{
	const uint32_t own = g->file.ids ? draws_file_people(&g->file) : 0;
	fill_list(g, g->is_ranked ? 0 : ranks_before(ranks_of(l), g->said.first_slot));
	take_out(&l->coming, g);
	g->next = NULL;
	inside_append(l, g);
	inside_publish_set(l);
	l->drawn_epoch = g->said.epoch;
	free(g->ids.at); // its job is done
	g->ids.at = NULL;
	g->ids.count = g->ids.max = 0;
	atomic_fetch_sub(&l->line->gathered, own);
	if (g->is_of_before)
		return;
	l->draws_total++;
	l->drawn_total += g->said.count;
	const uint32_t took_ms = (uint32_t)(now_ms - g->told_ms);
	l->longest_ms = took_ms > l->longest_ms ? took_ms : l->longest_ms;
	inside_say(l, "drawn: %" PRIu64 " people", g->said.count);
}

// Ranks up to the list, then the list, then its ranks. Returns whether one was drawn.
static bool finish(struct draws_line *l, uint64_t now_ms)
{
	struct gathering *g = first_unranked(l);
	struct ranks *ranks = ranks_of(l);
	if (!g || !ranks || is_of_nobody(g))
		return false;
	hold_ranks(l);
	if (g == l->coming && (!inside_list_is_ready(l, g, now_ms) || has_left(l, g)))
		return false;
	ranks_settle(ranks, l->draws->view.final);
	if (!g->is_ranked && ranks_final(ranks) != g->said.first_slot)
		return false;
	if (g == l->coming)
		publish_drawn(l, g, now_ms);
	if (!g->is_ranked && !ranks_drawn(ranks, g->said.end_slot, g->said.count))
		return false; // no room: the next turn tries again
	g->is_ranked = true;
	set_roles(l);
	hold_ranks(l);
	publish(l);
	ranks_settle(ranks, l->draws->view.final);
	return true;
}

// --- a turn

bool inside_follow(struct draws_line *l, uint64_t now_ms)
{
	bool has_drawn = false;
	if ((atomic_load(&l->words.later) == 1) == l->draws->view.is_known)
		publish(l);
	drop_gone(l, l->drawn);
	drop_gone(l, l->coming);
	inside_join(l, now_ms);
	for (struct gathering *g = l->coming; g; g = g->next)
		if (g->said.step >= DRAWS_CLOSED)
			inside_list_draw(l, g, now_ms);
	inside_conduct(l, now_ms);
	while (finish(l, now_ms))
		has_drawn = true;
	return has_drawn;
}

bool inside_follow_is_busy(const struct draws *d)
{
	for (const struct draws_line *l = d->lines; l; l = l->next)
		if (l->closing && (l->closing->job.is_running || !l->closing->is_settled))
			return true;
	return false;
}

bool inside_follow_is_late(const struct draws *d)
{
	for (const struct draws_line *l = d->lines; l; l = l->next)
		if (l->open && !l->open->file.ids && l->file_error == 0)
			return true;
	return false;
}

void inside_follow_look(const struct draws_line *l, struct draws_view *view)
{
	const struct gathering *last = inside_last_drawn(l), *open = l->open;
	*view = (struct draws_view){.is_unknown = !l->draws->view.is_known,
		.is_gathering = open,
		.is_undrawn = l->closing || open,
		.epoch = open ? open->said.epoch : 0,
		.closing_epoch = l->closing ? l->closing->said.epoch : 0,
		.began_ms = open ? open->said.began_ms : 0,
		.joined = open ? inside_follow_joined(open) : 0,
		.salt = open ? open->said.salt : NULL,
		.salt_bytes = open && inside_follow_joined(open) > 0 ? open->said.salt_bytes : 0,
		.lists = l->set ? l->set->count : 0,
		.drawn = inside_drawn_people(l),
		.drawn_epoch = last ? l->drawn_epoch : 0,
		.drawn_end = last ? last->list.end_slot : 0,
		.drawn_total = l->drawn_total,
		.draws_total = l->draws_total,
		.longest_ms = l->longest_ms};
}
