// Matching hosts and paths: named cases.

#include "tests/unit/gate/matching.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>

#include <cmocka.h>

static const struct {
	const char *name, *target, *result;
} shop_paths[] = {
	{"outside", "/", NONE},
	{"another path", "/other", NONE},
	{"the room", "/derby", "derby"},
	{"below it", "/derby/tickets", "derby"},
	{"a plain string prefix: slash", "/derby/", "derby"},
	{"a plain string prefix: parameter", "/derby;x", "derby"},
	{"a plain string prefix: extension", "/derby.json", "derby"},
	{"a plain string prefix: letters", "/derbyshire", "derby"},
	{"one letter short", "/derb", NONE},
	{"the longest prefix wins", "/derby/vip/seats", "vip"},
	{"and only the whole of it", "/derby/vi", "derby"},
	{"case does not count", "/DERBY/Vip", "vip"},
	{"the query is ignored", "/other?/derby", NONE},
	{"a query of dots", "/derby?/../../..", "derby"},
	{"a bad escape in the query", "/derby?%zz%00", "derby"},
	{"an escaped question mark is path", "/other%3f/../derby", "derby"},
	{"`*` is no path", "*", BAD},

	{"decoded", "/%64%65rby", "derby"},
	{"decoded, capital digits", "/%64er%62%79", "derby"},
	{"decoded to capitals", "/%44ERBY", "derby"},
	{"decoded separator", "/derby%2fvip", BAD}, // as sent: derby
	{"decoded separator before", "/x%2fy", "xy"},
	{"decoded twice", "/%2564erby", "derby"},
	{"decoded three times is not", "/%252564erby", NONE},
	{"double slash", "//derby", "derby"},
	{"many slashes", "////derby", "derby"},
	{"slash between", "/x//y", "xy"},
	{"dot", "/./derby", "derby"},
	{"dot between", "/x/./y", "xy"},
	{"dots", "/x/../derby", "derby"},
	{"dots out of the room", "/derby/../x", "derby"},
	{"dots from room to room", "/derby/../x/y", BAD},
	{"dots within a room", "/derby/a/../b", "derby"},
	{"dots into the inner room", "/derby/a/../vip", BAD}, // as sent: derby
	{"three dots are a name", "/x/.../derby", NONE},
	{"encoded dots", "/x/%2e%2e/derby", "derby"},
	{"half encoded dots", "/x/.%2e/derby", "derby"},
	{"encoded dot", "/%2e/derby", "derby"},
	{"twice encoded dots", "/x/%252e%252e/derby", "derby"},
	{"encoded slash behind dots", "/x/..%2fderby", "derby"},
	{"leaving with an encoded slash", "/derby/..%2f", "derby"},
	{"twice encoded slash", "/x/..%252fderby", "derby"},
	{"backslash", "/x\\y", "xy"},
	{"backslash at the start", "/\\derby", "derby"},
	{"backslash and dots", "/x\\..\\derby", "derby"},
	{"encoded backslash", "/x%5c..%5cderby", "derby"},
	{"twice encoded backslash", "/x/..%255cderby", "derby"},
	{"dots at the end", "/derby/..", "derby"},

	{"above the root", "/..", BAD},
	{"above the root and back", "/../derby", BAD},
	{"above the root, encoded", "/%2e%2e/derby", BAD},
	{"above the root, encoded twice", "/%252e%252e/derby", BAD},
	{"above the root by an encoded slash", "/..%2fderby", BAD},
	{"above the root by a backslash", "/..\\derby", BAD},
	{"above the root later", "/derby/../../x", BAD},
	{"a percent sign alone", "/%", BAD},
	{"one digit", "/%2", BAD},
	{"no digits", "/%zz", BAD},
	{"half a digit", "/%2g", BAD},
	{"a wide escape", "/%u002e%u002e/derby", BAD},
	{"NUL", "/derby%00", BAD},
	{"NUL outside", "/%00", BAD},
	{"NUL, encoded twice", "/x%2500", BAD},
	{"bad only when decoded twice", "/100%25", NONE},
	{"bad only when decoded twice, in a room", "/derby/100%25", "derby"},
	{"not a path", "derby", BAD},
	{"empty", "", BAD},

	{"ours", "/.sluice/derby/status", SLUICE},
	{"ours, the folder", "/.sluice/", SLUICE},
	{"ours, in capitals", "/.SLUICE/derby/status", SLUICE},
	{"ours, encoded", "/%2esluice/derby/status", SLUICE},
	{"ours, encoded twice", "/%252esluice/derby/status", SLUICE},
	{"ours, by dots", "/x/../.sluice/health", SLUICE},
	{"ours, left by dots", "/.sluice/../other", SLUICE},
	{"ours or a room's", "/.sluice/../derby", BAD},
	{"ours or a room's, encoded", "/.sluice/..%2fderby", BAD},
	{"a room's or ours", "/derby/../.sluice/health", BAD},
	{"not below the folder", "/.sluice", NONE},
	{"another folder", "/.sluices/", NONE},
	{"within a room", "/derby/.sluice/status", "derby"},

	// Beyond the four readings.
	{"resolved before decoded", "/a%2fx/../derby", "derby"},
	{"resolved before decoded, encoded dots", "/a%2Fx/%2e%2e/derby", "derby"},
	{"resolved before decoded, backslash", "/a%5cx/../derby", "derby"},
	{"backslash is a letter", "/a\\x/../derby", "derby"},
	{"empty segments taken back", "/x/y//../z", "xy"},
	{"empty segments taken back, inner room", "/x//../y", "xy"},
	{"parameters hide dots", "/x/..;/derby", "derby"},
	{"parameters hide dots, filled", "/x/..;a=b/derby", "derby"},
	{"parameters hide a dot", "/.;/derby", "derby"},
	{"parameters alone in a segment", "/;a/derby", "derby"},
	{"parameters between", "/x;a/y", "xy"},
	{"encoded parameters", "/x%3ba/y", "xy"},
	{"encoded slash in parameters", "/x;a%2fb/y", "xy"},
	{"backslash in parameters", "/x;a\\b/y", "xy"},
	{"parameters into the inner room", "/derby/;a/vip", BAD},
	{"parameters above the root", "/..;/derby", BAD},
	{"parameters elsewhere", "/other;v=1/page", NONE},
	{"a room with parameters", "/annex;v=1/page", "annex"},
	{"its path without them", "/annex/page", NONE},
	{"a pass of one room, a path of another", "/derby/a%2fb/../../vip", BAD},
	{"into a room two ways at once", "/a%2fb/..;/derby", "derby"},
	{"overlong slash", "/x%c0%afy", "xy"},
	{"overlong dots", "/x/%c0%ae%c0%ae/derby", "derby"},
	{"overlong backslash", "/x%c1%9cy", "xy"},
	{"overlong, three bytes", "/x%e0%80%afy", "xy"},
	{"overlong, four bytes", "/x%f0%80%80%afy", "xy"},
	{"overlong, encoded twice", "/x%25c0%25afy", "xy"},
	{"overlong letters", "/%c1%a4erby", "derby"},
	{"three bytes that are a letter", "/x%e0%a0%afy", NONE},
	{"four bytes that are a letter", "/x%f0%90%80%afy", NONE},
	{"four bytes that are a control", "/x%f0%80%81%afy", NONE},
	{"two bytes that are not", "/x%c0y", NONE},
	{"cut short", "/x%e0%80", NONE},
	{"plain UTF-8", "/caf%c3%a9", NONE},
};

