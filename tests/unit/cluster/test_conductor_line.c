// Conductor: threshold and floor of a line, from views.

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>

#include <cmocka.h>

#include "controlplane/controller/controller.h"
#include "dataplane/gate/pace.h"
#include "tests/unit/cluster/desk.h"

// --- thresholds

static void it_calls_as_many_as_there_are_slots(void **state)
{
	(void)state;
	struct desk d;
	desk_open(&d);
	desk_run(&d, 40);
	assert_true(d.view.threshold == desk_key(&d, 100));
	assert_int_equal(d.view.threshold_rank, 100);
	assert_int_equal(d.view.words.called, 100);
	assert_true(d.view.words.at_ms <= d.now_ms && d.view.words.at_ms + 50 > d.now_ms);
	// Nothing moves: once a second.
	assert_int_equal(desk_run(&d, 10 * CONDUCTOR_WORDS_MS), 10);
	assert_int_equal(d.view.threshold_rank, 100);
	// Whoever comes is granted; five leave: five more are called, at once.
	d.view.taken = 95;
	d.view.settled = 100;
	d.view.came_count = 100;
	d.view.came_total = d.view.admitted_total = 100;
	for (uint32_t i = 0; i < 100; i++)
		d.view.came[i] = desk_key(&d, i);
	desk_run(&d, 60);
	d.view.came_count = 0;
	desk_run(&d, 100);
	assert_int_equal(d.view.threshold_rank, 105);
	desk_close(&d);
}

static void what_is_refused_is_said_again(void **state)
{
	(void)state;
	struct desk d;
	desk_open(&d);
	d.threshold_verdict = LEDGER_REFUSED;
	desk_run(&d, 200);
	d.threshold_verdict = LEDGER_DONE;
	desk_run(&d, 2 * CONDUCTOR_TURN_MS + 20);
	assert_int_equal(d.view.threshold_rank, 100);
	desk_close(&d);
}

static void a_closed_line_is_said_at_once_and_stands(void **state)
{
	(void)state;
	struct desk d;
	desk_open(&d);
	desk_run(&d, 200);
	conductor_set_open(d.conductor, LINE, false, d.now_ms);
	d.view.taken = 0;
	desk_batch(&d);
	desk_batch(&d);
	assert_non_null(desk_said(&d, LEDGER_THRESHOLD));
	assert_false(desk_said(&d, LEDGER_THRESHOLD)->threshold.is_open);
	// Nobody is called, and no turn ends, for an hour.
	assert_int_equal(desk_run(&d, 3600000 / 100), 36);
	d.now_ms += 3600000;
	desk_run(&d, 100);
	assert_int_equal(d.view.threshold_rank, 100);
	assert_true(d.view.floor == 0);
	conductor_set_open(d.conductor, LINE, true, d.now_ms);
	desk_run(&d, (PACE_MAX_S + 30) * 1000 - 1000);
	assert_true(d.view.floor == 0);
	desk_run(&d, 3000 + CONDUCTOR_HEARD_MS);
	assert_true(d.view.floor == desk_key(&d, 100));
	desk_close(&d);
}

static void more_are_released_by_who_is_in_office(void **state)
{
	(void)state;
	struct desk d;
	desk_open(&d);
	assert_false(conductor_release(d.conductor, LINE, 5));
	desk_run(&d, 100);
	assert_true(conductor_release(d.conductor, LINE, 5));
	assert_false(conductor_release(d.conductor, LINE + 1, 5));
	desk_run(&d, 100);
	assert_int_equal(d.view.threshold_rank, 105);
	desk_close(&d);
}

static void an_event_that_is_over_passes_everybody(void **state)
{
	(void)state;
	struct desk d;
	desk_open(&d);
	desk_run(&d, 100);
	d.view.first_present = desk_key(&d, 3);
	conductor_lapse(d.conductor, LINE, desk_key(&d, 200));
	bool is_said = false;
	for (int i = 0; i < 20; i++) {
		const uint64_t floor = d.view.floor;
		desk_batch(&d);
		const bool now = desk_said(&d, LEDGER_THRESHOLD) &&
				 desk_said(&d, LEDGER_THRESHOLD)->threshold.is_lapse;
		if (now && !is_said) // the first time the ledger loses it
			d.view.floor = floor;
		is_said |= now;
	}
	assert_true(is_said);
	assert_false(desk_said(&d, LEDGER_THRESHOLD) &&
		     desk_said(&d, LEDGER_THRESHOLD)->threshold.is_lapse);
	assert_true(d.view.floor == desk_key(&d, 200) && d.view.threshold >= d.view.floor);
	assert_int_equal(d.view.floor_rank, 200);
	desk_close(&d);
}

// Tickets given back are not counted among those called.
static void who_has_left_is_skipped(void **state)
{
	(void)state;
	struct desk d;
	desk_open(&d);
	for (uint64_t i = 0; i < 20; i++) {
		const uint64_t key = place_key(START_MS / PLACE_SLOT_MS - TICKETS + 50 + i, 0, 0);
		conductor_left(d.conductor, LINE, key, i);
		conductor_left(d.conductor, LINE, key, i); // again: nothing
	}
	d.view.settled = 20;
	desk_run(&d, 100);
	assert_int_equal(d.view.threshold_rank, 120);
	desk_close(&d);
}

