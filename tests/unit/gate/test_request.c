// Requests: where they go, what they may have, which of their tokens count.

#include "dataplane/gate/request.h"
#include "dataplane/http/accept.h"
#include "dataplane/http/head.h"
#include "tests/unit/gate/guard.h"
#include "tests/unit/gate/town.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>

#include <cmocka.h>

#define NOW 1764604288u

static char *guard, *scratch_guard;
static struct token_secrets secrets;
static struct mac_engine *engine;

// Parse a head and read it as a request; the head, and the scratch, end at a guard.
static void read_text(struct gate_request *request, const char *text)
{
	static const struct http_limits limits = {16384, 60000, 128};
	static struct http_head head;
	size_t len = strlen(text);
	struct span in = {guard_put(guard, text, len), len};
	if (http_request_parse(in, &limits, &head) != HTTP_OK)
		fail_msg("no head: %s", text);
	memset(request, 0xee, sizeof(*request)); // nothing may be left as it was
	gate_request_read(
		&town, &head, scratch_guard - GATE_REQUEST_SCRATCH_BYTES(head.target.len), request);
}

// The same from the lines' parts; `fields` are whole lines.
static void read_parts(
	struct gate_request *request, const char *method, const char *target, const char *fields)
{
	static char text[GUARD_BYTES];
	snprintf(text, sizeof(text), "%s %s HTTP/1.1\r\nHost: shop.example\r\n%s\r\n", method,
		target, fields);
	read_text(request, text);
}

