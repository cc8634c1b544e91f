// What members and the conductor say of themselves and of lines, records, questions, and what is
// written back.

#include <assert.h>
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

#include "dataplane/gate/place.h"
#include "tests/sim/cluster/model.h"

static void say(struct model_text *answer, enum ledger_verdict verdict)
{
	model_print(answer, "%d", (int)verdict);
}

static void print_words(struct model_text *text, const uint64_t *words, uint32_t count)
{
	for (uint32_t i = 0; i < count; i++)
		model_print(text, "%016" PRIx64, words[i]);
}

static void print_slots(struct model_text *text, const struct model_node *line, uint8_t member,
	const struct model_slots *slots)
{
	model_print(text, "%d %08" PRIx32 " %u %" PRIu64 " ", LEDGER_NEWS_SLOTS, line->id, member,
		line->counted);
	print_words(text, slots->held, slots->count);
}

// Those that are neither told before nor late.
static struct model_slots timely(
	struct model *m, struct model_node *line, const struct ledger_slots *slots)
{
	struct model_slots kept = {0};
	uint64_t *last = &line->last[m->self];
	for (uint32_t i = 0; i < slots->count; i++) {
		const uint64_t slot = slots->held[i] >> 24;
		if (slot > *last && (slot >= m->final || (slots->is_again && m->is_recovering))) {
			kept.held[kept.count++] = slots->held[i];
			line->counted += slots->held[i] & 0xffffff;
		}
		*last = slot > *last ? slot : *last;
	}
	return kept;
}

static enum ledger_verdict slots(struct model *m, const struct ledger_entry *e)
{
	struct model_node *line = model_line(m, e->line);
	if (!line)
		return LEDGER_UNKNOWN;
	if (e->slots.total > line->totals[m->self])
		line->totals[m->self] = e->slots.total;
	const struct model_slots kept = timely(m, line, &e->slots);
	if (kept.count == 0)
		return LEDGER_DONE;
	MODEL_ADD(line->slots[m->self], kept);
	struct model_text text = {0};
	print_slots(&text, line, m->self, &kept);
	model_tell(m, "%s", text.at);
	free(text.at);
	return LEDGER_DONE;
}

static void end_office(struct model *m)
{
	m->conductor = LEDGER_MEMBERS_MAX;
	m->conductor_is = m->until_ms = 0;
	m->is_conductor = false;
}

static enum ledger_verdict config(struct model *m, const struct ledger_entry *e)
{
	struct model_node *line = model_line(m, e->line);
	if (!line)
		return LEDGER_UNKNOWN;
	line->config[m->self] = e->config;
	line->has_config[m->self] = true;
	if (e->config != line->is.config && m->conductor != LEDGER_MEMBERS_MAX &&
		model_is_odd(m, m->conductor))
		end_office(m);
	return LEDGER_DONE;
}

static uint64_t distance(uint64_t a, uint64_t b)
{
	return a < b ? b - a : a - b;
}

static enum ledger_verdict elect(struct model *m, const struct ledger_entry *e)
{
	(void)e;
	const uint64_t incarnation = m->members[m->self].incarnation;
	const bool is_same = m->conductor == m->self && m->conductor_is == incarnation;
	const bool is_held = m->conductor != LEDGER_MEMBERS_MAX &&
			     distance(m->raw_ms + LEDGER_LEASE_MS, m->until_ms) < LEDGER_LEASE_MS;
	if (is_held && !is_same)
		return LEDGER_REFUSED;
	if (model_is_odd(m, m->self)) {
		if (is_same)
			end_office(m);
		return LEDGER_REFUSED;
	}
	if (!is_held || !is_same) {
		m->conductor = m->self;
		m->conductor_is = incarnation;
		m->fence++;
		m->is_conductor = false;
		model_tell(m, "%d %u %" PRIu64, LEDGER_NEWS_CONDUCTOR, m->self, m->fence);
	}
	m->until_ms = m->raw_ms + LEDGER_LEASE_MS;
	return LEDGER_DONE;
}

static enum ledger_verdict goodbye(struct model *m, const struct ledger_entry *e)
{
	(void)e;
	struct model_member *self = &m->members[m->self];
	self->has_left = true;
	self->is_live = false;
	model_went(m, m->self_ms);
	if (m->conductor == m->self)
		end_office(m);
	m->is_conductor = false;
	model_tell(m, "%d %u 0 %s", LEDGER_NEWS_MEMBER, m->self, self->name);
	return LEDGER_DONE;
}

