// The PROXY header: what is taken, what is refused, and that every prefix asks for more.

#include <arpa/inet.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/mman.h>

#include <cmocka.h>

#include "drivers/proxy/header.h"

#define PAGE_BYTES 4096
#define SIGNATURE "\r\n\r\n\0\r\nQUIT\n"
#define V4 "\xc0\x00\x02\x01\xc6\x33\x64\x02\x30\x39\x01\xbb"
#define V6_IP "\x20\x01\x0d\xb8\0\0\0\0\0\0\0\0\0\0\0"
#define V6 V6_IP "\x01" V6_IP "\x02\x30\x39\x01\xbb"

static char *guard; // an unmapped page begins here

struct wanted {
	const char *name;
	struct span in;
	enum header_result result;
	const char *peer, *local; // NULL: none are in the header
	uint16_t peer_port, local_port;
};
#define IN(text) \
	{ \
		text, sizeof(text) - 1 \
	}

static const struct wanted table[] = {
	{"v1 tcp4", IN("PROXY TCP4 192.0.2.1 198.51.100.2 12345 443\r\n"), HEADER_OK,
		"::ffff:192.0.2.1", "::ffff:198.51.100.2", 12345, 443},
	{"v1 tcp6", IN("PROXY TCP6 2001:db8::1 2001:db8::2 12345 443\r\n"), HEADER_OK,
		"2001:db8::1", "2001:db8::2", 12345, 443},
	{"v1 ports at their ends", IN("PROXY TCP4 0.0.0.0 255.255.255.255 0 65535\r\n"), HEADER_OK,
		"::ffff:0.0.0.0", "::ffff:255.255.255.255", 0, 65535},
	{"v1 unknown", IN("PROXY UNKNOWN\r\n"), HEADER_OK, NULL, NULL, 0, 0},
	{"v1 unknown with what is ignored", IN("PROXY UNKNOWN a  b\tc\r\n"), HEADER_OK, NULL, NULL,
		0, 0},
	{"v1 longest",
		IN("PROXY UNKNOWN ffff:ffff:ffff:ffff:ffff:ffff:ffff:ffff "
		   "ffff:ffff:ffff:ffff:ffff:ffff:ffff:ffff 65535 65535\r\n"),
		HEADER_OK, NULL, NULL, 0, 0},
	{"v1 one byte too long",
		IN("PROXY UNKNOWN ffff:ffff:ffff:ffff:ffff:ffff:ffff:ffff "
		   "ffff:ffff:ffff:ffff:ffff:ffff:ffff:ffff 65535 655355\r\n"),
		HEADER_BAD, NULL, NULL, 0, 0},
	{"v1 port too large", IN("PROXY TCP4 1.2.3.4 1.2.3.4 1 65536\r\n"), HEADER_BAD, NULL, NULL,
		0, 0},
	{"v1 port with zero in front", IN("PROXY TCP4 1.2.3.4 1.2.3.4 01 2\r\n"), HEADER_BAD, NULL,
		NULL, 0, 0},
	{"v1 port with sign", IN("PROXY TCP4 1.2.3.4 1.2.3.4 +1 2\r\n"), HEADER_BAD, NULL, NULL, 0,
		0},
	{"v1 no port", IN("PROXY TCP4 1.2.3.4 1.2.3.4 1\r\n"), HEADER_BAD, NULL, NULL, 0, 0},
	{"v1 one word more", IN("PROXY TCP4 1.2.3.4 1.2.3.4 1 2 3\r\n"), HEADER_BAD, NULL, NULL, 0,
		0},
	{"v1 trailing space", IN("PROXY TCP4 1.2.3.4 1.2.3.4 1 2 \r\n"), HEADER_BAD, NULL, NULL, 0,
		0},
	{"v1 two spaces", IN("PROXY TCP4  1.2.3.4 1.2.3.4 1 2\r\n"), HEADER_BAD, NULL, NULL, 0, 0},
	{"v1 ipv6 in tcp4", IN("PROXY TCP4 ::1 ::1 1 2\r\n"), HEADER_BAD, NULL, NULL, 0, 0},
	{"v1 ipv4 in tcp6", IN("PROXY TCP6 1.2.3.4 1.2.3.4 1 2\r\n"), HEADER_BAD, NULL, NULL, 0, 0},
	{"v1 octet too large", IN("PROXY TCP4 1.2.3.256 1.2.3.4 1 2\r\n"), HEADER_BAD, NULL, NULL,
		0, 0},
	{"v1 NUL in an address", IN("PROXY TCP4 1.2.3.4\0 1.2.3.4 1 2\r\n"), HEADER_BAD, NULL, NULL,
		0, 0},
	{"v1 word too long",
		IN("PROXY TCP6 0000:0000:0000:0000:0000:0000:0000:0000:0000:0 ::1 1 2\r\n"),
		HEADER_BAD, NULL, NULL, 0, 0},
	{"v1 other family", IN("PROXY UDP4 1.2.3.4 1.2.3.4 1 2\r\n"), HEADER_BAD, NULL, NULL, 0, 0},
	{"v1 lower case", IN("proxy TCP4 1.2.3.4 1.2.3.4 1 2\r\n"), HEADER_BAD, NULL, NULL, 0, 0},
	{"v1 family alone", IN("PROXY TCP4\r\n"), HEADER_BAD, NULL, NULL, 0, 0},
	{"v1 nothing", IN("PROXY \r\n"), HEADER_BAD, NULL, NULL, 0, 0},
	{"v1 LF alone", IN("PROXY TCP4 1.2.3.4 1.2.3.4 1 2\n\r\n"), HEADER_BAD, NULL, NULL, 0, 0},
	{"v1 CR alone", IN("PROXY TCP4 1.2.3.4 1.2.3.4 1 2\r\r\n"), HEADER_BAD, NULL, NULL, 0, 0},
	{"no header", IN("GET / HTTP/1.1\r\n\r\n"), HEADER_BAD, NULL, NULL, 0, 0},
	{"a TLS hello", IN("\x16\x03\x01\x02\x00\x01"), HEADER_BAD, NULL, NULL, 0, 0},
	{"v2 tcp4", IN(SIGNATURE "\x21\x11\x00\x0c" V4), HEADER_OK, "::ffff:192.0.2.1",
		"::ffff:198.51.100.2", 12345, 443},
	{"v2 tcp6", IN(SIGNATURE "\x21\x21\x00\x24" V6), HEADER_OK, "2001:db8::1", "2001:db8::2",
		12345, 443},
	{"v2 with TLVs", IN(SIGNATURE "\x21\x11\x00\x13" V4 "\x04\x00\x01x\x05\x00\x00"), HEADER_OK,
		"::ffff:192.0.2.1", "::ffff:198.51.100.2", 12345, 443},
	{"v2 TLV longer than the header", IN(SIGNATURE "\x21\x11\x00\x10" V4 "\x04\x00\x02x"),
		HEADER_BAD, NULL, NULL, 0, 0},
	{"v2 half a TLV head", IN(SIGNATURE "\x21\x11\x00\x0e" V4 "\x04\x00"), HEADER_BAD, NULL,
		NULL, 0, 0},
	{"v2 local", IN(SIGNATURE "\x20\x00\x00\x00"), HEADER_OK, NULL, NULL, 0, 0},
	{"v2 local with addresses", IN(SIGNATURE "\x20\x11\x00\x0c" V4), HEADER_OK, NULL, NULL, 0,
		0},
	{"v2 proxy of family unspecified", IN(SIGNATURE "\x21\x00\x00\x03xyz"), HEADER_OK, NULL,
		NULL, 0, 0},
	{"v2 udp", IN(SIGNATURE "\x21\x12\x00\x0c" V4), HEADER_BAD, NULL, NULL, 0, 0},
	{"v2 unix", IN(SIGNATURE "\x21\x31\x00\x0c" V4), HEADER_BAD, NULL, NULL, 0, 0},
	{"v2 other version", IN(SIGNATURE "\x31\x11\x00\x0c" V4), HEADER_BAD, NULL, NULL, 0, 0},
	{"v2 other command", IN(SIGNATURE "\x22\x11\x00\x0c" V4), HEADER_BAD, NULL, NULL, 0, 0},
	{"v2 shorter than its addresses", IN(SIGNATURE "\x21\x21\x00\x0c" V4), HEADER_BAD, NULL,
		NULL, 0, 0},
};

