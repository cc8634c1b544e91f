// See rig.h.

#include "tests/unit/drivers/rig.h"

#include <errno.h>
#include <stdio.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include "drivers/ip.h"
#include "drivers/proxy/proxy.h"
#include "drivers/sockets/address.h"
#include "drivers/uring/uring.h"

struct sockets_plan rig_plan(enum sockets_engine engine)
{
	struct sockets_plan plan = {
		.engine = engine,
		.streams_max = 256,
		.connects_max = 64,
		.receive_count = 64,
		.receive_bytes = 4096,
		.send_count = 1024,
		.send_bytes = 4096,
		.queue_high = 65536,
		.linger_ms = 200,
		.listener_count = 1,
	};
	ip_map(plan.listeners[0].address.ip, (uint8_t[]){127, 0, 0, 1});
	return plan;
}

void rig_start(struct rig *rig, struct sockets_plan *plan)
{
	*rig = (struct rig){.events_max = RIG_EVENTS_MAX};
	for (unsigned i = 0; i < plan->listener_count; i++) {
		struct sockets_listener *listener = &plan->listeners[i];
		assert_int_equal(sockets_listen(&listener->address, 1, &listener->fd), 0);
		assert_int_equal(sockets_address(listener->fd, &listener->address), 0);
	}
	rig->address = plan->listeners[0].address;
	rig->listener = plan->listeners[0].fd;
	assert_int_equal(sockets_create(plan, &rig->driver), 0);
}

void rig_begin(struct rig *rig, void **state)
{
	struct sockets_plan plan = rig_plan(rig_engine(state));
	rig_require(plan.engine);
	rig_start(rig, &plan);
}

void rig_shrink(struct rig *rig, int bytes)
{
	rig->kernel_bytes = bytes; // accepted sockets inherit it
	assert_int_equal(
		setsockopt(rig->listener, SOL_SOCKET, SO_SNDBUF, &bytes, sizeof(bytes)), 0);
}

void rig_stop(struct rig *rig)
{
	stream_destroy(rig->driver);
	rig->driver = NULL;
}

uint64_t rig_clock_ms(void)
{
	struct timespec now;
	clock_gettime(CLOCK_MONOTONIC, &now);
	return (uint64_t)now.tv_sec * 1000 + (uint64_t)now.tv_nsec / 1000000;
}

static struct rig_peer *peer_of(struct rig *rig, const struct stream_event *event)
{
	if (event->kind == STREAM_OPENED && !event->stream->user) {
		assert_true(rig->peer_count < RIG_PEERS_MAX);
		struct rig_peer *peer = &rig->peers[rig->peer_count++];
		peer->stream = event->stream;
		peer->was_full = sockets_is_full(proxy_inner(rig->driver));
		event->stream->user = peer;
	}
	assert_non_null(event->stream->user);
	return event->stream->user;
}

static void note_data(struct rig_peer *peer, struct span data)
{
	assert_true(data.len > 0);
	peer->data++;
	peer->sum = rig_sum(peer->sum, peer->bytes, data.at, data.len);
	for (size_t i = 0; i < data.len && peer->bytes + i < RIG_KEPT_MAX; i++)
		peer->kept[peer->bytes + i] = data.at[i];
	peer->bytes += data.len;
}

// Notes the event, and that it may come now.
static void note(struct rig_peer *peer, const struct stream_event *event)
{
	assert_int_equal(peer->closed, 0);
	assert_ptr_equal(peer->stream, event->stream);
	if (event->kind == STREAM_OPENED)
		assert_int_equal(peer->opened++, 0);
	else if (event->kind != STREAM_CLOSED)
		assert_int_equal(peer->opened, 1);
	if (event->kind == STREAM_DATA) {
		assert_int_equal(peer->eof, 0);
		note_data(peer, event->data);
	} else if (event->kind == STREAM_WRITABLE) {
		peer->writable++;
	} else if (event->kind == STREAM_EOF) {
		assert_int_equal(peer->eof++, 0);
	} else if (event->kind == STREAM_CLOSED) {
		peer->closed++;
		peer->error = event->error;
		peer->stream = NULL;
	}
}

int rig_turn(struct rig *rig, uint32_t wait_us)
{
	int count = stream_poll(rig->driver, rig->burst, rig->events_max, wait_us);
	assert_in_range(count, 0, rig->events_max);
	for (int i = 0; i < count; i++) {
		const struct stream_event *event = &rig->burst[i];
		if (event->kind == STREAM_NONE) {
			rig->taken_back++;
			continue;
		}
		struct rig_peer *peer = peer_of(rig, event);
		note(peer, event);
		if (rig->react)
			rig->react(rig, peer, event);
	}
	rig->events += count;
	return count;
}

void rig_rest(struct rig *rig, unsigned ms)
{
	for (uint64_t end = rig_clock_ms() + ms; rig_clock_ms() < end;)
		rig_turn(rig, 2000);
}

void rig_settle(struct rig *rig)
{
	rig_rest(rig, 100);
}

uint64_t rig_counter(const struct rig *rig, enum sockets_counter counter)
{
	return atomic_load(&sockets_stats(proxy_inner(rig->driver))->counters[counter]);
}

