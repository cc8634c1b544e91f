// Requests as the origin gets them: what goes, what stays byte for byte, what is added.

#include "dataplane/origin/request_head.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>

#include <cmocka.h>

static const struct http_limits limits = {8192, 16384, HTTP_FIELDS_MAX};

// Facts about a request that the tables vary.
enum {
	TLS = 1,
	TRUSTED = 2,
	ROOM = 4, // room derby, session 0x0123456789abcdef
	IP6 = 8,
	UNKEPT = 16,
};

#define ADDED(host) \
	"X-Forwarded-For: 192.0.2.7\r\nX-Forwarded-Proto: http\r\nX-Forwarded-Host: " host \
	"\r\nForwarded: for=192.0.2.7;host=\"" host "\";proto=http\r\n\r\n"
#define PLAIN ADDED("shop.example:8080")

struct row {
	const char *name;
	unsigned facts;
	const char *in; // after the request line and Host, or a whole head
	const char *out; // likewise
};

static const struct row fields[] = {
	{"nothing", 0, "", PLAIN},
	{"fields stay in order, as spelt", 0, "B: 1\r\na:2\r\nB:  3 \r\n",
		"B: 1\r\na: 2\r\nB: 3\r\n" PLAIN},
	{"an empty value stays", 0, "Accept:\r\n", "Accept: \r\n" PLAIN},
	{"Connection and what it names go", 0,
		"X-A: 1\r\nConnection: close, x-a, X-B\r\nX-B: 2\r\nX-C: 3\r\n",
		"X-C: 3\r\n" PLAIN},
	{"hop-by-hop fields go", 0,
		"Keep-Alive: timeout=5\r\nProxy-Connection: close\r\nTE: trailers\r\n"
		"Trailer: x\r\nProxy-Authorization: Basic x\r\nUpgrade: websocket\r\n",
		PLAIN},
	{"naming ours in Connection does not remove ours", ROOM,
		"Connection: x-forwarded-for, sluice-session, host, forwarded\r\n",
		"X-Forwarded-For: 192.0.2.7\r\nX-Forwarded-Proto: http\r\n"
		"X-Forwarded-Host: shop.example:8080\r\n"
		"Forwarded: for=192.0.2.7;host=\"shop.example:8080\";proto=http\r\n"
		"Sluice-Room: derby\r\nSluice-Session: 0123456789abcdef\r\n\r\n"},

	{"a client's forwarding fields are not believed", 0,
		"X-Forwarded-For: 10.9.9.9\r\nx-forwarded-proto: https\r\n"
		"X-FORWARDED-HOST: evil\r\nForwarded: for=10.9.9.9\r\nX-Forwarded-Port: 1\r\n",
		PLAIN},
	{"nor in the spelling that CGI cannot tell apart", 0,
		"X_Forwarded_For: 10.9.9.9\r\nSluice_Session: 1\r\nx-forwarded_proto: https\r\n"
		"Transfer_Encoding: chunked\r\nContent_Length: 5\r\n",
		PLAIN},
	{"other underscores stay", 0, "X_A: 1\r\n", "X_A: 1\r\n" PLAIN},
	{"all that is sluice's goes", 0,
		"Sluice-Room: x\r\nsluice-session: 1\r\nSluice-Ticket: t\r\nSluice-Pass: p\r\n"
		"Sluice-Command: end\r\n",
		PLAIN},
	{"room and session", ROOM, "",
		"X-Forwarded-For: 192.0.2.7\r\nX-Forwarded-Proto: http\r\n"
		"X-Forwarded-Host: shop.example:8080\r\n"
		"Forwarded: for=192.0.2.7;host=\"shop.example:8080\";proto=http\r\n"
		"Sluice-Room: derby\r\nSluice-Session: 0123456789abcdef\r\n\r\n"},
	{"over TLS", TLS, "",
		"X-Forwarded-For: 192.0.2.7\r\nX-Forwarded-Proto: https\r\n"
		"X-Forwarded-Host: shop.example:8080\r\n"
		"Forwarded: for=192.0.2.7;host=\"shop.example:8080\";proto=https\r\n\r\n"},
	{"from IPv6", IP6, "",
		"X-Forwarded-For: 2001:db8::7\r\nX-Forwarded-Proto: http\r\n"
		"X-Forwarded-Host: shop.example:8080\r\n"
		"Forwarded: for=\"[2001:db8::7]\";host=\"shop.example:8080\";proto=http\r\n\r\n"},

	{"a trusted proxy's are kept and continued", TRUSTED,
		"X-Forwarded-For: 198.51.100.1\r\nX-Forwarded-Proto: https\r\n"
		"X-Forwarded-Host: outer.example\r\nForwarded: for=198.51.100.1;proto=https\r\n"
		"X-Forwarded-Port: 443\r\n",
		"X-Forwarded-Proto: https\r\nX-Forwarded-Host: outer.example\r\n"
		"X-Forwarded-Port: 443\r\n"
		"X-Forwarded-For: 198.51.100.1, 192.0.2.7\r\n"
		"Forwarded: for=198.51.100.1;proto=https, "
		"for=192.0.2.7;host=\"shop.example:8080\";proto=http\r\n\r\n"},
	{"also several", TRUSTED, "X-Forwarded-For: 1.1.1.1\r\nX-Forwarded-For: 2.2.2.2\r\n",
		"X-Forwarded-For: 1.1.1.1, 2.2.2.2, 192.0.2.7\r\nX-Forwarded-Proto: http\r\n"
		"X-Forwarded-Host: shop.example:8080\r\n"
		"Forwarded: for=192.0.2.7;host=\"shop.example:8080\";proto=http\r\n\r\n"},
	{"an empty one is not continued", TRUSTED, "X-Forwarded-For:\r\n", PLAIN},
	{"a trusted proxy's word on sluice's fields is not taken", TRUSTED,
		"Sluice-Session: 1\r\nX_Forwarded_For: 1.1.1.1\r\n", PLAIN},

	{"sluice's cookies go, others stay byte for byte", 0,
		"Cookie: a=1;b = \"2\" ; sluice-t-derby=x; sluice-p-derby=\"y\"; c=3=4\r\n",
		"Cookie: a=1;b = \"2\" ; c=3=4\r\n" PLAIN},
	{"a Cookie of nothing but ours goes", 0,
		"Cookie: sluice-t-derby=x\r\nX: 1\r\nCookie: sluice-p-a=1; sluice-p-b=2\r\n",
		"X: 1\r\n" PLAIN},
	{"two Cookie fields stay two", 0, "Cookie: a=1\r\nCookie: sluice-t-x=1; b=2\r\n",
		"Cookie: a=1\r\nCookie: b=2\r\n" PLAIN},
	{"names that only look like ours stay", 0,
		"Cookie: Sluice-t-x=1; sluice-x=2; xsluice-t-x=3; sluice-t=4\r\n",
		"Cookie: Sluice-t-x=1; sluice-x=2; xsluice-t-x=3; sluice-t=4\r\n" PLAIN},

	{"a length is written anew", 0, "Content-Length: 007\r\n", "Content-Length: 7\r\n" PLAIN},
	{"a length of nothing too", 0, "Content-Length: 0\r\n", "Content-Length: 0\r\n" PLAIN},
	{"the longest length", 0, "Content-Length: 18446744073709551615\r\n",
		"Content-Length: 18446744073709551615\r\n" PLAIN},
	{"chunked", 0, "Transfer-Encoding: CHUNKED\r\n", "Transfer-Encoding: chunked\r\n" PLAIN},
	{"a client that waits for 100", 0, "Expect: 100-Continue\r\nContent-Length: 1\r\n",
		"Content-Length: 1\r\nExpect: 100-continue\r\n" PLAIN},
	{"without a body there is nothing to wait for", 0, "Expect: 100-continue\r\n", PLAIN},

	{"no pool", UNKEPT, "", "Connection: close\r\n" PLAIN},
	{"an upgrade", 0, "Connection: Upgrade\r\nUpgrade: websocket\r\nSec-WebSocket-Key: k\r\n",
		"Sec-WebSocket-Key: k\r\nUpgrade: websocket\r\nConnection: upgrade\r\n" PLAIN},
	{"an upgrade that Connection does not name is none", 0, "Upgrade: websocket\r\n", PLAIN},
	{"no upgrade with a body", 0,
		"Connection: upgrade\r\nUpgrade: websocket\r\nContent-Length: 1\r\n",
		"Content-Length: 1\r\n" PLAIN},
	{"no upgrade to what carries requests: h2c", 0,
		"Connection: Upgrade, HTTP2-Settings\r\nUpgrade: h2c\r\nHTTP2-Settings: AAMA\r\n",
		PLAIN},
	{"also behind others", 0, "Connection: upgrade\r\nUpgrade: websocket,\tH2C\r\n", PLAIN},
	{"also in a second field", 0,
		"Connection: upgrade\r\nUpgrade: websocket\r\nUpgrade: HTTP/2.0\r\n", PLAIN},
	{"nor TLS", 0, "Connection: upgrade\r\nUpgrade: TLS/1.0\r\n", PLAIN},
};

