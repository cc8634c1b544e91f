// Seals: a known answer, every bit that can be turned, every place a record can be put, and files
// of keys.

#include "controlplane/store/seal.h"

#include <errno.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cmocka.h>

#define DIGITS_0_TO_31 "000102030405060708090a0b0c0d0e0f101112131415161718191a1b1c1d1e1f"
#define DIGITS_ONES "1111111111111111111111111111111111111111111111111111111111111111"

static char folder[] = "/tmp/sluice-seal-XXXXXX";
static char path[sizeof(folder) + 8];

static void must_write(const char *text, mode_t mode)
{
	unlink(path);
	FILE *file = fopen(path, "w");
	assert_non_null(file);
	fputs(text, file);
	fclose(file);
	assert_int_equal(chmod(path, mode), 0);
}

static struct seal *must_create(const char *digits)
{
	struct seal *seal;
	char error[SEAL_TEXT_BYTES];
	must_write(digits, 0600);
	assert_int_equal(seal_create(path, &seal, error), 0);
	return seal;
}

static void test_files(void **state)
{
	(void)state;
	static const struct {
		const char *text;
		mode_t mode;
		int ret;
		const char *error;
	} table[] = {
		{DIGITS_0_TO_31, 0600, 0, NULL},
		{DIGITS_0_TO_31 "\n", 0400, 0, NULL},
		{"000102030405060708090A0B0C0D0E0F101112131415161718191A1B1C1D1E1F", 0600, 0, NULL},
		{DIGITS_0_TO_31 "\n\n", 0600, -EINVAL, "is not 64 hex digits"},
		{DIGITS_0_TO_31 " ", 0600, -EINVAL, "is not 64 hex digits"},
		{DIGITS_0_TO_31 "\r\n", 0600, -EINVAL, "is not 64 hex digits"},
		{DIGITS_0_TO_31 "0", 0600, -EINVAL, "is not 64 hex digits"},
		{DIGITS_ONES DIGITS_ONES, 0600, -EINVAL, "is not 64 hex digits"},
		{"", 0600, -EINVAL, "is not 64 hex digits"},
		{"g00102030405060708090a0b0c0d0e0f101112131415161718191a1b1c1d1e1f", 0600, -EINVAL,
			"is not 64 hex digits"},
		{DIGITS_0_TO_31, 0640, -EPERM, "may be read by others than its owner"},
		{DIGITS_0_TO_31, 0604, -EPERM, "may be read by others than its owner"},
		{DIGITS_0_TO_31, 0620, -EPERM, "may be read by others than its owner"},
	};
	for (size_t i = 0; i < sizeof(table) / sizeof(table[0]); i++) {
		struct seal *seal = NULL;
		char error[SEAL_TEXT_BYTES], expected[SEAL_TEXT_BYTES];
		must_write(table[i].text, table[i].mode);
		assert_int_equal(seal_create(path, &seal, error), table[i].ret);
		const char *told = seal_key_error(path);
		seal_destroy(seal);
		assert_int_equal(told == NULL, table[i].error == NULL);
		if (!told)
			continue;
		snprintf(expected, sizeof(expected), "%s: %s", path, table[i].error);
		assert_string_equal(error, expected);
		assert_string_equal(told, expected);
	}
	assert_non_null(strstr(seal_key_error("/none"), "No such file"));
	assert_non_null(strstr(seal_key_error(folder), "is no file"));
}

// AES-256-GCM, key 00..1f, nonce a0..ab, AAD "secret\0" "7", plain text "a place in line", as an
// implementation of its own (python3-cryptography) has it.
static const uint8_t known[] = {0x01, 0xa0, 0xa1, 0xa2, 0xa3, 0xa4, 0xa5, 0xa6, 0xa7, 0xa8, 0xa9,
	0xaa, 0xab, 0x87, 0x38, 0x0c, 0x41, 0x24, 0xa8, 0x67, 0x9f, 0x0b, 0x0b, 0xa7, 0xbf, 0x6e,
	0x14, 0xa5, 0x57, 0x5e, 0x89, 0xf4, 0x23, 0x34, 0xe8, 0xbc, 0xef, 0xf8, 0x65, 0x47, 0xd8,
	0x2d, 0x8b, 0x42};

static void test_known_answer(void **state)
{
	(void)state;
	struct seal *seal = must_create(DIGITS_0_TO_31);
	uint8_t plain[sizeof(known) - SEAL_OVERHEAD_BYTES];
	assert_int_equal(seal_open(seal, "secret", "7", known, sizeof(known), plain), SEAL_OPEN);
	assert_int_equal(sizeof(plain), strlen("a place in line"));
	assert_memory_equal(plain, "a place in line", sizeof(plain));
	seal_destroy(seal);
}

