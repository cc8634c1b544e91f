// Plans for ports and network, from the configuration alone where the bill asks, with what the
// devices turned out to be when they are open.
//
// How TCP's pools follow from `connections` and `buffers`:
//
//   works     an eighth of the connections have something under way at once, but at least 4,096
//   chunks    as many bytes as the sockets driver has send buffers, in pieces of one segment, but
//             at least one for each work; a quarter of it for what comes out of order
//   waits     one for each connection, but at least 65,536: a poller that closes leaves one each
//             time, and the oldest makes room
//   resets    one a second for each connection, so that all whom the last process knew are told
//             within a second that it is gone, and no flood gets more out of us than that

#include "controlplane/ports.h"

#include "controlplane/listeners.h"
#include "controlplane/log.h"
#include "dataplane/worker.h"
#include "drivers/ip.h"

#include <errno.h>
#include <stdio.h>
#include <string.h>
#include <sys/random.h>
#include <unistd.h>

#define WORKS_MIN 4096u
#define WAITS_MIN 65536u
#define CHUNK_BYTES 2048u
#define WAIT_US 60000000u // TIME_WAIT
#define IDLE_US 4000000000u // above an hour, the most that a worker's own deadlines are
#define US_PER_MS 1000u // an hour, the most that http.send_timeout may be, fits 32 bits of us
#define RTO_MIN_US 200000u // RFC 6298 says 1 s; all since have had less
#define RTO_MAX_US 60000000u
#define DELAYED_ACK_US 40000u
#define CHALLENGES_PER_SECOND 10u // RFC 5961 7
#define SEND_QUEUES 4u // times queue_max: what may be queued and not yet acknowledged
#define MEGABYTE (1u << 20)

_Static_assert(ETHDEV_PORTS_MAX == 16, "keys.def has as many dpdk.ports");
_Static_assert(NET_ADDRESSES_MAX == 32 && NET_GATEWAYS_MAX == 4, "and addresses and gateways");
_Static_assert(NET_ADDRESSES_MAX + 1 <= ETHDEV_GROUPS_MAX, "a group for each address, and all");

static bool is_used(const struct config *config)
{
	return config->driver == CONFIG_DRIVER_DPDK && config->dpdk;
}

// All nodes, and those in which neighbours ask for the addresses.
static void fill_groups(const struct config_port *port, struct ethdev_port_plan *plan)
{
	static const uint8_t all_nodes[16] = {0xff, 0x02, [15] = 1};
	ip_group_mac(plan->groups[plan->group_count++], all_nodes);
	for (uint32_t i = 0; i < port->addresses.count; i++) {
		uint8_t group[16];
		if (ip_is_v4(port->addresses.at[i].ip))
			continue;
		ip_solicited(group, port->addresses.at[i].ip);
		ip_group_mac(plan->groups[plan->group_count++], group);
	}
}

static void devices_plan(const struct config *config, uint32_t worker_count, bool has_hugepages,
	struct ethdev_plan *plan)
{
	const struct config_ports *ports = &config->dpdk->ports;
	*plan = (struct ethdev_plan){.worker_count = worker_count,
		.connections = (uint32_t)config->connections,
		.has_hugepages = has_hugepages,
		.port_count = ports->count};
	for (uint32_t i = 0; i < ports->count; i++) {
		const struct config_port *from = &ports->at[i];
		struct ethdev_port_plan *port = &plan->ports[i];
		bool is_none = strcmp(from->exception, "none") == 0;
		snprintf(port->device, sizeof(port->device), "%s", from->device);
		snprintf(port->exception, sizeof(port->exception), "%s",
			is_none ? "" : from->exception);
		port->mtu = (uint16_t)from->mtu;
		fill_groups(from, port);
	}
}

static void fill_tcp(const struct config *config, uint32_t worker_count, struct tcp_plan *tcp)
{
	const struct config_buffers *buffers = config->buffers;
	uint32_t share = (uint32_t)(config->connections / worker_count);
	share = share ? share : 1;
	uint32_t resets = (uint32_t)config->dpdk->resets;
	uint32_t works = share / 8 > WORKS_MIN ? share / 8 : WORKS_MIN;
	uint32_t chunks = (uint32_t)(buffers->per_worker * buffers->size_bytes / CHUNK_BYTES);
	chunks = chunks > works ? chunks : works;
	*tcp = (struct tcp_plan){.connections_max = share,
		.reserve = WORKER_RESERVE,
		.wait_max = share > WAITS_MIN ? share : WAITS_MIN,
		.works_max = works,
		.send_chunks = chunks,
		.receive_chunks = chunks / 4,
		.chunk_bytes = CHUNK_BYTES,
		.send_max = SEND_QUEUES * (uint32_t)buffers->queue_bytes,
		.receive_max = (uint32_t)buffers->queue_bytes,
		.queue_high = buffers->queue_bytes,
		.rto_min_us = RTO_MIN_US,
		.rto_max_us = RTO_MAX_US,
		.give_up_us = (uint32_t)config->http->send_timeout_ms * US_PER_MS,
		.idle_us = IDLE_US,
		.wait_us = WAIT_US,
		.linger_us = (uint32_t)config->http->send_timeout_ms * US_PER_MS,
		.delayed_ack_us = DELAYED_ACK_US,
		.challenge_rate = CHALLENGES_PER_SECOND,
		.reset_rate = resets ? resets : share,
		.listener_count = config->listen.count};
	for (uint32_t i = 0; i < config->listen.count; i++)
		tcp->listeners[i] = listeners_address(&config->listen.at[i].address);
}

