// Draws: keys of hashes, ranks of keys.
//
// Hashes are spread evenly, so the rank of a key is about its share of the keys: the search begins
// there, doubles its step until the rank lies between, and halves from there on. With 500,000
// gathered the guess is off by some 350, and a dozen comparisons find the rest.

#include "dataplane/gate/draw.h"

#include "dataplane/gate/place.h"

#include <assert.h>
#include <string.h>

#define DIGIT_BITS 8u
#define DIGITS (1u << DIGIT_BITS)

static_assert(DRAW_GATHERED_MOST < 1ull << PLACE_SLOT_SHIFT, "the ratio is below one");

static uint64_t key_count(const struct draw_list *list)
{
	return (list->end_slot - list->first_slot) << PLACE_SLOT_SHIFT;
}

void draw_list_init(struct draw_list *list)
{
	assert(list->first_slot < list->end_slot && list->end_slot <= PLACE_SLOT_MAX);
	assert(list->count <= DRAW_GATHERED_MOST);
	// Gathered for each key, in 2^-64.
	list->ratio = (uint64_t)(((unsigned __int128)list->count << 64) / key_count(list));
}

uint64_t draw_key(const struct draw_list *list, uint64_t hash)
{
	return place_key(list->first_slot, 0, 0) +
	       (uint64_t)((unsigned __int128)hash * key_count(list) >> 64);
}

// Whether the key of hash `i` is below `key`. Hashes before the first one are, behind the last one
// are not.
static bool is_below(const struct draw_list *list, uint64_t i, uint64_t key)
{
	return draw_key(list, list->hashes[i]) < key;
}

uint64_t draw_rank(const struct draw_list *list, uint64_t key, bool *is_listed)
{
	const uint64_t first = place_key(list->first_slot, 0, 0);
	const uint64_t before = key > first ? key - first : 0;
	uint64_t low = (uint64_t)((unsigned __int128)before * list->ratio >> 64);
	if (low > list->count)
		low = list->count;
	uint64_t high = low, step = 64;
	for (; low > 0 && !is_below(list, low - 1, key); step *= 2)
		low -= step < low ? step : low;
	for (step = 64; high < list->count && is_below(list, high, key); step *= 2)
		high += step < list->count - high ? step : list->count - high;
	while (low < high) {
		const uint64_t middle = low + (high - low) / 2;
		if (is_below(list, middle, key))
			low = middle + 1;
		else
			high = middle;
	}
	*is_listed = low < list->count && draw_key(list, list->hashes[low]) == key;
	return low;
}

bool draw_is_shared(const struct draw_list *list, uint64_t rank)
{
	return rank + 1 < list->count &&
	       draw_key(list, list->hashes[rank]) == draw_key(list, list->hashes[rank + 1]);
}

uint64_t draw_place(const struct draw_list *list, uint64_t rank, uint64_t hash)
{
	const uint64_t key = draw_key(list, hash);
	while (rank < list->count && list->hashes[rank] < hash &&
		draw_key(list, list->hashes[rank]) == key)
		rank++;
	return rank;
}

uint64_t draw_key_at(const struct draw_list *list, uint64_t rank)
{
	assert(rank <= list->count);
	return rank == 0 ? place_key(list->first_slot, 0, 0)
			 : draw_key(list, list->hashes[rank - 1]) + 1;
}

const struct draw_list *draw_find(const struct draw_set *set, uint64_t number)
{
	uint32_t low = 0, high = set->count;
	while (low < high) {
		const uint32_t middle = low + (high - low) / 2;
		if (set->lists[middle]->number < number)
			low = middle + 1;
		else
			high = middle;
	}
	return low < set->count && set->lists[low]->number == number ? set->lists[low] : NULL;
}

const struct draw_list *draw_find_key(const struct draw_set *set, uint64_t key)
{
	const uint64_t slot = place_slot(key);
	uint32_t low = 0, high = set->count;
	while (low < high) {
		const uint32_t middle = low + (high - low) / 2;
		if (set->lists[middle]->end_slot <= slot)
			low = middle + 1;
		else
			high = middle;
	}
	return low < set->count && set->lists[low]->first_slot <= slot ? set->lists[low] : NULL;
}

// One round of a radix sort: by the digit at `shift`, keeping the order of equal ones.
static void sort_digit(const uint64_t *from, uint64_t *to, uint64_t count, unsigned shift)
{
	uint64_t at[DIGITS] = {0}, sum = 0;
	for (uint64_t i = 0; i < count; i++)
		at[from[i] >> shift & (DIGITS - 1)]++;
	for (unsigned digit = 0; digit < DIGITS; digit++) {
		const uint64_t of_digit = at[digit];
		at[digit] = sum;
		sum += of_digit;
	}
	for (uint64_t i = 0; i < count; i++)
		to[at[from[i] >> shift & (DIGITS - 1)]++] = from[i];
}

void draw_sort(uint64_t *hashes, uint64_t *scratch, uint64_t count)
{
	static_assert(64 / DIGIT_BITS % 2 == 0, "the last round writes where the first read");
	for (unsigned shift = 0; shift < 64; shift += 2 * DIGIT_BITS) {
		sort_digit(hashes, scratch, count, shift);
		sort_digit(scratch, hashes, count, shift + DIGIT_BITS);
	}
}

void draw_text(const uint64_t *hashes, uint64_t first, uint64_t count, char *out)
{
	static const char digits[] = "0123456789abcdef";
	for (uint64_t i = first; i < first + count; i++, out += DRAW_LINE_BYTES) {
		for (unsigned digit = 0; digit < DRAW_LINE_BYTES - 1; digit++)
			out[digit] = digits[hashes[i] >> (60 - 4 * digit) & 15];
		out[DRAW_LINE_BYTES - 1] = '\n';
	}
}
