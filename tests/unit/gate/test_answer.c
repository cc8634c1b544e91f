// Answers as bytes: some to the byte, all through our own strict parser.

#include "tests/unit/gate/answer_scene.h"

// --- to the byte

static void a_poll(void **state)
{
	(void)state;
	request.route = GATE_ROUTE_STATUS;
	decision.answer = DECIDE_STATUS;
	render();
	out[out_len] = 0;
	assert_string_equal(out,
		"HTTP/1.1 200 OK\r\n"
		"Date: " DATE "\r\n"
		"Cache-Control: no-store\r\n"
		"Retry-After: 5\r\n"
		"Content-Type: application/json\r\n"
		"Content-Length: 184\r\n\r\n"
		"{\"room\":\"derby\",\"state\":\"waiting\",\"position\":47382,\"ahead\":46110,"
		"\"exact\":true,\"eta\":{\"low\":1200,\"high\":1500},\"poll_after\":5,"
		"\"opens\":null,\"expires\":null,\"now\":1800000000,\"message\":null}");
}

static void a_poll_of_nobody(void **state)
{
	(void)state;
	request.route = GATE_ROUTE_STATUS;
	decision.answer = DECIDE_UNKNOWN;
	render();
	out[out_len] = 0;
	assert_string_equal(out, "HTTP/1.1 401 Unauthorized\r\n"
				 "Date: " DATE "\r\n"
				 "Cache-Control: no-store\r\n"
				 "WWW-Authenticate: Sluice\r\n"
				 "Content-Type: application/json\r\n"
				 "Content-Length: 19\r\n\r\n"
				 "{\"state\":\"unknown\"}");
}

static void a_place_given_back(void **state)
{
	(void)state;
	request.route = GATE_ROUTE_LEAVE;
	decision.answer = DECIDE_LEFT;
	decision.clears_ticket = true;
	frame.close = true;
	render();
	out[out_len] = 0;
	assert_string_equal(out,
		"HTTP/1.1 204 No Content\r\n"
		"Date: " DATE "\r\n"
		"Cache-Control: no-store\r\n"
		"Connection: close\r\n"
		"Set-Cookie: sluice-t-derby=; Path=/; HttpOnly; SameSite=Lax; Max-Age=0\r\n\r\n");
}

static void the_ticket_of_a_query(void **state)
{
	(void)state;
	decision.answer = DECIDE_REDIRECT;
	decision.sets_ticket = true;
	request.redirect = SPAN("/derby?a=1");
	render();
	char expected[1024];
	snprintf(expected, sizeof(expected),
		"HTTP/1.1 302 Found\r\n"
		"Date: " DATE "\r\n"
		"Cache-Control: no-store\r\n"
		"Set-Cookie: sluice-t-derby=%s; Path=/; HttpOnly; SameSite=Lax; Max-Age=86400\r\n"
		"Location: /derby?a=1\r\n"
		"Referrer-Policy: no-referrer\r\n"
		"Content-Length: 0\r\n\r\n",
		token_text(&decision.ticket));
	out[out_len] = 0;
	assert_string_equal(out, expected);
}

// --- the queue page

static void the_queue_page_has_all_its_fields(void **state)
{
	(void)state;
	render();
	assert_int_equal(head.status, 200);
	assert_field("Cache-Control", "no-store");
	assert_field("X-Robots-Tag", "noindex");
	assert_field("Retry-After", "5");
	assert_field("Sluice-State", "waiting");
	assert_field("Content-Type", "text/html; charset=utf-8");
	assert_field("Content-Language", "en");
	assert_null(field("Content-Encoding", 0));
	assert_null(field("Refresh", 0));
	assert_null(field("ETag", 0));
	const char *csp = field("Content-Security-Policy", 0);
	static const char *const directives[] = {"default-src 'none'; ", "script-src 'sha256-",
		"style-src 'sha256-", "; img-src 'self' data:; ", "connect-src 'self'; ",
		"base-uri 'none'; ", "form-action 'self'; ", "frame-ancestors 'self'"};
	for (size_t i = 0; i < sizeof(directives) / sizeof(directives[0]); i++)
		assert_non_null(strstr(csp, directives[i]));
}

