// Draws over a cluster in one process, in virtual time: appliances with their members, files and
// draws, the store (model.h), the network between them, and people who gather at whichever they
// like: before doors, and in windows after these. Processes are killed and stopped, cut off, and
// the store forgets its last seconds, most of all when the doors open.
//
//   sim_gathered            the seeds that every run of the tests takes
//   sim_gathered FIRST N    N seeds from FIRST on; the seed replays everything
//
// What holds:
//   * every appliance has the same lists: number, slots, tickets before, hashes
//   * nobody is in a list twice; who gathered at an appliance that was not killed is in it
//   * the key of a ticket is the same everywhere, whether it is in the list or not
//   * who is placed exactly has a place of their own, the same everywhere and for ever, unless the
//     store has lost writes
//   * who came behind a list, and to an appliance that was not cut off, stands behind it
//
// LONG: one world, what goes wrong in it, and what holds

#include <assert.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "controlplane/draws/draws.h"
#include "controlplane/draws/draws_cluster.h"
#include "controlplane/draws/draws_file.h"
#include "controlplane/draws/draws_job.h"
#include "dataplane/gate/gather.h"
#include "dataplane/gate/mac_state.h"
#include "tests/sim/cluster/network.h"
#include "tests/unit/controller/random.h"

// A draw on the thread of the simulation, so that a seed replays.
#define draws_job_start draws_job_start_thread
#define draws_job_is_done draws_job_is_done_thread
int draws_job_start_thread(struct draws_job *job);
bool draws_job_is_done_thread(struct draws_job *job, bool wait);
#include "controlplane/draws/draws_job.c"
#undef draws_job_start
#undef draws_job_is_done
int draws_job_start(struct draws_job *job);
bool draws_job_is_done(struct draws_job *job, bool wait);

int draws_job_start(struct draws_job *job)
{
	job->is_running = true;
	return draws_job_run(job);
}

bool draws_job_is_done(struct draws_job *job, bool wait)
{
	(void)wait;
	job->is_running = false;
	return true;
}

#define SEEDS 120u
#define STEP_MS 10u
#define TURN_MS 20u
#define START_MS UINT64_C(1700000000000)
#define LINE_ID 0x77u
#define TYPE 5u // of records
#define RECORDS 128u
#define PEOPLE 260u
#define PREQUEUE_MS 3000u // after the start
#define OPENS_MS 16000u
#define WINDOW_MS 3000u
#define ARRIVALS_END_MS 38000u
#define TROUBLES_END_MS 40000u
#define END_MS 85000u
#define WINDOW (1ull << 62)
#define LATE_MS 2500u // heard of longer ago: cut off

#define CHECK(w, condition) check(w, condition, #condition, __LINE__)

enum trouble { CRASH, STOP, CUT, FAIL_OVER, TROUBLES };

struct site {
	struct appliance a; // first: it is the context of the seams
	struct world *world;
	struct draws *draws;
	struct draws_line *line;
	char folder[64];
	struct draws_said copies[RECORDS];
	bool is_told[RECORDS], is_resyncing;
	uint32_t copy_count, restored;
	uint64_t resume_ms;
	uint32_t lives; // processes it had
};

struct person {
	uint64_t visitor, number, key, came_ms;
	uint64_t place; // that was shown first, and exactly; PLACE_UNKNOWN: none was
	uint32_t site, life; // where, and which process there
	bool is_cut_off; // it had not heard of the store for long
};

struct world {
	uint64_t seed, random, now_ms;
	struct site sites[NETWORK_LINKS];
	uint32_t site_count, person_count;
	struct appliance_line line;
	struct network network;
	struct person people[PEOPLE];
	struct store store;
	double troubles[TROUBLES]; // a minute
	bool has_windows;
	bool has_floor; // it moves, and passes lists
	uint64_t counts[TROUBLES], listed, unlisted, late, lists, passed;
};

