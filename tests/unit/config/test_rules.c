// Every rule of check.c by name: a file that breaks it, and exactly what is said.

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "tests/unit/config/fixture.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

// A good file, of which a case replaces or adds one part; where that part stands is said beside it.
#define LISTEN "listen: [{address: '127.0.0.1:80'}]\n"
#define SITE "  - name: shop\n    hosts: [shop.example]\n    origin: {servers: ['10.0.0.1:80']}\n"
#define IN_ROOT(text) text "\n" LISTEN "sites:\n" SITE // 1:1
#define IN_SITE(text) LISTEN "sites:\n" SITE "    " text "\n" // 6:5
#define IN_ROOM(text) \
	LISTEN "sites:\n" SITE \
	       "    rooms:\n      - name: derby\n        path: /derby\n        " text "\n" // 9:9
#define IN_PATH(text) LISTEN "sites:\n" SITE "    rooms: [{name: derby, path: " text "}]\n" // 6:33
#define IN_ORIGIN(text) \
	LISTEN "sites:\n  - name: shop\n    hosts: [shop.example]\n    origin: {" text "}\n" // 5:14
#define IN_LISTEN(text) "listen:\n  - " text "\nsites:\n" SITE // 2:5

#define IN_PORTS(text) "dpdk: {ports: [\n" text "\n]}\n" LISTEN "sites:\n" SITE // 2:1
#define ON_PORT(listen) \
	"driver: dpdk\ndpdk: {ports: [{device: net_tap0, addresses: [10.0.0.9/8]}]}\nlisten: " \
	"[" listen "]\nsites:\n" SITE // 3:10, then 8:1 and on
#define NO_HOST(column, index, address) \
	"t.yaml:2:" column ": dpdk.ports[0].addresses[" index "]: '" address \
	"' is not the address of a host; allowed: neither any, loopback nor a group\n"

