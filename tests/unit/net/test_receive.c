// What comes out of order, or while the worker does not read.

#include "dataplane/net/tcp/receive.h"

#include "dataplane/net/tcp/work.h"
#include "tests/unit/http/dice.h"
#include "tests/unit/net/wire.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdio.h>
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

static void set_paused(bool is_paused)
{
	wire_turn(&wire, NULL, 0);
	(is_paused ? tcp_pause : tcp_resume)(wire.t, wire.stream);
	wire_flush(&wire);
}

// The SACK blocks of the last segment, relative, as a line.
static const char *sacks(void)
{
	static char line[200];
	const struct tcp_segment *read = &wire_last(&wire)->read;
	size_t len = 0;
	line[0] = 0;
	for (unsigned i = 0; i < read->sack_count; i++)
		len += snprintf(line + len, sizeof(line) - len, "%u-%u ",
			read->sacks[i].from - wire.first, read->sacks[i].to - wire.first);
	return line;
}

static uint32_t acked(void)
{
	return wire_last(&wire)->ack - wire.first;
}

// RFC 5681 4.2: at once; RFC 2018 4: with a block.
static void test_gap(void **state)
{
	(void)state;
	wire_send(&wire, TCP_ACK, 4, "def");
	assert_true(wire_has_events(&wire, 0));
	assert_int_equal(acked(), 1);
	assert_string_equal(sacks(), "4-7 ");
	assert_int_equal(wire_count(&wire, TCP_out_of_order), 1);
	wire_send(&wire, TCP_ACK, 1, "abc");
	assert_string_equal(wire_text(&wire), "abcdef");
	assert_int_equal(acked(), 7); // at once, since a gap was filled
	assert_string_equal(sacks(), "");
	assert_int_equal(wire_conn(&wire)->work, 0); // all was given back
	assert_int_equal(wire.t->receive_chunks.free_count, 64);
}

static void test_blocks_newest_first(void **state)
{
	(void)state;
	wire_send(&wire, TCP_ACK, 11, "b");
	wire_send(&wire, TCP_ACK, 31, "d");
	wire_send(&wire, TCP_ACK, 21, "c");
	assert_string_equal(sacks(), "21-22 31-32 11-12 ");
	wire_send(&wire, TCP_ACK, 32, "d"); // its run changed last
	assert_string_equal(sacks(), "31-33 21-22 11-12 ");
	wire_send(&wire, TCP_ACK, 41, "e"); // with timestamps three fit
	assert_string_equal(sacks(), "41-42 31-33 21-22 ");
	wire_send(&wire, TCP_ACK, 11, "b"); // known, but it was what came last
	assert_string_equal(sacks(), "11-12 41-42 31-33 ");
	wire_send(&wire, TCP_ACK, 12, "bbbbbbbbb"); // two runs become one
	assert_string_equal(sacks(), "11-22 41-42 31-33 ");
}

static void test_no_blocks_unless_agreed_on(void **state)
{
	(void)state;
	wire.peer.port++;
	wire_open(&wire, WIRE_TIMESTAMPS);
	wire_send(&wire, TCP_ACK, 4, "def");
	assert_int_equal(acked(), 1);
	assert_string_equal(sacks(), "");
}

// What overlaps is kept once, and the first that came stays.
static void test_overlaps(void **state)
{
	(void)state;
	wire_send(&wire, TCP_ACK, 5, "EF");
	wire_send(&wire, TCP_ACK, 9, "IJ");
	wire_send(&wire, TCP_ACK, 3, "cdefghijkl");
	assert_string_equal(sacks(), "3-13 ");
	wire_send(&wire, TCP_ACK, 1, "abc"); // its end is known
	assert_string_equal(wire_text(&wire), "abcdEFghIJkl");
	assert_int_equal(acked(), 13);
}

static void test_text_that_covers_all_that_was_kept(void **state)
{
	(void)state;
	wire_send(&wire, TCP_ACK, 3, "C");
	wire_send(&wire, TCP_ACK, 5, "E");
	wire_send(&wire, TCP_ACK, 1, "abcdefg");
	assert_string_equal(wire_text(&wire), "abcdefg");
	assert_int_equal(acked(), 8);
	assert_int_equal(wire_conn(&wire)->work, 0);
}

