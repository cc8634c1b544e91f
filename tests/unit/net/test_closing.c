// The end of connections: by either side, by both, by deadlines; and TIME_WAIT with RFC 1337 and
// 6191.

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

// ---- By the peer, by us, by both. ----

static void test_peer_ends_first(void **state)
{
	(void)state;
	wire_send(&wire, TCP_ACK | TCP_FIN, 1, "bye");
	assert_true(wire_has_events(&wire, 2, STREAM_DATA, STREAM_EOF));
	assert_int_equal(state_of(), TCP_CLOSE_WAIT);
	assert_told(1, 5);
	wire_write(&wire, "late"); // half-closed: we still send
	wire.ack = 5;
	wire_send(&wire, TCP_ACK, 5, NULL);
	wire_shut(&wire);
	assert_int_equal(state_of(), TCP_LAST_ACK);
	assert_int_equal(wire_last(&wire)->flags & TCP_FIN, TCP_FIN);
	wire.ack = 6;
	wire_send(&wire, TCP_ACK, 5, NULL);
	assert_true(wire_has_events(&wire, 1, STREAM_CLOSED));
	assert_int_equal(wire.events[0].error, 0);
	assert_int_equal(wire.t->conn_count, 0);
	wire_forget(&wire);
	wire_send(&wire, TCP_ACK | TCP_FIN, 4, NULL); // there is no TIME_WAIT
	assert_int_equal(wire_last(&wire)->flags, TCP_RST);
}

// Cookies are good for a minute and more: a late copy of the segment that brought one, and told a
// request, does not tell it again.
static void test_late_copy_opens_nothing(void **state)
{
	(void)state;
	wire_close(&wire, true); // this one is not about it
	for (unsigned is_reset = 0; is_reset < 2; is_reset++) {
		wire.peer.port++;
		wire_open(&wire, WIRE_BARE);
		struct tcp_segment request = wire_segment(&wire, TCP_ACK, 1, "POST");
		wire_give(&wire, request);
		wire_close(&wire, is_reset);
		wire.ack = 2;
		wire_send(&wire, TCP_ACK | TCP_FIN, 5, NULL);
		assert_int_equal(wire.t->conn_count, 0);
		wire_give(&wire, request);
		assert_int_equal(wire.t->conn_count, 0);
		assert_true(wire_has_events(&wire, 0));
	}
	wire.first += 77777; // the peer's next connection, of any number
	wire_open(&wire, WIRE_BARE);
	assert_int_equal(wire.t->conn_count, 1);
	wire_send(&wire, TCP_RST, 1, NULL);
	wire.first -= 777777;
	wire_open(&wire, WIRE_BARE);
	assert_int_equal(wire.t->conn_count, 1);
}

static void we_end_first(void)
{
	wire_shut(&wire);
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
	wire_shut(&wire);
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
	wire_shut(&wire);
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
	wire_write(&wire, "answer");
	wire_close(&wire, false);
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
	wire_close(&wire, true);
	assert_int_equal(wire_last(&wire)->flags & TCP_RST, TCP_RST);
	assert_int_equal(wire_last(&wire)->seq, wire.cookie + 1);
	assert_int_equal(wire.t->conn_count, 0);
}

// RFC 9293 3.6.1: data for nobody.
static void test_data_for_an_orphan_is_reset(void **state)
{
	(void)state;
	wire_close(&wire, false);
	wire_send(&wire, TCP_ACK, 1, "anyone?");
	assert_int_equal(wire_last(&wire)->flags & TCP_RST, TCP_RST);
	assert_int_equal(wire.t->conn_count, 0);
	assert_true(wire_has_events(&wire, 0));
}

