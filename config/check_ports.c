// The rules of `driver: dpdk`: ports, their addresses, and what listens on them.
//
// Ports are looked at whether or not the driver uses them; what listens only if it does.

#include "config/check.h"

#include <ctype.h>
#include <stdlib.h>
#include <string.h>

// Devices that are not network cards, by the beginning of their names.
static const char *const devices[] = {
	"net_af_packet", "net_af_xdp", "net_memif", "net_null", "net_pcap", "net_ring", "net_tap"};

static const uint8_t mapped[12] = {[10] = 0xff, [11] = 0xff};

// "HEX:HEX:HEX.DIGIT", or without the first part.
static bool is_pci(const char *device)
{
	unsigned parts = 1;
	size_t len = strcspn(device, ",");
	for (size_t i = 0; i < len; i++) {
		if (device[i] == ':' || device[i] == '.')
			parts++;
		else if (!isxdigit((unsigned char)device[i]))
			return false;
	}
	const char *dot = memchr(device, '.', len);
	return dot && dot + 2 == device + len && (parts == 3 || parts == 4);
}

static bool is_known(const char *device)
{
	for (size_t i = 0; i < sizeof(devices) / sizeof(devices[0]); i++)
		if (strncmp(device, devices[i], strlen(devices[i])) == 0)
			return true;
	return is_pci(device);
}

static bool is_unspecified(const uint8_t ip[16])
{
	static const uint8_t any_ipv6[16], any_ipv4[16] = {[10] = 0xff, [11] = 0xff};
	return memcmp(ip, any_ipv6, 16) == 0 || memcmp(ip, any_ipv4, 16) == 0;
}

// Whether one host can have it: not any, loopback nor a group.
static bool is_of_a_host(const uint8_t ip[16])
{
	static const uint8_t loopback[16] = {[15] = 1};
	if (memcmp(ip, mapped, sizeof(mapped)) == 0)
		return ip[12] != 0 && ip[12] != 127 && ip[12] < 224;
	return ip[0] != 0xff && memcmp(ip, loopback, 16) != 0 && !is_unspecified(ip);
}

static bool is_within(const uint8_t ip[16], const struct config_interface *network)
{
	unsigned whole = network->bits / 8, rest = network->bits % 8;
	if (memcmp(ip, network->ip, whole) != 0)
		return false;
	return rest == 0 || (ip[whole] ^ network->ip[whole]) >> (8 - rest) == 0;
}

static void check_there_are_ports(struct reading *r)
{
	if (r->config->driver == CONFIG_DRIVER_DPDK && !r->config->dpdk)
		reading_fail(r, r->config, "driver", READING_WHOLE,
			"needs ports; allowed: with dpdk.ports");
}

static void check_device(struct reading *r, const struct config_port *port)
{
	if (port->device && !is_known(port->device))
		reading_fail(r, port, "device", READING_WHOLE,
			"is no device; allowed: a PCI address, as in 0000:01:00.0, or "
			"net_af_packet, "
			"net_af_xdp, net_memif, net_null, net_pcap, net_ring or net_tap, a number "
			"and its arguments");
}

static bool is_same_device(const char *a, const char *b)
{
	size_t len = strcspn(a, ",");
	return len == strcspn(b, ",") && strncasecmp(a, b, len) == 0;
}

static void check_devices_differ(struct reading *r, uint32_t index)
{
	const struct config_port *ports = r->config->dpdk->ports.at, *port = &ports[index];
	for (uint32_t i = 0; i < index && port->device; i++)
		if (ports[i].device && is_same_device(ports[i].device, port->device)) {
			reading_fail(r, port, "device", READING_WHOLE,
				"is the device of two ports, first on line %u; allowed: once",
				reading_line(r, &ports[i], "device", READING_WHOLE));
			return;
		}
}

static bool is_named(const struct config_port *port)
{
	return strcmp(port->exception, "auto") != 0 && strcmp(port->exception, "none") != 0;
}

static void check_exceptions_differ(struct reading *r, uint32_t index)
{
	const struct config_port *ports = r->config->dpdk->ports.at, *port = &ports[index];
	for (uint32_t i = 0; i < index && is_named(port); i++)
		if (strcmp(ports[i].exception, port->exception) == 0) {
			reading_fail(r, port, "exception", READING_WHOLE,
				"is the interface of two ports, first on line %u; allowed: once",
				reading_line(r, &ports[i], "exception", READING_WHOLE));
			return;
		}
}

