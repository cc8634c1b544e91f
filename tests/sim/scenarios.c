// Scenarios: what is promised of the whole, in numbers.
//
//   sim_scenarios [NAME]    all, or one

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "tests/sim/world.h"

#define EXPECT(w, condition) CHECK(&(w)->rooms[0].check, condition)

// Admissions from `from_ms` to before `to_ms` of virtual time (clocks do not step here).
static uint32_t admitted_between(const struct world *w, uint64_t from_ms, uint64_t to_ms)
{
	uint32_t count = 0;
	for (uint32_t i = 0; i < w->rooms[0].check.admitted_count; i++) {
		const uint64_t at = w->rooms[0].check.admitted_ms[i] - w->start_ms;
		count += at >= from_ms && at < to_ms;
	}
	return count;
}

// A crowd of whom everybody comes, until from one on four of five do not: how long is the rate
// below 95 % of the target? And when they all come back at once?
static void no_shows(void)
{
	struct world_plan plan = world_everyday(1);
	struct world w;
	plan.limits.rate_count = 50;
	plan.limits.burst = 50;
	plan.limits.session_s = 20;
	plan.limits.capacity = 1200; // a fifth above what the rate fills
	plan.people = 25000;
	plan.no_show = 0.8;
	plan.no_show_after = 2000;
	plan.return_ms = 110000;
	plan.duration_ms = 130000;
	plan.bounds.sessions_max = 20000;
	plan.bounds.present_max = 4000;
	plan.entries_max = 1 << 15;
	world_run(&w, &plan);
	// The first who does not come is called after some 40 s.
	uint64_t low_until = 0;
	uint32_t least = UINT32_MAX;
	for (uint64_t at = 30000; at + 5000 <= 110000; at += 1000) {
		const uint32_t in_5_s = admitted_between(&w, at, at + 5000);
		least = in_5_s < least ? in_5_s : least;
		if (in_5_s < 5 * 50 * 95 / 100)
			low_until = at + 5000;
	}
	const uint32_t after = admitted_between(&w, 70000, 110000);
	const uint32_t back = admitted_between(&w, 112000, 130000);
	printf("  worst 5 s %u of 250, below 95 %% until %" PRIu64 " ms, then %.1f %%; all back: "
	       "%.1f %%, most inside %u of 1200\n",
		least, low_until, after / 20.0, back / 9.0, w.rooms[0].check.active_most);
	EXPECT(&w, low_until <= 70000);
	EXPECT(&w, after >= 40 * 50 * 95 / 100);
	EXPECT(&w, back >= 18 * 50 * 95 / 100);
	EXPECT(&w, w.rooms[0].check.active_most <= 1200);
	world_fini(&w);
}

// While people wait, no less than 95 % of the rate is let in.
static void use_of_the_rate(void)
{
	const struct {
		uint32_t count, period_ms, burst, people;
	} cases[] = {
		{100, 1000, 100, 20000},
		{300, 60000, 5, 1500},
		{5, 1000, 1, 1500},
		{1, 1000, 1, 400},
		{20, 60000, 1, 200},
		{3, 60000, 1, 100},
	};
	for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
		struct world_plan plan = world_everyday(10 + i);
		struct world w;
		plan.limits.rate_count = cases[i].count;
		plan.limits.rate_period_ms = cases[i].period_ms;
		plan.limits.burst = cases[i].burst;
		plan.limits.session_s = 30;
		plan.people = cases[i].people;
		plan.duration_ms =
			cases[i].count * 60000 > 5 * cases[i].period_ms ? 120000 : 600000;
		plan.bounds.sessions_max = 40000;
		world_run(&w, &plan);
		const double target =
			(plan.duration_ms - 1000.0) * cases[i].count / cases[i].period_ms;
		const double share = admitted_between(&w, 1000, plan.duration_ms) / target;
		printf("  %u in %u ms, burst %u: %.1f %%, each overtaking %.1f\n", cases[i].count,
			cases[i].period_ms, cases[i].burst, share * 100,
			(double)w.rooms[0].check.overtaken / (double)w.granted);
		EXPECT(&w, share >= 0.95);
		EXPECT(&w, w.lapsed == 0);
		world_fini(&w);
	}
}

