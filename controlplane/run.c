// The process: start, loop, drain, stop.
//
// Start has one order, and each step needs the ones before it: the state directory is locked before
// anything is read from it, sockets are opened before privileges are dropped, privileges are
// dropped before the first byte from outside is read (names of origins, claims, admin commands come
// after), the store is loaded before workers run, and the line "ready" is logged when a visitor
// would be answered.

#include "controlplane/run.h"

#include "controlplane/admin/admin.h"
#include "controlplane/appliance/appliance.h"
#include "controlplane/bill.h"
#include "controlplane/certificates.h"
#include "controlplane/codes/codes.h"
#include "controlplane/codes/codes_lists.h"
#include "controlplane/codes/moves.h"
#include "controlplane/commands.h"
#include "controlplane/doors.h"
#include "controlplane/engine.h"
#include "controlplane/folders.h"
#include "controlplane/listeners.h"
#include "controlplane/log.h"
#include "controlplane/process.h"
#include "controlplane/publish.h"
#include "controlplane/reload.h"
#include "controlplane/rooms.h"
#include "controlplane/starting.h"
#include "controlplane/store/store_sqlite.h"
#include "controlplane/trusts.h"
#include "controlplane/turn.h"
#include "dataplane/guard.h"
#include "drivers/proxy/proxy.h"
#include "drivers/sockets/sockets.h"

#include <rte_rcu_qsbr.h>

#include <assert.h>
#include <errno.h>
#include <inttypes.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <sys/eventfd.h>
#include <time.h>
#include <unistd.h>

#define LISTS_WAIT_US 2000000u // at a start, for the seeds of those who gather
#define ORIGIN_IDLE_MAX 4096u // connections kept to one server, whatever origin.idle_max says
#define FILES_MORE 192u // store, log, names, admin clients
#define PARKED_MAX 3000u // of them with a request behind; fewer than a ring takes

static int start(struct control *c, struct listeners *listeners);
// Whoever comes in the first moments is not to find closed what should be open: seeds are saved and
// lists opened before there are workers. A store that takes long is not waited for.
static void open_lists(struct control *c)
{
	const struct timespec pause = {.tv_nsec = 1000000};
	const uint64_t until_us = clock_monotonic_us() + LISTS_WAIT_US;
	for (uint64_t now_us; (now_us = clock_monotonic_us()) < until_us; nanosleep(&pause, NULL)) {
		const uint64_t now_ms = clock_at(&c->clock, now_us);
		doors_turn(c, now_ms);
		c->engine->turn(c, NULL, 0, now_ms);
		publish_collect(&c->words);
		if (!draws_is_late(c->draws))
			return;
	}
}

static int start_as_user(struct control *c, struct listeners *listeners);
static void stop(struct control *c);
static void drain_step(struct control *c);

int run(const char *config_path, struct config *config)
{
	static struct control control;
	static struct listeners listeners;
	struct control *c = &control;
	c->config_path = config_path;
	c->config = c->started = config;
	c->engine = &engine_alone;
	c->wake_fd = -1;
	reload_log_level(config);
	int ret = start(c, &listeners);
	if (ret == 0) {
		log_info("ready: %u workers, %u rooms, cluster time %" PRIu64 " ms",
			c->worker_count, c->room_count, clock_now_ms(&c->clock));
		event_base_dispatch(c->base);
		log_info("stopped");
	}
	listeners_close(&listeners);
	stop(c);
	return ret < 0 ? 1 : 0;
}

static void raise_files(const struct control *c)
{
	uint64_t wanted = listeners_descriptors(c->config, c->worker_count) + FILES_MORE;
	uint64_t limit = process_raise_files(wanted);
	if (limit < wanted)
		log_warning("%" PRIu64 " descriptors may be needed, %" PRIu64
			    " are allowed: raise the limit (LimitNOFILE)",
			wanted, limit);
}

static int start_ports(struct control *c, const struct config_machine *machine)
{
	struct process_eal eal;
	ports_eal(c->config, machine, c->worker_count, &eal);
	int ret = process_init_eal(&eal);
	if (ret < 0) {
		log_error("DPDK's EAL does not start with %" PRIu64 " MB%s: %s",
			process_eal_bytes(&eal) >> 20, eal.has_hugepages ? " in hugepages" : "",
			strerror(-ret));
		return ret;
	}
	if (c->config->driver == CONFIG_DRIVER_SOCKETS)
		return 0;
	return ports_open(c->config, c->worker_count, &c->ports);
}

