// The store's URL, byte by byte, and the rules of a store that several appliances share.

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "config/arena.h"
#include "config/store_url.h"
#include "tests/unit/config/fixture.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

#define A10 "aaaaaaaaaa"
#define A60 A10 A10 A10 A10 A10 A10
#define A100 A60 A10 A10 A10 A10
#define S3 "a:1,b:2,c:3,"
#define S15 S3 S3 S3 S3 S3
#define PATH_MAX_107 "/" A100 "aaaaaa"

#define NO_DB "has no number of a database at its end"
#define NO_PORT "has no port from 1 to 65535"

static const struct url_case {
	const char *text;
	enum config_store_kind kind;
	uint32_t servers;
	const char *user, *name, *last_host;
	uint16_t last_port;
	uint64_t db;
} urls[] = {
	{"embedded", CONFIG_STORE_EMBEDDED, 0, NULL, NULL, NULL, 0, 0},
	{"redis://10.0.0.1:6379", CONFIG_STORE_REDIS, 1, NULL, NULL, "10.0.0.1", 6379, 0},
	{"redis://sluice@redis:6379/3", CONFIG_STORE_REDIS, 1, "sluice", NULL, "redis", 6379, 3},
	{"redis://[2001:db8::1]:1/65535", CONFIG_STORE_REDIS, 1, NULL, NULL, "2001:db8::1", 1,
		65535},
	{"redis://Redis.Example:6379/0", CONFIG_STORE_REDIS, 1, NULL, NULL, "redis.example", 6379,
		0},
	{"sentinel://s1:26379/club", CONFIG_STORE_SENTINEL, 1, NULL, "club", "s1", 26379, 0},
	{"sentinel://u@s1:26379,10.0.0.2:26380,[::1]:7/my_club-1.x/12", CONFIG_STORE_SENTINEL, 3,
		"u", "my_club-1.x", "::1", 7, 12},
	{"sentinel://" S15 "d:4/club", CONFIG_STORE_SENTINEL, 16, NULL, "club", "d", 4, 0},
	{"unix:///run/redis.sock", CONFIG_STORE_UNIX, 0, NULL, "/run/redis.sock", NULL, 0, 0},
	{"unix://u@/run/redis.sock", CONFIG_STORE_UNIX, 0, "u", "/run/redis.sock", NULL, 0, 0},
	{"unix://" PATH_MAX_107, CONFIG_STORE_UNIX, 0, NULL, PATH_MAX_107, NULL, 0, 0},
	{"redis://" A60 "aaa@a:1", CONFIG_STORE_REDIS, 1, A60 "aaa", NULL, "a", 1, 0},
};

static const struct bad_url {
	const char *text, *wrong;
} bad_urls[] = {
	{"", "is no store"},
	{"Embedded", "is no store"},
	{"embedded ", "has other characters"},
	{"redis:/a:1", "is no store"},
	{"rediss://a:1", "is no store"},
	{"http://a:1", "is no store"},
	{"redis://", "has no port"},
	{"redis://a", "has no port"},
	{"redis://a:", NO_PORT},
	{"redis://a:0", NO_PORT},
	{"redis://a:65536", NO_PORT},
	{"redis://:1", "has no port"},
	{"redis://::1:1", "has other characters"},
	{"redis://a:1,b:1", "has too many servers"},
	{"redis://a:1/", NO_DB},
	{"redis://a:1/x", NO_DB},
	{"redis://a:1/1/", NO_DB},
	{"redis://a:1/65536", NO_DB},
	{"redis://a:1/100000", NO_DB},
	{"redis://a:1/-1", NO_DB},
	{"redis://@a:1", "has no user before '@'"},
	{"redis://a/b@a:1", "has no port"},
	{"redis://u:secret@a:1", "has a password, which belongs into store_password_file"},
	{"redis://:secret@a:1", "has a password, which belongs into store_password_file"},
	{"redis://" A60 "aaaa@a:1", "has no user before '@'"},
	{"redis://u u@a:1", "has other characters"},
	{"redis://a:1\x7f", "has other characters"},
	{"sentinel://a:1", "does not name a primary after its servers"},
	{"sentinel://a:1/", "does not name a primary after its servers"},
	{"sentinel://a:1//1", "does not name a primary after its servers"},
	{"sentinel://a:1/" A60 "aaaa", "does not name a primary after its servers"},
	{"sentinel://a:1/club/", NO_DB},
	{"sentinel://a:1,/club", "has no port"},
	{"sentinel://,a:1/club", "has no port"},
	{"sentinel://" S15 "d:4,e:5/club", "has too many servers"},
	{"unix://run/redis.sock", "has no path from the root"},
	{"unix://", "has no path from the root"},
	{"unix://" PATH_MAX_107 "a", "has too long a path for a socket"},
	{"redis://" A100 A100 A60 A10 "a:1", "is too long"}, // 271 bytes of a server
	{"redis://" A100 A100 A100 A100 A100 A100 A100 A100 A100 A100 A10, "is too long"},
};

static void must_equal(const char *a, const char *b)
{
	assert_int_equal(a == NULL, b == NULL);
	if (a)
		assert_string_equal(a, b);
}

struct place {
	char *pages;
	long page;
	struct arena arena;
};

