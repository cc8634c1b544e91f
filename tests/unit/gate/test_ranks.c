// Goal: every appliance says the same place, as soon as it says one at all, and for ever: by
// tables.

#include "tests/unit/gate/ranks_scene.h"

#include "dataplane/gate/draw.h"

static void places_of_three_appliances(void **state)
{
	(void)state;
	struct ranks *r = make_known(128);
	tell(r, 2, 5, 3); // as they come: by slot, sequence, appliance
	tell(r, 0, 5, 1);
	tell(r, 1, 7, 2);
	assert_int_equal(ranks_settle(r, SLOT_0 + 8), SLOT_0 + 8);
	static const struct {
		uint64_t slot, seq, appliance, rank;
		bool is_exact;
	} cases[] = {
		{0, 0, 0, 0, false},
		{4, 9, 63, 0, false},
		{5, 0, 0, 0, true},
		{5, 0, 1, 1, false},
		{5, 0, 2, 1, true},
		{5, 1, 0, 2, false},
		{5, 1, 2, 2, true},
		{5, 2, 2, 3, true},
		{5, 3, 2, 4, false}, // behind the last known of its slot
		{5, 100, 2, 4, false},
		{6, 0, 0, 4, false},
		{7, 0, 1, 4, true},
		{7, 1, 1, 5, true},
		{7, 2, 1, 6, false},
		{8, 0, 0, 6, true},
		{8, 0, 1, PLACE_UNKNOWN, false},
		{8, 1, 0, PLACE_UNKNOWN, false},
		{9, 0, 0, PLACE_UNKNOWN, false},
	};
	for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
		uint64_t rank;
		assert_int_equal(cases[i].is_exact,
			ranks_rank(
				r, key_of(cases[i].slot, cases[i].seq, cases[i].appliance), &rank));
		assert_int_equal(rank, cases[i].rank);
	}
	assert_int_equal(ranks_total(r), 6);
	assert_int_equal(ranks_before(r, SLOT_0 + 7), 4);
	free(r);
}

static void nothing_is_known_before_all_is_read(void **state)
{
	(void)state;
	struct ranks *r = make(128);
	tell(r, 0, 5, 1);
	assert_int_equal(ranks_settle(r, SLOT_0 + 9), 0);
	assert_int_equal(rank_of(r, key_of(5, 0, 0)), PLACE_UNKNOWN);
	ranks_sum(r, 7, 11); // ten are behind floor
	assert_true(ranks_begin(r, OWN, 0));
	assert_int_equal(rank_of(r, key_of(5, 0, 0)), PLACE_UNKNOWN);
	ranks_settle(r, SLOT_0 + 9);
	assert_int_equal(rank_of(r, key_of(5, 0, 0)), 10);
	assert_int_equal(ranks_total(r), 11);
	assert_false(ranks_state(r).differs);
	free(r);
}

static void what_is_final_stays(void **state)
{
	(void)state;
	struct ranks *r = make_known(128);
	tell(r, 0, 5, 2);
	tell(r, 0, 5, 2); // again
	ranks_settle(r, SLOT_0 + 6);
	tell(r, 1, 5, 7); // too late
	tell(r, 1, 4, 7);
	ranks_settle(r, SLOT_0 + 3); // never back
	assert_int_equal(ranks_final(r), SLOT_0 + 6);
	assert_int_equal(rank_of(r, key_of(5, 1, 0)), 1);
	assert_int_equal(ranks_total(r), 2);
	ranks_read(r); // while all is read again, it is said
	tell(r, 0, 5, 2);
	tell(r, 1, 6, 1);
	ranks_settle(r, SLOT_0 + 9);
	assert_int_equal(ranks_final(r), SLOT_0 + 6);
	assert_int_equal(rank_of(r, key_of(5, 1, 0)), 1);
	assert_true(ranks_begin(r, OWN, 0));
	ranks_settle(r, SLOT_0 + 9);
	assert_int_equal(rank_of(r, key_of(6, 0, 1)), 2);
	free(r);
}

static void what_cannot_be_is_passed_over(void **state)
{
	(void)state;
	struct ranks *r = make_known(128);
	assert_true(tell(r, 64, 5, 1)); // no such appliance
	assert_true(tell(r, 0, 5, 0));
	assert_true(tell(r, 0, 5, PLACE_SEQ_MAX + 1));
	assert_true(tell(r, 63, 5, PLACE_SEQ_MAX));
	assert_true(ranks_told(r, 0, (const uint64_t[]){7, UINT64_MAX}, 2));
	assert_int_equal(ranks_state(r).wrong, 5);
	assert_int_equal(ranks_total(r), PLACE_SEQ_MAX);
	free(r);
}

