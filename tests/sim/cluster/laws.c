// Goal: what the ledger promises holds at every step, whatever is sent (design.md, invariants).
//
// A crowd sends one entry at a time to the model, which the twins hold equal to the script; every
// law is checked in plain arrays after each. Arguments: seeds, batches of each, first seed.

#include <assert.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "controlplane/cluster/ledger_wire.h"
#include "dataplane/gate/place.h"
#include "tests/sim/cluster/crowd.h"
#include "tests/sim/cluster/model.h"

#define SETUP 600u // batches in which nodes are set
#define GRANTS_MAX 8192u

struct laws_grant {
	uint64_t at_ms, visitor, session;
	uint32_t line;
};

// What is compared from one step to the next.
struct laws_node {
	uint64_t threshold, floor, admitted, freed;
};

struct laws {
	struct model model;
	struct crowd crowd;
	uint64_t seed, step;
	struct laws_node before[MODEL_NODES_MAX];
	uint64_t now_ms, fence, final;
	struct model_ending endings[256];
	uint32_t ending_count;
	struct laws_grant grants[GRANTS_MAX]; // since limits are settled
	uint32_t grant_count;
	uint64_t told[MODEL_NODES_MAX][LEDGER_MEMBERS_MAX]; // last slot
	uint64_t skewed, recovering, resent, granted, called_granted, slots;
};

static void hold(const struct laws *l, bool is_kept, const char *law)
{
	if (is_kept)
		return;
	fprintf(stderr, "seed %" PRIu64 ", batch %" PRIu64 ": broken: %s\n", l->seed, l->step, law);
	abort();
}

static void remember(struct laws *l)
{
	for (uint32_t i = 0; i < MODEL_NODES_MAX; i++) {
		const struct model_node *n = &l->model.nodes[i];
		l->before[i] = (struct laws_node){
			n->threshold, n->floor, n->admitted, n->expired + n->ended};
	}
	l->now_ms = l->model.seen_ms;
	l->fence = l->model.fence;
	l->final = l->model.final;
	l->ending_count = l->model.endings.count;
	assert(l->ending_count <= 256);
	if (l->ending_count > 0)
		memcpy(l->endings, l->model.endings.at, l->ending_count * sizeof(*l->endings));
}

static bool is_within(struct model *m, uint32_t line, const struct model_node *node)
{
	for (struct model_node *n = model_find(m, line); n; n = model_find(m, n->is.parent)) {
		if (n == node)
			return true;
	}
	return false;
}

// Nor the held, but for an event that is over.
static void check_held(const struct laws *l, const struct ledger_batch *b)
{
	for (uint32_t i = 0; i < MODEL_NODES_MAX; i++) {
		const struct model_node *n = &l->model.nodes[i];
		const bool is_lapse =
			b->entries[0].kind == LEDGER_THRESHOLD && b->entries[0].threshold.is_lapse;
		hold(l,
			n->floor == l->before[i].floor || is_lapse ||
				n->floor <= model_first_held(&l->model, n),
			"floor does not pass the held");
	}
}

static void check_monotone(const struct laws *l)
{
	hold(l, l->model.seen_ms >= l->now_ms, "cluster time does not go back");
	hold(l, l->model.fence >= l->fence, "a fencing number is not given twice");
	hold(l, l->model.final >= l->final, "what is final stays so");
	for (uint32_t i = 0; i < MODEL_NODES_MAX; i++) {
		const struct model_node *n = &l->model.nodes[i];
		hold(l, n->threshold >= l->before[i].threshold, "threshold does not fall");
		hold(l, n->floor >= l->before[i].floor, "floor does not fall");
		hold(l, n->floor <= n->threshold, "floor is not beyond threshold");
		for (uint32_t j = 0; j < n->present.count; j++)
			hold(l, n->present.at[j].key >= n->floor,
				"floor does not pass the present");
	}
}

static void check_still(const struct laws *l)
{
	for (uint32_t i = 0; i < MODEL_NODES_MAX; i++) {
		const struct model_node *n = &l->model.nodes[i];
		const bool is_still = n->admitted == l->before[i].admitted;
		hold(l, is_still || !(l->model.is_skewed || l->model.is_recovering),
			"nothing is granted on skewed time, nor while the store recovers");
		hold(l, n->expired + n->ended == l->before[i].freed || !l->model.is_skewed,
			"nothing is freed on skewed time");
	}
}

static void check_capacity(struct laws *l, const struct laws_grant *g)
{
	for (struct model_node *n = model_find(&l->model, g->line); n;
		n = model_find(&l->model, n->is.parent)) {
		const uint32_t capacity = n->is.limits.capacity;
		hold(l, capacity == 0 || model_taken(&l->model, n) + n->lost <= capacity,
			"sessions are not above the capacity in force");
	}
}

