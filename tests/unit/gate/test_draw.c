// Draws: hashes against OpenSSL's HMAC, keys and ranks against a naive twin, sorting against
// qsort(), and whether half a million are placed evenly and nobody twice.

#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include <openssl/hmac.h>

#include "dataplane/gate/draw.h"
#include "dataplane/gate/mac_state.h"
#include "dataplane/gate/place.h"

#define CROWD 500000u
#define BINS 1000u
#define CHI_SQUARE_MAX 1143.9 // 999 degrees of freedom: above it once in 1,000 draws

static uint64_t seed = 1;

static uint64_t next(void)
{
	seed += 0x9e3779b97f4a7c15u;
	uint64_t z = seed;
	z = (z ^ z >> 30) * 0xbf58476d1ce4e5b9u;
	z = (z ^ z >> 27) * 0x94d049bb133111ebu;
	return z ^ z >> 31;
}

static int compare(const void *a, const void *b)
{
	const uint64_t x = *(const uint64_t *)a, y = *(const uint64_t *)b;
	return (x > y) - (x < y);
}

static uint64_t openssl_hash(const uint8_t *secret, size_t bytes, uint64_t visitor)
{
	uint8_t message[8], tag[32];
	for (int i = 0; i < 8; i++)
		message[i] = (uint8_t)(visitor >> (56 - 8 * i));
	assert_non_null(HMAC(EVP_sha256(), secret, (int)bytes, message, 8, tag, NULL));
	uint64_t hash = 0;
	for (int i = 0; i < 8; i++)
		hash = hash << 8 | tag[i];
	return hash;
}

static void hashes_are_openssls(void **state)
{
	(void)state;
	for (int i = 0; i < 300; i++) {
		uint8_t secret[DRAW_SEED_BYTES + DRAW_SALT_BYTES_MAX];
		const size_t bytes = DRAW_SEED_BYTES + next() % (DRAW_SALT_BYTES_MAX + 1);
		for (size_t j = 0; j < bytes; j++)
			secret[j] = (uint8_t)next();
		struct mac_key key;
		mac_key_init(&key, secret, bytes);
		const uint64_t visitor = i == 0 ? 0 : i == 1 ? UINT64_MAX : next();
		assert_int_equal(
			mac_state_word(&key, visitor), openssl_hash(secret, bytes, visitor));
	}
}

static void sorts_as_qsort(void **state)
{
	(void)state;
	static uint64_t hashes[3000], expected[3000], scratch[3000];
	for (uint64_t count = 0; count <= 3000; count = count * 2 + 1) {
		for (uint64_t i = 0; i < count; i++)
			expected[i] = hashes[i] = next() >> (i % 3 ? 0 : next() % 64);
		qsort(expected, count, sizeof(expected[0]), compare);
		draw_sort(hashes, scratch, count);
		assert_memory_equal(hashes, expected, count * sizeof(hashes[0]));
	}
}

// A list of random hashes; `bits` of them differ, so that few make equal ones.
static struct draw_list list_of(uint64_t *hashes, uint64_t count, unsigned bits, uint64_t slots)
{
	for (uint64_t i = 0; i < count; i++)
		hashes[i] = next() << (64 - bits);
	qsort(hashes, count, sizeof(hashes[0]), compare);
	struct draw_list list = {.number = 1,
		.first_slot = 1000,
		.end_slot = 1000 + slots,
		.count = count,
		.hashes = hashes};
	draw_list_init(&list);
	return list;
}

static void check_key(const struct draw_list *list, uint64_t key)
{
	uint64_t expected = 0;
	bool is_expected = false, is_listed;
	for (uint64_t i = 0; i < list->count; i++) {
		expected += draw_key(list, list->hashes[i]) < key;
		is_expected |= draw_key(list, list->hashes[i]) == key;
	}
	assert_int_equal(draw_rank(list, key, &is_listed), expected);
	assert_int_equal(is_listed, is_expected);
}

