// The turn of claims, with a controller that writes down what it is told and a store that does as
// it is told.

#include "controlplane/claims/claims.h"
#include "tests/unit/store/store_model.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#define NOW 1764583200000ull
#define NOW_S 1764583200u
#define SESSION_S 600u
#define ENDED_MAX 4u
#define LATER_VISITOR 900u // from here on claims are put off

// The stand-in: grants while available, remembers who has what, and writes a diary.
struct controller {
	const char *name;
	bool is_available;
	uint32_t session_count, change_count;
	struct controller_change sessions[32], changes[64];
	bool has_later;
	struct claim later;
};

static char diary[4096];

__attribute__((format(printf, 2, 3))) static void note(
	const struct controller *c, const char *format, ...)
{
	size_t len = strlen(diary);
	len += (size_t)snprintf(diary + len, sizeof(diary) - len, "%s%s.", len ? " " : "", c->name);
	va_list args;
	va_start(args, format);
	vsnprintf(diary + len, sizeof(diary) - len, format, args);
	va_end(args);
}

static void change(
	struct controller *c, enum controller_change_kind kind, const struct controller_change *of)
{
	c->changes[c->change_count] = *of;
	c->changes[c->change_count++].kind = kind;
}

static struct controller_change *session_of(struct controller *c, uint64_t visitor)
{
	for (uint32_t i = 0; i < c->session_count; i++) {
		if (c->sessions[i].visitor == visitor)
			return &c->sessions[i];
	}
	return NULL;
}

static uint8_t decide(
	struct controller *c, const struct claim *claim, uint64_t session, uint64_t now_ms)
{
	struct controller_change *known = session_of(c, claim->visitor);
	uint32_t expires = (uint32_t)(now_ms / 1000) + SESSION_S;
	if (claim->kind == CLAIM_RENEW && known) {
		known->expires = expires;
		change(c, CONTROLLER_RENEWED, known);
	}
	if (claim->kind == CLAIM_RENEW)
		return known ? CLAIM_RENEWED : CLAIM_LAPSED;
	if (known)
		return CLAIM_GRANTED;
	if (!c->is_available)
		return claim->kind == CLAIM_CALLED ? CLAIM_NEXT : CLAIM_REFUSED;
	known = &c->sessions[c->session_count++];
	*known = (struct controller_change){
		CONTROLLER_GRANTED, expires, session, claim->visitor, claim->key};
	change(c, CONTROLLER_GRANTED, known);
	return CLAIM_GRANTED;
}

static void answer_fill(struct controller *c, const struct claim *claim, uint64_t session,
	uint64_t now_ms, struct claim_answer *answer)
{
	answer->kind = claim->kind;
	answer->request = claim->request;
	answer->visitor = claim->visitor;
	answer->line_id = claim->line_id;
	answer->verdict = decide(c, claim, session, now_ms);
	const struct controller_change *known = session_of(c, claim->visitor);
	answer->session = known ? known->session : 0;
	answer->expires = known ? known->expires : 0;
}

bool controller_claim(struct controller *c, const struct claim *claim, uint64_t session,
	uint64_t now_ms, struct claim_answer *answer)
{
	assert_true(session != 0);
	if (claim->visitor >= LATER_VISITOR) {
		c->later = *claim;
		c->has_later = true;
		return false;
	}
	answer_fill(c, claim, session, now_ms, answer);
	return true;
}

bool controller_later(
	struct controller *c, uint64_t now_ms, struct claim_answer *answer, uint8_t *worker)
{
	if (!c->has_later || now_ms < c->later.sent_ms + 100)
		return false;
	c->has_later = false;
	*answer = (struct claim_answer){0};
	*worker = c->later.worker;
	answer_fill(c, &c->later, 4242, now_ms, answer);
	return true;
}

bool controller_restore(
	struct controller *c, const struct controller_change *restored, uint64_t now_ms)
{
	(void)now_ms;
	note(c, "%s(%lu)", restored->kind == CONTROLLER_GRANTED ? "restore" : "restore_over",
		(unsigned long)restored->visitor);
	if (restored->visitor == 666)
		return false;
	if (restored->kind == CONTROLLER_GRANTED)
		c->sessions[c->session_count++] = *restored;
	return true;
}

