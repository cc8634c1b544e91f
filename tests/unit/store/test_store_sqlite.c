// The SQLite store: what was committed is there after a kill, what cannot be written is kept and
// marked, what is damaged is refused and left alone.

#include "controlplane/store/mark.h"
#include "controlplane/store/store_sqlite.h"
#include "tests/unit/store/fault_vfs.h"

#include <sqlite3.h>

#include <errno.h>
#include <fcntl.h>
#include <setjmp.h>
#include <signal.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mount.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cmocka.h>

#define NOW 1764583200000ull
#define RECORDS_MAX 20000u

static char base[64], path[96], mark_path[96], error[STORE_ERROR_MAX];

static int base_new(void **state)
{
	(void)state;
	snprintf(base, sizeof(base), "/tmp/sluice-store-XXXXXX");
	if (!mkdtemp(base))
		return -1;
	snprintf(path, sizeof(path), "%s/sluice.db", base);
	snprintf(mark_path, sizeof(mark_path), "%s/unsaved", base);
	return 0;
}

static void remove_beside(const char *suffix)
{
	char name[120];
	snprintf(name, sizeof(name), "%s%s", path, suffix);
	unlink(name);
}

static int base_remove(void **state)
{
	(void)state;
	fault_vfs_mode = FAULT_VFS_NONE;
	remove_beside("");
	remove_beside("-wal");
	remove_beside(".away");
	unlink(mark_path);
	return rmdir(base);
}

static int try_open(struct store **store)
{
	struct store_sqlite_plan plan = {path, mark_path, RECORDS_MAX};
	error[0] = '\0';
	return store_sqlite_open(&plan, store, error);
}

static struct store *must_open(void)
{
	struct store *store;
	int ret = try_open(&store);
	if (ret < 0)
		print_message("%s\n", error);
	assert_int_equal(ret, 0);
	return store;
}

static struct store_record a_session(uint64_t visitor, uint32_t expires)
{
	return (struct store_record){.kind = STORE_GRANTED,
		.session = {.line_id = 1,
			.visitor = visitor,
			.session = ~visitor,
			.key = visitor << 24,
			.expires = expires}};
}

static void put_session(struct store *s, uint64_t visitor, uint32_t expires)
{
	struct store_record record = a_session(visitor, expires);
	assert_true(store_put(s, &record));
}

static void count_one(void *ctx, const struct store_record *record)
{
	(void)record;
	++*(uint64_t *)ctx;
}

static uint64_t count_of(struct store *s, enum store_kind kind)
{
	uint64_t count = 0;
	assert_int_equal(store_load(s, kind, UINT64_MAX, count_one, &count), 0);
	return count;
}

struct last {
	struct store_record record;
	char text[STORE_TEXT_MAX + 1];
	uint64_t count;
};

static void keep_last(void *ctx, const struct store_record *record)
{
	struct last *last = ctx;
	last->record = *record;
	last->count++;
	const char *text = record->kind == STORE_ROOM    ? record->room.message
			   : record->kind == STORE_AUDIT ? record->audit.text
							 : "";
	snprintf(last->text, sizeof(last->text), "%s", text);
}

