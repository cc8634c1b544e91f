// Between the kernel's socket addresses and ours.
#pragma once

#include <sys/socket.h>

#include "drivers/stream.h"

// AF_INET for a mapped address, else AF_INET6. Returns the length of what was filled in.
socklen_t address_to_kernel(const struct stream_address *address, struct sockaddr_storage *out);

// A family other than these two gives ::, port 0.
void address_from_kernel(const struct sockaddr_storage *in, struct stream_address *address);
