// A copy of each record as it came, sealed where it was sealed, for when the ledger has lost it;
// and what is in it goes at once where it is used. Nothing is acted upon that was only wished for:
// a command puts a record, and goes by it when the ledger tells it back, like everybody.

#include "controlplane/appliance/shared.h"

#include <assert.h>
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define SECRET_BYTES (1u + 1u + 8u + 8u + 8u + STORE_SECRET_BYTES)
#define SEED_BYTES (1u + STORE_SECRET_BYTES)
#define ROOM_BYTES (1u + 1u + 1u + 1u + STORE_SALT_BYTES_MAX + 8u + 8u + 2u)
#define RELEASE_BYTES (1u + 8u + 8u)
static_assert(SECRET_BYTES + SEAL_OVERHEAD_BYTES <= LEDGER_BLOB_MAX, "a secret fits a record");
static_assert(ROOM_BYTES + STATUS_MESSAGE_BYTES_MAX <= LEDGER_BLOB_MAX, "a room does");

struct copy {
	uint8_t type;
	uint32_t id, len;
	bool is_told; // since the resync began
	bool is_kept; // a secret that could be read
	uint32_t version; // of a gathering
	uint8_t *bytes;
};

struct secret_record {
	struct store_secret of;
	uint8_t state; // enum secrets_state
	uint64_t ttl_s; // for which the one before it stays when this signs
	uint32_t rest_bytes; // of a newer version, behind all that
	uint8_t rest[LEDGER_BLOB_MAX];
};

struct shared {
	const struct seal *seal;
	struct secrets *secrets;
	struct tickets *tickets;
	struct shared_seams seams;
	struct copy *copies;
	uint32_t count, max;
	uint32_t restored; // copies put again, of those
	bool is_resyncing, is_resynced;
	bool is_foreign; // a secret could not be opened
	bool has_keys_changed; // to be published when the resync is over, and one signs
	uint8_t told; // the secret that all are to know; 0: none
	uint64_t told_ttl_s, told_cursor, told_since_s; // of it; cursor 0: not known yet
	uint8_t awaited;
	uint32_t version; // of the record that is being put
};

// --- bytes, big-endian

static uint8_t *put_u64(uint8_t *at, uint64_t value)
{
	for (int i = 0; i < 8; i++)
		at[i] = (uint8_t)(value >> (56 - 8 * i));
	return at + 8;
}

static const uint8_t *get_u64(const uint8_t *at, uint64_t *value)
{
	*value = 0;
	for (int i = 0; i < 8; i++)
		*value = *value << 8 | at[i];
	return at + 8;
}

// --- copies

struct shared *shared_create(const struct seal *seal, struct secrets *secrets,
	struct tickets *tickets, const struct shared_seams *seams)
{
	struct shared *s = calloc(1, sizeof(*s));
	if (!s)
		return NULL;
	*s = (struct shared){.seal = seal,
		.secrets = secrets,
		.tickets = tickets,
		.seams = *seams,
		.awaited = LEDGER_MEMBERS_MAX};
	return s;
}

void shared_destroy(struct shared *s)
{
	for (uint32_t i = 0; s && i < s->count; i++)
		free(s->copies[i].bytes);
	if (s)
		free(s->copies);
	free(s);
}

static struct copy *find(const struct shared *s, uint8_t type, uint32_t id)
{
	for (uint32_t i = 0; i < s->count; i++)
		if (s->copies[i].type == type && s->copies[i].id == id)
			return &s->copies[i];
	return NULL;
}

static uint32_t count_of(const struct shared *s, uint8_t type)
{
	uint32_t count = 0;
	for (uint32_t i = 0; i < s->count; i++)
		count += s->copies[i].type == type;
	return count;
}

static void forget(struct shared *s, struct copy *copy)
{
	free(copy->bytes);
	*copy = s->copies[--s->count];
	s->restored = 0;
}

