// Rig: members and the ledger; rig_crowd.c has the people.

#include "tests/sim/cluster/rig.h"

#include <assert.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "controlplane/cluster/ledger_wire.h"
#include "dataplane/gate/place.h"
#include "tests/sim/cluster/rig_crowd.h"

#define START_MS 1764500000000ull
#define ENTRIES_MAX 16384u // of an index, and of ranks
#define BATCH_MS 20u
#define AGAIN_MS 500u

uint64_t rig_random(struct rig *r, uint64_t limit)
{
	// SplitMix64, as in crowd.c.
	uint64_t z = r->random += 0x9e3779b97f4a7c15;
	z = (z ^ z >> 30) * 0xbf58476d1ce4e5b9;
	z = (z ^ z >> 27) * 0x94d049bb133111eb;
	return (z ^ z >> 31) % limit;
}

void rig_check(const struct rig *r, bool is_kept, const char *law)
{
	if (is_kept)
		return;
	fprintf(stderr, "seed %" PRIu64 ", after %" PRIu64 " ms: broken: %s\n", r->plan.seed,
		r->now_ms - r->start_ms, law);
	abort();
}

// --- life of a member

static void set_nodes(struct rig *r, struct rig_member *m)
{
	struct conductor_node nodes[RIG_LINES + 1] = {0};
	uint32_t count = 0;
	const bool is_shared = r->plan.lines > 1;
	if (is_shared)
		nodes[count++] = (struct conductor_node){.id = RIG_POOL,
			.node = {.limits = r->plan.pool,
				.priority = 1,
				.weight = 1,
				.present_max = 1,
				.left_max = 1,
				.ended_max = 1}};
	for (uint32_t i = 0; i < r->plan.lines; i++) {
		nodes[count] = (struct conductor_node){.id = i + 1,
			.node = r->plan.node,
			.claim_s = r->plan.claim_s,
			.place = m->lines[i].place,
			.is_open = true};
		nodes[count].node.parent = is_shared ? RIG_POOL : 0;
		nodes[count].node.weight = r->plan.weights[i];
		nodes[count++].node.priority = r->plan.priorities[i];
	}
	const bool is_set = conductor_set_nodes(m->conductor, nodes, count, r->now_ms);
	assert(is_set);
}

static void start(struct rig *r, struct rig_member *m)
{
	const struct conductor_plan plan = {.nodes_max = RIG_LINES + 1, .seed = r->plan.seed};
	m->batch.incarnation = rig_random(r, UINT64_MAX - 1) + 1;
	m->batch.number = 0;
	m->down_until_ms = m->arrives_ms = m->replies_ms = 0;
	m->queue_count = m->later_count = 0;
	m->conductor = conductor_create(&plan, r->now_ms);
	assert(m->conductor);
	set_nodes(r, m);
}

static void stop(struct rig *r, struct rig_member *m, uint32_t down_ms)
{
	conductor_destroy(m->conductor);
	m->conductor = NULL;
	free(m->reply);
	m->reply = NULL;
	m->down_until_ms = r->now_ms + down_ms;
	m->arrives_ms = m->replies_ms = 0;
	m->queue_count = 0;
}

static void make_line(struct rig *r, struct rig_line *l, uint32_t id)
{
	l->place = calloc(1, (place_line_bytes(ENTRIES_MAX) + 63) / 64 * 64);
	l->ranks = aligned_alloc(64, (ranks_bytes(4 * ENTRIES_MAX) + 63) / 64 * 64);
	assert(l->place && l->ranks);
	memset(l->ranks, 0, ranks_bytes(4 * ENTRIES_MAX));
	place_line_init(l->place, id, ENTRIES_MAX);
	atomic_store(&l->place->entries_ready, ENTRIES_MAX);
	place_begin(l->place, r->now_ms / PLACE_SLOT_MS);
	l->ranks = ranks_init(l->ranks, 4 * ENTRIES_MAX);
	ranks_read(l->ranks);
	l->words = (struct ledger_words){
		.wait_low = UINT64_MAX, .wait_high = UINT64_MAX, .next_poll_after = 1};
}

