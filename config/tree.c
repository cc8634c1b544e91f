// YAML text as a tree.
//
// Built from libyaml's events and not from its document, because a document has forgotten its
// anchors, and because events can be refused as they come: depth and number of nodes are bounded
// before memory is spent. Marks count from 0, people from 1.

#include "config/tree.h"

#include "config/report.h"

#include <assert.h>
#include <errno.h>
#include <stdarg.h>
#include <string.h>
#include <yaml.h>

struct builder {
	const char *file;
	const char *text;
	size_t len;
	struct arena *arena;
	struct config_report *report;
	struct tree_node *open[TREE_DEPTH_MAX]; // the collections around the next event
	struct tree_node **tail[TREE_DEPTH_MAX]; // where the next child of each goes
	const char *key; // read, its value still to come
	uint32_t key_line, key_column;
	uint32_t depth, nodes;
	struct tree_node *root;
};

static void skip_byte_order_mark(struct builder *b);
static int check_text(struct builder *b);
static int build(struct builder *b, yaml_parser_t *parser);
static int take_event(struct builder *b, const yaml_event_t *event);

int tree_read(const char *file, const char *text, size_t len, struct arena *arena,
	struct config_report *report, struct tree_node **root)
{
	struct builder b = {
		.file = file, .text = text, .len = len, .arena = arena, .report = report};
	yaml_parser_t parser;

	skip_byte_order_mark(&b);
	if (check_text(&b) < 0)
		return -EINVAL;
	if (!yaml_parser_initialize(&parser))
		return -ENOMEM;
	yaml_parser_set_encoding(&parser, YAML_UTF8_ENCODING);
	yaml_parser_set_input_string(&parser, (const unsigned char *)b.text, b.len);
	int ret = build(&b, &parser);
	yaml_parser_delete(&parser);
	if (ret < 0)
		return ret;

	if (!b.root) {
		b.root = arena_take(arena, sizeof(*b.root));
		*b.root = (struct tree_node){.kind = TREE_MAP, .line = 1, .column = 1};
	}
	*root = b.root;
	return 0;
}

__attribute__((format(printf, 3, 4))) static int refuse(
	struct builder *b, yaml_mark_t mark, const char *format, ...)
{
	char text[256];
	va_list values;
	va_start(values, format);
	vsnprintf(text, sizeof(text), format, values);
	va_end(values);
	report_add(b->report, b->file, mark.line + 1, mark.column + 1, "%s", text);
	return -EINVAL;
}

// The mark of a byte, for faults that libyaml places by offset or explains badly.
static yaml_mark_t mark_of(const struct builder *b, size_t offset)
{
	yaml_mark_t mark = {.index = offset};
	for (size_t i = 0; i < offset && i < b->len; i++) {
		if (b->text[i] == '\n')
			mark.line++, mark.column = 0;
		else if ((b->text[i] & 0xc0) != 0x80)
			mark.column++;
	}
	return mark;
}

// libyaml would count it as a column.
static void skip_byte_order_mark(struct builder *b)
{
	static const char mark[] = "\xef\xbb\xbf";
	if (b->len >= 3 && memcmp(b->text, mark, 3) == 0)
		b->text += 3, b->len -= 3;
}

// Size, and tabs where YAML wants spaces.
static int check_text(struct builder *b)
{
	bool indenting = true;
	if (b->len > CONFIG_FILE_BYTES_MAX)
		return refuse(b, mark_of(b, 0), "the file has %zu bytes; allowed: at most %u",
			b->len, CONFIG_FILE_BYTES_MAX);
	for (size_t i = 0; i < b->len; i++) {
		if (indenting && b->text[i] == '\t')
			return refuse(b, mark_of(b, i), "a tab; allowed: spaces to indent");
		indenting = b->text[i] == '\n' || (indenting && b->text[i] == ' ');
	}
	return 0;
}

// What people most often meant where the parser says no more than what it is.
static const char *hint_of(const yaml_parser_t *parser)
{
	static const struct {
		const char *part, *hint;
	} hints[] = {
		{"mapping values are not allowed", "; allowed: a text with ': ' in it in quotes"},
		{"alphabetic or numeric character",
			"; allowed: a text that begins with * in quotes"},
		{"cannot start any token",
			"; allowed: a text that begins with @, ` or % in quotes"},
		{"expected ',' or '", "; allowed: [ ], { } and quotes that end as they begin"},
		{"expected '-' indicator",
			"; allowed: one depth of spaces for what belongs together"},
		{"expected <block end>",
			"; allowed: one depth of spaces for what belongs together"},
		{"unexpected end of stream", "; allowed: quotes that end as they begin"},
	};
	for (size_t i = 0; i < sizeof(hints) / sizeof(hints[0]); i++)
		if (strstr(parser->problem, hints[i].part))
			return hints[i].hint;
	return "";
}

