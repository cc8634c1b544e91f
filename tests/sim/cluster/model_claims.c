// Claims, in the order of the header's sentences.

#include <assert.h>
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

#include "dataplane/gate/pace.h"
#include "tests/sim/cluster/model.h"

static void say(struct model_text *answer, enum ledger_verdict verdict)
{
	model_print(answer, "%d", (int)verdict);
}

static void say_session(
	struct model_text *answer, enum ledger_verdict verdict, const struct model_visitor *v)
{
	model_print(answer, "%d %016" PRIx64 " %" PRIu32, (int)verdict, v->session, v->expires);
}

static struct model_visitor *known_of(struct model_node *line, uint64_t visitor)
{
	for (uint32_t i = 0; i < line->visitors.count; i++) {
		if (line->visitors.at[i].visitor == visitor)
			return &line->visitors.at[i];
	}
	return NULL;
}

static bool is_on(const struct model *m, const struct model_visitor *v)
{
	return v->state == MODEL_ACTIVE && (m->is_skewed || v->expires * 1000ull > m->now_ms);
}

static void say_known(struct model *m, struct model_text *answer, const struct model_visitor *v)
{
	if (is_on(m, v))
		say_session(answer, LEDGER_GRANTED, v);
	else
		say(answer, LEDGER_LAPSED);
}

static int compare(uint64_t a_key, uint64_t a_visitor, uint64_t b_key, uint64_t b_visitor)
{
	if (a_key != b_key)
		return a_key < b_key ? -1 : 1;
	return a_visitor < b_visitor ? -1 : a_visitor > b_visitor;
}

static uint32_t find_place(
	const struct model_place *at, uint32_t count, uint64_t key, uint64_t visitor)
{
	for (uint32_t i = 0; i < count; i++) {
		if (at[i].key == key && at[i].visitor == visitor)
			return i;
	}
	return UINT32_MAX;
}

static uint32_t find_present(const struct model_node *line, uint64_t key, uint64_t visitor)
{
	return find_place(line->present.at, line->present.count, key, visitor);
}

static bool is_left(const struct model_node *line, uint64_t key, uint64_t visitor)
{
	return find_place(line->left.at, line->left.count, key, visitor) != UINT32_MAX;
}

static bool drop_present(struct model_node *line, uint64_t key, uint64_t visitor)
{
	const uint32_t index = find_present(line, key, visitor);
	if (index == UINT32_MAX)
		return false;
	MODEL_REMOVE(line->present, index);
	return true;
}

static bool may_grant(const struct model *m, const struct model_node *line)
{
	const bool is_conflict = line->is.config != 0 && line->config[m->self] != line->is.config;
	return !m->is_skewed && !m->is_recovering && line->is_open && !is_conflict;
}

static uint32_t session_from_now(const struct model *m, const struct model_node *line)
{
	return (uint32_t)((m->now_ms + 999) / 1000) + line->is.session_s;
}

static void begin(struct model *m, struct model_node *line, const struct ledger_claim *claim,
	bool is_direct, struct model_text *answer)
{
	const struct model_visitor v = {
		.visitor = claim->visitor,
		.session = claim->session,
		.key = is_direct ? 0 : claim->key,
		.expires = session_from_now(m, line),
		.state = MODEL_ACTIVE,
	};
	model_charge(m, line, is_direct);
	MODEL_ADD(line->visitors, v);
	line->admitted++;
	line->directs += is_direct;
	say_session(answer, LEDGER_GRANTED, &v);
}

// The key that finds no place goes into `crowded`.
static void crowd_out(struct model *m, struct model_node *line, uint64_t key)
{
	if (m->now_ms < line->crowded_until_ms && key > line->crowded)
		return;
	line->crowded = key;
	line->crowded_until_ms = m->now_ms + LEDGER_CROWDED_MS;
}

static void become_present(
	struct model *m, struct model_node *line, const struct ledger_claim *claim, uint32_t told)
{
	told = claim->poll_after > told ? claim->poll_after : told;
	told = told < PACE_MAX_S ? told : PACE_MAX_S;
	const struct model_place place = {
		claim->key, claim->visitor, m->now_ms + LEDGER_LATER_MS + 2000ull * told};
	const uint32_t index = find_present(line, claim->key, claim->visitor);
	if (index != UINT32_MAX) {
		line->present.at[index] = place;
		return;
	}
	MODEL_ADD(line->present, place);
	if (line->present.count <= line->is.present_max)
		return;
	uint32_t last = 0;
	for (uint32_t i = 1; i < line->present.count; i++) {
		const struct model_place *a = &line->present.at[i], *b = &line->present.at[last];
		if (compare(a->key, a->visitor, b->key, b->visitor) > 0)
			last = i;
	}
	crowd_out(m, line, line->present.at[last].key);
	MODEL_REMOVE(line->present, last);
}

