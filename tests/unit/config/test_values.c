// Every type: texts that are good and what they become, and texts that are not and why.

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "config/arena.h"
#include "config/config.h"
#include "config/value.h"

#include <stdio.h>
#include <string.h>

static struct arena arena;

static const struct key *key_at(const char *scope, const char *name)
{
	for (unsigned i = 0; i < key_count; i++)
		if (!strcmp(key_table[i].scope->path, scope) && !strcmp(key_table[i].name, name))
			return &key_table[i];
	fail_msg("no key %s%s", scope, name);
	return NULL;
}

#define ROOM "sites[].rooms[]."
#define SITE "sites[]."
#define PORT "dpdk.ports[]."
#define ORIGIN "sites[].origin."

// Numbers, words and booleans.
#define UNKNOWN_DURATION "has an unknown unit (known are ms, s, m, h, d)"

static const struct number_case {
	const char *scope, *key, *text;
	const char *wrong; // NULL: `number` is stored
	uint64_t number;
} number_cases[] = {
	{ROOM, "capacity", "500", NULL, 500},
	{ROOM, "capacity", "none", NULL, 0},
	{ROOM, "capacity", "0", "is too small", 0},
	{ROOM, "capacity", "000500", NULL, 500},
	{ROOM, "capacity", "99999999999999999999999", "is too large", 0},
	{ROOM, "capacity", "-1", "is not a whole number", 0},
	{ROOM, "capacity", "+1", "is not a whole number", 0},
	{ROOM, "capacity", "1.5", "is not a whole number", 0},
	{ROOM, "capacity", "1e3", "is not a whole number", 0},
	{ROOM, "capacity", "0x10", "is not a whole number", 0},
	{ROOM, "capacity", " 5", "is not a whole number", 0},
	{ROOM, "capacity", "", "is empty", 0},
	{"", "connections", "none", "is not a whole number", 0},
	{"", "workers", "1023", NULL, 1023},
	{"", "workers", "1024", "is too large", 0},
	{"", "workers", "first", "is not a whole number", 0},
	{ROOM, "session", "30s", NULL, 30},
	{ROOM, "session", "0", "is too small", 0},
	{ROOM, "prequeue", "0", NULL, 0},
	{ROOM, "prequeue", "0s", NULL, 0},
	{ROOM, "prequeue", "none", NULL, 0},
	{ROOM, "prequeue", "30m", NULL, 1800},
	{ROOM, "opens", "none", NULL, 0},
	{ROOM, "opens", "2026-12-01T10:00:00+09:00", NULL, 1764550800 + 31536000},
	{ROOM, "opens", "2026-12-01T01:00:00Z", NULL, 1764550800 + 31536000},
	{ROOM, "opens", "2026-11-30T20:30:00-04:30", NULL, 1764550800 + 31536000},
	{ROOM, "opens", "2024-02-29T00:00:00Z", NULL, 1709164800},
	{ROOM, "opens", "2016-12-31T23:59:60Z", NULL, 1483228800},
	{ROOM, "opens", "2000-01-01T00:00:00+23:59", NULL, 946684800 - 86340},
	{ROOM, "opens", "2199-12-31T23:59:59Z", NULL, 7258118399},
	{ROOM, "opens", "1999-12-31T23:59:59Z", "is no moment", 0},
	{ROOM, "opens", "2200-01-01T00:00:00Z", "is no moment", 0},
	{ROOM, "opens", "2023-02-29T00:00:00Z", "is no moment", 0},
	{ROOM, "opens", "2026-13-01T00:00:00Z", "is no moment", 0},
	{ROOM, "opens", "2026-00-01T00:00:00Z", "is no moment", 0},
	{ROOM, "opens", "2026-12-01T24:00:00Z", "is no moment", 0},
	{ROOM, "opens", "2026-12-01T10:60:00Z", "is no moment", 0},
	{ROOM, "opens", "2026-12-01T10:00:61Z", "is no moment", 0},
	{ROOM, "opens", "2026-12-01T10:00:00+24:00", "is no moment", 0},
	{ROOM, "opens", "2026-12-01T10:00:00", "has no zone", 0},
	{ROOM, "opens", "2026-12-01T10:00:00+9", "has no such zone", 0},
	{ROOM, "opens", "2026-12-01T10:00:00+09:00x", "has no such zone", 0},
	{ROOM, "opens", "2026-12-01T10:00:00.5Z", "has no such zone", 0},
	{ROOM, "opens", "2026-12-01 10:00:00Z", "is not a date and a time", 0},
	{ROOM, "opens", "2026-12-01", "is not a date and a time", 0},
	{ROOM, "opens", "tomorrow", "is not a date and a time", 0},
	{ROOM, "session", "10m", NULL, 600},
	{ROOM, "session", "2h", NULL, 7200},
	{ROOM, "session", "1d", NULL, 86400},
	{ROOM, "session", "2000ms", NULL, 2},
	{ROOM, "session", "1500ms", "is not a whole number of seconds", 0},
	{ROOM, "session", "600", "has no unit (s, m, h, d)", 0},
	{ROOM, "session", "1h30m", UNKNOWN_DURATION, 0},
	{ROOM, "session", "1 h", UNKNOWN_DURATION, 0},
	{ROOM, "session", "10M", UNKNOWN_DURATION, 0},
	{ROOM, "session", "1w", UNKNOWN_DURATION, 0},
	{ROOM, "session", "h", "is not a duration", 0},
	{ROOM, "session", "none", "is not a duration", 0},
	{ROOM, "session", "0s", "is too small", 0},
	{ROOM, "session", "18446744073709551615d", "is too large", 0},
	{"", "drain", "200ms", NULL, 200},
	{"", "drain", "0s", NULL, 0},
	{"http.", "line_max", "63k", NULL, 64512},
	{"http.", "line_max", "8192", NULL, 8192},
	{"http.", "line_max", "1g", "is too large", 0},
	{"http.", "line_max", "8kB", "has an unknown unit (known are k, m, g)", 0},
	{"http.", "line_max", "8K", "has an unknown unit (known are k, m, g)", 0},
	{"http.", "line_max", "k", "is not a size", 0},
	{"http.", "rate_min", "0", NULL, 0},
	{"buffers.", "queue_max", "1m", NULL, 1 << 20},
	{ROOM, "queue_status", "429", NULL, 429},
	{ROOM, "queue_status", "404", "is not one of the numbers", 0},
	{ROOM, "queue_status", "200|202", "is not one of the numbers", 0},
	{ROOM, "mode", "auto", NULL, CONFIG_MODE_AUTO},
	{ROOM, "mode", "always", NULL, CONFIG_MODE_ALWAYS},
	{ROOM, "mode", "off", NULL, CONFIG_MODE_OFF},
	{ROOM, "mode", "reject", NULL, CONFIG_MODE_REJECT},
	{ROOM, "mode", "peak", NULL, CONFIG_MODE_PEAK},
	{ROOM, "mode", "false", "is not one of the words", 0},
	{ROOM, "mode", "Auto", "is not one of the words", 0},
	{ROOM, "on_store_loss", "hold", NULL, CONFIG_ON_STORE_LOSS_HOLD},
	{ROOM, "on_store_loss", "share", NULL, CONFIG_ON_STORE_LOSS_SHARE},
	{ROOM, "on_store_loss", "open", NULL, CONFIG_ON_STORE_LOSS_OPEN},
	{ROOM, "on_store_loss", "reject", NULL, CONFIG_ON_STORE_LOSS_REJECT},
	{ROOM, "on_store_loss", "close", "is not one of the words", 0},
	{"cluster.", "sync", "20ms", NULL, 20},
	{"cluster.", "sync", "19ms", "is too small", 0},
	{"cluster.", "sync", "5s", NULL, 5000},
	{"cluster.", "sync", "5001ms", "is too large", 0},
	{SITE, "https", "off", NULL, CONFIG_HTTPS_OFF},
	{SITE, "https", "redirect", NULL, CONFIG_HTTPS_REDIRECT},
	{SITE, "https_port", "65535", NULL, 65535},
	{SITE, "hsts", "none", NULL, 0},
	{SITE, "hsts", "1y", NULL, 31536000},
	{SITE, "hsts", "730d", NULL, 63072000},
	{SITE, "pass_same_site", "lax", NULL, CONFIG_SAME_SITE_LAX},
	{SITE, "pass_same_site", "strict", NULL, CONFIG_SAME_SITE_STRICT},
	{SITE, "pass_same_site", "none", NULL, CONFIG_SAME_SITE_NONE},
	{ORIGIN, "balance", "least", NULL, CONFIG_BALANCE_LEAST},
	{ORIGIN, "balance", "session", NULL, CONFIG_BALANCE_SESSION},
	{"", "driver", "sockets", NULL, CONFIG_DRIVER_SOCKETS},
	{"", "driver", "dpdk", NULL, CONFIG_DRIVER_DPDK},
	{PORT, "vlan", "4094", NULL, 4094},
	{PORT, "vlan", "4095", "is too large", 0},
	{PORT, "mtu", "9000", NULL, 9000},
	{PORT, "mtu", "1279", "is too small", 0},
	{"dpdk.", "hugepages", "auto", NULL, CONFIG_HUGEPAGES_AUTO},
	{"dpdk.", "hugepages", "off", NULL, CONFIG_HUGEPAGES_OFF},
	{"dpdk.", "hugepages", "required", NULL, CONFIG_HUGEPAGES_REQUIRED},
	{"dpdk.", "resets", "1", NULL, 1},
	{"dpdk.", "resets", "0", "is too small", 0},
	{"dpdk.", "resets", "10000000", NULL, 10000000},
	{"dpdk.", "resets", "10000001", "is too large", 0},
	{"dpdk.", "idle_sleep", "0", NULL, 0},
	{"dpdk.", "idle_sleep", "1000", NULL, 1000},
	{"dpdk.", "idle_sleep", "1001", "is too large", 0},
	{"", "log", "error", NULL, CONFIG_LOG_ERROR},
	{"", "log", "debug", NULL, CONFIG_LOG_DEBUG},
	{ROOM, "sliding", "true", NULL, 1},
	{ROOM, "sliding", "false", NULL, 0},
	{ROOM, "sliding", "yes", "is neither true nor false", 0},
	{ROOM, "sliding", "off", "is neither true nor false", 0},
	{ROOM, "sliding", "True", "is neither true nor false", 0},
};

