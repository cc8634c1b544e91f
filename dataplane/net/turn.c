// What the worker wrote since the last turn leaves first, in one flush. Then a burst is received
// and read frame by frame: segments are gathered and go to TCP together; everything else is dealt
// with as it is met.
//
// A burst that TCP could not take whole, because there was no room for its events, is finished
// before the next one is received.

#include "dataplane/net/turn.h"

#include "dataplane/net/announce.h"
#include "dataplane/net/arp.h"
#include "dataplane/net/icmp.h"
#include "dataplane/net/inside.h"
#include "dataplane/net/mld.h"
#include "dataplane/net/nd.h"
#include "dataplane/net/share.h"

#include <rte_mbuf.h>
#include <rte_prefetch.h>

#include <assert.h>
#include <string.h>

#define PREFETCH_AHEAD 4u

static void let_go(struct net *n);
static void receive(struct net *n);
static void read_frame(struct net *n, struct rte_mbuf *frame, unsigned hops);
static void tend(struct net *n);

int turn_poll(
	struct stream_driver *d, struct stream_event *events, int events_max, uint32_t wait_us)
{
	(void)wait_us;
	struct net *n = (struct net *)d;
	struct net_burst *burst = &n->burst;
	tcp_flush(n->tcp);
	ethdev_flush(n->device);
	d->now_us = ethdev_turn(n->device);
	tcp_turn(n->tcp, d->now_us, events, events_max);
	let_go(n);
	d->taken = 0;
	if (burst->count == 0)
		receive(n);
	burst->taken +=
		tcp_input(n->tcp, burst->segments + burst->taken, burst->count - burst->taken);
	tcp_due(n->tcp);
	if (n->index == 0 && d->now_us >= n->tend_us)
		tend(n);
	return tcp_event_count(n->tcp);
}

// Free the frames whose segments TCP took in the last turn: nobody reads them any more.
static void let_go(struct net *n)
{
	struct net_burst *burst = &n->burst;
	ethdev_free(n->device, burst->frames + burst->held, burst->taken - burst->held);
	burst->held = burst->taken;
	if (burst->taken == burst->count)
		burst->count = burst->taken = burst->held = 0;
}

static void receive(struct net *n)
{
	struct rte_mbuf *frames[ETHDEV_BURST_MAX];
	unsigned count = ethdev_receive(n->device, frames, ETHDEV_BURST_MAX);
	for (unsigned i = 0; i < count; i++) {
		if (i + PREFETCH_AHEAD < count)
			rte_prefetch0(rte_pktmbuf_mtod(frames[i + PREFETCH_AHEAD], void *));
		read_frame(n, frames[i], 0);
	}
	n->driver.taken = count;
	if (steer_hops_max(n) == 0)
		return;
	struct steer_item items[NET_STEERED_MAX];
	count = steer_pop(n, items, NET_STEERED_MAX);
	for (unsigned i = 0; i < count; i++)
		read_frame(n, items[i].frame, (unsigned)items[i].hops);
	n->driver.taken += count;
}

static void drop(struct net *n, struct rte_mbuf *frame)
{
	ethdev_free(n->device, &frame, 1);
}

// It is not for sluice.
static void leave(struct net *n, struct rte_mbuf *frame, const struct net_port_plan *port,
	enum ethdev_class class)
{
	net_count(n, NET_not_ours);
	if (port->kernel_sees_frames)
		drop(n, frame);
	else
		ethdev_except(n->device, frame, class);
}

// A segment, whose fields stand in the burst already: keep it there, or send it where it belongs.
static void keep(struct net *n, struct rte_mbuf *frame, unsigned hops)
{
	struct net_burst *burst = &n->burst;
	const struct tcp_segment *segment = &burst->segments[burst->count];
	const struct net_port_plan *port = &n->plan.ports[segment->hop.port];
	if (port->has_exception && !net_listens(n, &segment->local)) {
		leave(n, frame, port, ETHDEV_CLASS_TCP);
		return;
	}
	if (hops > 0 && hops < steer_hops_max(n) &&
		tcp_owns(n->tcp, segment) != TCP_OWNER_CONNECTION) {
		steer_pass(n, frame, hops);
		return;
	}
	burst->frames[burst->count] = frame;
	burst->hops[burst->count] = (uint8_t)hops;
	burst->count++;
}