static const struct {
	const char *name, *text;
	enum gate_route route;
	int room; // -1: none
} routes[] = {
	{"outside", "GET / HTTP/1.1\r\nHost: shop.example\r\n\r\n", GATE_ROUTE_UNGUARDED, -1},
	{"a room", "GET /derby HTTP/1.1\r\nHost: shop.example\r\n\r\n", GATE_ROUTE_GUARDED,
		TOWN_DERBY},
	{"a room, POST", "POST /derby HTTP/1.1\r\nHost: shop.example\r\n\r\n", GATE_ROUTE_GUARDED,
		TOWN_DERBY},
	{"a room of another site", "GET /derby HTTP/1.1\r\nHost: strict.example\r\n\r\n",
		GATE_ROUTE_UNGUARDED, -1},
	{"the inner room", "GET /derby/vip HTTP/1.1\r\nHost: shop.example\r\n\r\n",
		GATE_ROUTE_GUARDED, TOWN_VIP},
	{"a bad path", "GET /%zz HTTP/1.1\r\nHost: shop.example\r\n\r\n", GATE_ROUTE_BAD, -1},
	{"two rooms at once", "GET /derby/../x/y HTTP/1.1\r\nHost: shop.example\r\n\r\n",
		GATE_ROUTE_BAD, -1},
	{"an unknown host", "GET /derby HTTP/1.1\r\nHost: nobody.example\r\n\r\n",
		GATE_ROUTE_MISDIRECTED, -1},
	{"an unknown host, a bad path", "GET /%zz HTTP/1.1\r\nHost: nobody.example\r\n\r\n",
		GATE_ROUTE_MISDIRECTED, -1},
	{"no host, HTTP/1.0", "GET /derby HTTP/1.0\r\n\r\n", GATE_ROUTE_MISDIRECTED, -1},
	{"a host, HTTP/1.0", "GET /derby HTTP/1.0\r\nHost: shop.example\r\n\r\n",
		GATE_ROUTE_GUARDED, TOWN_DERBY},
	{"absolute", "GET http://shop.example/derby HTTP/1.1\r\nHost: shop.example\r\n\r\n",
		GATE_ROUTE_GUARDED, TOWN_DERBY},
	{"absolute, spelled differently",
		"GET http://SHOP.example:80/derby HTTP/1.1\r\nHost: shop.example.\r\n\r\n",
		GATE_ROUTE_GUARDED, TOWN_DERBY},
	{"absolute, without a path",
		"GET http://whole.example HTTP/1.1\r\nHost: whole.example\r\n\r\n",
		GATE_ROUTE_GUARDED, TOWN_ALL},
	{"absolute, another host",
		"GET http://strict.example/derby HTTP/1.1\r\nHost: shop.example\r\n\r\n",
		GATE_ROUTE_BAD, -1},
	{"absolute, another host of the same site",
		"GET http://127.0.0.1/derby HTTP/1.1\r\nHost: shop.example\r\n\r\n", GATE_ROUTE_BAD,
		-1},
	{"absolute, unknown in Host",
		"GET http://shop.example/derby HTTP/1.1\r\nHost: nobody.example\r\n\r\n",
		GATE_ROUTE_BAD, -1},
	{"absolute, HTTP/1.0 without Host", "GET http://shop.example/derby HTTP/1.0\r\n\r\n",
		GATE_ROUTE_GUARDED, TOWN_DERBY},
	{"absolute, ours",
		"GET http://shop.example/.sluice/derby/status HTTP/1.1\r\nHost: "
		"shop.example\r\n\r\n",
		GATE_ROUTE_STATUS, TOWN_DERBY},
	{"CONNECT", "CONNECT shop.example:80 HTTP/1.1\r\nHost: shop.example\r\n\r\n",
		GATE_ROUTE_BAD, -1},
	{"OPTIONS *", "OPTIONS * HTTP/1.1\r\nHost: shop.example\r\n\r\n", GATE_ROUTE_UNGUARDED, -1},
	{"OPTIONS * where the root is guarded", "OPTIONS * HTTP/1.1\r\nHost: whole.example\r\n\r\n",
		GATE_ROUTE_GUARDED, TOWN_ALL},

	{"status", "GET /.sluice/derby/status HTTP/1.1\r\nHost: shop.example\r\n\r\n",
		GATE_ROUTE_STATUS, TOWN_DERBY},
	{"status, POST", "POST /.sluice/derby/status HTTP/1.1\r\nHost: shop.example\r\n\r\n",
		GATE_ROUTE_STATUS, TOWN_DERBY},
	{"status with a query",
		"GET /.sluice/derby/status?x HTTP/1.1\r\nHost: shop.example\r\n\r\n",
		GATE_ROUTE_STATUS, TOWN_DERBY},
	{"leave", "POST /.sluice/derby/leave HTTP/1.1\r\nHost: shop.example\r\n\r\n",
		GATE_ROUTE_LEAVE, TOWN_DERBY},
	{"draw", "GET /.sluice/derby/draw HTTP/1.1\r\nHost: shop.example\r\n\r\n", GATE_ROUTE_DRAW,
		TOWN_DERBY},
	{"draw/keys", "GET /.sluice/derby/draw/keys HTTP/1.1\r\nHost: shop.example\r\n\r\n",
		GATE_ROUTE_DRAW_KEYS, TOWN_DERBY},
	{"status of the inner room",
		"GET /.sluice/vip/status HTTP/1.1\r\nHost: shop.example\r\n\r\n", GATE_ROUTE_STATUS,
		TOWN_VIP},
	{"status of an unknown room",
		"GET /.sluice/nix/status HTTP/1.1\r\nHost: shop.example\r\n\r\n",
		GATE_ROUTE_UNKNOWN, -1},
	{"status of another site's room",
		"GET /.sluice/exact/status HTTP/1.1\r\nHost: shop.example\r\n\r\n",
		GATE_ROUTE_UNKNOWN, -1},
	{"room names have case", "GET /.sluice/Derby/status HTTP/1.1\r\nHost: shop.example\r\n\r\n",
		GATE_ROUTE_UNKNOWN, -1},
	{"an unknown endpoint", "GET /.sluice/derby/nix HTTP/1.1\r\nHost: shop.example\r\n\r\n",
		GATE_ROUTE_UNKNOWN, -1},
	{"a room without an endpoint", "GET /.sluice/derby HTTP/1.1\r\nHost: shop.example\r\n\r\n",
		GATE_ROUTE_UNKNOWN, -1},
	{"a room with an empty one", "GET /.sluice/derby/ HTTP/1.1\r\nHost: shop.example\r\n\r\n",
		GATE_ROUTE_UNKNOWN, -1},
	{"an endpoint with a slash",
		"GET /.sluice/derby/status/ HTTP/1.1\r\nHost: shop.example\r\n\r\n",
		GATE_ROUTE_UNKNOWN, -1},
	{"ours and nothing", "GET /.sluice/ HTTP/1.1\r\nHost: shop.example\r\n\r\n",
		GATE_ROUTE_UNKNOWN, -1},
	{"ours in one reading only", "GET /.sluice/.. HTTP/1.1\r\nHost: shop.example\r\n\r\n",
		GATE_ROUTE_UNKNOWN, -1},
	{"health", "GET /.sluice/health HTTP/1.1\r\nHost: shop.example\r\n\r\n", GATE_ROUTE_HEALTH,
		-1},
	{"health on an unknown host",
		"GET /.sluice/health HTTP/1.1\r\nHost: nobody.example\r\n\r\n", GATE_ROUTE_HEALTH,
		-1},
	{"health without a host", "GET /.sluice/health HTTP/1.0\r\n\r\n", GATE_ROUTE_HEALTH, -1},
	{"health of a room", "GET /.sluice/health/x HTTP/1.1\r\nHost: shop.example\r\n\r\n",
		GATE_ROUTE_UNKNOWN, -1},
	{"another endpoint on an unknown host",
		"GET /.sluice/derby/status HTTP/1.1\r\nHost: nobody.example\r\n\r\n",
		GATE_ROUTE_MISDIRECTED, -1},
};

