// Against the vectors of the paper (appendix A) and of its authors' reference code.

#include "dataplane/net/tcp/siphash.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <string.h>

#include <cmocka.h>

// The key 00 01 ... 0f.
static const struct siphash_key key = {UINT64_C(0x0706050403020100), UINT64_C(0x0f0e0d0c0b0a0908)};

// Of 00 01 02 ..., by length: the authors' vectors_sip64, read as little-endian numbers.
static const struct {
	size_t len;
	uint64_t hash;
} vectors[] = {
	{0, UINT64_C(0x726fdb47dd0e0e31)}, {1, UINT64_C(0x74f839c593dc67fd)},
	{7, UINT64_C(0xab0200f58b01d137)}, {8, UINT64_C(0x93f5f5799a932462)},
	{15, UINT64_C(0xa129ca6149be45e5)}, // the paper's own
};

static void test_vectors(void **state)
{
	(void)state;
	uint8_t bytes[16];
	for (unsigned i = 0; i < sizeof(bytes); i++)
		bytes[i] = (uint8_t)i;
	for (size_t i = 0; i < sizeof(vectors) / sizeof(vectors[0]); i++)
		assert_true(siphash(key, bytes, vectors[i].len) == vectors[i].hash);
}

// The first of the authors' vectors with one round and three.
static void test_fewer_rounds(void **state)
{
	(void)state;
	assert_true(siphash_words_13(key, NULL, 0) == UINT64_C(0xabac0158050fc4dc));
	const uint64_t words[] = {1, 2};
	assert_true(siphash_words_13(key, words, 1) != siphash_words_13(key, words, 2));
}

static void test_words_are_their_bytes(void **state)
{
	(void)state;
	const uint64_t words[] = {1, UINT64_C(0x0123456789abcdef), UINT64_MAX, 0, 5};
	for (unsigned count = 0; count <= 5; count++)
		assert_true(siphash_words(key, words, count) == siphash(key, words, count * 8));
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_vectors),
		cmocka_unit_test(test_fewer_rounds),
		cmocka_unit_test(test_words_are_their_bytes),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
