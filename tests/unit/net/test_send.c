// The sending half in good weather and at its ends: windows, sizes, FIN, options, deadlines.
// One paragraph a rule.

#include "tests/unit/net/rig.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <string.h>

#include <cmocka.h>

#define ALL (TCP_CONN_SACK | TCP_CONN_TIMESTAMPS)
#define TICKS_MS 3u // by which a deadline may be late

static struct rig rig;

static void assert_out(unsigned i, uint32_t seq, uint32_t len, uint8_t flags)
{
	assert_true(i < rig.out_count);
	assert_int_equal(rig.outs[i].seq, seq);
	assert_int_equal(rig.outs[i].len, len);
	assert_int_equal(rig.outs[i].flags, flags);
}

static void assert_left_ms(uint64_t ms)
{
	assert_true(rig_left_ms(&rig) >= ms && rig_left_ms(&rig) <= ms + TICKS_MS);
}

// The case that counts: one segment out, one acknowledgement in, nothing left.
static void test_an_answer_of_one_segment(void **state)
{
	(void)state;
	rig_start(&rig, ALL);
	assert_int_equal(rig_write(&rig, 350), 350);
	assert_int_equal(rig.out_count, 1);
	assert_out(0, 0, 350, TCP_ACK | TCP_PSH);
	assert_int_equal(rig_last(&rig)->window, 777);
	assert_int_equal(rig_last(&rig)->stamp, rig.t.now_ms + 99);
	assert_int_equal(send_queued(&rig.t, &rig.c), 0);
	assert_false(send_is_idle(&rig.t, &rig.c));
	rig_wait(&rig, 20000);
	assert_false(rig_ack(&rig, 350));
	assert_true(send_is_idle(&rig.t, &rig.c));
	assert_false(send_needs_work(&rig.t, &rig.c));
	assert_int_equal(rig_left_ms(&rig), UINT64_MAX);
	work_give(&rig.t, &rig.c);
	assert_int_equal(rig.c.work, 0);
	assert_int_equal(rig.c.srtt_us, 20000);
	assert_int_equal(rig_count(&rig, TCP_bytes_out), 350);
	assert_int_equal(rig_count(&rig, TCP_segments_out), 1);
	rig_end(&rig);
}

// RFC 6928, and 5681: twice as much a round trip later.
static void test_initial_window_then_slow_start(void **state)
{
	(void)state;
	rig_start(&rig, ALL);
	rig_write(&rig, 100000);
	assert_int_equal(rig.out_count, 10);
	assert_int_equal(send_queued(&rig.t, &rig.c), 90000);
	rig_wait(&rig, 50000);
	for (unsigned i = 1; i <= 10; i++)
		rig_ack(&rig, i * 1000);
	assert_int_equal(rig.out_count, 30);
	rig_end(&rig);
}

// Row 37 of the field's failures: what is limited is what is in flight, not each send.
static void test_windows_limit_the_flight(void **state)
{
	(void)state;
	rig_start(&rig, ALL);
	for (unsigned i = 0; i < 50; i++)
		rig_write(&rig, 1000);
	assert_int_equal(rig.out_count, 10);
	rig_end(&rig);

	rig_start(&rig, ALL);
	rig.c.snd_wnd = 2500;
	rig_write(&rig, 2000);
	rig_write(&rig, 2000);
	assert_int_equal(rig.out_count, 2); // the 500 that would fit wait: a silly window
	rig_end(&rig);
}

static void test_a_short_segment_only_at_the_end(void **state)
{
	(void)state;
	rig_start(&rig, ALL);
	rig_write(&rig, 2300);
	assert_out(0, 0, 1000, TCP_ACK);
	assert_out(1, 1000, 1000, TCP_ACK);
	assert_out(2, 2000, 300, TCP_ACK | TCP_PSH);
	rig_write(&rig, 10); // TCP_NODELAY
	assert_out(3, 2300, 10, TCP_ACK | TCP_PSH);
	rig_end(&rig);
}

