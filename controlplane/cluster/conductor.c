// Conductor: office, limits, clock, and whose turn it is to be looked at.
//
// Office begins with the answer to LEDGER_ELECT and ends with a reply that names another conductor
// or fence. What this one believes meanwhile is harmless: the ledger takes nothing for a fence that
// is not in force.
//
// In office it says every node, then looks at every node, and only when all have been seen does it
// move a line: pools are shared, and a line whose siblings are not known would take it all. Nodes
// that the ledger refuses are left out.

#include "controlplane/cluster/conductor.h"

#include <assert.h>
#include <stdlib.h>
#include <string.h>

#include "controlplane/cluster/conductor_line.h"

struct node {
	struct conductor_node is;
	struct conductor_line *line; // of a line
	struct pool *pool; // the line's own, or one that lines share
	uint64_t next_view_ms;
	bool is_changed; // since it was last said
	bool is_said, is_refused, is_seen;
};

struct conductor {
	struct conductor_plan plan;
	struct node *nodes; // parents before those below
	uint32_t count, next; // next: to be looked at first
	uint64_t fence, since_ms; // fence 0: not in office
	uint64_t epoch; // of the last reply
	uint64_t reply_fence; // of the last reply
	uint64_t next_elect_ms;
	int64_t correction_ms; // to be said, if is_off
	bool is_off, has_agreed; // agreed: its clock was right by the ledger's, once
	bool is_steady; // the ledger grants
	uint64_t unheard_since_ms[LEDGER_MEMBERS_MAX]; // 0: it is heard of, or has left
	uint64_t corrections_total, refused_total;
	bool is_floor_held;
};

uint64_t conductor_bytes(uint32_t nodes_max)
{
	return sizeof(struct conductor) + 2 * nodes_max * sizeof(struct node); // two while set anew
}

uint64_t conductor_node_bytes(uint32_t left_max)
{
	return conductor_line_bytes(left_max) + sizeof(struct pool);
}

struct conductor *conductor_create(const struct conductor_plan *plan, uint64_t now_ms)
{
	struct conductor *c = calloc(1, sizeof(*c));
	if (!c)
		return NULL;
	c->plan = *plan;
	if (c->plan.floor_hold_ms == 0)
		c->plan.floor_hold_ms = CONDUCTOR_FLOOR_HOLD_MS;
	c->next_elect_ms = now_ms;
	c->nodes = calloc(plan->nodes_max, sizeof(*c->nodes));
	if (!c->nodes) {
		free(c);
		return NULL;
	}
	return c;
}

static void node_fini(struct node *node)
{
	if (node->line)
		conductor_line_destroy(node->line);
	else
		pool_destroy(node->pool);
}

void conductor_destroy(struct conductor *c)
{
	if (!c)
		return;
	for (uint32_t i = c->count; i-- > 0;) // those below before their parents
		node_fini(&c->nodes[i]);
	free(c->nodes);
	free(c);
}

// --- what is configured

static struct node *find(struct node *nodes, uint32_t count, uint32_t id)
{
	for (uint32_t i = 0; i < count; i++) {
		if (nodes[i].is.id == id)
			return &nodes[i];
	}
	return NULL;
}

static struct conductor_line *line_of(const struct conductor *c, uint32_t id)
{
	const struct node *node = find(c->nodes, c->count, id);
	return node ? node->line : NULL;
}

static bool is_alike(const struct ledger_node *a, const struct ledger_node *b)
{
	const struct pool_limits *l = &a->limits, *m = &b->limits;
	return l->capacity == m->capacity && l->rate_count == m->rate_count &&
	       l->rate_period_ms == m->rate_period_ms && l->burst == m->burst &&
	       l->all.count == m->all.count && l->all.period_ms == m->all.period_ms &&
	       l->direct.count == m->direct.count && l->direct.period_ms == m->direct.period_ms &&
	       a->parent == b->parent && a->priority == b->priority && a->weight == b->weight &&
	       a->is_line == b->is_line && a->sliding == b->sliding && a->direct == b->direct &&
	       a->session_s == b->session_s && a->present_max == b->present_max &&
	       a->left_max == b->left_max && a->ended_max == b->ended_max && a->config == b->config;
}

// Whether what is there for a node can go on for `is`.
static bool can_stay(const struct node *known, const struct conductor_node *is)
{
	return known && (known->line != NULL) == is->node.is_line &&
	       (!known->line || (known->is.place == is->place &&
					known->is.node.left_max == is->node.left_max));
}

