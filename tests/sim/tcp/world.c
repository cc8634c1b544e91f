// The world's clock, and who carries what to whom.

#include "tests/sim/tcp/world.h"

#include <assert.h>
#include <errno.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "dataplane/net/tcp/conn.h"
#include "tests/unit/controller/random.h"

#define START_US 5000000000ull
#define AFTER_US 7200000000ull // every deadline of a plan is below
#define TRIES_MAX 6u
#define TOO_BIG_MAX 64u

struct client {
	struct world *world;
	uint32_t slot;
	uint32_t left; // conversations still to come
	uint64_t starts_us; // the next one; UINT64_MAX: one is on
	uint64_t began_us; // 0: none is on
	uint32_t tries; // of connecting a pair
	uint32_t isn;
	struct talk_plan talk;
	struct talk_side side, server_side;
	struct model model;
	struct pair pair;
};

struct world {
	struct world_plan plan;
	struct world_report *report;
	bool trace;
	uint64_t random, now_us;
	struct link up, down;
	struct ours server, other; // other: the client side of pairs
	struct client clients[OURS_SLOTS];
	struct {
		struct ours *ours;
		uint32_t slot, seq;
	} too_big[TOO_BIG_MAX];
	uint32_t too_big_count;
	bool is_draining;
};

// --- what is sent

static void trace(const struct world *w, const char *from, uint32_t slot, struct span bytes)
{
	struct wire s;
	if (!w->trace)
		return;
	wire_read(bytes, &s);
	printf("%12.3f ms  %u %-6s %s\n", (double)(w->now_us - START_US) / 1000, slot, from,
		wire_text(&s, 0, 0));
}

// It has vanished: nothing reaches it, nothing comes of it.
static bool is_cut(const struct client *c)
{
	return c->talk.end == TALK_CLIENT_VANISHES && c->side.error == ECANCELED;
}

static void put_link(
	struct world *w, struct link *link, struct ours *from, uint32_t slot, struct span bytes)
{
	struct wire s;
	if (is_cut(&w->clients[slot]))
		return;
	link_send(link, w->now_us, slot, bytes);
	if (!from || !link_is_too_big(link, (uint32_t)bytes.len) || w->plan.hides_too_big ||
		w->too_big_count == TOO_BIG_MAX)
		return;
	wire_read(bytes, &s);
	w->too_big[w->too_big_count].ours = from;
	w->too_big[w->too_big_count].slot = slot;
	w->too_big[w->too_big_count++].seq = s.seq;
}

static void send_server(void *ctx, uint32_t slot, struct span bytes)
{
	struct world *w = ctx;
	trace(w, "server", slot, bytes);
	if (!w->plan.is_pair || !pair_catch(&w->clients[slot].pair, bytes))
		put_link(w, &w->down, &w->server, slot, bytes);
}

static void send_other(void *ctx, uint32_t slot, struct span bytes)
{
	struct world *w = ctx;
	trace(w, "client", slot, bytes);
	if (!pair_catch(&w->clients[slot].pair, bytes))
		put_link(w, &w->up, &w->other, slot, bytes);
}

static void send_model(void *ctx, const struct wire *segment)
{
	static char bytes[WIRE_BYTES_MAX];
	struct client *c = ctx;
	const struct span all = {bytes, wire_write(segment, bytes)};
	trace(c->world, "client", c->slot, all);
	put_link(c->world, &c->world->up, NULL, c->slot, all);
}

// --- what arrives

static void deliver_up(struct world *w)
{
	for (struct link_packet p; link_take(&w->up, w->now_us, &p);) {
		const struct client *c = &w->clients[p.slot];
		if (p.is_corrupt || (w->plan.is_pair && !c->pair.is_open)) {
			free(p.bytes);
			continue;
		}
		if (w->plan.is_pair)
			p.len = pair_translate(&c->pair, false, p.bytes, p.len);
		ours_put(&w->server, p.slot, p.bytes, p.len);
	}
}