// Returns NULL without memory for it: then it is not gone by.
static struct copy *keep(
	struct shared *s, uint8_t type, uint32_t id, const uint8_t *bytes, uint32_t len)
{
	struct copy *copy = find(s, type, id);
	uint8_t *own = malloc(len);
	if (!copy && s->count == s->max) {
		const uint32_t max = s->max ? 2 * s->max : 64;
		struct copy *more = realloc(s->copies, max * sizeof(*more));
		if (more) {
			s->copies = more;
			s->max = max;
		}
	}
	if (!own || (!copy && s->count == s->max)) {
		free(own);
		return NULL;
	}
	memcpy(own, bytes, len);
	if (copy)
		free(copy->bytes);
	else
		copy = &s->copies[s->count++];
	*copy = (struct copy){.type = type, .id = id, .len = len, .is_told = true, .bytes = own};
	return copy;
}

static bool put(struct shared *s, uint8_t type, uint32_t id, const uint8_t *bytes, uint32_t len,
	bool is_conductors)
{
	const struct ledger_record record = {.type = type,
		.is_conductors = is_conductors,
		.id = id,
		.version = s->version,
		.len = len,
		.bytes = bytes};
	return s->seams.put(s->seams.ctx, &record);
}

// --- sealed

static const char *const names[] = {
	[SHARED_SECRET] = "secret", [SHARED_SEED] = "seed", [SHARED_DRAW] = "draw"};

static int put_sealed(struct shared *s, uint8_t type, uint32_t id, uint8_t *plain, uint32_t bytes,
	bool is_conductors)
{
	uint8_t record[LEDGER_BLOB_MAX];
	char name[12];
	snprintf(name, sizeof(name), "%u", id);
	int ret = seal_close(s->seal, names[type], name, plain, bytes, record);
	explicit_bzero(plain, bytes);
	if (ret < 0)
		return ret;
	return put(s, type, id, record, bytes + SEAL_OVERHEAD_BYTES, is_conductors) ? 0 : -EAGAIN;
}

// Open a record of a plain text of at least that size, of our version.
static bool open_sealed(
	struct shared *s, const struct copy *copy, uint8_t plain[LEDGER_BLOB_MAX], uint32_t bytes)
{
	char name[12], text[128];
	snprintf(name, sizeof(name), "%u", copy->id);
	enum seal_result result =
		seal_open(s->seal, names[copy->type], name, copy->bytes, copy->len, plain);
	if (result == SEAL_OPEN) {
		const bool is_ours =
			copy->len >= bytes + SEAL_OVERHEAD_BYTES && plain[0] == SHARED_VERSION;
		if (!is_ours)
			explicit_bzero(plain, LEDGER_BLOB_MAX);
		return is_ours;
	}
	s->is_foreign |= copy->type == SHARED_SECRET;
	snprintf(text, sizeof(text), "%s %u of the cluster %s", names[copy->type], copy->id,
		seal_result_text(result));
	s->seams.say(s->seams.ctx, text);
	return false;
}

static int put_secret(struct shared *s, const struct secret_record *r, bool is_conductors)
{
	uint8_t plain[LEDGER_BLOB_MAX] = {SHARED_VERSION, r->state};
	uint8_t *at = put_u64(plain + 2, r->of.created_s);
	at = put_u64(at, r->of.retire_s);
	at = put_u64(at, r->ttl_s);
	memcpy(at, r->of.key, STORE_SECRET_BYTES);
	memcpy(plain + SECRET_BYTES, r->rest, r->rest_bytes);
	return put_sealed(
		s, SHARED_SECRET, r->of.id, plain, SECRET_BYTES + r->rest_bytes, is_conductors);
}

