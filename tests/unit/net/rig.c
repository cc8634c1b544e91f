// See rig.h. The functions of the receiving half that the sending half calls are here too.

#include "tests/unit/net/rig.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdlib.h>
#include <string.h>

#include <arpa/inet.h>
#include <cmocka.h>

#include "dataplane/net/tcp/receive.h"
#include "dataplane/net/tcp/state.h"

#define ISS 0xfffff000u // so that sequence numbers wrap soon

static struct rig *of(const struct tcp *t)
{
	return (struct rig *)t->io->ctx;
}

uint16_t receive_window(const struct tcp *t, struct tcp_conn *c)
{
	(void)t;
	(void)c;
	return 777;
}

unsigned receive_sacks(
	const struct tcp *t, const struct tcp_conn *c, struct tcp_sack *sacks, unsigned max)
{
	(void)c;
	const struct rig *rig = of(t);
	const unsigned count = rig->sack_count < max ? rig->sack_count : max;
	memcpy(sacks, rig->sacks, count * sizeof(sacks[0]));
	return count;
}

void tcp_tell(struct tcp *t, struct tcp_conn *c, enum stream_event_kind kind, struct span data)
{
	assert_true(t->event_count < t->event_max);
	t->events[t->event_count++] =
		(struct stream_event){.kind = kind, .stream = &c->stream, .data = data};
}

void state_set(struct tcp_conn *c, enum tcp_state to)
{
	c->state = to;
}

static uint32_t read_u32(const uint8_t *at)
{
	uint32_t value;
	memcpy(&value, at, sizeof(value));
	return ntohl(value);
}

static void read_options(const struct tcp_out *out, struct rig_out *caught)
{
	assert_int_equal(out->option_bytes % 4, 0);
	for (unsigned at = 0; at < out->option_bytes;) {
		const uint8_t kind = out->options[at], len = kind == 1 ? 1 : out->options[at + 1];
		if (kind == 8) {
			caught->stamp = read_u32(out->options + at + 2);
			caught->echo = read_u32(out->options + at + 6);
		} else if (kind == 5) {
			caught->sack_count = (len - 2u) / 8;
		} else {
			assert_int_equal(kind, 1);
		}
		at += len;
	}
}

static void catch (void *ctx, const struct tcp_out *out)
{
	struct rig *rig = ctx;
	struct rig_out caught = {.seq = out->seq - ISS,
		.flags = out->flags,
		.window = out->window,
		.at_us = rig->t.now_us};
	read_options(out, &caught);
	assert_true(out->part_count <= TCP_PARTS_MAX);
	for (unsigned i = 0; i < out->part_count; i++) {
		const uint32_t at = caught.seq + caught.len;
		assert_true(out->parts[i].len > 0 && at + out->parts[i].len <= rig->written);
		assert_memory_equal(out->parts[i].at, rig->stream + at, out->parts[i].len);
		caught.len += (uint32_t)out->parts[i].len;
	}
	assert_true(caught.len + out->option_bytes <=
		    rig->c.mss + (rig->c.flags & TCP_CONN_TIMESTAMPS ? 12u : 0));
	assert_true(rig->out_count < RIG_OUT_MAX);
	rig->outs[rig->out_count++] = caught;
	if (rig->caught)
		rig->caught(rig, &caught);
}

static uint64_t no_random(void *ctx)
{
	(void)ctx;
	return 4;
}

void rig_start(struct rig *rig, unsigned flags)
{
	memset(rig, 0, sizeof(*rig));
	rig->stream = malloc(RIG_STREAM_BYTES);
	assert_non_null(rig->stream);
	for (uint32_t i = 0; i < RIG_STREAM_BYTES; i++)
		rig->stream[i] = (char)(i * 2654435761u >> 24);
	rig->io = (struct tcp_io){.ctx = rig, .send = catch, .random = no_random};
	struct tcp *t = &rig->t;
	t->io = &rig->io;
	t->plan = (struct tcp_plan){.works_max = 1,
		.receive_chunks = 1,
		.send_max = 256 << 10,
		.queue_high = 64 << 10,
		.rto_min_us = 200000,
		.rto_max_us = 60000000,
		.give_up_us = 120000000};
	t->events = rig->events;
	t->event_max = 8;
	assert_int_equal(chunks_init(&t->send_chunks, 1024, 512), 0);
	assert_int_equal(work_init(t), 0);
	struct tcp_conn *c = &rig->c;
	c->snd_una = c->snd_nxt = ISS;
	c->snd_wnd = 65535;
	c->mss = RIG_MSS;
	c->flags = (uint16_t)flags;
	c->state = TCP_ESTABLISHED;
	c->ts_offset = 99;
	rig_wait(rig, 5000000);
}

