// Claims: a ring that is emptied into batches. While the store is away nothing that is answered
// waits in it: such claims are answered by what the line does then (member_loss.h).
//
// A session that ends is refused by our own workers at once, and is remembered as ended, and that
// is what the ledger is told of; so it does not matter whether the store is there.

#include "controlplane/cluster/member_claims.h"

#include <assert.h>
#include <string.h>

#include "controlplane/cluster/member_loss.h"
#include "dataplane/gate/gather.h"

#define RING (MEMBER_CLAIMS_MAX + LEDGER_ENTRIES_MAX)

typedef void take_fn(struct member *m, struct member_inside_line *line, const struct claim *claim);

uint32_t member_room(const struct member *m)
{
	const uint64_t used = m->claim_end - m->claim_first;
	return used < MEMBER_CLAIMS_MAX ? MEMBER_CLAIMS_MAX - (uint32_t)used : 0;
}

struct claim_answer *member_claims_answer(
	struct member *m, const struct claim *claim, enum claim_verdict verdict)
{
	struct claim_answer *answer = claims_answers_add(m->answers, claim, verdict);
	answer->issued = (uint32_t)(m->now_ms / 1000);
	if (verdict == CLAIM_NEXT)
		answer->poll_after = LEDGER_NEXT_MAX_S;
	return answer;
}

bool member_claims_keep(struct member *m, const struct claim *claim)
{
	if (m->claim_end - m->claim_first == RING) {
		m->counters.unsaid++;
		return false;
	}
	m->claims[m->claim_end++ % RING] = *claim;
	return true;
}

static bool is_asking(uint8_t kind)
{
	return kind == CLAIM_CALLED || kind == CLAIM_DIRECT || kind == CLAIM_RENEW ||
	       kind == CLAIM_LEAVE || kind == CLAIM_CODE || kind == CLAIM_MOVE;
}

void member_claims_hold(
	struct member *m, uint32_t line_id, uint64_t key, uint32_t poll_after, uint64_t now_ms)
{
	struct member_inside_line *line = member_inside_line(m, line_id);
	if (line && key != 0)
		holds_add(&line->holds, key, 2 * poll_after, now_ms);
}

// Its worker has given up waiting for it. What was to be done all the same still is.
static bool is_late(struct member *m, const struct claim *claim)
{
	if (claim->kind == CLAIM_LEAVE || !is_asking(claim->kind) ||
		m->now_ms <= claim->sent_ms + MEMBER_LATE_MS)
		return false;
	m->counters.late++;
	if (claim->kind == CLAIM_CALLED)
		member_claims_hold(m, claim->line_id, claim->key, claim->poll_after, m->now_ms);
	return true;
}

bool member_claims_next(struct member *m, struct claim *claim)
{
	while (m->claim_first < m->claim_end) {
		*claim = m->claims[m->claim_first++ % RING];
		if (!is_late(m, claim))
			return true;
	}
	return false;
}

// --- by kind

static void ask(struct member *m, struct member_inside_line *line, const struct claim *claim)
{
	if (is_late(m, claim))
		return;
	if (m->is_away)
		member_loss_answer(m, line, claim);
	else if (!member_claims_keep(m, claim))
		member_claims_answer(
			m, claim, claim->kind == CLAIM_CALLED ? CLAIM_NEXT : CLAIM_REFUSED);
}

static void called(struct member *m, struct member_inside_line *line, const struct claim *claim)
{
	m->counters.called++;
	if (line->is.state == GATE_CLOSED)
		member_claims_answer(m, claim, CLAIM_CLOSED);
	else
		ask(m, line, claim);
}

static void direct(struct member *m, struct member_inside_line *line, const struct claim *claim)
{
	m->counters.direct++;
	if (line->is.state == GATE_CLOSED)
		member_claims_answer(m, claim, CLAIM_CLOSED);
	else
		ask(m, line, claim);
}

static void renew(struct member *m, struct member_inside_line *line, const struct claim *claim)
{
	m->counters.renew++;
	ask(m, line, claim);
}

static void end(struct member *m, struct member_inside_line *line, const struct claim *claim)
{
	m->counters.end++;
	if (claim->session != 0)
		member_loss_end(m, line, claim);
}

// The ledger finds a session by who has it: where that is not who has the ticket, its end is said
// apart, before the ticket is given back.
static void leave(struct member *m, struct member_inside_line *line, const struct claim *claim)
{
	m->counters.leave++;
	struct claim known = *claim, passed = *claim;
	if (claim->session != 0 && claim->place != 0) {
		passed.visitor = claim->place;
		known.session = 0;
		if (!member_loss_end(m, line, &passed)) {
			member_claims_answer(m, claim, CLAIM_REFUSED);
			return;
		}
	}
	ask(m, line, &known);
}

static void gone(struct member *m, struct member_inside_line *line, const struct claim *claim)
{
	m->counters.gone++;
	struct member_known_entry *known =
		member_known_find(&m->known, line->is.line_id, claim->visitor);
	if (known && known->session == claim->session && known->key == 0) {
		// Granted while the store was away, and not said yet: it never was.
		const bool is_ours = known->unsaid & MEMBER_KNOWN_SAY_TAKEN && m->is_away;
		member_known_remove(&m->known, known);
		if (is_ours)
			return;
	}
	member_claims_keep(m, claim);
}

