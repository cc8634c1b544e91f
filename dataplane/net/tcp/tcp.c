// The engine: made and ended, its turn, and the calls of the worker.
//
// A burst passes in three rounds, so that memory comes while something else is done: hash all and
// fetch their buckets, look up all and fetch their connections, then deal with one after the other.
//
// Events are bounded by the worker's array. A segment is only taken if all that it may cause fits,
// and some places are left for tcp_due(), where the kept bytes of connections go that the worker
// reads again, and deadlines. What finds no place waits for the next turn on the list.

#include "dataplane/net/tcp/tcp.h"

#include "dataplane/fresh.h"
#include "dataplane/net/tcp/conn.h"
#include "dataplane/net/tcp/input.h"
#include "dataplane/net/tcp/listen.h"
#include "dataplane/net/tcp/receive.h"
#include "dataplane/net/tcp/send.h"
#include "dataplane/net/tcp/state.h"
#include "dataplane/net/tcp/work.h"

#include <errno.h>
#include <stdlib.h>

#define CHALLENGE_RATE_MAX 15u // counted in four bits
#define DUE_EVENTS 2u // of one deadline: WRITABLE, CLOSED
#define DUE_PLACES 3 // DATA, EOF, CLOSED

static uint8_t scale_for(uint32_t window)
{
	uint8_t scale = 0;
	while (window >> scale > UINT16_MAX)
		scale++;
	return scale;
}

static void check_plan(const struct tcp_plan *plan)
{
	assert(plan->connections_max > 0);
	assert(plan->challenge_rate <= CHALLENGE_RATE_MAX);
	assert(plan->receive_max >= TCP_MSS_MIN && plan->receive_max <= UINT32_C(1) << 29);
	assert(plan->mss_v4 >= TCP_MSS_MIN);
	assert(plan->mss_v6 >= TCP_MSS_MIN);
	assert(plan->listener_count <= TCP_LISTENERS_MAX);
}

// Connections, all free, and what finds them.
static bool make_tables(struct tcp *t)
{
	const struct tcp_plan *plan = &t->plan;
	t->conn_max = plan->connections_max + plan->reserve;
	t->conns = fresh_map(t->conn_max * sizeof(*t->conns));
	t->listed = fresh_map(t->conn_max * sizeof(*t->listed));
	t->flows = flows_create(t->conn_max, plan->seed);
	t->waits = wait_create(plan->wait_max);
	t->sources = sources_create(plan->seed);
	return t->conns && t->listed && t->flows && t->waits && t->sources;
}

struct tcp *tcp_create(const struct tcp_plan *plan, const struct tcp_io *io)
{
	check_plan(plan);
	struct tcp *t = calloc(1, sizeof(*t)); // COLD: at start
	if (!t)
		return NULL;
	t->plan = *plan;
	t->io = io;
	t->is_accepting = true;
	t->scale = scale_for(plan->receive_max);
	if (!make_tables(t) || work_init(t) < 0 ||
		chunks_init(&t->send_chunks, plan->send_chunks, plan->chunk_bytes) < 0 ||
		chunks_init(&t->receive_chunks, plan->receive_chunks, plan->chunk_bytes) < 0) {
		tcp_destroy(t);
		return NULL;
	}
	return t;
}

void tcp_destroy(struct tcp *t)
{
	if (!t)
		return;
	chunks_fini(&t->receive_chunks);
	chunks_fini(&t->send_chunks);
	work_fini(t);
	sources_destroy(t->sources);
	wait_destroy(t->waits);
	flows_destroy(t->flows);
	fresh_unmap(t->listed, t->conn_max * sizeof(*t->listed));
	fresh_unmap(t->conns, t->conn_max * sizeof(*t->conns));
	free(t);
}

uint64_t tcp_bytes(const struct tcp_plan *plan)
{
	uint32_t conns = plan->connections_max + plan->reserve;
	return sizeof(struct tcp) + (uint64_t)conns * (sizeof(struct tcp_conn) + sizeof(uint32_t)) +
	       flows_bytes(conns) + wait_bytes(plan->wait_max) + sources_bytes() +
	       work_bytes(plan) + chunks_bytes(plan->send_chunks, plan->chunk_bytes) +
	       chunks_bytes(plan->receive_chunks, plan->chunk_bytes);
}

uint64_t tcp_idle_bytes(const struct tcp_plan *plan)
{
	uint32_t conns = plan->connections_max + plan->reserve;
	return sizeof(struct tcp_conn) + sizeof(uint32_t) +
	       (flows_bytes(conns) + conns - 1) / conns;
}

// The clock's first value makes the wheel and the keys.
static void begin(struct tcp *t, uint64_t now_us)
{
	timers_init(&t->timers, &t->conns[0].timer, sizeof(t->conns[0]), now_us);
	syncookie_init(&t->syncookie, t->plan.secret, now_us);
	t->has_begun = true;
}

