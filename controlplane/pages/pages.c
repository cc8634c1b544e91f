// The page compiler: an expanded template becomes pieces in each encoding, and a policy.
//
// A text ends where a slot, or the bound of a section, stands. Before each section stands a piece
// of as many spaces, to be sent instead of it; so offsets stay what they are.

#include "controlplane/pages/pages.h"

#include "controlplane/pages/encode.h"
#include "controlplane/pages/html.h"
#include "dataplane/gate/writer.h"

#include <assert.h>
#include <errno.h>
#include <openssl/evp.h>
#include <openssl/sha.h>
#include <stdlib.h>
#include <zlib.h>

#define GZIP_TRAILER_BYTES 8u
#define PIECES_MAX(parts) ((parts)*3 / 2 + 1) // a section has three pieces for its two ends
#define CSP_WORDS_BYTES 230u // without hashes
#define CSP_HASH_BYTES 54u
static_assert(CSP_WORDS_BYTES + HTML_BLOCKS_MAX * CSP_HASH_BYTES <= PAGE_CSP_BYTES_MAX, "it fits");

// A page that is being made in one encoding.
struct maker {
	const struct template *made;
	const struct html *found;
	enum accept_encoding encoding;
	struct page_piece *pieces;
	uint32_t count;
	char before[PAGE_BODY_BYTES_MAX]; // what texts may refer to
	bool is_short; // of memory
};

static struct span text_of(const struct template *made, uint32_t from, uint32_t to)
{
	return (struct span){made->document + from, to - from};
}

// Append a piece for `text`, which stands at `offset`.
static struct page_piece *add_piece(
	struct maker *m, uint32_t offset, struct span text, enum page_slot slot, bool is_last)
{
	assert(m->count < PIECES_MAX(m->made->part_count));
	struct page_piece *piece = &m->pieces[m->count];
	char *out = malloc(encode_bytes_max(text.len));
	struct encode_text input = {.text = text,
		.before = {m->before, offset},
		.slot_width = page_slot_width(slot),
		.is_last = is_last};
	ssize_t len = out ? encode(&input, m->encoding, out) : -ENOMEM;
	if (len < 0) {
		free(out);
		m->is_short = true;
		return piece;
	}
	char *fit = realloc(out, len > 0 ? (size_t)len : 1);
	piece->bytes = fit ? fit : out;
	piece->bytes_len = (uint32_t)len;
	piece->crc = (uint32_t)crc32_z(0, (const Bytef *)text.at, text.len);
	piece->crc_op = (uint32_t)crc32_combine_gen((z_off_t)text.len);
	piece->slot = slot;
	m->count++;
	return piece;
}

// The end of the section that part `open` begins.
static const struct template_part *end_of(const struct template *made, uint32_t open)
{
	uint32_t depth = 0;
	for (uint32_t i = open;; i++) {
		assert(i < made->part_count);
		depth += made->parts[i].kind == TEMPLATE_OPEN;
		depth -= made->parts[i].kind == TEMPLATE_CLOSE;
		if (depth == 0)
			return &made->parts[i];
	}
}

// The spaces that are sent instead of a section; where nothing is compressed, none. Where it ends
// is filled in when that is known.
static void add_blank(struct maker *m, uint32_t open)
{
	static const char spaces[PAGE_BODY_BYTES_MAX] = {[0 ... PAGE_BODY_BYTES_MAX - 1] = ' '};
	const struct template_part *part = &m->made->parts[open];
	uint32_t len = end_of(m->made, open)->offset - part->offset;
	if (m->encoding == ACCEPT_IDENTITY)
		len = 0; // nothing depends on offsets
	struct page_piece *blank =
		add_piece(m, part->offset, (struct span){spaces, len}, PAGE_SLOT_NONE, false);
	blank->condition = 1u << part->what;
	blank->is_inverse = part->is_inverse;
}

// What stood in a section is nothing that the texts behind it may refer to.
static void forget(struct maker *m, uint32_t blank, uint32_t from, uint32_t to)
{
	if (!m->is_short)
		m->pieces[blank].next = (uint16_t)m->count;
	memset(m->before + from, TEMPLATE_FILLER, to - from);
}

static int make_pieces(struct maker *m)
{
	struct {
		uint32_t blank, offset;
	} open[TEMPLATE_NEST_MAX];
	const struct template *made = m->made;
	uint32_t depth = 0, at = 0;
	memcpy(m->before, made->document, made->len);
	for (uint32_t i = 0; i < made->part_count && !m->is_short; i++) {
		const struct template_part *part = &made->parts[i];
		uint8_t slot = part->kind == TEMPLATE_SLOT ? part->what : PAGE_SLOT_NONE;
		if (part->offset > at || slot != PAGE_SLOT_NONE)
			add_piece(m, at, text_of(made, at, part->offset), slot, false)->is_text =
				m->found->is_text[i];
		at = part->offset + page_slot_width(slot);
		if (part->kind == TEMPLATE_OPEN) {
			open[depth].blank = m->count;
			open[depth++].offset = at;
			add_blank(m, i);
		} else if (part->kind == TEMPLATE_CLOSE) {
			depth--;
			forget(m, open[depth].blank, open[depth].offset, at);
		}
	}
	if (!m->is_short)
		add_piece(m, at, text_of(made, at, made->len), PAGE_SLOT_NONE, true);
	return m->is_short ? -ENOMEM : 0;
}