static void check_address(struct reading *r, const struct config_port *port, uint32_t index)
{
	const struct config_interface *address = &port->addresses.at[index];
	if (address->text && !is_of_a_host(address->ip))
		reading_fail(r, port, "addresses", index,
			"is not the address of a host; allowed: neither any, loopback nor a group");
}

// The first port of `ports` up to `last` that has the address, and which of its addresses it is.
static const struct config_port *find_address(const struct config_port *ports, uint32_t last,
	uint32_t last_index, const uint8_t ip[16], uint32_t *which)
{
	for (uint32_t i = 0; i <= last; i++) {
		const struct config_interfaces *addresses = &ports[i].addresses;
		uint32_t count = i == last ? last_index : addresses->count;
		for (*which = 0; *which < count; ++*which)
			if (addresses->at[*which].text &&
				memcmp(addresses->at[*which].ip, ip, 16) == 0)
				return &ports[i];
	}
	return NULL;
}

static void check_addresses_differ(struct reading *r, uint32_t index)
{
	const struct config_port *ports = r->config->dpdk->ports.at, *port = &ports[index];
	for (uint32_t i = 0; i < port->addresses.count; i++) {
		uint32_t which;
		const struct config_interface *address = &port->addresses.at[i];
		const struct config_port *first =
			address->text ? find_address(ports, index, i, address->ip, &which) : NULL;
		if (first)
			reading_fail(r, port, "addresses", i,
				"is an address twice, first on line %u; allowed: once",
				reading_line(r, first, "addresses", which));
	}
}

static void check_gateway(struct reading *r, const struct config_port *port, uint32_t index)
{
	const struct config_ip *gateway = &port->gateways.at[index];
	bool is_near = false, is_own = false;
	for (uint32_t i = 0; i < port->addresses.count; i++) {
		const struct config_interface *address = &port->addresses.at[i];
		is_near |= address->text && is_within(gateway->ip, address);
		is_own |= address->text && memcmp(gateway->ip, address->ip, 16) == 0;
	}
	if (gateway->text && is_own)
		reading_fail(r, port, "gateways", index,
			"is an address of the port itself; allowed: another host's");
	else if (gateway->text && !is_near)
		reading_fail(r, port, "gateways", index,
			"lies in no network of the port; allowed: within a prefix of its "
			"addresses");
}

static bool is_of_a_port(const struct config_ports *ports, const uint8_t ip[16])
{
	uint32_t which;
	const struct config_port *last = &ports->at[ports->count - 1];
	return find_address(ports->at, ports->count - 1, last->addresses.count, ip, &which) != NULL;
}

static void check_listens(struct reading *r, const struct config_ports *ports)
{
	for (uint32_t i = 0; i < r->config->listen.count; i++) {
		const struct config_listen *listen = &r->config->listen.at[i];
		const uint8_t *ip = listen->address.ip;
		if (listen->address.text && !is_unspecified(ip) && !is_of_a_port(ports, ip))
			reading_fail(r, listen, "address", READING_WHOLE,
				"is no address of a port; allowed: one of dpdk.ports, 0.0.0.0 or "
				"::");
	}
}

// Those in use count too: by the very process, maybe, that is to read this configuration next.
static void check_hugepages(struct reading *r)
{
	const struct config *config = r->config;
	if (config->dpdk->hugepages != CONFIG_HUGEPAGES_REQUIRED || !r->machine->bill.port_bytes)
		return;
	uint64_t needed =
		r->machine->bill.port_bytes(config, config_worker_count(config, r->machine));
	uint64_t there = r->machine->hugepages * r->machine->hugepage_bytes;
	if (needed > there)
		reading_fail(r, config->dpdk, "hugepages", READING_WHOLE,
			"needs %lu bytes in hugepages; here: %lu pages of %lu bytes", needed,
			r->machine->hugepages, r->machine->hugepage_bytes);
}

void check_ports(struct reading *r)
{
	check_there_are_ports(r);
	if (!r->config->dpdk || r->config->dpdk->ports.count == 0)
		return;
	const struct config_ports *ports = &r->config->dpdk->ports;
	for (uint32_t i = 0; i < ports->count; i++) {
		const struct config_port *port = &ports->at[i];
		check_device(r, port);
		check_devices_differ(r, i);
		check_exceptions_differ(r, i);
		check_addresses_differ(r, i);
		for (uint32_t j = 0; j < port->addresses.count; j++)
			check_address(r, port, j);
		for (uint32_t j = 0; j < port->gateways.count; j++)
			check_gateway(r, port, j);
	}
	if (r->config->driver == CONFIG_DRIVER_DPDK) {
		check_listens(r, ports);
		check_hugepages(r);
	}
}
