// What a worker refuses or drops when it is cornered: each is counted by its name and by no other,
// and the visitor sees what the name says. Drops that any client can provoke are rows of
// tests/e2e/test_counters.py.

#include "tests/unit/worker/stage.h"

#include "dataplane/gate/lane.h"
#include "dataplane/gate/place.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>

#include <cmocka.h>

#define PAGE "GET /derby/ HTTP/1.1\r\nHost: localhost\r\nAccept: text/html\r\n\r\n"
#define PART "GET /derby/ HTTP/1.1\r\nHo"

static struct stage stage;

static int begin(void **state)
{
	(void)state;
	stage_begin(&stage);
	return 0;
}

static int end(void **state)
{
	(void)state;
	stage_end(&stage);
	return 0;
}

// These drops have been counted, and no others. One list: name, how often.
struct drop {
	enum counter counter;
	uint64_t times;
};
#define ONLY(...) only((struct drop[]){__VA_ARGS__, {COUNTER_COUNT, 0}})

static void only(const struct drop *drops)
{
	uint64_t expected[COUNTER_COUNT] = {0};
	for (; drops->counter != COUNTER_COUNT; drops++)
		expected[drops->counter] = drops->times;
#define X(name, text) \
	if (stage_counter(&stage, COUNTER_##name) != expected[COUNTER_##name]) \
		fail_msg("%s: %lu, not %lu", #name, stage_counter(&stage, COUNTER_##name), \
			expected[COUNTER_##name]);
	COUNTERS_DROPS(X)
#undef X
}

// Somebody who would be let in at once asks to be.
static struct fake_stream *newcomer(void)
{
	struct fake_stream *visitor = stage_visitor(&stage);
	atomic_store(&stage.derby->open, 1);
	stage_says(&stage, visitor, PAGE);
	return visitor;
}

static bool has_ticket(const struct fake_stream *visitor)
{
	return stage_heard(visitor, "HTTP/1.1 200") == 1 &&
	       stage_heard(visitor, "Set-Cookie: sluice-t-derby=") == 1;
}

static void fill_ring(void)
{
	struct claim claim = {.kind = CLAIM_PASSED};
	while (rings_push_claim(stage.rings, &claim))
		;
}

static void test_claim_ring_full(void **state)
{
	(void)state;
	fill_ring();
	struct fake_stream *visitor = newcomer();
	assert_true(has_ticket(visitor));
	assert_true(visitor->is_open);
	ONLY({COUNTER_claim_ring_full, 1});
}

static void test_claim_timeout(void **state)
{
	(void)state;
	struct fake_stream *visitor = newcomer();
	stage_turn(&stage, WORKER_CLAIM_MS_MAX - 10);
	assert_int_equal(visitor->got.len, 0);
	stage_turn(&stage, 60);
	assert_true(has_ticket(visitor));
	assert_true(visitor->is_open);
	ONLY({COUNTER_claim_timeout, 1});
}

static void test_parked_full(void **state)
{
	(void)state;
	stage.w->plan.parked_max = 2;
	newcomer();
	assert_int_equal(newcomer()->got.len, 0);
	ONLY({COUNTER_parked_full, 0});
	struct fake_stream *third = newcomer();
	assert_true(has_ticket(third));
	assert_true(third->is_open);
	ONLY({COUNTER_parked_full, 1});
}

static void test_claim_gone(void **state)
{
	(void)state;
	struct fake_stream *visitor = newcomer();
	struct claim claim = stage_claim(&stage);
	stage_answer(&stage, &claim, CLAIM_REFUSED, 0);
	assert_true(has_ticket(visitor));
	stage_answer(&stage, &claim, CLAIM_GRANTED, 77);
	assert_int_equal(stage_claim(&stage).kind, CLAIM_GONE);
	ONLY({COUNTER_claim_gone, 1});
}

#define CODE(code) \
	"POST /.sluice/derby/code HTTP/1.1\r\nHost: localhost\r\nContent-Length: " \
	"13\r\n\r\ncode=" code

// Derby takes codes, into a lane that has derby's own line.
static void takes_codes(void)
{
	static struct gate_lane lane;
	struct gate_room *derby = &stage.snapshot->map.rooms[1];
	lane = (struct gate_lane){.room = *derby};
	derby->takes_codes = true;
	derby->lanes = &lane;
	derby->lane_count = 1;
	stage.snapshot->code_attempts = 1;
}

// A body that waits to be asked for (RFC 9110 10.1.1): once, if none of it has come, and not where
// the answer is known.
static void test_code_expects_continue(void **state)
{
	(void)state;
#define EXPECTS(length) \
	"POST /.sluice/derby/code HTTP/1.1\r\nHost: localhost\r\nContent-Length: " length \
	"\r\nExpect: 100-continue\r\n\r\n"
	takes_codes();
	struct fake_stream *visitor = stage_visitor(&stage);
	for (unsigned i = 1; i <= 2; i++) { // of each request of a connection
		stage_says(&stage, visitor, EXPECTS("13"));
		assert_int_equal(stage_heard(visitor, "HTTP/1.1 100 Continue\r\n\r\n"), i);
		stage_says(&stage, visitor, "code=7GQ");
		assert_false(stage_has_claim(&stage));
		stage_says(&stage, visitor, "X4TRM");
		struct claim claim = stage_claim(&stage);
		assert_int_equal(claim.kind, CLAIM_CODE);
		stage_answer(&stage, &claim, CLAIM_KNOWN, 0);
		assert_int_equal(stage_heard(visitor, "HTTP/1.1 100"), i);
	}
	stage_says(&stage, visitor, EXPECTS("13") "c");
	stage_says(&stage, visitor, "ode=7GQX4TRM");
	struct claim claim = stage_claim(&stage);
	stage_answer(&stage, &claim, CLAIM_KNOWN, 0);
	visitor = stage_visitor(&stage);
	stage_says(&stage, visitor, EXPECTS("1025"));
	assert_int_equal(stage_heard(visitor, "HTTP/1.1 413"), 1);
	assert_int_equal(stage_heard(visitor, "HTTP/1.1 100"), 0);
}

static void test_code_unanswered(void **state)
{
	(void)state;
	takes_codes();
	struct fake_stream *visitor = stage_visitor(&stage);
	stage_says(&stage, visitor, CODE("7GQX4TRM"));
	assert_int_equal(stage_claim(&stage).kind, CLAIM_CODE);
	stage_turn(&stage, WORKER_CLAIM_MS_MAX + 60);
	assert_int_equal(stage_heard(visitor, "HTTP/1.1 503"), 1);
	ONLY({COUNTER_claim_timeout, 1}, {COUNTER_code_unanswered, 1});
	// It was no wrong one, so another try is free; a wrong one is not.
	stage_says(&stage, visitor, CODE("7GQX4TRM"));
	struct claim claim = stage_claim(&stage);
	stage_answer(&stage, &claim, CLAIM_UNKNOWN, 0);
	assert_int_equal(stage_heard(visitor, "HTTP/1.1 403"), 1);
	stage_says(&stage, visitor, CODE("7GQX4TRM"));
	assert_int_equal(stage_heard(visitor, "HTTP/1.1 429"), 1);
	assert_false(stage_has_claim(&stage));
	ONLY({COUNTER_claim_timeout, 1}, {COUNTER_code_unanswered, 1}, {COUNTER_code_unknown, 1},
		{COUNTER_code_guarded, 1});
}

// Its holder has gone while control decided: the use goes back.
static void test_code_undone(void **state)
{
	(void)state;
	takes_codes();
	struct fake_stream *visitor = stage_visitor(&stage);
	stage_says(&stage, visitor, CODE("7GQX4TRM"));
	struct claim claim = stage_claim(&stage);
	stage_turn(&stage, WORKER_CLAIM_MS_MAX + 60);
	stage_answer(&stage, &claim, CLAIM_HONOURED, 78);
	struct claim gone = stage_claim(&stage);
	assert_int_equal(gone.kind, CLAIM_CODE_GONE);
	assert_true(gone.key == claim.key && gone.session == claim.session);
	assert_true(gone.visitor == 78 && gone.place == claim.key);
	ONLY({COUNTER_claim_timeout, 1}, {COUNTER_code_unanswered, 1}, {COUNTER_code_undone, 1});
}

// A reload took the codes from the room while control decided: likewise.
static void test_code_undone_by_reload(void **state)
{
	(void)state;
	takes_codes();
	struct fake_stream *visitor = stage_visitor(&stage);
	stage_says(&stage, visitor, CODE("7GQX4TRM"));
	struct claim claim = stage_claim(&stage);
	stage.snapshot->map.rooms[1].takes_codes = false;
	stage_answer(&stage, &claim, CLAIM_HONOURED, 78);
	assert_int_equal(stage_heard(visitor, "HTTP/1.1 404"), 1);
	struct claim gone = stage_claim(&stage);
	assert_int_equal(gone.kind, CLAIM_CODE_GONE);
	assert_true(gone.key == claim.key && gone.session == claim.session);
	assert_true(gone.visitor == 78 && gone.place == claim.key);
	ONLY({COUNTER_not_found, 1}, {COUNTER_code_undone, 1});
}

// Control takes nothing for so long that the queue of reports fills.
static void test_reports_full(void **state)
{
	(void)state;
	struct fake_stream *visitor = newcomer();
	struct claim claim = stage_claim(&stage);
	stage_answer(&stage, &claim, CLAIM_REFUSED, 0);
	assert_true(has_ticket(visitor));
	fill_ring();
	for (unsigned i = 0; i < WORKER_REPORTS_MAX; i++)
		stage_answer(&stage, &claim, CLAIM_GRANTED, 77); // nobody is there to take it
	stage.w->shown.counters.of[COUNTER_claim_gone] = 0;
	ONLY({COUNTER_reports_full, 0});
	stage_answer(&stage, &claim, CLAIM_GRANTED, 77);
	stage.w->shown.counters.of[COUNTER_claim_gone] = 0;
	ONLY({COUNTER_reports_full, 1});
}

// A leave that control does not hear of, or does not answer, may be tried again.
static void test_leave_unanswered(void **state)
{
	(void)state;
	char ticket[65], leave[256];
	struct fake_stream *visitor = stage_visitor(&stage);
	stage_says(&stage, visitor, PAGE);
	stage_cookie(visitor, "sluice-t-derby", ticket);
	snprintf(leave, sizeof(leave),
		"POST /.sluice/derby/leave HTTP/1.1\r\nHost: localhost\r\n"
		"Cookie: sluice-t-derby=%s\r\n\r\n",
		ticket);
	stage_forget(visitor);
	stage_says(&stage, visitor, leave);
	assert_int_equal(visitor->got.len, 0);
	stage_turn(&stage, WORKER_CLAIM_MS_MAX + 50);
	assert_int_equal(stage_heard(visitor, "HTTP/1.1 503"), 1);
	assert_int_equal(stage_heard(visitor, "Retry-After: "), 1);
	assert_int_equal(stage_heard(visitor, "Set-Cookie"), 0);
	assert_true(visitor->is_open);
	ONLY({COUNTER_leave_unanswered, 1}, {COUNTER_claim_timeout, 1});
	stage.control_is_late = true;
	stage_turn(&stage, 1000);
	stage_says(&stage, visitor, leave);
	assert_int_equal(stage_heard(visitor, "HTTP/1.1 503"), 2);
	ONLY({COUNTER_leave_unanswered, 2}, {COUNTER_claim_timeout, 1});
}

static void take_buffers(unsigned count)
{
	for (unsigned i = 0; i < count; i++) {
		struct fake_stream *visitor = stage_visitor(&stage);
		stage_says(&stage, visitor, PART);
		assert_int_equal(visitor->got.len, 0);
	}
}

static void test_buffers_exhausted_by_heads(void **state)
{
	(void)state;
	take_buffers(STAGE_BUFFERS);
	ONLY({COUNTER_buffers_exhausted, 0});
	struct fake_stream *visitor = stage_visitor(&stage);
	stage_says(&stage, visitor, PART);
	assert_int_equal(stage_heard(visitor, "HTTP/1.1 503"), 1);
	assert_true(visitor->is_shut);
	ONLY({COUNTER_buffers_exhausted, 1});
}

// A request that cannot be kept while control is asked.
static void test_buffers_exhausted_for_a_claim(void **state)
{
	(void)state;
	take_buffers(STAGE_BUFFERS);
	struct fake_stream *visitor = newcomer();
	assert_int_equal(visitor->got.len, 0);
	assert_true(visitor->was_reset);
	ONLY({COUNTER_buffers_exhausted, 1});
}

// Who is let in must get the pass: without memory for it the grant goes back.
static void test_buffers_exhausted_for_a_pass(void **state)
{
	(void)state;
	struct fake_stream *visitor = newcomer();
	struct claim claim = stage_claim(&stage);
	take_buffers(STAGE_BUFFERS - 1);
	stage_answer(&stage, &claim, CLAIM_GRANTED, 77);
	assert_int_equal(stage_heard(visitor, "HTTP/1.1 503"), 1);
	assert_true(visitor->is_shut);
	assert_int_equal(stage_claim(&stage).session, 77);
	assert_int_equal(stage_counter(&stage, COUNTER_forwarded), 0);
	ONLY({COUNTER_buffers_exhausted, 1}, {COUNTER_claim_gone, 1});
}

static void test_write_failed(void **state)
{
	(void)state;
	struct fake_stream *visitor = stage_visitor(&stage);
	visitor->take_max = 100;
	stage_says(&stage, visitor, PAGE);
	assert_true(visitor->was_reset);
	ONLY({COUNTER_write_failed, 1});
	visitor = stage_visitor(&stage);
	visitor->take_max = 100;
	stage.fake.refuses = true; // this 503 is written by another way
	stage_says(&stage, visitor, "GET /about HTTP/1.1\r\nHost: localhost\r\n\r\n");
	assert_true(visitor->was_reset);
	ONLY({COUNTER_write_failed, 2}, {COUNTER_exchanges_full, 1});
}

static void test_held(void **state)
{
	(void)state;
	struct fake_stream *visitor = stage_visitor(&stage);
	char ticket[65], again[256];
	struct worker_refused refused[GATE_MAP_ROOMS_MAX];
	stage_says(&stage, visitor, PAGE);
	stage_cookie(visitor, "sluice-t-derby", ticket);
	snprintf(again, sizeof(again),
		"GET /.sluice/derby/status HTTP/1.1\r\nHost: localhost\r\n"
		"Cookie: sluice-t-derby=%s\r\n\r\n",
		ticket);
	atomic_store(&stage.derby->threshold, UINT64_MAX);
	stage.control_is_late = true;
	stage_turn(&stage, SNAPSHOT_HOLD_US / 1000 + 1);
	stage_says(&stage, visitor, again);
	assert_int_equal(stage_heard(visitor, "\"state\":\"next\""), 1);
	assert_true(visitor->is_open);
	assert_false(stage_has_claim(&stage));
	assert_int_equal(worker_take_refused(stage.w, refused), 1);
	ONLY({COUNTER_held, 1});
}

static void test_draining(void **state)
{
	(void)state;
	atomic_store(&stage.words.draining, true);
	struct fake_stream *visitor = newcomer();
	assert_int_equal(stage_heard(visitor, "HTTP/1.1 503"), 1);
	assert_true(visitor->is_shut);
	ONLY({COUNTER_draining, 1});
}

// What comes behind a request that waits for control is kept as far as buffers go.
static void test_pipeline_full(void **state)
{
	(void)state;
	const uint32_t room =
		CONN_KEPT_BUFFERS * stage.w->plan.buffer_bytes - (uint32_t)strlen(PAGE);
	char *bytes = calloc(1, room + 1);
	for (uint32_t beyond = 0; beyond <= 1; beyond++) {
		struct fake_stream *visitor = stage_visitor(&stage);
		atomic_store(&stage.derby->open, 1);
		fake_peer_sends(&stage.fake, visitor, SPAN(PAGE));
		fake_peer_sends(&stage.fake, visitor, (struct span){bytes, room + beyond});
		stage_turn(&stage, 1);
		assert_int_equal(visitor->was_reset, beyond);
		ONLY({COUNTER_pipeline_full, beyond});
	}
	free(bytes);
}

int main(void)
{
	if (!stage_open())
		return 1;
#define STORY(name) cmocka_unit_test_setup_teardown(name, begin, end)
	const struct CMUnitTest tests[] = {
		STORY(test_claim_ring_full),
		STORY(test_claim_timeout),
		STORY(test_parked_full),
		STORY(test_claim_gone),
		STORY(test_code_expects_continue),
		STORY(test_code_unanswered),
		STORY(test_code_undone),
		STORY(test_code_undone_by_reload),
		STORY(test_reports_full),
		STORY(test_leave_unanswered),
		STORY(test_buffers_exhausted_by_heads),
		STORY(test_buffers_exhausted_for_a_claim),
		STORY(test_buffers_exhausted_for_a_pass),
		STORY(test_write_failed),
		STORY(test_held),
		STORY(test_draining),
		STORY(test_pipeline_full),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
