// Stories of one worker: what visitors, origin and control do to each other at awkward moments.

#include "tests/unit/worker/stage.h"

#include "dataplane/gate/place.h"

#include <rte_eal.h>

#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>

#include <cmocka.h>

#define PAGE "GET /derby/ HTTP/1.1\r\nHost: localhost\r\nAccept: text/html\r\n\r\n"
#define ABOUT "GET /about HTTP/1.1\r\nHost: localhost\r\n\r\n"

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

// Somebody whose newcomer's claim is with control.
static struct fake_stream *newcomer(struct claim *claim)
{
	struct fake_stream *visitor = stage_visitor(&stage);
	atomic_store(&stage.derby->open, 1);
	stage_says(&stage, visitor, PAGE);
	*claim = stage_claim(&stage);
	assert_int_equal(claim->kind, CLAIM_DIRECT);
	assert_int_equal(visitor->got.len, 0);
	return visitor;
}

static void test_a_granted_newcomer_is_passed_on(void **state)
{
	(void)state;
	struct claim claim;
	struct fake_stream *visitor = newcomer(&claim);
	stage_answer(&stage, &claim, CLAIM_GRANTED, 77);
	struct fake_stream *origin = stage_origin(&stage);
	fake_peer_opens(&stage.fake, origin);
	stage_turn(&stage, 1);
	assert_int_equal(stage_heard(origin, "GET /derby/ HTTP/1.1"), 1);
	assert_int_equal(stage_heard(origin, "Sluice-Session: 000000000000004d"), 1);
	stage_says(&stage, origin, "HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\nhi");
	assert_int_equal(stage_heard(visitor, "sluice-p-derby="), 1);
	assert_int_equal(stage_heard(visitor, "\r\n\r\nhi"), 1);
	assert_false(stage_has_claim(&stage)); // nothing goes back
}

// A grant that comes too late, or whose visitor is gone, goes back, once.
static void test_a_grant_that_finds_nobody_goes_back(void **state)
{
	(void)state;
	struct claim claim;
	struct fake_stream *visitor = newcomer(&claim);
	fake_peer_closes(&stage.fake, visitor, 104);
	stage_turn(&stage, 1);
	stage_answer(&stage, &claim, CLAIM_GRANTED, 77);
	struct claim gone = stage_claim(&stage);
	assert_int_equal(gone.kind, CLAIM_GONE);
	assert_int_equal(gone.session, 77);
	assert_int_equal(gone.line_id, 7);
	assert_false(stage_has_claim(&stage));
	newcomer(&claim);
	stage_turn(&stage, WORKER_CLAIM_MS_MAX + 50);
	stage_answer(&stage, &claim, CLAIM_GRANTED, 78);
	gone = stage_claim(&stage);
	assert_int_equal(gone.kind, CLAIM_GONE);
	assert_int_equal(gone.session, 78);
	assert_false(stage_has_claim(&stage));
}

// What was asked for one request is no answer to the next one of the same connection.
static void test_a_late_answer_is_not_the_next_requests(void **state)
{
	(void)state;
	struct claim first, second;
	struct fake_stream *visitor = newcomer(&first);
	stage_turn(&stage, WORKER_CLAIM_MS_MAX + 50);
	assert_int_equal(stage_heard(visitor, "sluice-t-derby="), 1);
	stage_forget(visitor);
	atomic_store(&stage.derby->open, 1);
	stage_says(&stage, visitor, PAGE);
	second = stage_claim(&stage);
	stage_answer(&stage, &first, CLAIM_GRANTED, 77);
	struct claim gone = stage_claim(&stage);
	assert_int_equal(gone.kind, CLAIM_GONE);
	assert_int_equal(gone.session, 77);
	assert_int_equal(visitor->got.len, 0); // still waits for its own
	stage_answer(&stage, &second, CLAIM_REFUSED, 0);
	assert_int_equal(stage_heard(visitor, "sluice-t-derby="), 1);
}

// A worker that ends gives back what control had granted and nobody has taken.
static void test_grants_on_their_way_go_back_at_the_end(void **state)
{
	(void)state;
	struct claim claim;
	newcomer(&claim);
	struct claim_answer answer = {.verdict = CLAIM_GRANTED,
		.kind = claim.kind,
		.request = claim.request,
		.generation = claim.generation,
		.session = 77,
		.line_id = 7};
	assert_true(rings_push_answer(stage.rings, &answer));
	stage_close(&stage);
	struct claim gone = stage_claim(&stage);
	assert_int_equal(gone.kind, CLAIM_GONE);
	assert_int_equal(gone.session, 77);
}

// After an answer to a request that had to be kept, a connection rests like any other: it is closed
// without a word when idle for long, makes room, and its next head has its own deadline.
static void test_a_connection_rests_after_being_parked(void **state)
{
	(void)state;
	struct claim claim;
	struct fake_stream *visitor = newcomer(&claim);
	stage_answer(&stage, &claim, CLAIM_REFUSED, 0);
	assert_int_equal(stage_heard(visitor, "sluice-t-derby="), 1);
	assert_int_equal(stage.w->conns.idle_count, 1);
	assert_false(visitor->is_paused);
	stage_forget(visitor);
	stage_says(&stage, visitor, "GET /");
	stage_turn(&stage, STAGE_HEAD_MS + 50);
	assert_int_equal(stage_heard(visitor, "HTTP/1.1 408"), 1);
	visitor = newcomer(&claim);
	stage_answer(&stage, &claim, CLAIM_REFUSED, 0);
	stage_forget(visitor);
	stage_turn(&stage, STAGE_IDLE_MS + 50);
	assert_int_equal(visitor->got.len, 0);
	assert_false(visitor->is_used);
	assert_int_equal(stage_counter(&stage, COUNTER_idle_timeout), 1);
}

// A head that comes in two parts, with the next request behind it.
static void test_a_head_in_two_parts(void **state)
{
	(void)state;
	struct fake_stream *visitor = stage_visitor(&stage);
	stage_says(&stage, visitor, "GET /.sluice/health HTTP/1.1\r\nHo");
	assert_int_equal(stage.w->conns.idle_count, 0);
	stage_says(&stage, visitor, "st: x\r\n\r\nGET /.sluice/health HTTP/1.1\r\nHost: x\r\n\r\n");
	assert_int_equal(stage_heard(visitor, "HTTP/1.1 200"), 2);
	assert_int_equal(stage.w->conns.idle_count, 1);
	stage_says(&stage, visitor, "\r");
	stage_says(&stage, visitor, "\n");
	stage_says(&stage, visitor, "GET /.sluice/health HTTP/1.1\r\nHost: x\r\n\r\n");
	assert_int_equal(stage_heard(visitor, "HTTP/1.1 200"), 3);
}

int main(void)
{
	char *arguments[] = {"test", "--no-huge", "--no-shconf", "--no-pci", "--no-telemetry",
		"--log-level=error", "-m", "64", "-l", "0"};
	if (rte_eal_init(sizeof(arguments) / sizeof(arguments[0]), arguments) < 0)
		return 1;
#define STORY(name) cmocka_unit_test_setup_teardown(name, begin, end)
	const struct CMUnitTest tests[] = {
		STORY(test_a_granted_newcomer_is_passed_on),
		STORY(test_a_grant_that_finds_nobody_goes_back),
		STORY(test_a_late_answer_is_not_the_next_requests),
		STORY(test_grants_on_their_way_go_back_at_the_end),
		STORY(test_a_connection_rests_after_being_parked),
		STORY(test_a_head_in_two_parts),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
