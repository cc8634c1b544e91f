// Ranks: a heap of what may still change, a ring of what will not.
//
// Counts wait in a heap, smallest slot first, until their slot is final. Then they are appended to
// the ring in the order of (slot, appliance), each with the tickets before it, and never change
// again. So whatever order and batches they came in, the ring is the same, and a reader needs no
// lock: entries are written before `end`, `end` before `final`, and a slot below `final` has all
// its entries below `end`. Forgetting moves `first` before an entry is used again; a reader that
// finds `first` moved looks once more.
//
//   held  slot << 24 | appliance << 18 | tickets         base  tickets before it
//   held  slot << 24 | tickets                           base  with BLOCK: nobody's in particular
//
// A block is a gathering that is drawn: its list has the ranks within. Or what floor has passed
// before we heard of it, because we began, or were behind: how many that were follows from what the
// ledger says were told in all.

#include "dataplane/gate/ranks.h"

#include "dataplane/gate/draw.h"
#include "dataplane/gate/place.h"

#include <assert.h>
#include <stdatomic.h>

#define SLOT_SHIFT 24u
#define SLOT_MASK ((1ull << SLOT_SHIFT) - 1)
#define PART_SHIFT PLACE_SEQ_BITS // below it: tickets; above: slot and appliance
#define PART_MASK ((1ull << PART_SHIFT) - 1)
#define BLOCK (1ull << 63)
#define SHORT_NEVER UINT64_MAX

static_assert(RANKS_ENTRIES_MIN >> PLACE_APPLIANCE_BITS > 1, "of two slots, one can be forgotten");
static_assert(PART_SHIFT + PLACE_APPLIANCE_BITS == SLOT_SHIFT, "an entry has room for its parts");
static_assert(DRAW_GATHERED_MOST <= SLOT_MASK, "and for a gathering");

struct entry {
	_Atomic uint64_t held, base;
};

struct ranks {
	// What workers read. Written: control.
	_Atomic uint64_t final; // slots below are final, and in entries
	_Atomic uint64_t first, end; // entry i, first <= i < end, is entries[i % entries_max]
	_Atomic uint64_t base; // tickets before all entries; before `final` is more than 0
	_Atomic uint64_t total, untold;
	uint64_t entries_max;
	struct entry *entries;

	// Control's own.
	_Alignas(64) uint64_t *waiting; // a heap of `held`
	uint64_t waiting_count;
	uint64_t last; // slot and appliance that was appended last
	uint64_t sum; // of all told, with `base`
	uint64_t drawn; // people of gatherings among entries, or before them
	uint64_t sum_number, sum_said; // what the ledger said last
	uint64_t gathers_from;
	uint64_t short_from; // of this slot something was told that found no room
	uint64_t late, wrong;
	uint8_t own;
	bool is_known, is_reading;
};

// An entry that was read.
struct part {
	uint64_t slot, tickets, base;
	uint32_t appliance;
	bool is_block;
};

static uint64_t load(const _Atomic uint64_t *from)
{
	return atomic_load_explicit(from, memory_order_acquire);
}

static void store(_Atomic uint64_t *to, uint64_t value)
{
	atomic_store_explicit(to, value, memory_order_release);
}

static uint64_t min_of(uint64_t a, uint64_t b)
{
	return a < b ? a : b;
}

static struct part part_at(const struct ranks *r, uint64_t i)
{
	const struct entry *entry = &r->entries[i & (r->entries_max - 1)];
	const uint64_t held = load(&entry->held), base = load(&entry->base);
	struct part part = {.slot = held >> SLOT_SHIFT, .base = base & ~BLOCK};
	part.is_block = base & BLOCK;
	part.tickets = held & (part.is_block ? SLOT_MASK : PART_MASK);
	part.appliance = (uint32_t)(held >> PART_SHIFT) & ((1u << PLACE_APPLIANCE_BITS) - 1);
	return part;
}

// The first entry of slot `slot` or a later one; `end`: there is none.
static uint64_t find(const struct ranks *r, uint64_t slot, uint64_t first, uint64_t end)
{
	while (first < end) {
		const uint64_t middle = first + (end - first) / 2;
		if (part_at(r, middle).slot < slot)
			first = middle + 1;
		else
			end = middle;
	}
	return first;
}

// Tickets before entry `i`, which may be `end`.
static uint64_t before(const struct ranks *r, uint64_t i, uint64_t first, uint64_t end)
{
	if (i < end)
		return part_at(r, i).base;
	if (first == end)
		return load(&r->base);
	const struct part last = part_at(r, end - 1);
	return last.base + last.tickets;
}