// Slots wholly passed by floor need not be kept; by lists, as they came.
static void trim_slots(struct model_node *line)
{
	for (uint32_t n = 0; n < LEDGER_MEMBERS_MAX; n++) {
		while (line->slots[n].count > 0) {
			const struct model_slots *first = &line->slots[n].at[0];
			if (first->held[first->count - 1] >> 24 >= place_slot(line->floor))
				break;
			MODEL_REMOVE(line->slots[n], 0);
		}
	}
}

uint64_t model_first_held(const struct model *m, const struct model_node *line)
{
	uint64_t first = m->now_ms < line->crowded_until_ms ? line->crowded : UINT64_MAX;
	for (uint32_t n = 0; n < LEDGER_MEMBERS_MAX; n++) {
		const struct model_hold *held = &line->holds[n];
		if (m->now_ms < held->until_ms && held->key < first)
			first = held->key;
	}
	return first;
}

static enum ledger_verdict hold(struct model *m, const struct ledger_entry *e)
{
	struct model_node *line = model_line(m, e->line);
	if (!line)
		return LEDGER_UNKNOWN;
	const uint32_t ms = e->hold.ms < LEDGER_HOLD_MAX_MS ? e->hold.ms : LEDGER_HOLD_MAX_MS;
	line->holds[m->self] = (struct model_hold){e->hold.key, m->now_ms + ms};
	return LEDGER_DONE;
}

static void drop_present(struct model_node *line, uint64_t below)
{
	for (uint32_t i = line->present.count; i-- > 0;) {
		if (line->present.at[i].key < below)
			MODEL_REMOVE(line->present, i);
	}
}

static bool raise_line(
	struct model *m, struct model_node *line, uint64_t threshold, uint64_t asked, uint64_t rank)
{
	const uint64_t held = model_first_held(m, line);
	uint64_t floor = asked < held ? asked : held;
	bool has_moved = threshold > line->threshold;
	if (has_moved)
		line->threshold = threshold;
	if (has_moved && place_slot(threshold) > m->final)
		m->final = place_slot(threshold);
	for (uint32_t i = 0; i < line->present.count; i++) {
		if (line->present.at[i].key < floor)
			floor = line->present.at[i].key;
	}
	floor = floor < line->threshold ? floor : line->threshold;
	if (floor > line->floor) {
		line->floor = floor;
		trim_slots(line);
		has_moved = true;
	}
	if (line->floor == asked && rank > line->floor_rank)
		line->floor_rank = rank;
	return has_moved;
}

// Nothing holds floor: an event is over.
static bool lapse_line(struct model *m, struct model_node *line, const struct ledger_threshold *t)
{
	const uint64_t held = line->crowded_until_ms;
	struct model_hold holds[LEDGER_MEMBERS_MAX];
	memcpy(holds, line->holds, sizeof(holds));
	memset(line->holds, 0, sizeof(holds));
	line->crowded_until_ms = 0;
	drop_present(
		line, t->floor < t->threshold || t->floor < line->threshold
			      ? t->floor
			      : (t->threshold > line->threshold ? t->threshold : line->threshold));
	const bool has_moved = raise_line(m, line, t->threshold, t->floor, t->floor_rank);
	memcpy(line->holds, holds, sizeof(holds));
	line->crowded_until_ms = held;
	return has_moved;
}

void model_print_words(struct model_text *text, const struct ledger_words *w)
{
	model_print(text, " %016" PRIx64 " %016" PRIx64 " %u %u %u %" PRIu64, w->wait_low,
		w->wait_high, w->next_poll_after, w->door_wait_ms, w->open_count, w->at_ms);
	model_print(text, " %u %u %u %u", w->called, w->came, w->expect_ms, w->yield);
}

static void tell_line(struct model *m, const struct model_node *line)
{
	struct model_text words = {0};
	model_print_words(&words, &line->words);
	model_tell(m, "%d %08" PRIx32 " %016" PRIx64 " %016" PRIx64 " %" PRIu64 " %d %" PRIu64 "%s",
		LEDGER_NEWS_THRESHOLD, line->id, line->threshold, line->floor, line->floor_rank,
		line->is_open, line->threshold_rank, words.at);
	free(words.at);
}