static void deliver_down(struct world *w)
{
	for (struct link_packet p; link_take(&w->down, w->now_us, &p);) {
		struct client *c = &w->clients[p.slot];
		struct wire s;
		if (p.is_corrupt || is_cut(c) || (w->plan.is_pair && !c->pair.is_open)) {
			free(p.bytes);
		} else if (w->plan.is_pair) {
			p.len = pair_translate(&c->pair, true, p.bytes, p.len);
			ours_put(&w->other, p.slot, p.bytes, p.len);
		} else {
			wire_read((struct span){p.bytes, p.len}, &s);
			model_take(&c->model, &s, w->now_us);
			free(p.bytes);
		}
	}
}

// --- conversations

static void choose_talk(struct world *w, struct client *c)
{
	c->talk = w->plan.talk;
	c->talk.salt = random_next(&w->random);
	do
		c->talk.end = (enum talk_end)random_below(&w->random, TALK_ENDS);
	while (!(w->plan.ends & 1u << c->talk.end));
	const bool is_server =
		c->talk.end == TALK_SERVER_RESETS || c->talk.end == TALK_SERVER_LEAVES;
	c->talk.middle_bytes = random_below(
		&w->random, (uint64_t)c->talk.exchanges *
				    (is_server ? c->talk.request_bytes : c->talk.answer_bytes));
}

static void begin_model(struct world *w, struct client *c)
{
	struct model_plan plan = w->plan.model;
	plan.isn = c->isn;
	model_connect(&c->model, &plan, &c->side, w->now_us);
}

static void begin_pair(struct world *w, struct client *c)
{
	const struct model_plan *m = &w->plan.model;
	const struct pair_plan plan = {.a_seen = c->isn,
		.b_seen = c->isn * 5,
		.has_timestamps = m->has_timestamps,
		.has_sack = m->has_sack,
		.has_scale = m->scale != 255,
		.mss = m->mss};
	w->other.slots[c->slot].side = &c->side;
	if (pair_open(&c->pair, &plan, &w->server, &w->other, c->slot, w->now_us)) {
		if (!w->other.slots[c->slot].stream && !c->side.is_over) // full, and so it says
			talk_closed(&c->side, ECONNREFUSED);
		return;
	}
	if (c->tries++ == TRIES_MAX) {
		talk_closed(&c->side, ECONNREFUSED);
		return;
	}
	c->left++; // as if it had not begun
	c->began_us = 0;
	c->starts_us = w->now_us + 1000000;
}

static void begin(struct world *w, struct client *c)
{
	const bool is_pair = w->plan.is_pair;
	c->left--;
	c->starts_us = UINT64_MAX;
	c->began_us = w->now_us;
	// Beyond all that the last one used, as a clock would have it (RFC 9293 3.4.1).
	c->isn += 20000000 + (uint32_t)random_below(&w->random, 1000000);
	choose_talk(w, c);
	talk_init(&c->server_side, &c->talk, false, &ours_ops, NULL, &w->random);
	talk_init(
		&c->side, &c->talk, true, is_pair ? &ours_ops : &model_ops, &c->model, &w->random);
	w->server.slots[c->slot].side = &c->server_side;
	if (is_pair)
		begin_pair(w, c);
	else
		begin_model(w, c);
}

static bool ends_well(enum talk_end end)
{
	return end == TALK_CLIENT_ENDS || end == TALK_SERVER_ENDS || end == TALK_BOTH_END ||
	       end == TALK_HALF;
}

// Both sides are over: was it well?
static void judge(struct world *w, const struct client *c)
{
	const struct talk_side *client = &c->side, *server = &c->server_side;
	const bool is_whole = talk_has_all(client) && talk_has_all(server);
	const bool is_well = client->error == 0 && server->is_over && server->error == 0;
	if (w->trace)
		printf("%12.3f ms  %u over: client %s %" PRIu64 " bytes, server %s %" PRIu64 "\n",
			(double)(w->now_us - START_US) / 1000, c->slot,
			strerrorname_np(client->error), client->received,
			strerrorname_np(server->error), server->received);
	assert(is_whole || !is_well); // bytes are missing and nobody was told
	if (w->plan.is_strict && ends_well(c->talk.end))
		assert(is_whole && is_well);
	w->report->conversations++;
	w->report->well += is_well;
	w->report->broken += !is_well;
	w->report->bytes += client->received + server->received;
}

