// Carrying: which tokens are found, what a redirect says, which cookies are expired.

#include "dataplane/gate/carry.h"
#include "dataplane/http/head.h"
#include "tests/unit/gate/append.h"
#include "tests/unit/gate/guard.h"
#include "tests/unit/gate/town.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>

#include <cmocka.h>

#define NOW 1764604288u

static char *guard, *out_guard;

static struct span text_span(const char *text)
{
	return (struct span){text, strlen(text)};
}

// Parse a head that ends at the guard; `fields` are whole lines.
static void parse(struct http_head *head, const char *target, const char *fields)
{
	static const struct http_limits limits = {16384, 60000, 128};
	static char text[GUARD_BYTES];
	int len = snprintf(text, sizeof(text), "GET %s HTTP/1.1\r\nHost: shop.example\r\n%s\r\n",
		target, fields);
	struct span in = {guard_put(guard, text, len), len};
	assert_int_equal(http_request_parse(in, &limits, head), HTTP_OK);
}

// What is found, written as `c` cookie, `h` header, `q` query, then t or p and the text; then a
// plus if there are cookies of other rooms.
static const struct {
	const char *name, *target, *fields, *found;
} collected[] = {
	{"nothing", "/derby", "", ""},
	{"a ticket", "/derby", "Cookie: sluice-t-derby=T\r\n", "ctT "},
	{"a pass", "/derby", "Cookie: sluice-p-derby=P\r\n", "cpP "},
	{"first among others", "/derby", "Cookie: sluice-t-derby=T; a=b; c=d\r\n", "ctT "},
	{"last among others", "/derby", "Cookie: a=b; c=d; sluice-t-derby=T\r\n", "ctT "},
	{"both", "/derby", "Cookie: sluice-p-derby=P; sluice-t-derby=T\r\n", "cpP ctT "},
	{"twice", "/derby", "Cookie: sluice-t-derby=T; sluice-t-derby=U\r\n", "ctT ctU "},
	{"in two fields", "/derby", "Cookie: sluice-t-derby=T\r\nCookie: sluice-t-derby=U\r\n",
		"ctT ctU "},
	{"quoted", "/derby", "Cookie: sluice-t-derby=\"T\"\r\n", "ctT "},
	{"without white space", "/derby", "Cookie: a=b;sluice-t-derby=T;c=d\r\n", "ctT "},
	{"empty", "/derby", "Cookie: sluice-t-derby=\r\n", "ct "},
	{"of another room", "/derby", "Cookie: sluice-t-vip=T\r\n", "+"},
	{"of a room of a longer name", "/derby", "Cookie: sluice-t-derby2=T\r\n", "+"},
	{"of a room of a shorter name", "/derby", "Cookie: sluice-t-derb=T\r\n", "+"},
	{"names have case", "/derby", "Cookie: sluice-t-Derby=T; Sluice-t-derby=T\r\n", "+"},
	{"another kind", "/derby", "Cookie: sluice-x-derby=T\r\n", ""},
	{"no kind", "/derby", "Cookie: sluice-derby=T; sluice-t-=T; sluice-t=T\r\n", "+"},
	{"headers", "/derby", "Sluice-Ticket: T\r\nSluice-Pass: P\r\n", "htT hpP "},
	{"headers have no case", "/derby", "SLUICE-TICKET: T\r\n", "htT "},
	{"a header twice", "/derby", "Sluice-Ticket: T\r\nSluice-Ticket: U\r\n", "htT "},
	{"the query", "/derby?sluice_ticket=T", "", "qtT "},
	{"the query among others", "/derby?a=b&sluice_ticket=T&c", "", "qtT "},
	{"the query twice", "/derby?sluice_ticket=T&sluice_ticket=U", "", "qtT "},
	{"the query without a value", "/derby?sluice_ticket&a", "", ""},
	{"the query with an empty value", "/derby?sluice_ticket=", "", "qt "},
	{"a longer parameter", "/derby?sluice_tickets=T", "", ""},
	{"a parameter's tail", "/derby?xsluice_ticket=T", "", ""},
	{"parameters have case", "/derby?Sluice_ticket=T", "", ""},
	{"no query", "/derby/sluice_ticket=T", "", ""},
	{"in a second question mark", "/derby?a?sluice_ticket=T", "", ""},
	{"everything", "/derby?sluice_ticket=Q",
		"Cookie: sluice-t-derby=T; sluice-p-derby=P\r\nSluice-Ticket: H\r\n"
		"Sluice-Pass: I\r\n",
		"htH hpI qtQ ctT cpP "},
};

