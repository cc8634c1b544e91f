// Conductor: what it says after which replies.

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>

#include <cmocka.h>

#include <stdlib.h>
#include <string.h>

#include "controlplane/cluster/conductor.h"
#include "controlplane/controller/controller.h"
#include "dataplane/gate/pace.h"
#include "dataplane/gate/place.h"

#define START_MS 1764500000000ull
#define TICKETS 500u
#define LINE 7u
#define POOL 9u
#define FENCE 3u

// A conductor, and the one who sends its batches: answers are DONE unless a test says otherwise.
struct desk {
	struct conductor *conductor;
	struct place_line *place;
	struct ledger_entry entries[CONDUCTOR_ENTRIES_MAX];
	uint32_t count;
	struct ledger_view view; // of the line
	struct ledger_member members[2];
	uint32_t member_count;
	uint64_t now_ms, fence;
	int64_t correction_ms, raw_ahead_ms;
	uint8_t conductor_is, node_verdict, threshold_verdict;
	bool is_skewed, is_recovering;
};

static struct conductor_node line_node(const struct desk *d)
{
	return (struct conductor_node){.id = LINE,
		.node = {.limits = {.capacity = 100, .burst = 1},
			.priority = 1,
			.weight = 1,
			.is_line = true,
			.session_s = 600,
			.present_max = 100,
			.left_max = 100,
			.ended_max = 100},
		.claim_s = 30,
		.place = d->place,
		.is_open = true};
}

static struct conductor_node pool_node(uint32_t id, uint32_t parent)
{
	return (struct conductor_node){.id = id,
		.node = {.limits = {.capacity = 100, .burst = 1},
			.parent = parent,
			.priority = 1,
			.weight = 1,
			.present_max = 1,
			.left_max = 1,
			.ended_max = 1}};
}

// A line in which TICKETS wait, one each 10 ms.
static struct place_line *waiting_line(void)
{
	struct place_line *place = calloc(1, place_line_bytes(4096));
	assert_non_null(place);
	place_line_init(place, LINE, 4096);
	atomic_store(&place->entries_ready, 4096);
	place_begin(place, START_MS / PLACE_SLOT_MS - TICKETS);
	for (uint64_t i = 0; i < TICKETS; i++)
		assert_true(place_mint(place, START_MS / PLACE_SLOT_MS - TICKETS + i, 0) != 0);
	place_close(place, START_MS / PLACE_SLOT_MS);
	return place;
}

static void desk_open(struct desk *d)
{
	static const struct conductor_plan plan = {.nodes_max = 80};
	*d = (struct desk){.now_ms = START_MS,
		.fence = FENCE,
		.node_verdict = LEDGER_DONE,
		.threshold_verdict = LEDGER_DONE,
		.place = waiting_line()};
	d->view.first_present = d->view.first_held = UINT64_MAX;
	d->view.rated = d->view.all_left = d->view.direct_left = d->view.people = UINT32_MAX;
	d->view.total = TICKETS;
	d->conductor = conductor_create(&plan, d->now_ms);
	const struct conductor_node node = line_node(d);
	assert_non_null(d->conductor);
	assert_true(conductor_set_nodes(d->conductor, &node, 1, d->now_ms));
}

static void desk_close(struct desk *d)
{
	conductor_destroy(d->conductor);
	free(d->place);
}

static void hear(struct desk *d, const struct ledger_entry *e)
{
	struct ledger_answer answer = {.kind = e->kind, .verdict = LEDGER_DONE};
	if (e->kind == LEDGER_NODE)
		answer.verdict = d->node_verdict;
	if (e->kind == LEDGER_THRESHOLD) {
		answer.verdict = d->threshold_verdict;
		if (answer.verdict == LEDGER_DONE) {
			d->view.threshold = e->threshold.threshold;
			d->view.threshold_rank = e->threshold.threshold_rank;
			d->view.floor = e->threshold.floor;
			d->view.floor_rank = e->threshold.floor_rank;
			d->view.words = e->threshold.words;
		}
	}
	if (e->kind == LEDGER_VIEW && e->line == LINE)
		answer.view = d->view;
	if (e->kind == LEDGER_ELECT && d->conductor_is != 0)
		answer.verdict = LEDGER_REFUSED;
	conductor_answer(d->conductor, e, &answer, d->now_ms);
}

