// The batch (batch.h) is at once what a turn commits and the journal of what could not be written:
// a commit that fails leaves it as it is, the next turns add to it, and it is tried again with
// back-off until it goes through as a whole. So being unsaved is no second way of working, only a
// batch that grows older. Catching up is one transaction too; the records are merged, and SQLite
// writes some 300,000 of them a second.
//
// Every error of SQLite is taken alike: disk full, I/O error, read-only, a database that turned out
// damaged while running. None ends the process, all are shown.
//
// The database is the only thing that says which tickets are genuine, so opening is timid: it
// checks, and at the least doubt it refuses and leaves everything as it was found, the write-ahead
// log included.

#include "controlplane/store/store_sqlite.h"
#include "controlplane/store/batch.h"
#include "controlplane/store/mark.h"
#include "controlplane/store/store_sqlite_table.h"

#include <assert.h>
#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#define APPLICATION_ID 0x736c7563 // "sluc", in the header of the file

struct store_sqlite {
	struct store store;
	sqlite3 *db;
	struct store_sqlite_table *table;
	struct batch *batch;
	struct mark *mark;
	uint64_t retry_ms; // not before this; 0: at once
	uint32_t backoff_ms;
	char error[STORE_ERROR_MAX];
};

static const struct store_ops ops;

static struct store_sqlite *engine_of(struct store *store)
{
	assert(store->ops == &ops);
	return (struct store_sqlite *)store;
}

static int execute(sqlite3 *db, const char *sql)
{
	return sqlite3_exec(db, sql, NULL, NULL, NULL);
}

// The first column of the first row, at most `size` - 1 bytes of it.
static int query(sqlite3 *db, const char *sql, char *value, size_t size)
{
	sqlite3_stmt *row;
	int ret = sqlite3_prepare_v2(db, sql, -1, &row, NULL);
	if (ret != SQLITE_OK)
		return ret;
	value[0] = '\0';
	ret = sqlite3_step(row);
	if (ret == SQLITE_ROW)
		snprintf(value, size, "%s", (const char *)sqlite3_column_text(row, 0));
	sqlite3_finalize(row);
	return ret == SQLITE_ROW || ret == SQLITE_DONE ? SQLITE_OK : ret;
}

static int query_number(sqlite3 *db, const char *sql, long *number)
{
	char text[32];
	int ret = query(db, sql, text, sizeof(text));
	if (ret == SQLITE_OK)
		*number = strtol(text, NULL, 10);
	return ret;
}

// The -errno that an SQLite result amounts to.
static int errno_of(int result)
{
	switch (result & 0xff) {
	case SQLITE_OK:
		return 0;
	case SQLITE_NOTADB:
	case SQLITE_CORRUPT:
	case SQLITE_SCHEMA:
	case SQLITE_ERROR: // a statement that does not fit the tables
		return -EUCLEAN;
	case SQLITE_BUSY:
	case SQLITE_LOCKED:
		return -EBUSY;
	case SQLITE_FULL:
		return -ENOSPC;
	case SQLITE_READONLY:
		return -EROFS;
	case SQLITE_NOMEM:
		return -ENOMEM;
	case SQLITE_CANTOPEN:
		return -EACCES;
	case SQLITE_TOOBIG:
		return -EOVERFLOW;
	default:
		return -EIO;
	}
}

static int fail(char *error, int ret, const char *path, const char *what)
{
	snprintf(error, STORE_ERROR_MAX, "%s: %s", path, what);
	return ret;
}

static int fail_sqlite(struct store_sqlite *s, char *error, int result, const char *path)
{
	return fail(error, errno_of(result), path,
		s->db ? sqlite3_errmsg(s->db) : sqlite3_errstr(result));
}

// SQLite would make the file readable for all.
static int file_touch(const char *path)
{
	int fd = open(path, O_RDWR | O_CREAT | O_EXCL | O_CLOEXEC, 0600);
	if (fd < 0)
		return -errno;
	close(fd);
	return 0;
}

static int file_check(const char *path)
{
	struct stat st;
	if (lstat(path, &st) < 0)
		return -errno;
	if (!S_ISREG(st.st_mode) || st.st_mode & 077)
		return -EPERM;
	return access(path, R_OK | W_OK) < 0 ? -errno : 0;
}

static int schema_create(sqlite3 *db)
{
	char *sql = sqlite3_mprintf("PRAGMA application_id = %d; PRAGMA user_version = %d;"
				    "PRAGMA journal_mode = WAL; BEGIN; %s COMMIT;",
		APPLICATION_ID, STORE_SQLITE_SCHEMA, store_sqlite_table_schema);
	int ret = sql ? execute(db, sql) : SQLITE_NOMEM;
	sqlite3_free(sql);
	return ret;
}

