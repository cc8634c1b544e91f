// The decoder is an automaton over kinds of octets, and its table is the grammar of RFC 9112 7.1
// (chunks), 7.1.1 (extensions, with the white space that recipients must bear) and 7.1.2 (trailer
// fields). What is not in the table is refused. Data is passed through without being looked at.
//
// A size has at most 16 hex digits, so it fits 64 bits. How long a body may be, and how slowly it
// may come, is for the caller to say.

#include "dataplane/http/chunk.h"

#include "dataplane/http/octet.h"

#include <assert.h>

#define DIGITS_MAX 16 // of a size

enum state {
	AT_FIRST_SIZE, // the beginning of the body; nothing leads back here, so 0 is no move
	// the size line: counted against CHUNK_LINE_BYTES_MAX
	AT_SIZE, // the beginning of a later chunk
	IN_SIZE,
	AT_SEMICOLON, // after white space
	AT_NAME, // of an extension
	IN_NAME,
	AT_EQUALS, // after white space
	AT_VALUE,
	IN_VALUE,
	IN_QUOTES,
	AT_ESCAPED,
	AFTER_QUOTES,
	AT_SIZE_LF,
	IN_DATA,
	AT_DATA_CR,
	AT_DATA_LF,
	// trailer fields: counted against CHUNK_TRAILER_BYTES_MAX
	AT_FIELD, // or at the last line
	IN_FIELD_NAME,
	IN_FIELD_VALUE,
	AT_FIELD_LF,
	AT_LAST_LF,
	IS_DONE,
	IS_BAD,
	IS_TOO_LARGE,
	STATES,
};

enum kind { // of octets
	CONTROL,
	HEX,
	TOKEN, // other octets of tokens
	SPACE,
	SEMICOLON,
	EQUALS,
	COLON,
	QUOTE,
	BACKSLASH,
	TEXT, // other octets of field values
	CR,
	LF,
	KINDS,
};

// Octets of tokens, of quoted strings as they stand (qdtext), of field values.
#define ON_TOKEN(state) [HEX] = state, [TOKEN] = state
#define ON_QDTEXT(state) \
	ON_TOKEN(state), [SPACE] = state, [SEMICOLON] = state, [EQUALS] = state, [COLON] = state, \
			 [TEXT] = state
#define ON_TEXT(state) ON_QDTEXT(state), [QUOTE] = state, [BACKSLASH] = state

static const uint8_t moves[STATES][KINDS] = {
	[AT_FIRST_SIZE] = {[HEX] = IN_SIZE},
	[AT_SIZE] = {[HEX] = IN_SIZE},
	[IN_SIZE] =
		{[HEX] = IN_SIZE, [SPACE] = AT_SEMICOLON, [SEMICOLON] = AT_NAME, [CR] = AT_SIZE_LF},
	[AT_SEMICOLON] = {[SPACE] = AT_SEMICOLON, [SEMICOLON] = AT_NAME},
	[AT_NAME] = {[SPACE] = AT_NAME, ON_TOKEN(IN_NAME)},
	[IN_NAME] = {ON_TOKEN(IN_NAME), [SPACE] = AT_EQUALS, [EQUALS] = AT_VALUE,
		[SEMICOLON] = AT_NAME, [CR] = AT_SIZE_LF},
	[AT_EQUALS] = {[SPACE] = AT_EQUALS, [EQUALS] = AT_VALUE, [SEMICOLON] = AT_NAME},
	[AT_VALUE] = {[SPACE] = AT_VALUE, ON_TOKEN(IN_VALUE), [QUOTE] = IN_QUOTES},
	[IN_VALUE] = {ON_TOKEN(IN_VALUE), [SPACE] = AT_SEMICOLON, [SEMICOLON] = AT_NAME,
		[CR] = AT_SIZE_LF},
	[IN_QUOTES] = {ON_QDTEXT(IN_QUOTES), [BACKSLASH] = AT_ESCAPED, [QUOTE] = AFTER_QUOTES},
	[AT_ESCAPED] = {ON_TEXT(IN_QUOTES)},
	[AFTER_QUOTES] = {[SPACE] = AT_SEMICOLON, [SEMICOLON] = AT_NAME, [CR] = AT_SIZE_LF},
	[AT_SIZE_LF] = {[LF] = IN_DATA}, // or AT_FIELD, after the last chunk
	[AT_DATA_CR] = {[CR] = AT_DATA_LF},
	[AT_DATA_LF] = {[LF] = AT_SIZE},
	[AT_FIELD] = {ON_TOKEN(IN_FIELD_NAME), [CR] = AT_LAST_LF},
	[IN_FIELD_NAME] = {ON_TOKEN(IN_FIELD_NAME), [COLON] = IN_FIELD_VALUE},
	[IN_FIELD_VALUE] = {ON_TEXT(IN_FIELD_VALUE), [CR] = AT_FIELD_LF},
	[AT_FIELD_LF] = {[LF] = AT_FIELD},
	[AT_LAST_LF] = {[LF] = IS_DONE},
};

