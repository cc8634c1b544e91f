// Rooms, lanes and pools as nodes of the ledger: a pool of the configuration and a room with lanes
// are nodes that lines share; a room's own line and each lane is a line.
//
//   pool//shop ─┬─ derby                    (a line, which is the room)
//               └─ room//final ─┬─ final    (the room's own line)
//                               └─ final/members
//
// The hash says what every appliance has to have configured alike for the line: its room, its
// lanes, its pool. Commands are not in it, they are shared otherwise.

#include "controlplane/appliance/inside.h"

#include "controlplane/log.h"
#include "controlplane/rooms.h"
#include "dataplane/gate/ranks.h"

#include <xxhash.h>

#include <errno.h>
#include <inttypes.h>
#include <stdio.h>
#include <string.h>
#include <sys/mman.h>

#define TEXT_BYTES 4096u // of what is hashed of a room, without its lanes

// What no line's name can be, so that it is another id but for chance (LEDGER_REFUSED, and shown).
static uint32_t node_id(const char *kind, const char *name)
{
	char text[256];
	const int len = snprintf(text, sizeof(text), "%s//%s", kind, name);
	return (uint32_t)XXH3_64bits(text, (size_t)len);
}

static uint32_t pool_id(const char *name)
{
	return node_id("pool", name);
}

static uint32_t room_id(const char *name)
{
	return node_id("room", name);
}

static uint64_t hash_text(uint64_t hash, const char *text)
{
	return XXH3_64bits_withSeed(text, strlen(text), hash);
}

static uint64_t hash_pool(uint64_t hash, const struct config_pool *pool)
{
	char text[256];
	snprintf(text, sizeof(text), "pool %s %" PRIu64 " %" PRIu64 " %" PRIu64 " %" PRIu64,
		pool->name, pool->capacity, pool->rate.count, pool->rate.period_ms, pool->burst);
	return hash_text(hash, text);
}

static uint64_t hash_lanes(uint64_t hash, const struct config_room *room)
{
	char text[256];
	snprintf(text, sizeof(text), "lanes %" PRIu64 " %" PRIu64, room->line_priority,
		room->line_weight);
	hash = hash_text(hash, text);
	for (uint32_t i = 0; i < room->lanes.count; i++) {
		const struct config_lane *lane = &room->lanes.at[i];
		snprintf(text, sizeof(text), "%s %" PRIu64 " %" PRIu64, lane->full_name,
			lane->priority, lane->weight);
		hash = hash_text(hash, text);
	}
	return hash;
}

// Doors and draws: one appliance that opens at another hour would draw at another hour.
static uint64_t hash_draws(uint64_t hash, const struct config_room *room)
{
	char text[256];
	snprintf(text, sizeof(text), "draws %" PRIu64 " %" PRIu64 " %" PRIu64, room->window.s,
		room->window.people, room->window_max_s);
	hash = hash_text(hash_text(hash, text), room->salt ? room->salt : "");
	for (uint32_t i = 0; i < room->events.count; i++) {
		const struct config_event *event = &room->events.at[i];
		snprintf(text, sizeof(text), "event %" PRIu64 " %" PRIu64 " %" PRIu64,
			event->opens_s, event->closes_s, event->prequeue_s);
		hash = hash_text(hash_text(hash, text), event->salt ? event->salt : "");
	}
	return hash;
}

static uint64_t hash_room(const struct config *config, const struct config_room *room)
{
	char text[TEXT_BYTES];
	snprintf(text, sizeof(text),
		"room %s %" PRIu64 " %" PRIu64 "/%" PRIu64 " %" PRIu64 " %" PRIu64 " %" PRIu64
		" %d %d %d %" PRIu64 " %" PRIu64 " %" PRIu64 " %" PRIu64 "/%" PRIu64 " %" PRIu64
		"/%" PRIu64 " %d %s %" PRIu64 " %" PRIu64,
		room->name, room->capacity, room->rate.count, room->rate.period_ms, room->burst,
		room->session_s, room->claim_s, room->sliding, room->mode, room->order,
		room->opens_s, room->closes_s, room->prequeue_s, room->inflow.count,
		room->inflow.period_ms, room->batch.count, room->batch.period_ms,
		room->batch_spread, room->pool ? room->pool : "", room->priority, room->weight);
	uint64_t hash = hash_draws(hash_lanes(hash_text(0, text), room), room);
	const struct config_pool *pool = room->pool ? config_find_pool(config, room->pool) : NULL;
	if (pool)
		hash = hash_pool(hash, pool);
	return hash ? hash : 1; // 0 would say that everybody agrees
}

// A line as the ledger knows it.
static struct ledger_node line_node(const struct control *c, const struct control_room *room)
{
	const struct controller_limits limits = rooms_line_limits(room);
	const struct config_room *config = room->config;
	const bool has_lanes = config->lanes.count > 0;
	const uint64_t priority = room->lane  ? room->lane->priority
				  : has_lanes ? config->line_priority
					      : config->priority;
	const uint64_t weight = room->lane  ? room->lane->weight
				: has_lanes ? config->line_weight
					    : config->weight;
	return (struct ledger_node){.limits = controller_pool_limits(&limits),
		.parent = has_lanes      ? room_id(config->name)
			  : config->pool ? pool_id(config->pool)
					 : 0,
		.priority = (uint32_t)priority,
		.weight = (uint32_t)weight,
		.is_line = true,
		.sliding = limits.sliding,
		.direct = limits.direct,
		.session_s = limits.session_s,
		.present_max = (uint32_t)c->started->present_max,
		.left_max = (uint32_t)c->started->left_max,
		.ended_max = (uint32_t)c->started->ended_max,
		.config = hash_room(c->config, config)};
}

