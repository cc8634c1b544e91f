// The decision in stories: what a visitor is told, which ticket counts, which cookies are cleared,
// what is given back.

#include "dataplane/gate/ended.h"
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
	assert_int_equal(status->eta_low, 4); // two ahead
	assert_int_equal(status->eta_high, 9); // and this one
	assert_int_equal(status->progress, 714); // 15 s of 15 + 6
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
	assert_int_equal(decision.status.poll_after, pace_poll_after(0, 3ull << 32, 0));
}

// One slot, ten minutes: whoever is first waits until that one is given on.
static void the_first_in_line_waits_for_a_slot_all_the_same(void **state)
{
	(void)state;
	atomic_store(&line->wait_low, 480ull << 32);
	atomic_store(&line->wait_high, 720ull << 32);
	atomic_store(&line->door_wait_ms, 2500);
	carry_ticket(keys[FIRST_WAITING], CARRY_COOKIE);
	run();
	assert_int_equal(decision.status.ahead, 0);
	assert_int_equal(decision.status.eta_low, 2); // it may be given on now
	assert_int_equal(decision.status.eta_high, 723);
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

// --- to https

static void plain_visitors_of_a_secure_site_are_sent_to_https(void **state)
{
	static char target[DECIDE_LOCATION_BYTES_MAX];
	static const struct {
		enum gate_route route;
		bool is_plain;
		uint16_t port;
		uint32_t target_bytes;
		int answer; // -1: none of these
	} rows[] = {
		{GATE_ROUTE_GUARDED, true, 443, 1, DECIDE_HTTPS},
		{GATE_ROUTE_UNGUARDED, true, 443, 1, DECIDE_HTTPS},
		{GATE_ROUTE_STATUS, true, 443, 1, DECIDE_HTTPS},
		{GATE_ROUTE_UNKNOWN, true, 443, 1, DECIDE_HTTPS},
		{GATE_ROUTE_HEALTH, true, 443, 1, DECIDE_HEALTH},
		{GATE_ROUTE_BAD, true, 443, 1, DECIDE_BAD_TARGET},
		{GATE_ROUTE_GUARDED, false, 443, 1, -1},
		{GATE_ROUTE_GUARDED, true, 0, 1, -1},
		{GATE_ROUTE_GUARDED, true, 443, sizeof(target) - 301, DECIDE_HTTPS},
		{GATE_ROUTE_GUARDED, true, 443, sizeof(target) - 300, DECIDE_BAD_TARGET},
	};
	(void)state;
	memset(target, '/', sizeof(target));
	for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
		request.route = (uint8_t)rows[i].route;
		request.room = rows[i].route == GATE_ROUTE_GUARDED ? &room : NULL;
		request.target = (struct span){target, rows[i].target_bytes};
		site.https_port = rows[i].port;
		input.is_plain = rows[i].is_plain;
		run();
		bool is_sent =
			decision.action == DECIDE_ANSWER &&
			(decision.answer == DECIDE_HTTPS || decision.answer == DECIDE_HEALTH ||
				decision.answer == DECIDE_BAD_TARGET);
		assert_int_equal(is_sent ? (int)decision.answer : -1, rows[i].answer);
		assert_false(decision.was_minted && rows[i].answer >= 0);
	}
	site.https_port = 0;
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
	assert_true(decision.sets_ticket);
	request.redirect.len = 5;
	request.draws = false;
	run();
	assert_int_equal(decision.answer, DECIDE_UNAVAILABLE);
}

// --- leaving, and the rest

static void leaving_gives_back_what_is_held(void **state)
{
	(void)state;
	request.route = GATE_ROUTE_LEAVE;
	request.method = HTTP_POST;
	carry_ticket(keys[7], CARRY_COOKIE);
	run();
	assert_int_equal(decision.action, DECIDE_CLAIM);
	assert_int_equal(decision.claim.kind, CLAIM_LEAVE);
	assert_int_equal(decision.claim.room, 3);
	assert_int_equal(decision.claim.line_id, LINE_ID);
	assert_int_equal(decision.claim.key, keys[7]);
	assert_int_equal(decision.claim.visitor, 0xabc);
	assert_int_equal(decision.claim.session, 0);
	carry_pass(100, CARRY_COOKIE); // the session of that very visitor
	run();
	assert_int_equal(decision.claim.key, 0);
	assert_int_equal(decision.claim.session, 0x5e55);
	assert_int_equal(decision.claim.expires, NOW_S - 100 + LIFE_S);
	assert_int_equal(decision.claim.place, 0);
	request.tokens[1].token.visitor = 0xdef; // another one's: both
	run();
	assert_int_equal(decision.claim.key, keys[7]);
	assert_int_equal(decision.claim.visitor, 0xabc);
	assert_int_equal(decision.claim.session, 0x5e55);
	assert_int_equal(decision.claim.place, 0xdef);
}

