// What appliances share: three of them and a ledger's records, told to each in order.
//
// LONG: stories, of one stage.

#include "controlplane/appliance/shared.h"

#include <errno.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cmocka.h>

#define NOW UINT64_C(1764583200)
#define TTL UINT64_C(86400)
#define APPLIANCES 3
#define LOG_MAX 256

// --- a store of nothing: what was there before is what the test says

struct nothing {
	struct store store;
	const struct store_secret *secret; // NULL: none
};

static int nothing_load(
	struct store *store, enum store_kind kind, uint64_t max, store_record_fn *record, void *ctx)
{
	(void)max;
	const struct nothing *n = (struct nothing *)store;
	if (kind == STORE_SECRET && n->secret)
		record(ctx, &(struct store_record){.kind = kind, .secret = *n->secret});
	return 0;
}

static bool nothing_put(struct store *store, const struct store_record *record)
{
	(void)store, (void)record;
	return true;
}

static void nothing_at(struct store *store, uint64_t now_ms)
{
	(void)store, (void)now_ms;
}

static const struct store_ops nothing_ops = {
	.load = nothing_load, .put = nothing_put, .begin = nothing_at, .poll = nothing_at};

// --- a ledger of records

struct cluster;

struct appliance {
	struct cluster *cluster;
	struct nothing nothing;
	struct secrets *secrets;
	struct tickets *tickets;
	struct shared *shared;
	uint32_t cursor; // of the log
	uint32_t published, rooms, released, said;
	struct shared_room room;
	uint64_t people;
	uint32_t draws, draws_gone, draw_version;
	uint8_t draw[SHARED_DRAW_MAX];
};

struct cluster {
	struct seal *seal;
	struct appliance at[APPLIANCES];
	struct ledger_member members[APPLIANCES];
	struct {
		struct ledger_record of;
		uint8_t bytes[LEDGER_BLOB_MAX];
	} log[LOG_MAX];
	uint32_t count;
	uint32_t conductor;
	uint64_t now_s;
	bool is_full; // takes nothing
};

static bool seam_put(void *ctx, const struct ledger_record *record)
{
	struct appliance *a = ctx;
	struct cluster *c = a->cluster;
	if (c->is_full)
		return false;
	assert_true(c->count < LOG_MAX);
	assert_true(!record->is_conductors || a == &c->at[c->conductor]);
	c->log[c->count].of = *record;
	if (record->len > 0)
		memcpy(c->log[c->count].bytes, record->bytes, record->len);
	c->count++;
	return true;
}

static void seam_keys(void *ctx)
{
	((struct appliance *)ctx)->published++;
}

static void seam_room(void *ctx, const struct shared_room *room)
{
	struct appliance *a = ctx;
	a->rooms++;
	a->room = *room;
}

static void seam_release(void *ctx, uint32_t line_id, uint64_t people)
{
	struct appliance *a = ctx;
	assert_int_equal(line_id, 7);
	a->released++;
	a->people = people;
}

static void seam_draw(void *ctx, uint32_t id, uint32_t version, const uint8_t *bytes, uint32_t len)
{
	struct appliance *a = ctx;
	assert_int_equal(id, 5);
	a->draws += len > 0;
	a->draws_gone += len == 0;
	a->draw_version = version;
	if (len > 0)
		memcpy(a->draw, bytes, len);
}

static void seam_say(void *ctx, const char *text)
{
	print_message("said: %s\n", text);
	((struct appliance *)ctx)->said++;
}

static struct seal *make_seal(char digit)
{
	char path[] = "/tmp/sluice-shared-XXXXXX", error[SEAL_TEXT_BYTES], text[65];
	struct seal *seal;
	const int fd = mkstemp(path);
	memset(text, digit, 64);
	assert_int_equal(write(fd, text, 64), 64);
	close(fd);
	assert_int_equal(seal_create(path, &seal, error), 0);
	unlink(path);
	return seal;
}

