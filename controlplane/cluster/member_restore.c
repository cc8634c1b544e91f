// Restore: an epoch of the ledger begins when it has lost writes, and each reply tells which it is.
//
// What is known (member_known.h) is queued whole; the queue is also what carries grants of a time
// when the ledger could not be asked, and ends. It goes out a part a batch. LEDGER_RESTORED is in a
// batch behind the last of it: of a line that the ledger did not know, all is said again.

#include "controlplane/cluster/member_restore.h"

#include "controlplane/cluster/member_batch.h"
#include "controlplane/cluster/member_slots.h"

#define AGAIN_MS 100u // a line that the ledger did not know is written back again

void member_restore_look(struct member *m)
{
	const bool is_first = !m->has_epoch;
	if (m->has_epoch && m->reply.epoch == m->epoch)
		return;
	m->has_epoch = true;
	m->epoch = m->reply.epoch;
	if (is_first && !m->reply.is_recovering)
		return;
	m->counters.recoveries++;
	m->restoring = MEMBER_INSIDE_RESTORING;
	m->is_records_put = m->seams.restore == NULL;
	m->restore_line = 0;
	member_known_unsaid_all(&m->known);
	member_slots_again(m);
}

static void put_known(
	struct member *m, const struct member_known_entry *known, enum ledger_kind kind)
{
	struct ledger_entry *entry = member_batch_add(m, kind, known->line, MEMBER_INSIDE_KNOWN);
	entry->claim = (struct ledger_claim){.key = kind == LEDGER_END ? 0 : known->key,
		.visitor = known->visitor,
		.session = known->session,
		.expires = known->expires};
}

static void put_all_known(struct member *m)
{
	const uint32_t first = m->batch->is.count;
	while (m->batch->is.count < first + MEMBER_BATCH_KNOWN_MAX &&
		m->batch->is.count + MEMBER_KNOWN_SAYS_MAX <= LEDGER_ENTRIES_MAX) {
		struct member_known_entry *known = member_known_next(&m->known);
		if (!known)
			return;
		if (known->unsaid & MEMBER_KNOWN_SAY_TAKEN)
			put_known(m, known, LEDGER_TAKEN);
		if (known->unsaid & MEMBER_KNOWN_SAY_END)
			put_known(m, known, LEDGER_END);
		if (known->unsaid & MEMBER_KNOWN_SAY_LEAVE)
			put_known(m, known, LEDGER_LEAVE);
		known->unsaid = 0;
	}
}

static void put_lines(struct member *m)
{
	for (; m->restore_line < m->line_count; m->restore_line++) {
		const struct member_inside_line *line = &m->lines[m->restore_line];
		struct ledger_entry *entry = member_batch_add(
			m, LEDGER_RESTORE, line->is.line_id, MEMBER_INSIDE_RESTORE);
		if (!entry)
			return;
		entry->restore = (struct ledger_restore){.threshold = line->is.line->threshold,
			.floor = line->is.line->floor,
			.floor_rank = line->floor_rank,
			.fence = m->fence,
			.final = m->final};
	}
}

void member_restore_put(struct member *m)
{
	if (m->restoring == MEMBER_INSIDE_RESTORING && m->now_ms >= m->unknown_ms)
		put_lines(m);
	if (m->now_ms >= m->unknown_ms)
		put_all_known(m);
	if (m->restoring == MEMBER_INSIDE_RESTORING && !m->is_records_put)
		m->is_records_put = m->seams.restore(m->seams.ctx);
}

// Whether this batch writes something back.
static bool writes_back(const struct member_inside_batch *batch)
{
	for (uint32_t i = 0; i < batch->is.count; i++) {
		if (batch->sources[i] == MEMBER_INSIDE_KNOWN ||
			batch->sources[i] == MEMBER_INSIDE_RESTORE)
			return true;
	}
	return false;
}