// Who came is looked for again at once where there were as many as an answer holds.
static void who_came_is_asked_for_until_all_are_told(void **state)
{
	(void)state;
	struct desk d;
	desk_open(&d);
	desk_run(&d, 200);
	d.view.came_count = LEDGER_CAME_MAX;
	while (!desk_said(&d, LEDGER_VIEW))
		desk_batch(&d);
	desk_batch(&d);
	assert_non_null(desk_said(&d, LEDGER_VIEW));
	d.view.came_count = LEDGER_CAME_MAX - 1;
	desk_batch(&d);
	desk_batch(&d);
	assert_null(desk_said(&d, LEDGER_VIEW));
	desk_close(&d);
}

// A line whose sibling has not been seen would take all that they share.
static void nothing_is_called_before_all_are_seen(void **state)
{
	(void)state;
	struct desk d;
	desk_open(&d);
	struct conductor_node nodes[60];
	for (uint32_t i = 0; i < 59; i++)
		nodes[i] = desk_pool(100 + i, 0);
	nodes[59] = desk_line(&d);
	nodes[0] = nodes[59];
	nodes[59] = desk_pool(100, 0);
	assert_true(conductor_set_nodes(d.conductor, nodes, 60, d.now_ms));
	bool is_seen = false, is_all_seen = false;
	for (int i = 0; i < 10; i++) {
		is_all_seen |= is_seen && desk_said(&d, LEDGER_VIEW);
		is_seen |= desk_said(&d, LEDGER_VIEW) != NULL;
		desk_batch(&d);
		assert_true(is_all_seen || !desk_said(&d, LEDGER_THRESHOLD));
	}
	assert_int_equal(d.view.threshold_rank, 100);
	desk_close(&d);
}

// Out of office nobody says how far floor is; what it has passed gives way to the others.
static void the_last_who_left_are_known(void **state)
{
	(void)state;
	struct desk d;
	desk_open(&d);
	for (uint64_t i = 0; i < 130; i++) // thirty more than the ledger holds at once
		conductor_left(d.conductor, LINE,
			place_key(START_MS / PLACE_SLOT_MS - TICKETS + i, 0, 0), i);
	d.view.floor = d.view.threshold = desk_key(&d, 30);
	d.view.floor_rank = d.view.threshold_rank = 30;
	d.view.settled = 100;
	desk_run(&d, 100);
	assert_int_equal(d.view.threshold_rank, 230);
	desk_close(&d);
}

// What a view cannot say is not believed.
static void a_ledger_that_counts_wrongly_is_lived_with(void **state)
{
	(void)state;
	struct desk d;
	desk_open(&d);
	desk_run(&d, 100);
	d.view.admitted_total = d.view.ended_total = UINT64_MAX >> 12;
	desk_run(&d, 100);
	d.view.admitted_total = d.view.ended_total = 5; // backwards
	d.view.words.yield = UINT32_MAX;
	desk_run(&d, 100);
	assert_true(d.view.threshold_rank >= 100);
	desk_close(&d);
}

// --- floor

// Everybody was called in the first turn; when the last turn is over floor passes them all.
#define OVER_MS (PACE_MAX_S * 1000 + 30000 + CONDUCTOR_HEARD_MS + 2000)

static void floor_waits_for_turns_and_for_the_held(void **state)
{
	(void)state;
	struct desk d;
	desk_open(&d);
	d.view.first_held = desk_key(&d, 40);
	desk_run(&d, 30000);
	assert_true(d.view.floor == 0);
	desk_run(&d, OVER_MS - 30000);
	assert_true(d.view.floor == desk_key(&d, 40));
	d.view.first_held = UINT64_MAX;
	d.view.first_present = desk_key(&d, 60);
	desk_run(&d, 1000);
	assert_true(d.view.floor == desk_key(&d, 60));
	d.view.first_present = UINT64_MAX; // gone; but whose answer was lost is waited for
	desk_run(&d, CONTROLLER_GRACE_S * 1000 - 1500);
	assert_true(d.view.floor == desk_key(&d, 60));
	desk_run(&d, 4000);
	assert_true(d.view.floor >= desk_key(&d, 100));
	desk_close(&d);
}

