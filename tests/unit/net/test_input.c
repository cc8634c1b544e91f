// Segments on an open connection, row by row: RFC 9293 3.10.7.4 in its order, RFC 7323 5, RFC 5961;
// and what ICMP says of it.

#include "tests/unit/net/wire.h"

#include <errno.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <string.h>

#include <cmocka.h>

static struct wire wire;

static int start(void **state)
{
	(void)state;
	wire_start(&wire);
	wire_open(&wire, WIRE_ALL);
	return 0;
}

static int end(void **state)
{
	(void)state;
	wire_end(&wire);
	return 0;
}

static enum tcp_state state_of(void)
{
	return wire_conn(&wire)->state;
}

// An ACK that tells where we are.
#define assert_told(seq, ack) assert_true(wire_is_told(&wire, seq, ack))

// ---- First: sequence number. ----

static void test_in_order(void **state)
{
	(void)state;
	wire_send(&wire, TCP_ACK | TCP_PSH, 1, "GET");
	assert_true(wire_has_events(&wire, 1, STREAM_DATA));
	assert_string_equal(wire_text(&wire), "GET");
	assert_int_equal(wire.out_count, 0); // the ACK waits for an answer to ride on
	wire_write(&wire, "200");
	assert_int_equal(wire.out_count, 1);
	assert_int_equal(wire_last(&wire)->ack, wire.first + 4);
	assert_memory_equal(wire_last(&wire)->text, "200", 3);
	wire_wait(&wire, 50000);
	assert_int_equal(wire.out_count, 1);
}

static void test_delayed_ack(void **state)
{
	(void)state;
	wire_send(&wire, TCP_ACK, 1, "GET");
	wire_wait(&wire, 38000);
	assert_int_equal(wire.out_count, 0);
	wire_wait(&wire, 4000); // 40 ms, and the wheel's ticks
	assert_told(1, 4);
	assert_int_equal(wire.out_count, 1);
	wire_wait(&wire, 100000);
	assert_int_equal(wire.out_count, 1);
}

// RFC 9293 3.8.6.3: every second segment; and a third has its own delay again.
static void test_every_second_at_once(void **state)
{
	(void)state;
	wire_send(&wire, TCP_ACK, 1, "abc");
	wire_send(&wire, TCP_ACK, 4, "def");
	assert_told(1, 7);
	wire_send(&wire, TCP_ACK, 7, "ghi");
	assert_int_equal(wire.out_count, 1);
	wire_wait(&wire, 42000);
	assert_told(1, 10);
}

// Segments in between do not put an ACK off for ever.
static void test_delay_is_not_prolonged(void **state)
{
	(void)state;
	wire_write(&wire, "x");
	wire_send(&wire, TCP_ACK, 1, "abc");
	wire_forget(&wire);
	wire_wait(&wire, 30000);
	wire_send(&wire, TCP_ACK, 4, NULL); // a window update
	wire_wait(&wire, 12000);
	assert_told(2, 4);
}

static const struct {
	const char *what;
	uint32_t seq;
	uint8_t flags;
	const char *text;
	bool is_told; // at once
} rows[] = {
	// rcv_nxt is 11, the window ends at 1 + 16384
	{"old data, all of it", 1, TCP_ACK, "0123456789", true},
	{"old data, its last byte", 10, TCP_ACK, "9", true},
	{"a keep-alive probe", 10, TCP_ACK, NULL, true},
	{"an old FIN", 9, TCP_ACK | TCP_FIN, "8", true},
	{"data right of the window", 16400, TCP_ACK, "x", true},
	{"an empty one right of it", 16400, TCP_ACK, NULL, true},
	{"data far away", 0x80000000, TCP_ACK, "x", true},
	{"a RST left of the window", 10, TCP_RST, NULL, false},
	{"a RST right of it", 16400, TCP_RST, NULL, false},
	{"a RST far away", 0x80000000, TCP_RST | TCP_ACK, NULL, false},
	{"an empty one in order", 11, TCP_ACK, NULL, false},
	{"one without ACK", 11, 0, "x", false},
	{"URG is ignored", 11, TCP_ACK | TCP_URG, NULL, false},
};

static void test_not_acceptable(void **state)
{
	(void)state;
	wire_send(&wire, TCP_ACK, 1, "01234");
	wire_send(&wire, TCP_ACK, 6, "56789");
	for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
		wire_wait(&wire, 2000000); // a new second's challenges
		wire_forget(&wire);
		wire_send(&wire, rows[i].flags, rows[i].seq, rows[i].text);
		if (wire.out_count != rows[i].is_told)
			fail_msg("%s: %u", rows[i].what, wire.out_count);
		if (rows[i].is_told)
			assert_told(1, 11);
		assert_true(wire_has_events(&wire, 0));
		assert_int_equal(state_of(), TCP_ESTABLISHED);
	}
	assert_int_equal(wire_count(&wire, TCP_out_of_window), 10); // but for the last three rows
	assert_int_equal(wire_count(&wire, TCP_segments_in), 4 + sizeof(rows) / sizeof(rows[0]));
}