// ARP, neighbour discovery and ICMP: worker 0's.
static void control(struct net *n, struct rte_mbuf *buffer, const struct frame *frame,
	const struct tcp_segment *segment, unsigned hops)
{
	if (n->index != 0 && hops == 0) {
		steer_push(n, 0, buffer, 0);
		return;
	}
	enum net_fate fate = frame->kind == FRAME_IS_ARP ? arp_input(n, frame, &segment->hop)
							 : icmp_input(n, frame, segment, hops);
	if (fate == NET_FATE_PASS)
		steer_pass(n, buffer, hops);
	else if (fate == NET_FATE_NOT_OURS)
		leave(n, buffer, &n->plan.ports[segment->hop.port], frame->class);
	else
		drop(n, buffer);
}

// What the device, or another worker, has verified. NONE is what a kernel on this machine sent,
// leaving the sum to hardware that there is not: it never was on a wire.
static struct frame_checked checked(const struct rte_mbuf *frame)
{
	uint64_t l4 = frame->ol_flags & RTE_MBUF_F_RX_L4_CKSUM_MASK;
	return (struct frame_checked){.ip = (frame->ol_flags & RTE_MBUF_F_RX_IP_CKSUM_MASK) ==
					    RTE_MBUF_F_RX_IP_CKSUM_GOOD,
		.l4 = l4 == RTE_MBUF_F_RX_L4_CKSUM_GOOD || l4 == RTE_MBUF_F_RX_L4_CKSUM_NONE};
}

static void read_frame(struct net *n, struct rte_mbuf *buffer, unsigned hops)
{
	uint8_t index = n->port_of[buffer->port];
	assert(index < n->plan.port_count);
	const struct net_port_plan *port = &n->plan.ports[index];
	if (buffer->nb_segs != 1) {
		net_count(n, NET_frame_pieces);
		drop(n, buffer);
		return;
	}
	struct span bytes = {rte_pktmbuf_mtod(buffer, char *), buffer->data_len};
	struct tcp_segment *segment = &n->burst.segments[n->burst.count];
	struct frame frame;
	frame_read(port, index, bytes, checked(buffer), &frame, segment);
	switch (frame.kind) {
	case FRAME_IS_SEGMENT:
		keep(n, buffer, hops);
		return;
	case FRAME_IS_DROPPED:
		net_count(n, frame.drop);
		drop(n, buffer);
		return;
	case FRAME_IS_OTHER:
		leave(n, buffer, port, frame.class);
		return;
	case FRAME_IS_ARP:
	case FRAME_IS_ICMP:
	case FRAME_IS_ICMP6:
		control(n, buffer, &frame, segment, hops);
		return;
	}
}

bool turn_elsewhere(void *ctx, const struct tcp_segment *segment)
{
	struct net *n = ctx;
	struct net_burst *burst = &n->burst;
	ptrdiff_t i = segment - burst->segments;
	assert(i >= burst->taken && i < burst->count && burst->frames[i]);
	if (steer_hops_max(n) == 0 || burst->hops[i] > 0 ||
		!n->plan.ports[segment->hop.port].has_rss)
		return false;
	steer_pass(n, burst->frames[i], 0);
	burst->frames[i] = NULL;
	return true;
}

// Questions to gateways, and our own announcements. Worker 0 only.
static void tend(struct net *n)
{
	bool is_first = n->tend_us == 0;
	n->tend_us = n->driver.now_us + NET_TEND_US;
	for (uint16_t port = 0; port < n->plan.port_count; port++) {
		bool is_up, has_changed = ethdev_link_changed(n->device, port, &is_up);
		if (is_first || (has_changed && is_up))
			announce_port(n, port, is_first);
	}
	announce_due(n);
	mld_due(n);
	struct gateway_question question;
	if (!gateway_due(n->shared->gateways, n->driver.now_us, &question))
		return;
	if (question.is_newly_silent)
		net_count(n, NET_gateway_silent);
	const uint8_t *mac = question.is_known ? question.mac : NULL;
	if (ip_is_v4(question.ip))
		arp_ask(n, question.port, question.ip, mac);
	else
		nd_ask(n, question.port, question.ip, mac);
}
