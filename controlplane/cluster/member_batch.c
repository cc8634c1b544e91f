// Batch: made from end to end in one turn, in the order that ledger.h asks for: slots, what is
// written back, and only then claims; so what was granted while the ledger could not be asked
// counts before it grants anything more. The rest stands behind, the conductor's last but for the
// words of leaving.
//
// One that has nothing to say is sent once a sync all the same: it says that we live.

#include "controlplane/cluster/member_batch.h"

#include <assert.h>
#include <stdio.h>
#include <string.h>

#include "controlplane/cluster/member_claims.h"
#include "controlplane/cluster/member_loss.h"
#include "controlplane/cluster/member_restore.h"
#include "controlplane/cluster/member_resync.h"
#include "controlplane/cluster/member_slots.h"

struct ledger_entry *member_batch_add(
	struct member *m, enum ledger_kind kind, uint32_t line, enum member_inside_source source)
{
	struct member_inside_batch *batch = m->batch;
	if (batch->is.count == LEDGER_ENTRIES_MAX)
		return NULL;
	batch->sources[batch->is.count] = (uint8_t)source;
	struct ledger_entry *entry = &batch->entries[batch->is.count++];
	memset(entry, 0, sizeof(*entry));
	entry->kind = (uint8_t)kind;
	entry->line = line;
	return entry;
}

void member_batch_drop(struct member *m)
{
	m->batch->is.count--;
}

static void put_configs(struct member *m)
{
	if (m->now_ms < m->config_ms + m->plan.sync_ms)
		return;
	m->config_ms = m->now_ms;
	for (uint32_t i = 0; i < m->line_count; i++) {
		struct member_inside_line *line = &m->lines[i];
		struct ledger_entry *entry =
			line->is_config_said ? NULL
					     : member_batch_add(m, LEDGER_CONFIG, line->is.line_id,
						       MEMBER_INSIDE_CONFIG);
		if (entry)
			entry->config = line->is.node.config;
	}
}

// --- claims

static const uint8_t kinds[] = {
	[CLAIM_CALLED] = LEDGER_CALLED,
	[CLAIM_DIRECT] = LEDGER_DIRECT,
	[CLAIM_RENEW] = LEDGER_RENEW,
	[CLAIM_LEAVE] = LEDGER_LEAVE,
	[CLAIM_GONE] = LEDGER_GONE,
};

static void put_code(struct member *m, const struct claim *claim)
{
	struct ledger_entry *entry =
		member_batch_add(m, LEDGER_CODE, claim->line_id, MEMBER_INSIDE_CLAIM);
	assert(entry);
	m->batch->claims[m->batch->is.count - 1] = *claim;
	struct claim_answer *answer = NULL;
	if (claim->kind != CLAIM_CODE_GONE) {
		answer = member_claims_answer(m, claim, CLAIM_REFUSED);
		answer->session = claim->session;
	}
	if (!m->seams.code(m->seams.ctx, claim, answer, entry)) {
		member_batch_drop(m);
		if (answer && answer->verdict == CLAIM_HONOURED)
			member_loss_give_up(m, claim->expires, claim->place, claim->visitor);
	} else if (answer)
		m->answers->count--; // it comes with the reply
}

static void put_claim(struct member *m, const struct claim *claim)
{
	const bool is_new = claim->kind == CLAIM_CALLED || claim->kind == CLAIM_DIRECT;
	struct ledger_entry *entry =
		member_batch_add(m, kinds[claim->kind], claim->line_id, MEMBER_INSIDE_CLAIM);
	assert(entry);
	m->batch->claims[m->batch->is.count - 1] = *claim;
	entry->claim = (struct ledger_claim){.key = claim->kind == CLAIM_DIRECT ? 0 : claim->key,
		.visitor = claim->visitor,
		.session = is_new ? m->seams.session_id(m->seams.ctx) : claim->session,
		.expires = claim->expires,
		.poll_after = claim->poll_after};
}

// No more grants are asked for than can be remembered.
static void put_claims(struct member *m)
{
	struct claim claim;
	uint32_t room = member_known_room(&m->known);
	for (uint32_t i = 0; i < MEMBER_BATCH_CLAIMS_MAX; i++) {
		if (!member_claims_due(m, &claim) && !member_claims_next(m, &claim))
			return;
		const bool is_grant = claim.kind == CLAIM_CALLED || claim.kind == CLAIM_DIRECT ||
				      claim.kind == CLAIM_RENEW;
		if (is_grant && room == 0) {
			m->counters.known_full++;
			member_claims_answer(
				m, &claim, claim.kind == CLAIM_CALLED ? CLAIM_NEXT : CLAIM_REFUSED);
			continue;
		}
		room -= is_grant;
		if (claim.kind >= CLAIM_CODE)
			put_code(m, &claim);
		else
			put_claim(m, &claim);
	}
}

// --- the rest

// The smallest key that is held, and until when.
static void put_hold(struct member *m, struct member_inside_line *line)
{
	const struct holds *holds = &line->holds;
	const uint64_t key = holds_first_key(holds, m->now_ms);
	uint64_t end_s = 0;
	for (uint32_t i = 0; key != UINT64_MAX && i < HOLDS_SECONDS; i++) {
		if (holds->keys[i] == key && holds->ends[i] > end_s)
			end_s = holds->ends[i];
	}
	if (key == line->held_key && end_s == line->held_end_s)
		return;
	struct ledger_entry *entry =
		member_batch_add(m, LEDGER_HOLD, line->is.line_id, MEMBER_INSIDE_OTHER);
	if (!entry)
		return;
	line->held_key = key;
	line->held_end_s = end_s;
	entry->hold.key = end_s ? key : 0;
	entry->hold.ms = end_s ? (uint32_t)(end_s * 1000 - m->now_ms) : 0;
}

