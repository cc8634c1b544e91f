// The decision as a table: each sentence of contract sections 1 to 3 about who gets what is a row.

#include "tests/unit/gate/decide_scene.h"

#include <time.h>

enum held_ticket {
	NO_TICKET,
	LAPSED,
	CALLED,
	WAITING,
};
enum held_pass {
	NO_PASS,
	PASS,
	PASS_OVER,
	PASS_ENDED,
};
enum end {
	FORWARD = 100,
	FORWARD_PASS,
	FORWARD_UNCOUNTED,
	FORWARD_PREFLIGHT,
	CLAIM_IT, // CLAIM_CALLED
	CLAIM_NEW, // CLAIM_DIRECT
	CLAIM_AGAIN, // CLAIM_RENEW
	CLAIM_BACK, // CLAIM_LEAVE
	// otherwise an enum decide_answer
};
#define IDLE 0 // nobody waits, a slot is free
#define QUEUE PLACE_OPEN_LINE
#define GET_PAGE .route = GATE_ROUTE_GUARDED, .method = HTTP_GET, .draws = true
#define GET_OTHER .route = GATE_ROUTE_GUARDED, .method = HTTP_GET
#define POLL .route = GATE_ROUTE_STATUS, .method = HTTP_GET

static const struct row {
	const char *name;
	enum gate_route route;
	enum http_method method;
	bool draws, prefetch, preflight, sliding, draining, held, late;
	uint64_t open; // of the line; IDLE has one slot
	enum gate_mode mode;
	enum gate_room_state state;
	enum held_ticket ticket;
	enum held_pass pass;
	int end; // enum end, or enum decide_answer with `told`
	int told; // enum status_state
	bool mints;
} rows[] = {
	// Section 1.
	{"no site has that host", .route = GATE_ROUTE_MISDIRECTED, .end = DECIDE_MISDIRECTED},
	{"a path with several readings", .route = GATE_ROUTE_BAD, .end = DECIDE_BAD_TARGET},
	{"outside every room", .route = GATE_ROUTE_UNGUARDED, .end = FORWARD},
	{"outside every room, posted", .route = GATE_ROUTE_UNGUARDED, .method = HTTP_POST,
		.end = FORWARD},
	{"no endpoint", .route = GATE_ROUTE_UNKNOWN, .end = DECIDE_NOT_FOUND},

	// Section 2, 1 to 4.
	{"1. a pass", GET_PAGE, .open = QUEUE, .pass = PASS, .end = FORWARD_PASS},
	{"1. a pass, whatever is asked", .route = GATE_ROUTE_GUARDED, .method = HTTP_POST,
		.open = QUEUE, .pass = PASS, .end = FORWARD_PASS},
	{"1. a pass, while nothing is granted", GET_PAGE, .open = HOLD, .pass = PASS,
		.end = FORWARD_PASS},
	{"1. a pass, room closed: until it expires", GET_PAGE, .state = GATE_CLOSED, .pass = PASS,
		.end = FORWARD_PASS},
	{"1. a pass, room rejects", GET_PAGE, .mode = GATE_MODE_REJECT, .pass = PASS,
		.end = FORWARD_PASS},
	{"1. a pass and a called ticket", GET_PAGE, .open = QUEUE, .pass = PASS, .ticket = CALLED,
		.end = FORWARD_PASS},
	{"1. a pass whose session was ended", GET_PAGE, .open = QUEUE, .pass = PASS_ENDED,
		.end = DECIDE_PAGE, .told = STATUS_waiting, .mints = true},
	{"2. a called ticket", GET_PAGE, .open = QUEUE, .ticket = CALLED, .end = CLAIM_IT},
	{"2. a called ticket, room paused", GET_PAGE, .open = QUEUE, .state = GATE_PAUSED,
		.ticket = CALLED, .end = DECIDE_PAGE, .told = STATUS_next},
	{"2. a called ticket, hold", GET_PAGE, .open = HOLD, .ticket = CALLED, .end = DECIDE_PAGE,
		.told = STATUS_next},
	{"2. a called ticket, control silent", GET_PAGE, .open = QUEUE, .held = true,
		.ticket = CALLED, .end = DECIDE_PAGE, .told = STATUS_next},
	{"2. a called ticket, claim unanswered", GET_PAGE, .open = QUEUE, .late = true,
		.ticket = CALLED, .end = DECIDE_PAGE, .told = STATUS_next},
	{"2. a called ticket while draining", GET_PAGE, .open = QUEUE, .draining = true,
		.ticket = CALLED, .end = CLAIM_IT},
	{"3. nobody waits, a slot is free", GET_PAGE, .open = IDLE, .end = CLAIM_NEW},
	{"3. but control is silent", GET_PAGE, .open = IDLE, .held = true, .end = DECIDE_PAGE,
		.told = STATUS_waiting, .mints = true},
	{"3. but the claim went unanswered", GET_PAGE, .open = IDLE, .late = true,
		.end = DECIDE_PAGE, .told = STATUS_waiting, .mints = true},
	{"3. but the room is paused: places are drawn", GET_PAGE, .open = IDLE,
		.state = GATE_PAUSED, .end = DECIDE_PAGE, .told = STATUS_waiting, .mints = true},
	{"3. but everyone draws (always)", GET_PAGE, .open = IDLE, .mode = GATE_MODE_ALWAYS,
		.end = DECIDE_PAGE, .told = STATUS_waiting, .mints = true},
	{"3. but we drain: no newcomers", GET_PAGE, .open = IDLE, .draining = true,
		.end = DECIDE_UNAVAILABLE},
	{"4. somebody waits", GET_PAGE, .open = QUEUE, .end = DECIDE_PAGE, .told = STATUS_waiting,
		.mints = true},
	{"4. hold: newcomers get a ticket", GET_PAGE, .open = HOLD, .end = DECIDE_PAGE,
		.told = STATUS_waiting, .mints = true},
	{"4. a waiting ticket keeps its place", GET_PAGE, .open = QUEUE, .ticket = WAITING,
		.end = DECIDE_PAGE, .told = STATUS_waiting},
	{"4. a waiting ticket, even if a slot is free", GET_PAGE, .open = IDLE, .ticket = WAITING,
		.end = DECIDE_PAGE, .told = STATUS_waiting},
	{"4. a lapsed ticket joins again at the end", GET_PAGE, .open = QUEUE, .ticket = LAPSED,
		.end = DECIDE_PAGE, .told = STATUS_waiting, .mints = true},
	{"4. a lapsed ticket, nobody waits", GET_PAGE, .open = IDLE, .ticket = LAPSED,
		.end = CLAIM_NEW},
	{"4. an expired pass counts as none", GET_PAGE, .open = QUEUE, .pass = PASS_OVER,
		.end = DECIDE_PAGE, .told = STATUS_waiting, .mints = true},
	{"4. an expired pass, nobody waits", GET_PAGE, .open = IDLE, .pass = PASS_OVER,
		.end = CLAIM_NEW},
	{"closed", GET_PAGE, .open = QUEUE, .state = GATE_CLOSED, .end = DECIDE_PAGE,
		.told = STATUS_closed},
	{"closed, with a called ticket", GET_PAGE, .open = QUEUE, .state = GATE_CLOSED,
		.ticket = CALLED, .end = DECIDE_PAGE, .told = STATUS_closed},
	{"rejected", GET_PAGE, .open = IDLE, .mode = GATE_MODE_REJECT, .end = DECIDE_PAGE,
		.told = STATUS_rejected},
	{"rejected, with a waiting ticket", GET_PAGE, .open = QUEUE, .mode = GATE_MODE_REJECT,
		.ticket = WAITING, .end = DECIDE_PAGE, .told = STATUS_rejected},
	{"off", GET_PAGE, .open = QUEUE, .mode = GATE_MODE_OFF, .end = FORWARD_UNCOUNTED},
	{"off, sub-request: no page view", GET_OTHER, .open = QUEUE, .mode = GATE_MODE_OFF,
		.end = FORWARD},
	{"off, with a pass", GET_PAGE, .mode = GATE_MODE_OFF, .pass = PASS, .end = FORWARD_PASS},
	{"off, with an expired pass: nothing to ask", GET_PAGE, .mode = GATE_MODE_OFF,
		.pass = PASS_OVER, .end = FORWARD_UNCOUNTED},

	// Section 2, everything else without a pass.
	{"sub-request", GET_OTHER, .open = QUEUE, .end = DECIDE_UNAVAILABLE},
	{"sub-request, a slot is free", GET_OTHER, .open = IDLE, .end = DECIDE_UNAVAILABLE},
	{"sub-request, called", GET_OTHER, .open = QUEUE, .ticket = CALLED,
		.end = DECIDE_UNAVAILABLE},
	{"sub-request, rejected", GET_OTHER, .mode = GATE_MODE_REJECT, .end = DECIDE_UNAVAILABLE},
	{"sub-request, closed", GET_OTHER, .state = GATE_CLOSED, .end = DECIDE_UNAVAILABLE},
	{"HEAD", .route = GATE_ROUTE_GUARDED, .method = HTTP_HEAD, .open = IDLE,
		.end = DECIDE_UNAVAILABLE},
	{"POST", .route = GATE_ROUTE_GUARDED, .method = HTTP_POST, .open = IDLE,
		.end = DECIDE_UNAVAILABLE},
	{"POST, called", .route = GATE_ROUTE_GUARDED, .method = HTTP_POST, .open = QUEUE,
		.ticket = CALLED, .end = DECIDE_UNAVAILABLE},
	{"POST, expired pass", .route = GATE_ROUTE_GUARDED, .method = HTTP_POST, .pass = PASS_OVER,
		.end = DECIDE_UNAVAILABLE},
	{"prefetch", GET_PAGE, .prefetch = true, .open = IDLE, .end = DECIDE_UNAVAILABLE},
	{"prefetch, called", GET_PAGE, .prefetch = true, .open = QUEUE, .ticket = CALLED,
		.end = DECIDE_UNAVAILABLE},
	{"prefetch with a pass", GET_PAGE, .prefetch = true, .pass = PASS, .end = FORWARD_PASS},
	{"pre-flight", .route = GATE_ROUTE_GUARDED, .method = HTTP_OPTIONS, .preflight = true,
		.open = QUEUE, .end = FORWARD_PREFLIGHT},
	{"other OPTIONS", .route = GATE_ROUTE_GUARDED, .method = HTTP_OPTIONS, .open = QUEUE,
		.end = DECIDE_UNAVAILABLE},

	// Section 2, sliding.
	{"sliding, first half", GET_PAGE, .sliding = true, .pass = PASS, .end = FORWARD_PASS},

	// Section 3.
	{"poll: waiting", POLL, .open = QUEUE, .ticket = WAITING, .end = DECIDE_STATUS,
		.told = STATUS_waiting},
	{"poll: waiting, room paused", POLL, .open = QUEUE, .state = GATE_PAUSED, .ticket = WAITING,
		.end = DECIDE_STATUS, .told = STATUS_waiting},
	{"poll: called, so it is a claim", POLL, .open = QUEUE, .ticket = CALLED, .end = CLAIM_IT},
	{"poll: called, hold", POLL, .open = HOLD, .ticket = CALLED, .end = DECIDE_STATUS,
		.told = STATUS_next},
	{"poll: called, paused", POLL, .open = QUEUE, .state = GATE_PAUSED, .ticket = CALLED,
		.end = DECIDE_STATUS, .told = STATUS_next},
	{"poll: called, claim unanswered", POLL, .open = QUEUE, .late = true, .ticket = CALLED,
		.end = DECIDE_STATUS, .told = STATUS_next},
	{"poll: admitted", POLL, .open = QUEUE, .pass = PASS, .end = DECIDE_STATUS,
		.told = STATUS_admitted},
	{"poll: turn missed", POLL, .open = QUEUE, .ticket = LAPSED, .end = DECIDE_STATUS,
		.told = STATUS_expired},
	{"poll: turn missed, a slot is free", POLL, .open = IDLE, .ticket = LAPSED,
		.end = DECIDE_STATUS, .told = STATUS_expired},
	{"poll: pass run out", POLL, .pass = PASS_OVER, .end = DECIDE_STATUS,
		.told = STATUS_expired},
	{"poll: pass run out", POLL, .pass = PASS_OVER, .held = true, .end = DECIDE_STATUS,
		.told = STATUS_expired},
	{"poll: session ended", POLL, .pass = PASS_ENDED, .end = DECIDE_STATUS,
		.told = STATUS_expired},
	{"poll: closed", POLL, .state = GATE_CLOSED, .ticket = WAITING, .end = DECIDE_STATUS,
		.told = STATUS_closed},
	{"poll: rejected", POLL, .mode = GATE_MODE_REJECT, .ticket = WAITING, .end = DECIDE_STATUS,
		.told = STATUS_rejected},
	{"poll: off, so load the page", POLL, .mode = GATE_MODE_OFF, .ticket = WAITING,
		.end = DECIDE_STATUS, .told = STATUS_admitted},
	{"poll: without a token", POLL, .open = QUEUE, .end = DECIDE_UNKNOWN},
	{"poll: without a token, closed", POLL, .state = GATE_CLOSED, .end = DECIDE_UNKNOWN},
	{"poll: POST", .route = GATE_ROUTE_STATUS, .method = HTTP_POST, .ticket = WAITING,
		.end = DECIDE_METHOD},
	{"poll: HEAD", .route = GATE_ROUTE_STATUS, .method = HTTP_HEAD, .ticket = CALLED,
		.end = DECIDE_METHOD},
	{"leave by GET", .route = GATE_ROUTE_LEAVE, .method = HTTP_GET, .ticket = WAITING,
		.end = DECIDE_METHOD},
	{"leave with a place", .route = GATE_ROUTE_LEAVE, .method = HTTP_POST, .ticket = WAITING,
		.end = CLAIM_BACK},
	{"leave with a place, hold", .route = GATE_ROUTE_LEAVE, .method = HTTP_POST, .open = HOLD,
		.ticket = WAITING, .end = CLAIM_BACK},
	{"leave with a place, room closed", .route = GATE_ROUTE_LEAVE, .method = HTTP_POST,
		.state = GATE_CLOSED, .ticket = WAITING, .end = CLAIM_BACK},
	{"leave with a place, draining", .route = GATE_ROUTE_LEAVE, .method = HTTP_POST,
		.draining = true, .ticket = WAITING, .end = CLAIM_BACK},
	{"leave with a place, control silent", .route = GATE_ROUTE_LEAVE, .method = HTTP_POST,
		.held = true, .ticket = WAITING, .end = DECIDE_UNAVAILABLE},
	{"leave with a place, no answer in time", .route = GATE_ROUTE_LEAVE, .method = HTTP_POST,
		.late = true, .ticket = WAITING, .end = DECIDE_UNAVAILABLE},
	{"leave with a pass", .route = GATE_ROUTE_LEAVE, .method = HTTP_POST, .pass = PASS,
		.end = CLAIM_BACK},
	{"leave with a pass that is refused already: who knows whether the store has it",
		.route = GATE_ROUTE_LEAVE, .method = HTTP_POST, .pass = PASS_ENDED,
		.end = CLAIM_BACK},
	{"leave with a lapsed ticket", .route = GATE_ROUTE_LEAVE, .method = HTTP_POST,
		.ticket = LAPSED, .end = DECIDE_LEFT},
	{"leave with nothing", .route = GATE_ROUTE_LEAVE, .method = HTTP_POST, .end = DECIDE_LEFT},
	{"leave with nothing, control silent", .route = GATE_ROUTE_LEAVE, .method = HTTP_POST,
		.held = true, .end = DECIDE_LEFT},
	{"draw", .route = GATE_ROUTE_DRAW, .method = HTTP_GET, .end = DECIDE_DRAW_NONE},
	{"draw by POST", .route = GATE_ROUTE_DRAW, .method = HTTP_POST, .end = DECIDE_METHOD},
	{"draw/keys", .route = GATE_ROUTE_DRAW_KEYS, .method = HTTP_GET, .end = DECIDE_DRAW_NONE},
	{"health", .route = GATE_ROUTE_HEALTH, .method = HTTP_GET, .end = DECIDE_HEALTH},
	{"the server as a whole", .route = GATE_ROUTE_SERVER, .method = HTTP_OPTIONS,
		.end = DECIDE_SERVER},
	{"health by HEAD", .route = GATE_ROUTE_HEALTH, .method = HTTP_HEAD, .end = DECIDE_HEALTH},
	{"health by POST", .route = GATE_ROUTE_HEALTH, .method = HTTP_POST, .end = DECIDE_METHOD},
};

