// A cluster in one process, in virtual time: two to four appliances, the store, the network between
// them, and people who go to whichever they like. All real but for the store, which is the model of
// it (model.h), and for workers and clocks.
//
//   sim_cluster            the seeds that every run of the tests takes
//   sim_cluster FIRST N    N seeds from FIRST on; one of them alone replays what it did
//
// What holds, at every event:
//   * nobody is let through by a pass beyond the capacity, on any appliance that the store hears of
//   * the ledger never has more inside than there is room for; no more people in any window than
//     the rate lets through
//   * one ticket is one session, whatever is lost, and is used once
//   * who polls as told does not lapse; a place that was shown never gets worse, unless the store
//     has lost writes (docs/decisions/0036), and then rarely
//   * threshold, floor and cluster time never move back, on any appliance
//   * people are served: when nothing goes wrong and sessions are not over in no time, capacity is
//     used to 98 %

#include <assert.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "tests/sim/cluster/people.h"
#include "tests/unit/controller/random.h"

#define SEEDS 500u
#define STEP_MS 10u
#define TURN_MS 20u
#define START_MS UINT64_C(1700000000000)
#define LINE_ID 0xabcd1234u

enum trouble {
	CRASH,
	STOP,
	CUT,
	FAIL_OVER, // and writes are lost
	FORGET, // another store takes over, which is empty
	POWER, // besides, all appliances begin anew
	RESTART, // of the store, that loses nothing
	CLOCK_STEP, // of the store
	LEAVE, // with a goodbye
	TROUBLES,
};

struct world {
	uint64_t seed, random, now_ms, duration_ms;
	struct appliance appliances[NETWORK_LINKS];
	uint32_t appliance_count;
	struct appliance_line line;
	struct network network;
	struct people people;
	double troubles[TROUBLES]; // a minute
	uint64_t resume_ms[NETWORK_LINKS]; // 0: nothing to do
	bool is_calm, is_bounded;
	bool is_steady; // besides, sessions are long, and everybody comes and stays
	// The rate, as people who went through and time brought back: units of a period.
	uint64_t level, filled_ms, admitted, epoch;
	uint64_t seen_ms; // cluster time
	uint64_t admitted_before; // by the ledger, with the batch before
	uint64_t used_ms, could_ms; // capacity x time while people waited
	uint64_t counts[TROUBLES];
	uint64_t turns;
};

static bool chance(struct world *w, double share)
{
	return share > 0 && (double)random_below(&w->random, 1000000000) < share * 1e9;
}

static uint64_t between(struct world *w, uint64_t low, uint64_t high)
{
	return low + random_below(&w->random, high - low + 1);
}

static bool sometimes(struct world *w, uint32_t of)
{
	return random_below(&w->random, of) == 0;
}

// --- what holds

static void check_rate(struct world *w, const struct model_node *node)
{
	const struct pool_limits *l = &node->is.limits;
	const uint64_t full = (uint64_t)l->burst * l->rate_period_ms;
	if (w->network.model.epoch != w->epoch) {
		w->epoch = w->network.model.epoch; // an older book
		w->admitted = node->admitted;
		w->filled_ms = w->network.model.now_ms;
		return;
	}
	const uint64_t now = w->network.model.now_ms;
	if (w->filled_ms == 0)
		w->level = full;
	else if (now > w->filled_ms)
		w->level += (now - w->filled_ms) * l->rate_count;
	w->level = w->level < full ? w->level : full;
	w->filled_ms = now;
	for (; w->admitted < node->admitted; w->admitted++) {
		PEOPLE_CHECK(&w->people, w->level >= l->rate_period_ms);
		w->level -= l->rate_period_ms;
	}
}

static void taken(void *ctx, const struct ledger_batch *batch, const char *reply)
{
	struct world *w = ctx;
	(void)batch;
	(void)reply;
	const struct model *m = &w->network.model;
	PEOPLE_CHECK(&w->people, m->seen_ms >= w->seen_ms || w->network.has_journal);
	w->seen_ms = m->seen_ms;
	const struct model_node *node = model_find(&w->network.model, LINE_ID);
	if (!node || !w->is_bounded)
		return;
	// An older book may have sessions that were over, besides those that took their slots.
	if (node->is.limits.capacity > 0 && node->admitted > w->admitted_before)
		PEOPLE_CHECK(&w->people, model_taken(m, node) <= node->is.limits.capacity);
	w->admitted_before = node->admitted;
	if (node->is.limits.rate_count > 0)
		check_rate(w, node);
}

