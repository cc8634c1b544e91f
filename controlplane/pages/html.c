// A tokenizer after HTML's (WHATWG 13.2.5), less what makes no difference here: character
// references, error recovery, trees. It says for each byte in which context it stands.

#include "controlplane/pages/html.h"

#include <assert.h>
#include <stdio.h>
#include <strings.h>

#define NAME_BYTES_MAX 32u // longer names of elements and attributes are none that matter

enum context {
	CONTEXT_TEXT,
	CONTEXT_TITLE, // RCDATA: text without elements
	CONTEXT_RAW, // of script and style
	CONTEXT_COMMENT,
	CONTEXT_TAG, // names, and all outside of quotes
	CONTEXT_DOUBLE, // within "
	CONTEXT_SINGLE, // within '
};

struct scanner {
	const struct template *made;
	const struct template_ear *ear;
	struct html *found;
	struct span document;
	uint32_t at;
	uint32_t errors;
	char element[NAME_BYTES_MAX]; // lower case
	uint8_t contexts[PAGE_BODY_BYTES_MAX + 1];
};

#define FAIL(s, offset, ...) \
	do { \
		struct template_place place_ = template_place_at((s)->made, (offset)); \
		(s)->errors++; \
		template_say((s)->ear, &place_, __VA_ARGS__); \
	} while (0)

static bool is_space(char c)
{
	return c == ' ' || c == '\t' || c == '\n' || c == '\r' || c == '\f';
}

static char lower(char c)
{
	return c >= 'A' && c <= 'Z' ? (char)(c - 'A' + 'a') : c;
}

static bool is_over(const struct scanner *s)
{
	return s->at >= s->document.len;
}

static char here(const struct scanner *s)
{
	return is_over(s) ? '\0' : s->document.at[s->at];
}

static bool begins(const struct scanner *s, uint32_t at, const char *text)
{
	size_t len = strlen(text);
	return at + len <= s->document.len && strncasecmp(s->document.at + at, text, len) == 0;
}

// Go on to `to`, all of it in one context.
static void pass(struct scanner *s, uint32_t to, enum context context)
{
	assert(to >= s->at && to <= s->document.len);
	memset(s->contexts + s->at, context, to - s->at);
	s->at = to;
}

// Where `text` begins next, or the end.
static uint32_t find(const struct scanner *s, uint32_t from, const char *text)
{
	uint32_t at = from;
	while (at < s->document.len && !begins(s, at, text))
		at++;
	return at < s->document.len ? at : (uint32_t)s->document.len;
}

static bool is_one_of(const char *name, const char *const *names)
{
	for (; *names; names++)
		if (strcmp(name, *names) == 0)
			return true;
	return false;
}

// Where something may be fetched from: our own assets, the page itself, an address that is the
// data.
static bool is_own(struct span address)
{
	static const struct span own[] = {
		{HTML_ASSETS, sizeof(HTML_ASSETS) - 1}, {"data:", 5}, {"#", 1}};
	while (address.len > 0 && (is_space(address.at[0]) || strchr("\"'", address.at[0])))
		address = span_from(address, 1);
	for (size_t i = 0; i < sizeof(own) / sizeof(own[0]); i++)
		if (address.len >= own[i].len && memcmp(address.at, own[i].at, own[i].len) == 0)
			return true;
	return false;
}

// Whether the browser fetches what the attribute names.
static bool is_fetched(const char *element, const char *attribute)
{
	static const char *const always[] = {"src", "srcset", "imagesrcset", "poster", "data",
		"background", "xlink:href", "ping", "manifest", NULL};
	static const char *const by_href[] = {"link", "use", "image", "feimage", NULL};
	return is_one_of(attribute, always) ||
	       (strcmp(attribute, "href") == 0 && is_one_of(element, by_href));
}

static bool is_address(const char *attribute)
{
	static const char *const names[] = {"href", "action", "formaction", "cite", NULL};
	return is_one_of(attribute, names);
}

