// What comes from the link has a hop limit of 255, which no router lets through (RFC 4861 7.1); the
// rest is counted and dropped. Options are walked to the link-layer address; others are skipped.
//
// An advertisement, after we have learnt from it, also goes to the exception interface, as do all
// questions for others' addresses: see arp.c.

#include "dataplane/net/nd.h"

#include "dataplane/net/announce.h"
#include "dataplane/net/checksum.h"
#include "dataplane/net/packet.h"
#include "dataplane/net/share.h"

#include <rte_mbuf.h>

#include <arpa/inet.h>
#include <netinet/in.h>
#include <string.h>

#define HOP_LIMIT 255u
#define SOURCE_LINK_ADDRESS 1
#define TARGET_LINK_ADDRESS 2

enum advertisement_flag { SOLICITED = 0x40, OVERRIDE = 0x20 }; // of its fifth byte

struct message {
	uint8_t type, code;
	uint16_t checksum;
	uint8_t flags, reserved[3];
	uint8_t target[16];
	uint8_t option, option_words, mac[6]; // link-layer address; when written, may be left out
};
static_assert(sizeof(struct message) == 32, "RFC 4861 4.3, 4.4");
#define BARE_BYTES 24u // without the option

struct link {
	uint8_t mac[6];
	bool is_known;
};

static const uint8_t nobody[16];
static const uint8_t all_nodes[16] = {0xff, 0x02, [15] = 1};

static bool read_message(
	const struct frame *frame, const struct tcp_segment *s, struct message *m, struct link *l);
static enum net_fate solicited(
	struct net *n, const struct tcp_segment *s, const struct message *m, const struct link *l);
static enum net_fate advertised(
	struct net *n, const struct tcp_segment *s, const struct message *m, const struct link *l);
static void send_message(struct net *n, uint16_t port, const uint8_t *mac, const uint8_t from[16],
	const uint8_t to[16], struct message *m, unsigned len);

enum net_fate nd_input(struct net *n, const struct frame *frame, const struct tcp_segment *segment)
{
	struct message m;
	struct link l;
	if (!read_message(frame, segment, &m, &l)) {
		net_count(n, NET_nd_bad);
		return NET_FATE_DONE;
	}
	return m.type == ND_SOLICITATION ? solicited(n, segment, &m, &l)
					 : advertised(n, segment, &m, &l);
}

static bool find_link(struct span options, uint8_t kind, struct link *l)
{
	*l = (struct link){.is_known = false};
	while (options.len > 0) {
		size_t len = options.len > 1 ? (size_t)(uint8_t)options.at[1] * 8 : 0;
		if (len == 0 || len > options.len)
			return false;
		if ((uint8_t)options.at[0] == kind && len == 8) {
			memcpy(l->mac, options.at + 2, sizeof(l->mac));
			l->is_known = true;
			if (l->mac[0] & 1)
				return false;
		}
		options = span_from(options, len);
	}
	return true;
}

static bool read_message(
	const struct frame *frame, const struct tcp_segment *s, struct message *m, struct link *l)
{
	if (frame->hop_limit != HOP_LIMIT || frame->body.len < BARE_BYTES)
		return false;
	memcpy(m, frame->body.at, BARE_BYTES);
	bool is_question = m->type == ND_SOLICITATION;
	uint8_t kind = is_question ? SOURCE_LINK_ADDRESS : TARGET_LINK_ADDRESS;
	bool is_to_group = s->local.ip[0] == 0xff,
	     is_from_nobody = memcmp(s->peer.ip, nobody, 16) == 0;
	if (m->code != 0 || m->target[0] == 0xff ||
		!find_link(span_from(frame->body, BARE_BYTES), kind, l))
		return false;
	if (is_from_nobody) // asks for itself, to the group, and has no address to tell
		return is_question && is_to_group && !l->is_known;
	return is_question || !is_to_group || !(m->flags & SOLICITED);
}

static void learn(
	struct net *n, uint16_t port, const uint8_t ip[16], const struct link *l, bool overrides)
{
	if (gateway_heard(n->shared->gateways, port, ip, l->mac, overrides, n->driver.now_us))
		net_count(n, NET_gateway_moved);
}