void member_restore_put_end(struct member *m)
{
	if (m->restoring != MEMBER_INSIDE_RESTORING || m->now_ms < m->unknown_ms ||
		m->restore_line < m->line_count || !m->is_records_put ||
		m->records->sent < m->records->count || member_known_unsaid_count(&m->known) > 0 ||
		writes_back(m->batch))
		return;
	for (uint32_t i = 0; i < m->line_count; i++) {
		const struct member_inside_line *line = &m->lines[i];
		if (member_slots_untold(line, line->slots_sent) < line->is.line->told)
			return;
	}
	struct ledger_entry *entry =
		member_batch_add(m, LEDGER_RESTORED, 0, MEMBER_INSIDE_RESTORED);
	if (!entry)
		return;
	entry->restored = (struct ledger_restored){m->epoch, m->peers};
	m->restoring = MEMBER_INSIDE_RESTORED_SAID;
}

// Not done: once more, a little later.
static void again(struct member *m)
{
	m->unknown_ms = m->now_ms + AGAIN_MS;
	if (m->restoring == MEMBER_INSIDE_RESTORED_SAID)
		m->restoring = MEMBER_INSIDE_RESTORING;
}

// The session that we began while the store was away is not the visitor's only one.
static void give_up(struct member *m, struct member_known_entry *known)
{
	m->counters.conflicts++;
	known->state = MEMBER_KNOWN_ENDED;
	known->is_granted = false;
	if (ended_insert(m->ended, known->session, known->expires))
		member_known_unsaid(&m->known, known, MEMBER_KNOWN_SAY_END);
}

// A session that was to end early goes on.
static void go_on(struct member *m, struct member_known_entry *known)
{
	m->counters.ended_full++;
	ended_remove(m->ended, known->session);
	if (known->is_granted)
		known->state = MEMBER_KNOWN_TAKEN;
	else // when it ends was a guess
		member_known_remove(&m->known, known);
}

static void known_answered(struct member *m, const struct ledger_entry *entry, uint8_t verdict)
{
	static const uint8_t says[LEDGER_KINDS] = {[LEDGER_TAKEN] = MEMBER_KNOWN_SAY_TAKEN,
		[LEDGER_END] = MEMBER_KNOWN_SAY_END,
		[LEDGER_LEAVE] = MEMBER_KNOWN_SAY_LEAVE};
	struct member_known_entry *known =
		member_known_find(&m->known, entry->line, entry->claim.visitor);
	if (!known || known->session != entry->claim.session)
		return;
	m->counters.written_back += entry->kind == LEDGER_TAKEN;
	if (verdict == LEDGER_UNKNOWN) {
		member_known_unsaid(&m->known, known, says[entry->kind]);
		again(m);
	} else if (entry->kind == LEDGER_TAKEN && verdict == LEDGER_LAPSED &&
		   known->state == MEMBER_KNOWN_TAKEN) {
		give_up(m, known);
	} else if (entry->kind == LEDGER_END && verdict == LEDGER_FULL && !known->is_told) {
		go_on(m, known);
	}
}

// REFUSED: it was for an epoch before.
static void restored_answered(struct member *m, uint8_t verdict)
{
	if (m->restoring == MEMBER_INSIDE_RESTORED_SAID)
		m->restoring = verdict == LEDGER_DONE ? MEMBER_INSIDE_RESTORED_ALL
						      : MEMBER_INSIDE_RESTORING;
}

void member_restore_answered(struct member *m, uint32_t index, const struct ledger_answer *answer)
{
	const struct ledger_entry *entry = &m->batch->entries[index];
	const uint8_t verdict = answer->verdict;
	if (m->batch->sources[index] == MEMBER_INSIDE_KNOWN)
		known_answered(m, entry, verdict);
	else if (m->batch->sources[index] == MEMBER_INSIDE_RESTORED)
		restored_answered(m, verdict);
	else if (verdict == LEDGER_UNKNOWN) {
		again(m);
		m->restore_line = 0;
	}
}

bool member_restore_is_done(const struct member *m)
{
	return m->restoring == MEMBER_INSIDE_RESTORED_ALL;
}
