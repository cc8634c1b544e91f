// Codes as they come: what is one, which are the same, how they are found in bodies; every input
// ends at an unmapped page.

#include "dataplane/gate/code.h"
#include "dataplane/gate/request.h"
#include "dataplane/http/head.h"
#include "tests/unit/gate/guard.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>

#include <cmocka.h>
#include <openssl/sha.h>

static char *guard;

static struct span at_guard(const char *text, size_t len)
{
	return (struct span){guard_put(guard, text, len), len};
}

// The digest by the whole of SHA-256, of letters as they are hashed.
static struct code_digest reference(const char *letters)
{
	unsigned char hash[SHA256_DIGEST_LENGTH];
	struct code_digest digest = {{0}};
	SHA256((const unsigned char *)letters, strlen(letters), hash);
	for (int i = 0; i < 16; i++)
		digest.words[i / 8] = digest.words[i / 8] << 8 | hash[i];
	return digest;
}

#define LETTERS_48 "abcdefghijklmnopqrstuvwxyz0123456789abcdefghijkl"
#define HYPHENS_16 "----------------"

static void test_what_is_a_code(void **state)
{
	(void)state;
	static const struct {
		const char *typed;
		const char *letters; // NULL: it is none
	} cases[] = {
		{"a", "a"}, {"7GQX-4TRM", "7gqx4trm"}, {" 7gqx 4trm ", "7gqx4trm"}, {"--A--", "a"},
		{LETTERS_48, LETTERS_48}, {LETTERS_48 "m", NULL},
		{LETTERS_48 HYPHENS_16, LETTERS_48}, {LETTERS_48 HYPHENS_16 "-", NULL}, {"", NULL},
		{" - ", NULL}, {"7GQX\n", NULL}, {"7GQX\t4", NULL}, {"7GQX_4TRM", NULL},
		{"<script>", NULL}, {"'--", NULL}, {"\xc3\x84", NULL}, {"a\x7f", NULL},
		{"[`{@/:", NULL}, // beside letters and digits
	};
	for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
		const char *typed = cases[i].typed, *expected = cases[i].letters;
		struct code_digest digest = {{1, 2}};
		uint32_t letters = 99;
		print_message("%s\n", typed);
		assert_int_equal(code_digest(at_guard(typed, strlen(typed)), &digest, &letters),
			expected != NULL);
		if (!expected) {
			assert_true(digest.words[0] == 1 && letters == 99);
			continue;
		}
		const struct code_digest is = reference(expected);
		assert_int_equal(letters, strlen(expected));
		assert_true(code_is_equal(&digest, &is));
	}
	struct code_digest digest;
	assert_false(code_digest(at_guard("a\0b", 3), &digest, NULL));
}

static void test_every_length(void **state)
{
	(void)state;
	for (size_t len = 1; len <= CODE_LETTERS_MAX; len++) {
		char letters[CODE_LETTERS_MAX + 1] = {0};
		struct code_digest digest;
		memcpy(letters, LETTERS_48, len);
		assert_true(code_digest(at_guard(letters, len), &digest, NULL));
		const struct code_digest is = reference(letters);
		assert_true(code_is_equal(&digest, &is));
	}
}

static void test_a_hash_in_hex(void **state)
{
	(void)state;
	// Of "abc" (FIPS 180-2, B.1).
	static const char hex[] =
		"ba7816bf8f01cfea414140de5dae2223b00361a396177a9cb410ff61f20015ad";
	struct code_digest of_hex, of_code;
	assert_true(code_digest_hex(at_guard(hex, 64), &of_hex));
	assert_true(code_digest(at_guard("A-B-C", 5), &of_code, NULL));
	assert_true(code_is_equal(&of_hex, &of_code));
	of_code.words[1] ^= 1;
	assert_false(code_is_equal(&of_hex, &of_code));
	assert_false(code_digest_hex(at_guard(hex, 63), &of_hex));
	assert_false(code_digest_hex(at_guard("ga", 2), &of_hex));
	char wrong[65];
	memset(wrong, '0', 64); // digests that are all 0 stand for none
	assert_false(code_digest_hex(at_guard(wrong, 64), &of_hex));
	wrong[63] = 'x';
	assert_false(code_digest_hex(at_guard(wrong, 64), &of_hex));
}

static void test_bodies(void **state)
{
	(void)state;
	static const struct {
		const char *body;
		bool is_json, is_found;
	} cases[] = {
		{"code=7GQX-4TRM", false, true},
		{"code=7gqx+4trm", false, true},
		{"code=%37gqx%2d4TRM", false, true},
		{"a=b&code=7GQX4TRM&c", false, true},
		{"&&code=7GQX4TRM&code=AAAA", false, true},
		{"code=AAAA&code=7GQX4TRM", false, false},
		{"code=7GQX4TR", false, false},
		{"", false, false},
		{"code", false, false},
		{"code=", false, false},
		{"code=%", false, false},
		{"code=7GQX4TRM%", false, false},
		{"code=7GQX4TRM%0", false, false},
		{"code=7GQX4TRM%0a", false, false},
		{"code=7GQX4TRM%00", false, false},
		{"Code=7GQX4TRM", false, false},
		{"{\"code\":\"7GQX-4TRM\"}", false, false},
		{"{\"code\":\"7GQX-4TRM\"}", true, true},
		{" {\t\"code\" :\r\n\"7GQX-4TRM\" } \n", true, true},
		{"{\"code\":\"7GQX-4TRM\"", true, false},
		{"{\"code\":\"7GQX-4TRM", true, false},
		{"{\"code\":\"7GQX-4TRM\"}x", true, false},
		{"{\"code\":\"7GQX-4TRM\",\"a\":1}", true, false},
		{"{\"code\":\"\\u0037GQX-4TRM\"}", true, false},
		{"{\"code\":7}", true, false},
		{"{", true, false},
		{"", true, false},
		{"code=7GQX-4TRM", true, false},
	};
	const struct code_digest good = reference("7gqx4trm");
	for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
		const char *body = cases[i].body;
		struct code_digest digest;
		uint64_t once;
		print_message("%s\n", body);
		bool is_found = code_in_body(
			at_guard(body, strlen(body)), cases[i].is_json, &digest, &once);
		is_found = is_found && code_is_equal(&digest, &good);
		assert_int_equal(is_found, cases[i].is_found);
	}
}

