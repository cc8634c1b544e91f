// From text to structs: what YAML may and may not do, kinds, defaults, and that all errors are
// listed.

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "config/tree.h"
#include "tests/unit/config/fixture.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define LISTEN "listen: [{address: '127.0.0.1:80'}]\n"
#define SITES "sites: [{name: shop, hosts: [a], origin: {servers: ['b:1']}}]\n"
#define REST LISTEN SITES

static const struct read_case {
	const char *name, *text, *errors;
} cases[] = {
	{"good", REST, ""},
	{"with a byte order mark", "\xef\xbb\xbf" REST, ""},
	{"with CRLF", "listen: [{address: '127.0.0.1:80'}]\r\n" SITES, ""},
	{"with a document's start and end", "---\n" REST "...\n", ""},

	// YAML itself.
	{"empty", "",
		"t.yaml:1:1: listen: is missing; allowed: a list of 1 to 64, each a mapping with "
		"`address`\n"
		"t.yaml:1:1: sites: is missing; allowed: a list of 1 to 256, each a mapping with "
		"`name`, `hosts`, `origin`\n"},
	{"comments only", "# none\n",
		"t.yaml:1:1: listen: is missing; allowed: a list of 1 to 64, each a mapping with "
		"`address`\n"
		"t.yaml:1:1: sites: is missing; allowed: a list of 1 to 256, each a mapping with "
		"`name`, `hosts`, `origin`\n"},
	{"a single value", "sluice\n", "t.yaml:1:1: a single value; allowed: keys and values\n"},
	{"a list", "- sluice\n", "t.yaml:1:1: a list; allowed: keys and values\n"},
	{"a name that begins with a star", "user: *a.b\n" REST,
		"t.yaml:1:9: not YAML: did not find expected alphabetic or numeric character, "
		"while scanning an alias; allowed: a text that begins with * in quotes\n"},
	{"a colon in a text", "user: a: b\n" REST,
		"t.yaml:1:8: not YAML: mapping values are not allowed in this context; allowed: a "
		"text with ': ' in it in quotes\n"},
	{"two documents", REST "---\n" REST, "t.yaml:3:1: a second document; allowed: one\n"},
	{"a tab to indent", "http:\n\tline_max: 8k\n" REST,
		"t.yaml:2:1: a tab; allowed: spaces to indent\n"},
	{"a tab after blanks", "http:\n  \tline_max: 8k\n" REST,
		"t.yaml:2:3: a tab; allowed: spaces to indent\n"},
	{"a tab elsewhere", "drain: 10s\t# ten\n" REST, ""},
	{"an anchor", "drain: &d 10s\n" REST, "t.yaml:1:8: anchor or alias 'd'; allowed: none\n"},
	{"an alias", "drain: *d\n" REST, "t.yaml:1:8: anchor or alias 'd'; allowed: none\n"},
	{"a merge", "http: {<<: 1}\n" REST,
		"t.yaml:1:8: http.'<<': unknown key; the nearest known is http.line_max\n"},
	{"a tag", "drain: !!str 10s\n" REST,
		"t.yaml:1:8: tag 'tag:yaml.org,2002:str'; allowed: none\n"},
	{"a list as a key", "? [a]\n: b\n" REST,
		"t.yaml:1:3: a list or mapping as a key; allowed: a word\n"},
	{"a NUL", "state: \"a\\0b\"\n" REST, "t.yaml:1:8: a NUL inside a text\n"},
	{"not UTF-8", "drain: 10s\nstate: ab\xff\n" REST,
		"t.yaml:2:10: not text in UTF-8: invalid leading UTF-8 octet\n"},
	{"a control character", "state: a\x01\n" REST,
		"t.yaml:1:9: not text in UTF-8: control characters are not allowed\n"},
	{"an unclosed list", "listen: [\n",
		"t.yaml:2:1: not YAML: did not find expected node content, while parsing a flow "
		"node\n"},
	{"an unclosed quote", "state: 'a\n",
		"t.yaml:2:1: not YAML: found unexpected end of stream, while scanning a quoted "
		"scalar; allowed: "
		"quotes that end as they begin\n"},
	{"a key without a value's place", "drain 10s\nlisten: []\n",
		"t.yaml:1:1: a single value; allowed: keys and values\n"},
	{"a missing colon", "drain: 10s\nlog info\n" REST,
		"t.yaml:3:1: not YAML: could not find expected ':', while scanning a simple key\n"},
	{"terminal escapes in a value", "state: \"/a\\e[31m\\x9b\"\n" REST,
		"t.yaml:1:8: state: '/a\\x1b[31m\\xc2\x9b' has control characters; allowed: the "
		"path of a file or folder\n"},

	// Kinds.
	{"a list for a value", "drain: [10s]\n" REST,
		"t.yaml:1:1: drain: is a list; allowed: a duration from 0s to 1h\n"},
	{"a mapping for a value", "drain: {s: 10}\n" REST,
		"t.yaml:1:1: drain: is a mapping; allowed: a duration from 0s to 1h\n"},
	{"nothing for a value", "drain:\n" REST,
		"t.yaml:1:7: drain: '' is empty; allowed: a duration from 0s to 1h\n"},
	{"a value for a list", "workers: 2\n" REST,
		"t.yaml:1:10: workers: '2' is a single value; allowed: a list of 1 to 64, each a "
		"core "
		"from 0 to 1023\n"},
	{"a value for a mapping", "http: fast\n" REST,
		"t.yaml:1:7: http: 'fast' is a single value; allowed: a mapping\n"},
	{"none for a mapping that must be", "http: none\n" REST,
		"t.yaml:1:7: http: 'none' is a single value; allowed: a mapping\n"},
	{"a list for a mapping", "http: []\n" REST,
		"t.yaml:1:1: http: is a list; allowed: a mapping\n"},
	{"a value among mappings", "listen: [{address: '127.0.0.1:80'}, 81]\n" SITES,
		"t.yaml:1:37: listen[1]: '81' is a single value; allowed: a mapping with "
		"`address`\n"},
	{"a list in a list of values", "workers: [[0]]\n" REST,
		"t.yaml:1:11: workers[0]: is a list; allowed: a core from 0 to 1023\n"},
	{"a wrong value in a list", "trusted_proxies: [10.0.0.0/8, here]\n" REST,
		"t.yaml:1:31: trusted_proxies[1]: 'here' is not a network; allowed: a network, as "
		"in 10.0.0.0/8 or 2001:db8::/32\n"},
	{"an empty list", "listen: []\n" SITES,
		"t.yaml:1:1: listen: has a wrong length; allowed: a list of 1 to 64, each a "
		"mapping with "
		"`address`\n"},

	// Keys.
	{"an unknown key", "conections: 5\n" REST,
		"t.yaml:1:1: 'conections': unknown key; the nearest known is connections\n"},
	{"an unknown key below",
		LISTEN "sites: [{name: shop, hosts: [a], orgin: {}, "
		       "origin: {servers: ['b:1']}}]\n",
		"t.yaml:2:34: sites[0].'orgin': unknown key; the nearest known is "
		"sites[0].origin\n"},
	{"a key in the wrong place", "capacity: 500\n" REST,
		"t.yaml:1:1: 'capacity': unknown key here; known is sites[].rooms[].capacity\n"},
	{"a key twice", "drain: 10s\ndrain: 20s\n" REST,
		"t.yaml:2:1: drain: given twice, first on line 1\n"},
	{"a key missing below", LISTEN "sites: [{name: shop, hosts: [a]}]\n",
		"t.yaml:2:9: sites[0].origin: is missing; allowed: a mapping with `servers`\n"},

	// Keys of versions to come.
	{"later keys at their values",
		"dpdk: none\nstore: embedded\nstore_password_file: none\ncluster: none\n"
		"listen: [{address: '127.0.0.1:80', tls: none}]\n"
		"sites: [{name: shop, hosts: [a], origin: {servers: ['b:1']}, pages: none, rooms: "
		"[{name: a, path: /a, order: "
		"arrival, window: none, window_max: 60s, opens: none, closes: none, "
		"prequeue: none, lanes: []}]}]\n",
		""},

	{"all errors, in the order of the file",
		"drain: 10\nlisten: [{address: here}]\nlog: loud\nsites:\n"
		"  - {name: a/b, hosts: ['*'], origin: {servers: []}}\nusr: x\n",
		"t.yaml:1:8: drain: '10' has no unit (s, m, h, d); allowed: a duration from 0s to "
		"1h\n"
		"t.yaml:2:20: listen[0].address: 'here' has no port; allowed: ADDRESS:PORT, as in "
		"192.0.2.1:80 or [2001:db8::1]:80\n"
		"t.yaml:3:6: log: 'loud' is not one of the words; allowed: error, warning, info or "
		"debug\n"
		"t.yaml:5:12: sites[0].name: 'a/b' has other characters; allowed: 1 to 63 letters, "
		"digits, '_', '.' or '-'\n"
		"t.yaml:5:25: sites[0].hosts[0]: '*' has '*' for a part of a label; allowed: a "
		"host name, an address, or *.NAME\n"
		"t.yaml:5:40: sites[0].origin.servers: has a wrong length; allowed: a list of 1 to "
		"64, each HOST:PORT, as in 10.0.0.1:80, [2001:db8::1]:80 or shop.internal:80\n"
		"t.yaml:6:1: 'usr': unknown key; the nearest known is user\n"},
};

