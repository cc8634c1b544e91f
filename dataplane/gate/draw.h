// A draw: how those who gathered get their places at random, so that anybody can check it.
//
//   h   = first 8 bytes of HMAC-SHA256(seed ‖ salt, visitor id)        (RFC 2104; id big-endian)
//   key = first key of the gathering's slots + floor(h * keys in those slots / 2^64)
//
// So a ticket and the seed alone say the key, on every appliance and days later. All h, ascending,
// are the list: the rank of a key is how many of them lie below it, and its SHA-256 says that
// nobody was added or left out. The slots belong to the gathering alone, so the ranks of the line
// go on from `base` before them to `base + count` behind them.
#pragma once

#include <stdatomic.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "dataplane/gate/mac.h"

#define DRAW_SEED_BYTES 32u
#define DRAW_SALT_BYTES_MAX 32u // with the seed one block of SHA-256
#define DRAW_LINE_BYTES 17u // of the list as text: 16 hex digits and LF
#define DRAW_GATHERED_MOST 16000000u // fewer than keys in one slot
#define DRAW_LISTS_MAX 1024u // drawn gatherings of a line that floor has not passed
#define DRAW_ALGORITHM \
	"h = first 8 bytes of HMAC-SHA256(seed || salt, visitor id); ascending h, then visitor id"

// One that was drawn. Immutable once workers see it.
struct draw_list {
	uint64_t number; // of the gathering, in its tickets
	uint64_t first_slot, end_slot; // its keys are those of these slots; end_slot is not its own
	uint64_t base; // tickets of the line before it
	uint64_t count; // gathered
	uint64_t ratio; // see draw_list_init()
	struct mac_key mac; // of seed ‖ salt
	const uint64_t *hashes; // `count`, ascending
	_Atomic uint32_t readers; // workers that send it as text: not to be freed
};

// Those of a line, by number, which is by key too. Immutable.
struct draw_set {
	uint32_t count;
	const struct draw_list *lists[];
};

// Fill in what follows from slots, count and hashes, which are there; hashes stay the caller's.
void draw_list_init(struct draw_list *list);

// The key of a hash. Pure; any thread.
uint64_t draw_key(const struct draw_list *list, uint64_t hash);

// How many of the gathered have a key below `key`, and whether one of them has it. Pure; any
// thread; no division.
uint64_t draw_rank(const struct draw_list *list, uint64_t key, bool *is_listed);

// Whether the key of hash `rank` is that of the next one too: then a key does not say whose place
// it is, and the hash does.
bool draw_is_shared(const struct draw_list *list, uint64_t rank);

// The place from 0 of somebody whose key has `rank` before it, by the hash. The same where no key
// is shared.
uint64_t draw_place(const struct draw_list *list, uint64_t rank, uint64_t hash);

// The smallest key below which `rank` of the gathered stand; 0: the first key. At most `count`.
uint64_t draw_key_at(const struct draw_list *list, uint64_t rank);

// The list of a gathering, or that whose slots `key` lies in; NULL: none. Pure; any thread.
const struct draw_list *draw_find(const struct draw_set *set, uint64_t number);
const struct draw_list *draw_find_key(const struct draw_set *set, uint64_t key);

// Sort hashes.
//   scratch  as many
// Pure; any thread.
void draw_sort(uint64_t *hashes, uint64_t *scratch, uint64_t count);

// Write `count` lines of the list as text, from line `first` on.
//   out  count * DRAW_LINE_BYTES
void draw_text(const uint64_t *hashes, uint64_t first, uint64_t count, char *out);
