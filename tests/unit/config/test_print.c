// What comes out: the table for people and programs, the page, the example; the difference of two
// configurations, and the bill.

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "config/key.h"
#include "tests/unit/config/fixture.h"

#include <jansson.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static char *printed(void (*print)(FILE *))
{
	char *text;
	size_t len;
	FILE *out = open_memstream(&text, &len);
	print(out);
	fclose(out);
	return text;
}

static char *file_text(const char *path)
{
	static char text[1 << 16];
	FILE *file = fopen(path, "r");
	assert_non_null(file);
	text[fread(text, 1, sizeof(text) - 1, file)] = '\0';
	fclose(file);
	return text;
}

// The committed example is what the table says now. To renew it: sluice keys example.
static void test_example_is_generated(void **state)
{
	(void)state;
	char *example = printed(config_print_example);
	assert_string_equal(example, file_text(EXAMPLES "/sluice.yaml"));
	free(example);
}

static void test_examples_are_good(void **state)
{
	(void)state;
	config_destroy(fixture_config(file_text(EXAMPLES "/sluice.yaml")));
	config_destroy(fixture_config(file_text(EXAMPLES "/minimal.yaml")));
	config_destroy(fixture_config(file_text(EXAMPLES "/club.yaml")));
}

// The example gives every key its default: it reads as the same configuration as a file that gives
// only what is required.
static void test_example_is_all_defaults(void **state)
{
	(void)state;
	char *differences;
	size_t len;
	FILE *out = open_memstream(&differences, &len);
	struct config *example = fixture_config(file_text(EXAMPLES "/sluice.yaml"));
	struct config *bare = fixture_config(
		"listen: [{address: '127.0.0.1:8080'}]\nsites: [{name: shop, hosts: "
		"[tickets.example, '*.tickets.example'], origin: {servers: ['127.0.0.1:9000']}, "
		"rooms: [{name: derby, path: /derby}]}]\n");
	assert_int_equal(config_diff(bare, example, out), 0);
	fclose(out);
	free(differences);
	assert_memory_equal(example->http, bare->http, sizeof(*bare->http));
	const struct config_room *a = example->sites.at[0].rooms.at,
				 *b = bare->sites.at[0].rooms.at;
	assert_memory_equal(
		&a->capacity, &b->capacity, sizeof(*a) - offsetof(struct config_room, capacity));
	config_destroy(example);
	config_destroy(bare);
}

static void test_every_key_is_everywhere(void **state)
{
	(void)state;
	char *keys = printed(config_print_keys), *manual = printed(config_print_manual);
	char *example = printed(config_print_example);
	for (const struct key *key = key_table; key < key_table + key_count; key++) {
		char line[128];
		snprintf(line, sizeof(line), "\n%s%s  ", key->scope->path, key->name);
		if (strlen(key->scope->path) + strlen(key->name) < 30)
			assert_non_null(strstr(keys, line));
		snprintf(line, sizeof(line), ".It Ic %s%s\n", key->scope->path, key->name);
		assert_non_null(strstr(manual, line));
		snprintf(line, sizeof(line), "%s:", key->name);
		assert_non_null(strstr(example, line));
	}
	free(keys);
	free(manual);
	free(example);
}

// One sentence each, short, and nothing that mdoc or YAML would take for itself.
static void test_help_is_plain(void **state)
{
	(void)state;
	for (const struct key *key = key_table; key < key_table + key_count; key++) {
		size_t len = strlen(key->help);
		assert_in_range(len, 10, 96);
		assert_int_equal(key->help[len - 1], '.');
		assert_null(strpbrk(key->help, "\\\"\n"));
		assert_true(key->help[0] >= 'A' && key->help[0] <= 'Z');
	}
}

static void test_json(void **state)
{
	(void)state;
	char *text = printed(config_print_json);
	json_t *keys = json_loads(text, 0, NULL);
	assert_int_equal(json_array_size(keys), key_count);
	for (unsigned i = 0; i < key_count; i++) {
		const json_t *object = json_array_get(keys, i);
		const char *name = json_string_value(json_object_get(object, "name"));
		if (strcmp(name, "sites[].rooms[].session") != 0)
			continue;
		char *session = json_dumps(object, JSON_SORT_KEYS);
		assert_string_equal(session,
			"{\"change\": \"reload\", \"default\": \"10m\", \"help\": \"How long a "
			"pass lasts.\", \"max\": 604800, \"min\": 1, \"name\": "
			"\"sites[].rooms[].session\", \"range\": \"1s..7d\", \"required\": false, "
			"\"type\": \"duration\", \"unit\": \"s\"}");
		free(session);
	}
	json_decref(keys);
	free(text);
}

