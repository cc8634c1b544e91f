// Places: how tickets get their keys, how a key becomes a rank, and where both are kept so that
// kill -9 loses nothing.
//
//   key = slot (40 bits: 10 ms of cluster time) | seq (18 bits) | appliance (6 bits)
//
// A line keeps one atomic word, slot and seq of its next ticket; a mint is one fetch-add. Whoever
// moves the word to a new slot first stores the old slot's count into a cell; control closes slots
// behind the clock, turns cells into an index of (slot, tickets before it) and frees the cell. The
// word, the cells and the index live in one file mapped MAP_SHARED, sparse, allocated ahead of use.
//
// A cell is free when the slot it held is in the index. While the cell of the next slot is not
// free, nobody moves the word: the current slot goes on, so slots get longer when control is late,
// and no count is ever lost. As the index fills, control makes slots longer before it is full
// (`stride`). A slot that is full passes its tickets on to the next one.
//
// Where appliances share a line, each keeps its own part of it here, and ranks come from what all
// have told (ranks.h).
//
// A gathering takes a stretch of slots for itself: nobody mints in them, and nothing from them on
// is counted or called (`gathers_from`) until it is drawn. Then one entry of the index, at the last
// of its slots, stands for all of them, and the ranks between come from its list (draw.h).
#pragma once

#include <assert.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

struct draw_list;
struct draw_set;
struct ranks;

#define PLACE_SLOT_MS 10u
#define PLACE_SEQ_BITS 18u
#define PLACE_APPLIANCE_BITS 6u
#define PLACE_SLOT_SHIFT (PLACE_SEQ_BITS + PLACE_APPLIANCE_BITS)
#define PLACE_SEQ_MAX ((1u << PLACE_SEQ_BITS) - 1)
#define PLACE_SLOT_MAX ((1ull << (64 - PLACE_SLOT_SHIFT)) - 1)
#define PLACE_MINTS_MAX 1024u // mints that may be under way at once, on all cores
#define PLACE_SLOT_TICKETS (PLACE_SEQ_MAX - PLACE_MINTS_MAX) // a slot with as many is full
#define PLACE_CELLS 4096u // slots that control may be late by: 41 s
#define PLACE_STRIDE_MAX 4096u // slots: how long the longest gets as the index fills
#define PLACE_READY_STEP 4096u // entries allocated on disk at a time

#define PLACE_UNKNOWN UINT64_MAX // a rank that is not known yet, in a line that appliances share

// A key of its parts, and the parts of a key: slot of time · sequence within it · appliance.
static inline uint64_t place_key(uint64_t slot, uint64_t seq, uint64_t appliance)
{
	return slot << PLACE_SLOT_SHIFT | seq << PLACE_APPLIANCE_BITS | appliance;
}

static inline uint64_t place_slot(uint64_t key)
{
	return key >> PLACE_SLOT_SHIFT;
}

static inline uint64_t place_seq(uint64_t key)
{
	return key >> PLACE_APPLIANCE_BITS & PLACE_SEQ_MAX;
}

// The first key of the slot that `ms` of cluster time (unix ms) falls into.
static inline uint64_t place_key_of_ms(uint64_t ms)
{
	return place_key(ms / PLACE_SLOT_MS, 0, 0);
}

// One entry of the index. Written whole by control before index_end covers it, then never changed.
struct place_entry {
	_Atomic uint64_t held; // slot << 24 | tickets in it, at least one
	_Atomic uint64_t base; // tickets in slots below it
};

// `open`: what a worker may admit directly now, and whether there is a line.
#define PLACE_OPEN_LINE (1ull << 63) // somebody waits: mint, do not claim
#define PLACE_OPEN_HOLD (1ull << 62) // nothing is granted now: park nothing, answer at once
#define PLACE_OPEN_COUNT 0xffffffffull // direct claims left until control publishes again

// One line, in the mapped file. Every field is written whole and read by anybody.
struct place_line {
	// line 0: what every poll reads
	_Atomic uint64_t threshold; // key; written: control; never falls
	_Atomic uint64_t floor; // key; written: control; never falls
	_Atomic uint64_t threshold_rank; // rank of threshold; written: control, before threshold
	_Atomic uint64_t open; // PLACE_OPEN_*; written: control; workers take from the count, mints
			       // set the bit
	_Atomic uint64_t wait_low; // expected wait until the line moves by one, low end, in
				   // 2^-32 s; UINT64_MAX: the range is unknown
	_Atomic uint64_t wait_high; // the same, high end; it may be known for polls to go by
				    // though the range is not
	_Atomic uint32_t next_poll_after; // s, what `next` is told (1 to 10); written: control
	_Atomic uint32_t door_wait_ms; // expected wait of the called for their slot, besides
	uint32_t line_id; // whose line this is
	_Atomic uint32_t is_shared; // with other appliances: `ranks` is set, of this process; 0
				    // when the file is opened; written: control

