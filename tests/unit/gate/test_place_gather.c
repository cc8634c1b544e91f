// Gatherings in a line: places before, within and behind, threshold and total, over many draws and
// restarts, against a twin that keeps everybody in one list.

#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "dataplane/gate/draw.h"
#include "dataplane/gate/gather.h"
#include "dataplane/gate/place.h"

#define ENTRIES 4096u
#define PEOPLE_MAX 4000u

static struct place_line *line;
static uint64_t seed, now_slot;
static uint64_t keys[PEOPLE_MAX]; // of all that are placed, in the order of places
static uint32_t people;
static uint64_t hashes[PEOPLE_MAX];
static uint32_t hash_count;
static struct draw_list lists[64];
static struct draw_set *set;

static uint64_t next(void)
{
	seed = seed * 6364136223846793005u + 1442695040888963407u;
	return seed >> 20 ^ seed << 44;
}

static int compare(const void *a, const void *b)
{
	const uint64_t x = *(const uint64_t *)a, y = *(const uint64_t *)b;
	return (x > y) - (x < y);
}

static int begin(void **state)
{
	(void)state;
	free(line);
	free(set);
	line = calloc(1, place_line_bytes(ENTRIES));
	set = calloc(1, sizeof(*set) + 64 * sizeof(set->lists[0]));
	now_slot = 1000;
	people = hash_count = 0;
	place_line_init(line, 7, ENTRIES);
	return line && set && place_begin(line, now_slot) ? 0 : -1;
}

static void mint(uint32_t count)
{
	for (uint32_t i = 0; i < count; i++) {
		keys[people] = place_mint(line, now_slot, 0);
		assert_true(keys[people] > 0);
		assert_true(people == 0 || keys[people] > keys[people - 1]);
		people++;
		now_slot += next() % 3 == 0;
	}
}

static void check_all(void)
{
	for (uint32_t i = 0; i < people; i++) {
		uint64_t rank;
		assert_true(place_rank(line, keys[i], &rank));
		assert_int_equal(rank, i);
	}
	assert_int_equal(place_total(line), people + atomic_load(&line->gathered));
}

// Draw those who gathered in the slots from `first` to below `end`.
static void draw(uint64_t first, uint64_t end, uint32_t joined, uint32_t late)
{
	struct draw_list *list = &lists[set->count];
	uint64_t *own = &hashes[hash_count];
	for (uint32_t i = 0; i < joined; i++)
		own[i] = next();
	qsort(own, joined, sizeof(*own), compare);
	hash_count += joined;
	*list = (struct draw_list){.number = set->count + 1,
		.first_slot = first,
		.end_slot = end,
		.base = place_before(line, first),
		.count = joined,
		.hashes = own};
	draw_list_init(list);
	assert_int_equal(list->base, people - late);
	memmove(&keys[people - late + joined], &keys[people - late], late * sizeof(keys[0]));
	for (uint32_t i = 0; i < joined; i++)
		keys[people - late + i] = draw_key(list, own[i]);
	people += joined;
	set->lists[set->count++] = list;
	atomic_store(&line->drawn, set);
	assert_true(place_drawn(line, joined, end, 0));
	atomic_fetch_sub(&line->gathered, joined);
}

static void gather(uint32_t joined, uint32_t late)
{
	place_close(line, now_slot);
	const uint64_t first = place_gather(line);
	assert_true(first > 0);
	for (uint32_t i = 0; i < joined; i++)
		place_gathered(line);
	assert_true(atomic_load(&line->open) & PLACE_OPEN_LINE || joined == 0);
	now_slot += 1 + next() % 6000; // longer than cells reach
	place_close(line, now_slot);
	assert_int_equal(place_total(line), people + joined);
	// Whatever is asked for, the threshold stays before those who are not drawn.
	assert_int_equal(place_key_at(line, people + 1), place_key(first, 0, 0));
	const uint64_t end = place_gather_end(line, first, now_slot);
	assert_true(end > first);
	mint(late);
	assert_true(late == 0 || keys[people - late] >= place_key(end, 0, 0));
	place_close(line, now_slot);
	assert_int_equal(place_key_at(line, people + 1), place_key(first, 0, 0));
	draw(first, end, joined, late);
	place_close(line, now_slot + 1);
}

