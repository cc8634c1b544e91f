// Streams that begin with a PROXY header: over the kernel's TCP, as stories on both engines, and
// over a driver that gives what it is told to, for limits and turns.

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

#include "drivers/ip.h"
#include "drivers/proxy/header.h"
#include "drivers/proxy/proxy.h"
#include "tests/unit/drivers/rig.h"

static struct rig rig;

#define V1 "PROXY TCP4 192.0.2.1 198.51.100.2 12345 443\r\n"
#define V2 "\r\n\r\n\0\r\nQUIT\n\x21\x11\x00\x0c\xc0\x00\x02\x01\xc6\x33\x64\x02\x30\x39\x01\xbb"
#define LOCAL "\r\n\r\n\0\r\nQUIT\n\x20\x00\x00\x00"
#define HEADER_MS 150

// ---- Over the kernel's TCP ----

static uint64_t counted(enum proxy_counter counter)
{
	return proxy_counted(rig.driver, counter);
}

static uint32_t open_count(void)
{
	return atomic_load(&sockets_stats(proxy_inner(rig.driver))->accepted_open);
}

static void start_proxy(void **state)
{
	struct proxy_plan plan = {.listeners = 1, .streams_max = 1024, .header_ms = HEADER_MS};
	rig_begin(&rig, state);
	assert_int_equal(proxy_create(&plan, rig.driver, &rig.driver), 0);
}

static void assert_from_header(const struct stream *stream)
{
	const uint8_t ip[16] = {[10] = 0xff, 0xff, 192, 0, 2, 1};
	assert_memory_equal(stream->peer.ip, ip, 16);
	assert_int_equal(stream->peer.port, 12345);
	assert_int_equal(stream->local.port, 443);
}

static void header_and_data_in_one_segment(void **state)
{
	const struct span headers[] = {SPAN(V1 "hello"), SPAN(V2 "hello"), SPAN(LOCAL "hello")};
	start_proxy(state);
	for (int i = 0; i < 3; i++) {
		int fd = rig_client(&rig);
		rig_client_send(fd, headers[i]);
		RIG_UNTIL(&rig, rig.peer_count == i + 1 && rig.peers[i].bytes == 5);
		assert_memory_equal(rig.peers[i].kept, "hello", 5);
		if (i < 2)
			assert_from_header(rig.peers[i].stream);
		else
			assert_int_equal(rig.peers[i].stream->local.port, rig.address.port);
		close(fd);
	}
	assert_int_equal(counted(PROXY_proxy_bad), 0);
	rig_stop(&rig);
}

static void header_byte_by_byte(void **state)
{
	const struct span headers[] = {SPAN(V1), SPAN(V2)};
	start_proxy(state);
	for (int i = 0; i < 2; i++) {
		int fd = rig_client(&rig);
		for (size_t at = 0; at < headers[i].len; at++) {
			assert_int_equal(rig.peer_count, i);
			rig_client_send(fd, (struct span){headers[i].at + at, 1});
			rig_turn(&rig, 1000);
		}
		rig_client_send(fd, SPAN("hello"));
		RIG_UNTIL(&rig, rig.peer_count == i + 1 && rig.peers[i].bytes == 5);
		assert_from_header(rig.peers[i].stream);
		close(fd);
	}
	rig_stop(&rig);
}

// The header ends in the middle of a segment whose beginning was kept.
static void header_in_two_pieces(void **state)
{
	start_proxy(state);
	int fd = rig_client(&rig);
	rig_client_send(fd, SPAN("PROXY TCP4 192.0.2.1 198.51."));
	rig_rest(&rig, 5);
	rig_client_send(fd, SPAN("100.2 12345 443\r\nhello"));
	RIG_UNTIL(&rig, rig.peer_count == 1 && rig.peers[0].bytes == 5);
	assert_from_header(rig.peers[0].stream);
	assert_memory_equal(rig.peers[0].kept, "hello", 5);
	close(fd);
	rig_stop(&rig);
}

