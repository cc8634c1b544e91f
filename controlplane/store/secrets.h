// Secrets: what tickets and passes are signed with, kept in the store.
//
//   rotate ─▶ next ──saved──▶ current ──rotate──▶ old ──retire_s──▶ gone
//                                └────── revoke ───┴──────────────▶ gone, at once
//
// A secret signs only when the store has it: what was signed with a lost secret would be nobody's.
// An old one still verifies, for as long as a token signed with it may live. The ids go round from
// 1 to 255, so that an id is used again as late as can be.
//
// The struct lives in pages of its own that are locked and kept out of core dumps, and wiped at the
// end.
//
// Control thread only. Times are unix seconds of cluster time.
#pragma once

#include "controlplane/store/store.h"

#define SECRETS_MAX 255u

enum secrets_state {
	SECRETS_ABSENT,
	SECRETS_NEXT, // not saved yet
	SECRETS_CURRENT, // signs
	SECRETS_OLD, // verifies until retire_s
	SECRETS_TOLD, // of a cluster: verifies, and signs once all appliances have it
};

struct secrets_view {
	uint8_t id;
	uint8_t state; // enum secrets_state, never SECRETS_ABSENT
	uint64_t created_s;
	uint64_t retire_s; // 0 but for old ones
	const uint8_t *key; // STORE_SECRET_BYTES; dies with the next call that is not const
};

struct secrets;

// Load the secrets; the first is made, and saved, if there is none. `store` stays the caller's and
// outlives the secrets.
// Returns 0 or -errno (-EIO: the first one could not be saved). Owned by the caller:
// secrets_destroy(), which accepts NULL.
int secrets_create(struct store *store, uint64_t now_s, struct secrets **secrets);
void secrets_destroy(struct secrets *s);

// Make a new current secret; the one before stays valid for `ttl_s`, which is as long as the
// longest-lived token lasts (ticket_ttl, or a session). Returns its id, or -errno, and
// then nothing has changed: -EAGAIN the store is busy or unsaved, or a rotation is under way;
// -ENOSPC every id is taken. With a store that completes later the new one is SECRETS_NEXT until
// secrets_poll() sees it saved.
int secrets_rotate(struct secrets *s, uint64_t ttl_s, uint64_t now_s);

// Let tokens of a secret count as none from now on; the current one is replaced first, as by
// secrets_rotate(), and can fail like it. Returns 0 or -errno (-ENOENT: no such secret). It is gone
// from memory at once, from an unsaved store when that can write again.
int secrets_revoke(struct secrets *s, uint8_t id, uint64_t now_s);

// Promote what has been saved, forget what has retired. Once a second and after each turn with a
// rotation under way. Returns whether anything changed: then publish them anew.
bool secrets_poll(struct secrets *s, uint64_t now_s);

// In a cluster its records say which secrets there are (appliance/shared.h), and what is kept here
// is what this appliance goes by until it has read them again.
//
// A fresh secret of an id that is free, not kept. Returns 0, or -errno: -EAGAIN another one is
// SECRETS_TOLD, -ENOSPC.
//   taken  by id: the cluster has a secret there, though none that is kept here
int secrets_make(const struct secrets *s, const bool taken[SECRETS_MAX + 1], uint64_t now_s,
	struct store_secret *secret);
// Keep a secret, in place of what had its id. `state` is SECRETS_TOLD, SECRETS_CURRENT (the one
// before is SECRETS_OLD from now on) or SECRETS_OLD. Returns whether anything changed.
bool secrets_keep(struct secrets *s, const struct store_secret *secret, enum secrets_state state);
// Keep one no more; not the current one, without which nothing could be signed. Returns as above.
bool secrets_drop(struct secrets *s, uint8_t id);

// All secrets, by id. Returns how many.
uint32_t secrets_list(const struct secrets *s, struct secrets_view views[SECRETS_MAX]);
