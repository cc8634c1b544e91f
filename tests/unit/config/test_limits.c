// Every bound in the table, at the limit and one beyond, straight from the table: a key that is
// added is tested without a word here.

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "config/key.h"
#include "tests/unit/config/fixture.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

// A file for each scope, with a place for one key. Much else is missing in it; only what is said of
// the key counts.
static const struct {
	const char *path, *format;
} files[] = {
	{"", "%s\n"},
	{"dpdk.", "dpdk: {%s}\n"},
	{"dpdk.ports[].", "dpdk: {ports: [{%s}]}\n"},
	{"listen[].", "listen: [{%s}]\n"},
	{"listen[].tls[].", "listen: [{tls: [{%s}]}]\n"},
	{"http.", "http: {%s}\n"},
	{"buffers.", "buffers: {%s}\n"},
	{"cluster.", "cluster: {%s}\n"},
	{"pools[].", "pools: [{%s}]\n"},
	{"sites[].", "sites: [{%s}]\n"},
	{"sites[].origin.", "sites: [{origin: {%s}}]\n"},
	{"sites[].origin.tls.", "sites: [{origin: {tls: {%s}}}]\n"},
	{"sites[].rooms[].", "sites: [{rooms: [{%s}]}]\n"},
	{"sites[].rooms[].events[].", "sites: [{rooms: [{events: [{%s}]}]}]\n"},
	{"sites[].rooms[].lanes[].", "sites: [{rooms: [{lanes: [{%s}]}]}]\n"},
};

static const char *format_of(const struct key *key)
{
	for (size_t i = 0; i < sizeof(files) / sizeof(files[0]); i++)
		if (!strcmp(files[i].path, key->scope->path))
			return files[i].format;
	fail_msg("no file for the scope %s", key->scope->path);
	return NULL;
}

// Whether `value` of `key` is refused with the words `wrong`.
static bool is_refused(const struct key *key, const char *value, const char *wrong)
{
	struct config_machine machine = fixture_machine();
	char *setting, *text, expected[256];
	assert_true(asprintf(&setting, "%s: %s", key->name, value) > 0);
#pragma GCC diagnostic ignored "-Wformat-nonliteral"
	assert_true(asprintf(&text, format_of(key), setting) > 0);
	char *errors = fixture_errors(text, &machine);
	snprintf(expected, sizeof(expected), "%s; allowed: ", wrong);

	// Of the many lines about what is missing, the one that is about this key.
	bool found = false;
	char name[64];
	snprintf(name, sizeof(name), "%s: ", key->name);
	for (char *rest = errors, *line; (line = strsep(&rest, "\n"));)
		found |= strstr(line, name) && strstr(line, expected);
	free(errors);
	free(text);
	free(setting);
	return found;
}

static void write_number(const struct key *key, uint64_t number, char text[64])
{
	const char *unit = key->type == KEY_DURATION ? key->of : key->type == KEY_RATE ? "/s" : "";
	snprintf(text, 64, "%lu%s", number, unit);
}

static void test_numbers(void **state)
{
	(void)state;
	unsigned tested = 0;
	for (const struct key *key = key_table; key < key_table + key_count; key++) {
		char text[64];
		if (key->shape == KEY_LIST)
			continue;
		if (key->type != KEY_COUNT && key->type != KEY_DURATION && key->type != KEY_SIZE &&
			key->type != KEY_RATE)
			continue;
		print_message("%s%s\n", key->scope->path, key->name);
		write_number(key, key->min, text);
		assert_false(is_refused(key, text, "is too small"));
		write_number(key, key->max, text);
		assert_false(is_refused(key, text, "is too large"));
		write_number(key, key->max + 1, text);
		assert_true(is_refused(key, text, "is too large"));
		if (key->min > 0) {
			write_number(key, key->min - 1, text);
			assert_true(is_refused(key, text, "is too small"));
		}
		tested++;
	}
	assert_true(tested > 20);
}

static char *list_of(const struct key *key, uint64_t count)
{
	static const char *const elements[KEY_TYPE_COUNT] = {[KEY_CORE] = "0",
		[KEY_HOST] = "a",
		[KEY_NETWORK] = "10.0.0.0/8",
		[KEY_SERVER] = "a:1",
		[KEY_INTERFACE] = "10.0.0.1/8",
		[KEY_IP] = "10.0.0.2",
		[KEY_MAP] = "{}"};
	char *text;
	size_t len;
	FILE *out = open_memstream(&text, &len);
	assert_non_null(elements[key->type]);
	fputc('[', out);
	for (uint64_t i = 0; i < count; i++)
		fprintf(out, "%s, ", elements[key->type]);
	fputc(']', out);
	fclose(out);
	return text;
}

static void test_lists(void **state)
{
	(void)state;
	static const struct {
		int beyond;
		bool at_max;
	} tries[] = {{0, false}, {-1, false}, {0, true}, {1, true}};
	for (const struct key *key = key_table; key < key_table + key_count; key++) {
		if (key->shape != KEY_LIST)
			continue;
		print_message("%s%s\n", key->scope->path, key->name);
		for (size_t i = 0; i < sizeof(tries) / sizeof(tries[0]); i++) {
			if (!tries[i].at_max && tries[i].beyond && key->min == 0)
				continue;
			char *text = list_of(
				key, (tries[i].at_max ? key->max : key->min) + tries[i].beyond);
			assert_int_equal(
				is_refused(key, text, "has a wrong length"), tries[i].beyond != 0);
			free(text);
		}
	}
}

static void test_texts(void **state)
{
	(void)state;
	for (const struct key *key = key_table; key < key_table + key_count; key++) {
		if (key->type != KEY_NAME && key->type != KEY_PATH && key->type != KEY_FILE &&
			key->type != KEY_DEVICE && key->type != KEY_TEXT)
			continue;
		char *text = malloc(key->max + 2);
		memset(text, 'a', key->max + 1);
		text[key->max + 1] = '\0';
		print_message("%s%s\n", key->scope->path, key->name);
		assert_true(is_refused(key, "''", "is empty"));
		assert_true(is_refused(key, text, "is too long"));
		text[key->max] = '\0';
		assert_false(is_refused(key, text, "is too long"));
		free(text);
	}
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_numbers),
		cmocka_unit_test(test_lists),
		cmocka_unit_test(test_texts),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
