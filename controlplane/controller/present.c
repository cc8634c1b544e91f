// Present: a keyset, and when each of its members ceases to be present.

#include "controlplane/controller/present.h"

#define EXPIRE_MAX 4096u // in one call

bool present_init(struct present *p, uint32_t count_max, uint64_t seed)
{
	*p = (struct present){0};
	return keyset_init(&p->keys, count_max, seed) && due_init(&p->ends, count_max);
}

void present_fini(struct present *p)
{
	keyset_fini(&p->keys);
	due_fini(&p->ends);
}

bool present_has(const struct present *p, uint64_t key, uint64_t visitor)
{
	return keyset_find(&p->keys, key, visitor) != 0;
}

static void drop(struct present *p, uint32_t id)
{
	due_remove(&p->ends, id);
	keyset_remove(&p->keys, id);
}

uint64_t present_put(struct present *p, uint64_t key, uint64_t visitor, uint64_t until_ms)
{
	uint64_t out = 0;
	uint32_t id = keyset_find(&p->keys, key, visitor);
	if (id == 0)
		id = keyset_insert(&p->keys, key, visitor);
	if (id == 0) {
		const uint32_t last = keyset_last(&p->keys);
		out = last ? keyset_key(&p->keys, last) : key;
		if (key >= out)
			return key;
		drop(p, last);
		id = keyset_insert(&p->keys, key, visitor);
	}
	due_set(&p->ends, id, until_ms);
	return out;
}

void present_remove(struct present *p, uint64_t key, uint64_t visitor)
{
	const uint32_t id = keyset_find(&p->keys, key, visitor);
	if (id != 0)
		drop(p, id);
}

void present_expire(struct present *p, uint64_t now_ms)
{
	uint32_t id;
	for (uint32_t i = 0; i < EXPIRE_MAX && (id = due_at(&p->ends, now_ms)) != 0; i++)
		drop(p, id);
}

uint32_t present_before(const struct present *p, uint64_t key, uint64_t visitor)
{
	return keyset_below(&p->keys, key, visitor);
}

uint32_t present_count(const struct present *p)
{
	return keyset_count(&p->keys);
}

uint64_t present_first_key(const struct present *p)
{
	const uint32_t id = keyset_first(&p->keys);
	return id ? keyset_key(&p->keys, id) : UINT64_MAX;
}
