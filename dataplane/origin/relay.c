// Whether a request may be asked again is one fact: `asks` still holds it. It is given back once it
// is sent, unless the request may be repeated (idempotent, no body) and no byte of an answer came.
// So a request is never sent twice by oversight: there is nothing left to send.
//
// How an exchange ends is decided here alone: its connection is kept or closed, its slot is free,
// and then, last of all, the worker hears of it.

#include "dataplane/origin/relay.h"

#include "drivers/tally.h"

#include <assert.h>

// From each state to which others.
static const uint8_t state_moves[] = {
	[RELAY_FREE] = 1 << RELAY_CONNECTING | 1 << RELAY_ASKED | 1 << RELAY_FREE,
	[RELAY_CONNECTING] = 1 << RELAY_CONNECTING | 1 << RELAY_ASKED | 1 << RELAY_FREE,
	[RELAY_ASKED] =
		1 << RELAY_CONNECTING | 1 << RELAY_ANSWERING | 1 << RELAY_TUNNEL | 1 << RELAY_FREE,
	[RELAY_ANSWERING] = 1 << RELAY_FREE,
	[RELAY_TUNNEL] = 1 << RELAY_FREE,
};

void relay_set_state(struct exchange *x, enum relay_state state)
{
	assert(state_moves[x->state] & 1u << state);
	x->state = state;
}

struct exchange *relay_take(struct origin *origin)
{
	struct exchange *x = origin->free;
	if (x)
		origin->free = x->next_free;
	else if (origin->uncut_count > 0)
		x = &origin->exchanges[--origin->uncut_count];
	else
		return NULL;
	origin->exchange_count++;
	*x = (struct exchange){.origin = origin, .serial = ++origin->serial};
	return x;
}

static void release_connection(struct exchange *x, bool keep, bool reset)
{
	struct connection *connection = x->connection;
	if (!connection)
		return;
	x->connection = NULL;
	connection->exchange = NULL;
	server_count(&connection->server->exchanges, -1);
	if (keep)
		connection_keep(&x->origin->connections, connection, &x->limits, x->origin->now_us);
	else
		connection_close(&x->origin->connections, connection, reset);
	x->origin_is_paused = false;
	x->origin_has_ended = false;
}

static void release(struct exchange *x)
{
	struct origin *origin = x->origin;
	assert(!x->connection);
	if (x->client_is_paused)
		stream_resume(x->client_driver, x->client);
	buffer_give(&origin->buffers, x->asks);
	buffer_give(&origin->buffers, x->answer_head);
	deadline_clear(&origin->deadlines, &x->wake);
	relay_set_state(x, RELAY_FREE);
	x->next_free = origin->free;
	origin->free = x;
	origin->exchange_count--;
}

void relay_drop(struct exchange *x)
{
	x->client_is_paused = false; // the client is gone, or has never been paused
	release_connection(x, false, true);
	release(x);
}

static bool end(struct exchange *x, enum exchange_outcome outcome, uint16_t status)
{
	const struct exchange_calls *calls = x->origin->calls;
	void *user = x->user;
	struct exchange_end how = {
		.outcome = outcome, .body_ended = x->ask.has_ended, .status = status};
	release_connection(x, false, outcome == EXCHANGE_BROKEN || outcome == EXCHANGE_FAILED);
	release(x);
	calls->ended(user, &how);
	return false;
}

bool relay_fail(struct exchange *x, uint16_t status)
{
	bool has_begun = x->state == RELAY_ANSWERING || x->state == RELAY_TUNNEL;
	return has_begun ? end(x, EXCHANGE_BROKEN, 0) : end(x, EXCHANGE_FAILED, status);
}