static void the_queue_page_in_its_shapes(void **state)
{
	(void)state;
	static const char *const encodings[] = {NULL, "gzip", "br"};
	static const char *const languages[] = {"en", "ja"};
	for (int language = 0; language < 2; language++) {
		for (int encoding = 0; encoding < PAGE_ENCODINGS; encoding++) {
			request.language = (uint8_t)language;
			request.encoding = (uint8_t)encoding;
			render();
			const struct page_view view = {.status = &decision.status, .room = &room};
			const struct page *page =
				folder_set(folder)->pages[language][decision.status.state];
			assert_int_equal(
				head.content_length, page_body_bytes(page, encoding, &view));
			assert_field("Content-Language", languages[language]);
			if (encodings[encoding])
				assert_field("Content-Encoding", encodings[encoding]);
			else
				assert_null(field("Content-Encoding", 0));
		}
	}
}

static void the_queue_as_json(void **state)
{
	(void)state;
	room.queue_status = 429;
	request.wants_json = true;
	request.encoding = ACCEPT_BR; // of a page
	decision.status.state = STATUS_full;
	decision.status.position = decision.status.ahead = STATUS_UNKNOWN;
	decision.status.eta_low = decision.status.eta_high = STATUS_UNKNOWN;
	render();
	assert_int_equal(head.status, 429);
	assert_field("Sluice-State", "full");
	assert_field("X-Robots-Tag", "noindex");
	assert_field("Content-Type", "application/json");
	assert_null(field("Content-Encoding", 0));
	json_t *json = body_json();
	assert_string_equal(json_string_value(json_object_get(json, "state")), "full");
	assert_true(json_is_null(json_object_get(json, "position")));
	assert_true(json_is_null(json_object_get(json, "ahead")));
	assert_true(json_is_null(json_object_get(json, "eta")));
	json_decref(json);
}

static void the_json_of_every_state(void **state)
{
	(void)state;
	static const char *const words[] = {"prequeue", "prequeue", "waiting", "next", "admitted",
		"expired", "closed", "full", "rejected"};
	static const char *const keys[] = {"room", "state", "position", "ahead", "exact", "eta",
		"poll_after", "opens", "expires", "now", "message"};
	request.route = GATE_ROUTE_STATUS;
	decision.answer = DECIDE_STATUS;
	room.message_json = SPAN("\"say \\\"hi\\\" \\\\ </script>\"");
	decision.status.expires = UINT32_MAX;
	decision.status.position = 1ull << 53;
	decision.status.exact = false;
	for (int i = 0; i < STATUS_STATE_COUNT; i++) {
		decision.status.state = (uint8_t)i;
		render();
		assert_int_equal(head.status, i == STATUS_expired ? 410 : 200);
		json_t *json = body_json();
		const bool is_before = i == STATUS_before;
		assert_int_equal(
			json_object_size(json), sizeof(keys) / sizeof(keys[0]) + is_before);
		assert_true(!json_object_get(json, "gathers") == !is_before);
		for (size_t k = 0; k < sizeof(keys) / sizeof(keys[0]); k++)
			assert_non_null(json_object_get(json, keys[k]));
		assert_string_equal(json_string_value(json_object_get(json, "state")), words[i]);
		assert_string_equal(json_string_value(json_object_get(json, "message")),
			"say \"hi\" \\ </script>");
		assert_int_equal(json_integer_value(json_object_get(json, "expires")), UINT32_MAX);
		assert_true(json_is_false(json_object_get(json, "exact")));
		json_decref(json);
	}
}

// --- all the others

// While a window gathers there is one key more.
static void json_of_a_window(void **state)
{
	(void)state;
	request.route = GATE_ROUTE_STATUS;
	decision.answer = DECIDE_STATUS;
	decision.status.position = decision.status.ahead = STATUS_UNKNOWN;
	decision.status.ahead_min = 1234;
	render();
	json_t *json = body_json();
	assert_true(json_is_null(json_object_get(json, "position")));
	assert_true(json_is_null(json_object_get(json, "ahead")));
	assert_int_equal(json_integer_value(json_object_get(json, "ahead_min")), 1234);
	json_decref(json);
}

