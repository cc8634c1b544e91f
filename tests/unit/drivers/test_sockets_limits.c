// What happens when something runs out or takes too long, on both engines: each has its counter.

#include <errno.h>
#include <stdio.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <unistd.h>

#include "tests/unit/drivers/rig.h"

static struct rig rig; // too large for the stack

static uint32_t open_count(void)
{
	return atomic_load(&sockets_stats(rig.driver)->accepted_open);
}

// ---- The stream table ----

static void beyond_the_table_the_reserve_says_so(void **state)
{
	enum { MAX = 4, ALL = MAX + SOCKETS_RESERVE };
	struct sockets_plan plan = rig_plan(rig_engine(state));
	plan.streams_max = MAX;
	rig_require(plan.engine);
	rig_start(&rig, &plan);
	int fds[ALL + 1];
	for (int i = 0; i < ALL; i++)
		fds[i] = rig_client(&rig);
	RIG_UNTIL(&rig, rig.peer_count == ALL);
	for (int i = 0; i < ALL; i++)
		assert_int_equal(rig.peers[i].was_full, i >= MAX || open_count() > MAX);
	assert_int_equal(rig_counter(&rig, SOCKETS_accept_table_full), 0);
	fds[ALL] = rig_client(&rig);
	assert_int_equal(rig_client_end(&rig, fds[ALL]), ECONNRESET);
	assert_int_equal(rig_counter(&rig, SOCKETS_accept_table_full), 1);
	assert_int_equal(open_count(), ALL);
	// One that leaves makes room for another, and those inside are served all the while.
	close(fds[0]);
	RIG_UNTIL(&rig, rig.peers[0].eof);
	stream_close(rig.driver, rig.peers[0].stream, false);
	RIG_UNTIL(&rig, open_count() == ALL - 1);
	fds[0] = rig_client(&rig);
	RIG_UNTIL(&rig, rig.peer_count == ALL + 1);
	rig_client_send(fds[1], SPAN("still here"));
	RIG_UNTIL(&rig, rig.peers[1].bytes == 10);
	for (int i = 0; i <= ALL; i++)
		close(fds[i]);
	rig_stop(&rig);
}

// Told one by one, the first MAX are not full and the rest are.
static void is_full_begins_above_streams_max(void **state)
{
	enum { MAX = 4 };
	struct sockets_plan plan = rig_plan(rig_engine(state));
	plan.streams_max = MAX;
	rig_require(plan.engine);
	rig_start(&rig, &plan);
	int fds[MAX + 2];
	for (int i = 0; i < MAX + 2; i++) {
		fds[i] = rig_client(&rig);
		RIG_UNTIL(&rig, rig.peer_count == i + 1);
		assert_int_equal(rig.peers[i].was_full, i >= MAX);
	}
	for (int i = 0; i < MAX + 2; i++)
		close(fds[i]);
	rig_stop(&rig);
}

static void connects_have_places_of_their_own(void **state)
{
	struct sockets_plan plan = rig_plan(rig_engine(state));
	plan.streams_max = 1;
	plan.connects_max = 2;
	rig_require(plan.engine);
	rig_start(&rig, &plan);
	struct rig_peer *ours = &rig.peers[RIG_PEERS_MAX - 2];
	for (int i = 0; i < 2; i++) {
		ours[i].stream = stream_connect(rig.driver, &rig.address, &ours[i]);
		assert_non_null(ours[i].stream);
	}
	assert_null(stream_connect(rig.driver, &rig.address, NULL));
	assert_int_equal(rig_counter(&rig, SOCKETS_connect_table_full), 1);
	stream_close(rig.driver, ours[0].stream, true);
	RIG_UNTIL(&rig, sockets_stats(rig.driver)->connected_open == 1);
	ours[0].stream = stream_connect(rig.driver, &rig.address, &ours[0]);
	RIG_UNTIL(&rig, ours[0].opened && ours[1].opened);
	rig_stop(&rig);
}

// ---- Descriptors ----

struct squeeze {
	enum sockets_engine engine;
};

static double cpu_seconds(void)
{
	struct rusage usage;
	getrusage(RUSAGE_SELF, &usage);
	return (double)(usage.ru_utime.tv_sec + usage.ru_stime.tv_sec) +
	       (double)(usage.ru_utime.tv_usec + usage.ru_stime.tv_usec) / 1e6;
}

