// The page compiler. Splits a template at its slots and encodes the text between them once, so that
// a worker only copies pieces and fills slots.
//
// What makes this sound: slots have fixed widths, so every text stands at the same offset of the
// decoded page in all answers.
//
//   gzip    Each text is deflated by itself, with all that stands before it as the dictionary, so
//           it may refer back across slots. There the dictionary holds a byte that occurs in no
//           text, so nothing refers into a slot. A sync flush ends it on a byte.
//   brotli  Each text is encoded by an encoder that is told its offset (STREAM_OFFSET) and so
//           refers to nothing before itself, depends on no byte before itself, and numbers the
//           words of the built-in dictionary, whose codes begin beyond the distance back to the
//           start of the page, rightly.

#include "controlplane/pages/pages.h"

#include "dataplane/gate/writer.h"

#include <assert.h>
#include <brotli/encode.h>
#include <errno.h>
#include <openssl/evp.h>
#include <openssl/sha.h>
#include <stdarg.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <zlib.h>

#define FILLER '\x01'
#define WINDOW_BITS 14 // brotli's window; holds a page
#define PIECE_EXTRA_BYTES 64u // what headers and flushes may add to a text
#define GZIP_TRAILER_BYTES 8u
static_assert(PAGE_BODY_BYTES_MAX < (1u << WINDOW_BITS) - 16, "no distance leaves the window");

// A template, split. Text i stands at offset[i] of `document`, which has FILLER in its slots.
struct split {
	uint32_t piece_count;
	uint32_t offset[PAGE_PIECES_MAX];
	uint32_t len[PAGE_PIECES_MAX];
	uint8_t slot[PAGE_PIECES_MAX]; // after the text; PAGE_SLOT_NONE: the last
	uint32_t document_len;
	char document[PAGE_BODY_BYTES_MAX];
};

// Encodes text `i`, with the header of the block that holds the slot after it. Returns its length,
// or 0 when memory is short.
typedef size_t encode_fn(const struct split *split, uint32_t i, char *out, size_t out_max);

static int split_template(struct span html, struct split *split, char *error);
static int check_phrases(const struct page_phrases *phrases, char *error);
static int make_csp(struct span html, struct span *csp, char *error);
static int make_variant(const struct split *split, enum accept_encoding encoding,
	struct page_variant *variant, char *error);
static encode_fn encode_identity, encode_gzip, encode_brotli;

__attribute__((format(printf, 2, 3))) static int refuse(char *error, const char *format, ...)
{
	va_list arguments;
	va_start(arguments, format);
	vsnprintf(error, PAGES_ERROR_BYTES, format, arguments);
	va_end(arguments);
	return -EINVAL;
}

static int compile_text(const struct pages_template *template, struct page_text *text, char *error)
{
	struct split split = {0};
	int ret = split_template(template->html, &split, error);
	if (ret == 0)
		ret = check_phrases(&template->phrases, error);
	if (ret == 0)
		ret = make_csp(template->html, &text->csp, error);
	for (int encoding = 0; ret == 0 && encoding < PAGE_ENCODINGS; encoding++)
		ret = make_variant(&split, encoding, &text->variants[encoding], error);
	text->phrases = &template->phrases;
	return ret;
}

int pages_compile(
	const struct pages_template templates[PAGE_LANGUAGES], struct page **page, char *error)
{
	struct page *made = calloc(1, sizeof(*made));
	if (!made)
		return -ENOMEM;
	for (int language = 0; language < PAGE_LANGUAGES; language++) {
		int ret = compile_text(&templates[language], &made->texts[language], error);
		if (ret < 0) {
			pages_destroy(made);
			return ret;
		}
	}
	*page = made;
	return 0;
}

void pages_destroy(struct page *page)
{
	if (!page)
		return;
	for (int language = 0; language < PAGE_LANGUAGES; language++) {
		struct page_text *text = &page->texts[language];
		for (int encoding = 0; encoding < PAGE_ENCODINGS; encoding++) {
			for (uint32_t i = 0; i < text->variants[encoding].piece_count; i++)
				free((char *)text->variants[encoding].pieces[i].bytes);
		}
		free((char *)text->csp.at);
	}
	free(page);
}

