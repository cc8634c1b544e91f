// Wire: batches as arguments.
//
// Each field is an argument of its own, because Redis then hands it to the script as it is and Lua
// parses nothing. Fields are written one behind the other into one text; nothing is copied twice.

#include "controlplane/cluster/ledger_wire.h"

#include <assert.h>
#include <inttypes.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>

static bool add(struct ledger_wire_args *a, const char *bytes, size_t len)
{
	if (a->count == a->max)
		return false;
	a->argv[a->count] = bytes;
	a->lengths[a->count++] = len;
	return true;
}

// Add one field, printed.
__attribute__((format(printf, 2, 3))) static bool put(
	struct ledger_wire_args *a, const char *format, ...)
{
	char *at = a->text + a->used;
	va_list list;
	va_start(list, format);
	const int len = vsnprintf(at, a->text_max - a->used, format, list);
	va_end(list);
	if (len < 0 || (size_t)len >= a->text_max - a->used)
		return false;
	a->used += (size_t)len + 1;
	return add(a, at, (size_t)len);
}

static bool put_number(struct ledger_wire_args *a, uint64_t value)
{
	return value < 1ull << 53 && put(a, "%" PRIu64, value);
}

static bool put_hex16(struct ledger_wire_args *a, uint64_t value)
{
	return put(a, "%016" PRIx64, value);
}

// `count` words as one field of hex digits.
static bool put_words(struct ledger_wire_args *a, const uint64_t *words, uint32_t count)
{
	char *at = a->text + a->used;
	if (16ull * count >= a->text_max - a->used)
		return false;
	for (uint32_t i = 0; i < count; i++)
		snprintf(at + 16 * i, 17, "%016" PRIx64, words[i]);
	a->used += 16ull * count + 1;
	return add(a, at, 16ull * count);
}

static bool put_bytes(struct ledger_wire_args *a, const uint8_t *bytes, uint32_t len)
{
	static const char digits[] = "0123456789abcdef";
	char *at = a->text + a->used;
	if (len > LEDGER_BLOB_MAX || 2ull * len >= a->text_max - a->used)
		return false;
	for (uint32_t i = 0; i < len; i++) {
		at[2 * i] = digits[bytes[i] >> 4];
		at[2 * i + 1] = digits[bytes[i] & 15];
	}
	a->used += 2ull * len + 1;
	return add(a, at, 2ull * len);
}

static bool put_line(struct ledger_wire_args *a, const struct ledger_entry *e)
{
	return put(a, "%08" PRIx32, e->line);
}

static bool put_claim(struct ledger_wire_args *a, const struct ledger_entry *e)
{
	const struct ledger_claim *c = &e->claim;
	return put_line(a, e) && put_hex16(a, c->key) && put_hex16(a, c->visitor) &&
	       put_hex16(a, c->session) && put_number(a, c->expires) &&
	       put_number(a, c->poll_after);
}

static bool put_slots(struct ledger_wire_args *a, const struct ledger_entry *e)
{
	const struct ledger_slots *s = &e->slots;
	return s->count > 0 && s->count <= LEDGER_SLOTS_MAX && put_line(a, e) &&
	       put_words(a, s->held, s->count) && put_number(a, s->total) &&
	       put_number(a, s->is_again);
}

static bool put_config(struct ledger_wire_args *a, const struct ledger_entry *e)
{
	return put_line(a, e) && put_hex16(a, e->config);
}

static bool put_nothing(struct ledger_wire_args *a, const struct ledger_entry *e)
{
	(void)a;
	(void)e;
	return true;
}

// One field: the script keeps it as it is.
static bool put_words_of(struct ledger_wire_args *a, const struct ledger_words *w)
{
	return w->at_ms < 1ull << 53 &&
	       put(a, "%016" PRIx64 " %016" PRIx64 " %u %u %u %" PRIu64 " %u %u %u %u", w->wait_low,
		       w->wait_high, w->next_poll_after, w->door_wait_ms, w->open_count, w->at_ms,
		       w->called, w->came, w->expect_ms, w->yield);
}

static bool put_threshold(struct ledger_wire_args *a, const struct ledger_entry *e)
{
	const struct ledger_threshold *t = &e->threshold;
	return put_line(a, e) && put_hex16(a, t->threshold) && put_hex16(a, t->floor) &&
	       put_number(a, t->threshold_rank) && put_number(a, t->floor_rank) &&
	       put_number(a, t->coming) && put_number(a, t->room_ahead) &&
	       put_number(a, t->ahead_ms) && put_number(a, t->is_open) &&
	       put_number(a, t->is_lapse) && put_words_of(a, &t->words);
}

static bool put_hold(struct ledger_wire_args *a, const struct ledger_entry *e)
{
	const struct ledger_hold *h = &e->hold;
	const uint32_t ms = h->ms < LEDGER_HOLD_MAX_MS ? h->ms : LEDGER_HOLD_MAX_MS;
	return put_line(a, e) && put_hex16(a, h->key) && put_number(a, ms);
}

static bool put_node(struct ledger_wire_args *a, const struct ledger_entry *e)
{
	const struct ledger_node *n = &e->node;
	const struct pool_limits *l = &n->limits;
	return put_line(a, e) && put(a, "%08" PRIx32, n->parent) && put_number(a, n->priority) &&
	       put_number(a, n->weight) && put_number(a, l->capacity) &&
	       put_number(a, l->rate_count) && put_number(a, l->rate_period_ms) &&
	       put_number(a, l->burst) && put_number(a, l->all.count) &&
	       put_number(a, l->all.period_ms) && put_number(a, l->direct.count) &&
	       put_number(a, l->direct.period_ms) && put_number(a, n->is_line) &&
	       put_number(a, n->sliding) && put_number(a, n->direct) &&
	       put_number(a, n->session_s) && put_number(a, n->present_max) &&
	       put_number(a, n->left_max) && put_number(a, n->ended_max) && put_hex16(a, n->config);
}

