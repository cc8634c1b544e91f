// Nodes: what time does to a tree, and who is next in it.
//
// How many are before somebody is found by handing out virtual times one by one.

#include <assert.h>
#include <stdlib.h>
#include <string.h>

#include "tests/sim/cluster/model.h"

#define STRIDE (1ull << 30)
#define PASS_MAX (1ull << 50)
#define NO_LIMIT UINT64_MAX

static uint64_t least(uint64_t a, uint64_t b)
{
	return a < b ? a : b;
}

struct model_node *model_find(struct model *m, uint32_t id)
{
	for (uint32_t i = 0; i < MODEL_NODES_MAX && id != 0; i++) {
		if (m->nodes[i].id == id)
			return &m->nodes[i];
	}
	return NULL;
}

static struct model_node *parent_of(struct model *m, const struct model_node *node)
{
	return model_find(m, node->is.parent);
}

static bool is_before(const struct model_node *a, const struct model_node *b)
{
	return a->is.priority != b->is.priority ? a->is.priority < b->is.priority
						: a->order < b->order;
}

// Those below, in order, one a call: the next one behind `last` (NULL: the first).
static struct model_node *next_kid(
	const struct model *m, const struct model_node *node, const struct model_node *last)
{
	const struct model_node *next = NULL;
	for (const struct model_node *n = m->nodes; n < m->nodes + MODEL_NODES_MAX; n++) {
		if (n->id != 0 && n->is.parent == node->id && (!last || is_before(last, n)) &&
			(!next || is_before(n, next)))
			next = n;
	}
	return (struct model_node *)(uintptr_t)next;
}

uint64_t model_taken(const struct model *m, const struct model_node *node)
{
	uint64_t taken = 0;
	for (uint32_t i = 0; i < node->visitors.count; i++)
		taken += node->visitors.at[i].state != MODEL_OVER;
	for (struct model_node *k = next_kid(m, node, NULL); k; k = next_kid(m, node, k))
		taken += model_taken(m, k);
	return taken;
}

// --- what time does

static void end_slot(struct model_node *line, uint32_t index)
{
	struct model_visitor *v = &line->visitors.at[index];
	if (v->state == MODEL_ENDING)
		line->ended++;
	else
		line->expired++;
	v->state = MODEL_OVER;
	if (v->key == 0 || v->key < line->floor)
		MODEL_REMOVE(line->visitors, index);
}

static void keep_unsure(struct model *m, struct model_node *line, const struct model_visitor *v)
{
	bool is_affirmed = false;
	for (uint32_t i = 0; i < line->affirmed.count; i++)
		is_affirmed |= line->affirmed.at[i] == v->visitor;
	if (!is_affirmed || v->state != MODEL_ACTIVE)
		return;
	for (struct model_node *node = line; node; node = parent_of(m, node)) {
		if (m->now_ms < line->lost_until_ms && node->is.limits.capacity > 0)
			node->lost++;
	}
}

static void open_line(struct model *m, struct model_node *line)
{
	for (uint32_t i = line->visitors.count; i-- > 0 && !m->is_skewed;) {
		const struct model_visitor *v = &line->visitors.at[i];
		if (v->state == MODEL_OVER || v->expires * 1000ull + LEDGER_SKEW_MS > m->now_ms)
			continue;
		keep_unsure(m, line, v);
		end_slot(line, i);
	}
	for (uint32_t i = line->present.count; i-- > 0 && !m->is_skewed;) {
		if (line->present.at[i].until_ms <= m->now_ms)
			MODEL_REMOVE(line->present, i);
	}
	for (uint32_t i = line->early.count; i-- > 0 && !m->is_skewed;) {
		if (line->early.at[i].expires <= m->now_ms / 1000)
			MODEL_REMOVE(line->early, i);
	}
	for (uint32_t i = line->visitors.count; i-- > 0;) {
		if (line->visitors.at[i].state == MODEL_OVER &&
			line->visitors.at[i].key < line->floor)
			MODEL_REMOVE(line->visitors, i);
	}
	for (uint32_t i = line->left.count; i-- > 0;) {
		if (line->left.at[i].key < line->floor)
			MODEL_REMOVE(line->left, i);
	}
}

static void advance_quota(struct model *m, const struct pool_quota *is, struct model_quota *quota)
{
	if (is->count == 0 || m->now_ms / is->period_ms == quota->start_ms / is->period_ms)
		return;
	*quota = (struct model_quota){.start_ms = m->now_ms / is->period_ms * is->period_ms};
}