static void check_words(struct world *w)
{
	for (uint32_t i = 0; i < w->appliance_count; i++) {
		struct appliance_room *room = &w->appliances[i].rooms[0];
		PEOPLE_CHECK(&w->people, room->line->threshold >= room->threshold);
		PEOPLE_CHECK(&w->people, room->line->floor >= room->floor);
		PEOPLE_CHECK(&w->people, room->line->floor <= room->line->threshold);
		room->threshold = room->line->threshold;
		room->floor = room->line->floor;
	}
}

// Slots that are taken while somebody waits who could have them.
static void measure(struct world *w)
{
	const struct model_node *node = model_find(&w->network.model, LINE_ID);
	if (!node || node->is.limits.capacity == 0 ||
		w->people.waiting < 2 * w->line.node.limits.capacity || w->now_ms < START_MS + 8000)
		return;
	w->could_ms += node->is.limits.capacity;
	w->used_ms += model_taken(&w->network.model, node);
}

// --- what goes wrong

static void kill(struct world *w, uint32_t i)
{
	appliance_kill(&w->appliances[i]);
	network_reset(&w->network, i, w->now_ms);
}

static void trouble(struct world *w, enum trouble kind)
{
	const uint32_t i = (uint32_t)random_below(&w->random, w->appliance_count);
	struct appliance *a = &w->appliances[i];
	if (kind <= STOP && (a->state != APPLIANCE_UP || w->resume_ms[i] != 0))
		return;
	w->counts[kind]++;
	switch (kind) {
	case CRASH:
		kill(w, i);
		w->resume_ms[i] = w->now_ms + between(w, 50, 15000);
		break;
	case STOP:
		a->state = APPLIANCE_STOPPED;
		w->resume_ms[i] = w->now_ms + between(w, 10, 20000);
		break;
	case CUT:
		w->network.links[i].cut_until_ms = w->now_ms + between(w, 10, 20000);
		if (sometimes(w, 2))
			network_break(&w->network, i, w->now_ms);
		break;
	case FAIL_OVER:
		network_fail_over(&w->network, between(w, 0, 3000), between(w, 0, 5000), w->now_ms);
		w->network.clock_ms += (int64_t)between(w, 0, 4000) - 2000;
		break;
	case FORGET:
		network_fail_over(&w->network, w->now_ms, between(w, 0, 5000), w->now_ms);
		break;
	case POWER:
		for (uint32_t k = 0; k < w->appliance_count; k++) {
			kill(w, k);
			w->resume_ms[k] = w->now_ms + between(w, 50, 10000);
		}
		network_fail_over(&w->network, w->now_ms, between(w, 0, 5000), w->now_ms);
		break;
	case RESTART:
		network_fail_over(&w->network, 0, between(w, 0, 3000), w->now_ms);
		break;
	case CLOCK_STEP:
		w->network.clock_ms += sometimes(w, 2) ? (int64_t)between(w, 0, 7200000) - 3600000
						       : (int64_t)between(w, 0, 2000) - 1000;
		break;
	case LEAVE:
		a->is_leaving = true;
		if (a->state == APPLIANCE_UP)
			member_goodbye(a->member);
		break;
	case TROUBLES:
		break;
	}
}

static void recover(struct world *w, uint32_t i)
{
	struct appliance *a = &w->appliances[i];
	struct member_status status;
	if (a->state == APPLIANCE_UP && sometimes(w, 50)) {
		member_status(a->member, &status);
		if (status.is_gone) {
			kill(w, i);
			w->resume_ms[i] = w->now_ms + between(w, 50, 10000);
		}
	}
	if (w->resume_ms[i] == 0 || w->now_ms < w->resume_ms[i])
		return;
	w->resume_ms[i] = 0;
	if (a->state == APPLIANCE_STOPPED)
		a->state = APPLIANCE_UP;
	else
		appliance_start(a, w->now_ms);
}

static void go_wrong(struct world *w)
{
	const bool is_time =
		w->now_ms > START_MS + 3000 && w->now_ms < START_MS + w->duration_ms - 30000;
	for (int kind = 0; is_time && kind < TROUBLES; kind++) {
		if (chance(w, w->troubles[kind] * STEP_MS / 60000))
			trouble(w, (enum trouble)kind);
	}
	for (uint32_t i = 0; i < w->appliance_count; i++)
		recover(w, i);
}

// --- a run

static void plan_line(struct world *w)
{
	const bool has_rate = sometimes(w, 3);
	const bool has_capacity = !has_rate || sometimes(w, 2);
	w->line = (struct appliance_line){.id = LINE_ID,
		.claim_s = 15,
		.node = {.is_line = true,
			.direct = !sometimes(w, 4),
			.sliding = sometimes(w, 3),
			.priority = 1,
			.weight = 1,
			.session_s = (uint32_t)between(w, 3, 15),
			.present_max = sometimes(w, 4) ? 8 : 256,
			.left_max = 64,
			.ended_max = sometimes(w, 4) ? 4 : 128,
			.config = 42,
			.limits = {.burst = 1}}};
	struct pool_limits *l = &w->line.node.limits;
	if (has_capacity)
		l->capacity = (uint32_t)between(w, 1, 20);
	if (has_rate) {
		l->rate_count = (uint32_t)between(w, 1, 10);
		l->rate_period_ms = 1000;
		l->burst = (uint32_t)between(w, 1, 5);
	}
}

