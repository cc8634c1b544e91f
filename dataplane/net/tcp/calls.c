// What the worker, and the network's ICMP, ask of a connection.
//
// One may have ended in this turn, and its STREAM_CLOSED be still ahead among the events: calls on
// it then do nothing, but for taking events back.

#include "dataplane/net/tcp/conn.h"
#include "dataplane/net/tcp/receive.h"
#include "dataplane/net/tcp/send.h"
#include "dataplane/net/tcp/state.h"

#define IPV4_AND_TCP_BYTES 40u
#define IPV6_AND_TCP_BYTES 60u
#define IPV6_MTU_MIN 1280u // RFC 8201 4: no path is believed to take less
#define TIMESTAMP_BYTES 12u

static struct tcp_conn *conn_of(struct stream *s)
{
	struct tcp_conn *c = (struct tcp_conn *)s;
	assert(!(c->flags & TCP_CONN_ORPHAN));
	return c;
}

// Whether it has ended, or will have in the next turn.
static bool is_gone(const struct tcp_conn *c)
{
	return c->state == TCP_FREE || c->flags & TCP_CONN_FAILED;
}

static size_t bytes_of(const struct span *parts, unsigned count)
{
	size_t bytes = 0;
	for (unsigned i = 0; i < count; i++)
		bytes += parts[i].len;
	return bytes;
}

size_t tcp_write(struct tcp *t, struct stream *s, const struct span *parts, unsigned count)
{
	struct tcp_conn *c = conn_of(s);
	if (is_gone(c))
		return bytes_of(parts, count);
	assert(!(c->flags & TCP_CONN_FIN_QUEUED));
	size_t taken = send_write(t, c, parts, count);
	tcp_list(t, c);
	return taken;
}

size_t tcp_queued(const struct tcp *t, const struct stream *s)
{
	return send_queued(t, (const struct tcp_conn *)s);
}

// Whether we may still send, and so have not ended.
static bool is_open(const struct tcp_conn *c)
{
	return c->state == TCP_ESTABLISHED || c->state == TCP_CLOSE_WAIT;
}

void tcp_shut(struct tcp *t, struct stream *s)
{
	struct tcp_conn *c = conn_of(s);
	if (is_gone(c) || !is_open(c))
		return;
	tcp_list(t, c);
	if (send_fin(t, c))
		return;
	tcp_count(t, TCP_work_none);
	send_reset(t, c);
	c->flags |= TCP_CONN_FAILED; // the worker is told in the next turn
}

// Take back what the burst in hand still holds for it.
static void take_events_back(struct tcp *t, const struct tcp_conn *c)
{
	for (int i = 0; i < t->event_count; i++)
		if (t->events[i].stream == &c->stream)
			t->events[i].kind = STREAM_NONE;
}

static void end_now(struct tcp *t, struct tcp_conn *c)
{
	if (!(c->flags & TCP_CONN_FAILED)) // then the peer has had it
		send_reset(t, c);
	tcp_end(t, c, 0);
}

void tcp_close(struct tcp *t, struct stream *s, bool reset)
{
	struct tcp_conn *c = conn_of(s);
	take_events_back(t, c);
	c->flags |= TCP_CONN_ORPHAN;
	if (c->state == TCP_FREE)
		return;
	c->flags &= (uint16_t)~TCP_CONN_PAUSED;
	// What is kept in order was never read: the peer learns that it is lost (RFC 2525 2.17).
	if (reset || c->flags & TCP_CONN_FAILED || receive_has_owed(t, c)) {
		end_now(t, c);
		return;
	}
	if (is_open(c) && !send_fin(t, c)) {
		tcp_count(t, TCP_work_none);
		end_now(t, c);
		return;
	}
	c->active_ms = t->now_ms; // it lingers from now on
	tcp_list(t, c);
}

void tcp_pause(struct tcp *t, struct stream *s)
{
	(void)t;
	conn_of(s)->flags |= TCP_CONN_PAUSED;
}

void tcp_resume(struct tcp *t, struct stream *s)
{
	struct tcp_conn *c = conn_of(s);
	c->flags &= (uint16_t)~TCP_CONN_PAUSED;
	if (!is_gone(c) && receive_has_more(t, c))
		tcp_list(t, c);
}

// Payload bytes of a segment that fits `mtu`; never below the floor, whatever a message says.
static uint16_t mss_for(const struct tcp_conn *c, uint16_t mtu)
{
	bool is_v4 = ip_is_v4(c->stream.local.ip);
	unsigned headers = is_v4 ? IPV4_AND_TCP_BYTES : IPV6_AND_TCP_BYTES;
	unsigned floor = is_v4 ? TCP_MSS_MIN : IPV6_MTU_MIN - IPV6_AND_TCP_BYTES;
	unsigned mss = mtu < headers + floor ? floor : mtu - headers;
	return (uint16_t)(c->flags & TCP_CONN_TIMESTAMPS ? mss - TIMESTAMP_BYTES : mss);
}

void tcp_too_big(struct tcp *t, const struct tcp_segment *quoted, uint16_t mtu)
{
	uint64_t hash = flows_hash(t->flows, &quoted->local, &quoted->peer);
	struct tcp_conn *c = tcp_find(t, hash, &quoted->local, &quoted->peer);
	if (!c || quoted->seq - c->snd_una >= c->snd_nxt - c->snd_una ||
		mss_for(c, mtu) >= c->mss) {
		tcp_count(t, TCP_too_big_ignored);
		return;
	}
	send_shrink(t, c, mss_for(c, mtu));
	tcp_list(t, c);
}
