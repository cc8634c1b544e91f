// A connection is on the free list, or an exchange's, or on two lists at once: its server's kept
// ones and the pool's kept ones by age. All are kept for the same time, so the oldest is always the
// first to expire and no timer is needed.

#include "dataplane/origin/connection.h"

#include "dataplane/origin/origin.h"
#include "dataplane/origin/server.h"

#include <assert.h>
#include <errno.h>
#include <stdlib.h>

int connection_pool_init(struct connection_pool *pool, uint32_t max, uint32_t idle_max,
	struct stream_driver *driver, struct origin_counters *counters)
{
	*pool = (struct connection_pool){
		.driver = driver, .counters = counters, .uncut_count = max, .idle_max = idle_max};
	TAILQ_INIT(&pool->free);
	TAILQ_INIT(&pool->kept);
	pool->items = calloc(max, sizeof(*pool->items)); // COLD: at start
	return pool->items ? 0 : -ENOMEM;
}

void connection_pool_fini(struct connection_pool *pool)
{
	free(pool->items);
}

struct connection *connection_open(struct connection_pool *pool, struct server *server)
{
	struct connection *connection = TAILQ_FIRST(&pool->free);
	if (connection) {
		TAILQ_REMOVE(&pool->free, connection, of_server);
	} else {
		assert(pool->uncut_count > 0); // exchanges and idle_max bound it
		connection = &pool->items[--pool->uncut_count];
	}
	*connection = (struct connection){.server = server};
	connection->stream = stream_connect(pool->driver, &server->address, connection);
	if (!connection->stream) {
		pool->counters->connects_none++;
		TAILQ_INSERT_HEAD(&pool->free, connection, of_server);
		return NULL;
	}
	pool->counters->connects++;
	return connection;
}

static void unkeep(struct connection_pool *pool, struct connection *connection)
{
	TAILQ_REMOVE(&connection->server->kept, connection, of_server);
	TAILQ_REMOVE(&pool->kept, connection, by_age);
	connection->server->kept_count--;
	connection->is_kept = false;
}

struct connection *connection_reuse(struct connection_pool *pool, struct server *server)
{
	struct connection *connection = TAILQ_FIRST(&server->kept);
	if (!connection)
		return NULL;
	unkeep(pool, connection);
	connection->is_reused = true;
	pool->counters->reuses++;
	return connection;
}

void connection_keep(struct connection_pool *pool, struct connection *connection, uint64_t now_us)
{
	struct server *server = connection->server;
	assert(!connection->exchange);
	if (server->kept_count >= pool->idle_max || !server->is_listed) {
		pool->counters->kept_full += server->is_listed;
		connection_close(pool, connection, false);
		return;
	}
	connection->is_kept = true;
	connection->kept_at_us = now_us;
	TAILQ_INSERT_HEAD(&server->kept, connection, of_server);
	TAILQ_INSERT_TAIL(&pool->kept, connection, by_age);
	server->kept_count++;
	pool->counters->kept++;
}

void connection_close(struct connection_pool *pool, struct connection *connection, bool reset)
{
	if (connection->is_kept)
		unkeep(pool, connection);
	if (connection->stream)
		stream_close(pool->driver, connection->stream, reset);
	connection->stream = NULL;
	connection->exchange = NULL;
	TAILQ_INSERT_HEAD(&pool->free, connection, of_server);
}

void connection_close_kept(struct connection_pool *pool, struct server *server)
{
	while (!TAILQ_EMPTY(&server->kept))
		connection_close(pool, TAILQ_FIRST(&server->kept), false);
}
