// Between the kernel's socket addresses and ours.
#pragma once

#include <stdbool.h>
#include <sys/socket.h>

#include "drivers/stream.h"

// Whether it is an IPv4 address, stored mapped (RFC 4291 2.5.5.2).
bool address_is_ipv4(const struct stream_address *address);

// Whether it stands for all addresses of its family: 0.0.0.0 or ::.
bool address_is_any(const struct stream_address *address);

// AF_INET for a mapped address, else AF_INET6. Returns the length of what was filled in.
socklen_t address_to_kernel(const struct stream_address *address, struct sockaddr_storage *out);

// A family other than these two gives ::, port 0.
void address_from_kernel(const struct sockaddr_storage *in, struct stream_address *address);

// Store four bytes of an IPv4 address mapped.
void address_set_ipv4(struct stream_address *address, const void *ip);