static void called(struct model *m, struct model_node *line, const struct ledger_claim *claim,
	struct model_text *answer)
{
	const struct model_visitor *known = known_of(line, claim->visitor);
	if (known) {
		say_known(m, answer, known);
		return;
	}
	if (claim->key < line->floor || is_left(line, claim->key, claim->visitor)) {
		say(answer, LEDGER_LAPSED);
		return;
	}
	if (!may_grant(m, line) || claim->key >= line->threshold) {
		model_print(answer, "%d %u", LEDGER_NEXT, LEDGER_NEXT_MAX_S);
		return;
	}
	if (find_present(line, claim->key, claim->visitor) == UINT32_MAX) {
		line->came++;
		if (line->came_keys.count < LEDGER_CAME_KEPT_MAX)
			MODEL_ADD(line->came_keys, claim->key);
	}
	uint64_t before = 0;
	for (uint32_t i = 0; i < line->present.count; i++) {
		const struct model_place *p = &line->present.at[i];
		before += compare(p->key, p->visitor, claim->key, claim->visitor) < 0;
	}
	const uint64_t excess = model_excess(m, line, before);
	const bool is_crowded = m->now_ms < line->crowded_until_ms && claim->key > line->crowded;
	if (excess == UINT64_MAX && !is_crowded && model_has_room(m, line, false)) {
		drop_present(line, claim->key, claim->visitor);
		begin(m, line, claim, false, answer);
		return;
	}
	uint64_t poll_after = 1;
	if (excess != UINT64_MAX) {
		const uint64_t room = line->room_ahead > 0 ? line->room_ahead : 1;
		poll_after += excess * line->ahead_ms / room / (line->is.parent ? 4 : 2) / 1000;
	}
	poll_after = poll_after < LEDGER_NEXT_MAX_S ? poll_after : LEDGER_NEXT_MAX_S;
	become_present(m, line, claim, (uint32_t)poll_after);
	model_print(answer, "%d %" PRIu64, LEDGER_NEXT, poll_after);
}

static void direct(struct model *m, struct model_node *line, const struct ledger_claim *claim,
	struct model_text *answer)
{
	const struct model_visitor *known = known_of(line, claim->visitor);
	if (known)
		say_known(m, answer, known);
	else if (line->is.direct && may_grant(m, line) && model_nobody_waits(m, line) &&
		 model_has_room(m, line, true))
		begin(m, line, claim, true, answer);
	else
		say(answer, LEDGER_REFUSED);
}

static void renew(struct model *m, struct model_node *line, const struct ledger_claim *claim,
	struct model_text *answer)
{
	struct model_visitor *known = known_of(line, claim->visitor);
	if (!known || known->session != claim->session || !is_on(m, known)) {
		say(answer, m->is_recovering ? LEDGER_UNKNOWN : LEDGER_LAPSED);
		return;
	}
	const bool is_asked =
		claim->expires == 0 || (line->is.sliding && claim->expires == known->expires);
	const uint32_t expires = session_from_now(m, line);
	if (is_asked && !m->is_skewed && expires > known->expires)
		known->expires = expires;
	say_session(answer, LEDGER_RENEWED, known);
}

static bool has_early(const struct model_node *line, uint64_t session)
{
	for (uint32_t i = 0; i < line->early.count; i++) {
		if (line->early.at[i].session == session)
			return true;
	}
	return false;
}

static void affirm_no_more(struct model *m, struct model_node *line, uint64_t visitor)
{
	for (uint32_t i = 0; i < line->affirmed.count && m->is_recovering; i++) {
		if (line->affirmed.at[i] == visitor) {
			MODEL_REMOVE(line->affirmed, i);
			return;
		}
	}
}

static void affirm(struct model *m, struct model_node *line, uint64_t visitor)
{
	affirm_no_more(m, line, visitor);
	if (m->is_recovering)
		MODEL_ADD(line->affirmed, visitor);
}

// Its pass is refused until then; a slot that it holds is free when all know that.
static void refuse_pass(struct model *m, struct model_node *line, uint64_t session,
	uint32_t expires, struct model_visitor *known)
{
	const struct model_ended ended = {session, expires};
	// The same session id, refused before without its visitor: one pass, one record.
	for (uint32_t i = 0; i < line->early.count; i++) {
		if (line->early.at[i].session == session)
			MODEL_REMOVE(line->early, i);
	}
	MODEL_ADD(line->early, ended);
	const uint64_t news = model_tell(m, "%d %08" PRIx32 " %016" PRIx64 " %" PRIu32,
		LEDGER_NEWS_ENDED, line->id, session, ended.expires);
	if (!known)
		return;
	for (uint32_t i = 0; i < m->endings.count; i++) {
		if (m->endings.at[i].session == session && m->endings.at[i].line == line->id &&
			m->endings.at[i].visitor == known->visitor)
			MODEL_REMOVE(m->endings, i);
	}
	const struct model_ending ending = {news, known->visitor, session, line->id};
	affirm_no_more(m, line, known->visitor);
	known->state = MODEL_ENDING;
	known->expires = expires;
	MODEL_ADD(m->endings, ending);
}

