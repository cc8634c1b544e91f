// Goal: whatever the order, the batches or the moment in which appliances hear of tickets, all say
// the place that counting them naively gives; and readers beside control read nothing else.

#include "tests/unit/gate/ranks_scene.h"

#include <pthread.h>
#include <sched.h>
#include <stdatomic.h>

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
		cmocka_unit_test(agrees_with_the_twin),
		cmocka_unit_test(readers_beside_control),
	};
	return cmocka_run_group_tests_name("ranks twin", tests, NULL, NULL);
}