static const struct rule_case {
	const char *name, *text, *errors;
} cases[] = {
	{"good", IN_ROOT("#"), ""},

	{"pools",
		"pools: [{name: a, capacity: 9, rate: 60/min}, {name: b, rate: 1/s, burst: "
		"3}]\n" IN_ROOM("pool: a\n        priority: 100\n        weight: 1000\n        "
				"capacity: 9\n"
				"        rate: 1/s"),
		""},
	{"a pool twice", IN_ROOT("pools: [{name: a, rate: 1/s},\n{name: a, capacity: 1}]"),
		"t.yaml:2:8: pools[1].name: 'a' names two pools, first on line 1; allowed: once\n"},
	{"a pool for more than fits",
		"sessions_max: 10\n" IN_ROOT("pools: [{name: a, capacity: 11}]"),
		"t.yaml:2:29: pools[0].capacity: '11' is above sessions_max; allowed: up to 10\n"},
	{"an unknown pool", "pools: [{name: a, rate: 1/s}]\n" IN_ROOM("pool: b"),
		"t.yaml:10:15: sites[0].rooms[0].pool: 'b' is no pool; allowed: the name of one of "
		"`pools`\n"},
	{"a class without a pool", IN_ROOM("priority: 2"),
		"t.yaml:9:19: sites[0].rooms[0].priority: '2' needs a pool; allowed: with "
		"`pool`\n"},
	{"a weight without a pool", IN_ROOM("weight: 2"),
		"t.yaml:9:17: sites[0].rooms[0].weight: '2' needs a pool; allowed: with `pool`\n"},
	{"more than the pool holds",
		"pools: [{name: a, capacity: 5, rate: 60/min}]\n" IN_ROOM(
			"pool: a\n        capacity: 6\n        rate: 2/s"),
		"t.yaml:11:19: sites[0].rooms[0].capacity: '6' is above that of its pool; allowed: "
		"up to 5\n"
		"t.yaml:12:15: sites[0].rooms[0].rate: '2/s' is above that of its pool; allowed: "
		"up "
		"to it\n"},

	{"peak", IN_ROOM("mode: peak\n        inflow: 50/min"), ""},
	{"peak without inflow", IN_ROOM("mode: peak"),
		"t.yaml:9:15: sites[0].rooms[0].mode: 'peak' needs an inflow; allowed: with "
		"`inflow`\n"},
	{"inflow by the second", IN_ROOM("inflow: 5/s"),
		"t.yaml:9:17: sites[0].rooms[0].inflow: '5/s' is not by the minute; allowed: as in "
		"50/min\n"},
	{"batches", IN_ROOM("batch: 1000 every 10m\n        batch_spread: true"), ""},
	{"spread without a batch", IN_ROOM("batch_spread: true"),
		"t.yaml:9:23: sites[0].rooms[0].batch_spread: 'true' needs a batch; allowed: with "
		"`batch`\n"},
	{"spread by two rates",
		IN_ROOM("batch: 10 every 1m\n        batch_spread: true\n        rate: 1/s"),
		"t.yaml:10:23: sites[0].rooms[0].batch_spread: 'true' is a rate; allowed: without "
		"`rate`\n"},

	{"lanes",
		"trusted_proxies: [10.0.0.0/8]\n" IN_ROOM(
			"line_weight: 2\n        lanes: [{name: a, header: X-Member, header_value: "
			"gold},"
			" {name: b, priority: 2, weight: 9, addresses: [10.1.0.0/16]}]"),
		""},
	{"a lane twice", IN_ROOM("lanes: [{name: a}, {name: a}]"),
		"t.yaml:9:35: sites[0].rooms[0].lanes[1].name: 'a' names two lanes of the room; "
		"allowed: once\n"},
	{"shares without lanes", IN_ROOM("line_weight: 2\n        line_priority: 3"),
		"t.yaml:9:22: sites[0].rooms[0].line_weight: '2' needs lanes; allowed: with "
		"`lanes`\n"
		"t.yaml:10:24: sites[0].rooms[0].line_priority: '3' needs lanes; allowed: with "
		"`lanes`\n"},
	{"a header of anybody", IN_ROOM("lanes: [{name: a, header: X-Member}]"),
		"t.yaml:9:35: sites[0].rooms[0].lanes[0].header: 'X-Member' is believed of nobody; "
		"allowed: with `trusted_proxies`\n"},
	{"a value of no header", IN_ROOM("lanes: [{name: a, header_value: x}]"),
		"t.yaml:9:41: sites[0].rooms[0].lanes[0].header_value: 'x' needs a header; "
		"allowed: "
		"with `header`\n"},

	{"driver without ports", IN_ROOT("driver: dpdk"),
		"t.yaml:1:9: driver: 'dpdk' needs ports; allowed: with dpdk.ports\n"},
	{"ports without the driver", IN_PORTS("{device: '01:00.0', addresses: [10.0.0.1/8]}"), ""},
	{"devices of all kinds",
		IN_PORTS("{device: '0000:01:00.0,a=b', addresses: [10.0.0.1/8]},\n"
			 "{device: '02:00.1', addresses: [10.0.0.2/8]},\n"
			 "{device: 'net_af_xdp1,iface=eth1', addresses: [10.0.0.3/8]},\n"
			 "{device: 'net_memif0', addresses: [10.0.0.4/8]}"),
		""},
	{"a device of no kind", IN_PORTS("{device: eth1, addresses: [10.0.0.1/8]}"),
		"t.yaml:2:10: dpdk.ports[0].device: 'eth1' is no device; allowed: a PCI address, "
		"as in "
		"0000:01:00.0, or net_af_packet, net_af_xdp, net_memif, net_null, net_pcap, "
		"net_ring "
		"or net_tap, a number and its arguments\n"},
	{"half a PCI address", IN_PORTS("{device: '01:00', addresses: [10.0.0.1/8]}"),
		"t.yaml:2:10: dpdk.ports[0].device: '01:00' is no device; allowed: a PCI address, "
		"as in "
		"0000:01:00.0, or net_af_packet, net_af_xdp, net_memif, net_null, net_pcap, "
		"net_ring "
		"or net_tap, a number and its arguments\n"},
	{"a device twice",
		IN_PORTS("{device: 'net_tap0,iface=a', addresses: [10.0.0.1/8]},\n"
			 "{device: 'net_tap0,iface=b', addresses: [10.0.0.2/8]}"),
		"t.yaml:3:10: dpdk.ports[1].device: 'net_tap0,iface=b' is the device of two ports, "
		"first on line 2; allowed: once\n"},
	{"exceptions",
		IN_PORTS("{device: net_tap0, addresses: [10.0.0.1/8], exception: none},\n"
			 "{device: net_tap1, addresses: [10.0.0.2/8], exception: none},\n"
			 "{device: net_tap2, addresses: [10.0.0.3/8], exception: x0}"),
		""},
	{"an exception twice",
		IN_PORTS("{device: net_tap0, addresses: [10.0.0.1/8], exception: x0},\n"
			 "{device: net_tap1, addresses: [10.0.0.2/8], exception: x0}"),
		"t.yaml:3:56: dpdk.ports[1].exception: 'x0' is the interface of two ports, first "
		"on "
		"line 2; allowed: once\n"},
	{"an address twice",
		IN_PORTS("{device: net_tap0, addresses: [10.0.0.1/8, 'fd00::1/64']},\n"
			 "{device: net_tap1, addresses: [10.0.0.2/8, 'fd00::0001/48']}"),
		"t.yaml:3:44: dpdk.ports[1].addresses[1]: 'fd00::0001/48' is an address twice, "
		"first "
		"on line 2; allowed: once\n"},
	{"an address twice on one port",
		IN_PORTS("{device: net_tap0, addresses: [10.0.0.1/8, 10.0.0.1/16]}"),
		"t.yaml:2:44: dpdk.ports[0].addresses[1]: '10.0.0.1/16' is an address twice, first "
		"on "
		"line 2; allowed: once\n"},
	{"addresses of no host",
		IN_PORTS("{device: net_tap0, addresses: [0.0.0.0/8, 127.0.0.1/8, 224.0.0.1/8, "
			 "'::/64', "
			 "'::1/64', 'ff02::1/64']}"),
		NO_HOST("32", "0", "0.0.0.0/8") NO_HOST("43", "1", "127.0.0.1/8")
			NO_HOST("56", "2", "224.0.0.1/8") NO_HOST("69", "3", "::/64")
				NO_HOST("78", "4", "::1/64") NO_HOST("88", "5", "ff02::1/64")},
	{"gateways within the prefixes",
		IN_PORTS("{device: net_tap0, addresses: [192.0.2.130/25, 'fd00::8:1/113'],\n"
			 "gateways: [192.0.2.129, 192.0.2.255, 'fd00::8:7fff']}"),
		""},
	{"gateways beyond them",
		IN_PORTS("{device: net_tap0, addresses: [192.0.2.130/25, 'fd00::8:1/113'],\n"
			 "gateways: [192.0.2.127, 'fd00::8:8000']}"),
		"t.yaml:3:12: dpdk.ports[0].gateways[0]: '192.0.2.127' lies in no network of the "
		"port; "
		"allowed: within a prefix of its addresses\n"
		"t.yaml:3:25: dpdk.ports[0].gateways[1]: 'fd00::8:8000' lies in no network of the "
		"port; "
		"allowed: within a prefix of its addresses\n"},
	{"a gateway that is the port",
		IN_PORTS("{device: net_tap0, addresses: [10.0.0.1/8], gateways: [10.0.0.1]}"),
		"t.yaml:2:56: dpdk.ports[0].gateways[0]: '10.0.0.1' is an address of the port "
		"itself; "
		"allowed: another host's\n"},
	{"listening on a port, and on any",
		ON_PORT("{address: '10.0.0.9:80'}, {address: '0.0.0.0:81'}, {address: '[::]:80'}"),
		""},
	{"listening elsewhere", ON_PORT("{address: '10.0.0.2:80'}"),
		"t.yaml:3:20: listen[0].address: '10.0.0.2:80' is no address of a port; allowed: "
		"one of "
		"dpdk.ports, 0.0.0.0 or ::\n"},
	{"PROXY on a port", ON_PORT("{address: '10.0.0.9:80', proxy_protocol: true}"), ""},
	{"descriptors of origins alone",
		ON_PORT("{address: '10.0.0.9:80'}") "connections: 100000\norigin_connections: "
						    "19744\n",
		""},
	{"descriptors of origins beyond",
		ON_PORT("{address: '10.0.0.9:80'}") "connections: 100000\norigin_connections: "
						    "19745\n",
		"t.yaml:9:21: origin_connections: '19745' needs 20001 descriptors; allowed here: "
		"20000\n"},

	{"workers: the last core", IN_ROOT("workers: [0, 3]"), ""},
	{"workers: one beyond", IN_ROOT("workers: [0, 4]"),
		"t.yaml:1:14: workers[1]: '4' is not a core that this process may run on; allowed: "
		"0-3\n"},
	{"workers: twice", IN_ROOT("workers: [1, 2, 01]"),
		"t.yaml:1:17: workers[2]: '01' is named twice, first on line 1; allowed: once\n"},

	{"descriptors: all of 20000", IN_ROOT("connections: 15744\norigin_connections: 4000"), ""},
	{"descriptors: beyond", IN_ROOT("connections: 15745\norigin_connections: 4000"),
		"t.yaml:1:14: connections: '15745' and origin_connections need 20001 descriptors; "
		"allowed here: 20000\n"},
	{"descriptors: by a default", IN_ROOT("origin_connections: 9745"),
		"t.yaml:1:1: connections: and origin_connections need 20001 descriptors; allowed "
		"here: 20000\n"},

	{"one source: all", IN_ROOT("connections_per_source: 10000"), ""},
	{"one source: beyond", IN_ROOT("connections_per_source: 10001"),
		"t.yaml:1:25: connections_per_source: '10001' is above connections; allowed: up to "
		"10000\n"},

	{"over TLS: all", IN_ROOT("tls_connections: 10000"), ""},
	{"over TLS: beyond", IN_ROOT("tls_connections: 10001"),
		"t.yaml:1:18: tls_connections: '10001' is above connections; allowed: up to "
		"10000\n"},

	{"user", IN_ROOT("user: sluice"), ""},
	{"user that is not there", IN_ROOT("user: nobody-here"),
		"t.yaml:1:7: user: 'nobody-here' is not a user of this machine; allowed: one that "
		"`getent passwd` lists\n"},

	{"line within head", IN_ROOT("http: {line_max: 4k, head_max: 4k}"), ""},
	{"line beyond head", IN_ROOT("http: {line_max: 5k, head_max: 4k}"),
		"t.yaml:1:18: http.line_max: '5k' is above http.head_max; allowed: up to 4096\n"},
	{"head of a buffer", IN_ROOT("http: {head_max: 4k, line_max: 4k}\nbuffers: {size: 4k}"),
		""},
	{"head beyond a buffer", IN_ROOT("http: {head_max: 17k}"),
		"t.yaml:1:18: http.head_max: '17k' is above buffers.size; allowed: up to 16384\n"},
	{"line beyond the default head", IN_ROOT("http: {line_max: 17k}"),
		"t.yaml:1:18: http.line_max: '17k' is above http.head_max; allowed: up to "
		"16384\n"},

	{"listen on two ports", IN_LISTEN("address: 127.0.0.1:80\n  - address: 127.0.0.1:81"), ""},
	{"listen twice", IN_LISTEN("address: 127.0.0.1:80\n  - address: 127.0.0.1:080"),
		"t.yaml:3:14: listen[1].address: '127.0.0.1:080' is listened on twice, first on "
		"line 2; allowed: once\n"},
	{"listen twice on IPv6", IN_LISTEN("address: '[::1]:80'\n  - address: '[0::1]:80'"),
		"t.yaml:3:14: listen[1].address: '[0::1]:80' is listened on twice, first on line "
		"2; allowed: once\n"},

	{"site names", IN_SITE("rooms: []") SITE,
		"t.yaml:7:11: sites[1].name: 'shop' names two sites, first on line 3; allowed: "
		"once\n"
		"t.yaml:8:13: sites[1].hosts[0]: 'shop.example' is a host twice, first on line 4; "
		"allowed: once\n"},
	{"hosts in one site",
		LISTEN "sites:\n  - name: shop\n    hosts: [a.example, A.example.]\n"
		       "    origin: {servers: ['10.0.0.1:80']}\n",
		"t.yaml:4:24: sites[0].hosts[1]: 'A.example.' is a host twice, first on line 4; "
		"allowed: once\n"},
	{"a host beside its wildcard",
		LISTEN "sites:\n  - name: shop\n    hosts: [a.example, '*.a.example']\n"
		       "    origin: {servers: ['10.0.0.1:80']}\n",
		""},

	{"servers", IN_ORIGIN("servers: ['10.0.0.1:80', '10.0.0.1:80']"),
		"t.yaml:5:39: sites[0].origin.servers[1]: '10.0.0.1:80' is a server twice, first "
		"on line 5; allowed: once\n"},
	{"a server that is sluice", IN_ORIGIN("servers: ['127.0.0.1:80']"),
		"t.yaml:5:24: sites[0].origin.servers[0]: '127.0.0.1:80' is an address that sluice "
		"itself listens on\n"},

	{"cookie domain of the host", IN_SITE("cookie_domain: shop.example"), ""},
	{"cookie domain of another", IN_SITE("cookie_domain: hop.example"),
		"t.yaml:6:20: sites[0].cookie_domain: 'hop.example' does not cover the host "
		"'shop.example'; allowed: a parent of all hosts\n"},
	{"cookie domain below the host", IN_SITE("cookie_domain: www.shop.example"),
		"t.yaml:6:20: sites[0].cookie_domain: 'www.shop.example' does not cover the host "
		"'shop.example'; allowed: a parent of all hosts\n"},
	{"cookie domain without a dot", IN_SITE("cookie_domain: example"),
		"t.yaml:6:20: sites[0].cookie_domain: 'example' is none that browsers take; "
		"allowed: a name with a dot\n"},
	{"cookie domain that is an address",
		LISTEN "sites:\n  - name: shop\n    hosts: [10.0.0.9]\n"
		       "    origin: {servers: ['10.0.0.1:80']}\n    cookie_domain: 10.0.0.9\n",
		"t.yaml:6:20: sites[0].cookie_domain: '10.0.0.9' is none that browsers take; "
		"allowed: a name with a dot\n"},
	{"cookie domain of a wildcard",
		LISTEN "sites:\n  - name: shop\n    hosts: ['*.a.example', a.example]\n"
		       "    origin: {servers: ['10.0.0.1:80']}\n    cookie_domain: a.example\n",
		""},

	{"room names", IN_SITE("rooms: [{name: a, path: /a}, {name: a, path: /b}]"),
		"t.yaml:6:41: sites[0].rooms[1].name: 'a' names two rooms, first on line 6; "
		"allowed: once\n"},
	{"room names that differ by case",
		IN_SITE("rooms: [{name: a, path: /a}, {name: A, path: /b}]"), ""},
	{"room names over sites",
		IN_PATH("/a") "  - name: club\n    hosts: [club.example]\n"
			      "    origin: {servers: ['10.0.0.1:80']}\n"
			      "    rooms: [{name: derby, path: /a}]\n",
		"t.yaml:10:20: sites[1].rooms[0].name: 'derby' names two rooms, first on line 6; "
		"allowed: once\n"},
	{"line ids", // found by search: XXH3-64 of both ends in the same 32 bits
		IN_SITE("rooms: [{name: room-21409, path: /a}, {name: room-194405, path: /b}]"),
		"t.yaml:6:50: sites[0].rooms[1].name: 'room-194405' has the same line id as "
		"'room-21409'; allowed: any other name\n"},

	{"paths of a site", IN_SITE("rooms: [{name: a, path: /a}, {name: b, path: /A}]"),
		"t.yaml:6:50: sites[0].rooms[1].path: '/A' is the path of two rooms of the site, "
		"first on line 6; allowed: once\n"},
	{"paths of a site that minds case",
		IN_SITE("case_sensitive: true\n"
			"    rooms: [{name: a, path: /a}, {name: b, path: /A}]"),
		""},
	{"paths within each other", IN_SITE("rooms: [{name: a, path: /}, {name: b, path: /a}]"),
		""},

	{"path without a slash", IN_PATH("derby"),
		"t.yaml:6:33: sites[0].rooms[0].path: 'derby' must begin with '/'\n"},
	{"path with an escape", IN_PATH("/der%62y"),
		"t.yaml:6:33: sites[0].rooms[0].path: '/der%62y' must not contain '%'; allowed: a "
		"path as it is once decoded\n"},
	{"path with a query", IN_PATH("'/derby?final'"),
		"t.yaml:6:33: sites[0].rooms[0].path: '/derby?final' must not contain '?'; "
		"allowed: a path as it is once decoded\n"},
	{"path with a fragment", IN_PATH("/derby#final"),
		"t.yaml:6:33: sites[0].rooms[0].path: '/derby#final' must not contain '#'; "
		"allowed: a path as it is once decoded\n"},
	{"path with a backslash", IN_PATH("/derby\\final"),
		"t.yaml:6:33: sites[0].rooms[0].path: '/derby\\final' must not contain '\\'; "
		"allowed: a path as it is once decoded\n"},
	{"path with ..", IN_PATH("/a/../b"),
		"t.yaml:6:33: sites[0].rooms[0].path: '/a/../b' must not contain '//' nor a "
		"segment '.' or '..'\n"},
	{"path that ends in .", IN_PATH("/a/."),
		"t.yaml:6:33: sites[0].rooms[0].path: '/a/.' must not contain '//' nor a segment "
		"'.' or '..'\n"},
	{"path with //", IN_PATH("//a"),
		"t.yaml:6:33: sites[0].rooms[0].path: '//a' must not contain '//' nor a segment "
		"'.' or '..'\n"},
	{"path with dots in names", IN_PATH("/.a/..b/c./..."), ""},
	{"path that ends in /", IN_PATH("/a/"), ""},
	{"path of sluice", IN_PATH("/.Sluice/derby"),
		"t.yaml:6:33: sites[0].rooms[0].path: '/.Sluice/derby' begins with /.sluice, which "
		"is sluice's own; allowed: any other path\n"},

	{"capacity of sessions_max", IN_ROOM("capacity: 100000"), ""},
	{"capacity beyond sessions_max", IN_ROOM("capacity: 100001"),
		"t.yaml:9:19: sites[0].rooms[0].capacity: '100001' is above sessions_max; allowed: "
		"up to 100000\n"},
	{"rate that fills sessions_max", IN_ROOM("rate: 10000/min"), ""},
	{"rate beyond sessions_max", IN_ROOM("rate: 10001/min"),
		"t.yaml:9:15: sites[0].rooms[0].rate: '10001/min' lets 100010 people in within one "
		"session; allowed: up to sessions_max, 100000\n"},
	{"rate beyond sessions_max, but a capacity",
		IN_ROOM("rate: 10001/min\n        capacity: 500"), ""},
	{"ticket_ttl of claim", IN_ROOM("ticket_ttl: 2m"), ""},
	{"ticket_ttl below claim", IN_ROOM("ticket_ttl: 119s"),
		"t.yaml:9:21: sites[0].rooms[0].ticket_ttl: '119s' is shorter than claim; allowed: "
		"from 120s\n"},
};

