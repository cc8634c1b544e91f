// The self-test of a mode: one connection over loopback, and each kind of request once, on a ring
// of its own with two small buffers. Takes well under a millisecond.
//
// On a machine that is very busy a completion may come too late for it. That says nothing about the
// mode, so a test that ran out of time is made again, on a new ring; a wrong answer is final.

#include "drivers/uring/uring.h"

#include <errno.h>
#include <fcntl.h>
#include <netinet/in.h>
#include <poll.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

#define ENTRIES 8
#define BUFFERS 2
#define BUFFER_BYTES 4096
#define WAIT_US 200000 // for a completion that is there at once or never
#define WAITS_MAX 4 // for one completion
#define TRIES_MAX 3 // of a test that runs out of time

static const char message[] = "sluice";

enum request {
	ACCEPT = 1,
	RECEIVE,
	WRITABLE,
};

// Wait for the next completion, which must be one of `data`. Returns its res, or -EPROTO.
static int expect(struct uring *uring, enum request data, uint32_t *flags)
{
	struct io_uring_cqe *cqe = NULL;
	for (int i = 0; i < WAITS_MAX && !cqe; i++) {
		uring_wait(uring, WAIT_US);
		io_uring_peek_cqe(&uring->ring, &cqe);
	}
	if (!cqe)
		return -ETIME;
	int res = cqe->user_data == data ? cqe->res : -EPROTO;
	*flags = cqe->flags;
	io_uring_cqe_seen(&uring->ring, cqe);
	return res;
}

static int test_receive(struct uring *uring, int from, int to)
{
	uint32_t flags;
	uring_receive(uring, to, true, RECEIVE);
	if (send(from, message, sizeof(message), MSG_NOSIGNAL) != sizeof(message))
		return -errno;
	int ret = expect(uring, RECEIVE, &flags);
	if (ret != sizeof(message) || !(flags & IORING_CQE_F_BUFFER))
		return ret < 0 ? ret : -EPROTO;
	if (memcmp(uring_buffer(uring, flags), message, sizeof(message)) != 0)
		return -EPROTO;
	if (!(flags & IORING_CQE_F_MORE))
		return -EPROTO;
	uring_cancel(uring, RECEIVE);
	ret = expect(uring, RECEIVE, &flags);
	return ret == -ECANCELED && !(flags & IORING_CQE_F_MORE) ? 0 : -EPROTO;
}

static int test_writable(struct uring *uring, int fd)
{
	uint32_t flags;
	uring_poll(uring, fd, POLLOUT, false, WRITABLE);
	int ret = expect(uring, WRITABLE, &flags);
	return ret < 0 ? ret : ret & POLLOUT ? 0 : -EPROTO;
}

static int test_connection(struct uring *uring, int listener, int client)
{
	uint32_t flags;
	uring_accept(uring, listener, ACCEPT);
	int accepted = expect(uring, ACCEPT, &flags);
	if (accepted < 0)
		return accepted;
	int ret = -EPROTO; // descriptors that are none were the bug
	if (fcntl(accepted, F_GETFD) >= 0 && (flags & IORING_CQE_F_MORE))
		ret = test_receive(uring, client, accepted);
	if (ret == 0)
		ret = test_writable(uring, accepted);
	close(accepted);
	return ret;
}

// A listener on loopback and a connection to it.
static int connect_loopback(int *listener, int *client)
{
	struct sockaddr_in name = {
		.sin_family = AF_INET, .sin_addr.s_addr = htonl(INADDR_LOOPBACK)};
	socklen_t bytes = sizeof(name);
	*listener = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
	*client = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
	if (*listener < 0 || *client < 0 ||
		bind(*listener, (struct sockaddr *)&name, sizeof(name)) < 0 ||
		listen(*listener, 1) < 0 ||
		getsockname(*listener, (struct sockaddr *)&name, &bytes) < 0 ||
		connect(*client, (struct sockaddr *)&name, sizeof(name)) < 0)
		return -errno;
	return 0;
}

static int test_once(unsigned mode)
{
	struct uring uring;
	int ret = uring_init_mode(&uring, mode, ENTRIES, BUFFERS, BUFFER_BYTES);
	if (ret < 0)
		return ret;
	int listener = -1, client = -1;
	ret = connect_loopback(&listener, &client);
	if (ret == 0)
		ret = test_connection(&uring, listener, client);
	uring_fini(&uring);
	if (client >= 0)
		close(client);
	if (listener >= 0)
		close(listener);
	return ret;
}

int uring_test(unsigned mode)
{
	int ret = -ETIME;
	for (int i = 0; i < TRIES_MAX && ret == -ETIME; i++)
		ret = test_once(mode);
	return ret;
}