static int descriptors_in_use(void)
{
	int fd = dup(0), count = fd;
	close(fd);
	return count;
}

static bool out_of_descriptors(void *mind)
{
	struct sockets_plan plan = rig_plan(((struct squeeze *)mind)->engine);
	rig_start(&rig, &plan);
	int fds[3];
	for (int i = 0; i < 3; i++)
		fds[i] = rig_client(&rig);
	struct rlimit limit = {.rlim_cur = (rlim_t)descriptors_in_use() + 1, .rlim_max = 1024};
	setrlimit(RLIMIT_NOFILE, &limit);
	double begun = cpu_seconds();
	rig_rest(&rig, 300);
	if (rig.peer_count != 1 || cpu_seconds() - begun > 0.1)
		return false;
	uint64_t tries = rig_counter(&rig, SOCKETS_accept_no_descriptor);
	if (tries < 2 || tries > 10)
		return false;
	if (stream_connect(rig.driver, &rig.address, NULL) ||
		rig_counter(&rig, SOCKETS_connect_no_descriptor) != 1)
		return false;
	// They waited in the backlog and get in when there is room again.
	limit.rlim_cur = 1024;
	setrlimit(RLIMIT_NOFILE, &limit);
	rig_rest(&rig, 150);
	if (rig.peer_count != 3)
		return false;
	for (int i = 0; i < 3; i++)
		close(fds[i]);
	rig_stop(&rig);
	return true;
}

static void out_of_descriptors_waits_and_counts(void **state)
{
	rig_require(rig_engine(state));
	struct squeeze squeeze = {rig_engine(state)};
	assert_int_equal(rig_in_child(out_of_descriptors, &squeeze), 0);
}

// ---- Buffers ----

static void few_receive_buffers_serve_all_in_the_end(void **state)
{
	enum { CLIENTS = 64, ROUNDS = 3, BYTES = 5000 };
	struct sockets_plan plan = rig_plan(rig_engine(state));
	plan.receive_count = 2;
	plan.receive_bytes = 2048;
	rig_require(plan.engine);
	rig_start(&rig, &plan);
	static char bytes[BYTES];
	int fds[CLIENTS];
	for (int i = 0; i < CLIENTS; i++)
		fds[i] = rig_client(&rig);
	RIG_UNTIL(&rig, rig.peer_count == CLIENTS);
	for (int round = 1; round <= ROUNDS; round++) {
		for (int i = 0; i < CLIENTS; i++)
			rig_client_send(fds[i], (struct span){bytes, BYTES});
		for (int i = 0; i < CLIENTS; i++)
			RIG_UNTIL(&rig, rig.peers[i].bytes == (uint64_t)round * BYTES);
	}
	assert_true(rig_counter(&rig, SOCKETS_receive_no_buffer) > 0);
	for (int i = 0; i < CLIENTS; i++)
		close(fds[i]);
	for (int i = 0; i < CLIENTS; i++)
		RIG_UNTIL(&rig, rig.peers[i].eof);
	rig_stop(&rig);
}

static void starved_streams_may_be_paused_and_closed(void **state)
{
	enum { CLIENTS = 40 };
	struct sockets_plan plan = rig_plan(rig_engine(state));
	plan.receive_count = 1;
	rig_require(plan.engine);
	rig_start(&rig, &plan);
	int fds[CLIENTS];
	for (int i = 0; i < CLIENTS; i++)
		fds[i] = rig_client(&rig);
	RIG_UNTIL(&rig, rig.peer_count == CLIENTS);
	for (int i = 0; i < CLIENTS; i++)
		rig_client_send(fds[i], SPAN("hello"));
	rig_turn(&rig, 1000);
	rig_turn(&rig, 0);
	int later[CLIENTS / 4]; // they take the places of those that are closed now
	for (int i = 0; i < CLIENTS / 4; i++)
		later[i] = rig_client(&rig);
	for (int i = 0; i < CLIENTS; i++) {
		struct stream *stream = rig.peers[i].stream;
		if (i % 4 == 0) {
			stream_close(rig.driver, stream, i % 8 == 0);
			rig.peers[i].stream = NULL;
		} else if (i % 4 <= 2) {
			stream_pause(rig.driver, stream);
		}
		if (i % 4 == 2)
			stream_resume(rig.driver, stream);
	}
	for (int i = 0; i < CLIENTS; i++)
		if (i % 4 >= 2)
			RIG_UNTIL(&rig, rig.peers[i].bytes == 5);
	for (int i = 1; i < CLIENTS; i += 4) {
		stream_resume(rig.driver, rig.peers[i].stream);
		RIG_UNTIL(&rig, rig.peers[i].bytes == 5);
	}
	for (int i = 0; i < CLIENTS / 4; i++) {
		rig_client_send(later[i], SPAN("hello"));
		RIG_UNTIL(&rig, rig.peers[CLIENTS + i].bytes == 5);
		close(later[i]);
	}
	for (int i = 0; i < CLIENTS; i++)
		close(fds[i]);
	rig_stop(&rig);
}

