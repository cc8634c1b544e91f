// Floor, in stories: when a turn is over, and what stands in its way; bounds; the line's words; a
// restart.

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>

#include <cmocka.h>

#include "tests/unit/controller/room.h"

#define CLAIM_S 30u

static const struct controller_limits one_slot = {
	.capacity = 1, .session_s = 600, .claim_s = CLAIM_S, .direct = true};

// A room whose one slot is taken by a newcomer, and `count` tickets, all called.
static struct room room_of_called(uint64_t *keys, int count)
{
	struct room r = room_open(one_slot);
	room_turn(&r);
	assert_int_equal(room_come(&r, 1), CLAIM_GRANTED);
	for (int i = 0; i < count; i++)
		keys[i] = room_mint(&r);
	controller_release(r.controller, (uint64_t)count, r.now_ms);
	room_wait(&r, 20);
	assert_int_equal(room_look(&r).called, count);
	return r;
}

// How long until floor passes `key`, from now; in ms, to a tenth of a second.
static uint64_t lapses_in(struct room *r, uint64_t key)
{
	const uint64_t from = r->now_ms;
	while (r->line->floor <= key && r->now_ms < from + 1000000)
		room_wait(r, 100);
	return r->now_ms - from;
}

static void a_turn_waits_for_the_claim_window_and_the_longest_poll(void **state)
{
	(void)state;
	uint64_t key;
	struct room r = room_of_called(&key, 1);
	// Told 1 s within the second that begins with the first turn: heard by the end of the next.
	const uint64_t waits = lapses_in(&r, key);
	assert_in_range(waits, CLAIM_S * 1000 + 1000, CLAIM_S * 1000 + 2100);
	assert_int_equal(room_poll(&r, key), CLAIM_LAPSED);
	assert_int_equal(room_look(&r).lapsed_total, 1);
	room_wait(&r, 20);
	assert_int_equal(room_look(&r).called, 0);
	room_close(&r);
}

static void who_is_far_away_is_waited_for_longer(void **state)
{
	(void)state;
	struct room r = room_open(one_slot); // one in ten minutes: everybody is far away
	room_turn(&r);
	assert_int_equal(room_come(&r, 1), CLAIM_GRANTED);
	uint64_t keys[5];
	for (int i = 0; i < 5; i++)
		keys[i] = room_mint(&r);
	room_wait(&r, 5000);
	controller_release(r.controller, 5, r.now_ms);
	room_wait(&r, 20);
	const uint64_t waits = lapses_in(&r, keys[4]);
	assert_in_range(waits, CLAIM_S * 1000 + 59000, CLAIM_S * 1000 + 61000);
	room_close(&r);
}

static void floor_never_passes_the_present(void **state)
{
	(void)state;
	uint64_t keys[2];
	struct room r = room_of_called(keys, 2);
	for (int i = 0; i < 200; i++) {
		assert_int_equal(room_poll(&r, keys[0]), CLAIM_NEXT);
		room_wait(&r, 1000ull * r.answer.poll_after);
	}
	assert_true(r.line->floor <= keys[0]);
	// It stays away: a reservation lasts twice the poll_after, its turn somewhat longer.
	const uint64_t waits = lapses_in(&r, keys[0]);
	assert_in_range(waits, 9000 + CONTROLLER_GRACE_S * 100, 13000 + CONTROLLER_GRACE_S * 100);
	assert_int_equal(room_poll(&r, keys[1]), CLAIM_LAPSED);
	room_close(&r);
}

static void a_refused_claim_holds_floor(void **state)
{
	(void)state;
	const uint32_t polls[] = {1, 10, 60, 1000}; // s; more than 60 counts as 60
	for (size_t i = 0; i < sizeof(polls) / sizeof(polls[0]); i++) {
		uint64_t key;
		struct room r = room_of_called(&key, 1);
		room_wait(&r, CLAIM_S * 1000 + 500); // nearly over
		controller_refused(r.controller, key, polls[i], r.now_ms);
		const uint64_t waits = lapses_in(&r, key);
		const uint64_t holds = 2000ull * (polls[i] > 60 ? 60 : polls[i]);
		assert_in_range(waits, holds, holds + 2000);
		room_close(&r);
	}
}

static void an_outage_costs_nobody_the_turn(void **state)
{
	(void)state;
	uint64_t key;
	struct room r = room_of_called(&key, 1);
	room_wait(&r, CLAIM_S * 1000);
	controller_set_available(r.controller, false, r.now_ms);
	room_wait(&r, 500000);
	assert_true(r.line->floor <= key);
	controller_set_available(r.controller, true, r.now_ms);
	assert_in_range(lapses_in(&r, key), CLAIM_S * 1000 + 60000, CLAIM_S * 1000 + 60200);
	room_close(&r);
}