static void set_up(const struct row *row)
{
	scene(NULL);
	request.route = (uint8_t)row->route;
	request.method = (uint8_t)row->method;
	request.whole = &room;
	request.draws = row->draws;
	request.is_prefetch = row->prefetch;
	request.is_preflight = row->preflight;
	if (row->route < GATE_ROUTE_GUARDED || row->route > GATE_ROUTE_DRAW_KEYS)
		request.room = NULL;
	input.is_draining = row->draining;
	input.is_held = row->held;
	input.answer_is_late = row->late;
	room.mode = (uint8_t)row->mode;
	room.state = (uint8_t)row->state;
	room.sliding = row->sliding;
	atomic_store(&line->open, row->open == IDLE ? 1 : row->open);
	static const int held[] = {[LAPSED] = 1, [CALLED] = 3, [WAITING] = 7};
	if (row->ticket != NO_TICKET)
		carry_ticket(keys[held[row->ticket]], CARRY_COOKIE);
	if (row->pass != NO_PASS)
		carry_pass(row->pass == PASS_OVER ? LIFE_S : 100, CARRY_COOKIE);
	input.pass_has_ended = row->pass == PASS_ENDED;
}

static int end_of(const struct decision *d)
{
	if (d->action == DECIDE_FORWARD)
		return d->session        ? FORWARD_PASS
		       : d->is_uncounted ? FORWARD_UNCOUNTED
		       : d->is_preflight ? FORWARD_PREFLIGHT
					 : FORWARD;
	if (d->action == DECIDE_CLAIM)
		return d->claim.kind == CLAIM_CALLED   ? CLAIM_IT
		       : d->claim.kind == CLAIM_DIRECT ? CLAIM_NEW
		       : d->claim.kind == CLAIM_LEAVE  ? CLAIM_BACK
						       : CLAIM_AGAIN;
	return d->answer;
}