// Returns false if ended_max is met.
static bool end_session(struct model *m, struct model_node *line, uint64_t visitor,
	uint64_t session, uint32_t expires)
{
	struct model_visitor *known = known_of(line, visitor);
	if (known && known->session != session)
		known = NULL;
	if (known && !is_on(m, known))
		return true;
	if (!known && ((!m->is_skewed && expires <= m->now_ms / 1000) || has_early(line, session)))
		return true;
	if (line->early.count >= line->is.ended_max)
		return false;
	refuse_pass(m, line, session, known && known->expires > expires ? known->expires : expires,
		known);
	return true;
}

static void end(struct model *m, struct model_node *line, const struct ledger_claim *claim,
	struct model_text *answer)
{
	const bool is_done = end_session(m, line, claim->visitor, claim->session, claim->expires);
	say(answer, is_done ? LEDGER_DONE : LEDGER_FULL);
}

static void give_ticket_back(
	struct model *m, struct model_node *line, const struct ledger_claim *claim)
{
	if (claim->key < line->floor || is_left(line, claim->key, claim->visitor) ||
		line->left.count >= line->is.left_max)
		return;
	const struct model_place place = {claim->key, claim->visitor, 0};
	drop_present(line, claim->key, claim->visitor);
	MODEL_ADD(line->left, place);
	model_tell(m, "%d %08" PRIx32 " %016" PRIx64 " %016" PRIx64, LEDGER_NEWS_LEFT, line->id,
		claim->key, claim->visitor);
}

static void leave(struct model *m, struct model_node *line, const struct ledger_claim *claim,
	struct model_text *answer)
{
	const struct model_visitor *known = known_of(line, claim->visitor);
	bool is_done = true;
	if (claim->key != 0 && known)
		is_done = end_session(m, line, claim->visitor, known->session, known->expires);
	else if (claim->key != 0)
		give_ticket_back(m, line, claim);
	if (claim->session != 0)
		is_done &= end_session(m, line, claim->visitor, claim->session, claim->expires);
	say(answer, is_done ? LEDGER_LEFT : LEDGER_FULL);
}

static void gone(struct model *m, struct model_node *line, const struct ledger_claim *claim,
	struct model_text *answer)
{
	(void)m;
	const struct model_visitor *known = known_of(line, claim->visitor);
	if (known && known->session == claim->session && known->state == MODEL_ACTIVE &&
		known->key == 0) {
		MODEL_REMOVE(line->visitors, (uint32_t)(known - line->visitors.at));
		line->undone++;
	}
	say(answer, LEDGER_DONE);
}

// A session that is known, as a member knows it: the later end is that of its pass.
static void taken_again(struct model *m, struct model_node *line, struct model_visitor *known,
	const struct ledger_claim *claim)
{
	const bool is_later = claim->expires > known->expires;
	if (known->key == 0)
		known->key = claim->key;
	if (known->state == MODEL_ACTIVE) {
		known->expires = is_later ? claim->expires : known->expires;
		affirm(m, line, claim->visitor);
		return;
	}
	if (!is_later || claim->expires <= m->now_ms / 1000)
		return;
	const bool is_ending = known->state == MODEL_ENDING;
	if (is_ending || has_early(line, known->session)) {
		refuse_pass(m, line, known->session, claim->expires, is_ending ? known : NULL);
		return;
	}
	known->state = MODEL_ACTIVE; // it seemed to be over
	known->expires = claim->expires;
	affirm(m, line, claim->visitor);
}

static void taken(struct model *m, struct model_node *line, const struct ledger_claim *claim,
	struct model_text *answer)
{
	struct model_visitor *known = known_of(line, claim->visitor);
	if (known) {
		const bool is_same = known->session == claim->session;
		if (is_same)
			taken_again(m, line, known, claim);
		say(answer, is_same ? LEDGER_DONE : LEDGER_LAPSED);
		return;
	}
	const bool is_over = claim->expires <= m->now_ms / 1000;
	const struct model_visitor v = {claim->visitor, claim->session, claim->key, claim->expires,
		is_over ? MODEL_OVER : MODEL_ACTIVE};
	if (!is_over || (claim->key != 0 && claim->key >= line->floor)) {
		drop_present(line, claim->key, claim->visitor);
		MODEL_ADD(line->visitors, v);
	}
	if (!is_over)
		affirm(m, line, claim->visitor);
	say(answer, LEDGER_DONE);
}

void model_claim(struct model *m, const struct ledger_entry *entry, struct model_text *answer)
{
	static void (*const by_kind[])(struct model *, struct model_node *,
		const struct ledger_claim *, struct model_text *) = {
		[LEDGER_CALLED] = called,
		[LEDGER_DIRECT] = direct,
		[LEDGER_RENEW] = renew,
		[LEDGER_END] = end,
		[LEDGER_LEAVE] = leave,
		[LEDGER_GONE] = gone,
		[LEDGER_TAKEN] = taken,
	};
	struct model_node *line = model_line(m, entry->line);
	if (!line)
		say(answer, LEDGER_UNKNOWN);
	else
		by_kind[entry->kind](m, line, &entry->claim, answer);
}
