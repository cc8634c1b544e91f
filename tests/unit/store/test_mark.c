// The mark: survives a killed process, needs no space, is never mistaken for another file.

#include "controlplane/store/mark.h"

#include <errno.h>
#include <fcntl.h>
#include <setjmp.h>
#include <signal.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cmocka.h>

static char path[64];

static int path_new(void **state)
{
	(void)state;
	snprintf(path, sizeof(path), "/tmp/sluice-mark-XXXXXX");
	int fd = mkstemp(path);
	close(fd);
	return unlink(path);
}

static int path_remove(void **state)
{
	(void)state;
	unlink(path);
	return 0;
}

static void made_cleared_with_mode_0600(void **state)
{
	(void)state;
	struct mark *mark;
	uint32_t until;
	assert_false(mark_exists(path));
	assert_int_equal(mark_open(path, &mark), 0);
	assert_true(mark_exists(path));
	assert_false(mark_is_set(mark, &until));
	struct stat st;
	assert_int_equal(stat(path, &st), 0);
	assert_int_equal(st.st_mode & 0777, 0600);
	assert_true(st.st_blocks > 0);
	mark_close(mark);
	mark_close(NULL);
}

static void set_and_cleared_over_a_restart(void **state)
{
	(void)state;
	struct mark *mark;
	uint32_t until;
	mark_open(path, &mark);
	mark_set(mark, 1000);
	mark_close(mark);
	mark_open(path, &mark);
	assert_true(mark_is_set(mark, &until));
	assert_int_equal(until, 1000);
	mark_set(mark, 900); // does not fall while set
	assert_true(mark_is_set(mark, &until));
	assert_int_equal(until, 1000);
	mark_clear(mark);
	mark_set(mark, 900);
	mark_is_set(mark, &until);
	assert_int_equal(until, 900);
	mark_clear(mark);
	mark_close(mark);
	mark_open(path, &mark);
	assert_false(mark_is_set(mark, &until));
	mark_close(mark);
}

static void a_killed_process_leaves_it_set(void **state)
{
	(void)state;
	pid_t child = fork();
	if (child == 0) {
		struct mark *mark;
		mark_open(path, &mark);
		mark_set(mark, 77);
		raise(SIGKILL);
	}
	int status;
	waitpid(child, &status, 0);
	assert_true(WIFSIGNALED(status));
	struct mark *mark;
	uint32_t until;
	assert_int_equal(mark_open(path, &mark), 0);
	assert_true(mark_is_set(mark, &until));
	assert_int_equal(until, 77);
	mark_close(mark);
}

static void other_files_are_left_as_they_are(void **state)
{
	(void)state;
	static const struct {
		const char *name, *content;
		size_t bytes;
	} cases[] = {
		{"empty", "", 0},
		{"short", "sluiceM1", 8},
		{"foreign", "#!/bin/sh", 4096},
		{"long", "sluiceM1", 8192},
	};
	for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
		print_message("%s\n", cases[i].name);
		int fd = open(path, O_RDWR | O_CREAT | O_TRUNC, 0600);
		assert_int_equal(write(fd, cases[i].content, strlen(cases[i].content)),
			strlen(cases[i].content));
		assert_int_equal(ftruncate(fd, (off_t)cases[i].bytes), 0);
		close(fd);
		struct mark *mark;
		assert_int_equal(mark_open(path, &mark), -EUCLEAN);
		struct stat st;
		assert_int_equal(stat(path, &st), 0);
		assert_int_equal(st.st_size, cases[i].bytes);
	}
}

// No file may grow: an existing mark opens and is set, a new one is refused and leaves nothing.
static void without_space(void **state)
{
	(void)state;
	struct mark *mark;
	uint32_t until;
	mark_open(path, &mark);
	mark_close(mark);
	signal(SIGXFSZ, SIG_IGN);
	struct rlimit old, none;
	getrlimit(RLIMIT_FSIZE, &old);
	none = (struct rlimit){0, old.rlim_max};
	setrlimit(RLIMIT_FSIZE, &none);
	int opened = mark_open(path, &mark);
	mark_set(mark, 5);
	bool is_set = mark_is_set(mark, &until);
	mark_close(mark);
	unlink(path);
	int made = mark_open(path, &mark);
	setrlimit(RLIMIT_FSIZE, &old);
	assert_int_equal(opened, 0);
	assert_true(is_set);
	assert_true(made < 0);
	assert_false(mark_exists(path));
}

static void a_link_is_not_followed(void **state)
{
	(void)state;
	struct mark *mark;
	assert_int_equal(symlink("/etc/passwd", path), 0);
	assert_int_equal(mark_open(path, &mark), -ELOOP);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test_setup_teardown(made_cleared_with_mode_0600, path_new, path_remove),
		cmocka_unit_test_setup_teardown(
			set_and_cleared_over_a_restart, path_new, path_remove),
		cmocka_unit_test_setup_teardown(
			a_killed_process_leaves_it_set, path_new, path_remove),
		cmocka_unit_test_setup_teardown(
			other_files_are_left_as_they_are, path_new, path_remove),
		cmocka_unit_test_setup_teardown(without_space, path_new, path_remove),
		cmocka_unit_test_setup_teardown(a_link_is_not_followed, path_new, path_remove),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
