// SYNs of one source in a second.

#include "dataplane/net/tcp/sources.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>

#include <cmocka.h>

#define LIMIT 3u

static struct sources *sources;

static int make(void **state)
{
	(void)state;
	sources = sources_create(7);
	return sources == NULL;
}

static int drop(void **state)
{
	(void)state;
	sources_destroy(sources);
	return 0;
}

static bool take(uint8_t a, uint8_t b, uint8_t c, uint8_t d, uint32_t now_ms)
{
	const uint8_t ip[16] = {[10] = 0xff, [11] = 0xff, [12] = a, b, c, d};
	return sources_take(sources, ip, LIMIT, now_ms);
}

static bool take_v6(uint8_t seventh, uint8_t eighth, uint32_t now_ms)
{
	const uint8_t ip[16] = {0x20, 1, 0xd, 0xb8, 0, 0, seventh, eighth, [15] = 1};
	return sources_take(sources, ip, LIMIT, now_ms);
}

static void test_at_the_limit_and_one_beyond(void **state)
{
	(void)state;
	for (unsigned i = 0; i < LIMIT; i++)
		assert_true(take(192, 0, 2, 1, 5000));
	assert_false(take(192, 0, 2, 1, 5999));
	assert_false(take(192, 0, 2, 200, 5999)); // the /24 counts
	assert_true(take(192, 0, 3, 1, 5999)); // another has its own
	assert_true(take(192, 0, 2, 1, 6000)); // in the next second
}

static void test_v6_by_56(void **state)
{
	(void)state;
	for (unsigned i = 0; i < LIMIT; i++)
		assert_true(take_v6(1, (uint8_t)i, 5000));
	assert_false(take_v6(1, 99, 5000));
	assert_true(take_v6(2, 0, 5000));
}

static void test_no_limit(void **state)
{
	(void)state;
	const uint8_t ip[16] = {0};
	for (unsigned i = 0; i < 100000; i++)
		assert_true(sources_take(sources, ip, 0, 5000));
}

// More sources than there are places: those that send most stay limited.
static void test_a_flood_does_not_hide_the_loud(void **state)
{
	(void)state;
	for (unsigned i = 0; i < LIMIT; i++)
		take(10, 0, 0, 1, 5000);
	for (unsigned i = 0; i < 60000; i++)
		assert_true(take(11, (uint8_t)(i >> 8), (uint8_t)i, 1, 5000) || i > 100);
	assert_false(take(10, 0, 0, 1, 5000));
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test_setup_teardown(test_at_the_limit_and_one_beyond, make, drop),
		cmocka_unit_test_setup_teardown(test_v6_by_56, make, drop),
		cmocka_unit_test_setup_teardown(test_no_limit, make, drop),
		cmocka_unit_test_setup_teardown(test_a_flood_does_not_hide_the_loud, make, drop),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
