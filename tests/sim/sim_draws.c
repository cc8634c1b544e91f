// Days of a room with doors: people who come before, at and after the closing of lists, a process
// that is killed at any step, clocks that jump, orders and modes that are switched while people
// wait.
//
// What holds:
//   * doors open once, and not before their time
//   * nobody is placed twice, and a place that was shown is that place for ever
//   * whoever gathered for doors stands before all who came after their list had closed; windows
//     stand in their order
//   * nobody who polls loses a place while their event is on, and nobody keeps one beyond it
//   * the places of a draw follow from seed, salt and visitor ids alone: worked out anew by OpenSSL
//     and qsort, by another appliance from the records, and by a process that starts afterwards
//   * over all seeds, places are even (chi-square)
//
//   sim_draws [FIRST [N]]

#include <inttypes.h>
#include <openssl/evp.h>
#include <openssl/hmac.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "controlplane/draws/gathering.h"
#include "dataplane/gate/mac_state.h"
#include "tests/sim/opening.h"
#include "tests/unit/controller/random.h"

#define SEEDS 120u
#define BEGIN_MS 1800000000000ull
#define DAY_MS 75000u
#define VISITORS 120u
#define QUIET_MS 8000u // without troubles, at the end
#define LIST_MS 1200u // after the opening the list is closed for sure
#define SETTLE_MS 1000u // unless the process has just begun
#define TURNS_MS 100u // by then everybody knows what time it is
#define CELLS 10u // a side
#define CHI_SQUARE_MAX 150.0 // 81 degrees of freedom: above it five times in a million

struct visitor {
	uint64_t id, next_ms; // when it asks next; monotonic
	struct token ticket;
	bool has_ticket, is_inside;
	int event; // for which the ticket was given
	uint64_t stamp; // counts those who were given any
	uint64_t number; // of the gathering that it joined; 0: none
	uint64_t position, ahead;
};

static struct opening o;
static struct visitor visitors[VISITORS];
static uint64_t seed, started_ms; // the process, last; monotonic
static bool was_open[OPENING_EVENTS_MAX], is_quiet;
static struct {
	uint64_t stamps, gathered, late, kills, jumps, switches, draws, lists;
	double cells[CELLS][CELLS], expected[CELLS][CELLS];
} seen;

