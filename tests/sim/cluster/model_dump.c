// Dump: the state as text, to be compared with that of Redis (dump.lua).

#include <assert.h>
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

#include "tests/sim/cluster/model.h"

static int by_text(const void *a, const void *b)
{
	return strcmp(*(char *const *)a, *(char *const *)b);
}

// Sort the lines of `text`.
static char *sorted(char *text)
{
	MODEL_LIST(char *) lines = {0};
	struct model_text all = {0};
	char *rest = text;
	for (char *line; (line = strsep(&rest, "\n")) != NULL;) {
		if (*line != '\0')
			MODEL_ADD(lines, line);
	}
	if (lines.count > 0)
		qsort(lines.at, lines.count, sizeof(*lines.at), by_text);
	for (uint32_t i = 0; i < lines.count; i++)
		model_print(&all, "%s\n", lines.at[i]);
	free(lines.at);
	free(text);
	return all.at;
}

static void dump_meta(const struct model *m, struct model_text *t)
{
	model_print(t, "meta %s %" PRIu64 " %" PRIu64 " %d %" PRIu64 " %" PRIu64, m->run, m->writes,
		m->epoch, m->is_recovering, m->since_ms, m->unsure_ms);
	model_print(t, " %" PRId64 " %" PRIu64 " %" PRIu64 " %" PRIu64 " %u %" PRIu64 " %" PRIu64,
		m->correction_ms, m->seen_ms, m->steady_ms, m->news, m->conductor, m->fence,
		m->until_ms);
	model_print(t, " %" PRIu64 " %" PRIu64 " %" PRIu64, m->order, m->jumped, m->final);
	model_print(t, " %" PRIu64 " %" PRIu64 " %" PRIu64 " %016" PRIx64 " %016" PRIx64 "\n",
		m->gone_ms, m->gone_before_ms, m->surely_ms, m->peers, m->missing);
}

static void dump_members(const struct model *m, struct model_text *t)
{
	for (uint32_t n = 0; n < LEDGER_MEMBERS_MAX; n++) {
		const struct model_member *i = &m->members[n];
		if (i->name[0] == '\0')
			continue;
		model_print(t, "member %u %s %016" PRIx64 " %" PRIu64 " %" PRIu64 " %" PRIu64, n,
			i->name, i->incarnation, i->batch, i->heard_ms, i->at_ms);
		model_print(t, " %" PRIu64 " %" PRIu64 " %" PRIu64 " %d\n", i->applied, i->closed,
			i->restored, i->has_left);
	}
	for (uint32_t i = 0; i < m->endings.count; i++) {
		const struct model_ending *e = &m->endings.at[i];
		model_print(t, "ending %" PRIu64 " %08" PRIx32 "%016" PRIx64 "%016" PRIx64 "\n",
			e->news, e->line, e->visitor, e->session);
	}
}

static void dump_node(const struct model_node *n, struct model_text *t)
{
	model_print(t, "node %08" PRIx32 " %08" PRIx32 " %u %" PRIu64 " %d %d", n->id, n->is.parent,
		n->is.priority, n->order, n->is_open, n->is_active);
	model_print(t, " %" PRIu64 " %" PRIu64 " %" PRIu64 " %" PRIu64 " %" PRIu64 " %" PRIu64,
		n->level, n->filled_ms, n->all.start_ms, n->all.used, n->direct.start_ms,
		n->direct.used);
	model_print(t,
		" %" PRIu64 " %" PRIu64 " %" PRIu64 " %" PRIu64 " %" PRIu64 " %" PRIu64 " %" PRIu64
		"\n",
		n->pass, n->served, n->epoch, n->lost, n->lost_until_ms, n->lost_of, n->sure_ms);
	if (!n->is.is_line)
		return;
	model_print(t, "line %08" PRIx32 " %016" PRIx64 " %016" PRIx64 " %" PRIu64 " %u %u %u",
		n->id, n->threshold, n->floor, n->floor_rank, n->coming, n->room_ahead,
		n->ahead_ms);
	model_print(t, " %016" PRIx64 " %" PRIu64 " %" PRIu64 " %" PRIu64 " %" PRIu64 " %" PRIu64,
		n->crowded, n->crowded_until_ms, n->admitted, n->directs, n->undone, n->ended);
	model_print(t, " %" PRIu64 " %" PRIu64 " %" PRIu64 " %" PRIu64 " %" PRIu64, n->expired,
		n->came, model_total(n), n->threshold_rank, n->came_fence);
	model_print(t, " %" PRIu64 " %" PRIu64 " %" PRIu64 " %" PRIu64, n->counted, n->drawn,
		n->gathering, n->over);
	model_print_words(t, &n->words);
	model_print(t, "\n");
	for (uint32_t i = 0; i < n->came_keys.count; i++)
		model_print(t, "came %08" PRIx32 " %u %016" PRIx64 "\n", n->id, i + 1,
			n->came_keys.at[i]);
	for (uint32_t i = 0; i < LEDGER_MEMBERS_MAX; i++) {
		if (n->holds[i].until_ms > 0)
			model_print(t, "held %08" PRIx32 " %u %016" PRIx64 " %" PRIu64 "\n", n->id,
				i, n->holds[i].key, n->holds[i].until_ms);
	}
}