static void start(struct cluster *c, uint32_t i, const struct seal *seal)
{
	struct appliance *a = &c->at[i];
	const struct shared_seams seams = {.ctx = a,
		.put = seam_put,
		.keys = seam_keys,
		.room = seam_room,
		.release = seam_release,
		.draw = seam_draw,
		.say = seam_say};
	*a = (struct appliance){
		.cluster = c, .nothing = {.store = {.ops = &nothing_ops}, .secret = NULL}};
	assert_int_equal(secrets_create(&a->nothing.store, c->now_s, &a->secrets), 0);
	assert_int_equal(tickets_create(&a->nothing.store, c->now_s, &a->tickets), 0);
	a->shared = shared_create(seal, a->secrets, a->tickets, &seams);
	assert_non_null(a->shared);
	c->members[i] = (struct ledger_member){.number = (uint8_t)i, .is_live = true};
	shared_resync_begins(a->shared);
}

static void stop(struct appliance *a)
{
	shared_destroy(a->shared);
	secrets_destroy(a->secrets);
	tickets_destroy(a->tickets);
	a->shared = NULL;
}

static struct cluster *create(void)
{
	struct cluster *c = calloc(1, sizeof(*c));
	c->seal = make_seal('7');
	c->now_s = NOW;
	for (uint32_t i = 0; i < APPLIANCES; i++)
		start(c, i, c->seal);
	return c;
}

static void destroy(struct cluster *c)
{
	for (uint32_t i = 0; i < APPLIANCES; i++)
		if (c->at[i].shared)
			stop(&c->at[i]);
	seal_destroy(c->seal);
	free(c);
}

// All that there is to tell, to one of them.
static void tell(struct cluster *c, uint32_t i)
{
	struct appliance *a = &c->at[i];
	for (; a->cursor < c->count; a->cursor++) {
		const struct ledger_record *r = &c->log[a->cursor].of;
		shared_take(a->shared, r->type, r->id, c->log[a->cursor].bytes, r->len);
	}
	shared_resynced(a->shared);
	c->members[i].applied = a->cursor;
}

static void turn(struct cluster *c, uint32_t i)
{
	const struct shared_view view = {.is_conductor = i == c->conductor,
		.cursor = c->at[i].cursor,
		.members = c->members,
		.member_count = APPLIANCES};
	shared_turn(c->at[i].shared, &view, c->now_s);
}

// Everybody hears everything, and does what is to be done; until nothing is.
static void settle(struct cluster *c)
{
	uint32_t before;
	do {
		before = c->count;
		for (uint32_t i = 0; i < APPLIANCES; i++)
			if (c->at[i].shared && c->members[i].is_live)
				tell(c, i);
		for (uint32_t i = 0; i < APPLIANCES; i++)
			if (c->at[i].shared && c->members[i].is_live)
				turn(c, i);
	} while (c->count > before);
}

static const struct secrets_view *view_of(
	const struct appliance *a, enum secrets_state state, struct secrets_view *view)
{
	struct secrets_view views[SECRETS_MAX];
	const uint32_t count = secrets_list(a->secrets, views);
	for (uint32_t i = 0; i < count; i++)
		if (views[i].state == state) {
			*view = views[i];
			return view;
		}
	return NULL;
}

static void assert_same_current(const struct cluster *c)
{
	struct secrets_view first, other;
	assert_non_null(view_of(&c->at[0], SECRETS_CURRENT, &first));
	for (uint32_t i = 1; i < APPLIANCES; i++) {
		assert_non_null(view_of(&c->at[i], SECRETS_CURRENT, &other));
		assert_int_equal(other.id, first.id);
		assert_memory_equal(other.key, first.key, STORE_SECRET_BYTES);
	}
}

// --- stories