// Every kind comes back as it was put, extremes included.
static void all_kinds_come_back(void **state)
{
	(void)state;
	static const struct store_record records[] = {
		{.kind = STORE_GRANTED,
			.session = {UINT32_MAX, UINT32_MAX, UINT64_MAX, 1ull << 63, UINT64_MAX - 1,
				false}},
		{.kind = STORE_ENDED, .ended = {UINT32_MAX, UINT32_MAX, UINT64_MAX}},
		{.kind = STORE_LINE, .line = {UINT32_MAX, UINT64_MAX, 1ull << 63}},
		{.kind = STORE_ROOM, .room = {7, 2, STORE_AS_CONFIGURED, "売り切れ \"1\" <b>"}},
		{.kind = STORE_SECRET,
			.secret = {255, {0, 1, 2, [31] = 0xff}, UINT32_MAX, UINT64_MAX}},
		{.kind = STORE_CLOCK, .clock = {NOW}},
		{.kind = STORE_CONFIG, .config = {NOW, {1, 0, [31] = 9}}},
		{.kind = STORE_AUDIT, .audit = {NOW, "room derby release 10: done"}},
	};
	struct store *s = must_open();
	for (size_t i = 0; i < sizeof(records) / sizeof(records[0]); i++)
		assert_true(store_put(s, &records[i]));
	store_begin(s, NOW);
	assert_false(store_poll(s, NOW)->is_pending);
	store_close(s, NOW);
	s = must_open();
	for (size_t i = 0; i < sizeof(records) / sizeof(records[0]); i++) {
		struct last last = {0};
		print_message("kind %u\n", records[i].kind);
		assert_int_equal(store_load(s, records[i].kind, 1, keep_last, &last), 0);
		assert_int_equal(last.count, 1);
		if (records[i].kind == STORE_ROOM) {
			assert_string_equal(last.text, records[i].room.message);
			last.record.room.message = records[i].room.message;
		}
		if (records[i].kind == STORE_AUDIT) {
			assert_string_equal(last.text, records[i].audit.text);
			last.record.audit.text = records[i].audit.text;
		}
		assert_memory_equal(&last.record, &records[i], sizeof(last.record));
	}
	store_close(s, NOW);
	store_close(NULL, NOW);
}

static void a_session_goes_its_way(void **state)
{
	(void)state;
	struct store *s = must_open();
	struct last last = {0};
	struct store_record record = a_session(5, 100);
	static const struct {
		uint8_t kind;
		uint32_t expires;
		uint64_t count;
		bool is_over;
	} steps[] = {
		{STORE_GRANTED, 100, 1, false},
		{STORE_RENEWED, 200, 1, false},
		{STORE_OVER, 200, 1, true},
		{STORE_FORGOTTEN, 0, 0, false},
	};
	for (size_t i = 0; i < sizeof(steps) / sizeof(steps[0]); i++) {
		record.kind = steps[i].kind;
		record.session.expires = steps[i].expires;
		store_put(s, &record);
		store_begin(s, NOW);
		last = (struct last){0};
		assert_int_equal(store_load(s, STORE_GRANTED, 10, keep_last, &last), 0);
		assert_int_equal(last.count, steps[i].count);
		if (!last.count)
			continue;
		assert_int_equal(last.record.session.expires, steps[i].expires);
		assert_int_equal(last.record.session.is_over, steps[i].is_over);
		assert_int_equal(last.record.session.key, 5ull << 24);
	}
	store_close(s, NOW);
}

static void the_clock_drops_what_has_ended(void **state)
{
	(void)state;
	struct store *s = must_open();
	for (uint32_t i = 1; i <= 10; i++)
		store_put(s, &(struct store_record){.kind = STORE_ENDED, .ended = {1, i, i}});
	store_begin(s, NOW);
	assert_int_equal(count_of(s, STORE_ENDED), 10);
	store_put(s, &(struct store_record){.kind = STORE_CLOCK, .clock = {6999}});
	store_begin(s, NOW);
	assert_int_equal(count_of(s, STORE_ENDED), 4);
	store_close(s, NOW);
}

static void history_is_bounded(void **state)
{
	(void)state;
	struct store *s = must_open();
	for (uint64_t i = 1; i <= STORE_HISTORY_MAX + 5; i++) {
		store_put(s, &(struct store_record){.kind = STORE_AUDIT, .audit = {i, "x"}});
		store_put(s, &(struct store_record){.kind = STORE_CONFIG, .config = {.ms = i}});
		if (i % 300 == 0)
			store_begin(s, NOW);
	}
	store_begin(s, NOW);
	struct last last = {0};
	assert_int_equal(store_load(s, STORE_AUDIT, STORE_HISTORY_MAX, keep_last, &last), 0);
	assert_int_equal(last.count, STORE_HISTORY_MAX);
	assert_int_equal(last.record.audit.ms, STORE_HISTORY_MAX + 5); // oldest first
	assert_int_equal(count_of(s, STORE_CONFIG), STORE_HISTORY_MAX);
	store_close(s, NOW);
}

