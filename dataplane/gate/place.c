// Places: the lock-free side of a line.
//
// Three writers meet on the word: mints add one, mints that find the clock in a later slot move it,
// and control moves it to close. Because a mover stores the count it saw before it tries to move
// the word away from exactly that count, a count in a cell is final once the word has left its
// slot, and a process that dies between the two loses nothing: the word still says it.
//
//   word  ──(slot left)──▶  cells[slot % PLACE_CELLS]  ──(take)──▶  entries: slot, tickets, base
//
// Cells are never cleared: `closed` says which of them still count. A cell may be written for
// `slot` only while slot < closed + PLACE_CELLS, so it never holds two uncounted slots; and a
// mover that comes late finds a larger value there and changes nothing, since slots only grow.
//
// The order of publication is entry, index_end, closed; readers load closed, index_end, word,
// cells. So a slot is found in the index, in a cell or in the word, whatever control does
// meanwhile. Readers look again in two cases only: the entries they searched were forgotten and
// reused, or a cell was reused, for which control must have gone on by PLACE_CELLS slots.
//
// A mint that adds one without looking again may find that others have moved the word: then it
// holds a ticket of the later slot, which is as good. It cannot run over the end of seq, because
// adding stops PLACE_MINTS_MAX before it.

#include "dataplane/gate/place.h"

#include "dataplane/gate/draw.h"
#include "dataplane/gate/ranks.h"

#include <assert.h>

#define HELD_BITS 24u // of a cell or entry, for the count
#define HELD_MASK ((1ull << HELD_BITS) - 1)
#define WORD_NONE UINT64_MAX

static_assert(PLACE_SEQ_MAX < HELD_MASK, "a count fits");
static_assert((PLACE_CELLS & (PLACE_CELLS - 1)) == 0, "the cell of a slot is a mask away");

// Tickets of one slot, and of all before it.
struct count {
	uint64_t slot, tickets, below;
};

static uint64_t load(const _Atomic uint64_t *from)
{
	return atomic_load_explicit(from, memory_order_acquire);
}

static const struct draw_set *load_drawn(const struct place_line *line)
{
	return atomic_load_explicit(&line->drawn, memory_order_acquire);
}

// NULL: the line is this appliance's alone, which costs polls no look at what mints write.
static struct ranks *load_ranks(const struct place_line *line)
{
	return atomic_load_explicit(&line->is_shared, memory_order_acquire)
		       ? atomic_load_explicit(&line->ranks, memory_order_relaxed)
		       : NULL;
}

static void store(_Atomic uint64_t *to, uint64_t value)
{
	atomic_store_explicit(to, value, memory_order_release);
}

static uint64_t max_of(uint64_t a, uint64_t b)
{
	return a > b ? a : b;
}

static uint64_t min_of(uint64_t a, uint64_t b)
{
	return a < b ? a : b;
}

static uint64_t word_slot(uint64_t word)
{
	return word >> PLACE_SEQ_BITS;
}

static uint64_t word_seq(uint64_t word)
{
	return word & PLACE_SEQ_MAX;
}

static uint64_t held_slot(uint64_t held)
{
	return held >> HELD_BITS;
}

// The first slot of which no key is below the threshold.
static uint64_t first_uncalled(const struct place_line *line)
{
	return (load(&line->threshold) + (1ull << PLACE_SLOT_SHIFT) - 1) >> PLACE_SLOT_SHIFT;
}

static bool cell_is_free(const struct place_line *line, uint64_t slot)
{
	return slot < load(&line->closed) + PLACE_CELLS;
}

// Keep the count of the slot that `word` is in, as a maximum.
static void keep_count(struct place_line *line, uint64_t word)
{
	_Atomic uint64_t *cell = &line->cells[word_slot(word) % PLACE_CELLS];
	const uint64_t held = word_slot(word) << HELD_BITS | word_seq(word);
	uint64_t was = load(cell);
	while (word_seq(word) > 0 && was < held && !atomic_compare_exchange_weak(cell, &was, held))
		;
}

// Move the word from exactly `word` to `seq` tickets of `slot`.
static bool move_word(struct place_line *line, uint64_t word, uint64_t slot, uint64_t seq)
{
	assert(slot > word_slot(word) && slot <= PLACE_SLOT_MAX);
	keep_count(line, word);
	return atomic_compare_exchange_strong(&line->word, &word, slot << PLACE_SEQ_BITS | seq);
}

