// Claims, controller and store together, in virtual time: a small room, visitors with tabs, answers
// that are lost, a store that is slow or cannot write, a process that is killed at any moment, and
// a clock that jumps.
//
// Most seeds use the store model, which can be slow; some the real SQLite, whose writes fail on
// demand, and which is killed by taking copies of its files.
//
// What holds:
//   * no pass leaves that the store does not know, unless it says `unsaved`
//   * no more passes are good than there are slots
//   * one ticket is one session, and its end never moves but by renewal
//   * who ended early stays out, over restarts
//   * a ticket that was given back, with an answer, is never good again
//   * threshold and floor never move back
//   * who was killed unsaved is known to be, and then nobody new gets in for one session
//
// A process that was killed unsaved has lost what it did not write, so a session that had ended
// then may be good again; it is not counted, and a ticket may be used again.
//
//   sim_claims [SEEDS] [FIRST]

#include "controlplane/claims/claims.h"
#include "tests/sim/killable.h"
#include "tests/unit/store/fault_vfs.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define LINE 1u
#define BEGIN_MS 1764583200000ull
#define RUN_MS 40000u
#define SETTLE_MS 12000u // without faults, at the end
#define VISITORS 40u
#define REQUESTS 512u // parked at once
#define SEEN_MAX 8192u // sessions in a run
#define WORKERS 2u
#define SQLITE_EVERY 10u // seeds

static uint64_t seed, random_state;

