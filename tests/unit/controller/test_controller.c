// The controller, in stories: who is granted, and when a slot is free.

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>

#include <cmocka.h>

#include "dataplane/gate/gather.h"
#include "tests/unit/controller/room.h"

static const struct controller_limits two_slots = {
	.capacity = 2, .session_s = 60, .claim_s = 30, .direct = true};
static const struct controller_limits one_slot = {
	.capacity = 1, .session_s = 60, .claim_s = 30, .direct = true};

static void newcomers_enter_while_there_are_slots(void **state)
{
	(void)state;
	struct room r = room_open(two_slots);
	room_turn(&r);
	assert_int_equal(r.line->open, 2);
	assert_int_equal(room_come(&r, 1), CLAIM_GRANTED);
	assert_int_equal(room_come(&r, 2), CLAIM_GRANTED);
	assert_int_equal(room_come(&r, 3), CLAIM_REFUSED);
	room_turn(&r);
	assert_int_equal(r.line->open, 0);
	assert_int_equal(r.granted, 2);
	room_close(&r);
}

// Two came at once and saw nobody wait; a third found no slot and drew a ticket before control
// heard of any. The ticket does not stand before them.
static void a_burst_fills_the_slots(void **state)
{
	(void)state;
	struct room r = room_open(two_slots);
	room_turn(&r);
	const uint64_t key = room_mint(&r);
	assert_int_equal(room_come(&r, 1), CLAIM_GRANTED);
	assert_int_equal(room_come(&r, 2), CLAIM_GRANTED);
	assert_int_equal(room_come(&r, 3), CLAIM_REFUSED);
	room_wait(&r, 100);
	assert_int_not_equal(room_poll(&r, key), CLAIM_GRANTED);
	room_close(&r);
}

static void nobody_enters_before_those_who_wait(void **state)
{
	(void)state;
	struct room r = room_open(two_slots);
	room_turn(&r);
	const uint64_t key = room_mint(&r); // after control has published
	assert_int_equal(r.line->open, PLACE_OPEN_LINE | 2);
	r.now_ms += 3 * PLACE_SLOT_MS; // the first slot after a start is fresh
	assert_int_equal(room_come(&r, 1), CLAIM_REFUSED);
	room_wait(&r, 100);
	assert_int_equal(r.line->open, PLACE_OPEN_LINE);
	assert_int_equal(room_poll(&r, key), CLAIM_GRANTED);
	assert_int_equal(room_come(&r, 1), CLAIM_GRANTED); // the ticket was used
	room_close(&r);
}

static void tickets_that_were_given_back_are_not_waited_for(void **state)
{
	(void)state;
	struct room r = room_open(two_slots);
	const uint64_t key = room_mint(&r);
	assert_true(controller_leave(r.controller, key, key, r.now_ms));
	assert_true(controller_leave(r.controller, key, key, r.now_ms)); // twice is once
	assert_int_equal(room_come(&r, 1), CLAIM_GRANTED);
	room_wait(&r, 100);
	assert_int_equal(r.line->open, 1);
	assert_int_equal(room_poll(&r, key), CLAIM_LAPSED);
	assert_int_equal(room_look(&r).left_total, 1);
	room_close(&r);
}

// As a draw is: the visitor's id is the key that was drawn for them.
static bool drawn(void *ctx, uint64_t number, uint64_t visitor, uint64_t *key)
{
	const uint64_t *is_drawn = ctx;
	*key = number == 7 ? visitor : 0;
	return number == *is_drawn;
}

