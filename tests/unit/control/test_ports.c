// From the configuration to open ports: what EAL is asked for, what `sluice check` says, what the
// network gets to know.

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "controlplane/ports.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define NULL_PORT \
	"{device: net_null0, addresses: [192.0.2.2/24, 'fd00::2/64'], gateways: [192.0.2.1]"
#define CARD "{device: '0000:ff:1f.7', addresses: [192.0.2.2/24, 'fd00::2/64']}"

// A configuration with these lines for dpdk.
static struct config *load(const char *driver, const char *hugepages, const char *port)
{
	struct config_report report = {0};
	struct config_machine machine;
	struct config *config = NULL;
	char text[1024];
	config_machine_read(&machine);
	machine.hugepages = UINT32_MAX; // check has its own tests
	snprintf(text, sizeof(text),
		"driver: %s\nworkers: [0]\nconnections: 1000\ndpdk: {hugepages: %s, ports: [%s]}\n"
		"listen: [{address: '0.0.0.0:80'}, {address: '[fd00::2]:81'}]\n"
		"sites: [{name: shop, hosts: [a], origin: {servers: ['b:1']}}]\n",
		driver, hugepages, port);
	if (config_read("t.yaml", text, strlen(text), &machine, &config, &report) < 0)
		config_report_print(&report, stderr);
	assert_non_null(config);
	return config;
}

static void test_memory_follows_the_plan(void **state)
{
	(void)state;
	struct config *config = load("dpdk", "auto", NULL_PORT "}");
	uint64_t ports = ports_bytes(config, 1), network = ports_network_bytes(config, 1);
	assert_in_range(ports, 1u << 20, 64u << 20);
	assert_true(ports_bytes(config, 2) > ports);
	config->connections = 100000;
	assert_true(ports_network_bytes(config, 1) > network + 99000 * 128);
	// A chunk for each work, however few the buffers.
	config->buffers->per_worker = 16;
	network = ports_network_bytes(config, 1);
	config->connections += 800000;
	assert_true(ports_network_bytes(config, 1) > network + 800000 * (128 + 2048 / 8));
	config->driver = CONFIG_DRIVER_SOCKETS;
	assert_int_equal(ports_bytes(config, 1), 0);
	assert_int_equal(ports_network_bytes(config, 1), 0);
	config_destroy(config);
}

static void test_what_eal_is_asked_for(void **state)
{
	(void)state;
	static const struct {
		const char *driver, *hugepages;
		uint64_t free; // pages of 2 MB
		bool has_hugepages;
		unsigned pci_count;
		bool takes_less; // than the bill, which counts on small pages where they may be
				 // used
	} table[] = {
		{"sockets", "required", 1000, false, 0, false},
		{"dpdk", "auto", 1000, true, 1, true},
		{"dpdk", "auto", 3, false, 1, false},
		{"dpdk", "off", 1000, false, 1, false},
		{"dpdk", "required", 0, true, 1, false},
	};
	for (size_t i = 0; i < sizeof(table) / sizeof(table[0]); i++) {
		struct config_machine machine = {
			.hugepages_free = table[i].free, .hugepage_bytes = 2u << 20};
		struct config *config = load(table[i].driver, table[i].hugepages, CARD);
		struct process_eal eal;
		ports_eal(config, &machine, 1, &eal);
		print_message("%s %s\n", table[i].driver, table[i].hugepages);
		assert_int_equal(eal.has_hugepages, table[i].has_hugepages);
		assert_int_equal(eal.pci_count, table[i].pci_count);
		if (table[i].takes_less)
			assert_in_range(eal.bytes, 1, ports_bytes(config, 1) - 1);
		else
			assert_int_equal(eal.bytes, ports_bytes(config, 1));
		if (eal.pci_count)
			assert_string_equal(eal.pci[0], "0000:ff:1f.7");
		config_destroy(config);
	}
}

// What is written about a configuration, on a machine with so many pages of 2 MB free.
static char *printed(const char *driver, const char *port, uint64_t there, uint64_t page_bytes)
{
	const struct config_bill_row row = {"connections", CONFIG_PER_CONNECTION, 2, 50};
	struct config_machine machine = {.hugepages = there,
		.hugepages_free = there,
		.hugepage_bytes = page_bytes,
		.bill = {.row_count = 1, .rows = &row}};
	struct config *config = load(driver, "auto", port);
	char *text;
	size_t len;
	FILE *out = open_memstream(&text, &len);
	ports_print(config, &machine, out);
	fclose(out);
	config_destroy(config);
	return text;
}

static void test_what_check_says(void **state)
{
	(void)state;
	static const struct {
		const char *driver, *port;
		uint64_t there, page_bytes;
		const char *text; // somewhere in there
	} table[] = {
		{"dpdk", NULL_PORT "}", 0, 0, " MB; no hugepages here: not used\n"},
		{"dpdk", NULL_PORT "}", 7, 2u << 20,
			" hugepages of 2048 kB; of 7 here 7 are free: not used\n"},
		{"dpdk", NULL_PORT "}", 900, 2u << 20, "of 900 here 900 are free: used\n"},
		{"dpdk", CARD, 0, 0, "port 0000:ff:1f.7: there is no such device\n"},
		// Twice 50 of the row, 128 and 4 of TCP, 16 of 256 buckets of flows for 1,064.
		{"dpdk", NULL_PORT "}", 0, 0, "\nan idle connection: 248 bytes\n"},
	};
	for (size_t i = 0; i < sizeof(table) / sizeof(table[0]); i++) {
		char *text = printed(
			table[i].driver, table[i].port, table[i].there, table[i].page_bytes);
		if (!strstr(text, table[i].text))
			fail_msg("no '%s' in: %s", table[i].text, text);
		free(text);
	}
	char *text = printed("sockets", CARD, 0, 0);
	assert_string_equal(text, "");
	free(text);
}

static void test_a_port_is_opened(void **state)
{
	(void)state;
	struct config *config = load("dpdk", "off", NULL_PORT ", vlan: 5, mtu: 1400}");
	struct config_machine machine = {0};
	struct process_eal eal;
	struct ports ports = {0};
	struct stream_driver *driver;
	ports_eal(config, &machine, 1, &eal);
	assert_int_equal(process_init_eal(&eal), 0);
	assert_int_equal(ports_open(config, 1, &ports), 0);

	const struct net_port_plan *port = &ports.plan.ports[0];
	const struct ethdev_port *shown = ethdev_port(ports.devices, 0);
	assert_int_equal(ports.plan.port_count, 1);
	assert_int_equal(port->id, shown->id);
	assert_memory_equal(port->mac, shown->mac, 6);
	assert_int_equal(port->mtu, 1400);
	assert_int_equal(port->vlan, 5);
	assert_int_equal(port->address_count, 2);
	assert_int_equal(port->addresses[0].prefix, 24); // as people count
	assert_int_equal(port->addresses[1].prefix, 64);
	assert_int_equal(port->gateway_count, 1);
	assert_int_equal(port->gateways[0][15], 1);
	assert_int_equal(ports.plan.tcp.listener_count, 2);
	assert_int_equal(ports.plan.tcp.listeners[1].port, 81);
	assert_int_equal(ports_driver(&ports, 0, &driver), 0);
	stream_destroy(driver);
	ports_close(&ports);

	// The other way round: it says why not.
	config->dpdk->ports.at[0].device = "net_af_packet0,iface=nowhere";
	ports = (struct ports){0};
	assert_true(ports_open(config, 1, &ports) < 0);
	ports_close(&ports);
	config_destroy(config);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_memory_follows_the_plan),
		cmocka_unit_test(test_what_eal_is_asked_for),
		cmocka_unit_test(test_what_check_says),
		cmocka_unit_test(test_a_port_is_opened),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
