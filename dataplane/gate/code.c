// Reading a code, in three steps: the body to the text, the text to letters, these to a digest.
//
// The first value named `code` counts, and of `once`. A JSON body is an object with these members
// in this order, the second one if you like, whose
// string has no escapes: a code needs none. Nothing is allocated: the letters and the padding of
// SHA-256 (FIPS 180-4, 5.1.1) are one block, hashed from the initial state.

// SHA256_Transform is deprecated in OpenSSL 3.0 in favour of interfaces that allocate.
#define OPENSSL_SUPPRESS_DEPRECATED

#include "dataplane/gate/code.h"

#include "dataplane/gate/request.h"
#include "dataplane/http/head.h"
#include "dataplane/http/octet.h"

#include <assert.h>
#include <openssl/sha.h>

#define BLOCK_BYTES 64u
static_assert(CODE_LETTERS_MAX + 1 + 8 <= BLOCK_BYTES, "letters, a one bit and the length fit");

struct span code_outcome_word(enum code_outcome outcome)
{
	static const struct span words[] = {
#define X(name, text) {"code_" #name, sizeof("code_" #name) - 1},
		CODE_OUTCOMES(X)
#undef X
	};
	assert(outcome < CODE_OUTCOME_COUNT);
	return words[outcome];
}

static uint64_t word_of(uint32_t high, uint32_t low)
{
	return (uint64_t)high << 32 | low;
}

static struct code_digest hash(uint8_t block[BLOCK_BYTES], uint32_t letters)
{
	SHA256_CTX sha;
	block[letters] = 0x80;
	block[BLOCK_BYTES - 2] = (uint8_t)(8 * letters >> 8);
	block[BLOCK_BYTES - 1] = (uint8_t)(8 * letters);
	SHA256_Init(&sha);
	SHA256_Transform(&sha, block);
	return (struct code_digest){{word_of(sha.h[0], sha.h[1]), word_of(sha.h[2], sha.h[3])}};
}

bool code_digest(struct span typed, struct code_digest *digest, uint32_t *letters)
{
	uint8_t block[BLOCK_BYTES] = {0};
	uint32_t count = 0;
	if (typed.len > CODE_TYPED_BYTES_MAX)
		return false;
	for (size_t i = 0; i < typed.len; i++) {
		const char c = octet_lower(typed.at[i]);
		if (c == ' ' || c == '-')
			continue;
		if (!octet_is_digit(c) && !(c >= 'a' && c <= 'z'))
			return false;
		if (count == CODE_LETTERS_MAX)
			return false;
		block[count++] = (uint8_t)c;
	}
	if (count == 0)
		return false;
	*digest = hash(block, count);
	if (letters)
		*letters = count;
	return true;
}

bool code_digest_hex(struct span hex, struct code_digest *digest)
{
	struct code_digest read = {{0}};
	if (hex.len != 2 * SHA256_DIGEST_LENGTH ||
		octet_scan(hex, 0, OCTET_HEX) != 2 * SHA256_DIGEST_LENGTH)
		return false;
	for (size_t i = 0; i < 32; i++)
		read.words[i / 16] = read.words[i / 16] << 4 | octet_hex_value(hex.at[i]);
	*digest = read;
	return (read.words[0] | read.words[1]) != 0;
}

// One byte of a form's value (WHATWG URL 5.1). Returns how many were read; 0: a bad escape.
static size_t decode_one(struct span text, char *c)
{
	*c = text.at[0] == '+' ? ' ' : text.at[0];
	if (*c != '%')
		return 1;
	if (text.len < 3 || !octet_is(text.at[1], OCTET_HEX) || !octet_is(text.at[2], OCTET_HEX))
		return 0;
	*c = (char)(octet_hex_value(text.at[1]) << 4 | octet_hex_value(text.at[2]));
	return 3;
}

static bool digest_of_value(struct span value, struct code_digest *digest)
{
	char typed[CODE_TYPED_BYTES_MAX];
	size_t len = 0;
	while (value.len > 0) {
		char c;
		const size_t taken = decode_one(value, &c);
		if (taken == 0 || len == sizeof(typed))
			return false;
		typed[len++] = c;
		value = span_from(value, taken);
	}
	return code_digest((struct span){typed, len}, digest, NULL);
}