static void advance(struct model *m, struct model_node *node)
{
	const struct pool_limits *l = &node->is.limits;
	if (l->rate_count > 0) {
		const unsigned __int128 full = (unsigned __int128)l->burst * l->rate_period_ms;
		const unsigned __int128 level =
			node->level +
			(unsigned __int128)(m->now_ms - node->filled_ms) * l->rate_count;
		node->level = (uint64_t)(level < full ? level : full);
		node->filled_ms = m->now_ms;
	}
	advance_quota(m, &l->all, &node->all);
	advance_quota(m, &l->direct, &node->direct);
}

static bool holds_slot(const struct model_node *line, uint64_t visitor)
{
	for (uint32_t i = 0; i < line->visitors.count; i++) {
		const struct model_visitor *v = &line->visitors.at[i];
		if (v->visitor == visitor)
			return v->state != MODEL_OVER;
	}
	return false;
}

static uint64_t affirmed(const struct model *m, const struct model_node *node)
{
	uint64_t count = 0;
	for (uint32_t i = 0; i < node->affirmed.count; i++)
		count += holds_slot(node, node->affirmed.at[i]);
	for (struct model_node *k = next_kid(m, node, NULL); k; k = next_kid(m, node, k))
		count += affirmed(m, k);
	return count;
}

static void empty_buckets(struct model *m, struct model_node *node)
{
	const struct pool_limits *l = &node->is.limits;
	if (node->epoch == m->epoch)
		return;
	node->epoch = m->epoch;
	node->level = 0;
	if (l->all.count > 0)
		node->all.used = l->all.count;
	if (l->direct.count > 0)
		node->direct.used = l->direct.count;
}

static void count_unsure(struct model *m, struct model_node *node, uint64_t longest_s)
{
	const uint64_t capacity = node->is.limits.capacity, inside = affirmed(m, node);
	const uint64_t ends_s = (m->unsure_ms + 999) / 1000 + longest_s;
	const uint64_t until_ms = m->unsure_ms > 0 ? ends_s * 1000 + LEDGER_SKEW_MS : 0;
	if (node->sure_ms == m->unsure_ms &&
		(m->now_ms >= node->lost_until_ms ||
			(node->lost_until_ms == until_ms && node->lost_of == capacity)))
		return;
	node->sure_ms = m->unsure_ms;
	node->lost = m->now_ms < until_ms && capacity > inside ? capacity - inside : 0;
	node->lost_until_ms = until_ms;
	node->lost_of = capacity;
}

static void reconcile(struct model *m, struct model_node *node, uint64_t longest_s)
{
	if (!m->is_recovering) {
		empty_buckets(m, node);
		count_unsure(m, node, longest_s);
	}
	if (m->now_ms >= node->lost_until_ms)
		node->lost = 0;
}

static bool has_people(struct model *m, struct model_node *node)
{
	if (node->is.is_line && node->is_open && node->present.count + (uint64_t)node->coming > 0)
		return true;
	for (struct model_node *k = next_kid(m, node, NULL); k; k = next_kid(m, node, k)) {
		if (has_people(m, k))
			return true;
	}
	return false;
}

// The latest virtual time that somebody of its class was served at.
static uint64_t class_time(struct model *m, const struct model_node *node)
{
	uint64_t served = 0;
	struct model_node *parent = parent_of(m, node);
	for (struct model_node *k = next_kid(m, parent, NULL); k; k = next_kid(m, parent, k)) {
		if (k->is.priority == node->is.priority && k->served > served)
			served = k->served;
	}
	return served;
}

static void keep_time(struct model *m, struct model_node *node)
{
	if (!parent_of(m, node))
		return;
	const uint64_t credit = node->is_active ? LEDGER_CREDIT * node->stride : 0;
	const uint64_t served = class_time(m, node);
	node->is_active = has_people(m, node);
	if (node->is_active && node->pass + credit < served)
		node->pass = served - credit;
}

typedef void visit_fn(struct model *m, struct model_node *node, uint64_t detail);

static void visit(struct model *m, struct model_node *node, visit_fn *each, uint64_t detail)
{
	each(m, node, detail);
	for (struct model_node *k = next_kid(m, node, NULL); k; k = next_kid(m, node, k))
		visit(m, k, each, detail);
}

static uint64_t longest_of(struct model *m, struct model_node *node)
{
	uint64_t longest = node->is.is_line ? node->is.session_s : 0;
	for (struct model_node *k = next_kid(m, node, NULL); k; k = next_kid(m, node, k)) {
		const uint64_t below = longest_of(m, k);
		longest = below > longest ? below : longest;
	}
	return longest;
}

