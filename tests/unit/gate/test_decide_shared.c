// Goal: in a line that appliances share nobody is told a place before it is final, and then the
// same for ever.

#include "tests/unit/gate/decide_scene.h"

#include "dataplane/gate/ranks.h"

#define SYNC_S 2u // as decide_tell.c

static struct ranks *ranks;

// The scene's ten tickets are told, and final; a neighbour has as many in the same slots.
static int shared_scene(void **state)
{
	const size_t bytes = (ranks_bytes(RANKS_ENTRIES_MIN) + 63) / 64 * 64;
	uint64_t held[2 * TICKETS];
	scene(state);
	void *memory = aligned_alloc(64, bytes);
	assert_non_null(memory);
	memset(memory, 0, bytes);
	ranks = ranks_init(memory, RANKS_ENTRIES_MIN);
	place_share(line, ranks);
	const uint32_t count = place_told(line, 0, held, 2 * TICKETS);
	assert_int_equal(count, TICKETS);
	ranks_told(ranks, 0, held, count);
	ranks_told(ranks, 1, held, count);
	return 0;
}

static int shared_scene_end(void **state)
{
	free(ranks);
	return scene_end(state);
}

static void all_is_known(void)
{
	assert_true(ranks_begin(ranks, 0, 0));
	ranks_settle(ranks, NOW_SLOT - 800);
	atomic_store(&line->threshold_rank, 2 * FIRST_WAITING);
}

static void poll(uint64_t key)
{
	request.route = GATE_ROUTE_STATUS;
	request.token_count = 0;
	request.ticket = NULL;
	carry_ticket(key, CARRY_COOKIE);
	run();
	assert_int_equal(decision.action, DECIDE_ANSWER);
	assert_int_equal(decision.answer, DECIDE_STATUS);
}

static void nothing_is_told_before_it_is_final(void **state)
{
	(void)state;
	const struct status *s = &decision.status;
	poll(keys[7]);
	assert_int_equal(s->state, STATUS_waiting);
	assert_true(s->position == STATUS_UNKNOWN && s->ahead == STATUS_UNKNOWN);
	assert_true(s->eta_low == STATUS_UNKNOWN && s->eta_high == STATUS_UNKNOWN);
	assert_int_equal(s->progress, 0);
	assert_false(s->exact);
	char json[STATUS_JSON_BYTES_MAX];
	json[status_json(s, &room, json)] = '\0';
	assert_non_null(strstr(json, "\"state\":\"waiting\",\"position\":null,\"ahead\":null,"
				     "\"exact\":false,\"eta\":null"));
	all_is_known();
	poll(keys[7]);
	assert_int_equal(s->position, 2 * 7 + 1);
	assert_int_equal(s->ahead, 2 * (7 - FIRST_WAITING));
	assert_true(s->exact && s->eta_high != STATUS_UNKNOWN);
	poll(keys[7] + 1); // the neighbour's of the same slot
	assert_int_equal(s->position, 2 * 7 + 2);
}

static void who_has_just_come_asks_again_at_once(void **state)
{
	(void)state;
	all_is_known();
	request.token_count = 0;
	run();
	assert_true(decision.was_minted);
	assert_int_equal(decision.status.state, STATUS_waiting);
	assert_true(decision.status.position == STATUS_UNKNOWN);
	assert_int_equal(decision.status.poll_after, PACE_MIN_S);
	const uint64_t key = decision.ticket.key, held = place_slot(key) << 24 | 1;
	place_close(line, place_slot(key) + 1);
	ranks_told(ranks, 0, &held, 1);
	ranks_settle(ranks, place_slot(key) + 1);
	poll(key);
	assert_int_equal(decision.status.position, 2 * TICKETS + 1);
	assert_true(decision.status.exact);
}

static void who_is_never_told_asks_by_distance(void **state)
{
	(void)state;
	struct {
		uint32_t age_s, poll_after;
	} cases[] = {{0, PACE_MIN_S}, {SYNC_S, PACE_MIN_S}, {SYNC_S + 1, 4}}; // a tenth of 15 x 3
	for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
		request.route = GATE_ROUTE_STATUS;
		request.token_count = 0;
		request.ticket = NULL;
		carry_ticket(keys[7] + (1ull << 40), CARRY_COOKIE);
		request.tokens[0].token.issued = NOW_S - cases[i].age_s;
		all_is_known();
		atomic_store(&line->threshold_rank, FIRST_WAITING);
		run();
		assert_int_equal(decision.status.poll_after, cases[i].poll_after);
	}
}

static void the_called_have_nobody_ahead_and_perhaps_no_place_yet(void **state)
{
	(void)state;
	input.answer_is_late = true;
	poll(keys[3]);
	assert_int_equal(decision.status.state, STATUS_next);
	assert_true(decision.status.position == STATUS_UNKNOWN);
	assert_int_equal(decision.status.ahead, 0);
	all_is_known();
	poll(keys[3]);
	assert_int_equal(decision.status.position, 2 * 3 + 1);
}

// A ticket of a slot that was told too late has its slot's last place, for ever.
static void a_late_ticket_stands_behind_its_slot(void **state)
{
	(void)state;
	all_is_known();
	const uint64_t key = place_key(place_slot(keys[7]), 3, 2);
	for (int again = 0; again < 2; again++) {
		poll(key);
		assert_int_equal(decision.status.position, 2 * 8 + 1);
		assert_false(decision.status.exact);
		const uint64_t held = place_slot(key) << 24 | 4;
		ranks_told(ranks, 2, &held, 1);
		ranks_settle(ranks, NOW_SLOT);
	}
}

#define STORY(name) cmocka_unit_test_setup_teardown(name, shared_scene, shared_scene_end)

int main(void)
{
	const struct CMUnitTest tests[] = {
		STORY(nothing_is_told_before_it_is_final),
		STORY(who_has_just_come_asks_again_at_once),
		STORY(who_is_never_told_asks_by_distance),
		STORY(the_called_have_nobody_ahead_and_perhaps_no_place_yet),
		STORY(a_late_ticket_stands_behind_its_slot),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
