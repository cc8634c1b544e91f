// One worker, one port: frames in, frames out, and what happens when there is no room.

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "drivers/ethdev/inside.h"
#include "tests/unit/ethdev/rig.h"

#include <rte_ethdev.h>

#include <stdio.h>
#include <string.h>

static struct rig_port port;
static struct ethdev *devices;
static struct ethdev_worker *w;

static int start(void **state)
{
	(void)state;
	port = rig_make("one", 1, 1, 1024);
	struct ethdev_plan plan = rig_plan(port.device, 1);
	devices = rig_open(&plan);
	w = ethdev_worker(devices, 0);
	ethdev_turn(w);
	return 0;
}

static int stop(void **state)
{
	(void)state;
	ethdev_close(devices);
	rig_free(&port);
	return 0;
}

static struct rte_mbuf *take_text(const char *text)
{
	struct rte_mbuf *frame = ethdev_take(w, false);
	assert_non_null(frame);
	memcpy(rte_pktmbuf_append(frame, (uint16_t)strlen(text)), text, strlen(text));
	return frame;
}

static uint16_t id(void)
{
	return ethdev_port(devices, 0)->id;
}

static void test_what_a_port_is(void **state)
{
	(void)state;
	const struct ethdev_port *shown = ethdev_port(devices, 0);
	assert_int_equal(ethdev_port_count(devices), 1);
	assert_string_equal(shown->name, port.device);
	assert_int_equal(shown->mtu, 1500);
	assert_int_equal(shown->rx_queues, 1);
	assert_int_equal(shown->tx_queues, 1);
	assert_false(shown->is_dispatched); // one worker
	assert_false(shown->fills_l4);
	assert_false(shown->checks_l4);
	assert_false(shown->has_exception);
	assert_memory_not_equal(shown->mac, "\0\0\0\0\0", 6); // a ring has none of its own
}

static void test_frames_come_in(void **state)
{
	(void)state;
	struct rte_mbuf *frames[ETHDEV_BURST_MAX];
	for (unsigned i = 0; i < ETHDEV_BURST_MAX + 8; i++)
		rig_arrive(&port, 0, rig_frame("hello, waiting room", 19));
	assert_int_equal(ethdev_receive(w, frames, ETHDEV_BURST_MAX), ETHDEV_BURST_MAX);
	assert_int_equal(frames[0]->port, id());
	assert_memory_equal(
		rte_pktmbuf_mtod(frames[ETHDEV_BURST_MAX - 1], char *), "hello, waiting room", 19);
	ethdev_free(w, frames, ETHDEV_BURST_MAX);
	assert_int_equal(ethdev_receive(w, frames, ETHDEV_ROOM_MIN), 8);
	ethdev_free(w, frames, 8);
	assert_int_equal(ethdev_receive(w, frames, ETHDEV_BURST_MAX), 0);
	assert_int_equal(rig_counter(w, ETHDEV_frames_in), ETHDEV_BURST_MAX + 8);
	assert_int_equal(rig_counter(w, ETHDEV_bytes_in), (ETHDEV_BURST_MAX + 8) * 19);
}

static void test_frames_leave_with_the_flush(void **state)
{
	(void)state;
	void *frame = NULL;
	ethdev_send(w, id(), take_text("one"));
	ethdev_send(w, id(), take_text("three"));
	assert_int_equal(rte_ring_count(port.out[0]), 0);
	ethdev_flush(w);
	assert_int_equal(rte_ring_count(port.out[0]), 2);
	assert_int_equal(rte_ring_dequeue(port.out[0], &frame), 0);
	assert_memory_equal(rte_pktmbuf_mtod((struct rte_mbuf *)frame, char *), "one", 3);
	rte_pktmbuf_free(frame);
	assert_int_equal(rig_counter(w, ETHDEV_frames_out), 2);
	assert_int_equal(rig_counter(w, ETHDEV_bytes_out), 8);
}