static void test_early_fin(void **state)
{
	(void)state;
	wire_send(&wire, TCP_ACK | TCP_FIN, 4, "def");
	assert_int_equal(wire_conn(&wire)->state, TCP_ESTABLISHED);
	wire_send(&wire, TCP_ACK, 1, "abc");
	assert_string_equal(wire_text(&wire), "abcdef");
	assert_int_equal(wire.events[tcp_event_count(wire.t) - 1].kind, STREAM_EOF);
	assert_int_equal(acked(), 8);
	assert_int_equal(wire_conn(&wire)->state, TCP_CLOSE_WAIT);
}

static void test_bare_fin_before_its_data(void **state)
{
	(void)state;
	wire_send(&wire, TCP_ACK | TCP_FIN, 4, NULL);
	wire_send(&wire, TCP_ACK, 1, "abc");
	assert_true(wire_has_events(&wire, 2, STREAM_DATA, STREAM_EOF));
	assert_int_equal(acked(), 5);
}

// ---- The worker does not read. ----

static void test_paused(void **state)
{
	(void)state;
	set_paused(true);
	wire_send(&wire, TCP_ACK, 1, "abc");
	wire_send(&wire, TCP_ACK, 4, "def");
	assert_true(wire_has_events(&wire, 0));
	assert_int_equal(acked(), 7);
	assert_string_equal(sacks(), ""); // it is in order
	set_paused(false);
	wire_wait(&wire, 0);
	assert_true(wire_has_events(&wire, 1, STREAM_DATA));
	assert_string_equal(wire_text(&wire), "abcdef");
	assert_int_equal(wire_conn(&wire)->work, 0);
}

static void test_fin_while_paused(void **state)
{
	(void)state;
	set_paused(true);
	wire_send(&wire, TCP_ACK | TCP_FIN, 1, "abc");
	assert_int_equal(acked(), 5); // the peer need not send it again
	wire_send(&wire, TCP_ACK, 5, "beyond"); // there is nothing beyond
	assert_int_equal(acked(), 5);
	set_paused(false);
	wire_wait(&wire, 0);
	assert_true(wire_has_events(&wire, 2, STREAM_DATA, STREAM_EOF));
	assert_int_equal(wire_conn(&wire)->state, TCP_CLOSE_WAIT);
}

// Both have ended, but the worker has not read all: first it does.
static void test_ended_by_both_while_paused(void **state)
{
	(void)state;
	set_paused(true);
	wire_send(&wire, TCP_ACK | TCP_FIN, 1, "abc");
	wire_turn(&wire, NULL, 0);
	tcp_shut(wire.t, wire.stream);
	wire_flush(&wire);
	wire.ack = 2;
	wire_send(&wire, TCP_ACK, 5, NULL);
	assert_true(wire_has_events(&wire, 0));
	set_paused(false);
	wire_wait(&wire, 0);
	assert_true(wire_has_events(&wire, 3, STREAM_DATA, STREAM_EOF, STREAM_CLOSED));
}

static const char *letters(uint32_t count)
{
	static char text[1461];
	memset(text, 'x', count);
	text[count] = 0;
	return text;
}

// Traps 40 and 41: the window closes, never shrinks, probes are answered, and it opens again.
static void test_window_closes_and_opens(void **state)
{
	(void)state;
	set_paused(true);
	uint32_t sent = 0, edge = 16384;
	while (sent < 16384) {
		uint32_t count = 16384 - sent < 1000 ? 16384 - sent : 1000;
		wire_send(&wire, TCP_ACK, 1 + sent, letters(count));
		sent += count;
		assert_int_equal(acked(), 1 + sent);
		assert_true(sent + wire_last(&wire)->window >= edge);
		edge = sent + wire_last(&wire)->window;
	}
	assert_int_equal(wire_last(&wire)->window, 0);
	wire_forget(&wire);
	wire_send(&wire, TCP_ACK, 1 + sent, "p"); // a probe with a byte
	assert_int_equal(acked(), 1 + sent);
	wire_wait(&wire, 2000000);
	wire_send(&wire, TCP_ACK, sent, NULL); // one without
	assert_int_equal(wire.out_count, 2);
	set_paused(false);
	wire_wait(&wire, 0);
	assert_int_equal(strlen(wire_text(&wire)), sent);
	assert_int_equal(wire.out_count, 3);
	assert_int_equal(wire_last(&wire)->window, 16384);
	wire_send(&wire, TCP_ACK, 1 + sent, "q");
	assert_string_equal(wire_text(&wire), "q");
}

