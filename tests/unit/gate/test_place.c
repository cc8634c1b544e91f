// Places, against a naive twin: the list of all keys ever handed out.
//
// *Goal:* keys are unique and ordered, ranks count exactly the keys before, whatever the clock, the
// closing, the forgetting and the sizes do; and all of it holds while others write.

#include <pthread.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "dataplane/gate/place.h"

#define SLOT_0 (1700000000000ull / PLACE_SLOT_MS) // where the tests begin
#define KEYS_MAX (1u << 20)

static uint64_t seed; // of the run under way, printed when a check fails

#define CHECK(condition) \
	do { \
		if (!(condition)) \
			fail_msg("seed %llu: %s", (unsigned long long)seed, #condition); \
	} while (0)

static uint64_t random_below(uint64_t *state, uint64_t limit)
{
	uint64_t z = (*state += 0x9e3779b97f4a7c15);
	z = (z ^ (z >> 30)) * 0xbf58476d1ce4e5b9;
	z = (z ^ (z >> 27)) * 0x94d049bb133111eb;
	return (z ^ (z >> 31)) % limit;
}

static struct place_line *line_make(uint64_t entries_max, uint64_t now_slot)
{
	struct place_line *line = calloc(1, place_line_bytes(entries_max));
	assert_non_null(line);
	place_line_init(line, 7, entries_max);
	assert_true(place_begin(line, now_slot));
	return line;
}

static uint64_t rank_of(const struct place_line *line, uint64_t key)
{
	uint64_t rank;
	assert_true(place_rank(line, key, &rank));
	return rank;
}

// --- stories

static void keys_count_up_within_a_slot(void **state)
{
	(void)state;
	struct place_line *line = line_make(16, SLOT_0);
	const uint64_t slot = SLOT_0 + 1; // a fresh one, above the clock at the beginning
	for (uint64_t i = 0; i < 100; i++)
		assert_int_equal(place_mint(line, SLOT_0, 5), place_key(slot, i, 5));
	assert_int_equal(place_mint(line, slot + 3, 5), place_key(slot + 3, 0, 5));
	assert_int_equal(rank_of(line, place_key(slot, 99, 5)), 99);
	assert_int_equal(rank_of(line, place_key(slot + 3, 0, 5)), 100);
	assert_int_equal(place_total(line), 101);
	free(line);
}

static void rank_is_exact_at_once(void **state)
{
	(void)state;
	struct place_line *line = line_make(16, SLOT_0);
	for (uint64_t i = 0; i < 50; i++) {
		const uint64_t key = place_mint(line, SLOT_0 + 1 + i / 7, 0);
		assert_int_equal(rank_of(line, key), i);
	}
	free(line);
}

static void what_was_never_minted_is_not_exact(void **state)
{
	(void)state;
	struct place_line *line = line_make(16, SLOT_0);
	place_mint(line, SLOT_0 + 2, 0);
	place_mint(line, SLOT_0 + 2, 0);
	place_mint(line, SLOT_0 + 9, 0);
	const struct {
		uint64_t slot, seq, rank;
	} cases[] = {
		{SLOT_0 + 1, 0, 0}, // a slot before, without tickets
		{SLOT_0 + 2, 2, 2}, // beyond the last of its slot: the place of the slot's last
		{SLOT_0 + 5, 3, 2}, // a slot between
		{SLOT_0 + 9, 1, 3}, {SLOT_0 + 99, 0, 3}, // the future
	};
	for (int closed = 0; closed < 2; closed++) {
		for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
			uint64_t rank;
			assert_false(
				place_rank(line, place_key(cases[i].slot, cases[i].seq, 0), &rank));
			assert_int_equal(rank, cases[i].rank);
		}
		assert_int_equal(place_close(line, SLOT_0 + 20), closed ? 0 : 3);
	}
	free(line);
}

static void nothing_is_minted_in_a_closed_slot(void **state)
{
	(void)state;
	struct place_line *line = line_make(16, SLOT_0);
	place_mint(line, SLOT_0 + 5, 0);
	place_close(line, SLOT_0 + 8);
	assert_int_equal(place_mint(line, SLOT_0 + 5, 0), place_key(SLOT_0 + 8, 0, 0));
	free(line);
}