static void check(const struct world *w, bool holds, const char *what, int at)
{
	if (holds)
		return;
	fprintf(stderr, "seed %" PRIu64 ", %" PRIu64 " ms, line %d: %s\n", w->seed,
		w->now_ms - START_MS, at, what);
	abort();
}

static bool sometimes(struct world *w, uint32_t of)
{
	return random_below(&w->random, of) == 0;
}

static uint64_t between(struct world *w, uint64_t low, uint64_t high)
{
	return low + random_below(&w->random, high - low + 1);
}

// --- the seams of draws: records as they are, unsealed

static uint32_t id_of(uint32_t line_id, uint64_t number)
{
	return line_id ^ (uint32_t)number;
}

static bool put(void *ctx, const struct draws_said *said)
{
	struct site *s = ctx;
	const struct ledger_record record = {.type = TYPE,
		.is_conductors = true,
		.id = id_of(said->line_id, said->number),
		.version = said->version,
		.len = sizeof(*said),
		.bytes = (const uint8_t *)said};
	return member_put_record(s->a.member, &record);
}

static bool forget(void *ctx, uint32_t line_id, uint64_t number)
{
	struct site *s = ctx;
	const struct ledger_record record = {
		.type = TYPE, .is_conductors = true, .id = id_of(line_id, number)};
	return member_put_record(s->a.member, &record);
}

static bool left(void *ctx, uint32_t line_id, uint64_t *number, uint64_t *visitor)
{
	struct site *s = ctx;
	return member_left_gathered(s->a.member, line_id, number, visitor);
}

static uint64_t now_of(const struct site *s)
{
	return appliance_now(&s->a, s->world->now_ms);
}

static void see(struct site *s)
{
	struct member_status status;
	member_status(s->a.member, &status);
	struct draws_cluster_view view = {.is_known = status.is_ready,
		.is_in_office = status.office.is_in_office && status.is_ready && !status.is_away &&
				!status.is_resyncing && !status.is_recovering &&
				status.cursor == status.newest,
		.final = status.final,
		.epoch = status.epoch};
	for (uint32_t i = 0; i < status.member_count; i++)
		view.live |= (uint64_t)status.members[i].is_live << status.members[i].number;
	draws_cluster_see(s->draws, &view);
	if (status.is_resyncing && !s->is_resyncing)
		memset(s->is_told, 0, sizeof(s->is_told));
	s->is_resyncing = status.is_resyncing;
}

// --- and those of its member

static void forget_copy(struct site *s, uint32_t i)
{
	const struct draws_said was = s->copies[i];
	s->copies[i] = s->copies[--s->copy_count];
	s->is_told[i] = s->is_told[s->copy_count];
	draws_untold(s->draws, was.line_id, was.number);
}

static void resynced(void *ctx)
{
	struct site *s = ctx;
	for (uint32_t i = s->copy_count; i-- > 0;)
		if (!s->is_told[i])
			forget_copy(s, i);
}

static void record(void *ctx, uint8_t type, uint32_t id, const uint8_t *bytes, uint32_t len)
{
	struct site *s = ctx;
	struct draws_said said;
	uint32_t i = 0;
	while (i < s->copy_count && id_of(s->copies[i].line_id, s->copies[i].number) != id)
		i++;
	if (type != TYPE || len != sizeof(said)) {
		if (i < s->copy_count && type == TYPE)
			forget_copy(s, i);
		return;
	}
	memcpy(&said, bytes, sizeof(said));
	assert(i < RECORDS);
	s->copy_count += i == s->copy_count;
	s->copies[i] = said;
	s->is_told[i] = true;
	draws_told(s->draws, &said, now_of(s));
}

