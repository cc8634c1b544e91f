// The reader of templates: copies text, and turns what stands in braces into holes, bounds and
// other texts, depth first.
//
// Everything has a bound: files (by whoever reads them), the document, parts, nesting. An error
// does not end the reading, so that all of them are told; one that makes the rest meaningless (too
// long, too many) does.

#include "controlplane/pages/template.h"

#include "config/key.h"

#include <assert.h>
#include <stdarg.h>
#include <stdio.h>

#define NAMES_MAX (PAGE_SLOT_COUNT + PAGE_CONDITION_COUNT + 1)

// A file that is being read.
struct file {
	struct span text;
	size_t at; // how much of it is read
	struct template_place place; // of that
	unsigned depth;
	uint32_t sections; // open at its beginning: it ends what it begins
};

struct reader {
	const struct template_source *source;
	const struct template_ear *ear;
	struct template *made;
	uint32_t errors, tags;
	bool is_over; // the rest would say nothing new
	uint32_t section_count;
	struct {
		char name[32];
		struct template_place place;
	} sections[TEMPLATE_NEST_MAX];
};

static void read_file(struct reader *r, struct file *file);

void template_say(
	const struct template_ear *ear, const struct template_place *place, const char *format, ...)
{
	char text[400];
	va_list values;
	va_start(values, format);
	vsnprintf(text, sizeof(text), format, values);
	va_end(values);
	ear->hear(ear->context, place, text);
}

#define FAIL(r, place, ...) ((r)->errors++, template_say((r)->ear, (place), __VA_ARGS__))

const char *template_nearest(const char *name, const char *const *names, uint32_t count)
{
	const char *nearest = NULL;
	unsigned least = UINT32_MAX;
	for (uint32_t i = 0; i < count; i++) {
		unsigned distance = key_distance(name, names[i]);
		if (distance < least)
			nearest = names[i], least = distance;
	}
	return nearest;
}

static const struct template_text *find(struct template_names names, const char *name)
{
	for (uint32_t i = 0; i < names.count; i++)
		if (strcmp(names.at[i].name, name) == 0)
			return &names.at[i];
	return NULL;
}

static const char *nearest_text(struct template_names names, const char *name)
{
	const char *nearest = NULL;
	unsigned least = UINT32_MAX;
	for (uint32_t i = 0; i < names.count; i++) {
		unsigned distance = key_distance(name, names.at[i].name);
		if (distance < least)
			nearest = names.at[i].name, least = distance;
	}
	return nearest ? nearest : "none";
}

static const char *const slot_names[] = {
#define X(name, width, text) [PAGE_SLOT_##name] = #name,
	PAGE_SLOTS(X)
#undef X
};

static const char *const condition_names[] = {
#define X(name) [STATUS_##name] = #name,
	STATUS_STATES(X)
#undef X
#define X(name) [PAGE_##name] = #name,
		PAGE_MORE_KINDS(X)
#undef X
#define X(name) [PAGE_HAS_##name] = #name,
			PAGE_VALUES(X)
#undef X
};

static int slot_named(const char *name)
{
	for (int i = PAGE_SLOT_NONE + 1; i < PAGE_SLOT_COUNT; i++)
		if (strcmp(slot_names[i], name) == 0)
			return i;
	return -1;
}

static int condition_named(const char *name)
{
	for (int i = 0; i < PAGE_CONDITION_COUNT; i++)
		if (strcmp(condition_names[i], name) == 0)
			return i;
	return -1;
}

static const char *nearest_slot(const char *name)
{
	const char *names[NAMES_MAX] = {"lang"};
	uint32_t count = 1;
	for (int i = PAGE_SLOT_NONE + 1; i < PAGE_SLOT_COUNT; i++)
		names[count++] = slot_names[i];
	return template_nearest(name, names, count);
}

// Go on over a byte, counting lines and characters.
static void step(struct template_place *place, char c)
{
	place->column += ((unsigned char)c & 0xc0) != 0x80;
	if (c == '\n')
		place->line++, place->column = 1;
}

struct template_place template_place_at(const struct template *made, uint32_t offset)
{
	assert(made->run_count > 0);
	uint32_t i = made->run_count - 1;
	while (i > 0 && made->runs[i].offset > offset)
		i--;
	struct template_place place = made->runs[i].place;
	for (uint32_t at = made->runs[i].offset; at < offset && at < made->len; at++)
		step(&place, made->document[at]);
	return place;
}