static void who_left_before_the_draw_is_not_called(void **state)
{
	(void)state;
	struct room r = room_open(two_slots);
	uint64_t keys[6], none = 0, seven = 7;
	for (int i = 0; i < 6; i++)
		keys[i] = room_mint(&r);
	for (int i = 0; i < 4; i++)
		for (int twice = 0; twice < 2; twice++)
			assert_true(controller_leave(
				r.controller, GATHER_NUMBER | 7, keys[i], r.now_ms));
	assert_true(controller_leave(r.controller, GATHER_NUMBER | 5, 1, r.now_ms));
	assert_int_equal(room_look(&r).left_total, 5);
	assert_int_equal(room_look(&r).waiting, 1); // 6 and one of another gathering
	controller_drawn(r.controller, drawn, &none);
	assert_true(controller_leave(r.controller, GATHER_NUMBER | 7, keys[0], r.now_ms));
	controller_drawn(r.controller, drawn, &seven);
	room_wait(&r, 100);
	assert_int_equal(room_look(&r).called, 2); // the two behind them
	for (int i = 0; i < 4; i++)
		assert_int_equal(room_poll(&r, keys[i]), CLAIM_LAPSED);
	assert_int_equal(room_poll(&r, keys[4]), CLAIM_GRANTED);
	assert_int_equal(room_poll(&r, keys[5]), CLAIM_GRANTED);
	// Given back a second time, by its key, since its gathering's number was known still.
	assert_true(controller_leave(r.controller, GATHER_NUMBER | 7, keys[0], r.now_ms));
	controller_drawn(r.controller, drawn, &seven);
	// One whose gathering floor has passed is forgotten, like those that it passes.
	const uint32_t forgotten = r.forgotten;
	uint64_t five = 5;
	controller_drawn(r.controller, drawn, &five);
	room_wait(&r, 30 * 1000 + 65000);
	assert_int_equal(r.forgotten - forgotten, 5 + 2); // with two sessions
	room_close(&r);
}

static void as_many_are_called_as_there_are_slots(void **state)
{
	(void)state;
	struct room r = room_open(two_slots);
	uint64_t keys[5];
	for (int i = 0; i < 5; i++)
		keys[i] = room_mint(&r);
	room_wait(&r, 100);
	assert_int_equal(room_look(&r).called, 2);
	assert_int_equal(room_look(&r).waiting, 3);
	assert_true(r.line->threshold > keys[1] && r.line->threshold <= keys[2]);
	assert_int_equal(r.line->threshold_rank, 2);
	assert_int_equal(room_poll(&r, keys[3]), CLAIM_NEXT); // was not called
	assert_int_equal(room_look(&r).present, 0);
	room_close(&r);
}

// Three tickets, all called, one slot, and the last of them has it.
static struct room room_of_three(uint64_t keys[3])
{
	struct room r = room_open(one_slot);
	for (int i = 0; i < 3; i++)
		keys[i] = room_mint(&r);
	controller_release(r.controller, 3, r.now_ms);
	room_wait(&r, 100);
	assert_int_equal(room_poll(&r, keys[2]), CLAIM_GRANTED); // nobody else is there
	return r;
}

static void give_slot_back(struct room *r, uint64_t session)
{
	assert_true(controller_end(r->controller, session, r->now_ms));
	controller_free(r->controller, session, r->now_ms);
}

static void a_free_slot_waits_for_the_smallest_present(void **state)
{
	(void)state;
	uint64_t keys[3];
	struct room r = room_of_three(keys);
	const uint64_t session = r.answer.session;
	assert_int_equal(room_poll(&r, keys[1]), CLAIM_NEXT);
	assert_int_equal(room_poll(&r, keys[0]), CLAIM_NEXT);
	assert_int_equal(room_look(&r).reserved, 0);
	give_slot_back(&r, session);
	assert_int_equal(room_look(&r).reserved, 1);
	assert_int_equal(room_poll(&r, keys[1]), CLAIM_NEXT); // reserved for the other
	assert_int_equal(room_poll(&r, keys[0]), CLAIM_GRANTED);
	assert_int_equal(room_look(&r).overtakes_total, 0);
	room_close(&r);
}