static void requests_have_a_route(void **state)
{
	(void)state;
	for (size_t i = 0; i < sizeof(routes) / sizeof(routes[0]); i++) {
		struct gate_request request;
		read_text(&request, routes[i].text);
		if (request.route != routes[i].route)
			fail_msg("%s: route %d", routes[i].name, request.route);
		if (request.room != (routes[i].room < 0 ? NULL : &town_rooms[routes[i].room]))
			fail_msg("%s: room", routes[i].name);
		if (!request.site && request.route != GATE_ROUTE_MISDIRECTED &&
			request.route != GATE_ROUTE_BAD && request.route != GATE_ROUTE_HEALTH)
			fail_msg("%s: site", routes[i].name);
	}
}

static void the_origin_gets_the_host_that_was_matched(void **state)
{
	(void)state;
	struct gate_request request;
	read_text(&request, "GET / HTTP/1.1\r\nHost: A.Shop.Example.:8080\r\n\r\n");
	assert_true(span_is_equal(request.host, SPAN("a.shop.example")));
	assert_ptr_equal(request.site, &town_sites[TOWN_SHOP]);
}

// Who draws, by contract section 2.
static const struct {
	const char *name, *method, *fields;
	bool draws;
} visits[] = {
	{"(a) navigate", "GET", "Sec-Fetch-Mode: navigate\r\n", true},
	{"(a) navigate, any Accept", "GET", "Sec-Fetch-Mode: navigate\r\nAccept: image/png\r\n",
		true},
	{"(a) navigate from a page", "GET",
		"Sec-Fetch-Mode: navigate\r\nReferer: http://shop.example/\r\n", true},
	{"(a) HEAD", "HEAD", "Sec-Fetch-Mode: navigate\r\n", false},
	{"(a) POST", "POST", "Sec-Fetch-Mode: navigate\r\n", false},
	{"(a) a method like GET", "get", "Sec-Fetch-Mode: navigate\r\n", false},
	{"(b) cors, JSON", "GET", "Sec-Fetch-Mode: cors\r\nAccept: application/json\r\n", true},
	{"(b) cors, JSON above HTML", "GET",
		"Sec-Fetch-Mode: cors\r\nAccept: text/html;q=0.5, application/json\r\n", true},
	{"(b) cors, JSON and anything", "GET",
		"Sec-Fetch-Mode: cors\r\nAccept: application/json, */*\r\n", true},
	{"(b) same-origin, JSON", "GET",
		"Sec-Fetch-Mode: same-origin\r\nAccept: application/json\r\n", true},
	{"(b) cors, anything", "GET", "Sec-Fetch-Mode: cors\r\nAccept: */*\r\n", false},
	{"(b) cors, HTML", "GET", "Sec-Fetch-Mode: cors\r\nAccept: text/html\r\n", false},
	{"(b) cors, both alike", "GET",
		"Sec-Fetch-Mode: cors\r\nAccept: text/html, application/json\r\n", false},
	{"(b) cors, nothing said", "GET", "Sec-Fetch-Mode: cors\r\n", false},
	{"(b) no-cors, JSON", "GET", "Sec-Fetch-Mode: no-cors\r\nAccept: application/json\r\n",
		false},
	{"(b) websocket", "GET", "Sec-Fetch-Mode: websocket\r\nAccept: application/json\r\n",
		false},
	{"(b) POST", "POST", "Sec-Fetch-Mode: cors\r\nAccept: application/json\r\n", false},
	{"(c) HTML", "GET", "Accept: text/html\r\n", true},
	{"(c) HTML from a page", "GET", "Accept: text/html\r\nReferer: http://a/\r\n", true},
	{"(c) HTML among others", "GET",
		"Accept: text/html,application/xhtml+xml,application/xml;q=0.9,*/*;q=0.8\r\n",
		true},
	{"(c) JSON", "GET", "Accept: application/json\r\n", true},
	{"(c) anything", "GET", "Accept: */*\r\n", true},
	{"(c) anything, from a page", "GET", "Accept: */*\r\nReferer: http://a/\r\n", false},
	{"(c) anything and more", "GET", "Accept: image/png, */*\r\n", false},
	{"(c) anything with a weight", "GET", "Accept: */*;q=0.8\r\n", false},
	{"(c) nothing said", "GET", "", true},
	{"(c) nothing said, from a page", "GET", "Referer: http://a/\r\n", false},
	{"(c) a picture", "GET", "Accept: image/avif,image/webp\r\n", false},
	{"(c) HEAD", "HEAD", "Accept: text/html\r\n", false},
	{"(c) POST", "POST", "Accept: text/html\r\n", false},
	{"(c) OPTIONS", "OPTIONS", "Accept: text/html\r\n", false},
	{"(c) some Sec-Fetch-Site", "GET", "Accept: text/html\r\nSec-Fetch-Site: none\r\n", false},
	{"(c) some Sec-Fetch-Dest", "GET", "Accept: text/html\r\nSec-Fetch-Dest: image\r\n", false},
	{"(c) some Sec-Fetch-User", "GET", "Accept: text/html\r\nsec-FETCH-user: ?1\r\n", false},
	{"(c) not Sec-Fetch", "GET", "Accept: text/html\r\nSec-Fetched: 1\r\nSec-GPC: 1\r\n", true},
	{"prefetch", "GET", "Sec-Fetch-Mode: navigate\r\nSec-Purpose: prefetch\r\n", false},
	{"prerender", "GET", "Sec-Fetch-Mode: navigate\r\nSec-Purpose: prefetch;prerender\r\n",
		false},
	{"prefetch, the older field", "GET", "Sec-Fetch-Mode: navigate\r\nPurpose: Prefetch\r\n",
		false},
	{"prefetch in a second field", "GET",
		"Accept: text/html\r\nPurpose: x\r\nPurpose: prefetch\r\n", false},
	{"another purpose", "GET", "Sec-Fetch-Mode: navigate\r\nPurpose: prefetching\r\n", true},
};

