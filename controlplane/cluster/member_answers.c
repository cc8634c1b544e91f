// Answers: a reply is read twice, once to see that every line of it is sound, so that one that is
// not changes nothing, and once to take it: what the head says of us and of the store; the answers,
// entry by entry as they were asked; then pages and news.

#include "controlplane/cluster/member_answers.h"

#include "controlplane/cluster/ledger_wire.h"
#include "controlplane/cluster/member_claims.h"
#include "controlplane/cluster/member_loss.h"
#include "controlplane/cluster/member_news.h"
#include "controlplane/cluster/member_restore.h"
#include "controlplane/cluster/member_resync.h"
#include "controlplane/cluster/member_slots.h"
#include "controlplane/cluster/member_words.h"
#include "dataplane/gate/ranks.h"

typedef void answered_fn(struct member *m, uint32_t index, const struct ledger_answer *answer);

static bool is_sound(const struct member *m, const char *bytes, size_t len)
{
	struct ledger_wire_reader reader;
	struct ledger_reply reply;
	struct ledger_answer answer;
	struct ledger_member member;
	struct ledger_news news;
	if (!ledger_wire_reply(&reader, bytes, len, &reply))
		return false;
	if (reply.verdict != LEDGER_BATCH_TAKEN)
		return true;
	if (reply.answer_count != m->batch->is.count || reply.number >= LEDGER_MEMBERS_MAX)
		return false;
	for (uint32_t i = 0; i < reply.answer_count; i++) {
		if (!ledger_wire_answer(&reader, &answer) ||
			answer.kind != m->batch->entries[i].kind)
			return false;
	}
	for (uint32_t i = 0; i < reply.member_count; i++) {
		if (!ledger_wire_member(&reader, &member))
			return false;
	}
	for (uint32_t i = 0; i < reply.news_count; i++) {
		if (!ledger_wire_news(&reader, &news))
			return false;
	}
	return true;
}

// --- answers to claims

static void grant(struct member *m, const struct ledger_entry *entry,
	const struct ledger_answer *said, struct claim_answer *answer, enum claim_verdict verdict)
{
	struct ledger_claim is = entry->claim;
	is.session = said->session;
	is.expires = said->expires;
	is.key = entry->kind == LEDGER_CALLED ? is.key : 0;
	member_known_granted(&m->known, entry->line, &is);
	answer->verdict = (uint8_t)verdict;
	answer->session = said->session;
	answer->expires = said->expires;
}

static void called(struct member *m, const struct ledger_entry *entry, const struct claim *claim,
	const struct ledger_answer *said)
{
	if (said->verdict == LEDGER_NEXT && said->poll_after == 1 && member_claims_later(m, claim))
		return;
	struct claim_answer *answer = member_claims_answer(m, claim, CLAIM_NEXT);
	if (said->verdict == LEDGER_GRANTED)
		grant(m, entry, said, answer, CLAIM_GRANTED);
	else if (said->verdict == LEDGER_LAPSED)
		answer->verdict = CLAIM_LAPSED;
	else if (said->verdict == LEDGER_NEXT)
		answer->poll_after = said->poll_after;
}

static void direct(struct member *m, const struct ledger_entry *entry, const struct claim *claim,
	const struct ledger_answer *said)
{
	struct claim_answer *answer = member_claims_answer(m, claim, CLAIM_REFUSED);
	struct member_inside_line *line = member_inside_line(m, entry->line);
	if (said->verdict == LEDGER_GRANTED)
		grant(m, entry, said, answer, CLAIM_GRANTED);
	else if (said->verdict == LEDGER_LAPSED)
		answer->verdict = CLAIM_LAPSED;
	else if (line)
		line->is_full = true;
}

static void renew(struct member *m, const struct ledger_entry *entry, const struct claim *claim,
	const struct ledger_answer *said)
{
	struct claim_answer *answer = member_claims_answer(m, claim, CLAIM_REFUSED);
	if (said->verdict == LEDGER_RENEWED)
		grant(m, entry, said, answer, CLAIM_RENEWED);
	else if (said->verdict == LEDGER_LAPSED)
		answer->verdict = CLAIM_LAPSED;
}

