// The judge: what is an inversion and what is not, and rate and sessions of small histories.

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "bench/crowd/judge.h"
#include "bench/crowd/random.h"

static struct tally tally;
static struct judge_finding finding;

static int begin(void **state)
{
	(void)state;
	tally = (struct tally){0};
	return 0;
}

static int end(void **state)
{
	(void)state;
	tally_fini(&tally);
	return 0;
}

static void admit(uint64_t key, int64_t placed, int64_t asked, int64_t granted, int64_t ended)
{
	tally_admit(&tally, &(struct tally_admission){key, placed, asked, granted, ended, 0});
}

static void present(uint64_t key, int64_t from, int64_t to)
{
	tally_presence(&tally, &(struct tally_presence){key, from, to});
}

static void place(uint64_t key, uint32_t position, int64_t arrived_ms, int64_t placed_ms)
{
	tally_place(
		&tally, &(struct tally_place){key, position, arrived_ms * 1000, placed_ms * 1000});
}

static void judge(double rate, double burst, uint32_t capacity)
{
	assert_true(judge_run(&tally, &(struct judge_limits){rate, burst, capacity}, &finding));
}

static void finds_nothing_in_nothing(void **state)
{
	(void)state;
	judge(10, 0, 10);
	assert_int_equal(finding.inversions, 0);
	assert_int_equal(finding.held_max, 0);
	assert_true(finding.waiting_s == 0);
}

// Capacity 1: there is one reservation, and it is the smallest present key's.
static void without_a_rate_the_smallest_goes_first(void **state)
{
	(void)state;
	present(5, 10, 100);
	admit(7, 0, 50, 60, 200);
	judge(0, 0, 1);
	assert_int_equal(finding.inversions, 1);
	assert_int_equal(finding.overtakes, 1);
}

static void whoever_cannot_be_sure_does_not_count(void **state)
{
	(void)state;
	present(5, 10, 60); // asked again before the grant arrived
	present(4, 50, 100); // was told after the other had asked
	present(8, 10, 100); // a larger key
	present(3, 10, 45); // overdue
	admit(7, 0, 50, 60, 200);
	judge(0, 0, 1);
	assert_int_equal(finding.overtakes, 0);
	assert_int_equal(finding.inversions, 0);
}

// Capacity 3, two inside: one slot is free. One inside: two are.
static void slots_taken_are_not_reserved(void **state)
{
	(void)state;
	admit(1, 0, 1, 2, 40);
	admit(2, 0, 1, 2, 500);
	present(5, 10, 300);
	admit(7, 0, 20, 30, 500); // two inside beside it: 1 reservation, 1 overtaken
	judge(0, 0, 3);
	assert_int_equal(finding.inversions, 1);
	tally.admissions[0].key == 1 ? (tally.admissions[0].ended_us = 25) : 0;
	judge(0, 0, 3);
	assert_int_equal(finding.inversions, 0);
	assert_int_equal(finding.overtakes, 1);
}

// 10 a second and burst 3: 3 + 2 + 20 reservations.
static void a_rate_reserves_for_two_seconds(void **state)
{
	(void)state;
	for (uint64_t key = 1; key <= 24; key++)
		present(key, 10, 100);
	admit(99, 0, 50, 60, 200);
	judge(10, 3, 0);
	assert_int_equal(finding.inversions, 0);
	assert_int_equal(finding.overtaken_max, 24);
	present(25, 10, 100);
	judge(10, 3, 0);
	assert_int_equal(finding.inversions, 1);
	assert_int_equal(finding.overtaken_max, 25);
}

// 50 ms after the other had a place is at the limit; one more is beyond.
static void a_later_arrival_with_a_smaller_key_overtakes(void **state)
{
	(void)state;
	place(7, 2, 100, 110);
	place(5, 1, 160, 170);
	judge(0, 0, 1);
	assert_int_equal(finding.arrivals_overtaken, 0);
	place(8, 3, 90, 109);
	place(9, 4, 300, 310);
	judge(0, 0, 1);
	assert_int_equal(finding.arrivals_overtaken, 1); // 8, by 5
	assert_int_equal(finding.places_double, 0);
}

static void nobody_shares_a_place(void **state)
{
	(void)state;
	place(5, 1, 100, 110);
	place(6, 2, 100, 110);
	place(6, 3, 100, 110);
	place(7, 3, 100, 110);
	judge(0, 0, 1);
	assert_int_equal(finding.places_double, 2);
}

