// Bytes out: straight to the kernel as far as it takes them, the rest by way of the send queue.
#pragma once

#include <sys/uio.h>

#include "drivers/sockets/core.h"

// Send `parts` now. Returns the bytes that the kernel took, 0 if it takes none now, or -errno.
ssize_t send_parts(struct core *core, struct socket *socket, struct iovec *parts, unsigned count);

// Send from the queue. Returns 0 when it is empty, -EAGAIN when the peer takes no more now, or
// another -errno.
int send_queue(struct core *core, struct socket *socket);