static void some_draw_and_some_do_not(void **state)
{
	(void)state;
	for (size_t i = 0; i < sizeof(visits) / sizeof(visits[0]); i++) {
		struct gate_request request;
		read_parts(&request, visits[i].method, "/derby", visits[i].fields);
		if (request.draws != visits[i].draws)
			fail_msg("%s", visits[i].name);
		if (request.is_prefetch && request.draws)
			fail_msg("%s: prefetch", visits[i].name);
	}
}

static void wishes_are_read(void **state)
{
	(void)state;
	struct gate_request request;
	read_parts(&request, "GET", "/derby",
		"Accept: application/json\r\nAccept-Language: ja\r\nAccept-Encoding: gzip, br\r\n");
	assert_true(request.wants_json);
	assert_int_equal(request.language, ACCEPT_JA);
	assert_int_equal(request.encoding, ACCEPT_BR);
	assert_int_equal(request.method, HTTP_GET);
	assert_false(request.has_body);
	read_parts(&request, "GET", "/derby", "");
	assert_false(request.wants_json);
	assert_int_equal(request.language, ACCEPT_EN);
	assert_int_equal(request.encoding, ACCEPT_IDENTITY);
	read_parts(&request, "POST", "/derby", "Content-Length: 1\r\n");
	assert_true(request.has_body);
	read_parts(&request, "POST", "/derby", "Content-Length: 0\r\n");
	assert_false(request.has_body);
	read_parts(&request, "POST", "/derby", "Transfer-Encoding: chunked\r\n");
	assert_true(request.has_body);
}

