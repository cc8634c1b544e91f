// The SQLite store: what was committed is there after a kill, what cannot be written is kept and
// marked.

#include "controlplane/store/mark.h"
#include "tests/unit/store/fault_vfs.h"
#include "tests/unit/store/sqlite_place.h"

#include <sqlite3.h>

#include <errno.h>
#include <fcntl.h>
#include <setjmp.h>
#include <signal.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdio.h>
#include <string.h>
#include <sys/mount.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cmocka.h>

#define NOW SQLITE_PLACE_NOW

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

// One of every kind, extremes included.
static const struct store_record records[] = {
	{.kind = STORE_GRANTED,
		.session = {UINT32_MAX, UINT32_MAX, UINT64_MAX, 1ull << 63, UINT64_MAX - 1, false}},
	{.kind = STORE_ENDED, .ended = {UINT32_MAX, UINT32_MAX, UINT64_MAX}},
	{.kind = STORE_LINE, .line = {UINT32_MAX, UINT64_MAX, 1ull << 63}},
	{.kind = STORE_ROOM, .room = {7, 2, STORE_AS_CONFIGURED, "売り切れ \"1\" <b>"}},
	{.kind = STORE_SECRET, .secret = {255, {0, 1, 2, [31] = 0xff}, UINT32_MAX, UINT64_MAX}},
	{.kind = STORE_CLOCK, .clock = {NOW}},
	{.kind = STORE_CONFIG, .config = {NOW, {1, 0, [31] = 9}}},
	{.kind = STORE_AUDIT, .audit = {NOW, "room derby release 10: done"}},
	{.kind = STORE_TICKET, .ticket = {UINT32_MAX, {3, 0, [31] = 7}}},
	{.kind = STORE_DRAW,
		.draw = {.line_id = UINT32_MAX,
			.number = UINT64_MAX,
			.seed = {1, 0, [31] = 0xff},
			.salt = {0, 2, [31] = 9},
			.salt_bytes = STORE_SALT_BYTES_MAX,
			.is_drawn = true,
			.first_slot = 1ull << 40,
			.end_slot = UINT64_MAX,
			.base = 1ull << 63,
			.count = 2000000,
			.list_sha256 = {[31] = 1}}},
	{.kind = STORE_DOORS, .doors = {.line_id = 7, .opened_ms = NOW, .opened_at_ms = 1}},
	{.kind = STORE_CODE, .code = {UINT32_MAX, {UINT64_MAX, 1}, UINT32_MAX}},
	{.kind = STORE_MOVE,
		.move = {UINT64_MAX, UINT64_MAX - 1, true, true, UINT32_MAX, UINT64_MAX - 2,
			UINT64_MAX - 3}},
};

static void put_all(struct store *s)
{
	for (size_t i = 0; i < sizeof(records) / sizeof(records[0]); i++)
		assert_true(store_put(s, &records[i]));
	store_begin(s, NOW);
	assert_false(store_poll(s, NOW)->is_pending);
}

