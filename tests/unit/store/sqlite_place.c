// The directory is made under /tmp, so on a disk where syncing is real.

#include "tests/unit/store/sqlite_place.h"
#include "tests/unit/store/fault_vfs.h"

#include <setjmp.h>
#include <signal.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cmocka.h>

char sqlite_place_base[64], sqlite_place_path[96], sqlite_place_mark[96];
char sqlite_place_error[STORE_ERROR_MAX];

int sqlite_place_new(void **state)
{
	(void)state;
	snprintf(sqlite_place_base, sizeof(sqlite_place_base), "/tmp/sluice-store-XXXXXX");
	if (!mkdtemp(sqlite_place_base))
		return -1;
	snprintf(sqlite_place_path, sizeof(sqlite_place_path), "%s/sluice.db", sqlite_place_base);
	snprintf(sqlite_place_mark, sizeof(sqlite_place_mark), "%s/unsaved", sqlite_place_base);
	return 0;
}

static void remove_beside(const char *suffix)
{
	char name[120];
	snprintf(name, sizeof(name), "%s%s", sqlite_place_path, suffix);
	unlink(name);
}

int sqlite_place_remove(void **state)
{
	(void)state;
	fault_vfs_mode = FAULT_VFS_NONE;
	remove_beside("");
	remove_beside("-wal");
	remove_beside(".away");
	unlink(sqlite_place_mark);
	return rmdir(sqlite_place_base);
}

int sqlite_place_try_open(struct store **store)
{
	struct store_sqlite_plan plan = {
		sqlite_place_path, sqlite_place_mark, SQLITE_PLACE_RECORDS_MAX};
	sqlite_place_error[0] = '\0';
	return store_sqlite_open(&plan, store, sqlite_place_error);
}

struct store *sqlite_place_open(void)
{
	struct store *store;
	int ret = sqlite_place_try_open(&store);
	if (ret < 0)
		print_message("%s\n", sqlite_place_error);
	assert_int_equal(ret, 0);
	return store;
}

struct store_record sqlite_place_session(uint64_t visitor, uint32_t expires)
{
	return (struct store_record){.kind = STORE_GRANTED,
		.session = {.line_id = 1,
			.visitor = visitor,
			.session = ~visitor,
			.key = visitor << 24,
			.expires = expires}};
}

void sqlite_place_put(struct store *s, uint64_t visitor, uint32_t expires)
{
	struct store_record record = sqlite_place_session(visitor, expires);
	assert_true(store_put(s, &record));
}

void sqlite_place_count(void *ctx, const struct store_record *record)
{
	(void)record;
	++*(uint64_t *)ctx;
}

uint64_t sqlite_place_count_of(struct store *s, enum store_kind kind)
{
	uint64_t count = 0;
	assert_int_equal(store_load(s, kind, UINT64_MAX, sqlite_place_count, &count), 0);
	return count;
}

void sqlite_place_in_a_child(void (*story)(void))
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

void sqlite_place_commit_a_hundred(void)
{
	struct store *s;
	if (sqlite_place_try_open(&s) < 0)
		_exit(1);
	for (uint64_t i = 1; i <= 100; i++) {
		struct store_record record = sqlite_place_session(i, 1);
		store_put(s, &record);
		store_begin(s, SQLITE_PLACE_NOW);
	}
	struct store_record record = sqlite_place_session(101, 1);
	store_put(s, &record); // never begun
}
