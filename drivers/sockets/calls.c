// A stream may be over without its worker knowing yet: STREAM_CLOSED lies ahead in the burst in
// hand, or is due in the next turn. Every call takes such a stream and does nothing to it, so a
// worker that touches one stream while it handles another need not look first.

#include "drivers/sockets/calls.h"

#include <errno.h>
#include <netinet/tcp.h>
#include <stdlib.h>

#include "drivers/ip.h"
#include "drivers/sockets/address.h"
#include "drivers/sockets/core.h"
#include "drivers/sockets/life.h"
#include "drivers/sockets/send.h"

static struct socket *socket_of(struct stream *stream)
{
	return (struct socket *)stream;
}

static bool is_over(const struct socket *socket)
{
	assert(socket->state == SOCKET_OPEN || socket->state == SOCKET_CONNECTING ||
		socket->state == SOCKET_CLOSED); // else a call after stream_close()
	return socket->state == SOCKET_CLOSED || socket->is_due;
}

// Queue what follows the first `skip` bytes of the parts. Returns how much of it was taken.
static size_t push_after(struct core *core, struct socket *socket, const struct span *parts,
	unsigned count, size_t skip)
{
	size_t taken = 0;
	for (unsigned i = 0; i < count; i++) {
		size_t skipped = skip < parts[i].len ? skip : parts[i].len;
		struct span rest = span_from(parts[i], skipped);
		skip -= skipped;
		size_t part = queue_push(&core->pool, &socket->queue, rest);
		taken += part;
		if (part < rest.len) {
			core_count(core, SOCKETS_send_no_buffer);
			break;
		}
	}
	return taken;
}

static size_t calls_write(struct stream_driver *driver, struct stream *stream,
	const struct span *parts, unsigned count)
{
	assert(count <= STREAM_PARTS_MAX);
	struct core *core = core_of(driver);
	struct socket *socket = socket_of(stream);
	struct iovec iov[STREAM_PARTS_MAX];
	size_t total = 0;
	for (unsigned i = 0; i < count; i++) {
		iov[i] = (struct iovec){(void *)(uintptr_t)parts[i].at, parts[i].len};
		total += parts[i].len;
	}
	if (is_over(socket) || total == 0)
		return total;
	assert(socket->state == SOCKET_OPEN);
	assert(!socket->is_shut);
	bool was_empty = queue_is_empty(&socket->queue);
	ssize_t sent = was_empty ? send_parts(core, socket, iov, count) : 0;
	if (sent < 0) {
		life_end_later(core, socket, (int)-sent);
		return total;
	}
	if ((size_t)sent == total)
		return total;
	size_t queued = push_after(core, socket, parts, count, (size_t)sent);
	if (was_empty && queued)
		core->ops->await_writable(core, socket);
	if (socket->queue.bytes > driver->queue_high)
		socket->is_high = true;
	return (size_t)sent + queued;
}

static size_t calls_queued(const struct stream_driver *driver, const struct stream *stream)
{
	(void)driver;
	return ((const struct socket *)stream)->queue.bytes;
}

static void calls_shut(struct stream_driver *driver, struct stream *stream)
{
	struct socket *socket = socket_of(stream);
	if (is_over(socket) || socket->is_shut)
		return;
	assert(socket->state == SOCKET_OPEN);
	socket->is_shut = true;
	if (queue_is_empty(&socket->queue))
		life_send_fin(core_of(driver), socket);
}

static void calls_close(struct stream_driver *driver, struct stream *stream, bool reset)
{
	struct core *core = core_of(driver);
	struct socket *socket = socket_of(stream);
	bool over = is_over(socket);
	life_suppress(core, socket);
	if (socket->state == SOCKET_CLOSED)
		return; // the next turn lets go of it
	if (over || reset || queue_is_empty(&socket->queue))
		life_release(core, socket, reset);
	else
		life_linger(core, socket);
}

static void calls_pause(struct stream_driver *driver, struct stream *stream)
{
	struct socket *socket = socket_of(stream);
	if (socket->is_paused)
		return;
	socket->is_paused = true;
	if (!is_over(socket))
		core_of(driver)->ops->receive_stop(core_of(driver), socket);
}

static void calls_resume(struct stream_driver *driver, struct stream *stream)
{
	struct socket *socket = socket_of(stream);
	if (!socket->is_paused)
		return;
	socket->is_paused = false;
	if (!is_over(socket) && life_is_receiving(socket))
		core_of(driver)->ops->receive_start(core_of(driver), socket);
}

static int open_socket(struct core *core, const struct stream_address *to)
{
	int family = ip_is_v4(to->ip) ? AF_INET : AF_INET6;
	int fd = socket(family, SOCK_STREAM | SOCK_NONBLOCK | SOCK_CLOEXEC, 0);
	if (fd < 0)
		core_count(core, SOCKETS_connect_no_descriptor);
	else
		setsockopt(fd, IPPROTO_TCP, TCP_NODELAY, &(int){1}, sizeof(int));
	return fd;
}

static struct stream *calls_connect(
	struct stream_driver *driver, const struct stream_address *to, void *user)
{
	struct core *core = core_of(driver);
	if (core->stats.connected_open >= core->connects_max) {
		core_count(core, SOCKETS_connect_table_full);
		return NULL;
	}
	int fd = open_socket(core, to);
	if (fd < 0)
		return NULL;
	struct sockaddr_storage name;
	socklen_t name_bytes = address_to_kernel(to, &name);
	int error = connect(fd, (struct sockaddr *)&name, name_bytes) < 0 ? errno : 0;
	struct socket *socket = life_add(core, fd, STREAM_CONNECTED, SOCKET_CONNECTING);
	if (!socket)
		return NULL;
	socket->stream.user = user;
	socket->stream.peer = *to;
	if (error && error != EINPROGRESS)
		life_end_later(core, socket, error);
	else
		core->ops->await_writable(core, socket);
	return &socket->stream;
}

static void calls_stop_accepting(struct stream_driver *driver)
{
	struct core *core = core_of(driver);
	for (unsigned i = 0; i < core->listener_count; i++) {
		core->listeners[i].retry_us = 0;
		core->ops->accept_stop(core, i);
	}
}

static void calls_destroy(struct stream_driver *driver)
{
	struct core *core = core_of(driver);
	core->ops->fini(core);
	for (unsigned i = 0; i < core->listener_count; i++)
		core_close_listener(core, i);
	core_fini(core);
	free(core);
}

const struct stream_driver_ops calls_ops = {
	.poll = core_poll,
	.write = calls_write,
	.queued = calls_queued,
	.shut = calls_shut,
	.close = calls_close,
	.pause = calls_pause,
	.resume = calls_resume,
	.connect = calls_connect,
	.stop_accepting = calls_stop_accepting,
	.wake = core_wake,
	.destroy = calls_destroy,
};