static void loading_is_bounded(void **state)
{
	(void)state;
	struct store *s = must_open();
	for (uint64_t i = 1; i <= 10; i++)
		put_session(s, i, 1);
	store_begin(s, NOW);
	uint64_t count = 0;
	assert_int_equal(store_load(s, STORE_GRANTED, 10, count_one, &count), 0);
	count = 0;
	assert_int_equal(store_load(s, STORE_GRANTED, 9, count_one, &count), -EOVERFLOW);
	assert_int_equal(count, 9);
	store_close(s, NOW);
}

static void files_are_private(void **state)
{
	(void)state;
	mode_t old = umask(0);
	struct store *s = must_open();
	put_session(s, 1, 1);
	store_begin(s, NOW);
	umask(old);
	char log[120];
	snprintf(log, sizeof(log), "%s-wal", path);
	const char *files[] = {path, log, mark_path};
	for (int i = 0; i < 3; i++) {
		struct stat st;
		assert_int_equal(stat(files[i], &st), 0);
		assert_int_equal(st.st_mode & 0777, 0600);
	}
	store_close(s, NOW);
	chmod(path, 0644);
	assert_int_equal(try_open(&s), -EPERM);
	assert_non_null(strstr(error, "mode 0600"));
}

// Run `story` in a child that is killed at its end, and say whether it got there.
static void in_a_child_killed(void (*story)(void))
{
	pid_t child = fork();
	if (child == 0) {
		story();
		raise(SIGKILL);
	}
	int status;
	waitpid(child, &status, 0);
	assert_true(WIFSIGNALED(status) && WTERMSIG(status) == SIGKILL);
}

static void commit_a_hundred(void)
{
	struct store *s;
	if (try_open(&s) < 0)
		_exit(1);
	for (uint64_t i = 1; i <= 100; i++) {
		struct store_record record = a_session(i, 1);
		store_put(s, &record);
		store_begin(s, NOW);
	}
	struct store_record record = a_session(101, 1);
	store_put(s, &record); // never begun
}

static void a_killed_process_loses_nothing(void **state)
{
	(void)state;
	in_a_child_killed(commit_a_hundred);
	struct store *s = must_open();
	assert_int_equal(count_of(s, STORE_GRANTED), 100);
	assert_false(s->status.is_unclean);
	store_close(s, NOW);
}

// Whatever makes writing fail: kept, counted, tried with back-off, caught up.
static void what_cannot_be_written_is_kept(void **state)
{
	(void)state;
	static const struct {
		enum fault_vfs_mode mode;
		const char *error;
	} cases[] = {
		{FAULT_VFS_FULL, "full"},
		{FAULT_VFS_READONLY, "readonly"},
		{FAULT_VFS_IO, "I/O"},
		{FAULT_VFS_SYNC, "I/O"},
	};
	for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
		print_message("%s\n", cases[i].error);
		struct store *s = must_open();
		uint64_t before = count_of(s, STORE_GRANTED), visitor = 1000 * (i + 1);
		put_session(s, visitor + 1, 1);
		store_begin(s, NOW);
		fault_vfs_mode = cases[i].mode;
		put_session(s, visitor + 2, 1);
		put_session(s, visitor + 3, 2);
		store_begin(s, NOW + 10);
		const struct store_status *status = store_poll(s, NOW + 10);
		assert_false(status->is_pending);
		assert_true(status->is_unsaved);
		assert_int_equal(status->unsaved_count, 2);
		assert_int_equal(status->unsaved_since_ms, NOW + 10);
		assert_int_equal(status->failures_total, 1);
		assert_non_null(strstr(status->error, cases[i].error));
		fault_vfs_mode = FAULT_VFS_NONE;
		put_session(s, visitor + 4, 1);
		store_begin(s, NOW + 50); // too early to try again
		assert_int_equal(status->unsaved_count, 3);
		assert_int_equal(status->unsaved_since_ms, NOW + 10);
		store_begin(s, NOW + 10 + STORE_SQLITE_BACKOFF_MIN_MS);
		assert_false(status->is_unsaved);
		assert_int_equal(status->unsaved_count, 0);
		assert_string_equal(status->error, "");
		assert_int_equal(count_of(s, STORE_GRANTED), before + 4);
		store_close(s, NOW);
	}
}

