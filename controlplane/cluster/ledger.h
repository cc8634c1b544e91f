// Ledger: the one account book of a cluster, kept in Redis. What an appliance asks of it, in
// batches, and what it answers.
//
// Every admission of every appliance is an entry of a batch, and a batch is one run of a script
// (ledger.lua), so the ledger decides entries one after the other, whoever sends them. Two programs
// do what this header says: the script, and a model in C (tests/sim/cluster/model.h), which is also
// the store of a simulation; a test drives both and compares every reply.
//
//   claims ─▶ ledger_batch ─▶ ledger_wire ─▶ EVALSHA ─▶ ledger.lua ─▶ Redis
//   answers ◀─ ledger_reply ◀─ ledger_wire ◀─ one string ◀──┘  └─▶ PUBLISH news
//
// An appliance (below: member) has one batch in flight, and sends the same batch again until it has
// a reply; only `run` is always that of the connection on which it goes out. The script travels
// with the binary, so batch and reply need no version between them; what members of two versions
// share are the records in Redis (README.md): each has fields by name or begins with a version, and
// fields that a script does not know are kept.
//
// # Time
//
// Times are unix milliseconds of cluster time = TIME of Redis + correction, below 2^53; ends of
// sessions are unix seconds, as in passes. Let D be the sender's `time_ms` less that. With |D|
// above LEDGER_SKEW_MS, or cluster time more than that behind what it has been, the batch is
// *skewed*: nothing is freed by time and nobody is granted anything; all else is taken. A batch
// that was held back (a process that was stopped, a network that stood) is skewed by its own doing;
// after a step of the store's clock all batches are, until the conductor has sent
// LEDGER_CORRECTION. Within LEDGER_SKEW_MS cluster time does not go back either: it stands still.
//
// A slot is free LEDGER_SKEW_MS after the end of its session: then every member's clock has passed
// that end, and no pass of it is good anywhere.
//
// Leases and liveness go by TIME alone and by distance in either direction, so that a step of the
// store's clock ends them and never makes them longer.
//
// # Pure data; control thread. Nothing here allocates.
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "controlplane/controller/pool.h"

#define LEDGER_VERSION 1u // of records
#define LEDGER_SKEW_MS 250u // clocks that differ by more do not grant
#define LEDGER_LIVE_MS 2000u // a member not heard of for longer is not waited for
#define LEDGER_LEASE_MS 1500u // a conductor not heard of for longer is replaced
#define LEDGER_RECOVER_MS 3000u // shortest recovery: who is alive has been heard of
#define LEDGER_MEMBERS_MAX 64u // as many as a key has numbers for
#define LEDGER_NAME_MAX 32u // bytes of a member's name: letters, digits, - _ .
#define LEDGER_ENTRIES_MAX 1024u // of a batch
#define LEDGER_TREE_MAX 256u // nodes that share slots; more: nobody is granted
#define LEDGER_FREED_MAX \
	1024u // sessions freed, present dropped, ids forgotten of a line in a batch
#define LEDGER_SLOTS_MAX 64u // slots of an entry
#define LEDGER_IDS_MAX 64u // gathered ids of an entry, or an item of a page
#define LEDGER_BLOB_MAX 1024u // bytes of a record
#define LEDGER_RECORDS_MAX 4096u // of a type
#define LEDGER_NEWS_MAX 16384u // news kept; who is further behind reads the state anew
#define LEDGER_NEWS_REPLY_MAX 256u // news in a reply
#define LEDGER_PAGE_MAX 64u // items of a page of LEDGER_READ
#define LEDGER_GATHERED_PAGE (LEDGER_PAGE_MAX * LEDGER_IDS_MAX) // ids of a page
#define LEDGER_READS_MAX 32u // of those in a batch: with records a reply is below 16 MiB
#define LEDGER_LATER_MS 700u // presence lasts this longer than twice the poll_after told
#define LEDGER_CROWDED_MS 20000u // how long nobody behind a present who found no place is granted
#define LEDGER_NEXT_MAX_S 10u // longest poll_after of LEDGER_NEXT
#define LEDGER_CREDIT 64u // admissions that a node that fell behind gets back
#define LEDGER_CAME_MAX 256u // keys of called who came, in an answer to LEDGER_VIEW
#define LEDGER_CAME_KEPT_MAX 4096u // of a line, until the conductor asks; those beyond are counted
#define LEDGER_HOLD_MAX_MS 254000u // longest LEDGER_HOLD, as of controlplane/controller/holds.h
#define LEDGER_RUN_BYTES 40u // hex digits of a run id of Redis
#define LEDGER_WEIGHT_MAX POOL_WEIGHT_MAX
#define LEDGER_UNITS_MAX (1ull << 52) // burst x rate_period_ms of a node is no more