static void closing_at_opened_takes_back_the_data(
	struct rig *r, struct rig_peer *peer, const struct stream_event *event)
{
	assert_int_equal(event->kind, STREAM_OPENED);
	stream_close(r->driver, peer->stream, false);
	peer->stream = NULL;
}

static void header_and_data_but_closed_at_opened(void **state)
{
	start_proxy(state);
	rig.react = closing_at_opened_takes_back_the_data;
	int fd = rig_client(&rig);
	rig_client_send(fd, SPAN(V1 "hello"));
	RIG_UNTIL(&rig, rig.peer_count == 1);
	assert_int_equal(rig.taken_back, 1);
	RIG_UNTIL(&rig, open_count() == 0);
	close(fd);
	rig_stop(&rig);
}

static void no_header_is_closed_and_counted(void **state)
{
	const struct span bad[] = {SPAN("GET / HTTP/1.1\r\n\r\n"), SPAN("PROXY TCP4 x\r\n")};
	start_proxy(state);
	for (int i = 0; i < 2; i++) {
		int fd = rig_client(&rig);
		rig_client_send(fd, bad[i]);
		assert_int_equal(rig_client_end(&rig, fd), ECONNRESET);
		close(fd);
	}
	int fd = rig_client(&rig);
	rig_client_send(fd, SPAN("PROXY TC"));
	shutdown(fd, SHUT_WR);
	assert_int_equal(rig_client_end(&rig, fd), ECONNRESET);
	close(fd);
	assert_int_equal(counted(PROXY_proxy_bad), 3);
	assert_int_equal(rig.peer_count, 0);
	RIG_UNTIL(&rig, open_count() == 0);
	rig_stop(&rig);
}

// A byte now and then does not put the deadline off.
static void late_header_is_closed_and_counted(void **state)
{
	start_proxy(state);
	int fd = rig_client(&rig);
	uint64_t begun = rig_clock_ms();
	for (size_t i = 0; counted(PROXY_proxy_late) == 0; i++) {
		assert_true(i < sizeof(V1) - 1);
		send(fd, &V1[i], 1, MSG_NOSIGNAL);
		rig_rest(&rig, 10);
	}
	assert_in_range(rig_clock_ms() - begun, 145, RIG_PATIENCE_MS);
	assert_int_equal(rig_client_end(&rig, fd), ECONNRESET);
	assert_int_equal(rig.peer_count, 0);
	close(fd);
	rig_stop(&rig);
}

// ---- Over a driver that gives what it is told to ----

#define STREAMS 1100 // more than 16 times the fewest pieces
#define FAKE_EVENTS 64

static struct fake {
	struct stream_driver driver; // first
	struct stream_event next[FAKE_EVENTS];
	int count;
	int polls;
	uint32_t wait_us; // asked for last
	struct stream streams[STREAMS];
	bool is_closed[STREAMS], was_reset[STREAMS];
	bool is_destroyed;
} fake;

static struct stream_driver *driver;
static struct stream_event events[256];

static int fake_poll(
	struct stream_driver *d, struct stream_event *into, int events_max, uint32_t wait_us)
{
	(void)d;
	int given = fake.count;
	assert_in_range(given, 0, events_max);
	memcpy(into, fake.next, (size_t)given * sizeof(into[0]));
	fake.count = 0;
	fake.polls++;
	fake.wait_us = wait_us;
	return given;
}

static void fake_close(struct stream_driver *d, struct stream *s, bool reset)
{
	(void)d;
	assert_false(fake.is_closed[s - fake.streams]);
	fake.is_closed[s - fake.streams] = true;
	fake.was_reset[s - fake.streams] = reset;
}

static void fake_destroy(struct stream_driver *d)
{
	(void)d;
	fake.is_destroyed = true;
}

static const struct stream_driver_ops fake_ops = {
	.poll = fake_poll, .close = fake_close, .destroy = fake_destroy};