// RFC 9293 3.8.6.2.1: a short one too if it is half of what the window ever was.
static void test_half_of_a_small_window_is_worth_it(void **state)
{
	(void)state;
	rig_start(&rig, ALL);
	rig.c.snd_wnd = 600;
	rig_write(&rig, 5000);
	assert_int_equal(rig.out_count, 1);
	assert_out(0, 0, 600, TCP_ACK);
	rig_ack_full(&rig, 600, 290, 0, NULL, 0);
	assert_int_equal(rig.out_count, 1);
	// The persist timer is the override.
	assert_true(rig_due(&rig));
	assert_out(1, 600, 290, TCP_ACK);
	assert_int_equal(rig_count(&rig, TCP_window_probes), 0);
	rig_end(&rig);
}

static void test_blocks_make_the_payload_shorter(void **state)
{
	(void)state;
	rig_start(&rig, ALL);
	rig.sack_count = 4; // of which 3 fit beside a timestamp
	rig_write(&rig, 1000);
	assert_out(0, 0, 1000 - 28, TCP_ACK);
	assert_int_equal(rig.outs[0].sack_count, 3);
	assert_out(1, 972, 28, TCP_ACK | TCP_PSH);
	rig.c.flags = TCP_CONN_SACK | TCP_CONN_ACK_DUE | TCP_CONN_ACK_NOW;
	rig_forget(&rig);
	send_ack(&rig.t, &rig.c);
	assert_out(0, 1000, 0, TCP_ACK);
	assert_int_equal(rig.outs[0].sack_count, 4);
	assert_int_equal(rig.outs[0].stamp, 0);
	assert_int_equal(rig.c.flags, TCP_CONN_SACK); // nothing is due any more
	rig_end(&rig);
}

static void test_reset_stands_at_snd_nxt(void **state)
{
	(void)state;
	rig_start(&rig, 0);
	rig_write(&rig, 10);
	send_reset(&rig.t, &rig.c);
	assert_out(1, 10, 0, TCP_RST | TCP_ACK);
	rig_end(&rig);
}

static void test_fin_follows_the_queue(void **state)
{
	(void)state;
	rig_start(&rig, ALL);
	rig_write(&rig, 10500);
	assert_true(send_fin(&rig.t, &rig.c));
	assert_int_equal(rig.c.state, TCP_FIN_WAIT_1);
	assert_int_equal(rig.out_count, 10);
	assert_false(rig_ack(&rig, 10000));
	assert_out(10, 10000, 500, TCP_ACK | TCP_PSH | TCP_FIN);
	assert_false(rig_ack(&rig, 10500));
	assert_true(rig_ack(&rig, 10501));
	assert_true(send_is_idle(&rig.t, &rig.c));
	rig_end(&rig);

	// Full segments: it rides on the last, and takes no more of cwnd.
	rig_start(&rig, ALL);
	rig.c.state = TCP_CLOSE_WAIT;
	rig.c.snd_wnd = 0;
	rig_write(&rig, 10000);
	assert_true(send_fin(&rig.t, &rig.c));
	assert_int_equal(rig.c.state, TCP_LAST_ACK);
	rig_ack_full(&rig, 0, 20000, 0, NULL, 0);
	assert_int_equal(rig.out_count, 10);
	assert_out(9, 9000, 1000, TCP_ACK | TCP_PSH | TCP_FIN);
	rig_end(&rig);
}

// Row 50: a FIN that is lost is sent again, like data.
static void test_fin_is_sent_again(void **state)
{
	(void)state;
	rig_start(&rig, 0);
	assert_true(send_fin(&rig.t, &rig.c));
	assert_out(0, 0, 0, TCP_ACK | TCP_FIN);
	for (unsigned i = 1; i < 4; i++) {
		assert_true(rig_due(&rig));
		assert_out(i, 0, 0, TCP_ACK | TCP_FIN);
	}
	assert_int_equal(rig_count(&rig, TCP_retransmitted), 3);
	assert_true(rig_ack(&rig, 1));
	assert_int_equal(rig_left_ms(&rig), UINT64_MAX);
	rig_end(&rig);
}

