// Opening and closing: ports first, then their exception interfaces, then what workers need.
//
// Everything is allocated here. Closing goes the other way, also after a failure half way.

#include "drivers/ethdev/ethdev.h"

#include "drivers/ethdev/inside.h"
#include "drivers/ethdev/port.h"

#include <rte_errno.h>
#include <rte_ethdev.h>
#include <rte_lcore.h>
#include <rte_log.h>
#include <rte_ring.h>

#include <bpf/libbpf.h>
#include <xdp/libxdp.h>

#include <assert.h>
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/random.h>

#define SECOND_US 1000000u

static int no_memory(char error[ETHDEV_ERROR_BYTES], uint32_t count, uint32_t bytes)
{
	snprintf(error, ETHDEV_ERROR_BYTES,
		"%u buffers of %u bytes: not enough memory of DPDK's: %s", count, bytes,
		strerror(rte_errno));
	return rte_errno ? -rte_errno : -ENOMEM;
}

// On the device's node where it has memory, else anywhere.
static struct rte_mempool *make_pool(
	const char *kind, unsigned index, uint32_t count, uint32_t bytes, int socket)
{
	char name[RTE_MEMPOOL_NAMESIZE];
	uint32_t cache = count > 4 * SIZES_BUFFER_CACHE ? SIZES_BUFFER_CACHE : 0;
	snprintf(name, sizeof(name), "ethdev_%s_%u", kind, index);
	struct rte_mempool *pool =
		rte_pktmbuf_pool_create(name, count, cache, 0, (uint16_t)bytes, socket);
	if (!pool && socket != SOCKET_ID_ANY)
		pool = rte_pktmbuf_pool_create(
			name, count, cache, 0, (uint16_t)bytes, SOCKET_ID_ANY);
	return pool;
}

// Probe, buffers, start; all undone on failure.
static int try_port(struct ethdev *devices, const struct ethdev_plan *plan, unsigned index,
	char error[ETHDEV_ERROR_BYTES])
{
	const struct ethdev_port_plan *port_plan = &plan->ports[index];
	const struct sizes *sizes = &devices->sizes;
	struct inside_port *port = &devices->ports[index];
	int ret = port_probe(
		port, port_plan->device, sizes_mtu(port_plan), plan->worker_count, error);
	if (ret < 0)
		return ret;
	if (devices->index_of[port->shown.id] != INSIDE_NONE) {
		snprintf(error, ETHDEV_ERROR_BYTES, "port %s: is given twice", port_plan->device);
		return -EEXIST;
	}
	uint32_t count = sizes->receive_buffers[index], bytes = sizes->receive_bytes[index];
	int socket = rte_eth_dev_socket_id(port->shown.id);
	port->buffers = make_pool("port", index, count, bytes, socket);
	if (port->buffers)
		ret = port_start(port, port_plan, sizes, plan->worker_count, error);
	else
		ret = no_memory(error, count, bytes);
	if (ret < 0) {
		port_close(port);
		rte_mempool_free(port->buffers);
	}
	return ret;
}

// A process that had given up root could not take its XDP program along (README.md); closing takes
// it away now, and the second attempt finds none.
static int open_port(struct ethdev *devices, const struct ethdev_plan *plan, unsigned index,
	char error[ETHDEV_ERROR_BYTES])
{
	bool is_xdp = strncmp(plan->ports[index].device, "net_af_xdp", 10) == 0;
	rte_log_set_level_pattern("pmd.net.af_xdp", RTE_LOG_CRIT);
	int ret = try_port(devices, plan, index, error);
	rte_log_set_level_pattern("pmd.net.af_xdp", RTE_LOG_ERR);
	if (ret == -EINVAL && is_xdp)
		ret = try_port(devices, plan, index, error);
	if (ret < 0)
		return ret;
	devices->index_of[devices->ports[index].shown.id] = (uint16_t)index;
	devices->port_count = devices->all_count = index + 1;
	return 0;
}

static struct rte_ring *make_ring(const char *kind, unsigned index, uint32_t len)
{
	char name[RTE_RING_NAMESIZE];
	snprintf(name, sizeof(name), "ethdev_%s_%u", kind, index);
	return rte_ring_create(name, len, SOCKET_ID_ANY, RING_F_SC_DEQ);
}

static int make_worker(struct ethdev *devices, unsigned index, char error[ETHDEV_ERROR_BYTES])
{
	const struct sizes *sizes = &devices->sizes;
	struct ethdev_worker *w = &devices->workers[index];
	int socket = rte_eth_dev_socket_id(devices->ports[0].shown.id);
	w->devices = devices;
	w->index = index;
	w->buffers = make_pool("send", index, sizes->send_buffers, sizes->send_bytes, socket);
	w->reserve = make_pool("reserve", index, SIZES_RESERVE, sizes->send_bytes, socket);
	if (!w->buffers || !w->reserve)
		return no_memory(error, sizes->send_buffers, sizes->send_bytes);
	w->queues = calloc(devices->all_count, sizeof(*w->queues));
	if (devices->worker_count > 1) {
		w->received = make_ring("received", index, sizes->ring_len);
		w->to_send = make_ring("to_send", index, sizes->ring_len);
	}
	if (w->queues && (devices->worker_count == 1 || (w->received && w->to_send)))
		return 0;
	snprintf(error, ETHDEV_ERROR_BYTES, "no memory for the queues of worker %u", index);
	return -ENOMEM;
}