static void a_process_that_stood_still_is_an_outage(void **state)
{
	(void)state;
	const struct {
		uint64_t gap_ms;
		bool is_outage;
	} cases[] = {{CONTROLLER_GAP_MS, false}, {CONTROLLER_GAP_MS + 1, true}, {5000000, true}};
	for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
		uint64_t key;
		struct room r = room_of_called(&key, 1);
		room_wait(&r, CLAIM_S * 1000 - 3000);
		r.now_ms += cases[i].gap_ms; // no turn in between
		room_turn(&r);
		assert_int_equal(room_look(&r).gaps_total, cases[i].is_outage);
		const uint64_t waits = lapses_in(&r, key);
		if (cases[i].is_outage)
			assert_in_range(waits, CLAIM_S * 1000 + 60000, CLAIM_S * 1000 + 60200);
		else
			assert_in_range(waits, 1000, 3200);
		room_close(&r);
	}
}

static void time_that_goes_back_stands_still(void **state)
{
	(void)state;
	struct room r = room_open(one_slot);
	assert_int_equal(room_come(&r, 1), CLAIM_GRANTED);
	const uint32_t expires = r.answer.expires;
	controller_tick(r.controller, r.now_ms - 100000);
	controller_end(r.controller, r.answer.session, 0);
	controller_free(r.controller, r.answer.session, 0);
	r.now_ms -= 50000;
	assert_int_equal(room_come(&r, 2), CLAIM_GRANTED);
	assert_int_equal(r.answer.expires, expires);
	room_close(&r);
}

// --- bounds, at the limit and one beyond

static void left_tickets_are_bounded(void **state)
{
	(void)state;
	struct room r = room_open(one_slot);
	uint64_t keys[11];
	for (int i = 0; i < 11; i++)
		keys[i] = room_mint(&r);
	for (int i = 0; i < 10; i++)
		assert_true(controller_leave(r.controller, keys[i], keys[i], r.now_ms));
	assert_false(controller_leave(r.controller, keys[10], keys[10], r.now_ms));
	assert_int_equal(room_look(&r).left_full_total, 1);
	room_wait(&r, 100);
	// Who left is not called; the one slot is for the last ticket.
	assert_int_equal(room_look(&r).called, 1);
	assert_int_equal(room_poll(&r, keys[10]), CLAIM_GRANTED);
	room_wait(&r, CLAIM_S * 1000 + 65000); // floor has passed them all
	assert_false(controller_leave(r.controller, keys[0], keys[0], r.now_ms));
	const uint64_t more = room_mint(&r);
	assert_true(controller_leave(r.controller, more, more, r.now_ms)); // there is room again
	room_close(&r);
}

static void sessions_are_bounded(void **state)
{
	(void)state;
	struct controller_bounds bounds = room_bounds;
	bounds.sessions_max = 2;
	struct room r = room_open_with(
		(struct controller_limits){.session_s = 10, .claim_s = CLAIM_S, .direct = true},
		bounds);
	uint64_t keys[3];
	for (int i = 0; i < 3; i++)
		keys[i] = room_mint(&r);
	room_wait(&r, 100);
	assert_int_equal(room_poll(&r, keys[0]), CLAIM_GRANTED);
	assert_int_equal(room_poll(&r, keys[1]), CLAIM_GRANTED);
	assert_int_equal(room_poll(&r, keys[2]), CLAIM_NEXT);
	assert_int_equal(room_look(&r).sessions_full_total, 1);
	room_wait(&r, 11000); // over, but the tickets are still to be known
	assert_int_equal(room_poll(&r, keys[2]), CLAIM_NEXT);
	assert_int_equal(room_look(&r).sessions, 0);
	assert_int_equal(r.forgotten, 0);
	room_close(&r);
}