void rig_end(struct rig *rig)
{
	send_drop(&rig->t, &rig->c);
	work_give(&rig->t, &rig->c);
	assert_int_equal(rig->t.send_chunks.free_count, rig->t.send_chunks.count);
	assert_int_equal(atomic_load(&rig->t.stats.working), 0);
	work_fini(&rig->t);
	chunks_fini(&rig->t.send_chunks);
	free(rig->stream);
}

void rig_wait(struct rig *rig, uint64_t us)
{
	rig->t.now_us += us;
	rig->t.now_ms = (uint32_t)(rig->t.now_us / 1000);
	rig->t.event_count = 0;
}

uint64_t rig_left_ms(const struct rig *rig)
{
	const uint64_t deadline = send_deadline(&rig->t, &rig->c);
	return deadline == UINT64_MAX ? UINT64_MAX : (deadline - rig->t.now_us) / 1000;
}

bool rig_due(struct rig *rig)
{
	const uint64_t deadline = send_deadline(&rig->t, &rig->c);
	assert_true(deadline != UINT64_MAX);
	if (deadline > rig->t.now_us)
		rig_wait(rig, deadline - rig->t.now_us);
	return send_due(&rig->t, &rig->c);
}

size_t rig_write(struct rig *rig, uint32_t bytes)
{
	assert_true(rig->written + bytes <= RIG_STREAM_BYTES);
	const struct span part = {rig->stream + rig->written, bytes};
	rig->written += bytes; // what goes out at once is checked against it
	const size_t taken = send_write(&rig->t, &rig->c, &part, 1);
	rig->written -= bytes - (uint32_t)taken;
	return taken;
}

bool rig_ack_full(struct rig *rig, uint32_t ack, uint32_t window, uint32_t echo,
	const struct tcp_sack *sacks, unsigned sack_count)
{
	struct tcp_segment segment = {.seq = 0,
		.ack = ISS + ack,
		.window = (uint16_t)window,
		.flags = TCP_ACK,
		.has_timestamp = rig->c.flags & TCP_CONN_TIMESTAMPS,
		.ts_echo = echo,
		.sack_count = (uint8_t)sack_count};
	for (unsigned i = 0; i < sack_count; i++)
		segment.sacks[i] = (struct tcp_sack){ISS + sacks[i].from, ISS + sacks[i].to};
	return send_acked(&rig->t, &rig->c, &segment);
}

static uint32_t last_stamp(const struct rig *rig)
{
	return rig->out_count > 0 ? rig_last(rig)->stamp : rig->stamp;
}

bool rig_ack(struct rig *rig, uint32_t ack)
{
	return rig_ack_full(rig, ack, rig->c.snd_wnd, last_stamp(rig), NULL, 0);
}

bool rig_sack(struct rig *rig, uint32_t ack, unsigned count, ...)
{
	struct tcp_sack sacks[TCP_SACK_MAX];
	va_list list;
	va_start(list, count);
	for (unsigned i = 0; i < count; i++) {
		sacks[i].from = va_arg(list, uint32_t);
		sacks[i].to = va_arg(list, uint32_t);
	}
	va_end(list);
	return rig_ack_full(rig, ack, rig->c.snd_wnd, last_stamp(rig), sacks, count);
}

const struct rig_out *rig_last(const struct rig *rig)
{
	assert_true(rig->out_count > 0);
	return &rig->outs[rig->out_count - 1];
}

void rig_forget(struct rig *rig)
{
	rig->stamp = last_stamp(rig);
	rig->out_count = 0;
}

struct tcp_work_send *rig_send(struct rig *rig)
{
	return &work_of(&rig->t, &rig->c)->send;
}

uint64_t rig_count(const struct rig *rig, enum tcp_counter which)
{
	return atomic_load(&rig->t.stats.counters[which]);
}