// Tickets of one slot, whose first entry is `i`, below a key of it; and whether it was counted.
static uint64_t within(
	const struct ranks *r, uint64_t i, uint64_t end, uint64_t key, bool *is_counted)
{
	const uint32_t appliance = key & ((1u << PLACE_APPLIANCE_BITS) - 1);
	const uint64_t slot = place_slot(key), seq = place_seq(key);
	uint64_t below = 0;
	*is_counted = false;
	for (; i < end; i++) {
		const struct part part = part_at(r, i);
		if (part.slot != slot)
			break;
		if (part.is_block) {
			below += part.tickets;
			continue;
		}
		below += min_of(part.tickets, seq + (part.appliance < appliance));
		*is_counted |= part.appliance == appliance && seq < part.tickets;
	}
	return below;
}

// Kept out of its caller, which is small enough then to be part of a poll: most lines are not
// shared.
__attribute__((noinline)) bool ranks_rank(const struct ranks *r, uint64_t key, uint64_t *rank)
{
	const uint64_t unknown = place_key(load(&r->final), 0, 0);
	uint64_t first;
	bool is_counted;
	*rank = PLACE_UNKNOWN;
	if (key > unknown)
		return false;
	do {
		first = load(&r->first);
		const uint64_t end = load(&r->end);
		const uint64_t i = find(r, place_slot(key), first, end);
		*rank = before(r, i, first, end) + within(r, i, end, key, &is_counted);
	} while (load(&r->first) != first);
	return is_counted || key == unknown;
}

uint64_t ranks_final(const struct ranks *r)
{
	return load(&r->final);
}

uint64_t ranks_total(const struct ranks *r)
{
	return load(&r->total);
}

uint64_t ranks_untold(const struct ranks *r)
{
	return load(&r->untold);
}

// --- the heap

static void swap(uint64_t *a, uint64_t *b)
{
	const uint64_t was = *a;
	*a = *b;
	*b = was;
}

static void sink(uint64_t *heap, uint64_t count)
{
	for (uint64_t i = 0;;) {
		uint64_t child = 2 * i + 1;
		if (child + 1 < count && heap[child + 1] < heap[child])
			child++;
		if (child >= count || heap[i] <= heap[child])
			return;
		swap(&heap[i], &heap[child]);
		i = child;
	}
}

static void push(struct ranks *r, uint64_t held)
{
	uint64_t i = r->waiting_count++;
	r->waiting[i] = held;
	for (; i > 0 && r->waiting[(i - 1) / 2] > r->waiting[i]; i = (i - 1) / 2)
		swap(&r->waiting[(i - 1) / 2], &r->waiting[i]);
}

static void pop(struct ranks *r)
{
	swap(&r->waiting[0], &r->waiting[--r->waiting_count]);
	sink(r->waiting, r->waiting_count);
}

// Sort the heap, which makes it one again, and drop what was told twice.
static void compact(struct ranks *r)
{
	uint64_t *w = r->waiting, kept = 0;
	const uint64_t count = r->waiting_count;
	for (uint64_t left = count; left > 1; left--) { // the largest comes to stand first
		swap(&w[0], &w[left - 1]);
		sink(w, left - 1);
	}
	for (uint64_t i = 0; i < count / 2; i++)
		swap(&w[i], &w[count - 1 - i]);
	for (uint64_t i = 0; i < count; i++) {
		if (kept > 0 && w[kept - 1] >> PART_SHIFT == w[i] >> PART_SHIFT)
			r->sum -= w[i] & PART_MASK;
		else
			w[kept++] = w[i];
	}
	r->waiting_count = kept;
}

// --- control

size_t ranks_bytes(uint64_t entries_max)
{
	static_assert(sizeof(struct entry) + sizeof(uint64_t) == RANKS_ENTRY_BYTES, "as the bill");
	return sizeof(struct ranks) + entries_max * RANKS_ENTRY_BYTES;
}

struct ranks *ranks_init(void *memory, uint64_t entries_max)
{
	assert(entries_max >= RANKS_ENTRIES_MIN && (entries_max & (entries_max - 1)) == 0);
	struct ranks *r = memory;
	r->entries_max = entries_max;
	r->entries = (struct entry *)(r + 1);
	r->waiting = (uint64_t *)(r->entries + entries_max);
	r->own = 1u << PLACE_APPLIANCE_BITS;
	r->is_reading = true;
	r->short_from = SHORT_NEVER;
	return r;
}

