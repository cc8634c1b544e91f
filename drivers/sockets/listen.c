// Listeners: one a worker on the same address, among which the kernel shares out connections by a
// hash of their ends.
//
// SO_REUSEPORT lets any process of the same user join in, so a second sluice started by mistake
// would silently take half of the visitors. A bind without it tells: with SO_REUSEADDR it is
// refused only if somebody listens there now, not for connections of a past process that are still
// closing.

#include <errno.h>
#include <netinet/tcp.h>
#include <unistd.h>

#include "drivers/sockets/address.h"
#include "drivers/sockets/sockets.h"

#define BACKLOG 4096 // net.core.somaxconn cuts it

static int set(int fd, int level, int option)
{
	return setsockopt(fd, level, option, &(int){1}, sizeof(int)) < 0 ? -errno : 0;
}

// A bound socket, or -errno.
static int bind_to(const struct stream_address *address, bool shared)
{
	struct sockaddr_storage name;
	socklen_t bytes = address_to_kernel(address, &name);
	int fd = socket(name.ss_family, SOCK_STREAM | SOCK_NONBLOCK | SOCK_CLOEXEC, 0), ret;
	if (fd < 0)
		return -errno;
	if ((ret = set(fd, SOL_SOCKET, SO_REUSEADDR)) < 0)
		goto fail;
	if (shared && (ret = set(fd, SOL_SOCKET, SO_REUSEPORT)) < 0)
		goto fail;
	if (name.ss_family == AF_INET6 && (ret = set(fd, IPPROTO_IPV6, IPV6_V6ONLY)) < 0)
		goto fail;
	if (bind(fd, (struct sockaddr *)&name, bytes) == 0)
		return fd;
	ret = -errno;
fail:
	close(fd);
	return ret;
}

static int listen_one(const struct stream_address *address)
{
	int fd = bind_to(address, true);
	if (fd < 0)
		return fd;
	int ret = set(fd, IPPROTO_TCP, TCP_NODELAY); // accepted sockets inherit it
	if (ret == 0 && listen(fd, BACKLOG) < 0)
		ret = -errno;
	if (ret < 0) {
		close(fd);
		return ret;
	}
	return fd;
}

int sockets_listen(const struct stream_address *address, unsigned workers, int fds[])
{
	struct stream_address at = *address; // with the port that was picked
	int ret = bind_to(address, false);
	if (ret < 0)
		return ret;
	close(ret);
	for (unsigned i = 0; i < workers; i++) {
		fds[i] = ret = listen_one(&at);
		if (ret >= 0 && i == 0)
			ret = sockets_address(fds[0], &at);
		if (ret < 0) {
			for (unsigned j = 0; j <= i; j++)
				if (fds[j] >= 0)
					close(fds[j]);
			return ret;
		}
	}
	return 0;
}

int sockets_address(int fd, struct stream_address *address)
{
	struct sockaddr_storage name;
	socklen_t bytes = sizeof(name);
	if (getsockname(fd, (struct sockaddr *)&name, &bytes) < 0)
		return -errno;
	address_from_kernel(&name, address);
	return 0;
}
