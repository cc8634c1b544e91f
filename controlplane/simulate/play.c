// Turns, in the order of controller.h, and the agenda: a ring of turns, each with a list of those
// who do something in it. What lies further ahead than the ring is long stays in its place until
// its round comes.

#include "controlplane/simulate/play.h"

#include "controlplane/controller/pool.h"
#include "controlplane/simulate/arrivals.h"
#include "controlplane/simulate/dice.h"
#include "controlplane/simulate/opening.h"
#include "controlplane/simulate/visitor.h"

#include <assert.h>
#include <errno.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

#define START_MS 1699920000000ull // a midnight, so that periods of batches begin with the plan
#define ENTRIES 65536u // of a line's index; slots get longer where it fills
#define PRESENT_MAX 65536u // as sluice.yaml has it
#define LATER_MAX 4096u // as rooms.c has it
#define SESSIONS_LEAST 1024u // the guess of how many are known at once, at least
#define KEPT_S 90 // of a used ticket beyond the claim window, until floor has passed it
#define SECONDS_FIRST 4096u

static_assert(START_MS % 86400000 == 0, "midnight");

uint64_t play_cluster_ms(const struct play *p)
{
	return START_MS + p->now_ms;
}

struct play_second *play_second(const struct play *p, const struct play_room *room)
{
	return &room->seconds[p->second_count];
}

void play_at(struct play *p, uint32_t who, uint64_t ms)
{
	const uint64_t turns = ms / p->turn_ms;
	struct play_person *person = &p->people[who];
	person->due = p->turn + (turns > 0 ? (uint32_t)turns : 1);
	uint32_t *first = &p->agenda[person->due % PLAY_AGENDA_TURNS];
	person->next = *first;
	*first = who;
}

// --- making it

// Within a turn no more than a full bucket is let in: so a turn is at most half of what fills it.
static uint32_t turn_of(uint32_t turn_ms, const struct config_rate *rate, uint64_t burst)
{
	if (rate->count == 0)
		return turn_ms;
	const uint64_t ms = burst * rate->period_ms / rate->count / 2;
	return ms < turn_ms ? (ms > 0 ? (uint32_t)ms : 1) : turn_ms;
}

static uint32_t turn_of_plan(const struct plan *plan)
{
	uint32_t turn_ms = PLAY_TURN_MS;
	if (plan->pool)
		turn_ms = turn_of(turn_ms, &plan->pool->rate, plan->pool->burst);
	for (uint32_t i = 0; i < plan->rooms.count; i++)
		turn_ms = turn_of(turn_ms, &plan->rooms.at[i].rate, plan->rooms.at[i].burst);
	while (1000 % turn_ms)
		turn_ms--;
	return turn_ms;
}

static double per_second(const struct config_rate *rate)
{
	return rate->count ? (double)rate->count * 1000 / (double)rate->period_ms : INFINITY;
}

// How many sessions and used tickets a room has at once: a guess, doubled if it was too low. Close
// to it the controller's tables stay in the caches.
static uint32_t sessions_max_of(const struct play *p, const struct play_room *room)
{
	const struct plan_room *plan = room->plan;
	const double stay_s = (double)(plan->stay_s ? plan->stay_s : plan->session_s);
	const double capacity = plan->capacity ? (double)plan->capacity : INFINITY;
	const double rate = fmin(per_second(&plan->rate), capacity / stay_s);
	const double inside = fmin(capacity, per_second(&plan->rate) * (double)plan->session_s);
	const double used = rate * ((double)plan->claim_s + KEPT_S);
	const double guess = SESSIONS_LEAST + 1.1 * (inside + used);
	return (uint32_t)fmin(ldexp(guess, (int)p->patience), (double)room->rank_max + 1);
}

static struct controller_limits limits_of(const struct plan_room *plan)
{
	return (struct controller_limits){.capacity = (uint32_t)plan->capacity,
		.rate_count = (uint32_t)plan->rate.count,
		.rate_period_ms = (uint32_t)plan->rate.period_ms,
		.burst = (uint32_t)plan->burst,
		.session_s = (uint32_t)plan->session_s,
		.claim_s = (uint32_t)plan->claim_s,
		.sliding = plan->sliding,
		.direct = plan->mode == PLAN_MODE_AUTO,
		.batch_count = (uint32_t)plan->batch.count,
		.batch_period_ms = (uint32_t)plan->batch.period_ms};
}

static int make_pool(struct play *p)
{
	const struct plan_pool *plan = p->plan->pool;
	if (!plan)
		return 0;
	const struct pool_limits limits = {.capacity = (uint32_t)plan->capacity,
		.rate_count = (uint32_t)plan->rate.count,
		.rate_period_ms = (uint32_t)plan->rate.period_ms,
		.burst = (uint32_t)plan->burst};
	p->pool = pool_create(&limits, START_MS);
	return p->pool ? 0 : -ENOMEM;
}

