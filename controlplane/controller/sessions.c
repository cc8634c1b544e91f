// Sessions: records under two ids, ordered by their end and by their key.
//
// A slot is freed in one place only, sessions_expire(): what is to end at once is made due at once.
// The list of changes is bounded; ends and forgetting take no more than half of it, so that grants,
// of which there are no more than claims in a turn, always find room.

#include "controlplane/controller/sessions.h"

#include <assert.h>
#include <stdlib.h>

#include "controlplane/controller/pool.h"

#define ENDS_CHANGES_MAX (CONTROLLER_CHANGES_MAX / 2)
#define PASS_MAX 4096u // keys that floor passes in one turn

bool sessions_init(struct sessions *s, uint32_t count_max, uint64_t seed)
{
	*s = (struct sessions){.count_max = count_max};
	s->records = calloc(count_max + 1ull, sizeof(*s->records));
	s->claimed_by = calloc(count_max + 1ull, sizeof(*s->claimed_by));
	s->changes = calloc(CONTROLLER_CHANGES_MAX, sizeof(*s->changes));
	return s->records && s->claimed_by && s->changes &&
	       idmap_init(&s->by_visitor, count_max, seed) &&
	       idmap_init(&s->by_session, count_max, seed + 1) && due_init(&s->ends, count_max) &&
	       keyset_init(&s->claimed, count_max, seed + 2);
}

void sessions_fini(struct sessions *s)
{
	free(s->records);
	free(s->claimed_by);
	free(s->changes);
	idmap_fini(&s->by_visitor);
	idmap_fini(&s->by_session);
	due_fini(&s->ends);
	keyset_fini(&s->claimed);
}

static uint32_t id_of(const struct sessions *s, const struct session *session)
{
	return (uint32_t)(session - s->records);
}

static void note(struct sessions *s, uint8_t kind, const struct session *session)
{
	if (s->changes_taken)
		s->change_count = 0;
	s->changes_taken = false;
	assert(s->change_count < CONTROLLER_CHANGES_MAX);
	s->changes[s->change_count++] = (struct controller_change){
		.kind = kind,
		.expires = session->expires,
		.session = session->session,
		.visitor = session->visitor,
		.key = session->key,
	};
}

static bool may_note(const struct sessions *s, uint32_t count, uint32_t most)
{
	return s->changes_taken || s->change_count + count <= most;
}

bool sessions_note_left(struct sessions *s, uint8_t kind, uint64_t key, uint64_t visitor)
{
	const bool is_new = kind == CONTROLLER_LEFT;
	if (!may_note(s, 1, is_new ? CONTROLLER_CHANGES_MAX : ENDS_CHANGES_MAX))
		return false;
	note(s, kind, &(struct session){.key = key, .visitor = visitor});
	return true;
}

uint32_t sessions_changes(struct sessions *s, const struct controller_change **changes)
{
	const uint32_t count = s->changes_taken ? 0 : s->change_count;
	s->changes_taken = true;
	*changes = s->changes;
	return count;
}

struct session *sessions_of_visitor(struct sessions *s, uint64_t visitor)
{
	const uint32_t id = idmap_find(&s->by_visitor, visitor);
	return id ? &s->records[id] : NULL;
}

struct session *sessions_of(struct sessions *s, uint64_t session)
{
	const uint32_t id = idmap_find(&s->by_session, session);
	return id ? &s->records[id] : NULL;
}

static bool has_record(const struct sessions *s)
{
	return s->given_back != 0 || s->used < s->count_max;
}

bool sessions_has_room(const struct sessions *s)
{
	return has_record(s) && may_note(s, 1, CONTROLLER_CHANGES_MAX);
}

static void claim_key(struct sessions *s, struct session *session)
{
	session->claimed = keyset_insert(&s->claimed, session->key, session->visitor);
	assert(session->claimed); // as many as records
	s->claimed_by[session->claimed] = id_of(s, session);
}

// Enter a record that holds a slot.
static struct session *enter(struct sessions *s, const struct session *like)
{
	assert(has_record(s));
	const uint32_t id = s->given_back ? s->given_back : ++s->used;
	struct session *session = &s->records[id];
	assert(session->state == 0);
	s->given_back = session->claimed;
	*session = *like;
	idmap_insert(&s->by_visitor, session->visitor, id);
	idmap_insert(&s->by_session, session->session, id);
	due_set(&s->ends, id, session->expires * 1000ull);
	pool_take(s->pool);
	return session;
}

