// The turn of claims: what is answered when, and what its controller and its store are told.

#include "tests/unit/store/turn.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>

#include <cmocka.h>

#define NOW TURN_NOW
#define NOW_S TURN_NOW_S
#define SESSION_S CONTROLLER_STUB_SESSION_S
#define ENDED_MAX TURN_ENDED_MAX

static void answers_leave_when_the_store_has_them(void **state)
{
	(void)state;
	turn_world.model.delay_ms = 50;
	turn_with(turn_claim(CLAIM_CALLED, 7), 0);
	assert_true(claims_is_busy(turn_world.claims));
	turn_idle(49);
	turn_answers("");
	assert_null(store_model_session(&turn_world.model, 1, 7));
	turn_idle(50);
	turn_answers("0:7 granted");
	assert_non_null(store_model_session(&turn_world.model, 1, 7));
	turn_world.model.delay_ms = 0;
	turn_idle(60);
	assert_false(claims_is_busy(turn_world.claims));
	turn_with(turn_claim(CLAIM_DIRECT, 8), 70); // within the call
	turn_answers("0:8 granted");
	assert_int_equal(TURN_COUNTED(granted), 2);
	assert_int_equal(TURN_COUNTED(granted_unsaved), 0);
}

static void each_worker_gets_its_own_in_order(void **state)
{
	(void)state;
	struct claim claims[] = {turn_claim(CLAIM_CALLED, 1), turn_claim(CLAIM_DIRECT, 2),
		turn_claim(CLAIM_RENEW, 3), turn_claim(CLAIM_CALLED, 4),
		turn_claim(CLAIM_RENEW, 1)};
	claims[0].worker = claims[2].worker = 2;
	claims[3].worker = 1;
	claims_turn(turn_world.claims, claims, 5, NOW);
	turn_answers("0:2 granted, 0:1 renewed, 1:4 granted, 2:1 granted, 2:3 lapsed");
	assert_int_equal(turn_world.model.session_count, 3);
	assert_int_equal(TURN_COUNTED(called), 2);
	assert_int_equal(TURN_COUNTED(direct), 1);
	assert_int_equal(TURN_COUNTED(renew), 2);
}

static void a_room_is_known_by_its_line(void **state)
{
	(void)state;
	struct claim claim = turn_claim(CLAIM_DIRECT, 7);
	claim.line_id = 2; // of the room `club`, at the index of `derby`
	turn_with(claim, 0);
	assert_non_null(store_model_session(&turn_world.model, 2, 7));
	claim.room = 9;
	claim.visitor = 8;
	turn_with(claim, 0);
	assert_non_null(store_model_session(&turn_world.model, 2, 8));
	assert_int_equal(TURN_COUNTED(crossed), 2);
	turn_answers("0:7 granted, 0:8 granted");
	claim.line_id = 3; // no more
	for (uint8_t kind = CLAIM_CALLED; kind <= CLAIM_MOVE; kind++) {
		claim.kind = kind;
		turn_with(claim, 0);
	}
	turn_answers("0:8 refused, 0:8 refused, 0:8 refused, 0:8 refused, 0:8 refused, "
		     "0:8 refused");
	assert_int_equal(TURN_COUNTED(unknown_room), 10);
	turn_diary("");
}

static void closed_and_paused(void **state)
{
	(void)state;
	assert_true(claims_set_state(turn_world.claims, 1, GATE_PAUSED, false));
	assert_false(claims_set_state(turn_world.claims, 3, GATE_PAUSED, false));
	struct claim claims[] = {turn_claim(CLAIM_CALLED, 1), turn_claim(CLAIM_DIRECT, 2)};
	claims_turn(turn_world.claims, claims, 2, NOW); // already in this turn
	turn_answers("0:1 next, 0:2 refused");
	turn_diary("derby.off derby.hold");
	claims_set_state(turn_world.claims, 1, GATE_CLOSED, false);
	claims_turn(turn_world.claims, claims, 2, NOW);
	turn_answers("0:1 closed, 0:2 closed");
	turn_with(turn_claim(CLAIM_RENEW, 1), 0); // who is inside stays
	turn_answers("0:1 lapsed");
	claims_set_state(turn_world.claims, 1, GATE_OPEN, false);
	controller_stub_diary[0] = '\0';
	claims_turn(turn_world.claims, claims, 1, NOW);
	turn_answers("0:1 granted");
	turn_diary("derby.on");
}

