// Header, options and payload are written and summed in one pass, straight into the buffer that
// leaves. The header is summed from registers: reading back in wide words what was just written in
// narrow ones stalls.

#include "dataplane/net/out.h"

#include "dataplane/net/checksum.h"
#include "dataplane/net/inside.h"
#include "dataplane/net/packet.h"
#include "dataplane/net/share.h"

#include <rte_mbuf.h>

#include <arpa/inet.h>
#include <assert.h>
#include <netinet/in.h>
#include <string.h>

#define CHECKSUM_AT 16u

static uint64_t write_header(const struct tcp_out *out, uint8_t *at);
static uint64_t write_payload(const struct tcp_out *out, uint8_t *at, bool sums);
static uint32_t flow_label(const struct net *n, const struct tcp_out *out);

void out_send(void *ctx, const struct tcp_out *out)
{
	struct net *n = ctx;
	struct rte_mbuf *buffer = ethdev_take(n->device, out->is_control);
	if (!buffer)
		return;
	const struct net_port_plan *port = &n->plan.ports[out->hop->port];
	unsigned room = packet_room(port, out->local->ip);
	unsigned head = TCP_HEADER_BYTES + out->option_bytes, len = head;
	for (unsigned i = 0; i < out->part_count; i++)
		len += (unsigned)out->parts[i].len;
	assert(room + len <= rte_pktmbuf_tailroom(buffer));
	uint8_t *at = rte_pktmbuf_mtod(buffer, uint8_t *) + room;
	uint64_t sum = write_header(out, at);
	sum += write_payload(out, at + head, !port->fills_l4);
	struct tcp_hop hop = gateway_follow(gateway_moves(n->shared->gateways), *out->hop);
	struct packet packet = {.port = port,
		.mac = hop.mac,
		.from = out->local->ip,
		.to = out->peer->ip,
		.protocol = IPPROTO_TCP,
		.hop_limit = PACKET_HOP_LIMIT,
		.flow = flow_label(n, out),
		.len = len,
		.sum_at = CHECKSUM_AT,
		.sum = sum,
		.has_pseudo = true};
	packet_finish(&packet, buffer);
	buffer->l4_len = head;
	ethdev_send(n->device, port->id, buffer);
}

static uint64_t write_header(const struct tcp_out *out, uint8_t *at)
{
	assert(out->option_bytes % 4 == 0 && out->option_bytes <= sizeof(out->options));
	unsigned head = TCP_HEADER_BYTES + out->option_bytes;
	uint32_t words[] = {htonl((uint32_t)out->local->port << 16 | out->peer->port),
		htonl(out->seq), htonl(out->ack),
		htonl(head / 4 << 28 | (uint32_t)out->flags << 16 | out->window), 0};
	static_assert(sizeof(words) == TCP_HEADER_BYTES, "RFC 9293 3.1");
	memcpy(at, words, sizeof(words));
	uint64_t sum = checksum_words(words, 4);
	for (unsigned i = 0; i < out->option_bytes; i += 4) {
		uint32_t word;
		memcpy(&word, out->options + i, sizeof(word));
		memcpy(at + sizeof(words) + i, &word, sizeof(word));
		sum += word;
	}
	return sum;
}

static uint64_t write_payload(const struct tcp_out *out, uint8_t *at, bool sums)
{
	uint64_t sum = 0;
	size_t offset = 0;
	for (unsigned i = 0; i < out->part_count; i++) {
		struct span part = out->parts[i];
		if (sums) {
			uint64_t piece = checksum_copy(at + offset, part);
			sum += offset & 1 ? checksum_turn(piece) : piece;
		} else {
			memcpy(at + offset, part.at, part.len);
		}
		offset += part.len;
	}
	return sum;
}

// One for all packets of a flow, not to be guessed from another's (RFC 6437 3).
static uint32_t flow_label(const struct net *n, const struct tcp_out *out)
{
	if (ip_is_v4(out->local->ip))
		return 0;
	uint64_t words[4], mix = n->flow_key ^ ((uint64_t)out->local->port << 16 | out->peer->port);
	memcpy(words, out->local->ip, 16);
	memcpy(words + 2, out->peer->ip, 16);
	for (unsigned i = 0; i < 4; i++) {
		mix = (mix ^ words[i]) * UINT64_C(0x9e3779b97f4a7c15);
		mix ^= mix >> 32;
	}
	return (uint32_t)mix & 0xfffff;
}
