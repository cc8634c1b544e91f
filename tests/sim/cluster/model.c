// Model: a batch as a whole, in the order of the header; members, losses, news, the reply.

#include "tests/sim/cluster/model.h"

#include <assert.h>
#include <inttypes.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "dataplane/gate/place.h"

void model_print(struct model_text *text, const char *format, ...)
{
	va_list list;
	va_start(list, format);
	const int len = vsnprintf(NULL, 0, format, list);
	va_end(list);
	assert(len >= 0);
	if (text->used + (size_t)len + 1 > text->max) {
		text->max = 2 * (text->used + (size_t)len + 1);
		text->at = realloc(text->at, text->max);
		assert(text->at);
	}
	va_start(list, format);
	vsnprintf(text->at + text->used, text->max - text->used, format, list);
	va_end(list);
	text->used += (size_t)len;
}

static void clear(struct model_text *text)
{
	text->used = 0;
	model_print(text, "%s", "");
}

uint64_t model_tell(struct model *m, const char *format, ...)
{
	struct model_text line = {0};
	char *what = NULL;
	va_list list;
	va_start(list, format);
	const int len = vasprintf(&what, format, list);
	va_end(list);
	assert(len >= 0);
	m->news++;
	model_print(&line, "%" PRIu64 " %s", m->news, what);
	model_print(&m->told, "%s%s", m->told.used > 0 ? "\n" : "", line.at);
	free(what);
	free(m->log[m->news % LEDGER_NEWS_MAX]);
	m->log[m->news % LEDGER_NEWS_MAX] = line.at;
	return m->news;
}

void model_init(struct model *m)
{
	*m = (struct model){.conductor = LEDGER_MEMBERS_MAX};
	clear(&m->told);
}

void model_fini(struct model *m)
{
	for (uint32_t i = 0; i < LEDGER_MEMBERS_MAX; i++)
		free(m->members[i].reply);
	for (struct model_node *n = m->nodes; n < m->nodes + MODEL_NODES_MAX; n++) {
		free(n->visitors.at);
		free(n->present.at);
		free(n->affirmed.at);
		free(n->left.at);
		free(n->early.at);
		for (uint32_t i = 0; i < n->gathered.count; i++)
			free(n->gathered.at[i].ids.at);
		free(n->gathered.at);
		free(n->uses.at);
		free(n->came_keys.at);
		for (uint32_t i = 0; i < LEDGER_MEMBERS_MAX; i++)
			free(n->slots[i].at);
	}
	for (uint32_t i = 0; i < MODEL_TYPES; i++)
		free(m->records[i].at);
	for (uint32_t i = 0; i < LEDGER_NEWS_MAX; i++)
		free(m->log[i]);
	free(m->endings.at);
	free(m->pages.at);
	free(m->told.at);
}

// --- who sends

static bool is_near(const struct model *m, uint64_t ms, uint64_t span)
{
	return (m->raw_ms > ms ? m->raw_ms - ms : ms - m->raw_ms) < span;
}

static bool is_known(const struct model *m, uint32_t number)
{
	return m->members[number].name[0] != '\0';
}

static uint32_t number_of(const struct model *m, const char *name)
{
	uint32_t n = 0;
	while (n < LEDGER_MEMBERS_MAX && strcmp(m->members[n].name, name) != 0)
		n++;
	return n;
}

static bool has_passed(const struct model *m, uint32_t number)
{
	for (const struct model_node *n = m->nodes; n < m->nodes + MODEL_NODES_MAX; n++) {
		if (n->id != 0 && n->totals[number] > 0 &&
			place_slot(n->floor) < m->members[number].closed)
			return false;
	}
	return true;
}

static void forget(struct model *m, uint32_t number)
{
	for (struct model_node *n = m->nodes; n < m->nodes + MODEL_NODES_MAX; n++) {
		n->before += n->totals[number];
		n->totals[number] = n->config[number] = n->slots[number].count = 0;
		n->has_config[number] = false;
		n->holds[number] = (struct model_hold){0};
		n->last[number] = 0;
	}
	free(m->members[number].reply);
	m->members[number] = (struct model_member){0};
}