#define CHECK(condition) \
	do { \
		if (!(condition)) { \
			fprintf(stderr, "seed %" PRIu64 ", at %" PRIu64 " ms: %s:%d: %s\n", seed, \
				(uint64_t)(opening_now(&o) - BEGIN_MS), __FILE__, __LINE__, \
				#condition); \
			abort(); \
		} \
	} while (0)

static uint64_t below(uint64_t limit)
{
	return random_below(&o.random, limit);
}

static bool is_over(int event)
{
	const uint64_t closes_ms = o.events[event].closes_ms;
	return closes_ms > 0 && closes_ms <= opening_now(&o);
}

// --- doors

// Doors open once, and not before their time.
static void look_at_doors(void)
{
	const int event = opening_event(&o);
	if (event < 0)
		return;
	if (o.room.state == GATE_OPEN) {
		CHECK(o.view.doors == SCHEDULE_OPEN);
		CHECK(opening_now(&o) >= o.schedule.opened_at_ms);
		was_open[event] = true;
	} else {
		CHECK(!was_open[event] || is_over(event));
	}
}

static void turn(void)
{
	opening_turn(&o);
	if (o.is_up)
		look_at_doors();
}

// --- a visitor

static void is_placed(struct visitor *v, const struct status *status)
{
	if (v->position == 0) {
		for (uint32_t i = 0; i < VISITORS; i++)
			CHECK(visitors[i].position != status->position);
		v->position = status->position;
		v->ahead = status->ahead;
	}
	CHECK(v->position == status->position);
	CHECK(status->ahead <= v->ahead);
	CHECK(status->exact);
	v->ahead = status->ahead;
}

// Whether people gather for doors now, and not in a window.
static bool is_of_doors(void)
{
	const struct gather_ids *ids = atomic_load(&o.room.gather->open);
	return ids && ids->epoch < 1ull << 62;
}

static void gets_ticket(struct visitor *v, const struct decision *d)
{
	if (d->was_minted) {
		CHECK(!v->has_ticket);
		const bool gathers = d->ticket.flags & TOKEN_FLAG_GATHERED;
		v->event = opening_event(&o);
		v->number = gathers ? d->ticket.key : 0;
		v->stamp = ++seen.stamps;
		seen.gathered += gathers;
		seen.late += !gathers;
		CHECK(v->event >= 0);
		CHECK(!gathers || !is_of_doors() || o.view.doors != SCHEDULE_OPEN ||
			opening_now(&o) < o.schedule.opened_at_ms + LIST_MS ||
			o.monotonic_ms < started_ms + SETTLE_MS);
	}
	v->ticket = d->ticket;
	v->has_ticket = true;
}

static void is_told(struct visitor *v, const struct decision *d)
{
	const uint64_t now_ms = opening_now(&o);
	if (d->sets_ticket)
		gets_ticket(v, d);
	if (d->sets_pass || d->action == DECIDE_FORWARD) {
		CHECK(was_open[opening_event(&o)]);
		v->is_inside = true;
		return;
	}
	const bool is_waiting =
		d->answer != DECIDE_UNKNOWN &&
		(d->status.state == STATUS_waiting || d->status.state == STATUS_next ||
			d->status.state == STATUS_prequeue);
	if (v->has_ticket && !is_over(v->event))
		CHECK(is_waiting);
	if (v->has_ticket && is_over(v->event) &&
		now_ms > o.events[v->event].closes_ms + TURNS_MS &&
		!gather_is_undrawn(o.room.gather, v->number))
		CHECK(!is_waiting);
	if (d->status.position != STATUS_UNKNOWN && v->has_ticket)
		is_placed(v, &d->status);
}

static void asks(struct visitor *v)
{
	struct decision d;
	v->next_ms = o.monotonic_ms + 200 + below(2000);
	if (v->has_ticket && is_over(v->event) && below(4) == 0)
		return (void)(v->is_inside = true); // has understood, and goes home
	opening_decide(&o, v->has_ticket ? GATE_ROUTE_STATUS : GATE_ROUTE_GUARDED,
		v->has_ticket ? &v->ticket : NULL, v->id, &d);
	is_told(v, &d);
	if (d.fills_window)
		turn(); // it wakes control
}

// --- the day

// The order and the mode while people wait.
static void switch_policy(void)
{
	seen.switches++;
	o.config.order = below(2) ? CONFIG_ORDER_WINDOW : CONFIG_ORDER_ARRIVAL;
	o.config.window = below(2) ? (struct config_window){.s = 1 + below(4)}
				   : (struct config_window){.people = 2 + below(20)};
	o.room.mode = below(2) ? GATE_MODE_AUTO : GATE_MODE_ALWAYS;
	if (below(3) == 0) {
		o.limits.batch_count = (uint32_t)below(20);
		o.limits.batch_period_ms = 1000 * (1 + (uint32_t)below(5));
		controller_set_limits(o.controller, &o.limits, opening_now(&o));
	}
}

// NTP sets the clock, or a leap second says one twice.
static void jump(void)
{
	seen.jumps++;
	if (below(4) == 0)
		o.system_off_ms -= 1000;
	else if (below(8) == 0)
		o.system_off_ms += (int64_t)below(60000) - 30000;
	else
		o.system_off_ms += (int64_t)below(4000) - 2000;
}

static void troubles(void)
{
	if (below(1000) == 0)
		jump();
	if (below(600) == 0)
		switch_policy();
	if (below(5000) == 0)
		opening_command(&o);
	const bool is_draw =
		atomic_load(&o.room.gather->numbers[0]) != 0 && !atomic_load(&o.room.gather->open);
	if (o.ends_before == 0 && below(is_draw ? 10 : 700) == 0)
		o.ends_before = 1 + (uint32_t)below(2 * OPENING_STEPS);
}

static void step(void)
{
	o.monotonic_ms += OPENING_TURN_MS;
	if (!o.is_up && below(20) > 0)
		return;
	if (!o.is_up) {
		seen.kills++;
		o.ends_before = 0;
		started_ms = o.monotonic_ms;
		opening_start(&o);
		look_at_doors();
	}
	for (uint32_t i = 0; i < VISITORS && o.is_up; i++)
		if (!visitors[i].is_inside && visitors[i].next_ms <= o.monotonic_ms)
			asks(&visitors[i]);
	if (!o.is_up)
		return;
	if (!is_quiet)
		troubles();
	turn();
}

// --- what a day came to

static int by_hash(const void *a, const void *b)
{
	const uint64_t x = *(const uint64_t *)a, y = *(const uint64_t *)b;
	return (x > y) - (x < y);
}

static uint64_t hash_of(const struct store_draw *record, uint64_t visitor)
{
	uint8_t key[DRAW_SEED_BYTES + DRAW_SALT_BYTES_MAX], id[8], tag[32];
	memcpy(key, record->seed, DRAW_SEED_BYTES);
	memcpy(key + DRAW_SEED_BYTES, record->salt, record->salt_bytes);
	for (unsigned i = 0; i < 8; i++)
		id[i] = (uint8_t)(visitor >> (56 - 8 * i));
	HMAC(EVP_sha256(), key, DRAW_SEED_BYTES + record->salt_bytes, id, sizeof(id), tag, NULL);
	uint64_t hash = 0;
	for (unsigned i = 0; i < 8; i++)
		hash = hash << 8 | tag[i];
	return hash;
}

// Another appliance has the record and the ticket, and no list.
static void derive(const struct store_draw *record, const struct visitor *v, uint64_t hash)
{
	struct gathering elsewhere = {.record = *record};
	elsewhere.list = (struct draw_list){.number = record->number,
		.first_slot = record->first_slot,
		.end_slot = record->end_slot,
		.base = record->base};
	gathering_key(&elsewhere, &elsewhere.list.mac);
	draw_list_init(&elsewhere.list);
	CHECK(mac_state_word(&elsewhere.list.mac, v->id) == hash);
	if (v->ticket.flags == 0)
		CHECK(draw_key(&elsewhere.list, hash) == v->ticket.key);
}

static void tally(uint32_t index, uint32_t place, uint32_t count)
{
	seen.cells[index * CELLS / count][place * CELLS / count]++;
	for (uint32_t i = 0; index == 0 && i < count; i++)
		for (uint32_t j = 0; j < count; j++)
			seen.expected[i * CELLS / count][j * CELLS / count] += 1.0 / count;
}

static void check_draw(const struct store_draw *record)
{
	uint64_t hashes[VISITORS], sorted[VISITORS];
	uint32_t who[VISITORS], count = 0;
	for (uint32_t i = 0; i < VISITORS; i++)
		if (visitors[i].number == record->number)
			who[count++] = i;
	CHECK(record->count == count);
	for (uint32_t i = 0; i < count; i++)
		hashes[i] = sorted[i] = hash_of(record, visitors[who[i]].id);
	qsort(sorted, count, sizeof(sorted[0]), by_hash);
	for (uint32_t i = 0; i < count; i++) {
		uint32_t place = 0;
		const struct visitor *v = &visitors[who[i]];
		while (sorted[place] != hashes[i])
			place++;
		CHECK(v->position == 0 || v->position == record->base + place + 1);
		derive(record, v, hashes[i]);
		if (count >= 2 * CELLS)
			tally(i, place, count);
	}
	seen.draws++;
	seen.lists += count;
}

// Of two who have places and did not gather together: who came first stands first. Nobody mints
// while people gather, so this holds for those who gathered, too.
static void check_pair(const struct visitor *a, const struct visitor *b)
{
	if (a != b && (a->number != b->number || a->number == 0))
		CHECK((a->stamp < b->stamp) == (a->position < b->position));
}

static void check_day(void)
{
	for (uint32_t i = 0; i < o.history_count; i++)
		check_draw(&o.history[i]);
	for (uint32_t i = 0; i < VISITORS; i++)
		for (uint32_t j = 0; j < VISITORS; j++)
			if (visitors[i].position > 0 && visitors[j].position > 0)
				check_pair(&visitors[i], &visitors[j]);
}

// A process that starts now knows the places that are not passed.
static void check_restart(void)
{
	opening_kill(&o);
	opening_start(&o);
	for (uint32_t i = 0; i < VISITORS; i++) {
		uint64_t hash, place;
		const struct visitor *v = &visitors[i];
		const struct draw_list *list =
			v->number ? draws_place(o.gatherings, v->number, 0, v->id, &hash, &place)
				  : NULL;
		if (list && v->position > 0)
			CHECK(list->base + place + 1 == v->position);
	}
}

static uint64_t between(uint64_t least, uint64_t most)
{
	return least + below(most - least + 1);
}

static void plan_day(void)
{
	struct schedule_event *e = o.events;
	memset(&o, 0, sizeof(o));
	o.random = seed;
	o.event_count = OPENING_EVENTS_MAX;
	o.gathered_max = below(4) ? 1000 : 40;
	o.limits = (struct controller_limits){.capacity = 6,
		.rate_period_ms = 1000,
		.burst = 1,
		.session_s = 3,
		.claim_s = 60,
		.direct = true};
	o.config = (struct config_room){.capacity = 6, .window_max_s = 3};
	e[0].gathers_ms = BEGIN_MS + between(1000, 5000);
	e[0].opens_ms = e[0].gathers_ms + between(2000, 8000);
	e[0].closes_ms = e[0].opens_ms + between(8000, 20000);
	e[1].gathers_ms = e[0].closes_ms + between(0, 4000);
	e[1].opens_ms = e[1].gathers_ms + (below(3) ? between(2000, 8000) : 0);
	e[1].closes_ms = below(2) ? 0 : e[1].opens_ms + between(10000, 20000);
	opening_begin(&o, BEGIN_MS);
	memset(was_open, 0, sizeof(was_open));
	memset(visitors, 0, sizeof(visitors));
	for (uint32_t i = 0; i < VISITORS; i++) {
		const uint64_t opens_ms = e[below(2)].opens_ms - BEGIN_MS;
		const uint64_t at_ms = below(2) ? below(DAY_MS - 15000) : opens_ms + below(3000);
		visitors[i].id = random_next(&o.random);
		visitors[i].next_ms = o.monotonic_ms + at_ms;
	}
}

static void live(void)
{
	plan_day();
	const uint64_t begin_ms = o.monotonic_ms;
	opening_start(&o);
	switch_policy();
	while (o.monotonic_ms < begin_ms + DAY_MS)
		step();
	is_quiet = true;
	while (o.monotonic_ms < begin_ms + DAY_MS + QUIET_MS)
		step();
	is_quiet = false;
	for (uint32_t i = 0; i < VISITORS; i++) {
		const struct visitor *v = &visitors[i];
		CHECK(v->is_inside || !v->has_ticket || is_over(v->event) || v->position > 0);
	}
	check_day();
	check_restart();
	opening_end(&o);
}

static double chi_square(void)
{
	double sum = 0;
	for (uint32_t i = 0; i < CELLS; i++)
		for (uint32_t j = 0; j < CELLS; j++) {
			const double off = seen.cells[i][j] - seen.expected[i][j];
			sum += off * off / (seen.expected[i][j] > 0 ? seen.expected[i][j] : 1);
		}
	return sum;
}

int main(int argc, char **argv)
{
	const uint64_t first = argc > 1 ? strtoull(argv[1], NULL, 10) : 1;
	const uint64_t count = argc > 2 ? strtoull(argv[2], NULL, 10) : argc > 1 ? 1 : SEEDS;
	for (seed = first; seed < first + count; seed++)
		live();
	printf("seeds %" PRIu64 " to %" PRIu64 ": %" PRIu64 " gathered, %" PRIu64
	       " came behind, %" PRIu64 " draws of %" PRIu64 " people, %" PRIu64 " kills, %" PRIu64
	       " jumps of the clock, %" PRIu64 " switches, chi-square %.0f\n",
		first, first + count - 1, seen.gathered, seen.late, seen.draws, seen.lists,
		seen.kills, seen.jumps, seen.switches, chi_square());
	if (chi_square() < CHI_SQUARE_MAX)
		return 0;
	fprintf(stderr, "places are not even\n");
	return 1;
}