static void fill_port(const struct config_port *from, struct net_port_plan *port)
{
	port->mtu = (uint16_t)from->mtu;
	port->vlan = (uint16_t)from->vlan;
	port->address_count = from->addresses.count;
	port->gateway_count = from->gateways.count;
	for (uint32_t i = 0; i < from->addresses.count; i++) {
		const struct config_interface *address = &from->addresses.at[i];
		memcpy(port->addresses[i].ip, address->ip, sizeof(address->ip));
		port->addresses[i].prefix =
			ip_is_v4(address->ip) ? address->bits - 96 : address->bits;
	}
	for (uint32_t i = 0; i < from->gateways.count; i++)
		memcpy(port->gateways[i], from->gateways.at[i].ip, sizeof(port->gateways[i]));
}

static void network_plan(const struct config *config, uint32_t worker_count, struct net_plan *plan)
{
	const struct config_ports *ports = &config->dpdk->ports;
	*plan = (struct net_plan){.worker_count = worker_count, .port_count = ports->count};
	for (uint32_t i = 0; i < ports->count; i++)
		fill_port(&ports->at[i], &plan->ports[i]);
	fill_tcp(config, worker_count, &plan->tcp);
}

static void learn_port(const struct ethdev_port *from, struct net_port_plan *port)
{
	port->id = from->id;
	memcpy(port->mac, from->mac, sizeof(port->mac));
	port->mtu = from->mtu;
	port->kernel_sees_frames = from->kernel_sees_frames;
	port->has_exception = from->has_exception;
	port->fills_ip = from->fills_ip;
	port->fills_l4 = from->fills_l4;
	port->has_rss = from->has_rss;
}

static void log_port(const struct ethdev_port *port)
{
	const uint8_t *mac = port->mac;
	log_info("port %s: %02x:%02x:%02x:%02x:%02x:%02x, MTU %u, %u receive and %u send queues, "
		 "%schecksums %s in and %s out by the device%s%s",
		port->name, mac[0], mac[1], mac[2], mac[3], mac[4], mac[5], port->mtu,
		port->rx_queues, port->tx_queues,
		port->is_dispatched   ? "flows spread by sluice, "
		: port->rx_queues > 1 ? "flows spread by the device, "
				      : "",
		port->checks_l4 ? "verified" : "not", port->fills_l4 ? "written" : "not",
		port->has_exception ? ", what is not for sluice to " : "", port->exception);
}

int ports_open(const struct config *config, unsigned worker_count, struct ports *ports)
{
	struct ethdev_plan plan;
	char error[ETHDEV_ERROR_BYTES];
	devices_plan(config, worker_count, true, &plan);
	network_plan(config, worker_count, &ports->plan);
	int ret = ethdev_open(&plan, &ports->devices, error);
	if (ret < 0) {
		log_error("%s", error);
		return ret;
	}
	for (unsigned i = 0; i < plan.port_count; i++) {
		learn_port(ethdev_port(ports->devices, i), &ports->plan.ports[i]);
		log_port(ethdev_port(ports->devices, i));
	}
	uint8_t *secret = ports->plan.tcp.secret;
	const size_t secret_bytes = sizeof(ports->plan.tcp.secret);
	if (getrandom(secret, secret_bytes, 0) != (ssize_t)secret_bytes)
		ret = -EIO;
	else
		ret = net_share(&ports->plan, &ports->shared);
	if (ret < 0)
		log_error("the network of the ports: %s", strerror(-ret));
	return ret;
}

int ports_driver(struct ports *ports, unsigned worker, struct stream_driver **driver)
{
	struct ethdev_worker *device = ethdev_worker(ports->devices, worker);
	int ret = net_create(&ports->plan, worker, device, ports->shared, driver);
	if (ret < 0)
		log_error("worker %u: network: %s", worker, strerror(-ret));
	return ret;
}

void ports_close(struct ports *ports)
{
	net_share_end(ports->shared);
	ethdev_close(ports->devices);
}

static uint64_t bytes_in(const struct config *config, uint32_t worker_count, bool has_hugepages)
{
	struct ethdev_plan plan;
	if (!is_used(config) || config->dpdk->ports.count == 0)
		return 0;
	devices_plan(config, worker_count, has_hugepages, &plan);
	return ethdev_bytes(&plan);
}

uint64_t ports_bytes(const struct config *config, uint32_t worker_count)
{
	bool has_hugepages = config->dpdk && config->dpdk->hugepages == CONFIG_HUGEPAGES_REQUIRED;
	return bytes_in(config, worker_count, has_hugepages);
}

