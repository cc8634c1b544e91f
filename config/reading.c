// Marks, and errors that are placed by them.
//
// Looking one up is a linear search, paid only by errors, and only by as many as a report lists.

#include "config/reading.h"

#include "config/report.h"

#include <assert.h>
#include <stdarg.h>
#include <string.h>

#define VALUE_BYTES_SHOWN 60
#define MARKS_MAX (2ul * TREE_NODES_MAX)

void reading_mark(struct reading *r, const void *base, const char *key, uint32_t index,
	const struct tree_node *node, const char *path)
{
	// A node is marked at most twice: as a key's value or an element, and as a struct. The
	// structs that stand for absent mappings are fewer than the nodes that end lists.
	if (!r->marks)
		r->marks = arena_take(r->scratch, MARKS_MAX * sizeof(r->marks[0]));
	assert(r->mark_count < MARKS_MAX);
	r->marks[r->mark_count++] = (struct reading_mark){base, key, index, node, path};
}

static const struct reading_mark *find(
	const struct reading *r, const void *base, const char *key, uint32_t index)
{
	for (uint32_t i = 0; i < r->mark_count; i++) {
		const struct reading_mark *mark = &r->marks[i];
		if (mark->base != base || mark->index != index || !mark->key != !key)
			continue;
		if (!key || strcmp(mark->key, key) == 0)
			return mark;
	}
	return NULL;
}

uint32_t reading_line(const struct reading *r, const void *base, const char *key, uint32_t index)
{
	const struct reading_mark *mark = find(r, base, key, index);
	return mark ? mark->node->line : 1;
}

const char *reading_quote(const char *text, char quoted[READING_QUOTE_BYTES])
{
	size_t len = strlen(text);
	bool is_cut = len > VALUE_BYTES_SHOWN;
	if (is_cut)
		for (len = VALUE_BYTES_SHOWN; len > 0 && (text[len] & 0xc0) == 0x80;)
			len--;
	snprintf(quoted, READING_QUOTE_BYTES, "'%.*s%s'", (int)len, text, is_cut ? "..." : "");
	return quoted;
}

// What is said here ends in a log: a URL that has a password is not repeated.
static bool has_password(const char *text)
{
	const char *scheme = strstr(text, "://"), *end = strrchr(text, '@');
	return scheme && end && scheme < end && memchr(scheme + 3, ':', (size_t)(end - scheme - 3));
}

typedef void report_fn(struct config_report *report, const char *file, uint32_t line,
	uint32_t column, const char *format, ...);

static void say(struct reading *r, const void *base, const char *key, uint32_t index,
	report_fn *report, const char *format, va_list values)
{
	char text[1024], value[READING_QUOTE_BYTES], element[16] = "";

	vsnprintf(text, sizeof(text), format, values);
	if (index != READING_WHOLE)
		snprintf(element, sizeof(element), "[%u]", index);

	const struct reading_mark *owner = find(r, base, NULL, READING_WHOLE);
	const struct reading_mark *mark = find(r, base, key, index);
	assert(owner);
	const struct tree_node *node = mark ? mark->node : NULL, *at = node ? node : owner->node;
	bool is_scalar = node && node->kind == TREE_SCALAR;
	bool is_shown = is_scalar && !has_password(node->text);
	// A collection that stands below its key is looked for at the key.
	bool at_key = node && node->key && !is_scalar;
	report(r->report, r->file, at_key ? at->key_line : at->line,
		at_key ? at->key_column : at->column, "%s%s%s: %s%s%s", owner->path, key, element,
		is_shown ? reading_quote(node->text, value) : "", is_shown ? " " : "", text);
}

void reading_fail(struct reading *r, const void *base, const char *key, uint32_t index,
	const char *format, ...)
{
	va_list values;

	if (r->report->listed == CONFIG_ERRORS_MAX) {
		r->report->count++;
		return;
	}
	va_start(values, format);
	say(r, base, key, index, report_add, format, values);
	va_end(values);
}

void reading_warn(struct reading *r, const void *base, const char *key, uint32_t index,
	const char *format, ...)
{
	va_list values;

	va_start(values, format);
	say(r, base, key, index, report_warn, format, values);
	va_end(values);
}
