// Goal: over several appliances everybody has one place, and it stays, whichever of them is asked.
//
// Appliances with clocks up to 250 ms off mint at random, close, tell the ledger (model.h, through
// its wire), and hear from it: by what was published, by replies, or by reading all anew. One is
// stopped now and then for longer than the ledger waits, or dies and comes back with nothing but
// its file of places. Replies get lost. Checked:
//   * every appliance says the same place for a ticket, at every moment at which it says one;
//   * places of those who were told in time are unique, without gaps, and in the order of keys;
//   * keys are in the order of arrival, but for 50 ms and what two clocks differ by;
//   * with one appliance stopped the others go on after LEDGER_LIVE_MS.
// Arguments: seeds, first seed.

#include <assert.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "controlplane/cluster/ledger_wire.h"
#include "dataplane/gate/place.h"
#include "dataplane/gate/ranks.h"
#include "tests/sim/cluster/model.h"

#define APPLIANCES 4u
#define LINES 2u
#define START_MS ((uint64_t)1764500000000)
#define RUN_MS 25000u
#define SYNC_MS 200u
#define ENTRIES 4096u
#define TICKETS_MAX 20000u
#define PEND_MAX 64u // pages asked for at a time
#define BATCH_MAX 128u
#define CLOCK_MS 250u
#define NEAR_MS 50u
#define KNOWN_MS (LEDGER_LIVE_MS + 1500u) // a place is known by then, somebody stopped or not

static const uint32_t line_ids[LINES] = {0x1a, 0x2b};

struct ticket {
	uint64_t key, at_ms, place; // place: as was said first, PLACE_UNKNOWN: not yet
	uint8_t line, minted_by;
	bool is_told, is_exact; // told: in news
};

struct line {
	struct place_line *place; // outlives the process
	struct ranks *ranks;
	uint64_t told; // slots below are told
	uint64_t telling; // and will be with the batch under way
	bool is_reading;
};

struct appliance {
	struct line lines[LINES];
	int64_t ahead_ms; // of its clock
	uint64_t until_ms; // stopped, or dead, until then
	bool is_dead;
	uint8_t number; // remembered
	uint64_t cursor, final, next_ms, read_newest;
	struct ledger_batch batch;
	struct ledger_entry entries[BATCH_MAX];
	bool is_under_way; // the batch: it has no reply yet
	uint8_t known[LEDGER_MEMBERS_MAX]; // members to read from
	uint32_t known_count;
	uint32_t page_line, page_member; // what is read next
	uint64_t page_from;
	bool has_pages; // to read
	uint32_t asked; // entry of the page under way, + 1
};

struct sim {
	struct model model;
	struct appliance appliances[APPLIANCES];
	struct ticket *tickets;
	uint32_t ticket_count;
	uint64_t now_ms, random, seed;
	uint64_t floors[LINES], hung_ms; // hung: when somebody was stopped last, or died
	uint64_t inexact, exact, stops, deaths, rereads, unknown; // over all seeds
};

static void hold(const struct sim *s, bool is_kept, const char *law)
{
	if (is_kept)
		return;
	fprintf(stderr, "seed %" PRIu64 ", ms %" PRIu64 ": broken: %s\n", s->seed,
		s->now_ms - START_MS, law);
	abort();
}

// SplitMix64 (Steele, Lea, Flood: Fast splittable pseudorandom number generators, 2014).
static uint64_t random_below(struct sim *s, uint64_t limit)
{
	uint64_t z = s->random += 0x9e3779b97f4a7c15;
	z = (z ^ z >> 30) * 0xbf58476d1ce4e5b9;
	z = (z ^ z >> 27) * 0x94d049bb133111eb;
	return (z ^ z >> 31) % limit;
}

static bool is_running(const struct sim *s, const struct appliance *a)
{
	return s->now_ms >= a->until_ms;
}

static uint64_t clock_slot(const struct sim *s, const struct appliance *a)
{
	return (s->now_ms + (uint64_t)a->ahead_ms) / PLACE_SLOT_MS;
}

// --- a process begins

