// Stories of one worker: what visitors, origin and control do to each other at awkward moments.

#include "tests/unit/worker/stage.h"

#include "dataplane/gate/place.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>

#include <cmocka.h>

#define PAGE "GET /derby/ HTTP/1.1\r\nHost: localhost\r\nAccept: text/html\r\n\r\n"
#define ABOUT "GET /about HTTP/1.1\r\nHost: localhost\r\n\r\n"
#define HEALTH "GET /.sluice/health HTTP/1.1\r\nHost: x\r\n\r\n"

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
	assert_int_equal(stage_heard(visitor, "\r\nDate: "), 1); // the origin sent none
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
	assert_int_equal(stage_idle(&stage), 1);
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
	assert_int_equal(stage_idle(&stage), 0);
	stage_says(&stage, visitor, "st: x\r\n\r\nGET /.sluice/health HTTP/1.1\r\nHost: x\r\n\r\n");
	assert_int_equal(stage_heard(visitor, "HTTP/1.1 200"), 2);
	assert_int_equal(stage_idle(&stage), 1);
	stage_says(&stage, visitor, "\r");
	stage_says(&stage, visitor, "\n");
	stage_says(&stage, visitor, "GET /.sluice/health HTTP/1.1\r\nHost: x\r\n\r\n");
	assert_int_equal(stage_heard(visitor, "HTTP/1.1 200"), 3);
}

// The origin gives no answer to the first of two requests: the second is asked all the same.
static void test_a_failed_exchange_does_not_hold_up_the_next(void **state)
{
	(void)state;
	struct fake_stream *visitor = stage_visitor(&stage);
	stage_says(&stage, visitor,
		"GET /one HTTP/1.1\r\nHost: localhost\r\n\r\n"
		"GET /.sluice/health HTTP/1.1\r\nHost: x\r\n\r\n");
	struct fake_stream *origin = stage_origin(&stage);
	fake_peer_opens(&stage.fake, origin);
	stage_turn(&stage, 1);
	stage_says(&stage, origin, "nonsense\r\n\r\n");
	assert_int_equal(stage_heard(visitor, "HTTP/1.1 502"), 1);
	assert_int_equal(stage_heard(visitor, "HTTP/1.1 200"), 1);
	assert_int_equal(stage_idle(&stage), 1);
	assert_false(visitor->is_paused);
}

// What follows a request is answered too when the visitor has already said that nothing more comes.
static void test_an_end_behind_pipelined_requests(void **state)
{
	(void)state;
	struct fake_stream *visitor = stage_visitor(&stage);
	fake_peer_sends(&stage.fake, visitor, SPAN(ABOUT ABOUT HEALTH));
	fake_peer_ends(&stage.fake, visitor);
	stage_turn(&stage, 1);
	for (int i = 0; i < 2; i++) {
		struct fake_stream *origin = stage_origin(&stage);
		fake_peer_opens(&stage.fake, origin);
		stage_turn(&stage, 1);
		stage_says(&stage, origin,
			"HTTP/1.1 200 OK\r\nConnection: close\r\nContent-Length: 1\r\n\r\na");
	}
	assert_int_equal(stage_heard(visitor, "\r\n\r\na"), 2);
	assert_int_equal(stage_heard(visitor, "HTTP/1.1 200"), 3);
	assert_false(visitor->is_used); // closed
	assert_false(visitor->was_reset);
}

// Who sends requests and reads no answers is not read either; then all are answered, in order.
static void test_who_does_not_read_is_not_read(void **state)
{
	(void)state;
	struct fake_stream *visitor = stage_visitor(&stage);
	fake_peer_takes(&stage.fake, visitor, 0);
	for (int i = 0; i < 20; i++)
		stage_says(&stage, visitor, PAGE);
	fake_peer_ends(&stage.fake, visitor);
	stage_turn(&stage, 1);
	assert_true(visitor->is_paused);
	assert_int_equal(stage_counter(&stage, COUNTER_pages), 1);
	for (int i = 0; i < 30; i++) {
		fake_peer_takes(&stage.fake, visitor, SIZE_MAX);
		stage_turn(&stage, 1);
		visitor->window = 0;
	}
	visitor->window = SIZE_MAX;
	stage_turn(&stage, 1);
	assert_int_equal(stage_heard(visitor, "HTTP/1.1 200"), 20);
	assert_false(visitor->is_used);
}