// Slot and seq of a new ticket, or WORD_NONE.
static uint64_t draw(struct place_line *line, uint64_t now_slot)
{
	for (;;) {
		const uint64_t word = load(&line->word);
		const uint64_t uncalled = first_uncalled(line);
		const bool has_room = word_seq(word) < PLACE_SLOT_TICKETS;
		uint64_t slot = max_of(now_slot & -load(&line->stride), uncalled);
		slot = max_of(slot, word_slot(word) + !has_room);
		if (slot > word_slot(word) && cell_is_free(line, slot)) {
			if (move_word(line, word, slot, 1))
				return slot << PLACE_SEQ_BITS;
		} else if (word_slot(word) >= uncalled && has_room) {
			return atomic_fetch_add(&line->word, 1);
		} else {
			return WORD_NONE;
		}
	}
}

// Say that somebody waits. The word is written only when it does not say so yet: polls read it.
static void announce(struct place_line *line)
{
	if (!(atomic_load(&line->open) & PLACE_OPEN_LINE))
		atomic_fetch_or(&line->open, PLACE_OPEN_LINE);
}

uint64_t place_mint(struct place_line *line, uint64_t now_slot, uint64_t appliance)
{
	assert(now_slot < PLACE_SLOT_MAX);
	assert(appliance < 1u << PLACE_APPLIANCE_BITS);
	announce(line);
	const uint64_t word = draw(line, now_slot);
	if (word == WORD_NONE)
		return 0;
	// Control may have cleared the bit while it could not see this ticket yet: either it sees
	// the word now, or we see the cleared bit.
	announce(line);
	return place_key(word_slot(word), word_seq(word), appliance);
}

bool place_take_open(struct place_line *line)
{
	uint64_t open = load(&line->open);
	do {
		if (open & (PLACE_OPEN_LINE | PLACE_OPEN_HOLD) || !(open & PLACE_OPEN_COUNT))
			return false;
	} while (!atomic_compare_exchange_weak(&line->open, &open, open - 1));
	return true;
}

// --- reading

static struct count entry_at(const struct place_line *line, uint64_t i)
{
	const struct place_entry *entry = &line->entries[i & (line->entries_max - 1)];
	const uint64_t held = load(&entry->held);
	return (struct count){held_slot(held), held & HELD_MASK, load(&entry->base)};
}

// The first entry from `low` to `high` of slot `slot` or a later one; `high` is such a one.
static uint64_t find_entry(
	const struct place_line *line, uint64_t slot, uint64_t low, uint64_t high)
{
	while (low < high) {
		const uint64_t middle = low + (high - low) / 2;
		if (entry_at(line, middle).slot < slot)
			low = middle + 1;
		else
			high = middle;
	}
	return low;
}

// The first entry from `first` to `last` of slot `slot` or a later one; `last` is such a one. Slots
// of entries grow by one at the least, so it is no farther from either end than the slots are:
// where every slot has an entry, as in a rush, nothing is left to search.
static uint64_t find_from_ends(
	const struct place_line *line, uint64_t slot, uint64_t first, uint64_t last)
{
	const uint64_t first_slot = entry_at(line, first).slot;
	const uint64_t ahead = slot > first_slot ? slot - first_slot : 0;
	const uint64_t behind = entry_at(line, last).slot - slot;
	const uint64_t low = last - min_of(behind, last - first);
	return find_entry(line, slot, low, first + min_of(ahead, last - first));
}

// Count a slot that is not in the index: `count->below` are the tickets below slot `from`, none
// from there on is indexed. Returns false if a cell was reused meanwhile.
static bool count_open(const struct place_line *line, uint64_t from, struct count *count)
{
	const uint64_t word = load(&line->word);
	const uint64_t left = min_of(word_slot(word), from + PLACE_CELLS); // these are in cells
	for (uint64_t slot = from; slot < left && slot <= count->slot; slot++) {
		const uint64_t cell = load(&line->cells[slot % PLACE_CELLS]);
		if (held_slot(cell) > slot)
			return false;
		if (held_slot(cell) < slot)
			continue;
		if (slot == count->slot)
			count->tickets = cell & HELD_MASK;
		else
			count->below += cell & HELD_MASK;
	}
	if (count->slot == word_slot(word))
		count->tickets = word_seq(word);
	else if (count->slot > word_slot(word))
		count->below += word_seq(word);
	return true;
}

