// A completion is named by link, generation and what was asked for. The generation is why closing
// is simple: shutdown() ends what the kernel still holds, and whatever completes after that is not
// of this generation.

#include "bench/crowd/links.h"

#include <assert.h>
#include <errno.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <poll.h>
#include <stdlib.h>
#include <unistd.h>

#define ENTRIES 4096u
#define BUFFERS 2048u
#define BUFFER_BYTES 8192u
#define GENERATIONS (1u << 24)

enum asked {
	ASKED_CONNECT = 1, // not 0: URING_CANCEL_DATA
	ASKED_RECEIVE,
};

static uint64_t name_of(const struct links *links, uint32_t id, enum asked asked)
{
	return (uint64_t)id << 32 | links->links[id].generation << 8 | asked;
}

int links_init(struct links *links, uint32_t count)
{
	*links = (struct links){.count = count, .links = calloc(count, sizeof(struct link))};
	if (!links->links)
		return -ENOMEM;
	for (uint32_t i = 0; i < count; i++)
		links->links[i].fd = -1;
	const int ret = uring_init(&links->uring, ENTRIES, BUFFERS, BUFFER_BYTES);
	if (ret < 0)
		free(links->links);
	return ret;
}

void links_fini(struct links *links)
{
	for (uint32_t i = 0; i < links->count; i++)
		links_close(links, i);
	uring_fini(&links->uring);
	free(links->links);
}

int links_open(struct links *links, uint32_t id, const struct sockaddr *to, socklen_t to_bytes)
{
	struct link *link = &links->links[id];
	assert(link->state == LINK_CLOSED);
	const int fd = socket(to->sa_family, SOCK_STREAM | SOCK_NONBLOCK | SOCK_CLOEXEC, 0);
	if (fd < 0)
		return -errno;
	setsockopt(fd, IPPROTO_TCP, TCP_NODELAY, &(int){1}, sizeof(int));
	if (connect(fd, to, to_bytes) < 0 && errno != EINPROGRESS) {
		const int error = errno;
		close(fd);
		return -error;
	}
	link->fd = fd;
	link->state = LINK_CONNECTING;
	uring_poll(&links->uring, fd, POLLOUT, false, name_of(links, id, ASKED_CONNECT));
	return 0;
}

bool links_send(struct links *links, uint32_t id, struct span data)
{
	assert(links->links[id].state == LINK_OPEN);
	const ssize_t sent =
		send(links->links[id].fd, data.at, data.len, MSG_DONTWAIT | MSG_NOSIGNAL);
	return sent == (ssize_t)data.len;
}

void links_close(struct links *links, uint32_t id)
{
	struct link *link = &links->links[id];
	if (link->state == LINK_CLOSED)
		return;
	shutdown(link->fd, SHUT_RDWR);
	close(link->fd);
	link->fd = -1;
	link->state = LINK_CLOSED;
	link->generation = (link->generation + 1) % GENERATIONS;
}

void links_wait(struct links *links, uint64_t wait_us)
{
	uring_wait(&links->uring, wait_us);
}

void links_recycle(struct links *links)
{
	uring_recycle(&links->uring);
}

static void receive(struct links *links, uint32_t id)
{
	uring_receive(&links->uring, links->links[id].fd, true, name_of(links, id, ASKED_RECEIVE));
}

static void end(struct links *links, struct link_event *event)
{
	links_close(links, event->id);
	event->kind = LINK_EVENT_ENDED;
}

static void take_connected(struct links *links, struct link_event *event)
{
	struct link *link = &links->links[event->id];
	int error = 0;
	getsockopt(link->fd, SOL_SOCKET, SO_ERROR, &error, &(socklen_t){sizeof(error)});
	if (error) {
		end(links, event);
		return;
	}
	link->state = LINK_OPEN;
	event->kind = LINK_EVENT_OPENED;
	receive(links, event->id);
}

// Returns whether there is something to tell.
static bool take_received(struct links *links, struct link_event *event, int result, unsigned flags)
{
	if (result > 0 || result == -ENOBUFS) {
		if (!(flags & IORING_CQE_F_MORE))
			receive(links, event->id);
		event->kind = LINK_EVENT_DATA;
		event->data.len = result > 0 ? (size_t)result : 0;
		return result > 0;
	}
	end(links, event);
	return true;
}

static bool take(struct links *links, const struct io_uring_cqe *cqe, struct link_event *event)
{
	if (cqe->flags & IORING_CQE_F_BUFFER) // of an old generation, too: it must go back
		event->data.at = uring_buffer(&links->uring, cqe->flags);
	const enum asked asked = cqe->user_data & 0xff;
	event->id = (uint32_t)(cqe->user_data >> 32);
	if (cqe->user_data == URING_CANCEL_DATA ||
		cqe->user_data != name_of(links, event->id, asked))
		return false;
	if (asked == ASKED_RECEIVE)
		return take_received(links, event, cqe->res, cqe->flags);
	take_connected(links, event);
	return true;
}

bool links_next(struct links *links, struct link_event *event)
{
	struct io_uring *ring = &links->uring.ring;
	while (io_uring_cq_ready(ring) > 0) {
		struct io_uring_cqe *cqe;
		if (io_uring_peek_cqe(ring, &cqe) != 0)
			return false;
		*event = (struct link_event){0};
		const bool is_event = take(links, cqe, event);
		io_uring_cqe_seen(ring, cqe);
		if (is_event)
			return true;
	}
	return false;
}