static bool is_alike(const struct ledger_words *a, const struct ledger_words *b)
{
	return a->wait_low == b->wait_low && a->wait_high == b->wait_high &&
	       a->next_poll_after == b->next_poll_after && a->door_wait_ms == b->door_wait_ms &&
	       a->open_count == b->open_count && a->at_ms == b->at_ms && a->called == b->called &&
	       a->came == b->came && a->expect_ms == b->expect_ms && a->yield == b->yield;
}

static enum ledger_verdict threshold(struct model *m, const struct ledger_entry *e)
{
	const struct ledger_threshold *t = &e->threshold;
	if (!m->is_conductor)
		return LEDGER_STALE;
	struct model_node *line = model_line(m, e->line);
	if (!line)
		return LEDGER_UNKNOWN;
	if (place_slot(t->threshold) > (m->now_ms + 1000) / PLACE_SLOT_MS)
		return LEDGER_REFUSED;
	bool has_moved = t->is_lapse ? lapse_line(m, line, t)
				     : raise_line(m, line, t->threshold, t->floor, t->floor_rank);
	has_moved |= line->is_open != t->is_open || !is_alike(&line->words, &t->words);
	if (line->threshold == t->threshold && t->threshold_rank > line->threshold_rank)
		line->threshold_rank = t->threshold_rank;
	line->words = t->words;
	line->coming = t->coming;
	line->room_ahead = t->room_ahead;
	line->ahead_ms = t->ahead_ms;
	line->is_open = t->is_open;
	if (has_moved)
		tell_line(m, line);
	return LEDGER_DONE;
}

static bool is_quota(const struct pool_quota *q)
{
	return q->count == 0 || (q->period_ms >= 1000 && q->period_ms % 1000 == 0);
}

static bool is_sound(struct model *m, const struct ledger_entry *e)
{
	const struct ledger_node *n = &e->node;
	const struct pool_limits *l = &n->limits;
	if (n->priority < 1 || n->weight < 1 || n->weight > LEDGER_WEIGHT_MAX || l->burst < 1 ||
		l->rate_period_ms > 86400000 || (l->rate_count > 0 && l->rate_period_ms < 1) ||
		(uint64_t)l->burst * l->rate_period_ms > LEDGER_UNITS_MAX || !is_quota(&l->all) ||
		!is_quota(&l->direct) || n->present_max < 1 || n->left_max < 1 ||
		n->ended_max < 1 || e->line == 0)
		return false;
	if (n->parent == 0)
		return true;
	struct model_node *parent = model_find(m, n->parent);
	if (!parent || parent->is.is_line)
		return false;
	for (; parent; parent = model_find(m, parent->is.parent)) {
		if (parent->id == e->line)
			return false; // a cycle
	}
	const struct model_node *known = model_find(m, e->line);
	return !known || known->is.is_line == n->is_line;
}

static void set_quota(struct model *m, const struct pool_quota *before, const struct pool_quota *is,
	struct model_quota *quota)
{
	if (is->period_ms != before->period_ms)
		*quota = (struct model_quota){
			.start_ms =
				is->period_ms > 0 ? m->now_ms / is->period_ms * is->period_ms : 0};
}

static void set_bucket(struct model *m, struct model_node *node, const struct pool_limits *to)
{
	const struct pool_limits *from = &node->is.limits;
	const uint64_t full = (uint64_t)to->burst * to->rate_period_ms;
	uint64_t level = full;
	if (from->rate_count > 0 && to->rate_count > 0)
		level = node->level / from->rate_period_ms * to->rate_period_ms;
	node->level = level < full ? level : full;
	node->filled_ms = m->now_ms;
}

static enum ledger_verdict set_node(struct model *m, const struct ledger_entry *e)
{
	if (!m->is_conductor)
		return LEDGER_STALE;
	if (!is_sound(m, e))
		return LEDGER_REFUSED;
	struct model_node *node = model_look(m, e->line);
	const bool is_fresh = !node;
	if (is_fresh) {
		for (node = m->nodes; node->id != 0; node++)
			assert(node < m->nodes + MODEL_NODES_MAX - 1);
		*node = (struct model_node){.id = e->line,
			.epoch = m->is_recovering ? 0 : m->epoch,
			.words = {.wait_low = UINT64_MAX,
				.wait_high = UINT64_MAX,
				.next_poll_after = 1}};
	}
	if (e->node.parent != node->is.parent || e->node.priority != node->is.priority) {
		node->order = ++m->order;
		node->pass = node->served = 0;
		node->is_active = false;
	}
	set_bucket(m, node, &e->node.limits);
	set_quota(m, &node->is.limits.all, &e->node.limits.all, &node->all);
	set_quota(m, &node->is.limits.direct, &e->node.limits.direct, &node->direct);
	node->is = e->node;
	for (struct model_node *above = is_fresh ? node : NULL; above;
		above = model_find(m, above->is.parent))
		above->sure_ms = 0; // its sessions are counted in what is unsure above, too
	m->look++; // trees have changed
	return LEDGER_DONE;
}