static bool put_correction(struct ledger_wire_args *a, const struct ledger_entry *e)
{
	const int64_t ms = e->correction_ms;
	return ms > -(1ll << 53) && ms < 1ll << 53 && put(a, "%" PRId64, ms);
}

static bool put_record(struct ledger_wire_args *a, const struct ledger_entry *e)
{
	const struct ledger_record *r = &e->record;
	return r->type < 16 && put_number(a, r->type) && put_number(a, r->is_conductors) &&
	       put(a, "%08" PRIx32, r->id) && put_number(a, r->version) &&
	       put_bytes(a, r->bytes, r->len);
}

static bool put_code(struct ledger_wire_args *a, const struct ledger_entry *e)
{
	const struct ledger_code *c = &e->code;
	return c->what > 0 && c->what < LEDGER_CODE_WHATS && put_line(a, e) &&
	       put_number(a, c->what) && put_number(a, c->uses) && put_words(a, c->digest, 2) &&
	       put_hex16(a, c->holder) && put_hex16(a, c->place.visitor) &&
	       put_hex16(a, c->place.key) && put_number(a, c->place.is_gathered);
}

static bool put_gathered(struct ledger_wire_args *a, const struct ledger_entry *e)
{
	const struct ledger_gathered *g = &e->gathered;
	return g->what > 0 && g->what < LEDGER_GATHERED_WHATS && g->count <= LEDGER_IDS_MAX &&
	       put_line(a, e) && put_number(a, g->what) && put_number(a, g->number) &&
	       put_hex16(a, g->source) && put_number(a, g->from) &&
	       put_words(a, g->ids, g->count) && put_number(a, g->is_whole) &&
	       put_number(a, g->people) && put_hex16(a, g->key) && put_hex16(a, g->place);
}

static bool put_view(struct ledger_wire_args *a, const struct ledger_entry *e)
{
	return put_line(a, e) && put_number(a, e->takes_came);
}

static bool put_read(struct ledger_wire_args *a, const struct ledger_entry *e)
{
	const struct ledger_read *r = &e->read;
	return put_line(a, e) && put_number(a, r->what) && put_number(a, r->type) &&
	       put_number(a, r->member) && put_number(a, r->from) && put_number(a, r->number);
}

static bool put_restore(struct ledger_wire_args *a, const struct ledger_entry *e)
{
	const struct ledger_restore *r = &e->restore;
	return put_line(a, e) && put_hex16(a, r->threshold) && put_hex16(a, r->floor) &&
	       put_number(a, r->floor_rank) && put_number(a, r->fence) && put_number(a, r->final);
}

static bool put_restored(struct ledger_wire_args *a, const struct ledger_entry *e)
{
	return put_number(a, e->restored.epoch) && put_hex16(a, e->restored.peers);
}

static bool put_entry(struct ledger_wire_args *args, const struct ledger_entry *entry)
{
	static bool (*const by_kind[])(struct ledger_wire_args *, const struct ledger_entry *) = {
		[LEDGER_CALLED] = put_claim,
		[LEDGER_DIRECT] = put_claim,
		[LEDGER_RENEW] = put_claim,
		[LEDGER_END] = put_claim,
		[LEDGER_LEAVE] = put_claim,
		[LEDGER_GONE] = put_claim,
		[LEDGER_TAKEN] = put_claim,
		[LEDGER_SLOTS] = put_slots,
		[LEDGER_CONFIG] = put_config,
		[LEDGER_ELECT] = put_nothing,
		[LEDGER_GOODBYE] = put_nothing,
		[LEDGER_THRESHOLD] = put_threshold,
		[LEDGER_NODE] = put_node,
		[LEDGER_CORRECTION] = put_correction,
		[LEDGER_RECORD] = put_record,
		[LEDGER_CODE] = put_code,
		[LEDGER_GATHERED] = put_gathered,
		[LEDGER_VIEW] = put_view,
		[LEDGER_READ] = put_read,
		[LEDGER_RESTORE] = put_restore,
		[LEDGER_RESTORED] = put_restored,
		[LEDGER_HOLD] = put_hold,
	};
	static_assert(sizeof(by_kind) / sizeof(by_kind[0]) == LEDGER_KINDS, "one for each kind");
	assert(entry->kind > 0 && entry->kind < LEDGER_KINDS);
	return put_number(args, entry->kind) && by_kind[entry->kind](args, entry);
}

bool ledger_wire_batch(const struct ledger_batch *b, const char *prefix, struct ledger_wire_args *a)
{
	a->count = 0;
	a->used = 0;
	if (b->count > LEDGER_ENTRIES_MAX || b->number == 0 || b->appliance > LEDGER_MEMBERS_MAX)
		return false;
	bool fits = add(a, prefix, strlen(prefix)) && put(a, "%s", b->name) &&
		    put_hex16(a, b->incarnation) && put_number(a, b->number) &&
		    put_number(a, b->time_ms) && put_number(a, b->fence) &&
		    put_number(a, b->cursor) && put_number(a, b->applied) &&
		    put_number(a, b->closed) && put(a, "%s", b->run) && put_number(a, b->writes) &&
		    put_number(a, b->gone_ms) && put_number(a, b->appliance) &&
		    put_number(a, b->count);
	uint32_t reads = 0;
	for (uint32_t i = 0; i < b->count && fits; i++) {
		reads += b->entries[i].kind == LEDGER_READ;
		fits = put_entry(a, &b->entries[i]);
	}
	return fits && reads <= LEDGER_READS_MAX;
}
