// The log: lines on stderr, for people and for journald.
//
// One event, one line, logged where it is first known. Under journald (JOURNAL_STREAM is set) each
// line begins with the priority that sd-daemon(3) defines; elsewhere with the time. Bytes that are
// not printable are escaped, so that nothing from outside can forge a line.
//
// It waits for nobody: a line that stderr cannot take at once is lost and counted, and how many
// were is said as soon as there is room. Control thread and start-up only.
#pragma once

#include <stdint.h>

enum log_level {
	LOG_LEVEL_ERROR, // something failed that somebody must see to
	LOG_LEVEL_WARNING, // goes on, but not as it should
	LOG_LEVEL_INFO, // starts, stops, changes of state
};

// Leave out what is less urgent than `level` from now on. At start and reload.
void log_set_level(enum log_level level);

// Write a line as printf would, what does not print escaped. Through the macros below.
void log_line(enum log_level level, const char *format, ...) __attribute__((format(printf, 2, 3)));

// Say how many lines were lost since that was last said, if any were and there is room now. Each
// second; every line that is logged does so first.
void log_catch_up(void);

// Lines lost since the start.
uint64_t log_lost(void);

#define log_error(...) log_line(LOG_LEVEL_ERROR, __VA_ARGS__)
#define log_warning(...) log_line(LOG_LEVEL_WARNING, __VA_ARGS__)
#define log_info(...) log_line(LOG_LEVEL_INFO, __VA_ARGS__)