static void test_rules(void **state)
{
	(void)state;
	struct config_machine machine = fixture_machine();
	for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
		char *errors = fixture_errors(cases[i].text, &machine);
		print_message("%s\n", cases[i].name);
		assert_string_equal(errors, cases[i].errors);
		free(errors);
	}
}

// The socket admin.socket in the folder must fit into sun_path.
static void test_state_fits_a_socket(void **state)
{
	(void)state;
	struct config_machine machine = fixture_machine();
	char text[1024], folder[128];
	for (int len = 94; len <= 95; len++) {
		snprintf(folder, sizeof(folder), "/%0*d", len - 1, 0);
		snprintf(text, sizeof(text), "state: '%s'\n" IN_ROOT("#"), folder);
		char *errors = fixture_errors(text, &machine);
		assert_int_equal(*errors != '\0', len > 94);
		if (*errors)
			assert_non_null(
				strstr(errors, "too long for the socket in it; allowed: 94 bytes"));
		free(errors);
	}
}

static const char *ca_error(const char *path)
{
	if (!path)
		return "/system.pem: Permission denied";
	return strcmp(path, "/good.pem") == 0 ? NULL : "/bad.pem: holds no certificate";
}

static void test_certificates_of_origins(void **state)
{
	(void)state;
	static const struct {
		const char *tls, *errors;
	} table[] = {
		{"none", ""},
		{"{ca: /good.pem}", ""},
		{"{name: b, ca: /bad.pem}",
			"t.yaml:2:80: sites[0].origin.tls.ca: '/bad.pem' is no use: /bad.pem: "
			"holds no certificate; allowed: a file of certificates in PEM\n"},
		{"{name: b}", "t.yaml:2:66: sites[0].origin.tls.ca: is no use: /system.pem: "
			      "Permission denied; allowed: a file of certificates in PEM\n"},
	};
	struct config_machine machine = fixture_machine();
	for (size_t i = 0; i < sizeof(table) / sizeof(table[0]); i++) {
		char text[512];
		snprintf(text, sizeof(text),
			LISTEN "sites: [{name: shop, hosts: [a], origin: {servers: ['b:1'], tls: "
			       "%s}}]\n",
			table[i].tls);
		machine.ca_error = ca_error;
		char *errors = fixture_errors(text, &machine);
		assert_string_equal(errors, table[i].errors);
		free(errors);
		machine.ca_error = NULL;
		errors = fixture_errors(text, &machine);
		assert_string_equal(errors, "");
		free(errors);
	}
}