static void nothing_is_minted_below_the_threshold(void **state)
{
	(void)state;
	struct place_line *line = line_make(16, SLOT_0);
	atomic_store(&line->threshold, place_key(SLOT_0 + 9, 0, 0)); // it has not entered slot 9
	assert_int_equal(place_mint(line, SLOT_0 + 5, 0), place_key(SLOT_0 + 9, 0, 0));
	atomic_store(&line->threshold, place_key(SLOT_0 + 9, 1, 0));
	assert_int_equal(place_mint(line, SLOT_0 + 5, 0), place_key(SLOT_0 + 10, 0, 0));
	free(line);
}

static void a_full_slot_passes_on_to_the_next(void **state)
{
	(void)state;
	struct place_line *line = line_make(16, SLOT_0);
	uint64_t last = 0;
	for (uint64_t i = 0; i < PLACE_SLOT_TICKETS; i++)
		last = place_mint(line, SLOT_0 + 1, 63);
	assert_int_equal(last, place_key(SLOT_0 + 1, PLACE_SLOT_TICKETS - 1, 63));
	const uint64_t next = place_mint(line, SLOT_0 + 1, 63);
	assert_int_equal(next, place_key(SLOT_0 + 2, 0, 63));
	assert_int_equal(rank_of(line, last), PLACE_SLOT_TICKETS - 1);
	assert_int_equal(rank_of(line, next), PLACE_SLOT_TICKETS);
	place_close(line, SLOT_0 + 9);
	assert_int_equal(rank_of(line, next), PLACE_SLOT_TICKETS);
	assert_int_equal(place_total(line), PLACE_SLOT_TICKETS + 1);
	free(line);
}

// Control is away: slots are as short as ever while there are cells, then the last one goes on
// until it is full, and then the line takes nobody; when control comes back all is counted.
static void control_late_loses_nothing(void **state)
{
	(void)state;
	struct place_line *line = line_make(8192, SLOT_0);
	const uint64_t last_slot = SLOT_0 + PLACE_CELLS; // the line begins with closed = SLOT_0 + 1
	uint64_t minted = 0;
	for (uint64_t i = 1; i <= PLACE_CELLS; i++, minted++)
		assert_int_equal(place_slot(place_mint(line, SLOT_0 + i, 0)), SLOT_0 + i);
	for (; minted < PLACE_CELLS + PLACE_SLOT_TICKETS - 1; minted++)
		assert_int_equal(place_slot(place_mint(line, SLOT_0 + 1 + minted, 0)), last_slot);
	assert_int_equal(place_mint(line, SLOT_0 + 9999, 0), 0);
	assert_int_equal(place_total(line), minted);
	assert_int_equal(place_close(line, SLOT_0 + 10000), minted);
	assert_int_equal(place_slot(place_mint(line, SLOT_0 + 10001, 0)), SLOT_0 + 10001);
	assert_int_equal(place_total(line), minted + 1);
	free(line);
}

// The index is never trimmed: slots get longer, by halves of what is free, and keys stay exact.
static void slots_get_longer_as_the_index_fills(void **state)
{
	(void)state;
	struct place_line *line = line_make(64, SLOT_0);
	uint64_t keys[3000], strides = 0, stride = 1;
	for (uint64_t i = 0; i < 3000; i++) {
		keys[i] = place_mint(line, SLOT_0 + 1 + i, 0);
		assert_true(keys[i]);
		place_close(line, SLOT_0 + 1 + i);
		strides += line->stride != stride;
		stride = line->stride;
	}
	assert_int_equal(stride, 64); // halved to nothing in six steps
	assert_int_equal(strides, 6);
	for (uint64_t i = 0; i < 3000; i++)
		assert_int_equal(rank_of(line, keys[i]), i);
	// Floor passes, and control catches up by what the index holds at a time: short again.
	atomic_store(&line->floor, keys[2999]);
	for (int turn = 0; turn < 3000 / 64 + 2; turn++) {
		place_close(line, SLOT_0 + 100000);
		place_trim(line, keys[2999]);
	}
	place_close(line, SLOT_0 + 100000);
	assert_int_equal(line->stride, 1);
	assert_int_equal(place_total(line), 3000);
	free(line);
}