static bool count_try(const struct place_line *line, uint64_t slot, struct count *count)
{
	uint64_t from = load(&line->closed);
	const uint64_t first = load(&line->index_first), end = load(&line->index_end);
	*count = (struct count){.slot = slot};
	if (first == end)
		return count_open(line, from, count);
	struct count found = entry_at(line, end - 1);
	if (slot > found.slot) {
		count->below = found.below + found.tickets;
		if (!count_open(line, max_of(from, found.slot + 1), count))
			return false;
	} else {
		found = entry_at(line, find_from_ends(line, slot, first, end - 1));
		count->below = found.below;
		count->tickets = found.slot == slot ? found.tickets : 0;
	}
	return load(&line->index_first) == first; // else what we read may have been reused
}

static struct count count_of(const struct place_line *line, uint64_t slot)
{
	struct count count;
	while (!count_try(line, slot, &count))
		;
	return count;
}

bool place_rank_counted(const struct place_line *line, uint64_t key, uint64_t *rank)
{
	const struct ranks *ranks = load_ranks(line);
	if (ranks)
		return ranks_rank(ranks, key, rank);
	const struct count count = count_of(line, place_slot(key));
	*rank = count.below + min_of(count.tickets, place_seq(key));
	return place_seq(key) < count.tickets;
}

bool place_rank(const struct place_line *line, uint64_t key, uint64_t *rank)
{
	const struct draw_set *drawn = load_drawn(line);
	const struct draw_list *list = drawn ? draw_find_key(drawn, key) : NULL;
	bool is_listed;
	if (!list)
		return place_rank_counted(line, key, rank);
	*rank = list->base + draw_rank(list, key, &is_listed);
	return is_listed;
}

uint64_t place_own(const struct place_line *line, uint64_t slot)
{
	return count_of(line, slot).below;
}

uint64_t place_total(const struct place_line *line)
{
	const struct ranks *ranks = load_ranks(line);
	const uint64_t own = place_own(line, PLACE_SLOT_MAX),
		       gathered = atomic_load(&line->gathered);
	if (!ranks)
		return own + gathered;
	const uint64_t told = place_own(line, max_of(ranks_untold(ranks), ranks_final(ranks)));
	return ranks_total(ranks) + (own > told ? own - told : 0) + gathered;
}

uint64_t place_waiting(const struct place_line *line)
{
	const uint64_t total = place_total(line);
	const uint64_t gone = load(&line->threshold_rank) + atomic_load(&line->left_waiting);
	return total > gone ? total - gone : 0;
}

void place_gathered(struct place_line *line)
{
	announce(line);
	atomic_fetch_add(&line->gathered, 1);
	announce(line); // as a mint does
}

// --- control's side

void place_line_init(struct place_line *line, uint32_t line_id, uint64_t entries_max)
{
	assert(entries_max >= 2 && (entries_max & (entries_max - 1)) == 0);
	line->line_id = line_id;
	line->entries_max = entries_max;
	store(&line->entries_ready, entries_max);
	store(&line->stride, 1);
	store(&line->wait_low, UINT64_MAX);
	store(&line->wait_high, UINT64_MAX);
	atomic_store(&line->next_poll_after, 1);
}

void place_share(struct place_line *line, struct ranks *ranks)
{
	atomic_store(&line->ranks, ranks);
	atomic_store(&line->is_shared, ranks != NULL);
}

static bool index_has_room(const struct place_line *line)
{
	const uint64_t end = load(&line->index_end), ready = load(&line->entries_ready);
	return end - load(&line->index_first) < line->entries_max &&
	       (ready == line->entries_max || end < ready);
}

static uint64_t index_total(const struct place_line *line)
{
	const uint64_t end = load(&line->index_end);
	if (end == 0)
		return 0;
	const struct count last = entry_at(line, end - 1);
	return last.below + last.tickets;
}

