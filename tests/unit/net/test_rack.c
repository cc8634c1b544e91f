// Loss told by time (RFC 8985) and the map of the flight, told as stories: segments of a thousand
// bytes, numbered from 0; what the peer says, what leaves then.

#include "tests/unit/net/rig.h"

#include "dataplane/net/tcp/flight.h"
#include "dataplane/net/tcp/rack.h"

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
	rig_forget(&rig);
	rig_wait(&rig, RTT_US);
}

// RFC 8985 6.2: the tail is lost too, and nothing comes after it to tell; but what was sent again
// left later, and has arrived.
static void test_the_tail_of_a_recovery(void **state)
{
	(void)state;
	start_ten(ALL, 8000);
	rig_sack(&rig, 0, 1, 1000, 4000); // 0 lost, 4 to 7 too
	assert_again(0, 0, 1000);
	rig_wait(&rig, RTT_US);
	rig_ack(&rig, 4000);
	assert_true(rig.out_count > 1);
	for (uint32_t i = 1; i < 4; i++) {
		assert_again(i, 3000 + i * 1000, 1000);
		rig_wait(&rig, RTT_US);
		rig_ack(&rig, 4000 + i * 1000);
	}
	rig_ack(&rig, 8000);
	assert_true(send_is_idle(&rig.t, &rig.c));
	assert_int_equal(rig_count(&rig, TCP_retransmitted), 5);
	assert_int_equal(rig_count(&rig, TCP_tail_probes), 0);
	rig_end(&rig);
}

// Once a path has been seen to re-order, what is overtaken gets time, in recovery too: RFC 8985 6.2
// step 4.
static void test_time_for_what_is_overtaken(void **state)
{
	(void)state;
	start_ten(ALL, 12000);
	rack_measured(&rig.t, rig_send(&rig), RTT_US);
	rig_sack(&rig, 0, 1, 2000, 3000);
	rig_sack(&rig, 0, 1, 1000, 3000); // overtaken
	assert_true(rig_send(&rig)->rack.has_reordered);
	assert_int_equal(rig_count(&rig, TCP_retransmitted), 0);
	rig_sack(&rig, 0, 1, 1000, 10000); // more than enough, but not yet
	assert_int_equal(rig_count(&rig, TCP_retransmitted), 0);
	assert_int_equal(rig_left_ms(&rig), 13); // a quarter of a round trip
	assert_true(rig_due(&rig));
	assert_int_equal(rig_count(&rig, TCP_retransmitted), 1);
	assert_int_equal(rig_count(&rig, TCP_recoveries), 1);
	assert_int_equal(rig_last(&rig)->seq, 0);
	assert_int_equal(rig_count(&rig, TCP_rto_expired), 0);
	rig_end(&rig);
}

// The same on a path that has not: too little has arrived for RFC 6675, but time tells.
static void test_too_little_to_count(void **state)
{
	(void)state;
	start_ten(ALL, 3000);
	rack_measured(&rig.t, rig_send(&rig), RTT_US);
	rig_sack(&rig, 0, 1, 1000, 3000);
	assert_int_equal(rig.out_count, 0);
	assert_true(rig_due(&rig));
	assert_again(0, 0, 1000);
	assert_int_equal(rig_count(&rig, TCP_recoveries), 1);
	assert_int_equal(rig_count(&rig, TCP_tail_probes), 0);
	rig_end(&rig);
}

// RFC 8985 6.2 step 4: each round trip with a D-SACK gives another quarter, at most a round trip in
// all; sixteen recoveries without one take them back.
static void test_duplicates_widen(void **state)
{
	(void)state;
	start_ten(ALL, 30000);
	const struct tcp_rack *rack = &rig_send(&rig)->rack;
	rack_measured(&rig.t, rig_send(&rig), RTT_US);
	rig_sack(&rig, 1000, 1, 0, 1000);
	rig_sack(&rig, 1000, 1, 0, 1000); // the same round trip
	assert_int_equal(rack->widened, 1);
	rig_sack(&rig, 2000, 2, 4000, 5000, 4000, 6000); // inside the second block
	assert_int_equal(rack->widened, 1);
	const uint32_t next = rig.c.snd_nxt - rig.c.snd_una + 2000;
	rig_ack(&rig, next);
	assert_int_equal(rack->widened, 1);
	rig_sack(&rig, next, 2, next + 1000, next + 2000, next + 1000, next + 3000);
	assert_int_equal(rack->widened, 2);
	assert_int_equal(rig_send(&rig)->sacked, 2000);
	for (unsigned i = 0; i < RACK_PERSISTS; i++) {
		assert_int_equal(rack->widened, 2);
		rack_recovered(rig_send(&rig));
	}
	assert_int_equal(rack->widened, 0);
	rig_end(&rig);
}