static const struct {
	const char *name, *method, *fields;
	bool is_preflight;
} preflights[] = {
	{"as browsers send it", "OPTIONS",
		"Origin: http://a\r\nAccess-Control-Request-Method: PUT\r\n", true},
	{"with an empty body", "OPTIONS",
		"Origin: http://a\r\nAccess-Control-Request-Method: PUT\r\nContent-Length: 0\r\n",
		true},
	{"with a body", "OPTIONS",
		"Origin: http://a\r\nAccess-Control-Request-Method: PUT\r\nContent-Length: 1\r\n",
		false},
	{"with chunks", "OPTIONS",
		"Origin: http://a\r\nAccess-Control-Request-Method: PUT\r\n"
		"Transfer-Encoding: chunked\r\n",
		false},
	{"without Origin", "OPTIONS", "Access-Control-Request-Method: PUT\r\n", false},
	{"without a method", "OPTIONS", "Origin: http://a\r\n", false},
	{"GET", "GET", "Origin: http://a\r\nAccess-Control-Request-Method: PUT\r\n", false},
};

static void preflights_are_told(void **state)
{
	(void)state;
	for (size_t i = 0; i < sizeof(preflights) / sizeof(preflights[0]); i++) {
		struct gate_request request;
		read_parts(&request, preflights[i].method, "/derby", preflights[i].fields);
		if (request.is_preflight != preflights[i].is_preflight)
			fail_msg("%s", preflights[i].name);
	}
}

static const struct {
	const char *name, *fields;
	bool is_cross_site;
} senders[] = {
	{"no browser", "", false},
	{"the same origin", "Sec-Fetch-Site: same-origin\r\nOrigin: https://shop.example\r\n",
		false},
	{"the same site", "Sec-Fetch-Site: same-site\r\n", false},
	{"the visitor", "Sec-Fetch-Site: none\r\n", false},
	{"another site", "Sec-Fetch-Site: cross-site\r\n", true},
	{"something new", "Sec-Fetch-Site: neighbour\r\n", true},
	{"another site at second sight", "Sec-Fetch-Site: none\r\nSec-Fetch-Site: cross-site\r\n",
		true},
	{"an origin", "Origin: http://shop.example\r\n", false},
	{"an origin with a port", "Origin: http://SHOP.example:8080\r\n", false},
	{"another origin", "Origin: http://evil.example\r\n", true},
	{"another origin of a like name", "Origin: http://shop.example.evil.example\r\n", true},
	{"another origin with a name before", "Origin: http://shop.example@evil.example\r\n", true},
	{"a subdomain", "Origin: http://a.shop.example\r\n", true},
	{"an opaque origin", "Origin: null\r\n", true},
	{"an empty origin", "Origin: \r\n", true},
	{"no host", "Origin: http://\r\n", true},
	{"no scheme", "Origin: shop.example\r\n", true},
	{"what one says the other does not",
		"Sec-Fetch-Site: same-origin\r\nOrigin: http://evil.example\r\n", true},
	{"two origins", "Origin: http://shop.example\r\nOrigin: http://evil.example\r\n", true},
};

static void leaving_is_for_this_site(void **state)
{
	(void)state;
	for (size_t i = 0; i < sizeof(senders) / sizeof(senders[0]); i++) {
		struct gate_request request;
		read_parts(&request, "POST", "/.sluice/derby/leave", senders[i].fields);
		assert_int_equal(request.route, GATE_ROUTE_LEAVE);
		if (request.is_cross_site != senders[i].is_cross_site)
			fail_msg("%s", senders[i].name);
	}
}

// Tokens. A token's text, signed with the current secret, in one of a few buffers.
static const char *signed_text(struct token token)
{
	static char texts[32][TOKEN_TEXT_BYTES + 1];
	static unsigned next;
	char *text = texts[next++ % 32];
	token_sign(&secrets, &token, text);
	text[TOKEN_TEXT_BYTES] = 0;
	return text;
}

static const char *ticket(uint64_t key)
{
	return signed_text((struct token){
		.kind = TOKEN_TICKET, .line_id = 13, .key = key, .visitor = 5, .issued = NOW});
}

static const char *pass(uint64_t session, uint32_t expires)
{
	return signed_text((struct token){.kind = TOKEN_PASS,
		.line_id = 13,
		.key = session,
		.visitor = 5,
		.issued = NOW - 60,
		.expires = expires});
}

