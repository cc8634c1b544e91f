// Free sockets are a stack: the one given back last is still in the cache.

#include "drivers/sockets/socket.h"

#include <errno.h>
#include <stdlib.h>

#define TO(state) (1u << SOCKET_##state)

static const uint8_t next[SOCKET_STATES] = {
	[SOCKET_FREE] = TO(CONNECTING) | TO(OPEN),
	[SOCKET_CONNECTING] = TO(OPEN) | TO(CLOSED) | TO(RELEASING),
	[SOCKET_OPEN] = TO(LINGERING) | TO(CLOSED) | TO(RELEASING),
	[SOCKET_LINGERING] = TO(RELEASING),
	[SOCKET_CLOSED] = TO(RELEASING),
	[SOCKET_RELEASING] = TO(FREE),
};

int socket_table_init(struct socket_table *table, uint32_t count)
{
	TAILQ_INIT(&table->free);
	table->sockets = aligned_alloc(_Alignof(struct socket), count * sizeof(struct socket));
	if (!table->sockets)
		return -ENOMEM;
	memset(table->sockets, 0, count * sizeof(struct socket));
	table->count = count;
	for (uint32_t i = 0; i < count; i++)
		TAILQ_INSERT_TAIL(&table->free, &table->sockets[i], list);
	return 0;
}

void socket_table_fini(struct socket_table *table)
{
	free(table->sockets);
}

struct socket *socket_take(struct socket_table *table, int fd)
{
	struct socket *socket = TAILQ_FIRST(&table->free);
	if (!socket)
		return NULL;
	assert(socket->state == SOCKET_FREE);
	TAILQ_REMOVE(&table->free, socket, list);
	*socket = (struct socket){.fd = fd};
	return socket;
}

void socket_give(struct socket_table *table, struct socket *socket)
{
	assert(queue_is_empty(&socket->queue));
	socket_set_state(socket, SOCKET_FREE);
	TAILQ_INSERT_HEAD(&table->free, socket, list);
}

void socket_set_state(struct socket *socket, enum socket_state to)
{
	assert(next[socket->state] & (1u << to));
	socket->state = (uint8_t)to;
}

void socket_reset_on_close(int fd)
{
	setsockopt(
		fd, SOL_SOCKET, SO_LINGER, &(struct linger){.l_onoff = 1}, sizeof(struct linger));
}
