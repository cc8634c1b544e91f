// Back-pressure is passed on, not absorbed: the driver queues at most queue_high and what one event
// brings, then the other side is no longer read. While the connection is being made there is no
// queue yet; the client is not read, and what had arrived already waits in buffers.

#include "dataplane/origin/relay.h"

#include "drivers/tally.h"

#include <assert.h>

// While the client is not read its body's clock stands still: the origin is slow, not the client.
static void pause_client(struct exchange *x)
{
	stream_pause(x->client_driver, x->client); // again, if somebody has resumed it meanwhile
	if (x->client_is_paused)
		return;
	x->client_is_paused = true;
	x->paused_since_us = x->origin->now_us;
}

static void resume_client(struct exchange *x)
{
	if (!x->client_is_paused)
		return;
	x->client_is_paused = false;
	if (x->body_since_us)
		x->body_since_us += x->origin->now_us - x->paused_since_us;
	stream_resume(x->client_driver, x->client);
	relay_schedule(x);
}

void relay_body_ended(struct exchange *x)
{
	assert(x->ask.has_ended);
	resume_client(x);
}

// What comes before the connection is open.
static bool store(struct exchange *x, struct span part)
{
	struct buffer_pool *pool = &x->origin->buffers;
	struct buffer *last = x->asks;
	unsigned count = 1;
	for (; last->next; last = last->next)
		count++;
	for (;;) {
		part = span_from(part, buffer_append(pool, last, part));
		if (part.len == 0)
			return true;
		if (count++ == RELAY_EARLY_BUFFERS_MAX || !(last->next = buffer_take(pool)))
			return false;
		last = last->next;
	}
}

// The client need not be read when nothing can be sent: pause it, unless its body is over and the
// stream is the worker's.
static void pass_pressure_to_client(struct exchange *x)
{
	if (!x->ask.has_ended || x->state == RELAY_TUNNEL)
		pause_client(x);
}

bool relay_to_origin(struct exchange *x, const struct span *parts, unsigned count)
{
	struct origin *origin = x->origin;
	if (x->state == RELAY_CONNECTING) {
		for (unsigned i = 0; i < count; i++) {
			if (store(x, parts[i]))
				continue;
			tally_add(&origin->counters.buffer_none, 1);
			return relay_fail(x, 503);
		}
		pass_pressure_to_client(x);
		return true;
	}
	size_t bytes = 0;
	for (unsigned i = 0; i < count; i++)
		bytes += parts[i].len;
	struct stream_driver *driver = x->connection->driver;
	struct stream *stream = x->connection->stream;
	if (stream_write(driver, stream, parts, count) < bytes) {
		tally_add(&origin->counters.origin_full, 1);
		return relay_fail(x, 502);
	}
	if (stream_queued(driver, stream) > driver->queue_high)
		pass_pressure_to_client(x);
	relay_touch(x);
	return true;
}

bool relay_opened(struct exchange *x)
{
	struct origin *origin = x->origin;
	if (!relay_send_asks(x)) {
		tally_add(&origin->counters.origin_full, 1);
		return relay_fail(x, 502);
	}
	relay_set_state(x, RELAY_ASKED);
	relay_touch(x);
	struct stream_driver *driver = x->connection->driver;
	if (stream_queued(driver, x->connection->stream) <= driver->queue_high)
		resume_client(x);
	return true;
}

bool relay_to_client(struct exchange *x, const struct span *parts, unsigned count)
{
	struct origin *origin = x->origin;
	size_t bytes = 0;
	for (unsigned i = 0; i < count; i++)
		bytes += parts[i].len;
	if (stream_write(x->client_driver, x->client, parts, count) < bytes) {
		tally_add(&origin->counters.client_full, 1);
		return relay_fail(x, 502);
	}
	struct stream *stream = x->connection->stream;
	if (!x->origin_is_paused && stream &&
		stream_queued(x->client_driver, x->client) > x->client_driver->queue_high) {
		x->origin_is_paused = true;
		stream_pause(x->connection->driver, stream);
	}
	return true;
}

void relay_origin_is_writable(struct exchange *x)
{
	if (x->state == RELAY_CONNECTING)
		return;
	resume_client(x);
	relay_touch(x);
}

void relay_client_is_writable(struct exchange *x)
{
	if (!x->origin_is_paused)
		return;
	x->origin_is_paused = false;
	stream_resume(x->connection->driver, x->connection->stream);
	relay_touch(x);
}
