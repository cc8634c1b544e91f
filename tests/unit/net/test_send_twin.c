// The sending half against a naive peer over a path that loses, delays, doubles and re-orders:
// every byte is sent and arrives, what is sent again is the same (rig.c compares each payload),
// what is in flight stays within both windows, and it ends.

#include "tests/unit/net/rig.h"

#include "dataplane/net/tcp/flight.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#define STREAM_BYTES 150000u
#define ON_PATH_MAX 1024u
#define SEEDS 60u

struct on_path { // a segment out, or an acknowledgement back
	uint64_t at_us; // when it arrives; 0: free
	uint32_t seq, len; // FIN included
	uint32_t stamp;
	uint32_t ack, window;
	struct tcp_sack sacks[TCP_SACK_MAX];
	unsigned sack_count;
};

static struct rig rig;
static struct {
	struct on_path out[ON_PATH_MAX], back[ON_PATH_MAX];
	bool has[STREAM_BYTES + 2]; // what the peer holds; the FIN is one
	uint32_t ack, end; // next expected; how much there will be
	uint32_t window, edge; // what it takes; the rightmost it ever allowed
	uint32_t stamp; // to echo
	struct tcp_sack latest[TCP_SACK_MAX];
	unsigned latest_count;
	bool has_sent; // something came from us since the last look
	unsigned loss; // of 100, either way
	uint32_t delay_us;
} peer;

static void put(struct on_path *path, struct on_path what)
{
	if ((unsigned)rand() % 100 < peer.loss)
		return;
	for (unsigned copies = rand() % 50 == 0 ? 2 : 1; copies > 0; copies--)
		for (unsigned i = 0; i < ON_PATH_MAX; i++)
			if (path[i].at_us == 0) {
				path[i] = what;
				path[i].at_us =
					rig.t.now_us + peer.delay_us +
					(uint32_t)rand() % (rand() % 20 ? 200 : peer.delay_us);
				break;
			}
}

static void caught(struct rig *of, const struct rig_out *out)
{
	(void)of;
	rig_forget(&rig);
	peer.has_sent = true;
	put(peer.out, (struct on_path){.seq = out->seq,
			      .len = out->len + !!(out->flags & TCP_FIN),
			      .stamp = out->stamp});
}

// The blocks of RFC 2018: the one that `seq` is in first, then those told before.
static void note_block(uint32_t seq)
{
	struct tcp_sack block = {seq, seq};
	while (block.from > peer.ack && peer.has[block.from - 1])
		block.from--;
	while (block.to < peer.end && peer.has[block.to])
		block.to++;
	struct tcp_sack blocks[TCP_SACK_MAX] = {block};
	unsigned count = block.from < block.to && block.from > peer.ack;
	for (unsigned i = 0; i < peer.latest_count && count < TCP_SACK_MAX; i++)
		if (peer.latest[i].from > peer.ack &&
			(peer.latest[i].to < block.from || peer.latest[i].from > block.to))
			blocks[count++] = peer.latest[i];
	memcpy(peer.latest, blocks, sizeof(blocks));
	peer.latest_count = count;
}

static void answer(void)
{
	struct on_path back = {.ack = peer.ack, .window = peer.window, .stamp = peer.stamp};
	if (peer.ack + peer.window > peer.edge)
		peer.edge = peer.ack + peer.window;
	else if (rig.c.flags & TCP_CONN_TIMESTAMPS) // as kernels do: never back
		back.window = peer.edge - peer.ack;
	if (rig.c.flags & TCP_CONN_SACK) {
		back.sack_count = peer.latest_count;
		memcpy(back.sacks, peer.latest, sizeof(back.sacks));
	}
	put(peer.back, back);
}

static void arrive_there(const struct on_path *segment)
{
	for (uint32_t i = segment->seq; i < segment->seq + segment->len; i++)
		if (i < peer.edge)
			peer.has[i] = true;
	if (segment->seq <= peer.ack)
		peer.stamp = segment->stamp;
	while (peer.ack < peer.end && peer.has[peer.ack])
		peer.ack++;
	note_block(segment->seq);
	if (rand() % 4)
		peer.window = (uint32_t)rand() % 60000;
	if (rand() % 40 == 0)
		peer.window = 0;
	answer();
}

static void arrive_here(const struct on_path *back, bool *has_fin)
{
	const uint32_t una = STREAM_BYTES + 1 - (peer.end - (rig.c.snd_una - 0xfffff000u));
	if (back->ack < una || rig.c.state == TCP_FIN_WAIT_2)
		return; // old: the caller's to drop
	if (rig_ack_full(
		    &rig, back->ack, back->window, back->stamp, back->sacks, back->sack_count)) {
		*has_fin = true;
		rig.c.state = TCP_FIN_WAIT_2;
	}
}

