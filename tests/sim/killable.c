// Each process of SQLite's has files of its own, so that the one that was killed can be closed
// without a trace.

#include "tests/sim/killable.h"
#include "controlplane/store/store_sqlite.h"
#include "tests/unit/store/fault_vfs.h"

#include <assert.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

#define RECORDS_MAX 50000u // of a batch

static const char *const names[] = {"db", "db-wal", "unsaved"};
#define NAMES (sizeof(names) / sizeof(names[0]))

static const char *file_name(const struct killable *k, uint32_t life, const char *name)
{
	static char made[2][128];
	static unsigned next;
	char *file = made[next++ % 2];
	snprintf(file, sizeof(made[0]), "%s/%u.%s", k->place, life, name);
	return file;
}

static void file_copy(const struct killable *k, const char *name)
{
	static char block[1u << 16];
	int from = open(file_name(k, k->life, name), O_RDONLY);
	if (from < 0)
		return; // the log may be absent
	int to = open(file_name(k, k->life + 1, name), O_WRONLY | O_CREAT | O_TRUNC, 0600);
	ssize_t len;
	while ((len = read(from, block, sizeof(block))) > 0) {
		ssize_t written = write(to, block, (size_t)len);
		assert(written == len);
	}
	close(from);
	close(to);
}

static void files_remove(const struct killable *k)
{
	for (size_t i = 0; i < NAMES; i++)
		unlink(file_name(k, k->life, names[i]));
}

static void sqlite_open(struct killable *k)
{
	char error[STORE_ERROR_MAX];
	struct store_sqlite_plan plan = {
		file_name(k, k->life, "db"), file_name(k, k->life, "unsaved"), RECORDS_MAX};
	if (store_sqlite_open(&plan, &k->store, error) == 0)
		return;
	fprintf(stderr, "%s\n", error);
	abort();
}

void killable_begin(struct killable *k, bool is_sqlite)
{
	store_model_init(&k->model, RECORDS_MAX);
	k->store = &k->model.store;
	k->life = 0;
	k->is_sqlite = is_sqlite;
	if (!is_sqlite)
		return;
	// In memory where possible: thousands of commits are synced.
	const char *base = access("/dev/shm", W_OK) == 0 ? "/dev/shm" : "/tmp";
	snprintf(k->place, sizeof(k->place), "%s/sluice-sim-XXXXXX", base);
	char *place = mkdtemp(k->place);
	assert(place);
	sqlite_open(k);
}

void killable_end(struct killable *k, uint64_t now_ms)
{
	if (k->is_sqlite) {
		store_close(k->store, now_ms);
		files_remove(k);
		rmdir(k->place);
	}
	store_model_fini(&k->model);
}

static bool sqlite_kill(struct killable *k, uint64_t now_ms)
{
	bool is_marked = k->store->status.is_unsaved || k->store->status.is_unclean;
	for (size_t i = 0; i < NAMES; i++)
		file_copy(k, names[i]);
	store_close(k->store, now_ms);
	files_remove(k);
	k->life++;
	killable_weather(k, 0, 0);
	sqlite_open(k);
	return is_marked;
}

bool killable_kill(struct killable *k, bool is_done, uint64_t now_ms)
{
	if (k->is_sqlite)
		return sqlite_kill(k, now_ms);
	bool is_marked = k->model.is_marked;
	store_model_crash(&k->model, is_done);
	killable_weather(k, 0, 0);
	return is_marked;
}

void killable_weather(struct killable *k, uint64_t delay_ms, uint32_t fault)
{
	k->model.delay_ms = delay_ms;
	k->model.is_failing = fault != 0 && delay_ms == 0;
	fault_vfs_mode = k->is_sqlite ? (enum fault_vfs_mode)fault : FAULT_VFS_NONE;
}

struct wanted {
	uint64_t id;
	struct store_session found;
	bool is_found;
};

static void look_for_visitor(void *ctx, const struct store_record *record)
{
	struct wanted *wanted = ctx;
	if (record->session.visitor != wanted->id)
		return;
	wanted->found = record->session;
	wanted->is_found = true;
}

static void look_for_ended(void *ctx, const struct store_record *record)
{
	struct wanted *wanted = ctx;
	wanted->is_found |= record->ended.session == wanted->id;
}

bool killable_knows(const struct killable *k, uint64_t visitor, uint64_t session, uint32_t expires)
{
	struct wanted wanted = {.id = visitor};
	int ret = store_load(k->store, STORE_GRANTED, UINT64_MAX, look_for_visitor, &wanted);
	assert(ret == 0);
	return wanted.is_found && wanted.found.session == session &&
	       wanted.found.expires >= expires && !wanted.found.is_over;
}

bool killable_knows_end(const struct killable *k, uint64_t session)
{
	struct wanted wanted = {.id = session};
	int ret = store_load(k->store, STORE_ENDED, UINT64_MAX, look_for_ended, &wanted);
	assert(ret == 0);
	return wanted.is_found;
}
