// From the outside in: each step cuts off a header that it has checked and hands on the rest.
//
// What is not to an address of ours is not checked further: whoever it is for does that. For TCP,
// the Ethernet destination must be ours alone (RFC 1122 4.2.3.10), so that a frame sent to all
// cannot make us answer. An IPv6 address that looks like a mapped IPv4 one would be taken for IPv4
// further up, and no host may have one on a wire (RFC 4291 2.5.5.2): it is a bad source, and a
// destination of nobody.
//
// Options of the extension headers that we do not know and that ask for it have the packet dropped
// (RFC 8200 4.2), without the ICMP message that some ask for.

#include "dataplane/net/frame.h"

#include "dataplane/net/checksum.h"

#include <arpa/inet.h>
#include <netinet/in.h>
#include <string.h>

#define PORT_BGP 179u
#define PROTOCOL_OSPF 89u
#define PROTOCOL_VRRP 112u

static void take_arp(struct frame *f);
static void read_ipv4(const struct net_port_plan *port, struct span bytes,
	struct frame_checked checked, struct frame *f, struct tcp_segment *s);
static void read_ipv6(const struct net_port_plan *port, struct span bytes,
	struct frame_checked checked, struct frame *f, struct tcp_segment *s);
static int walk_extensions(struct span *bytes, uint8_t *protocol);
static bool options_are_known(const uint8_t *options, size_t len);
static void read_segment(bool is_checked, struct frame *f, struct tcp_segment *s);
static void drop(struct frame *f, enum net_counter why);
static enum ethdev_class class_of(uint8_t protocol, struct span body);
static void leave(struct frame *f, uint8_t protocol, struct span body);

static uint16_t be16(const char *at)
{
	uint16_t value;
	memcpy(&value, at, sizeof(value));
	return ntohs(value);
}

void frame_read(const struct net_port_plan *port, uint16_t index, struct span bytes,
	struct frame_checked checked, struct frame *f, struct tcp_segment *s)
{
	*f = (struct frame){.kind = FRAME_IS_OTHER, .class = ETHDEV_CLASS_OTHER};
	if (bytes.len < FRAME_ETHERNET_BYTES) {
		drop(f, NET_frame_short);
		return;
	}
	f->is_to_group = bytes.at[0] & 1;
	if (!f->is_to_group && memcmp(bytes.at, port->mac, FRAME_MAC_BYTES) != 0) {
		drop(f, NET_frame_not_ours);
		return;
	}
	memcpy(s->hop.mac, bytes.at + FRAME_MAC_BYTES, FRAME_MAC_BYTES);
	s->hop.port = index;
	if ((s->hop.mac[0] & 1) || memcmp(s->hop.mac, port->mac, FRAME_MAC_BYTES) == 0) {
		drop(f, NET_source_bad);
		return;
	}
	uint16_t type = be16(bytes.at + 12), vlan = 0;
	bytes = span_from(bytes, FRAME_ETHERNET_BYTES);
	if (type == FRAME_TAGGED) {
		if (bytes.len < FRAME_VLAN_BYTES) {
			drop(f, NET_frame_short);
			return;
		}
		vlan = be16(bytes.at) & 0xfff;
		type = be16(bytes.at + 2);
		bytes = span_from(bytes, FRAME_VLAN_BYTES);
	}
	if (vlan != port->vlan) // a tag of VLAN 0 only says a priority
		return;
	f->body = bytes;
	if (type == FRAME_IPV4)
		read_ipv4(port, bytes, checked, f, s);
	else if (type == FRAME_IPV6)
		read_ipv6(port, bytes, checked, f, s);
	else if (type == FRAME_ARP)
		take_arp(f);
}

static void take_arp(struct frame *f)
{
	f->kind = FRAME_IS_ARP;
	f->class = ETHDEV_CLASS_ROUTING;
}

static void read_ipv4(const struct net_port_plan *port, struct span bytes,
	struct frame_checked checked, struct frame *f, struct tcp_segment *s)
{
	if (bytes.len < FRAME_IPV4_BYTES) {
		drop(f, NET_frame_short);
		return;
	}
	size_t head = (size_t)(bytes.at[0] & 0xf) * 4, len = be16(bytes.at + 2);
	if ((bytes.at[0] & 0xf0) != 0x40 || head < FRAME_IPV4_BYTES || len < head) {
		drop(f, NET_ip_bad);
		return;
	}
	if (len > bytes.len) {
		drop(f, NET_frame_short);
		return;
	}
	bytes.len = len;
	ip_map(s->peer.ip, bytes.at + 12);
	ip_map(s->local.ip, bytes.at + 16);
	uint8_t protocol = (uint8_t)bytes.at[9];
	if (!frame_is_ours(port, s->local.ip)) {
		leave(f, protocol, span_from(bytes, head));
		return;
	}
	if (!checked.ip && !checksum_is_good(checksum_words(bytes.at, (unsigned)head / 4))) {
		drop(f, NET_ip_bad_checksum);
		return;
	}
	if (!frame_is_peer(port, s->peer.ip)) {
		drop(f, NET_source_bad);
		return;
	}
	if (be16(bytes.at + 6) & 0x3fff) { // more fragments, or not the first
		drop(f, NET_ip_fragment);
		return;
	}
	f->hop_limit = (uint8_t)bytes.at[8];
	f->body = span_from(bytes, head);
	if (protocol == IPPROTO_TCP)
		return read_segment(checked.l4, f, s);
	leave(f, protocol, f->body);
	if (protocol == IPPROTO_ICMP)
		f->kind = FRAME_IS_ICMP;
}