// Read, verify and settle. Returns how many MACs were computed.
static uint32_t settle(struct gate_request *request, struct gate_remembered *remembered,
	const char *method, const char *target, const char *format, ...)
{
	static char fields[8192];
	struct mac_job jobs[CARRY_TOKENS_MAX];
	va_list args;
	va_start(args, format);
	vsnprintf(fields, sizeof(fields), format, args);
	va_end(args);
	read_parts(request, method, target, fields);
	uint32_t count = gate_request_tokens(request, &secrets, remembered, NOW, jobs);
	mac_burst(engine, jobs, count);
	gate_request_settle(request, remembered, NOW);
	return count;
}

static uint64_t key_of(const struct gate_token *token)
{
	return token ? token->token.key : 0;
}

static void the_smallest_ticket_counts(void **state)
{
	(void)state;
	struct gate_request request;
	settle(&request, NULL, "GET", "/derby", "");
	assert_null(request.ticket);
	assert_null(request.pass);
	assert_null(request.pass_over);
	settle(&request, NULL, "GET", "/derby", "Cookie: sluice-t-derby=%s\r\n", ticket(7));
	assert_int_equal(key_of(request.ticket), 7);
	settle(&request, NULL, "GET", "/derby",
		"Cookie: sluice-t-derby=%s; sluice-t-derby=\"%s\"; sluice-t-derby=%s\r\n",
		ticket(9), ticket(7), ticket(8));
	assert_int_equal(key_of(request.ticket), 7);
	settle(&request, NULL, "GET", "/derby",
		"Cookie: sluice-t-derby=%s\r\nSluice-Ticket: %s\r\n", ticket(9), ticket(3));
	assert_int_equal(key_of(request.ticket), 3);
	assert_int_equal(request.ticket->carried.carrier, CARRY_HEADER);
}

static void the_latest_pass_counts(void **state)
{
	(void)state;
	struct gate_request request;
	settle(&request, NULL, "GET", "/derby",
		"Cookie: sluice-p-derby=%s; sluice-p-derby=%s\r\nSluice-Pass: %s\r\n",
		pass(1, NOW + 1), pass(2, NOW + 3), pass(3, NOW + 2));
	assert_int_equal(key_of(request.pass), 2);
	assert_null(request.pass_over);
	settle(&request, NULL, "GET", "/derby", "Cookie: sluice-p-derby=%s; sluice-p-derby=%s\r\n",
		pass(1, NOW), pass(2, NOW - 1));
	assert_null(request.pass);
	assert_int_equal(key_of(request.pass_over), 1);
}

// One cookie, and whether it counts.
static void what_is_wrong_counts_as_none(void **state)
{
	(void)state;
	const struct token good = {
		.kind = TOKEN_TICKET, .line_id = 13, .key = 1, .visitor = 5, .issued = NOW};
	struct token other_room = good, ahead = good, too_far_ahead = good;
	other_room.line_id = 15;
	ahead.issued = NOW + TOKEN_AHEAD_MAX_S;
	too_far_ahead.issued = NOW + TOKEN_AHEAD_MAX_S + 1;
	char truncated[65], flipped[65], old[65], absent[65];
	strcpy(truncated, signed_text(good));
	truncated[63] = 0;
	strcpy(flipped, signed_text(good));
	flipped[63] = flipped[63] == 'A' ? 'B' : 'A';
	secrets.current = 2;
	strcpy(old, signed_text(good));
	secrets.state[2] = TOKEN_SECRET_REVOKED;
	secrets.current = 3;
	strcpy(absent, signed_text(good));
	secrets.state[3] = TOKEN_SECRET_ABSENT;
	secrets.current = 1;
	const struct {
		const char *name, *cookie, *value;
		uint32_t macs;
		bool counts;
	} cases[] = {
		{"good", "sluice-t-derby", signed_text(good), 1, true},
		{"ten seconds ahead", "sluice-t-derby", signed_text(ahead), 1, true},
		{"eleven seconds ahead", "sluice-t-derby", signed_text(too_far_ahead), 0, false},
		{"another room's", "sluice-t-derby", signed_text(other_room), 0, false},
		{"a ticket for a pass", "sluice-p-derby", signed_text(good), 0, false},
		{"a pass for a ticket", "sluice-t-derby", pass(1, NOW + 1), 0, false},
		{"truncated", "sluice-t-derby", truncated, 0, false},
		{"flipped", "sluice-t-derby", flipped, 1, false},
		{"of a revoked secret", "sluice-t-derby", old, 0, false},
		{"of an unknown secret", "sluice-t-derby", absent, 0, false},
		{"not a token", "sluice-t-derby", "x", 0, false},
		{"empty", "sluice-t-derby", "", 0, false},
	};
	for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
		struct gate_request request;
		uint32_t macs = settle(&request, NULL, "GET", "/derby", "Cookie: %s=%s\r\n",
			cases[i].cookie, cases[i].value);
		if (macs != cases[i].macs)
			fail_msg("%s: %u MACs", cases[i].name, macs);
		if ((request.ticket || request.pass) != cases[i].counts)
			fail_msg("%s", cases[i].name);
	}
	secrets.state[2] = secrets.state[3] = TOKEN_SECRET_VALID;
}