static void test_front_and_end_are_trimmed(void **state)
{
	(void)state;
	wire_send(&wire, TCP_ACK, 1, "abc");
	wire_send(&wire, TCP_ACK, 2, "bcde"); // three known, two new
	assert_string_equal(wire_text(&wire), "de");
	assert_told(1, 6);
}

static void test_urgent_data_is_data(void **state)
{
	(void)state;
	wire_send(&wire, TCP_ACK | TCP_URG, 1, "abc"); // RFC 6093
	assert_string_equal(wire_text(&wire), "abc");
}

// ---- RFC 7323. ----

static void test_paws(void **state)
{
	(void)state;
	struct tcp_segment old = wire_segment(&wire, TCP_ACK, 1, "GET");
	old.ts_value--;
	wire_give(&wire, old);
	assert_true(wire_has_events(&wire, 0));
	assert_told(1, 1);
	assert_int_equal(wire_count(&wire, TCP_paws_old), 1);
	wire_send(&wire, TCP_ACK, 1, "GET"); // equal is good
	assert_string_equal(wire_text(&wire), "GET");
	old = wire_segment(&wire, TCP_RST, 4, NULL); // 5.2: not of a RST
	old.ts_value -= 1000;
	wire_give(&wire, old);
	assert_true(wire_has_events(&wire, 1, STREAM_CLOSED));
}

// 4.3: the timestamp to echo is that of the earliest segment that is not acknowledged.
static void test_ts_recent(void **state)
{
	(void)state;
	uint32_t first = (uint32_t)(wire.now_us / 1000) + 10;
	wire_wait(&wire, 10000);
	wire_send(&wire, TCP_ACK, 1, "abc");
	wire_wait(&wire, 10000);
	wire_send(&wire, TCP_ACK, 4, "def"); // acknowledges both
	assert_int_equal(wire_last(&wire)->read.ts_echo, first);
	wire_wait(&wire, 10000);
	wire_send(&wire, TCP_ACK, 17, "beyond a gap"); // not in order: not noted
	assert_int_equal(wire_last(&wire)->read.ts_echo, first);
	wire_send(&wire, TCP_ACK, 7, "0123456789"); // fills the gap
	assert_int_equal(wire_last(&wire)->read.ts_echo, first + 20);
}

static void test_peer_may_drop_timestamps(void **state)
{
	(void)state;
	struct tcp_segment segment = wire_segment(&wire, TCP_ACK, 1, "GET");
	segment.has_timestamp = false;
	wire_give(&wire, segment);
	assert_string_equal(wire_text(&wire), "GET");
}

static void test_timestamps_that_were_not_agreed_on(void **state)
{
	(void)state;
	wire.peer.port++;
	wire_open(&wire, WIRE_BARE);
	struct tcp_segment segment = wire_segment(&wire, TCP_ACK, 1, "abc");
	segment.has_timestamp = true;
	segment.ts_value = 5;
	wire_give(&wire, segment);
	assert_string_equal(wire_text(&wire), "abc");
	segment.seq += 3;
	segment.ts_value = 4;
	wire_give(&wire, segment);
	assert_string_equal(wire_text(&wire), "abc");
	assert_false(wire_last(&wire)->read.has_timestamp);
}

// 5.5: nothing lives long enough to see its peer's clock go around.
static void test_idle_ends_before_24_days(void **state)
{
	(void)state;
	wire_wait(&wire, wire.plan.idle_us - 2000);
	assert_true(wire_has_events(&wire, 0));
	wire_wait(&wire, 5000);
	assert_true(wire_has_events(&wire, 1, STREAM_CLOSED));
	assert_int_equal(wire.events[0].error, ETIMEDOUT);
	assert_int_equal(wire_count(&wire, TCP_idle_late), 1);
	assert_int_equal(wire_last(&wire)->flags & TCP_RST, TCP_RST);
}

// ---- Second: RST (RFC 5961 3). ----

static void test_exact_rst(void **state)
{
	(void)state;
	wire_send(&wire, TCP_RST, 1, NULL);
	assert_true(wire_has_events(&wire, 1, STREAM_CLOSED));
	assert_int_equal(wire.events[0].error, ECONNRESET);
	assert_int_equal(wire.out_count, 0);
	assert_int_equal(wire_count(&wire, TCP_rst_in), 1);
}

static void test_rst_in_the_window_is_challenged(void **state)
{
	(void)state;
	wire_send(&wire, TCP_RST, 2, NULL);
	assert_told(1, 1);
	wire_send(&wire, TCP_RST, 16384, NULL);
	assert_int_equal(wire_count(&wire, TCP_challenged), 2);
	assert_int_equal(state_of(), TCP_ESTABLISHED);
}

// ---- Fourth: SYN (RFC 5961 4). ----

