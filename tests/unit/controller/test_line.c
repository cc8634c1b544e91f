// The line bit, when a mint and a publication cross.
//
// *Goal:* after both, the bit is set: control clears it for those it has counted, and either it
// sees the new ticket or the mint sees the cleared bit.

#include <pthread.h>
#include <sched.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>

#include <cmocka.h>

#include "tests/unit/controller/random.h"
#include "tests/unit/controller/room.h"

#define ROUNDS 20000u

struct meeting {
	struct room *room;
	_Atomic uint32_t round; // that both may begin
	_Atomic uint32_t minted; // rounds done by the worker
	_Atomic uint64_t key; // of the last one
};

static void wait_for(_Atomic uint32_t *what, uint32_t value)
{
	for (uint32_t i = 0; atomic_load(what) < value; i++) {
		if (i % 1000 == 999)
			sched_yield();
	}
}

// A moment of a few nanoseconds, or a few hundred.
static void hesitate(uint64_t *random)
{
	const uint64_t turns = random_below(random, 2) ? 0 : random_below(random, 300);
	for (volatile uint64_t i = 0; i < turns; i++)
		;
}

static void *mint(void *of)
{
	struct meeting *m = of;
	uint64_t random = 1;
	for (uint32_t round = 1; round <= ROUNDS; round++) {
		wait_for(&m->round, round);
		hesitate(&random);
		atomic_store(&m->key, place_mint(m->room->line, ROOM_START_MS / PLACE_SLOT_MS, 0));
		atomic_store(&m->minted, round);
	}
	return NULL;
}

static void mint_and_publication_cross(void **state)
{
	(void)state;
	struct controller_bounds bounds = room_bounds;
	bounds.left_max = ROUNDS;
	struct room r = room_open_with(
		(struct controller_limits){
			.capacity = 1, .session_s = 60, .claim_s = 3600, .direct = true},
		bounds);
	struct meeting meeting = {.room = &r};
	uint64_t random = 2;
	pthread_t thread;
	assert_int_equal(pthread_create(&thread, NULL, mint, &meeting), 0);
	for (uint32_t round = 1; round <= ROUNDS; round++) {
		// Nobody waits; in every other round the bit does not say so yet.
		if (round % 2)
			controller_publish(r.controller, false, r.now_ms);
		assert_int_equal(r.line->open & PLACE_OPEN_LINE, round % 2 ? 0 : PLACE_OPEN_LINE);
		atomic_store(&meeting.round, round);
		hesitate(&random);
		controller_publish(r.controller, false, r.now_ms);
		wait_for(&meeting.minted, round);
		assert_true(atomic_load(&r.line->open) & PLACE_OPEN_LINE);
		assert_true(controller_leave(r.controller, meeting.key, meeting.key, r.now_ms));
	}
	pthread_join(thread, NULL);
	controller_publish(r.controller, false, r.now_ms);
	assert_int_equal(r.line->open, 1);
	room_close(&r);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(mint_and_publication_cross),
	};
	return cmocka_run_group_tests_name("line", tests, NULL, NULL);
}
