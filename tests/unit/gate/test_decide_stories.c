// The decision in stories: the numbers it tells, the claims it makes, and what it makes of
// control's answers.

#include "tests/unit/gate/decide_scene.h"

// --- places and numbers

static void a_waiting_ticket_is_told_its_place(void **state)
{
	(void)state;
	carry_ticket(keys[7], CARRY_COOKIE);
	request.tokens[0].token.issued = NOW_S - 15;
	run();
	const struct status *status = &decision.status;
	assert_int_equal(status->position, 8);
	assert_int_equal(status->ahead, 2);
	assert_true(status->exact);
	assert_int_equal(status->eta_low, 4);
	assert_int_equal(status->eta_high, 6);
	assert_int_equal(status->progress, 750); // 15 s of 15 + 5
	assert_int_equal(status->poll_after, pace_poll_after(2, 3ull << 32, 0));
	assert_int_equal(status->now, NOW_S);
	assert_int_equal(status->opens, 0);
	assert_int_equal(status->expires, 0);
	assert_false(decision.sets_ticket); // the cookie is there
	assert_false(decision.clears_ticket);
}

static void the_first_of_those_waiting_has_nobody_ahead(void **state)
{
	(void)state;
	carry_ticket(keys[FIRST_WAITING], CARRY_COOKIE);
	run();
	assert_int_equal(decision.status.state, STATUS_waiting);
	assert_int_equal(decision.status.ahead, 0);
	assert_int_equal(decision.status.eta_high, 0);
}

static void an_unknown_wait_is_not_told(void **state)
{
	(void)state;
	atomic_store(&line->wait_high, PACE_WAIT_UNKNOWN);
	carry_ticket(keys[7], CARRY_COOKIE);
	run();
	assert_true(decision.status.eta_low == STATUS_UNKNOWN);
	assert_true(decision.status.eta_high == STATUS_UNKNOWN);
	assert_int_equal(decision.status.progress, 0);
	assert_int_equal(decision.status.ahead, 2);
}

static void a_wait_without_end_does_not_overflow(void **state)
{
	(void)state;
	atomic_store(&line->wait_low, UINT64_MAX - 1);
	atomic_store(&line->wait_high, 1); // below low: control has written one of the two
	carry_ticket(keys[7], CARRY_COOKIE);
	run();
	assert_int_equal(decision.status.eta_low, (2 * (UINT64_MAX - 1) >> 32) + (1ull << 32));
	assert_true(decision.status.eta_high >= decision.status.eta_low);
	assert_true(decision.status.progress <= 1000);
}

static void a_newcomer_is_the_last(void **state)
{
	(void)state;
	run();
	assert_true(decision.sets_ticket && decision.was_minted);
	assert_int_equal(decision.ticket.kind, TOKEN_TICKET);
	assert_int_equal(decision.ticket.line_id, LINE_ID);
	assert_int_equal(decision.ticket.visitor, 0xf4e5);
	assert_int_equal(decision.ticket.issued, NOW_S);
	assert_int_equal(decision.ticket.expires, 0);
	assert_int_equal(place_slot(decision.ticket.key), NOW_SLOT);
	assert_int_equal(decision.status.position, TICKETS + 1);
	assert_int_equal(decision.status.ahead, TICKETS - FIRST_WAITING);
}

static void next_has_a_position_and_nobody_ahead(void **state)
{
	(void)state;
	atomic_store(&line->open, HOLD);
	carry_ticket(keys[3], CARRY_COOKIE);
	run();
	assert_int_equal(decision.status.state, STATUS_next);
	assert_int_equal(decision.status.position, 4);
	assert_int_equal(decision.status.ahead, 0);
	assert_int_equal(decision.status.poll_after, 4);
	assert_int_equal(decision.status.progress, 1000);
	assert_true(decision.status.eta_high == STATUS_UNKNOWN);
}

static void admitted_tells_the_end_and_the_place(void **state)
{
	(void)state;
	request.route = GATE_ROUTE_STATUS;
	carry_ticket(keys[3], CARRY_COOKIE);
	carry_pass(100, CARRY_COOKIE);
	run();
	assert_int_equal(decision.status.state, STATUS_admitted);
	assert_int_equal(decision.status.expires, NOW_S + LIFE_S - 100);
	assert_int_equal(decision.status.position, 4);
	assert_int_equal(decision.status.ahead, 0);
	assert_false(decision.sets_pass); // the cookie is there
}

static void poll_after_of_next_is_kept_within_bounds(void **state)
{
	(void)state;
	carry_ticket(keys[3], CARRY_COOKIE);
	atomic_store(&line->next_poll_after, 0);
	run();
	assert_int_equal(decision.claim.poll_after, 1);
	atomic_store(&line->next_poll_after, 1000);
	run();
	assert_int_equal(decision.claim.poll_after, 60);
}