static void start(struct sim *s, struct appliance *a)
{
	const uint8_t index = (uint8_t)(a - s->appliances), number = a->number;
	const size_t bytes = (ranks_bytes(ENTRIES) + 63) / 64 * 64;
	for (uint32_t i = 0; i < LINES; i++) {
		struct line *line = &a->lines[i];
		free(line->ranks);
		void *memory = aligned_alloc(64, bytes);
		assert(memory);
		memset(memory, 0, bytes);
		line->ranks = ranks_init(memory, ENTRIES);
		place_share(line->place, line->ranks);
		line->told = line->telling = 0;
		if (!place_begin(line->place, clock_slot(s, a)))
			abort();
	}
	a->batch = (struct ledger_batch){
		.incarnation = random_below(s, UINT64_MAX - 1) + 1, .appliance = number};
	snprintf(a->batch.name, sizeof(a->batch.name), "a%u", index);
	memset(a->batch.run, 'r', LEDGER_RUN_BYTES);
	a->cursor = a->final = 0;
	a->next_ms = s->now_ms + random_below(s, SYNC_MS);
	a->is_under_way = a->has_pages = a->is_dead = false;
	a->known_count = 0;
	a->asked = 0;
}

// --- what is heard

static void read_all(struct sim *s, struct appliance *a, uint64_t cursor)
{
	a->cursor = cursor;
	a->page_line = a->page_member = 0;
	a->page_from = 0;
	a->has_pages = true;
	for (uint32_t i = 0; i < LINES; i++) {
		a->lines[i].is_reading = true;
		ranks_read(a->lines[i].ranks);
	}
	s->rereads++;
}

static struct line *line_of(struct appliance *a, uint32_t id)
{
	return &a->lines[id == line_ids[0] ? 0 : 1];
}

static void hear_threshold(struct appliance *a, const struct ledger_news *news)
{
	struct line *line = line_of(a, news->line);
	if (news->threshold > atomic_load(&line->place->threshold))
		atomic_store(&line->place->threshold, news->threshold);
	ranks_settle(line->ranks, place_slot(news->threshold));
	if (news->floor > atomic_load(&line->place->floor))
		atomic_store(&line->place->floor, news->floor);
	place_trim(line->place, news->floor);
}

static void hear(struct appliance *a, const struct ledger_news *news)
{
	if (news->number != 0 && news->number != a->cursor + 1)
		return; // heard, or before it something is missing
	if (news->number != 0)
		a->cursor = news->number;
	if (news->kind == LEDGER_NEWS_SLOTS) {
		struct ranks *ranks = line_of(a, news->line)->ranks;
		if (!ranks_told(ranks, news->member, news->held, news->count))
			abort();
		if (news->number != 0)
			ranks_sum(ranks, news->number, news->total);
	} else if (news->kind == LEDGER_NEWS_THRESHOLD) {
		hear_threshold(a, news);
	}
}

// The page of the batch was the answer to what was asked; the next one is of the next member.
static void hear_page(struct appliance *a, const struct ledger_answer *answer, uint64_t newest)
{
	ranks_sum(a->lines[a->page_line].ranks, newest, answer->total);
	a->page_from = answer->next;
	if (a->page_from != 0)
		return;
	if (++a->page_member < a->known_count)
		return;
	a->page_member = 0;
	if (++a->page_line < LINES)
		return;
	a->has_pages = false;
	a->read_newest = newest;
}

static void settle(struct appliance *a, uint64_t final)
{
	const bool is_read = !a->has_pages && a->cursor >= a->read_newest;
	for (uint32_t i = 0; i < LINES; i++) {
		struct line *line = &a->lines[i];
		if (line->is_reading && is_read) {
			if (!ranks_begin(line->ranks, a->number, 0))
				abort();
			line->is_reading = false;
		}
		if (!line->is_reading && final > 0)
			ranks_settle(line->ranks, final);
	}
	a->final = final > a->final ? final : a->final;
}

static void hear_reply(struct sim *s, struct appliance *a, const char *bytes)
{
	struct ledger_wire_reader reader;
	struct ledger_reply reply;
	struct ledger_answer answer, page = {0};
	struct ledger_member member;
	static struct ledger_news news;
	bool is_sound = ledger_wire_reply(&reader, bytes, strlen(bytes), &reply);
	const bool is_first = a->known_count == 0;
	a->is_under_way = false;
	if (reply.verdict != LEDGER_BATCH_TAKEN)
		return;
	a->number = reply.number;
	a->batch.fence = reply.conductor == reply.number ? reply.fence : 0;
	for (uint32_t i = 0; i < LINES; i++)
		a->lines[i].told = a->lines[i].telling;
	for (uint32_t i = 0; i < reply.answer_count; i++) {
		is_sound &= ledger_wire_answer(&reader, &answer);
		if (i + 1 == a->asked)
			page = answer;
	}
	a->known_count = 0;
	for (uint32_t i = 0; i < reply.member_count; i++) {
		is_sound &= ledger_wire_member(&reader, &member);
		a->known[a->known_count++] = member.number;
	}
	const bool is_anew = is_first || reply.is_resync || random_below(s, 400) == 0;
	if (is_anew)
		read_all(s, a, reply.newest);
	for (uint32_t i = 0; i < reply.news_count; i++) {
		is_sound &= ledger_wire_news(&reader, &news);
		if (!is_anew)
			hear(a, &news);
	}
	assert(is_sound);
	if (!is_anew && page.kind == LEDGER_READ)
		hear_page(a, &page, reply.newest);
	settle(a, is_anew ? 0 : reply.final);
}

