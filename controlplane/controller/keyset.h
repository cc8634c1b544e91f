// Keyset: a bounded set of (key, visitor), ordered by key, then visitor, that can count.
//
// A treap: a search tree by key that is a heap by random priorities, so it stays balanced whatever
// the order of insertion, in about 2 log2(n) steps. Nodes lie in one array and are named by ids
// from 1, which stay the same while a member is in; callers keep what belongs to it in arrays of
// their own, under the same id.
#pragma once

#include <stdbool.h>
#include <stdint.h>

struct keyset_node {
	uint64_t key, visitor;
	uint32_t smaller, larger; // children; 0: none. A node given back: `smaller` is the next one
	uint32_t count; // of the subtree
	uint32_t priority;
};

struct keyset {
	struct keyset_node *nodes; // [0] is nobody, of count 0
	uint32_t root, members_max;
	uint32_t used, given_back; // nodes ever used (memory grows with them); those free again
	uint64_t random;
};

// Make an empty set for up to `members_max` members. Returns false when memory is short.
bool keyset_init(struct keyset *set, uint32_t members_max, uint64_t seed);
void keyset_fini(struct keyset *set);

// Returns the id of the new member, or 0 when the set is full. It must not be in yet.
uint32_t keyset_insert(struct keyset *set, uint64_t key, uint64_t visitor);

// Returns its id, or 0.
uint32_t keyset_find(const struct keyset *set, uint64_t key, uint64_t visitor);

// Take a member out; its id is free again.
void keyset_remove(struct keyset *set, uint32_t id);

// Members before (key, visitor).
uint32_t keyset_below(const struct keyset *set, uint64_t key, uint64_t visitor);

// The smallest member that is not before (key, visitor), or 0.
uint32_t keyset_from(const struct keyset *set, uint64_t key, uint64_t visitor);

// The smallest and the largest member, or 0.
uint32_t keyset_first(const struct keyset *set);
uint32_t keyset_last(const struct keyset *set);

// Members.
static inline uint32_t keyset_count(const struct keyset *set)
{
	return set->nodes[set->root].count;
}

// The key and the visitor of a member.
static inline uint64_t keyset_key(const struct keyset *set, uint32_t id)
{
	return set->nodes[id].key;
}

static inline uint64_t keyset_visitor(const struct keyset *set, uint32_t id)
{
	return set->nodes[id].visitor;
}
