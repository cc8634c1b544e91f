// The pool hands out each buffer once, says when it is empty, and takes the last one back first.

#include "dataplane/buffers.h"

#include <setjmp.h>
#include <stdarg.h>
#include <string.h>

#include <cmocka.h>

#define COUNT 5u
#define BYTES 4093u // each begins aligned all the same

static void test_empty_at_the_limit(void **state)
{
	(void)state;
	struct buffers *buffers;
	assert_int_equal(buffers_create(COUNT, BYTES, &buffers), 0);
	uint32_t taken[COUNT];
	for (unsigned i = 0; i < COUNT; i++) {
		taken[i] = buffers_take(buffers);
		assert_int_not_equal(taken[i], 0);
		assert_int_equal((uintptr_t)buffers_at(buffers, taken[i]) % 8, 0);
		memset(buffers_at(buffers, taken[i]), (int)i, BYTES);
	}
	assert_int_equal(buffers_take(buffers), 0);
	assert_int_equal(buffers_taken(buffers), COUNT);
	for (unsigned i = 0; i < COUNT; i++) // nobody wrote over another's
		assert_int_equal(buffers_at(buffers, taken[i])[BYTES - 1], i);
	buffers_give(buffers, taken[2]);
	assert_int_equal(buffers_take(buffers), taken[2]);
	buffers_destroy(buffers);
}

int main(void)
{
	const struct CMUnitTest tests[] = {cmocka_unit_test(test_empty_at_the_limit)};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