// Until privileges are dropped.
static int start(struct control *c, struct listeners *listeners)
{
	char error[STATE_ERROR_MAX];
	struct config_machine machine;
	bill_machine(&machine);
	c->worker_count = config_worker_count(c->config, &machine);
	assert(c->worker_count <= WORKER_COUNT_MAX);
	raise_files(c);
	signal(SIGPIPE, SIG_IGN);
	int ret = state_open(c->config->state, &c->state, error);
	if (ret < 0) {
		log_error("%s", error);
		return ret;
	}
	if ((ret = listeners_open(c->config, c->worker_count, listeners)) < 0)
		return ret;
	// Also while root: keys need not be readable by anybody else.
	ret = certificates_load(c->config, c->config, NULL, c->worker_count, &c->certificates);
	if (ret < 0)
		return ret;
	if ((ret = start_ports(c, &machine)) < 0)
		return ret;
	return start_as_user(c, listeners);
}

static int drop_privileges(struct control *c)
{
	const char *name = c->config->user ? c->config->user : "sluice";
	uid_t uid;
	gid_t gid;
	if (geteuid() != 0)
		return 0;
	int ret = process_user(name, &uid, &gid);
	if (ret < 0) {
		log_warning("there is no user %s: running as root; make one, or set `user`", name);
		return 0;
	}
	if ((ret = state_give(c->state, uid, gid)) < 0 || (ret = process_drop(uid, gid)) < 0)
		log_error("cannot become %s: %s", name, strerror(-ret));
	return ret;
}

static struct claims_plan claims_plan_of(const struct control *c)
{
	return (struct claims_plan){.rooms_max = ROOMS_AT_ONCE,
		.workers_max = c->worker_count,
		.ended_max = (uint32_t)c->config->ended_max};
}

static int open_store(struct control *c)
{
	char error[STORE_ERROR_MAX];
	struct claims_plan plan = claims_plan_of(c);
	struct store_sqlite_plan store = {.path = state_path(c->state, STATE_STORE),
		.mark_path = state_path(c->state, STATE_UNSAVED),
		.records_max = claims_records(&plan, reload_sessions_total(c))};
	int ret = store_sqlite_open(&store, &c->store, error);
	if (ret < 0)
		log_error("%s", error);
	return ret;
}

static void take_clock(void *context, const struct store_record *record)
{
	uint64_t *last_ms = context;
	if (record->clock.ms > *last_ms)
		*last_ms = record->clock.ms;
}

// In a cluster it stands where it stood, until the ledger says what time it is.
static int begin_clock(struct control *c)
{
	const bool is_alone = !appliance_is_wanted(c->config);
	uint64_t last_ms = place_file_clock(c->places);
	int ret = store_load(c->store, STORE_CLOCK, 1, take_clock, &last_ms);
	clock_init(&c->clock, last_ms, clock_monotonic_us(), is_alone ? clock_system_ms() : 0);
	if (is_alone && c->clock.behind_ms < -CLOCK_STEP_MS)
		log_warning("the system's clock is %" PRId64
			    " ms behind where cluster time had been",
			-c->clock.behind_ms);
	atomic_store(&c->words.clock_offset_ms, c->clock.offset_ms);
	atomic_store(&c->words.heartbeat_us, clock_monotonic_us());
	return ret;
}

static int open_places(struct control *c)
{
	uint32_t twice = 2 * (uint32_t)config_line_count(c->config);
	uint32_t lines = twice > BILL_LINES_MIN ? twice : BILL_LINES_MIN;
	const char *path = state_path(c->state, STATE_PLACES);
	int ret = place_file_open(path, lines, BILL_LINE_ENTRIES, &c->places);
	if (ret < 0)
		log_error("%s: %s", path, strerror(-ret));
	return ret;
}

// Tickets given back of all rooms, as many as a set may hold.
static uint32_t left_total(const struct control *c)
{
	uint64_t total = c->config->left_max * (config_line_count(c->config) + 1);
	return total < ENDED_MAX_MOST ? (uint32_t)total : ENDED_MAX_MOST;
}

static int open_words(struct control *c)
{
	size_t bytes = rte_rcu_qsbr_get_memsize(WORKER_COUNT_MAX);
	size_t ended = ended_bytes((uint32_t)c->config->ended_max);
	size_t left = ended_bytes(left_total(c));
	c->words.quiescent = aligned_alloc(64, (bytes + 63) / 64 * 64);
	c->ended_memory = aligned_alloc(64, (ended + 63) / 64 * 64);
	c->left_memory = aligned_alloc(64, (left + 63) / 64 * 64);
	c->guard_memory = aligned_alloc(64, guard_bytes());
	if (!c->words.quiescent || !c->ended_memory || !c->left_memory || !c->guard_memory)
		return -ENOMEM;
	rte_rcu_qsbr_init(c->words.quiescent, WORKER_COUNT_MAX);
	c->words.ended = ended_init(c->ended_memory, (uint32_t)c->config->ended_max);
	c->words.guard = guard_init(c->guard_memory, turn_seams.session_id(c));
	c->words.left = ended_init(c->left_memory, left_total(c));
	return 0;
}

