// Two workers and ports with one queue: who gets a frame, and what leaves for whom.

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "drivers/ethdev/dispatch.h"
#include "tests/unit/ethdev/rig.h"

#include <rte_ether.h>

#include <string.h>

#define SEED 7u

static unsigned owner_of(const uint8_t *bytes, unsigned len, unsigned workers)
{
	struct rte_mbuf *frame = rig_frame(bytes, len);
	unsigned owner = dispatch_owner(frame, SEED, workers);
	assert_int_equal(owner, dispatch_owner(frame, SEED, workers));
	rte_pktmbuf_free(frame);
	return owner;
}

// Put a tag behind the addresses.
static unsigned tag(uint8_t frame[2048], unsigned len)
{
	memmove(frame + 16, frame + 12, len - 12);
	memcpy(frame + 12, "\x81\x00\x00\x05", 4);
	return len + 4;
}

static void test_flows_are_spread(void **state)
{
	(void)state;
	for (unsigned workers = 1; workers <= ETHDEV_WORKERS_MAX; workers *= 2) {
		unsigned each[2][ETHDEV_WORKERS_MAX] = {{0}};
		uint8_t bytes[2048];
		for (uint16_t i = 0; i < 64 * workers; i++) {
			each[0][owner_of(bytes, rig_segment(bytes, i, 0), workers)]++;
			each[1][owner_of(bytes, rig_segment_v6(bytes, i, 0), workers)]++;
		}
		for (unsigned i = 0; i < workers; i++) { // 64 each, give or take
			assert_in_range(each[0][i], workers == 1 ? 64 : 24, 112);
			assert_in_range(each[1][i], workers == 1 ? 64 : 24, 112);
		}
	}
}

// What a segment carries, and a tag, change nothing.
static void test_a_flow_stays(void **state)
{
	(void)state;
	uint8_t bytes[2048];
	for (uint16_t i = 0; i < 64; i++) {
		unsigned first = owner_of(bytes, rig_segment(bytes, i, 0), 8);
		assert_int_equal(owner_of(bytes, rig_segment(bytes, i, 900), 8), first);
		assert_int_equal(owner_of(bytes, tag(bytes, rig_segment(bytes, i, 9)), 8), first);
		first = owner_of(bytes, rig_segment_v6(bytes, i, 0), 8);
		assert_int_equal(
			owner_of(bytes, tag(bytes, rig_segment_v6(bytes, i, 9)), 8), first);
	}
}

// Fragments have no ports, but for the first, which must go where the others do.
static void test_fragments_stay_together(void **state)
{
	(void)state;
	uint8_t bytes[2048];
	unsigned len = rig_segment(bytes, 1, 100);
	bytes[14 + 6] = 0x20; // more come
	unsigned first = owner_of(bytes, len, 8);
	for (uint16_t i = 0; i < 64; i++) {
		len = rig_segment(bytes, i, 100);
		bytes[14 + 7] = 185; // not the first
		assert_int_equal(owner_of(bytes, len, 8), first);
	}
	for (uint16_t i = 0; i < 64; i++) { // the same with a fragment header
		len = rig_segment_v6(bytes, i, 100);
		bytes[14 + 6] = 44;
		if (i == 0)
			first = owner_of(bytes, len, 8);
		assert_int_equal(owner_of(bytes, len, 8), first);
	}
}

static void test_the_rest_is_for_worker_0(void **state)
{
	(void)state;
	static const struct {
		const char *name;
		unsigned at;
		uint8_t byte;
		bool is_v6;
	} table[] = {
		{"ARP", 13, 0x06, false},
		{"an unknown type", 12, 0x90, false},
		{"UDP", 14 + 9, 17, false},
		{"ICMP", 14 + 9, 1, false},
		{"UDP over IPv6", 14 + 6, 17, true},
		{"ICMPv6", 14 + 6, 58, true},
	};
	for (size_t i = 0; i < sizeof(table) / sizeof(table[0]); i++)
		for (uint16_t source = 0; source < 32; source++) {
			uint8_t bytes[2048];
			unsigned len = table[i].is_v6 ? rig_segment_v6(bytes, source, 10)
						      : rig_segment(bytes, source, 10);
			bytes[table[i].at] = table[i].byte;
			print_message("%s\n", table[i].name);
			assert_int_equal(owner_of(bytes, len, 8), 0);
		}
}

// Cut anywhere, or with a header that says too much: no byte beyond the frame is read (the frame
// ends where the buffer does), and somebody gets it.
static void test_cut_frames(void **state)
{
	(void)state;
	uint8_t bytes[2048];
	for (int is_v6 = 0; is_v6 < 2; is_v6++) {
		unsigned all = tag(
			bytes, is_v6 ? rig_segment_v6(bytes, 5, 20) : rig_segment(bytes, 5, 20));
		for (unsigned len = 1; len <= all; len++) {
			struct rte_mbuf *frame = rig_frame("", 0);
			unsigned room = rte_pktmbuf_tailroom(frame);
			rte_pktmbuf_append(frame, (uint16_t)room);
			char *at = rte_pktmbuf_adj(frame, (uint16_t)(room - len));
			memcpy(at, bytes, len);
			assert_true(dispatch_owner(frame, SEED, 8) < 8);
			rte_pktmbuf_free(frame);
		}
	}
	unsigned len = rig_segment(bytes, 5, 0);
	bytes[14] = 0x4f; // a header of 60 bytes, in a packet of 40
	assert_true(owner_of(bytes, len, 8) < 8);
}

