// Member: its life from end to end. Each job has a file, told by its header; what they share is in
// member_inside.h.
//
//   member_claims ─▶ member_batch ◀─ slots · restore · resync · records · conductor
//        │               │ send
//        │(away)         ▼
//   member_loss      member_answers ─▶ member_news ─▶ member_words
//
// Memory is taken at the start alone, and by the conductor when lines are set.

#include "controlplane/cluster/member.h"

#include <assert.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "controlplane/cluster/member_answers.h"
#include "controlplane/cluster/member_batch.h"
#include "controlplane/cluster/member_claims.h"
#include "controlplane/cluster/member_news.h"
#include "controlplane/cluster/member_resync.h"
#include "controlplane/cluster/member_slots.h"
#include "controlplane/cluster/member_words.h"
#include "dataplane/gate/gather.h"

#define SWEEP_MAX 256u // entries looked at in a turn

static bool take_memory(struct member *m)
{
	const struct member_plan *plan = &m->plan;
	m->lines = calloc(2 * (size_t)plan->lines_max, sizeof(*m->lines));
	m->nodes = calloc(2 * (size_t)plan->nodes_max + 1, sizeof(*m->nodes));
	m->conductor_nodes = calloc(plan->lines_max + plan->nodes_max, sizeof(*m->conductor_nodes));
	m->answers = calloc(1, sizeof(*m->answers));
	m->batch = calloc(1, sizeof(*m->batch));
	m->records = calloc(1, sizeof(*m->records));
	const struct conductor_plan conductor = {
		.nodes_max = plan->lines_max + plan->nodes_max, .seed = plan->seed};
	m->conductor = conductor_create(&conductor, m->now_ms);
	return member_known_init(&m->known, plan->known_max, plan->seed) && m->lines && m->nodes &&
	       m->conductor_nodes && m->answers && m->batch && m->records && m->conductor;
}

uint64_t member_bytes(const struct member_plan *plan)
{
	const struct member *m = NULL;
	const uint64_t nodes = plan->lines_max + plan->nodes_max;
	return sizeof(*m) + 2ull * plan->lines_max * sizeof(*m->lines) +
	       (2ull * plan->nodes_max + 1) * sizeof(*m->nodes) +
	       nodes * sizeof(*m->conductor_nodes) + sizeof(*m->answers) + sizeof(*m->batch) +
	       sizeof(*m->records) + conductor_bytes((uint32_t)nodes) +
	       member_known_bytes(plan->known_max);
}

struct member *member_create(const struct member_plan *plan, const struct member_sets *sets,
	const struct member_seams *seams, uint64_t now_ms)
{
	assert(plan->incarnation != 0 && plan->workers_max <= CLAIMS_ANSWERS_WORKERS);
	assert(plan->lines_max > 0 && plan->lines_max <= MEMBER_LINES_MAX);
	assert(plan->nodes_max <= MEMBER_NODES_MAX && plan->known_max > 0);
	struct member *m = calloc(1, sizeof(*m));
	if (!m)
		return NULL;
	m->plan = *plan;
	m->plan.sync_ms = plan->sync_ms ? plan->sync_ms : MEMBER_SYNC_MS;
	m->seams = *seams;
	m->ended = sets->ended;
	m->left = sets->left;
	m->now_ms = m->away_since_ms = now_ms;
	m->gone_ms = plan->heard_ms;
	m->peers = plan->peers;
	m->is_away = true;
	if (!take_memory(m)) {
		member_destroy(m);
		return NULL;
	}
	member_records_init(m->records);
	memcpy(m->batch->is.name, plan->name, sizeof(plan->name));
	m->batch->is.incarnation = plan->incarnation;
	return m;
}

void member_destroy(struct member *m)
{
	if (!m)
		return;
	conductor_destroy(m->conductor);
	member_known_fini(&m->known);
	free(m->lines);
	free(m->nodes);
	free(m->conductor_nodes);
	free(m->answers);
	free(m->batch);
	free(m->records);
	free(m);
}

// --- what there is

struct member_inside_line *member_inside_line(const struct member *m, uint32_t line_id)
{
	for (uint32_t i = 0; i < m->line_count; i++) {
		if (m->lines[i].is.line_id == line_id)
			return &m->lines[i];
	}
	return NULL;
}

struct member_inside_node *member_inside_node(const struct member *m, uint32_t id)
{
	for (uint32_t i = 0; i < m->node_count; i++) {
		if (m->nodes[i].is.id == id)
			return &m->nodes[i];
	}
	return NULL;
}