static enum state state_after(struct chunk_decoder *decoder, char c);
static struct span take_data(struct chunk_decoder *decoder, struct span in);

enum chunk_result chunk_decode(
	struct chunk_decoder *decoder, struct span in, size_t *consumed, struct span *data)
{
	assert(decoder->state < STATES);
	*data = (struct span){NULL, 0};
	*consumed = 0;
	while (*consumed < in.len && decoder->state < IS_DONE) {
		if (decoder->state == IN_DATA) {
			*data = take_data(decoder, span_from(in, *consumed));
			*consumed += data->len;
			return CHUNK_DATA;
		}
		decoder->state = state_after(decoder, in.at[(*consumed)++]);
	}
	switch (decoder->state) {
	case IS_DONE:
		return CHUNK_DONE;
	case IS_BAD:
		return CHUNK_BAD;
	case IS_TOO_LARGE:
		return CHUNK_TOO_LARGE;
	default:
		return CHUNK_MORE;
	}
}

static struct span take_data(struct chunk_decoder *decoder, struct span in)
{
	assert(decoder->left > 0);
	if (in.len > decoder->left)
		in.len = decoder->left;
	decoder->left -= in.len;
	if (decoder->left == 0)
		decoder->state = AT_DATA_CR;
	return in;
}

static enum kind kind_of(char c)
{
	switch (c) {
	case '\t':
	case ' ':
		return SPACE;
	case ';':
		return SEMICOLON;
	case '=':
		return EQUALS;
	case ':':
		return COLON;
	case '"':
		return QUOTE;
	case '\\':
		return BACKSLASH;
	case '\r':
		return CR;
	case '\n':
		return LF;
	}
	if (octet_is(c, OCTET_HEX))
		return HEX;
	if (octet_is(c, OCTET_TOKEN))
		return TOKEN;
	return octet_is(c, OCTET_TEXT) ? TEXT : CONTROL;
}

// Count one octet that stays within the size line, or within the trailer fields.
static bool is_over_limit(struct chunk_decoder *decoder, enum state next)
{
	if (next >= IN_SIZE && next <= AFTER_QUOTES)
		return ++decoder->line_bytes > CHUNK_LINE_BYTES_MAX;
	if (next >= AT_FIELD && next <= AT_FIELD_LF)
		return ++decoder->line_bytes > CHUNK_TRAILER_BYTES_MAX;
	return false;
}

static enum state state_after(struct chunk_decoder *decoder, char c)
{
	enum state next = moves[decoder->state][kind_of(c)];
	if (next == AT_FIRST_SIZE)
		return IS_BAD;
	if (is_over_limit(decoder, next))
		return IS_TOO_LARGE;
	if (next == IN_SIZE) {
		if (decoder->digits++ == DIGITS_MAX)
			return IS_BAD;
		decoder->left = decoder->left << 4 | octet_hex_value(c);
	}
	if (next == IN_DATA) {
		decoder->digits = 0;
		decoder->line_bytes = 0;
		if (decoder->left == 0)
			return AT_FIELD;
	}
	return next;
}

size_t chunk_head_write(char out[static CHUNK_HEAD_BYTES_MAX], uint64_t data_bytes)
{
	assert(data_bytes > 0);
	size_t bits = 64 - __builtin_clzll(data_bytes), digits = (bits + 3) / 4;
	for (size_t i = 0; i < digits; i++)
		out[i] = "0123456789abcdef"[data_bytes >> 4 * (digits - 1 - i) & 15];
	memcpy(out + digits, CHUNK_TAIL.at, CHUNK_TAIL.len);
	return digits + CHUNK_TAIL.len;
}