static void a_cluster_begins_with_its_first_conductors(void **state)
{
	(void)state;
	struct cluster *c = create();
	struct secrets_view own, all;
	c->conductor = 1;
	assert_non_null(view_of(&c->at[1], SECRETS_CURRENT, &own));
	uint8_t key[STORE_SECRET_BYTES];
	memcpy(key, own.key, sizeof(key));
	for (uint32_t i = 0; i < APPLIANCES; i++) {
		tell(c, i);
		assert_false(shared_is_ready(c->at[i].shared));
	}
	settle(c);
	for (uint32_t i = 0; i < APPLIANCES; i++) {
		assert_true(shared_is_ready(c->at[i].shared));
		assert_int_equal(c->at[i].published > 0, i != c->conductor);
	}
	assert_same_current(c);
	assert_non_null(view_of(&c->at[2], SECRETS_CURRENT, &all));
	assert_memory_equal(all.key, key, sizeof(key));
	const uint32_t epoch = (uint32_t)(NOW / TICKETS_EPOCH_S);
	for (uint32_t i = epoch; i <= epoch + 1; i++)
		assert_memory_equal(tickets_find(c->at[0].tickets, i),
			tickets_find(c->at[1].tickets, i), STORE_SECRET_BYTES);
	destroy(c);
}

static void nothing_secret_is_readable(void **state)
{
	(void)state;
	struct cluster *c = create();
	struct secrets_view current;
	settle(c);
	assert_non_null(view_of(&c->at[0], SECRETS_CURRENT, &current));
	for (uint32_t i = 0; i < c->count; i++)
		assert_null(memmem(c->log[i].bytes, LEDGER_BLOB_MAX, current.key, 16));
	destroy(c);
}

static void a_secret_signs_when_all_have_it(void **state)
{
	(void)state;
	struct cluster *c = create();
	struct secrets_view view;
	settle(c);
	const int id = shared_rotate(c->at[2].shared, TTL, c->now_s);
	assert_true(id > 0);
	assert_null(view_of(&c->at[2], SECRETS_TOLD, &view)); // nobody goes by a wish
	tell(c, 0);
	tell(c, 2);
	turn(c, 0);
	assert_int_equal(shared_awaited(c->at[0].shared), 1);
	assert_non_null(view_of(&c->at[0], SECRETS_TOLD, &view));
	assert_int_equal(view.id, id);
	for (int i = 0; i < 5; i++) {
		turn(c, 0);
		tell(c, 0);
		assert_non_null(view_of(&c->at[0], SECRETS_CURRENT, &view));
		assert_int_not_equal(view.id, id);
	}
	assert_int_equal(shared_rotate(c->at[0].shared, TTL, c->now_s), -EBUSY);
	settle(c);
	assert_same_current(c);
	for (uint32_t i = 0; i < APPLIANCES; i++) {
		assert_non_null(view_of(&c->at[i], SECRETS_CURRENT, &view));
		assert_int_equal(view.id, id);
		assert_non_null(view_of(&c->at[i], SECRETS_OLD, &view));
		assert_int_equal(view.retire_s, c->now_s + TTL);
	}
	// When the old one retires nobody keeps it, and its record goes.
	c->now_s += TTL;
	for (uint32_t i = 0; i < APPLIANCES; i++)
		secrets_poll(c->at[i].secrets, c->now_s);
	settle(c);
	for (uint32_t i = 0; i < APPLIANCES; i++)
		assert_null(view_of(&c->at[i], SECRETS_OLD, &view));
	assert_same_current(c);
	destroy(c);
}

static void who_is_down_is_waited_for(void **state)
{
	(void)state;
	struct cluster *c = create();
	struct secrets_view view;
	settle(c);
	c->members[1].is_live = false;
	const int id = shared_rotate(c->at[0].shared, TTL, c->now_s);
	settle(c);
	assert_int_equal(shared_awaited(c->at[0].shared), 1);
	assert_null(view_of(&c->at[2], SECRETS_OLD, &view));
	c->now_s += SHARED_DEAD_S - 1;
	settle(c);
	assert_null(view_of(&c->at[2], SECRETS_OLD, &view));
	c->now_s++;
	settle(c);
	assert_non_null(view_of(&c->at[2], SECRETS_OLD, &view));
	assert_non_null(view_of(&c->at[2], SECRETS_CURRENT, &view));
	assert_int_equal(view.id, id);
	// It comes back, and reads before it serves.
	stop(&c->at[1]);
	start(c, 1, c->seal);
	settle(c);
	assert_same_current(c);
	destroy(c);
}

