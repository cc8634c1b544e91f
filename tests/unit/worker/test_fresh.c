// Tables of zeroes take memory where they are touched, and nowhere else.

#include "dataplane/fresh.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include <cmocka.h>

#define BYTES ((size_t)64 << 20)
#define TOUCHED ((size_t)16 << 20)

static size_t resident_bytes(void)
{
	unsigned long all, resident = 0;
	FILE *file = fopen("/proc/self/statm", "r");
	assert_non_null(file);
	assert_int_equal(fscanf(file, "%lu %lu", &all, &resident), 2);
	fclose(file);
	return resident * (size_t)sysconf(_SC_PAGESIZE);
}

static void test_only_what_is_touched(void **state)
{
	(void)state;
	size_t before = resident_bytes();
	char *table = fresh_map(BYTES);
	assert_non_null(table);
	assert_int_equal((uintptr_t)table % 64, 0);
	assert_true(resident_bytes() < before + TOUCHED / 2);
	assert_int_equal(table[0], 0);
	assert_int_equal(table[BYTES - 1], 0);
	memset(table, 1, TOUCHED);
	size_t now = resident_bytes();
	assert_true(now > before + TOUCHED / 2 && now < before + 2 * TOUCHED);
	fresh_unmap(table, BYTES);
	assert_true(resident_bytes() < before + TOUCHED / 2);
	fresh_unmap(NULL, BYTES);
}

int main(void)
{
	const struct CMUnitTest tests[] = {cmocka_unit_test(test_only_what_is_touched)};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