static void visit_open(struct model *m, struct model_node *node, uint64_t detail)
{
	(void)detail;
	node->opened = m->look;
	node->stride = STRIDE / (node->is.weight > 0 ? node->is.weight : 1);
	if (node->is.is_line)
		open_line(m, node);
}

static void visit_time(struct model *m, struct model_node *node, uint64_t longest_s)
{
	advance(m, node);
	reconcile(m, node, longest_s);
}

static void visit_keep_time(struct model *m, struct model_node *node, uint64_t detail)
{
	(void)detail;
	keep_time(m, node);
}

struct model_node *model_look(struct model *m, uint32_t id)
{
	struct model_node *node = model_find(m, id);
	if (!node || node->opened == m->look)
		return node;
	struct model_node *root = node;
	while (parent_of(m, root))
		root = parent_of(m, root);
	visit(m, root, visit_open, 0);
	if (m->is_skewed)
		return node;
	visit(m, root, visit_time, longest_of(m, root));
	visit(m, root, visit_keep_time, 0);
	return node;
}

struct model_node *model_line(struct model *m, uint32_t id)
{
	struct model_node *node = model_look(m, id);
	return node && node->is.is_line ? node : NULL;
}

void model_free_ended(struct model *m, uint64_t in_force)
{
	for (uint32_t i = 0; i < m->endings.count;) {
		const struct model_ending ending = m->endings.at[i];
		if (ending.news > in_force) {
			i++;
			continue;
		}
		MODEL_REMOVE(m->endings, i);
		struct model_node *line = model_line(m, ending.line);
		for (uint32_t j = 0; line && j < line->visitors.count; j++) {
			const struct model_visitor *v = &line->visitors.at[j];
			if (v->visitor == ending.visitor && v->session == ending.session &&
				v->state == MODEL_ENDING) {
				end_slot(line, j);
				break;
			}
		}
	}
}

// --- who is next

static uint64_t free_here(const struct model *m, const struct model_node *node)
{
	const uint64_t taken = model_taken(m, node) + node->lost;
	if (node->is.limits.capacity == 0)
		return NO_LIMIT;
	return node->is.limits.capacity > taken ? node->is.limits.capacity - taken : 0;
}

static uint64_t left_of(const struct pool_quota *is, const struct model_quota *quota)
{
	if (is->count == 0)
		return NO_LIMIT;
	return is->count > quota->used ? is->count - quota->used : 0;
}

static uint64_t rated_here(const struct model_node *node)
{
	const struct pool_limits *l = &node->is.limits;
	return l->rate_count == 0 ? NO_LIMIT : node->level / l->rate_period_ms;
}

static uint64_t people_here(const struct model_node *node)
{
	return least(rated_here(node), left_of(&node->is.limits.all, &node->all));
}

static bool has_room_here(const struct model *m, const struct model_node *node)
{
	return !(node->is.is_line && !node->is_open) && free_here(m, node) > 0 &&
	       people_here(node) > 0;
}

static uint64_t reserved_here(const struct model *m, const struct model_node *node)
{
	const struct pool_limits *l = &node->is.limits;
	const uint64_t free = least(left_of(&l->all, &node->all), free_here(m, node));
	if (l->rate_count == 0)
		return free;
	const uint64_t a_poll = l->rate_count * 1000ull / l->rate_period_ms;
	const uint64_t beyond = a_poll > l->burst ? a_poll - l->burst : 0;
	return least(rated_here(node) + 2 + beyond, free);
}

static uint64_t at_door(struct model *m, struct model_node *node, bool is_coming)
{
	if (!has_room_here(m, node))
		return 0;
	uint64_t people = node->present.count + (is_coming ? node->coming : 0);
	for (struct model_node *k = next_kid(m, node, NULL); k; k = next_kid(m, node, k))
		people += at_door(m, k, is_coming);
	return least(people, least(free_here(m, node), people_here(node)));
}

// Of the people at a door, those whose virtual time comes before `pass`, or at it if `is_tie`.
static uint64_t before_time(struct model *m, struct model_node *node, uint64_t pass, bool is_tie)
{
	const uint64_t people = at_door(m, node, false);
	uint64_t count = 0;
	for (uint64_t at = node->pass; count < people && (at < pass || (is_tie && at == pass));
		count++)
		at += node->stride;
	return count;
}

