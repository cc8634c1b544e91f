// A visitor has at most one thing before it, which is in the agenda; what that is follows from its
// state. Who waits behind the threshold has none: far.c knows when it polls.

#include "controlplane/simulate/visitor.h"

#include "controlplane/simulate/dice.h"
#include "controlplane/simulate/opening.h"

#include <assert.h>
#include <math.h>

#define UNIQUE 0x9e3779b97f4a7c15ull // odd: no two multiples are the same
#define APPLIANCE 0u
#define STAY_MAX_MS (14u * 86400u * 1000u) // longer than any plan

uint64_t visitor_id(uint32_t who)
{
	return (who + 1ull) * UNIQUE;
}

static struct play_room *room_of(struct play *p, uint32_t who)
{
	return &p->rooms[p->people[who].room];
}

static bool chance(struct play *p, uint64_t of_100)
{
	return dice_share(&p->dice) * 100 < (double)of_100;
}

// --- claims

static void claim(struct play *p, uint32_t who, struct claim claim)
{
	struct play_room *room = room_of(p, who);
	struct claim_answer answer;
	claim.room = p->people[who].room;
	claim.request = who;
	claim.visitor = visitor_id(who);
	claim.sent_ms = play_cluster_ms(p);
	if (controller_claim(room->controller, &claim, visitor_id(who), claim.sent_ms, &answer))
		visitor_answer(p, &answer);
}

// --- waiting

static void draw_ticket(struct play *p, uint32_t who)
{
	struct play_person *person = &p->people[who];
	struct play_room *room = room_of(p, who);
	const uint64_t ahead = room->rank_count - atomic_load(&room->line->threshold_rank);
	const uint64_t wait = atomic_load(&room->line->wait_high);
	person->key = place_mint(room->line, play_cluster_ms(p) / PLACE_SLOT_MS, APPLIANCE);
	assert(person->key != 0 && room->rank_count < room->rank_max);
	person->state = PLAY_WAITING;
	person->shows = !chance(p, room->plan->no_show);
	room->by_rank[room->rank_count++] = who;
	room->tickets++;
	room->waiting += person->shows;
	room->no_shows += !person->shows;
	play_second(p, room)->pages++;
	far_add(room->far, person->shows, pace_poll_after_max(ahead, wait));
}

static void gather(struct play *p, uint32_t who)
{
	struct play_person *person = &p->people[who];
	struct play_room *room = room_of(p, who);
	person->state = PLAY_GATHERED;
	person->shows = !chance(p, room->plan->no_show);
	room->tickets++;
	room->waiting += person->shows;
	room->no_shows += !person->shows;
	opening_join(p, room, who);
	far_add(room->far, person->shows, FAR_FIRST);
}

static void come_early(struct play *p, uint32_t who)
{
	struct play_room *room = room_of(p, who);
	p->people[who].state = PLAY_BEFORE;
	room->waiting++;
	far_add(room->far, true, FAR_REST);
	play_at(p, who,
		room->gathers_ms - p->now_ms +
			(uint64_t)(dice_share(&p->dice) * 1000 * OPENING_SOON_S));
}

static void enter(struct play *p, uint32_t who)
{
	struct play_room *room = room_of(p, who);
	if (!room->is_open && p->now_ms < room->gathers_ms) {
		come_early(p, who);
	} else if (!room->is_open && room->first_slot != 0) {
		gather(p, who);
	} else if (place_take_open(room->line)) {
		claim(p, who, (struct claim){.kind = CLAIM_DIRECT});
	} else {
		draw_ticket(p, who);
	}
}

void visitor_arrive(struct play *p, uint32_t who)
{
	struct play_room *room = room_of(p, who);
	play_second(p, room)->came++;
	enter(p, who);
	if (p->people[who].state <= PLAY_GATHERED)
		play_second(p, room)->pages++;
}

static void poll(struct play *p, uint32_t who)
{
	struct play_person *person = &p->people[who];
	struct play_room *room = room_of(p, who);
	play_second(p, room)->polls++;
	if (person->key < atomic_load(&room->line->floor)) {
		person->state = PLAY_LAPSED;
		room->lapsed++;
		room->waiting--;
		return;
	}
	assert(person->key < atomic_load(&room->line->threshold));
	claim(p, who,
		(struct claim){.kind = CLAIM_CALLED,
			.key = person->key,
			.poll_after = atomic_load(&room->line->next_poll_after)});
}