// Every kind comes back as it was put, extremes included.
static void all_kinds_come_back(void **state)
{
	(void)state;
	struct store *s = sqlite_place_open();
	put_all(s);
	store_close(s, NOW);
	s = sqlite_place_open();
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

// From every earlier version: what it knew is kept, and what it had no table for can be.
static void a_database_of_an_earlier_version_is_brought_up(void **state)
{
	static const struct {
		const char *lacks; // besides what the versions above lack
		enum store_kind kind;
	} versions[STORE_SQLITE_SCHEMA] = {[1] = {"DROP TABLE tickets;", STORE_TICKET},
		[2] = {"DROP TABLE draws; DROP TABLE doors;", STORE_DRAW},
		[3] = {"DROP TABLE codes;", STORE_CODE},
		[4] = {"DROP TABLE moves;", STORE_MOVE}};
	for (int version = 1; version < STORE_SQLITE_SCHEMA; version++) {
		char sql[256];
		sqlite3 *db;
		sqlite_place_remove(state);
		sqlite_place_new(state);
		struct store *s = sqlite_place_open();
		put_all(s);
		store_close(s, NOW);
		size_t len = 0;
		for (int above = version; above < STORE_SQLITE_SCHEMA; above++)
			len += (size_t)snprintf(
				sql + len, sizeof(sql) - len, "%s", versions[above].lacks);
		snprintf(sql + len, sizeof(sql) - len, "PRAGMA user_version = %d", version);
		assert_int_equal(sqlite3_open(sqlite_place_path, &db), SQLITE_OK);
		assert_int_equal(sqlite3_exec(db, sql, NULL, NULL, NULL), SQLITE_OK);
		sqlite3_close(db);
		s = sqlite_place_open();
		for (int other = 1; other < STORE_SQLITE_SCHEMA; other++)
			assert_int_equal(
				sqlite_place_count_of(s, versions[other].kind), other < version);
		assert_int_equal(sqlite_place_count_of(s, STORE_GRANTED), 1);
		put_all(s);
		store_close(s, NOW);
		s = sqlite_place_open(); // once brought up it is as any
		for (int other = 1; other < STORE_SQLITE_SCHEMA; other++)
			assert_int_equal(sqlite_place_count_of(s, versions[other].kind), 1);
		store_close(s, NOW);
	}
}

static void a_session_goes_its_way(void **state)
{
	(void)state;
	struct store *s = sqlite_place_open();
	struct last last = {0};
	struct store_record record = sqlite_place_session(5, 100);
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
	struct store *s = sqlite_place_open();
	for (uint32_t i = 1; i <= 10; i++)
		store_put(s, &(struct store_record){.kind = STORE_ENDED, .ended = {1, i, i}});
	store_begin(s, NOW);
	assert_int_equal(sqlite_place_count_of(s, STORE_ENDED), 10);
	store_put(s, &(struct store_record){.kind = STORE_CLOCK, .clock = {6999}});
	store_begin(s, NOW);
	assert_int_equal(sqlite_place_count_of(s, STORE_ENDED), 4);
	store_close(s, NOW);
}

static void history_is_bounded(void **state)
{
	(void)state;
	struct store *s = sqlite_place_open();
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
	assert_int_equal(sqlite_place_count_of(s, STORE_CONFIG), STORE_HISTORY_MAX);
	store_close(s, NOW);
}

static void append_expires(void *ctx, const struct store_record *record)
{
	size_t len = strlen(ctx);
	snprintf((char *)ctx + len, 64 - len, "%u%s ", record->session.expires,
		record->session.is_over ? "x" : "");
}

static void sessions_that_last_longest_come_first(void **state)
{
	(void)state;
	struct store *s = sqlite_place_open();
	for (uint32_t i = 1; i <= 5; i++) {
		struct store_record record = sqlite_place_session(i, 100 * i);
		record.session.line_id = i % 2;
		store_put(s, &record);
		record.kind = STORE_OVER;
		if (i == 4)
			store_put(s, &record);
	}
	store_begin(s, NOW);
	char order[64] = "";
	assert_int_equal(store_load(s, STORE_GRANTED, 9, append_expires, order), 0);
	assert_string_equal(order, "500 300 200 100 400x ");
	store_close(s, NOW);
}

static void loading_is_bounded(void **state)
{
	(void)state;
	struct store *s = sqlite_place_open();
	for (uint64_t i = 1; i <= 10; i++)
		sqlite_place_put(s, i, 1);
	store_begin(s, NOW);
	uint64_t count = 0;
	assert_int_equal(store_load(s, STORE_GRANTED, 10, sqlite_place_count, &count), 0);
	count = 0;
	assert_int_equal(store_load(s, STORE_GRANTED, 9, sqlite_place_count, &count), -EOVERFLOW);
	assert_int_equal(count, 9);
	store_close(s, NOW);
}

static void files_are_private(void **state)
{
	(void)state;
	mode_t old = umask(0);
	struct store *s = sqlite_place_open();
	sqlite_place_put(s, 1, 1);
	store_begin(s, NOW);
	umask(old);
	char log[120];
	snprintf(log, sizeof(log), "%s-wal", sqlite_place_path);
	const char *files[] = {sqlite_place_path, log, sqlite_place_mark};
	for (int i = 0; i < 3; i++) {
		struct stat st;
		assert_int_equal(stat(files[i], &st), 0);
		assert_int_equal(st.st_mode & 0777, 0600);
	}
	store_close(s, NOW);
	chmod(sqlite_place_path, 0644);
	assert_int_equal(sqlite_place_try_open(&s), -EPERM);
	assert_non_null(strstr(sqlite_place_error, "mode 0600"));
}

static void a_killed_process_loses_nothing(void **state)
{
	(void)state;
	sqlite_place_in_a_child(sqlite_place_commit_a_hundred);
	struct store *s = sqlite_place_open();
	assert_int_equal(sqlite_place_count_of(s, STORE_GRANTED), 100);
	assert_false(s->status.is_unclean);
	store_close(s, NOW);
}

// Whatever makes writing fail: kept, counted, tried with back-off, caught up.
static void what_cannot_be_written_is_kept(void **state)
{
	(void)state;
	static const struct {
		enum fault_vfs_mode mode;
		const char *said;
	} cases[] = {
		{FAULT_VFS_FULL, "full"},
		{FAULT_VFS_READONLY, "readonly"},
		{FAULT_VFS_IO, "I/O"},
		{FAULT_VFS_SYNC, "I/O"},
	};
	for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
		print_message("%s\n", cases[i].said);
		struct store *s = sqlite_place_open();
		uint64_t before = sqlite_place_count_of(s, STORE_GRANTED), visitor = 1000 * (i + 1);
		sqlite_place_put(s, visitor + 1, 1);
		store_begin(s, NOW);
		fault_vfs_mode = cases[i].mode;
		sqlite_place_put(s, visitor + 2, 1);
		sqlite_place_put(s, visitor + 3, 2);
		store_begin(s, NOW + 10);
		const struct store_status *status = store_poll(s, NOW + 10);
		assert_false(status->is_pending);
		assert_true(status->is_unsaved);
		assert_int_equal(status->unsaved_count, 2);
		assert_int_equal(status->unsaved_since_ms, NOW + 10);
		assert_int_equal(status->failures_total, 1);
		assert_non_null(strstr(status->error, cases[i].said));
		fault_vfs_mode = FAULT_VFS_NONE;
		sqlite_place_put(s, visitor + 4, 1);
		store_begin(s, NOW + 50); // too early to try again
		assert_int_equal(status->unsaved_count, 3);
		assert_int_equal(status->unsaved_since_ms, NOW + 10);
		store_begin(s, NOW + 10 + STORE_SQLITE_BACKOFF_MIN_MS);
		assert_false(status->is_unsaved);
		assert_int_equal(status->unsaved_count, 0);
		assert_string_equal(status->error, "");
		assert_int_equal(sqlite_place_count_of(s, STORE_GRANTED), before + 4);
		store_close(s, NOW);
	}
}