static void an_empty_send_pool_cuts_the_write(void **state)
{
	enum { POOL = 4 * 4096 };
	struct sockets_plan plan = rig_plan(rig_engine(state));
	plan.send_count = 4;
	plan.send_bytes = 4096;
	rig_require(plan.engine);
	rig_start(&rig, &plan);
	static char bytes[1 << 20]; // more than the kernel buffers
	rig_shrink(&rig, 65536);
	int fds[2];
	for (int i = 0; i < 2; i++)
		fds[i] = rig_client(&rig);
	RIG_UNTIL(&rig, rig.peer_count == 2);
	size_t taken = rig_write(&rig, &rig.peers[0], (struct span){bytes, sizeof(bytes)});
	assert_true(taken < sizeof(bytes));
	assert_int_equal(stream_queued(rig.driver, rig.peers[0].stream), POOL);
	assert_int_equal(rig_counter(&rig, SOCKETS_send_no_buffer), 1);
	// Who reads is not hurt by who does not.
	char back[5];
	assert_int_equal(rig_write(&rig, &rig.peers[1], SPAN("hello")), 5);
	assert_int_equal(rig_client_receive(&rig, fds[1], back, 5), 0);
	stream_close(rig.driver, rig.peers[0].stream, true);
	assert_int_equal(rig_client_end(&rig, fds[0]), ECONNRESET);
	for (int i = 0; i < 2; i++)
		close(fds[i]);
	rig_stop(&rig);
}

// More completions at once than the ring of a small plan holds: 40 streams, each with more than 16
// buffers waiting, against 512. The kernel keeps the rest, and receives that it broke off go on.
static void an_overflowing_ring_loses_nothing(void **state)
{
	enum { CLIENTS = 40, BYTES = 64 * 1024 };
	struct sockets_plan plan = rig_plan(SOCKETS_URING);
	(void)state;
	plan.streams_max = CLIENTS;
	plan.receive_count = 2048;
	plan.receive_bytes = 2048;
	rig_require(plan.engine);
	rig_start(&rig, &plan);
	static char bytes[BYTES];
	uint64_t sum = 0;
	for (unsigned i = 0; i < BYTES; i++)
		bytes[i] = rig_byte(i);
	sum = rig_sum(0, 0, bytes, BYTES);
	int fds[CLIENTS];
	for (int i = 0; i < CLIENTS; i++)
		fds[i] = rig_client(&rig);
	RIG_UNTIL(&rig, rig.peer_count == CLIENTS);
	for (int i = 0; i < CLIENTS; i++)
		rig_client_send(fds[i], (struct span){bytes, BYTES});
	for (int i = 0; i < CLIENTS; i++) {
		RIG_UNTIL(&rig, rig.peers[i].bytes == BYTES);
		assert_int_equal(rig.peers[i].sum, sum);
		close(fds[i]);
	}
	assert_true(rig_counter(&rig, SOCKETS_ring_overflow) > 0);
	rig_stop(&rig);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		RIG_BOTH(beyond_the_table_the_reserve_says_so),
		RIG_BOTH(is_full_begins_above_streams_max),
		RIG_BOTH(connects_have_places_of_their_own),
		RIG_BOTH(out_of_descriptors_waits_and_counts),
		RIG_BOTH(few_receive_buffers_serve_all_in_the_end),
		RIG_BOTH(starved_streams_may_be_paused_and_closed),
		RIG_BOTH(an_empty_send_pool_cuts_the_write),
		cmocka_unit_test(an_overflowing_ring_loses_nothing),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