void visitor_call(struct play *p, struct play_room *room)
{
	const uint64_t threshold = atomic_load(&room->line->threshold);
	const uint64_t rank = atomic_load(&room->line->threshold_rank);
	assert(rank <= room->rank_count);
	while (room->called < rank) {
		const uint32_t who = room->by_rank[room->called++];
		const struct play_person *person = &p->people[who];
		assert(person->key < threshold);
		const uint32_t ms = far_call(room->far, person->shows, p->now_ms % 1000, &p->dice);
		if (person->shows)
			play_at(p, who, ms);
	}
}

// --- inside

// When somebody is done who begins now: log-normal about the mean.
static uint64_t draw_stay(struct play *p, const struct play_room *room)
{
	if (room->stay_sigma == 0)
		return room->plan->stay_s * 1000;
	const double u = 1 - dice_share(&p->dice), v = dice_share(&p->dice);
	const double normal = sqrt(-2 * log(u)) * cos(2 * M_PI * v);
	const double ms = 1000 * exp(room->stay_mu + room->stay_sigma * normal);
	return ms < STAY_MAX_MS ? (uint64_t)ms : STAY_MAX_MS;
}

// In the second half of a pass the next page view asks for its renewal.
static void plan_renewal(struct play *p, uint32_t who)
{
	const struct play_room *room = room_of(p, who);
	const double view_ms = dice_share(&p->dice) * 1000 * (double)room->plan->view_every_s;
	const uint64_t renewal_ms = p->now_ms + room->plan->session_s * 500 + (uint64_t)view_ms;
	const uint64_t until_ms = p->people[who].until_ms;
	play_at(p, who, (renewal_ms < until_ms ? renewal_ms : until_ms) - p->now_ms);
}

static void go_in(struct play *p, uint32_t who, bool is_direct)
{
	struct play_person *person = &p->people[who];
	struct play_room *room = room_of(p, who);
	room->waiting -= !is_direct;
	room->direct += is_direct;
	person->shows = true;
	person->state = PLAY_INSIDE;
	person->admitted_ms = is_direct ? person->came_ms : p->now_ms;
	play_second(p, room)->admitted++;
	if (room->plan->stay_s == 0)
		return;
	person->until_ms = p->now_ms + (uint32_t)draw_stay(p, room);
	if (room->plan->sliding)
		plan_renewal(p, who);
	else if (person->until_ms - p->now_ms < room->plan->session_s * 1000)
		play_at(p, who, person->until_ms - p->now_ms);
}

// The shop says so, or nobody does, and the pass runs out.
static void leave(struct play *p, uint32_t who)
{
	struct play_room *room = room_of(p, who);
	const uint64_t now_ms = play_cluster_ms(p);
	p->people[who].state = PLAY_DONE;
	if (chance(p, room->plan->ends) && controller_end(room->controller, visitor_id(who),
						   now_ms)) // workers take microseconds
		controller_free(room->controller, visitor_id(who), now_ms);
}

static void use(struct play *p, uint32_t who)
{
	struct play_room *room = room_of(p, who);
	uint32_t expires;
	if (p->now_ms >= p->people[who].until_ms) {
		leave(p, who);
		return;
	}
	const uint64_t session = controller_session(room->controller, visitor_id(who), &expires);
	if (session != 0)
		claim(p, who,
			(struct claim){
				.kind = CLAIM_RENEW, .session = session, .expires = expires});
}

void visitor_act(struct play *p, uint32_t who)
{
	struct play_room *room = room_of(p, who);
	switch (p->people[who].state) {
	case PLAY_BEFORE:
		room->waiting--;
		play_second(p, room)->polls++;
		enter(p, who);
		break;
	case PLAY_WAITING:
		poll(p, who);
		break;
	default:
		use(p, who);
	}
}

// `next` is told without jitter; the page adds its own.
static uint64_t next_delay(struct play *p, uint32_t poll_after)
{
	const double late = 1 + dice_share(&p->dice) / FAR_JITTER;
	return (uint64_t)(poll_after * 1000 * late) + p->plan->traffic->round_trip_ms;
}

void visitor_answer(struct play *p, const struct claim_answer *answer)
{
	const uint32_t who = answer->request;
	const struct play_person *person = &p->people[who];
	switch (answer->verdict) {
	case CLAIM_GRANTED:
		go_in(p, who, answer->kind == CLAIM_DIRECT);
		break;
	case CLAIM_NEXT:
		play_at(p, who, next_delay(p, answer->poll_after));
		break;
	case CLAIM_REFUSED:
		draw_ticket(p, who);
		break;
	case CLAIM_RENEWED:
		plan_renewal(p, who);
		break;
	default: // it was away for longer than its pass lasts
		assert(person->state == PLAY_INSIDE);
		p->people[who].state = PLAY_DONE;
	}
}
