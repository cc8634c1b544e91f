// Creation from the plan, the table, the turn, and the way from an event to its exchange.

#include "dataplane/origin/origin.h"

#include "dataplane/origin/answer.h"
#include "dataplane/origin/answer_head.h"
#include "dataplane/origin/relay.h"
#include "dataplane/origin/request_head.h"
#include "drivers/tally.h"

#include <assert.h>
#include <stdlib.h>

#define SECOND_US 1000000u

void origin_plan_init(struct origin_plan *plan, uint32_t exchanges_max, uint32_t servers_max)
{
	*plan = (struct origin_plan){
		.exchanges_max = exchanges_max,
		.servers_max = servers_max,
		.idle_max = 32,
		.buffers_max = exchanges_max + exchanges_max / 4 + 16,
		.request_head_bytes = 16384,
		.answer = {.line_bytes = 4096, .head_bytes = 32768, .fields = HTTP_FIELDS_MAX},
		.connect_us = 5 * SECOND_US,
		.answer_us = 60 * SECOND_US,
		.idle_us = 4 * SECOND_US,
		.faults_max = 3,
		.aside_us = 1 * SECOND_US,
		.tunnel_us = 600 * SECOND_US,
		.late_us = 30 * SECOND_US,
		.body_us = 600 * SECOND_US,
		.body_grace_us = 10 * SECOND_US,
		.body_rate = 512,
	};
}

static uint32_t max_u32(uint32_t a, uint32_t b)
{
	return a > b ? a : b;
}

// A buffer holds any request's head as it leaves, and an answer's up to one byte beyond the limit.
static uint32_t buffer_bytes(const struct origin_plan *plan)
{
	return max_u32(
		plan->request_head_bytes + REQUEST_HEAD_ADDED_MAX, plan->answer.head_bytes + 1);
}

static size_t scratch_bytes(const struct origin_plan *plan)
{
	return plan->answer.head_bytes + ANSWER_HEAD_ADDED_MAX;
}

size_t origin_plan_bytes(const struct origin_plan *plan)
{
	return sizeof(struct origin) + scratch_bytes(plan) +
	       buffer_pool_bytes(plan->buffers_max, buffer_bytes(plan)) +
	       plan->exchanges_max * (sizeof(struct exchange) + sizeof(struct deadline *)) +
	       plan->exchanges_max * (sizeof(struct connection) + sizeof(struct deadline *)) +
	       plan->servers_max * (sizeof(struct server) + sizeof(struct server *));
}

static void check(const struct origin_plan *plan)
{
	assert(plan->exchanges_max > 0);
	assert(plan->servers_max > 0);
	assert(plan->buffers_max > 0);
	assert(plan->body_rate > 0);
	assert(plan->answer.head_bytes <= HTTP_HEAD_BYTES_MAX);
	assert(plan->answer.fields <= HTTP_FIELDS_MAX);
}

struct origin *origin_create(const struct origin_plan *plan, struct stream_driver *driver,
	struct stream_driver *tls, const struct exchange_calls *calls)
{
	check(plan);
	struct origin *o = calloc(1, sizeof(*o)); // COLD: at start
	if (!o)
		return NULL;
	o->plan = *plan;
	o->connections =
		(struct connection_pool){.driver = driver, .tls = tls, .counters = &o->counters};
	o->calls = calls;
	o->limits = (struct origin_table_limits){.connect_us = plan->connect_us,
		.answer_us = plan->answer_us,
		.idle_us = plan->idle_us,
		.idle_max = plan->idle_max,
		.faults_max = plan->faults_max,
		.aside_us = plan->aside_us};
	o->body_kib_us = 1024ull * SECOND_US / plan->body_rate;
	o->uncut_count = plan->exchanges_max;
	o->scratch_bytes = scratch_bytes(plan);
	o->scratch = malloc(o->scratch_bytes); // COLD: at start
	o->exchanges = calloc(plan->exchanges_max, sizeof(*o->exchanges)); // COLD: at start
	int ret = o->scratch && o->exchanges ? 0 : -1;
	ret |= server_set_init(&o->servers, plan->servers_max);
	ret |= connection_pool_init(&o->connections, plan->exchanges_max, plan->idle_max);
	ret |= buffer_pool_init(&o->buffers, plan->buffers_max, buffer_bytes(plan));
	ret |= deadline_heap_init(&o->deadlines, plan->exchanges_max);
	if (ret == 0)
		return o;
	origin_destroy(o);
	return NULL;
}

void origin_destroy(struct origin *o)
{
	if (!o)
		return;
	assert(o->exchange_count == 0);
	for (uint32_t i = 0; o->servers.items && i < o->servers.max; i++)
		if (o->servers.items[i].id)
			connection_close_kept(&o->connections, &o->servers.items[i]);
	server_set_fini(&o->servers);
	connection_pool_fini(&o->connections);
	buffer_pool_fini(&o->buffers);
	deadline_heap_fini(&o->deadlines);
	free(o->exchanges);
	free(o->scratch);
	free(o);
}

