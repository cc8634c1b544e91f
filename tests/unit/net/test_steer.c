// Goal: what another worker must see reaches it, each worker is asked once, and the last one asked
// answers.

#include "dataplane/net/steer.h"
#include "tests/unit/net/stage.h"

#include <setjmp.h>
#include <stdarg.h>
#include <string.h>

#include <cmocka.h>

static int open_stage(void **state)
{
	(void)state;
	stage_plan();
	stage.plan.worker_count = 3;
	stage.plan.ports[0].has_rss = true;
	stage_start(true);
	return 0;
}

static void arrive_at(unsigned worker, const struct packets_frame *f)
{
	fake_arrive(stage.devices[worker], STAGE_PORT, packets_build(f), 0);
	stage_turn(worker);
}

static struct packets_frame segment(uint8_t flags)
{
	return (struct packets_frame){
		.l4 = packets_segment(40000, 443, 1, 2, flags, 5), .l4_bytes = 25};
}

static void turn_all(void)
{
	for (unsigned round = 0; round < 4; round++)
		for (unsigned i = 0; i < 3; i++)
			stage_turn(i);
}

static void control_frames_go_to_worker_0(void **state)
{
	(void)state;
	struct packets_frame f = {.protocol = 1, .l4 = "\x08\0\0\0\0\0\0\0", .l4_bytes = 8};
	arrive_at(2, &f);
	assert_int_equal(stage_counter(2, NET_steered), 1);
	assert_int_equal(stage_counter(2, NET_echo_answered), 0);
	stage_turn(0);
	assert_int_equal(stage.drivers[0]->taken, 1);
	assert_int_equal(stage_counter(0, NET_echo_answered), 1);
	assert_int_equal(fake_sent_count(stage.devices[0]), 1);
	assert_int_equal(fake_buffers_out(), 1);
}

static void the_one_that_knows_a_flow_gets_it(void **state)
{
	(void)state;
	stage.tcps[1]->knows = stage.tcps[2]->knows = false;
	stage.tcps[0]->owner = TCP_OWNER_CONNECTION;
	struct packets_frame f = segment(TCP_ACK);
	arrive_at(1, &f); // 1 does not know it, 2 neither, 0 does
	turn_all();
	assert_int_equal(stage.tcps[1]->segment_count, 1);
	assert_int_equal(stage.tcps[2]->segment_count, 0); // it was looked up only
	assert_int_equal(stage.tcps[0]->segment_count, 1);
	assert_int_equal(stage.tcps[0]->resets + stage.tcps[1]->resets + stage.tcps[2]->resets, 0);
	assert_true(span_is_equal(stage.tcps[0]->last.payload, stage.tcps[0]->last.payload));
	assert_int_equal(fake_buffers_out(), 0);
}

static void the_last_one_resets_what_nobody_knows(void **state)
{
	(void)state;
	for (unsigned i = 0; i < 3; i++)
		stage.tcps[i]->knows = false;
	struct packets_frame f = segment(TCP_ACK);
	arrive_at(1, &f);
	turn_all();
	assert_int_equal(stage.tcps[0]->resets, 1);
	assert_int_equal(stage.tcps[1]->resets + stage.tcps[2]->resets, 0);
	assert_int_equal(stage_counter(1, NET_steered), 1);
	assert_int_equal(stage_counter(2, NET_steered), 1);
	assert_int_equal(stage_counter(0, NET_steered), 0);
	assert_int_equal(fake_buffers_out(), 0);
}

static void a_syn_stays(void **state)
{
	(void)state;
	stage.tcps[1]->knows = false;
	struct packets_frame f = segment(TCP_SYN);
	arrive_at(1, &f);
	turn_all();
	assert_int_equal(stage_counter(1, NET_steered), 0);
	assert_int_equal(stage.tcps[1]->segment_count, 1);
}

static void without_rss_nobody_is_asked(void **state)
{
	(void)state;
	stage_end(NULL);
	stage_plan();
	stage.plan.worker_count = 3; // frames are dispatched in software, always alike
	stage_start(true);
	stage.tcps[1]->knows = false;
	struct packets_frame f = segment(TCP_ACK);
	arrive_at(1, &f);
	turn_all();
	assert_int_equal(stage_counter(1, NET_steered), 0);
	assert_int_equal(stage.tcps[1]->resets, 1);
}

static void a_full_ring_drops(void **state)
{
	(void)state;
	stage.tcps[1]->knows = false;
	struct packets_frame f = segment(TCP_ACK);
	for (unsigned i = 0; i < STEER_RING_FRAMES; i++)
		arrive_at(1, &f);
	assert_int_equal(stage_counter(1, NET_steered), STEER_RING_FRAMES);
	assert_int_equal(stage_counter(1, NET_steer_full), 0);
	arrive_at(1, &f);
	assert_int_equal(stage_counter(1, NET_steer_full), 1);
	assert_int_equal(stage.tcps[1]->resets, 0);
	// Nobody takes them: net_share_end() does.
}

static void a_turn_takes_so_many(void **state)
{
	(void)state;
	stage.tcps[1]->knows = false;
	stage.tcps[2]->owner = TCP_OWNER_CONNECTION;
	struct packets_frame f = segment(TCP_ACK);
	for (unsigned i = 0; i < 20; i++)
		arrive_at(1, &f);
	stage_turn(2);
	assert_int_equal(stage.tcps[2]->segment_count, 16);
	stage_turn(2);
	assert_int_equal(stage.tcps[2]->segment_count, 20);
}

static void an_error_finds_its_flow(void **state)
{
	(void)state;
	static char message[36] = {3, 4, [6] = 0x05, [7] = 0x00, // 1280
		[8] = 0x45, [10] = 0x05, [11] = (char)0xdc, [17] = 6, [20] = (char)0xc0, [22] = 2,
		[23] = 1, [24] = (char)0xc6, [25] = 0x33, [26] = 0x64, [27] = 7, [28] = 0x01,
		[29] = (char)0xbb, [30] = (char)0x9c, [31] = 0x40, [35] = 9};
	struct packets_frame f = {.protocol = 1, .l4 = message, .l4_bytes = sizeof(message)};
	stage.tcps[1]->owner = TCP_OWNER_CONNECTION;
	arrive_at(2, &f); // to 0, which passes it to 1
	turn_all();
	assert_int_equal(stage.tcps[1]->too_big, 1);
	assert_int_equal(stage.tcps[1]->quoted.seq, 9);
	assert_int_equal(stage.tcps[0]->too_big + stage.tcps[2]->too_big, 0);
	stage.tcps[1]->owner = TCP_OWNER_NONE;
	arrive_at(0, &f);
	turn_all();
	assert_int_equal(stage.tcps[2]->too_big, 1); // the last one asked
}

int main(void)
{
#define TEST(name) cmocka_unit_test_setup_teardown(name, open_stage, stage_end)
	const struct CMUnitTest tests[] = {
		TEST(control_frames_go_to_worker_0),
		TEST(the_one_that_knows_a_flow_gets_it),
		TEST(the_last_one_resets_what_nobody_knows),
		TEST(a_syn_stays),
		TEST(without_rss_nobody_is_asked),
		TEST(a_full_ring_drops),
		TEST(a_turn_takes_so_many),
		TEST(an_error_finds_its_flow),
	};
	return stage_open() ? cmocka_run_group_tests(tests, NULL, NULL) : 1;
}