// Of all windows that end now.
static void check_rate(struct laws *l, const struct model_node *node)
{
	const struct pool_limits *limits = &node->is.limits;
	const uint64_t now = l->grants[l->grant_count - 1].at_ms;
	uint64_t count = 0;
	for (uint32_t i = l->grant_count; i-- > 0 && limits->rate_count > 0;) {
		const struct laws_grant *g = &l->grants[i];
		if (!is_within(&l->model, g->line, node))
			continue;
		count++;
		hold(l,
			count * limits->rate_period_ms <=
				limits->rate_count * (now - g->at_ms) +
					(uint64_t)limits->burst * limits->rate_period_ms,
			"admissions in a window are not above rate x window + burst");
	}
}

static void check_one_session(const struct laws *l, const struct laws_grant *g)
{
	for (uint32_t i = 0; i + 1 < l->grant_count; i++) {
		const struct laws_grant *other = &l->grants[i];
		hold(l,
			other->visitor != g->visitor || other->line != g->line ||
				other->session == g->session,
			"one visitor has one session");
	}
}

// Without others that share its slots, and without a rate, a called visitor is granted only if
// every smaller present key has a free slot waiting for it besides.
static void check_order(const struct laws *l, const struct model_node *line, uint64_t key)
{
	const uint32_t capacity = line->is.limits.capacity;
	if (line->is.parent != 0 || line->is.limits.rate_count > 0 || capacity == 0 ||
		line->is.limits.all.count > 0)
		return;
	const uint64_t left = capacity - model_taken(&l->model, line);
	uint64_t smaller = 0;
	for (uint32_t i = 0; i < line->present.count; i++)
		smaller += line->present.at[i].key < key;
	hold(l, smaller <= left, "a free slot goes to the smallest present key");
}

static void check_grant(struct laws *l, const struct ledger_entry *e, uint64_t session)
{
	struct model_node *line = model_find(&l->model, e->line);
	const uint32_t index = (uint32_t)(line - l->model.nodes);
	const bool is_new = line->admitted > l->before[index].admitted;
	const struct laws_grant g = {.at_ms = l->model.now_ms,
		.visitor = e->claim.visitor,
		.session = session,
		.line = e->line};
	if (!is_new || !l->crowd.is_settled || l->grant_count == GRANTS_MAX)
		return;
	l->granted++;
	l->grants[l->grant_count++] = g;
	check_capacity(l, &g);
	if (e->kind == LEDGER_CALLED) { // who was admitted without a ticket may be forgotten
		l->called_granted++;
		check_one_session(l, &g);
		check_order(l, line, e->claim.key);
		hold(l, e->claim.key < line->threshold && e->claim.key >= line->floor,
			"who is not called is not granted");
	}
	for (struct model_node *n = line; n; n = model_find(&l->model, n->is.parent))
		check_rate(l, n);
}

// A session that ended early is gone from those that wait: all who live refuse its pass.
static void check_endings(const struct laws *l)
{
	for (uint32_t i = 0; i < l->ending_count; i++) {
		const struct model_ending *e = &l->endings[i];
		bool waits = false;
		for (uint32_t j = 0; j < l->model.endings.count; j++)
			waits |= l->model.endings.at[j].news == e->news;
		for (uint32_t n = 0; n < LEDGER_MEMBERS_MAX; n++) {
			const struct model_member *m = &l->model.members[n];
			// Who said goodbye in this batch was alive when it began.
			hold(l, waits || !m->is_live || m->applied >= e->news,
				"a slot is not free before all who live refuse the pass");
		}
	}
}

// Of a slot that is final nothing is told any more; and of each slot once.
static void check_slots(struct laws *l)
{
	const char *told = l->model.told.at;
	struct ledger_wire_reader reader = {told, told + strlen(told)};
	struct ledger_news news;
	while (ledger_wire_news(&reader, &news)) {
		for (uint32_t i = 0; news.kind == LEDGER_NEWS_SLOTS && i < news.count; i++) {
			const uint64_t slot = news.held[i] >> 24;
			const struct model_node *line = model_find(&l->model, news.line);
			uint64_t *last = &l->told[line - l->model.nodes][news.member];
			hold(l, slot >= l->final || l->model.is_recovering,
				"nothing is told of a slot that is final");
			hold(l, slot > *last, "a slot is told once, in order");
			*last = slot;
			l->slots++;
		}
	}
}

