// Crowd: what members might send, at random, each entry sound in itself.
//
// Tickets are few and threshold runs close behind the clock, so that the same visitors meet again
// and again, on all members.

#include "tests/sim/cluster/crowd.h"

#include <assert.h>
#include <stdio.h>
#include <string.h>

#include "controlplane/cluster/ledger_wire.h"
#include "dataplane/gate/place.h"

#define CROWD_YOUNG 300u // batches
#define START_MS 1764500000000ull
static const uint32_t line_ids[CROWD_LINES] = {0x1a, 0x2b, 0x3c, 0x4d};
static const uint32_t node_ids[CROWD_NODES] = {0x1a, 0x2b, 0x3c, 0x4d, 0xe0, 0xf0};

// SplitMix64 (Steele, Lea, Flood: Fast splittable pseudorandom number generators, 2014).
uint64_t crowd_random(struct crowd *c, uint64_t limit)
{
	uint64_t z = c->random += 0x9e3779b97f4a7c15;
	z = (z ^ z >> 30) * 0xbf58476d1ce4e5b9;
	z = (z ^ z >> 27) * 0x94d049bb133111eb;
	return (z ^ z >> 31) % limit;
}

static bool chance(struct crowd *c, uint32_t of_thousand)
{
	return crowd_random(c, 1000) < of_thousand;
}

static uint64_t id(struct crowd *c)
{
	return crowd_random(c, UINT64_MAX - 1) + 1;
}

static uint64_t cluster_ms(const struct crowd *c)
{
	return c->raw_ms + (uint64_t)c->ahead_ms;
}

static void draw_ticket(struct crowd *c, struct crowd_ticket *t)
{
	const uint64_t slot = cluster_ms(c) / PLACE_SLOT_MS - crowd_random(c, 300);
	*t = (struct crowd_ticket){
		.key = place_key(slot, crowd_random(c, 4), crowd_random(c, CROWD_MEMBERS)),
		.visitor = id(c),
		.line = line_ids[crowd_random(c, CROWD_LINES)],
	};
}

static void new_run(struct crowd *c)
{
	for (uint32_t i = 0; i < LEDGER_RUN_BYTES; i++)
		c->run[i] = "0123456789abcdef"[crowd_random(c, 16)];
}

void crowd_init(struct crowd *c, uint64_t seed)
{
	*c = (struct crowd){.random = seed, .raw_ms = START_MS};
	new_run(c);
	for (uint32_t i = 0; i < CROWD_MEMBERS; i++) {
		struct crowd_member *m = &c->members[i];
		snprintf(m->batch.name, sizeof(m->batch.name), "a%u", i + 1);
		m->batch.incarnation = id(c);
		m->number = LEDGER_MEMBERS_MAX;
	}
	for (uint32_t i = 0; i < CROWD_TICKETS; i++)
		draw_ticket(c, &c->tickets[i]);
}

// --- entries

// A claim of somebody, as claim.h would have it; sometimes of nobody in particular.
static void claim(struct crowd *c, struct crowd_member *m, struct ledger_entry *e)
{
	const uint32_t index = (uint32_t)crowd_random(c, CROWD_TICKETS);
	struct crowd_ticket *t = &c->tickets[index];
	if (chance(c, 60))
		draw_ticket(c, t);
	static const uint8_t kinds[] = {LEDGER_CALLED, LEDGER_CALLED, LEDGER_CALLED, LEDGER_CALLED,
		LEDGER_CALLED, LEDGER_DIRECT, LEDGER_DIRECT, LEDGER_RENEW, LEDGER_RENEW, LEDGER_END,
		LEDGER_LEAVE, LEDGER_GONE, LEDGER_TAKEN};
	e->kind = kinds[crowd_random(c, sizeof(kinds))];
	if (e->kind == LEDGER_TAKEN && (c->is_single || !chance(c, 200)))
		e->kind = LEDGER_CALLED;
	e->line = t->line;
	e->claim = (struct ledger_claim){
		.key = t->key,
		.visitor = t->visitor,
		.session = t->session ? t->session : id(c),
		.expires = t->expires ? t->expires : (uint32_t)(cluster_ms(c) / 1000 + 3),
		.poll_after = (uint32_t)crowd_random(c, 4) + 1,
	};
	if (e->kind == LEDGER_CALLED || e->kind == LEDGER_DIRECT)
		e->claim.session = id(c);
	if (e->kind == LEDGER_DIRECT || t->is_direct || (e->kind == LEDGER_LEAVE && chance(c, 300)))
		e->claim.key = 0;
	if (e->kind == LEDGER_DIRECT && t->session == 0)
		t->is_direct = true;
	if (e->kind == LEDGER_CALLED && t->is_direct)
		e->kind = LEDGER_DIRECT;
	if (e->kind == LEDGER_LEAVE && e->claim.key != 0 && chance(c, 500))
		e->claim.session = 0;
	if (e->kind == LEDGER_RENEW && chance(c, 400))
		e->claim.expires = 0;
	m->tickets[e - m->entries] = index + 1;
}