static void set_gauges(struct tcp *t, uint32_t waiting)
{
	atomic_store_explicit(&t->stats.open, t->conn_count, memory_order_relaxed);
	atomic_store_explicit(&t->stats.waiting, waiting, memory_order_relaxed);
}

void tcp_turn(struct tcp *t, uint64_t now_us, struct stream_event *events, int event_max)
{
	assert(now_us >= t->now_us);
	assert(event_max >= STREAM_EVENTS_MIN);
	if (!t->has_begun)
		begin(t, now_us);
	t->now_us = now_us;
	t->now_ms = (uint32_t)(now_us / 1000);
	t->events = events;
	t->event_max = event_max;
	t->event_count = 0;
	// Something may wait for room: then a quarter is for tcp_due(), and of a small array all
	// but one.
	t->input_max = event_max;
	if (t->listed_count > 0)
		t->input_max -= event_max / 4 > DUE_PLACES ? event_max / 4 : DUE_PLACES;
	while (t->ended_conn) {
		uint32_t index = t->ended_conn - 1;
		t->ended_conn = t->conns[index].timer.next;
		t->conns[index].timer.next = t->free_conn;
		t->free_conn = index + 1;
	}
	syncookie_turn(&t->syncookie, now_us);
	set_gauges(t, wait_expire(t->waits, t->now_ms));
}

// Returns what seems to be the connection, or NULL.
static struct tcp_conn *prefetch_conn(const struct tcp *t, uint64_t hash)
{
	uint32_t at = 0, index;
	if (!flows_next(t->flows, hash, &at, &index))
		return NULL;
	__builtin_prefetch(&t->conns[index], 1);
	__builtin_prefetch(&t->conns[index].snd_wnd, 1);
	return &t->conns[index];
}

// What hangs on it, below and above: what an acknowledgement changes, and who reads what came.
static void prefetch_work(const struct tcp *t, const struct tcp_conn *c)
{
	const struct tcp_work *work = work_of(t, c);
	__builtin_prefetch(c->stream.user, 1);
	if (!work)
		return;
	__builtin_prefetch(work, 1);
	__builtin_prefetch(&work->send.sent_ms, 1);
}

// What it has in flight, which is about to be dropped.
static void prefetch_queue(const struct tcp *t, const struct tcp_conn *c)
{
	const struct tcp_work *work = work_of(t, c);
	if (work)
		chunks_fetch(&t->send_chunks, &work->send.queue);
}

// As wait_find() wants it.
static uint64_t tuple_of(uint64_t hash)
{
	return hash ? hash : 1;
}

// What is to be looked at for each segment of a burst, all of them a step further at a time.
//   seen  what seem to be their connections; NULL: none
static void prefetch_all(
	const struct tcp *t, const uint64_t *hashes, struct tcp_conn **seen, unsigned count)
{
	uint64_t strangers[TCP_BURST_MAX];
	unsigned stranger_count = 0;
	for (unsigned i = 0; i < count; i++) {
		seen[i] = prefetch_conn(t, hashes[i]);
		if (!seen[i])
			strangers[stranger_count++] = tuple_of(hashes[i]);
	}
	for (unsigned i = 0; i < count; i++)
		if (seen[i])
			prefetch_work(t, seen[i]);
	for (unsigned i = 0; i < count; i++)
		if (seen[i])
			prefetch_queue(t, seen[i]);
	for (unsigned step = 0; step < WAIT_STEPS; step++)
		for (unsigned i = 0; i < stranger_count; i++)
			wait_prefetch(t->waits, strangers[i], step);
}

// The connection of a segment, most likely the one that was seen before the burst began: it may
// have ended since, and another one have begun.
static struct tcp_conn *conn_of(const struct tcp *t, uint64_t hash, struct tcp_conn *seen,
	const struct tcp_segment *segment)
{
	return seen && tcp_is_of(seen, &segment->local, &segment->peer)
		       ? seen
		       : tcp_find(t, hash, &segment->local, &segment->peer);
}

static void take_segment(
	struct tcp *t, uint64_t hash, struct tcp_conn *seen, const struct tcp_segment *segment)
{
	struct tcp_conn *c = conn_of(t, hash, seen, segment);
	if (c) {
		input_segment(t, c, segment);
		return;
	}
	struct tcp_wait_entry *wait = wait_find(t->waits, tuple_of(hash), t->now_ms);
	if (!wait || wait->is_over || input_wait(t, wait, segment))
		listen_segment(t, hash, wait, segment);
}

