// The client's side of an exchange: the worker's calls.

#include "dataplane/origin/exchange.h"

#include "dataplane/origin/relay.h"
#include "dataplane/origin/request_head.h"
#include "drivers/tally.h"

#include <assert.h>

static bool is_idempotent(enum http_method method)
{
	return method == HTTP_GET || method == HTTP_HEAD || method == HTTP_PUT ||
	       method == HTTP_DELETE || method == HTTP_OPTIONS; // RFC 9110 9.2.2
}

// What is to be remembered of the request; its head is gone after exchange_begin().
static void remember(struct exchange *x, const struct exchange_request *request)
{
	const struct http_head *head = request->head;
	const struct origin_table_origin *from =
		&x->origin->servers.table->origins[request->origin];
	x->user = request->user;
	x->client_driver = request->client_driver;
	x->client = request->client;
	x->session = request->session;
	x->ends_us = request->ends_us;
	x->origin_index = request->origin;
	x->origin_id = from->id;
	x->limits = from->limits ? *from->limits : x->origin->limits;
	x->method = head->method;
	x->client_minor = head->minor;
	x->client_keeps = head->keep_alive;
	x->may_upgrade = request_head_may_upgrade(head);
	body_begin(&x->ask, head->body, head->content_length, head->body);
	x->may_repeat = is_idempotent(head->method) && x->ask.has_ended;
	x->expects_continue = head->expect_continue;
	if (!x->ask.has_ended && !x->expects_continue)
		x->body_since_us = x->origin->now_us;
}

// Write the request's head into a buffer. Returns 0 or the status to refuse with.
static uint16_t write_head(struct exchange *x, const struct exchange_request *request)
{
	struct origin *origin = x->origin;
	x->asks = buffer_take(&origin->buffers);
	if (!x->asks) {
		tally_add(&origin->counters.buffer_none, 1);
		return 503;
	}
	x->asks->len = (uint32_t)request_head_write(
		x->asks->bytes, origin->buffers.bytes, request, x->limits.idle_max > 0);
	if (x->asks->len == 0) {
		tally_add(&origin->counters.request_too_large, 1);
		return 431;
	}
	return 0;
}

struct exchange *exchange_begin(
	struct origin *origin, const struct exchange_request *request, uint16_t *status)
{
	assert(request->head->method != HTTP_CONNECT && request->head->method != HTTP_TRACE);
	const struct origin_table *table = origin->servers.table;
	if (!table || request->origin >= table->origin_count) {
		tally_add(&origin->counters.server_none, 1);
		*status = 502;
		return NULL;
	}
	struct exchange *x = relay_take(origin);
	if (!x) {
		tally_add(&origin->counters.exchange_none, 1);
		*status = 503;
		return NULL;
	}
	remember(x, request);
	*status = write_head(x, request);
	if (*status == 0)
		*status = relay_ask(x);
	if (*status != 0) {
		relay_drop(x);
		return NULL;
	}
	tally_add(&origin->counters.exchanges, 1);
	return x;
}

static size_t tunnel_data(struct exchange *x, struct span in)
{
	relay_to_origin(x, &in, 1);
	return in.len;
}

size_t exchange_client_data(struct exchange *x, struct span in)
{
	if (x->state == RELAY_TUNNEL)
		return tunnel_data(x, in);
	size_t taken = 0;
	while (taken < in.len && !x->ask.has_ended) {
		struct body_step step;
		if (!x->body_since_us)
			x->body_since_us = x->origin->now_us;
		if (!body_step(&x->ask, span_from(in, taken), SPAN(""), &step)) {
			tally_add(&x->origin->counters.request_body_bad, 1);
			relay_fail(x, 400);
			return taken;
		}
		taken += step.consumed;
		x->ask_bytes += step.consumed;
		if (x->body_is_refused || step.count == 0)
			continue;
		if (!relay_to_origin(x, step.parts, step.count))
			return taken;
	}
	if (x->ask.has_ended)
		relay_body_ended(x);
	return taken;
}

void exchange_client_writable(struct exchange *x)
{
	relay_client_is_writable(x);
}

void exchange_client_eof(struct exchange *x)
{
	x->client_has_ended = true;
	if (x->state == RELAY_TUNNEL) {
		if (x->origin_has_ended)
			relay_close_tunnel(x);
		else
			stream_shut(x->connection->driver, x->connection->stream);
	} else if (!x->ask.has_ended) {
		tally_add(&x->origin->counters.request_body_cut, 1);
		relay_fail(x, 400);
	}
}

void exchange_client_closed(struct exchange *x)
{
	tally_add(&x->origin->counters.client_gone, 1);
	relay_drop(x);
}

void exchange_set_ends(struct exchange *x, uint64_t ends_us)
{
	x->ends_us = ends_us;
	relay_schedule(x);
}