// Stream N comes by listener N; `listeners` of them speak the protocol.
static void start_fake(uint32_t streams_max, uint64_t listeners)
{
	struct proxy_plan plan = {
		.listeners = listeners, .streams_max = streams_max, .header_ms = HEADER_MS};
	memset(&fake, 0, sizeof(fake));
	fake.driver =
		(struct stream_driver){.ops = &fake_ops, .queue_high = 12345, .now_us = 1000000};
	for (int i = 0; i < STREAMS; i++)
		fake.streams[i].listener = (uint16_t)i % 64;
	assert_int_equal(proxy_create(&plan, &fake.driver, &driver), 0);
	assert_int_equal(driver->queue_high, 12345);
	assert_ptr_equal(proxy_inner(driver), &fake.driver);
	assert_ptr_equal(proxy_inner(&fake.driver), &fake.driver);
}

static void stop_fake(void)
{
	stream_destroy(driver);
	assert_true(fake.is_destroyed);
}

static void give(enum stream_event_kind kind, int stream, struct span data)
{
	assert_true(fake.count < FAKE_EVENTS);
	fake.next[fake.count++] =
		(struct stream_event){.kind = kind, .stream = &fake.streams[stream], .data = data};
}

static void gives_nothing_before_the_header(int stream)
{
	give(STREAM_OPENED, stream, (struct span){0});
	assert_int_equal(stream_poll(driver, events, 256, 0), 0);
}

static void only_its_listeners(void **state)
{
	(void)state;
	start_fake(16, 1 << 2);
	fake.streams[1].listener = STREAM_CONNECTED;
	fake.driver.taken = 7;
	give(STREAM_OPENED, 0, (struct span){0});
	give(STREAM_NONE, 2, (struct span){0});
	give(STREAM_OPENED, 1, (struct span){0});
	give(STREAM_DATA, 0, SPAN("hello"));
	give(STREAM_OPENED, 2, (struct span){0});
	assert_int_equal(stream_poll(driver, events, 256, 0), 3);
	assert_int_equal(driver->taken, 7);
	assert_ptr_equal(events[0].stream, &fake.streams[0]);
	assert_ptr_equal(events[1].stream, &fake.streams[1]);
	assert_true(span_is_equal(events[2].data, SPAN("hello")));
	stop_fake();
}

// What does not fit the worker's array comes in the turns that follow, and the driver below is left
// alone until then.
static void a_burst_that_does_not_fit(void **state)
{
	(void)state;
	start_fake(16, UINT64_MAX);
	for (int i = 0; i < 3; i++)
		gives_nothing_before_the_header(i);
	for (int i = 0; i < 3; i++)
		give(STREAM_DATA, i, SPAN(V1 "hello"));
	give(STREAM_CLOSED, 0, (struct span){0});
	int polls = fake.polls, total = 0, kinds[3] = {0};
	for (int turn = 0; turn < 2; turn++) {
		int count = stream_poll(driver, events, STREAM_EVENTS_MIN, 0);
		for (int i = 0; i < count; i++) {
			int stream = events[i].stream->listener;
			static const enum stream_event_kind order[] = {
				STREAM_OPENED, STREAM_DATA, STREAM_CLOSED};
			assert_int_equal(events[i].kind, order[kinds[stream]++]);
		}
		total += count;
	}
	assert_int_equal(total, 7);
	assert_int_equal(fake.polls, polls + 1);
	assert_int_equal(stream_poll(driver, events, STREAM_EVENTS_MIN, 0), 0);
	assert_int_equal(fake.polls, polls + 2);
	stop_fake();
}