// A batch and its reply, 10 ms later.
static void batch(struct desk *d)
{
	const uint64_t sent_ms = d->now_ms;
	d->count = conductor_entries(d->conductor, d->entries, CONDUCTOR_ENTRIES_MAX, d->now_ms);
	d->now_ms += 10;
	const int64_t raw_ms = (int64_t)sent_ms + 5 + d->raw_ahead_ms;
	const int64_t time_ms = raw_ms + d->correction_ms; // before its entries
	for (uint32_t i = 0; i < d->count; i++) {
		if (d->entries[i].kind == LEDGER_CORRECTION)
			d->correction_ms = d->entries[i].correction_ms;
	}
	const struct ledger_reply reply = {.verdict = LEDGER_BATCH_TAKEN,
		.is_skewed = d->is_skewed,
		.is_recovering = d->is_recovering,
		.conductor = d->conductor_is,
		.fence = d->fence,
		.raw_ms = (uint64_t)raw_ms,
		.time_ms = (uint64_t)time_ms,
		.correction_ms = d->correction_ms};
	conductor_reply(d->conductor, &reply, sent_ms, d->now_ms);
	for (uint32_t i = 0; i < d->member_count; i++)
		conductor_member(d->conductor, &d->members[i], d->now_ms);
	for (uint32_t i = 0; i < d->count; i++)
		hear(d, &d->entries[i]);
}

static const struct ledger_entry *said(const struct desk *d, uint8_t kind)
{
	for (uint32_t i = 0; i < d->count; i++) {
		if (d->entries[i].kind == kind)
			return &d->entries[i];
	}
	return NULL;
}

static uint32_t count_said(const struct desk *d, uint8_t kind)
{
	uint32_t count = 0;
	for (uint32_t i = 0; i < d->count; i++)
		count += d->entries[i].kind == kind;
	return count;
}

// Batches for `ms`; returns how many thresholds were said.
static uint32_t run(struct desk *d, uint64_t ms)
{
	uint32_t count = 0;
	for (uint64_t until = d->now_ms + ms; d->now_ms < until;) {
		batch(d);
		count += count_said(d, LEDGER_THRESHOLD);
	}
	return count;
}

static uint64_t key_of_rank(const struct desk *d, uint64_t rank)
{
	return place_key_at(d->place, rank);
}

// --- office

static void it_stands_speaks_and_is_replaced(void **state)
{
	(void)state;
	struct desk d;
	desk_open(&d);
	assert_true(conductor_fence(d.conductor) == 0);
	batch(&d); // ELECT alone; then nodes, then views, then what follows from them
	assert_int_equal(d.count, 1);
	assert_int_equal(d.entries[0].kind, LEDGER_ELECT);
	assert_true(conductor_fence(d.conductor) == FENCE);
	batch(&d);
	assert_int_equal(d.count, 1);
	assert_int_equal(d.entries[0].kind, LEDGER_NODE);
	batch(&d);
	assert_int_equal(d.count, 1);
	assert_int_equal(d.entries[0].kind, LEDGER_VIEW);
	batch(&d);
	assert_non_null(said(&d, LEDGER_THRESHOLD));
	run(&d, 2 * CONDUCTOR_RENEW_MS);
	d.conductor_is = 1; // another's lease
	d.fence++;
	batch(&d);
	assert_true(conductor_fence(d.conductor) == 0);
	for (int i = 0; i < 100; i++) {
		batch(&d);
		assert_int_equal(d.count, count_said(&d, LEDGER_ELECT));
	}
	d.conductor_is = 0;
	d.fence++;
	run(&d, CONDUCTOR_RENEW_MS);
	assert_true(conductor_fence(d.conductor) == d.fence);
	desk_close(&d);
}