static void a_long_pause_is_closed_at_once(void **state)
{
	(void)state;
	const uint64_t pauses[] = {
		1, PLACE_CELLS - 1, PLACE_CELLS, PLACE_CELLS + 1, 7ull * PLACE_CELLS, 8640000};
	for (size_t i = 0; i < sizeof(pauses) / sizeof(pauses[0]); i++) {
		struct place_line *line = line_make(16, SLOT_0);
		place_mint(line, SLOT_0 + 1, 0);
		assert_int_equal(place_close(line, SLOT_0 + 1 + pauses[i]), 1);
		assert_int_equal(line->closed, SLOT_0 + 1 + pauses[i]);
		const uint64_t key = place_mint(line, SLOT_0, 0);
		assert_int_equal(key, place_key(SLOT_0 + 1 + pauses[i], 0, 0));
		assert_int_equal(rank_of(line, key), 1);
		free(line);
	}
}

static void key_at_is_the_inverse_of_rank(void **state)
{
	(void)state;
	struct place_line *line = line_make(16, SLOT_0);
	uint64_t keys[30];
	for (uint64_t i = 0; i < 30; i++)
		keys[i] = place_mint(line, SLOT_0 + 1 + i / 4, 9);
	place_close(line, place_slot(keys[29]));
	const uint64_t closed = 28; // the last two are in the open slot
	for (uint64_t i = 0; i < closed; i++) {
		const uint64_t key = place_key_at(line, i + 1);
		assert_true(key > keys[i]);
		assert_true(i + 1 == closed || key <= keys[i + 1]);
	}
	assert_int_equal(place_key_at(line, closed + 1), place_key(line->closed, 0, 0));
	assert_int_equal(place_key_at(line, 1000), place_key(line->closed, 0, 0));
	free(line);
}

// The process died after an entry was there, and before `closed` said so.
static void nothing_is_counted_twice(void **state)
{
	(void)state;
	struct place_line *line = line_make(16, SLOT_0);
	uint64_t keys[5];
	for (uint64_t i = 0; i < 5; i++)
		keys[i] = place_mint(line, SLOT_0 + 1 + i, 0);
	const uint64_t closed = line->closed;
	assert_int_equal(place_close(line, SLOT_0 + 4), 3);
	line->closed = closed;
	for (uint64_t i = 0; i < 5; i++)
		assert_int_equal(rank_of(line, keys[i]), i);
	assert_true(place_begin(line, SLOT_0));
	for (uint64_t i = 0; i < 5; i++)
		assert_int_equal(rank_of(line, keys[i]), i);
	assert_int_equal(place_total(line), 5);
	free(line);
}

static void begin_takes_a_fresh_slot(void **state)
{
	(void)state;
	struct place_line *line = line_make(16, SLOT_0);
	const uint64_t old = place_mint(line, SLOT_0 + 100, 0);
	assert_true(place_begin(line, SLOT_0 + 50)); // the clock is behind
	const uint64_t next = place_mint(line, SLOT_0 + 50, 0);
	assert_int_equal(place_slot(next), place_slot(old) + 1);
	assert_int_equal(rank_of(line, old), 0);
	assert_int_equal(rank_of(line, next), 1);
	free(line);
}

// Pages of a file are of different ages after a power loss: what is sound is kept, and no key is
// handed out twice.
static void a_torn_index_is_cut_back(void **state)
{
	(void)state;
	struct place_line *line = line_make(16, SLOT_0);
	uint64_t keys[10], rank;
	for (uint64_t i = 0; i < 10; i++)
		keys[i] = place_mint(line, SLOT_0 + 1 + i, 0);
	place_close(line, SLOT_0 + 100);
	line->entries[6].held = 0;
	line->word = (SLOT_0 + 2) << PLACE_SEQ_BITS;
	assert_true(place_begin(line, SLOT_0 + 3));
	for (uint64_t i = 0; i < 6; i++)
		assert_int_equal(rank_of(line, keys[i]), i);
	assert_false(place_rank(line, keys[8], &rank));
	assert_true(place_mint(line, SLOT_0, 0) > keys[9]);

	line->index_first = 99;
	assert_true(place_begin(line, SLOT_0 + 3));
	assert_int_equal(place_total(line), 1); // what was minted since; its count was in a cell
	free(line);
}

static void open_is_taken_one_by_one(void **state)
{
	(void)state;
	struct place_line *line = line_make(16, SLOT_0);
	assert_false(place_take_open(line));
	atomic_store(&line->open, 2);
	assert_true(place_take_open(line));
	assert_true(place_take_open(line));
	assert_false(place_take_open(line));
	atomic_store(&line->open, 5);
	place_mint(line, SLOT_0, 0);
	assert_int_equal(line->open, PLACE_OPEN_LINE | 5);
	assert_false(place_take_open(line));
	atomic_store(&line->open, PLACE_OPEN_HOLD | 5);
	assert_false(place_take_open(line));
	free(line);
}

