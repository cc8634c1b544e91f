// A worker's network on the fakes, for one test: one or more workers, one port.
#pragma once

#include "dataplane/net/net.h"
#include "tests/unit/net/fake_ethdev.h"
#include "tests/unit/net/fake_tcp.h"
#include "tests/unit/net/packets.h"

#define STAGE_WORKERS_MAX 4u
#define STAGE_PORT 3u // DPDK's id of the port

struct stage {
	struct net_plan plan;
	struct net_shared *shared;
	struct ethdev_worker *devices[STAGE_WORKERS_MAX];
	struct stream_driver *drivers[STAGE_WORKERS_MAX];
	struct fake_tcp *tcps[STAGE_WORKERS_MAX];
	struct stream_event events[64];
};
extern struct stage stage;

// For main(): true once EAL runs.
bool stage_open(void);

// A plan of one worker with our addresses, listening at port 443, a gateway of each kind.
void stage_plan(void);

// Make what is planned; no announcement is left to be sent if `is_quiet`.
void stage_start(bool is_quiet);

// Take all down; fails if a buffer is missing.
int stage_end(void **state);

// Let a frame arrive at worker 0 and make turns until it is dealt with. What was sent before is
// forgotten.
void stage_arrive(const struct packets_frame *frame);

// One turn of a worker. Returns the events.
int stage_turn(unsigned worker);

// Time passes, in steps of 10 ms, with a turn of worker 0 each.
void stage_pass(uint64_t us);

uint64_t stage_counter(unsigned worker, enum net_counter counter);