static void the_present_are_bounded(void **state)
{
	(void)state;
	struct controller_bounds bounds = room_bounds;
	bounds.present_max = 2;
	struct room r = room_open_with(one_slot, bounds);
	room_turn(&r);
	assert_int_equal(room_come(&r, 1), CLAIM_GRANTED);
	const uint64_t session = r.answer.session;
	uint64_t keys[4];
	for (int i = 0; i < 4; i++)
		keys[i] = room_mint(&r);
	controller_release(r.controller, 4, r.now_ms);
	room_wait(&r, 20);
	assert_int_equal(room_poll(&r, keys[3]), CLAIM_NEXT);
	assert_int_equal(room_poll(&r, keys[1]), CLAIM_NEXT);
	assert_int_equal(room_poll(&r, keys[0]), CLAIM_NEXT); // keys[3] gives way
	assert_int_equal(room_look(&r).present, 2);
	assert_int_equal(room_look(&r).present_full_total, 1);
	// Three slots: those known and the one that gave way come before the last.
	struct controller_limits limits = one_slot;
	limits.capacity = 3;
	limits.burst = 1;
	controller_end(r.controller, session, r.now_ms);
	controller_free(r.controller, session, r.now_ms);
	controller_set_limits(r.controller, &limits, r.now_ms);
	const uint64_t late = room_mint(&r);
	controller_release(r.controller, 1, r.now_ms);
	room_wait(&r, 20);
	assert_int_equal(room_poll(&r, keys[0]), CLAIM_GRANTED);
	assert_int_equal(room_poll(&r, keys[1]), CLAIM_GRANTED);
	assert_int_equal(room_poll(&r, late), CLAIM_NEXT);
	assert_int_equal(room_poll(&r, keys[3]), CLAIM_GRANTED);
	room_close(&r);
}

static void the_presence_of_nobody_can_be_kept(void **state)
{
	(void)state;
	struct room r =
		room_open_with(one_slot, (struct controller_bounds){.sessions_max = 5, .seed = 1});
	const uint64_t key = room_mint(&r), other = room_mint(&r);
	controller_release(r.controller, 2, r.now_ms);
	room_wait(&r, 100);
	assert_int_equal(room_poll(&r, key), CLAIM_GRANTED);
	assert_int_equal(room_poll(&r, other), CLAIM_NEXT);
	assert_int_equal(room_look(&r).present, 0);
	room_close(&r);
}

// Everybody's session ends in the same second: no turn ends more than it has room for, and the
// slots are free in the end.
static void many_ends_take_several_turns(void **state)
{
	(void)state;
	const uint32_t people = CONTROLLER_CHANGES_MAX;
	struct controller_bounds bounds = room_bounds;
	bounds.sessions_max = people;
	struct room r = room_open_with(
		(struct controller_limits){.session_s = 10, .claim_s = CLAIM_S, .direct = true},
		bounds);
	room_turn(&r);
	for (uint32_t i = 1; i <= people; i++) {
		assert_int_equal(room_come(&r, i), CLAIM_GRANTED);
		if (i % 1000 == 0)
			room_turn(&r);
	}
	assert_int_equal(room_come(&r, people + 1), CLAIM_REFUSED);
	room_turn(&r);
	assert_int_equal(r.granted, people);
	r.now_ms += 10000;
	room_turn(&r);
	assert_in_range(r.ended, 1, CONTROLLER_CHANGES_MAX / 4);
	for (int turn = 0; turn < 8; turn++)
		room_turn(&r);
	assert_int_equal(r.ended, people);
	assert_int_equal(r.forgotten, people);
	assert_int_equal(room_look(&r).sessions, 0);
	room_close(&r);
}

// --- words

static void the_line_bit_follows_the_line(void **state)
{
	(void)state;
	struct room r = room_open(one_slot);
	room_turn(&r);
	assert_int_equal(r.line->open, 1);
	const uint64_t key = room_mint(&r);
	assert_true(r.line->open & PLACE_OPEN_LINE);
	room_wait(&r, 100);
	assert_int_equal(r.line->open, PLACE_OPEN_LINE);
	assert_int_equal(room_poll(&r, key), CLAIM_GRANTED);
	room_wait(&r, 100);
	assert_int_equal(r.line->open, 0);
	const uint64_t other = room_mint(&r); // lapses
	controller_release(r.controller, 1, r.now_ms);
	room_wait(&r, 1000);
	assert_int_equal(r.line->open, PLACE_OPEN_LINE);
	lapses_in(&r, other);
	assert_int_equal(r.line->open, 0);
	room_close(&r);
}

// --- a restart

