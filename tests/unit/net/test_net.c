// Goal: a turn takes frames in and gives them back when nobody reads them any more; what is not
// sluice's goes where it belongs; the driver is TCP's.

#include "tests/unit/net/stage.h"

#include <rte_mbuf.h>

#include <setjmp.h>
#include <stdarg.h>
#include <string.h>

#include <cmocka.h>

static int open_stage(void **state)
{
	(void)state;
	stage_plan();
	stage_start(true);
	return 0;
}

static struct packets_frame segment_to(uint16_t port)
{
	return (struct packets_frame){
		.l4 = packets_segment(40000, port, 1, 2, TCP_ACK, 5), .l4_bytes = 25};
}

static void a_turn(void **state)
{
	(void)state;
	struct packets_frame f = segment_to(443);
	unsigned turns = stage.tcps[0]->turns;
	stage_arrive(&f);
	assert_int_equal(stage.tcps[0]->turns, turns + 1);
	assert_int_equal(stage.tcps[0]->flushes, turns + 1);
	assert_int_equal(stage.tcps[0]->dues, turns + 1);
	assert_int_equal(stage.tcps[0]->now_us, fake_now_us);
	assert_int_equal(stage.drivers[0]->now_us, fake_now_us);
	assert_int_equal(stage.drivers[0]->taken, 1);
	assert_int_equal(stage.tcps[0]->segment_count, 1);
	assert_int_equal(stage.tcps[0]->last.hop.port, 0);
	assert_int_equal(fake_buffers_out(), 1); // events may point into it
	stage_turn(0);
	assert_int_equal(fake_buffers_out(), 0);
	assert_int_equal(stage.drivers[0]->taken, 0);
}

static void what_tcp_has_no_room_for_waits(void **state)
{
	(void)state;
	struct packets_frame f = segment_to(443);
	static_assert(ETHDEV_BURST_MAX == 64, "six times ten, and four; then a burst of eight");
	for (unsigned i = 0; i < 72; i++)
		fake_arrive(stage.devices[0], STAGE_PORT, packets_build(&f), 0);
	stage.tcps[0]->room = 10;
	for (unsigned turn = 1; turn <= 6; turn++) {
		assert_int_equal(stage_turn(0), 10);
		assert_int_equal(stage.tcps[0]->segment_count, 10 * turn);
		// The first ten are free once the next turn has begun.
		assert_int_equal(fake_buffers_out(), 72 - 10 * (turn - 1));
	}
	assert_int_equal(stage_turn(0), 4);
	assert_int_equal(stage_turn(0), 8);
	assert_int_equal(stage.tcps[0]->segment_count, 72);
	stage_turn(0);
	assert_int_equal(fake_buffers_out(), 0);
}

static void dropped_and_counted(void **state)
{
	(void)state;
	struct packets_frame f = segment_to(443);
	f.sum_l4 = 1;
	stage_arrive(&f);
	assert_int_equal(stage_counter(0, NET_tcp_bad_checksum), 1);
	f = segment_to(443);
	fake_arrive_in_pieces(stage.devices[0], STAGE_PORT, packets_build(&f));
	stage_turn(0);
	assert_int_equal(stage_counter(0, NET_frame_pieces), 1);
	assert_int_equal(stage.tcps[0]->segment_count, 0);
	assert_int_equal(fake_buffers_out(), 0);
}

static void what_the_device_verified_is_believed(void **state)
{
	(void)state;
	struct {
		uint64_t flags;
		bool is_taken;
	} cases[] = {
		{0, false},
		{RTE_MBUF_F_RX_L4_CKSUM_BAD | RTE_MBUF_F_RX_IP_CKSUM_GOOD, false},
		{RTE_MBUF_F_RX_L4_CKSUM_GOOD, false}, // the IP header is bad, too
		{RTE_MBUF_F_RX_L4_CKSUM_GOOD | RTE_MBUF_F_RX_IP_CKSUM_GOOD, true},
		{RTE_MBUF_F_RX_L4_CKSUM_NONE | RTE_MBUF_F_RX_IP_CKSUM_GOOD, true},
		{RTE_MBUF_F_RX_L4_CKSUM_NONE | RTE_MBUF_F_RX_IP_CKSUM_NONE, false},
	};
	for (unsigned i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
		struct packets_frame f = segment_to(443);
		f.sum_l4 = f.sum_ip = 1;
		unsigned before = stage.tcps[0]->segment_count;
		fake_arrive(stage.devices[0], STAGE_PORT, packets_build(&f), cases[i].flags);
		stage_turn(0);
		assert_int_equal(stage.tcps[0]->segment_count - before, cases[i].is_taken);
	}
}