void controller_set_available(struct controller *c, bool available, uint64_t now_ms)
{
	(void)now_ms;
	assert_true(c->is_available != available);
	c->is_available = available;
	note(c, available ? "on" : "off");
}

void controller_refused(struct controller *c, uint64_t key, uint32_t poll_after, uint64_t now_ms)
{
	(void)now_ms;
	note(c, "refused(%lu,%u)", (unsigned long)key, poll_after);
}

void controller_gone(struct controller *c, uint64_t visitor, uint64_t session, uint64_t now_ms)
{
	(void)now_ms;
	(void)session;
	note(c, "gone(%lu)", (unsigned long)visitor);
}

bool controller_end(struct controller *c, uint64_t session, uint64_t now_ms)
{
	(void)now_ms;
	for (uint32_t i = 0; i < c->session_count; i++) {
		if (c->sessions[i].session != session)
			continue;
		note(c, "end(%lu)", (unsigned long)session);
		return true;
	}
	return false;
}

void controller_free(struct controller *c, uint64_t session, uint64_t now_ms)
{
	(void)now_ms;
	note(c, "free(%lu)", (unsigned long)session);
	for (uint32_t i = 0; i < c->session_count; i++) {
		if (c->sessions[i].session == session)
			change(c, CONTROLLER_ENDED, &c->sessions[i]);
	}
}

bool controller_leave(struct controller *c, uint64_t key, uint64_t visitor, uint64_t now_ms)
{
	(void)now_ms;
	note(c, "leave(%lu,%lu)", (unsigned long)key, (unsigned long)visitor);
	return key != 13;
}

void controller_tick(struct controller *c, uint64_t now_ms)
{
	(void)c;
	(void)now_ms;
}

void controller_publish(struct controller *c, bool hold, uint64_t now_ms)
{
	(void)now_ms;
	assert_int_equal(c->change_count, 0); // all have been collected
	if (hold)
		note(c, "hold");
}

uint32_t controller_changes(struct controller *c, const struct controller_change **changes)
{
	uint32_t count = c->change_count;
	*changes = c->changes;
	c->change_count = 0;
	return count;
}

// The world around the turn.
static struct {
	struct store_model model;
	struct controller derby, club;
	struct place_line *lines[2];
	struct ended *ended;
	struct claims *claims;
	uint64_t session, barrier_begun, barrier_passed;
	char answers[1024];
	uint32_t take_max; // answers that a worker takes at a time
} w;

static const char *const verdicts[] = {
	[CLAIM_GRANTED] = "granted",
	[CLAIM_NEXT] = "next",
	[CLAIM_REFUSED] = "refused",
	[CLAIM_LAPSED] = "lapsed",
	[CLAIM_RENEWED] = "renewed",
	[CLAIM_CLOSED] = "closed",
};

static uint32_t take_answers(
	void *ctx, uint32_t worker, const struct claim_answer *answers, uint32_t count)
{
	(void)ctx;
	size_t len = strlen(w.answers);
	for (uint32_t i = 0; i < count && i < w.take_max; i++)
		len += (size_t)snprintf(w.answers + len, sizeof(w.answers) - len, "%s%u:%lu %s",
			len ? ", " : "", worker, (unsigned long)answers[i].visitor,
			verdicts[answers[i].verdict]);
	return count < w.take_max ? count : w.take_max;
}

static uint64_t barrier_begin(void *ctx)
{
	(void)ctx;
	return ++w.barrier_begun;
}

static bool barrier_passed(void *ctx, uint64_t token)
{
	(void)ctx;
	return token <= w.barrier_passed;
}

static uint64_t session_id(void *ctx)
{
	(void)ctx;
	return w.session++;
}

static const struct claims_plan plan = {.rooms_max = 3, .workers_max = 3, .ended_max = ENDED_MAX};