static struct ledger_node shared_node(
	const struct control *c, const struct pool_limits *limits, uint64_t session_s)
{
	return (struct ledger_node){.limits = *limits,
		.priority = 1,
		.weight = 1,
		.session_s = (uint32_t)session_s,
		.present_max = 1,
		.left_max = 1,
		.ended_max = (uint32_t)c->started->ended_max};
}

static void add_node(struct appliance_nodes *n, uint32_t id, const struct ledger_node *node)
{
	if (n->node_count == MEMBER_NODES_MAX)
		return; // more than lines can be: config.h
	n->nodes[n->node_count++] = (struct member_node){.id = id, .node = *node};
}

static void add_pools(const struct control *c, struct appliance_nodes *n)
{
	for (uint32_t i = 0; i < c->config->pools.count; i++) {
		const struct config_pool *pool = &c->config->pools.at[i];
		const struct pool_limits limits = {.capacity = (uint32_t)pool->capacity,
			.rate_count = (uint32_t)pool->rate.count,
			.rate_period_ms = (uint32_t)pool->rate.period_ms,
			.burst = (uint32_t)pool->burst};
		const struct ledger_node node = shared_node(c, &limits, 0);
		add_node(n, pool_id(pool->name), &node);
	}
}

// Of a room with lanes, what its lines share.
static void add_room(
	const struct control *c, const struct control_room *room, struct appliance_nodes *n)
{
	const struct config_room *config = room->config;
	const struct controller_limits allowed = rooms_limits(room);
	const struct pool_limits limits = controller_pool_limits(&allowed);
	struct ledger_node node = shared_node(c, &limits, config->session_s);
	node.parent = config->pool ? pool_id(config->pool) : 0;
	node.priority = (uint32_t)config->priority;
	node.weight = (uint32_t)config->weight;
	add_node(n, room_id(config->name), &node);
}

static void add_line(
	const struct control *c, const struct control_room *room, struct appliance_nodes *n)
{
	static const uint8_t on_loss[] = {[CONFIG_ON_STORE_LOSS_HOLD] = MEMBER_HOLD,
		[CONFIG_ON_STORE_LOSS_SHARE] = MEMBER_SHARE,
		[CONFIG_ON_STORE_LOSS_OPEN] = MEMBER_OPEN,
		[CONFIG_ON_STORE_LOSS_REJECT] = MEMBER_REJECT};
	if (n->line_count == MEMBER_LINES_MAX)
		return;
	n->lines[n->line_count++] = (struct member_line){.line_id = room->line_id,
		.line = room->line,
		.ranks = room->ranks,
		.node = line_node(c, room),
		.claim_s = (uint32_t)rooms_config(room)->claim_s,
		.state = rooms_state(room),
		.on_loss = on_loss[room->config->on_store_loss],
		.is_still = rooms_is_still(room)};
}

void appliance_nodes_fill(const struct control *c, struct appliance_nodes *n)
{
	n->line_count = n->node_count = 0;
	add_pools(c, n);
	for (uint32_t i = 0; i < c->room_count; i++)
		if (!c->rooms[i].lane && c->rooms[i].config->lanes.count > 0)
			add_room(c, &c->rooms[i], n);
	for (uint32_t i = 0; i < c->room_count; i++)
		add_line(c, &c->rooms[i], n);
}

uint64_t appliance_line_bytes(void)
{
	return ranks_bytes(APPLIANCE_RANKS);
}

// Pages that no ticket has touched cost nothing. They stay with the line for as long as the process
// runs: a worker may look at a room that a reload has just taken away, and it may come back.
int appliance_begin_line(struct control *c, struct control_room *room)
{
	(void)c;
	if (atomic_load(&room->line->is_shared)) {
		room->ranks = atomic_load(&room->line->ranks);
		return 0;
	}
	const size_t bytes = appliance_line_bytes();
	void *memory =
		mmap(NULL, bytes, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
	if (memory == MAP_FAILED)
		return -ENOMEM;
	room->ranks = ranks_init(memory, APPLIANCE_RANKS);
	place_share(room->line, room->ranks);
	return 0;
}

void appliance_end_line(struct control_room *room)
{
	room->ranks = NULL;
}

void appliance_set_lines(struct control *c)
{
	static struct appliance_nodes nodes;
	struct appliance *a = c->appliance;
	const uint64_t now_ms = clock_now_ms(&c->clock);
	appliance_nodes_fill(c, &nodes);
	const struct member_shape shape = {
		nodes.lines, nodes.nodes, nodes.line_count, nodes.node_count};
	if (!member_set_shape(a->member, &shape, now_ms))
		log_error("no memory for these rooms in the cluster: it goes by those of before");
}
