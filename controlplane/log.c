// The log of log.h. A line is built in a buffer and written by one call, so that lines of two
// writers never mix.
//
// stderr may be a pipe that nobody reads, and control must not wait for it. O_NONBLOCK would be
// everybody's who shares the pipe, so it is asked first, each time, whether there is room: a pipe
// that says so takes PIPE_BUF bytes at once (pipe(7)). Whoever else writes to it may come in
// between; then it waits once, for that reader. A file's disk is waited for as ever.

#include "controlplane/log.h"

#include <assert.h>
#include <inttypes.h>
#include <limits.h>
#include <poll.h>
#include <stdarg.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <time.h>
#include <unistd.h>

#define LINE_BYTES_MAX 2048u
static_assert(LINE_BYTES_MAX <= PIPE_BUF, "a line is written whole or not at all");

static enum log_level least_urgent = LOG_LEVEL_INFO;
static uint64_t lost_count, unsaid_count; // lines; of these, not yet said to be lost

static const char *const level_names[] = {"error", "warning", "info"};
static const int level_priorities[] = {3, 4, 6}; // syslog(3)

static int write_prefix(char *line, size_t size, enum log_level level)
{
	if (getenv("JOURNAL_STREAM"))
		return snprintf(line, size, "<%d>", level_priorities[level]);
	struct timespec now;
	struct tm day;
	clock_gettime(CLOCK_REALTIME, &now);
	gmtime_r(&now.tv_sec, &day);
	size_t len = strftime(line, size, "%Y-%m-%dT%H:%M:%S", &day);
	return (int)len + snprintf(line + len, size - len,
				  ".%03ldZ sluice %s: ", now.tv_nsec / 1000000, level_names[level]);
}

void log_set_level(enum log_level level)
{
	least_urgent = level;
}

// The line for a text, what does not print escaped. Returns its length.
static size_t compose(char line[LINE_BYTES_MAX], enum log_level level, const char *text)
{
	size_t len = (size_t)write_prefix(line, LINE_BYTES_MAX, level);
	for (const char *c = text; *c; c++) {
		bool printable = (unsigned char)*c >= 0x20 && *c != 0x7f;
		len += (size_t)snprintf(line + len, LINE_BYTES_MAX - len,
			printable ? "%c" : "\\x%02x", (unsigned char)*c);
		if (len + 8 > LINE_BYTES_MAX)
			break;
	}
	line[len++] = '\n';
	return len;
}

// Write a line if that can be done at once. Returns whether it was.
static bool put(enum log_level level, const char *text)
{
	char line[LINE_BYTES_MAX];
	struct pollfd out = {.fd = STDERR_FILENO, .events = POLLOUT};
	if (poll(&out, 1, 0) != 1 || !(out.revents & POLLOUT))
		return false;
	size_t len = compose(line, level, text);
	return write(STDERR_FILENO, line, len) == (ssize_t)len;
}

void log_line(enum log_level level, const char *format, ...)
{
	if (level > least_urgent)
		return;
	char text[LINE_BYTES_MAX / 4];
	va_list arguments;
	va_start(arguments, format);
	vsnprintf(text, sizeof(text), format, arguments);
	va_end(arguments);
	log_catch_up();
	if (unsaid_count > 0 || !put(level, text)) {
		lost_count++;
		unsaid_count++;
	}
}

void log_catch_up(void)
{
	if (unsaid_count == 0)
		return;
	char text[LINE_BYTES_MAX / 4];
	snprintf(text, sizeof(text), "%" PRIu64 " lines were lost: the log was not read, or full",
		unsaid_count);
	if (put(LOG_LEVEL_WARNING, text))
		unsaid_count = 0;
}

uint64_t log_lost(void)
{
	return lost_count;
}