// A new snapshot may lie where the one before it lay: its origins are in force all the same.
static void test_a_snapshot_in_the_place_of_another(void **state)
{
	(void)state;
	static const struct origin_table_origin without_servers = {.id = 1};
	static const struct origin_table nobody = {
		.generation = 2, .origin_count = 1, .origins = &without_servers};
	stage.snapshot->version++;
	stage.snapshot->origins = &nobody;
	struct fake_stream *visitor = stage_visitor(&stage);
	stage_says(&stage, visitor, ABOUT);
	assert_int_equal(stage_heard(visitor, "HTTP/1.1 502"), 1);
}

static void draw(const char *room, char ticket[65])
{
	char text[256];
	struct fake_stream *visitor = stage_visitor(&stage);
	snprintf(text, sizeof(text), "GET /%s/ HTTP/1.1\r\nHost: localhost\r\n\r\n", room);
	stage_says(&stage, visitor, text);
	snprintf(text, sizeof(text), "sluice-t-%s", room);
	stage_cookie(visitor, text, ticket);
	stage_turn(&stage, PLACE_SLOT_MS);
}

static struct fake_stream *poll(const char *room, const char *ticket)
{
	char text[256];
	struct fake_stream *visitor = stage_visitor(&stage);
	snprintf(text, sizeof(text),
		"GET /.sluice/%s/status HTTP/1.1\r\nHost: localhost\r\nSluice-Ticket: %s\r\n\r\n",
		room, ticket);
	stage_says(&stage, visitor, text);
	return visitor;
}

// While nothing is granted the called are told `next`, and control hears of the smallest key of
// each room, so that their turns do not lapse.
static void test_refused_claims_of_two_rooms(void **state)
{
	(void)state;
	char derby[65], later[65], cup[65];
	draw("derby", derby);
	draw("cup", cup);
	draw("derby", later);
	atomic_store(&stage.derby->threshold, UINT64_MAX);
	atomic_store(&stage.cup->threshold, UINT64_MAX);
	stage.control_is_late = true;
	stage_turn(&stage, SNAPSHOT_HOLD_US / 1000 + 1);
	assert_int_equal(stage_heard(poll("derby", later), "\"state\":\"next\""), 1);
	assert_int_equal(stage_heard(poll("cup", cup), "\"state\":\"next\""), 1);
	assert_int_equal(stage_heard(poll("derby", derby), "\"state\":\"next\""), 1);
	struct worker_refused refused[GATE_MAP_ROOMS_MAX];
	assert_int_equal(worker_take_refused(stage.w, refused), 2);
	assert_int_equal(refused[0].line_id, 8);
	assert_int_equal(refused[1].line_id, 7);
	assert_true(refused[1].key < refused[0].key);
	assert_true(refused[0].poll_after > 0);
	assert_int_equal(worker_take_refused(stage.w, refused), 0);
	assert_int_equal(stage_counter(&stage, COUNTER_held), 3);
}

// A pass for which there is no buffer cannot be handed out: its grant goes back.
static void test_a_grant_without_a_buffer_goes_back(void **state)
{
	(void)state;
	struct claim claim;
	struct fake_stream *visitor = newcomer(&claim);
	for (unsigned i = 1; i < STAGE_BUFFERS; i++)
		stage_says(&stage, stage_visitor(&stage), "GET /");
	stage_answer(&stage, &claim, CLAIM_GRANTED, 77);
	assert_int_equal(stage_heard(visitor, "HTTP/1.1 503"), 1);
	struct claim gone = stage_claim(&stage);
	assert_int_equal(gone.kind, CLAIM_GONE);
	assert_int_equal(gone.session, 77);
	assert_int_equal(stage_counter(&stage, COUNTER_buffers_exhausted), 1);
}

#define LINES(line, fields) line " HTTP/1.1\r\nHost: localhost\r\n" fields "\r\n"