// What a node needs, new or kept. Returns false when memory is short.
static bool enter(struct conductor *c, struct node *node, const struct conductor_node *is,
	const struct node *known, uint64_t now_ms)
{
	*node = (struct node){.is = *is, .is_changed = true};
	if (can_stay(known, is)) {
		*node = *known;
		node->is_changed = known->is_changed || !is_alike(&known->is.node, &is->node);
		node->is = *is;
		return true;
	}
	if (is->node.is_line)
		node->line = conductor_line_create(is, c->plan.seed + is->id, now_ms);
	else
		node->pool = pool_create(&is->node.limits, now_ms);
	if (node->line)
		node->pool = &node->line->call.own;
	return node->pool != NULL;
}

static bool are_ordered(const struct conductor_node *nodes, uint32_t count)
{
	for (uint32_t i = 0; i < count; i++) {
		bool is_found = nodes[i].node.parent == 0;
		for (uint32_t j = 0; j < i; j++) {
			if (nodes[j].id == nodes[i].id)
				return false;
			is_found |= nodes[j].id == nodes[i].node.parent && !nodes[j].node.is_line;
		}
		if (!is_found)
			return false;
	}
	return true;
}

// Put it in its place in the tree, with its limits; the slots that it has are seen anew.
static void join(struct conductor *c, struct node *node, uint64_t now_ms)
{
	const struct ledger_node *is = &node->is.node;
	struct node *parent = find(c->nodes, c->count, is->parent);
	node->pool->taken = 0;
	pool_set_limits(node->pool, &is->limits, now_ms);
	pool_join(node->pool, parent ? parent->pool : NULL, is->priority, is->weight, NULL);
	if (node->line) {
		node->line->call.claim_s = node->is.claim_s;
		node->line->call.session_s = is->session_s;
		if (node->is_changed)
			flow_init(&node->line->call.flow, node->line->call.threshold_rank,
				caller_available_ms(&node->line->call));
	}
	if (node->is_changed)
		node->is_said = node->is_refused = false;
	node->is_seen = false;
	node->next_view_ms = 0;
}

bool conductor_set_nodes(
	struct conductor *c, const struct conductor_node *nodes, uint32_t count, uint64_t now_ms)
{
	if (count > c->plan.nodes_max || !are_ordered(nodes, count))
		return false;
	struct node *next = calloc(c->plan.nodes_max, sizeof(*next));
	uint32_t entered = 0;
	while (next && entered < count &&
		enter(c, &next[entered], &nodes[entered],
			find(c->nodes, c->count, nodes[entered].id), now_ms))
		entered++;
	const bool is_whole = next && entered == count;
	// Of two tables that name the same, one goes: what only that one has.
	struct node *gone = is_whole ? c->nodes : next, *stays = is_whole ? next : c->nodes;
	const uint32_t gone_count = is_whole ? c->count : entered;
	const uint32_t stays_count = is_whole ? count : c->count;
	for (uint32_t i = 0; i < stays_count && is_whole; i++) {
		stays[i].pool->taken = 0;
		pool_join(stays[i].pool, NULL, 1, 1, NULL);
	}
	for (uint32_t i = gone_count; i-- > 0;) {
		const struct node *other = find(stays, stays_count, gone[i].is.id);
		if (!other || other->pool != gone[i].pool)
			node_fini(&gone[i]);
	}
	free(gone);
	c->nodes = stays;
	c->count = stays_count;
	for (uint32_t i = 0; i < count && is_whole; i++)
		join(c, &c->nodes[i], now_ms);
	return is_whole;
}

void conductor_set_open(struct conductor *c, uint32_t line, bool is_open, uint64_t now_ms)
{
	struct node *node = find(c->nodes, c->count, line);
	if (!node)
		return;
	node->is.is_open = is_open;
	node->next_view_ms = now_ms;
}

bool conductor_release(struct conductor *c, uint32_t line, uint64_t count)
{
	struct conductor_line *known = line_of(c, line);
	if (!known || c->fence == 0)
		return false;
	caller_release(&known->call, count);
	return true;
}

void conductor_lapse(struct conductor *c, uint32_t line, uint64_t key)
{
	struct conductor_line *known = line_of(c, line);
	if (known && key > known->lapse)
		known->lapse = key;
}

bool conductor_left_from(const struct conductor *c, uint32_t line, uint64_t *key, uint64_t *visitor)
{
	const struct conductor_line *known = line_of(c, line);
	const struct keyset *left = known ? &known->call.left : NULL;
	const uint32_t id = left ? keyset_from(left, *key, *visitor) : 0;
	if (id == 0)
		return false;
	*key = keyset_key(left, id);
	*visitor = keyset_visitor(left, id);
	return true;
}

void conductor_left_placed(
	struct conductor *c, uint32_t line, uint64_t visitor, uint64_t was, uint64_t key)
{
	struct conductor_line *known = line_of(c, line);
	const uint32_t id = known ? keyset_find(&known->call.left, was, visitor) : 0;
	if (id == 0)
		return;
	keyset_remove(&known->call.left, id);
	if (key != 0)
		conductor_line_left(known, key, visitor);
}

