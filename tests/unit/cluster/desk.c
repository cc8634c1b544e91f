// Desk: the ledger, played.

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>

#include <cmocka.h>

#include <stdlib.h>

#include "tests/unit/cluster/desk.h"

struct conductor_node desk_line(const struct desk *d)
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

struct conductor_node desk_pool(uint32_t id, uint32_t parent)
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

void desk_open(struct desk *d)
{
	static const struct conductor_plan plan = {.nodes_max = 80};
	*d = (struct desk){.now_ms = START_MS,
		.fence = FENCE,
		.node_verdict = LEDGER_DONE,
		.view_verdict = LEDGER_DONE,
		.threshold_verdict = LEDGER_DONE,
		.place = waiting_line()};
	d->view.first_present = d->view.first_held = UINT64_MAX;
	d->view.rated = d->view.all_left = d->view.direct_left = d->view.people = UINT32_MAX;
	d->view.total = TICKETS;
	d->conductor = conductor_create(&plan, d->now_ms);
	const struct conductor_node node = desk_line(d);
	assert_non_null(d->conductor);
	assert_true(conductor_set_nodes(d->conductor, &node, 1, d->now_ms));
}

void desk_close(struct desk *d)
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
	if (e->kind == LEDGER_VIEW)
		answer.verdict = d->view_verdict;
	if (e->kind == LEDGER_ELECT && d->conductor_is != 0)
		answer.verdict = LEDGER_REFUSED;
	conductor_answer(d->conductor, e, &answer, d->now_ms);
}

void desk_batch(struct desk *d)
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
		.epoch = d->epoch,
		.raw_ms = (uint64_t)raw_ms,
		.time_ms = (uint64_t)time_ms,
		.correction_ms = d->correction_ms};
	conductor_reply(d->conductor, &reply, sent_ms, d->now_ms);
	for (uint32_t i = 0; i < d->member_count; i++)
		conductor_member(d->conductor, &d->members[i], d->now_ms);
	for (uint32_t i = 0; i < d->count; i++)
		hear(d, &d->entries[i]);
}

const struct ledger_entry *desk_said(const struct desk *d, uint8_t kind)
{
	for (uint32_t i = 0; i < d->count; i++) {
		if (d->entries[i].kind == kind)
			return &d->entries[i];
	}
	return NULL;
}

uint32_t desk_count(const struct desk *d, uint8_t kind)
{
	uint32_t count = 0;
	for (uint32_t i = 0; i < d->count; i++)
		count += d->entries[i].kind == kind;
	return count;
}

uint32_t desk_run(struct desk *d, uint64_t ms)
{
	uint32_t count = 0;
	for (uint64_t until = d->now_ms + ms; d->now_ms < until;) {
		desk_batch(d);
		count += desk_count(d, LEDGER_THRESHOLD);
	}
	return count;
}

uint64_t desk_key(const struct desk *d, uint64_t rank)
{
	return place_key_at(d->place, rank);
}