static struct rig_port port;
static struct ethdev *devices;
static struct ethdev_worker *workers[2];

static int start(void **state)
{
	(void)state;
	port = rig_make("dispatch", 1, 1, 2048);
	struct ethdev_plan plan = rig_plan(port.device, 2);
	devices = rig_open(&plan);
	for (unsigned i = 0; i < 2; i++) {
		workers[i] = ethdev_worker(devices, i);
		ethdev_turn(workers[i]);
	}
	return 0;
}

static int stop(void **state)
{
	(void)state;
	ethdev_close(devices);
	assert_int_equal(rig_free_buffers() + rte_ring_count(port.in[0]), 8192);
	rig_free(&port);
	return 0;
}

static unsigned receive(unsigned worker)
{
	struct rte_mbuf *frames[ETHDEV_BURST_MAX];
	unsigned count = ethdev_receive(workers[worker], frames, ETHDEV_BURST_MAX);
	ethdev_free(workers[worker], frames, count);
	return count;
}

// The port has one queue, worker 0's; worker 1 gets its flows over the ring.
static void test_frames_reach_both(void **state)
{
	(void)state;
	unsigned got[2] = {0};
	uint8_t bytes[2048];
	assert_true(ethdev_port(devices, 0)->is_dispatched);
	assert_int_equal(ethdev_port(devices, 0)->rx_queues, 1);
	for (uint16_t i = 0; i < 320; i++)
		rig_arrive(&port, 0, rig_frame(bytes, rig_segment(bytes, i, 4)));
	for (int turn = 0; turn < 40; turn++)
		for (unsigned i = 0; i < 2; i++)
			got[i] += receive(i);
	assert_int_equal(got[0] + got[1], 320);
	assert_in_range(got[1], 80, 240);
	assert_int_equal(rig_counter(workers[0], ETHDEV_frames_in), 320);
	assert_int_equal(rig_counter(workers[1], ETHDEV_frames_in), 0);
	assert_int_equal(rig_counter(workers[0], ETHDEV_dispatched), got[1]);
	assert_int_equal(rig_counter(workers[0], ETHDEV_dispatch_full), 0);
}

// Worker 1 does not look: its ring fills up, and then its frames are dropped.
static void test_a_worker_that_does_not_look(void **state)
{
	(void)state;
	uint8_t bytes[2048];
	unsigned got = 0;
	for (uint16_t i = 0; i < 2000; i++)
		rig_arrive(&port, 0, rig_frame(bytes, rig_segment(bytes, i, 4)));
	for (int turn = 0; turn < 200; turn++)
		got += receive(0);
	uint64_t handed = rig_counter(workers[0], ETHDEV_dispatched);
	uint64_t lost = rig_counter(workers[0], ETHDEV_dispatch_full);
	assert_int_equal(got + handed + lost, 2000);
	assert_int_equal(handed, 511); // a ring of 512 holds one less
	assert_true(lost > 0);
	for (got = 0; handed > got;)
		got += receive(1);
	assert_int_equal(receive(1), 0);
}

// Worker 1 has no send queue: its frames leave with the flush of worker 0.
static void test_frames_leave_for_another(void **state)
{
	(void)state;
	uint16_t id = ethdev_port(devices, 0)->id;
	for (unsigned i = 0; i < 600; i++) {
		struct rte_mbuf *frame = ethdev_take(workers[1], false);
		rte_pktmbuf_append(frame, 60);
		ethdev_send(workers[1], id, frame);
	}
	ethdev_flush(workers[1]);
	assert_int_equal(rte_ring_count(port.out[0]), 0);
	assert_int_equal(rig_counter(workers[1], ETHDEV_dispatched), 511);
	assert_int_equal(rig_counter(workers[1], ETHDEV_dispatch_full), 600 - 511);
	for (int turn = 0; turn < 20; turn++)
		ethdev_flush(workers[0]);
	assert_int_equal(rte_ring_count(port.out[0]), 511);
	assert_int_equal(rig_counter(workers[0], ETHDEV_frames_out), 511);
}

#define STORY(test) cmocka_unit_test_setup_teardown(test, start, stop)

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_flows_are_spread),
		cmocka_unit_test(test_a_flow_stays),
		cmocka_unit_test(test_fragments_stay_together),
		cmocka_unit_test(test_the_rest_is_for_worker_0),
		cmocka_unit_test(test_cut_frames),
		STORY(test_frames_reach_both),
		STORY(test_a_worker_that_does_not_look),
		STORY(test_frames_leave_for_another),
	};
	rig_eal();
	return cmocka_run_group_tests(tests, NULL, NULL);
}
