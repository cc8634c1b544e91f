// One turn of control: the claims of all workers, their answers, and what is due each second.

#include "controlplane/turn.h"

#include "controlplane/appliance/appliance.h"
#include "controlplane/doors.h"
#include "controlplane/engine.h"
#include "controlplane/lanes.h"
#include "controlplane/log.h"
#include "controlplane/publish.h"
#include "controlplane/reload.h"
#include "controlplane/rooms.h"
#include "dataplane/tls/fault.h"

#include <rte_rcu_qsbr.h>

#include <inttypes.h>
#include <string.h>
#include <sys/random.h>

#define STILL_US 1000000u // a worker whose turns stand still for so long is reported

static void each_second(struct control *c, uint64_t now_us, uint64_t now_ms);

// What refused claims of the called workers have published since the last turn.
static void take_refused(struct control *c, uint64_t now_ms)
{
	struct worker_refused refused[GATE_MAP_ROOMS_MAX];
	for (unsigned i = 0; i < c->worker_count; i++) {
		unsigned count = worker_take_refused(c->workers[i], refused);
		for (unsigned j = 0; j < count; j++)
			c->engine->refused(c, &refused[j], now_ms);
	}
}

static uint32_t drain_rings(struct control *c)
{
	const uint32_t most = c->engine->room(c);
	uint32_t count = 0;
	for (unsigned i = 0; i < c->worker_count && count < most; i++)
		count += rings_pop_claims(c->rings[i], &c->claims_buffer[count], most - count);
	return count;
}

// The file of places: the clock, and room for what comes.
static void keep_places(struct control *c, uint64_t now_ms)
{
	int error = place_file_turn(c->places, now_ms);
	if (error < 0 && error != c->places_error)
		log_warning("places cannot grow, slots get longer: %s", strerror(-error));
	c->places_error = error;
}

void turn(struct control *c)
{
	uint64_t now_us = clock_monotonic_us();
	uint64_t now_ms = clock_at(&c->clock, now_us);
	take_refused(c, now_ms);
	doors_turn(c, now_ms);
	uint32_t count = drain_rings(c);
	c->engine->turn(c, c->claims_buffer, count, now_ms);
	keep_places(c, now_ms);
	publish_collect(&c->words);
	if (now_us >= c->second_us + 1000000) {
		c->second_us = now_us;
		each_second(c, now_us, now_ms);
	}
	// After the store: a commit that takes long makes the heartbeat old, and workers hold.
	atomic_store_explicit(&c->words.heartbeat_us, clock_monotonic_us(), memory_order_relaxed);
	if (count == CLAIMS_TURN_MAX)
		event_active(c->wake, EV_READ, 0); // there may be more
}

void turn_last(struct control *c)
{
	uint32_t count;
	do {
		count = drain_rings(c);
		c->engine->turn(c, c->claims_buffer, count, clock_now_ms(&c->clock));
	} while (count > 0);
}

void turn_wake_workers(struct control *c)
{
	for (unsigned i = 0; i < c->worker_count; i++)
		if (c->workers[i])
			worker_wake(c->workers[i]);
}

// A worker is well if it makes turns; it makes some though nothing happens.
static bool watch_worker(struct control *c, unsigned index, uint64_t now_us)
{
	struct control_watch *watch = &c->watch[index];
	uint64_t turns = counters_get(worker_counters(c->workers[index]), COUNTER_turns);
	if (turns != watch->turns) {
		if (watch->stands_still)
			log_warning("worker %u goes on after %" PRIu64 " ms", index,
				(now_us - watch->since_us) / 1000);
		*watch = (struct control_watch){.turns = turns};
		return true;
	}
	if (watch->since_us == 0)
		watch->since_us = now_us;
	if (now_us < watch->since_us + STILL_US)
		return true;
	if (!watch->stands_still) {
		watch->stands_still = true;
		c->stalls_total++;
		log_error("worker %u stands still for %" PRIu64 " ms", index,
			(now_us - watch->since_us) / 1000);
	}
	return false;
}

static void watch_store(struct control *c, uint64_t now_ms)
{
	const struct store_status *status = store_poll(c->store, now_ms);
	if (status->is_unsaved && !c->was_unsaved)
		log_error("unsaved: the store cannot be written (%s); admitting from memory",
			status->error);
	if (!status->is_unsaved && c->was_unsaved)
		log_info("saved: the store has caught up");
	c->was_unsaved = status->is_unsaved;
}