// Groups that hosts without routing functions are in: all nodes, and those of solicited nodes.
static bool is_node_group(const uint8_t ip[16])
{
	static const uint8_t all[16] = {0xff, 0x02, [15] = 0x01};
	uint8_t own[16];
	ip_solicited(own, ip);
	return memcmp(ip, all, sizeof(all)) == 0 || memcmp(ip, own, sizeof(own)) == 0;
}

static bool is_unspecified(const uint8_t ip[16])
{
	static const uint8_t none[16];
	return memcmp(ip, none, sizeof(none)) == 0;
}

static void read_ipv6(const struct net_port_plan *port, struct span bytes,
	struct frame_checked checked, struct frame *f, struct tcp_segment *s)
{
	if (bytes.len < FRAME_IPV6_BYTES) {
		drop(f, NET_frame_short);
		return;
	}
	if ((bytes.at[0] & 0xf0) != 0x60) {
		drop(f, NET_ip_bad);
		return;
	}
	size_t len = FRAME_IPV6_BYTES + be16(bytes.at + 4);
	if (len > bytes.len) {
		drop(f, NET_frame_short);
		return;
	}
	bytes.len = len;
	memcpy(s->peer.ip, bytes.at + 8, sizeof(s->peer.ip));
	memcpy(s->local.ip, bytes.at + 24, sizeof(s->local.ip));
	uint8_t protocol = (uint8_t)bytes.at[6];
	f->hop_limit = (uint8_t)bytes.at[7];
	f->body = span_from(bytes, FRAME_IPV6_BYTES);
	bool is_ours = !ip_is_v4(s->local.ip) && frame_is_ours(port, s->local.ip);
	if (!is_ours && !is_node_group(s->local.ip)) {
		leave(f, protocol, f->body);
		return;
	}
	int why = walk_extensions(&f->body, &protocol);
	if (why >= 0) {
		drop(f, (enum net_counter)why);
		return;
	}
	f->class = class_of(protocol, f->body);
	// Who has no address yet may ask whether somebody has the one it wants (RFC 4862 5.4.2).
	bool is_icmp = protocol == IPPROTO_ICMPV6;
	bool is_peer = !ip_is_v4(s->peer.ip) && frame_is_peer(port, s->peer.ip);
	if (!is_peer && !(is_icmp && is_unspecified(s->peer.ip)))
		drop(f, NET_source_bad);
	else if (is_icmp)
		f->kind = FRAME_IS_ICMP6;
	else if (protocol == IPPROTO_TCP && is_ours)
		read_segment(checked.l4, f, s);
	else
		leave(f, protocol, f->body);
}

// Cut off the extension headers. Returns -1, or the counter of why the packet is dropped.
static int walk_extensions(struct span *bytes, uint8_t *protocol)
{
	size_t walked = 0;
	for (unsigned count = 0;; count++) {
		uint8_t kind = *protocol;
		if (kind == IPPROTO_FRAGMENT)
			return NET_ip_fragment;
		if (kind == IPPROTO_MH || kind == 139 || kind == 140) // mobility, HIP, Shim6
			return NET_ip_extension;
		if (kind != IPPROTO_HOPOPTS && kind != IPPROTO_DSTOPTS && kind != IPPROTO_ROUTING)
			return -1;
		if (count == FRAME_EXTENSIONS_MAX || (kind == IPPROTO_HOPOPTS && count > 0))
			return NET_ip_extension;
		if (bytes->len < 8)
			return NET_ip_bad;
		const uint8_t *at = (const uint8_t *)bytes->at;
		size_t len = ((size_t)at[1] + 1) * 8;
		if (len > bytes->len)
			return NET_ip_bad;
		walked += len;
		if (walked > FRAME_EXTENSION_BYTES_MAX)
			return NET_ip_extension;
		if (kind == IPPROTO_ROUTING ? at[3] != 0 : !options_are_known(at + 2, len - 2))
			return NET_ip_extension;
		*protocol = at[0];
		*bytes = span_from(*bytes, len);
	}
}