static void plan(struct world *w)
{
	w->is_calm = sometimes(w, 4);
	w->is_steady = w->is_calm && sometimes(w, 2);
	w->is_bounded = w->is_calm || !sometimes(w, 8);
	plan_line(w);
	if (!w->is_bounded)
		w->line.on_loss = sometimes(w, 2) ? MEMBER_SHARE : MEMBER_OPEN;
	w->appliance_count = (uint32_t)between(w, 2, NETWORK_LINKS);
	w->duration_ms = between(w, 40000, 80000);
	if (w->is_steady) {
		w->line.node.session_s = 30;
		w->line.node.sliding = false;
		w->line.node.present_max = 256;
		w->line.node.limits =
			(struct pool_limits){.capacity = (uint32_t)between(w, 5, 20), .burst = 1};
		w->duration_ms = 120000;
	}
	w->network.faults.delay_max_ms = (uint32_t)between(w, 0, sometimes(w, 4) ? 60 : 10);
	if (w->is_calm)
		return;
	if (sometimes(w, 2))
		w->network.faults.lost = (double)between(w, 0, 30) / 1000;
	w->network.faults.news_lost = (double)between(w, 0, 300) / 1000;
	w->network.faults.news_twice = (double)between(w, 0, 100) / 1000;
	static const uint32_t most[TROUBLES] = {6, 4, 4, 3, 2, 1, 1, 2, 2};
	for (int kind = 0; kind < TROUBLES; kind++)
		w->troubles[kind] =
			sometimes(w, 2) ? 0 : (double)between(w, 0, most[kind] * 10) / 10;
	w->network.has_journal = w->troubles[FAIL_OVER] + w->troubles[FORGET] + w->troubles[POWER] +
					 w->troubles[RESTART] >
				 0;
}

static void begin(struct world *w, uint64_t seed)
{
	*w = (struct world){.seed = seed, .random = seed * 7919, .now_ms = START_MS};
	network_init(&w->network, &w->random);
	plan(w);
	w->network.taken = taken;
	w->network.ctx = w;
	w->network.clock_ms = (int64_t)between(w, 0, 10000) - 5000;
	for (uint32_t i = 0; i < w->appliance_count; i++) {
		char name[8];
		snprintf(name, sizeof(name), "edge-%u", i);
		struct appliance *a = &w->appliances[i];
		appliance_init(a, name, &w->line, 1, NULL, &w->random);
		a->clock_ms = sometimes(w, 2) ? (int64_t)between(w, 0, 600000) - 300000 : 0;
		a->ppm = w->is_calm ? 0 : (int64_t)between(w, 0, 200) - 100;
		network_add(&w->network, a);
		appliance_start(a, w->now_ms);
	}
	struct people_plan people = {
		.no_show = sometimes(w, 2) ? 0 : (double)between(w, 0, 60) / 100,
		.gives_back = sometimes(w, 2) ? 0 : 0.01,
		.ends_early = sometimes(w, 2) ? 0 : 0.5,
		.comes_again = 0.1,
		.renews = w->line.node.sliding ? 0.3 : 0.02,
		.moves = !sometimes(w, 4),
		.arrive_ms = (uint32_t)between(w, 100, 30000)};
	if (w->is_steady)
		people.no_show = people.gives_back = people.ends_early = 0;
	people_init(&w->people, (uint32_t)between(w, 30, 150), &people, &w->network, &w->random);
	w->people.seed = seed;
	w->people.is_calm = w->is_calm;
	w->people.is_bounded = w->is_bounded;
	w->people.capacity = w->line.node.limits.capacity;
	for (uint32_t i = 0; i < w->people.count; i++)
		w->people.at[i].next_ms = START_MS + 1000 + between(w, 0, people.arrive_ms);
}