static bool is_open(const struct member_line *line)
{
	return line->state == GATE_OPEN && !line->is_still;
}

static bool tell_conductor(struct member *m, const struct member_shape *shape)
{
	uint32_t count = 0;
	for (uint32_t i = 0; i < shape->node_count; i++)
		m->conductor_nodes[count++] = (struct conductor_node){
			.id = shape->nodes[i].id, .node = shape->nodes[i].node};
	for (uint32_t i = 0; i < shape->line_count; i++)
		m->conductor_nodes[count++] = (struct conductor_node){.id = shape->lines[i].line_id,
			.node = shape->lines[i].node,
			.claim_s = shape->lines[i].claim_s,
			.place = shape->lines[i].line,
			.is_open = is_open(&shape->lines[i])};
	return conductor_set_nodes(m->conductor, m->conductor_nodes, count, m->now_ms);
}

// One that is new is as its file says, until the ledger says more.
static void begin_line(struct member_inside_line *line, const struct member_line *is)
{
	*line = (struct member_inside_line){.is = *is,
		.threshold = is->line->threshold,
		.threshold_rank = is->line->threshold_rank,
		.floor = is->line->floor,
		.words = {.wait_low = UINT64_MAX, .wait_high = UINT64_MAX, .next_poll_after = 1}};
	line->held_key = UINT64_MAX;
}

static void set_lines(struct member *m, const struct member_shape *shape)
{
	struct member_inside_line *old = m->lines + m->plan.lines_max;
	const uint32_t old_count = m->line_count;
	memcpy(old, m->lines, old_count * sizeof(*old));
	for (uint32_t i = 0; i < shape->line_count; i++) {
		const struct member_line *is = &shape->lines[i];
		const struct member_inside_line *known = NULL;
		for (uint32_t j = 0; j < old_count && !known; j++)
			known = old[j].is.line_id == is->line_id ? &old[j] : NULL;
		if (!known) {
			begin_line(&m->lines[i], is);
			continue;
		}
		const bool is_said =
			known->is_config_said && known->is.node.config == is->node.config;
		m->lines[i] = *known;
		m->lines[i].is = *is;
		m->lines[i].is_config_said = is_said;
	}
	m->line_count = shape->line_count;
}

bool member_set_shape(struct member *m, const struct member_shape *shape, uint64_t now_ms)
{
	m->now_ms = now_ms;
	if (shape->line_count > m->plan.lines_max || shape->node_count > m->plan.nodes_max ||
		!tell_conductor(m, shape))
		return false;
	set_lines(m, shape);
	m->node_count = shape->node_count;
	for (uint32_t i = 0; i < shape->node_count; i++)
		m->nodes[i].is = shape->nodes[i];
	if (m->has_reply) // a new line has to be read
		member_resync_begin(m);
	return true;
}

bool member_set_state(
	struct member *m, uint32_t line_id, uint8_t state, bool is_still, uint64_t now_ms)
{
	struct member_inside_line *line = member_inside_line(m, line_id);
	if (!line)
		return false;
	m->now_ms = now_ms;
	line->is.state = state;
	line->is.is_still = is_still;
	conductor_set_open(m->conductor, line_id, is_open(&line->is), now_ms);
	member_words_publish(m, line);
	return true;
}

bool member_release(struct member *m, uint32_t line_id, uint64_t count)
{
	return conductor_release(m->conductor, line_id, count);
}

void member_lapse(struct member *m, uint32_t line_id, uint64_t key)
{
	conductor_lapse(m->conductor, line_id, key);
}

bool member_left_gathered(
	const struct member *m, uint32_t line_id, uint64_t *number, uint64_t *visitor)
{
	uint64_t key = GATHER_NUMBER | *number;
	if (!conductor_left_from(m->conductor, line_id, &key, visitor))
		return false;
	*number = key & ~GATHER_NUMBER;
	return true;
}

void member_left_placed(struct member *m, uint32_t line_id, const struct ledger_gathered *placed)
{
	member_news_placed(m, line_id, placed->ids[0], placed->key, placed->place);
}

// --- what happens

static bool is_over(const struct member *m, const struct member_known_entry *known)
{
	const struct member_inside_line *line = member_inside_line(m, known->line);
	const bool is_passed = !line || known->key == 0 || known->key < line->is.line->floor;
	const uint64_t end_s = (uint64_t)known->expires + ENDED_GRACE_S;
	return known->unsaid == 0 && is_passed &&
	       (known->state == MEMBER_KNOWN_LEFT || end_s * 1000 < m->now_ms);
}

