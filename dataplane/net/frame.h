// A frame as it came in: Ethernet, at most one VLAN tag, ARP, IPv4 or IPv6, down to the TCP
// segment. Pure; any thread.
//
// Whatever the frame says of its lengths is held against its true one; what the link padded is cut
// off. Nothing after the first doubt is read.
#pragma once

#include <stdbool.h>
#include <stdint.h>

#include "dataplane/net/net.h"
#include "drivers/ip.h"
#include "drivers/span.h"

#define FRAME_MAC_BYTES 6u
#define FRAME_ETHERNET_BYTES 14u
#define FRAME_VLAN_BYTES 4u
#define FRAME_IPV4_BYTES 20u
#define FRAME_IPV6_BYTES 40u
#define FRAME_HEAD_MAX (FRAME_ETHERNET_BYTES + FRAME_VLAN_BYTES + FRAME_IPV6_BYTES)
#define FRAME_EXTENSIONS_MAX 8u // IPv6 extension headers walked
#define FRAME_EXTENSION_BYTES_MAX 256u // of all of them

enum frame_ethertype { FRAME_IPV4 = 0x0800, FRAME_ARP = 0x0806, FRAME_IPV6 = 0x86dd };
#define FRAME_TAGGED 0x8100 // IEEE 802.1Q

enum frame_kind {
	FRAME_IS_DROPPED, // `drop` says why
	FRAME_IS_SEGMENT, // TCP for an address of ours
	FRAME_IS_ICMP, // for an address of ours; its checksum is not looked at yet
	FRAME_IS_ICMP6, // likewise, or for a group that neighbour discovery uses
	FRAME_IS_ARP,
	FRAME_IS_OTHER, // not for sluice
};

// What the device has verified already.
struct frame_checked {
	bool ip, l4;
};

struct frame {
	enum frame_kind kind;
	enum net_counter drop;
	enum ethdev_class class; // should it turn out not to be for sluice
	bool is_to_group; // by its Ethernet destination
	uint8_t hop_limit;
	struct span body; // what follows Ethernet (ARP) or the IP headers (ICMP)
};

// Read a frame that came in at a port.
//   index    the port's, for segment->hop
//   segment  peer and local are filled with the IP packet's addresses, hop with where it came from,
//            and for FRAME_IS_SEGMENT all of it; its payload points into `bytes`
void frame_read(const struct net_port_plan *port, uint16_t index, struct span bytes,
	struct frame_checked checked, struct frame *frame, struct tcp_segment *segment);

// Whether an address, IPv4 mapped or IPv6, is one of the port's.
bool frame_is_ours(const struct net_port_plan *port, const uint8_t ip[16]);

// Whether some host on the Internet or on the port's link can have an address: it is no group, no
// broadcast, not unspecified, not loopback and not ours.
bool frame_is_peer(const struct net_port_plan *port, const uint8_t ip[16]);

// Whether an address lies in the subnet of one of ours of the same kind.
bool frame_is_on_link(const struct net_address *own, const uint8_t ip[16]);