#define SITES "sites: [{name: shop, hosts: [a], origin: {servers: ['b:1']}}]\n"
#define REST "listen: [{address: '127.0.0.1:80'}]\n" SITES

static const struct diff_case {
	const char *now, *next, *keys;
} diff_cases[] = {
	{REST, REST, ""},
	{REST, "drain: 20s\nlog: debug\n" REST, ""},
	{REST, "drain: 20s\nstate: /srv\n" REST, "state\n"},
	{REST, "connections: 100\norigin_connections: 2500\nconnections_per_source: 100\n" REST,
		"connections\nconnections_per_source\ntls_connections\n"},
	{REST, "workers: [0]\n" REST, "workers\n"},
	{"workers: [0, 1]\n" REST, "workers: [0, 2]\n" REST, "workers\n"},
	{"workers: [0, 1]\n" REST, "workers: [0, 1]\n" REST, ""},
	{REST, "user: sluice\n" REST, "user\n"},
	{REST, "http: {line_max: 4k}\n" REST, "http.line_max\n"},
	{REST, "listen: [{address: '127.0.0.1:81'}]\n" SITES, "listen[0].address\n"},
	{REST, "listen: [{address: '127.0.0.1:80', proxy_protocol: true}]\n" SITES,
		"listen[0].proxy_protocol\n"},
	{REST, "listen: [{address: '127.0.0.1:80'}, {address: '127.0.0.1:81'}]\n" SITES,
		"listen\n"},
	{REST, "trusted_proxies: [10.0.0.0/8]\n" REST, ""},
	{REST,
		"listen: [{address: '127.0.0.1:80'}]\n"
		"sites: [{name: club, hosts: [c], origin: {servers: ['d:1'], tls: {}}, rooms: "
		"[{name: a, path: /a}]}, {name: shop, hosts: [a], origin: {servers: ['b:1']}}]\n",
		""},
};

static void test_diff(void **state)
{
	(void)state;
	for (size_t i = 0; i < sizeof(diff_cases) / sizeof(diff_cases[0]); i++) {
		const struct diff_case *c = &diff_cases[i];
		struct config *now = fixture_config(c->now), *next = fixture_config(c->next);
		char *keys;
		size_t len;
		unsigned lines = 0;
		FILE *out = open_memstream(&keys, &len);
		uint32_t count = config_diff(now, next, out);
		fclose(out);
		assert_string_equal(keys, c->keys);
		for (const char *at = keys; (at = strchr(at, '\n')); at++)
			lines++;
		assert_int_equal(count, lines);
		free(keys);
		config_destroy(now);
		config_destroy(next);
	}
}

static uint64_t port_bytes(const struct config *c, uint32_t worker_count)
{
	return 5 * c->connections * worker_count;
}

static uint64_t cluster_bytes(const struct config *c, uint32_t worker_count)
{
	return 10 * c->left_max + worker_count;
}

static const struct config_bill_row rows[] = {
	{"fixed", CONFIG_PER_PROCESS, 3, 1000},
	{"workers", CONFIG_PER_WORKER, 1, 64},
	{"connections", CONFIG_PER_CONNECTION, 1, 256},
	{"origin connections", CONFIG_PER_ORIGIN_CONNECTION, 1, 300},
	{"origin TLS", CONFIG_PER_ORIGIN_TLS, 1, 100},
	{"buffers", CONFIG_PER_BUFFER, 1, 16},
	{"their bytes", CONFIG_PER_BUFFER_BYTE, 1, 1},
	{"heads", CONFIG_PER_HEAD_BYTE, 2, 1},
	{"rooms", CONFIG_PER_ROOM, 1, 200},
	{"sessions", CONFIG_PER_SESSION, 2, 32},
	{"present", CONFIG_PER_PRESENT, 1, 16},
	{"left", CONFIG_PER_LEFT, 1, 8},
	{"ended", CONFIG_PER_ENDED, 2, 16},
	{"streams", CONFIG_PER_SOCKET, 1, 1},
	{"ports", CONFIG_PER_PORT_BYTE, 1, 1},
	{"network", CONFIG_PER_NETWORK_BYTE, 1, 1},
	{"link", CONFIG_PER_CLUSTER, 1, 1},
	{"ranks", CONFIG_PER_SHARED_ROOM, 1, 10},
	{"cluster", CONFIG_PER_CLUSTER_BYTE, 1, 1},
};
static const struct config_bill bill = {.row_count = sizeof(rows) / sizeof(rows[0]),
	.rows = rows,
	.port_bytes = port_bytes,
	.network_bytes = NULL,
	.cluster_bytes = cluster_bytes};

