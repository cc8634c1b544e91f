// LEDGER_CODE: who used which code, and how often.

#include <assert.h>
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

#include "tests/sim/cluster/model.h"

static void say(struct model_text *answer, enum ledger_verdict verdict)
{
	model_print(answer, "%d", verdict);
}

// The use of a code by a holder, and how often it was used by anybody.
static struct model_use *find_use(
	const struct model_node *line, const struct ledger_code *code, uint64_t *used)
{
	struct model_use *mine = NULL;
	*used = 0;
	for (uint32_t i = 0; i < line->uses.count; i++) {
		struct model_use *use = &line->uses.at[i];
		if (memcmp(use->digest, code->digest, sizeof(use->digest)) != 0)
			continue;
		++*used;
		if (use->holder == code->holder)
			mine = use;
	}
	return mine;
}

// How often one code was used; of none, how many were, and how often.
static void say_uses(
	const struct model_node *line, uint64_t used, bool is_of_all, struct model_text *answer)
{
	uint64_t codes = 0;
	for (uint32_t i = 0; i < line->uses.count; i++) {
		uint32_t first = 0;
		while (memcmp(line->uses.at[first].digest, line->uses.at[i].digest,
			       sizeof(line->uses.at[i].digest)) != 0)
			first++;
		codes += first == i;
	}
	model_print(answer, "%d %016" PRIx64 " %016" PRIx64 " 0", LEDGER_GRANTED,
		is_of_all ? codes : used, is_of_all ? (uint64_t)line->uses.count : 0);
}

static bool is_given_back(const struct model_node *line, const struct ledger_place *place)
{
	for (uint32_t i = 0; i < line->left.count; i++)
		if (line->left.at[i].key == place->key &&
			line->left.at[i].visitor == place->visitor)
			return true;
	return false;
}

void model_code(struct model *m, const struct ledger_entry *e, struct model_text *answer)
{
	const struct ledger_code *c = &e->code;
	struct model_node *line = model_line(m, e->line);
	if (!line)
		return say(answer, LEDGER_UNKNOWN);
	uint64_t used;
	const struct model_use *mine = find_use(line, c, &used);
	if (c->what == LEDGER_CODE_LOOK)
		return say_uses(line, used, (c->digest[0] | c->digest[1]) == 0, answer);
	if (c->what == LEDGER_CODE_UNDO) {
		if (mine && mine->place.visitor == c->place.visitor)
			MODEL_REMOVE(line->uses, (uint32_t)(mine - line->uses.at));
		return say(answer, LEDGER_DONE);
	}
	if (mine && c->what == LEDGER_CODE_USE && is_given_back(line, &mine->place))
		return say(answer, LEDGER_LAPSED);
	const bool is_known = mine || c->what == LEDGER_CODE_KNOWN;
	if (!is_known && m->is_recovering)
		return say(answer, LEDGER_UNKNOWN);
	if (!is_known && used >= c->uses)
		return say(answer, LEDGER_LAPSED);
	const struct model_use fresh = {{c->digest[0], c->digest[1]}, c->holder, c->place};
	const struct ledger_place place = mine ? mine->place : c->place;
	if (!mine)
		MODEL_ADD(line->uses, fresh);
	model_print(answer, "%d %016" PRIx64 " %016" PRIx64 " %d", LEDGER_GRANTED, place.visitor,
		place.key, place.is_gathered);
}