static void floor_waits_for_a_member_that_is_unheard_of(void **state)
{
	(void)state;
	static const struct {
		bool is_live, has_left, is_held;
	} cases[] = {{true, false, false}, {false, true, false}, {false, false, true}};
	for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
		struct desk d;
		struct conductor_status status;
		desk_open(&d);
		d.member_count = 2;
		d.members[0] = (struct ledger_member){.number = 0, .is_live = true};
		d.members[1] = (struct ledger_member){
			.number = 5, .is_live = cases[i].is_live, .has_left = cases[i].has_left};
		desk_run(&d, OVER_MS);
		conductor_look(d.conductor, &status);
		assert_int_equal(status.is_floor_held, cases[i].is_held);
		assert_int_equal(status.unheard, cases[i].is_held);
		assert_int_equal(d.view.floor == 0, cases[i].is_held);
		if (cases[i].is_held) { // back: turns begin anew
			d.members[1].is_live = true;
			desk_run(&d, PACE_MAX_S * 1000);
			assert_true(d.view.floor == 0);
			desk_run(&d, OVER_MS - PACE_MAX_S * 1000);
			assert_true(d.view.floor > 0);
		}
		desk_close(&d);
	}
}

static void floor_does_not_wait_for_ever(void **state)
{
	(void)state;
	struct desk d;
	struct conductor_status status;
	desk_open(&d);
	d.member_count = 1;
	d.members[0] = (struct ledger_member){.number = 5};
	desk_run(&d, CONDUCTOR_FLOOR_HOLD_MS - 100);
	conductor_look(d.conductor, &status);
	assert_true(status.is_floor_held && d.view.floor == 0);
	desk_run(&d, 200);
	conductor_look(d.conductor, &status);
	assert_true(!status.is_floor_held && status.unheard == 1);
	desk_run(&d, OVER_MS);
	assert_true(d.view.floor > 0);
	desk_close(&d);
}

// --- taking over

static void it_goes_on_where_another_left_it(void **state)
{
	(void)state;
	struct desk d;
	desk_open(&d);
	d.view.threshold = desk_key(&d, 80);
	d.view.threshold_rank = 80;
	d.view.floor = desk_key(&d, 20);
	d.view.floor_rank = 20;
	d.view.taken = 70;
	d.view.settled = 55;
	// Of 80 called, 20 are passed and 55 used: 5 may come. 30 slots: 25 more.
	desk_run(&d, 100);
	assert_int_equal(d.view.threshold_rank, 105);
	assert_true(d.view.floor == desk_key(&d, 20));
	desk_run(&d, PACE_MAX_S * 1000 + 29000);
	assert_true(d.view.floor == desk_key(&d, 20));
	desk_close(&d);
}

static void it_believes_fresh_words(void **state)
{
	(void)state;
	static const struct {
		uint64_t ago_ms;
		uint32_t called, came, yield;
		uint32_t threshold_rank;
	} cases[] = {
		{100, 40, 36, 65536, 80 + 26}, // four may come yet
		{100, 0, 0, 65536, 80 + 30}, // nobody
		{100, 20, 0, 32768, 80 + 40}, // half of those called come
		{6000, 0, 0, 65536, 80 + 25}, // too old: all of whom nothing is known
		{100, 0, 0, 0, 80 + 25}, // none
	};
	for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
		struct desk d;
		desk_open(&d);
		d.view.threshold = desk_key(&d, 80);
		d.view.threshold_rank = 80;
		d.view.floor = desk_key(&d, 20);
		d.view.floor_rank = 20;
		d.view.taken = 70;
		d.view.settled = 55;
		d.view.words = (struct ledger_words){.at_ms = d.now_ms - cases[i].ago_ms,
			.called = cases[i].called,
			.came = cases[i].came,
			.expect_ms = 8000,
			.yield = cases[i].yield};
		desk_run(&d, 100);
		assert_int_equal(d.view.threshold_rank, cases[i].threshold_rank);
		desk_close(&d);
	}
}

// It does not move a line whose ranks it does not know so far.
static void it_waits_until_ranks_are_known(void **state)
{
	(void)state;
	struct desk d;
	desk_open(&d);
	d.view.threshold = place_key_of_ms(START_MS + 1000);
	assert_int_equal(desk_run(&d, 500), 0);
	place_close(d.place, (START_MS + 1000) / PLACE_SLOT_MS);
	assert_true(desk_run(&d, 200) > 0);
	desk_close(&d);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(it_calls_as_many_as_there_are_slots),
		cmocka_unit_test(what_is_refused_is_said_again),
		cmocka_unit_test(a_closed_line_is_said_at_once_and_stands),
		cmocka_unit_test(more_are_released_by_who_is_in_office),
		cmocka_unit_test(an_event_that_is_over_passes_everybody),
		cmocka_unit_test(who_has_left_is_skipped),
		cmocka_unit_test(the_last_who_left_are_known),
		cmocka_unit_test(a_ledger_that_counts_wrongly_is_lived_with),
		cmocka_unit_test(who_came_is_asked_for_until_all_are_told),
		cmocka_unit_test(nothing_is_called_before_all_are_seen),
		cmocka_unit_test(floor_waits_for_turns_and_for_the_held),
		cmocka_unit_test(floor_waits_for_a_member_that_is_unheard_of),
		cmocka_unit_test(floor_does_not_wait_for_ever),
		cmocka_unit_test(it_goes_on_where_another_left_it),
		cmocka_unit_test(it_believes_fresh_words),
		cmocka_unit_test(it_waits_until_ranks_are_known),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