static void check_attribute(
	struct scanner *s, uint32_t at, const char *name, struct span value, uint32_t value_at)
{
	bool fetches = is_fetched(s->element, name);
	if (fetches && value.len > 0 && !is_own(value))
		FAIL(s, value_at, "%s= fetches from elsewhere; allowed: {{asset NAME}}, data:, #",
			name);
	if ((fetches || is_address(name)) && memchr(value.at, TEMPLATE_FILLER, value.len))
		FAIL(s, value_at,
			"%s= with a value in it, which is filled up with spaces; "
			"allowed: an address",
			name);
	if (strcmp(name, "style") == 0)
		FAIL(s, at, "style= is not let in by the page's policy; allowed: <style>");
	if (name[0] == 'o' && name[1] == 'n' && name[2] != '\0')
		FAIL(s, at, "%s= is not let in by the page's policy; allowed: <script>", name);
}

// A name, in lower case; empty if it is too long to matter.
static void read_name(struct scanner *s, char name[NAME_BYTES_MAX])
{
	uint32_t begin = s->at, end = begin, len = 0;
	while (end < s->document.len && !is_space(s->document.at[end]) &&
		!strchr("/>=", s->document.at[end]))
		end++;
	if (end == begin && end < s->document.len)
		end++; // a stray mark: go on
	if (end - begin < NAME_BYTES_MAX)
		for (; len < end - begin; len++)
			name[len] = lower(s->document.at[begin + len]);
	name[len] = '\0';
	pass(s, end, CONTEXT_TAG);
}

static void skip_space(struct scanner *s)
{
	uint32_t end = s->at;
	while (end < s->document.len && is_space(s->document.at[end]))
		end++;
	pass(s, end, CONTEXT_TAG);
}

// The value of an attribute, behind the `=`.
static struct span read_value(struct scanner *s, uint32_t *value_at)
{
	char quote = here(s);
	bool is_quoted = quote == '"' || quote == '\'';
	if (is_quoted)
		pass(s, s->at + 1, CONTEXT_TAG);
	uint32_t end = s->at;
	while (end < s->document.len &&
		(is_quoted ? s->document.at[end] != quote
			   : !is_space(s->document.at[end]) && s->document.at[end] != '>'))
		end++;
	struct span value = {s->document.at + s->at, end - s->at};
	*value_at = s->at;
	end += is_quoted && end < s->document.len; // a section may end before the quote
	pass(s, end, quote == '"' ? CONTEXT_DOUBLE : quote == '\'' ? CONTEXT_SINGLE : CONTEXT_TAG);
	return value;
}

static void read_attribute(struct scanner *s)
{
	char name[NAME_BYTES_MAX];
	uint32_t at = s->at, value_at = at;
	struct span value = {s->document.at + at, 0};
	read_name(s, name);
	skip_space(s);
	if (here(s) == '=') {
		pass(s, s->at + 1, CONTEXT_TAG);
		skip_space(s);
		value = read_value(s, &value_at);
	}
	check_attribute(s, at, name, value, value_at);
}

static void check_element(struct scanner *s, uint32_t at)
{
	static const char *const refused[] = {"base", "iframe", "frame", "object", "embed",
		"applet", "plaintext", "xmp", "noembed", "noframes", NULL};
	if (is_one_of(s->element, refused))
		FAIL(s, at,
			"<%s> is of no use in a page; allowed: elements that fetch nothing, "
			"and <img>",
			s->element);
}

static void check_css(struct scanner *s, const struct html_block *block)
{
	struct span css = {s->document.at + block->offset, block->len};
	for (size_t i = 0; i < css.len; i++) {
		struct span rest = span_from(css, i);
		uint32_t at = block->offset + (uint32_t)i;
		if (begins(s, at, "@import"))
			FAIL(s, at, "@import fetches from elsewhere; allowed: rules");
		if (begins(s, at, "url(") && !is_own(span_from(rest, 4)))
			FAIL(s, at,
				"url() fetches from elsewhere; allowed: {{asset NAME}}, data:, #");
	}
}

// Where the end tag of the element begins.
static uint32_t find_end(const struct scanner *s)
{
	char end[NAME_BYTES_MAX + 2];
	snprintf(end, sizeof(end), "</%s", s->element);
	return find(s, s->at, end);
}

