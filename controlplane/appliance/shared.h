// Shared: what the appliances of a cluster have in common besides their lines. Each has a copy, and
// each change is a record of the ledger, which tells all (LEDGER_RECORD, LEDGER_NEWS_RECORD).
//
//   secret   sealed: key, when made and retired, and where it stands: told ─▶ current ─▶ old
//   seed     sealed: what keys of visitors' TLS sessions come from, of an epoch
//   room     what commands said: state, mode, message, salt, doors opened
//   release  `release N`: how many, and which time
//   draw     sealed: how far a gathering is; a matter of controlplane/draws
//
// A secret signs only when all know it. Who rotates tells it; when every appliance that has not
// said goodbye goes by it (it verifies then), the conductor makes it current and the one before
// old. An appliance that is down is waited for SHARED_DEAD_S: when it is back it reads first, and
// serves then. One that is revoked waits for nobody who is down.
//
// The first secret of a cluster is that of its first conductor, and so are those of before. Until
// an appliance knows it, it signs nothing: shared_is_ready().
//
// What an appliance goes by it also has in its own store, for a start while the ledger is away.
//
// Control thread only. Times are unix seconds of cluster time.
#pragma once

#include <stdbool.h>
#include <stdint.h>

#include "controlplane/cluster/ledger.h"
#include "controlplane/store/seal.h"
#include "controlplane/store/secrets.h"
#include "controlplane/store/tickets.h"
#include "dataplane/gate/status.h"

#define SHARED_DEAD_S 3600u // who is down for longer is not waited for
#define SHARED_DRAW_MAX 512u // bytes of a gathering
#define SHARED_DRAW_HEAD 5u // of these: version of the record, version of what it says
#define SHARED_VERSION 1u // first byte of every record (shared_record.h)

enum shared_type { // of a record; never another meaning
	SHARED_SECRET = 1, // id: its own
	SHARED_SEED, // id: the epoch
	SHARED_ROOM, // id: line id
	SHARED_RELEASE, // id: line id
	SHARED_DRAW, // id: of line and number
};

struct shared_room {
	uint32_t line_id;
	uint8_t state, mode; // as of store_room
	uint64_t opened_ms, opened_at_ms; // as of store_doors
	uint8_t salt[STORE_SALT_BYTES_MAX];
	uint8_t salt_bytes;
	char message[STATUS_MESSAGE_BYTES_MAX + 1];
};

struct shared_seams {
	void *ctx;
	// Give a record to the ledger (member_put_record()).
	bool (*put)(void *ctx, const struct ledger_record *record);
	// Secrets or seeds are others now: publish them.
	void (*keys)(void *ctx);
	// Commands have said this of a room, here or elsewhere; dies with the call.
	void (*room)(void *ctx, const struct shared_room *room);
	// So many people are to be called, by whoever is the conductor.
	void (*release)(void *ctx, uint32_t line_id, uint64_t people);
	// A gathering is said to be this, which dies with the call; len 0: it is no more.
	void (*draw)(void *ctx, uint32_t id, uint32_t version, const uint8_t *bytes, uint32_t len);
	// One line for the log.
	void (*say)(void *ctx, const char *text);
};

// How the cluster stands, for shared_turn().
struct shared_view {
	bool is_conductor, is_away;
	uint64_t cursor; // news that are in force or on their way to it here
	const struct ledger_member *members;
	uint32_t member_count;
};

struct shared;

// The seal, the secrets and the seeds stay the caller's and outlive it. Returns NULL when memory is
// short.
struct shared *shared_create(const struct seal *seal, struct secrets *secrets,
	struct tickets *tickets, const struct shared_seams *seams);
void shared_destroy(struct shared *s); // accepts NULL

// A record is this now; len 0: it is no more.
void shared_take(struct shared *s, uint8_t type, uint32_t id, const uint8_t *bytes, uint32_t len);

// All records there are have been told: those that were not are no more.
void shared_resync_begins(struct shared *s);
void shared_resynced(struct shared *s);

// Whether all have been read, and one signs.
bool shared_is_ready(const struct shared *s);

// Whether a secret of the cluster could not be opened: this appliance has another key.
bool shared_is_foreign(const struct shared *s);

// The ledger has lost writes: put all records again, as many as are taken now. Returns true when
// all have been put; then the next call begins anew.
bool shared_restore(struct shared *s);

// What the conductor has to do: once a second, and more often while a secret is on its way.
void shared_turn(struct shared *s, const struct shared_view *view, uint64_t now_s);

// Rotate, for an old one that still verifies `ttl_s`. Returns the id of the new one, which will
// sign when all have it; or -errno: -EBUSY one is on its way (shared_told()), -EAGAIN the ledger
// takes nothing now, -ENOSPC, -EIO.
int shared_rotate(struct shared *s, uint64_t ttl_s, uint64_t now_s);

// Returns 0 or -errno, likewise, or -ENOENT. The current one is replaced first, by the one that is
// on its way if there is one: nobody who is down is waited for then.
int shared_revoke(struct shared *s, uint8_t id, uint64_t now_s);

// What commands say of a room now. Returns false if the ledger takes nothing now; then nothing has
// changed. shared_seams.room is called when the ledger has it.
bool shared_put_room(struct shared *s, const struct shared_room *room);
bool shared_has_room(const struct shared *s, uint32_t line_id); // commands have said something
bool shared_put_release(struct shared *s, uint32_t line_id, uint64_t people, uint64_t number);

// The conductor's: a gathering is this from now on, or is no more, when it is told back. `bytes`
// begin with SHARED_DRAW_HEAD for this to fill in, and are at most SHARED_DRAW_MAX. Both return
// false likewise, or without the office.
bool shared_put_draw(
	struct shared *s, uint32_t id, uint32_t version, const uint8_t *bytes, uint32_t len);
bool shared_drop_draw(struct shared *s, uint32_t id);

// Have all gatherings told again that are known.
void shared_tell_draws(struct shared *s);

// The secret that is on its way, or 0; and how many appliances of those that have not said goodbye
// have it.
uint8_t shared_told(const struct shared *s, uint32_t *known, uint32_t *all);

// Who is waited for before a secret signs: its number as of ledger_member, or LEDGER_MEMBERS_MAX.
uint8_t shared_awaited(const struct shared *s);
