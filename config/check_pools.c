// Rules of pools and of the rooms that share them.
//
// A room in a pool may have limits of its own: they hold besides the pool's. One above the pool's
// could never be reached; whoever writes it takes the two for a sum.

#include "config/check.h"

#include <string.h>

const struct config_pool *config_find_pool(const struct config *config, const char *name)
{
	for (uint32_t i = 0; i < config->pools.count; i++) {
		const struct config_pool *pool = &config->pools.at[i];
		if (pool->name && strcmp(pool->name, name) == 0)
			return pool;
	}
	return NULL;
}

// Whether `a` lets in more than `b`.
static bool is_faster(const struct config_rate *a, const struct config_rate *b)
{
	return (unsigned __int128)a->count * b->period_ms >
	       (unsigned __int128)b->count * a->period_ms;
}

static void check_pool(struct reading *r, const struct config_pool *pool)
{
	if (pool->capacity > r->config->sessions_max)
		reading_fail(r, pool, "capacity", READING_WHOLE,
			"is above sessions_max; allowed: up to %lu", r->config->sessions_max);
	for (const struct config_pool *p = r->config->pools.at; p < pool; p++)
		if (p->name && pool->name && strcmp(p->name, pool->name) == 0)
			reading_fail(r, pool, "name", READING_WHOLE,
				"names two pools, first on line %u; allowed: once",
				reading_line(r, p, "name", READING_WHOLE));
}

// Without a pool there is nobody to be before or to share with.
static void check_alone(struct reading *r, const struct config_room *room)
{
	static const char wrong[] = "needs a pool; allowed: with `pool`";
	if (room->priority != 1)
		reading_fail(r, room, "priority", READING_WHOLE, wrong);
	if (room->weight != 1)
		reading_fail(r, room, "weight", READING_WHOLE, wrong);
}

static void check_share(struct reading *r, const struct config_room *room)
{
	const struct config_pool *pool = config_find_pool(r->config, room->pool);
	if (!pool) {
		reading_fail(r, room, "pool", READING_WHOLE,
			"is no pool; allowed: the name of one of `pools`");
		return;
	}
	if (pool->capacity && room->capacity > pool->capacity)
		reading_fail(r, room, "capacity", READING_WHOLE,
			"is above that of its pool; allowed: up to %lu", pool->capacity);
	if (pool->rate.count && room->rate.count && is_faster(&room->rate, &pool->rate))
		reading_fail(r, room, "rate", READING_WHOLE,
			"is above that of its pool; allowed: up to it");
}

static void check_lanes(struct reading *r, const struct config_room *room)
{
	if (room->lanes.count == 0 && room->line_priority != 1)
		reading_fail(r, room, "line_priority", READING_WHOLE,
			"needs lanes; allowed: with `lanes`");
	if (room->lanes.count == 0 && room->line_weight != 1)
		reading_fail(r, room, "line_weight", READING_WHOLE,
			"needs lanes; allowed: with `lanes`");
	for (uint32_t i = 0; i < room->lanes.count; i++) {
		const struct config_lane *lane = &room->lanes.at[i];
		if (lane->header_value && !lane->header)
			reading_fail(r, lane, "header_value", READING_WHOLE,
				"needs a header; allowed: with `header`");
		if (lane->header && r->config->trusted_proxies.count == 0)
			reading_fail(r, lane, "header", READING_WHOLE,
				"is believed of nobody; allowed: with `trusted_proxies`");
		for (uint32_t j = 0; j < i && lane->name; j++)
			if (room->lanes.at[j].name &&
				strcmp(room->lanes.at[j].name, lane->name) == 0)
				reading_fail(r, lane, "name", READING_WHOLE,
					"names two lanes of the room; allowed: once");
	}
}

static void check_periods(struct reading *r, const struct config_room *room)
{
	if (room->inflow.count && room->inflow.period_ms != 60000)
		reading_fail(r, room, "inflow", READING_WHOLE,
			"is not by the minute; allowed: as in 50/min");
	if (room->mode == CONFIG_MODE_PEAK && !room->inflow.count)
		reading_fail(
			r, room, "mode", READING_WHOLE, "needs an inflow; allowed: with `inflow`");
	if (room->batch_spread && !room->batch.count)
		reading_fail(r, room, "batch_spread", READING_WHOLE,
			"needs a batch; allowed: with `batch`");
	if (room->batch_spread && room->rate.count)
		reading_fail(r, room, "batch_spread", READING_WHOLE,
			"is a rate; allowed: without `rate`");
}

void check_pools(struct reading *r)
{
	for (uint32_t i = 0; i < r->config->pools.count; i++)
		check_pool(r, &r->config->pools.at[i]);
	for (uint32_t i = 0; i < r->config->sites.count; i++) {
		const struct config_rooms *rooms = &r->config->sites.at[i].rooms;
		for (uint32_t j = 0; j < rooms->count; j++) {
			check_periods(r, &rooms->at[j]);
			check_lanes(r, &rooms->at[j]);
			if (rooms->at[j].pool)
				check_share(r, &rooms->at[j]);
			else
				check_alone(r, &rooms->at[j]);
		}
	}
}
