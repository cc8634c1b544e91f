// A port's start: what the device can do decides what is asked of it.
//
//   queues     as many as there are workers, or as the device has
//   RSS        what of TCP and addresses the device hashes, with a random key where it takes one;
//              never computed here: the queue that a frame comes on is learnt
//   checksums  received and sent ones by the device where it says so
//   VLAN       tags stay in frames
//   multicast  the groups asked for; where a device knows no groups, all of them; else all frames
//
// A device that refuses a random RSS key is asked again without (net_ena).

#include "drivers/ethdev/port.h"

#include <rte_dev.h>
#include <rte_devargs.h>
#include <rte_errno.h>
#include <rte_ethdev.h>

#include <assert.h>
#include <errno.h>
#include <net/if.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/random.h>

#define RSS_KEY_MAX 128u
#define PACKET_ALIGN 16u
#define PACKET_BLOCK_FRAMES 256u // times PACKET_ALIGN is a page: a block has no gap at its end
#define PACKET_RING_BYTES (4u << 20)
#define PACKET_OVERHEAD 104u // PACKET_MMAP's header, Ethernet's, and gaps
#define RSS_WANTED \
	(RTE_ETH_RSS_IPV4 | RTE_ETH_RSS_IPV6 | RTE_ETH_RSS_NONFRAG_IPV4_TCP | \
		RTE_ETH_RSS_NONFRAG_IPV6_TCP | RTE_ETH_RSS_FRAG_IPV4 | RTE_ETH_RSS_FRAG_IPV6)
#define RSS_NEEDED (RTE_ETH_RSS_NONFRAG_IPV4_TCP | RTE_ETH_RSS_NONFRAG_IPV6_TCP)
#define RX_IP RTE_ETH_RX_OFFLOAD_IPV4_CKSUM
#define RX_L4 RTE_ETH_RX_OFFLOAD_TCP_CKSUM
#define TX_IP RTE_ETH_TX_OFFLOAD_IPV4_CKSUM
#define TX_L4 RTE_ETH_TX_OFFLOAD_TCP_CKSUM

// What is known of devices by the names of their drivers.
static const struct kind {
	const char *driver;
	bool kernel_sees_frames, is_partial;
	bool has_same_mac; // as the kernel's end of it
	bool takes_any_mtu; // whatever it says
} kinds[] = {
	{"net_af_packet", true, true, false, true}, {"net_af_xdp", false, true, false, false},
	{"net_tap", true, false, true, false}, {"", false, false, false, false}, // any other
};

static const struct kind *kind_of(const struct rte_eth_dev_info *info)
{
	const struct kind *kind = kinds;
	while (kind->driver[0] && strcmp(kind->driver, info->driver_name) != 0)
		kind++;
	return kind;
}

__attribute__((format(printf, 3, 4))) static int fail(
	char error[ETHDEV_ERROR_BYTES], int ret, const char *format, ...)
{
	va_list arguments;
	va_start(arguments, format);
	vsnprintf(error, ETHDEV_ERROR_BYTES, format, arguments);
	va_end(arguments);
	assert(ret < 0);
	return ret;
}

bool ethdev_is_pci(const char *device)
{
	unsigned domain, bus, slot, function;
	return sscanf(device, "%x:%x:%x.%x", &domain, &bus, &slot, &function) == 4 ||
	       sscanf(device, "%x:%x.%x", &bus, &slot, &function) == 3;
}

// net_af_packet: a queue pair for each worker, and frames that hold the MTU, unless it is said
// otherwise. It looks for frames one behind the other from the ring's start, so that blocks must be
// whole frames; and copies all of a frame, so that buffers must hold it (sizes.c).
static void complete(const char *device, uint16_t mtu, unsigned workers, char *text, size_t bytes)
{
	size_t len = (size_t)snprintf(text, bytes, "%s", device);
	if (strncmp(device, "net_af_packet", 13) != 0)
		return;
	if (!strstr(device, "qpairs="))
		len += (size_t)snprintf(text + len, bytes - len, ",qpairs=%u", workers);
	if (strstr(device, "framesz=") || mtu <= RTE_ETHER_MTU)
		return;
	unsigned frame_bytes = RTE_ALIGN(mtu + PACKET_OVERHEAD, PACKET_ALIGN);
	unsigned block_bytes = frame_bytes * PACKET_BLOCK_FRAMES;
	unsigned blocks = (PACKET_RING_BYTES + block_bytes - 1) / block_bytes;
	snprintf(text + len, bytes - len, ",blocksz=%u,framesz=%u,framecnt=%u", block_bytes,
		frame_bytes, blocks * PACKET_BLOCK_FRAMES);
}

