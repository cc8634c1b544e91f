// Both versions say the same with other numbers, but for the checksum, which in IPv6 covers a
// pseudo-header.
//
// "Too big" is believed so far here: it quotes a TCP segment from an address and port of ours that
// was larger than what it says the path takes, and that is not less than a path may take. Whether
// it was in flight, TCP knows, at the worker whose flow it is; that worker is found by passing the
// message on. Other errors change nothing for TCP (RFC 5927 5 and 6: soft ones are ignored, and an
// attacker must not be able to make them hard), so they are for the kernel's connections.

#include "dataplane/net/icmp.h"

#include "dataplane/net/checksum.h"
#include "dataplane/net/mld.h"
#include "dataplane/net/nd.h"
#include "dataplane/net/packet.h"
#include "dataplane/net/steer.h"

#include <rte_mbuf.h>

#include <arpa/inet.h>
#include <netinet/in.h>
#include <string.h>

#define HEAD_BYTES 8u
#define QUOTED_BYTES 8u // of the segment: its ports and its sequence number

enum {
	ECHO_REPLY = 0,
	UNREACHABLE = 3,
	FRAGMENTATION_NEEDED = 4, // its code
	ECHO = 8,
	TOO_BIG_6 = 2,
	ECHO_6 = 128,
	ECHO_REPLY_6 = 129,
};

static void answer_echo(
	struct net *n, const struct frame *frame, const struct tcp_segment *s, bool is_ipv4);
static enum net_fate too_big(struct net *n, const struct frame *frame, const struct tcp_segment *s,
	bool is_ipv4, unsigned hops);

static uint16_t be16(const char *at)
{
	uint16_t value;
	memcpy(&value, at, sizeof(value));
	return ntohs(value);
}

static uint32_t be32(const char *at)
{
	uint32_t value;
	memcpy(&value, at, sizeof(value));
	return ntohl(value);
}

static bool is_good(const struct frame *frame, const struct tcp_segment *s, bool is_ipv4)
{
	uint64_t sum = checksum_sum(frame->body);
	if (!is_ipv4)
		sum += checksum_pseudo(
			s->peer.ip, s->local.ip, IPPROTO_ICMPV6, (uint32_t)frame->body.len);
	return frame->body.len >= HEAD_BYTES && checksum_is_good(sum);
}

enum net_fate icmp_input(
	struct net *n, const struct frame *frame, const struct tcp_segment *segment, unsigned hops)
{
	bool is_ipv4 = frame->kind == FRAME_IS_ICMP;
	if (!is_good(frame, segment, is_ipv4)) {
		net_count(n, NET_icmp_bad);
		return NET_FATE_DONE;
	}
	uint8_t type = (uint8_t)frame->body.at[0], code = (uint8_t)frame->body.at[1];
	if (!is_ipv4 && (type == ND_SOLICITATION || type == ND_ADVERTISEMENT))
		return nd_input(n, frame, segment);
	if (!is_ipv4 && type == MLD_QUERY)
		return mld_input(n, frame, segment);
	if (!frame_is_peer(&n->plan.ports[segment->hop.port], segment->peer.ip)) {
		net_count(n, NET_source_bad); // only neighbours may have no address yet
		return NET_FATE_DONE;
	}
	if (frame->is_to_group || segment->local.ip[0] == 0xff)
		return NET_FATE_NOT_OURS; // nothing else sent to all is answered
	if (type == (is_ipv4 ? ECHO : ECHO_6)) {
		answer_echo(n, frame, segment, is_ipv4);
		return NET_FATE_DONE;
	}
	if (is_ipv4 ? type == UNREACHABLE && code == FRAGMENTATION_NEEDED : type == TOO_BIG_6)
		return too_big(n, frame, segment, is_ipv4, hops);
	return NET_FATE_NOT_OURS;
}

// A bucket by its level in time: each answer costs ICMP_ECHO_US, and may be paid for later by as
// much as a burst costs.
static bool may_answer(struct net *n)
{
	uint64_t now_us = n->driver.now_us;
	if (n->echo_us < now_us)
		n->echo_us = now_us;
	if (n->echo_us - now_us > (ICMP_ECHO_BURST - 1) * ICMP_ECHO_US)
		return false;
	n->echo_us += ICMP_ECHO_US;
	return true;
}

