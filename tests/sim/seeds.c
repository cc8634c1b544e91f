// Many small worlds, each with its own troubles, all of them checked at every event.
//
//   sim_seeds                the seeds that every run of the tests takes, of rooms alone and of
//                            rooms that share a pool
//   sim_seeds FIRST N [pool] N seeds from FIRST on; one of them alone replays what it did

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>

#include "tests/sim/world.h"
#include "tests/unit/controller/random.h"

#define SEEDS 200u

static double sometimes(uint64_t *random, double most)
{
	return random_below(random, 2) ? 0 : most * (double)random_below(random, 1000) / 1000;
}

static struct world_plan plan_of(uint64_t seed)
{
	uint64_t r = seed * 7919;
	struct world_plan plan = world_everyday(seed);
	struct controller_limits *l = &plan.limits;
	const uint64_t kind = random_below(&r, 4); // capacity, rate, both, neither
	l->capacity = kind == 0 || kind == 2 ? 1 + (uint32_t)random_below(&r, 40) : 0;
	l->rate_count = kind == 1 || kind == 2 ? 1 + (uint32_t)random_below(&r, 20) : 0;
	l->rate_period_ms = random_below(&r, 3) ? 1000 : 7000;
	l->burst = 1 + (uint32_t)random_below(&r, 20);
	l->session_s = 1 + (uint32_t)random_below(&r, 40);
	l->claim_s = 5 + (uint32_t)random_below(&r, 60);
	l->sliding = random_below(&r, 3) == 0;
	l->direct = random_below(&r, 4) != 0;
	plan.bounds.present_max = random_below(&r, 4) ? 1024 : 8;
	plan.bounds.sessions_max = random_below(&r, 4) ? 4096 : 60;
	plan.bounds.left_max = random_below(&r, 4) ? 256 : 4;
	plan.bounds.later_max = random_below(&r, 3) ? 64 : 0;
	plan.entries_max = random_below(&r, 4) ? 1 << 12 : 64;
	plan.people = 50 + (uint32_t)random_below(&r, 150);
	plan.arrivals = random_below(&r, 2) ? 0 : 1 + (double)random_below(&r, 20);
	plan.turn_ms = 10 + (uint32_t)random_below(&r, 60);
	plan.duration_ms = 150000;
	plan.delay_max_ms = (uint32_t)random_below(&r, 250);
	plan.loses_answer = sometimes(&r, 0.1);
	plan.closes = sometimes(&r, 0.1);
	plan.no_show = sometimes(&r, 0.9);
	plan.return_ms = random_below(&r, 2) ? 60000 : 0;
	plan.leaves_line = sometimes(&r, 0.05);
	plan.tabs_max = 1 + (uint32_t)random_below(&r, WORLD_TABS_MAX);
	plan.shop_max_ms = random_below(&r, 2) ? 0 : 1 + (uint32_t)random_below(&r, 30000);
	plan.crashes = sometimes(&r, 4);
	plan.outages = sometimes(&r, 1);
	plan.steps = sometimes(&r, 3);
	plan.reloads = sometimes(&r, 4);
	plan.releases = sometimes(&r, 4);
	return plan;
}

// Two to four rooms in one pool; some of them keep limits of their own.
static void share(struct world_plan *plan)
{
	uint64_t r = plan->seed * 104729;
	const struct controller_limits *l = &plan->limits;
	plan->pool = (struct pool_limits){.capacity = l->capacity,
		.rate_count = l->rate_count,
		.rate_period_ms = l->rate_period_ms,
		.burst = l->burst};
	plan->room_count = 2 + (uint32_t)random_below(&r, WORLD_ROOMS_MAX - 1);
	for (uint32_t i = 0; i < plan->room_count; i++) {
		plan->shares[i] =
			(struct world_share){.priority = 1 + (uint32_t)random_below(&r, 3),
				.weight = 1 + (uint32_t)random_below(&r, 5),
				.people = 100 / plan->room_count,
				.until_ms = random_below(&r, 3) ? 0 : 5000};
	}
	if (random_below(&r, 3) > 0) {
		plan->limits.capacity = 0;
		plan->limits.rate_count = 0;
	}
}

static void run(uint64_t first, uint64_t count, bool is_shared)
{
	struct world total = {0};
	for (uint64_t seed = first; seed < first + count; seed++) {
		struct world w;
		struct world_plan plan = plan_of(seed);
		if (is_shared)
			share(&plan);
		world_run(&w, &plan);
		total.tickets += w.tickets;
		total.granted += w.granted;
		total.direct += w.direct;
		total.lapsed += w.lapsed;
		total.left += w.left;
		total.later += w.later;
		total.gone += w.gone;
		total.crashes += w.crashes;
		total.outages += w.outages;
		total.polls += w.polls;
		world_fini(&w);
	}
	printf("%s, seeds %" PRIu64 " to %" PRIu64 ": %" PRIu64 " tickets, %" PRIu64
	       " polls, %" PRIu64 " admitted (%" PRIu64 " directly, %" PRIu64
	       " put off first), %" PRIu64 " lapsed, %" PRIu64 " left, %" PRIu64
	       " undelivered, %" PRIu64 " crashes, %" PRIu64 " outages\n",
		is_shared ? "pools" : "rooms", first, first + count - 1, total.tickets, total.polls,
		total.granted, total.direct, total.later, total.lapsed, total.left, total.gone,
		total.crashes, total.outages);
}

int main(int argc, char **argv)
{
	const uint64_t first = argc > 1 ? strtoull(argv[1], NULL, 10) : 1;
	const uint64_t count = argc > 2 ? strtoull(argv[2], NULL, 10) : argc > 1 ? 1 : SEEDS;
	if (argc <= 3)
		run(first, count, false);
	if (argc == 1 || argc > 3)
		run(first, count, true);
	return 0;
}
