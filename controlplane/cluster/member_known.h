// Known: what a member has seen granted, ended and given back through itself, so that it can write
// it back when the ledger has lost it, or could not be asked; and what is to be written back.
//
// Bounded: a table by line and visitor, an index by session, and one queue of those about which
// something is unsaid. For member*.c alone; control thread.
#pragma once

#include <stdbool.h>
#include <stdint.h>

#include "controlplane/cluster/ledger.h"
#include "controlplane/controller/idmap.h"

// Kept free for what replies grant; what else is remembered leaves as much.
#define MEMBER_KNOWN_SPARE LEDGER_ENTRIES_MAX

enum member_known_state {
	MEMBER_KNOWN_FREE,
	MEMBER_KNOWN_TAKEN, // a session, perhaps over
	MEMBER_KNOWN_ENDED, // one that ended early
	MEMBER_KNOWN_LEFT, // a ticket that was given back
};

// What the ledger is to be told of an entry, in this order.
#define MEMBER_KNOWN_SAY_TAKEN 1u
#define MEMBER_KNOWN_SAY_END 2u
#define MEMBER_KNOWN_SAY_LEAVE 4u
#define MEMBER_KNOWN_SAYS_MAX 3u // ledger entries of one

struct member_known_entry {
	uint64_t visitor, session, key; // key 0: direct, or not known
	uint32_t line, expires;
	uint8_t state; // enum member_known_state
	uint8_t unsaid; // MEMBER_KNOWN_SAY_*
	bool is_queued;
	bool is_granted; // by an answer here: it is written back, not only its end
	bool is_told; // that it ended, by the ledger, to all
};

struct member_known {
	uint32_t max, free_count, swept;
	struct member_known_entry *entries; // from 1
	uint32_t *free; // indices
	uint32_t *queue; // indices; a ring of max
	uint64_t queue_first, queue_end; // numbers run on
	struct idmap by_visitor, by_session;
};

// Bytes of member_known_init(). Pure.
uint64_t member_known_bytes(uint32_t max);

// Room for `max`, and MEMBER_KNOWN_SPARE. Returns false when memory is short.
bool member_known_init(struct member_known *k, uint32_t max, uint64_t seed);
void member_known_fini(struct member_known *k);

// NULL: not known. session not 0.
struct member_known_entry *member_known_find(
	struct member_known *k, uint32_t line, uint64_t visitor);
struct member_known_entry *member_known_session(struct member_known *k, uint64_t session);

// A new entry, that is not in; NULL if there is no room.
//   is_grant  it may use the spare
struct member_known_entry *member_known_add(
	struct member_known *k, const struct member_known_entry *is, bool is_grant);

// A session is remembered, or its later end.
void member_known_granted(struct member_known *k, uint32_t line, const struct ledger_claim *claim);

// Forget one, whatever was unsaid of it.
void member_known_remove(struct member_known *k, struct member_known_entry *entry);

// Something is to be said of it, besides what is unsaid already.
void member_known_unsaid(struct member_known *k, struct member_known_entry *entry, uint8_t say);

// Everything is to be said again.
void member_known_unsaid_all(struct member_known *k);

// The next of which something is unsaid, out of the queue; the caller clears `unsaid`. NULL: none.
struct member_known_entry *member_known_next(struct member_known *k);

// How many are in the queue, with some of whom nothing is unsaid any more.
uint32_t member_known_unsaid_count(const struct member_known *k);

// How many grants there is room for.
uint32_t member_known_room(const struct member_known *k);

// The next entry of the sweep, which looks at each in turn; NULL: a free one.
struct member_known_entry *member_known_sweep(struct member_known *k);
