// Loss, told as stories: segments of a thousand bytes, numbered from 0; what the peer says, what
// leaves then. Each names its clause.

#include "tests/unit/net/rig.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <string.h>

#include <cmocka.h>

#define ALL (TCP_CONN_SACK | TCP_CONN_TIMESTAMPS)
#define RTT_US 50000u

static struct rig rig;

static void assert_again(unsigned i, uint32_t seq, uint32_t len)
{
	assert_true(i < rig.out_count);
	assert_int_equal(rig.outs[i].seq, seq);
	assert_int_equal(rig.outs[i].len, len);
}

// Ten segments in flight, a round trip of RTT_US known.
static void start_ten(unsigned flags, uint32_t bytes)
{
	rig_start(&rig, flags);
	rtt_sample(&rig.c, RTT_US);
	rig_write(&rig, bytes);
	assert_true(rig.out_count <= 10);
	rig_forget(&rig);
	rig_wait(&rig, RTT_US);
}

// RFC 5681 3.2, RFC 6582: without SACK, the third duplicate.
static void test_third_duplicate(void **state)
{
	(void)state;
	start_ten(0, 10000);
	rig_ack(&rig, 0);
	rig_ack(&rig, 0);
	assert_int_equal(rig.out_count, 0);
	rig_ack(&rig, 0);
	assert_int_equal(rig.out_count, 1);
	assert_again(0, 0, 1000);
	assert_int_equal(rig_count(&rig, TCP_recoveries), 1);
	assert_int_equal(rig_send(&rig)->ssthresh, 7000);
	rig_ack(&rig, 10000);
	assert_int_equal(rig_send(&rig)->cwnd, 7000);
	assert_int_equal(rig_send(&rig)->sending, TCP_SENDING_OPEN);
	assert_int_equal(rig.out_count, 1);
	rig_end(&rig);
}

// Not a duplicate (RFC 5681 2): a window update, a closed window, a segment that carries data.
static void test_what_is_no_duplicate(void **state)
{
	(void)state;
	start_ten(0, 10000);
	for (unsigned i = 0; i < 5; i++)
		rig_ack_full(&rig, 0, 60000 + i, 0, NULL, 0);
	for (unsigned i = 0; i < 5; i++)
		rig_ack_full(&rig, 0, 0, 0, NULL, 0);
	assert_int_equal(rig.out_count, 0);
	assert_int_equal(rig_count(&rig, TCP_recoveries), 0);
	rig_end(&rig);
}

// RFC 3042: the first two duplicates each let one new segment out, with SACK or without.
static void test_limited_transmit(void **state)
{
	(void)state;
	for (unsigned has_sack = 0; has_sack < 2; has_sack++) {
		start_ten(has_sack ? ALL : 0, 20000);
		for (uint32_t i = 1; i <= 2; i++) {
			if (has_sack)
				rig_sack(&rig, 0, 1, 1000, (i + 1) * 1000);
			else
				rig_ack(&rig, 0);
			assert_int_equal(rig.out_count, i);
			assert_again(i - 1, 9000 + i * 1000, 1000);
		}
		assert_int_equal(rig_send(&rig)->cwnd, 10000);
		rig_end(&rig);
	}
}

// RFC 6582 3.2: segments 0, 3 and 6 are lost; each partial acknowledgement brings the next.
static void test_partial_acknowledgements(void **state)
{
	(void)state;
	start_ten(0, 10000);
	for (unsigned i = 0; i < 7; i++)
		rig_ack(&rig, 0);
	assert_int_equal(rig.out_count, 1);
	rig_ack(&rig, 3000);
	assert_int_equal(rig.out_count, 2);
	assert_again(1, 3000, 1000);
	rig_ack(&rig, 6000);
	assert_again(2, 6000, 1000);
	rig_ack(&rig, 10000);
	assert_int_equal(rig.out_count, 3);
	assert_int_equal(rig_count(&rig, TCP_recoveries), 1); // one window, one reduction
	assert_int_equal(rig_count(&rig, TCP_rto_expired), 0);
	rig_end(&rig);
}

// RFC 6582 3.2 step 1: after a timeout, duplicates of what was in flight then say nothing.
static void test_no_fast_retransmit_of_old_news(void **state)
{
	(void)state;
	start_ten(0, 20000);
	assert_true(rig_due(&rig));
	assert_int_equal(rig_count(&rig, TCP_rto_expired), 1);
	rig_ack(&rig, 10000);
	rig_forget(&rig);
	for (unsigned i = 0; i < 5; i++)
		rig_ack(&rig, 10000);
	assert_int_equal(rig_count(&rig, TCP_recoveries), 0);
	rig_end(&rig);
}

