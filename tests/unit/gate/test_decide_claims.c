// The claims that decisions make, and what they make of control's answers.

#include "tests/unit/gate/decide_scene.h"

static void a_called_ticket_claims_with_its_key(void **state)
{
	(void)state;
	carry_ticket(keys[3], CARRY_COOKIE);
	run();
	assert_int_equal(decision.claim.kind, CLAIM_CALLED);
	assert_int_equal(decision.claim.room, 3);
	assert_int_equal(decision.claim.line_id, LINE_ID);
	assert_int_equal(decision.claim.key, keys[3]);
	assert_int_equal(decision.claim.visitor, 0xabc);
	assert_int_equal(decision.claim.poll_after, 4);
	assert_int_equal(decision.claim.session, 0);
	assert_false(decision.refuses_claim);
}

static void a_refused_claim_is_reported(void **state)
{
	(void)state;
	atomic_store(&line->open, HOLD);
	carry_ticket(keys[3], CARRY_COOKIE);
	run();
	assert_true(decision.refuses_claim);
	assert_int_equal(decision.claim.key, keys[3]);
	assert_int_equal(decision.claim.poll_after, decision.status.poll_after);
	room.state = GATE_PAUSED; // control knows, and the window stands still
	run();
	assert_false(decision.refuses_claim);
}

static void a_direct_claim_takes_one_from_open(void **state)
{
	(void)state;
	atomic_store(&line->open, 2);
	run();
	assert_int_equal(decision.claim.kind, CLAIM_DIRECT);
	assert_int_equal(decision.claim.visitor, 0xf4e5);
	assert_int_equal(decision.claim.key, 0);
	assert_int_equal(atomic_load(&line->open), 1);
	run();
	assert_int_equal(atomic_load(&line->open), 0);
	run();
	assert_int_equal(decision.answer, DECIDE_PAGE); // none left: no claim, a place
	assert_true(atomic_load(&line->open) & PLACE_OPEN_LINE);
}

static struct claim_answer answer_of(enum claim_kind kind, enum claim_verdict verdict)
{
	return (struct claim_answer){.kind = (uint8_t)kind,
		.verdict = (uint8_t)verdict,
		.line_id = LINE_ID,
		.session = 0x5e55,
		.visitor = 0xabc,
		.issued = NOW_S - 1,
		.expires = NOW_S + LIFE_S,
		.poll_after = 6};
}

static void run_answered(enum claim_kind kind, enum claim_verdict verdict)
{
	struct claim_answer answer = answer_of(kind, verdict);
	input.answer = &answer;
	run();
	input.answer = NULL;
}

static void a_grant_forwards_the_same_request_and_sets_the_pass(void **state)
{
	(void)state;
	carry_ticket(keys[3], CARRY_COOKIE);
	run_answered(CLAIM_CALLED, CLAIM_GRANTED);
	assert_int_equal(decision.action, DECIDE_FORWARD);
	assert_int_equal(decision.session, 0x5e55);
	assert_int_equal(decision.ends_s, NOW_S + LIFE_S);
	assert_true(decision.sets_pass);
	assert_int_equal(decision.pass.kind, TOKEN_PASS);
	assert_int_equal(decision.pass.line_id, LINE_ID);
	assert_int_equal(decision.pass.key, 0x5e55);
	assert_int_equal(decision.pass.visitor, 0xabc);
	assert_int_equal(decision.pass.issued, NOW_S - 1);
	assert_int_equal(decision.pass.expires, NOW_S + LIFE_S);
	assert_false(decision.clears_ticket); // other tabs hold it too
}

static void a_grant_to_a_poll_says_admitted(void **state)
{
	(void)state;
	request.route = GATE_ROUTE_STATUS;
	carry_ticket(keys[3], CARRY_COOKIE);
	run_answered(CLAIM_CALLED, CLAIM_GRANTED);
	assert_int_equal(decision.answer, DECIDE_STATUS);
	assert_int_equal(decision.status.state, STATUS_admitted);
	assert_int_equal(decision.status.expires, NOW_S + LIFE_S);
	assert_int_equal(decision.status.position, 4);
	assert_true(decision.sets_pass);
	assert_int_equal(decision.pass.key, 0x5e55);
}

static void a_direct_grant_to_who_had_lapsed_clears_the_ticket(void **state)
{
	(void)state;
	carry_ticket(keys[0], CARRY_COOKIE);
	run_answered(CLAIM_DIRECT, CLAIM_GRANTED);
	assert_int_equal(decision.action, DECIDE_FORWARD);
	assert_true(decision.clears_ticket);
}