static enum header_result parse(struct span in, struct header *header)
{
	char *at = guard - in.len;
	memcpy(at, in.at, in.len);
	return header_parse((struct span){at, in.len}, header);
}

static void assert_address(const struct stream_address *address, const char *ip, uint16_t port)
{
	uint8_t wanted[16];
	assert_int_equal(inet_pton(AF_INET6, ip, wanted), 1);
	assert_memory_equal(address->ip, wanted, sizeof(wanted));
	assert_int_equal(address->port, port);
}

static void headers(void **state)
{
	(void)state;
	for (size_t i = 0; i < sizeof(table) / sizeof(*table); i++) {
		const struct wanted *w = &table[i];
		struct header found;
		if (parse(w->in, &found) != w->result)
			fail_msg("%s", w->name);
		if (w->result != HEADER_OK)
			continue;
		assert_int_equal(found.bytes, w->in.len);
		assert_int_equal(found.has_addresses, w->peer != NULL);
		if (w->peer) {
			assert_address(&found.peer, w->peer, w->peer_port);
			assert_address(&found.local, w->local, w->local_port);
		}
	}
}

static void every_prefix_asks_for_more(void **state)
{
	(void)state;
	struct header found;
	for (size_t i = 0; i < sizeof(table) / sizeof(*table); i++)
		for (size_t len = 0; table[i].result == HEADER_OK && len < table[i].in.len; len++)
			if (parse((struct span){table[i].in.at, len}, &found) != HEADER_MORE)
				fail_msg("%s cut at %zu", table[i].name, len);
}

