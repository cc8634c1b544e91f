// The stream contract, told as stories, on both engines: how streams end, from either side, and
// that nothing comes after.

#include <errno.h>
#include <sys/socket.h>
#include <unistd.h>

#include "tests/unit/drivers/rig.h"

static struct rig rig; // too large for the stack

static void peer_ends_first(void **state)
{
	char back[4];
	rig_begin(&rig, state);
	struct rig_peer *peer;
	int fd = rig_client_open(&rig, &peer);
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
	rig_begin(&rig, state);
	struct rig_peer *peer;
	int fd = rig_client_open(&rig, &peer);
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
	rig_begin(&rig, state);
	struct rig_peer *peer;
	int fd = rig_client_open(&rig, &peer);
	uint64_t written = rig_fill(&rig, peer, 0, UINT64_MAX);
	assert_true(stream_queued(rig.driver, peer->stream) > 0);
	stream_shut(rig.driver, peer->stream);
	static char chunk[RIG_CHUNK];
	for (uint64_t got = 0; got < written; got += RIG_CHUNK)
		assert_int_equal(rig_client_receive(&rig, fd, chunk, RIG_CHUNK), 0);
	assert_int_equal(rig_client_end(&rig, fd), 0);
	assert_int_equal(peer->writable, 0);
	close(fd);
	RIG_UNTIL(&rig, peer->closed);
	rig_stop(&rig);
}

static void reset_by_the_peer_is_told(void **state)
{
	rig_begin(&rig, state);
	struct rig_peer *peer;
	int fd = rig_client_open(&rig, &peer);
	rig_client_reset(fd);
	RIG_UNTIL(&rig, peer->closed);
	assert_int_equal(peer->error, ECONNRESET);
	assert_int_equal(peer->eof, 0);
	assert_int_equal(rig_counter(&rig, SOCKETS_stream_error), 1);
	RIG_UNTIL(&rig, sockets_stats(rig.driver)->accepted_open == 0);
	rig_stop(&rig);
}

static void reset_before_it_was_accepted_is_counted(void **state)
{
	rig_begin(&rig, state);
	rig_client_reset(rig_client(&rig));
	RIG_UNTIL(&rig, rig_counter(&rig, SOCKETS_accept_failed) == 1);
	assert_int_equal(rig_counter(&rig, SOCKETS_accepted), 0);
	assert_int_equal(rig.peer_count, 0);
	struct rig_peer *next;
	close(rig_client_open(&rig, &next));
	rig_stop(&rig);
}

static void writing_to_who_is_gone_is_told_later(void **state)
{
	rig_begin(&rig, state);
	struct rig_peer *peer;
	int fd = rig_client_open(&rig, &peer);
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
	rig_begin(&rig, state);
	struct rig_peer *peer;
	int fd = rig_client_open(&rig, &peer);
	rig_client_reset(fd);
	rig_write(&rig, peer, SPAN("hello"));
	stream_close(rig.driver, peer->stream, false);
	RIG_UNTIL(&rig, sockets_stats(rig.driver)->accepted_open == 0);
	assert_int_equal(peer->closed, 0);
	rig_stop(&rig);
}

static void reset_by_us_reaches_the_peer(void **state)
{
	rig_begin(&rig, state);
	struct rig_peer *peer;
	int fd = rig_client_open(&rig, &peer);
	stream_close(rig.driver, peer->stream, true);
	assert_int_equal(rig_client_end(&rig, fd), ECONNRESET);
	assert_int_equal(peer->closed, 0);
	close(fd);
	rig_stop(&rig);
}