static void a_story(void **state)
{
	(void)state;
	mint(5);
	gather(10, 3);
	check_all();
	mint(4);
	check_all();
	assert_int_equal(people, 22);
	for (uint64_t rank = 1; rank <= 18; rank++) { // of closed slots
		uint64_t below;
		const uint64_t key = place_key_at(line, rank);
		place_rank(line, key, &below);
		assert_true(below >= rank);
		place_rank(line, key - 1, &below);
		assert_true(below < rank);
	}
}

static void nobody_gathers(void **state)
{
	(void)state;
	mint(3);
	gather(0, 0);
	gather(0, 2);
	mint(2);
	check_all();
	assert_int_equal(people, 7);
}

static void a_restart_while_people_gather(void **state)
{
	(void)state;
	mint(5);
	place_close(line, now_slot);
	const uint64_t first = place_gather(line);
	place_gathered(line);
	now_slot += 100000;
	assert_true(place_begin(line, now_slot));
	assert_int_equal(atomic_load(&line->gathers_from), first);
	place_close(line, now_slot);
	assert_int_equal(atomic_load(&line->closed), first);
	const uint64_t end = place_gather_end(line, first, now_slot);
	draw(first, end, 1, 0);
	mint(3);
	check_all();
}

static void windows_one_behind_the_other(void **state)
{
	(void)state;
	mint(2);
	place_close(line, now_slot);
	uint64_t first = place_gather(line);
	for (int i = 0; i < 5; i++) {
		for (int j = 0; j < 4; j++)
			place_gathered(line);
		now_slot += 300;
		const uint64_t end = place_gather_end(line, first, now_slot);
		assert_int_equal(place_key_at(line, people + 1), place_key(first, 0, 0));
		draw(first, end, 4, 0);
		atomic_store(&line->gathers_from, first = end); // as place_drawn() with `next`
		check_all();
	}
	assert_int_equal(people, 22);
}

static void many_draws(void **state)
{
	(void)state;
	for (int i = 0; i < 30; i++) {
		mint((uint32_t)(next() % 20));
		gather((uint32_t)(next() % 60), (uint32_t)(next() % 10));
	}
	mint(3);
	check_all();
	const uint64_t floor = keys[people / 2];
	place_trim(line, floor);
	for (uint32_t i = people / 2; i < people; i++) {
		uint64_t rank;
		assert_true(place_rank(line, keys[i], &rank));
		assert_int_equal(rank, i);
	}
}

static void joining(void **state)
{
	(void)state;
	enum { MAX = 10 };
	struct gather_ids *ids = calloc(1, sizeof(*ids) + MAX * sizeof(ids->ids[0]));
	assert_non_null(ids);
	ids->number = 99;
	ids->max = MAX;
	atomic_store(&ids->ready, MAX - 3);
	for (uint64_t i = 1; i <= MAX - 3; i++) {
		assert_int_equal(gather_join(ids, line, i), 99);
		assert_int_equal(ids->ids[i - 1], i);
	}
	assert_int_equal(gather_join(ids, line, 50), 0); // nothing is allocated beyond
	assert_int_equal(atomic_load(&line->gathered), MAX - 3);
	atomic_store(&ids->ready, MAX);
	assert_int_equal(gather_join(ids, line, 51), 99);
	struct gather words = {.numbers = {99, 0}};
	assert_true(gather_is_undrawn(&words, 99));
	assert_false(gather_is_undrawn(&words, 98));
	assert_false(gather_is_undrawn(&words, 0));
	free(ids);
}

int main(int argc, char **argv)
{
	seed = argc > 1 ? strtoull(argv[1], NULL, 0) : 3;
	print_message("seed %lu\n", seed);
	const struct CMUnitTest tests[] = {
		cmocka_unit_test_setup(a_story, begin),
		cmocka_unit_test_setup(nobody_gathers, begin),
		cmocka_unit_test_setup(a_restart_while_people_gather, begin),
		cmocka_unit_test_setup(windows_one_behind_the_other, begin),
		cmocka_unit_test_setup(many_draws, begin),
		cmocka_unit_test_setup(joining, begin),
	};
	int failed = cmocka_run_group_tests(tests, NULL, NULL);
	free(line);
	free(set);
	return failed;
}