// The map covers what is in flight, ascending, and its sums are right.
static void check_map(const struct tcp_work_send *s)
{
	uint32_t sums[3] = {0};
	assert_true(s->run_count <= TCP_RUNS_MAX);
	assert_int_equal(s->run_count > 0, rig.c.snd_nxt != rig.c.snd_una);
	if (s->run_count > 0)
		assert_int_equal(s->runs[0].from, rig.c.snd_una);
	for (unsigned i = 0; i < s->run_count; i++) {
		assert_true(tcp_after(flight_end(&rig.c, s, i), s->runs[i].from));
		sums[s->runs[i].fate] += flight_end(&rig.c, s, i) - s->runs[i].from;
	}
	assert_int_equal(sums[TCP_FATE_LOST], s->lost);
	if (rig.c.flags & TCP_CONN_SACK)
		assert_int_equal(sums[TCP_FATE_HELD], s->sacked);
}

// In flight: within the peer's window, but for the byte that probes it; and, as far as anybody who
// sees only what goes in and out can tell, within cwnd.
static void check_flight(void)
{
	const bool has_sent = peer.has_sent;
	peer.has_sent = false;
	const uint32_t nxt = rig.c.snd_nxt - 0xfffff000u;
	assert_true(nxt <= peer.edge || nxt == (rig.c.snd_una - 0xfffff000u) + 1);
	if (!rig.c.work || !has_sent)
		return;
	const struct tcp_work_send *s = rig_send(&rig);
	const uint32_t pipe = flight_pipe(&rig.c, s);
	const uint32_t probe = s->probing != TCP_PROBING_NOT ? RIG_MSS : 0;
	// RFC 3042: without SACK, what duplicates let out stays when they prove to have been none.
	const uint32_t limited = rig.c.flags & TCP_CONN_SACK ? 0 : 2 * RIG_MSS;
	assert_true(pipe <= s->cwnd + probe + limited + 1);
	assert_true(s->sacked <= nxt - (rig.c.snd_una - 0xfffff000u));
	check_map(s);
}

static uint64_t next_us(void)
{
	uint64_t at_us = send_deadline(&rig.t, &rig.c);
	for (unsigned i = 0; i < ON_PATH_MAX; i++) {
		if (peer.out[i].at_us && peer.out[i].at_us < at_us)
			at_us = peer.out[i].at_us;
		if (peer.back[i].at_us && peer.back[i].at_us < at_us)
			at_us = peer.back[i].at_us;
	}
	return at_us;
}

static void run(unsigned seed)
{
	srand(seed);
	const unsigned flags[] = {
		0, TCP_CONN_SACK, TCP_CONN_TIMESTAMPS, TCP_CONN_SACK | TCP_CONN_TIMESTAMPS};
	memset(&peer, 0, sizeof(peer));
	rig_start(&rig, flags[seed % 4]);
	rig.caught = caught;
	rig.t.plan.send_max = 60000;
	rig.t.plan.queue_high = 20000;
	peer.loss = (unsigned[]){0, 1, 5, 20, 30}[seed / 4 % 5];
	peer.delay_us = 100 + (uint32_t)rand() % 60000;
	peer.end = STREAM_BYTES + 1;
	peer.edge = peer.window = 65535;
	bool has_fin = false, fin_sent = false;
	while (!has_fin) {
		if (rig.written < STREAM_BYTES && send_queued(&rig.t, &rig.c) < 20000) {
			const uint32_t left = STREAM_BYTES - rig.written;
			const uint32_t len = 1 + (uint32_t)rand() % 9000;
			const uint32_t room =
				rig.c.work ? 60000 - rig_send(&rig)->queue.bytes : 60000;
			uint32_t bytes = len < left ? len : left;
			if (bytes > room)
				bytes = room;
			if (bytes > 0)
				rig_write(&rig, bytes);
		} else if (rig.written == STREAM_BYTES && !fin_sent) {
			fin_sent = send_fin(&rig.t, &rig.c);
		}
		check_flight();
		const uint64_t at_us = next_us();
		if (at_us == UINT64_MAX && rig.written < STREAM_BYTES)
			continue; // all was acknowledged: write on
		assert_true(at_us != UINT64_MAX); // else it would hang
		if (at_us > rig.t.now_us)
			rig_wait(&rig, at_us - rig.t.now_us);
		if (!send_due(&rig.t, &rig.c)) {
			// Only where hardly anything comes through may that be.
			assert_true(peer.loss >= 20);
			break;
		}
		check_flight();
		for (unsigned i = 0; i < ON_PATH_MAX; i++) {
			if (peer.out[i].at_us && peer.out[i].at_us <= rig.t.now_us) {
				arrive_there(&peer.out[i]);
				peer.out[i].at_us = 0;
			}
			if (peer.back[i].at_us && peer.back[i].at_us <= rig.t.now_us && !has_fin) {
				rig.t.event_count = 0;
				arrive_here(&peer.back[i], &has_fin);
				check_flight();
				peer.back[i].at_us = 0;
			}
		}
	}
	if (has_fin) {
		assert_int_equal(peer.ack, peer.end);
		assert_int_equal(rig_count(&rig, TCP_bytes_out), STREAM_BYTES);
		assert_true(send_is_idle(&rig.t, &rig.c));
	}
	rig_end(&rig);
}

static void test_arrives(void **state)
{
	(void)state;
	for (unsigned seed = 0; seed < SEEDS; seed++) {
		print_message("seed %u\n", seed);
		run(seed);
	}
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_arrives),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