// All of memory, and one byte more.
// What the machine says of a certificate's files.
static bool judge(const struct config_certificate *files, struct config_fault *fault)
{
	*fault = (struct config_fault){.key = "key", .is_warning = strstr(files->key, "old")};
	snprintf(fault->text, sizeof(fault->text), "%s: is %s", files->key,
		files->ocsp ? "stapled" : "bad");
	return !strstr(files->key, "good");
}

static void test_certificates_of_listeners(void **state)
{
	(void)state;
	struct config_machine machine = fixture_machine();
	machine.certificate_fault = judge;
	char *errors = fixture_errors("listen:\n  - address: 127.0.0.1:80\n    tls:\n"
				      "      - {certificate: /a, key: /good}\n"
				      "      - {certificate: /a, key: /old, ocsp: /o}\n"
				      "      - {certificate: /a, key: /bad}\n"
				      "      - {certificate: /a}\n"
				      "sites:\n" SITE,
		&machine);
	assert_string_equal(errors,
		"t.yaml:5:32: warning: listen[0].tls[1].key: '/old' /old: is stapled\n"
		"t.yaml:6:32: listen[0].tls[2].key: '/bad' is no use: /bad: is bad; allowed: a "
		"file as `sluice keys` says of it\n"
		"t.yaml:7:9: listen[0].tls[3].key: is missing; allowed: the path of a file or "
		"folder\n");
	free(errors);
}

