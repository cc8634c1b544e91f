// What makes encoding around slots sound: slots have fixed widths, and so have sections, shown or
// not; so every text stands at the same offset of the decoded page in all answers.
//
//   gzip    Each text is deflated by itself, with all that stands before it as the dictionary, so
//           it may refer back across slots. There the dictionary holds a byte that occurs in no
//           text, so nothing refers into a slot, nor into a section that may not be shown. A sync
//           flush ends it on a byte.
//   brotli  Each text is encoded by an encoder that is told its offset (STREAM_OFFSET) and so
//           refers to nothing before itself, depends on no byte before itself, and numbers the
//           words of the built-in dictionary, whose codes begin beyond the distance back to the
//           start of the page, rightly.

#include "controlplane/pages/encode.h"

#include "dataplane/gate/writer.h"

#include <brotli/encode.h>
#include <errno.h>
#include <zlib.h>

#define WINDOW_BITS 15 // brotli's window; holds a page
static_assert(PAGE_BODY_BYTES_MAX < (1u << WINDOW_BITS) - 16, "no distance leaves the window");

typedef ssize_t encode_fn(const struct encode_text *text, char *out, size_t out_max);

size_t encode_bytes_max(size_t len)
{
	return len + len / 8 + ENCODE_EXTRA_BYTES;
}

static ssize_t encode_identity(const struct encode_text *text, char *out, size_t out_max)
{
	struct writer w = {out, out + out_max};
	writer_span(&w, text->text);
	return w.at - out;
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

static ssize_t encode_gzip(const struct encode_text *text, char *out, size_t out_max)
{
	// RFC 1952 2.3: deflate, no flags, no time, best compression, unknown system.
	static const struct span header = SPAN("\x1f\x8b\x08\0\0\0\0\0\x02\xff");
	struct writer w = {out, out + out_max};
	z_stream stream;
	if (!deflate_begin(&stream, text->before))
		return -ENOMEM;
	if (text->before.len == 0)
		writer_span(&w, header);
	stream.next_in = (Bytef *)text->text.at;
	stream.avail_in = (uInt)text->text.len;
	stream.next_out = (Bytef *)w.at;
	stream.avail_out = (uInt)(w.end - w.at);
	if (text->text.len > 0 || text->is_last) {
		int ret = deflate(&stream, text->is_last ? Z_FINISH : Z_SYNC_FLUSH);
		assert(ret == (text->is_last ? Z_STREAM_END : Z_OK));
	}
	assert(stream.avail_out > 0);
	w.at = (char *)stream.next_out;
	deflateEnd(&stream);
	if (text->slot_width > 0) {
		// RFC 1951 3.2.4: not the last, stored; LEN and its complement, little-endian.
		uint16_t width = (uint16_t)text->slot_width;
		writer_char(&w, 0);
		writer_char(&w, (char)width);
		writer_char(&w, (char)(width >> 8));
		writer_char(&w, (char)~width);
		writer_char(&w, (char)(~width >> 8));
	}
	return w.at - out;
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

static ssize_t encode_brotli(const struct encode_text *text, char *out, size_t out_max)
{
	const uint32_t len = (uint32_t)text->text.len;
	BrotliEncoderState *encoder = brotli_begin((uint32_t)text->before.len, len);
	if (!encoder)
		return -ENOMEM;
	size_t in_left = len, out_left = out_max;
	const uint8_t *in = (const uint8_t *)text->text.at;
	uint8_t *at = (uint8_t *)out;
	BROTLI_BOOL is_done = true;
	if (len > 0 || text->is_last)
		is_done = BrotliEncoderCompressStream(encoder,
			text->is_last ? BROTLI_OPERATION_FINISH : BROTLI_OPERATION_FLUSH, &in_left,
			&in, &out_left, &at, NULL);
	bool has_more = BrotliEncoderHasMoreOutput(encoder);
	BrotliEncoderDestroyInstance(encoder);
	if (!is_done)
		return -ENOMEM;
	assert(in_left == 0 && !has_more);
	struct writer w = {(char *)at, out + out_max};
	if (text->slot_width > 0) {
		// RFC 7932 9.2, from the lowest bit: not the last (1 bit), four nibbles of length
		// (2), length less one (16), uncompressed (1), and zeros up to a byte.
		uint32_t header = (text->slot_width - 1) << 3 | 1u << 19;
		for (unsigned shift = 0; shift < 24; shift += 8)
			writer_char(&w, (char)(header >> shift));
	}
	return w.at - out;
}

ssize_t encode(const struct encode_text *text, enum accept_encoding encoding, char *out)
{
	static encode_fn *const encoders[PAGE_ENCODINGS] = {
		[ACCEPT_IDENTITY] = encode_identity,
		[ACCEPT_GZIP] = encode_gzip,
		[ACCEPT_BR] = encode_brotli,
	};
	assert(text->before.len > 0 || text->text.len > 0); // the first one has the header
	return encoders[encoding](text, out, encode_bytes_max(text->text.len));
}