static void dump_visitors(const struct model_node *n, struct model_text *t)
{
	for (uint32_t i = 0; i < n->visitors.count; i++) {
		const struct model_visitor *v = &n->visitors.at[i];
		model_print(t, "visitor %08" PRIx32 " %016" PRIx64 " 1 %d %016" PRIx64, n->id,
			v->visitor, v->state, v->session);
		model_print(t, " %016" PRIx64 " %u\n", v->key, v->expires);
		if (v->state != MODEL_OVER)
			model_print(t, "session %08" PRIx32 " %016" PRIx64 " %" PRIu64 "\n", n->id,
				v->visitor, (uint64_t)v->expires * 1000 + LEDGER_SKEW_MS);
		if (v->key >= n->floor && v->key != 0)
			model_print(t, "used %08" PRIx32 " %016" PRIx64 "%016" PRIx64 "\n", n->id,
				v->key, v->visitor);
	}
}

// How often a code was used stands with the first of its uses.
static void dump_uses(const struct model_node *n, struct model_text *t)
{
	for (uint32_t i = 0; i < n->uses.count; i++) {
		const struct model_use *use = &n->uses.at[i];
		uint32_t before = 0, used = 0;
		for (uint32_t j = 0; j < n->uses.count; j++) {
			const uint64_t *digest = n->uses.at[j].digest;
			const bool is_same = memcmp(digest, use->digest, sizeof(use->digest)) == 0;
			before += is_same && j < i;
			used += is_same;
		}
		model_print(t,
			"use %08" PRIx32 " %016" PRIx64 "%016" PRIx64 "%016" PRIx64 " 1 %016" PRIx64
			" %016" PRIx64 " %d\n",
			n->id, use->digest[0], use->digest[1], use->holder, use->place.visitor,
			use->place.key, use->place.is_gathered);
		if (before == 0)
			model_print(t, "code %08" PRIx32 " %016" PRIx64 "%016" PRIx64 " %u\n",
				n->id, use->digest[0], use->digest[1], used);
	}
}

static void dump_sets(const struct model_node *n, struct model_text *t)
{
	for (uint32_t i = 0; i < n->present.count; i++) {
		const struct model_place *p = &n->present.at[i];
		model_print(t, "present %08" PRIx32 " %016" PRIx64 "%016" PRIx64 " %" PRIu64 "\n",
			n->id, p->key, p->visitor, p->until_ms);
	}
	for (uint32_t i = 0; i < n->left.count; i++) {
		const struct model_place *p = &n->left.at[i];
		model_print(t, "left %08" PRIx32 " %016" PRIx64 "%016" PRIx64 "\n", n->id, p->key,
			p->visitor);
	}
	for (uint32_t i = 0; i < n->affirmed.count; i++)
		model_print(t, "affirmed %08" PRIx32 " %016" PRIx64 "\n", n->id, n->affirmed.at[i]);
	for (uint32_t i = 0; i < n->early.count; i++)
		model_print(t, "early %08" PRIx32 " %016" PRIx64 " %u\n", n->id,
			n->early.at[i].session, n->early.at[i].expires);
	dump_uses(n, t);
}

static void dump_gathered(const struct model_node *n, struct model_text *t)
{
	for (uint32_t i = 0; i < n->gathered.count; i++) {
		const struct model_gathered *g = &n->gathered.at[i];
		for (uint32_t j = 0; j < LEDGER_MEMBERS_MAX; j++) {
			if (g->told[j].has_told)
				model_print(t,
					"told %08" PRIx32 " %" PRIu64 " %u %016" PRIx64
					" %d %" PRIu64 "\n",
					n->id, g->number, j, g->told[j].source, g->told[j].is_whole,
					g->told[j].count);
		}
		if (g->is_drawn)
			model_print(
				t, "told %08" PRIx32 " %" PRIu64 " drawn 1\n", n->id, g->number);
		for (uint32_t j = 0; j < g->ids.count; j++)
			model_print(t, "gathered %08" PRIx32 " %" PRIu64 " %u %016" PRIx64 "\n",
				n->id, g->number, j + 1, g->ids.at[j]);
	}
}

static void dump_slots(const struct model_node *n, struct model_text *t)
{
	for (uint32_t member = 0; member < LEDGER_MEMBERS_MAX; member++) {
		for (uint32_t i = 0; i < n->slots[member].count; i++) {
			const struct model_slots *s = &n->slots[member].at[i];
			model_print(t, "slots %08" PRIx32 " %u %u ", n->id, member, i + 1);
			for (uint32_t j = 0; j < s->count; j++)
				model_print(t, "%016" PRIx64, s->held[j]);
			model_print(t, "\n");
		}
	}
}

char *model_dump(const struct model *m)
{
	struct model_text t = {0};
	dump_meta(m, &t);
	dump_members(m, &t);
	for (const struct model_node *n = m->nodes; n < m->nodes + MODEL_NODES_MAX; n++) {
		if (n->id == 0)
			continue;
		dump_node(n, &t);
		dump_visitors(n, &t);
		dump_sets(n, &t);
		dump_slots(n, &t);
		dump_gathered(n, &t);
	}
	return sorted(t.at);
}