static void put_records(struct member *m)
{
	const struct ledger_record *record;
	for (uint32_t i = 0; i < MEMBER_BATCH_RECORDS_MAX; i++) {
		struct ledger_entry *entry =
			member_batch_add(m, LEDGER_RECORD, 0, MEMBER_INSIDE_RECORD);
		if (!entry)
			return;
		record = member_records_send(m->records);
		if (!record) {
			member_batch_drop(m);
			return;
		}
		entry->record = *record;
	}
}

static void put_offers(struct member *m)
{
	struct member_inside_batch *batch = m->batch;
	uint32_t room = LEDGER_ENTRIES_MAX - batch->is.count;
	room = room < MEMBER_BATCH_OFFERS_MAX ? room : MEMBER_BATCH_OFFERS_MAX;
	if (!m->seams.offer || room == 0)
		return;
	const uint32_t count = m->seams.offer(m->seams.ctx, &batch->entries[batch->is.count], room);
	assert(count <= room);
	memset(&batch->sources[batch->is.count], MEMBER_INSIDE_OFFER, count);
	batch->is.count += count;
}

// How lines stand, for ourselves; the one in office looks more often, for all.
static void put_views(struct member *m)
{
	uint32_t count = 0;
	for (uint32_t i = 0; i < m->line_count && count < MEMBER_BATCH_VIEWS_MAX; i++) {
		struct member_inside_line *line = &m->lines[i];
		if (m->now_ms < line->asked_ms + MEMBER_VIEW_MS ||
			!member_batch_add(m, LEDGER_VIEW, line->is.line_id, MEMBER_INSIDE_VIEW))
			continue;
		line->asked_ms = m->now_ms;
		count++;
	}
}

static void put_conductors(struct member *m)
{
	struct member_inside_batch *batch = m->batch;
	const uint32_t room = LEDGER_ENTRIES_MAX - batch->is.count;
	if (!m->is_ready || m->is_leaving)
		return;
	const uint32_t count =
		conductor_entries(m->conductor, &batch->entries[batch->is.count], room, m->now_ms);
	memset(&batch->sources[batch->is.count], MEMBER_INSIDE_CONDUCTOR, count);
	batch->is.count += count;
}

bool member_batch_is_idle(const struct member *m)
{
	for (uint32_t i = 0; i < m->line_count; i++) {
		const struct member_inside_line *line = &m->lines[i];
		if (member_slots_untold(line, line->slots_sent) != UINT64_MAX)
			return false;
	}
	return m->claim_first == m->claim_end && m->records->count == 0 &&
	       member_known_unsaid_count(&m->known) == 0;
}

static void put_goodbye(struct member *m)
{
	if (m->is_leaving && member_batch_is_idle(m))
		member_batch_add(m, LEDGER_GOODBYE, 0, MEMBER_INSIDE_GOODBYE);
}

static void put_entries(struct member *m)
{
	member_slots_put(m);
	if (m->has_reply) {
		member_restore_put(m);
		put_configs(m);
		if (member_known_unsaid_count(&m->known) == 0)
			put_claims(m);
		for (uint32_t i = 0; i < m->line_count; i++)
			put_hold(m, &m->lines[i]);
		put_records(m);
		put_offers(m);
		put_views(m);
		member_resync_put(m);
		put_conductors(m);
		member_restore_put_end(m);
		put_goodbye(m);
	}
	member_claims_deliver(m);
}

static void make(struct member *m)
{
	struct member_inside_batch *batch = m->batch;
	const bool is_due = m->now_ms >= m->batch_ms + m->plan.sync_ms ||
			    m->cursor < m->reply.newest || m->batch_ms == 0;
	batch->is.count = 0;
	put_entries(m);
	if (batch->is.count == 0 && !is_due)
		return;
	batch->is.number++;
	batch->is.appliance = m->has_reply ? m->reply.number : m->plan.appliance;
	batch->is.time_ms = m->now_ms;
	batch->is.fence = conductor_fence(m->conductor);
	batch->is.cursor = m->cursor;
	batch->is.applied = m->applied;
	batch->is.closed = m->closed;
	batch->is.writes = m->writes;
	batch->is.gone_ms = m->gone_ms;
	batch->is.entries = batch->entries;
	batch->is_made = true;
	batch->is_sent = false;
	batch->sends = 0;
	m->batch_ms = m->now_ms;
	m->counters.batches++;
}

static void send(struct member *m)
{
	struct member_inside_batch *batch = m->batch;
	memcpy(batch->is.run, m->run, sizeof(m->run));
	if (!m->seams.send(m->seams.ctx, &batch->is))
		return;
	batch->is_sent = true;
	batch->sent_ms = m->now_ms;
	if (batch->sends++ == 0)
		batch->first_ms = m->now_ms;
	else
		m->counters.repeats++;
}

void member_batch_turn(struct member *m)
{
	if (!m->is_connected || m->is_gone || m->now_ms < m->again_ms)
		return;
	if (!m->batch->is_made)
		make(m);
	if (m->batch->is_made && !m->batch->is_sent)
		send(m);
}