enum ledger_kind {
	// Claims, as of dataplane/gate/claim.h. `claim` is set.
	LEDGER_CALLED = 1,
	LEDGER_DIRECT,
	LEDGER_RENEW,
	LEDGER_END,
	LEDGER_LEAVE,
	LEDGER_GONE,
	LEDGER_TAKEN, // this session exists: written back after a loss, or granted while away
	// What a member says of itself.
	LEDGER_SLOTS, // `slots`
	LEDGER_CONFIG, // `config`: the hash of what it has configured for a line
	LEDGER_ELECT, // it would be conductor, or stay it
	LEDGER_GOODBYE, // it leaves; the last entry of the last batch
	// What the conductor alone may say; refused if `fence` of the batch is not the one in
	// force.
	LEDGER_THRESHOLD, // `threshold`
	LEDGER_NODE, // `node`
	LEDGER_CORRECTION, // `correction_ms`
	// What all share.
	LEDGER_RECORD, // `record`
	LEDGER_CODE, // `code`
	LEDGER_GATHERED, // `gathered`
	// Questions.
	LEDGER_VIEW, // of a line
	LEDGER_READ, // `read`
	// After the store has lost writes.
	LEDGER_RESTORE, // `restore`
	LEDGER_RESTORED, // `restored`
	LEDGER_HOLD, // `hold`: a member's, as LEDGER_SLOTS
	LEDGER_KINDS,
};

enum ledger_verdict {
	LEDGER_GRANTED = 1, // session and expires are set
	LEDGER_NEXT, // poll again after poll_after
	LEDGER_REFUSED, // direct: take a ticket; else: not done, and nothing has changed
	LEDGER_LAPSED, // the turn is over, or the session it was used for is
	LEDGER_RENEWED, // the session lives, expires is its end
	LEDGER_LEFT, // given back
	LEDGER_DONE, // taken
	LEDGER_STALE, // the fence is not the one in force
	LEDGER_FULL, // a bound was met, and nothing has changed
	LEDGER_UNKNOWN, // no such line, or nothing can be said of it while the store recovers: what
			// the member knows goes on to hold
	LEDGER_VERDICTS,
};

