// A link: a rate with a queue that drops its tail, then a delay, then bad luck.

#include "tests/sim/tcp/link.h"

#include <stdlib.h>
#include <string.h>

#include "tests/unit/controller/random.h"

#define IP_BYTES 20u

void link_init(struct link *link, const struct link_plan *plan, uint64_t *random)
{
	*link = (struct link){.plan = *plan, .random = random};
}

void link_fini(struct link *link)
{
	for (uint32_t i = 0; i < link->count; i++)
		free(link->packets[i].bytes);
	free(link->packets);
}

static bool is_before(const struct link_packet *a, const struct link_packet *b)
{
	return a->at_us != b->at_us ? a->at_us < b->at_us : a->order < b->order;
}

static void push(struct link *link, struct link_packet packet)
{
	if (link->count == link->max) {
		link->max = link->max ? 2 * link->max : 64;
		link->packets = realloc(link->packets, link->max * sizeof(*link->packets));
		if (!link->packets)
			abort();
	}
	packet.order = link->order++;
	uint32_t place = link->count++;
	for (; place > 0 && is_before(&packet, &link->packets[(place - 1) / 2]);
		place = (place - 1) / 2)
		link->packets[place] = link->packets[(place - 1) / 2];
	link->packets[place] = packet;
}

static struct link_packet pop(struct link *link)
{
	const struct link_packet first = link->packets[0], last = link->packets[--link->count];
	uint32_t place = 0;
	for (;;) {
		uint32_t child = 2 * place + 1;
		if (child + 1 < link->count &&
			is_before(&link->packets[child + 1], &link->packets[child]))
			child++;
		if (child >= link->count || is_before(&last, &link->packets[child]))
			break;
		link->packets[place] = link->packets[child];
		place = child;
	}
	link->packets[place] = last;
	return first;
}

static bool chance(struct link *link, uint32_t share)
{
	return share > 0 && random_below(link->random, 1000) < share;
}

// When it has left the queue; UINT64_MAX: the queue is full.
static uint64_t leaves(struct link *link, uint64_t now_us, uint32_t len)
{
	const uint64_t rate = link->plan.bytes_a_second;
	if (rate == 0)
		return now_us;
	if (link->busy_until_us < now_us)
		link->busy_until_us = now_us;
	const uint64_t waiting = (link->busy_until_us - now_us) * rate / 1000000;
	if (waiting + len > link->plan.queue_bytes)
		return UINT64_MAX;
	link->busy_until_us += len * 1000000ull / rate + 1;
	return link->busy_until_us;
}

static void put(struct link *link, uint64_t left_us, uint32_t slot, struct span bytes)
{
	const struct link_plan *plan = &link->plan;
	uint64_t at = left_us + plan->delay_us;
	if (plan->jitter_us > 0)
		at += random_below(link->random, plan->jitter_us);
	if (chance(link, plan->reorder)) {
		at += 1 + random_below(link->random, plan->late_us);
	} else {
		at = at < link->last_us ? link->last_us : at;
		link->last_us = at;
	}
	char *copy = malloc(bytes.len);
	if (!copy)
		abort();
	memcpy(copy, bytes.at, bytes.len);
	push(link, (struct link_packet){.at_us = at,
			   .slot = slot,
			   .is_corrupt = chance(link, plan->corrupt),
			   .len = (uint32_t)bytes.len,
			   .bytes = copy});
}

bool link_is_too_big(const struct link *link, uint32_t len)
{
	return len + IP_BYTES > link->plan.mtu;
}

void link_send(struct link *link, uint64_t now_us, uint32_t slot, struct span bytes)
{
	link->sent++;
	const uint64_t left = leaves(link, now_us, (uint32_t)bytes.len + IP_BYTES);
	if (left == UINT64_MAX || chance(link, link->plan.loss) ||
		link_is_too_big(link, (uint32_t)bytes.len)) {
		link->lost++;
		return;
	}
	put(link, left, slot, bytes);
	if (chance(link, link->plan.duplicate))
		put(link, left, slot, bytes);
}

uint64_t link_next_us(const struct link *link)
{
	return link->count > 0 ? link->packets[0].at_us : UINT64_MAX;
}

bool link_take(struct link *link, uint64_t now_us, struct link_packet *packet)
{
	if (link_next_us(link) > now_us)
		return false;
	*packet = pop(link);
	return true;
}