	// line 1: minting
	_Atomic uint64_t word; // slot << PLACE_SEQ_BITS | seq of the next ticket; written: workers
			       // and control
	_Atomic uint64_t stride; // slots begin at multiples of this, a power of two; written:
				 // control
	_Atomic uint64_t gathers_from; // first slot of the first gathering that is not drawn; 0:
				       // there is none; written: control
	_Atomic uint32_t gathered; // who gathered and is not drawn; added to: workers
	_Atomic uint32_t left_waiting; // places given back that were not called yet; written:
				       // control
	_Atomic(const struct draw_set *) drawn; // gatherings drawn, of this process: NULL when the
						// file is opened; written: control
	_Atomic(struct ranks *) ranks; // written: control, before is_shared
	_Atomic uint64_t told; // own tickets of slots below this one are in the ledger of a shared
			       // line; written: control
	_Atomic uint64_t inflow_used; // newcomers admitted in this calendar minute (quota.h);
				      // written: control, before the grant

	// line 2: what control has counted
	_Atomic uint64_t closed; // slots below this one are in the index; written: control
	_Atomic uint64_t index_first; // entries below this number are gone (floor has passed them);
				      // written: control
	_Atomic uint64_t
		index_end; // entry i, index_first <= i < index_end, is entries[i % entries_max]
	uint64_t entries_max; // fixed when the line is made
	_Atomic uint64_t entries_ready; // entries[] below this are allocated; written: place_file
	_Atomic uint64_t bucket_full_ms; // cluster time at which the rate's bucket will be full
					 // again; written: control, before a grant that it counts
	_Atomic uint64_t kept_until_ms; // cluster time until which a ticket or pass of it may be
					// good, should its room be configured no more; 0: not
					// known; written: control
	_Atomic uint64_t batch_used; // people admitted in this period (quota.h); written: control,
				     // before the grant

	_Atomic uint64_t cells[PLACE_CELLS]; // slot << 24 | tickets, of slot % PLACE_CELLS;
					     // written: mints (a maximum)
	struct place_entry entries[]; // entries_max of them; written: control
};
static_assert(offsetof(struct place_line, word) == 64, "mints do not disturb polls");
static_assert(offsetof(struct place_line, closed) == 128, "nor does control");

// Bytes of a line of `entries_max` entries.
static inline size_t place_line_bytes(uint64_t entries_max)
{
	return sizeof(struct place_line) + entries_max * sizeof(struct place_entry);
}

// Make an empty line of zeroed memory (place_line_bytes). `entries_max` at least 2. Control only.
void place_line_init(struct place_line *line, uint32_t line_id, uint64_t entries_max);

// Draw the next place of a line.
//   now_slot   cluster time in slots
//   appliance  below 64
// The slot is the largest of now_slot, the word's, and the first that threshold has not entered.
// Sets PLACE_OPEN_LINE before the key exists. Returns the key, or 0 when the line takes nobody: the
// slot is full, and control has been away for PLACE_CELLS slots or found no room in the index. Any
// worker, at any time; lock-free.
uint64_t place_mint(struct place_line *line, uint64_t now_slot, uint64_t appliance);

// Take one direct claim from `open`. Returns false if there is a line, a hold, or none left. Any
// worker; lock-free.
bool place_take_open(struct place_line *line);

// The line is shared from now on, by the appliances that `ranks` counts; NULL: it is not. Ranks,
// totals and keys to call come from there. Control only, before workers run.
void place_share(struct place_line *line, struct ranks *ranks);

// How many tickets of the line stand before `key`; PLACE_UNKNOWN where that is not known yet.
// Returns whether the rank is exact: false for a key that was not counted (late-learnt, or
// forgotten below floor), which gets the place of its slot's last known, or of the next in the list
// of its gathering. Any thread, beside mints and control's work.
bool place_rank(const struct place_line *line, uint64_t key, uint64_t *rank);

// The same for a line in which nobody gathers, for whom polls fast.
bool place_rank_counted(const struct place_line *line, uint64_t key, uint64_t *rank);

// Tickets ever minted in the line, as far as is known here, and those who have gathered. Any
// thread.
uint64_t place_total(const struct place_line *line);