static void backing_off_has_a_limit(void **state)
{
	(void)state;
	struct store *s = must_open();
	fault_vfs_mode = FAULT_VFS_FULL;
	put_session(s, 1, 1);
	for (uint64_t ms = 0; ms < 60000; ms += 10)
		store_begin(s, NOW + ms);
	// 100, 200, ... 3200 ms, then every 5 s.
	assert_in_range(s->status.failures_total, 15, 19);
	fault_vfs_mode = FAULT_VFS_NONE;
	store_begin(s, NOW + 66000);
	assert_false(s->status.is_unsaved);
	store_close(s, NOW);
}

static void admit_unsaved(void)
{
	struct store *s;
	if (try_open(&s) < 0)
		_exit(1);
	fault_vfs_mode = FAULT_VFS_FULL;
	struct store_record record = a_session(1, 5000);
	store_put(s, &record);
	store_begin(s, NOW);
	if (!s->status.is_unsaved)
		_exit(1);
}

static void the_next_process_knows(void **state)
{
	(void)state;
	in_a_child_killed(admit_unsaved);
	for (int start = 0; start < 2; start++) { // it stays known until settled
		struct store *s = must_open();
		assert_true(s->status.is_unclean);
		assert_int_equal(s->status.unclean_until, 5000);
		put_session(s, 2, 6000);
		store_begin(s, NOW); // saving does not settle it
		assert_true(s->status.is_unclean);
		store_close(s, NOW);
	}
	struct store *s = must_open();
	store_settle(s);
	assert_false(s->status.is_unclean);
	store_close(s, NOW);
	s = must_open();
	assert_false(s->status.is_unclean);
	store_close(s, NOW);
}

static void settling_while_unsaved_keeps_the_mark(void **state)
{
	(void)state;
	in_a_child_killed(admit_unsaved);
	struct store *s = must_open();
	fault_vfs_mode = FAULT_VFS_FULL;
	put_session(s, 2, 6000);
	store_begin(s, NOW);
	store_settle(s);
	store_close(s, NOW); // cannot save it either
	fault_vfs_mode = FAULT_VFS_NONE;
	s = must_open();
	assert_true(s->status.is_unclean);
	assert_int_equal(s->status.unclean_until, 6000);
	store_close(s, NOW);
}

static void closing_saves_what_it_can(void **state)
{
	(void)state;
	struct store *s = must_open();
	fault_vfs_mode = FAULT_VFS_FULL;
	put_session(s, 1, 5000);
	store_begin(s, NOW);
	fault_vfs_mode = FAULT_VFS_NONE;
	put_session(s, 2, 5000);
	store_close(s, NOW + 1);
	s = must_open();
	assert_int_equal(count_of(s, STORE_GRANTED), 2);
	assert_false(s->status.is_unclean);
	store_close(s, NOW);
}

static void a_full_batch_counts_what_it_drops(void **state)
{
	(void)state;
	struct store *s = must_open();
	for (uint64_t i = 1; i <= RECORDS_MAX; i++)
		put_session(s, i, 1);
	assert_int_equal(s->status.free_count, 0);
	struct store_record record = a_session(RECORDS_MAX + 1, 1);
	assert_false(store_put(s, &record));
	assert_int_equal(s->status.dropped_total, 1);
	store_begin(s, NOW);
	assert_int_equal(s->status.free_count, RECORDS_MAX);
	assert_int_equal(count_of(s, STORE_GRANTED), RECORDS_MAX);
	store_close(s, NOW);
}

static void fill_disk(void)
{
	char name[120];
	snprintf(name, sizeof(name), "%s/ballast", base);
	int fd = open(name, O_RDWR | O_CREAT, 0600);
	static const char block[4096];
	while (write(fd, block, sizeof(block)) > 0)
		;
	close(fd);
}

