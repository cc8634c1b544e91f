// The handshake without state: cookies, and what stays of it when segments are lost.

#include "tests/unit/net/wire.h"

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
	return 0;
}

static int end(void **state)
{
	(void)state;
	wire_end(&wire);
	return 0;
}

// RFC 9293 3.10.7.2, RFC 7323 2 and 3, RFC 2018 2: what is offered is answered.
static void test_syn_is_answered_with_its_options(void **state)
{
	(void)state;
	wire_give(&wire, wire_syn(&wire, WIRE_ALL));
	const struct wire_out *out = wire_last(&wire);
	assert_int_equal(out->flags, TCP_SYN | TCP_ACK);
	assert_int_equal(out->ack, wire.first + 1);
	assert_int_equal(out->window, 16384);
	assert_true(out->is_control);
	assert_int_equal(out->hop.mac[5], 9); // back to where it came from
	assert_int_equal(out->read.mss, 1460);
	assert_true(out->read.has_scale && out->read.has_sack_permitted);
	assert_true(out->read.has_timestamp);
	assert_int_equal(out->read.ts_echo, (uint32_t)(wire.now_us / 1000));
	assert_int_equal(wire.t->conn_count, 0); // nothing is kept
	assert_int_equal(wire_count(&wire, TCP_syn_answered), 1);
}

static void test_nothing_is_offered_that_was_not_asked_for(void **state)
{
	(void)state;
	wire_give(&wire, wire_syn(&wire, WIRE_TIMESTAMPS));
	const struct wire_out *out = wire_last(&wire);
	assert_true(out->read.has_timestamp);
	assert_false(out->read.has_scale || out->read.has_sack_permitted);
	wire_give(&wire, wire_syn(&wire, WIRE_SACK | WIRE_SCALE)); // no place to keep these
	out = wire_last(&wire);
	assert_true(out->read.has_mss);
	assert_false(
		out->read.has_scale || out->read.has_sack_permitted || out->read.has_timestamp);
}

static void test_third_segment_opens(void **state)
{
	(void)state;
	wire_open(&wire, WIRE_ALL);
	assert_true(wire_has_events(&wire, 1, STREAM_OPENED));
	assert_memory_equal(&wire.stream->peer, &wire.peer, sizeof(wire.peer));
	assert_memory_equal(&wire.stream->local, &wire.local, sizeof(wire.local));
	assert_null(wire.stream->user);
	const struct tcp_conn *c = wire_conn(&wire);
	assert_int_equal(c->state, TCP_ESTABLISHED);
	assert_int_equal(c->flags, TCP_CONN_TIMESTAMPS | TCP_CONN_SACK);
	assert_int_equal(c->scales, 7); // ours is 0: 16384 needs none
	assert_int_equal(c->mss, 1460 - 12); // RFC 6691
	assert_int_equal(c->snd_wnd, 65535u << 7);
	assert_int_equal(wire.out_count, 0);
	assert_int_equal(wire_count(&wire, TCP_accepted), 1);
}

static void test_listener_and_family(void **state)
{
	(void)state;
	wire.local.port = 443;
	wire.peer = (struct stream_address){.ip = {0x20, 1, [15] = 1}, .port = 5};
	wire.local = (struct stream_address){.ip = {0x20, 1, [15] = 2}, .port = 443};
	wire_give(&wire, wire_syn(&wire, WIRE_BARE));
	assert_int_equal(wire_last(&wire)->read.mss, 1440); // MSS of IPv6
	wire_open(&wire, WIRE_BARE);
	assert_int_equal(wire.stream->listener, 1);
	assert_int_equal(wire_conn(&wire)->mss, 1440);
	assert_int_equal(wire_conn(&wire)->flags, 0);
	wire.peer.port++;
	struct tcp_segment syn = wire_syn(&wire, WIRE_BARE);
	syn.has_mss = false; // RFC 9293 3.7.1: 1220
	wire_give(&wire, syn);
	wire.cookie = wire_last(&wire)->seq;
	wire_send(&wire, TCP_ACK, 1, NULL);
	assert_int_equal(wire_conn(&wire)->mss, 1220);
}

static void handshake_only(unsigned options)
{
	wire_give(&wire, wire_syn(&wire, options));
	wire.cookie = wire_last(&wire)->seq;
	wire.ack = 1;
	wire_forget(&wire);
}