// Put the counts of the slots from `closed` to below `upto`, all of which the word has left, into
// the index. Returns false when it is full; then `closed` is the slot that found no room.
static bool take(struct place_line *line, uint64_t upto, uint64_t *counted)
{
	uint64_t slot = load(&line->closed), end = load(&line->index_end);
	const uint64_t cells_end = min_of(upto, slot + PLACE_CELLS);
	uint64_t total = index_total(line);
	if (end > 0) // a crash may have come between index_end and closed
		slot = max_of(slot, entry_at(line, end - 1).slot + 1);
	for (; slot < cells_end; slot++) {
		const uint64_t cell = load(&line->cells[slot % PLACE_CELLS]);
		if (held_slot(cell) != slot || !(cell & HELD_MASK))
			continue;
		if (!index_has_room(line)) {
			store(&line->closed, slot);
			return false;
		}
		struct place_entry *entry = &line->entries[end & (line->entries_max - 1)];
		store(&entry->held, cell);
		store(&entry->base, total);
		store(&line->index_end, ++end);
		total += cell & HELD_MASK;
		*counted += cell & HELD_MASK;
	}
	store(&line->closed, max_of(upto, load(&line->closed)));
	return true;
}

static uint64_t close_below(struct place_line *line, uint64_t slot)
{
	uint64_t counted = 0;
	for (;;) {
		const uint64_t word = load(&line->word);
		if (!take(line, min_of(slot, word_slot(word)), &counted) || word_slot(word) >= slot)
			return counted;
		// Everything before the word is counted, so any cell but the word's own is free.
		const bool collides = (slot - word_slot(word)) % PLACE_CELLS == 0;
		move_word(line, word, collides ? word_slot(word) + 1 : slot, 0);
	}
}

// The slot behind the last that may be counted now. Of a line that appliances share, the ranks of
// all of them wait for a draw, not what each has minted.
static uint64_t countable(const struct place_line *line, uint64_t slot)
{
	const uint64_t gathers_from = load_ranks(line) ? 0 : load(&line->gathers_from);
	return gathers_from ? min_of(slot, gathers_from) : slot;
}

// Twice as long for each halving of what is free: so the index takes as long for each half of the
// rest as it took for the first, and is never full in practice.
static uint64_t stride_for(uint64_t free_entries, uint64_t entries)
{
	uint64_t stride = 1;
	for (uint64_t mark = entries / 2; free_entries < mark && stride < PLACE_STRIDE_MAX;
		mark /= 2)
		stride *= 2;
	return stride;
}

static void set_stride(struct place_line *line)
{
	const uint64_t end = load(&line->index_end), ready = load(&line->entries_ready);
	const uint64_t used = end - load(&line->index_first);
	uint64_t stride = stride_for(line->entries_max - used, line->entries_max);
	if (ready < line->entries_max)
		stride = max_of(stride, stride_for(ready - min_of(end, ready), PLACE_READY_STEP));
	const struct ranks *ranks = load_ranks(line);
	if (ranks)
		stride = max_of(stride, stride_for(ranks_free(ranks), ranks_max(ranks)));
	store(&line->stride, stride);
}

uint64_t place_close(struct place_line *line, uint64_t slot)
{
	const uint64_t end = countable(line, slot & -load(&line->stride));
	const uint64_t counted = end > load(&line->closed) ? close_below(line, end) : 0;
	set_stride(line);
	return counted;
}

uint64_t place_key_at(const struct place_line *line, uint64_t rank)
{
	uint64_t low = load(&line->index_first), high = load(&line->index_end);
	const struct ranks *ranks = load_ranks(line);
	if (ranks)
		return ranks_key_at(ranks, load_drawn(line), rank);
	if (rank > index_total(line) || low == high)
		return place_key(countable(line, load(&line->closed)), 0, 0);
	for (high--; low < high;) {
		const uint64_t middle = low + (high - low) / 2;
		const struct count at = entry_at(line, middle);
		if (at.below + at.tickets < rank)
			low = middle + 1;
		else
			high = middle;
	}
	const struct count found = entry_at(line, low);
	const uint64_t within = rank > found.below ? rank - found.below : 0;
	const struct draw_set *drawn = load_drawn(line);
	const struct draw_list *list =
		drawn ? draw_find_key(drawn, place_key(found.slot, 0, 0)) : NULL;
	return list ? draw_key_at(list, min_of(within, list->count))
		    : place_key(found.slot, within, 0);
}

void place_trim(struct place_line *line, uint64_t floor)
{
	const uint64_t first = load(&line->index_first), end = load(&line->index_end);
	struct ranks *ranks = load_ranks(line);
	if (ranks)
		ranks_trim(ranks, floor);
	if (first < end)
		store(&line->index_first, find_entry(line, place_slot(floor), first, end - 1));
}

