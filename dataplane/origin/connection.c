// A connection is on the free list, or an exchange's, or kept: then it is on its server's list and
// has a deadline.

#include "dataplane/origin/connection.h"

#include "dataplane/origin/origin.h"
#include "dataplane/origin/server.h"
#include "drivers/tally.h"

#include <assert.h>
#include <errno.h>
#include <stdlib.h>

int connection_pool_init(struct connection_pool *pool, uint32_t max, uint32_t idle_max)
{
	pool->uncut_count = max;
	pool->idle_max = idle_max;
	TAILQ_INIT(&pool->free);
	pool->items = calloc(max, sizeof(*pool->items)); // COLD: at start
	return pool->items ? deadline_heap_init(&pool->expiries, max) : -ENOMEM;
}

void connection_pool_fini(struct connection_pool *pool)
{
	deadline_heap_fini(&pool->expiries);
	free(pool->items);
}

static void evict(struct connection_pool *pool)
{
	struct deadline *first = deadline_first(&pool->expiries);
	assert(first); // each exchange has one connection at most, and there are as many
	char *at = (char *)first - offsetof(struct connection, expiry);
	connection_close(pool, (struct connection *)at, false);
	tally_add(&pool->counters->kept_evicted, 1);
}

static struct connection *take(struct connection_pool *pool)
{
	if (TAILQ_EMPTY(&pool->free) && pool->uncut_count > 0)
		return &pool->items[--pool->uncut_count];
	if (TAILQ_EMPTY(&pool->free))
		evict(pool);
	struct connection *connection = TAILQ_FIRST(&pool->free);
	TAILQ_REMOVE(&pool->free, connection, siblings);
	return connection;
}

struct connection *connection_open(struct connection_pool *pool, struct server *server)
{
	struct connection *connection = take(pool);
	*connection = (struct connection){.server = server};
	connection->driver = server->tls ? pool->tls : pool->driver;
	if (server->tls)
		connection->stream = tls_connect(
			pool->tls, &server->address, server->tls, &server->peer, connection);
	else
		connection->stream = stream_connect(pool->driver, &server->address, connection);
	if (!connection->stream) {
		tally_add(&pool->counters->connects_none, 1);
		TAILQ_INSERT_HEAD(&pool->free, connection, siblings);
		return NULL;
	}
	tally_add(&pool->counters->connects, 1);
	return connection;
}

static void unkeep(struct connection_pool *pool, struct connection *connection)
{
	TAILQ_REMOVE(&connection->server->kept, connection, siblings);
	deadline_clear(&pool->expiries, &connection->expiry);
	server_count(&connection->server->kept_count, -1);
	connection->is_kept = false;
}

struct connection *connection_reuse(struct connection_pool *pool, struct server *server)
{
	struct connection *connection = TAILQ_FIRST(&server->kept);
	if (!connection)
		return NULL;
	unkeep(pool, connection);
	connection->is_reused = true;
	tally_add(&pool->counters->reuses, 1);
	return connection;
}

void connection_late(struct connection_pool *pool, struct connection *connection)
{
	if (connection->driver == pool->tls)
		tls_late(pool->tls, connection->stream);
}

void connection_keep(struct connection_pool *pool, struct connection *connection,
	const struct origin_table_limits *limits, uint64_t now_us)
{
	struct server *server = connection->server;
	assert(!connection->exchange);
	bool is_full =
		server->kept_count >= limits->idle_max || server->kept_count >= pool->idle_max;
	if (is_full || !server->is_listed) {
		tally_add(&pool->counters->kept_full, server->is_listed);
		connection_close(pool, connection, false);
		return;
	}
	connection->is_kept = true;
	deadline_set(&pool->expiries, &connection->expiry, now_us + limits->idle_us);
	TAILQ_INSERT_HEAD(&server->kept, connection, siblings);
	server_count(&server->kept_count, 1);
	tally_add(&pool->counters->kept, 1);
}

void connection_close(struct connection_pool *pool, struct connection *connection, bool reset)
{
	if (connection->is_kept)
		unkeep(pool, connection);
	if (connection->stream)
		stream_close(connection->driver, connection->stream, reset);
	connection->stream = NULL;
	connection->exchange = NULL;
	TAILQ_INSERT_HEAD(&pool->free, connection, siblings);
}

void connection_close_kept(struct connection_pool *pool, struct server *server)
{
	while (!TAILQ_EMPTY(&server->kept))
		connection_close(pool, TAILQ_FIRST(&server->kept), false);
}
