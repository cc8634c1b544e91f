// The tables of keys.def and plan.def in memory.
//
// Three expansions of the files: the scopes, a check that each member has the size its type writes,
// and the tables. Finding is by linear search: a scope has at most a few dozen keys, and reading a
// configuration is rare.

#include "config/key.h"

#include "config/config.h"
#include "config/plan.h"

#include <assert.h>
#include <string.h>

#define NAME_BYTES_MAX 64 // longer names are compared by their beginning

// Scopes, numbered and listed.
#define KEY(...)
#define LIST(...)
#define MAP(...)
#define MAPS(...)
enum scope {
#define SCOPE(scope, path) SCOPE_##scope,
#include "config/keys.def"
#include "config/plan.def"
#undef SCOPE
};
static const struct key_scope scopes[] = {
#define SCOPE(scope, path) {#scope, path, sizeof(struct scope), key_table, &key_count},
#include "config/keys.def"
#undef SCOPE
#define SCOPE(scope, path) {#scope, path, sizeof(struct scope), key_plan_table, &key_plan_count},
#include "config/plan.def"
#undef SCOPE
};
#undef KEY
#undef LIST
#undef MAP
#undef MAPS

// What each type writes; lists and mappings write a key_list and a pointer.
#define BYTES_WORD sizeof(int)
#define BYTES_CHOICE sizeof(uint64_t)
#define BYTES_BOOL sizeof(bool)
#define BYTES_COUNT sizeof(uint64_t)
#define BYTES_DURATION sizeof(uint64_t)
#define BYTES_SIZE sizeof(uint64_t)
#define BYTES_RATE sizeof(struct config_rate)
#define BYTES_BATCH sizeof(struct config_rate)
#define BYTES_NAME sizeof(const char *)
#define BYTES_DOMAIN sizeof(const char *)
#define BYTES_PATH sizeof(const char *)
#define BYTES_FILE sizeof(const char *)
#define BYTES_DEVICE sizeof(const char *)
#define BYTES_TIME sizeof(uint64_t)
#define BYTES_HEX sizeof(const char *)
#define BYTES_WINDOW sizeof(struct config_window)
#define BYTES_TEXT sizeof(const char *)
#define BYTES_STORE sizeof(struct config_store)
#define BYTES_ADDRESS sizeof(struct config_address)
#define MEMBER_HAS(scope, member, bytes) \
	static_assert(sizeof(((struct scope *)0)->member) == (bytes), #scope "." #member);
#define SCOPE(scope, path)
#define KEY(scope, name, member, type, ...) MEMBER_HAS(scope, member, BYTES_##type)
#define LIST(scope, name, member, ...) MEMBER_HAS(scope, member, sizeof(struct key_list))
#define MAP(scope, name, member, ...) MEMBER_HAS(scope, member, sizeof(void *))
#define MAPS LIST
#include "config/keys.def"
#include "config/plan.def"
#undef SCOPE
#undef KEY
#undef LIST
#undef MAP
#undef MAPS

#define IN(s) .scope = &scopes[SCOPE_##s]
#define SCOPE(scope, path)
#define KEY(s, n, m, t, o, low, high, f, c, h) \
	{IN(s), #n, NULL, o, f, h, low, high, offsetof(struct s, m), KEY_##t, KEY_ONE, KEY_##c},
#define LIST(s, n, m, t, o, low, high, f, c, h) \
	{IN(s), #n, NULL, o, f, h, low, high, offsetof(struct s, m), KEY_##t, KEY_LIST, KEY_##c},
#define MAP(s, n, m, o, f, c, h) \
	{IN(s), #n, &scopes[SCOPE_##o], NULL, f, h, 0, 0, offsetof(struct s, m), KEY_MAP, KEY_ONE, \
		KEY_##c},
#define MAPS(s, n, m, o, low, high, f, c, h) \
	{IN(s), #n, &scopes[SCOPE_##o], NULL, f, h, low, high, offsetof(struct s, m), KEY_MAP, \
		KEY_LIST, KEY_##c},
const struct key key_table[] = {
#include "config/keys.def"
};
static_assert(sizeof(key_table) / sizeof(key_table[0]) <= KEY_TABLE_MAX, "KEY_TABLE_MAX");
const unsigned key_count = sizeof(key_table) / sizeof(key_table[0]);
const struct key key_plan_table[] = {
#include "config/plan.def"
};
static_assert(sizeof(key_plan_table) / sizeof(key_plan_table[0]) <= KEY_TABLE_MAX, "KEY_TABLE_MAX");
const unsigned key_plan_count = sizeof(key_plan_table) / sizeof(key_plan_table[0]);

const struct key_scope *key_root(void)
{
	return &scopes[SCOPE_config];
}

const struct key_scope *key_plan_root(void)
{
	return &scopes[SCOPE_plan];
}

const struct key *key_find(const struct key_scope *scope, const char *name)
{
	for (unsigned i = 0; i < *scope->table_count; i++)
		if (scope->table[i].scope == scope && strcmp(scope->table[i].name, name) == 0)
			return &scope->table[i];
	return NULL;
}

static unsigned least(unsigned a, unsigned b)
{
	return a < b ? a : b;
}

// Optimal string alignment: Levenshtein's table, and a swap of neighbours counts as one.
unsigned key_distance(const char *a, const char *b)
{
	unsigned rows[3][NAME_BYTES_MAX + 1];
	size_t a_len = strnlen(a, NAME_BYTES_MAX), b_len = strnlen(b, NAME_BYTES_MAX);
	unsigned *before = rows[0], *above = rows[1], *row = rows[2];

	for (size_t j = 0; j <= b_len; j++)
		above[j] = j;
	for (size_t i = 1; i <= a_len; i++) {
		row[0] = i;
		for (size_t j = 1; j <= b_len; j++) {
			row[j] = least(above[j] + 1, row[j - 1] + 1);
			row[j] = least(row[j], above[j - 1] + (a[i - 1] != b[j - 1]));
			if (i > 1 && j > 1 && a[i - 1] == b[j - 2] && a[i - 2] == b[j - 1])
				row[j] = least(row[j], before[j - 2] + 1);
		}
		unsigned *oldest = before;
		before = above, above = row, row = oldest;
	}
	return above[b_len];
}

const struct key *key_nearest(const struct key_scope *scope, const char *name)
{
	const struct key *nearest = NULL;
	unsigned nearest_distance = UINT32_MAX;

	for (unsigned i = 0; i < *scope->table_count; i++) {
		if (scope->table[i].scope != scope)
			continue;
		unsigned d = key_distance(name, scope->table[i].name);
		if (d < nearest_distance)
			nearest = &scope->table[i], nearest_distance = d;
	}
	assert(nearest);
	return nearest;
}

const struct key *key_elsewhere(const struct key_scope *scope, const char *name)
{
	for (unsigned i = 0; i < *scope->table_count; i++)
		if (scope->table[i].scope != scope && strcmp(scope->table[i].name, name) == 0)
			return &scope->table[i];
	return NULL;
}

bool key_is_required(const struct key *key)
{
	return key->fallback[0] == '!';
}

bool key_is_computed(const struct key *key)
{
	return key->fallback[0] == '=';
}

bool key_may_be_none(const struct key *key)
{
	return key->type != KEY_WORD && strcmp(key->fallback, "none") == 0;
}