static void every_answer_is_well_formed(void **state)
{
	(void)state;
	static const struct {
		enum decide_answer answer;
		enum gate_route route;
		unsigned status;
		const char *name, *value; // a field it must have
	} rows[] = {
		{DECIDE_PAGE, GATE_ROUTE_GUARDED, 200, "Retry-After", "5"},
		{DECIDE_STATUS, GATE_ROUTE_STATUS, 200, "Retry-After", "5"},
		{DECIDE_UNKNOWN, GATE_ROUTE_STATUS, 401, "WWW-Authenticate", "Sluice"},
		{DECIDE_LEFT, GATE_ROUTE_LEAVE, 204, "Cache-Control", "no-store"},
		{DECIDE_CROSS_SITE, GATE_ROUTE_LEAVE, 403, "Content-Type", "application/json"},
		{DECIDE_REDIRECT, GATE_ROUTE_GUARDED, 302, "Referrer-Policy", "no-referrer"},
		{DECIDE_HTTPS, GATE_ROUTE_GUARDED, 308, "Location", "https://shop.example/derby?a"},
		{DECIDE_UNAVAILABLE, GATE_ROUTE_GUARDED, 503, "Retry-After", "5"},
		{DECIDE_NOT_FOUND, GATE_ROUTE_UNKNOWN, 404, "Cache-Control", "no-store"},
		{DECIDE_METHOD, GATE_ROUTE_STATUS, 405, "Allow", "GET"},
		{DECIDE_METHOD, GATE_ROUTE_LEAVE, 405, "Allow", "POST"},
		{DECIDE_METHOD, GATE_ROUTE_DRAW, 405, "Allow", "GET"},
		{DECIDE_METHOD, GATE_ROUTE_HEALTH, 405, "Allow", "GET, HEAD"},
		{DECIDE_SERVER, GATE_ROUTE_SERVER, 204, "Allow",
			"GET, HEAD, POST, PUT, PATCH, DELETE, OPTIONS"},
		{DECIDE_HEALTH, GATE_ROUTE_HEALTH, 200, "Content-Type", "application/json"},
		{DECIDE_BAD_TARGET, GATE_ROUTE_BAD, 400, "Cache-Control", "no-store"},
		{DECIDE_MISDIRECTED, GATE_ROUTE_MISDIRECTED, 421, "Cache-Control", "no-store"},
		{DECIDE_INVITATION, GATE_ROUTE_CODE, 429, "Retry-After", "5"},
		{DECIDE_METHOD, GATE_ROUTE_CODE, 405, "Allow", "GET, HEAD, POST"},
		{DECIDE_DRAW_NONE, GATE_ROUTE_DRAW, 404, "Content-Type", "application/json"},
	};
	request.redirect = SPAN("/derby");
	request.target = SPAN("/derby?a");
	request.host = SPAN("shop.example");
	site.https_port = 443;
	decision.outcome = CODE_guarded;
	for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]) * 8; i++) {
		decision.answer = (uint8_t)rows[i / 8].answer;
		request.route = (uint8_t)rows[i / 8].route;
		request.wants_json = i & 1;
		frame.is_head = i & 2;
		frame.close = i & 4;
		frame.minor = (i & 3) == 3 ? 0 : 1;
		render();
		assert_int_equal(head.status, rows[i / 8].status);
		assert_field(rows[i / 8].name, rows[i / 8].value);
		assert_field("Date", DATE);
		assert_field("Cache-Control", "no-store");
		const char *connection = field("Connection", 0);
		if (frame.close)
			assert_string_equal(connection, "close");
		else if (frame.minor == 0)
			assert_string_equal(connection, "keep-alive");
		else
			assert_null(connection);
		if (request.wants_json && !frame.is_head && head.content_length > 0)
			json_decref(body_json());
	}
}

static void the_way_to_https(void **state)
{
	static const struct {
		const char *host;
		uint16_t port;
		const char *location;
	} rows[] = {
		{"shop.example", 443, "https://shop.example/a?b=%20#"},
		{"shop.example", 8443, "https://shop.example:8443/a?b=%20#"},
		{"[2001:db8::1]", 65535, "https://[2001:db8::1]:65535/a?b=%20#"},
	};
	(void)state;
	decision.answer = DECIDE_HTTPS;
	request.target = SPAN("/a?b=%20#");
	for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
		request.host = (struct span){rows[i].host, strlen(rows[i].host)};
		site.https_port = rows[i].port;
		render();
		assert_int_equal(head.status, 308);
		assert_string_equal(field("Location", 0), rows[i].location);
	}
}

static void strict_transport_security(void **state)
{
	static const char name[] = "Strict-Transport-Security";
	char line[ANSWER_HSTS_BYTES_MAX];
	(void)state;
	site.hsts_s = UINT32_MAX;
	render();
	assert_null(field(name, 0)); // not in plain
	frame.is_secure = true;
	render();
	assert_string_equal(field(name, 0), "max-age=4294967295");
	site.hsts_s = 0;
	render();
	assert_null(field(name, 0));
	frame.site = NULL;
	render();
	assert_null(field(name, 0));
	assert_int_equal(answer_hsts(0, line), 0);
	size_t len = answer_hsts(31536000, line);
	static const char expected[] = "Strict-Transport-Security: max-age=31536000\r\n";
	assert_int_equal(len, sizeof(expected) - 1);
	assert_memory_equal(line, expected, len);
}

