// Lanes: which line a visitor is in, by their tokens, an invitation, a header or their address.

#include "tests/unit/gate/append.h"
#include "tests/unit/gate/reading.h"

#include "dataplane/gate/lane.h"

#include <stdlib.h>

#define NOW 1764604288u
#define NO_HEADER ""

enum { COMMON = 13, MEMBERS = 131, STAFF = 132 };

static struct token_secrets secrets;
static struct token_print_key print_key;
static struct mac_engine *engine;

static const struct lane_network staff_networks[] = {
	{{[10] = 0xff, 0xff, 10, 1, 2}, 96 + 23}, {{0x20, 0x01, 0x0d, 0xb8}, 32}};
static const struct gate_lane lanes[] = {
	{.room = {.name = TEXT("derby"), .line_id = MEMBERS, .index = 6},
		.name = TEXT("members"),
		.header = TEXT("x-member"),
		.header_value = TEXT("gold")},
	{.room = {.name = TEXT("derby"), .line_id = STAFF, .index = 7},
		.name = TEXT("draw"),
		.networks = staff_networks,
		.network_count = 2},
};

static const uint8_t outside[16] = {[10] = 0xff, 0xff, 192, 0, 2, 1};
static const uint8_t staff[16] = {[10] = 0xff, 0xff, 10, 1, 3, 255};

static const char *text_of(struct token token)
{
	static char texts[32][TOKEN_TEXT_BYTES + 1];
	static unsigned next;
	char *text = texts[next++ % 32];
	token.issued = NOW - 60;
	token.visitor = 5;
	token_sign(&secrets, &token, text);
	return text;
}

static const char *ticket(uint32_t line_id, uint64_t key)
{
	return text_of((struct token){.kind = TOKEN_TICKET, .line_id = line_id, .key = key});
}

static const char *pass(uint32_t line_id, uint32_t expires)
{
	return text_of((struct token){
		.kind = TOKEN_PASS, .line_id = line_id, .key = 1, .expires = expires});
}

static const char *invitation(uint32_t line_id, uint32_t expires)
{
	return text_of((struct token){
		.kind = TOKEN_INVITATION, .line_id = line_id, .key = 1, .expires = expires});
}

// The line that a request is in.
static uint32_t line_of(struct gate_request *request, const uint8_t ip[16], bool is_trusted,
	const char *target, const char *format, ...)
{
	static char fields[4096];
	struct mac_job jobs[CARRY_TOKENS_MAX];
	va_list args;
	va_start(args, format);
	vsnprintf(fields, sizeof(fields), format, args);
	va_end(args);
	const struct http_head *head = reading_parts(request, "GET", target, fields);
	lane_enter(head, ip, is_trusted, request);
	mac_burst(
		engine, jobs, gate_request_tokens(request, &secrets, &print_key, NULL, NOW, jobs));
	gate_request_settle(request, NULL, NOW);
	return request->room->line_id;
}

static const char *with(const char *parameter, const char *text)
{
	static char target[256];
	snprintf(target, sizeof(target), "/derby?%s=%s&a=b", parameter, text);
	return target;
}

static void newcomers_enter_by_header_or_address(void **state)
{
	(void)state;
	static const struct {
		const char *fields;
		const uint8_t *ip;
		bool is_trusted;
		uint32_t line_id;
	} cases[] = {
		{"", outside, true, COMMON}, {"X-Member: gold\r\n", outside, true, MEMBERS},
		{"x-MEMBER:gold\r\n", outside, true, MEMBERS},
		{"X-Member: gold\r\n", outside, false, COMMON},
		{"X-Member: Gold\r\n", outside, true, COMMON},
		{"X-Member: gold2\r\n", outside, true, COMMON},
		{"X-Member: gold\r\nX-Member: tin\r\n", outside, true, COMMON},
		{"X-Member:\r\n", outside, true, COMMON},
		{"X-Member: \r\nX-Member: gold\r\n", outside, true, MEMBERS}, // one says nothing
		{"", staff, false, STAFF},
		{"X-Member: gold\r\n", staff, true, MEMBERS}, // the first that fits
	};
	for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
		struct gate_request request;
		const uint32_t line_id = line_of(&request, cases[i].ip, cases[i].is_trusted,
			"/derby", "%s", cases[i].fields);
		if (line_id != cases[i].line_id)
			fail_msg("case %zu: line %u", i, line_id);
	}
}