static void who_was_given_up_is_not_granted(void **state)
{
	(void)state;
	struct claim claims[] = {turn_claim(CLAIM_CALLED, 5), turn_claim(CLAIM_DIRECT, 6)};
	claims_turn(turn_world.claims, claims, 2, NOW + CLAIMS_LATE_MS + 1);
	turn_answers("");
	turn_diary("derby.refused(5,4)");
	assert_int_equal(TURN_COUNTED(late), 2);
	claims_turn(turn_world.claims, claims, 2, NOW + CLAIMS_LATE_MS); // just in time
	turn_answers("0:5 granted, 0:6 granted");
	struct claim renew = turn_claim(CLAIM_RENEW, 5);
	claims_turn(
		turn_world.claims, &renew, 1, NOW + 5000); // reports and renewals are never late
	turn_answers("0:5 renewed");
}

static void an_ended_session_keeps_its_slot_until_all_know(void **state)
{
	(void)state;
	turn_with(turn_claim(CLAIM_DIRECT, 7), 0);
	struct claim end = turn_claim(CLAIM_END, 7);
	end.session = 1001;
	end.expires = NOW_S + 5;
	turn_with(end, 20);
	assert_true(ended_has(turn_world.ended, 1001));
	turn_diary("derby.end(1001)");
	assert_int_equal(turn_world.model.ended_count, 1); // the store knows at once
	// It may have been renewed, by another tab, for one session from now.
	assert_int_equal(turn_world.model.ended[0].expires, NOW_S + SESSION_S + 1);
	turn_with(end, 40); // sent again
	turn_diary("");
	assert_int_equal(turn_world.barrier_begun, 1);
	assert_false(store_model_session(&turn_world.model, 1, 7)->is_over);
	turn_world.barrier_passed = 1;
	turn_idle(60);
	turn_diary("derby.free(1001)");
	assert_true(store_model_session(&turn_world.model, 1, 7)->is_over);
	assert_int_equal(TURN_COUNTED(freed), 1);
	// Dropped when no pass of it can live.
	turn_idle((SESSION_S + 1) * 1000ull);
	assert_true(ended_has(turn_world.ended, 1001));
	turn_idle((SESSION_S + 1 + ENDED_GRACE_S) * 1000ull);
	assert_false(ended_has(turn_world.ended, 1001));
}

static void ending_has_a_limit(void **state)
{
	(void)state;
	struct claim end = turn_claim(CLAIM_END, 0);
	for (uint64_t visitor = 0; visitor <= ENDED_MAX; visitor++) {
		turn_with(turn_claim(CLAIM_DIRECT, visitor + 1), 0);
		end.session = 1001 + visitor;
		turn_with(end, 0);
	}
	turn_diary("derby.end(1001) derby.end(1002) derby.end(1003) derby.end(1004)");
	assert_int_equal(TURN_COUNTED(ended_full), 1);
	assert_false(ended_has(turn_world.ended, 1005));
	// One barrier for each turn; passed up to the second.
	turn_world.barrier_passed = 2;
	turn_idle(20);
	turn_diary("derby.free(1001) derby.free(1002)");
	turn_world.barrier_passed = 4;
	turn_idle(40);
	turn_diary("derby.free(1003) derby.free(1004)");
}

