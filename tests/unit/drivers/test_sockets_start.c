// Starting, connecting, waiting and stopping: listeners, the choice of the engine, connected
// streams, wakes, and what doing nothing costs.

#include <errno.h>
#include <linux/filter.h>
#include <linux/seccomp.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/prctl.h>
#include <sys/socket.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "drivers/ip.h"
#include "drivers/sockets/address.h"
#include "tests/unit/drivers/rig.h"

static struct rig rig; // too large for the stack

static const struct stream_address loopback6 = {.ip = {[15] = 1}};

// ---- Plans ----

static void plans_outside_their_limits_are_refused(void **state)
{
	(void)state;
	const struct sockets_plan good = rig_plan(SOCKETS_EPOLL);
	struct stream_driver *driver;
	struct sockets_plan plan;
#define REFUSED(change) \
	plan = good; \
	plan.change; \
	assert_int_equal(sockets_create(&plan, &driver), -EINVAL)
	REFUSED(streams_max = SOCKETS_STREAMS_MAX);
	REFUSED(receive_count = 0);
	REFUSED(receive_count = 48);
	REFUSED(receive_count = 2 * SOCKETS_BUFFERS_MAX);
	REFUSED(receive_bytes = SOCKETS_BUFFER_BYTES_MIN - 1);
	REFUSED(receive_bytes = SOCKETS_BUFFER_BYTES_MAX + 1);
	REFUSED(send_bytes = SOCKETS_BUFFER_BYTES_MIN - 1);
	REFUSED(send_count = 0);
	REFUSED(send_count = UINT32_MAX / 4096 + 1);
	REFUSED(listener_count = SOCKETS_LISTENERS_MAX + 1);
#undef REFUSED
	plan = good;
	plan.listener_count = 0;
	plan.streams_max = 0;
	assert_int_equal(sockets_create(&plan, &driver), 0); // for the origin side alone
	stream_destroy(driver);
	assert_true(sockets_bytes(&good) > 1024 * 4096);
	assert_int_equal(sockets_descriptors(&good), 256 + SOCKETS_RESERVE + 64 + 1 + 2);
}

static void counters_have_names_and_texts(void **state)
{
	(void)state;
	assert_string_equal(sockets_counter_name(SOCKETS_accepted), "accepted");
	assert_string_equal(sockets_counter_text(SOCKETS_accepted), "connections accepted");
	for (int i = 0; i < SOCKETS_COUNTERS_COUNT; i++)
		assert_true(sockets_counter_text((enum sockets_counter)i)[0] != '\0');
}

// ---- Listeners ----

static void close_all(int *fds, int count)
{
	for (int i = 0; i < count; i++)
		close(fds[i]);
}

static bool second_process(void *mind)
{
	int fd;
	return sockets_listen(mind, 1, &fd) == -EADDRINUSE;
}

static void a_second_process_on_the_address_is_noticed(void **state)
{
	(void)state;
	int fds[4];
	struct stream_address address = loopback6, any = {0};
	assert_int_equal(sockets_listen(&address, 4, fds), 0);
	assert_int_equal(sockets_address(fds[0], &address), 0);
	assert_int_not_equal(address.port, 0);
	for (int i = 1; i < 4; i++) {
		struct stream_address other;
		assert_int_equal(sockets_address(fds[i], &other), 0);
		assert_memory_equal(&other, &address, sizeof(address));
	}
	assert_int_equal(rig_in_child(second_process, &address), 0);
	any.port = address.port; // all addresses include this one
	assert_int_equal(rig_in_child(second_process, &any), 0);
	close_all(fds, 4);
	assert_int_equal(sockets_listen(&address, 1, fds), 0);
	close_all(fds, 1);
}

