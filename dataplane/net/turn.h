// A turn of a worker's network: frames in, events out.
#pragma once

#include "drivers/stream.h"

struct tcp_segment;

// stream_poll() of this driver. It never waits.
int turn_poll(
	struct stream_driver *d, struct stream_event *events, int events_max, uint32_t wait_us);

// Whether another worker sees to a segment that this one does not know; struct tcp_io.elsewhere.
//   ctx  the struct net
bool turn_elsewhere(void *ctx, const struct tcp_segment *segment);
