// Calls are counted; a segment is taken, or offered elsewhere if the test says that it is unknown.

#include "tests/unit/net/fake_tcp.h"

#include <assert.h>
#include <stdlib.h>

#define MADE_MAX 8u

static struct tcp *made[MADE_MAX];
static unsigned made_count;

struct tcp {
	struct fake_tcp fake;
	unsigned taken_in_turn;
	struct tcp_stats stats;
};

struct fake_tcp *fake_tcp(unsigned back)
{
	assert(back < made_count);
	return &made[(made_count - 1 - back) % MADE_MAX]->fake;
}

struct tcp *tcp_create(const struct tcp_plan *plan, const struct tcp_io *io)
{
	struct tcp *t = calloc(1, sizeof(*t));
	assert(t);
	t->fake.io = io;
	t->fake.plan = *plan;
	t->fake.knows = true;
	made[made_count++ % MADE_MAX] = t;
	return t;
}

void tcp_destroy(struct tcp *t)
{
	free(t);
}

uint64_t tcp_bytes(const struct tcp_plan *plan)
{
	return plan->connections_max;
}

void tcp_turn(struct tcp *t, uint64_t now_us, struct stream_event *events, int event_max)
{
	(void)events, (void)event_max;
	t->fake.now_us = now_us;
	t->fake.turns++;
	t->taken_in_turn = 0;
}

static void take(struct tcp *t, const struct tcp_segment *segment)
{
	t->fake.segment_count++;
	t->fake.last = *segment;
	if (t->fake.knows || segment->flags & TCP_SYN)
		return;
	if (!t->fake.io->elsewhere(t->fake.io->ctx, segment))
		t->fake.resets++;
}

unsigned tcp_input(struct tcp *t, const struct tcp_segment *segments, unsigned count)
{
	unsigned i = 0;
	for (; i < count && (t->fake.room == 0 || t->taken_in_turn < t->fake.room); i++) {
		take(t, &segments[i]);
		t->taken_in_turn++;
	}
	return i;
}

void tcp_due(struct tcp *t)
{
	t->fake.dues++;
}

void tcp_flush(struct tcp *t)
{
	t->fake.flushes++;
}

int tcp_event_count(const struct tcp *t)
{
	return (int)t->taken_in_turn;
}

enum tcp_owner tcp_owns(const struct tcp *t, const struct tcp_segment *segment)
{
	(void)segment;
	return t->fake.owner;
}

void tcp_too_big(struct tcp *t, const struct tcp_segment *quoted, uint16_t mtu)
{
	t->fake.too_big++;
	t->fake.mtu = mtu;
	t->fake.quoted = *quoted;
}

size_t tcp_write(struct tcp *t, struct stream *s, const struct span *parts, unsigned count)
{
	(void)s, (void)parts;
	t->fake.calls++;
	return count;
}

size_t tcp_queued(const struct tcp *t, const struct stream *s)
{
	(void)t, (void)s;
	return 7;
}

void tcp_shut(struct tcp *t, struct stream *s)
{
	(void)s;
	t->fake.calls++;
}

void tcp_close(struct tcp *t, struct stream *s, bool reset)
{
	(void)s, (void)reset;
	t->fake.calls++;
}

void tcp_pause(struct tcp *t, struct stream *s)
{
	(void)s;
	t->fake.calls++;
}

void tcp_resume(struct tcp *t, struct stream *s)
{
	(void)s;
	t->fake.calls++;
}

void tcp_stop_accepting(struct tcp *t)
{
	t->fake.calls++;
}

bool tcp_is_full(const struct tcp *t)
{
	return t->fake.plan.connections_max == 0;
}

const struct tcp_stats *tcp_stats(const struct tcp *t)
{
	return &t->stats;
}
