// State: what time does by itself, and what follows from it for room, reservations and the line.

#include "controlplane/controller/state.h"

#include <stddef.h>

void controller_forget_told(struct controller *c, uint64_t now_ms)
{
	state_advance(c, now_ms);
	told_forget(&c->call.told, c->call.now_ms);
}

void state_advance(struct controller *c, uint64_t now_ms)
{
	caller_advance(&c->call, now_ms);
	sessions_expire(&c->sessions, c->call.now_ms);
	present_expire(&c->present, caller_available_ms(&c->call));
}

void state_keep_words(struct controller *c)
{
	const struct pool_words words = pool_words(&c->call.own);
	atomic_store(&c->line->bucket_full_ms, words.full_ms);
	atomic_store(&c->line->batch_used, words.all);
	atomic_store(&c->line->inflow_used, words.direct);
}

uint64_t state_settled_from(const struct controller *c, uint64_t key)
{
	const uint32_t left = keyset_count(&c->call.left) - keyset_below(&c->call.left, key, 0);
	return (uint64_t)left + sessions_claimed_from(&c->sessions, key);
}

static bool is_settled(const struct controller *c)
{
	return place_total(c->line) <= c->call.floor_rank + state_settled_from(c, c->call.floor);
}

static bool was_settled(const struct controller *c, uint64_t ms)
{
	const uint64_t key = place_key_of_ms(ms);
	uint64_t before;
	place_rank(c->line, key, &before);
	const uint64_t settled = state_settled_from(c, c->call.floor);
	const uint64_t later = key > c->call.floor ? state_settled_from(c, key) : settled;
	return before <= c->call.floor_rank + (settled - later);
}

bool state_nobody_waits(const struct controller *c)
{
	return is_settled(c) && pool_nobody_before(&c->call.own, UINT64_MAX);
}

bool state_nobody_waited(const struct controller *c, uint64_t ms)
{
	return was_settled(c, ms) && pool_nobody_before(&c->call.own, ms);
}

uint64_t state_waiting(const struct controller *c)
{
	return caller_waiting(&c->call, place_total(c->line));
}

// --- what its pool asks of the line

static const struct controller *owner_of(const struct pool *own)
{
	return (const void *)((const char *)own - offsetof(struct controller, call.own));
}

static uint32_t count_present(const struct pool *own)
{
	return present_count(&owner_of(own)->present);
}

static uint64_t count_ending(const struct pool *own, uint64_t ms, uint32_t most, uint64_t now_ms)
{
	const struct controller *c = owner_of(own);
	const double early = tally_rate(&c->freed, now_ms) * (double)ms / 1000;
	return sessions_ending(&c->sessions, now_ms + ms, most) + (uint64_t)early;
}

static bool nobody_waits(const struct pool *own, uint64_t ms)
{
	return ms == UINT64_MAX ? is_settled(owner_of(own)) : was_settled(owner_of(own), ms);
}

const struct pool_line state_pool_line = {count_present, count_ending, nobody_waits};