static void must_make_place(struct place *place)
{
	place->page = sysconf(_SC_PAGESIZE);
	place->pages = mmap(
		NULL, 2 * place->page, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
	assert_int_equal(mprotect(place->pages + place->page, place->page, PROT_NONE), 0);
	assert_int_equal(arena_init(&place->arena), 0);
}

static void leave_place(struct place *place)
{
	arena_fini(&place->arena);
	munmap(place->pages, 2 * place->page);
}

// The text ends at an unmapped page.
static const char *read_url(struct place *place, const char *text, struct config_store *store)
{
	size_t bytes = strlen(text) + 1;
	print_message("'%s'\n", text);
	return store_url_read(NULL, memcpy(place->pages + place->page - bytes, text, bytes),
		&place->arena, store);
}

static void test_urls(void **state)
{
	(void)state;
	struct place place;
	must_make_place(&place);
	for (size_t i = 0; i < sizeof(urls) / sizeof(urls[0]); i++) {
		const struct url_case *c = &urls[i];
		struct config_store store = {.db = 99};
		must_equal(read_url(&place, c->text, &store), NULL);
		must_equal(store.text, c->text);
		must_equal(store.user, c->user);
		must_equal(store.name, c->name);
		assert_int_equal(store.kind, c->kind);
		assert_int_equal(store.db, c->db);
		assert_int_equal(store.servers.count, c->servers);
		if (!c->last_host)
			continue;
		must_equal(store.servers.at[c->servers - 1].host, c->last_host);
		assert_int_equal(store.servers.at[c->servers - 1].port, c->last_port);
	}
	leave_place(&place);
}

static void test_bad_urls(void **state)
{
	(void)state;
	struct place place;
	must_make_place(&place);
	for (size_t i = 0; i < sizeof(bad_urls) / sizeof(bad_urls[0]); i++) {
		struct config_store store = {.db = 99};
		must_equal(read_url(&place, bad_urls[i].text, &store), bad_urls[i].wrong);
		assert_int_equal(store.db, 99);
	}
	leave_place(&place);
}

static const char *password_error(const char *path)
{
	return strstr(path, "good") ? NULL : "/p: is empty";
}

static const char *key_error(const char *path)
{
	return strstr(path, "good") ? NULL : "/k: may be read by others";
}

#define REST \
	"\nlisten: [{address: '127.0.0.1:80'}]\nsites: [{name: shop, hosts: [a], origin: " \
	"{servers: " \
	"['b:1']}"
#define END REST "}]\n"

static const struct rule_case {
	const char *name, *text, *errors;
} rules[] = {
	{"embedded", "store: embedded" END, ""},
	{"no effect",
		"store_password_file: /good\ncluster: {appliance: a1, key_file: /bad}" REST
		", rooms: [{name: a, path: /a, on_store_loss: share}]}]\n",
		"t.yaml:1:22: warning: store_password_file: '/good' has no effect on an embedded "
		"store\n"
		"t.yaml:2:1: warning: cluster: has no effect on an embedded store\n"
		"t.yaml:4:105: warning: sites[0].rooms[0].on_store_loss: 'share' has no effect on "
		"an embedded store\n"},
	{"alone", "store: redis://a:1" END,
		"t.yaml:1:8: store: 'redis://a:1' is shared, and needs a name and a key; allowed: "
		"with `cluster`\n"},
	{"a password is not repeated", "store: redis://u:secret@a:1" END,
		"t.yaml:1:8: store: has a password, which belongs into store_password_file; "
		"allowed: embedded, redis://USER@HOST:PORT/DB, "
		"sentinel://USER@HOST:PORT,HOST:PORT/NAME/DB or unix://USER@PATH\n"},
	{"complete",
		"store: redis://u@a:1\nstore_password_file: /good\ncluster: {appliance: a1, "
		"key_file: /good}" END,
		""},
	{"draws",
		"store: redis://a:1\ncluster: {appliance: a1, key_file: /good}" REST
		", rooms: [{name: a, path: /a, order: window, window: 30s}, {name: b, path: "
		"/b}]}]\n",
		""},
	{"codes",
		"store: redis://a:1\ncluster: {appliance: a1, key_file: /good}" REST
		", rooms: [{name: a, path: /a, lanes: [{name: m, codes: codes.txt}]}]}]\n",
		""},
	{"no password", "store: redis://u@a:1\ncluster: {appliance: a1, key_file: /good}" END,
		"t.yaml:1:8: store: 'redis://u@a:1' has a user, who needs a password; allowed: "
		"with `store_password_file`\n"},
	{"bad files",
		"store: unix:///r\nstore_password_file: /bad\ncluster: {appliance: a1, key_file: "
		"/bad}" END,
		"t.yaml:2:22: store_password_file: '/bad' is no use: /p: is empty; allowed: a file "
		"of one line\n"
		"t.yaml:3:36: cluster.key_file: '/bad' is no use: /k: may be read by others; "
		"allowed: 64 hex digits, mode 0600\n"},
	{"no name, no key", "store: redis://a:1\ncluster: {sync: 1s}" END,
		"t.yaml:2:10: cluster.appliance: is missing; allowed: 1 to 32 letters, digits, "
		"'_', '.' or '-'\n"
		"t.yaml:2:10: cluster.key_file: is missing; allowed: the path of a file or "
		"folder\n"},
};

static void test_rules(void **state)
{
	(void)state;
	struct config_machine machine = fixture_machine();
	machine.password_error = password_error;
	machine.cluster_key_error = key_error;
	for (size_t i = 0; i < sizeof(rules) / sizeof(rules[0]); i++) {
		print_message("%s\n", rules[i].name);
		char *errors = fixture_errors(rules[i].text, &machine);
		assert_string_equal(errors, rules[i].errors);
		free(errors);
	}
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_urls),
		cmocka_unit_test(test_bad_urls),
		cmocka_unit_test(test_rules),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
