// The loop of a worker, and its start and end.
//
// A turn: take what the driver has · take control's answers · read heads, verify their tokens
// together, decide, act · pass the origin's bytes · let deadlines pass · push claims · report a
// quiescent state. Everything a turn does is bounded; the clock is read once, by the driver.
//
// A worker that has nothing to do sleeps in the driver and is offline for RCU meanwhile, so that
// control never waits for it.

#include "dataplane/worker.h"

#include "dataplane/burst.h"
#include "dataplane/client.h"
#include "dataplane/forward.h"
#include "dataplane/inside.h"
#include "dataplane/report.h"

#include <rte_cycles.h>
#include <rte_rcu_qsbr.h>

#include <assert.h>
#include <errno.h>
#include <pthread.h>
#include <sched.h>
#include <stdlib.h>
#include <string.h>

#define SLEEP_US_MAX \
	400000u // a worker makes turns though nothing happens: one that does not stands still

#define EVENTS_AHEAD 4 // events whose connection is fetched meanwhile

#define LINE_BYTES_TYPICAL 8192u // the default of http.line_max

static int create(struct worker *w);
static void destroy(struct worker *w);
static void *run(void *worker);
static void turn(struct worker *w);
static void close_all(struct worker *w);

int worker_start(const struct worker_plan *plan, struct worker **worker)
{
	assert(plan->index < WORKER_COUNT_MAX);
	assert(plan->buffer_bytes >= plan->limits.head_bytes);
	struct worker *w = aligned_alloc(64, (sizeof(*w) + 63) / 64 * 64); // COLD: at start
	if (!w) {
		stream_destroy(plan->driver);
		if (plan->outer)
			stream_destroy(plan->outer);
		return -ENOMEM;
	}
	memset(w, 0, sizeof(*w));
	w->plan = *plan;
	w->driver = plan->driver;
	w->outer = plan->outer ? plan->outer : plan->driver;
	int ret = create(w);
	if (ret < 0)
		goto fail;
	pthread_t thread;
	ret = -pthread_create(&thread, NULL, run, w);
	if (ret < 0)
		goto fail;
	w->thread = thread;
	*worker = w;
	return 0;
fail:
	destroy(w);
	return ret;
}

void worker_stop(struct worker *worker)
{
	if (!worker)
		return;
	atomic_store(&worker->shown.stop, true);
	stream_wake(worker->driver);
	atomic_store(&worker->shown.is_woken, true);
	pthread_join(worker->thread, NULL);
	destroy(worker);
}

void worker_wake(struct worker *worker)
{
	stream_wake(worker->driver);
}

const struct counters *worker_counters(const struct worker *worker)
{
	return &worker->shown.counters;
}

unsigned worker_cpu(const struct worker *worker)
{
	return worker->plan.cpu;
}

const struct stream_driver *worker_driver(const struct worker *worker)
{
	return worker->driver;
}

const struct stream_driver *worker_outer(const struct worker *worker)
{
	return worker->outer;
}

const struct stream_driver *worker_tls(const struct worker *worker)
{
	return worker->tls;
}

const struct stream_driver *worker_visitor_tls(const struct worker *worker)
{
	return worker->visitor_tls;
}

const struct origin *worker_origin(const struct worker *worker)
{
	return worker->origin;
}

uint32_t worker_connections(const struct worker *worker)
{
	return atomic_load_explicit(&worker->shown.connections, memory_order_relaxed);
}

uint32_t worker_busy(const struct worker *worker)
{
	return atomic_load_explicit(&worker->shown.busy, memory_order_relaxed);
}

bool worker_is_draining(const struct worker *worker)
{
	return atomic_load_explicit(&worker->shown.is_draining, memory_order_acquire);
}

size_t worker_connection_bytes(void)
{
	const uint32_t many = 1u << 20;
	return sizeof(struct conn) + (source_table_bytes(many) + many - 1) / many;
}

size_t worker_errand_bytes(void)
{
	return sizeof(struct conn_errand);
}

size_t worker_fixed_bytes(void)
{
	size_t item = sizeof(struct item) + CARRY_TOKENS_MAX * sizeof(struct mac_job) +
		      GATE_REQUEST_SCRATCH_BYTES(LINE_BYTES_TYPICAL);
	return sizeof(struct worker) + 2 * tls_fixed_bytes() + BURST_MAX * item + REPLY_BYTES_MAX +
	       WORKER_REPORTS_MAX * sizeof(struct claim) + recall_bytes() +
	       WORKER_RESERVE * worker_connection_bytes();
}