// Slots in use, on average, from `from_ms` on.
static double slots_used(const struct world *w, uint64_t from_ms)
{
	double used_ms = 0;
	const uint64_t from = w->start_ms + from_ms, to = w->start_ms + w->plan.duration_ms;
	for (uint32_t i = 0; i < w->visitor_max; i++) {
		const struct world_visitor *v = &w->visitors[i];
		if (v->session == 0)
			continue;
		uint64_t begin = v->granted_ms, end = v->expires * 1000ull;
		if (v->left_ms && v->left_ms < end)
			end = v->left_ms;
		begin = begin < from ? from : begin;
		end = end > to ? to : end;
		used_ms += end > begin ? (double)(end - begin) : 0;
	}
	return used_ms / (double)(to - from);
}

// While people wait, no less than 95 % of the slots are in use.
static void use_of_the_capacity(void)
{
	const struct {
		uint32_t capacity, session_s, shop_max_ms;
	} cases[] = {
		{20, 60, 0}, {200, 30, 0}, {1, 30, 0},
		{50, 120, 40000}, // leave when they are done, 10 to 40 s
	};
	for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
		struct world_plan plan = world_everyday(20 + i);
		struct world w;
		plan.limits.rate_count = 0;
		plan.limits.capacity = cases[i].capacity;
		plan.limits.session_s = cases[i].session_s;
		plan.shop_min_ms = cases[i].shop_max_ms / 4;
		plan.shop_max_ms = cases[i].shop_max_ms;
		plan.people = 40 * cases[i].capacity;
		plan.duration_ms = 200000;
		plan.bounds.sessions_max = 20000;
		world_run(&w, &plan);
		const double used = slots_used(&w, 5000) / cases[i].capacity;
		printf("  %u slots, sessions of %u s: %.1f %%\n", cases[i].capacity,
			cases[i].session_s, used * 100);
		EXPECT(&w, used >= 0.95);
		EXPECT(&w, w.lapsed == 0);
		world_fini(&w);
	}
}

// Once the line has moved steadily for a minute, what people read of their wait holds.
static void expected_wait(void)
{
	const struct {
		uint32_t rate, capacity, session_s, shop_min_ms, shop_max_ms;
		double no_show;
	} cases[] = {
		{20, 0, 30, 0, 0, 0},
		{20, 0, 30, 0, 0, 0.5},
		{0, 200, 60, 4000, 16000, 0},
		{50, 150, 60, 1000, 4000, 0.2},
	};
	for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
		struct world_plan plan = world_everyday(30 + i);
		struct world w;
		plan.limits.rate_count = cases[i].rate;
		plan.limits.burst = cases[i].rate ? cases[i].rate : 1;
		plan.limits.capacity = cases[i].capacity;
		plan.limits.session_s = cases[i].session_s;
		plan.shop_min_ms = cases[i].shop_min_ms;
		plan.shop_max_ms = cases[i].shop_max_ms;
		plan.no_show = cases[i].no_show;
		plan.people = 8000;
		plan.duration_ms = 300000;
		plan.bounds.sessions_max = 20000;
		world_run(&w, &plan);
		const double hits = 100.0 * (double)w.wait_hits / (double)w.wait_cases;
		printf("  case %zu: %" PRIu64 " looked after a steady minute, right for %.1f %%\n",
			i, w.wait_cases, hits);
		EXPECT(&w, w.wait_cases > 1000);
		EXPECT(&w, hits >= 90);
		EXPECT(&w, w.wait_wide == 0);
		world_fini(&w);
	}
}

// Several tabs each, and answers that come late or never: one session each, and nobody lapses.
static void tabs(void)
{
	struct world_plan plan = world_everyday(40);
	struct world w;
	plan.limits.capacity = 100;
	plan.limits.session_s = 15;
	plan.people = 1500;
	plan.tabs_max = 4;
	plan.delay_max_ms = 400;
	plan.loses_answer = 0.02;
	plan.duration_ms = 300000;
	world_run(&w, &plan);
	printf("  %" PRIu64 " tickets, %" PRIu64 " sessions, %" PRIu64 " lapsed\n", w.tickets,
		w.granted, w.lapsed);
	EXPECT(&w, w.granted >= 1400 && w.granted <= 1500 + w.direct);
	world_fini(&w);
}