// IPv4 on the same port is another address: listeners of :: are for IPv6 alone.
static void ipv6_leaves_ipv4_alone(void **state)
{
	(void)state;
	int ret = -EADDRINUSE;
	for (int i = 0; i < 20 && ret == -EADDRINUSE; i++) { // somebody may have that port in IPv4
		int six, four;
		struct stream_address any6 = {0}, any4 = {0};
		assert_int_equal(sockets_listen(&any6, 1, &six), 0);
		assert_int_equal(sockets_address(six, &any6), 0);
		ip_map(any4.ip, (uint8_t[4]){0});
		any4.port = any6.port;
		ret = sockets_listen(&any4, 1, &four);
		if (ret == 0)
			close(four);
		close(six);
	}
	assert_int_equal(ret, 0);
}

// A past process whose connections are still closing is no second process.
static void a_restart_finds_its_port_free(void **state)
{
	rig_begin(&rig, state);
	struct stream_address address = rig.address;
	int client = rig_client(&rig), fd;
	RIG_UNTIL(&rig, rig.peer_count == 1);
	stream_close(rig.driver, rig.peers[0].stream, false); // TIME_WAIT is on our side
	assert_int_equal(rig_client_end(&rig, client), 0);
	close(client);
	rig_stop(&rig);
	int ret = -EADDRINUSE;
	for (int i = 0; i < 100 && ret == -EADDRINUSE; i++) { // the ring is taken down meanwhile
		ret = sockets_listen(&address, 1, &fd);
		if (ret < 0)
			usleep(10000);
	}
	assert_int_equal(ret, 0);
	close(fd);
}

static void what_cannot_be_bound_is_an_error(void **state)
{
	(void)state;
	int fds[2];
	struct stream_address elsewhere = {0};
	ip_map(elsewhere.ip, (uint8_t[]){192, 0, 2, 1});
	assert_int_equal(sockets_listen(&elsewhere, 2, fds), -EADDRNOTAVAIL);
}

// Streams of two workers on one address: each connection goes to one of them.
static void workers_share_an_address(void **state)
{
	enum { CLIENTS = 64 };
	struct sockets_plan plan = rig_plan(rig_engine(state));
	struct stream_driver *drivers[2];
	static struct rig rigs[2];
	int fds[2], clients[CLIENTS];
	rig_require(plan.engine);
	assert_int_equal(sockets_listen(&plan.listeners[0].address, 2, fds), 0);
	assert_int_equal(sockets_address(fds[0], &plan.listeners[0].address), 0);
	for (int i = 0; i < 2; i++) {
		plan.listeners[0].fd = fds[i];
		assert_int_equal(sockets_create(&plan, &drivers[i]), 0);
		rigs[i] = (struct rig){.driver = drivers[i],
			.address = plan.listeners[0].address,
			.events_max = RIG_EVENTS_MAX};
	}
	for (int i = 0; i < CLIENTS; i++)
		clients[i] = rig_client(&rigs[0]);
	for (int i = 0; i < 100 && rigs[0].peer_count + rigs[1].peer_count < CLIENTS; i++)
		for (int j = 0; j < 2; j++)
			rig_turn(&rigs[j], 1000);
	assert_int_equal(rigs[0].peer_count + rigs[1].peer_count, CLIENTS);
	assert_true(rigs[0].peer_count > 0);
	assert_true(rigs[1].peer_count > 0);
	close_all(clients, CLIENTS);
	for (int i = 0; i < 2; i++)
		stream_destroy(drivers[i]);
}

static void two_listeners_know_their_streams(void **state)
{
	struct sockets_plan plan = rig_plan(rig_engine(state));
	plan.listener_count = 2;
	plan.listeners[1] = (struct sockets_listener){0}; // :: on another port
	rig_require(plan.engine);
	rig_start(&rig, &plan);
	int fds[2];
	fds[0] = rig_client(&rig);
	RIG_UNTIL(&rig, rig.peer_count == 1);
	rig.address = loopback6;
	rig.address.port = plan.listeners[1].address.port;
	fds[1] = rig_client(&rig);
	RIG_UNTIL(&rig, rig.peer_count == 2);
	assert_int_equal(rig.peers[0].stream->listener, 0);
	assert_int_equal(rig.peers[1].stream->listener, 1);
	assert_memory_equal(&rig.peers[1].stream->local, &rig.address, sizeof(rig.address));
	assert_memory_equal(rig.peers[1].stream->peer.ip, loopback6.ip, 16);
	close_all(fds, 2);
	rig_stop(&rig);
}