static void a_restart_takes_over(void **state)
{
	(void)state;
	struct room r = room_open((struct controller_limits){.capacity = 3,
		.session_s = 600,
		.claim_s = CLAIM_S,
		.rate_count = 1,
		.rate_period_ms = 10000,
		.burst = 3});
	uint64_t keys[4];
	for (int i = 0; i < 4; i++)
		keys[i] = room_mint(&r);
	controller_release(r.controller, 3, r.now_ms);
	room_wait(&r, 100);
	assert_int_equal(room_poll(&r, keys[0]), CLAIM_GRANTED);
	const struct claim_answer first = r.answer;
	assert_int_equal(room_poll(&r, keys[1]), CLAIM_GRANTED);
	const uint64_t threshold = r.line->threshold;
	controller_destroy(r.controller);

	r.now_ms += 1000;
	const struct controller_limits limits = {.capacity = 3,
		.session_s = 600,
		.claim_s = CLAIM_S,
		.rate_count = 1,
		.rate_period_ms = 10000,
		.burst = 3};
	place_begin(r.line, r.now_ms / PLACE_SLOT_MS);
	r.controller = controller_create(&limits, &room_bounds, r.line, r.now_ms);
	const struct controller_change known = {.kind = CONTROLLER_GRANTED,
		.expires = first.expires,
		.session = first.session,
		.visitor = keys[0],
		.key = keys[0]};
	assert_true(controller_restore(r.controller, &known, r.now_ms));
	assert_false(controller_restore(r.controller, &known, r.now_ms));
	const struct controller_change used = {.kind = CONTROLLER_ENDED,
		.expires = first.expires,
		.session = 999,
		.visitor = keys[1],
		.key = keys[1]};
	assert_true(controller_restore(r.controller, &used, r.now_ms));
	room_turn(&r);
	assert_true(r.line->threshold >= threshold);
	assert_int_equal(room_look(&r).sessions, 1);
	assert_int_equal(room_poll(&r, keys[0]), CLAIM_GRANTED); // as before
	assert_int_equal(r.answer.session, first.session);
	assert_int_equal(room_poll(&r, keys[1]), CLAIM_LAPSED); // its session is over
	assert_int_equal(room_poll(&r, keys[2]), CLAIM_GRANTED); // the rate's last for now
	room_wait(&r, 500);
	assert_int_equal(room_poll(&r, keys[3]), CLAIM_NEXT);
	assert_in_range(lapses_in(&r, keys[2]), CLAIM_S * 1000 + 58000, CLAIM_S * 1000 + 60200);
	assert_int_equal(r.forgotten, 1); // the used one
	room_close(&r);
}

// Those between floor and threshold who were inside already come no more: the slot that one of them
// gives back calls the next at once, and not when they are given up.
static void after_a_restart_the_used_tickets_are_not_expected(void **state)
{
	(void)state;
	const struct controller_limits limits = {
		.capacity = 1, .session_s = 600, .claim_s = CLAIM_S, .burst = 1};
	struct room r = room_open(limits);
	uint64_t keys[4];
	for (int i = 0; i < 4; i++)
		keys[i] = room_mint(&r);
	for (int i = 0; i < 3; i++) {
		room_wait(&r, 200);
		assert_int_equal(room_poll(&r, keys[i]), CLAIM_GRANTED);
		if (i == 2)
			break;
		assert_true(controller_end(r.controller, r.answer.session, r.now_ms));
		controller_free(r.controller, r.answer.session, r.now_ms);
	}
	const struct claim_answer last = r.answer;
	controller_destroy(r.controller);

	place_begin(r.line, r.now_ms / PLACE_SLOT_MS);
	r.controller = controller_create(&limits, &room_bounds, r.line, r.now_ms);
	for (int i = 0; i < 3; i++) {
		const struct controller_change known = {
			.kind = i < 2 ? CONTROLLER_ENDED : CONTROLLER_GRANTED,
			.expires = last.expires,
			.session = i < 2 ? 900 + (uint64_t)i : last.session,
			.visitor = keys[i],
			.key = keys[i]};
		assert_true(controller_restore(r.controller, &known, r.now_ms));
	}
	room_wait(&r, 200);
	assert_true(controller_end(r.controller, last.session, r.now_ms));
	controller_free(r.controller, last.session, r.now_ms);
	room_wait(&r, 200);
	assert_int_equal(room_poll(&r, keys[3]), CLAIM_GRANTED);
	room_close(&r);
}

