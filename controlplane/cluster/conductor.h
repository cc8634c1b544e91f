// Conductor: what the one appliance that holds the lease says to the ledger: thresholds, limits,
// and the correction of cluster time. A pure function of replies, configuration and time.
//
// Every member has one. It stands for election whenever nobody is conductor, and speaks only while
// it is; then for each line it looks at how things stand there (LEDGER_VIEW), moves threshold and
// floor by the rules of controlplane/controller (caller.h), and says so in the next batch.
//
//   LEDGER_VIEW of lines, rooms, pools ─▶ pools as the ledger has them ─▶ room ahead ─┐
//   merged counts of all appliances (place_key_at) ────────────────────────────────────┼─▶ caller
//   who came, who gave a ticket back ──────────────────────────────────────────────────┘     │
//   LEDGER_THRESHOLD · LEDGER_NODE · LEDGER_CORRECTION · LEDGER_ELECT ◀──────────────────────┘
//
// It remembers nothing that the next conductor would miss: that one begins with the view and the
// ranks, all turns begin anew, and threshold and floor never move back, because the ledger's do
// not.
//
// # In a batch, by its member
//
//   1. conductor_entries() behind the member's own entries; conductor_fence() into its head. They
//      are sent until there is a reply, the same ones.
//   2. When the reply is there: conductor_reply(), conductor_member() for each member of it,
//      conductor_answer() for each entry that was the conductor's.
//   3. conductor_left() for every news LEDGER_NEWS_LEFT and item of its pages, in office or not;
//   the
//      ranks are brought up to date by news before the next conductor_entries().
//
// Times are unix milliseconds of cluster time by this appliance's own clock; they never go back.
// Control thread only; memory is taken in conductor_create() and conductor_set_nodes() alone.
#pragma once

#include <stdbool.h>
#include <stdint.h>

#include "controlplane/cluster/ledger.h"
#include "dataplane/gate/place.h"

#define CONDUCTOR_TURN_MS 50u // how often a line is looked at, if there are few
#define CONDUCTOR_VIEWS_MAX 32u // nodes looked at in a batch
#define CONDUCTOR_RENEW_MS 300u // how often the lease is renewed, and office stood for
#define CONDUCTOR_WORDS_MS 1000u // how often words are told that nothing depends on
#define CONDUCTOR_FLOOR_HOLD_MS 600000u // floor waits no longer for a member that is unheard of
#define CONDUCTOR_BEGAN_MS 5000u // a clock that is less ahead of the last cluster time is right
#define CONDUCTOR_OFF_MS 50u // cluster time that is off by more is corrected
#define CONDUCTOR_HEARD_MS 2000u // by then every member that is live tells new words
#define CONDUCTOR_NODES_MAX 32u // nodes said in a batch
#define CONDUCTOR_ENTRIES_MAX (2 + 2 * CONDUCTOR_VIEWS_MAX + CONDUCTOR_NODES_MAX) // of a batch

struct conductor;

struct conductor_plan {
	uint32_t nodes_max; // lines, and what they share
	uint32_t floor_hold_ms; // 0: CONDUCTOR_FLOOR_HOLD_MS
	uint64_t seed; // random, for trees
};

// A line, or what lines share, as it is configured.
struct conductor_node {
	uint32_t id; // of the line, or the node
	struct ledger_node node; // `is_line` says which; parent: 0, or the id of one before it
	// Of a line.
	uint32_t claim_s; // how long a turn waits to be taken
	const struct place_line *place; // its ranks are merged; outlives its being configured
	bool is_open; // it can be polled and granted: not paused, not closed
};

// What `show cluster` wants to know.
struct conductor_status {
	bool is_in_office;
	uint64_t fence; // 0: not in office
	uint64_t since_ms; // in office
	uint64_t corrections_total, refused_total; // refused: nodes and thresholds by the ledger
	uint32_t unheard; // members that are not live and have not said goodbye
	bool is_floor_held; // because of these
};

// Bytes of a conductor, and what each line adds, with the node above it. Pure.
uint64_t conductor_bytes(uint32_t nodes_max);
uint64_t conductor_node_bytes(uint32_t left_max);

// Returns NULL when memory is short.
struct conductor *conductor_create(const struct conductor_plan *plan, uint64_t now_ms);

// Accepts NULL.
void conductor_destroy(struct conductor *c);

// Go by these nodes from now on; what is not named is steered no more. Who changed says so to the
// ledger, if in office. Returns false if there are more than nodes_max, a parent is not before its
// child, or memory is short; then nothing has changed.
bool conductor_set_nodes(
	struct conductor *c, const struct conductor_node *nodes, uint32_t count, uint64_t now_ms);

// Whether a line can be polled and granted, by the state of its room. The claim windows stand still
// meanwhile and begin anew after.
void conductor_set_open(struct conductor *c, uint32_t line, bool is_open, uint64_t now_ms);

// `release N`: call N more people than the limits would, as controller_release(). Returns false,
// and nothing is done, unless it is in office: who is would do it again.
bool conductor_release(struct conductor *c, uint32_t line, uint64_t count);

// An event is over: whoever has a key below `key` waits no more, as controller_lapse(). Kept until
// it is in office, since it can be done twice.
void conductor_lapse(struct conductor *c, uint32_t line, uint64_t key);

// A ticket was given back. Known already, or of a line that is not configured: nothing.
void conductor_left(struct conductor *c, uint32_t line, uint64_t key, uint64_t visitor);

// The first that was given back and is not before (*key, *visitor). Returns false if there is none.
bool conductor_left_from(
	const struct conductor *c, uint32_t line, uint64_t *key, uint64_t *visitor);

// One that was given back with `was` has the key `key`, or 0: none any more.
void conductor_left_placed(
	struct conductor *c, uint32_t line, uint64_t visitor, uint64_t was, uint64_t key);

// How many tickets of a line from `threshold` on were given back, as far as is known.
uint32_t conductor_left_waiting(const struct conductor *c, uint32_t line, uint64_t threshold);

// What the conductor says in the next batch. Returns how many of `entries` are filled, at most
// `max` (CONDUCTOR_ENTRIES_MAX is room for all; fewer: the others wait for the next).
uint32_t conductor_entries(
	struct conductor *c, struct ledger_entry *entries, uint32_t max, uint64_t now_ms);

// The number for the head of that batch; 0: not in office.
uint64_t conductor_fence(const struct conductor *c);

// A reply that is LEDGER_BATCH_TAKEN: its head.
//   sent_ms  when the batch was sent for the first time, on whatever connection
void conductor_reply(
	struct conductor *c, const struct ledger_reply *reply, uint64_t sent_ms, uint64_t now_ms);

// One of its members.
void conductor_member(struct conductor *c, const struct ledger_member *member, uint64_t now_ms);

// The answer to an entry that conductor_entries() made.
void conductor_answer(struct conductor *c, const struct ledger_entry *entry,
	const struct ledger_answer *answer, uint64_t now_ms);

// The store is away: not in office until a reply says so.
void conductor_lost(struct conductor *c);

// How it stands.
void conductor_look(const struct conductor *c, struct conductor_status *status);