static size_t write_request(const char *text, unsigned facts, char *out, size_t out_bytes)
{
	static const uint8_t ip4[16] = {[10] = 0xff, 0xff, 192, 0, 2, 7};
	static const uint8_t ip6[16] = {0x20, 0x01, 0x0d, 0xb8, [15] = 7};
	struct http_head head;
	struct span in = {text, strlen(text)};
	assert_int_equal(http_request_parse(in, &limits, &head), HTTP_OK);
	struct stream client = {0};
	memcpy(client.peer.ip, facts & IP6 ? ip6 : ip4, 16);
	struct exchange_request request = {
		.client = &client,
		.head = &head,
		.host = SPAN("shop.example"),
		.room = facts & ROOM ? SPAN("derby") : SPAN(""),
		.session = facts & ROOM ? 0x0123456789abcdef : 0,
		.is_tls = facts & TLS,
		.peer_is_trusted = facts & TRUSTED,
	};
	return request_head_write(out, out_bytes, &request, !(facts & UNKEPT));
}

static void check(const char *name, const char *in, unsigned facts, const char *expected)
{
	char out[4096];
	size_t len = write_request(in, facts, out, sizeof(out));
	out[len] = 0;
	if (strcmp(out, expected) != 0)
		fail_msg("%s: expected\n%s\ngot\n%s", name, expected, out);
}

