// Templates: from the files of a folder to one document with holes.
//
// The language is a part of Mustache. Values are always escaped; there is no raw form.
//
//   {{name}}             a value (PAGE_SLOTS of page.h), or `lang`, the language of the page
//   {{#name}} {{/name}}  shown in that state, or if there is that value
//   {{^name}} {{/name}}  shown otherwise
//   {{>name}}            the partial of that name: file `_name.html`, or one that comes along
//   {{asset name}}       the address of file `assets/name`
//   {{! a comment }}
//
// An empty hole of each value's width, and the bounds of sections, are all that is left of it: the
// compiler (pages.h) makes of these what workers send.
#pragma once

#include <stdint.h>

#include "dataplane/gate/page.h"
#include "drivers/span.h"

#define TEMPLATE_NEST_MAX 8u // partials in partials, and sections in sections
#define TEMPLATE_PARTS_MAX 200u // values, and both ends of sections
#define TEMPLATE_TAGS_MAX 2000u // braces, those of partials each time they are included
#define TEMPLATE_TAG_BYTES_MAX 200u // between the braces
#define TEMPLATE_FILLER '\x01' // what holes are full of; in no text

// Where something is wrong. Lines and columns (characters) are counted from 1; both 0: the file, or
// a folder, itself.
struct template_place {
	const char *file;
	uint32_t line, column;
};

// Told everything that is wrong, `text` in words that end with what is allowed.
struct template_ear {
	void (*hear)(void *context, const struct template_place *place, const char *text);
	void *context;
};
__attribute__((format(printf, 3, 4))) void template_say(const struct template_ear *ear,
	const struct template_place *place, const char *format, ...);

// A text that has a name: a file, or the address of an asset.
struct template_text {
	const char *name; // by which it is included
	const char *file; // for errors
	struct span text;
};

struct template_names {
	uint32_t count;
	const struct template_text *at;
};

struct template_source {
	struct template_text main;
	struct template_names partials;
	struct template_names assets; // their texts are addresses
	struct span language;
};

enum template_kind {
	TEMPLATE_SLOT, // a hole, and what for
	TEMPLATE_OPEN, // a section begins, and its condition
	TEMPLATE_CLOSE, // the section begun last, and not yet ended, ends
};

struct template_part {
	uint32_t offset; // in the document
	uint8_t kind; // enum template_kind
	uint8_t what; // enum page_slot, or the number of a condition
	bool is_inverse; // OPEN: {{^name}}
	struct template_place place;
};

// From that offset on the document was copied from that place on.
struct template_run {
	uint32_t offset;
	struct template_place place;
};

struct template
{
	uint32_t run_count;
	struct template_run runs[2 * TEMPLATE_TAGS_MAX + 1];
	uint32_t part_count;
	struct template_part parts[TEMPLATE_PARTS_MAX]; // in the order of offsets
	uint32_t len;
	char document[PAGE_BODY_BYTES_MAX];
};

// Expand a template.
//   source  its bytes are not kept, but for names of files
// Returns how many errors the ear was told; 0: *made is whole. Pure; any thread.
uint32_t template_expand(const struct template_source *source, const struct template_ear *ear,
	struct template *made);

// Where in the files the document's byte `offset` comes from.
struct template_place template_place_at(const struct template *made, uint32_t offset);

// Of `count` names the one nearest to `name`, for a hint; NULL if there are none.
const char *template_nearest(const char *name, const char *const *names, uint32_t count);