// Returns false if it says nothing that this version knows. Wipe it.
static bool read_secret(struct shared *s, const struct copy *copy, struct secret_record *r)
{
	uint8_t plain[LEDGER_BLOB_MAX];
	*r = (struct secret_record){.of = {.id = (uint8_t)copy->id}};
	if (copy->id == 0 || copy->id > SECRETS_MAX || !open_sealed(s, copy, plain, SECRET_BYTES))
		return false;
	r->state = plain[1];
	const uint8_t *at = get_u64(plain + 2, &r->of.created_s);
	at = get_u64(at, &r->of.retire_s);
	at = get_u64(at, &r->ttl_s);
	memcpy(r->of.key, at, STORE_SECRET_BYTES);
	r->rest_bytes = copy->len - SECRET_BYTES - SEAL_OVERHEAD_BYTES;
	memcpy(r->rest, plain + SECRET_BYTES, r->rest_bytes);
	explicit_bzero(plain, sizeof(plain));
	return r->state == SECRETS_TOLD || r->state == SECRETS_CURRENT || r->state == SECRETS_OLD;
}

// --- what came

static void take_secret(struct shared *s, struct copy *copy)
{
	struct secret_record r;
	if (read_secret(s, copy, &r)) {
		copy->is_kept = true;
		s->has_keys_changed |= secrets_keep(s->secrets, &r.of, r.state);
		if (r.state == SECRETS_TOLD) {
			s->told = r.of.id;
			s->told_ttl_s = r.ttl_s;
			s->told_cursor = 0;
		} else if (s->told == r.of.id) {
			s->told = 0;
		}
	}
	explicit_bzero(&r, sizeof(r));
}

static void take_seed(struct shared *s, const struct copy *copy)
{
	uint8_t plain[LEDGER_BLOB_MAX];
	if (open_sealed(s, copy, plain, SEED_BYTES))
		s->has_keys_changed |= tickets_keep(s->tickets, copy->id, plain + 1);
	explicit_bzero(plain, sizeof(plain));
}

static void take_room(struct shared *s, const struct copy *copy)
{
	if (copy->len < ROOM_BYTES || copy->bytes[0] != SHARED_VERSION)
		return;
	const uint8_t *at = copy->bytes;
	struct shared_room room = {.line_id = copy->id, .state = at[1], .mode = at[2]};
	room.salt_bytes = at[3] <= STORE_SALT_BYTES_MAX ? at[3] : 0;
	memcpy(room.salt, at + 4, STORE_SALT_BYTES_MAX);
	at = get_u64(at + 4 + STORE_SALT_BYTES_MAX, &room.opened_ms);
	at = get_u64(at, &room.opened_at_ms);
	const uint32_t bytes = (uint32_t)at[0] << 8 | at[1];
	if (bytes > STATUS_MESSAGE_BYTES_MAX || ROOM_BYTES + bytes > copy->len)
		return;
	memcpy(room.message, at + 2, bytes);
	s->seams.room(s->seams.ctx, &room);
}

// Only once, and not again when it is read anew.
static void take_release(struct shared *s, const struct copy *copy)
{
	uint64_t number, people;
	if (copy->len < RELEASE_BYTES || copy->bytes[0] != SHARED_VERSION || s->is_resyncing ||
		!s->is_resynced)
		return;
	get_u64(get_u64(copy->bytes + 1, &number), &people);
	s->seams.release(s->seams.ctx, copy->id, people);
}

static void take_draw(struct shared *s, struct copy *copy)
{
	uint8_t plain[LEDGER_BLOB_MAX];
	const uint32_t len = copy->len > SEAL_OVERHEAD_BYTES ? copy->len - SEAL_OVERHEAD_BYTES : 0;
	if (len >= SHARED_DRAW_HEAD && open_sealed(s, copy, plain, len)) {
		copy->version = 0;
		for (int i = 0; i < 4; i++)
			copy->version = copy->version << 8 | plain[1 + i];
		s->seams.draw(s->seams.ctx, copy->id, copy->version, plain, len);
	}
	explicit_bzero(plain, sizeof(plain));
}

static void take_gone(struct shared *s, uint8_t type, uint32_t id)
{
	if (type == SHARED_DRAW)
		s->seams.draw(s->seams.ctx, id, 0, NULL, 0);
	struct copy *copy = find(s, type, id);
	if (copy)
		forget(s, copy);
	if (type == SHARED_SECRET && id <= SECRETS_MAX) {
		s->has_keys_changed |= secrets_drop(s->secrets, (uint8_t)id);
		if (s->told == id)
			s->told = 0;
	}
}