static void paths_of_a_site(void **state)
{
	(void)state;
	for (size_t i = 0; i < sizeof(shop_paths) / sizeof(shop_paths[0]); i++) {
		const char *target = shop_paths[i].target;
		struct match match = match_flush(&town_sites[TOWN_SHOP], target, strlen(target));
		if (strcmp(result_text(&match), shop_paths[i].result) != 0)
			fail_msg("%s: %s is %s, not %s", shop_paths[i].name, target,
				result_text(&match), shop_paths[i].result);
	}
}

static const struct {
	const char *name;
	int site;
	const char *target, *result;
} other_paths[] = {
	{"case counts", TOWN_STRICT, "/Exact", "exact"},
	{"case counts: lower", TOWN_STRICT, "/exact", NONE},
	{"case counts: decoded", TOWN_STRICT, "/%45xact", "exact"},
	{"case counts: digits of escapes do not", TOWN_STRICT, "/x%2f%2E%2e/Exact", "exact"},
	{"case counts: ours", TOWN_STRICT, "/.sluice/exact/status", SLUICE},
	{"case counts: not ours", TOWN_STRICT, "/.Sluice/exact/status", NONE},
	{"the root guards all", TOWN_WHOLE, "/anything", "all"},
	{"the root does not guard ours", TOWN_WHOLE, "/.sluice/all/status", SLUICE},
	{"the root and ours", TOWN_WHOLE, "/x/../.sluice/all/status", BAD},
};

