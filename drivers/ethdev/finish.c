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

// Sum what begins at `l4`, with the sum of the pseudo header where the result goes.
static void fill_sum(const uint8_t *l4, size_t len, uint8_t *to, bool is_udp)
{
	uint16_t sum = rte_raw_cksum(l4, len);
	sum = (uint16_t)~sum;
	if (is_udp && sum == 0)
		sum = 0xffff; // RFC 768: zero says that there is none
	memcpy(to, &sum, 2);
}

static void fill_l4(struct rte_mbuf *frame)
{
	unsigned start = (unsigned)(frame->l2_len + frame->l3_len);
	bool is_udp = (frame->ol_flags & RTE_MBUF_F_TX_L4_MASK) == RTE_MBUF_F_TX_UDP_CKSUM;
	uint8_t *l4 = rte_pktmbuf_mtod_offset(frame, uint8_t *, start);
	fill_sum(l4, rte_pktmbuf_data_len(frame) - start,
		l4 + (is_udp ? offsetof(struct rte_udp_hdr, dgram_cksum)
			     : offsetof(struct rte_tcp_hdr, cksum)),
		is_udp);
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

// A TCP segment or UDP datagram within a frame.
struct l4 {
	size_t ip, start, end; // offsets
	bool is_v6;
	uint8_t protocol;
};

// Where in a frame's IP packet its TCP or UDP is. Returns false if there is none, whole and not
// behind extension headers.
static bool find_l4(const struct rte_mbuf *frame, struct l4 *l4)
{
	const uint8_t *bytes = rte_pktmbuf_mtod(frame, const uint8_t *);
	size_t len = rte_pktmbuf_data_len(frame), at = 2 * RTE_ETHER_ADDR_LEN;
	if (len >= at + 4 && bytes[at] == 0x81 && bytes[at + 1] == 0)
		at += 4; // a VLAN tag
	at += 2;
	if (len < at + sizeof(struct rte_ipv6_hdr))
		return false;
	const uint8_t *ip = bytes + at;
	bool is_v6 = ip[0] >> 4 == 6;
	size_t header = is_v6 ? sizeof(struct rte_ipv6_hdr) : (ip[0] & 15) * 4u;
	size_t total = is_v6 ? header + ((size_t)ip[4] << 8 | ip[5]) : (size_t)ip[2] << 8 | ip[3];
	uint8_t protocol = is_v6 ? ip[6] : ip[9];
	*l4 = (struct l4){at, at + header, at + total, is_v6, protocol};
	size_t least = protocol == IPPROTO_TCP   ? sizeof(struct rte_tcp_hdr)
		       : protocol == IPPROTO_UDP ? sizeof(struct rte_udp_hdr)
						 : SIZE_MAX;
	return l4->end <= len && total >= header && total - header >= least;
}

static size_t sum_at(const struct l4 *l4)
{
	return l4->start + (l4->protocol == IPPROTO_TCP
					   ? offsetof(struct rte_tcp_hdr, cksum)
					   : offsetof(struct rte_udp_hdr, dgram_cksum));
}

// Whether the checksum field holds just the sum of the pseudo header.
static bool has_partial_sum(const struct rte_mbuf *frame, const struct l4 *l4)
{
	const uint8_t *bytes = rte_pktmbuf_mtod(frame, const uint8_t *);
	unsigned addresses = l4->is_v6 ? 8 : 12, address_bytes = l4->is_v6 ? 32 : 8;
	uint32_t sum = rte_raw_cksum(bytes + l4->ip + addresses, address_bytes);
	sum += rte_cpu_to_be_16(l4->protocol);
	sum += rte_cpu_to_be_16((uint16_t)(l4->end - l4->start));
	uint16_t field;
	memcpy(&field, bytes + sum_at(l4), 2);
	return field == __rte_raw_cksum_reduce(sum);
}

// The kernel of this machine hands its own frames over before hardware would have summed them. Any
// other frame looks like that once in 65,536 times, and only a broken one gains by it.
static void mark_partial(struct rte_mbuf *frame)
{
	struct l4 l4;
	if (find_l4(frame, &l4) && has_partial_sum(frame, &l4))
		frame->ol_flags |= RTE_MBUF_F_RX_L4_CKSUM_NONE;
}

void finish_excepted(struct rte_mbuf *frame)
{
	struct l4 l4;
	bool is_partial =
		(frame->ol_flags & RTE_MBUF_F_RX_L4_CKSUM_MASK) == RTE_MBUF_F_RX_L4_CKSUM_NONE;
	if (!is_partial || !find_l4(frame, &l4))
		return;
	uint8_t *bytes = rte_pktmbuf_mtod(frame, uint8_t *);
	fill_sum(bytes + l4.start, l4.end - l4.start, bytes + sum_at(&l4),
		l4.protocol == IPPROTO_UDP);
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