// RFC 4987: the bare ACK was lost.
static void test_third_segment_may_bring_data_and_fin(void **state)
{
	(void)state;
	handshake_only(WIRE_ALL);
	wire_send(&wire, TCP_ACK | TCP_PSH | TCP_FIN, 1, "GET");
	assert_true(wire_has_events(&wire, 3, STREAM_OPENED, STREAM_DATA, STREAM_EOF));
	assert_string_equal(wire_text(&wire), "GET");
	assert_int_equal(wire_conn(&wire)->state, TCP_CLOSE_WAIT);
	assert_int_equal(wire_last(&wire)->ack, wire.first + 5);
}

// What overtakes the third segment is not told that nobody is here.
static void test_second_data_before_the_first(void **state)
{
	(void)state;
	handshake_only(WIRE_ALL);
	wire_send(&wire, TCP_ACK, 4, "def");
	assert_int_equal(wire.out_count, 0);
	assert_int_equal(wire.t->conn_count, 0);
	wire_send(&wire, TCP_ACK, 1, "abc");
	assert_true(wire_has_events(&wire, 2, STREAM_OPENED, STREAM_DATA));
}

// Segments of connections of a process before, whose numbers look like a first flight's by chance:
// none waits for a RST, since none echoes a timestamp of ours.
static void test_strangers_are_reset_at_once(void **state)
{
	(void)state;
	unsigned like_ours = 0;
	handshake_only(WIRE_ALL);
	uint32_t cookie = wire.cookie, echo = wire.ts_echo;
	for (uint32_t i = 0; i < 5000; i++) {
		struct syncookie_told told;
		wire_forget(&wire);
		wire.cookie = i * UINT32_C(2654435761);
		wire.ts_echo = echo + i * UINT32_C(40503) + 1;
		struct tcp_segment segment = wire_segment(&wire, TCP_ACK, 77, "GET");
		like_ours +=
			syncookie_check(&wire.t->syncookie, &segment, &told) == SYNCOOKIE_OTHER;
		wire_give(&wire, segment);
		assert_int_equal(wire_last(&wire)->flags, TCP_RST);
	}
	assert_in_range(like_ours, 5, 80); // one in 250
	wire_forget(&wire);
	wire.cookie = cookie;
	wire.ts_echo = echo;
	wire_send(&wire, TCP_ACK, 4, "def"); // this one does, and is waited for
	assert_int_equal(wire.out_count, 0);
}

// Nor does any other segment of a first flight open one, be it one of ten thousand.
static void test_only_the_first_opens(void **state)
{
	(void)state;
	handshake_only(WIRE_ALL);
	for (uint32_t seq = 2; seq < 10000; seq++) {
		wire_send(&wire, TCP_ACK, seq, "x");
		assert_int_equal(wire.t->conn_count, 0);
	}
	assert_int_equal(wire.out_count, 0); // all may come to be
}

// MSS in three bits: the largest that is not above the peer's.
static void test_mss(void **state)
{
	(void)state;
	static const struct {
		uint16_t offers, gets;
	} cases[] = {{0, 536}, {64, 536}, {536, 536}, {1219, 536}, {1220, 1220}, {1399, 1360},
		{1460, 1460}, {9000, 1460}};
	for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
		wire.peer.port++;
		struct tcp_segment syn = wire_syn(&wire, WIRE_BARE);
		syn.mss = cases[i].offers;
		wire_give(&wire, syn);
		wire.cookie = wire_last(&wire)->seq;
		wire.ack = 1;
		wire_send(&wire, TCP_ACK, 1, NULL);
		assert_int_equal(wire_conn(&wire)->mss, cases[i].gets);
	}
	wire.peer.port++;
	struct tcp_segment syn = wire_syn(&wire, WIRE_BARE);
	syn.has_mss = false; // RFC 9293 3.7.1: 536
	wire_give(&wire, syn);
	wire.cookie = wire_last(&wire)->seq;
	wire_send(&wire, TCP_ACK, 1, NULL);
	assert_int_equal(wire_conn(&wire)->mss, 536);
}

