// The calls of wire.h. Fields are stored byte by byte through rte_* types in packed structs of
// DPDK; the sums are DPDK's too.

#include "bench/packets/wire.h"

#include <rte_arp.h>
#include <rte_ether.h>
#include <rte_ip.h>
#include <rte_tcp.h>

#include <string.h>

#define WINDOW 65535
#define TIMESTAMP_BYTES 12u // NOP NOP kind length value echo
#define SYN_OPTION_BYTES 20u // MSS, SACK permitted, timestamp, NOP, scale

static void write_ether(const struct wire_ends *ends, uint16_t type, bool to_all, char *frame)
{
	struct rte_ether_hdr *ether = (struct rte_ether_hdr *)frame;
	memcpy(&ether->dst_addr, ends->server_mac, 6);
	if (to_all)
		memset(&ether->dst_addr, 0xff, 6);
	memcpy(&ether->src_addr, ends->client_mac, 6);
	ether->ether_type = rte_cpu_to_be_16(type);
}

static char *write_32(char *at, uint32_t value)
{
	rte_be32_t be = rte_cpu_to_be_32(value);
	memcpy(at, &be, 4);
	return at + 4;
}

// Returns how many bytes of options were written.
static unsigned write_options(
	const struct wire_ends *ends, const struct wire_segment *segment, char *at)
{
	if (segment->flags & WIRE_SYN) {
		static const char first[] = {2, 4, 1460 >> 8, (char)(1460 & 255)};
		memcpy(at, first, 4);
		if (!ends->has_timestamps)
			return 4;
		memcpy(at + 4, "\4\2\10\12", 4);
		write_32(write_32(at + 8, segment->ts_value), 0);
		memcpy(at + 16, "\1\3\3\7", 4);
		return SYN_OPTION_BYTES;
	}
	if (!segment->has_timestamp)
		return 0;
	memcpy(at, "\1\1\10\12", 4);
	write_32(write_32(at + 4, segment->ts_value), segment->ts_echo);
	return TIMESTAMP_BYTES;
}

unsigned wire_write(const struct wire_ends *ends, const struct wire_segment *segment, char *frame)
{
	struct rte_ipv4_hdr *ip = (struct rte_ipv4_hdr *)(frame + sizeof(struct rte_ether_hdr));
	struct rte_tcp_hdr *tcp = (struct rte_tcp_hdr *)(ip + 1);
	char *options = (char *)(tcp + 1);
	write_ether(ends, RTE_ETHER_TYPE_IPV4, false, frame);
	unsigned option_bytes = write_options(ends, segment, options);
	if (segment->payload.len > 0) // else it may be NULL
		memcpy(options + option_bytes, segment->payload.at, segment->payload.len);
	uint16_t tcp_bytes = (uint16_t)(sizeof(*tcp) + option_bytes + segment->payload.len);
	*ip = (struct rte_ipv4_hdr){.version_ihl = 0x45,
		.total_length = rte_cpu_to_be_16((uint16_t)(sizeof(*ip) + tcp_bytes)),
		.fragment_offset = rte_cpu_to_be_16(RTE_IPV4_HDR_DF_FLAG),
		.time_to_live = 64,
		.next_proto_id = 6,
		.src_addr = rte_cpu_to_be_32(segment->client_ip),
		.dst_addr = rte_cpu_to_be_32(ends->server_ip)};
	*tcp = (struct rte_tcp_hdr){.src_port = rte_cpu_to_be_16(segment->client_port),
		.dst_port = rte_cpu_to_be_16(ends->server_port),
		.sent_seq = rte_cpu_to_be_32(segment->seq),
		.recv_ack = rte_cpu_to_be_32(segment->ack),
		.data_off = (uint8_t)((sizeof(*tcp) + option_bytes) / 4 << 4),
		.tcp_flags = segment->flags,
		.rx_win = rte_cpu_to_be_16(WINDOW)};
	ip->hdr_checksum = rte_ipv4_cksum(ip);
	tcp->cksum = rte_ipv4_udptcp_cksum(ip, tcp);
	return (unsigned)(sizeof(struct rte_ether_hdr) + sizeof(*ip) + tcp_bytes);
}

// Only the layout that Linux and sluice send: NOP NOP timestamp, or a SYN's.
static void read_timestamp(const char *options, unsigned bytes, struct wire_segment *segment)
{
	for (unsigned i = 0; i + 10 <= bytes;) {
		uint8_t kind = (uint8_t)options[i], len = (uint8_t)options[i + 1];
		if (kind == 1) {
			i++;
			continue;
		}
		if (kind == 8 && len == 10) {
			rte_be32_t value;
			memcpy(&value, options + i + 2, 4);
			segment->has_timestamp = true;
			segment->ts_value = rte_be_to_cpu_32(value);
			return;
		}
		if (kind == 0 || len < 2)
			return;
		i += len;
	}
}

