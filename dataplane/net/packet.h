// A packet on its way out. One function finishes every IP packet that leaves: Ethernet and IP
// headers, lengths and checksums.
//
// Whoever sends takes a buffer, writes what follows the IP header behind packet_room() bytes, and
// finishes it:
//
//   room = packet_room(port, from)
//   write the transport's header and payload at room, its checksum 0, summing
//   packet_finish()
//
// DF is set on all we send, and IPv4's identification is 0, since nothing is ever fragmented
// (RFC 6864 4.1) and a counter would only tell how much we send. TTL is 64.
#pragma once

#include <stdbool.h>
#include <stdint.h>

#include "dataplane/net/net.h"

#define PACKET_HOP_LIMIT 64u

// Whence, whither, and how.
struct packet {
	const struct net_port_plan *port;
	const uint8_t *mac; // of the next hop
	const uint8_t *from, *to; // 16 bytes, both IPv4 mapped or both IPv6
	uint8_t protocol;
	uint8_t hop_limit;
	uint32_t flow; // label of IPv6, 20 bits
	unsigned hop_by_hop; // bytes of such a header at the front, of IPv6
	unsigned len; // of what follows the IP header, that with it
	unsigned sum_at; // where in it the checksum stands
	uint64_t sum; // of it, the checksum counting as 0; ignored for TCP where the device fills
	bool has_pseudo; // the checksum covers a pseudo-header: all but ICMP of IPv4
};

// Bytes of the Ethernet and IP headers before a packet from an address of the port.
unsigned packet_room(const struct net_port_plan *port, const uint8_t from[16]);

// Write an Ethernet header, with the port's VLAN tag if it has one. Returns its bytes.
unsigned packet_ethernet(
	const struct net_port_plan *port, const uint8_t mac[6], uint16_t type, uint8_t *at);

// Finish a packet whose `len` bytes stand in an empty buffer at packet_room(). Afterwards the
// buffer's length is the frame's, and it can be sent.
void packet_finish(const struct packet *packet, struct rte_mbuf *buffer);