static void who_has_left_is_not(void **state)
{
	(void)state;
	struct cluster *c = create();
	struct secrets_view view;
	settle(c);
	c->members[1].is_live = false;
	c->members[1].has_left = true;
	const int id = shared_rotate(c->at[0].shared, TTL, c->now_s);
	settle(c);
	assert_non_null(view_of(&c->at[2], SECRETS_CURRENT, &view));
	assert_int_equal(view.id, id);
	destroy(c);
}

static void a_revoked_one_is_gone_everywhere(void **state)
{
	(void)state;
	struct cluster *c = create();
	struct secrets_view view;
	settle(c);
	assert_non_null(view_of(&c->at[0], SECRETS_CURRENT, &view));
	const uint8_t first = view.id;
	assert_int_equal(shared_revoke(c->at[0].shared, 200, c->now_s), -ENOENT);
	c->members[1].is_live = false; // nobody who is down is waited for
	assert_int_equal(shared_revoke(c->at[2].shared, first, c->now_s), 0);
	settle(c);
	c->members[1].is_live = true;
	settle(c);
	for (uint32_t i = 0; i < APPLIANCES; i++)
		secrets_poll(c->at[i].secrets, c->now_s);
	assert_null(view_of(&c->at[2], SECRETS_OLD, &view));
	assert_non_null(view_of(&c->at[2], SECRETS_CURRENT, &view));
	assert_int_not_equal(view.id, first);
	// An old one goes without a new one.
	settle(c);
	const uint8_t second = view.id;
	shared_rotate(c->at[0].shared, TTL, c->now_s);
	settle(c);
	assert_int_equal(shared_revoke(c->at[1].shared, second, c->now_s), 0);
	settle(c);
	for (uint32_t i = 0; i < APPLIANCES; i++)
		assert_null(view_of(&c->at[i], SECRETS_OLD, &view));
	destroy(c);
}

// A rotation waits for somebody who is down; what it would replace is to be gone now.
static void a_revocation_hurries_a_rotation(void **state)
{
	(void)state;
	struct cluster *c = create();
	struct secrets_view view;
	uint32_t known, all;
	settle(c);
	assert_non_null(view_of(&c->at[0], SECRETS_CURRENT, &view));
	const uint8_t first = view.id;
	c->members[1].is_live = false;
	const int id = shared_rotate(c->at[0].shared, TTL, c->now_s);
	settle(c);
	assert_int_equal(shared_told(c->at[0].shared, &known, &all), id);
	assert_int_equal(known, APPLIANCES - 1);
	assert_int_equal(all, APPLIANCES);
	assert_int_equal(shared_rotate(c->at[2].shared, TTL, c->now_s), -EBUSY);
	assert_int_equal(shared_revoke(c->at[2].shared, first, c->now_s), 0);
	settle(c);
	assert_int_equal(shared_told(c->at[0].shared, &known, &all), 0);
	for (uint32_t i = 0; i < APPLIANCES; i += 2) { // without a look at the clock
		assert_null(view_of(&c->at[i], SECRETS_OLD, &view));
		assert_non_null(view_of(&c->at[i], SECRETS_CURRENT, &view));
		assert_int_equal(view.id, id);
	}
	destroy(c);
}

static void another_key_opens_nothing(void **state)
{
	(void)state;
	struct cluster *c = create();
	struct seal *other = make_seal('8');
	settle(c);
	stop(&c->at[1]);
	start(c, 1, other);
	tell(c, 1);
	assert_false(shared_is_ready(c->at[1].shared));
	assert_true(shared_is_foreign(c->at[1].shared));
	assert_false(shared_is_foreign(c->at[0].shared));
	assert_true(c->at[1].said > 0);
	assert_int_equal(c->at[1].published, 0);
	stop(&c->at[1]);
	seal_destroy(other);
	destroy(c);
}

