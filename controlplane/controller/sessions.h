// Sessions: who holds a slot, and who has used a ticket.
//
// One record for each visitor who was admitted, from the grant until its session is over and floor
// has passed its key. What must outlast the process is noted as changes.
#pragma once

#include <stdbool.h>
#include <stdint.h>

#include "controlplane/controller/controller.h"
#include "controlplane/controller/due.h"
#include "controlplane/controller/idmap.h"
#include "controlplane/controller/keyset.h"

enum session_state {
	SESSION_ACTIVE = 1, // holds a slot
	SESSION_ENDING, // holds a slot; its pass is being refused everywhere
	SESSION_OVER, // the slot is free; the ticket is used
};

struct session {
	uint64_t visitor, session, key; // key 0: direct
	uint32_t expires; // unix s
	uint32_t claimed; // in sessions.claimed; 0: direct, or floor has passed the key
	uint8_t state; // enum session_state; 0: given back, `claimed` is the next such one
	bool ended_early;
};

struct sessions {
	struct pool *pool; // whose slots they take; set by the owner before the first one begins
	struct session *records; // [0] is nobody
	uint32_t used, given_back, count_max; // records ever used; the first of those free again
	struct idmap by_visitor, by_session;
	struct due ends; // of those that hold a slot
	struct keyset claimed; // keys that floor has not passed
	uint32_t *claimed_by; // of an id in `claimed`: its record
	struct controller_change *changes;
	uint32_t change_count;
	bool changes_taken; // they have been read, and go with the next one
	uint64_t expired_total, ended_total;
};

// Returns false when memory is short; sessions_fini() then all the same.
bool sessions_init(struct sessions *s, uint32_t count_max, uint64_t seed);
void sessions_fini(struct sessions *s);

// The record of a visitor or of a session that holds a slot, or NULL.
struct session *sessions_of_visitor(struct sessions *s, uint64_t visitor);
struct session *sessions_of(struct sessions *s, uint64_t session);

// Whether a session can begin in this turn.
bool sessions_has_room(const struct sessions *s);

// Begin one; there is room, and neither visitor nor session are known.
void sessions_begin(
	struct sessions *s, uint64_t visitor, uint64_t session, uint64_t key, uint32_t expires);

// Put one back that the store knew.
//   is_over  only the ticket is used
//   floor    of the line: a used ticket below it is forgotten soon
// Returns false if it does not fit or is known.
bool sessions_restore(
	struct sessions *s, const struct controller_change *change, bool is_over, uint64_t floor);

// It lasts until `expires`, if that is later. Returns when it ends.
uint32_t sessions_renew(struct sessions *s, struct session *session, uint32_t expires);

// Its pass is not good any more, the slot is still taken.
void sessions_end(struct session *session);

// It is over at the next sessions_expire().
void sessions_free(struct sessions *s, struct session *session);

// End what has run out. A bounded number; the rest at the next call.
void sessions_expire(struct sessions *s, uint64_t now_ms);

// Floor is at `floor`: forget used tickets below it. A bounded number; the rest at the next call.
void sessions_pass(struct sessions *s, uint64_t floor);

// Tickets used with keys from `key` on.
uint32_t sessions_claimed_from(const struct sessions *s, uint64_t key);

// Sessions that end by `ms`, counted up to `most`.
uint32_t sessions_ending(const struct sessions *s, uint64_t ms, uint32_t most);

// Have a change noted that is of no session: a ticket given back (CONTROLLER_LEFT), or passed by
// floor since (CONTROLLER_FORGET). Returns false if this turn has no room for it.
bool sessions_note_left(struct sessions *s, uint8_t kind, uint64_t key, uint64_t visitor);

// The changes since the last call, in order; valid until the next event. Returns how many.
uint32_t sessions_changes(struct sessions *s, const struct controller_change **changes);
