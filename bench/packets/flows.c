// The calls of flows.h. The network in between loses nothing but what a full ring drops, so there
// is no retransmission: a flow that hears nothing for a second opens anew.

#include "bench/packets/flows.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define CLIENTS (10u << 24 | 128u << 16) // 10.128.0.0
#define PORT_FIRST 1024u
#define STALL_MS 1000u
#define TICKET_BYTES 64u

enum flow_state { FLOW_CLOSED, FLOW_OPENING, FLOW_OPEN, FLOW_ASKED, FLOW_CLOSING };

struct flow {
	uint32_t seq, ack, ts_echo;
	uint32_t left; // bytes of the answer still to come; 0: none of it has
	uint32_t sent_ms;
	uint16_t port;
	uint8_t state; // enum flow_state
	uint8_t tickets; // drawn so far
	uint8_t turn; // which ticket
	uint8_t unacked; // full segments taken and not acknowledged
	bool is_ready;
};

struct head {
	char text[PLAN_HEAD_MAX];
	size_t len, ticket_at; // where the ticket stands; 0: nowhere
};

struct flows {
	struct plan plan;
	flows_send *send;
	void *ctx;
	struct flow *flows;
	char (*tickets)[2][TICKET_BYTES];
	uint32_t *queue; // a ring of those that may begin something
	uint32_t first, queued, under_way;
	uint32_t now_ms;
	uint64_t random;
	bool keeps; // see flows_keep()
	struct head arrival, poll;
	char cookie[80]; // "sluice-t-ROOM="
	struct flows_tally tally;
};

// Returns false, having said why, if the file is no head of a request.
static bool read_head(const char *path, struct head *head)
{
	FILE *file = fopen(path, "r");
	head->len = file ? fread(head->text, 1, sizeof(head->text), file) : 0;
	if (file)
		fclose(file);
	bool is_head = head->len >= 4 && head->len + TICKET_BYTES < sizeof(head->text) &&
		       memcmp(head->text + head->len - 4, "\r\n\r\n", 4) == 0;
	if (!is_head) {
		fprintf(stderr, "packets: %s: not a request head\n", path);
		return false;
	}
	char *at = memchr(head->text, '@', head->len);
	if (!at)
		return true;
	head->ticket_at = (size_t)(at - head->text);
	memmove(at + TICKET_BYTES, at + 1, head->len - head->ticket_at - 1);
	head->len += TICKET_BYTES - 1;
	return true;
}

static uint8_t tickets_wanted(const struct plan *plan)
{
	switch (plan->mode) {
	case PLAN_POLLS:
		return 2;
	case PLAN_CONNECTIONS:
	case PLAN_IDLE:
		return 1;
	default:
		return 0;
	}
}

struct flows *flows_create(const struct plan *plan, flows_send *send, void *ctx)
{
	struct flows *f = calloc(1, sizeof(*f));
	if (!f)
		return NULL;
	f->plan = *plan;
	f->send = send;
	f->ctx = ctx;
	f->random = 0x9e3779b97f4a7c15u;
	f->flows = calloc(plan->flows, sizeof(*f->flows));
	f->tickets = calloc(plan->flows, sizeof(*f->tickets));
	f->queue = calloc(plan->flows, sizeof(*f->queue));
	snprintf(f->cookie, sizeof(f->cookie), "sluice-t-%.60s=", plan->room);
	bool is_read = read_head(plan->arrival, &f->arrival) && read_head(plan->poll, &f->poll);
	if (!f->flows || !f->tickets || !f->queue || !is_read) {
		flows_destroy(f);
		return NULL;
	}
	for (uint32_t i = 0; i < plan->flows; i++) {
		f->flows[i].port = PORT_FIRST;
		f->queue[i] = i;
	}
	f->queued = plan->flows;
	return f;
}

void flows_destroy(struct flows *f)
{
	free(f->flows);
	free(f->tickets);
	free(f->queue);
	free(f);
}

static void say(struct flows *f, uint32_t index, uint8_t flags, struct span payload)
{
	struct flow *flow = &f->flows[index];
	struct wire_segment segment = {.client_ip = CLIENTS + index,
		.client_port = flow->port,
		.flags = flags,
		.has_timestamp = f->plan.has_timestamps,
		.seq = flow->seq,
		.ack = flow->ack,
		.ts_value = f->now_ms,
		.ts_echo = flow->ts_echo,
		.payload = payload};
	f->send(f->ctx, &segment);
	f->tally.segments_out++;
	flow->seq += (uint32_t)payload.len + !!(flags & (WIRE_SYN | WIRE_FIN));
	flow->sent_ms = f->now_ms;
	flow->unacked = 0;
}