static void a_session_nobody_knows_is_refused_too(void **state)
{
	(void)state;
	struct claim end = turn_claim(CLAIM_END, 7);
	end.session = 55; // admitted unsaved, by a process that was killed
	turn_with(end, 0);
	assert_true(ended_has(turn_world.ended, 55));
	end.session = 0;
	turn_with(end, 0);
	turn_world.barrier_passed = 9;
	turn_idle(20);
	turn_diary("");
	assert_int_equal(ended_count(turn_world.ended), 1);
}

static void reports_reach_the_controller(void **state)
{
	(void)state;
	turn_with(turn_claim(CLAIM_LEAVE, 12), 0);
	turn_with(turn_claim(CLAIM_LEAVE, 13), 0);
	turn_with(turn_claim(CLAIM_GONE, 14), 0);
	turn_with(turn_claim(CLAIM_PASSED, 0), 0);
	turn_with(turn_claim(CLAIM_PASSED, 0), 0);
	claims_refused(turn_world.claims, 1, 99, 10, NOW);
	claims_refused(turn_world.claims, 3, 99, 10, NOW);
	turn_diary("derby.leave(12,12) derby.leave(13,13) derby.gone(14) derby.refused(99,10)");
	turn_answers("0:12 left, 0:13 left");
	assert_int_equal(TURN_COUNTED(left_refused), 1);
	assert_int_equal(TURN_COUNTED(gone), 1);
	assert_int_equal(claims_passed(turn_world.claims, 1), 2);
	assert_int_equal(claims_passed(turn_world.claims, 2), 0);
	assert_int_equal(claims_passed(turn_world.claims, 3), 0);
}

// A place and a session, each by itself and both at once; the answer waits for the store.
static void what_is_given_back_is_answered_when_the_store_has_it(void **state)
{
	(void)state;
	turn_with(turn_claim(CLAIM_DIRECT, 7), 0);
	turn_answers("0:7 granted");
	struct claim leave = turn_claim(CLAIM_LEAVE, 12);
	leave.session = 1001;
	leave.expires = NOW_S + 5;
	turn_world.model.delay_ms = 50;
	turn_with(leave, 0);
	turn_answers("");
	turn_idle(50);
	turn_answers("0:12 left");
	turn_diary("derby.leave(12,12) derby.end(1001)");
	assert_int_equal(store_model_session(&turn_world.model, 1, 12)->session, 0);
	assert_true(store_model_session(&turn_world.model, 1, 12)->is_over);
	assert_int_equal(turn_world.model.ended_count, 1);
	turn_world.model.delay_ms = 0;
	leave.session = 1001; // again: the first answer was lost
	leave.key = 0;
	turn_with(leave, 60);
	turn_answers("0:12 left");
	turn_diary("");
	assert_int_equal(TURN_COUNTED(leave), 2);
}

// Workers know of the tickets given back until floor has passed them, as far as the set holds.
static void workers_know_what_was_given_back(void **state)
{
	(void)state;
	for (uint64_t visitor = 12; visitor < 16; visitor++) // one of them cannot be given back
		turn_with(turn_claim(CLAIM_LEAVE, visitor), 0);
	turn_answers("0:12 left, 0:13 left, 0:14 left, 0:15 left");
	assert_true(ended_has(turn_world.left, 12) && ended_has(turn_world.left, 14));
	assert_int_equal(ended_count(turn_world.left), TURN_LEFT_MAX);
	assert_int_equal(TURN_COUNTED(left_untold), 1);
	controller_stub_pass(&turn_world.derby, 12);
	turn_with(turn_claim(CLAIM_PASSED, 0), 20);
	assert_false(ended_has(turn_world.left, 12));
	assert_true(ended_has(turn_world.left, 14));
	assert_null(store_model_session(&turn_world.model, 1, 12));
	assert_non_null(store_model_session(&turn_world.model, 1, 14));
}