// --- what is said

static void say_slots(struct appliance *a, uint32_t index)
{
	struct line *line = &a->lines[index];
	line->telling = line->told;
	for (;;) {
		struct ledger_entry *e = &a->entries[a->batch.count];
		*e = (struct ledger_entry){.kind = LEDGER_SLOTS, .line = line_ids[index]};
		e->slots.count =
			place_told(line->place, line->telling, e->slots.held, LEDGER_SLOTS_MAX);
		if (e->slots.count == 0)
			break;
		line->telling = (e->slots.held[e->slots.count - 1] >> 24) + 1;
		e->slots.total = place_own(line->place, line->telling);
		a->batch.count++;
		assert(a->batch.count < BATCH_MAX - 10);
	}
	if (line->place->closed < a->batch.closed)
		a->batch.closed = line->place->closed;
}

static void say_node(struct appliance *a, uint32_t index)
{
	a->entries[a->batch.count++] = (struct ledger_entry){.kind = LEDGER_NODE,
		.line = line_ids[index],
		.node = {.limits = {.burst = 1},
			.priority = 1,
			.weight = 1,
			.is_line = true,
			.session_s = 60,
			.present_max = 1,
			.left_max = 1,
			.ended_max = 1}};
}

// Some more are called, as ranks say; floor follows, two seconds behind.
static void say_threshold(struct sim *s, struct appliance *a, uint32_t index)
{
	const struct line *line = &a->lines[index];
	uint64_t rank;
	if (line->is_reading || ranks_final(line->ranks) == 0)
		return;
	place_rank(line->place, atomic_load(&line->place->threshold), &rank);
	if (rank == PLACE_UNKNOWN)
		return;
	const uint64_t key = place_key_at(line->place, rank + random_below(s, 40));
	const uint64_t floor =
		key > 200ull << PLACE_SLOT_SHIFT ? key - (200ull << PLACE_SLOT_SHIFT) : 0;
	hold(s, place_slot(key) <= ranks_final(line->ranks),
		"the threshold stays in what is final");
	a->entries[a->batch.count++] = (struct ledger_entry){.kind = LEDGER_THRESHOLD,
		.line = line_ids[index],
		.threshold = {.threshold = key, .floor = floor, .is_open = true}};
}

static void make_batch(struct sim *s, struct appliance *a)
{
	a->batch.number++;
	a->batch.appliance = a->number;
	a->batch.time_ms = s->now_ms + (uint64_t)a->ahead_ms;
	a->batch.cursor = a->batch.applied = a->cursor;
	a->batch.closed = UINT64_MAX;
	a->batch.count = a->asked = 0;
	a->batch.entries = a->entries;
	for (uint32_t i = 0; i < LINES; i++)
		say_slots(a, i);
	a->entries[a->batch.count++] = (struct ledger_entry){.kind = LEDGER_ELECT};
	for (uint32_t i = 0; i < LINES && a->batch.fence != 0; i++) {
		say_node(a, i);
		say_threshold(s, a, i);
	}
	if (!a->has_pages || a->known_count == 0)
		return;
	a->entries[a->batch.count++] = (struct ledger_entry){.kind = LEDGER_READ,
		.line = line_ids[a->page_line],
		.read = {.what = LEDGER_NEWS_SLOTS,
			.member = a->known[a->page_member],
			.from = a->page_from}};
	a->asked = a->batch.count;
}

static void mark_told(struct sim *s, const struct ledger_news *news)
{
	for (uint32_t i = s->ticket_count; i-- > 0;) {
		struct ticket *t = &s->tickets[i];
		if (t->at_ms + 30000 < s->now_ms)
			break;
		if (line_ids[t->line] != news->line || (t->key & 63) != news->member)
			continue;
		for (uint32_t j = 0; j < news->count; j++)
			t->is_told |= place_slot(t->key) == news->held[j] >> 24 &&
				      place_seq(t->key) < (news->held[j] & 0xffffff);
	}
}