static bool restore(void *ctx)
{
	struct site *s = ctx;
	see(s);
	for (; s->restored < s->copy_count; s->restored++) {
		const struct draws_said *said = &s->copies[s->restored];
		const struct ledger_record is = {.type = TYPE,
			.id = id_of(said->line_id, said->number),
			.version = said->version,
			.len = sizeof(*said),
			.bytes = (const uint8_t *)said};
		if (!member_put_record(s->a.member, &is))
			return false;
	}
	if (!draws_is_restored(s->draws))
		return false;
	s->restored = 0;
	return true;
}

static uint32_t offer(void *ctx, struct ledger_entry *entries, uint32_t max)
{
	struct site *s = ctx;
	return draws_cluster_offer(s->draws, entries, max, now_of(s));
}

static void offered(void *ctx, const struct ledger_entry *entry, const struct ledger_answer *answer)
{
	struct site *s = ctx;
	if (entry->kind == LEDGER_GATHERED && entry->gathered.what == LEDGER_GATHERED_PLACED)
		member_left_placed(s->a.member, entry->line, &entry->gathered);
	draws_cluster_offered(s->draws, entry, answer);
}

static void gathered(void *ctx, const struct ledger_news *item)
{
	struct site *s = ctx;
	draws_cluster_gathered(s->draws, item);
}

static uint64_t drawn_before(void *ctx, uint32_t line_id)
{
	struct site *s = ctx;
	return draws_before(s->draws, line_id);
}

static const struct member_seams more = {.record = record,
	.restore = restore,
	.offer = offer,
	.offered = offered,
	.gathered = gathered,
	.resynced = resynced,
	.drawn_before = drawn_before};

// --- a process

static uint64_t barrier_begin(void *ctx)
{
	struct site *s = ctx;
	return s->a.barrier + 1;
}

static bool barrier_passed(void *ctx, uint64_t token)
{
	const struct site *s = ctx;
	return s->a.barrier >= token;
}

static void fill_random(void *ctx, uint8_t *bytes, uint32_t count)
{
	struct site *s = ctx;
	for (uint32_t i = 0; i < count; i++)
		bytes[i] = (uint8_t)random_next(&s->world->random);
}

static void say(void *ctx, uint32_t line_id, const char *text)
{
	const struct site *s = ctx;
	(void)line_id;
	CHECK(s->world, !strstr(text, "too late"));
}

static void start(struct site *s)
{
	const struct draws_plan plan = {.folder = s->folder};
	const struct draws_seams seams = {.ctx = s,
		.barrier_begin = barrier_begin,
		.barrier_passed = barrier_passed,
		.random = fill_random,
		.say = say};
	const struct draws_cluster_seams cluster = {.ctx = s,
		.source = 1 + (uint64_t)(s - s->world->sites),
		.sync_ms = 200,
		.put = put,
		.forget = forget,
		.left = left};
	s->copy_count = s->restored = 0;
	s->is_resyncing = false;
	s->lives++;
	atomic_store(&s->a.rooms[0].line->drawn, NULL);
	appliance_start(&s->a, s->world->now_ms);
	const int ret = draws_create(&plan, &s->world->store, &seams, &s->draws);
	assert(ret == 0);
	draws_share(s->draws, &cluster);
	see(s);
	s->line = draws_take(s->draws, LINE_ID, s->a.rooms[0].line, true);
	assert(s->line);
}

static void stop(struct site *s)
{
	draws_destroy(s->draws);
	s->draws = NULL;
	appliance_kill(&s->a);
}