static void test_there_and_back(void **state)
{
	(void)state;
	struct seal *seal = must_create(DIGITS_0_TO_31), *twin = must_create(DIGITS_0_TO_31 "\n");
	static const size_t sizes[] = {0, 1, 15, 16, 17, 32, SEAL_PLAIN_BYTES_MAX};
	static uint8_t plain[SEAL_PLAIN_BYTES_MAX], again[SEAL_PLAIN_BYTES_MAX];
	static uint8_t record[SEAL_PLAIN_BYTES_MAX + SEAL_OVERHEAD_BYTES + 1];
	for (size_t i = 0; i < sizeof(plain); i++)
		plain[i] = (uint8_t)(i * 7);
	for (size_t i = 0; i < sizeof(sizes) / sizeof(sizes[0]); i++) {
		size_t bytes = sizes[i] + SEAL_OVERHEAD_BYTES;
		assert_int_equal(seal_close(seal, "seed", "derby", plain, sizes[i], record), 0);
		assert_int_equal(seal_open(twin, "seed", "derby", record, bytes, again), SEAL_OPEN);
		assert_memory_equal(plain, again, sizes[i]);
	}
	assert_int_equal(seal_open(seal, "seed", "derby", record, sizeof(record), again),
		SEAL_SHORT); // one beyond
	seal_destroy(seal);
	seal_destroy(twin);
}

static void test_two_records_differ(void **state)
{
	(void)state;
	struct seal *seal = must_create(DIGITS_0_TO_31);
	uint8_t a[5 + SEAL_OVERHEAD_BYTES], b[sizeof(a)];
	assert_int_equal(seal_close(seal, "seed", "x", "derby", 5, a), 0);
	assert_int_equal(seal_close(seal, "seed", "x", "derby", 5, b), 0);
	assert_memory_not_equal(a + 1, b + 1, 12);
	assert_memory_not_equal(a + 13, b + 13, sizeof(a) - 13);
	seal_destroy(seal);
}

// Each bit turned, each length, another key, another place: nothing of the plain text comes out.
static void test_tampering(void **state)
{
	(void)state;
	struct seal *seal = must_create(DIGITS_0_TO_31), *other = must_create(DIGITS_ONES);
	uint8_t record[8 + SEAL_OVERHEAD_BYTES], plain[8];
	static const uint8_t nothing[8];
	assert_int_equal(seal_close(seal, "secret", "7", "eightbit", 8, record), 0);
	for (size_t bit = 0; bit < 8 * sizeof(record); bit++) {
		record[bit / 8] ^= (uint8_t)(1u << bit % 8);
		memset(plain, 0, sizeof(plain));
		assert_int_equal(seal_open(seal, "secret", "7", record, sizeof(record), plain),
			bit < 8 ? SEAL_VERSION : SEAL_WRONG);
		assert_memory_equal(plain, nothing, sizeof(plain));
		record[bit / 8] ^= (uint8_t)(1u << bit % 8);
	}
	for (size_t bytes = 0; bytes < sizeof(record); bytes++)
		assert_int_equal(seal_open(seal, "secret", "7", record, bytes, plain),
			bytes < SEAL_OVERHEAD_BYTES ? SEAL_SHORT : SEAL_WRONG);
	static const struct {
		const char *kind, *id;
	} places[] = {{"secret", "8"}, {"secret7", ""}, {"secre", "t7"}, {"", "7"}, {"seed", "7"}};
	for (size_t i = 0; i < sizeof(places) / sizeof(places[0]); i++)
		assert_int_equal(seal_open(seal, places[i].kind, places[i].id, record,
					 sizeof(record), plain),
			SEAL_WRONG);
	assert_int_equal(
		seal_open(other, "secret", "7", record, sizeof(record), plain), SEAL_WRONG);
	assert_int_equal(seal_open(seal, "secret", "7", record, sizeof(record), plain), SEAL_OPEN);
	for (int result = SEAL_OPEN; result <= SEAL_FAILED; result++)
		assert_true(strlen(seal_result_text(result)) > 5);
	seal_destroy(seal);
	seal_destroy(other);
}

static int make_folder(void **state)
{
	(void)state;
	if (!mkdtemp(folder))
		return -1;
	snprintf(path, sizeof(path), "%s/key", folder);
	return 0;
}

static int remove_folder(void **state)
{
	(void)state;
	unlink(path);
	return rmdir(folder);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_files),
		cmocka_unit_test(test_known_answer),
		cmocka_unit_test(test_there_and_back),
		cmocka_unit_test(test_two_records_differ),
		cmocka_unit_test(test_tampering),
	};
	return cmocka_run_group_tests(tests, make_folder, remove_folder);
}
