// LEDGER_VIEW: how a node stands, and who came to a line.

#include <inttypes.h>
#include <string.h>

#include "tests/sim/cluster/model.h"

static uint32_t count_ending(const struct model *m, const struct model_node *line)
{
	uint32_t count = 0;
	for (uint32_t i = 0; i < line->visitors.count; i++) {
		const struct model_visitor *v = &line->visitors.at[i];
		count += v->state != MODEL_OVER &&
			 v->expires * 1000ull + LEDGER_SKEW_MS <= m->now_ms + LEDGER_VIEW_AHEAD_MS;
	}
	return count;
}

static uint64_t first_present(const struct model_node *line)
{
	uint64_t first = UINT64_MAX;
	for (uint32_t i = 0; i < line->present.count; i++) {
		if (line->present.at[i].key < first)
			first = line->present.at[i].key;
	}
	return first;
}

static void print_counts(struct model *m, const struct model_node *n, struct model_text *answer)
{
	model_print(answer, "%d %016" PRIx64 " %016" PRIx64 " %016" PRIx64, LEDGER_DONE,
		n->threshold, n->floor, first_present(n));
	model_print(answer, " %" PRIu64 " %" PRIu64 " %u %" PRIu64 " %u %" PRIu64, n->floor_rank,
		model_total(n), n->present.count, model_taken(m, n), count_ending(m, n),
		model_settled(n));
	model_print(answer,
		" %" PRIu64 " %" PRIu64 " %" PRIu64 " %" PRIu64 " %" PRIu64 " %" PRIu64 " %" PRIu64,
		n->came, n->admitted, n->directs, n->undone, n->ended, n->expired, n->lost);
	model_print(answer, " %" PRIu64 " %d %d %" PRIu64, model_people(m, n), n->is_open,
		n->is.config != 0 && n->config[m->self] != n->is.config, n->threshold_rank);
	model_print(answer, " %016" PRIx64, model_otherwise(m, n));
}

// The first of them, and the conductor's are told no more.
static void take_came(struct model *m, struct model_node *line, struct model_text *answer)
{
	if (!m->is_conductor || !line->is.is_line)
		return;
	if (line->came_fence != m->fence) {
		line->came_fence = m->fence;
		line->came_keys.count = 0;
	}
	for (uint32_t i = 0; i < LEDGER_CAME_MAX && line->came_keys.count > 0; i++) {
		model_print(answer, "%016" PRIx64, line->came_keys.at[0]);
		MODEL_REMOVE(line->came_keys, 0);
	}
}

void model_view(struct model *m, const struct ledger_entry *e, struct model_text *answer)
{
	struct model_node *node = model_look(m, e->line);
	if (!node) {
		model_print(answer, "%d", LEDGER_UNKNOWN);
		return;
	}
	uint64_t rated, all, direct;
	model_limits(node, &rated, &all, &direct);
	print_counts(m, node, answer);
	model_print_words(answer, &node->words);
	model_print(answer, " %016" PRIx64 " %d %" PRIu64 " %" PRIu64 " %" PRIu64 " ",
		model_first_held(m, node), m->now_ms < node->crowded_until_ms, rated, all, direct);
	if (e->takes_came)
		take_came(m, node, answer);
}