uint64_t ports_network_bytes(const struct config *config, uint32_t worker_count)
{
	struct net_plan plan;
	if (!is_used(config) || config->dpdk->ports.count == 0)
		return 0;
	network_plan(config, worker_count, &plan);
	return worker_count * net_bytes(&plan);
}

static bool are_hugepages_enough(const struct config_machine *machine, uint64_t bytes)
{
	return bytes <= machine->hugepages_free * machine->hugepage_bytes;
}

void ports_eal(const struct config *config, const struct config_machine *machine,
	unsigned worker_count, struct process_eal *eal)
{
	*eal = (struct process_eal){0};
	if (!is_used(config))
		return;
	eal->bytes = bytes_in(config, worker_count, true);
	eal->has_hugepages = config->dpdk->hugepages == CONFIG_HUGEPAGES_REQUIRED ||
			     (config->dpdk->hugepages == CONFIG_HUGEPAGES_AUTO &&
				     are_hugepages_enough(machine, process_eal_bytes(eal)));
	if (!eal->has_hugepages)
		eal->bytes = bytes_in(config, worker_count, false);
	for (uint32_t i = 0; i < config->dpdk->ports.count; i++) {
		const char *device = config->dpdk->ports.at[i].device;
		if (ethdev_is_pci(device))
			eal->pci[eal->pci_count++] = device;
	}
}

// The name at the end of a link in the system's tree of devices; "" if there is none.
static void read_link(const char *device, const char *name, char text[64])
{
	char path[256], target[256];
	size_t len = strcspn(device, ",");
	bool is_short = strchr(device, ':') == strrchr(device, ':'); // without the domain
	snprintf(path, sizeof(path), "/sys/bus/pci/devices/%s%.*s/%s", is_short ? "0000:" : "",
		(int)len, device, name);
	ssize_t got = readlink(path, target, sizeof(target) - 1);
	target[got > 0 ? got : 0] = '\0';
	const char *slash = strrchr(target, '/');
	snprintf(text, 64, "%s", slash ? slash + 1 : "");
}

static int read_node(const char *device)
{
	char path[256];
	int node = -1;
	snprintf(path, sizeof(path), "/sys/bus/pci/devices/%.*s/numa_node",
		(int)strcspn(device, ","), device);
	FILE *file = fopen(path, "re");
	if (file && fscanf(file, "%d", &node) != 1)
		node = -1;
	if (file)
		fclose(file);
	return node;
}

static void print_card(const char *device, FILE *out)
{
	char driver[64], subsystem[64];
	read_link(device, "driver", driver);
	read_link(device, "subsystem", subsystem);
	int node = read_node(device);
	fprintf(out, "port %s: ", device);
	if (!subsystem[0])
		fputs("there is no such device", out);
	else if (!driver[0])
		fputs("bound to no driver; bind it to vfio-pci", out);
	else
		fprintf(out, "driven by %s%s", driver,
			strncmp(driver, "vfio", 4) == 0 || strncmp(driver, "mlx", 3) == 0
				? ""
				: "; bind it to vfio-pci");
	if (node >= 0)
		fprintf(out, ", on NUMA node %d", node);
	fputc('\n', out);
}

// What each connection takes though nothing is under way on it: structs and shares of tables, the
// worker's by the bill, and TCP's.
static uint64_t idle_bytes(
	const struct config *config, const struct config_bill *bill, uint32_t worker_count)
{
	struct net_plan plan;
	network_plan(config, worker_count, &plan);
	uint64_t bytes = tcp_idle_bytes(&plan.tcp);
	for (uint32_t i = 0; i < bill->row_count; i++)
		if (bill->rows[i].per == CONFIG_PER_CONNECTION)
			bytes += bill->rows[i].times * bill->rows[i].entry_bytes;
	return bytes;
}

void ports_print(const struct config *config, const struct config_machine *machine, FILE *out)
{
	uint32_t worker_count = config_worker_count(config, machine);
	struct process_eal eal;
	if (!is_used(config))
		return;
	ports_eal(config, machine, worker_count, &eal);
	uint64_t needed = process_eal_bytes(&eal), page = machine->hugepage_bytes;
	fprintf(out, "\nan idle connection: %lu bytes\n",
		idle_bytes(config, &machine->bill, worker_count));
	fprintf(out, "ports: %lu MB; ", needed / MEGABYTE);
	if (page)
		fprintf(out, "that is %lu hugepages of %lu kB; of %lu here %lu are free: ",
			(needed + page - 1) / page, page >> 10, machine->hugepages,
			machine->hugepages_free);
	else
		fputs("no hugepages here: ", out);
	fputs(eal.has_hugepages ? "used\n" : "not used\n", out);
	for (uint32_t i = 0; i < config->dpdk->ports.count; i++)
		if (ethdev_is_pci(config->dpdk->ports.at[i].device))
			print_card(config->dpdk->ports.at[i].device, out);
}
