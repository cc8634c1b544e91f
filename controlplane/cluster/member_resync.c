// Resync: the pages of a line are what ended early, what was given back, how it stands (as a
// LEDGER_VIEW, which has its words), and the slots of each member; behind all lines come the
// records, type by type.
//
// News go on meanwhile from where the reply was that told of the resync; pages may say the same
// again, and all who listen take that well. A line's ranks are whole when its last page and the
// news up to the moment of that page have been taken (ranks.h): of all lines together, for one
// count is simpler than many.

#include "controlplane/cluster/member_resync.h"

#include "controlplane/cluster/member_batch.h"
#include "dataplane/gate/ranks.h"

#define STEPS_LINE 3u // ended, left, view; behind them the slots of each member
#define TYPES 16u // of records

void member_resync_begin(struct member *m)
{
	m->counters.resyncs++;
	m->is_resyncing = m->is_barrier_due = true;
	m->has_barrier = false; // what it was for is less than is known to be missing
	m->read_line = m->read_step = 0;
	m->read_until = 0;
	for (uint32_t i = 0; i < MEMBER_INSIDE_READS; i++)
		m->reads[i].is.what = 0;
	for (uint32_t i = 0; i < m->line_count; i++)
		ranks_read(m->lines[i].is.ranks);
}

// The next page that was not asked for; `what` THRESHOLD: a view. Returns false at the end.
static bool next_page(struct member *m, struct member_inside_read *read)
{
	const uint32_t steps = STEPS_LINE + m->member_count;
	if (m->read_line == m->line_count) {
		*read = (struct member_inside_read){
			.is = {.what = LEDGER_NEWS_RECORD, .type = (uint8_t)m->read_step}};
		return m->read_step++ < TYPES;
	}
	static const uint8_t kinds[STEPS_LINE] = {
		LEDGER_NEWS_ENDED, LEDGER_NEWS_LEFT, LEDGER_NEWS_THRESHOLD};
	const uint32_t step = m->read_step++;
	*read = (struct member_inside_read){.line = m->lines[m->read_line].is.line_id};
	read->is.what = step < STEPS_LINE ? kinds[step] : LEDGER_NEWS_SLOTS;
	if (step >= STEPS_LINE)
		read->is.member = m->members[step - STEPS_LINE].number;
	if (m->read_step == steps) {
		m->read_line++;
		m->read_step = 0;
	}
	return true;
}

static bool put(struct member *m, const struct member_inside_read *read)
{
	const bool is_view = read->is.what == LEDGER_NEWS_THRESHOLD;
	struct ledger_entry *entry = member_batch_add(m, is_view ? LEDGER_VIEW : LEDGER_READ,
		read->line, is_view ? MEMBER_INSIDE_VIEW : MEMBER_INSIDE_READ);
	if (entry && !is_view)
		entry->read = read->is;
	return entry != NULL;
}

void member_resync_put(struct member *m)
{
	if (!m->is_resyncing)
		return;
	for (uint32_t i = 0; i < MEMBER_INSIDE_READS; i++) {
		struct member_inside_read *read = &m->reads[i];
		if (read->is.what == 0 && !next_page(m, read)) {
			m->read_step--; // the end stays the end
			read->is.what = 0;
			continue;
		}
		if (!put(m, read))
			return;
		if (read->is.what == LEDGER_NEWS_THRESHOLD)
			read->is.what = 0; // one answer is all of it
	}
}

void member_resync_answered(
	struct member *m, const struct ledger_entry *entry, const struct ledger_answer *answer)
{
	m->read_until = m->reply.newest;
	for (uint32_t i = 0; i < MEMBER_INSIDE_READS; i++) {
		struct member_inside_read *read = &m->reads[i];
		if (read->is.what != entry->read.what || read->line != entry->line ||
			read->is.type != entry->read.type || read->is.member != entry->read.member)
			continue;
		read->is.from = answer->verdict == LEDGER_DONE ? answer->next : 0;
		if (read->is.from == 0)
			read->is.what = 0;
	}
	struct member_inside_line *line = member_inside_line(m, entry->line);
	if (line && entry->read.what == LEDGER_NEWS_SLOTS && answer->verdict == LEDGER_DONE)
		ranks_sum(line->is.ranks, m->reply.newest, answer->total);
}

static bool has_pages(const struct member *m)
{
	bool has = m->read_line < m->line_count || m->read_step < TYPES;
	for (uint32_t i = 0; i < MEMBER_INSIDE_READS; i++)
		has |= m->reads[i].is.what != 0;
	return has;
}

// Ranks that found no room are read again, some time later.
static bool begin_ranks(struct member *m)
{
	bool is_whole = true;
	for (uint32_t i = 0; i < m->line_count; i++)
		is_whole &= ranks_begin(m->lines[i].is.ranks, m->reply.number,
			m->seams.drawn_before
				? m->seams.drawn_before(m->seams.ctx, m->lines[i].is.line_id)
				: 0);
	return is_whole;
}

void member_resync_turn(struct member *m)
{
	if (!m->is_resyncing || has_pages(m) || m->cursor < m->read_until)
		return;
	m->is_resyncing = false;
	if (!begin_ranks(m))
		m->again_resync_ms = m->now_ms + MEMBER_RESYNC_AGAIN_MS;
	m->is_ready = true;
	if (m->seams.resynced)
		m->seams.resynced(m->seams.ctx);
}