static enum page_slot slot_named(struct span name)
{
	static const struct span names[] = {
#define X(name, width, text) [PAGE_SLOT_##name] = {#name, sizeof(#name) - 1},
		PAGE_SLOTS(X)
#undef X
	};
	for (int slot = PAGE_SLOT_NONE + 1; slot < PAGE_SLOT_COUNT; slot++) {
		if (span_is_equal(names[slot], name))
			return slot;
	}
	return PAGE_SLOT_NONE;
}

// The first occurrence of `needle` in `s`, as what precedes it; all of `s` if there is none.
static struct span until(struct span s, struct span needle)
{
	const char *at = s.len > 0 ? memmem(s.at, s.len, needle.at, needle.len) : NULL;
	return (struct span){s.at, at ? (size_t)(at - s.at) : s.len};
}

// Text is UTF-8 without the controls that FILLER is one of.
static int check_characters(struct span html, char *error)
{
	for (size_t i = 0; i < html.len; i++) {
		unsigned char c = (unsigned char)html.at[i];
		if ((c < 0x20 && c != '\n' && c != '\t') || c == 0x7f)
			return refuse(error, "byte %zu is the control character %u", i, c);
	}
	return 0;
}

static int append_piece(struct split *split, struct span text, enum page_slot slot, char *error)
{
	uint32_t i = split->piece_count, width = page_slot_width(slot);
	if (i == PAGE_PIECES_MAX)
		return refuse(error, "more than %u slots", PAGE_PIECES_MAX - 1);
	if (text.len == 0)
		return refuse(error, "a slot at the start, the end, or next to another");
	if (text.len + width + GZIP_TRAILER_BYTES > PAGE_BODY_BYTES_MAX - split->document_len)
		return refuse(error, "longer than %u bytes", PAGE_BODY_BYTES_MAX);
	char *at = split->document + split->document_len;
	memcpy(at, text.at, text.len);
	memset(at + text.len, FILLER, width);
	split->offset[i] = split->document_len;
	split->len[i] = (uint32_t)text.len;
	split->slot[i] = slot;
	split->document_len += (uint32_t)text.len + width;
	split->piece_count++;
	return 0;
}

static int split_template(struct span html, struct split *split, char *error)
{
	int ret = check_characters(html, error);
	while (ret == 0) {
		struct span text = until(html, SPAN("{{"));
		if (text.len == html.len)
			return append_piece(split, text, PAGE_SLOT_NONE, error);
		struct span name = until(span_from(html, text.len + 2), SPAN("}}"));
		enum page_slot slot = slot_named(name);
		if (slot == PAGE_SLOT_NONE)
			return refuse(error, "no slot is called `%.*s`",
				name.len < 40 ? (int)name.len : 40, name.at);
		ret = append_piece(split, text, slot, error);
		html = span_from(html, text.len + 2 + name.len + 2);
	}
	return ret;
}

// A pattern names two numbers, of at most so many digits, and fits its slot with them.
static int check_pattern(struct span pattern, uint32_t digits, char *error)
{
	uint32_t marks = 0;
	for (size_t i = 0; i < pattern.len; i++)
		marks += pattern.at[i] == '#';
	if (marks != 2 || pattern.len - marks + marks * digits > page_slot_width(PAGE_SLOT_wait))
		return refuse(error, "`%.*s` is no pattern for two numbers, or too long",
			pattern.len < 40 ? (int)pattern.len : 40, pattern.at);
	return 0;
}

static int check_phrases(const struct page_phrases *phrases, char *error)
{
	const uint32_t wait = page_slot_width(PAGE_SLOT_wait);
	const uint32_t place = page_slot_width(PAGE_SLOT_place) + (uint32_t)sizeof(" · ") - 1;
	for (int state = 0; state < STATUS_STATE_COUNT; state++) {
		if (phrases->titles[state].len > page_slot_width(PAGE_SLOT_title) - place)
			return refuse(error, "the title of state %d is too long", state);
	}
	if (phrases->wait_unknown.len > wait || phrases->wait_soon.len > wait)
		return refuse(error, "the words for an unknown or short wait are too long");
	int ret = check_pattern(phrases->wait_minutes, 2, error);
	if (ret == 0)
		ret = check_pattern(phrases->wait_hours, 4, error); // 35.5
	return ret < 0 ? ret : check_pattern(phrases->wait_days, 15, error);
}

