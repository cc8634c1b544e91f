// Ports on rings in this process: the test writes what comes in and reads what goes out.
#pragma once

#include "drivers/ethdev/ethdev.h"

#include <rte_ring.h>

#define RIG_QUEUES_MAX 4u

// A port "net_ring_NAME", with a ring for each queue.
struct rig_port {
	char device[32];
	unsigned rx_count, tx_count;
	struct rte_ring *in[RIG_QUEUES_MAX], *out[RIG_QUEUES_MAX];
};

// EAL as it is without hugepages. Once.
void rig_eal(void);

struct rig_port rig_make(const char *name, unsigned rx_count, unsigned tx_count, unsigned len);
void rig_free(struct rig_port *port);

// A plan for `workers` on one port.
struct ethdev_plan rig_plan(const char *device, unsigned workers);

// Open, or fail the test with the reason.
struct ethdev *rig_open(const struct ethdev_plan *plan);

// A frame in a buffer of the test's own, with `len` bytes from `bytes`.
struct rte_mbuf *rig_frame(const void *bytes, unsigned len);

// A TCP segment over Ethernet and IPv4 with `payload` bytes, its sums right; returns its length.
unsigned rig_segment(uint8_t frame[2048], uint16_t source_port, unsigned payload);
unsigned rig_segment_v6(uint8_t frame[2048], uint16_t source_port, unsigned payload);

// Put frames into queue `queue` of the port.
void rig_arrive(struct rig_port *port, unsigned queue, struct rte_mbuf *frame);

uint64_t rig_counter(const struct ethdev_worker *w, enum ethdev_counter counter);
unsigned rig_free_buffers(void); // of the test's own pool