static void draining_refuses_newcomers_and_serves_the_rest(void **state)
{
	rig_begin(&rig, state);
	rig.react = rig_echo;
	int fd = rig_client(&rig);
	RIG_UNTIL(&rig, rig.peer_count == 1);
	stream_stop_accepting(rig.driver);
	stream_stop_accepting(rig.driver);
	rig_rest(&rig, 10);
	struct sockaddr_storage name;
	socklen_t bytes = address_to_kernel(&rig.address, &name);
	int late = socket(AF_INET, SOCK_STREAM, 0);
	assert_int_equal(connect(late, (struct sockaddr *)&name, bytes), -1);
	assert_int_equal(errno, ECONNREFUSED);
	char back[5];
	rig_client_send(fd, SPAN("hello"));
	assert_int_equal(rig_client_receive(&rig, fd, back, 5), 0);
	close(late);
	close(fd);
	rig_stop(&rig);
}

// ---- The engine ----

// Have the kernel answer a system call in its own way from now on.
static bool filter(int call, uint32_t answer)
{
	struct sock_filter code[] = {
		BPF_STMT(BPF_LD | BPF_W | BPF_ABS, offsetof(struct seccomp_data, nr)),
		BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, (uint32_t)call, 0, 1),
		BPF_STMT(BPF_RET | BPF_K, answer),
		BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ALLOW),
	};
	struct sock_fprog program = {.len = sizeof(code) / sizeof(*code), .filter = code};
	return prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0) == 0 &&
	       prctl(PR_SET_SECCOMP, SECCOMP_MODE_FILTER, &program) == 0;
}

// A filter that refuses io_uring_setup(2), as containers do.
static bool refused_io_uring(void *mind)
{
	(void)mind;
	struct sockets_plan plan = rig_plan(SOCKETS_AUTO);
	if (!filter(__NR_io_uring_setup, SECCOMP_RET_ERRNO | EPERM))
		return false;
	rig_start(&rig, &plan);
	int refused;
	if (sockets_engine(rig.driver, &refused) != SOCKETS_EPOLL || refused != EPERM)
		return false;
	rig.react = rig_echo;
	char back[5];
	int fd = rig_client(&rig);
	rig_client_send(fd, SPAN("hello"));
	if (rig_client_receive(&rig, fd, back, 5) != 0)
		return false;
	close(fd);
	rig_stop(&rig);
	struct stream_driver *driver;
	plan.engine = SOCKETS_URING;
	plan.listener_count = 0;
	return sockets_create(&plan, &driver) == -EPERM;
}

static void where_io_uring_is_refused_epoll_serves_and_says_so(void **state)
{
	(void)state;
	assert_int_equal(rig_in_child(refused_io_uring, NULL), 0);
}

static void auto_takes_io_uring_where_it_works(void **state)
{
	(void)state;
	rig_require(SOCKETS_URING);
	struct sockets_plan plan = rig_plan(SOCKETS_AUTO);
	rig_start(&rig, &plan);
	int refused = -1;
	assert_int_equal(sockets_engine(rig.driver, &refused), SOCKETS_URING);
	assert_int_equal(refused, 0);
	rig_stop(&rig);
	plan.engine = SOCKETS_EPOLL;
	rig_start(&rig, &plan);
	assert_int_equal(sockets_engine(rig.driver, &refused), SOCKETS_EPOLL);
	assert_int_equal(refused, 0);
	rig_stop(&rig);
}

// ---- Connected streams ----