static void a_store_away_ends_office(void **state)
{
	(void)state;
	struct desk d;
	struct conductor_status status;
	desk_open(&d);
	run(&d, 500);
	conductor_look(d.conductor, &status);
	assert_true(status.is_in_office && status.fence == FENCE);
	conductor_lost(d.conductor);
	conductor_look(d.conductor, &status);
	assert_false(status.is_in_office);
	desk_close(&d);
}

// --- nodes

static void nodes_are_said_when_they_change(void **state)
{
	(void)state;
	struct desk d;
	desk_open(&d);
	struct conductor_node nodes[2] = {pool_node(POOL, 0), line_node(&d)};
	nodes[1].node.parent = POOL;
	run(&d, 200);
	assert_true(conductor_set_nodes(d.conductor, nodes, 2, d.now_ms));
	batch(&d);
	assert_int_equal(count_said(&d, LEDGER_NODE), 2);
	assert_int_equal(said(&d, LEDGER_NODE)->line, POOL); // parents first
	for (int i = 0; i < 30; i++) {
		batch(&d);
		assert_null(said(&d, LEDGER_NODE));
	}
	nodes[1].node.limits.capacity = 50;
	assert_true(conductor_set_nodes(d.conductor, nodes, 2, d.now_ms));
	batch(&d);
	assert_int_equal(count_said(&d, LEDGER_NODE), 1);
	assert_int_equal(said(&d, LEDGER_NODE)->node.limits.capacity, 50);
	d.fence++; // in office anew: all of them
	d.conductor_is = 1;
	batch(&d);
	d.conductor_is = 0;
	run(&d, CONDUCTOR_RENEW_MS);
	batch(&d);
	nodes[1].node.parent = 0;
	assert_true(conductor_set_nodes(d.conductor, &nodes[1], 1, d.now_ms)); // the pool is gone
	batch(&d);
	assert_int_equal(count_said(&d, LEDGER_NODE), 1);
	desk_close(&d);
}

static void a_refused_node_is_left_out(void **state)
{
	(void)state;
	struct desk d;
	struct conductor_status status;
	desk_open(&d);
	d.node_verdict = LEDGER_REFUSED;
	run(&d, 500);
	conductor_look(d.conductor, &status);
	assert_int_equal(status.refused_total, 1);
	assert_null(said(&d, LEDGER_VIEW));
	d.node_verdict = LEDGER_STALE; // not taken: it is said again
	struct conductor_node node = line_node(&d);
	node.node.limits.capacity++;
	assert_true(conductor_set_nodes(d.conductor, &node, 1, d.now_ms));
	batch(&d);
	assert_non_null(said(&d, LEDGER_NODE));
	batch(&d);
	assert_non_null(said(&d, LEDGER_NODE));
	desk_close(&d);
}