// The reason, as far as it is known: drivers of virtual devices say no more than -1.
static int fail_probe(char error[ETHDEV_ERROR_BYTES], const char *device, int ret)
{
	const char *iface = strstr(device, ",iface=");
	char name[IF_NAMESIZE] = "";
	if (iface && strncmp(device, "net_tap", 7) != 0)
		sscanf(iface, ",iface=%15[^,]", name);
	if (name[0] && if_nametoindex(name) == 0)
		return fail(error, -ENODEV, "port %s: there is no interface %s", device, name);
	if (ethdev_is_pci(device))
		return fail(error, ret, "port %s: cannot be opened: %s (is it bound to vfio-pci?)",
			device, strerror(-ret));
	return fail(error, ret, "port %s: its driver refuses it%s%s", device, ret == -1 ? "" : ": ",
		ret == -1 ? "" : strerror(-ret));
}

int port_probe(struct inside_port *port, const char *device, uint16_t mtu, unsigned workers,
	char error[ETHDEV_ERROR_BYTES])
{
	char text[ETHDEV_DEVICE_BYTES + 64];
	struct rte_devargs parsed = {0};
	complete(device, mtu, workers, text, sizeof(text));
	if (rte_devargs_parse(&parsed, text) < 0)
		return fail(error, -EINVAL, "port %s: no driver here knows such a device", device);
	snprintf(port->shown.name, sizeof(port->shown.name), "%s", parsed.name);
	free(parsed.data);
	if (rte_eth_dev_get_port_by_name(port->shown.name, &port->shown.id) == 0)
		return 0;
	int ret = rte_dev_probe(text);
	if (ret == 0)
		ret = rte_eth_dev_get_port_by_name(port->shown.name, &port->shown.id);
	if (ret < 0)
		return fail_probe(error, device, ret);
	return 0;
}

static uint16_t least(unsigned a, unsigned b)
{
	return (uint16_t)(a < b ? a : b);
}

static int count_queues(struct inside_port *port, const struct rte_eth_dev_info *info,
	unsigned workers, char error[ETHDEV_ERROR_BYTES])
{
	struct ethdev_port *shown = &port->shown;
	shown->rx_queues = least(info->max_rx_queues, workers);
	shown->tx_queues = least(info->max_tx_queues, workers);
	if (!shown->rx_queues || !shown->tx_queues)
		return fail(error, -EINVAL, "port %s: has no queues", shown->name);
	shown->has_rss = (info->flow_type_rss_offloads & RSS_NEEDED) == RSS_NEEDED;
	// net_tap wants as many of one kind as of the other.
	if (strcmp(info->driver_name, "net_tap") == 0)
		shown->rx_queues = shown->tx_queues = least(shown->rx_queues, shown->tx_queues);
	shown->is_dispatched = workers > 1 && (!shown->has_rss || shown->rx_queues < workers);
	return 0;
}

static int configure(struct inside_port *port, const struct rte_eth_dev_info *info)
{
	struct ethdev_port *shown = &port->shown;
	uint8_t key[RSS_KEY_MAX];
	uint64_t rx = info->rx_offload_capa & (RX_IP | RX_L4);
	uint64_t tx = info->tx_offload_capa & (TX_IP | TX_L4);
	struct rte_eth_conf conf = {
		.rxmode = {.mtu = shown->mtu, .offloads = rx}, .txmode = {.offloads = tx}};
	if (kind_of(info)->takes_any_mtu && shown->mtu > RTE_ETHER_MTU)
		conf.rxmode.mtu = RTE_ETHER_MTU; // it refuses more, and takes it

	shown->checks_ip = rx & RX_IP;
	shown->checks_l4 = rx & RX_L4;
	shown->fills_ip = tx & TX_IP;
	shown->fills_l4 = tx & TX_L4;
	if (!shown->has_rss || shown->rx_queues == 1)
		return rte_eth_dev_configure(shown->id, shown->rx_queues, shown->tx_queues, &conf);
	conf.rxmode.mq_mode = RTE_ETH_MQ_RX_RSS;
	conf.rx_adv_conf.rss_conf.rss_hf = info->flow_type_rss_offloads & RSS_WANTED;
	if (info->hash_key_size > 0 && info->hash_key_size <= RSS_KEY_MAX &&
		getrandom(key, sizeof(key), 0) == (ssize_t)sizeof(key)) {
		conf.rx_adv_conf.rss_conf.rss_key = key;
		conf.rx_adv_conf.rss_conf.rss_key_len = info->hash_key_size;
	}
	int ret = rte_eth_dev_configure(shown->id, shown->rx_queues, shown->tx_queues, &conf);
	if (ret == 0)
		return 0;
	conf.rx_adv_conf.rss_conf.rss_key = NULL;
	conf.rx_adv_conf.rss_conf.rss_key_len = 0;
	return rte_eth_dev_configure(shown->id, shown->rx_queues, shown->tx_queues, &conf);
}