void ranks_read(struct ranks *r)
{
	r->is_reading = true;
	r->short_from = SHORT_NEVER;
}

static void publish_total(struct ranks *r)
{
	if (r->is_known)
		store(&r->total, r->sum + r->drawn);
}

static bool tell(struct ranks *r, uint8_t member, uint64_t slot, uint64_t tickets)
{
	const uint64_t part = (slot << PLACE_APPLIANCE_BITS) + member;
	if (slot < load(&r->final) || part <= r->last) {
		r->late++;
		return true;
	}
	if (r->waiting_count == r->entries_max)
		compact(r);
	if (r->waiting_count == r->entries_max) {
		r->short_from = min_of(r->short_from, slot);
		return false;
	}
	push(r, part << PART_SHIFT | tickets);
	r->sum += tickets;
	if (member == r->own && slot >= load(&r->untold))
		store(&r->untold, slot + 1);
	return true;
}

bool ranks_told(struct ranks *r, uint8_t member, const uint64_t *held, uint32_t count)
{
	bool has_room = true;
	for (uint32_t i = 0; i < count; i++) {
		const uint64_t slot = held[i] >> SLOT_SHIFT, tickets = held[i] & SLOT_MASK;
		if (member >= 1u << PLACE_APPLIANCE_BITS || slot == 0 || slot >= PLACE_SLOT_MAX ||
			tickets == 0 || tickets > PLACE_SEQ_MAX)
			r->wrong++;
		else if (!tell(r, member, slot, tickets))
			has_room = false;
	}
	publish_total(r);
	return has_room;
}

void ranks_sum(struct ranks *r, uint64_t number, uint64_t total)
{
	if (number < r->sum_number)
		return;
	r->sum_number = number;
	r->sum_said = total;
}

// The last slot of this appliance's that was told, of what waits.
static uint64_t own_told(const struct ranks *r)
{
	uint64_t last = 0;
	for (uint64_t i = 0; i < r->waiting_count; i++) {
		const uint64_t part = r->waiting[i] >> PART_SHIFT;
		const uint64_t slot = part >> PLACE_APPLIANCE_BITS;
		if ((part & ((1u << PLACE_APPLIANCE_BITS) - 1)) == r->own && slot > last)
			last = slot;
	}
	return last;
}

static bool append(struct ranks *r, uint64_t held, uint64_t mark)
{
	const uint64_t first = load(&r->first), end = load(&r->end);
	if (end - first == r->entries_max)
		return false;
	struct entry *entry = &r->entries[end & (r->entries_max - 1)];
	const uint64_t base = before(r, end, first, end);
	assert(base < BLOCK);
	store(&entry->held, held);
	store(&entry->base, base | mark);
	store(&r->end, end + 1);
	r->last = held >> PART_SHIFT;
	return true;
}

// Tickets that were told while we did not hear, and forgotten since: before all that waits.
static bool fill_gap(struct ranks *r)
{
	const uint64_t last = r->last, slot = load(&r->final);
	while (r->sum < r->sum_said) {
		const uint64_t some = min_of(r->sum_said - r->sum, SLOT_MASK);
		if (!append(r, slot << SLOT_SHIFT | some, BLOCK))
			return false;
		r->sum += some;
		r->last = last;
	}
	return true;
}

bool ranks_begin(struct ranks *r, uint8_t own, uint64_t gathered)
{
	assert(own < 1u << PLACE_APPLIANCE_BITS);
	compact(r);
	if (r->short_from != SHORT_NEVER)
		return false;
	if (!r->is_known) {
		const uint64_t forgotten = r->sum_said > r->sum ? r->sum_said - r->sum : 0;
		r->own = own;
		r->drawn = gathered;
		r->sum += forgotten;
		r->is_known = true;
		store(&r->base, forgotten + gathered);
		store(&r->untold, own_told(r) + 1);
	}
	if (!fill_gap(r))
		return false;
	r->is_reading = false;
	publish_total(r);
	return true;
}

static uint64_t slot_waiting(const struct ranks *r)
{
	return r->waiting_count > 0 ? r->waiting[0] >> SLOT_SHIFT : UINT64_MAX;
}

