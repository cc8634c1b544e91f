// The line bit, with workers that mint beside a control that publishes.
//
// *Goal:* while a ticket waits the bit is set, or is about to be, however mint and publication
// cross; and it is cleared when nobody waits.

#include <pthread.h>
#include <sched.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>

#include <cmocka.h>

#include "tests/unit/controller/room.h"

#define MINTERS 2
#define MINTS_EACH 4000u
#define SPINS_MAX 100000000u // about to be: seconds, on a busy machine

struct minter {
	struct room *room;
	_Atomic uint64_t *now_ms;
	_Atomic uint64_t handed; // a ticket to be given back; 0: none
	_Atomic bool is_done;
	uint32_t unseen; // tickets that waited without the bit
};

static bool bit_gets_set(const struct place_line *line)
{
	for (uint32_t i = 0; i < SPINS_MAX; i++) {
		if (atomic_load(&line->open) & PLACE_OPEN_LINE)
			return true;
		if (i % 1000 == 999)
			sched_yield();
	}
	return false;
}

static void *mint(void *of)
{
	struct minter *m = of;
	for (uint32_t i = 0; i < MINTS_EACH; i++) {
		const uint64_t key =
			place_mint(m->room->line, atomic_load(m->now_ms) / PLACE_SLOT_MS, 0);
		m->unseen += !bit_gets_set(m->room->line);
		atomic_store(&m->handed, key);
		while (atomic_load(&m->handed))
			sched_yield();
	}
	atomic_store(&m->is_done, true);
	return NULL;
}

static void mint_and_publication_cross(void **state)
{
	(void)state;
	struct controller_bounds bounds = room_bounds;
	bounds.left_max = MINTERS * MINTS_EACH;
	struct room r = room_open_with(
		(struct controller_limits){
			.capacity = 1, .session_s = 60, .claim_s = 3600, .direct = true},
		bounds);
	_Atomic uint64_t now_ms = r.now_ms;
	struct minter minters[MINTERS];
	pthread_t threads[MINTERS];
	for (int i = 0; i < MINTERS; i++) {
		minters[i] = (struct minter){.room = &r, .now_ms = &now_ms};
		assert_int_equal(pthread_create(&threads[i], NULL, mint, &minters[i]), 0);
	}
	uint32_t cleared = 0;
	for (bool is_done = false; !is_done;) {
		is_done = true;
		for (int i = 0; i < MINTERS; i++) {
			const uint64_t key = atomic_load(&minters[i].handed);
			is_done &= atomic_load(&minters[i].is_done);
			if (key == 0)
				continue;
			assert_true(controller_leave(r.controller, key, key, r.now_ms));
			atomic_store(&minters[i].handed, 0);
		}
		r.now_ms += 10;
		atomic_store(&now_ms, r.now_ms);
		controller_publish(r.controller, false, r.now_ms);
		cleared += !(atomic_load(&r.line->open) & PLACE_OPEN_LINE);
		controller_tick(r.controller, r.now_ms);
	}
	for (int i = 0; i < MINTERS; i++) {
		pthread_join(threads[i], NULL);
		assert_int_equal(minters[i].unseen, 0);
	}
	assert_true(cleared > 0);
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
