// Restart and reload: what is taken over from the store, and the quiet after an unclean end.

#include "tests/unit/store/turn.h"

#include <errno.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdbool.h>
#include <stddef.h>

#include <cmocka.h>

#define NOW TURN_NOW
#define NOW_S TURN_NOW_S
#define SESSION_S CONTROLLER_STUB_SESSION_S

static void restart_unclean(uint32_t until)
{
	claims_destroy(turn_world.claims);
	turn_world.model.is_marked = true;
	turn_world.model.marked_until = until;
	store_model_crash(&turn_world.model, false);
	turn_start();
	assert_int_equal(claims_restore(turn_world.claims, NOW), 0);
}

static void after_an_unclean_end_nobody_new_for_one_session(void **state)
{
	(void)state;
	restart_unclean(NOW_S + 5);
	turn_with(turn_claim(CLAIM_CALLED, 7), 0); // in the very first turn
	turn_answers("0:7 next");
	turn_diary("derby.off club.off derby.hold club.hold");
	assert_int_equal(claims_quiet_until(turn_world.claims, 1), NOW + SESSION_S * 1000);
	turn_with(turn_claim(CLAIM_CALLED, 7), SESSION_S * 1000 - CLAIMS_TICK_MS);
	turn_answers("0:7 next");
	controller_stub_diary[0] = '\0';
	turn_with(turn_claim(CLAIM_CALLED, 7), SESSION_S * 1000);
	turn_answers("0:7 granted");
	turn_diary("derby.on club.hold"); // each room for its own session
	assert_int_equal(claims_quiet_until(turn_world.claims, 1), 0);
	assert_true(turn_world.model.is_marked);
	turn_idle(2 * SESSION_S * 1000);
	assert_false(turn_world.model.is_marked);
	assert_false(turn_world.model.store.status.is_unclean);
}

static void sessions_that_were_longer_before(void **state)
{
	(void)state;
	restart_unclean(NOW_S + 9 * SESSION_S);
	turn_with(turn_claim(CLAIM_CALLED, 7), 9 * SESSION_S * 1000 - CLAIMS_TICK_MS);
	turn_answers("0:7 next");
	turn_with(turn_claim(CLAIM_CALLED, 7), 9 * SESSION_S * 1000);
	turn_answers("0:7 granted");
	assert_false(turn_world.model.is_marked);
}

static void save_session(uint32_t line_id, uint64_t visitor, uint32_t expires, bool is_over)
{
	turn_world.model.sessions[turn_world.model.session_count++] =
		(struct store_session){line_id, expires, visitor, visitor + 100, visitor, is_over};
}

static void what_the_store_knows_is_taken_over(void **state)
{
	(void)state;
	turn_world.lines[0]->floor = 50;
	save_session(1, 10, NOW_S + 1, false); // live
	save_session(1, 60, NOW_S, false); // expired this second, and its ticket could be used
	save_session(1, 20, NOW_S, false); // expired, and floor has passed it
	save_session(1, 70, NOW_S + 9, true); // over early, its ticket could be used
	save_session(1, 30, NOW_S + 9, true);
	save_session(2, 20, NOW_S - 999, false); // expired; of another line, where floor is 0
	save_session(3, 40, NOW_S, false); // not configured now
	save_session(3, 41, NOW_S - CLAIMS_KEEP_S - 1, false); // nor for long
	save_session(1, 666, NOW_S + 5, false); // no room
	save_session(1, 80, 0, true); // given back
	turn_world.model.sessions[9].session = 0;
	assert_int_equal(claims_restore(turn_world.claims, NOW), 0);
	turn_diary("derby.restore(10) derby.restore_over(60) derby.restore_over(70) "
		   "club.restore_over(20) derby.restore(666) derby.restore_left(80)");
	assert_int_equal(TURN_COUNTED(restored), 4);
	assert_int_equal(TURN_COUNTED(restored_full), 1);
	assert_int_equal(TURN_COUNTED(restored_unknown), 2);
	assert_int_equal(TURN_COUNTED(restored_expired), 5);
	assert_true(ended_has(turn_world.left, 80));
	assert_int_equal(ended_count(turn_world.left), 1);
	turn_idle(0);
	assert_null(store_model_session(&turn_world.model, 1, 20));
	assert_null(store_model_session(&turn_world.model, 1, 30));
	assert_null(store_model_session(&turn_world.model, 3, 41));
	assert_int_equal(turn_world.model.session_count, 7);
}

static void what_cannot_be_read_is_an_error(void **state)
{
	(void)state;
	turn_world.model.load_error = -EUCLEAN;
	assert_int_equal(claims_restore(turn_world.claims, NOW), -EUCLEAN);
	assert_int_equal(claims_restore_lines(&turn_world.model.store, NULL, NULL), -EUCLEAN);
}

