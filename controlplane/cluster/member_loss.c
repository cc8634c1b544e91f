// Loss: each line goes by its `on_loss`. What is granted, ended or given back meanwhile is known
// (member_known.h) and unsaid, so that it is in the first batches when the store is back.
//
// A share of the rate comes from a bucket that is empty when the store goes, and fills by rate /
// live members. Nothing is known of how many others are inside, so capacity limits nothing: that is
// the choice of who configures it, and counted.
//
// Who is called meanwhile: everybody cut off moves on by the whole rate, each grants a part of it,
// and each has a part of the people before the door. When all are called whose places are counted,
// each goes on with tickets of its own, by its part.

#include "controlplane/cluster/member_loss.h"

#include "controlplane/claims/claims.h"
#include "controlplane/cluster/member_claims.h"
#include "controlplane/cluster/member_words.h"

#define OWN_SLOTS_MAX 16u // of a line, called in a turn

static void empty(struct member *m, struct bucket *bucket, const struct pool_limits *limits)
{
	const uint32_t members = m->live_count ? m->live_count : 1;
	*bucket = bucket_make(limits->rate_count, limits->rate_period_ms * members, limits->burst,
		m->now_ms, m->now_ms);
	bucket->level = 0;
}

void member_loss_begin(struct member *m)
{
	m->is_away = true;
	m->away_since_ms = m->now_ms;
	for (uint32_t i = 0; i < m->line_count; i++) {
		struct member_inside_line *line = &m->lines[i];
		line->away_rank = line->is.line->threshold_rank;
		line->away_ms = m->now_ms;
		line->away_slot = line->away_own = 0;
		empty(m, &line->share, &line->is.node.limits);
	}
	for (uint32_t i = 0; i < m->node_count; i++)
		empty(m, &m->nodes[i].share, &m->nodes[i].is.node.limits);
	member_claims_away(m);
	member_words_publish_all(m);
}

void member_loss_over(struct member *m)
{
	m->is_away = false;
	m->away_since_ms = 0;
	member_words_publish_all(m);
}

// The smallest rate above a line, its own included, as people each ms; 0: there is none.
static double rate_of(const struct member *m, const struct member_inside_line *line)
{
	double least = 0;
	const struct ledger_node *node = &line->is.node;
	for (uint32_t i = 0; node && i <= m->node_count; i++) {
		const struct pool_limits *l = &node->limits;
		const double rate = l->rate_count ? (double)l->rate_count / l->rate_period_ms : 0;
		least = rate > 0 && (least == 0 || rate < least) ? rate : least;
		const struct member_inside_node *above = member_inside_node(m, node->parent);
		node = above ? &above->is.node : NULL;
	}
	return least;
}

bool member_loss_grants(const struct member *m, const struct member_inside_line *line)
{
	if (line->is.state != GATE_OPEN || line->is.is_still)
		return false;
	return line->is.on_loss == MEMBER_OPEN ||
	       (line->is.on_loss == MEMBER_SHARE && rate_of(m, line) > 0);
}

uint32_t member_loss_people(struct member *m, struct member_inside_line *line)
{
	if (!member_loss_grants(m, line))
		return 0;
	uint32_t people = member_known_room(&m->known);
	if (line->is.on_loss == MEMBER_OPEN)
		return people;
	struct bucket *share = &line->share;
	uint32_t id = line->is.node.parent;
	for (uint32_t i = 0; share && i <= m->node_count; i++) {
		if (m->now_ms > share->now_ms) // before the first reply the clock may go back
			bucket_refill(share, m->now_ms);
		const uint32_t here = bucket_people(share);
		people = here < people ? here : people;
		struct member_inside_node *above = member_inside_node(m, id);
		share = above ? &above->share : NULL;
		id = above ? above->is.node.parent : 0;
	}
	return people;
}

static void charge(struct member *m, struct member_inside_line *line)
{
	bucket_take(&line->share);
	struct member_inside_node *above = member_inside_node(m, line->is.node.parent);
	for (uint32_t i = 0; above && i < m->node_count; i++) {
		bucket_take(&above->share);
		above = member_inside_node(m, above->is.node.parent);
	}
}

// A session that only we know of.
static bool begin(struct member *m, struct member_inside_line *line, const struct claim *claim,
	struct claim_answer *answer)
{
	const struct member_known_entry is = {.state = MEMBER_KNOWN_TAKEN,
		.visitor = claim->visitor,
		.session = m->seams.session_id(m->seams.ctx),
		.key = claim->kind == CLAIM_CALLED ? claim->key : 0,
		.line = line->is.line_id,
		.expires = (uint32_t)((m->now_ms + 999) / 1000) + line->is.node.session_s,
		.is_granted = true};
	struct member_known_entry *known =
		member_loss_people(m, line) > 0 ? member_known_add(&m->known, &is, true) : NULL;
	if (!known)
		return false;
	if (line->is.on_loss == MEMBER_SHARE)
		charge(m, line);
	member_known_unsaid(&m->known, known, MEMBER_KNOWN_SAY_TAKEN);
	m->counters.granted_away++;
	answer->verdict = CLAIM_GRANTED;
	answer->session = is.session;
	answer->expires = is.expires;
	return true;
}