static int open_all(
	struct ethdev *devices, const struct ethdev_plan *plan, char error[ETHDEV_ERROR_BYTES])
{
	int ret = 0;
	for (unsigned i = 0; ret == 0 && i < plan->port_count; i++)
		ret = open_port(devices, plan, i, error);
	for (unsigned i = 0; ret == 0 && i < plan->port_count; i++)
		ret = inside_open_exception(devices, plan, i, error);
	for (unsigned i = 0; ret == 0 && i < plan->worker_count; i++)
		ret = make_worker(devices, i, error);
	return ret;
}

static struct ethdev *allocate(const struct ethdev_plan *plan)
{
	struct ethdev *devices = calloc(1, sizeof(*devices));
	if (!devices)
		return NULL;
	size_t bytes = plan->worker_count * sizeof(struct ethdev_worker);
	devices->workers = aligned_alloc(RTE_CACHE_LINE_SIZE, bytes);
	if (!devices->workers) {
		free(devices);
		return NULL;
	}
	memset(devices->workers, 0, bytes);
	memset(devices->index_of, 0xff, sizeof(devices->index_of));
	devices->worker_count = plan->worker_count;
	return devices;
}

// What libraries write to the terminal by themselves, and net_tap's complaint, each time, that a
// kernel has no queueing discipline for flow rules, which nobody asks for.
static void be_quiet(void)
{
	libbpf_set_print(NULL);
	libxdp_set_print(NULL);
	rte_log_set_level_pattern("pmd.net.tap", RTE_LOG_CRIT);
}

int ethdev_open(
	const struct ethdev_plan *plan, struct ethdev **devices, char error[ETHDEV_ERROR_BYTES])
{
	struct ethdev *made = allocate(plan);
	snprintf(error, ETHDEV_ERROR_BYTES, "no memory");
	if (!made)
		return -ENOMEM;
	be_quiet();
	sizes_of(plan, &made->sizes);
	int ret = -EIO;
	if (getrandom(&made->seed, sizeof(made->seed), 0) == (ssize_t)sizeof(made->seed))
		ret = open_all(made, plan, error);
	if (ret < 0) {
		ethdev_close(made);
		return ret;
	}
	*devices = made;
	return 0;
}

static void empty_ring(struct rte_ring *ring)
{
	void *frame;
	while (ring && rte_ring_dequeue(ring, &frame) == 0)
		rte_pktmbuf_free(frame);
	rte_ring_free(ring);
}

static void free_worker(struct ethdev_worker *w)
{
	for (unsigned i = 0; w->queues && i < w->devices->all_count; i++)
		rte_pktmbuf_free_bulk(w->queues[i].frames, w->queues[i].count);
	free(w->queues);
	empty_ring(w->received);
	empty_ring(w->to_send);
}

void ethdev_close(struct ethdev *devices)
{
	if (!devices)
		return;
	for (unsigned i = 0; i < devices->worker_count; i++)
		free_worker(&devices->workers[i]);
	// Without its privileges a process cannot take its XDP program along; see the README.
	rte_log_set_level_pattern("pmd.net.af_xdp", RTE_LOG_CRIT);
	for (unsigned i = devices->all_count; i-- > 0;)
		port_close(&devices->ports[i]);
	// Devices may hold buffers of any pool until they are closed.
	for (unsigned i = 0; i < devices->worker_count; i++) {
		rte_mempool_free(devices->workers[i].buffers);
		rte_mempool_free(devices->workers[i].reserve);
	}
	for (unsigned i = 0; i < devices->port_count; i++)
		rte_mempool_free(devices->ports[i].buffers);
	free(devices->workers);
	free(devices);
}

unsigned ethdev_port_count(const struct ethdev *devices)
{
	return devices->port_count;
}

const struct ethdev_port *ethdev_port(const struct ethdev *devices, unsigned port)
{
	assert(port < devices->port_count);
	return &devices->ports[port].shown;
}

struct ethdev_worker *ethdev_worker(struct ethdev *devices, unsigned index)
{
	assert(index < devices->worker_count);
	return &devices->workers[index];
}

// The thread becomes one of EAL's, so that pools keep a cache for it.
static void enter(struct ethdev_worker *w)
{
	if (rte_lcore_id() == LCORE_ID_ANY)
		rte_thread_register(); // without, it goes slower
	ticks_init(&w->ticks, ticks_is_invariant());
	w->now_us = ticks_now_us(&w->ticks) - SECOND_US; // so that buckets are full
	w->has_entered = true;
}

uint64_t ethdev_turn(struct ethdev_worker *w)
{
	if (unlikely(!w->has_entered))
		enter(w);
	uint64_t before_us = w->now_us;
	w->now_us = ticks_now_us(&w->ticks);
	inside_exception_turn(w, w->now_us - before_us);
	if (w->index == 0 && w->now_us - w->second_us >= SECOND_US) {
		w->second_us = w->now_us;
		inside_watch(w);
	}
	return w->now_us;
}

const struct ethdev_stats *ethdev_stats(const struct ethdev_worker *w)
{
	return &w->stats;
}

static const struct {
	const char *name, *text;
} counters[] = {
#define X(name, text) {#name, text},
	ETHDEV_COUNTERS(X)
#undef X
};

const char *ethdev_counter_name(enum ethdev_counter counter)
{
	assert(counter < ETHDEV_COUNTERS_COUNT);
	return counters[counter].name;
}

const char *ethdev_counter_text(enum ethdev_counter counter)
{
	assert(counter < ETHDEV_COUNTERS_COUNT);
	return counters[counter].text;
}
