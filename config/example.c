// The commented example: every key with its help and its default, in one file that is valid.
//
// What is worked out, or belongs to an absent mapping, is shown commented out. Keys of versions to
// come are left out; `sluice keys` has them.

#include "config/config.h"
#include "config/key.h"
#include "config/value.h"

#include <string.h>

#define COLUMNS 96 // comments are wrapped before

// Where in the file the next line goes.
struct place {
	const struct key_scope *scope;
	unsigned indent;
	const char *mark; // before each line: "# " where all is commented out
	bool is_element; // the scope's first key begins an element of a list
};

static void print_scope(struct place place, FILE *out);

void config_print_example(FILE *out)
{
	fputs("# The configuration of sluice: every key with its default.\n"
	      "# `sluice check -c FILE` says what is wrong with a file; sluice.yaml(5) says "
	      "more.\n",
		out);
	print_scope((struct place){.scope = key_root(), .mark = ""}, out);
}

// `text` as comment lines, broken at blanks.
static void print_comment(const struct place *place, const char *text, FILE *out)
{
	unsigned width = COLUMNS - place->indent - 2;
	while (*text) {
		size_t len = strlen(text);
		if (len > width)
			for (len = width; len > 0 && text[len] != ' ';)
				len--;
		if (len == 0)
			len = strcspn(text, " ");
		fprintf(out, "%*s# %.*s\n", (int)place->indent, "", (int)len, text);
		text += len;
		text += *text == ' ';
	}
}

static void print_comments(const struct place *place, const struct key *key, FILE *out)
{
	char phrase[VALUE_PHRASE_BYTES], text[2 * VALUE_PHRASE_BYTES];
	print_comment(place, key->help, out);
	if (key->type == KEY_MAP)
		return;
	snprintf(text, sizeof(text), "(%s%s%s%s%s)", value_allowed(key, phrase),
		key_is_required(key) ? "; required" : "", key_is_computed(key) ? "; default: " : "",
		key_is_computed(key) ? key->fallback + 1 : "",
		key->change == KEY_RESTART ? "; a change needs a restart" : "");
	print_comment(place, text, out);
}

static void print_value(const struct key *key, FILE *out)
{
	const char *text = key->fallback + key_is_required(key);
	if (key->type == KEY_MAP && strcmp(text, "none") != 0)
		fputs("\n", out);
	else if (key->shape == KEY_LIST && key->type != KEY_MAP && text[0] != '[')
		fprintf(out, " [%s]\n", text);
	else
		fprintf(out, " %s\n", text);
}

static void print_key(struct place *place, const struct key *key, FILE *out)
{
	bool is_out = key_is_computed(key);
	unsigned indent = place->indent - (place->is_element ? 2 : 0);

	fprintf(out, "%s", place->indent == 0 || key->type == KEY_MAP ? "\n" : "");
	print_comments(place, key, out);
	fprintf(out, "%*s%s%s%s:", (int)indent, "", is_out ? "#" : place->mark,
		place->is_element ? "- " : "", key->name);
	place->is_element = false;
	if (is_out)
		fputs(" ...\n", out);
	else
		print_value(key, out);
	if (key->type != KEY_MAP)
		return;
	bool is_absent = strcmp(key->fallback, "none") == 0;
	print_scope((struct place){.scope = key->child,
			    .indent = place->indent + (key->shape == KEY_LIST ? 4 : 2),
			    .mark = is_absent ? "# " : place->mark,
			    .is_element = key->shape == KEY_LIST},
		out);
}

static void print_scope(struct place place, FILE *out)
{
	for (const struct key *key = key_table; key < key_table + key_count; key++)
		if (key->scope == place.scope)
			print_key(&place, key, out);
}