static void admit(struct member *m, struct member_inside_line *line, const struct claim *claim)
{
	const bool is_called = claim->kind == CLAIM_CALLED;
	struct claim_answer *answer =
		member_claims_answer(m, claim, is_called ? CLAIM_NEXT : CLAIM_REFUSED);
	const struct member_known_entry *known =
		member_known_find(&m->known, line->is.line_id, claim->visitor);
	if (known) {
		const bool is_on =
			known->state == MEMBER_KNOWN_TAKEN && known->expires * 1000ull > m->now_ms;
		answer->verdict = is_on ? CLAIM_GRANTED : CLAIM_LAPSED;
		answer->session = is_on ? known->session : 0;
		answer->expires = is_on ? known->expires : 0;
		return;
	}
	if (is_called && claim->key < line->is.line->floor)
		answer->verdict = CLAIM_LAPSED;
	else if (!is_called || claim->key < line->is.line->threshold)
		begin(m, line, claim, answer);
}

bool member_loss_end(struct member *m, struct member_inside_line *line, const struct claim *claim)
{
	struct member_known_entry *known = member_known_session(&m->known, claim->session);
	if (ended_has(m->ended, claim->session) && known && known->state == MEMBER_KNOWN_ENDED)
		return true; // sent again
	// It may have been renewed since the pass presented.
	const uint32_t renewed = (uint32_t)(m->now_ms / 1000) + line->is.node.session_s + 1;
	const struct member_known_entry is = {.state = MEMBER_KNOWN_ENDED,
		.visitor = claim->visitor,
		.session = claim->session,
		.line = line->is.line_id,
		.expires = claim->expires > renewed ? claim->expires : renewed};
	if (!known)
		known = member_known_add(&m->known, &is, false);
	if (!known || !ended_insert(m->ended, claim->session, is.expires)) {
		m->counters.ended_full++;
		if (known && known->state == MEMBER_KNOWN_ENDED)
			member_known_remove(&m->known, known);
		return false;
	}
	known->state = MEMBER_KNOWN_ENDED;
	member_known_unsaid(&m->known, known, MEMBER_KNOWN_SAY_END);
	return true;
}

static bool leave_ticket(
	struct member *m, struct member_inside_line *line, const struct claim *claim)
{
	struct member_known_entry *known =
		member_known_find(&m->known, line->is.line_id, claim->visitor);
	if (known && known->session != 0) {
		struct claim session = *claim;
		session.session = known->session;
		session.expires = known->expires;
		return known->state == MEMBER_KNOWN_ENDED || member_loss_end(m, line, &session);
	}
	const struct member_known_entry is = {.state = MEMBER_KNOWN_LEFT,
		.visitor = claim->visitor,
		.key = claim->key,
		.line = line->is.line_id};
	if (!known)
		known = member_known_add(&m->known, &is, false);
	if (!known) {
		m->counters.left_refused++;
		return false;
	}
	member_known_unsaid(&m->known, known, MEMBER_KNOWN_SAY_LEAVE);
	m->counters.left_untold += !ended_insert(
		m->left, claim->visitor, (uint32_t)(m->now_ms / 1000) + CLAIMS_KEEP_S);
	return true;
}

void member_loss_give_up(struct member *m, uint32_t line_id, uint64_t key, uint64_t visitor)
{
	struct member_inside_line *line = member_inside_line(m, line_id);
	const struct claim claim = {.kind = CLAIM_LEAVE, .key = key, .visitor = visitor};
	if (line && key != 0)
		leave_ticket(m, line, &claim);
}

static void leave(struct member *m, struct member_inside_line *line, const struct claim *claim)
{
	bool is_left = claim->key == 0 || leave_ticket(m, line, claim);
	if (claim->session != 0)
		is_left &= member_loss_end(m, line, claim);
	member_claims_answer(m, claim, is_left ? CLAIM_LEFT : CLAIM_REFUSED);
}

void member_loss_answer(
	struct member *m, struct member_inside_line *line, const struct claim *claim)
{
	if (claim->kind == CLAIM_LEAVE)
		leave(m, line, claim);
	else if (claim->kind == CLAIM_CALLED || claim->kind == CLAIM_DIRECT)
		admit(m, line, claim);
	else // a pass goes on as it is; no code is spent
		member_claims_answer(m, claim, CLAIM_REFUSED);
}

// The key up to which so many of our own are called, from where all others have been; slot by slot,
// a few each turn.
static uint64_t call_own(struct member_inside_line *line, uint64_t from, uint64_t people)
{
	uint64_t held[OWN_SLOTS_MAX];
	if (line->away_slot < place_slot(from))
		line->away_slot = place_slot(from);
	const uint32_t count = place_told(line->is.line, line->away_slot, held, OWN_SLOTS_MAX);
	for (uint32_t i = 0; i < count; i++) {
		const uint64_t tickets = held[i] & PLACE_SEQ_MAX;
		if (line->away_own + tickets > people)
			break;
		line->away_own += tickets;
		line->away_slot = (held[i] >> 24) + 1;
	}
	return place_key(line->away_slot, 0, 0);
}

void member_loss_turn(struct member *m, struct member_inside_line *line)
{
	if (!m->is_away || !member_loss_grants(m, line))
		return;
	uint64_t rank = UINT64_MAX, counted;
	if (line->is.on_loss == MEMBER_SHARE)
		rank = line->away_rank +
		       (uint64_t)((double)(m->now_ms - line->away_ms) * rate_of(m, line));
	uint64_t key = place_key_at(line->is.line, rank);
	place_rank(line->is.line, key, &counted);
	if (counted != PLACE_UNKNOWN && key == place_key_at(line->is.line, UINT64_MAX) &&
		rank > counted)
		key = call_own(line, key, (rank - counted) / (m->live_count ? m->live_count : 1));
	if (key <= line->threshold)
		return;
	line->threshold = key;
	if (counted != PLACE_UNKNOWN)
		line->threshold_rank = counted;
}