// What its room wishes, by its own clock: people gather for doors, then in windows, or come as they
// come.
static struct draws_wish wish_of(const struct site *s, const struct draws_view *view)
{
	const struct world *w = s->world;
	const uint64_t since_ms = now_of(s) - START_MS - (uint64_t)w->network.clock_ms;
	struct draws_wish wish = {.prepares = true, .is_shut = true, .gathered_max = PEOPLE};
	const bool is_open = since_ms >= OPENS_MS && since_ms < UINT64_MAX / 2;
	const bool has_list = since_ms < OPENS_MS + 1000;
	const bool is_joined = view->is_gathering && !(view->epoch & WINDOW);
	if (has_list && (is_joined || (since_ms >= PREQUEUE_MS && !is_open))) {
		wish.gathers = true;
		wish.epoch = OPENS_MS;
	} else if (is_open && w->has_windows && since_ms < ARRIVALS_END_MS + 5000) {
		wish.gathers = true;
		wish.keeps_empty = !view->is_gathering || view->epoch & WINDOW;
		wish.epoch = WINDOW | since_ms / WINDOW_MS;
	}
	wish.is_shut = !is_open && !wish.gathers;
	if (view->is_gathering)
		wish.closes_ms =
			START_MS + (uint64_t)w->network.clock_ms +
			(is_joined ? OPENS_MS + 1000 : ((view->epoch & ~WINDOW) + 1) * WINDOW_MS);
	wish.stops = is_joined && is_open && !has_list;
	return wish;
}

// Whether its doors are open to visitors, as wishes_state() says.
static bool is_open(const struct site *s, const struct draws_view *view)
{
	const uint64_t since_ms = now_of(s) - START_MS - (uint64_t)s->world->network.clock_ms;
	const bool waits = (view->is_gathering && !(view->epoch & WINDOW)) ||
			   (view->closing_epoch && !(view->closing_epoch & WINDOW));
	return since_ms >= OPENS_MS && since_ms < UINT64_MAX / 2 && !waits && !view->is_unknown;
}

// Floor passes all lists but the last two.
static void move_floor(struct site *s)
{
	const struct draw_set *set = atomic_load(&s->a.rooms[0].line->drawn);
	struct member_status status;
	member_status(s->a.member, &status);
	if (!s->world->has_floor || !status.office.is_in_office || !set || set->count < 3)
		return;
	const struct draw_list *passed = set->lists[set->count - 3];
	member_lapse(s->a.member, LINE_ID, place_key(passed->end_slot, 0, 0));
}

static void turn(struct site *s)
{
	struct draws_view view;
	see(s);
	draws_turn(s->draws, now_of(s));
	move_floor(s);
	draws_look(s->line, &view);
	const struct draws_wish wish = wish_of(s, &view);
	if (s->a.is_clock_set)
		draws_wish(s->line, &wish, now_of(s));
	appliance_turn(&s->a, s->world->now_ms);
}

// --- what goes wrong

static void trouble(struct world *w, enum trouble kind)
{
	const uint32_t i = (uint32_t)random_below(&w->random, w->site_count);
	struct site *s = &w->sites[i];
	if (kind <= STOP && (s->a.state != APPLIANCE_UP || s->resume_ms != 0))
		return;
	w->counts[kind]++;
	if (kind == CRASH) {
		stop(s);
		network_reset(&w->network, i, w->now_ms);
		s->resume_ms = w->now_ms + between(w, 50, 12000);
	} else if (kind == STOP) {
		s->a.state = APPLIANCE_STOPPED;
		s->resume_ms = w->now_ms + between(w, 10, 10000);
	} else if (kind == CUT) {
		w->network.links[i].cut_until_ms = w->now_ms + between(w, 10, 10000);
		if (sometimes(w, 2))
			network_break(&w->network, i, w->now_ms);
	} else {
		network_fail_over(&w->network, between(w, 0, 2000), between(w, 0, 2000), w->now_ms);
	}
}

static void go_wrong(struct world *w)
{
	const uint64_t since_ms = w->now_ms - START_MS;
	const bool is_hot = since_ms + 1500 > OPENS_MS && since_ms < OPENS_MS + 3000;
	for (int kind = 0; kind < TROUBLES && since_ms < TROUBLES_END_MS; kind++) {
		const double share = w->troubles[kind] * (is_hot ? 6 : 1) * STEP_MS / 60000;
		if (since_ms > 2000 && (double)random_below(&w->random, 1000000) < share * 1e6)
			trouble(w, (enum trouble)kind);
	}
	for (uint32_t i = 0; i < w->site_count; i++) {
		struct site *s = &w->sites[i];
		if (s->resume_ms == 0 || w->now_ms < s->resume_ms)
			continue;
		s->resume_ms = 0;
		if (s->a.state == APPLIANCE_STOPPED)
			s->a.state = APPLIANCE_UP;
		else
			start(s);
	}
}

