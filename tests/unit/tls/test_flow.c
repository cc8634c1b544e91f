// Bytes both ways, back-pressure, and the ends of a stream.

#include "tests/unit/tls/rig.h"

#include <errno.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdint.h>
#include <stdlib.h>

#include <cmocka.h>

#define BIG (512u << 10)

// Sizes around a record's, and more than a round's.
static const size_t sizes[] = {1, TLS_RECORD_BYTES - 1, TLS_RECORD_BYTES, TLS_RECORD_BYTES + 1,
	TLS_ROUND_BYTES - 1, TLS_ROUND_BYTES, TLS_ROUND_BYTES + 1, BIG};

static void bodies_of_many_sizes_both_ways(void **state)
{
	(void)state;
	for (size_t i = 0; i < sizeof(sizes) / sizeof(sizes[0]); i++) {
		struct rig *rig = rig_new();
		if (rig->bytewise && sizes[i] == BIG)
			rig->bytewise = false; // one turn a byte takes its time
		rig_open(rig);
		struct span text = rig_text(sizes[i]);
		rig_far_says(rig, text);
		rig_settle(rig);
		rig_is(&rig->heard.data, text);
		assert_int_equal(rig_says(rig, text), text.len);
		rig_settle(rig);
		rig_is(&rig->far.got, text);
		rig_end(rig);
	}
}

static void parts_of_a_write_come_in_order(void **state)
{
	struct rig *rig = rig_new();
	struct span text = rig_text(200000), parts[STREAM_PARTS_MAX];
	size_t at = 0;
	(void)state;
	rig_open(rig);
	for (unsigned i = 0; i < STREAM_PARTS_MAX; i++) {
		size_t len = i % 7 == 3 ? 0 : i == 20 ? 40000 : i * 37;
		parts[i] = (struct span){len ? text.at + at : NULL, len};
		at += len;
	}
	assert_true(at > TLS_RECORD_BYTES && at < text.len);
	assert_int_equal(stream_write(rig->tls, rig->stream, parts, STREAM_PARTS_MAX), at);
	rig_settle(rig);
	rig_is(&rig->far.got, (struct span){text.at, at});
	rig_end(rig);
}

static void short_parts_share_a_record(void **state)
{
	struct rig *rig = rig_new();
	struct span parts[] = {SPAN("GET / HTTP/1.1\r\n"), SPAN("Host: a\r\n"), SPAN("\r\n")};
	(void)state;
	rig_open(rig);
	size_t before = rig->far.s->got.len;
	stream_write(rig->tls, rig->stream, parts, 3);
	assert_true(rig->far.s->got.len - before < 27 + 5 + 40); // a header, a tag
	rig_end(rig);
}

// What a peer does not take is queued by the inner driver, and its owner hears when it is gone.
static void a_far_end_that_takes_nothing(void **state)
{
	struct rig *rig = rig_new();
	struct span text = rig_text(2 * FAKE_QUEUE_HIGH);
	(void)state;
	rig_open(rig);
	assert_int_equal(rig->tls->queue_high, FAKE_QUEUE_HIGH);
	assert_int_equal(stream_queued(rig->tls, rig->stream), 0);
	fake_peer_takes(&rig->fake, rig->far.s, 0);
	assert_int_equal(rig_says(rig, text), text.len);
	assert_true(stream_queued(rig->tls, rig->stream) > rig->tls->queue_high);
	rig_settle(rig);
	assert_int_equal(rig->heard.writable, 0);
	fake_peer_takes(&rig->fake, rig->far.s, SIZE_MAX);
	rig_settle(rig);
	assert_int_equal(rig->heard.writable, 1);
	assert_int_equal(stream_queued(rig->tls, rig->stream), 0);
	rig_is(&rig->far.got, text);
	rig_end(rig);
}

static void an_owner_that_reads_nothing(void **state)
{
	struct rig *rig = rig_new();
	struct span text = rig_text(3 * TLS_ROUND_BYTES);
	(void)state;
	rig->bytewise = false;
	rig_open(rig);
	stream_pause(rig->tls, rig->stream);
	rig_far_says(rig, text);
	rig_settle(rig);
	assert_true(rig->far.s->is_paused);
	assert_int_equal(rig->heard.data.len, 0);
	stream_resume(rig->tls, rig->stream);
	rig_settle(rig);
	rig_is(&rig->heard.data, text);
	rig_end(rig);
}