static int make_controller(struct play *p, struct play_room *room)
{
	const struct controller_limits limits = limits_of(room->plan);
	const struct controller_bounds bounds = {.sessions_max = sessions_max_of(p, room),
		.present_max = PRESENT_MAX < room->rank_max ? PRESENT_MAX : room->rank_max + 1,
		.left_max = 1,
		.later_max = LATER_MAX,
		.seed = dice_next(&p->dice)};
	room->line = calloc(1, place_line_bytes(ENTRIES));
	if (!room->line)
		return -ENOMEM;
	place_line_init(room->line, 1 + (uint32_t)(room - p->rooms), ENTRIES);
	place_begin(room->line, START_MS / PLACE_SLOT_MS);
	room->controller = controller_create(&limits, &bounds, room->line, START_MS);
	if (!room->controller)
		return -ENOMEM;
	if (p->pool)
		controller_join(room->controller, p->pool, (uint32_t)room->plan->priority,
			(uint32_t)room->plan->weight, START_MS);
	controller_set_available(room->controller, room->is_open, START_MS);
	controller_publish(room->controller, false, START_MS);
	return 0;
}

static int make_room(struct play *p, struct play_room *room, const struct plan_room *plan)
{
	room->plan = plan;
	for (uint32_t i = 0; i < plan->arrivals.count; i++)
		room->rank_max += (uint32_t)plan->arrivals.at[i].people;
	room->opens_ms = (uint32_t)plan->opens_s * 1000;
	room->gathers_ms = room->opens_ms - (uint32_t)plan->prequeue_s * 1000;
	room->is_open = room->opens_ms == 0;
	const double spread = plan->stay_s ? (double)plan->stay_spread_s / (double)plan->stay_s : 0;
	room->stay_sigma = sqrt(log1p(spread * spread));
	room->stay_mu = log((double)plan->stay_s) - room->stay_sigma * room->stay_sigma / 2;
	room->by_rank = malloc(room->rank_max * sizeof(*room->by_rank));
	room->seconds = calloc(p->second_max, sizeof(*room->seconds));
	room->far = far_create(&p->pace, room->rank_max);
	if (!room->by_rank || !room->seconds || !room->far)
		return -ENOMEM;
	return make_controller(p, room);
}

static int make(struct play *p, const struct plan *plan, uint64_t seed)
{
	p->plan = plan;
	p->dice = seed;
	p->turn_ms = turn_of_plan(plan);
	p->people_max = (uint32_t)plan->people;
	p->second_max = SECONDS_FIRST;
	memset(p->agenda, 0xff, sizeof(p->agenda)); // PLAY_NEVER
	far_pace_init(&p->pace, (uint32_t)plan->traffic->round_trip_ms,
		(uint32_t)plan->traffic->idle_timeout_ms);
	p->people = calloc(plan->people, sizeof(*p->people));
	p->rooms = calloc(plan->rooms.count, sizeof(*p->rooms));
	p->arrivals = arrivals_create(plan, dice_next(&p->dice));
	if (!p->people || !p->rooms || !p->arrivals || make_pool(p) < 0)
		return -ENOMEM;
	while (p->room_count < plan->rooms.count) {
		const uint32_t i = p->room_count++;
		if (make_room(p, &p->rooms[i], &plan->rooms.at[i]) < 0)
			return -ENOMEM;
	}
	p->has_next = arrivals_next(p->arrivals, &p->next_ms, &p->next_room);
	return 0;
}

// --- turns

static void come(struct play *p)
{
	while (p->has_next && p->next_ms <= p->now_ms) {
		const uint32_t who = p->people_count++;
		assert(who < p->people_max);
		p->people[who] = (struct play_person){.came_ms = p->next_ms,
			.admitted_ms = PLAY_NEVER,
			.room = (uint8_t)p->next_room,
			.shows = true};
		visitor_arrive(p, who);
		p->has_next = arrivals_next(p->arrivals, &p->next_ms, &p->next_room);
	}
}

static void act(struct play *p)
{
	uint32_t *first = &p->agenda[p->turn % PLAY_AGENDA_TURNS];
	uint32_t who = *first, next;
	*first = PLAY_NEVER;
	for (; who != PLAY_NEVER; who = next) {
		struct play_person *person = &p->people[who];
		next = person->next;
		if (next != PLAY_NEVER) // people of a turn lie far from each other
			__builtin_prefetch(&p->people[next]);
		if (person->due == p->turn) {
			visitor_act(p, who);
			continue;
		}
		person->next = *first; // of another round
		*first = who;
	}
}

