// The arithmetic of buffers.
//
// A buffer is taken by a worker, lies in one place at a time, and comes back; so a pool never runs
// dry if it has as many buffers as all places together hold: descriptors of the queues, what waits
// for a flush, dispatch rings, a burst in hand, caches. Answers are written into buffers of the
// worker; but one who answers in the received buffer may, so that a port's buffers can lie in the
// send queues of all ports too. Nothing above keeps a buffer beyond its turn, so the number of
// connections matters only through the length of the queues: one frame of every 32nd connection can
// come between two turns. With many connections that would be more than any turn leaves lying: it
// is over in a fifth of a millisecond, in which even a million frames a second are 200, so ten
// times that is enough.

#include "drivers/ethdev/sizes.h"

#include <rte_ether.h>
#include <rte_ring.h>

#include <assert.h>
#include <string.h>

#define QUEUE_MIN 512u
#define QUEUE_MAX 2048u
#define CONNECTIONS_PER_DESCRIPTOR 32u
// net_af_xdp fills rings of its own length and copies what it sends into buffers of the port.
#define XDP_BUFFERS_PER_QUEUE 8192u
#define GAPS 64u
#define PAGE_BYTES 4096u
#define FRAME_OVERHEAD (RTE_ETHER_HDR_LEN + 2 * 4 + RTE_ETHER_CRC_LEN) // two VLAN tags

static uint32_t power_of_two(uint32_t wanted, uint32_t min, uint32_t max)
{
	uint32_t value = min;
	while (value < wanted && value < max)
		value *= 2;
	return value;
}

uint16_t sizes_mtu(const struct ethdev_port_plan *port)
{
	return port->mtu ? port->mtu : RTE_ETHER_MTU;
}

// At least what drivers take for granted, so that an ordinary frame needs one buffer. net_af_packet
// copies gaps too.
static uint32_t buffer_bytes(uint16_t mtu)
{
	uint32_t bytes = RTE_PKTMBUF_HEADROOM + RTE_ALIGN(mtu + FRAME_OVERHEAD + GAPS, 128);
	return bytes > RTE_MBUF_DEFAULT_BUF_SIZE ? bytes : RTE_MBUF_DEFAULT_BUF_SIZE;
}

static uint32_t in_hand(const struct sizes *sizes)
{
	return 2 * ETHDEV_BURST_MAX + SIZES_BUFFER_CACHE * 3 / 2 + 2 * sizes->ring_len;
}

void sizes_of(const struct ethdev_plan *plan, struct sizes *sizes)
{
	assert(plan->worker_count > 0 && plan->worker_count <= ETHDEV_WORKERS_MAX);
	assert(plan->port_count > 0 && plan->port_count <= ETHDEV_PORTS_MAX);
	uint32_t each = plan->connections / plan->worker_count / CONNECTIONS_PER_DESCRIPTOR;
	uint32_t queue = power_of_two(each, QUEUE_MIN, QUEUE_MAX);
	memset(sizes, 0, sizeof(*sizes));
	sizes->receive_len = sizes->send_len = queue;
	sizes->ring_len = plan->worker_count > 1 ? queue : 0;
	// An exception interface is a port too, with one short queue whose frames lie in the port's
	// buffers.
	uint32_t sending = plan->port_count * (queue + SIZES_EXCEPTION_LEN + 2 * ETHDEV_SEND_MAX);
	sizes->send_buffers = sending + in_hand(sizes);
	sizes->send_bytes = RTE_MBUF_DEFAULT_BUF_SIZE;
	for (unsigned i = 0; i < plan->port_count; i++) {
		const struct ethdev_port_plan *port = &plan->ports[i];
		bool is_xdp = strncmp(port->device, "net_af_xdp", 10) == 0;
		uint32_t queues = queue + (is_xdp ? XDP_BUFFERS_PER_QUEUE : 0);
		sizes->receive_buffers[i] =
			plan->worker_count * (queues + sending + in_hand(sizes)) +
			SIZES_EXCEPTION_LEN;
		sizes->receive_bytes[i] = buffer_bytes(sizes_mtu(port));
		if (sizes->receive_bytes[i] > sizes->send_bytes)
			sizes->send_bytes = sizes->receive_bytes[i];
	}
}

// A buffer of the pool: its data, the mbuf, the header of the pool's element, and its alignment.
// The pool lets none lie across two pages, and all are larger than half a small one.
static uint64_t pool_bytes(uint64_t count, uint64_t data_bytes, bool has_hugepages)
{
	uint64_t element = RTE_ALIGN(data_bytes + sizeof(struct rte_mbuf), RTE_CACHE_LINE_SIZE) +
			   2 * RTE_CACHE_LINE_SIZE;
	if (!has_hugepages)
		element = RTE_ALIGN(element, PAGE_BYTES);
	return count * element + 2 * (count + 1) * sizeof(void *); // its ring is a power of two
}

#define DESCRIPTOR_BYTES 128u // and what a driver keeps beside it

uint64_t ethdev_bytes(const struct ethdev_plan *plan)
{
	struct sizes sizes;
	sizes_of(plan, &sizes);
	uint64_t each = pool_bytes(sizes.send_buffers + SIZES_RESERVE, sizes.send_bytes,
				plan->has_hugepages) +
			2 * (uint64_t)sizes.ring_len * sizeof(void *) +
			2 * (uint64_t)plan->port_count * ETHDEV_SEND_MAX * sizeof(void *);
	uint64_t queues = (uint64_t)sizes.receive_len + sizes.send_len;
	uint64_t total = plan->worker_count * each;
	for (unsigned i = 0; i < plan->port_count; i++)
		total += pool_bytes(sizes.receive_buffers[i], sizes.receive_bytes[i],
				 plan->has_hugepages) +
			 2 * plan->worker_count * queues * DESCRIPTOR_BYTES;
	return total;
}