// With no room in the store nothing is taken back, so that nothing is promised.
static void a_full_store_takes_nothing_back(void **state)
{
	(void)state;
	turn_world.model.is_failing = true;
	struct store_record record = {.kind = STORE_GRANTED, .session = {.line_id = 2}};
	while (turn_world.model.store.status.free_count >= CLAIMS_ANSWERS_MAX) {
		record.session.visitor++;
		assert_true(store_put(&turn_world.model.store, &record));
	}
	turn_with(turn_claim(CLAIM_LEAVE, 12), 0);
	turn_answers("0:12 refused");
	turn_diary("derby.off club.off derby.hold club.hold");
	assert_int_equal(TURN_COUNTED(leave), 1);
}

static void a_store_that_takes_long_is_held(void **state)
{
	(void)state;
	turn_world.model.delay_ms = 1000;
	turn_with(turn_claim(CLAIM_CALLED, 7), 0);
	turn_idle(CLAIMS_HOLD_MS);
	turn_diary("");
	turn_idle(CLAIMS_HOLD_MS + 1);
	turn_diary("derby.off club.off derby.hold club.hold");
	turn_idle(CLAIMS_HOLD_MS + 20);
	turn_diary("");
	turn_world.model.delay_ms = 0;
	turn_idle(1000);
	turn_answers("0:7 granted");
	turn_diary("derby.on club.on");
}

static void unsaved_it_goes_on_and_counts(void **state)
{
	(void)state;
	turn_world.model.is_failing = true;
	turn_with(turn_claim(CLAIM_CALLED, 7), 0);
	turn_answers("0:7 granted");
	assert_int_equal(TURN_COUNTED(granted_unsaved), 1);
	assert_true(turn_world.model.is_marked);
	assert_int_equal(turn_world.model.session_count, 0);
	turn_world.model.is_failing = false;
	turn_idle(20);
	assert_int_equal(turn_world.model.session_count, 1);
	assert_false(turn_world.model.is_marked);
	turn_with(turn_claim(CLAIM_CALLED, 8), 40);
	assert_int_equal(TURN_COUNTED(granted), 2);
	assert_int_equal(TURN_COUNTED(granted_unsaved), 1);
}

static void a_batch_nearly_full_grants_nothing(void **state)
{
	(void)state;
	turn_world.model.is_failing = true;
	struct store_record record = {.kind = STORE_GRANTED};
	while (turn_world.model.store.status.free_count >= CLAIMS_ANSWERS_MAX) {
		record.session.visitor++;
		record.session.line_id = 77;
		assert_true(store_put(&turn_world.model.store, &record));
	}
	turn_with(turn_claim(CLAIM_CALLED, 7), 0);
	turn_answers("0:7 next");
	turn_diary("derby.off club.off derby.hold club.hold");
	turn_world.model.is_failing = false;
	turn_idle(20); // catches up
	controller_stub_diary[0] = '\0';
	turn_with(turn_claim(CLAIM_CALLED, 7), 40);
	turn_answers("0:7 granted");
	turn_diary("derby.on club.on");
}

static void what_moves_all_the_time_is_saved_once_a_second(void **state)
{
	(void)state;
	turn_idle(0);
	assert_int_equal(turn_world.model.store.status.commits_total, 0); // nothing to say
	turn_world.lines[0]->threshold = 5;
	turn_idle(20);
	assert_int_equal(turn_world.model.lines[0].threshold, 5);
	assert_int_equal(turn_world.model.clock_ms, NOW + 20);
	turn_world.lines[0]->threshold = 6;
	turn_with(turn_claim(CLAIM_CALLED, 7), CLAIMS_SAVE_MS); // only the session
	assert_int_equal(turn_world.model.lines[0].threshold, 5);
	turn_world.lines[0]->floor = 3;
	turn_idle(CLAIMS_SAVE_MS + 20);
	assert_int_equal(turn_world.model.lines[0].threshold, 6);
	assert_int_equal(turn_world.model.lines[0].floor, 3);
	assert_int_equal(turn_world.model.line_count, 1);
	uint64_t commits = turn_world.model.store.status.commits_total;
	for (uint64_t ms = 2000; ms < 60000; ms += 20)
		turn_idle(ms);
	assert_int_equal(
		turn_world.model.store.status.commits_total, commits); // idle: not a single write
}