static void rooms_are_told_and_deleted(void **state)
{
	(void)state;
	struct cluster *c = create();
	struct shared_room room = {.line_id = 7, .state = 1, .mode = 0xff, .salt_bytes = 2};
	room.opened_ms = 1ull << 50;
	room.salt[1] = 9;
	memset(room.message, 'm', STATUS_MESSAGE_BYTES_MAX);
	settle(c);
	assert_false(shared_has_room(c->at[1].shared, 7));
	assert_true(shared_put_room(c->at[0].shared, &room));
	settle(c);
	settle(c);
	for (uint32_t i = 0; i < APPLIANCES; i++) {
		assert_int_equal(c->at[i].rooms, 1);
		assert_memory_equal(&c->at[i].room, &room, sizeof(room));
	}
	// One who starts later hears the same.
	stop(&c->at[1]);
	start(c, 1, c->seal);
	settle(c);
	assert_memory_equal(&c->at[1].room, &room, sizeof(room));
	c->is_full = true;
	assert_false(shared_put_room(c->at[0].shared, &room));
	destroy(c);
}

static void people_are_released_once(void **state)
{
	(void)state;
	struct cluster *c = create();
	settle(c);
	assert_true(shared_put_release(c->at[0].shared, 7, 500, 1));
	settle(c);
	assert_int_equal(c->at[2].released, 1);
	assert_int_equal(c->at[2].people, 500);
	assert_true(shared_put_release(c->at[0].shared, 7, 500, 2));
	settle(c);
	assert_int_equal(c->at[2].released, 2);
	stop(&c->at[1]);
	start(c, 1, c->seal);
	settle(c);
	assert_int_equal(c->at[1].released, 0);
	shared_resync_begins(c->at[2].shared);
	c->at[2].cursor = 0;
	settle(c);
	assert_int_equal(c->at[2].released, 2);
	destroy(c);
}

// The ledger has lost everything; then it takes nothing for a while.
static void a_loss_is_made_good(void **state)
{
	(void)state;
	struct cluster *c = create();
	const struct shared_room room = {.line_id = 7, .message = "hello"};
	settle(c);
	shared_put_room(c->at[0].shared, &room);
	settle(c);
	c->count = 0;
	c->is_full = true;
	assert_false(shared_restore(c->at[1].shared));
	c->is_full = false;
	assert_true(shared_restore(c->at[1].shared));
	for (uint32_t i = 0; i < APPLIANCES; i++)
		stop(&c->at[i]);
	for (uint32_t i = 0; i < APPLIANCES; i++)
		start(c, i, c->seal);
	settle(c);
	assert_same_current(c);
	assert_string_equal(c->at[2].room.message, "hello");
	destroy(c);
}

// Records that were deleted while an appliance heard nothing are no more when it has read anew.
static void what_is_not_told_again_is_no_more(void **state)
{
	(void)state;
	struct cluster *c = create();
	const struct shared_room room = {.line_id = 7};
	settle(c);
	const uint32_t before = c->count;
	shared_put_room(c->at[0].shared, &room);
	settle(c);
	shared_resync_begins(c->at[2].shared);
	c->at[2].cursor = 0;
	c->count = before;
	tell(c, 2);
	assert_false(shared_has_room(c->at[2].shared, 7));
	destroy(c);
}

// The last record of that type and id.
static struct ledger_record *last_of(struct cluster *c, uint8_t type, uint32_t id)
{
	for (uint32_t i = c->count; i-- > 0;) {
		struct ledger_record *r = &c->log[i].of;
		r->bytes = c->log[i].bytes;
		if (r->type == type && r->id == id && r->len > 0)
			return r;
	}
	fail_msg("there is no such record");
	return NULL;
}

// A sealed record with another version, if it is not 0, and with more behind it.
static void change_sealed(struct cluster *c, struct ledger_record *r, const char *kind,
	uint8_t version, const char *more)
{
	uint8_t plain[LEDGER_BLOB_MAX];
	char id[12];
	snprintf(id, sizeof(id), "%u", r->id);
	assert_int_equal(seal_open(c->seal, kind, id, r->bytes, r->len, plain), SEAL_OPEN);
	const uint32_t bytes = r->len - SEAL_OVERHEAD_BYTES, more_bytes = (uint32_t)strlen(more);
	plain[0] = version ? version : plain[0];
	memcpy(plain + bytes, more, more_bytes);
	assert_int_equal(seal_close(c->seal, kind, id, plain, bytes + more_bytes,
				 (uint8_t *)(uintptr_t)r->bytes),
		0);
	r->len += more_bytes;
}