static bool has_current(const struct shared *s)
{
	struct secrets_view views[SECRETS_MAX];
	const uint32_t count = secrets_list(s->secrets, views);
	for (uint32_t i = 0; i < count; i++) {
		const struct copy *copy = find(s, SHARED_SECRET, views[i].id);
		if (views[i].state == SECRETS_CURRENT && copy && copy->is_kept)
			return true;
	}
	return false;
}

// What one record says of the one before it may be in the next.
static void publish(struct shared *s)
{
	if (!s->has_keys_changed || s->is_resyncing || !has_current(s))
		return;
	s->has_keys_changed = false;
	s->seams.keys(s->seams.ctx);
}

void shared_take(struct shared *s, uint8_t type, uint32_t id, const uint8_t *bytes, uint32_t len)
{
	if (len == 0) {
		take_gone(s, type, id);
		publish(s);
		return;
	}
	struct copy *copy = find(s, type, id);
	if (copy && copy->len == len && memcmp(copy->bytes, bytes, len) == 0) {
		copy->is_told = true;
		return;
	}
	copy = keep(s, type, id, bytes, len);
	if (!copy)
		s->seams.say(s->seams.ctx, "no memory for what the cluster shares");
	else if (type == SHARED_SECRET)
		take_secret(s, copy);
	else if (type == SHARED_SEED)
		take_seed(s, copy);
	else if (type == SHARED_ROOM)
		take_room(s, copy);
	else if (type == SHARED_RELEASE)
		take_release(s, copy);
	else if (type == SHARED_DRAW)
		take_draw(s, copy);
	publish(s);
}

void shared_resync_begins(struct shared *s)
{
	s->is_resyncing = true;
	for (uint32_t i = 0; i < s->count; i++)
		s->copies[i].is_told = false;
}

// Secrets of before that the cluster does not know sign nothing that others could read.
static void drop_unshared(struct shared *s)
{
	struct secrets_view views[SECRETS_MAX];
	const uint32_t count = secrets_list(s->secrets, views);
	for (uint32_t i = 0; i < count; i++)
		if (!find(s, SHARED_SECRET, views[i].id))
			s->has_keys_changed |= secrets_drop(s->secrets, views[i].id);
}

void shared_resynced(struct shared *s)
{
	for (uint32_t i = s->count; i-- > 0;)
		if (!s->copies[i].is_told && s->is_resyncing)
			take_gone(s, s->copies[i].type, s->copies[i].id);
	s->is_resyncing = false;
	s->is_resynced = true;
	if (has_current(s))
		drop_unshared(s);
	publish(s);
}

bool shared_is_ready(const struct shared *s)
{
	return s->is_resynced && has_current(s);
}

bool shared_is_foreign(const struct shared *s)
{
	return s->is_foreign;
}

bool shared_restore(struct shared *s)
{
	for (; s->restored < s->count; s->restored++) {
		const struct copy *copy = &s->copies[s->restored];
		s->version = copy->version;
		const bool is_put = put(s, copy->type, copy->id, copy->bytes, copy->len, false);
		s->version = 0;
		if (!is_put)
			return false;
	}
	s->restored = 0;
	return true;
}

// --- the conductor's

// A cluster without a secret begins with ours.
static void give_secrets(struct shared *s)
{
	struct secrets_view views[SECRETS_MAX];
	const uint32_t count = secrets_list(s->secrets, views);
	for (uint32_t i = 0; i < count; i++) {
		struct secret_record r = {.state = views[i].state,
			.of = {.id = views[i].id,
				.created_s = views[i].created_s,
				.retire_s = views[i].retire_s}};
		memcpy(r.of.key, views[i].key, STORE_SECRET_BYTES);
		if (r.state == SECRETS_CURRENT || r.state == SECRETS_OLD)
			put_secret(s, &r, true);
		explicit_bzero(&r, sizeof(r));
	}
}