static struct claims_room derby(void)
{
	return (struct claims_room){1, SESSION_S, GATE_OPEN, &w.derby, w.lines[0]};
}

static struct claims_room club(void)
{
	return (struct claims_room){2, 2 * SESSION_S, GATE_OPEN, &w.club, w.lines[1]};
}

static void claims_start(void)
{
	static const struct claims_seams seams = {
		NULL, take_answers, barrier_begin, barrier_passed, session_id};
	struct claims_room rooms[] = {derby(), club()};
	w.derby = (struct controller){.name = "derby", .is_available = true};
	w.club = (struct controller){.name = "club", .is_available = true};
	w.claims = claims_create(&plan, &w.model.store, w.ended, &seams);
	assert_non_null(w.claims);
	claims_set_rooms(w.claims, rooms, 2);
}

static int world_new(void **state)
{
	(void)state;
	memset(&w, 0, sizeof(w));
	diary[0] = '\0';
	w.session = 1001;
	w.take_max = UINT32_MAX;
	store_model_init(&w.model, claims_records(&plan, 100));
	for (int i = 0; i < 2; i++)
		w.lines[i] = calloc(1, sizeof(struct place_line));
	w.ended = ended_init(aligned_alloc(64, (ended_bytes(ENDED_MAX) + 63) / 64 * 64), ENDED_MAX);
	claims_start();
	return 0;
}

static int world_end(void **state)
{
	(void)state;
	claims_destroy(w.claims);
	claims_destroy(NULL);
	free(w.ended);
	for (int i = 0; i < 2; i++)
		free(w.lines[i]);
	store_model_fini(&w.model);
	return 0;
}

static struct claim a_claim(enum claim_kind kind, uint64_t visitor)
{
	return (struct claim){.kind = kind,
		.visitor = visitor,
		.key = visitor,
		.line_id = 1,
		.poll_after = 4,
		.sent_ms = NOW};
}

// One turn with one claim.
static void turn_with(struct claim claim, uint64_t after_ms)
{
	claim.sent_ms = NOW + after_ms;
	claims_turn(w.claims, &claim, 1, NOW + after_ms);
}

static void turn(uint64_t after_ms)
{
	claims_turn(w.claims, NULL, 0, NOW + after_ms);
}

static void expect_answers(const char *expected)
{
	assert_string_equal(w.answers, expected);
	w.answers[0] = '\0';
}

static void expect_diary(const char *expected)
{
	assert_string_equal(diary, expected);
	diary[0] = '\0';
}

static uint64_t counted(size_t offset)
{
	return *(const uint64_t *)((const char *)claims_counters(w.claims) + offset);
}
#define COUNTED(name) counted(offsetof(struct claims_counters, name))

static void answers_leave_when_the_store_has_them(void **state)
{
	(void)state;
	w.model.delay_ms = 50;
	turn_with(a_claim(CLAIM_CALLED, 7), 0);
	assert_true(claims_is_busy(w.claims));
	turn(49);
	expect_answers("");
	assert_null(store_model_session(&w.model, 1, 7));
	turn(50);
	expect_answers("0:7 granted");
	assert_non_null(store_model_session(&w.model, 1, 7));
	w.model.delay_ms = 0;
	turn(60);
	assert_false(claims_is_busy(w.claims));
	turn_with(a_claim(CLAIM_DIRECT, 8), 70); // within the call
	expect_answers("0:8 granted");
	assert_int_equal(COUNTED(granted), 2);
	assert_int_equal(COUNTED(granted_unsaved), 0);
}

static void each_worker_gets_its_own_in_order(void **state)
{
	(void)state;
	struct claim claims[] = {a_claim(CLAIM_CALLED, 1), a_claim(CLAIM_DIRECT, 2),
		a_claim(CLAIM_RENEW, 3), a_claim(CLAIM_CALLED, 4), a_claim(CLAIM_RENEW, 1)};
	claims[0].worker = claims[2].worker = 2;
	claims[3].worker = 1;
	claims_turn(w.claims, claims, 5, NOW);
	expect_answers("0:2 granted, 0:1 renewed, 1:4 granted, 2:1 granted, 2:3 lapsed");
	assert_int_equal(w.model.session_count, 3);
	assert_int_equal(COUNTED(called), 2);
	assert_int_equal(COUNTED(direct), 1);
	assert_int_equal(COUNTED(renew), 2);
}