static void nodes_are_bounded_and_ordered(void **state)
{
	(void)state;
	struct desk d;
	desk_open(&d);
	struct conductor_node nodes[81];
	for (uint32_t i = 0; i < 81; i++)
		nodes[i] = pool_node(100 + i, i > 0 ? 100 : 0);
	assert_true(conductor_set_nodes(d.conductor, nodes, 80, d.now_ms));
	assert_false(conductor_set_nodes(d.conductor, nodes, 81, d.now_ms));
	nodes[0].node.parent = 101; // not before it
	assert_false(conductor_set_nodes(d.conductor, nodes, 2, d.now_ms));
	nodes[0] = nodes[1] = pool_node(100, 0);
	assert_false(conductor_set_nodes(d.conductor, nodes, 2, d.now_ms));
	nodes[0] = line_node(&d); // a line has nothing below it
	nodes[1] = pool_node(100, LINE);
	assert_false(conductor_set_nodes(d.conductor, nodes, 2, d.now_ms));
	// What was set stays: of 80, a batch says so many, and looks at so many, each in its turn.
	run(&d, 10);
	uint32_t seen[81] = {0}, most = 0;
	for (int i = 0; i < 40; i++) {
		batch(&d);
		assert_true(count_said(&d, LEDGER_NODE) <= CONDUCTOR_NODES_MAX);
		const uint32_t views = count_said(&d, LEDGER_VIEW);
		most = views > most ? views : most;
		for (uint32_t j = 0; j < d.count; j++)
			seen[d.entries[j].line % 100] += d.entries[j].kind == LEDGER_VIEW;
	}
	assert_int_equal(most, CONDUCTOR_VIEWS_MAX);
	for (uint32_t i = 0; i < 80; i++)
		assert_true(seen[i] >= 5);
	desk_close(&d);
}

// --- thresholds

static void it_calls_as_many_as_there_are_slots(void **state)
{
	(void)state;
	struct desk d;
	desk_open(&d);
	run(&d, 40);
	assert_true(d.view.threshold == key_of_rank(&d, 100));
	assert_int_equal(d.view.threshold_rank, 100);
	assert_int_equal(d.view.words.called, 100);
	assert_true(d.view.words.at_ms <= d.now_ms && d.view.words.at_ms + 50 > d.now_ms);
	// Nothing moves: once a second.
	assert_int_equal(run(&d, 10 * CONDUCTOR_WORDS_MS), 10);
	assert_int_equal(d.view.threshold_rank, 100);
	// Whoever comes is granted; five leave: five more are called, at once.
	d.view.taken = 95;
	d.view.settled = 100;
	d.view.came_count = 100;
	d.view.came_total = d.view.admitted_total = 100;
	for (uint32_t i = 0; i < 100; i++)
		d.view.came[i] = key_of_rank(&d, i);
	run(&d, 60);
	d.view.came_count = 0;
	run(&d, 100);
	assert_int_equal(d.view.threshold_rank, 105);
	desk_close(&d);
}

static void what_is_refused_is_said_again(void **state)
{
	(void)state;
	struct desk d;
	desk_open(&d);
	d.threshold_verdict = LEDGER_REFUSED;
	run(&d, 200);
	d.threshold_verdict = LEDGER_DONE;
	run(&d, 2 * CONDUCTOR_TURN_MS + 20);
	assert_int_equal(d.view.threshold_rank, 100);
	desk_close(&d);
}

static void a_closed_line_is_said_at_once_and_stands(void **state)
{
	(void)state;
	struct desk d;
	desk_open(&d);
	run(&d, 200);
	conductor_set_open(d.conductor, LINE, false, d.now_ms);
	d.view.taken = 0;
	batch(&d);
	batch(&d);
	assert_non_null(said(&d, LEDGER_THRESHOLD));
	assert_false(said(&d, LEDGER_THRESHOLD)->threshold.is_open);
	// Nobody is called, and no turn ends, for an hour.
	assert_int_equal(run(&d, 3600000 / 100), 36);
	d.now_ms += 3600000;
	run(&d, 100);
	assert_int_equal(d.view.threshold_rank, 100);
	assert_true(d.view.floor == 0);
	conductor_set_open(d.conductor, LINE, true, d.now_ms);
	run(&d, (PACE_MAX_S + 30) * 1000 - 1000);
	assert_true(d.view.floor == 0);
	run(&d, 3000 + CONDUCTOR_HEARD_MS);
	assert_true(d.view.floor == key_of_rank(&d, 100));
	desk_close(&d);
}

