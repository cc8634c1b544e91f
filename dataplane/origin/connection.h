// Connections to servers: being made, in use by one exchange, or kept for the next one.
//
// Kept ones are taken newest first, since that one is the least likely to be closed by the origin
// at this moment.
#pragma once

#include <stdbool.h>
#include <stdint.h>
#include <sys/queue.h>

#include "dataplane/origin/deadline.h"
#include "dataplane/tls/tls.h"
#include "drivers/stream.h"

struct exchange;
struct origin_counters;
struct origin_table_limits;
struct server;

struct connection {
	struct deadline expiry; // set while it is kept
	struct stream_driver *driver; // of the stream: the pool's, or its `tls`
	struct stream *stream; // its user is this; NULL once the driver has taken it back
	struct server *server;
	struct exchange *exchange; // whose it is; NULL: kept
	bool is_kept;
	bool is_reused; // has carried an exchange before
	TAILQ_ENTRY(connection) siblings; // kept: the server's, newest first; else: the free list
};
TAILQ_HEAD(connection_list, connection);

struct connection_pool {
	struct stream_driver *driver, *tls; // which servers that speak TLS are reached by
	struct origin_counters *counters;
	struct connection *items;
	uint32_t uncut_count; // never used yet
	uint32_t idle_max; // kept to one server
	struct connection_list free;
	struct deadline_heap expiries; // of those kept
};

// Make room for `max` connections, the sum of those in use and those kept; of the latter at most
// `idle_max` to one server. `pool` has its drivers and its counters set. Returns 0 or -ENOMEM.
int connection_pool_init(struct connection_pool *pool, uint32_t max, uint32_t idle_max);

// Frees the memory; connections must be closed.
void connection_pool_fini(struct connection_pool *pool);

// Begin to connect. Fewer than `max` are in use; where all others are kept, the one that would
// expire first makes room. NULL: the driver is out of streams. With a server that speaks TLS it is
// open when that is, and refused if the server's certificate is not good.
struct connection *connection_open(struct connection_pool *pool, struct server *server);

// The newest connection kept to the server; NULL: there is none.
struct connection *connection_reuse(struct connection_pool *pool, struct server *server);

// It is not open, and nobody waits any longer: say so to who counts handshakes.
void connection_late(struct connection_pool *pool, struct connection *connection);

// Keep it for another exchange; close it if the server has its share.
void connection_keep(struct connection_pool *pool, struct connection *connection,
	const struct origin_table_limits *limits, uint64_t now_us);

// Close it, kept or not, and forget it. `reset`: as in stream_close().
void connection_close(struct connection_pool *pool, struct connection *connection, bool reset);

// Close all that are kept to the server.
void connection_close_kept(struct connection_pool *pool, struct server *server);