// Each of the 512 bits matters.
static void every_bit_is_signed(void **state)
{
	(void)state;
	const char *letters = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789-_";
	char text[65];
	for (int bit = 0; bit < 384; bit++) {
		struct gate_request request;
		strcpy(text, ticket(1));
		const char *letter = strchr(letters, text[bit / 6]);
		text[bit / 6] = letters[(letter - letters) ^ 1 << bit % 6];
		settle(&request, NULL, "GET", "/derby", "Cookie: sluice-t-derby=%s\r\n", text);
		assert_null(request.ticket);
	}
}

// The query's ticket is taken unless the visitor has a smaller one.
static void the_query_is_taken(void **state)
{
	(void)state;
	const struct {
		const char *name, *method;
		uint64_t query, cookie; // keys; 0: none
		bool takes;
	} cases[] = {
		{"alone", "GET", 5, 0, true},
		{"smaller than the cookie", "GET", 5, 6, true},
		{"larger than the cookie", "GET", 5, 4, false},
		{"the same as the cookie", "GET", 5, 5, true},
		{"not there", "GET", 0, 5, false},
		{"not a GET", "POST", 5, 0, false},
	};
	for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
		struct gate_request request;
		char target[256] = "/derby?a=b";
		if (cases[i].query)
			sprintf(target + strlen(target), "&sluice_ticket=%s",
				ticket(cases[i].query));
		settle(&request, NULL, cases[i].method, target, "Cookie: sluice-t-derby=%s\r\n",
			cases[i].cookie ? ticket(cases[i].cookie) : "");
		if (request.takes_query != cases[i].takes)
			fail_msg("%s", cases[i].name);
		if (cases[i].query)
			assert_true(span_is_equal(request.redirect, SPAN("/derby?a=b")));
		else
			assert_null(request.redirect.at);
	}
	struct gate_request request;
	settle(&request, NULL, "GET", "/derby?sluice_ticket=x", "");
	assert_false(request.takes_query);
}

// A poller pays for the MAC once, and what can change is still checked.
static void connections_remember(void **state)
{
	(void)state;
	struct gate_remembered remembered = {0};
	struct gate_request request;
	char fields[512];
	sprintf(fields, "Cookie: sluice-t-derby=%s; sluice-p-derby=%s\r\n", ticket(7),
		pass(1, NOW + 60));
	assert_int_equal(settle(&request, &remembered, "GET", "/derby", "%s", fields), 2);
	assert_int_equal(settle(&request, &remembered, "GET", "/derby", "%s", fields), 0);
	assert_int_equal(key_of(request.ticket), 7);
	assert_int_equal(key_of(request.pass), 1);
	assert_int_equal(settle(&request, NULL, "GET", "/derby", "%s", fields), 2);

	// Another room does not take it, nor another cookie name.
	settle(&request, &remembered, "GET", "/derby/vip", "Cookie: sluice-t-vip=%s\r\n",
		ticket(7));
	assert_null(request.ticket);
	settle(&request, &remembered, "GET", "/derby", "Cookie: sluice-p-derby=%s\r\n", ticket(7));
	assert_null(request.pass);

	// One bit of the tag is another token.
	fields[strlen("Cookie: sluice-t-derby=") + 63] ^= 1;
	settle(&request, &remembered, "GET", "/derby", "%s", fields);
	assert_null(request.ticket);
	fields[strlen("Cookie: sluice-t-derby=") + 63] ^= 1;

	// It runs out.
	struct mac_job jobs[CARRY_TOKENS_MAX];
	read_parts(&request, "GET", "/derby", fields);
	assert_int_equal(gate_request_tokens(&request, &secrets, &remembered, NOW + 60, jobs), 0);
	gate_request_settle(&request, &remembered, NOW + 60);
	assert_null(request.pass);
	assert_non_null(request.pass_over);
	assert_non_null(request.ticket);

	// Its secret is revoked.
	secrets.state[1] = TOKEN_SECRET_REVOKED;
	assert_int_equal(settle(&request, &remembered, "GET", "/derby", "%s", fields), 0);
	assert_null(request.ticket);
	assert_null(request.pass);
	secrets.state[1] = TOKEN_SECRET_VALID;

	// A newer one takes its place.
	assert_int_equal(settle(&request, &remembered, "GET", "/derby",
				 "Cookie: sluice-t-derby=%s\r\n", ticket(8)),
		1);
	assert_int_equal(settle(&request, &remembered, "GET", "/derby", "%s", fields), 1);
}

