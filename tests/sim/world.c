// The world: its clock and its queue of events.

#include "tests/sim/world.h"

#include <math.h>
#include <stdlib.h>

#include "tests/sim/process.h"
#include "tests/sim/visitor.h"
#include "tests/unit/controller/random.h"

#define START_MS 1700000000000ull
#define UNIQUE 0x9e3779b97f4a7c15ull // odd

uint64_t world_random(struct world *w, uint64_t limit)
{
	return random_below(&w->random, limit);
}

bool world_chance(struct world *w, double share)
{
	return (double)(random_next(&w->random) >> 11) * 0x1p-53 < share;
}

uint64_t world_cluster_ms(const struct world *w)
{
	return w->now_ms + w->step_ms;
}

uint64_t world_id(uint32_t who)
{
	return (who + 1ull) * UNIQUE;
}

uint32_t world_who(uint64_t id)
{
	uint64_t inverse = UNIQUE; // Newton: three right bits, then six, then twelve ...
	for (int i = 0; i < 5; i++)
		inverse *= 2 - UNIQUE * inverse;
	return (uint32_t)(id * inverse - 1);
}

// --- the queue

static bool is_before(const struct world_event *a, const struct world_event *b)
{
	return a->at_ms != b->at_ms ? a->at_ms < b->at_ms : a->order < b->order;
}

static void push(struct world *w, struct world_event event)
{
	if (w->event_count == w->event_max) {
		w->event_max = w->event_max ? 2 * w->event_max : 1024;
		w->events = realloc(w->events, w->event_max * sizeof(*w->events));
		if (!w->events)
			abort();
	}
	event.order = w->event_order++;
	uint32_t place = w->event_count++;
	for (; place > 0 && is_before(&event, &w->events[(place - 1) / 2]); place = (place - 1) / 2)
		w->events[place] = w->events[(place - 1) / 2];
	w->events[place] = event;
}

static struct world_event pop(struct world *w)
{
	const struct world_event first = w->events[0], last = w->events[--w->event_count];
	uint32_t place = 0;
	for (;;) {
		uint32_t child = 2 * place + 1;
		if (child + 1 < w->event_count &&
			is_before(&w->events[child + 1], &w->events[child]))
			child++;
		if (child >= w->event_count || is_before(&last, &w->events[child]))
			break;
		w->events[place] = w->events[child];
		place = child;
	}
	w->events[place] = last;
	return first;
}

void world_at(struct world *w, uint64_t delay_ms, uint8_t kind, uint32_t who, uint32_t detail,
	uint32_t number)
{
	push(w, (struct world_event){.at_ms = w->now_ms + delay_ms,
			.kind = kind,
			.who = who,
			.detail = detail,
			.number = number});
}

void world_deliver(struct world *w, uint64_t delay_ms, const struct claim_answer *answer)
{
	push(w, (struct world_event){
			.at_ms = w->now_ms + delay_ms, .kind = WORLD_ANSWER, .answer = *answer});
}

// --- what happens

// The next trouble of a kind that comes so many times a minute: exponential gaps.
static void plan_trouble(struct world *w, uint8_t kind, double a_minute)
{
	if (a_minute <= 0)
		return;
	const double u = ((double)world_random(w, 1u << 30) + 1) / (1u << 30);
	world_at(w, (uint64_t)(-log(u) * 60000 / a_minute) + 1, kind, 0, 1, 0);
}

static void plan_arrivals(struct world *w)
{
	double at = 0;
	for (uint32_t who = 0; who < w->plan.people; who++) {
		const double u = ((double)world_random(w, 1u << 30) + 1) / (1u << 30);
		at = w->plan.arrivals > 0 ? at - log(u) * 1000 / w->plan.arrivals
					  : (double)world_random(w, 1000);
		const uint32_t until_ms = w->plan.shares[w->visitors[who].room - w->rooms].until_ms;
		if (until_ms == 0 || at < until_ms)
			world_at(w, (uint64_t)at, WORLD_ARRIVE, who, 0, 0);
	}
}

static void step_clock(struct world *w)
{
	// Forward; a step back reaches nobody, since the cluster clock stands still instead.
	w->step_ms += world_random(w, 2) ? world_random(w, 1500) : world_random(w, 30000);
	plan_trouble(w, WORLD_STEP, w->plan.steps);
}

static void crash(struct world *w)
{
	switch (world_random(w, 3)) {
	case 0:
		process_crash(w);
		break;
	case 1:
		w->crash_at = WORLD_BATCH_LOST;
		break;
	default:
		w->crash_at = WORLD_ANSWERS_LOST;
	}
	plan_trouble(w, WORLD_CRASH, w->plan.crashes);
}

static void outage(struct world *w, bool begins)
{
	process_outage(w, begins);
	if (begins)
		world_at(w, 1 + world_random(w, 60000), WORLD_OUTAGE, 0, 0, 0);
	else
		plan_trouble(w, WORLD_OUTAGE, w->plan.outages);
}

