// The batch: what is merged into what, its bounds, and a naive twin under random operations.

#include "controlplane/store/batch.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include <cmocka.h>

static uint64_t random_state;

static uint64_t random_next(void)
{
	random_state ^= random_state >> 12;
	random_state ^= random_state << 25;
	random_state ^= random_state >> 27;
	return random_state * 0x2545f4914f6cdd1d;
}

static struct store_record of_session(enum store_kind kind, uint64_t visitor, uint32_t expires)
{
	return (struct store_record){.kind = kind,
		.session = {.line_id = 1,
			.visitor = visitor,
			.session = visitor + 100,
			.key = visitor + 200,
			.expires = expires}};
}

static bool put(struct batch *b, enum store_kind kind, uint64_t visitor, uint32_t expires)
{
	struct store_record record = of_session(kind, visitor, expires);
	return batch_put(b, &record);
}

// The only record of the batch.
static struct store_record only(const struct batch *b)
{
	uint32_t at = 0;
	const struct store_record *record = batch_next(b, &at);
	assert_non_null(record);
	assert_null(batch_next(b, &at));
	return *record;
}

// Two records of one visitor, and what is left of them.
static void sessions_merge(void **state)
{
	(void)state;
	static const struct {
		const char *name;
		uint8_t first, second, left; // left 0: nothing
		uint32_t expires;
		bool is_over;
	} cases[] = {
		{"a new session renewed", STORE_GRANTED, STORE_RENEWED, STORE_GRANTED, 2, false},
		{"a new session over", STORE_GRANTED, STORE_OVER, STORE_GRANTED, 1, true},
		{"a new session forgotten", STORE_GRANTED, STORE_FORGOTTEN, 0, 0, false},
		{"renewed twice", STORE_RENEWED, STORE_RENEWED, STORE_RENEWED, 2, false},
		{"renewed and over", STORE_RENEWED, STORE_OVER, STORE_OVER, 2, false},
		{"over and forgotten", STORE_OVER, STORE_FORGOTTEN, STORE_FORGOTTEN, 2, false},
		{"forgotten and new", STORE_FORGOTTEN, STORE_GRANTED, STORE_GRANTED, 2, false},
		{"granted anew", STORE_GRANTED, STORE_GRANTED, STORE_GRANTED, 2, false},
	};
	for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
		print_message("%s\n", cases[i].name);
		struct batch *b = batch_create(BATCH_RECORDS_MIN);
		assert_true(put(b, cases[i].first, 7, 1));
		assert_true(put(b, cases[i].second, 7, 2));
		assert_int_equal(batch_count(b), cases[i].left != 0);
		if (cases[i].left) {
			struct store_record left = only(b);
			assert_int_equal(left.kind, cases[i].left);
			assert_int_equal(left.session.expires, cases[i].expires);
			assert_int_equal(left.session.is_over, cases[i].is_over);
		}
		batch_destroy(b);
	}
}

// The store knows the visitor from before: it must be told to forget.
static void forgotten_granted_and_forgotten_again(void **state)
{
	(void)state;
	struct batch *b = batch_create(BATCH_RECORDS_MIN);
	put(b, STORE_FORGOTTEN, 7, 0);
	put(b, STORE_GRANTED, 7, 1);
	put(b, STORE_FORGOTTEN, 7, 0);
	assert_int_equal(only(b).kind, STORE_FORGOTTEN);
	batch_destroy(b);
}

static void visitors_are_told_apart_by_line(void **state)
{
	(void)state;
	struct batch *b = batch_create(BATCH_RECORDS_MIN);
	struct store_record record = of_session(STORE_GRANTED, 7, 1);
	batch_put(b, &record);
	record.session.line_id = 2;
	batch_put(b, &record);
	assert_int_equal(batch_count(b), 2);
	batch_destroy(b);
}

static void the_last_of_each_thing_holds(void **state)
{
	(void)state;
	struct batch *b = batch_create(BATCH_RECORDS_MIN);
	for (uint32_t i = 1; i <= 3; i++) {
		batch_put(b, &(struct store_record){.kind = STORE_CLOCK, .clock = {i}});
		batch_put(b, &(struct store_record){.kind = STORE_LINE, .line = {9, i, i}});
		batch_put(b, &(struct store_record){.kind = STORE_ENDED, .ended = {9, i, 77}});
		batch_put(b, &(struct store_record){
				     .kind = STORE_ROOM, .room = {9, i, 0, "we are sorry"}});
		batch_put(b, &(struct store_record){
				     .kind = i < 3 ? STORE_SECRET : STORE_SECRET_FORGOTTEN,
				     .secret = {.id = 200, .created_s = i}});
		batch_put(b, &(struct store_record){
				     .kind = i < 3 ? STORE_TICKET : STORE_TICKET_FORGOTTEN,
				     .ticket = {.epoch = 200}});
	}
	assert_int_equal(batch_count(b), 6);
	uint32_t at = 0;
	const struct store_record *r;
	while ((r = batch_next(b, &at))) {
		bool is_last =
			r->kind == STORE_CLOCK   ? r->clock.ms == 3
			: r->kind == STORE_LINE  ? r->line.floor == 3
			: r->kind == STORE_ENDED ? r->ended.expires == 3
			: r->kind == STORE_ROOM
				? r->room.state == 3 && !strcmp(r->room.message, "we are sorry")
				: r->kind == STORE_SECRET_FORGOTTEN ||
					  r->kind == STORE_TICKET_FORGOTTEN;
		assert_true(is_last);
	}
	batch_destroy(b);
}