static void make_member(struct rig *r, uint32_t index)
{
	struct rig_member *m = &r->members[index];
	snprintf(m->batch.name, sizeof(m->batch.name), "a%u", index + 1);
	memset(m->batch.run, 'a', LEDGER_RUN_BYTES);
	m->batch.appliance = m->number = (uint8_t)index;
	for (uint32_t i = 0; i < r->plan.lines; i++) {
		make_line(r, &m->lines[i], i + 1);
		ranks_begin(m->lines[i].ranks, (uint8_t)index, 0);
		place_share(m->lines[i].place, m->lines[i].ranks);
	}
	start(r, m);
}

// --- a batch

static struct ledger_entry *add(struct rig_member *m, uint8_t kind, uint32_t line)
{
	struct ledger_entry *e = &m->entries[m->batch.count++];
	*e = (struct ledger_entry){.kind = kind, .line = line};
	return e;
}

static void add_slots(struct rig *r, struct rig_member *m)
{
	const uint64_t slot = r->now_ms / PLACE_SLOT_MS;
	uint64_t closed = slot > m->final ? slot : m->final;
	for (uint32_t i = 0; i < r->plan.lines; i++) {
		struct rig_line *l = &m->lines[i];
		struct ledger_slots slots = {0};
		place_close(l->place, closed);
		slots.count = place_told(l->place, l->told, slots.held, LEDGER_SLOTS_MAX);
		const uint64_t is_closed = atomic_load(&l->place->closed);
		closed = is_closed < closed ? is_closed : closed;
		if (slots.count == 0)
			continue;
		l->told = (slots.held[slots.count - 1] >> 24) + 1;
		if (slots.count == LEDGER_SLOTS_MAX && l->told < closed)
			closed = l->told;
		slots.total = place_own(l->place, l->told);
		add(m, LEDGER_SLOTS, i + 1)->slots = slots;
	}
	m->batch.closed = closed;
}

static void add_claims(struct rig *r, struct rig_member *m)
{
	for (uint32_t i = 0; i < m->queue_count; i++) {
		const struct rig_visitor *v = &r->visitors[m->queue[i]];
		m->who[m->batch.count] = m->queue[i] + 1;
		add(m, m->kinds[i], v->line + 1)->claim = (struct ledger_claim){
			.key = m->kinds[i] == LEDGER_CALLED ? v->key : 0,
			.visitor = v->id,
			.session = m->kinds[i] == LEDGER_END ? v->session
							     : rig_random(r, UINT64_MAX - 1) + 1,
			.expires = v->expires,
			.poll_after = m->lines[v->line].words.next_poll_after};
	}
	m->queue_count = 0;
}

static void send(struct rig *r, struct rig_member *m)
{
	m->arrives_ms = r->now_ms + 1 + rig_random(r, 5);
	m->replies_ms = m->arrives_ms + 1 + rig_random(r, 5);
	m->is_lost = rig_random(r, 100) < r->plan.lose_percent;
	if (m->is_lost)
		m->replies_ms = r->now_ms + AGAIN_MS;
}

static void make_batch(struct rig *r, struct rig_member *m)
{
	struct ledger_batch *b = &m->batch;
	memset(m->who, 0, sizeof(m->who));
	b->number++;
	b->count = 0;
	b->time_ms = m->sent_ms = r->now_ms;
	b->cursor = b->applied = m->cursor;
	b->writes = m->writes;
	b->entries = m->entries;
	add_slots(r, m);
	rig_crowd_again(r, m);
	add_claims(r, m);
	m->first_conductors = b->count;
	b->fence = conductor_fence(m->conductor);
	b->count += conductor_entries(
		m->conductor, m->entries + b->count, CONDUCTOR_ENTRIES_MAX, r->now_ms);
	send(r, m);
}

// --- a reply

static void take_news(struct rig *r, struct rig_member *m, const struct ledger_news *n)
{
	if (n->line == 0 || n->line > r->plan.lines)
		return;
	struct rig_line *l = &m->lines[n->line - 1];
	if (n->kind == LEDGER_NEWS_SLOTS) {
		const bool is_taken = ranks_told(l->ranks, n->member, n->held, n->count);
		assert(is_taken);
	} else if (n->kind == LEDGER_NEWS_LEFT) {
		conductor_left(m->conductor, n->line, n->key, n->visitor);
	} else if (n->kind == LEDGER_NEWS_THRESHOLD) {
		ranks_settle(l->ranks, place_slot(n->threshold));
		l->threshold_rank = n->threshold_rank;
		l->threshold = n->threshold;
		l->floor = n->floor;
		l->words = n->words;
		l->is_open = n->is_open;
		place_trim(l->place, n->floor);
		// The word of its place_line that a mint keeps above.
		atomic_store(&l->place->threshold, n->threshold);
	}
}

