// The set of ended sessions: limits, a naive twin under random operations, and readers beside the
// writer (run it with -Db_sanitize=thread too).

#include "dataplane/gate/ended.h"

#include <pthread.h>
#include <stdarg.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <time.h>

#include <setjmp.h>

#include <cmocka.h>

static uint64_t random_state;

// xorshift64*: any will do, as long as the seed replays it.
static uint64_t random_next(void)
{
	random_state ^= random_state >> 12;
	random_state ^= random_state << 25;
	random_state ^= random_state >> 27;
	return random_state * 0x2545f4914f6cdd1d;
}

// An id, random in all its bits; never 0.
static uint64_t random_id(void)
{
	uint64_t id = random_next();
	return id ? id : 1;
}

static void random_begin(void)
{
	const char *given = getenv("SEED");
	random_state = given ? strtoull(given, NULL, 0) : (uint64_t)time(NULL) << 20 | 1;
	printf("SEED=%#lx\n", (unsigned long)random_state);
}

static struct ended *ended_new(uint32_t max)
{
	size_t bytes = ended_bytes(max);
	void *memory = aligned_alloc(64, bytes);
	assert_non_null(memory);
	return ended_init(memory, max);
}

static void an_empty_set_has_nobody(void **state)
{
	(void)state;
	struct ended *e = ended_new(1);
	assert_false(ended_has(e, 1));
	assert_false(ended_has(e, 0));
	assert_int_equal(ended_count(e), 0);
	assert_int_equal(ended_sweep(e, UINT32_MAX), 0);
	free(e);
}

static void at_the_limit_and_one_beyond(void **state)
{
	(void)state;
	struct ended *e = ended_new(3);
	assert_true(ended_insert(e, 10, 100));
	assert_true(ended_insert(e, 20, 200));
	assert_true(ended_insert(e, 30, 300));
	assert_false(ended_insert(e, 40, 400));
	assert_true(ended_insert(e, 30, 301)); // known already: takes no place
	assert_false(ended_has(e, 40));
	assert_int_equal(ended_count(e), 3);
	assert_int_equal(ended_sweep(e, 100 + ENDED_GRACE_S), 1);
	assert_true(ended_insert(e, 40, 400));
	assert_true(ended_has(e, 40));
	free(e);
}

static void one_that_is_taken_out_makes_room(void **state)
{
	(void)state;
	struct ended *e = ended_new(2);
	ended_remove(e, 10); // is not in
	assert_true(ended_insert(e, 10, 100) && ended_insert(e, 20, 200));
	assert_false(ended_insert(e, 30, 300));
	ended_remove(e, 10);
	ended_remove(e, 0);
	assert_false(ended_has(e, 10));
	assert_true(ended_has(e, 20));
	assert_true(ended_insert(e, 30, 300));
	ended_remove(e, 20);
	ended_remove(e, 30);
	assert_int_equal(ended_count(e), 0);
	assert_false(ended_has(e, 30));
	free(e);
}

static void dropped_when_the_pass_is_refused_anyway(void **state)
{
	(void)state;
	struct ended *e = ended_new(10);
	ended_insert(e, 7, 1000);
	assert_int_equal(ended_sweep(e, 1000), 0);
	assert_int_equal(ended_sweep(e, 1000 + ENDED_GRACE_S - 1), 0);
	assert_true(ended_has(e, 7));
	assert_int_equal(ended_sweep(e, 1000 + ENDED_GRACE_S), 1);
	assert_false(ended_has(e, 7));
	free(e);
}

static void the_later_end_holds(void **state)
{
	(void)state;
	struct ended *e = ended_new(10);
	ended_insert(e, 7, 1000);
	ended_insert(e, 7, 2000);
	ended_insert(e, 7, 1500);
	assert_int_equal(ended_count(e), 1);
	assert_int_equal(ended_sweep(e, 1999), 0);
	assert_int_equal(ended_sweep(e, 2000 + ENDED_GRACE_S), 1);
	free(e);
}

static void both_buckets_full_is_refused(void **state)
{
	(void)state;
	struct ended *e = ended_new(1000);
	// These sixteen share both of their buckets, which are the same one.
	uint64_t session = 1;
	for (int i = 0; i < 8; i++, session += 1ull << 60)
		assert_true(ended_insert(e, session | 1ull << 32, 5));
	assert_false(ended_insert(e, session | 1ull << 32, 5));
	free(e);
}

// Random ids find room until the set is full: no false "full".
static void a_set_fills_to_its_limit(void **state)
{
	(void)state;
	random_begin();
	static const uint32_t limits[] = {
		1, 2, 7, 8, 9, 100, 1000, 4096, ENDED_MAX_DEFAULT, 200000};
	for (size_t i = 0; i < sizeof(limits) / sizeof(limits[0]); i++) {
		struct ended *e = ended_new(limits[i]);
		for (uint32_t n = 0; n < limits[i]; n++)
			assert_true(ended_insert(e, random_id(), 1));
		assert_int_equal(ended_count(e), limits[i]);
		assert_false(ended_insert(e, 2, 1));
		free(e);
	}
}

