// The table of keys for people, and as JSON.
//
// One key is one line, so that grep finds all about it; columns are as wide as their widest value.

#include "config/config.h"
#include "config/key.h"
#include "config/plan.h"
#include "config/value.h"

#include <assert.h>
#include <jansson.h>
#include <stdarg.h>
#include <string.h>

enum column {
	COLUMN_NAME,
	COLUMN_TYPE,
	COLUMN_UNIT,
	COLUMN_RANGE,
	COLUMN_DEFAULT,
	COLUMN_CHANGE,
	COLUMN_HELP,
	COLUMN_COUNT,
};

static const char *const titles[COLUMN_COUNT] = {
	"name", "type", "unit", "range", "default", "change", "help"};

// What one key has in each column.
struct row {
	char text[COLUMN_COUNT][128];
};

static void print_into(struct row *row, enum column column, const char *format, ...)
	__attribute__((format(printf, 3, 4)));

static void print_into(struct row *row, enum column column, const char *format, ...)
{
	va_list values;
	va_start(values, format);
	int len = vsnprintf(row->text[column], sizeof(row->text[column]), format, values);
	va_end(values);
	assert(len >= 0 && (size_t)len < sizeof(row->text[column]));
}

static const char *unit_of(const struct key *key)
{
	if (key->type == KEY_WORD || key->type == KEY_CHOICE || key->max == 0)
		return "";
	if (key->shape == KEY_LIST)
		return "elements";
	return key->of ? key->of : "bytes";
}

static void fill_range(struct row *row, const struct key *key)
{
	char low[32], high[32];
	if (key->type == KEY_WORD || key->type == KEY_CHOICE)
		print_into(row, COLUMN_RANGE, "%.*s", (int)strcspn(key->of, ";"), key->of);
	else if (key->type == KEY_BOOL)
		print_into(row, COLUMN_RANGE, "true|false");
	else if (key->max > 0)
		print_into(row, COLUMN_RANGE, "%s..%s", value_number(key, key->min, low),
			value_number(key, key->max, high));
	else
		print_into(row, COLUMN_RANGE, "%s", "");
}

static const char *default_of(const struct key *key)
{
	if (key_is_required(key))
		return "required";
	return key_is_computed(key) ? key->fallback + 1 : key->fallback;
}

static const char *change_of(const struct key *key)
{
	if (key->scope->table == key_plan_table)
		return ""; // nothing runs by it
	return key->change == KEY_RELOAD ? "reload" : "restart";
}

static struct row row_of(const struct key *key)
{
	struct row row = {0};
	print_into(&row, COLUMN_NAME, "%s%s", key->scope->path, key->name);
	print_into(&row, COLUMN_TYPE, "%s%s", key->shape == KEY_LIST ? "list of " : "",
		value_type_name(key));
	print_into(&row, COLUMN_UNIT, "%s", unit_of(key));
	fill_range(&row, key);
	print_into(&row, COLUMN_DEFAULT, "%s", default_of(key));
	print_into(&row, COLUMN_CHANGE, "%s", change_of(key));
	print_into(&row, COLUMN_HELP, "%s", key->help);
	return row;
}

static void widen(size_t widths[COLUMN_COUNT], const struct row *row)
{
	for (int i = 0; i < COLUMN_COUNT; i++)
		if (widths[i] < strlen(row->text[i]))
			widths[i] = strlen(row->text[i]);
}

static void print_row(const size_t widths[COLUMN_COUNT], const struct row *row, FILE *out)
{
	for (int i = 0; i < COLUMN_HELP; i++) {
		const char *text = row->text[i];
		fprintf(out, "%-*s  ", (int)widths[i], *text ? text : "-");
	}
	fprintf(out, "%s\n", row->text[COLUMN_HELP]);
}

static void print_table(const struct key *table, unsigned count, FILE *out)
{
	size_t widths[COLUMN_COUNT] = {0};
	struct row title = {0}, row;

	for (int i = 0; i < COLUMN_COUNT; i++)
		print_into(&title, i, "%s", titles[i]);
	widen(widths, &title);
	for (unsigned i = 0; i < count; i++)
		row = row_of(&table[i]), widen(widths, &row);
	print_row(widths, &title, out);
	for (unsigned i = 0; i < count; i++)
		row = row_of(&table[i]), print_row(widths, &row, out);
}

void config_print_keys(FILE *out)
{
	print_table(key_table, key_count, out);
}

void plan_print_keys(FILE *out)
{
	print_table(key_plan_table, key_plan_count, out);
}

static void print_json(const struct key *table, unsigned count, FILE *out)
{
	json_t *keys = json_array();
	for (unsigned i = 0; i < count; i++) {
		const struct key *key = &table[i];
		struct row row = row_of(key);
		json_t *object = json_object();
		for (int j = 0; j < COLUMN_COUNT; j++)
			json_object_set_new(object, titles[j], json_string(row.text[j]));
		if (unit_of(key)[0]) {
			json_object_set_new(object, "min", json_integer((json_int_t)key->min));
			json_object_set_new(object, "max", json_integer((json_int_t)key->max));
		}
		json_object_set_new(object, "required", json_boolean(key_is_required(key)));
		json_array_append_new(keys, object);
	}
	json_dumpf(keys, out, JSON_INDENT(2));
	fputc('\n', out);
	json_decref(keys);
}

void config_print_json(FILE *out)
{
	print_json(key_table, key_count, out);
}

void plan_print_json(FILE *out)
{
	print_json(key_plan_table, key_plan_count, out);
}
