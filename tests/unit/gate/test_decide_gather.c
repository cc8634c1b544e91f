// Decisions in rooms where people gather: before the doors, while places are drawn, in windows.

#include "tests/unit/gate/decide_scene.h"

#include "dataplane/gate/draw.h"
#include "dataplane/gate/ended.h"
#include "dataplane/gate/gather.h"
#include "dataplane/gate/mac_state.h"

#define NUMBER 1700000000000ull // of the gathering
#define GATHERED_MAX 3
#define OPENS_S (NOW_S + 600)
#define FIRST_SLOT (NOW_SLOT - 700)

static struct gather words;
static struct gather_ids *ids;
static uint64_t hashes[GATHERED_MAX + 1];
static struct draw_list list;
static struct draw_set *set;

// The scene's room, whose doors are closed and where people gather behind its ten tickets.
static int gathering(void **state)
{
	scene(state);
	free(ids);
	free(set);
	ids = calloc(1, sizeof(*ids) + GATHERED_MAX * sizeof(ids->ids[0]));
	set = calloc(1, sizeof(*set) + sizeof(set->lists[0]));
	assert_true(ids && set);
	ids->number = NUMBER;
	ids->max = GATHERED_MAX;
	atomic_store(&ids->ready, GATHERED_MAX);
	memset(&words, 0, sizeof(words));
	atomic_store(&words.open, ids);
	atomic_store(&words.numbers[0], NUMBER);
	atomic_store(&line->gathers_from, FIRST_SLOT);
	room.gather = &words;
	room.state = GATE_BEFORE;
	room.opens_s = OPENS_S;
	room.gathers_s = OPENS_S - 1800;
	input.is_held = false;
	return 0;
}

static int gathering_end(void **state)
{
	free(ids);
	free(set);
	ids = NULL;
	set = NULL;
	return scene_end(state);
}

static struct gate_token *carry_gathered(uint64_t number, uint64_t visitor)
{
	struct gate_token *token = carry(TOKEN_TICKET, CARRY_COOKIE);
	token->token.flags = TOKEN_FLAG_GATHERED;
	token->token.key = number;
	token->token.visitor = visitor;
	request.ticket = token;
	return token;
}

static void poll(void)
{
	request.route = GATE_ROUTE_STATUS;
	request.draws = false;
}

// `visitors` gathered, and their places are drawn.
static void draw_them(const uint64_t *visitors, uint64_t count)
{
	uint64_t scratch[GATHERED_MAX + 1];
	memset(&list, 0, sizeof(list));
	mac_key_init(&list.mac, (const uint8_t *)"a seed, and nothing but a seed..", 32);
	for (uint64_t i = 0; i < count; i++)
		hashes[i] = mac_state_word(&list.mac, visitors[i]);
	draw_sort(hashes, scratch, count);
	list.number = NUMBER;
	list.first_slot = FIRST_SLOT;
	list.end_slot = FIRST_SLOT + 6000;
	list.base = TICKETS;
	list.count = count;
	list.hashes = hashes;
	draw_list_init(&list);
	set->count = 1;
	set->lists[0] = &list;
	atomic_store(&line->drawn, set);
	atomic_store(&line->gathers_from, 0);
	atomic_store(&words.open, NULL);
	atomic_store(&words.numbers[0], 0);
}

static void assert_told(enum status_state state)
{
	assert_int_equal(decision.action, DECIDE_ANSWER);
	assert_int_equal(decision.status.state, state);
}

static void a_newcomer_gathers(void **state)
{
	(void)state;
	input.random = UINT32_MAX;
	run();
	assert_told(STATUS_prequeue);
	assert_int_equal(decision.answer, DECIDE_PAGE);
	assert_true(decision.was_minted && decision.sets_ticket);
	assert_int_equal(decision.ticket.flags, TOKEN_FLAG_GATHERED);
	assert_int_equal(decision.ticket.key, NUMBER);
	assert_int_equal(decision.status.opens, OPENS_S);
	assert_true(decision.status.position == STATUS_UNKNOWN);
	assert_true(decision.status.ahead == STATUS_UNKNOWN);
	assert_int_equal(decision.status.poll_after, 60);
	assert_int_equal(ids->ids[0], input.fresh_visitor); // before its ticket leaves
	assert_int_equal(atomic_load(&line->gathered), 1);
	input.random = 0;
	run();
	assert_int_equal(decision.status.poll_after, 1); // spread over the first minute
}

static void a_gathering_is_full(void **state)
{
	(void)state;
	for (int i = 0; i < GATHERED_MAX; i++)
		run();
	assert_told(STATUS_prequeue);
	run();
	assert_told(STATUS_full);
	assert_false(decision.sets_ticket);
	assert_int_equal(atomic_load(&line->gathered), GATHERED_MAX);
}