static void an_answer_not_taken_is_undone(void **state)
{
	(void)state;
	turn_world.take_max = 1;
	struct claim claims[] = {turn_claim(CLAIM_DIRECT, 1), turn_claim(CLAIM_DIRECT, 2),
		turn_claim(CLAIM_RENEW, 1)};
	claims_turn(turn_world.claims, claims, 3, NOW);
	turn_answers("0:1 granted");
	turn_diary("derby.gone(2)");
	assert_int_equal(TURN_COUNTED(undelivered), 2);
}

static void a_claim_put_off_is_answered_later(void **state)
{
	(void)state;
	struct claim claim = turn_claim(CLAIM_CALLED, CONTROLLER_STUB_LATER);
	claim.worker = 2;
	turn_with(claim, 0);
	turn_answers("");
	turn_idle(80);
	turn_answers("");
	turn_idle(100);
	turn_answers("2:900 granted");
	assert_non_null(store_model_session(&turn_world.model, 1, CONTROLLER_STUB_LATER));
}

static struct claim code(uint64_t visitor)
{
	struct claim claim = turn_claim(CLAIM_CODE, visitor);
	claim.key = 11;
	claim.session = 22;
	return claim;
}

static void a_code_is_honoured_when_the_store_has_it(void **state)
{
	(void)state;
	turn_world.code_uses = 1;
	turn_world.model.delay_ms = 50;
	turn_with(code(5), 0);
	turn_answers("");
	turn_idle(50);
	turn_answers("0:5 honoured");
	turn_with(code(6), 60);
	turn_idle(200);
	turn_answers("0:6 refused"); // as the stand-in leaves it
	assert_int_equal(TURN_COUNTED(codes), 2);
	assert_int_equal(TURN_COUNTED(codes_honoured), 1);
	// Nobody was there to take it: use and place go back.
	struct claim gone = turn_claim(CLAIM_CODE_GONE, 5);
	gone.key = 11;
	gone.session = 22;
	gone.expires = 2;
	gone.place = 505;
	turn_with(gone, 300);
	turn_idle(360);
	turn_idle(360);
	assert_int_equal(turn_world.code_uses, 1);
	assert_int_equal(TURN_COUNTED(codes_undone), 1);
	turn_diary("club.leave(505,5)");
}

// The old place is given up when the store has the new one, and not before.
static void a_place_is_given_up_for_another(void **state)
{
	(void)state;
	turn_world.code_uses = 1;
	turn_world.model.delay_ms = 50;
	struct claim claims[] = {code(5), turn_claim(CLAIM_MOVE, 6)};
	claims[0].place = 105;
	claims[1].line_id = 2;
	claims[1].room = 1;
	claims[1].place = 106;
	claims[0].expires = claims[1].expires = 1; // of derby
	claims_turn(turn_world.claims, claims, 2, NOW);
	turn_idle(20);
	turn_diary("");
	turn_idle(60);
	turn_answers("0:5 honoured, 0:6 honoured");
	turn_diary("derby.leave(105,5) derby.leave(106,6)");
	assert_true(ended_has(turn_world.left, 5) && ended_has(turn_world.left, 6));
	assert_int_equal(TURN_COUNTED(moves), 1);
	assert_int_equal(TURN_COUNTED(moved), 2);
	// Nothing is given up for a place that could not be saved.
	turn_idle(500);
	turn_world.model.delay_ms = 0;
	turn_world.model.is_failing = true;
	turn_world.code_uses = 1;
	claims[0].visitor = 7;
	claims_turn(turn_world.claims, claims, 1, NOW + 600);
	turn_answers("0:7 refused");
	turn_diary("club.leave(507,7)");
	assert_int_equal(TURN_COUNTED(moved), 2);
	assert_int_equal(turn_world.code_uses, 1);
}

