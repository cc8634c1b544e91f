// The connection table of conn.h: arrays, and lists of their elements by index. What was used last
// is used first, so that no more memory is touched than was ever needed at once.

#include "dataplane/conn.h"

#include "dataplane/fresh.h"

#include <errno.h>
#include <string.h>

// Which moves are allowed: from each state, a bit per state.
static const uint8_t conn_moves[] = {
	[CONN_FREE] = 1 << CONN_HEAD,
	[CONN_HEAD] = 1 << CONN_PARKED | 1 << CONN_EXCHANGE | 1 << CONN_DISCARD |
		      1 << CONN_LISTING | 1 << CONN_FREE,
	[CONN_PARKED] = 1 << CONN_HEAD | 1 << CONN_FREE,
	[CONN_EXCHANGE] = 1 << CONN_HEAD | 1 << CONN_DISCARD | 1 << CONN_FREE,
	[CONN_DISCARD] = 1 << CONN_FREE,
	[CONN_LISTING] = 1 << CONN_HEAD | 1 << CONN_FREE,
};

static size_t conns_bytes(const struct conn_table *table)
{
	return (table->count_max + (size_t)CONN_LISTS) * sizeof(struct conn);
}

int conn_table_init(struct conn_table *table, const struct conn_plan *plan)
{
	assert(plan->serve_max > 0 && plan->errands > 0);
	*table = (struct conn_table){.serve_max = plan->serve_max,
		.count_max = plan->serve_max + plan->reserve,
		.errand_max = plan->errands,
		.kept_max = plan->buffer_bytes};
	table->sessions.next = table->sessions.previous = &table->sessions;
	table->conns = fresh_map(conns_bytes(table));
	table->errands = fresh_map(table->errand_max * sizeof(struct conn_errand));
	if (!table->conns || !table->errands)
		return -ENOMEM;
	for (uint32_t head = table->count_max; head < table->count_max + CONN_LISTS; head++)
		table->conns[head].next = table->conns[head].previous = head;
	const uint32_t bytes = (uint32_t)sizeof(struct conn_kept) + plan->buffer_bytes;
	return buffers_create(plan->buffers, bytes, &table->buffers);
}

void conn_table_fini(struct conn_table *table)
{
	fresh_unmap(table->conns, conns_bytes(table));
	fresh_unmap(table->errands, table->errand_max * sizeof(struct conn_errand));
	buffers_destroy(table->buffers);
	*table = (struct conn_table){0};
}

struct conn *conn_take(struct conn_table *table, struct stream *stream)
{
	if (!table->free && table->used == table->count_max)
		return NULL;
	struct conn *conn = &table->conns[table->free ? table->free - 1 : table->used++];
	assert(conn->state == CONN_FREE);
	table->free = conn->next; // 0 in one that is new
	table->count++;
	*conn = (struct conn){.stream = stream,
		.generation = conn_renew(conn),
		.deadline = {.slot = TIMERS_UNLINKED}};
	conn_set_state(conn, CONN_HEAD);
	return conn;
}

void conn_give(struct conn_table *table, struct conn *conn)
{
	assert(conn->deadline.slot == TIMERS_UNLINKED);
	conn_leave(table, conn, (enum conn_list)conn->list);
	conn_drop_kept(table, conn);
	conn_end_errand(table, conn);
	conn->stream = NULL;
	conn_set_state(conn, CONN_FREE);
	conn->next = table->free;
	table->free = conn_index(table, conn) + 1;
	table->count--;
}

void conn_set_state(struct conn *conn, enum conn_state to)
{
	assert(conn_moves[conn->state] & (1u << to));
	conn->state = to;
}

// A list is a ring of indices through its head.
static uint32_t head_of(const struct conn_table *table, enum conn_list list)
{
	return table->count_max + list;
}

static void unlink_conn(struct conn_table *table, struct conn *conn)
{
	table->conns[conn->previous].next = conn->next;
	table->conns[conn->next].previous = conn->previous;
}

void conn_enter(struct conn_table *table, struct conn *conn, enum conn_list list)
{
	assert(list != CONN_UNLISTED);
	if (conn->list == list)
		return;
	if (conn->list != CONN_UNLISTED)
		unlink_conn(table, conn);
	const uint32_t self = conn_index(table, conn), head = head_of(table, list);
	conn->list = list;
	conn->next = head;
	conn->previous = table->conns[head].previous;
	table->conns[conn->previous].next = self;
	table->conns[head].previous = self;
}

void conn_leave(struct conn_table *table, struct conn *conn, enum conn_list list)
{
	if (conn->list != list || list == CONN_UNLISTED)
		return;
	unlink_conn(table, conn);
	conn->list = CONN_UNLISTED;
}

