// Headers from registers: the sum of an IPv4 header is made of the values that go into it, not read
// back from the bytes just written.

#include "dataplane/net/packet.h"

#include "dataplane/net/checksum.h"
#include "dataplane/net/frame.h"

#include <rte_mbuf.h>

#include <arpa/inet.h>
#include <assert.h>
#include <netinet/in.h>
#include <string.h>

#define DONT_FRAGMENT 0x4000

static unsigned ethernet_bytes(const struct net_port_plan *port)
{
	return FRAME_ETHERNET_BYTES + (port->vlan ? FRAME_VLAN_BYTES : 0);
}

unsigned packet_room(const struct net_port_plan *port, const uint8_t from[16])
{
	return ethernet_bytes(port) + (ip_is_v4(from) ? FRAME_IPV4_BYTES : FRAME_IPV6_BYTES);
}

unsigned packet_ethernet(
	const struct net_port_plan *port, const uint8_t mac[6], uint16_t type, uint8_t *at)
{
	memcpy(at, mac, FRAME_MAC_BYTES);
	memcpy(at + 6, port->mac, FRAME_MAC_BYTES);
	if (port->vlan) {
		uint16_t tag[] = {htons(FRAME_TAGGED), htons(port->vlan)};
		memcpy(at + 12, tag, sizeof(tag));
	}
	unsigned bytes = ethernet_bytes(port);
	type = htons(type);
	memcpy(at + bytes - sizeof(type), &type, sizeof(type));
	return bytes;
}

static void write_ipv4(const struct packet *p, uint8_t *at)
{
	uint16_t head[10] = {htons(0x4500), htons((uint16_t)(FRAME_IPV4_BYTES + p->len)), 0,
		htons(DONT_FRAGMENT), htons((uint16_t)(p->hop_limit << 8 | p->protocol))};
	memcpy(head + 6, p->from + 12, 4);
	memcpy(head + 8, p->to + 12, 4);
	if (!p->port->fills_ip)
		head[5] = checksum_finish(checksum_words(head, FRAME_IPV4_BYTES / 4));
	memcpy(at, head, sizeof(head));
}

static void write_ipv6(const struct packet *p, uint8_t *at)
{
	uint32_t first = htonl(0x60000000 | (p->flow & 0xfffff));
	uint16_t len = htons((uint16_t)p->len);
	memcpy(at, &first, sizeof(first));
	memcpy(at + 4, &len, sizeof(len));
	at[6] = p->hop_by_hop ? IPPROTO_HOPOPTS : p->protocol;
	at[7] = p->hop_limit;
	memcpy(at + 8, p->from, 16);
	memcpy(at + 24, p->to, 16);
}

void packet_finish(const struct packet *p, struct rte_mbuf *buffer)
{
	bool is_ipv4 = ip_is_v4(p->from);
	assert(is_ipv4 == ip_is_v4(p->to));
	unsigned room = packet_room(p->port, p->from);
	assert(p->sum_at + 2 <= p->len && room + p->len <= rte_pktmbuf_tailroom(buffer));
	uint8_t *at = rte_pktmbuf_mtod(buffer, uint8_t *);
	unsigned ethernet = packet_ethernet(p->port, p->mac, is_ipv4 ? FRAME_IPV4 : FRAME_IPV6, at);
	if (is_ipv4)
		write_ipv4(p, at + ethernet);
	else
		write_ipv6(p, at + ethernet);
	uint64_t flags = is_ipv4 && p->port->fills_ip ? RTE_MBUF_F_TX_IP_CKSUM : 0;
	uint64_t pseudo =
		p->has_pseudo ? checksum_pseudo(p->from, p->to, p->protocol, p->len - p->hop_by_hop)
			      : 0;
	uint16_t checksum;
	if (p->protocol == IPPROTO_TCP && p->port->fills_l4) {
		checksum = checksum_fold(pseudo);
		flags |= RTE_MBUF_F_TX_TCP_CKSUM;
	} else {
		checksum = checksum_finish(p->sum + pseudo);
	}
	memcpy(at + room + p->sum_at, &checksum, sizeof(checksum));
	if (flags)
		flags |= is_ipv4 ? RTE_MBUF_F_TX_IPV4 : RTE_MBUF_F_TX_IPV6;
	buffer->ol_flags |= flags;
	buffer->l2_len = ethernet;
	buffer->l3_len = room - ethernet;
	buffer->data_len = (uint16_t)(room + p->len);
	buffer->pkt_len = room + p->len;
}
