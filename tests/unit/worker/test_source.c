// Connections per source, against a naive twin, and what counts as one source.

#include "dataplane/source.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#define CONNECTIONS 64u
#define LIMIT 3u

static struct source_table *make(void)
{
	struct source_table *table = source_create(CONNECTIONS, LIMIT, 42);
	assert_non_null(table);
	return table;
}

static void ipv4(uint8_t ip[16], uint8_t last)
{
	const uint8_t mapped[16] = {[10] = 0xff, 0xff, 192, 0, 2, 0};
	memcpy(ip, mapped, 16);
	ip[15] = last;
}

static void ipv6(uint8_t ip[16], uint8_t seventh, uint8_t eighth)
{
	const uint8_t prefix[16] = {0x20, 0x01, 0x0d, 0xb8};
	memcpy(ip, prefix, 16);
	ip[6] = seventh;
	ip[7] = eighth;
}

static void test_limit_and_one_beyond(void **state)
{
	(void)state;
	struct source_table *table = make();
	uint8_t ip[16], other[16];
	ipv4(ip, 1);
	ipv4(other, 2);
	for (unsigned i = 0; i < LIMIT; i++)
		assert_true(source_take(table, ip));
	assert_false(source_take(table, ip));
	assert_true(source_take(table, other));
	source_give(table, ip);
	assert_true(source_take(table, ip));
	assert_false(source_take(table, ip));
	source_destroy(table);
}

static void test_an_ipv6_56_is_one_source(void **state)
{
	(void)state;
	struct source_table *table = make();
	uint8_t ip[16];
	for (unsigned i = 0; i < LIMIT; i++) {
		ipv6(ip, 1, (uint8_t)(i * 7)); // same /56, other /64
		assert_true(source_take(table, ip));
	}
	ipv6(ip, 1, 99);
	assert_false(source_take(table, ip));
	ipv6(ip, 2, 99); // next /56
	assert_true(source_take(table, ip));
	source_destroy(table);
}

static void test_twin(void **state)
{
	(void)state;
	struct source_table *table = make();
	unsigned counts[CONNECTIONS] = {0}, total = 0;
	unsigned seed = 20261202;
	print_message("seed %u\n", seed);
	srand(seed);
	for (int round = 0; round < 100000; round++) {
		unsigned i = (unsigned)rand() % CONNECTIONS;
		uint8_t ip[16];
		ipv4(ip, (uint8_t)i);
		if (rand() % 2 && counts[i] > 0) {
			source_give(table, ip);
			counts[i]--;
			total--;
		} else if (total < CONNECTIONS) {
			bool taken = source_take(table, ip);
			assert_int_equal(taken, counts[i] < LIMIT);
			counts[i] += taken;
			total += taken;
		}
	}
	source_destroy(table);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_limit_and_one_beyond),
		cmocka_unit_test(test_an_ipv6_56_is_one_source),
		cmocka_unit_test(test_twin),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
