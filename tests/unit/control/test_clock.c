// Cluster time never goes back and never jumps, whatever the system's clock does.

#include "controlplane/clock.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>

#include <cmocka.h>

#define SYSTEM_MS 1800000000000u
#define SECOND_US 1000000u

static void test_begins_at_the_systems_time(void **state)
{
	(void)state;
	struct clock clock;
	clock_init(&clock, 0, 5 * SECOND_US, SYSTEM_MS);
	assert_int_equal(clock_at(&clock, 5 * SECOND_US), SYSTEM_MS);
	assert_int_equal(clock_at(&clock, 6 * SECOND_US), SYSTEM_MS + 1000);
}

static void test_a_restart_does_not_go_back(void **state)
{
	(void)state;
	struct clock clock;
	clock_init(&clock, SYSTEM_MS + 3600000, SECOND_US, SYSTEM_MS);
	assert_int_equal(clock_at(&clock, SECOND_US), SYSTEM_MS + 3600000);
	assert_int_equal(clock.behind_ms, -3600000);
}

static void test_a_restart_takes_a_step_forward(void **state)
{
	(void)state;
	struct clock clock;
	clock_init(&clock, SYSTEM_MS - 3600000, SECOND_US, SYSTEM_MS);
	assert_int_equal(clock_at(&clock, SECOND_US), SYSTEM_MS);
}

// Steps of the system's clock: cluster time keeps within half a percent of even pace.
static void test_steps_are_slewed(void **state)
{
	(void)state;
	const int64_t steps_ms[] = {600000, -600000, 3600000, 0, -1, 17};
	struct clock clock;
	clock_init(&clock, 0, 0, SYSTEM_MS);
	int64_t off_ms = 0;
	uint64_t before_ms = SYSTEM_MS;
	for (uint64_t second = 1; second < 600; second++) {
		off_ms += second % 100 == 0 ? steps_ms[second / 100] : 0;
		uint64_t now_us = second * SECOND_US;
		clock_slew(&clock, now_us, (uint64_t)(SYSTEM_MS + second * 1000 + off_ms));
		uint64_t now_ms = clock_at(&clock, now_us);
		assert_in_range(
			now_ms - before_ms, 1000 - CLOCK_SLEW_MS_PER_S, 1000 + CLOCK_SLEW_MS_PER_S);
		before_ms = now_ms;
	}
}

static void test_small_differences_are_corrected(void **state)
{
	(void)state;
	struct clock clock;
	clock_init(&clock, 0, 0, SYSTEM_MS);
	for (uint64_t second = 1; second <= 20; second++)
		clock_slew(&clock, second * SECOND_US, SYSTEM_MS + second * 1000 + 40);
	assert_int_equal(clock_at(&clock, 20 * SECOND_US), SYSTEM_MS + 20040);
	assert_int_equal(clock.behind_ms, 0);
}

// A world for clocks of a cluster: what the host of the ledger says, and how long a reply takes.
struct ledger {
	uint64_t now_us; // CLOCK_MONOTONIC here
	int64_t off_ms; // of its clock
	uint32_t round_us;
};

static struct clock_reply ask(struct ledger *l, bool is_skewed)
{
	struct clock_reply reply = {.sent_us = l->now_us, .is_skewed = is_skewed};
	l->now_us += l->round_us / 3; // the way back takes longer
	reply.ms = (uint64_t)((int64_t)(SYSTEM_MS + l->now_us / 1000) + l->off_ms);
	l->now_us += l->round_us - l->round_us / 3;
	reply.received_us = l->now_us;
	return reply;
}

static int64_t error_of(const struct clock *clock, const struct ledger *l)
{
	return (int64_t)clock_at(clock, l->now_us) -
	       ((int64_t)(SYSTEM_MS + l->now_us / 1000) + l->off_ms);
}

// The system's clock is five minutes wrong, either way; it has no say.
static void test_a_member_begins_at_the_ledgers_time(void **state)
{
	(void)state;
	const int64_t wrong_ms[] = {300000, -300000, 0};
	for (int i = 0; i < 3; i++) {
		struct clock clock;
		struct ledger l = {.now_us = 5 * SECOND_US, .round_us = 30000};
		clock_init(&clock, 0, l.now_us, (uint64_t)(SYSTEM_MS + 5000 + wrong_ms[i]));
		struct clock_reply reply = ask(&l, false);
		clock_join(&clock, &reply);
		assert_in_range(error_of(&clock, &l) + 30, 0, 30);
		l.round_us = 3000;
		reply = ask(&l, false);
		clock_join_again(&clock, &reply);
		assert_in_range(error_of(&clock, &l) + 3, 0, 3);
		l.round_us = 90000;
		reply = ask(&l, false);
		clock_join_again(&clock, &reply);
		assert_in_range(error_of(&clock, &l) + 3, 0, 3);
	}
}