// Append ` 'sha256-...'` for each element that begins with `open` and ends with `close` (CSP 3,
// 2.3.1 hash-source: the bytes between the tags).
static int put_hashes(
	struct writer *w, struct span html, struct span open, struct span close, char *error)
{
	for (;;) {
		struct span before = until(html, open);
		if (before.len == html.len)
			return 0;
		struct span body = until(span_from(html, before.len + open.len), close);
		if (until(body, SPAN("{{")).len < body.len)
			return refuse(error, "a slot in %.*s", (int)open.len, open.at);
		if (w->end - w->at < 64)
			return refuse(error, "too many of %.*s", (int)open.len, open.at);
		unsigned char digest[SHA256_DIGEST_LENGTH], text[64];
		SHA256((const unsigned char *)body.at, body.len, digest);
		int len = EVP_EncodeBlock(text, digest, sizeof(digest));
		writer_span(w, SPAN(" 'sha256-"));
		writer_span(w, (struct span){(char *)text, (size_t)len});
		writer_char(w, '\'');
		html = span_from(html, (size_t)(body.at - html.at) + body.len);
	}
}

static int make_csp(struct span html, struct span *csp, char *error)
{
	static const struct span rest =
		SPAN("; img-src 'self' data:; connect-src 'self'; base-uri 'none'; "
		     "form-action 'self'; frame-ancestors 'self'");
	char *text = malloc(PAGE_CSP_BYTES_MAX);
	if (!text)
		return -ENOMEM;
	csp->at = text;
	struct writer w = {text, text + PAGE_CSP_BYTES_MAX - rest.len};
	writer_span(&w, SPAN("default-src 'none'; script-src"));
	int ret = put_hashes(&w, html, SPAN("<script>"), SPAN("</script>"), error);
	if (ret < 0)
		return ret;
	if (w.end - w.at < 16)
		return refuse(error, "too many of <script>");
	writer_span(&w, SPAN("; style-src"));
	ret = put_hashes(&w, html, SPAN("<style>"), SPAN("</style>"), error);
	w.end = text + PAGE_CSP_BYTES_MAX;
	writer_span(&w, rest);
	csp->len = (size_t)(w.at - text);
	return ret;
}

static int make_variant(const struct split *split, enum accept_encoding encoding,
	struct page_variant *variant, char *error)
{
	static encode_fn *const encoders[PAGE_ENCODINGS] = {
		[ACCEPT_IDENTITY] = encode_identity,
		[ACCEPT_GZIP] = encode_gzip,
		[ACCEPT_BR] = encode_brotli,
	};
	variant->identity_bytes = split->document_len;
	for (uint32_t i = 0; i < split->piece_count; i++) {
		struct page_piece *piece = &variant->pieces[i];
		size_t out_max = split->len[i] + split->len[i] / 8 + PIECE_EXTRA_BYTES;
		char *out = malloc(out_max);
		if (!out)
			return -ENOMEM;
		piece->bytes = out;
		variant->piece_count++;
		piece->bytes_len = (uint32_t)encoders[encoding](split, i, out, out_max);
		if (piece->bytes_len == 0)
			return -ENOMEM;
		const Bytef *text = (const Bytef *)split->document + split->offset[i];
		piece->crc = (uint32_t)crc32_z(0, text, split->len[i]);
		piece->crc_op = (uint32_t)crc32_combine_gen((z_off_t)split->len[i]);
		piece->slot = split->slot[i];
		variant->body_bytes += piece->bytes_len + page_slot_width(piece->slot);
	}
	if (encoding == ACCEPT_GZIP)
		variant->body_bytes += GZIP_TRAILER_BYTES;
	if (variant->body_bytes > PAGE_BODY_BYTES_MAX)
		return refuse(error, "longer than %u bytes", PAGE_BODY_BYTES_MAX);
	return 0;
}

static size_t encode_identity(const struct split *split, uint32_t i, char *out, size_t out_max)
{
	assert(split->len[i] <= out_max);
	memcpy(out, split->document + split->offset[i], split->len[i]);
	return split->len[i];
}