// Row 40: zero window, nothing in flight. The probes are a byte, further and further apart; what
// the peer then takes it gets in whole segments.
static void test_persist(void **state)
{
	(void)state;
	rig_start(&rig, ALL);
	rig.c.snd_wnd = 0;
	rig_write(&rig, 5000);
	assert_int_equal(rig.out_count, 0);
	uint64_t wait_ms = 1000;
	for (unsigned i = 0; i < 5; i++, wait_ms *= 2) {
		assert_left_ms(wait_ms);
		assert_true(rig_due(&rig));
		assert_int_equal(rig.out_count, i + 1);
		assert_out(i, 0, 1, TCP_ACK);
		rig_ack_full(&rig, 0, 0, 0, NULL, 0); // not yet
	}
	assert_int_equal(rig_count(&rig, TCP_window_probes), 5);
	assert_int_equal(rig_count(&rig, TCP_recoveries), 0);
	assert_int_equal(rig_send(&rig)->cwnd, 10000); // it was no congestion
	rig_forget(&rig);
	rig_ack_full(&rig, 0, 8000, 0, NULL, 0);
	assert_int_equal(rig.out_count, 5);
	assert_out(0, 0, 1000, TCP_ACK);
	assert_out(4, 4000, 1000, TCP_ACK | TCP_PSH);
	assert_int_equal(rig.c.rto_backoff, 0);
	rig_wait(&rig, 30000);
	rig_ack(&rig, 5000);
	assert_true(send_is_idle(&rig.t, &rig.c));
	assert_int_equal(rig.c.srtt_us, 30000); // the probes were no measure
	rig_end(&rig);
}

static void test_a_probe_may_be_taken(void **state)
{
	(void)state;
	rig_start(&rig, ALL);
	rig.c.snd_wnd = 0;
	rig_write(&rig, 5000);
	assert_true(rig_due(&rig));
	rig_ack_full(&rig, 1, 0, 0, NULL, 0); // the byte, and no more
	assert_true(rig_due(&rig));
	assert_out(1, 1, 1, TCP_ACK);
	rig_ack_full(&rig, 2, 5000, 0, NULL, 0);
	assert_out(2, 2, 1000, TCP_ACK);
	rig_end(&rig);
}

// A window that stays closed, acknowledged or not, is not waited for forever.
static void test_a_closed_window_is_given_up(void **state)
{
	(void)state;
	rig_start(&rig, ALL);
	rig.c.snd_wnd = 0;
	rig_write(&rig, 5000);
	const uint64_t began_us = rig.t.now_us;
	while (rig_due(&rig))
		rig_ack_full(&rig, 0, 0, 0, NULL, 0);
	assert_int_equal((rig.t.now_us - began_us) / 1000, 120000);
	rig_end(&rig);
}

// The peer takes its window back while data is in flight (RFC 9293 3.8.6): no flood beyond it.
static void test_a_window_that_shrinks(void **state)
{
	(void)state;
	rig_start(&rig, ALL);
	rig_write(&rig, 20000);
	assert_int_equal(rig.out_count, 10);
	rig_ack_full(&rig, 2000, 0, 0, NULL, 0);
	assert_int_equal(rig.out_count, 10);
	rig_forget(&rig);
	assert_true(rig_due(&rig));
	assert_int_equal(rig.out_count, 1);
	assert_out(0, 2000, 1, TCP_ACK);
	rig_ack_full(&rig, 2000, 3000, 0, NULL, 0);
	assert_int_equal(rig.out_count, 4);
	assert_out(1, 2000, 1000, TCP_ACK);
	assert_out(3, 4000, 1000, TCP_ACK);
	rig_end(&rig);
}

// RFC 9293 3.10.7.4 step 5: a late segment's window is old, unless it acknowledges more: then its
// sender has gone back.
static void test_whose_window_counts(void **state)
{
	(void)state;
	const struct {
		uint32_t seq, ack;
		uint16_t window;
		uint32_t counts;
	} cases[] = {
		{100, 0, 5000, 5000}, // newer
		{100, 0, 4000, 4000}, // the same again: it shrank
		{99, 0, 9000, 4000}, // older
		{99, 500, 7000, 7000}, // but acknowledges more
	};
	rig_start(&rig, ALL);
	rig_write(&rig, 1000);
	for (unsigned i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
		const struct tcp_segment segment = {.seq = cases[i].seq,
			.ack = rig.c.snd_nxt - 1000 + cases[i].ack,
			.window = cases[i].window,
			.flags = TCP_ACK};
		send_acked(&rig.t, &rig.c, &segment);
		assert_int_equal(rig.c.snd_wnd, cases[i].counts);
	}
	rig.c.scales = 0x57; // the low four bits are the peer's
	rig_ack_full(&rig, 1000, 3, 0, NULL, 0);
	assert_int_equal(rig.c.snd_wnd, 3 << 7);
	rig_end(&rig);
}