static void more_are_released_by_who_is_in_office(void **state)
{
	(void)state;
	struct desk d;
	desk_open(&d);
	assert_false(conductor_release(d.conductor, LINE, 5));
	run(&d, 100);
	assert_true(conductor_release(d.conductor, LINE, 5));
	assert_false(conductor_release(d.conductor, LINE + 1, 5));
	run(&d, 100);
	assert_int_equal(d.view.threshold_rank, 105);
	desk_close(&d);
}

static void an_event_that_is_over_passes_everybody(void **state)
{
	(void)state;
	struct desk d;
	desk_open(&d);
	run(&d, 100);
	d.view.first_present = key_of_rank(&d, 3);
	conductor_lapse(d.conductor, LINE, key_of_rank(&d, 200));
	bool is_said = false;
	for (int i = 0; i < 10; i++) {
		batch(&d);
		is_said |= said(&d, LEDGER_THRESHOLD) &&
			   said(&d, LEDGER_THRESHOLD)->threshold.is_lapse;
	}
	assert_true(is_said);
	assert_true(d.view.floor == key_of_rank(&d, 200) && d.view.threshold >= d.view.floor);
	assert_int_equal(d.view.floor_rank, 200);
	desk_close(&d);
}

// Tickets given back are not counted among those called.
static void who_has_left_is_skipped(void **state)
{
	(void)state;
	struct desk d;
	desk_open(&d);
	for (uint64_t i = 0; i < 20; i++) {
		const uint64_t key = place_key(START_MS / PLACE_SLOT_MS - TICKETS + 50 + i, 0, 0);
		conductor_left(d.conductor, LINE, key, i);
		conductor_left(d.conductor, LINE, key, i); // again: nothing
	}
	d.view.settled = 20;
	run(&d, 100);
	assert_int_equal(d.view.threshold_rank, 120);
	desk_close(&d);
}

// Who came is looked for again at once where there were as many as an answer holds.
static void who_came_is_asked_for_until_all_are_told(void **state)
{
	(void)state;
	struct desk d;
	desk_open(&d);
	run(&d, 200);
	d.view.came_count = LEDGER_CAME_MAX;
	while (!said(&d, LEDGER_VIEW))
		batch(&d);
	batch(&d);
	assert_non_null(said(&d, LEDGER_VIEW));
	d.view.came_count = LEDGER_CAME_MAX - 1;
	batch(&d);
	batch(&d);
	assert_null(said(&d, LEDGER_VIEW));
	desk_close(&d);
}

// A line whose sibling has not been seen would take all that they share.
static void nothing_is_called_before_all_are_seen(void **state)
{
	(void)state;
	struct desk d;
	desk_open(&d);
	struct conductor_node nodes[60];
	for (uint32_t i = 0; i < 59; i++)
		nodes[i] = pool_node(100 + i, 0);
	nodes[59] = line_node(&d);
	nodes[0] = nodes[59];
	nodes[59] = pool_node(100, 0);
	assert_true(conductor_set_nodes(d.conductor, nodes, 60, d.now_ms));
	bool is_seen = false, is_all_seen = false;
	for (int i = 0; i < 10; i++) {
		is_all_seen |= is_seen && said(&d, LEDGER_VIEW);
		is_seen |= said(&d, LEDGER_VIEW) != NULL;
		batch(&d);
		assert_true(is_all_seen || !said(&d, LEDGER_THRESHOLD));
	}
	assert_int_equal(d.view.threshold_rank, 100);
	desk_close(&d);
}

// --- floor

// Everybody was called in the first turn; when the last turn is over floor passes them all.
#define OVER_MS (PACE_MAX_S * 1000 + 30000 + CONDUCTOR_HEARD_MS + 2000)