// --- people

static void come(struct world *w)
{
	const uint32_t i = (uint32_t)random_below(&w->random, w->site_count);
	struct site *s = &w->sites[i];
	struct draws_view view;
	if (w->person_count == PEOPLE || !appliance_serves(&s->a) || !s->a.is_clock_set)
		return;
	draws_look(s->line, &view);
	struct person *p = &w->people[w->person_count];
	*p = (struct person){.visitor = random_next(&w->random) | 1,
		.came_ms = w->now_ms,
		.site = i,
		.life = s->lives,
		.place = PLACE_UNKNOWN,
		.is_cut_off = w->now_ms > s->a.heard_ms + LATE_MS};
	struct gather_ids *ids = atomic_load(&draws_gather(s->line)->open);
	struct place_line *line = s->a.rooms[0].line;
	if (ids)
		p->number = gather_join(ids, line, p->visitor);
	else if (is_open(s, &view))
		p->key = place_mint(line, now_of(s) / PLACE_SLOT_MS, s->a.number);
	w->person_count += p->number > 0 || p->key > 0;
}

// The place of somebody at an appliance; UINT64_MAX: it is not known there yet.
static uint64_t place_at(const struct site *s, const struct person *p, uint64_t *key, bool *exact)
{
	uint64_t rank, hash, place;
	*key = p->key;
	*exact = false;
	if (p->number && !draws_key(s->line, p->number, p->visitor, key))
		return PLACE_UNKNOWN;
	if (*key == 0)
		return PLACE_UNKNOWN;
	*exact = place_rank(s->a.rooms[0].line, *key, &rank);
	const struct draw_list *list =
		p->number ? draws_place(s->line, p->number, 0, p->visitor, &hash, &place) : NULL;
	*exact &= !p->number || list;
	return list ? list->base + place : rank;
}

// Ranks of slots that a store took and lost are not what they were (decision 0036), and with them
// what stands before a list; the lists themselves are.
static bool has_lost(const struct world *w)
{
	return w->counts[FAIL_OVER] > 0;
}

// Somebody asks somewhere: the place is the one that was shown before.
static void ask(struct world *w)
{
	if (w->person_count == 0)
		return;
	struct person *p = &w->people[random_below(&w->random, w->person_count)];
	struct site *s = &w->sites[random_below(&w->random, w->site_count)];
	uint64_t key;
	bool exact;
	if (!appliance_serves(&s->a))
		return;
	CHECK(w, !p->number || gather_is_undrawn(draws_gather(s->line), p->number) ||
			 draws_key(s->line, p->number, p->visitor, &key));
	const uint64_t place = place_at(s, p, &key, &exact);
	if (place == PLACE_UNKNOWN || !exact || has_lost(w) ||
		key < atomic_load(&s->a.rooms[0].line->floor))
		return;
	CHECK(w, p->place == PLACE_UNKNOWN || p->place == place);
	p->place = place;
}

// --- what holds in the end

