// What the store knows of a visitor becomes one of four things: a session that holds its slot to
// its end; a claimed id, so that the same ticket is not used twice; a ticket that was given back;
// or nothing any more, because its session is over and floor has passed its key; that the store is
// told.
//
// A session that had ended early is ended again, and at once: no worker runs that would take its
// pass.

#include "controlplane/claims/claims_restore.h"

#include <assert.h>

bool claims_restore_left(struct ended *left, uint64_t visitor, uint64_t now_ms)
{
	return visitor == 0 ||
	       ended_insert(left, visitor, (uint32_t)(now_ms / 1000) + CLAIMS_KEEP_S);
}

static void forget(struct claims_restore *r, const struct store_session *session)
{
	struct store_record record = {.kind = STORE_FORGOTTEN, .session = *session};
	store_put(r->store, &record); // if there is no room, the next start has the same to say
}

static void restore_into(struct claims_restore *r, struct claims_rooms_entry *room,
	const struct store_session *session)
{
	bool is_live = !session->is_over && (uint64_t)session->expires * 1000 > r->now_ms;
	bool is_passed = session->key == 0 || session->key < room->is.line->floor;
	r->counters->restored_expired += !is_live && session->session != 0;
	if (!is_live && is_passed) {
		forget(r, session);
		return;
	}
	struct controller_change change = {
		.kind = is_live                 ? CONTROLLER_GRANTED
			: session->session == 0 ? CONTROLLER_LEFT
						: CONTROLLER_ENDED,
		.expires = session->expires,
		.session = session->session,
		.visitor = session->visitor,
		.key = session->key,
	};
	if (!controller_restore(room->is.controller, &change, r->now_ms))
		r->counters->restored_full++;
	else if (change.kind == CONTROLLER_LEFT)
		r->counters->left_untold +=
			!claims_restore_left(r->left, session->visitor, r->now_ms);
	else
		r->counters->restored++;
}

static void restore_session(void *ctx, const struct store_record *record)
{
	struct claims_restore *r = ctx;
	const struct store_session *session = &record->session;
	struct claims_rooms_entry *room = claims_rooms_find(r->rooms, session->line_id);
	if (room) {
		if (!room->is_restored)
			restore_into(r, room, session);
		return;
	}
	r->counters->restored_unknown++;
	if (((uint64_t)session->expires + CLAIMS_KEEP_S) * 1000 < r->now_ms)
		forget(r, session);
}

static bool has_new_rooms(const struct claims_rooms *rooms)
{
	for (uint32_t i = 0; i < rooms->count; i++) {
		if (!rooms->entries[i].is_restored)
			return true;
	}
	return false;
}

int claims_restore_sessions(struct claims_restore *r)
{
	if (!has_new_rooms(r->rooms))
		return 0;
	int ret = store_load(r->store, STORE_GRANTED, CLAIMS_RESTORE_MAX, restore_session, r);
	for (uint32_t i = 0; i < r->rooms->count && ret == 0; i++)
		r->rooms->entries[i].is_restored = true;
	return ret;
}

static void restore_ended(void *ctx, const struct store_record *record)
{
	struct claims_restore *r = ctx;
	const struct store_ended *ended = &record->ended;
	if (((uint64_t)ended->expires + ENDED_GRACE_S) * 1000 <= r->now_ms)
		return;
	if (!ended_insert(r->ended, ended->session, ended->expires)) {
		r->counters->ended_full++; // it holds its slot to its end
		return;
	}
	struct claims_rooms_entry *room = claims_rooms_find(r->rooms, ended->line_id);
	if (room && controller_end(room->is.controller, ended->session, r->now_ms))
		controller_free(room->is.controller, ended->session, r->now_ms);
}

int claims_restore_ended(struct claims_restore *r)
{
	return store_load(r->store, STORE_ENDED, CLAIMS_RESTORE_MAX, restore_ended, r);
}

struct lines {
	struct place_line *(*line)(void *ctx, uint32_t line_id);
	void *ctx;
};

static void restore_line(void *ctx, const struct store_record *record)
{
	const struct lines *lines = ctx;
	struct place_line *line = lines->line(lines->ctx, record->line.line_id);
	if (!line)
		return;
	if (line->threshold < record->line.threshold)
		line->threshold = record->line.threshold;
	if (line->floor < record->line.floor)
		line->floor = record->line.floor;
}

int claims_restore_lines(
	struct store *store, struct place_line *(*line)(void *ctx, uint32_t line_id), void *ctx)
{
	struct lines lines = {line, ctx};
	return store_load(store, STORE_LINE, CLAIMS_RESTORE_MAX, restore_line, &lines);
}