void sessions_begin(
	struct sessions *s, uint64_t visitor, uint64_t session, uint64_t key, uint32_t expires)
{
	const struct session like = {.visitor = visitor,
		.session = session,
		.key = key,
		.expires = expires,
		.state = SESSION_ACTIVE};
	struct session *begun = enter(s, &like);
	if (key != 0)
		claim_key(s, begun);
	note(s, CONTROLLER_GRANTED, begun);
}

// Nothing need be known of it any more.
static void forget(struct sessions *s, struct session *session)
{
	note(s, CONTROLLER_FORGET, session);
	idmap_remove(&s->by_visitor, session->visitor);
	*session = (struct session){.claimed = s->given_back};
	s->given_back = id_of(s, session);
}

static void leave_slot(struct sessions *s, struct session *session)
{
	session->state = SESSION_OVER;
	pool_give(s->pool);
	due_remove(&s->ends, id_of(s, session));
	idmap_remove(&s->by_session, session->session);
}

bool sessions_restore(
	struct sessions *s, const struct controller_change *change, bool is_over, uint64_t floor)
{
	if (!has_record(s) || sessions_of_visitor(s, change->visitor) ||
		sessions_of(s, change->session))
		return false;
	const struct session like = {.visitor = change->visitor,
		.session = change->session,
		.key = change->key,
		.expires = change->expires,
		.state = SESSION_ACTIVE};
	struct session *session = enter(s, &like);
	const bool keeps_key = change->key != 0 && change->key >= floor;
	if (keeps_key)
		claim_key(s, session);
	if (is_over && keeps_key)
		leave_slot(s, session);
	else if (is_over)
		sessions_free(s, session); // the store forgets it with the first changes
	return true;
}

uint32_t sessions_renew(struct sessions *s, struct session *session, uint32_t expires)
{
	assert(session->state == SESSION_ACTIVE);
	if (expires > session->expires && may_note(s, 1, CONTROLLER_CHANGES_MAX)) {
		session->expires = expires;
		due_set(&s->ends, id_of(s, session), expires * 1000ull);
		note(s, CONTROLLER_RENEWED, session);
	}
	return session->expires;
}

void sessions_end(struct session *session)
{
	assert(session->state == SESSION_ACTIVE);
	session->state = SESSION_ENDING;
}

void sessions_free(struct sessions *s, struct session *session)
{
	assert(session->state != SESSION_OVER);
	session->state = SESSION_ENDING;
	session->ended_early = true;
	due_set(&s->ends, id_of(s, session), 0);
}

void sessions_expire(struct sessions *s, uint64_t now_ms)
{
	uint32_t id;
	while (may_note(s, 2, ENDS_CHANGES_MAX) && (id = due_at(&s->ends, now_ms)) != 0) {
		struct session *session = &s->records[id];
		if (session->ended_early)
			s->ended_total++;
		else
			s->expired_total++;
		leave_slot(s, session);
		note(s, CONTROLLER_ENDED, session);
		if (session->claimed == 0)
			forget(s, session);
	}
}

void sessions_pass(struct sessions *s, uint64_t floor)
{
	for (uint32_t i = 0; i < PASS_MAX && may_note(s, 1, ENDS_CHANGES_MAX); i++) {
		const uint32_t id = keyset_first(&s->claimed);
		if (id == 0 || keyset_key(&s->claimed, id) >= floor)
			return;
		struct session *session = &s->records[s->claimed_by[id]];
		keyset_remove(&s->claimed, id);
		session->claimed = 0;
		if (session->state == SESSION_OVER)
			forget(s, session);
	}
}

uint32_t sessions_claimed_from(const struct sessions *s, uint64_t key)
{
	return keyset_count(&s->claimed) - keyset_below(&s->claimed, key, 0);
}

uint32_t sessions_ending(const struct sessions *s, uint64_t ms, uint32_t most)
{
	return due_count(&s->ends, ms, most);
}