// What the next version has behind ours is kept by whoever writes a record anew.
static void more_in_a_record_is_kept(void **state)
{
	(void)state;
	static const char more[] = "tomorrow";
	struct cluster *c = create();
	struct secrets_view view;
	settle(c);
	for (uint32_t e = (uint32_t)(NOW / TICKETS_EPOCH_S); e <= NOW / TICKETS_EPOCH_S + 1; e++)
		change_sealed(c, last_of(c, SHARED_SEED, e), "seed", 0, more);
	const int id = shared_rotate(c->at[2].shared, TTL, c->now_s);
	change_sealed(c, last_of(c, SHARED_SECRET, (uint32_t)id), "secret", 0, more);
	stop(&c->at[1]);
	start(c, 1, c->seal); // reads it all
	settle(c);
	assert_same_current(c);
	assert_non_null(view_of(&c->at[1], SECRETS_CURRENT, &view));
	assert_int_equal(view.id, id);
	uint8_t plain[LEDGER_BLOB_MAX];
	char name[12];
	const struct ledger_record *secret = last_of(c, SHARED_SECRET, (uint32_t)id);
	snprintf(name, sizeof(name), "%d", id);
	assert_int_equal(
		seal_open(c->seal, "secret", name, secret->bytes, secret->len, plain), SEAL_OPEN);
	assert_int_equal(plain[1], SECRETS_CURRENT); // written anew by the conductor
	assert_memory_equal(
		plain + secret->len - SEAL_OVERHEAD_BYTES - strlen(more), more, strlen(more));

	struct shared_room room = {.line_id = 7, .state = 1, .mode = 0xff};
	snprintf(room.message, sizeof(room.message), "a message");
	assert_true(shared_put_room(c->at[0].shared, &room));
	struct ledger_record *said = last_of(c, SHARED_ROOM, 7);
	memcpy((uint8_t *)(uintptr_t)said->bytes + said->len, more, strlen(more));
	said->len += (uint32_t)strlen(more);
	settle(c);
	assert_memory_equal(&c->at[1].room, &room, sizeof(room));
	snprintf(room.message, sizeof(room.message), "another, and longer");
	assert_true(shared_put_room(c->at[1].shared, &room));
	said = last_of(c, SHARED_ROOM, 7);
	assert_memory_equal(said->bytes + said->len - strlen(more), more, strlen(more));
	settle(c);
	assert_memory_equal(&c->at[0].room, &room, sizeof(room));

	assert_true(shared_put_release(c->at[0].shared, 7, 500, 1));
	said = last_of(c, SHARED_RELEASE, 7);
	memcpy((uint8_t *)(uintptr_t)said->bytes + said->len, more, strlen(more));
	said->len += (uint32_t)strlen(more);
	settle(c);
	assert_int_equal(c->at[2].people, 500);
	destroy(c);
}

// What is of a higher version nobody goes by, and everybody keeps.
static void a_higher_version_is_passed_over(void **state)
{
	(void)state;
	struct cluster *c = create();
	struct secrets_view view;
	settle(c);
	const int id = shared_rotate(c->at[2].shared, TTL, c->now_s);
	change_sealed(c, last_of(c, SHARED_SECRET, (uint32_t)id), "secret", SHARED_VERSION + 1, "");
	struct shared_room room = {.line_id = 7, .state = 1};
	assert_true(shared_put_room(c->at[0].shared, &room));
	c->log[c->count - 1].bytes[0] = SHARED_VERSION + 1;
	assert_true(shared_put_release(c->at[0].shared, 7, 500, 1));
	c->log[c->count - 1].bytes[0] = SHARED_VERSION + 1;
	const uint32_t said = c->at[0].said, count = c->count;
	settle(c);
	for (uint32_t i = 0; i < APPLIANCES; i++) {
		assert_null(view_of(&c->at[i], SECRETS_TOLD, &view));
		assert_int_equal(c->at[i].rooms + c->at[i].released, 0);
	}
	assert_int_equal(c->at[0].said, said); // it is no fault
	assert_int_equal(c->count, count); // nor deleted
	assert_same_current(c);
	assert_true(shared_restore(c->at[1].shared)); // after a loss: as they came
	const uint8_t *restored = last_of(c, SHARED_ROOM, 7)->bytes;
	assert_int_equal(restored[0], SHARED_VERSION + 1);
	assert_int_equal(last_of(c, SHARED_SECRET, (uint32_t)id)->len, c->log[count - 3].of.len);
	destroy(c);
}