// 15,000 within a second, capacity 400, 100/s, sessions of 5 s given back after 1 s.
static void crowd(void)
{
	struct world_plan plan = world_everyday(50);
	struct world w;
	plan.limits.capacity = 400;
	plan.limits.rate_count = 100;
	plan.limits.burst = 100;
	plan.limits.session_s = 5;
	plan.shop_min_ms = plan.shop_max_ms = 1000;
	plan.people = 15000;
	plan.duration_ms = 170000;
	plan.bounds.sessions_max = 40000;
	world_run(&w, &plan);
	const uint64_t last_ms = w.last_ticket_granted_ms - w.start_ms;
	const double rate = (double)w.granted / ((double)last_ms / 1000);
	printf("  %" PRIu64 " admitted of 15000 in %" PRIu64 " ms, %.1f/s, most inside %u; %" PRIu64
	       " polls, %" PRIu64 " overtook\n",
		w.granted, last_ms, rate, w.rooms[0].check.active_most, w.polls,
		w.rooms[0].check.overtakes);
	EXPECT(&w, w.granted == 15000); // nobody is lost
	EXPECT(&w, w.lapsed == 0);
	EXPECT(&w, rate >= 95);
	EXPECT(&w, w.rooms[0].check.active_most <= 400);
	world_fini(&w);
}

// Admissions of a room from `from_ms` to before `to_ms`.
static uint32_t admitted_in(const struct world *w, uint32_t room, uint64_t from_ms, uint64_t to_ms)
{
	uint32_t count = 0;
	for (uint32_t i = 0; i < w->rooms[room].check.admitted_count; i++) {
		const uint64_t at = w->rooms[room].check.admitted_ms[i] - w->start_ms;
		count += at >= from_ms && at < to_ms;
	}
	return count;
}

// Two rooms that share all there is, and more people than can be served.
static struct world_plan two_rooms(
	uint64_t seed, struct world_share first, struct world_share second)
{
	struct world_plan plan = world_everyday(seed);
	plan.limits.rate_count = 0;
	plan.limits.session_s = 20;
	plan.room_count = 2;
	plan.shares[0] = first;
	plan.shares[1] = second;
	plan.people = 8000;
	plan.duration_ms = 200000;
	plan.bounds.sessions_max = 20000;
	return plan;
}

// Weights 3 and 1, in one class.
static void pool_weights(void)
{
	static const struct {
		struct pool_limits pool;
		uint32_t no_show; // percent
	} cases[] = {
		{{.capacity = 200, .burst = 1}, 0},
		{{.capacity = 12, .burst = 1}, 0},
		{{.rate_count = 10, .rate_period_ms = 1000, .burst = 10}, 0},
		{{.rate_count = 100, .rate_period_ms = 60000, .burst = 2}, 0},
		{{.capacity = 200, .rate_count = 9, .rate_period_ms = 1000, .burst = 9}, 50},
	};
	for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
		struct world w;
		struct world_plan plan = two_rooms(60 + i,
			(struct world_share){.priority = 1, .weight = 3, .people = 50},
			(struct world_share){.priority = 1, .weight = 1, .people = 50});
		plan.pool = cases[i].pool;
		plan.no_show = cases[i].no_show / 100.0;
		plan.duration_ms = plan.pool.rate_period_ms > 1000 ? 1200000 : 200000;
		world_run(&w, &plan);
		const double first = admitted_in(&w, 0, 5000, plan.duration_ms);
		const double second = admitted_in(&w, 1, 5000, plan.duration_ms);
		const struct pool_limits *l = &plan.pool;
		const double seconds = (double)(plan.duration_ms - 5000) / 1000;
		const double used = l->rate_count ? (first + second) * l->rate_period_ms /
							    (1000.0 * l->rate_count * seconds)
						  : slots_used(&w, 5000) / l->capacity;
		printf("  case %zu: %.0f and %.0f, %.1f %% and %.1f %%; %.1f %% of what can be\n",
			i, first, second, 100 * first / (first + second),
			100 * second / (first + second), used * 100);
		EXPECT(&w, first >= 0.73 * (first + second));
		EXPECT(&w, first <= 0.77 * (first + second));
		EXPECT(&w, used >= 0.96);
		EXPECT(&w, w.lapsed == 0);
		world_fini(&w);
	}
}