static int create_items(struct worker *w)
{
	size_t scratch = GATE_REQUEST_SCRATCH_BYTES(w->plan.limits.line_bytes);
	w->items = calloc(BURST_MAX, sizeof(struct item)); // COLD: at start
	w->jobs = calloc(BURST_MAX * CARRY_TOKENS_MAX, sizeof(struct mac_job)); // COLD: at start
	char *memory = malloc(BURST_MAX * scratch); // COLD: at start
	if (w->items)
		w->items[0].scratch = memory; // freed from there
	if (!w->items || !w->jobs || !memory)
		return -ENOMEM;
	for (unsigned i = 0; i < BURST_MAX; i++)
		w->items[i].scratch = memory + i * scratch;
	return 0;
}

static bool create_visitor_tls(struct worker *w)
{
	struct tls_plan plan = {.inner = w->driver,
		.worker = w->plan.index,
		.streams_max = w->plan.visitor_tls_max,
		.now_s = &w->now_s,
		.handshakes_per_s = w->plan.visitor_handshakes};
	w->visitor_tls = tls_create(&plan);
	return w->visitor_tls;
}

static void create_origin(struct worker *w)
{
	struct tls_plan plan = {
		.inner = w->outer, .worker = w->plan.index, .streams_max = w->plan.tls_max};
	w->tls = tls_create(&plan);
	if (w->tls)
		w->origin = origin_create(&w->plan.origin, w->outer, w->tls, &forward_calls);
}

// Everything the worker will ever hold. On failure destroy() undoes what was done.
static int create(struct worker *w)
{
	const struct worker_plan *plan = &w->plan;
	const struct conn_plan conns = {.serve_max = plan->connections,
		.reserve = WORKER_RESERVE,
		.errands = plan->origin.exchanges_max + 1, // one may be refused
		.buffers = plan->buffers,
		.buffer_bytes = plan->buffer_bytes};
	int ret = conn_table_init(&w->conns, &conns);
	if (ret < 0 || (ret = create_items(w)) < 0)
		return ret;
	if ((ret = random_create(&w->random)) < 0)
		return ret;
	if ((ret = mac_create(&w->mac)) < 0)
		return ret;
	w->reports = calloc(WORKER_REPORTS_MAX, sizeof(*w->reports)); // COLD: at start
	w->reply = malloc(REPLY_BYTES_MAX); // COLD: at start
	w->recall = recall_create();
	w->sources = source_create(
		w->conns.count_max, plan->connections_per_source, random_u64(w->random));
	create_origin(w);
	if (!create_visitor_tls(w) || !w->reports || !w->reply || !w->recall || !w->sources ||
		!w->origin)
		return -ENOMEM;
	for (unsigned i = 0; i <= TOKEN_PRINT_WORDS; i++)
		for (unsigned half = 0; half < 2; half++)
			w->print_key.words[i][half] = random_u64(w->random);
	for (unsigned i = 0; i < GATE_MAP_ROOMS_MAX; i++)
		atomic_store(&w->shown.refused[i].key, UINT64_MAX);
	return 0;
}

// What holds streams, from above.
static void destroy_streams(struct worker *w)
{
	origin_destroy(w->origin);
	if (w->tls)
		stream_destroy(w->tls);
	if (w->visitor_tls)
		stream_destroy(w->visitor_tls);
	if (w->outer && w->outer != w->driver)
		stream_destroy(w->outer);
	if (w->driver)
		stream_destroy(w->driver);
	w->origin = NULL;
	w->tls = w->visitor_tls = w->outer = w->driver = NULL;
}

static void destroy(struct worker *w)
{
	destroy_streams(w);
	mac_destroy(w->mac);
	random_destroy(w->random);
	source_destroy(w->sources);
	recall_destroy(w->recall);
	free(w->reply);
	free(w->reports);
	free(w->jobs);
	if (w->items)
		free(w->items[0].scratch);
	free(w->items);
	conn_table_fini(&w->conns);
	free(w);
}

// Pin the thread to its core. A core that is gone is no reason to fail: it then runs where it may.
static void pin(unsigned cpu)
{
	cpu_set_t set;
	CPU_ZERO(&set);
	CPU_SET(cpu, &set);
	pthread_setaffinity_np(pthread_self(), sizeof(set), &set);
}

// Nothing more is done for anybody: grants on their way to somebody go back.
static void close_all(struct worker *w)
{
	for (uint32_t i = 0; i < w->conns.used; i++)
		if (w->conns.conns[i].state != CONN_FREE)
			client_close(w, &w->conns.conns[i],
				w->conns.conns[i].state == CONN_EXCHANGE); // cut short
	while (report_answers(w))
		;
	report_flush(w);
}