// A warning is no error: the file is good.
static void test_warnings(void **state)
{
	(void)state;
	struct config_machine machine = fixture_machine();
	machine.certificate_fault = judge;
	struct config *config;
	struct config_report report = {0};
	static const char text[] = "listen:\n  - address: 127.0.0.1:80\n    tls:\n"
				   "      - {certificate: /a, key: /old}\nsites:\n" SITE;
	assert_int_equal(fixture_read(text, &machine, &config, &report), 0);
	assert_int_equal(report.count, 0);
	assert_int_equal(report.listed, 1);
	assert_int_equal(report.warnings, 1);
	assert_int_equal(config->listen.at[0].tls.count, 1);
	assert_int_equal(config->tls_connections, config->connections);
	assert_int_equal(config->tls_handshakes, 1500);
	config_report_fini(&report);
	config_destroy(config);
}

static void test_memory(void **state)
{
	(void)state;
	struct config_bill_row row = {"everything", CONFIG_PER_PROCESS, 1, 1u << 30};
	struct config_machine machine = fixture_machine();
	machine.bill = (struct config_bill){.row_count = 1, .rows = &row};
	char *errors = fixture_errors(IN_ROOT("connections: 9000"), &machine);
	assert_string_equal(errors, "");
	free(errors);
	row.entry_bytes++;
	errors = fixture_errors(IN_ROOT("connections: 9000"), &machine);
	assert_string_equal(errors,
		"t.yaml:1:14: connections: '9000' and the other limits need 1073741825 bytes; "
		"allowed here: 1073741824\n");
	free(errors);
}

