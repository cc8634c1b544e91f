// Any bytes as a template: refused with a place, or parts in order, sections that nest, and a page
// that every state can be rendered of.

#include "controlplane/pages/html.h"
#include "controlplane/pages/pages.h"

#include <assert.h>
#include <string.h>

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t len);

static uint32_t heard;

static void hear(void *context, const struct template_place *place, const char *text)
{
	(void)context;
	assert(place->file && place->line > 0 && place->column > 0 && *text);
	heard++;
}

static void check_parts(const struct template *made)
{
	uint32_t depth = 0, at = 0;
	for (uint32_t i = 0; i < made->part_count; i++) {
		const struct template_part *part = &made->parts[i];
		assert(part->offset >= at && part->offset <= made->len);
		at = part->offset;
		depth += part->kind == TEMPLATE_OPEN;
		assert(part->kind != TEMPLATE_CLOSE || depth > 0);
		depth -= part->kind == TEMPLATE_CLOSE;
		if (part->kind == TEMPLATE_SLOT)
			assert(made->document[at] == TEMPLATE_FILLER);
	}
	assert(depth == 0);
}

// Compiling is slow: only what is short.
static void check_page(const struct pages_template *source, const struct template_ear *ear)
{
	static char out[PAGE_BODY_BYTES_MAX];
	struct page *page;
	if (source->source.main.text.len > 300 || pages_compile(source, ear, &page) < 0)
		return;
	for (unsigned kind = 0; kind < PAGE_KIND_COUNT; kind++) {
		const struct status status = {.position = kind};
		const struct page_view view = {.status = &status, .kind = (uint8_t)kind};
		for (int encoding = 0; encoding < PAGE_ENCODINGS; encoding++)
			page_render(page, encoding, &view, out);
	}
	pages_destroy(page);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t len)
{
	static const struct template_text partials[] = {
		{"a", "_a", {"<p>{{room}}</p>{{#next}}n{{/next}}", 34}},
		{"self", "_self", {"{{>self}}", 9}}};
	static struct template made;
	const struct template_ear ear = {hear, NULL};
	const struct pages_template source = {
		.source = {.main = {"f", "f", {(const char *)data, len}},
			.partials = {2, partials},
			.language = {"en", 2}},
		.phrases = &pages_builtin[0].phrases};
	struct html found;
	heard = 0;
	uint32_t errors = template_expand(&source.source, &ear, &made);
	assert(errors == heard && made.len <= PAGE_BODY_BYTES_MAX);
	if (errors > 0)
		return 0;
	check_parts(&made);
	errors = html_scan(&made, &ear, &found);
	assert(errors == heard);
	for (uint32_t i = 0; i < found.block_count; i++)
		assert(found.blocks[i].offset + found.blocks[i].len <= made.len);
	if (errors == 0)
		check_page(&source, &ear);
	return 0;
}
