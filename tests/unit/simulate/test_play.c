// Play: small plans against what arithmetic expects of them, and the promises of the product.

#include "tests/unit/simulate/playing.h"

#define ROOM(settings, arrivals) \
	"rooms:\n  - name: derby\n" settings "    arrivals: [" arrivals "]\n"

static const struct play_room *room_at(uint32_t index)
{
	return &play.rooms[index];
}

static uint32_t admitted_by(uint32_t second)
{
	uint32_t count = 0;
	for (uint32_t i = 0; i <= second && i < play.second_count; i++)
		count += room_at(0)->seconds[i].admitted;
	return count;
}

// --- against arithmetic

// 3,000 at once, ten a second: position / rate.
static void a_rate(void **state)
{
	(void)state;
	playing_start(
		ROOM("    rate: 10/s\n    mode: always\n", "{people: 3000, from: 10s, over: 1s}"),
		1);
	for (uint32_t second = 15; second < 300; second++)
		assert_in_range(admitted_by(second), 10 * (second - 10) - 30,
			10 * (second - 10) + 12); // a full bucket first
	assert_float_equal(result.rooms[0].wait.p50, 150, 3);
	assert_float_equal(result.rooms[0].wait.p90, 270, 3);
	assert_float_equal(result.rooms[0].wait.p99, 297, 3);
	assert_float_equal(result.rooms[0].rate, 10, 0.2);
	// Each one by itself, in order but for who polls a little later. Of those called at first,
	// 5 s ahead and a bucket, whoever polls first is the first.
	for (uint32_t rank = 0; rank < room_at(0)->rank_count; rank++) {
		const struct play_person *person = &play.people[room_at(0)->by_rank[rank]];
		assert_float_equal(
			person->admitted_ms / 1000.0, 11.0 + rank / 10.0, rank < 60 ? 6 : 3);
	}
	assert_int_equal(result.rooms[0].admitted, 3000);
	assert_false(result.is_cut);
	playing_end();
}

// 1,000 at once, 50 inside for 20 s: a fiftieth's turn of 20 s.
static void a_capacity(void **state)
{
	(void)state;
	playing_start(ROOM("    capacity: 50\n    session: 20s\n    mode: always\n",
			      "{people: 1000, over: 1s}"),
		2);
	assert_int_equal(result.rooms[0].inside_max, 50);
	for (uint32_t rank = 0; rank < 1000; rank++) {
		const struct play_person *person = &play.people[room_at(0)->by_rank[rank]];
		const double turn = rank / 50;
		// Each turn begins up to two seconds late: whole seconds, and who is told of it.
		assert_in_range(person->admitted_ms, 20000 * turn, 22500 * turn + 5000);
	}
	assert_float_equal(result.rooms[0].wait.p50, 9.5 * 20.5, 20);
	assert_float_equal(result.rooms[0].wait.p99, 19 * 20.5, 30);
	playing_end();
}

// Half do not show: the slots do not stay empty for that.
static void no_shows(void **state)
{
	(void)state;
	playing_start(ROOM("    rate: 20/s\n    mode: always\n    no_show: 50\n",
			      "{people: 8000, over: 1s}"),
		3);
	const uint32_t shows = 8000 - result.rooms[0].no_shows;
	assert_float_equal(result.rooms[0].no_shows, 4000, 200);
	assert_int_equal(result.rooms[0].admitted, shows);
	assert_float_equal(result.rooms[0].last_ms / 1000.0, shows / 20.0, 12);
	playing_end();
}

static void nobody_waits_while_there_is_room(void **state)
{
	(void)state;
	playing_start(ROOM("    rate: 100/s\n", "{people: 3000, over: 5m}"), 4);
	assert_int_equal(result.rooms[0].direct, 3000);
	assert_float_equal(result.rooms[0].wait.max, 0, 0.001);
	playing_end();
}

// Stays of a minute: sliding passes last as long, and the shop ends them.
static void a_sliding_pass(void **state)
{
	(void)state;
	playing_start(ROOM("    capacity: 40\n    session: 20s\n    sliding: true\n    stay: 1m\n"
			   "    view_every: 5s\n    mode: always\n",
			      "{people: 400, over: 1s}"),
		5);
	assert_int_equal(result.rooms[0].inside_max, 40);
	assert_float_equal(result.rooms[0].last_ms / 1000.0, 9 * 61.5, 20);
	playing_end();
}