static void test_cases(void **state)
{
	(void)state;
	struct config_machine machine = fixture_machine();
	for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
		char *errors = fixture_errors(cases[i].text, &machine);
		print_message("%s\n", cases[i].name);
		assert_string_equal(errors, cases[i].errors);
		free(errors);
	}
}

static void test_long_values_are_cut_between_characters(void **state)
{
	(void)state;
	struct config_machine machine = fixture_machine();
	char *errors = fixture_errors(
		"log: '-----------------------------------------------------------日本語'\n" REST,
		&machine);
	assert_non_null(strstr(errors, ": '-----------------------------------------------------"
				       "------...' is not one of"));
	free(errors);
}

static void test_defaults(void **state)
{
	(void)state;
	struct config *c = fixture_config(
		LISTEN "sites: [{name: shop, hosts: [a], origin: {servers: ['b:1']}, rooms: "
		       "[{name: derby, path: /derby}, {name: r, path: /r, rate: 120/min}]}]\n");
	assert_int_equal(c->driver, CONFIG_DRIVER_SOCKETS);
	assert_int_equal(c->workers.count, 0);
	assert_int_equal(c->connections, 10000);
	assert_int_equal(c->origin_connections, 2500);
	assert_int_equal(c->connections_per_source, 2500);
	assert_string_equal(c->state, "/var/lib/sluice");
	assert_null(c->user);
	assert_int_equal(c->drain_ms, 10000);
	assert_int_equal(c->log, CONFIG_LOG_INFO);
	assert_false(c->listen.at[0].proxy_protocol);
	assert_int_equal(c->trusted_proxies.count, 0);
	assert_int_equal(c->http->line_bytes, 8192);
	assert_int_equal(c->http->head_bytes, 16384);
	assert_int_equal(c->http->fields, 100);
	assert_int_equal(c->http->head_timeout_ms, 10000);

	const struct config_site *site = &c->sites.at[0];
	assert_false(site->case_sensitive);
	assert_null(site->cookie_domain);
	assert_int_equal(site->pass_same_site, CONFIG_SAME_SITE_NONE);
	assert_int_equal(site->preflight_rate.count, 100);
	assert_null(site->origin->tls);
	const struct config_room *room = &site->rooms.at[0];
	assert_int_equal(room->capacity, 0);
	assert_int_equal(room->rate.count, 0);
	assert_int_equal(room->burst, 1);
	assert_int_equal(room->session_s, 600);
	assert_false(room->sliding);
	assert_int_equal(room->claim_s, 120);
	assert_int_equal(room->mode, CONFIG_MODE_AUTO);
	assert_int_equal(room->queue_status, 200);
	assert_int_equal(room->ticket_ttl_s, 86400);
	assert_int_equal(room->line_max, 0);
	assert_int_equal(site->rooms.at[1].burst, 2); // one second of 120/min
	config_destroy(c);
}