static void take_reply(struct rig *r, struct rig_member *m)
{
	struct ledger_wire_reader reader;
	struct ledger_reply head;
	struct ledger_member member;
	static struct ledger_answer answers[RIG_ENTRIES_MAX];
	static struct ledger_news news;
	bool is_sound = ledger_wire_reply(&reader, m->reply, strlen(m->reply), &head);
	assert(is_sound && !head.is_resync);
	if (head.verdict == LEDGER_BATCH_NAME) { // the process before this one counts as live
		send(r, m);
		m->arrives_ms += AGAIN_MS;
		m->replies_ms += AGAIN_MS;
		return;
	}
	assert(head.verdict == LEDGER_BATCH_TAKEN);
	for (uint32_t i = 0; i < head.answer_count; i++)
		is_sound &= ledger_wire_answer(&reader, &answers[i]);
	conductor_reply(m->conductor, &head, m->sent_ms, r->now_ms);
	for (uint32_t i = 0; i < head.member_count; i++) {
		is_sound &= ledger_wire_member(&reader, &member);
		conductor_member(m->conductor, &member, r->now_ms);
	}
	for (uint32_t i = 0; i < head.news_count; i++) {
		is_sound &= ledger_wire_news(&reader, &news);
		take_news(r, m, &news);
	}
	assert(is_sound && reader.at == reader.end);
	for (uint32_t i = 0; i < r->plan.lines && head.final > 0; i++)
		ranks_settle(m->lines[i].ranks, head.final);
	m->final = head.final > m->final ? head.final : m->final;
	m->cursor = head.cursor;
	m->writes = head.writes;
	for (uint32_t i = 0; i < head.answer_count; i++) {
		if (i >= m->first_conductors)
			conductor_answer(m->conductor, &m->entries[i], &answers[i], r->now_ms);
		else if (m->who[i] > 0)
			rig_crowd_answer(r, m, m->who[i] - 1, &m->entries[i], &answers[i]);
	}
	free(m->reply);
	m->reply = NULL;
}

static void turn(struct rig *r, struct rig_member *m)
{
	if (m->down_until_ms > 0) {
		if (r->now_ms >= m->down_until_ms)
			start(r, m);
		return;
	}
	if (m->arrives_ms > 0 && r->now_ms >= m->arrives_ms) {
		const uint64_t raw_ms = r->now_ms + (uint64_t)r->raw_ahead_ms;
		free(m->reply);
		m->reply = model_batch(&r->ledger, &m->batch, raw_ms);
		m->arrives_ms = 0;
	}
	if (m->replies_ms > 0 && m->arrives_ms == 0 && r->now_ms >= m->replies_ms) {
		m->replies_ms = 0;
		if (m->is_lost)
			send(r, m);
		else
			take_reply(r, m);
	}
	if (m->replies_ms == 0 && r->now_ms >= m->sent_ms + BATCH_MS)
		make_batch(r, m);
}

// --- the run

static struct rig_member *leader(struct rig *r)
{
	for (uint32_t i = 0; i < r->plan.members; i++) {
		struct rig_member *m = &r->members[i];
		if (m->down_until_ms == 0 && conductor_fence(m->conductor) == r->ledger.fence &&
			r->ledger.fence > 0)
			return m;
	}
	return NULL;
}

static void kill_leader(struct rig *r)
{
	struct rig_member *m = leader(r);
	if (r->plan.kill_every_ms == 0 || r->now_ms < r->next_kill_ms || !m)
		return;
	stop(r, m, r->plan.down_ms);
	r->kills++;
	r->next_kill_ms = r->now_ms + r->plan.kill_every_ms;
}

