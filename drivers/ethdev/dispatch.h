// Whose a received frame is, where the device does not spread flows over the workers.
#pragma once

#include <stdint.h>

struct rte_mbuf;

// The worker, 0 to `workers` - 1, that a frame belongs to: by a keyed hash of addresses and ports
// for TCP, of addresses for its fragments and for IPv6 with extension headers; 0 for all else.
// Reads nothing beyond the frame. Pure.
unsigned dispatch_owner(const struct rte_mbuf *frame, uint64_t seed, unsigned workers);