// # Claims
//
// A line that no LEDGER_NODE has named is unknown: LEDGER_UNKNOWN. Below, `known` is the record of
// the claim's visitor in its line. It is kept from the grant until the session is over and floor
// has passed its key, so that a ticket is used once. It is *on* while it has neither ended early
// nor run out (by cluster time; in a skewed batch: has not been freed).
//
// LEDGER_CALLED, the first of these that applies:
//   1. known: LEDGER_GRANTED with the same session and end if it is on, else LEDGER_LAPSED.
//   2. The ticket was given back, or key < floor: LEDGER_LAPSED.
//   3. The batch is skewed, the store recovers, the line is closed, the sender's configuration is
//      not the line's, the tree is too large, or key >= threshold: LEDGER_NEXT with
//      LEDGER_NEXT_MAX_S.
//   4. A reservation is held (pool_reserves() with as many before it as are present with smaller
//      (key, visitor)), no smaller key was crowded out of late, and there are slots and people in
//      the rate here and above: a session begins, LEDGER_GRANTED. The visitor is present no more.
//   5. Else it is present until twice the poll_after told, or the larger one of the claim, and
//      LEDGER_LATER_MS more: LEDGER_NEXT. present_max met: the largest gives way, is crowded out
//      for LEDGER_CROWDED_MS, and nobody behind it is granted meanwhile (of several, behind the
//      smallest, until that time of its own is over). poll_after is 1 for
//      holders of a reservation; else half (below a parent: a quarter) of the time in which
//      `room_ahead` of the line's threshold serves those before it, 1 to LEDGER_NEXT_MAX_S.
//
// LEDGER_DIRECT: known as above; else LEDGER_GRANTED if the line takes newcomers, nobody waits (in
// this line and in those of equal or higher class that share its slots and could have one: tickets
// counted in LEDGER_SLOTS are no more than `floor_rank` and those used or given back from floor
// on), and there is room as in 4, the quota of newcomers besides; else LEDGER_REFUSED, also for all
// of 3.
//
// LEDGER_RENEW: known with this session and on: LEDGER_RENEWED, with the end moved to a session
// from now, if that is later, if `expires` is 0 (the origin asks) or the line is sliding and
// `expires` is the present end; not moved in a skewed batch. Else LEDGER_LAPSED; while the store
// recovers LEDGER_UNKNOWN.
//
// LEDGER_END: known with this session and on: it has ended early from now on, news
// LEDGER_NEWS_ENDED until the later of its end and `expires`, LEDGER_DONE. Its slot is free when
// every live member has `applied` that news, or else then. A session that is not known has its pass
// refused everywhere by the same news until `expires`. Ended before, or past `expires`:
// LEDGER_DONE. ended_max met: LEDGER_FULL, it goes on.
//
// LEDGER_LEAVE: with a key, and the visitor is not known, and key >= floor: the ticket is given
// back, news LEDGER_NEWS_LEFT (again: nothing more); left_max met: it lapses instead. With a key,
// and known: its session ends as by LEDGER_END. With a session: that one ends as by LEDGER_END.
// LEDGER_LEFT; LEDGER_FULL if a session was to end and could not.
//
// LEDGER_GONE: known with this session, not ended, and direct (its key is 0): undone, the slot is
// free at once, the visitor not known; what it took of the rate is not given back. LEDGER_DONE
// always.
//
// LEDGER_TAKEN: the visitor is not known: the session is entered whatever the limits say, and
// counts as over if `expires` is past, so that its ticket is used. Known with another session:
// LEDGER_LAPSED, the sender ends its own. Known with this session: LEDGER_DONE, and the later end
// counts: if it has ended early, news LEDGER_NEWS_ENDED until then; if it ran out, and this end is
// not past, it lives again. Known without a key: it has this key from now on.
struct ledger_claim {
	uint64_t key; // called, leave, taken; 0: none
	uint64_t visitor;
	uint64_t session; // called, direct: a fresh random one; else: of the pass; 0: none
	uint32_t expires; // of the pass, unix s: renew, end, leave, taken
	uint32_t poll_after; // s, called: what the visitor is told if the answer comes too late
};

// LEDGER_SLOTS: tickets of closed slots of the sender's part of a line, ascending, over all
// batches. What is not beyond the sender's last slot in this line is passed over, so who does not
// know any more what it has sent begins with its first. `total` counts (the most that was said),
// and then a slot below the reply's `final` is *late*: others have reckoned without it, and it is
// not kept. While the store recovers those that it had before (`is_again`) are not; others are to
// be told after that. What is left is kept until floor has passed it,
// and told by LEDGER_NEWS_SLOTS, so that every member merges the very same counts. A member's slots
// stand before its claims in a batch. LEDGER_DONE.
struct ledger_slots {
	uint64_t held[LEDGER_SLOTS_MAX]; // slot << 24 | tickets in it, as place_entry.held
	uint32_t count;
	uint64_t total; // tickets the sender has minted in the line, ever, in closed slots
	bool is_again; // the sender has told all of them before, and been answered
};

