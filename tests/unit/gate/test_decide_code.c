// A code, decided: what is asked of control, and what becomes of each answer.

#include "dataplane/gate/ended.h"
#include "dataplane/gate/gather.h"
#include "dataplane/gate/lane.h"
#include "tests/unit/gate/decide_scene.h"

#define LANE_ID 9

static struct gate_lane lane;
static struct claim_answer answer;

static int code_scene(void **state)
{
	scene(state);
	lane = (struct gate_lane){.room = room};
	lane.room.line_id = LANE_ID;
	lane.room.takes_codes = room.takes_codes = true;
	room.lanes = &lane;
	room.lane_count = 1;
	request.whole = &room;
	request.route = GATE_ROUTE_CODE;
	request.method = HTTP_POST;
	request.code = (struct code_digest){{0x1111, 0x2222}};
	request.once = 0;
	lane.room.line = line;
	answer = (struct claim_answer){.kind = CLAIM_CODE,
		.line_id = LINE_ID,
		.lane_id = LANE_ID,
		.key = keys[8],
		.visitor = 0x777};
	return 0;
}

static void is_told(enum decide_answer told, enum code_outcome outcome)
{
	run();
	assert_int_equal(decision.action, DECIDE_ANSWER);
	assert_int_equal(decision.answer, told);
	assert_int_equal(decision.outcome, outcome);
	assert_false(decision.sets_ticket || decision.sets_pass || decision.was_minted);
	assert_int_equal(decision.lane_id, 0);
}

static void is_page(enum status_state told)
{
	is_told(DECIDE_PAGE, 0);
	assert_int_equal(decision.status.state, told);
}

static void test_a_code_is_a_claim(void **state)
{
	(void)state;
	run();
	assert_int_equal(decision.action, DECIDE_CLAIM);
	const struct claim *claim = &decision.claim;
	assert_int_equal(claim->kind, CLAIM_CODE);
	assert_true(claim->key == 0x1111 && claim->session == 0x2222);
	assert_true(claim->line_id == LINE_ID && claim->room == room.index);
	assert_true(claim->visitor == 0 && claim->expires == 0 && claim->place == 0);
	carry_ticket(keys[7], CARRY_COOKIE);
	run();
	assert_true(decision.claim.expires == LINE_ID && decision.claim.place == keys[7]);
}

// Whoever may ask again: by the ticket, even one that was given up; else by the page.
static void test_holders(void **state)
{
	(void)state;
	request.once = 0xab;
	run();
	assert_true(decision.claim.visitor == (0xab ^ 0x1111) && decision.claim.poll_after == 1);
	carry_ticket(keys[7], CARRY_COOKIE);
	run();
	assert_true(decision.claim.visitor == 0xabc && decision.claim.poll_after == 0);
	void *memory = aligned_alloc(64, (ended_bytes(8) + 63) / 64 * 64);
	assert_non_null(memory);
	struct ended *left = ended_init(memory, 8);
	ended_insert(left, 0xabc, NOW_S + 1000);
	input.left = left;
	run();
	assert_true(decision.claim.visitor == 0xabc && decision.claim.poll_after == 0);
	assert_true(decision.claim.expires == 0 && decision.claim.place == 0);
	free(memory);
}

static void test_who_has_no_use_for_one(void **state)
{
	(void)state;
	room.state = GATE_CLOSED;
	is_page(STATUS_closed);
	room.state = GATE_BEFORE;
	is_page(STATUS_before);
	room.state = GATE_OPEN;
	room.mode = GATE_MODE_REJECT;
	is_page(STATUS_rejected);
	room.mode = GATE_MODE_OFF;
	is_told(DECIDE_WELCOME, 0);
	assert_int_equal(decision.status.state, STATUS_admitted);
	room.mode = GATE_MODE_AUTO;
	input.is_held = true;
	is_told(DECIDE_UNAVAILABLE, 0);
	input.is_held = false;
	input.is_draining = true;
	is_told(DECIDE_UNAVAILABLE, 0);
	input.is_draining = false;
	carry_pass(10, CARRY_COOKIE);
	is_told(DECIDE_WELCOME, 0);
	assert_int_equal(decision.status.state, STATUS_admitted);
	assert_int_equal(decision.status.expires, request.pass->token.expires);
	input.pass_has_ended = true;
	run();
	assert_int_equal(decision.action, DECIDE_CLAIM);
	room.state = GATE_PAUSED; // places are drawn
	run();
	assert_int_equal(decision.action, DECIDE_CLAIM);
}

