// Frames out: a queue of each port in each worker, emptied into the device by the flush.
//
// A worker that has no send queue of a port hands its frames to one that has, over that worker's
// ring; they leave with its flush.

#include "drivers/ethdev/finish.h"
#include "drivers/ethdev/inside.h"

#include <rte_ethdev.h>
#include <rte_ring.h>

#include <assert.h>
#include <string.h>

#define TURNS_PER_REAP 256u // empty turns until a device may take back what it has sent

static void transmit(
	struct ethdev_worker *w, const struct inside_port *port, struct inside_queue *queue)
{
	uint16_t id = port->shown.id, sent = 0, now, all = queue->count;
	uint64_t bytes = 0;
	for (uint16_t i = 0; i < all; i++)
		bytes += rte_pktmbuf_data_len(queue->frames[i]);
	if (port->shown.fills_l4)
		all = rte_eth_tx_prepare(id, (uint16_t)w->index, queue->frames, all);
	do { // some take no more than a part at once
		now = rte_eth_tx_burst(
			id, (uint16_t)w->index, queue->frames + sent, (uint16_t)(all - sent));
		sent = (uint16_t)(sent + now);
	} while (now > 0 && sent < all);
	for (uint16_t i = sent; i < queue->count; i++)
		bytes -= rte_pktmbuf_data_len(queue->frames[i]);
	inside_count(w, ETHDEV_frames_out, sent);
	inside_count(w, ETHDEV_bytes_out, bytes);
	if (sent == all && all < queue->count) // one that it refuses must not stop the others
		inside_drop(w, &queue->frames[sent++], 1, ETHDEV_transmit_refused);
	queue->count = (uint16_t)(queue->count - sent);
	memmove(queue->frames, queue->frames + sent, queue->count * sizeof(queue->frames[0]));
}

static void push(struct ethdev_worker *w, unsigned index, struct rte_mbuf *frame)
{
	struct inside_queue *queue = &w->queues[index];
	if (unlikely(queue->count == ETHDEV_SEND_MAX))
		transmit(w, &w->devices->ports[index], queue);
	if (unlikely(queue->count == ETHDEV_SEND_MAX))
		inside_drop(w, &frame, 1, ETHDEV_transmit_full);
	else
		queue->frames[queue->count++] = frame;
}

static void hand_over(
	struct ethdev_worker *w, const struct inside_port *port, struct rte_mbuf *frame)
{
	unsigned sender = w->index % port->shown.tx_queues;
	if (rte_ring_enqueue(w->devices->workers[sender].to_send, frame) == 0)
		inside_count(w, ETHDEV_dispatched, 1);
	else
		inside_drop(w, &frame, 1, ETHDEV_dispatch_full);
}

void ethdev_send(struct ethdev_worker *w, uint16_t id, struct rte_mbuf *frame)
{
	assert(id < RTE_MAX_ETHPORTS && w->devices->index_of[id] != INSIDE_NONE);
	unsigned index = w->devices->index_of[id];
	const struct inside_port *port = &w->devices->ports[index];
	finish_sent(port, frame);
	frame->port = id;
	if (likely(inside_sends(w, port)))
		push(w, index, frame);
	else
		hand_over(w, port, frame);
}

static void take_over(struct ethdev_worker *w)
{
	struct rte_mbuf *frames[ETHDEV_BURST_MAX];
	unsigned count;
	if (!w->to_send)
		return;
	count = rte_ring_dequeue_burst(w->to_send, (void **)frames, ETHDEV_BURST_MAX, NULL);
	for (unsigned i = 0; i < count; i++)
		push(w, w->devices->index_of[frames[i]->port], frames[i]);
}

void ethdev_flush(struct ethdev_worker *w)
{
	bool may_reap = ++w->turns % TURNS_PER_REAP == 0;
	take_over(w);
	for (unsigned i = 0; i < w->devices->all_count; i++) {
		const struct inside_port *port = &w->devices->ports[i];
		if (inside_sends(w, port) && (w->queues[i].count > 0 || may_reap))
			transmit(w, port, &w->queues[i]);
	}
}
