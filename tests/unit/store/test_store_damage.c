// The SQLite store and what is damaged, foreign or lost: refused with a clear sentence, and left as
// it is.

#include "controlplane/store/mark.h"
#include "tests/unit/store/sqlite_place.h"

#include <sqlite3.h>

#include <errno.h>
#include <fcntl.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cmocka.h>

#define NOW SQLITE_PLACE_NOW

static void some_content(void)
{
	struct store *s = sqlite_place_open();
	for (uint64_t i = 1; i <= 500; i++)
		sqlite_place_put(s, i, 5000);
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
		char *content = file_read(sqlite_place_path, &len);
		memset(content + cases[i].at, 0x5a, cases[i].bytes);
		len = cases[i].keep ? cases[i].keep : len;
		file_write(sqlite_place_path, content, len);
		struct store *s;
		assert_int_equal(sqlite_place_try_open(&s), -EUCLEAN);
		print_message("  %s\n", sqlite_place_error);
		assert_memory_equal(
			sqlite_place_error, sqlite_place_path, strlen(sqlite_place_path));
		char *after = file_read(sqlite_place_path, &len_after);
		assert_int_equal(len_after, len);
		assert_memory_equal(after, content, len);
		free(content);
		free(after);
		unlink(sqlite_place_path);
		unlink(sqlite_place_mark);
	}
}

static void execute(const char *sql)
{
	sqlite3 *db;
	assert_int_equal(sqlite3_open(sqlite_place_path, &db), SQLITE_OK);
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
		const char *sql, *said;
		int ret;
	} cases[] = {
		{"PRAGMA user_version = 6", "later version", -ENOTSUP},
		{"PRAGMA user_version = 0", "unknown version", -EUCLEAN},
		{"PRAGMA user_version = -1", "unknown version", -EUCLEAN},
		{"PRAGMA application_id = 1", "not a database of sluice", -EUCLEAN},
		{"DROP TABLE sessions", "no such table", -EUCLEAN},
	};
	for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
		some_content();
		execute(cases[i].sql);
		struct store *s;
		assert_int_equal(sqlite_place_try_open(&s), cases[i].ret);
		assert_non_null(strstr(sqlite_place_error, cases[i].said));
		unlink(sqlite_place_path);
		unlink(sqlite_place_mark);
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
		{"INSERT INTO tickets VALUES (4294967296, zeroblob(32))", STORE_TICKET},
		{"INSERT INTO tickets VALUES (1, zeroblob(33))", STORE_TICKET},
		{"INSERT INTO configs VALUES (1, 1, zeroblob(33))", STORE_CONFIG},
		{"INSERT INTO draws VALUES (1, 1, zeroblob(31), x'', 0, 0, 0, 0, 0, zeroblob(32))",
			STORE_DRAW},
		{"INSERT INTO draws VALUES (1, 1, zeroblob(32), zeroblob(33), 0, 0, 0, 0, 0,"
		 " zeroblob(32))",
			STORE_DRAW},
		{"INSERT INTO draws VALUES (1, 1, zeroblob(32), x'', 2, 0, 0, 0, 0, zeroblob(32))",
			STORE_DRAW},
		{"INSERT INTO doors VALUES (4294967296, 1, 1, x'')", STORE_DOORS},
		{"INSERT INTO codes VALUES (1, zeroblob(15), 1)", STORE_CODE},
		{"INSERT INTO codes VALUES (1, zeroblob(16), -1)", STORE_CODE},
		{"INSERT INTO moves VALUES (1, 1, 2, 2, 3, 4, 5, 0)", STORE_MOVE},
		{"INSERT INTO moves VALUES (1, 1, 2, 0, -3, 4, 5, 0)", STORE_MOVE},
		{"INSERT INTO moves VALUES (1, 1, 2, 0, 3, 4, 5, 2)", STORE_MOVE},
	};
	for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
		store_close(sqlite_place_open(), NOW);
		execute(cases[i].sql);
		struct store *s = sqlite_place_open();
		uint64_t count = 0;
		print_message("%s\n", cases[i].sql);
		assert_int_equal(
			store_load(s, cases[i].kind, 10, sqlite_place_count, &count), -EUCLEAN);
		assert_int_equal(count, 0);
		store_close(s, NOW);
		unlink(sqlite_place_path);
		unlink(sqlite_place_mark);
	}
}

static void a_lost_database_is_not_made_anew(void **state)
{
	(void)state;
	some_content();
	struct store *s;
	unlink(sqlite_place_path);
	assert_int_equal(sqlite_place_try_open(&s), -EUCLEAN);
	assert_non_null(strstr(sqlite_place_error, "gone"));
	assert_int_equal(access(sqlite_place_path, F_OK), -1);
	// Emptied instead.
	int fd = open(sqlite_place_path, O_RDWR | O_CREAT, 0600);
	close(fd);
	assert_int_equal(sqlite_place_try_open(&s), -EUCLEAN);
	struct stat st;
	assert_int_equal(stat(sqlite_place_path, &st), 0);
	assert_int_equal(st.st_size, 0);
	// Really meant.
	unlink(sqlite_place_path);
	unlink(sqlite_place_mark);
	s = sqlite_place_open();
	store_close(s, NOW);
}

static void a_damaged_mark_is_refused(void **state)
{
	(void)state;
	some_content();
	assert_int_equal(truncate(sqlite_place_mark, 10), 0);
	struct store *s;
	assert_int_equal(sqlite_place_try_open(&s), -EUCLEAN);
	assert_non_null(strstr(sqlite_place_error, "unsaved: damaged"));
}

// The log of a killed process survives a start that was refused.
static void a_refused_start_keeps_the_log(void **state)
{
	(void)state;
	sqlite_place_in_a_child(sqlite_place_commit_a_hundred);
	assert_int_equal(truncate(sqlite_place_mark, 10), 0);
	struct store *s;
	assert_int_equal(sqlite_place_try_open(&s), -EUCLEAN);
	unlink(sqlite_place_mark);
	s = sqlite_place_open();
	assert_int_equal(sqlite_place_count_of(s, STORE_GRANTED), 100);
	store_close(s, NOW);
}

#define STORY(story) cmocka_unit_test_setup_teardown(story, sqlite_place_new, sqlite_place_remove)

int main(void)
{
	const struct CMUnitTest tests[] = {
		STORY(a_damaged_database_is_refused_and_left),
		STORY(other_versions_are_refused),
		STORY(rows_that_cannot_be),
		STORY(a_lost_database_is_not_made_anew),
		STORY(a_damaged_mark_is_refused),
		STORY(a_refused_start_keeps_the_log),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