static void texts_are_copied_and_bounded(void **state)
{
	(void)state;
	struct batch *b = batch_create(BATCH_RECORDS_MIN);
	char text[STORE_TEXT_MAX + 2];
	memset(text, 'x', sizeof(text));
	text[STORE_TEXT_MAX + 1] = '\0';
	struct store_record record = {.kind = STORE_AUDIT, .audit = {1, text}};
	assert_false(batch_put(b, &record)); // one beyond
	text[STORE_TEXT_MAX] = '\0';
	assert_true(batch_put(b, &record)); // at the limit
	text[0] = 'y';
	assert_int_equal(only(b).audit.text[0], 'x');
	record.audit.text = NULL;
	assert_true(batch_put(b, &record));
	batch_destroy(b);
}

static void history_is_kept_apart_and_bounded(void **state)
{
	(void)state;
	struct batch *b = batch_create(4 * STORE_HISTORY_MAX);
	struct store_record record = {.kind = STORE_AUDIT, .audit = {1, "room derby pause"}};
	for (uint32_t i = 0; i < STORE_HISTORY_MAX; i++)
		assert_true(batch_put(b, &record));
	assert_int_equal(batch_count(b), STORE_HISTORY_MAX);
	assert_false(batch_put(b, &record));
	batch_clear(b);
	assert_true(batch_put(b, &record));
	batch_destroy(b);
}

static void the_last_quarter_is_for_grants(void **state)
{
	(void)state;
	struct batch *b = batch_create(100);
	for (uint64_t visitor = 1; visitor <= 75; visitor++)
		assert_true(put(b, STORE_OVER, visitor, 1));
	assert_false(put(b, STORE_OVER, 76, 1));
	assert_true(put(b, STORE_RENEWED, 75, 1)); // about somebody who is in it: no new place
	for (uint64_t visitor = 76; visitor <= 100; visitor++)
		assert_true(put(b, STORE_GRANTED, visitor, 1));
	assert_int_equal(batch_free_count(b), 0);
	assert_false(put(b, STORE_GRANTED, 101, 1));
	assert_true(put(b, STORE_FORGOTTEN, 100, 0)); // makes room
	assert_true(put(b, STORE_GRANTED, 101, 1));
	batch_destroy(b);
}

static void until_is_the_last_pass(void **state)
{
	(void)state;
	struct batch *b = batch_create(BATCH_RECORDS_MIN);
	assert_int_equal(batch_until(b), 0);
	put(b, STORE_GRANTED, 1, 500);
	put(b, STORE_GRANTED, 2, 400);
	put(b, STORE_OVER, 3, 900); // no pass
	assert_int_equal(batch_until(b), 500);
	put(b, STORE_RENEWED, 2, 600);
	put(b, STORE_FORGOTTEN, 2, 0); // its pass is out there all the same
	assert_int_equal(batch_until(b), 600);
	batch_clear(b);
	assert_int_equal(batch_until(b), 0);
	batch_destroy(b);
}

// The twin: for each visitor, what the store has and what the batch would make of it.
#define VISITORS 40
struct twin {
	bool is_known, is_over;
	uint32_t expires;
};

static void apply(struct twin *twin, const struct store_record *r)
{
	struct twin *t = &twin[r->session.visitor];
	switch (r->kind) {
	case STORE_GRANTED:
		*t = (struct twin){
			true, r->session.is_over, r->session.is_over ? 0 : r->session.expires};
		break;
	case STORE_RENEWED:
		t->expires = r->session.expires;
		break;
	case STORE_OVER:
		t->is_over = true;
		t->expires = 0; // when it would have ended matters to nobody
		break;
	case STORE_FORGOTTEN:
		*t = (struct twin){0};
	}
}

// What a visitor's record can become from what it is.
static struct store_record random_record(const struct twin *twin)
{
	uint64_t visitor = random_next() % VISITORS;
	uint32_t expires = (uint32_t)(random_next() % 1000 + 1);
	if (!twin[visitor].is_known)
		return of_session(STORE_GRANTED, visitor, expires);
	if (twin[visitor].is_over)
		return of_session(STORE_FORGOTTEN, visitor, 0);
	return of_session(random_next() % 2 ? STORE_RENEWED : STORE_OVER, visitor, expires);
}

static void a_naive_twin_agrees(void **state)
{
	(void)state;
	const char *given = getenv("SEED");
	random_state = given ? strtoull(given, NULL, 0) : (uint64_t)time(NULL) << 20 | 1;
	print_message("SEED=%#lx\n", (unsigned long)random_state);
	static struct twin direct[VISITORS], saved[VISITORS];
	struct batch *b = batch_create(4 * BATCH_RECORDS_MIN);
	for (int round = 0; round < 20000; round++) {
		struct store_record record = random_record(direct);
		apply(direct, &record);
		assert_true(batch_put(b, &record));
		assert_true(batch_count(b) <= VISITORS);
		if (random_next() % 50)
			continue;
		uint32_t at = 0;
		const struct store_record *r;
		while ((r = batch_next(b, &at)))
			apply(saved, r);
		batch_clear(b);
		assert_memory_equal(saved, direct, sizeof(saved));
	}
	batch_destroy(b);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(sessions_merge),
		cmocka_unit_test(forgotten_granted_and_forgotten_again),
		cmocka_unit_test(visitors_are_told_apart_by_line),
		cmocka_unit_test(the_last_of_each_thing_holds),
		cmocka_unit_test(texts_are_copied_and_bounded),
		cmocka_unit_test(history_is_kept_apart_and_bounded),
		cmocka_unit_test(the_last_quarter_is_for_grants),
		cmocka_unit_test(until_is_the_last_pass),
		cmocka_unit_test(a_naive_twin_agrees),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