static void finds_what_is_carried(void **state)
{
	(void)state;
	for (size_t i = 0; i < sizeof(collected) / sizeof(collected[0]); i++) {
		struct http_head head;
		struct carried found[CARRY_TOKENS_MAX];
		char text[256] = "";
		parse(&head, collected[i].target, collected[i].fields);
		bool has_others;
		uint32_t count = carry_collect(&head, &town_rooms[TOWN_DERBY], found, &has_others);
		for (uint32_t j = 0; j < count; j++)
			append(text, sizeof(text), "%c%c%.*s ", "chq"[found[j].carrier],
				found[j].kind == TOKEN_PASS ? 'p' : 't', (int)found[j].text.len,
				found[j].text.at);
		if (has_others)
			append(text, sizeof(text), "+");
		if (strcmp(text, collected[i].found) != 0)
			fail_msg("%s: %s", collected[i].name, text);
	}
}

// Sixteen cookies of the room are looked at, the seventeenth is not, and others do not count.
static void finds_so_many_and_no_more(void **state)
{
	(void)state;
	char fields[4096] = "Sluice-Ticket: T\r\nSluice-Pass: P\r\nCookie: a=b";
	for (int i = 0; i < 100; i++)
		append(fields, sizeof(fields), "; sluice-t-x=y");
	for (int i = 0; i < GATE_COOKIES_MAX + 1; i++)
		append(fields, sizeof(fields), "; sluice-t-derby=%d", i);
	append(fields, sizeof(fields), "\r\n");
	struct http_head head;
	struct carried found[CARRY_TOKENS_MAX + 1];
	parse(&head, "/derby?sluice_ticket=T", fields);
	bool has_others;
	assert_int_equal(carry_collect(&head, &town_rooms[TOWN_DERBY], found, &has_others),
		CARRY_TOKENS_MAX - 1); // a room without lanes has no invitations
	assert_true(has_others);
	assert_true(span_is_equal(found[3].text, SPAN("0")));
	assert_true(span_is_equal(found[CARRY_TOKENS_MAX - 2].text, SPAN("15")));
}

static const struct {
	const char *name, *target, *location;
} redirects[] = {
	{"the only parameter", "/derby?sluice_ticket=T", "/derby"},
	{"the first", "/derby?sluice_ticket=T&a=b", "/derby?a=b"},
	{"the last", "/derby?a=b&sluice_ticket=T", "/derby?a=b"},
	{"between", "/derby?a=b&sluice_ticket=T&c=d", "/derby?a=b&c=d"},
	{"all of them", "/derby?sluice_ticket=T&a&sluice_ticket=U&sluice_ticket", "/derby?a"},
	{"others of a like name stay", "/derby?sluice_tickets=T&sluice_ticket=T",
		"/derby?sluice_tickets=T"},
	{"others stay byte for byte", "/d%65rby?a=%20+&&b=?&sluice_ticket=T",
		"/d%65rby?a=%20+&&b=?"},
	{"empty ones stay", "/derby?&sluice_ticket=T&&a&", "/derby?&&a&"},
	{"another authority", "//evil.example/?sluice_ticket=T", "/evil.example/"},
	{"another authority, backslash", "/\\evil.example/?sluice_ticket=T", "/evil.example/"},
	{"another authority, mixed", "//\\/\\evil.example?sluice_ticket=T", "/evil.example"},
	{"nothing but slashes", "///?sluice_ticket=T&a", "/?a"},
	{"slashes further on stay", "/derby//x?sluice_ticket=T", "/derby//x"},
	{"slashes in the query stay", "/?//x&sluice_ticket=T", "/?//x"},
};

static void redirects_to_the_same_host(void **state)
{
	(void)state;
	for (size_t i = 0; i < sizeof(redirects) / sizeof(redirects[0]); i++) {
		struct span target = text_span(redirects[i].target);
		target.at = guard_put(guard, target.at, target.len);
		struct span location = carry_redirect(target, out_guard - target.len);
		if (!span_is_equal(location, text_span(redirects[i].location)))
			fail_msg("%s: %.*s", redirects[i].name, (int)location.len, location.at);
	}
}