void conductor_left(struct conductor *c, uint32_t line, uint64_t key, uint64_t visitor)
{
	struct conductor_line *known = line_of(c, line);
	if (known)
		conductor_line_left(known, key, visitor);
}

uint32_t conductor_left_waiting(const struct conductor *c, uint32_t line, uint64_t threshold)
{
	const struct conductor_line *known = line_of(c, line);
	const struct keyset *left = known ? &known->call.left : NULL;
	return left ? keyset_count(left) - keyset_below(left, threshold, 0) : 0;
}

// --- what it says

static struct ledger_entry *add(
	struct ledger_entry *entries, uint32_t *count, uint8_t kind, uint32_t line)
{
	struct ledger_entry *e = &entries[(*count)++];
	memset(e, 0, sizeof(*e));
	e->kind = kind;
	e->line = line;
	return e;
}

static bool are_all_seen(const struct conductor *c)
{
	for (uint32_t i = 0; i < c->count; i++) {
		if (!c->nodes[i].is_seen && !c->nodes[i].is_refused)
			return false;
	}
	return c->count > 0;
}

static void say_thresholds(struct conductor *c, struct ledger_entry *entries, uint32_t max,
	uint32_t *count, uint64_t now_ms)
{
	for (uint32_t i = 0; i < c->count && *count < max; i++) {
		struct node *node = &c->nodes[i];
		struct ledger_threshold say;
		if (!node->line || !node->is_seen ||
			!conductor_line_turn(node->line, &node->is, c->is_steady, c->is_floor_held,
				now_ms, &say))
			continue;
		add(entries, count, LEDGER_THRESHOLD, node->is.id)->threshold = say;
	}
}

static void say_nodes(
	struct conductor *c, struct ledger_entry *entries, uint32_t max, uint32_t *count)
{
	for (uint32_t i = 0, said = 0; i < c->count && *count < max && said < CONDUCTOR_NODES_MAX;
		i++) {
		struct node *node = &c->nodes[i];
		if ((node->is_said || node->is_refused) && !node->is_changed)
			continue;
		node->is_changed = false;
		add(entries, count, LEDGER_NODE, node->is.id)->node = node->is.node;
		said++;
	}
}

// In turn, so that many nodes are all looked at, each less often.
static void ask_views(struct conductor *c, struct ledger_entry *entries, uint32_t max,
	uint32_t *count, uint64_t now_ms)
{
	for (uint32_t i = 0, asked = 0; i < c->count && *count < max && asked < CONDUCTOR_VIEWS_MAX;
		i++) {
		struct node *node = &c->nodes[(c->next + i) % c->count];
		if (!node->is_said || now_ms < node->next_view_ms)
			continue;
		add(entries, count, LEDGER_VIEW, node->is.id)->takes_came = true;
		node->next_view_ms = now_ms + CONDUCTOR_TURN_MS;
		if (++asked == CONDUCTOR_VIEWS_MAX)
			c->next = (uint32_t)(node - c->nodes) + 1;
	}
}

static void look_for_unheard(struct conductor *c, uint64_t now_ms)
{
	c->is_floor_held = false;
	for (uint32_t n = 0; n < LEDGER_MEMBERS_MAX; n++) {
		const uint64_t since_ms = c->unheard_since_ms[n];
		if (since_ms != 0 && now_ms - since_ms < c->plan.floor_hold_ms)
			c->is_floor_held = true;
	}
}

uint32_t conductor_entries(
	struct conductor *c, struct ledger_entry *entries, uint32_t max, uint64_t now_ms)
{
	uint32_t count = 0;
	if (now_ms >= c->next_elect_ms && max > 0) {
		add(entries, &count, LEDGER_ELECT, 0);
		c->next_elect_ms = now_ms + CONDUCTOR_RENEW_MS;
	}
	if (c->fence == 0)
		return count;
	if (c->is_off && count < max) {
		add(entries, &count, LEDGER_CORRECTION, 0)->correction_ms = c->correction_ms;
		c->is_off = false;
	}
	look_for_unheard(c, now_ms);
	if (are_all_seen(c))
		say_thresholds(c, entries, max, &count, now_ms);
	say_nodes(c, entries, max, &count);
	ask_views(c, entries, max, &count, now_ms);
	return count;
}

uint64_t conductor_fence(const struct conductor *c)
{
	return c->fence;
}

// --- what it hears