static void passed(struct member *m, struct member_inside_line *line, const struct claim *claim)
{
	(void)claim;
	m->counters.passed++;
	line->passed++;
}

static void code(struct member *m, struct member_inside_line *line, const struct claim *claim)
{
	m->counters.codes += claim->kind == CLAIM_CODE;
	ask(m, line, claim);
}

// What a code gave reached nobody: its place is nobody's.
static void code_gone(struct member *m, struct member_inside_line *line, const struct claim *claim)
{
	(void)line;
	member_loss_give_up(m, claim->expires, claim->place, claim->visitor);
	member_claims_keep(m, claim);
}

static void take(struct member *m, const struct claim *claim)
{
	static take_fn *const by_kind[] = {
		[CLAIM_CALLED] = called,
		[CLAIM_DIRECT] = direct,
		[CLAIM_RENEW] = renew,
		[CLAIM_END] = end,
		[CLAIM_LEAVE] = leave,
		[CLAIM_GONE] = gone,
		[CLAIM_PASSED] = passed,
		[CLAIM_CODE] = code,
		[CLAIM_CODE_GONE] = code_gone,
		[CLAIM_MOVE] = code,
	};
	assert(claim->worker < m->plan.workers_max);
	assert(claim->kind > 0 && claim->kind <= CLAIM_MOVE);
	struct member_inside_line *line =
		claim->room < m->line_count && m->lines[claim->room].is.line_id == claim->line_id
			? &m->lines[claim->room]
			: member_inside_line(m, claim->line_id);
	if (line) {
		by_kind[claim->kind](m, line, claim);
		return;
	}
	m->counters.unknown_room++;
	if (is_asking(claim->kind))
		member_claims_answer(m, claim, CLAIM_REFUSED);
}

void member_claims(struct member *m, const struct claim *claims, uint32_t count, uint64_t now_ms)
{
	assert(count <= member_room(m));
	m->now_ms = now_ms;
	for (uint32_t i = 0; i < count; i++)
		take(m, &claims[i]);
	member_claims_deliver(m);
}

void member_refused(
	struct member *m, uint32_t line_id, uint64_t key, uint32_t poll_after, uint64_t now_ms)
{
	member_claims_hold(m, line_id, key, poll_after, now_ms);
}

bool member_claims_later(struct member *m, const struct claim *claim)
{
	uint64_t due_ms = m->now_ms + MEMBER_LATER_STEP_MS + m->later_count;
	if (m->later_count > 0 && m->later[m->later_count - 1].due_ms > due_ms)
		due_ms = m->later[m->later_count - 1].due_ms;
	if (m->later_count == MEMBER_LATER_MAX || due_ms > claim->sent_ms + MEMBER_LATER_MS)
		return false;
	m->later[m->later_count++] = (struct member_inside_later){*claim, due_ms};
	m->counters.later++;
	return true;
}

// The first is due first.
bool member_claims_due(struct member *m, struct claim *claim)
{
	if (m->later_count == 0 || m->now_ms < m->later[0].due_ms)
		return false;
	*claim = m->later[0].claim;
	memmove(&m->later[0], &m->later[1], --m->later_count * sizeof(m->later[0]));
	return true;
}

void member_claims_away(struct member *m)
{
	for (uint32_t i = 0; i < m->later_count; i++)
		member_claims_answer(m, &m->later[i].claim, CLAIM_NEXT);
	m->later_count = 0;
	const uint64_t end = m->claim_end;
	while (m->claim_first < end) {
		const struct claim claim = m->claims[m->claim_first++ % RING];
		struct member_inside_line *line = member_inside_line(m, claim.line_id);
		if (line && is_asking(claim.kind))
			ask(m, line, &claim);
		else if (line)
			member_claims_keep(m, &claim);
	}
	member_claims_deliver(m);
}

// --- out

// As of claims.c: whoever holds a ticket or a link asks again, and a called session stays.
static void undelivered(void *ctx, const struct claim_answer *answer)
{
	struct member *m = ctx;
	m->counters.undelivered++;
	struct claim gone = {.room = answer->room,
		.line_id = answer->line_id,
		.visitor = answer->visitor,
		.session = answer->session,
		.sent_ms = m->now_ms};
	if (answer->kind == CLAIM_DIRECT && answer->verdict == CLAIM_GRANTED) {
		gone.kind = CLAIM_GONE;
		take(m, &gone);
	}
	if (answer->verdict != CLAIM_HONOURED || !(answer->expires & CLAIM_PLACE_NOBODYS))
		return;
	gone.kind = CLAIM_CODE_GONE;
	gone.key = answer->session;
	gone.session = answer->digest;
	gone.expires = answer->lane_id;
	gone.place = answer->key | (answer->expires & CLAIM_PLACE_GATHERED ? GATHER_NUMBER : 0);
	take(m, &gone);
}

void member_claims_deliver(struct member *m)
{
	const struct claims_seams seams = {.ctx = m->seams.ctx, .answer = m->seams.answer};
	for (uint32_t i = 0; i < m->answers->count; i++) {
		const struct claim_answer *answer = &m->answers->answers[i];
		m->counters.granted += answer->verdict == CLAIM_GRANTED;
	}
	if (m->answers->count > 0)
		claims_answers_deliver(m->answers, &seams, undelivered, m);
}