static void test_ack_is_taken_while_the_window_is_closed(void **state)
{
	(void)state;
	struct span span = SPAN("answer");
	set_paused(true);
	for (uint32_t i = 0; i < 16; i++)
		wire_send(&wire, TCP_ACK, 1 + i * 1024, letters(1024));
	assert_int_equal(wire_last(&wire)->window, 0);
	wire_turn(&wire, NULL, 0);
	tcp_write(wire.t, wire.stream, &span, 1);
	wire_flush(&wire);
	wire.ack = 7;
	wire_send(&wire, TCP_ACK, 16385, "p");
	assert_int_equal(wire_conn(&wire)->snd_una, wire.cookie + 7);
}

// Unread bytes at the close: the peer learns that they are lost (RFC 2525 2.17).
static void test_close_with_unread(void **state)
{
	(void)state;
	set_paused(true);
	wire_send(&wire, TCP_ACK, 1, "abc");
	wire_turn(&wire, NULL, 0);
	tcp_close(wire.t, wire.stream, false);
	wire_flush(&wire);
	assert_int_equal(wire_last(&wire)->flags & TCP_RST, TCP_RST);
	assert_int_equal(wire.t->conn_count, 0);
	assert_int_equal(wire.t->receive_chunks.free_count, 64);
}

// Nothing is unread, but for the FIN: the close is an ordinary one.
static void test_close_with_unread_fin(void **state)
{
	(void)state;
	set_paused(true);
	wire_send(&wire, TCP_ACK | TCP_FIN, 1, NULL);
	assert_int_equal(wire_conn(&wire)->state, TCP_ESTABLISHED);
	wire_close(&wire, false);
	assert_int_equal(wire_last(&wire)->flags & (TCP_FIN | TCP_RST), TCP_FIN);
	wire.ack = 2;
	wire_send(&wire, TCP_ACK, 2, NULL);
	wire_wait(&wire, 0);
	assert_int_equal(wire.t->conn_count, 0);
	assert_int_equal(wire_count(&wire, TCP_linger_late), 0);
}

// ---- Limits. ----

// CVE-2018-5390, trap 48: as many runs as there are places; what would make one more is dropped.
static void test_runs_are_bounded(void **state)
{
	(void)state;
	for (uint32_t i = 0; i <= TCP_KEPT_MAX; i++)
		wire_send(&wire, TCP_ACK, 3 + 2 * i, "x");
	assert_int_equal(wire_count(&wire, TCP_out_of_order), TCP_KEPT_MAX);
	assert_int_equal(wire_count(&wire, TCP_receive_none), 1);
	wire_send(&wire, TCP_ACK, 4, "x"); // one that makes fewer has room
	assert_int_equal(wire_count(&wire, TCP_receive_none), 1);
}

static void test_chunks_are_bounded(void **state)
{
	(void)state;
	set_paused(true);
	for (unsigned conn = 0; conn < 3; conn++) { // 2 x 16 kB are all 64 chunks
		if (conn > 0) {
			wire.peer.port++;
			wire_open(&wire, WIRE_ALL);
			set_paused(true);
		}
		for (uint32_t i = 0; i < 16; i++)
			wire_send(&wire, TCP_ACK, 1 + i * 1024, letters(1024));
	}
	assert_int_equal(wire.t->receive_chunks.free_count, 0);
	assert_true(wire_count(&wire, TCP_receive_none) > 0);
	assert_int_equal(wire_conn(&wire)->rcv_nxt, wire.first + 1);
}