static void slots(struct crowd *c, struct crowd_member *m, struct ledger_entry *e)
{
	const uint32_t line = (uint32_t)crowd_random(c, CROWD_LINES);
	e->kind = LEDGER_SLOTS;
	e->line = line_ids[line];
	e->slots.count = (uint32_t)crowd_random(c, 3) + 1;
	const uint64_t slot = cluster_ms(c) / PLACE_SLOT_MS - 100 + crowd_random(c, 120);
	for (uint32_t i = 0; i < e->slots.count; i++) {
		const uint64_t tickets = crowd_random(c, 2) + 1;
		e->slots.held[i] = (slot + i) << 24 | tickets;
		m->totals[line] += chance(c, 200) ? tickets : 0;
	}
	e->slots.total = m->totals[line];
	e->slots.is_again = chance(c, 500);
}

static void threshold(struct crowd *c, struct ledger_entry *e)
{
	const uint32_t line = (uint32_t)crowd_random(c, CROWD_LINES);
	const uint64_t now = cluster_ms(c) / PLACE_SLOT_MS;
	const uint64_t back = chance(c, c->is_shared ? 900 : 300) ? 0 : crowd_random(c, 300);
	e->kind = LEDGER_THRESHOLD;
	e->line = line_ids[line];
	e->threshold = (struct ledger_threshold){
		.threshold = place_key(now - back + (chance(c, 20) ? 500 : 0), 0, 0),
		.floor = place_key(now - back - 150 - crowd_random(c, 800), 0, 0),
		.threshold_rank = crowd_random(c, 40),
		.floor_rank = crowd_random(c, 40),
		.coming = (uint32_t)crowd_random(c, 3),
		.room_ahead = (uint32_t)crowd_random(c, 10),
		.ahead_ms = 5000,
		.is_open = !chance(c, 60),
		.is_lapse = chance(c, 30),
		.words = {.wait_low = chance(c, 500) ? UINT64_MAX : crowd_random(c, 1 << 30),
			.wait_high = UINT64_MAX,
			.next_poll_after = (uint32_t)crowd_random(c, 10) + 1,
			.door_wait_ms = (uint32_t)crowd_random(c, 3),
			.open_count = (uint32_t)crowd_random(c, 2),
			.at_ms = crowd_random(c, 3),
			.called = (uint32_t)crowd_random(c, 2),
			.yield = (uint32_t)crowd_random(c, 2)},
	};
}

static void hold(struct crowd *c, struct ledger_entry *e)
{
	e->kind = LEDGER_HOLD;
	e->hold = (struct ledger_hold){c->tickets[crowd_random(c, CROWD_TICKETS)].key,
		chance(c, 50) ? UINT32_MAX : (uint32_t)crowd_random(c, 3000)};
}

static uint32_t few(struct crowd *c, uint32_t none, uint32_t limit)
{
	return chance(c, none) ? 0 : (uint32_t)crowd_random(c, limit) + 1;
}

// Three lines below one pool, which alone limits them: who is next is a matter of weights.
static void share(struct crowd *c, struct ledger_entry *e, uint32_t index)
{
	struct ledger_node *n = &e->node;
	n->limits = (struct pool_limits){.capacity = index == 4 ? 3 : 0, .burst = 1};
	n->parent = index < 3 ? 0xe0 : 0;
	n->priority = 1;
	n->weight = chance(c, 200) ? LEDGER_WEIGHT_MAX : (uint32_t)crowd_random(c, 2) + 1;
	n->session_s = 2;
	n->direct = chance(c, 100);
	n->present_max = (uint32_t)crowd_random(c, 4) + 2;
	n->config = 0;
}