static void advance(struct file *file, size_t at)
{
	for (; file->at < at; file->at++)
		step(&file->place, file->text.at[file->at]);
}

static void copy(struct reader *r, struct span text, const struct template_place *place)
{
	struct template *made = r->made;
	if (r->is_over)
		return;
	if (text.len > sizeof(made->document) - made->len) {
		FAIL(r, place, "the page gets too long; allowed: %u bytes with room for its values",
			PAGE_BODY_BYTES_MAX);
		r->is_over = true;
		return;
	}
	if (text.len == 0)
		return;
	made->runs[made->run_count++] = (struct template_run){made->len, *place};
	memcpy(made->document + made->len, text.at, text.len);
	made->len += (uint32_t)text.len;
}

// Text is UTF-8 without the controls that the filler is one of.
static void copy_text(struct reader *r, struct file *file, size_t end)
{
	struct template_place place = file->place;
	size_t begin = file->at;
	for (size_t i = begin; i < end; i++) {
		unsigned char c = (unsigned char)file->text.at[i];
		if ((c >= 0x20 || c == '\n' || c == '\t' || c == '\r') && c != 0x7f)
			continue;
		advance(file, i);
		place = file->place;
		FAIL(r, &place, "the control character %u; allowed: text", c);
	}
	advance(file, end);
	copy(r, (struct span){file->text.at + begin, end - begin}, &place);
}

static struct template_part *add_part(
	struct reader *r, enum template_kind kind, const struct template_place *place)
{
	static struct template_part none;
	struct template *made = r->made;
	if (r->is_over)
		return &none;
	if (made->part_count == TEMPLATE_PARTS_MAX) {
		FAIL(r, place, "too many values and sections; allowed: %u (a section counts twice)",
			TEMPLATE_PARTS_MAX);
		r->is_over = true;
		return &none;
	}
	made->parts[made->part_count] =
		(struct template_part){.offset = made->len, .kind = kind, .place = *place};
	return &made->parts[made->part_count++];
}

static void put_value(struct reader *r, const char *name, const struct template_place *place)
{
	static const char filler[512] = {[0 ... 511] = TEMPLATE_FILLER};
	if (strcmp(name, "lang") == 0) {
		copy(r, r->source->language, place);
		return;
	}
	int slot = slot_named(name);
	if (slot < 0) {
		FAIL(r, place, "{{%s}}: unknown variable; the nearest known is %s", name,
			nearest_slot(name));
		return;
	}
	add_part(r, TEMPLATE_SLOT, place)->what = (uint8_t)slot;
	assert(page_slot_width(slot) <= sizeof(filler));
	copy(r, (struct span){filler, page_slot_width(slot)}, place);
}

static void put_asset(struct reader *r, const char *name, const struct template_place *place)
{
	const struct template_text *asset = find(r->source->assets, name);
	if (asset)
		copy(r, asset->text, place);
	else
		FAIL(r, place, "{{asset %s}}: unknown asset; the nearest known is %s", name,
			nearest_text(r->source->assets, name));
}

static void open_section(
	struct reader *r, bool is_inverse, const char *name, const struct template_place *place)
{
	int condition = condition_named(name);
	if (condition < 0)
		FAIL(r, place, "{{%c%s}}: unknown section; the nearest known is %s",
			is_inverse ? '^' : '#', name,
			template_nearest(name, condition_names, PAGE_CONDITION_COUNT));
	if (r->section_count == TEMPLATE_NEST_MAX) {
		FAIL(r, place, "{{#%s}}: too many sections within each other; allowed: %u", name,
			TEMPLATE_NEST_MAX);
		r->is_over = true;
		return;
	}
	struct template_part *part = add_part(r, TEMPLATE_OPEN, place);
	part->what = condition < 0 ? 0 : (uint8_t)condition;
	part->is_inverse = is_inverse;
	snprintf(r->sections[r->section_count].name, sizeof(r->sections[0].name), "%s", name);
	r->sections[r->section_count++].place = *place;
}