// The value of the first pair of a form's body with this name and `=`. Returns false if none has.
static bool find_value(struct span body, struct span name, struct span *value)
{
	while (body.len > 0) {
		const char *end = memchr(body.at, '&', body.len);
		const struct span pair = {body.at, end ? (size_t)(end - body.at) : body.len};
		if (pair.len >= name.len && memcmp(pair.at, name.at, name.len) == 0) {
			*value = span_from(pair, name.len);
			return true;
		}
		body = span_from(body, pair.len + (end ? 1 : 0));
	}
	return false;
}

// 16 hex digits, as the page has them; 0 if it is none.
static uint64_t once_of(struct span text)
{
	uint64_t once = 0;
	if (text.len != 16)
		return 0;
	for (size_t i = 0; i < text.len; i++) {
		if (!octet_is(text.at[i], OCTET_HEX))
			return 0;
		once = once << 4 | octet_hex_value(text.at[i]);
	}
	return once;
}

static bool in_form(struct span body, struct code_digest *digest, uint64_t *once)
{
	struct span value;
	if (find_value(body, SPAN("once="), &value))
		*once = once_of(value);
	return find_value(body, SPAN("code="), &value) && digest_of_value(value, digest);
}

// Take white space and then `text` off the front. Returns false if it is not there.
static bool take(struct span *from, struct span text)
{
	while (from->len > 0 &&
		(octet_is_space(from->at[0]) || from->at[0] == '\r' || from->at[0] == '\n'))
		*from = span_from(*from, 1);
	if (from->len < text.len || (text.len > 0 && memcmp(from->at, text.at, text.len) != 0))
		return false;
	*from = span_from(*from, text.len);
	return true;
}

// A string without escapes.
static bool take_string(struct span *from, struct span *text)
{
	if (!take(from, SPAN("\"")))
		return false;
	const char *end = memchr(from->at, '"', from->len);
	if (!end)
		return false;
	*text = (struct span){from->at, (size_t)(end - from->at)};
	*from = span_from(*from, text->len + 1);
	return true;
}

static bool in_json(struct span body, struct code_digest *digest, uint64_t *once)
{
	struct span typed, number;
	if (!take(&body, SPAN("{")) || !take(&body, SPAN("\"code\"")) || !take(&body, SPAN(":")) ||
		!take_string(&body, &typed))
		return false;
	if (take(&body, SPAN(","))) {
		if (!take(&body, SPAN("\"once\"")) || !take(&body, SPAN(":")) ||
			!take_string(&body, &number))
			return false;
		*once = once_of(number);
	}
	if (!take(&body, SPAN("}")) || !take(&body, SPAN("")) || body.len > 0)
		return false;
	return code_digest(typed, digest, NULL);
}

bool code_in_body(struct span body, bool is_json, struct code_digest *digest, uint64_t *once)
{
	*once = 0;
	return is_json ? in_json(body, digest, once) : in_form(body, digest, once);
}

// Whether the body is JSON by its media type, whatever parameters that has.
static bool says_json(const struct http_head *head)
{
	const struct span json = SPAN("application/json");
	const struct http_field *field = http_field_first(head, HTTP_FIELD_content_type);
	if (!field)
		return false;
	struct span type = http_field_value(head, field);
	const bool is_longer = type.len > json.len;
	if (is_longer && octet_is(type.at[json.len], OCTET_TOKEN))
		return false;
	type.len = is_longer ? json.len : type.len;
	return span_is_equal_caseless(type, json);
}

bool code_read(const struct http_head *head, struct span rest, struct gate_request *request)
{
	request->code_outcome = CODE_asked;
	if (head->method != HTTP_POST)
		return true;
	request->code_outcome = CODE_unsized;
	if (head->body == HTTP_BODY_CHUNKED)
		return true;
	request->code_outcome = CODE_long;
	if (head->content_length > CODE_BODY_BYTES_MAX)
		return true;
	if (rest.len < head->content_length)
		return false;
	const bool is_json = says_json(head);
	request->body_bytes = (uint16_t)head->content_length;
	request->has_body = false;
	request->wants_json = request->wants_json || is_json;
	if (code_in_body((struct span){rest.at, request->body_bytes}, is_json, &request->code,
		    &request->once))
		request->code_outcome = CODE_asked;
	else
		request->code_outcome = CODE_invalid;
	return true;
}