// What was published reaches some.
static void publish(struct sim *s)
{
	static struct ledger_news news;
	const bool lost = random_below(s, 3) == 0;
	struct ledger_wire_reader reader = {
		s->model.told.at, s->model.told.at + strlen(s->model.told.at)};
	while (ledger_wire_news(&reader, &news)) {
		if (news.kind == LEDGER_NEWS_SLOTS)
			mark_told(s, &news);
		if (news.kind == LEDGER_NEWS_THRESHOLD)
			s->floors[news.line == line_ids[0] ? 0 : 1] = news.floor;
		for (struct appliance *a = s->appliances; a < s->appliances + APPLIANCES; a++) {
			if (is_running(s, a) && !a->is_dead && !lost && a->known_count > 0)
				hear(a, &news);
		}
	}
}

static void turn(struct sim *s, struct appliance *a)
{
	for (uint32_t i = 0; i < LINES; i++) {
		const uint64_t slot = clock_slot(s, a);
		place_close(a->lines[i].place, slot > a->final ? slot : a->final);
	}
	if (s->now_ms < a->next_ms)
		return;
	a->next_ms = s->now_ms + SYNC_MS;
	if (!a->is_under_way)
		make_batch(s, a);
	a->is_under_way = true;
	a->batch.writes = s->model.writes;
	if (random_below(s, 40) == 0)
		return; // it got lost
	char *reply = model_batch(&s->model, &a->batch, s->now_ms);
	publish(s);
	if (random_below(s, 40) > 0)
		hear_reply(s, a, reply);
	free(reply);
}

// --- visitors

static void arrive(struct sim *s, struct appliance *a)
{
	const uint8_t line = (uint8_t)random_below(s, LINES);
	if (a->number >= LEDGER_MEMBERS_MAX || s->ticket_count == TICKETS_MAX)
		return;
	const uint64_t key = place_mint(a->lines[line].place, clock_slot(s, a), a->number);
	assert(key != 0);
	s->tickets[s->ticket_count++] = (struct ticket){.key = key,
		.at_ms = s->now_ms,
		.place = PLACE_UNKNOWN,
		.line = line,
		.minted_by = (uint8_t)(a - s->appliances)};
}

static void poll(struct sim *s, struct appliance *a, struct ticket *t)
{
	uint64_t rank;
	const struct line *line = &a->lines[t->line];
	const bool is_exact = place_rank(line->place, t->key, &rank);
	if (t->key < s->floors[t->line] || t->key < atomic_load(&line->place->floor))
		return;
	const uint64_t then_ms = s->now_ms - KNOWN_MS;
	const bool must_be_known = t->at_ms < then_ms && s->hung_ms < then_ms &&
				   a->until_ms < then_ms && !line->is_reading;
	hold(s, rank != PLACE_UNKNOWN || !must_be_known, "a place is known after a while");
	s->unknown += rank == PLACE_UNKNOWN;
	if (rank == PLACE_UNKNOWN)
		return;
	hold(s, t->place == PLACE_UNKNOWN || t->place == rank, "a place stays");
	hold(s, !t->is_exact || is_exact, "what is exact stays so");
	t->place = rank;
	if (place_slot(t->key) >= ranks_final(line->ranks))
		return; // the first key of a slot: told or not, none stands before it
	hold(s, is_exact == t->is_told, "who was told in time has a place alone");
	t->is_exact = is_exact;
}

static int by_key(const void *a, const void *b)
{
	const struct ticket *x = a, *y = b;
	if (x->line != y->line)
		return x->line < y->line ? -1 : 1;
	return x->key < y->key ? -1 : x->key > y->key;
}

// In the order of keys: places count up, and nobody stands before who came much earlier.
static void check_all(struct sim *s)
{
	const struct ticket *last = NULL;
	qsort(s->tickets, s->ticket_count, sizeof(*s->tickets), by_key);
	for (uint32_t i = 0; i < s->ticket_count; i++) {
		const struct ticket *t = &s->tickets[i];
		hold(s, i == 0 || by_key(t - 1, t) < 0, "no key is given twice");
		s->exact += t->is_exact;
		s->inexact += t->place != PLACE_UNKNOWN && !t->is_exact;
		if (t->place != PLACE_UNKNOWN && last && last->line == t->line)
			hold(s,
				t->is_exact && last->is_exact ? t->place > last->place
							      : t->place >= last->place,
				"places are in the order of keys, and unique");
		last = t->place != PLACE_UNKNOWN ? t : last;
		for (uint32_t j = i + 1; j < s->ticket_count && j < i + 400; j++) {
			const struct ticket *behind = &s->tickets[j];
			const int64_t off = s->appliances[t->minted_by].ahead_ms -
					    s->appliances[behind->minted_by].ahead_ms;
			const uint64_t near_ms = NEAR_MS + (uint64_t)(off < 0 ? -off : off);
			hold(s, behind->line != t->line || behind->at_ms + near_ms >= t->at_ms,
				"nobody is far behind who came later");
		}
	}
}

