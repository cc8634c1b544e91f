// The wheel of wheel.h. Slot = tick of the deadline modulo WHEEL_SLOTS; a slot's list is walked
// once a round, and an entry whose (possibly moved) deadline is still ahead is re-linked where it
// belongs now.
//
// One call walks the list of a slot from its head and unlinks what is due; entries that are not due
// move to another slot or, when they belong to a later round of the same slot, to the back of the
// list, so that a walk of `count` steps has seen all. The walk of a slot is never cut short by
// re-linked entries: they go behind the end marked at the beginning.

#include "dataplane/wheel.h"

#include <assert.h>
#include <stddef.h>

static void link_last(struct wheel *wheel, struct wheel_entry *entry, uint64_t tick)
{
	entry->slot = (uint32_t)(tick % WHEEL_SLOTS);
	struct wheel_entry *head = &wheel->slots[entry->slot];
	entry->previous = head->previous;
	entry->next = head;
	head->previous->next = entry;
	head->previous = entry;
}

static void unlink_entry(struct wheel_entry *entry)
{
	entry->previous->next = entry->next;
	entry->next->previous = entry->previous;
	entry->next = entry->previous = NULL;
}

// The tick at which an entry is looked at: rounded up, so that it is over by then, and never in the
// past.
static uint64_t tick_of(const struct wheel *wheel, uint64_t deadline_us)
{
	uint64_t tick = deadline_us / WHEEL_TICK_US + 1;
	return tick < wheel->tick ? wheel->tick : tick;
}

void wheel_init(struct wheel *wheel, uint64_t now_us)
{
	wheel->tick = now_us / WHEEL_TICK_US;
	wheel->count = 0;
	for (unsigned i = 0; i < WHEEL_SLOTS; i++) {
		struct wheel_entry *head = &wheel->slots[i];
		head->next = head->previous = head;
	}
}

void wheel_set(struct wheel *wheel, struct wheel_entry *entry, uint64_t deadline_us)
{
	bool later = entry->next && deadline_us >= entry->deadline_us;
	entry->deadline_us = deadline_us;
	if (later)
		return;
	if (entry->next)
		unlink_entry(entry);
	else
		wheel->count++;
	link_last(wheel, entry, tick_of(wheel, deadline_us));
}

void wheel_remove(struct wheel *wheel, struct wheel_entry *entry)
{
	if (!entry->next)
		return;
	unlink_entry(entry);
	assert(wheel->count > 0);
	wheel->count--;
}

// Walk the slot of wheel->tick. Returns how many were due; `max` means that the slot may not be
// done.
static unsigned expire_slot(
	struct wheel *wheel, uint64_t now_us, struct wheel_entry **due, unsigned max)
{
	struct wheel_entry *head = &wheel->slots[wheel->tick % WHEEL_SLOTS];
	struct wheel_entry *last = head->previous;
	unsigned count = 0;
	for (struct wheel_entry *entry = head->next, *next; entry != head && count < max;
		entry = next) {
		next = entry == last ? head : entry->next;
		uint64_t tick = entry->deadline_us / WHEEL_TICK_US + 1;
		if (entry->deadline_us <= now_us) {
			wheel_remove(wheel, entry);
			due[count++] = entry;
		} else if (tick != wheel->tick) {
			unlink_entry(entry);
			link_last(wheel, entry, tick_of(wheel, entry->deadline_us));
		}
	}
	return count;
}

unsigned wheel_expired(struct wheel *wheel, uint64_t now_us, struct wheel_entry **due, unsigned max)
{
	uint64_t now_tick = now_us / WHEEL_TICK_US;
	unsigned count = 0;
	// After a long sleep one round sees every slot; ticks before that are skipped.
	if (now_tick > wheel->tick + WHEEL_SLOTS)
		wheel->tick = now_tick - WHEEL_SLOTS;
	while (wheel->tick <= now_tick && count < max) {
		count += expire_slot(wheel, now_us, due + count, max - count);
		if (count < max)
			wheel->tick++;
	}
	return count;
}

uint64_t wheel_quiet_us(const struct wheel *wheel, uint64_t now_us, uint64_t max_us)
{
	uint64_t ticks = max_us / WHEEL_TICK_US;
	for (uint64_t i = 0; wheel->count > 0 && i < ticks && i < WHEEL_SLOTS; i++) {
		uint64_t tick = wheel->tick + i;
		const struct wheel_entry *head = &wheel->slots[tick % WHEEL_SLOTS];
		if (head->next != head) {
			uint64_t due_us = tick * WHEEL_TICK_US;
			return due_us > now_us ? due_us - now_us : 0;
		}
	}
	return max_us;
}