static void an_inner_driver_that_takes_no_more(void **state)
{
	struct rig *rig = rig_new();
	struct span text = rig_text(2 * TLS_RECORD_BYTES);
	(void)state;
	rig_open(rig);
	rig->far.s->take_max = TLS_RECORD_BYTES + 100;
	assert_int_equal(rig_says(rig, text), TLS_RECORD_BYTES);
	assert_int_equal(rig_count(rig, full), 1);
	rig_close(rig, true);
	rig_end(rig);

	rig = rig_new();
	rig_connect(rig);
	rig->far.s->take_max = 0; // not even for a hello
	rig_turn(rig);
	assert_int_equal(rig->heard.closed, 1);
	assert_int_equal(rig->heard.error, ENOBUFS);
	assert_int_equal(rig_count(rig, full), 1);
	rig_end(rig);
}

static void the_far_end_says_that_it_ends(void **state)
{
	struct rig *rig = rig_new();
	(void)state;
	rig_open(rig);
	rig_far_says(rig, SPAN("last words"));
	SSL_shutdown(rig->far.ssl);
	rig_far_flush(rig);
	fake_peer_ends(&rig->fake, rig->far.s);
	rig_settle(rig);
	rig_is(&rig->heard.data, SPAN("last words"));
	assert_int_equal(rig->heard.eof, 1);
	assert_int_equal(rig->heard.closed, 0);
	assert_int_equal(rig_says(rig, SPAN("mine")), 4); // writing may go on
	rig_settle(rig);
	stream_shut(rig->tls, rig->stream);
	assert_true(rig->far.s->is_shut);
	fake_peer_closes(&rig->fake, rig->far.s, 0);
	rig_turn(rig);
	assert_int_equal(rig->heard.closed, 1);
	assert_int_equal(rig->heard.error, 0);
	assert_int_equal(rig_count(rig, cut), 0);
	rig_end(rig);
}

static void what_comes_after_the_end_is_dropped(void **state)
{
	struct rig *rig = rig_new();
	(void)state;
	rig_open(rig);
	SSL_shutdown(rig->far.ssl);
	rig_far_flush(rig);
	fake_peer_sends(&rig->fake, rig->far.s, SPAN("anything"));
	rig_settle(rig);
	fake_peer_sends(&rig->fake, rig->far.s, SPAN("more"));
	rig_settle(rig);
	assert_int_equal(rig->heard.eof, 1);
	assert_int_equal(rig->heard.closed, 0);
	assert_int_equal(rig->heard.data.len, 0);
	fake_peer_closes(&rig->fake, rig->far.s, ECONNRESET);
	rig_turn(rig);
	assert_int_equal(rig->heard.error, ECONNRESET);
	assert_int_equal(rig_count(rig, cut), 0);
	rig_end(rig);
}

static void the_owner_ends_and_still_reads(void **state)
{
	struct rig *rig = rig_new();
	(void)state;
	rig_open(rig);
	rig_says(rig, SPAN("all"));
	stream_shut(rig->tls, rig->stream);
	stream_shut(rig->tls, rig->stream); // once is enough
	rig_settle(rig);
	rig_is(&rig->far.got, SPAN("all"));
	assert_true(rig->far.has_ended);
	assert_true(rig->far.s->is_shut);
	rig_far_says(rig, SPAN("answer"));
	rig_settle(rig);
	rig_is(&rig->heard.data, SPAN("answer"));
	rig_end(rig);
}

static void the_owner_closes(void **state)
{
	(void)state;
	for (int reset = 0; reset < 2; reset++) {
		struct rig *rig = rig_new();
		rig_open(rig);
		rig_close(rig, reset);
		assert_int_equal(rig->far.s->was_reset, reset);
		rig->far.s->is_open = true; // so that the far end reads what was sent
		rig_settle(rig);
		assert_int_equal(rig->far.has_ended, !reset);
		rig_end(rig);
	}
}

// Whoever can cut the connection must not make a part of an answer look whole (RFC 8446 6.1).
static void a_connection_that_just_ends_is_cut(void **state)
{
	static const int errors[] = {0, ECONNRESET, ETIMEDOUT};
	(void)state;
	for (int i = 0; i < 3; i++) {
		struct rig *rig = rig_new();
		rig_open(rig);
		rig_far_says(rig, SPAN("a part"));
		rig_settle(rig);
		if (errors[i])
			fake_peer_closes(&rig->fake, rig->far.s, errors[i]);
		else
			fake_peer_ends(&rig->fake, rig->far.s);
		rig_turn(rig);
		rig_is(&rig->heard.data, SPAN("a part"));
		assert_int_equal(rig->heard.eof, 0);
		assert_int_equal(rig->heard.closed, 1);
		assert_int_equal(rig->heard.error, errors[i] ? errors[i] : ECONNRESET);
		assert_int_equal(rig_count(rig, cut), 1);
		rig_end(rig);
	}
}

