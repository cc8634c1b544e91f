// Joining a gathering.

#include "dataplane/gate/gather.h"

#include "dataplane/gate/place.h"

static_assert(offsetof(struct gather_ids, ids) == 128, "the ids begin on a cache line");

uint64_t gather_join(struct gather_ids *ids, struct place_line *line, uint64_t visitor)
{
	const uint64_t ready = atomic_load_explicit(&ids->ready, memory_order_acquire);
	if (atomic_load_explicit(&ids->taken, memory_order_relaxed) >= ready)
		return 0;
	const uint64_t index = atomic_fetch_add(&ids->taken, 1);
	if (index >= ready) // others were faster: this one was never there
		return 0;
	atomic_store_explicit(&ids->ids[index], visitor, memory_order_release);
	place_gathered(line);
	return ids->number;
}

bool gather_is_full(const struct gather_ids *ids)
{
	const uint64_t full_at = atomic_load_explicit(&ids->full_at, memory_order_relaxed);
	return full_at > 0 && atomic_load_explicit(&ids->taken, memory_order_relaxed) >= full_at;
}

bool gather_is_undrawn(const struct gather *gather, uint64_t number)
{
	if (number == 0)
		return false;
	if (number == atomic_load_explicit(&gather->numbers[0], memory_order_acquire) ||
		number == atomic_load_explicit(&gather->numbers[1], memory_order_acquire))
		return true;
	const uint64_t later = atomic_load_explicit(&gather->later, memory_order_acquire);
	return later > 0 && number >= later;
}