static void check_lists(struct world *w)
{
	const struct draw_set *first = atomic_load(&w->sites[0].a.rooms[0].line->drawn);
	CHECK(w, first && first->count > 0);
	w->lists += first->count;
	for (uint32_t i = 0; i < w->site_count; i++) {
		const struct draw_set *set = atomic_load(&w->sites[i].a.rooms[0].line->drawn);
		CHECK(w, set && set->count == first->count);
		for (uint32_t j = 0; j < set->count; j++) {
			const struct draw_list *a = first->lists[j], *b = set->lists[j];
			CHECK(w, a->number == b->number && a->first_slot == b->first_slot);
			CHECK(w, a->end_slot == b->end_slot);
			CHECK(w, a->base == b->base || has_lost(w));
			CHECK(w, a->count == b->count);
			CHECK(w, memcmp(a->hashes, b->hashes, a->count * sizeof(*a->hashes)) == 0);
			for (uint64_t k = 1; k < a->count; k++)
				CHECK(w, a->hashes[k - 1] < a->hashes[k]);
			CHECK(w, j == 0 || a->first_slot >= first->lists[j - 1]->end_slot);
		}
	}
}

// Who came to an appliance that knew what goes on is behind all lists that were closed.
static void check_late(struct world *w, const struct person *p)
{
	const struct draw_set *set = atomic_load(&w->sites[0].a.rooms[0].line->drawn);
	for (uint32_t j = 0; j < set->count && !p->is_cut_off; j++)
		CHECK(w, p->key < place_key(set->lists[j]->first_slot, 0, 0) ||
				 p->key >= place_key(set->lists[j]->end_slot, 0, 0));
	w->late++;
}

// Whether floor has passed them.
static bool is_passed(const struct world *w, const struct person *p)
{
	const struct site *s = &w->sites[0];
	uint64_t key = p->key;
	const bool is_known = p->number == 0 || draws_key(s->line, p->number, p->visitor, &key);
	return is_known && key < atomic_load(&s->a.rooms[0].line->floor);
}

static void check_person(struct world *w, const struct person *p, bool *taken)
{
	uint64_t key, first_key = 0, place = PLACE_UNKNOWN;
	bool exact = false;
	for (uint32_t i = 0; i < w->site_count; i++) {
		const uint64_t here = place_at(&w->sites[i], p, &key, &exact);
		CHECK(w, key != 0 && here != PLACE_UNKNOWN);
		CHECK(w, i == 0 || key == first_key);
		CHECK(w, i == 0 || here == place || has_lost(w));
		first_key = key;
		place = here;
	}
	CHECK(w, !exact || p->place == PLACE_UNKNOWN || p->place == place || has_lost(w));
	if (p->number == 0)
		check_late(w, p);
	else if (exact)
		w->listed++;
	else
		w->unlisted++;
	// Of an appliance that neither died nor was silent, nobody is missing.
	CHECK(w, exact || w->counts[CRASH] + w->counts[STOP] + w->counts[CUT] +
					  w->counts[FAIL_OVER] >
				  0);
	if (!exact || has_lost(w))
		return;
	CHECK(w, place < PEOPLE && !taken[place]);
	taken[place] = true;
}

static void check_all(struct world *w)
{
	bool taken[PEOPLE] = {false};
	check_lists(w);
	for (uint32_t i = 0; i < w->person_count; i++) {
		if (is_passed(w, &w->people[i]))
			w->passed++;
		else
			check_person(w, &w->people[i], taken);
	}
	const struct model_node *line = model_find(&w->network.model, LINE_ID);
	CHECK(w, line && line->gathering == 0);
	for (uint32_t i = 0; i < w->site_count; i++)
		CHECK(w, atomic_load(&w->sites[i].a.rooms[0].line->gathered) == 0);
}

// --- a run

static int load(struct store *s, enum store_kind kind, uint64_t max, store_record_fn *fn, void *ctx)
{
	(void)s, (void)kind, (void)max, (void)fn, (void)ctx;
	return 0;
}