// The content of script or style up to its end tag.
static void read_raw(struct scanner *s, uint32_t tag_at)
{
	uint32_t stop = find_end(s);
	struct html_block block = {s->at, stop - s->at, strcmp(s->element, "style") == 0};
	if (stop == s->document.len)
		FAIL(s, tag_at, "<%s> never ends", s->element);
	if (block.is_style)
		check_css(s, &block);
	if (s->found->block_count < HTML_BLOCKS_MAX)
		s->found->blocks[s->found->block_count++] = block;
	else
		FAIL(s, tag_at, "too many of <script> and <style>; allowed: %u", HTML_BLOCKS_MAX);
	pass(s, stop, CONTEXT_RAW);
	s->contexts[stop] = CONTEXT_RAW; // and not before its end tag, which it needs
}

static void read_tag(struct scanner *s)
{
	uint32_t at = s->at;
	bool is_end = begins(s, at, "</");
	s->at++; // of text, as nothing has said otherwise: a section may begin or end before it
	if (is_end)
		pass(s, s->at + 1, CONTEXT_TAG);
	read_name(s, s->element);
	if (!is_end)
		check_element(s, at);
	for (skip_space(s); !is_over(s) && here(s) != '>'; skip_space(s))
		read_attribute(s);
	if (is_over(s)) {
		FAIL(s, at, "the tag never ends");
		return;
	}
	pass(s, s->at + 1, CONTEXT_TAG);
	if (is_end)
		return;
	if (strcmp(s->element, "script") == 0 || strcmp(s->element, "style") == 0) {
		read_raw(s, at);
	} else if (strcmp(s->element, "title") == 0 || strcmp(s->element, "textarea") == 0) {
		uint32_t stop = find_end(s);
		pass(s, stop + (stop < s->document.len), CONTEXT_TITLE); // a section may end there
		s->at = stop;
	}
}

// Comments, the doctype, and what browsers take for comments.
static void read_markup(struct scanner *s)
{
	bool is_comment = begins(s, s->at, "<!--");
	uint32_t end = find(s, s->at + 2, is_comment ? "-->" : ">");
	end += is_comment ? 3 : 1;
	uint32_t first = s->at;
	pass(s, end < s->document.len ? end : (uint32_t)s->document.len, CONTEXT_COMMENT);
	s->contexts[first] = CONTEXT_TEXT;
}

static bool is_letter(char c)
{
	return lower(c) >= 'a' && lower(c) <= 'z';
}

static void read_document(struct scanner *s)
{
	while (!is_over(s)) {
		pass(s, find(s, s->at, "<"), CONTEXT_TEXT);
		uint32_t name = s->at + (begins(s, s->at, "</") ? 2 : 1);
		if (is_over(s))
			break;
		if (name < s->document.len && is_letter(s->document.at[name]))
			read_tag(s);
		else if (begins(s, s->at, "<!") || begins(s, s->at, "<?") || begins(s, s->at, "</"))
			read_markup(s);
		else
			pass(s, s->at + 1, CONTEXT_TEXT);
	}
	s->contexts[s->document.len] = CONTEXT_TEXT;
}

static bool is_at(const struct scanner *s, uint32_t offset, enum context context)
{
	return s->contexts[offset] == context;
}

// A byte of a name or of a value without quotes.
static bool is_word(const struct scanner *s, uint32_t offset)
{
	const char c = s->document.at[offset];
	return offset < s->document.len && is_at(s, offset, CONTEXT_TAG) && !is_space(c) &&
	       !strchr("<>/=\"'", c) && c != TEMPLATE_FILLER;
}

// Whether markup has begun right before `offset`, and what stands there says which: < </ <! <? <!-
static bool is_begun(const struct scanner *s, uint32_t offset)
{
	uint32_t at = offset;
	while (at > 0 && offset - at < 2 && strchr("/!?-", s->document.at[at - 1]))
		at--;
	return at > 0 && s->document.at[at - 1] == '<' &&
	       (is_at(s, at - 1, CONTEXT_TEXT) || is_at(s, at - 1, CONTEXT_TITLE));
}

// Whether an attribute waits for its value before `offset`.
static bool is_behind_equals(const struct scanner *s, uint32_t offset)
{
	while (offset > 0 && is_space(s->document.at[offset - 1]))
		offset--;
	return offset > 0 && s->document.at[offset - 1] == '=' && is_at(s, offset - 1, CONTEXT_TAG);
}

static bool is_before_equals(const struct scanner *s, uint32_t offset)
{
	while (offset < s->document.len && is_space(s->document.at[offset]))
		offset++;
	return offset < s->document.len && s->document.at[offset] == '=' &&
	       is_at(s, offset, CONTEXT_TAG);
}