static void sweep(struct member *m)
{
	for (uint32_t i = 0; i < SWEEP_MAX; i++) {
		struct member_known_entry *known = member_known_sweep(&m->known);
		if (!known || !is_over(m, known))
			continue;
		if (known->state == MEMBER_KNOWN_LEFT)
			ended_remove(m->left, known->visitor);
		member_known_remove(&m->known, known);
	}
	const uint64_t now_s = m->now_ms / 1000;
	if (m->swept_s == now_s)
		return;
	m->swept_s = now_s;
	ended_sweep(m->ended, (uint32_t)now_s);
	ended_sweep(m->left, (uint32_t)now_s);
}

void member_turn(struct member *m, uint64_t now_ms)
{
	m->counters.turns++;
	m->now_ms = now_ms;
	member_slots_close(m);
	member_answers_look(m);
	member_news_turn(m);
	if (m->again_resync_ms != 0 && now_ms >= m->again_resync_ms) {
		m->again_resync_ms = 0;
		member_resync_begin(m);
	}
	member_batch_turn(m);
	sweep(m);
	member_words_publish_all(m);
}

void member_connected(struct member *m, const char *run_id, uint64_t now_ms)
{
	m->now_ms = now_ms;
	snprintf(m->run, sizeof(m->run), "%s", run_id);
	m->is_connected = true;
	m->connected_ms = now_ms;
	m->batch->is_sent = false;
	m->again_ms = 0;
}

void member_lost(struct member *m, uint64_t now_ms)
{
	m->now_ms = now_ms;
	m->is_connected = m->has_answered = false;
	m->batch->is_sent = false;
	conductor_lost(m->conductor);
	member_answers_look(m);
}

bool member_put_record(struct member *m, const struct ledger_record *record)
{
	return member_records_put(m->records, record);
}

bool member_has_records(const struct member *m)
{
	return m->records->count > 0;
}

void member_goodbye(struct member *m)
{
	m->is_leaving = true;
}

// --- what is told

bool member_line_is_away(const struct member *m, uint32_t line_id)
{
	return m->is_away && member_inside_line(m, line_id);
}

bool member_look_line(const struct member *m, uint32_t line_id, struct member_line_view *view)
{
	const struct member_inside_line *line = member_inside_line(m, line_id);
	if (!line || line->view_ms == 0)
		return false;
	*view = (struct member_line_view){.is = line->view,
		.heard_ms = line->view_ms,
		.passed = line->passed,
		.admitted_over_max = line->over_max};
	return true;
}

// The age that `share` of 100 decisions were not older than.
static uint32_t age_of(const struct member *m, uint64_t share)
{
	uint64_t count = 0;
	for (uint32_t ms = 0; ms < MEMBER_AGES; ms++) {
		count += m->ages[ms];
		if (100 * count >= share * m->age_count)
			return ms;
	}
	return MEMBER_AGES;
}

void member_status(const struct member *m, struct member_status *status)
{
	*status = (struct member_status){.is_connected = m->is_connected,
		.is_away = m->is_away,
		.is_recovering = m->reply.is_recovering,
		.is_skewed = m->reply.is_skewed,
		.is_resyncing = m->is_resyncing,
		.is_name_taken = m->refused_since_ms && m->refused == LEDGER_BATCH_NAME,
		.is_full = m->refused_since_ms && m->refused == LEDGER_BATCH_MEMBERS,
		.is_ready = m->is_ready,
		.is_gone = m->is_gone,
		.appliance = m->has_reply ? m->number : m->plan.appliance,
		.conductor = m->has_reply ? m->reply.conductor : LEDGER_MEMBERS_MAX,
		.away_since_ms = m->away_since_ms,
		.refused_since_ms = m->refused_since_ms,
		.fence = m->fence,
		.epoch = m->epoch,
		.writes = m->writes,
		.cursor = m->cursor,
		.newest = m->reply.newest,
		.applied = m->applied,
		.closed = m->closed,
		.final = m->final,
		.skew_ms = m->skew_ms,
		.round_trip_ms = m->round_trip_ms,
		.known_count = m->known.max - member_known_room(&m->known),
		.unsaid_count = member_known_unsaid_count(&m->known),
		.member_count = m->member_count};
	memcpy(status->members, m->members, sizeof(m->members));
	conductor_look(m->conductor, &status->office);
	status->propagation_count = m->age_count;
	status->propagation_p50_ms = age_of(m, 50);
	status->propagation_p99_ms = age_of(m, 99);
}

const struct member_counters *member_counters(const struct member *m)
{
	return &m->counters;
}
