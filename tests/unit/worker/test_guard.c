// The guard against guessing, against a naive twin; what it does when a bucket is full, and when
// threads count at once.

#include "dataplane/guard.h"

#include <pthread.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdatomic.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#define LIMIT 3u
#define SOURCES 200u
#define NOW (1764583200u / 60 * 60) // the beginning of a minute

static struct guard *guard;

static int begin(void **state)
{
	(void)state;
	guard = guard_init(aligned_alloc(64, guard_bytes()), 42);
	return 0;
}

static int end(void **state)
{
	(void)state;
	free(guard);
	return 0;
}

static const uint8_t *ipv4(uint32_t number)
{
	static _Thread_local uint8_t ip[16];
	const uint8_t mapped[16] = {[10] = 0xff, 0xff};
	memcpy(ip, mapped, 12);
	memcpy(ip + 12, &number, 4);
	return ip;
}

static void test_limit_and_one_beyond(void **state)
{
	(void)state;
	for (unsigned i = 0; i < LIMIT; i++)
		assert_true(guard_take(guard, ipv4(1), LIMIT, NOW + i));
	assert_false(guard_take(guard, ipv4(1), LIMIT, NOW + 59));
	assert_true(guard_take(guard, ipv4(2), LIMIT, NOW + 59));
	guard_give(guard, ipv4(1), NOW + 59);
	assert_true(guard_take(guard, ipv4(1), LIMIT, NOW + 59));
	assert_false(guard_take(guard, ipv4(1), LIMIT, NOW + 59));
	assert_true(guard_take(guard, ipv4(1), LIMIT, NOW + 60)); // the next minute
	guard_give(guard, ipv4(2), NOW + 60); // was counted in another one
	for (unsigned i = 0; i < LIMIT; i++)
		assert_true(guard_take(guard, ipv4(2), LIMIT, NOW + 60));
	assert_false(guard_take(guard, ipv4(2), LIMIT, NOW + 60));
}

static void test_the_largest_limit(void **state)
{
	(void)state;
	for (unsigned i = 0; i < GUARD_LIMIT_MAX; i++)
		assert_true(guard_take(guard, ipv4(1), GUARD_LIMIT_MAX, NOW));
	assert_false(guard_take(guard, ipv4(1), GUARD_LIMIT_MAX, NOW));
	assert_true(guard_take(guard, ipv4(2), 1, NOW));
}

static void test_an_ipv6_56_is_one_source(void **state)
{
	(void)state;
	uint8_t ip[16] = {0x20, 0x01, 0x0d, 0xb8, [6] = 1};
	for (unsigned i = 0; i < LIMIT; i++) {
		ip[7] = ip[15] = (uint8_t)(7 * i);
		assert_true(guard_take(guard, ip, LIMIT, NOW));
	}
	ip[7] = 99;
	assert_false(guard_take(guard, ip, LIMIT, NOW));
	ip[6] = 2;
	assert_true(guard_take(guard, ip, LIMIT, NOW));
}

static void test_twin(void **state)
{
	(void)state;
	unsigned counts[SOURCES] = {0}, minute = 0, seed = 20261130;
	print_message("seed %u\n", seed);
	srand(seed);
	for (int round = 0; round < 200000; round++) {
		const unsigned i = (unsigned)rand() % SOURCES;
		const uint32_t now = NOW + 60 * minute + (unsigned)rand() % 60;
		if (rand() % 2000 == 0) {
			minute++;
			memset(counts, 0, sizeof(counts));
		} else if (rand() % 3 == 0) {
			guard_give(guard, ipv4(i), now);
			counts[i] -= counts[i] > 0;
		} else {
			assert_int_equal(guard_take(guard, ipv4(i), LIMIT, now), counts[i] < LIMIT);
			counts[i] += counts[i] < LIMIT;
		}
	}
}

// More sources than the guard has words: some are counted too much, none too little.
static void test_full(void **state)
{
	(void)state;
	const uint32_t sources = 4 * GUARD_BUCKETS * 8;
	uint32_t first = 0, second = 0, over = 0;
	for (uint32_t i = 0; i < sources; i++)
		first += guard_take(guard, ipv4(i), LIMIT, NOW);
	for (uint32_t i = 0; i < sources; i++)
		second += guard_take(guard, ipv4(i), LIMIT, NOW);
	assert_in_range(first, GUARD_BUCKETS * 8, GUARD_BUCKETS * 8 * LIMIT);
	assert_true(second < first);
	for (uint32_t i = 0; i < sources; i++)
		over += guard_take(guard, ipv4(i), LIMIT, NOW);
	assert_int_equal(over, 0);
}

#define THREADS 4
#define EACH 2000u

static _Atomic uint32_t taken;

static void *take_many(void *unused)
{
	for (unsigned i = 0; i < EACH; i++)
		taken += guard_take(guard, ipv4(5), EACH, NOW);
	return unused;
}

static void test_threads_share_one_allowance(void **state)
{
	(void)state;
	pthread_t threads[THREADS];
	for (int i = 0; i < THREADS; i++)
		assert_int_equal(pthread_create(&threads[i], NULL, take_many, NULL), 0);
	for (int i = 0; i < THREADS; i++)
		pthread_join(threads[i], NULL);
	assert_in_range(taken, 1, EACH);
	while (guard_take(guard, ipv4(5), EACH, NOW))
		taken++;
	assert_int_equal(taken, EACH);
}

#define STORY(story) cmocka_unit_test_setup_teardown(story, begin, end)

int main(void)
{
	const struct CMUnitTest tests[] = {
		STORY(test_limit_and_one_beyond),
		STORY(test_the_largest_limit),
		STORY(test_an_ipv6_56_is_one_source),
		STORY(test_twin),
		STORY(test_full),
		STORY(test_threads_share_one_allowance),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
