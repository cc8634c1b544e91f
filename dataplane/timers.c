// Deadlines: four levels of 256 slots; a level's slot spans what the level below spans in all.
//
// An entry stands where its deadline was when it was linked. When the time of a slot of a higher
// level begins, its entries move down; when the time of a slot of level 0 has come, they fire, or
// move to where their deadline has meanwhile gone. Bits say which slots are used, so that time that
// has passed without any costs nothing, however long. A slot whose entries are more than one call
// may look at keeps the rest: time stands still until it is empty.
//
// Deadlines are rounded up to ticks, so nothing fires early, and at most a tick late.

#include "dataplane/timers.h"

#include <assert.h>
#include <string.h>

static_assert(TIMERS_LEVELS * TIMERS_SLOTS < TIMERS_UNLINKED, "slots fit their number");

static void link_at(struct timers *timers, struct timers_entry *timer, uint32_t index);
static void unlink_from(struct timers *timers, struct timers_entry *timer);
static uint64_t slot_tick(const struct timers *timers, uint16_t slot);
static uint64_t next_tick(const struct timers *timers);

static struct timers_entry *timer_at(const struct timers *timers, uint32_t index)
{
	return (struct timers_entry *)(timers->first + (size_t)index * timers->stride);
}

void timers_init(
	struct timers *timers, struct timers_entry *first, uint32_t stride, uint64_t now_us)
{
	memset(timers, 0, sizeof(*timers));
	timers->first = (char *)first;
	timers->stride = stride;
	timers->tick = now_us / TIMERS_TICK_US;
}

void timers_set(struct timers *timers, uint32_t index, uint64_t deadline_us)
{
	assert(deadline_us < UINT64_MAX - TIMERS_TICK_US);
	struct timers_entry *timer = timer_at(timers, index);
	uint64_t tick = (deadline_us + TIMERS_TICK_US - 1) / TIMERS_TICK_US;
	if (tick < timers->tick)
		tick = timers->tick;
	if (tick - timers->tick > TIMERS_AHEAD_MAX)
		tick = timers->tick + TIMERS_AHEAD_MAX;
	const bool is_later = (int32_t)((uint32_t)tick - timer->deadline) >= 0;
	timer->deadline = (uint32_t)tick;
	if (timer->slot != TIMERS_UNLINKED) {
		if (is_later)
			return; // without a look: it stands no later than it was
		if (tick >= slot_tick(timers, timer->slot))
			return; // lazily: it is looked at before that
		unlink_from(timers, timer);
	}
	link_at(timers, timer, index);
}

void timers_remove(struct timers *timers, uint32_t index)
{
	struct timers_entry *timer = timer_at(timers, index);
	if (timer->slot != TIMERS_UNLINKED)
		unlink_from(timers, timer);
}

unsigned timers_due(struct timers *timers, uint64_t now_us, uint32_t *due, unsigned max)
{
	const uint64_t now = now_us / TIMERS_TICK_US;
	unsigned count = 0;
	for (unsigned looked = 0; looked < TIMERS_LOOK_MAX && count < max;) {
		uint64_t tick = next_tick(timers);
		if (tick > now) {
			if (timers->tick <= now)
				timers->tick = now + 1;
			break;
		}
		timers->tick = tick;
		// Highest level first: what it holds may be due at this very tick.
		for (unsigned level = TIMERS_LEVELS; level-- > 0;) {
			const unsigned shift = level * TIMERS_LEVEL_BITS;
			if (tick & ((1ull << shift) - 1))
				continue;
			const unsigned at = (unsigned)(tick >> shift) % TIMERS_SLOTS;
			uint32_t *head = &timers->slots[level * TIMERS_SLOTS + at];
			while (*head != 0 && looked < TIMERS_LOOK_MAX && count < max) {
				const uint32_t index = *head - 1;
				struct timers_entry *timer = timer_at(timers, index);
				unlink_from(timers, timer);
				looked++;
				if ((int32_t)(timer->deadline - (uint32_t)tick) > 0)
					link_at(timers, timer, index);
				else
					due[count++] = index;
			}
		}
	}
	return count;
}