static void a_reservation_ends_with_presence(void **state)
{
	(void)state;
	uint64_t keys[3];
	struct room r = room_of_three(keys);
	const uint64_t session = r.answer.session;
	assert_int_equal(room_poll(&r, keys[0]), CLAIM_NEXT);
	assert_int_equal(r.answer.poll_after, 1);
	give_slot_back(&r, session);
	r.now_ms += 2000;
	assert_int_equal(room_poll(&r, keys[1]), CLAIM_NEXT); // twice the poll_after, so far
	r.now_ms += CONTROLLER_LATER_MS;
	assert_int_equal(room_poll(&r, keys[1]), CLAIM_GRANTED);
	assert_int_equal(room_poll(&r, keys[0]), CLAIM_NEXT); // comes too late for it
	room_close(&r);
}

static void one_visitor_has_one_session(void **state)
{
	(void)state;
	struct room r = room_open(two_slots);
	const uint64_t key = room_mint(&r);
	room_wait(&r, 130);
	assert_int_equal(room_poll(&r, key), CLAIM_GRANTED);
	const struct claim_answer first = r.answer;
	assert_int_equal(first.key, key);
	assert_int_equal(first.issued, r.now_ms / 1000);
	room_wait(&r, 5000);
	assert_int_equal(room_poll(&r, key), CLAIM_GRANTED);
	assert_int_equal(r.answer.session, first.session);
	assert_int_equal(r.answer.expires, first.expires);
	assert_int_equal(room_look(&r).sessions, 1);
	r.now_ms = first.expires * 1000ull;
	assert_int_equal(room_poll(&r, key), CLAIM_LAPSED);
	assert_false(controller_leave(r.controller, key, key, r.now_ms)); // it was used
	room_close(&r);
}

static void a_slot_is_free_at_the_second_and_not_before(void **state)
{
	(void)state;
	const struct {
		uint64_t at_ms;
		uint32_t expires_s;
	} cases[] = {{0, 60}, {1, 61}, {999, 61}, {1000, 61}};
	for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
		struct room r = room_open(one_slot);
		r.now_ms += cases[i].at_ms;
		assert_int_equal(room_come(&r, 1), CLAIM_GRANTED);
		assert_int_equal(r.answer.expires, ROOM_START_MS / 1000 + cases[i].expires_s);
		const uint64_t end_ms = r.answer.expires * 1000ull;
		room_wait(&r, end_ms - 1 - r.now_ms);
		assert_int_equal(room_come(&r, 2), CLAIM_REFUSED);
		room_wait(&r, 1);
		assert_int_equal(room_come(&r, 2), CLAIM_GRANTED);
		room_turn(&r);
		assert_int_equal(r.ended, 1);
		assert_int_equal(r.forgotten, 1); // it had no ticket
		room_close(&r);
	}
}

static void a_session_that_ends_early_keeps_its_slot_until_all_know(void **state)
{
	(void)state;
	struct room r = room_open(one_slot);
	const uint64_t key = room_mint(&r);
	room_wait(&r, 100);
	assert_int_equal(room_poll(&r, key), CLAIM_GRANTED);
	const uint64_t session = r.answer.session;
	assert_false(controller_end(r.controller, session + 99, r.now_ms));
	assert_true(controller_end(r.controller, session, r.now_ms));
	assert_false(controller_end(r.controller, session, r.now_ms));
	assert_int_equal(room_look(&r).sessions, 1);
	assert_int_equal(room_poll(&r, key), CLAIM_LAPSED);
	controller_free(r.controller, session, r.now_ms);
	assert_int_equal(room_look(&r).sessions, 0);
	assert_int_equal(room_poll(&r, key), CLAIM_LAPSED);
	room_turn(&r);
	assert_int_equal(r.ended, 1);
	assert_int_equal(r.forgotten, 0); // not before floor has passed the ticket
	room_wait(&r, 30000 + 61000);
	assert_int_equal(r.forgotten, 1);
	room_close(&r);
}

