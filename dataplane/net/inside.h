// A worker's network inside, and what its files share. For the files of this folder.
#pragma once

#include <stdatomic.h>
#include <stdbool.h>
#include <stdint.h>

#include "dataplane/net/frame.h"
#include "dataplane/net/gateway.h"
#include "dataplane/net/net.h"
#include "dataplane/net/tcp/tcp.h"
#include "dataplane/random.h"

#define NET_STEERED_MAX 16u // frames of other workers taken in one turn
#define NET_TEND_US 10000u // between looks at links, gateways and announcements

static_assert(ETHDEV_BURST_MAX + NET_STEERED_MAX <= TCP_BURST_MAX, "a turn's frames are one burst");

// What the turn has received, and what of it TCP has not taken yet. A frame lives until the turn
// after the one in which its segment was taken, since events point into it.
struct net_burst {
	unsigned count; // received
	unsigned taken; // by TCP
	unsigned held; // of those, the first that is not freed yet
	struct tcp_segment segments[TCP_BURST_MAX];
	struct rte_mbuf *frames[TCP_BURST_MAX]; // NULL: handed to another worker
	uint8_t hops[TCP_BURST_MAX]; // workers that were asked for its flow before this one
};

// What of our addresses is to be told to a port's neighbours (announce.h). Worker 0 only.
struct net_announcement {
	unsigned rounds; // left
	bool probes; // in the next round
	unsigned address; // the next of this round
	uint64_t due_us; // of this round
	uint64_t defended_us;
	uint64_t report_us; // when a multicast listener report is due (mld.h); 0: none
};

struct net {
	struct stream_driver driver; // first
	unsigned index;
	struct ethdev_worker *device;
	struct net_shared *shared;
	struct tcp *tcp;
	struct tcp_io io;
	struct random *random;
	uint64_t flow_key; // of IPv6 flow labels
	uint8_t port_of[RTE_MAX_ETHPORTS]; // index by DPDK's id
	struct net_plan plan;
	struct net_burst burst;
	struct net_stats stats;
	// Worker 0 only.
	uint64_t tend_us; // when to look next; 0: never yet
	uint64_t echo_us; // when all echo answers sent so far are paid for
	struct net_announcement announcements[ETHDEV_PORTS_MAX];
};

// What becomes of a frame that is no segment.
enum net_fate {
	NET_FATE_DONE, // answered, or good for nothing
	NET_FATE_NOT_OURS, // for the exception interface
	NET_FATE_PASS, // for the next worker
};

// Count.
static inline void net_count(struct net *n, enum net_counter which)
{
	_Atomic uint64_t *counter = &n->stats.counters[which];
	atomic_store_explicit(counter, atomic_load_explicit(counter, memory_order_relaxed) + 1,
		memory_order_relaxed);
}

// The address of a port by which to ask for another one: of its subnet, else the first of its kind;
// NULL if there is none.
const uint8_t *net_own_address(const struct net *n, uint16_t port, const uint8_t ip[16]);

// Whether somebody listens at an address of ours.
static inline bool net_listens(const struct net *n, const struct stream_address *local)
{
	static const uint8_t any[16];
	for (unsigned i = 0; i < n->plan.tcp.listener_count; i++) {
		const struct stream_address *listener = &n->plan.tcp.listeners[i];
		if (listener->port == local->port &&
			(memcmp(listener->ip, any, 16) == 0 ||
				memcmp(listener->ip, local->ip, 16) == 0))
			return true;
	}
	return false;
}