static void node(struct crowd *c, struct ledger_entry *e)
{
	const uint32_t index = (uint32_t)crowd_random(c, CROWD_NODES);
	const uint32_t parents[] = {0, 0xe0, 0xf0, 0x4d};
	struct ledger_node *n = &e->node;
	e->kind = LEDGER_NODE;
	e->line = node_ids[index];
	*n = (struct ledger_node){
		.limits = {.capacity = few(c, 300, 8),
			.rate_count = few(c, 500, 20),
			.rate_period_ms = (uint32_t)crowd_random(c, 5000),
			.burst = (uint32_t)crowd_random(c, 6) + !chance(c, 20),
			.all = {few(c, 700, 20), 1000 * (uint32_t)(crowd_random(c, 5) + 1)},
			.direct = {few(c, 700, 5), 60000}},
		.parent = chance(c, 300) ? 0 : parents[crowd_random(c, 4)],
		.priority = (uint32_t)crowd_random(c, 2) + !chance(c, 20),
		.weight = chance(c, 50) ? LEDGER_WEIGHT_MAX : (uint32_t)crowd_random(c, 5) + 1,
		.is_line = index < CROWD_LINES,
		.sliding = chance(c, 500),
		.direct = !chance(c, 200),
		.session_s = (uint32_t)crowd_random(c, 8) + 2,
		.present_max = (uint32_t)crowd_random(c, 10) + 1,
		.left_max = (uint32_t)crowd_random(c, 6) + 1,
		.ended_max = (uint32_t)crowd_random(c, 6) + 1,
		.config = chance(c, 850) ? 0 : 7,
	};
	if (index == 4 || chance(c, 200))
		n->parent = index == 4 ? 0xf0 : 0;
	if (c->is_shared)
		share(c, e, index);
}

static void record(struct crowd *c, struct ledger_entry *e)
{
	const uint32_t what = (uint32_t)crowd_random(c, 4);
	if (what == 0) {
		e->kind = LEDGER_RECORD;
		c->blob[0]++;
		e->record = (struct ledger_record){.type = (uint8_t)crowd_random(c, 2),
			.is_conductors = chance(c, 300),
			.version = (uint32_t)crowd_random(c, 4),
			.id = (uint32_t)crowd_random(c, 5),
			.len = (uint32_t)crowd_random(c, sizeof(c->blob) + 1),
			.bytes = c->blob};
	} else if (what == 1) {
		e->kind = LEDGER_CODE;
		e->code = (struct ledger_code){.what = chance(c, 250)  ? LEDGER_CODE_UNDO
						       : chance(c, 50) ? LEDGER_CODE_KNOWN
						       : chance(c, 50) ? LEDGER_CODE_LOOK
								       : LEDGER_CODE_USE,
			.uses = (uint32_t)crowd_random(c, 3) + 1,
			.digest = {chance(c, 200) ? 0 : 7, crowd_random(c, 5)},
			.holder = crowd_random(c, 4) + 1,
			.place = {crowd_random(c, 3) + 1, crowd_random(c, 9), chance(c, 500)}};
	} else if (what == 2) {
		e->kind = LEDGER_GATHERED;
		e->gathered = (struct ledger_gathered){
			.what = chance(c, 80)
					? (uint8_t)crowd_random(c, LEDGER_GATHERED_WHATS - 1) + 1
					: LEDGER_GATHERED_TELL,
			.number = crowd_random(c, 3) + 1,
			.source = crowd_random(c, 8) == 0,
			.from = crowd_random(c, 6),
			.ids = {id(c), id(c)},
			.count = 2,
			.is_whole = chance(c, 100),
			.people = crowd_random(c, 9)};
		if (e->gathered.what == LEDGER_GATHERED_OVER && !chance(c, 50))
			e->gathered.number = 1; // the others go on
		if (e->gathered.what == LEDGER_GATHERED_PLACED) {
			e->gathered.count = 1;
			e->gathered.key = crowd_random(c, 9);
			e->gathered.place = crowd_random(c, 9);
		}
	} else {
		const uint8_t whats[] = {LEDGER_NEWS_ENDED, LEDGER_NEWS_LEFT, LEDGER_NEWS_SLOTS,
			LEDGER_NEWS_RECORD, LEDGER_NEWS_GATHERED};
		e->kind = LEDGER_READ;
		e->read = (struct ledger_read){.what = whats[crowd_random(c, 5)],
			.number = crowd_random(c, 3) + 1,
			.type = (uint8_t)crowd_random(c, 2),
			.member = (uint8_t)crowd_random(c, CROWD_MEMBERS),
			.from = chance(c, 800) ? 0 : crowd_random(c, 70)};
	}
}