static void claim_answered(struct member *m, uint32_t index, const struct ledger_answer *said)
{
	const struct ledger_entry *entry = &m->batch->entries[index];
	const struct claim *claim = &m->batch->claims[index];
	struct claim_answer *answer = NULL;
	switch (claim->kind) {
	case CLAIM_CALLED:
		called(m, entry, claim, said);
		break;
	case CLAIM_DIRECT:
		direct(m, entry, claim, said);
		break;
	case CLAIM_RENEW:
		renew(m, entry, claim, said);
		break;
	case CLAIM_LEAVE:
		member_claims_answer(
			m, claim, said->verdict == LEDGER_LEFT ? CLAIM_LEFT : CLAIM_REFUSED);
		break;
	case CLAIM_CODE:
	case CLAIM_MOVE:
		answer = member_claims_answer(m, claim, CLAIM_REFUSED);
		answer->session = claim->session;
		m->seams.code_answered(m->seams.ctx, claim, entry, said, answer);
		if (answer->verdict == CLAIM_HONOURED)
			member_loss_give_up(m, claim->expires, claim->place, claim->visitor);
		break;
	default: // a report
		break;
	}
}

// --- answers to the rest

static void slots_answered(struct member *m, uint32_t index, const struct ledger_answer *answer)
{
	member_slots_answered(m, &m->batch->entries[index], answer);
}

static void config_answered(struct member *m, uint32_t index, const struct ledger_answer *answer)
{
	struct member_inside_line *line = member_inside_line(m, m->batch->entries[index].line);
	if (line && answer->verdict == LEDGER_DONE &&
		m->batch->entries[index].config == line->is.node.config)
		line->is_config_said = line->is_known = true;
}

static void view_answered(struct member *m, uint32_t index, const struct ledger_answer *answer)
{
	if (answer->verdict == LEDGER_DONE)
		member_news_view(m, m->batch->entries[index].line, &answer->view);
}

static void read_answered(struct member *m, uint32_t index, const struct ledger_answer *answer)
{
	member_resync_answered(m, &m->batch->entries[index], answer);
}

static void record_answered(struct member *m, uint32_t index, const struct ledger_answer *answer)
{
	const struct ledger_record *record = &m->batch->entries[index].record;
	m->counters.records_refused += answer->verdict != LEDGER_DONE;
	if (m->seams.recorded)
		m->seams.recorded(m->seams.ctx, record->type, record->id,
			(enum ledger_verdict)answer->verdict);
	member_records_take(m->records);
}

static void offer_answered(struct member *m, uint32_t index, const struct ledger_answer *answer)
{
	m->seams.offered(m->seams.ctx, &m->batch->entries[index], answer);
}

static void conductor_answered(struct member *m, uint32_t index, const struct ledger_answer *answer)
{
	conductor_answer(m->conductor, &m->batch->entries[index], answer, m->now_ms);
}

static void goodbye_answered(struct member *m, uint32_t index, const struct ledger_answer *answer)
{
	(void)index;
	(void)answer;
	m->is_gone = true;
}

static void nothing(struct member *m, uint32_t index, const struct ledger_answer *answer)
{
	(void)m;
	(void)index;
	(void)answer;
}

// --- the reply

// What the head says of us: whose number, how late it is, what was lost.
static void take_head(struct member *m, uint64_t sent_ms)
{
	const struct ledger_reply *reply = &m->reply;
	m->refused_since_ms = m->again_ms = 0;
	m->writes = reply->writes > m->writes ? reply->writes : m->writes;
	m->fence = reply->fence > m->fence ? reply->fence : m->fence;
	m->counters.skewed += reply->is_skewed;
	m->round_trip_ms = (uint32_t)(m->now_ms - m->batch->first_ms);
	m->skew_ms = (int64_t)m->batch->is.time_ms - (int64_t)reply->time_ms;
	if (reply->gone_ms > m->gone_ms || !reply->is_recovering)
		m->gone_ms = reply->gone_ms;
	if (!m->has_reply || reply->number != m->number)
		m->seams.numbered(m->seams.ctx, reply->number);
	m->number = reply->number;
	const struct member_time time = {.sent_ms = sent_ms,
		.received_ms = m->now_ms,
		.time_ms = reply->time_ms,
		.raw_ms = reply->raw_ms,
		.correction_ms = reply->correction_ms,
		.is_skewed = reply->is_skewed,
		.is_sound = m->batch->sends == 1};
	if (m->seams.time)
		m->seams.time(m->seams.ctx, &time);
	conductor_reply(m->conductor, reply, m->batch->first_ms, m->now_ms);
	member_restore_look(m);
}

