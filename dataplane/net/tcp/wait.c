// A ring of entries in the order of their ends, and chains of them by fingerprint. An entry that is
// taken out of the middle leaves a hole, whose fingerprint is 0, until its turn comes.

#include "dataplane/net/tcp/wait.h"

#include "dataplane/fresh.h"

#include <assert.h>
#include <stdlib.h>

#define EXPIRE_MAX 128u // looked at in one call: more than a burst adds

static_assert(sizeof(struct tcp_wait_entry) == 32, "as the bill says");

struct tcp_wait {
	struct tcp_wait_entry *entries; // a ring
	uint32_t *heads; // index + 1
	uint32_t max, mask;
	uint32_t oldest, count; // with holes
	uint32_t waiting; // without them, and without those that are over
};

// A power of two: one head for each entry or two.
static uint32_t head_count(uint32_t max)
{
	uint32_t count = 1;
	while (count <= max / 2)
		count *= 2;
	return count;
}

uint64_t wait_bytes(uint32_t max)
{
	return sizeof(struct tcp_wait) + (uint64_t)max * sizeof(struct tcp_wait_entry) +
	       (uint64_t)head_count(max) * sizeof(uint32_t);
}

struct tcp_wait *wait_create(uint32_t max)
{
	assert(max > 0);
	struct tcp_wait *wait = calloc(1, sizeof(*wait)); // COLD: at start
	if (!wait)
		return NULL;
	wait->max = max;
	wait->mask = head_count(max) - 1;
	wait->entries = fresh_map(max * sizeof(*wait->entries));
	wait->heads = fresh_map(head_count(max) * sizeof(*wait->heads));
	if (!wait->entries || !wait->heads) {
		wait_destroy(wait);
		return NULL;
	}
	return wait;
}

void wait_destroy(struct tcp_wait *wait)
{
	if (!wait)
		return;
	fresh_unmap(wait->entries, wait->max * sizeof(*wait->entries));
	fresh_unmap(wait->heads, head_count(wait->max) * sizeof(*wait->heads));
	free(wait);
}

static uint32_t *head_of(const struct tcp_wait *wait, uint64_t tuple)
{
	return &wait->heads[tuple & wait->mask];
}

void wait_remove(struct tcp_wait *wait, struct tcp_wait_entry *entry)
{
	uint32_t self = (uint32_t)(entry - wait->entries) + 1;
	uint32_t *link = head_of(wait, entry->tuple);
	while (*link != self) {
		assert(*link != 0);
		link = &wait->entries[*link - 1].next;
	}
	*link = entry->next;
	entry->tuple = 0;
	wait->waiting -= !entry->is_over;
}

// Drop the oldest. Returns whether it was a hole.
static bool drop_oldest(struct tcp_wait *wait)
{
	struct tcp_wait_entry *entry = &wait->entries[wait->oldest];
	bool is_hole = entry->tuple == 0;
	if (!is_hole)
		wait_remove(wait, entry);
	wait->oldest = wait->oldest + 1 == wait->max ? 0 : wait->oldest + 1;
	wait->count--;
	return is_hole;
}

bool wait_add(struct tcp_wait *wait, const struct tcp_wait_entry *entry)
{
	bool had_room = wait->count < wait->max || drop_oldest(wait);
	uint32_t at = wait->oldest + wait->count;
	if (at >= wait->max)
		at -= wait->max;
	wait->count++;
	wait->waiting += !entry->is_over;
	uint32_t *head = head_of(wait, entry->tuple);
	wait->entries[at] = *entry;
	wait->entries[at].next = *head;
	*head = at + 1;
	return had_room;
}

bool wait_has_room(const struct tcp_wait *wait)
{
	return wait->count < wait->max;
}

struct tcp_wait_entry *wait_find(struct tcp_wait *wait, uint64_t tuple, uint32_t now_ms)
{
	if (wait->count == 0)
		return NULL; // without a look: pages of heads are touched where an entry is
	uint32_t at = *head_of(wait, tuple);
	while (at && wait->entries[at - 1].tuple != tuple)
		at = wait->entries[at - 1].next;
	bool is_there = at && (int32_t)(wait->entries[at - 1].ends_ms - now_ms) > 0;
	return is_there ? &wait->entries[at - 1] : NULL;
}

void wait_prefetch(const struct tcp_wait *wait, uint64_t tuple, unsigned step)
{
	const uint32_t *at = head_of(wait, tuple);
	if (wait->count == 0)
		return;
	for (unsigned i = 0; i < step && *at; i++)
		at = &wait->entries[*at - 1].next;
	__builtin_prefetch(at);
}

uint32_t wait_expire(struct tcp_wait *wait, uint32_t now_ms)
{
	for (unsigned i = 0; i < EXPIRE_MAX && wait->count > 0; i++) {
		const struct tcp_wait_entry *oldest = &wait->entries[wait->oldest];
		if (oldest->tuple && (int32_t)(oldest->ends_ms - now_ms) > 0)
			break;
		drop_oldest(wait);
	}
	return wait->waiting;
}
