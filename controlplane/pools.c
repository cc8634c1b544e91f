// Pools: those of a new configuration are made before anything changes, and put in force when
// nothing can fail any more. A pool keeps its bucket by its name; its slots are counted by the
// rooms that join it.

#include "controlplane/pools.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "controlplane/controller/pool.h"
#include "controlplane/rooms.h"

static struct pool_limits limits_of(const struct config_pool *config)
{
	return (struct pool_limits){.capacity = (uint32_t)config->capacity,
		.rate_count = (uint32_t)config->rate.count,
		.rate_period_ms = (uint32_t)config->rate.period_ms,
		.burst = (uint32_t)config->burst};
}

static struct control_pool *find(struct control *c, const char *name, bool is_of_room)
{
	for (uint32_t i = 0; name && i < c->pool_count; i++)
		if (c->pools[i].is_of_room == is_of_room && strcmp(c->pools[i].name, name) == 0)
			return &c->pools[i];
	return NULL;
}

// As it is in force, or fresh. Returns false when memory is short.
static bool make_one(struct control *c, struct pools_next *next, const char *name, bool is_of_room)
{
	static const struct pool_limits none = {.burst = 1};
	const struct control_pool *known = find(c, name, is_of_room);
	struct pool *pool = known ? known->pool : pool_create(&none, clock_now_ms(&c->clock));
	if (pool)
		next->at[next->count++] = (struct control_pool){name, is_of_room, pool};
	return pool != NULL;
}

int pools_make(struct control *c, struct pools_next *next)
{
	const struct config_pools *pools = &c->config->pools;
	const struct config_sites *sites = &c->config->sites;
	const uint64_t most = pools->count + config_room_count(c->config) + 1;
	*next = (struct pools_next){.at = calloc(most, sizeof(*next->at))};
	bool is_made = next->at;
	for (uint32_t i = 0; is_made && i < pools->count; i++)
		is_made = make_one(c, next, pools->at[i].name, false);
	for (uint32_t i = 0; i < sites->count; i++)
		for (uint32_t j = 0; is_made && j < sites->at[i].rooms.count; j++) {
			const struct config_room *room = &sites->at[i].rooms.at[j];
			if (room->lanes.count > 0)
				is_made = make_one(c, next, room->name, true);
		}
	if (!is_made)
		pools_drop(c, next);
	return is_made ? 0 : -ENOMEM;
}

void pools_drop(struct control *c, struct pools_next *next)
{
	for (uint32_t i = 0; i < next->count; i++)
		if (!find(c, next->at[i].name, next->at[i].is_of_room))
			pool_destroy(next->at[i].pool);
	free(next->at);
}

// A room below its pool, and its lines below the room, if it has lanes.
static void join(struct control *c, const struct control_room *room)
{
	const struct config_room *config = room->config;
	struct control_pool *above = find(c, config->pool, false);
	struct control_pool *own = find(c, config->name, true);
	struct pool *pool = above ? above->pool : NULL;
	const uint32_t priority = (uint32_t)config->priority, weight = (uint32_t)config->weight;
	if (!own) {
		controller_join(room->controller, pool, priority, weight, clock_now_ms(&c->clock));
		return;
	}
	pool_join(own->pool, pool, priority, weight, NULL);
	const uint64_t lane_priority = room->lane ? room->lane->priority : config->line_priority;
	const uint64_t lane_weight = room->lane ? room->lane->weight : config->line_weight;
	controller_join(room->controller, own->pool, (uint32_t)lane_priority, (uint32_t)lane_weight,
		clock_now_ms(&c->clock));
}

static void set_limits(struct control *c, const struct control_pool *pool)
{
	const struct pool_limits limits = limits_of(config_find_pool(c->config, pool->name));
	pool_set_limits(pool->pool, &limits, clock_now_ms(&c->clock));
}

void pools_changed(struct control *c, const struct control_room *room)
{
	const struct control_pool *own = find(c, room->config->name, true);
	if (!own)
		return;
	const struct controller_limits allowed = rooms_limits(room);
	const struct pool_limits limits = controller_pool_limits(&allowed);
	pool_set_limits(own->pool, &limits, clock_now_ms(&c->clock));
}

void pools_take(struct control *c, struct pools_next *next)
{
	struct control_pool *before = c->pools;
	const uint32_t before_count = c->pool_count;
	c->pools = next->at;
	c->pool_count = next->count;
	for (uint32_t i = 0; i < c->pool_count; i++)
		if (!c->pools[i].is_of_room)
			set_limits(c, &c->pools[i]);
	for (uint32_t i = 0; i < c->room_count; i++) {
		if (!c->rooms[i].lane)
			pools_changed(c, &c->rooms[i]);
		join(c, &c->rooms[i]);
	}
	for (uint32_t i = before_count; i-- > 0;) // those of rooms are last, and below the others
		if (!find(c, before[i].name, before[i].is_of_room))
			pool_destroy(before[i].pool);
	free(before);
}

void pools_destroy(struct control *c)
{
	for (uint32_t i = c->pool_count; i-- > 0;) // those of rooms are last, and below the others
		pool_destroy(c->pools[i].pool);
	free(c->pools);
	c->pools = NULL;
	c->pool_count = 0;
}
