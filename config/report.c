// Collecting errors.
//
// Errors are found in the order in which rules run, and shown in the order of the file. What the
// file says is quoted in them, so every byte that a terminal could take for a command is escaped
// here, once for all.

#include "config/report.h"

#include <jansson.h>
#include <stdarg.h>
#include <stdlib.h>
#include <string.h>

static void write_safely(FILE *out, const char *text)
{
	for (const unsigned char *c = (const unsigned char *)text; *c; c++) {
		if (*c < 0x20 || *c == 0x7f || (*c == 0xc2 && c[1] < 0xa0))
			fprintf(out, "\\x%02x", *c);
		else
			fputc(*c, out);
	}
}

static char *format_error(const char *file, uint32_t line, uint32_t column, const char *mark,
	const char *format, va_list values)
{
	char *text = NULL, *safe = NULL;
	size_t len;
	FILE *out;

	if (vasprintf(&text, format, values) < 0)
		return NULL;
	if ((out = open_memstream(&safe, &len))) {
		write_safely(out, file);
		fprintf(out, ":%u:%u: %s", line, column, mark);
		write_safely(out, text);
		fclose(out);
	}
	free(text);
	return safe;
}

// Returns whether there was room and memory for it.
static bool list(struct config_report *report, const char *file, uint32_t line, uint32_t column,
	const char *mark, const char *format, va_list values)
{
	if (!report->errors)
		report->errors = calloc(CONFIG_ERRORS_MAX, sizeof(report->errors[0]));
	if (!report->errors || report->listed == CONFIG_ERRORS_MAX)
		return false;
	char *text = format_error(file, line, column, mark, format, values);
	if (text)
		report->errors[report->listed++] = (struct config_error){line, column, text};
	return text;
}

void report_add(struct config_report *report, const char *file, uint32_t line, uint32_t column,
	const char *format, ...)
{
	va_list values;
	va_start(values, format);
	list(report, file, line, column, "", format, values);
	va_end(values);
	report->count++;
}

void report_warn(struct config_report *report, const char *file, uint32_t line, uint32_t column,
	const char *format, ...)
{
	va_list values;
	va_start(values, format);
	report->warnings += list(report, file, line, column, "warning: ", format, values);
	va_end(values);
}

static int by_place(const void *a, const void *b)
{
	const struct config_error *x = a, *y = b;
	if (x->line != y->line)
		return x->line < y->line ? -1 : 1;
	if (x->column != y->column)
		return x->column < y->column ? -1 : 1;
	return strcmp(x->text, y->text);
}

// One that says what another says: a file that is used twice.
static void drop(struct config_report *report, struct config_error *twin)
{
	free(twin->text);
	report->count--;
}

void report_sort(struct config_report *report)
{
	if (report->listed == 0)
		return;
	qsort(report->errors, report->listed, sizeof(report->errors[0]), by_place);
	uint32_t kept = 1;
	for (uint32_t i = 1; i < report->listed; i++) {
		if (strcmp(report->errors[i].text, report->errors[kept - 1].text) != 0)
			report->errors[kept++] = report->errors[i];
		else
			drop(report, &report->errors[i]);
	}
	report->listed = kept;
}

void config_report_print(const struct config_report *report, FILE *out)
{
	for (uint32_t i = 0; i < report->listed; i++)
		fprintf(out, "%s\n", report->errors[i].text);
	uint32_t listed = report->listed - report->warnings;
	if (report->count > listed)
		fprintf(out, "and %u more errors\n", report->count - listed);
}

json_t *config_report_json(const struct config_report *report)
{
	json_t *list = json_array();
	for (uint32_t i = 0; i < report->listed; i++)
		json_array_append_new(list,
			json_pack("{s:i, s:i, s:s}", "line", (int)report->errors[i].line, "column",
				(int)report->errors[i].column, "text", report->errors[i].text));
	return list;
}

void config_report_fini(struct config_report *report)
{
	for (uint32_t i = 0; i < report->listed; i++)
		free(report->errors[i].text);
	free(report->errors);
	*report = (struct config_report){0};
}