static void full_at_the_limit_and_not_before(void **state)
{
	(void)state;
	room.line_max = TICKETS - FIRST_WAITING + 1;
	run();
	assert_int_equal(decision.status.state, STATUS_waiting); // the last one that fits
	run();
	assert_int_equal(decision.status.state, STATUS_full);
	assert_int_equal(decision.answer, DECIDE_PAGE);
	assert_false(decision.sets_ticket);
	assert_true(decision.status.position == STATUS_UNKNOWN);
	carry_ticket(keys[7], CARRY_COOKIE);
	run();
	assert_int_equal(decision.status.state, STATUS_waiting); // who is in line stays
}

static void a_line_that_takes_nobody_is_full(void **state)
{
	(void)state;
	// The slot is full, and control has been away for longer than there are cells.
	uint64_t next = NOW_SLOT + 1;
	atomic_store(&line->word, NOW_SLOT << PLACE_SEQ_BITS | PLACE_SLOT_TICKETS);
	atomic_store(&line->closed, next - PLACE_CELLS);
	atomic_store(&line->cells[next % PLACE_CELLS], (next - PLACE_CELLS) << 24 | 1);
	run();
	assert_int_equal(decision.status.state, STATUS_full);
	assert_false(decision.sets_ticket);
}

// --- tickets

static void of_two_tickets_the_one_that_has_not_lapsed_counts(void **state)
{
	(void)state;
	carry_ticket(keys[8], CARRY_COOKIE);
	carry_ticket(keys[0], CARRY_COOKIE); // an old one: the smallest key, but lapsed
	carry_ticket(keys[7], CARRY_COOKIE);
	run();
	assert_int_equal(decision.status.state, STATUS_waiting);
	assert_int_equal(decision.status.position, 8);
	assert_false(decision.was_minted);
}

static void a_ticket_in_a_header_goes_out_again(void **state)
{
	(void)state;
	request.route = GATE_ROUTE_STATUS;
	carry_ticket(keys[7], CARRY_HEADER);
	run();
	assert_true(decision.sets_ticket);
	assert_memory_equal(&decision.ticket, &request.ticket->token, sizeof(struct token));
}

static void an_old_cookie_is_set_anew_with_the_same_place(void **state)
{
	(void)state;
	carry_ticket(keys[7], CARRY_COOKIE);
	request.tokens[0].token.issued = NOW_S - TTL_S / 2 + 1;
	run();
	assert_false(decision.sets_ticket);
	request.tokens[0].token.issued = NOW_S - TTL_S / 2;
	run();
	assert_true(decision.sets_ticket);
	assert_int_equal(decision.ticket.key, keys[7]);
	assert_int_equal(decision.ticket.visitor, 0xabc); // who keeps its place keeps its id
	assert_int_equal(decision.ticket.issued, NOW_S);
	assert_false(decision.was_minted);
}

static void a_lapsed_ticket_gives_way_to_a_fresh_visitor(void **state)
{
	(void)state;
	carry_ticket(keys[0], CARRY_COOKIE);
	run();
	assert_int_equal(decision.ticket.visitor, 0xf4e5);
	assert_true(decision.ticket.key > keys[TICKETS - 1]);
	assert_false(decision.clears_ticket); // replaced
}

static void cookies_that_are_no_use_are_cleared(void **state)
{
	(void)state;
	request.route = GATE_ROUTE_STATUS;
	carry_ticket(keys[0], CARRY_COOKIE);
	carry_pass(100, CARRY_COOKIE);
	input.pass_has_ended = true;
	run();
	assert_int_equal(decision.status.state, STATUS_expired);
	assert_true(decision.clears_ticket && decision.clears_pass);
	scene(NULL);
	carry(TOKEN_TICKET, CARRY_COOKIE)->state = GATE_TOKEN_NONE; // forged
	room.mode = GATE_MODE_OFF;
	run();
	assert_int_equal(decision.action, DECIDE_FORWARD);
	assert_true(decision.clears_ticket && !decision.clears_pass);
	scene(NULL);
	carry_ticket(keys[0], CARRY_HEADER);
	request.route = GATE_ROUTE_STATUS;
	run();
	assert_false(decision.clears_ticket); // there is no cookie
}

// --- the query

static void a_ticket_in_the_query_becomes_a_cookie(void **state)
{
	(void)state;
	carry_ticket(keys[7], CARRY_QUERY);
	request.takes_query = true;
	request.redirect = SPAN("/derby?a=1");
	run();
	assert_int_equal(decision.action, DECIDE_ANSWER);
	assert_int_equal(decision.answer, DECIDE_REDIRECT);
	assert_true(decision.sets_ticket);
	assert_int_equal(decision.ticket.key, keys[7]);
	assert_int_equal(decision.ticket.visitor, 0xabc);
	request.redirect.len = DECIDE_LOCATION_BYTES_MAX; // only its length is looked at
	run();
	assert_int_equal(decision.answer, DECIDE_REDIRECT);
	request.redirect.len++;
	run();
	assert_int_equal(decision.answer, DECIDE_PAGE);
	assert_int_equal(decision.status.position, 8);
	request.redirect.len = 5;
	request.draws = false;
	run();
	assert_int_equal(decision.answer, DECIDE_UNAVAILABLE);
}