uint64_t ranks_settle(struct ranks *r, uint64_t final)
{
	uint64_t to = min_of(final, r->short_from);
	if (r->gathers_from)
		to = min_of(to, r->gathers_from);
	if (!r->is_known || r->is_reading)
		return load(&r->final);
	while (slot_waiting(r) < to) {
		const uint64_t held = r->waiting[0];
		if (held >> PART_SHIFT == r->last) // again
			r->sum -= held & PART_MASK;
		else if (!append(r, held, 0)) {
			to = held >> SLOT_SHIFT;
			break;
		}
		pop(r);
	}
	publish_total(r);
	if (to > load(&r->final))
		store(&r->final, to);
	return load(&r->final);
}

void ranks_trim(struct ranks *r, uint64_t floor)
{
	const uint64_t first = load(&r->first), end = load(&r->end);
	if (first < end)
		store(&r->first, min_of(find(r, place_slot(floor), first, end), end - 1));
}

void ranks_gather(struct ranks *r, uint64_t from)
{
	assert(from == 0 || from >= load(&r->final));
	r->gathers_from = from;
}

bool ranks_drawn(struct ranks *r, uint64_t end, uint64_t count)
{
	assert(r->gathers_from > 0 && end > r->gathers_from && count <= SLOT_MASK);
	if (load(&r->final) != r->gathers_from)
		return false;
	if (count > 0 && !append(r, (end - 1) << SLOT_SHIFT | count, BLOCK))
		return false;
	r->last = (end << PLACE_APPLIANCE_BITS) - 1; // its slots are nobody's
	r->drawn += count;
	r->gathers_from = 0;
	publish_total(r);
	store(&r->final, end);
	return true;
}

uint64_t ranks_before(const struct ranks *r, uint64_t slot)
{
	const uint64_t first = load(&r->first), end = load(&r->end);
	return before(r, find(r, slot, first, end), first, end);
}

// The first entry with which at least `rank` tickets are there; `end`: there is none.
static uint64_t find_rank(const struct ranks *r, uint64_t rank)
{
	uint64_t low = load(&r->first), high = load(&r->end);
	while (low < high) {
		const uint64_t middle = low + (high - low) / 2;
		const struct part part = part_at(r, middle);
		if (part.base + part.tickets < rank)
			low = middle + 1;
		else
			high = middle;
	}
	return low;
}

// The smallest key of a slot, whose first entry is `i`, below which `count` of its tickets stand.
static uint64_t key_in(const struct ranks *r, uint64_t i, uint64_t count)
{
	const uint64_t slot = part_at(r, i).slot, end = load(&r->end);
	uint64_t low = 0, high = PLACE_SEQ_MAX;
	bool is_counted;
	while (low < high) { // the last seq of which a key may be it
		const uint64_t middle = low + (high - low) / 2;
		if (within(r, i, end, place_key(slot, middle + 1, 0), &is_counted) < count)
			low = middle + 1;
		else
			high = middle;
	}
	for (uint64_t a = 0; a < 1u << PLACE_APPLIANCE_BITS; a++) {
		const uint64_t key = place_key(slot, low, a);
		if (within(r, i, end, key, &is_counted) >= count)
			return key;
	}
	return place_key(slot, low + 1, 0);
}

uint64_t ranks_key_at(const struct ranks *r, const struct draw_set *drawn, uint64_t rank)
{
	const uint64_t i = find_rank(r, rank), first = load(&r->first), end = load(&r->end);
	const uint64_t final = load(&r->final);
	if (i == end || part_at(r, i).slot >= final)
		return place_key(final, 0, 0);
	const struct part part = part_at(r, i);
	const struct draw_list *list =
		drawn ? draw_find_key(drawn, place_key(part.slot, 0, 0)) : NULL;
	const uint64_t at = find(r, part.slot, first, end), base = part_at(r, at).base;
	const uint64_t count = rank > base ? rank - base : 0;
	if (list)
		return draw_key_at(list, min_of(count, list->count));
	return key_in(r, at, count);
}

uint64_t ranks_free(const struct ranks *r)
{
	return r->entries_max -
	       min_of(r->entries_max, load(&r->end) - load(&r->first) + r->waiting_count);
}

uint64_t ranks_max(const struct ranks *r)
{
	return r->entries_max;
}

struct ranks_state ranks_state(const struct ranks *r)
{
	return (struct ranks_state){
		.final = load(&r->final),
		.total = load(&r->total),
		.entries = load(&r->end) - load(&r->first),
		.waiting = r->waiting_count,
		.entries_max = r->entries_max,
		.late = r->late,
		.wrong = r->wrong,
		.is_known = r->is_known,
		.is_short = r->short_from != SHORT_NEVER,
		.differs = r->is_known && r->sum_said != r->sum,
	};
}