// A ticket given back is a change, so that it stays so; and is forgotten when floor has passed it.
static void a_ticket_given_back_outlives_the_process(void **state)
{
	(void)state;
	struct room r = room_open(one_slot);
	const uint64_t key = room_mint(&r), other = room_mint(&r);
	const struct controller_change *changes;
	assert_true(controller_leave(r.controller, key, key, r.now_ms));
	assert_true(controller_leave(r.controller, key, key, r.now_ms)); // again: no change
	assert_int_equal(controller_changes(r.controller, &changes), 1);
	const struct controller_change left = changes[0];
	assert_int_equal(left.kind, CONTROLLER_LEFT);
	assert_true(left.key == key && left.visitor == key && left.session == 0);
	controller_destroy(r.controller);

	struct controller_limits limits = one_slot;
	limits.burst = 1;
	r.controller = controller_create(&limits, &room_bounds, r.line, r.now_ms);
	assert_true(controller_restore(r.controller, &left, r.now_ms));
	assert_int_equal(room_look(&r).waiting, 1);
	room_wait(&r, 200);
	assert_int_equal(room_poll(&r, key), CLAIM_LAPSED);
	assert_int_equal(room_poll(&r, other), CLAIM_GRANTED);
	assert_int_equal(r.forgotten, 0);
	room_wait(&r, 60000 + CLAIM_S * 1000 + 1000);
	assert_true(r.line->floor > key);
	assert_int_equal(r.forgotten, 1);
	room_close(&r);
}

// Nor is one who was called, and gave the ticket back before ever coming.
static void who_gave_the_turn_back_is_not_expected(void **state)
{
	(void)state;
	struct room r = room_open((struct controller_limits){
		.capacity = 1, .session_s = 600, .claim_s = CLAIM_S, .burst = 1});
	const uint64_t first = room_mint(&r), second = room_mint(&r);
	room_wait(&r, 200);
	assert_true(controller_leave(r.controller, first, first, r.now_ms));
	room_wait(&r, 200);
	assert_int_equal(room_poll(&r, second), CLAIM_GRANTED);
	room_close(&r);
}

static void a_threshold_behind_floor_is_mended(void **state)
{
	(void)state;
	struct room r = room_open(one_slot);
	atomic_store(&r.line->floor, place_key_of_ms(r.now_ms)); // pages of different ages
	controller_destroy(r.controller);
	struct controller_limits limits = one_slot;
	limits.burst = 1;
	r.controller = controller_create(&limits, &room_bounds, r.line, r.now_ms);
	room_turn(&r);
	assert_int_equal(r.line->threshold, r.line->floor);
	room_close(&r);
}

static void what_the_store_still_knows_of_long_ago_is_forgotten(void **state)
{
	(void)state;
	struct room r = room_open(one_slot);
	atomic_store(&r.line->threshold, place_key_of_ms(r.now_ms));
	atomic_store(&r.line->floor, place_key_of_ms(r.now_ms));
	controller_destroy(r.controller);
	struct controller_limits limits = one_slot;
	limits.burst = 1;
	r.controller = controller_create(&limits, &room_bounds, r.line, r.now_ms);
	const struct controller_change over[] = {
		{.kind = CONTROLLER_ENDED, .expires = 1, .session = 1, .visitor = 1, .key = 5},
		{.kind = CONTROLLER_GRANTED, .expires = 1, .session = 2, .visitor = 2, .key = 6},
		{.kind = CONTROLLER_GRANTED, .expires = 1, .session = 3, .visitor = 3},
	};
	for (size_t i = 0; i < 3; i++)
		assert_true(controller_restore(r.controller, &over[i], r.now_ms));
	room_turn(&r);
	assert_int_equal(r.ended, 3);
	assert_int_equal(r.forgotten, 3);
	assert_int_equal(room_look(&r).sessions, 0);
	room_close(&r);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(a_turn_waits_for_the_claim_window_and_the_longest_poll),
		cmocka_unit_test(who_is_far_away_is_waited_for_longer),
		cmocka_unit_test(floor_never_passes_the_present),
		cmocka_unit_test(a_refused_claim_holds_floor),
		cmocka_unit_test(an_outage_costs_nobody_the_turn),
		cmocka_unit_test(a_process_that_stood_still_is_an_outage),
		cmocka_unit_test(time_that_goes_back_stands_still),
		cmocka_unit_test(left_tickets_are_bounded),
		cmocka_unit_test(sessions_are_bounded),
		cmocka_unit_test(the_present_are_bounded),
		cmocka_unit_test(the_presence_of_nobody_can_be_kept),
		cmocka_unit_test(many_ends_take_several_turns),
		cmocka_unit_test(the_line_bit_follows_the_line),
		cmocka_unit_test(a_restart_takes_over),
		cmocka_unit_test(after_a_restart_the_used_tickets_are_not_expected),
		cmocka_unit_test(a_ticket_given_back_outlives_the_process),
		cmocka_unit_test(who_gave_the_turn_back_is_not_expected),
		cmocka_unit_test(a_threshold_behind_floor_is_mended),
		cmocka_unit_test(what_the_store_still_knows_of_long_ago_is_forgotten),
	};
	return cmocka_run_group_tests_name("floor", tests, NULL, NULL);
}