// --- trouble, and time

static void trouble(struct sim *s)
{
	struct appliance *a = &s->appliances[random_below(s, APPLIANCES)];
	for (uint32_t i = 0; i < APPLIANCES; i++) {
		if (!is_running(s, &s->appliances[i]))
			return; // one at a time
	}
	a->until_ms = s->now_ms + 100 + random_below(s, random_below(s, 2) ? 8000 : 1500);
	a->is_dead = random_below(s, 2);
	s->hung_ms = s->now_ms;
	s->deaths += a->is_dead;
	s->stops += !a->is_dead;
}

static void step(struct sim *s)
{
	s->now_ms += 2;
	if (random_below(s, 1500) == 0)
		trouble(s);
	for (struct appliance *a = s->appliances; a < s->appliances + APPLIANCES; a++) {
		if (!is_running(s, a))
			continue;
		if (a->is_dead)
			start(s, a);
		for (uint64_t left = random_below(s, 12) == 0 ? random_below(s, 5) : 0; left > 0;
			left--)
			arrive(s, a);
		if (random_below(s, 5) == 0)
			turn(s, a);
		if (s->ticket_count == 0)
			continue;
		const uint64_t most = s->ticket_count < 600 ? s->ticket_count : 600;
		poll(s, a, &s->tickets[s->ticket_count - 1 - random_below(s, most)]);
	}
}

static void run(struct sim *s, uint64_t seed)
{
	s->seed = s->random = seed;
	s->now_ms = START_MS;
	s->ticket_count = 0;
	s->hung_ms = 0;
	memset(s->floors, 0, sizeof(s->floors));
	memset(s->appliances, 0, sizeof(s->appliances));
	model_init(&s->model);
	for (struct appliance *a = s->appliances; a < s->appliances + APPLIANCES; a++) {
		a->ahead_ms = (int64_t)random_below(s, 2 * CLOCK_MS + 1) - CLOCK_MS;
		a->number = LEDGER_MEMBERS_MAX;
		for (uint32_t i = 0; i < LINES; i++) {
			a->lines[i].place = calloc(1, place_line_bytes(ENTRIES));
			assert(a->lines[i].place);
			place_line_init(a->lines[i].place, line_ids[i], ENTRIES);
		}
		start(s, a);
	}
	while (s->now_ms < START_MS + RUN_MS)
		step(s);
	check_all(s);
	for (struct appliance *a = s->appliances; a < s->appliances + APPLIANCES; a++) {
		for (uint32_t i = 0; i < LINES; i++) {
			free(a->lines[i].ranks);
			free(a->lines[i].place);
		}
	}
	model_fini(&s->model);
}

int main(int argc, char **argv)
{
	static struct sim sim;
	const uint64_t seeds = argc > 1 ? strtoull(argv[1], NULL, 10) : 20;
	const uint64_t first = argc > 2 ? strtoull(argv[2], NULL, 10) : 1;
	sim.tickets = calloc(TICKETS_MAX, sizeof(*sim.tickets));
	assert(sim.tickets);
	for (uint64_t seed = first; seed < first + seeds; seed++)
		run(&sim, seed);
	printf("seeds from %" PRIu64 ": exact %" PRIu64 ", late %" PRIu64 ", not known %" PRIu64
	       ", stopped %" PRIu64 ", died %" PRIu64 ", read anew %" PRIu64 "\n",
		first, sim.exact, sim.inexact, sim.unknown, sim.stops, sim.deaths, sim.rereads);
	// A run in which little happened would prove nothing.
	assert(sim.exact > 1000 * seeds && sim.inexact > 0 && sim.inexact < sim.exact / 10);
	assert(sim.stops > 0 && sim.deaths > 0 && sim.rereads > 5 * seeds && sim.unknown > 0);
	free(sim.tickets);
	return 0;
}