static void backing_off_has_a_limit(void **state)
{
	(void)state;
	struct store *s = sqlite_place_open();
	fault_vfs_mode = FAULT_VFS_FULL;
	sqlite_place_put(s, 1, 1);
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
	if (sqlite_place_try_open(&s) < 0)
		_exit(1);
	fault_vfs_mode = FAULT_VFS_FULL;
	struct store_record record = sqlite_place_session(1, 5000);
	store_put(s, &record);
	store_begin(s, NOW);
	if (!s->status.is_unsaved)
		_exit(1);
}

static void the_next_process_knows(void **state)
{
	(void)state;
	sqlite_place_in_a_child(admit_unsaved);
	for (int start = 0; start < 2; start++) { // it stays known until settled
		struct store *s = sqlite_place_open();
		assert_true(s->status.is_unclean);
		assert_int_equal(s->status.unclean_until, 5000);
		sqlite_place_put(s, 2, 6000);
		store_begin(s, NOW); // saving does not settle it
		assert_true(s->status.is_unclean);
		store_close(s, NOW);
	}
	struct store *s = sqlite_place_open();
	store_settle(s);
	assert_false(s->status.is_unclean);
	store_close(s, NOW);
	s = sqlite_place_open();
	assert_false(s->status.is_unclean);
	store_close(s, NOW);
}