static void a_full_ring_stands_still(void **state)
{
	(void)state;
	struct ranks *r = make_known(128);
	for (uint64_t slot = 1; slot <= 128; slot++) {
		assert_true(tell(r, 0, slot, 1));
		ranks_settle(r, SLOT_0 + slot + 1);
	}
	assert_int_equal(ranks_free(r), 0);
	tell(r, 0, 129, 1);
	tell(r, 1, 129, 1);
	assert_int_equal(ranks_settle(r, SLOT_0 + 130), SLOT_0 + 129);
	assert_int_equal(rank_of(r, key_of(129, 0, 0)), 128);
	assert_int_equal(rank_of(r, key_of(129, 0, 1)), PLACE_UNKNOWN);
	ranks_trim(r, key_of(2, 0, 0)); // room for one of the two
	assert_int_equal(ranks_settle(r, SLOT_0 + 130), SLOT_0 + 129);
	assert_int_equal(ranks_key_at(r, NULL, 1000), key_of(129, 0, 0));
	ranks_trim(r, key_of(3, 0, 0));
	assert_int_equal(ranks_settle(r, SLOT_0 + 130), SLOT_0 + 130);
	assert_int_equal(rank_of(r, key_of(129, 0, 1)), 129);
	assert_int_equal(rank_of(r, key_of(1, 0, 0)), 2); // forgotten: as the first that is not
	free(r);
}

static void too_many_waiting_are_read_again(void **state)
{
	(void)state;
	struct ranks *r = make_known(128);
	for (uint64_t slot = 1; slot <= 128; slot++)
		assert_true(tell(r, 0, slot, 1));
	assert_true(tell(r, 0, 128, 1) == false);
	assert_true(ranks_state(r).is_short);
	assert_int_equal(ranks_settle(r, SLOT_0 + 200), SLOT_0 + 128);
	tell(r, 0, 129, 1);
	assert_int_equal(ranks_settle(r, SLOT_0 + 200), SLOT_0 + 128);
	ranks_trim(r, key_of(127, 0, 0));
	ranks_read(r);
	tell(r, 0, 128, 1);
	tell(r, 0, 129, 1);
	assert_true(ranks_begin(r, OWN, 0));
	assert_int_equal(ranks_settle(r, SLOT_0 + 200), SLOT_0 + 200);
	assert_int_equal(rank_of(r, key_of(129, 0, 0)), 128);
	free(r);

	r = make(128); // and who never knew does not begin with a part of it
	for (uint64_t slot = 129; slot > 0; slot--)
		assert_true(tell(r, 0, slot, 1) == (slot > 1));
	ranks_sum(r, 1, 1000);
	assert_false(ranks_begin(r, OWN, 0));
	assert_int_equal(ranks_settle(r, SLOT_0 + 200), 0);
	free(r);
}

static void told_twice_leaves_room(void **state)
{
	(void)state;
	struct ranks *r = make(128);
	for (int again = 0; again < 5; again++) {
		for (uint64_t slot = 100; slot > 0; slot--)
			assert_true(tell(r, 3, slot, 2));
	}
	ranks_sum(r, 1, 200);
	assert_true(ranks_begin(r, OWN, 0));
	ranks_settle(r, SLOT_0 + 101);
	assert_int_equal(rank_of(r, key_of(100, 1, 3)), 199);
	assert_false(ranks_state(r).differs);
	free(r);
}

// --- a line with its own part, and gatherings

static struct place_line *line_make(struct ranks *ranks)
{
	struct place_line *line = calloc(1, place_line_bytes(1024));
	assert_non_null(line);
	place_line_init(line, 7, 1024);
	place_share(line, ranks);
	assert_true(place_begin(line, SLOT_0));
	return line;
}

static void a_shared_line_goes_by_ranks(void **state)
{
	(void)state;
	struct ranks *r = make_known(128);
	struct place_line *line = line_make(r);
	const uint64_t key = place_mint(line, SLOT_0 + 5, OWN);
	uint64_t rank = 0, held[4];
	assert_false(place_rank(line, key, &rank));
	assert_int_equal(rank, PLACE_UNKNOWN);
	assert_int_equal(place_total(line), 1);
	place_mint(line, SLOT_0 + 8, OWN);
	place_close(line, SLOT_0 + 8);
	assert_int_equal(place_told(line, 0, held, 4), 1);
	assert_int_equal(held[0], (SLOT_0 + 5) << 24 | 1);
	assert_int_equal(place_own(line, SLOT_0 + 6), 1);
	assert_int_equal(place_told(line, SLOT_0 + 6, held, 4), 0);
	tell(r, 0, 5, 4);
	assert_int_equal(place_total(line), 6);
	tell(r, OWN, 5, 1);
	assert_int_equal(place_total(line), 6);
	ranks_settle(r, SLOT_0 + 6);
	assert_int_equal(place_total(line), 6);
	assert_true(place_rank(line, key, &rank));
	assert_int_equal(rank, 1);
	assert_int_equal(place_key_at(line, 6), place_key(SLOT_0 + 6, 0, 0));
	assert_int_equal(place_key_at(line, 2), key + 1);
	assert_int_equal(place_before(line, SLOT_0 + 6), 5);
	place_share(line, NULL);
	assert_true(place_rank(line, key, &rank));
	assert_int_equal(rank, 0);
	free(line);
	free(r);
}

