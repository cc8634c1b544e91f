// send(2) inside the loop costs what a send through the ring costs (measured), and leaves no buffer
// pinned, nothing to cancel and no second send in flight that could overtake the first. So both
// engines send like this and are only asked to say when a full socket can be written again. They
// may wait for an edge, so a queue is always sent until it is empty or the kernel has said no.

#include "drivers/sockets/send.h"

#include <errno.h>

#define PARTS_MAX 16 // of the queue, in one call

ssize_t send_parts(struct core *core, struct socket *socket, struct iovec *parts, unsigned count)
{
	const int flags = MSG_DONTWAIT | MSG_NOSIGNAL;
	struct msghdr message = {.msg_iov = parts, .msg_iovlen = count};
	ssize_t sent;
	do
		sent = count == 1 ? send(socket->fd, parts->iov_base, parts->iov_len, flags)
				  : sendmsg(socket->fd, &message, flags);
	while (sent < 0 && errno == EINTR);
	if (sent < 0)
		return errno == EAGAIN ? 0 : -errno;
	core_count_by(core, SOCKETS_bytes_out, (uint64_t)sent);
	return sent;
}

int send_queue(struct core *core, struct socket *socket)
{
	struct iovec parts[PARTS_MAX];
	while (!queue_is_empty(&socket->queue)) {
		unsigned count = queue_parts(&core->pool, &socket->queue, parts, PARTS_MAX);
		ssize_t sent = send_parts(core, socket, parts, count);
		if (sent < 0)
			return (int)sent;
		if (sent == 0)
			return -EAGAIN;
		queue_pop(&core->pool, &socket->queue, (size_t)sent);
	}
	return 0;
}