static void deadline_to_the_microsecond(void **state)
{
	(void)state;
	start_fake(16, UINT64_MAX);
	gives_nothing_before_the_header(0);
	stream_poll(driver, events, 256, 1000);
	assert_int_equal(fake.wait_us, 1000);
	stream_poll(driver, events, 256, 1000000);
	assert_int_equal(fake.wait_us, HEADER_MS * 1000);
	fake.driver.now_us += HEADER_MS * 1000 - 1;
	stream_poll(driver, events, 256, 1000000);
	assert_false(fake.is_closed[0]);
	stream_poll(driver, events, 256, 1000000);
	assert_int_equal(fake.wait_us, 1);
	fake.driver.now_us++;
	assert_int_equal(stream_poll(driver, events, 256, 1000000), 0);
	assert_true(fake.is_closed[0]);
	assert_true(fake.was_reset[0]);
	assert_int_equal(proxy_counted(driver, PROXY_proxy_late), 1);
	stop_fake();
}

static void who_ends_first(void **state)
{
	(void)state;
	start_fake(16, UINT64_MAX);
	gives_nothing_before_the_header(0);
	gives_nothing_before_the_header(1);
	give(STREAM_EOF, 0, (struct span){0});
	give(STREAM_CLOSED, 1, (struct span){0});
	assert_int_equal(stream_poll(driver, events, 256, 0), 0);
	assert_true(fake.is_closed[0]);
	assert_false(fake.is_closed[1]); // it has ended by itself
	assert_int_equal(proxy_counted(driver, PROXY_proxy_bad), 2);
	stop_fake();
}

// The addresses below are not touched: our own TCP knows its connections by them.
static void addresses_are_above_alone(void **state)
{
	(void)state;
	start_fake(16, UINT64_MAX);
	struct stream_address peer = {.ip = {1}, .port = 1}, local = {.ip = {2}, .port = 2};
	fake.streams[0].peer = peer;
	fake.streams[0].local = local;
	gives_nothing_before_the_header(0);
	give(STREAM_DATA, 0, SPAN(V1));
	assert_int_equal(stream_poll(driver, events, 256, 0), 1);
	assert_from_header(events[0].stream);
	assert_memory_equal(&fake.streams[0].peer, &peer, sizeof(peer));
	assert_memory_equal(&fake.streams[0].local, &local, sizeof(local));
	stop_fake();
}

// After STREAM_CLOSED the worker may still read the stream's fields; closing it is its last call,
// and does nothing below.
static void ended_in_this_burst(void **state)
{
	(void)state;
	start_fake(16, UINT64_MAX);
	gives_nothing_before_the_header(0);
	give(STREAM_DATA, 0, SPAN(V1 "hello"));
	give(STREAM_CLOSED, 0, (struct span){0});
	assert_int_equal(stream_poll(driver, events, 256, 0), 3);
	struct stream *stream = events[0].stream;
	assert_int_equal(
		stream_write(driver, stream, (struct span[]){SPAN("ab"), SPAN("c")}, 2), 3);
	assert_int_equal(stream_queued(driver, stream), 0);
	stream_shut(driver, stream);
	stream_pause(driver, stream);
	stream_resume(driver, stream);
	stream_close(driver, stream, true);
	assert_int_equal(events[2].kind, STREAM_NONE);
	assert_false(fake.is_closed[0]);
	assert_from_header(stream);
	stop_fake();
}

// So many headers in pieces as there are buffers; one more is refused, until one of them is done.
static void pieces_at_their_limit(void **state)
{
	(void)state;
	for (uint32_t streams = 16; streams <= STREAMS; streams += STREAMS - 16) {
		int max = streams == 16 ? 16 : STREAMS / (int)PROXY_PIECES_EVERY;
		start_fake(streams, UINT64_MAX);
		for (int i = 0; i < max; i++) {
			gives_nothing_before_the_header(i);
			give(STREAM_DATA, i, SPAN("PROXY "));
			assert_int_equal(stream_poll(driver, events, 256, 0), 0);
		}
		assert_int_equal(proxy_counted(driver, PROXY_proxy_full), 0);
		if (streams == 16) { // there are more buffers than streams
			stop_fake();
			continue;
		}
		gives_nothing_before_the_header(max);
		give(STREAM_DATA, max, SPAN("PROXY "));
		stream_poll(driver, events, 256, 0);
		assert_int_equal(proxy_counted(driver, PROXY_proxy_full), 1);
		assert_true(fake.is_closed[max]);
		gives_nothing_before_the_header(max + 1); // one that comes whole needs none
		give(STREAM_DATA, max + 1, SPAN(V1));
		assert_int_equal(stream_poll(driver, events, 256, 0), 1);
		give(STREAM_DATA, 0, SPAN("UNKNOWN\r\n"));
		assert_int_equal(stream_poll(driver, events, 256, 0), 1);
		gives_nothing_before_the_header(max + 2);
		give(STREAM_DATA, max + 2, SPAN("PROXY "));
		stream_poll(driver, events, 256, 0);
		assert_int_equal(proxy_counted(driver, PROXY_proxy_full), 1);
		stop_fake();
	}
}