// The flow may begin something as soon as its turn comes.
static void queue(struct flows *f, uint32_t index)
{
	f->under_way--;
	f->queue[(f->first + f->queued++) % f->plan.flows] = index;
}

static uint64_t next_random(struct flows *f)
{
	f->random ^= f->random << 13;
	f->random ^= f->random >> 7;
	f->random ^= f->random << 17;
	return f->random;
}

static void open_flow(struct flows *f, uint32_t index, uint16_t port)
{
	struct flow *flow = &f->flows[index];
	flow->port = port;
	flow->seq = (uint32_t)next_random(f);
	flow->ack = flow->ts_echo = flow->left = 0;
	flow->state = FLOW_OPENING;
	say(f, index, WIRE_SYN, (struct span){0});
}

static void ask(struct flows *f, uint32_t index)
{
	struct flow *flow = &f->flows[index];
	bool draws = flow->tickets < tickets_wanted(&f->plan) || f->plan.mode == PLAN_ARRIVALS;
	struct head *head = draws ? &f->arrival : &f->poll;
	flow->turn = (uint8_t)(flow->turn + !f->keeps);
	if (head->ticket_at)
		memcpy(head->text + head->ticket_at, f->tickets[index][flow->turn % flow->tickets],
			TICKET_BYTES);
	flow->state = FLOW_ASKED;
	say(f, index, WIRE_PSH | WIRE_ACK, (struct span){head->text, head->len});
}

// The next port of a flow; of those who only flood, any.
static uint16_t next_port(struct flows *f, const struct flow *flow)
{
	if (f->plan.mode == PLAN_SYN)
		return (uint16_t)(next_random(f) | 1024);
	return flow->port == UINT16_MAX ? PORT_FIRST : (uint16_t)(flow->port + 1);
}

void flows_begin(struct flows *f, uint32_t now_ms, unsigned budget)
{
	f->now_ms = now_ms;
	while (budget-- > 0 && f->queued > 0 && f->under_way < f->plan.window) {
		uint32_t index = f->queue[f->first];
		f->first = (f->first + 1) % f->plan.flows;
		f->queued--;
		f->under_way++;
		struct flow *flow = &f->flows[index];
		if (flow->state == FLOW_CLOSED)
			open_flow(f, index, next_port(f, flow));
		else
			ask(f, index);
	}
}

void flows_keep(struct flows *f, bool keeps)
{
	f->keeps = keeps;
}

static void close_flow(struct flows *f, uint32_t index)
{
	f->flows[index].state = FLOW_CLOSED;
	queue(f, index);
}

static void take_ticket(struct flows *f, uint32_t index, struct span head)
{
	struct flow *flow = &f->flows[index];
	size_t name_len = strlen(f->cookie);
	const char *at = memmem(head.at, head.len, f->cookie, name_len);
	if (at && (size_t)(head.at + head.len - at) >= name_len + TICKET_BYTES)
		memcpy(f->tickets[index][flow->tickets++], at + name_len, TICKET_BYTES);
}

// The head of an answer: how long it is, and what it brings.
static void begin_answer(struct flows *f, uint32_t index, struct span bytes)
{
	static const char length[] = "\r\nContent-Length: ";
	struct flow *flow = &f->flows[index];
	const char *end = memmem(bytes.at, bytes.len, "\r\n\r\n", 4);
	const char *field =
		end ? memmem(bytes.at, (size_t)(end - bytes.at), length, sizeof(length) - 1) : NULL;
	if (!end || !field || memcmp(bytes.at, "HTTP/1.1 200", 12) != 0) {
		if (f->tally.refused++ == 0)
			fprintf(stderr, "packets: not an answer to count: %.*s\n",
				(int)(bytes.len < 300 ? bytes.len : 300), bytes.at);
		flow->left = (uint32_t)bytes.len;
		return;
	}
	flow->left = (uint32_t)((size_t)(end + 4 - bytes.at) +
				strtoull(field + sizeof(length) - 1, NULL, 10));
	if (flow->tickets < tickets_wanted(&f->plan))
		take_ticket(f, index, (struct span){bytes.at, (size_t)(end - bytes.at)});
}