// Each refusal is counted by its name, once.
static void test_refusals_are_counted(void **state)
{
	(void)state;
	static const char bad[] = LINES("POST /.sluice/derby/leave", "Sluice-Ticket: nonsense\r\n");
	static const char preflight[] = LINES(
		"OPTIONS /derby/", "Origin: http://a\r\nAccess-Control-Request-Method: GET\r\n");
	static const struct {
		const char *request;
		unsigned status;
		enum counter counter;
	} rows[] = {
		{LINES("GET /.sluice/derby/status", ""), 401, COUNTER_unknown},
		{bad, 204, COUNTER_bad_token},
		{LINES("GET /.sluice/none/status", ""), 404, COUNTER_not_found},
		{LINES("GET /.sluice/derby/draw", ""), 404, COUNTER_not_found},
		{LINES("POST /.sluice/derby/status", ""), 405, COUNTER_bad_method},
		{LINES("TRACE /", ""), 501, COUNTER_bad_method},
		{LINES("POST /.sluice/derby/leave", "Origin: http://a\r\n"), 403,
			COUNTER_cross_site},
		{LINES("POST /derby/", ""), 503, COUNTER_unguarded_method},
		{preflight, 0, COUNTER_preflights},
		{preflight, 503, COUNTER_preflight_limited},
		{LINES("GET /../", ""), 400, COUNTER_bad_target},
		{"GET / HTTP/1.1\r\nHost: other\r\n\r\n", 421, COUNTER_misdirected},
		{"GET / HTTP/2.0\r\n\r\n", 505, COUNTER_bad_version},
		{"\r\n\r\n", 400, COUNTER_bad_head},
	};
	for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
		uint64_t before[COUNTER_COUNT];
		for (int j = 0; j < COUNTER_COUNT; j++)
			before[j] = stage_counter(&stage, (enum counter)j);
		struct fake_stream *visitor = stage_visitor(&stage);
		stage_says(&stage, visitor, rows[i].request);
		char status[32];
		snprintf(status, sizeof(status), "HTTP/1.1 %u ", rows[i].status);
		assert_int_equal(stage_heard(visitor, status), rows[i].status > 0);
		uint64_t drops = 0;
		for (int j = COUNTER_bad_head; j < COUNTER_COUNT; j++)
			drops += stage_counter(&stage, (enum counter)j) - before[j];
		assert_int_equal(drops, rows[i].counter >= COUNTER_bad_head);
		assert_int_equal(
			stage_counter(&stage, rows[i].counter), before[rows[i].counter] + 1);
	}
}

// A token shown twice on a connection costs one MAC.
static void test_tokens_are_counted(void **state)
{
	(void)state;
	char ticket[65];
	draw("derby", ticket);
	struct fake_stream *visitor = poll("derby", ticket);
	assert_int_equal(stage_counter(&stage, COUNTER_tokens), 1);
	char text[256];
	snprintf(text, sizeof(text), LINES("GET /.sluice/derby/status", "Sluice-Ticket: %s\r\n"),
		ticket);
	stage_says(&stage, visitor, text);
	assert_int_equal(stage_counter(&stage, COUNTER_tokens), 1);
	assert_int_equal(stage_counter(&stage, COUNTER_tokens_remembered), 1);
	assert_int_equal(stage_counter(&stage, COUNTER_bad_token), 0);
	assert_int_equal(stage_counter(&stage, COUNTER_polls), 2);
	snprintf(text, sizeof(text), LINES("POST /.sluice/derby/leave", "Sluice-Ticket: %s\r\n"),
		ticket);
	stage_says(&stage, visitor, text);
	struct claim leave = stage_claim(&stage);
	assert_int_equal(leave.kind, CLAIM_LEAVE);
	assert_int_equal(stage_counter(&stage, COUNTER_left), 0);
	stage_answer(&stage, &leave, CLAIM_LEFT, 0);
	assert_int_equal(stage_counter(&stage, COUNTER_left), 1);
}