static void ranks_are_the_naive_twins(void **state)
{
	(void)state;
	static uint64_t hashes[2000];
	for (int round = 0; round < 400; round++) {
		const uint64_t count = next() % (round % 4 ? 50 : 2000), slots = 1 + next() % 5000;
		const struct draw_list list = list_of(hashes, count, round % 3 ? 64 : 6, slots);
		const uint64_t first = place_key(1000, 0, 0), keys = slots << PLACE_SLOT_SHIFT;
		for (int i = 0; i < 20; i++)
			check_key(&list, first + next() % keys);
		for (int i = 0; i < 20 && count > 0; i++)
			check_key(&list, draw_key(&list, hashes[next() % count]) + next() % 3 - 1);
		check_key(&list, first);
		check_key(&list, first + keys - 1);
		check_key(&list, 0);
		check_key(&list, UINT64_MAX);
	}
}

static void threshold_keys(void **state)
{
	(void)state;
	static uint64_t hashes[500];
	const struct draw_list list = list_of(hashes, 500, 7, 50); // of 128 keys: many are equal
	assert_int_equal(draw_key_at(&list, 0), place_key(1000, 0, 0));
	for (uint64_t rank = 1; rank <= 500; rank++) {
		bool is_listed;
		const uint64_t key = draw_key_at(&list, rank);
		assert_true(draw_rank(&list, key, &is_listed) >= rank);
		assert_true(draw_rank(&list, key - 1, &is_listed) < rank);
	}
	assert_true(draw_key_at(&list, 500) <= place_key(1050, 0, 0));
}

// Of those who share a key each has a place of their own, and together they have all.
static void shared_keys_have_places(void **state)
{
	(void)state;
	static uint64_t hashes[3000];
	static bool is_taken[3000];
	for (uint64_t i = 0; i < 3000; i++)
		hashes[i] = next() & ~0xfff0000000000000u; // within few keys of one slot
	qsort(hashes, 3000, sizeof(hashes[0]), compare);
	struct draw_list list = {.first_slot = 9, .end_slot = 10, .count = 3000, .hashes = hashes};
	draw_list_init(&list);
	uint32_t shared = 0;
	for (uint64_t i = 0; i < 3000; i++) {
		bool is_listed;
		const uint64_t rank = draw_rank(&list, draw_key(&list, hashes[i]), &is_listed);
		const uint64_t place = draw_place(&list, rank, hashes[i]);
		shared += draw_is_shared(&list, rank);
		assert_false(is_taken[place]);
		is_taken[place] = true;
		assert_int_equal(hashes[place], hashes[i]);
		assert_true(draw_is_shared(&list, rank) || rank == place);
	}
	assert_true(shared > 100);
}

static void keys_stay_within_their_slots(void **state)
{
	(void)state;
	static const uint64_t slots[] = {1, 7, 6000, 1u << 20};
	for (size_t i = 0; i < sizeof(slots) / sizeof(slots[0]); i++) {
		uint64_t hashes[2] = {0, UINT64_MAX};
		const struct draw_list list = {
			.first_slot = 5, .end_slot = 5 + slots[i], .count = 2, .hashes = hashes};
		assert_int_equal(draw_key(&list, 0), place_key(5, 0, 0));
		assert_true(draw_key(&list, UINT64_MAX) < place_key(5 + slots[i], 0, 0));
		assert_true(
			draw_key(&list, UINT64_MAX) > place_key(5 + slots[i], 0, 0) - (2u << 24));
	}
}