static int restore_keys(struct control *c)
{
	const uint64_t now_ms = clock_now_ms(&c->clock);
	const uint64_t system_ms = clock_system_ms();
	const uint64_t now_s = (now_ms > system_ms ? now_ms : system_ms) / 1000;
	int ret = secrets_create(c->store, now_s, &c->secrets);
	if (ret < 0)
		return ret;
	return tickets_create(c->store, now_s, &c->tickets);
}

// Whoever comes meanwhile is told.
static int join(struct control *c, const struct listeners *listeners)
{
	struct starting *starting = NULL;
	int ret = appliance_create(c);
	if (ret == 0)
		ret = starting_create(c, listeners, appliance_awaits, &starting);
	if (ret == 0)
		ret = appliance_join(c);
	starting_destroy(starting);
	return ret;
}

// Everything else that was known when the last process ended.
static int restore(struct control *c)
{
	struct claims_plan plan = claims_plan_of(c);
	struct claims_seams seams = turn_seams;
	struct claims_sets sets = {c->words.ended, c->words.left};
	seams.ctx = c;
	rooms_give_back(c);
	int ret;
	if ((ret = codes_create(c->store, &c->codes)) < 0 ||
		(ret = moves_create(c->store, &c->moves)) < 0)
		return ret;
	c->claims = claims_create(&plan, c->store, &sets, &seams);
	if (!c->claims)
		return -ENOMEM;
	if ((ret = doors_create(c)) < 0)
		return ret;
	return rooms_set(c);
}

// What the last process knew, and in a cluster what the others know. Returns 0 or -errno, logged.
static int take_over(struct control *c, const struct listeners *listeners)
{
	int ret = restore_keys(c);
	if (ret == 0 && appliance_is_wanted(c->config) && (ret = join(c, listeners)) < 0)
		return ret;
	ret = ret < 0 ? ret : restore(c);
	if (ret == 0 && c->appliance)
		ret = appliance_settle(c);
	if (ret < 0)
		log_error("what the last process knew cannot be taken over: %s", strerror(-ret));
	return ret;
}

// A worker's share, rounded up: together they hold what is allowed.
static uint32_t share_of(uint64_t all, unsigned worker_count)
{
	return (uint32_t)((all + worker_count - 1) / worker_count);
}

static struct worker_plan worker_plan_of(const struct control *c, unsigned index)
{
	const struct config *config = c->config;
	unsigned cpus[CPU_SETSIZE];
	unsigned cpu_count = process_cpus(cpus, CPU_SETSIZE);
	struct worker_plan plan = {.index = index,
		.cpu = index < config->workers.count ? (unsigned)config->workers.at[index]
						     : cpus[(index + 1) % cpu_count],
		.connections = (uint32_t)(config->connections / c->worker_count),
		.connections_per_source = share_of(config->connections_per_source, c->worker_count),
		.parked_max = PARKED_MAX,
		.buffers = (uint32_t)config->buffers->per_worker,
		.buffer_bytes = (uint32_t)config->http->head_bytes + BILL_KEPT_BYTES,
		.limits = {.line_bytes = (uint32_t)config->http->line_bytes,
			.head_bytes = (uint32_t)config->http->head_bytes,
			.fields = (uint32_t)config->http->fields},
		.head_timeout_ms = (uint32_t)config->http->head_timeout_ms,
		.idle_timeout_ms = (uint32_t)config->http->idle_timeout_ms,
		.visitor_tls_max = share_of(config->tls_connections, c->worker_count),
		.visitor_handshakes = (uint32_t)config->tls_handshakes,
		.rings = c->rings[index],
		.control_wake = c->wake_fd};
	return plan;
}

// Times and limits of each origin come with the table; here are the bounds of all.
static void fill_origin_plan(
	const struct config *config, unsigned worker_count, struct origin_plan *plan)
{
	uint32_t exchanges = (uint32_t)(config->origin_connections / worker_count);
	origin_plan_init(plan, exchanges ? exchanges : 1, CONTROL_SERVERS_MAX);
	plan->idle_max = ORIGIN_IDLE_MAX;
	plan->request_head_bytes = (uint32_t)config->http->head_bytes;
	plan->body_us = config->http->body_timeout_ms * 1000;
	plan->body_grace_us = (uint32_t)(config->http->send_timeout_ms * 1000);
	plan->body_rate = config->http->rate_min ? (uint32_t)config->http->rate_min : 1;
}

