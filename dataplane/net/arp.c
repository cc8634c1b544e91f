// A message is 28 bytes: what kinds of addresses, request or reply, sender's MAC and IP, target's
// MAC and IP.
//
// A gateway is learnt of however it is heard. A sender that calls itself by an address of ours,
// from another MAC, is a conflict. Requests for others and all replies also go to the exception
// interface: the kernel behind it asks and answers for its own addresses, which may be the same as
// ours.

#include "dataplane/net/arp.h"

#include "dataplane/net/announce.h"
#include "dataplane/net/packet.h"
#include "dataplane/net/share.h"

#include <rte_mbuf.h>

#include <arpa/inet.h>
#include <string.h>

#define REQUEST 1
#define REPLY 2

struct message {
	uint16_t hardware, protocol; // big-endian, all of them
	uint8_t hardware_bytes, protocol_bytes;
	uint16_t operation;
	uint8_t sender_mac[6];
	uint8_t sender[4];
	uint8_t target_mac[6];
	uint8_t target[4];
};
static_assert(sizeof(struct message) == 28, "RFC 826");

static const uint8_t all[6] = {0xff, 0xff, 0xff, 0xff, 0xff, 0xff};

static bool read_message(struct span bytes, struct message *m);
static void send_message(struct net *n, uint16_t port, uint16_t operation, const uint8_t *to,
	const uint8_t sender[4], const uint8_t target_mac[6], const uint8_t target[4]);

enum net_fate arp_input(struct net *n, const struct frame *frame, const struct tcp_hop *hop)
{
	const struct net_port_plan *port = &n->plan.ports[hop->port];
	struct message m;
	if (!read_message(frame->body, &m)) {
		net_count(n, NET_arp_bad);
		return NET_FATE_DONE;
	}
	uint8_t sender[16], target[16];
	ip_map(sender, m.sender);
	ip_map(target, m.target);
	bool asks_us = m.operation == htons(REQUEST) && frame_is_ours(port, target);
	if (frame_is_ours(port, sender)) {
		if (memcmp(m.sender_mac, port->mac, sizeof(m.sender_mac)) == 0)
			return NET_FATE_DONE; // our own, come back
		net_count(n, NET_address_conflict);
		announce_defend(n, hop->port);
		return NET_FATE_NOT_OURS;
	}
	if (gateway_heard(
		    n->shared->gateways, hop->port, sender, m.sender_mac, true, n->driver.now_us))
		net_count(n, NET_gateway_moved);
	if (!asks_us)
		return NET_FATE_NOT_OURS;
	send_message(n, hop->port, REPLY, m.sender_mac, m.target, m.sender_mac, m.sender);
	net_count(n, NET_arp_answered);
	return NET_FATE_DONE;
}

static bool read_message(struct span bytes, struct message *m)
{
	if (bytes.len < sizeof(*m))
		return false;
	memcpy(m, bytes.at, sizeof(*m));
	static const uint8_t none[6];
	return m->hardware == htons(1) && m->protocol == htons(FRAME_IPV4) &&
	       m->hardware_bytes == 6 && m->protocol_bytes == 4 && !(m->sender_mac[0] & 1) &&
	       memcmp(m->sender_mac, none, sizeof(none)) != 0 &&
	       (m->operation == htons(REQUEST) || m->operation == htons(REPLY));
}

void arp_ask(struct net *n, uint16_t port, const uint8_t ip[16], const uint8_t *mac)
{
	static const uint8_t unknown[6];
	const uint8_t *own = net_own_address(n, port, ip);
	if (own)
		send_message(n, port, REQUEST, mac ? mac : all, own + 12, unknown, ip + 12);
}

void arp_announce(struct net *n, uint16_t port, const uint8_t ip[16])
{
	static const uint8_t unknown[6];
	send_message(n, port, REQUEST, all, ip + 12, unknown, ip + 12);
	net_count(n, NET_announced);
}

static void send_message(struct net *n, uint16_t port, uint16_t operation, const uint8_t *to,
	const uint8_t sender[4], const uint8_t target_mac[6], const uint8_t target[4])
{
	struct rte_mbuf *buffer = ethdev_take(n->device, true);
	if (!buffer)
		return;
	const struct net_port_plan *p = &n->plan.ports[port];
	struct message m = {.hardware = htons(1),
		.protocol = htons(FRAME_IPV4),
		.hardware_bytes = 6,
		.protocol_bytes = 4,
		.operation = htons(operation)};
	memcpy(m.sender_mac, p->mac, sizeof(m.sender_mac));
	memcpy(m.sender, sender, sizeof(m.sender));
	memcpy(m.target_mac, target_mac, sizeof(m.target_mac));
	memcpy(m.target, target, sizeof(m.target));
	uint8_t *at = rte_pktmbuf_mtod(buffer, uint8_t *);
	unsigned head = packet_ethernet(p, to, FRAME_ARP, at);
	memcpy(at + head, &m, sizeof(m));
	buffer->data_len = (uint16_t)(head + sizeof(m));
	buffer->pkt_len = buffer->data_len;
	ethdev_send(n->device, p->id, buffer);
}