// More than one sweep looks at: every entry is met in the end.
static void a_large_set_is_swept_in_parts(void **state)
{
	(void)state;
	random_begin();
	struct ended *e = ended_new(200000);
	for (uint32_t n = 0; n < 100000; n++)
		ended_insert(e, random_id(), 1);
	uint32_t dropped = 0, sweeps = 0;
	for (; dropped < 100000 && sweeps < 20; sweeps++)
		dropped += ended_sweep(e, 1000);
	assert_int_equal(dropped, 100000);
	assert_true(sweeps > 1);
	assert_int_equal(ended_count(e), 0);
	free(e);
}

struct twin {
	uint64_t session;
	uint32_t expires;
};

#define TWIN_MAX 64
#define TWIN_IDS 128 // few enough that they meet again

static struct twin twin[TWIN_MAX];
static uint32_t twin_count;

static struct twin *twin_find(uint64_t session)
{
	for (uint32_t i = 0; i < twin_count; i++) {
		if (twin[i].session == session)
			return &twin[i];
	}
	return NULL;
}

static void twin_insert(struct ended *e, uint64_t session, uint32_t expires)
{
	struct twin *known = twin_find(session);
	bool is_inserted = ended_insert(e, session, expires);
	if (known) {
		assert_true(is_inserted);
		known->expires = expires > known->expires ? expires : known->expires;
	} else if (is_inserted) {
		assert_true(twin_count < TWIN_MAX);
		twin[twin_count++] = (struct twin){session, expires};
	} else {
		assert_int_equal(twin_count, TWIN_MAX);
	}
}

static void twin_sweep(struct ended *e, uint32_t now_s)
{
	uint32_t dropped = 0;
	for (uint32_t i = 0; i < twin_count;) {
		bool is_over = twin[i].expires + ENDED_GRACE_S <= now_s;
		if (is_over)
			twin[i] = twin[--twin_count];
		else
			i++;
		dropped += is_over;
	}
	assert_int_equal(ended_sweep(e, now_s), dropped);
}

static void a_naive_twin_agrees(void **state)
{
	(void)state;
	random_begin();
	struct ended *e = ended_new(TWIN_MAX);
	uint64_t ids[TWIN_IDS];
	for (int i = 0; i < TWIN_IDS; i++)
		ids[i] = random_id();
	uint32_t now_s = 1000;
	for (int round = 0; round < 100000; round++) {
		uint64_t session = ids[random_next() % TWIN_IDS];
		switch (random_next() % 8) {
		case 0:
			now_s += random_next() % 3;
			twin_sweep(e, now_s);
			break;
		case 1:
		case 2:
			twin_insert(e, session, now_s + random_next() % 60);
			break;
		default:
			assert_int_equal(ended_has(e, session), twin_find(session) != NULL);
		}
		assert_int_equal(ended_count(e), twin_count);
	}
	free(e);
}

// A writer that inserts and sweeps, and readers that must never miss what is published to them.
#define READERS 2
#define ROUNDS 20000u

struct shared {
	struct ended *ended;
	_Atomic uint64_t published; // in the set for good
	_Atomic bool is_done;
	uint64_t misses[READERS];
};

struct reader {
	struct shared *shared;
	int index;
};

static void *read_on(void *ctx)
{
	struct reader *reader = ctx;
	struct shared *shared = reader->shared;
	while (!atomic_load(&shared->is_done)) {
		uint64_t session = atomic_load_explicit(&shared->published, memory_order_acquire);
		if (session && !ended_has(shared->ended, session))
			shared->misses[reader->index]++;
	}
	return NULL;
}

static void readers_never_miss(void **state)
{
	(void)state;
	random_begin();
	struct shared shared = {.ended = ended_new(1024)};
	struct reader readers[READERS];
	pthread_t threads[READERS];
	for (int i = 0; i < READERS; i++) {
		readers[i] = (struct reader){&shared, i};
		assert_int_equal(pthread_create(&threads[i], NULL, read_on, &readers[i]), 0);
	}
	for (uint32_t round = 0; round < ROUNDS; round++) {
		// Passing traffic, which comes and goes around the ones that stay.
		for (int i = 0; i < 8; i++)
			ended_insert(shared.ended, random_id(), round);
		uint64_t session = random_id();
		if (round % 64 == 0 && ended_insert(shared.ended, session, UINT32_MAX))
			atomic_store_explicit(&shared.published, session, memory_order_release);
		ended_sweep(shared.ended, round + ENDED_GRACE_S);
	}
	atomic_store(&shared.is_done, true);
	for (int i = 0; i < READERS; i++) {
		pthread_join(threads[i], NULL);
		assert_int_equal(shared.misses[i], 0);
	}
	assert_true(ended_count(shared.ended) > 0);
	free(shared.ended);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(an_empty_set_has_nobody),
		cmocka_unit_test(at_the_limit_and_one_beyond),
		cmocka_unit_test(one_that_is_taken_out_makes_room),
		cmocka_unit_test(dropped_when_the_pass_is_refused_anyway),
		cmocka_unit_test(the_later_end_holds),
		cmocka_unit_test(both_buckets_full_is_refused),
		cmocka_unit_test(a_set_fills_to_its_limit),
		cmocka_unit_test(a_large_set_is_swept_in_parts),
		cmocka_unit_test(a_naive_twin_agrees),
		cmocka_unit_test(readers_never_miss),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