static void answer_echo(
	struct net *n, const struct frame *frame, const struct tcp_segment *s, bool is_ipv4)
{
	const struct net_port_plan *port = &n->plan.ports[s->hop.port];
	unsigned room = packet_room(port, s->local.ip), len = (unsigned)frame->body.len;
	// More than the link takes is several packets that a device has put together.
	if (len + (is_ipv4 ? FRAME_IPV4_BYTES : FRAME_IPV6_BYTES) > port->mtu) {
		net_count(n, NET_icmp_bad);
		return;
	}
	struct rte_mbuf *buffer = may_answer(n) ? ethdev_take(n->device, true) : NULL;
	if (!buffer) {
		net_count(n, NET_icmp_limited);
		return;
	}
	uint8_t *at = rte_pktmbuf_mtod(buffer, uint8_t *) + room;
	const uint8_t head[4] = {is_ipv4 ? ECHO_REPLY : ECHO_REPLY_6};
	memcpy(at, head, sizeof(head));
	uint64_t sum = checksum_sum((struct span){(const char *)head, sizeof(head)}) +
		       checksum_copy(at + sizeof(head), span_from(frame->body, sizeof(head)));
	struct packet packet = {.port = port,
		.mac = s->hop.mac,
		.from = s->local.ip,
		.to = s->peer.ip,
		.protocol = is_ipv4 ? IPPROTO_ICMP : IPPROTO_ICMPV6,
		.hop_limit = PACKET_HOP_LIMIT,
		.len = len,
		.sum_at = 2,
		.sum = sum,
		.has_pseudo = !is_ipv4};
	packet_finish(&packet, buffer);
	ethdev_send(n->device, port->id, buffer);
	net_count(n, NET_echo_answered);
}

// The headers of ours that an error quotes, cut short as they may be.
//   len  of the whole packet quoted, as its header says
// Returns false if it is no TCP segment.
static bool read_quoted(struct span bytes, bool is_ipv4, struct tcp_segment *quoted, uint32_t *len)
{
	size_t head = is_ipv4 ? FRAME_IPV4_BYTES : FRAME_IPV6_BYTES;
	if (bytes.len < head)
		return false;
	if (is_ipv4)
		head = (size_t)(bytes.at[0] & 0xf) * 4;
	unsigned version = (uint8_t)bytes.at[0] >> 4, protocol = (uint8_t)bytes.at[is_ipv4 ? 9 : 6];
	if (version != (is_ipv4 ? 4 : 6) || head < FRAME_IPV4_BYTES ||
		bytes.len < head + QUOTED_BYTES || protocol != IPPROTO_TCP)
		return false;
	if (is_ipv4) {
		*len = be16(bytes.at + 2);
		ip_map(quoted->local.ip, bytes.at + 12);
		ip_map(quoted->peer.ip, bytes.at + 16);
	} else {
		*len = FRAME_IPV6_BYTES + be16(bytes.at + 4);
		memcpy(quoted->local.ip, bytes.at + 8, 16);
		memcpy(quoted->peer.ip, bytes.at + 24, 16);
	}
	quoted->local.port = be16(bytes.at + head);
	quoted->peer.port = be16(bytes.at + head + 2);
	quoted->seq = be32(bytes.at + head + 4);
	return true;
}

static enum net_fate too_big(struct net *n, const struct frame *frame, const struct tcp_segment *s,
	bool is_ipv4, unsigned hops)
{
	struct tcp_segment quoted = {.hop = s->hop};
	uint32_t len = 0;
	uint32_t mtu = is_ipv4 ? be16(frame->body.at + 6) : be32(frame->body.at + 4);
	bool is_ours = read_quoted(span_from(frame->body, HEAD_BYTES), is_ipv4, &quoted, &len) &&
		       frame_is_ours(&n->plan.ports[s->hop.port], quoted.local.ip) &&
		       net_listens(n, &quoted.local);
	if (!is_ours)
		return NET_FATE_NOT_OURS;
	if (mtu < (is_ipv4 ? ICMP4_MTU_MIN : ICMP6_MTU_MIN) || mtu >= len) {
		net_count(n, NET_icmp_bad);
		return NET_FATE_DONE;
	}
	if (hops < steer_hops_max(n) && tcp_owns(n->tcp, &quoted) != TCP_OWNER_CONNECTION)
		return NET_FATE_PASS;
	tcp_too_big(n->tcp, &quoted, (uint16_t)mtu);
	return NET_FATE_DONE;
}