static void test_numbers(void **state)
{
	(void)state;
	for (size_t i = 0; i < sizeof(number_cases) / sizeof(number_cases[0]); i++) {
		const struct number_case *c = &number_cases[i];
		uint64_t stored = 0;
		const char *wrong = value_read(key_at(c->scope, c->key), c->text, &arena, &stored);
		print_message("%s%s: '%s'\n", c->scope, c->key, c->text);
		if (c->wrong)
			assert_string_equal(wrong, c->wrong);
		else
			assert_null(wrong);
		assert_int_equal(stored, c->number);
	}
}

static const struct rate_case {
	const char *text, *wrong;
	uint64_t count, period_ms;
} rate_cases[] = {
	{"20/s", NULL, 20, 1000},
	{"500/min", NULL, 500, 60000},
	{"5/h", NULL, 5, 3600000},
	{"none", NULL, 0, 0},
	{"1000000/s", NULL, 1000000, 1000},
	{"1000001/h", "is too large", 0, 0},
	{"0/s", "is too small", 0, 0},
	{"20", "has no unit", 0, 0},
	{"20/", "has an unknown unit", 0, 0},
	{"20/m", "has an unknown unit", 0, 0},
	{"20 / s", "has an unknown unit", 0, 0},
	{"20/ss", "has an unknown unit", 0, 0},
	{"/s", "is not a rate", 0, 0},
	{"many/s", "is not a rate", 0, 0},
};