static void data_and_its_cut_in_one_burst(void **state)
{
	struct rig *rig = rig_new();
	struct span text = rig_text(2 * TLS_ROUND_BYTES);
	(void)state;
	rig->bytewise = false;
	rig_open(rig);
	rig_far_says(rig, text);
	fake_peer_ends(&rig->fake, rig->far.s);
	rig_turn(rig);
	rig_is(&rig->heard.data, text);
	assert_int_equal(rig->heard.error, ECONNRESET);
	rig_end(rig);
}

// Between STREAM_CLOSED being handed over and being seen, the owner may still call.
static void calls_on_a_stream_that_has_failed(void **state)
{
	struct rig *rig = rig_new();
	struct stream_event events[4], outer[4];
	(void)state;
	rig_open(rig);
	fake_peer_ends(&rig->fake, rig->far.s);
	int count = stream_poll(&rig->fake.driver, events, 4, 0);
	tls_take(rig->tls, events, count);
	assert_int_equal(stream_poll(rig->tls, outer, 4, 0), 1);
	assert_int_equal(outer[0].kind, STREAM_CLOSED);
	assert_int_equal(rig_says(rig, SPAN("too late")), 8);
	assert_int_equal(stream_queued(rig->tls, rig->stream), 0);
	stream_pause(rig->tls, rig->stream);
	stream_resume(rig->tls, rig->stream);
	stream_shut(rig->tls, rig->stream);
	rig_close(rig, false);
	assert_int_equal(outer[0].kind, STREAM_NONE);
	assert_int_equal(stream_poll(rig->tls, outer, 4, 0), 0);
	rig_end(rig);
}

static void closed_by_its_owner_within_a_round(void **state)
{
	struct rig *rig = rig_new();
	(void)state;
	rig->closes_when_opened = true;
	rig_connect(rig);
	rig_settle(rig);
	assert_int_equal(rig->heard.opened, 1);
	assert_int_equal(rig->heard.closed, 0);
	assert_false(rig->far.s->is_used);
	rig_end(rig);
}

// A burst that makes many rounds, whose stream is closed after the first.
static void closed_by_its_owner_between_rounds(void **state)
{
	struct rig *rig = rig_new();
	struct stream_event events[64], outer[4];
	(void)state;
	rig->bytewise = false;
	rig_open(rig);
	rig_far_says(rig, rig_text(4 * TLS_ROUND_BYTES));
	int count = stream_poll(&rig->fake.driver, events, 64, 0);
	tls_take(rig->tls, events, count);
	assert_true(stream_poll(rig->tls, outer, 4, 0) > 0);
	assert_int_equal(outer[0].kind, STREAM_DATA);
	rig_close(rig, false);
	rig_connect(rig); // its channel is used again at once
	while ((count = stream_poll(rig->tls, outer, 4, 0)) > 0)
		for (int i = 0; i < count; i++)
			assert_int_equal(outer[i].kind, STREAM_NONE);
	rig_settle(rig);
	assert_int_equal(rig->heard.opened, 1);
	assert_int_equal(rig->heard.data.len, 0);
	rig_end(rig);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(bodies_of_many_sizes_both_ways),
		cmocka_unit_test(parts_of_a_write_come_in_order),
		cmocka_unit_test(short_parts_share_a_record),
		cmocka_unit_test(a_far_end_that_takes_nothing),
		cmocka_unit_test(an_owner_that_reads_nothing),
		cmocka_unit_test(an_inner_driver_that_takes_no_more),
		cmocka_unit_test(the_far_end_says_that_it_ends),
		cmocka_unit_test(what_comes_after_the_end_is_dropped),
		cmocka_unit_test(the_owner_ends_and_still_reads),
		cmocka_unit_test(the_owner_closes),
		cmocka_unit_test(a_connection_that_just_ends_is_cut),
		cmocka_unit_test(data_and_its_cut_in_one_burst),
		cmocka_unit_test(calls_on_a_stream_that_has_failed),
		cmocka_unit_test(closed_by_its_owner_within_a_round),
		cmocka_unit_test(closed_by_its_owner_between_rounds),
	};
	return rig_run(tests);
}
