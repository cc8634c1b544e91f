// A TCP that remembers what it was given and does as it is told: dataplane/net/tcp/tcp.h for tests
// of what is around it. Reading segments is the true one's.
#pragma once

#include "dataplane/net/tcp/tcp.h"

struct fake_tcp {
	const struct tcp_io *io;
	struct tcp_plan plan;
	uint64_t now_us;
	unsigned segment_count; // taken
	struct tcp_segment last;
	unsigned room; // segments taken in one turn; 0: all
	enum tcp_owner owner; // what tcp_owns() says
	bool knows; // flows; else each segment without SYN is offered elsewhere
	unsigned resets; // of those that nobody else saw to
	unsigned too_big;
	uint16_t mtu;
	struct tcp_segment quoted;
	unsigned turns, flushes, dues, calls;
};

// That of the driver made last but `back`.
struct fake_tcp *fake_tcp(unsigned back);