static const struct rate_case batch_cases[] = {
	{"1000 every 10m", NULL, 1000, 600000},
	{"1 every 1s", NULL, 1, 1000},
	{"1000000 every 1d", NULL, 1000000, 86400000},
	{"none", NULL, 0, 0},
	{"0 every 1s", "is too small", 0, 0},
	{"1000001 every 1s", "is too large", 0, 0},
	{"5 every 999ms", "has a period out of range", 0, 0},
	{"5 every 1500ms", "has a period out of range", 0, 0},
	{"5 every 25h", "has a period out of range", 0, 0},
	{"5 every 10", "has a period without a unit", 0, 0},
	{"5 every m", "has no period", 0, 0},
	{"5 each 10m", "is not a number of people every so long", 0, 0},
	{"5  every 10m", "is not a number of people every so long", 0, 0},
	{"many every 10m", "is not a number of people every so long", 0, 0},
};

static void test_batches(void **state)
{
	(void)state;
	for (size_t i = 0; i < sizeof(batch_cases) / sizeof(batch_cases[0]); i++) {
		const struct rate_case *c = &batch_cases[i];
		struct config_rate batch = {0};
		const char *wrong = value_read(key_at(ROOM, "batch"), c->text, &arena, &batch);
		print_message("'%s'\n", c->text);
		if (c->wrong)
			assert_string_equal(wrong, c->wrong);
		else
			assert_null(wrong);
		assert_int_equal(batch.count, c->count);
		assert_int_equal(batch.period_ms, c->period_ms);
	}
}