static void give_seeds(struct shared *s, uint64_t now_s)
{
	const uint32_t epoch = (uint32_t)(now_s / TICKETS_EPOCH_S);
	for (uint32_t i = epoch; i <= epoch + 1; i++) {
		const uint8_t *key = tickets_find(s->tickets, i);
		uint8_t plain[SEED_BYTES] = {SHARED_VERSION};
		if (!key || find(s, SHARED_SEED, i))
			continue;
		memcpy(plain + 1, key, STORE_SECRET_BYTES);
		put_sealed(s, SHARED_SEED, i, plain, sizeof(plain), true);
	}
	for (uint32_t i = 0; i < s->count; i++)
		if (s->copies[i].type == SHARED_SEED && s->copies[i].id + 1 < epoch)
			put(s, SHARED_SEED, s->copies[i].id, NULL, 0, true);
}

// Records of secrets that every appliance has forgotten by itself (secrets_poll()); what could not
// be read is not ours to forget.
static void drop_retired(struct shared *s)
{
	struct secrets_view views[SECRETS_MAX];
	const uint32_t count = secrets_list(s->secrets, views);
	bool is_kept[SECRETS_MAX + 1] = {false};
	for (uint32_t i = 0; i < count; i++)
		is_kept[views[i].id] = true;
	for (uint32_t i = 0; i < s->count; i++)
		if (s->copies[i].type == SHARED_SECRET && s->copies[i].is_kept &&
			!is_kept[s->copies[i].id])
			put(s, SHARED_SECRET, s->copies[i].id, NULL, 0, true);
}

// The first who does not go by the secret that was told yet.
static uint8_t awaited(const struct shared *s, const struct shared_view *view, uint64_t now_s)
{
	const bool is_long = s->told_ttl_s == 0 || now_s >= s->told_since_s + SHARED_DEAD_S;
	for (uint32_t i = 0; i < view->member_count; i++) {
		const struct ledger_member *m = &view->members[i];
		if (m->has_left || m->applied >= s->told_cursor || (!m->is_live && is_long))
			continue;
		return m->number;
	}
	return LEDGER_MEMBERS_MAX;
}

// All know it: from now on it signs, and the one before retires.
static void promote(struct shared *s, uint64_t now_s)
{
	for (uint32_t i = 0; i < s->count; i++) {
		struct secret_record r;
		if (s->copies[i].type != SHARED_SECRET || !read_secret(s, &s->copies[i], &r))
			continue;
		if (r.of.id == s->told) {
			r.state = SECRETS_CURRENT;
			put_secret(s, &r, true);
		} else if (r.state == SECRETS_CURRENT) {
			r.state = SECRETS_OLD;
			r.of.retire_s = now_s + s->told_ttl_s;
			put_secret(s, &r, true);
		}
		explicit_bzero(&r, sizeof(r));
	}
}

void shared_turn(struct shared *s, const struct shared_view *view, uint64_t now_s)
{
	s->awaited = LEDGER_MEMBERS_MAX;
	if (s->told && s->told_cursor == 0) {
		s->told_cursor = view->cursor;
		s->told_since_s = now_s;
	}
	if (s->told)
		s->awaited = awaited(s, view, now_s);
	if (!view->is_conductor || view->is_away || !s->is_resynced || s->is_resyncing)
		return;
	if (count_of(s, SHARED_SECRET) == 0)
		give_secrets(s);
	else if (has_current(s))
		drop_retired(s);
	give_seeds(s, now_s);
	if (s->told && s->awaited == LEDGER_MEMBERS_MAX)
		promote(s, now_s);
}

// --- commands

int shared_rotate(struct shared *s, uint64_t ttl_s, uint64_t now_s)
{
	struct secret_record r = {.state = SECRETS_TOLD, .ttl_s = ttl_s};
	if (!shared_is_ready(s) || s->told)
		return -EAGAIN;
	int ret = secrets_make(s->secrets, now_s, &r.of);
	if (ret == 0)
		ret = put_secret(s, &r, false);
	const int id = r.of.id;
	explicit_bzero(&r, sizeof(r));
	return ret < 0 ? ret : id;
}