static void close_sees_the_queue_off(void **state)
{
	rig_begin(&rig, state);
	struct rig_peer *peer;
	int fd = rig_client_open(&rig, &peer);
	uint64_t written = rig_fill(&rig, peer, 0, UINT64_MAX);
	assert_true(stream_queued(rig.driver, peer->stream) > 0);
	stream_close(rig.driver, peer->stream, false);
	uint64_t sum = 0;
	static char chunk[RIG_CHUNK];
	for (uint64_t got = 0; got < written; got += RIG_CHUNK) {
		assert_int_equal(rig_client_receive(&rig, fd, chunk, RIG_CHUNK), 0);
		sum = rig_sum(sum, got, chunk, RIG_CHUNK);
	}
	assert_int_equal(sum, rig_pattern_sum(written));
	assert_int_equal(rig_client_end(&rig, fd), 0);
	close(fd);
	RIG_UNTIL(&rig, sockets_stats(rig.driver)->accepted_open == 0);
	assert_int_equal(rig_counter(&rig, SOCKETS_linger_late), 0);
	assert_int_equal(rig.peers[0].writable, 0);
	rig_stop(&rig);
}

static void close_gives_up_at_the_linger_deadline(void **state)
{
	rig_begin(&rig, state);
	struct rig_peer *peer;
	int fd = rig_client_open(&rig, &peer);
	rig_fill(&rig, peer, 0, UINT64_MAX);
	uint64_t begun = rig.driver->now_us / 1000;
	stream_close(rig.driver, peer->stream, false);
	RIG_UNTIL(&rig, rig_counter(&rig, SOCKETS_linger_late) == 1);
	assert_true(rig_clock_ms() - begun >= 190);
	RIG_UNTIL(&rig, sockets_stats(rig.driver)->accepted_open == 0);
	assert_int_equal(rig_client_end(&rig, fd), ECONNRESET);
	close(fd);
	rig_stop(&rig);
}

// A closed stream is read no more: the peer's window fills, it does not feed a hole.
static void close_stops_reading(void **state)
{
	struct sockets_plan plan = rig_plan(rig_engine(state));
	plan.linger_ms = 10 * RIG_PATIENCE_MS;
	rig_require(plan.engine);
	rig_start(&rig, &plan);
	struct rig_peer *peer;
	int fd = rig_client_open(&rig, &peer);
	rig_fill(&rig, peer, 0, UINT64_MAX);
	stream_close(rig.driver, peer->stream, false);
	rig_rest(&rig, 5);
	uint64_t sent = 0;
	for (int i = 0; i < 20; i++) {
		sent = rig_client_fill(fd, sent, 8 << 20);
		rig_turn(&rig, 500);
	}
	assert_true(sent > 65536);
	assert_true(rig_counter(&rig, SOCKETS_bytes_in) <= 4 * 4096);
	close(fd);
	RIG_UNTIL(&rig, sockets_stats(rig.driver)->accepted_open == 0);
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
	rig_begin(&rig, state);
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
	rig_begin(&rig, state);
	struct rig_peer *peers[2];
	int fds[2];
	for (int i = 0; i < 2; i++)
		fds[i] = rig_client_open(&rig, &peers[i]);
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
	rig_begin(&rig, state);
	struct rig_peer *peers[2];
	int fds[2];
	for (int i = 0; i < 2; i++)
		fds[i] = rig_client_open(&rig, &peers[i]);
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
		RIG_BOTH(peer_ends_first),
		RIG_BOTH(we_end_first_and_go_on_reading),
		RIG_BOTH(shut_waits_for_the_queue),
		RIG_BOTH(reset_by_the_peer_is_told),
		RIG_BOTH(reset_before_it_was_accepted_is_counted),
		RIG_BOTH(writing_to_who_is_gone_is_told_later),
		RIG_BOTH(closing_who_is_gone_needs_no_event),
		RIG_BOTH(reset_by_us_reaches_the_peer),
		RIG_BOTH(close_sees_the_queue_off),
		RIG_BOTH(close_gives_up_at_the_linger_deadline),
		RIG_BOTH(close_stops_reading),
		RIG_BOTH(close_takes_back_the_rest_of_the_burst),
		RIG_BOTH(closing_another_stream_takes_back_its_events),
		RIG_BOTH(a_stream_that_ended_in_this_burst_may_be_touched),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
