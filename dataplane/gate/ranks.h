// Ranks: the places of a line whose tickets several appliances mint.
//
// Each appliance counts its own tickets (place.h) and tells how many each of its closed slots
// holds; what all have told, merged, gives every one of them the very same rank:
//
//   rank(slot, seq, a) = tickets in slots before it
//                      + sum over appliances b of min(tickets of b in the slot, seq + (b < a))
//
// A slot is *final* when nothing more will be told of it (`final` of ledger.h). Of slots that are
// not, nothing is said; of those that are, the same for ever, whatever was told in which order, in
// batches of whatever size, and on whichever appliance.
//
//   news, pages ─▶ ranks_told() ─▶ waiting ─▶ ranks_settle() ─▶ entries ─▶ ranks_rank()
//                              a heap, by slot          a ring, written once
//
// # How control keeps them (one thread; all times and slots are of the cluster)
//
//   own tickets    every turn: place_close() up to the clock's slot or `final` of the last reply,
//                  if that is larger, so that nobody mints in a slot that is final; then
//                  place_told() from a cursor on is what LEDGER_SLOTS says. The cursor begins at 0
//                  after a start and after the store lost writes (the ledger passes over what it
//                  has), and moves when the batch was taken. Own tickets come back as news like
//                  everybody's: that, and nothing else, is merged.
//   begin          ranks_read(). From the first reply on, news in their order: ranks_told() and
//                  ranks_sum(). Besides, pages of LEDGER_READ SLOTS of each member of the reply:
//                  ranks_told() for each item, ranks_sum() with the answer's total and the reply's
//                  `newest`. When the last page is there, and news up to the `newest` of its reply
//                  have been told: ranks_begin(). Until then no rank is known.
//   each reply     the news of it in order, then ranks_settle(reply.final)
//   threshold news ranks_settle(place_slot(threshold)), in the order of news
//   floor          place_trim() forgets here too
//   resync         the same as begin; what is final stays and is said meanwhile
//   no room        ranks_told() said so, or ranks_begin(): the same as begin, when floor has moved
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

struct draw_set;
struct ranks;

#define RANKS_ENTRIES_MIN 128u
#define RANKS_ENTRY_BYTES 24u // of memory, for each slot of each appliance that has tickets

// Bytes of a line's ranks with room for `entries_max` slots that are final, of all appliances
// together, and as many that are not.
size_t ranks_bytes(uint64_t entries_max);

// Make them in zeroed memory of ranks_bytes(), aligned to 64 bytes, which stays the caller's.
// `entries_max` is a power of two, at least RANKS_ENTRIES_MIN. Control, before workers run.
struct ranks *ranks_init(void *memory, uint64_t entries_max);

// --- control

// All that was told is about to be read again.
void ranks_read(struct ranks *ranks);

// Tickets that `member` has minted: news, or an item of a page; again, and in any order.
//   held  slot << 24 | tickets, `count` of them
// What is final already is passed over; what cannot be is too. Returns false if there is no room:
// no slot from there on is final before all has been read again.
bool ranks_told(struct ranks *ranks, uint8_t member, const uint64_t *held, uint32_t count);

// With news `number` there have been `total` tickets in the line, ever.
void ranks_sum(struct ranks *ranks, uint64_t number, uint64_t total);

// All has been read.
//   own       number of this appliance
//   gathered  people of gatherings that floor has passed before ranks_gather() could say so
// Returns false if there was no room for all: nothing new is final before all was read again.
bool ranks_begin(struct ranks *ranks, uint8_t own, uint64_t gathered);

// Slots below `final` will be told no more. Returns which are final now: fewer while all is being
// read, while a gathering is not drawn, and while there is no room for them (then slots are made
// longer, and floor makes room).
uint64_t ranks_settle(struct ranks *ranks, uint64_t final);

// Forget slots wholly below `floor`, but for the last.
void ranks_trim(struct ranks *ranks, uint64_t floor);

// A gathering begins at slot `from`, of all appliances together: nothing is final from there on
// until it is drawn. 0: there is none. Said before slots from there on are settled.
void ranks_gather(struct ranks *ranks, uint64_t from);

// That gathering is drawn: `count` people, below 2^24, in its slots, before `end`. `base` of its
// list is ranks_before(from). All before it is final. Then its slots are; the next one is for
// ranks_gather() to say. Returns false if there is no room, or not all before it is final, then not
// yet.
bool ranks_drawn(struct ranks *ranks, uint64_t end, uint64_t count);

// The smallest key below which at least `rank` tickets of final slots stand; with more ranks than
// there are, the first key that is not final. `drawn` as in place_line, may be NULL.
uint64_t ranks_key_at(const struct ranks *ranks, const struct draw_set *drawn, uint64_t rank);

// Tickets in slots before `slot`, which is final, or the first that is not.
uint64_t ranks_before(const struct ranks *ranks, uint64_t slot);

// For `show`.
struct ranks_state {
	uint64_t final, total; // total: tickets told, of slots final or not
	uint64_t entries, waiting, entries_max; // waiting: told, not final
	uint64_t late; // told too late, or again
	uint64_t wrong; // told, and cannot be
	bool is_known; // ranks_begin() was successful
	bool is_short; // there was no room for something
	bool differs; // from what ranks_sum() said; while all is read again it may
};

// Control.
struct ranks_state ranks_state(const struct ranks *ranks);

// Slots that there is room for, now and in all. Control.
uint64_t ranks_free(const struct ranks *ranks);
uint64_t ranks_max(const struct ranks *ranks);

// --- any thread, beside control; lock-free

// How many tickets of the line stand before `key`; *rank is PLACE_UNKNOWN while its slot is not
// final, but for the first key of the first such slot, up to which everybody may be called. Returns
// whether that is exact: false for a key that was not counted, which gets the place of its slot's
// last known.
bool ranks_rank(const struct ranks *ranks, uint64_t key, uint64_t *rank);

// Slots below this one are final.
uint64_t ranks_final(const struct ranks *ranks);

// Tickets told, and people drawn.
uint64_t ranks_total(const struct ranks *ranks);

// Own tickets from this slot on are not among them.
uint64_t ranks_untold(const struct ranks *ranks);