static void take_answers(struct member *m, struct ledger_wire_reader *reader)
{
	static answered_fn *const by_source[] = {
		[MEMBER_INSIDE_OTHER] = nothing,
		[MEMBER_INSIDE_CLAIM] = claim_answered,
		[MEMBER_INSIDE_SLOTS] = slots_answered,
		[MEMBER_INSIDE_RESTORE] = member_restore_answered,
		[MEMBER_INSIDE_KNOWN] = member_restore_answered,
		[MEMBER_INSIDE_CONFIG] = config_answered,
		[MEMBER_INSIDE_VIEW] = view_answered,
		[MEMBER_INSIDE_READ] = read_answered,
		[MEMBER_INSIDE_RECORD] = record_answered,
		[MEMBER_INSIDE_OFFER] = offer_answered,
		[MEMBER_INSIDE_CONDUCTOR] = conductor_answered,
		[MEMBER_INSIDE_RESTORED] = member_restore_answered,
		[MEMBER_INSIDE_GOODBYE] = goodbye_answered,
	};
	for (uint32_t i = 0; i < m->reply.answer_count; i++) {
		struct ledger_answer answer;
		ledger_wire_answer(reader, &answer);
		by_source[m->batch->sources[i]](m, i, &answer);
	}
	member_slots_told(m);
}

static void take_members(struct member *m, struct ledger_wire_reader *reader)
{
	m->member_count = m->reply.member_count;
	m->live_count = 0;
	m->peers = m->reply.is_recovering ? m->peers : 0;
	for (uint32_t i = 0; i < m->member_count; i++) {
		ledger_wire_member(reader, &m->members[i]);
		m->live_count += m->members[i].is_live;
		m->peers |= (uint64_t)m->members[i].is_live << m->members[i].number;
		conductor_member(m->conductor, &m->members[i], m->now_ms);
	}
}

// Of a first reply, and where news are missing, the news that there are say nothing: the state is
// read, from now on.
static void take_news(struct member *m, struct ledger_wire_reader *reader, bool is_first)
{
	const bool is_anew = is_first || m->reply.is_resync;
	if (is_anew)
		m->cursor = m->reply.newest;
	for (uint32_t i = 0; i < m->reply.news_count; i++) {
		struct ledger_news news;
		ledger_wire_news(reader, &news);
		if (news.number == 0 || !is_anew)
			member_news_take(m, &news);
	}
	if (is_anew)
		member_resync_begin(m);
	if (m->reply.final != 0 && m->cursor >= m->reply.cursor) {
		m->final = m->reply.final > m->final ? m->reply.final : m->final;
		for (uint32_t i = 0; i < m->line_count; i++)
			ranks_settle(m->lines[i].is.ranks, m->final);
	}
	member_resync_turn(m);
	member_news_turn(m);
}

static void refused(struct member *m)
{
	m->counters.refused++;
	m->refused = m->reply.verdict;
	m->again_ms = m->now_ms + MEMBER_AGAIN_MS;
	m->batch->is_sent = false;
	if (m->refused_since_ms == 0)
		m->refused_since_ms = m->now_ms;
	member_answers_look(m);
}

bool member_reply(
	struct member *m, const char *bytes, size_t len, uint64_t sent_ms, uint64_t now_ms)
{
	struct ledger_wire_reader reader;
	const bool is_first = !m->has_reply;
	m->now_ms = now_ms;
	if (!m->batch->is_made || !is_sound(m, bytes, len)) {
		m->counters.replies_bad++;
		m->batch->is_sent = false;
		return false;
	}
	const struct ledger_reply before = m->reply;
	ledger_wire_reply(&reader, bytes, len, &m->reply);
	if (m->reply.verdict != LEDGER_BATCH_TAKEN) {
		refused(m);
		m->reply = before;
		return true;
	}
	m->counters.replies++;
	take_head(m, sent_ms);
	m->has_reply = m->has_answered = true;
	take_answers(m, &reader);
	take_members(m, &reader);
	take_news(m, &reader, is_first);
	m->batch->is_made = false;
	member_answers_look(m);
	member_claims_deliver(m);
	member_words_publish_all(m);
	return true;
}

void member_answers_look(struct member *m)
{
	const uint64_t since_ms =
		m->batch->is_made && m->batch->sends > 0 ? m->batch->first_ms : m->now_ms;
	const bool is_mute = m->now_ms > since_ms + MEMBER_AWAY_MS;
	const bool is_away = !m->is_connected || !m->has_reply || m->refused_since_ms != 0 ||
			     is_mute || m->reply.is_recovering || m->is_gone;
	if (is_mute)
		conductor_lost(m->conductor);
	if (is_away && !m->is_away)
		member_loss_begin(m);
	if (!is_away && m->is_away)
		member_loss_over(m);
}