// RFC 6675: segments 0, 2 and 5 are lost. All leave at once when they are known to be, within what
// RFC 9937 has leave for what arrived.
static void test_several_holes(void **state)
{
	(void)state;
	start_ten(ALL, 10000);
	rig_sack(&rig, 0, 1, 1000, 2000);
	rig_sack(&rig, 0, 2, 3000, 4000, 1000, 2000);
	assert_int_equal(rig.out_count, 0);
	rig_sack(&rig, 0, 2, 3000, 5000, 1000, 2000);
	assert_int_equal(rig.out_count, 1);
	assert_again(0, 0, 1000);
	rig_sack(&rig, 0, 3, 6000, 7000, 3000, 5000, 1000, 2000);
	rig_sack(&rig, 0, 3, 6000, 8000, 3000, 5000, 1000, 2000);
	rig_sack(&rig, 0, 3, 6000, 9000, 3000, 5000, 1000, 2000);
	rig_sack(&rig, 0, 3, 6000, 10000, 3000, 5000, 1000, 2000);
	assert_int_equal(rig.out_count, 3);
	assert_again(1, 2000, 1000);
	assert_again(2, 5000, 1000);
	rig_ack(&rig, 10000);
	assert_int_equal(rig_send(&rig)->cwnd, 7000);
	assert_int_equal(rig_count(&rig, TCP_retransmitted), 3);
	assert_int_equal(rig_count(&rig, TCP_rto_expired), 0);
	rig_end(&rig);
}

// RFC 6675 4, IsLost: two segments' worth above is not enough, a byte more is.
static void test_lost_by_bytes(void **state)
{
	(void)state;
	start_ten(ALL, 10000);
	rig_sack(&rig, 0, 1, 1000, 3000);
	assert_int_equal(rig.out_count, 0);
	rig_sack(&rig, 0, 1, 1000, 3001);
	assert_int_equal(rig.out_count, 1);
	rig_end(&rig);
}

// RFC 9937: while more is in flight than ssthresh, seven leave for ten that arrive.
static void test_proportional_reduction(void **state)
{
	(void)state;
	rig_start(&rig, ALL);
	rig_write(&rig, 200000);
	for (uint32_t ack = 1000; ack <= 10000; ack += 1000)
		rig_ack(&rig, ack); // twenty in flight: 10 to 29
	assert_int_equal(rig.out_count, 30);
	rig_sack(&rig, 10000, 1, 11000, 12000);
	rig_sack(&rig, 10000, 1, 11000, 13000);
	rig_forget(&rig);
	for (uint32_t to = 14000; to <= 30000; to += 1000)
		rig_sack(&rig, 10000, 1, 11000, to);
	// 17 came; with the retransmission, 0.7 of them leave
	assert_true(rig.out_count >= 11 && rig.out_count <= 13);
	rig_end(&rig);
}

// The timeout counts from when the first segment was sent again: else a path whose round trip is
// more than half of it would time out in each recovery.
static void test_time_for_the_retransmission(void **state)
{
	(void)state;
	rig_start(&rig, TCP_CONN_SACK);
	for (unsigned i = 0; i < 30; i++)
		rtt_sample(&rig.c, 150000);
	rig_write(&rig, 20000);
	assert_int_equal(rtt_timeout_us(&rig.t, &rig.c), 200000);
	rig_wait(&rig, 150000);
	rig_sack(&rig, 0, 1, 1000, 10000);
	assert_int_equal(rig_count(&rig, TCP_retransmitted), 1);
	assert_int_equal(rig_left_ms(&rig), 200);
	rig_wait(&rig, 150000);
	rig_ack(&rig, 10000);
	assert_int_equal(rig_count(&rig, TCP_rto_expired), 0);
	rig_end(&rig);
}