// --- the twin

struct twin {
	uint64_t *keys; // ascending, as they were handed out
	uint64_t count;
};

static uint64_t twin_rank(const struct twin *twin, uint64_t key)
{
	uint64_t rank = 0;
	while (rank < twin->count && twin->keys[rank] < key)
		rank++;
	return rank;
}

static void twin_check(
	const struct twin *twin, const struct place_line *line, uint64_t *random, uint64_t floor)
{
	CHECK(place_total(line) == twin->count);
	if (twin->count == 0)
		return;
	const uint64_t i = random_below(random, twin->count);
	uint64_t rank;
	const bool exact = place_rank(line, twin->keys[i], &rank);
	CHECK(!exact || rank == i);
	CHECK(exact || twin->keys[i] < floor);
	// A key that nobody holds stands between those who do.
	const uint64_t other = twin->keys[i] + (1ull << PLACE_SLOT_SHIFT) * random_below(random, 3);
	if (other >= floor) {
		place_rank(line, other, &rank);
		CHECK(rank == twin_rank(twin, other));
	}
	const uint64_t want = random_below(random, twin->count + 2);
	const uint64_t at = place_key_at(line, want), closed = place_key(line->closed, 0, 0);
	CHECK(at <= closed);
	if (at > floor && at < closed)
		CHECK(twin_rank(twin, at) == want);
	if (at == closed)
		CHECK(twin_rank(twin, closed) <= want);
}

static void twin_run(uint64_t entries_max, uint64_t steps)
{
	uint64_t random = seed, now = SLOT_0, floor = 0;
	const uint64_t appliance = seed % 64;
	struct twin twin = {.keys = malloc(steps * sizeof(uint64_t))};
	struct place_line *line = line_make(entries_max, now);
	for (uint64_t step = 0; step < steps; step++) {
		switch (random_below(&random, 8)) {
		case 0:
			now += random_below(&random, 20) ? random_below(&random, 4)
							 : random_below(&random, 9000);
			break;
		case 1:
			place_close(line, now - random_below(&random, 3));
			break;
		case 2:
			if (twin.count > 0 && random_below(&random, 4) == 0) {
				floor = twin.keys[random_below(&random, twin.count)];
				floor = floor < line->floor ? line->floor : floor;
				atomic_store(&line->floor, floor);
				place_trim(line, floor);
			}
			break;
		case 3:
			if (random_below(&random, 50) == 0)
				place_begin(line, now);
			break;
		default: {
			const uint64_t key = place_mint(line, now, appliance);
			CHECK(key != 0);
			CHECK(twin.count == 0 || key >> PLACE_APPLIANCE_BITS >
							 twin.keys[twin.count - 1] >>
							 PLACE_APPLIANCE_BITS);
			twin.keys[twin.count++] = key;
		}
		}
		twin_check(&twin, line, &random, floor);
	}
	free(twin.keys);
	free(line);
}

static void agrees_with_the_twin(void **state)
{
	(void)state;
	const uint64_t sizes[] = {2, 4, 16, 1024};
	for (seed = 1; seed <= 40; seed++)
		twin_run(sizes[seed % 4], 1500);
}

// --- threads

#define MINTERS 3
#define MINTS_EACH 20000u
#define SLOT_EVERY 8u // mints of a thread
#define RING 16u // entries: it wraps hundreds of times

struct shared {
	struct place_line *line;
	_Atomic uint64_t now;
	_Atomic unsigned running;
	uint64_t *keys[MINTERS];
	uint64_t ranks_wrong[MINTERS];
};

struct minter {
	struct shared *shared;
	int index;
};

// Whether the index begins after the slot of `key`.
static bool is_forgotten(const struct place_line *line, uint64_t key)
{
	const uint64_t first = line->index_first;
	return line->entries[first & (RING - 1)].held >> 24 > place_slot(key);
}