// Of two rooms one runs empty: the other takes all at once, and gives its part back at once when
// people come again.
static void pool_flows_on(void)
{
	struct world w;
	struct world_plan plan =
		two_rooms(70, (struct world_share){.priority = 1, .weight = 3, .people = 10},
			(struct world_share){.priority = 1, .weight = 1, .people = 90});
	plan.pool = (struct pool_limits){.capacity = 200, .burst = 1};
	plan.people = 5000;
	world_run(&w, &plan);
	// Waves of 200 every 20 s: the first, of some 480, is served with the fourth.
	const uint32_t before = admitted_in(&w, 0, 10000, 55000);
	const uint32_t after = admitted_in(&w, 0, 95000, 195000);
	const uint32_t rest = admitted_in(&w, 1, 95000, 195000);
	const double used = slots_used(&w, 5000) / plan.pool.capacity;
	printf("  %u of 300 while there are people, %u after; the other %u of 1000; %.1f %% of the "
	       "slots in use\n",
		before, after, rest, used * 100);
	EXPECT(&w, before >= 294 && before <= 364); // it has had less of the first 200
	EXPECT(&w, after == 0);
	EXPECT(&w, rest >= 960);
	EXPECT(&w, used >= 0.96);
	world_fini(&w);
}

// Class 2 gets nothing while class 1 has a line, and all that it leaves.
static void pool_priority(void)
{
	struct world w;
	struct world_plan plan =
		two_rooms(80, (struct world_share){.priority = 1, .weight = 1, .people = 15},
			(struct world_share){.priority = 2, .weight = 1000, .people = 85});
	plan.pool = (struct pool_limits){.capacity = 200, .burst = 1};
	world_run(&w, &plan);
	// Waves of 200, every 21 s: some 1000 more of class 1, then class 2.
	const uint32_t first = admitted_in(&w, 0, 10000, 100000);
	const uint32_t starved = admitted_in(&w, 1, 1000, 100000);
	const uint32_t second = admitted_in(&w, 1, 140000, 200000);
	const double used = slots_used(&w, 5000) / plan.pool.capacity;
	printf("  class 1 %u, class 2 %u, later %u of 600; %.1f %% of the slots in use\n", first,
		starved, second, used * 100);
	EXPECT(&w, first == 800);
	EXPECT(&w, starved == 0);
	EXPECT(&w, second >= 576);
	EXPECT(&w, used >= 0.96);
	world_fini(&w);
}

// A class 1 that trickles in does not wait for those of class 2, who get the rest.
static void pool_trickle(void)
{
	struct world w;
	struct world_plan plan =
		two_rooms(90, (struct world_share){.priority = 1, .weight = 1, .people = 20},
			(struct world_share){.priority = 2, .weight = 1, .people = 80});
	plan.pool = (struct pool_limits){.capacity = 200, .burst = 1};
	plan.arrivals = 20; // 4 a second of class 1, 16 of class 2, for 10 slots a second
	plan.people = 4000;
	world_run(&w, &plan);
	uint64_t waited_ms = 0;
	uint32_t count = 0;
	for (uint32_t i = 0; i < w.visitor_max; i++) {
		const struct world_visitor *v = &w.visitors[i];
		if (v->room != &w.rooms[0] || v->session == 0)
			continue;
		waited_ms += v->granted_ms - v->arrived_ms;
		count++;
	}
	const double used = slots_used(&w, 20000) / plan.pool.capacity;
	printf("  %u of class 1 waited for %.1f s; class 2 got %u; %.1f %% of the slots in use\n",
		count, (double)waited_ms / count / 1000, admitted_in(&w, 1, 20000, 200000),
		used * 100);
	EXPECT(&w, waited_ms / count < 4000);
	EXPECT(&w, used >= 0.96);
	world_fini(&w);
}

static const struct {
	const char *name;
	void (*run)(void);
} scenarios[] = {
	{"no_shows", no_shows},
	{"use_of_the_rate", use_of_the_rate},
	{"use_of_the_capacity", use_of_the_capacity},
	{"expected_wait", expected_wait},
	{"tabs", tabs},
	{"crowd", crowd},
	{"pool_weights", pool_weights},
	{"pool_flows_on", pool_flows_on},
	{"pool_priority", pool_priority},
	{"pool_trickle", pool_trickle},
};

int main(int argc, char **argv)
{
	setvbuf(stdout, NULL, _IOLBF, 0);
	for (size_t i = 0; i < sizeof(scenarios) / sizeof(scenarios[0]); i++) {
		if (argc > 1 && strcmp(argv[1], scenarios[i].name))
			continue;
		printf("%s\n", scenarios[i].name);
		scenarios[i].run();
	}
	return 0;
}
