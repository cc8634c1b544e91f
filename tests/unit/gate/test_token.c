// Tokens: the wire format bit for bit, against an encoder of its own and OpenSSL's HMAC.

#include "dataplane/gate/token.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>

#include <cmocka.h>
#include <openssl/evp.h>
#include <openssl/hmac.h>

static struct token_secrets secrets;
static const uint8_t secret[32] = "0123456789abcdef0123456789abcde";

static struct span text_span(const char *text)
{
	return (struct span){text, strlen(text)};
}

// Sign 32 bytes as the contract says, with none of the code under test: OpenSSL's HMAC, and its
// base64 turned into base64url.
static void sign_naively(const uint8_t body[32], char text[65])
{
	uint8_t wire[48], digest[32];
	memcpy(wire, body, 32);
	HMAC(EVP_sha256(), secret, sizeof(secret), body, 32, digest, NULL);
	memcpy(wire + 32, digest, 16);
	EVP_EncodeBlock((unsigned char *)text, wire, sizeof(wire));
	for (int i = 0; i < 64; i++)
		text[i] = text[i] == '+' ? '-' : text[i] == '/' ? '_' : text[i];
}

static const uint8_t ticket_body[32] = {
	1, 7, 1, 0, // version, secret id, kind, flags
	0xde, 0xad, 0xbe, 0xef, // line id
	0x01, 0x23, 0x45, 0x67, 0x89, 0xab, 0xcd, 0xef, // key
	0xfe, 0xdc, 0xba, 0x98, 0x76, 0x54, 0x32, 0x10, // visitor id
	0x69, 0x2d, 0xb9, 0x80, // issued: 1764604288
	0, 0, 0, 0, // expires
};

static const struct token ticket = {
	.secret_id = 7,
	.kind = TOKEN_TICKET,
	.line_id = 0xdeadbeef,
	.key = 0x0123456789abcdef,
	.visitor = 0xfedcba9876543210,
	.issued = 1764604288,
};

static void assert_same_token(const struct token *a, const struct token *b)
{
	assert_int_equal(a->secret_id, b->secret_id);
	assert_int_equal(a->kind, b->kind);
	assert_int_equal(a->flags, b->flags);
	assert_int_equal(a->line_id, b->line_id);
	assert_true(a->key == b->key);
	assert_true(a->visitor == b->visitor);
	assert_int_equal(a->issued, b->issued);
	assert_int_equal(a->expires, b->expires);
}

static void signs_as_the_contract_says(void **state)
{
	(void)state;
	char text[65] = "", expected[65];
	struct token token = ticket;
	token.secret_id = 0; // token_sign() enters its own
	token_sign(&secrets, &token, text);
	sign_naively(ticket_body, expected);
	assert_string_equal(text, expected);
	assert_int_equal(token.secret_id, 7);
}

static void reads_what_the_contract_says(void **state)
{
	(void)state;
	char text[65];
	struct token_wire wire;
	struct token token;
	sign_naively(ticket_body, text);
	assert_true(token_decode(text_span(text), &wire, &token));
	assert_same_token(&token, &ticket);
	assert_memory_equal(wire.body, ticket_body, 32);
	assert_ptr_equal(token_key(&secrets, &token), &secrets.keys[7]);
	uint8_t digest[32];
	HMAC(EVP_sha256(), secret, sizeof(secret), ticket_body, 32, digest, NULL);
	assert_true(token_is_signed(&wire, digest));
	for (int bit = 0; bit < 128; bit++) {
		digest[bit / 8] ^= 1 << bit % 8;
		assert_false(token_is_signed(&wire, digest));
		digest[bit / 8] ^= 1 << bit % 8;
	}
}

// One byte of a good ticket's body is changed.
static const struct {
	const char *name;
	uint8_t at, value;
	bool is_token;
} bodies[] = {
	{"as it is", 0, 1, true},
	{"version 0", 0, 0, false},
	{"version 2", 0, 2, false},
	{"another secret", 1, 255, true},
	{"kind 0", 2, 0, false},
	{"kind 3", 2, 3, false},
	{"kind 255", 2, 255, false},
	{"a pass without an end", 2, 2, false},
	{"the first flag", 3, 1, true}, // of a ticket
	{"the second flag", 3, 2, false},
	{"the last flag", 3, 0x80, false},
	{"another line", 4, 0, true},
	{"issued in 2106", 24, 0xff, true},
	{"a ticket with an end, first byte", 28, 1, false},
	{"a ticket with an end, last byte", 31, 1, false},
};

static void decodes_only_what_could_be_ours(void **state)
{
	(void)state;
	for (size_t i = 0; i < sizeof(bodies) / sizeof(bodies[0]); i++) {
		uint8_t body[32];
		char text[65];
		struct token_wire wire;
		struct token token;
		memcpy(body, ticket_body, sizeof(body));
		body[bodies[i].at] = bodies[i].value;
		sign_naively(body, text);
		if (token_decode(text_span(text), &wire, &token) != bodies[i].is_token)
			fail_msg("%s", bodies[i].name);
	}
}

// What is done to the text of a good ticket.
static const struct {
	const char *name;
	int len; // it is cut or filled to
	int at; // changed here, if not -1
	char value;
	bool is_token;
} texts[] = {
	{"as it is", 64, -1, 0, true},
	{"empty", 0, -1, 0, false},
	{"63 characters", 63, -1, 0, false},
	{"65 characters", 65, -1, 0, false},
	{"padded", 68, 64, '=', false},
	{"+ for -", 64, 20, '+', false},
	{"/ for _", 64, 20, '/', false},
	{"padding inside", 64, 63, '=', false},
	{"white space before", 64, 0, ' ', false},
	{"NUL inside", 64, 30, 0, false},
	{"a byte above ASCII", 64, 30, (char)0xc3, false},
	{"a dot", 64, 30, '.', false},
	{"@, before A", 64, 30, '@', false},
	{"[, behind Z", 64, 30, '[', false},
	{"`, before a", 64, 30, '`', false},
	{"{, behind z", 64, 30, '{', false},
	{":, behind 9", 64, 30, ':', false},
};