static void *mint(void *of)
{
	const struct minter *minter = of;
	struct shared *shared = minter->shared;
	uint64_t *keys = shared->keys[minter->index], ranks[64];
	for (uint64_t i = 0; i < MINTS_EACH; i++) {
		keys[i] = place_mint(shared->line, shared->now, 1);
		shared->ranks_wrong[minter->index] +=
			!place_rank(shared->line, keys[i], &ranks[i % 64]) &&
			!is_forgotten(shared->line, keys[i]);
		// A rank is final at once, and exact until it is forgotten.
		const uint64_t old = i - (i < 16 ? i : i % 16);
		uint64_t again;
		if (place_rank(shared->line, keys[old], &again))
			shared->ranks_wrong[minter->index] += again != ranks[old % 64];
		else
			shared->ranks_wrong[minter->index] +=
				!is_forgotten(shared->line, keys[old]);
		if (i % SLOT_EVERY == 0)
			atomic_fetch_add(&shared->now, 1);
	}
	atomic_fetch_sub(&shared->running, 1);
	return NULL;
}

static int compare_keys(const void *a, const void *b)
{
	const uint64_t x = *(const uint64_t *)a, y = *(const uint64_t *)b;
	return (x > y) - (x < y);
}

static void mints_and_closing_at_once(void **state)
{
	(void)state;
	struct shared shared = {.line = line_make(RING, SLOT_0), .now = SLOT_0, .running = MINTERS};
	struct minter minters[MINTERS];
	pthread_t threads[MINTERS];
	for (int i = 0; i < MINTERS; i++) {
		shared.keys[i] = malloc(MINTS_EACH * sizeof(uint64_t));
		minters[i] = (struct minter){&shared, i};
		assert_int_equal(pthread_create(&threads[i], NULL, mint, &minters[i]), 0);
	}
	uint64_t counted = 0;
	while (shared.running > 0) {
		const uint64_t now = shared.now;
		counted += place_close(shared.line, now);
		place_trim(shared.line, place_key(now - RING / 2, 0, 0));
		sched_yield();
	}
	uint64_t *all = malloc(MINTERS * MINTS_EACH * sizeof(uint64_t));
	for (int i = 0; i < MINTERS; i++) {
		pthread_join(threads[i], NULL);
		memcpy(all + i * MINTS_EACH, shared.keys[i], MINTS_EACH * sizeof(uint64_t));
	}
	qsort(all, MINTERS * MINTS_EACH, sizeof(uint64_t), compare_keys);
	for (uint64_t i = 1; i < MINTERS * MINTS_EACH; i++)
		assert_true(all[i] > all[i - 1]);
	// Control catches up by what the index holds at a time.
	for (uint32_t turn = 0; turn < MINTERS * MINTS_EACH / RING; turn++) {
		counted += place_close(shared.line, shared.now + 2);
		place_trim(shared.line, place_key(shared.line->closed, 0, 0));
	}
	assert_int_equal(counted, MINTERS * MINTS_EACH);
	assert_int_equal(place_total(shared.line), MINTERS * MINTS_EACH);
	for (uint64_t i = 0; i < MINTERS * MINTS_EACH; i++) {
		uint64_t rank;
		if (place_rank(shared.line, all[i], &rank))
			assert_int_equal(rank, i);
	}
	for (int i = 0; i < MINTERS; i++) {
		assert_int_equal(shared.ranks_wrong[i], 0);
		free(shared.keys[i]);
	}
	free(all);
	free(shared.line);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(keys_count_up_within_a_slot),
		cmocka_unit_test(rank_is_exact_at_once),
		cmocka_unit_test(what_was_never_minted_is_not_exact),
		cmocka_unit_test(nothing_is_minted_in_a_closed_slot),
		cmocka_unit_test(nothing_is_minted_below_the_threshold),
		cmocka_unit_test(a_full_slot_passes_on_to_the_next),
		cmocka_unit_test(control_late_loses_nothing),
		cmocka_unit_test(slots_get_longer_as_the_index_fills),
		cmocka_unit_test(a_long_pause_is_closed_at_once),
		cmocka_unit_test(key_at_is_the_inverse_of_rank),
		cmocka_unit_test(nothing_is_counted_twice),
		cmocka_unit_test(begin_takes_a_fresh_slot),
		cmocka_unit_test(a_torn_index_is_cut_back),
		cmocka_unit_test(open_is_taken_one_by_one),
		cmocka_unit_test(agrees_with_the_twin),
		cmocka_unit_test(mints_and_closing_at_once),
	};
	return cmocka_run_group_tests_name("place", tests, NULL, NULL);
}