// LEDGER_HOLD: this member could not take a claim of `key` (ring full, batch full, answer late), so
// floor is not raised beyond it for `ms` from now. It replaces what this member has said before of
// the line; ms 0: nothing is held. LEDGER_DONE.
struct ledger_hold {
	uint64_t key; // the smallest
	uint32_t ms; // twice the longest poll_after told; above LEDGER_HOLD_MAX_MS: as long
};

// LEDGER_ELECT: no lease is in force, or the sender holds it: it is the conductor for
// LEDGER_LEASE_MS from now, LEDGER_DONE. Else LEDGER_REFUSED; so is, of three or more who live, one
// who has configured more lines otherwise than most of them than another has: its lease ends. Each
// time that the conductor is
// another one, or another incarnation, or its lease had ended, the fence counts up by one; news
// LEDGER_NEWS_CONDUCTOR. The fence that the reply tells goes with the next batch.
//
// LEDGER_GOODBYE: the sender is not live any more, and not conductor. LEDGER_DONE.
//
// LEDGER_CONFIG: LEDGER_DONE. While it differs from that of LEDGER_NODE nobody is granted through
// this member. If it shows that LEDGER_ELECT would refuse the conductor, its lease ends.
//
// LEDGER_THRESHOLD: threshold and floor are raised to these, never lowered, floor no further than
// the smallest key that is present or held, nor beyond threshold; a threshold more than a second
// ahead of cluster time is refused (LEDGER_REFUSED). All below its slot is final. With `is_lapse`
// the present below floor are dropped and nothing holds it: an event is over. News
// LEDGER_NEWS_THRESHOLD if one of them moved, or `is_open` or `words` changed. LEDGER_DONE.
struct ledger_words {
	uint64_t wait_low, wait_high; // expected wait until the line moves by one, 2^-32 s; as of
				      // place_line
	uint32_t next_poll_after; // s, what LEDGER_NEXT would be told
	uint32_t door_wait_ms; // expected wait of the called for their slot, besides
	uint32_t open_count; // newcomers that may be admitted directly now, by all members together
	uint64_t at_ms; // cluster time of the conductor when it decided
	// For the next conductor (struct calls_state).
	uint32_t called, came, expect_ms; // of the called who are expected still
	uint32_t yield; // share of the called that come, of 2^16
};
struct ledger_threshold {
	uint64_t threshold, floor; // keys
	uint64_t threshold_rank, floor_rank; // tickets of the line below them; below 2^53; each
					     // raised if its key is the line's now
	uint32_t coming; // people of the line that may come besides the present: for lower classes
	uint32_t room_ahead, ahead_ms; // who can be admitted in that time, for poll_after
	bool is_open; // the line can be polled and granted
	bool is_lapse;
	struct ledger_words words; // for members, who publish them; the ledger only keeps them
};

// LEDGER_NODE: limits of a line (`is_line`), or of a pool or room that lines share. A node keeps
// what it has taken and given when its limits change: a bucket keeps its people, as far as there is
// room. Above it, `parent` shares its slots by class and weight. A parent that is not there yet, a
// cycle, or limits out of range: LEDGER_REFUSED. LEDGER_DONE.
struct ledger_node {
	struct pool_limits limits;
	uint32_t parent; // id of a node; 0: none
	uint32_t priority, weight; // as of pool_join()
	bool is_line, sliding, direct; // direct: takes newcomers
	uint32_t session_s;
	uint32_t present_max, left_max, ended_max; // at least 1
	uint64_t config; // hash of what the conductor has configured; 0: everybody agrees
};

