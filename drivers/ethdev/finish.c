// Checksums and tags, so that all devices look the same from above.
//
// The sum of TCP or UDP is asked for with that of the pseudo header in place: the sum over the
// whole segment then includes it, for IPv4 and IPv6 alike.

#include "drivers/ethdev/finish.h"

#include <rte_ether.h>
#include <rte_ip.h>
#include <rte_tcp.h>
#include <rte_udp.h>

#include <assert.h>
#include <string.h>

static void fill_ip(struct rte_mbuf *frame)
{
	uint8_t *ip = rte_pktmbuf_mtod_offset(frame, uint8_t *, frame->l2_len);
	memset(ip + 10, 0, 2);
	uint16_t sum = rte_raw_cksum(ip, frame->l3_len);
	sum = (uint16_t)~sum;
	memcpy(ip + 10, &sum, 2);
	frame->ol_flags &= ~RTE_MBUF_F_TX_IP_CKSUM;
}

static void fill_l4(struct rte_mbuf *frame)
{
	unsigned start = (unsigned)(frame->l2_len + frame->l3_len);
	bool is_udp = (frame->ol_flags & RTE_MBUF_F_TX_L4_MASK) == RTE_MBUF_F_TX_UDP_CKSUM;
	uint8_t *l4 = rte_pktmbuf_mtod_offset(frame, uint8_t *, start);
	uint16_t sum = rte_raw_cksum(l4, rte_pktmbuf_data_len(frame) - start);
	sum = (uint16_t)~sum;
	if (is_udp && sum == 0)
		sum = 0xffff; // RFC 768: zero says that there is none
	memcpy(l4 + (is_udp ? offsetof(struct rte_udp_hdr, dgram_cksum)
			    : offsetof(struct rte_tcp_hdr, cksum)),
		&sum, 2);
	frame->ol_flags &= ~RTE_MBUF_F_TX_L4_MASK;
}

void finish_sent(const struct inside_port *port, struct rte_mbuf *frame)
{
	assert(frame->nb_segs == 1);
	uint64_t l4 = frame->ol_flags & RTE_MBUF_F_TX_L4_MASK;
	if (frame->ol_flags & RTE_MBUF_F_TX_IP_CKSUM && !port->shown.fills_ip)
		fill_ip(frame);
	if (l4 && !port->shown.fills_l4)
		fill_l4(frame);
}

// Whether the checksum field holds just the sum of the pseudo header.
static bool is_partial_sum(uint16_t field, const uint8_t *pseudo_sum_of, unsigned address_bytes,
	uint8_t protocol, uint32_t l4_len)
{
	uint32_t sum = rte_raw_cksum(pseudo_sum_of, address_bytes);
	sum += rte_cpu_to_be_16(protocol);
	sum += rte_cpu_to_be_16(l4_len & 0xffff);
	return field == __rte_raw_cksum_reduce(sum);
}

static bool has_partial_sum(const uint8_t *ip, size_t len)
{
	bool is_v6 = ip[0] >> 4 == 6;
	size_t header = is_v6 ? sizeof(struct rte_ipv6_hdr) : (ip[0] & 15) * 4u;
	uint8_t protocol = is_v6 ? ip[6] : ip[9];
	size_t total = is_v6 ? header + ((size_t)ip[4] << 8 | ip[5]) : (size_t)ip[2] << 8 | ip[3];
	if (total > len || total < header + sizeof(struct rte_tcp_hdr) || protocol != IPPROTO_TCP)
		return false;
	uint16_t field;
	memcpy(&field, ip + header + offsetof(struct rte_tcp_hdr, cksum), 2);
	return is_partial_sum(field, is_v6 ? ip + 8 : ip + 12, is_v6 ? 32 : 8, protocol,
		(uint32_t)(total - header));
}

// The kernel of this machine hands its own frames over before hardware would have summed them. Any
// other frame looks like that once in 65,536 times, and only a broken one gains by it.
static void mark_partial(struct rte_mbuf *frame)
{
	const uint8_t *bytes = rte_pktmbuf_mtod(frame, const uint8_t *);
	size_t len = rte_pktmbuf_data_len(frame), at = 2 * RTE_ETHER_ADDR_LEN;
	if (len >= at + 4 && bytes[at] == 0x81 && bytes[at + 1] == 0)
		at += 4;
	at += 2;
	if (len >= at + sizeof(struct rte_ipv6_hdr) && has_partial_sum(bytes + at, len - at))
		frame->ol_flags |= RTE_MBUF_F_RX_L4_CKSUM_NONE;
}

bool finish_received(const struct inside_port *port, struct rte_mbuf *frame)
{
	if (unlikely(frame->ol_flags & RTE_MBUF_F_RX_VLAN_STRIPPED) && rte_vlan_insert(&frame) < 0)
		return false;
	if (unlikely(frame->nb_segs > 1))
		return rte_pktmbuf_linearize(frame) == 0;
	if (port->is_partial)
		mark_partial(frame);
	return true;
}