static void a_room_is_known_by_its_line(void **state)
{
	(void)state;
	struct claim claim = a_claim(CLAIM_DIRECT, 7);
	claim.line_id = 2; // of the room `club`, at the index of `derby`
	turn_with(claim, 0);
	assert_non_null(store_model_session(&w.model, 2, 7));
	claim.room = 9;
	claim.visitor = 8;
	turn_with(claim, 0);
	assert_non_null(store_model_session(&w.model, 2, 8));
	assert_int_equal(COUNTED(crossed), 2);
	expect_answers("0:7 granted, 0:8 granted");
	claim.line_id = 3; // no more
	for (uint8_t kind = CLAIM_CALLED; kind <= CLAIM_PASSED; kind++) {
		claim.kind = kind;
		turn_with(claim, 0);
	}
	expect_answers("0:8 refused, 0:8 refused, 0:8 refused");
	assert_int_equal(COUNTED(unknown_room), 7);
	expect_diary("");
}

static void closed_and_paused(void **state)
{
	(void)state;
	assert_true(claims_set_state(w.claims, 1, GATE_PAUSED));
	assert_false(claims_set_state(w.claims, 3, GATE_PAUSED));
	struct claim claims[] = {a_claim(CLAIM_CALLED, 1), a_claim(CLAIM_DIRECT, 2)};
	claims_turn(w.claims, claims, 2, NOW); // already in this turn
	expect_answers("0:1 next, 0:2 refused");
	expect_diary("derby.off derby.hold");
	claims_set_state(w.claims, 1, GATE_CLOSED);
	claims_turn(w.claims, claims, 2, NOW);
	expect_answers("0:1 closed, 0:2 closed");
	turn_with(a_claim(CLAIM_RENEW, 1), 0); // who is inside stays
	expect_answers("0:1 lapsed");
	claims_set_state(w.claims, 1, GATE_OPEN);
	diary[0] = '\0';
	claims_turn(w.claims, claims, 1, NOW);
	expect_answers("0:1 granted");
	expect_diary("derby.on");
}

static void who_was_given_up_is_not_granted(void **state)
{
	(void)state;
	struct claim claims[] = {a_claim(CLAIM_CALLED, 5), a_claim(CLAIM_DIRECT, 6)};
	claims_turn(w.claims, claims, 2, NOW + CLAIMS_LATE_MS + 1);
	expect_answers("");
	expect_diary("derby.refused(5,4)");
	assert_int_equal(COUNTED(late), 2);
	claims_turn(w.claims, claims, 2, NOW + CLAIMS_LATE_MS); // just in time
	expect_answers("0:5 granted, 0:6 granted");
	struct claim renew = a_claim(CLAIM_RENEW, 5);
	claims_turn(w.claims, &renew, 1, NOW + 5000); // reports and renewals are never late
	expect_answers("0:5 renewed");
}

static void an_ended_session_keeps_its_slot_until_all_know(void **state)
{
	(void)state;
	turn_with(a_claim(CLAIM_DIRECT, 7), 0);
	struct claim end = a_claim(CLAIM_END, 7);
	end.session = 1001;
	end.expires = NOW_S + 5;
	turn_with(end, 20);
	assert_true(ended_has(w.ended, 1001));
	expect_diary("derby.end(1001)");
	assert_int_equal(w.model.ended_count, 1); // the store knows at once
	// It may have been renewed, by another tab, for one session from now.
	assert_int_equal(w.model.ended[0].expires, NOW_S + SESSION_S + 1);
	turn_with(end, 40); // sent again
	expect_diary("");
	assert_int_equal(w.barrier_begun, 1);
	assert_false(store_model_session(&w.model, 1, 7)->is_over);
	w.barrier_passed = 1;
	turn(60);
	expect_diary("derby.free(1001)");
	assert_true(store_model_session(&w.model, 1, 7)->is_over);
	assert_int_equal(COUNTED(freed), 1);
	// Dropped when no pass of it can live.
	turn((SESSION_S + 1) * 1000ull);
	assert_true(ended_has(w.ended, 1001));
	turn((SESSION_S + 1 + ENDED_GRACE_S) * 1000ull);
	assert_false(ended_has(w.ended, 1001));
}

