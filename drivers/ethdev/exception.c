// The exception interface: what is not for sluice goes to the kernel, so that ssh or a routing
// daemon works on a NIC that sluice drives.
//
// It is a tap with the address of its port: the kernel's stack on it answers as if the NIC were its
// own. Worker 0 alone moves frames out of it and into it; the others hand theirs over as for any
// port with one send queue. Each class of frames has a rate, so that a flood at the NIC does not
// become one of the kernel; frames out of the tap have none, for nobody outside makes them.

#include "drivers/ethdev/finish.h"
#include "drivers/ethdev/inside.h"
#include "drivers/ethdev/port.h"

#include <rte_ethdev.h>

#include <assert.h>
#include <errno.h>
#include <net/if.h>
#include <stdio.h>
#include <string.h>

#define NAMES_MAX 100u
#define US 1000000u
#define BURSTS_PER_SECOND 10u // a bucket holds a tenth of a second

// Frames a second of each class, all workers together.
static const uint32_t rates[] = {
	[ETHDEV_CLASS_ROUTING] = 20000,
	[ETHDEV_CLASS_TCP] = 20000,
	[ETHDEV_CLASS_OTHER] = 2000,
};

// The name that the plan gives, or the first free one. Returns whether there is to be one.
static bool choose_name(const struct ethdev_port_plan *plan, const struct inside_port *port,
	char name[ETHDEV_NAME_BYTES])
{
	bool is_auto = strcmp(plan->exception, ETHDEV_EXCEPTION_AUTO) == 0;
	snprintf(name, ETHDEV_NAME_BYTES, "%s", plan->exception);
	if (!is_auto)
		return name[0] && !port->shown.kernel_sees_frames;
	if (!ethdev_is_pci(plan->device) && strncmp(plan->device, "net_af_xdp", 10) != 0)
		return false;
	for (unsigned i = 0; i < NAMES_MAX; i++) {
		snprintf(name, ETHDEV_NAME_BYTES, "sluice%u", i);
		if (if_nametoindex(name) == 0)
			return true;
	}
	return true; // opening it says what is wrong
}

int inside_open_exception(struct ethdev *devices, const struct ethdev_plan *plan, unsigned index,
	char error[ETHDEV_ERROR_BYTES])
{
	char name[ETHDEV_NAME_BYTES], device[ETHDEV_DEVICE_BYTES], reason[ETHDEV_ERROR_BYTES];
	struct inside_port *port = &devices->ports[index];
	if (!choose_name(&plan->ports[index], port, name))
		return 0;
	const uint8_t *mac = port->shown.mac;
	snprintf(device, sizeof(device),
		"net_tap_exception%u,iface=%s,mac=%02x:%02x:%02x:%02x:%02x:%02x", index, name,
		mac[0], mac[1], mac[2], mac[3], mac[4], mac[5]);
	struct inside_port *tap = &devices->ports[devices->all_count];
	const struct ethdev_port_plan as_port = {.mtu = port->shown.mtu};
	struct sizes sizes = devices->sizes;
	sizes.receive_len = sizes.send_len = SIZES_EXCEPTION_LEN;
	tap->buffers = port->buffers;
	int ret = port_probe(tap, device, port->shown.mtu, 1, reason);
	if (ret < 0)
		goto fail;
	if ((ret = port_start(tap, &as_port, &sizes, 1, reason)) < 0) {
		port_close(tap);
		goto fail;
	}
	tap->peer = (uint16_t)index;
	port->peer = (uint16_t)devices->all_count;
	port->shown.has_exception = true;
	memcpy(port->shown.exception, name, sizeof(name));
	devices->index_of[tap->shown.id] = (uint16_t)devices->all_count++;
	return 0;
fail:
	snprintf(error, ETHDEV_ERROR_BYTES,
		"exception interface %s of port %s: %.300s (`exception: none` does without)", name,
		port->shown.name, reason);
	return ret;
}

static uint64_t rate_of(const struct ethdev *devices, enum ethdev_class class)
{
	return rates[class] / devices->worker_count; // a worker's share
}

void ethdev_except(struct ethdev_worker *w, struct rte_mbuf *frame, enum ethdev_class class)
{
	unsigned index = w->devices->index_of[frame->port];
	const struct inside_port *port = &w->devices->ports[index];
	uint64_t *tokens = &w->buckets[index][class].tokens;
	if (!port->shown.has_exception) {
		inside_drop(w, &frame, 1, ETHDEV_except_none);
	} else if (*tokens < US) {
		inside_drop(w, &frame, 1, ETHDEV_except_limited);
	} else {
		*tokens -= US;
		inside_count(w, ETHDEV_excepted, 1);
		finish_excepted(frame);
		ethdev_send(w, w->devices->ports[port->peer].shown.id, frame);
	}
}

static void refill(struct ethdev_worker *w, unsigned index, uint64_t passed_us)
{
	for (unsigned class = 0; class <= ETHDEV_CLASS_OTHER; class ++) {
		uint64_t rate = rate_of(w->devices, class);
		uint64_t full = rate * US / BURSTS_PER_SECOND, *tokens;
		tokens = &w->buckets[index][class].tokens;
		*tokens += passed_us < US ? passed_us * rate : full;
		if (*tokens > full)
			*tokens = full;
	}
}

void inside_exception_turn(struct ethdev_worker *w, uint64_t passed_us)
{
	struct rte_mbuf *frames[ETHDEV_BURST_MAX];
	for (unsigned i = w->devices->port_count; i < w->devices->all_count; i++) {
		const struct inside_port *tap = &w->devices->ports[i];
		refill(w, tap->peer, passed_us);
		if (w->index > 0)
			continue;
		unsigned count = rte_eth_rx_burst(tap->shown.id, 0, frames, ETHDEV_BURST_MAX);
		inside_count(w, ETHDEV_from_exception, count);
		for (unsigned j = 0; j < count; j++)
			ethdev_send(w, w->devices->ports[tap->peer].shown.id, frames[j]);
	}
}
