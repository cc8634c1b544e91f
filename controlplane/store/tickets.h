// Ticket seeds: what the keys of visitors' TLS sessions come from (tls/ticket.h), kept in the
// store, so that a session is resumed by any worker, after a restart, and by any appliance of one
// store.
//
//   time is cut into epochs of TICKETS_EPOCH_S; each has one seed, made an epoch ahead
//   current: that of this epoch · next: for whoever is ahead · previous: sessions that began in it
//
// Which is the current one follows from cluster time alone, so appliances of a cluster need agree
// on nothing but the seeds: those of their conductor, who tells them an epoch ahead. A seed that
// could not be saved is used all the same: with it goes nothing but that some handshakes are whole
// ones.
//
// The struct lives in pages of its own that are locked and kept out of core dumps, and wiped at the
// end. Control thread only. Times are unix seconds of cluster time.
#pragma once

#include "controlplane/store/store.h"

#define TICKETS_EPOCH_S 43200u
#define TICKETS_MAX 3u // current, previous, next

struct tickets;

// Load the seeds and make those that are missing. `store` stays the caller's and outlives them.
// Returns 0 or -errno. Owned by the caller: tickets_destroy(), which accepts NULL.
int tickets_create(struct store *store, uint64_t now_s, struct tickets **tickets);
void tickets_destroy(struct tickets *tickets);

// Make the next one and forget what has run out, when it is time. Once a second. Returns whether
// anything changed: then publish them anew.
bool tickets_poll(struct tickets *tickets, uint64_t now_s);

// In a cluster: of this epoch there is this seed, in place of what was made here. Returns whether
// anything changed.
bool tickets_keep(struct tickets *tickets, uint32_t epoch, const uint8_t key[STORE_SECRET_BYTES]);
// The seed that is kept of an epoch; NULL: none.
const uint8_t *tickets_find(const struct tickets *tickets, uint32_t epoch);

// All seeds, of STORE_SECRET_BYTES each, the current one first; they die with the next call that is
// not const. Returns how many.
uint32_t tickets_list(const struct tickets *tickets, const uint8_t *seeds[TICKETS_MAX]);