static void health(void **state)
{
	(void)state;
	request.route = GATE_ROUTE_HEALTH;
	decision.answer = DECIDE_HEALTH;
	static const char *const words[] = {"ok", "draining", "stalled", "stalled"};
	for (int i = 0; i < 4; i++) {
		decision.is_draining = i & 1;
		decision.is_unhealthy = i & 2;
		render();
		assert_int_equal(head.status, i == 0 ? 200 : 503);
		json_t *json = body_json();
		assert_string_equal(
			json_string_value(json_object_get(json, "version")), SLUICE_VERSION);
		assert_string_equal(json_string_value(json_object_get(json, "state")), words[i]);
		json_decref(json);
	}
}

static void refusals_in_both_shapes(void **state)
{
	(void)state;
	static const unsigned codes[] = {
		400, 404, 408, 413, 414, 421, 431, 500, 501, 502, 503, 504, 505};
	for (size_t i = 0; i < sizeof(codes) / sizeof(codes[0]) * 4; i++) {
		bool is_json = i & 1;
		frame.is_head = i & 2;
		frame.close = true;
		memset(out, '~', sizeof(out));
		out_len = answer_refusal(codes[i / 4], is_json, &frame, out);
		assert_int_equal(out[out_len], '~');
		read_answer(frame.is_head ? HTTP_HEAD : HTTP_GET);
		assert_int_equal(head.status, codes[i / 4]);
		assert_field(
			"Content-Type", is_json ? "application/json" : "text/html; charset=utf-8");
		assert_field("Connection", "close");
		if (!is_json || frame.is_head)
			continue;
		json_t *json = body_json();
		assert_int_equal(json_integer_value(json_object_get(json, "status")), codes[i / 4]);
		json_decref(json);
	}
}

static void a_head_too_large_is_rid_of_its_cookies(void **state)
{
	(void)state;
	stale.names[stale.count++] = SPAN("sluice-t-gone");
	frame.site = NULL; // not known from what came
	out_len = answer_refusal(431, false, &frame, out);
	read_answer(HTTP_GET);
	assert_field("Set-Cookie", "sluice-t-gone=; Path=/; HttpOnly; SameSite=Lax; Max-Age=0");
}

static void the_longest_answer_fits(void **state)
{
	(void)state;
	static char target[DECIDE_LOCATION_BYTES_MAX];
	static char name[GATE_NAME_MAX], domain[253];
	memset(target, '/', sizeof(target));
	memset(name, 'n', sizeof(name));
	memset(domain, 'd', sizeof(domain));
	room.name = (struct span){name, sizeof(name)};
	site.cookie_domain = request.host = (struct span){domain, sizeof(domain)};
	request.redirect = (struct span){target, sizeof(target)};
	request.target = (struct span){target, sizeof(target) - 300};
	site.https_port = 65535;
	site.hsts_s = UINT32_MAX;
	decision.clears_ticket = decision.clears_pass = true;
	decision.sets_ticket = decision.sets_pass = true; // never with the others; even so
	frame.is_secure = true;
	for (uint32_t i = 0; i < CARRY_STALE_MAX; i++)
		stale.names[stale.count++] = room.name;
	render();
	decision.answer = DECIDE_HTTPS;
	render();
	decision.answer = DECIDE_REDIRECT;
	render();
	assert_int_equal(strlen(field("Set-Cookie", 0)), 9 + 63 + 1 + 64 + 317);
}

int main(void)
{
#define STORY(name) cmocka_unit_test_setup(name, scene)
	const struct CMUnitTest tests[] = {
		STORY(a_poll),
		STORY(a_poll_of_nobody),
		STORY(a_place_given_back),
		STORY(the_ticket_of_a_query),
		STORY(the_queue_page_has_all_its_fields),
		STORY(the_queue_page_in_its_shapes),
		STORY(the_queue_as_json),
		STORY(the_json_of_every_state),
		STORY(json_of_a_window),
		STORY(every_answer_is_well_formed),
		STORY(the_way_to_https),
		STORY(strict_transport_security),
		STORY(health),
		STORY(refusals_in_both_shapes),
		STORY(a_head_too_large_is_rid_of_its_cookies),
		STORY(the_longest_answer_fits),
	};
	return cmocka_run_group_tests(tests, start, stop);
}