// RFC 6298 5.4 to 5.7, RFC 5681 3.1: one segment, in slow start from there, passing over what the
// peer holds (RFC 2018).
static void test_timeout_goes_back(void **state)
{
	(void)state;
	start_ten(TCP_CONN_SACK, 10000);
	rig_sack(&rig, 0, 1, 3000, 4000);
	rig_wait(&rig, 200000);
	rig_send(&rig)->alarm = TCP_ALARM_RTO;
	assert_true(rig_due(&rig));
	assert_int_equal(rig.out_count, 1);
	assert_again(0, 0, 1000);
	assert_int_equal(rig_send(&rig)->cwnd, 1000);
	assert_int_equal(rig_send(&rig)->ssthresh, 7000);
	rig_wait(&rig, RTT_US);
	rig_ack(&rig, 1000);
	assert_int_equal(rig.out_count, 3);
	assert_again(1, 1000, 1000);
	assert_again(2, 2000, 1000);
	rig_wait(&rig, RTT_US);
	rig_ack(&rig, 4000);
	assert_again(3, 4000, 1000);
	rig_ack(&rig, 10000);
	assert_true(send_is_idle(&rig.t, &rig.c));
	rig_end(&rig);
}

// In that slow start an acknowledgement opens the window by one segment, however much it covers,
// since the peer may have had it all along (RFC 3465 2.3); and without SACK duplicates open
// nothing.
static void test_slow_start_after_a_timeout(void **state)
{
	(void)state;
	start_ten(0, 10000);
	assert_true(rig_due(&rig));
	rig_ack(&rig, 4000);
	assert_int_equal(rig_send(&rig)->cwnd, 2000);
	assert_int_equal(rig.out_count, 3);
	for (unsigned i = 0; i < 5; i++)
		rig_ack(&rig, 4000);
	assert_int_equal(rig.out_count, 3);
	rig_end(&rig);
}

// RFC 2018 8: the peer has thrown away what it held; the timeout forgets that it did.
static void test_reneging(void **state)
{
	(void)state;
	start_ten(TCP_CONN_SACK, 4000);
	rig_sack(&rig, 0, 1, 1000, 3000);
	rig_ack(&rig, 1000); // no further, though it had 1 and 2
	while (rig_count(&rig, TCP_rto_expired) == 0) {
		rig_forget(&rig);
		assert_true(rig_due(&rig));
	}
	assert_again(0, 1000, 1000);
	rig_ack(&rig, 2000);
	assert_again(1, 2000, 1000);
	assert_again(2, 3000, 1000);
	rig_end(&rig);
}

// RFC 2883, and worse: blocks that are nowhere change nothing.
static void test_blocks_that_are_nowhere(void **state)
{
	(void)state;
	start_ten(ALL, 10000);
	rig_ack(&rig, 3000);
	for (unsigned i = 0; i < 5; i++) {
		rig_sack(&rig, 3000, 4, 0, 1000, 2000, 5000, 9000, 11000, 5000, 5000);
		rig_sack(&rig, 3000, 4, 6000, 4000, 3000, 9000, 20000, 30000, 2147483648u, 4000);
	}
	assert_int_equal(rig_send(&rig)->sacked, 0);
	assert_int_equal(rig_send(&rig)->duplicates, 0);
	assert_int_equal(rig.out_count, 0);
	rig_end(&rig);
}

// Karn, without timestamps: what was sent again is not measured, and the back-off stays (RFC 6298
// 3, 5.7) until something is.
static void test_karn(void **state)
{
	(void)state;
	start_ten(0, 1000);
	assert_true(rig_due(&rig));
	assert_int_equal(rig.c.rto_backoff, 1);
	rig_wait(&rig, 10000);
	rig_ack(&rig, 1000);
	assert_int_equal(rig.c.srtt_us, RTT_US);
	assert_int_equal(rig.c.rto_backoff, 1);
	rig_write(&rig, 1000);
	rig_wait(&rig, RTT_US);
	rig_ack(&rig, 2000);
	assert_int_equal(rig.c.rto_backoff, 0);
	rig_end(&rig);
}

// RFC 7323 4: with timestamps it is measured, by the echo.
static void test_timestamps_instead_of_karn(void **state)
{
	(void)state;
	start_ten(TCP_CONN_TIMESTAMPS, 1000);
	assert_true(rig_due(&rig));
	const uint32_t stamp = rig_last(&rig)->stamp;
	rig_wait(&rig, 90000);
	rig_ack_full(&rig, 1000, 65535, stamp, NULL, 0);
	assert_int_equal(rig.c.srtt_us, (7 * RTT_US + 90000) / 8);
	assert_int_equal(rig.c.rto_backoff, 0);
	rig_end(&rig);
}

static void test_an_echo_of_no_clock_of_ours(void **state)
{
	(void)state;
	start_ten(TCP_CONN_TIMESTAMPS, 1000);
	assert_true(rig_due(&rig));
	rig_ack_full(&rig, 1000, 65535, rig_last(&rig)->stamp + 500000000, NULL, 0);
	assert_int_equal(rig.c.srtt_us, RTT_US);
	rig_end(&rig);
}