static void sessions_that_ended_stay_ended(void **state)
{
	(void)state;
	save_session(1, 10, NOW_S + 100, false);
	turn_world.model.ended[0] = (struct store_ended){1, NOW_S + 100, 110}; // not freed yet
	turn_world.model.ended[1] = (struct store_ended){1, NOW_S + 100, 111}; // over already
	turn_world.model.ended[2] = (struct store_ended){1, NOW_S - ENDED_GRACE_S, 112};
	turn_world.model.ended[3] =
		(struct store_ended){3, NOW_S + 100, 113}; // of a room that is no more
	turn_world.model.ended_count = 4;
	assert_int_equal(claims_restore(turn_world.claims, NOW), 0);
	turn_diary("derby.restore(10) derby.end(110) derby.free(110)");
	assert_true(ended_has(turn_world.ended, 110) && ended_has(turn_world.ended, 111) &&
		    ended_has(turn_world.ended, 113));
	assert_false(ended_has(turn_world.ended, 112));
	turn_idle(0);
	assert_true(store_model_session(&turn_world.model, 1, 10)->is_over);
}

static struct place_line *line_of(void *ctx, uint32_t line_id)
{
	(void)ctx;
	return line_id <= 2 ? turn_world.lines[line_id - 1] : NULL;
}

static void lines_are_raised_and_never_lowered(void **state)
{
	(void)state;
	turn_world.lines[0]->threshold = 100;
	turn_world.lines[0]->floor = 10;
	turn_world.model.lines[0] = (struct store_line){1, 90, 20};
	turn_world.model.lines[1] = (struct store_line){2, 300, 200};
	turn_world.model.lines[2] = (struct store_line){3, 7, 7};
	turn_world.model.line_count = 3;
	assert_int_equal(claims_restore_lines(&turn_world.model.store, line_of, NULL), 0);
	assert_int_equal(turn_world.lines[0]->threshold, 100);
	assert_int_equal(turn_world.lines[0]->floor, 20);
	assert_int_equal(turn_world.lines[1]->threshold, 300);
}

static void a_reload_keeps_what_stays(void **state)
{
	(void)state;
	assert_int_equal(claims_restore(turn_world.claims, NOW), 0);
	turn_with(turn_claim(CLAIM_PASSED, 0), 0);
	claims_set_state(turn_world.claims, 1, GATE_PAUSED, false);
	turn_idle(20);
	controller_stub_diary[0] = '\0';
	// `club` goes, `final` comes, and derby has another index.
	struct controller final = {.name = "final", .is_available = true};
	struct claims_room rooms[] = {
		{5, SESSION_S, GATE_OPEN, &final, turn_world.lines[1], false}, turn_derby()};
	rooms[1].state = GATE_PAUSED;
	save_session(5, 10, NOW_S + 100, false); // it was here before
	save_session(1, 11, NOW_S + 100, false); // known to the controller already
	claims_set_rooms(turn_world.claims, rooms, 2);
	assert_int_equal(claims_restore(turn_world.claims, NOW), 0);
	turn_diary("final.restore(10)");
	turn_idle(40);
	turn_diary("derby.hold"); // still paused: it is not told again
	assert_int_equal(claims_passed(turn_world.claims, 1), 1);
	struct claim claim = turn_claim(CLAIM_DIRECT, 7);
	claim.line_id = 5;
	turn_with(claim, 60);
	turn_answers("0:7 granted");
}

// The store may know a room from before, but not what is kept in memory.
static void a_room_added_while_unsaved_is_quiet(void **state)
{
	(void)state;
	claims_restore(turn_world.claims, NOW);
	turn_world.model.is_failing = true;
	turn_with(turn_claim(CLAIM_DIRECT, 7), 0);
	struct controller final = {.name = "final", .is_available = true};
	struct claims_room rooms[] = {
		turn_derby(), {5, SESSION_S, GATE_OPEN, &final, turn_world.lines[1], false}};
	claims_set_rooms(turn_world.claims, rooms, 2);
	assert_int_equal(claims_restore(turn_world.claims, NOW), 0);
	turn_idle(20);
	turn_diary("final.off final.hold");
	assert_int_equal(claims_quiet_until(turn_world.claims, 5), NOW + SESSION_S * 1000);
	assert_int_equal(claims_quiet_until(turn_world.claims, 1), 0);
}

// The disk was full when the process before died, and it still is.
static void a_start_while_unsaved(void **state)
{
	(void)state;
	turn_world.model.is_failing = true;
	restart_unclean(NOW_S + 5);
	claims_destroy(turn_world.claims);
	store_put(&turn_world.model.store,
		&(struct store_record){.kind = STORE_CONFIG, .config = {.ms = NOW}});
	store_begin(&turn_world.model.store, NOW);
	assert_true(turn_world.model.store.status.is_unsaved);
	turn_start();
	assert_int_equal(claims_restore(turn_world.claims, NOW), 0);
	assert_true(claims_quiet_until(turn_world.claims, 1) > 0);
}

#define STORY(story) cmocka_unit_test_setup_teardown(story, turn_begin, turn_end)

int main(void)
{
	const struct CMUnitTest tests[] = {
		STORY(after_an_unclean_end_nobody_new_for_one_session),
		STORY(sessions_that_were_longer_before),
		STORY(what_the_store_knows_is_taken_over),
		STORY(what_cannot_be_read_is_an_error),
		STORY(sessions_that_ended_stay_ended),
		STORY(lines_are_raised_and_never_lowered),
		STORY(a_reload_keeps_what_stays),
		STORY(a_room_added_while_unsaved_is_quiet),
		STORY(a_start_while_unsaved),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
