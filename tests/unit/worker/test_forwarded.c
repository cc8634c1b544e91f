// X-Forwarded-For from its end: what proxies write, and what others do.

#include "dataplane/forwarded.h"
#include "drivers/ip.h"
#include "tests/unit/http/guard.h"
#include "tests/unit/http/text.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdio.h>
#include <string.h>

#include <arpa/inet.h>
#include <cmocka.h>

#define LENGTH(array) (sizeof(array) / sizeof((array)[0]))

static const struct {
	const char *fields; // cut at '\n'; NULL: none
	const char *read; // from the last on, one behind the other; what cannot be read ends it
} cases[] = {
	{NULL, ""},
	{"", ""},
	{"192.0.2.7", "192.0.2.7 "},
	{" 192.0.2.7\t", "192.0.2.7 "},
	{"2001:db8::7, 192.0.2.9", "192.0.2.9 2001:db8::7 "},
	{"192.0.2.7\n192.0.2.8,192.0.2.9", "192.0.2.9 192.0.2.8 192.0.2.7 "},
	{"192.0.2.7:41234", "192.0.2.7 "},
	{"[2001:db8::1]:443, [2001:db8::2]", "2001:db8::2 2001:db8::1 "},
	{"::ffff:192.0.2.1", "192.0.2.1 "},
	{"192.0.2.1, unknown", ""},
	{"192.0.2.1, , 192.0.2.2", "192.0.2.2 "},
	{"192.0.2.1,", ""},
	{"192.0.2.1:", ""},
	{"192.0.2.1:a", ""},
	{"192.0.2.1:123456", ""},
	{"[2001:db8::1", ""},
	{"[2001:db8::1]443", ""},
	{"[2001:db8::1]:", ""},
	{"[]", ""},
	{":443", ""},
	{"2001:db8::1:", ""},
	{"\"192.0.2.1\"", ""},
	{"fe80::1%eth0", ""},
	{"0001:0002:0003:0004:0005:0006:0007:0008:0009", ""},
};

static void add(char read[512], const uint8_t ip[16])
{
	char text[INET6_ADDRSTRLEN];
	if (ip_is_v4(ip))
		inet_ntop(AF_INET, ip + IP_MAPPED_BYTES, text, sizeof(text));
	else
		inet_ntop(AF_INET6, ip, text, sizeof(text));
	const size_t len = strlen(read);
	snprintf(read + len, 512 - len, "%s ", text);
}

static void test_addresses_from_the_last_on(void **state)
{
	(void)state;
	static const struct http_limits limits = {8192, 16384, 100};
	for (size_t i = 0; i < LENGTH(cases); i++) {
		struct http_head head;
		static struct text input;
		text_clear(&input);
		text_add(&input, "GET / HTTP/1.1\r\nHost: a\r\n");
		const char *values = cases[i].fields;
		while (values) {
			const size_t bytes = strcspn(values, "\n");
			text_add(&input, "X-Forwarded-For: %.*s\r\n", (int)bytes, values);
			values = values[bytes] ? values + bytes + 1 : NULL;
		}
		text_add(&input, "Accept: */*\r\n\r\n");
		assert_int_equal(
			http_request_parse(guard_copy(text_span(&input)), &limits, &head), HTTP_OK);
		struct forwarded from = forwarded_last(&head);
		char read[512] = "";
		uint8_t ip[16];
		while (forwarded_before(&from, ip))
			add(read, ip);
		if (strcmp(read, cases[i].read) != 0)
			fail_msg("%s: %s", cases[i].fields, read);
	}
}

int main(void)
{
	const struct CMUnitTest tests[] = {cmocka_unit_test(test_addresses_from_the_last_on)};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