static void refuses_what_is_not_a_text(void **state)
{
	(void)state;
	for (size_t i = 0; i < sizeof(texts) / sizeof(texts[0]); i++) {
		char text[80];
		struct token_wire wire;
		struct token token;
		sign_naively(ticket_body, text);
		memset(text + 64, 'A', sizeof(text) - 64);
		if (texts[i].at >= 0)
			text[texts[i].at] = texts[i].value;
		struct span span = {text, texts[i].len};
		if (token_decode(span, &wire, &token) != texts[i].is_token)
			fail_msg("%s", texts[i].name);
	}
}

// Only the 64 letters are read, and no two texts are one token.
static void every_text_is_canonical(void **state)
{
	(void)state;
	const char *letters = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789-_";
	char text[65];
	struct token_wire wire, seen[64];
	struct token token;
	sign_naively(ticket_body, text);
	int count = 0;
	for (int c = 0; c < 256; c++) {
		text[63] = (char)c;
		bool is_letter = c && strchr(letters, c);
		assert_int_equal(token_decode((struct span){text, 64}, &wire, &token), is_letter);
		for (int i = 0; is_letter && i < count; i++)
			assert_memory_not_equal(&seen[i], &wire, sizeof(wire));
		if (is_letter)
			seen[count++] = wire;
	}
	assert_int_equal(count, 64);
}

static void round_trips(void **state)
{
	(void)state;
	unsigned seed = 1;
	for (int round = 0; round < 2000; round++) {
		struct token token, read;
		struct token_wire wire;
		char text[64], again[64];
		for (size_t i = 0; i < sizeof(token); i++)
			((uint8_t *)&token)[i] = rand_r(&seed);
		token.kind = round % 2 ? TOKEN_PASS : TOKEN_TICKET;
		token.flags = 0;
		token.expires = round % 2 ? token.expires | 1 : 0;
		token_sign(&secrets, &token, text);
		assert_true(token_decode((struct span){text, 64}, &wire, &read));
		assert_same_token(&token, &read);
		token_encode(&wire, again);
		assert_memory_equal(text, again, 64);
	}
}

static void a_secret_signs_until_it_is_revoked(void **state)
{
	(void)state;
	struct token token = ticket;
	assert_non_null(token_key(&secrets, &token));
	secrets.state[7] = TOKEN_SECRET_REVOKED;
	assert_null(token_key(&secrets, &token));
	secrets.state[7] = TOKEN_SECRET_VALID;
	token.secret_id = 8;
	assert_null(token_key(&secrets, &token));
	token.secret_id = 255;
	assert_null(token_key(&secrets, &token));
}

static void ten_seconds_ahead_and_no_more(void **state)
{
	(void)state;
	struct token token = ticket;
	assert_false(token_is_dated_ahead(&token, token.issued - 10));
	assert_true(token_is_dated_ahead(&token, token.issued - 11));
	assert_false(token_is_dated_ahead(&token, token.issued + 1000));
	token.issued = UINT32_MAX;
	assert_false(token_is_dated_ahead(&token, UINT32_MAX));
	assert_true(token_is_dated_ahead(&token, UINT32_MAX - 11u));
}

// A key that picks one word shows it; under any other each bit of a token counts.
static void prints_depend_on_every_bit(void **state)
{
	(void)state;
	struct token_wire wire;
	uint8_t *bytes = (uint8_t *)&wire;
	for (unsigned i = 0; i < sizeof(wire); i++)
		bytes[i] = (uint8_t)(i * 37);
	for (unsigned i = 0; i < TOKEN_PRINT_WORDS; i++) {
		struct token_print_key key = {.words = {[0] = {0}}};
		key.words[i][1] = 1;
		uint64_t word;
		memcpy(&word, bytes + 8 * i, sizeof(word));
		assert_true(token_print(&key, &wire) == word);
	}
	struct token_print_key key;
	for (unsigned i = 0; i <= TOKEN_PRINT_WORDS; i++)
		for (unsigned half = 0; half < 2; half++)
			key.words[i][half] = (2 * i + half + 1) * 0x9e3779b97f4a7c15u;
	const uint64_t print = token_print(&key, &wire);
	assert_true(token_print(&key, &wire) == print);
	for (unsigned bit = 0; bit < 8 * sizeof(wire); bit++) {
		bytes[bit / 8] ^= (uint8_t)(1 << bit % 8);
		assert_true(token_print(&key, &wire) != print);
		bytes[bit / 8] ^= (uint8_t)(1 << bit % 8);
	}
	key.words[TOKEN_PRINT_WORDS][1]++;
	assert_true(token_print(&key, &wire) == print + 1);
}

int main(void)
{
	token_secrets_add(&secrets, 7, secret, sizeof(secret));
	secrets.current = 7;
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(signs_as_the_contract_says),
		cmocka_unit_test(reads_what_the_contract_says),
		cmocka_unit_test(decodes_only_what_could_be_ours),
		cmocka_unit_test(refuses_what_is_not_a_text),
		cmocka_unit_test(every_text_is_canonical),
		cmocka_unit_test(round_trips),
		cmocka_unit_test(a_secret_signs_until_it_is_revoked),
		cmocka_unit_test(ten_seconds_ahead_and_no_more),
		cmocka_unit_test(prints_depend_on_every_bit),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