static void contract(void **state)
{
	(void)state;
	for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
		const struct row *row = &rows[i];
		set_up(row);
		uint64_t total = place_total(line);
		run();
		if (end_of(&decision) != row->end)
			fail_msg("%s: ends in %d, not %d", row->name, end_of(&decision), row->end);
		bool is_told = row->end == DECIDE_PAGE || row->end == DECIDE_STATUS;
		if (is_told && decision.status.state != row->told)
			fail_msg(
				"%s: told %d, not %d", row->name, decision.status.state, row->told);
		if (decision.was_minted != row->mints || place_total(line) != total + row->mints)
			fail_msg("%s: drew a place, or did not", row->name);
		if ((is_told || row->end == DECIDE_UNAVAILABLE) &&
			(decision.status.poll_after < 1 || decision.status.poll_after > 60))
			fail_msg("%s: poll_after %u", row->name, decision.status.poll_after);
		if (input.answer_is_late && decision.action == DECIDE_CLAIM)
			fail_msg("%s: claims again", row->name);
	}
}

static uint64_t seed;

static unsigned draw(unsigned below)
{
	seed = seed * 6364136223846793005u + 1442695040888963407u;
	return (unsigned)(seed >> 40) % below;
}

// Whatever is thrown at it: nobody is let through for nothing, nobody draws who may not, nobody's
// place or id changes, and nothing is asked twice.
static void what_always_holds(void **state)
{
	(void)state;
	seed = 20271130;
	for (int i = 0; i < 20000; i++) {
		struct row row = {.route = GATE_ROUTE_GUARDED + draw(2),
			.method = draw(4) ? HTTP_GET : HTTP_POST,
			.draws = draw(2),
			.prefetch = draw(8) == 0,
			.preflight = draw(8) == 0,
			.sliding = draw(2),
			.draining = draw(8) == 0,
			.held = draw(8) == 0,
			.late = draw(4) == 0,
			.open = draw(2)   ? IDLE
				: draw(4) ? QUEUE
					  : HOLD,
			.mode = (enum gate_mode)draw(4),
			.state = (enum gate_room_state)(draw(4) ? GATE_OPEN : draw(3)),
			.ticket = (enum held_ticket)draw(4),
			.pass = (enum held_pass)(draw(2) ? NO_PASS : draw(4))};
		set_up(&row);
		struct claim_answer answer = {.kind = (uint8_t)(1 + draw(3)),
			.verdict = (uint8_t)(1 + draw(7)),
			.line_id = draw(8) ? LINE_ID : LINE_ID + 1,
			.session = 0x5e56,
			.visitor = 0xabc,
			.expires = NOW_S + LIFE_S};
		if (draw(3) == 0)
			input.answer = &answer;
		uint64_t total = place_total(line);
		run();
		const struct decision *d = &decision;
		bool is_let_in =
			answer.line_id == LINE_ID && input.answer &&
			(answer.verdict == CLAIM_GRANTED || answer.verdict == CLAIM_RENEWED);
		bool has_pass = row.pass == PASS;
		if (d->action == DECIDE_FORWARD)
			assert_true(has_pass || is_let_in || row.mode == GATE_MODE_OFF ||
				    row.preflight);
		if (d->session)
			assert_true(has_pass || is_let_in);
		if (d->sets_pass)
			assert_true(is_let_in);
		assert_int_equal(place_total(line) - total, d->was_minted);
		if (d->was_minted)
			assert_true(row.draws && !row.prefetch && !row.draining &&
				    row.route == GATE_ROUTE_GUARDED && d->answer == DECIDE_PAGE);
		if (d->sets_ticket && !d->was_minted)
			assert_true(d->ticket.key == request.ticket->token.key &&
				    d->ticket.visitor == request.ticket->token.visitor);
		if (d->action == DECIDE_CLAIM)
			assert_false(row.late || row.held || row.open == HOLD ||
				     (row.prefetch && request.route == GATE_ROUTE_GUARDED));
		if (d->action == DECIDE_CLAIM && input.answer) // only from a renewal to the next
			assert_true(answer.kind == CLAIM_RENEW && d->claim.kind != CLAIM_RENEW);
		assert_false(d->sets_ticket && d->clears_ticket);
		assert_false(d->sets_pass && d->clears_pass);
	}
}

static void dates_are_those_of_libc(void **state)
{
	(void)state;
	seed = 20261130;
	for (int i = 0; i < 20000; i++) {
		seed = seed * 6364136223846793005u + 1442695040888963407u;
		uint32_t now_s = i == 0 ? 0 : i == 1 ? UINT32_MAX : (uint32_t)(seed >> 32);
		time_t now = now_s;
		char expected[32], date[32];
		strftime(expected, sizeof(expected), "%a, %d %b %Y %H:%M:%S GMT", gmtime(&now));
		decide_date(now_s, date);
		assert_string_equal(date, expected);
	}
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test_setup_teardown(contract, scene, scene_end),
		cmocka_unit_test_setup_teardown(what_always_holds, scene, scene_end),
		cmocka_unit_test(dates_are_those_of_libc),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