static struct rig_peer *connect_to(const struct stream_address *to)
{
	struct rig_peer *peer = &rig.peers[RIG_PEERS_MAX - 1];
	*peer = (struct rig_peer){0};
	peer->stream = stream_connect(rig.driver, to, peer);
	assert_non_null(peer->stream);
	return peer;
}

static void connecting_opens_a_stream(void **state)
{
	rig_begin(&rig, state);
	rig.react = NULL;
	struct rig_peer *ours = connect_to(&rig.address);
	assert_int_equal(ours->opened, 0);
	RIG_UNTIL(&rig, ours->opened && rig.peer_count == 1);
	struct rig_peer *theirs = &rig.peers[0];
	assert_int_equal(ours->stream->listener, STREAM_CONNECTED);
	assert_memory_equal(&ours->stream->peer, &rig.address, sizeof(rig.address));
	assert_memory_equal(&ours->stream->local, &theirs->stream->peer, sizeof(rig.address));
	rig_write(&rig, ours, SPAN("question"));
	RIG_UNTIL(&rig, theirs->bytes == 8);
	rig_write(&rig, theirs, SPAN("answer"));
	stream_shut(rig.driver, theirs->stream);
	RIG_UNTIL(&rig, ours->eof);
	assert_memory_equal(ours->kept, "answer", 6);
	stream_close(rig.driver, ours->stream, false);
	RIG_UNTIL(&rig, theirs->closed);
	assert_int_equal(theirs->error, 0);
	assert_int_equal(rig_counter(&rig, SOCKETS_connected), 1);
	RIG_UNTIL(&rig, sockets_stats(rig.driver)->connected_open == 0);
	rig_stop(&rig);
}

static void connecting_over_ipv6(void **state)
{
	struct sockets_plan plan = rig_plan(rig_engine(state));
	plan.listeners[0].address = loopback6;
	rig_require(plan.engine);
	rig_start(&rig, &plan);
	struct rig_peer *ours = connect_to(&rig.address);
	RIG_UNTIL(&rig, ours->opened && rig.peer_count == 1);
	rig_stop(&rig);
}

static void a_refused_connect_is_told(void **state)
{
	rig_begin(&rig, state);
	int fd;
	struct stream_address nobody = rig.address;
	nobody.port = 0;
	assert_int_equal(sockets_listen(&nobody, 1, &fd), 0);
	assert_int_equal(sockets_address(fd, &nobody), 0);
	close(fd);
	struct rig_peer *ours = connect_to(&nobody);
	RIG_UNTIL(&rig, ours->closed);
	assert_int_equal(ours->error, ECONNREFUSED);
	assert_int_equal(ours->opened, 0);
	assert_int_equal(rig_counter(&rig, SOCKETS_connect_failed), 1);
	assert_int_equal(rig_counter(&rig, SOCKETS_connected), 0);
	RIG_UNTIL(&rig, sockets_stats(rig.driver)->connected_open == 0);
	rig_stop(&rig);
}

// One that fails before any packet is told like any other, in the next turn.
static void an_impossible_connect_is_told_later(void **state)
{
	rig_begin(&rig, state);
	struct stream_address broadcast = {.port = 80};
	ip_map(broadcast.ip, (uint8_t[]){255, 255, 255, 255});
	struct rig_peer *ours = connect_to(&broadcast);
	assert_int_equal(ours->closed, 0);
	RIG_UNTIL(&rig, ours->closed);
	assert_int_not_equal(ours->error, 0);
	rig_stop(&rig);
}

static void a_connect_may_be_given_up(void **state)
{
	rig_begin(&rig, state);
	for (int i = 0; i < 20; i++) {
		struct rig_peer *ours = connect_to(&rig.address);
		if (i % 2)
			rig_turn(&rig, 0);
		if (!ours->stream)
			continue;
		stream_close(rig.driver, ours->stream, i % 4 == 0);
		ours->stream = NULL;
	}
	RIG_UNTIL(&rig, sockets_stats(rig.driver)->connected_open == 0);
	rig_stop(&rig);
}

