// The pool hands out each buffer once, says when it is empty, and takes the last one back first.

#include "dataplane/buffers.h"

#include <setjmp.h>
#include <stdarg.h>
#include <string.h>

#include <cmocka.h>

#define COUNT 5u
#define BYTES 4096u

static void test_empty_at_the_limit(void **state)
{
	(void)state;
	struct buffers *buffers;
	assert_int_equal(buffers_create(COUNT, BYTES, &buffers), 0);
	char *taken[COUNT];
	for (unsigned i = 0; i < COUNT; i++) {
		taken[i] = buffers_take(buffers);
		assert_non_null(taken[i]);
		memset(taken[i], (int)i, BYTES);
	}
	assert_null(buffers_take(buffers));
	assert_int_equal(buffers_taken(buffers), COUNT);
	for (unsigned i = 0; i < COUNT; i++)
		assert_int_equal(taken[i][BYTES - 1], i); // nobody wrote over another's
	buffers_give(buffers, taken[2]);
	assert_ptr_equal(buffers_take(buffers), taken[2]);
	buffers_destroy(buffers);
}

int main(void)
{
	const struct CMUnitTest tests[] = {cmocka_unit_test(test_empty_at_the_limit)};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
