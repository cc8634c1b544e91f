// Whose request it is, behind proxies of ours and of others.

#include "dataplane/proxied.h"
#include "drivers/ip.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>

#include <arpa/inet.h>
#include <cmocka.h>

static const struct {
	const char *peer, *forwarded, *source;
} cases[] = {
	// Nobody believes who is no proxy of ours.
	{"198.51.100.1", NULL, "198.51.100.1"},
	{"198.51.100.1", "192.0.2.7", "198.51.100.1"},
	// One of ours, and what it says.
	{"10.0.0.1", NULL, "10.0.0.1"},
	{"10.0.0.1", "192.0.2.7", "192.0.2.7"},
	{"10.0.0.1", "192.0.2.7:4123", "192.0.2.7"},
	{"10.0.0.1", "203.0.113.1, 192.0.2.7", "192.0.2.7"}, // the first one is what a visitor says
	// One behind the other.
	{"10.0.0.1", "192.0.2.7, 10.0.0.2", "192.0.2.7"},
	{"10.0.0.1", "203.0.113.1, 192.0.2.7, 10.0.0.3:80, 10.0.0.2", "192.0.2.7"},
	{"10.0.0.1", "2001:db8::7, [fd00::1]:443", "2001:db8::7"},
	{"10.0.0.1", "10.0.0.3, 10.0.0.2", "10.0.0.3"}, // a visitor from our own network
	{"10.0.0.1", "192.0.2.7, unknown, 10.0.0.2", "10.0.0.2"},
	{"10.0.0.1", "unknown", "10.0.0.1"},
};

static void read_ip(const char *text, uint8_t ip[16])
{
	uint8_t v4[4];
	if (inet_pton(AF_INET, text, v4) == 1)
		ip_map(ip, v4);
	else
		assert_int_equal(inet_pton(AF_INET6, text, ip), 1);
}

static void source(const char *peer, const char *forwarded, uint8_t ip[16])
{
	static const struct http_limits limits = {8192, 16384, 100};
	struct snapshot_network networks[2] = {{.bits = 96 + 8}, {.bits = 16}};
	struct snapshot snapshot = {.trusted = networks, .trusted_count = 2};
	struct http_head head;
	char request[1024];
	uint8_t is[16];
	read_ip("10.0.0.0", networks[0].ip);
	read_ip("fd00::", networks[1].ip);
	read_ip(peer, is);
	const int len = snprintf(request, sizeof(request),
		forwarded ? "GET / HTTP/1.1\r\nHost: a\r\nX-Forwarded-For: %s\r\n\r\n"
			  : "GET / HTTP/1.1\r\nHost: a\r\n\r\n",
		forwarded);
	assert_int_equal(
		http_request_parse((struct span){request, (size_t)len}, &limits, &head), HTTP_OK);
	proxied_source(&snapshot, &head, is, ip);
}

static void test_sources(void **state)
{
	(void)state;
	for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
		uint8_t ip[16], expected[16];
		source(cases[i].peer, cases[i].forwarded, ip);
		read_ip(cases[i].source, expected);
		if (memcmp(ip, expected, 16) != 0)
			fail_msg("%s: %s", cases[i].peer, cases[i].forwarded);
	}
}

// As many of our proxies as may stand behind one another, and one more.
static void test_hops(void **state)
{
	(void)state;
	for (uint32_t hops = PROXIED_HOPS_MAX - 1; hops <= PROXIED_HOPS_MAX; hops++) {
		char text[512] = "192.0.2.7";
		uint8_t ip[16], expected[16];
		size_t len = strlen(text);
		for (uint32_t i = 0; i < hops; i++)
			len += (size_t)snprintf(text + len, sizeof(text) - len, ", 10.0.0.2");
		source("10.0.0.1", text, ip);
		read_ip(hops < PROXIED_HOPS_MAX ? "192.0.2.7" : "10.0.0.2", expected);
		assert_memory_equal(ip, expected, 16);
	}
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_sources),
		cmocka_unit_test(test_hops),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