// A token that only looks like one: its MAC is not checked when cookies are weighed.
static const char *token_text(
	enum token_kind kind, uint32_t line_id, uint64_t key, uint32_t issued, uint32_t expires)
{
	static char texts[64][TOKEN_TEXT_BYTES + 1];
	static unsigned next;
	char *text = texts[next++ % 64];
	struct token token = {
		.kind = kind, .line_id = line_id, .key = key, .issued = issued, .expires = expires};
	struct token_wire wire = {.tag = {1}};
	token_pack(&token, wire.body);
	token_encode(&wire, text);
	text[TOKEN_TEXT_BYTES] = 0;
	return text;
}

static const char *ticket_text(int room, uint32_t issued)
{
	return token_text(TOKEN_TICKET, town_rooms[room].line_id, 1000, issued, 0);
}

static const char *pass_text(int room, uint32_t expires)
{
	return token_text(TOKEN_PASS, town_rooms[room].line_id, 1, NOW - 60, expires);
}

// The names found stale, each followed by a blank.
static const char *stale_text(const struct carry_stale *stale)
{
	static char text[8192];
	text[0] = 0;
	for (uint32_t i = 0; i < stale->count; i++)
		append(text, sizeof(text), "%.*s ", (int)stale->names[i].len, stale->names[i].at);
	return text;
}

// The stale ones of these cookies, in a request for `room` (-1: none) whose answer adds `adds`.
static const char *stale_of(const char *cookies, int room, uint32_t adds)
{
	static char fields[GUARD_BYTES];
	struct http_head head;
	struct carry_stale stale;
	snprintf(fields, sizeof(fields), "Cookie: %s\r\n", cookies);
	parse(&head, "/derby", fields);
	carry_stale_find(&town, &head, room < 0 ? NULL : &town_rooms[room], adds, NOW, &stale);
	return stale_text(&stale);
}

static void useless_cookies_are_stale(void **state)
{
	(void)state;
	town_line.floor = 1000;
	const struct {
		const char *name, *cookie, *value;
		bool is_stale;
	} cases[] = {
		{"a ticket", "sluice-t-vip", ticket_text(TOWN_VIP, NOW), false},
		{"a pass", "sluice-p-vip", pass_text(TOWN_VIP, NOW + 1), false},
		{"a pass that has run out", "sluice-p-vip", pass_text(TOWN_VIP, NOW), true},
		{"a ticket at the floor", "sluice-t-derby", ticket_text(TOWN_DERBY, NOW), false},
		{"a ticket below it", "sluice-t-derby", token_text(TOKEN_TICKET, 13, 999, NOW, 0),
			true},
		{"ten seconds ahead", "sluice-t-vip", ticket_text(TOWN_VIP, NOW + 10), false},
		{"eleven seconds ahead", "sluice-t-vip", ticket_text(TOWN_VIP, NOW + 11), true},
		{"of an unknown room", "sluice-t-gone", ticket_text(TOWN_VIP, NOW), true},
		{"of another room", "sluice-t-vip", ticket_text(TOWN_XY, NOW), true},
		{"of the other kind", "sluice-p-vip", ticket_text(TOWN_VIP, NOW), true},
		{"no token", "sluice-t-vip", "x", true},
		{"empty", "sluice-t-vip", "", true},
		{"not ours", "sluice-x-vip", "x", false},
		{"somebody's", "vip", "x", false},
		{"a name no room can have", "sluice-t-a b", "x", false},
		{"a name with a comma", "sluice-t-a,b", "x", false},
		{"no room's name", "sluice-t-", "x", false},
	};
	for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
		char cookie[256], expected[128] = "";
		snprintf(cookie, sizeof(cookie), "%s=%s", cases[i].cookie, cases[i].value);
		if (cases[i].is_stale)
			snprintf(expected, sizeof(expected), "%s ", cases[i].cookie);
		if (strcmp(stale_of(cookie, -1, 0), expected) != 0)
			fail_msg("%s", cases[i].name);
	}
	town_line.floor = 0;
}

static void names_have_a_longest(void **state)
{
	(void)state;
	char cookie[128] = "sluice-t-";
	memset(cookie + 9, 'a', GATE_NAME_MAX + 1);
	memcpy(cookie + 9 + GATE_NAME_MAX + 1, "=x", 3);
	assert_string_equal(stale_of(cookie, -1, 0), "");
	memcpy(cookie + 9 + GATE_NAME_MAX, "=x", 3);
	assert_int_equal(strlen(stale_of(cookie, -1, 0)), 9 + GATE_NAME_MAX + 1);
}