// One that was given before is undone by nothing.
static void a_place_that_is_somebodys_stays(void **state)
{
	(void)state;
	turn_world.code_uses = 5;
	turn_world.place_bits = CLAIM_PLACE_AGAIN;
	turn_world.model.is_failing = true;
	turn_with(code(5), 0);
	turn_answers("0:5 refused");
	assert_int_equal(TURN_COUNTED(codes_undone), 0);
	turn_diary("");
}

static void a_code_that_cannot_be_saved_is_not_spent(void **state)
{
	(void)state;
	turn_world.code_uses = 5;
	turn_world.model.is_failing = true;
	turn_with(code(5), 0); // the commit fails
	turn_answers("0:5 refused");
	assert_int_equal(turn_world.code_uses, 5);
	assert_int_equal(TURN_COUNTED(codes_undone), 1);
	turn_with(code(6), 10); // it is known to be unsaved
	turn_answers("0:6 refused");
	assert_int_equal(TURN_COUNTED(codes_refused), 1);
	assert_int_equal(turn_world.code_uses, 5);
	turn_world.model.is_failing = false;
	turn_idle(10000);
	turn_with(code(7), 10020);
	turn_answers("0:7 honoured");
	assert_int_equal(turn_world.code_uses, 4);
}

static void a_code_asked_late_or_not_delivered_is_not_spent(void **state)
{
	(void)state;
	turn_world.code_uses = 5;
	struct claim claims[] = {code(5), code(6)};
	claims_turn(turn_world.claims, claims, 2, NOW + CLAIMS_LATE_MS + 1);
	turn_answers("");
	assert_int_equal(turn_world.code_uses, 5);
	// What did not arrive is kept for who may ask again, and else was never made.
	turn_world.take_max = 1;
	claims_turn(turn_world.claims, claims, 2, NOW + CLAIMS_LATE_MS);
	turn_answers("0:5 honoured");
	assert_int_equal(turn_world.code_uses, 3);
	turn_world.place_bits = CLAIM_PLACE_NOBODYS;
	claims_turn(turn_world.claims, claims, 2, NOW + CLAIMS_LATE_MS);
	turn_answers("0:5 honoured");
	assert_int_equal(turn_world.code_uses, 2);
	assert_int_equal(TURN_COUNTED(codes_undone), 1);
	turn_diary("club.leave(506,6)");
}

#define STORY(story) cmocka_unit_test_setup_teardown(story, turn_begin, turn_end)

int main(void)
{
	const struct CMUnitTest tests[] = {
		STORY(answers_leave_when_the_store_has_them),
		STORY(what_is_given_back_is_answered_when_the_store_has_it),
		STORY(workers_know_what_was_given_back),
		STORY(a_full_store_takes_nothing_back),
		STORY(each_worker_gets_its_own_in_order),
		STORY(a_room_is_known_by_its_line),
		STORY(closed_and_paused),
		STORY(who_was_given_up_is_not_granted),
		STORY(an_ended_session_keeps_its_slot_until_all_know),
		STORY(ending_has_a_limit),
		STORY(a_session_nobody_knows_is_refused_too),
		STORY(reports_reach_the_controller),
		STORY(a_store_that_takes_long_is_held),
		STORY(unsaved_it_goes_on_and_counts),
		STORY(a_batch_nearly_full_grants_nothing),
		STORY(what_moves_all_the_time_is_saved_once_a_second),
		STORY(an_answer_not_taken_is_undone),
		STORY(a_claim_put_off_is_answered_later),
		STORY(a_code_is_honoured_when_the_store_has_it),
		STORY(a_place_is_given_up_for_another),
		STORY(a_place_that_is_somebodys_stays),
		STORY(a_code_that_cannot_be_saved_is_not_spent),
		STORY(a_code_asked_late_or_not_delivered_is_not_spent),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