// Row 52, RFC 6298 5.5: twice as long each time, up to the ceiling; by the first sample from 200
// ms.
static void test_back_off(void **state)
{
	(void)state;
	for (unsigned has_sample = 0; has_sample < 2; has_sample++) {
		rig_start(&rig, 0);
		if (has_sample)
			rtt_sample(&rig.c, 1000);
		rig.t.plan.give_up_us = 1000000000;
		rig_write(&rig, 1000);
		uint64_t wait_ms = has_sample ? 200 : 1000;
		for (unsigned i = 0; i < 12; i++) {
			assert_int_equal(rig_left_ms(&rig), wait_ms);
			assert_true(rig_due(&rig));
			assert_again(i + 1, 0, rig.c.mss < 1000 ? rig.c.mss : 1000);
			wait_ms = wait_ms * 2 < 60000 ? wait_ms * 2 : 60000;
		}
		rig_end(&rig);
	}
}

// Eifel (RFC 3522): the acknowledgement was only late. Nothing more is sent again, nothing is lost.
static void test_a_needless_timeout_is_taken_back(void **state)
{
	(void)state;
	rig_start(&rig, ALL & ~TCP_CONN_SACK);
	rtt_sample(&rig.c, RTT_US);
	rig_write(&rig, 30000);
	const uint32_t stamp = rig_last(&rig)->stamp;
	assert_true(rig_due(&rig));
	assert_int_equal(rig_send(&rig)->cwnd, 1000);
	rig_forget(&rig);
	rig_ack_full(&rig, 2000, 65535, stamp, NULL, 0);
	assert_true(rig_send(&rig)->cwnd >= 10000);
	assert_int_equal(rig_send(&rig)->sending, TCP_SENDING_OPEN);
	for (unsigned i = 0; i < rig.out_count; i++)
		assert_true(rig.outs[i].seq >= 10000);
	rig_end(&rig);
}

// RFC 8985 7: the tail is sent again after two round trips, once; then comes the timeout.
static void test_tail_loss_probe(void **state)
{
	(void)state;
	start_ten(ALL, 3000);
	assert_int_equal(rig_left_ms(&rig), RTT_US / 1000); // of two, one has passed
	assert_true(rig_due(&rig));
	assert_int_equal(rig.out_count, 1);
	assert_again(0, 2000, 1000);
	assert_int_equal(rig_count(&rig, TCP_tail_probes), 1);
	assert_int_equal(rig_send(&rig)->cwnd, 10000);
	assert_int_equal(rig_left_ms(&rig), 200);
	// The tail arrived now; a little later the rest is known to be lost by it.
	rig_wait(&rig, RTT_US);
	rig_sack(&rig, 0, 1, 2000, 3000);
	assert_true(rig_due(&rig));
	assert_again(1, 0, 1000);
	assert_again(2, 1000, 1000);
	assert_int_equal(rig_count(&rig, TCP_recoveries), 1);
	assert_int_equal(rig_count(&rig, TCP_rto_expired), 0);
	rig_end(&rig);
}

// What is no more than a segment may be held back by the peer's delayed acknowledgement; on a fast
// link the probe still leaves the peer some time; and it never comes after the timeout.
static void test_when_a_probe_comes(void **state)
{
	(void)state;
	const struct {
		uint32_t bytes, rtt_us, wait_ms;
	} cases[] = {
		{500, 1000, 200},
		{500, 30000, 200},
		{500, 100000, 300},
		{1000, 1000, 200},
		{1001, 1000, 10},
		{2000, 5001, 11},
		{10000, 50000, 100},
		{10000, 0, 1000},
	};
	for (unsigned i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
		rig_start(&rig, ALL);
		if (cases[i].rtt_us)
			rtt_sample(&rig.c, cases[i].rtt_us);
		rig_write(&rig, cases[i].bytes);
		assert_int_equal(rig_left_ms(&rig), cases[i].wait_ms);
		assert_true(rig_due(&rig));
		assert_int_equal(rig_count(&rig, TCP_tail_probes), 1);
		rig_end(&rig);
	}
}

