// News: sets, words and ranks. They are taken in order, each once: by a reply, or as it is
// published if it is the very next; so the two ways do not race.
//
// `applied` follows `cursor` by a barrier: every worker that passes a quiescent state after it has
// begun looks at the sets as they are then. One barrier is under way at a time; news that workers
// need not know of pass without. What the state says that is being read is in force when it has
// been read, and not before, whatever the cursor says.

#include "controlplane/cluster/member_news.h"

#include "controlplane/claims/claims.h"
#include "controlplane/cluster/ledger_wire.h"
#include "controlplane/cluster/member_slots.h"
#include "controlplane/cluster/member_words.h"
#include "dataplane/gate/gather.h"
#include "dataplane/gate/ranks.h"

typedef void take_fn(struct member *m, const struct ledger_news *news);

static void ended(struct member *m, const struct ledger_news *news)
{
	m->is_barrier_due = true;
	if (news->session == 0 || (uint64_t)news->expires * 1000 <= m->now_ms)
		return;
	m->counters.ended_full += !ended_insert(m->ended, news->session, news->expires);
	struct member_known_entry *known = member_known_session(&m->known, news->session);
	// Whoever it was that ended: after a loss it is refused again. Whose it is, is not told.
	const struct member_known_entry others = {.state = MEMBER_KNOWN_ENDED,
		.visitor = news->session,
		.session = news->session,
		.line = news->line,
		.expires = news->expires};
	if (!known)
		known = member_known_add(&m->known, &others, false);
	if (known) {
		known->state = MEMBER_KNOWN_ENDED;
		known->is_told = true;
	}
}

// Who left before the draw has a key from now on, up to which it is remembered.
void member_news_placed(
	struct member *m, uint32_t line_id, uint64_t visitor, uint64_t was, uint64_t key)
{
	struct member_known_entry *known = member_known_find(&m->known, line_id, visitor);
	conductor_left_placed(m->conductor, line_id, visitor, was, key);
	if (!known || known->state != MEMBER_KNOWN_LEFT || known->key != was)
		return;
	known->key = key;
}

// The set forgets a visitor when floor has passed the key; so it is remembered, or not told.
static void left(struct member *m, const struct ledger_news *news)
{
	m->is_barrier_due = true;
	struct member_known_entry *known = member_known_find(&m->known, news->line, news->visitor);
	if (known && known->state == MEMBER_KNOWN_LEFT && known->key & GATHER_NUMBER)
		member_news_placed(m, news->line, news->visitor, known->key, news->key);
	if (news->key == 0)
		return; // there is no such ticket any more
	conductor_left(m->conductor, news->line, news->key, news->visitor);
	const struct member_inside_line *line = member_inside_line(m, news->line);
	if (!line || news->key < line->is.line->floor || news->visitor == 0 || known)
		return;
	const struct member_known_entry is = {.state = MEMBER_KNOWN_LEFT,
		.visitor = news->visitor,
		.key = news->key,
		.line = news->line};
	const uint32_t until_s = (uint32_t)(m->now_ms / 1000) + CLAIMS_KEEP_S;
	m->counters.left_untold += !member_known_add(&m->known, &is, false) ||
				   !ended_insert(m->left, news->visitor, until_s);
}

static void note_age(struct member *m, uint64_t decided_ms)
{
	const uint64_t age_ms = m->now_ms > decided_ms ? m->now_ms - decided_ms : 0;
	if (decided_ms == 0)
		return;
	m->ages[age_ms < MEMBER_AGES ? age_ms : MEMBER_AGES - 1]++;
	m->age_count++;
}

static void threshold(struct member *m, const struct ledger_news *news)
{
	struct member_inside_line *line = member_inside_line(m, news->line);
	if (!line)
		return;
	const uint64_t final = place_slot(news->threshold);
	m->final = final > m->final ? final : m->final;
	ranks_settle(line->is.ranks, final);
	if (news->threshold >= line->threshold) {
		line->threshold = news->threshold;
		line->threshold_rank = news->threshold_rank;
	}
	if (news->floor >= line->floor) {
		line->floor = news->floor;
		line->floor_rank = news->floor_rank;
	}
	line->words = news->words;
	line->is_open = news->is_open;
	line->is_full = false;
	member_words_publish(m, line);
	if (news->number != 0)
		note_age(m, news->words.at_ms);
}