static void test_line_id(void **state)
{
	(void)state;
	struct config *c = fixture_config(
		LISTEN "sites: [{name: shop, hosts: [a], origin: {servers: ['b:1']}, rooms: "
		       "[{name: derby, path: /derby}]}]\n");
	assert_int_equal(c->sites.at[0].rooms.at[0].line_id, 0x4baea541);
	config_destroy(c);
}

static void test_tls_to_origin(void **state)
{
	(void)state;
	struct config *c = fixture_config(
		LISTEN "sites: [{name: shop, hosts: [a], origin: {servers: ['b:1'], tls: {}}},\n"
		       "{name: club, hosts: [b], origin: {servers: ['b:1'], tls: "
		       "{ca: /etc/ca.pem, name: B.example}}}]\n");
	assert_non_null(c->sites.at[0].origin->tls);
	assert_null(c->sites.at[0].origin->tls->ca);
	assert_null(c->sites.at[0].origin->tls->name);
	assert_string_equal(c->sites.at[1].origin->tls->ca, "/etc/ca.pem");
	assert_string_equal(c->sites.at[1].origin->tls->name, "b.example");
	config_destroy(c);
}

// Relative files are beside the configuration.
static void test_relative_files(void **state)
{
	(void)state;
	struct config_machine machine = fixture_machine();
	static const struct {
		const char *path, *folder;
	} places[] = {
		{"/etc/sluice/sluice.yaml", "/etc/sluice/lib"},
		{"sluice.yaml", "lib"},
		{"./sluice.yaml", "./lib"},
		{"/sluice.yaml", "/lib"},
	};
	for (size_t i = 0; i < sizeof(places) / sizeof(places[0]); i++) {
		struct config_report report = {0};
		struct config *c;
		static const char text[] = "state: lib\n" REST;
		assert_int_equal(
			config_read(places[i].path, text, sizeof(text) - 1, &machine, &c, &report),
			0);
		assert_string_equal(c->state, places[i].folder);
		config_destroy(c);
	}
}