// Make a new database whole under another name first, so that a half-made one is never found.
static int database_create(const char *path, char *error)
{
	char made[PATH_MAX];
	if ((size_t)snprintf(made, sizeof(made), "%s.new", path) >= sizeof(made))
		return fail(error, -ENAMETOOLONG, path, strerror(ENAMETOOLONG));
	unlink(made);
	int ret = file_touch(made);
	if (ret < 0)
		return fail(error, ret, path, strerror(-ret));
	sqlite3 *db;
	int result = sqlite3_open_v2(made, &db, SQLITE_OPEN_READWRITE, NULL);
	if (result == SQLITE_OK)
		result = schema_create(db);
	int closed = sqlite3_close(db); // takes the log into the file
	if (result == SQLITE_OK)
		result = closed;
	if (result != SQLITE_OK)
		ret = fail(error, errno_of(result), path, sqlite3_errstr(result));
	if (ret == 0 && rename(made, path) < 0)
		ret = fail(error, -errno, path, strerror(errno));
	if (ret < 0)
		unlink(made);
	return ret;
}

// Whether the database is ours, of this version, and whole.
static int schema_check(struct store_sqlite *s, const char *path, char *error)
{
	long id = 0, version = 0;
	char verdict[STORE_ERROR_MAX / 2];
	int ret = query_number(s->db, "PRAGMA application_id", &id);
	if (ret == SQLITE_OK)
		ret = query_number(s->db, "PRAGMA user_version", &version);
	if (ret == SQLITE_OK)
		ret = query(s->db, "PRAGMA quick_check(1)", verdict, sizeof(verdict));
	if (ret != SQLITE_OK)
		return fail_sqlite(s, error, ret, path);
	if (id != APPLICATION_ID)
		return fail(error, -EUCLEAN, path, "not a database of sluice");
	if (version > STORE_SQLITE_SCHEMA)
		return fail(error, -ENOTSUP, path, "written by a later version of sluice");
	if (version < 1)
		return fail(error, -EUCLEAN, path, "of an unknown version");
	if (strcmp(verdict, "ok") != 0) {
		const char *last_line = strrchr(verdict, '\n');
		return fail(error, -EUCLEAN, path, last_line ? last_line + 1 : verdict);
	}
	return 0;
}

// Bring a database of an earlier version to this one; whole or not at all.
static int schema_upgrade(struct store_sqlite *s)
{
	long version = 0;
	int ret = query_number(s->db, "PRAGMA user_version", &version);
	if (ret != SQLITE_OK || version == STORE_SQLITE_SCHEMA)
		return ret;
	ret = execute(s->db, "BEGIN");
	for (long step = version; step < STORE_SQLITE_SCHEMA && ret == SQLITE_OK; step++)
		ret = execute(s->db, store_sqlite_table_steps[step]);
	char sql[64];
	snprintf(sql, sizeof(sql), "PRAGMA user_version = %d", STORE_SQLITE_SCHEMA);
	if (ret == SQLITE_OK)
		ret = execute(s->db, sql);
	const int ended = execute(s->db, ret == SQLITE_OK ? "COMMIT" : "ROLLBACK");
	return ret == SQLITE_OK ? ended : ret;
}

static int connect_database(struct store_sqlite *s, const char *path)
{
	int ret = sqlite3_open_v2(path, &s->db, SQLITE_OPEN_READWRITE | SQLITE_OPEN_NOMUTEX, NULL);
	if (ret != SQLITE_OK)
		return ret;
	// Closing after a failed start must not move what is in the log.
	sqlite3_db_config(s->db, SQLITE_DBCONFIG_NO_CKPT_ON_CLOSE, 1, NULL);
	sqlite3_db_config(s->db, SQLITE_DBCONFIG_TRUSTED_SCHEMA, 0, NULL);
	return execute(s->db, "PRAGMA locking_mode = EXCLUSIVE; PRAGMA synchronous = FULL;"
			      "PRAGMA temp_store = MEMORY; PRAGMA secure_delete = ON;");
}

static int open_database(struct store_sqlite *s, const struct store_sqlite_plan *plan, char *error)
{
	int ret = file_check(plan->path);
	if (ret == -ENOENT && mark_exists(plan->mark_path))
		return fail(error, -EUCLEAN, plan->path,
			"is gone: put it back, or empty the state directory");
	if (ret == -ENOENT)
		ret = database_create(plan->path, error);
	else if (ret < 0)
		fail(error, ret, plan->path,
			ret == -EPERM ? "must be a file of mode 0600" : strerror(-ret));
	if (ret < 0)
		return ret;
	int result = connect_database(s, plan->path);
	if (result != SQLITE_OK)
		return fail_sqlite(s, error, result, plan->path);
	ret = schema_check(s, plan->path, error);
	if (ret < 0)
		return ret;
	result = schema_upgrade(s);
	if (result == SQLITE_OK)
		result = store_sqlite_table_create(s->db, &s->table);
	return result == SQLITE_OK ? 0 : fail_sqlite(s, error, result, plan->path);
}

static int open_mark(struct store_sqlite *s, const struct store_sqlite_plan *plan, char *error)
{
	int ret = mark_open(plan->mark_path, &s->mark);
	if (ret < 0)
		return fail(
			error, ret, plan->mark_path, ret == -EUCLEAN ? "damaged" : strerror(-ret));
	s->store.status.is_unclean = mark_is_set(s->mark, &s->store.status.unclean_until);
	if (!s->store.status.is_unclean)
		s->store.status.unclean_until = 0;
	return 0;
}