static void test_scales(void **state)
{
	(void)state;
	for (uint8_t scale = 0; scale <= 14; scale += 7) {
		wire.peer.port++;
		struct tcp_segment syn = wire_syn(&wire, WIRE_ALL);
		syn.scale = scale;
		wire_give(&wire, syn);
		wire.cookie = wire_last(&wire)->seq;
		wire.ack = 1;
		wire_send(&wire, TCP_ACK, 1, NULL);
		assert_int_equal(wire_conn(&wire)->scales & 15, scale);
	}
	wire.peer.port++;
	wire_open(&wire, WIRE_TIMESTAMPS | WIRE_SACK); // scaling was not offered
	assert_int_equal(wire_conn(&wire)->scales, 0);
	assert_true(wire_conn(&wire)->flags & TCP_CONN_SACK);
}

static struct tcp_segment without_timestamp(struct tcp_segment segment)
{
	segment.has_timestamp = false;
	return segment;
}

// Trap 45: Linux before 4.15 omits it on the ACK that completes the handshake.
static void test_third_segment_without_timestamp(void **state)
{
	(void)state;
	handshake_only(WIRE_ALL);
	wire_give(&wire, without_timestamp(wire_segment(&wire, TCP_ACK, 1, NULL)));
	const struct tcp_conn *c = wire_conn(&wire);
	assert_int_equal(c->flags, TCP_CONN_TIMESTAMPS | TCP_CONN_SCALE_UNSURE);
	assert_int_equal(c->snd_wnd, 65535);
	wire_send(&wire, TCP_ACK, 1, "GET"); // with one: it echoes the SYN-ACK's
	assert_string_equal(wire_text(&wire), "GET");
	assert_int_equal(c->flags & (TCP_CONN_SACK | TCP_CONN_SCALE_UNSURE), TCP_CONN_SACK);
	assert_int_equal(c->scales & 15, 7);
	assert_int_equal(c->snd_wnd, 65535u << 7);
}

// Once we have sent something, the echo may be of that.
static void test_echo_of_something_else_tells_nothing(void **state)
{
	(void)state;
	handshake_only(WIRE_ALL);
	wire_turn(&wire, &(struct tcp_segment){0}, 0);
	wire_give(&wire, without_timestamp(wire_segment(&wire, TCP_ACK, 1, "GET")));
	wire_wait(&wire, 50000); // the delayed ACK leaves
	assert_int_equal(wire.out_count, 1);
	assert_true(wire_last(&wire)->read.has_timestamp);
	wire_send(&wire, TCP_ACK, 4, "x");
	assert_int_equal(wire_conn(&wire)->scales & 15, 0);
	assert_false(wire_conn(&wire)->flags & (TCP_CONN_SACK | TCP_CONN_SCALE_UNSURE));
}

static void test_old_cookies(void **state)
{
	(void)state;
	handshake_only(WIRE_ALL);
	wire_wait(&wire, 59000000); // another key by now
	wire_send(&wire, TCP_ACK, 1, NULL);
	assert_int_equal(wire_count(&wire, TCP_accepted), 1);
	wire.peer.port++;
	handshake_only(WIRE_ALL);
	wire_wait(&wire, 121000000);
	wire_send(&wire, TCP_ACK, 1, NULL);
	assert_int_equal(wire_count(&wire, TCP_accepted), 1);
	assert_int_equal(wire_count(&wire, TCP_cookie_late), 1);
	assert_int_equal(wire_last(&wire)->flags, TCP_RST);
}

// A change of any bit of a cookie, of the tuple or of the number spoils it.
static void test_forged_cookies(void **state)
{
	(void)state;
	handshake_only(WIRE_ALL);
	for (unsigned bit = 0; bit < 31; bit++) { // the last is free
		struct tcp_segment segment = wire_segment(&wire, TCP_ACK, 1, NULL);
		segment.ack ^= 1u << bit;
		wire_give(&wire, segment);
	}
	struct tcp_segment segment = wire_segment(&wire, TCP_ACK, 1, NULL);
	segment.peer.port ^= 1;
	wire_give(&wire, segment);
	segment = wire_segment(&wire, TCP_ACK, 1, NULL);
	segment.local.ip[15] ^= 1;
	wire_give(&wire, segment);
	assert_int_equal(wire_count(&wire, TCP_accepted), 0);
	assert_int_equal(wire_count(&wire, TCP_cookie_bad), 33);
}

