// What the files of this folder share: the structs of ports and workers.
#pragma once

#include <stdalign.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <stdint.h>

#include "drivers/ethdev/ethdev.h"
#include "drivers/ethdev/sizes.h"
#include "drivers/ethdev/ticks.h"

struct rte_mempool;
struct rte_ring;

// Ports, and their exception interfaces behind them.
#define INSIDE_PORTS_MAX (2 * ETHDEV_PORTS_MAX)
#define INSIDE_NONE UINT16_MAX // no such port
#define INSIDE_UP 1u
#define INSIDE_DOWN 2u

// One port as this process drives it.
struct inside_port {
	struct ethdev_port shown;
	uint16_t peer; // index of its exception interface, or of the port it is that of; or none
	bool is_partial; // the kernel behind it leaves sums to hardware that is not there
	struct rte_mempool *buffers; // received frames lie in these
};

// Frames for one port that the device has not taken yet.
struct inside_queue {
	uint16_t count;
	struct rte_mbuf *frames[ETHDEV_SEND_MAX];
};

// A bucket of frames that may go to an exception interface.
struct inside_bucket {
	uint64_t tokens; // millionths
};

struct ethdev_worker {
	alignas(RTE_CACHE_LINE_SIZE) struct ethdev *devices;
	unsigned index;
	unsigned turns;
	unsigned next; // source that ethdev_receive() asks first
	bool has_entered; // its thread is known to EAL
	struct ticks ticks;
	uint64_t now_us, second_us; // of this turn; of the last look at the devices
	struct rte_mempool *buffers, *reserve;
	struct rte_mbuf *spares[ETHDEV_BURST_MAX]; // taken from `buffers` in advance
	unsigned spare_count;
	struct rte_ring *received, *to_send; // from other workers; NULL with one worker
	struct inside_queue *queues; // of each port
	struct inside_bucket buckets[ETHDEV_PORTS_MAX][ETHDEV_CLASS_OTHER + 1];
	struct ethdev_stats stats;
};

struct ethdev {
	unsigned worker_count, port_count, all_count; // ports; and with exception interfaces
	uint64_t seed; // of the dispatch hash
	struct sizes sizes;
	struct inside_port ports[INSIDE_PORTS_MAX];
	uint16_t index_of[RTE_MAX_ETHPORTS]; // from DPDK's id, or INSIDE_NONE
	bool is_up[ETHDEV_PORTS_MAX]; // by the last look; worker 0
	uint8_t told[ETHDEV_PORTS_MAX]; // by ethdev_link_changed(): 0, INSIDE_UP or INSIDE_DOWN
	uint64_t seen[ETHDEV_COUNTERS_COUNT]; // of the devices' own counters; worker 0
	struct ethdev_worker *workers; // worker_count of them
};

// Count on this worker. It is the only writer.
static inline void inside_count(struct ethdev_worker *w, enum ethdev_counter counter, uint64_t n)
{
	_Atomic uint64_t *at = &w->stats.counters[counter];
	atomic_store_explicit(
		at, atomic_load_explicit(at, memory_order_relaxed) + n, memory_order_relaxed);
}

// Free frames that nobody takes, and count them.
static inline void inside_drop(struct ethdev_worker *w, struct rte_mbuf **frames, unsigned count,
	enum ethdev_counter counter)
{
	if (count > 0) {
		rte_pktmbuf_free_bulk(frames, count);
		inside_count(w, counter, count);
	}
}

// Open the exception interface of port `index`, if its plan wants one. Returns 0 or -errno.
int inside_open_exception(struct ethdev *devices, const struct ethdev_plan *plan, unsigned index,
	char error[ETHDEV_ERROR_BYTES]);

// Pass on what the exception interfaces sent, and refill the buckets. exception.c
void inside_exception_turn(struct ethdev_worker *w, uint64_t passed_us);

// Look at links and at what the devices count. watch.c
void inside_watch(struct ethdev_worker *w);

// Whether worker `w` has a receive, or a send queue of a port.
static inline bool inside_receives(const struct ethdev_worker *w, const struct inside_port *port)
{
	return w->index < port->shown.rx_queues;
}

static inline bool inside_sends(const struct ethdev_worker *w, const struct inside_port *port)
{
	return w->index < port->shown.tx_queues;
}
