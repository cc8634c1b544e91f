// The state directory: who gets it, who does not, and what they are told.

#include "controlplane/store/state.h"

#include <errno.h>
#include <fcntl.h>
#include <ftw.h>
#include <setjmp.h>
#include <signal.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cmocka.h>

static char base[64], path[96], error[STATE_ERROR_MAX];

static int base_new(void **state)
{
	(void)state;
	snprintf(base, sizeof(base), "/tmp/sluice-state-XXXXXX");
	if (!mkdtemp(base))
		return -1;
	snprintf(path, sizeof(path), "%s/state", base);
	return 0;
}

static int remove_one(const char *name, const struct stat *st, int type, struct FTW *at)
{
	(void)st;
	(void)type;
	(void)at;
	return remove(name);
}

static int base_remove(void **state)
{
	(void)state;
	return nftw(base, remove_one, 8, FTW_DEPTH | FTW_PHYS);
}

static mode_t mode_of(const char *name)
{
	struct stat st;
	assert_int_equal(stat(name, &st), 0);
	return st.st_mode & 0777;
}

static void file_make(const char *directory, const char *name)
{
	char file[200];
	snprintf(file, sizeof(file), "%s/%s", directory, name);
	int fd = open(file, O_RDWR | O_CREAT, 0600);
	assert_true(fd >= 0);
	close(fd);
}

static void made_private(void **state)
{
	(void)state;
	mode_t old = umask(0);
	struct state *s;
	assert_int_equal(state_open(path, &s, error), 0);
	umask(old);
	assert_int_equal(mode_of(path), 0700);
	assert_int_equal(mode_of(state_path(s, STATE_LOCK)), 0600);
	state_close(s);
	assert_int_equal(state_open(path, &s, error), 0); // and again
	state_close(s);
	state_close(NULL);
}

static void the_files_lie_in_it(void **state)
{
	(void)state;
	struct state *s;
	assert_int_equal(state_open(path, &s, error), 0);
	for (int file = 0; file < STATE_FILES; file++)
		assert_memory_equal(state_path(s, file), path, strlen(path));
	assert_string_equal(state_path(s, STATE_ADMIN) + strlen(path), "/admin.socket");
	assert_string_equal(state_path(s, STATE_STORE) + strlen(path), "/sluice.db");
	state_close(s);
}

static void a_second_process_is_told_of_the_first(void **state)
{
	(void)state;
	int ready[2], done[2];
	assert_int_equal(pipe(ready) | pipe(done), 0);
	pid_t child = fork();
	if (child == 0) {
		struct state *s;
		char byte = state_open(path, &s, error) == 0 ? 'y' : 'n';
		(void)!write(ready[1], &byte, 1);
		(void)!read(done[0], &byte, 1);
		raise(SIGKILL);
	}
	char byte;
	assert_int_equal(read(ready[0], &byte, 1), 1);
	assert_int_equal(byte, 'y');
	struct state *s;
	assert_int_equal(state_holder(path), child);
	assert_int_equal(state_open(path, &s, error), -EBUSY);
	char wanted[160];
	snprintf(wanted, sizeof(wanted), "%s: in use by process %d", path, (int)child);
	assert_string_equal(error, wanted);
	assert_int_equal(write(done[1], "x", 1), 1);
	waitpid(child, NULL, 0);
	// Killed, and free at once.
	assert_int_equal(state_holder(path), 0);
	assert_int_equal(state_open(path, &s, error), 0);
	assert_int_equal(state_holder(path), getpid());
	state_close(s);
	for (int i = 0; i < 2; i++) {
		close(ready[i]);
		close(done[i]);
	}
}

static void what_is_refused(void **state)
{
	(void)state;
	struct state *s;
	// Somebody else's directory.
	mkdir(path, 0700);
	file_make(path, "thesis.tex");
	assert_int_equal(state_open(path, &s, error), -ENOTEMPTY);
	assert_non_null(strstr(error, "not empty"));
	file_make(path, "lock"); // ours, with something beside it
	assert_int_equal(state_open(path, &s, error), 0);
	state_close(s);
	// Others may write.
	chmod(path, 0770);
	assert_int_equal(state_open(path, &s, error), -EPERM);
	assert_non_null(strstr(error, "others may write"));
	chmod(path, 0755);
	assert_int_equal(state_open(path, &s, error), 0);
	state_close(s);
	// No directory; no parent; too long for a socket.
	char below[120];
	snprintf(below, sizeof(below), "%s/lock", path);
	assert_int_equal(state_open(below, &s, error), -ENOTDIR);
	snprintf(below, sizeof(below), "%s/no/such", base);
	assert_int_equal(state_open(below, &s, error), -ENOENT);
	memset(below, 'a', 96);
	below[0] = '/';
	below[96] = '\0';
	assert_int_equal(state_open(below, &s, error), -ENAMETOOLONG);
	assert_non_null(strstr(error, "socket"));
}

static void a_link_in_place_of_the_lock(void **state)
{
	(void)state;
	char link[120];
	struct state *s;
	mkdir(path, 0700);
	snprintf(link, sizeof(link), "%s/lock", path);
	assert_int_equal(symlink("/etc/passwd", link), 0);
	assert_int_equal(state_open(path, &s, error), -ELOOP);
}

static void given_to_the_user(void **state)
{
	(void)state;
	assert_int_equal(geteuid(), 0); // tests/run is root
	struct state *s;
	assert_int_equal(state_open(path, &s, error), 0);
	file_make(path, "sluice.db");
	assert_int_equal(state_give(s, 65534, 65534), 0);
	struct stat st;
	assert_int_equal(stat(path, &st), 0);
	assert_int_equal(st.st_uid, 65534);
	assert_int_equal(stat(state_path(s, STATE_STORE), &st), 0);
	assert_int_equal(st.st_uid, 65534);
	assert_int_equal(stat(state_path(s, STATE_LOCK), &st), 0);
	assert_int_equal(st.st_gid, 65534);
	state_close(s);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test_setup_teardown(made_private, base_new, base_remove),
		cmocka_unit_test_setup_teardown(the_files_lie_in_it, base_new, base_remove),
		cmocka_unit_test_setup_teardown(
			a_second_process_is_told_of_the_first, base_new, base_remove),
		cmocka_unit_test_setup_teardown(what_is_refused, base_new, base_remove),
		cmocka_unit_test_setup_teardown(a_link_in_place_of_the_lock, base_new, base_remove),
		cmocka_unit_test_setup_teardown(given_to_the_user, base_new, base_remove),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
