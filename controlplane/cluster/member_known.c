// Known: entries never move, so that two maps and the queue can say which by number. An entry that
// is forgotten while it stands in the queue stays there, as nobody, until its turn comes; it is not
// used again before, so the queue holds each number once.

#include "controlplane/cluster/member_known.h"

#include <assert.h>
#include <stdlib.h>

// Visitors are random; which line they stand in tells apart what a browser keeps for two.
static uint64_t id_of(uint32_t line, uint64_t visitor)
{
	return visitor ^ line * 0x9e3779b97f4a7c15ull;
}

uint64_t member_known_bytes(uint32_t max)
{
	const struct member_known *k = NULL;
	max += MEMBER_KNOWN_SPARE;
	return (max + 1ull) * sizeof(*k->entries) + max * sizeof(*k->free) +
	       max * sizeof(*k->queue) + 2 * idmap_bytes(max);
}

bool member_known_init(struct member_known *k, uint32_t max, uint64_t seed)
{
	max += MEMBER_KNOWN_SPARE;
	*k = (struct member_known){.max = max, .free_count = max};
	k->entries = calloc(max + 1, sizeof(*k->entries));
	k->free = calloc(max, sizeof(*k->free));
	k->queue = calloc(max, sizeof(*k->queue));
	for (uint32_t i = 0; k->free && i < max; i++)
		k->free[i] = max - i;
	return idmap_init(&k->by_visitor, max, seed) && idmap_init(&k->by_session, max, seed) &&
	       k->entries && k->free && k->queue;
}

void member_known_fini(struct member_known *k)
{
	free(k->entries);
	free(k->free);
	free(k->queue);
	idmap_fini(&k->by_visitor);
	idmap_fini(&k->by_session);
}

struct member_known_entry *member_known_find(
	struct member_known *k, uint32_t line, uint64_t visitor)
{
	struct member_known_entry *entry =
		&k->entries[idmap_find(&k->by_visitor, id_of(line, visitor))];
	return entry->state != MEMBER_KNOWN_FREE && entry->line == line && entry->visitor == visitor
		       ? entry
		       : NULL;
}

struct member_known_entry *member_known_session(struct member_known *k, uint64_t session)
{
	assert(session != 0);
	const uint32_t index = idmap_find(&k->by_session, session);
	return index ? &k->entries[index] : NULL;
}

struct member_known_entry *member_known_add(
	struct member_known *k, const struct member_known_entry *is, bool is_grant)
{
	const uint64_t id = id_of(is->line, is->visitor);
	if (k->free_count <= (is_grant ? 0 : MEMBER_KNOWN_SPARE) ||
		idmap_find(&k->by_visitor, id) != 0)
		return NULL;
	const uint32_t index = k->free[--k->free_count];
	struct member_known_entry *entry = &k->entries[index];
	assert(entry->state == MEMBER_KNOWN_FREE && !entry->is_queued);
	*entry = *is;
	idmap_insert(&k->by_visitor, id, index);
	if (is->session != 0 && idmap_find(&k->by_session, is->session) == 0)
		idmap_insert(&k->by_session, is->session, index);
	return entry;
}

void member_known_granted(struct member_known *k, uint32_t line, const struct ledger_claim *claim)
{
	struct member_known_entry *entry = member_known_find(k, line, claim->visitor);
	if (entry && entry->session != claim->session)
		member_known_remove(k, entry); // it was another life
	else if (entry) {
		if (claim->expires > entry->expires)
			entry->expires = claim->expires;
		entry->key = entry->key ? entry->key : claim->key;
		entry->is_granted = true;
		return;
	}
	member_known_add(k,
		&(struct member_known_entry){.state = MEMBER_KNOWN_TAKEN,
			.visitor = claim->visitor,
			.session = claim->session,
			.key = claim->key,
			.line = line,
			.expires = claim->expires,
			.is_granted = true},
		true);
}

static void give(struct member_known *k, uint32_t index)
{
	k->entries[index] = (struct member_known_entry){0};
	k->free[k->free_count++] = index;
}

void member_known_remove(struct member_known *k, struct member_known_entry *entry)
{
	const uint32_t index = (uint32_t)(entry - k->entries);
	idmap_remove(&k->by_visitor, id_of(entry->line, entry->visitor));
	if (entry->session != 0 && idmap_find(&k->by_session, entry->session) == index)
		idmap_remove(&k->by_session, entry->session);
	entry->state = MEMBER_KNOWN_FREE;
	entry->unsaid = 0;
	if (!entry->is_queued)
		give(k, index);
}

void member_known_unsaid(struct member_known *k, struct member_known_entry *entry, uint8_t say)
{
	entry->unsaid |= say;
	if (entry->is_queued)
		return;
	entry->is_queued = true;
	k->queue[k->queue_end++ % k->max] = (uint32_t)(entry - k->entries);
	assert(k->queue_end - k->queue_first <= k->max);
}

void member_known_unsaid_all(struct member_known *k)
{
	for (uint32_t i = 1; i <= k->max; i++) {
		struct member_known_entry *entry = &k->entries[i];
		uint8_t say = entry->is_granted ? MEMBER_KNOWN_SAY_TAKEN : 0;
		if (entry->state == MEMBER_KNOWN_ENDED)
			say |= MEMBER_KNOWN_SAY_END;
		if (entry->state == MEMBER_KNOWN_LEFT)
			say = MEMBER_KNOWN_SAY_LEAVE;
		if (entry->state != MEMBER_KNOWN_FREE && say)
			member_known_unsaid(k, entry, say);
	}
}

struct member_known_entry *member_known_next(struct member_known *k)
{
	while (k->queue_first < k->queue_end) {
		const uint32_t index = k->queue[k->queue_first++ % k->max];
		struct member_known_entry *entry = &k->entries[index];
		entry->is_queued = false;
		if (entry->state != MEMBER_KNOWN_FREE)
			return entry;
		give(k, index);
	}
	return NULL;
}

uint32_t member_known_unsaid_count(const struct member_known *k)
{
	return (uint32_t)(k->queue_end - k->queue_first);
}

uint32_t member_known_room(const struct member_known *k)
{
	return k->free_count;
}

struct member_known_entry *member_known_sweep(struct member_known *k)
{
	k->swept = k->swept % k->max + 1;
	struct member_known_entry *entry = &k->entries[k->swept];
	return entry->state == MEMBER_KNOWN_FREE ? NULL : entry;
}