int shared_revoke(struct shared *s, uint8_t id, uint64_t now_s)
{
	struct secret_record r;
	const struct copy *copy = find(s, SHARED_SECRET, id);
	if (!copy || !read_secret(s, copy, &r))
		return -ENOENT;
	const bool is_current = r.state == SECRETS_CURRENT;
	explicit_bzero(&r, sizeof(r));
	if (!is_current)
		return put(s, SHARED_SECRET, id, NULL, 0, false) ? 0 : -EAGAIN;
	const int ret = shared_rotate(s, 0, now_s);
	return ret < 0 ? ret : 0;
}

// What a newer version has behind the message of a room.
static uint32_t rest_of_room(const struct shared *s, uint32_t line_id, const uint8_t **rest)
{
	const struct copy *copy = find(s, SHARED_ROOM, line_id);
	if (!copy || copy->len < ROOM_BYTES || copy->bytes[0] != SHARED_VERSION)
		return 0;
	const uint8_t *message = copy->bytes + ROOM_BYTES;
	const uint32_t bytes = ROOM_BYTES + ((uint32_t)message[-2] << 8 | message[-1]);
	*rest = copy->bytes + bytes;
	return copy->len > bytes ? copy->len - bytes : 0;
}

bool shared_put_room(struct shared *s, const struct shared_room *room)
{
	uint8_t bytes[LEDGER_BLOB_MAX] = {
		SHARED_VERSION, room->state, room->mode, room->salt_bytes};
	const uint8_t *rest = NULL;
	const uint32_t rest_bytes = rest_of_room(s, room->line_id, &rest);
	const uint32_t len = (uint32_t)strlen(room->message);
	memcpy(bytes + 4, room->salt, STORE_SALT_BYTES_MAX);
	uint8_t *at = put_u64(bytes + 4 + STORE_SALT_BYTES_MAX, room->opened_ms);
	at = put_u64(at, room->opened_at_ms);
	at[0] = (uint8_t)(len >> 8);
	at[1] = (uint8_t)len;
	memcpy(at + 2, room->message, len);
	if (ROOM_BYTES + len + rest_bytes > sizeof(bytes))
		return false;
	if (rest_bytes > 0)
		memcpy(bytes + ROOM_BYTES + len, rest, rest_bytes);
	return put(s, SHARED_ROOM, room->line_id, bytes, ROOM_BYTES + len + rest_bytes, false);
}

bool shared_has_room(const struct shared *s, uint32_t line_id)
{
	return find(s, SHARED_ROOM, line_id);
}

bool shared_put_release(struct shared *s, uint32_t line_id, uint64_t people, uint64_t number)
{
	uint8_t bytes[RELEASE_BYTES] = {SHARED_VERSION};
	put_u64(put_u64(bytes + 1, number), people);
	return put(s, SHARED_RELEASE, line_id, bytes, sizeof(bytes), false);
}

bool shared_put_draw(struct shared *s, uint32_t id, uint32_t version, uint8_t *bytes, uint32_t len)
{
	assert(len <= SHARED_DRAW_MAX);
	if (len == 0)
		return put(s, SHARED_DRAW, id, NULL, 0, true);
	bytes[0] = SHARED_VERSION;
	for (int i = 0; i < 4; i++)
		bytes[1 + i] = (uint8_t)(version >> (24 - 8 * i));
	s->version = version;
	const int ret = put_sealed(s, SHARED_DRAW, id, bytes, len, true);
	s->version = 0;
	return ret == 0;
}

void shared_tell_draws(struct shared *s)
{
	for (uint32_t i = 0; i < s->count; i++)
		if (s->copies[i].type == SHARED_DRAW)
			take_draw(s, &s->copies[i]);
}

uint8_t shared_awaited(const struct shared *s)
{
	return s->awaited;
}