// Whose turn it is may be in another room: until nobody is answered any more.
static void answer_later_ones(struct play *p)
{
	struct claim_answer answer;
	uint8_t worker;
	for (bool has_answered = true; has_answered;) {
		has_answered = false;
		for (uint32_t i = 0; i < p->room_count; i++)
			while (controller_later(
				p->rooms[i].controller, play_cluster_ms(p), &answer, &worker)) {
				visitor_answer(p, &answer);
				has_answered = true;
			}
	}
}

static int turn(struct play *p)
{
	const struct controller_change *changes;
	for (uint32_t i = 0; i < p->room_count; i++)
		if (opening_turn(p, &p->rooms[i]) < 0)
			return -ENOMEM;
	come(p);
	act(p);
	for (uint32_t i = 0; i < p->room_count; i++)
		controller_tick(p->rooms[i].controller, play_cluster_ms(p));
	answer_later_ones(p);
	for (uint32_t i = 0; i < p->room_count; i++) {
		controller_changes(p->rooms[i].controller, &changes); // the store has them
		controller_publish(p->rooms[i].controller, false, play_cluster_ms(p));
		visitor_call(p, &p->rooms[i]);
	}
	p->turn++;
	p->now_ms += p->turn_ms;
	return 0;
}

// --- seconds

// Connections of those inside: all, or those who have just loaded a page.
static float browsing(const struct play *p, const struct play_room *room)
{
	const float every_ms = 1000 * (float)room->plan->view_every_s;
	const float idle_ms = (float)p->plan->traffic->idle_timeout_ms;
	return (float)room->view.sessions * (idle_ms < every_ms ? idle_ms / every_ms : 1);
}

static void see(struct play *p, struct play_room *room)
{
	struct play_second *second = play_second(p, room);
	const struct far_polls far = far_second(room->far, atomic_load(&room->line->threshold_rank),
		atomic_load(&room->line->wait_high));
	assert(place_total(room->line) == room->rank_count);
	controller_look(room->controller, play_cluster_ms(p), &room->view);
	second->waiting = room->waiting;
	second->inside = (uint32_t)room->view.sessions;
	second->polls += (float)far.polls;
	second->fresh = (float)far.fresh + (float)second->came;
	second->open = (float)far.open + (float)room->view.present + browsing(p, room);
	if (second->waiting > room->waiting_max)
		room->waiting_max = second->waiting;
	if (second->inside > room->inside_max)
		room->inside_max = second->inside;
	p->is_full |= room->view.sessions_full_total > 0;
}

static int see_all(struct play *p)
{
	for (uint32_t i = 0; i < p->room_count; i++)
		see(p, &p->rooms[i]);
	if (++p->second_count < p->second_max)
		return 0;
	for (uint32_t i = 0; i < p->room_count; i++) {
		struct play_room *room = &p->rooms[i];
		struct play_second *more =
			realloc(room->seconds, 2 * p->second_max * sizeof(*more));
		if (!more)
			return -ENOMEM;
		memset(more + p->second_max, 0, p->second_max * sizeof(*more));
		room->seconds = more;
	}
	p->second_max *= 2;
	return 0;
}

static bool is_over(const struct play *p)
{
	uint32_t waiting = 0;
	for (uint32_t i = 0; i < p->room_count; i++)
		waiting += p->rooms[i].waiting;
	return p->second_count >= p->plan->lasts_s || (!p->has_next && waiting == 0);
}

static int play_once(struct play *p, const struct plan *plan, uint64_t seed)
{
	int ret = make(p, plan, seed);
	while (ret == 0 && !p->is_full && !is_over(p)) {
		for (uint32_t ms = 0; ret == 0 && ms < 1000; ms += p->turn_ms)
			ret = turn(p);
		if (ret == 0)
			ret = see_all(p);
	}
	return ret;
}

int play_run(struct play *p, const struct plan *plan, uint64_t seed)
{
	for (uint32_t patience = 0;; patience++) {
		*p = (struct play){.patience = patience};
		const int ret = play_once(p, plan, seed);
		if (ret < 0 || !p->is_full)
			return ret;
		play_fini(p);
	}
}

void play_fini(struct play *p)
{
	for (uint32_t i = 0; i < p->room_count; i++) {
		struct play_room *room = &p->rooms[i];
		controller_destroy(room->controller);
		opening_fini(room);
		free(room->far);
		free(room->line);
		free(room->by_rank);
		free(room->seconds);
	}
	pool_destroy(p->pool);
	free(p->arrivals);
	free(p->rooms);
	free(p->people);
	*p = (struct play){0};
}
