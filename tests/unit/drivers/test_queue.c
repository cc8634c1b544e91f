// Send queues against a naive twin: one flat array a queue.

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>

#include <cmocka.h>

#include "drivers/sockets/queue.h"

#define QUEUES 5
#define BUFFERS 8
#define BUFFER_BYTES 16
#define STEPS 20000

struct twin {
	char bytes[BUFFERS * BUFFER_BYTES];
	size_t count;
};

static void assert_same(
	const struct queue_pool *pool, const struct queue *queue, const struct twin *twin)
{
	struct iovec parts[BUFFERS];
	unsigned count = queue_parts(pool, queue, parts, BUFFERS);
	size_t at = 0;
	for (unsigned i = 0; i < count; i++) {
		assert_true(parts[i].iov_len > 0);
		assert_memory_equal(parts[i].iov_base, twin->bytes + at, parts[i].iov_len);
		at += parts[i].iov_len;
	}
	assert_int_equal(at, twin->count);
	assert_int_equal(queue->bytes, twin->count);
	assert_int_equal(queue_is_empty(queue), twin->count == 0);
	assert_int_equal(queue_front(pool, queue).len, count ? parts[0].iov_len : 0);
}

static void push(struct queue_pool *pool, struct queue *queue, struct twin *twin)
{
	char bytes[3 * BUFFER_BYTES];
	size_t len = (size_t)rand() % sizeof(bytes);
	for (size_t i = 0; i < len; i++)
		bytes[i] = (char)rand();
	size_t taken = queue_push(pool, queue, (struct span){bytes, len});
	assert_true(taken == len || pool->free_count == 0);
	memcpy(twin->bytes + twin->count, bytes, taken);
	twin->count += taken;
}

static void pop(struct queue_pool *pool, struct queue *queue, struct twin *twin)
{
	size_t len = rand() % 4 ? (size_t)rand() % (twin->count + 1) : twin->count;
	queue_pop(pool, queue, len);
	twin->count -= len;
	memmove(twin->bytes, twin->bytes + len, twin->count);
}

static void queues_equal_their_twins(void **state)
{
	(void)state;
	const char *given = getenv("SEED");
	unsigned seed = given ? (unsigned)strtoul(given, NULL, 10) : 1;
	print_message("SEED=%u\n", seed);
	srand(seed);
	struct queue_pool pool;
	struct queue queues[QUEUES] = {0};
	static struct twin twins[QUEUES];
	assert_int_equal(queue_pool_init(&pool, BUFFERS, BUFFER_BYTES), 0);
	for (int step = 0; step < STEPS; step++) {
		int i = rand() % QUEUES;
		(rand() % 2 ? push : pop)(&pool, &queues[i], &twins[i]);
		assert_same(&pool, &queues[i], &twins[i]);
	}
	for (int i = 0; i < QUEUES; i++)
		queue_pop(&pool, &queues[i], queues[i].bytes);
	assert_int_equal(pool.free_count, BUFFERS);
	queue_pool_fini(&pool);
}

static void a_full_pool_takes_what_fits(void **state)
{
	(void)state;
	struct queue_pool pool;
	struct queue queue = {0}, other = {0};
	char bytes[BUFFERS * BUFFER_BYTES + 1] = {0};
	assert_int_equal(queue_pool_init(&pool, BUFFERS, BUFFER_BYTES), 0);
	assert_int_equal(
		queue_push(&pool, &queue, (struct span){bytes, sizeof(bytes)}), sizeof(bytes) - 1);
	assert_int_equal(queue_push(&pool, &other, SPAN("x")), 0);
	assert_true(queue_is_empty(&other));
	queue_pop(&pool, &queue, BUFFER_BYTES);
	assert_int_equal(queue_push(&pool, &other, SPAN("x")), 1);
	queue_pool_fini(&pool);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(queues_equal_their_twins),
		cmocka_unit_test(a_full_pool_takes_what_fits),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