// How long a segment may still be under way.
static uint64_t link_holds_us(const struct world *w)
{
	uint64_t most = 0;
	const struct link *const links[] = {&w->up, &w->down};
	for (unsigned i = 0; i < 2; i++) {
		const struct link_plan *p = &links[i]->plan;
		most += p->delay_us + p->jitter_us + p->late_us;
		if (p->bytes_a_second > 0)
			most += p->queue_bytes * 1000000ull / p->bytes_a_second + 1000;
	}
	return 2 * most + 2000;
}

// The client's end, as far as the world can see.
static bool is_over(const struct world *w, const struct client *c)
{
	const struct ours_slot *server = &w->server.slots[c->slot];
	const struct ours_slot *other = &w->other.slots[c->slot];
	return c->starts_us == UINT64_MAX && c->side.is_over && server->stream == NULL &&
	       (!w->plan.is_pair || other->stream == NULL);
}

static void look_at_client(struct world *w, struct client *c)
{
	if (c->began_us > 0 && is_over(w, c)) {
		judge(w, c);
		c->tries = 0;
		c->began_us = 0;
		if (c->left > 0)
			c->starts_us = w->now_us + link_holds_us(w) +
				       random_below(&w->random, w->plan.gap_us + 1);
	}
	if (c->starts_us <= w->now_us)
		begin(w, c);
}

// --- time

static uint64_t least(uint64_t a, uint64_t b)
{
	return a < b ? a : b;
}

static uint64_t next_us(const struct world *w)
{
	uint64_t next = least(link_next_us(&w->up), link_next_us(&w->down));
	next = least(next, ours_next_us(&w->server));
	if (w->plan.is_pair)
		next = least(next, ours_next_us(&w->other));
	for (uint32_t i = 0; i < w->plan.clients; i++) {
		const struct client *c = &w->clients[i];
		next = least(next, c->starts_us);
		if (!w->plan.is_pair && c->began_us > 0)
			next = least(next, least(model_next_us(&c->model), c->side.next_us));
	}
	if (!w->is_draining)
		next = least(next, w->plan.drain_at_us);
	return next > w->now_us ? next : w->now_us;
}

static void tell_too_big(struct world *w)
{
	const uint32_t count = w->too_big_count;
	for (uint32_t i = 0; i < count; i++) {
		struct ours *o = w->too_big[i].ours;
		const struct link *link = o == &w->server ? &w->down : &w->up;
		ours_too_big(o, w->too_big[i].slot, w->too_big[i].seq, (uint16_t)link->plan.mtu);
	}
	memmove(w->too_big, w->too_big + count, (w->too_big_count - count) * sizeof(w->too_big[0]));
	w->too_big_count -= count;
}

static void step(struct world *w)
{
	w->now_us = next_us(w);
	if (!w->is_draining && w->now_us >= w->plan.drain_at_us) {
		w->is_draining = true;
		tcp_stop_accepting(w->server.tcp);
	}
	tell_too_big(w);
	deliver_up(w);
	if (w->server.input_count > 0 || ours_next_us(&w->server) <= w->now_us)
		ours_turn(&w->server, w->now_us);
	deliver_down(w);
	if (w->plan.is_pair && (w->other.input_count > 0 || ours_next_us(&w->other) <= w->now_us))
		ours_turn(&w->other, w->now_us);
	for (uint32_t i = 0; i < w->plan.clients; i++) {
		struct client *c = &w->clients[i];
		if (!w->plan.is_pair && c->began_us > 0) {
			model_due(&c->model, w->now_us);
			if (c->side.next_us <= w->now_us)
				talk_time(&c->side, w->now_us);
		}
		look_at_client(w, c);
	}
}

static bool is_going_on(const struct world *w)
{
	for (uint32_t i = 0; i < w->plan.clients; i++)
		if (w->clients[i].began_us > 0 || w->clients[i].starts_us != UINT64_MAX)
			return true;
	return false;
}