// One by which visitors come; with `driver: dpdk` another to origins.
static int make_drivers(struct control *c, struct listeners *listeners, struct worker_plan *plan)
{
	struct stream_driver *sockets;
	int ret = listeners_driver(c->config, listeners, plan->index, c->worker_count, &sockets);
	if (ret < 0)
		return ret;
	if (c->config->driver == CONFIG_DRIVER_SOCKETS) {
		plan->driver = sockets;
	} else {
		plan->outer = sockets;
		plan->rest_us = (uint32_t)c->config->dpdk->idle_sleep_us;
		plan->refuses_when_draining = true; // the port is ours: docs/decisions/0013
		ret = ports_driver(&c->ports, plan->index, &plan->driver);
	}
	if (ret == 0)
		ret = listeners_proxy(c->config, c->worker_count, &plan->driver);
	if (ret < 0) {
		if (plan->driver)
			stream_destroy(plan->driver);
		if (plan->outer)
			stream_destroy(plan->outer);
	}
	return ret;
}

static int start_workers(struct control *c, struct listeners *listeners)
{
	for (unsigned i = 0; i < c->worker_count; i++) {
		int ret = rings_create(i, BILL_RING_LEN, &c->rings[i]);
		if (ret < 0)
			return ret;
		struct worker_plan plan = worker_plan_of(c, i);
		plan.words = &c->words;
		fill_origin_plan(c->config, c->worker_count, &plan.origin);
		plan.tls_max = plan.origin.exchanges_max; // no more than the driver connects
		if ((ret = make_drivers(c, listeners, &plan)) < 0)
			return ret;
		// Control begins to beat when all run; until then they must not take it for dead.
		atomic_store(&c->words.heartbeat_us, clock_monotonic_us());
		if ((ret = worker_start(&plan, &c->workers[i])) < 0) {
			log_error("worker %u does not start: %s", i, strerror(-ret));
			return ret;
		}
	}
	return 0;
}

static int set_tick(struct control *c)
{
	const struct timeval tick = {0, (c->is_quick ? CONTROL_QUICK_MS : CONTROL_TICK_MS) * 1000};
	return event_add(c->tick, &tick);
}

static void take_turn(struct control *c)
{
	turn(c);
	if (draws_is_busy(c->draws) == c->is_quick)
		return;
	c->is_quick = !c->is_quick;
	set_tick(c);
}

static void on_tick(evutil_socket_t fd, short what, void *context)
{
	(void)fd;
	(void)what;
	struct control *c = context;
	take_turn(c);
	if (c->drain_until_us)
		drain_step(c);
}

static void on_wake(evutil_socket_t fd, short what, void *context)
{
	uint64_t wakes;
	ssize_t got = read(fd, &wakes, sizeof(wakes));
	(void)got; // nothing to read: woken by control itself
	(void)what;
	take_turn(context);
}

static void on_signal(evutil_socket_t signal, short what, void *context)
{
	(void)what;
	struct control *c = context;
	if (signal != SIGHUP) {
		run_drain(c);
		return;
	}
	struct config_report report = {0};
	reload(c, &report, stderr);
	config_report_print(&report, stderr);
	config_report_fini(&report);
}

static void on_addresses(void *context)
{
	reload_snapshot(context);
}

static int start_events(struct control *c)
{
	static const int signals[] = {SIGTERM, SIGINT, SIGHUP};
	c->wake_fd = eventfd(0, EFD_NONBLOCK | EFD_CLOEXEC);
	if (c->wake_fd < 0)
		return -ENOMEM;
	c->tick = event_new(c->base, -1, EV_PERSIST, on_tick, c);
	c->wake = event_new(c->base, c->wake_fd, EV_READ | EV_PERSIST, on_wake, c);
	if (!c->tick || !c->wake || set_tick(c) < 0 || event_add(c->wake, NULL) < 0)
		return -ENOMEM;
	for (int i = 0; i < 3; i++) {
		c->signals[i] = evsignal_new(c->base, signals[i], on_signal, c);
		if (!c->signals[i] || event_add(c->signals[i], NULL) < 0)
			return -ENOMEM;
	}
	return resolve_create(c->base, on_addresses, c, &c->resolve);
}

