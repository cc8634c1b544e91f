// The log of log.h. A line is built in a buffer and written by one call, so that lines of two
// threads never mix.

#include "controlplane/log.h"

#include <stdarg.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <time.h>
#include <unistd.h>

#define LINE_BYTES_MAX 2048u

static enum log_level least_urgent = LOG_LEVEL_INFO;

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

void log_line(enum log_level level, const char *format, ...)
{
	if (level > least_urgent)
		return;
	char text[LINE_BYTES_MAX / 4], line[LINE_BYTES_MAX];
	va_list arguments;
	va_start(arguments, format);
	vsnprintf(text, sizeof(text), format, arguments);
	va_end(arguments);
	size_t len = (size_t)write_prefix(line, sizeof(line), level);
	for (const char *c = text; *c; c++) {
		bool printable = (unsigned char)*c >= 0x20 && *c != 0x7f;
		len += (size_t)snprintf(line + len, sizeof(line) - len,
			printable ? "%c" : "\\x%02x", (unsigned char)*c);
		if (len + 8 > sizeof(line))
			break;
	}
	line[len++] = '\n';
	ssize_t written = write(STDERR_FILENO, line, len);
	(void)written; // nowhere to say so
}
