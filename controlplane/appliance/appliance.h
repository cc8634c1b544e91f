// Appliance: control's side of a cluster. It puts together what knows nothing of each other: the
// link to Redis, the member that speaks to the ledger, its conductor, what is shared, and the
// rooms.
//
//   turn.c ─▶ appliance_engine ─▶ member ─▶ ledger_wire ─▶ link ─▶ Redis
//   workers ◀─ answers, words ◀── member ◀── replies, news ◀── link
//                                   └─▶ shared ─▶ secrets, seeds, rooms ─▶ snapshot
//   rooms, pools ─▶ appliance_lines.c ─▶ member, conductor
//
// Control thread only.
#pragma once

#include <jansson.h>

#include "controlplane/control.h"
#include "controlplane/engine.h"
#include "dataplane/gate/code.h"

#define APPLIANCE_WAIT_MS 5000u // at start, for the ledger, if enough is known without it
#define APPLIANCE_TAKEN_MS 2000u // for what is shared
#define APPLIANCE_SETTLE_MS 1500u // for lines to be open
#define APPLIANCE_NAME_MS 5000u // for another that has our name: it may be dying

extern const struct engine appliance_engine;

// Whether the configuration wants one.
bool appliance_is_wanted(const struct config *config);

// Of the memory bill: what the member and its batches take, what each line adds, and what the link
// may hold at most. Pure.
uint64_t appliance_bytes(const struct config *config, uint32_t worker_count);
uint64_t appliance_line_bytes(void);
uint64_t appliance_link_bytes(void);

// Connect to the store, as c->started says; c->base, state, clock, words, secrets and tickets are
// there. c->appliance and c->engine are set. Returns 0 or -errno, logged.
int appliance_create(struct control *c);

// Wait until the ledger has given this appliance its number and cluster time, and all that is
// shared has been read. Who knows its number and a secret of the cluster from before waits
// APPLIANCE_WAIT_MS and then goes on by itself; others wait on. Before rooms are made and workers
// started; runs the loop.
// Returns 0 or -errno, logged: -EEXIST another live appliance has this name.
int appliance_join(struct control *c);

// Wait until the lines are known to the ledger, so that who comes first is let in and queues for
// nothing; APPLIANCE_SETTLE_MS at most. When rooms are made, before workers are started; runs the
// loop. Returns 0 or -errno.
int appliance_settle(struct control *c);

// What keeps that from going on, for a person; until the next turn of the loop.
const char *appliance_awaits(struct control *c);

// Rooms or pools are others now: see engine.changed.
void appliance_set_lines(struct control *c);

// Once a second.
void appliance_second(struct control *c, uint64_t now_ms);

// Say goodbye to the others; whether that is done, or cannot be.
void appliance_leave(struct control *c);
bool appliance_has_left(const struct control *c);

// Accepts that there is none.
void appliance_destroy(struct control *c);

// A line goes by what `on_store_loss` says.
bool appliance_is_away(const struct control *c, const struct control_room *room);

// Whether commands that all are to know can be taken now.
bool appliance_can_share(const struct control *c);

// Whether the ledger has taken all that was to be shared at `began_us` (CLOCK_MONOTONIC).
// Returns 0; -EAGAIN: not yet; -ETIMEDOUT: not within APPLIANCE_TAKEN_MS; -ENOSPC: it has no room.
int appliance_shared(const struct control *c, uint64_t began_us);

// Commands. As of secrets.h; -EBUSY: another secret is on its way.
int appliance_rotate(struct control *c, uint64_t ttl_s, uint64_t now_s);
int appliance_revoke(struct control *c, uint8_t id, uint64_t now_s);

// The secret that is on its way, or 0: how many of all appliances have it, and the first that has
// it not ("?": that is not known).
uint8_t appliance_told(
	const struct control *c, uint32_t *known, uint32_t *all, const char **awaited);

// How often a code was used, on whichever appliance: ask, then ask for the answer until it is
// there. Return 0 or -errno: -EAGAIN the store is away, or not yet; -EBUSY somebody else asks;
// -ETIMEDOUT.
int appliance_code_ask(struct control *c, uint32_t lane_id, const struct code_digest *code);
int appliance_code_asked(const struct control *c, uint64_t *used);

// Draws: the gatherings that all have told; before lines are taken. How the cluster stands; before
// each turn of them. And that the salt a command named was used.
void appliance_share_draws(struct control *c);
void appliance_see_draws(struct control *c);
void appliance_salt_used(struct control *c, const struct control_room *room);

// For `show`. New references.
json_t *appliance_show(struct control *c);
void appliance_add_counters(struct control *c, json_t *list,
	void (*add)(json_t *list, const char *part, const char *name, const char *text,
		uint64_t value));