// LEDGER_CORRECTION: cluster time is TIME + this from the next batch on. Computed by the conductor
// from `raw_ms` of a reply, so that a batch held back sets nothing wrong. Freed by news is nothing
// for LEDGER_LIVE_MS after it.
//
// LEDGER_RECORD: `bytes` replace what record (type, id) said; news LEDGER_NEWS_RECORD. What is in
// them is the members' affair: a version first, and secrets sealed. bytes 0: it is deleted.
// LEDGER_STALE without the fence if is_conductors, or with a version below that of the record in
// force (or, but for is_conductors, the same), which somebody who had not heard of it would write
// back; LEDGER_FULL with LEDGER_RECORDS_MAX of its type.
struct ledger_record {
	uint8_t type; // 0 to 15
	bool is_conductors;
	uint32_t id;
	uint32_t version; // 0: whatever is in force
	uint32_t len;
	const uint8_t *bytes; // the sender's, until it has the reply
};

// LEDGER_CODE: a code of a lane, which may be used `uses` times, and the place that its holder gets
// for it. The first of these that applies:
//   1. LEDGER_CODE_UNDO: if the holder has used it for this visitor, it has not been used:
//      LEDGER_DONE, always.
//      LEDGER_CODE_LOOK: LEDGER_GRANTED; visitor and key of its place are how often it was used,
//      and 0; or without a digest how many codes of the line were used, and how often all together.
//   2. The holder has used it and given the place back: LEDGER_LAPSED, to LEDGER_CODE_USE. Else, if
//      the holder has used it: LEDGER_GRANTED with the place of that time, so that whoever lost the
//      answer gets the same again.
//   3. LEDGER_CODE_KNOWN: this use has been made: written back after a loss. It counts, even beyond
//      `uses`: LEDGER_GRANTED with its place.
//   4. The store recovers: LEDGER_UNKNOWN.
//   5. It was used fewer than `uses` times: LEDGER_GRANTED, and holder and place are remembered.
//   6. Else LEDGER_LAPSED: it is spent.
// A place of an answer that is not the one of the entry was drawn before; that of the entry is
// nobody's and given back. Uses are kept for good: a list that comes back refreshes nothing.
enum ledger_code_what {
	LEDGER_CODE_USE = 1,
	LEDGER_CODE_UNDO,
	LEDGER_CODE_KNOWN,
	LEDGER_CODE_LOOK,
	LEDGER_CODE_WHATS,
};

// A place in a line: what a ticket says.
struct ledger_place {
	uint64_t visitor;
	uint64_t key; // or the number of a gathering
	bool is_gathered;
};

struct ledger_code {
	uint8_t what; // enum ledger_code_what
	uint32_t uses; // at least 1; USE
	uint64_t digest[2]; // as of dataplane/gate/code.h
	uint64_t holder; // who shows it, as far as can be known; else a fresh random number
	struct ledger_place place; // UNDO: its visitor
};

// LEDGER_GATHERED: who gathered in gathering `number` of a line: ids of all members in one list, in
// the order in which they were told, and people who wait (`total` of a LEDGER_VIEW).
//   TELL    ids of one file of the sender's from index `from` on; those of them that the ledger has
//           are passed over. LEDGER_REFUSED if there is a gap: begin again from 0. With `is_whole`
//           the sender has told all it ever will
//   DRAWN   it is drawn: not its ids count as people any more, but `people`, who were drawn in the
//           line until now
//   PLACED  the visitor ids[0], who gave back a ticket with `key` (GATHER_NUMBER and the number),
//           has the key `place` instead; 0: none. News LEDGER_NEWS_LEFT, with key 0
//           if there is none, or floor has passed it
//   OVER    what is kept of it goes; of it, and those with lower numbers, TELL and DRAWN change
//           nothing any more
// LEDGER_DONE.
enum ledger_gathered_what {
	LEDGER_GATHERED_TELL = 1,
	LEDGER_GATHERED_DRAWN,
	LEDGER_GATHERED_PLACED,
	LEDGER_GATHERED_OVER,
	LEDGER_GATHERED_WHATS,
};