// The shop ends half of the visits after 20 s, the other passes last for 60 s.
static void the_shop_ends_visits(void **state)
{
	(void)state;
	playing_start(ROOM("    capacity: 100\n    session: 1m\n    stay: 20s\n    ends: 50\n"
			   "    mode: always\n",
			      "{people: 3000, over: 1s}"),
		6);
	assert_float_equal(result.rooms[0].rate, 100 / 41.5, 0.2);
	playing_end();
}

static void a_batch(void **state)
{
	(void)state;
	playing_start(
		ROOM("    batch: 100 every 30s\n    mode: always\n", "{people: 500, over: 1s}"), 7);
	for (uint32_t period = 0; period < 5; period++)
		assert_int_equal(admitted_by(period * 30 + 29), 100 * (period + 1));
	playing_end();
}

// --- doors

// Those who gathered are placed at random, before whoever came after the opening.
static void a_draw(void **state)
{
	(void)state;
	playing_start(ROOM("    rate: 50/s\n    opens: 10m\n    prequeue: 5m\n",
			      "{people: 1000, over: 4m}, {people: 4000, from: 5m, over: 4m},"
			      " {people: 1000, from: 11m, over: 10s}"),
		8);
	const struct play_room *room = room_at(0);
	double early = 0, late = 0;
	uint32_t last_ms = 0, first_ms = PLAY_NEVER;
	for (uint32_t i = 0; i < play.people_count; i++) {
		const struct play_person *person = &play.people[i];
		assert_true(person->admitted_ms >= 600000);
		if (person->came_ms < 660000 && person->admitted_ms > last_ms)
			last_ms = person->admitted_ms;
		if (person->came_ms >= 660000 && person->admitted_ms < first_ms)
			first_ms = person->admitted_ms;
		early += i < 2500 ? person->admitted_ms / 2500.0 : 0;
		late += i >= 2500 && i < 5000 ? person->admitted_ms / 2500.0 : 0;
	}
	assert_float_equal(early, late, 4000); // 100 s of admissions: five deviations
	assert_true(first_ms + 4000 > last_ms);
	assert_int_equal(room->drawn.count, 5000);
	playing_end();
}

static void closed_doors_without_a_draw(void **state)
{
	(void)state;
	playing_start(ROOM("    rate: 50/s\n    opens: 1m\n", "{people: 600, over: 50s}"), 9);
	for (uint32_t i = 0; i < play.people_count; i++)
		assert_true(play.people[i].admitted_ms >= 60000);
	assert_int_equal(result.rooms[0].admitted, 600);
	playing_end();
}

// --- promises

static void limits_hold(const struct play_room *room)
{
	const struct plan_room *settings = room->plan;
	const double rate = (double)settings->rate.count / (double)settings->rate.period_ms;
	uint32_t sum = 0;
	for (uint32_t i = 0; i < play.second_count; i++) {
		assert_in_range(room->seconds[i].inside, 0, settings->capacity);
		sum += room->seconds[i].admitted;
		if (i >= 60)
			sum -= room->seconds[i - 60].admitted;
		assert_true(sum <= 60000 * rate + (double)settings->burst + 1);
	}
	assert_int_equal(room->lapsed, 0); // who polls as told does not lapse
	assert_int_equal(room->view.sessions_full_total, 0);
}

static void many_seeds(void **state)
{
	(void)state;
	for (uint64_t seed = 1; seed <= 8; seed++) {
		print_message("seed %lu\n", seed);
		playing_start(ROOM("    capacity: 200\n    rate: 300/min\n    session: 1m\n"
				   "    no_show: 20\n    stay: 30s\n    stay_spread: 20s\n",
				      "{people: 2000, over: 3m, shape: rush},"
				      " {people: 500, from: 10m, over: 1m}"),
			seed);
		limits_hold(room_at(0));
		assert_int_equal(result.rooms[0].unserved, 0);
		assert_int_equal(result.rooms[0].admitted + result.rooms[0].no_shows, 2500);
		playing_end();
	}
}

static void the_same_seed_says_the_same(void **state)
{
	(void)state;
	static const char text[] = ROOM("    rate: 10/s\n    no_show: 30\n    opens: 1m\n"
					"    prequeue: 1m\n",
		"{people: 2000, over: 90s, shape: bell}");
	double waits[3];
	for (uint32_t i = 0; i < 3; i++) {
		playing_start(text, i < 2 ? 42 : 43);
		waits[i] = result.rooms[0].wait.p90 + result.needs[RESULT_POLLS].peak;
		playing_end();
	}
	assert_true(waits[0] == waits[1]);
	assert_true(waits[0] != waits[2]);
}