// Returns whether the flow has its tickets, and did not before this.
static bool becomes_ready(struct flows *f, struct flow *flow)
{
	if (flow->is_ready || flow->tickets < tickets_wanted(&f->plan))
		return false;
	flow->is_ready = true;
	f->tally.ready++;
	return true;
}

static void answered(struct flows *f, uint32_t index)
{
	struct flow *flow = &f->flows[index];
	flow->state = FLOW_OPEN;
	if (becomes_ready(f, flow)) {
		if (f->plan.mode == PLAN_IDLE) {
			say(f, index, WIRE_ACK, (struct span){0});
			f->under_way--; // and never again
			return;
		}
	} else if (flow->is_ready && f->plan.mode != PLAN_CONNECTIONS) {
		f->tally.answers++;
	}
	if (f->plan.mode == PLAN_CONNECTIONS && flow->is_ready) {
		flow->state = FLOW_CLOSING;
		say(f, index, WIRE_FIN | WIRE_ACK, (struct span){0});
		return;
	}
	queue(f, index);
}

static void take_data(struct flows *f, uint32_t index, const struct wire_segment *segment)
{
	struct flow *flow = &f->flows[index];
	if (flow->state != FLOW_ASKED || segment->seq != flow->ack) {
		f->tally.out_of_order++;
		return;
	}
	if (flow->left == 0)
		begin_answer(f, index, segment->payload);
	flow->ack += (uint32_t)segment->payload.len;
	flow->left -=
		(uint32_t)(segment->payload.len < flow->left ? segment->payload.len : flow->left);
	if (++flow->unacked == 2) // RFC 9293 3.8.6.3; one alone is acknowledged by what follows
		say(f, index, WIRE_ACK, (struct span){0});
	if (flow->left == 0)
		answered(f, index);
}

static void take_syn(struct flows *f, uint32_t index, const struct wire_segment *segment)
{
	struct flow *flow = &f->flows[index];
	if (flow->state != FLOW_OPENING || segment->ack != flow->seq) {
		f->tally.out_of_order++;
		return;
	}
	if (f->plan.mode == PLAN_SYN) {
		f->tally.answers++;
		close_flow(f, index);
		return;
	}
	flow->ack = segment->seq + 1;
	say(f, index, WIRE_ACK, (struct span){0});
	if (flow->is_ready && f->plan.mode == PLAN_IDLE) {
		flow->state = FLOW_OPEN;
		f->under_way--;
		return;
	}
	ask(f, index);
}

static void take_fin(struct flows *f, uint32_t index)
{
	struct flow *flow = &f->flows[index];
	flow->ack++;
	say(f, index, WIRE_ACK, (struct span){0});
	if (flow->state == FLOW_CLOSING)
		f->tally.answers++;
	else
		f->tally.resets++;
	if (flow->state == FLOW_OPEN)
		f->under_way++; // it stood in the queue, which it does not leave: open anew there
	close_flow(f, index);
}

void flows_take(struct flows *f, const struct wire_segment *segment)
{
	uint32_t index = segment->client_ip - CLIENTS;
	f->tally.segments_in++;
	if (index >= f->plan.flows || f->flows[index].port != segment->client_port)
		return; // of an earlier life
	struct flow *flow = &f->flows[index];
	if (flow->state == FLOW_CLOSED)
		return;
	if (segment->has_timestamp)
		flow->ts_echo = segment->ts_value;
	if (segment->flags & WIRE_RST) {
		f->tally.resets++;
		if (flow->state != FLOW_OPEN)
			close_flow(f, index);
		else
			flow->state = FLOW_CLOSED; // it stands in the queue already
		return;
	}
	if (segment->flags & WIRE_SYN) {
		take_syn(f, index, segment);
		return;
	}
	if (segment->payload.len > 0)
		take_data(f, index, segment);
	if (segment->flags & WIRE_FIN && flow->ack == segment->seq + segment->payload.len)
		take_fin(f, index);
}

void flows_mend(struct flows *f)
{
	for (uint32_t i = 0; i < f->plan.flows; i++) {
		struct flow *flow = &f->flows[i];
		bool waits = flow->state == FLOW_OPENING || flow->state == FLOW_ASKED ||
			     flow->state == FLOW_CLOSING;
		if (waits && f->now_ms - flow->sent_ms > STALL_MS) {
			f->tally.stalled++;
			close_flow(f, i);
		}
	}
}

const struct flows_tally *flows_tally(const struct flows *f)
{
	return &f->tally;
}