struct ledger_gathered {
	uint8_t what; // enum ledger_gathered_what
	bool is_whole;
	uint32_t count; // of ids
	uint64_t number; // below 2^53
	uint64_t source; // which file: the same after a restart, and of nobody else
	uint64_t from;
	uint64_t people; // below 2^53
	uint64_t key, place;
	uint64_t ids[LEDGER_IDS_MAX];
};

// LEDGER_READ: a page of what is kept, as news with number 0; `next` of the answer continues, until
// it is 0, `total` is what LEDGER_NEWS_SLOTS of the line said last. Of GATHERED `from` counts ids,
// LEDGER_GATHERED_PAGE of which are read, and `total` is how many there are. Read after a first
// reply, from whose cursor on news tell what changes meanwhile; an item may be seen twice.
// LEDGER_DONE.
struct ledger_read {
	uint8_t what; // enum ledger_news_kind: ENDED, LEFT, SLOTS, GATHERED of the entry's line, or
		      // RECORD of type
	uint8_t type, member; // record: its type; slots: whose
	uint64_t from; // 0, or `next` of the page before; below 2^53
	uint64_t number; // gathered: of which; below 2^53
};

// LEDGER_RESTORE: what the member has seen, before LEDGER_RESTORED: threshold and floor of a line
// (line 0: none) are raised to these, and the fence in force to `fence` (then no conductor is in
// office), and `final` to this. Only while the store recovers, else LEDGER_REFUSED. Sessions are
// written back by LEDGER_TAKEN, those that have ended by LEDGER_END after that, tickets given back
// by LEDGER_LEAVE.
//
// LEDGER_RESTORED: all that this member knew has been written back. LEDGER_DONE; LEDGER_REFUSED if
// the epoch is another one.
struct ledger_restore {
	uint64_t threshold, floor, floor_rank;
	uint64_t fence;
	uint64_t final; // the largest `final` of any reply; below 2^53
};
struct ledger_restored {
	uint64_t epoch; // for which it has written back
	uint64_t peers; // bit N: member N was live by the last reply before the store recovered, or
			// by one since; of a process that had none: its process before knew it
};

struct ledger_entry {
	uint8_t kind; // enum ledger_kind
	uint32_t line; // line id, or a node's; 0 where none is meant
	union {
		struct ledger_claim claim;
		struct ledger_slots slots;
		uint64_t config;
		struct ledger_threshold threshold;
		struct ledger_node node;
		int64_t correction_ms;
		struct ledger_record record;
		struct ledger_code code;
		struct ledger_gathered gathered;
		struct ledger_read read;
		struct ledger_restore restore;
		struct ledger_restored restored;
		struct ledger_hold hold;
		bool takes_came; // view: whether who came is told, which is once
	};
};

struct ledger_batch {
	char name[LEDGER_NAME_MAX + 1]; // of the member
	uint64_t incarnation; // random at start, not 0
	uint8_t appliance; // the number that an earlier reply gave it; LEDGER_MEMBERS_MAX: none yet
	uint64_t number; // counts up by one, from 1; the same if it is sent again
	uint64_t time_ms; // cluster time when it was made
	uint64_t fence; // 0: the sender is not the conductor
	uint64_t cursor; // the last news it has
	uint64_t applied; // news up to this one are in force on all its workers
	uint64_t closed; // slots below this one are closed in every line of the sender, and their
			 // counts are in this batch or an earlier one
	char run[LEDGER_RUN_BYTES + 1]; // of the Redis it is connected to, read on this connection
	uint64_t writes; // the largest `writes` of any reply, ever
	uint64_t gone_ms; // cluster time until when a process that is no more may have been granted
			  // something, as far as the sender knows: `gone_ms` of a reply; before
			  // its first one, of its own process before; 0: none
	uint32_t count;
	const struct ledger_entry *entries;
};