static uint64_t port_bytes(const struct config *config, uint32_t worker_count)
{
	(void)config;
	return worker_count * (1u << 20);
}

// One worker needs a megabyte: hugepages that hold it, and a page less.
static void test_hugepages(void **state)
{
	(void)state;
	static const struct {
		const char *hugepages;
		uint64_t there;
		const char *errors;
	} table[] = {
		{"required", 4, ""},
		{"required", 3,
			"t.yaml:7:19: dpdk.hugepages: 'required' needs 1048576 bytes in "
			"hugepages; here: 3 pages of 262144 bytes\n"},
		{"auto", 0, ""},
		{"off", 0, ""},
	};
	struct config_machine machine = fixture_machine();
	machine.bill.port_bytes = port_bytes;
	machine.hugepage_bytes = 1u << 18;
	for (size_t i = 0; i < sizeof(table) / sizeof(table[0]); i++) {
		char text[1024];
		snprintf(text, sizeof(text),
			"listen: [{address: '10.0.0.9:80'}]\nsites:\n" SITE
			"driver: dpdk\ndpdk: {hugepages: %s, ports: [{device: net_tap0, addresses: "
			"[10.0.0.9/8]}]}\nworkers: [1]\n",
			table[i].hugepages);
		machine.hugepages = table[i].there;
		char *errors = fixture_errors(text, &machine);
		assert_string_equal(errors, table[i].errors);
		free(errors);
	}
	machine.bill.port_bytes = NULL; // nobody knows
	char *errors = fixture_errors(IN_ROOT("#"), &machine);
	assert_string_equal(errors, "");
	free(errors);
}

