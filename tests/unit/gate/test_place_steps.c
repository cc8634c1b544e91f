// Places, step by step: something happens, or the process dies, between any two atomic operations.
//
// *Goal:* whatever control does in the middle of a reading, the rank is right; wherever the process
// dies in the middle of a mint or a closing, nothing is lost and nothing is counted twice.
//
// place.c is compiled into this test with its atomic operations counted.

#include <setjmp.h>
#include <stdarg.h>
#include <stdatomic.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

static void step(void);

#undef atomic_load_explicit
#undef atomic_store_explicit
#undef atomic_compare_exchange_strong
#undef atomic_compare_exchange_weak
#undef atomic_fetch_add
// The builtins want plain words. The type is that of the value, which is not atomic any more.
#define PLAIN(at) ((__typeof__((void)0, *(at)) *)(uintptr_t)(at))
#define atomic_load_explicit(from, order) (step(), __atomic_load_n(PLAIN(from), __ATOMIC_SEQ_CST))
#define atomic_store_explicit(to, value, order) \
	(step(), __atomic_store_n(PLAIN(to), value, __ATOMIC_SEQ_CST))
#define atomic_compare_exchange_strong(at, old, value) \
	(step(), __atomic_compare_exchange_n( \
			 PLAIN(at), old, value, false, __ATOMIC_SEQ_CST, __ATOMIC_SEQ_CST))
#define atomic_compare_exchange_weak(at, old, value) atomic_compare_exchange_strong(at, old, value)
#define atomic_fetch_add(at, value) (step(), __atomic_fetch_add(PLAIN(at), value, __ATOMIC_SEQ_CST))

#include "dataplane/gate/place.c"

#define SLOT_0 170000000000ull
#define ENTRIES 8u // so the ring wraps soon
#define ENTRIES_MANY 8192u // so it does not
#define STEPS_MAX 100000u
#define NEVER UINT32_MAX

static uint32_t steps_left = NEVER; // until it happens
static void (*happens)(void);
static jmp_buf death;

static void step(void)
{
	if (steps_left == NEVER || steps_left-- > 0)
		return;
	steps_left = NEVER;
	happens();
}

static void die(void)
{
	longjmp(death, 1);
}

// The line, and every key that was handed out.
static struct place_line *line;
static uint64_t keys[20000], now;
static uint32_t count;
static uint64_t entries_max = ENTRIES;

static void mint(void)
{
	const uint64_t key = place_mint(line, now, 0);
	assert_int_not_equal(key, 0);
	keys[count++] = key;
}

// Six slots with tickets; three are closed, one is in a cell, one is the word's.
static void begin(void)
{
	line = calloc(1, place_line_bytes(entries_max));
	place_line_init(line, 1, entries_max);
	now = SLOT_0;
	count = 0;
	assert_true(place_begin(line, now));
	for (int slot = 0; slot < 5; slot++) {
		now += 2;
		for (int i = 0; i <= slot; i++)
			mint();
		if (slot == 2)
			place_close(line, now + 1);
	}
}

// --- control goes on while a rank is read

static void closes(void)
{
	place_close(line, now + 1);
}

static void closes_and_forgets(void)
{
	place_close(line, now + 1);
	place_trim(line, place_key(now - 1, 0, 0));
}

static void goes_round_the_ring(void)
{
	for (uint32_t i = 0; i < 2 * ENTRIES; i++) {
		closes_and_forgets();
		now++;
		mint();
	}
}

static void goes_round_the_cells(void)
{
	for (uint32_t i = 0; i < PLACE_CELLS + 10; i++) {
		now++;
		mint();
		closes_and_forgets();
	}
}

// Nothing is forgotten.
static void goes_far(void)
{
	for (uint32_t i = 0; i < PLACE_CELLS + 10; i++) {
		now++;
		mint();
		closes();
	}
}

static void mints(void)
{
	mint();
	now++;
	mint();
}

static bool is_forgotten(uint64_t key)
{
	return entry_at(line, line->index_first).slot > place_slot(key);
}

