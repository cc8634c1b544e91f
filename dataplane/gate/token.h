// Tokens: a visitor's ticket or pass, 48 bytes signed by us and carried by them as 64 characters.
//
//   0 version | 1 secret id | 2 kind | 3 flags | 4..7 line id
//   8..15 key, gathering number or session id | 16..23 visitor id
//   24..27 issued (unix s) | 28..31 expires (unix s; 0 for tickets)
//   32..47 HMAC-SHA256(secret, bytes 0..31), cut to 128 bits
//
// Big-endian; base64url without padding (RFC 4648 5). 48 bytes fill 64 characters exactly, so no
// bit is left over and every token has one text only.
//
// Decoding and checking are apart, so that the MACs of a burst of requests can be computed
// together: token_decode() what came, mac_burst() over the signed bytes, token_is_signed().
#pragma once

#include <assert.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "dataplane/gate/mac.h"
#include "dataplane/gate/token_text.h"
#include "drivers/span.h"

#define TOKEN_VERSION 1u
#define TOKEN_FLAG_GATHERED 1u // of a ticket: its key is the number of a gathering
#define TOKEN_FLAGS_KNOWN TOKEN_FLAG_GATHERED // a token with any other bit is no token
#define TOKEN_AHEAD_MAX_S 10u // clocks of appliances may differ by this; dated further ahead: none
#define TOKEN_SECRETS 256u // a secret's id is one byte
#define TOKEN_SECRET_BYTES_MIN 16u // shorter ones are a bug of ours

enum token_kind {
	TOKEN_TICKET = 1,
	TOKEN_PASS = 2,
};

// What a token says.
struct token {
	uint8_t secret_id;
	uint8_t kind; // enum token_kind
	uint8_t flags; // within TOKEN_FLAGS_KNOWN
	uint32_t line_id; // low 32 bits of XXH3-64 of ROOM or ROOM/LANE
	uint64_t key; // ticket: the place, or with TOKEN_FLAG_GATHERED the number of the
		      // gathering; pass: the session id
	uint64_t visitor;
	uint32_t issued; // unix s
	uint32_t expires; // unix s; 0 for tickets, never 0 for passes
};

// The 48 bytes themselves. All zero is no token: version 0 does not exist.
struct token_wire {
	uint8_t body[MAC_MESSAGE_BYTES]; // what is signed
	uint8_t tag[MAC_TAG_BYTES];
};
static_assert(sizeof(struct token_wire) == TOKEN_TEXT_WIRE_BYTES, "the wire format has no holes");

enum token_secret_state {
	TOKEN_SECRET_ABSENT,
	TOKEN_SECRET_VALID,
	TOKEN_SECRET_REVOKED, // its tokens count as none from now on
};

// All secrets, prepared: built by control, published in the snapshot, read by workers. An id is not
// given to a new secret while connections live that may remember a token of the old one.
struct token_secrets {
	uint8_t current; // the id that signs; its state is TOKEN_SECRET_VALID
	uint8_t state[TOKEN_SECRETS]; // enum token_secret_state
	struct mac_key keys[TOKEN_SECRETS]; // meaningful where the state is not ABSENT
};

// Enter a secret as valid under `id`; `bytes` at least TOKEN_SECRET_BYTES_MIN. Control only, before
// the table is published.
void token_secrets_add(
	struct token_secrets *secrets, uint8_t id, const uint8_t *secret, size_t bytes);

// Read a token's text.
//   text   as carried, without quotes
//   wire, token  filled only when true is returned
// Returns whether this could be a token: 64 characters of the alphabet, version and kind known, no
// unknown flag, a ticket without and a pass with an end. Says nothing of the MAC. Pure; any thread.
bool token_decode(struct span text, struct token_wire *wire, struct token *token);

// The key a token says it was signed with, or NULL: secret absent or revoked. Pure; any thread.
const struct mac_key *token_key(const struct token_secrets *secrets, const struct token *token);

// What stands for a token where its 48 bytes would be too many: 64 bits that depend on all of them,
// under a random key that nobody learns. Of two different tokens, however chosen, one in 2^64 keys
// makes them the same.
#define TOKEN_PRINT_WORDS (TOKEN_TEXT_WIRE_BYTES / 8)
struct token_print_key {
	uint64_t words[TOKEN_PRINT_WORDS + 1][2];
};
static_assert(TOKEN_TEXT_WIRE_BYTES % 8 == 0, "whole words");

// The print of a token, in constant time. Pure; any thread.
uint64_t token_print(const struct token_print_key *key, const struct token_wire *wire);

// Whether `tag` (computed) is the token's own, in constant time. Pure; any thread.
bool token_is_signed(const struct token_wire *wire, const uint8_t tag[MAC_TAG_BYTES]);

// Whether a token is dated further ahead than clocks may differ; it counts as none. Pure.
static inline bool token_is_dated_ahead(const struct token *token, uint64_t now_s)
{
	return token->issued > now_s + TOKEN_AHEAD_MAX_S;
}

// Write the signed bytes of a token; the tag is left alone. For whoever signs many with
// mac_burst(), and then calls token_encode(). Pure; any thread.
void token_pack(const struct token *token, uint8_t body[MAC_MESSAGE_BYTES]);

// Write a token's text: TOKEN_TEXT_BYTES characters, no NUL. Pure; any thread.
void token_encode(const struct token_wire *wire, char *text);

// Sign with the current secret, whose id is entered into `token`, and write the text. One at a
// time, without an engine. Pure; any thread.
void token_sign(const struct token_secrets *secrets, struct token *token, char *text);
