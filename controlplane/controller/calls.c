// Calls: a queue of calls, oldest first.
//
// Full: neighbours in the older half are joined by twos, the later end holding for both, so that
// the queue is fine where it is young and coarse where it is old.
//
// The yield forgets with a time constant of SAMPLE_MS, but not below SAMPLE_TICKETS, so that it
// follows a crowd within seconds and does not jump about in a trickle.

#include "controlplane/controller/calls.h"

#include <string.h>

#define SAMPLE_MS 5000.0
#define SAMPLE_TICKETS 64.0
#define SAMPLE_BEFORE 8.0 // tickets of yield 1 assumed at the beginning

static uint32_t least(uint32_t a, uint32_t b)
{
	return a < b ? a : b;
}

void calls_init(struct calls *c, uint64_t now_ms)
{
	*c = (struct calls){.called = SAMPLE_BEFORE, .came = SAMPLE_BEFORE, .ripened_ms = now_ms};
}

// Join b to a, which is before it.
static void join(struct call *a, const struct call *b)
{
	a->key_end = b->key_end;
	a->tickets += b->tickets;
	a->came += b->came;
	a->is_sample = a->is_sample && b->is_sample;
	if (b->expected_ms > a->expected_ms)
		a->expected_ms = b->expected_ms;
	if (b->due_ms > a->due_ms)
		a->due_ms = b->due_ms;
}

static void make_room(struct calls *c)
{
	if (c->first > 0) {
		memmove(c->list, c->list + c->first, (c->end - c->first) * sizeof(*c->list));
		c->ripe -= c->first;
		c->end -= c->first;
		c->first = 0;
		return;
	}
	uint32_t kept = 0;
	for (uint32_t i = 0; i < CALLS_MAX / 2; i += 2, kept++) {
		c->list[kept] = c->list[i];
		join(&c->list[kept], &c->list[i + 1]);
	}
	memmove(c->list + kept, c->list + CALLS_MAX / 2, CALLS_MAX / 2 * sizeof(*c->list));
	c->ripe = c->ripe > CALLS_MAX / 2 ? c->ripe - kept : c->ripe / 2;
	c->end -= kept;
}

void calls_add(struct calls *c, uint64_t key_end, uint64_t tickets, uint32_t heard_ms,
	uint32_t claim_ms, uint64_t now_ms)
{
	const struct call call = {
		.key_end = key_end,
		.tickets = tickets,
		.began_ms = now_ms,
		.expected_ms = now_ms + least(heard_ms, CALLS_EXPECT_MS) + CALLS_SPAN_MS,
		.due_ms = now_ms + heard_ms + claim_ms,
		.is_sample = true,
	};
	struct call *last = c->end > c->ripe ? &c->list[c->end - 1] : NULL;
	if (last && last->is_sample && now_ms < last->began_ms + CALLS_SPAN_MS) {
		join(last, &call);
		return;
	}
	if (c->end == CALLS_MAX)
		make_room(c);
	c->list[c->end++] = call;
}

// The number of the call that `key` was called by; c->end: none.
static uint32_t call_of(const struct calls *c, uint64_t key)
{
	uint32_t low = c->first, high = c->end;
	while (low < high) {
		const uint32_t middle = low + (high - low) / 2;
		if (c->list[middle].key_end <= key)
			low = middle + 1;
		else
			high = middle;
	}
	return low;
}

void calls_came(struct calls *c, uint64_t key)
{
	const uint32_t call = call_of(c, key);
	if (call == c->end)
		return;
	c->list[call].came++;
	if (call < c->ripe && c->list[call].is_sample) // late, and not expected
		c->came = c->came + 1 < c->called ? c->came + 1 : c->called;
}

void calls_settled(struct calls *c, uint64_t key)
{
	const uint32_t call = call_of(c, key);
	if (call < c->end && c->list[call].tickets > 0)
		c->list[call].tickets--;
}

static void sample(struct calls *c, const struct call *call, uint64_t now_ms)
{
	double keep = SAMPLE_MS / (SAMPLE_MS + (double)(now_ms - c->ripened_ms));
	if (c->called * keep < SAMPLE_TICKETS)
		keep = c->called > SAMPLE_TICKETS ? SAMPLE_TICKETS / c->called : 1;
	const uint64_t came = call->came < call->tickets ? call->came : call->tickets;
	c->called = c->called * keep + (double)call->tickets;
	c->came = c->came * keep + (double)came;
	c->ripened_ms = now_ms;
}

void calls_ripen(struct calls *c, uint64_t now_ms)
{
	for (; c->ripe < c->end && c->list[c->ripe].expected_ms <= now_ms; c->ripe++) {
		if (c->list[c->ripe].is_sample)
			sample(c, &c->list[c->ripe], now_ms);
	}
}

double calls_yield(const struct calls *c)
{
	const double yield = c->came / c->called;
	return yield > CALLS_YIELD_MIN ? yield : CALLS_YIELD_MIN;
}

double calls_expected(const struct calls *c)
{
	const double yield = calls_yield(c);
	double expected = 0;
	for (uint32_t i = c->ripe; i < c->end; i++) {
		const double to_come = (double)c->list[i].tickets * yield - (double)c->list[i].came;
		expected += to_come > 0 ? to_come : 0;
	}
	return expected;
}

struct calls_state calls_state(const struct calls *c, uint64_t now_ms)
{
	struct calls_state state = {.yield = calls_yield(c)};
	uint64_t sum = 0;
	for (uint32_t i = c->ripe; i < c->end; i++) {
		const struct call *call = &c->list[i];
		const uint64_t to_come =
			call->tickets > call->came ? call->tickets - call->came : 0;
		state.tickets += call->tickets;
		state.came += call->came;
		if (call->expected_ms > now_ms)
			sum += to_come * (call->expected_ms - now_ms);
	}
	if (state.tickets > state.came)
		state.expect_ms = (uint32_t)(sum / (state.tickets - state.came));
	return state;
}

void calls_resume(
	struct calls *c, uint64_t key_end, const struct calls_state *state, uint64_t now_ms)
{
	calls_init(c, now_ms);
	c->called = SAMPLE_TICKETS;
	c->came = SAMPLE_TICKETS * state->yield;
	c->list[c->end++] = (struct call){.key_end = key_end,
		.tickets = state->tickets,
		.came = state->came,
		.began_ms = now_ms,
		.expected_ms = now_ms + state->expect_ms,
		.due_ms = now_ms,
		.is_sample = true};
}

uint64_t calls_pass(struct calls *c, uint64_t now_ms)
{
	uint64_t key = 0;
	for (; c->first < c->end && c->list[c->first].due_ms <= now_ms; c->first++)
		key = c->list[c->first].key_end;
	if (c->ripe < c->first)
		c->ripe = c->first;
	return key;
}

void calls_prolong(struct calls *c, uint32_t heard_ms, uint32_t claim_ms, uint64_t now_ms)
{
	for (uint32_t i = c->first; i < c->end; i++)
		c->list[i].due_ms = now_ms + heard_ms + claim_ms;
}

void calls_renew(struct calls *c, uint32_t heard_ms, uint32_t claim_ms, uint64_t now_ms)
{
	if (c->first == c->end)
		return;
	struct call all = {.began_ms = now_ms};
	for (uint32_t i = c->first; i < c->end; i++)
		join(&all, &c->list[i]);
	all.expected_ms = now_ms + CALLS_EXPECT_MS;
	all.due_ms = now_ms + heard_ms + claim_ms;
	all.is_sample = false;
	c->list[0] = all;
	c->first = c->ripe = 0;
	c->end = 1;
}
