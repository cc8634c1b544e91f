// Keyset: a treap over an array.
//
// Insertion and removal walk down once. Where the new member's priority beats the subtree it has
// reached, that subtree is split around it and hung below it; a removed member is replaced by the
// join of its two subtrees. Split and join recurse along one path, about 60 deep at a million
// members.

#include "controlplane/controller/keyset.h"

#include <assert.h>
#include <stdlib.h>

static bool is_before(const struct keyset_node *node, uint64_t key, uint64_t visitor)
{
	return node->key != key ? node->key < key : node->visitor < visitor;
}

static uint32_t random_priority(struct keyset *set)
{
	// xorshift64*: balance needs no more.
	set->random ^= set->random >> 12;
	set->random ^= set->random << 25;
	set->random ^= set->random >> 27;
	return (uint32_t)(set->random * 0x2545f4914f6cdd1d >> 32);
}

static void recount(struct keyset *set, uint32_t id)
{
	struct keyset_node *node = &set->nodes[id];
	node->count = 1 + set->nodes[node->smaller].count + set->nodes[node->larger].count;
}

bool keyset_init(struct keyset *set, uint32_t members_max, uint64_t seed)
{
	assert(members_max < UINT32_MAX);
	*set = (struct keyset){.members_max = members_max, .random = seed | 1};
	set->nodes = calloc(members_max + 1ull, sizeof(*set->nodes));
	return set->nodes != NULL;
}

void keyset_fini(struct keyset *set)
{
	free(set->nodes);
	*set = (struct keyset){0};
}

// Part `tree` into what is before (key, visitor) and the rest.
static void split(struct keyset *set, uint32_t tree, const struct keyset_node *at, uint32_t *before,
	uint32_t *after)
{
	if (tree == 0) {
		*before = *after = 0;
		return;
	}
	struct keyset_node *node = &set->nodes[tree];
	if (is_before(node, at->key, at->visitor)) {
		*before = tree;
		split(set, node->larger, at, &node->larger, after);
	} else {
		*after = tree;
		split(set, node->smaller, at, before, &node->smaller);
	}
	recount(set, tree);
}

// Everything in `before` is smaller than everything in `after`.
static uint32_t join(struct keyset *set, uint32_t before, uint32_t after)
{
	if (before == 0 || after == 0)
		return before + after;
	struct keyset_node *a = &set->nodes[before], *b = &set->nodes[after];
	if (a->priority > b->priority) {
		a->larger = join(set, a->larger, after);
		recount(set, before);
		return before;
	}
	b->smaller = join(set, before, b->smaller);
	recount(set, after);
	return after;
}

static uint32_t take_node(struct keyset *set)
{
	const uint32_t id = set->given_back;
	if (id != 0)
		set->given_back = set->nodes[id].smaller;
	else if (set->used < set->members_max)
		return ++set->used;
	return id;
}

uint32_t keyset_insert(struct keyset *set, uint64_t key, uint64_t visitor)
{
	const uint32_t id = take_node(set);
	if (id == 0)
		return 0;
	struct keyset_node *node = &set->nodes[id];
	*node = (struct keyset_node){
		.key = key, .visitor = visitor, .priority = random_priority(set)};
	uint32_t *at = &set->root;
	while (*at != 0 && set->nodes[*at].priority >= node->priority) {
		struct keyset_node *over = &set->nodes[*at];
		assert(over->key != key || over->visitor != visitor);
		over->count++;
		at = is_before(over, key, visitor) ? &over->larger : &over->smaller;
	}
	split(set, *at, node, &node->smaller, &node->larger);
	recount(set, id);
	*at = id;
	return id;
}

uint32_t keyset_find(const struct keyset *set, uint64_t key, uint64_t visitor)
{
	uint32_t id = set->root;
	while (id != 0) {
		const struct keyset_node *node = &set->nodes[id];
		if (node->key == key && node->visitor == visitor)
			break;
		id = is_before(node, key, visitor) ? node->larger : node->smaller;
	}
	return id;
}

void keyset_remove(struct keyset *set, uint32_t id)
{
	struct keyset_node *node = &set->nodes[id];
	uint32_t *at = &set->root;
	while (*at != id) {
		assert(*at != 0); // it is in the set
		struct keyset_node *over = &set->nodes[*at];
		over->count--;
		at = is_before(over, node->key, node->visitor) ? &over->larger : &over->smaller;
	}
	*at = join(set, node->smaller, node->larger);
	*node = (struct keyset_node){.smaller = set->given_back};
	set->given_back = id;
}

uint32_t keyset_below(const struct keyset *set, uint64_t key, uint64_t visitor)
{
	uint32_t below = 0;
	for (uint32_t id = set->root; id != 0;) {
		const struct keyset_node *node = &set->nodes[id];
		if (is_before(node, key, visitor)) {
			below += 1 + set->nodes[node->smaller].count;
			id = node->larger;
		} else {
			id = node->smaller;
		}
	}
	return below;
}

uint32_t keyset_from(const struct keyset *set, uint64_t key, uint64_t visitor)
{
	uint32_t found = 0;
	for (uint32_t id = set->root; id != 0;) {
		const struct keyset_node *node = &set->nodes[id];
		const bool is_early = is_before(node, key, visitor);
		found = is_early ? found : id;
		id = is_early ? node->larger : node->smaller;
	}
	return found;
}

uint32_t keyset_first(const struct keyset *set)
{
	uint32_t id = set->root;
	while (set->nodes[id].smaller != 0)
		id = set->nodes[id].smaller;
	return id;
}

uint32_t keyset_last(const struct keyset *set)
{
	uint32_t id = set->root;
	while (set->nodes[id].larger != 0)
		id = set->nodes[id].larger;
	return id;
}