// RFC 9293 3.5.2: what nobody knows.
static void test_resets_to_strangers(void **state)
{
	(void)state;
	wire_send(&wire, TCP_ACK, 100, "data");
	assert_int_equal(wire_last(&wire)->flags, TCP_RST);
	assert_int_equal(wire_last(&wire)->seq, wire.cookie + wire.ack); // its ACK
	wire.local.port = 81;
	struct tcp_segment syn = wire_syn(&wire, WIRE_BARE);
	wire_give(&wire, syn);
	assert_int_equal(wire_last(&wire)->flags, TCP_RST | TCP_ACK);
	assert_int_equal(wire_last(&wire)->seq, 0);
	assert_int_equal(wire_last(&wire)->ack, wire.first + 1);
	assert_int_equal(wire_count(&wire, TCP_no_listener), 1);
	assert_int_equal(wire_count(&wire, TCP_rst_sent), 2);
	wire_forget(&wire);
	wire_send(&wire, TCP_RST, 100, NULL); // never to one of its kind
	wire_send(&wire, TCP_RST | TCP_ACK, 100, NULL);
	assert_int_equal(wire.out_count, 0);
	wire.local.port = 80;
	wire_send(&wire, TCP_FIN, 100, NULL); // neither SYN nor ACK: silence
	wire_send(&wire, TCP_SYN | TCP_FIN, 0, NULL);
	wire_send(&wire, 0, 100, "data");
	assert_int_equal(wire.out_count, 0);
	wire_send(&wire, TCP_SYN | TCP_ACK, 100, NULL); // we never asked
	assert_int_equal(wire_last(&wire)->flags, TCP_RST);
}

static const struct tcp_segment *asked;

static bool is_elsewhere(void *ctx, const struct tcp_segment *segment)
{
	(void)ctx;
	asked = segment;
	return segment->peer.port == 7;
}

// Other workers: asked of what we know nothing of, but for SYNs, which are ours.
static void test_elsewhere(void **state)
{
	(void)state;
	static const struct {
		uint16_t port;
		uint8_t flags;
		bool is_asked, is_reset;
	} cases[] = {
		{7, TCP_ACK, true, false},
		{8, TCP_ACK, true, true},
		{7, TCP_RST, true, false},
		{8, TCP_RST, true, false},
		{7, TCP_RST | TCP_ACK, true, false},
		{7, TCP_FIN | TCP_ACK, true, false},
		{7, TCP_PSH | TCP_ACK, true, false},
		{7, TCP_SYN | TCP_ACK, true, false},
		{7, TCP_FIN, true, false},
		{7, 0, true, false},
		{7, TCP_SYN, false, false},
	};
	wire.io.elsewhere = is_elsewhere;
	for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
		wire.peer.port = cases[i].port;
		struct tcp_segment segment = wire_segment(&wire, cases[i].flags, 1, "text");
		asked = NULL;
		wire_forget(&wire);
		wire_turn(&wire, &segment, 1);
		wire_flush(&wire);
		assert_ptr_equal(asked, cases[i].is_asked ? &segment : NULL);
		bool is_reset = wire.out_count && wire_last(&wire)->flags & TCP_RST;
		assert_true(is_reset == cases[i].is_reset);
	}
	assert_int_equal(wire_count(&wire, TCP_cookie_bad), 1);
	wire.peer.port = 7;
	wire.local.port++; // a port that nobody listens on: nor does another worker
	asked = NULL;
	wire_send(&wire, TCP_ACK, 1, "text");
	assert_null(asked);
	assert_int_equal(wire_count(&wire, TCP_no_listener), 1);
	wire.local.port--;
	wire_open(&wire, WIRE_ALL); // a good cookie is ours
	assert_int_equal(wire.t->conn_count, 1);
	asked = NULL;
	wire_send(&wire, TCP_ACK, 1, "text");
	assert_null(asked);
}

static void test_syn_rate(void **state)
{
	(void)state;
	wire_end(&wire);
	wire.plan.syn_rate = 2;
	wire_make(&wire);
	for (unsigned i = 0; i < 3; i++)
		wire_give(&wire, wire_syn(&wire, WIRE_BARE));
	assert_int_equal(wire.out_count, 2);
	assert_int_equal(wire_count(&wire, TCP_syn_limited), 1);
}

static void test_draining(void **state)
{
	(void)state;
	handshake_only(WIRE_BARE);
	tcp_stop_accepting(wire.t);
	wire_send(&wire, TCP_ACK, 1, NULL); // was under way
	assert_int_equal(wire_count(&wire, TCP_accepted), 1);
	assert_int_equal(wire.out_count, 0);
	wire.peer.port++;
	wire_give(&wire, wire_syn(&wire, WIRE_BARE));
	assert_int_equal(wire_last(&wire)->flags, TCP_RST | TCP_ACK);
	assert_int_equal(wire_count(&wire, TCP_syn_refused), 1);
}