// LEDGER_MEMBERS_MAX: there is none.
static uint32_t find_number(struct model *m, const struct ledger_batch *b)
{
	if (b->appliance < LEDGER_MEMBERS_MAX && !is_known(m, b->appliance))
		return b->appliance;
	if (m->is_recovering)
		return LEDGER_MEMBERS_MAX;
	for (uint32_t n = 0; n < LEDGER_MEMBERS_MAX; n++) {
		if (!is_known(m, n))
			return n;
	}
	for (uint32_t n = 0; n < LEDGER_MEMBERS_MAX; n++) {
		if (!m->members[n].is_live && has_passed(m, n)) {
			forget(m, n);
			return n;
		}
	}
	return LEDGER_MEMBERS_MAX;
}

// Cluster time has not been less.
static int64_t told_ms(const struct model *m)
{
	const int64_t seen_ms = (int64_t)m->seen_ms;
	return m->time_ms < seen_ms - LEDGER_SKEW_MS ? seen_ms : m->time_ms;
}

static char *refuse(const struct model *m, const struct ledger_batch *b, int verdict)
{
	struct model_text text = {0};
	model_print(&text,
		"1 %d 0 0 0 %u %u 0 0 0 %" PRIu64 " %" PRIu64 " %" PRId64 " %" PRIu64 " %" PRId64
		" 0 0 0 0 0",
		verdict, b->appliance, LEDGER_MEMBERS_MAX, b->cursor, m->news, told_ms(m),
		m->raw_ms, m->correction_ms);
	return text.at;
}

// --- writes that were lost

#define DAY_MS 86400000u

void model_unsure(struct model *m, uint64_t ms)
{
	m->gone_ms = ms > m->gone_ms ? ms : m->gone_ms;
	m->unsure_ms = ms > m->unsure_ms ? ms : m->unsure_ms;
}

void model_back(struct model *m, uint32_t number)
{
	const uint64_t bit = UINT64_C(1) << number;
	if (m->is_recovering || !(m->missing & bit))
		return;
	m->missing &= ~bit;
	if (m->missing == 0)
		m->unsure_ms = m->surely_ms;
}

void model_went(struct model *m, uint64_t ms)
{
	if (m->is_recovering && ms > m->gone_before_ms)
		model_unsure(m, ms);
	m->gone_ms = ms > m->gone_ms ? ms : m->gone_ms;
}

static void look_for_losses(struct model *m, const struct ledger_batch *b, uint32_t self)
{
	for (uint32_t n = 0; n < LEDGER_MEMBERS_MAX; n++) {
		const struct model_member *member = &m->members[n];
		if (is_known(m, n) && n != self && !member->is_live && !member->has_left)
			model_went(m, member->at_ms);
	}
	const bool is_unheard = self == LEDGER_MEMBERS_MAX && b->gone_ms > m->gone_ms &&
				b->gone_ms + DAY_MS > m->now_ms;
	const bool is_lost = b->writes > m->writes || is_unheard ||
			     (m->writes > 0 && strcmp(b->run, m->run) != 0);
	if (is_lost) {
		m->epoch = m->epoch + 1 > m->raw_ms ? m->epoch + 1 : m->raw_ms;
		m->is_recovering = true;
		m->gone_before_ms = m->gone_ms;
		m->peers = m->missing = 0;
		m->since_ms = m->raw_ms;
		m->conductor = LEDGER_MEMBERS_MAX;
		m->conductor_is = m->until_ms = 0;
		m->writes = b->writes > m->writes ? b->writes : m->writes;
		for (uint32_t i = 0; i < MODEL_NODES_MAX; i++)
			m->nodes[i].affirmed.count = 0;
	}
	snprintf(m->run, sizeof(m->run), "%s", b->run);
	if (m->is_recovering)
		model_went(m, b->gone_ms);
	if (is_lost || b->cursor > m->news) {
		m->news = (b->cursor > m->news ? b->cursor : m->news) + LEDGER_NEWS_MAX + 1;
		m->jumped = m->news;
	}
}