static void ending_has_a_limit(void **state)
{
	(void)state;
	struct claim end = a_claim(CLAIM_END, 0);
	for (uint64_t visitor = 0; visitor <= ENDED_MAX; visitor++) {
		turn_with(a_claim(CLAIM_DIRECT, visitor + 1), 0);
		end.session = 1001 + visitor;
		turn_with(end, 0);
	}
	expect_diary("derby.end(1001) derby.end(1002) derby.end(1003) derby.end(1004)");
	assert_int_equal(COUNTED(ended_full), 1);
	assert_false(ended_has(w.ended, 1005));
	// One barrier for each turn; passed up to the second.
	w.barrier_passed = 2;
	turn(20);
	expect_diary("derby.free(1001) derby.free(1002)");
	w.barrier_passed = 4;
	turn(40);
	expect_diary("derby.free(1003) derby.free(1004)");
}

static void a_session_nobody_knows_is_refused_too(void **state)
{
	(void)state;
	struct claim end = a_claim(CLAIM_END, 7);
	end.session = 55; // admitted unsaved, by a process that was killed
	turn_with(end, 0);
	assert_true(ended_has(w.ended, 55));
	end.session = 0;
	turn_with(end, 0);
	w.barrier_passed = 9;
	turn(20);
	expect_diary("");
	assert_int_equal(ended_count(w.ended), 1);
}

static void reports_reach_the_controller(void **state)
{
	(void)state;
	turn_with(a_claim(CLAIM_LEAVE, 12), 0);
	turn_with(a_claim(CLAIM_LEAVE, 13), 0);
	turn_with(a_claim(CLAIM_GONE, 14), 0);
	turn_with(a_claim(CLAIM_PASSED, 0), 0);
	turn_with(a_claim(CLAIM_PASSED, 0), 0);
	claims_refused(w.claims, 1, 99, 10, NOW);
	claims_refused(w.claims, 3, 99, 10, NOW);
	expect_diary("derby.leave(12,12) derby.leave(13,13) derby.gone(14) derby.refused(99,10)");
	expect_answers("");
	assert_int_equal(COUNTED(left_refused), 1);
	assert_int_equal(COUNTED(gone), 1);
	assert_int_equal(claims_passed(w.claims, 1), 2);
	assert_int_equal(claims_passed(w.claims, 2), 0);
	assert_int_equal(claims_passed(w.claims, 3), 0);
}

static void a_store_that_takes_long_is_held(void **state)
{
	(void)state;
	w.model.delay_ms = 1000;
	turn_with(a_claim(CLAIM_CALLED, 7), 0);
	turn(CLAIMS_HOLD_MS);
	expect_diary("");
	turn(CLAIMS_HOLD_MS + 1);
	expect_diary("derby.off club.off derby.hold club.hold");
	turn(CLAIMS_HOLD_MS + 20);
	expect_diary("");
	w.model.delay_ms = 0;
	turn(1000);
	expect_answers("0:7 granted");
	expect_diary("derby.on club.on");
}

static void unsaved_it_goes_on_and_counts(void **state)
{
	(void)state;
	w.model.is_failing = true;
	turn_with(a_claim(CLAIM_CALLED, 7), 0);
	expect_answers("0:7 granted");
	assert_int_equal(COUNTED(granted_unsaved), 1);
	assert_true(w.model.is_marked);
	assert_int_equal(w.model.session_count, 0);
	w.model.is_failing = false;
	turn(20);
	assert_int_equal(w.model.session_count, 1);
	assert_false(w.model.is_marked);
	turn_with(a_claim(CLAIM_CALLED, 8), 40);
	assert_int_equal(COUNTED(granted), 2);
	assert_int_equal(COUNTED(granted_unsaved), 1);
}

