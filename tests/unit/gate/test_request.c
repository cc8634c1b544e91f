// Requests: where they go, and what they may have.

#include "tests/unit/gate/reading.h"

#include "dataplane/gate/page.h"
#include "dataplane/http/accept.h"

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
	{"OPTIONS *", "OPTIONS * HTTP/1.1\r\nHost: shop.example\r\n\r\n", GATE_ROUTE_SERVER, -1},
	{"OPTIONS * where the root is guarded", "OPTIONS * HTTP/1.1\r\nHost: whole.example\r\n\r\n",
		GATE_ROUTE_SERVER, -1},
	{"OPTIONS * as absolute form",
		"OPTIONS http://whole.example HTTP/1.1\r\nHost: whole.example\r\n\r\n",
		GATE_ROUTE_SERVER, -1},
	{"OPTIONS *, a pre-flight by its fields",
		"OPTIONS * HTTP/1.1\r\nHost: whole.example\r\nOrigin: https://a.example\r\n"
		"Access-Control-Request-Method: POST\r\n\r\n",
		GATE_ROUTE_SERVER, -1},
	{"OPTIONS * on an unknown host", "OPTIONS * HTTP/1.1\r\nHost: nobody.example\r\n\r\n",
		GATE_ROUTE_MISDIRECTED, -1},
	{"OPTIONS of the root is no `*`",
		"OPTIONS http://whole.example/ HTTP/1.1\r\nHost: whole.example\r\n\r\n",
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
		reading_text(&request, routes[i].text);
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
	reading_text(&request, "GET / HTTP/1.1\r\nHost: A.Shop.Example.:8080\r\n\r\n");
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
		reading_parts(&request, visits[i].method, "/derby", visits[i].fields);
		if (request.draws != visits[i].draws)
			fail_msg("%s", visits[i].name);
		if (request.is_prefetch && request.draws)
			fail_msg("%s: prefetch", visits[i].name);
	}
}

static void wishes_are_read(void **state)
{
	(void)state;
	static const struct page_set pages = {
		.language_count = 2, .languages = {{"en", 2}, {"ja", 2}}};
	town_rooms[TOWN_DERBY].pages = &pages;
	struct gate_request request;
	reading_parts(&request, "GET", "/derby",
		"Accept: application/json\r\nAccept-Language: ja\r\nAccept-Encoding: gzip, br\r\n");
	assert_true(request.wants_json);
	assert_int_equal(request.language, 1);
	assert_int_equal(request.encoding, ACCEPT_BR);
	assert_int_equal(request.method, HTTP_GET);
	assert_false(request.has_body);
	reading_parts(&request, "GET", "/derby", "");
	assert_false(request.wants_json);
	assert_int_equal(request.language, 0);
	assert_int_equal(request.encoding, ACCEPT_IDENTITY);
	reading_parts(&request, "POST", "/derby", "Content-Length: 1\r\n");
	assert_true(request.has_body);
	reading_parts(&request, "POST", "/derby", "Content-Length: 0\r\n");
	assert_false(request.has_body);
	reading_parts(&request, "POST", "/derby", "Transfer-Encoding: chunked\r\n");
	assert_true(request.has_body);
}

static void other_cookies_are_told(void **state)
{
	(void)state;
	struct gate_request request;
	reading_parts(&request, "GET", "/derby", "Cookie: sluice-t-derby=x; a=b\r\n");
	assert_false(request.has_other_cookies);
	reading_parts(&request, "GET", "/derby", "Cookie: sluice-t-derby=x; sluice-t-vip=b\r\n");
	assert_true(request.has_other_cookies);
	reading_parts(&request, "GET", "/", "Cookie: sluice-t-derby=x\r\n");
	assert_true(request.has_other_cookies);
	reading_parts(&request, "GET", "/", "");
	assert_false(request.has_other_cookies);
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
		reading_parts(&request, preflights[i].method, "/derby", preflights[i].fields);
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
		reading_parts(&request, "POST", "/.sluice/derby/leave", senders[i].fields);
		assert_int_equal(request.route, GATE_ROUTE_LEAVE);
		if (request.is_cross_site != senders[i].is_cross_site)
			fail_msg("%s", senders[i].name);
	}
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(requests_have_a_route),
		cmocka_unit_test(the_origin_gets_the_host_that_was_matched),
		cmocka_unit_test(some_draw_and_some_do_not),
		cmocka_unit_test(wishes_are_read),
		cmocka_unit_test(other_cookies_are_told),
		cmocka_unit_test(preflights_are_told),
		cmocka_unit_test(leaving_is_for_this_site),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