static void admit_on_a_full_disk(void)
{
	struct store *s;
	if (try_open(&s) < 0)
		_exit(1);
	fill_disk();
	for (uint64_t visitor = 10; visitor < 10000 && !s->status.is_unsaved; visitor++) {
		struct store_record record = a_session(visitor, 5000);
		store_put(s, &record);
		store_begin(s, NOW);
	}
	if (!s->status.is_unsaved)
		_exit(1);
}

// The whole story on a disk that is really full: the process goes on, is killed, the next one
// starts on the disk that is still full and knows, and all is well when there is room again.
static void a_disk_that_is_really_full(void **state)
{
	(void)state;
	if (geteuid() != 0 || mount("none", base, "tmpfs", 0, "size=1m") < 0)
		skip();
	struct store *s = must_open();
	put_session(s, 1, 5000);
	store_close(s, NOW);
	in_a_child_killed(admit_on_a_full_disk);
	int started = try_open(&s);
	bool is_unclean = false, was_unsaved = false, is_saved = false;
	uint64_t known = 0;
	if (started == 0) {
		is_unclean = s->status.is_unclean;
		for (uint64_t visitor = 20000; visitor < 30000 && !was_unsaved; visitor++) {
			struct store_record record = a_session(visitor, 6000);
			store_put(s, &record);
			store_begin(s, NOW);
			was_unsaved = s->status.is_unsaved;
		}
		char name[120];
		snprintf(name, sizeof(name), "%s/ballast", base);
		unlink(name);
		store_begin(s, NOW + 10000);
		is_saved = !s->status.is_unsaved;
		known = count_of(s, STORE_GRANTED);
		store_close(s, NOW);
	}
	umount(base);
	assert_int_equal(started, 0);
	assert_true(is_unclean && was_unsaved && is_saved);
	assert_true(known > 1);
}

// The first start on a full disk leaves nothing half made.
static void a_first_start_without_space(void **state)
{
	(void)state;
	if (geteuid() != 0 || mount("none", base, "tmpfs", 0, "size=64k") < 0)
		skip();
	fill_disk();
	struct store *s;
	int started = try_open(&s);
	bool is_made = access(path, F_OK) == 0 || mark_exists(mark_path);
	umount(base);
	assert_int_equal(started, -ENOSPC);
	assert_false(is_made);
	assert_non_null(strstr(error, "full"));
}

// A limit on the size of files, as of a quota.
static void files_that_may_not_grow(void **state)
{
	(void)state;
	struct store *s = must_open();
	signal(SIGXFSZ, SIG_IGN);
	struct rlimit old, small;
	getrlimit(RLIMIT_FSIZE, &old);
	small = (struct rlimit){64 * 1024, old.rlim_max};
	setrlimit(RLIMIT_FSIZE, &small);
	uint64_t put = 0;
	for (; put < 10000 && !s->status.is_unsaved; put++) {
		put_session(s, put + 1, 5000);
		store_begin(s, NOW);
	}
	setrlimit(RLIMIT_FSIZE, &old);
	assert_true(s->status.is_unsaved);
	store_begin(s, NOW + 1000);
	assert_false(s->status.is_unsaved);
	assert_int_equal(count_of(s, STORE_GRANTED), put);
	store_close(s, NOW);
}

static void some_content(void)
{
	struct store *s = must_open();
	for (uint64_t i = 1; i <= 500; i++)
		put_session(s, i, 5000);
	store_begin(s, NOW);
	store_close(s, NOW);
}

static char *file_read(const char *name, size_t *len)
{
	int fd = open(name, O_RDONLY);
	assert_true(fd >= 0);
	struct stat st;
	fstat(fd, &st);
	char *content = malloc((size_t)st.st_size + 1);
	*len = (size_t)read(fd, content, (size_t)st.st_size);
	close(fd);
	return content;
}

static void file_write(const char *name, const char *content, size_t len)
{
	int fd = open(name, O_WRONLY | O_TRUNC);
	assert_true(fd >= 0);
	assert_int_equal(write(fd, content, len), len);
	close(fd);
}