static enum ledger_verdict correction(struct model *m, const struct ledger_entry *e)
{
	if (!m->is_conductor)
		return LEDGER_STALE;
	m->correction_ms = e->correction_ms;
	m->steady_ms = m->raw_ms;
	return LEDGER_DONE;
}

static void print_record(struct model_text *text, uint8_t type, const struct model_record *r)
{
	model_print(text, "%d %u %08" PRIx32 " ", LEDGER_NEWS_RECORD, type, r->id);
	for (uint32_t i = 0; i < r->len; i++)
		model_print(text, "%02x", r->bytes[i]);
}

static enum ledger_verdict record(struct model *m, const struct ledger_entry *e)
{
	if (e->record.is_conductors && !m->is_conductor)
		return LEDGER_STALE;
	struct model_record r = {
		.id = e->record.id, .len = e->record.len, .version = e->record.version};
	if (r.len > 0)
		memcpy(r.bytes, e->record.bytes, r.len);
	uint32_t index = 0;
	const uint32_t count = m->records[e->record.type].count;
	while (index < count && m->records[e->record.type].at[index].id != r.id)
		index++;
	const uint32_t was = index < count ? m->records[e->record.type].at[index].version : 0;
	if (r.version > 0 && (r.version < was || (r.version == was && !e->record.is_conductors)))
		return LEDGER_STALE;
	if (index == count && r.len == 0)
		return LEDGER_DONE;
	r.version = r.version > 0 ? r.version : was;
	if (index == count && r.len > 0 && count >= LEDGER_RECORDS_MAX)
		return LEDGER_FULL;
	if (index < count)
		MODEL_REMOVE(m->records[e->record.type], index);
	if (r.len > 0)
		MODEL_ADD(m->records[e->record.type], r);
	struct model_text text = {0};
	print_record(&text, e->record.type, &r);
	model_tell(m, "%s", text.at);
	free(text.at);
	return LEDGER_DONE;
}

// --- pages: the items from `from` on, last ones first

static int by_expires(const void *a, const void *b)
{
	const struct model_ended *x = a, *y = b;
	if (x->expires != y->expires)
		return x->expires > y->expires ? -1 : 1;
	return x->session > y->session ? -1 : x->session < y->session;
}

static int by_place(const void *a, const void *b)
{
	const struct model_place *x = a, *y = b;
	if (x->key != y->key)
		return x->key > y->key ? -1 : 1;
	return x->visitor > y->visitor ? -1 : x->visitor < y->visitor;
}

static int by_id(const void *a, const void *b)
{
	const struct model_record *x = a, *y = b;
	return x->id < y->id ? -1 : x->id > y->id;
}

static void begin_item(struct model *m)
{
	model_print(&m->pages, "0 ");
	m->page_count++;
}

static void page_ended(struct model *m, struct model_node *line, uint64_t index)
{
	const struct model_ended *ended = &line->early.at[index];
	begin_item(m);
	model_print(&m->pages, "%d %08" PRIx32 " %016" PRIx64 " %" PRIu32 "\n", LEDGER_NEWS_ENDED,
		line->id, ended->session, ended->expires);
}

static void page_left(struct model *m, struct model_node *line, uint64_t index)
{
	const struct model_place *left = &line->left.at[index];
	begin_item(m);
	model_print(&m->pages, "%d %08" PRIx32 " %016" PRIx64 " %016" PRIx64 "\n", LEDGER_NEWS_LEFT,
		line->id, left->key, left->visitor);
}

static uint64_t read_slots(struct model *m, struct model_node *line, const struct ledger_read *r)
{
	const uint64_t count = line->slots[r->member].count;
	const uint64_t end = count > r->from ? count - r->from : 0;
	const uint64_t start = end > LEDGER_PAGE_MAX ? end - LEDGER_PAGE_MAX : 0;
	for (uint64_t i = start; i < end; i++) {
		begin_item(m);
		print_slots(&m->pages, line, r->member, &line->slots[r->member].at[i]);
		model_print(&m->pages, "\n");
	}
	return end - start;
}