// `count` sites of `each` hosts, or of `each` rooms.
static char *many(unsigned count, unsigned each, bool is_rooms)
{
	char *text;
	size_t len;
	FILE *out = open_memstream(&text, &len);
	fputs(LISTEN "sites:\n", out);
	for (unsigned i = 0; i < count; i++) {
		fprintf(out, "- {name: s%u, origin: {servers: ['a:1']}, hosts: [", i);
		for (unsigned j = 0; j < (is_rooms ? 1 : each); j++)
			fprintf(out, "h%u-%u,", i, j);
		fputs("], rooms: [", out);
		for (unsigned j = 0; j < (is_rooms ? each : 0); j++)
			fprintf(out, "{name: r%u-%u, path: /%u},", i, j, j);
		fputs("]}\n", out);
	}
	fclose(out);
	return text;
}

static void test_totals(void **state)
{
	(void)state;
	static const struct {
		unsigned count, each;
		bool is_rooms;
		const char *errors;
	} totals[] = {
		{16, 256, false, ""},
		{17, 241, false, "t.yaml:2:1: sites: have 4097 hosts; allowed: 4096 together\n"},
		{2, 512, true, ""},
		{5, 205, true, "t.yaml:2:1: sites: have 1025 rooms; allowed: 1024 together\n"},
	};
	struct config_machine machine = fixture_machine();
	for (size_t i = 0; i < sizeof(totals) / sizeof(totals[0]); i++) {
		char *text = many(totals[i].count, totals[i].each, totals[i].is_rooms);
		char *errors = fixture_errors(text, &machine);
		assert_string_equal(errors, totals[i].errors);
		free(errors);
		free(text);
	}
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_rules),
		cmocka_unit_test(test_state_fits_a_socket),
		cmocka_unit_test(test_certificates_of_origins),
		cmocka_unit_test(test_certificates_of_listeners),
		cmocka_unit_test(test_warnings),
		cmocka_unit_test(test_memory),
		cmocka_unit_test(test_hugepages),
		cmocka_unit_test(test_totals),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