// A raw deflate stream whose window begins with `before`, or false when memory is short.
static bool deflate_begin(z_stream *stream, struct span before)
{
	*stream = (z_stream){0};
	if (deflateInit2(stream, Z_BEST_COMPRESSION, Z_DEFLATED, -MAX_WBITS, 9,
		    Z_DEFAULT_STRATEGY) != Z_OK)
		return false;
	int ret = deflateSetDictionary(stream, (const Bytef *)before.at, (uInt)before.len);
	assert(ret == Z_OK);
	return true;
}

static size_t encode_gzip(const struct split *split, uint32_t i, char *out, size_t out_max)
{
	// RFC 1952 2.3: deflate, no flags, no time, best compression, unknown system.
	static const struct span header = SPAN("\x1f\x8b\x08\0\0\0\0\0\x02\xff");
	struct writer w = {out, out + out_max};
	z_stream stream;
	if (!deflate_begin(&stream, (struct span){split->document, split->offset[i]}))
		return 0;
	if (i == 0)
		writer_span(&w, header);
	bool is_last = i + 1 == split->piece_count;
	stream.next_in = (Bytef *)split->document + split->offset[i];
	stream.avail_in = split->len[i];
	stream.next_out = (Bytef *)w.at;
	stream.avail_out = (uInt)(w.end - w.at);
	int ret = deflate(&stream, is_last ? Z_FINISH : Z_SYNC_FLUSH);
	assert(ret == (is_last ? Z_STREAM_END : Z_OK));
	assert(stream.avail_out > 0);
	w.at = (char *)stream.next_out;
	deflateEnd(&stream);
	if (!is_last) {
		// RFC 1951 3.2.4: not the last, stored; LEN and its complement, little-endian.
		uint16_t width = (uint16_t)page_slot_width(split->slot[i]);
		writer_char(&w, 0);
		writer_char(&w, (char)width);
		writer_char(&w, (char)(width >> 8));
		writer_char(&w, (char)~width);
		writer_char(&w, (char)(~width >> 8));
	}
	return (size_t)(w.at - out);
}

// An encoder for a text at `offset` of the page, or NULL when memory is short.
static BrotliEncoderState *brotli_begin(uint32_t offset, uint32_t len)
{
	BrotliEncoderState *encoder = BrotliEncoderCreateInstance(NULL, NULL, NULL);
	if (!encoder)
		return NULL;
	bool is_set =
		BrotliEncoderSetParameter(encoder, BROTLI_PARAM_QUALITY, BROTLI_MAX_QUALITY) &&
		BrotliEncoderSetParameter(encoder, BROTLI_PARAM_MODE, BROTLI_MODE_TEXT) &&
		BrotliEncoderSetParameter(encoder, BROTLI_PARAM_LGWIN, WINDOW_BITS) &&
		BrotliEncoderSetParameter(encoder, BROTLI_PARAM_SIZE_HINT, len) &&
		BrotliEncoderSetParameter(encoder, BROTLI_PARAM_STREAM_OFFSET, offset);
	assert(is_set);
	return encoder;
}

static size_t encode_brotli(const struct split *split, uint32_t i, char *out, size_t out_max)
{
	BrotliEncoderState *encoder = brotli_begin(split->offset[i], split->len[i]);
	if (!encoder)
		return 0;
	bool is_last = i + 1 == split->piece_count;
	size_t in_left = split->len[i], out_left = out_max;
	const uint8_t *in = (const uint8_t *)split->document + split->offset[i];
	uint8_t *at = (uint8_t *)out;
	BROTLI_BOOL is_done = BrotliEncoderCompressStream(encoder,
		is_last ? BROTLI_OPERATION_FINISH : BROTLI_OPERATION_FLUSH, &in_left, &in,
		&out_left, &at, NULL);
	bool has_more = BrotliEncoderHasMoreOutput(encoder);
	BrotliEncoderDestroyInstance(encoder);
	if (!is_done)
		return 0;
	assert(in_left == 0 && !has_more);
	struct writer w = {(char *)at, out + out_max};
	if (!is_last) {
		// RFC 7932 9.2, from the lowest bit: not the last (1 bit), four nibbles of length
		// (2), length less one (16), uncompressed (1), and zeros up to a byte.
		uint32_t header = (page_slot_width(split->slot[i]) - 1) << 3 | 1u << 19;
		for (unsigned shift = 0; shift < 24; shift += 8)
			writer_char(&w, (char)(header >> shift));
	}
	return (size_t)(w.at - out);
}