static void floor_waits_for_turns_and_for_the_held(void **state)
{
	(void)state;
	struct desk d;
	desk_open(&d);
	d.view.first_held = key_of_rank(&d, 40);
	run(&d, 30000);
	assert_true(d.view.floor == 0);
	run(&d, OVER_MS - 30000);
	assert_true(d.view.floor == key_of_rank(&d, 40));
	d.view.first_held = UINT64_MAX;
	d.view.first_present = key_of_rank(&d, 60);
	run(&d, 1000);
	assert_true(d.view.floor == key_of_rank(&d, 60));
	d.view.first_present = UINT64_MAX; // gone; but whose answer was lost is waited for
	run(&d, CONTROLLER_GRACE_S * 1000 - 1500);
	assert_true(d.view.floor == key_of_rank(&d, 60));
	run(&d, 4000);
	assert_true(d.view.floor >= key_of_rank(&d, 100));
	desk_close(&d);
}

static void floor_waits_for_a_member_that_is_unheard_of(void **state)
{
	(void)state;
	static const struct {
		bool is_live, has_left, is_held;
	} cases[] = {{true, false, false}, {false, true, false}, {false, false, true}};
	for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
		struct desk d;
		struct conductor_status status;
		desk_open(&d);
		d.member_count = 2;
		d.members[0] = (struct ledger_member){.number = 0, .is_live = true};
		d.members[1] = (struct ledger_member){
			.number = 5, .is_live = cases[i].is_live, .has_left = cases[i].has_left};
		run(&d, OVER_MS);
		conductor_look(d.conductor, &status);
		assert_int_equal(status.is_floor_held, cases[i].is_held);
		assert_int_equal(status.unheard, cases[i].is_held);
		assert_int_equal(d.view.floor == 0, cases[i].is_held);
		if (cases[i].is_held) { // back: turns begin anew
			d.members[1].is_live = true;
			run(&d, PACE_MAX_S * 1000);
			assert_true(d.view.floor == 0);
			run(&d, OVER_MS - PACE_MAX_S * 1000);
			assert_true(d.view.floor > 0);
		}
		desk_close(&d);
	}
}

static void floor_does_not_wait_for_ever(void **state)
{
	(void)state;
	struct desk d;
	struct conductor_status status;
	desk_open(&d);
	d.member_count = 1;
	d.members[0] = (struct ledger_member){.number = 5};
	run(&d, CONDUCTOR_FLOOR_HOLD_MS - 100);
	conductor_look(d.conductor, &status);
	assert_true(status.is_floor_held && d.view.floor == 0);
	run(&d, 200);
	conductor_look(d.conductor, &status);
	assert_true(!status.is_floor_held && status.unheard == 1);
	run(&d, OVER_MS);
	assert_true(d.view.floor > 0);
	desk_close(&d);
}

// --- taking over

static void it_goes_on_where_another_left_it(void **state)
{
	(void)state;
	struct desk d;
	desk_open(&d);
	d.view.threshold = key_of_rank(&d, 80);
	d.view.threshold_rank = 80;
	d.view.floor = key_of_rank(&d, 20);
	d.view.floor_rank = 20;
	d.view.taken = 70;
	d.view.settled = 55;
	// Of 80 called, 20 are passed and 55 used: 5 may come. 30 slots: 25 more.
	run(&d, 100);
	assert_int_equal(d.view.threshold_rank, 105);
	assert_true(d.view.floor == key_of_rank(&d, 20));
	run(&d, PACE_MAX_S * 1000 + 29000);
	assert_true(d.view.floor == key_of_rank(&d, 20));
	desk_close(&d);
}

