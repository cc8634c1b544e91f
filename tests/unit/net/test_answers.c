// Answers in flight: what they hold, how much of it there is, and that they are the same bytes
// whenever and however they are sent again. The writer's buffer serves its next answer meanwhile.

#include "dataplane/net/tcp/work.h"
#include "tests/unit/net/wire.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#define SEEDS 300u
#define ANSWERS 6u
#define ANSWER_MAX 6000u

static struct wire wire;
static char reply[ANSWER_MAX]; // one buffer for all, as a worker has it
static char stream[ANSWERS * ANSWER_MAX]; // what was written, in order
static uint32_t written;

static int start(void **state)
{
	(void)state;
	wire_start(&wire);
	return 0;
}

static int end(void **state)
{
	(void)state;
	wire_end(&wire);
	return 0;
}

static uint32_t below(uint32_t limit)
{
	return (uint32_t)rand() % limit;
}

static size_t write_reply(uint32_t len)
{
	for (uint32_t i = 0; i < len; i++)
		reply[i] = (char)rand();
	const struct span part = {reply, len};
	wire_turn(&wire, NULL, 0);
	const size_t taken = tcp_write(wire.t, wire.stream, &part, 1);
	memcpy(stream + written, reply, taken);
	written += (uint32_t)taken;
	memset(reply, '!', sizeof(reply)); // before any of it can be sent again
	wire_flush(&wire);
	return taken;
}

// All that went out is of the stream, each byte at its place. Returns the highest that did.
static uint32_t check_sent(void)
{
	uint32_t highest = 0;
	for (unsigned i = 0; i < wire.out_count; i++) {
		const struct wire_out *out = &wire.outs[i];
		const uint32_t at = out->seq - wire.cookie - 1;
		if (out->len == 0)
			continue;
		assert_true(at + out->len <= written);
		assert_memory_equal(out->text, stream + at, out->len);
		if (at + out->len > highest)
			highest = (uint32_t)(at + out->len);
	}
	wire_forget(&wire);
	return highest;
}

static void test_sent_again_byte_for_byte(void **state)
{
	(void)state;
	uint64_t again = 0;
	for (unsigned seed = 0; seed < SEEDS; seed++) {
		srand(seed);
		print_message("seed %u\n", seed);
		wire.peer.port++;
		wire_open(&wire, seed % 8);
		written = 0;
		const uint64_t before = wire_count(&wire, TCP_retransmitted);
		uint32_t sent = 0, acked = 0;
		for (unsigned i = 0; i < ANSWERS; i++) {
			write_reply(1 + below(ANSWER_MAX));
			for (unsigned wait = below(4); wait > 0; wait--)
				wire_wait(&wire, 50000 + below(500000));
			struct tcp_segment quoted = {.peer = wire.peer,
				.local = wire.local,
				.seq = wire.cookie + 1 + acked};
			if (below(4) == 0) { // what is cut again is cut otherwise
				wire_turn(&wire, NULL, 0);
				tcp_too_big(wire.t, &quoted, (uint16_t)(600 + below(800)));
				wire_flush(&wire);
			}
			const uint32_t highest = check_sent();
			sent = highest > sent ? highest : sent;
			acked += below(sent - acked + 1);
			wire.ack = 1 + acked;
			wire_send(&wire, TCP_ACK, 1, NULL);
		}
		again += wire_count(&wire, TCP_retransmitted) - before;
		check_sent();
		wire_close(&wire, true);
		wire_forget(&wire);
		wire_wait(&wire, 1000);
	}
	assert_true(again > SEEDS);
}

// An answer of one segment is a work and a chunk until it is acknowledged; then nothing is left.
static void test_idle_holds_nothing(void **state)
{
	(void)state;
	wire_open(&wire, WIRE_ALL);
	written = 0;
	assert_int_equal(write_reply(350), 350);
	assert_int_equal(wire_conn(&wire)->work != 0, true);
	assert_int_equal(wire.t->send_chunks.free_count, wire.plan.send_chunks - 1);
	wire.ack += 350;
	wire_send(&wire, TCP_ACK, 1, NULL);
	assert_int_equal(wire_conn(&wire)->work, 0);
	assert_int_equal(wire.t->send_chunks.free_count, wire.plan.send_chunks);
	assert_int_equal(tcp_stats(wire.t)->working, 0);
}

// However many connections there are, what is in flight on them has the pools of the plan; who
// finds these empty is told so, and has place as soon as somebody acknowledges.
static void test_answers_in_flight_are_bounded(void **state)
{
	(void)state;
	wire_end(&wire);
	wire.plan.connections_max = 40;
	wire.plan.works_max = 16;
	wire.plan.send_chunks = 16;
	wire_make(&wire);
	struct wire first;
	for (unsigned i = 0; i < 40; i++) {
		wire.peer.port++;
		wire_open(&wire, WIRE_ALL);
		if (i == 0)
			first = wire;
		written = 0;
		assert_int_equal(write_reply(350), i < 16 ? 350 : 0);
		assert_int_equal(tcp_stats(wire.t)->working, i < 16 ? i + 1 : 16);
		wire_forget(&wire);
	}
	assert_int_equal(wire_count(&wire, TCP_send_none), 24);
	assert_int_equal(wire.t->send_chunks.free_count, 0);
	struct tcp_segment ack = wire_segment(&first, TCP_ACK, 1, NULL);
	ack.ack += 350;
	wire_give(&wire, ack);
	assert_int_equal(write_reply(350), 350);
}

#define TEST(name) cmocka_unit_test_setup_teardown(name, start, end)

int main(void)
{
	const struct CMUnitTest tests[] = {
		TEST(test_sent_again_byte_for_byte),
		TEST(test_idle_holds_nothing),
		TEST(test_answers_in_flight_are_bounded),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
