// The stream contract, told as stories, on both engines: bytes, back-pressure, and ends.

#include <errno.h>
#include <stdio.h>
#include <sys/socket.h>
#include <unistd.h>

#include "tests/unit/drivers/rig.h"

static struct rig rig; // too large for the stack

static void start(void **state)
{
	struct sockets_plan plan = rig_plan(rig_engine(state));
	rig_require(rig_engine(state));
	rig_start(&rig, &plan);
}

// A client whose stream has opened.
static int open_client(struct rig_peer **peer)
{
	int count = rig.peer_count;
	int fd = rig_client(&rig);
	RIG_UNTIL(&rig, rig.peer_count == count + 1);
	*peer = &rig.peers[count];
	return fd;
}

// ---- Bytes ----

static void echo_over_many_connections(void **state)
{
	enum { CLIENTS = 100, ROUNDS = 5 };
	int fds[CLIENTS];
	char text[32], back[32];
	start(state);
	rig.react = rig_echo;
	for (int i = 0; i < CLIENTS; i++)
		fds[i] = rig_client(&rig);
	for (int round = 0; round < ROUNDS; round++) {
		for (int i = 0; i < CLIENTS; i++) {
			int len = snprintf(text, sizeof(text), "client %d round %d", i, round);
			rig_client_send(fds[i], (struct span){text, (size_t)len});
		}
		for (int i = 0; i < CLIENTS; i++) {
			int len = snprintf(text, sizeof(text), "client %d round %d", i, round);
			assert_int_equal(rig_client_receive(&rig, fds[i], back, (size_t)len), 0);
			assert_memory_equal(back, text, len);
		}
	}
	for (int i = 0; i < CLIENTS; i++)
		close(fds[i]);
	RIG_UNTIL(&rig, sockets_stats(rig.driver)->accepted_open == 0);
	assert_int_equal(rig_counter(&rig, SOCKETS_accepted), CLIENTS);
	assert_int_equal(rig_counter(&rig, SOCKETS_stream_error), 0);
	assert_int_equal(rig_counter(&rig, SOCKETS_bytes_in), rig_counter(&rig, SOCKETS_bytes_out));
	rig_stop(&rig);
}

static void small_bursts_lose_nothing(void **state)
{
	enum { CLIENTS = 40 };
	int fds[CLIENTS];
	start(state);
	rig.events_max = STREAM_EVENTS_MIN;
	for (int i = 0; i < CLIENTS; i++) {
		fds[i] = rig_client(&rig);
		rig_client_send(fds[i], SPAN("hello"));
		shutdown(fds[i], SHUT_WR);
	}
	RIG_UNTIL(&rig, rig.events == 3 * CLIENTS);
	for (int i = 0; i < CLIENTS; i++) {
		assert_int_equal(rig.peers[i].bytes, 5);
		assert_int_equal(rig.peers[i].eof, 1);
		close(fds[i]);
	}
	rig_stop(&rig);
}

static void small_writes_arrive_in_order(void **state)
{
	enum { WRITES = 1000 };
	char text[8], back[8];
	struct rig_peer *peer;
	start(state);
	int fd = open_client(&peer);
	for (int i = 0; i < WRITES; i++) {
		snprintf(text, sizeof(text), "%07d", i);
		assert_int_equal(rig_write(&rig, peer, (struct span){text, 7}), 7);
	}
	for (int i = 0; i < WRITES; i++) {
		snprintf(text, sizeof(text), "%07d", i);
		assert_int_equal(rig_client_receive(&rig, fd, back, 7), 0);
		assert_memory_equal(back, text, 7);
	}
	close(fd);
	rig_stop(&rig);
}

static void parts_are_sent_in_order(void **state)
{
	struct span parts[STREAM_PARTS_MAX];
	char back[STREAM_PARTS_MAX + 8];
	struct rig_peer *peer;
	start(state);
	int fd = open_client(&peer);
	for (int i = 0; i < STREAM_PARTS_MAX; i++)
		parts[i] = i % 2 ? SPAN("") : SPAN("ab");
	assert_int_equal(
		stream_write(rig.driver, peer->stream, parts, STREAM_PARTS_MAX), STREAM_PARTS_MAX);
	assert_int_equal(stream_write(rig.driver, peer->stream, NULL, 0), 0);
	assert_int_equal(rig_client_receive(&rig, fd, back, STREAM_PARTS_MAX), 0);
	for (int i = 0; i < STREAM_PARTS_MAX; i++)
		assert_int_equal(back[i], "ab"[i % 2]);
	close(fd);
	rig_stop(&rig);
}