// A second's worth at once, then one each time its share of a second is over.
static void test_resets_at_their_rate(void **state)
{
	(void)state;
	wire_end(&wire);
	wire.plan.reset_rate = 4;
	wire_make(&wire);
	for (unsigned i = 1; i <= 5; i++) {
		wire_send(&wire, TCP_ACK, 100, NULL);
		assert_int_equal(wire_count(&wire, TCP_rst_sent), i < 4 ? i : 4);
	}
	assert_int_equal(wire_count(&wire, TCP_rst_limited), 1);
	wire.now_us += 249999;
	wire_send(&wire, TCP_ACK, 100, NULL);
	assert_int_equal(wire_count(&wire, TCP_rst_sent), 4);
	wire.now_us += 1;
	wire_send(&wire, TCP_ACK, 100, NULL);
	wire_send(&wire, TCP_ACK, 100, NULL);
	assert_int_equal(wire_count(&wire, TCP_rst_sent), 5);
	assert_int_equal(wire_count(&wire, TCP_rst_limited), 3);
	wire_send(&wire, TCP_RST, 100, NULL); // is owed none
	assert_int_equal(wire_count(&wire, TCP_rst_limited), 3);
	wire.now_us += 10000000; // what was not asked for is not saved up
	for (unsigned i = 0; i < 6; i++)
		wire_send(&wire, TCP_ACK, 100, NULL);
	assert_int_equal(wire_count(&wire, TCP_rst_sent), 9);
	assert_int_equal(wire_count(&wire, TCP_rst_limited), 5);
}

static void test_full(void **state)
{
	(void)state;
	for (unsigned i = 0; i < 10; i++, wire.peer.port++) {
		wire_open(&wire, WIRE_BARE);
		assert_true(tcp_is_full(wire.t) == (i >= 8)); // on the reserve
	}
	wire_give(&wire, wire_syn(&wire, WIRE_BARE));
	wire.cookie = wire_last(&wire)->seq;
	wire_send(&wire, TCP_ACK, 1, NULL);
	assert_int_equal(wire_count(&wire, TCP_table_full), 1);
	assert_int_equal(wire_last(&wire)->flags, TCP_RST);
}

static void test_owner(void **state)
{
	(void)state;
	wire_open(&wire, WIRE_BARE);
	struct tcp_segment segment = wire_segment(&wire, TCP_ACK, 1, NULL);
	assert_int_equal(tcp_owns(wire.t, &segment), TCP_OWNER_CONNECTION);
	segment.peer.port++;
	assert_int_equal(tcp_owns(wire.t, &segment), TCP_OWNER_LISTENER);
	segment.local.port = 81;
	assert_int_equal(tcp_owns(wire.t, &segment), TCP_OWNER_NONE);
}

// The bill of an idle connection: its struct, a place on the list of a turn, and of the flow table,
// whose length is a power of two, 22 bytes at most.
static void test_idle_bytes(void **state)
{
	(void)state;
	for (uint32_t max = 1000; max <= 4000000; max = max * 3 / 2) {
		struct tcp_plan plan = wire_plan();
		plan.connections_max = max;
		assert_true(tcp_idle_bytes(&plan) <= 128 + 4 + 22);
	}
}

#define TEST(name) cmocka_unit_test_setup_teardown(name, start, end)

int main(void)
{
	const struct CMUnitTest tests[] = {
		TEST(test_syn_is_answered_with_its_options),
		TEST(test_nothing_is_offered_that_was_not_asked_for),
		TEST(test_third_segment_opens),
		TEST(test_listener_and_family),
		TEST(test_third_segment_may_bring_data_and_fin),
		TEST(test_second_data_before_the_first),
		TEST(test_strangers_are_reset_at_once),
		TEST(test_only_the_first_opens),
		TEST(test_mss),
		TEST(test_scales),
		TEST(test_third_segment_without_timestamp),
		TEST(test_echo_of_something_else_tells_nothing),
		TEST(test_old_cookies),
		TEST(test_forged_cookies),
		TEST(test_resets_to_strangers),
		TEST(test_elsewhere),
		TEST(test_syn_rate),
		TEST(test_draining),
		TEST(test_resets_at_their_rate),
		TEST(test_full),
		TEST(test_owner),
		TEST(test_idle_bytes),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
