// A batch as it goes over the wire, and the file of a password.

#include "controlplane/link/link_password.h"
#include "controlplane/link/link_wire.h"

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

#define NAME "0123456789abcdef0123456789abcdef01234567"

static void test_batches(void **state)
{
	(void)state;
	struct link_wire wire = {0};
	const char *words[] = {"key", "", "a\r\nb"};
	size_t bytes[] = {3, 0, 4};
	static const struct {
		uint32_t keys, argc;
		const char *expected;
	} table[] = {
		{0, 0, "*3\r\n$7\r\nEVALSHA\r\n$40\r\n" NAME "\r\n$1\r\n0\r\n"},
		{1, 1, "*4\r\n$7\r\nEVALSHA\r\n$40\r\n" NAME "\r\n$1\r\n1\r\n$3\r\nkey\r\n"},
		{1, 3,
			"*6\r\n$7\r\nEVALSHA\r\n$40\r\n" NAME
			"\r\n$1\r\n1\r\n$3\r\nkey\r\n$0\r\n\r\n"
			"$4\r\na\r\nb\r\n"},
		{2, 2,
			"*5\r\n$7\r\nEVALSHA\r\n$40\r\n" NAME "\r\n$1\r\n2\r\n$3\r\nkey\r\n$0\r\n"
			"\r\n"},
	};
	for (size_t i = 0; i < sizeof(table) / sizeof(table[0]); i++) {
		assert_int_equal(link_wire_set_batch(&wire, NAME, table[i].keys, table[i].argc,
					 words, bytes, 1000),
			0);
		assert_int_equal(wire.bytes, strlen(table[i].expected));
		assert_memory_equal(wire.at, table[i].expected, wire.bytes);
	}
	link_wire_fini(&wire);
}

// One byte less than the bound is taken, one more is not; nothing is left of a batch before.
static void test_bound(void **state)
{
	(void)state;
	struct link_wire wire = {0};
	static char text[5000];
	const char *words[] = {text};
	size_t most = 0;
	for (size_t bytes = 3500; bytes < 5000; bytes++) {
		int ret = link_wire_set_batch(&wire, NAME, 0, 1, words, &bytes, 4096);
		if (ret == 0)
			most = bytes;
		assert_int_equal(ret, bytes > most ? -E2BIG : 0);
		assert_int_equal(wire.bytes == 0, ret < 0);
		assert_true(wire.bytes <= 4096 && wire.bytes_max <= 4096);
	}
	assert_in_range(most, 3800, 4096);
	size_t huge = SIZE_MAX;
	assert_int_equal(link_wire_set_batch(&wire, NAME, 0, 1, words, &huge, 4096), -E2BIG);
	link_wire_fini(&wire);
}

#define A64 "aaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaa"
#define A512 A64 A64 A64 A64 A64 A64 A64 A64

static void test_passwords(void **state)
{
	(void)state;
	static const struct {
		const char *text;
		size_t bytes;
		mode_t mode;
		const char *password, *error;
	} table[] = {
		{"secret", 6, 0600, "secret", NULL},
		{"secret\n", 7, 0400, "secret", NULL},
		{" s p \r\n", 7, 0600, " s p \r", NULL},
		{A512 "\n", 513, 0600, A512, NULL},
		{A512 "a", 513, 0600, NULL, "is too long"},
		{A512 "aa\n", 515, 0600, NULL, "is too long"},
		{"", 0, 0600, NULL, "is empty"},
		{"\n", 1, 0600, NULL, "is empty"},
		{"a\nb\n", 4, 0600, NULL, "is not one line"},
		{"a\n\n", 3, 0600, NULL, "is not one line"},
		{"a\0b", 3, 0600, NULL, "is not one line"},
		{"secret", 6, 0640, NULL, "may be read by others than its owner"},
		{"secret", 6, 0604, NULL, "may be read by others than its owner"},
	};
	char path[] = "/tmp/sluice-password-XXXXXX", expected[700];
	int fd = mkstemp(path);
	assert_true(fd >= 0);
	for (size_t i = 0; i < sizeof(table) / sizeof(table[0]); i++) {
		char password[LINK_PASSWORD_BYTES_MAX + 1] = "before";
		assert_int_equal(ftruncate(fd, 0), 0);
		assert_int_equal(pwrite(fd, table[i].text, table[i].bytes, 0), table[i].bytes);
		assert_int_equal(fchmod(fd, table[i].mode), 0);
		const char *error = link_password_read(path, password);
		assert_int_equal(error != NULL, table[i].error != NULL);
		assert_string_equal(password, table[i].password ? table[i].password : "");
		snprintf(expected, sizeof(expected), "%s: %s", path, table[i].error);
		if (error)
			assert_string_equal(error, expected);
		assert_int_equal(link_password_error(path) != NULL, table[i].error != NULL);
	}
	close(fd);
	unlink(path);
	assert_non_null(strstr(link_password_error(path), "No such file"));
	assert_non_null(strstr(link_password_error("/tmp"), "is no file"));
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_batches),
		cmocka_unit_test(test_bound),
		cmocka_unit_test(test_passwords),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