// The id of a secret that cannot be read here is taken: others go by it.
static void an_unreadable_secret_keeps_its_id(void **state)
{
	(void)state;
	struct cluster *c = create();
	struct secrets_view view;
	settle(c);
	const int unread = shared_rotate(c->at[2].shared, TTL, c->now_s);
	struct ledger_record *record = last_of(c, SHARED_SECRET, (uint32_t)unread);
	change_sealed(c, record, "secret", SHARED_VERSION + 1, "");
	uint8_t was[LEDGER_BLOB_MAX];
	const uint32_t len = record->len;
	memcpy(was, record->bytes, len);
	settle(c);
	for (uint32_t i = 0; i < APPLIANCES; i++) { // whoever rotates
		const int id = shared_rotate(c->at[i].shared, TTL, c->now_s);
		assert_true(id > 0);
		assert_int_not_equal(id, unread);
		settle(c);
		assert_same_current(c);
		assert_non_null(view_of(&c->at[0], SECRETS_CURRENT, &view));
		assert_int_equal(view.id, id);
	}
	record = last_of(c, SHARED_SECRET, (uint32_t)unread);
	assert_int_equal(record->len, len);
	assert_memory_equal(record->bytes, was, len);
	destroy(c);
}

// The last free id is found; with none free nothing is told.
static void a_full_set_of_unreadable_secrets_ends_rotation(void **state)
{
	(void)state;
	struct cluster *c = create();
	const uint8_t junk[64] = {SHARED_VERSION + 1};
	struct secrets_view view;
	settle(c);
	assert_non_null(view_of(&c->at[0], SECRETS_CURRENT, &view));
	uint32_t free_id = view.id == SECRETS_MAX ? 1 : SECRETS_MAX;
	for (uint32_t id = 1; id <= SECRETS_MAX; id++)
		if (id != view.id && id != free_id)
			shared_take(c->at[0].shared, SHARED_SECRET, id, junk, sizeof(junk));
	assert_int_equal(shared_rotate(c->at[0].shared, TTL, c->now_s), free_id);
	shared_take(c->at[0].shared, SHARED_SECRET, free_id, junk, sizeof(junk));
	const uint32_t count = c->count;
	assert_int_equal(shared_rotate(c->at[0].shared, TTL, c->now_s), -ENOSPC);
	assert_int_equal(c->count, count);
	destroy(c);
}

// Whatever stands in a record, it is looked at and no more.
static void damaged_records_are_passed_over(void **state)
{
	(void)state;
	struct cluster *c = create();
	settle(c);
	struct appliance *a = &c->at[0];
	const uint32_t rooms = a->rooms;
	uint8_t bytes[LEDGER_BLOB_MAX];
	for (uint32_t len = 1; len < LEDGER_BLOB_MAX; len += 7)
		for (uint8_t type = 0; type < 16; type++) {
			memset(bytes, 0xff, len);
			shared_take(a->shared, type, 9, bytes, len);
			bytes[0] = SHARED_VERSION;
			if (type != SHARED_RELEASE && type != SHARED_ROOM)
				shared_take(a->shared, type, 9, bytes, len);
		}
	assert_int_equal(a->rooms, rooms);
	assert_true(shared_is_ready(a->shared));
	destroy(c);
}