static int set_up_queues(
	struct inside_port *port, const struct rte_eth_dev_info *info, const struct sizes *sizes)
{
	struct ethdev_port *shown = &port->shown;
	uint16_t rx_len = sizes->receive_len, tx_len = sizes->send_len;
	int socket = rte_eth_dev_socket_id(shown->id);
	int ret = rte_eth_dev_adjust_nb_rx_tx_desc(shown->id, &rx_len, &tx_len);
	struct rte_eth_rxconf rx = info->default_rxconf;
	rx.offloads = 0; // the port's own
	struct rte_eth_txconf tx = info->default_txconf;
	tx.offloads = 0;
	for (uint16_t i = 0; ret == 0 && i < shown->rx_queues; i++)
		ret = rte_eth_rx_queue_setup(
			shown->id, i, rx_len, (unsigned)socket, &rx, port->buffers);
	for (uint16_t i = 0; ret == 0 && i < shown->tx_queues; i++)
		ret = rte_eth_tx_queue_setup(shown->id, i, tx_len, (unsigned)socket, &tx);
	return ret;
}

// Frames to groups must come in, or no neighbour finds us over IPv6.
static void receive_groups(struct inside_port *port, const struct ethdev_port_plan *plan)
{
	struct rte_ether_addr groups[ETHDEV_GROUPS_MAX];
	assert(plan->group_count <= ETHDEV_GROUPS_MAX);
	for (unsigned i = 0; i < plan->group_count; i++)
		memcpy(groups[i].addr_bytes, plan->groups[i], RTE_ETHER_ADDR_LEN);
	uint16_t id = port->shown.id;
	if (rte_eth_dev_set_mc_addr_list(id, groups, plan->group_count) == 0)
		return;
	if (rte_eth_allmulticast_enable(id) != 0)
		rte_eth_promiscuous_enable(id); // a device without either filters nothing
}

static int read_mac(struct inside_port *port, const struct rte_eth_dev_info *info)
{
	struct rte_ether_addr mac;
	int ret = rte_eth_macaddr_get(port->shown.id, &mac);
	if (ret < 0)
		return ret;
	if (rte_is_zero_ether_addr(&mac))
		rte_eth_random_addr(mac.addr_bytes);
	if (kind_of(info)->has_same_mac)
		mac.addr_bytes[RTE_ETHER_ADDR_LEN - 1] ^= 1;
	memcpy(port->shown.mac, mac.addr_bytes, RTE_ETHER_ADDR_LEN);
	return 0;
}

int port_start(struct inside_port *port, const struct ethdev_port_plan *plan,
	const struct sizes *sizes, unsigned workers, char error[ETHDEV_ERROR_BYTES])
{
	struct rte_eth_dev_info info;
	struct ethdev_port *shown = &port->shown;
	int ret = rte_eth_dev_info_get(shown->id, &info);
	if (ret < 0)
		return fail(error, ret, "port %s: tells nothing of itself: %s", shown->name,
			strerror(-ret));
	shown->mtu = sizes_mtu(plan);
	if (shown->mtu < info.min_mtu || (info.max_mtu && shown->mtu > info.max_mtu))
		return fail(error, -EINVAL, "port %s: takes an MTU of %u to %u; it is to be %u",
			shown->name, info.min_mtu, info.max_mtu, shown->mtu);
	shown->kernel_sees_frames = kind_of(&info)->kernel_sees_frames;
	port->is_partial = kind_of(&info)->is_partial;
	if ((ret = count_queues(port, &info, workers, error)) < 0)
		return ret;
	if ((ret = configure(port, &info)) < 0)
		return fail(error, ret, "port %s: refuses %u receive and %u send queues: %s",
			shown->name, shown->rx_queues, shown->tx_queues, strerror(-ret));
	if ((ret = set_up_queues(port, &info, sizes)) < 0)
		return fail(error, ret, "port %s: sets up no queues of %u and %u frames: %s",
			shown->name, sizes->receive_len, sizes->send_len, strerror(-ret));
	if ((ret = rte_eth_dev_start(shown->id)) < 0 || (ret = read_mac(port, &info)) < 0)
		return fail(error, ret, "port %s: does not start: %s", shown->name, strerror(-ret));
	rte_eth_dev_set_vlan_offload(shown->id, 0);
	receive_groups(port, plan);
	return 0;
}

void port_close(struct inside_port *port)
{
	struct rte_eth_dev_info info = {0};
	rte_eth_dev_info_get(port->shown.id, &info);
	rte_eth_dev_stop(port->shown.id);
	rte_eth_dev_close(port->shown.id);
	if (info.device)
		rte_dev_remove(info.device);
}