static void it_believes_fresh_words(void **state)
{
	(void)state;
	static const struct {
		uint64_t ago_ms;
		uint32_t called, came, yield;
		uint32_t threshold_rank;
	} cases[] = {
		{100, 40, 36, 65536, 80 + 26}, // four may come yet
		{100, 0, 0, 65536, 80 + 30}, // nobody
		{100, 20, 0, 32768, 80 + 40}, // half of those called come
		{6000, 0, 0, 65536, 80 + 25}, // too old: all of whom nothing is known
		{100, 0, 0, 0, 80 + 25}, // none
	};
	for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
		struct desk d;
		desk_open(&d);
		d.view.threshold = key_of_rank(&d, 80);
		d.view.threshold_rank = 80;
		d.view.floor = key_of_rank(&d, 20);
		d.view.floor_rank = 20;
		d.view.taken = 70;
		d.view.settled = 55;
		d.view.words = (struct ledger_words){.at_ms = d.now_ms - cases[i].ago_ms,
			.called = cases[i].called,
			.came = cases[i].came,
			.expect_ms = 8000,
			.yield = cases[i].yield};
		run(&d, 100);
		assert_int_equal(d.view.threshold_rank, cases[i].threshold_rank);
		desk_close(&d);
	}
}

// It does not move a line whose ranks it does not know so far.
static void it_waits_until_ranks_are_known(void **state)
{
	(void)state;
	struct desk d;
	desk_open(&d);
	d.view.threshold = place_key_of_ms(START_MS + 1000);
	assert_int_equal(run(&d, 500), 0);
	place_close(d.place, (START_MS + 1000) / PLACE_SLOT_MS);
	assert_true(run(&d, 200) > 0);
	desk_close(&d);
}

// --- the clock

static void cluster_time_goes_on(void **state)
{
	(void)state;
	static const struct {
		int64_t ahead_ms;
		bool is_corrected;
	} cases[] = {{0, false}, {49, false}, {-49, false}, {-56, true}, {56, true},
		{3600000, true}, {-3600000, true}, {-2000, true}};
	for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
		struct desk d;
		struct conductor_status status;
		desk_open(&d);
		run(&d, 100);
		d.raw_ahead_ms = cases[i].ahead_ms;
		run(&d, 100);
		conductor_look(d.conductor, &status);
		assert_int_equal(status.corrections_total, cases[i].is_corrected);
		if (cases[i].is_corrected)
			assert_true(d.correction_ms == -cases[i].ahead_ms);
		desk_close(&d);
	}
}

static void a_clock_that_never_agreed_corrects_nothing(void **state)
{
	(void)state;
	struct desk d;
	desk_open(&d);
	d.raw_ahead_ms = 300000; // ours is five minutes wrong
	run(&d, 500);
	assert_true(d.correction_ms == 0);
	d.raw_ahead_ms = 0;
	run(&d, 100);
	d.raw_ahead_ms = 300000;
	run(&d, 100);
	assert_true(d.correction_ms == -300000);
	desk_close(&d);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(it_stands_speaks_and_is_replaced),
		cmocka_unit_test(a_store_away_ends_office),
		cmocka_unit_test(nodes_are_said_when_they_change),
		cmocka_unit_test(a_refused_node_is_left_out),
		cmocka_unit_test(nodes_are_bounded_and_ordered),
		cmocka_unit_test(it_calls_as_many_as_there_are_slots),
		cmocka_unit_test(what_is_refused_is_said_again),
		cmocka_unit_test(a_closed_line_is_said_at_once_and_stands),
		cmocka_unit_test(more_are_released_by_who_is_in_office),
		cmocka_unit_test(an_event_that_is_over_passes_everybody),
		cmocka_unit_test(who_has_left_is_skipped),
		cmocka_unit_test(who_came_is_asked_for_until_all_are_told),
		cmocka_unit_test(nothing_is_called_before_all_are_seen),
		cmocka_unit_test(floor_waits_for_turns_and_for_the_held),
		cmocka_unit_test(floor_waits_for_a_member_that_is_unheard_of),
		cmocka_unit_test(floor_does_not_wait_for_ever),
		cmocka_unit_test(it_goes_on_where_another_left_it),
		cmocka_unit_test(it_believes_fresh_words),
		cmocka_unit_test(it_waits_until_ranks_are_known),
		cmocka_unit_test(cluster_time_goes_on),
		cmocka_unit_test(a_clock_that_never_agreed_corrects_nothing),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