static void test_rates(void **state)
{
	(void)state;
	for (size_t i = 0; i < sizeof(rate_cases) / sizeof(rate_cases[0]); i++) {
		const struct rate_case *c = &rate_cases[i];
		struct config_rate rate = {0};
		const char *wrong = value_read(key_at(ROOM, "rate"), c->text, &arena, &rate);
		print_message("'%s'\n", c->text);
		if (c->wrong)
			assert_string_equal(wrong, c->wrong);
		else
			assert_null(wrong);
		assert_int_equal(rate.count, c->count);
		assert_int_equal(rate.period_ms, c->period_ms);
	}
}

#define A10 "aaaaaaaaaa"
#define A60 A10 A10 A10 A10 A10 A10
#define A63 A60 "aaa"

// Texts. `stored` NULL: as written.
static const struct text_case {
	const char *scope, *key, *text, *wrong, *stored;
} text_cases[] = {
	{ROOM, "name", "derby", NULL, NULL},
	{ROOM, "name", "Derby_2.final-A", NULL, NULL},
	{ROOM, "name", "true", NULL, NULL},
	{ROOM, "name", A63, NULL, NULL},
	{ROOM, "name", A63 "a", "is too long", NULL},
	{ROOM, "name", "derby/final", "has other characters", NULL},
	{ROOM, "name", "derby final", "has other characters", NULL},
	{ROOM, "name", "dérby", "has other characters", NULL},
	{ROOM, "name", "..", "is not a name", NULL},
	{ROOM, "name", ".", "is not a name", NULL},
	{ROOM, "name", "...", NULL, NULL},
	{SITE, "hosts", "tickets.example", NULL, NULL},
	{SITE, "hosts", "Tickets.Example.", NULL, "tickets.example"},
	{SITE, "hosts", "*.club.example", NULL, NULL},
	{SITE, "hosts", "*.Club.example.", NULL, "*.club.example"},
	{SITE, "hosts", "localhost", NULL, NULL},
	{SITE, "hosts", "my_host.example", NULL, NULL},
	{SITE, "hosts", "127.0.0.1", NULL, NULL},
	{SITE, "hosts", "[::1]", NULL, NULL},
	{SITE, "hosts", "[2001:DB8:0:0::1]", NULL, "[2001:db8::1]"},
	{SITE, "hosts", A63 ".example", NULL, NULL},
	{SITE, "hosts", A63 "a.example", "has an empty or too long label", NULL},
	{SITE, "hosts", A63 "." A63 "." A63 "." A60 "a", NULL, NULL},
	{SITE, "hosts", A63 "." A63 "." A63 "." A60 "aa", "is too long", NULL},
	{SITE, "hosts", "*." A63 "." A63 "." A63 "." A60 "aa", "is too long", NULL},
	{SITE, "hosts", "tickets..example", "has an empty or too long label", NULL},
	{SITE, "hosts", ".example", "has an empty or too long label", NULL},
	{SITE, "hosts", ".", "has an empty or too long label", NULL},
	{SITE, "hosts", "-a.example", "has a label that begins or ends with '-'", NULL},
	{SITE, "hosts", "a-.example", "has a label that begins or ends with '-'", NULL},
	{SITE, "hosts", "shop.example:8080", "has other characters", NULL},
	{SITE, "hosts", "http://shop.example", "has other characters", NULL},
	{SITE, "hosts", "日本.example", "has other characters", NULL},
	{SITE, "hosts", "*", "has '*' for a part of a label", NULL},
	{SITE, "hosts", "*shop.example", "has '*' for a part of a label", NULL},
	{SITE, "hosts", "*.", "has an empty or too long label", NULL},
	{SITE, "hosts", "shop.*.example", "has other characters", NULL},
	{SITE, "hosts", "*.127.0.0.1", "has '*' before an address", NULL},
	{SITE, "hosts", "127.0.0.300", "is not an IPv4 address", NULL},
	{SITE, "hosts", "1.2.3", "is not an IPv4 address", NULL},
	{SITE, "hosts", "[::1", "is not an IPv6 address in brackets", NULL},
	{SITE, "hosts", "[", "is not an IPv6 address in brackets", NULL},
	{SITE, "hosts", "[]", "is not an IPv6 address in brackets", NULL},
	{SITE, "hosts", "[shop]", "is not an IPv6 address in brackets", NULL},
	{SITE, "hosts", "[" A63 "]", "is not an IPv6 address in brackets", NULL},
	{SITE, "cookie_domain", "Club.example", NULL, "club.example"},
	{SITE, "cookie_domain", "*.club.example", "has other characters", NULL},
	{SITE, "cookie_domain", ".club.example", "has an empty or too long label", NULL},
	{ROOM, "path", "/derby", NULL, NULL},
	{ROOM, "path", "/derby\tfinal", "has control characters", NULL},
	{ROOM, "path", "/müller", NULL, NULL},
	{"", "state", "/var/lib/sluice", NULL, NULL},
	{"", "store_password_file", "redis.password", NULL, NULL},
	{"cluster.", "appliance", "a1", NULL, NULL},
	{"cluster.", "appliance", "a 1", "has other characters", NULL},
	{"cluster.", "name", "events", NULL, NULL},
	{"cluster.", "name", "ev{nts", "has other characters", NULL},
	{"cluster.", "key_file", "cluster.key", NULL, NULL},
	{"", "state", "/var/\x7f", "has control characters", NULL},
	{"", "user", "sluice", NULL, NULL},
	{"", "user", "root:root", "has other characters", NULL},
	{"listen[].", "address", "127.0.0.1:8080", NULL, NULL},
	{"listen[].", "address", "[::]:443", NULL, NULL},
	{"listen[].", "address", "[2001:db8::1]:65535", NULL, NULL},
	{"listen[].", "address", "127.0.0.1:65536", "has no port from 1 to 65535", NULL},
	{"listen[].", "address", "127.0.0.1:0", "has no port from 1 to 65535", NULL},
	{"listen[].", "address", "127.0.0.1:", "has no port from 1 to 65535", NULL},
	{"listen[].", "address", "127.0.0.1:80 ", "has no port from 1 to 65535", NULL},
	{"listen[].", "address", "127.0.0.1:99999999999999999999", "has no port from 1 to 65535",
		NULL},
	{"listen[].", "address", "127.0.0.1", "has no port", NULL},
	{"listen[].", "address", ":80", "has no port", NULL},
	{"listen[].", "address", "[::]", "has no port", NULL},
	{"listen[].", "address", "[:80", "has no port", NULL},
	{"listen[].", "address", "::1:80", "is not an address", NULL},
	{"listen[].", "address", "localhost:80", "is not an address", NULL},
	{"listen[].", "address", "*:80", "is not an address", NULL},
	{"listen[].", "address", A63 A63 A63 A63 "aa:80", "is too long", NULL},
	{"", "trusted_proxies", "10.0.0.0/8", NULL, NULL},
	{"", "trusted_proxies", "192.0.2.1", NULL, NULL},
	{"", "trusted_proxies", "0.0.0.0/0", NULL, NULL},
	{"", "trusted_proxies", "2001:db8::/32", NULL, NULL},
	{"", "trusted_proxies", "10.0.0.1/8", "has bits set beyond its length", NULL},
	{"", "trusted_proxies", "2001:db8::1/64", "has bits set beyond its length", NULL},
	{"", "trusted_proxies", "10.0.0.0/33", "has no length after '/'", NULL},
	{"", "trusted_proxies", "::/129", "has no length after '/'", NULL},
	{"", "trusted_proxies", "10.0.0.0/", "has no length after '/'", NULL},
	{"", "trusted_proxies", "10.0.0.0/x", "has no length after '/'", NULL},
	{"", "trusted_proxies", "10.0.0/8", "is not a network", NULL},
	{"", "trusted_proxies", "proxy.example", "is not a network", NULL},
	{"", "trusted_proxies", A63, "is not a network", NULL},
	{PORT, "device", "0000:01:00.0", NULL, NULL},
	{PORT, "device", "net_tap0,iface=tap0", NULL, NULL},
	{PORT, "device", "a\tb", "has control characters", NULL},
	{PORT, "exception", "sluice0", NULL, NULL},
	{PORT, "exception", "sluice/0", "has other characters", NULL},
	{PORT, "addresses", "192.0.2.10/24", NULL, NULL},
	{PORT, "addresses", "2001:db8::10/64", NULL, NULL},
	{PORT, "addresses", "192.0.2.10", "has no length after '/'", NULL},
	{PORT, "addresses", "192.0.2.10/33", "has no length after '/'", NULL},
	{PORT, "addresses", "192.0.2/24", "is not an address", NULL},
	{PORT, "gateways", "192.0.2.1", NULL, NULL},
	{PORT, "gateways", "fe80::1", NULL, NULL},
	{PORT, "gateways", "192.0.2.1/24", "is not an address", NULL},
	{PORT, "gateways", "router", "is not an address", NULL},
	{ORIGIN, "servers", "10.0.0.1:80", NULL, NULL},
	{ORIGIN, "servers", "shop.internal:8080", NULL, NULL},
	{ORIGIN, "servers", "[::1]:9000", NULL, NULL},
	{ORIGIN, "servers", "shop.internal", "has no port", NULL},
	{ORIGIN, "servers", "http://10.0.0.1:80", "has other characters", NULL},
	{ORIGIN, "servers", "10.0.0.300:80", "is not an IPv4 address", NULL},
	{ORIGIN, "servers", "[shop]:80", "is not an IPv6 address in brackets", NULL},
};