// ---- Waiting ----

static void the_turn_tells_the_time(void **state)
{
	rig_begin(&rig, state);
	rig_settle(&rig);
	uint64_t before = rig.driver->now_us;
	assert_true(before / 1000 <= rig_clock_ms());
	rig_turn(&rig, 30000);
	assert_in_range(rig.driver->now_us - before, 29000, RIG_PATIENCE_MS * 1000);
	rig_stop(&rig);
}

// A driver of the origin side: no listeners, and nobody connected.
static bool polls_without_a_system_call(void *mind)
{
	struct sockets_plan plan = rig_plan(*(enum sockets_engine *)mind);
	struct stream_driver *driver;
	plan.listener_count = 0;
	if (sockets_create(&plan, &driver) < 0)
		return false;
	rig.driver = driver;
	for (int i = 0; i < 10; i++)
		rig_turn(&rig, 1000); // it settles
	if (!filter(__NR_io_uring_enter, SECCOMP_RET_KILL_PROCESS) ||
		!filter(__NR_epoll_wait, SECCOMP_RET_KILL_PROCESS) ||
		!filter(__NR_epoll_pwait, SECCOMP_RET_KILL_PROCESS))
		return false;
	for (int i = 0; i < 1000; i++)
		rig_turn(&rig, 0);
	return true;
}

static void a_turn_with_nothing_to_do_makes_no_system_call(void **state)
{
	enum sockets_engine engine = rig_engine(state);
	rig_require(engine);
	assert_int_equal(rig_in_child(polls_without_a_system_call, &engine), 0);
}

static uint64_t cpu_ns(void)
{
	uint64_t ns = 0;
	FILE *file = fopen("/proc/self/schedstat", "r");
	assert_non_null(file);
	assert_int_equal(fscanf(file, "%lu", &ns), 1);
	fclose(file);
	return ns;
}

static void idle_connections_cost_nothing(void **state)
{
	enum { CLIENTS = 100, MS = 1000 };
	int fds[CLIENTS];
	rig_begin(&rig, state);
	for (int i = 0; i < CLIENTS; i++)
		fds[i] = rig_client(&rig);
	RIG_UNTIL(&rig, rig.peer_count == CLIENTS);
	rig_rest(&rig, 20);
	uint64_t begun = cpu_ns(), end = rig_clock_ms() + MS;
	while (rig_clock_ms() < end)
		rig_turn(&rig, 100000);
	assert_true(cpu_ns() - begun < MS * 1000000 / 100 * 2);
	close_all(fds, CLIENTS);
	rig_stop(&rig);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(plans_outside_their_limits_are_refused),
		cmocka_unit_test(counters_have_names_and_texts),
		cmocka_unit_test(a_second_process_on_the_address_is_noticed),
		cmocka_unit_test(ipv6_leaves_ipv4_alone),
		cmocka_unit_test(what_cannot_be_bound_is_an_error),
		RIG_BOTH(a_restart_finds_its_port_free),
		RIG_BOTH(workers_share_an_address),
		RIG_BOTH(two_listeners_know_their_streams),
		RIG_BOTH(draining_refuses_newcomers_and_serves_the_rest),
		cmocka_unit_test(where_io_uring_is_refused_epoll_serves_and_says_so),
		cmocka_unit_test(auto_takes_io_uring_where_it_works),
		RIG_BOTH(connecting_opens_a_stream),
		RIG_BOTH(connecting_over_ipv6),
		RIG_BOTH(a_refused_connect_is_told),
		RIG_BOTH(an_impossible_connect_is_told_later),
		RIG_BOTH(a_connect_may_be_given_up),
		RIG_BOTH(the_turn_tells_the_time),
		RIG_BOTH(a_turn_with_nothing_to_do_makes_no_system_call),
		RIG_BOTH(idle_connections_cost_nothing),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