static void paths_of_other_sites(void **state)
{
	(void)state;
	for (size_t i = 0; i < sizeof(other_paths) / sizeof(other_paths[0]); i++) {
		const char *target = other_paths[i].target;
		struct match match =
			match_flush(&town_sites[other_paths[i].site], target, strlen(target));
		if (strcmp(result_text(&match), other_paths[i].result) != 0)
			fail_msg("%s: %s is %s", other_paths[i].name, target, result_text(&match));
	}
}

static const struct {
	const char *target, *endpoint; // NULL: none
} endpoints[] = {
	{"/.sluice/derby/status", "derby/status"},
	{"/.sluice/derby/status?x", "derby/status"},
	{"/.sluice/", ""},
	{"/.SLUICE/derby/status", "derby/status"},
	{"/.sluice/derby/STATUS", "derby/STATUS"},
	{"/.sluice/%64erby/status", "derby/status"},
	{"//.sluice//derby/./status", "derby/status"},
	{"/x/../.sluice/derby/draw/keys", "derby/draw/keys"},
	{"/.sluice/..", NULL},
	{"/%252esluice/derby/status", NULL},
};

static void endpoints_are_read_resolved(void **state)
{
	(void)state;
	for (size_t i = 0; i < sizeof(endpoints) / sizeof(endpoints[0]); i++) {
		const char *target = endpoints[i].target, *endpoint = endpoints[i].endpoint;
		struct match match = match_flush(&town_sites[TOWN_SHOP], target, strlen(target));
		assert_int_equal(match.kind, MATCH_SLUICE);
		bool is_same = endpoint ? match.endpoint.at &&
						  span_is_equal(match.endpoint,
							  (struct span){endpoint, strlen(endpoint)})
					: !match.endpoint.at;
		if (!is_same)
			fail_msg("%s", target);
	}
}

// A path that climbs ambiguously, at the limit and one beyond; and others of any length.
static void long_climbs_are_refused(void **state)
{
	(void)state;
	const struct gate_site *site = &town_sites[TOWN_SHOP];
	static const char *const ambiguous[] = {"/a//../", "/a\\/../", "/a%2f/../", "/a/..;/"};
	char target[2 * MATCH_CLIMB_BYTES_MAX];
	for (size_t i = 0; i < 4; i++) {
		memset(target, 'x', sizeof(target));
		memcpy(target, ambiguous[i], strlen(ambiguous[i]));
		assert_int_equal(match_flush(site, target, MATCH_CLIMB_BYTES_MAX).kind, MATCH_NONE);
		assert_int_equal(
			match_flush(site, target, MATCH_CLIMB_BYTES_MAX + 1).kind, MATCH_BAD);
	}
	static const char *const plain[] = {"/a/../", "/a//b/", "/a;v=1/", "/a..b//", "/%2f/a/"};
	for (size_t i = 0; i < 5; i++) {
		memset(target, 'x', sizeof(target));
		memcpy(target, plain[i], strlen(plain[i]));
		assert_int_equal(match_flush(site, target, sizeof(target)).kind, MATCH_NONE);
	}
}

static char *host_guard, *host_scratch;

static const struct {
	const char *name, *host, *matched; // matched: NULL if no site
	int site;
} hosts[] = {
	{"exact", "shop.example", "shop.example", TOWN_SHOP},
	{"capitals", "SHOP.Example", "shop.example", TOWN_SHOP},
	{"with a port", "shop.example:8080", "shop.example", TOWN_SHOP},
	{"with an empty port", "shop.example:", "shop.example", TOWN_SHOP},
	{"with a dot", "shop.example.", "shop.example", TOWN_SHOP},
	{"with a dot and a port", "shop.example.:443", "shop.example", TOWN_SHOP},
	{"with two dots", "shop.example..", NULL, 0},
	{"with a bad port", "shop.example:http", NULL, 0},
	{"with two ports", "shop.example:1:2", NULL, 0},
	{"IPv4", "127.0.0.1", "127.0.0.1", TOWN_SHOP},
	{"IPv6", "[::1]", "[::1]", TOWN_SHOP},
	{"IPv6 with a port", "[::1]:8080", "[::1]", TOWN_SHOP},
	{"IPv6 of nobody", "[::2]", NULL, 0},
	{"IPv6 open", "[::1", NULL, 0},
	{"IPv6 without brackets", "::1", NULL, 0},
	{"wildcard", "a.shop.example", "a.shop.example", TOWN_SHOP},
	{"wildcard, two labels", "a.b.shop.example", "a.b.shop.example", TOWN_SHOP},
	{"wildcard, capitals", "A.Shop.EXAMPLE:1", "a.shop.example", TOWN_SHOP},
	{"the longest wildcard", "a.deep.shop.example", "a.deep.shop.example", TOWN_STRICT},
	{"a wildcard's own name is below another", "deep.shop.example", "deep.shop.example",
		TOWN_SHOP},
	{"a wildcard wants a label", ".shop.example", NULL, 0},
	{"an empty label", "a..shop.example", NULL, 0},
	{"no wildcard", "a.whole.example", NULL, 0},
	{"a suffix is not enough", "myshop.example", NULL, 0},
	{"nobody", "nobody.example", NULL, 0},
	{"empty", "", NULL, 0},
	{"a dot", ".", NULL, 0},
	{"a port alone", ":80", NULL, 0},
	{"user information", "u@shop.example", NULL, 0},
	{"a path", "shop.example/x", NULL, 0},
	{"an escape", "shop%2eexample", NULL, 0},
	{"white space", "shop.example ", NULL, 0},
	{"a letter that no name has", "a$.shop.example", NULL, 0},
};