// Whether all options of a header are ones that may be skipped: padding, or of the kinds that say
// so in their highest two bits.
static bool options_are_known(const uint8_t *options, size_t len)
{
	for (size_t at = 0; at < len;) {
		if (options[at] == 0) { // Pad1 has no length
			at++;
			continue;
		}
		if (options[at] & 0xc0 || at + 2 > len)
			return false;
		at += 2 + (size_t)options[at + 1];
		if (at > len)
			return false;
	}
	return true;
}

static void read_segment(bool is_checked, struct frame *f, struct tcp_segment *s)
{
	if (f->is_to_group) {
		drop(f, NET_frame_not_ours);
		return;
	}
	uint32_t len = (uint32_t)f->body.len;
	if (len < TCP_HEADER_BYTES) {
		drop(f, NET_tcp_short);
		return;
	}
	if (!is_checked &&
		!checksum_is_good(checksum_sum(f->body) +
				  checksum_pseudo(s->peer.ip, s->local.ip, IPPROTO_TCP, len))) {
		drop(f, NET_tcp_bad_checksum);
		return;
	}
	if (!tcp_segment_read(f->body, s))
		drop(f, NET_tcp_short);
	else
		f->kind = FRAME_IS_SEGMENT;
}

static void drop(struct frame *f, enum net_counter why)
{
	f->kind = FRAME_IS_DROPPED;
	f->drop = why;
}

// What routing and neighbours' own talk is: apart from the rest, so that nothing else drowns it.
static bool is_routing(uint8_t protocol, struct span body)
{
	if (protocol == IPPROTO_TCP)
		return body.len >= 4 &&
		       (be16(body.at) == PORT_BGP || be16(body.at + 2) == PORT_BGP);
	if (protocol == IPPROTO_ICMPV6) // listeners and neighbours: 130 to 143
		return body.len > 0 && (uint8_t)body.at[0] >= 130 && (uint8_t)body.at[0] <= 143;
	return protocol == PROTOCOL_OSPF || protocol == PROTOCOL_VRRP;
}

static enum ethdev_class class_of(uint8_t protocol, struct span body)
{
	if (is_routing(protocol, body))
		return ETHDEV_CLASS_ROUTING;
	return protocol == IPPROTO_TCP ? ETHDEV_CLASS_TCP : ETHDEV_CLASS_OTHER;
}

static void leave(struct frame *f, uint8_t protocol, struct span body)
{
	f->kind = FRAME_IS_OTHER;
	f->class = class_of(protocol, body);
}

bool frame_is_ours(const struct net_port_plan *port, const uint8_t ip[16])
{
	for (unsigned i = 0; i < port->address_count; i++)
		if (memcmp(port->addresses[i].ip, ip, 16) == 0)
			return true;
	return false;
}

bool frame_is_on_link(const struct net_address *own, const uint8_t ip[16])
{
	unsigned bits = own->prefix + (ip_is_v4(own->ip) ? 8 * IP_MAPPED_BYTES : 0);
	for (unsigned i = 0; i < bits; i++) {
		uint8_t bit = 0x80 >> i % 8;
		if ((own->ip[i / 8] ^ ip[i / 8]) & bit)
			return false;
	}
	return true;
}

// Whether an IPv4 address is the broadcast address of a subnet that the port is in.
static bool is_broadcast(const struct net_port_plan *port, uint32_t ipv4)
{
	for (unsigned i = 0; i < port->address_count; i++) {
		const struct net_address *own = &port->addresses[i];
		if (!ip_is_v4(own->ip) || own->prefix == 0 || own->prefix > 30)
			continue;
		uint32_t host = UINT32_MAX >> own->prefix, address;
		memcpy(&address, own->ip + IP_MAPPED_BYTES, sizeof(address));
		if (ipv4 == (ntohl(address) | host))
			return true;
	}
	return false;
}

bool frame_is_peer(const struct net_port_plan *port, const uint8_t ip[16])
{
	if (frame_is_ours(port, ip))
		return false;
	static const uint8_t loopback[16] = {[15] = 1};
	if (!ip_is_v4(ip))
		return ip[0] != 0xff && !is_unspecified(ip) && memcmp(ip, loopback, 16) != 0;
	uint32_t ipv4;
	memcpy(&ipv4, ip + IP_MAPPED_BYTES, sizeof(ipv4));
	ipv4 = ntohl(ipv4);
	// 0/8 is "this network", 127/8 loopback; 224/4 groups, 240/4 reserved, with the broadcast
	// to all (RFC 6890).
	return ipv4 >> 24 != 0 && ipv4 >> 24 != 127 && ipv4 >> 28 < 0xe &&
	       !is_broadcast(port, ipv4);
}
