// Tokens: base64url, big-endian, and the secrets that sign them.
//
// What a token says is not believed before its MAC is checked; decoding only finds out which key to
// check it with, and drops early what could not be ours whatever its MAC says. Everything that is
// wrong with a token has one outcome, none: an answer that told "expired key" from "wrong bytes"
// would help only whoever makes tokens up.
//
// The one comparison with something secret, of computed and carried tag, is OpenSSL's
// CRYPTO_memcmp, which looks at all bytes whatever they are.

#include "dataplane/gate/token.h"

#include "dataplane/gate/mac_state.h"

#include <openssl/crypto.h>

static_assert(sizeof(struct token_wire) * 8 == TOKEN_TEXT_BYTES * UINT64_C(6),
	"characters hold 6 bits each");

static const char letters[] = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789-_";

// The place in `letters` plus one; 0: no letter.
// clang-format off
static const uint8_t places[256] = {
	['-'] = 63,
	['0'] = 53, 54, 55, 56, 57, 58, 59, 60, 61, 62,
	['A'] = 1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12, 13,
	14, 15, 16, 17, 18, 19, 20, 21, 22, 23, 24, 25, 26,
	['_'] = 64,
	['a'] = 27, 28, 29, 30, 31, 32, 33, 34, 35, 36, 37, 38, 39,
	40, 41, 42, 43, 44, 45, 46, 47, 48, 49, 50, 51, 52,
};
// clang-format on

static uint32_t load32(const uint8_t *at)
{
	uint32_t value_be;
	memcpy(&value_be, at, sizeof(value_be));
	return __builtin_bswap32(value_be);
}

static uint64_t load64(const uint8_t *at)
{
	uint64_t value_be;
	memcpy(&value_be, at, sizeof(value_be));
	return __builtin_bswap64(value_be);
}

static void store32(uint8_t *at, uint32_t value)
{
	value = __builtin_bswap32(value);
	memcpy(at, &value, sizeof(value));
}

static void store64(uint8_t *at, uint64_t value)
{
	value = __builtin_bswap64(value);
	memcpy(at, &value, sizeof(value));
}

// Four letters are three bytes. Returns whether all of them were letters.
static bool bytes_of_text(const char *text, uint8_t *bytes)
{
	uint32_t wrong = 0;
	for (unsigned i = 0; i < TOKEN_TEXT_BYTES; i += 4, bytes += 3) {
		uint32_t group = 0;
		for (unsigned j = 0; j < 4; j++) {
			uint32_t value = (uint32_t)places[(uint8_t)text[i + j]] - 1;
			wrong |= value; // 0 - 1 has bits that no value has
			group = group << 6 | (value & 63);
		}
		bytes[0] = group >> 16;
		bytes[1] = group >> 8;
		bytes[2] = group;
	}
	return wrong < 64;
}

bool token_decode(struct span text, struct token_wire *wire, struct token *token)
{
	struct token_wire read;
	if (text.len != TOKEN_TEXT_BYTES || !bytes_of_text(text.at, (uint8_t *)&read))
		return false;
	const uint8_t *body = read.body;
	if (body[0] != TOKEN_VERSION || (body[3] & ~TOKEN_FLAGS_KNOWN))
		return false;
	if (body[2] != TOKEN_TICKET && body[2] != TOKEN_PASS)
		return false;
	uint32_t expires = load32(body + 28);
	if ((body[2] == TOKEN_PASS) != (expires != 0))
		return false;
	*wire = read;
	*token = (struct token){
		.secret_id = body[1],
		.kind = body[2],
		.flags = body[3],
		.line_id = load32(body + 4),
		.key = load64(body + 8),
		.visitor = load64(body + 16),
		.issued = load32(body + 24),
		.expires = expires,
	};
	return true;
}

const struct mac_key *token_key(const struct token_secrets *secrets, const struct token *token)
{
	bool is_valid = secrets->state[token->secret_id] == TOKEN_SECRET_VALID;
	return is_valid ? &secrets->keys[token->secret_id] : NULL;
}

bool token_is_signed(const struct token_wire *wire, const uint8_t tag[MAC_TAG_BYTES])
{
	return CRYPTO_memcmp(wire->tag, tag, MAC_TAG_BYTES) == 0;
}

void token_pack(const struct token *token, uint8_t body[MAC_MESSAGE_BYTES])
{
	assert(token->kind == TOKEN_TICKET || token->kind == TOKEN_PASS);
	assert((token->flags & ~TOKEN_FLAGS_KNOWN) == 0);
	assert((token->kind == TOKEN_PASS) == (token->expires != 0));
	body[0] = TOKEN_VERSION;
	body[1] = token->secret_id;
	body[2] = token->kind;
	body[3] = token->flags;
	store32(body + 4, token->line_id);
	store64(body + 8, token->key);
	store64(body + 16, token->visitor);
	store32(body + 24, token->issued);
	store32(body + 28, token->expires);
}

void token_encode(const struct token_wire *wire, char *text)
{
	const uint8_t *bytes = (const uint8_t *)wire;
	for (unsigned i = 0; i < TOKEN_TEXT_BYTES; i += 4, bytes += 3) {
		uint32_t group = (uint32_t)bytes[0] << 16 | bytes[1] << 8 | bytes[2];
		for (unsigned j = 0; j < 4; j++)
			text[i + j] = letters[group >> (18 - 6 * j) & 63];
	}
}

void token_sign(const struct token_secrets *secrets, struct token *token, char *text)
{
	struct token_wire wire;
	assert(secrets->state[secrets->current] == TOKEN_SECRET_VALID);
	token->secret_id = secrets->current;
	token_pack(token, wire.body);
	mac_state_tag(&secrets->keys[secrets->current], wire.body, wire.tag);
	token_encode(&wire, text);
}

void token_secrets_add(
	struct token_secrets *secrets, uint8_t id, const uint8_t *secret, size_t bytes)
{
	assert(bytes >= TOKEN_SECRET_BYTES_MIN);
	mac_key_init(&secrets->keys[id], secret, bytes);
	secrets->state[id] = TOKEN_SECRET_VALID;
}