uint64_t timers_quiet_us(const struct timers *timers, uint64_t now_us, uint64_t max_us)
{
	if (timers->count == 0)
		return max_us;
	const uint64_t next_us = next_tick(timers) * TIMERS_TICK_US;
	if (next_us <= now_us)
		return 0;
	return next_us - now_us < max_us ? next_us - now_us : max_us;
}

// By its deadline, which is not before the tick.
static void link_at(struct timers *timers, struct timers_entry *timer, uint32_t index)
{
	const uint32_t ahead = timer->deadline - (uint32_t)timers->tick;
	unsigned level = 0;
	while (level < TIMERS_LEVELS - 1 && ahead >> ((level + 1) * TIMERS_LEVEL_BITS) != 0)
		level++;
	const unsigned at = (timer->deadline >> (level * TIMERS_LEVEL_BITS)) % TIMERS_SLOTS;
	timer->slot = (uint16_t)(level * TIMERS_SLOTS + at);
	uint32_t *head = &timers->slots[timer->slot];
	timer->previous = 0;
	timer->next = *head;
	if (*head != 0)
		timer_at(timers, *head - 1)->previous = index + 1;
	*head = index + 1;
	timers->used[level][at / 64] |= 1ull << (at % 64);
	timers->count++;
}

static void unlink_from(struct timers *timers, struct timers_entry *timer)
{
	assert(timer->slot < TIMERS_LEVELS * TIMERS_SLOTS);
	uint32_t *head = &timers->slots[timer->slot];
	if (timer->next != 0)
		timer_at(timers, timer->next - 1)->previous = timer->previous;
	if (timer->previous != 0)
		timer_at(timers, timer->previous - 1)->next = timer->next;
	else
		*head = timer->next;
	if (*head == 0) {
		const unsigned at = timer->slot % TIMERS_SLOTS;
		timers->used[timer->slot / TIMERS_SLOTS][at / 64] &= ~(1ull << (at % 64));
	}
	timer->slot = TIMERS_UNLINKED;
	timers->count--;
}

// The first slot number of a level whose time has not begun: of the level's own, modulo nothing.
static uint64_t level_now(const struct timers *timers, unsigned level)
{
	const unsigned shift = level * TIMERS_LEVEL_BITS;
	return (timers->tick + (1ull << shift) - 1) >> shift;
}

// The tick at which a slot is looked at next.
static uint64_t slot_tick(const struct timers *timers, uint16_t slot)
{
	const unsigned level = slot / TIMERS_SLOTS;
	const uint64_t now = level_now(timers, level);
	return (now + (uint8_t)(slot - now)) << (level * TIMERS_LEVEL_BITS);
}

// The next tick at which a slot that is used is looked at; UINT64_MAX: none.
static uint64_t next_tick(const struct timers *timers)
{
	uint64_t next = UINT64_MAX;
	for (unsigned level = 0; level < TIMERS_LEVELS; level++) {
		const uint64_t now = level_now(timers, level);
		const unsigned at = now % TIMERS_SLOTS;
		// The word of `at` is looked at twice: its upper part first, its lower last.
		for (unsigned i = 0; i <= TIMERS_SLOTS / 64; i++) {
			const unsigned word = (at / 64 + i) % (TIMERS_SLOTS / 64);
			uint64_t bits = timers->used[level][word];
			if (i == 0)
				bits &= ~0ull << (at % 64);
			if (bits == 0)
				continue;
			const unsigned found = word * 64 + (unsigned)__builtin_ctzll(bits);
			const uint64_t tick = (now + (uint8_t)(found - at))
					      << (level * TIMERS_LEVEL_BITS);
			if (tick < next)
				next = tick;
			break;
		}
	}
	return next;
}