static void engine_destroy(struct store_sqlite *s)
{
	store_sqlite_table_destroy(s->table);
	sqlite3_close(s->db);
	mark_close(s->mark);
	batch_destroy(s->batch);
	free(s);
}

int store_sqlite_open(const struct store_sqlite_plan *plan, struct store **store, char *error)
{
	struct store_sqlite *s = calloc(1, sizeof(*s));
	if (!s)
		return fail(error, -ENOMEM, plan->path, "out of memory");
	s->store.ops = &ops;
	s->store.status.error = s->error;
	s->batch = batch_create(plan->records_max);
	int ret = s->batch ? 0 : fail(error, -ENOMEM, plan->path, "out of memory");
	if (ret == 0)
		ret = open_database(s, plan, error);
	if (ret == 0)
		ret = open_mark(s, plan, error);
	if (ret < 0) {
		engine_destroy(s);
		return ret;
	}
	sqlite3_db_config(s->db, SQLITE_DBCONFIG_NO_CKPT_ON_CLOSE, 0, NULL);
	s->store.status.free_count = batch_free_count(s->batch);
	*store = &s->store;
	return 0;
}

static int sqlite_load(
	struct store *store, enum store_kind kind, uint64_t max, store_record_fn *record, void *ctx)
{
	struct store_sqlite *s = engine_of(store);
	int ret = store_sqlite_table_read(s->db, kind, max, record, ctx);
	if (ret != SQLITE_OK)
		snprintf(s->error, sizeof(s->error), "%s", sqlite3_errstr(ret));
	return errno_of(ret);
}

static void status_update(struct store_sqlite *s)
{
	struct store_status *status = &s->store.status;
	status->unsaved_count = status->is_unsaved ? batch_count(s->batch) : 0;
	status->free_count = batch_free_count(s->batch);
}

static bool sqlite_put(struct store *store, const struct store_record *record)
{
	struct store_sqlite *s = engine_of(store);
	bool is_put = batch_put(s->batch, record);
	store->status.dropped_total += !is_put;
	status_update(s);
	return is_put;
}

static int commit(struct store_sqlite *s)
{
	int ret = execute(s->db, "BEGIN IMMEDIATE");
	uint32_t at = 0;
	const struct store_record *record;
	while (ret == SQLITE_OK && (record = batch_next(s->batch, &at)))
		ret = store_sqlite_table_write(s->table, record);
	if (ret == SQLITE_OK)
		ret = execute(s->db, "COMMIT");
	if (ret != SQLITE_OK) {
		snprintf(s->error, sizeof(s->error), "%s", sqlite3_errmsg(s->db));
		if (!sqlite3_get_autocommit(s->db)) // some errors have rolled back already
			execute(s->db, "ROLLBACK");
	}
	return ret;
}

static void commit_succeeded(struct store_sqlite *s)
{
	struct store_status *status = &s->store.status;
	batch_clear(s->batch);
	status->commits_total++;
	status->is_unsaved = false;
	s->error[0] = '\0';
	s->retry_ms = s->backoff_ms = 0;
	if (!status->is_unclean)
		mark_clear(s->mark);
}

static void commit_failed(struct store_sqlite *s, uint64_t now_ms)
{
	struct store_status *status = &s->store.status;
	status->failures_total++;
	if (!status->is_unsaved)
		status->unsaved_since_ms = now_ms;
	status->is_unsaved = true;
	s->backoff_ms = s->backoff_ms ? 2 * s->backoff_ms : STORE_SQLITE_BACKOFF_MIN_MS;
	if (s->backoff_ms > STORE_SQLITE_BACKOFF_MAX_MS)
		s->backoff_ms = STORE_SQLITE_BACKOFF_MAX_MS;
	s->retry_ms = now_ms + s->backoff_ms;
}

static void sqlite_begin(struct store *store, uint64_t now_ms)
{
	struct store_sqlite *s = engine_of(store);
	if (batch_count(s->batch) > 0 && now_ms >= s->retry_ms) {
		if (commit(s) == SQLITE_OK)
			commit_succeeded(s);
		else
			commit_failed(s, now_ms);
	}
	// Before anything leaves that is not saved.
	if (batch_count(s->batch) > 0)
		mark_set(s->mark, batch_until(s->batch));
	status_update(s);
}

static void sqlite_poll(struct store *store, uint64_t now_ms)
{
	(void)now_ms;
	assert(!store->status.is_pending);
}

static void sqlite_settle(struct store *store)
{
	struct store_sqlite *s = engine_of(store);
	store->status.is_unclean = false;
	store->status.unclean_until = 0;
	if (!store->status.is_unsaved)
		mark_clear(s->mark);
}

static void sqlite_close(struct store *store, uint64_t now_ms)
{
	struct store_sqlite *s = engine_of(store);
	s->retry_ms = 0;
	sqlite_begin(store, now_ms);
	engine_destroy(s);
}

static const struct store_ops ops = {
	.load = sqlite_load,
	.put = sqlite_put,
	.begin = sqlite_begin,
	.poll = sqlite_poll,
	.settle = sqlite_settle,
	.close = sqlite_close,
};