static void a_damaged_database_is_refused_and_left(void **state)
{
	(void)state;
	static const struct {
		const char *name;
		size_t at, bytes, keep; // overwritten from `at`; cut to `keep` if not 0
	} cases[] = {
		{"no header", 0, 100, 0},
		{"a page of noise", 2 * 4096, 4096, 0},
		{"a root page of noise", 4096, 4096, 0},
		{"cut in the middle", 0, 0, 3 * 4096},
		{"cut to its header", 0, 0, 100},
		{"another application", 68, 4, 0},
	};
	for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
		print_message("%s\n", cases[i].name);
		some_content();
		size_t len, len_after;
		char *content = file_read(path, &len);
		memset(content + cases[i].at, 0x5a, cases[i].bytes);
		len = cases[i].keep ? cases[i].keep : len;
		file_write(path, content, len);
		struct store *s;
		assert_int_equal(try_open(&s), -EUCLEAN);
		print_message("  %s\n", error);
		assert_memory_equal(error, path, strlen(path));
		char *after = file_read(path, &len_after);
		assert_int_equal(len_after, len);
		assert_memory_equal(after, content, len);
		free(content);
		free(after);
		unlink(path);
		unlink(mark_path);
	}
}

static void execute(const char *sql)
{
	sqlite3 *db;
	assert_int_equal(sqlite3_open(path, &db), SQLITE_OK);
	int ret = sqlite3_exec(db, sql, NULL, NULL, NULL);
	if (ret != SQLITE_OK)
		print_message("%s\n", sqlite3_errmsg(db));
	assert_int_equal(ret, SQLITE_OK);
	sqlite3_close(db);
}

static void other_versions_are_refused(void **state)
{
	(void)state;
	static const struct {
		const char *sql, *error;
		int ret;
	} cases[] = {
		{"PRAGMA user_version = 2", "later version", -ENOTSUP},
		{"PRAGMA user_version = 0", "unknown version", -EUCLEAN},
		{"PRAGMA user_version = -1", "unknown version", -EUCLEAN},
		{"PRAGMA application_id = 1", "not a database of sluice", -EUCLEAN},
		{"DROP TABLE sessions", "no such table", -EUCLEAN},
	};
	for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
		some_content();
		execute(cases[i].sql);
		struct store *s;
		assert_int_equal(try_open(&s), cases[i].ret);
		assert_non_null(strstr(error, cases[i].error));
		unlink(path);
		unlink(mark_path);
	}
}

static void rows_that_cannot_be(void **state)
{
	(void)state;
	static const struct {
		const char *sql;
		enum store_kind kind;
	} cases[] = {
		{"INSERT INTO sessions VALUES (4294967296, 1, 1, 1, 1, 0)", STORE_GRANTED},
		{"INSERT INTO sessions VALUES (-1, 1, 1, 1, 1, 0)", STORE_GRANTED},
		{"INSERT INTO sessions VALUES (1, 1, 1, 1, -5, 0)", STORE_GRANTED},
		{"INSERT INTO sessions VALUES (1, 1, 1, 1, 1, 2)", STORE_GRANTED},
		{"INSERT INTO ended VALUES (1, 1, 4294967296)", STORE_ENDED},
		{"INSERT INTO lines VALUES (4294967296, 1, 1)", STORE_LINE},
		{"INSERT INTO rooms VALUES (1, 256, 0, '')", STORE_ROOM},
		{"INSERT INTO rooms VALUES (1, 0, 0, printf('%1025c', 'x'))", STORE_ROOM},
		{"INSERT INTO secrets VALUES (0, zeroblob(32), 1, 1)", STORE_SECRET},
		{"INSERT INTO secrets VALUES (256, zeroblob(32), 1, 1)", STORE_SECRET},
		{"INSERT INTO secrets VALUES (1, zeroblob(31), 1, 1)", STORE_SECRET},
		{"INSERT INTO configs VALUES (1, 1, zeroblob(33))", STORE_CONFIG},
	};
	for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
		store_close(must_open(), NOW);
		execute(cases[i].sql);
		struct store *s = must_open();
		uint64_t count = 0;
		print_message("%s\n", cases[i].sql);
		assert_int_equal(store_load(s, cases[i].kind, 10, count_one, &count), -EUCLEAN);
		assert_int_equal(count, 0);
		store_close(s, NOW);
		unlink(path);
		unlink(mark_path);
	}
}