static void test_a_member_does_not_go_back_over_a_restart(void **state)
{
	(void)state;
	struct clock clock;
	struct ledger l = {.now_us = SECOND_US};
	clock_init(&clock, SYSTEM_MS + 60000, l.now_us, SYSTEM_MS);
	struct clock_reply reply = ask(&l, false);
	clock_join(&clock, &reply);
	assert_int_equal(clock_at(&clock, SECOND_US), SYSTEM_MS + 60000);
}

// What happens to the host of the ledger while members follow it: its corrected clock goes on
// evenly, or is smeared; replies are slow, or late.
static void test_a_member_follows_evenly(void **state)
{
	(void)state;
	struct clock clock;
	struct ledger l = {.now_us = SECOND_US, .round_us = 1000};
	clock_init(&clock, 0, l.now_us, SYSTEM_MS + 30000);
	struct clock_reply reply = ask(&l, false);
	clock_join(&clock, &reply);
	uint64_t before_ms = clock_at(&clock, l.now_us), before_us = l.now_us;
	for (int second = 0; second < 3000; second++) {
		l.off_ms -= second % 3 == 0; // a leap second, smeared over 3000 s
		l.round_us = second % 10 == 9 ? 400000 : 1000;
		l.now_us += SECOND_US;
		reply = ask(&l, false);
		clock_follow(&clock, &reply);
		int64_t passed_ms = (int64_t)((l.now_us - before_us) / 1000);
		int64_t told_ms = (int64_t)(clock_at(&clock, l.now_us) - before_ms);
		assert_in_range(told_ms - passed_ms + CLOCK_SLEW_MS_PER_S + 1, 0,
			2 * CLOCK_SLEW_MS_PER_S + 2);
		assert_in_range(error_of(&clock, &l) + 10, 0, 20);
		before_ms = clock_at(&clock, l.now_us);
		before_us = l.now_us;
	}
}

// Its host's clock steps; the conductor sets that right within CLOCK_LOST_MS, and nobody followed.
static void test_a_step_of_the_ledgers_host_is_not_followed(void **state)
{
	(void)state;
	const int64_t steps_ms[] = {3600000, -2000, -30000};
	for (int i = 0; i < 3; i++) {
		struct clock clock;
		struct ledger l = {.now_us = SECOND_US, .round_us = 1000};
		clock_init(&clock, 0, l.now_us, SYSTEM_MS);
		struct clock_reply reply = ask(&l, false);
		clock_join(&clock, &reply);
		for (int second = 0; second < 20; second++) {
			l.off_ms = second > 2 && second < 12 ? steps_ms[i] : 0;
			l.now_us += SECOND_US;
			reply = ask(&l, l.off_ms != 0);
			clock_follow(&clock, &reply);
			assert_in_range(clock_at(&clock, l.now_us), SYSTEM_MS + l.now_us / 1000 - 5,
				SYSTEM_MS + l.now_us / 1000 + 5);
		}
	}
}

// CLOCK_MONOTONIC stood still while the machine was suspended; or this clock had begun without the
// ledger, and was ahead.
static void test_who_was_wrong_itself_follows(void **state)
{
	(void)state;
	const int64_t off_ms[] = {600000, -5000};
	for (int i = 0; i < 2; i++) {
		struct clock clock;
		struct ledger l = {.now_us = SECOND_US, .off_ms = off_ms[i], .round_us = 1000};
		clock_init(&clock, 0, l.now_us, SYSTEM_MS + 1000);
		uint64_t before_ms = 0;
		for (int second = 0; second < 25; second++) {
			l.now_us += SECOND_US;
			bool is_skewed = error_of(&clock, &l) > 250 || error_of(&clock, &l) < -250;
			struct clock_reply reply = ask(&l, is_skewed);
			clock_follow(&clock, &reply);
			assert_true(clock_at(&clock, l.now_us) > before_ms);
			before_ms = clock_at(&clock, l.now_us);
		}
		assert_in_range(error_of(&clock, &l) + 250, 0, 500);
	}
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_begins_at_the_systems_time),
		cmocka_unit_test(test_a_restart_does_not_go_back),
		cmocka_unit_test(test_a_restart_takes_a_step_forward),
		cmocka_unit_test(test_steps_are_slewed),
		cmocka_unit_test(test_small_differences_are_corrected),
		cmocka_unit_test(test_a_member_begins_at_the_ledgers_time),
		cmocka_unit_test(test_a_member_does_not_go_back_over_a_restart),
		cmocka_unit_test(test_a_member_follows_evenly),
		cmocka_unit_test(test_a_step_of_the_ledgers_host_is_not_followed),
		cmocka_unit_test(test_who_was_wrong_itself_follows),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