size_t rig_write(struct rig *rig, struct rig_peer *peer, struct span data)
{
	return stream_write(rig->driver, peer->stream, &data, 1);
}

void rig_echo(struct rig *rig, struct rig_peer *peer, const struct stream_event *event)
{
	if (event->kind == STREAM_DATA) {
		assert_int_equal(rig_write(rig, peer, event->data), event->data.len);
	} else if (event->kind == STREAM_EOF) {
		stream_close(rig->driver, peer->stream, false);
		peer->stream = NULL;
	}
}

char rig_byte(uint64_t at)
{
	return (char)(at * 31 + (at >> 8) * 7 + (at >> 16));
}

uint64_t rig_sum(uint64_t sum, uint64_t at, const char *bytes, size_t len)
{
	for (size_t i = 0; i < len; i++)
		sum += (uint8_t)bytes[i] * ((at + i) * 2 + 1);
	return sum;
}

uint64_t rig_pattern_sum(uint64_t end)
{
	uint64_t sum = 0;
	for (uint64_t at = 0; at < end; at++)
		sum = rig_sum(sum, at, &(char){rig_byte(at)}, 1);
	return sum;
}

static void fill_chunk(char *chunk, uint64_t at)
{
	for (unsigned i = 0; i < RIG_CHUNK; i++)
		chunk[i] = rig_byte(at + i);
}

uint64_t rig_fill(struct rig *rig, struct rig_peer *peer, uint64_t at, uint64_t end)
{
	char chunk[RIG_CHUNK];
	while (at < end && stream_queued(rig->driver, peer->stream) <= rig->driver->queue_high) {
		fill_chunk(chunk, at);
		assert_int_equal(rig_write(rig, peer, (struct span){chunk, RIG_CHUNK}), RIG_CHUNK);
		at += RIG_CHUNK;
	}
	return at;
}

uint64_t rig_client_fill(int fd, uint64_t at, uint64_t end)
{
	char chunk[RIG_CHUNK];
	while (at < end) {
		size_t len = end - at < RIG_CHUNK ? end - at : RIG_CHUNK;
		fill_chunk(chunk, at);
		ssize_t sent = send(fd, chunk, len, MSG_DONTWAIT | MSG_NOSIGNAL);
		if (sent < 0) {
			assert_int_equal(errno, EAGAIN);
			break;
		}
		at += (uint64_t)sent;
	}
	return at;
}

int rig_client(const struct rig *rig)
{
	struct sockaddr_storage name;
	socklen_t bytes = address_to_kernel(&rig->address, &name);
	int fd = socket(name.ss_family, SOCK_STREAM | SOCK_CLOEXEC, 0);
	assert_true(fd >= 0);
	if (rig->kernel_bytes)
		setsockopt(fd, SOL_SOCKET, SO_RCVBUF, &rig->kernel_bytes, sizeof(int));
	assert_int_equal(connect(fd, (struct sockaddr *)&name, bytes), 0);
	return fd;
}

int rig_client_open(struct rig *rig, struct rig_peer **peer)
{
	*peer = &rig->peers[rig->peer_count];
	int fd = rig_client(rig);
	RIG_UNTIL(rig, (*peer)->opened);
	return fd;
}

void rig_client_send(int fd, struct span data)
{
	assert_int_equal(send(fd, data.at, data.len, MSG_NOSIGNAL), data.len);
}

// recv(2) while the driver turns; 0 and errno EPIPE for FIN.
static ssize_t receive(struct rig *rig, int fd, char *into, size_t len)
{
	for (uint64_t end = rig_clock_ms() + RIG_PATIENCE_MS; rig_clock_ms() < end;) {
		ssize_t got = recv(fd, into, len, MSG_DONTWAIT);
		if (got == 0)
			errno = EPIPE;
		if (got >= 0 || errno != EAGAIN)
			return got;
		rig_turn(rig, 1000);
	}
	errno = ETIME;
	return -1;
}

int rig_client_receive(struct rig *rig, int fd, char *into, size_t len)
{
	for (size_t have = 0; have < len;) {
		ssize_t got = receive(rig, fd, into + have, len - have);
		if (got <= 0)
			return errno;
		have += (size_t)got;
	}
	return 0;
}

int rig_client_end(struct rig *rig, int fd)
{
	char dropped[65536];
	ssize_t got;
	while ((got = receive(rig, fd, dropped, sizeof(dropped))) > 0)
		;
	return got == 0 ? 0 : errno;
}

void rig_client_reset(int fd)
{
	struct linger linger = {.l_onoff = 1};
	setsockopt(fd, SOL_SOCKET, SO_LINGER, &linger, sizeof(linger));
	close(fd);
}

void rig_require(enum sockets_engine engine)
{
	struct uring uring;
	if (engine != SOCKETS_URING)
		return;
	int ret = uring_init(&uring, 8, 2, 4096);
	if (ret < 0)
		fail_msg("io_uring is refused here: %s", strerror(-ret));
	uring_fini(&uring);
}

int rig_in_child(bool (*body)(void *mind), void *mind)
{
	pid_t child = fork();
	assert_true(child >= 0);
	if (child == 0)
		_exit(body(mind) ? 0 : 1);
	int status = -1;
	assert_int_equal(waitpid(child, &status, 0), child);
	return status;
}