static void *run(void *worker)
{
	struct worker *w = worker;
	pthread_setname_np(pthread_self(), "sluice-worker");
	pin(w->plan.cpu);
	struct rte_rcu_qsbr *quiescent = w->plan.words->quiescent;
	rte_rcu_qsbr_thread_register(quiescent, w->plan.index);
	rte_rcu_qsbr_thread_online(quiescent, w->plan.index);
	while (!atomic_load_explicit(&w->shown.stop, memory_order_relaxed))
		turn(w);
	stream_stop_accepting(w->driver);
	close_all(w);
	while (!atomic_load(&w->shown.is_woken))
		sched_yield(); // control still holds the driver
	// Here, since a ring is torn down at once only by its own thread: the port is free then.
	destroy_streams(w);
	rte_rcu_qsbr_thread_offline(quiescent, w->plan.index);
	rte_rcu_qsbr_thread_unregister(quiescent, w->plan.index);
	return NULL;
}

static uint32_t sleep_us(const struct worker *w)
{
	if (w->report_count > 0)
		return 1000; // the ring was full: try again soon
	uint64_t quiet_us = timers_quiet_us(&w->timers, w->now_us, SLEEP_US_MAX);
	uint64_t origin_us = origin_due_us(w->origin), tls_us = tls_due_us(w->visitor_tls);
	uint64_t due_us = origin_us < tls_us ? origin_us : tls_us;
	if (due_us <= w->now_us)
		return 0;
	if (due_us - w->now_us < quiet_us)
		quiet_us = due_us - w->now_us;
	return (uint32_t)quiet_us;
}

// Another snapshot than in the last turn.
static void go_over(struct worker *w)
{
	struct tls_service service = {w->snapshot->identities, &w->snapshot->ticket_keys};
	w->version = w->snapshot->version;
	origin_set_table(w->origin, w->snapshot->origins);
	tls_serve(w->visitor_tls, &service);
}

static void begin_drain(struct worker *w)
{
	w->is_draining = true;
	if (w->plan.refuses_when_draining)
		stream_stop_accepting(w->driver);
}

// What this turn goes by: time, snapshot, what control says.
static void look_around(struct worker *w)
{
	struct snapshot_words *words = w->plan.words;
	w->now_us = w->driver->now_us;
	int64_t offset_ms = atomic_load_explicit(&words->clock_offset_ms, memory_order_relaxed);
	uint64_t now_ms = (uint64_t)((int64_t)(w->now_us / 1000) + offset_ms);
	if (now_ms > w->now_ms)
		w->now_ms = now_ms;
	w->now_s = (uint32_t)(w->now_ms / 1000);
	uint64_t beat_us = atomic_load_explicit(&words->heartbeat_us, memory_order_relaxed);
	w->is_held = w->now_us > beat_us + SNAPSHOT_HOLD_US;
	if (!w->is_draining && atomic_load_explicit(&words->draining, memory_order_relaxed))
		begin_drain(w);
	w->snapshot = atomic_load_explicit(&words->current, memory_order_acquire);
	if (w->version != w->snapshot->version) // a new one may lie where an old one was
		go_over(w);
	if (!w->timers.first)
		timers_init(
			&w->timers, &w->conns.conns[0].deadline, sizeof(struct conn), w->now_us);
	if (w->date_s != w->now_s) {
		w->date_s = w->now_s;
		decide_date(w->now_s, w->date);
	}
}

// Origins' events; the worker's rest, if visitors have left it idle.
static void poll_outer(struct worker *w, int event_count)
{
	uint64_t now_us = w->driver->now_us;
	bool is_idle = event_count == 0 && w->driver->taken == 0;
	uint32_t rest_us = 0;
	if (is_idle && now_us > w->came_us + WORKER_REST_AFTER_US)
		rest_us = w->plan.rest_us;
	w->outer_count = stream_poll(w->outer, w->outer_events, EVENTS_MAX, rest_us);
	if (!is_idle || w->outer_count > 0)
		w->came_us = now_us;
	if (rest_us > 0)
		w->turn_began = rte_rdtsc();
}