static void test_the_number_of_a_page(void **state)
{
	(void)state;
	static const struct {
		const char *body;
		bool is_json;
		bool is_found;
		uint64_t once;
	} cases[] = {
		{"code=7GQX4TRM&once=00000000000000ab", false, true, 0xab},
		{"once=0123456789ABCDEF&code=7GQX4TRM", false, true, 0x0123456789abcdef},
		{"code=7GQX4TRM&once=1&once=00000000000000ab", false, true, 0},
		{"code=7GQX4TRM&once=000000000000000g", false, true, 0},
		{"code=7GQX4TRM&once=00000000000000abc", false, true, 0},
		{"code=7GQX4TRM&once=", false, true, 0},
		{"code=7GQX4TRM", false, true, 0},
		{"{\"code\":\"7GQX4TRM\",\"once\":\"00000000000000ab\"}", true, true, 0xab},
		{"{\"code\": \"7GQX4TRM\", \"once\": \"x\"}", true, true, 0},
		{"{\"code\":\"7GQX4TRM\",\"once\":\"00\",\"a\":1}", true, false, 0},
		{"{\"code\":\"7GQX4TRM\",\"once\":7}", true, false, 0},
		{"{\"code\":\"7GQX4TRM\",}", true, false, 0},
	};
	for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
		const char *body = cases[i].body;
		struct code_digest digest;
		uint64_t once = 7;
		print_message("%s\n", body);
		assert_int_equal(code_in_body(at_guard(body, strlen(body)), cases[i].is_json,
					 &digest, &once),
			cases[i].is_found);
		assert_true(once == cases[i].once);
	}
}

// A head of a POST, and what has come behind it.
static enum code_outcome outcome_of(const char *fields, size_t body_bytes, bool *is_whole)
{
	static const struct http_limits limits = {1024, 4096, 20};
	static struct http_head head;
	static struct gate_request request;
	char text[512], body[CODE_BODY_BYTES_MAX + 8];
	uint32_t scanned = 0;
	snprintf(text, sizeof(text), "POST /.sluice/derby/code HTTP/1.1\r\nHost: a\r\n%s\r\n",
		fields);
	assert_int_equal(
		http_request_read((struct span){text, strlen(text)}, &limits, &scanned, &head),
		HTTP_OK);
	assert_true(body_bytes <= sizeof(body));
	memset(body, '&', sizeof(body));
	memcpy(body, "code=7GQX4TRM&", 14);
	memset(&request, 0, sizeof(request));
	request.has_body = true;
	*is_whole = code_read(&head, at_guard(body, body_bytes), &request);
	if (*is_whole && request.code_outcome != CODE_long &&
		request.code_outcome != CODE_unsized) {
		assert_int_equal(request.body_bytes, head.content_length);
		assert_false(request.has_body);
	}
	return (enum code_outcome)request.code_outcome;
}

static void test_how_bodies_come(void **state)
{
	(void)state;
	static const struct {
		const char *fields;
		size_t came;
		enum code_outcome outcome; // CODE_OUTCOME_COUNT: more must come
	} cases[] = {
		{"", 0, CODE_invalid},
		{"Content-Length: 0\r\n", 0, CODE_invalid},
		{"Content-Length: 13\r\n", 0, CODE_OUTCOME_COUNT},
		{"Content-Length: 13\r\n", 12, CODE_OUTCOME_COUNT},
		{"Content-Length: 13\r\n", 13, CODE_asked},
		{"Content-Length: 13\r\n", 20, CODE_asked},
		{"Content-Length: 1024\r\n", 1023, CODE_OUTCOME_COUNT},
		{"Content-Length: 1024\r\n", 1024, CODE_asked},
		{"Content-Length: 1025\r\n", 0, CODE_long},
		{"Content-Length: 18446744073709551615\r\n", 0, CODE_long},
		{"Transfer-Encoding: chunked\r\n", 5, CODE_unsized},
		{"Content-Length: 13\r\nContent-Type: text/plain\r\n", 13, CODE_asked},
		{"Content-Length: 13\r\nContent-Type: application/json\r\n", 13, CODE_invalid},
		{"Content-Length: 13\r\nContent-Type: Application/JSON; charset=utf-8\r\n", 13,
			CODE_invalid},
		{"Content-Length: 13\r\nContent-Type: application/jsonl\r\n", 13, CODE_asked},
	};
	for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
		bool is_whole;
		print_message("%s\n", cases[i].fields);
		const enum code_outcome is = outcome_of(cases[i].fields, cases[i].came, &is_whole);
		assert_int_equal(is_whole, cases[i].outcome != CODE_OUTCOME_COUNT);
		if (is_whole)
			assert_int_equal(is, cases[i].outcome);
	}
}

int main(void)
{
	guard = guard_make();
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_the_number_of_a_page),
		cmocka_unit_test(test_what_is_a_code),
		cmocka_unit_test(test_every_length),
		cmocka_unit_test(test_a_hash_in_hex),
		cmocka_unit_test(test_bodies),
		cmocka_unit_test(test_how_bodies_come),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