static void test_works_are_bounded(void **state)
{
	(void)state;
	for (unsigned conn = 0; conn < 9; conn++) {
		wire.peer.port++;
		wire_open(&wire, WIRE_ALL);
		wire_send(&wire, TCP_ACK, 4, "def");
	}
	assert_int_equal(wire_count(&wire, TCP_out_of_order), 8);
	assert_int_equal(wire_count(&wire, TCP_receive_none), 1);
	wire_send(&wire, TCP_ACK, 1, "abc"); // in order it needs none
	assert_string_equal(wire_text(&wire), "abc");
}

// Few places for events: a segment is left for the next turn, kept bytes wait, none are lost.
static void test_few_places_for_events(void **state)
{
	(void)state;
	wire.event_max = STREAM_EVENTS_MIN;
	struct tcp_segment two[] = {wire_segment(&wire, TCP_ACK, 1, "abc"),
		wire_segment(&wire, TCP_ACK, 4, "def"), wire_segment(&wire, TCP_ACK, 7, "ghi")};
	assert_int_equal(wire_turn(&wire, two, 3), 2);
	wire_flush(&wire);
	assert_int_equal(wire_turn(&wire, two + 2, 1), 1);
	wire_flush(&wire);
	set_paused(true);
	uint32_t sent = 9;
	for (unsigned i = 0; i < 10; i++, sent += 1000)
		wire_send(&wire, TCP_ACK, 1 + sent, letters(1000));
	set_paused(false);
	size_t got = 0;
	for (unsigned turn = 0; turn < 30; turn++) {
		assert_true(got == 10000 || tcp_quiet_us(wire.t, 1000) == 0);
		wire_wait(&wire, 0);
		got += strlen(wire_text(&wire));
	}
	assert_int_equal(got, 10000);
}

// Any order, any overlap, any size: what the worker reads is what was sent.
static void test_like_its_twin(void **state)
{
	(void)state;
	static char sent[12000];
	for (size_t i = 0; i < sizeof(sent); i++)
		sent[i] = (char)('a' + i % 26);
	uint32_t read = 0;
	bool is_paused = false;
	for (unsigned step = 0; step < 20000 && read < sizeof(sent); step++) {
		uint32_t from = dice(3) ? read : dice(sizeof(sent)), len = 1 + dice(700);
		from += dice(4) ? 0 : dice(1500);
		from -= dice(4) || from < 100 ? 0 : dice(100);
		if (from >= sizeof(sent))
			continue;
		len = len < sizeof(sent) - from ? len : sizeof(sent) - from;
		struct tcp_segment segment = wire_segment(&wire, TCP_ACK, 1 + from, NULL);
		segment.payload = (struct span){sent + from, len};
		wire_turn(&wire, &segment, 1);
		const char *text = wire_text(&wire);
		assert_memory_equal(text, sent + read, strlen(text));
		read += (uint32_t)strlen(text);
		if (dice(20) == 0) {
			is_paused = !is_paused;
			(is_paused ? tcp_pause : tcp_resume)(wire.t, wire.stream);
		}
		wire_flush(&wire);
		wire.now_us += dice(3000);
		wire_forget(&wire);
	}
	assert_int_equal(read, sizeof(sent));
	assert_int_equal(wire_count(&wire, TCP_bytes_in), read);
}

#define TEST(name) cmocka_unit_test_setup_teardown(name, start, end)

int main(void)
{
	dice_begin();
	const struct CMUnitTest tests[] = {
		TEST(test_gap),
		TEST(test_blocks_newest_first),
		TEST(test_no_blocks_unless_agreed_on),
		TEST(test_overlaps),
		TEST(test_text_that_covers_all_that_was_kept),
		TEST(test_early_fin),
		TEST(test_bare_fin_before_its_data),
		TEST(test_paused),
		TEST(test_fin_while_paused),
		TEST(test_ended_by_both_while_paused),
		TEST(test_window_closes_and_opens),
		TEST(test_ack_is_taken_while_the_window_is_closed),
		TEST(test_close_with_unread),
		TEST(test_close_with_unread_fin),
		TEST(test_runs_are_bounded),
		TEST(test_chunks_are_bounded),
		TEST(test_works_are_bounded),
		TEST(test_few_places_for_events),
		TEST(test_like_its_twin),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
