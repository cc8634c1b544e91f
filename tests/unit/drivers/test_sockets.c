// The stream contract, told as stories, on both engines: bytes and back-pressure.

#include <netinet/tcp.h>
#include <stdio.h>
#include <sys/socket.h>
#include <unistd.h>

#include "drivers/sockets/socket.h"
#include "tests/unit/drivers/rig.h"

static struct rig rig; // too large for the stack

// ---- Bytes ----

static void echo_over_many_connections(void **state)
{
	enum { CLIENTS = 100, ROUNDS = 5 };
	int fds[CLIENTS];
	char text[32], back[32];
	rig_begin(&rig, state);
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
	rig_begin(&rig, state);
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
	rig_begin(&rig, state);
	int fd = rig_client_open(&rig, &peer);
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
	rig_begin(&rig, state);
	int fd = rig_client_open(&rig, &peer);
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
	rig_begin(&rig, state);
	int fd = rig_client_open(&rig, &peer);
	assert_int_equal(getsockname(fd, (struct sockaddr *)&name, &(socklen_t){sizeof(name)}), 0);
	const struct stream *stream = peer->stream;
	assert_int_equal(stream->peer.port, ntohs(name.sin_port));
	assert_memory_equal(stream->peer.ip, rig.address.ip, 16);
	assert_memory_equal(&stream->local, &rig.address, sizeof(rig.address));
	assert_int_equal(stream->listener, 0);
	int no_delay = 0;
	getsockopt(((const struct socket *)stream)->fd, IPPROTO_TCP, TCP_NODELAY, &no_delay,
		&(socklen_t){sizeof(no_delay)});
	assert_int_equal(no_delay, 1); // inherited from the listener
	close(fd);
	rig_stop(&rig);
}

// ---- Back-pressure ----

#define LARGE ((uint64_t)4 << 20)
#define KERNEL_BYTES 65536

// Writes LARGE bytes of the pattern as its stream allows.
static void write_when_writable(
	struct rig *r, struct rig_peer *peer, const struct stream_event *event)
{
	uint64_t *written = r->mind;
	if (event->kind == STREAM_WRITABLE)
		assert_int_equal(stream_queued(r->driver, peer->stream), 0);
	if (event->kind == STREAM_OPENED || event->kind == STREAM_WRITABLE)
		*written = rig_fill(r, peer, *written, LARGE);
	size_t queued = stream_queued(r->driver, peer->stream);
	assert_true(queued <= r->driver->queue_high + RIG_CHUNK);
	assert_true(queued > r->driver->queue_high || *written == LARGE);
}

static void slow_reader_stops_its_writer(void **state)
{
	uint64_t written = 0, sum = 0;
	rig_begin(&rig, state);
	rig_shrink(&rig, KERNEL_BYTES);
	rig.react = write_when_writable;
	rig.mind = &written;
	struct rig_peer *peer;
	int fd = rig_client_open(&rig, &peer);
	rig_rest(&rig, 20);
	assert_true(written < LARGE);
	static char chunk[RIG_CHUNK];
	for (uint64_t got = 0; got < LARGE; got += RIG_CHUNK) {
		assert_int_equal(rig_client_receive(&rig, fd, chunk, RIG_CHUNK), 0);
		sum = rig_sum(sum, got, chunk, RIG_CHUNK);
	}
	assert_int_equal(sum, rig_pattern_sum(LARGE));
	assert_true(peer->writable > 1);
	close(fd);
	rig_stop(&rig);
}