// What a seed that is replayed alone looks like from outside, once a second.
static void tell(struct world *w)
{
	const struct model *m = &w->network.model;
	struct model_node *n = model_find(&w->network.model, LINE_ID);
	if (!n)
		return;
	printf("%6" PRIu64 " ms: inside %" PRIu64 ", present %u, waiting %" PRIu64
	       ", total %" PRIu64 ", called %" PRIu64 ", floor %" PRIu64 ", admitted %" PRIu64
	       ", open %d, conductor %u, fence %" PRIu64 ", final -%" PRIi64 " ms%s%s;",
		w->now_ms - START_MS, model_taken(m, n), n->present.count, w->people.waiting,
		model_total(n), n->threshold_rank, n->floor_rank, n->admitted, n->is_open,
		m->conductor, m->fence, (int64_t)(m->now_ms - m->final * PLACE_SLOT_MS),
		m->is_recovering ? ", recovers" : "", m->is_skewed ? ", skewed" : "");
	for (uint32_t i = 0; i < w->appliance_count; i++) {
		const struct appliance *a = &w->appliances[i];
		struct member_status s = {0};
		if (a->state == APPLIANCE_UP)
			member_status(a->member, &s);
		printf(" %s%s%s%s",
			a->state == APPLIANCE_UP ? "up"
			: a->state               ? "stopped"
						 : "down",
			s.is_away ? "-away" : "", s.is_ready ? "" : "-blank",
			s.is_resyncing ? "-reads" : "");
	}
	printf("\n");
}

static void step(struct world *w)
{
	w->now_ms += STEP_MS;
	if (!w->is_calm)
		go_wrong(w);
	network_turn(&w->network, w->now_ms);
	for (uint32_t i = 0; i < w->appliance_count; i++) {
		struct appliance *a = &w->appliances[i];
		if (a->state == APPLIANCE_UP &&
			(w->now_ms / STEP_MS + i) % (TURN_MS / STEP_MS) == 0)
			appliance_turn(a, w->now_ms);
	}
	people_turn(&w->people, w->now_ms);
	check_words(w);
	measure(w);
}

static void end(struct world *w)
{
	people_fini(&w->people);
	network_fini(&w->network);
	for (uint32_t i = 0; i < w->appliance_count; i++)
		appliance_fini(&w->appliances[i]);
}

struct total {
	uint64_t granted, lapsed, polls, worse, batches, counts[TROUBLES], used_ms, could_ms;
};

static void run(uint64_t seed, struct total *total, bool is_told, bool is_shown)
{
	static struct world world;
	struct world *w = &world;
	begin(w, seed);
	while (w->now_ms < START_MS + w->duration_ms) {
		step(w);
		if (is_shown && w->now_ms % 1000 == 0)
			tell(w);
	}
	if (is_told)
		printf("seed %" PRIu64 ": %s, %.0f %% do not come, %u appliances, %u people, "
		       "capacity %u, rate %u, %" PRIu64 " granted, %" PRIu64
		       " lapsed, most %" PRIu64 ", used %.1f %%\n",
			seed,
			w->is_steady ? "steady"
			: w->is_calm ? "calm"
				     : "troubled",
			100 * w->people.plan.no_show, w->appliance_count, w->people.count,
			w->line.node.limits.capacity, w->line.node.limits.rate_count,
			w->people.granted, w->people.lapsed, w->people.usable_most,
			w->could_ms ? 100.0 * (double)w->used_ms / (double)w->could_ms : 0);
	total->granted += w->people.granted;
	total->lapsed += w->people.lapsed;
	total->polls += w->people.polls;
	total->worse += w->people.worse;
	total->batches += w->network.batch_count;
	for (int kind = 0; kind < TROUBLES; kind++)
		total->counts[kind] += w->counts[kind];
	if (w->is_steady) {
		total->used_ms += w->used_ms;
		total->could_ms += w->could_ms;
	}
	end(w);
}

int main(int argc, char **argv)
{
	const uint64_t first = argc > 1 ? strtoull(argv[1], NULL, 10) : 1;
	const uint64_t count = argc > 2 ? strtoull(argv[2], NULL, 10) : argc > 1 ? 1 : SEEDS;
	struct total total = {0};
	for (uint64_t seed = first; seed < first + count; seed++)
		run(seed, &total, count == 1 || argc > 3, count == 1);
	printf("seeds %" PRIu64 " to %" PRIu64 ": %" PRIu64 " granted, %" PRIu64 " lapsed, %" PRIu64
	       " polls (%" PRIu64 " told a worse place), %" PRIu64
	       " batches; used %.2f %% when steady; troubles",
		first, first + count - 1, total.granted, total.lapsed, total.polls, total.worse,
		total.batches,
		total.could_ms ? 100.0 * (double)total.used_ms / (double)total.could_ms : 0);
	for (int kind = 0; kind < TROUBLES; kind++)
		printf(" %" PRIu64, total.counts[kind]);
	printf("\n");
	if (count >= SEEDS / 4 && 200 * total.worse > total.polls) {
		fprintf(stderr, "too many places got worse by what a store had lost\n");
		return 1;
	}
	if (count >= SEEDS / 4 && 100 * total.used_ms < 98 * total.could_ms) {
		fprintf(stderr, "capacity is not used to 98 %% while people wait\n");
		return 1;
	}
	return 0;
}