uint64_t model_excess(struct model *m, struct model_node *line, uint64_t before)
{
	for (struct model_node *node = line; node; node = parent_of(m, node)) {
		const uint64_t reserved = reserved_here(m, node);
		if (before >= reserved)
			return before - reserved;
		struct model_node *parent = parent_of(m, node);
		const uint64_t pass = node->pass + before * node->stride;
		for (struct model_node *k = parent ? next_kid(m, parent, NULL) : NULL; k;
			k = next_kid(m, parent, k)) {
			if (k->is.priority < node->is.priority)
				before += at_door(m, k, true);
			else if (k != node && k->is.priority == node->is.priority)
				before += before_time(m, k, pass, is_before(k, node));
		}
	}
	return NO_LIMIT;
}

bool model_has_room(struct model *m, struct model_node *line, bool is_direct)
{
	for (struct model_node *node = line; node; node = parent_of(m, node)) {
		if (free_here(m, node) == 0 || people_here(node) == 0 ||
			(is_direct && left_of(&node->is.limits.direct, &node->direct) == 0))
			return false;
	}
	return true;
}

static void begin_anew(struct model *m, struct model_node *node)
{
	struct model_node *parent = parent_of(m, node);
	uint64_t first = NO_LIMIT;
	for (struct model_node *k = next_kid(m, parent, NULL); k; k = next_kid(m, parent, k)) {
		if (k->is.priority == node->is.priority)
			first = least(first, k->pass);
	}
	for (struct model_node *k = next_kid(m, parent, NULL); k; k = next_kid(m, parent, k)) {
		if (k->is.priority != node->is.priority)
			continue;
		k->pass -= first;
		k->served = k->served > first ? k->served - first : 0;
	}
}

void model_charge(struct model *m, struct model_node *line, bool is_direct)
{
	for (struct model_node *node = line; node; node = parent_of(m, node)) {
		const struct pool_limits *l = &node->is.limits;
		if (l->rate_count > 0) {
			assert(node->level >= l->rate_period_ms);
			node->level -= l->rate_period_ms;
		}
		node->all.used += l->all.count > 0;
		node->direct.used += is_direct && l->direct.count > 0;
		if (!parent_of(m, node))
			continue;
		node->served = node->pass;
		node->pass += node->stride;
		if (node->pass > PASS_MAX)
			begin_anew(m, node);
	}
}

uint64_t model_total(const struct model_node *line)
{
	uint64_t total = line->before + line->drawn + line->gathering;
	for (uint32_t i = 0; i < LEDGER_MEMBERS_MAX; i++)
		total += line->totals[i];
	return total;
}

uint64_t model_settled(const struct model_node *line)
{
	uint64_t settled = 0;
	for (uint32_t i = 0; i < line->visitors.count; i++)
		settled += line->visitors.at[i].key != 0 && line->visitors.at[i].key >= line->floor;
	for (uint32_t i = 0; i < line->left.count; i++)
		settled += line->left.at[i].key >= line->floor;
	return settled;
}

static bool is_settled(const struct model_node *line)
{
	return model_total(line) <= line->floor_rank + model_settled(line);
}

static bool nobody_in(struct model *m, struct model_node *node)
{
	if (!has_room_here(m, node))
		return true;
	if (node->is.is_line)
		return is_settled(node);
	for (struct model_node *k = next_kid(m, node, NULL); k; k = next_kid(m, node, k)) {
		if (!nobody_in(m, k))
			return false;
	}
	return true;
}

bool model_nobody_waits(struct model *m, struct model_node *line)
{
	if (!is_settled(line))
		return false;
	for (struct model_node *node = line; parent_of(m, node); node = parent_of(m, node)) {
		struct model_node *parent = parent_of(m, node);
		for (struct model_node *k = next_kid(m, parent, NULL); k;
			k = next_kid(m, parent, k)) {
			if (k != node && k->is.priority <= node->is.priority && !nobody_in(m, k))
				return false;
		}
	}
	return true;
}

uint64_t model_people(struct model *m, const struct model_node *line)
{
	uint64_t people = UINT32_MAX;
	for (const struct model_node *node = line; node; node = parent_of(m, node))
		people = least(people, people_here(node));
	return people;
}

void model_limits(const struct model_node *node, uint64_t *rated, uint64_t *all, uint64_t *direct)
{
	*rated = least(rated_here(node), UINT32_MAX);
	*all = least(left_of(&node->is.limits.all, &node->all), UINT32_MAX);
	*direct = least(left_of(&node->is.limits.direct, &node->direct), UINT32_MAX);
}
