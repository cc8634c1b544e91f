// The seams of a member, as short as they can be: one worker, answers in an array, barriers that
// pass with the next turn, and a clock that follows replies: at once with the first one, then by 5
// ms in a second.

#include "tests/sim/cluster/appliance.h"

#include <assert.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "tests/unit/controller/random.h"

#define SLEW 200 // ms for one
#define ROUND_TRIP_MAX_MS 200u // beyond which a reply is no measure

static uint32_t answer(
	void *ctx, uint32_t worker, const struct claim_answer *answers, uint32_t count)
{
	struct appliance *a = ctx;
	assert(worker == 0);
	const uint32_t room = APPLIANCE_ANSWERS - a->answer_count;
	const uint32_t taken = count < room ? count : room;
	memcpy(&a->answers[a->answer_count], answers, taken * sizeof(*answers));
	a->answer_count += taken;
	return taken;
}

static uint64_t barrier_begin(void *ctx)
{
	struct appliance *a = ctx;
	return a->barrier + 1;
}

static bool barrier_passed(void *ctx, uint64_t token)
{
	const struct appliance *a = ctx;
	return a->barrier >= token;
}

static uint64_t session_id(void *ctx)
{
	const struct appliance *a = ctx;
	return random_next(a->random) | 1;
}

static bool send(void *ctx, const struct ledger_batch *batch)
{
	struct appliance *a = ctx;
	if (a->out)
		return false;
	a->out = batch;
	return true;
}

static void begin_lines(struct appliance *a, uint64_t now)
{
	for (uint32_t i = 0; i < a->line_count; i++)
		place_begin(a->rooms[i].line, now / PLACE_SLOT_MS);
}

static void note(struct appliance *a, uint64_t now)
{
	struct member_status status;
	const uint64_t before = a->noted_peers;
	member_status(a->member, &status);
	for (uint32_t i = 0; i < status.member_count; i++)
		a->noted_peers |= UINT64_C(1) << status.members[i].number;
	if (now >= a->noted_ms + APPLIANCE_NOTED_MS || a->noted_peers != before)
		a->noted_ms = now;
}

static void follow(void *ctx, const struct member_time *time)
{
	struct appliance *a = ctx;
	const uint64_t round_trip = time->received_ms - time->sent_ms;
	const int64_t off = (int64_t)(time->time_ms + round_trip / 2) - (int64_t)time->received_ms;
	if (!time->is_skewed)
		note(a, time->time_ms);
	if (!time->is_sound || round_trip > ROUND_TRIP_MAX_MS)
		return;
	if (!a->is_clock_set) {
		a->clock_ms += off;
		a->is_clock_set = true;
		a->slewed_ms = time->received_ms + (uint64_t)off;
		begin_lines(a, a->slewed_ms);
		return;
	}
	const int64_t most = (int64_t)(time->received_ms - a->slewed_ms) / SLEW;
	if (most == 0 || off == 0)
		return;
	a->clock_ms += off > most ? most : off < -most ? -most : off;
	a->slewed_ms = time->received_ms;
}

static void numbered(void *ctx, uint8_t number)
{
	struct appliance *a = ctx;
	a->number = number;
}

static void record(void *ctx, uint8_t type, uint32_t id, const uint8_t *bytes, uint32_t len)
{
	struct appliance *a = ctx;
	a->recordings++;
	if (type == 1 && id < sizeof(a->records))
		a->records[id] = len ? bytes[len - 1] : 0;
}

static void resynced(void *ctx)
{
	struct appliance *a = ctx;
	a->resyncs++;
}

static bool code(void *ctx, const struct claim *claim, struct claim_answer *answer,
	struct ledger_entry *entry)
{
	(void)ctx;
	(void)claim;
	(void)entry;
	if (answer)
		answer->verdict = CLAIM_UNKNOWN;
	return false;
}

static void *take(size_t bytes)
{
	void *memory = NULL;
	const int ret = posix_memalign(&memory, 64, bytes);
	assert(ret == 0);
	memset(memory, 0, bytes);
	return memory;
}

void appliance_init(struct appliance *a, const char *name, const struct appliance_line *lines,
	uint32_t line_count, const struct ledger_node *pool, uint64_t *random)
{
	*a = (struct appliance){.lines = lines,
		.line_count = line_count,
		.pool = pool,
		.random = random,
		.number = LEDGER_MEMBERS_MAX};
	snprintf(a->name, sizeof(a->name), "%s", name);
	for (uint32_t i = 0; i < line_count; i++) {
		a->rooms[i].line = take(place_line_bytes(APPLIANCE_ENTRIES));
		place_line_init(a->rooms[i].line, lines[i].id, APPLIANCE_ENTRIES);
		a->refused_key[i] = UINT64_MAX;
	}
}