#define REFUSE(s, part, ...) \
	do { \
		(s)->errors++; \
		template_say((s)->ear, &(part)->place, __VA_ARGS__); \
	} while (0)

// A value, or an end of a section, in a place where it could be taken for markup. Returns whether
// it is.
static bool check_place(struct scanner *s, const struct template_part *part)
{
	const uint32_t at = part->offset;
	if (is_at(s, at, CONTEXT_RAW))
		REFUSE(s, part,
			"a value or section in script or style; allowed: text, and between quotes");
	else if (is_at(s, at, CONTEXT_COMMENT))
		REFUSE(s, part,
			"a value or section in a comment; allowed: text, and between quotes");
	else if (is_begun(s, at))
		REFUSE(s, part,
			"a value or section right behind <; allowed: text, and between quotes");
	else if (part->kind == TEMPLATE_SLOT && is_at(s, at, CONTEXT_TAG))
		REFUSE(s, part, "a value outside of quotes; allowed: text, and between quotes");
	else
		return true;
	return false;
}

// A document must mean the same with a section and without, however it is left out: as nothing, or
// as spaces. So it begins and ends in one kind of place; within a tag it has whole attributes, and
// within quotes a part of one value.
static void check_section(
	struct scanner *s, const struct template_part *begin, const struct template_part *end)
{
	const uint32_t from = begin->offset, to = end->offset;
	const uint8_t context = s->contexts[from];
	bool is_whole = s->contexts[to] == context;
	for (uint32_t i = from; i < to && context != CONTEXT_TEXT; i++)
		is_whole &= is_at(s, i, context) ||
			    (context == CONTEXT_TAG &&
				    (is_at(s, i, CONTEXT_DOUBLE) || is_at(s, i, CONTEXT_SINGLE)));
	if (!is_whole)
		REFUSE(s, begin,
			"a section that begins in one kind of place (text, tag, quotes) and ends "
			"in another; allowed: whole elements, or within one tag");
	else if (context == CONTEXT_TAG && from < to &&
		 ((from > 0 && is_word(s, from - 1) && (is_word(s, from) || is_word(s, to))) ||
			 (is_word(s, to - 1) && is_word(s, to)) || is_behind_equals(s, from) ||
			 is_before_equals(s, to)))
		REFUSE(s, begin,
			"a section with a part of a name or of a value; allowed in a tag: whole "
			"attributes, with a space before them");
}

static void check_parts(struct scanner *s)
{
	const struct template_part *open[TEMPLATE_NEST_MAX];
	bool is_good[TEMPLATE_NEST_MAX];
	uint32_t depth = 0;
	for (uint32_t i = 0; i < s->made->part_count; i++) {
		const struct template_part *part = &s->made->parts[i];
		const bool is_placed = check_place(s, part);
		s->found->is_text[i] = is_at(s, part->offset, CONTEXT_TEXT);
		if (part->kind == TEMPLATE_OPEN) {
			is_good[depth] = is_placed;
			open[depth++] = part;
		}
		if (part->kind == TEMPLATE_CLOSE && is_good[--depth] && is_placed)
			check_section(s, open[depth], part);
	}
}

// Names are written in one piece: what stands in a file is what a browser reads.
static void check_joints(struct scanner *s)
{
	uint32_t last = 0;
	for (uint32_t i = 1; i < s->made->run_count; i++) {
		const uint32_t at = s->made->runs[i].offset;
		if (at == last || at == 0 || at >= s->document.len ||
			s->document.at[at - 1] == TEMPLATE_FILLER ||
			s->document.at[at] == TEMPLATE_FILLER)
			continue;
		last = at;
		if (is_begun(s, at) || (is_word(s, at - 1) && is_word(s, at)))
			FAIL(s, at,
				"a name within < > that is put together from pieces; allowed: "
				"written whole");
	}
}

uint32_t html_scan(const struct template *made, const struct template_ear *ear, struct html *found)
{
	struct scanner s = {
		.made = made, .ear = ear, .found = found, .document = {made->document, made->len}};
	found->block_count = 0;
	read_document(&s);
	check_parts(&s);
	check_joints(&s);
	return s.errors;
}