static void happen(struct world *w, const struct world_event *e)
{
	switch (e->kind) {
	case WORLD_ARRIVE:
		visitor_arrive(w, e->who);
		break;
	case WORLD_POLL:
		visitor_poll(w, e->who, e->detail);
		break;
	case WORLD_TIMEOUT:
		visitor_timeout(w, e->who, e->detail, e->number);
		break;
	case WORLD_ANSWER:
		visitor_answer(w, &e->answer);
		break;
	case WORLD_SHOP_ENDS:
		visitor_shop_ends(w, e->who);
		break;
	case WORLD_RENEW:
		visitor_renew(w, e->who);
		break;
	case WORLD_TURN:
		process_turn(w, e->number);
		break;
	case WORLD_CRASH:
		crash(w);
		break;
	case WORLD_START:
		process_start(w);
		break;
	case WORLD_OUTAGE:
		outage(w, e->detail);
		break;
	case WORLD_STEP:
		step_clock(w);
		break;
	case WORLD_RELOAD:
		process_reload(w);
		plan_trouble(w, WORLD_RELOAD, w->plan.reloads);
		break;
	case WORLD_RELEASE:
		process_release(w);
		plan_trouble(w, WORLD_RELEASE, w->plan.releases);
		break;
	default:
		visitor_return(w);
	}
}

struct world_plan world_everyday(uint64_t seed)
{
	return (struct world_plan){
		.seed = seed,
		.limits = {.capacity = 0,
			.rate_count = 10,
			.rate_period_ms = 1000,
			.burst = 10,
			.session_s = 600,
			.claim_s = 120,
			.direct = true},
		.bounds = {.sessions_max = 4096,
			.present_max = 1024,
			.left_max = 256,
			.later_max = 64,
			.seed = seed},
		.entries_max = 1 << 14,
		.people = 300,
		.turn_ms = 20,
		.duration_ms = 60000,
		.delay_max_ms = 100,
		.tabs_max = 1,
	};
}

static void *array(size_t count, size_t bytes)
{
	void *at = calloc(count, bytes);
	if (!at)
		abort();
	return at;
}

static void init_room(struct world *w, struct world_room *room)
{
	const struct world_plan *plan = &w->plan;
	const uint32_t index = (uint32_t)(room - w->rooms);
	room->refused_key = UINT64_MAX;
	room->line = array(1, place_line_bytes(plan->entries_max));
	place_line_init(room->line, 1 + index, plan->entries_max);
	check_init(&room->check, plan->seed, &plan->limits, w->visitor_max);
	check_join(&room->check, &w->shared, plan->shares[index].priority);
}

// By chance, as many of 100 as the plan says.
static uint32_t room_of_share(struct world *w)
{
	if (w->room_count == 1)
		return 0;
	int64_t at = (int64_t)world_random(w, 100);
	for (uint32_t i = 0; i < w->room_count; i++) {
		at -= w->plan.shares[i].people;
		if (at < 0)
			return i;
	}
	return w->room_count - 1;
}

static void init(struct world *w, const struct world_plan *plan)
{
	*w = (struct world){.plan = *plan, .random = plan->seed, .now_ms = START_MS};
	w->start_ms = w->now_ms;
	w->available = true;
	w->visitor_max = 4 * plan->people + 16;
	w->visitors = array(w->visitor_max, sizeof(*w->visitors));
	w->visitor_count = plan->people;
	w->ring_max = 8 * plan->people + 64;
	w->ring = array(w->ring_max, sizeof(*w->ring));
	w->answers = array(w->ring_max, sizeof(*w->answers));
	w->store = array(w->visitor_max, sizeof(*w->store));
	w->ending = array(w->visitor_max, sizeof(*w->ending));
	w->room_count = plan->room_count ? plan->room_count : 1;
	check_pool_init(&w->shared, plan->room_count ? &plan->pool : NULL, 2 * w->visitor_max);
	for (uint32_t i = 0; i < w->room_count; i++)
		init_room(w, &w->rooms[i]);
	for (uint32_t who = 0; who < w->visitor_max; who++)
		w->visitors[who].room = &w->rooms[room_of_share(w)];
}

void world_run(struct world *w, const struct world_plan *plan)
{
	init(w, plan);
	process_start(w);
	plan_arrivals(w);
	plan_trouble(w, WORLD_CRASH, plan->crashes);
	plan_trouble(w, WORLD_OUTAGE, plan->outages);
	plan_trouble(w, WORLD_STEP, plan->steps);
	plan_trouble(w, WORLD_RELOAD, plan->reloads);
	plan_trouble(w, WORLD_RELEASE, plan->releases);
	if (plan->return_ms > 0)
		world_at(w, plan->return_ms, WORLD_RETURN, 0, 0, 0);
	while (w->event_count > 0 && w->events[0].at_ms <= w->start_ms + plan->duration_ms) {
		const struct world_event event = pop(w);
		w->now_ms = event.at_ms;
		happen(w, &event);
	}
}

void world_fini(struct world *w)
{
	for (uint32_t i = 0; i < w->room_count; i++) {
		controller_destroy(w->rooms[i].controller);
		check_fini(&w->rooms[i].check);
		free(w->rooms[i].line);
	}
	pool_destroy(w->pool);
	check_pool_fini(&w->shared);
	free(w->events);
	free(w->ring);
	free(w->answers);
	free(w->store);
	free(w->ending);
	free(w->visitors);
}