static void a_name_that_comes_twice_is_as_good_as_the_better(void **state)
{
	(void)state;
	char cookies[512];
	const char *good = ticket_text(TOWN_VIP, NOW);
	snprintf(cookies, sizeof(cookies), "sluice-t-vip=x; sluice-t-vip=%s", good);
	assert_string_equal(stale_of(cookies, -1, 0), "");
	snprintf(cookies, sizeof(cookies), "sluice-t-vip=%s; sluice-t-vip=x", good);
	assert_string_equal(stale_of(cookies, -1, 0), "");
	assert_string_equal(stale_of("sluice-t-vip=x; sluice-t-vip=y", -1, 0), "sluice-t-vip ");
}

static void the_own_room_is_left_to_its_answer(void **state)
{
	(void)state;
	assert_string_equal(stale_of("sluice-t-vip=x; sluice-p-vip=x", TOWN_VIP, 0), "");
}

// A map of many rooms, r00 to r99, to have more cookies than browsers should keep.
#define MANY 100

static struct gate_room many_rooms[MANY];
static char many_names[MANY][4];
static const struct gate_map many = {.room_count = MANY, .rooms = many_rooms};

static void many_init(void)
{
	for (int i = 0; i < MANY; i++) {
		snprintf(many_names[i], sizeof(many_names[i]), "r%02d", i % MANY);
		many_rooms[i] = (struct gate_room){
			.name = {many_names[i], 3}, .index = i, .line_id = 100 + i};
	}
	assert_true(match_map_is_sorted(&many));
}

// The stale of `count` good tickets, room i's issued at NOW - i, for a request to room `own`.
static const char *stale_of_many(int count, int own, uint32_t adds, struct carry_stale *stale)
{
	static char fields[GUARD_BYTES];
	struct http_head head;
	snprintf(fields, sizeof(fields), "Cookie: a=b");
	for (int i = 0; i < count; i++)
		append(fields, sizeof(fields), "; sluice-t-r%02d=%s", i,
			token_text(TOKEN_TICKET, 100 + i, 1, NOW - i, 0));
	append(fields, sizeof(fields), "\r\n");
	parse(&head, "/", fields);
	carry_stale_find(&many, &head, own < 0 ? NULL : &many_rooms[own], adds, NOW, stale);
	return stale_text(stale);
}

static void sixteen_are_kept_the_oldest_go(void **state)
{
	(void)state;
	struct carry_stale stale;
	many_init();
	assert_string_equal(stale_of_many(16, -1, 0, &stale), "");
	assert_string_equal(stale_of_many(17, -1, 0, &stale), "sluice-t-r16 ");
	assert_string_equal(stale_of_many(16, -1, 1, &stale), "sluice-t-r15 ");
	assert_string_equal(stale_of_many(16, 15, 0, &stale), "");
	assert_string_equal(stale_of_many(16, 15, 1, &stale), "sluice-t-r14 ");
	assert_string_equal(stale_of_many(17, 16, 0, &stale), "sluice-t-r15 ");
	assert_string_equal(stale_of_many(18, 99, 0, &stale), "sluice-t-r16 sluice-t-r17 ");
}

static void so_many_are_expired_and_weighed_at_once(void **state)
{
	(void)state;
	struct carry_stale stale;
	stale_of_many(GATE_COOKIES_MAX + CARRY_STALE_MAX, -1, 0, &stale);
	assert_int_equal(stale.count, CARRY_STALE_MAX);
	stale_of_many(GATE_COOKIES_MAX + CARRY_STALE_MAX + 1, -1, 0, &stale);
	assert_int_equal(stale.count, CARRY_STALE_MAX);
	const char *text = stale_of_many(MANY, -1, 0, &stale);
	assert_int_equal(stale.count, CARRY_STALE_MAX);
	assert_null(strstr(text, "r64")); // not weighed
}

