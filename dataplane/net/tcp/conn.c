// Connections: found, opened, ended; their deadline and their place on the list of the turn.
//
// A connection that ends leaves the flow table and the wheel at once, but its struct only becomes
// free in the next turn: events of this one may point to it, and so may the list.

#include "dataplane/net/tcp/conn.h"

#include "dataplane/net/tcp/receive.h"
#include "dataplane/net/tcp/send.h"
#include "dataplane/net/tcp/state.h"
#include "dataplane/net/tcp/work.h"

#include <string.h>

// Both addresses are compared in one go: they are neighbours, here and in a segment.
static_assert(offsetof(struct stream, local) ==
		      offsetof(struct stream, peer) + sizeof(struct stream_address),
	"peer, local");
static_assert(sizeof(struct stream_address) == 18, "no padding to compare");

static bool is_same(const struct stream_address *a, const struct stream_address *b)
{
	return memcmp(a, b, sizeof(*a)) == 0;
}

bool tcp_is_of(const struct tcp_conn *c, const struct stream_address *local,
	const struct stream_address *peer)
{
	return c->state != TCP_FREE && is_same(&c->stream.peer, peer) &&
	       is_same(&c->stream.local, local);
}

struct tcp_conn *tcp_find(const struct tcp *t, uint64_t hash, const struct stream_address *local,
	const struct stream_address *peer)
{
	uint32_t at = 0, index;
	while (flows_next(t->flows, hash, &at, &index)) {
		if (tcp_is_of(&t->conns[index], local, peer))
			return &t->conns[index];
	}
	return NULL;
}

// A free one: of those that have been used, as long as there are, so that no more memory is touched
// than was ever needed at once. NULL: none.
static struct tcp_conn *take(struct tcp *t)
{
	if (!t->free_conn)
		return t->used_conns < t->conn_max ? &t->conns[t->used_conns++] : NULL;
	struct tcp_conn *c = &t->conns[t->free_conn - 1];
	assert(c->state == TCP_FREE);
	t->free_conn = c->timer.next;
	return c;
}

struct tcp_conn *tcp_open(struct tcp *t, uint64_t hash, const struct tcp_segment *segment)
{
	struct tcp_conn *c = take(t);
	if (!c)
		return NULL;
	*c = (struct tcp_conn){
		.stream = {.peer = segment->peer, .local = segment->local},
		.active_ms = t->now_ms,
		.hop = segment->hop,
		.timer = {.slot = TIMERS_UNLINKED},
	};
	state_set(c, TCP_ESTABLISHED);
	flows_add(t->flows, hash, tcp_index(t, c));
	t->conn_count++;
	tcp_count(t, TCP_accepted);
	return c;
}

static void tell_closed(struct tcp *t, struct tcp_conn *c, int error)
{
	tcp_tell(t, c, STREAM_CLOSED, (struct span){0});
	if (!(c->flags & TCP_CONN_ORPHAN))
		t->events[t->event_count - 1].error = error;
}

// What TIME_WAIT needs to know of it; of another only that its cookie was used, and that only while
// there is room.
static void remember(struct tcp *t, const struct tcp_conn *c, uint64_t hash, bool is_over)
{
	if (is_over && !wait_has_room(t->waits))
		return;
	struct tcp_wait_entry entry = {
		.tuple = hash ? hash : 1,
		.snd_nxt = c->snd_nxt,
		.rcv_nxt = c->rcv_nxt,
		.ts_recent = c->ts_recent,
		.ends_ms = t->now_ms + t->plan.wait_us / 1000,
		.is_over = is_over,
	};
	if (!wait_add(t->waits, &entry))
		tcp_count(t, TCP_wait_evicted);
}

static void end(struct tcp *t, struct tcp_conn *c, int error, bool is_over)
{
	uint64_t hash = flows_hash(t->flows, &c->stream.local, &c->stream.peer);
	uint32_t index = tcp_index(t, c);
	remember(t, c, hash, is_over);
	tell_closed(t, c, error);
	send_drop(t, c);
	receive_drop(t, c);
	work_give(t, c);
	assert(c->work == 0);
	flows_remove(t->flows, hash, index);
	timers_remove(&t->timers, index);
	state_set(c, TCP_FREE);
	assert(t->conn_count > 0);
	t->conn_count--;
	c->timer.next = t->ended_conn;
	t->ended_conn = index + 1;
	tcp_count(t, TCP_closed);
}

void tcp_end(struct tcp *t, struct tcp_conn *c, int error)
{
	end(t, c, error, true);
}

void tcp_end_waiting(struct tcp *t, struct tcp_conn *c)
{
	end(t, c, 0, false);
}

void tcp_tell(struct tcp *t, struct tcp_conn *c, enum stream_event_kind kind, struct span data)
{
	if (c->flags & TCP_CONN_ORPHAN)
		return;
	assert(t->event_count < t->event_max);
	t->events[t->event_count++] =
		(struct stream_event){.kind = kind, .stream = &c->stream, .data = data};
}

void tcp_list(struct tcp *t, struct tcp_conn *c)
{
	if (c->flags & TCP_CONN_LISTED)
		return;
	assert(t->listed_count < t->conn_max);
	c->flags |= TCP_CONN_LISTED;
	t->listed[t->listed_count++] = tcp_index(t, c);
}

uint64_t tcp_last_deadline(const struct tcp *t, const struct tcp_conn *c)
{
	uint64_t began_us = t->now_us - (uint64_t)(t->now_ms - c->active_ms) * 1000;
	if (c->flags & TCP_CONN_ORPHAN)
		return began_us + t->plan.linger_us;
	return send_is_idle(t, c) ? began_us + t->plan.idle_us : UINT64_MAX;
}

void tcp_arm(struct tcp *t, struct tcp_conn *c)
{
	uint64_t deadline = tcp_last_deadline(t, c), other = send_deadline(t, c);
	if (other < deadline)
		deadline = other;
	other = receive_deadline(t, c);
	if (other < deadline)
		deadline = other;
	assert(deadline != UINT64_MAX); // no connection without a deadline
	timers_set(&t->timers, tcp_index(t, c), deadline);
}