static void fields_are_passed_on(void **state)
{
	(void)state;
	for (size_t i = 0; i < sizeof(fields) / sizeof(fields[0]); i++) {
		char in[2048], expected[2048];
		snprintf(in, sizeof(in), "POST /a?b HTTP/1.1\r\nHost: shop.example:8080\r\n%s\r\n",
			fields[i].in);
		snprintf(expected, sizeof(expected),
			"POST /a?b HTTP/1.1\r\nHost: shop.example\r\n%s", fields[i].out);
		check(fields[i].name, in, fields[i].facts, expected);
	}
}

static const struct row lines[] = {
	{"the target as sent", 0, "GET //a/%2e%2E/../;x?%41&y HTTP/1.1\r\nHost: a\r\n\r\n",
		"GET //a/%2e%2E/../;x?%41&y HTTP/1.1\r\nHost: shop.example\r\n" ADDED("a")},
	{"a method of the client's own", 0, "MKCOL /x HTTP/1.1\r\nHost: a\r\n\r\n",
		"MKCOL /x HTTP/1.1\r\nHost: shop.example\r\n" ADDED("a")},
	{"absolute form", 0, "GET http://a:81/x?y HTTP/1.1\r\nHost: a:81\r\n\r\n",
		"GET /x?y HTTP/1.1\r\nHost: shop.example\r\n" ADDED("a:81")},
	{"absolute form without a path", 0, "GET http://a HTTP/1.1\r\nHost: a\r\n\r\n",
		"GET / HTTP/1.1\r\nHost: shop.example\r\n" ADDED("a")},
	{"OPTIONS *", 0, "OPTIONS * HTTP/1.1\r\nHost: a\r\n\r\n",
		"OPTIONS * HTTP/1.1\r\nHost: shop.example\r\n" ADDED("a")},
	{"HTTP/1.0 without Host", 0, "GET / HTTP/1.0\r\n\r\n",
		"GET / HTTP/1.1\r\nHost: shop.example\r\n" ADDED("shop.example")},
	{"HTTP/1.0 cannot wait for 100, nor upgrade", 0,
		"POST / HTTP/1.0\r\nExpect: 100-continue\r\nConnection: upgrade\r\n"
		"Upgrade: websocket\r\nContent-Length: 1\r\n\r\n",
		"POST / HTTP/1.1\r\nHost: shop.example\r\nContent-Length: 1\r\n" ADDED(
			"shop.example")},
};

static void lines_are_passed_on(void **state)
{
	(void)state;
	for (size_t i = 0; i < sizeof(lines) / sizeof(lines[0]); i++)
		check(lines[i].name, lines[i].in, lines[i].facts, lines[i].out);
}

// At every size: either the whole head, or 0 and no byte beyond the end.
static void a_head_fits_or_not(void **state)
{
	(void)state;
	const char *in = "GET / HTTP/1.1\r\nHost: a\r\nCookie: a=1; sluice-t-x=1\r\nB: c\r\n\r\n";
	char whole[1024];
	size_t len = write_request(in, ROOM, whole, sizeof(whole));
	assert_int_not_equal(len, 0);
	for (size_t room = 0; room <= len; room++) {
		char *out = malloc(room + 1); // guarded by the sanitizer, and by this byte
		assert_non_null(out);
		out[room] = 'G';
		size_t got = write_request(in, ROOM, out, room);
		assert_int_equal(out[room], 'G');
		assert_int_equal(got, room < len ? 0 : len);
		free(out);
	}
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(fields_are_passed_on),
		cmocka_unit_test(lines_are_passed_on),
		cmocka_unit_test(a_head_fits_or_not),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