struct conn *conn_first(const struct conn_table *table, enum conn_list list)
{
	return conn_next(table, &table->conns[head_of(table, list)]);
}

struct conn *conn_next(const struct conn_table *table, const struct conn *conn)
{
	return conn->next < table->count_max ? &table->conns[conn->next] : NULL;
}

uint32_t conn_renew(struct conn *conn)
{
	if (++conn->generation == 0)
		conn->generation = 1;
	return conn->generation;
}

struct conn *conn_of(const struct conn_table *table, uint32_t index, uint32_t generation)
{
	assert(index < table->count_max);
	struct conn *conn = &table->conns[index];
	return conn->state != CONN_FREE && conn->generation == generation ? conn : NULL;
}

static struct conn_kept *kept_at(const struct conn_table *table, uint32_t buffer)
{
	return (struct conn_kept *)buffers_at(table->buffers, buffer);
}

// The last buffer, or one more if that is full. NULL: there may be none, or is none left.
static struct conn_kept *kept_with_room(struct conn_table *table, struct conn *conn)
{
	uint32_t *link = &conn->kept;
	struct conn_kept *last = NULL;
	for (uint32_t i = 0; *link; i++) {
		last = kept_at(table, *link);
		if (!last->next && last->bytes < table->kept_max)
			return last;
		if (!last->next && i + 1 == CONN_KEPT_BUFFERS)
			return NULL;
		link = &last->next;
	}
	if (!(*link = buffers_take(table->buffers)))
		return NULL;
	last = kept_at(table, *link);
	*last = (struct conn_kept){0};
	return last;
}

static uint32_t kept_add(const struct conn_table *table, struct conn_kept *kept, struct span data)
{
	const uint32_t room = table->kept_max - kept->bytes;
	const uint32_t bytes = data.len < room ? (uint32_t)data.len : room;
	memcpy(kept->at + kept->bytes, data.at, bytes);
	kept->bytes += bytes;
	return bytes;
}

bool conn_keep(struct conn_table *table, struct conn *conn, struct span data)
{
	assert(data.len > 0);
	while (data.len > 0) {
		struct conn_kept *kept = kept_with_room(table, conn);
		if (!kept)
			return false;
		data = span_from(data, kept_add(table, kept, data));
	}
	return true;
}

static void kept_take(struct conn_kept *kept, uint32_t bytes)
{
	assert(bytes <= kept->bytes);
	kept->bytes -= bytes;
	memmove(kept->at, kept->at + bytes, kept->bytes);
}

static void kept_give(struct conn_table *table, uint32_t *link)
{
	const uint32_t buffer = *link;
	*link = kept_at(table, buffer)->next;
	buffers_give(table->buffers, buffer);
}

void conn_drop(struct conn_table *table, struct conn *conn, uint32_t bytes)
{
	if (!conn->kept) {
		assert(bytes == 0);
		return;
	}
	kept_take(kept_at(table, conn->kept), bytes);
	kept_at(table, conn->kept)->scanned = 0;
	for (uint32_t *link = &conn->kept; *link;) {
		struct conn_kept *kept = kept_at(table, *link);
		if (kept->next) {
			struct conn_kept *next = kept_at(table, kept->next);
			kept_take(
				next, kept_add(table, kept, (struct span){next->at, next->bytes}));
			if (next->bytes == 0)
				kept_give(table, &kept->next);
		}
		if (kept->bytes == 0)
			kept_give(table, link);
		else
			link = &kept->next;
	}
}

void conn_drop_kept(struct conn_table *table, struct conn *conn)
{
	while (conn->kept)
		kept_give(table, &conn->kept);
}

struct conn_errand *conn_begin_errand(struct conn_table *table, struct conn *conn)
{
	assert(!conn->errand);
	struct conn_errand *errand = table->free_errand;
	if (errand)
		table->free_errand = errand->next;
	else if (table->errands_used < table->errand_max)
		errand = &table->errands[table->errands_used++];
	else
		return NULL;
	*errand = (struct conn_errand){.conn = conn};
	conn->errand = (uint32_t)(errand - table->errands) + 1;
	return errand;
}

void conn_end_errand(struct conn_table *table, struct conn *conn)
{
	struct conn_errand *errand = conn_errand(table, conn);
	if (!errand)
		return;
	if (errand->next) {
		errand->previous->next = errand->next;
		errand->next->previous = errand->previous;
	}
	if (errand->extra)
		buffers_give(table->buffers, errand->extra);
	errand->conn = NULL;
	errand->next = table->free_errand;
	table->free_errand = errand;
	conn->errand = 0;
}

void conn_list_errand(struct conn_table *table, struct conn_errand *errand)
{
	assert(!errand->next);
	errand->previous = table->sessions.previous;
	errand->next = &table->sessions;
	errand->previous->next = errand;
	table->sessions.previous = errand;
}