// The answer to a leave waits for control's, and the body that came with it is read by nobody.
static void test_leave_is_answered_when_it_is_done(void **state)
{
	(void)state;
	char ticket[65], text[256];
	draw("derby", ticket);
	snprintf(text, sizeof(text),
		LINES("POST /.sluice/derby/leave",
			"Cookie: sluice-t-derby=%s\r\nContent-Length: 3\r\n") "abc",
		ticket);
	struct fake_stream *visitor = stage_visitor(&stage);
	stage_says(&stage, visitor, text);
	assert_int_equal(visitor->got.len, 0);
	struct claim leave = stage_claim(&stage);
	stage_answer(&stage, &leave, CLAIM_LEFT, 0);
	assert_int_equal(stage_heard(visitor, "HTTP/1.1 204"), 1);
	assert_int_equal(stage_heard(visitor, "sluice-t-derby=;"), 1);
	assert_true(visitor->is_shut);
	assert_false(stage_has_claim(&stage));
}

// Who sends a body that nobody wants and is slow to read still gets the answer.
static void test_an_answer_outlives_the_discarded_body(void **state)
{
	(void)state;
	struct fake_stream *visitor = stage_visitor(&stage);
	fake_peer_takes(&stage.fake, visitor, 0);
	stage_says(&stage, visitor, LINES("POST /derby/", "Content-Length: 9\r\n"));
	stage_turn(&stage, WORKER_DISCARD_MS + 50);
	assert_int_equal(stage_counter(&stage, COUNTER_drain_timeout), 1);
	assert_false(visitor->is_used);
	assert_false(visitor->was_reset);
}

// An exchange that ends while its body is being handed over, with the next request behind it.
static void test_an_exchange_that_ends_at_once(void **state)
{
	(void)state;
	static const char post[] = LINES("POST /about", "Content-Length: 3\r\n") "abc";
	for (size_t cut = 0; cut < 5; cut += 4) {
		struct fake_stream *visitor = stage_visitor(&stage);
		stage_says(&stage, visitor, post);
		struct fake_stream *origin = stage_origin(&stage);
		fake_peer_opens(&stage.fake, origin);
		stage_turn(&stage, 1);
		stage_says(&stage, origin, "HTTP/1.1 200 OK\r\nContent-Length: 1\r\n\r\na");
		origin->take_max = origin->got.len - 3; // the head fits, the body does not
		fake_peer_sends(&stage.fake, visitor, (struct span){post, cut});
		stage_turn(&stage, 1);
		char text[256];
		snprintf(text, sizeof(text), "%s%s", post + cut, HEALTH);
		stage_says(&stage, visitor, text);
		assert_int_equal(stage_heard(visitor, "HTTP/1.1 502"), 1);
		assert_int_equal(stage_heard(visitor, "HTTP/1.1 200"), 2);
		assert_int_equal(stage_idle(&stage), cut > 0 ? 2 : 1);
		assert_false(visitor->is_paused);
	}
}

// The room is another one when the answer comes: its grant is nobody's, and goes back once.
static void test_a_grant_that_crosses_a_reload(void **state)
{
	(void)state;
	struct claim claim;
	struct fake_stream *visitor = newcomer(&claim);
	stage.snapshot->map.rooms[1].line_id = 9;
	stage.snapshot->version++;
	stage_answer(&stage, &claim, CLAIM_GRANTED, 77);
	assert_int_equal(stage_heard(visitor, "sluice-t-derby="), 1);
	struct claim gone = stage_claim(&stage);
	assert_int_equal(gone.kind, CLAIM_GONE);
	assert_int_equal(gone.line_id, 7);
	assert_int_equal(gone.session, 77);
	assert_false(stage_has_claim(&stage));
	assert_int_equal(stage_counter(&stage, COUNTER_granted), 0);
}

// Who was parked when draining began is still let in, and then the connection ends.
static void test_a_grant_that_crosses_a_drain(void **state)
{
	(void)state;
	struct claim claim;
	struct fake_stream *visitor = newcomer(&claim);
	atomic_store(&stage.words.draining, true);
	stage_turn(&stage, 1);
	assert_true(visitor->is_used);
	assert_int_equal(stage.w->shown.busy, 1);
	stage_answer(&stage, &claim, CLAIM_GRANTED, 77);
	struct fake_stream *origin = stage_origin(&stage);
	fake_peer_opens(&stage.fake, origin);
	stage_turn(&stage, 1);
	stage_says(&stage, origin, "HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\nhi");
	assert_int_equal(stage_heard(visitor, "sluice-p-derby="), 1);
	assert_int_equal(stage_heard(visitor, "Connection: close"), 1);
	assert_false(visitor->is_used);
	assert_false(stage_has_claim(&stage));
}

