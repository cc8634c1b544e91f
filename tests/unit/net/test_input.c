// Segments on an open connection, row by row: RFC 9293 3.10.7.4 in its order, RFC 7323 5, RFC 5961,
// the closing states, TIME_WAIT with RFC 1337 and 6191.

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

// What the worker writes: it leaves at once.
static void worker_writes(const char *text)
{
	struct span span = {text, strlen(text)};
	wire_turn(&wire, NULL, 0);
	assert_int_equal(tcp_write(wire.t, wire.stream, &span, 1), span.len);
	wire_flush(&wire);
}

static void worker_shuts(void)
{
	wire_turn(&wire, NULL, 0);
	tcp_shut(wire.t, wire.stream);
	wire_flush(&wire);
}

static void worker_closes(bool reset)
{
	wire_turn(&wire, NULL, 0);
	tcp_close(wire.t, wire.stream, reset);
	wire_flush(&wire);
}

// An ACK that tells where we are.
static void assert_told(uint32_t seq, uint32_t ack)
{
	const struct wire_out *out = wire_last(&wire);
	assert_int_equal(out->flags, TCP_ACK);
	assert_int_equal(out->seq, wire.cookie + seq);
	assert_int_equal(out->ack, wire.first + ack);
	assert_int_equal(out->len, 0);
}

// ---- First: sequence number. ----