static void addresses_are_both_ends(void **state)
{
	struct sockaddr_in name;
	struct rig_peer *peer;
	start(state);
	int fd = open_client(&peer);
	assert_int_equal(getsockname(fd, (struct sockaddr *)&name, &(socklen_t){sizeof(name)}), 0);
	const struct stream *stream = peer->stream;
	assert_int_equal(stream->peer.port, ntohs(name.sin_port));
	assert_memory_equal(stream->peer.ip, rig.address.ip, 16);
	assert_memory_equal(&stream->local, &rig.address, sizeof(rig.address));
	assert_int_equal(stream->listener, 0);
	close(fd);
	rig_stop(&rig);
}

// ---- Back-pressure ----

enum { LARGE = 8 << 20, CHUNK = 16384 };

// Writes LARGE bytes of the pattern as its stream allows.
struct writer {
	uint64_t written;
	size_t queued_max;
	int stops;
	bool is_stopped;
};

static void write_on(struct rig_peer *peer, struct writer *writer)
{
	char chunk[CHUNK];
	while (writer->written < LARGE && !writer->is_stopped) {
		for (int i = 0; i < CHUNK; i++)
			chunk[i] = rig_byte(writer->written + (unsigned)i);
		assert_int_equal(rig_write(&rig, peer, (struct span){chunk, CHUNK}), CHUNK);
		writer->written += CHUNK;
		size_t queued = stream_queued(rig.driver, peer->stream);
		if (queued > writer->queued_max)
			writer->queued_max = queued;
		writer->is_stopped = queued > rig.driver->queue_high;
		writer->stops += writer->is_stopped;
	}
}

static void write_when_writable(
	struct rig *r, struct rig_peer *peer, const struct stream_event *event)
{
	struct writer *writer = r->mind;
	if (event->kind == STREAM_WRITABLE) {
		assert_true(writer->is_stopped);
		assert_int_equal(stream_queued(r->driver, peer->stream), 0);
		writer->is_stopped = false;
	}
	if (event->kind == STREAM_OPENED || event->kind == STREAM_WRITABLE)
		write_on(peer, writer);
}

static void slow_reader_stops_its_writer(void **state)
{
	struct writer writer = {0};
	start(state);
	rig.react = write_when_writable;
	rig.mind = &writer;
	struct rig_peer *peer;
	int fd = open_client(&peer);
	rig_rest(&rig, 20);
	assert_true(writer.is_stopped);
	uint64_t got = 0, sum = 0, wanted = 0;
	static char chunk[CHUNK];
	while (got < LARGE) {
		assert_int_equal(rig_client_receive(&rig, fd, chunk, CHUNK), 0);
		sum = rig_sum(sum, got, chunk, CHUNK);
		for (int i = 0; i < CHUNK; i++)
			chunk[i] = rig_byte(got + (unsigned)i);
		wanted = rig_sum(wanted, got, chunk, CHUNK);
		got += CHUNK;
	}
	assert_int_equal(sum, wanted);
	assert_int_equal(peer->writable, writer.stops);
	assert_true(writer.stops > 1);
	assert_true(writer.queued_max <= rig.driver->queue_high + CHUNK);
	close(fd);
	rig_stop(&rig);
}

// As much of the pattern from `at` as the kernel takes now.
static uint64_t send_pattern(int fd, uint64_t at, uint64_t end)
{
	char chunk[CHUNK];
	while (at < end) {
		size_t len = end - at < CHUNK ? end - at : CHUNK;
		for (size_t i = 0; i < len; i++)
			chunk[i] = rig_byte(at + i);
		ssize_t sent = send(fd, chunk, len, MSG_DONTWAIT | MSG_NOSIGNAL);
		if (sent < 0) {
			assert_int_equal(errno, EAGAIN);
			break;
		}
		at += (uint64_t)sent;
	}
	return at;
}

static uint64_t sum_of_pattern(uint64_t end)
{
	uint64_t sum = 0;
	for (uint64_t at = 0; at < end; at++)
		sum = rig_sum(sum, at, &(char){rig_byte(at)}, 1);
	return sum;
}

static void upload_arrives_whole(void **state)
{
	start(state);
	struct rig_peer *peer;
	int fd = open_client(&peer);
	uint64_t sent = 0;
	for (uint64_t end = rig_clock_ms() + RIG_PATIENCE_MS;
		sent < LARGE && rig_clock_ms() < end;) {
		sent = send_pattern(fd, sent, LARGE);
		rig_turn(&rig, 1000);
	}
	RIG_UNTIL(&rig, peer->bytes == LARGE);
	assert_int_equal(peer->sum, sum_of_pattern(LARGE));
	close(fd);
	rig_stop(&rig);
}

