// Queues of chunks against a naive twin: a flat array of bytes.

#include "dataplane/net/tcp/chunks.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#define COUNT 16u
#define BYTES 64u

static struct tcp_chunks pool;

static int start(void **state)
{
	(void)state;
	return chunks_init(&pool, COUNT, BYTES);
}

static int end(void **state)
{
	(void)state;
	assert_int_equal(pool.free_count, COUNT);
	chunks_fini(&pool);
	return 0;
}

static void test_takes_what_the_pool_has(void **state)
{
	(void)state;
	static char bytes[COUNT * BYTES + 1];
	struct tcp_queue queue = {0};
	assert_int_equal(chunks_push(&pool, &queue, (struct span){bytes, sizeof(bytes) - 1}),
		sizeof(bytes) - 1);
	assert_int_equal(pool.free_count, 0);
	assert_int_equal(chunks_push(&pool, &queue, (struct span){bytes, 1}), 0);
	chunks_drop(&pool, &queue, BYTES - 1);
	assert_int_equal(pool.free_count, 0);
	chunks_drop(&pool, &queue, 1);
	assert_int_equal(pool.free_count, 1);
	assert_int_equal(chunks_push(&pool, &queue, (struct span){bytes, sizeof(bytes)}), BYTES);
	chunks_drop(&pool, &queue, queue.bytes);
	assert_int_equal(queue.first, 0);
}

static void test_small_pieces_share_a_chunk(void **state)
{
	(void)state;
	struct tcp_queue queue = {0};
	for (unsigned i = 0; i < BYTES; i++)
		assert_int_equal(chunks_push(&pool, &queue, SPAN("x")), 1);
	assert_int_equal(pool.free_count, COUNT - 1);
	chunks_drop(&pool, &queue, queue.bytes);
}

static void test_ends_where_parts_end(void **state)
{
	(void)state;
	static const char bytes[4 * BYTES];
	struct tcp_queue queue = {0};
	struct span parts[2];
	assert_int_equal(chunks_push(&pool, &queue, (struct span){bytes, 4 * BYTES}), 4 * BYTES);
	assert_int_equal(chunks_at(&pool, &queue, 1, 3 * BYTES, parts, 2), 2);
	assert_int_equal(parts[0].len + parts[1].len, 2 * BYTES - 1);
	chunks_drop(&pool, &queue, queue.bytes);
}

struct twin {
	struct tcp_queue queue;
	unsigned char bytes[COUNT * BYTES * 64];
	uint32_t count;
};

static void push_both(struct twin *twin)
{
	static unsigned char source[200];
	const uint32_t len = 1 + (uint32_t)rand() % (rand() % 3 ? 20 : 200);
	for (uint32_t i = 0; i < len; i++)
		source[i] = (unsigned char)rand();
	const size_t taken = chunks_push(&pool, &twin->queue, (struct span){(char *)source, len});
	assert_true(taken == len || pool.free_count == 0);
	memcpy(twin->bytes + twin->count, source, taken);
	twin->count += (uint32_t)taken;
}

static void look_at_both(struct twin *twin)
{
	if (twin->count == 0)
		return;
	const uint32_t offset = (uint32_t)rand() % twin->count;
	const uint32_t len = 1 + (uint32_t)rand() % (twin->count - offset);
	struct span parts[8];
	const unsigned count = chunks_at(&pool, &twin->queue, offset, len, parts, 8);
	uint32_t at = offset;
	for (unsigned i = 0; i < count; i++) {
		assert_memory_equal(parts[i].at, twin->bytes + at, parts[i].len);
		at += (uint32_t)parts[i].len;
	}
	assert_true(at == offset + len || count == 8);
}

static void drop_both(struct twin *twin)
{
	uint32_t bytes = (uint32_t)rand() % (twin->count + 1);
	if (rand() % 2)
		bytes /= 4;
	chunks_drop(&pool, &twin->queue, bytes);
	twin->count -= bytes;
	memmove(twin->bytes, twin->bytes + bytes, twin->count);
}

static void test_as_its_twin(void **state)
{
	(void)state;
	const unsigned seed = 7;
	printf("seed %u\n", seed);
	srand(seed);
	static struct twin twins[2];
	for (unsigned step = 0; step < 20000; step++) {
		struct twin *twin = &twins[rand() % 2];
		switch (rand() % 8) {
		case 0:
		case 1:
		case 2:
			push_both(twin);
			break;
		case 3:
			drop_both(twin);
			break;
		case 4:
			if (twins[0].count + twins[1].count > sizeof(twin->bytes) || rand() % 8)
				break;
			chunks_join(&pool, &twins[0].queue, &twins[1].queue);
			memcpy(twins[0].bytes + twins[0].count, twins[1].bytes, twins[1].count);
			twins[0].count += twins[1].count;
			twins[1].count = 0;
			break;
		default:
			look_at_both(twin);
		}
		for (unsigned i = 0; i < 2; i++)
			assert_int_equal(twins[i].queue.bytes, twins[i].count);
	}
	for (unsigned i = 0; i < 2; i++)
		chunks_drop(&pool, &twins[i].queue, twins[i].queue.bytes);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test_setup_teardown(test_takes_what_the_pool_has, start, end),
		cmocka_unit_test_setup_teardown(test_small_pieces_share_a_chunk, start, end),
		cmocka_unit_test_setup_teardown(test_ends_where_parts_end, start, end),
		cmocka_unit_test_setup_teardown(test_as_its_twin, start, end),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
