// Control never waits for whoever reads its log. A test that waits is ended by its alarm.

#include "controlplane/log.h"

#include <fcntl.h>
#include <setjmp.h>
#include <signal.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include <cmocka.h>

#define PIPE_BYTES 16384 // four pages
#define LINES 1000 // more than fit

static int ends[2], usual_stderr;
static char heard[2 * PIPE_BYTES];

static int begin(void **state)
{
	(void)state;
	alarm(10);
	usual_stderr = dup(STDERR_FILENO);
	return pipe2(ends, O_CLOEXEC) < 0 || fcntl(ends[0], F_SETPIPE_SZ, PIPE_BYTES) < 0 ||
	       dup2(ends[1], STDERR_FILENO) < 0;
}

static int end(void **state)
{
	(void)state;
	dup2(usual_stderr, STDERR_FILENO);
	close(usual_stderr);
	close(ends[0]);
	close(ends[1]);
	return 0;
}

// All that is in the pipe, into `heard`. Returns how many lines it is.
static unsigned hear(void)
{
	unsigned lines = 0;
	fcntl(ends[0], F_SETFL, O_NONBLOCK); // the reader's end only
	ssize_t bytes = read(ends[0], heard, sizeof(heard) - 1);
	heard[bytes > 0 ? bytes : 0] = '\0';
	for (const char *c = heard; *c; c++)
		lines += *c == '\n';
	return lines;
}

static void a_pipe_that_nobody_reads_is_not_waited_for(void **state)
{
	(void)state;
	uint64_t lost_before = log_lost();
	for (int i = 0; i < LINES; i++)
		log_info("line %d", i);
	uint64_t lost = log_lost() - lost_before;
	assert_in_range(lost, 1, LINES - 1);
	log_catch_up(); // there is no room for that either
	assert_int_equal(log_lost() - lost_before, lost);
	assert_int_equal(hear(), LINES - lost);
	char last[32];
	snprintf(last, sizeof(last), "line %d\n", (int)(LINES - lost - 1));
	assert_non_null(strstr(heard, last)); // the first ones, in order

	// Once there is room: how many, then what is new; and it is said once.
	char said[64];
	snprintf(said, sizeof(said), "sluice warning: %d lines were lost", (int)lost);
	log_info("after");
	log_info("later");
	assert_int_equal(hear(), 3);
	const char *at = strstr(heard, said);
	assert_non_null(at);
	assert_non_null(strstr(at, "after\n"));
	assert_non_null(strstr(heard, "later\n"));
	assert_int_equal(log_lost() - lost_before, lost);
}

static void it_is_said_without_another_line(void **state)
{
	(void)state;
	log_set_level(LOG_LEVEL_ERROR); // whatever the level
	for (int i = 0; i < LINES; i++)
		log_error("line %d", i);
	hear();
	log_catch_up();
	log_catch_up();
	assert_int_equal(hear(), 1);
	assert_non_null(strstr(heard, " lines were lost"));
	log_set_level(LOG_LEVEL_INFO);
}

static void nobody_at_the_other_end_is_no_harm(void **state)
{
	(void)state;
	uint64_t lost_before = log_lost();
	close(ends[0]);
	ends[0] = -1;
	log_info("to nobody");
	assert_int_equal(log_lost() - lost_before, 1);
	close(STDERR_FILENO);
	log_info("to nowhere");
	assert_int_equal(log_lost() - lost_before, 2);
	dup2(usual_stderr, STDERR_FILENO);
}

static void lines_are_escaped_and_bounded(void **state)
{
	(void)state;
	char long_text[5000];
	memset(long_text, '\n', sizeof(long_text) - 1);
	long_text[sizeof(long_text) - 1] = '\0';
	setenv("JOURNAL_STREAM", "1:2", 1);
	hear();
	log_catch_up();
	hear();
	log_warning("a\nb\x7f%s", "c");
	assert_int_equal(hear(), 1);
	assert_string_equal(heard, "<4>a\\x0ab\\x7fc\n");
	log_error("%s", long_text);
	assert_int_equal(hear(), 1);
	assert_in_range(strlen(heard), 1500, 2048);
	unsetenv("JOURNAL_STREAM");
}

int main(void)
{
	signal(SIGPIPE, SIG_IGN); // as the process does
	const struct CMUnitTest tests[] = {
		cmocka_unit_test_setup_teardown(
			a_pipe_that_nobody_reads_is_not_waited_for, begin, end),
		cmocka_unit_test_setup_teardown(it_is_said_without_another_line, begin, end),
		cmocka_unit_test_setup_teardown(nobody_at_the_other_end_is_no_harm, begin, end),
		cmocka_unit_test_setup_teardown(lines_are_escaped_and_bounded, begin, end),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
