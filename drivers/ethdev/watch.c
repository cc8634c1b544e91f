// Once a second: links, and what the devices count. Worker 0.

#include "drivers/ethdev/inside.h"

#include <rte_ethdev.h>

#include <assert.h>

// The devices' counters only grow; what they have grown by is counted here.
static void count_up(struct ethdev_worker *w, enum ethdev_counter counter, uint64_t now)
{
	uint64_t *seen = &w->devices->seen[counter];
	inside_count(w, counter, now > *seen ? now - *seen : 0);
	*seen = now;
}

void inside_watch(struct ethdev_worker *w)
{
	struct ethdev *devices = w->devices;
	uint64_t missed = 0, errors = 0, no_buffer = 0;
	for (unsigned i = 0; i < devices->port_count; i++) {
		struct rte_eth_link link = {0};
		struct rte_eth_stats stats = {0};
		uint16_t id = devices->ports[i].shown.id;
		if (rte_eth_link_get_nowait(id, &link) == 0)
			devices->is_up[i] = link.link_status == RTE_ETH_LINK_UP;
		if (rte_eth_stats_get(id, &stats) == 0) {
			missed += stats.imissed;
			errors += stats.ierrors;
			no_buffer += stats.rx_nombuf;
		}
	}
	count_up(w, ETHDEV_device_missed, missed);
	count_up(w, ETHDEV_device_errors, errors);
	count_up(w, ETHDEV_device_no_buffer, no_buffer);
}

bool ethdev_link_changed(struct ethdev_worker *w, unsigned port, bool *is_up)
{
	struct ethdev *devices = w->devices;
	assert(w->index == 0 && port < devices->port_count);
	uint8_t now = devices->is_up[port] ? INSIDE_UP : INSIDE_DOWN;
	bool is_news = devices->told[port] != now;
	devices->told[port] = now;
	*is_up = now == INSIDE_UP;
	return is_news;
}