static int take_events(struct worker *w)
{
	w->turn_began = rte_rdtsc();
	struct rte_rcu_qsbr *quiescent = w->plan.words->quiescent;
	bool may_sleep = w->outer == w->driver && w->timers.first;
	uint32_t wait_us = may_sleep ? sleep_us(w) : 0;
	rte_rcu_qsbr_thread_offline(quiescent, w->plan.index);
	int event_count = stream_poll(w->driver, w->events, EVENTS_MAX, wait_us);
	if (w->outer != w->driver) // `driver` polls, and never sleeps
		poll_outer(w, event_count);
	rte_rcu_qsbr_thread_online(quiescent, w->plan.index);
	return event_count;
}

// What control reads.
static void show(struct worker *w)
{
	uint32_t busy = w->parked_count + w->listing_count + origin_exchange_count(w->origin);
	inside_count(w, COUNTER_turns);
	atomic_store_explicit(&w->shown.connections, w->conns.count, memory_order_relaxed);
	atomic_store_explicit(&w->shown.busy, busy, memory_order_relaxed);
	atomic_store_explicit(&w->shown.is_draining, w->is_draining, memory_order_release);
}

// Look for exchanges to cut when there may be some.
static void cut_ended(struct worker *w)
{
	uint64_t version = ended_version(w->plan.words->ended);
	if (version == w->ended_version && w->snapshot->version == w->cut_version)
		return;
	w->ended_version = version;
	w->cut_version = w->snapshot->version;
	forward_cut_ended(w);
}

// Events of streams that carry TLS become events of the streams they carry, round by round.
static void pass_tls_events(struct worker *w, const struct stream_event *events, int event_count)
{
	int count;
	tls_take(w->tls, events, event_count);
	while ((count = stream_poll(w->tls, w->tls_events, TLS_EVENTS_MAX, 0)) > 0)
		for (int i = 0; i < count; i++)
			origin_event(w->origin, &w->tls_events[i]);
}

// Likewise visitors'. What a round has brought is acted on before the next one, which takes its
// place.
static void pass_visitor_tls_events(struct worker *w, int event_count)
{
	int count;
	tls_take(w->visitor_tls, w->events, event_count);
	while ((count = stream_poll(w->visitor_tls, w->tls_events, TLS_EVENTS_MAX, 0)) > 0) {
		for (int i = 0; i < count; i++)
			if (w->tls_events[i].kind != STREAM_NONE)
				client_event(w, &w->tls_events[i]);
		burst_run(w);
	}
}

static void pass_event(struct worker *w, const struct stream_event *event)
{
	if (event->kind == STREAM_NONE || tls_carries(w->tls, event->stream) ||
		tls_carries(w->visitor_tls, event->stream))
		return;
	if (event->stream->listener == STREAM_CONNECTED)
		origin_event(w->origin, event);
	else
		client_event(w, event);
}

// Have the connection, or the exchange, of an event brought into the caches; or where its source is
// counted, if it begins or ends.
static void fetch(const struct worker *w, const struct stream_event *event)
{
	if (event->kind == STREAM_NONE)
		return;
	if (event->kind == STREAM_OPENED)
		source_fetch(w->sources, event->stream->peer.ip);
	else
		__builtin_prefetch(event->stream->user);
	if (event->kind == STREAM_EOF)
		source_fetch(w->sources, event->stream->peer.ip);
}

static void pass_events(struct worker *w, int event_count)
{
	for (int i = 0; i < event_count; i++) {
		if (i + EVENTS_AHEAD < event_count)
			fetch(w, &w->events[i + EVENTS_AHEAD]);
		pass_event(w, &w->events[i]);
	}
	for (int i = 0; i < w->outer_count; i++)
		pass_event(w, &w->outer_events[i]);
	pass_visitor_tls_events(w, event_count);
	if (w->outer == w->driver)
		pass_tls_events(w, w->events, event_count);
	else
		pass_tls_events(w, w->outer_events, w->outer_count);
}

// What a turn cost that had something to do, for a driver that polls: then all of it is work.
static void count_cycles(struct worker *w)
{
	if (w->driver->taken == 0 && w->outer_count == 0)
		return;
	inside_count(w, COUNTER_busy_turns);
	counters_add(&w->shown.counters, COUNTER_busy_cycles, rte_rdtsc() - w->turn_began);
}

static void turn(struct worker *w)
{
	int event_count = take_events(w);
	look_around(w);
	cut_ended(w);
	origin_tick(w->origin, w->now_us);
	report_answers(w);
	pass_events(w, event_count);
	burst_run(w);
	client_deadlines(w);
	do // each round answers at least one kept request, and a buffer holds only so many
		burst_run(w);
	while (client_resumed(w));
	if (w->is_draining)
		client_close_idle(w);
	report_flush(w);
	show(w);
	count_cycles(w);
}