static void test_texts(void **state)
{
	(void)state;
	for (size_t i = 0; i < sizeof(text_cases) / sizeof(text_cases[0]); i++) {
		const struct text_case *c = &text_cases[i];
		union {
			const char *text; // the first member of each of the others
			struct config_address address;
			struct config_network network;
			struct config_server server;
			struct config_interface interface;
			struct config_ip ip;
		} stored = {0};
		const char *wrong = value_read(key_at(c->scope, c->key), c->text, &arena, &stored);
		print_message("%s%s: '%s'\n", c->scope, c->key, c->text);
		if (c->wrong) {
			assert_string_equal(wrong, c->wrong);
			assert_null(stored.text);
		} else {
			assert_null(wrong);
			assert_string_equal(stored.text, c->stored ? c->stored : c->text);
		}
	}
}

static void test_addresses_are_mapped(void **state)
{
	(void)state;
	static const uint8_t mapped[16] = {[10] = 0xff, [11] = 0xff, [12] = 10, [15] = 7};
	static const uint8_t network6[16] = {0x20, 0x01, 0x0d, 0xb8};
	struct config_address address;
	struct config_network network;
	struct config_server server;

	assert_null(value_read(key_at("listen[].", "address"), "10.0.0.7:80", &arena, &address));
	assert_memory_equal(address.ip, mapped, 16);
	assert_int_equal(address.port, 80);
	assert_null(value_read(key_at("", "trusted_proxies"), "10.0.0.7", &arena, &network));
	assert_memory_equal(network.ip, mapped, 16);
	assert_int_equal(network.bits, 128);
	assert_null(value_read(key_at("", "trusted_proxies"), "10.0.0.0/8", &arena, &network));
	assert_int_equal(network.bits, 104);
	assert_null(value_read(key_at("", "trusted_proxies"), "2001:db8::/32", &arena, &network));
	assert_memory_equal(network.ip, network6, 16);
	assert_int_equal(network.bits, 32);
	assert_null(value_read(key_at(ORIGIN, "servers"), "[::1]:90", &arena, &server));
	assert_string_equal(server.host, "::1");
	assert_null(value_read(key_at(ORIGIN, "servers"), "Shop.Internal:90", &arena, &server));
	assert_string_equal(server.host, "shop.internal");
	assert_int_equal(server.port, 90);
}