static void test_in_order(void **state)
{
	(void)state;
	wire_send(&wire, TCP_ACK | TCP_PSH, 1, "GET");
	assert_true(wire_has_events(&wire, 1, STREAM_DATA));
	assert_string_equal(wire_text(&wire), "GET");
	assert_int_equal(wire.out_count, 0); // the ACK waits for an answer to ride on
	worker_writes("200");
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
	worker_writes("x");
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

// ---- Closing. ----

static void test_peer_ends_first(void **state)
{
	(void)state;
	wire_send(&wire, TCP_ACK | TCP_FIN, 1, "bye");
	assert_true(wire_has_events(&wire, 2, STREAM_DATA, STREAM_EOF));
	assert_int_equal(state_of(), TCP_CLOSE_WAIT);
	assert_told(1, 5);
	worker_writes("late"); // half-closed: we still send
	wire.ack = 5;
	wire_send(&wire, TCP_ACK, 5, NULL);
	worker_shuts();
	assert_int_equal(state_of(), TCP_LAST_ACK);
	assert_int_equal(wire_last(&wire)->flags & TCP_FIN, TCP_FIN);
	wire.ack = 6;
	wire_send(&wire, TCP_ACK, 5, NULL);
	assert_true(wire_has_events(&wire, 1, STREAM_CLOSED));
	assert_int_equal(wire.events[0].error, 0);
	assert_int_equal(wire.t->stats.waiting, 0);
	assert_int_equal(wire.t->conn_count, 0);
}

static void we_end_first(void)
{
	worker_shuts();
	assert_int_equal(state_of(), TCP_FIN_WAIT_1);
	assert_int_equal(wire_last(&wire)->flags, TCP_FIN | TCP_ACK);
	wire.ack = 2;
	wire_send(&wire, TCP_ACK, 1, NULL);
	assert_int_equal(state_of(), TCP_FIN_WAIT_2);
}

static void test_we_end_first(void **state)
{
	(void)state;
	we_end_first();
	wire_send(&wire, TCP_ACK, 1, "more"); // the other half goes on
	assert_string_equal(wire_text(&wire), "more");
	wire_send(&wire, TCP_ACK | TCP_FIN, 5, NULL);
	assert_true(wire_has_events(&wire, 2, STREAM_EOF, STREAM_CLOSED));
	assert_told(2, 6);
	wire_wait(&wire, 0);
	assert_int_equal(wire.t->stats.waiting, 1);
	assert_int_equal(wire.t->conn_count, 0);
}

static void test_fin_with_the_ack_of_ours(void **state)
{
	(void)state;
	worker_shuts();
	wire.ack = 2;
	wire_send(&wire, TCP_ACK | TCP_FIN, 1, "x");
	assert_true(wire_has_events(&wire, 3, STREAM_DATA, STREAM_EOF, STREAM_CLOSED));
	assert_told(2, 3);
	assert_int_equal(wire.t->conn_count, 0);
}

// RFC 9293 3.6, figure 13. Trap 50.
static void test_simultaneous_close(void **state)
{
	(void)state;
	worker_shuts();
	wire_send(&wire, TCP_ACK | TCP_FIN, 1, NULL);
	assert_int_equal(state_of(), TCP_CLOSING);
	assert_told(2, 2);
	wire_forget(&wire);
	wire_wait(&wire, 1100000); // our FIN was lost: it is sent again
	assert_true(wire.out_count >= 1);
	assert_int_equal(wire_last(&wire)->flags & TCP_FIN, TCP_FIN);
	wire.ack = 2;
	wire_send(&wire, TCP_ACK, 2, NULL);
	assert_true(wire_has_events(&wire, 1, STREAM_CLOSED));
	wire_wait(&wire, 0);
	assert_int_equal(wire.t->stats.waiting, 1);
}

static void test_fin_again_is_acknowledged_again(void **state)
{
	(void)state;
	wire_send(&wire, TCP_ACK | TCP_FIN, 1, NULL);
	wire_forget(&wire);
	wire_send(&wire, TCP_ACK | TCP_FIN, 1, NULL);
	assert_told(1, 2);
	assert_int_equal(state_of(), TCP_CLOSE_WAIT);
	assert_true(wire_has_events(&wire, 0));
}

static void test_text_after_fin_is_ignored(void **state)
{
	(void)state;
	wire_send(&wire, TCP_ACK | TCP_FIN, 1, NULL);
	wire_send(&wire, TCP_ACK, 2, "ghost");
	assert_true(wire_has_events(&wire, 0));
	assert_int_equal(wire_conn(&wire)->rcv_nxt, wire.first + 2);
}

// ---- The worker closes. ----

static void test_close_lingers_for_the_queue(void **state)
{
	(void)state;
	worker_writes("answer");
	worker_closes(false);
	assert_int_equal(wire_last(&wire)->flags & TCP_FIN, TCP_FIN);
	wire.ack = 8;
	wire_send(&wire, TCP_ACK, 1, NULL);
	assert_int_equal(wire.t->conn_count, 1);
	wire_send(&wire, TCP_ACK | TCP_FIN, 1, NULL);
	assert_true(wire_has_events(&wire, 0)); // nobody is told
	assert_int_equal(wire.t->conn_count, 0);
	assert_told(8, 2);
}

static void test_close_with_reset(void **state)
{
	(void)state;
	worker_closes(true);
	assert_int_equal(wire_last(&wire)->flags & TCP_RST, TCP_RST);
	assert_int_equal(wire_last(&wire)->seq, wire.cookie + 1);
	assert_int_equal(wire.t->conn_count, 0);
}

// RFC 9293 3.6.1: data for nobody.
static void test_data_for_an_orphan_is_reset(void **state)
{
	(void)state;
	worker_closes(false);
	wire_send(&wire, TCP_ACK, 1, "anyone?");
	assert_int_equal(wire_last(&wire)->flags & TCP_RST, TCP_RST);
	assert_int_equal(wire.t->conn_count, 0);
	assert_true(wire_has_events(&wire, 0));
}

static void test_linger_ends(void **state)
{
	(void)state;
	worker_writes("answer");
	worker_closes(false);
	for (unsigned i = 0; i < 19; i++)
		wire_wait(&wire, 1000000);
	assert_int_equal(wire.t->conn_count, 1);
	wire_wait(&wire, 1005000);
	assert_int_equal(wire.t->conn_count, 0);
	assert_int_equal(wire_count(&wire, TCP_linger_late), 1);
	assert_int_equal(wire_last(&wire)->flags & TCP_RST, TCP_RST);
}

// In FIN_WAIT_2 it ends in silence: a RST might cost the peer what it has not read.
static void test_peer_never_ends(void **state)
{
	(void)state;
	worker_closes(false);
	wire.ack = 2;
	wire_send(&wire, TCP_ACK, 1, NULL);
	wire_forget(&wire);
	wire_wait(&wire, 20005000);
	assert_int_equal(wire.t->conn_count, 0);
	assert_int_equal(wire.out_count, 0);
}

static void test_events_of_a_closed_stream_are_taken_back(void **state)
{
	(void)state;
	struct tcp_segment segment = wire_segment(&wire, TCP_ACK | TCP_FIN, 1, "abc");
	wire_turn(&wire, &segment, 1);
	assert_true(wire_has_events(&wire, 2, STREAM_DATA, STREAM_EOF));
	tcp_close(wire.t, wire.stream, true);
	assert_true(wire_has_events(&wire, 2, STREAM_NONE, STREAM_NONE));
	wire_flush(&wire);
}

static void test_fields_live_until_the_next_turn(void **state)
{
	(void)state;
	struct tcp_segment rst = wire_segment(&wire, TCP_RST, 1, NULL);
	wire.stream->user = &wire;
	wire_give(&wire, rst);
	assert_ptr_equal(wire.stream->user, &wire);
	assert_memory_equal(&wire.stream->peer, &wire.peer, sizeof(wire.peer));
}

static void test_peer_is_gone(void **state)
{
	(void)state;
	worker_writes("anyone?");
	for (unsigned i = 0; i < 40 && wire.t->conn_count; i++)
		wire_wait(&wire, 1000000);
	assert_true(wire_has_events(&wire, 1, STREAM_CLOSED));
	assert_int_equal(wire.events[0].error, ETIMEDOUT);
	assert_int_equal(wire_count(&wire, TCP_gave_up), 1);
}

// ---- TIME_WAIT. ----

static void to_time_wait(void)
{
	we_end_first();
	wire_send(&wire, TCP_ACK | TCP_FIN, 1, NULL);
	wire_wait(&wire, 0);
	assert_int_equal(wire.t->stats.waiting, 1);
	wire_forget(&wire);
}

static void test_wait_acknowledges_fin_again(void **state)
{
	(void)state;
	to_time_wait();
	wire_wait(&wire, 59000000);
	wire_send(&wire, TCP_ACK | TCP_FIN, 1, NULL);
	assert_told(2, 2);
	assert_int_equal(wire_last(&wire)->hop.mac[5], 9);
	assert_true(wire_last(&wire)->read.has_timestamp);
	wire_wait(&wire, 59000000); // and begins anew
	assert_int_equal(wire.t->stats.waiting, 1);
	wire_wait(&wire, 2000000);
	assert_int_equal(wire.t->stats.waiting, 0);
}

static void test_wait_is_deaf_to_the_rest(void **state)
{
	(void)state;
	to_time_wait();
	wire_send(&wire, TCP_RST, 2, NULL); // RFC 1337
	wire_send(&wire, TCP_RST | TCP_ACK, 2, NULL);
	wire_send(&wire, TCP_ACK, 2, NULL);
	assert_int_equal(wire.out_count, 0);
	wire_wait(&wire, 0);
	assert_int_equal(wire.t->stats.waiting, 1);
	wire_send(&wire, TCP_ACK, 1, "old"); // an old duplicate
	assert_told(2, 2);
}

// RFC 6191, trap 46.
static void test_newer_syn_in_wait(void **state)
{
	(void)state;
	to_time_wait();
	wire.first += 1000;
	wire_open(&wire, WIRE_ALL);
	assert_int_equal(wire.t->conn_count, 1);
	assert_int_equal(wire_count(&wire, TCP_wait_reused), 1);
	wire_wait(&wire, 0);
	wire_send(&wire, TCP_ACK, 1, "again");
	assert_string_equal(wire_text(&wire), "again");
}

static void test_syn_with_a_newer_timestamp_in_wait(void **state)
{
	(void)state;
	to_time_wait();
	wire_wait(&wire, 1000);
	wire.first -= 50000000; // a random ISN
	wire_open(&wire, WIRE_ALL);
	assert_int_equal(wire.t->conn_count, 1);
}

static void test_older_syn_in_wait(void **state)
{
	(void)state;
	to_time_wait();
	struct tcp_segment syn = wire_syn(&wire, WIRE_ALL);
	syn.ts_value -= 1000;
	syn.seq += 1000;
	wire_give(&wire, syn);
	assert_told(2, 2);
	syn = wire_syn(&wire, WIRE_BARE); // by its number alone
	wire_give(&wire, syn);
	assert_told(2, 2);
}

// The SYN alone changes nothing: it may be forged.
static void test_wait_stays_until_the_cookie_is_back(void **state)
{
	(void)state;
	to_time_wait();
	wire.first += 1000;
	wire_give(&wire, wire_syn(&wire, WIRE_ALL));
	wire_wait(&wire, 0);
	assert_int_equal(wire.t->stats.waiting, 1);
	wire.ack = 77;
	wire_forget(&wire);
	wire_send(&wire, TCP_ACK, 1, "forged");
	assert_int_equal(wire_last(&wire)->flags, TCP_ACK);
	assert_int_equal(wire.t->stats.waiting, 1);
}

// Nor does a segment of the old connection, whose cookie is still good.
static void test_first_segment_again_in_wait(void **state)
{
	(void)state;
	to_time_wait();
	wire.ack = 1;
	wire_wait(&wire, 5000);
	wire_send(&wire, TCP_ACK | TCP_FIN, 1, NULL);
	assert_told(2, 2);
	assert_int_equal(wire.t->conn_count, 0);
}

static void test_wait_evicts_the_oldest(void **state)
{
	(void)state;
	for (unsigned i = 0; i < 5; i++) { // wait_max and one
		if (i > 0)
			wire_open(&wire, WIRE_ALL);
		we_end_first();
		wire_send(&wire, TCP_ACK | TCP_FIN, 1, NULL);
		assert_int_equal(wire_count(&wire, TCP_wait_evicted), i == 4);
		wire.peer.port++;
	}
	wire_wait(&wire, 0);
	assert_int_equal(wire.t->stats.waiting, 4);
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
	worker_writes("answer");
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
		TEST(test_peer_ends_first),
		TEST(test_we_end_first),
		TEST(test_fin_with_the_ack_of_ours),
		TEST(test_simultaneous_close),
		TEST(test_fin_again_is_acknowledged_again),
		TEST(test_text_after_fin_is_ignored),
		TEST(test_close_lingers_for_the_queue),
		TEST(test_close_with_reset),
		TEST(test_data_for_an_orphan_is_reset),
		TEST(test_linger_ends),
		TEST(test_peer_never_ends),
		TEST(test_events_of_a_closed_stream_are_taken_back),
		TEST(test_fields_live_until_the_next_turn),
		TEST(test_peer_is_gone),
		TEST(test_wait_acknowledges_fin_again),
		TEST(test_wait_is_deaf_to_the_rest),
		TEST(test_newer_syn_in_wait),
		TEST(test_syn_with_a_newer_timestamp_in_wait),
		TEST(test_older_syn_in_wait),
		TEST(test_wait_stays_until_the_cookie_is_back),
		TEST(test_first_segment_again_in_wait),
		TEST(test_wait_evicts_the_oldest),
		TEST(test_too_big),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