static void test_probe_with_new_data(void **state)
{
	(void)state;
	start_ten(ALL, 12000);
	assert_true(rig_due(&rig));
	assert_int_equal(rig.out_count, 1);
	assert_again(0, 10000, 1000);
	assert_int_equal(rig_count(&rig, TCP_retransmitted), 0);
	rig_ack(&rig, 11000);
	assert_true(rig_send(&rig)->cwnd >= 10000);
	rig_end(&rig);
}

// RFC 8985 7.4: a probe that was needed is a loss; one whose original arrived is none.
static void test_what_a_probe_tells(void **state)
{
	(void)state;
	for (unsigned was_needed = 0; was_needed < 2; was_needed++) {
		start_ten(ALL, 3000);
		const uint32_t stamp = send_timestamp(&rig.t, &rig.c);
		assert_true(rig_due(&rig));
		rig_ack_full(
			&rig, 3000, 65535, was_needed ? rig_last(&rig)->stamp : stamp - 1, NULL, 0);
		assert_int_equal(rig_send(&rig)->cwnd, was_needed ? 7000 : 10000);
		rig_end(&rig);
	}
	// Or by D-SACK.
	start_ten(TCP_CONN_SACK, 3000);
	assert_true(rig_due(&rig));
	rig_sack(&rig, 3000, 1, 2000, 3000);
	assert_int_equal(rig_send(&rig)->cwnd, 10000);
	rig_end(&rig);
}

static void test_no_probe_without_sack_or_after_a_timeout(void **state)
{
	(void)state;
	start_ten(TCP_CONN_TIMESTAMPS, 3000);
	assert_true(rig_due(&rig));
	assert_int_equal(rig_count(&rig, TCP_tail_probes), 0);
	assert_true(rig_due(&rig));
	assert_int_equal(rig_count(&rig, TCP_tail_probes), 0);
	assert_int_equal(rig_count(&rig, TCP_rto_expired), 2);
	rig_end(&rig);

	start_ten(ALL, 3000);
	while (rig_count(&rig, TCP_rto_expired) < 3)
		assert_true(rig_due(&rig));
	assert_int_equal(rig_count(&rig, TCP_tail_probes), 1);
	rig_end(&rig);
}

// In fast recovery the last retransmission, or the acknowledgement of it, is lost, and nothing else
// is on its way: a probe, not a timeout.
static void test_probe_in_recovery(void **state)
{
	(void)state;
	start_ten(ALL, 4000);
	rig_sack(&rig, 0, 1, 1000, 4000);
	assert_again(0, 0, 1000);
	assert_int_equal(rig_left_ms(&rig), 2 * RTT_US / 1000);
	assert_true(rig_due(&rig));
	assert_again(1, 0, 1000);
	assert_int_equal(rig_count(&rig, TCP_tail_probes), 1);
	assert_int_equal(rig_left_ms(&rig), 200); // one is all
	rig_wait(&rig, RTT_US);
	rig_ack(&rig, 4000);
	assert_int_equal(rig_send(&rig)->sending, TCP_SENDING_OPEN);
	assert_int_equal(rig_send(&rig)->cwnd, 7000);
	assert_int_equal(rig_count(&rig, TCP_rto_expired), 0);
	rig_end(&rig);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_third_duplicate),
		cmocka_unit_test(test_what_is_no_duplicate),
		cmocka_unit_test(test_limited_transmit),
		cmocka_unit_test(test_partial_acknowledgements),
		cmocka_unit_test(test_no_fast_retransmit_of_old_news),
		cmocka_unit_test(test_several_holes),
		cmocka_unit_test(test_lost_by_bytes),
		cmocka_unit_test(test_proportional_reduction),
		cmocka_unit_test(test_time_for_the_retransmission),
		cmocka_unit_test(test_timeout_goes_back),
		cmocka_unit_test(test_slow_start_after_a_timeout),
		cmocka_unit_test(test_reneging),
		cmocka_unit_test(test_blocks_that_are_nowhere),
		cmocka_unit_test(test_karn),
		cmocka_unit_test(test_timestamps_instead_of_karn),
		cmocka_unit_test(test_an_echo_of_no_clock_of_ours),
		cmocka_unit_test(test_back_off),
		cmocka_unit_test(test_a_needless_timeout_is_taken_back),
		cmocka_unit_test(test_tail_loss_probe),
		cmocka_unit_test(test_when_a_probe_comes),
		cmocka_unit_test(test_probe_with_new_data),
		cmocka_unit_test(test_what_a_probe_tells),
		cmocka_unit_test(test_no_probe_without_sack_or_after_a_timeout),
		cmocka_unit_test(test_probe_in_recovery),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