// Cluster time goes on as this clock has it, however the store's clock jumps. If that has jumped
// back while nobody was there to see it, whoever came since began with what cluster time was last,
// and is a little ahead of that by now.
static void look_at_clock(
	struct conductor *c, const struct ledger_reply *reply, uint64_t sent_ms, uint64_t now_ms)
{
	const int64_t time_ms = (int64_t)reply->raw_ms + reply->correction_ms;
	const int64_t told_ms = (int64_t)reply->time_ms;
	const int64_t low = (int64_t)sent_ms, high = (int64_t)now_ms;
	if (time_ms >= low - CONDUCTOR_OFF_MS && time_ms <= high + CONDUCTOR_OFF_MS) {
		c->has_agreed = true;
		c->is_off = false;
		return;
	}
	if (told_ms > time_ms && told_ms >= low - CONDUCTOR_BEGAN_MS &&
		told_ms <= high + CONDUCTOR_OFF_MS)
		c->has_agreed = true;
	// Whose clock has never been right does not know by how much it is off.
	c->is_off = c->has_agreed;
	c->correction_ms = low + (high - low) / 2 - (int64_t)reply->raw_ms;
}

static void leave_office(struct conductor *c)
{
	c->fence = 0;
	c->is_off = false;
}

void conductor_reply(
	struct conductor *c, const struct ledger_reply *reply, uint64_t sent_ms, uint64_t now_ms)
{
	assert(reply->verdict == LEDGER_BATCH_TAKEN && sent_ms <= now_ms);
	c->reply_fence = reply->fence;
	// A batch that was late is skewed too; that says nothing of the others'.
	const bool is_late = reply->time_ms > sent_ms + LEDGER_SKEW_MS;
	c->is_steady = !reply->is_recovering && (!reply->is_skewed || is_late);
	// In a ledger that has lost all the same fence may be given again.
	if (reply->conductor != reply->number || reply->fence != c->fence ||
		reply->epoch != c->epoch)
		leave_office(c);
	c->epoch = reply->epoch;
	look_at_clock(c, reply, sent_ms, now_ms);
}

void conductor_member(struct conductor *c, const struct ledger_member *member, uint64_t now_ms)
{
	uint64_t *since_ms = &c->unheard_since_ms[member->number];
	if (member->is_live || member->has_left)
		*since_ms = 0;
	else if (*since_ms == 0)
		*since_ms = now_ms;
}

static void take_office(struct conductor *c, uint64_t now_ms)
{
	if (c->fence == c->reply_fence)
		return;
	c->fence = c->reply_fence;
	c->since_ms = now_ms;
	for (uint32_t i = 0; i < c->count; i++) {
		struct node *node = &c->nodes[i];
		node->is_said = node->is_refused = node->is_seen = false;
		node->next_view_ms = 0;
		if (node->line)
			conductor_line_begin(node->line);
	}
}

static void see(struct node *node, const struct ledger_view *view, uint64_t now_ms)
{
	pool_follow(node->pool, view->taken + (uint32_t)view->lost, view->rated, view->all_left,
		view->direct_left);
	if (node->line)
		conductor_line_see(node->line, view, now_ms);
	if (view->came_count == LEDGER_CAME_MAX)
		node->next_view_ms = now_ms; // there may be more of them
	node->is_seen = true;
}

// The ledger does not know a node that was said: what stood above or below it may be gone too.
static void forget_said(struct conductor *c)
{
	for (uint32_t i = 0; i < c->count; i++)
		c->nodes[i].is_said = c->nodes[i].is_refused = false;
}

void conductor_answer(struct conductor *c, const struct ledger_entry *entry,
	const struct ledger_answer *answer, uint64_t now_ms)
{
	struct node *node = find(c->nodes, c->count, entry->line);
	const bool is_done = answer->verdict == LEDGER_DONE;
	if (entry->kind == LEDGER_ELECT && is_done)
		take_office(c, now_ms);
	if (entry->kind == LEDGER_CORRECTION)
		c->corrections_total += is_done;
	if (!node || c->fence == 0)
		return;
	if (entry->kind == LEDGER_NODE) {
		node->is_said = is_done && !node->is_changed;
		node->is_refused = answer->verdict == LEDGER_REFUSED && !node->is_changed;
		c->refused_total += answer->verdict == LEDGER_REFUSED;
	} else if (answer->verdict == LEDGER_UNKNOWN) {
		forget_said(c);
	} else if (entry->kind == LEDGER_VIEW && is_done && node->is_said) {
		see(node, &answer->view, now_ms);
	} else if (entry->kind == LEDGER_THRESHOLD && !is_done && node->line) {
		node->line->said_ms = 0; // once more
		c->refused_total += answer->verdict == LEDGER_REFUSED;
	}
}

void conductor_lost(struct conductor *c)
{
	leave_office(c);
}

void conductor_look(const struct conductor *c, struct conductor_status *status)
{
	*status = (struct conductor_status){.is_in_office = c->fence != 0,
		.fence = c->fence,
		.since_ms = c->since_ms,
		.corrections_total = c->corrections_total,
		.refused_total = c->refused_total,
		.is_floor_held = c->is_floor_held};
	for (uint32_t n = 0; n < LEDGER_MEMBERS_MAX; n++)
		status->unheard += c->unheard_since_ms[n] != 0;
}