static int refuse_yaml(struct builder *b, const yaml_parser_t *parser)
{
	switch (parser->error) {
	case YAML_MEMORY_ERROR:
		return -ENOMEM;
	case YAML_READER_ERROR:
		return refuse(b, mark_of(b, parser->problem_offset), "not text in UTF-8: %s",
			parser->problem);
	default:
		return refuse(b, parser->problem_mark, "not YAML: %s%s%s%s", parser->problem,
			parser->context ? ", " : "", parser->context ? parser->context : "",
			hint_of(parser));
	}
}

static int build(struct builder *b, yaml_parser_t *parser)
{
	yaml_event_t event;
	yaml_event_type_t type;
	int ret;

	do {
		if (!yaml_parser_parse(parser, &event))
			return refuse_yaml(b, parser);
		type = event.type;
		ret = take_event(b, &event);
		yaml_event_delete(&event);
	} while (ret == 0 && type != YAML_STREAM_END_EVENT);
	return ret;
}

// A new node, hung up where the next child belongs.
static struct tree_node *add_node(struct builder *b, yaml_mark_t mark, enum tree_kind kind)
{
	struct tree_node *node = arena_take(b->arena, sizeof(*node));
	*node = (struct tree_node){.kind = kind,
		.key = b->key,
		.line = mark.line + 1,
		.column = mark.column + 1,
		.key_line = b->key_line,
		.key_column = b->key_column};
	b->key = NULL;
	if (b->depth == 0) {
		b->root = node;
		return node;
	}
	b->open[b->depth - 1]->count++;
	*b->tail[b->depth - 1] = node;
	b->tail[b->depth - 1] = &node->next;
	return node;
}

static bool key_is_due(const struct builder *b)
{
	return b->depth > 0 && b->open[b->depth - 1]->kind == TREE_MAP && !b->key;
}

static int take_scalar(struct builder *b, const yaml_event_t *event)
{
	const char *value = (const char *)event->data.scalar.value;
	size_t len = event->data.scalar.length;

	if (memchr(value, 0, len))
		return refuse(b, event->start_mark, "a NUL inside a text");
	if (b->depth == 0)
		return refuse(b, event->start_mark, "a single value; allowed: keys and values");
	const char *text = arena_copy(b->arena, value, len);
	if (key_is_due(b)) {
		b->key = text;
		b->key_line = event->start_mark.line + 1;
		b->key_column = event->start_mark.column + 1;
		return 0;
	}
	add_node(b, event->start_mark, TREE_SCALAR)->text = text;
	return 0;
}

static int open_collection(struct builder *b, const yaml_event_t *event, enum tree_kind kind)
{
	if (key_is_due(b))
		return refuse(b, event->start_mark, "a list or mapping as a key; allowed: a word");
	if (b->depth == 0 && kind != TREE_MAP)
		return refuse(b, event->start_mark, "a list; allowed: keys and values");
	if (b->depth == TREE_DEPTH_MAX)
		return refuse(b, event->start_mark, "nested too deeply; allowed: %u levels",
			TREE_DEPTH_MAX);
	struct tree_node *node = add_node(b, event->start_mark, kind);
	b->open[b->depth] = node;
	b->tail[b->depth++] = &node->first;
	return 0;
}

static const char *anchor_of(const yaml_event_t *event)
{
	switch (event->type) {
	case YAML_ALIAS_EVENT:
		return (const char *)event->data.alias.anchor;
	case YAML_SCALAR_EVENT:
		return (const char *)event->data.scalar.anchor;
	case YAML_SEQUENCE_START_EVENT:
		return (const char *)event->data.sequence_start.anchor;
	case YAML_MAPPING_START_EVENT:
		return (const char *)event->data.mapping_start.anchor;
	default:
		return NULL;
	}
}

static const char *tag_of(const yaml_event_t *event)
{
	switch (event->type) {
	case YAML_SCALAR_EVENT:
		return (const char *)event->data.scalar.tag;
	case YAML_SEQUENCE_START_EVENT:
		return (const char *)event->data.sequence_start.tag;
	case YAML_MAPPING_START_EVENT:
		return (const char *)event->data.mapping_start.tag;
	default:
		return NULL;
	}
}

static int take_event(struct builder *b, const yaml_event_t *event)
{
	if (anchor_of(event))
		return refuse(b, event->start_mark, "anchor or alias '%.60s'; allowed: none",
			anchor_of(event));
	if (tag_of(event))
		return refuse(b, event->start_mark, "tag '%.60s'; allowed: none", tag_of(event));
	if (b->nodes++ == TREE_NODES_MAX)
		return refuse(b, event->start_mark, "too many values; allowed: %u", TREE_NODES_MAX);
	switch (event->type) {
	case YAML_DOCUMENT_START_EVENT:
		return !b->root ? 0
				: refuse(b, event->start_mark, "a second document; allowed: one");
	case YAML_SCALAR_EVENT:
		return take_scalar(b, event);
	case YAML_SEQUENCE_START_EVENT:
		return open_collection(b, event, TREE_LIST);
	case YAML_MAPPING_START_EVENT:
		return open_collection(b, event, TREE_MAP);
	case YAML_SEQUENCE_END_EVENT:
	case YAML_MAPPING_END_EVENT:
		assert(b->depth > 0 && !b->key);
		b->depth--;
		return 0;
	default:
		return 0;
	}
}