static void test_give_up(void **state)
{
	(void)state;
	rig_start(&rig, ALL);
	rig_write(&rig, 5000);
	const uint64_t began_us = rig.t.now_us;
	rig_wait(&rig, 300000);
	rig_ack(&rig, 1000); // it counts from here
	while (rig_due(&rig))
		assert_true(rig_left_ms(&rig) <= 60000);
	assert_int_equal((rig.t.now_us - began_us) / 1000, 120300);
	rig_end(&rig);
}

static void test_writable_when_all_is_sent(void **state)
{
	(void)state;
	rig_start(&rig, ALL);
	assert_int_equal(rig_write(&rig, 74000), 74000);
	assert_false(rig.c.flags & TCP_CONN_WAS_HIGH); // 64,000 unsent
	rig_write(&rig, 1537);
	assert_true(rig.c.flags & TCP_CONN_WAS_HIGH);
	uint32_t ack = 0;
	while (send_queued(&rig.t, &rig.c) > 0) {
		assert_int_equal(rig.t.event_count, 0);
		rig_ack(&rig, ack += 1000);
	}
	assert_int_equal(rig.t.event_count, 1);
	assert_int_equal(rig.events[0].kind, STREAM_WRITABLE);
	rig_ack(&rig, ack += 1000);
	assert_int_equal(rig.t.event_count, 1);
	rig_end(&rig);
}

static void test_limits_of_the_queue(void **state)
{
	(void)state;
	rig_start(&rig, ALL);
	assert_int_equal(rig_write(&rig, 256 << 10), 256 << 10);
	assert_int_equal(rig_count(&rig, TCP_send_none), 0);
	assert_int_equal(rig_write(&rig, 1), 0);
	assert_int_equal(rig_count(&rig, TCP_send_none), 1);
	rig_end(&rig);

	rig_start(&rig, ALL);
	rig.t.plan.send_max = 4 << 20; // more than the pool: 1024 x 512
	assert_int_equal(rig_write(&rig, 600000), 524288);
	assert_int_equal(rig_count(&rig, TCP_send_none), 1);
	rig_end(&rig);

	// No work: nothing is taken.
	rig_start(&rig, ALL);
	struct tcp_conn other = rig.c;
	assert_non_null(work_take(&rig.t, &other));
	assert_int_equal(rig_write(&rig, 1), 0);
	assert_false(send_fin(&rig.t, &rig.c));
	assert_int_equal(rig.c.state, TCP_ESTABLISHED);
	work_give(&rig.t, &other);
	rig_end(&rig);
}

// RFC 5681 4.1: a window that has grown is kept for as long as a timeout of idleness.
static void test_restart_after_idle(void **state)
{
	(void)state;
	for (unsigned is_late = 0; is_late < 2; is_late++) {
		rig_start(&rig, ALL);
		rig_write(&rig, 40000);
		for (uint32_t ack = 1000; ack <= 40000; ack += 1000) {
			rig_wait(&rig, 1000);
			rig_ack(&rig, ack);
		}
		assert_true(send_is_idle(&rig.t, &rig.c));
		assert_true(send_needs_work(&rig.t, &rig.c));
		work_give(&rig.t, &rig.c); // stays
		const uint32_t cwnd = rig_send(&rig)->cwnd;
		assert_true(cwnd > 20000);
		rig_forget(&rig);
		if (is_late) {
			assert_true(rig_due(&rig));
			assert_false(send_needs_work(&rig.t, &rig.c));
			work_give(&rig.t, &rig.c);
			assert_int_equal(rig.c.work, 0);
		} else {
			rig_wait(&rig, 100000);
		}
		rig_write(&rig, 40000);
		assert_int_equal(rig.out_count, is_late ? 10 : cwnd / 1000);
		rig_end(&rig);
	}
}