// The longest body that can come of it: all sections shown, or not, whichever is longer.
static uint32_t longest_body(const struct maker *m)
{
	uint32_t bytes = m->encoding == ACCEPT_GZIP ? GZIP_TRAILER_BYTES : 0;
	for (uint32_t i = 0; i < m->count; i++)
		bytes += m->pieces[i].bytes_len + page_slot_width(m->pieces[i].slot);
	return bytes;
}

static int make_variant(const struct template *made, const struct html *found,
	enum accept_encoding encoding, struct page *page, const struct template_ear *ear)
{
	struct maker m = {.made = made,
		.found = found,
		.encoding = encoding,
		.pieces = calloc(PIECES_MAX(made->part_count), sizeof(struct page_piece))};
	page->pieces[encoding] = m.pieces;
	int ret = m.pieces ? make_pieces(&m) : -ENOMEM;
	page->piece_count = m.count;
	if (ret < 0)
		return ret;
	uint32_t bytes = longest_body(&m);
	if (bytes <= PAGE_BODY_BYTES_MAX)
		return 0;
	struct template_place place = template_place_at(made, 0);
	template_say(ear, &place, "the page has %u bytes; allowed: %u", bytes, PAGE_BODY_BYTES_MAX);
	return -EINVAL;
}

// Append ` 'sha256-...'` for each block of the kind (CSP 3, 2.3.1 hash-source).
static void put_hashes(
	struct writer *w, const struct template *made, const struct html *found, bool is_style)
{
	for (uint32_t i = 0; i < found->block_count; i++) {
		const struct html_block *block = &found->blocks[i];
		if (block->is_style != is_style)
			continue;
		unsigned char digest[SHA256_DIGEST_LENGTH], text[64];
		SHA256((const unsigned char *)made->document + block->offset, block->len, digest);
		int len = EVP_EncodeBlock(text, digest, sizeof(digest));
		writer_span(w, SPAN(" 'sha256-"));
		writer_span(w, (struct span){(char *)text, (size_t)len});
		writer_char(w, '\'');
	}
}

static int make_csp(
	const struct template *made, const struct html *found, bool has_fonts, struct span *csp)
{
	char *text = malloc(PAGE_CSP_BYTES_MAX);
	if (!text)
		return -ENOMEM;
	struct writer w = {text, text + PAGE_CSP_BYTES_MAX};
	writer_span(&w, SPAN("default-src 'none'; script-src"));
	put_hashes(&w, made, found, false);
	writer_span(&w, SPAN("; style-src"));
	put_hashes(&w, made, found, true);
	if (has_fonts)
		writer_span(&w, SPAN("; font-src 'self'"));
	writer_span(&w, SPAN("; img-src 'self' data:; connect-src 'self'; base-uri 'none'; "
			     "form-action 'self'; frame-ancestors 'self'"));
	*csp = (struct span){text, (size_t)(w.at - text)};
	return 0;
}

static int compile(const struct template *made, const struct html *found,
	const struct pages_template *template, const struct template_ear *ear, struct page *page)
{
	int ret = make_csp(made, found, template->has_fonts, &page->csp);
	page->phrases = template->phrases;
	page->language = template->source.language;
	page->identity_bytes = made->len;
	for (int encoding = 0; ret == 0 && encoding < PAGE_ENCODINGS; encoding++)
		if (encoding == ACCEPT_IDENTITY || !template->is_preview)
			ret = make_variant(made, found, encoding, page, ear);
	return ret;
}

// The first piece has the header of the encoding.
static bool begins_with_text(const struct pages_template *template, const struct template *made,
	const struct template_ear *ear)
{
	const struct template_place place = {template->source.main.file, 1, 1};
	if (made->len > 0 && (made->part_count == 0 || made->parts[0].offset > 0))
		return true;
	template_say(ear, &place, "a page begins with text, as in <!doctype html>");
	return false;
}

// Everything but the encoding. Returns how many errors there are.
static uint32_t read_template(const struct pages_template *template, const struct template_ear *ear,
	struct template *made, struct html *found)
{
	uint32_t errors = template_expand(&template->source, ear, made);
	if (errors == 0)
		errors += !begins_with_text(template, made, ear);
	return errors > 0 ? errors : html_scan(made, ear, found);
}

uint32_t pages_check(const struct pages_template *template, const struct template_ear *ear)
{
	struct template *made = malloc(sizeof(*made));
	struct html found;
	uint32_t errors = made ? read_template(template, ear, made, &found) : 1;
	free(made);
	return errors;
}

int pages_compile(
	const struct pages_template *template, const struct template_ear *ear, struct page **page)
{
	struct template *made = malloc(sizeof(*made));
	struct html found;
	*page = calloc(1, sizeof(**page));
	int ret = made && *page ? 0 : -ENOMEM;
	if (ret == 0 && read_template(template, ear, made, &found) > 0)
		ret = -EINVAL;
	if (ret == 0)
		ret = compile(made, &found, template, ear, *page);
	free(made);
	if (ret < 0) {
		pages_destroy(*page);
		*page = NULL;
	}
	return ret;
}

void pages_destroy(struct page *page)
{
	if (!page)
		return;
	for (int encoding = 0; encoding < PAGE_ENCODINGS; encoding++) {
		for (uint32_t i = 0; i < page->piece_count && page->pieces[encoding]; i++)
			free((char *)page->pieces[encoding][i].bytes);
		free((void *)page->pieces[encoding]);
	}
	free((char *)page->csp.at);
	free(page);
}
