// The network of a worker: frames become streams. Implements drivers/stream.h over
// drivers/ethdev: Ethernet, VLAN, ARP, IPv4, IPv6, neighbour discovery and ICMP here, TCP in tcp/.
//
//   ethdev ─▶ frame.c ─┬─▶ tcp/ ─▶ events
//                      ├─▶ arp.c, nd.c, icmp.c (worker 0; others hand over by ring)
//                      ├─▶ another worker, whose flow it is
//                      └─▶ exception interface
//
// Gateways belong to worker 0. What is answered to a peer goes back to the MAC address that the
// peer's last segment came from, so nobody asks for them; but where one fails over, answers follow
// it (gateway.h).
//
// Policies: IPv4 fragments are dropped (TCP never needs them: DF is set on all we send), counted;
// IPv4 options are skipped; IPv6 hop-by-hop, destination options and routing headers with nothing
// left are walked, at most 8 of 256 bytes in all, others and fragments are dropped. UDP to us is
// answered by nothing: a port unreachable would only serve who scans or reflects. Routers are
// configured, so router advertisements and redirects are ignored.
#pragma once

#include <stdbool.h>
#include <stdint.h>

#include "dataplane/net/tcp/tcp.h"
#include "drivers/ethdev/ethdev.h"
#include "drivers/stream.h"

#define NET_ADDRESSES_MAX 32u // of one port
#define NET_GATEWAYS_MAX 4u

struct net_shared; // what all workers of a process share: gateways, rings

struct net_address {
	uint8_t ip[16]; // IPv4 mapped
	uint8_t prefix; // bits: of 32 or of 128
};

struct net_port_plan {
	uint16_t id; // DPDK's
	uint8_t mac[6];
	uint16_t mtu;
	uint16_t vlan; // 0: untagged
	bool kernel_sees_frames; // so what is not for sluice need not go anywhere
	bool has_exception; // TCP for ports of ours that nobody listens on goes there, and is not
			    // reset
	bool fills_ip, fills_l4; // the device writes checksums of frames sent
	bool has_rss; // the NIC spreads flows over the workers: one may meet another's flow
	unsigned address_count, gateway_count;
	struct net_address addresses[NET_ADDRESSES_MAX];
	uint8_t gateways[NET_GATEWAYS_MAX][16];
};

struct net_plan {
	unsigned worker_count;
	unsigned port_count;
	struct net_port_plan ports[ETHDEV_PORTS_MAX];
	struct tcp_plan tcp; // seed, mss_v4 and mss_v6 apart, which net_create() makes
};

// Made once, before the workers' drivers: rings between them, the table of gateways. Returns 0 or
// -errno.
int net_share(const struct net_plan *plan, struct net_shared **shared);
void net_share_end(struct net_shared *shared);

// Make the driver of worker `index`. `device` and `shared` are borrowed for its life. Returns 0 or
// -errno. It polls: stream_poll() never sleeps longer than 0.
int net_create(const struct net_plan *plan, unsigned index, struct ethdev_worker *device,
	struct net_shared *shared, struct stream_driver **driver);

// Bytes that a worker's driver takes.
uint64_t net_bytes(const struct net_plan *plan);

// For sluice's own counting: see tcp.h and the list below.
const struct tcp_stats *net_tcp_stats(const struct stream_driver *driver);
bool net_is_full(const struct stream_driver *driver);

#define NET_COUNTERS(X) \
	X(frame_short, "frames dropped: shorter than their headers say") \
	X(frame_pieces, "frames dropped: in more than one buffer") \
	X(frame_not_ours, "frames dropped: for another MAC address") \
	X(ip_bad, "IPv4 or IPv6 headers dropped: malformed") \
	X(ip_bad_checksum, "IPv4 headers dropped: checksum wrong") \
	X(ip_fragment, "packets dropped: fragments") \
	X(ip_extension, "IPv6 packets dropped: extension headers beyond what is walked") \
	X(source_bad, "packets dropped: a source that no host can have") \
	X(tcp_bad_checksum, "segments dropped: checksum wrong") \
	X(tcp_short, "segments dropped: shorter than their header says") \
	X(icmp_bad, "ICMP messages dropped: malformed, or checksum wrong") \
	X(icmp_limited, "ICMP answers not sent: the rate") \
	X(echo_answered, "echo requests answered") \
	X(arp_bad, "ARP messages dropped: malformed") \
	X(arp_answered, "ARP requests answered") \
	X(nd_bad, "neighbour discovery, listener queries dropped: malformed, not from the link") \
	X(nd_answered, "neighbour solicitations answered") \
	X(announced, "gratuitous ARP and unsolicited advertisements sent") \
	X(address_conflict, "messages of another host that uses an address of ours") \
	X(gateway_silent, "gateways that ceased to answer") \
	X(gateway_moved, "gateways seen at another MAC address") \
	X(steered, "frames handed to another worker: neighbours', or of flows not known here") \
	X(steer_full, "frames dropped: the other worker's ring is full") \
	X(not_ours, "packets for no address and port of sluice")

enum net_counter {
#define X(name, text) NET_##name,
	NET_COUNTERS(X)
#undef X
		NET_COUNTERS_COUNT,
};
struct net_stats {
	_Atomic uint64_t counters[NET_COUNTERS_COUNT]; // written: the worker; any may read
};

// The driver's own counters, which live as long as it does; a counter's name, and the text beside
// it in the list.
const struct net_stats *net_stats(const struct stream_driver *driver);
const char *net_counter_name(enum net_counter counter);
const char *net_counter_text(enum net_counter counter);