static void test_syn_is_challenged(void **state)
{
	(void)state;
	wire_send(&wire, TCP_SYN, 0, NULL); // the old one, again
	assert_told(1, 1);
	wire_wait(&wire, 2000000);
	wire_send(&wire, TCP_SYN, 1, NULL);
	wire_wait(&wire, 2000000);
	wire_send(&wire, TCP_SYN | TCP_ACK, 0x7000000, NULL);
	assert_int_equal(wire_count(&wire, TCP_challenged), 3);
	assert_int_equal(state_of(), TCP_ESTABLISHED);
}

// RFC 5961 7, CVE-2016-5696: few of them a second, and nobody can tell how few.
static void test_challenges_are_limited(void **state)
{
	(void)state;
	unsigned seen[5] = {0};
	for (unsigned second = 0; second < 40; second++) {
		wire_wait(&wire, 1100000);
		wire_forget(&wire);
		for (unsigned i = 0; i < 10; i++)
			wire_send(&wire, TCP_SYN, 0, NULL);
		assert_in_range(wire.out_count, 2, 4); // of challenge_rate 4
		seen[wire.out_count]++;
	}
	assert_true(seen[2] > 0 && seen[3] > 0 && seen[4] > 0);
	assert_true(wire_count(&wire, TCP_challenge_limited) >= 40 * 6);
}

// ---- Fifth: ACK. ----

static void test_ack_of_what_was_never_sent(void **state)
{
	(void)state;
	wire.ack = 2;
	wire_send(&wire, TCP_ACK, 1, "GET");
	assert_told(1, 1);
	assert_true(wire_has_events(&wire, 0));
	assert_int_equal(wire_count(&wire, TCP_ack_unseen), 1);
}

// RFC 5961 5.2: older than any window ever was.
static void test_ack_far_behind(void **state)
{
	(void)state;
	wire.ack = 1 - (65535u << 7) - 1;
	wire_send(&wire, TCP_ACK, 1, "GET");
	assert_true(wire_has_events(&wire, 0));
	assert_int_equal(wire_count(&wire, TCP_ack_unseen), 1);
	wire.ack++; // a duplicate, but a possible one
	wire_send(&wire, TCP_ACK, 1, "GET");
	assert_string_equal(wire_text(&wire), "GET");
}

static void test_window_without_work(void **state)
{
	(void)state;
	wire.window = 100;
	wire_send(&wire, TCP_ACK, 1, NULL);
	assert_int_equal(wire_conn(&wire)->snd_wnd, 100u << 7);
	assert_int_equal(wire_conn(&wire)->work, 0);
}

// ---- ICMP. ----

static void test_too_big(void **state)
{
	(void)state;
	struct tcp_segment quoted = {
		.local = wire.local, .peer = wire.peer, .seq = wire.cookie + 1};
	wire_turn(&wire, NULL, 0);
	tcp_too_big(wire.t, &quoted, 1400); // nothing is in flight
	assert_int_equal(wire_count(&wire, TCP_too_big_ignored), 1);
	wire_flush(&wire);
	wire_write(&wire, "answer");
	wire_turn(&wire, NULL, 0);
	quoted.seq += 6; // RFC 5927 7.1: not in flight
	tcp_too_big(wire.t, &quoted, 1400);
	quoted.seq -= 6;
	tcp_too_big(wire.t, &quoted, 1500); // no smaller
	assert_int_equal(wire_count(&wire, TCP_too_big_ignored), 3);
	tcp_too_big(wire.t, &quoted, 1400);
	assert_int_equal(wire_conn(&wire)->mss, 1400 - 40 - 12);
	tcp_too_big(wire.t, &quoted, 68); // never below the floor
	assert_int_equal(wire_conn(&wire)->mss, 536 - 12);
	assert_int_equal(wire_count(&wire, TCP_mss_lowered), 2);
	wire_flush(&wire);
}

#define TEST(name) cmocka_unit_test_setup_teardown(name, start, end)

int main(void)
{
	const struct CMUnitTest tests[] = {
		TEST(test_in_order),
		TEST(test_delayed_ack),
		TEST(test_every_second_at_once),
		TEST(test_delay_is_not_prolonged),
		TEST(test_not_acceptable),
		TEST(test_front_and_end_are_trimmed),
		TEST(test_urgent_data_is_data),
		TEST(test_paws),
		TEST(test_ts_recent),
		TEST(test_peer_may_drop_timestamps),
		TEST(test_timestamps_that_were_not_agreed_on),
		TEST(test_idle_ends_before_24_days),
		TEST(test_exact_rst),
		TEST(test_rst_in_the_window_is_challenged),
		TEST(test_syn_is_challenged),
		TEST(test_challenges_are_limited),
		TEST(test_ack_of_what_was_never_sent),
		TEST(test_ack_far_behind),
		TEST(test_window_without_work),
		TEST(test_too_big),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