static void windows_are_those_of_the_passes(void **state)
{
	(void)state;
	static const uint32_t ends[] = {1000, 1000, 1001, 1001, 1001, 1059, 1060, 1061};
	for (size_t i = 0; i < sizeof(ends) / sizeof(ends[0]); i++)
		tally_admit(&tally, &(struct tally_admission){.key = i + 1, .pass_ends = ends[i]});
	judge(0, 0, 0);
	assert_int_equal(finding.second_max, 3);
	assert_int_equal(finding.window_max, 6); // 1000 to 1059
}

static void the_directly_admitted_overtake_nobody(void **state)
{
	(void)state;
	present(5, 10, 100);
	admit(0, 0, 50, 60, 200);
	judge(0, 0, 1);
	assert_int_equal(finding.overtakes, 0);
	assert_int_equal(finding.waiting_admitted, 0);
}

static void sessions_are_held_until_they_are_ended(void **state)
{
	(void)state;
	admit(1, 0, 5, 10, 20);
	admit(2, 0, 5, 20, 30); // begins as the first ends
	admit(3, 0, 5, 25, INT64_MAX);
	admit(0, 0, 5, 29, 40);
	judge(0, 0, 0);
	assert_int_equal(finding.held_max, 3);
}

// Waits of 0 to 4 s and 3 to 5 s, and from 9 to 10 s: 6 s in all, 3 people.
static void the_rate_is_that_of_the_time_in_which_somebody_waits(void **state)
{
	(void)state;
	admit(3, 9000000, 9900000, 10000000, INT64_MAX);
	admit(1, 0, 3900000, 4000000, INT64_MAX);
	admit(2, 3000000, 4900000, 5000000, INT64_MAX);
	judge(0, 0, 0);
	assert_true(finding.waiting_s == 6);
	assert_int_equal(finding.waiting_admitted, 3);
}

// Against the definition, word by word.
static void agrees_with_a_naive_twin(void **state)
{
	(void)state;
	for (uint64_t seed = 1; seed <= 200; seed++) {
		uint64_t random = seed, inversions = 0;
		tally_fini(&tally);
		tally = (struct tally){0};
		for (uint64_t key = 1; key <= 30; key++) {
			const int64_t from = (int64_t)(random_next(&random) % 100);
			present(key, from, from + 1 + (int64_t)(random_next(&random) % 60));
			const int64_t asked = from + (int64_t)(random_next(&random) % 60);
			const int64_t granted = asked + 1 + (int64_t)(random_next(&random) % 9);
			admit(key, 0, asked, granted,
				granted + 1 + (int64_t)(random_next(&random) % 50));
		}
		for (uint32_t i = 0; i < tally.admission_count; i++) {
			const struct tally_admission *a = &tally.admissions[i];
			double overtaken = 0, held = 0;
			for (uint32_t k = 0; k < tally.presence_count; k++) {
				const struct tally_presence *p = &tally.presences[k];
				overtaken += p->key < a->key && p->from_us < a->asked_us &&
					     p->to_us > a->granted_us;
				const struct tally_admission *s = &tally.admissions[k];
				held += s->granted_us < a->asked_us && s->ended_us > a->granted_us;
			}
			const double most = 20 - held < 5 ? 20 - held : 5; // burst 1, rate 1
			inversions += overtaken > 0 && overtaken >= most;
		}
		judge(1, 1, 20);
		if (finding.inversions != inversions)
			fail_msg("seed %lu: %lu, not %lu", (unsigned long)seed,
				(unsigned long)finding.inversions, (unsigned long)inversions);
	}
}

#define STORY(name) cmocka_unit_test_setup_teardown(name, begin, end)

int main(void)
{
	const struct CMUnitTest tests[] = {
		STORY(finds_nothing_in_nothing),
		STORY(without_a_rate_the_smallest_goes_first),
		STORY(whoever_cannot_be_sure_does_not_count),
		STORY(slots_taken_are_not_reserved),
		STORY(a_rate_reserves_for_two_seconds),
		STORY(a_later_arrival_with_a_smaller_key_overtakes),
		STORY(nobody_shares_a_place),
		STORY(windows_are_those_of_the_passes),
		STORY(the_directly_admitted_overtake_nobody),
		STORY(sessions_are_held_until_they_are_ended),
		STORY(the_rate_is_that_of_the_time_in_which_somebody_waits),
		STORY(agrees_with_a_naive_twin),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
