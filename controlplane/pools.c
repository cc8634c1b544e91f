// Pools: those of a new configuration are made before anything changes, and put in force when
// nothing can fail any more. A pool keeps its bucket by its name; its slots are counted by the
// rooms that join it.

#include "controlplane/pools.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "controlplane/controller/pool.h"

static struct pool_limits limits_of(const struct config_pool *config)
{
	return (struct pool_limits){.capacity = (uint32_t)config->capacity,
		.rate_count = (uint32_t)config->rate.count,
		.rate_period_ms = (uint32_t)config->rate.period_ms,
		.burst = (uint32_t)config->burst};
}

static uint64_t now_ms(const struct control *c)
{
	return clock_at(&c->clock, clock_monotonic_us());
}

static struct control_pool *find(struct control_pool *pools, uint32_t count, const char *name)
{
	for (uint32_t i = 0; i < count; i++)
		if (strcmp(pools[i].name, name) == 0)
			return &pools[i];
	return NULL;
}

struct control_pool *pools_find(struct control *c, const char *name)
{
	return find(c->pools, c->pool_count, name);
}

int pools_make(struct control *c, struct pools_next *next)
{
	const struct config_pools *configs = &c->config->pools;
	*next = (struct pools_next){.at = calloc(configs->count + 1, sizeof(*next->at))};
	if (!next->at)
		return -ENOMEM;
	for (; next->count < configs->count; next->count++) {
		const struct config_pool *config = &configs->at[next->count];
		const struct control_pool *known = pools_find(c, config->name);
		const struct pool_limits limits = limits_of(config);
		struct pool *pool = known ? known->pool : pool_create(&limits, now_ms(c));
		if (!pool) {
			pools_drop(c, next);
			return -ENOMEM;
		}
		next->at[next->count] = (struct control_pool){config->name, pool};
	}
	return 0;
}

void pools_drop(struct control *c, struct pools_next *next)
{
	for (uint32_t i = 0; i < next->count; i++)
		if (!pools_find(c, next->at[i].name))
			pool_destroy(next->at[i].pool);
	free(next->at);
}

static void join(struct control *c, const struct control_room *room)
{
	const struct config_room *config = room->config;
	struct control_pool *pool = config->pool ? pools_find(c, config->pool) : NULL;
	controller_join(room->controller, pool ? pool->pool : NULL, (uint32_t)config->priority,
		(uint32_t)config->weight, now_ms(c));
}

void pools_take(struct control *c, struct pools_next *next)
{
	struct control_pool *before = c->pools;
	const uint32_t before_count = c->pool_count;
	c->pools = next->at;
	c->pool_count = next->count;
	for (uint32_t i = 0; i < c->pool_count; i++) {
		const struct pool_limits limits =
			limits_of(config_find_pool(c->config, c->pools[i].name));
		pool_set_limits(c->pools[i].pool, &limits, now_ms(c));
	}
	for (uint32_t i = 0; i < c->room_count; i++)
		join(c, &c->rooms[i]);
	for (uint32_t i = 0; i < before_count; i++)
		if (!pools_find(c, before[i].name))
			pool_destroy(before[i].pool);
	free(before);
}

void pools_destroy(struct control *c)
{
	for (uint32_t i = 0; i < c->pool_count; i++)
		pool_destroy(c->pools[i].pool);
	free(c->pools);
	c->pools = NULL;
	c->pool_count = 0;
}