static void watch_clock(struct control *c, uint64_t now_us)
{
	clock_slew(&c->clock, now_us, clock_system_ms());
	atomic_store_explicit(&c->words.clock_offset_ms, c->clock.offset_ms, memory_order_relaxed);
	int64_t behind_ms = c->clock.behind_ms;
	bool is_stepped = behind_ms > CLOCK_STEP_MS || behind_ms < -CLOCK_STEP_MS;
	if (is_stepped && !c->was_stepped)
		log_warning("the system's clock is %" PRId64
			    " ms from cluster time; following it by %d ms a second",
			behind_ms, CLOCK_SLEW_MS_PER_S);
	c->was_stepped = is_stepped;
}

static const struct origin_table_server *find_server(const struct origin_table *table, uint64_t id)
{
	for (uint32_t i = 0; i < table->server_count; i++)
		if (table->servers[i].id == id)
			return &table->servers[i];
	return NULL;
}

// Say why servers cannot be spoken to over TLS.
static void watch_origins(struct control *c, uint64_t now_us)
{
	static struct origin_server_stat stats[CONTROL_SERVERS_MAX];
	struct faults_due due[FAULTS_SERVERS_MAX];
	for (unsigned i = 0; i < c->worker_count; i++) {
		uint32_t count = origin_server_stats(
			worker_origin(c->workers[i]), now_us, stats, CONTROL_SERVERS_MAX);
		for (uint32_t j = 0; j < count; j++)
			faults_note(
				&c->faults, stats[j].id, stats[j].tls_failures, stats[j].tls_fault);
	}
	uint32_t count = faults_take(&c->faults, now_us, due);
	const struct origin_table *table = atomic_load(&c->words.current)->origins;
	for (uint32_t i = 0; i < count; i++) {
		const struct origin_table_server *server = find_server(table, due[i].id);
		if (server)
			log_warning("origin server %.*s: TLS: %s (%" PRIu64 " times)",
				(int)server->name.len, server->name.at, fault_text(due[i].fault),
				due[i].fresh);
	}
}

static void each_second(struct control *c, uint64_t now_us, uint64_t now_ms)
{
	bool is_well = true;
	for (unsigned i = 0; i < c->worker_count; i++)
		is_well &= watch_worker(c, i, now_us);
	atomic_store_explicit(&c->words.is_unhealthy, !is_well, memory_order_relaxed);
	if (c->appliance)
		appliance_second(c, now_ms); // which goes by the ledger's time
	else
		watch_clock(c, now_us);
	watch_store(c, now_ms);
	watch_origins(c, now_us);
	rooms_keep(c, now_ms);
	log_catch_up();
	bool has_changed = secrets_poll(c->secrets, now_ms / 1000);
	has_changed |= tickets_poll(c->tickets, now_ms / 1000);
	if (has_changed)
		reload_snapshot(c);
}

// A renewal that nobody waits for: the visitor's next request may come to any worker. One whose
// ring is full does without.
static void tell_others(struct control *c, uint32_t worker, const struct claim_answer *answer)
{
	for (unsigned i = 0; i < c->worker_count; i++)
		if (i != worker)
			rings_push_answer(c->rings[i], answer);
}

static uint32_t seam_answer(
	void *ctx, uint32_t worker, const struct claim_answer *answers, uint32_t count)
{
	struct control *c = ctx;
	uint32_t taken = 0;
	if (!c->workers[worker])
		return 0; // it has ended
	while (taken < count && rings_push_answer(c->rings[worker], &answers[taken])) {
		if (answers[taken].kind == CLAIM_RENEW && answers[taken].generation == 0)
			tell_others(c, worker, &answers[taken]);
		taken++;
	}
	worker_wake(c->workers[worker]);
	return taken;
}

// A worker that sleeps counts as quiescent, but the tunnels of the session that ended are its to
// close: wake it.
static uint64_t seam_barrier_begin(void *ctx)
{
	struct control *c = ctx;
	turn_wake_workers(c);
	return rte_rcu_qsbr_start(c->words.quiescent);
}

static bool seam_barrier_passed(void *ctx, uint64_t token)
{
	struct control *c = ctx;
	return rte_rcu_qsbr_check(c->words.quiescent, token, false) == 1;
}

static uint32_t seam_code(void *ctx, const struct claim *claim, uint64_t now_ms,
	struct claim_answer *answer, struct store_record *records)
{
	return lanes_claim(ctx, claim, now_ms, answer, records);
}

static uint64_t seam_session_id(void *ctx)
{
	(void)ctx;
	uint64_t id = 0;
	while (id == 0)
		if (getrandom(&id, sizeof(id), 0) != sizeof(id))
			id = 0;
	return id;
}

const struct claims_seams turn_seams = {.answer = seam_answer,
	.barrier_begin = seam_barrier_begin,
	.barrier_passed = seam_barrier_passed,
	.code = seam_code,
	.session_id = seam_session_id};
