// The log: lines on stderr, for people and for journald.
//
// One event, one line, logged where it is first known. Under journald (JOURNAL_STREAM is set) each
// line begins with the priority that sd-daemon(3) defines; elsewhere with the time. Bytes that are
// not printable are escaped, so that nothing from outside can forge a line. Control thread and
// start-up only.
#pragma once

enum log_level {
	LOG_LEVEL_ERROR, // something failed that somebody must see to
	LOG_LEVEL_WARNING, // goes on, but not as it should
	LOG_LEVEL_INFO, // starts, stops, changes of state
};

// Leave out what is less urgent than `level` from now on. At start and reload.
void log_set_level(enum log_level level);

// Write a line as printf would, what does not print escaped. Through the macros below.
void log_line(enum log_level level, const char *format, ...) __attribute__((format(printf, 2, 3)));

#define log_error(...) log_line(LOG_LEVEL_ERROR, __VA_ARGS__)
#define log_warning(...) log_line(LOG_LEVEL_WARNING, __VA_ARGS__)
#define log_info(...) log_line(LOG_LEVEL_INFO, __VA_ARGS__)
