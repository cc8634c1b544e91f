// Segments out. Every one carries the acknowledgement and the window of the moment, and the
// timestamp where agreed; SACK blocks while something is kept out of order (RFC 2018 4), for which
// the payload makes room.

#include "dataplane/net/tcp/emit.h"

#include <arpa/inet.h>
#include <string.h>

#include "dataplane/net/tcp/receive.h"
#include "dataplane/net/tcp/send.h"

enum option { OPTION_NOP = 1, OPTION_SACK = 5, OPTION_TIMESTAMP = 8 };

#define SACK_BYTES(count) (4u + 8u * (count)) // with two NOPs

static void put_u32(uint8_t *at, uint32_t value)
{
	value = htonl(value);
	memcpy(at, &value, sizeof(value));
}

static void put_timestamp(struct tcp *t, const struct tcp_conn *c, struct tcp_out *out)
{
	uint8_t *at = out->options + out->option_bytes;
	memcpy(at, (uint8_t[]){OPTION_NOP, OPTION_NOP, OPTION_TIMESTAMP, 10}, 4);
	put_u32(at + 4, send_timestamp(t, c));
	put_u32(at + 8, c->ts_recent);
	out->option_bytes += EMIT_TIMESTAMP_BYTES;
}

static void put_sacks(struct tcp *t, const struct tcp_conn *c, struct tcp_out *out)
{
	struct tcp_sack sacks[TCP_SACK_MAX];
	const unsigned count = receive_sacks(
		t, c, sacks, (TCP_OPTIONS_MAX - out->option_bytes - SACK_BYTES(0)) / 8);
	if (count == 0)
		return;
	uint8_t *at = out->options + out->option_bytes;
	memcpy(at, (uint8_t[]){OPTION_NOP, OPTION_NOP, OPTION_SACK, (uint8_t)(2 + 8 * count)}, 4);
	for (unsigned i = 0; i < count; i++) {
		put_u32(at + SACK_BYTES(i), sacks[i].from);
		put_u32(at + SACK_BYTES(i) + 4, sacks[i].to);
	}
	out->option_bytes += (uint8_t)SACK_BYTES(count);
}

// All but the payload. What is due is acknowledged by it.
static void begin(struct tcp *t, struct tcp_conn *c, struct tcp_out *out, uint32_t seq)
{
	out->local = &c->stream.local;
	out->peer = &c->stream.peer;
	out->hop = &c->hop;
	out->seq = seq;
	out->ack = c->rcv_nxt;
	out->window = receive_window(t, c);
	out->flags = TCP_ACK;
	out->option_bytes = 0;
	out->part_count = 0;
	out->is_control = false;
	if (c->flags & TCP_CONN_TIMESTAMPS)
		put_timestamp(t, c, out);
	if (c->work != 0 && (c->flags & TCP_CONN_SACK))
		put_sacks(t, c, out);
	c->flags &= (uint16_t) ~(TCP_CONN_ACK_DUE | TCP_CONN_ACK_NOW | TCP_CONN_SCALE_UNSURE);
	tcp_count(t, TCP_segments_out);
}

// The payload, as spans. An answer that leaves whole while it is written is read where its writer
// has it: reading back what was copied a moment ago stalls.
static void put_payload(
	struct tcp *t, struct tcp_queue *queue, uint32_t offset, uint32_t len, struct tcp_out *out)
{
	const struct tcp_written *written = &t->written;
	if (len == written->bytes && offset + len == queue->bytes) {
		out->part_count = written->count;
		for (unsigned i = 0; i < written->count; i++)
			out->parts[i] = written->parts[i];
	} else {
		out->part_count =
			chunks_at(&t->send_chunks, queue, offset, len, out->parts, TCP_PARTS_MAX);
	}
}

uint32_t emit_data(
	struct tcp *t, struct tcp_conn *c, struct tcp_work *work, uint32_t seq, uint32_t len)
{
	struct tcp_queue *queue = &work->send.queue;
	const uint32_t offset = seq - c->snd_una;
	assert(offset <= queue->bytes);
	struct tcp_out out;
	begin(t, c, &out, seq);
	const uint32_t sack_bytes =
		out.option_bytes - (c->flags & TCP_CONN_TIMESTAMPS ? EMIT_TIMESTAMP_BYTES : 0);
	const uint32_t room = c->mss - sack_bytes; // c->mss counts the timestamp alone
	const uint32_t left = queue->bytes - offset;
	uint32_t payload = len < left ? len : left;
	if (payload > room)
		payload = room;
	if (payload > 0)
		put_payload(t, queue, offset, payload, &out);
	uint32_t taken = 0;
	for (unsigned i = 0; i < out.part_count; i++)
		taken += (uint32_t)out.parts[i].len;
	if (taken == left) {
		out.flags |= left > 0 ? TCP_PSH : 0;
		if (taken < len) {
			assert(c->flags & TCP_CONN_FIN_QUEUED);
			out.flags |= TCP_FIN;
			taken++;
		}
	}
	t->io->send(t->io->ctx, &out);
	assert(taken > 0);
	return taken;
}

void emit_bare(struct tcp *t, struct tcp_conn *c, uint8_t flags)
{
	struct tcp_out out;
	begin(t, c, &out, c->snd_nxt);
	out.flags = flags;
	out.is_control = flags & TCP_RST;
	t->io->send(t->io->ctx, &out);
}