static void settling_while_unsaved_keeps_the_mark(void **state)
{
	(void)state;
	sqlite_place_in_a_child(admit_unsaved);
	struct store *s = sqlite_place_open();
	fault_vfs_mode = FAULT_VFS_FULL;
	sqlite_place_put(s, 2, 6000);
	store_begin(s, NOW);
	store_settle(s);
	store_close(s, NOW); // cannot save it either
	fault_vfs_mode = FAULT_VFS_NONE;
	s = sqlite_place_open();
	assert_true(s->status.is_unclean);
	assert_int_equal(s->status.unclean_until, 6000);
	store_close(s, NOW);
}

static void closing_saves_what_it_can(void **state)
{
	(void)state;
	struct store *s = sqlite_place_open();
	fault_vfs_mode = FAULT_VFS_FULL;
	sqlite_place_put(s, 1, 5000);
	store_begin(s, NOW);
	fault_vfs_mode = FAULT_VFS_NONE;
	sqlite_place_put(s, 2, 5000);
	store_close(s, NOW + 1);
	s = sqlite_place_open();
	assert_int_equal(sqlite_place_count_of(s, STORE_GRANTED), 2);
	assert_false(s->status.is_unclean);
	store_close(s, NOW);
}

static void a_full_batch_counts_what_it_drops(void **state)
{
	(void)state;
	struct store *s = sqlite_place_open();
	for (uint64_t i = 1; i <= SQLITE_PLACE_RECORDS_MAX; i++)
		sqlite_place_put(s, i, 1);
	assert_int_equal(s->status.free_count, 0);
	struct store_record record = sqlite_place_session(SQLITE_PLACE_RECORDS_MAX + 1, 1);
	assert_false(store_put(s, &record));
	assert_int_equal(s->status.dropped_total, 1);
	store_begin(s, NOW);
	assert_int_equal(s->status.free_count, SQLITE_PLACE_RECORDS_MAX);
	assert_int_equal(sqlite_place_count_of(s, STORE_GRANTED), SQLITE_PLACE_RECORDS_MAX);
	store_close(s, NOW);
}

static void fill_disk(void)
{
	char name[120];
	snprintf(name, sizeof(name), "%s/ballast", sqlite_place_base);
	int fd = open(name, O_RDWR | O_CREAT, 0600);
	static const char block[4096];
	while (write(fd, block, sizeof(block)) > 0)
		;
	close(fd);
}