// Headers of all kinds cut anywhere, over streams that come and go: each gives what followed its
// header, and nothing else.
static void random_pieces(void **state)
{
	(void)state;
	static const struct span headers[] = {
		SPAN(V1 "hello"), SPAN(V2 "hello"), SPAN(LOCAL "hello")};
	unsigned seed = (unsigned)getpid();
	printf("seed %u\n", seed);
	start_fake(16, UINT64_MAX);
	srandom(seed);
	size_t sent[16] = {0}, got[16] = {0};
	bool is_open[16] = {false};
	struct stream *open[16];
	for (int step = 0; step < 20000; step++) {
		for (int i = 0; i < 16; i++) {
			struct span all = headers[i % 3];
			size_t len = (size_t)random() % 8;
			if (!is_open[i])
				give(STREAM_OPENED, i, (struct span){0});
			is_open[i] = true;
			if (len > all.len - sent[i])
				len = all.len - sent[i];
			if (len > 0)
				give(STREAM_DATA, i, (struct span){all.at + sent[i], len});
			sent[i] += len;
		}
		int count = stream_poll(driver, events, 256, 0);
		for (int i = 0; i < count; i++) {
			int at = events[i].stream->listener;
			if (events[i].kind == STREAM_OPENED) {
				assert_null(events[i].stream->user);
				open[at] = events[i].stream;
				if (at % 3 != 2)
					assert_from_header(open[at]);
			}
			if (events[i].kind != STREAM_DATA)
				continue;
			assert_memory_equal(
				events[i].data.at, &"hello"[got[at]], events[i].data.len);
			got[at] += events[i].data.len;
		}
		for (int i = 0; i < 16; i++) {
			if (sent[i] < headers[i % 3].len)
				continue;
			assert_int_equal(got[i], 5);
			stream_close(driver, open[i], false);
			assert_true(fake.is_closed[i]);
			fake.is_closed[i] = is_open[i] = false;
			fake.streams[i] = (struct stream){.listener = (uint16_t)i};
			sent[i] = got[i] = 0;
		}
	}
	for (int i = 0; i < PROXY_COUNTERS_COUNT; i++)
		assert_int_equal(proxy_counted(driver, (enum proxy_counter)i), 0);
	stop_fake();
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		RIG_BOTH(header_and_data_in_one_segment),
		RIG_BOTH(header_byte_by_byte),
		RIG_BOTH(header_in_two_pieces),
		RIG_BOTH(header_and_data_but_closed_at_opened),
		RIG_BOTH(no_header_is_closed_and_counted),
		RIG_BOTH(late_header_is_closed_and_counted),
		cmocka_unit_test(only_its_listeners),
		cmocka_unit_test(a_burst_that_does_not_fit),
		cmocka_unit_test(deadline_to_the_microsecond),
		cmocka_unit_test(who_ends_first),
		cmocka_unit_test(addresses_are_above_alone),
		cmocka_unit_test(ended_in_this_burst),
		cmocka_unit_test(pieces_at_their_limit),
		cmocka_unit_test(random_pieces),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
