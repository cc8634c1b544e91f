// Sizes: what is sent, in bytes, measured on the product's own answers.
#pragma once

#include <stdint.h>

#include "config/plan.h"

struct sizes {
	uint32_t poll, page; // HTTP: the answer of a status poll; the queue page with its ticket
	// The same with what TLS, TCP, IP and Ethernet add, and the acknowledgement of the request;
	// a new connection; a page view inside.
	double poll_wire, page_wire, connection_wire, view_wire;
};

// Render both and measure them. Returns 0 or -errno.
int sizes_measure(const struct plan *plan, struct sizes *sizes);