static void close_section(struct reader *r, const struct file *file, const char *name,
	const struct template_place *place)
{
	if (r->section_count == file->sections) {
		FAIL(r, place, "{{/%s}}: no section is open in this file", name);
		return;
	}
	r->section_count--;
	const char *open = r->sections[r->section_count].name;
	if (strncmp(open, name, sizeof(r->sections[0].name) - 1) != 0)
		FAIL(r, place, "{{/%s}}: the section to end is {{/%s}}, begun on line %u", name,
			open, r->sections[r->section_count].place.line);
	add_part(r, TEMPLATE_CLOSE, place);
}

static void put_partial(struct reader *r, const struct file *file, const char *name,
	const struct template_place *place)
{
	const struct template_text *partial = find(r->source->partials, name);
	if (!partial) {
		FAIL(r, place, "{{>%s}}: unknown partial; the nearest known is %s", name,
			nearest_text(r->source->partials, name));
		return;
	}
	if (file->depth == TEMPLATE_NEST_MAX) {
		FAIL(r, place, "{{>%s}}: too many partials within each other; allowed: %u", name,
			TEMPLATE_NEST_MAX);
		r->is_over = true;
		return;
	}
	struct file inner = {
		.place = {partial->file, 1, 1}, .text = partial->text, .depth = file->depth + 1};
	read_file(r, &inner);
}

static struct span trim(struct span s)
{
	while (s.len > 0 && strchr(" \t\r\n", s.at[0]))
		s = span_from(s, 1);
	while (s.len > 0 && strchr(" \t\r\n", s.at[s.len - 1]))
		s.len--;
	return s;
}

// What stands between braces, at `place`.
static void read_tag(struct reader *r, const struct file *file, struct span inside,
	const struct template_place *place)
{
	char name[TEMPLATE_TAG_BYTES_MAX + 1];
	struct span tag = trim(inside);
	char mark = tag.len > 0 && strchr("!#^/>&{=", tag.at[0]) ? tag.at[0] : '\0';
	if (mark == '!')
		return;
	struct span rest = trim(span_from(tag, mark != '\0'));
	if (rest.len >= sizeof(name)) {
		FAIL(r, place, "too long between braces; allowed: %u bytes",
			TEMPLATE_TAG_BYTES_MAX);
		return;
	}
	memcpy(name, rest.at, rest.len);
	name[rest.len] = '\0';
	if (mark == '&' || mark == '{' || mark == '=')
		FAIL(r, place,
			"{{%c: no such form; allowed: {{name}}, whose value is always escaped",
			mark);
	else if (mark == '>')
		put_partial(r, file, name, place);
	else if (mark == '/')
		close_section(r, file, name, place);
	else if (mark)
		open_section(r, mark == '^', name, place);
	else if (strncmp(name, "asset ", 6) == 0)
		put_asset(r, name + 6 + strspn(name + 6, " "), place);
	else
		put_value(r, name, place);
}

static size_t find_at(struct span s, size_t from, const char *two)
{
	const char *at = from < s.len ? memmem(s.at + from, s.len - from, two, 2) : NULL;
	return at ? (size_t)(at - s.at) : s.len;
}

static void end_file(struct reader *r, const struct file *file)
{
	while (r->section_count > file->sections && !r->is_over) {
		r->section_count--;
		FAIL(r, &r->sections[r->section_count].place, "{{#%s}}: the section never ends",
			r->sections[r->section_count].name);
	}
}

static void read_file(struct reader *r, struct file *file)
{
	file->sections = r->section_count;
	while (!r->is_over) {
		size_t open = find_at(file->text, file->at, "{{");
		copy_text(r, file, open);
		if (open == file->text.len)
			break;
		struct template_place place = file->place;
		size_t close = find_at(file->text, open + 2, "}}");
		if (close == file->text.len) {
			FAIL(r, &place, "{{ without }} behind it");
			break;
		}
		if (++r->tags > TEMPLATE_TAGS_MAX) {
			FAIL(r, &place, "too many braces, with those of partials; allowed: %u",
				TEMPLATE_TAGS_MAX);
			r->is_over = true;
			break;
		}
		read_tag(
			r, file, (struct span){file->text.at + open + 2, close - open - 2}, &place);
		advance(file, close + 2);
	}
	end_file(r, file);
}

uint32_t template_expand(
	const struct template_source *source, const struct template_ear *ear, struct template *made)
{
	struct reader r = {.source = source, .ear = ear, .made = made};
	struct file file = {.place = {source->main.file, 1, 1}, .text = source->main.text};
	made->len = made->part_count = made->run_count = 0;
	read_file(&r, &file);
	return r.errors;
}