static int start_as_user(struct control *c, struct listeners *listeners)
{
	int ret = open_store(c);
	if (ret < 0 || (ret = open_places(c)) < 0 || (ret = drop_privileges(c)) < 0)
		return ret;
	certificates_warn_unreadable(c->config);
	if ((ret = process_hide_memory()) < 0)
		return ret;
	c->base = event_base_new();
	if (!c->base)
		return -ENOMEM;
	if ((ret = open_words(c)) < 0 || (ret = begin_clock(c)) < 0)
		return ret;
	if ((ret = take_over(c, listeners)) < 0)
		return ret;
	if ((ret = folders_load(c->config, NULL, NULL, &c->folders)) < 0 ||
		(ret = codes_lists_load(c->config, NULL, &c->codes_lists)) < 0 ||
		(ret = start_events(c)) < 0)
		return ret;
	struct trusts *trusts;
	if ((ret = trusts_load(c->config, c->worker_count, &trusts)) < 0)
		return ret;
	resolve_set_config(c->resolve, c->config, trusts);
	reload_snapshot(c);
	// The lines' words say what can be granted before the first visitor asks.
	c->engine->turn(c, NULL, 0, clock_now_ms(&c->clock));
	open_lists(c);
	if ((ret = start_workers(c, listeners)) < 0)
		return ret;
	c->started_ms = clock_now_ms(&c->clock);
	return commands_create(c);
}

void run_drain(struct control *c)
{
	if (c->drain_until_us)
		return;
	log_info("draining for at most %" PRIu64 " ms", c->config->drain_ms);
	c->drain_until_us = clock_monotonic_us() + c->config->drain_ms * 1000;
	atomic_store(&c->words.draining, true);
	turn_wake_workers(c);
}

// Streams that the worker has closed and whose answers are still to be seen off. Of our own TCP
// these are those with anything unacknowledged: a peer that never ends its half is not waited for.
static uint32_t streams_unsent(const struct control *c, const struct worker *worker)
{
	const struct stream_driver *driver = proxy_inner(worker_driver(worker));
	if (c->started->driver != CONFIG_DRIVER_SOCKETS)
		return atomic_load(&net_tcp_stats(driver)->working);
	uint32_t open = atomic_load(&sockets_stats(driver)->accepted_open);
	uint32_t ours = worker_connections(worker);
	return open > ours ? open - ours : 0;
}

// What a worker still has to do: requests, and answers on connections that it has closed. At
// least one thing, until it knows that it is to drain.
static uint32_t work_left(const struct control *c, const struct worker *worker)
{
	if (!worker_is_draining(worker))
		return 1;
	return worker_busy(worker) + streams_unsent(c, worker);
}

// Leave when nothing is under way any more, or when time is up.
static void drain_step(struct control *c)
{
	uint32_t busy = 0;
	for (unsigned i = 0; i < c->worker_count; i++)
		busy += work_left(c, c->workers[i]);
	if (busy > 0 && clock_monotonic_us() < c->drain_until_us)
		return;
	if (c->appliance) {
		appliance_leave(c);
		if (!appliance_has_left(c))
			return;
	}
	if (busy > 0)
		log_warning("drain: %u requests were cut", busy);
	event_base_loopbreak(c->base);
}

static void stop_events(struct control *c)
{
	for (int i = 0; i < 3; i++)
		if (c->signals[i])
			event_free(c->signals[i]);
	if (c->tick)
		event_free(c->tick);
	if (c->wake)
		event_free(c->wake);
}

static void stop(struct control *c)
{
	stop_events(c); // no turn comes any more
	bool ran = c->workers[0];
	for (unsigned i = 0; i < c->worker_count; i++) {
		worker_stop(c->workers[i]);
		c->workers[i] = NULL;
	}
	if (ran)
		turn_last(c);
	ports_close(&c->ports);
	for (unsigned i = 0; i < c->worker_count; i++)
		rings_destroy(c->rings[i]);
	admin_destroy(c->admin);
	resolve_destroy(c->resolve);
	if (c->words.quiescent)
		publish_end(&c->words);
	draws_destroy(c->draws);
	appliance_destroy(c);
	rooms_destroy(c);
	claims_destroy(c->claims);
	secrets_destroy(c->secrets);
	tickets_destroy(c->tickets);
	codes_destroy(c->codes);
	moves_destroy(c->moves);
	codes_lists_free(c->codes_lists, NULL);
	certificates_free(c->certificates);
	store_close(c->store, clock_now_ms(&c->clock));
	place_file_close(c->places);
	folders_give(c->folders);
	if (c->base)
		event_base_free(c->base);
	if (c->wake_fd >= 0)
		close(c->wake_fd);
	free(c->words.quiescent);
	free(c->ended_memory);
	free(c->left_memory);
	free(c->guard_memory);
	state_close(c->state);
	if (c->config != c->started)
		config_destroy(c->config);
	config_destroy(c->started);
}