static void a_batch_nearly_full_grants_nothing(void **state)
{
	(void)state;
	w.model.is_failing = true;
	struct store_record record = {.kind = STORE_GRANTED};
	while (w.model.store.status.free_count >= CLAIMS_ANSWERS_MAX) {
		record.session.visitor++;
		record.session.line_id = 77;
		assert_true(store_put(&w.model.store, &record));
	}
	turn_with(a_claim(CLAIM_CALLED, 7), 0);
	expect_answers("0:7 next");
	expect_diary("derby.off club.off derby.hold club.hold");
	w.model.is_failing = false;
	turn(20); // catches up
	diary[0] = '\0';
	turn_with(a_claim(CLAIM_CALLED, 7), 40);
	expect_answers("0:7 granted");
	expect_diary("derby.on club.on");
}

static void restart_unclean(uint32_t until)
{
	claims_destroy(w.claims);
	w.model.is_marked = true;
	w.model.marked_until = until;
	store_model_crash(&w.model, false);
	claims_start();
	assert_int_equal(claims_restore(w.claims, 100, NOW), 0);
}

static void after_an_unclean_end_nobody_new_for_one_session(void **state)
{
	(void)state;
	restart_unclean(NOW_S + 5);
	turn_with(a_claim(CLAIM_CALLED, 7), 0); // in the very first turn
	expect_answers("0:7 next");
	expect_diary("derby.off club.off derby.hold club.hold");
	assert_int_equal(claims_quiet_until(w.claims, 1), NOW + SESSION_S * 1000);
	turn_with(a_claim(CLAIM_CALLED, 7), SESSION_S * 1000 - CLAIMS_TICK_MS);
	expect_answers("0:7 next");
	diary[0] = '\0';
	turn_with(a_claim(CLAIM_CALLED, 7), SESSION_S * 1000);
	expect_answers("0:7 granted");
	expect_diary("derby.on club.hold"); // each room for its own session
	assert_int_equal(claims_quiet_until(w.claims, 1), 0);
	assert_true(w.model.is_marked);
	turn(2 * SESSION_S * 1000);
	assert_false(w.model.is_marked);
	assert_false(w.model.store.status.is_unclean);
}

static void sessions_that_were_longer_before(void **state)
{
	(void)state;
	restart_unclean(NOW_S + 9 * SESSION_S);
	turn_with(a_claim(CLAIM_CALLED, 7), 9 * SESSION_S * 1000 - CLAIMS_TICK_MS);
	expect_answers("0:7 next");
	turn_with(a_claim(CLAIM_CALLED, 7), 9 * SESSION_S * 1000);
	expect_answers("0:7 granted");
	assert_false(w.model.is_marked);
}

static void save_session(uint32_t line_id, uint64_t visitor, uint32_t expires, bool is_over)
{
	w.model.sessions[w.model.session_count++] =
		(struct store_session){line_id, expires, visitor, visitor + 100, visitor, is_over};
}

static void what_the_store_knows_is_taken_over(void **state)
{
	(void)state;
	w.lines[0]->floor = 50;
	save_session(1, 10, NOW_S + 1, false); // live
	save_session(1, 60, NOW_S, false); // expired this second, and its ticket could be used
	save_session(1, 20, NOW_S, false); // expired, and floor has passed it
	save_session(1, 70, NOW_S + 9, true); // over early, its ticket could be used
	save_session(1, 30, NOW_S + 9, true);
	save_session(2, 20, NOW_S - 999, false); // expired; of another line, where floor is 0
	save_session(3, 40, NOW_S, false); // not configured now
	save_session(3, 41, NOW_S - CLAIMS_KEEP_S - 1, false); // nor for long
	save_session(1, 666, NOW_S + 5, false); // no room
	assert_int_equal(claims_restore(w.claims, 100, NOW), 0);
	expect_diary("derby.restore(10) derby.restore_over(60) derby.restore_over(70) "
		     "club.restore_over(20) derby.restore(666)");
	assert_int_equal(COUNTED(restored), 4);
	assert_int_equal(COUNTED(restored_full), 1);
	assert_int_equal(COUNTED(restored_unknown), 2);
	assert_int_equal(COUNTED(restored_expired), 5);
	turn(0);
	assert_null(store_model_session(&w.model, 1, 20));
	assert_null(store_model_session(&w.model, 1, 30));
	assert_null(store_model_session(&w.model, 3, 41));
	assert_int_equal(w.model.session_count, 6);
}

