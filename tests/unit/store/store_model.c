// Arrays, searched from end to end.

#include "tests/unit/store/store_model.h"
#include "controlplane/store/batch.h"

#include <assert.h>
#include <errno.h>
#include <stdlib.h>

static const struct store_ops ops;

static struct store_model *model_of(struct store *store)
{
	assert(store->ops == &ops);
	return (struct store_model *)store;
}

struct store_session *store_model_session(struct store_model *m, uint32_t line_id, uint64_t visitor)
{
	for (uint32_t i = 0; i < m->session_count; i++) {
		if (m->sessions[i].line_id == line_id && m->sessions[i].visitor == visitor)
			return &m->sessions[i];
	}
	return NULL;
}

static void apply_session(struct store_model *m, const struct store_record *r)
{
	struct store_session *known =
		store_model_session(m, r->session.line_id, r->session.visitor);
	if (!known && r->kind == STORE_GRANTED) {
		assert(m->session_count < STORE_MODEL_MAX);
		known = &m->sessions[m->session_count++];
	}
	if (!known)
		return;
	if (r->kind == STORE_GRANTED)
		*known = r->session;
	else if (r->kind == STORE_RENEWED)
		known->expires = r->session.expires;
	else if (r->kind == STORE_OVER)
		known->is_over = true;
	else
		*known = m->sessions[--m->session_count];
}

static void apply_ended(struct store_model *m, const struct store_record *r)
{
	uint32_t i = 0;
	while (i < m->ended_count && m->ended[i].session != r->ended.session)
		i++;
	assert(i < STORE_MODEL_MAX);
	m->ended_count += i == m->ended_count;
	m->ended[i] = r->ended;
}

static void apply_line(struct store_model *m, const struct store_record *r)
{
	uint32_t i = 0;
	while (i < m->line_count && m->lines[i].line_id != r->line.line_id)
		i++;
	assert(i < STORE_MODEL_MAX);
	m->line_count += i == m->line_count;
	m->lines[i] = r->line;
}

static void apply_clock(struct store_model *m, const struct store_record *r)
{
	m->clock_ms = r->clock.ms;
	for (uint32_t i = 0; i < m->ended_count;) {
		if (m->ended[i].expires <= m->clock_ms / 1000)
			m->ended[i] = m->ended[--m->ended_count];
		else
			i++;
	}
}

static void apply(struct store_model *m, struct batch *batch)
{
	uint32_t at = 0;
	const struct store_record *r;
	while ((r = batch_next(batch, &at))) {
		if (r->kind <= STORE_FORGOTTEN)
			apply_session(m, r);
		else if (r->kind == STORE_ENDED)
			apply_ended(m, r);
		else if (r->kind == STORE_LINE)
			apply_line(m, r);
		else if (r->kind == STORE_CLOCK)
			apply_clock(m, r);
	}
	m->store.status.commits_total += batch_count(batch) > 0;
	batch_clear(batch);
}

void store_model_init(struct store_model *m, uint32_t records_max)
{
	*m = (struct store_model){.store.ops = &ops, .store.status.error = ""};
	m->gathering = batch_create(records_max);
	m->flying = batch_create(records_max);
	m->sessions = calloc(STORE_MODEL_MAX, sizeof(*m->sessions));
	m->ended = calloc(STORE_MODEL_MAX, sizeof(*m->ended));
	m->lines = calloc(STORE_MODEL_MAX, sizeof(*m->lines));
	assert(m->gathering && m->flying && m->sessions && m->ended && m->lines);
	m->store.status.free_count = batch_free_count(m->gathering);
}

void store_model_fini(struct store_model *m)
{
	batch_destroy(m->gathering);
	batch_destroy(m->flying);
	free(m->sessions);
	free(m->ended);
	free(m->lines);
}

void store_model_crash(struct store_model *m, bool is_done)
{
	if (is_done)
		apply(m, m->flying);
	batch_clear(m->flying);
	batch_clear(m->gathering);
	m->store.status = (struct store_status){.error = "",
		.is_unclean = m->is_marked,
		.unclean_until = m->is_marked ? m->marked_until : 0,
		.free_count = batch_free_count(m->gathering)};
}

static int model_load(
	struct store *store, enum store_kind kind, uint64_t max, store_record_fn *record, void *ctx)
{
	struct store_model *m = model_of(store);
	uint32_t count = kind == STORE_GRANTED ? m->session_count
			 : kind == STORE_ENDED ? m->ended_count
			 : kind == STORE_LINE  ? m->line_count
					       : 0;
	if (m->load_error)
		return m->load_error;
	for (uint32_t i = 0; i < count; i++) {
		struct store_record r = {.kind = kind};
		if (i == max)
			return -EOVERFLOW;
		if (kind == STORE_GRANTED)
			r.session = m->sessions[i];
		else if (kind == STORE_ENDED)
			r.ended = m->ended[i];
		else
			r.line = m->lines[i];
		record(ctx, &r);
	}
	return 0;
}

static bool model_put(struct store *store, const struct store_record *record)
{
	struct store_model *m = model_of(store);
	bool is_put = batch_put(m->gathering, record);
	store->status.dropped_total += !is_put;
	store->status.free_count = batch_free_count(m->gathering);
	return is_put;
}

static void mark(struct store_model *m)
{
	uint32_t until = batch_until(m->gathering);
	m->marked_until = m->is_marked && m->marked_until > until ? m->marked_until : until;
	m->is_marked = true;
}

static void model_begin(struct store *store, uint64_t now_ms)
{
	struct store_model *m = model_of(store);
	struct store_status *status = &store->status;
	assert(!status->is_pending);
	bool has_records = batch_count(m->gathering) > 0;
	if (has_records && m->is_failing) {
		status->unsaved_since_ms = status->is_unsaved ? status->unsaved_since_ms : now_ms;
		status->is_unsaved = true;
		mark(m);
	} else if (has_records && m->delay_ms == 0) {
		apply(m, m->gathering);
		status->is_unsaved = false;
		m->is_marked &= status->is_unclean;
	} else if (has_records) {
		struct batch *batch = m->flying;
		m->flying = m->gathering;
		m->gathering = batch;
		status->is_unsaved = false;
		status->is_pending = true;
		status->pending_since_ms = now_ms;
		m->due_ms = now_ms + m->delay_ms;
	}
	status->unsaved_count = status->is_unsaved ? batch_count(m->gathering) : 0;
	status->free_count = batch_free_count(m->gathering);
}

static void model_poll(struct store *store, uint64_t now_ms)
{
	struct store_model *m = model_of(store);
	if (!store->status.is_pending || now_ms < m->due_ms)
		return;
	apply(m, m->flying);
	store->status.is_pending = false;
	m->is_marked &= store->status.is_unclean;
}

static void model_settle(struct store *store)
{
	struct store_model *m = model_of(store);
	store->status.is_unclean = false;
	m->is_marked = store->status.is_unsaved;
}

static void model_close(struct store *store, uint64_t now_ms)
{
	(void)store;
	(void)now_ms;
}

static const struct store_ops ops = {
	.load = model_load,
	.put = model_put,
	.begin = model_begin,
	.poll = model_poll,
	.settle = model_settle,
	.close = model_close,
};