static void who_gathered_does_not_gather_twice(void **state)
{
	(void)state;
	carry_gathered(NUMBER, 0xabc);
	run();
	assert_told(STATUS_prequeue);
	assert_false(decision.was_minted || decision.sets_ticket || decision.clears_ticket);
	assert_int_equal(atomic_load(&line->gathered), 0);
	poll();
	run();
	assert_told(STATUS_prequeue);
	assert_in_range(decision.status.poll_after, 45, 60);
}

static void tickets_of_another_gathering_count_as_none(void **state)
{
	(void)state;
	carry_gathered(NUMBER - 1, 0xabc);
	run();
	assert_told(STATUS_prequeue);
	assert_true(decision.was_minted);
	poll();
	run();
	assert_told(STATUS_expired);
	assert_true(decision.clears_ticket);
	room.gather = NULL; // nobody gathers here any more
	run();
	assert_told(STATUS_expired);
}

static void an_earlier_place_is_kept(void **state)
{
	(void)state;
	carry_ticket(keys[7], CARRY_COOKIE);
	carry_gathered(NUMBER, 0xabc);
	poll();
	run();
	assert_told(STATUS_waiting); // its place counts, though the doors are closed
	assert_int_equal(decision.status.position, 8);
	assert_int_equal(decision.ticket.key, keys[7]);
}

static void before_anybody_gathers(void **state)
{
	(void)state;
	atomic_store(&words.open, NULL);
	atomic_store(&words.numbers[0], 0);
	room.gathers_s = NOW_S + 20;
	run();
	assert_told(STATUS_before);
	assert_false(decision.sets_ticket);
	assert_in_range(decision.status.poll_after, 21, 35); // soon after it may
	room.gather = NULL;
	room.gathers_s = NOW_S + 3600;
	run();
	assert_told(STATUS_before);
	assert_in_range(decision.status.poll_after, 45, 60);
	poll();
	run();
	assert_int_equal(decision.answer, DECIDE_UNKNOWN);
}

// The list is closed, and not drawn: late ones have a place behind, which is not told yet.
static void while_places_are_drawn(void **state)
{
	(void)state;
	atomic_store(&words.open, NULL);
	room.opens_s = NOW_S - 1;
	run();
	assert_told(STATUS_prequeue);
	assert_true(decision.was_minted);
	assert_int_equal(decision.ticket.flags, 0);
	assert_true(decision.status.position == STATUS_UNKNOWN);
	carry_gathered(NUMBER, 0xabc);
	poll();
	run();
	assert_told(STATUS_prequeue);
	assert_in_range(decision.status.poll_after, 1, 15);
}

// Of an event that is over, while the doors of the next one are closed.
static void while_an_earlier_opening_is_drawn(void **state)
{
	(void)state;
	atomic_store(&words.open, NULL);
	run();
	assert_told(STATUS_before);
	assert_false(decision.was_minted); // it would stand before all who gather
}

static void drawn_tickets_get_their_keys(void **state)
{
	(void)state;
	const uint64_t visitors[] = {0xa, 0xb, 0xc};
	draw_them(visitors, 3);
	room.state = GATE_OPEN;
	room.opens_s = 0;
	atomic_store(&line->threshold, keys[TICKETS - 1]);
	bool is_taken[3] = {false};
	for (int i = 0; i < 3; i++) {
		request.token_count = 0;
		carry_gathered(NUMBER, visitors[i]);
		poll();
		run();
		assert_told(STATUS_waiting);
		assert_true(decision.sets_ticket && decision.status.exact);
		assert_int_equal(decision.ticket.flags, 0);
		assert_int_equal(decision.ticket.visitor, visitors[i]);
		assert_in_range(decision.status.position, TICKETS + 1, TICKETS + 3);
		is_taken[decision.status.position - TICKETS - 1] = true;
		const uint64_t position = decision.status.position;
		request.token_count = 0;
		request.ticket = NULL;
		carry_ticket(decision.ticket.key, CARRY_COOKIE); // and keeps it
		request.tokens[0].token.visitor = visitors[i];
		run();
		assert_int_equal(decision.status.position, position);
		assert_false(decision.sets_ticket);
	}
	assert_true(is_taken[0] && is_taken[1] && is_taken[2]);
}

static void a_drawn_ticket_that_is_called_claims(void **state)
{
	(void)state;
	const uint64_t visitors[] = {0xa};
	draw_them(visitors, 1);
	room.state = GATE_OPEN;
	atomic_store(&line->threshold, place_key(list.end_slot, 0, 0));
	atomic_store(&line->open, PLACE_OPEN_LINE);
	carry_gathered(NUMBER, 0xa);
	poll();
	run();
	assert_int_equal(decision.action, DECIDE_CLAIM);
	assert_int_equal(decision.claim.key, draw_key(&list, hashes[0]));
	assert_int_equal(decision.claim.visitor, 0xa);
}

