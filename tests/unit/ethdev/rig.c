// What the tests of ports share.

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "tests/unit/ethdev/rig.h"

#include <rte_bus_vdev.h>
#include <rte_eal.h>
#include <rte_eth_ring.h>
#include <rte_ether.h>
#include <rte_ip.h>
#include <rte_tcp.h>

#include <stdatomic.h>
#include <stdio.h>
#include <string.h>

#define OWN_BUFFERS 8192u

static struct rte_mempool *own;

void rig_eal(void)
{
	char *arguments[] = {"test", "--no-huge", "--no-shconf", "--no-pci", "--no-telemetry",
		"--log-level=error", "-m", "512", "-l", "0", NULL};
	assert_true(rte_eal_init(sizeof(arguments) / sizeof(arguments[0]) - 1, arguments) >= 0);
	own = rte_pktmbuf_pool_create(
		"test", OWN_BUFFERS, 0, 0, RTE_MBUF_DEFAULT_BUF_SIZE, SOCKET_ID_ANY);
	assert_non_null(own);
}

unsigned rig_free_buffers(void)
{
	return rte_mempool_avail_count(own);
}

struct rig_port rig_make(const char *name, unsigned rx_count, unsigned tx_count, unsigned len)
{
	struct rig_port port = {.rx_count = rx_count, .tx_count = tx_count};
	char ring[32];
	for (unsigned i = 0; i < rx_count; i++) {
		snprintf(ring, sizeof(ring), "%s_in%u", name, i);
		port.in[i] = rte_ring_create(ring, len, SOCKET_ID_ANY, RING_F_EXACT_SZ);
		assert_non_null(port.in[i]);
	}
	for (unsigned i = 0; i < tx_count; i++) {
		snprintf(ring, sizeof(ring), "%s_out%u", name, i);
		port.out[i] = rte_ring_create(ring, len, SOCKET_ID_ANY, RING_F_EXACT_SZ);
		assert_non_null(port.out[i]);
	}
	assert_true(rte_eth_from_rings(name, port.in, rx_count, port.out, tx_count, 0) >= 0);
	snprintf(port.device, sizeof(port.device), "net_ring_%s", name);
	return port;
}

static void empty(struct rte_ring *ring)
{
	void *frame;
	while (rte_ring_dequeue(ring, &frame) == 0)
		rte_pktmbuf_free(frame);
	rte_ring_free(ring);
}

void rig_free(struct rig_port *port)
{
	rte_vdev_uninit(port->device);
	for (unsigned i = 0; i < port->rx_count; i++)
		empty(port->in[i]);
	for (unsigned i = 0; i < port->tx_count; i++)
		empty(port->out[i]);
}

struct ethdev_plan rig_plan(const char *device, unsigned workers)
{
	struct ethdev_plan plan = {.worker_count = workers, .connections = 1000, .port_count = 1};
	snprintf(plan.ports[0].device, ETHDEV_DEVICE_BYTES, "%s", device);
	return plan;
}

struct ethdev *rig_open(const struct ethdev_plan *plan)
{
	struct ethdev *devices;
	char error[ETHDEV_ERROR_BYTES] = "";
	if (ethdev_open(plan, &devices, error) < 0)
		fail_msg("%s", error);
	return devices;
}

struct rte_mbuf *rig_frame(const void *bytes, unsigned len)
{
	struct rte_mbuf *frame = rte_pktmbuf_alloc(own);
	assert_non_null(frame);
	char *at = rte_pktmbuf_append(frame, (uint16_t)len);
	assert_non_null(at);
	memcpy(at, bytes, len);
	return frame;
}

static void fill_tcp(struct rte_tcp_hdr *tcp, uint16_t source_port, unsigned payload)
{
	*tcp = (struct rte_tcp_hdr){.src_port = rte_cpu_to_be_16(source_port),
		.dst_port = rte_cpu_to_be_16(443),
		.sent_seq = rte_cpu_to_be_32(0x01020304),
		.data_off = 5 << 4,
		.tcp_flags = RTE_TCP_ACK_FLAG,
		.rx_win = 0xffff};
	for (unsigned i = 0; i < payload; i++)
		((uint8_t *)(tcp + 1))[i] = (uint8_t)(i * 7);
}

static void fill_ethernet(uint8_t *frame, uint16_t type)
{
	memcpy(frame, "\x02\x00\x00\x00\x00\x01\x02\x00\x00\x00\x00\x02", 12);
	frame[12] = (uint8_t)(type >> 8);
	frame[13] = (uint8_t)type;
}

unsigned rig_segment(uint8_t frame[2048], uint16_t source_port, unsigned payload)
{
	unsigned l4_len = sizeof(struct rte_tcp_hdr) + payload;
	struct rte_ipv4_hdr *ip = (struct rte_ipv4_hdr *)(frame + 14);
	struct rte_tcp_hdr *tcp = (struct rte_tcp_hdr *)(ip + 1);
	fill_ethernet(frame, RTE_ETHER_TYPE_IPV4);
	*ip = (struct rte_ipv4_hdr){.version_ihl = 0x45,
		.total_length = rte_cpu_to_be_16((uint16_t)(sizeof(*ip) + l4_len)),
		.time_to_live = 64,
		.next_proto_id = IPPROTO_TCP,
		.src_addr = rte_cpu_to_be_32(0xc0000201),
		.dst_addr = rte_cpu_to_be_32(0xc0000202)};
	fill_tcp(tcp, source_port, payload);
	tcp->cksum = rte_ipv4_udptcp_cksum(ip, tcp);
	ip->hdr_checksum = rte_ipv4_cksum(ip);
	return 14 + sizeof(*ip) + l4_len;
}

unsigned rig_segment_v6(uint8_t frame[2048], uint16_t source_port, unsigned payload)
{
	unsigned l4_len = sizeof(struct rte_tcp_hdr) + payload;
	struct rte_ipv6_hdr *ip = (struct rte_ipv6_hdr *)(frame + 14);
	struct rte_tcp_hdr *tcp = (struct rte_tcp_hdr *)(ip + 1);
	fill_ethernet(frame, RTE_ETHER_TYPE_IPV6);
	*ip = (struct rte_ipv6_hdr){.vtc_flow = rte_cpu_to_be_32(6u << 28),
		.payload_len = rte_cpu_to_be_16((uint16_t)l4_len),
		.proto = IPPROTO_TCP,
		.hop_limits = 64,
		.src_addr = {0x20, 1, 0xd, 0xb8, [15] = 1},
		.dst_addr = {0x20, 1, 0xd, 0xb8, [15] = 2}};
	fill_tcp(tcp, source_port, payload);
	tcp->cksum = rte_ipv6_udptcp_cksum(ip, tcp);
	return 14 + sizeof(*ip) + l4_len;
}

void rig_arrive(struct rig_port *port, unsigned queue, struct rte_mbuf *frame)
{
	assert_int_equal(rte_ring_enqueue(port->in[queue], frame), 0);
}

uint64_t rig_counter(const struct ethdev_worker *w, enum ethdev_counter counter)
{
	return atomic_load(&ethdev_stats(w)->counters[counter]);
}