static void more_than_can_be_is_an_error(void **state)
{
	(void)state;
	save_session(1, 10, NOW_S + 1, false);
	save_session(1, 11, NOW_S + 1, false);
	assert_true(claims_restore(w.claims, 1, NOW) < 0);
}

static void sessions_that_ended_stay_ended(void **state)
{
	(void)state;
	save_session(1, 10, NOW_S + 100, false);
	w.model.ended[0] = (struct store_ended){1, NOW_S + 100, 110}; // not freed yet
	w.model.ended[1] = (struct store_ended){1, NOW_S + 100, 111}; // over already
	w.model.ended[2] = (struct store_ended){1, NOW_S - ENDED_GRACE_S, 112};
	w.model.ended[3] = (struct store_ended){3, NOW_S + 100, 113}; // of a room that is no more
	w.model.ended_count = 4;
	assert_int_equal(claims_restore(w.claims, 100, NOW), 0);
	expect_diary("derby.restore(10) derby.end(110) derby.free(110)");
	assert_true(ended_has(w.ended, 110) && ended_has(w.ended, 111) && ended_has(w.ended, 113));
	assert_false(ended_has(w.ended, 112));
	turn(0);
	assert_true(store_model_session(&w.model, 1, 10)->is_over);
}

static struct place_line *line_of(void *ctx, uint32_t line_id)
{
	(void)ctx;
	return line_id <= 2 ? w.lines[line_id - 1] : NULL;
}

static void lines_are_raised_and_never_lowered(void **state)
{
	(void)state;
	w.lines[0]->threshold = 100;
	w.lines[0]->floor = 10;
	w.model.lines[0] = (struct store_line){1, 90, 20};
	w.model.lines[1] = (struct store_line){2, 300, 200};
	w.model.lines[2] = (struct store_line){3, 7, 7};
	w.model.line_count = 3;
	assert_int_equal(claims_restore_lines(&w.model.store, 3, line_of, NULL), 0);
	assert_int_equal(w.lines[0]->threshold, 100);
	assert_int_equal(w.lines[0]->floor, 20);
	assert_int_equal(w.lines[1]->threshold, 300);
	assert_true(claims_restore_lines(&w.model.store, 2, line_of, NULL) < 0);
}

static void what_moves_all_the_time_is_saved_once_a_second(void **state)
{
	(void)state;
	turn(0);
	assert_int_equal(w.model.store.status.commits_total, 0); // nothing to say
	w.lines[0]->threshold = 5;
	turn(20);
	assert_int_equal(w.model.lines[0].threshold, 5);
	assert_int_equal(w.model.clock_ms, NOW + 20);
	w.lines[0]->threshold = 6;
	turn_with(a_claim(CLAIM_CALLED, 7), CLAIMS_SAVE_MS); // only the session
	assert_int_equal(w.model.lines[0].threshold, 5);
	w.lines[0]->floor = 3;
	turn(CLAIMS_SAVE_MS + 20);
	assert_int_equal(w.model.lines[0].threshold, 6);
	assert_int_equal(w.model.lines[0].floor, 3);
	assert_int_equal(w.model.line_count, 1);
	uint64_t commits = w.model.store.status.commits_total;
	for (uint64_t ms = 2000; ms < 60000; ms += 20)
		turn(ms);
	assert_int_equal(w.model.store.status.commits_total, commits); // idle: not a single write
}