// More requests in one turn than a burst holds, several on each connection: all are answered.
static void test_a_turn_of_several_bursts(void **state)
{
	(void)state;
	enum { CROWD = 56 }; // none has to make room
	struct fake_stream *crowd[CROWD];
	for (int i = 0; i < CROWD; i++) {
		crowd[i] = stage_visitor(&stage);
		fake_peer_sends(&stage.fake, crowd[i], SPAN(HEALTH HEALTH));
		fake_peer_sends(&stage.fake, crowd[i], SPAN(HEALTH));
	}
	stage_turn(&stage, 1);
	for (int i = 0; i < CROWD; i++)
		assert_int_equal(stage_heard(crowd[i], "HTTP/1.1 200"), 3);
	assert_int_equal(stage_counter(&stage, COUNTER_requests), 3 * CROWD);
	assert_int_equal(stage_idle(&stage), CROWD);
}

// Who finds the table full is told so, and what they send is read, so that the answer arrives.
static void test_a_full_table_says_so(void **state)
{
	(void)state;
	for (unsigned i = 0; i < STAGE_CONNECTIONS; i++) {
		struct fake_stream *visitor = stage_visitor(&stage);
		stage_turn(&stage, 1);
		conn_leave(&stage.w->conns, visitor->stream.user, CONN_IDLE); // none makes room
	}
	struct fake_stream *late = stage_visitor(&stage);
	stage_says(&stage, late, ABOUT);
	assert_int_equal(stage_heard(late, "HTTP/1.1 503"), 1);
	assert_int_equal(stage_counter(&stage, COUNTER_table_full), 1);
	assert_true(late->is_shut);
	fake_peer_ends(&stage.fake, late);
	stage_turn(&stage, 1);
	assert_false(late->is_used);
	assert_false(late->was_reset);
}

// Cycles are those of turns in which a driver that polls has taken something in.
static void test_busy_turns_are_counted_with_their_cycles(void **state)
{
	(void)state;
	stage_turn(&stage, 1); // it sleeps, so nothing is known of its work
	assert_int_equal(stage_counter(&stage, COUNTER_busy_turns), 0);
	assert_int_equal(stage_counter(&stage, COUNTER_busy_cycles), 0);
	stage.fake.driver.taken = 1;
	stage_turn(&stage, 1);
	assert_int_equal(stage_counter(&stage, COUNTER_busy_turns), 1);
	assert_true(stage_counter(&stage, COUNTER_busy_cycles) > 0);
	stage.fake.driver.taken = 0;
	stage_turn(&stage, 1);
	assert_int_equal(stage_counter(&stage, COUNTER_busy_turns), 1);
}

int main(void)
{
	if (!stage_open())
		return 1;
#define STORY(name) cmocka_unit_test_setup_teardown(name, begin, end)
	const struct CMUnitTest tests[] = {
		STORY(test_a_granted_newcomer_is_passed_on),
		STORY(test_a_grant_that_finds_nobody_goes_back),
		STORY(test_a_late_answer_is_not_the_next_requests),
		STORY(test_grants_on_their_way_go_back_at_the_end),
		STORY(test_a_connection_rests_after_being_parked),
		STORY(test_a_head_in_two_parts),
		STORY(test_a_failed_exchange_does_not_hold_up_the_next),
		STORY(test_an_end_behind_pipelined_requests),
		STORY(test_who_does_not_read_is_not_read),
		STORY(test_a_snapshot_in_the_place_of_another),
		STORY(test_refused_claims_of_two_rooms),
		STORY(test_a_grant_without_a_buffer_goes_back),
		STORY(test_an_exchange_that_ends_at_once),
		STORY(test_a_grant_that_crosses_a_reload),
		STORY(test_a_grant_that_crosses_a_drain),
		STORY(test_a_turn_of_several_bursts),
		STORY(test_a_full_table_says_so),
		STORY(test_busy_turns_are_counted_with_their_cycles),
		STORY(test_refusals_are_counted),
		STORY(test_tokens_are_counted),
		STORY(test_leave_is_answered_when_it_is_done),
		STORY(test_an_answer_outlives_the_discarded_body),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