// Nobody reads the ring: it fills, then the queue does, then frames are dropped. Once there is
// room, what waited leaves in order.
static void test_a_full_device(void **state)
{
	(void)state;
	void *frame = NULL;
	char text[16];
	for (int i = 0; i < 1024 + (int)ETHDEV_SEND_MAX; i++) {
		snprintf(text, sizeof(text), "%06d", i);
		ethdev_send(w, id(), take_text(text));
		ethdev_flush(w);
	}
	assert_int_equal(rig_counter(w, ETHDEV_transmit_full), 0);
	ethdev_send(w, id(), take_text("beyond"));
	assert_int_equal(rig_counter(w, ETHDEV_transmit_full), 1);
	for (int i = 0; i < 1024 + (int)ETHDEV_SEND_MAX; i++) {
		snprintf(text, sizeof(text), "%06d", i);
		assert_int_equal(rte_ring_dequeue(port.out[0], &frame), 0);
		assert_memory_equal(rte_pktmbuf_mtod((struct rte_mbuf *)frame, char *), text, 6);
		rte_pktmbuf_free(frame);
		ethdev_flush(w);
	}
	assert_int_not_equal(rte_ring_dequeue(port.out[0], &frame), 0);
	assert_int_equal(rig_counter(w, ETHDEV_frames_out), 1024 + ETHDEV_SEND_MAX);
	assert_int_equal(rig_counter(w, ETHDEV_bytes_out), 6 * (1024 + ETHDEV_SEND_MAX));
}

// Refuses what begins with '!', as a device might that looks at what it is asked to do.
static uint16_t refuse(void *queue, struct rte_mbuf **frames, uint16_t count)
{
	(void)queue;
	uint16_t good = 0;
	while (good < count && *rte_pktmbuf_mtod(frames[good], char *) != '!')
		good++;
	return good;
}

static void test_a_frame_that_is_refused(void **state)
{
	(void)state;
	void *frame = NULL;
	devices->ports[0].shown.fills_l4 = true;
	rte_eth_fp_ops[id()].tx_pkt_prepare = refuse;
	ethdev_send(w, id(), take_text("1"));
	ethdev_send(w, id(), take_text("!"));
	ethdev_send(w, id(), take_text("!"));
	ethdev_send(w, id(), take_text("234"));
	for (int i = 0; i < 3; i++)
		ethdev_flush(w);
	assert_int_equal(rig_counter(w, ETHDEV_transmit_refused), 2);
	assert_int_equal(rig_counter(w, ETHDEV_frames_out), 2);
	assert_int_equal(rig_counter(w, ETHDEV_bytes_out), 4);
	for (const char *text = "12"; *text; text++) {
		assert_int_equal(rte_ring_dequeue(port.out[0], &frame), 0);
		assert_int_equal(*rte_pktmbuf_mtod((struct rte_mbuf *)frame, char *), *text);
		rte_pktmbuf_free(frame);
	}
}

// All buffers are out: data gets none, control frames have their reserve, until that is out too.
static void test_no_buffers(void **state)
{
	(void)state;
	static struct rte_mbuf *taken[1 << 16];
	unsigned count = 0, reserve = 0;
	for (struct rte_mbuf *frame; (frame = ethdev_take(w, false));)
		taken[count++] = frame;
	assert_true(count > 2 * 512);
	assert_int_equal(rig_counter(w, ETHDEV_buffer_none), 1);
	assert_int_equal(rig_counter(w, ETHDEV_reserve_none), 0);
	for (struct rte_mbuf *frame; (frame = ethdev_take(w, true)); reserve++)
		taken[count++] = frame;
	assert_int_equal(reserve, 512);
	assert_int_equal(rig_counter(w, ETHDEV_reserve_none), 1);
	assert_int_equal(rig_counter(w, ETHDEV_buffer_none), 1);
	ethdev_free(w, taken, count);
	taken[0] = ethdev_take(w, false);
	assert_non_null(taken[0]);
	ethdev_free(w, taken, 1);
}

// Whatever way buffers go, they come back: through the device, dropped, from the reserve.
static void test_no_buffer_is_lost(void **state)
{
	(void)state;
	struct rte_mbuf *frames[ETHDEV_BURST_MAX];
	void *out = NULL;
	for (int round = 0; round < 3000; round++) {
		for (int i = 0; i < 3; i++)
			ethdev_send(w, id(), take_text("x"));
		ethdev_flush(w);
		rig_arrive(&port, 0, rig_frame("y", 1));
		unsigned count = ethdev_receive(w, frames, ETHDEV_BURST_MAX);
		ethdev_free(w, frames, count);
		while (round % 1000 == 999 && rte_ring_dequeue(port.out[0], &out) == 0)
			rte_pktmbuf_free(out);
	}
	assert_true(rig_counter(w, ETHDEV_transmit_full) > 0);
	assert_int_equal(rig_counter(w, ETHDEV_buffer_none), 0);
	while (ethdev_flush(w), rte_ring_dequeue(port.out[0], &out) == 0)
		rte_pktmbuf_free(out);
	assert_int_equal(rig_free_buffers(), 8192);
}