static void an_answer_not_taken_is_undone(void **state)
{
	(void)state;
	w.take_max = 1;
	struct claim claims[] = {
		a_claim(CLAIM_DIRECT, 1), a_claim(CLAIM_DIRECT, 2), a_claim(CLAIM_RENEW, 1)};
	claims_turn(w.claims, claims, 3, NOW);
	expect_answers("0:1 granted");
	expect_diary("derby.gone(2)");
	assert_int_equal(COUNTED(undelivered), 2);
}

static void a_claim_put_off_is_answered_later(void **state)
{
	(void)state;
	struct claim claim = a_claim(CLAIM_CALLED, LATER_VISITOR);
	claim.worker = 2;
	turn_with(claim, 0);
	expect_answers("");
	turn(80);
	expect_answers("");
	turn(100);
	expect_answers("2:900 granted");
	assert_non_null(store_model_session(&w.model, 1, LATER_VISITOR));
}

static void a_reload_keeps_what_stays(void **state)
{
	(void)state;
	assert_int_equal(claims_restore(w.claims, 100, NOW), 0);
	turn_with(a_claim(CLAIM_PASSED, 0), 0);
	claims_set_state(w.claims, 1, GATE_PAUSED);
	turn(20);
	diary[0] = '\0';
	// `club` goes, `final` comes, and derby has another index.
	struct controller final = {.name = "final", .is_available = true};
	struct claims_room rooms[] = {{5, SESSION_S, GATE_OPEN, &final, w.lines[1]}, derby()};
	rooms[1].state = GATE_PAUSED;
	save_session(5, 10, NOW_S + 100, false); // it was here before
	save_session(1, 11, NOW_S + 100, false); // known to the controller already
	claims_set_rooms(w.claims, rooms, 2);
	assert_int_equal(claims_restore(w.claims, 100, NOW), 0);
	expect_diary("final.restore(10)");
	turn(40);
	expect_diary("derby.hold"); // still paused: it is not told again
	assert_int_equal(claims_passed(w.claims, 1), 1);
	struct claim claim = a_claim(CLAIM_DIRECT, 7);
	claim.line_id = 5;
	turn_with(claim, 60);
	expect_answers("0:7 granted");
}

static void a_room_cannot_be_added_while_unsaved(void **state)
{
	(void)state;
	claims_restore(w.claims, 100, NOW);
	w.model.is_failing = true;
	turn_with(a_claim(CLAIM_DIRECT, 7), 0);
	assert_true(claims_restore(w.claims, 100, NOW) < 0);
}

#define STORY(story) cmocka_unit_test_setup_teardown(story, world_new, world_end)

int main(void)
{
	const struct CMUnitTest tests[] = {
		STORY(answers_leave_when_the_store_has_them),
		STORY(each_worker_gets_its_own_in_order),
		STORY(a_room_is_known_by_its_line),
		STORY(closed_and_paused),
		STORY(who_was_given_up_is_not_granted),
		STORY(an_ended_session_keeps_its_slot_until_all_know),
		STORY(ending_has_a_limit),
		STORY(a_session_nobody_knows_is_refused_too),
		STORY(reports_reach_the_controller),
		STORY(a_store_that_takes_long_is_held),
		STORY(unsaved_it_goes_on_and_counts),
		STORY(a_batch_nearly_full_grants_nothing),
		STORY(after_an_unclean_end_nobody_new_for_one_session),
		STORY(sessions_that_were_longer_before),
		STORY(what_the_store_knows_is_taken_over),
		STORY(more_than_can_be_is_an_error),
		STORY(sessions_that_ended_stay_ended),
		STORY(lines_are_raised_and_never_lowered),
		STORY(what_moves_all_the_time_is_saved_once_a_second),
		STORY(an_answer_not_taken_is_undone),
		STORY(a_claim_put_off_is_answered_later),
		STORY(a_reload_keeps_what_stays),
		STORY(a_room_cannot_be_added_while_unsaved),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