static void the_next_are_told_what_control_says(void **state)
{
	(void)state;
	carry_ticket(keys[3], CARRY_COOKIE);
	run_answered(CLAIM_CALLED, CLAIM_NEXT);
	assert_int_equal(decision.answer, DECIDE_PAGE);
	assert_int_equal(decision.status.state, STATUS_next);
	assert_int_equal(decision.status.poll_after, 6);
	assert_false(decision.refuses_claim);
}

static void the_refused_draw_a_place_with_a_fresh_id(void **state)
{
	(void)state;
	run_answered(CLAIM_DIRECT, CLAIM_REFUSED);
	assert_int_equal(decision.status.state, STATUS_waiting);
	assert_int_equal(decision.ticket.visitor, 0xf4e5); // not that of the claim
	assert_true(decision.was_minted);
}

static void a_lapsed_turn_joins_again_or_is_told(void **state)
{
	(void)state;
	carry_ticket(keys[3], CARRY_COOKIE);
	atomic_store(&line->open, 5); // not directly: it was asked once
	run_answered(CLAIM_CALLED, CLAIM_LAPSED);
	assert_int_equal(decision.status.state, STATUS_waiting);
	assert_int_equal(decision.ticket.visitor, 0xf4e5);
	request.route = GATE_ROUTE_STATUS;
	run_answered(CLAIM_CALLED, CLAIM_LAPSED);
	assert_int_equal(decision.answer, DECIDE_STATUS);
	assert_int_equal(decision.status.state, STATUS_expired);
	assert_true(decision.clears_ticket);
}

static void a_room_that_closed_meanwhile(void **state)
{
	(void)state;
	carry_ticket(keys[3], CARRY_COOKIE);
	run_answered(CLAIM_CALLED, CLAIM_CLOSED);
	assert_int_equal(decision.status.state, STATUS_closed);
}

static void an_answer_for_another_room_counts_as_none(void **state)
{
	(void)state;
	struct claim_answer answer = answer_of(CLAIM_DIRECT, CLAIM_GRANTED);
	answer.line_id = LINE_ID + 1;
	input.answer = &answer;
	atomic_store(&line->open, 5);
	run();
	assert_int_equal(decision.action, DECIDE_ANSWER);
	assert_int_equal(decision.status.state, STATUS_waiting);
	assert_int_equal(decision.session, 0);
	carry_ticket(keys[3], CARRY_COOKIE);
	run();
	assert_int_equal(decision.status.state, STATUS_next);
}

// --- renewal

static void a_sliding_pass_asks_in_the_second_half(void **state)
{
	(void)state;
	room.sliding = true;
	carry_pass(LIFE_S / 2, CARRY_COOKIE); // perhaps a part of a second too soon
	run();
	assert_int_equal(decision.action, DECIDE_FORWARD);
	scene(NULL);
	room.sliding = true;
	carry_pass(LIFE_S / 2 + 1, CARRY_COOKIE);
	run();
	assert_int_equal(decision.action, DECIDE_CLAIM);
	assert_int_equal(decision.claim.kind, CLAIM_RENEW);
	assert_int_equal(decision.claim.session, 0x5e55);
	assert_int_equal(decision.claim.visitor, 0xabc);
	assert_int_equal(decision.claim.expires, NOW_S + LIFE_S / 2 - 1);
	assert_int_equal(decision.claim.key, 0);
	room.mode = GATE_MODE_OFF; // nothing to renew
	run();
	assert_int_equal(decision.action, DECIDE_FORWARD);
	room.mode = GATE_MODE_AUTO;
	room.state = GATE_CLOSED; // passes go on until they expire, no longer
	run();
	assert_int_equal(decision.action, DECIDE_FORWARD);
}

static void a_renewal_goes_out_with_the_answer(void **state)
{
	(void)state;
	room.sliding = true;
	carry_pass(LIFE_S / 2, CARRY_COOKIE);
	run_answered(CLAIM_RENEW, CLAIM_RENEWED);
	assert_int_equal(decision.action, DECIDE_FORWARD);
	assert_true(decision.sets_pass);
	assert_int_equal(decision.pass.expires, NOW_S + LIFE_S);
	assert_int_equal(decision.pass.issued, NOW_S); // its second half begins later
	assert_int_equal(decision.pass.key, 0x5e55);
	assert_int_equal(decision.ends_s, NOW_S + LIFE_S);
}

static void an_end_that_did_not_move_is_not_sent(void **state)
{
	(void)state;
	room.sliding = true;
	carry_pass(LIFE_S / 2, CARRY_COOKIE);
	request.tokens[0].token.expires = NOW_S + LIFE_S;
	run_answered(CLAIM_RENEW, CLAIM_RENEWED);
	assert_int_equal(decision.action, DECIDE_FORWARD);
	assert_false(decision.sets_pass);
}