static void one_that_is_not_in_the_list(void **state)
{
	(void)state;
	const uint64_t visitors[] = {0xa, 0xb};
	draw_them(visitors, 2);
	room.state = GATE_OPEN;
	carry_gathered(NUMBER, 0xdead);
	poll();
	run();
	assert_told(STATUS_waiting);
	assert_false(decision.status.exact); // the place of a neighbour
	assert_in_range(decision.status.position, TICKETS + 1, TICKETS + 3);
}

static void a_window(void **state)
{
	(void)state;
	room.state = GATE_OPEN;
	room.opens_s = 0;
	room.mode = GATE_MODE_ALWAYS;
	atomic_store(&words.closes_s, NOW_S + 20);
	run();
	assert_told(STATUS_waiting);
	assert_true(decision.status.position == STATUS_UNKNOWN);
	assert_int_equal(decision.status.ahead_min, TICKETS - FIRST_WAITING);
	assert_in_range(decision.status.poll_after, 22, 31);
	assert_int_equal(decision.ticket.flags, TOKEN_FLAG_GATHERED);
}

static void leaving(void **state)
{
	(void)state;
	carry_gathered(NUMBER, 0xabc);
	request.route = GATE_ROUTE_LEAVE;
	request.method = HTTP_POST;
	run();
	assert_int_equal(decision.action, DECIDE_CLAIM);
	assert_int_equal(decision.claim.kind, CLAIM_LEAVE);
	assert_int_equal(decision.claim.visitor, 0xabc);
	assert_true(decision.claim.key == (GATHER_NUMBER | NUMBER));
	const struct claim_answer said = {
		.kind = CLAIM_LEAVE, .line_id = LINE_ID, .verdict = CLAIM_LEFT};
	input.answer = &said;
	run();
	assert_int_equal(decision.answer, DECIDE_LEFT);
	assert_true(decision.clears_ticket);
}

static void who_left_has_no_turn(void **state)
{
	(void)state;
	const uint64_t visitors[] = {0xa1, 0xb2};
	static _Alignas(64) char memory[4096];
	assert_true(ended_bytes(8) <= sizeof(memory));
	struct ended *left = ended_init(memory, 8);
	assert_true(ended_insert(left, 0xa1, UINT32_MAX));
	input.left = left;
	carry_gathered(NUMBER, 0xa1);
	poll();
	run();
	assert_told(STATUS_expired); // not drawn yet
	draw_them(visitors, 2);
	room.state = GATE_OPEN;
	run();
	assert_told(STATUS_expired);
	request.token_count = 0;
	carry_gathered(NUMBER, 0xb2);
	run();
	assert_told(STATUS_waiting);
}

static void closed_and_off(void **state)
{
	(void)state;
	room.state = GATE_CLOSED;
	run();
	assert_told(STATUS_closed);
	assert_int_equal(atomic_load(&line->gathered), 0);
}

static void shows_the_draw(void **state)
{
	(void)state;
	static struct gather_proof proof;
	request.whole = &room;
	request.route = GATE_ROUTE_DRAW;
	run();
	assert_int_equal(decision.answer, DECIDE_DRAW_NONE);
	atomic_store(&words.proof, &proof);
	run();
	assert_int_equal(decision.answer, DECIDE_DRAW);
	assert_ptr_equal(decision.proof, &proof);
	request.route = GATE_ROUTE_DRAW_KEYS;
	run();
	assert_int_equal(decision.answer, DECIDE_DRAW_NONE);
	atomic_store(&words.shown, &list);
	run();
	assert_int_equal(decision.answer, DECIDE_DRAW_KEYS);
	assert_ptr_equal(decision.list, &list);
}

#define STORY(story) cmocka_unit_test_setup_teardown(story, gathering, gathering_end)

int main(void)
{
	const struct CMUnitTest tests[] = {
		STORY(a_newcomer_gathers),
		STORY(a_gathering_is_full),
		STORY(who_gathered_does_not_gather_twice),
		STORY(tickets_of_another_gathering_count_as_none),
		STORY(an_earlier_place_is_kept),
		STORY(before_anybody_gathers),
		STORY(while_places_are_drawn),
		STORY(while_an_earlier_opening_is_drawn),
		STORY(drawn_tickets_get_their_keys),
		STORY(a_drawn_ticket_that_is_called_claims),
		STORY(one_that_is_not_in_the_list),
		STORY(a_window),
		STORY(leaving),
		STORY(who_left_has_no_turn),
		STORY(closed_and_off),
		STORY(shows_the_draw),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
