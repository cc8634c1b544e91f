// Hosts and ports: a table, and random IPv6 addresses against inet_pton.

#include "dataplane/http/host.h"
#include "tests/unit/http/dice.h"
#include "tests/unit/http/guard.h"
#include "tests/unit/http/text.h"

#include <arpa/inet.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>

#include <cmocka.h>

#define LENGTH(array) (sizeof(array) / sizeof((array)[0]))

static void host_values(void **state)
{
	(void)state;
	static const struct {
		const char *host;
		bool is_valid;
		const char *port; // NULL: none
	} cases[] = {
		{"a", true, NULL},
		{"a.example", true, NULL},
		{"a.example.", true, NULL},
		{"a_b-c~d", true, NULL},
		{"a%2Fb", true, NULL},
		{"a%2", false, NULL},
		{"a%2g", false, NULL},
		{"a!$&'()*+,;=b", true, NULL},
		{"a:80", true, "80"},
		{"a:", true, ""},
		{"a:0", true, "0"},
		{"a:65535", true, "65535"},
		{"a:65536", false, NULL},
		{"a:99999999999999999999", false, NULL},
		{"a:8 0", false, NULL},
		{"a:-1", false, NULL},
		{"a:80:80", false, NULL},
		{":80", false, NULL},
		{"", false, NULL},
		{"192.0.2.1:80", true, "80"},
		{"::1", false, NULL},
		{"[::1]", true, NULL},
		{"[::1]:80", true, "80"},
		{"[2001:DB8::192.0.2.1]", true, NULL},
		{"[::1", false, NULL},
		{"[]", false, NULL},
		{"[::1]a", false, NULL},
		{"[::1%25eth0]", false, NULL},
		{"[v1.a]", false, NULL},
		{"[192.0.2.1]", false, NULL},
		{"a b", false, NULL},
		{"a\\b", false, NULL},
		{"a?b", false, NULL},
		{"a\x80", false, NULL},
		{"\"a\"", false, NULL},
	};
	for (size_t i = 0; i < LENGTH(cases); i++) {
		struct span port;
		if (host_is_valid(guard_string(cases[i].host), &port) != cases[i].is_valid)
			fail_msg("%s", cases[i].host);
		if (!cases[i].is_valid)
			continue;
		const char *expected = cases[i].port ? cases[i].port : "";
		if ((port.at != NULL) != (cases[i].port != NULL) ||
			!span_is_equal(port, (struct span){expected, strlen(expected)}))
			fail_msg("%s: port %.*s", cases[i].host, (int)port.len, port.at);
	}
}

// inet_pton is the twin.
static void random_ipv6_addresses(void **state)
{
	(void)state;
	dice_begin();
	static const char *const parts[] = {":", "::", ":", ":", "0", "1", "12", "abc", "ffff",
		"00000", "1.2.3.4", "255.255.255.255", "256.1.1.1", "01.2.3.4", "1.2.3", "g"};
	static struct text host;
	unsigned valid = 0;
	for (unsigned round = 0; round < 200000; round++) {
		text_clear(&host);
		text_add(&host, "[");
		for (unsigned i = dice(18); i > 0; i--) {
			unsigned likely = i % 2 ? 4 + dice(5) : dice(4); // a group, or between
			text_add(&host, "%s", parts[dice(50) ? likely : dice(LENGTH(parts))]);
		}
		struct in6_addr address;
		bool expected = inet_pton(AF_INET6, host.at + 1, &address) == 1;
		text_add(&host, "]");
		struct span port;
		if (host_is_valid(guard_string(host.at), &port) != expected)
			fail_msg("%s", host.at);
		valid += expected;
	}
	assert_true(valid > 1000);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(host_values),
		cmocka_unit_test(random_ipv6_addresses),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