uint32_t place_told(const struct place_line *line, uint64_t from, uint64_t *held, uint32_t max)
{
	const uint64_t first = load(&line->index_first), end = load(&line->index_end);
	uint32_t count = 0;
	if (first == end || entry_at(line, end - 1).slot < from)
		return 0;
	for (uint64_t i = find_entry(line, from, first, end - 1); i < end && count < max; i++)
		held[count++] = load(&line->entries[i & (line->entries_max - 1)].held);
	return count;
}

// How far the index is sound: after a power loss its pages may be of different ages.
static uint64_t sound_end(const struct place_line *line)
{
	const uint64_t first = load(&line->index_first), end = load(&line->index_end);
	struct count last = {0};
	for (uint64_t i = first; i < end; i++) {
		const struct count at = entry_at(line, i);
		const bool follows = at.slot > last.slot && at.below == last.below + last.tickets;
		if (at.tickets == 0 || (i > first && !follows))
			return i;
		last = at;
	}
	return end;
}

static void repair(struct place_line *line)
{
	const uint64_t first = load(&line->index_first), end = load(&line->index_end);
	if (first > end || end - first > line->entries_max || (end > 0 && first == end)) {
		store(&line->index_first, 0);
		store(&line->index_end, 0);
	}
	store(&line->index_end, sound_end(line));
	if (load(&line->index_end) == load(&line->index_first)) {
		store(&line->index_first, 0);
		store(&line->index_end, 0);
	}
}

// The latest slot that any part of the line knows of.
static uint64_t latest_slot(const struct place_line *line)
{
	const uint64_t end = load(&line->index_end);
	uint64_t slot = max_of(word_slot(load(&line->word)), load(&line->closed));
	slot = max_of(slot, end > 0 ? entry_at(line, end - 1).slot : 0);
	for (uint32_t i = 0; i < PLACE_CELLS; i++)
		slot = max_of(slot, held_slot(load(&line->cells[i])));
	return slot;
}

bool place_begin(struct place_line *line, uint64_t now_slot)
{
	repair(line);
	const uint64_t slot = max_of(now_slot, latest_slot(line)) + 1;
	assert(slot < PLACE_SLOT_MAX);
	const uint64_t word = load(&line->word);
	if (word_slot(word) < load(&line->closed)) // only after a power loss
		move_word(line, word, load(&line->closed), 0);
	if (load(&line->gathers_from))
		return true; // nobody has minted since
	close_below(line, slot);
	set_stride(line);
	return word_slot(load(&line->word)) >= slot;
}

// --- gatherings

uint64_t place_gather(struct place_line *line)
{
	const uint64_t slot = word_slot(load(&line->word)) + 1;
	assert(load(&line->gathers_from) == 0);
	close_below(line, slot);
	if (load(&line->closed) < slot)
		return 0;
	store(&line->gathers_from, slot);
	return slot;
}

uint64_t place_gather_end(struct place_line *line, uint64_t first, uint64_t now_slot)
{
	const uint64_t word = load(&line->word);
	assert(first >= load(&line->gathers_from) && load(&line->gathers_from) > 0);
	const uint64_t end = max_of(max_of(now_slot, word_slot(word)), first) + 1;
	move_word(line, word, end, 0);
	store(&line->closed, end); // its cells are free: nobody has minted since it began
	return end;
}

void place_skip(struct place_line *line, uint64_t slot)
{
	close_below(line, slot);
}

uint64_t place_before(const struct place_line *line, uint64_t slot)
{
	const uint64_t end = load(&line->index_end);
	const struct ranks *ranks = load_ranks(line);
	if (ranks)
		return ranks_before(ranks, slot);
	if (end == 0 || entry_at(line, end - 1).slot < slot)
		return index_total(line);
	return entry_at(line, find_entry(line, slot, load(&line->index_first), end - 1)).below;
}

bool place_drawn(struct place_line *line, uint64_t count, uint64_t end, uint64_t next)
{
	const uint64_t index_end = load(&line->index_end);
	const uint64_t base = index_total(line);
	if (!index_has_room(line))
		return false;
	assert(index_end == 0 || entry_at(line, index_end - 1).slot < end - 1);
	if (count > 0) {
		struct place_entry *entry = &line->entries[index_end & (line->entries_max - 1)];
		announce(line);
		store(&entry->held, (end - 1) << HELD_BITS | count);
		store(&entry->base, base);
		store(&line->index_end, index_end + 1);
	}
	store(&line->gathers_from, next);
	return true;
}