// RFC 8985 6.2 step 5: a retransmission that is lost is found by the first that was sent after it,
// not by a timeout; and counts as a second loss (RFC 5681 4.3).
static void test_a_retransmission_lost(void **state)
{
	(void)state;
	rig_start(&rig, ALL);
	rig_write(&rig, 100000);
	rig_sack(&rig, 0, 1, 1000, 4000);
	assert_int_equal(rig_count(&rig, TCP_retransmitted), 1);
	const uint32_t mark = rig.c.snd_nxt - rig.c.snd_una, ssthresh = rig_send(&rig)->ssthresh;
	rig_wait(&rig, RTT_US);
	uint32_t to = 5000;
	for (; to <= mark; to += 1000)
		rig_sack(&rig, 0, 1, 1000, to);
	assert_int_equal(rig_count(&rig, TCP_retransmitted), 1);
	rig_sack(&rig, 0, 1, 1000, to);
	assert_int_equal(rig_count(&rig, TCP_retransmitted), 2);
	assert_int_equal(rig_last(&rig)->len, 1000);
	assert_true(rig_send(&rig)->ssthresh < ssthresh);
	assert_int_equal(rig_count(&rig, TCP_rto_expired), 0);
	rig_end(&rig);
}

// The same for one in the middle: 0, 3 and 6 are lost, and 3 once more.
static void test_a_retransmission_lost_in_the_middle(void **state)
{
	(void)state;
	start_ten(ALL, 10000);
	rig_sack(&rig, 0, 1, 1000, 3000);
	rig_sack(&rig, 0, 2, 4000, 6000, 1000, 3000);
	rig_sack(&rig, 0, 3, 7000, 10000, 4000, 6000, 1000, 3000);
	assert_int_equal(rig_count(&rig, TCP_retransmitted), 3);
	assert_again(1, 3000, 1000);
	assert_again(2, 6000, 1000);
	rig_wait(&rig, RTT_US);
	rig_sack(&rig, 3000, 1, 4000, 10000);
	assert_int_equal(rig_count(&rig, TCP_retransmitted), 4);
	assert_again(3, 3000, 1000);
	rig_wait(&rig, RTT_US);
	rig_ack(&rig, 10000);
	assert_true(send_is_idle(&rig.t, &rig.c));
	rig_end(&rig);
}

// RFC 8985 6.2 step 2: the first of them may be what arrived, late; then it proves nothing.
static void test_an_arrival_that_proves_nothing(void **state)
{
	(void)state;
	for (unsigned by_stamp = 0; by_stamp < 2; by_stamp++) {
		start_ten(by_stamp ? ALL : TCP_CONN_SACK, 10000);
		rack_measured(&rig.t, rig_send(&rig), by_stamp ? 1 : RTT_US);
		const uint32_t stamp = send_timestamp(&rig.t, &rig.c) - RTT_US / 1000;
		const struct tcp_sack held = {1000, 4000};
		rig_ack_full(&rig, 0, 65535, stamp, &held, 1);
		assert_again(0, 0, 1000);
		rig_wait(&rig, by_stamp ? 10000 : 100);
		rig_ack_full(&rig, 4000, 65535, stamp, NULL, 0);
		assert_int_equal(rig_count(&rig, TCP_retransmitted), 1);
		rig_ack_full(&rig, 10000, 65535, stamp, NULL, 0);
		rig_end(&rig);
	}
}

// Row 48: the map of the flight is bounded. At its limit, and one beyond.
static void test_map_is_bounded(void **state)
{
	(void)state;
	start_ten(ALL, 10000);
	struct tcp_work_send *s = rig_send(&rig);
	const uint32_t most = (TCP_RUNS_MAX - 1) / 2; // each with what is under way before it
	for (uint32_t i = 0; i < most; i++)
		rig_sack(&rig, 0, 1, 1000 + 4 * i, 1001 + 4 * i);
	assert_int_equal(s->sacked, most);
	rig_sack(&rig, 0, 1, 9000, 9001);
	rig_sack(&rig, 0, 1, 9500, 9501); // above all: not noted
	assert_true(s->run_count <= TCP_RUNS_MAX);
	assert_true(s->sacked <= most + 1);
	rig_sack(&rig, 0, 1, 900, 910); // below all: takes the highest's place
	assert_true(s->run_count <= TCP_RUNS_MAX);
	assert_int_equal(s->runs[1].from - s->runs[0].from, 900);
	assert_int_equal(s->runs[1].fate, TCP_FATE_HELD);
	rig_sack(&rig, 0, 1, 800, 10000);
	assert_int_equal(s->sacked, 9200);
	rig_end(&rig);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_the_tail_of_a_recovery),
		cmocka_unit_test(test_time_for_what_is_overtaken),
		cmocka_unit_test(test_too_little_to_count),
		cmocka_unit_test(test_duplicates_widen),
		cmocka_unit_test(test_a_retransmission_lost),
		cmocka_unit_test(test_a_retransmission_lost_in_the_middle),
		cmocka_unit_test(test_an_arrival_that_proves_nothing),
		cmocka_unit_test(test_map_is_bounded),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