static void paused_stream_fills_the_peers_window(void **state)
{
	start(state);
	struct rig_peer *peer;
	int fd = open_client(&peer);
	uint64_t sent = 0;
	for (int round = 1; round <= 3; round++) {
		stream_pause(rig.driver, peer->stream);
		stream_pause(rig.driver, peer->stream);
		rig_rest(&rig, 10);
		uint64_t before = peer->bytes;
		for (int i = 0; i < 20; i++) {
			sent = send_pattern(fd, sent, UINT64_C(1) << 40);
			rig_turn(&rig, 500);
		}
		assert_true(peer->bytes - before <= 4 * 4096);
		assert_true(sent - peer->bytes > 65536);
		stream_resume(rig.driver, peer->stream);
		stream_resume(rig.driver, peer->stream);
		RIG_UNTIL(&rig, peer->bytes == sent);
	}
	assert_int_equal(peer->sum, sum_of_pattern(sent));
	close(fd);
	rig_stop(&rig);
}

// Pauses at each DATA, so that a stream is never far ahead of its reader.
static void pause_at_data(struct rig *r, struct rig_peer *peer, const struct stream_event *event)
{
	if (event->kind == STREAM_DATA)
		stream_pause(r->driver, peer->stream);
}

static void pausing_in_the_burst_holds_soon(void **state)
{
	start(state);
	struct rig_peer *peer;
	int fd = open_client(&peer);
	rig.react = pause_at_data;
	uint64_t sent = send_pattern(fd, 0, 1 << 20);
	uint64_t steps = 0;
	for (; peer->bytes < sent && steps < sent; steps++) {
		uint64_t before = peer->bytes;
		stream_resume(rig.driver, peer->stream);
		RIG_UNTIL(&rig, peer->bytes > before);
		rig_turn(&rig, 0);
		if (steps > 0) // the first may bring what came in one go
			assert_true(peer->bytes - before <= 2 * 4096);
	}
	assert_int_equal(peer->sum, sum_of_pattern(sent));
	close(fd);
	rig_stop(&rig);
}

static void pause_and_resume_in_one_turn_change_nothing(void **state)
{
	start(state);
	struct rig_peer *peer;
	int fd = open_client(&peer);
	for (int i = 0; i < 50; i++) {
		stream_pause(rig.driver, peer->stream);
		stream_resume(rig.driver, peer->stream);
		rig_client_send(fd, SPAN("0123456789"));
		if (i % 3 == 0)
			rig_turn(&rig, 0);
	}
	RIG_UNTIL(&rig, peer->bytes == 500);
	close(fd);
	RIG_UNTIL(&rig, peer->eof);
	rig_stop(&rig);
}

// ---- Ends ----

static void peer_ends_first(void **state)
{
	char back[4];
	start(state);
	struct rig_peer *peer;
	int fd = open_client(&peer);
	rig_client_send(fd, SPAN("last"));
	shutdown(fd, SHUT_WR);
	RIG_UNTIL(&rig, peer->eof);
	assert_int_equal(peer->bytes, 4);
	assert_int_equal(rig_write(&rig, peer, SPAN("fine")), 4);
	assert_int_equal(rig_client_receive(&rig, fd, back, 4), 0);
	rig_rest(&rig, 10);
	assert_int_equal(peer->closed, 0);
	stream_shut(rig.driver, peer->stream);
	RIG_UNTIL(&rig, peer->closed);
	assert_int_equal(peer->error, 0);
	assert_int_equal(rig_client_end(&rig, fd), 0);
	close(fd);
	RIG_UNTIL(&rig, sockets_stats(rig.driver)->accepted_open == 0);
	rig_stop(&rig);
}

static void we_end_first_and_go_on_reading(void **state)
{
	start(state);
	struct rig_peer *peer;
	int fd = open_client(&peer);
	assert_int_equal(rig_write(&rig, peer, SPAN("bye")), 3);
	stream_shut(rig.driver, peer->stream);
	stream_shut(rig.driver, peer->stream);
	assert_int_equal(rig_client_end(&rig, fd), 0);
	rig_client_send(fd, SPAN("still talking"));
	RIG_UNTIL(&rig, peer->bytes == 13);
	close(fd);
	RIG_UNTIL(&rig, peer->closed);
	assert_int_equal(peer->eof, 1);
	assert_int_equal(peer->error, 0);
	rig_stop(&rig);
}