// Those of them who were not called yet and have not given their place back, as far as control has
// said. Any thread.
uint64_t place_waiting(const struct place_line *line);

// One more has gathered. Sets PLACE_OPEN_LINE before that is seen. Any worker; lock-free.
void place_gathered(struct place_line *line);

// Close every slot below `slot` (nothing can be minted there any more) and take their counts into
// the index, as far as there is room. Of long slots (`stride`) only whole ones. Control only.
// Returns how many tickets were newly counted.
uint64_t place_close(struct place_line *line, uint64_t slot);

// The smallest key below which at least `rank` tickets of closed slots stand (those forgotten
// count as standing); with more ranks than there are tickets, the first key of slot `closed` (of a
// shared line: the first that is not final), or of the gathering that is not drawn. For moving the
// threshold. Control only.
uint64_t place_key_at(const struct place_line *line, uint64_t rank);

// Own tickets of closed slots from slot `from` on, as slot << 24 | tickets, ascending; at most
// `max`, of what `floor` has not passed. Returns how many. Control only.
uint32_t place_told(const struct place_line *line, uint64_t from, uint64_t *held, uint32_t max);

// Own tickets in slots before `slot`. Any thread.
uint64_t place_own(const struct place_line *line, uint64_t slot);

// Forget entries wholly below `floor`, but for the last. Control only.
void place_trim(struct place_line *line, uint64_t floor);

// Begin a fresh slot, after a restart: later mints lie above everything minted before and above
// `now_slot`. An index that a power loss left torn is cut back to its sound beginning. A gathering
// goes on in its slots. Returns false if the index has no room, then the old slot goes on. Control
// only, before workers run.
bool place_begin(struct place_line *line, uint64_t now_slot);

// A gathering begins, behind all that was minted. No worker mints until it ends. Returns its first
// slot, from which on nothing is counted or called; 0 if the index has no room, then not yet.
// Control only.
uint64_t place_gather(struct place_line *line);

// The list of the gathering that began at `first` is closed: mints go on from the slot that is
// returned, or the next gathering begins there. No worker mints yet. Control only.
uint64_t place_gather_end(struct place_line *line, uint64_t first, uint64_t now_slot);

// Nobody mints in a slot below `slot` any more. Where appliances share a line they are told which
// slots a gathering has, and need this alone. Control only.
void place_skip(struct place_line *line, uint64_t slot);

// The first gathering that is not drawn has been: `count` people, in the slots before `end`. Its
// list is in `drawn` already. The next one that is not drawn begins at `next`, or there is none: 0.
// Returns false if the index has no room, then not yet. Control only.
bool place_drawn(struct place_line *line, uint64_t count, uint64_t end, uint64_t next);

// Tickets before slot `slot` that are counted (of a shared line: it is final): where the ranks of a
// gathering begin. Control only.
uint64_t place_before(const struct place_line *line, uint64_t slot);

// The file: a header page, then `lines_max` lines.
struct place_file;

// Map the file at `path`, made if absent (mode 0600), with room for `lines_max` lines of
// `entries_max` entries. One that was made with smaller sizes is grown into a new file and renamed
// over, losing nothing. Returns 0 or -errno (-EUCLEAN: not such a file, or its header is damaged;
// it is left as it is). Owns the mapping.
int place_file_open(
	const char *path, uint32_t lines_max, uint64_t entries_max, struct place_file **file);

// The line of `line_id`, taken if new. NULL with errno set: ENFILE when all lines are taken, or why
// the disk has no room. Control only, at start and reload.
struct place_line *place_file_line(struct place_file *file, uint32_t line_id);

// The lines that are taken, one a call; *next begins at 0. NULL after the last. Control only.
struct place_line *place_file_next(struct place_file *file, uint32_t *next);

// Make a line's place in the file free for another, and give its disk blocks back. What it counted
// is lost: nothing of it may be good any more, and nobody may look at it. Returns 0, or -errno (it
// stays). Control only, before workers run.
int place_file_give_back(struct place_file *file, struct place_line *line);

// The last cluster time stored (unix ms), so that it does not go back over a restart.
uint64_t place_file_clock(const struct place_file *file);

// Every turn of control: store the cluster time, and allocate disk blocks ahead of every index, so
// that a full disk is an error here and never a signal at a store. Cheap when there is nothing to
// do. Returns 0 or the first -errno; lines that got nothing make their slots longer.
int place_file_turn(struct place_file *file, uint64_t now_ms);

// Unmap. Accepts NULL.
void place_file_close(struct place_file *file);