static void networks_end_where_they_say(void **state)
{
	(void)state;
	static const struct {
		uint8_t ip[16];
		uint32_t line_id;
	} cases[] = {
		{{[10] = 0xff, 0xff, 10, 1, 2, 0}, STAFF},
		{{[10] = 0xff, 0xff, 10, 1, 3, 255}, STAFF},
		{{[10] = 0xff, 0xff, 10, 1, 1, 255}, COMMON},
		{{[10] = 0xff, 0xff, 10, 1, 4, 0}, COMMON},
		{{0x20, 0x01, 0x0d, 0xb8, 0xff}, STAFF},
		{{0x20, 0x01, 0x0d, 0xb9}, COMMON},
	};
	for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
		struct gate_request request;
		if (line_of(&request, cases[i].ip, false, "/derby", NO_HEADER) != cases[i].line_id)
			fail_msg("case %zu", i);
	}
}

static void who_holds_a_place_keeps_it(void **state)
{
	(void)state;
	struct gate_request r;
	assert_int_equal(line_of(&r, staff, false, "/derby", "Cookie: sluice-t-derby=%s\r\n",
				 ticket(COMMON, 7)),
		COMMON);
	assert_int_equal(r.ticket->token.key, 7);
	assert_int_equal(line_of(&r, outside, false, "/derby", "Cookie: sluice-t-derby=%s\r\n",
				 ticket(MEMBERS, 7)),
		MEMBERS);
	// Of two the one of a lane counts, whatever the keys.
	assert_int_equal(line_of(&r, outside, false, "/derby",
				 "Cookie: sluice-t-derby=%s; sluice-t-derby=%s\r\n",
				 ticket(COMMON, 7), ticket(STAFF, 9)),
		STAFF);
	assert_int_equal(r.ticket->token.key, 9);
	// A line of no room of that name.
	assert_int_equal(line_of(&r, outside, false, "/derby", "Cookie: sluice-t-derby=%s\r\n",
				 ticket(99, 7)),
		COMMON);
	assert_null(r.ticket);
}

static void an_invitation_is_followed(void **state)
{
	(void)state;
	struct gate_request r;
	const char *cookie = "Cookie: sluice-t-derby=%s\r\n";
	assert_int_equal(
		line_of(&r, outside, false, with("sluice_lane", invitation(MEMBERS, 0)), NO_HEADER),
		MEMBERS);
	assert_null(r.redirect.at);
	// From another line: the place there is given up. In the same one it stays.
	assert_int_equal(line_of(&r, outside, false, with("sluice_lane", invitation(MEMBERS, 0)),
				 cookie, ticket(COMMON, 7)),
		MEMBERS);
	assert_null(r.ticket);
	assert_int_equal(line_of(&r, outside, false, with("sluice_lane", invitation(MEMBERS, 0)),
				 cookie, ticket(MEMBERS, 7)),
		MEMBERS);
	assert_int_equal(r.ticket->token.key, 7);
	// Not by who is inside.
	assert_int_equal(line_of(&r, outside, false, with("sluice_lane", invitation(MEMBERS, 0)),
				 "Cookie: sluice-p-derby=%s\r\n", pass(COMMON, NOW + 9)),
		COMMON);
	assert_int_equal(line_of(&r, outside, false, with("sluice_lane", invitation(MEMBERS, 0)),
				 "Cookie: sluice-p-derby=%s\r\n", pass(COMMON, NOW)),
		MEMBERS);
}