// Bounds of a file, each at its limit and one beyond.

static char *repeat(const char *before, const char *unit, size_t count, const char *after)
{
	char *text;
	size_t len;
	FILE *out = open_memstream(&text, &len);
	fputs(before, out);
	for (size_t i = 0; i < count; i++)
		fputs(unit, out);
	fputs(after, out);
	fclose(out);
	return text;
}

static void assert_errors(char *text, const char *start)
{
	struct config_machine machine = fixture_machine();
	char *errors = fixture_errors(text, &machine);
	if (start)
		assert_memory_equal(errors, start, strlen(start));
	else
		assert_string_equal(errors, "");
	free(errors);
	free(text);
}

static void test_file_bytes(void **state)
{
	(void)state;
	size_t blanks = CONFIG_FILE_BYTES_MAX - strlen(REST);
	assert_errors(repeat(REST, "\n", blanks, ""), NULL);
	assert_errors(repeat(REST, "\n", blanks + 1, ""),
		"t.yaml:1:1: the file has 1048577 bytes; allowed: at most 1048576\n");
}

static void test_depth(void **state)
{
	(void)state;
	// The outer mapping is the first level.
	assert_errors(repeat("drain: ", "[", TREE_DEPTH_MAX, ""),
		"t.yaml:1:23: nested too deeply; allowed: 16 levels\n");
	assert_errors(repeat("drain: [[[[[[[[[[[[[[[1", "]", TREE_DEPTH_MAX - 1, "\n" REST),
		"t.yaml:1:1: drain: is a list; allowed: a duration");
	assert_errors(repeat("drain: ", "{a: ", 100000, ""), "t.yaml:1:68: nested too deeply");
}

static void test_nodes(void **state)
{
	(void)state;
	assert_errors(repeat("drain: [", "1,", TREE_NODES_MAX, "]\n"),
		"t.yaml:1:131071: too many values; allowed: 65536\n");
	assert_errors(repeat("drain: [", "1,", TREE_NODES_MAX - 100, "]\n" REST),
		"t.yaml:1:1: drain: is a list; allowed: a duration");
}

static void test_errors_are_bounded(void **state)
{
	(void)state;
	struct config_machine machine = fixture_machine();
	for (unsigned count = CONFIG_ERRORS_MAX; count <= CONFIG_ERRORS_MAX + 1; count++) {
		char *text = repeat("", "unknown: 1\n", count, REST);
		struct config_report report = {0};
		struct config *config;
		assert_int_equal(fixture_read(text, &machine, &config, &report), -EINVAL);
		assert_int_equal(report.count, count);
		assert_int_equal(report.listed, CONFIG_ERRORS_MAX);
		config_report_fini(&report);
		char *errors = fixture_errors(text, &machine);
		assert_int_equal(
			strstr(errors, "and 1 more errors\n") != NULL, count > CONFIG_ERRORS_MAX);
		free(errors);
		free(text);
	}
}

static void test_load(void **state)
{
	(void)state;
	struct config_machine machine = fixture_machine();
	struct config_report report = {0};
	struct config *config = NULL;
	assert_int_equal(config_load(EXAMPLES "/minimal.yaml", &machine, &config, &report), 0);
	assert_string_equal(config->sites.at[0].rooms.at[0].name, "derby");
	config_destroy(config);
	assert_int_equal(config_load("/nonexistent.yaml", &machine, &config, &report), -EINVAL);
	assert_string_equal(report.errors[0].text,
		"/nonexistent.yaml:1:1: cannot be read: No such file or directory");
	config_report_fini(&report);
	assert_int_equal(config_load("/", &machine, &config, &report), -EINVAL);
	assert_string_equal(report.errors[0].text, "/:1:1: cannot be read: Is a directory");
	config_report_fini(&report);
}

// The folder is found whatever else the file says.
static void test_load_state(void **state)
{
	(void)state;
	struct config_report report = {0};
	char folder[CONFIG_STATE_BYTES];
	assert_int_equal(config_load_state(EXAMPLES "/minimal.yaml", folder, &report), 0);
	assert_string_equal(folder, "/var/lib/sluice"); // by default
	assert_int_equal(config_load_state("/", folder, &report), -EINVAL);
	assert_int_equal(report.count, 1);
	config_report_fini(&report);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_cases),
		cmocka_unit_test(test_long_values_are_cut_between_characters),
		cmocka_unit_test(test_defaults),
		cmocka_unit_test(test_line_id),
		cmocka_unit_test(test_tls_to_origin),
		cmocka_unit_test(test_relative_files),
		cmocka_unit_test(test_file_bytes),
		cmocka_unit_test(test_depth),
		cmocka_unit_test(test_nodes),
		cmocka_unit_test(test_errors_are_bounded),
		cmocka_unit_test(test_load),
		cmocka_unit_test(test_load_state),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