static const struct {
	const char *name, *bytes, *stale;
	int site; // -1: none
} raws[] = {
	{"nothing", "", "", -1},
	{"no field", "GET / HTTP/1.1\r\n", "", -1},
	{"a cookie", "GET / HTTP/1.1\r\nHost: shop.example\r\nCookie: sluice-t-gone=x\r\n",
		"sluice-t-gone ", TOWN_SHOP},
	{"any case", "GET / HTTP/1.1\r\nHOST: STRICT.example:80\r\nCOOKIE:sluice-t-gone=x\r\n",
		"sluice-t-gone ", TOWN_STRICT},
	{"two fields",
		"GET / HTTP/1.1\r\nCookie: sluice-t-gone=x\r\nCookie: a=b; sluice-p-gone=x\r\n",
		"sluice-t-gone sluice-p-gone ", -1},
	{"two hosts", "GET / HTTP/1.1\r\nHost: shop.example\r\nHost: strict.example\r\n", "",
		TOWN_SHOP},
	{"cut in the value", "GET / HTTP/1.1\r\nCookie: sluice-t-gone=x; sluice-t-away=x",
		"sluice-t-gone ", -1},
	{"cut in the name", "GET / HTTP/1.1\r\nCookie: sluice-t-gone=x; sluice-t-a",
		"sluice-t-gone ", -1},
	{"cut behind the semicolon", "GET / HTTP/1.1\r\nCookie: sluice-t-gone=x;", "sluice-t-gone ",
		-1},
	{"cut in the only one", "GET / HTTP/1.1\r\nCookie: sluice-t-gone=x", "", -1},
	{"cut in the line end", "GET / HTTP/1.1\r\nCookie: sluice-t-gone=x\r", "", -1},
	{"cut in the host", "GET / HTTP/1.1\r\nHost: shop.example", "", -1},
	{"another field", "GET / HTTP/1.1\r\nX-Cookie: sluice-t-gone=x\r\n", "", -1},
	{"in the request line", "Cookie: sluice-t-gone=x", "", -1},
	{"bytes of all kinds", "GET / HTTP/1.1\r\nCookie: sluice-t-gone=\x01\xff\n; a\r\n",
		"sluice-t-gone ", -1},
};

static void raw_heads_are_salvaged(void **state)
{
	(void)state;
	for (size_t i = 0; i < sizeof(raws) / sizeof(raws[0]); i++) {
		struct span bytes = text_span(raws[i].bytes), matched;
		struct http_head head;
		struct carry_stale stale;
		char scratch[256];
		carry_salvage(
			(struct span){guard_put(guard, bytes.at, bytes.len), bytes.len}, &head);
		carry_stale_find(&town, &head, NULL, 0, NOW, &stale);
		if (strcmp(stale_text(&stale), raws[i].stale) != 0)
			fail_msg("%s: %s", raws[i].name, stale_text(&stale));
		const struct gate_site *site = gate_map_site(&town, head.host, scratch, &matched);
		if (site != (raws[i].site < 0 ? NULL : &town_sites[raws[i].site]))
			fail_msg("%s: site", raws[i].name);
	}
}

// More Cookie lines than a head has fields, and more bytes than a head may have.
static void raw_heads_are_bounded(void **state)
{
	(void)state;
	static char bytes[200000];
	struct http_head head;
	snprintf(bytes, sizeof(bytes), "GET / HTTP/1.1\r\n");
	for (int i = 0; i < HTTP_FIELDS_MAX + 1; i++)
		append(bytes, sizeof(bytes), "Cookie: a%d=b\r\n", i);
	carry_salvage((struct span){bytes, strlen(bytes)}, &head);
	assert_int_equal(head.field_count, HTTP_FIELDS_MAX);
	memset(bytes + strlen(bytes), ' ', sizeof(bytes) - strlen(bytes));
	const char late[] = "\r\nHost: shop.example\r\n";
	memcpy(bytes + HTTP_HEAD_BYTES_MAX - 8, late, sizeof(late));
	carry_salvage((struct span){bytes, sizeof(bytes)}, &head);
	assert_null(head.host.at);
}

int main(void)
{
	guard = guard_make();
	out_guard = guard_make();
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(finds_what_is_carried),
		cmocka_unit_test(finds_so_many_and_no_more),
		cmocka_unit_test(redirects_to_the_same_host),
		cmocka_unit_test(useless_cookies_are_stale),
		cmocka_unit_test(names_have_a_longest),
		cmocka_unit_test(a_name_that_comes_twice_is_as_good_as_the_better),
		cmocka_unit_test(the_own_room_is_left_to_its_answer),
		cmocka_unit_test(sixteen_are_kept_the_oldest_go),
		cmocka_unit_test(so_many_are_expired_and_weighed_at_once),
		cmocka_unit_test(raw_heads_are_salvaged),
		cmocka_unit_test(raw_heads_are_bounded),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