static void not_for_sluice(void **state)
{
	(void)state;
	enum ethdev_class class;
	struct packets_frame f = segment_to(22); // no exception interface: TCP resets it
	stage_arrive(&f);
	assert_int_equal(stage.tcps[0]->segment_count, 1);
	f.to = "192.0.2.2";
	stage_arrive(&f);
	assert_int_equal(stage_counter(0, NET_not_ours), 1);
	assert_int_equal(fake_excepted(stage.devices[0], &class), 1); // which counts it there
}

static void an_exception_interface(void **state)
{
	(void)state;
	stage_end(NULL);
	stage_plan();
	stage.plan.ports[0].has_exception = true;
	packets_ip(stage.plan.tcp.listeners[0].ip, OUR_IPV4);
	stage_start(true);
	enum ethdev_class class;
	struct packets_frame f = segment_to(22);
	stage_arrive(&f);
	assert_int_equal(fake_excepted(stage.devices[0], &class), 1);
	assert_int_equal(class, ETHDEV_CLASS_TCP);
	f = segment_to(443);
	f.is_ipv6 = true; // nobody listens there
	stage_arrive(&f);
	assert_int_equal(fake_excepted(stage.devices[0], &class), 2);
	f.is_ipv6 = false;
	stage_arrive(&f);
	assert_int_equal(stage.tcps[0]->segment_count, 1);
}

static void the_kernel_sees_the_frames(void **state)
{
	(void)state;
	stage_end(NULL);
	stage_plan();
	stage.plan.ports[0].kernel_sees_frames = true;
	stage_start(true);
	enum ethdev_class class;
	struct packets_frame f = segment_to(443);
	f.to = "192.0.2.2";
	stage_arrive(&f);
	assert_int_equal(fake_excepted(stage.devices[0], &class), 0);
	assert_int_equal(stage_counter(0, NET_not_ours), 1);
	assert_int_equal(fake_buffers_out(), 0);
}

static void the_calls_of_a_driver(void **state)
{
	(void)state;
	struct stream stream;
	struct stream_driver *d = stage.drivers[0];
	struct span part = SPAN("x");
	assert_int_equal(stream_write(d, &stream, &part, 1), 1);
	stream_shut(d, &stream);
	stream_close(d, &stream, false);
	stream_pause(d, &stream);
	stream_resume(d, &stream);
	stream_stop_accepting(d);
	stream_wake(d);
	assert_int_equal(stage.tcps[0]->calls, 6);
	assert_int_equal(stream_queued(d, &stream), 7);
	assert_null(stream_connect(d, &stream.peer, NULL));
	assert_int_equal(d->queue_high, 4096);
	assert_false(net_is_full(d));
	assert_non_null(net_tcp_stats(d));
	assert_string_equal(net_counter_name(NET_steer_full), "steer_full");
	assert_string_equal(net_counter_text(NET_echo_answered), "echo requests answered");
	assert_true(net_bytes(&stage.plan) > 10);
}

static void the_plan_of_tcp(void **state)
{
	(void)state;
	stage_end(NULL);
	stage_plan();
	stage.plan.port_count = 2;
	stage.plan.ports[1] = stage.plan.ports[0];
	stage.plan.ports[1].id = 1;
	stage.plan.ports[1].mtu = 1400; // the smallest counts
	stage_start(true);
	assert_int_equal(stage.tcps[0]->plan.mss_v4, 1360);
	assert_int_equal(stage.tcps[0]->plan.mss_v6, 1340);
	assert_true(stage.tcps[0]->plan.seed != 0);
	struct packets_frame f = segment_to(443);
	fake_arrive(stage.devices[0], 1, packets_build(&f), 0);
	stage_turn(0);
	assert_int_equal(stage.tcps[0]->last.hop.port, 1);
}

static void frames_left_at_the_end(void **state)
{
	(void)state;
	struct packets_frame f = segment_to(443);
	for (unsigned i = 0; i < 10; i++)
		fake_arrive(stage.devices[0], STAGE_PORT, packets_build(&f), 0);
	stage.tcps[0]->room = 3;
	stage_turn(0);
	stage_turn(0);
	assert_true(fake_buffers_out() > 0); // stage_end() finds them free
}

int main(void)
{
#define TEST(name) cmocka_unit_test_setup_teardown(name, open_stage, stage_end)
	const struct CMUnitTest tests[] = {
		TEST(a_turn),
		TEST(what_tcp_has_no_room_for_waits),
		TEST(dropped_and_counted),
		TEST(what_the_device_verified_is_believed),
		TEST(not_for_sluice),
		TEST(an_exception_interface),
		TEST(the_kernel_sees_the_frames),
		TEST(the_calls_of_a_driver),
		TEST(the_plan_of_tcp),
		TEST(frames_left_at_the_end),
	};
	return stage_open() ? cmocka_run_group_tests(tests, NULL, NULL) : 1;
}