static void nobody_mints_below_the_news_of_a_threshold(void **state)
{
	(void)state;
	struct ranks *r = make_known(128);
	struct place_line *line = line_make(r);
	place_mint(line, SLOT_0 + 5, OWN);
	atomic_store(&line->threshold, key_of(9, 2, 0));
	const uint64_t key = place_mint(line, SLOT_0 + 6, OWN); // this clock is behind
	assert_int_equal(key, key_of(10, 0, OWN));
	place_close(line, SLOT_0 + 12); // and `final` ahead of it
	assert_int_equal(place_mint(line, SLOT_0 + 7, OWN), key_of(12, 0, OWN));
	free(line);
	free(r);
}

static void own_tickets_are_told_in_pieces(void **state)
{
	(void)state;
	struct place_line *line = line_make(make_known(128));
	for (uint64_t slot = 1; slot <= 10; slot++)
		place_mint(line, SLOT_0 + slot * 2, OWN);
	place_close(line, SLOT_0 + 30);
	uint64_t held[3], from = 0, count = 0;
	for (uint32_t got; (got = place_told(line, from, held, 3)) > 0;) {
		for (uint32_t i = 0; i < got; i++)
			assert_int_equal(held[i], (SLOT_0 + ++count * 2) << 24 | 1);
		from = (held[got - 1] >> 24) + 1;
		assert_int_equal(place_own(line, from), count);
	}
	assert_int_equal(count, 10);
	free(line->ranks);
	free(line);
}

// Of all appliances alike: all have the same ring.
static void slots_get_longer_as_ranks_fill(void **state)
{
	(void)state;
	struct ranks *r = make_known(128);
	struct place_line *line = line_make(r);
	for (uint64_t slot = 1; slot <= 64; slot++)
		tell(r, 2, slot, 1);
	place_close(line, SLOT_0 + 2);
	assert_int_equal(line->stride, 1);
	tell(r, 2, 65, 1); // final or not
	place_close(line, SLOT_0 + 4);
	assert_int_equal(line->stride, 2);
	ranks_settle(r, SLOT_0 + 66);
	for (uint64_t slot = 66; slot <= 97; slot++)
		tell(r, 3, slot, 1);
	place_close(line, SLOT_0 + 8);
	assert_int_equal(line->stride, 4);
	ranks_settle(r, SLOT_0 + 98);
	place_trim(line, key_of(90, 0, 0)); // ranks forget with the line
	assert_int_equal(ranks_free(r), 120);
	place_close(line, SLOT_0 + 12);
	assert_int_equal(line->stride, 1);
	free(line);
	free(r);
}

static void a_gathering_has_its_slots(void **state)
{
	(void)state;
	static const uint64_t hashes[] = {1ull << 60, 1ull << 61, 1ull << 62};
	struct draw_list list = {.number = 1,
		.first_slot = SLOT_0 + 6,
		.end_slot = SLOT_0 + 9,
		.count = 3,
		.hashes = hashes};
	struct draw_set *set = calloc(1, sizeof(*set) + sizeof(set->lists[0]));
	struct ranks *r = make_known(128);
	struct place_line *line = line_make(r);
	tell(r, 0, 5, 2);
	ranks_gather(r, SLOT_0 + 6);
	tell(r, 0, 10, 1);
	assert_false(ranks_drawn(r, SLOT_0 + 9, 3)); // not all before it is final
	assert_int_equal(ranks_settle(r, SLOT_0 + 20), SLOT_0 + 6);
	assert_int_equal(place_key_at(line, 9), key_of(6, 0, 0));
	list.base = place_before(line, SLOT_0 + 6);
	draw_list_init(&list);
	*set = (struct draw_set){.count = 1};
	set->lists[0] = &list;
	atomic_store(&line->drawn, set);
	assert_true(ranks_drawn(r, SLOT_0 + 9, 3));
	tell(r, 0, 7, 1); // its slots are nobody's
	assert_int_equal(ranks_settle(r, SLOT_0 + 20), SLOT_0 + 20);
	uint64_t rank;
	assert_true(place_rank(line, key_of(10, 0, 0), &rank));
	assert_int_equal(rank, 5);
	for (uint64_t i = 0; i < 3; i++) {
		const uint64_t key = draw_key(&list, hashes[i]);
		assert_true(place_rank(line, key, &rank));
		assert_int_equal(rank, 2 + i);
		assert_int_equal(place_key_at(line, 3 + i), key + 1);
	}
	assert_int_equal(ranks_total(r), 6);
	free(set);
	free(line);
	free(r);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(places_of_three_appliances),
		cmocka_unit_test(nothing_is_known_before_all_is_read),
		cmocka_unit_test(what_is_final_stays),
		cmocka_unit_test(what_cannot_be_is_passed_over),
		cmocka_unit_test(a_full_ring_stands_still),
		cmocka_unit_test(too_many_waiting_are_read_again),
		cmocka_unit_test(told_twice_leaves_room),
		cmocka_unit_test(a_shared_line_goes_by_ranks),
		cmocka_unit_test(nobody_mints_below_the_news_of_a_threshold),
		cmocka_unit_test(own_tickets_are_told_in_pieces),
		cmocka_unit_test(slots_get_longer_as_ranks_fill),
		cmocka_unit_test(a_gathering_has_its_slots),
	};
	return cmocka_run_group_tests_name("ranks", tests, NULL, NULL);
}