static void begin(struct world *w, uint64_t seed)
{
	static const struct store_ops ops = {.load = load};
	*w = (struct world){.seed = seed, .random = seed * 7919, .now_ms = START_MS};
	w->store.ops = &ops;
	w->site_count = (uint32_t)between(w, 2, NETWORK_LINKS);
	w->has_windows = sometimes(w, 2);
	w->has_floor = seed % 2 == 0;
	w->line = (struct appliance_line){.id = LINE_ID,
		.claim_s = 3600,
		.node = {.is_line = true,
			.priority = 1,
			.weight = 1,
			.session_s = 10,
			.present_max = 64,
			.left_max = 64,
			.ended_max = 64,
			.config = 42,
			.limits = {.rate_count = 1, .rate_period_ms = 3600000, .burst = 1}}};
	network_init(&w->network, &w->random);
	w->network.faults.delay_max_ms = (uint32_t)between(w, 0, 10);
	if (!sometimes(w, 4)) {
		static const uint32_t most[TROUBLES] = {5, 4, 4, 2};
		for (int kind = 0; kind < TROUBLES; kind++)
			w->troubles[kind] = sometimes(w, 2) ? 0 : (double)between(w, 0, most[kind]);
		w->network.faults.news_lost = (double)between(w, 0, 200) / 1000;
	}
	w->network.has_journal = true;
	for (uint32_t i = 0; i < w->site_count; i++) {
		struct site *s = &w->sites[i];
		char name[8];
		s->world = w;
		snprintf(name, sizeof(name), "edge-%u", i);
		snprintf(s->folder, sizeof(s->folder), "/tmp/sluice-gathered-XXXXXX");
		if (!mkdtemp(s->folder))
			abort();
		appliance_init(&s->a, name, &w->line, 1, NULL, &w->random);
		s->a.more = &more;
		network_add(&w->network, &s->a);
		start(s);
	}
}

static void step(struct world *w)
{
	const uint64_t since_ms = (w->now_ms += STEP_MS) - START_MS;
	go_wrong(w);
	network_turn(&w->network, w->now_ms);
	for (uint32_t i = 0; i < w->site_count; i++)
		if (w->sites[i].a.state == APPLIANCE_UP && (w->now_ms / STEP_MS + i) % 2 == 0)
			turn(&w->sites[i]);
	if (since_ms > 1000 && since_ms < ARRIVALS_END_MS && sometimes(w, 14))
		come(w);
	ask(w);
}

static bool is_any(void *ctx, uint32_t line_id, uint64_t number)
{
	(void)ctx, (void)line_id, (void)number;
	return true;
}

static void end(struct world *w)
{
	network_fini(&w->network);
	for (uint32_t i = 0; i < w->site_count; i++) {
		struct site *s = &w->sites[i];
		draws_destroy(s->draws);
		draws_file_sweep(s->folder, is_any, NULL);
		appliance_fini(&s->a);
		rmdir(s->folder);
	}
}

int main(int argc, char **argv)
{
	static struct world world;
	const uint64_t first = argc > 1 ? strtoull(argv[1], NULL, 10) : 1;
	const uint64_t count = argc > 2 ? strtoull(argv[2], NULL, 10) : argc > 1 ? 1 : SEEDS;
	struct world total = {0};
	for (uint64_t seed = first; seed < first + count; seed++) {
		struct world *w = &world;
		begin(w, seed);
		while (w->now_ms < START_MS + END_MS)
			step(w);
		check_all(w);
		total.listed += w->listed;
		total.unlisted += w->unlisted;
		total.late += w->late;
		total.lists += w->lists;
		total.passed += w->passed;
		for (int kind = 0; kind < TROUBLES; kind++)
			total.counts[kind] += w->counts[kind];
		end(w);
	}
	printf("seeds %" PRIu64 " to %" PRIu64 ": %" PRIu64 " lists of %" PRIu64 " people, %" PRIu64
	       " besides with a place by their hash, %" PRIu64
	       " came behind, floor has passed %" PRIu64 "; troubles",
		first, first + count - 1, total.lists, total.listed, total.unlisted, total.late,
		total.passed);
	for (int kind = 0; kind < TROUBLES; kind++)
		printf(" %" PRIu64, total.counts[kind]);
	printf("\n");
	return 0;
}
