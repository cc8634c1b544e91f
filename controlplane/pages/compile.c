// Compiles the pages that come along, when the program is built: `compile OUT.c`.
//
// A page takes some 20 ms, and there is one for each language: a start would feel it. What it
// writes is what pages_compile() would make, so whoever has a page need not know where from.
// (Constants of crc32_combine_gen() go with it: zlib has one polynomial.)

#include "controlplane/pages/pages.h"

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>

static void hear(void *context, const struct template_place *place, const char *text)
{
	(void)context;
	fprintf(stderr, "%s:%u:%u: %s\n", place->file, place->line, place->column, text);
}

static void write_string(FILE *out, const char *bytes, size_t len)
{
	fputc('"', out);
	for (size_t i = 0; i < len; i++) {
		unsigned char c = (unsigned char)bytes[i];
		bool is_plain = c >= ' ' && c < 127 && c != '"' && c != '\\' && c != '?';
		fprintf(out, is_plain ? "%c" : "\\%03o", c);
	}
	fputc('"', out);
}

static void write_pieces(FILE *out, const struct page *page, unsigned index, int encoding)
{
	fprintf(out, "static const struct page_piece pieces_%u_%d[] = {\n", index, encoding);
	for (uint32_t i = 0; i < page->piece_count; i++) {
		const struct page_piece *piece = &page->pieces[encoding][i];
		fprintf(out, "{");
		write_string(out, piece->bytes, piece->bytes_len);
		fprintf(out, ", %u, %uu, %uu, %u, %d, %d, %u, %uu},\n", piece->bytes_len,
			piece->crc, piece->crc_op, piece->slot, piece->is_text, piece->is_inverse,
			piece->next, piece->condition);
	}
	fprintf(out, "};\n");
}

static void write_page(FILE *out, const struct page *page, unsigned language, unsigned index)
{
	fprintf(out, "\t{.language = {");
	write_string(out, page->language.at, page->language.len);
	fprintf(out, ", %zu}, .csp = {", page->language.len);
	write_string(out, page->csp.at, page->csp.len);
	fprintf(out, ", %zu},\n\t.phrases = &pages_builtin[%u].phrases, .piece_count = %u, ",
		page->csp.len, language, page->piece_count);
	fprintf(out, ".identity_bytes = %u,\n\t.pieces = {", page->identity_bytes);
	for (int encoding = 0; encoding < PAGE_ENCODINGS; encoding++)
		fprintf(out, "pieces_%u_%d, ", index, encoding);
	fprintf(out, "}},\n");
}

// Of the templates for one purpose.
static int compile_all(bool asks, struct page *pages[PAGES_BUILTIN])
{
	static const struct template_ear ear = {hear, NULL};
	int ret = 0;
	for (unsigned i = 0; ret == 0 && i < PAGES_BUILTIN; i++) {
		const struct pages_builtin *builtin = &pages_builtin[i];
		const struct pages_template template = {
			.source = {.main = asks ? builtin->invitation : builtin->page,
				.partials = builtin->partials,
				.language = builtin->language},
			.phrases = &builtin->phrases};
		ret = pages_compile(&template, &ear, &pages[i]);
	}
	return ret;
}

static void write_all(FILE *out, const char *name, bool asks, struct page *pages[PAGES_BUILTIN])
{
	for (unsigned i = 0; i < PAGES_BUILTIN; i++)
		for (int encoding = 0; encoding < PAGE_ENCODINGS; encoding++)
			write_pieces(out, pages[i], i + asks * PAGES_BUILTIN, encoding);
	fprintf(out, "const struct page %s[PAGES_BUILTIN] = {\n", name);
	for (unsigned i = 0; i < PAGES_BUILTIN; i++) {
		write_page(out, pages[i], i, i + asks * PAGES_BUILTIN);
		pages_destroy(pages[i]);
	}
	fprintf(out, "};\n");
}

int main(int argc, char **argv)
{
	struct page *pages[PAGES_BUILTIN] = {0}, *invitations[PAGES_BUILTIN] = {0};
	const bool is_done = compile_all(false, pages) == 0 && compile_all(true, invitations) == 0;
	FILE *out = argc == 2 && is_done ? fopen(argv[1], "w") : NULL;
	if (!out)
		return 1;
	fprintf(out, "// Made by controlplane/pages/compile.c.\n"
		     "#include \"controlplane/pages/pages.h\"\n");
	write_all(out, "pages_made", false, pages);
	write_all(out, "pages_asking", true, invitations);
	return fclose(out) == 0 ? 0 : 1;
}