unsigned tcp_input(struct tcp *t, const struct tcp_segment *segments, unsigned count)
{
	assert(count <= TCP_BURST_MAX);
	uint64_t hashes[TCP_BURST_MAX];
	struct tcp_conn *seen[TCP_BURST_MAX];
	unsigned taken = 0;
	for (unsigned i = 0; i < count; i++) {
		hashes[i] = flows_hash(t->flows, &segments[i].local, &segments[i].peer);
		flows_prefetch(t->flows, hashes[i]);
	}
	prefetch_all(t, hashes, seen, count);
	while (taken < count && t->event_count + (int)INPUT_EVENTS_MAX <= t->input_max) {
		take_segment(t, hashes[taken], seen[taken], &segments[taken]);
		taken++;
	}
	tcp_count_many(t, TCP_segments_in, taken);
	return taken;
}

// The work of a connection goes back when nothing is under way.
static void tidy(struct tcp *t, struct tcp_conn *c)
{
	if (c->work)
		work_give(t, c);
}

static bool has_room(const struct tcp *t)
{
	return t->event_max - t->event_count >= DUE_PLACES;
}

// What waited for room, or for the worker to read again.
static void give_kept(struct tcp *t)
{
	for (uint32_t i = 0; i < t->listed_count && has_room(t); i++) {
		struct tcp_conn *c = &t->conns[t->listed[i]];
		if (c->state == TCP_FREE)
			continue;
		if (c->flags & TCP_CONN_FAILED)
			tcp_end(t, c, ENOBUFS);
		else if (c->work && receive_has_more(t, c) && receive_more(t, c))
			input_fin(t, c);
	}
}

// It has been idle for too long; or was closed by the worker, and its time to end well is over. One
// that only waits for the peer's FIN ends in silence, lest the peer lose what it has not read yet.
static void end_late(struct tcp *t, struct tcp_conn *c)
{
	bool is_orphan = c->flags & TCP_CONN_ORPHAN;
	tcp_count(t, is_orphan ? TCP_linger_late : TCP_idle_late);
	if (c->state != TCP_FIN_WAIT_2)
		send_reset(t, c);
	tcp_end(t, c, ETIMEDOUT);
}

static void take_due(struct tcp *t, struct tcp_conn *c)
{
	assert(c->state != TCP_FREE);
	if (tcp_last_deadline(t, c) <= t->now_us) {
		end_late(t, c);
		return;
	}
	if (send_deadline(t, c) <= t->now_us && !send_due(t, c)) {
		tcp_count(t, TCP_gave_up);
		send_reset(t, c);
		tcp_end(t, c, ETIMEDOUT);
		return;
	}
	if (receive_deadline(t, c) <= t->now_us)
		send_ack(t, c);
	tidy(t, c);
	tcp_arm(t, c);
}

void tcp_due(struct tcp *t)
{
	uint32_t due[TIMERS_DUE_MAX];
	give_kept(t);
	unsigned room = (unsigned)(t->event_max - t->event_count) / DUE_EVENTS;
	unsigned max = room < TIMERS_DUE_MAX ? room : TIMERS_DUE_MAX;
	unsigned count = max ? timers_due(&t->timers, t->now_us, due, max) : 0;
	for (unsigned i = 0; i < count; i++)
		take_due(t, &t->conns[due[i]]);
}

int tcp_event_count(const struct tcp *t)
{
	return t->event_count;
}

void tcp_flush(struct tcp *t)
{
	uint32_t left = 0;
	for (uint32_t i = 0; i < t->listed_count; i++) {
		struct tcp_conn *c = &t->conns[t->listed[i]];
		if (c->state == TCP_FREE)
			continue;
		if (c->flags & TCP_CONN_ACK_NOW)
			send_ack(t, c);
		tidy(t, c);
		tcp_arm(t, c);
		if (c->flags & TCP_CONN_FAILED || (c->work && receive_has_more(t, c)))
			t->listed[left++] = t->listed[i];
		else
			c->flags &= (uint16_t)~TCP_CONN_LISTED;
	}
	t->listed_count = left;
}

uint64_t tcp_quiet_us(const struct tcp *t, uint64_t max_us)
{
	return t->listed_count > 0 ? 0 : timers_quiet_us(&t->timers, t->now_us, max_us);
}

enum tcp_owner tcp_owns(const struct tcp *t, const struct tcp_segment *segment)
{
	uint64_t hash = flows_hash(t->flows, &segment->local, &segment->peer);
	if (tcp_find(t, hash, &segment->local, &segment->peer) ||
		wait_find(t->waits, tuple_of(hash), t->now_ms))
		return TCP_OWNER_CONNECTION;
	return listen_find(t, &segment->local) == TCP_LISTENERS_MAX ? TCP_OWNER_NONE
								    : TCP_OWNER_LISTENER;
}

bool tcp_is_full(const struct tcp *t)
{
	return t->conn_count > t->plan.connections_max;
}

void tcp_stop_accepting(struct tcp *t)
{
	t->is_accepting = false;
}

const struct tcp_stats *tcp_stats(const struct tcp *t)
{
	return &t->stats;
}