static void a_pass_still_valid_goes_on_when_control_is_late(void **state)
{
	(void)state;
	room.sliding = true;
	carry_pass(LIFE_S / 2, CARRY_COOKIE);
	input.answer_is_late = true;
	run();
	assert_int_equal(decision.action, DECIDE_FORWARD);
	assert_int_equal(decision.session, 0x5e55);
	assert_false(decision.sets_pass);
}

static void a_pass_that_is_not_renewed_goes_on(void **state)
{
	(void)state;
	room.sliding = true;
	carry_pass(LIFE_S / 2, CARRY_COOKIE);
	run_answered(CLAIM_RENEW, CLAIM_CLOSED);
	assert_int_equal(decision.action, DECIDE_FORWARD);
	assert_int_equal(decision.ends_s, NOW_S + LIFE_S / 2);
	assert_false(decision.sets_pass);
}

static void a_pass_whose_session_is_over_counts_as_none(void **state)
{
	(void)state;
	room.sliding = true;
	carry_pass(LIFE_S / 2, CARRY_COOKIE);
	carry_ticket(keys[3], CARRY_COOKIE);
	run_answered(CLAIM_RENEW, CLAIM_LAPSED);
	assert_int_equal(decision.action, DECIDE_CLAIM); // now for its ticket
	assert_int_equal(decision.claim.kind, CLAIM_CALLED);
	scene(NULL);
	room.sliding = true;
	carry_pass(LIFE_S / 2, CARRY_COOKIE);
	atomic_store(&line->open, 1);
	run_answered(CLAIM_RENEW, CLAIM_LAPSED);
	assert_int_equal(decision.claim.kind, CLAIM_DIRECT); // or as a newcomer
	request.route = GATE_ROUTE_STATUS;
	run_answered(CLAIM_RENEW, CLAIM_LAPSED);
	assert_int_equal(decision.status.state, STATUS_expired);
	assert_true(decision.clears_pass);
}

static void a_pass_renewed_by_command_is_told_with_the_next_answer(void **state)
{
	(void)state;
	carry_pass(LIFE_S / 4, CARRY_COOKIE);
	input.pass_renewed = NOW_S + LIFE_S;
	run();
	assert_int_equal(decision.action, DECIDE_FORWARD);
	assert_true(decision.sets_pass);
	assert_int_equal(decision.pass.expires, NOW_S + LIFE_S);
	assert_int_equal(decision.ends_s, NOW_S + LIFE_S);
	request.route = GATE_ROUTE_STATUS;
	run();
	assert_int_equal(decision.status.state, STATUS_admitted);
	assert_int_equal(decision.status.expires, NOW_S + LIFE_S);
	assert_true(decision.sets_pass);
}

static void a_pass_that_ran_out_is_refused_though_it_was_renewed(void **state)
{
	(void)state;
	carry_pass(LIFE_S, CARRY_COOKIE);
	input.pass_renewed = NOW_S + LIFE_S;
	run();
	assert_int_equal(decision.action, DECIDE_ANSWER);
	assert_int_equal(decision.answer, DECIDE_PAGE);
}

int main(void)
{
#define STORY(name) cmocka_unit_test_setup_teardown(name, scene, scene_end)
	const struct CMUnitTest tests[] = {
		STORY(a_called_ticket_claims_with_its_key),
		STORY(a_refused_claim_is_reported),
		STORY(a_direct_claim_takes_one_from_open),
		STORY(a_grant_forwards_the_same_request_and_sets_the_pass),
		STORY(a_grant_to_a_poll_says_admitted),
		STORY(a_direct_grant_to_who_had_lapsed_clears_the_ticket),
		STORY(the_next_are_told_what_control_says),
		STORY(the_refused_draw_a_place_with_a_fresh_id),
		STORY(a_lapsed_turn_joins_again_or_is_told),
		STORY(a_room_that_closed_meanwhile),
		STORY(an_answer_for_another_room_counts_as_none),
		STORY(a_sliding_pass_asks_in_the_second_half),
		STORY(a_renewal_goes_out_with_the_answer),
		STORY(an_end_that_did_not_move_is_not_sent),
		STORY(a_pass_still_valid_goes_on_when_control_is_late),
		STORY(a_pass_that_is_not_renewed_goes_on),
		STORY(a_pass_whose_session_is_over_counts_as_none),
		STORY(a_pass_renewed_by_command_is_told_with_the_next_answer),
		STORY(a_pass_that_ran_out_is_refused_though_it_was_renewed),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