static void restore(struct crowd *c, struct ledger_entry *e)
{
	e->kind = LEDGER_RESTORE;
	e->line = chance(c, 300) ? 0 : line_ids[crowd_random(c, CROWD_LINES)];
	const uint64_t slot = cluster_ms(c) / PLACE_SLOT_MS - crowd_random(c, 500);
	e->restore = (struct ledger_restore){place_key(slot, 0, 0), place_key(slot - 100, 0, 0),
		crowd_random(c, 40), crowd_random(c, 9), slot};
}

// Mostly of the epoch that there is.
static void restored(struct crowd *c, const struct crowd_member *m, struct ledger_entry *e)
{
	*e = (struct ledger_entry){.kind = LEDGER_RESTORED,
		.restored = {.epoch = chance(c, 100) ? 3 : m->epoch,
			.peers = chance(c, 300) ? id(c) : 0}};
}

static void fill(struct crowd *c, struct crowd_member *m, struct ledger_entry *e)
{
	const uint64_t what = crowd_random(c, 1000);
	e->line = line_ids[crowd_random(c, CROWD_LINES)];
	if (m->is_skewed && m->fence != 0 && chance(c, 300))
		*e = (struct ledger_entry){.kind = LEDGER_CORRECTION, .correction_ms = c->ahead_ms};
	else if (m->is_recovering && chance(c, 300))
		restored(c, m, e);
	else if (c->batches < CROWD_YOUNG && m->fence != 0 && chance(c, 600))
		node(c, e); // first there must be something
	else if (what < 600)
		claim(c, m, e);
	else if (what < 660)
		slots(c, m, e);
	else if (what < 780 && m->fence == 0 && !chance(c, 200))
		e->kind = LEDGER_ELECT; // who is not conductor says little of what conductors say
	else if (what < 740)
		threshold(c, e);
	else if (what < 780 && !c->is_settled)
		node(c, e);
	else if (what < 840)
		record(c, e);
	else if (what < 850)
		hold(c, e);
	else if (what < 900)
		*e = (struct ledger_entry){.kind = LEDGER_VIEW,
			.line = node_ids[crowd_random(c, CROWD_NODES)],
			.takes_came = chance(c, 500)};
	else if (what < 960)
		e->kind = LEDGER_ELECT;
	else if (what < 965 && !c->is_calm)
		restore(c, e);
	else if (what < 968 && !c->is_calm)
		*e = (struct ledger_entry){.kind = LEDGER_CORRECTION, .correction_ms = c->ahead_ms};
	else if (what < 970 && !c->is_calm)
		e->kind = LEDGER_GOODBYE;
	else if (what < 985)
		*e = (struct ledger_entry){
			.kind = LEDGER_CONFIG, .line = e->line, .config = chance(c, 300) ? 9 : 7};
	else
		restored(c, m, e);
}

// --- batches

static void trouble(struct crowd *c, struct crowd_member *m)
{
	if (chance(c, 3)) { // the store's clock jumps; cluster time does not
		const int64_t jump = (int64_t)crowd_random(c, 7200000) - 3600000;
		c->raw_ms += (uint64_t)jump;
		c->ahead_ms -= jump;
	}
	if (chance(c, 2))
		new_run(c);
	if (chance(c, 2))
		m->writes += 5;
	if (chance(c, 4))
		m->batch.incarnation = id(c);
	if (chance(c, 10))
		m->gone_ms = cluster_ms(c) - crowd_random(c, chance(c, 500) ? 20000 : 200000000);
	if (chance(c, 2))
		m->cursor += crowd_random(c, 20);
	if (chance(c, 3))
		c->raw_ms += crowd_random(c, 6000);
}

