// One ring a worker, which all others fill. Two instances on one host share no memory, so a ring's
// name need only be its own within the process.

#include "dataplane/net/steer.h"

#include "dataplane/net/inside.h"
#include "dataplane/net/share.h"

#include <rte_errno.h>
#include <rte_mbuf.h>
#include <rte_ring.h>
#include <rte_ring_elem.h>

#include <assert.h>
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>

struct steer {
	unsigned count;
	struct rte_ring *rings[]; // of each worker
};

int steer_create(unsigned worker_count, struct steer **steer)
{
	size_t bytes = sizeof(struct steer) + worker_count * sizeof(struct rte_ring *);
	struct steer *s = calloc(1, bytes); // COLD: at start
	if (!s)
		return -ENOMEM;
	s->count = worker_count;
	for (unsigned i = 0; i < worker_count; i++) {
		char name[RTE_RING_NAMESIZE];
		snprintf(name, sizeof(name), "sluice_steer_%u", i);
		s->rings[i] = rte_ring_create_elem(name, sizeof(struct steer_item),
			STEER_RING_FRAMES, SOCKET_ID_ANY, RING_F_SC_DEQ | RING_F_EXACT_SZ);
		if (!s->rings[i]) {
			int ret = -rte_errno;
			steer_destroy(s);
			return ret;
		}
	}
	*steer = s;
	return 0;
}

void steer_destroy(struct steer *s)
{
	if (!s)
		return;
	for (unsigned i = 0; i < s->count && s->rings[i]; i++) {
		struct steer_item item;
		while (rte_ring_dequeue_elem(s->rings[i], &item, sizeof(item)) == 0)
			rte_pktmbuf_free(item.frame);
		rte_ring_free(s->rings[i]);
	}
	free(s);
}

void steer_push(struct net *n, unsigned worker, struct rte_mbuf *frame, unsigned hops)
{
	struct steer *s = n->shared->steer;
	assert(worker < s->count && worker != n->index);
	struct steer_item item = {frame, hops};
	if (rte_ring_mp_enqueue_elem(s->rings[worker], &item, sizeof(item)) == 0) {
		net_count(n, NET_steered);
		return;
	}
	net_count(n, NET_steer_full);
	ethdev_free(n->device, &frame, 1);
}

void steer_pass(struct net *n, struct rte_mbuf *frame, unsigned hops)
{
	assert(hops < steer_hops_max(n));
	// It need not be summed again.
	frame->ol_flags |= RTE_MBUF_F_RX_IP_CKSUM_GOOD | RTE_MBUF_F_RX_L4_CKSUM_GOOD;
	steer_push(n, (n->index + 1) % n->shared->steer->count, frame, hops + 1);
}

unsigned steer_hops_max(const struct net *n)
{
	return n->shared->steer->count - 1;
}

unsigned steer_pop(struct net *n, struct steer_item *items, unsigned max)
{
	return rte_ring_sc_dequeue_burst_elem(
		n->shared->steer->rings[n->index], items, sizeof(*items), max, NULL);
}