static void draws_of_lanes_have_addresses(void **state)
{
	(void)state;
	static const struct {
		const char *endpoint;
		enum gate_route route;
		uint32_t line_id;
	} cases[] = {
		{"draw", GATE_ROUTE_DRAW, COMMON},
		{"draw/keys", GATE_ROUTE_DRAW_KEYS, COMMON},
		{"members/draw", GATE_ROUTE_DRAW, MEMBERS},
		{"members/draw/keys", GATE_ROUTE_DRAW_KEYS, MEMBERS},
		{"draw/draw", GATE_ROUTE_DRAW, STAFF}, // a lane of that name
		{"draw/draw/keys", GATE_ROUTE_DRAW_KEYS, STAFF},
		{"members", GATE_ROUTE_UNKNOWN, 0},
		{"members/", GATE_ROUTE_UNKNOWN, 0},
		{"members/status", GATE_ROUTE_UNKNOWN, 0},
		{"members/leave", GATE_ROUTE_UNKNOWN, 0},
		{"members/keys", GATE_ROUTE_UNKNOWN, 0},
		{"members/draw/", GATE_ROUTE_UNKNOWN, 0},
		{"nobody/draw", GATE_ROUTE_UNKNOWN, 0},
		{"Members/draw", GATE_ROUTE_UNKNOWN, 0},
	};
	for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
		char target[64];
		struct gate_request request;
		snprintf(target, sizeof(target), "/.sluice/derby/%s", cases[i].endpoint);
		reading_parts(&request, "GET", target, "");
		const uint32_t line_id = request.room ? request.room->line_id : 0;
		if (request.route != cases[i].route || line_id != cases[i].line_id)
			fail_msg("%s: route %d, line %u", target, request.route, line_id);
	}
}

static void what_is_no_invitation(void **state)
{
	(void)state;
	struct gate_request r;
	char forged[TOKEN_TEXT_BYTES + 1] = {0};
	memcpy(forged, invitation(MEMBERS, 0), TOKEN_TEXT_BYTES);
	forged[40] = forged[40] == 'a' ? 'b' : 'a';
	const char *wrong[] = {forged, "", "x", invitation(99, 0), invitation(MEMBERS, NOW),
		ticket(MEMBERS, 7), pass(MEMBERS, NOW + 9)};
	for (size_t i = 0; i < sizeof(wrong) / sizeof(wrong[0]); i++)
		if (line_of(&r, outside, false, with("sluice_lane", wrong[i]), NO_HEADER) != COMMON)
			fail_msg("case %zu", i);
	assert_int_equal(line_of(&r, outside, false,
				 with("sluice_lane", invitation(MEMBERS, NOW + 1)), NO_HEADER),
		MEMBERS);
	// Nor is an invitation a ticket or a pass.
	line_of(&r, outside, false, with("sluice_ticket", invitation(MEMBERS, 0)),
		"Sluice-Ticket: %s\r\nSluice-Pass: %s\r\n", invitation(MEMBERS, 0),
		invitation(MEMBERS, NOW + 9));
	assert_null(r.ticket);
	assert_null(r.pass);
	assert_int_equal(r.room->line_id, COMMON);
}

static int set_up(void **state)
{
	(void)state;
	token_secrets_add(&secrets, 1, (const uint8_t *)"0123456789abcdef0123456789abcdef", 32);
	secrets.current = 1;
	for (unsigned i = 0; i <= TOKEN_PRINT_WORDS; i++)
		for (unsigned half = 0; half < 2; half++)
			print_key.words[i][half] = (2 * i + half + 1) * 0x9e3779b97f4a7c15u;
	town_rooms[TOWN_DERBY].lanes = lanes;
	town_rooms[TOWN_DERBY].lane_count = 2;
	return mac_create(&engine);
}

static int tear_down(void **state)
{
	(void)state;
	mac_destroy(engine);
	return 0;
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(newcomers_enter_by_header_or_address),
		cmocka_unit_test(networks_end_where_they_say),
		cmocka_unit_test(who_holds_a_place_keeps_it),
		cmocka_unit_test(an_invitation_is_followed),
		cmocka_unit_test(draws_of_lanes_have_addresses),
		cmocka_unit_test(what_is_no_invitation),
	};
	return cmocka_run_group_tests_name("lane", tests, set_up, tear_down);
}