static void drop(struct appliance *a)
{
	member_destroy(a->member);
	a->member = NULL;
	free(a->ended);
	free(a->left);
	a->ended = a->left = NULL;
	for (uint32_t i = 0; i < a->line_count; i++) {
		free(a->rooms[i].ranks_memory);
		a->rooms[i].ranks_memory = NULL;
	}
}

void appliance_fini(struct appliance *a)
{
	drop(a);
	for (uint32_t i = 0; i < a->line_count; i++)
		free(a->rooms[i].line);
}

void appliance_kill(struct appliance *a)
{
	drop(a);
	a->state = APPLIANCE_DOWN;
	a->out = NULL;
	a->answer_count = 0;
}

uint64_t appliance_now(const struct appliance *a, uint64_t world_ms)
{
	const int64_t drift = (int64_t)(world_ms % 100000000) * a->ppm / 1000000;
	return (uint64_t)((int64_t)world_ms + drift + a->clock_ms);
}

bool appliance_serves(const struct appliance *a)
{
	struct member_status status;
	if (a->state != APPLIANCE_UP || a->is_leaving)
		return false;
	member_status(a->member, &status);
	return status.is_ready;
}

static void share_lines(struct appliance *a, uint64_t now)
{
	for (uint32_t i = 0; i < a->line_count; i++) {
		struct appliance_room *room = &a->rooms[i];
		room->ranks_memory = take(ranks_bytes(2 * APPLIANCE_ENTRIES));
		room->ranks = ranks_init(room->ranks_memory, 2 * APPLIANCE_ENTRIES);
		place_share(room->line, room->ranks);
		a->refused_key[i] = UINT64_MAX;
	}
	if (a->is_clock_set)
		begin_lines(a, now);
}

static void set_shape(struct appliance *a, uint64_t now)
{
	struct member_line lines[APPLIANCE_LINES];
	const struct member_node pool = {.id = APPLIANCE_POOL,
		.node = a->pool ? *a->pool : (struct ledger_node){.parent = 0}};
	for (uint32_t i = 0; i < a->line_count; i++)
		lines[i] = (struct member_line){.line_id = a->lines[i].id,
			.line = a->rooms[i].line,
			.ranks = a->rooms[i].ranks,
			.node = a->lines[i].node,
			.claim_s = a->lines[i].claim_s,
			.on_loss = a->lines[i].on_loss,
			.state = GATE_OPEN};
	const struct member_shape shape = {.lines = lines,
		.line_count = a->line_count,
		.nodes = &pool,
		.node_count = a->pool != NULL};
	const bool is_set = member_set_shape(a->member, &shape, now);
	assert(is_set);
}

void appliance_start(struct appliance *a, uint64_t world_ms)
{
	struct member_seams seams = {.ctx = a,
		.answer = answer,
		.barrier_begin = barrier_begin,
		.barrier_passed = barrier_passed,
		.session_id = session_id,
		.send = send,
		.time = follow,
		.numbered = numbered,
		.record = record,
		.resynced = resynced,
		.code = code};
	if (a->more) {
		seams.record = a->more->record;
		seams.restore = a->more->restore;
		seams.offer = a->more->offer;
		seams.offered = a->more->offered;
		seams.gathered = a->more->gathered;
		seams.drawn_before = a->more->drawn_before;
		if (a->more->resynced)
			seams.resynced = a->more->resynced;
	}
	struct member_plan plan = {.incarnation = random_next(a->random) | 1,
		.appliance = a->number,
		.heard_ms = a->noted_ms ? a->noted_ms + APPLIANCE_NOTED_MS : 0,
		.peers = a->noted_peers,
		.lines_max = APPLIANCE_LINES,
		.nodes_max = 1,
		.workers_max = 1,
		.known_max = a->known_max ? a->known_max : APPLIANCE_KNOWN,
		.seed = random_next(a->random)};
	memcpy(plan.name, a->name, sizeof(plan.name));
	const uint64_t now = appliance_now(a, world_ms);
	a->ended = ended_init(take(ended_bytes(256)), 256);
	a->left = ended_init(take(ended_bytes(256)), 256);
	const struct member_sets sets = {a->ended, a->left};
	share_lines(a, now);
	a->member = member_create(&plan, &sets, &seams, now);
	assert(a->member);
	set_shape(a, now);
	a->state = APPLIANCE_UP;
	a->born_ms = world_ms;
	a->is_leaving = false;
	a->out = NULL;
	a->answer_count = 0;
}

void appliance_turn(struct appliance *a, uint64_t world_ms)
{
	const uint64_t now = appliance_now(a, world_ms);
	a->barrier++;
	for (uint32_t i = 0; i < a->line_count; i++) {
		if (a->refused_key[i] != UINT64_MAX)
			member_refused(a->member, a->lines[i].id, a->refused_key[i],
				a->refused_poll_after, now);
		a->refused_key[i] = UINT64_MAX;
	}
	a->refused_poll_after = 0;
	member_turn(a->member, now);
}