void origin_set_table(struct origin *o, const struct origin_table *table)
{
	server_set_unlist(&o->servers, table);
	for (uint32_t i = 0; i < o->servers.max; i++) {
		struct server *server = &o->servers.items[i];
		if (server->id && !server->is_listed)
			connection_close_kept(&o->connections, server);
	}
	tally_add(&o->counters.servers_full, server_set_list(&o->servers, table));
}

void origin_tick(struct origin *o, uint64_t now_us)
{
	assert(now_us > 0);
	assert(now_us >= o->now_us);
	o->now_us = now_us;
	o->turn++;
	for (int n = 0; n < ORIGIN_TICK_MAX; n++) {
		struct deadline *first = deadline_first(&o->deadlines);
		if (!first || first->at_us > now_us)
			break;
		static_assert(offsetof(struct exchange, wake) == 0, "found by its deadline");
		relay_expire((struct exchange *)first);
	}
	for (int n = 0; n < ORIGIN_TICK_MAX; n++) {
		struct deadline *first = deadline_first(&o->connections.expiries);
		if (!first || first->at_us > now_us)
			break;
		static_assert(offsetof(struct connection, expiry) == 0, "likewise");
		tally_add(&o->counters.kept_expired, 1);
		connection_close(&o->connections, (struct connection *)first, false);
	}
}

uint64_t origin_due_us(const struct origin *o)
{
	const struct deadline *exchange = deadline_first(&o->deadlines);
	const struct deadline *kept = deadline_first(&o->connections.expiries);
	uint64_t exchange_us = exchange ? exchange->at_us : UINT64_MAX;
	uint64_t kept_us = kept ? kept->at_us : UINT64_MAX;
	return exchange_us < kept_us ? exchange_us : kept_us;
}

// A kept connection ends, or says something that nobody asked for.
static void kept_event(
	struct origin *o, struct connection *connection, const struct stream_event *event)
{
	if (event->kind == STREAM_OPENED || event->kind == STREAM_WRITABLE)
		return;
	if (event->kind == STREAM_CLOSED)
		connection->stream = NULL;
	if (event->kind == STREAM_DATA)
		tally_add(&o->counters.kept_spoke, 1);
	else
		tally_add(&o->counters.kept_closed, 1);
	connection_close(&o->connections, connection, event->kind == STREAM_DATA);
}

void origin_event(struct origin *o, const struct stream_event *event)
{
	if (event->kind == STREAM_NONE)
		return;
	struct connection *connection = event->stream->user;
	if (connection->exchange)
		answer_event(connection->exchange, event);
	else
		kept_event(o, connection, event);
}

static struct origin_server_stat stat_of(const struct server *s, uint64_t id, uint64_t now_us)
{
	uint64_t until_us = atomic_load_explicit(&s->aside_until_us, memory_order_relaxed);
	return (struct origin_server_stat){.id = id,
		.exchanges = atomic_load_explicit(&s->exchanges, memory_order_relaxed),
		.kept = atomic_load_explicit(&s->kept_count, memory_order_relaxed),
		.aside_us = until_us > now_us ? (uint32_t)(until_us - now_us) : 0,
		.tls_failures = atomic_load_explicit(&s->peer.failures, memory_order_relaxed),
		.tls_fault = atomic_load_explicit(&s->peer.fault, memory_order_relaxed)};
}

uint32_t origin_server_stats(const struct origin *o, uint64_t now_us,
	struct origin_server_stat *stats, uint32_t stats_max)
{
	uint32_t count = 0;
	for (uint32_t i = 0; i < o->servers.max && count < stats_max; i++) {
		const struct server *s = &o->servers.items[i];
		uint64_t id = atomic_load_explicit(&s->id, memory_order_acquire);
		if (id && atomic_load_explicit(&s->is_listed, memory_order_relaxed))
			stats[count++] = stat_of(s, id, now_us);
	}
	return count;
}

bool origin_server_stat(const struct origin *o, uint32_t index, uint64_t id, uint64_t now_us,
	struct origin_server_stat *stat)
{
	if (index >= o->servers.max)
		return false;
	const struct server *s =
		atomic_load_explicit(&o->servers.listed[index], memory_order_acquire);
	if (!s || atomic_load_explicit(&s->id, memory_order_acquire) != id)
		return false;
	*stat = stat_of(s, id, now_us);
	return true;
}

const struct origin_counters *origin_counters(const struct origin *o)
{
	return &o->counters;
}

uint32_t origin_exchange_count(const struct origin *o)
{
	return o->exchange_count;
}