static void look_for_end(struct model *m, uint32_t self)
{
	uint64_t missing = 0;
	if (!m->is_recovering || m->is_skewed || is_near(m, m->since_ms, LEDGER_RECOVER_MS))
		return;
	for (uint32_t n = 0; n < LEDGER_MEMBERS_MAX; n++) {
		const struct model_member *member = &m->members[n];
		if (!is_known(m, n))
			missing |= m->peers & UINT64_C(1) << n;
		if (!is_known(m, n) || member->restored == m->epoch || member->has_left)
			continue;
		if (member->is_live || n == self)
			return;
		missing |= UINT64_C(1) << n;
	}
	m->surely_ms = m->unsure_ms;
	m->missing = missing;
	if (missing != 0)
		model_unsure(m, m->now_ms);
	m->is_recovering = false;
}

// --- the batch

static void set_time(struct model *m, const struct ledger_batch *b, uint64_t raw_ms)
{
	m->raw_ms = raw_ms;
	m->time_ms = (int64_t)raw_ms + m->correction_ms;
	const int64_t difference = (int64_t)b->time_ms - m->time_ms;
	m->is_skewed = difference > LEDGER_SKEW_MS || difference < -(int64_t)LEDGER_SKEW_MS ||
		       m->time_ms < (int64_t)m->seen_ms - LEDGER_SKEW_MS;
	if (!m->is_skewed && m->time_ms > (int64_t)m->seen_ms)
		m->seen_ms = (uint64_t)m->time_ms;
	m->now_ms = m->seen_ms;
	m->self_ms = m->is_skewed && b->time_ms > m->now_ms ? b->time_ms : m->now_ms;
	for (uint32_t n = 0; n < LEDGER_MEMBERS_MAX; n++) {
		struct model_member *member = &m->members[n];
		member->is_live = is_known(m, n) && !member->has_left &&
				  is_near(m, member->heard_ms, LEDGER_LIVE_MS);
	}
}

// News that every live member has in force.
static uint64_t in_force(const struct model *m)
{
	uint64_t least = m->news;
	if (m->is_skewed || (m->steady_ms > 0 && is_near(m, m->steady_ms, LEDGER_LIVE_MS)))
		return 0;
	for (uint32_t n = 0; n < LEDGER_MEMBERS_MAX; n++) {
		if (m->members[n].is_live && m->members[n].applied < least)
			least = m->members[n].applied;
	}
	return least;
}

static void enter(struct model *m, const struct ledger_batch *b, uint32_t number)
{
	struct model_member *self = &m->members[number];
	const bool is_new = self->incarnation != b->incarnation;
	if (!is_known(m, number)) {
		snprintf(self->name, sizeof(self->name), "%s", b->name);
		self->restored = m->is_recovering ? 0 : m->epoch;
	}
	m->self = (uint8_t)number;
	if (is_new && self->incarnation != 0 && !self->has_left)
		(m->is_recovering ? model_unsure : model_went)(m, m->self_ms);
	if (is_new && b->writes == 0 && b->gone_ms > 0 && b->appliance == number &&
		m->missing >> number & 1) {
		m->surely_ms = b->gone_ms > m->surely_ms ? b->gone_ms : m->surely_ms;
		model_back(m, number);
	}
	if (is_new)
		model_tell(m, "%d %u 1 %s", LEDGER_NEWS_MEMBER, number, b->name);
	self->incarnation = b->incarnation;
	self->heard_ms = m->raw_ms;
	self->at_ms = m->self_ms;
	self->has_left = false;
	self->is_live = true;
	self->batch = b->number;
	self->applied = b->applied;
	self->closed = b->closed > self->closed ? b->closed : self->closed;
	m->writes++;
	m->is_conductor = m->conductor == number && m->conductor_is == b->incarnation &&
			  b->fence > 0 && b->fence == m->fence;
}

static void print_members(const struct model *m, struct model_text *text, uint32_t *count)
{
	for (uint32_t n = 0; n < LEDGER_MEMBERS_MAX; n++) {
		const struct model_member *member = &m->members[n];
		if (!is_known(m, n))
			continue;
		++*count;
		model_print(text, "\n%u %s %d %d %" PRIu64 " %d %" PRIu64, n, member->name,
			member->is_live, member->restored == m->epoch, member->closed,
			member->has_left, member->applied);
	}
}