static void test_linger_ends(void **state)
{
	(void)state;
	wire_write(&wire, "answer");
	wire_close(&wire, false);
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
	wire_close(&wire, false);
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

// It has ended in the burst, which the worker has only begun to read.
static void test_calls_before_closed_is_read(void **state)
{
	(void)state;
	struct span span = SPAN("answer");
	struct tcp_segment two[] = {
		wire_segment(&wire, TCP_ACK, 1, "GET"), wire_segment(&wire, TCP_RST, 4, NULL)};
	wire_turn(&wire, two, 2);
	assert_true(wire_has_events(&wire, 2, STREAM_DATA, STREAM_CLOSED));
	assert_int_equal(tcp_write(wire.t, wire.stream, &span, 1), span.len);
	assert_int_equal(tcp_queued(wire.t, wire.stream), 0);
	tcp_pause(wire.t, wire.stream);
	tcp_resume(wire.t, wire.stream);
	tcp_shut(wire.t, wire.stream);
	tcp_close(wire.t, wire.stream, false);
	assert_true(wire_has_events(&wire, 2, STREAM_NONE, STREAM_NONE));
	wire_flush(&wire);
	assert_int_equal(wire.out_count, 0);
}

// Neither answer nor FIN can be kept: the peer has its RST at once, the worker its word in the next
// turn.
static void test_no_work_for_a_fin(void **state)
{
	(void)state;
	for (unsigned i = 0; i < 8; i++) {
		if (i > 0) {
			wire.peer.port++;
			wire_open(&wire, WIRE_ALL);
		}
		wire_write(&wire, "answer");
	}
	wire.peer.port++;
	wire_open(&wire, WIRE_ALL);
	wire_shut(&wire);
	assert_int_equal(wire_last(&wire)->flags & TCP_RST, TCP_RST);
	assert_int_equal(tcp_quiet_us(wire.t, 1000), 0);
	wire_wait(&wire, 0);
	assert_true(wire_has_events(&wire, 1, STREAM_CLOSED));
	assert_int_equal(wire.events[0].error, ENOBUFS);
	assert_true(wire_count(&wire, TCP_work_none) > 0);
}

static void test_peer_is_gone(void **state)
{
	(void)state;
	wire_write(&wire, "anyone?");
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
	assert_true(wire.t->stats.waiting > 0);
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
	uint32_t last = wire.cookie + 2;
	wire_open(&wire, WIRE_ALL);
	assert_true(tcp_after(wire.cookie, last)); // RFC 9293 3.6.1
	assert_int_equal(wire.t->conn_count, 1);
	assert_int_equal(wire_count(&wire, TCP_wait_reused), 1);
	wire_wait(&wire, 0);
	wire_send(&wire, TCP_ACK, 1, "again");
	assert_string_equal(wire_text(&wire), "again");
}

// Wherever the last one ended beside the number of the next, whose cookie is what it is: the next
// opens, and a copy of what it answers to does not open the last again.
static void test_newer_syn_beside_the_last(void **state)
{
	(void)state;
	wire_end(&wire);
	wire.plan.wait_max = 64;
	wire_make(&wire);
	for (int32_t beside = -2; beside <= 2; beside++)
		for (uint32_t half = 0; half < 2; half++) {
			wire.peer.port++;
			wire_open(&wire, WIRE_ALL);
			to_time_wait();
			wire.first += 1000;
			const uint64_t hash = flows_hash(wire.t->flows, &wire.local, &wire.peer);
			const struct tcp_segment syn = wire_syn(&wire, WIRE_ALL);
			const uint32_t last = syncookie_make(&wire.t->syncookie, &syn) +
					      (uint32_t)beside + (half << 31);
			wait_find(wire.t->waits, hash, wire.t->now_ms)->snd_nxt = last;
			wire_open(&wire, WIRE_ALL);
			print_message("%d %u\n", beside, half);
			assert_false(tcp_before(wire.cookie, last));
			assert_int_equal(wire.t->conn_count, 1);
			wire_close(&wire, true);
			wire_wait(&wire, 0);
		}
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

#define TEST(name) cmocka_unit_test_setup_teardown(name, start, end)

int main(void)
{
	const struct CMUnitTest tests[] = {
		TEST(test_peer_ends_first),
		TEST(test_late_copy_opens_nothing),
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
		TEST(test_calls_before_closed_is_read),
		TEST(test_no_work_for_a_fin),
		TEST(test_peer_is_gone),
		TEST(test_wait_acknowledges_fin_again),
		TEST(test_wait_is_deaf_to_the_rest),
		TEST(test_newer_syn_in_wait),
		TEST(test_newer_syn_beside_the_last),
		TEST(test_syn_with_a_newer_timestamp_in_wait),
		TEST(test_older_syn_in_wait),
		TEST(test_wait_stays_until_the_cookie_is_back),
		TEST(test_first_segment_again_in_wait),
		TEST(test_wait_evicts_the_oldest),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