// What is shown is what would be read.
static void test_numbers_survive_showing(void **state)
{
	(void)state;
	for (unsigned i = 0; i < key_count; i++) {
		const struct key *key = &key_table[i];
		if (key->shape != KEY_ONE || key->max == 0 || key->type == KEY_RATE)
			continue;
		if (key->type != KEY_COUNT && key->type != KEY_DURATION && key->type != KEY_SIZE)
			continue;
		uint64_t numbers[] = {key->min, key->min + 1, key->max - 1, key->max}, stored;
		for (int j = 0; j < 4; j++) {
			char text[32];
			assert_null(value_read(
				key, value_number(key, numbers[j], text), &arena, &stored));
			assert_int_equal(stored, numbers[j]);
		}
	}
}

static void test_nearest(void **state)
{
	(void)state;
	static const struct {
		const char *scope, *wrong, *nearest;
	} cases[] = {
		{ROOM, "capcity", "capacity"},
		{ROOM, "capactiy", "capacity"},
		{ROOM, "Rate", "rate"},
		{ROOM, "sesion", "session"},
		{"", "listeners", "listen"},
		{"", "site", "sites"},
		{SITE, "host", "hosts"},
		{ORIGIN, "server", "servers"},
	};
	for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
		const struct key_scope *scope = NULL;
		for (unsigned j = 0; j < key_count; j++)
			if (!strcmp(key_table[j].scope->path, cases[i].scope))
				scope = key_table[j].scope;
		assert_string_equal(key_nearest(scope, cases[i].wrong)->name, cases[i].nearest);
	}
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_numbers),
		cmocka_unit_test(test_rates),
		cmocka_unit_test(test_batches),
		cmocka_unit_test(test_texts),
		cmocka_unit_test(test_addresses_are_mapped),
		cmocka_unit_test(test_numbers_survive_showing),
		cmocka_unit_test(test_nearest),
	};
	if (arena_init(&arena) < 0)
		return 1;
	int failed = cmocka_run_group_tests(tests, NULL, NULL);
	arena_fini(&arena);
	return failed;
}