static void admit_on_a_full_disk(void)
{
	struct store *s;
	if (sqlite_place_try_open(&s) < 0)
		_exit(1);
	fill_disk();
	for (uint64_t visitor = 10; visitor < 10000 && !s->status.is_unsaved; visitor++) {
		struct store_record record = sqlite_place_session(visitor, 5000);
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
	assert_int_equal(mount("none", sqlite_place_base, "tmpfs", 0, "size=1m"), 0);
	struct store *s = sqlite_place_open();
	sqlite_place_put(s, 1, 5000);
	store_close(s, NOW);
	sqlite_place_in_a_child(admit_on_a_full_disk);
	int started = sqlite_place_try_open(&s);
	bool is_unclean = false, was_unsaved = false, is_saved = false;
	uint64_t known = 0;
	if (started == 0) {
		is_unclean = s->status.is_unclean;
		for (uint64_t visitor = 20000; visitor < 30000 && !was_unsaved; visitor++) {
			struct store_record record = sqlite_place_session(visitor, 6000);
			store_put(s, &record);
			store_begin(s, NOW);
			was_unsaved = s->status.is_unsaved;
		}
		char name[120];
		snprintf(name, sizeof(name), "%s/ballast", sqlite_place_base);
		unlink(name);
		store_begin(s, NOW + 10000);
		is_saved = !s->status.is_unsaved;
		known = sqlite_place_count_of(s, STORE_GRANTED);
		store_close(s, NOW);
	}
	umount(sqlite_place_base);
	assert_int_equal(started, 0);
	assert_true(is_unclean && was_unsaved && is_saved);
	assert_true(known > 1);
}

// The first start on a full disk leaves nothing half made.
static void a_first_start_without_space(void **state)
{
	(void)state;
	assert_int_equal(mount("none", sqlite_place_base, "tmpfs", 0, "size=64k"), 0);
	fill_disk();
	struct store *s;
	int started = sqlite_place_try_open(&s);
	bool is_made = access(sqlite_place_path, F_OK) == 0 || mark_exists(sqlite_place_mark);
	umount(sqlite_place_base);
	assert_int_equal(started, -ENOSPC);
	assert_false(is_made);
	assert_non_null(strstr(sqlite_place_error, "full"));
}

// A limit on the size of files, as of a quota.
static void files_that_may_not_grow(void **state)
{
	(void)state;
	struct store *s = sqlite_place_open();
	signal(SIGXFSZ, SIG_IGN);
	struct rlimit old, small;
	getrlimit(RLIMIT_FSIZE, &old);
	small = (struct rlimit){64 * 1024, old.rlim_max};
	setrlimit(RLIMIT_FSIZE, &small);
	uint64_t put = 0;
	for (; put < 10000 && !s->status.is_unsaved; put++) {
		sqlite_place_put(s, put + 1, 5000);
		store_begin(s, NOW);
	}
	setrlimit(RLIMIT_FSIZE, &old);
	assert_true(s->status.is_unsaved);
	store_begin(s, NOW + 1000);
	assert_false(s->status.is_unsaved);
	assert_int_equal(sqlite_place_count_of(s, STORE_GRANTED), put);
	store_close(s, NOW);
}

static void one_process_at_a_time(void **state)
{
	(void)state;
	struct store *s = sqlite_place_open(), *second;
	sqlite_place_put(s, 1, 1);
	store_begin(s, NOW);
	// SQLite's locks are the process's, so the second one must be another.
	pid_t child = fork();
	if (child == 0)
		_exit(sqlite_place_try_open(&second) == -EBUSY ? 0 : 1);
	int status;
	waitpid(child, &status, 0);
	assert_int_equal(status, 0);
	store_close(s, NOW);
}

// Somebody moves the database away under the running process.
static void a_database_moved_away(void **state)
{
	(void)state;
	struct store *s = sqlite_place_open();
	char away[120];
	snprintf(away, sizeof(away), "%s.away", sqlite_place_path);
	sqlite_place_put(s, 1, 1);
	store_begin(s, NOW);
	assert_int_equal(rename(sqlite_place_path, away), 0);
	sqlite_place_put(s, 2, 1);
	store_begin(s, NOW);
	assert_int_equal(rename(away, sqlite_place_path), 0);
	store_begin(s, NOW + 1000);
	assert_false(s->status.is_unsaved);
	store_close(s, NOW + 1000);
	s = sqlite_place_open();
	assert_int_equal(sqlite_place_count_of(s, STORE_GRANTED), 2);
	store_close(s, NOW);
}

#define STORY(story) cmocka_unit_test_setup_teardown(story, sqlite_place_new, sqlite_place_remove)

int main(void)
{
	fault_vfs_install();
	const struct CMUnitTest tests[] = {
		STORY(all_kinds_come_back),
		STORY(a_database_of_an_earlier_version_is_brought_up),
		STORY(a_session_goes_its_way),
		STORY(the_clock_drops_what_has_ended),
		STORY(history_is_bounded),
		STORY(sessions_that_last_longest_come_first),
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
		STORY(one_process_at_a_time),
		STORY(a_database_moved_away),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
