// The connection table of conn.h: an array, a free list, and the idle list through the same links.

#include "dataplane/conn.h"

#include <assert.h>
#include <errno.h>
#include <stdlib.h>
#include <string.h>

static_assert(offsetof(struct conn, deadline) <= 64, "what every request needs is in line 0");

// Which moves are allowed: from each state, a bit per state.
static const uint8_t conn_next[] = {
	[CONN_FREE] = 1 << CONN_HEAD,
	[CONN_HEAD] = 1 << CONN_PARKED | 1 << CONN_EXCHANGE | 1 << CONN_DISCARD |
		      1 << CONN_LISTING | 1 << CONN_FREE,
	[CONN_PARKED] = 1 << CONN_HEAD | 1 << CONN_FREE,
	[CONN_EXCHANGE] = 1 << CONN_HEAD | 1 << CONN_DISCARD | 1 << CONN_FREE,
	[CONN_DISCARD] = 1 << CONN_FREE,
	[CONN_LISTING] = 1 << CONN_HEAD | 1 << CONN_FREE,
};

int conn_table_init(struct conn_table *table, uint32_t serve_max, uint32_t reserve)
{
	assert(serve_max > 0);
	*table = (struct conn_table){.serve_max = serve_max, .count_max = serve_max + reserve};
	table->conns = calloc(table->count_max, sizeof(struct conn)); // COLD: at start
	if (!table->conns)
		return -ENOMEM;
	for (uint32_t i = table->count_max; i-- > 0;) {
		table->conns[i].idle_next = table->free;
		table->free = &table->conns[i];
	}
	table->idle.idle_next = table->idle.idle_previous = &table->idle;
	table->exchanging.exchange_next = table->exchanging.exchange_previous = &table->exchanging;
	return 0;
}

void conn_table_fini(struct conn_table *table)
{
	free(table->conns);
	table->conns = NULL;
}

struct conn *conn_take(struct conn_table *table, struct stream *stream)
{
	struct conn *conn = table->free;
	if (!conn)
		return NULL;
	assert(conn->state == CONN_FREE);
	table->free = conn->idle_next;
	table->count++;
	*conn = (struct conn){.stream = stream,
		.generation = conn_renew(conn),
		.is_resumed = conn->is_resumed}; // the list has it still
	conn_set_state(conn, CONN_HEAD);
	return conn;
}

void conn_give(struct conn_table *table, struct conn *conn, struct buffers *buffers)
{
	assert(!conn->deadline.next);
	conn_set_idle(table, conn, false);
	conn_set_exchanging(table, conn, false);
	if (conn->buffer)
		buffers_give(buffers, conn->buffer);
	conn_drop_extra(conn, buffers);
	conn->buffer = NULL;
	conn->stream = NULL;
	conn->exchange = NULL;
	conn_set_state(conn, CONN_FREE);
	conn->idle_next = table->free;
	table->free = conn;
	table->count--;
}

void conn_set_state(struct conn *conn, enum conn_state to)
{
	assert(conn_next[conn->state] & (1u << to));
	conn->state = to;
}

void conn_set_idle(struct conn_table *table, struct conn *conn, bool idle)
{
	if (conn->is_idle == idle)
		return;
	conn->is_idle = idle;
	if (idle) {
		conn->idle_previous = table->idle.idle_previous;
		conn->idle_next = &table->idle;
		conn->idle_previous->idle_next = conn;
		table->idle.idle_previous = conn;
		table->idle_count++;
	} else {
		conn->idle_previous->idle_next = conn->idle_next;
		conn->idle_next->idle_previous = conn->idle_previous;
		conn->idle_next = conn->idle_previous = NULL;
		table->idle_count--;
	}
}

void conn_set_exchanging(struct conn_table *table, struct conn *conn, bool exchanging)
{
	if ((conn->exchange_next != NULL) == exchanging)
		return;
	if (exchanging) {
		conn->exchange_previous = table->exchanging.exchange_previous;
		conn->exchange_next = &table->exchanging;
		conn->exchange_previous->exchange_next = conn;
		table->exchanging.exchange_previous = conn;
	} else {
		conn->exchange_previous->exchange_next = conn->exchange_next;
		conn->exchange_next->exchange_previous = conn->exchange_previous;
		conn->exchange_next = conn->exchange_previous = NULL;
	}
}

uint32_t conn_renew(struct conn *conn)
{
	if (++conn->generation == 0)
		conn->generation = 1;
	return conn->generation;
}

struct conn *conn_longest_idle(const struct conn_table *table)
{
	return table->idle.idle_next == &table->idle ? NULL : table->idle.idle_next;
}

uint32_t conn_index(const struct conn_table *table, const struct conn *conn)
{
	return (uint32_t)(conn - table->conns);
}

struct conn *conn_of(const struct conn_table *table, uint32_t index, uint32_t generation)
{
	assert(index < table->count_max);
	struct conn *conn = &table->conns[index];
	return conn->state != CONN_FREE && conn->generation == generation ? conn : NULL;
}

bool conn_keep(struct conn *conn, struct buffers *buffers, uint32_t buffer_bytes, struct span data)
{
	if (conn->buffered + data.len > buffer_bytes)
		return false;
	if (!conn->buffer)
		conn->buffer = buffers_take(buffers);
	if (!conn->buffer)
		return false;
	memcpy(conn->buffer + conn->buffered, data.at, data.len);
	conn->buffered += (uint32_t)data.len;
	return true;
}

void conn_drop(struct conn *conn, struct buffers *buffers, uint32_t bytes)
{
	assert(bytes <= conn->buffered);
	conn->buffered -= bytes;
	conn->scanned = 0;
	if (conn->buffered > 0) {
		memmove(conn->buffer, conn->buffer + bytes, conn->buffered);
	} else if (conn->buffer) {
		buffers_give(buffers, conn->buffer);
		conn->buffer = NULL;
	}
}

void conn_drop_extra(struct conn *conn, struct buffers *buffers)
{
	if (conn->extra)
		buffers_give(buffers, conn->extra);
	conn->extra = NULL;
	conn->extra_bytes = 0;
}