// A gathering: nobody can read it, all are told, and what is written back says which version it is.
static void a_gathering_is_told_sealed(void **state)
{
	(void)state;
	struct cluster *c = create();
	settle(c);
	uint8_t bytes[SHARED_DRAW_HEAD + 8] = {0};
	memcpy(bytes + SHARED_DRAW_HEAD, "the seed", 8);
	const uint32_t at = c->count;
	assert_true(shared_put_draw(c->at[c->conductor].shared, 5, 77, bytes, sizeof(bytes)));
	assert_int_equal(c->log[at].of.version, 77);
	assert_null(memmem(c->log[at].bytes, c->log[at].of.len, "the seed", 8));
	settle(c);
	for (uint32_t i = 0; i < APPLIANCES; i++) {
		assert_int_equal(c->at[i].draws, 1);
		assert_int_equal(c->at[i].draw_version, 77);
		assert_memory_equal(c->at[i].draw + SHARED_DRAW_HEAD, "the seed", 8);
	}
	shared_tell_draws(c->at[2].shared);
	assert_int_equal(c->at[2].draws, 2);
	const uint32_t before = c->count;
	assert_true(shared_restore(c->at[1].shared));
	uint32_t versions = 0;
	for (uint32_t i = before; i < c->count; i++)
		versions += c->log[i].of.version;
	assert_int_equal(versions, 77); // other records have none
	assert_true(shared_drop_draw(c->at[c->conductor].shared, 5));
	settle(c);
	assert_int_equal(c->at[1].draws_gone, 1);
	destroy(c);
}

// What a newer version says of a gathering, behind what this one does, stands when this one says
// the next step of it.
static void a_gathering_keeps_what_is_not_known(void **state)
{
	(void)state;
	struct cluster *c = create();
	settle(c);
	struct shared *conductor = c->at[c->conductor].shared;
	uint8_t longer[SHARED_DRAW_HEAD + 12] = {0}, bytes[SHARED_DRAW_HEAD + 8] = {0};
	memcpy(longer + SHARED_DRAW_HEAD, "the seedmore", 12);
	memcpy(bytes + SHARED_DRAW_HEAD, "the list", 8);
	assert_true(shared_put_draw(conductor, 5, 1, longer, sizeof(longer)));
	settle(c);
	assert_true(shared_put_draw(conductor, 5, 2, bytes, sizeof(bytes)));
	settle(c);
	assert_int_equal(c->at[1].draw_version, 2);
	assert_memory_equal(c->at[1].draw + SHARED_DRAW_HEAD, "the listmore", 12);
	destroy(c);
}

// Nobody knows which version a record is of that cannot be opened: others may know a later one.
static void a_gathering_that_cannot_be_read_is_not_written_back(void **state)
{
	(void)state;
	struct cluster *c = create();
	settle(c);
	uint8_t bytes[SHARED_DRAW_HEAD + 60];
	memset(bytes, 7, sizeof(bytes));
	shared_take(c->at[1].shared, SHARED_DRAW, 5, bytes, sizeof(bytes));
	const uint32_t before = c->count;
	assert_true(shared_restore(c->at[1].shared));
	assert_true(c->count > before);
	for (uint32_t i = before; i < c->count; i++)
		assert_int_not_equal(c->log[i].of.type, SHARED_DRAW);
	destroy(c);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(a_cluster_begins_with_its_first_conductors),
		cmocka_unit_test(nothing_secret_is_readable),
		cmocka_unit_test(a_secret_signs_when_all_have_it),
		cmocka_unit_test(who_is_down_is_waited_for),
		cmocka_unit_test(who_has_left_is_not),
		cmocka_unit_test(a_revoked_one_is_gone_everywhere),
		cmocka_unit_test(a_revocation_hurries_a_rotation),
		cmocka_unit_test(another_key_opens_nothing),
		cmocka_unit_test(rooms_are_told_and_deleted),
		cmocka_unit_test(people_are_released_once),
		cmocka_unit_test(a_gathering_is_told_sealed),
		cmocka_unit_test(a_gathering_keeps_what_is_not_known),
		cmocka_unit_test(a_gathering_that_cannot_be_read_is_not_written_back),
		cmocka_unit_test(a_loss_is_made_good),
		cmocka_unit_test(what_is_not_told_again_is_no_more),
		cmocka_unit_test(more_in_a_record_is_kept),
		cmocka_unit_test(a_higher_version_is_passed_over),
		cmocka_unit_test(an_unreadable_secret_keeps_its_id),
		cmocka_unit_test(a_full_set_of_unreadable_secrets_ends_rotation),
		cmocka_unit_test(damaged_records_are_passed_over),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