static void check_final(const struct laws *l, const struct ledger_batch *b)
{
	bool is_held = b->entries[0].kind == LEDGER_RESTORE;
	for (uint32_t i = 0; i < MODEL_NODES_MAX; i++)
		is_held |= l->model.final == place_slot(l->model.nodes[i].threshold);
	for (uint32_t n = 0; n < LEDGER_MEMBERS_MAX; n++) {
		const struct model_member *m = &l->model.members[n];
		hold(l,
			is_held || l->model.final == l->final || !m->is_live ||
				m->closed >= l->model.final,
			"all who live have told what is final");
	}
}

static void check_fence(const struct laws *l, const struct ledger_batch *b)
{
	if (b->entries[0].kind == LEDGER_RESTORE || (b->fence != 0 && b->fence == l->fence))
		return;
	for (uint32_t i = 0; i < MODEL_NODES_MAX; i++)
		hold(l, l->model.nodes[i].threshold == l->before[i].threshold,
			"nothing moves for a stale fence");
}

// Sent again, a batch is answered alike and changes nothing, but that its sender has been heard of.
static void check_again(struct laws *l, const struct ledger_batch *b, const char *reply)
{
	struct model_member *sender = &l->model.members[l->model.self];
	const uint64_t heard_ms = sender->heard_ms;
	char *before = model_dump(&l->model);
	char *again = model_batch(&l->model, b, l->crowd.raw_ms + 3);
	hold(l, sender->heard_ms == l->crowd.raw_ms + 3, "who sends again has been heard of");
	sender->heard_ms = heard_ms;
	char *after = model_dump(&l->model);
	hold(l, strcmp(reply, again) == 0, "a batch sent again is answered alike");
	hold(l, strcmp(before, after) == 0, "a batch sent again changes nothing");
	l->resent++;
	free(before);
	free(after);
	free(again);
}

static void check(struct laws *l, const struct ledger_batch *b, const char *reply)
{
	struct ledger_wire_reader reader;
	struct ledger_reply head;
	struct ledger_answer answer;
	if (!ledger_wire_reply(&reader, reply, strlen(reply), &head))
		abort();
	if (head.verdict != LEDGER_BATCH_TAKEN || head.writes != l->model.writes)
		return; // refused, or what an earlier batch was told
	l->skewed += head.is_skewed;
	l->recovering += head.is_recovering;
	check_monotone(l);
	check_held(l, b);
	check_still(l);
	check_endings(l);
	check_fence(l, b);
	check_slots(l);
	check_final(l, b);
	if (!ledger_wire_answer(&reader, &answer))
		abort();
	if (answer.verdict == LEDGER_GRANTED && answer.kind != LEDGER_CODE)
		check_grant(l, &b->entries[0], answer.session);
	if (l->step % 20 == 0)
		check_again(l, b, reply);
}

static void run(struct laws *l, uint64_t seed, uint64_t batches)
{
	model_init(&l->model);
	crowd_init(&l->crowd, seed);
	l->seed = seed;
	l->grant_count = 0;
	memset(l->told, 0, sizeof(l->told));
	l->crowd.is_calm = seed % 2 == 1;
	l->crowd.is_shared = seed % 3 == 0;
	l->crowd.is_single = true;
	for (l->step = 0; l->step < batches; l->step++) {
		struct crowd_member *member;
		l->crowd.is_settled = l->step >= SETUP;
		const struct ledger_batch *batch = crowd_batch(&l->crowd, &member);
		remember(l);
		char *reply = model_batch(&l->model, batch, l->crowd.raw_ms);
		check(l, batch, reply);
		crowd_reply(&l->crowd, member, reply, strlen(reply));
		free(reply);
	}
	model_fini(&l->model);
}

int main(int argc, char **argv)
{
	static struct laws laws;
	const uint64_t seeds = argc > 1 ? strtoull(argv[1], NULL, 10) : 60;
	const uint64_t batches = argc > 2 ? strtoull(argv[2], NULL, 10) : 3000;
	const uint64_t first = argc > 3 ? strtoull(argv[3], NULL, 10) : 1;
	for (uint64_t seed = first; seed < first + seeds; seed++)
		run(&laws, seed, batches);
	printf("seeds from %" PRIu64 ": %" PRIu64 " granted (%" PRIu64 " called), skewed %" PRIu64
	       ", recovering %" PRIu64 ", sent again %" PRIu64 "\n",
		first, laws.granted, laws.called_granted, laws.skewed, laws.recovering,
		laws.resent);
	// A run in which little happened would prove nothing.
	assert(laws.granted > 10 * seeds && laws.called_granted > seeds);
	assert(laws.slots > 10 * seeds && laws.skewed > 0 && laws.recovering > 0 &&
		laws.resent > 0);
	return 0;
}