static void finds_by_number_and_key(void **state)
{
	(void)state;
	static struct draw_list lists[5];
	struct draw_set *set = calloc(1, sizeof(*set) + 5 * sizeof(set->lists[0]));
	assert_non_null(set);
	set->count = 5;
	for (uint32_t i = 0; i < 5; i++) {
		lists[i] = (struct draw_list){.number = 10 * (i + 1),
			.first_slot = 100 * (i + 1),
			.end_slot = 100 * (i + 1) + (i == 1 ? 100 : 50)};
		set->lists[i] = &lists[i];
	}
	for (uint64_t slot = 0; slot < 700; slot++) {
		const struct draw_list *expected = NULL;
		for (int i = 0; i < 5; i++)
			if (slot >= lists[i].first_slot && slot < lists[i].end_slot)
				expected = &lists[i];
		assert_ptr_equal(draw_find_key(set, place_key(slot, 3, 1)), expected);
	}
	for (uint64_t number = 0; number <= 60; number++)
		assert_ptr_equal(draw_find(set, number), number && number <= 50 && number % 10 == 0
								 ? &lists[number / 10 - 1]
								 : NULL);
	set->count = 0;
	assert_null(draw_find(set, 10));
	assert_null(draw_find_key(set, place_key(100, 0, 0)));
	free(set);
}

static void text_is_hex_lines(void **state)
{
	(void)state;
	const uint64_t hashes[] = {0, 0x0123456789abcdef, UINT64_MAX};
	char text[2 * DRAW_LINE_BYTES];
	draw_text(hashes, 1, 2, text);
	assert_memory_equal(text, "0123456789abcdef\nffffffffffffffff\n", sizeof(text));
}

// The places of half a million: how many of those who came in each thousandth of the crowd got a
// place in each of ten tenths, and how many in each thousandth of the keys.
static void half_a_million_are_placed_evenly(void **state)
{
	(void)state;
	static uint64_t hashes[CROWD], sorted[CROWD], scratch[CROWD];
	static uint32_t bins[BINS], tenths[BINS / 10][10];
	struct mac_key key;
	uint8_t secret[DRAW_SEED_BYTES];
	for (unsigned i = 0; i < sizeof(secret); i++)
		secret[i] = (uint8_t)next();
	mac_key_init(&key, secret, sizeof(secret));
	for (uint64_t i = 0; i < CROWD; i++)
		sorted[i] = hashes[i] = mac_state_word(&key, next());
	draw_sort(sorted, scratch, CROWD);
	struct draw_list list = {
		.first_slot = 5, .end_slot = 6005, .count = CROWD, .hashes = sorted};
	draw_list_init(&list);
	for (uint64_t i = 0; i < CROWD; i++) {
		bool is_listed;
		const uint64_t place = draw_rank(&list, draw_key(&list, hashes[i]), &is_listed);
		assert_true(is_listed);
		assert_true(i == 0 || sorted[i] > sorted[i - 1]); // nobody is placed twice
		bins[(uint64_t)((unsigned __int128)hashes[i] * BINS >> 64)]++;
		tenths[i * (BINS / 10) / CROWD][place * 10 / CROWD]++;
	}
	double chi_square = 0, mixed = 0;
	for (unsigned i = 0; i < BINS; i++) {
		const double off = bins[i] - (double)CROWD / BINS;
		chi_square += off * off / ((double)CROWD / BINS);
		const double mixed_off = tenths[i / 10][i % 10] - (double)CROWD / BINS;
		mixed += mixed_off * mixed_off / ((double)CROWD / BINS);
	}
	print_message("chi-square of keys %.0f, of places by arrival %.0f; seed %lu\n", chi_square,
		mixed, seed);
	assert_true(chi_square < CHI_SQUARE_MAX);
	assert_true(mixed < CHI_SQUARE_MAX);
}

int main(int argc, char **argv)
{
	seed = argc > 1 ? strtoull(argv[1], NULL, 0) : 1;
	print_message("seed %lu\n", seed);
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(hashes_are_openssls),
		cmocka_unit_test(sorts_as_qsort),
		cmocka_unit_test(ranks_are_the_naive_twins),
		cmocka_unit_test(threshold_keys),
		cmocka_unit_test(shared_keys_have_places),
		cmocka_unit_test(keys_stay_within_their_slots),
		cmocka_unit_test(finds_by_number_and_key),
		cmocka_unit_test(text_is_hex_lines),
		cmocka_unit_test(half_a_million_are_placed_evenly),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