// # Batches
//
// A batch is taken as a whole or not at all. Before its entries, in this order:
//   * The name is that of a live member of another incarnation: LEDGER_BATCH_NAME.
//   * Its number is that of the last batch of this incarnation: the reply to that, as it was, and
//     nothing changes but that the member has been heard of. A lower number: LEDGER_BATCH_OLD.
//   * `run` is not the one confirmed, or `writes` is more than the ledger has, or the name is not
//     known and `gone_ms` is of the last day and more than the ledger has: writes were lost. The
//     store recovers.
//   * A name that is not known gets the number that it says it has, if nobody has that; else,
//     unless the store recovers, the smallest one never given, else of a member that is not live
//     (it died or said goodbye) and of whose tickets floor has passed every one that was counted.
//     None: LEDGER_BATCH_MEMBERS. News LEDGER_NEWS_MEMBER, also for a new incarnation.
//   * `cursor` is more than the last news, or writes were lost: news are numbered on from beyond
//     any that somebody may have, so that everybody reads the state anew.
//   * After its entries: `final` is raised to the least `closed` of all live members, no further
//     than cluster time; not while the store recovers. So who is not live is not waited for.
//   * In a tree that the batch touches, sessions that ran out, and those that ended early and of
//     which all live members know, give their slots back; the present who did not come back are
//     dropped; up to LEDGER_FREED_MAX each. Not if skewed.
//
// # Recovery
//
// A ledger that never was written to by anybody (writes is 0 here and in the batch) takes the run
// id as it is. Otherwise `epoch` grows, to TIME or by one, and nobody is granted anything until
// LEDGER_RECOVER_MS have passed and every live member has sent LEDGER_RESTORED in this epoch. Then
// all buckets are empty, all quotas of the period used up, and leases have ended.
//
// Unsure is what was granted to processes that have not written it back: until the recovery's end
// to those of a member that is missing (the ledger knows it and has heard no goodbye, or somebody's
// `peers` do), or whose place another incarnation takes; until `gone_ms` to those that were gone
// before, if that is later than what the ledger itself knew. For the longest session of a tree
// after that, of each node that has a capacity, what is left of it beside the sessions that were
// written back counts as taken (`lost`): nobody knows how much of it is. A session in the book that
// nobody writes back frees no slot: its end may be among what was lost, and the slot be another's
// since. One that was written back frees its slot when it is ended, not when it runs out: somebody
// who is missing may have renewed it. When the last of the missing is back, and has written back
// what it knew (or is a process that knows until when the one before it can have been granted
// anything), what was unsure of them is so no more. Where capacity is without limit nothing was
// promised.
enum ledger_batch_verdict {
	LEDGER_BATCH_TAKEN = 1,
	LEDGER_BATCH_NAME,
	LEDGER_BATCH_OLD,
	LEDGER_BATCH_MEMBERS,
	LEDGER_BATCH_VERDICTS,
};

// Of a line or of what lines share, in which case what only a line has is 0.
//
// Who came is told once, to the conductor where its entry says so, and nothing that was before its
// first such LEDGER_VIEW in office.
struct ledger_view {
	uint64_t threshold, floor, threshold_rank, floor_rank;
	uint64_t first_present; // the smallest present key; UINT64_MAX: none
	uint64_t first_held; // the smallest that floor must not pass besides: LEDGER_HOLD, and who
			     // was crowded out; UINT64_MAX: none
	uint64_t total; // tickets counted, of all members
	uint32_t present, taken, ending; // ending: of taken, within LEDGER_VIEW_AHEAD_MS
	uint32_t settled; // used or given back, from floor on
	uint64_t came_total; // called who came: present, or granted, for the first time
	uint64_t admitted_total, direct_total, undone_total, ended_total, expired_total;
	uint64_t lost; // slots that count as taken since writes were lost
	uint32_t people; // that the rate and quotas of the line and those above let through now
	uint32_t rated, all_left, direct_left; // of these: its own rate and quotas alone;
					       // UINT32_MAX: no limit
	struct ledger_words words;
	uint32_t came_count;
	uint64_t came[LEDGER_CAME_MAX]; // keys of called who came for the first time
	bool is_open, is_conflict; // the sender's configuration is not the line's
	uint64_t otherwise; // a bit for each live member whose configuration is not the line's
	bool is_crowded; // present found no place of late
};
#define LEDGER_VIEW_AHEAD_MS 5000u

