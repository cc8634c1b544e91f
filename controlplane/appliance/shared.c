// A copy of each record as it came, sealed where it was sealed, for when the ledger has lost it;
// and what is in it goes at once where it is used. Nothing is acted upon that was only wished for:
// a command puts a record, and goes by it when the ledger tells it back, like everybody.
//
// LONG: the copies, and each kind of record that goes through them

#include "controlplane/appliance/shared.h"

#include "controlplane/appliance/shared_record.h"

#include <assert.h>
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

struct copy {
	uint8_t type;
	uint32_t id, len;
	bool is_told; // since the resync began
	bool is_kept; // a secret that could be read
	uint32_t version; // of a gathering; 0: it could not be read
	uint8_t *bytes;
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
	uint32_t known, all; // appliances that go by the secret that is told; of how many
};

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

static bool has_any(const struct shared *s, uint8_t type)
{
	uint32_t i = 0;
	while (i < s->count && s->copies[i].type != type)
		i++;
	return i < s->count;
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

static bool put(struct shared *s, const struct ledger_record *record)
{
	return s->seams.put(s->seams.ctx, record);
}

static bool drop(struct shared *s, uint8_t type, uint32_t id, bool is_conductors)
{
	const struct ledger_record none = {.type = type, .id = id, .is_conductors = is_conductors};
	return put(s, &none);
}

// --- sealed

static const char *const names[] = {
	[SHARED_SECRET] = "secret", [SHARED_SEED] = "seed", [SHARED_DRAW] = "draw"};

// Put it with `plain` sealed, which is wiped.
static int put_sealed(
	struct shared *s, const struct ledger_record *record, uint8_t *plain, uint32_t bytes)
{
	uint8_t sealed[LEDGER_BLOB_MAX];
	char name[12];
	snprintf(name, sizeof(name), "%u", record->id);
	int ret = seal_close(s->seal, names[record->type], name, plain, bytes, sealed);
	explicit_bzero(plain, bytes);
	if (ret < 0)
		return ret;
	struct ledger_record closed = *record;
	closed.bytes = sealed;
	closed.len = bytes + SEAL_OVERHEAD_BYTES;
	return put(s, &closed) ? 0 : -EAGAIN;
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

static int put_secret(struct shared *s, const struct shared_record_secret *r, bool is_conductors)
{
	uint8_t plain[LEDGER_BLOB_MAX];
	const uint32_t bytes = shared_record_put_secret(r, plain);
	return put_sealed(s,
		&(struct ledger_record){
			.type = SHARED_SECRET, .id = r->of.id, .is_conductors = is_conductors},
		plain, bytes);
}

// Returns false if it says nothing that this version knows. Wipe it.
static bool read_secret(struct shared *s, const struct copy *copy, struct shared_record_secret *r)
{
	uint8_t plain[LEDGER_BLOB_MAX];
	*r = (struct shared_record_secret){0};
	const bool is_known =
		copy->id > 0 && copy->id <= SECRETS_MAX &&
		open_sealed(s, copy, plain, SHARED_RECORD_SECRET_BYTES) &&
		shared_record_secret(plain, copy->len - SEAL_OVERHEAD_BYTES, (uint8_t)copy->id, r);
	explicit_bzero(plain, sizeof(plain));
	return is_known;
}

// --- what came

static void take_secret(struct shared *s, struct copy *copy)
{
	struct shared_record_secret r;
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
	if (open_sealed(s, copy, plain, SHARED_RECORD_SEED_BYTES))
		s->has_keys_changed |= tickets_keep(s->tickets, copy->id, plain + 1);
	explicit_bzero(plain, sizeof(plain));
}

static void take_room(struct shared *s, const struct copy *copy)
{
	struct shared_room room;
	struct span rest;
	if (shared_record_room(copy->bytes, copy->len, copy->id, &room, &rest))
		s->seams.room(s->seams.ctx, &room);
}

// Only once, and not again when it is read anew.
static void take_release(struct shared *s, const struct copy *copy)
{
	uint64_t number, people;
	if (shared_record_release(copy->bytes, copy->len, &number, &people) && !s->is_resyncing &&
		s->is_resynced)
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

// What a gathering's record says that could not be read may be less than others know by now.
static bool put_copy(struct shared *s, const struct copy *copy)
{
	return (copy->type == SHARED_DRAW && copy->version == 0) ||
	       put(s, &(struct ledger_record){.type = copy->type,
			      .id = copy->id,
			      .version = copy->version,
			      .len = copy->len,
			      .bytes = copy->bytes});
}

bool shared_restore(struct shared *s)
{
	for (; s->restored < s->count; s->restored++)
		if (!put_copy(s, &s->copies[s->restored]))
			return false;
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
		struct shared_record_secret r = {.state = views[i].state,
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
		uint8_t plain[LEDGER_BLOB_MAX];
		if (key && !find(s, SHARED_SEED, i))
			put_sealed(s,
				&(struct ledger_record){
					.type = SHARED_SEED, .id = i, .is_conductors = true},
				plain, shared_record_put_seed(key, plain));
	}
	for (uint32_t i = 0; i < s->count; i++)
		if (s->copies[i].type == SHARED_SEED && s->copies[i].id + 1 < epoch)
			drop(s, SHARED_SEED, s->copies[i].id, true);
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
			drop(s, SHARED_SECRET, s->copies[i].id, true);
}

// The first who does not go by the secret that was told yet.
static uint8_t awaited(struct shared *s, const struct shared_view *view, uint64_t now_s)
{
	const bool is_long = s->told_ttl_s == 0 || now_s >= s->told_since_s + SHARED_DEAD_S;
	uint8_t first = LEDGER_MEMBERS_MAX;
	s->known = s->all = 0;
	for (uint32_t i = 0; i < view->member_count; i++) {
		const struct ledger_member *m = &view->members[i];
		if (m->has_left)
			continue;
		s->all++;
		if (m->applied >= s->told_cursor)
			s->known++;
		else if ((m->is_live || !is_long) && first == LEDGER_MEMBERS_MAX)
			first = m->number;
	}
	return first;
}

// All know it: from now on it signs, and the one before retires.
static void promote(struct shared *s, uint64_t now_s)
{
	uint8_t revoked = 0;
	for (uint32_t i = 0; i < s->count; i++) {
		struct shared_record_secret r;
		if (s->copies[i].type != SHARED_SECRET || !read_secret(s, &s->copies[i], &r))
			continue;
		if (r.of.id == s->told) {
			r.state = SECRETS_CURRENT;
			put_secret(s, &r, true);
		} else if (r.state == SECRETS_CURRENT && s->told_ttl_s == 0) {
			revoked = r.of.id;
		} else if (r.state == SECRETS_CURRENT) {
			r.state = SECRETS_OLD;
			r.of.retire_s = now_s + s->told_ttl_s;
			put_secret(s, &r, true);
		}
		explicit_bzero(&r, sizeof(r));
	}
	if (revoked) // when the new one signs
		drop(s, SHARED_SECRET, revoked, true);
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
	if (!has_any(s, SHARED_SECRET))
		give_secrets(s);
	else if (has_current(s))
		drop_retired(s);
	give_seeds(s, now_s);
	if (s->told && s->awaited == LEDGER_MEMBERS_MAX)
		promote(s, now_s);
}

// --- commands

// Also what could not be read, of a newer version or another key, is a secret that others go by.
static void list_taken(const struct shared *s, bool taken[SECRETS_MAX + 1])
{
	for (uint32_t i = 0; i < s->count; i++)
		if (s->copies[i].type == SHARED_SECRET && s->copies[i].id <= SECRETS_MAX)
			taken[s->copies[i].id] = true;
}

int shared_rotate(struct shared *s, uint64_t ttl_s, uint64_t now_s)
{
	struct shared_record_secret r = {.state = SECRETS_TOLD, .ttl_s = ttl_s};
	bool taken[SECRETS_MAX + 1] = {false};
	if (!shared_is_ready(s))
		return -EAGAIN;
	if (s->told)
		return -EBUSY;
	list_taken(s, taken);
	int ret = secrets_make(s->secrets, taken, now_s, &r.of);
	if (ret == 0)
		ret = put_secret(s, &r, false);
	ret = ret < 0 ? ret : r.of.id;
	explicit_bzero(&r, sizeof(r));
	return ret;
}

// The secret that is told is to sign as soon as all who live have it, and the one before to be
// gone.
static int hasten(struct shared *s)
{
	struct shared_record_secret r = {.ttl_s = 0};
	const struct copy *copy = find(s, SHARED_SECRET, s->told);
	const bool is_read = copy && read_secret(s, copy, &r);
	r.ttl_s = 0;
	const int ret = is_read ? put_secret(s, &r, false) : -EAGAIN;
	explicit_bzero(&r, sizeof(r));
	return ret;
}

int shared_revoke(struct shared *s, uint8_t id, uint64_t now_s)
{
	struct shared_record_secret r;
	const struct copy *copy = find(s, SHARED_SECRET, id);
	if (!copy || !read_secret(s, copy, &r))
		return -ENOENT;
	const bool is_current = r.state == SECRETS_CURRENT;
	explicit_bzero(&r, sizeof(r));
	if (!is_current)
		return drop(s, SHARED_SECRET, id, false) ? 0 : -EAGAIN;
	const int ret = s->told ? hasten(s) : shared_rotate(s, 0, now_s);
	return ret < 0 ? ret : 0;
}

uint8_t shared_told(const struct shared *s, uint32_t *known, uint32_t *all)
{
	*known = s->known;
	*all = s->all;
	return s->told;
}

bool shared_put_room(struct shared *s, const struct shared_room *room)
{
	uint8_t bytes[LEDGER_BLOB_MAX];
	const struct copy *copy = find(s, SHARED_ROOM, room->line_id);
	struct shared_room before;
	struct span rest = {0};
	if (copy)
		shared_record_room(copy->bytes, copy->len, copy->id, &before, &rest);
	const uint32_t len = shared_record_put_room(room, rest, bytes);
	return len > 0 && put(s, &(struct ledger_record){.type = SHARED_ROOM,
					 .id = room->line_id,
					 .len = len,
					 .bytes = bytes});
}

bool shared_has_room(const struct shared *s, uint32_t line_id)
{
	return find(s, SHARED_ROOM, line_id);
}

bool shared_put_release(struct shared *s, uint32_t line_id, uint64_t people, uint64_t number)
{
	uint8_t bytes[LEDGER_BLOB_MAX];
	const uint32_t len = shared_record_put_release(number, people, bytes);
	return put(s, &(struct ledger_record){
			      .type = SHARED_RELEASE, .id = line_id, .len = len, .bytes = bytes});
}

// What a newer version has behind what this one knows. Returns how many bytes.
static uint32_t rest_of_draw(
	struct shared *s, uint32_t id, uint32_t known, uint8_t plain[LEDGER_BLOB_MAX])
{
	const struct copy *copy = find(s, SHARED_DRAW, id);
	if (!copy || copy->version == 0 || !open_sealed(s, copy, plain, known))
		return 0;
	return copy->len - SEAL_OVERHEAD_BYTES - known;
}

bool shared_put_draw(
	struct shared *s, uint32_t id, uint32_t version, const uint8_t *bytes, uint32_t len)
{
	uint8_t plain[LEDGER_BLOB_MAX];
	assert(len >= SHARED_DRAW_HEAD && len <= SHARED_DRAW_MAX);
	const uint32_t rest = rest_of_draw(s, id, len, plain);
	memcpy(plain, bytes, len);
	plain[0] = SHARED_VERSION;
	for (int i = 0; i < 4; i++)
		plain[1 + i] = (uint8_t)(version >> (24 - 8 * i));
	const struct ledger_record record = {
		.type = SHARED_DRAW, .id = id, .version = version, .is_conductors = true};
	return put_sealed(s, &record, plain, len + rest) == 0;
}

bool shared_drop_draw(struct shared *s, uint32_t id)
{
	return drop(s, SHARED_DRAW, id, true);
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