static void an_undelivered_newcomer_is_undone(void **state)
{
	(void)state;
	struct room r = room_open(one_slot);
	assert_int_equal(room_come(&r, 1), CLAIM_GRANTED);
	controller_gone(r.controller, 1, r.answer.session + 5, r.now_ms); // of another
	assert_int_equal(room_look(&r).sessions, 1);
	controller_gone(r.controller, 1, r.answer.session, r.now_ms);
	assert_int_equal(room_look(&r).sessions, 0);
	room_turn(&r);
	assert_int_equal(r.ended, 1);
	assert_int_equal(r.forgotten, 1);
	assert_int_equal(room_look(&r).undone_total, 1);

	const uint64_t key = room_mint(&r);
	room_wait(&r, 100);
	assert_int_equal(room_poll(&r, key), CLAIM_GRANTED);
	const struct claim_answer first = r.answer;
	controller_gone(r.controller, key, first.session, r.now_ms);
	room_wait(&r, 1000);
	assert_int_equal(room_poll(&r, key), CLAIM_GRANTED); // it is kept for the next poll
	assert_int_equal(r.answer.session, first.session);
	room_close(&r);
}

static void renewals(void **state)
{
	(void)state;
	// A session granted at 0 s that lasts 60 s; asked at 40 s.
	const struct {
		const char *what;
		bool sliding;
		int64_t pass_expires_s; // of the pass presented, from the start; 0: the origin asks
		uint32_t end_s;
	} cases[] = {
		{"sliding, pass of today's end", true, 60, 100},
		{"sliding, pass of an older end", true, 50, 60},
		{"sliding, the origin asks", true, 0, 100},
		{"fixed, pass of today's end", false, 60, 60},
		{"fixed, the origin asks", false, 0, 100},
	};
	for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
		struct controller_limits limits = one_slot;
		limits.sliding = cases[i].sliding;
		struct room r = room_open(limits);
		assert_int_equal(room_come(&r, 1), CLAIM_GRANTED);
		const struct claim claim = {.kind = CLAIM_RENEW,
			.visitor = 1,
			.session = r.answer.session,
			.expires = cases[i].pass_expires_s ? (uint32_t)(ROOM_START_MS / 1000 +
									cases[i].pass_expires_s)
							   : 0};
		room_wait(&r, 40000);
		for (int tab = 0; tab < 2; tab++) { // asking twice changes nothing
			assert_int_equal(room_ask(&r, claim), CLAIM_RENEWED);
			if (r.answer.expires != ROOM_START_MS / 1000 + cases[i].end_s)
				fail_msg("%s: ends at %u", cases[i].what,
					(unsigned)(r.answer.expires - ROOM_START_MS / 1000));
		}
		room_turn(&r);
		assert_int_equal(r.renewed, cases[i].end_s > 60);
		struct claim other = claim;
		other.session++;
		assert_int_equal(room_ask(&r, other), CLAIM_LAPSED);
		r.now_ms = ROOM_START_MS + cases[i].end_s * 1000ull;
		assert_int_equal(room_ask(&r, claim), CLAIM_LAPSED);
		room_close(&r);
	}
}

static void capacity_may_change_at_any_time(void **state)
{
	(void)state;
	struct room r = room_open(two_slots);
	room_come(&r, 1);
	room_come(&r, 2);
	struct controller_limits limits = one_slot;
	limits.burst = 1;
	controller_set_limits(r.controller, &limits, r.now_ms);
	assert_int_equal(room_come(&r, 3), CLAIM_REFUSED);
	limits.capacity = 3;
	controller_set_limits(r.controller, &limits, r.now_ms);
	assert_int_equal(room_come(&r, 3), CLAIM_GRANTED);
	assert_int_equal(room_come(&r, 4), CLAIM_REFUSED);
	limits.capacity = 0;
	controller_set_limits(r.controller, &limits, r.now_ms);
	assert_int_equal(room_come(&r, 4), CLAIM_GRANTED);
	room_close(&r);
}

