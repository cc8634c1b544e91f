// JSON as tables.
//
// Two passes: the cells are made and measured, then printed. Widths count characters, not bytes.

#include "controlplane/cli/table.h"

#include <stdbool.h>
#include <stdlib.h>
#include <string.h>

#define GAP 2 // blanks between columns

struct cell {
	char *text; // NULL: no memory, shown empty
	bool is_number;
};

struct grid {
	size_t row_count, column_count;
	struct cell *cells; // by row
};

static char *cell_text(const json_t *value)
{
	char *text = NULL;
	switch (value ? json_typeof(value) : JSON_NULL) {
	case JSON_NULL:
		return strdup("-");
	case JSON_TRUE:
		return strdup("yes");
	case JSON_FALSE:
		return strdup("no");
	case JSON_STRING:
		return strdup(json_string_value(value));
	case JSON_INTEGER:
		return asprintf(&text, "%lld", json_integer_value(value)) < 0 ? NULL : text;
	case JSON_REAL:
		return asprintf(&text, "%.2f", json_real_value(value)) < 0 ? NULL : text;
	default:
		return json_dumps(value, JSON_COMPACT);
	}
}

// What the process shows may have come from a visitor or an origin: nothing of it is a command to
// the terminal.
static void disarm(char *text)
{
	for (unsigned char *c = (unsigned char *)text; c && *c; c++)
		if (*c < 0x20 || *c == 0x7f || (*c == 0xc2 && c[1] >= 0x80 && c[1] < 0xa0))
			*c = '?';
}

static struct cell make_cell(const json_t *value)
{
	struct cell cell = {cell_text(value), json_is_number(value)};
	disarm(cell.text);
	return cell;
}

static size_t characters(const char *text)
{
	size_t count = 0;
	for (; text && *text; text++)
		count += (*text & 0xc0) != 0x80;
	return count;
}

// Append `text` to a line that has `used` characters already, as far as it goes.
static void print_cut(const char *text, unsigned width, size_t *used, FILE *out)
{
	for (; text && *text; text++) {
		bool is_start = (*text & 0xc0) != 0x80;
		if (width > 0 && is_start && *used == width)
			return;
		*used += is_start;
		fputc(*text, out);
	}
}

static void print_blanks(size_t count, unsigned width, size_t *used, FILE *out)
{
	for (; count > 0; count--)
		print_cut(" ", width, used, out);
}

static void print_line(const struct grid *grid, const struct cell *row, const size_t *widths,
	unsigned width, FILE *out)
{
	size_t used = 0;
	for (size_t i = 0; i < grid->column_count; i++) {
		size_t pad = widths[i] - characters(row[i].text);
		bool is_last = i + 1 == grid->column_count;
		if (row[i].is_number)
			print_blanks(pad, width, &used, out);
		print_cut(row[i].text, width, &used, out);
		if (!is_last)
			print_blanks(GAP + (row[i].is_number ? 0 : pad), width, &used, out);
	}
	fputc('\n', out);
}

static void print_grid(struct grid *grid, unsigned width, FILE *out)
{
	size_t *widths = calloc(grid->column_count + 1, sizeof(*widths));
	for (size_t i = 0; widths && i < grid->row_count * grid->column_count; i++) {
		size_t len = characters(grid->cells[i].text);
		if (widths[i % grid->column_count] < len)
			widths[i % grid->column_count] = len;
	}
	for (size_t i = 0; widths && i < grid->row_count; i++)
		print_line(grid, &grid->cells[i * grid->column_count], widths, width, out);
	for (size_t i = 0; i < grid->row_count * grid->column_count; i++)
		free(grid->cells[i].text);
	free(grid->cells);
	free(widths);
}

static void print_list(const json_t *list, unsigned width, FILE *out)
{
	json_t *first = json_array_get(list, 0);
	struct grid grid = {
		.row_count = json_array_size(list) + 1, .column_count = json_object_size(first)};
	size_t index, column = 0;
	const char *name;
	json_t *object, *value;

	grid.cells = calloc(grid.row_count * grid.column_count + 1, sizeof(*grid.cells));
	if (!grid.cells)
		return;
	json_object_foreach(first, name, value) grid.cells[column++] =
		(struct cell){strdup(name), json_is_number(value)};
	json_array_foreach(list, index, object)
	{
		struct cell *row = &grid.cells[(index + 1) * grid.column_count];
		column = 0;
		json_object_foreach(first, name, value) row[column++] =
			make_cell(json_object_get(object, name));
	}
	print_grid(&grid, width, out);
}

static bool is_list(const json_t *value)
{
	return json_is_object(json_array_get(value, 0));
}

static size_t count_leaves(const json_t *object)
{
	size_t count = 0;
	const char *name;
	json_t *value;
	json_object_foreach((json_t *)object, name, value) count +=
		json_is_object(value) ? count_leaves(value) : 1;
	return count;
}

static void add_leaves(struct grid *grid, const json_t *object, const char *path)
{
	const char *name;
	json_t *value;
	json_object_foreach((json_t *)object, name, value)
	{
		char *below = NULL;
		if (is_list(value))
			continue; // a table of its own, below
		if (asprintf(&below, "%s%s%s", path, *path ? "." : "", name) < 0)
			return;
		if (json_is_object(value)) {
			add_leaves(grid, value, below);
			free(below);
			continue;
		}
		struct cell *row = &grid->cells[2 * grid->row_count++];
		row[0].text = below;
		row[1] = make_cell(value);
		row[1].is_number = false; // under each other, from the left
	}
}

static void print_object(const json_t *object, unsigned width, FILE *out)
{
	struct grid grid = {.column_count = 2};
	grid.cells = calloc(2 * count_leaves(object) + 1, sizeof(*grid.cells));
	if (!grid.cells)
		return;
	add_leaves(&grid, object, "");
	print_grid(&grid, width, out);
	const char *name;
	json_t *value;
	json_object_foreach((json_t *)object, name, value)
	{
		if (!is_list(value))
			continue;
		fprintf(out, "\n%s\n", name);
		print_list(value, width, out);
	}
}

void table_print(const json_t *data, unsigned width, FILE *out)
{
	if (json_is_array(data) && json_array_size(data) == 0) {
		fputs("none\n", out);
	} else if (is_list(data)) {
		print_list(data, width, out);
	} else if (json_is_object(data)) {
		print_object(data, width, out);
	} else {
		struct cell cell = make_cell(data);
		fprintf(out, "%s\n", cell.text ? cell.text : "");
		free(cell.text);
	}
}