struct ledger_answer {
	uint8_t kind; // enum ledger_kind, of the entry
	uint8_t verdict; // enum ledger_verdict
	uint32_t poll_after; // LEDGER_NEXT
	uint32_t expires; // LEDGER_GRANTED (not of a code), LEDGER_RENEWED
	uint64_t session;
	struct ledger_place place; // LEDGER_GRANTED of a code
	uint64_t next, total; // LEDGER_READ
	struct ledger_view view; // LEDGER_VIEW that is LEDGER_DONE
};

struct ledger_member {
	char name[LEDGER_NAME_MAX + 1];
	uint8_t number; // of appliances in keys
	bool is_live, is_restored;
	bool has_left; // it said goodbye; else, if it is not live, it is unheard of
	uint64_t closed, applied; // as it said
};

enum ledger_news_kind {
	LEDGER_NEWS_ENDED = 1, // line, session, expires: refuse the pass until then
	LEDGER_NEWS_LEFT, // line, key, visitor
	LEDGER_NEWS_THRESHOLD, // line, threshold, floor, their ranks, words, is_open
	LEDGER_NEWS_SLOTS, // line, member, held, count; total: tickets ever told, of all members
	LEDGER_NEWS_MEMBER, // member: joined, or left (is_open false)
	LEDGER_NEWS_CONDUCTOR, // member, fence
	LEDGER_NEWS_RECORD, // type, id, bytes, len
	LEDGER_NEWS_GATHERED, // of a page alone: line, gathering, from, whole, held (ids), count
	LEDGER_NEWS_KINDS, // kinds from here on are of a newer version: passed over
};

struct ledger_news {
	uint64_t number; // counts up by one; 0: of a page
	uint8_t kind; // enum ledger_news_kind
	uint8_t member, type;
	bool is_open;
	uint32_t line, expires, id;
	uint64_t key, visitor, session;
	uint64_t threshold, floor, threshold_rank, floor_rank, fence, total;
	uint64_t gathering, from; // from: index of the first id
	uint64_t whole; // bit N: member N has told all its ids
	struct ledger_words words;
	uint32_t count; // of held, or bytes
	union {
		uint64_t held[LEDGER_SLOTS_MAX];
		uint8_t bytes[LEDGER_BLOB_MAX];
	};
};

// The reply but for its entries, members and news, which are read one by one (ledger_wire.h).
struct ledger_reply {
	uint8_t verdict; // enum ledger_batch_verdict
	bool is_skewed, is_recovering,
		is_resync; // resync: news after `cursor` are gone; read the state
	uint8_t number; // appliance number of the sender
	uint8_t conductor; // appliance number; LEDGER_MEMBERS_MAX: none
	uint64_t fence; // in force, or the last one that was
	uint64_t epoch; // grows when the store has lost writes; 0: it never has
	uint64_t writes; // counts batches taken
	uint64_t cursor; // the last news in this reply, or as sent
	uint64_t newest; // the last news there is
	uint64_t time_ms; // cluster time; in a skewed batch TIME + correction as it is, or if that
			  // is behind what cluster time has been, what it was last
	uint64_t raw_ms; // TIME
	int64_t correction_ms;
	uint64_t gone_ms; // cluster time until when a process that is no more may have been granted
			  // something: it left, another has its name, or it is unheard of; 0: none
	uint64_t final; // slots below this one are final: the news up to `cursor` have told all
			// that will ever be told of them. 0: nothing can be said now (there are
			// more news, or a state to be read; or the store recovers)
	uint32_t answer_count, member_count, news_count; // news: with those of pages
};