static void a_lost_database_is_not_made_anew(void **state)
{
	(void)state;
	some_content();
	struct store *s;
	unlink(path);
	assert_int_equal(try_open(&s), -EUCLEAN);
	assert_non_null(strstr(error, "gone"));
	assert_int_equal(access(path, F_OK), -1);
	// Emptied instead.
	int fd = open(path, O_RDWR | O_CREAT, 0600);
	close(fd);
	assert_int_equal(try_open(&s), -EUCLEAN);
	struct stat st;
	assert_int_equal(stat(path, &st), 0);
	assert_int_equal(st.st_size, 0);
	// Really meant.
	unlink(path);
	unlink(mark_path);
	s = must_open();
	store_close(s, NOW);
}

static void a_damaged_mark_is_refused(void **state)
{
	(void)state;
	some_content();
	assert_int_equal(truncate(mark_path, 10), 0);
	struct store *s;
	assert_int_equal(try_open(&s), -EUCLEAN);
	assert_non_null(strstr(error, "unsaved: damaged"));
}

// The log of a killed process survives a start that was refused.
static void a_refused_start_keeps_the_log(void **state)
{
	(void)state;
	in_a_child_killed(commit_a_hundred);
	assert_int_equal(truncate(mark_path, 10), 0);
	struct store *s;
	assert_int_equal(try_open(&s), -EUCLEAN);
	unlink(mark_path);
	s = must_open();
	assert_int_equal(count_of(s, STORE_GRANTED), 100);
	store_close(s, NOW);
}

static void one_process_at_a_time(void **state)
{
	(void)state;
	struct store *s = must_open(), *second;
	put_session(s, 1, 1);
	store_begin(s, NOW);
	// SQLite's locks are the process's, so the second one must be another.
	pid_t child = fork();
	if (child == 0)
		_exit(try_open(&second) == -EBUSY ? 0 : 1);
	int status;
	waitpid(child, &status, 0);
	assert_int_equal(status, 0);
	store_close(s, NOW);
}

// Somebody moves the database away under the running process.
static void a_database_moved_away(void **state)
{
	(void)state;
	struct store *s = must_open();
	char away[120];
	snprintf(away, sizeof(away), "%s.away", path);
	put_session(s, 1, 1);
	store_begin(s, NOW);
	assert_int_equal(rename(path, away), 0);
	put_session(s, 2, 1);
	store_begin(s, NOW);
	assert_int_equal(rename(away, path), 0);
	store_begin(s, NOW + 1000);
	assert_false(s->status.is_unsaved);
	store_close(s, NOW + 1000);
	s = must_open();
	assert_int_equal(count_of(s, STORE_GRANTED), 2);
	store_close(s, NOW);
}

#define STORY(story) cmocka_unit_test_setup_teardown(story, base_new, base_remove)

int main(void)
{
	fault_vfs_install();
	const struct CMUnitTest tests[] = {
		STORY(all_kinds_come_back),
		STORY(a_session_goes_its_way),
		STORY(the_clock_drops_what_has_ended),
		STORY(history_is_bounded),
		STORY(loading_is_bounded),
		STORY(files_are_private),
		STORY(a_killed_process_loses_nothing),
		STORY(what_cannot_be_written_is_kept),
		STORY(backing_off_has_a_limit),
		STORY(the_next_process_knows),
		STORY(settling_while_unsaved_keeps_the_mark),
		STORY(closing_saves_what_it_can),
		STORY(a_full_batch_counts_what_it_drops),
		STORY(a_disk_that_is_really_full),
		STORY(a_first_start_without_space),
		STORY(files_that_may_not_grow),
		STORY(a_damaged_database_is_refused_and_left),
		STORY(other_versions_are_refused),
		STORY(rows_that_cannot_be),
		STORY(a_lost_database_is_not_made_anew),
		STORY(a_damaged_mark_is_refused),
		STORY(a_refused_start_keeps_the_log),
		STORY(one_process_at_a_time),
		STORY(a_database_moved_away),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
