// The last hand on a frame before it leaves, and the first on one that has come.
#pragma once

#include "drivers/ethdev/inside.h"

// Compute the checksums that ol_flags ask for and the port does not fill.
void finish_sent(const struct inside_port *port, struct rte_mbuf *frame);

// Put a stripped VLAN tag back, and say which sums a kernel has left to hardware. Returns whether
// the frame is whole: in one segment.
bool finish_received(const struct inside_port *port, struct rte_mbuf *frame);

// Put in the sum that a kernel has left out, before another one verifies it.
void finish_excepted(struct rte_mbuf *frame);