bool wire_read(const struct wire_ends *ends, struct span frame, struct wire_segment *segment)
{
	const struct rte_ether_hdr *ether = (const struct rte_ether_hdr *)frame.at;
	const struct rte_ipv4_hdr *ip = (const struct rte_ipv4_hdr *)(ether + 1);
	const struct rte_tcp_hdr *tcp = (const struct rte_tcp_hdr *)(ip + 1);
	if (frame.len < sizeof(*ether) + sizeof(*ip) + sizeof(*tcp) ||
		ether->ether_type != rte_cpu_to_be_16(RTE_ETHER_TYPE_IPV4) ||
		ip->version_ihl != 0x45 || ip->next_proto_id != 6 ||
		rte_be_to_cpu_32(ip->src_addr) != ends->server_ip)
		return false;
	unsigned whole = rte_be_to_cpu_16(ip->total_length), offset = (tcp->data_off >> 4) * 4u;
	if (whole + sizeof(*ether) > frame.len || offset < sizeof(*tcp) ||
		sizeof(*ip) + offset > whole)
		return false;
	*segment = (struct wire_segment){.client_ip = rte_be_to_cpu_32(ip->dst_addr),
		.client_port = rte_be_to_cpu_16(tcp->dst_port),
		.flags = tcp->tcp_flags,
		.seq = rte_be_to_cpu_32(tcp->sent_seq),
		.ack = rte_be_to_cpu_32(tcp->recv_ack),
		.payload = {(const char *)tcp + offset, whole - sizeof(*ip) - offset}};
	read_timestamp((const char *)(tcp + 1), offset - (unsigned)sizeof(*tcp), segment);
	return true;
}

static unsigned write_arp(
	const struct wire_ends *ends, uint16_t operation, uint32_t from, uint32_t to, char *frame)
{
	struct rte_arp_hdr *arp = (struct rte_arp_hdr *)(frame + sizeof(struct rte_ether_hdr));
	write_ether(ends, RTE_ETHER_TYPE_ARP, operation == RTE_ARP_OP_REQUEST, frame);
	*arp = (struct rte_arp_hdr){.arp_hardware = rte_cpu_to_be_16(RTE_ARP_HRD_ETHER),
		.arp_protocol = rte_cpu_to_be_16(RTE_ETHER_TYPE_IPV4),
		.arp_hlen = 6,
		.arp_plen = 4,
		.arp_opcode = rte_cpu_to_be_16(operation),
		.arp_data = {.arp_sip = rte_cpu_to_be_32(from), .arp_tip = rte_cpu_to_be_32(to)}};
	memcpy(&arp->arp_data.arp_sha, ends->client_mac, 6);
	memcpy(&arp->arp_data.arp_tha, ends->server_mac, 6);
	memset(arp + 1, 0, 60 - sizeof(struct rte_ether_hdr) - sizeof(*arp));
	return 60;
}

unsigned wire_ask(const struct wire_ends *ends, uint32_t client_ip, char *frame)
{
	return write_arp(ends, RTE_ARP_OP_REQUEST, client_ip, ends->server_ip, frame);
}

static const struct rte_arp_hdr *arp_of(struct span frame, uint16_t operation)
{
	const struct rte_ether_hdr *ether = (const struct rte_ether_hdr *)frame.at;
	const struct rte_arp_hdr *arp = (const struct rte_arp_hdr *)(ether + 1);
	bool is_it = frame.len >= sizeof(*ether) + sizeof(*arp) &&
		     ether->ether_type == rte_cpu_to_be_16(RTE_ETHER_TYPE_ARP) &&
		     arp->arp_opcode == rte_cpu_to_be_16(operation);
	return is_it ? arp : NULL;
}

bool wire_told(struct wire_ends *ends, struct span frame)
{
	const struct rte_arp_hdr *arp = arp_of(frame, RTE_ARP_OP_REPLY);
	if (!arp || rte_be_to_cpu_32(arp->arp_data.arp_sip) != ends->server_ip)
		return false;
	memcpy(ends->server_mac, &arp->arp_data.arp_sha, 6);
	return true;
}

unsigned wire_tell(const struct wire_ends *ends, struct span question, char *frame)
{
	const struct rte_arp_hdr *arp = arp_of(question, RTE_ARP_OP_REQUEST);
	if (!arp)
		return 0;
	return write_arp(ends, RTE_ARP_OP_REPLY, rte_be_to_cpu_32(arp->arp_data.arp_tip),
		rte_be_to_cpu_32(arp->arp_data.arp_sip), frame);
}