// Sessions were guessed too low (nobody is ever done, so all are known): it begins anew.
static void a_guess_that_was_too_low(void **state)
{
	(void)state;
	playing_start(ROOM("    rate: 2000/s\n    burst: 20000\n    session: 1s\n    claim: 30m\n",
			      "{people: 60000, over: 20s}"),
		10);
	assert_int_equal(result.rooms[0].admitted, 60000);
	assert_int_equal(room_at(0)->view.sessions_full_total, 0);
	playing_end();
}

// A burst of one: turns are as short as it needs.
static void a_small_burst(void **state)
{
	(void)state;
	playing_start(ROOM("    rate: 100/s\n    burst: 1\n    mode: always\n",
			      "{people: 2000, over: 1s}"),
		11);
	assert_int_equal(play.turn_ms, 5);
	assert_float_equal(result.rooms[0].rate, 100, 6); // who is late leaves a moment unused
	playing_end();
}

static void the_end_cuts_it(void **state)
{
	(void)state;
	playing_start(
		"lasts: 1m\n" ROOM("    rate: 1/s\n    mode: always\n", "{people: 1000, over: 1s}"),
		12);
	assert_true(result.is_cut);
	assert_int_equal(result.lasted_s, 60);
	assert_int_equal(result.rooms[0].admitted + result.rooms[0].unserved, 1000);
	playing_end();
}

// --- several rooms

static void rooms_share_a_pool(void **state)
{
	(void)state;
	playing_start("pool: {rate: 8/s, capacity: 400}\n"
		      "rooms:\n"
		      "  - {name: a, weight: 3, mode: always, session: 10s,\n"
		      "     arrivals: [{people: 1500, over: 1s}]}\n"
		      "  - {name: b, weight: 1, mode: always, session: 10s,\n"
		      "     arrivals: [{people: 500, over: 1s}]}\n",
		13);
	uint32_t of[2] = {0};
	for (uint32_t second = 0; second < 150; second++)
		for (uint32_t i = 0; i < 2; i++)
			of[i] += room_at(i)->seconds[second].admitted;
	assert_float_equal((double)of[0] / of[1], 3, 0.15);
	assert_float_equal(of[0] + of[1], 8 * 150, 30);
	playing_end();
}

// Two draws in one pool; who is first through leaves all of it to the other.
static void doors_of_a_pool(void **state)
{
	(void)state;
	playing_start("pool: {rate: 20/s}\n"
		      "rooms:\n"
		      "  - {name: a, weight: 3, opens: 1m, prequeue: 1m,\n"
		      "     arrivals: [{people: 500, over: 90s}]}\n"
		      "  - {name: b, opens: 2m, prequeue: 1m, no_show: 20,\n"
		      "     arrivals: [{people: 2500, over: 3m, shape: bell}]}\n",
		15);
	assert_int_equal(result.rooms[0].admitted, 500);
	assert_int_equal(result.rooms[1].admitted + result.rooms[1].no_shows, 2500);
	assert_float_equal(result.rooms[1].last_ms / 1000.0, 120 + 2000 / 20.0, 30);
	playing_end();
}

static void the_first_class_goes_first(void **state)
{
	(void)state;
	playing_start("pool: {rate: 10/s}\n"
		      "rooms:\n"
		      "  - {name: members, mode: always, arrivals: [{people: 300, over: 1s}]}\n"
		      "  - {name: others, priority: 2, mode: always,\n"
		      "     arrivals: [{people: 300, over: 1s}]}\n",
		14);
	assert_true(result.rooms[0].wait.max < 35);
	assert_true(result.rooms[1].wait.p50 > 40);
	playing_end();
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(a_rate),
		cmocka_unit_test(a_capacity),
		cmocka_unit_test(no_shows),
		cmocka_unit_test(nobody_waits_while_there_is_room),
		cmocka_unit_test(a_sliding_pass),
		cmocka_unit_test(the_shop_ends_visits),
		cmocka_unit_test(a_batch),
		cmocka_unit_test(a_draw),
		cmocka_unit_test(closed_doors_without_a_draw),
		cmocka_unit_test(many_seeds),
		cmocka_unit_test(the_same_seed_says_the_same),
		cmocka_unit_test(a_guess_that_was_too_low),
		cmocka_unit_test(a_small_burst),
		cmocka_unit_test(the_end_cuts_it),
		cmocka_unit_test(rooms_share_a_pool),
		cmocka_unit_test(doors_of_a_pool),
		cmocka_unit_test(the_first_class_goes_first),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
