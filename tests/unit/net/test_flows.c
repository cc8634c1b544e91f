// The flow table against a naive twin: a list of what is in it.

#include "dataplane/net/tcp/flows.h"

#include "tests/unit/http/dice.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <string.h>

#include <cmocka.h>

#define FLOWS 200u

static bool has(const struct tcp_flows *flows, uint64_t hash, uint32_t index)
{
	uint32_t at = 0, found, steps = 0;
	while (flows_next(flows, hash, &at, &found)) {
		assert_true(++steps <= FLOWS);
		if (found == index)
			return true;
	}
	return false;
}

// Hashes from few buckets and few tags, so that buckets overflow and tags collide.
static uint64_t crowded_hash(void)
{
	return (uint64_t)dice(3) << 48 | dice(4);
}

static void test_like_its_twin(void **state)
{
	(void)state;
	static uint64_t twin[FLOWS];
	static bool is_in[FLOWS];
	struct tcp_flows *flows = flows_create(FLOWS, 1);
	for (unsigned step = 0; step < 20000; step++) {
		uint32_t index = dice(FLOWS);
		if (is_in[index]) {
			flows_remove(flows, twin[index], index);
		} else {
			twin[index] = step % 4000 < 2000 ? crowded_hash()
							 : (uint64_t)dice(~0u) << 32 | dice(~0u);
			flows_add(flows, twin[index], index);
		}
		is_in[index] = !is_in[index];
		uint32_t other = dice(FLOWS);
		assert_true(has(flows, twin[other], other) == is_in[other]);
	}
	for (uint32_t i = 0; i < FLOWS; i++)
		assert_true(has(flows, twin[i], i) == is_in[i]);
	flows_destroy(flows);
}

static void test_full_to_its_most(void **state)
{
	(void)state;
	struct tcp_flows *flows = flows_create(FLOWS, 1);
	for (uint32_t i = 0; i < FLOWS; i++) // all of one bucket
		flows_add(flows, 5, i);
	for (uint32_t i = 0; i < FLOWS; i++)
		assert_true(has(flows, 5, i));
	for (uint32_t i = 0; i < FLOWS; i++)
		flows_remove(flows, 5, i);
	uint32_t at = 0, index;
	assert_false(flows_next(flows, 5, &at, &index));
	flows_destroy(flows);
}

static void test_hash_is_keyed_and_of_all(void **state)
{
	(void)state;
	struct tcp_flows *one = flows_create(8, 1), *other = flows_create(8, 2);
	struct stream_address local = {.ip = {[15] = 1}, .port = 80},
			      peer = {.ip = {[15] = 2}, .port = 4000};
	uint64_t hash = flows_hash(one, &local, &peer);
	assert_true(hash == flows_hash(one, &local, &peer));
	assert_true(hash != flows_hash(other, &local, &peer));
	uint8_t *const changed[] = {&local.ip[15], &local.ip[8], &peer.ip[0], &peer.ip[15],
		(uint8_t *)&local.port, (uint8_t *)&peer.port};
	for (size_t i = 0; i < sizeof(changed) / sizeof(changed[0]); i++) {
		*changed[i] ^= 1;
		assert_true(hash != flows_hash(one, &local, &peer));
		*changed[i] ^= 1;
	}
	flows_destroy(one);
	flows_destroy(other);
}

static void test_size(void **state)
{
	(void)state;
	// At most three quarters full: 6 of 8 places a bucket, buckets a power of two.
	assert_true(flows_bytes(6) < flows_bytes(7));
	assert_true(flows_bytes(12) == flows_bytes(7));
	assert_true(flows_bytes(1000000) <= 64u * (1u << 18) + 64);
}

int main(void)
{
	dice_begin();
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_like_its_twin),
		cmocka_unit_test(test_full_to_its_most),
		cmocka_unit_test(test_hash_is_keyed_and_of_all),
		cmocka_unit_test(test_size),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