// What was not valid is not remembered.
static void only_valid_tokens_are_remembered(void **state)
{
	(void)state;
	struct gate_remembered remembered = {0}, nothing = {0};
	struct gate_request request;
	char text[65];
	strcpy(text, ticket(7));
	text[63] = text[63] == 'A' ? 'B' : 'A';
	settle(&request, &remembered, "GET", "/derby", "Cookie: sluice-t-derby=%s\r\n", text);
	assert_memory_equal(&remembered, &nothing, sizeof(nothing));
}

static void a_burst_of_requests_is_verified_together(void **state)
{
	(void)state;
	enum { REQUESTS = 40 };
	static struct gate_request requests[REQUESTS];
	struct mac_job jobs[REQUESTS * CARRY_TOKENS_MAX];
	static char texts[REQUESTS][1024];
	char *scratch = malloc(REQUESTS * GATE_REQUEST_SCRATCH_BYTES(16));
	static struct http_head head;
	static const struct http_limits limits = {1024, 1024, 16};
	uint32_t count = 0;
	for (int i = 0; i < REQUESTS; i++) {
		char value[65];
		strcpy(value, ticket(i + 1));
		value[20] ^= i % 3 == 0;
		int len = snprintf(texts[i], sizeof(texts[i]),
			"GET /derby HTTP/1.1\r\nHost: shop.example\r\n"
			"Cookie: sluice-t-derby=%s; sluice-p-derby=%s\r\n\r\n",
			value, pass(i, NOW + i));
		assert_int_equal(
			http_request_parse((struct span){texts[i], len}, &limits, &head), HTTP_OK);
		gate_request_read(
			&town, &head, scratch + i * GATE_REQUEST_SCRATCH_BYTES(16), &requests[i]);
		count += gate_request_tokens(&requests[i], &secrets, NULL, NOW, jobs + count);
	}
	mac_burst(engine, jobs, count);
	for (int i = 0; i < REQUESTS; i++) {
		gate_request_settle(&requests[i], NULL, NOW);
		assert_int_equal(key_of(requests[i].ticket), i % 3 == 0 ? 0 : i + 1);
		assert_true((requests[i].pass != NULL) == (i > 0));
	}
	free(scratch);
}

int main(void)
{
	static const uint8_t secret[3][32] = {"first", "second", "third"};
	for (int i = 0; i < 3; i++)
		token_secrets_add(&secrets, i + 1, secret[i], sizeof(secret[i]));
	secrets.current = 1;
	guard = guard_make();
	scratch_guard = guard_make();
	if (mac_create(&engine) < 0)
		return 1;
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(requests_have_a_route),
		cmocka_unit_test(the_origin_gets_the_host_that_was_matched),
		cmocka_unit_test(some_draw_and_some_do_not),
		cmocka_unit_test(wishes_are_read),
		cmocka_unit_test(preflights_are_told),
		cmocka_unit_test(leaving_is_for_this_site),
		cmocka_unit_test(the_smallest_ticket_counts),
		cmocka_unit_test(the_latest_pass_counts),
		cmocka_unit_test(what_is_wrong_counts_as_none),
		cmocka_unit_test(every_bit_is_signed),
		cmocka_unit_test(the_query_is_taken),
		cmocka_unit_test(connections_remember),
		cmocka_unit_test(only_valid_tokens_are_remembered),
		cmocka_unit_test(a_burst_of_requests_is_verified_together),
	};
	int failed = cmocka_run_group_tests(tests, NULL, NULL);
	mac_destroy(engine);
	return failed;
}