static void what_follows_is_left_alone(void **state)
{
	(void)state;
	for (size_t i = 0; i < sizeof(table) / sizeof(*table); i++) {
		char longer[256];
		struct header found;
		if (table[i].result != HEADER_OK)
			continue;
		memcpy(longer, table[i].in.at, table[i].in.len);
		memcpy(longer + table[i].in.len, "GET ", 4);
		assert_int_equal(
			parse((struct span){longer, table[i].in.len + 4}, &found), HEADER_OK);
		assert_int_equal(found.bytes, table[i].in.len);
	}
}

// A v2 header of `len` bytes, filled by one TLV. Returns the result for all of it.
static enum header_result parse_long(size_t len)
{
	static char header[HEADER_BYTES_MAX + 1] = SIGNATURE "\x21\x11\x00\x00" V4 "\x04";
	struct header found;
	size_t body = len - 16, value = body - 12 - 3;
	header[14] = (char)(body >> 8);
	header[15] = (char)body;
	header[29] = (char)(value >> 8);
	header[30] = (char)value;
	return parse((struct span){header, len}, &found);
}

static void length_at_the_limit_and_beyond(void **state)
{
	(void)state;
	assert_int_equal(parse_long(HEADER_BYTES_MAX), HEADER_OK);
	assert_int_equal(parse_long(HEADER_BYTES_MAX + 1), HEADER_BAD);
}

// Whoever speaks first and is no proxy is known at the first byte that differs.
static void refused_at_the_first_wrong_byte(void **state)
{
	(void)state;
	struct header found;
	assert_int_equal(parse(SPAN("G"), &found), HEADER_BAD);
	assert_int_equal(parse(SPAN("POST"), &found), HEADER_BAD);
	assert_int_equal(parse(SPAN("PROXY-"), &found), HEADER_BAD);
	assert_int_equal(parse(SPAN("\r\n\r\nG"), &found), HEADER_BAD);
}

int main(void)
{
	char *map = mmap(
		NULL, 2 * PAGE_BYTES, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
	if (map == MAP_FAILED || mprotect(map + PAGE_BYTES, PAGE_BYTES, PROT_NONE) < 0)
		return 1;
	guard = map + PAGE_BYTES;
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(headers),
		cmocka_unit_test(every_prefix_asks_for_more),
		cmocka_unit_test(what_follows_is_left_alone),
		cmocka_unit_test(length_at_the_limit_and_beyond),
		cmocka_unit_test(refused_at_the_first_wrong_byte),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
