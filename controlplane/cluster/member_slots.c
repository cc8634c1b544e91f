// Slots: a line's index (place.h) is its own record of what was minted; we keep up to which
// slot it is told. `closed` promises the ledger that nothing below will come any more, so it
// stops at the first entry that is not in a batch, and of a line that the ledger does not know yet,
// at the first at all.

#include "controlplane/cluster/member_slots.h"

#include "controlplane/cluster/member_batch.h"

// Before the first reply our clock may be wrong by minutes, and a line that was closed up to there
// would draw its tickets there; unless somebody draws already.
void member_slots_close(struct member *m)
{
	const uint64_t now_slot = m->now_ms / PLACE_SLOT_MS;
	const uint64_t slot = m->final > now_slot ? m->final : now_slot;
	for (uint32_t i = 0; i < m->line_count; i++) {
		struct place_line *line = m->lines[i].is.line;
		if (m->has_reply || (atomic_load(&line->word) & PLACE_SEQ_MAX) != 0)
			place_close(line, slot);
	}
}

// Nobody of ours waited.
static bool is_first(const struct member_inside_line *line)
{
	return line->slots_sent <= place_slot(line->is.line->threshold);
}

uint64_t member_slots_untold(const struct member_inside_line *line, uint64_t from)
{
	uint64_t held;
	return place_told(line->is.line, from, &held, 1) ? held >> 24 : UINT64_MAX;
}

// Whether to tell now: in every batch with claims, else once in a while, and at once when nobody
// waited.
static bool is_due(const struct member *m, const struct member_inside_line *line)
{
	return m->claim_first < m->claim_end || m->is_leaving ||
	       m->now_ms >= m->slots_ms + m->plan.sync_ms || is_first(line);
}

// What the ledger had before and what it had not go apart, and the latter not while it recovers: of
// what others reckoned without, it does not know yet. Returns whether there may be more.
static bool put(struct member *m, struct member_inside_line *line)
{
	struct ledger_entry *entry =
		member_batch_add(m, LEDGER_SLOTS, line->is.line_id, MEMBER_INSIDE_SLOTS);
	if (!entry)
		return false;
	struct ledger_slots *slots = &entry->slots;
	const uint64_t told = line->is.line->told;
	slots->count = place_told(line->is.line, line->slots_sent, slots->held, LEDGER_SLOTS_MAX);
	slots->is_again = slots->count > 0 && slots->held[0] >> 24 < told;
	while (slots->is_again && slots->held[slots->count - 1] >> 24 >= told)
		slots->count--;
	if (!slots->is_again && m->reply.is_recovering)
		slots->count = 0;
	if (slots->count == 0) {
		member_batch_drop(m);
		return false;
	}
	line->slots_sent = (slots->held[slots->count - 1] >> 24) + 1;
	slots->total = place_own(line->is.line, line->slots_sent);
	return true;
}

static uint64_t closed_of(const struct member_inside_line *line)
{
	const uint64_t from = line->is_known ? line->slots_sent : line->slots_known;
	const uint64_t untold = member_slots_untold(line, from);
	const uint64_t closed = atomic_load(&line->is.line->closed);
	return untold < closed ? untold : closed;
}

void member_slots_put(struct member *m)
{
	uint64_t closed = m->now_ms / PLACE_SLOT_MS;
	const uint32_t max = MEMBER_SLOTS_ENTRIES_MAX;
	bool is_told = true;
	for (uint32_t i = 0; i < m->line_count; i++) {
		struct member_inside_line *line = &m->lines[i];
		const bool now = is_due(m, line);
		while (now && m->batch->is.count < max && put(m, line))
			;
		is_told &= now;
		const uint64_t here = closed_of(line);
		closed = here < closed ? here : closed;
	}
	if (is_told)
		m->slots_ms = m->now_ms;
	m->closed = closed;
}

void member_slots_answered(
	struct member *m, const struct ledger_entry *entry, const struct ledger_answer *answer)
{
	struct member_inside_line *line = member_inside_line(m, entry->line);
	if (!line)
		return;
	line->is_known = answer->verdict != LEDGER_UNKNOWN;
	if (!line->is_known)
		line->slots_sent = line->slots_known;
}

void member_slots_told(struct member *m)
{
	for (uint32_t i = 0; i < m->line_count; i++) {
		struct member_inside_line *line = &m->lines[i];
		line->slots_known = line->slots_sent;
		if (line->slots_known > line->is.line->told)
			atomic_store(&line->is.line->told, line->slots_known);
	}
}

void member_slots_again(struct member *m)
{
	for (uint32_t i = 0; i < m->line_count; i++) {
		m->lines[i].slots_sent = m->lines[i].slots_known = 0;
		m->lines[i].is_known = m->lines[i].is_config_said = false;
	}
}
