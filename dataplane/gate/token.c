// Tokens: what the bytes say, big-endian, and the secrets that sign them.
//
// What a token says is not believed before its MAC is checked; decoding only finds out which key to
// check it with, and drops early what could not be ours whatever its MAC says. Everything that is
// wrong with a token has one outcome, none: an answer that told "expired key" from "wrong bytes"
// would help only whoever makes tokens up.
//
// The comparison of computed and carried tag looks at all bytes whatever they are.
//
// Prints are a strongly universal hash, sums of products (Lemire and Kaser, "Strongly universal
// string hashing is fast", 2014, theorem of MULTILINEAR): two prints of different tokens are equal
// with a chance of 2^-64, over the keys. That holds as long as nobody sees a print; what they see
// here is whether one was equal.

#include "dataplane/gate/token.h"

#include "dataplane/gate/mac_state.h"

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

bool token_decode(struct span text, struct token_wire *wire, struct token *token)
{
	struct token_wire read;
	if (text.len != TOKEN_TEXT_BYTES || !token_text_read(text.at, (uint8_t *)&read))
		return false;
	const uint8_t *body = read.body;
	if (body[0] != TOKEN_VERSION || (body[3] & ~TOKEN_FLAGS_KNOWN) ||
		(body[3] && body[2] != TOKEN_TICKET))
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

// The compiler is not told what `differ` is, so it cannot make an early end of the comparison.
static bool is_zero(uint64_t differ)
{
	__asm__("" : "+r"(differ));
	return differ == 0;
}

static unsigned __int128 print_word(const struct token_print_key *key, unsigned i)
{
	return (unsigned __int128)key->words[i][1] << 64 | key->words[i][0];
}

uint64_t token_print(const struct token_print_key *key, const struct token_wire *wire)
{
	uint64_t words[TOKEN_PRINT_WORDS];
	memcpy(words, wire, sizeof(words));
	unsigned __int128 sum = print_word(key, TOKEN_PRINT_WORDS);
	for (unsigned i = 0; i < TOKEN_PRINT_WORDS; i++)
		sum += print_word(key, i) * words[i];
	return (uint64_t)(sum >> 64);
}

bool token_is_signed(const struct token_wire *wire, const uint8_t tag[MAC_TAG_BYTES])
{
	uint64_t differ = 0;
	for (unsigned i = 0; i < MAC_TAG_BYTES; i += 8)
		differ |= load64(wire->tag + i) ^ load64(tag + i);
	return is_zero(differ);
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
	token_text_write((const uint8_t *)wire, text);
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