// RFC 7661: what is not used does not grow.
static void test_no_growth_without_use(void **state)
{
	(void)state;
	rig_start(&rig, ALL);
	for (unsigned i = 0; i < 100; i++) {
		rig_write(&rig, 1000);
		rig_ack(&rig, (i + 1) * 1000);
	}
	assert_int_equal(rig_send(&rig)->cwnd, 10000);
	rig_end(&rig);
}

// RFC 1191 6.5: cut anew and sent again, without blame.
static void test_shrink(void **state)
{
	(void)state;
	rig_start(&rig, ALL);
	rig_write(&rig, 4000);
	rig_forget(&rig);
	send_shrink(&rig.t, &rig.c, 600);
	assert_int_equal(rig.c.mss, 600);
	assert_int_equal(rig.out_count, 7);
	assert_out(0, 0, 600, TCP_ACK);
	assert_out(6, 3600, 400, TCP_ACK | TCP_PSH);
	assert_int_equal(rig_send(&rig)->cwnd, 10000);
	send_shrink(&rig.t, &rig.c, 700); // never up
	assert_int_equal(rig.c.mss, 600);
	send_shrink(&rig.t, &rig.c, 40); // row 48: nor below the floor
	assert_int_equal(rig.c.mss, TCP_MSS_MIN - 12);
	assert_int_equal(rig_count(&rig, TCP_mss_lowered), 2);
	rig_ack(&rig, 4000);
	assert_true(send_is_idle(&rig.t, &rig.c));
	send_shrink(&rig.t, &rig.c, 40);
	assert_int_equal(rig_count(&rig, TCP_mss_lowered), 2);
	rig_end(&rig);
}

// RFC 4821: a path that swallows large segments and says nothing.
static void test_shrink_without_being_told(void **state)
{
	(void)state;
	rig_start(&rig, ALL);
	rig.c.mss = 1448;
	rig_write(&rig, 4000);
	while (rig_count(&rig, TCP_rto_expired) < 3)
		assert_true(rig_due(&rig));
	assert_int_equal(rig.c.mss, 1200);
	assert_int_equal(rig_last(&rig)->len, 1200);
	while (rig_count(&rig, TCP_rto_expired) < 5)
		assert_true(rig_due(&rig));
	assert_int_equal(rig.c.mss, TCP_MSS_MIN - 12);
	rig_ack(&rig, TCP_MSS_MIN - 12);
	rig_end(&rig);

	// What was small already says nothing of the path.
	rig_start(&rig, ALL);
	rig_write(&rig, 300);
	while (rig_due(&rig))
		;
	assert_int_equal(rig.c.mss, RIG_MSS);
	rig_end(&rig);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_an_answer_of_one_segment),
		cmocka_unit_test(test_initial_window_then_slow_start),
		cmocka_unit_test(test_windows_limit_the_flight),
		cmocka_unit_test(test_a_short_segment_only_at_the_end),
		cmocka_unit_test(test_half_of_a_small_window_is_worth_it),
		cmocka_unit_test(test_blocks_make_the_payload_shorter),
		cmocka_unit_test(test_reset_stands_at_snd_nxt),
		cmocka_unit_test(test_fin_follows_the_queue),
		cmocka_unit_test(test_fin_is_sent_again),
		cmocka_unit_test(test_persist),
		cmocka_unit_test(test_a_probe_may_be_taken),
		cmocka_unit_test(test_a_closed_window_is_given_up),
		cmocka_unit_test(test_a_window_that_shrinks),
		cmocka_unit_test(test_whose_window_counts),
		cmocka_unit_test(test_give_up),
		cmocka_unit_test(test_writable_when_all_is_sent),
		cmocka_unit_test(test_limits_of_the_queue),
		cmocka_unit_test(test_restart_after_idle),
		cmocka_unit_test(test_no_growth_without_use),
		cmocka_unit_test(test_shrink),
		cmocka_unit_test(test_shrink_without_being_told),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
