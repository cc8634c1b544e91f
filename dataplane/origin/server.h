// Servers: which one gets a request, and how each of them does.
//
// Health is passive. A server that cannot be reached is set aside at once, one that is reached but
// fails `faults_max` times in a row likewise: for `aside_us`, twice as long each time, at most
// SERVER_ASIDE_GROWTH times as long. When the time is up one request tries it; an answer makes it
// healthy.
// When every server of an origin is set aside the requests go to them all the same: an answer may
// come, and without trying there is certainly none.
#pragma once

#include <stdatomic.h>
#include <stdbool.h>
#include <stdint.h>

#include "dataplane/origin/connection.h"
#include "dataplane/origin/origin_table.h"
#include "dataplane/tls/peer.h"

#define SERVER_ASIDE_GROWTH 8u
#define SERVER_EXCEPT_MAX 3u

// One address of the table, for as long as it is listed or used. What is atomic is written by the
// worker and read by anybody.
struct server {
	_Atomic uint64_t id; // of origin_table_server; 0: this slot is free
	struct stream_address address;
	const struct tls_target *tls; // the current table's; NULL: plain, or not listed
	struct peer peer; // with TLS
	_Atomic bool is_listed; // in the current table
	bool is_tried; // set aside, and a request is on its way to see
	_Atomic uint32_t exchanges; // in flight
	_Atomic uint32_t kept_count;
	struct connection_list kept; // newest first
	uint32_t faults; // in a row
	uint64_t aside_us; // how long it is set aside for; 0: healthy
	_Atomic uint64_t aside_until_us; // 0 while healthy
};

struct server_set {
	struct server *items;
	uint32_t max;
	uint32_t rotation; // where the search among equals begins
	const struct origin_table *table; // NULL: none yet
	struct server *_Atomic *listed; // for each of table->servers; NULL: left out. Written: the
					// worker; read: anybody, who then compares the id
};

// Returns 0 or -ENOMEM.
int server_set_init(struct server_set *set, uint32_t max);
void server_set_fini(struct server_set *set);

// Go over to another table, in two steps: first say which servers are listed, so that the caller
// can close what is kept to the others; then take in those that are new.
// server_set_list() returns how many of the table had to be left out.
void server_set_unlist(struct server_set *set, const struct origin_table *table);
uint32_t server_set_list(struct server_set *set, const struct origin_table *table);

// Choose a server of an origin.
//   session  0: none
//   except   SERVER_EXCEPT_MAX servers that this request could not reach, or NULL
// Among those not set aside: with ORIGIN_TABLE_SESSION and a session the one whose hash with the
// session is highest (rendezvous: a session moves only when its own server comes or goes); else the
// one with the fewest exchanges. Returns NULL if the origin has no (other) server.
struct server *server_choose(struct server_set *set, const struct origin_table_origin *origin,
	uint64_t session, uint64_t now_us, const struct server *const *except);

// It could not be reached (`is_hard`), or it was and did badly. Returns whether it was set aside.
bool server_failed(struct server *server, bool is_hard, const struct origin_table_limits *limits,
	uint64_t now_us);

// It gave an answer.
void server_answered(struct server *server);

// Change how many of something it has. The worker only.
static inline void server_count(_Atomic uint32_t *figure, int by)
{
	uint32_t value = atomic_load_explicit(figure, memory_order_relaxed);
	atomic_store_explicit(figure, value + (uint32_t)by, memory_order_relaxed);
}