bool relay_finish(struct exchange *x, bool surplus)
{
	struct origin *origin = x->origin;
	struct stream_driver *driver = x->connection->driver;
	struct stream *stream = x->connection->stream;
	bool keep = x->origin_keeps && x->ask.has_ended && !surplus && !x->origin_has_ended &&
		    stream && stream_queued(driver, stream) == 0;
	if (keep && x->origin_is_paused)
		stream_resume(driver, stream);
	tally_add(&origin->counters.answer_surplus, surplus);
	release_connection(x, keep, false);
	if (!x->ask.has_ended)
		return end(x, EXCHANGE_LINGER, 0);
	return end(x, x->client_keeps && !x->client_has_ended ? EXCHANGE_KEPT : EXCHANGE_CLOSE, 0);
}

bool relay_close_tunnel(struct exchange *x)
{
	return end(x, EXCHANGE_CLOSE, 0);
}

// The origin of the request in the table of now, which may be another than it began with.
static const struct origin_table_origin *find_origin(const struct exchange *x)
{
	const struct origin_table *table = x->origin->servers.table;
	if (x->origin_index < table->origin_count &&
		table->origins[x->origin_index].id == x->origin_id)
		return &table->origins[x->origin_index];
	for (uint32_t i = 0; i < table->origin_count; i++)
		if (table->origins[i].id == x->origin_id)
			return &table->origins[i];
	return NULL;
}

bool relay_send_asks(struct exchange *x)
{
	struct origin *origin = x->origin;
	struct span parts[RELAY_EARLY_BUFFERS_MAX];
	unsigned count = 0;
	size_t bytes = 0;
	for (struct buffer *b = x->asks; b; b = b->next) {
		assert(count < RELAY_EARLY_BUFFERS_MAX);
		parts[count++] = (struct span){b->bytes, b->len};
		bytes += b->len;
	}
	struct connection *to = x->connection;
	size_t taken = stream_write(to->driver, to->stream, parts, count);
	x->asked_turn = origin->turn;
	if (taken > 0 && !x->may_repeat) {
		buffer_give(&origin->buffers, x->asks);
		x->asks = NULL;
	}
	return taken == bytes;
}

static void attach(struct exchange *x, struct connection *connection, enum relay_state state)
{
	x->connection = connection;
	connection->exchange = x;
	server_count(&connection->server->exchanges, 1);
	x->attempts++;
	relay_set_state(x, state);
}

uint16_t relay_ask(struct exchange *x)
{
	struct origin *origin = x->origin;
	const struct origin_table_origin *from = find_origin(x);
	while (from && x->asks && x->attempts < RELAY_ATTEMPTS_MAX) {
		struct server *server = server_choose(
			&origin->servers, from, x->session, origin->now_us, x->unreachable);
		if (!server)
			break;
		struct connection *kept =
			x->is_fresh_only ? NULL : connection_reuse(&origin->connections, server);
		if (!kept) {
			struct connection *made = connection_open(&origin->connections, server);
			if (!made)
				return 503;
			attach(x, made, RELAY_CONNECTING);
			relay_touch(x);
			return 0;
		}
		attach(x, kept, RELAY_ASKED);
		if (relay_send_asks(x)) {
			relay_touch(x);
			return 0;
		}
		release_connection(x, false, true);
		x->is_fresh_only = true;
	}
	tally_add(&origin->counters.server_none, x->attempts == 0);
	return 502;
}

void relay_blame(struct exchange *x, bool is_hard)
{
	struct origin *origin = x->origin;
	if (server_failed(x->connection->server, is_hard, &x->limits, origin->now_us))
		tally_add(&origin->counters.servers_aside, 1);
}

bool relay_lost(struct exchange *x, bool is_hard, uint16_t status)
{
	struct server *server = x->connection->server;
	bool was_kept = x->connection->is_reused;
	if (!was_kept)
		relay_blame(x, is_hard);
	release_connection(x, false, true);
	if (!x->asks || !(was_kept || is_hard))
		return relay_fail(x, status);
	x->is_fresh_only |= was_kept;
	if (is_hard)
		x->unreachable[x->attempts - 1] = server;
	if (relay_ask(x) != 0)
		return relay_fail(x, status);
	tally_add(&x->origin->counters.retries, 1);
	return true;
}
