// The client between two servers. Each SYN-ACK's options are the other's SYN's options, so that the
// two agree with each other; timestamps need no change: each is shown the other's own clock.

#include "tests/sim/tcp/pair.h"

#include <stdlib.h>
#include <string.h>

#include "dataplane/net/tcp/conn.h"

static void put(struct ours *o, uint32_t slot, const struct wire *s, uint64_t now_us)
{
	char *bytes = malloc(100);
	if (!bytes)
		abort();
	ours_put(o, slot, bytes, (uint32_t)wire_write(s, bytes));
	ours_turn(o, now_us);
}

static bool ask(struct pair *pair, const struct pair_plan *plan, struct ours *o, uint32_t slot,
	uint32_t isn, uint8_t scale, uint32_t ts, struct wire *answer, uint64_t now_us)
{
	pair->is_catching = true;
	pair->has_caught = false;
	put(o, slot,
		&(struct wire){.seq = isn,
			.flags = TCP_SYN,
			.window = UINT16_MAX,
			.has_mss = true,
			.mss = plan->mss,
			.has_sack_permitted = plan->has_sack,
			.has_scale = plan->has_scale,
			.scale = scale,
			.has_timestamp = plan->has_timestamps,
			.ts_value = ts},
		now_us);
	pair->is_catching = false;
	*answer = pair->caught;
	if (pair->has_caught &&
		answer->flags == TCP_ACK) // of the connection before (RFC 9293 3.5.1)
		put(o, slot, &(struct wire){.seq = answer->ack, .flags = TCP_RST}, now_us);
	return pair->has_caught && answer->flags == (TCP_SYN | TCP_ACK);
}

static void acknowledge(struct ours *o, uint32_t slot, const struct wire *own,
	const struct wire *other, uint32_t seen, uint64_t now_us)
{
	put(o, slot,
		&(struct wire){.seq = seen + 1,
			.ack = own->seq + 1,
			.flags = TCP_ACK,
			.window = (uint16_t)(other->window >> (own->has_scale ? other->scale : 0)),
			.has_timestamp = own->has_timestamp,
			.ts_value = other->ts_value,
			.ts_echo = own->ts_value},
		now_us);
}

bool pair_open(struct pair *pair, const struct pair_plan *plan, struct ours *a, struct ours *b,
	uint32_t slot, uint64_t now_us)
{
	struct wire from_a, from_b;
	// For A's TIME_WAIT of the last connection the clock of B must have gone on.
	const uint32_t ts = pair->b_ts + (uint32_t)((now_us - pair->b_ts_us) / 1000);
	*pair = (struct pair){.a_seen = plan->a_seen, .b_seen = plan->b_seen};
	if (!ask(pair, plan, a, slot, plan->a_seen, b->tcp->scale, ts, &from_a, now_us) ||
		!ask(pair, plan, b, slot, plan->b_seen, a->tcp->scale, from_a.ts_value, &from_b,
			now_us))
		return false;
	pair->a_isn = from_a.seq;
	pair->b_isn = from_b.seq;
	pair->b_ts = from_b.ts_value;
	pair->b_ts_us = now_us;
	pair->is_open = true;
	acknowledge(a, slot, &from_a, &from_b, plan->a_seen, now_us);
	acknowledge(b, slot, &from_b, &from_a, plan->b_seen, now_us);
	return true;
}

bool pair_catch(struct pair *pair, struct span bytes)
{
	if (!pair->is_catching)
		return false;
	wire_read(bytes, &pair->caught);
	pair->caught.payload = (struct span){0};
	pair->has_caught = true;
	return true;
}

uint32_t pair_translate(const struct pair *pair, bool from_a, char *bytes, uint32_t len)
{
	static char old[WIRE_BYTES_MAX];
	const uint32_t seq = from_a ? pair->b_seen - pair->a_isn : pair->a_seen - pair->b_isn;
	const uint32_t ack = from_a ? pair->b_isn - pair->a_seen : pair->a_isn - pair->b_seen;
	struct wire s;
	memcpy(old, bytes, len);
	wire_read((struct span){old, len}, &s);
	s.seq += seq;
	s.ack += ack;
	for (unsigned i = 0; i < s.sack_count; i++) {
		s.sacks[i].from += ack;
		s.sacks[i].to += ack;
	}
	const size_t written = wire_write(&s, bytes);
	if (written > len)
		abort(); // options take no more here than ours takes for them
	return (uint32_t)written;
}
