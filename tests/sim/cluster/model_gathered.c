// Gathered: ids of all members in one list, who told how much of it, and who left before the draw.

#include <assert.h>
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

#include "tests/sim/cluster/model.h"

static struct model_gathered *find_gathered(const struct model_node *line, uint64_t number)
{
	for (uint32_t i = 0; i < line->gathered.count; i++) {
		if (line->gathered.at[i].number == number)
			return &line->gathered.at[i];
	}
	return NULL;
}

static struct model_gathered *make_gathered(struct model_node *line, uint64_t number)
{
	const struct model_gathered fresh = {.number = number};
	if (!find_gathered(line, number))
		MODEL_ADD(line->gathered, fresh);
	return find_gathered(line, number);
}

static enum ledger_verdict tell_ids(
	struct model *m, struct model_node *line, const struct ledger_gathered *e)
{
	const struct model_gathered *known = find_gathered(line, e->number);
	const bool is_same =
		known && known->told[m->self].has_told && known->told[m->self].source == e->source;
	const uint64_t has = is_same ? known->told[m->self].count : 0;
	if (e->from > has)
		return LEDGER_REFUSED;
	struct model_gathered *g = make_gathered(line, e->number);
	uint64_t fresh = 0;
	for (uint64_t i = has - e->from; i < e->count; i++, fresh++)
		MODEL_ADD(g->ids, e->ids[i]);
	if (!g->is_drawn)
		line->gathering += fresh;
	g->told[m->self].is_whole = e->is_whole || (is_same && g->told[m->self].is_whole);
	g->told[m->self].has_told = true;
	g->told[m->self].source = e->source;
	g->told[m->self].count = has + fresh;
	return LEDGER_DONE;
}

static void end_gathering(struct model_node *line, struct model_gathered *g)
{
	if (g->is_drawn)
		return;
	line->gathering -= line->gathering < g->ids.count ? line->gathering : g->ids.count;
	g->is_drawn = true;
}

static void place_left(struct model *m, struct model_node *line, const struct ledger_gathered *e)
{
	for (uint32_t i = 0; i < line->left.count; i++) {
		const struct model_place left = line->left.at[i];
		if (left.key != e->key || left.visitor != e->ids[0])
			continue;
		MODEL_REMOVE(line->left, i);
		const bool is_kept = e->place != 0 && e->place >= line->floor;
		const struct model_place placed = {
			.key = is_kept ? e->place : 0, .visitor = e->ids[0]};
		bool is_there = !is_kept;
		for (uint32_t j = 0; j < line->left.count; j++)
			is_there |= line->left.at[j].key == e->place &&
				    line->left.at[j].visitor == e->ids[0];
		if (!is_there)
			MODEL_ADD(line->left, placed);
		model_tell(m, "%d %08" PRIx32 " %016" PRIx64 " %016" PRIx64, LEDGER_NEWS_LEFT,
			line->id, placed.key, placed.visitor);
		return;
	}
}

enum ledger_verdict model_gathered(struct model *m, const struct ledger_entry *e)
{
	const struct ledger_gathered *is = &e->gathered;
	struct model_node *line = model_line(m, e->line);
	if (!line)
		return LEDGER_UNKNOWN;
	const bool is_over = is->number <= line->over;
	if (is_over && (is->what == LEDGER_GATHERED_TELL || is->what == LEDGER_GATHERED_DRAWN))
		return LEDGER_DONE;
	if (is->what == LEDGER_GATHERED_TELL)
		return tell_ids(m, line, is);
	if (is->what == LEDGER_GATHERED_PLACED) {
		place_left(m, line, is);
		return LEDGER_DONE;
	}
	struct model_gathered *g = make_gathered(line, is->number);
	end_gathering(line, g);
	if (is->what == LEDGER_GATHERED_DRAWN) {
		line->drawn = is->people > line->drawn ? is->people : line->drawn;
		return LEDGER_DONE;
	}
	line->over = is->number > line->over ? is->number : line->over;
	free(g->ids.at);
	MODEL_REMOVE(line->gathered, (uint32_t)(g - line->gathered.at));
	return LEDGER_DONE;
}

void model_read_gathered(struct model *m, const struct model_node *line,
	const struct ledger_read *r, struct model_text *answer)
{
	const struct model_gathered *g = find_gathered(line, r->number);
	const uint64_t total = g ? g->ids.count : 0;
	uint64_t whole = 0, at = r->from;
	for (uint32_t i = 0; g && i < LEDGER_MEMBERS_MAX; i++)
		whole |= (uint64_t)g->told[i].is_whole << i;
	const uint64_t most = r->from + LEDGER_GATHERED_PAGE, end = total < most ? total : most;
	do {
		m->page_count++;
		model_print(&m->pages, "0 %d %08" PRIx32 " %" PRIu64 " %" PRIu64 " %016" PRIx64 " ",
			LEDGER_NEWS_GATHERED, line->id, r->number, at, whole);
		for (uint64_t i = at; i < end && i < at + LEDGER_IDS_MAX; i++)
			model_print(&m->pages, "%016" PRIx64, g->ids.at[i]);
		model_print(&m->pages, "\n");
		at += LEDGER_IDS_MAX;
	} while (at < end);
	model_print(answer, "%d %" PRIu64 " %" PRIu64, LEDGER_DONE, end > r->from ? end : r->from,
		total);
}