static void a_rank_is_right_whatever_happens(void **state)
{
	(void)state;
	void (*const events[])(void) = {closes, closes_and_forgets, goes_round_the_ring,
		goes_round_the_cells, mints, goes_far};
	for (size_t e = 0; e < sizeof(events) / sizeof(events[0]); e++) {
		entries_max = events[e] == goes_far ? ENTRIES_MANY : ENTRIES;
		for (uint32_t which = 0; which < 15; which++) {
			uint32_t at = 0;
			for (bool happened = true; happened && at < STEPS_MAX; at++) {
				uint64_t rank = 0;
				begin();
				happens = events[e];
				steps_left = at;
				const bool exact = place_rank(line, keys[which], &rank);
				happened = steps_left == NEVER;
				steps_left = NEVER;
				if (exact ? rank != which : !is_forgotten(keys[which]))
					fail_msg("event %zu at step %u: rank %llu of key %u", e, at,
						(unsigned long long)rank, which);
				free(line);
			}
			assert_true(at > 3);
		}
	}
	entries_max = ENTRIES;
}

static void a_total_is_right_whatever_happens(void **state)
{
	(void)state;
	void (*const events[])(void) = {closes, closes_and_forgets};
	for (size_t e = 0; e < sizeof(events) / sizeof(events[0]); e++) {
		for (uint32_t at = 0; at < 100; at++) {
			begin();
			happens = events[e];
			steps_left = at;
			assert_int_equal(place_total(line), count);
			steps_left = NEVER;
			free(line);
		}
	}
}

// --- control closes, or another mints, in the middle of a mint

static void a_key_is_unique_whatever_happens(void **state)
{
	(void)state;
	void (*const events[])(void) = {
		closes, closes_and_forgets, goes_round_the_ring, goes_round_the_cells, mints};
	for (size_t e = 0; e < sizeof(events) / sizeof(events[0]); e++) {
		for (uint32_t at = 0; at < 40; at++) {
			begin();
			happens = events[e];
			now += at % 2; // the word must move, or not
			steps_left = at;
			const uint64_t key = place_mint(line, now, 0);
			steps_left = NEVER;
			uint64_t rank;
			assert_int_not_equal(key, 0);
			assert_true(place_rank(line, key, &rank));
			assert_int_equal(place_total(line), count + 1);
			for (uint32_t i = 0; i < count; i++)
				assert_int_not_equal(keys[i], key);
			free(line);
		}
	}
}

// --- death

// After a new beginning: every key has its rank, and new ones stand behind them.
static void check_life_after_death(uint32_t undecided)
{
	assert_true(place_begin(line, SLOT_0));
	const uint64_t total = place_total(line);
	assert_in_range(total, count, count + undecided);
	for (uint32_t i = 0; i < count; i++) {
		uint64_t rank;
		assert_true(place_rank(line, keys[i], &rank));
		assert_int_equal(rank, i);
	}
	const uint64_t key = place_mint(line, SLOT_0, 0);
	assert_true(key > keys[count - 1]);
	assert_int_equal(place_total(line), total + 1);
}

static uint64_t ahead; // of now

static void close_ahead(void)
{
	place_close(line, now + ahead);
}

static void mint_ahead(void)
{
	const uint64_t key = place_mint(line, now + ahead, 0);
	keys[count++] = key;
}

static void begin_ahead(void)
{
	place_begin(line, now + ahead);
}

// Do it, and die before its atomic operation number `at`. Returns whether it has so many.
static bool dies(void (*it)(void), uint32_t at)
{
	happens = die;
	steps_left = at;
	const bool has_died = setjmp(death) != 0;
	if (!has_died)
		it();
	steps_left = NEVER;
	return has_died;
}

static void dying_loses_nothing(void **state)
{
	(void)state;
	void (*const acts[])(void) = {close_ahead, mint_ahead, begin_ahead};
	const uint64_t aheads[] = {0, 1, 2, PLACE_CELLS, 3 * PLACE_CELLS + 7};
	for (size_t i = 0; i < sizeof(acts) / sizeof(acts[0]) * 5; i++) {
		bool has_died = true;
		// Every step at the beginning, where everything happens but looking at empty cells.
		for (uint32_t at = 0; has_died; at += at < 200 ? 1 : 97) {
			begin();
			ahead = aheads[i % 5];
			has_died = dies(acts[i / 5], at);
			check_life_after_death(acts[i / 5] == mint_ahead);
			free(line);
		}
	}
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(a_rank_is_right_whatever_happens),
		cmocka_unit_test(a_total_is_right_whatever_happens),
		cmocka_unit_test(a_key_is_unique_whatever_happens),
		cmocka_unit_test(dying_loses_nothing),
	};
	return cmocka_run_group_tests_name("place_steps", tests, NULL, NULL);
}