static void print_news(const struct model *m, struct model_text *text, uint64_t *cursor,
	bool *is_resync, uint32_t *count)
{
	*is_resync = *cursor + LEDGER_NEWS_MAX < m->news || *cursor < m->jumped;
	if (*is_resync)
		*cursor = m->news;
	for (uint32_t i = 0; i < LEDGER_NEWS_REPLY_MAX && *cursor < m->news; i++) {
		++*cursor;
		++*count;
		model_print(text, "\n%s", m->log[*cursor % LEDGER_NEWS_MAX]);
	}
}

static char *print_reply(struct model *m, const struct ledger_batch *b, struct model_text *answers)
{
	struct model_text text = {0}, members = {0}, news = {0};
	uint32_t member_count = 0, news_count = 0;
	uint64_t cursor = b->cursor;
	bool is_resync;
	print_members(m, &members, &member_count);
	print_news(m, &news, &cursor, &is_resync, &news_count);
	model_print(&text, "1 %d %d %d %d %u %u", LEDGER_BATCH_TAKEN, m->is_skewed,
		m->is_recovering, is_resync, m->self, m->conductor);
	model_print(&text, " %" PRIu64 " %" PRIu64 " %" PRIu64 " %" PRIu64 " %" PRIu64, m->fence,
		m->epoch, m->writes, cursor, m->news);
	const bool has_all = !is_resync && cursor == m->news && !m->is_recovering;
	model_print(&text, " %" PRId64 " %" PRIu64 " %" PRId64 " %" PRIu64 " %" PRIu64 " %u %u %u",
		told_ms(m), m->raw_ms, m->correction_ms, m->gone_ms, has_all ? m->final : 0,
		b->count, member_count, m->page_count + news_count);
	model_print(&text, "%s%s", answers->at ? answers->at : "", members.at);
	if (m->page_count > 0)
		model_print(&text, "\n%.*s", (int)m->pages.used - 1, m->pages.at);
	if (news_count > 0)
		model_print(&text, "%s", news.at);
	free(members.at);
	free(news.at);
	return text.at;
}

static void raise_final(struct model *m)
{
	uint64_t least = m->now_ms / PLACE_SLOT_MS;
	for (uint32_t n = 0; n < LEDGER_MEMBERS_MAX; n++) {
		if (m->members[n].is_live && m->members[n].closed < least)
			least = m->members[n].closed;
	}
	if (!m->is_recovering && least > m->final)
		m->final = least;
}

static char *decide(struct model *m, const struct ledger_batch *b)
{
	struct model_text answers = {0};
	m->look++;
	m->page_count = 0;
	clear(&m->pages);
	model_free_ended(m, in_force(m));
	for (uint32_t i = 0; i < b->count; i++) {
		model_print(&answers, "\n%u ", b->entries[i].kind);
		if (b->entries[i].kind <= LEDGER_TAKEN)
			model_claim(m, &b->entries[i], &answers);
		else
			model_share(m, &b->entries[i], &answers);
	}
	raise_final(m);
	char *reply = print_reply(m, b, &answers);
	free(answers.at);
	return reply;
}

char *model_batch(struct model *m, const struct ledger_batch *b, uint64_t raw_ms)
{
	const uint64_t seen_ms = m->seen_ms; // a refusal leaves it as it was
	set_time(m, b, raw_ms);
	clear(&m->told);
	uint32_t number = number_of(m, b->name);
	if (number < LEDGER_MEMBERS_MAX) {
		struct model_member *self = &m->members[number];
		if (self->incarnation != b->incarnation && self->is_live) {
			m->seen_ms = seen_ms;
			return refuse(m, b, LEDGER_BATCH_NAME);
		}
		if (self->incarnation == b->incarnation && b->number <= self->batch) {
			m->seen_ms = seen_ms;
			if (b->number < self->batch)
				return refuse(m, b, LEDGER_BATCH_OLD);
			self->heard_ms = raw_ms;
			return strdup(self->reply);
		}
	}
	look_for_losses(m, b, number);
	look_for_end(m, number);
	if (number == LEDGER_MEMBERS_MAX)
		number = find_number(m, b);
	if (number == LEDGER_MEMBERS_MAX)
		return refuse(m, b, LEDGER_BATCH_MEMBERS);
	enter(m, b, number);
	char *reply = decide(m, b);
	free(m->members[number].reply);
	m->members[number].reply = strdup(reply);
	assert(m->members[number].reply);
	return reply;
}