static void say_stuck(const struct world *w)
{
	for (uint32_t i = 0; i < w->plan.clients; i++) {
		const struct client *c = &w->clients[i];
		if (c->began_us > 0)
			fprintf(stderr,
				"client %u: end %d, %s, received %" PRIu64
				"; server %s, %s, %" PRIu64 "\n",
				i, (int)c->talk.end, c->side.is_over ? "over" : "not over",
				c->side.received, w->server.slots[i].stream ? "open" : "closed",
				c->server_side.is_over ? "over" : "not over",
				c->server_side.received);
	}
}

static bool is_empty(const struct ours *o)
{
	return o->tcp->stats.open == 0 && o->tcp->stats.waiting == 0;
}

// --- the whole

static void init_ours(struct world *w, struct ours *o, const struct tcp_plan *plan,
	void (*send)(void *ctx, uint32_t slot, struct span bytes))
{
	ours_init(o, plan, &w->random, w->now_us);
	o->send = send;
	o->ctx = w;
	o->event_max = w->plan.event_max;
	o->local = (struct stream_address){
		.ip = {[10] = 0xff, 0xff, 192, 0, 2, (uint8_t)(o == &w->server ? 1 : 2)},
		.port = 80};
	o->peer = (struct stream_address){.ip = {[10] = 0xff, 0xff, 10, 0, 0, 1}, .port = 2000};
}

static void init(struct world *w, const struct world_plan *plan)
{
	*w = (struct world){.plan = *plan, .random = plan->seed, .now_us = START_US};
	link_init(&w->up, &plan->up, &w->random);
	link_init(&w->down, &plan->down, &w->random);
	init_ours(w, &w->server, &plan->tcp, send_server);
	if (plan->is_pair) {
		struct tcp_plan other = plan->tcp;
		other.seed++;
		other.secret[0]++;
		init_ours(w, &w->other, &other, send_other);
	}
	for (uint32_t i = 0; i < plan->clients; i++) {
		struct client *c = &w->clients[i];
		c->world = w;
		c->slot = i;
		c->left = plan->conversations;
		c->starts_us = w->now_us + random_below(&w->random, plan->gap_us + 1);
		c->isn = plan->has_near_wrap ? (uint32_t)-20005000 - i * 1000
					     : (uint32_t)random_next(&w->random);
		model_init(&c->model, send_model, c);
	}
}

static void fini(struct world *w)
{
	for (uint32_t i = 0; i < w->plan.clients; i++)
		model_fini(&w->clients[i].model);
	link_fini(&w->up);
	link_fini(&w->down);
	ours_fini(&w->server);
	if (w->plan.is_pair)
		ours_fini(&w->other);
}

static void report_on(const struct world *w, struct world_report *r)
{
	r->worlds++;
	r->virtual_us += w->now_us - START_US;
	r->segments += w->up.sent + w->down.sent;
	r->lost += w->up.lost + w->down.lost;
	r->turns += w->server.turns + w->other.turns;
	for (unsigned i = 0; i < TCP_COUNTERS_COUNT; i++) {
		r->counters[i] += w->server.tcp->stats.counters[i];
		if (w->plan.is_pair)
			r->counters[i] += w->other.tcp->stats.counters[i];
	}
}

void world_run(const struct world_plan *plan, struct world_report *report, bool is_traced)
{
	static struct world w;
	init(&w, plan);
	w.trace = is_traced;
	w.report = report;
	while (is_going_on(&w)) {
		step(&w);
		if (w.now_us - START_US > plan->limit_us) {
			say_stuck(&w);
			abort();
		}
	}
	const uint64_t after = w.now_us;
	while (!is_empty(&w.server) || (plan->is_pair && !is_empty(&w.other))) {
		step(&w);
		assert(w.now_us - after < AFTER_US);
	}
	ours_check_empty(&w.server);
	if (plan->is_pair)
		ours_check_empty(&w.other);
	report_on(&w, report);
	fini(&w);
}