static uint64_t read_records(struct model *m, const struct ledger_read *r)
{
	uint64_t count = 0;
	if (m->records[r->type].count > 0)
		qsort(m->records[r->type].at, m->records[r->type].count,
			sizeof(struct model_record), by_id);
	for (uint64_t i = r->from; i < m->records[r->type].count && count < LEDGER_PAGE_MAX; i++) {
		begin_item(m);
		print_record(&m->pages, r->type, &m->records[r->type].at[i]);
		model_print(&m->pages, "\n");
		count++;
	}
	return count;
}

static void read_page(struct model *m, const struct ledger_entry *e, struct model_text *answer)
{
	const struct ledger_read *r = &e->read;
	struct model_node *line = r->what == LEDGER_NEWS_RECORD ? NULL : model_line(m, e->line);
	uint64_t count = 0, end = r->from + LEDGER_PAGE_MAX;
	if (!line && r->what != LEDGER_NEWS_RECORD) {
		say(answer, LEDGER_UNKNOWN);
		return;
	}
	if (r->what == LEDGER_NEWS_GATHERED) {
		model_read_gathered(m, line, r, answer);
		return;
	}
	if (r->what == LEDGER_NEWS_ENDED && line->early.count > 0) {
		qsort(line->early.at, line->early.count, sizeof(*line->early.at), by_expires);
		for (uint64_t i = r->from; i < line->early.count && i < end; i++, count++)
			page_ended(m, line, i);
	} else if (r->what == LEDGER_NEWS_LEFT && line->left.count > 0) {
		qsort(line->left.at, line->left.count, sizeof(*line->left.at), by_place);
		for (uint64_t i = r->from; i < line->left.count && i < end; i++, count++)
			page_left(m, line, i);
	} else if (r->what == LEDGER_NEWS_SLOTS) {
		count = read_slots(m, line, r);
	} else if (r->what == LEDGER_NEWS_RECORD) {
		count = read_records(m, r);
	}
	model_print(answer, "%d %" PRIu64 " %" PRIu64, LEDGER_DONE,
		count < LEDGER_PAGE_MAX ? 0 : end, line ? line->counted : 0);
}

static enum ledger_verdict restore(struct model *m, const struct ledger_entry *e)
{
	if (!m->is_recovering)
		return LEDGER_REFUSED;
	if (e->restore.fence > m->fence) {
		m->fence = e->restore.fence;
		m->conductor = LEDGER_MEMBERS_MAX;
		m->conductor_is = m->until_ms = 0;
		m->is_conductor = false;
	}
	if (e->restore.final > m->final)
		m->final = e->restore.final;
	if (e->line == 0)
		return LEDGER_DONE;
	struct model_node *line = model_line(m, e->line);
	if (!line)
		return LEDGER_UNKNOWN;
	if (raise_line(m, line, e->restore.threshold, e->restore.floor, e->restore.floor_rank))
		tell_line(m, line);
	return LEDGER_DONE;
}

static enum ledger_verdict restored(struct model *m, const struct ledger_entry *e)
{
	if (e->restored.epoch != m->epoch)
		return LEDGER_REFUSED;
	m->peers |= e->restored.peers;
	m->members[m->self].restored = m->epoch;
	model_back(m, m->self);
	return LEDGER_DONE;
}

void model_share(struct model *m, const struct ledger_entry *entry, struct model_text *answer)
{
	static enum ledger_verdict (*const by_kind[LEDGER_KINDS])(
		struct model *, const struct ledger_entry *) = {
		[LEDGER_SLOTS] = slots,
		[LEDGER_CONFIG] = config,
		[LEDGER_ELECT] = elect,
		[LEDGER_GOODBYE] = goodbye,
		[LEDGER_THRESHOLD] = threshold,
		[LEDGER_NODE] = set_node,
		[LEDGER_CORRECTION] = correction,
		[LEDGER_RECORD] = record,
		[LEDGER_GATHERED] = model_gathered,
		[LEDGER_RESTORE] = restore,
		[LEDGER_RESTORED] = restored,
		[LEDGER_HOLD] = hold,
	};
	if (entry->kind == LEDGER_VIEW)
		model_view(m, entry, answer);
	else if (entry->kind == LEDGER_READ)
		read_page(m, entry, answer);
	else if (entry->kind == LEDGER_CODE)
		model_code(m, entry, answer);
	else
		say(answer, by_kind[entry->kind](m, entry));
}