static void shut_waits_for_the_queue(void **state)
{
	struct writer writer = {0};
	start(state);
	struct rig_peer *peer;
	int fd = open_client(&peer);
	write_on(peer, &writer);
	assert_true(stream_queued(rig.driver, peer->stream) > 0);
	stream_shut(rig.driver, peer->stream);
	static char chunk[CHUNK];
	for (uint64_t got = 0; got < writer.written; got += CHUNK)
		assert_int_equal(rig_client_receive(&rig, fd, chunk, CHUNK), 0);
	assert_int_equal(rig_client_end(&rig, fd), 0);
	assert_int_equal(peer->writable, 0);
	close(fd);
	RIG_UNTIL(&rig, peer->closed);
	rig_stop(&rig);
}

static void reset_by_the_peer_is_told(void **state)
{
	start(state);
	struct rig_peer *peer;
	int fd = open_client(&peer);
	rig_client_reset(fd);
	RIG_UNTIL(&rig, peer->closed);
	assert_int_equal(peer->error, ECONNRESET);
	assert_int_equal(peer->eof, 0);
	assert_int_equal(rig_counter(&rig, SOCKETS_stream_error), 1);
	RIG_UNTIL(&rig, sockets_stats(rig.driver)->accepted_open == 0);
	rig_stop(&rig);
}

static void writing_to_who_is_gone_is_told_later(void **state)
{
	start(state);
	struct rig_peer *peer;
	int fd = open_client(&peer);
	stream_pause(rig.driver, peer->stream);
	rig_turn(&rig, 0);
	rig_client_reset(fd);
	assert_int_equal(rig_write(&rig, peer, SPAN("hello")), 5);
	assert_int_equal(rig_write(&rig, peer, SPAN("hello")), 5);
	assert_int_equal(peer->closed, 0);
	rig_turn(&rig, 0);
	assert_int_equal(peer->closed, 1);
	assert_true(peer->error == ECONNRESET || peer->error == EPIPE);
	rig_stop(&rig);
}

static void closing_who_is_gone_needs_no_event(void **state)
{
	start(state);
	struct rig_peer *peer;
	int fd = open_client(&peer);
	rig_client_reset(fd);
	rig_write(&rig, peer, SPAN("hello"));
	stream_close(rig.driver, peer->stream, false);
	RIG_UNTIL(&rig, sockets_stats(rig.driver)->accepted_open == 0);
	assert_int_equal(peer->closed, 0);
	rig_stop(&rig);
}

static void reset_by_us_reaches_the_peer(void **state)
{
	start(state);
	struct rig_peer *peer;
	int fd = open_client(&peer);
	stream_close(rig.driver, peer->stream, true);
	assert_int_equal(rig_client_end(&rig, fd), ECONNRESET);
	assert_int_equal(peer->closed, 0);
	close(fd);
	rig_stop(&rig);
}

static void close_sees_the_queue_off(void **state)
{
	struct writer writer = {0};
	start(state);
	struct rig_peer *peer;
	int fd = open_client(&peer);
	write_on(peer, &writer);
	assert_true(stream_queued(rig.driver, peer->stream) > 0);
	stream_close(rig.driver, peer->stream, false);
	uint64_t sum = 0;
	static char chunk[CHUNK];
	for (uint64_t got = 0; got < writer.written; got += CHUNK) {
		assert_int_equal(rig_client_receive(&rig, fd, chunk, CHUNK), 0);
		sum = rig_sum(sum, got, chunk, CHUNK);
	}
	assert_int_equal(sum, sum_of_pattern(writer.written));
	assert_int_equal(rig_client_end(&rig, fd), 0);
	close(fd);
	RIG_UNTIL(&rig, sockets_stats(rig.driver)->accepted_open == 0);
	assert_int_equal(rig_counter(&rig, SOCKETS_linger_late), 0);
	assert_int_equal(rig.peers[0].writable, 0);
	rig_stop(&rig);
}

static void close_gives_up_at_the_linger_deadline(void **state)
{
	struct writer writer = {0};
	start(state);
	struct rig_peer *peer;
	int fd = open_client(&peer);
	write_on(peer, &writer);
	uint64_t begun = rig.driver->now_us / 1000;
	stream_close(rig.driver, peer->stream, false);
	RIG_UNTIL(&rig, rig_counter(&rig, SOCKETS_linger_late) == 1);
	assert_true(rig_clock_ms() - begun >= 190);
	RIG_UNTIL(&rig, sockets_stats(rig.driver)->accepted_open == 0);
	assert_int_equal(rig_client_end(&rig, fd), ECONNRESET);
	close(fd);
	rig_stop(&rig);
}