static void a_rate_is_charged_when_the_pass_is_issued(void **state)
{
	(void)state;
	struct room r = room_open((struct controller_limits){.rate_count = 2,
		.rate_period_ms = 1000,
		.burst = 2,
		.session_s = 60,
		.claim_s = 30});
	uint64_t keys[6];
	for (int i = 0; i < 6; i++)
		keys[i] = room_mint(&r);
	room_wait(&r, 1000);
	assert_int_equal(room_poll(&r, keys[1]), CLAIM_GRANTED);
	assert_int_equal(room_poll(&r, keys[0]), CLAIM_GRANTED);
	assert_int_equal(room_poll(&r, keys[2]), CLAIM_NEXT);
	room_wait(&r, 499);
	assert_int_equal(room_poll(&r, keys[2]), CLAIM_NEXT);
	room_wait(&r, 1);
	assert_int_equal(room_poll(&r, keys[3]), CLAIM_GRANTED); // holds a reservation as well
	assert_int_equal(room_look(&r).overtakes_total, 1);
	room_close(&r);
}

static void a_claim_is_put_off_till_its_turn_is_there(void **state)
{
	(void)state;
	struct room r = room_open((struct controller_limits){.rate_count = 1,
		.rate_period_ms = 1000,
		.burst = 1,
		.session_s = 60,
		.claim_s = 30});
	const uint64_t key = room_mint(&r), other = room_mint(&r);
	struct claim_answer answer;
	uint8_t worker;
	room_wait(&r, 100);
	assert_int_equal(room_poll(&r, key), CLAIM_GRANTED);
	struct claim claim = {
		.kind = CLAIM_CALLED, .key = other, .visitor = other, .worker = 3, .request = 17};
	r.now_ms += 200; // 800 ms to go: too long
	claim.sent_ms = r.now_ms;
	assert_true(controller_claim(r.controller, &claim, 77, r.now_ms, &answer));
	assert_int_equal(answer.verdict, CLAIM_NEXT);
	r.now_ms += 200;
	claim.sent_ms = r.now_ms;
	assert_false(controller_claim(r.controller, &claim, 77, r.now_ms, &answer));
	assert_true(controller_claim(r.controller, &claim, 78, r.now_ms, &answer)); // another tab
	assert_int_equal(answer.verdict, CLAIM_NEXT);
	r.now_ms += 599;
	assert_false(controller_later(r.controller, r.now_ms, &answer, &worker));
	r.now_ms += 1;
	assert_true(controller_later(r.controller, r.now_ms, &answer, &worker));
	assert_int_equal(answer.verdict, CLAIM_GRANTED);
	assert_int_equal(answer.session, 77);
	assert_int_equal(answer.request, 17);
	assert_int_equal(worker, 3);
	assert_false(controller_later(r.controller, r.now_ms, &answer, &worker));
	room_close(&r);
}

static void a_claim_that_was_put_off_in_vain_is_told_next(void **state)
{
	(void)state;
	struct controller_limits limits = one_slot;
	limits.session_s = 1;
	struct room r = room_open(limits);
	const uint64_t key = room_mint(&r), other = room_mint(&r);
	controller_release(r.controller, 2, r.now_ms);
	room_wait(&r, 100);
	assert_int_equal(room_poll(&r, other), CLAIM_GRANTED); // ends at 2 s
	r.now_ms = ROOM_START_MS + 1400;
	struct claim claim = {
		.kind = CLAIM_CALLED, .key = key, .visitor = key, .sent_ms = r.now_ms};
	struct claim_answer answer;
	uint8_t worker;
	assert_false(controller_claim(r.controller, &claim, 9, r.now_ms, &answer));
	controller_set_available(r.controller, false, r.now_ms); // paused meanwhile
	assert_true(controller_later(r.controller, r.now_ms, &answer, &worker));
	assert_int_equal(answer.verdict, CLAIM_NEXT);
	room_close(&r);
}