static void watch(struct rig *r)
{
	if (leader(r))
		r->leader_seen_ms = r->now_ms;
	else if (r->now_ms - r->leader_seen_ms > r->longest_leaderless_ms)
		r->longest_leaderless_ms = r->now_ms - r->leader_seen_ms;
	rig_check(r, r->ledger.fence >= r->fence, "the fence does not fall");
	r->take_overs += r->ledger.fence > r->fence;
	r->fence = r->ledger.fence;
	uint64_t inside = 0, admitted = 0;
	for (uint32_t i = 0; i < r->plan.lines; i++) {
		const struct model_node *line = model_find(&r->ledger, i + 1);
		if (!line)
			return;
		rig_check(r, line->threshold >= r->thresholds[i], "threshold does not fall");
		rig_check(r, line->floor >= r->floors[i], "floor does not fall");
		r->thresholds[i] = line->threshold;
		r->floors[i] = line->floor;
		inside += model_taken(&r->ledger, line);
		admitted += line->admitted;
	}
	r->grants_at[(r->now_ms - r->start_ms) / RIG_STEP_MS] = (uint32_t)(admitted - r->admitted);
	r->admitted = admitted;
	const struct pool_limits *l = r->plan.lines > 1 ? &r->plan.pool : &r->plan.node.limits;
	rig_check(r, l->capacity == 0 || inside <= l->capacity, "no more inside than slots");
	r->most_inside = inside > r->most_inside ? (uint32_t)inside : r->most_inside;
	if (r->now_ms - r->start_ms >= r->used_from_ms && l->capacity > 0) {
		r->used += (double)inside / l->capacity;
		r->used_steps++;
	}
}

void rig_run(struct rig *r, const struct rig_plan *plan)
{
	*r = (struct rig){.plan = *plan,
		.random = plan->seed,
		.start_ms = START_MS,
		.now_ms = START_MS,
		.leader_seen_ms = START_MS,
		.next_kill_ms = START_MS + plan->kill_every_ms,
		.used_from_ms = 10000};
	model_init(&r->ledger);
	rig_crowd_init(r);
	for (uint32_t i = 0; i < plan->members; i++)
		make_member(r, i);
	for (uint64_t ms = 0; ms < plan->duration_ms; ms += RIG_STEP_MS) {
		r->now_ms = START_MS + ms;
		if (plan->jump_at_ms > 0 && ms == plan->jump_at_ms)
			r->raw_ahead_ms += plan->jump_ms;
		kill_leader(r);
		rig_crowd_step(r, (uint32_t)(ms / RIG_STEP_MS));
		for (uint32_t i = 0; i < plan->members; i++)
			turn(r, &r->members[i]);
		watch(r);
	}
}

void rig_fini(struct rig *r)
{
	for (uint32_t i = 0; i < r->plan.members; i++) {
		struct rig_member *m = &r->members[i];
		conductor_destroy(m->conductor);
		free(m->reply);
		for (uint32_t j = 0; j < r->plan.lines; j++) {
			free(m->lines[j].place);
			free(m->lines[j].ranks);
		}
	}
	free(r->visitors);
	free(r->grants_at);
	model_fini(&r->ledger);
}

struct rig_plan rig_everyday(uint64_t seed)
{
	return (struct rig_plan){.seed = seed,
		.members = 4,
		.lines = 1,
		.node = {.limits = {.burst = 1},
			.priority = 1,
			.weight = 1,
			.is_line = true,
			.session_s = 60,
			.present_max = 4000,
			.left_max = 1000,
			.ended_max = 5000},
		.weights = {1, 1},
		.priorities = {1, 1},
		.arrive_ms = 1000,
		.claim_s = 60};
}

void rig_check_rate(const struct rig *r, const struct pool_limits *l, uint64_t window_ms)
{
	const uint64_t steps = r->plan.duration_ms / RIG_STEP_MS, window = window_ms / RIG_STEP_MS;
	uint64_t count = 0;
	for (uint64_t i = 0; i < steps; i++) {
		count += r->grants_at[i];
		count -= i >= window ? r->grants_at[i - window] : 0;
		rig_check(r,
			count * l->rate_period_ms <=
				l->rate_count * window_ms + (uint64_t)l->burst * l->rate_period_ms,
			"admissions in a window are within rate x window + burst");
	}
}

uint32_t rig_granted(const struct rig *r, uint64_t from_ms, uint64_t to_ms)
{
	uint32_t count = 0;
	for (uint64_t ms = from_ms; ms < to_ms; ms += RIG_STEP_MS)
		count += r->grants_at[ms / RIG_STEP_MS];
	return count;
}