// --- claims

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
	carry_pass(LIFE_S / 2 - 1, CARRY_COOKIE);
	run();
	assert_int_equal(decision.action, DECIDE_FORWARD);
	scene(NULL);
	room.sliding = true;
	carry_pass(LIFE_S / 2, CARRY_COOKIE);
	run();
	assert_int_equal(decision.action, DECIDE_CLAIM);
	assert_int_equal(decision.claim.kind, CLAIM_RENEW);
	assert_int_equal(decision.claim.session, 0x5e55);
	assert_int_equal(decision.claim.visitor, 0xabc);
	assert_int_equal(decision.claim.expires, NOW_S + LIFE_S / 2);
	assert_int_equal(decision.claim.key, 0);
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
	carry_pass(LIFE_S, CARRY_COOKIE);
	request.route = GATE_ROUTE_STATUS;
	run_answered(CLAIM_RENEW, CLAIM_LAPSED);
	assert_int_equal(decision.status.state, STATUS_expired);
	assert_true(decision.clears_pass);
}

static void a_pass_that_ran_out_lives_again_if_the_origin_renewed_it(void **state)
{
	(void)state;
	carry_pass(LIFE_S, CARRY_COOKIE);
	run_answered(CLAIM_RENEW, CLAIM_RENEWED);
	assert_int_equal(decision.action, DECIDE_FORWARD);
	assert_true(decision.sets_pass);
	request.route = GATE_ROUTE_STATUS;
	run_answered(CLAIM_RENEW, CLAIM_RENEWED);
	assert_int_equal(decision.status.state, STATUS_admitted);
	assert_int_equal(decision.status.expires, NOW_S + LIFE_S);
	assert_true(decision.sets_pass);
}

// --- leaving, and the rest

static void leaving_gives_back_what_is_held(void **state)
{
	(void)state;
	request.route = GATE_ROUTE_LEAVE;
	request.method = HTTP_POST;
	carry_ticket(keys[7], CARRY_COOKIE);
	run();
	assert_int_equal(decision.answer, DECIDE_LEFT);
	assert_true(decision.leaves_ticket && !decision.leaves_pass);
	assert_int_equal(decision.ticket.key, keys[7]);
	assert_true(decision.clears_ticket && !decision.clears_pass);
	carry_pass(100, CARRY_COOKIE); // the session of that very visitor
	run();
	assert_true(decision.leaves_pass && !decision.leaves_ticket);
	assert_int_equal(decision.pass.key, 0x5e55);
	assert_true(decision.clears_ticket && decision.clears_pass);
	request.tokens[1].token.visitor = 0xdef; // another one's: both
	run();
	assert_true(decision.leaves_pass && decision.leaves_ticket);
}

static void another_site_may_not_make_a_visitor_leave(void **state)
{
	(void)state;
	request.route = GATE_ROUTE_LEAVE;
	request.method = HTTP_POST;
	request.is_cross_site = true;
	carry_ticket(keys[7], CARRY_COOKIE);
	run();
	assert_int_equal(decision.answer, DECIDE_CROSS_SITE);
	assert_false(decision.leaves_ticket || decision.clears_ticket);
}

static void health_says_what_is_wrong(void **state)
{
	(void)state;
	request.route = GATE_ROUTE_HEALTH;
	request.room = NULL;
	request.site = NULL;
	run();
	assert_false(decision.is_draining || decision.is_unhealthy);
	input.is_draining = true;
	input.is_unhealthy = true;
	run();
	assert_true(decision.is_draining && decision.is_unhealthy);
}

int main(void)
{
#define STORY(name) cmocka_unit_test_setup_teardown(name, scene, scene_end)
	const struct CMUnitTest tests[] = {
		STORY(a_waiting_ticket_is_told_its_place),
		STORY(the_first_of_those_waiting_has_nobody_ahead),
		STORY(an_unknown_wait_is_not_told),
		STORY(a_wait_without_end_does_not_overflow),
		STORY(a_newcomer_is_the_last),
		STORY(next_has_a_position_and_nobody_ahead),
		STORY(admitted_tells_the_end_and_the_place),
		STORY(poll_after_of_next_is_kept_within_bounds),
		STORY(full_at_the_limit_and_not_before),
		STORY(a_line_that_takes_nobody_is_full),
		STORY(of_two_tickets_the_one_that_has_not_lapsed_counts),
		STORY(a_ticket_in_a_header_goes_out_again),
		STORY(an_old_cookie_is_set_anew_with_the_same_place),
		STORY(a_lapsed_ticket_gives_way_to_a_fresh_visitor),
		STORY(cookies_that_are_no_use_are_cleared),
		STORY(a_ticket_in_the_query_becomes_a_cookie),
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
		STORY(a_pass_whose_session_is_over_counts_as_none),
		STORY(a_pass_that_ran_out_lives_again_if_the_origin_renewed_it),
		STORY(leaving_gives_back_what_is_held),
		STORY(another_site_may_not_make_a_visitor_leave),
		STORY(health_says_what_is_wrong),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