static void test_bill(void **state)
{
	(void)state;
	struct config *c = fixture_config(
		"{connections: 100, origin_connections: 10, sessions_max: 50, present_max: 20,\n"
		"left_max: 30, ended_max: 40, buffers: {per_worker: 16, size: 8k}, http: "
		"{head_max: 8k},\n"
		"listen: [{address: '127.0.0.1:80'}], sites: [{name: shop, hosts: [a], origin: "
		"{servers: ['b:1'], tls: {}}, rooms: [{name: a, path: /a}, {name: b, path: "
		"/b}]}]}\n");
	char *text;
	size_t len;
	FILE *out = open_memstream(&text, &len);
	config_bill_print(c, &bill, 3, out);
	fclose(out);
	assert_string_equal(text,
		"memory                            entries   bytes each            bytes\n"
		"fixed                                   3         1000             3000\n"
		"workers                                 3           64              192\n"
		"connections                           100          256            25600\n"
		"origin connections                     10          300             3000\n"
		"origin TLS                             10          100             1000\n"
		"buffers                                48           16              768\n"
		"their bytes                        393216            1           393216\n"
		"heads                              786432            1           786432\n"
		"rooms                                   2          200              400\n"
		"sessions                              200           32             6400\n"
		"present                                40           16              640\n"
		"left                                   60            8              480\n"
		"ended                                  80           16             1280\n"
		"streams                               100            1              100\n"
		"ports                                1500            1             1500\n"
		"network                                 0            1                0\n"
		"link                                    0            1                0\n"
		"ranks                                   0           10                0\n"
		"cluster                                 0            1                0\n"
		"total                                                           1224008\n");
	assert_int_equal(config_bill_total(c, &bill, 3), 1224008);
	c->driver = CONFIG_DRIVER_DPDK;
	assert_int_equal(config_bill_total(c, &bill, 3), 1223908);
	c->store.kind = CONFIG_STORE_REDIS;
	assert_int_equal(config_bill_total(c, &bill, 3), 1223908 + 1 + 20 + 303);
	c->store.kind = CONFIG_STORE_EMBEDDED;
	free(text);
	config_destroy(c);
}

static void test_bill_saturates(void **state)
{
	(void)state;
	struct config *c = fixture_config(REST);
	struct config_bill_row two[] = {
		{"a", CONFIG_PER_CONNECTION, 2, UINT64_MAX / 4}, {"b", CONFIG_PER_PROCESS, 1, 1}};
	assert_int_equal(
		config_bill_total(c, &(struct config_bill){.row_count = 1, .rows = two}, 1),
		UINT64_MAX);
	assert_int_equal(
		config_bill_total(c, &(struct config_bill){.row_count = 2, .rows = two}, 1),
		UINT64_MAX);
	struct config_bill_row tls = {"c", CONFIG_PER_ORIGIN_TLS, 1, 1};
	assert_int_equal(
		config_bill_total(c, &(struct config_bill){.row_count = 1, .rows = &tls}, 1), 0);
	config_destroy(c);
}

static void test_worker_count(void **state)
{
	(void)state;
	static const struct {
		const char *text;
		int cores;
		uint32_t count;
	} cases[] = {
		{REST, 1, 1},
		{REST, 2, 1},
		{REST, 3, 2},
		{REST, 65, 64},
		{REST, 66, 64},
		{"workers: [0, 1, 2]\n" REST, 4, 3},
	};
	for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
		struct config *c = fixture_config(cases[i].text);
		struct config_machine machine = {0};
		for (int core = 0; core < cases[i].cores; core++)
			CPU_SET(core, &machine.cores);
		assert_int_equal(config_worker_count(c, &machine), cases[i].count);
		config_destroy(c);
	}
}

static void test_machine(void **state)
{
	(void)state;
	struct config_machine machine;
	config_machine_read(&machine);
	assert_true(machine.descriptors >= 64);
	assert_true(machine.memory_bytes > 1 << 20);
	assert_true(CPU_COUNT(&machine.cores) > 0);
	assert_true(machine.has_user("root"));
	assert_false(machine.has_user("no user of this name"));
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_example_is_generated),
		cmocka_unit_test(test_examples_are_good),
		cmocka_unit_test(test_example_is_all_defaults),
		cmocka_unit_test(test_every_key_is_everywhere),
		cmocka_unit_test(test_help_is_plain),
		cmocka_unit_test(test_json),
		cmocka_unit_test(test_diff),
		cmocka_unit_test(test_bill),
		cmocka_unit_test(test_bill_saturates),
		cmocka_unit_test(test_worker_count),
		cmocka_unit_test(test_machine),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