void member_news_view(struct member *m, uint32_t line_id, const struct ledger_view *view)
{
	struct member_inside_line *line = member_inside_line(m, line_id);
	if (!line)
		return;
	line->view = *view;
	line->view_ms = m->now_ms;
	const uint32_t capacity = line->is.node.limits.capacity;
	// While writes that were lost are made good, `taken` is more than those inside: the end of
	// a session comes back later than the session, and from somebody else.
	const bool is_exact = !m->reply.is_recovering && view->lost == 0;
	if (is_exact && capacity > 0 && view->taken > capacity &&
		view->taken - capacity > line->over_max)
		line->over_max = view->taken - capacity;
	if (!m->is_resyncing)
		return; // news are ahead of it
	const struct ledger_news news = {.line = line_id,
		.threshold = view->threshold,
		.floor = view->floor,
		.threshold_rank = view->threshold_rank,
		.floor_rank = view->floor_rank,
		.words = view->words,
		.is_open = view->is_open};
	threshold(m, &news);
}

static void slots(struct member *m, const struct ledger_news *news)
{
	const struct member_inside_line *line = member_inside_line(m, news->line);
	if (!line)
		return;
	if (!ranks_told(line->is.ranks, news->member, news->held, news->count))
		m->again_resync_ms = m->now_ms + MEMBER_RESYNC_AGAIN_MS;
	if (news->number != 0) // of a page it is the answer that says it
		ranks_sum(line->is.ranks, news->number, news->total);
}

static void record(struct member *m, const struct ledger_news *news)
{
	m->is_barrier_due = true;
	m->seams.record(m->seams.ctx, news->type, news->id, news->bytes, news->count);
}

static void gathered(struct member *m, const struct ledger_news *news)
{
	if (news->number == 0 && m->seams.gathered)
		m->seams.gathered(m->seams.ctx, news);
}

static void nothing(struct member *m, const struct ledger_news *news)
{
	(void)m; // members and conductor are in the head of each reply
	(void)news;
}

bool member_news_take(struct member *m, const struct ledger_news *news)
{
	static take_fn *const by_kind[LEDGER_NEWS_KINDS] = {
		[LEDGER_NEWS_ENDED] = ended,
		[LEDGER_NEWS_LEFT] = left,
		[LEDGER_NEWS_THRESHOLD] = threshold,
		[LEDGER_NEWS_SLOTS] = slots,
		[LEDGER_NEWS_MEMBER] = nothing,
		[LEDGER_NEWS_CONDUCTOR] = nothing,
		[LEDGER_NEWS_RECORD] = record,
		[LEDGER_NEWS_GATHERED] = gathered,
	};
	if (news->number != 0 && news->number != m->cursor + 1)
		return false;
	if (news->kind < LEDGER_NEWS_KINDS)
		by_kind[news->kind](m, news);
	if (news->number != 0)
		m->cursor = news->number;
	m->counters.news++;
	return true;
}

bool member_news(struct member *m, const char *bytes, size_t len, uint64_t now_ms)
{
	struct ledger_wire_reader reader = {bytes, bytes + len};
	struct ledger_news news;
	m->now_ms = now_ms;
	while (reader.at < reader.end) {
		if (!ledger_wire_news(&reader, &news)) {
			m->counters.replies_bad++;
			return false;
		}
		// Before the first reply nothing is next.
		if (m->has_reply && news.number != 0 && !m->is_away)
			member_news_take(m, &news);
	}
	member_news_turn(m);
	return true;
}

void member_news_turn(struct member *m)
{
	if (m->has_barrier && m->seams.barrier_passed(m->seams.ctx, m->barrier)) {
		m->applied = m->barrier_cursor;
		m->has_barrier = false;
	}
	if (m->has_barrier || m->applied == m->cursor || m->is_resyncing)
		return;
	if (!m->is_barrier_due) {
		m->applied = m->cursor;
		return;
	}
	m->is_barrier_due = false;
	m->has_barrier = true;
	m->barrier_cursor = m->cursor;
	m->barrier = m->seams.barrier_begin(m->seams.ctx);
}