// A copy of a ticket that was given back is worth nothing from then on; another one may be.
static void a_ticket_given_back_has_expired(void **state)
{
	(void)state;
	void *memory = aligned_alloc(64, ended_bytes(4));
	struct ended *left = ended_init(memory, 4);
	input.left = left;
	carry_ticket(keys[7], CARRY_COOKIE);
	request.route = GATE_ROUTE_STATUS;
	run();
	assert_int_equal(decision.status.state, STATUS_waiting);
	assert_true(ended_insert(left, 0xabc, UINT32_MAX));
	run();
	assert_int_equal(decision.status.state, STATUS_expired);
	assert_true(decision.clears_ticket);
	request.tokens[0].token.key = keys[3]; // called: nobody need be asked
	run();
	assert_int_equal(decision.status.state, STATUS_expired);
	request.route = GATE_ROUTE_GUARDED;
	run(); // perhaps it was given up for another
	assert_int_equal(decision.claim.kind, CLAIM_MOVE);
	assert_true(decision.claim.visitor == 0xabc && decision.claim.expires == 0);
	struct claim_answer unknown = {
		.kind = CLAIM_MOVE, .verdict = CLAIM_UNKNOWN, .line_id = LINE_ID};
	input.answer = &unknown;
	run();
	assert_true(decision.was_minted);
	input.answer = NULL;
	request.route = GATE_ROUTE_LEAVE;
	request.method = HTTP_POST;
	run();
	assert_int_equal(decision.action, DECIDE_CLAIM); // once more: was it saved?
	request.route = GATE_ROUTE_STATUS;
	request.method = HTTP_GET;
	carry_ticket(keys[8], CARRY_HEADER);
	request.tokens[1].token.visitor = 0xdef;
	run();
	assert_int_equal(decision.status.state, STATUS_waiting);
	assert_int_equal(decision.status.position, 9);
	free(memory);
}

// The cookies go when the store has it, and stay for another try when it may not.
static void who_leaves_is_told_when_it_is_done(void **state)
{
	(void)state;
	struct claim_answer said = {.kind = CLAIM_LEAVE, .line_id = LINE_ID};
	static const struct {
		uint8_t verdict;
		uint32_t line_id;
		bool is_late, is_left;
	} cases[] = {{CLAIM_LEFT, LINE_ID, false, true}, {CLAIM_REFUSED, LINE_ID, false, false},
		{CLAIM_LEFT, LINE_ID + 1, false, false}, {0, 0, true, false}};
	request.route = GATE_ROUTE_LEAVE;
	request.method = HTTP_POST;
	carry_ticket(keys[7], CARRY_COOKIE);
	carry_pass(100, CARRY_COOKIE);
	input.pass_has_ended = true; // by now
	for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
		said.verdict = cases[i].verdict;
		said.line_id = cases[i].line_id; // another: a reload came between
		input.answer = cases[i].is_late ? NULL : &said;
		input.answer_is_late = cases[i].is_late;
		run();
		assert_int_equal(decision.action, DECIDE_ANSWER);
		assert_int_equal(
			decision.answer, cases[i].is_left ? DECIDE_LEFT : DECIDE_UNAVAILABLE);
		assert_int_equal(decision.clears_ticket, cases[i].is_left);
		assert_int_equal(decision.clears_pass, cases[i].is_left);
		assert_true(cases[i].is_left || decision.status.poll_after == 4);
	}
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
	assert_false(decision.clears_ticket);
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
		STORY(plain_visitors_of_a_secure_site_are_sent_to_https),
		STORY(the_first_of_those_waiting_has_nobody_ahead),
		STORY(the_first_in_line_waits_for_a_slot_all_the_same),
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
		STORY(leaving_gives_back_what_is_held),
		STORY(a_ticket_given_back_has_expired),
		STORY(who_leaves_is_told_when_it_is_done),
		STORY(another_site_may_not_make_a_visitor_leave),
		STORY(health_says_what_is_wrong),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