#define CHECK(condition) \
	do { \
		if (!(condition)) { \
			fprintf(stderr, "seed %lu, at %lu ms: %s:%d: %s\n", (unsigned long)seed, \
				(unsigned long)(w.now_ms - BEGIN_MS), __FILE__, __LINE__, \
				#condition); \
			abort(); \
		} \
	} while (0)

static uint64_t random_next(void)
{
	random_state ^= random_state >> 12;
	random_state ^= random_state << 25;
	random_state ^= random_state >> 27;
	return random_state * 0x2545f4914f6cdd1d;
}

static uint64_t random_below(uint64_t n)
{
	return random_next() % n;
}

static bool chance(uint64_t one_in)
{
	return random_below(one_in) == 0;
}

struct visitor {
	uint64_t id, key; // the ticket; key 0: none
	uint64_t session; // the pass; 0: none
	uint32_t expires;
	uint64_t poll_ms;
};

// A parked request.
struct request {
	bool is_used;
	uint8_t kind;
	uint32_t generation;
	uint32_t visitor; // whose
	uint64_t id, key; // of the claim
	uint64_t sent_ms;
};

// A session that a pass was issued for.
struct seen {
	uint64_t session, id;
	uint32_t expires;
	uint64_t ending_turn; // in which it entered the set of ended sessions; 0: it did not
	bool has_ended; // early, and refused by every worker
};

static struct world {
	uint64_t now_ms, wall_ms; // cluster time; time that does not jump
	bool has_lost; // a process was killed unsaved
	uint32_t capacity, session_s;
	bool is_sliding;

	struct killable killable;

	struct place_line *line;
	uint64_t threshold, floor; // seen so far
	struct controller *controller;
	struct ended *ended, *gone; // gone: tickets given back, as workers know
	struct claims *claims;
	uint64_t quiet_until_ms;
	uint64_t turn, quiescent[WORKERS]; // the turn in which a worker last was

	struct visitor visitors[VISITORS];
	struct request requests[REQUESTS];
	struct claim ring[4 * REQUESTS];
	uint32_t ring_count;
	struct seen seen[SEEN_MAX];
	uint32_t seen_count;
	uint64_t left[SEEN_MAX]; // ids of tickets given back
	uint32_t left_count;
	struct {
		uint64_t granted, renewed, ended, killed, killed_unsaved, undone;
	} total;
} w;

// Workers.

static struct seen *seen_of(uint64_t session)
{
	for (uint32_t i = w.seen_count; i-- > 0;) {
		if (w.seen[i].session == session)
			return &w.seen[i];
	}
	return NULL;
}

static uint64_t random_id(void *ctx)
{
	(void)ctx;
	return random_next() | 1;
}

static uint64_t barrier_begin(void *ctx)
{
	(void)ctx;
	return w.turn;
}

static bool have_all_seen(uint64_t turn)
{
	for (uint32_t i = 0; i < WORKERS; i++) {
		if (w.quiescent[i] <= turn)
			return false;
	}
	return true;
}

static bool barrier_passed(void *ctx, uint64_t token)
{
	(void)ctx;
	return have_all_seen(token);
}

static void send(const struct claim *claim)
{
	if (w.ring_count == sizeof(w.ring) / sizeof(w.ring[0]))
		return; // full: the request times out
	w.ring[w.ring_count] = *claim;
	w.ring[w.ring_count].line_id = LINE;
	w.ring[w.ring_count].sent_ms = w.now_ms;
	w.ring_count++;
}

static void draw_ticket(struct visitor *v)
{
	v->id = random_id(NULL);
	v->key = place_mint(w.line, w.now_ms / PLACE_SLOT_MS, 0);
	v->poll_ms = w.wall_ms + 200 + random_below(1000);
}

static void park(uint32_t visitor, enum claim_kind kind, uint64_t id, uint64_t key)
{
	for (uint32_t i = 0; i < REQUESTS; i++) {
		struct request *r = &w.requests[i];
		if (r->is_used)
			continue;
		*r = (struct request){
			true, (uint8_t)kind, r->generation + 1, visitor, id, key, w.wall_ms};
		const struct visitor *v = &w.visitors[visitor];
		bool is_renewal = kind == CLAIM_RENEW;
		send(&(struct claim){
			.kind = (uint8_t)kind,
			.worker = (uint8_t)(i % WORKERS),
			.request = i,
			.generation = r->generation,
			.poll_after = 1,
			.key = key,
			.visitor = id,
			.session = is_renewal ? v->session : 0,
			.expires = is_renewal ? v->expires : 0,
		});
		return;
	}
}

// A pass leaves. Here the promises are checked.
static void check_pass(const struct claim_answer *a)
{
	bool is_unsaved = w.killable.store->status.is_unsaved;
	CHECK(is_unsaved || killable_knows(&w.killable, a->visitor, a->session, a->expires));
	struct seen *seen = seen_of(a->session);
	for (uint32_t i = 0; i < w.left_count && !w.has_lost; i++)
		CHECK(w.left[i] != a->visitor || ended_has(w.ended, a->session));
	CHECK(!ended_has(w.gone, a->visitor));
	if (!seen) {
		CHECK(w.now_ms >= w.quiet_until_ms);
		for (uint32_t i = 0; i < w.seen_count && !w.has_lost; i++)
			CHECK(w.seen[i].id != a->visitor);
		CHECK(w.seen_count < SEEN_MAX);
		seen = &w.seen[w.seen_count++];
		*seen = (struct seen){a->session, a->visitor, a->expires, 0, false};
		w.total.granted++;
	}
	CHECK(seen->id == a->visitor);
	// A renewal whose answer was lost shows up later; and one of another tab may overtake.
	CHECK(a->expires == seen->expires || w.is_sliding || w.has_lost);
	w.total.renewed += a->kind == CLAIM_RENEW && a->expires > seen->expires;
	if (a->expires > seen->expires)
		seen->expires = a->expires;
}

static void lose_ticket(struct visitor *v)
{
	v->key = v->session = 0;
	v->poll_ms = w.wall_ms + random_below(500);
}

// A pass reaches the visitor, who may have gone on without it.
static void admit(struct visitor *v, const struct request *r, const struct claim_answer *a)
{
	check_pass(a);
	if (r->kind == CLAIM_DIRECT) {
		v->id = a->visitor;
		v->key = 0;
	} else if (v->id != r->id) {
		return;
	}
	v->session = a->session;
	v->expires = a->expires;
}

// It is done, or is tried again. Now and then somebody polls with a copy all the same.
static void give_back(struct visitor *v, const struct request *r, bool is_done)
{
	if (!is_done || v->id != r->id)
		return;
	CHECK(w.left_count < SEEN_MAX);
	w.left[w.left_count++] = r->id;
	if (chance(2))
		lose_ticket(v);
}

static void answer_one(const struct claim_answer *a)
{
	struct request *r = &w.requests[a->request];
	if (!r->is_used || r->generation != a->generation) {
		if (a->verdict != CLAIM_GRANTED)
			return;
		w.total.undone++;
		send(&(struct claim){.kind = CLAIM_GONE,
			.visitor = a->visitor,
			.session = a->session,
			.key = a->key});
		return;
	}
	r->is_used = false;
	struct visitor *v = &w.visitors[r->visitor];
	if (r->kind == CLAIM_LEAVE) {
		CHECK(a->verdict == CLAIM_LEFT || a->verdict == CLAIM_REFUSED);
		give_back(v, r, a->verdict == CLAIM_LEFT);
		return;
	}
	if (a->verdict == CLAIM_GRANTED || a->verdict == CLAIM_RENEWED)
		admit(v, r, a);
	else if (a->verdict == CLAIM_REFUSED)
		draw_ticket(v);
	else if (a->verdict == CLAIM_LAPSED && v->id == r->id)
		lose_ticket(v);
	else if (a->verdict == CLAIM_NEXT)
		v->poll_ms = w.wall_ms + a->poll_after * 1000ull;
}

static uint32_t take_answers(
	void *ctx, uint32_t worker, const struct claim_answer *answers, uint32_t count)
{
	(void)ctx;
	CHECK(worker < WORKERS);
	uint32_t taken = chance(200) ? (uint32_t)random_below(count + 1) : count;
	for (uint32_t i = 0; i < taken; i++)
		answer_one(&answers[i]);
	return taken;
}

static bool is_pass_good(const struct visitor *v)
{
	return v->session != 0 && v->expires * 1000ull > w.now_ms &&
	       !ended_has(w.ended, v->session);
}

static void end_session(struct visitor *v)
{
	send(&(struct claim){
		.kind = CLAIM_END, .visitor = v->id, .session = v->session, .expires = v->expires});
	v->poll_ms = w.wall_ms + 300;
}

// Inside: goes on, leaves, or renews.
static void shop(uint32_t visitor)
{
	struct visitor *v = &w.visitors[visitor];
	v->poll_ms = w.wall_ms + 100 + random_below(900);
	if (chance(6))
		end_session(v);
	else if (w.is_sliding && v->expires * 1000ull < w.now_ms + w.session_s * 500)
		park(visitor, CLAIM_RENEW, v->id, v->key);
	else if (v->key && chance(4)) // another tab, with the ticket alone
		park(visitor, CLAIM_CALLED, v->id, v->key);
}

static void arrive(uint32_t visitor)
{
	struct visitor *v = &w.visitors[visitor];
	if (place_take_open(w.line))
		park(visitor, CLAIM_DIRECT, random_id(NULL), 0);
	else
		draw_ticket(v);
}

static void poll(uint32_t visitor)
{
	struct visitor *v = &w.visitors[visitor];
	uint64_t open = w.line->open;
	v->poll_ms = w.wall_ms + 300 + random_below(700);
	if (is_pass_good(v)) {
		shop(visitor);
	} else if (v->session && (v->key == 0 || chance(2))) {
		lose_ticket(v); // done; perhaps it tries the ticket once more
	} else if (v->key == 0) {
		arrive(visitor);
	} else if (v->key < w.line->floor) {
		lose_ticket(v);
	} else if (v->key < w.line->threshold && !(open & PLACE_OPEN_HOLD)) {
		park(visitor, CLAIM_CALLED, v->id, v->key);
		if (chance(5))
			park(visitor, CLAIM_CALLED, v->id, v->key);
	} else if (chance(30)) {
		park(visitor, CLAIM_LEAVE, v->id, v->key);
	}
}

// Requests whose peer has gone, or whose answer takes too long.
static void expire_requests(void)
{
	for (uint32_t i = 0; i < REQUESTS; i++) {
		struct request *r = &w.requests[i];
		if (!r->is_used || (w.wall_ms < r->sent_ms + 1000 && !chance(2000)))
			continue;
		r->is_used = false;
		if (r->kind == CLAIM_CALLED)
			claims_refused(w.claims, LINE, r->key, 1, w.now_ms);
		if (r->kind == CLAIM_DIRECT)
			draw_ticket(&w.visitors[r->visitor]);
	}
}

static void workers_run(void)
{
	for (uint32_t i = 0; i < WORKERS; i++) {
		if (!chance(4))
			w.quiescent[i] = w.turn;
	}
	for (uint32_t i = 0; i < VISITORS; i++) {
		if (w.wall_ms >= w.visitors[i].poll_ms)
			poll(i);
	}
	expire_requests();
}

// The process.

static struct place_line *line_of(void *ctx, uint32_t line_id)
{
	(void)ctx;
	return line_id == LINE ? w.line : NULL;
}

static void process_start(void)
{
	static const struct claims_seams seams = {
		NULL, take_answers, barrier_begin, barrier_passed, NULL, random_id};
	struct claims_plan plan = {1, WORKERS, 256};
	struct controller_limits limits = {.capacity = w.capacity,
		.rate_count = seed % 3 ? 0 : 20,
		.rate_period_ms = 1000,
		.burst = 5,
		.session_s = w.session_s,
		.claim_s = 4,
		.sliding = w.is_sliding,
		.direct = true};
	struct controller_bounds bounds = {4096, 256, 256, seed % 2 ? 64 : 0, seed};
	CHECK(claims_restore_lines(w.killable.store, line_of, NULL) == 0);
	CHECK(place_begin(w.line, w.now_ms / PLACE_SLOT_MS));
	w.controller = controller_create(&limits, &bounds, w.line, w.now_ms);
	w.ended = ended_init(aligned_alloc(64, ended_bytes(256)), 256);
	w.gone = ended_init(aligned_alloc(64, ended_bytes(256)), 256);
	w.claims = claims_create(
		&plan, w.killable.store, &(struct claims_sets){w.ended, w.gone}, &seams);
	CHECK(w.controller && w.claims);
	struct claims_room room = {LINE, w.session_s, GATE_OPEN, w.controller, w.line, false};
	claims_set_rooms(w.claims, &room, 1);
	CHECK(claims_restore(w.claims, w.now_ms) == 0);
	claims_turn(w.claims, NULL, 0, w.now_ms);
}

static void process_stop(void)
{
	claims_destroy(w.claims);
	controller_destroy(w.controller);
	free(w.ended);
	free(w.gone);
}

static bool is_alive(const struct seen *s)
{
	return !s->has_ended && s->expires * 1000ull > w.now_ms;
}

// What the killed process knew and the store does not must be marked.
static void check_lost(bool is_marked)
{
	for (uint32_t i = 0; i < w.seen_count; i++) {
		struct seen *s = &w.seen[i];
		// An end that was not saved has not been, unless more than that was lost; one that
		// was is known before any worker runs.
		bool is_in = ended_has(w.ended, s->session);
		if (is_alive(s) && !is_in)
			CHECK(is_marked ||
				killable_knows(&w.killable, s->id, s->session, s->expires));
		if (s->expires * 1000ull > w.now_ms)
			CHECK(is_in == killable_knows_end(&w.killable, s->session));
		s->has_ended = is_in || (is_marked && s->has_ended);
		s->ending_turn = is_in ? 1 : 0;
	}
}

static void process_kill(void)
{
	w.total.killed++;
	process_stop();
	bool is_marked = killable_kill(&w.killable, chance(2), w.now_ms);
	w.ring_count = 0;
	memset(w.requests, 0, sizeof(w.requests));
	w.now_ms += random_below(2000);
	process_start();
	CHECK(w.killable.store->status.is_unclean == is_marked);
	check_lost(is_marked);
	w.has_lost |= is_marked;
	w.total.killed_unsaved += is_marked;
	if (is_marked)
		w.quiet_until_ms = w.now_ms + w.session_s * 1000ull;
}

// The store's weather, for the next while.
static void change_weather(void)
{
	static const uint64_t delays_ms[] = {0, 0, 5, 30, 300, 1500};
	uint64_t delay_ms = delays_ms[random_below(6)];
	killable_weather(&w.killable, delay_ms, chance(3) ? 1 + (uint32_t)random_below(4) : 0);
}

static void note_ended(void)
{
	for (uint32_t i = 0; i < w.seen_count; i++) {
		struct seen *s = &w.seen[i];
		bool is_in = ended_has(w.ended, s->session);
		if (s->has_ended && s->expires * 1000ull > w.now_ms)
			CHECK(is_in || w.has_lost);
		if (is_in && s->ending_turn == 0)
			s->ending_turn = w.turn;
		bool is_new = is_in && !s->has_ended && have_all_seen(s->ending_turn);
		w.total.ended += is_new;
		s->has_ended |= is_new;
	}
}

static void check_world(void)
{
	uint32_t alive = 0;
	for (uint32_t i = 0; i < w.seen_count; i++)
		alive += is_alive(&w.seen[i]);
	CHECK(alive <= w.capacity);
	CHECK(w.line->threshold >= w.threshold && w.line->floor >= w.floor);
	w.threshold = w.line->threshold;
	w.floor = w.line->floor;
	struct controller_view view;
	controller_look(w.controller, w.now_ms, &view);
	CHECK(view.sessions <= w.capacity);
}

static void step(bool is_fair)
{
	uint64_t elapsed_ms = 5 + random_below(16);
	w.wall_ms += elapsed_ms;
	w.now_ms += elapsed_ms + (!is_fair && chance(3000) ? 3000 : 0);
	w.turn++;
	workers_run();
	if (!is_fair && chance(100))
		change_weather();
	if (!is_fair && chance(700))
		process_kill();
	bool is_busy = claims_is_busy(w.claims);
	uint32_t count = w.ring_count;
	static struct claim claims[4 * REQUESTS];
	memcpy(claims, w.ring, count * sizeof(claims[0]));
	w.ring_count = is_busy ? count : 0;
	claims_turn(w.claims, claims, is_busy ? 0 : count, w.now_ms);
	note_ended();
	check_world();
}

static void world_begin(void)
{
	memset(&w, 0, sizeof(w));
	random_state = seed * 0x9e3779b97f4a7c15 | 1;
	w.now_ms = w.wall_ms = BEGIN_MS;
	w.capacity = 1 + (uint32_t)random_below(15);
	w.session_s = 2 + (uint32_t)random_below(5);
	w.is_sliding = chance(2);
	killable_begin(&w.killable, seed % SQLITE_EVERY == 0);
	w.line = aligned_alloc(64, (place_line_bytes(8192) + 63) / 64 * 64);
	memset(w.line, 0, place_line_bytes(8192));
	place_line_init(w.line, LINE, 8192);
	for (uint32_t i = 0; i < VISITORS; i++)
		w.visitors[i].poll_ms = BEGIN_MS + random_below(5000);
	process_start();
}

static void world_end(void)
{
	CHECK(!w.killable.store->status.is_unsaved && !w.killable.store->status.is_unclean);
	for (uint32_t i = 0; i < w.seen_count; i++) {
		const struct seen *s = &w.seen[i];
		if (is_alive(s))
			CHECK(killable_knows(&w.killable, s->id, s->session, s->expires));
	}
	CHECK(w.total.granted > 0);
	process_stop();
	killable_end(&w.killable, w.now_ms);
	free(w.line);
}

int main(int argc, char **argv)
{
	uint64_t seeds = argc > 1 ? strtoull(argv[1], NULL, 0) : 200;
	uint64_t first = argc > 2 ? strtoull(argv[2], NULL, 0) : 1;
	uint64_t granted = 0, ended = 0, killed = 0, unsaved = 0, renewed = 0, undone = 0;
	fault_vfs_install();
	for (seed = first; seed < first + seeds; seed++) {
		world_begin();
		while (w.wall_ms < BEGIN_MS + RUN_MS)
			step(false);
		killable_weather(&w.killable, 0, 0);
		while (w.wall_ms < BEGIN_MS + RUN_MS + SETTLE_MS)
			step(true);
		world_end();
		granted += w.total.granted;
		renewed += w.total.renewed;
		ended += w.total.ended;
		undone += w.total.undone;
		killed += w.total.killed;
		unsaved += w.total.killed_unsaved;
	}
	printf("%lu seeds: %lu granted, %lu renewed, %lu ended early, %lu undone, killed %lu "
	       "times, "
	       "%lu of them unsaved\n",
		(unsigned long)seeds, (unsigned long)granted, (unsigned long)renewed,
		(unsigned long)ended, (unsigned long)undone, (unsigned long)killed,
		(unsigned long)unsaved);
	return 0;
}
