// Holds: a ring of seconds. Ends are rounded up.

#include "controlplane/controller/holds.h"

void holds_add(struct holds *h, uint64_t key, uint32_t seconds, uint64_t now_ms)
{
	const uint32_t longest = HOLDS_SECONDS - 2;
	const uint64_t end = now_ms / 1000 + 1 + (seconds < longest ? seconds : longest);
	const uint64_t at = end % HOLDS_SECONDS;
	if (h->ends[at] != end || key < h->keys[at])
		h->keys[at] = key;
	h->ends[at] = end;
	h->last_end = end > h->last_end ? end : h->last_end;
}

uint64_t holds_first_key(const struct holds *h, uint64_t now_ms)
{
	uint64_t key = UINT64_MAX;
	if (h->last_end * 1000 <= now_ms)
		return key;
	for (uint32_t i = 0; i < HOLDS_SECONDS; i++) {
		if (h->ends[i] * 1000 > now_ms && h->keys[i] < key)
			key = h->keys[i];
	}
	return key;
}