static void hosts_name_sites(void **state)
{
	(void)state;
	assert_true(match_map_is_sorted(&town));
	for (size_t i = 0; i < sizeof(hosts) / sizeof(hosts[0]); i++) {
		const char *host = hosts[i].host, *expected = hosts[i].matched;
		size_t len = strlen(host);
		struct span matched = {NULL, 0};
		const struct gate_site *site =
			gate_map_site(&town, (struct span){guard_put(host_guard, host, len), len},
				host_scratch - 256, &matched);
		if (site != (expected ? &town_sites[hosts[i].site] : NULL))
			fail_msg("%s", hosts[i].name);
		if (expected && !span_is_equal(matched, (struct span){expected, strlen(expected)}))
			fail_msg("%s: matched %.*s", hosts[i].name, (int)matched.len, matched.at);
	}
}

static void host_names_have_a_longest(void **state)
{
	(void)state;
	char host[MATCH_HOST_BYTES_MAX + 2];
	const char tail[] = ".shop.example";
	struct span matched;
	for (size_t len = MATCH_HOST_BYTES_MAX; len <= MATCH_HOST_BYTES_MAX + 1; len++) {
		memset(host, 'a', len);
		memcpy(host + len - strlen(tail), tail, strlen(tail));
		const struct gate_site *site = gate_map_site(
			&town, (struct span){host, len}, host_scratch - 256, &matched);
		assert_true((site != NULL) == (len <= MATCH_HOST_BYTES_MAX));
	}
}

static void rooms_have_names(void **state)
{
	(void)state;
	for (int i = 0; i < TOWN_ROOMS; i++)
		assert_ptr_equal(gate_map_room(&town, town_rooms[i].name), &town_rooms[i]);
	static const char *const nobody[] = {"", "derb", "derbyx", "Derby", "a", "zzz", "xz"};
	for (size_t i = 0; i < sizeof(nobody) / sizeof(nobody[0]); i++)
		assert_null(gate_map_room(&town, (struct span){nobody[i], strlen(nobody[i])}));
	struct gate_map empty = {0};
	assert_null(gate_map_room(&empty, town_rooms[0].name));
}

static void a_map_out_of_order_is_noticed(void **state)
{
	(void)state;
	struct gate_host host = town_hosts[0];
	town_hosts[0] = town_hosts[1];
	town_hosts[1] = host;
	assert_false(match_map_is_sorted(&town));
	town_hosts[1] = town_hosts[0];
	town_hosts[0] = host;
	town_rooms[TOWN_VIP].index = 0;
	assert_false(match_map_is_sorted(&town));
	town_rooms[TOWN_VIP].index = TOWN_VIP;
	const struct gate_room *room = town_shop_rooms[1];
	town_shop_rooms[1] = town_shop_rooms[2];
	town_shop_rooms[2] = room;
	assert_false(match_map_is_sorted(&town));
	town_shop_rooms[2] = town_shop_rooms[1];
	town_shop_rooms[1] = room;
	assert_true(match_map_is_sorted(&town));
}

int main(void)
{
	host_guard = guard_make();
	host_scratch = guard_make();
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(paths_of_a_site),
		cmocka_unit_test(paths_of_other_sites),
		cmocka_unit_test(endpoints_are_read_resolved),
		cmocka_unit_test(long_climbs_are_refused),
		cmocka_unit_test(hosts_name_sites),
		cmocka_unit_test(host_names_have_a_longest),
		cmocka_unit_test(rooms_have_names),
		cmocka_unit_test(a_map_out_of_order_is_noticed),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
