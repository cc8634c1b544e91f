// Collecting errors, each with its place in the file.
#pragma once

#include "config/config.h"

// Add `FILE:LINE:COLUMN: ` and the formatted text. Beyond CONFIG_ERRORS_MAX, or when memory is
// short, the error is only counted.
__attribute__((format(printf, 5, 6))) void report_add(struct config_report *report,
	const char *file, uint32_t line, uint32_t column, const char *format, ...);

// Likewise what is worth a word, but no error: `FILE:LINE:COLUMN: warning: `.
__attribute__((format(printf, 5, 6))) void report_warn(struct config_report *report,
	const char *file, uint32_t line, uint32_t column, const char *format, ...);

// Bring the errors into the order of the file, each once.
void report_sort(struct config_report *report);