static void test_what_is_asked_for_or_wrong(void **state)
{
	(void)state;
	for (int outcome = CODE_invalid; outcome <= CODE_unsized; outcome++) {
		request.code_outcome = (uint8_t)outcome;
		is_told(DECIDE_INVITATION, (enum code_outcome)outcome);
	}
	request.is_cross_site = true;
	is_told(DECIDE_CROSS_SITE, 0);
	request.method = HTTP_PUT;
	is_told(DECIDE_METHOD, 0);
	request.method = HTTP_HEAD;
	is_told(DECIDE_INVITATION, CODE_asked);
	request.method = HTTP_GET;
	is_told(DECIDE_INVITATION, CODE_asked);
}

static void test_honoured(void **state)
{
	(void)state;
	input.answer = &answer;
	answer.verdict = CLAIM_HONOURED;
	carry_ticket(keys[7], CARRY_COOKIE); // of the room's own line: given up
	run();
	assert_int_equal(decision.action, DECIDE_ANSWER);
	assert_int_equal(decision.answer, DECIDE_WELCOME);
	assert_int_equal(decision.lane_id, LANE_ID);
	assert_true(decision.sets_ticket && decision.was_minted);
	assert_int_equal(decision.ticket.line_id, LANE_ID);
	assert_true(decision.ticket.visitor == 0x777 && decision.ticket.key == keys[8]);
	assert_int_equal(decision.ticket.flags, 0);
	assert_int_equal(decision.status.state, STATUS_waiting);
	answer.expires = CLAIM_PLACE_AGAIN;
	run();
	assert_true(decision.sets_ticket && !decision.was_minted);
	static struct gather gather;
	lane.room.gather = &gather;
	answer.expires = CLAIM_PLACE_GATHERED;
	run();
	assert_true(decision.sets_ticket && decision.was_minted);
	assert_int_equal(decision.ticket.flags, TOKEN_FLAG_GATHERED);
}

// No place, which `lane_id` says.
static void test_honoured_in_vain(void **state)
{
	(void)state;
	input.answer = &answer;
	answer.verdict = CLAIM_FULL;
	is_page(STATUS_full);
	answer.verdict = CLAIM_BEFORE;
	is_page(STATUS_before);
	answer.verdict = CLAIM_HONOURED;
	answer.expires = CLAIM_PLACE_GATHERED; // where nobody gathers any more
	is_told(DECIDE_INVITATION, CODE_unknown);
	answer.expires = 0;
	answer.lane_id = 77; // a reload has taken it away
	is_told(DECIDE_INVITATION, CODE_unknown);
	answer.lane_id = LANE_ID;
	answer.line_id = 8; // another room's
	is_told(DECIDE_UNAVAILABLE, 0);
}

static void test_other_answers(void **state)
{
	(void)state;
	input.answer = &answer;
	answer.verdict = CLAIM_KNOWN; // and the ticket has lapsed meanwhile
	is_told(DECIDE_WELCOME, 0);
	assert_int_equal(decision.status.state, STATUS_expired);
	carry_ticket(keys[7], CARRY_COOKIE);
	is_told(DECIDE_WELCOME, 0);
	assert_int_equal(decision.status.state, STATUS_waiting);
	assert_int_equal(decision.status.position, 8);
	request.token_count = 0;
	carry_ticket(keys[FIRST_CALLED], CARRY_COOKIE);
	is_told(DECIDE_WELCOME, 0);
	assert_int_equal(decision.status.state, STATUS_next);
	answer.verdict = CLAIM_UNKNOWN;
	is_told(DECIDE_INVITATION, CODE_unknown);
	answer.verdict = CLAIM_SPENT;
	is_told(DECIDE_INVITATION, CODE_spent);
	answer.verdict = CLAIM_REFUSED;
	is_told(DECIDE_UNAVAILABLE, 0);
	input.answer = NULL;
	input.answer_is_late = true;
	is_told(DECIDE_UNAVAILABLE, 0);
}

#define STORY(story) cmocka_unit_test_setup_teardown(story, code_scene, scene_end)

int main(void)
{
	const struct CMUnitTest tests[] = {
		STORY(test_a_code_is_a_claim),
		STORY(test_holders),
		STORY(test_who_has_no_use_for_one),
		STORY(test_what_is_asked_for_or_wrong),
		STORY(test_honoured),
		STORY(test_honoured_in_vain),
		STORY(test_other_answers),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
