// Frames in: from this worker's queues of all ports, and from those who receive for it.
//
// Each call begins with another source than the last, so that a busy port starves none. A frame is
// finished (finish.h) by the worker that took it from the device, before anybody else sees it.

#include "drivers/ethdev/dispatch.h"
#include "drivers/ethdev/finish.h"
#include "drivers/ethdev/inside.h"

#include <rte_ethdev.h>
#include <rte_ring.h>

#include <assert.h>

#define FETCH_BYTES 448u // of a buffer: an answer to a poll, with its headers

static_assert(ETHDEV_WORKERS_MAX <= 64, "owners are bits");

// Returns how many are whole; they move together.
static unsigned finish(struct ethdev_worker *w, const struct inside_port *port,
	struct rte_mbuf **frames, unsigned count)
{
	unsigned kept = 0;
	uint64_t bytes = 0;
	for (unsigned i = 0; i < count; i++) {
		if (unlikely(!finish_received(port, frames[i]))) {
			inside_drop(w, &frames[i], 1, ETHDEV_device_errors);
			continue;
		}
		frames[i]->port = port->shown.id; // net_ring leaves what was there
		bytes += rte_pktmbuf_data_len(frames[i]);
		frames[kept++] = frames[i];
	}
	inside_count(w, ETHDEV_frames_in, kept);
	inside_count(w, ETHDEV_bytes_in, bytes);
	return kept;
}

static void hand_over(
	struct ethdev_worker *w, unsigned owner, struct rte_mbuf **frames, unsigned count)
{
	struct rte_ring *ring = w->devices->workers[owner].received;
	unsigned taken = rte_ring_enqueue_burst(ring, (void **)frames, count, NULL);
	inside_count(w, ETHDEV_dispatched, taken);
	inside_drop(w, frames + taken, count - taken, ETHDEV_dispatch_full);
}

// Keep what is ours in `frames`, in order; hand over the rest. Returns how many are ours.
static unsigned dispatch(struct ethdev_worker *w, struct rte_mbuf **frames, unsigned count)
{
	uint8_t owners[ETHDEV_BURST_MAX];
	uint64_t others = 0;
	for (unsigned i = 0; i < count; i++) {
		owners[i] = (uint8_t)dispatch_owner(
			frames[i], w->devices->seed, w->devices->worker_count);
		others |= UINT64_C(1) << owners[i];
	}
	others &= ~(UINT64_C(1) << w->index);
	for (; others; others &= others - 1) {
		struct rte_mbuf *theirs[ETHDEV_BURST_MAX];
		unsigned owner = (unsigned)__builtin_ctzll(others), theirs_count = 0;
		for (unsigned i = 0; i < count; i++)
			if (owners[i] == owner)
				theirs[theirs_count++] = frames[i];
		hand_over(w, owner, theirs, theirs_count);
	}
	unsigned kept = 0;
	for (unsigned i = 0; i < count; i++)
		if (owners[i] == w->index)
			frames[kept++] = frames[i];
	return kept;
}

static unsigned receive_port(struct ethdev_worker *w, const struct inside_port *port,
	struct rte_mbuf **frames, unsigned max)
{
	if (!inside_receives(w, port))
		return 0;
	unsigned count =
		rte_eth_rx_burst(port->shown.id, (uint16_t)w->index, frames, (uint16_t)max);
	if (count == 0)
		return 0;
	count = finish(w, port, frames, count);
	return port->shown.is_dispatched ? dispatch(w, frames, count) : count;
}

unsigned ethdev_receive(struct ethdev_worker *w, struct rte_mbuf **frames, unsigned max)
{
	const struct ethdev *devices = w->devices;
	unsigned sources = devices->port_count + (w->received != NULL), count = 0;
	assert(max >= ETHDEV_ROOM_MIN);
	if (max > ETHDEV_BURST_MAX)
		max = ETHDEV_BURST_MAX;
	for (unsigned i = 0; i < sources && max - count >= ETHDEV_ROOM_MIN; i++) {
		unsigned source = w->next + i < sources ? w->next + i : w->next + i - sources;
		struct rte_mbuf **at = frames + count;
		count += source < devices->port_count
				 ? receive_port(w, &devices->ports[source], at, max - count)
				 : rte_ring_dequeue_burst(
					   w->received, (void **)at, max - count, NULL);
	}
	w->next = w->next + 1 < sources ? w->next + 1 : 0;
	return count;
}

// Have a buffer brought into the caches, to be written into: a store that misses holds up all that
// follow it.
static void fetch(struct rte_mbuf *frame)
{
	char *data = rte_pktmbuf_mtod(frame, char *);
	__builtin_prefetch(&frame->cacheline1, 1);
	for (unsigned i = 0; i < FETCH_BYTES; i += RTE_CACHE_LINE_SIZE)
		__builtin_prefetch(data + i, 1);
}

// One of those that were taken from the pool together; the pool's last ones come one by one.
static struct rte_mbuf *take_spare(struct ethdev_worker *w)
{
	if (w->spare_count == 0) {
		if (rte_pktmbuf_alloc_bulk(w->buffers, w->spares, ETHDEV_BURST_MAX) < 0)
			return rte_pktmbuf_alloc(w->buffers);
		w->spare_count = ETHDEV_BURST_MAX;
	}
	struct rte_mbuf *frame = w->spares[--w->spare_count];
	if (w->spare_count > 0)
		fetch(w->spares[w->spare_count - 1]);
	return frame;
}

struct rte_mbuf *ethdev_take(struct ethdev_worker *w, bool is_control)
{
	struct rte_mbuf *frame = take_spare(w);
	if (likely(frame))
		return frame;
	inside_count(w, ETHDEV_buffer_none, !is_control);
	if (!is_control)
		return NULL;
	frame = rte_pktmbuf_alloc(w->reserve);
	inside_count(w, ETHDEV_reserve_none, !frame);
	return frame;
}

void ethdev_free(struct ethdev_worker *w, struct rte_mbuf **frames, unsigned count)
{
	(void)w;
	rte_pktmbuf_free_bulk(frames, count); // skips NULLs
}
