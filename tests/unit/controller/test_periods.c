// What is counted by periods: batches, and newcomers of a calendar minute.

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>

#include <cmocka.h>

#include "tests/unit/controller/room.h"

#define MINUTE_MS 60000u
#define INTO_MINUTE_MS (ROOM_START_MS % MINUTE_MS)

// `mode: peak` with 50 newcomers a minute, and a rate for the line or none.
static const struct controller_limits peak = {
	.session_s = 600, .claim_s = 60, .direct = true, .inflow = 50};

static void wait_for_the_next_minute(struct room *r)
{
	room_wait(r, MINUTE_MS - r->now_ms % MINUTE_MS);
}

static void the_51st_newcomer_of_a_minute_is_queued(void **state)
{
	(void)state;
	struct controller_limits limits = peak;
	limits.rate_count = limits.burst = 1000; // the line moves by a rate of its own
	limits.rate_period_ms = 1000;
	struct room r = room_open(limits);
	uint64_t visitor = 0;
	room_turn(&r);
	assert_int_equal(r.line->open, 50);
	for (int i = 0; i < 50; i++) {
		r.now_ms += 500; // over the minute
		assert_int_equal(room_come(&r, ++visitor), CLAIM_GRANTED);
	}
	assert_int_equal(room_come(&r, ++visitor), CLAIM_REFUSED);
	room_turn(&r);
	assert_int_equal(r.line->open, 0);
	// Who is queued is let in by the rate, and does not count.
	const uint64_t key = room_mint(&r);
	room_wait(&r, 100);
	assert_int_equal(room_poll(&r, key), CLAIM_GRANTED);
	assert_int_equal(room_come(&r, ++visitor), CLAIM_REFUSED);
	wait_for_the_next_minute(&r);
	assert_int_equal(r.line->open, 50);
	for (int i = 0; i < 50; i++)
		assert_int_equal(room_come(&r, ++visitor), CLAIM_GRANTED);
	assert_int_equal(room_come(&r, ++visitor), CLAIM_REFUSED);
	room_close(&r);
}

static void the_last_moment_of_a_minute_is_of_that_minute(void **state)
{
	(void)state;
	struct controller_limits limits = peak;
	limits.inflow = 1;
	struct room r = room_open(limits);
	r.now_ms += MINUTE_MS - INTO_MINUTE_MS - 1;
	assert_int_equal(room_come(&r, 1), CLAIM_GRANTED);
	assert_int_equal(room_come(&r, 2), CLAIM_REFUSED);
	r.now_ms += 1;
	assert_int_equal(room_come(&r, 3), CLAIM_GRANTED);
	assert_int_equal(room_come(&r, 4), CLAIM_REFUSED);
	room_close(&r);
}

// Without a rate the line is let in from the same 50, and first.
static void without_a_rate_the_waiting_come_first(void **state)
{
	(void)state;
	struct controller_limits limits = peak;
	limits.batch_count = 50; // as the room's mode makes it
	limits.batch_period_ms = MINUTE_MS;
	struct room r = room_open(limits);
	uint64_t keys[30], visitor = 0;
	room_turn(&r);
	for (int i = 0; i < 50; i++)
		assert_int_equal(room_come(&r, ++visitor), CLAIM_GRANTED);
	for (int i = 0; i < 30; i++)
		keys[i] = room_mint(&r);
	wait_for_the_next_minute(&r);
	assert_int_equal(room_come(&r, ++visitor), CLAIM_REFUSED); // people wait
	for (int i = 0; i < 30; i++)
		assert_int_equal(room_poll(&r, keys[i]), CLAIM_GRANTED);
	room_turn(&r);
	assert_int_equal(r.line->open, 20);
	for (int i = 0; i < 20; i++)
		assert_int_equal(room_come(&r, ++visitor), CLAIM_GRANTED);
	assert_int_equal(room_come(&r, ++visitor), CLAIM_REFUSED);
	room_close(&r);
}

static void a_restart_does_not_begin_a_minute_anew(void **state)
{
	(void)state;
	struct room r = room_open(peak);
	uint64_t visitor = 0;
	for (int i = 0; i < 40; i++)
		assert_int_equal(room_come(&r, ++visitor), CLAIM_GRANTED);
	controller_destroy(r.controller);
	place_begin(r.line, r.now_ms / PLACE_SLOT_MS);
	struct controller_limits limits = peak;
	limits.burst = 1;
	r.controller = controller_create(&limits, &room_bounds, r.line, r.now_ms);
	for (int i = 0; i < 10; i++)
		assert_int_equal(room_come(&r, ++visitor), CLAIM_GRANTED);
	assert_int_equal(room_come(&r, ++visitor), CLAIM_REFUSED);
	room_close(&r);
}

// 3 every 20 s: three of ten are called to each batch, the next ones 20 s later.
static void a_batch_is_let_in_at_once(void **state)
{
	(void)state;
	struct room r = room_open((struct controller_limits){
		.session_s = 600, .claim_s = 60, .batch_count = 3, .batch_period_ms = 20000});
	uint64_t keys[10];
	for (int i = 0; i < 10; i++)
		keys[i] = room_mint(&r);
	room_wait(&r, 100);
	for (int batch = 0; batch < 3; batch++) {
		for (int i = 0; i < 3; i++)
			assert_int_equal(room_poll(&r, keys[3 * batch + i]), CLAIM_GRANTED);
		assert_int_not_equal(room_poll(&r, keys[3 * batch + 3]), CLAIM_GRANTED);
		const uint64_t rest = 20000 - r.now_ms % 20000;
		room_wait(&r, rest - 1);
		// Called ahead, so that they are there when the batch begins; and not before.
		assert_int_equal(room_poll(&r, keys[3 * batch + 3]), CLAIM_NEXT);
		assert_true(keys[3 * batch + 3] < r.line->threshold);
		room_wait(&r, 1);
	}
	assert_int_equal(room_poll(&r, keys[9]), CLAIM_GRANTED);
	room_close(&r);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(the_51st_newcomer_of_a_minute_is_queued),
		cmocka_unit_test(the_last_moment_of_a_minute_is_of_that_minute),
		cmocka_unit_test(without_a_rate_the_waiting_come_first),
		cmocka_unit_test(a_restart_does_not_begin_a_minute_anew),
		cmocka_unit_test(a_batch_is_let_in_at_once),
	};
	return cmocka_run_group_tests_name("periods", tests, NULL, NULL);
}
