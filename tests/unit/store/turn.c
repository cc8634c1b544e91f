// Everything is where a test can reach it.

#include "tests/unit/store/turn.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

struct turn_world turn_world;

static const char *const verdicts[] = {
	[CLAIM_GRANTED] = "granted",
	[CLAIM_NEXT] = "next",
	[CLAIM_REFUSED] = "refused",
	[CLAIM_LAPSED] = "lapsed",
	[CLAIM_RENEWED] = "renewed",
	[CLAIM_CLOSED] = "closed",
	[CLAIM_LEFT] = "left",
	[CLAIM_HONOURED] = "honoured",
};

static uint32_t take_answers(
	void *ctx, uint32_t worker, const struct claim_answer *answers, uint32_t count)
{
	(void)ctx;
	size_t len = strlen(turn_world.answers);
	for (uint32_t i = 0; i < count && i < turn_world.take_max; i++)
		len += (size_t)snprintf(turn_world.answers + len, sizeof(turn_world.answers) - len,
			"%s%u:%lu %s", len ? ", " : "", worker, (unsigned long)answers[i].visitor,
			verdicts[answers[i].verdict]);
	return count < turn_world.take_max ? count : turn_world.take_max;
}

static uint64_t barrier_begin(void *ctx)
{
	(void)ctx;
	return ++turn_world.barrier_begun;
}

static bool barrier_passed(void *ctx, uint64_t token)
{
	(void)ctx;
	return token <= turn_world.barrier_passed;
}

// A code of `code_uses` uses; a link, which is never used up. The place is in the other room.
static uint32_t code(void *ctx, const struct claim *claim, uint64_t now_ms,
	struct claim_answer *answer, struct store_record *records)
{
	(void)ctx;
	(void)now_ms;
	if (answer && claim->kind == CLAIM_CODE && turn_world.code_uses == 0)
		return 0;
	if (answer) {
		answer->verdict = CLAIM_HONOURED;
		answer->lane_id = 2;
		answer->key = 500 + claim->visitor;
		answer->session = claim->key;
		answer->digest = claim->session;
		answer->expires = turn_world.place_bits;
	} else {
		assert_true(claim->expires == 2 && claim->place == 500 + claim->visitor);
	}
	if (claim->kind == CLAIM_MOVE)
		return 0;
	turn_world.code_uses += answer ? -1u : 1u;
	records[0] = (struct store_record){.kind = STORE_CODE,
		.code = {2, {claim->key, claim->session}, turn_world.code_uses}};
	return 1;
}

static uint64_t session_id(void *ctx)
{
	(void)ctx;
	return turn_world.session++;
}

static const struct claims_plan plan = {
	.rooms_max = 3, .workers_max = 3, .ended_max = TURN_ENDED_MAX};

struct claims_room turn_derby(void)
{
	return (struct claims_room){1, CONTROLLER_STUB_SESSION_S, GATE_OPEN, &turn_world.derby,
		turn_world.lines[0], false};
}

static struct claims_room club(void)
{
	return (struct claims_room){2, 2 * CONTROLLER_STUB_SESSION_S, GATE_OPEN, &turn_world.club,
		turn_world.lines[1], false};
}

void turn_start(void)
{
	static const struct claims_seams seams = {
		NULL, take_answers, barrier_begin, barrier_passed, code, session_id};
	struct claims_room rooms[] = {turn_derby(), club()};
	turn_world.derby = (struct controller){.name = "derby", .is_available = true};
	turn_world.club = (struct controller){.name = "club", .is_available = true};
	struct claims_sets sets = {turn_world.ended, turn_world.left};
	turn_world.claims = claims_create(&plan, &turn_world.model.store, &sets, &seams);
	assert_non_null(turn_world.claims);
	claims_set_rooms(turn_world.claims, rooms, 2);
}

int turn_begin(void **state)
{
	(void)state;
	memset(&turn_world, 0, sizeof(turn_world));
	controller_stub_diary[0] = '\0';
	turn_world.session = 1001;
	turn_world.take_max = UINT32_MAX;
	store_model_init(&turn_world.model, claims_records(&plan, 100));
	for (int i = 0; i < 2; i++)
		turn_world.lines[i] = calloc(1, sizeof(struct place_line));
	turn_world.ended =
		ended_init(aligned_alloc(64, ended_bytes(TURN_ENDED_MAX)), TURN_ENDED_MAX);
	turn_world.left = ended_init(aligned_alloc(64, ended_bytes(TURN_LEFT_MAX)), TURN_LEFT_MAX);
	turn_start();
	return 0;
}

int turn_end(void **state)
{
	(void)state;
	claims_destroy(turn_world.claims);
	claims_destroy(NULL);
	free(turn_world.ended);
	free(turn_world.left);
	for (int i = 0; i < 2; i++)
		free(turn_world.lines[i]);
	store_model_fini(&turn_world.model);
	return 0;
}

struct claim turn_claim(enum claim_kind kind, uint64_t visitor)
{
	return (struct claim){.kind = kind,
		.visitor = visitor,
		.key = visitor,
		.line_id = 1,
		.poll_after = 4,
		.sent_ms = TURN_NOW};
}

void turn_with(struct claim claim, uint64_t after_ms)
{
	claim.sent_ms = TURN_NOW + after_ms;
	claims_turn(turn_world.claims, &claim, 1, TURN_NOW + after_ms);
}

void turn_idle(uint64_t after_ms)
{
	claims_turn(turn_world.claims, NULL, 0, TURN_NOW + after_ms);
}

void turn_answers(const char *expected)
{
	assert_string_equal(turn_world.answers, expected);
	turn_world.answers[0] = '\0';
}

void turn_diary(const char *expected)
{
	assert_string_equal(controller_stub_diary, expected);
	controller_stub_diary[0] = '\0';
}

uint64_t turn_counted(size_t offset)
{
	return *(const uint64_t *)((const char *)claims_counters(turn_world.claims) + offset);
}