static void release_calls_more_but_grants_no_more(void **state)
{
	(void)state;
	struct room r = room_open(one_slot);
	uint64_t keys[5];
	for (int i = 0; i < 5; i++)
		keys[i] = room_mint(&r);
	room_wait(&r, 100);
	assert_int_equal(room_look(&r).called, 1);
	controller_set_available(r.controller, false, r.now_ms);
	controller_release(r.controller, 2, r.now_ms);
	room_wait(&r, 100);
	assert_int_equal(room_look(&r).called, 1); // paused
	controller_set_available(r.controller, true, r.now_ms);
	room_wait(&r, 100);
	assert_int_equal(room_look(&r).called, 3);
	assert_int_equal(room_poll(&r, keys[2]), CLAIM_GRANTED);
	assert_int_equal(room_poll(&r, keys[0]), CLAIM_NEXT);
	assert_int_equal(room_poll(&r, keys[4]), CLAIM_NEXT);
	controller_release(r.controller, UINT64_MAX, r.now_ms);
	controller_release(r.controller, UINT64_MAX, r.now_ms);
	room_wait(&r, 100);
	assert_int_equal(room_look(&r).waiting, 0);
	room_close(&r);
}

static void nothing_is_granted_while_paused(void **state)
{
	(void)state;
	struct room r = room_open(two_slots);
	const uint64_t key = room_mint(&r);
	room_wait(&r, 100);
	controller_set_available(r.controller, false, r.now_ms);
	room_turn(&r);
	assert_true(r.line->open & PLACE_OPEN_HOLD);
	assert_int_equal(room_poll(&r, key), CLAIM_NEXT);
	assert_int_equal(room_come(&r, 1), CLAIM_REFUSED);
	controller_set_available(r.controller, true, r.now_ms);
	assert_int_equal(room_poll(&r, key), CLAIM_GRANTED);
	controller_set_available(r.controller, false, r.now_ms);
	assert_int_equal(room_poll(&r, key), CLAIM_GRANTED); // the session it has
	room_close(&r);
}

static void mode_always_draws_a_place_for_everyone(void **state)
{
	(void)state;
	struct controller_limits limits = two_slots;
	limits.direct = false;
	struct room r = room_open(limits);
	room_turn(&r);
	assert_int_equal(r.line->open, 0);
	assert_int_equal(room_come(&r, 1), CLAIM_REFUSED);
	room_close(&r);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(newcomers_enter_while_there_are_slots),
		cmocka_unit_test(a_burst_fills_the_slots),
		cmocka_unit_test(nobody_enters_before_those_who_wait),
		cmocka_unit_test(tickets_that_were_given_back_are_not_waited_for),
		cmocka_unit_test(who_left_before_the_draw_is_not_called),
		cmocka_unit_test(as_many_are_called_as_there_are_slots),
		cmocka_unit_test(a_free_slot_waits_for_the_smallest_present),
		cmocka_unit_test(a_reservation_ends_with_presence),
		cmocka_unit_test(one_visitor_has_one_session),
		cmocka_unit_test(a_slot_is_free_at_the_second_and_not_before),
		cmocka_unit_test(a_session_that_ends_early_keeps_its_slot_until_all_know),
		cmocka_unit_test(an_undelivered_newcomer_is_undone),
		cmocka_unit_test(renewals),
		cmocka_unit_test(capacity_may_change_at_any_time),
		cmocka_unit_test(a_rate_is_charged_when_the_pass_is_issued),
		cmocka_unit_test(a_claim_is_put_off_till_its_turn_is_there),
		cmocka_unit_test(a_claim_that_was_put_off_in_vain_is_told_next),
		cmocka_unit_test(release_calls_more_but_grants_no_more),
		cmocka_unit_test(nothing_is_granted_while_paused),
		cmocka_unit_test(mode_always_draws_a_place_for_everyone),
	};
	return cmocka_run_group_tests_name("controller", tests, NULL, NULL);
}