// A device that strips tags: the tag is put back where it was.
static void test_a_stripped_tag_is_put_back(void **state)
{
	(void)state;
	struct rte_mbuf *frames[ETHDEV_BURST_MAX];
	uint8_t bytes[2048];
	unsigned len = rig_segment(bytes, 1000, 20);
	struct rte_mbuf *frame = rig_frame(bytes, len);
	frame->vlan_tci = 0x6123;
	frame->ol_flags = RTE_MBUF_F_RX_VLAN | RTE_MBUF_F_RX_VLAN_STRIPPED;
	rig_arrive(&port, 0, frame);
	assert_int_equal(ethdev_receive(w, frames, ETHDEV_BURST_MAX), 1);
	const uint8_t *got = rte_pktmbuf_mtod(frames[0], const uint8_t *);
	assert_int_equal(rte_pktmbuf_data_len(frames[0]), len + 4);
	assert_memory_equal(got, bytes, 12);
	assert_memory_equal(got + 12, "\x81\x00\x61\x23", 4);
	assert_memory_equal(got + 16, bytes + 12, len - 12);
	assert_int_equal(rig_counter(w, ETHDEV_bytes_in), len + 4);
	ethdev_free(w, frames, 1);
}

// In pieces from the device, whole from here; beyond the room of a buffer it is dropped.
static void test_pieces_become_one(void **state)
{
	(void)state;
	struct rte_mbuf *frames[ETHDEV_BURST_MAX];
	static const uint8_t bytes[1500];
	struct rte_mbuf *whole = rig_frame(bytes, 700), *large = rig_frame(bytes, 1500);
	assert_int_equal(rte_pktmbuf_chain(whole, rig_frame(bytes, 800)), 0);
	assert_int_equal(rte_pktmbuf_chain(large, rig_frame(bytes, 1500)), 0);
	rig_arrive(&port, 0, large);
	rig_arrive(&port, 0, whole);
	assert_int_equal(ethdev_receive(w, frames, ETHDEV_BURST_MAX), 1);
	assert_int_equal(frames[0]->nb_segs, 1);
	assert_int_equal(rte_pktmbuf_data_len(frames[0]), 1500);
	assert_int_equal(rig_counter(w, ETHDEV_device_errors), 1);
	ethdev_free(w, frames, 1);
	assert_int_equal(rig_free_buffers(), 8192);
}

static void test_nowhere_to_except_to(void **state)
{
	(void)state;
	struct rte_mbuf *frames[ETHDEV_BURST_MAX];
	rig_arrive(&port, 0, rig_frame("not for us", 10));
	assert_int_equal(ethdev_receive(w, frames, ETHDEV_BURST_MAX), 1);
	ethdev_except(w, frames[0], ETHDEV_CLASS_OTHER);
	assert_int_equal(rig_counter(w, ETHDEV_except_none), 1);
	assert_int_equal(rig_free_buffers(), 8192);
}

static void test_the_link_is_told_once(void **state)
{
	(void)state;
	bool is_up = false;
	assert_true(ethdev_link_changed(w, 0, &is_up));
	assert_true(is_up);
	assert_false(ethdev_link_changed(w, 0, &is_up));
	assert_true(is_up);
}

static void test_counters_have_names(void **state)
{
	(void)state;
	for (int i = 0; i < ETHDEV_COUNTERS_COUNT; i++) {
		assert_true(strlen(ethdev_counter_name(i)) > 3);
		assert_true(strlen(ethdev_counter_text(i)) > 3);
	}
}

#define STORY(test) cmocka_unit_test_setup_teardown(test, start, stop)

int main(void)
{
	const struct CMUnitTest tests[] = {
		STORY(test_what_a_port_is),
		STORY(test_frames_come_in),
		STORY(test_frames_leave_with_the_flush),
		STORY(test_a_full_device),
		STORY(test_a_frame_that_is_refused),
		STORY(test_no_buffers),
		STORY(test_no_buffer_is_lost),
		STORY(test_a_stripped_tag_is_put_back),
		STORY(test_pieces_become_one),
		STORY(test_nowhere_to_except_to),
		STORY(test_the_link_is_told_once),
		STORY(test_counters_have_names),
	};
	rig_eal();
	return cmocka_run_group_tests(tests, NULL, NULL);
}
