// Who has configured lines otherwise than others.

#include "tests/sim/cluster/model.h"

uint64_t model_otherwise(const struct model *m, const struct model_node *n)
{
	uint64_t bits = 0;
	for (uint32_t i = 0; i < LEDGER_MEMBERS_MAX; i++) {
		const bool has_said = m->members[i].is_live && n->has_config[i];
		if (has_said && n->is.config != 0 && n->config[i] != n->is.config)
			bits |= 1ull << i;
	}
	return bits;
}

static bool has_voted(const struct model *m, const struct model_node *line, uint32_t n)
{
	return m->members[n].is_live && line->has_config[n];
}

static uint32_t votes_for(const struct model *m, const struct model_node *line, uint64_t config)
{
	uint32_t votes = 0;
	for (uint32_t n = 0; n < LEDGER_MEMBERS_MAX; n++)
		votes += has_voted(m, line, n) && line->config[n] == config;
	return votes;
}

// Lines that most have configured otherwise than member `number`.
static uint32_t count_odd(const struct model *m, uint32_t number)
{
	uint32_t odd = 0;
	for (const struct model_node *l = m->nodes; l < m->nodes + MODEL_NODES_MAX; l++) {
		uint32_t most = 0;
		for (uint32_t n = 0; l->id != 0 && l->is.is_line && n < LEDGER_MEMBERS_MAX; n++) {
			const uint32_t votes =
				has_voted(m, l, n) ? votes_for(m, l, l->config[n]) : 0;
			most = votes > most ? votes : most;
		}
		odd += most > (has_voted(m, l, number) ? votes_for(m, l, l->config[number]) : 0);
	}
	return odd;
}

bool model_is_odd(const struct model *m, uint32_t number)
{
	uint32_t live = 0, least = UINT32_MAX;
	for (uint32_t n = 0; n < LEDGER_MEMBERS_MAX; n++) {
		const uint32_t odd = m->members[n].is_live ? count_odd(m, n) : UINT32_MAX;
		live += m->members[n].is_live;
		least = odd < least ? odd : least;
	}
	return live > 2 && m->members[number].is_live && count_odd(m, number) > least;
}
