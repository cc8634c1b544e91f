// A report tells all groups at once, whatever the query asked for: they are few. It says that we
// listen to any source ("change to exclude", of none), which is true when a group is joined and
// stays true when it is asked for.
//
// Without a link-local address of its own a port reports from the unspecified one, which routers
// pass over and snooping switches take (RFC 3590 4).

#include "dataplane/net/mld.h"

#include "dataplane/net/checksum.h"
#include "dataplane/net/packet.h"

#include <rte_mbuf.h>

#include <arpa/inet.h>
#include <assert.h>
#include <netinet/in.h>
#include <string.h>

#define REPORT 143
#define QUERY_BYTES 24u // of version 1, which has the delay at the same place
#define CHANGE_TO_EXCLUDE 4
#define HEAD_BYTES 8u
#define RECORD_BYTES 20u
#define REPORT_MAX (HEAD_BYTES + NET_ADDRESSES_MAX * RECORD_BYTES)

// Hop-by-hop: ICMPv6 follows; a router alert for MLD (RFC 2711); padding.
static const char alert[8] = {IPPROTO_ICMPV6, 0, 5, 2, 0, 0, 1, 0};
static const uint8_t listeners[16] = {0xff, 0x02, [15] = 0x16}; // MLDv2 routers
static const uint8_t listeners_mac[6] = {0x33, 0x33, 0, 0, 0, 0x16};

enum net_fate mld_input(struct net *n, const struct frame *frame, const struct tcp_segment *segment)
{
	bool is_link_local = segment->peer.ip[0] == 0xfe && (segment->peer.ip[1] & 0xc0) == 0x80;
	if (frame->hop_limit != 1 || !is_link_local || frame->body.len < QUERY_BYTES) {
		net_count(n, NET_nd_bad);
		return NET_FATE_DONE;
	}
	uint16_t delay_ms;
	memcpy(&delay_ms, frame->body.at + 4, sizeof(delay_ms));
	uint64_t within_us = (uint64_t)ntohs(delay_ms) * 1000 + 1;
	if (within_us > MLD_DELAY_US)
		within_us = MLD_DELAY_US;
	struct net_announcement *a = &n->announcements[segment->hop.port];
	uint64_t due_us = n->driver.now_us + random_u64(n->random) % within_us;
	if (a->report_us == 0 || a->report_us > due_us)
		a->report_us = due_us;
	return NET_FATE_NOT_OURS; // the kernel has groups, too
}

// Returns the report's bytes; 0 if there is nothing to tell. `own` is told from.
static unsigned write_report(
	const struct net_port_plan *port, uint8_t report[REPORT_MAX], uint8_t own[16])
{
	unsigned count = 0;
	for (unsigned i = 0; i < port->address_count; i++) {
		const uint8_t *ip = port->addresses[i].ip;
		if (ip_is_v4(ip))
			continue;
		if (ip[0] == 0xfe && (ip[1] & 0xc0) == 0x80)
			memcpy(own, ip, 16);
		uint8_t record[RECORD_BYTES] = {CHANGE_TO_EXCLUDE};
		ip_solicited(record + RECORD_BYTES - 16, ip);
		memcpy(report + HEAD_BYTES + count++ * RECORD_BYTES, record, RECORD_BYTES);
	}
	const uint8_t head[HEAD_BYTES] = {REPORT, [7] = (uint8_t)count};
	memcpy(report, head, HEAD_BYTES);
	return count ? HEAD_BYTES + count * RECORD_BYTES : 0;
}

void mld_report(struct net *n, uint16_t port)
{
	const struct net_port_plan *p = &n->plan.ports[port];
	uint8_t report[REPORT_MAX], own[16] = {0};
	unsigned len = write_report(p, report, own);
	struct rte_mbuf *buffer = len ? ethdev_take(n->device, true) : NULL;
	if (!buffer)
		return;
	uint8_t *at = rte_pktmbuf_mtod(buffer, uint8_t *) + packet_room(p, own);
	memcpy(at, alert, sizeof(alert));
	struct packet packet = {.port = p,
		.mac = listeners_mac,
		.from = own,
		.to = listeners,
		.protocol = IPPROTO_ICMPV6,
		.hop_limit = 1,
		.hop_by_hop = sizeof(alert),
		.len = sizeof(alert) + len,
		.sum_at = sizeof(alert) + 2,
		.sum = checksum_copy(at + sizeof(alert), (struct span){(char *)report, len}),
		.has_pseudo = true};
	packet_finish(&packet, buffer);
	ethdev_send(n->device, p->id, buffer);
}

void mld_due(struct net *n)
{
	for (uint16_t port = 0; port < n->plan.port_count; port++) {
		struct net_announcement *a = &n->announcements[port];
		if (a->report_us == 0 || a->report_us > n->driver.now_us)
			continue;
		a->report_us = 0;
		mld_report(n, port);
	}
}
