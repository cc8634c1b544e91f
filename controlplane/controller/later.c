// Later: a keyset with the claims of its members.

#include "controlplane/controller/later.h"

#include <stdlib.h>

bool later_init(struct later *l, uint32_t count_max, uint64_t seed)
{
	*l = (struct later){.claims = calloc(count_max + 1ull, sizeof(*l->claims))};
	return l->claims && keyset_init(&l->keys, count_max, seed) && due_init(&l->ends, count_max);
}

void later_fini(struct later *l)
{
	free(l->claims);
	keyset_fini(&l->keys);
	due_fini(&l->ends);
}

bool later_put(struct later *l, const struct claim *claim, uint64_t session, uint64_t until_ms)
{
	if (keyset_find(&l->keys, claim->key, claim->visitor) != 0)
		return false;
	const uint32_t id = keyset_insert(&l->keys, claim->key, claim->visitor);
	if (id == 0)
		return false;
	l->claims[id] = (struct later_claim){*claim, session};
	due_set(&l->ends, id, until_ms);
	return true;
}

const struct later_claim *later_first(const struct later *l)
{
	const uint32_t id = keyset_first(&l->keys);
	return id ? &l->claims[id] : NULL;
}

const struct later_claim *later_due(const struct later *l, uint64_t now_ms)
{
	const uint32_t id = due_at(&l->ends, now_ms);
	return id ? &l->claims[id] : NULL;
}

void later_remove(struct later *l, const struct later_claim *claim)
{
	const uint32_t id = (uint32_t)(claim - l->claims);
	due_remove(&l->ends, id);
	keyset_remove(&l->keys, id);
}

uint32_t later_count(const struct later *l)
{
	return keyset_count(&l->keys);
}
