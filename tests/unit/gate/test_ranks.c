// Goal: every appliance says the same place, as soon as it says one at all, and for ever.
// Goal: that does not hang on the order, the batches or the moment in which it heard of tickets.

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>

#include <cmocka.h>

#include <pthread.h>
#include <sched.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "dataplane/gate/draw.h"
#include "dataplane/gate/place.h"
#include "dataplane/gate/ranks.h"

#define SLOT_0 170000000000ull
#define OWN 1

static uint64_t seed;
#define CHECK(condition) \
	do { \
		if (!(condition)) \
			fail_msg("seed %llu: %s", (unsigned long long)seed, #condition); \
	} while (0)

// SplitMix64 (Steele, Lea, Flood: Fast splittable pseudorandom number generators, 2014).
static uint64_t random_below(uint64_t *random, uint64_t limit)
{
	uint64_t z = *random += 0x9e3779b97f4a7c15;
	z = (z ^ z >> 30) * 0xbf58476d1ce4e5b9;
	z = (z ^ z >> 27) * 0x94d049bb133111eb;
	return (z ^ z >> 31) % limit;
}

static struct ranks *make(uint64_t entries_max)
{
	const size_t bytes = (ranks_bytes(entries_max) + 63) / 64 * 64;
	void *memory = aligned_alloc(64, bytes);
	assert_non_null(memory);
	memset(memory, 0, bytes);
	return ranks_init(memory, entries_max);
}

static struct ranks *make_known(uint64_t entries_max)
{
	struct ranks *r = make(entries_max);
	assert_true(ranks_begin(r, OWN, 0));
	return r;
}

static bool tell(struct ranks *r, uint8_t member, uint64_t slot, uint64_t tickets)
{
	const uint64_t held = (SLOT_0 + slot) << 24 | tickets;
	return ranks_told(r, member, &held, 1);
}

static uint64_t key_of(uint64_t slot, uint64_t seq, uint64_t appliance)
{
	return place_key(SLOT_0 + slot, seq, appliance);
}

static uint64_t rank_of(const struct ranks *r, uint64_t key)
{
	uint64_t rank;
	ranks_rank(r, key, &rank);
	return rank;
}

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
		{8, 0, 0, 6, false},
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

// --- the twin: what was told is a list; appliances hear of it each at their own pace

#define SLOTS 220u
#define MEMBERS 4u
#define TWIN_KEYS 4096u
#define NEWS_MAX 1024u
#define ENTRIES 1024u // of each twin's ring

struct news {
	uint8_t member;
	uint64_t slot, tickets, total;
	uint64_t final; // what is final once it is told; 0: nothing new
};

struct book {
	uint64_t tickets[SLOTS][MEMBERS]; // told
	uint64_t last[MEMBERS]; // slot told of, by member
	uint64_t closed[MEMBERS];
	struct news news[NEWS_MAX];
	uint64_t news_count, total, final, floor;
};

struct hearer {
	struct ranks *ranks;
	uint64_t cursor; // news heard
	bool is_reading;
	uint64_t said[SLOTS][MEMBERS]; // place of the first ticket, once it was said; +1
};

static uint64_t naive_rank(const struct book *b, uint64_t key)
{
	uint64_t rank = 0;
	for (uint64_t s = 0; s < SLOTS; s++) {
		for (uint64_t m = 0; m < MEMBERS; m++) {
			for (uint64_t seq = 0; seq < b->tickets[s][m]; seq++)
				rank += key_of(s, seq, m) < key;
		}
	}
	return rank;
}

// Some member closes up to some slot, and says so; or another stops being waited for.
static void book_step(struct book *b, uint64_t *random)
{
	const uint8_t m = (uint8_t)random_below(random, MEMBERS);
	uint64_t least = UINT64_MAX;
	for (uint64_t left = random_below(random, 4); left > 0; left--) {
		const uint64_t slot = b->closed[m]++;
		if (slot >= SLOTS || random_below(random, 3) == 0 || slot < b->final)
			continue; // past the end; nobody came; late
		const uint64_t tickets = 1 + random_below(random, 4);
		b->tickets[slot][m] = tickets;
		b->total += tickets;
		b->news[b->news_count++] = (struct news){m, slot, tickets, b->total, 0};
		assert_true(b->news_count < NEWS_MAX);
	}
	const uint64_t dead = random_below(random, 10); // MEMBERS and more: nobody
	for (uint64_t i = 0; i < MEMBERS; i++) {
		if (i != dead && b->closed[i] < least)
			least = b->closed[i];
	}
	if (least <= b->final || b->news_count == 0)
		return;
	b->final = least;
	b->news[b->news_count - 1].final = SLOT_0 + least;
}

static void hear_one(struct hearer *h, const struct book *b)
{
	const struct news *n = &b->news[h->cursor++];
	tell(h->ranks, n->member, n->slot, n->tickets);
	ranks_sum(h->ranks, h->cursor, n->total);
	if (n->final > 0)
		ranks_settle(h->ranks, n->final);
}

// Begin anew, or read again what the book still has, from behind, some of it twice.
static void hear_all(struct hearer *h, const struct book *b, uint64_t *random, bool is_new)
{
	if (is_new) {
		free(h->ranks);
		h->ranks = make(ENTRIES);
	}
	ranks_read(h->ranks);
	h->cursor = b->news_count;
	ranks_sum(h->ranks, h->cursor, b->total);
	for (uint64_t s = SLOTS; s-- > b->floor;) {
		for (uint8_t m = 0; m < MEMBERS; m++) {
			for (uint64_t times = 1 + random_below(random, 2); times > 0; times--) {
				if (b->tickets[s][m] > 0)
					tell(h->ranks, m, s, b->tickets[s][m]);
			}
		}
	}
	ranks_trim(h->ranks, key_of(b->floor, 0, 0));
	CHECK(ranks_begin(h->ranks, 0, 0));
	ranks_settle(h->ranks, SLOT_0 + b->final);
}

static void hearer_check(struct hearer *h, const struct book *b, uint64_t *random)
{
	const uint64_t s = b->floor + random_below(random, SLOTS - b->floor);
	const uint64_t m = random_below(random, MEMBERS), seq = random_below(random, 6);
	const uint64_t key = key_of(s, seq, m);
	uint64_t rank;
	const bool is_exact = ranks_rank(h->ranks, key, &rank);
	const bool is_final = key <= place_key(ranks_final(h->ranks), 0, 0);
	CHECK(ranks_final(h->ranks) <= SLOT_0 + b->final);
	CHECK((rank != PLACE_UNKNOWN) == is_final);
	if (!is_final)
		return;
	CHECK(rank == naive_rank(b, key));
	CHECK(is_exact == (seq < b->tickets[s][m]) || SLOT_0 + s == ranks_final(h->ranks));
	if (seq == 0 && h->said[s][m] > 0)
		CHECK(h->said[s][m] == rank + 1);
	if (seq == 0)
		h->said[s][m] = rank + 1;
	CHECK(!ranks_state(h->ranks).differs);
	const uint64_t want = 1 + random_below(random, b->total + 2);
	const uint64_t at = ranks_key_at(h->ranks, NULL, want);
	CHECK(at <= place_key(ranks_final(h->ranks), 0, 0));
	if (want > naive_rank(b, key_of(b->floor + 1, 0, 0))) { // else it may be forgotten
		CHECK(naive_rank(b, at - 1) < want);
		if (at < place_key(ranks_final(h->ranks), 0, 0))
			CHECK(naive_rank(b, at) == want);
	}
}

static void twins_run(uint64_t steps)
{
	static struct book book;
	static struct hearer hearers[3];
	uint64_t random = seed;
	memset(&book, 0, sizeof(book));
	memset(hearers, 0, sizeof(hearers));
	for (int i = 0; i < 3; i++) {
		hearers[i].ranks = make(ENTRIES);
		CHECK(ranks_begin(hearers[i].ranks, 0, 0));
	}
	for (uint64_t step = 0; step < steps; step++) {
		struct hearer *h = &hearers[random_below(&random, 3)];
		const uint64_t what = random_below(&random, 200);
		if (what < 80)
			book_step(&book, &random);
		else if (what == 80 && book.final > book.floor)
			book.floor += random_below(&random, book.final - book.floor);
		else if (what == 81)
			ranks_trim(h->ranks, key_of(book.floor, 0, 0));
		else if (what < 84)
			hear_all(h, &book, &random, what == 82);
		else if (h->cursor < book.news_count)
			hear_one(h, &book);
		hearer_check(h, &book, &random);
	}
	for (int i = 0; i < 3; i++)
		free(hearers[i].ranks);
}

static void agrees_with_the_twin(void **state)
{
	(void)state;
	for (seed = 1; seed <= 60; seed++)
		twins_run(900);
}

// --- threads: control beside readers, in a ring that goes round many times

#define RING_SLOTS 30000u
#define READERS 2

struct ring {
	struct ranks *ranks;
	uint64_t before[RING_SLOTS + 1]; // tickets in slots before
	_Atomic uint64_t floor;
	_Atomic bool is_over;
	_Atomic uint64_t wrong, read;
};

static uint64_t ring_tickets(uint64_t slot, uint64_t member)
{
	return (slot * 7 + member * 3) % 4;
}

// Naively: the tickets of all members in turn.
static uint64_t ring_rank(const struct ring *ring, uint64_t slot, uint64_t seq, uint64_t member)
{
	uint64_t rank = ring->before[slot];
	for (uint64_t m = 0; m < MEMBERS; m++) {
		for (uint64_t i = 0; i < ring_tickets(slot, m); i++)
			rank += i < seq || (i == seq && m < member);
	}
	return rank;
}

static void *ring_read(void *of)
{
	struct ring *ring = of;
	uint64_t random = (uint64_t)(uintptr_t)&random;
	while (!ring->is_over) {
		const uint64_t end = ranks_final(ring->ranks);
		const uint64_t back = random_below(&random, 40);
		const uint64_t slot = end > SLOT_0 + back ? end - SLOT_0 - back : 0;
		const uint64_t seq = random_below(&random, 5), m = random_below(&random, MEMBERS);
		uint64_t rank;
		ranks_rank(ring->ranks, key_of(slot, seq, m), &rank);
		if (rank == PLACE_UNKNOWN || slot >= RING_SLOTS || slot < ring->floor)
			continue; // it may have been forgotten before it was read
		ring->wrong += rank != ring_rank(ring, slot, seq, m);
		ring->read++;
	}
	return NULL;
}

static void readers_beside_control(void **state)
{
	(void)state;
	static struct ring ring;
	pthread_t threads[READERS];
	uint64_t random = 7;
	ring.ranks = make_known(256);
	for (uint64_t s = 0; s < RING_SLOTS; s++) {
		ring.before[s + 1] = ring.before[s];
		for (uint64_t m = 0; m < MEMBERS; m++)
			ring.before[s + 1] += ring_tickets(s, m);
	}
	for (int i = 0; i < READERS; i++)
		assert_int_equal(pthread_create(&threads[i], NULL, ring_read, &ring), 0);
	for (uint64_t s = 0; s < RING_SLOTS;) {
		if (s % 64 == 0)
			sched_yield();
		const uint64_t end = s + 1 + random_below(&random, 8);
		for (; s < end && s < RING_SLOTS; s++) {
			for (uint8_t m = 0; m < MEMBERS; m++) {
				if (ring_tickets(s, m) > 0)
					tell(ring.ranks, m, s, ring_tickets(s, m));
			}
		}
		ring.floor = s > 30 ? s - 30 : 0;
		ranks_trim(ring.ranks, key_of(ring.floor, 0, 0));
		assert_int_equal(ranks_settle(ring.ranks, SLOT_0 + s), SLOT_0 + s);
	}
	while (ring.read == 0)
		sched_yield();
	ring.is_over = true;
	for (int i = 0; i < READERS; i++)
		pthread_join(threads[i], NULL);
	assert_int_equal(ring.wrong, 0);
	assert_true(ring.read > 0);
	free(ring.ranks);
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
		cmocka_unit_test(a_gathering_has_its_slots),
		cmocka_unit_test(agrees_with_the_twin),
		cmocka_unit_test(readers_beside_control),
	};
	return cmocka_run_group_tests_name("ranks", tests, NULL, NULL);
}