static void make(struct crowd *c, struct crowd_member *m)
{
	const uint64_t late_ms = chance(c, 20) && !c->is_calm ? crowd_random(c, 600) : 0;
	struct ledger_batch *b = &m->batch;
	b->number++;
	if (chance(c, 3) && !c->is_calm)
		b->number -= 2 * (b->number > 2);
	b->appliance = m->number;
	b->time_ms = cluster_ms(c) - late_ms;
	b->fence = m->fence;
	b->cursor = m->cursor;
	m->applied = chance(c, 500) ? m->cursor : m->applied;
	b->applied = m->applied;
	b->closed = b->time_ms / PLACE_SLOT_MS - crowd_random(c, 100);
	memcpy(b->run, c->run, sizeof(b->run));
	b->writes = m->writes;
	b->gone_ms = m->gone_ms;
	b->count = c->is_single ? 1 : (uint32_t)crowd_random(c, CROWD_ENTRIES + 1);
	b->entries = m->entries;
	memset(m->entries, 0, sizeof(m->entries));
	memset(m->tickets, 0, sizeof(m->tickets));
	for (uint32_t i = 0; i < b->count; i++)
		fill(c, m, &m->entries[i]);
}

const struct ledger_batch *crowd_batch(struct crowd *c, struct crowd_member **member)
{
	struct crowd_member *m = &c->members[crowd_random(c, CROWD_MEMBERS)];
	*member = m;
	c->batches++;
	c->raw_ms += crowd_random(c, c->is_single || c->is_shared ? 20 : 100);
	if (!c->is_calm && chance(c, c->is_single ? 200 : 1000))
		trouble(c, m);
	if (m->batch.number == 0 || !chance(c, 50))
		make(c, m);
	return &m->batch;
}

static void hear_answer(struct crowd *c, const struct crowd_member *m, uint32_t index,
	const struct ledger_answer *a)
{
	// A number that was used before, for another batch: what it was told then is told again.
	const bool is_mine = index < m->batch.count && a->kind == m->entries[index].kind;
	if (!is_mine || index >= CROWD_ENTRIES || m->tickets[index] == 0)
		return;
	struct crowd_ticket *t = &c->tickets[m->tickets[index] - 1];
	if (t->visitor != m->entries[index].claim.visitor)
		return;
	if (a->verdict == LEDGER_GRANTED || a->verdict == LEDGER_RENEWED) {
		t->session = a->session;
		t->expires = a->expires;
	} else if (a->verdict == LEDGER_LAPSED && a->kind != LEDGER_RENEW && chance(c, 500)) {
		draw_ticket(c, t);
	}
}

void crowd_reply(struct crowd *c, struct crowd_member *m, const char *bytes, size_t len)
{
	struct ledger_wire_reader reader;
	struct ledger_reply reply;
	struct ledger_answer answer;
	struct ledger_member member;
	static struct ledger_news news;
	bool is_sound = ledger_wire_reply(&reader, bytes, len, &reply);
	for (uint32_t i = 0; i < reply.answer_count && is_sound; i++) {
		is_sound = ledger_wire_answer(&reader, &answer);
		if (is_sound)
			hear_answer(c, m, i, &answer);
	}
	for (uint32_t i = 0; i < reply.member_count && is_sound; i++)
		is_sound = ledger_wire_member(&reader, &member);
	for (uint32_t i = 0; i < reply.news_count && is_sound; i++)
		is_sound = ledger_wire_news(&reader, &news);
	if (!is_sound || reader.at != reader.end) {
		fprintf(stderr, "no reply, near: %.200s\nof\n%.*s\n", reader.at, (int)len, bytes);
		assert(!"reply is read to its end");
	}
	if (reply.verdict != LEDGER_BATCH_TAKEN)
		return;
	m->number = reply.number;
	m->is_skewed = reply.is_skewed;
	m->is_recovering = reply.is_recovering;
	m->epoch = reply.epoch;
	m->gone_ms = reply.gone_ms;
	m->cursor = reply.cursor;
	m->writes = reply.writes > m->writes ? reply.writes : m->writes;
	m->fence = reply.conductor == reply.number ? reply.fence : 0;
}