// Closes at the first event, whatever lies ahead in the burst.
static void close_at_once(struct rig *r, struct rig_peer *peer, const struct stream_event *event)
{
	assert_int_equal(event->kind, STREAM_OPENED);
	stream_close(r->driver, peer->stream, false);
	peer->stream = NULL;
}

static void close_takes_back_the_rest_of_the_burst(void **state)
{
	start(state);
	rig.react = close_at_once;
	for (int i = 0; i < 20; i++) {
		int fd = rig_client(&rig);
		rig_client_send(fd, SPAN("one"));
		shutdown(fd, SHUT_WR);
		RIG_UNTIL(&rig, rig.peer_count == i + 1);
		rig_rest(&rig, 2);
		close(fd);
	}
	RIG_UNTIL(&rig, sockets_stats(rig.driver)->accepted_open == 0);
	rig_stop(&rig);
}

// The first of two streams that speaks closes both.
static void close_both(struct rig *r, struct rig_peer *peer, const struct stream_event *event)
{
	(void)peer;
	assert_int_equal(event->kind, STREAM_DATA);
	for (int i = 0; i < 2; i++) {
		stream_close(r->driver, r->peers[i].stream, i == 0);
		r->peers[i].stream = NULL;
	}
}

static void closing_another_stream_takes_back_its_events(void **state)
{
	start(state);
	struct rig_peer *peers[2];
	int fds[2];
	for (int i = 0; i < 2; i++)
		fds[i] = open_client(&peers[i]);
	rig.react = close_both;
	for (int i = 0; i < 2; i++)
		rig_client_send(fds[i], SPAN("hello"));
	RIG_UNTIL(&rig, !peers[0]->stream);
	RIG_UNTIL(&rig, sockets_stats(rig.driver)->accepted_open == 0);
	assert_int_equal(peers[0]->data + peers[1]->data, 1);
	assert_int_equal(rig.taken_back, 1);
	for (int i = 0; i < 2; i++)
		close(fds[i]);
	rig_stop(&rig);
}

// Writes to, shuts and closes the other when one is told of its end, which the other may have met
// too.
static void touch_the_other(struct rig *r, struct rig_peer *peer, const struct stream_event *event)
{
	struct rig_peer *other = peer == &r->peers[0] ? &r->peers[1] : &r->peers[0];
	if (event->kind != STREAM_CLOSED || !other->stream)
		return;
	assert_int_equal(rig_write(r, other, SPAN("hello")), 5);
	stream_pause(r->driver, other->stream);
	stream_resume(r->driver, other->stream);
	stream_shut(r->driver, other->stream);
	stream_close(r->driver, other->stream, false);
	other->stream = NULL;
}

static void a_stream_that_ended_in_this_burst_may_be_touched(void **state)
{
	start(state);
	struct rig_peer *peers[2];
	int fds[2];
	for (int i = 0; i < 2; i++)
		fds[i] = open_client(&peers[i]);
	rig.react = touch_the_other;
	for (int i = 0; i < 2; i++)
		rig_client_reset(fds[i]);
	RIG_UNTIL(&rig, sockets_stats(rig.driver)->accepted_open == 0);
	assert_int_equal(peers[0]->closed + peers[1]->closed, 1);
	assert_int_equal(rig.taken_back, 1);
	rig_stop(&rig);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		RIG_BOTH(echo_over_many_connections),
		RIG_BOTH(small_bursts_lose_nothing),
		RIG_BOTH(small_writes_arrive_in_order),
		RIG_BOTH(parts_are_sent_in_order),
		RIG_BOTH(addresses_are_both_ends),
		RIG_BOTH(slow_reader_stops_its_writer),
		RIG_BOTH(upload_arrives_whole),
		RIG_BOTH(paused_stream_fills_the_peers_window),
		RIG_BOTH(pausing_in_the_burst_holds_soon),
		RIG_BOTH(pause_and_resume_in_one_turn_change_nothing),
		RIG_BOTH(peer_ends_first),
		RIG_BOTH(we_end_first_and_go_on_reading),
		RIG_BOTH(shut_waits_for_the_queue),
		RIG_BOTH(reset_by_the_peer_is_told),
		RIG_BOTH(writing_to_who_is_gone_is_told_later),
		RIG_BOTH(closing_who_is_gone_needs_no_event),
		RIG_BOTH(reset_by_us_reaches_the_peer),
		RIG_BOTH(close_sees_the_queue_off),
		RIG_BOTH(close_gives_up_at_the_linger_deadline),
		RIG_BOTH(close_takes_back_the_rest_of_the_burst),
		RIG_BOTH(closing_another_stream_takes_back_its_events),
		RIG_BOTH(a_stream_that_ended_in_this_burst_may_be_touched),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