static enum net_fate solicited(
	struct net *n, const struct tcp_segment *s, const struct message *m, const struct link *l)
{
	uint16_t port = s->hop.port;
	const struct net_port_plan *p = &n->plan.ports[port];
	if (!frame_is_ours(p, m->target))
		return NET_FATE_NOT_OURS;
	bool is_from_nobody = memcmp(s->peer.ip, nobody, sizeof(nobody)) == 0;
	if (l->is_known)
		learn(n, port, s->peer.ip, l, true);
	struct message answer = {
		.type = ND_ADVERTISEMENT, .option = TARGET_LINK_ADDRESS, .option_words = 1};
	memcpy(answer.target, m->target, sizeof(answer.target));
	memcpy(answer.mac, p->mac, sizeof(answer.mac));
	answer.flags = is_from_nobody ? OVERRIDE : OVERRIDE | SOLICITED;
	if (is_from_nobody)
		send_message(n, port, NULL, m->target, all_nodes, &answer, sizeof(answer));
	else
		send_message(n, port, l->is_known ? l->mac : s->hop.mac, m->target, s->peer.ip,
			&answer, sizeof(answer));
	net_count(n, NET_nd_answered);
	return NET_FATE_DONE;
}

static enum net_fate advertised(
	struct net *n, const struct tcp_segment *s, const struct message *m, const struct link *l)
{
	uint16_t port = s->hop.port;
	const struct net_port_plan *p = &n->plan.ports[port];
	if (frame_is_ours(p, m->target)) {
		net_count(n, NET_address_conflict);
		announce_defend(n, port);
	} else if (l->is_known) {
		learn(n, port, m->target, l, m->flags & OVERRIDE);
	} else if (m->flags & SOLICITED) {
		gateway_confirmed(n->shared->gateways, port, m->target, n->driver.now_us);
	}
	return NET_FATE_NOT_OURS;
}

static void ask(struct net *n, uint16_t port, const uint8_t from[16], const uint8_t ip[16],
	const uint8_t *mac)
{
	uint8_t group[16];
	ip_solicited(group, ip);
	struct message m = {
		.type = ND_SOLICITATION, .option = SOURCE_LINK_ADDRESS, .option_words = 1};
	memcpy(m.target, ip, sizeof(m.target));
	memcpy(m.mac, n->plan.ports[port].mac, sizeof(m.mac));
	bool is_probe = from == nobody;
	send_message(n, port, mac, from, mac ? ip : group, &m, is_probe ? BARE_BYTES : sizeof(m));
}

void nd_ask(struct net *n, uint16_t port, const uint8_t ip[16], const uint8_t *mac)
{
	const uint8_t *own = net_own_address(n, port, ip);
	if (own)
		ask(n, port, own, ip, mac);
}

void nd_probe(struct net *n, uint16_t port, const uint8_t ip[16])
{
	ask(n, port, nobody, ip, NULL);
}

void nd_announce(struct net *n, uint16_t port, const uint8_t ip[16])
{
	struct message m = {.type = ND_ADVERTISEMENT,
		.flags = OVERRIDE,
		.option = TARGET_LINK_ADDRESS,
		.option_words = 1};
	memcpy(m.target, ip, sizeof(m.target));
	memcpy(m.mac, n->plan.ports[port].mac, sizeof(m.mac));
	send_message(n, port, NULL, ip, all_nodes, &m, sizeof(m));
	net_count(n, NET_announced);
}

// `mac` is NULL for a group, whose own follows from it.
static void send_message(struct net *n, uint16_t port, const uint8_t *mac, const uint8_t from[16],
	const uint8_t to[16], struct message *m, unsigned len)
{
	struct rte_mbuf *buffer = ethdev_take(n->device, true);
	if (!buffer)
		return;
	const struct net_port_plan *p = &n->plan.ports[port];
	uint8_t group[6];
	ip_group_mac(group, to);
	uint8_t *at = rte_pktmbuf_mtod(buffer, uint8_t *) + packet_room(p, from);
	uint64_t sum = checksum_copy(at, (struct span){(const char *)m, len});
	struct packet packet = {.port = p,
		.mac = mac ? mac : group,
		.from = from,
		.to = to,
		.protocol = IPPROTO_ICMPV6,
		.hop_limit = HOP_LIMIT,
		.len = len,
		.sum_at = offsetof(struct message, checksum),
		.sum = sum,
		.has_pseudo = true};
	packet_finish(&packet, buffer);
	ethdev_send(n->device, p->id, buffer);
}