// A queue that was never above queue_high empties in silence, also when an earlier one was.
static void writable_comes_only_after_queue_high(void **state)
{
	static char chunk[RIG_CHUNK];
	rig_begin(&rig, state);
	struct rig_peer *peer;
	int fd = rig_client_open(&rig, &peer);
	uint64_t filled = rig_fill(&rig, peer, 0, UINT64_MAX), written = filled, got = 0;
	for (int round = 0; round < 2; round++) {
		for (; got + RIG_CHUNK <= written; got += RIG_CHUNK)
			assert_int_equal(rig_client_receive(&rig, fd, chunk, RIG_CHUNK), 0);
		RIG_UNTIL(&rig, stream_queued(rig.driver, peer->stream) == 0);
		assert_int_equal(peer->writable, 1);
		for (; round == 0 && stream_queued(rig.driver, peer->stream) == 0;
			written += RIG_CHUNK)
			rig_write(&rig, peer, (struct span){chunk, RIG_CHUNK});
	}
	assert_true(written > filled);
	close(fd);
	rig_stop(&rig);
}

static void upload_arrives_whole(void **state)
{
	rig_begin(&rig, state);
	struct rig_peer *peer;
	int fd = rig_client_open(&rig, &peer);
	uint64_t sent = 0;
	for (uint64_t end = rig_clock_ms() + RIG_PATIENCE_MS;
		sent < LARGE && rig_clock_ms() < end;) {
		sent = rig_client_fill(fd, sent, LARGE);
		rig_turn(&rig, 1000);
	}
	RIG_UNTIL(&rig, peer->bytes == LARGE);
	assert_int_equal(peer->sum, rig_pattern_sum(LARGE));
	close(fd);
	rig_stop(&rig);
}

static void paused_stream_fills_the_peers_window(void **state)
{
	rig_begin(&rig, state);
	struct rig_peer *peer;
	int fd = rig_client_open(&rig, &peer);
	uint64_t sent = 0;
	for (int round = 1; round <= 3; round++) {
		stream_pause(rig.driver, peer->stream);
		stream_pause(rig.driver, peer->stream);
		rig_rest(&rig, 10);
		uint64_t before = peer->bytes;
		for (int i = 0; i < 20; i++) {
			sent = rig_client_fill(fd, sent, UINT64_C(1) << 40);
			rig_turn(&rig, 500);
		}
		assert_true(peer->bytes - before <= 4 * 4096);
		assert_true(sent - peer->bytes > 65536);
		stream_resume(rig.driver, peer->stream);
		stream_resume(rig.driver, peer->stream);
		RIG_UNTIL(&rig, peer->bytes == sent);
	}
	assert_int_equal(peer->sum, rig_pattern_sum(sent));
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
	rig_begin(&rig, state);
	struct rig_peer *peer;
	int fd = rig_client_open(&rig, &peer);
	rig.react = pause_at_data;
	uint64_t sent = rig_client_fill(fd, 0, 1 << 20);
	uint64_t steps = 0;
	for (; peer->bytes < sent && steps < sent; steps++) {
		uint64_t before = peer->bytes;
		stream_resume(rig.driver, peer->stream);
		RIG_UNTIL(&rig, peer->bytes > before);
		rig_turn(&rig, 0);
		if (steps > 0) // the first may bring what came in one go
			assert_true(peer->bytes - before <= 2 * 4096);
	}
	assert_int_equal(peer->sum, rig_pattern_sum(sent));
	close(fd);
	rig_stop(&rig);
}

static void pause_and_resume_in_one_turn_change_nothing(void **state)
{
	rig_begin(&rig, state);
	struct rig_peer *peer;
	int fd = rig_client_open(&rig, &peer);
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

int main(void)
{
	const struct CMUnitTest tests[] = {
		RIG_BOTH(echo_over_many_connections),
		RIG_BOTH(small_bursts_lose_nothing),
		RIG_BOTH(small_writes_arrive_in_order),
		RIG_BOTH(parts_are_sent_in_order),
		RIG_BOTH(addresses_are_both_ends),
		RIG_BOTH(slow_reader_stops_its_writer),
		RIG_BOTH(writable_comes_only_after_queue_high),
		RIG_BOTH(upload_arrives_whole),
		RIG_BOTH(paused_stream_fills_the_peers_window),
		RIG_BOTH(pausing_in_the_burst_holds_soon),
		RIG_BOTH(pause_and_resume_in_one_turn_change_nothing),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
